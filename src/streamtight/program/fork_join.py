"""Fork/join programs: a sequential program, its dependence, and how its state is taken apart and put together.

A program is written for one event after the other, in the order of time (Definition 4.1). `depends` says which tags
must keep their order; `fork` makes two states of one, `join` one of two. If the program is consistent (Definition
4.3), any number of workers may run it: the outputs are those of the sequential run, in another order (Theorem 4.4).

>>> from streamtight.stream.dependence import barrier
>>> Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
>>> Total = Kind("Total", time=int, total=int)
>>> class Windows(ForkJoin):
...     takes, gives = (Value, Barrier), (Total,)
...     depends = barrier(Barrier)
...     whole, part = StateType(Value, Barrier), StateType(Value)
...     branches = (Branch(whole, part, part), Branch(part, part, part))
...     def init(self):
...         return 0
...     def update(self, total, event, emit):
...         if event.kind is Value:
...             return total + event.value
...         emit(Total(event.time, total))
...         return 0
...     def fork(self, total, left, right):
...         return total, 0
...     def join(self, left, right):
...         return left + right
>>> Windows().run([Value(1, 5), Value(2, 6), Barrier(2), Value(3, 1), Barrier(4)])
[Total(time=2, total=11), Total(time=4, total=1)]
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Protocol

from streamtight.errors import InputError, PlanError
from streamtight.program.tags import TagSet, tag_fields, tag_set, tags
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import Event, Kind, type_name, without_annotation, without_none

State = Any
Emit = Callable[[Event], None]
Update = Callable[[State, Event, Emit], State]
UpdateBlock = Callable[[State, "Block", "EmitBlock"], State]
Fork = Callable[[State, TagSet, TagSet], tuple[State, State]]
Join = Callable[[State, State], State]

HEARTBEAT = "heartbeat"
"""What stands in the column `kind` of a row that is no event but says that none came up to its time."""


class StateType:
    """A type of states: which tags it may be updated with. The first one of a program takes all (`pred_i`).

    update, update_block   its own functions, where those of the program are not meant
    """

    def __init__(
        self, *handles: Kind | TagSet, update: Update | None = None, update_block: UpdateBlock | None = None
    ) -> None:
        self.handles = tag_set(handles, "StateType(...)")
        self.name = ""
        self.update, self.update_block = update, update_block

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name or f"StateType({self.handles})"


class Branch:
    """How a state of one type becomes two, and two become one: a fork and its join."""

    def __init__(
        self, of: StateType, left: StateType, right: StateType, *, fork: str = "fork", join: str = "join"
    ) -> None:
        self.of, self.left, self.right, self.fork, self.join = of, left, right, fork, join

    def __repr__(self) -> str:
        return f"{self.of} -> ({self.left}, {self.right})"


class EmitBlock(Protocol):
    """How `update_block` gives outputs: one event, or columns of many."""

    def __call__(self, event: Event) -> None: ...

    def block(self, kind: Kind, **columns: Any) -> None:
        """As many events as the columns have values."""


@dataclass(frozen=True, slots=True)
class Block:
    """Independent events of one kind, as columns: NumPy arrays, or lists of what NumPy has no type for."""

    kind: Kind
    columns: Mapping[str, Any]
    size: int

    def __getitem__(self, field: str) -> Any:
        return self.columns[field]

    def __len__(self) -> int:
        return self.size


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Says that no event comes on a stream any more whose time is this or earlier."""

    time: Any


class _Edge(float):
    """A time before or after every other: also infinite ones, also datetimes, with which floats are not compared."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Edge) and float(self) == float(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return float.__hash__(self)

    def __lt__(self, other: object) -> Any:
        return self._stands(other, float(self) < 0)

    def __gt__(self, other: object) -> Any:
        return self._stands(other, float(self) > 0)

    def __le__(self, other: object) -> bool:
        return self == other or bool(self < other)

    def __ge__(self, other: object) -> bool:
        return self == other or bool(self > other)

    def _stands(self, other: object, outside: bool) -> Any:
        if not isinstance(other, (int, float, datetime)):
            return NotImplemented
        is_nan = other != other  # which stands nowhere
        return outside and not is_nan and self != other


Key = tuple[Any, int, int]
"""Where an event stands: its time, its kind's place in `takes`, its stream's place."""
BEGINNING: Key = (_Edge(-math.inf), -1, -1)
END: Key = (_Edge(math.inf), 0, 0)


class ForkJoin:
    """A sequential program with what is needed to run it on several workers. Make a subclass of it.

    takes      the kinds of its events. At equal times, they come in this order
    gives      the kinds of its outputs
    depends    which tags keep their order; it looks at tags only
    tag        the fields that belong to tags; if not given, the key fields of `depends`
    time       the field that has the time: a whole number, a float or a datetime
    branches   which types of states can be forked; without state types, there is one

    Methods may change the states that they are given, and must return the state that holds from then on.
    """

    takes: ClassVar[Sequence[Kind]]
    gives: ClassVar[Sequence[Kind]] = ()
    depends: ClassVar[Dependence]
    tag: ClassVar[Sequence[str] | None] = None
    time: ClassVar[str] = "time"
    branches: ClassVar[Sequence[Branch]] = ()

    def init(self) -> State:
        """The state before the first event."""
        raise NotImplementedError

    def update(self, state: State, event: Event, emit: Emit) -> State:
        """The state after an event; what it outputs goes to `emit`."""
        raise NotImplementedError

    def update_block(self, state: State, block: Block, emit: EmitBlock) -> State:
        """The state after a block of independent events; NotImplemented if they shall come one by one."""
        return NotImplemented

    def fork(self, state: State, left: TagSet, right: TagSet) -> tuple[State, State]:
        """Two states for one; `left` and `right` say which tags will come on each side."""
        raise NotImplementedError

    def join(self, left: State, right: State) -> State:
        """One state for two that came from a fork."""
        raise NotImplementedError

    def same_state(self, one: State, other: State) -> bool:
        """Whether two states are the same; by default, whether they are equal but for the last digits of floats."""
        return same_value(one, other)

    # -- what follows from these -------------------------------------------------------------------------------------

    def __init__(self) -> None:
        self._require_well_formed()

    @property
    def name(self) -> str:
        """The name of its class."""
        return type(self).__name__

    @cached_property
    def state_types(self) -> tuple[StateType, ...]:
        """The types of its states; the first one is that of `init`."""
        declared: dict[str, StateType] = {}
        for cls in reversed(type(self).__mro__):
            declared.update({name: each for name, each in vars(cls).items() if isinstance(each, StateType)})
        kept = tuple(each for name, each in declared.items() if getattr(type(self), name) is each)
        if kept:
            return kept
        only = StateType(*self.takes)
        only.name = "state"
        return (only,)

    @cached_property
    def all_branches(self) -> tuple[Branch, ...]:
        """Its branches; with one type of states and a `fork`, that it can be forked."""
        if self.branches or type(self).fork is ForkJoin.fork or len(self.state_types) > 1:
            return tuple(self.branches)
        only = self.state_types[0]
        return (Branch(only, only, only),)

    @cached_property
    def all_tags(self) -> TagSet:
        """Every tag."""
        return tags(*self.takes)

    def tag_fields(self, kind: Kind) -> tuple[str, ...]:
        """The fields of a kind that belong to its tag."""
        if self.tag is None:
            return tag_fields(self.depends, kind)
        return tuple(name for name in kind.names if name in self.tag)

    def update_of(self, state: StateType) -> Update:
        """The update function of a type."""
        return state.update or self.update

    def update_block_of(self, state: StateType) -> UpdateBlock | None:
        """The update function for blocks of a type, if there is one."""
        own = state.update_block or (None if state.update is not None else self.update_block)
        return None if getattr(own, "__func__", None) is ForkJoin.update_block else own

    def fork_of(self, branch: Branch) -> Fork:
        """The fork of a branch."""
        found: Fork = getattr(self, branch.fork)
        return found

    def join_of(self, branch: Branch) -> Join:
        """The join of a branch."""
        found: Join = getattr(self, branch.join)
        return found

    def rank(self, kind: Kind) -> int:
        """The place of a kind among events of the same time."""
        return self._ranks[kind]

    @cached_property
    def _ranks(self) -> dict[Kind, int]:
        return {kind: place for place, kind in enumerate(self.takes)}

    @cached_property
    def has_datetimes(self) -> bool:
        """Whether its times are datetimes, not numbers."""
        return _time_type(self.takes[0], self.time) is datetime

    def key(self, event: Event, stream: int = 0) -> Key:
        """Where an event stands in the order of all: by time, by kind, by stream."""
        return (getattr(event, self.time), self._ranks[event.kind], stream)

    def sequence(self, streams: Mapping[str, Iterable[Event | Heartbeat]] | Iterable[Event]) -> Iterator[Event]:
        """The events of all streams in their order: by time, then by kind, then by stream (`sort_O`).

        Raises `InputError` if a stream is not increasing in time.
        """
        if not isinstance(streams, Mapping):
            streams = {"the stream": streams}
        lines = [self.keyed(name, place, items) for place, (name, items) in enumerate(streams.items())]
        merged = heapq.merge(*lines, key=lambda entry: entry[0])
        return (item for _, item in merged if isinstance(item, Event))

    def run(self, streams: Mapping[str, Iterable[Event | Heartbeat]] | Iterable[Event]) -> list[Event]:
        """The outputs of the sequential program: updates alone, no fork and no join (`spec`)."""
        out: list[Event] = []
        self.continued(self.init(), self.sequence(streams), out.append)
        return out

    def continued(self, state: State, events: Iterable[Event], emit: Emit) -> State:
        """The state after these events, which are in their order."""
        update = self.update_of(self.state_types[0])
        for event in events:
            state = update(state, event, emit)
        return state

    def keyed(
        self, name: str, place: int, items: Iterable[Event | Heartbeat]
    ) -> Iterator[tuple[Key, Event | Heartbeat]]:
        """What comes on a stream, each with what it promises: what follows has this key or a later one.

        Raises `InputError` if the stream is not increasing in time.
        """
        last: Key = BEGINNING
        for item in items:
            if isinstance(item, Heartbeat):
                key: Key = (item.time, len(self.takes), place)
            elif isinstance(item, Event) and item.kind in self._ranks:
                key = self.key(item, place)
            else:
                raise InputError(
                    f"stream {name!r}",
                    needed=f"events of {', '.join(kind.name for kind in self.takes)}",
                    came=repr(item)[:200],
                    hint=f"takes = (..., {getattr(getattr(item, 'kind', None), 'name', '...')})",
                )
            require_later(name, self, last, key)
            last = key
            yield key, item

    def _require_well_formed(self) -> None:
        where = f"class {self.name}"
        kinds = getattr(self, "takes", None)
        if not isinstance(kinds, Sequence) or not kinds or not all(isinstance(kind, Kind) for kind in kinds):
            raise PlanError(
                where, needed="takes, its kinds of events", came=repr(kinds), hint="takes = (Value, Barrier)"
            )
        if not isinstance(self.gives, Sequence) or not all(isinstance(kind, Kind) for kind in self.gives):
            raise PlanError(where, needed="gives, its kinds of outputs", came=repr(self.gives), hint="gives = (Total,)")
        if not isinstance(getattr(self, "depends", None), Dependence):
            came = repr(getattr(self, "depends", None))
            raise PlanError(where, needed="depends, a dependence", came=came, hint="depends = tight.barrier(Barrier)")
        for kind in kinds:
            self._require_time(where, kind)
            missing = set(tag_fields(self.depends, kind)) - set(self.tag_fields(kind))
            if missing:
                raise PlanError(
                    where,
                    needed=f"a tag with the fields that {self.depends!r} looks at",
                    came=f"tag = {tuple(self.tag or ())!r}, without {', '.join(sorted(missing))}",
                    hint=f"tag = {tuple(sorted({*(self.tag or ()), *missing}))!r}",
                )
        if len({_time_type(kind, self.time) is datetime for kind in kinds}) > 1:
            raise PlanError(
                where,
                needed="times that can be compared: datetimes in all kinds, or numbers",
                came=", ".join(f"{kind.name}({self.time}: {type_name(kind.fields[self.time])})" for kind in kinds),
                hint="the same type of time in all kinds",
            )
        if len(set(kinds)) < len(kinds):
            raise PlanError(where, needed="each kind once in takes", came=repr(kinds), hint="takes = (Value, Barrier)")
        first = self.state_types[0]
        if not first.handles.covers(self.all_tags):
            raise PlanError(
                f"{where}, state type {first}",
                needed="the first type of states to take every kind, since it is that of init()",
                came=f"one that takes {first.handles}",
                hint=f"{first} = StateType({', '.join(kind.name for kind in kinds)})",
            )
        for branch in self.all_branches:
            self._require_branch(where, branch)

    def _require_time(self, where: str, kind: Kind) -> None:
        if self.time not in kind.fields or _time_type(kind, self.time) not in (int, float, datetime):
            raise PlanError(
                where,
                needed=f"a field {self.time!r} in each kind: an int, a float or a datetime",
                came=repr(kind),
                hint=f"Kind({kind.name!r}, {self.time}=int, ...), or time = '...', the name of the field",
            )

    def _require_branch(self, where: str, branch: Branch) -> None:
        for type_ in (branch.of, branch.left, branch.right):
            if type_ not in self.state_types:
                raise PlanError(
                    f"{where}, branch {branch}",
                    needed=f"types of states of this program: {', '.join(map(repr, self.state_types))}",
                    came=repr(type_),
                    hint="an attribute of the class: part = StateType(Value)",
                )
        for name in (branch.fork, branch.join):
            found = getattr(type(self), name, None)
            if not callable(found) or found in (ForkJoin.fork, ForkJoin.join):
                raise PlanError(
                    f"{where}, branch {branch}", needed=f"a method {name}", came="none", hint=f"def {name}(self, ...)"
                )


def require_later(name: str, program: ForkJoin, last: Key, key: Key) -> None:
    """Raise unless what stands at this key may follow on its stream."""
    try:
        later = isinstance(key[0], datetime) == program.has_datetimes and key >= last  # not so where a time is NaN
    except TypeError:  # None, or one datetime with a zone and one without
        later = False
    if not later:
        rank = key[1]
        what = program.takes[rank].name if rank < len(program.takes) else "a heartbeat"
        raise InputError(
            f"stream {name!r}",
            needed="events that increase in time, at equal times in the order of takes",
            came=f"{what} at time {key[0]} after time {last[0]}",
            hint="sort the stream by its time; what comes too late cannot be put in its place any more",
        )


def _time_type(kind: Kind, field: str) -> Any:
    return without_annotation(without_none(kind.fields[field])[0])


def same_value(one: Any, other: Any) -> bool:
    """Whether two values are equal but for the last digits of floats, also in groups, dataclasses and arrays.

    >>> same_value((0.1 + 0.2, "a"), (0.3, "a"))
    True
    """
    if _is_array(one) and _is_array(other):
        return bool(one.shape == other.shape) and same_value(one.tolist(), other.tolist())
    is_group = type(one) is type(other) and (isinstance(one, (tuple, list, deque, Mapping)) or is_dataclass(one))
    try:
        equal = one == other
        if bool(equal.all() if hasattr(equal, "all") else equal):
            return True
    except Exception:  # the border of user code: of groups with arrays in them, Python does not know it
        if not is_group:
            raise
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        are_floats = isinstance(one, float) or isinstance(other, float)
        return are_floats and ((one != one and other != other) or _is_close(one, other))
    if not is_group:
        return False
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same_value(one[key], other[key]) for key in one)
    if is_dataclass(one):
        names = [each.name for each in fields(one) if each.compare]
        return all(same_value(getattr(one, name), getattr(other, name)) for name in names)
    return len(one) == len(other) and all(map(same_value, one, other))


def _is_close(one: float, other: float) -> bool:
    try:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    except OverflowError:  # a whole number that is larger than every float
        return False


def _is_array(value: Any) -> bool:
    """Whether it is an array of NumPy, or one of its numbers."""
    return all(hasattr(value, name) for name in ("dtype", "shape", "tolist")) and not hasattr(value, "index")
