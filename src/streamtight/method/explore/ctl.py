"""CTL on a graph of states, where runs may stop and nobody knows how they would go on.

A formula is true, false or open at a node. What is open is open only because of runs that stop: both the nodes where it
must be true and those where it may be true are calculated (Kleene's three values, as Bruns and Godefroid do for partial
models).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamtight.method.explore.search import Graph
from streamtight.properties.branching import Branching, Denied, Joined, Path, State

Nodes = frozenset[int]


@dataclass(frozen=True)
class Truth:
    """Where a formula must be true, and where it may be."""

    must: Nodes
    may: Nodes


@dataclass(frozen=True)
class Witness:
    """Why a formula is false: the nodes of a run that shows it, which goes round in the last `loop` of them; and what
    is false where it ends.
    """

    nodes: list[int]
    loop: int
    part: Branching


class Labels:
    """The truth of formulas on a graph. `bits` says which bit of a node tells of a test of one step."""

    def __init__(self, graph: Graph, bits: Mapping[State, int]) -> None:
        self.graph, self.bits = graph, bits
        self.all = frozenset(range(len(graph.nodes)))
        self.known: dict[Branching, Truth] = {}
        self.after = [state for _, state in graph.nodes]
        self.stops = frozenset(node for node in self.all if graph.stops[self.after[node]])
        self.before: list[list[int]] = [[] for _ in graph.from_state]
        for node, state in enumerate(self.after):
            self.before[state].append(node)
        """The nodes after which the system is in a state."""
        self.states_before: list[list[int]] = [[] for _ in graph.nodes]
        for state, leads in enumerate(graph.from_state):
            for node in leads:
                self.states_before[node].append(state)

    def truth(self, formula: Branching) -> Truth:
        """Where it must be true, and where it may be."""
        if formula not in self.known:
            self.known[formula] = self._truth(formula)
        return self.known[formula]

    def _truth(self, formula: Branching) -> Truth:
        match formula:
            case State():
                bit = 1 << self.bits[formula]
                true = frozenset(node for node, (bits, _) in enumerate(self.graph.nodes) if bits & bit)
                return Truth(true, true)
            case Denied():
                body = self.truth(formula.body)
                return Truth(self.all - body.may, self.all - body.must)
            case Joined():
                left, right = (self.truth(part) for part in formula.parts)
                if formula.sign == "&":
                    return Truth(left.must & right.must, left.may & right.may)
                if formula.sign == "->":
                    left = Truth(self.all - left.may, self.all - left.must)
                return Truth(left.must | right.must, left.may | right.may)
            case Path(op="X"):
                body = self.truth(formula.parts[0])
                return Truth(
                    self._next(body.must, formula.runs, is_open=False), self._next(body.may, formula.runs, is_open=True)
                )
            case Path(op="G"):
                dual = Path("E" if formula.runs == "A" else "A", "F", (Denied(formula.parts[0]),))
                return self.truth(Denied(dual))
            case Path():
                right = self.truth(formula.parts[-1])
                left = self.truth(formula.parts[0]) if formula.op == "U" else Truth(self.all, self.all)
                return Truth(
                    self._until(left.must, right.must, formula.runs, is_open=False),
                    self._until(left.may, right.may, formula.runs, is_open=True),
                )
        raise AssertionError(formula)

    def _next(self, body: Nodes, runs: str, *, is_open: bool) -> Nodes:
        good = set()
        for node in self.all:
            leads = self.graph.from_state[self.after[node]]
            if runs == "E":
                is_good = (is_open and node in self.stops) or any(each in body for each in leads)
            else:
                is_good = (is_open or node not in self.stops) and all(each in body for each in leads)
            if is_good:
                good.add(node)
        return frozenset(good)

    def _until(self, left: Nodes, right: Nodes, runs: str, *, is_open: bool) -> Nodes:
        """The least set that has the right, and those of the left from where a step, or every step, leads into it."""
        found = set(right)
        waiting = list(right)
        # States by how many of their steps lead outside still; a state from which a run stops has one more, or none.
        outside = [len(leads) for leads in self.graph.from_state]
        inside: set[int] = set()

        def admit(states: Iterable[int]) -> None:
            for state in states:
                for node in self.before[state]:
                    if node in left and node not in found:
                        found.add(node)
                        waiting.append(node)

        if is_open:
            admit(
                state
                for state, stops in enumerate(self.graph.stops)
                if stops and (runs == "E" or not self.graph.from_state[state])
            )
        while waiting:
            node = waiting.pop()
            for state in self.states_before[node]:
                outside[state] -= 1
                is_in = runs == "E" or (not outside[state] and (is_open or not self.graph.stops[state]))
                if is_in and state not in inside:
                    inside.add(state)
                    admit([state])
        return frozenset(found)

    # -- why a formula is false --------------------------------------------------------------------------------------

    def witness(self, formula: Branching) -> Witness | None:
        """A shortest run that shows that a formula is false at the beginning; None if it is nowhere false."""
        false = [node for node in self.graph.from_state[0] if node not in self.truth(formula).may]
        return self._shown(formula, [false[0]]) if false else None

    def _shown(self, formula: Branching, nodes: list[int]) -> Witness:
        """The run that shows it, after these nodes, at the last of which it is false."""
        match formula:
            case Path(runs="A", op="G"):
                body = formula.parts[0]
                may = self.truth(body).may
                if nodes[-1] in may:
                    nodes = [*nodes, *self._way(nodes[-1], lambda node: node not in may)]
                return self._shown(body, nodes)
            case Path(runs="A", op="X"):
                may = self.truth(formula.parts[0]).may
                leads = self.graph.from_state[self.after[nodes[-1]]]
                return self._shown(formula.parts[0], [*nodes, next(node for node in leads if node not in may)])
            case Path(runs="A", op="F"):
                return self._circle(formula, nodes)
            case Joined(sign="&"):
                part = next(part for part in formula.parts if nodes[-1] not in self.truth(part).may)
                return self._shown(part, nodes)
            case Joined(sign="|" | "->"):
                return self._shown(formula.parts[-1], nodes)
        return Witness(nodes, 0, formula)

    def _way(self, start: int, is_wanted: Callable[[int], bool]) -> list[int]:
        """The nodes after this one on a shortest way to one that is wanted."""
        parents: dict[int, int | None] = {start: None}
        waiting = [start]
        for node in waiting:
            for lead in self.graph.from_state[self.after[node]]:
                if lead in parents and not is_wanted(lead):
                    continue
                if is_wanted(lead):
                    path, at = [lead], node
                    while parents[at] is not None:
                        path.append(at)
                        at = parents[at]  # type: ignore[assignment]
                    return path[::-1]
                parents[lead] = node
                waiting.append(lead)
        raise AssertionError("a way was known to exist")

    def _circle(self, formula: Path, nodes: list[int]) -> Witness:
        """A run that never comes to the body: through nodes where it never need come, until one repeats."""
        never = self.all - self.truth(formula).may
        path = list(nodes)
        while path.count(path[-1]) == 1:
            leads = [node for node in self.graph.from_state[self.after[path[-1]]] if node in never]
            path.append(next((node for node in leads if node in path), leads[0]))
        return Witness(path[:-1], len(path) - 1 - path.index(path[-1]), formula)

    def choices(self, nodes: list[int]) -> list[int]:
        """What must be chosen for a run through these nodes."""
        state, chosen = 0, []
        for node in nodes:
            chosen.append(self.graph.choices[state, node])
            state = self.after[node]
        return chosen
