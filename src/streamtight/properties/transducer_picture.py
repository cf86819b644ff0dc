"""Pictures of data transducers: SVG, which notebooks and browsers show.

States are boxes, in layers from the inputs on the left. A rule is a line of text, with lines from the states that it
reads and an arrow to the state that it gives a value; a dashed line reads the value from before the item. What an input
or an answer is, its box says.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamtight.properties.term import Slot, Term, replaced
from streamtight.properties.transducer import Rule, Transducer, When
from streamtight.stream import svg

LINE, MARGIN, ROW, COLUMN = 18, 8, 26, 56
"""In pixels: the height of a line, around texts, between boxes, between columns."""
MOST_LETTERS = 36
"""Of a text, so much is told; the whole text is there when the pointer rests on it."""


def picture(machine: Transducer) -> str:
    """A machine as SVG: its states, and what its rules give them and when. Large ones are better `tidied` first."""
    drawing = _Drawing(machine)
    width, height = drawing.size
    told = f"data transducer with {len(machine.states)} states over {', '.join(machine.tags)}"
    return svg.frame(drawing.lines(), width, height, told)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Named(Term):
    """A term that is only written."""

    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(slots=True)
class _Box:
    """A state, or the text of a rule, and where it is: its left side and its middle."""

    texts: list[str]
    title: str
    left: float = 0.0
    middle: float = 0.0

    @property
    def width(self) -> float:
        return max(map(svg.width_of, self.texts)) + 2 * MARGIN

    @property
    def height(self) -> float:
        return LINE * len(self.texts) + 2 * MARGIN

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def top(self) -> float:
        return self.middle - self.height / 2


class _Drawing:
    """Where everything is."""

    def __init__(self, machine: Transducer) -> None:
        self._machine = machine
        self._states = [self._state_box(state) for state in range(len(machine.states))]
        self._rules = [_Box([_cut(text)], text) for text in map(self._text, machine.rules)]
        layers = _layers(machine)
        columns: dict[int, list[_Box]] = {}
        for state, box in enumerate(self._states):
            columns.setdefault(2 * layers[state], []).append(box)
        for rule, box in zip(machine.rules, self._rules, strict=True):
            # After the last state that it reads; before all states if it reads none.
            column = 1 + max((2 * layers[source.state] for source in rule.sources), default=-2)
            columns.setdefault(column, []).append(box)
        self.size = self._placed([columns[column] for column in sorted(columns)])

    def _state_box(self, state: int) -> _Box:
        machine, name = self._machine, self._machine.states[state]
        inputs = [f"input {place}" for place, each in enumerate(machine.inputs, start=1) if each == state]
        outputs = [f"answer {place}" for place, each in enumerate(machine.outputs, start=1) if each == state]
        marks = [_cut(", ".join([*inputs, *outputs]))] if inputs or outputs else []
        return _Box([_cut(name), *marks], ", ".join([name, *inputs, *outputs]))

    def _text(self, rule: Rule) -> str:
        names = self._machine.states
        read = [f"{names[state]}{chr(39) if is_new else ''}" for state, is_new in rule.sources]
        term = replaced(rule.term, lambda each: _Named(read[each.place]) if isinstance(each, Slot) else None)
        when = rule.on.value if isinstance(rule.on, When) else rule.on
        return f"{when}: {names[rule.target]}' = {term}"

    @staticmethod
    def _placed(columns: Sequence[Sequence[_Box]]) -> tuple[float, float]:
        heights = [sum(box.height for box in boxes) + ROW * (len(boxes) - 1) for boxes in columns]
        height = max(heights, default=0.0) + 2 * ROW
        left = float(COLUMN)
        for boxes, own in zip(columns, heights, strict=True):
            top = (height - own) / 2
            for box in boxes:
                box.left, box.middle = left, top + box.height / 2
                top += box.height + ROW
            left += max(box.width for box in boxes) + COLUMN
        return left, height

    def lines(self) -> Iterator[str]:
        """What is drawn: lines first, so that texts are above them."""
        for rule, box in zip(self._machine.rules, self._rules, strict=True):
            for source in dict.fromkeys(rule.sources):
                dashed = "" if source.is_new else ' stroke-dasharray="5 4"'
                yield self._line(self._states[source.state], box, dashed)
            target = self._states[rule.target]
            yield self._line(box, target, "")
            yield _head(target)
        for state, box in enumerate(self._states):
            yield self._drawn(box, is_input=state in self._machine.inputs, is_output=state in self._machine.outputs)
        for box in self._rules:
            yield svg.titled(box.title, _text_line(box, 0))

    @staticmethod
    def _line(one: _Box, other: _Box, dashed: str) -> str:
        bend = max(COLUMN / 2, abs(other.left - one.right) / 2)
        return (
            f'<path d="M{one.right:g} {one.middle:g}C{one.right + bend:g} {one.middle:g} '
            f'{other.left - bend:g} {other.middle:g} {other.left:g} {other.middle:g}" '
            f'fill="none" stroke="currentColor" stroke-opacity="0.5"{dashed}/>'
        )

    @staticmethod
    def _drawn(box: _Box, *, is_input: bool, is_output: bool) -> str:
        lines = [
            f'<rect x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" height="{box.height:g}" rx="9" '
            f'fill-opacity="{0.16 if is_input or is_output else 0.06}" stroke="currentColor" '
            f'stroke-width="{2.5 if is_output else 1}"/>',
            *(_text_line(box, number, bold=not number) for number in range(len(box.texts))),
        ]
        if is_input:
            path = f"M{box.left - COLUMN / 2:g} {box.top:g}L{box.left:g} {box.top + 6:g}"
            lines.append(f'<path d="{path}" stroke="currentColor" fill="none"/>')
        return svg.titled(box.title, *lines)


def _layers(machine: Transducer) -> list[int]:
    """For each state, how many rules lead to it from an input, at least; what no input leads to, counts as one."""
    layers = dict.fromkeys(machine.inputs, 0)
    todo = list(layers)
    for state in todo:  # grows while it is gone through
        for rule in machine.rules:
            if rule.target not in layers and any(source.state == state for source in rule.sources):
                layers[rule.target] = layers[state] + 1
                todo.append(rule.target)
    return [layers.get(state, 0) for state in range(len(machine.states))]


def _head(target: _Box) -> str:
    """The head of an arrow into a box."""
    return f'<path d="M{target.left:g} {target.middle:g}l-7 -4v8z" fill-opacity="0.7"/>'


def _text_line(box: _Box, number: int, *, bold: bool = False) -> str:
    return svg.words(box.texts[number], box.left + MARGIN, box.top + MARGIN + LINE * (number + 0.75), bold=bold)


def _cut(text: str) -> str:
    return svg.cut(text, MOST_LETTERS)
