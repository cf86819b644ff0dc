"""Pictures of partially ordered streams: SVG, which notebooks and browsers show.

Two streams stand side by side, each from top to bottom as it came. Lines inside a side are the Hasse diagram of its
order: they join events that keep their order, and only where nothing ordered is between them. Lines across the middle
join what is equal on both sides. What is wrong is marked. Of long streams only what is near the marks is drawn, and the
picture says how much is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamtight.stream import svg
from streamtight.stream.dependence import Dependence, unordered
from streamtight.stream.event import Event
from streamtight.stream.trace import Trace

MOST_EVENTS, MOST_LETTERS = 12, 44
"""So many events of a side are drawn, and so much of their texts; the rest is there when the pointer rests on it."""
ROW, LANE, MARGIN, MIDDLE = 26, 16, 14, 110
"""In pixels: between events, between chains, around everything, between the sides where nothing is said there."""
MOST_BETWEEN = 400
"""Up to so many events, what is left out counts too for what is ordered with what."""
NEAR = 4
"""An event that depends on a marked one is as interesting as one that is so much nearer to it."""

Marks = Mapping[int, str]
"""By the place of an event in its stream: what is to be said about it, or nothing more than that it is marked."""


def order_picture(
    expected: Sequence[Event] | None,
    actual: Sequence[Event],
    upto: Dependence,
    *,
    alike: tuple[Sequence[Event], Sequence[Event]] | None = None,
    marks: tuple[Marks, Marks] | None = None,
    names: tuple[str, str] = ("expected", "came"),
) -> str:
    """Two streams side by side, with the order of each, and with marks where they differ.

    expected   None if there is nothing to compare with
    alike      the same streams with one event for all that count as equal, if not all fields matter
    marks      what is wrong, if that is known; without it, what one side lacks, or two events in another order
    names      what the sides are called
    """
    standing = alike or (expected or (), actual)
    partners = _partners(*standing) if expected is not None else {}
    if marks is None:
        marks = _differences(standing, partners, upto) if expected is not None else ({}, {})
    known = [_Side(names[1], actual, standing[1], upto, marks[1])]
    if expected is not None:
        known.insert(0, _Side(names[0], expected, standing[0], upto, marks[0]))
        _look_near_each_other(known[0], known[1], partners)
    for side in known:
        side.choose()
    drawing = _Drawing(known, partners, upto)
    told = " and ".join(f"{len(side.events)} {side.name}" for side in known)
    return svg.frame(drawing.lines(), *drawing.size, f"events and their order: {told}")


# -- what differs ------------------------------------------------------------------------------------------------------


def _partners(expected: Sequence[Event], actual: Sequence[Event]) -> dict[int, int]:
    """For the place of an event on one side, that of the equal one on the other: the first of the first, and so on."""
    places: dict[Event, list[int]] = {}
    for place in range(len(actual) - 1, -1, -1):
        places.setdefault(actual[place], []).append(place)
    return {place: places[event].pop() for place, event in enumerate(expected) if places.get(event)}


def _differences(
    sides: tuple[Sequence[Event], Sequence[Event]], partners: Mapping[int, int], upto: Dependence
) -> tuple[Marks, Marks]:
    found = set(partners.values())
    missing = {place: "missing" for place in range(len(sides[0])) if place not in partners}
    extra = {place: "extra" for place in range(len(sides[1])) if place not in found}
    if not missing and not extra and (swap := Trace(sides[0], upto).swapped(Trace(sides[1], upto))) is not None:
        first, second, _ = swap
        missing = {first: "", second: ""}
        extra = {partners[second]: "too early", partners[first]: ""}
    return missing, extra


@dataclass(slots=True)
class _Side:
    """One of the streams: which of its events are drawn, and how they are ordered."""

    name: str
    events: Sequence[Event]
    standing: Sequence[Event]
    """What its events count as."""
    upto: Dependence
    marks: Marks
    near: list[int] = field(default_factory=list)
    """Places near which something of the other side is marked."""
    shown: list[int] = field(default_factory=list)
    covers: dict[int, list[int]] = field(default_factory=dict)
    """For each place that is drawn, those right below it in the order."""
    lanes: dict[int, int] = field(default_factory=dict)

    def choose(self) -> None:
        """Say what is drawn, and where."""
        self.shown = self._interesting()
        self.covers = self._covering()
        self.lanes = _chains(self.shown, self.covers)

    def _interesting(self) -> list[int]:
        count = len(self.events)
        if count <= MOST_EVENTS:
            return list(range(count))
        marked = sorted(self.marks)[:MOST_EVENTS]
        centres = sorted({*marked, *self.near}) or [0]
        distances: list[float] = [count] * count
        for centre in centres[:MOST_EVENTS]:
            for place in range(max(0, centre - MOST_EVENTS * NEAR), min(count, centre + MOST_EVENTS * NEAR + 1)):
                is_bound = any(self._orders(place, mark) for mark in marked[:2])
                distance = abs(place - centre) if is_bound else NEAR * abs(place - centre)
                distances[place] = min(distances[place], distance)
        for mark in marked:
            distances[mark] = -1
        return sorted(sorted(range(count), key=lambda place: (distances[place], place))[:MOST_EVENTS])

    def _orders(self, one: int, other: int) -> bool:
        try:
            return self.upto.depends(self.standing[one], self.standing[other])
        except Exception:  # the user's own function, asked about a pair that no verdict needed: no line is drawn
            return False

    def bound(self, one: int, other: int) -> bool:
        """Must these two keep their order, and did they not?"""
        return not {"missing", "extra"} & {self.marks[one], self.marks[other]} and self._orders(one, other)

    def _covering(self) -> dict[int, list[int]]:
        """The Hasse diagram of what is drawn: the order of all events, less what follows from the rest of it."""
        if not self.shown:
            return {}
        places = list(range(self.shown[0], self.shown[-1] + 1))
        if len(places) > MOST_BETWEEN:
            places = self.shown
        orders = [self._orders_below(places, number) for number in range(len(places))]
        below: list[int] = []  # for each of these places, those below it in the order, as bits
        for earlier in orders:
            bits = 0
            for number in earlier:
                bits |= below[number] | 1 << number
            below.append(bits)
        numbers = {place: number for number, place in enumerate(places)}
        drawn = sum(1 << numbers[place] for place in self.shown)
        covers: dict[int, list[int]] = {}
        for place in self.shown:
            mine = below[numbers[place]] & drawn
            implied = 0
            for earlier_place in self.shown:
                if mine >> numbers[earlier_place] & 1:
                    implied |= below[numbers[earlier_place]]
            covers[place] = [one for one in self.shown if (mine & ~implied) >> numbers[one] & 1]
        return covers

    def _orders_below(self, places: Sequence[int], number: int) -> list[int]:
        """The numbers of the earlier places that this one depends on."""
        return [earlier for earlier in range(number) if self._orders(places[earlier], places[number])]


def _chains(shown: Sequence[int], covers: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """A lane for each event: that of one right below it if nothing else went on there, else a free one."""
    waits = {place: sum(place in below for below in covers.values()) for place in shown}
    tips: dict[int, int] = {}
    lanes: dict[int, int] = {}
    for place in shown:
        for earlier in covers[place]:
            waits[earlier] -= 1
        goes_on = [lane for lane, tip in tips.items() if tip in covers[place]]
        # A line down a lane must not go through an event that it has nothing to do with.
        below = {lanes[earlier] for earlier in covers[place]}
        free = [lane for lane, tip in tips.items() if not waits[tip] and lane not in below]
        lane = min(goes_on or free or [len(tips)])
        tips[lane], lanes[place] = place, lane
    return lanes


def _look_near_each_other(expected: _Side, actual: _Side, partners: Mapping[int, int]) -> None:
    """Where one side has a mark, the other is looked at near it too."""
    back = {there: here for here, there in partners.items()}
    for side, other, across in ((expected, actual, partners), (actual, expected, back)):
        for mark in sorted(side.marks)[:MOST_EVENTS]:
            before = next((place for place in range(mark, -1, -1) if place in across), None)
            other.near.append(across[before] if before is not None else 0)
        other.near = [place for place in other.near if place < len(other.events)]


# -- how it looks ------------------------------------------------------------------------------------------------------


class _Drawing:
    """Where everything is."""

    def __init__(self, sides: Sequence[_Side], partners: Mapping[int, int], upto: Dependence) -> None:
        self._sides, self._partners, self._upto = sides, partners, upto
        self._rows = [_rows(side) for side in sides]
        self._texts = [
            {place: svg.cut(str(side.events[place]), MOST_LETTERS) for place in side.shown} for side in sides
        ]
        self._boxes = [max([svg.width_of(text) for text in texts.values()] or [60]) + 16 for texts in self._texts]
        self._gutters = [LANE * (max(side.lanes.values(), default=0) + 1) + 8 for side in sides]
        widths = [
            max(box + gutter, svg.width_of(_head(side)))
            for box, gutter, side in zip(self._boxes, self._gutters, sides, strict=True)
        ]
        labels = [max([svg.width_of(said, svg.SMALL) for said in side.marks.values()] or [0]) for side in sides]
        middle = MIDDLE + max(0.0, sum(labels) - MIDDLE / 2)
        self._lefts = [MARGIN, MARGIN + widths[0] + middle]
        caption = svg.width_of(self._caption, svg.SMALL) + 2 * MARGIN
        whole = MARGIN + sum(widths) + middle + MARGIN
        height = MARGIN + ROW * (1 + max((rows for _, _, rows in self._rows), default=0)) + ROW + MARGIN
        self.size = max(whole, caption), height

    @property
    def _caption(self) -> str:
        if self._upto == unordered:
            return "rows may come in any order"
        return f"lines inside a side join what keeps its order: {svg.cut(repr(self._upto), 60)}"

    def lines(self) -> Iterator[str]:
        """What is drawn: lines first, so that texts are above them."""
        if len(self._sides) == 2:
            yield from self._ties()
        for number, side in enumerate(self._sides):
            yield svg.words(_head(side), self._lefts[number], MARGIN + 12, bold=True)
            yield from self._order(number)
            yield from self._events(number)
            _, gaps, _ = self._rows[number]
            for row, count in gaps:
                text = f"⋮ {count:,} {'event' if count == 1 else 'events'} left out"
                yield svg.words(text, self._box(number) + 8, self._y(row) + 4, size=svg.SMALL_SIZE, faint=True)
            if not side.events:
                yield svg.words("nothing", self._box(number) + 8, self._y(0) + 4, faint=True)
        yield svg.words(self._caption, MARGIN, self.size[1] - MARGIN + 2, size=svg.SMALL_SIZE, faint=True)

    # -- places --------------------------------------------------------------------------------------------------------

    def _is_right(self, number: int) -> bool:
        return number == 1

    def _box(self, number: int) -> float:
        """Where the boxes of a side begin: after its lanes on the left side, before them on the right."""
        return self._lefts[number] + (0 if self._is_right(number) else self._gutters[number])

    def _dot(self, number: int, place: int) -> tuple[float, float]:
        lane = self._sides[number].lanes[place]
        rows, _, _ = self._rows[number]
        near = 8 + LANE * lane
        at = self._box(number) + self._boxes[number] + near if self._is_right(number) else self._box(number) - near
        return at, self._y(rows[place])

    def _y(self, row: float) -> float:
        return MARGIN + ROW * (row + 1) + 8

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _order(self, number: int) -> Iterator[str]:
        side = self._sides[number]
        for place, below in side.covers.items():
            for earlier in below:
                yield self._edge(
                    number,
                    earlier,
                    place,
                    both_marked=len(side.marks) == 2
                    and place in side.marks
                    and earlier in side.marks
                    and side.bound(earlier, place),
                )
        marked = [place for place in side.shown if place in side.marks]
        if len(marked) == 2 and side.bound(*marked):
            first, second = marked
            if first not in side.covers[second]:  # what is wrong is drawn, though it follows from other lines
                yield self._edge(number, first, second, both_marked=True, dashed=True)

    def _edge(self, number: int, one: int, other: int, *, both_marked: bool, dashed: bool = False) -> str:
        (x1, y1), (x2, y2) = self._dot(number, one), self._dot(number, other)
        bend = (y2 - y1) / 2
        out = 0.0
        if x1 == x2 and dashed:  # around what is between them
            out = LANE if self._is_right(number) else -LANE
        path = f"M{x1:g} {y1:g}C{x1 + out:g} {y1 + bend:g} {x2 + out:g} {y2 - bend:g} {x2:g} {y2:g}"
        style = 'stroke-width="2.5"' if both_marked else 'stroke-opacity="0.55" stroke-width="1.5"'
        dash = ' stroke-dasharray="4 3"' if dashed else ""
        mark = ' class="tight-mark"' if both_marked else ""
        return f'<path{mark} d="{path}" fill="none" stroke="currentColor" {style}{dash}/>'

    def _events(self, number: int) -> Iterator[str]:
        side, rows = self._sides[number], self._rows[number][0]
        for place in side.shown:
            marked = place in side.marks
            x, y = self._dot(number, place)
            left, width = self._box(number), self._boxes[number]
            said = f", {side.marks[place]}" if side.marks.get(place) else ""
            parts = [
                f'<circle cx="{x:g}" cy="{y:g}" r="{4.5 if marked else 3.5}"/>',
                f'<rect x="{left:g}" y="{y - 10:g}" width="{width:g}" height="20" rx="5" '
                f'fill-opacity="{0.14 if marked else 0.06}" stroke="currentColor" '
                f'stroke-width="{2 if marked else 0.5}"/>',
                svg.words(self._texts[number][place], left + 8, self._y(rows[place]) + 4, bold=marked),
            ]
            if side.marks.get(place):
                # In the middle, beside its box, where what is equal to it would be tied.
                at = left - 8 if self._is_right(number) else left + width + 8
                anchor = "end" if self._is_right(number) else "start"
                if len(self._sides) == 1:
                    at, anchor = left + width + 8, "start"
                lift = 4 if not self._is_tied(number, place) else -4
                parts.append(svg.words(side.marks[place], at, y + lift, size=svg.SMALL_SIZE, anchor=anchor))
            yield svg.titled(f"{side.name} {place + 1}: {side.events[place]}{said}", *parts, marked=marked)

    def _is_tied(self, number: int, place: int) -> bool:
        return place in (self._partners if number == 0 else self._partners.values())

    def _ties(self) -> Iterator[str]:
        """Lines across the middle; towards what is not drawn, half of one."""
        left, right = self._sides
        begin, end = self._box(0) + self._boxes[0], self._box(1)
        for here, there in self._partners.items():
            if here not in self._rows[0][0] or there not in self._rows[1][0]:
                continue
            marked = here in left.marks and there in right.marks
            y1, y2 = self._y(self._rows[0][0][here]), self._y(self._rows[1][0][there])
            bend = (end - begin) / 2
            path = f"M{begin:g} {y1:g}C{begin + bend:g} {y1:g} {end - bend:g} {y2:g} {end:g} {y2:g}"
            style = 'stroke-width="2"' if marked else 'stroke-opacity="0.3"'
            mark = ' class="tight-mark"' if marked else ""
            yield f'<path{mark} d="{path}" fill="none" stroke="currentColor" {style}/>'


def _rows(side: _Side) -> tuple[dict[int, int], list[tuple[int, int]], int]:
    """The row of each place that is drawn; the rows that tell how many are left out there; how many rows there are."""
    rows: dict[int, int] = {}
    gaps: list[tuple[int, int]] = []
    row, expected = 0, 0
    for place in [*side.shown, len(side.events)]:
        if place > expected:
            gaps.append((row, place - expected))
            row += 1
        if place < len(side.events):
            rows[place] = row
            row += 1
        expected = place + 1
    return rows, gaps, max(row, 1)


def _head(side: _Side) -> str:
    count, shown = len(side.events), len(side.shown)
    if count <= shown:
        return side.name
    return f"{side.name}: {shown} of {count:,} events"
