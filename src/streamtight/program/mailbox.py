"""Mailboxes: when may an event be handled, if dependent events keep their order and the others need not wait?

All events of all streams have one order: by time, then by kind as in `takes`, then by stream, then as they come on it.
What comes on a stream promises that nothing earlier will come on it; a heartbeat promises that and more, the end of the
stream promises everything. An event may go when no dependent event that is earlier can come or is still there (section
4.4.4 of the paper: selective reordering).

>>> from streamtight.program.fork_join import ForkJoin
>>> from streamtight.program.plan import InputStream, Plan, Worker
>>> from streamtight.stream.dependence import barrier
>>> from streamtight.stream.event import Kind
>>> Value, Rule = Kind("Value", time=int), Kind("Rule", time=int)
>>> class Counts(ForkJoin):
...     takes, depends = (Value, Rule), barrier(Rule)
>>> values, rules = InputStream("values", Value), InputStream("rules", Rule)
>>> plan = Plan(Counts(), [values, rules], Worker("state", (*values.shares, *rules.shares)))
>>> box = Mailbox(plan, plan.root)
>>> box.put(Sent(values.shares[0], (7, 0, 0), 0, Value(7)))
>>> box.advance("rules", (3, 2, 1))
>>> [(len(waits.events), waits.stream, waits.promise[0]) for waits in box.waiting()]
[(1, 'rules', 3)]
>>> box.advance("rules", (7, 1, 1))
>>> [box.release(share).event for share in list(box.ready)]
[Value(time=7)]
"""

from __future__ import annotations

import functools
import heapq
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamtight.errors import InputError
from streamtight.program.fork_join import BEGINNING, END, Key
from streamtight.program.plan import Plan, Share, Worker
from streamtight.program.tags import TagSet, independent_tags
from streamtight.stream.event import Event


class Sent(NamedTuple):
    """An event on its way: whose share it is, where it stands in the order of all, and its place on its stream."""

    share: Share
    key: Key
    position: int
    event: Event

    def before(self, other: Sent) -> bool:
        """Whether it is the earlier one in the order of all events."""
        return (self.key, self.position) < (other.key, other.position)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Events that cannot go before a stream promises more than it did."""

    events: tuple[Sent, ...]
    stream: str
    promise: Key


class Mailbox:
    """The events that concern a worker: those that it is responsible for, and those of the workers above it.

    What comes on one stream must be given in its order, with increasing keys (`ForkJoin.keyed`). Within a share, events
    keep the order of their stream. `ready` are the shares whose first event may go, now or at any time later. Only the
    first event of each share is ever looked at, and again only when that changes for which it waits.
    """

    def __init__(self, plan: Plan, worker: Worker) -> None:
        above = next(above for each, above in _with_shares_above(plan.root, ()) if each is worker)
        self.ready: dict[Share, None] = {}
        self._order = _order_of(plan)
        self._buffers: dict[Share, deque[Sent]] = {share: deque() for share in (*above, *worker.shares)}
        self._rivals = {
            share: [rival for rival in self._order.rivals[share] if rival in self] for share in self._buffers
        }
        self._promises = {share.stream: BEGINNING for share in self._buffers}
        self._waiters: dict[str, dict[Share, list[Share]]] = {stream: {} for stream in self._promises}

    @property
    def streams(self) -> Collection[str]:
        """The streams whose promises matter here."""
        return self._promises.keys()

    def put(self, sent: Sent) -> None:
        """An event has come; it promises that nothing earlier will come on its stream."""
        buffer = self._buffers[sent.share]
        buffer.append(sent)
        self.advance(sent.share.stream, sent.key)
        if len(buffer) == 1:
            self._look_at([sent.share])

    def advance(self, stream: str, promise: Key) -> None:
        """A stream promises that what will come on it has this key or a later one."""
        self._promises[stream] = promise
        if self._waiters[stream]:
            waiters, self._waiters[stream] = self._waiters[stream], {}
            self._look_at(waiter for each in waiters.values() for waiter in each)

    def first(self, share: Share) -> Sent:
        """The first event of a share that is ready."""
        return self._buffers[share][0]

    def release(self, share: Share) -> Sent:
        """The first event of a share that is ready; it is handed over, and others that waited for it may go."""
        del self.ready[share]
        gone = self._buffers[share].popleft()
        self._look_at([share, *self._waiters[share.stream].pop(share, ())])
        return gone

    def waiting(self) -> list[Waiting]:
        """Which events wait for which stream. Those behind events that wait, wait for the same."""
        found = []
        for share, buffer in self._buffers.items():
            if buffer and share not in self.ready:
                rival = self._awaited(share)
                if rival is not None:
                    found.append(Waiting(tuple(buffer), rival.stream, self._promises[rival.stream]))
        return found

    def __contains__(self, share: Share) -> bool:
        """Whether events of this share come here."""
        return share in self._buffers

    def __len__(self) -> int:
        """How many events are here."""
        return sum(map(len, self._buffers.values()))

    def _look_at(self, shares: Iterable[Share]) -> None:
        for share in shares:
            if self._buffers[share]:
                rival = self._rival_of(share)
                if rival is None:
                    self.ready[share] = None
                else:
                    self._waiters[rival.stream].setdefault(rival, []).append(share)

    def _rival_of(self, share: Share) -> Share | None:
        """A share that has, or may still bring, an event that must go before the first one of this share."""
        first = self._buffers[share][0]
        for rival in self._rivals[share]:
            there = self._buffers[rival]
            if (there and there[0].before(first)) or self._may_bring_before(rival, first):
                return rival
        return None

    def _may_bring_before(self, rival: Share, first: Sent) -> bool:
        return self._order.earliest(rival, self._promises[rival.stream]) < first.key

    def _awaited(self, share: Share) -> Share | None:
        """The share whose stream must promise more, for the first event of this one to go; None if it need not."""
        rival = self._rival_of(share)
        while rival is not None and not self._may_bring_before(rival, self._buffers[share][0]):
            share, rival = rival, self._rival_of(rival)
        return rival


def stalled(waits: Sequence[Waiting]) -> InputError:
    """The error that says on which stream others wait, and what to do about it."""
    stream = min(waits, key=lambda each: each.promise).stream
    behind = {sent for each in waits if each.stream == stream for sent in each.events}
    counts = sorted(Counter(sent.share.stream for sent in behind).items())
    told = " and ".join(f"{count} event{'s' * (count > 1)} of {name!r}" for name, count in counts)
    promise = next(each.promise for each in waits if each.stream == stream)
    since = "nothing at all" if promise == BEGINNING else f"nothing beyond time {promise[0]}"
    return InputError(
        f"stream {stream!r}",
        needed="streams that advance together, each by events or by heartbeats",
        came=f"{since}, and {told} wait{'s' * (len(behind) == 1)} for it",
        hint=f"heartbeats on {stream!r} where it has no events: Heartbeat(time)",
    )


def release_bounds(
    plan: Plan, frontiers: Mapping[str, Key], keys: Mapping[Share, Sequence[Key] | None]
) -> dict[Share, Key]:
    """Up to which key, exclusively, may the events of each share be handled now, if dependent ones keep their order?

    frontiers   for each stream, what it promises: what has not come yet has this key or a later one
    keys        for some shares, the keys of the events that are there and not handled yet, sorted. Where these are not
                known, events may be anywhere

    With each event below its bound, all earlier ones on which it is dependent are below theirs. The bounds are the
    greatest of which this is sure: each is the least key that a rival leaves over, so the least of all bounds is known
    first, and the others follow as lengths of shortest paths do (Dijkstra).
    """
    order = _order_of(plan)

    def may_come(share: Share, rival: Share) -> Key:
        time, rank, place = frontier = frontiers[rival.stream]
        # What comes later on the same stream overtakes nothing that is there.
        return (time, rank, place + 1) if rival.stream == share.stream else order.earliest(rival, frontier)

    bounds = {
        share: min((may_come(share, rival) for rival in rivals), default=END) for share, rivals in order.rivals.items()
    }
    # The numbers decide between equal bounds: shares have no order.
    shares = list(order.rivals)
    numbers = {share: number for number, share in enumerate(shares)}
    queue = [(bound, numbers[share]) for share, bound in bounds.items()]
    heapq.heapify(queue)
    while queue:
        bound, number = heapq.heappop(queue)
        share = shares[number]
        if bound > bounds[share]:
            continue  # a lower one came out of the queue before
        known = keys.get(share)
        left_over = order.earliest(share, bound) if known is None else _first_from(known, bound)
        for rival in order.rivals[share]:
            if left_over < bounds[rival]:
                bounds[rival] = left_over
                heapq.heappush(queue, (left_over, numbers[rival]))
    return bounds


def _first_from(keys: Sequence[Key], bound: Key) -> Key:
    place = bisect_left(keys, bound)
    return keys[place] if place < len(keys) else END


class _Order:
    """Which shares of a plan are dependent, and where in the order of all events their next ones may stand."""

    def __init__(self, plan: Plan) -> None:
        self._kinds = len(plan.program.takes)
        self._stands = {
            share: (plan.program.rank(share.tags.kind), plan.stream_place(share.stream))
            for worker in plan.workers
            for share in worker.shares
        }
        found: dict[Share, dict[Share, None]] = {share: {} for share in self._stands}
        for worker, above in _with_shares_above(plan.root, ()):
            # Workers that are not on one path handle independent tags.
            for number, share in enumerate(worker.shares):
                for rival in (*above, *worker.shares[:number]):
                    if not independent_tags(plan.program.depends, TagSet([share.tags]), TagSet([rival.tags])):
                        found[share][rival] = found[rival][share] = None
        self.rivals = {share: tuple(rivals) for share, rivals in found.items()}

    def earliest(self, share: Share, promise: Key) -> Key:
        """The least key that an event of a share may have, if it is not before this one: it has its kind and stream."""
        if promise >= END:
            return END
        least = (promise[0], *self._stands[share])
        return least if least >= promise else (promise[0], self._kinds, promise[2])  # at this time, its turn is over


@functools.lru_cache(maxsize=16)
def _order_of(plan: Plan) -> _Order:
    return _Order(plan)


def _with_shares_above(worker: Worker, above: tuple[Share, ...]) -> Iterator[tuple[Worker, tuple[Share, ...]]]:
    """It and all workers below it, each with the shares of those above it."""
    yield worker, above
    for child in worker.children:
        yield from _with_shares_above(child, (*above, *worker.shares))
