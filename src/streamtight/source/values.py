"""The values that a generated field may have, and which of two values is simpler.

Few and small values, so that keys collide and events repeat: two rows of one taxi find more mistakes than two rows of
any taxis. Every value fits the Spark type that the field has there, also where an annotation names a narrow one.

>>> values_of(Annotated[int, "tinyint"]).extreme
(127, -128)
>>> sorted([10, -1, None, 0, 3], key=simplicity)
[None, 0, -1, 3, 10]
"""

from __future__ import annotations

import math
import random
import struct
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated

from streamtight.stream.event import Event, FieldType, Kind, Map, origin, without_none

DAY = date(2024, 1, 15)  # nowhere is the clock changed in January, so every time of this day exists once
NOON = datetime(2024, 1, 15, 12)

_BITS = {"byte": 8, "tinyint": 8, "short": 16, "smallint": 16, "integer": 32, "int": 32}  # all others have 64
# More than the next narrower type holds, or than a double holds exactly; yet room for sums and for factors of 1,000.
_WIDE = {8: (100,), 16: (300,), 32: (40_000,), 64: (2**31, 2**53 + 1)}
_SINGLE = ("float", "real")
_UNITS = {"day": timedelta(days=1), "hour": timedelta(hours=1), "minute": timedelta(minutes=1)}
_SECOND = timedelta(seconds=1)

MINUTES = (0, 1, 2, 3, 4, 5, 9, 10, 14, 15, 30, 59, 60, 61, 120)


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a field: those of most events, those of a few, and those that are asked for by name."""

    common: tuple[object, ...]
    rare: tuple[object, ...] = ()
    """What jobs forget: the empty text, NaN, a number that needs its 64 bits."""
    extreme: tuple[object, ...] = ()
    """The ends of the type, where arithmetic overflows: a job that raises there cannot be judged further."""

    def pool(self, *, extremes: bool) -> list[object]:
        """All of them, the common ones repeated so often that at most one draw in ten is another one."""
        few = self.rare + (self.extreme if extremes else ())
        times = max(1, math.ceil(9 * len(few) / len(self.common)))
        return [*self.common * times, *few]


def values_of(declared: FieldType) -> Values:
    """The values for a field of this type; any type that a kind can have."""
    plain, spark_name, optional = _apart(declared)
    known = _plain_values(plain, spark_name)
    if not optional:
        return known
    # One value in five: what is null is what jobs forget, and the first few inputs should show it.
    nulls = (None,) * max(1, len(known.common) // 4)
    return Values((*known.common, *nulls), known.rare, known.extreme)


def _apart(declared: FieldType) -> tuple[FieldType, str, bool]:
    """The type itself, the name of its Spark type if it is annotated with one, and whether it admits None."""
    plain, outside = without_none(declared)
    spark_name = ""
    if origin(plain) is Annotated:
        plain, note = typing.get_args(plain)[:2]
        spark_name = note if isinstance(note, str) else ""
    plain, inside = without_none(plain)
    return plain, spark_name, outside or inside


def _plain_values(plain: FieldType, spark_name: str) -> Values:
    if isinstance(plain, Kind):
        return _events(plain)
    arguments = typing.get_args(plain)
    if origin(plain) is tuple:
        return _arrays(values_of(arguments[0]))
    if origin(plain) is dict:
        return _maps(values_of(arguments[0]), values_of(arguments[1]))
    if plain is int:
        bits = _BITS.get(spark_name, 64)
        ends = ((1 << bits - 1) - 1, -(1 << bits - 1))
        return Values((*range(11), -1, -2, -3), _WIDE[bits], ends)
    if plain is float:
        return _floats(single=spark_name in _SINGLE)
    if plain is Decimal:
        return _decimals(*_decimal_size(spark_name))
    if plain is timedelta:
        return _intervals(_UNITS.get(spark_name.rsplit(" ", 1)[-1], _SECOND))
    return _FIXED[plain]


_FIXED: dict[type, Values] = {
    bool: Values((False, True)),
    str: Values(("a", "b", "c", "aa", "ab"), ("", "é", "A", " a"), ("日本", "0", "null", "a\nb", "\U0001f600")),
    bytes: Values((b"a", b"b", b"ab"), (b"", b"\x00"), (b"\xff\xfe",)),
    date: Values(
        (*(DAY + timedelta(days=days) for days in (0, 1, 2, 7, -1)), date(2024, 2, 29), date(2024, 3, 1)),
        (date(2023, 12, 31),),
        (date(1969, 12, 31), date(1900, 1, 1), date(9999, 12, 31)),
    ),
    datetime: Values(
        (*(NOON + timedelta(minutes=minutes) for minutes in MINUTES), NOON + timedelta(seconds=30)),
        (NOON + timedelta(minutes=5, microseconds=-1), NOON + timedelta(microseconds=1)),
        (datetime(2024, 1, 16), datetime(1969, 12, 31, 12), datetime(2100, 1, 1, 12)),
    ),
    object: Values((0, 1, 2, "a", "b"), (None, "", (1, "a")), (-1, ())),
}


def _floats(*, single: bool) -> Values:
    # Sums of the common ones are exact in any order, so that a job that adds them up is not accused of rounding.
    common = (0.0, 1.0, 2.0, 3.0, 10.0, -1.0, -2.5, 0.5, 0.25, 1.5)
    extreme = (0.1, 1e16, -1e300, 5e-324)
    if single:
        extreme = tuple(struct.unpack("<f", struct.pack("<f", value))[0] for value in (0.1, 1e16, -3e38, 1e-45))
    return Values(common, (-0.0, math.nan, math.inf, -math.inf), extreme)


def _decimal_size(spark_name: str) -> tuple[int, int]:
    """Digits in all and behind the point, of decimal(10,2) for example; plain Decimal is decimal(38,18)."""
    if not spark_name.startswith("decimal"):
        return 38, 18
    precision, _, scale = spark_name.removeprefix("decimal").strip("()").partition(",")
    try:
        return int(precision or 10), int(scale or 0)
    except ValueError:
        return 38, 18


def _decimals(precision: int, scale: int) -> Values:
    written = map(Decimal, ("0", "1", "2", "3", "-1", "10", "0.5", "0.1", "-0.5", "0.25"))
    common = (n for n in written if abs(n) < 10 ** (precision - scale) and -int(n.as_tuple().exponent) <= scale)
    # By digits, since arithmetic would round to the 28 digits of Python's context.
    ends = (Decimal((sign, (9,) * precision, -scale)) for sign in (0, 1))
    return Values(tuple(common), (), (*ends, Decimal((0, (1,), -scale))))


def _intervals(unit: timedelta) -> Values:
    common = tuple(unit * times for times in (0, 1, 2, 5, 10, 60, -1))
    return Values(common, (timedelta.resolution,) if unit == _SECOND else (), (unit * 100_000, unit * -100_000))


def _arrays(items: Values) -> Values:
    first, second = _two(items.common)
    common = ((), (first,), (second,), (first, second), (second, first), (first, first), (first, second, first))
    rare = ((one,) for one in _with_none(items))
    return Values(tuple(dict.fromkeys(common)), tuple(rare), tuple((first, one) for one in items.extreme))


def _maps(keys: Values, items: Values) -> Values:
    # No map of Spark has a null key, and -0.0 and 0.0 are the same key there: rare keys would not come back.
    (first, second), (one, other) = _two(keys.common), _two(items.common)
    common: tuple[dict[object, object], ...] = (
        {},
        {first: one},
        {first: other},
        {second: one},
        {first: one, second: other},
    )
    rare = ({first: value} for value in _with_none(items))
    extreme = ({first: value} for value in items.extreme)
    return Values(tuple(map(Map, common)), tuple(map(Map, rare)), tuple(map(Map, extreme)))


def _two(values: Iterable[object]) -> tuple[object, object]:
    """Two different values that are not None, or the only one twice."""
    told = [value for value in values if value is not None]
    return told[0], told[1 % len(told)]


def _with_none(items: Values) -> tuple[object, ...]:
    return (*items.rare, None) if None in items.common else items.rare


def _events(kind: Kind) -> Values:
    fields = {name: values_of(declared) for name, declared in kind.fields.items()}
    rng = random.Random(0)  # any: the same events every time
    first = kind(*(values.common[0] for values in fields.values()))
    others = (kind(*(rng.choice(values.common) for values in fields.values())) for _ in range(8))
    rare = (first.replace(**{name: value}) for name, values in fields.items() for value in values.rare)
    extreme = (first.replace(**{name: value}) for name, values in fields.items() for value in values.extreme)
    return Values(tuple(dict.fromkeys((first, *others))), tuple(rare), tuple(extreme))


# -- simpler -------------------------------------------------------------------------------------------------------


def simplicity(value: object) -> tuple[object, ...]:
    """A key to sort values by, the simplest first: None, 0, small numbers, round times, short texts."""
    match value:
        case None:
            return (0,)
        case bool():
            return (1, value)
        case int() | float() | Decimal():
            return (2, *_number(value))
        case timedelta():
            return (3, abs(value), value < timedelta(0))
        case datetime():
            return (4, *_time(value))
        case date():
            return (5, abs((value - DAY).days), value < DAY)
        case str():
            return (6, len(value), not value.isascii(), value)
        case bytes():
            return (7, len(value), value)
        case Event():
            return (8, tuple(map(simplicity, value[1:])))
        case tuple():
            return (9, len(value), tuple(map(simplicity, value)))
        case Map():
            return (10, len(value), tuple(sorted((simplicity(k), simplicity(v)) for k, v in value.items())))
    return (11, type(value).__name__)  # nothing is known of it: such values stay in the order that they were given in


def _number(value: int | float | Decimal) -> tuple[object, ...]:
    if value != value:
        return (2,)
    if value in (math.inf, -math.inf):
        return (1, value < 0)
    is_whole = value.as_integer_ratio()[1] == 1
    return (0, not is_whole, abs(value), value < 0 or (value == 0 and math.copysign(1, value) < 0))


def _time(value: datetime) -> tuple[object, ...]:
    naive = value.replace(tzinfo=None)
    unround = (value.microsecond > 0, value.second > 0, value.minute > 0)
    return (*unround, abs(naive - NOON), naive < NOON, value.tzinfo is not None)
