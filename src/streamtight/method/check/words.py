"""Words and formulas: is it true of this run, and what does a person see if it is not?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamtight.errors import PredicateError
from streamtight.program.letter import Letter
from streamtight.program.timeline_picture import Strip, columns_of_word, key_of, timeline_picture
from streamtight.properties.explain import Why, value_table
from streamtight.properties.judge import Judge
from streamtight.properties.records import detail
from streamtight.properties.temporal import Clock, Formula, Named, Next, Now, Past, Quantified, Timed
from streamtight.stream.schedule import Schedule
from streamtight.verdict import Table

COLUMNS = 6
"""So many parts of a formula have a column in the table."""
WIDTH = 40
"""So long a text heads a column. A part that is more than a test has a column only if its text is not longer."""
ROWS = 12
"""So many rows of a batch are shown in a cell."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a formula is on a word."""

    value: bool | None
    letters: int
    """How many letters the word had when it was decided, or when it ended."""
    rest: Formula | None
    """What the letters to come would have to satisfy, if it is open."""
    pulled: frozenset[int] = frozenset()
    """The places of the triggers that were pulled."""

    @property
    def safe_length(self) -> int | None:
        """How long a word that goes on like this one would be decided for sure; None if that is not known."""
        more = 0 if self.rest is None else self.rest.safe_length
        return None if more is None else self.letters + more


class WordJudge:
    """Judges a formula, and which of its triggers are pulled, on one word."""

    def __init__(self, formula: Formula, silent: Sequence[Formula], time: Clock | None) -> None:
        self._judge = Judge(formula, time=time, keep=True)
        self._silent = {place: Judge(one, time=time, keep=True) for place, one in enumerate(silent)}
        self._pulled: set[int] = set()

    def step(self, letter: Letter) -> bool:
        """Read a letter; True once the formula is decided."""
        # Triggers first: a formula that is false needs none, and reads no further.
        for place, judge in tuple(self._silent.items()):
            try:
                judge.step(letter)
            except PredicateError:  # of a test that the formula itself would not have asked: something is pulled here
                self._pulled.add(place)
                del self._silent[place]
        return self._judge.step(letter) is not None

    @property
    def judged(self) -> Judged:
        """What is known after the letters so far."""
        judge = self._judge
        pulled = self._pulled.union(place for place, silent in self._silent.items() if silent.value is not True)
        rest = judge.rest if judge.value is None else None
        return Judged(judge.value, judge.letters, rest, frozenset(pulled if judge.letters else ()))


def told(why: Why, word: Sequence[Letter]) -> str:
    """Why a formula is false, in a sentence for each test that matters."""
    lines = [f"it is {'true' if why.value else 'false'} after {_batches(len(word))}, because"]
    for atoms in _alike(why.atoms):
        first, last = atoms[0], atoms[-1]
        at = f"batch {first.letter}" if first is last else f"batches {first.letter} to {last.letter}"
        of = "" if first.record is None else f", for {first.record},"
        lines.append(f"  at {at} {_test_text(first)}{of} is {'true' if first.value else 'false'}")
        more = detail(last.formula, word[last.letter])
        at = "" if first is last or not more else f"at batch {last.letter} "
        lines += [f"    {at}{line}" for line in more.splitlines()]
    return "\n".join(lines)


def _alike(atoms: Sequence[Why]) -> list[list[Why]]:
    """Those that say the same of letters that follow each other, together."""
    groups: list[list[Why]] = []
    for atom in sorted(atoms, key=lambda atom: atom.letter):
        for group in groups:
            before = group[-1]
            is_same = (before.formula, before.value) == (atom.formula, atom.value) and before.record is atom.record
            if is_same and before.letter + 1 == atom.letter:
                group.append(atom)
                break
        else:
            groups.append([atom])
    return groups


def _batches(count: int) -> str:
    return f"{count} batch" if count == 1 else f"{count} batches"


def _test_text(atom: Why) -> str:
    return atom.formula.name if isinstance(atom.formula, Now) else repr(atom.formula)


def step_by_step(formula: Formula, word: Sequence[Letter], matter: Sequence[int], time: Clock | None) -> Table:
    """The word letter by letter: what went in, what came out, which parts of the formula hold."""
    parts = _shown_parts(formula)
    values = value_table(parts, word, time=time)
    streams = [*word[0].inputs, *word[0].outputs]
    has_watermark = any(letter.watermark is not None for letter in word)
    columns = ["batch", *streams, *(["watermark"] if has_watermark else []), *map(_heading, parts)]
    rows: list[tuple[str, ...]] = []
    since = 0
    for place, letter in enumerate(word):
        cells = ["\n".join(_rows_text(letter[stream])) for stream in streams]
        cells += [str(letter.watermark or "-")] if has_watermark else []
        cells += [{True: "yes", False: "no", None: "?"}[column[place]] for column in values]
        mark = " *" if place in matter else ""
        if rows and not mark and rows[-1][1:] == tuple(cells) and since not in matter:
            rows[-1] = (f"{since}-{place}", *cells)  # the same again
        else:
            rows.append((f"{place}{mark}", *cells))
            since = place
    return Table(tuple(columns), tuple(rows))


def picture(
    formula: Formula,
    word: Sequence[Letter],
    matter: Sequence[int],
    time: Clock | None,
    schedule: Schedule | None = None,
) -> str:
    """The word as a picture: rows by batch and key, and under them which parts of the formula hold when."""
    parts = [*_shown_parts(formula), formula]
    values = value_table(parts, word, time=time)
    strips = [Strip(_heading(part), column) for part, column in zip(parts, values, strict=True)]
    given = dict.fromkeys(row.kind for letter in word for rows in letter.inputs.values() for row in rows)
    came = dict.fromkeys(row.kind for letter in word for rows in letter.outputs.values() for row in rows)
    return timeline_picture(columns_of_word(word, matter, schedule), key=key_of(given, came), strips=strips)


def _rows_text(rows: Sequence[object]) -> list[str]:
    """A line for each row; one for equal rows that follow each other."""
    groups = [(row, len(list(same))) for row, same in itertools.groupby(rows)]
    lines = [str(row) if count == 1 else f"{row} {count} times" for row, count in groups[:ROWS]]
    left = sum(count for _, count in groups[ROWS:])
    return [*lines, f"and {left} more"] if left else lines or ["-"]


def _heading(part: Formula) -> str:
    text = part.name if isinstance(part, Now) else repr(part)
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def _shown_parts(formula: Formula) -> Sequence[Formula]:
    """The parts that have a column: tests and names, then what is said of them over time, where its text is short."""
    whole = formula.body if isinstance(formula, Named) else formula
    parts = list(dict.fromkeys(_visible_parts(whole)))
    tests = [part for part in parts if isinstance(part, Now | Quantified | Named)]
    others = [
        part for part in parts if part != whole and isinstance(part, Next | Timed | Past) and len(repr(part)) <= WIDTH
    ]
    return [*tests, *others][:COLUMNS]


def _visible_parts(formula: Formula) -> Iterator[Formula]:
    """It and its parts; a name stands for what is below it."""
    yield formula
    if not isinstance(formula, Named):
        for part in formula.parts:
            yield from _visible_parts(part)
