"""Groups of shares, matched with the branches of a program: which type each worker has, who is left and right."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from streamtight.method.parallelize.group import Group
from streamtight.program.fork_join import ForkJoin, StateType
from streamtight.program.plan import Share, Worker
from streamtight.program.tags import TagSet

MOST_STATES = 5_000
"""The greedy match looks at all orders of children if there are not more than this, as far as they differ."""
MOST_IN_CHAIN = 100
"""More children than this are not split off one by one."""


@dataclass(frozen=True, slots=True)
class _Match:
    """A worker with a type for a group, those below it, and how good they are."""

    type_: StateType
    shares: tuple[Share, ...]
    children: tuple[_Match, ...]
    busiest: float
    leaves: int
    height: int

    @property
    def worth(self) -> tuple[float, int, int]:
        return self.busiest, -self.leaves, self.height

    def worker(self) -> Worker:
        return Worker(self.type_, self.shares, *(child.worker() for child in self.children))


class Matcher:
    """Matches groups with the branches of a program: binary trees of workers that have types.

    Where no branch fits, groups are put together in one worker; the type of the root takes everything.
    """

    def __init__(self, program: ForkJoin, places: Iterable[str | None]) -> None:
        self._types, self._places = program.state_types, list(dict.fromkeys(places))
        self._takes = functools.cache(lambda type_, part: type_.handles.covers(TagSet([part])))
        self._forks = {type_: [each for each in program.all_branches if each.of is type_] for type_ in self._types}

    def takers(self, share: Share) -> frozenset[str]:
        """The names of the types that take a share."""
        return frozenset(type_.name for type_ in self._types if self._takes(type_, share.tags))

    def one_by_one(self, group: Group) -> Worker:
        """The lowest of all trees where children are split off one by one, as the paper's optimizer does."""
        return self._best(group, self._chains)

    def balanced(self, group: Group) -> list[Worker]:
        """Low trees: groups split in the middle, those of one place together or the frequent ones together."""
        found = []
        for order in (self._by_place, _by_rate):
            tree = self._best(group, functools.partial(self._halves, order, False))
            if len(tree.leaves) < group.leaves:
                tree = self._best(group, functools.partial(self._halves, order, True))
            found.append(tree)
        return found

    def _best(self, group: Group, divide: _Divide) -> Worker:
        found = self._matched(group, self._types[0], divide, {})
        return cast(_Match, found).worker()  # the first type of a program takes everything

    def _matched(self, group: Group, type_: StateType, divide: _Divide, known: _Known) -> _Match | None:
        """The best match with a worker of this type; None if the type does not take all that the group has."""
        key = (id(group), type_)
        if key not in known:
            known[key] = None
            if all(self._takes(type_, share.tags) for share in group.all_shares):
                matches = {
                    each: [self._matched(child, each, divide, known) for child in group.below] for each in self._types
                }
                apart = divide(group, type_, matches) if group.below else None
                known[key] = apart or _alone([group], type_)
        return known[key]

    def _chains(self, group: Group, type_: StateType, matches: _Matches) -> _Match | None:
        """The lowest tree where one child after the other is split off; those that match alike are not told apart."""
        if len(group.below) > MOST_IN_CHAIN:
            return self._halves(_by_rate, False, group, type_, matches)
        alike: dict[object, list[int]] = {}
        for place in range(len(group.below)):
            found = (matches[each][place] for each in self._types)
            alike.setdefault(tuple(match and match.worth[1:] for match in found), []).append(place)
        classes = list(alike.values())
        exhaustive = math.prod(len(some) + 1 for some in classes) <= MOST_STATES

        @functools.cache
        def rest(left: tuple[int, ...], of: StateType) -> _Match | None:
            places = sorted(
                each for some, count in zip(classes, left, strict=True) for each in some[len(some) - count :]
            )
            if len(places) == 1:
                return matches[of][places[0]]
            if any(matches[of][place] is None for place in places):
                return None
            return _lowest(split(left, of, ())) or _alone([group.below[place] for place in places], of)

        def split(left: tuple[int, ...], of: StateType, own: tuple[Share, ...]) -> Iterator[_Match | None]:
            choices = [each for each, count in enumerate(left) if count]
            for branch, chosen in itertools.product(self._forks[of], choices if exhaustive else choices[:1]):
                one = classes[chosen][len(classes[chosen]) - left[chosen]]
                others = (*left[:chosen], left[chosen] - 1, *left[chosen + 1 :])
                yield _forked(of, own, matches[branch.left][one], rest(others, branch.right))
                yield _forked(of, own, rest(others, branch.left), matches[branch.right][one])

        return _lowest(split(tuple(map(len, classes)), type_, group.shares))

    def _halves(
        self, order: _Order, thorough: bool, group: Group, type_: StateType, matches: _Matches
    ) -> _Match | None:
        """A low tree: in an order in which children that match alike stand together, cut in the middle or between them.

        thorough   also one child after the other from both ends
        """

        def shape(place: int) -> tuple[object, ...]:
            return tuple(matches[each][place] is not None for each in self._types)

        count = len(group.below)
        places = sorted(range(count), key=lambda place: (shape(place), order(group.below[place]), place))
        borders = [place for place in range(1, count) if shape(places[place]) != shape(places[place - 1])]
        missing = {
            each: [0, *itertools.accumulate(matches[each][place] is None for place in places)] for each in self._types
        }
        step_by_step = thorough and count <= MOST_IN_CHAIN

        @functools.cache
        def some(begin: int, end: int, of: StateType) -> _Match | None:
            if missing[of][begin] < missing[of][end]:
                return None
            if end - begin == 1:
                return matches[of][places[begin]]
            return _lowest(split(begin, end, of, ())) or _alone([group.below[place] for place in places[begin:end]], of)

        def split(begin: int, end: int, of: StateType, own: tuple[Share, ...]) -> Iterator[_Match | None]:
            cuts = {(begin + end) // 2, (begin + end + 1) // 2, *(each for each in borders if begin < each < end)}
            if step_by_step:
                cuts |= {begin + 1, end - 1}
            for branch, cut in itertools.product(self._forks[of], sorted(cuts)):
                yield _forked(of, own, some(begin, cut, branch.left), some(cut, end, branch.right))
                if branch.left is not branch.right:
                    yield _forked(of, own, some(cut, end, branch.left), some(begin, cut, branch.right))

        return _lowest(split(0, count, type_, group.shares))

    def _by_place(self, group: Group) -> tuple[Any, ...]:
        rates: dict[str | None, float] = {}
        for share in group.all_shares:
            rates[share.place] = rates.get(share.place, 0.0) + share.rate
        return (self._places.index(max(rates, key=rates.__getitem__)),)


_Known = dict[tuple[int, StateType], _Match | None]
_Matches = Mapping[StateType, Sequence[_Match | None]]
_Divide = Callable[[Group, StateType, _Matches], _Match | None]
_Order = Callable[[Group], tuple[Any, ...]]


def _by_rate(group: Group) -> tuple[Any, ...]:
    return (-group.busiest,)


def _alone(groups: Sequence[Group], type_: StateType) -> _Match:
    shares = tuple(share for group in groups for share in group.all_shares)
    return _Match(type_, shares, (), math.fsum(share.rate for share in shares), 1, 0)


def _forked(type_: StateType, own: tuple[Share, ...], left: _Match | None, right: _Match | None) -> _Match | None:
    if left is None or right is None:
        return None
    busiest = math.fsum(share.rate for share in own) + max(left.busiest, right.busiest)
    return _Match(type_, own, (left, right), busiest, left.leaves + right.leaves, 1 + max(left.height, right.height))


def _lowest(ways: Iterable[_Match | None]) -> _Match | None:
    return min((way for way in ways if way is not None), key=lambda way: way.worth, default=None)
