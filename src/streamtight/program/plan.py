"""Plans: trees of workers that run a fork/join program, and when such a tree is right (Definitions 4.5 and 4.6).

A worker is responsible for some shares of the input streams. Before it handles an event, it joins the states of its
children; then it forks its state for them again. Leaves never wait for anybody else.

>>> from streamtight.program.fork_join import Branch, ForkJoin, StateType
>>> from streamtight.stream.dependence import barrier
>>> from streamtight.stream.event import Kind
>>> Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
>>> class Windows(ForkJoin):
...     takes, depends = (Value, Barrier), barrier(Barrier)
...     whole, part = StateType(Value, Barrier), StateType(Value)
...     branches = (Branch(whole, part, part), Branch(part, part, part))
...     def fork(self, total, left, right): return total, 0
...     def join(self, left, right): return left + right
>>> program = Windows()
>>> values, barriers = InputStream("values", Value, lanes=2), InputStream("barriers", Barrier)
>>> one, two = (Worker("part", [share]) for share in values.shares)
>>> plan = Plan(program, [values, barriers], Worker("whole", barriers.shares, one, two))
>>> print(plan.show())
whole: barriers
├─ part: values 1/2
└─ part: values 2/2
>>> Plan(program, [values, barriers], Worker("whole", values.shares, Worker("part"), Worker("whole", barriers.shares)))
Traceback (most recent call last):
...
streamtight.errors.PlanError: plan for Windows, worker whole: needed a branch of Windows for whole and its children; \
came whole -> (part, whole). Try: one of whole -> (part, part), part -> (part, part)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamtight.errors import PlanError
from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.tags import Tags, TagSet, regions, tag_set, why_dependent

MOST_EVENTS = 1e18
"""A rate above this is a mistake."""
MESSAGES = 3
"""Between a worker and its child, for each event that is handled above: a request, a state up, a state down."""
NEAR, FAR = 0.0001, 0.001
"""What a message counts beside an event that is handled: to another worker, and more if it is in another place."""


class InputStream:
    """An input stream: its name, which tags come on it, how many events a second, and where it comes in.

    tags    a kind, tags, several of these; or a dict from these to their rates
    rate    events a second, all tags together; only ratios matter
    place   the name of the machine where it arrives
    lanes   how many lanes it has: events that are independent of each other need not stay on one. A plan may cut it
            into more
    """

    def __init__(self, name: str, tags: Any, *, rate: float = 1.0, place: str | None = None, lanes: int = 1) -> None:
        where = f"InputStream({name!r})"
        if not isinstance(name, str) or not name:
            raise PlanError(where, needed="a name", came=repr(name), hint='InputStream("values", Value)')
        if type(lanes) is not int or lanes < 1:
            raise PlanError(where, needed="lanes=, a number from 1", came=repr(lanes), hint="lanes=2")
        if place is not None and (not isinstance(place, str) or not place):
            raise PlanError(where, needed="place=, the name of a machine", came=repr(place), hint='place="east"')
        rates = tags if isinstance(tags, Mapping) else {tag_set(tags, where): rate}
        self.name, self.place, self.lanes = name, place, lanes
        self.rates: dict[Tags, float] = {}
        for given, each in rates.items():
            if isinstance(each, bool) or not isinstance(each, (int, float)) or not 0 <= each <= MOST_EVENTS:
                raise PlanError(where, needed="a rate from 0", came=repr(each)[:40], hint="rate=1000.0")
            parts = tag_set(given, where).parts
            for part in parts:
                self.rates[part] = self.rates.get(part, 0.0) + each / len(parts)
        if not self.rates:
            raise PlanError(where, needed="tags", came=repr(tags), hint='InputStream("values", Value)')
        for one, other in itertools.combinations(self.rates, 2):
            if one.overlaps(other):
                raise PlanError(where, needed="each tag once", came=f"{one} and {other}", hint="tags that are disjoint")

    @property
    def tags(self) -> TagSet:
        """All tags that come on it."""
        return TagSet(self.rates)

    @property
    def shares(self) -> tuple[Share, ...]:
        """Each of its tags on each of its lanes."""
        return tuple(
            Share(self.name, part, lane, self.lanes, rate / self.lanes, self.place)
            for part, rate in self.rates.items()
            for lane in range(self.lanes)
        )

    def __repr__(self) -> str:
        return f"InputStream({self.name!r}, {self.tags}, rate={sum(self.rates.values()):g})"


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker is responsible for: tags of a stream, or of a lane of it (an *implementation tag*)."""

    stream: str
    tags: Tags
    lane: int = 0
    lanes: int = 1
    rate: float = field(default=1.0, compare=False)
    place: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tags, Tags) or not 0 <= self.lane < self.lanes:
            raise PlanError(
                f"Share({self.stream!r}, ...)",
                needed="tags of one kind, and a lane from 0 to lanes - 1",
                came=f"{self.tags!r}, lane {self.lane} of {self.lanes}",
                hint="one of the shares of a stream: stream.shares",
            )

    def overlaps(self, other: Share) -> bool:
        """Whether an event may belong to both. Nothing is known of how lanes of different cuts lie to each other."""
        lanes_meet = self.lanes != other.lanes or self.lane == other.lane
        return self.stream == other.stream and lanes_meet and self.tags.overlaps(other.tags)

    def __str__(self) -> str:
        lane = f" {self.lane + 1}/{self.lanes}" if self.lanes > 1 else ""
        return f"{self.stream}{lane}"


class Worker:
    """A worker: the type of its state, what it is responsible for, and its two children, if any."""

    def __init__(
        self,
        state: str | StateType,
        shares: Iterable[Share] = (),
        left: Worker | None = None,
        right: Worker | None = None,
        *,
        place: str | None = None,
    ) -> None:
        if (left is None) != (right is None):
            raise PlanError(
                "Worker(...)", needed="two children or none", came="one", hint="Worker(state, shares, a, b)"
            )
        self.state_name = state.name if isinstance(state, StateType) else state
        self.shares, self.place = tuple(shares), place
        self.children: tuple[Worker, ...] = () if left is None or right is None else (left, right)

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return not self.children

    @property
    def rate(self) -> float:
        """How many events a second it handles itself."""
        return math.fsum(share.rate for share in self.shares)

    @property
    def tags(self) -> TagSet:
        """What it is responsible for itself."""
        return TagSet(share.tags for share in self.shares)

    @property
    def all_tags(self) -> TagSet:
        """What it and those below it are responsible for: what its wire is told it may see."""
        return TagSet(share.tags for worker in self.walk() for share in worker.shares)

    def walk(self) -> Iterator[Worker]:
        """It and all below it, parents first, left before right."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def leaves(self) -> list[Worker]:
        """Those of them that have no children."""
        return [worker for worker in self.walk() if worker.is_leaf]

    def __repr__(self) -> str:
        return f"{self.state_name}: {', '.join(map(str, self.shares)) or '-'}"


@dataclass(frozen=True, slots=True)
class Cost:
    """What a plan costs in a second, by the rates of its streams.

    busiest           events on the busiest way from the root to a leaf: these wait for each other
    busiest_leaf      events of the leaf that has most of them
    share_at_leaves   which part of all events is handled by leaves
    messages          between workers: for each event of an inner worker, a request to each worker below it, its state
                      up, and its new state down
    far               events that do not come where they are handled, and messages between workers in different places
    depth             how many workers are above the lowest leaf
    """

    busiest: float
    busiest_leaf: float
    share_at_leaves: float
    messages: float
    far: float
    depth: int

    @property
    def total(self) -> float:
        """One number for all, for comparing plans of one program: the busiest way, and a bit for each message."""
        return self.busiest + NEAR * self.messages + FAR * self.far


def cost_of(plan: Plan) -> Cost:
    """What a plan costs in a second.

    >>> from streamtight.program.fork_join import ForkJoin
    >>> from streamtight.stream.dependence import barrier
    >>> from streamtight.stream.event import Kind
    >>> Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
    >>> class Sums(ForkJoin):
    ...     takes, depends = (Value, Barrier), barrier(Barrier)
    ...     def fork(self, total, left, right): return total, 0
    ...     def join(self, left, right): return left + right
    >>> values, barriers = InputStream("values", Value, lanes=2, rate=100), InputStream("barriers", Barrier, rate=1)
    >>> one, two = (Worker("state", [share]) for share in values.shares)
    >>> cost_of(Plan(Sums(), [values, barriers], Worker("state", barriers.shares, one, two)))
    Cost(busiest=51.0, busiest_leaf=50.0, share_at_leaves=0.9900990099009901, messages=6.0, far=0.0, depth=1)
    """
    return tree_cost(plan.root, plan.streams)


def tree_cost(root: Worker, streams: Iterable[InputStream]) -> Cost:
    """What a tree of workers costs, whether it is a valid plan or not."""
    arrives = {stream.name: stream.place for stream in streams}

    def below(worker: Worker, waits: float) -> tuple[float, float, float, int]:
        """Of a worker and those below it: the busiest way, messages, far ones, depth."""
        far = math.fsum(share.rate for share in worker.shares if _apart(arrives[share.stream], worker.place))
        busiest, messages, depth, waits = 0.0, 0.0, 0, waits + worker.rate
        for child in worker.children:
            child_busiest, child_messages, child_far, child_depth = below(child, waits)
            busiest, depth = max(busiest, child_busiest), max(depth, child_depth + 1)
            messages += child_messages + MESSAGES * waits
            far += child_far + (MESSAGES * waits if _apart(worker.place, child.place) else 0.0)
        return worker.rate + busiest, messages, far, depth

    busiest, messages, far, depth = below(root, 0.0)
    at_leaves, every = (sum(each.rate for each in some) for some in (root.leaves, root.walk()))
    share_at_leaves = at_leaves / every if every else 1.0
    return Cost(busiest, max(leaf.rate for leaf in root.leaves), share_at_leaves, messages, far, depth)


def _apart(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and one != other


class Plan:
    """A tree of workers for a program and its input streams. Raises `PlanError` if it is not valid, with the reason.

    remarks   what there is to say about it: why there is one worker only, for instance
    """

    def __init__(
        self, program: ForkJoin, streams: Sequence[InputStream], root: Worker, *, remarks: Iterable[str] = ()
    ) -> None:
        self.program, self.streams, self.root, self.remarks = program, tuple(streams), root, tuple(remarks)
        self._where = f"plan for {program.name}"
        require_streams(program, self.streams)
        self._require_types()
        self._require_each_share_once()
        self._require_independent()

    @property
    def workers(self) -> list[Worker]:
        """All workers, parents first."""
        return list(self.root.walk())

    @property
    def leaves(self) -> list[Worker]:
        """The workers without children: these run side by side."""
        return self.root.leaves

    def type_of(self, worker: Worker) -> StateType:
        """The type of the state of a worker."""
        return next(each for each in self.program.state_types if each.name == worker.state_name)

    def branch_of(self, worker: Worker) -> Branch:
        """How a worker with children forks and joins."""
        wanted = tuple(each.state_name for each in (worker, *worker.children))
        branches = self.program.all_branches
        found = next((b for b in branches if (b.of.name, b.left.name, b.right.name) == wanted), None)
        if found is None:
            raise self._refuse(
                worker,
                f"a branch of {self.program.name} for {wanted[0]} and its children",
                f"{wanted[0]} -> ({', '.join(wanted[1:])})",
                f"one of {', '.join(map(repr, branches))}" if branches else "one worker: the program has no fork",
            )
        return found

    @property
    def share_at_leaves(self) -> float:
        """Which part of all events is handled by leaves, by the rates."""
        return self.cost.share_at_leaves

    @cached_property
    def cost(self) -> Cost:
        """What it costs in a second."""
        return cost_of(self)

    def stream_place(self, name: str) -> int:
        """The place of a stream in the order of all: it decides between events of equal time and kind."""
        return self._places[name]

    @cached_property
    def _places(self) -> dict[str, int]:
        return {stream.name: place for place, stream in enumerate(self.streams)}

    def show(self) -> str:
        """The tree as text: for each worker the type of its state and what it is responsible for."""
        return "\n".join(_drawn(self.root, self._one_tag_streams()))

    def __repr__(self) -> str:
        return self.show()

    def picture(self) -> str:
        """The tree as an SVG picture, with rates and places; notebooks show it."""
        from streamtight.program.plan_picture import picture_of

        return picture_of(self)

    def _repr_svg_(self) -> str:
        return self.picture()

    def _one_tag_streams(self) -> frozenset[str]:
        return frozenset(stream.name for stream in self.streams if len(stream.rates) == 1)

    # -- validity ----------------------------------------------------------------------------------------------------

    def _refuse(self, worker: Worker | None, needed: str, came: str, hint: str) -> PlanError:
        where = self._where if worker is None else f"{self._where}, worker {worker.state_name}"
        return PlanError(where, needed=needed, came=came, hint=hint)

    def _require_types(self) -> None:
        """(V1), and what Definition 4.2 asks besides: a type that takes all tags of its wire, a root of init's type."""
        program, names = self.program, {each.name: each for each in self.program.state_types}
        workers = self.workers
        twice = next((worker for worker in workers if sum(each is worker for each in workers) > 1), None)
        if twice is not None:
            raise self._refuse(twice, "each worker in one place of the tree", "the same in two", "two workers")
        for worker in workers:
            if worker.state_name not in names:
                raise self._refuse(
                    worker, f"a state type of {program.name}", repr(worker.state_name), f"one of {', '.join(names)}"
                )
            type_ = names[worker.state_name]
            outside = next((share for share in worker.shares if not type_.handles.covers(TagSet([share.tags]))), None)
            if outside is not None:
                raise self._refuse(
                    worker,
                    f"shares that its state type takes: {type_.handles}",
                    f"{outside}, with {outside.tags}",
                    "another state type for this worker, or another worker for this share",
                )
            if not type_.handles.covers(worker.all_tags):
                raise self._refuse(
                    worker,
                    f"below it what its state type takes: {type_.handles}",
                    f"{worker.all_tags}",
                    "a state type that takes all that comes to the workers below",
                )
            if worker.children:
                self.branch_of(worker)
        first = program.state_types[0]
        if self.root.state_name != first.name:
            raise self._refuse(self.root, f"a root of the type of init(), {first}", self.root.state_name, f"{first}")

    def _require_each_share_once(self) -> None:
        """Every event of the streams belongs to exactly one worker."""
        handled = [(share, worker) for worker in self.workers for share in worker.shares]
        known = {stream.name: stream for stream in self.streams}
        for share, worker in handled:
            stream = known.get(share.stream)
            if stream is None or not stream.tags.covers(TagSet([share.tags])):
                raise self._refuse(
                    worker,
                    f"shares of {', '.join(known)}",
                    f"{share}, {share.tags}",
                    "the streams that this plan is for" if stream is None else f"tags of this stream: {stream.tags}",
                )
        for stream in self.streams:
            mine = [(share, worker) for share, worker in handled if share.stream == stream.name]
            for (one, first), (other, second) in itertools.combinations(mine, 2):
                if one.overlaps(other):
                    raise self._refuse(
                        second,
                        "each share with one worker",
                        f"{other}, {other.tags}, also with {first}",
                        "only one of them",
                    )
            lost = next((part for part in stream.rates if not _is_covered(part, [share for share, _ in mine])), None)
            if lost is not None:
                raise self._refuse(
                    None,
                    "a worker for each event",
                    f"nobody is responsible for {lost} on {stream.name!r}",
                    f"a worker with shares of {stream.name!r}",
                )

    def _require_independent(self) -> None:
        """(V2): workers that are not on one path handle independent tags."""
        depends = self.program.depends
        for worker in self.workers:
            if not worker.children:
                continue
            left, right = worker.children
            if why_dependent(depends, left.all_tags, right.all_tags) is None:
                continue
            for one, other in itertools.product(left.walk(), right.walk()):
                why = why_dependent(depends, one.tags, other.tags)
                if why is not None:
                    raise self._refuse(
                        worker,
                        "independent tags on its two sides",
                        f"{one} on the left, {other} on the right: {why}",
                        "one of the two shares at this worker, so that its children are joined before",
                    )


def require_streams(program: ForkJoin, streams: Sequence[InputStream]) -> None:
    """Raise unless these streams can be the input of a program."""
    where = f"streams of {program.name}"
    if not streams or not all(isinstance(stream, InputStream) for stream in streams):
        raise PlanError(
            where, needed="InputStreams", came=repr(list(streams))[:200], hint='InputStream("values", Value)'
        )
    names = [stream.name for stream in streams]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise PlanError(where, needed="names that differ", came=f"{twice!r} twice", hint=f"{twice}_1, {twice}_2")
    for stream in streams:
        for part in stream.rates:
            if part.kind not in program.takes:
                raise PlanError(
                    where,
                    needed=f"kinds of {program.name}: {', '.join(kind.name for kind in program.takes)}",
                    came=f"{part.kind.name} on {stream.name!r}",
                    hint=f"takes = (..., {part.kind.name}), or a plan for another program",
                )
            for name, _ in part.fields:
                if name not in program.tag_fields(part.kind):
                    raise PlanError(
                        where,
                        needed=f"tags by {', '.join(program.tag_fields(part.kind)) or 'the kind alone'}",
                        came=f"{part} on {stream.name!r}",
                        hint=f"tag = (..., {name!r}) in {program.name}",
                    )


def _is_covered(part: Tags, shares: Sequence[Share]) -> bool:
    """Whether every event of these tags belongs to one of the shares, which do not overlap."""
    for places in regions(part, [share.tags for share in shares]):
        lanes = {(shares[place].lane, shares[place].lanes) for place in places}
        if not any(all((lane, count) in lanes for lane in range(count)) for _, count in lanes):
            return False
    return True


def _drawn(worker: Worker, plain: frozenset[str]) -> Iterator[str]:
    def told(share: Share) -> str:
        return str(share) if share.stream in plain and share.tags.fields == () else f"{share} {share.tags}"

    place = f"  @{worker.place}" if worker.place else ""
    yield f"{worker.state_name}: {', '.join(map(told, worker.shares)) or '-'}{place}"
    for child in worker.children:
        last = child is worker.children[-1]
        first, *rest = _drawn(child, plain)
        yield f"{'└─ ' if last else '├─ '}{first}"
        yield from (f"{'   ' if last else '│  '}{line}" for line in rest)
