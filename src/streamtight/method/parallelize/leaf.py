"""What a worker without children does: its rows, in their order as far as that matters, and a join where one is due.

The shares of a worker are taken apart into those that are independent of each other, which are handled window by window
as blocks or one by one in any order, and the few others, whose events cut the windows. An event of an ancestor cuts,
too: there the state goes up, and another one comes down.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from streamtight.errors import InputError
from streamtight.method.parallelize.columns import Outputs, Rows, StreamReader
from streamtight.program.fork_join import BEGINNING, END, ForkJoin, Key, State, StateType
from streamtight.program.plan import Plan, Share, Worker
from streamtight.program.tags import TagSet, independent_tags
from streamtight.stream.dependence import Frontier
from streamtight.stream.event import Event

TICK, RANK, PLACE, SHARE = "__tick", "__rank", "__place", "__share"
"""The columns of a key and of the number of a share, where rows of several streams are in one table."""
NO_SHARE = -1
"""The number of the share of a row that nobody handles."""
NO_STREAM = -1
"""The place of rows that belong to no stream: they only see to it that a task has rows. They come first."""
_MANY = 50_000
"""So many outputs are kept before they are handed on."""
_SOME = 4_096
"""So many events are handled before a look at their outputs, and so many outputs are packed at once."""
_FEW_ROWS = 64
"""If cutting events have fewer rows between them, all are put in order and handled one by one."""


class Feed(Protocol):
    """Where rows come from, in the order of time."""

    horizon: Key
    """All rows before this key have come."""

    def more(self) -> Iterable[tuple[int, Rows]]:
        """The next rows, each with the number of its share; afterwards the horizon is further."""


class BatchFeed:
    """The batches of one stream."""

    def __init__(self, batches: Iterable[pa.RecordBatch], reader: StreamReader, numbers: Sequence[int]) -> None:
        self._batches, self._reader, self._numbers = iter(batches), reader, numbers
        self.horizon: Key = reader.last

    def more(self) -> Iterable[tuple[int, Rows]]:
        for batch in self._batches:
            if batch.num_rows:
                found = [(self._numbers[number], rows) for number, rows in self._reader.rows(batch)]
                self.horizon = self._reader.last
                return found
        self.horizon = END
        return ()


class MixedFeed:
    """The rows of several streams, sorted by their keys: columns for these and for shares, and one for each stream."""

    def __init__(self, batches: Iterable[pa.RecordBatch], readers: Mapping[tuple[int, int], StreamReader]) -> None:
        """readers   by the place of a stream and the number of a share, what reads its rows"""
        self._batches, self._readers = iter(batches), readers
        self.horizon: Key = BEGINNING

    def more(self) -> Iterable[tuple[int, Rows]]:
        for batch in self._batches:
            if not batch.num_rows:
                continue
            places, shares = batch.column(PLACE).to_numpy(), batch.column(SHARE).to_numpy()
            if places[-1] == NO_STREAM and (places == NO_STREAM).all():
                continue
            last = (batch.column(TICK)[-1].as_py(), batch.column(RANK)[-1].as_py(), int(places[-1]))
            found: list[tuple[int, Rows]] = []
            for (place, number), reader in self._readers.items():
                chosen = np.flatnonzero((places == place) & (shares == number))
                if len(chosen):
                    rows = batch.column(stream_column(place))
                    rows = rows if len(chosen) == len(places) else rows.take(pa.array(chosen))
                    found += [(number, each) for _, each in reader.rows(pa.RecordBatch.from_struct_array(rows))]
            self.horizon = last
            return found
        self.horizon = END
        return ()


def stream_column(place: int) -> str:
    """The name of the column that has the rows of a stream, among those of several."""
    return f"stream{place}"


@dataclass(slots=True)
class _Queue:
    """The rows of a share that wait, and from which on the first of them do."""

    share: Share
    rank: int
    place: int
    is_ordered: bool
    """Whether rows of equal key are in the order of their stream."""
    rows: deque[Rows] = field(default_factory=deque)
    start: int = 0

    def taken(self, bound: Key) -> Iterator[Rows]:
        """The rows before this key."""
        side = "right" if (self.rank, self.place) < bound[1:] else "left"
        while self.rows:
            first = self.rows[0]
            stop = len(first)
            if bound[0] != END[0] and not first.ticks[-1] < bound[0]:  # a time may be infinite, the end is beyond it
                stop = int(first.ticks.searchsorted(bound[0], side=side))  # type: ignore[call-overload]
            if stop > self.start:
                yield first.slice(self.start, stop)
            if stop < len(first):
                self.start = stop
                return
            self.rows.popleft()
            self.start = 0

    def at_tick(self, tick: Any) -> Iterator[Event]:
        """The first events that wait, if their time is this one."""
        start = self.start
        for rows in self.rows:
            stop = int(rows.ticks.searchsorted(tick, side="right"))
            if stop <= start or rows.ticks[start] != tick:
                return
            yield from rows.slice(start, stop).events()
            start = 0


class Leaf:
    """A worker without children, at work."""

    def __init__(
        self, plan: Plan, worker: Worker, outputs: Outputs, *, unordered: frozenset[str] = frozenset()
    ) -> None:
        """unordered   the streams of which rows with equal keys are in no order"""
        self._program: ForkJoin = plan.program
        self._type: StateType = plan.type_of(worker)
        self._outputs = outputs
        self._update = self._program.update_of(self._type)
        self._update_block = self._program.update_block_of(self._type)
        self._queues = [
            _Queue(
                share,
                self._program.rank(share.tags.kind),
                plan.stream_place(share.stream),
                share.stream not in unordered,
            )
            for share in worker.shares
        ]
        cutting = _cutting(self._program, worker.shares)
        self._free = [queue for queue in self._queues if queue.share not in cutting]
        self._cutting = [queue for queue in self._queues if queue.share in cutting]
        self._uncertain_above = uncertain(plan, worker, ancestors(plan, worker))
        self._uncertain_here = uncertain(plan, worker, [worker])
        self._may_clash = bool(self._uncertain_here) or any(not queue.is_ordered for queue in self._cutting)
        self.state: State = None

    def run(
        self,
        state: State,
        feeds: Sequence[Feed],
        syncs: Iterable[tuple[Key, Event | None]],
        exchange: Callable[[State], State],
    ) -> Iterator[list[tuple[str, bytes]]]:
        """Handle all rows; what is given out on the way are outputs, the state is `state` in the end.

        syncs      where ancestors have events, in order; the events, if rows may be uncertain because of them
        exchange   hands the state to the parent and gives the new one
        """
        self.state = state
        after: tuple[Key, Event | None] = (END, None)
        for key, event in itertools.chain(syncs, [(END, None)]):
            while True:
                horizon = min((feed.horizon for feed in feeds), default=END)
                self._require_certain(self._uncertain_above, *after)
                self._handle(min(key, horizon))
                if len(self._outputs) >= _MANY:
                    yield self._outputs.taken()
                if key <= horizon:
                    break
                self._read(next(feed for feed in feeds if feed.horizon == horizon))
            if key is not END:
                self.state = exchange(self.state)
                after = (key, event)
        yield self._outputs.taken()

    def _read(self, feed: Feed) -> None:
        for number, rows in feed.more():
            self._queues[number].rows.append(rows.read_all())

    # -- the rows before a key -----------------------------------------------------------------------------------

    def _handle(self, bound: Key) -> None:
        if not self._cutting:
            self._handle_free(bound)
            return
        cutting = [(queue, rows) for queue in self._cutting for rows in queue.taken(bound)]
        cuts = sum(len(rows) for _, rows in cutting)
        if cuts and sum(len(rows) for queue in self._free for rows in queue.rows) < cuts * _FEW_ROWS:
            free = [(queue, rows) for queue in self._free for rows in queue.taken(bound)]
            self._one_by_one(event for _, event in self._ordered([*cutting, *free]))
            return
        for key, event in self._ordered(cutting):
            self._handle_free(key)
            self._require_certain(self._uncertain_here, key, event)
            self._one_by_one([event])
        self._handle_free(bound)

    def _handle_free(self, bound: Key) -> None:
        """Handle what is independent of each other: in any order, as blocks if the program has them."""
        for queue in self._free:
            for rows in queue.taken(bound):
                if self._update_block is not None:
                    state = self._update_block(self.state, rows.block(), self._outputs)
                    if state is not NotImplemented:
                        self.state = state
                        continue
                self._one_by_one(rows.events())

    def _one_by_one(self, events: Iterable[Event]) -> None:
        state, update, emit = self.state, self._update, self._outputs.append
        left = iter(events)
        for first in left:
            state = update(state, first, emit)
            for event in itertools.islice(left, _SOME):
                state = update(state, event, emit)
            self._outputs.pack(from_=_SOME)
        self.state = state

    def _ordered(self, taken: Sequence[tuple[_Queue, Rows]]) -> list[tuple[Key, Event]]:
        """The events of rows of several shares, with their keys, in the order of these."""
        keyed = [
            ((tick, queue.rank, queue.place), event, queue)
            for queue, rows in taken
            for tick, event in zip(rows.ticks.tolist(), rows.events(), strict=True)
        ]
        keyed.sort(key=lambda each: each[0])  # stable: what has equal keys stays in the order of its stream
        for key, alike in itertools.groupby(keyed if self._may_clash else (), key=lambda each: each[0]):
            some = [(event, queue.share, queue.is_ordered) for _, event, queue in alike]
            require_order(self._program, key, some)
        return [(key, event) for key, event, _ in keyed]

    def _require_certain(self, uncertain: Uncertain, key: Key, event: Event | None) -> None:
        """Raise if a row that waits has the very key of an event on which it depends."""
        if event is None or not uncertain:
            return
        for queue in self._queues:
            if (key[1:], queue.share) in uncertain:
                for each in queue.at_tick(key[0]):
                    if self._program.depends.depends(event, each):
                        raise same_time(queue.share.stream, key, event, each)


def require_order(program: ForkJoin, key: Key, alike: Sequence[tuple[Event, Share, bool]]) -> None:
    """Raise if of two dependent events with the same key nobody can say which is first.

    alike   the events, their shares, and whether the events of that share are in an order
    """
    seen: dict[Share, Frontier] = {}
    for event, share, is_ordered in alike if len(alike) > 1 else ():
        for other, frontier in seen.items():
            if not (other is share and is_ordered) and frontier.highest_below(event) > 0:
                partner = next(e for e, its, _ in alike if its is other and program.depends.depends(e, event))
                raise same_time(share.stream, key, partner, event)
        seen.setdefault(share, Frontier(program.depends)).add(event, 1.0)


def same_time(stream: str, key: Key, one: object, other: object) -> InputError:
    """The error for two dependent events of which nobody knows which is first."""
    return InputError(
        f"stream {stream!r}",
        needed="different times for events that depend on each other",
        came=f"{one} and {other}, both at {key[0]}",
        hint="a finer time, or a time that counts the rows",
    )


def _cutting(program: ForkJoin, shares: Sequence[Share]) -> set[Share]:
    """The shares without which the rest is independent of each other and of itself: those of the lowest rates."""

    def depend(one: Share, other: Share) -> bool:
        return not independent_tags(program.depends, TagSet([one.tags]), TagSet([other.tags]))

    cutting = {share for share in shares if depend(share, share)}
    rest = sorted((share for share in shares if share not in cutting), key=lambda share: share.rate)
    for place, share in enumerate(rest):
        if any(depend(share, other) for other in rest[place + 1 :]):
            cutting.add(share)
    return cutting


Uncertain = set[tuple[tuple[int, int], Share]]


def uncertain(plan: Plan, worker: Worker, others: Sequence[Worker]) -> Uncertain:
    """The ranks and places of events of others that may have the key of a dependent event in a share of a worker."""
    found = set()
    for other in others:
        for theirs in other.shares:
            for mine in worker.shares:
                if (
                    theirs is not mine
                    and theirs.stream == mine.stream
                    and theirs.tags.kind is mine.tags.kind
                    and not independent_tags(plan.program.depends, TagSet([theirs.tags]), TagSet([mine.tags]))
                ):
                    key = (plan.program.rank(theirs.tags.kind), plan.stream_place(theirs.stream))
                    found.add((key, mine))
    return found


def ancestors(plan: Plan, worker: Worker) -> list[Worker]:
    """The workers above, the root first."""

    def path(at: Worker) -> list[Worker] | None:
        if at is worker:
            return []
        for child in at.children:
            if (below := path(child)) is not None:
                return [at, *below]
        return None

    return path(plan.root) or []


def packed_keys(keys: Sequence[Key]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Keys as two arrays, which travel well: times, and places."""
    return np.array([key[0] for key in keys]), np.array([key[1:] for key in keys], dtype=np.int64).reshape(-1, 2)


def unpacked_keys(packed: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> Iterator[Key]:
    """The keys again."""
    return ((tick, rank, place) for tick, (rank, place) in zip(packed[0].tolist(), packed[1].tolist(), strict=True))
