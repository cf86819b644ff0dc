"""Tests of the rows of a letter, for use in formulas: which rows, how many, the same as expected.

>>> from streamtight.program.letter import Letter
>>> from streamtight.stream.event import Kind
>>> N = Kind("N", n=int)
>>> letter = Letter({"input": (N(1), N(2))}, {"output": (N(2), N(4))})
>>> all_records("output", lambda row: row.n > 0).evaluate([letter]), (count("output") == 3).evaluate([letter])
(True, False)
>>> twice = same_rows("output", lambda letter: [(2 * row.n,) for row in letter.input])
>>> twice.evaluate([letter])
True

Each names the stream whose rows it reads: "input" and "output" for a job with one of each.
"""

from __future__ import annotations

import math
import operator
import typing
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from streamtight.errors import FormulaError, PredicateError, StreamtightError
from streamtight.properties.temporal import Formula, Now, shown, source_text, what_raised
from streamtight.stream.event import Event, Kind

RecordTest = Callable[[Any], bool]
SHOWN = 5
"""So many rows are shown of each kind."""


@runtime_checkable
class Explains(Protocol):
    """A test that can say more than that it failed."""

    def explain(self, letter: Any) -> str:
        """What of the letter it was."""


@runtime_checkable
class HasTrigger(Protocol):
    """A test that says nothing about a letter which has nothing to test."""

    def without_trigger(self) -> Formula:
        """True only of letters of which it says nothing."""


# -- which rows ------------------------------------------------------------------------------------------------------


def all_records(stream: str, test: RecordTest, /) -> Formula:
    """The test holds of every row of the stream in the current letter."""
    return _records(_All(_name_of_stream(stream, "all_records"), _function(test, "all_records")))


def some_record(stream: str, test: RecordTest, /) -> Formula:
    """The test holds of one row or more."""
    return _records(_Some(_name_of_stream(stream, "some_record"), _function(test, "some_record")))


def no_record(stream: str, test: RecordTest, /) -> Formula:
    """The test holds of no row."""
    return _records(_No(_name_of_stream(stream, "no_record"), _function(test, "no_record")))


@dataclass(frozen=True, slots=True)
class _All:
    stream: str
    test: RecordTest

    def __call__(self, letter: Any) -> bool:
        return all(self.passes(row, letter) for row in letter[self.stream])

    def passes(self, row: Any, letter: Any) -> bool:
        return _asked(self.test, row, str(self), letter)

    def explain(self, letter: Any) -> str:
        bad = [row for row in letter[self.stream] if _answer(self.test, row) is False]
        return "" if not bad else f"{source_text(self.test)} is false of {_some_of(bad)}"

    def without_trigger(self) -> Formula:
        return count(self.stream) == 0

    def __str__(self) -> str:
        return f"all_records({self.stream!r}, {source_text(self.test)})"


@dataclass(frozen=True, slots=True)
class _Some:
    stream: str
    test: RecordTest

    def __call__(self, letter: Any) -> bool:
        return any(_asked(self.test, row, str(self), letter) for row in letter[self.stream])

    def explain(self, letter: Any) -> str:
        rows = letter[self.stream]
        good = [row for row in rows if _answer(self.test, row)]
        if good:
            return f"{source_text(self.test)} is true of {_some_of(good)}"
        return f"{self.stream} has {_some_of(rows)}" if rows else f"{self.stream} has no row"

    def __str__(self) -> str:
        return f"some_record({self.stream!r}, {source_text(self.test)})"


@dataclass(frozen=True, slots=True)
class _No:
    stream: str
    test: RecordTest

    def __call__(self, letter: Any) -> bool:
        return not any(_asked(self.test, row, str(self), letter) for row in letter[self.stream])

    def explain(self, letter: Any) -> str:
        found = [row for row in letter[self.stream] if _answer(self.test, row)]
        return f"{source_text(self.test)} is true of {_some_of(found)}" if found else ""

    def __str__(self) -> str:
        return f"no_record({self.stream!r}, {source_text(self.test)})"


def _records(test: _All | _Some | _No) -> Formula:
    return Now(test, str(test), is_named=True)


def _answer(test: RecordTest, row: Any) -> object:
    """What a test says of a row that it may not have been asked about before; None if it raises."""
    try:
        return test(row)
    except Exception:
        return None


def _asked(test: RecordTest, row: Any, where: str, letter: Any) -> bool:
    number = getattr(letter, "batch", 0)
    try:
        value = test(row)
    except StreamtightError:
        raise
    except Exception as error:
        raise PredicateError(
            where,
            needed=f"an answer for the record {shown(row)} of letter {number}",
            came=f"{type(error).__name__}: {error}",
            hint=what_raised(error),
            letter=number,
            record=row,
        ) from error
    if value is True or value is False or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise PredicateError(
        where,
        needed="True or False",
        came=f"{shown(value)} for the record {shown(row)} of letter {number}",
        hint="a comparison, such as row.amount > 0; for a formula of a record, forall(records, formula)",
        letter=number,
        record=row,
    )


# -- how many --------------------------------------------------------------------------------------------------------


def count(stream: str, test: RecordTest | None = None, /) -> Count:
    """How many rows the stream has in the current letter, or how many that pass a test; to be compared.

    >>> count("output") <= count("input")
    count('output') <= count('input')
    """
    return Count(_name_of_stream(stream, "count"), None if test is None else _function(test, "count"))


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


class Count:
    """A number of rows. Compared with a number, or with another one, it is a formula."""

    __slots__ = ("stream", "test")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, stream: str, test: RecordTest | None) -> None:
        self.stream = stream
        self.test = test

    def of(self, letter: Any) -> int:
        """The number of rows in this letter."""
        rows = letter[self.stream]
        return len(rows) if self.test is None else sum(_asked(self.test, row, repr(self), letter) for row in rows)

    def _compared(self, sign: str, other: object) -> Formula:
        if not isinstance(other, Count | int) or isinstance(other, bool):
            raise FormulaError(
                f"{self!r} {sign} ...",
                needed="a number of rows, or the count of another stream",
                came=repr(other),
                hint=f"{self!r} {sign} 1",
            )
        return Now(_Compared(self, sign, other), f"{self!r} {sign} {other!r}", is_named=True)

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return self._compared("==", other)

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return self._compared("!=", other)

    def __lt__(self, other: Count | int) -> Formula:
        return self._compared("<", other)

    def __le__(self, other: Count | int) -> Formula:
        return self._compared("<=", other)

    def __gt__(self, other: Count | int) -> Formula:
        return self._compared(">", other)

    def __ge__(self, other: Count | int) -> Formula:
        return self._compared(">=", other)

    def __repr__(self) -> str:
        return f"count({self.stream!r}{'' if self.test is None else f', {source_text(self.test)}'})"


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    count: Count
    sign: str
    other: Count | int

    def __call__(self, letter: Any) -> bool:
        return _COMPARISONS[self.sign](*self._numbers(letter))

    def explain(self, letter: Any) -> str:
        mine, other = self._numbers(letter)
        return f"{self.count!r} is {mine}" + (f", {self.other!r} is {other}" if isinstance(self.other, Count) else "")

    def _numbers(self, letter: Any) -> tuple[int, int]:
        return self.count.of(letter), self.other.of(letter) if isinstance(self.other, Count) else self.other


# -- the same as expected --------------------------------------------------------------------------------------------


def same_rows(
    stream: str,
    expected: Callable[[Any], Iterable[Any]],
    /,
    *,
    ordered: bool = False,
    ignore: Iterable[str] = (),
    places: int | None = None,
) -> Formula:
    """The stream has exactly the rows that `expected` gives for the letter: events, tuples, dicts or Spark rows.

    Rows are compared as often as they come, in any order unless `ordered`; `ignore` leaves columns out, and floats are
    rounded to so many `places`. If they differ, both are shown side by side.
    """
    left_out = (ignore,) if isinstance(ignore, str) else tuple(ignore)
    if places is not None and (not isinstance(places, int) or isinstance(places, bool)):
        raise FormulaError("same_rows(places=...)", needed="a whole number", came=repr(places), hint="places=2")
    test = _Same(
        _name_of_stream(stream, "same_rows"), _function(expected, "same_rows"), ordered, frozenset(left_out), places
    )
    return Now(test, str(test), is_named=True)


@dataclass(frozen=True, slots=True)
class _Same:
    stream: str
    expected: Callable[[Any], Iterable[Any]]
    ordered: bool
    ignore: frozenset[str]
    places: int | None

    def __call__(self, letter: Any) -> bool:
        came, wanted = self._sides(letter)
        return came == wanted if self.ordered else Counter(came) == Counter(wanted)

    def explain(self, letter: Any) -> str:
        came, wanted = self._sides(letter)
        if self.ordered:
            pairs = [(_at(came, place), _at(wanted, place)) for place in range(max(len(came), len(wanted)))]
        else:
            pairs = _paired(came, wanted)
        width = max([len("came"), *(len(_row_text(one)) for one, _ in pairs)])
        lines = [f"  {'came':{width}}   expected"]
        for one, other in pairs:
            mark = " " if one == other else "*"
            lines.append(f"{mark} {_row_text(one):{width}}   {_row_text(other)}".rstrip())
        return "\n".join(lines)

    def _sides(self, letter: Any) -> tuple[list[Hashable], list[Hashable]]:
        rows: Sequence[Event] = letter[self.stream]
        kind = rows[0].kind if rows else None
        unknown = [] if kind is None else sorted(self.ignore - set(kind.names))
        if kind is not None and unknown:
            raise FormulaError(
                f"same_rows({self.stream!r}, ignore=...)",
                needed=f"columns of it: {', '.join(kind.names)}",
                came=repr(unknown[0]),
                hint=f"ignore={kind.names[0]!r}",
            )
        return [self._plain(row, kind) for row in rows], [self._plain(row, kind) for row in self.expected(letter)]

    def _plain(self, row: Any, kind: Kind | None) -> Hashable:
        """A row by the names of its columns, or by position if nothing tells them."""
        named = _by_name(row)
        if named is None:
            values = tuple(row) if isinstance(row, tuple | list) else (row,)
            names = () if kind is None else kind.names
            kept = tuple(name for name in names if name not in self.ignore)
            for some in (names, kept):  # a tuple may leave out what is ignored
                if some and len(some) == len(values):
                    named = dict(zip(some, values, strict=True))
                    break
            else:
                return tuple(self._value(value, None) for value in values)
        types = {} if kind is None else kind.fields
        return tuple(
            (name, self._value(named[name], types.get(name)))
            for name in _in_order(named, types)
            if name not in self.ignore
        )

    def _value(self, value: Any, declared: Any) -> Hashable:
        if value is not None and isinstance(declared, Kind):
            return _Same("", self.expected, True, frozenset(), self.places)._plain(value, declared)
        named = _by_name(value)
        if named is not None:
            return frozenset((self._value(key, None), self._value(one, None)) for key, one in named.items())
        if isinstance(value, tuple | list):
            inner = [part for part in typing.get_args(declared) if part is not ...]
            return tuple(self._value(one, inner[0] if inner else None) for one in value)
        if isinstance(value, bool):
            return _TRUTH[value]
        if isinstance(value, float):
            if math.isnan(value):
                return _NAN
            return value if self.places is None else round(value, self.places)
        return value  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return f"same_rows({self.stream!r}, {source_text(self.expected)})"


@dataclass(frozen=True, slots=True, eq=False)
class _Only:
    """A value that is equal to nothing but itself: not a number, and the two that Python takes for 0 and 1."""

    text: str

    def __repr__(self) -> str:
        return self.text


_NAN = _Only("nan")
_TRUTH = {True: _Only("True"), False: _Only("False")}
_NO_ROW = object()


def _by_name(row: Any) -> Mapping[Any, Any] | None:
    """The values of a row by their names, if it has any."""
    if isinstance(row, Event):
        return row.as_dict()
    if isinstance(row, Mapping):
        return row
    return row.asDict() if hasattr(row, "asDict") else None  # a Row of Spark


def _in_order(named: Mapping[Any, Any], types: Mapping[str, Any]) -> list[Any]:
    """The names as the columns come; what is no column, after those."""
    return [name for name in types if name in named] + sorted((name for name in named if name not in types), key=str)


def _at(rows: Sequence[Hashable], place: int) -> Any:
    return rows[place] if place < len(rows) else _NO_ROW


def _paired(came: Sequence[Hashable], wanted: Sequence[Hashable]) -> list[tuple[Any, Any]]:
    """Equal rows side by side, then those that only one side has, the most alike beside each other."""
    both = Counter(came) & Counter(wanted)
    only_came, only_wanted = list((Counter(came) - both).elements()), list((Counter(wanted) - both).elements())
    pairs: list[tuple[Any, Any]] = [(row, row) for row in both.elements()]
    for row in only_came:
        closest = max(only_wanted, key=lambda other: _likeness(row, other), default=_NO_ROW)
        if closest is not _NO_ROW and _likeness(row, closest) > 0:
            only_wanted.remove(closest)
            pairs.append((row, closest))
        else:
            pairs.append((row, _NO_ROW))
    return pairs + [(_NO_ROW, row) for row in only_wanted]


def _likeness(one: Any, other: Any) -> int:
    return sum(a == b for a, b in zip(one, other, strict=False))


def _row_text(row: Any) -> str:
    if row is _NO_ROW:
        return "-"
    if all(isinstance(part, tuple) and len(part) == 2 and isinstance(part[0], str) for part in row):
        return ", ".join(f"{name}={value!r}" for name, value in row)
    return ", ".join(map(repr, row))


# -- tests that assert, and tests of DataFrames ----------------------------------------------------------------------


def asserts(
    check: Callable[[Any], object], /, *, errors: type[Exception] | tuple[type[Exception], ...] = AssertionError
) -> Formula:
    """The check of a letter raises no AssertionError: for checks that are written with `assert`.

    The comparisons of `pyspark.testing` can be used as they are; for those of other packages name what they raise:
    `errors=`.
    """
    test = _Asserts(_function(check, "asserts"), errors)
    return Now(test, str(test), is_named=True)


@dataclass(frozen=True, slots=True)
class _Asserts:
    check: Callable[[Any], object]
    errors: type[Exception] | tuple[type[Exception], ...]

    def __call__(self, letter: Any) -> bool:
        try:
            answer = self.check(letter)
        except self.errors:
            return False
        if answer is None or answer is True:
            return True
        raise PredicateError(
            str(self),
            needed="a check that raises, or returns nothing",
            came=f"{shown(answer)} for letter {getattr(letter, 'batch', 0)}",
            hint="now(lambda letter: ...), for a test that returns True or False",
            letter=getattr(letter, "batch", 0),
            record=None,
        )

    def explain(self, letter: Any) -> str:
        try:
            self.check(letter)
        except self.errors as error:
            return f"{type(error).__name__}: {error}".strip()
        return ""

    def __str__(self) -> str:
        return f"asserts({source_text(self.check)})"


def on_frame(stream: str, test: Callable[[Any], object], /) -> Formula:
    """The test of the stream's rows as a DataFrame: for what is easier to say in Spark.

    It costs a Spark job for every letter; a test of rows costs next to nothing.
    """
    wanted = _OnFrame(_name_of_stream(stream, "on_frame"), _function(test, "on_frame"))
    return Now(wanted, str(wanted), is_named=True)


@dataclass(frozen=True, slots=True)
class _OnFrame:
    stream: str
    test: Callable[[Any], object]

    def __call__(self, letter: Any) -> object:
        return self.test(letter.frame(self.stream))

    def __str__(self) -> str:
        return f"on_frame({self.stream!r}, {source_text(self.test)})"


# -- what they share -------------------------------------------------------------------------------------------------


def without_trigger(formula: Now) -> Formula | None:
    """The formula that is true only where this test says nothing; None if it always says something."""
    return formula.test.without_trigger() if isinstance(formula.test, HasTrigger) else None


def detail(formula: Formula, letter: Any) -> str:
    """What a test can say about a letter, besides true and false."""
    return formula.test.explain(letter) if isinstance(formula, Now) and isinstance(formula.test, Explains) else ""


def _name_of_stream(stream: object, where: str) -> str:
    if isinstance(stream, str):
        return stream
    raise FormulaError(
        f"{where}(stream, ...)", needed="the name of a stream", came=repr(stream), hint=f"{where}('output', ...)"
    )


def _function(test: Any, where: str) -> Any:
    if callable(test) and not isinstance(test, Formula):
        return test
    raise FormulaError(
        f"{where}(..., test)",
        needed="a function",
        came=repr(test),
        hint=f"{where}('output', lambda row: ...)",
    )


def _some_of(rows: Sequence[Any]) -> str:
    told = ", ".join(map(str, rows[:SHOWN]))
    return told if len(rows) <= SHOWN else f"{told} and {len(rows) - SHOWN} more"
