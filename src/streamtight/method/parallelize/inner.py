"""What workers with children do: they join the states below them, handle an event, and fork the state again.

A worker that handles events leads those below it, down to the leaves and to other workers that handle events. Leaders
run side by side, so that subtrees do not wait for each other.
"""

from __future__ import annotations

import heapq
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any, Protocol

from streamtight.method.parallelize.leaf import ancestors
from streamtight.program.fork_join import Key, State
from streamtight.program.plan import Plan, Worker
from streamtight.stream.event import Event

Keyed = Sequence[tuple[Key, Event]]
"""Events with their keys, in order."""


class Below(Protocol):
    """Somebody below who has a state: a leaf somewhere, or another leader."""

    def receive(self) -> State:
        """Its state, as soon as it has come as far as the next event above it."""

    def send(self, state: State) -> None:
        """The state with which it goes on."""


class Leader:
    """A worker that handles events, or the root: it leads what is below it."""

    def __init__(
        self,
        plan: Plan,
        worker: Worker,
        events: Mapping[Worker, Keyed],
        below: Callable[[Worker], Below],
        emit: Callable[[Event], None],
    ) -> None:
        """below   gives leaves and other leaders below this worker, by worker"""
        self.worker = worker
        self._emit = emit
        led = [worker] if worker.is_leaf else [each for top in worker.children for each in _led(top)]
        self._below = {each: below(each) for each in led if leads_itself(each)}
        self._update = plan.program.update_of(plan.type_of(worker))
        own = [(key, event) for key, event in events.get(worker, ())]
        above = [[(key, None) for key, _ in events.get(other, ())] for other in ancestors(plan, worker)]
        self._agenda: list[tuple[Key, Event | None]] = list(heapq.merge(own, *above, key=lambda each: each[0]))
        # What a fork is told about its two sides is the same each time, and so is how it forks and joins.
        self._tags = {each: each.all_tags for each in worker.walk()}
        branches = {each: plan.branch_of(each) for each in worker.walk() if each.children}
        self._forks = {each: plan.program.fork_of(branch) for each, branch in branches.items()}
        self._joins = {each: plan.program.join_of(branch) for each, branch in branches.items()}

    def run(self, state: State, to_parent: Callable[[State], State]) -> State:
        """Lead from this state on; gives the state of all in the end.

        to_parent   hands the state to the leader above and gives the new one
        """
        if self.worker.is_leaf:  # one worker alone has nobody below it to lead, and is no leader of itself
            below = self._below[self.worker]
            below.send(state)
            return below.receive()
        self._hand_down(self.worker, state)
        for _, event in self._agenda:
            state = self._joined(self.worker)
            state = to_parent(state) if event is None else self._update(state, event, self._emit)
            self._hand_down(self.worker, state)
        return self._joined(self.worker)

    def _joined(self, worker: Worker) -> State:
        left, right = (self._state_of(child) for child in worker.children)
        return self._joins[worker](left, right)

    def _state_of(self, child: Worker) -> State:
        below = self._below.get(child)
        return self._joined(child) if below is None else below.receive()

    def _hand_down(self, worker: Worker, state: State) -> None:
        left, right = worker.children
        parts = self._forks[worker](state, self._tags[left], self._tags[right])
        for child, part in zip((left, right), parts, strict=True):
            below = self._below.get(child)
            if below is None:
                self._hand_down(child, part)
            else:
                below.send(part)


def leads_itself(worker: Worker) -> bool:
    """Whether a worker below another has a life of its own: a leaf, or one that handles events."""
    return worker.is_leaf or bool(worker.shares)


def _led(worker: Worker) -> Iterator[Worker]:
    """The worker and those below it that the same leader leads."""
    yield worker
    for child in () if leads_itself(worker) else worker.children:
        yield from _led(child)


def leaders(plan: Plan) -> list[Worker]:
    """The workers that lead: the root, and those with children that handle events."""
    return [w for w in plan.workers if w is plan.root or (w.children and w.shares)]


class Between:
    """What two leaders hand each other: the lower one's state up, the upper one's state down."""

    def __init__(self) -> None:
        self._up: SimpleQueue[Any] = SimpleQueue()
        self._down: SimpleQueue[Any] = SimpleQueue()

    def receive(self) -> State:
        return _unless_over(self._up.get())

    def send(self, state: State) -> None:
        self._down.put(state)

    def first(self) -> State:
        """The state with which the lower one begins."""
        return _unless_over(self._down.get())

    def exchange(self, state: State) -> State:
        """The lower one's side: its state, for another one."""
        self._up.put(state)
        return _unless_over(self._down.get())

    def last(self, state: State) -> None:
        """The lower one's state in the end."""
        self._up.put(state)

    def end(self) -> None:
        """Let nobody wait any more."""
        self._up.put(_OVER)
        self._down.put(_OVER)


_OVER = object()


class Over(Exception):
    """Somebody else has failed, so this worker need not go on."""


def _unless_over(state: Any) -> Any:
    if state is _OVER:
        raise Over
    return state


def lead_all(
    plan: Plan,
    state: State,
    events: Mapping[Worker, Keyed],
    leaf: Callable[[Worker], Below],
    emits: Mapping[Worker, Callable[[Event], None]],
    failed: Callable[[BaseException], None],
) -> State:
    """Run all leaders, each in a thread of its own but the root, which runs here; gives the state in the end.

    failed   is told what a leader raised, and must see to it that nobody waits for a leaf any more
    """
    links = {worker: Between() for worker in leaders(plan) if worker is not plan.root}

    def below(worker: Worker) -> Below:
        return links[worker] if worker in links else leaf(worker)

    def end(error: BaseException) -> None:
        if not isinstance(error, Over):
            failed(error)
        for link in links.values():
            link.end()

    def lead(worker: Worker, link: Between) -> None:
        try:
            leader = Leader(plan, worker, events, below, emits[worker])
            link.last(leader.run(link.first(), link.exchange))
        except BaseException as error:  # what it raises is told to all, and raised by the root
            end(error)

    threads = [threading.Thread(target=lead, args=each, daemon=True) for each in links.items()]
    for thread in threads:
        thread.start()
    try:
        return Leader(plan, plan.root, events, below, emits[plan.root]).run(state, _no_parent)
    except BaseException as error:
        end(error)
        raise
    finally:
        for thread in threads:
            thread.join()


def _no_parent(_: State) -> State:
    raise AssertionError("the root has no parent")  # pragma: no cover
