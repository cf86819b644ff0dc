"""Functions of events and states, read on values that are not known: what all that reads programs on streams shares.

That alone shows that they are functions: that they keep nothing between two calls and change nothing. What states can
be is found by reading them again until nothing is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from streamtight.errors import UnsupportedError
from streamtight.solver.symbolic.admit import Composed, Twin
from streamtight.solver.symbolic.kinds import event_of
from streamtight.solver.terms import Meaning
from streamtight.solver.values import YES, Row, Truth, joined, type_of, variable
from streamtight.stream.event import Kind

NOTHING_RAISES = "no function raises"
ROUNDS = 5
"""How often states are read again, at most, until their type is known."""

Function = Callable[..., Any]
Call = Callable[..., Any]
"""How a function is called: given the function and its arguments, the last of which is the event."""


class Reader:
    """Reads functions; `name` says whose they are."""

    def __init__(self, name: str, meaning: Meaning) -> None:
        self.name, self.meaning = name, meaning

    def of_event(
        self, function: Function, kind: Kind, *before: Row, call: Call | None = None, event: Row | None = None
    ) -> Iterator[tuple[Truth, Row]]:
        """What a function makes of what comes before an event, and the event: path by path, when and what."""
        call = call or (lambda own, *given: own(*given))

        def unknown(twin: Twin, own: Function) -> Function:
            twin.kind(kind)
            return lambda *rows: call(own, *rows[:-1], event_of(rows[-1], kind))

        composed = Composed(
            unknown,
            function,
            besides=(repr(kind), len(before), call.__qualname__),
            real=lambda *rows: call(function, *rows[:-1], kind(*rows[-1])),
        )
        return self.paths(composed, [*before, any_event(kind) if event is None else event])

    def of_values(self, function: Function, *types: Any) -> Iterator[Row]:
        """What a function makes of values of these types."""
        rows = [variable(type_, f"?{place}") for place, type_ in enumerate(types)]
        return (row for _, row in self.paths(function, rows))

    def paths(self, function: Function, rows: Sequence[Row], given: Truth = YES) -> Iterator[tuple[Truth, Row]]:
        """What a function makes of rows, path by path. Where it raises, there is nothing that could differ."""
        for guard, row, raised in self.meaning.applied(function, rows, given):
            if raised is None:
                yield guard, row
            else:
                self.meaning.assumptions.add(NOTHING_RAISES)

    def reached(self, first: Any, after: Callable[[Any], Iterable[Row]]) -> list[Any]:
        """The types of all states that come about, from the first state on: None is often one of its own."""
        known: list[Any] = []
        new = [type_of(first)]
        for _ in range(ROUNDS):
            known = together([*known, *new])
            new = together([*known, *(type_of(row) for state in known for row in after(state))])
            if new == known:
                return known
        return self.refuse_wider(known)

    def closed(self, first: Any, after: Callable[[Any], Iterable[Row]]) -> Any:
        """The one type of all values that come about, from the first on."""
        known = first
        for _ in range(ROUNDS):
            wider = joined([known, *map(type_of, after(known))])
            if wider == known:
                return known
            known = wider
        return self.refuse_wider(known)

    def refuse_wider(self, known: Any) -> NoReturn:
        """Say that the types of states grow without end."""
        raise UnsupportedError(
            self.name, needed="states of one type", came=f"ever wider ones, {known!r}", hint="a tuple"
        )


def together(types: Iterable[Any]) -> list[Any]:
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


def any_event(kind: Kind, name: str = "?event") -> tuple[Row, ...]:
    """The values of an event, none of which is known."""
    return tuple(variable(declared, f"{name}.{field}") for field, declared in kind.fields.items())
