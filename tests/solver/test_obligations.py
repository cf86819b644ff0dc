"""Are the functions of typed operators proved to obey their types, and refuted where they do not?"""

from __future__ import annotations

import random
from typing import Any

import pytest

from streamtight.errors import UnsupportedError
from streamtight.program.operators import KeyedOrdered, KeyedUnordered, O, Sort, Split, Stateless, U
from streamtight.solver.ask import Answer, Budget
from streamtight.solver.obligations import is_consistent
from streamtight.stream.event import Kind

Value = Kind("Value", key=int, name=str, number=float, at=int)
Total = Kind("Total", key=int, number=float)
SEEN: list[int] = []


def answer(operator: Any) -> Answer:
    return is_consistent(operator, Budget(10))[0]


def ordered(**options: Any) -> KeyedOrdered:
    given = {"takes": O("key", Value), "gives": O("key", Value), "initial_state": 0, "on_item": lambda s, v, emit: s}
    return KeyedOrdered("ordered", **{**given, **options})


def unordered(**options: Any) -> KeyedUnordered:
    given: dict[str, Any] = {
        "takes": U(Value),
        "gives": U(Total),
        "key": "key",
        "summary": lambda v: v.at,
        "identity": 0,
        "combine": lambda a, b: a + b,
        "initial_state": 0,
        "update_state": lambda state, at: state + at,
        "on_marker": lambda state, key, marker, emit: emit(Total(key, float(state))),
    }
    return KeyedUnordered("unordered", **{**given, **options})


def last(state: Any, value: Any, emit: Any) -> Any:
    if state is not None and value.at > state[0]:
        emit(Value(value.key, value.name, (state[1] + value.number) / 2, value.at))
    emit(value)
    return (value.at, value.number)


PROVED = {
    "a filter": Stateless(
        "f", takes=U(Value), gives=U(Value), on_item=lambda v, emit: emit(v) if v.key in (1, 2) else None
    ),
    "a map that keeps the key": Stateless(
        "f", takes=O("key", Value), gives=O("key", Total), on_item=lambda v, emit: emit(Total(v.key, v.number + 1))
    ),
    "a state that is None at first": ordered(initial_state=None, on_item=last),
    "a sum": unordered(),
    "a maximum": unordered(combine=lambda a, b: max(a, b), summary=lambda v: abs(v.at)),
    "a maximum that is never below 0": unordered(combine=lambda a, b: max(a, b)),
    "a count and a sum": unordered(
        summary=lambda v: (1, v.number),
        identity=(0, 0.0),
        combine=lambda a, b: (a[0] + b[0], a[1] + b[1]),
        initial_state=(0, 0.0),
        update_state=lambda s, a: (s[0] + a[0], s[1] + a[1]),
        on_marker=lambda s, key, marker, emit: emit(Total(key, s[1])) if s[0] else None,
    ),
    "a sort": Sort("s", U(Value), key="key", by="at"),
    "a split": Split("s", U(Value), ways=2, by=lambda v: v.at % 2),
    "another key for an unordered stream": ordered(
        gives=U(Value), on_item=lambda s, v, emit: emit(Value(v.key + 1, v.name, v.number, v.at)) or s
    ),
}
REFUTED = {
    "another key": ordered(on_item=lambda s, v, emit: emit(Value(v.key + 1, v.name, v.number, v.at)) or s),
    "another key at a marker": ordered(
        on_marker=lambda s, key, marker, emit: emit(Value(marker.time, "", 0.0, 0)) or s
    ),
    "another key, rarely": Stateless(
        "f",
        takes=O("key", Value),
        gives=O("key", Total),
        on_item=lambda v, emit: emit(Total(v.key if v.at * v.at != 1000000 else 0, v.number)),
    ),
    "the last value": unordered(combine=lambda a, b: b),
    "a difference": unordered(combine=lambda a, b: a - b),
    "a mean of means": unordered(
        summary=lambda v: v.number, identity=0.0, combine=lambda a, b: (a + b) / 2, initial_state=0.0
    ),
    "an identity that is none": unordered(identity=1),
}
NOT_READ = {
    "chance": Stateless(
        "f", takes=U(Value), gives=U(Value), on_item=lambda v, emit: emit(v) if random.random() < 0.5 else None
    ),
    "what it remembers": Stateless("f", takes=U(Value), gives=U(Value), on_item=lambda v, emit: SEEN.append(v.key)),
    "a dict as a state": ordered(initial_state={}, on_item=lambda s, v, emit: {**s, v.at: v.number}),
    "an event as a state": ordered(initial_state=None, on_item=lambda s, v, emit: v),
}


@pytest.mark.parametrize("name", list(PROVED))
def test_what_obeys_is_proved(name: str) -> None:
    assert answer(PROVED[name]).proved


@pytest.mark.parametrize("name", list(REFUTED))
def test_what_does_not_obey_is_not_proved(name: str) -> None:
    assert not answer(REFUTED[name]).proved


@pytest.mark.parametrize("name", list(NOT_READ))
def test_what_cannot_be_read_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError):
        answer(NOT_READ[name])
