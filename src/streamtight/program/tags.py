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

import itertools
import math
import zlib
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, NoReturn

from streamtight.errors import PlanError
from streamtight.stream.dependence import Clause, Dependence
from streamtight.stream.event import Event, Kind, trusted_event

MOST_TAGS = 1000
"""Sets with more tags are not taken apart to ask a relation about each of them."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """The values whose hash, divided by a number, leaves this remainder: a share of all keys."""

    index: int
    of: int

    def __post_init__(self) -> None:
        if type(self.index) is not int or type(self.of) is not int or not 0 <= self.index < self.of:
            raise PlanError(f"{self}", needed="an index from 0 to of - 1", came=str(self.index), hint="Bucket(0, of=2)")

    def __contains__(self, value: object) -> bool:
        return share_hash(value) % self.of == self.index

    def __str__(self) -> str:
        return f"#{self.index}/{self.of}"


def share_hash(value: Any) -> int:
    """The hash by which values are shared out: CRC-32 of the text, as Spark's `crc32(cast(value as string))` is.

    >>> share_hash("blue"), share_hash(42)
    (2654390964, 841265288)
    """
    if value is not None and not isinstance(value, (int, str, date)):
        raise PlanError(
            f"a bucket of {value!r}",
            needed="values that are whole numbers, texts or dates",
            came=type(value).__name__,
            hint="a tag with such a field",
        )
    text = str(int(value)) if isinstance(value, int) else str(value)
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


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
        asked = Tags(kind, tuple((name, frozenset([value])) for name, value in fields.items()))
        return any(part.overlaps(asked) for part in self.parts)

    def holds(self, event: Event) -> bool:
        """Whether the tag of this event is one of them."""
        return any(part.holds(event) for part in self.parts)

    def covers(self, other: TagSet) -> bool:
        """Whether each tag of the other is certainly one of these."""
        return all(any(theirs.within(ours) for ours in self.parts) for theirs in other.parts)

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
    for kind in kinds:
        for name in fields:
            if name not in kind.fields:
                raise PlanError(
                    where, needed=f"a field of {kind.name}", came=repr(name), hint=", ".join(kind.names) or "no field"
                )
    return TagSet(Tags(kind, tuple((name, _values(given)) for name, given in sorted(fields.items()))) for kind in kinds)


def tag_set(given: Any, where: str) -> TagSet:
    """What a user named: tags, a kind, or several of these."""
    if isinstance(given, TagSet):
        return given
    if isinstance(given, Kind):
        return tags(given)
    if isinstance(given, Iterable) and not isinstance(given, str):
        return TagSet(part for each in given for part in tag_set(each, where).parts)
    raise PlanError(where, needed="tags, a Kind, or several", came=repr(given), hint="tags(Read, key=1)")


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
    return trusted_event(kind, tuple(fields[name] if name in fields else Payload(kind, name) for name in kind.names))


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

    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __hash__ = _refuse
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
    return any(clause.relates(x, y) for x, y in pairs)


def _both_ways(clause: Clause) -> Iterator[tuple[Any, Any]]:
    yield clause.left, clause.right
    yield clause.right, clause.left


def _on(side: Any, part: Tags) -> bool:
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


def _values(given: Any) -> Values:
    if given is None or isinstance(given, Bucket):
        return given
    if isinstance(given, (set, frozenset, list, range)):
        return frozenset(given)
    return frozenset([given])


def _overlap(one: Values, other: Values) -> bool:
    if one is None or other is None:
        return True
    if isinstance(one, Bucket) and isinstance(other, Bucket):
        shared = math.gcd(one.of, other.of)
        return one.index % shared == other.index % shared
    if isinstance(one, Bucket):
        return _overlap(other, one)
    return any(value in other for value in one)


def _within(one: Values, other: Values) -> bool:
    if other is None:
        return True
    if one is None:
        return isinstance(other, Bucket) and other.of == 1
    if isinstance(one, frozenset):
        return all(value in other for value in one)
    return isinstance(other, Bucket) and one.of % other.of == 0 and one.index % other.of == other.index


def _told(values: Values) -> str:
    if isinstance(values, frozenset):
        return "|".join(sorted(map(repr, values)))
    return str(values)
