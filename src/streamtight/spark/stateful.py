"""Spark's stateful processors without Spark: a state that can be looked at, and one row after the other.

A processor is run as `transformWithState` would run it for its keys: `init`, `handleInputRows` for each row,
`handleExpiredTimer` when time has passed. All that it remembers must be in its state variables: what it keeps in
attributes is lost when Spark restarts it, so a processor that does that is refused.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import ExpiredTimerInfo, StatefulProcessor, TimerValues

from streamtight.errors import PipelineError, UnsupportedError
from streamtight.program.machine import Machine, look
from streamtight.stream.event import Event


@dataclass
class _Store:
    """What Spark's state store holds for one key."""

    values: dict[str, Any] = field(default_factory=dict)
    timers: list[int] = field(default_factory=list)


class _Handle:
    """What a processor is given in `init`."""

    def __init__(self, store: _Store) -> None:
        self._store = store

    def getValueState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> _Value:  # noqa: N802, N803
        return _Value(self._store, stateName, ttlDurationMs)

    def getListState(self, stateName: str, schema: Any, ttlDurationMs: int | None = None) -> _List:  # noqa: N802, N803
        return _List(self._store, stateName, ttlDurationMs)

    def getMapState(  # noqa: N802
        self,
        stateName: str,  # noqa: N803
        userKeySchema: Any,  # noqa: N803
        valueSchema: Any,  # noqa: N803
        ttlDurationMs: int | None = None,  # noqa: N803
    ) -> _Map:
        return _Map(self._store, stateName, ttlDurationMs)

    def registerTimer(self, expiryTimestampMs: int) -> None:  # noqa: N802, N803
        if expiryTimestampMs not in self._store.timers:
            self._store.timers.append(expiryTimestampMs)
            self._store.timers.sort()

    def deleteTimer(self, expiryTimestampMs: int) -> None:  # noqa: N802, N803
        if expiryTimestampMs in self._store.timers:
            self._store.timers.remove(expiryTimestampMs)

    def listTimers(self) -> Iterator[int]:  # noqa: N802
        return iter(list(self._store.timers))

    def deleteIfExists(self, stateName: str) -> None:  # noqa: N802, N803
        self._store.values.pop(stateName, None)


class _Variable:
    def __init__(self, store: _Store, name: str, ttl: int | None) -> None:
        if ttl:
            raise UnsupportedError(
                f"the state {name!r}",
                needed="a state that does not vanish by itself",
                came=f"ttlDurationMs={ttl}",
                hint="a timer that clears it, which can be explored",
            )
        self._store, self._name = store, name

    def exists(self) -> bool:
        return self._name in self._store.values

    def clear(self) -> None:
        self._store.values.pop(self._name, None)


class _Value(_Variable):
    def get(self) -> Any:
        return copy.deepcopy(self._store.values.get(self._name))

    def update(self, newValue: Any) -> None:  # noqa: N803
        self._store.values[self._name] = tuple(newValue)


class _List(_Variable):
    def get(self) -> Iterator[Any]:
        return iter(list(self._store.values.get(self._name, [])))

    def put(self, newState: Sequence[Any]) -> None:  # noqa: N803
        self._store.values[self._name] = [tuple(each) for each in newState]

    def appendValue(self, newState: Any) -> None:  # noqa: N802, N803
        self._store.values.setdefault(self._name, []).append(tuple(newState))

    def appendList(self, newState: Sequence[Any]) -> None:  # noqa: N802, N803
        self._store.values.setdefault(self._name, []).extend(tuple(each) for each in newState)


class _Map(_Variable):
    def _items(self) -> dict[Any, Any]:
        # The state store is sorted by keys, so the order of insertion is nothing that a processor could see.
        return dict(sorted(self._store.values.get(self._name, {}).items(), key=repr))

    def getValue(self, key: Any) -> Any:  # noqa: N802
        return self._items().get(tuple(key))

    def containsKey(self, key: Any) -> bool:  # noqa: N802
        return tuple(key) in self._items()

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        self._store.values[self._name] = {**self._items(), tuple(key): tuple(value)}
        self._store.values[self._name] = self._items()

    def iterator(self) -> Iterator[tuple[Any, Any]]:
        return iter(self._items().items())

    def keys(self) -> Iterator[Any]:
        return iter(self._items())

    def values(self) -> Iterator[Any]:
        return iter(self._items().values())

    def removeKey(self, key: Any) -> None:  # noqa: N802
        items = self._items()
        items.pop(tuple(key), None)
        if items:
            self._store.values[self._name] = items
        else:
            self.clear()


@dataclass(frozen=True)
class Pass:
    """Time passes: up to the next timer of a key, which then fires."""

    def __repr__(self) -> str:
        return "time passes until a timer fires"


def stateful_machine(
    processor: StatefulProcessor | type[StatefulProcessor], rows: Sequence[Any], key: str | Sequence[str]
) -> Machine:
    """A stateful processor as a machine. Each row comes alone, or time passes until a timer fires.

    The clock stands still while rows come, and goes back to 0 when nothing is held for any key: what is held may
    depend on the time, what is not cannot.
    """
    names = [key] if isinstance(key, str) else list(key)
    given = [_row(row, names) for row in rows]
    made = processor if not isinstance(processor, type) else processor()

    def fresh(store: _Store) -> tuple[StatefulProcessor, Any]:
        mine = copy.deepcopy(made)
        mine.init(_Handle(store))  # type: ignore[arg-type]
        return mine, _kept(mine)

    def start() -> Any:
        return 0, {}

    def step(state: Any, event: Any) -> tuple[Any, list[Any]]:
        clock, stores = state
        if isinstance(event, Pass):
            due = [(store.timers[0], place) for place, store in stores.items() if store.timers]
            if not due:
                return state, []
            clock, place = min(due, key=lambda each: (each[0], repr(each[1])))
            store = stores[place]
            mine, before = fresh(store)
            # As Spark does it: with the names of the parameters, and the timer is taken away afterwards.
            outputs = list(
                mine.handleExpiredTimer(
                    key=place, timerValues=TimerValues(clock, clock), expiredTimerInfo=ExpiredTimerInfo(clock)
                )
            )
            store.timers.remove(clock)
        else:
            place = tuple(event[name] for name in names)
            store = stores.setdefault(place, _Store())
            mine, before = fresh(store)
            outputs = list(mine.handleInputRows(place, iter([event]), TimerValues(clock, clock)))
        _require_stateless(mine, before)
        left = {each: store for each, store in stores.items() if store.values or store.timers}
        return (clock if left else 0, dict(sorted(left.items(), key=repr))), outputs

    def shown(event: Any) -> str:
        return (
            repr(event) if isinstance(event, Pass) else f"({', '.join(f'{n}={event[n]!r}' for n in event.__fields__)})"
        )

    uses_timers = type(made).handleExpiredTimer is not StatefulProcessor.handleExpiredTimer
    passing = (Pass(),) if uses_timers else ()
    events = [row if isinstance(row, Event) else None for row in rows]
    return Machine(
        type(made).__name__, (*given, *passing), start, step, shown, _told, (*events, *(None for _ in passing))
    )


def _told(state: Any) -> str:
    """What is held, key by key: `ann: recent [1, 2], timer at 10000`."""
    _, stores = state
    parts = []
    for place, store in stores.items():
        held = [f"{name} {_plain(value)}" for name, value in store.values.items()]
        held += [f"timer at {time}" for time in store.timers]
        parts.append(f"{', '.join(map(str, place))}: {', '.join(held)}")
    return "; ".join(parts) or "nothing"


def _plain(value: Any) -> str:
    """A value of the state as one would write it: rows of one column without their tuple."""
    if isinstance(value, list):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_plain(key)}: {_plain(each)}' for key, each in value.items())}}}"
    return _plain(value[0]) if isinstance(value, tuple) and len(value) == 1 else repr(value)


def _row(given: Any, names: Sequence[str]) -> Row:
    if isinstance(given, Event):
        given = given.as_dict()
    row = given if isinstance(given, Row) else Row(**given) if isinstance(given, Mapping) else None
    if row is None or any(name not in row.__fields__ for name in names):
        raise PipelineError(
            "explore(..., on=rows, key=...)",
            needed=f"rows with the key {', '.join(names)}: Row, dict or event",
            came=repr(given),
            hint="on=[Row(user='a', n=1)], key='user'",
        )
    return row


def _kept(processor: StatefulProcessor) -> Any:
    return look({name: value for name, value in vars(processor).items() if not isinstance(value, (_Handle, _Variable))})


def _require_stateless(processor: StatefulProcessor, before: Any) -> None:
    if _kept(processor) != before:
        changed = [name for name, value in vars(processor).items() if not isinstance(value, (_Handle, _Variable))]
        raise PipelineError(
            type(processor).__name__,
            needed="all that it remembers in its state variables",
            came=f"attributes that change with the rows: {', '.join(changed)}",
            hint="handle.getValueState(...): what is in attributes is lost when Spark restarts the processor",
        )
