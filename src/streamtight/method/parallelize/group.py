"""Shares that are dependent, taken apart by what connects them: groups, and the groups below them."""

from __future__ import annotations

import heapq
import itertools
import math
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from streamtight.program.fork_join import ForkJoin
from streamtight.program.plan import Share
from streamtight.program.tags import Tags, TagSet, why_dependent

STEPS = 3_000
"""So many ways to take shares apart are compared before the first one found is taken."""
WIDTH, ORDERS = 4, 8
"""Of one group, so many ways are followed further, and so many random orders of removal are tried."""
MOST_SWAPPED = 40
"""More components than this fill bins evenly without swaps."""


@dataclass(frozen=True, slots=True)
class Group:
    """Shares of one worker, and the groups that are independent of each other without them."""

    shares: tuple[Share, ...]
    below: tuple[Group, ...] = ()

    @property
    def rate(self) -> float:
        return math.fsum(share.rate for share in self.shares)

    @property
    def all_shares(self) -> tuple[Share, ...]:
        return (*self.shares, *(share for group in self.below for share in group.all_shares))

    @property
    def leaves(self) -> int:
        return sum(group.leaves for group in self.below) if self.below else 1

    @property
    def busiest(self) -> float:
        return self.rate + max((group.busiest for group in self.below), default=0.0)

    @property
    def inner_rate(self) -> float:
        return self.rate + math.fsum(group.inner_rate for group in self.below) if self.below else 0.0


class Graph:
    """The dependence of shares. Sets of them are the bits of a number."""

    def __init__(self, program: ForkJoin, shares: Sequence[Share]) -> None:
        self.shares, self.rates = shares, [share.rate for share in shares]
        self.everything, self._known_rates = (1 << len(shares)) - 1, dict[int, float]()
        places_of: dict[Tags, int] = {}
        for place, share in enumerate(shares):
            places_of[share.tags] = places_of.get(share.tags, 0) | 1 << place
        around = dict.fromkeys(places_of, 0)
        for one, other in itertools.combinations_with_replacement(places_of, 2):
            if why_dependent(program.depends, TagSet([one]), TagSet([other])) is not None:
                around[one] |= places_of[other]
                around[other] |= places_of[one]
        self.around = [around[share.tags] & ~(1 << place) for place, share in enumerate(shares)]

    def independent(self, one: int, other: int) -> bool:
        return not self.around[one] >> other & 1

    def rate(self, some: int) -> float:
        known = self._known_rates.get(some)
        if known is None:
            known = self._known_rates[some] = math.fsum(self.rates[each] for each in _bits(some))
        return known

    def leaf(self, some: int) -> Group:
        return Group(tuple(self.shares[each] for each in _bits(some)))

    def components(self, some: int) -> list[int]:
        found = []
        while some:
            component = fresh = some & -some
            while fresh:
                reached = 0
                for each in _bits(fresh):
                    reached |= self.around[each]
                fresh = reached & some & ~component
                component |= fresh
            found.append(component)
            some &= ~component
        return found

    def removed(self, some: int, order: Iterable[int]) -> int:
        """What is removed in this order until two components are left; 0 if that never happens."""
        gone = 0
        for each in order:
            gone |= 1 << each
            if len(self.components(some & ~gone)) > 1:
                return gone
        return 0

    def by_greed(self, some: int) -> Group:
        """The rarest removed first, until two components are left, and so on."""
        gone, parts = 0, self.components(some)
        if len(parts) < 2:
            gone = self.removed(some, sorted(_bits(some), key=self.rates.__getitem__))
            if not gone:
                return self.leaf(some)
            parts = self.components(some & ~gone)
        return Group(self.leaf(gone).shares, tuple(self.by_greed(part) for part in parts))


_Takers = Callable[[Share], frozenset[str]]


class Search:
    """Looks for groups that are better than the greedy ones."""

    def __init__(self, graph: Graph, takers: _Takers, deadline: float, seed: int) -> None:
        self._graph, self._deadline, self._rng = graph, deadline, random.Random(seed)
        self._takers = [takers(share) for share in graph.shares]
        self._steps = 0

    def groups(self, most: float) -> Iterator[Group]:
        """Those with the least events on the busiest way, and those with the least events above leaves.

        If types differ in what they take, then also those where what only some types take is not put together with
        what others take, since there may be no type for both.
        """
        for worth in (_least_busy, _least_inner):
            for by_type in (False, True) if len(set(self._takers)) > 1 and math.isfinite(most) else (False,):
                self._worth, self._by_type, self._known = worth, by_type, dict[tuple[int, float], Group]()
                yield self._best(self._graph.everything, most)

    def _best(self, some: int, most: float) -> Group:
        known = self._known.get((some, most))
        if known is None:
            known = self._known[some, most] = self._apart(some, most)
        return known

    def _apart(self, some: int, most: float) -> Group:
        graph = self._graph
        if most < 2:
            return graph.leaf(some)
        parts = graph.components(some)
        if len(parts) > 1:
            return Group((), tuple(self._shared_out(parts, most)))
        ways = [
            Group(graph.leaf(gone).shares, tuple(self._shared_out(graph.components(some & ~gone), most)))
            for gone in self._separators(some, most)
        ]
        return min(ways, key=self._worth, default=graph.leaf(some))

    def _separators(self, some: int, most: float) -> list[int]:
        """The most promising sets without which the others are not connected, none of which has one to spare."""
        graph = self._graph
        places = list(_bits(some))
        degree = {each: (graph.around[each] & some).bit_count() for each in places}
        if all(each == len(places) - 1 for each in degree.values()):
            return []
        found = {graph.around[each] & some for each in places if degree[each] < len(places) - 1}
        orders = [
            sorted(places, key=graph.rates.__getitem__),
            sorted(places, key=lambda each: graph.rates[each] / (degree[each] or 1)),
            sorted(places, key=lambda each: -degree[each]),
        ]
        if self._has_time():
            orders += [self._rng.sample(places, len(places)) for _ in range(ORDERS)]
        found |= {graph.removed(some, order) for order in orders}
        self._steps += len(found)
        ranked = sorted(
            {self._thinned(some, gone) for gone in found if gone}, key=lambda gone: (self._hope(some, gone, most), gone)
        )
        return ranked[: WIDTH if self._has_time() else 1]

    def _has_time(self) -> bool:
        return self._steps < STEPS and time.monotonic() < self._deadline

    def _thinned(self, some: int, gone: int) -> int:
        """Without those that connect nothing when they come back; the most frequent come back first."""
        for each in sorted(_bits(gone), key=lambda each: (-self._graph.rates[each], each)):
            fewer = gone & ~(1 << each)
            if len(self._graph.components(some & ~fewer)) > 1:
                gone = fewer
        return gone

    def _hope(self, some: int, gone: int, most: float) -> float:
        rest = self._graph.components(some & ~gone)
        if self._worth is _least_inner:
            return self._graph.rate(gone)
        return self._graph.rate(gone) + max(self._graph.rate(part) / min(most, part.bit_count()) for part in rest)

    def _shared_out(self, parts: list[int], most: float) -> Iterator[Group]:
        """The groups of these components with so many leaves at most: some put together, some taken apart further."""
        for part, leaves in self._bins(parts, most):
            group = self._best(part, leaves)
            yield from [group] if group.shares or not group.below else group.below

    def _bins(self, parts: list[int], most: float) -> list[tuple[int, float]]:
        """Components put together, with the number of leaves that they get."""
        sizes = {part: self._best(part, math.inf).leaves for part in parts}
        if sum(sizes.values()) <= most:
            return [(part, math.inf) for part in parts]
        alike: dict[frozenset[str], list[int]] = {}
        for part in parts:
            takers = (
                frozenset.intersection(*(self._takers[each] for each in _bits(part))) if self._by_type else frozenset()
            )
            alike.setdefault(takers, []).append(part)
        if not 1 < len(alike) <= most:
            return self._evenly(parts, sizes, int(most))
        classes = list(alike.values())
        shared = self._with_leaves([(sum(some), sum(sizes[part] for part in some)) for some in classes], int(most))
        return [
            bin_
            for some, (_, leaves) in zip(classes, shared, strict=True)
            for bin_ in self._evenly(some, sizes, leaves)
        ]

    def _evenly(self, parts: list[int], sizes: dict[int, int], most: int) -> list[tuple[int, float]]:
        if sum(sizes[part] for part in parts) <= most:
            return [(part, math.inf) for part in parts]
        if most == 1:
            return [(sum(parts), 1)]
        tried = (self._packed(parts, sizes, count, most) for count in range(min(len(parts), most), 1, -1))
        whole = [(sum(parts), float(most))]  # of one component
        return min(tried, key=lambda bins: max(self._graph.rate(part) / leaves for part, leaves in bins), default=whole)

    def _packed(self, parts: list[int], sizes: dict[int, int], count: int, most: int) -> list[tuple[int, float]]:
        """Components in so many bins with rates that are alike."""
        bins = _packed_bins([self._graph.rate(part) for part in parts], count)
        some = [[parts[each] for each in places] for places in bins]
        return list(self._with_leaves([(sum(inside), sum(sizes[part] for part in inside)) for inside in some], most))

    def _with_leaves(self, bins: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int]]:
        """Bins, given with the most leaves that they can have, each with its number of leaves, so many in all."""
        waiting = [(-self._graph.rate(inside), place) for place, (inside, _) in enumerate(bins)]
        heapq.heapify(waiting)
        leaves, spare = [1] * len(bins), most - len(bins)
        while waiting and spare:
            load, place = heapq.heappop(waiting)
            if leaves[place] < bins[place][1]:
                leaves[place], spare = leaves[place] + 1, spare - 1
                heapq.heappush(waiting, (load * (leaves[place] - 1) / leaves[place], place))
        return [(inside, count) for (inside, _), count in zip(bins, leaves, strict=True)]


def _packed_bins(rates: Sequence[float], count: int) -> list[list[int]]:
    """The places of these rates in so many bins with sums that are alike; no bin is empty."""
    bins: list[list[int]] = [[] for _ in range(count)]
    emptiest = [(0.0, 0, place) for place in range(count)]
    for each in sorted(range(len(rates)), key=lambda each: (-rates[each], each)):
        total, size, place = heapq.heappop(emptiest)
        bins[place].append(each)
        heapq.heappush(emptiest, (total + rates[each], size + 1, place))
    if len(rates) <= MOST_SWAPPED:
        _swapped(rates, bins)
    return bins


def _swapped(rates: Sequence[float], bins: list[list[int]]) -> None:
    """Makes the fullest bin less full, as long as a swap with another one does."""
    for _ in range(len(rates)):
        sums = [math.fsum(rates[each] for each in inside) for inside in bins]
        full = max(range(len(bins)), key=sums.__getitem__)
        swaps = (
            (max(sums[full] - rates[one] + rates[two], sums[other] + rates[one] - rates[two]), other, one, two)
            for other in range(len(bins))
            if other != full
            for one in bins[full]
            for two in bins[other]
        )
        best = min(swaps, default=None)
        if best is None or not best[0] < sums[full] * (1 - 1e-9):
            return
        _, other, one, two = best
        bins[full][bins[full].index(one)], bins[other][bins[other].index(two)] = two, one


def _least_busy(group: Group) -> tuple[float, ...]:
    return group.busiest, group.inner_rate, -group.leaves


def _least_inner(group: Group) -> tuple[float, ...]:
    return group.inner_rate, group.busiest, -group.leaves


def at_most(group: Group, most: float) -> Group:
    """The group with so many leaves at most: the rarest leaves put together."""
    while group.leaves > most:
        group = _fewer(group)[1]
    return group


def _fewer(group: Group) -> tuple[float, Group]:
    """The group with two of its leaves put together, and the rate of the leaf that they make."""
    ways = []
    leaves = sorted((each for each in group.below if not each.below), key=lambda each: each.rate)
    if len(leaves) > 1:
        one, other = leaves[:2]
        both = Group(one.shares + other.shares)
        kept = tuple(each for each in group.below if each is not one and each is not other)
        alone = Group(group.all_shares)
        ways.append((both.rate, Group(group.shares, (*kept, both))) if kept else (alone.rate, alone))
    for place, each in enumerate(group.below):
        if each.below:
            rate, fewer = _fewer(each)
            ways.append((rate, replace(group, below=(*group.below[:place], fewer, *group.below[place + 1 :]))))
    return min(ways, key=lambda way: way[0])


def _bits(some: int) -> Iterator[int]:
    while some:
        lowest = some & -some
        yield lowest.bit_length() - 1
        some ^= lowest
