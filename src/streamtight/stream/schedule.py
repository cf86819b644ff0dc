"""Schedules: one order of a stream, cut into micro-batches and spread over partitions.

Micro-batches come one after another. Inside one, each partition is a sequence and the partitions are in no order with
each other. That is the shape of what a job reads and of what it writes: both are `Batches`, and the same question can
be asked of both: is there a *race*, two events that must keep their order and yet may arrive either way?

>>> from streamtight.stream.dependence import same
>>> from streamtight.stream.event import Kind
>>> GPS = Kind("GPS", taxi_id=int, x=float)
>>> schedule = Schedule.of([GPS(1, 0.0), GPS(4, 5.0), GPS(1, 1.0)], cuts=[2], partitions=2, by="taxi_id")
>>> print(schedule)
batch 0
  partition 0: GPS(taxi_id=1, x=0.0)
  partition 1: GPS(taxi_id=4, x=5.0)
batch 1
  partition 0: GPS(taxi_id=1, x=1.0)
  partition 1: (empty)
>>> find_race(schedule.batches, same("taxi_id")) is None
True
"""

from __future__ import annotations

import itertools
import random
import zlib
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from streamtight.errors import TraceError
from streamtight.stream.dependence import Dependence, Frontier, key_getter
from streamtight.stream.event import Event, Map
from streamtight.stream.trace import Trace

Partition = tuple[Event, ...]
Batch = tuple[Partition, ...]
Batches = tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Restart:
    """Stop the job after this micro-batch and start it again from its checkpoint.

    With `replay`, the stop comes before the micro-batch was committed, so that it runs a second time after the restart.
    """

    after: int
    replay: bool = False


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a job is given and when: batches of partitions of events, and what Spark is to do meanwhile."""

    batches: Batches
    shuffle_partitions: int = 1
    restarts: tuple[Restart, ...] = ()

    def __post_init__(self) -> None:
        listed = self.batches if isinstance(self.batches, tuple) else (self.batches,)
        for batch in listed:
            if not isinstance(batch, tuple) or not batch or not all(isinstance(part, tuple) for part in batch):
                raise TraceError(
                    "Schedule(batches)",
                    needed="a tuple of batches, each a tuple of partitions, at least one, each a tuple of events",
                    came=repr(batch),
                    hint="Schedule.of(events, cuts=[...], partitions=2)",
                )
            for event in (event for partition in batch for event in partition):
                _require_event(event)
        if not isinstance(self.shuffle_partitions, int) or self.shuffle_partitions < 1:
            raise TraceError(
                "Schedule(shuffle_partitions=...)",
                needed="a whole number from 1",
                came=repr(self.shuffle_partitions),
                hint="shuffle_partitions=2",
            )
        self._require_restarts()

    def _require_restarts(self) -> None:
        known = isinstance(self.restarts, tuple) and all(isinstance(one, Restart) for one in self.restarts)
        places = [restart.after for restart in self.restarts] if known else []
        in_range = all(isinstance(place, int) and 0 <= place < len(self.batches) for place in places)
        if not known or not in_range or places != sorted(set(places)):
            raise TraceError(
                "Schedule(restarts=...)",
                needed=f"a tuple of restarts, after rising batch numbers from 0 to {len(self.batches) - 1}",
                came=repr(places if known else self.restarts),
                hint="restarts=(Restart(after=0),)",
            )

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        *,
        cuts: Sequence[int] = (),
        partitions: int = 1,
        by: str | Callable[[Event], Hashable] | None = None,
        shuffle_partitions: int = 1,
        restarts: Iterable[Restart] = (),
    ) -> Schedule:
        """These events in this order: a new batch at each of `cuts`, spread over `partitions`.

        `by`, a field name or a function, sends events of the same key to the same partition, as a keyed Kafka topic
        does. Without it they are dealt out in turn.

        >>> from streamtight.stream.event import Kind
        >>> N = Kind("N", n=int)
        >>> Schedule.of([N(0), N(1), N(2)], cuts=[2]).batches
        (((N(n=0), N(n=1)),), ((N(n=2),),))
        """
        listed = tuple(events)
        for event in listed:
            _require_event(event)
        listed_cuts = list(cuts) if isinstance(cuts, Sequence) else [cuts]
        is_place = [isinstance(cut, int) and 0 <= cut <= len(listed) for cut in listed_cuts]
        if not isinstance(cuts, Sequence) or not all(is_place) or listed_cuts != sorted(listed_cuts):
            raise TraceError(
                "Schedule.of(cuts=...)",
                needed=f"rising positions from 0 to {len(listed)}",
                came=repr(cuts),
                hint="cuts=[1] for the first event in a batch of its own",
            )
        if not isinstance(partitions, int) or partitions < 1:
            raise TraceError(
                "Schedule.of(partitions=...)",
                needed="a whole number from 1",
                came=repr(partitions),
                hint="partitions=2",
            )
        edges = [0, *cuts, len(listed)]
        pieces = [listed[start:end] for start, end in itertools.pairwise(edges)]
        batches = tuple(_spread(piece, partitions, by) for piece in pieces)
        return cls(batches, shuffle_partitions, tuple(restarts))

    @classmethod
    def random(
        cls,
        trace: Trace,
        rng: random.Random,
        *,
        batches: int = 4,
        partitions: int = 3,
        shuffle_partitions: int = 3,
    ) -> Schedule:
        """An equal trace in a random order, in up to so many batches, partitions and shuffle partitions.

        Events that depend on each other and fall into the same batch share a partition, so the schedule promises
        the whole order of the trace: what the job makes of it is not the source's fault.
        """
        if not isinstance(trace, Trace):
            raise TraceError(
                "Schedule.random(trace, rng)", needed="a trace", came=repr(trace), hint="Trace(events, same('taxi_id'))"
            )
        for name, most in (
            ("batches", batches),
            ("partitions", partitions),
            ("shuffle_partitions", shuffle_partitions),
        ):
            if not isinstance(most, int) or most < 1:
                raise TraceError(
                    f"Schedule.random({name}=...)", needed="a whole number from 1", came=repr(most), hint=f"{name}=2"
                )
        events = trace.reordered(rng).events
        cuts = sorted(rng.randint(0, len(events)) for _ in range(rng.randint(1, batches) - 1))
        edges = [0, *cuts, len(events)]
        width = rng.randint(1, partitions)
        pieces = (events[start:end] for start, end in itertools.pairwise(edges))
        spread = tuple(_spread_randomly(piece, width, trace.upto, rng) for piece in pieces)
        return cls(spread, rng.randint(1, shuffle_partitions))

    @property
    def events(self) -> tuple[Event, ...]:
        """One order in which they may arrive."""
        return tuple(delivered(self.batches))

    def simpler(self) -> Iterator[Schedule]:
        """Schedules with a little less in them, the boldest steps first: what a counterexample is shrunk through."""
        yield from self._without_events()
        for place in range(len(self.restarts)):
            yield replace(self, restarts=self.restarts[:place] + self.restarts[place + 1 :])
        for place in range(len(self.batches) - 1):
            yield self._with_merged(place)
        for place, batch in enumerate(self.batches):
            if not any(batch) and len(self.batches) > 1:
                yield self._without_batch(place)
        width = max((len(batch) for batch in self.batches), default=1)
        if width > 1:
            yield replace(self, batches=tuple(_narrowed(batch, width - 1) for batch in self.batches))
        if self.shuffle_partitions > 1:
            yield replace(self, shuffle_partitions=self.shuffle_partitions - 1)

    def _without_events(self) -> Iterator[Schedule]:
        """Leave out half of the events, then quarters, down to single ones."""
        count = len(self.events)
        size = count
        while size > 1:
            size = (size + 1) // 2
            for start in range(0, count, size):
                yield self._without(range(start, start + size))
        if count == 1:
            yield self._without(range(1))

    def _without(self, places: range) -> Schedule:
        """The schedule without the events at these places, counted as they are delivered."""
        number = itertools.count()
        kept = tuple(
            tuple(tuple(event for event in partition if next(number) not in places) for partition in batch)
            for batch in self.batches
        )
        return replace(self, batches=kept)

    def _with_merged(self, place: int) -> Schedule:
        """Batch `place` and the one after it as one."""
        first, second = self.batches[place], self.batches[place + 1]
        width = max(len(first), len(second))
        padded = [batch + ((),) * (width - len(batch)) for batch in (first, second)]
        merged = tuple(a + b for a, b in zip(*padded, strict=True))
        batches = (*self.batches[:place], merged, *self.batches[place + 2 :])
        return replace(self, batches=batches, restarts=self._restarts_without(place))

    def _without_batch(self, place: int) -> Schedule:
        batches = self.batches[:place] + self.batches[place + 1 :]
        return replace(self, batches=batches, restarts=self._restarts_without(place))

    def _restarts_without(self, place: int) -> tuple[Restart, ...]:
        kept = [restart for restart in self.restarts if restart.after != place]
        return tuple(replace(r, after=r.after - 1) if r.after > place else r for r in kept)

    def code(self) -> str:
        """The expression that makes this schedule, given `import streamtight as tight` and the kinds by their names."""
        restarts = ", ".join(f"tight.{restart!r}" for restart in self.restarts)
        options = f", shuffle_partitions={self.shuffle_partitions}" if self.shuffle_partitions != 1 else ""
        options += f", restarts=({restarts},)" if restarts else ""
        return f"tight.Schedule({self.batches!r}{options})"

    def __str__(self) -> str:
        lines = []
        for number, batch in enumerate(self.batches):
            lines.append(f"batch {number}")
            for place, partition in enumerate(batch):
                shown = ", ".join(map(str, partition)) or "(empty)"
                lines.append(f"  partition {place}: {shown}")
            for restart in self.restarts:
                if restart.after == number:
                    lines.append("  restart, this batch replayed" if restart.replay else "  restart")
        return "\n".join(lines)


def _require_event(event: object) -> None:
    if not isinstance(event, Event):
        raise TraceError("Schedule", needed="events", came=repr(event), hint="make events with a Kind")


def _spread(events: Sequence[Event], width: int, by: str | Callable[[Event], Hashable] | None) -> Batch:
    parts: list[list[Event]] = [[] for _ in range(width)]
    for place, event in enumerate(events):
        if by is None:
            parts[place % width].append(event)
        else:
            key = getattr(event, by) if isinstance(by, str) else by(event)
            # Not hash(): that of strings changes from process to process, and a schedule must replay.
            parts[zlib.crc32(_stable_text(key).encode()) % width].append(event)
    return tuple(map(tuple, parts))


def _stable_text(key: Hashable) -> str:
    """A text that is the same for equal keys: 0.0 and -0.0, Decimal("1.0") and Decimal("1.00"), maps in any order."""
    if isinstance(key, (int, float, Decimal)):
        return "nan" if key != key else f"number {hash(key)}"  # the hash of a number is the same in every process
    if isinstance(key, Event):
        return f"{key.kind.name}{_stable_text(key[1:])}"
    if isinstance(key, tuple):
        return f"({', '.join(map(_stable_text, key))})"
    if isinstance(key, frozenset):
        return f"{{{', '.join(sorted(map(_stable_text, key)))}}}"
    if isinstance(key, Map):
        return _stable_text(frozenset(key.items()))
    return repr(key)


def _spread_randomly(events: Sequence[Event], width: int, upto: Dependence, rng: random.Random) -> Batch:
    """Any partition for each event, but the same for events that depend on each other, directly or through others."""
    leader = list(range(len(events)))  # of each event's group, by place: a forest whose roots are the groups

    def root(place: int) -> int:
        while leader[place] != place:
            leader[place] = place = leader[leader[place]]
        return place

    for one, other in _ties(events, upto):
        leader[root(one)] = root(other)
    home = {place: rng.randrange(width) for place in range(len(events)) if root(place) == place}
    return tuple(
        tuple(event for place, event in enumerate(events) if home[root(place)] == partition)
        for partition in range(width)
    )


def _ties(events: Sequence[Event], upto: Dependence) -> Iterator[tuple[int, int]]:
    """Pairs of places of dependent events, enough to connect all that depend on each other."""
    for clause in upto.clauses:
        if clause.pairwise:
            pairs = itertools.combinations(range(len(events)), 2)
            yield from ((one, other) for one, other in pairs if clause.relates(events[one], events[other]))
            continue
        sides: dict[Hashable, tuple[list[int], list[int]]] = {}
        for place, event in enumerate(events):
            for side, select in enumerate((clause.left, clause.right)):
                if select(event):
                    key = key_getter(event.kind, clause)(event)
                    sides.setdefault(key, ([], []))[side].append(place)
        for left, right in sides.values():
            # Each side hangs on the first event of the other; if that one is empty, nothing depends on anything.
            yield from ((left[0], place) for place in right if left)
            yield from ((right[0], place) for place in left if right)


def _narrowed(batch: Batch, width: int) -> Batch:
    """The batch in at most so many partitions: the last ones are put behind the one before."""
    if len(batch) <= width:
        return batch
    return (*batch[: width - 1], tuple(event for partition in batch[width - 1 :] for event in partition))


# -- what a consumer may see -----------------------------------------------------------------------------------------


def delivered(batches: Batches) -> Iterator[Event]:
    """One order in which a consumer may see these events: batch by batch, partition by partition."""
    return (event for batch in batches for partition in batch for event in partition)


@dataclass(frozen=True, slots=True, repr=False)
class Race:
    """Two events of one batch in different partitions that must keep their order, where they are, and who says so."""

    first: Event
    second: Event
    clause: str
    batch: int
    partitions: tuple[int, int]

    def __repr__(self) -> str:
        return (
            f"batch {self.batch} delivers {self.first} in partition {self.partitions[0]} and {self.second} in "
            f"partition {self.partitions[1]}, so they may arrive either way; but {self.clause} orders them"
        )


def find_race(batches: Batches | Schedule, upto: Dependence) -> Race | None:
    """Two different events that depend on each other and yet may arrive either way, or None.

    If there is none, all orders in which a consumer may see the batches are equal up to the dependence: they come from
    one another by swapping neighbours of different partitions, which are then independent or identical.
    """
    for number, batch in enumerate(batches.batches if isinstance(batches, Schedule) else batches):
        earlier = Frontier(upto)
        for place, partition in enumerate(batch):
            for event in dict.fromkeys(partition):
                if earlier.highest_below(event) > 0:
                    race = _race_of(event, number, place, batch, upto)
                    if race is not None:
                        return race
            for event in partition:
                earlier.add(event, 1.0)
    return None


def _race_of(event: Event, number: int, place: int, batch: Batch, upto: Dependence) -> Race | None:
    for other_place, partition in enumerate(batch[:place]):
        for other in dict.fromkeys(partition):
            clause = upto.explain(other, event)
            if clause is not None and other != event:
                return Race(other, event, clause, number, (other_place, place))
    return None
