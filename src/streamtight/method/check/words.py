"""Words and formulas: is it true of this run, and what does a person see if it is not?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streamtight.program.letter import Letter
from streamtight.properties.explain import Why, value_table
from streamtight.properties.judge import Judge
from streamtight.properties.records import detail
from streamtight.properties.temporal import Clock, Formula, Now, Quantified
from streamtight.verdict import Table

COLUMNS = 6
"""So many parts of a formula have a column in the table."""
ROWS = 12
"""So many rows of a batch are shown in a cell."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a formula is on a word."""

    value: bool | None
    letters: int
    """How many letters the word had when it was decided, or when it ended."""
    rest: Formula
    """What the letters to come would have to satisfy."""
    pulled: frozenset[str] = frozenset()
    """The triggers that were pulled."""

    @property
    def safe_length(self) -> int | None:
        """How long a word that goes on like this one would be decided for sure; None if that is not known."""
        more = self.rest.safe_length
        return None if more is None else self.letters + more


class WordJudge:
    """Judges a formula, and which of its triggers are pulled, on one word."""

    def __init__(self, formula: Formula, silent: Sequence[tuple[str, Formula]], time: Clock | None) -> None:
        self._judge = Judge(formula, time=time, keep=True)
        self._silent = [(name, Judge(one, time=time, keep=True)) for name, one in silent]

    def step(self, letter: Letter) -> bool:
        """Read a letter; True once the formula is decided."""
        # Triggers first: a formula that is false needs none, and reads no further.
        for _, judge in self._silent:
            judge.step(letter)
        return self._judge.step(letter) is not None

    @property
    def judged(self) -> Judged:
        """What is known after the letters so far."""
        judge = self._judge
        pulled = frozenset(name for name, silent in self._silent if silent.value is not True)
        return Judged(judge.value, judge.letters, judge.rest, pulled if judge.letters else frozenset())


def told(why: Why, word: Sequence[Letter]) -> str:
    """Why a formula is false, in a sentence for each test that matters."""
    lines = [f"it is {'true' if why.value else 'false'} after {_batches(len(word))}, because"]
    for atom in why.atoms:
        of = "" if atom.record is None else f", for {atom.record!r},"
        lines.append(f"  at batch {atom.letter} {_test_text(atom)}{of} is {'true' if atom.value else 'false'}")
        more = detail(atom.formula, word[atom.letter])
        lines += [f"    {line}" for line in more.splitlines()]
    return "\n".join(lines)


def _batches(count: int) -> str:
    return f"{count} batch" if count == 1 else f"{count} batches"


def _test_text(atom: Why) -> str:
    return atom.formula.name if isinstance(atom.formula, Now) else repr(atom.formula)


def step_by_step(formula: Formula, word: Sequence[Letter], matter: Sequence[int], time: Clock | None) -> Table:
    """The word letter by letter: what went in, what came out, which parts of the formula hold."""
    parts = list(dict.fromkeys(_shown_parts(formula)))[:COLUMNS]
    values = value_table(parts, word, time=time)
    streams = [*word[0].inputs, *word[0].outputs]
    has_watermark = any(letter.watermark is not None for letter in word)
    columns = ["batch", *streams, *(["watermark"] if has_watermark else []), *map(_heading, parts)]
    rows = []
    for place, letter in enumerate(word):
        cells = [f"{place}{' *' if place in matter else ''}"]
        cells += ["\n".join(_rows_text(letter[stream])) for stream in streams]
        cells += [str(letter.watermark or "-")] if has_watermark else []
        cells += [{True: "yes", False: "no", None: "?"}[column[place]] for column in values]
        rows.append(tuple(cells))
    return Table(tuple(columns), tuple(rows))


def _rows_text(rows: Sequence[object]) -> list[str]:
    """A line for each row; one for equal rows that follow each other."""
    groups = [(row, len(list(same))) for row, same in itertools.groupby(rows)]
    lines = [repr(row) if count == 1 else f"{row!r} {count} times" for row, count in groups[:ROWS]]
    left = sum(count for _, count in groups[ROWS:])
    return [*lines, f"and {left} more"] if left else lines or ["-"]


def _heading(part: Formula) -> str:
    return part.name if isinstance(part, Now) else repr(part)


def _shown_parts(formula: Formula) -> Iterator[Formula]:
    """The tests in a formula, and what has a name."""
    if isinstance(formula, Now | Quantified):
        yield formula
    for part in formula.parts:
        yield from _shown_parts(part)
