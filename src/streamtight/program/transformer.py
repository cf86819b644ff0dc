"""What a transformer of series-parallel streams is: its type, its two meanings, and how it runs (section 2.4).

A transformer P of type (X, S, X', S') has two meanings (Definition 2.28): `P.open(x, t)` is what it gives for the
stream t while more may come; `P.closed(x, t)` is its final value and all that it gives, if nothing comes after t.
`P.start(x)` runs it, event by event. How to build one: transformer_forms.py.

Inside, an output is a list of events, one of its flattenings: a list stands for exactly one stream (Prop 2.19), a
longer one for a longer stream (Definition 2.11), and the same list for the relaxed stream (Prop 2.22).
"""

from __future__ import annotations

import abc
import copy
import enum
import reprlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from streamtight.errors import JobError, SchemaError
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Schema
from streamtight.stream.series_parallel import Stream

Value = Any  # X, X' and the types of states: values of the user, which nobody here looks into
Given = tuple[Value, Iterable[Event]]
"""What most functions of the user return: a value, and events to give."""
State = list[Any]
"""How far a run is: lists and dicts of the user's values and events, so that it pickles if these do."""

STREAM_OF_TYPE = "2.28: the input is a stream of the input schema"
GIVES_ITS_TYPE = "2.28: the output is a stream of the output schema"
ONLY_RELAXED = "2.29: the output type may be replaced by a relaxation of it"


class Law(enum.Enum):
    """What the functions of a transformer must obey, and nobody can see from their types."""

    MONOTONE = "2.30 (1): open of more items gives what it gave before, or more"
    PREFIX = "2.30 (2): what open gives is part of what closed gives"
    ANY_ORDER_OF_ITEMS = "2.30: open and closed do not depend on the order of the items"
    ITEMS_COMMUTE = "2.30: add(add(s, a), b) equals add(add(s, b), a)"
    ANY_ORDER_OF_KEYS = "2.33: agg does not depend on the order of the keys"


@dataclass(frozen=True, slots=True)
class Obligation:
    """A law that one transformer in a tree of them must obey, for the tree to be a function of streams."""

    of: Transformer
    law: Law

    def __repr__(self) -> str:
        return f"{self.of.path}: {self.law.value}"


class Transformer(abc.ABC):
    """A program of type (X, takes, X', gives). Build one with Relational, Parallel, Hierarchical and Partitioned.

    The functions in it must depend on nothing but their arguments, must not change these, and treat equal values alike.
    Under this condition, and if its `obligations` are met, `open` is monotone (Theorem 2.34) and a prefix of `closed`.
    """

    takes: Schema
    gives: Schema

    def __init__(self, name: str, *, takes: Schema, gives: Schema, subs: Iterable[Transformer] = ()) -> None:
        self.name = name
        self.path = name
        """Where it stands in the tree: "hours > taxis > gps"."""
        self.takes = takes
        self.gives = gives
        self.subs = tuple(sub._below(name) for sub in subs)
        """The transformers that it is built of, each at its place below this one."""

    def open(self, x: Value, stream: Stream) -> Stream:
        """What it gives for this input as long as more may follow."""
        return self.gives.parse(self._open(x, self._typed(stream)))

    def closed(self, x: Value, stream: Stream) -> tuple[Value, Stream]:
        """Its final value, and all that it gives, if this is the whole input."""
        value, events = self._closed(x, self._typed(stream))
        return value, self.gives.parse(events)

    def start(self, x: Value) -> Running:
        """A run that takes one event after the other; nothing is computed twice."""
        state, opening = self._begin(x)
        return Running(self, state, opening)

    def resume(self, state: State) -> Running:
        """A run that goes on where another was: `state` is the other's, pickled and read back perhaps."""
        return Running(self, state, [])

    def giving(self, schema: Schema) -> Self:
        """The same program with an output type that orders less or knows more kinds (Definition 2.29)."""
        reason = schema.why_not_relaxes(self.gives) if isinstance(schema, Schema) else "it is no schema"
        if reason:
            raise SchemaError(
                f"{self.path}: giving",
                needed=f"a relaxation of {self.gives!r}",
                came=f"{short(schema)}, which is none: {reason}",
                hint="a schema that orders no more than this one",
                rule=ONLY_RELAXED,
            )
        relaxed = copy.copy(self)
        relaxed.gives = schema
        return relaxed

    def obligations(self) -> list[Obligation]:
        """The laws that its functions, and those of the transformers in it, must obey: to be tested or proved."""
        below = [obligation for sub in self.subs for obligation in sub.obligations()]
        return [Obligation(self, law) for law in self._laws()] + below

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.path!r}, {self.takes!r} -> {self.gives!r})"

    # The meaning, by the definitions: on streams.

    @abc.abstractmethod
    def _open(self, x: Value, stream: Any) -> list[Event]: ...

    @abc.abstractmethod
    def _closed(self, x: Value, stream: Any) -> tuple[Value, list[Event]]: ...

    # The same in one pass: `_begin`, `_step` for each event, `_end` give, one after the other, what `_closed` gives.

    @abc.abstractmethod
    def _begin(self, x: Value) -> tuple[State, list[Event]]: ...

    @abc.abstractmethod
    def _step(self, state: State, event: Event) -> list[Event]: ...

    @abc.abstractmethod
    def _end(self, state: State) -> tuple[Value, list[Event]]: ...

    def _laws(self) -> Iterator[Law]:
        yield from ()

    def _below(self, above: str) -> Self:
        placed = copy.copy(self)
        placed.path = f"{above} > {self.path}"
        placed.subs = tuple(sub._below(above) for sub in self.subs)
        return placed

    def _typed(self, stream: Stream | None) -> Stream:
        """The stream as one of the type that this takes; None is the empty one, as inside of streams."""
        if stream is None:
            return self.takes.parse([])
        if not isinstance(stream, Stream):
            raise SchemaError(
                self.path,
                needed=f"a stream of {self.takes!r}",
                came=short(stream),
                hint="schema.parse(events)",
                rule=STREAM_OF_TYPE,
            )
        if stream.schema.shape == self.takes.shape:
            return stream
        if reason := self.takes.why_not_relaxes(stream.schema):
            raise SchemaError(
                self.path,
                needed=f"a stream of {self.takes!r}",
                came=f"one of {stream.schema!r}; as a type for it, {self.takes!r} is too strong: {reason}",
                hint=f"{self.takes!r}.parse(events)",
                rule=STREAM_OF_TYPE,
            )
        return stream.relax(self.takes)

    # The border to the user's functions.

    def _ask(self, role: str, function: Callable[..., Any], *given: Any) -> Any:
        try:
            return function(*given)
        except Exception as error:
            raised = f"{type(error).__name__}: {error}"
            raise JobError(
                f"{self.path}: {role}",
                needed=f"a result for ({', '.join(map(short, given))})",
                came=raised,
                hint=f"call {role} by hand with these values",
                batch=None,
                raised=raised,
            ) from error

    def _events(self, role: str, given: Any, kinds: frozenset[Kind]) -> list[Event]:
        """What a function gave, if it is a list of events of these kinds."""
        if given.__class__ is list:  # nearly always
            events = list(given)
        elif isinstance(given, Event) or not isinstance(given, Iterable):
            self._refuse(role, "a list of events", given, "return [] for none, [event] for one")
        else:
            events = self._ask(role, list, given)  # here a generator runs
        for event in events:
            if not isinstance(event, Event) or event[0] not in kinds:
                names = ", ".join(sorted(kind.name for kind in kinds)) or "no kind"
                hint = "add the kind to the output type" if isinstance(event, Event) else "make events with a Kind"
                self._refuse(role, f"events of {names}", event, hint)
        return events

    def _value_and_events(self, role: str, given: Any, kinds: frozenset[Kind]) -> tuple[Value, list[Event]]:
        if given.__class__ is not tuple or len(given) != 2:  # an event is a tuple too, of another class
            self._refuse(role, "a pair: a value and a list of events", given, "return value, [] to give no event")
        return given[0], self._events(role, given[1], kinds)

    def _refuse(self, role: str, needed: str, came: object, hint: str, rule: str = GIVES_ITS_TYPE) -> NoReturn:
        raise SchemaError(f"{self.path}: {role}", needed=needed, came=short(came), hint=hint, rule=rule)


class Running:
    """A transformer at work: `feed` it events, then `close` it. What it gave so far is a flattening of `open`."""

    def __init__(self, transformer: Transformer, state: State, opening: list[Event]) -> None:
        self.transformer = transformer
        self.opening = opening
        """What it gives before any event comes: most give nothing."""
        self._state: State | None = state

    @property
    def state(self) -> State:
        """All that it knows, as data without functions: to be pickled, and given to `transformer.resume`."""
        if self._state is None:
            raise SchemaError(
                self.transformer.path,
                needed="a run that goes on",
                came="one that was closed, or that failed",
                hint="transformer.start(x) for a new run",
            )
        return self._state

    def feed(self, event: Event) -> list[Event]:
        """What this event adds to the output. The events must come in the order of a flattening of the input."""
        state, takes = self.state, self.transformer.takes
        if not isinstance(event, Event) or event[0] not in takes.kinds:
            raise SchemaError(
                self.transformer.path,
                needed=f"an event of {takes!r}",
                came=short(event),
                hint="leave out what it does not take",
                rule=STREAM_OF_TYPE,
            )
        self._state = None  # if a function of the user raises now, the state is worth nothing
        given = self.transformer._step(state, event)
        self._state = state
        return given

    def close(self) -> tuple[Value, list[Event]]:
        """The final value, and what the end adds to the output."""
        state, self._state = self.state, None
        return self.transformer._end(state)


_reader = reprlib.Repr()
_reader.maxother = _reader.maxstring = 200


def short(value: object) -> str:
    """A value as a message can show it."""
    return _reader.repr(value)
