"""Trees of boxes as pictures: leaves side by side, each box above what is below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from streamtight.stream import svg

LINE, MARGIN, GAP, LAYER = 18, 10, 18, 44
"""In pixels: the height of a line, around texts, between boxes, between layers."""


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Some lines of text, the first one bold, and the boxes below."""

    texts: Sequence[str]
    title: str
    below: Sequence[Box] = field(default=())

    @property
    def width(self) -> float:
        """As wide as its longest line."""
        return max(map(svg.width_of, self.texts)) + 2 * MARGIN

    @property
    def height(self) -> float:
        """As high as its lines together."""
        return LINE * len(self.texts) + 2 * MARGIN


def tree_picture(label: str, *roots: Box) -> str:
    """Trees as SVG, side by side."""
    drawing = _Drawing(roots)
    return svg.frame(drawing.edges + drawing.boxes, *drawing.size, label)


class _Drawing:
    """Where everything is."""

    def __init__(self, roots: Sequence[Box]) -> None:
        self.edges: list[str] = []
        self.boxes: list[str] = []
        layers: list[float] = []
        for depth, box in (each for root in roots for each in _with_depth(root)):
            layers += [0.0] * (depth + 1 - len(layers))
            layers[depth] = max(layers[depth], box.height)
        self._tops = [GAP + sum(layers[:depth]) + LAYER * depth for depth in range(len(layers))]
        width = float(GAP)
        for root in roots:
            width, _ = self._draw(root, 0, width)
        self.size = width, self._tops[-1] + layers[-1] + GAP

    def _draw(self, box: Box, depth: int, left: float) -> tuple[float, float]:
        """Draws a box and those below it from `left` on; gives where the next may begin, and its middle."""
        top, right = self._tops[depth], left + _width(box) + GAP
        inner = left + (_width(box) - _width_below(box)) / 2
        middles = []
        for child in box.below:
            inner, middle = self._draw(child, depth + 1, inner)
            middles.append(middle)
        middle = (middles[0] + middles[-1]) / 2 if middles else left + box.width / 2
        begin = min(max(left, middle - box.width / 2), right - GAP - box.width)
        middle = begin + box.width / 2
        self.edges += [
            f'<line x1="{middle:g}" y1="{top + box.height:g}" x2="{below:g}" y2="{self._tops[depth + 1]:g}" '
            'stroke="currentColor" stroke-opacity="0.5"/>'
            for below in middles
        ]
        self.boxes.append(self._box(box, begin, top))
        return right, middle

    @staticmethod
    def _box(box: Box, left: float, top: float) -> str:
        rect = (
            f'<rect x="{left:g}" y="{top:g}" width="{box.width:g}" height="{box.height:g}" rx="6" '
            f'fill-opacity="{0.04 if box.below else 0.12}" stroke="currentColor" stroke-opacity="0.6"/>'
        )
        lines = (
            svg.words(text, left + MARGIN, top + MARGIN + LINE * (number + 0.75), bold=number == 0)
            for number, text in enumerate(box.texts)
        )
        return svg.titled(box.title, rect, *lines)


def _width(box: Box) -> float:
    """How much room it needs, with all below it."""
    return max(box.width, _width_below(box))


def _width_below(box: Box) -> float:
    return sum(map(_width, box.below)) + GAP * (len(box.below) - 1) if box.below else 0.0


def _with_depth(box: Box, depth: int = 0) -> Iterator[tuple[int, Box]]:
    yield depth, box
    for child in box.below:
        yield from _with_depth(child, depth + 1)
