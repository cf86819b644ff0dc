"""CTL on a graph of states, where runs may stop and nobody knows how they would go on.

A formula is true, false or open at a node. What is open is open only because of runs that stop: both the nodes where it
must be true and those where it may be true are calculated (Kleene's three values, as Bruns and Godefroid do for partial
models).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from streamtight.method.explore.lasso import components_of
from streamtight.method.explore.search import Graph
from streamtight.properties.branching import Branching, Denied, Joined, Path, State

Nodes = frozenset[int]

MOST_TRIED = 50
"""Nodes from which a shortest way round is looked for."""


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
        return self._shown(formula, [[node] for node in false]) if false else None

    def _shown(self, formula: Branching, ways: list[list[int]]) -> Witness:
        """The run that shows it, after one of these ways; they are as long as each other, and it is false at the last
        node of each.
        """
        match formula:
            case Path(runs="A", op="G"):
                may = self.truth(formula.parts[0]).may
                return self._shown(formula.parts[0], self._nearest(ways, lambda node: node not in may))
            case Path(runs="A", op="X"):
                may = self.truth(formula.parts[0]).may
                longer: dict[int, list[int]] = {}
                for way in ways:
                    for node in self.graph.from_state[self.after[way[-1]]]:
                        if node not in may:
                            longer.setdefault(node, [*way, node])
                return self._shown(formula.parts[0], list(longer.values()))
            case Path(runs="A", op="F"):
                return self._circle(formula, ways)
            case Joined(sign="&"):
                shown = []
                for part in formula.parts:
                    may = self.truth(part).may
                    broken = [way for way in ways if way[-1] not in may]
                    shown += [self._shown(part, broken)] if broken else []
                return min(shown, key=lambda each: len(each.nodes))
            case Joined(sign="|" | "->"):
                return self._shown(formula.parts[-1], ways)
        return Witness(ways[0], 0, formula)

    def _nearest(self, ways: list[list[int]], is_wanted: Callable[[int], bool]) -> list[list[int]]:
        """These ways, each led on to a node that is wanted; of those, the shortest ones."""
        first = {way[-1]: way for way in reversed(ways)}
        parents: dict[int, int] = {}
        layer = list(first)
        while layer:
            found = [node for node in layer if is_wanted(node)]
            if found:
                return [self._led(first, parents, node) for node in found]
            following = []
            for node in layer:
                for lead in self.graph.from_state[self.after[node]]:
                    if lead not in first and lead not in parents:
                        parents[lead] = node
                        following.append(lead)
            layer = following
        raise AssertionError("a way was known to exist")

    @staticmethod
    def _led(first: Mapping[int, list[int]], parents: Mapping[int, int], node: int) -> list[int]:
        way = []
        while node not in first:
            way.append(node)
            node = parents[node]
        return [*first[node], *reversed(way)]

    def _circle(self, formula: Path, ways: list[list[int]]) -> Witness:
        """A run that never comes to the body: through nodes where it never need come, until one repeats."""
        never = self.all - self.truth(formula).may
        leads = [
            [lead for lead in self.graph.from_state[self.after[node]] if lead in never] if node in never else []
            for node in range(len(self.after))
        ]
        components = components_of([[(lead, 0, False) for lead in each] for each in leads])
        first = {way[-1]: way for way in reversed(ways)}
        parents: dict[int, int] = {}
        depth = {node: len(way) for node, way in first.items()}
        waiting = list(first)
        best: Witness | None = None
        tried = 0
        for node in waiting:
            if best is not None and (depth[node] >= len(best.nodes) or tried > MOST_TRIED):
                break
            if any(components[lead] == components[node] for lead in leads[node]):
                tried += 1
                back = self._back(node, leads, components)
                nodes = self._round(self._led(first, parents, node), back)
                if best is None or len(nodes) < len(best.nodes):
                    best = Witness(nodes, len(back) + 1, formula)
            for lead in leads[node]:
                if lead not in depth:
                    depth[lead], parents[lead] = depth[node] + 1, node
                    waiting.append(lead)
        assert best is not None  # noqa: S101 - without end, some node comes again
        return best

    def _round(self, way: list[int], back: list[int]) -> list[int]:
        """A way and then one round from its end to its end, which is left out if it is come to by the same choice."""
        state = self.after[way[-2]] if len(way) > 1 else 0
        last = self.after[back[-1] if back else way[-1]]
        is_same = self.graph.choice(state, way[-1]) == self.graph.choice(last, way[-1])
        return [*way, *back] if is_same else [*way, *back, way[-1]]

    @staticmethod
    def _back(start: int, leads: list[list[int]], components: list[int]) -> list[int]:
        """The nodes after this one on a shortest way back to it, without itself."""
        parents: dict[int, int] = {}
        waiting = [start]
        for node in waiting:
            for lead in leads[node]:
                if lead == start:
                    way = []
                    while node != start:
                        way.append(node)
                        node = parents[node]
                    return way[::-1]
                if components[lead] == components[start] and lead not in parents:
                    parents[lead] = node
                    waiting.append(lead)
        raise AssertionError("a way back was known to exist")

    def choices(self, nodes: list[int]) -> list[int]:
        """What must be chosen for a run through these nodes."""
        state, chosen = 0, []
        for node in nodes:
            chosen.append(self.graph.choice(state, node))
            state = self.after[node]
        return chosen
