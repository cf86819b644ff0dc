"""Do the functions of typed operators obey what their types ask of them, for all values? (Theorem 2.27)

The functions are read on events and states that are not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import z3

from streamtight.program.operators import KeyedOrdered, KeyedUnordered, Operator, Split, Stateless
from streamtight.program.relation import Fold
from streamtight.solver.ask import Answer, Budget, prove
from streamtight.solver.laws import is_well_defined
from streamtight.solver.reading import NOTHING_RAISES as NOTHING_RAISES
from streamtight.solver.reading import Function, Reader, any_event
from streamtight.solver.symbolic.kinds import holds_event, row_of
from streamtight.solver.symbolic.paths import refuse
from streamtight.solver.terms import Meaning, Term
from streamtight.solver.values import Row, Truth, conjunction, joined, same, type_of, variable
from streamtight.stream.event import Kind

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


class _Reader(Reader):
    """Reads the functions of an operator."""

    def __init__(self, operator: Operator, meaning: Meaning) -> None:
        super().__init__(operator.name, meaning)
        self._operator = operator
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

        for state in self.reached(operator.initial_state, lambda known: (each[1] for _, each in made(known))):
            self._require_plain(operator.forget, state)
            for kept, each in made(state):
                yield from self._keeps(kept, [each])

    def unordered(self, operator: KeyedUnordered) -> Answer:
        summaries = [
            Term((), guard, row) for kind in self._items for guard, row in self.of_event(operator.summary, kind)
        ]
        first = joined([type_of(operator.identity), *(type_of(term.row) for term in summaries)])
        summary = self.closed(first, lambda known: self.of_values(operator.combine, known, known))
        states = self.reached(
            operator.initial_state, lambda known: self.of_values(operator.update_state, known, summary)
        )
        for state in states:
            snapshot = variable(state, "?state")
            for kind in self._items:
                list(self._emits(operator.on_item, kind, snapshot))
            for kind in self._markers:
                list(self._emits(operator.on_marker, kind, snapshot, self._any_key()))
            self._require_plain(operator.forget, state)
        fold = Fold(operator.identity, operator.combine, operator.combine)
        return is_well_defined(fold, summary, summaries, budget=self.meaning.budget)

    def require_readable(self, function: Function) -> None:
        """Raise if a function of an item could do more than give a value."""
        for kind in self._items:
            list(self.of_event(function, kind))

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

        for guard, (result, emitted) in self.of_event(function, kind, *before, call=call):
            yield guard, result, emitted

    def _require_plain(self, function: Function | None, state: Any) -> None:
        if function is not None:
            list(self.of_values(function, state))

    # -- keys --------------------------------------------------------------------------------------------------------

    def _any_key(self) -> Row:
        types = [self._items[0].fields[field] for field in self._operator.key]
        return variable(types[0] if len(types) == 1 else tuple(types), "?key")

    def _key_in(self, kind: Kind) -> list[Row]:
        event = any_event(kind)
        return [event[kind.names.index(field)] for field in self._operator.key]

    def _keeps(self, key: Sequence[Row], made: Iterable[Made]) -> Iterator[Truth]:
        """That what is emitted has this key, if the output is ordered by it."""
        kinds = {repr(kind): kind for kind in self._operator.gives.between.kinds}
        for guard, _, emitted in made:
            for told, *values in emitted if self._operator.keeps_order is not None else ():
                fields = [values[kinds[told].names.index(field)] for field in self._operator.key]
                yield z3.Implies(guard, conjunction(map(same, fields, key)))
