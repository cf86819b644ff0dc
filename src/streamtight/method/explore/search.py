"""Search: all states that can be reached, one after the other, nearest first.

A system is a first state and a function that gives all steps from a state, so it may be a compiled model, or the user's
own code at work. Searches end with what they found or proved, or with how far they came when their budget ran out.

>>> from streamtight.method.explore.compiled import System
>>> ring = System(0, lambda n: [(0, (n + 1) % 5, int(n == 3), 0)], [{}], [], [])
>>> invariant(ring, bad=1, budget=Budget())
Reached(path=[0, 0, 0, 0], step=(0, 4, 1, 0), states=4)
>>> invariant(ring, bad=2, budget=Budget())
Complete(states=5, depth=4, stopped=None, seen=1)
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Step = tuple[int, Any, int, int]


@dataclass
class Budget:
    """How much a search may use: states that are kept, seconds, and half of the memory that is free when it begins.

    `told` hears now and then how many states there are.
    """

    states: int = 1_000_000
    seconds: float = 60.0
    told: Callable[[int], None] | None = None
    _end: float = field(default=0.0, init=False)
    _memory: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        self._end = time.monotonic() + self.seconds
        self._memory = used_memory() + free_memory() / 2

    def spent(self, states: int) -> str | None:
        """What is used up, if something is."""
        if states > self.states:
            return f"{self.states:,} states"
        if self.told is not None:
            self.told(states)
        if time.monotonic() > self._end:
            return f"{self.seconds:.1f} seconds".replace(".0 ", " ")
        return f"{self._memory / 2**20:,.0f} MB of memory" if used_memory() > self._memory else None


def how_often(system: Any) -> int:
    """After how many states the budget is looked at: some thousand steps, or a few of the user's own code."""
    return max(1, 4096 // max(1, len(getattr(system, "choices", range(512)))))


def used_memory() -> float:
    """The most bytes that this process has used."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def free_memory() -> float:
    """The bytes that are free, on the machine or in the container."""
    try:
        free = float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (ValueError, OSError):  # not everywhere known
        free = 2.0**32
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = Path("/sys/fs/cgroup/memory.current").read_text().strip()
    except OSError:
        return free
    return free if limit == "max" else min(free, max(float(limit) - float(used), 0.0))


@dataclass(frozen=True)
class Reached:
    """A step that was looked for: the choices on a shortest way to it, itself the last."""

    path: list[int]
    step: Step
    states: int


@dataclass(frozen=True)
class Complete:
    """All states were seen, in so many layers. `stopped` is a shortest way to where a run stops, if there is one;
    `seen` are all bits that a step had.
    """

    states: int
    depth: int
    stopped: list[int] | None
    seen: int = 0


@dataclass(frozen=True)
class Exhausted:
    """The budget ran out. All runs of up to `depth` steps were seen."""

    spent: str
    states: int
    depth: int
    stopped: list[int] | None = None
    seen: int = 0


Parents = dict[Any, tuple[Any, int] | None]


def path_to(parents: Parents, state: Any) -> list[int]:
    """The choices on the way to a state."""
    path: list[int] = []
    while (found := parents[state]) is not None:
        state, choice = found
        path.append(choice)
    return path[::-1]


def invariant(system: Any, *, bad: int, budget: Budget) -> Reached | Complete | Exhausted:
    """Is there a step with one of these bits? The shortest way to one, if so."""
    parents: Parents = {system.first: None}
    layer, depth, seen = [system.first], 0, 0
    stopped: list[int] | None = None
    steps, often = system.steps, how_often(system)
    while layer:
        following = []
        for place, state in enumerate(layer):
            for choice, after, bits, stop in steps(state):
                if stop:
                    if stopped is None:
                        stopped = [*path_to(parents, state), choice]
                elif bits & bad:
                    step = (choice, after, bits, stop)
                    return Reached([*path_to(parents, state), choice], step, len(parents))
                else:
                    seen |= bits
                    if after not in parents:
                        parents[after] = (state, choice)
                        following.append(after)
            if not place % often and (spent := budget.spent(len(parents))):
                return Exhausted(spent, len(parents), depth, stopped, seen)
        layer = following
        depth += bool(layer)
    return Complete(len(parents), depth, stopped, seen)


@dataclass(frozen=True)
class Graph:
    """All states that can be reached, by numbers; and all steps between them.

    A node is a step that was taken: what was seen in it, and the state after it. A run is a way through nodes. Steps
    with the same bits and the same state after them are one node.
    """

    nodes: Sequence[tuple[int, int]]
    """The bits of each node, and the number of the state after it."""
    from_state: Sequence[Sequence[int]]
    """The nodes that a state leads to, each once."""
    chosen: Sequence[Sequence[int]]
    """What must be chosen for each of these."""
    stops: Sequence[bool]
    """From which states a run may stop."""
    layer: Sequence[int]
    """In which layer each state was found."""

    def choice(self, state: int, node: int) -> int:
        """What must be chosen to go from a state to a node."""
        return self.chosen[state][self.from_state[state].index(node)]


def graph(system: Any, *, budget: Budget, mask: int = -1) -> Graph | Exhausted:
    """All states and steps; of the bits, only those of the mask are told apart."""
    numbers: dict[Any, int] = {system.first: 0}
    states = [system.first]
    layer = [0]
    nodes: list[tuple[int, int]] = []
    known: dict[tuple[int, int], int] = {}
    from_state: list[list[int]] = []
    chosen: list[list[int]] = []
    stops: list[bool] = []
    place, often = 0, how_often(system)
    while place < len(states):
        mine: dict[int, int] = {}
        is_stopping = False
        for choice, after, bits, stop in system.steps(states[place]):
            if stop:
                is_stopping = True
                continue
            number = numbers.get(after)
            if number is None:
                number = numbers[after] = len(states)
                states.append(after)
                layer.append(layer[place] + 1)
            key = (bits & mask, number)
            node = known.get(key)
            if node is None:
                node = known[key] = len(nodes)
                nodes.append(key)
            mine.setdefault(node, choice)
        from_state.append(list(mine))
        chosen.append(list(mine.values()))
        stops.append(is_stopping)
        if not place % often and (spent := budget.spent(len(states))):
            return Exhausted(spent, len(states), layer[place])
        place += 1
    return Graph(nodes, from_state, chosen, stops, layer)


def backward(found: Graph, wanted: Iterable[int]) -> set[int]:
    """The states from which one of these states can be reached."""
    before: dict[int, list[int]] = {}
    for state, leads in enumerate(found.from_state):
        for node in leads:
            before.setdefault(found.nodes[node][1], []).append(state)
    closed = set(wanted)
    waiting = list(closed)
    while waiting:
        for state in before.get(waiting.pop(), ()):
            if state not in closed:
                closed.add(state)
                waiting.append(state)
    return closed


def shortest(found: Graph, start: int, is_wanted: Callable[[int, int], bool]) -> tuple[list[int], int, int] | None:
    """The choices on a shortest way from a state to a node that is wanted, and that node's state.

    is_wanted(state, node): whether the step from this state to this node is one.
    """
    parents: dict[int, tuple[int, int] | None] = {start: None}
    waiting = [start]
    for state in waiting:
        for node in found.from_state[state]:
            after = found.nodes[node][1]
            if is_wanted(state, node):
                path = [found.choice(state, node)]
                at = state
                while (parent := parents[at]) is not None:
                    at, choice = parent
                    path.append(choice)
                return path[::-1], after, node
            if after not in parents:
                parents[after] = (state, found.choice(state, node))
                waiting.append(after)
    return None
