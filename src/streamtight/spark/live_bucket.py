"""What the tasks of a live comparison do: pack the rows of a partition by bucket, and match the rows of a bucket.

A bucket's matcher lives in Spark's state, between micro-batches as the unmatched rows only. A bucket that is refuted
stays so; it goes on counting, and remembers nothing else. What is in the state is JSON, since it is read from disk.
Pickles are only what tasks of one query send each other or the driver, inside Spark, as PySpark itself does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
import operator
import pickle
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from streamtight.errors import StreamtightError
from streamtight.method.compare.matcher import SIDES, Difference, Matcher, Place, State
from streamtight.method.compare.outputs import alike
from streamtight.spark.checkpoint_text import VERSION, read_kept, refused
from streamtight.spark.rows import Table, arrow_values, is_as_given
from streamtight.stream.dependence import Dependence
from streamtight.stream.equality import Equality
from streamtight.stream.event import Event, Kind
from streamtight.stream.packed import pack, unpack
from streamtight.stream.schedule import Batch, find_race
from streamtight.verdict import Counterexample

Equal = Equality | Callable[[Event, Event], bool] | None

PACKED = "bucket long, side long, partition long, chunk long, rows binary"
"""What `Pack` gives, as Spark writes types."""
REPORTED = "bucket long, report binary"
"""What `Bucket` gives."""
SHOWN = 3
"""How many of the oldest unmatched rows a bucket reports, for each side."""


# -- packing ---------------------------------------------------------------------------------------------------------


class Pack:
    """Packs the rows of a partition by bucket; called by Spark with Arrow batches, whose last column is the bucket.

    Spark hands rows to a stateful Python operator cell by cell, which costs more than the matching. So the rows of a
    bucket travel as one cell, made here column by column.
    """

    def __init__(self, side: int, types: Sequence[DataType]) -> None:
        self._side = side
        self._types = tuple(types)

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        partition = _partition_number()
        for chunk, batch in enumerate(batches):
            *columns, buckets = batch.columns
            values = [arrow_values(*pair) for pair in zip(columns, self._types, strict=True)]
            groups: dict[int, list[tuple[Any, ...]]] = {}
            for bucket, row in zip(buckets.to_pylist(), zip(*values, strict=True), strict=True):
                groups.setdefault(bucket, []).append(row)
            if groups:
                size = len(groups)
                yield batch.from_pydict(
                    {
                        "bucket": list(groups),
                        "side": [self._side] * size,
                        "partition": [partition] * size,
                        "chunk": [chunk] * size,
                        "rows": [pickle.dumps(rows, protocol=5) for rows in groups.values()],
                    }
                )


def _is_nested(data_type: DataType) -> bool:
    return isinstance(data_type, StructType | ArrayType | MapType)


# -- matching --------------------------------------------------------------------------------------------------------


class Waiting(NamedTuple):
    """An unmatched row, and when it came: the beginning of its batch, in milliseconds."""

    place: Place
    at: int


class Kept(NamedTuple):
    """What a bucket remembers between batches."""

    refuted: bool = False
    seen: tuple[int, int] = (0, 0)
    unmatched: tuple[Sequence[tuple[int, int, Event]], Sequence[tuple[int, int, Event]]] = ((), ())
    """Of either side: position, time of arrival, event."""


# All in one value, though most of it stays as it was: with 10,000 rows that takes 0.03 s, 5 s as Spark's list state,
# and 1 s as map state for a thousand changes alone.


def storable(kept: Kept, kinds: Sequence[Kind]) -> bytes:
    """What a bucket remembers, as Spark's state holds it."""
    sides = [
        {
            "positions": [position for position, _, _ in some],
            "times": [at for _, at, _ in some],
            **pack((event for _, _, event in some), kinds),
        }
        for some in kept.unmatched
    ]
    return json.dumps(
        {"streamtight": VERSION, "refuted": kept.refuted, "seen": kept.seen, "unmatched": sides}, separators=(",", ":")
    ).encode()


def restored(blob: bytes, kinds: Sequence[Kind]) -> Kept:
    """The other way round."""
    where = "compare_live(...), the state of a bucket"
    match read_kept(blob, where):
        case {
            "refuted": bool(refuted),
            "seen": [int(left), int(right)],
            "unmatched": [dict(one), dict(other)],
        }:
            return Kept(refuted, (left, right), (_side(one, kinds, where), _side(other, kinds, where)))
    raise refused(where, "JSON of another kind")


def _side(data: dict[str, Any], kinds: Sequence[Kind], where: str) -> list[Any]:
    positions, times = data.pop("positions", None), data.pop("times", None)
    events = unpack(data, kinds)
    for numbers in (positions, times):
        if not isinstance(numbers, list) or len(numbers) != len(events) or not all(type(n) is int for n in numbers):
            raise refused(where, "positions and times that do not fit the rows")
    return list(zip(positions or (), times or (), events, strict=True))


class Finding(NamedTuple):
    """What refutes a bucket."""

    counterexample: Counterexample
    difference: Difference | None = None
    """None for a race."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a bucket has counted so far, and what happened in this batch."""

    at: int
    """When the batch began, in milliseconds."""
    seen: tuple[int, int]
    """Rows of either side so far."""
    unmatched: tuple[int, int] = (0, 0)
    oldest: tuple[Waiting, ...] = ()
    """The first unmatched rows of either side."""
    matched: int = 0
    """Pairs that were found in this batch."""
    longest_wait: int = 0
    """Of these, the longest time between one row and the other, in milliseconds."""
    refuted: bool = False
    finding: Finding | None = None
    """What refutes it, in the batch that does."""
    waiting_in: int = -1
    """The batch in whose folder the unmatched rows are, where `live_bag.py` compares; -1 if there are none."""


class Bucket(StatefulProcessor):
    """The matcher of a bucket, inside Spark's state."""

    def __init__(self, upto: Dependence, equal: Equal, kinds: Sequence[Kind]) -> None:
        self._upto = upto
        self._equal = equal
        self._kinds = tuple(kinds)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark, once for each task."""
        self._prepare()
        self._state = handle.getValueState("kept", "kept binary")

    def _prepare(self) -> None:
        self._table = Table(self._kinds)
        # Most rows need no conversion: then the kind is called with the row as it is, in a third of the time.
        is_plain = all(is_as_given(c.dataType) and not _is_nested(c.dataType) for c in self._table.struct)
        self._only_kind = self._kinds[0] if len(self._kinds) == 1 and is_plain else None
        self._key = self._upto.partition_key()

    def close(self) -> None:
        """Nothing to close."""

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: object) -> Iterator[Row]:  # noqa: N802, N803
        """Called by Spark with all that `Pack` made for this bucket in a batch, in any order."""
        stored = self._state.get()
        packed = sorted(rows, key=lambda row: (row["side"], row["partition"], row["chunk"]))
        report: Report | StreamtightError
        try:
            kept = Kept() if stored is None else restored(bytes(stored[0]), self._kinds)
            kept, report = self.step(kept, packed)
            self._state.update((storable(kept, self._kinds),))
        except StreamtightError as error:  # a wrong question, as only the rows can show; the driver raises it
            report = error
        yield Row(bucket=key[0], report=pickle.dumps(report, protocol=5))

    def step(self, kept: Kept, packed: Sequence[Any]) -> tuple[Kept, Report]:
        """What this batch makes of a bucket, and what there is to say of it."""
        at = packed[0]["at"]
        parts: tuple[dict[int, list[tuple[Any, ...]]], ...] = ({}, {})
        for piece in packed:
            rows = pickle.loads(piece["rows"])  # noqa: S301 - from our own task
            parts[piece["side"]].setdefault(piece["partition"], []).extend(rows)
        left, right = (sum(map(len, part.values())) for part in parts)
        seen = (kept.seen[0] + left, kept.seen[1] + right)
        if kept.refuted:
            return Kept(True, seen), Report(at, seen, refuted=True)
        events = [{number: self._events(rows) for number, rows in part.items()} for part in parts]
        finding = self._race(events)
        if finding is None:
            matcher = self._match(kept, events)
            if matcher.agrees:
                return _matched(kept, matcher, seen, at)
            finding = self._divergence(matcher)
        return Kept(True, seen), Report(at, seen, refuted=True, finding=finding)

    def _events(self, rows: Sequence[tuple[Any, ...]]) -> list[Event]:
        if self._only_kind is not None:
            with contextlib.suppress(StreamtightError):  # from_row says it better
                return list(itertools.starmap(self._only_kind, rows))
        return list(map(self._table.from_row, rows))

    def _match(self, kept: Kept, events: Sequence[Mapping[int, Sequence[Event]]]) -> Matcher:
        left, right = (tuple((position, event) for position, _, event in some) for some in kept.unmatched)
        matcher = Matcher(upto=self._upto, equal=self._equal, resume=State(kept.seen, (left, right)))
        for side, parts in zip(SIDES, events, strict=True):
            for part in parts.values():
                matcher.feed(side, part)
        return matcher

    def _race(self, events: Sequence[Mapping[int, Sequence[Event]]]) -> Finding | None:
        """Rows of one side that must keep their order, in different partitions of this batch."""
        for side, parts in zip(SIDES, events, strict=True):
            if not self._may_race(parts.values()):
                continue
            batch: Batch = tuple(map(tuple, parts.values()))
            race = find_race((batch,) if self._equal is None else alike((batch,), self._equal), self._upto)
            if race is None:
                continue
            one, other = (list(parts)[place] for place in race.partitions)
            race = dataclasses.replace(race, batch=_batch_number(), partitions=(one, other))
            two: Batch = ((race.first,), (race.second,))
            return Finding(
                Counterexample(
                    finding="RACE",
                    explanation=f"on the {side}, {race}",
                    actual=(race.first, race.second),
                    replay=f"print(tight.find_race(({two!r},), {self._upto!r}))",
                    reruns=1,
                    failing_reruns=int(find_race((two,), self._upto) is not None),
                )
            )
        return None

    def _may_race(self, parts: Collection[Sequence[Event]]) -> bool:
        """Can there be a race? None if no key comes in two partitions, which is quickly seen."""
        if len(parts) < 2 or not self._upto.clauses:
            return False
        if self._key is None:
            return True
        key_of: Callable[[Event], Hashable] = self._key
        if len(self._kinds) == 1 and all(name in self._kinds[0].fields for name in self._key.fields):
            key_of = operator.itemgetter(*(self._kinds[0].names.index(name) + 1 for name in self._key.fields))
        known: set[Hashable] = set()
        for part in parts:
            keys = set(map(key_of, part))
            if not known.isdisjoint(keys):
                return True
            known |= keys
        return False

    def _divergence(self, matcher: Matcher) -> Finding | None:
        """Why the streams of this bucket cannot agree, with the few rows that show it."""
        difference = matcher.difference
        shown = matcher.finish().counterexample
        if difference is None or difference.came is None or shown is None:
            raise AssertionError("only called when the matcher does not agree")  # pragma: no cover
        came = difference.came
        few = Matcher(upto=self._upto, equal=self._equal)
        few.feed(SIDES[1 - SIDES.index(came.side)], [place.event for place in difference.against])
        few.feed(came.side, [came.event])
        return Finding(
            dataclasses.replace(few.finish().counterexample or shown, explanation=str(difference)), difference
        )


def _matched(kept: Kept, matcher: Matcher, seen: tuple[int, int], at: int) -> tuple[Kept, Report]:
    unmatched = []
    longest = 0
    for old, now in zip(kept.unmatched, matcher.state.unmatched, strict=True):
        came = {position: when for position, when, _ in old}
        unmatched.append([(position, came.pop(position, at), event) for position, event in now])
        longest = max(longest, at - min(came.values(), default=at))  # those left in it have found their match
    left, right = unmatched
    oldest = [
        Waiting(Place(name, position, event), when)
        for name, some in zip(SIDES, unmatched, strict=True)
        for position, when, event in some[:SHOWN]
    ]
    matched = seen[0] - kept.seen[0] + len(kept.unmatched[0]) - len(left)
    report = Report(at, seen, (len(left), len(right)), tuple(oldest), matched, longest)
    return Kept(False, seen, (left, right)), report


def _partition_number() -> int:
    from pyspark import TaskContext  # not above: a PySpark that knows Spark Connect only has none

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _batch_number() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    number = None if context is None else context.getLocalProperty("streaming.sql.batchId")
    return int(number or 0)
