"""Pictures of runs: SVG, which notebooks and browsers show. Micro-batches from left to right, keys from top to bottom.

What went in stands above what came out, both by key; under it, what is true of each batch. Restarts and late rows are
told at their batch, rows that should not be there are marked, and rows that never came are listed. Of long runs only
the batches near a mark are drawn, and the picture says how many are left out.
"""

from __future__ import annotations

import types
import typing
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from streamtight.program.letter import Letter, flat
from streamtight.program.run import Cause, Run
from streamtight.stream import svg
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import Event, Kind, text_of
from streamtight.stream.schedule import Schedule

MOST_BATCHES, MOST_KEYS, MOST_IN_CELL, MOST_LISTED = 10, 8, 4, 6
"""So many batches, keys of a stream, rows in a cell and rows that never came are drawn."""
MOST_LETTERS, MOST_OF_NAME = 30, 40
"""So much of a row is told, and of what stands on the left; the rest is there when the pointer rests on it."""
LINE, PAD, MARGIN, NARROWEST = 16, 6, 14, 66
"""In pixels: the height of a line, inside cells, around everything, the narrowest column."""

Truth = bool | None


@dataclass(frozen=True, slots=True)
class Column:
    """One micro-batch: the rows of each stream, and what is to be said about it."""

    name: str
    streams: Mapping[str, Sequence[Event]]
    notes: Sequence[str] = ()
    matters: bool = False
    """Whether it decides."""
    wrong: Mapping[str, Collection[int]] = field(default_factory=dict)
    """For each stream, the places of rows that should not be there."""


@dataclass(frozen=True, slots=True)
class Strip:
    """What is true of each batch."""

    name: str
    values: Sequence[Truth]


def timeline_picture(
    columns: Sequence[Column],
    *,
    key: Sequence[str] = (),
    strips: Sequence[Strip] = (),
    never: Sequence[Event] = (),
) -> str:
    """A run: a column for each micro-batch, a line for each stream and key, and for each strip.

    key      the columns whose values tell the lines of a stream apart; kinds that lack them have a line of their own
    never    rows that were expected and never came
    """
    drawing = _Drawing(columns, tuple(key), strips, never)
    told = f"{len(columns)} micro-batches by {', '.join(key) or 'kind'}"
    return svg.frame(drawing.lines(), *drawing.size, told)


# -- runs and words as columns -----------------------------------------------------------------------------------------


def columns_of_run(run: Run, schedule: Schedule, extra: Iterable[Event] = ()) -> list[Column]:
    """The micro-batches of a run of this schedule; `extra` are rows that came too often."""
    left = Counter(extra)
    columns = []
    stops = {restart.after: restart for restart in schedule.restarts}
    again = {step.batch for step in run.steps if step.cause is Cause.REPLAY}
    for step in run.steps:
        output = flat(step.output)
        wrong = []
        # What a batch gave before it ran again is replaced by what it gives then.
        if step.cause is Cause.REPLAY or step.batch not in again:
            for place in range(len(output) - 1, -1, -1):
                if left[output[place]] > 0:
                    left[output[place]] -= 1
                    wrong.append(place)
        notes = []
        if step.cause is Cause.REPLAY:
            notes.append("run again")
        elif (stop := stops.get(step.batch)) is not None and step.cause is Cause.DATA:
            notes.append("stopped before its commit" if stop.replay else "then stopped and restarted")
        if step.late_rows:
            notes.append(f"{step.late_rows} late {'row' if step.late_rows == 1 else 'rows'} dropped")
        name = {Cause.IDLE: "no input", Cause.FLUSH: "end of time"}.get(step.cause, f"batch {step.batch}")
        given = {"input": flat(step.input), "output": output}
        columns.append(Column(name, given, notes, bool(wrong), {"output": wrong}))
    return columns


def columns_of_word(word: Sequence[Letter], matter: Collection[int], schedule: Schedule | None = None) -> list[Column]:
    """The letters of a word; those at the places that matter are marked."""
    stops = {restart.after: restart for restart in schedule.restarts} if schedule is not None else {}
    columns = []
    for place, letter in enumerate(word):
        notes = [] if letter.watermark is None else [f"watermark {letter.watermark}"]
        if (stop := stops.get(letter.batch)) is not None:
            notes.append("stopped, run again" if stop.replay else "then stopped and restarted")
        columns.append(Column(f"batch {letter.batch}", {**letter.inputs, **letter.outputs}, notes, place in matter))
    return columns


def key_of(given: Iterable[Kind], came: Iterable[Kind], *dependences: Dependence) -> tuple[str, ...]:
    """The columns that a person would follow through a run.

    Those of an order, if one has a key; else the first that comes out as it went in, as the columns of a grouping do.
    """
    inputs, outputs = list(given), list(came)
    for clause in (clause for dependence in dependences for clause in dependence.clauses):
        if clause.key and any(set(clause.key) <= set(kind.names) for kind in (*inputs, *outputs)):
            return tuple(clause.key)
    for kind in outputs:
        for name, declared in kind.fields.items():
            known = _if_not_null(declared)
            if known in (int, str, bool) and any(_if_not_null(one.fields.get(name)) is known for one in inputs):
                return (name,)
    return ()


def _if_not_null(declared: object) -> object:
    """The type of a field, whether or not it may be null: Spark says of most columns of an output that they may."""
    left = [part for part in typing.get_args(declared) if part is not type(None)]
    return left[0] if len(left) == 1 and isinstance(declared, types.UnionType) else declared


# -- how it looks ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Line:
    """A line of the picture: its name, and the texts of each column."""

    name: str
    cells: Sequence[Sequence[tuple[str, str, bool]]]
    """What is shown, all of it, and whether it is marked."""

    @property
    def height(self) -> float:
        return LINE * max([1, *(len(cell) for cell in self.cells)]) + PAD


class _Drawing:
    """Where everything is."""

    def __init__(
        self, columns: Sequence[Column], key: tuple[str, ...], strips: Sequence[Strip], never: Sequence[Event]
    ) -> None:
        self._places, self._gaps = _near_what_matters(columns)
        self._columns = [columns[place] for place in self._places]
        self._strips = [Strip(one.name, [one.values[place] for place in self._places]) for one in strips]
        self._never = never
        self._key = key
        streams = dict.fromkeys(name for column in columns for name in column.streams)
        self._blocks = [(stream, *self._lines_of(stream)) for stream in streams]
        self._widths = [self._width_of_column(number) for number in range(len(self._columns))]
        names = [line.name for _, lines, _ in self._blocks for line in lines] + [one.name for one in strips]
        self._side = max([60.0, *(svg.width_of(svg.cut(name, MOST_OF_NAME)) for name in names)]) + 2 * PAD
        self._lefts = [MARGIN + self._side + sum(self._widths[:n]) for n in range(len(self._widths) + 1)]
        notes = max([0, *(len(column.notes) for column in self._columns)])
        self._top = MARGIN + LINE * (1 + notes) + PAD
        width, height = self._lefts[-1] + MARGIN, float(self._top)
        for _, lines, _ in self._blocks:
            height += LINE + PAD + sum(line.height for line in lines)
        if strips:
            height += LINE + PAD + (LINE + PAD) * len(strips)
        if never:
            height += LINE + PAD + LINE * min(len(never), MOST_LISTED + 1)
            longest = max(svg.width_of(_cut_row(event)) for event in never[:MOST_LISTED])
            width = max(width, MARGIN + self._side + longest + MARGIN)
        self.size = max(width, MARGIN * 2 + svg.width_of(self._caption, svg.SMALL)), height + LINE + MARGIN

    @property
    def _caption(self) -> str:
        left = sum(self._gaps.values())
        by = f"by {', '.join(self._key)}" if self._key else "by kind of row"
        return by + (f"; {left:,} micro-batches are left out" if left else "")

    # -- what there is -------------------------------------------------------------------------------------------------

    def _lines_of(self, stream: str) -> tuple[list[_Line], int]:
        """The lines of a stream, one for each key, and how many keys are left out."""
        kinds = {event.kind for column in self._columns for event in column.streams.get(stream, ())}
        cells: dict[str, list[list[tuple[str, str, bool]]]] = {}
        marked: Counter[str] = Counter()
        for number, column in enumerate(self._columns):
            wrong = column.wrong.get(stream, ())
            for place, event in enumerate(column.streams.get(stream, ())):
                name, text = self._told(event, many=len(kinds) > 1)
                line = cells.setdefault(name, [[] for _ in self._columns])
                line[number].append((text, str(event) if len(line[number]) <= MOST_IN_CELL else "", place in wrong))
                marked[name] += place in wrong
        # Keys with a marked row first, if there are too many; else as they came.
        kept = sorted(cells, key=lambda name: not marked[name])[:MOST_KEYS] if len(cells) > MOST_KEYS else list(cells)
        lines = [_Line(name, [_few(cell) for cell in cells[name]]) for name in cells if name in set(kept)]
        return lines or [_Line("", [[] for _ in self._columns])], len(cells) - len(kept)

    def _told(self, event: Event, *, many: bool) -> tuple[str, str]:
        """The name of its line, and what is shown of it there."""
        fields = event.as_dict()
        mine = [name for name in self._key if name in fields]
        name = ", ".join(f"{each}={_value(fields[each])}" for each in mine) or event.kind.name
        rest = ", ".join(f"{each}={_value(value)}" for each, value in fields.items() if each not in mine)
        if mine and (many or not rest):
            rest = f"{event.kind.name} {rest}".rstrip()
        return name, svg.cut(rest or event.kind.name, MOST_LETTERS)

    def _width_of_column(self, number: int) -> float:
        column = self._columns[number]
        texts = [column.name, *(line_text for _, lines, _ in self._blocks for line_text in _texts(lines, number))]
        widths = [svg.width_of(text) for text in texts] + [svg.width_of(note, svg.SMALL) for note in column.notes]
        return max([NARROWEST, *widths]) + 2 * PAD

    # -- its parts -----------------------------------------------------------------------------------------------------

    def lines(self) -> Iterator[str]:
        """What is drawn: columns that matter first, so that texts are above them."""
        bottom = self.size[1] - MARGIN - LINE
        if self._never:
            bottom -= LINE + PAD + LINE * min(len(self._never), MOST_LISTED + 1)
        for number, column in enumerate(self._columns):
            left, width = self._lefts[number], self._widths[number]
            if column.matters:
                yield (
                    f'<rect class="tight-mark" x="{left:g}" y="{MARGIN - 6}" width="{width:g}" '
                    f'height="{bottom - MARGIN + 6:g}" rx="5" fill="currentColor" fill-opacity="0.08"/>'
                )
            yield svg.words(column.name, left + PAD, MARGIN + 10, bold=True)
            for number_of_note, note in enumerate(column.notes, start=1):
                at = MARGIN + 10 + LINE * number_of_note
                is_bad = "late" in note or "stopped" in note or "again" in note
                words = svg.words(svg.cut(note, MOST_LETTERS), left + PAD, at, size=svg.SMALL_SIZE, faint=not is_bad)
                yield svg.titled(note, words, marked=is_bad)
            before = self._gaps.get(number)
            dash = ' stroke-dasharray="3 3" stroke-width="3"' if before else ""
            path = f'<path d="M{left:g} {MARGIN - 6}V{bottom:g}" stroke="currentColor" stroke-opacity="0.25"{dash}/>'
            yield svg.titled(f"{before:,} micro-batches are left out here", path) if before else path
        top = float(self._top)
        for stream, lines, left_out in self._blocks:
            yield from self._block_head(stream + (f" ({left_out:,} keys left out)" if left_out else ""), top)
            top += LINE + PAD
            for line in lines:
                yield from self._drawn(line, top)
                top += line.height
        if self._strips:
            yield from self._block_head("what holds", top)
            top += LINE + PAD
            for strip in self._strips:
                yield from self._drawn_strip(strip, top)
                top += LINE + PAD
        yield from self._drawn_never(top)
        yield svg.words(self._caption, MARGIN, self.size[1] - MARGIN + 4, size=svg.SMALL_SIZE, faint=True)

    def _block_head(self, text: str, top: float) -> Iterator[str]:
        end = self._lefts[-1]
        yield f'<path d="M{MARGIN} {top:g}H{end:g}" stroke="currentColor" stroke-opacity="0.5"/>'
        yield svg.words(svg.cut(text, MOST_OF_NAME), MARGIN, top + LINE - 2, size=svg.SMALL_SIZE, faint=True)

    def _drawn(self, line: _Line, top: float) -> Iterator[str]:
        yield self._name(line.name, top)
        for number, cell in enumerate(line.cells):
            for place, (text, whole, marked) in enumerate(cell):
                words = svg.words(text, self._lefts[number] + PAD, top + LINE * (place + 0.75), bold=marked)
                yield svg.titled(whole, words, marked=marked)

    def _drawn_strip(self, strip: Strip, top: float) -> Iterator[str]:
        yield self._name(strip.name, top)
        for number, value in enumerate(strip.values):
            x, y = self._lefts[number] + PAD + 6, top + LINE * 0.5
            if value is None:
                yield svg.words("?", x, y + 4, anchor="middle", faint=True)
            elif value:
                yield svg.titled("yes", f'<circle cx="{x:g}" cy="{y:g}" r="5" fill-opacity="0.75"/>')
            else:
                cross = f"M{x - 4:g} {y - 4:g}l8 8m0 -8l-8 8"
                path = f'<path d="{cross}" fill="none" stroke="currentColor" stroke-width="2.5"/>'
                yield svg.titled("no", path, marked=self._columns[number].matters)

    def _drawn_never(self, top: float) -> Iterator[str]:
        if not self._never:
            return
        yield from self._block_head("expected, but never came", top)
        top += LINE + PAD
        for event in self._never[:MOST_LISTED]:
            words = svg.words(_cut_row(event), MARGIN + self._side + PAD, top + LINE * 0.5, bold=True)
            yield svg.titled(str(event), words, marked=True)
            top += LINE
        if len(self._never) > MOST_LISTED:
            text = f"and {len(self._never) - MOST_LISTED:,} more"
            yield svg.words(text, MARGIN + self._side + PAD, top + LINE * 0.5, faint=True)

    def _name(self, name: str, top: float) -> str:
        return svg.titled(name, svg.words(svg.cut(name, MOST_OF_NAME), MARGIN + PAD, top + LINE * 0.75))


def _near_what_matters(columns: Sequence[Column]) -> tuple[list[int], dict[int, int]]:
    """Which columns are drawn, and before which of them how many are left out."""
    count = len(columns)
    places = list(range(count))
    if count > MOST_BATCHES:
        centres = [place for place in places if columns[place].matters or columns[place].notes] or [count - 1]
        centres = sorted(centres, key=lambda place: not columns[place].matters)[:MOST_BATCHES]
        distances = [min(abs(place - centre) for centre in centres) for place in places]
        places = sorted(sorted(places, key=lambda place: (distances[place], place))[:MOST_BATCHES])
    gaps: dict[int, int] = {}
    expected = 0
    for number, place in enumerate([*places, count]):
        if place > expected:
            gaps[number] = place - expected
        expected = place + 1
    return places, gaps


def _few(cell: Sequence[tuple[str, str, bool]]) -> Sequence[tuple[str, str, bool]]:
    """As many rows as there is room for, those that are marked before others."""
    if len(cell) <= MOST_IN_CELL:
        return cell
    kept = sorted(sorted(range(len(cell)), key=lambda place: not cell[place][2])[: MOST_IN_CELL - 1])
    more = len(cell) - len(kept)
    return [*(cell[place] for place in kept), (f"and {more:,} more", f"{more:,} more rows", False)]


def _texts(lines: Sequence[_Line], number: int) -> Iterator[str]:
    return (text for line in lines for text, _, _ in line.cells[number])


def _value(value: object) -> str:
    # A text as it is, since quotes would take the room of letters; but one that is not seen is written as code.
    return svg.cut(value, MOST_LETTERS) if isinstance(value, str) and value.strip() else svg.cut(text_of(value), 200)


def _cut_row(event: Event) -> str:
    return svg.cut(str(event), 2 * MOST_LETTERS)
