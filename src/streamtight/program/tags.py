"""Tags: what of an event says with which others it must keep its order, and sets of tags.

A tag is a kind and the values of those of its fields on which a dependence looks (Definition 4.1); the other fields are
payload. Sets of tags are symbolic, since there may be as many tags as there are keys:

>>> from streamtight.stream.dependence import barrier, same
>>> from streamtight.stream.event import Kind
>>> Add, Read = Kind("Add", time=int, key=int), Kind("Read", time=int, key=int)
>>> some = tags(Add, key={1, 2}) | tags(Read, key=3)
>>> some
Add(key=1|2), Read(key=3)
>>> some(Add, key=1), some(Read, key=1), some(Add)
(True, False, True)
>>> reads_wait = barrier(Read) & same("key")
>>> print(why_dependent(reads_wait, tags(Read, key=1), some))
Read(key=1) and Add(key=1|2) by barrier(Read) & same('key')
>>> why_dependent(reads_wait, tags(Read, key=Bucket(0, of=2)), tags(Add, key=Bucket(1, of=2))) is None
True
"""

from __future__ import annotations

import functools
import itertools
import math
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn, cast

from streamtight.errors import PlanError
from streamtight.stream.dependence import Clause, Dependence, Select
from streamtight.stream.event import Event, Kind, type_name, with_one_nan, without_annotation, without_none

MOST_TAGS = 1000
"""Sets with more tags are not taken apart to ask a relation about each of them."""
STIR = 40503
"""What hashes are multiplied with: small enough that Spark's numbers do not overflow."""
MOST_TOLD = 8
"""Of sets with more values, the first ones are told."""
MOST_BUCKETS = 10_000
"""Keys are not taken apart into more buckets to see whether all of them are there."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The values whose hash, divided by a number, leaves this remainder: a share of all keys."""

    index: int
    of: int

    def __post_init__(self) -> None:
        if type(self.index) is not int or type(self.of) is not int or not 0 <= self.index < self.of:
            raise PlanError(
                f"Bucket({self.index!r}, of={self.of!r})",
                needed="an index from 0 to of - 1",
                came=repr(self.index),
                hint="Bucket(0, of=2)",
            )

    def __contains__(self, value: object) -> bool:
        return share_hash(value) % self.of == self.index

    def __str__(self) -> str:
        return f"#{self.index}/{self.of}"


def share_hash(value: Any) -> int:
    """The hash by which values are shared out: CRC-32 of their text, stirred, since it tells small numbers badly apart.

    Spark gives the same for whole numbers, texts and dates: `shiftright(crc32(cast(value as string)) * 40503, 16)`.

    >>> [share_hash(key) % 2 for key in range(6)]
    [1, 0, 1, 0, 0, 1]
    """
    if not _has_share_hash(value):
        raise PlanError(
            f"a bucket of {value!r}",
            needed="values that are whole numbers, texts or dates",
            came=type(value).__name__,
            hint="a tag with such a field",
        )
    text = str(int(value)) if isinstance(value, int) else str(value)
    return zlib.crc32(text.encode("utf-8", "surrogatepass")) * STIR >> 16


def _has_share_hash(value: Any) -> bool:
    return value is None or isinstance(value, (int, str, date))


Values = frozenset[Any] | Bucket | None
"""Which values a field has: some, those of a bucket, or any."""


@dataclass(frozen=True, slots=True)
class Tags:
    """The tags of a kind whose fields have these values; a field that is not named may have any."""

    kind: Kind
    fields: tuple[tuple[str, Values], ...] = ()

    def values(self, field: str) -> Values:
        """Which values a field has."""
        return next((values for name, values in self.fields if name == field), None)

    def with_values(self, field: str, values: Values) -> Tags:
        """Those of them where a field has these values, whatever it had before."""
        kept = [(name, each) for name, each in self.fields if name != field]
        return Tags(self.kind, tuple(sorted([*kept, (field, values)], key=lambda named: named[0])))

    def overlaps(self, other: Tags) -> bool:
        """Whether there may be a tag in both."""
        shared = {name for name, _ in (*self.fields, *other.fields)}
        return self.kind is other.kind and all(_overlap(self.values(f), other.values(f)) for f in shared)

    def within(self, other: Tags) -> bool:
        """Whether each of its tags is certainly one of the other's."""
        return self.kind is other.kind and all(_within(self.values(f), values) for f, values in other.fields)

    def holds(self, event: Event) -> bool:
        """Whether the tag of this event is one of them."""
        return event.kind is self.kind and all(
            values is None or getattr(event, name) in values for name, values in self.fields
        )

    def __str__(self) -> str:
        told = [f"{name}={_told(values)}" for name, values in self.fields if values is not None]
        return f"{self.kind.name}({', '.join(told)})" if told else self.kind.name


class TagSet:
    """A set of tags: what `fork` is told about the two sides. Called with a tag, it says whether it may come."""

    __slots__ = ("parts",)

    def __init__(self, parts: Iterable[Tags]) -> None:
        self.parts = tuple(dict.fromkeys(parts))

    def __call__(self, kind: Kind, **fields: Hashable) -> bool:
        """May an event of this tag come here? Without a field: with any value of it."""
        for name in fields:
            _require_field(f"{self!r}({kind.name}, {name}=...)", kind, name)
        asked = Tags(kind, tuple((name, frozenset([with_one_nan(value)])) for name, value in fields.items()))
        return any(part.overlaps(asked) for part in self.parts)

    def holds(self, event: Event) -> bool:
        """Whether the tag of this event is one of them."""
        return any(part.holds(event) for part in self.parts)

    def covers(self, other: TagSet) -> bool:
        """Whether each tag of the other is certainly one of these."""
        return all(
            any(theirs.within(ours) for ours in self.parts) or all(regions(theirs, self.parts))
            for theirs in other.parts
        )

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of its tags."""
        return tuple(dict.fromkeys(part.kind for part in self.parts))

    def __or__(self, other: TagSet) -> TagSet:
        return TagSet((*self.parts, *other.parts))

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __eq__(self, other: object) -> bool:
        return set(self.parts) == set(other.parts) if isinstance(other, TagSet) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self.parts))

    def __repr__(self) -> str:
        return ", ".join(map(str, self.parts)) or "no tag"


NO_TAGS = TagSet(())


def tags(*kinds: Kind, **fields: Any) -> TagSet:
    """The tags of these kinds whose fields have this value, one of these values, or a value of this bucket."""
    where = f"tags({', '.join([*(getattr(kind, 'name', repr(kind)) for kind in kinds), *fields])})"
    if not kinds or not all(isinstance(kind, Kind) for kind in kinds):
        raise PlanError(where, needed="a Kind, or several", came=repr(kinds), hint="tags(Read, key=1)")
    for kind, name in itertools.product(kinds, fields):
        _require_field(where, kind, name)
    return TagSet(
        Tags(kind, tuple((name, _values(where, kind, name, given)) for name, given in sorted(fields.items())))
        for kind in kinds
    )


def tag_set(given: Any, where: str) -> TagSet:
    """What a user named: tags, a kind, or several of these."""
    if isinstance(given, TagSet):
        return given
    if isinstance(given, Kind):
        return tags(given)
    if isinstance(given, Iterable) and not isinstance(given, str):
        return TagSet(part for each in given for part in tag_set(each, where).parts)
    raise PlanError(where, needed="tags, a Kind, or several", came=repr(given), hint="tags(Read, key=1)")


def regions(wanted: Tags, parts: Sequence[Tags]) -> Iterator[frozenset[int]]:
    """Which of the parts hold a wanted tag, by their places: the answers for all wanted tags, some more than once.

    Tags that only a listed value tells from the others are left out: what holds those others holds them, too.

    >>> Add = Kind("Add", key=int)
    >>> halves = [tags(Add, key=Bucket(index, of=2)).parts[0] for index in range(2)]
    >>> list(regions(Tags(Add), halves)), list(regions(Tags(Add), halves[:1]))
    ([frozenset({0}), frozenset({1})], [frozenset({0}), frozenset()])
    """
    return _regions(wanted, list(enumerate(parts)))


def _regions(wanted: Tags, parts: list[tuple[int, Tags]]) -> Iterator[frozenset[int]]:
    parts = [(place, part) for place, part in parts if part.overlaps(wanted)]
    cuts = (name for _, part in parts for name, values in part.fields if not _within(wanted.values(name), values))
    field = next(cuts, None)
    if field is None:
        yield frozenset(place for place, _ in parts)
        return
    values = wanted.values(field)
    if values is None:
        values = _all_values(wanted.kind, field)
    if isinstance(values, frozenset):
        for value in values:
            yield from _regions(wanted.with_values(field, frozenset([value])), parts)
        return
    # There are more keys than anybody lists, so a part with listed values does not hold a bucket.
    parts = [(place, part) for place, part in parts if not isinstance(part.values(field), frozenset)]
    index, of = (values.index, values.of) if isinstance(values, Bucket) else (0, 1)
    count = math.lcm(of, *(each.of for _, part in parts if isinstance(each := part.values(field), Bucket)))
    if count // of > MOST_BUCKETS:
        yield frozenset()
        return
    for each_index in range(index, count, of):
        yield from _regions(wanted.with_values(field, Bucket(each_index, count)), parts)


# -- dependence of tags ----------------------------------------------------------------------------------------------


def why_dependent(depends: Dependence, one: TagSet, other: TagSet) -> str | None:
    """A tag of the one and a tag of the other that may be dependent, and by what; None if all are independent.

    Where a relation is a function that cannot be asked about all tags, they count as dependent.
    """
    for a, b in itertools.product(one.parts, other.parts):
        for clause in depends.clauses:
            if _may_relate(clause, a, b):
                return f"{a} and {b} by {clause.text}"
    return None


def independent_tags(depends: Dependence, one: TagSet, other: TagSet) -> bool:
    """Whether every tag of the one is independent of every tag of the other."""
    return why_dependent(depends, one, other) is None


def tag_fields(depends: Dependence, kind: Kind) -> tuple[str, ...]:
    """The fields of a kind on which the clauses of a dependence look: those of its keys."""
    named = {field for clause in depends.clauses for field in clause.key}
    return tuple(name for name in kind.names if name in named)


def tag_of(event: Event, fields: Iterable[str]) -> Tags:
    """The tag of an event, as a set of one."""
    return Tags(event.kind, tuple((name, frozenset([getattr(event, name)])) for name in sorted(fields)))


def bare(kind: Kind, fields: Mapping[str, Any]) -> Event:
    """An event of which only the tag is there: looking at its payload is an error."""
    values = (fields[name] if name in fields else Payload(kind, name) for name in kind.names)
    return tuple.__new__(_bare_class(kind, frozenset(fields)), (kind, *values))


@functools.cache
def _bare_class(kind: Kind, shown: frozenset[str]) -> type[Event]:
    """Events of which only these fields can be looked at, by name or by place."""
    hidden = {name: property(Payload(kind, name)._refuse) for name in kind.names if name not in shown}
    if not hidden:
        return kind.event_class
    payload = Payload(kind, next(iter(hidden)))
    places = [0, *(place for place, name in enumerate(kind.names, start=1) if name in shown)]

    def item(self: Event, place: Any) -> Any:
        return tuple.__getitem__(self, place) if place in places else payload._refuse()

    looks = {"__getitem__": item, "__iter__": payload._refuse, "__contains__": payload._refuse}
    return cast("type[Event]", type(kind.name, (kind.event_class,), {"__slots__": (), **looks, **hidden}))


class Payload:
    """What stands in an event for a field that is not in its tag: a dependence must not look at it."""

    __slots__ = ("_where",)

    def __init__(self, kind: Kind, name: str) -> None:
        self._where = f"{kind.name}.{name}"

    def _refuse(self, *_: object) -> NoReturn:
        raise PlanError(
            f"a dependence that looks at {self._where}",
            needed="one that looks at tags only",
            came=f"{self._where}, which is payload",
            hint=f"tag = ({self._where.split('.')[1]!r}, ...) in the program, if it belongs to the tag",
        )

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = __repr__ = _refuse
    __add__ = __sub__ = __mul__ = __mod__ = __floordiv__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse


def _may_relate(clause: Clause, a: Tags, b: Tags) -> bool:
    if not any(_on(left, a) and _on(right, b) for left, right in _both_ways(clause)):
        return False
    if not all(_overlap(a.values(field), b.values(field)) for field in clause.key):
        return False
    if not (clause.pairwise or clause.left.tests or clause.right.tests):
        return True
    pairs = list(itertools.islice(_pairs(a, b), MOST_TAGS + 1))
    if not pairs or len(pairs) > MOST_TAGS:
        return True  # more than can be asked about
    try:
        return any(clause.relates(x, y) for x, y in pairs)
    except PlanError:
        return True  # it looks at fields whose values are not listed


def _both_ways(clause: Clause) -> Iterator[tuple[Select, Select]]:
    yield clause.left, clause.right
    yield clause.right, clause.left


def _on(side: Select, part: Tags) -> bool:
    return side.kinds is None or part.kind in side.kinds


def _pairs(a: Tags, b: Tags) -> Iterator[tuple[Event, Event]]:
    """All pairs of tags, if both are listed."""
    return itertools.product(_listed(a), _listed(b))


def _listed(part: Tags) -> list[Event]:
    """Its tags as bare events; none if they are not listed."""
    if not all(isinstance(values, frozenset) for _, values in part.fields):
        return []
    names = [name for name, _ in part.fields]
    listed = [values for _, values in part.fields if isinstance(values, frozenset)]
    if math.prod(map(len, listed)) > MOST_TAGS:
        return []
    return [bare(part.kind, dict(zip(names, chosen, strict=True))) for chosen in itertools.product(*listed)]


# -- values ----------------------------------------------------------------------------------------------------------


def _require_field(where: str, kind: Kind, name: str) -> None:
    if name not in kind.fields:
        raise PlanError(
            where, needed=f"a field of {kind.name}", came=repr(name), hint=", ".join(kind.names) or "no field"
        )


def has_buckets(kind: Kind, field: str) -> bool:
    """Whether the values of a field can be shared out by their hash: whole numbers, texts and dates can."""
    return without_annotation(without_none(kind.fields[field])[0]) in (int, str, date)


def _values(where: str, kind: Kind, name: str, given: Any) -> Values:
    if isinstance(given, Bucket):
        if not has_buckets(kind, name):
            raise PlanError(
                where,
                needed="buckets of whole numbers, texts or dates",
                came=f"{kind.name}.{name}: {type_name(kind.fields[name])}",
                hint=f"its values, {name}={{...}}",
            )
        return given
    # An event with this field alone says which value it makes of what is given, or that it is none.
    only = Kind(kind.name, **{name: kind.fields[name]})
    several = given if isinstance(given, (set, frozenset, list, range)) else [given]
    listed = frozenset(only(value)[1] for value in several)
    if not listed:
        raise PlanError(where, needed=f"a value of {name}, or several", came=repr(given), hint=f"{name}=1")
    return listed


def _all_values(kind: Kind, field: str) -> Values:
    """The values of a field if its type has only a few."""
    plain, with_none = without_none(kind.fields[field])
    if without_annotation(plain) is not bool:
        return None
    return frozenset([False, True, None] if with_none else [False, True])


def _overlap(one: Values, other: Values) -> bool:
    if one is None or other is None:
        return True
    if isinstance(one, Bucket) and isinstance(other, Bucket):
        shared = math.gcd(one.of, other.of)
        return one.index % shared == other.index % shared
    if isinstance(one, Bucket):
        return _overlap(other, one)
    # A value of another type may be equal to one that has a bucket: 1.0 and 1.
    return any(value in other if isinstance(other, frozenset) or _has_share_hash(value) else True for value in one)


def _within(one: Values, other: Values) -> bool:
    if other is None:
        return True
    if one is None:
        return isinstance(other, Bucket) and other.of == 1
    if isinstance(one, frozenset):
        return all(value in other for value in one)
    return isinstance(other, Bucket) and one.of % other.of == 0 and one.index % other.of == other.index


def _told(values: Values) -> str:
    if not isinstance(values, frozenset):
        return str(values)
    try:
        listed = [repr(value) for value in sorted(values)]
    except TypeError:  # None among them, for one
        listed = sorted(map(repr, values))
    return "|".join(listed) if len(listed) <= MOST_TOLD else f"{'|'.join(listed[:3])}|...{len(listed)} values"
