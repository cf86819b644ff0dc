"""Does something give equivalent outputs for equivalent inputs? (Definition 2.24) Tried on pairs of inputs.

A pair is a list of events and another order of it that the input type does not tell apart. Where the outputs differ,
the pair is made small.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamtight.program.network import sort_key
from streamtight.source.generate import Source, generated
from streamtight.stream.event import Event, Kind
from streamtight.stream.order_picture import order_picture
from streamtight.stream.schema import Schema
from streamtight.stream.schema_picture import schemas_picture
from streamtight.stream.svg import stacked
from streamtight.stream.trace import Trace
from streamtight.verdict import Counterexample, Table

SIZE = 8
"""How many events a generated input has, at most."""
RERUNS = 3


@dataclass(frozen=True, slots=True)
class Output:
    """What came out: events, and a value if there is one; or what was raised."""

    events: tuple[Event, ...]
    raised: str | None = None
    value: Any = None
    broken: str | None = None
    """A law that was seen to be broken on the way."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two inputs that a type does not tell apart: events, and another order of them."""

    events: tuple[Event, ...]
    order: tuple[int, ...]
    grouping: int | None
    """If given, the second run groups what may be grouped by chance, from this seed."""

    @property
    def other(self) -> tuple[Event, ...]:
        """The events in the other order."""
        return tuple(self.events[place] for place in self.order)

    @property
    def is_one_order(self) -> bool:
        """Whether the other order is the same."""
        return self.order == tuple(range(len(self.events)))

    def smaller(self) -> Iterator[Pair]:
        """With an event less, with one order, with one grouping."""
        for left_out in range(len(self.events)):
            events = (*self.events[:left_out], *self.events[left_out + 1 :])
            order = tuple(place - (place > left_out) for place in self.order if place != left_out)
            yield Pair(events, order, self.grouping)
        if not self.is_one_order:
            yield Pair(self.events, tuple(range(len(self.events))), self.grouping)
        if self.grouping is not None:
            yield Pair(self.events, self.order, None)


class Tried(Protocol):
    """What can be tried: it has types, and gives outputs."""

    name: str
    takes: Schema
    gives: Schema
    markers: frozenset[Kind]
    """Of its input: these come in their order."""

    constants: list[int]
    """The numbers in its code, near which values are tried."""

    def outputs(self, events: Sequence[Event], grouping: int | None) -> Output:
        """What it makes of these events."""

    def law(self, pair: Pair) -> str | None:
        """Which law it breaks on these events, with the values that show it."""

    def replay(self, pair: Pair) -> str:
        """The lines of Python that show the difference again."""


@dataclass(slots=True)
class Trial:
    """How many pairs were tried, how many items came out, and what was found."""

    cases: int = 0
    items: int = 0
    raised: int = 0
    """In how many cases a function raised."""
    found: Counterexample | None = None


def tried(what: Tried, cases: int, seed: int) -> Trial:
    """Try so many pairs, until the outputs of one differ."""
    trial = Trial()
    chance = random.Random(seed)
    kinds = sorted(what.takes.kinds, key=lambda kind: kind.name)
    inputs = generated(kinds, upto=what.takes, size=(0, SIZE), **_near(what.constants, kinds))
    for trace in inputs.traces(cases, seed):
        trial.cases += 1
        events = _in_marker_order(trace.events, what.markers)
        pair = Pair(events, _another_order(events, what.takes, chance), chance.getrandbits(30))
        first = what.outputs(events, None)
        trial.items += sum(event.kind not in what.markers for event in first.events)
        trial.raised += first.raised is not None
        if _differ(what, pair, first) or _differ(what, pair):
            trial.found = _shown(what, _smallest(what, pair, inputs))
            break
    return trial


def _near(constants: Sequence[int], kinds: Sequence[Kind]) -> dict[str, Any]:
    """Values for the fields that are whole numbers: small ones, and some near what the code names."""
    values = list(dict.fromkeys([0, 1, 2, 3, -1, *(n + more for n in constants for more in (0, -1, 1))]))
    fields = {name for kind in kinds for name, declared in kind.fields.items() if declared is int}
    return dict.fromkeys(sorted(fields), values) if constants else {}


def _in_marker_order(events: Sequence[Event], kinds: frozenset[Kind]) -> tuple[Event, ...]:
    markers = iter(sorted((event for event in events if event.kind in kinds), key=sort_key(())))
    return tuple(next(markers) if event.kind in kinds else event for event in events)


def _another_order(events: tuple[Event, ...], takes: Schema, chance: random.Random) -> tuple[int, ...]:
    """An equivalent order of the events, as their places."""
    places: dict[Event, list[int]] = {}
    for place, event in enumerate(events):
        places.setdefault(event, []).append(place)
    return tuple(places[event].pop(0) for event in Trace(events, takes).reordered(chance).events)


def _differ(what: Tried, pair: Pair, first: Output | None = None) -> bool:
    one, other = first or what.outputs(pair.events, None), what.outputs(pair.other, pair.grouping)
    if one.broken or other.broken:
        return True
    if one.raised or other.raised:
        return bool(one.raised) != bool(other.raised)
    if _rounded(one.value) != _rounded(other.value):
        return True
    return Trace(map(_rounded_event, one.events), what.gives) != Trace(map(_rounded_event, other.events), what.gives)


def _rounded(value: Any) -> Any:
    """With floats to nine digits: another order of additions gives other last ones."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return tuple(map(_rounded, value)) if type(value) is tuple else value


def _rounded_event(event: Event) -> Event:
    return event.kind(*map(_rounded, event[1:]))


def _smallest(what: Tried, pair: Pair, inputs: Source) -> Pair:
    """The pair with what is not needed left out, and with simpler events."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in itertools.chain(pair.smaller(), _simpler(pair, inputs, what.markers)):
            is_pair = Trace(candidate.events, what.takes) == Trace(candidate.other, what.takes)
            if is_pair and _differ(what, candidate):
                pair, smaller = candidate, True
                break
    return pair


def _simpler(pair: Pair, inputs: Source, markers: frozenset[Kind]) -> Iterator[Pair]:
    for place, event in enumerate(pair.events):
        for simpler in inputs.simpler_events(event):
            events = (*pair.events[:place], simpler, *pair.events[place + 1 :])
            yield Pair(_in_marker_order(events, markers), pair.order, pair.grouping)


def _shown(what: Tried, pair: Pair) -> Counterexample:
    one, other = what.outputs(pair.events, None), what.outputs(pair.other, pair.grouping)
    if broken := one.broken or other.broken:
        finding, told = "TYPE_BROKEN", broken
    elif not pair.is_one_order:
        finding, told = "ORDER_MATTERS", "two orders of the same items"
    elif pair.grouping is not None:
        finding, told = "GROUPING_MATTERS", "two groupings of the same items"
    else:
        finding, told = "NOT_A_FUNCTION", "two runs on the same events: it remembers something, or chooses"
    law = what.law(pair)
    return Counterexample(
        finding=finding,
        explanation=told if broken else f"{what.name} gives different outputs for {told}{f': {law}' if law else ''}",
        table=Table(
            ("", "input", "output"),
            (("one", _lines(pair.events), _told(one)), ("other", _lines(pair.other), _told(other))),
        ),
        replay=what.replay(pair),
        picture=_picture(what, pair),
        reruns=RERUNS,
        failing_reruns=sum(_differ(what, pair) for _ in range(RERUNS)),
    )


def _picture(what: Tried, pair: Pair) -> str:
    """Two orders of the input that its type does not tell apart, and what goes in and comes out by type."""
    types = schemas_picture(takes=what.takes, gives=what.gives)
    if pair.is_one_order:
        return types
    orders = order_picture(pair.events, pair.other, what.takes, marks=({}, {}), names=("one order", "another order"))
    return stacked(orders, types)


def _lines(events: Sequence[Event]) -> str:
    return "\n".join(map(str, events)) or "(none)"


def _told(output: Output) -> str:
    value = "" if output.value is None else f"\nin the end: {output.value!r}"
    return output.raised or _lines(output.events) + value
