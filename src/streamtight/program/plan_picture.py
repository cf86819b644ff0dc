"""Pictures of plans: SVG, which notebooks and browsers show.

Leaves stand side by side, each worker above its children.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamtight.stream import svg

if TYPE_CHECKING:
    from streamtight.program.plan import Plan, Worker

LINE, MARGIN, GAP, LAYER = 18, 10, 18, 44
"""In pixels: the height of a line, around texts, between workers, between layers."""
MOST_LINES, MOST_LETTERS = 6, 44
"""Of what a worker is responsible for, so much is told; the whole text is there when the pointer rests on it."""


def picture_of(plan: Plan) -> str:
    """A plan as SVG: for each worker the type of its state, its place, and its shares with their rates."""
    drawing = _Drawing(plan)
    width, height = drawing.size
    return svg.frame(drawing.lines, width, height, f"plan for {plan.program.name}")


class _Drawing:
    """Where everything is."""

    def __init__(self, plan: Plan) -> None:
        self._texts = {id(worker): _texts(worker) for worker in plan.workers}
        self._edges: list[str] = []
        self._boxes: list[str] = []
        layers: list[float] = []
        for depth, worker in _with_depth(plan.root):
            layers += [0.0] * (depth + 1 - len(layers))
            layers[depth] = max(layers[depth], self._box_height(worker))
        self._tops = [GAP + sum(layers[:depth]) + LAYER * depth for depth in range(len(layers))]
        self._height = self._tops[-1] + layers[-1] + GAP
        self._width, _ = self._draw(plan.root, 0, GAP)

    @property
    def size(self) -> tuple[float, float]:
        return self._width, self._height

    @property
    def lines(self) -> list[str]:
        return self._edges + self._boxes

    def _box_height(self, worker: Worker) -> float:
        return LINE * len(self._texts[id(worker)]) + 2 * MARGIN

    def _box_width(self, worker: Worker) -> float:
        return max(map(svg.width_of, self._texts[id(worker)])) + 2 * MARGIN

    def _draw(self, worker: Worker, depth: int, left: float) -> tuple[float, float]:
        """Draws a worker and those below it from `left` on; gives where the next may begin, and its middle."""
        width, top, right = self._box_width(worker), self._tops[depth], left
        middles = []
        for child in worker.children:
            right, middle = self._draw(child, depth + 1, right)
            middles.append(middle)
        middle = sum(middles) / 2 if middles else left + width / 2
        begin = max(left, middle - width / 2)
        middle = begin + width / 2
        bottom = top + self._box_height(worker)
        self._edges += [
            f'<line x1="{middle:g}" y1="{bottom:g}" x2="{below:g}" y2="{self._tops[depth + 1]:g}" '
            'stroke="currentColor" stroke-opacity="0.5"/>'
            for below in middles
        ]
        self._boxes += self._box(worker, begin, top, width)
        return max(right, begin + width + GAP), middle

    def _box(self, worker: Worker, left: float, top: float, width: float) -> Iterator[str]:
        whole = ", ".join(f"{share} {share.tags}" for share in worker.shares) or "no events of its own"
        yield f"<g><title>{svg.escaped(svg.cut(f'{worker.state_name}: {whole}', svg.MOST_OF_TITLE))}</title>"
        yield (
            f'<rect x="{left:g}" y="{top:g}" width="{width:g}" height="{self._box_height(worker):g}" rx="6" '
            f'fill-opacity="{0.12 if worker.is_leaf else 0.04}" stroke="currentColor" stroke-opacity="0.6"/>'
        )
        for number, text in enumerate(self._texts[id(worker)]):
            baseline = top + MARGIN + LINE * number + 0.75 * LINE
            yield svg.words(text, left + MARGIN, baseline, bold=number == 0)
        yield "</g>"


def _texts(worker: Worker) -> list[str]:
    """The lines in the box of a worker."""
    place = f" @{worker.place}" if worker.place else ""
    told = [svg.cut(f"{share} {share.tags} {share.rate:g}/s", MOST_LETTERS) for share in worker.shares]
    if len(told) > MOST_LINES:
        rest = worker.shares[MOST_LINES - 1 :]
        told[MOST_LINES - 1 :] = [f"and {len(rest)} more {sum(share.rate for share in rest):g}/s"]
    return [svg.cut(f"{worker.state_name}{place}", MOST_LETTERS), *told]


def _with_depth(worker: Worker, depth: int = 0) -> Iterator[tuple[int, Worker]]:
    yield depth, worker
    for child in worker.children:
        yield from _with_depth(child, depth + 1)
