"""Random formulas and words: three atoms and small timeouts, so that everything meets everything."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import strategies as st

from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    Formula,
    always,
    eventually,
    exists,
    forall,
    historically,
    next_,
    now,
    once,
    previously,
    release,
    since,
    until,
)

ATOMS = "abc"
Formulas = st.SearchStrategy[Formula]


class Letter(frozenset[str]):
    """A set of atoms, with a time."""

    time: timedelta

    def __repr__(self) -> str:
        return f"{{{''.join(sorted(self))}}} at {self.time.seconds}s"


def letter(atoms: Iterable[str], seconds: int = 0) -> Letter:
    made = Letter(atoms)
    made.time = timedelta(seconds=seconds)
    return made


@st.composite
def words(draw: st.DrawFn, *, least: int = 0, most: int = 8) -> list[Letter]:
    """Words whose time never goes back, and often stands still."""
    sets = st.frozensets(st.sampled_from(ATOMS))
    drawn = draw(st.lists(st.tuples(sets, st.integers(0, 2)), min_size=least, max_size=most))
    word, time = [], 0
    for atoms, gap in drawn:
        time += gap
        word.append(letter(atoms, time))
    return word


@dataclass(frozen=True)
class IfA:
    """A test that returns a formula, which depends on the letter."""

    yes: Formula
    no: Formula

    def __call__(self, seen: Any) -> Formula:
        return self.yes if "a" in seen else self.no


@dataclass(frozen=True)
class OfRecord:
    """A formula for each record; the records of a letter are its atoms."""

    choices: tuple[Formula, ...]

    def __call__(self, record: str) -> Formula:
        return self.choices[ATOMS.index(record)]


COUNTS = st.sampled_from([None, 1, 2, 2, 3, 4])
SPANS = st.one_of(COUNTS, st.sampled_from([timedelta(seconds=1), timedelta(seconds=3)]))


@functools.cache
def formulas(
    depth: int = 3,
    *,
    past: bool = False,
    made: bool = False,
    time: bool = False,
    future: bool = True,
    endless: bool = True,
) -> Formulas:
    """Formulas so deep: with past operators, formulas that tests and quantifiers make, timeouts in time, and none."""
    atoms: Formulas = st.sampled_from([*map(now, ATOMS), *map(now, ATOMS), TRUE, FALSE])
    if depth == 0:
        return atoms
    part = formulas(depth - 1, past=past, made=made, time=time, future=future, endless=endless)
    within: st.SearchStrategy[Any] = SPANS if time else COUNTS
    if not endless:
        within = within.filter(lambda span: span is not None)
    kinds: list[Formulas] = [
        atoms,
        part.map(lambda f: ~f),
        st.builds(lambda f, g: f & g, part, part),
        st.builds(lambda f, g: f | g, part, part),
        st.builds(lambda f, g: f >> g, part, part),
    ]
    if future:
        kinds += [
            st.builds(next_, part, st.integers(0, 3)),
            st.builds(lambda f, t: eventually(f, within=t), part, within),
            st.builds(lambda f, t: always(f, during=t), part, within),
            st.builds(lambda f, g, t: until(f, g, within=t), part, part, within),
            st.builds(lambda f, g, t: release(f, g, within=t), part, part, within),
        ]
    if past:
        present = formulas(depth - 1, past=True, time=time, future=False)
        kinds += [
            present.map(previously),
            st.builds(lambda f, t: once(f, within=t), present, within),
            st.builds(lambda f, t: historically(f, during=t), present, within),
            st.builds(lambda f, g, t: since(f, g, within=t), present, present, within),
        ]
    if made and future:
        kinds += [
            st.builds(lambda f, g: now(IfA(f, g)), part, part),
            st.builds(lambda *fs: forall(sorted, OfRecord(fs)), part, part, part),
            st.builds(lambda *fs: exists(sorted, OfRecord(fs)), part, part, part),
        ]
    return st.one_of(kinds)
