"""A generator derived from a formula: streams on which it is true.

>>> from streamtight.properties.records import all_records, some_record
>>> from streamtight.properties.temporal import until
>>> from streamtight.stream.event import Kind
>>> User = Kind("User", id=int, good=bool)
>>> all_good = all_records("input", lambda user: user.good)
>>> some_bad = some_record("input", lambda user: not user.good)
>>> good, bad = gen.batch(User, good=[True]), gen.batch(User, good=[False])
>>> users = satisfying(until(all_good, some_bad, within=4), {all_good: good, some_bad: good + bad})
>>> {len(stream) for stream in users.examples(100)} == {1, 2, 3, 4}
True
>>> all(not stream[-1][-1].good for stream in users.examples(100))
True

The formula says how batches follow each other, and the generators say how a batch comes about for which an atom is
true. Negations are pushed down to the atoms first. A conjunction joins the batches of its parts, which may spoil
what one of them asks for; so every stream is judged before it is given away.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from streamtight.errors import FormulaError, SourceError
from streamtight.program.letter import INPUT, Letter
from streamtight.properties.temporal import (
    Always,
    And,
    Constant,
    Eventually,
    Formula,
    Implies,
    Named,
    Next,
    Not,
    Now,
    Operand,
    Or,
    Release,
    Timed,
    Until,
    conjunction,
    denied,
    formula_of,
    negation,
    shown,
)
from streamtight.source import gen
from streamtight.source.streams import USUAL_LENGTH, AnyGenerator, Stream
from streamtight.stream.event import Event, Kind

TRIED = 200
"""So many streams show whether enough of them satisfy the formula."""
ToLetter = Callable[[tuple[Event, ...]], Any]
"""What the formula sees of a batch."""


def satisfying(
    formula: Operand,
    generators: Mapping[Any, AnyGenerator],
    *,
    takes: Mapping[str, Kind | Sequence[Kind]] | None = None,
    letter: ToLetter | None = None,
    length: int = USUAL_LENGTH,
) -> gen.StreamGenerator:
    """Streams on which the formula is true.

    `generators` has a generator of batches for each atom of the formula: by the atom itself, by its test or by its
    name. A negated atom needs one of its own, such as {~bad: ...}; any other part of the formula may have one, of
    streams too. Of several ways to make a disjunction or an implication true, those that lack a generator are left out.

    The formula sees a batch as the letter whose input it is; `takes` tells which kinds belong to which input if there
    are several, and `letter` makes letters of another type. An operator without a timeout gets `length` batches. Such
    an `always` or `release` is never true of a stream that ends; then the formula is not false on the streams.
    """
    wanted = formula_of(formula, "satisfying(formula, ...)")
    maker = _Maker(_by_formula(wanted, generators), length)
    streams = maker.streams(wanted)
    unused = [one for one in maker.generators if one not in maker.used]
    if unused:
        raise FormulaError(
            "satisfying(..., generators)",
            needed=f"generators for parts of {wanted!r}",
            came=f"one for {unused[0]!r}, which is needed for none of them",
            hint="the same atom in both: bad = now(...), and {bad: gen.batch_of([...])}",
        )
    accepted = (True, None) if maker.is_endless else (True,)

    def is_true(stream: Stream) -> bool:
        word = _letters(stream, takes) if letter is None else [letter(batch) for batch in stream]
        return wanted.evaluate(word) in accepted

    if not any(is_true(stream) for count in (TRIED // 10, TRIED) for stream in streams.examples(count)):
        raise FormulaError(
            f"satisfying({wanted!r})",
            needed="generators that make it true together",
            came=f"none in {TRIED} streams on which it is",
            hint="generators whose batches also pass the other tests of the formula: good + bad, rather than bad",
        )
    made = streams.where(is_true)
    return gen.StreamGenerator(made.kinds, f"satisfying({wanted!r})", made.make)


class _Maker:
    """Puts generators together as a formula puts its atoms together."""

    def __init__(self, generators: Mapping[Formula, AnyGenerator], length: int) -> None:
        self.generators = generators
        self.length = length
        self.used: set[Formula] = set()
        self.is_endless = False

    def streams(self, formula: Formula) -> gen.StreamGenerator:
        """Streams of the shape that this formula asks for."""
        given = self.generators.get(formula)
        if given is not None:
            self.used.add(formula)
            return gen.now(given) if isinstance(given, gen.BatchGenerator) else given
        match formula:
            case Named(body):
                return self.streams(body)
            case Constant(True):
                return gen.now(gen.empty)
            case Constant():
                raise FormulaError(
                    "satisfying(...)", needed="a formula that can be true", came="FALSE in it", hint="a weaker one"
                )
            case Not(body):
                pushed = denied(body)
                if pushed is not None:
                    return self.streams(pushed)
            case And(parts):
                first, *others = map(self.streams, parts)
                for other in others:
                    first = first & other
                return first
            case Or(parts):
                return self.one_of(parts)
            case Implies(left, right):
                # With the left: a stream on which the left is false would ask nothing of a job.
                return self.one_of((conjunction((left, right)), right, negation(left)))
            case Next(body, n):
                return gen.next(self.streams(body), n)
            case Timed(within=within):
                return self.timed(formula, self.within(formula, within))
        raise _missing(formula)

    def timed(self, formula: Timed, within: int) -> gen.StreamGenerator:
        parts = [self.streams(part) for part in formula.parts]
        match formula:
            case Eventually():
                return gen.eventually(*parts, within=within)
            case Until():
                return gen.until(*parts, within=within)
        self.is_endless |= formula.within is None
        match formula:
            case Always():
                return gen.always(*parts, during=within)
            case Release():
                return gen.release(*parts, within=within)
        raise _missing(formula)

    def within(self, formula: Formula, within: object) -> int:
        if within is None:
            return self.length
        if isinstance(within, int):
            return within
        raise FormulaError(
            f"satisfying({formula!r})",
            needed="timeouts in batches",
            came=f"one in time, {within}",
            hint="within=5, or a generator for this part of the formula",
        )

    def one_of(self, ways: Iterable[Formula]) -> gen.StreamGenerator:
        made: list[gen.StreamGenerator] = []
        refused: FormulaError | None = None
        for way in ways:
            try:
                made.append(self.streams(way))
            except FormulaError as error:
                refused = refused or error
        if refused is not None and not made:
            raise refused
        first, *others = made
        for other in others:
            first = first | other
        return first


def _letters(stream: Stream, takes: Mapping[str, Kind | Sequence[Kind]] | None) -> Iterator[Letter]:
    """The letters of a stream that is only input."""
    time: datetime | None = None
    for number, batch in enumerate(stream):
        inputs = {INPUT: batch}
        if takes is not None:
            inputs = {name: tuple(event for event in batch if _is_of(event, of)) for name, of in takes.items()}
        times = [value for event in batch for value in event[1:] if isinstance(value, datetime)]
        time = max(times if time is None else [time, *times], default=None)
        yield Letter(inputs, {}, batch=number, time=time)


def _is_of(event: Event, kinds: Kind | Sequence[Kind]) -> bool:
    return event.kind is kinds if isinstance(kinds, Kind) else event.kind in kinds


# -- wrong questions -------------------------------------------------------------------------------------------------


def _by_formula(wanted: Formula, generators: Mapping[Any, AnyGenerator]) -> dict[Formula, AnyGenerator]:
    """The generators by formulas; a name stands for every atom that is called so."""
    told: dict[Formula, AnyGenerator] = {}
    for key, generator in generators.items():
        where = f"satisfying(..., {{{shown(key)}: ...}})"
        if not isinstance(generator, (gen.BatchGenerator, gen.StreamGenerator)):
            raise SourceError(
                where, needed="a generator of batches", came=shown(generator), hint="gen.batch(User, size=5)"
            )
        for formula in _named(wanted, key) or [formula_of(key, where)]:
            told[formula] = generator
    return told


def _named(formula: Formula, key: object) -> list[Formula]:
    """The atoms in it that are called so."""
    found = [one for part in formula.parts for one in _named(part, key)]
    if isinstance(formula, Now) and isinstance(key, str) and formula.name in (key, repr(key)):
        found.append(formula)
    return found


def _missing(formula: Formula) -> FormulaError:
    is_atom = isinstance(formula, Now) or (isinstance(formula, Not) and isinstance(formula.body, Now))
    return FormulaError(
        f"satisfying({formula!r})",
        needed="a generator of batches for which it is true"
        if is_atom
        else "a generator of streams on which it is true, since none can be derived",
        came="none",
        hint=f"{{{formula!r}: gen.batch(...)}}" if is_atom else f"{{{formula!r}: gen.stream(...)}}",
    )
