"""Pictures of plans: SVG, which notebooks and browsers show. Each worker stands above its children."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamtight.stream import svg
from streamtight.stream.tree_picture import Box, tree_picture

if TYPE_CHECKING:
    from streamtight.program.plan import Plan, Worker

MOST_LINES, MOST_LETTERS = 6, 44
"""Of what a worker is responsible for, so much is told; the whole text is there when the pointer rests on it."""


def picture_of(plan: Plan) -> str:
    """A plan as SVG: for each worker the type of its state, its place, and its shares with their rates."""
    return tree_picture(f"plan for {plan.program.name}", _box(plan.root))


def _box(worker: Worker) -> Box:
    whole = ", ".join(f"{share} {share.tags}" for share in worker.shares) or "no events of its own"
    return Box(_texts(worker), f"{worker.state_name}: {whole}", [_box(child) for child in worker.children])


def _texts(worker: Worker) -> list[str]:
    """The lines in the box of a worker."""
    place = f" @{worker.place}" if worker.place else ""
    told = [svg.cut(f"{share} {share.tags} {share.rate:g}/s", MOST_LETTERS) for share in worker.shares]
    if len(told) > MOST_LINES:
        rest = worker.shares[MOST_LINES - 1 :]
        told[MOST_LINES - 1 :] = [f"and {len(rest)} more {sum(share.rate for share in rest):g}/s"]
    return [svg.cut(f"{worker.state_name}{place}", MOST_LETTERS), *told]
