"""Queries at work: item by item, with a state that can be kept and restored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, MutableMapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from streamtight.errors import QueryError
from streamtight.properties.code import AtItem, block_code, item_code, used_fields
from streamtight.properties.merged import merged
from streamtight.properties.query import Query, tags_of
from streamtight.properties.query_machine import value_machine
from streamtight.properties.query_types import require_well_typed
from streamtight.properties.straight import Straight, straight
from streamtight.properties.term import Value
from streamtight.properties.transducer import Transducer
from streamtight.stream.event import Event

_ANYTHING = 0
"""What machines of queries are started with: no answer depends on it."""
MOST_RULES = 20_000
"""Machines with more rules are refused: to make code of them would take minutes."""


class Bound(NamedTuple):
    """What a query needs, whatever the stream."""

    registers: int
    """Values that are kept from one item to the next."""
    operations: int
    """Operations for an item, at most."""
    controls: int
    """Ways in which its registers can be filled; 1 also if there are too many, and code looks at each item."""
    states: int
    """States of its machine: Theorem 5.7 says at most quadratically many in the length of the query."""
    size: int
    """States of its machine and lengths of all rules: what Theorem 5.1 has as the bound for operations."""
    length: int
    """The length of the query."""

    def __str__(self) -> str:
        ways = "1 control state" if self.controls == 1 else f"{self.controls} control states"
        needs = f"{_counted(self.registers, 'register')}, at most {_counted(self.operations, 'operation')} an item"
        return (
            f"{needs}, {ways}\n"
            f"(before simplification {self.states} states and size {self.size}, for a query of length {self.length})"
        )


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


class Compiled:
    """A query and the tags of its stream, made ready to run: checked, and as code."""

    def __init__(self, query: Query, tags: Sequence[str] | None = None) -> None:
        self.query = query
        self.tags = tags_of(query, tags)
        if len(self.machine.rules) > MOST_RULES:
            raise QueryError(
                short(query),
                needed=f"a query whose machine has at most {MOST_RULES:,} rules",
                came=f"one with {len(self.machine.rules):,}",
                hint="splits nested to the left need fewer than those to the right; or several queries",
            )
        require_well_typed(query, self.tags)
        try:
            self.program: Straight = merged(straight(self.machine, [_ANYTHING]))
            _ = self.item_code  # what cannot be written as code is refused now
        except QueryError:
            raise
        except (RecursionError, SyntaxError, MemoryError) as error:
            raise QueryError(
                "a query",
                needed="operations of some dozen steps each",
                came=f"one that is nested too deep ({type(error).__name__})",
                hint="combine(...) of several queries instead of one long term",
            ) from error
        except Exception as error:  # the border of user code: operations run once, before the first item
            raise QueryError(
                short(query),
                needed="operations that give a value, also before the first item",
                came=f"{type(error).__name__}: {error}",
                hint="choose(y == 0, 0, x / y) where it may be",
            ) from error

    @cached_property
    def machine(self) -> Transducer:
        """Its data transducer."""
        return value_machine(self.query, self.tags)

    @property
    def first(self) -> Value:
        """The answer before the first item."""
        return self.program.first

    @property
    def start(self) -> State:
        """The state before the first item."""
        return (0, *self.program.start)

    @cached_property
    def fields(self) -> list[str | None]:
        """The fields of items that are read, in order; None stands for the item itself."""
        return used_fields(self.program)

    def bound(self) -> Bound:
        """What it needs, whatever the stream."""
        program = self.program
        return Bound(
            program.registers,
            program.operations,
            program.controls,
            len(self.machine.states),
            self.machine.size,
            self.query.length,
        )

    def monitor(self) -> Monitor:
        """It at work, from the beginning."""
        return Monitor(self)

    def run(self, word: Iterable[Any]) -> list[Value]:
        """The answers: before the first item, and after each."""
        monitor = self.monitor()
        return [self.first, *(monitor.update(*item_of(each)) for each in word)]

    def block(self, tags: Sequence[int], columns: Sequence[Sequence[Value]], state: State) -> tuple[Any, Any, State]:
        """The answers to a block of items, as statuses and values, and the state after it.

        tags      the numbers of their tags, in the order of `self.tags`
        columns   the values of the fields that are read, in the order of `self.fields`
        """
        try:
            return self._block_code[0](tags, *columns, state)  # type: ignore[no-any-return]
        except AtItem as error:
            raise self._failed_in_block(error, tags, columns) from error.error

    def keyed_block(
        self,
        tags: Sequence[int],
        keys: Sequence[Any],
        columns: Sequence[Sequence[Value]],
        states: MutableMapping[Any, State] | list[State],
    ) -> tuple[Any, Any]:
        """The same, with a state for each key: `states[key]`, which is changed."""
        try:
            return self._block_code[1](tags, keys, *columns, states)[:2]  # type: ignore[no-any-return]
        except AtItem as error:
            raise self._failed_in_block(error, tags, columns) from error.error

    @cached_property
    def _block_code(self) -> tuple[Any, Any]:
        return block_code(self.program, is_keyed=False), block_code(self.program, is_keyed=True)

    @cached_property
    def item_code(self) -> Any:
        """What makes a function of an item and one that tells the state."""
        return item_code(self.program)

    @cached_property
    def fingerprint(self) -> str:
        """What tells the states of this query from those of others."""
        steps = [
            (control, tag, *map(str, step.values), str(step.updates), str(step.answer), str(step.status), step.then)
            for (control, tag), step in sorted(self.program.steps.items())
        ]
        told = repr((self.tags, self.program.registers, self.program.controls, steps))
        return hashlib.sha256(told.encode()).hexdigest()[:16]

    def failed(self, error: Exception, tag: object, value: Value) -> QueryError:
        """The error for an operation that raised at an item."""
        hint = "another tag for such items, or a filter; a field is written cur.price"
        if isinstance(error, ZeroDivisionError):
            hint = "choose(y == 0, 0, x / y) where it may be; or another tag for such items"
        return QueryError(
            short(self.query),
            needed="operations that give a value for every item",
            came=f"{type(error).__name__}: {error}, at the item ({tag!r}, {value!r})",
            hint=hint,
        )

    def _failed_in_block(self, error: AtItem, tags: Sequence[int], columns: Sequence[Sequence[Value]]) -> QueryError:
        values = {name: column[error.number] for name, column in zip(self.fields, columns, strict=True)}
        item = values[None] if list(values) == [None] else values
        return self.failed(error.error, self.tags[tags[error.number]], item)

    def unknown(self, tag: object) -> QueryError:
        """The error for an item with a tag that is none of the stream's."""
        return QueryError(
            short(self.query),
            needed=f"items with one of the tags {', '.join(self.tags)}",
            came=f"the tag {tag!r}",
            hint=f"tags=({', '.join(map(repr, self.tags))}, {tag!r}) with all tags that come",
        )

    def __reduce__(self) -> Any:  # code is made where it runs
        return _again, (self.query, self.tags, self.program)


def _again(query: Query, tags: tuple[str, ...], program: Straight) -> Compiled:
    made = Compiled.__new__(Compiled)
    made.query, made.tags, made.program = query, tags, program
    return made


class Monitor:
    """A query at work: `update(tag, value)` gives the answer after an item.

    >>> from streamtight.properties.query import atom, cur, iter_
    >>> monitor = Compiled(iter_(atom("v", cur), 0, lambda total, value: total + value)).monitor()
    >>> monitor.update("v", 5), monitor.update("v", 2), monitor.state()
    (5, 7, (0, 7))
    """

    __slots__ = ("_compiled", "_state", "update")

    def __init__(self, compiled: Compiled, state: State | None = None) -> None:
        self._compiled = compiled
        self.restore(compiled.start if state is None else state)

    def state(self) -> State:
        """All that it knows: a tuple of plain values, to be restored some time."""
        control, registers = self._state()
        return (control, *registers)

    def restore(self, state: State) -> None:
        """Go on from a state."""
        program = self._compiled.program
        if len(state) != 1 + program.registers or not 0 <= state[0] < program.controls:
            raise QueryError(
                short(self._compiled.query),
                needed=f"a state of this query: a number below {program.controls} and {program.registers} values",
                came=repr(state),
                hint="state() of a monitor of the same query and tags",
            )
        self.update, self._state = self._compiled.item_code(*state, self._compiled.failed, self._compiled.unknown)

    def __reduce__(self) -> Any:
        return Monitor, (self._compiled, self.state())


State = tuple[Any, ...]
"""The control state, then the registers."""


def item_of(given: Any) -> tuple[str, Value]:
    """An item: an event, whose kind is its tag, or a pair of a tag and a value."""
    if isinstance(given, Event):
        return given.kind.name, given
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], str):
        return given
    raise QueryError(
        "an item of a word",
        needed="an event, or a tag and a value",
        came=repr(given),
        hint="('v', 5), or Tick(price=5)",
    )


def short(query: Query) -> str:
    """The query, or the beginning of a long one."""
    text = str(query)
    return text if len(text) <= 200 else f"{text[:197]}..."
