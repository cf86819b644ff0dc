"""Do the functions of typed operators obey what their types ask of them, for all values? (Theorem 2.27)

The functions are read on events and states that are not known. That alone shows that they are functions: that they keep
nothing between two calls and change nothing. What states can be is found by reading them again until nothing is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.operators import KeyedOrdered, KeyedUnordered, Operator, Split, Stateless
from streamtight.program.relation import Fold
from streamtight.solver.ask import Answer, Budget, prove
from streamtight.solver.laws import is_well_defined
from streamtight.solver.symbolic.admit import Composed, Twin
from streamtight.solver.symbolic.kinds import event_of, holds_event, row_of
from streamtight.solver.symbolic.paths import refuse
from streamtight.solver.terms import Meaning, Term
from streamtight.solver.values import YES, Row, Truth, conjunction, joined, same, type_of, variable
from streamtight.stream.event import Kind

NOTHING_RAISES = "no function raises"
_ROUNDS = 5
"""How often states are read again, at most, until their type is known."""

Function = Callable[..., Any]
Made = tuple[Truth, Row, Sequence[Row]]
"""What a function makes of its arguments: when, the result, and the events that it emits."""


def is_consistent(operator: Operator, budget: Budget) -> tuple[Answer, frozenset[str]]:
    """Whether it obeys what its type asks for, for all items, markers and states; and what that assumes.

    Raises `UnsupportedError`, with the line, if a function cannot be read.
    """
    meaning = Meaning(budget)
    reader = _Reader(operator, meaning)
    answer = Answer()
    if isinstance(operator, Stateless):
        answer = prove(conjunction(reader.stateless(operator)), seconds=budget.left)
    elif isinstance(operator, KeyedOrdered):
        answer = prove(conjunction(reader.ordered(operator)), seconds=budget.left)
    elif isinstance(operator, KeyedUnordered):
        answer = reader.unordered(operator)
    elif isinstance(operator, Split) and callable(operator.by):
        reader.require_readable(operator.by)
    return answer, frozenset(meaning.assumptions)


class _Reader:
    """Reads the functions of an operator."""

    def __init__(self, operator: Operator, meaning: Meaning) -> None:
        self._operator, self._meaning = operator, meaning
        self._items = sorted(operator.takes.between.kinds, key=lambda kind: kind.name)
        self._markers = sorted(operator.takes.markers, key=lambda kind: kind.name)

    def stateless(self, operator: Stateless) -> Iterator[Truth]:
        for kind in self._items:
            yield from self._keeps(self._key_in(kind), self._emits(operator.on_item, kind))
        for kind in self._markers:  # which has no key to keep
            list(self._emits(operator.on_marker, kind))

    def ordered(self, operator: KeyedOrdered) -> Iterator[Truth]:
        key = self._any_key()

        def made(known: Any) -> Iterator[tuple[Sequence[Row], Made]]:
            state = variable(known, "?state")
            for kind in self._items:
                yield from ((self._key_in(kind), each) for each in self._emits(operator.on_item, kind, state))
            for kind in self._markers:
                each_key = [key] if len(operator.key) == 1 else key
                yield from ((each_key, each) for each in self._emits(operator.on_marker, kind, state, key))

        for state in self._reached(operator.initial_state, lambda known: (each[1] for _, each in made(known))):
            self._require_plain(operator.forget, state)
            for kept, each in made(state):
                yield from self._keeps(kept, [each])

    def unordered(self, operator: KeyedUnordered) -> Answer:
        summaries = [
            Term((), guard, row) for kind in self._items for guard, row, _ in self._of_event(operator.summary, kind)
        ]
        first = joined([type_of(operator.identity), *(type_of(term.row) for term in summaries)])
        summary = self._closed(first, lambda known: self._of_values(operator.combine, known, known))
        states = self._reached(
            operator.initial_state, lambda known: self._of_values(operator.update_state, known, summary)
        )
        for state in states:
            snapshot = variable(state, "?state")
            for kind in self._items:
                list(self._emits(operator.on_item, kind, snapshot))
            for kind in self._markers:
                list(self._emits(operator.on_marker, kind, snapshot, self._any_key()))
            self._require_plain(operator.forget, state)
        fold = Fold(operator.identity, operator.combine, operator.combine)
        return is_well_defined(fold, summary, summaries, budget=self._meaning.budget)

    def require_readable(self, function: Function) -> None:
        """Raise if a function of an item could do more than give a value."""
        for kind in self._items:
            list(self._of_event(function, kind))

    # -- what functions make -----------------------------------------------------------------------------------------

    def _emits(self, function: Function, kind: Kind, *before: Row) -> Iterator[Made]:
        """What a function makes of what comes before an event, the event, and `emit`."""

        def call(own: Function, *given: Any) -> tuple[Any, Any]:
            out: list[Any] = []
            result = own(*given, out.append)
            state = result if isinstance(self._operator, KeyedOrdered) else None
            if holds_event(state):
                refuse("keeps an event in its state; its values in a tuple can be read")
            return (state, tuple(map(row_of, out)))

        for guard, (result, emitted), _ in self._of_event(function, kind, *before, call=call):
            yield guard, result, emitted

    def _of_event(self, function: Function, kind: Kind, *before: Row, call: Function | None = None) -> Iterator[Made]:
        """What a function makes of what comes before an event, and the event."""
        call = call or (lambda own, *given: own(*given))

        def unknown(twin: Twin, own: Function) -> Function:
            twin.kind(kind)
            return lambda *rows: call(own, *rows[:-1], event_of(rows[-1], kind))

        composed = Composed(
            unknown,
            function,
            besides=(kind.name, kind.names, len(before), call.__qualname__),
            real=lambda *rows: call(function, *rows[:-1], kind(*rows[-1])),
        )
        for guard, row in self._paths(composed, [*before, _any_event(kind)]):
            yield guard, row, ()

    def _of_values(self, function: Function, *types: Any) -> Iterator[Row]:
        """What a function makes of values of these types."""
        rows = [variable(type_, f"?{place}") for place, type_ in enumerate(types)]
        return (row for _, row in self._paths(function, rows))

    def _require_plain(self, function: Function | None, state: Any) -> None:
        if function is not None:
            list(self._of_values(function, state))

    def _paths(self, function: Function, rows: Sequence[Row]) -> Iterator[tuple[Truth, Row]]:
        for guard, row, raised in self._meaning.applied(function, rows, YES):
            if raised is None:  # where it raises, there is no output that could depend on an order
                yield guard, row
            else:
                self._meaning.assumptions.add(NOTHING_RAISES)

    # -- states ------------------------------------------------------------------------------------------------------

    def _reached(self, first: Any, after: Callable[[Any], Iterable[Row]]) -> list[Any]:
        """The types of all states that come about, from the first state on: None is often one of its own."""
        known: list[Any] = []
        new = [type_of(first)]
        for _ in range(_ROUNDS):
            known = _together([*known, *new])
            new = _together([*known, *(type_of(row) for state in known for row in after(state))])
            if new == known:
                return known
        return self._refuse_wider(known)

    def _closed(self, first: Any, after: Callable[[Any], Iterable[Row]]) -> Any:
        """The one type of all values that come about, from the first on."""
        known = first
        for _ in range(_ROUNDS):
            wider = joined([known, *map(type_of, after(known))])
            if wider == known:
                return known
            known = wider
        return self._refuse_wider(known)

    def _refuse_wider(self, known: Any) -> NoReturn:
        raise UnsupportedError(
            self._operator.name, needed="states of one type", came=f"ever wider ones, {known!r}", hint="a tuple"
        )

    # -- keys --------------------------------------------------------------------------------------------------------

    def _any_key(self) -> Row:
        types = [self._items[0].fields[field] for field in self._operator.key]
        return variable(types[0] if len(types) == 1 else tuple(types), "?key")

    def _key_in(self, kind: Kind) -> list[Row]:
        event = _any_event(kind)
        return [event[kind.names.index(field)] for field in self._operator.key]

    def _keeps(self, key: Sequence[Row], made: Iterable[Made]) -> Iterator[Truth]:
        """That what is emitted has this key, if the output is ordered by it."""
        kinds = {kind.name: kind for kind in self._operator.gives.between.kinds}
        for guard, _, emitted in made:
            for name, *values in emitted if self._operator.keeps_order is not None else ():
                fields = [values[kinds[name].names.index(field)] for field in self._operator.key]
                yield z3.Implies(guard, conjunction(map(same, fields, key)))


def _together(types: Iterable[Any]) -> list[Any]:
    """These types, with one for those that can be joined."""
    apart: list[Any] = []
    for each in types:
        for place, other in enumerate(apart):
            try:
                apart[place] = joined([other, each])
                break
            except UnsupportedError:
                continue
        else:
            apart.append(each)
    return apart


def _any_event(kind: Kind) -> tuple[Row, ...]:
    """The values of an event, none of which is known."""
    return tuple(variable(declared, f"?event.{field}") for field, declared in kind.fields.items())
