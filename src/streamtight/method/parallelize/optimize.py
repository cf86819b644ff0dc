"""Which plan is best for a program and its streams?

A plan is found in four steps (4.4.3 of the paper is the greedy one):

1. *Cut*, only if a number of workers is asked for: keys into buckets, and tags that are independent of themselves
   into lanes.
2. *Group*: what is dependent is taken apart by what connects it. The shares are a graph; those that are removed until
   two components are left belong to a worker above them, and so on below. Greedy removes the rarest first.
3. *Match* the groups with the branches of the program: which type of state each worker has, who is left and right.
4. *Place*: each worker on a machine, so that as few messages as possible go from one to another.

What is best is one number, `Cost.total`: the events on the busiest way from the root to a leaf, since these wait for
each other, and a bit for each message: `NEAR` between workers, `FAR` between places. An event of an inner worker
costs three messages for each worker below it; an event that arrives elsewhere than it is handled costs one.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from streamtight.errors import PlanError
from streamtight.method.parallelize.cut import cut_again, cuts, put_together
from streamtight.method.parallelize.group import Graph, Search, at_most
from streamtight.method.parallelize.match import Matcher
from streamtight.method.parallelize.place import heaviest_first, placed_by_messages, placed_by_rate
from streamtight.program.fork_join import ForkJoin
from streamtight.program.plan import InputStream, Plan, Share, Worker, require_streams, tree_cost
from streamtight.program.tags import TagSet, why_dependent

Optimizer = Literal["best", "greedy", "sequential"]


def plan(
    program: ForkJoin,
    streams: Sequence[InputStream],
    *,
    workers: int | None = None,
    places: Mapping[str, int | None] | None = None,
    seconds: float = 1.0,
    optimizer: Optimizer = "best",
    seed: int = 0,
) -> Plan:
    """A valid plan for a program and its streams; `remarks` of it say why it has one worker only, if so.

    workers     how many leaves there may be; streams are cut if they are too few. None: one for each share that can be
                alone, and nothing is cut
    places      the machines where workers may run, each with the number of leaves that it has room for (None: any);
                if not given, where streams arrive
    seconds     for the search. It is bounded by its steps first, so that the same seed gives the same plan
    optimizer   "best"; "greedy", the one of the paper; "sequential", one worker

    Without a number of workers, "best" never has fewer events at leaves than "greedy" has, if that has several workers.

    >>> from streamtight.program.tags import tags
    >>> from streamtight.stream.dependence import barrier, same
    >>> from streamtight.stream.event import Kind
    >>> Add, Read = Kind("Add", time=int, key=int), Kind("Read", time=int, key=int)
    >>> class Counters(ForkJoin):
    ...     takes, depends = (Add, Read), barrier(Read) & same("key")
    ...     def fork(self, counts, left, right): ...
    ...     def join(self, left, right): ...
    >>> print(plan(Counters(), [InputStream("adds", Add, rate=90), InputStream("reads", Read)], workers=2).show())
    state: -
    ├─ state: adds Add(key=#0/2), reads Read(key=#0/2)
    └─ state: adds Add(key=#1/2), reads Read(key=#1/2)
    >>> one_key = [InputStream("adds", tags(Add, key=1), rate=90), InputStream("reads", tags(Read, key=1))]
    >>> print(plan(Counters(), one_key, workers=2).show())
    state: reads Read(key=1)
    ├─ state: adds 1/2 Add(key=1)
    └─ state: adds 2/2 Add(key=1)
    """
    room = _required(program, streams, workers, places, seconds, optimizer)
    asked = _Asked(optimizer, workers, min(workers or math.inf, sum(room.values()) if places else math.inf))
    most = asked.most
    shares = [share for stream in streams for share in stream.shares]
    match = Matcher(program, [stream.place for stream in streams])
    alone = Worker(program.state_types[0], shares)

    if optimizer == "sequential" or most == 1 or not program.all_branches:
        return _finished(program, streams, placed_by_rate(alone, heaviest_first(streams, room)), asked)

    graph = Graph(program, shares)
    by_greed = graph.by_greed(graph.everything)
    if optimizer == "greedy":
        tree = match.one_by_one(at_most(by_greed, most))
        has_limits = any(math.isfinite(each) for each in room.values())
        placed = placed_by_messages(tree, room) if has_limits else placed_by_rate(tree, list(room))
        return _finished(program, streams, placed, asked)

    deadline = time.monotonic() + seconds
    greedy_tree = match.one_by_one(by_greed)
    at_least = tree_cost(greedy_tree, streams).share_at_leaves if workers is None and greedy_tree.children else 0.0
    found: list[tuple[float, Worker]] = []

    def consider(trees: Iterable[Worker]) -> None:
        for tree in trees:
            placed = placed_by_messages(tree, room)
            cost = tree_cost(placed, streams)
            if cost.share_at_leaves >= at_least - 1e-12:
                found.append((cost.total, placed))

    limited = at_most(by_greed, most)
    consider([*match.balanced(limited), match.one_by_one(limited)])
    for cut in cuts(program, shares, None if workers is None else int(most)):
        if cut is not shares and time.monotonic() > deadline:
            break
        for group in Search(Graph(program, cut), match.takers, deadline, seed).groups(most):
            consider(match.balanced(group))
    if workers is not None:
        again = cut_again(_first_of_best(found), streams)
        for group in Search(Graph(program, again), match.takers, deadline, seed).groups(most):
            consider(match.balanced(group))
    return _finished(program, streams, put_together(_first_of_best(found), streams), asked)


def _first_of_best(found: Sequence[tuple[float, Worker]]) -> Worker:
    """Of trees that cost alike, the first: it has fewer shares."""
    least = min(total for total, _ in found)
    return next(tree for total, tree in found if total <= least * (1 + 1e-9))


# -- what is said about it -------------------------------------------------------------------------------------------


def _why_one_worker(program: ForkJoin, shares: list[Share], asked: _Asked) -> str:
    if asked.optimizer == "sequential" or asked.workers == 1:
        return "one was asked for"
    if asked.most == 1:
        return "places have room for one only"
    if not program.all_branches:
        return f"{program.name} has no fork and join"
    if asked.optimizer == "greedy" and _can_be_parallel(program, shares):
        return 'greed found no way to take the streams apart; optimizer="best" tries more'
    may_cut = asked.workers is not None and asked.optimizer == "best"
    in_two = any(_can_be_parallel(program, cut) for cut in cuts(program, shares, 2))
    if _can_be_parallel(program, shares) or (may_cut and in_two):
        return "more would cost more than they save, since they would wait for each other too often"
    hint = "; streams are cut if a number of workers is asked for" if in_two else ""
    return f"{_what_binds(program, shares)}{hint}"


def _can_be_parallel(program: ForkJoin, shares: list[Share]) -> bool:
    matcher = Matcher(program, [share.place for share in shares])
    groups = Search(Graph(program, shares), matcher.takers, math.inf, 0).groups(math.inf)
    return any(tree.children for group in groups for tree in matcher.balanced(group))


def _what_binds(program: ForkJoin, shares: list[Share]) -> str:
    """Why shares that cannot be apart cannot."""
    graph = Graph(program, shares)
    for one, other in itertools.combinations(range(len(shares)), 2):
        if graph.independent(one, other):
            apart = " and ".join(f"{shares[each]}, {shares[each].tags}," for each in (one, other))
            return f"{apart} are independent, but no branch of {program.name} has types that carry them apart"
    if len(shares) == 1:
        return f"{shares[0]} is all there is"
    second, first = sorted(shares, key=lambda share: share.rate)[-2:]
    why = why_dependent(program.depends, TagSet([first.tags]), TagSet([second.tags]))
    others = "" if len(shares) == 2 else ", and so do every two others"
    return f"{first} (rate {first.rate:g}) and {second} (rate {second.rate:g}) depend on each other{others}: {why}"


# -- the question ----------------------------------------------------------------------------------------------------


def _required(
    program: ForkJoin,
    streams: Sequence[InputStream],
    workers: int | None,
    places: Mapping[str, int | None] | None,
    seconds: float,
    optimizer: str,
) -> dict[str, float]:
    """The room of each place. Raises `PlanError` if the question is wrong."""
    where = "plan(...)"
    if not isinstance(program, ForkJoin):
        raise PlanError(where, needed="a ForkJoin program", came=repr(program)[:200], hint="plan(Windows(), streams)")
    require_streams(program, streams)
    if optimizer not in ("best", "greedy", "sequential"):
        raise PlanError(
            where, needed='optimizer="best", "greedy" or "sequential"', came=repr(optimizer), hint='optimizer="best"'
        )
    if workers is not None and (type(workers) is not int or workers < 1):
        raise PlanError(where, needed="workers=, a number from 1", came=repr(workers), hint="workers=4")
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not seconds >= 0:
        raise PlanError(where, needed="seconds=, a number from 0", came=repr(seconds), hint="seconds=1.0")
    if places is None:
        return {stream.place: math.inf for stream in streams if stream.place is not None}
    if not isinstance(places, Mapping) or not places:
        raise PlanError(where, needed="places=, names and room", came=repr(places), hint='places={"east": 4}')
    for name, room in places.items():
        if not isinstance(name, str) or not (room is None or (type(room) is int and room >= 0)):
            raise PlanError(
                where, needed="a place with its number of leaves", came=f"{name!r}: {room!r}", hint='{"east": 4}'
            )
    rooms = {name: math.inf if room is None else float(room) for name, room in places.items() if room != 0}
    if not rooms:
        raise PlanError(where, needed="room for a worker", came=repr(dict(places)), hint='places={"east": 4}')
    return rooms


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for; `most` leaves have room."""

    optimizer: str
    workers: int | None
    most: float


def _finished(program: ForkJoin, streams: Sequence[InputStream], tree: Worker, asked: _Asked) -> Plan:
    leaves, remarks = len(tree.leaves), []
    if leaves == 1:
        shares = [share for stream in streams for share in stream.shares]
        remarks.append(f"one worker: {_why_one_worker(program, shares, asked)}")
    elif asked.workers is not None and leaves < asked.workers:
        why = "places have no room for more" if leaves == asked.most else "no better plan with more was found"
        remarks.append(f"{leaves} leaves instead of {asked.workers}: {why}")
    return Plan(program, streams, tree, remarks=remarks)
