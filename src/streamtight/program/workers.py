"""Workers: a plan at work in one process, event by event, in any order that messages may arrive in.

Producers send events to the worker that is responsible, and to those below it as requests to join. Every worker has a
`Mailbox`. A leaf handles what is ready for it; of a request that is ready it tells its parent. A worker with children
handles an event when it is ready for it and for all below: it asks for their states, joins them, updates the result,
forks it, and hands the parts down. All states travel as bytes, so that no two workers share one.

It is slow and plain: what other ways of running a plan are compared with.

>>> from streamtight.program.fork_join import Branch, ForkJoin, StateType
>>> from streamtight.program.plan import InputStream, Worker
>>> from streamtight.stream.dependence import barrier
>>> from streamtight.stream.event import Kind
>>> Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
>>> Total = Kind("Total", time=int, total=int)
>>> class Windows(ForkJoin):
...     takes, gives, depends = (Value, Barrier), (Total,), barrier(Barrier)
...     def init(self): return 0
...     def update(self, total, event, emit):
...         if event.kind is Value:
...             return total + event.value
...         emit(Total(event.time, total))
...         return 0
...     def fork(self, total, left, right): return total, 0
...     def join(self, left, right): return left + right
>>> values, barriers = InputStream("values", Value, lanes=2), InputStream("barriers", Barrier)
>>> one, two = (Worker("state", [share]) for share in values.shares)
>>> plan = Plan(Windows(), [values, barriers], Worker("state", barriers.shares, one, two))
>>> ran = run_plan(plan, {"values": [Value(1, 5), Value(2, 6), Value(3, 1)], "barriers": [Barrier(2)]}, seed=7)
>>> ran.outputs, ran.state, ran.joins
([Total(time=2, total=11)], 1, 1)
"""

from __future__ import annotations

import pickle
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from streamtight.errors import InputError, PlanError
from streamtight.program.fork_join import END, Heartbeat, Key, State
from streamtight.program.mailbox import Mailbox, Sent, stalled
from streamtight.program.plan import InputStream, Plan, Share, Worker
from streamtight.program.tags import tag_of
from streamtight.stream.event import Event


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run gave.

    outputs    in one of the orders in which they may come
    state      the one that all workers' states join to
    joins      how often two states were joined to handle an event
    messages   how many messages workers sent to each other
    """

    outputs: list[Event]
    state: State
    joins: int
    messages: int


def run_plan(
    plan: Plan,
    streams: Mapping[str, Iterable[Event | Heartbeat]],
    *,
    seed: int | None = None,
    state: State = None,
    ended: bool = True,
) -> Ran:
    """What a plan makes of these streams.

    seed    for a random order of producers, messages and workers, and random lanes; without it, all take turns
    state   the state to begin with; without it, that of `init`
    ended   whether nothing comes after what is given; if more may come, an event that has to wait for it is an error

    Events that are equal in time and kind are ordered by the plan's order of its streams.
    """
    _require_streams(plan, streams)
    run = _Run(plan, seed)
    run.root.receive(_copied(plan.program.init() if state is None else state, plan))
    for stream in plan.streams:
        run.wake(_Producer(run, stream, streams[stream.name], ended))
    run.go()
    waits = [waiting for process in run.processes for waiting in process.mailbox.waiting()]
    if waits:
        raise stalled(waits)
    if any(len(process.mailbox) for process in run.processes):
        raise AssertionError(f"workers wait for each other: {plan}")  # our own bug
    return Ran(run.outputs, run.root.joined(), run.joins, run.messages)


class _Actor(Protocol):
    """What takes a turn now and then."""

    awake: bool
    speed: float

    def step(self) -> bool:
        """Do something, if there is something to do; whether there may be more."""


class _Run:
    """Whose turn it is, the channels between processes, and what came out."""

    def __init__(self, plan: Plan, seed: int | None) -> None:
        self.plan, self.seed = plan, seed
        self.chance = random.Random(seed)
        self.outputs: list[Event] = []
        self.joins = self.messages = 0
        self.processes: list[_Process] = []
        self._channels: dict[tuple[object, _Process], _Channel] = {}
        self._awake: list[_Actor] = []
        self.root = _Process(self, plan.root, None)

    def wake(self, actor: _Actor) -> None:
        """Let it have its turn."""
        if not actor.awake:
            actor.awake = True
            self._awake.append(actor)

    def go(self) -> None:
        """Turn after turn, until nobody has anything to do."""
        while self._awake:
            place = 0
            if self.seed is not None:
                speeds = [actor.speed for actor in self._awake]
                place = self.chance.choices(range(len(speeds)), speeds)[0]
            actor = self._awake.pop(place)
            actor.awake = False
            if actor.step():
                self.wake(actor)

    def speed(self) -> float:
        """How often an actor gets its turn, so that some fall far behind."""
        return self.chance.choice([1.0, 4.0, 16.0])

    def send(self, sender: object, receiver: _Process, message: Callable[[], None]) -> None:
        """Messages of one sender to one receiver arrive in their order, others in any order."""
        channel = self._channels.get((sender, receiver))
        if channel is None:
            channel = self._channels[(sender, receiver)] = _Channel(self, receiver)
        channel.messages.append(message)
        self.wake(channel)


class _Channel:
    """Messages on their way from one sender to one receiver."""

    def __init__(self, run: _Run, receiver: _Process) -> None:
        self.awake, self.speed = False, run.speed()
        self.messages: deque[Callable[[], None]] = deque()
        self._run, self._receiver = run, receiver

    def step(self) -> bool:
        """Deliver one."""
        self.messages.popleft()()
        self._run.wake(self._receiver)
        return bool(self.messages)


class _Producer:
    """Sends what comes on a stream to all workers whom it concerns."""

    def __init__(self, run: _Run, stream: InputStream, items: Iterable[Event | Heartbeat], ended: bool) -> None:
        self.awake, self.speed = False, run.speed()
        self._run, self._stream, self._ended = run, stream, ended
        plan = run.plan
        self._fields = {kind: plan.program.tag_fields(kind) for kind in plan.program.takes}
        self._shares = [share for each in plan.workers for share in each.shares if share.stream == stream.name]
        self._hear_of = [each for each in run.processes if stream.name in each.mailbox.streams]
        self._takers: dict[object, list[Share]] = {}
        self._items = enumerate(plan.program.keyed(stream.name, plan.stream_place(stream.name), items))

    def step(self) -> bool:
        """Send the next event or heartbeat."""
        position, (key, item) = next(self._items, (0, (END, None)))
        if isinstance(item, Event):
            share = self._share_of(item, position)
            sent = Sent(share, key, position, item)
            for process in self._hear_of:
                if share in process.mailbox:
                    self._run.send(self, process, partial(process.mailbox.put, sent))
                else:
                    self._promise(process, key)
        elif item is not None or self._ended:
            for process in self._hear_of:
                self._promise(process, key)
        return item is not None

    def _promise(self, process: _Process, key: Key) -> None:
        self._run.send(self, process, partial(process.mailbox.advance, self._stream.name, key))

    def _share_of(self, event: Event, position: int) -> Share:
        """One of the shares to which an event belongs: one for each lane."""
        tag = (event.kind, *(getattr(event, field) for field in self._fields[event.kind]))
        if tag not in self._takers:
            self._takers[tag] = [share for share in self._shares if share.tags.holds(event)]
        takers = self._takers[tag]
        if not takers:
            raise InputError(
                f"stream {self._stream.name!r}",
                needed=f"events of the tags that the plan was made for: {self._stream.tags}",
                came=f"{event}, whose tag is {tag_of(event, self._fields[event.kind])}",
                hint=f"InputStream({self._stream.name!r}, ...) with this tag, and a plan for it",
            )
        return self._run.chance.choice(takers) if self._run.seed is not None else takers[position % len(takers)]


class _Process:
    """A worker at work.

    Its state is with it (a leaf), with its children, with its parent, or on the way. Each worker may see independent
    events in another order, so nobody stops for an event before all who take part are ready for it: else one could wait
    for this event and another one for that.
    """

    def __init__(self, run: _Run, worker: Worker, parent: _Process | None) -> None:
        self.awake, self.speed = False, run.speed()
        self.mailbox = Mailbox(run.plan, worker)
        self._run, self._worker = run, worker
        self._parent = parent or self  # the root has no share above it, for which it would need one
        self._update = run.plan.program.update_of(run.plan.type_of(worker))
        self._state: State = None
        self._lent = True  # until the first one comes down
        self._told: set[Sent] = set()
        self._ready_below: Counter[Sent] = Counter()
        self._asked: Sent | None = None
        self._gathering: Sent | None = None
        self._gathered: dict[_Process, State] = {}
        run.processes.append(self)
        self._children = [_Process(run, child, self) for child in worker.children]
        if self._children:
            program, branch = run.plan.program, run.plan.branch_of(worker)
            self._fork, self._join = program.fork_of(branch), program.join_of(branch)
            self._tags = [child.all_tags for child in worker.children]

    def step(self) -> bool:
        """Do one of the things that can be done now."""
        choices = list(self._choices())
        if not choices:
            return False
        chosen = self._run.chance.choice(choices) if self._run.seed is not None else choices[0]
        chosen()
        return True

    def _choices(self) -> Iterator[Callable[[], None]]:
        at_rest = not self._lent and self._gathering is None
        if at_rest and self._asked is not None:
            yield partial(self._gather, self._asked)
        for share in self.mailbox.ready:
            first = self.mailbox.first(share)
            if self._ready_below[first] < len(self._children):
                continue
            if share not in self._worker.shares:
                if first not in self._told:
                    yield partial(self._tell, first)
            elif at_rest:
                yield partial(self._gather, first)

    def _tell(self, sent: Sent) -> None:
        """Let the parent know that all is done here that must be done before an event above."""
        self._told.add(sent)
        self._send(self._parent, _Process.hear_ready, sent)

    def hear_ready(self, sent: Sent) -> None:
        """A child is ready for an event."""
        self._ready_below[sent] += 1

    def ask(self, sent: Sent) -> None:
        """The parent wants the state, for an event."""
        self._asked = sent

    def _gather(self, sent: Sent) -> None:
        if not self._children:
            self._go_on(sent, self._state)
            return
        self._gathering = sent
        for child in self._children:
            self._send(child, _Process.ask, sent)

    def take(self, child: _Process, state: State) -> None:
        """A child's state, as it was asked for."""
        self._gathered[child] = state
        sent = self._gathering
        if sent is not None and len(self._gathered) == len(self._children):
            left, right = (self._gathered.pop(each) for each in self._children)
            self._gathering = None
            self._run.joins += 1
            self._go_on(sent, self._join(left, right))

    def _go_on(self, sent: Sent, state: State) -> None:
        """With the state together, handle the event, or let the parent have the state."""
        self.mailbox.release(sent.share)
        self._ready_below.pop(sent, None)
        if sent.share in self._worker.shares:
            self.receive(self._update(state, sent.event, self._run.outputs.append))
            return
        self._asked, self._lent, self._state = None, True, None
        self._told.discard(sent)
        self._send(self._parent, _Process.take, self, _copied(state, self._run.plan))

    def receive(self, state: State) -> None:
        """The state is here again; what is the children's is handed on."""
        self._lent = False
        if not self._children:
            self._state = state
            return
        for child, part in zip(self._children, self._fork(state, *self._tags), strict=True):
            self._send(child, _Process.receive, _copied(part, self._run.plan))

    def joined(self) -> State:
        """The state of it and all below, when all are at rest."""
        return self._join(*(child.joined() for child in self._children)) if self._children else self._state

    def _send(self, receiver: _Process, message: Callable[..., None], *given: object) -> None:
        self._run.messages += 1
        self._run.send(self, receiver, partial(message, receiver, *given))


def _copied(state: State, plan: Plan) -> State:
    try:
        return pickle.loads(pickle.dumps(state))  # noqa: S301 - nobody else's bytes
    except (pickle.PicklingError, AttributeError, TypeError) as why:
        raise PlanError(
            f"plan for {plan.program.name}",
            needed="states that can be sent to other workers (pickled)",
            came=f"{type(state).__name__}: {why}",
            hint="states made of numbers, texts, tuples, lists, dicts and arrays",
        ) from why


def _require_streams(plan: Plan, streams: Mapping[str, Iterable[Event | Heartbeat]]) -> None:
    named = [stream.name for stream in plan.streams]
    if not isinstance(streams, Mapping) or set(streams) != set(named):
        raise InputError(
            f"streams for {plan.program.name}",
            needed=f"the streams of the plan: {', '.join(named)}",
            came=", ".join(map(str, streams)) if isinstance(streams, Mapping) else type(streams).__name__,
            hint=f"{{{', '.join(f'{name!r}: ...' for name in named)}}}",
        )
