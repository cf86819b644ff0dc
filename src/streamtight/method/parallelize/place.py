"""Workers on machines, so that as few messages as possible go from one to another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from streamtight.program.plan import MESSAGES, InputStream, Worker


def _with_place(worker: Worker, place: str | None, children: Sequence[Worker]) -> Worker:
    return Worker(worker.state_name, worker.shares, *children, place=place)


def heaviest_first(streams: Sequence[InputStream], room: Mapping[str, float]) -> list[str]:
    """The places, those first where most events arrive."""
    rates = dict.fromkeys(room, 0.0)
    for stream in streams:
        if stream.place in rates:
            rates[stream.place] += math.fsum(stream.rates.values())
    return sorted(rates, key=lambda place: -rates[place])


def placed_by_rate(worker: Worker, places: Sequence[str]) -> Worker:
    """Each worker where most of its own events arrive; one without events in the first place."""
    rates = dict.fromkeys(places, 0.0)
    for share in worker.shares:
        if share.place in rates:
            rates[share.place] += share.rate
    place = max(rates, key=rates.__getitem__, default=None)
    return _with_place(worker, place, [placed_by_rate(child, places) for child in worker.children])


def placed_by_messages(root: Worker, room: Mapping[str, float]) -> Worker:
    """The workers so that as few messages as possible go from one place to another, and leaves have room.

    What a worker and those below it cost depends only on where it is: a dynamic program over the tree. Where leaves
    have no room, the one that loses least goes elsewhere, and the others are placed again.
    """
    if not room:
        return root
    names = list(room)
    fixed: dict[int, int] = {}

    def costs(worker: Worker, waits: float) -> _Costs:
        waits += worker.rate
        below = [costs(child, waits) for child in worker.children]
        here = [
            math.fsum(share.rate for share in worker.shares if share.place not in (None, name))
            + math.fsum(min(_moved(each.here, place, waits)) for each in below)
            for place, name in enumerate(names)
        ]
        if id(worker) in fixed:
            here = [cost if place == fixed[id(worker)] else math.inf for place, cost in enumerate(here)]
        return _Costs(worker, waits, here, below)

    def placed(solved: _Costs, above: int | None, waits: float) -> Worker:
        offers = solved.here if above is None else _moved(solved.here, above, waits)
        place = offers.index(min(offers))
        spots[id(solved.worker)] = (place, offers)
        return _with_place(solved.worker, names[place], [placed(each, place, solved.waits) for each in solved.below])

    while True:
        spots: dict[int, tuple[int, list[float]]] = {}
        tree = placed(costs(root, 0.0), None, 0.0)
        used = [0] * len(names)
        for leaf in root.leaves:
            used[spots[id(leaf)][0]] += 1
        full = [place for place, name in enumerate(names) if used[place] > room[name]]
        if not full:
            return tree
        free = [place for place, name in enumerate(names) if used[place] < room[name]]
        moves = (
            (spots[id(leaf)][1][place] - spots[id(leaf)][1][full[0]], number, place)
            for number, leaf in enumerate(root.leaves)
            if spots[id(leaf)][0] == full[0] and id(leaf) not in fixed
            for place in free
        )
        _, number, place = min(moves)
        fixed[id(root.leaves[number])] = place


@dataclass(frozen=True, slots=True)
class _Costs:
    """What a worker and those below it cost, for each place where it may be."""

    worker: Worker
    waits: float
    here: list[float]
    below: list[_Costs]


def _moved(costs: Sequence[float], above: int, waits: float) -> list[float]:
    return [cost + (MESSAGES * waits if place != above else 0.0) for place, cost in enumerate(costs)]
