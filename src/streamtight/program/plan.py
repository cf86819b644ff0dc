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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from streamtight.errors import PlanError
from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.tags import NO_TAGS, Bucket, Tags, TagSet, tag_set, why_dependent


class InputStream:
    """An input stream: its name, which tags come on it, how many events a second, and where it comes in.

    tags    a kind, tags, several of these; or a dict from these to their rates
    rate    events a second, all tags together; only ratios matter
    place   the name of the machine where it arrives
    lanes   into how many it may be cut: events that are independent of each other need not stay on one
    """

    def __init__(self, name: str, tags: Any, *, rate: float = 1.0, place: str | None = None, lanes: int = 1) -> None:
        where = f"InputStream({name!r})"
        if not isinstance(name, str) or not name:
            raise PlanError(where, needed="a name", came=repr(name), hint='InputStream("values", Value)')
        if type(lanes) is not int or lanes < 1:
            raise PlanError(where, needed="lanes=, a number from 1", came=repr(lanes), hint="lanes=2")
        rates = tags if isinstance(tags, Mapping) else {tag_set(tags, where): rate}
        self.name, self.place, self.lanes = name, place, lanes
        self.rates: dict[Tags, float] = {}
        for given, each in rates.items():
            if isinstance(each, bool) or not isinstance(each, (int, float)) or not 0 <= each < float("inf"):
                raise PlanError(where, needed="a rate from 0", came=repr(each), hint="rate=1000.0")
            parts = tag_set(given, where).parts
            for part in parts:
                self.rates[part] = self.rates.get(part, 0.0) + each / len(parts)
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

    def overlaps(self, other: Share) -> bool:
        """Whether an event may belong to both."""
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


class Plan:
    """A tree of workers for a program and its input streams. Raises `PlanError` if it is not valid, with the reason."""

    def __init__(self, program: ForkJoin, streams: Sequence[InputStream], root: Worker) -> None:
        self.program, self.streams, self.root = program, tuple(streams), root
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
        return self._branches[id(worker)]

    @cached_property
    def share_at_leaves(self) -> float:
        """Which part of all events is handled by leaves, by the rates."""
        rates = [(worker.is_leaf, share.rate) for worker in self.workers for share in worker.shares]
        every = sum(rate for _, rate in rates)
        return sum(rate for at_leaf, rate in rates if at_leaf) / every if every else 1.0

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

    def _one_tag_streams(self) -> frozenset[str]:
        return frozenset(stream.name for stream in self.streams if len(stream.rates) == 1)

    # -- validity ----------------------------------------------------------------------------------------------------

    def _refuse(self, worker: Worker | None, needed: str, came: str, hint: str) -> PlanError:
        where = self._where if worker is None else f"{self._where}, worker {worker.state_name}"
        return PlanError(where, needed=needed, came=came, hint=hint)

    def _require_types(self) -> None:
        """(V1), and what Definition 4.2 asks besides: a type that takes all tags of its wire, a root of init's type."""
        program, names = self.program, {each.name: each for each in self.program.state_types}
        self._branches: dict[int, Branch] = {}
        for worker in self.workers:
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
                self._branches[id(worker)] = self._required_branch(worker)
        first = program.state_types[0]
        if self.root.state_name != first.name:
            raise self._refuse(self.root, f"a root of the type of init(), {first}", self.root.state_name, f"{first}")

    def _required_branch(self, worker: Worker) -> Branch:
        wanted = tuple(each.state_name for each in (worker, *worker.children))
        branches = self.program.all_branches
        found = next((b for b in branches if (b.of.name, b.left.name, b.right.name) == wanted), None)
        if found is None:
            raise self._refuse(
                worker,
                f"a branch of {self.program.name} for {wanted[0]} and its children",
                f"{wanted[0]} -> ({wanted[1]}, {wanted[2]})",
                f"one of {', '.join(map(repr, branches))}" if branches else "one worker: the program has no fork",
            )
        return found

    def _require_each_share_once(self) -> None:
        """Every event of the streams belongs to exactly one worker."""
        handled = [(share, worker) for worker in self.workers for share in worker.shares]
        for (one, first), (other, second) in itertools.combinations(handled, 2):
            if one.overlaps(other):
                raise self._refuse(
                    second,
                    "each share with one worker",
                    f"{other}, {other.tags}, also with {first}",
                    "only one of them",
                )
        known = {stream.name: stream for stream in self.streams}
        for share, worker in handled:
            stream = known.get(share.stream)
            if stream is None or not any(share.tags.within(part) for part in stream.rates):
                raise self._refuse(
                    worker,
                    f"shares of {', '.join(known)}",
                    f"{share}, {share.tags}",
                    "the streams that this plan is for" if stream is None else f"tags of this stream: {stream.tags}",
                )
        for stream in self.streams:
            mine = [share for share, _ in handled if share.stream == stream.name]
            lost = next((part for part in stream.rates if not _is_covered(part, mine)), None)
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
    mine = [share for share in shares if share.tags.overlaps(part)]
    whole = NO_TAGS
    for lanes in {share.lanes for share in mine}:
        by_lane = [TagSet(s.tags for s in mine if s.lanes == lanes and s.lane == lane) for lane in range(lanes)]
        common = set(by_lane[0].parts).intersection(*(each.parts for each in by_lane))
        whole |= TagSet(common)
    return _covers(whole.parts, part)


def _covers(parts: Sequence[Tags], wanted: Tags) -> bool:
    """Whether these parts, together, hold all wanted tags: one does, or all buckets of a field, or each value does."""
    if any(wanted.within(part) for part in parts):
        return True
    for name in dict.fromkeys(name for part in parts for name, _ in part.fields):
        values = wanted.values(name)
        if isinstance(values, frozenset) and len(values) > 1:
            return all(_covers(parts, _with(wanted, name, frozenset([value]))) for value in values)
        counts = {each.of for part in parts if isinstance(each := part.values(name), Bucket)}
        if values is None and counts:
            count = max(counts)
            return all(_covers(parts, _with(wanted, name, Bucket(index, count))) for index in range(count))
    return False


def _with(part: Tags, name: str, values: Any) -> Tags:
    kept = [(field_, value) for field_, value in part.fields if field_ != name]
    return Tags(part.kind, tuple(sorted([*kept, (name, values)], key=lambda each: each[0])))


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
