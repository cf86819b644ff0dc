"""Is there a run that breaks a temporal formula? Either one that has broken it after so many steps, or one that goes
round in a circle and breaks it by never doing what it should.

The states of the system and what the broken formula still owes are searched together; runs without end that break it
are circles in which nothing is postponed for ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from streamtight.method.explore.search import Budget, Exhausted, Graph
from streamtight.properties.automaton import Automaton, Debts

MOST_TRIED = 400
"""Circles that are tried to find the shortest."""


@dataclass(frozen=True)
class Broken:
    """A run that breaks a formula: its choices; `loop` are those that are repeated for ever, if it is broken so."""

    path: list[int]
    loop: list[int]


@dataclass(frozen=True)
class Kept:
    """No run breaks it. `stopping` is a way to where a run stops before that is told, if there is one."""

    stopping: list[int] | None
    states: int


Place = tuple[int, Debts, int]
"""A state, what is owed, and which postponed thing is waited for."""


def breaking(found: Graph, denial: Automaton, budget: Budget) -> Broken | Kept | Exhausted:
    """A shortest run that the automaton accepts, if there is one."""
    places: dict[Place, int] = {(0, denial.first, 0): 0}
    listed: list[Place] = [(0, denial.first, 0)]
    parents: list[tuple[int, int] | None] = [None]
    edges: list[list[tuple[int, int, bool]]] = []
    """For each place: where it leads, what is chosen, whether nothing waits any more."""
    stopping: list[int] | None = None

    def way_to(number: int) -> list[int]:
        path: list[int] = []
        while (parent := parents[number]) is not None:
            number, choice = parent
            path.append(choice)
        return path[::-1]

    at = 0
    while at < len(listed):
        state, owed, waiting = listed[at]
        if found.stops[state] and stopping is None:
            stopping = way_to(at)
        leads: dict[tuple[int, bool], int] = {}
        for node in found.from_state[state]:
            letter, after = found.nodes[node]
            for move in denial.moves(owed):
                if not move.reads(letter):
                    continue
                choice = found.choice(state, node)
                if not move.owed:
                    return Broken([*way_to(at), choice], [])
                level = waiting
                while level < denial.postponable and level not in move.postponed:
                    level += 1
                is_round = level == denial.postponable
                place = (after, move.owed, 0 if is_round else level)
                number = places.get(place)
                if number is None:
                    number = places[place] = len(listed)
                    listed.append(place)
                    parents.append((at, choice))
                leads.setdefault((number, is_round), choice)
        edges.append([(number, choice, is_round) for (number, is_round), choice in leads.items()])
        at += 1
        if not at & 255 and (spent := budget.spent(len(listed))):
            return Exhausted(spent, len(listed), len(way_to(at - 1)))
    lasso = _shortest_lasso(edges)
    if lasso is not None:
        start, loop = lasso
        return Broken(way_to(start), loop)
    return Kept(stopping, len(listed))


class Together:
    """A system together with the ways in which a formula can be broken; a bit says that it is.

    For formulas that are broken, if at all, after finitely many steps: then no circles need be looked for.
    """

    def __init__(self, system: Any, denial: Automaton) -> None:
        self.system, self.denial = system, denial
        self.first = (system.first, denial.first)
        self.mask = (1 << len(denial.atoms)) - 1

    def steps(self, at: tuple[Any, Debts]) -> list[tuple[int, Any, int, int]]:
        """All steps, each with every way to go on breaking the formula; what cannot be broken any more ends."""
        state, owed = at
        found = []
        moves = self.denial.moves(owed)
        for choice, after, bits, stop in self.system.steps(state):
            if stop:
                found.append((choice, at, 0, stop))
                continue
            found += [
                (choice, (after, move.owed), int(not move.owed), 0) for move in moves if move.reads(bits & self.mask)
            ]
        return found


def _shortest_lasso(edges: list[list[tuple[int, int, bool]]]) -> tuple[int, list[int]] | None:
    """The place where a circle with a round edge begins, and its choices; nearest and shortest together."""
    components = components_of(edges)
    rounds = [
        (place, number, choice)
        for place, leads in enumerate(edges)
        for number, choice, is_round in leads
        if is_round and components[place] == components[number]
    ]
    if not rounds:
        return None
    distance = _distances(edges, 0)
    rounds.sort(key=lambda each: distance[each[0]])
    best: tuple[int, list[int]] | None = None
    length: float = float("inf")
    for place, number, choice in rounds[:MOST_TRIED]:
        if distance[place] + 1 >= length:
            break
        back = _way(edges, number, place, components)
        if distance[place] + 1 + len(back) < length:
            # Wherever the circle is entered first is where it begins.
            length, best = distance[place] + 1 + len(back), (place, [choice, *back])
    return best


def _distances(edges: list[list[tuple[int, int, bool]]], start: int) -> list[int]:
    distance = [-1] * len(edges)
    distance[start] = 0
    waiting = [start]
    for place in waiting:
        for number, _, _ in edges[place]:
            if distance[number] < 0:
                distance[number] = distance[place] + 1
                waiting.append(number)
    return distance


def _way(edges: list[list[tuple[int, int, bool]]], start: int, goal: int, components: list[int]) -> list[int]:
    parents: dict[int, tuple[int, int] | None] = {start: None}
    waiting = [start]
    for place in waiting:
        if place == goal:
            break
        for number, choice, _ in edges[place]:
            if number not in parents and components[number] == components[goal]:
                parents[number] = (place, choice)
                waiting.append(number)
    path: list[int] = []
    at = goal
    while (parent := parents[at]) is not None:
        at, choice = parent
        path.append(choice)
    return path[::-1]


def components_of(edges: list[list[tuple[int, int, bool]]]) -> list[int]:
    """For each place the number of its strongly connected component (Tarjan, without recursion)."""
    index = [-1] * len(edges)
    low = [0] * len(edges)
    component = [-1] * len(edges)
    stack: list[int] = []
    count = 0
    for root in range(len(edges)):
        if index[root] >= 0:
            continue
        work: list[tuple[int, Iterator[tuple[int, int, bool]]]] = [(root, iter(edges[root]))]
        index[root] = low[root] = count
        count += 1
        stack.append(root)
        while work:
            place, leads = work[-1]
            for number, _, _ in leads:
                if index[number] < 0:
                    index[number] = low[number] = count
                    count += 1
                    stack.append(number)
                    work.append((number, iter(edges[number])))
                    break
                if component[number] < 0:
                    low[place] = min(low[place], index[number])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[place])
                if low[place] == index[place]:
                    while True:
                        member = stack.pop()
                        component[member] = place
                        if member == place:
                            break
    return component
