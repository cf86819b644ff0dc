from __future__ import annotations

import copy
import itertools
import json
import math
import pickle
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from strategies import kinds, lawful, universe
from twins import alike

from streamtight.stream.event import Event, Kind
from streamtight.stream.plain import from_plain, plain

SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    int: st.sampled_from([0, -1, 2**70]),
    float: st.sampled_from([0.0, 1.5, math.inf, math.nan, float("-nan")]),
    str: st.sampled_from(["", "a", "é", "\ud800"]),
    bool: st.booleans(),
    bytes: st.sampled_from([b"", b"\x00\xff"]),
    date: st.just(date(2024, 2, 29)),
    datetime: st.sampled_from([datetime(2024, 2, 29, 1), datetime.max]),
    timedelta: st.just(timedelta(days=-1)),
    Decimal: st.sampled_from([Decimal("0.10"), Decimal("1E+3")]),
    object: st.sampled_from([None, "a", (1, math.nan), math.nan, frozenset({1})]),
}
NAMES = ["n", "x", "count", "index", "count(1)", "a b", "class", "_hidden"]

typed_values = st.recursive(
    st.sampled_from(list(SCALARS.items())),
    lambda inner: st.one_of(
        inner.map(lambda pair: (pair[0] | None, st.none() | pair[1])),
        inner.map(lambda pair: (tuple[pair[0], ...], st.lists(pair[1], max_size=2).map(tuple))),
        inner.map(lambda pair: (dict[str, pair[0]], st.dictionaries(st.sampled_from("ab"), pair[1], max_size=2))),
    ),
    max_leaves=3,
)


@st.composite
def any_event(draw: st.DrawFn) -> Event:
    """An event of a kind with every sort of name and type."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    pairs = {name: draw(typed_values) for name in names}
    kind = Kind("Any", **{name: declared for name, (declared, _) in pairs.items()})
    return kind(**{name: draw(values) for name, (_, values) in pairs.items()})


@given(any_event())
@lawful
def test_an_event_comes_back_from_json(event: Event):
    """Equal, also with NaN anywhere inside."""
    assert from_plain(json.loads(json.dumps(plain(event))), [event.kind]) == event


@given(any_event())
@lawful
def test_an_event_survives_pickling_and_copying(event: Event):
    """Equal, of the same kind and with the same hash, also with NaN anywhere inside."""
    for other in (pickle.loads(pickle.dumps(event)), copy.deepcopy(event), copy.copy(event), event.replace()):
        assert other == event
        assert hash(other) == hash(event)
        assert other.kind is event.kind
        assert type(other) is type(event)


@given(any_event())
@lawful
def test_an_event_is_made_alike_by_name_and_by_place(event: Event):
    """Two ways to give the fields, one event; and each field reads back as an attribute."""
    assert event.kind(**event.as_dict()) == event == event.kind(*event.as_dict().values())
    assert all(getattr(event, name) is value for name, value in event.as_dict().items())


@given(kinds())
@lawful
def test_events_are_equal_exactly_if_their_kinds_and_values_are(of: tuple[Kind, ...]):
    """Definition 2.4: a tuple is its header and its values; NaN counts as one value."""
    for one, other in itertools.product(universe(of), universe(of)):
        equal = one.kind is other.kind and all(map(alike, one.as_dict().values(), other.as_dict().values()))

        assert (one == other) == equal
        assert (hash(one) == hash(other)) >= equal
