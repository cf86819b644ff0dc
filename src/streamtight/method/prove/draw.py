"""Small rows for the inputs of programs, near the values that the programs name; and simpler ones.

>>> chance = random.Random(1)
>>> all(type(row) is int for row in some_rows(int, [100], chance, 5))
True
>>> list(simpler(3))
[0, 1, 2]
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Context, Decimal
from typing import Any, TypeVar

from streamtight.method.prove.inputs import Input, RDDInput, options
from streamtight.program.expression import INTEGER_BITS, NAN, Field, digits

Row = Any
Moment = TypeVar("Moment", bound=date)
Tables = tuple[tuple[Row, ...], ...]
"""The rows of each input."""
Allowed = Callable[[int, Sequence[Row]], bool]
"""Whether the input at this place may have these rows."""

_LONGEST = 20
"""Longer texts are no values of columns."""
_TRIES = 20
"""So often a row is drawn, if it is not allowed."""
_NEAR, _NULL, _ODD, _AGAIN = 0.5, 0.25, 0.1, 0.3
"""How likely a value is near one that the programs name; null, or a text in other letters; NaN or -0.0; a row one that
another input has."""
_FAR = 20
"""How far a number that is not so near may be from the one that is named: two of them may pass the same test."""
_LARGEST = 10**38
"""Greater numbers are no values of columns."""
_DAYS = (date(2024, 2, 28), date(2023, 12, 31), date(1999, 6, 15))
"""Days, if the programs name none."""
_YEARS = range(1900, 2101)
"""Numbers that may be years."""
_EXACT = Context(prec=100)
_PYTHON_TYPES: dict[str, type] = {
    "boolean": bool,
    "string": str,
    "double": float,
    "date": date,
    "timestamp": datetime,
    "timestamp_ntz": datetime,
}


def some_tables(
    inputs: Sequence[Input], near: Sequence[Any], chance: random.Random, most: int, allowed: Allowed, least: int = 0
) -> Tables:
    """A few rows for each input; some of them the same in inputs that are alike."""
    drawn: list[tuple[Row, ...]] = []
    for place, each in enumerate(inputs):
        alike = [
            row for rows, other in zip(drawn, inputs, strict=False) if _types(other) == _types(each) for row in rows
        ]
        rows: list[Row] = []
        for row in some_rows(_type(each), near, chance, most, least):
            again = chance.choice(alike) if alike and chance.random() < _AGAIN else row
            for candidate in _until_allowed(again, each, near, chance):
                if allowed(place, [*rows, candidate]):
                    rows.append(candidate)
                    break
        drawn.append(tuple(rows))
    return tuple(drawn)


def _type(of: Input) -> Any:
    return of.row if isinstance(of, RDDInput) else of.fields


def _types(of: Input) -> Any:
    """What the rows of two inputs must agree in, if a row of one may be a row of the other."""
    return of.row if isinstance(of, RDDInput) else [(field.type, field.nullable) for field in of.fields]


def _until_allowed(row: Row, of: Input, near: Sequence[Any], chance: random.Random) -> Iterator[Row]:
    yield row
    for _ in range(_TRIES):
        yield _some_value(_type(of), near, chance)


def some_rows(type_: Any, near: Sequence[Any], chance: random.Random, most: int = 4, least: int = 0) -> list[Row]:
    """A few rows of a type; of values near those that the programs have in them, and some of them more than once."""
    rows: list[Row] = []
    # An input without rows tells little, unless another one has some.
    for _ in range(chance.randint(least or min(most, int(chance.random() > _NULL)), most)):
        row = _some_value(type_, near, chance)
        if rows and isinstance(row, tuple) and row and chance.random() < _NEAR:
            # The same key with another value, perhaps: rows that meet in a group.
            known, place = chance.choice(rows), chance.randrange(len(row))
            row = (*known[:place], row[place], *known[place + 1 :])
        rows.append(row)
    again = 0 if least else chance.randint(0, 2)
    return rows + [chance.choice(rows) for _ in range(again) if rows and chance.random() < 0.5]


def _some_value(type_: Any, near: Sequence[Any], chance: random.Random) -> Any:
    if isinstance(type_, Field):
        return None if type_.nullable and chance.random() < _NULL else _some_cell(type_.type, near, chance)
    if isinstance(type_, tuple):
        return tuple(_some_value(part, near, chance) for part in type_)
    parts = options(type_)
    if len(parts) > 1:
        inner = next(option for option in parts if option is not type(None))
        return None if chance.random() < _NULL else _some_value(inner, near, chance)
    if type_ is bool:
        return chance.random() < 0.5
    if type_ is str:
        return _some_text(near, chance)
    number = _some_number(near, chance)
    return int(number) if type_ is int else float(number) + chance.choice((0.0, 0.0, 0.5))


def _some_number(near: Sequence[Any], chance: random.Random) -> Any:
    numbers = [value for value in near if isinstance(value, int | float | Decimal) and not isinstance(value, bool)]
    if numbers and chance.random() < _NEAR:
        value: Any = chance.choice(numbers)
        if value == value and abs(value) < 2**53:
            far = _FAR if chance.random() < _AGAIN else 1
            return value + chance.randint(-far, far)
        if isinstance(value, int) and abs(value) < _LARGEST:
            return value
    return chance.randint(-_FAR, _FAR) if chance.random() < _ODD else chance.randint(-3, 3)


def _some_text(near: Sequence[Any], chance: random.Random) -> str:
    text = chance.choice([*(value for value in near if isinstance(value, str)), "", "a", "b"])
    if chance.random() < _NULL:
        return chance.choice((text.upper(), text.lower(), text.strip(), f" {text} "))
    return text


def _some_cell(type_: str, near: Sequence[Any], chance: random.Random) -> Any:
    """A value of a type of Spark."""
    if type_ in INTEGER_BITS:
        number = int(_some_number(near, chance))
        return number if _is_cell(number, type_) else chance.randint(-3, 3)
    if (precision := digits(type_)) is not None:
        step = Decimal(1).scaleb(-precision[1])
        exact = Decimal(str(_some_number(near, chance))).quantize(step, context=_EXACT)
        exact = _EXACT.add(exact, chance.randint(-1, 1) * step)
        return exact if _is_cell(exact, type_) else Decimal(0).quantize(step)
    match type_:
        case "boolean":
            return chance.random() < 0.5
        case "string":
            return _some_text(near, chance)
        case "double":
            value = float(_some_number(near, chance)) + chance.choice((0.0, 0.0, 0.5))
            return chance.choice((NAN, -0.0)) if chance.random() < _ODD else value
        case "date":
            return _some_day(near, chance)
    times = [value for value in near if type(value) is datetime]
    fraction = timedelta(seconds=chance.randint(-1, 1), microseconds=chance.choice((0, 0, 500_000)))
    if times and chance.random() < 1 - _ODD:
        return _later(chance.choice(times), fraction)
    return _later(datetime.combine(_some_day(near, chance), time(chance.choice((0, 12)))), fraction)


def _some_day(near: Sequence[Any], chance: random.Random) -> date:
    days = [value for value in near if type(value) is date]
    days += [date(value, 1, 1) for value in near if type(value) is int and value in _YEARS]
    shift = chance.randint(-400, 400) if chance.random() < _ODD else chance.randint(-1, 2)
    return _later(chance.choice(days or _DAYS), timedelta(days=shift))


def _later(moment: Moment, by: timedelta) -> Moment:
    """So much later; the same if there is no such day: years have four digits."""
    try:
        return moment + by
    except OverflowError:
        return moment


def is_row_of(row: Row, of: Input) -> bool:
    """Whether this is a row of the types that an input has."""
    return _is_value(row, _type(of))


def _is_value(value: Any, type_: Any) -> bool:
    if isinstance(type_, Field):
        return type_.nullable if value is None else _is_cell(value, type_.type)
    if isinstance(type_, tuple):
        return isinstance(value, tuple) and len(value) == len(type_) and all(map(_is_value, value, type_))
    return type(value) in options(type_)


def _is_cell(value: Any, type_: str) -> bool:
    """Whether this is a value of a type of Spark."""
    if (bits := INTEGER_BITS.get(type_)) is not None:
        return type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1
    if (precision := digits(type_)) is not None:
        step = Decimal(1).scaleb(-precision[1])
        fits = isinstance(value, Decimal) and abs(value) < Decimal(1).scaleb(precision[0] - precision[1])
        return fits and value == value.quantize(step, context=_EXACT)
    return type(value) is _PYTHON_TYPES[type_]


def as_row(row: Row, fields: Sequence[Field]) -> Row | None:
    """A row that the solver made up, as one of a table; None if there is no such row. It counts days, for dates."""
    try:
        made = tuple(_as_cell(value, field) for value, field in zip(row, fields, strict=True))
    except (ValueError, OverflowError, ArithmeticError):
        return None
    return made


def _as_cell(value: Any, field: Field) -> Any:
    cell, precision = value, digits(field.type)
    if value is not None and precision is not None:
        cell = Decimal(str(value)).quantize(Decimal(1).scaleb(-precision[1]), context=_EXACT)
    if value is not None and field.type == "date":
        cell = date.fromordinal(value)
    if not _is_value(cell, field):
        raise ValueError(f"{value} is no value of {field}")
    return cell


def constants_in(*values: Any) -> list[Any]:
    """The numbers, texts and days among these, in their tuples, and in texts that may be SQL."""
    found: dict[Any, None] = {}
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, tuple | list | set | frozenset):
            waiting += value
        elif isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, str):
            if len(value) <= _LONGEST:
                found[value] = None
            if " " in value:  # perhaps SQL
                found.update(dict.fromkeys(map(int, re.findall(r"\b\d{1,15}\b", value))))
                found.update(dict.fromkeys(re.findall(r"'([^']{0,20})'", value)))
        elif isinstance(value, int | float | Decimal | date):
            found[value] = None
    return list(found)


# -- simpler inputs --------------------------------------------------------------------------------------------------


def smaller(tables: Tables) -> Iterator[Tables]:
    """The same with a row less, or with a simpler value."""
    for place, rows in enumerate(tables):
        for number in range(len(rows)):
            yield (*tables[:place], rows[:number] + rows[number + 1 :], *tables[place + 1 :])
    for place, rows in enumerate(tables):
        for number, row in enumerate(rows):
            for other in simpler(row):
                yield (*tables[:place], (*rows[:number], other, *rows[number + 1 :]), *tables[place + 1 :])


def simpler(value: Any) -> Iterator[Any]:
    """Values of the same type that are simpler to read; nothing if this is the simplest."""
    if isinstance(value, tuple):
        for place, part in enumerate(value):
            for one in simpler(part):
                yield (*value[:place], one, *value[place + 1 :])
    elif isinstance(value, bool):
        if value:
            yield False
    elif isinstance(value, int | float) and value == value:
        if value:
            yield type(value)(0)
            if value < 0:
                yield -value
            if abs(value) > 1:
                yield type(value)(int(value / 2))
                yield type(value)(value - 1 if value > 0 else value + 1)
    elif isinstance(value, str) and value:
        yield ""
