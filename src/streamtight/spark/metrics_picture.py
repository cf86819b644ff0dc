"""Metrics over time as pictures: SVG, which notebooks and browsers show.

Charts stand one above the other, over the same time. Where something was found, a line goes through all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from streamtight.stream import svg

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BELOW = 560, 84, 76, 110, 30, 26
"""In pixels: the size of a chart, and the room on its left, on its right, above it and below all."""
MOST_POINTS = 280
"""A longer line is drawn by the lowest and the highest value of each part of it."""
DASHES = ("", ' stroke-dasharray="5 3"', ' stroke-dasharray="2 3"')
MOST_MARKS, MOST_LETTERS = 12, 40


@dataclass(frozen=True, slots=True)
class Panel:
    """A chart: what it shows, and a line for each name. None where nothing is known."""

    title: str
    series: Mapping[str, Sequence[float | None]]


def chart(
    seconds: Sequence[float], panels: Sequence[Panel], *, label: str, marks: Sequence[tuple[float, str]] = ()
) -> str:
    """Lines over time, in seconds since the first value; each mark is a time, and what was found then."""
    drawing = _Drawing([second - seconds[0] for second in seconds], marks, seconds[0] if seconds else 0.0)
    lines = [line for number, panel in enumerate(panels) for line in drawing.panel(number, panel)]
    height = len(panels) * (HEIGHT + TOP) + BELOW
    lines += drawing.axis(height)
    lines += drawing.marks(height)
    return svg.frame(lines, LEFT + WIDTH + RIGHT, height, label)


class _Drawing:
    """Where everything is."""

    def __init__(self, seconds: Sequence[float], marks: Sequence[tuple[float, str]], start: float) -> None:
        self._seconds = seconds
        self._marks = [(max(0.0, at - start), text) for at, text in marks]
        self._end = max([1e-9, *seconds, *(at for at, _ in self._marks)])

    def panel(self, number: int, panel: Panel) -> Iterator[str]:
        top = number * (HEIGHT + TOP) + TOP
        known = [
            value for line in panel.series.values() for value in line if value is not None and math.isfinite(value)
        ]
        most = max([*known, 0.0]) or 1.0
        yield svg.words(panel.title, LEFT, top - 8, bold=True)
        for share in (0.0, 0.5, 1.0):
            y = top + HEIGHT * (1 - share)
            yield f'<path d="M{LEFT} {y:g}H{LEFT + WIDTH}" stroke="currentColor" stroke-opacity="0.18"/>'
            yield svg.words(_short(most * share), LEFT - 8, y + 4, size=svg.SMALL_SIZE, anchor="end", faint=True)
        ends: list[float] = []
        for place, (name, line) in enumerate(panel.series.items()):
            points = _few(
                [(x, y) for x, y in zip(self._seconds, line, strict=True) if y is not None and math.isfinite(y)]
            )
            if not points:
                continue
            drawn = [(self._x(x), top + HEIGHT * (1 - y / most)) for x, y in points]
            path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in drawn)
            dash = DASHES[place % len(DASHES)]
            parts = [f'<path d="{path}" fill="none" stroke="currentColor" stroke-width="1.8"{dash}/>']
            x, y = drawn[-1]
            if len(points) == 1:
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
            while any(abs(y - other) < 12 for other in ends):  # names at the end of a line do not meet
                y -= 12
            ends.append(y)
            if len(panel.series) > 1:
                parts.append(svg.words(svg.cut(name, 14), LEFT + WIDTH + 6, y + 4, size=svg.SMALL_SIZE))
            yield svg.titled(f"{name}: {_short(points[-1][1])} at the end", *parts)
        if not known:
            yield svg.words("nothing is known", LEFT + 8, top + HEIGHT / 2, faint=True)

    def axis(self, height: float) -> Iterator[str]:
        for share in (0.0, 0.5, 1.0):
            anchor = {0.0: "start", 0.5: "middle", 1.0: "end"}[share]
            text = f"{_short(self._end * share)} s"
            yield svg.words(text, LEFT + WIDTH * share, height - 8, size=svg.SMALL_SIZE, anchor=anchor, faint=True)

    def marks(self, height: float) -> Iterator[str]:
        for at, text in self._marks[:MOST_MARKS]:
            x = self._x(at)
            path = f'<path d="M{x:g} {TOP - 6}V{height - BELOW:g}" stroke="currentColor" stroke-width="1.5"/>'
            on_left = x > LEFT + WIDTH / 2
            words = svg.words(
                svg.cut(text, MOST_LETTERS), x + (-5 if on_left else 5), TOP + 4, size=svg.SMALL_SIZE,
                anchor="end" if on_left else "start",
            )  # fmt: skip
            yield svg.titled(text, path, words, marked=True)

    def _x(self, second: float) -> float:
        return LEFT + WIDTH * second / self._end


def _few(points: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Not more points than there is room for; peaks stay."""
    if len(points) <= MOST_POINTS:
        return points
    kept: list[tuple[float, float]] = []
    size = len(points) / (MOST_POINTS / 2)
    for number in range(MOST_POINTS // 2):
        part = points[int(number * size) : int((number + 1) * size)] or points[-1:]
        low, high = min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])
        kept += sorted({low, high})
    return [*kept, points[-1]] if kept[-1] != points[-1] else kept


def _short(number: float) -> str:
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{number / (1e3 if unit == 'k' else size):.3g} {unit}"
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"  # 999.5 is 1e+03 in three digits
