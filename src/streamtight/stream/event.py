"""Kinds and events: what one row of a stream is.

A `Kind` is a named row type (the *header* of Definition 2.4); calling it makes an `Event`, which is immutable,
hashable and equal to every other event of the same kind with the same values.

>>> GPS = Kind("GPS", taxi_id=int, x=float, y=float)
>>> e = GPS(taxi_id=1, x=0.5, y=2)
>>> e
GPS(taxi_id=1, x=0.5, y=2.0)
>>> e.taxi_id, e.kind is GPS, e == GPS(1, 0.5, 2.0)
(1, True, True)

Field types are `int`, `float`, `str`, `bool`, `bytes`, `date`, `datetime`, `timedelta`, `Decimal`, another kind,
`tuple[T, ...]`, `dict[K, V]` and `object` (any hashable value, equal as in Python: 1 == True). `T | None` admits None;
a plain `T` does not. `Annotated[T, "smallint"]` is T with the name of the Spark type that it is there.

Speed matters here, since every row of every run becomes an event. An event is a tuple whose first item is its kind, so
that hashing and comparing run in C and events of different kinds are never equal; its constructor is generated for each
kind, like that of the standard library's named tuples.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import types
import typing
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from keyword import iskeyword
from typing import Any, NoReturn, cast

from streamtight.errors import EventError, FieldError, KindError, StreamtightError

FieldType = Any  # a type, a Kind, or one of the typing forms named above: Python has no type for "a type expression"

_MISSING = object()  # a field that was not given
_NAN = float("nan")  # the only NaN in events: it is equal to itself by identity, as NaN is in Spark


def with_one_nan(value: Any) -> Any:
    """The value with the one NaN that events have, which is equal to itself, for each NaN in it."""
    if isinstance(value, float) and math.isnan(value):
        return _NAN
    return tuple(map(with_one_nan, value)) if type(value) is tuple else value


RESERVED = frozenset({"kind", "as_dict", "replace"})


class Map(Mapping[Any, Any]):
    """A dict that cannot change and can be hashed: the value of a map field.

    >>> Map({"a": 1}) == {"a": 1}, Map({"a": 1})["a"]
    (True, 1)
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[Any, Any]) -> None:
        self._items = dict(items)
        self._hash = hash(frozenset(self._items.items()))

    def __getitem__(self, key: Any) -> Any:
        return self._items[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[object, ...]:
        return (Map, (self._items,))  # made anew: hashes of strings differ between processes


class Event(tuple[Any, ...]):
    """One immutable row of a kind; make it by calling the kind, read its fields as attributes."""

    __slots__ = ()

    if typing.TYPE_CHECKING:

        @property
        def kind(self) -> Kind:
            """The kind that made it."""

    else:  # in C, since programs ask every event
        kind = property(operator.itemgetter(0), doc="The kind that made it.")

    def as_dict(self) -> dict[str, Any]:
        """Its fields by name, in the order of the kind."""
        return dict(zip(self.kind.names, self[1:], strict=True))

    def replace(self, /, **changes: Any) -> Event:
        """The same event with some fields changed.

        >>> Kind("Tip", ride=int, cents=int)(1, 250).replace(cents=300)
        Tip(ride=1, cents=300)
        """
        return self.kind(**{**self.as_dict(), **changes})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what copy, pickle and others probe for
            raise AttributeError(name)
        raise FieldError(
            f"{self.kind.name}.{name}",
            needed=f"a field of {self.kind.name}",
            came=repr(name),
            hint=f"one of {_listed(self.kind.names)}",
        )

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FieldError(
            f"{self.kind.name}.{name} = {value!r}",
            needed="an event, which never changes",
            came="an assignment",
            hint=f"event.replace({name}={value!r}), which makes a new one",
        )

    def __repr__(self) -> str:
        fields = self.as_dict()
        if all(name.isidentifier() and not iskeyword(name) for name in fields):
            return f"{self.kind.name}({', '.join(f'{name}={_code(value)}' for name, value in fields.items())})"
        return f"{self.kind.name}(**{{{', '.join(f'{name!r}: {_code(value)}' for name, value in fields.items())}}})"

    def __str__(self) -> str:
        """For reading, where the code of a time is long: Click(at=2024-05-01 12:00:00)."""
        return f"{self.kind.name}({', '.join(f'{name}={text_of(value)}' for name, value in self.as_dict().items())})"

    def __reduce__(self) -> tuple[object, ...]:
        return (_event_of, (self.kind, self[1:]))


class Kind:
    """A named row type. Two kinds of the same name and fields are one and the same object.

    >>> Kind("Tip", ride=int, cents=int | None) is Kind("Tip", ride=int, cents=int | None)
    True
    """

    __slots__ = ("__weakref__", "event_class", "fields", "name", "names")

    event_class: type[Event]
    name: str
    fields: Mapping[str, FieldType]
    names: tuple[str, ...]

    def __new__(cls, name: str, /, **fields: FieldType) -> Kind:
        """The kind of this name and these fields."""
        identity = (name, tuple(fields.items()))
        try:
            known = _KINDS.get(identity)
        except TypeError:  # an unhashable type: no kind has it, and the check below says so
            known = None
        # setdefault, since another thread may have made the same kind meanwhile.
        return known or _KINDS.setdefault(identity, _make_kind(name, fields))

    def __call__(self, *values: Any, **fields: Any) -> Event:
        """An event of this kind."""
        raise AssertionError("every kind gets a generated constructor")  # pragma: no cover

    def __or__(self, other: Any) -> Any:
        return typing.Union[self, other]  # noqa: UP007 - so that `GPS | None` is a field type, as `int | None` is

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{n}: {type_name(t)}' for n, t in self.fields.items())})"

    def __reduce__(self) -> tuple[object, ...]:
        return (_kind_of, (self.name, tuple(self.fields.items())))


_KINDS: dict[tuple[str, tuple[tuple[str, FieldType], ...]], Kind] = {}


def _kind_of(name: str, fields: tuple[tuple[str, FieldType], ...]) -> Kind:
    return Kind(name, **dict(fields))


def _event_of(kind: Kind, values: tuple[Any, ...]) -> Event:
    return kind(*values)


def trusted_event(kind: Kind, values: tuple[Any, ...]) -> Event:
    """The event of these values, without a look at them: for those who know that they fit, or that they never will."""
    return tuple.__new__(kind.event_class, (kind, *values))


def trusted_events(kind: Kind, columns: Sequence[Iterable[Any]]) -> Iterator[Event]:
    """The events of these columns, without a look at their values: for those who know the types of the columns."""
    new = functools.partial(tuple.__new__, kind.event_class)
    return cast("Iterator[Event]", map(new, zip(itertools.repeat(kind), *columns, strict=False)))


def type_name(declared: FieldType) -> str:
    """How a field type is written in messages.

    >>> type_name(int | None), type_name(tuple[str, ...])
    ('int | None', 'tuple[str, ...]')
    """
    if isinstance(declared, Kind):
        return declared.name
    if isinstance(declared, str):
        return repr(declared)
    if isinstance(declared, type) and not typing.get_args(declared):
        return declared.__name__
    return str(declared).replace("datetime.", "").replace("typing.", "").replace("decimal.", "")


def without_none(declared: FieldType) -> tuple[FieldType, bool]:
    """The type apart from None, and whether it admits None.

    >>> without_none(int | None)
    (<class 'int'>, True)
    """
    if origin(declared) in (typing.Union, types.UnionType):
        others = tuple(t for t in typing.get_args(declared) if t is not type(None))
        if len(others) < len(typing.get_args(declared)):
            return (others[0] if len(others) == 1 else declared), True
    return declared, False


def without_annotation(declared: FieldType) -> FieldType:
    """The type that an `Annotated` form annotates; any other type as it is."""
    return typing.get_args(declared)[0] if origin(declared) is typing.Annotated else declared


def kinds_in(declared: FieldType) -> list[Kind]:
    """The kinds that a field of this type may hold events of."""
    if isinstance(declared, Kind):
        return [declared]
    return [kind for part in typing.get_args(declared) for kind in kinds_in(part)]


def origin(declared: FieldType) -> object:
    """What a typing form is a form of: tuple for tuple[int, ...]."""
    return typing.get_origin(declared)


# -- making kinds ------------------------------------------------------------------------------------------------


def _make_kind(name: str, fields: dict[str, FieldType]) -> Kind:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise KindError("Kind(name, ...)", needed="a name", came=repr(name), hint='Kind("GPS", taxi_id=int)')
    for field in fields:
        is_magic = field.startswith("__") and hasattr(Event, field)  # it would change how events work
        if not field or field in RESERVED or is_magic:
            raise KindError(
                f"Kind({name!r})",
                needed="field names other than " + _listed(sorted(RESERVED)) + " and the magic names of Python",
                came=repr(field),
                hint=f"{field.strip('_') or 'value'}_={type_name(fields[field])}",
            )
    fix = {field: _fix(declared, f"{name}.{field}") for field, declared in fields.items()}
    # A field may be called like a method of tuple ('count' is common): the property wins.
    attributes: dict[str, Any] = {"__slots__": ()}
    for position, field in enumerate(fields, start=1):
        attributes[field] = property(operator.itemgetter(position))
    event_class = cast("type[Event]", type(name, (Event,), attributes))
    constructor = _constructor(name, fields, fix, event_class)
    described = {"__slots__": (), "__call__": constructor, "__doc__": f"The kind {name}; call it to make an event."}
    kind_class = type(f"Kind[{name}]", (Kind,), described)
    kind: Kind = object.__new__(kind_class)
    kind.event_class = event_class
    kind.name = name
    kind.fields = types.MappingProxyType(dict(fields))
    kind.names = tuple(fields)
    return kind


def _constructor(
    name: str, fields: dict[str, FieldType], fix: dict[str, Callable[[Any], Any]], event_class: type
) -> Callable[..., Event]:
    """Generate `__call__(kind, *values, field=..., ...)`: one call and a class test per field when all is well."""
    names = tuple(fields)
    scope: dict[str, Any] = {"_new": tuple.__new__, "_class": event_class, "_missing": _MISSING}
    scope["_merge"] = lambda values, named: _merge_fields(name, names, values, named)
    scope["_refuse"] = lambda unknown: _refuse_fields(name, names, (), unknown)
    # A name that is no Python name ('count(1)', 'class') can be given only by position or out of a dict.
    spoken = {field: field if _is_plain(field) else f"_{place}" for place, field in enumerate(fields)}
    parameters = "".join(f"{field}=_missing, " for field in names if _is_plain(field))
    variables = "".join(f"{variable}, " for variable in spoken.values())
    lines = [f"def __call__(_kind, /, *_values, {parameters}**_unknown):"]
    lines += [
        f"    {variable} = _unknown.pop({field!r}, _missing)"
        for field, variable in spoken.items()
        if not _is_plain(field)
    ]
    if fields:
        none_named = " is ".join([*spoken.values(), "_missing"])
        lines.append("    if _values:")
        lines.append(f"        if len(_values) == {len(fields)} and {none_named}: {variables} = _values")
        lines.append(f"        else: {variables} = _merge(_values, ({variables}))")
    else:
        lines.append("    if _values: _merge(_values, ())")
    lines.append("    if _unknown: _refuse(_unknown)")
    for place, (field, variable) in enumerate(spoken.items()):
        scope[f"_fix{place}"] = fix[field]
        lines.append(f"    {_quick_test(fields[field], variable, place, scope)}{variable} = _fix{place}({variable})")
    lines.append(f"    return _new(_class, (_kind, {variables}))")
    exec("\n".join(lines), scope)  # noqa: S102 - only names that are identifiers, and literals of others, enter the text
    return cast(Callable[..., Event], scope["__call__"])


def _is_plain(field: str) -> bool:
    """Can it be a parameter of a generated function, under exactly this name?"""
    is_normal = unicodedata.normalize("NFKC", field) == field  # as Python reads names
    return field.isidentifier() and is_normal and not iskeyword(field) and not field.startswith("_")


def _merge_fields(
    kind: str, names: tuple[str, ...], values: tuple[Any, ...], named: tuple[Any, ...]
) -> tuple[Any, ...]:
    """The fields when some are given by position: these first, the others by name."""
    if len(values) > len(names):
        _refuse_fields(kind, names, values[len(names) :], {})
    for field, given in zip(names, named[: len(values)], strict=False):
        if given is not _MISSING:
            raise EventError(
                f"{kind}(...)",
                needed=f"one value for {field}",
                came=f"two, by position and {field}={_shown(given)}",
                hint=f"{kind}({', '.join(f'{n}=...' for n in names)})",
            )
    return values + named[len(values) :]


def _quick_test(declared: FieldType, variable: str, number: int, scope: dict[str, Any]) -> str:
    """The condition under which a value needs more than a look at its class."""
    plain, _ = without_none(without_annotation(declared))
    plain = without_annotation(plain)
    if plain not in (int, str, bool, bytes, float):
        return ""
    scope[f"_type{number}"] = plain
    not_a_number = f" or {variable} != {variable}" if plain is float else ""
    return f"if {variable}.__class__ is not _type{number}{not_a_number}: "


def _refuse_fields(kind: str, names: tuple[str, ...], surplus: tuple[Any, ...], unknown: dict[str, Any]) -> NoReturn:
    came = [f"{field}={_shown(value)}" for field, value in unknown.items()] + [_shown(value) for value in surplus]
    raise EventError(
        f"{kind}(...)",
        needed=f"the fields {_listed(names)}" if names else "no field",
        came="also " + ", ".join(came),
        hint=f"{kind}({', '.join(f'{n}=...' for n in names)})",
    )


MOST_BITS = 14_000
"""Python refuses to write integers of more bits in decimal."""


def _code(value: object) -> str:
    """A value as Python reads it: repr, but for floats that repr writes as names."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if isinstance(value, Map):
        return f"{{{', '.join(f'{_code(k)}: {_code(v)}' for k, v in value.items())}}}"
    if isinstance(value, tuple) and not isinstance(value, Event):
        return f"({', '.join(map(_code, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        return hex(value)
    return repr(value)


def _shown(value: object) -> str:
    """A value as a message can show it: some have no text, some too much."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write out integers of thousands of digits
        return f"a {type(value).__name__} of {cast(int, value).bit_length()} bits"
    return text if len(text) <= 200 else f"{text[:200]}..."


def _listed(names: typing.Iterable[str]) -> str:
    return ", ".join(names) or "(none)"


# -- checking values ---------------------------------------------------------------------------------------------


def _fix(declared: FieldType, where: str) -> Callable[[Any], Any]:
    """The function that turns a given value into the stored one, or raises."""
    plain, optional = without_none(without_annotation(declared))
    check = _check_of(plain, where)

    def fix(value: Any) -> Any:
        if value is None and optional:
            return None
        if value is _MISSING:
            raise EventError(where, needed=type_name(declared), came="nothing", hint=f"give {where} a value")
        try:
            return check(value)
        except StreamtightError:
            raise
        except (TypeError, ValueError) as error:
            raise EventError(
                where,
                needed=type_name(declared),
                came=f"{_shown(value)}, a {type(value).__name__}",
                hint=_hint(declared, value, str(error)),
            ) from None

    return fix


def _hint(declared: FieldType, value: Any, said: str) -> str:
    if value is None:
        return f"declare the field as {type_name(declared)} | None if it may be missing"
    return said or f"a value of type {type_name(declared)}"


def _check_of(plain: FieldType, where: str) -> Callable[[Any], Any]:
    plain = without_annotation(plain)
    scalar = _SCALARS.get(plain) if isinstance(plain, type) else None
    if scalar is not None:
        return scalar
    if isinstance(plain, Kind):
        return _event_check(plain)
    arguments = typing.get_args(plain)
    if origin(plain) is tuple and len(arguments) == 2 and arguments[1] is ...:
        return _array_check(_fix(arguments[0], where + "[...]"))
    if origin(plain) is dict and len(arguments) == 2:
        return _map_check(_fix(arguments[0], where + " key"), _fix(arguments[1], where + " value"))
    raise KindError(
        where,
        needed="a field type: " + ", ".join(t.__name__ for t in _SCALARS) + ", a Kind, tuple[T, ...] or dict[K, V]",
        came=type_name(plain),
        hint="tuple[T, ...] for a list" if plain is list or origin(plain) is list else "object, for any hashable value",
    )


def _int(value: Any) -> int:
    if isinstance(value, bool):
        raise TypeError("int(value): a bool is not an int here, as in Spark")
    try:
        return int(operator.index(value))  # also NumPy's integers; never a float
    except TypeError:
        raise TypeError("int(value)") from None


def _float(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (float, int)):
        raise TypeError("float(value)")
    try:
        number = float(value)
    except OverflowError:
        raise TypeError("a number that a float can hold") from None
    return _NAN if number != number else number


def _decimal(value: Any) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        raise TypeError("Decimal(str(value))")
    number = Decimal(value)
    if not number.is_finite():
        raise TypeError("a finite decimal: Spark's decimals have no NaN and no infinity")
    return number


def _date(value: Any) -> date:
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError("value.date()" if isinstance(value, datetime) else "a datetime.date")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, (bytes, bytearray)):
        raise TypeError("bytes(value)")
    return bytes(value)


def _instance_of(cls: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, cls):
            raise TypeError("")
        return value

    return check


def _str(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("str(value)")
    return str.__str__(value)  # the text itself, also of a member of an enum of strings


def text_of(value: object) -> str:
    """A value of a field as a person reads it."""
    return str(value) if isinstance(value, Event | date | timedelta | Decimal) else _code(value)


def _anything(value: Any) -> Any:
    """Any hashable value; lists, sets and dicts become their immutable twins."""
    if isinstance(value, float):
        return _NAN if value != value else value
    if isinstance(value, Decimal):
        return _decimal(value)
    if isinstance(value, (list, tuple)) and not isinstance(value, Event):
        return tuple(_anything(item) for item in value)
    if isinstance(value, (set, frozenset)):
        return frozenset(_anything(item) for item in value)
    if isinstance(value, Mapping):
        return Map({_anything(k): _anything(v) for k, v in value.items()})
    try:
        hash(value)
    except TypeError:
        raise TypeError("a value that can be hashed, such as a tuple") from None
    return value


_SCALARS: dict[type, Callable[[Any], Any]] = {
    int: _int,
    float: _float,
    str: _str,
    bool: _instance_of(bool),
    bytes: _bytes,
    date: _date,
    datetime: _instance_of(datetime),
    timedelta: _instance_of(timedelta),
    Decimal: _decimal,
    object: _anything,
}


def _event_check(kind: Kind) -> Callable[[Any], Event]:
    def check(value: Any) -> Event:
        if isinstance(value, Event) and value.kind is kind:
            return value
        if isinstance(value, Mapping):
            return kind(**value)
        raise TypeError(f"{kind.name}(...)")

    return check


def _array_check(item: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
    def check(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, (tuple, list)) or isinstance(value, Event):
            raise TypeError("a tuple or a list")
        return tuple(item(v) for v in value)

    return check


def _map_check(key: Callable[[Any], Any], item: Callable[[Any], Any]) -> Callable[[Any], Map]:
    def check(value: Any) -> Map:
        if not isinstance(value, Mapping):
            raise TypeError("a dict")
        return Map({key(k): item(v) for k, v in value.items()})

    return check
