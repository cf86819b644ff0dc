"""Fork/join programs for the laws, random plans and inputs for them, and the slow, obvious twins of what runs them."""

from __future__ import annotations

import copy
import functools
import itertools
import math
import operator
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from streamtight.program.fork_join import END, Branch, ForkJoin, Heartbeat, Key, StateType
from streamtight.program.mailbox import Sent
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.tags import Bucket, Tags, TagSet, tags, why_dependent
from streamtight.stream.dependence import Dependence, barrier, between, same
from streamtight.stream.event import Event, Kind

KEYS = (0, 1, 4)
"""Keys of both of two buckets."""

Value, Barrier = Kind("Value", time=int, n=int), Kind("Barrier", time=int)
Add, Read, Sum = Kind("Add", time=int, key=int, n=int), Kind("Read", time=int, key=int), Kind("Sum", time=int)
Note = Kind("Note", time=int, n=int)
View, Get = Kind("View", time=int, key=int), Kind("Get", time=int, key=int)
Move = Kind("Move", time=int, key=int, n=int)
Told = Kind("Told", what=str, time=int, value=object)


def told(event: Event, value: Any) -> Event:
    """An output of any program here: what was asked, and the answer."""
    return Told(repr(event), event.time, value)


# -- programs --------------------------------------------------------------------------------------------------------


class Windows(ForkJoin):
    """Event-based windows: sums of the values between barriers."""

    takes, gives = (Value, Barrier), (Told,)
    depends = barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self):
        return 0

    def update(self, total, event, emit):
        if event.kind is Value:
            return total + event.n
        emit(told(event, total))
        return 0

    def fork(self, total, left, right):
        return total, 0

    def join(self, left, right):
        return left + right


class ForgetfulWindows(Windows):
    """Not consistent: what happened on the right is lost."""

    def join(self, left, right):
        return left


class Fraud(ForkJoin):
    """Fraud detection, variant A: values are compared with the sum of the last window.

    Without the type `part`, a barrier could come on the right wire alone, where the sum is not.
    """

    takes, gives = (Value, Barrier), (Told,)
    depends = barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self):
        return (0, 0)

    def update(self, state, event, emit):
        before, now = state
        if event.kind is Value:
            if before % 3 == event.n % 3:
                emit(told(event, before))
            return (before, now + event.n)
        emit(told(event, now))
        return (now, 0)

    def fork(self, state, left, right):
        return state, (state[0], 0)

    def join(self, left, right):
        return (left[0], left[1] + right[1])


class Counters(ForkJoin):
    """Figure 15: a map from keys to counters; its forks ask who will see the reads."""

    takes, gives = (Add, Read), (Told,)
    depends = barrier(Read) & same("key")

    def init(self):
        return {}

    def update(self, counts, event, emit):
        if event.kind is Add:
            counts[event.key] = counts.get(event.key, 0) + event.n
        else:
            emit(told(event, counts.pop(event.key, 0)))
        return counts

    def fork(self, counts, left, right):
        here = {key: count for key, count in counts.items() if left(Read, key=key)}
        return here, {key: count for key, count in counts.items() if key not in here}

    def join(self, left, right):
        for key, count in right.items():
            left[key] = left.get(key, 0) + count
        return left


class PageViews(ForkJoin):
    """The page-view join. Who only looks has another type of state: pairs, which never change."""

    @staticmethod
    def look(known, event, emit):
        emit(told(event, dict(known).get(event.key)))
        return known

    takes, gives = (Move, View, Get), (Told,)
    depends = barrier(Move) & same("key")
    whole, looking = StateType(Move, View, Get), StateType(View, Get, update=look)
    branches = (
        Branch(whole, whole, whole, fork="by_user", join="united"),
        Branch(whole, whole, looking, fork="look_beside", join="kept"),
        Branch(whole, looking, looking, fork="only_look", join="again"),
        Branch(looking, looking, looking, fork="share", join="kept"),
    )

    def init(self):
        return {}

    def update(self, homes, event, emit):
        if event.kind is Move:
            homes[event.key] = event.n
        emit(told(event, homes.get(event.key)))
        return homes

    @staticmethod
    def seen(side, key):
        return any(side(kind, key=key) for kind in (Move, View, Get))

    def by_user(self, homes, left, right):
        there = {key: home for key, home in homes.items() if self.seen(right, key)}
        return {key: home for key, home in homes.items() if self.seen(left, key) or key not in there}, there

    def united(self, left, right):
        return left | right

    def look_beside(self, homes, left, right):
        return homes, tuple(homes.items())

    def only_look(self, homes, left, right):
        return tuple(homes.items()), tuple((key, home) for key, home in homes.items() if self.seen(right, key))

    def share(self, known, left, right):
        return known, known

    def kept(self, left, right):
        return left

    def again(self, left, right):
        return dict(left)


class Monoid(NamedTuple):
    """A commutative way to put values together."""

    name: str
    unit: Any
    of: Callable[[int], Any]
    both: Callable[[Any, Any], Any]


MONOIDS = (
    Monoid("sum", 0, lambda n: n, operator.add),
    Monoid("most", -math.inf, lambda n: n, max),
    Monoid("xor", 0, lambda n: n, operator.xor),
    Monoid("divisor", 0, lambda n: n, math.gcd),
    Monoid("product", 1, lambda n: n + 2, lambda a, b: a * b % 7),
    Monoid("bag", (), lambda n: (n,), lambda a, b: tuple(sorted(a + b))),
    Monoid("mean", (0, 0), lambda n: (n, 1), lambda a, b: (a[0] + b[0], a[1] + b[1])),
)
AFTER_READ: tuple[Callable[[Monoid, Any], Any], ...] = (
    lambda monoid, value: value,
    lambda monoid, value: monoid.unit,
    lambda monoid, value: monoid.of(len(repr(value))),
)


def ledger(monoid: Monoid, after: Callable[[Monoid, Any], Any], takes: Sequence[Kind], loose: bool) -> ForkJoin:
    """Values put together by keys; reads of a key and of everything; notes that nothing depends on."""
    reads: Dependence = barrier(Read) & same("key", of=[Add, Read])
    everything = between(Sum, Add) | between(Sum, Read) | between(Sum, Sum)

    class Ledger(ForkJoin):
        gives = (Told,)
        depends = reads | everything

        # A state knows its wire, so that it shows if forks and joins are not paired like brackets.
        def init(self):
            return ("", {})

        def update(self, state, event, emit):
            wire, values = state
            if event.kind is Note:
                emit(told(event, event.n))
                return state
            if event.kind is Sum:
                emit(told(event, tuple(sorted(values.items()))))
                return (wire, {})
            value = values.pop(event.key, monoid.unit)
            if event.kind is Add:
                value = monoid.both(value, monoid.of(event.n))
            else:
                emit(told(event, value))
                value = after(monoid, value)
            if value != monoid.unit:
                values[event.key] = value
            return (wire, values)

        def fork(self, state, left, right):
            wire, values = state
            here, there = {}, {}
            for key, value in values.items():
                to_left = left(Read, key=key) or left(Sum)
                to_right = right(Read, key=key) or right(Sum)
                # Where nobody asks, any side will do.
                (there if to_right or (loose and key % 2 and not to_left) else here)[key] = value
            return (wire + "l", here), (wire + "r", there)

        def join(self, left, right):
            (one, values), (other, more) = left, right
            assert one[:-1] == other[:-1]
            assert (one[-1], other[-1]) == ("l", "r")
            for key, value in more.items():
                both = monoid.both(values.pop(key, monoid.unit), value)
                if both != monoid.unit:
                    values[key] = both
            return (one[:-1], values)

    Ledger.takes = tuple(takes)
    return Ledger()


@st.composite
def ledgers(draw: st.DrawFn) -> ForkJoin:
    """Random consistent programs."""
    takes = draw(st.permutations([Add, Read, Sum, Note]))
    return ledger(draw(st.sampled_from(MONOIDS)), draw(st.sampled_from(AFTER_READ)), takes, draw(st.booleans()))


programs = st.one_of(
    ledgers(),
    st.sampled_from([PageViews, Counters, Fraud, Windows]).map(lambda program: program()),
    st.builds(PageViews),
)


# -- plans and inputs ------------------------------------------------------------------------------------------------

Items = list[Event | Heartbeat]


class Case(NamedTuple):
    """A program, a plan for it, and what comes on its streams."""

    plan: Plan
    streams: dict[str, Items]

    @property
    def program(self) -> ForkJoin:
        """What the plan runs."""
        return self.plan.program

    def __repr__(self) -> str:
        return f"{self.program.name}\n{self.plan.show()}\n{self.streams}"


def dependent(program: ForkJoin, one: Share, other: Share) -> bool:
    """Whether events of these shares may be dependent."""
    return why_dependent(program.depends, TagSet([one.tags]), TagSet([other.tags])) is not None


def _pieces(chance: random.Random, kind: Kind) -> list[TagSet]:
    """Tags of a kind, in disjoint pieces."""
    if "key" not in kind.fields:
        return [tags(kind)]
    return chance.choice(
        [
            [tags(kind)],
            [tags(kind, key=0), tags(kind, key={1, 4})],
            [tags(kind, key=key) for key in KEYS],
            [tags(kind, key=Bucket(index, of=2)) for index in range(2)],
            [tags(kind, key=chance.choice(KEYS))],
        ]
    )


def input_streams(program: ForkJoin, chance: random.Random) -> list[InputStream]:
    """Some streams for a program."""
    streams = []
    for number in range(chance.randint(1, 4)):
        kinds = chance.sample(list(program.takes), chance.randint(1, min(2, len(program.takes))))
        rates = {piece: 1.0 for kind in kinds for piece in _pieces(chance, kind)}
        streams.append(InputStream(f"s{number}", rates, lanes=chance.choice([1, 1, 2, 3])))
    return streams


def _components(program: ForkJoin, shares: Sequence[Share]) -> list[list[Share]]:
    found: list[list[Share]] = []
    for share in shares:
        touched = [each for each in found if any(dependent(program, share, other) for other in each)]
        found = [each for each in found if each not in touched] + [[share, *itertools.chain(*touched)]]
    return found


def tree(program: ForkJoin, type_: StateType, shares: Sequence[Share], chance: random.Random, depth: int = 4) -> Worker:
    """Some tree of workers for these shares: some are taken out until the others fall apart."""
    branches = [branch for branch in program.all_branches if branch.of is type_]
    if branches and depth and chance.random() < (0.9 if len(shares) > 1 else 0.1):
        # Mostly those that others depend on: else hardly anything would be left for the leaves.
        rivals = {share: sum(dependent(program, share, other) for other in shares) for share in shares}
        left_over = sorted(shares, key=lambda share: (rivals[share] if chance.random() < 0.9 else 0, chance.random()))
        own = []
        while left_over and (len(_components(program, left_over)) < 2 or chance.random() < 0.1):
            own.append(left_over.pop())
        sides: list[list[Share]] = [[], []]
        for component in _components(program, left_over):
            chance.choice(sides).extend(component)
        branch = chance.choice(branches)
        types = (branch.left, branch.right)
        if all(t.handles.covers(TagSet(s.tags for s in side)) for t, side in zip(types, sides, strict=True)):
            below = [tree(program, t, side, chance, depth - 1) for t, side in zip(types, sides, strict=True)]
            return Worker(type_, own, *below)
    return Worker(type_, shares)


def plan_for(program: ForkJoin, streams: Sequence[InputStream], chance: random.Random) -> Plan:
    """Some plan."""
    shares = [share for stream in streams for share in stream.shares]
    return Plan(program, streams, tree(program, program.state_types[0], shares, chance))


@st.composite
def items_of(draw: st.DrawFn, program: ForkJoin, stream: InputStream) -> Items:
    """What may come on a stream: many events of equal times, and heartbeats."""
    parts = sorted(stream.rates, key=repr)
    events = []
    # Left alone, Hypothesis draws hardly any long list.
    for _ in range(draw(st.sampled_from([3, 2, 4, 5, 6, 8, 1, 0]))):
        part = draw(st.sampled_from(parts))
        values = part.values("key")
        chosen = {"time": draw(st.integers(0, 5)), "n": draw(st.integers(0, 3))}
        if "key" in part.kind.fields:
            chosen["key"] = draw(st.sampled_from([key for key in KEYS if values is None or key in values]))
        events.append(part.kind(**{name: chosen[name] for name in part.kind.names}))
    items: Items = []
    events.sort(key=program.key)
    for event, after in itertools.zip_longest(events, events[1:]):
        items.append(event)
        silent = range(event.time, 7 if after is None else after.time)
        if silent and draw(st.booleans()):
            items.append(Heartbeat(draw(st.sampled_from(silent))))
    return items


@st.composite
def cases(draw: st.DrawFn, of: st.SearchStrategy[ForkJoin] = programs) -> Case:
    """A program, a plan, and input."""
    program = draw(of)
    chance = random.Random(draw(st.integers(0, 10**6)))
    streams = input_streams(program, chance)
    plan = plan_for(program, streams, chance)
    return Case(plan, {stream.name: draw(items_of(program, stream)) for stream in streams})


# -- twins -----------------------------------------------------------------------------------------------------------


def in_order(program: ForkJoin, streams: Mapping[str, Iterable[Event | Heartbeat]]) -> list[Event]:
    """sort_O: by time, kind, stream, and place on the stream."""
    entries = [
        (item.time, list(program.takes).index(item.kind), place, position, item)
        for place, items in enumerate(streams.values())
        for position, item in enumerate(items)
        if isinstance(item, Event)
    ]
    return [entry[-1] for entry in sorted(entries, key=lambda entry: entry[:-1])]


def updated(program: ForkJoin, events: Iterable[Event]) -> tuple[Any, list[Event]]:
    """`spec`: the state after these events, and the outputs."""
    state, outputs = program.init(), []
    for event in events:
        state = program.update(copy.deepcopy(state), event, outputs.append)
    return state, outputs


Predicate = frozenset[Tags]


def every_tag(program: ForkJoin) -> Predicate:
    """The tags over the few keys."""
    return frozenset(
        part
        for kind in program.takes
        for piece in ([tags(kind, key=key) for key in KEYS] if "key" in kind.fields else [tags(kind)])
        for part in piece.parts
    )


def diagram(
    program: ForkJoin, type_: StateType, pred: Predicate, state: Any, events: Sequence[Event], chance: random.Random
) -> tuple[Any, list[Event]]:
    """Definition 4.2: some wire diagram for these events on a wire, its last state and its outputs."""
    outputs: list[Event] = []
    update = type_.update or program.update
    branches = [branch for branch in program.all_branches if branch.of is type_]
    left_over = list(events)
    while left_over or (branches and chance.random() < 0.2):
        if not branches or (left_over and chance.random() < 0.3):
            state = update(copy.deepcopy(state), left_over.pop(0), outputs.append)  # (Upd)
            continue
        branch = chance.choice(branches)
        one, other = _independent(program, branch, pred, chance)
        fitting = itertools.takewhile(lambda e: any(t.holds(e) for t in one | other), left_over)  # noqa: B023
        ups: tuple[list[Event], list[Event]] = ([], [])
        for event in list(fitting)[: chance.choice([2, 5, 20])]:
            sides = [up for up, p in zip(ups, (one, other), strict=True) if any(t.holds(event) for t in p)]
            chance.choice(sides).append(event)
            left_over.remove(event)
        # (Par)
        forked = getattr(program, branch.fork)(copy.deepcopy(state), TagSet(one), TagSet(other))
        (s1, v1), (s2, v2) = (
            diagram(program, t, p, copy.deepcopy(s), up, chance)
            for t, p, s, up in zip((branch.left, branch.right), (one, other), forked, ups, strict=True)
        )
        state = getattr(program, branch.join)(copy.deepcopy(s1), copy.deepcopy(s2))
        outputs += v1 + v2
    return state, outputs


def _independent(
    program: ForkJoin, branch: Branch, pred: Predicate, chance: random.Random
) -> tuple[Predicate, Predicate]:
    """Two predicates within one, no tag of the one dependent on a tag of the other."""
    sides: tuple[set[Tags], set[Tags]] = (set(), set())
    types = (branch.left, branch.right)
    wanted = sorted(pred, key=repr)
    chance.shuffle(wanted)
    for tag in wanted:
        for side in chance.sample([0, 1], chance.choice([0, 1, 1, 2, 2])):
            apart = not any(_related(program.depends, tag, other) for other in sides[1 - side])
            if apart and types[side].handles.covers(TagSet([tag])):
                sides[side].add(tag)
    return frozenset(sides[0]), frozenset(sides[1])


@functools.cache
def _sample(tag: Tags) -> Event:
    key = next(iter(tag.values("key") or [0]))
    return tag.kind(**{name: key if name == "key" else 0 for name in tag.kind.names})


def _related(depends: Dependence, one: Tags, other: Tags) -> bool:
    return depends.depends(_sample(one), _sample(other))


def slow_bounds(
    plan: Plan, frontiers: Mapping[str, Key], keys: Mapping[Share, Sequence[Key] | None]
) -> dict[Share, Key]:
    """The greatest bounds, from above: lowered again and again, each to what some rival leaves over."""
    program = plan.program
    shares = [share for worker in plan.workers for share in worker.shares]
    bounds = dict.fromkeys(shares, END)

    def could_stand(share: Share, least: Key) -> Key:
        here = (least[0], program.rank(share.tags.kind), plan.stream_place(share.stream))
        return here if here >= least else (least[0], len(program.takes), least[2])

    def leaves_over(rival: Share) -> Key:
        known = keys.get(rival)
        if known is None:
            return could_stand(rival, bounds[rival])
        return min((key for key in known if key >= bounds[rival]), default=END)

    changed = True
    while changed:
        changed = False
        for share, rival in itertools.permutations(shares, 2):
            if not dependent(program, share, rival):
                continue
            time, rank, place = frontier = frontiers[rival.stream]
            to_come = (time, rank, place + 1) if rival.stream == share.stream else could_stand(rival, frontier)
            least = min(bounds[share], leaves_over(rival), to_come)
            if least < bounds[share]:
                bounds[share], changed = least, True
    return bounds


def must_wait(plan: Plan, sent: Sent, others: Iterable[Sent], promises: Mapping[str, Key], shares: set[Share]) -> bool:
    """Whether an event has to wait in a mailbox for these shares: for one that is there, or for one that may come."""
    program = plan.program
    for other in others:
        if (other.key, other.position) < (sent.key, sent.position) and (
            other.share == sent.share or dependent(program, other.share, sent.share)
        ):
            return True
    for share in shares:
        if share.stream != sent.share.stream and dependent(program, share, sent.share):
            # An event of this share at this very time: may it come, and is it earlier?
            place = plan.stream_place(share.stream)
            ghost = (sent.key[0], program.rank(share.tags.kind), place)
            promise = promises[share.stream]
            if promise[0] < sent.key[0] or (ghost >= promise and ghost < sent.key):
                return True
    return False
