"""Synchronization schemas: types of streams that say which events keep their order (Definition 2.6).

    Bag(kinds)             events in no order
    Seq(kinds)             events in one order
    Sync(kinds, S)         markers in one order, with streams of type S between them
    PartitionBy(keys, S)   a stream of type S for every value of the keys, the streams in no order with each other
    Par(S1, S2, ...)       streams side by side, in no order with each other

A schema is a `Dependence` (Definition 2.13), so it goes wherever a dependence is wanted.

>>> from streamtight.stream.event import Kind
>>> GPS = Kind("GPS", taxi_id=int, x=float)
>>> Ride, EndOfHour = Kind("Ride", taxi_id=int, cost=int), Kind("EndOfHour", hour=int)
>>> S = Sync(EndOfHour, Par(PartitionBy("taxi_id", Seq(GPS)), Bag(Ride)))
>>> S.depends(GPS(1, 0.0), GPS(1, 2.0)), S.depends(GPS(1, 0.0), GPS(2, 2.0)), S.depends(Ride(1, 5), EndOfHour(8))
(True, False, True)
>>> Sync(EndOfHour, Bag(GPS, Ride)).relaxes(S), S.relaxes(Sync(EndOfHour, Bag(GPS, Ride)))
(True, False)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NoReturn

from streamtight.errors import SchemaError
from streamtight.stream.dependence import Clause, Dependence, Select
from streamtight.stream.event import Event, Kind, type_name

if TYPE_CHECKING:
    from streamtight.stream.series_parallel import Stream

ONE_PLACE = "2.8 (1): no kind appears twice"
KEYS_ARE_FIELDS = "2.8 (2): a partition key is a field of every kind in its scope"
SPLIT_ONCE = "2.8 (3): no key is split twice"
KEYS_CAN_MEET = "keys of one name have one type, or they could never be equal"


class Schema(Dependence):
    """A type of streams. Build one with Bag, Seq, Sync, PartitionBy and Par; only well-formed ones can be built."""

    shape: tuple[object, ...]
    """How it is built; schemas that order alike may have different shapes."""

    def __init__(self, clauses: Iterable[Clause], *, text: str, kinds: frozenset[Kind], keys: frozenset[str]) -> None:
        super().__init__(clauses, text=text, domain=kinds)
        self.kinds = kinds
        """Every kind in it: `headers(S)`."""
        self.keys = keys
        """Every key that it, or a part of it, splits by."""

    def parse(self, events: Iterable[Event]) -> Stream:
        """The series-parallel stream of which these events are a flattening: there is exactly one (Prop 2.19)."""
        from streamtight.stream.series_parallel import parse

        return parse(self, events)

    def relaxes(self, other: Schema) -> bool:
        """Is this a relaxation of the other: does it know its kinds and order no more of them? (Definition 2.20)"""
        return self.why_not_relaxes(other) is None

    def why_not_relaxes(self, other: Schema) -> str | None:
        """Why this is no relaxation of the other; None if it is one. Quadratic in the number of kinds (Prop 2.23)."""
        if not isinstance(other, Schema):
            raise SchemaError(
                f"{self!r}.relaxes(...)",
                needed="another schema",
                came=repr(other),
                hint="Bag, Seq, Sync, PartitionBy or Par of kinds",
            )
        if missing := sorted(kind.name for kind in other.kinds - self.kinds):
            return f"it has no {', '.join(missing)}"
        allowed = other.order()
        for (a, b), keys in self.order().items():
            if a not in other.kinds or b not in other.kinds:
                continue
            if (a, b) not in allowed:
                return f"it orders {a.name} with {b.name}{_agreeing(keys)}, the other does not"
            if not allowed[a, b] <= keys:
                return f"it orders {a.name} with {b.name}{_agreeing(keys)}, the other only{_agreeing(allowed[a, b])}"
        return None

    def order_equivalent(self, other: Schema) -> bool:
        """Do both describe the same streams: the same kinds, ordered alike?"""
        return self.relaxes(other) and other.relaxes(self)

    def order(self) -> Mapping[tuple[Kind, Kind], frozenset[str]]:
        """For each pair of kinds that is ordered at all: the keys on which two events must agree to be ordered.

        Only pairs of different events count: swapping two identical ones changes nothing. So a kind that is ordered
        only among events that agree on all their fields is not ordered, and a pair that is left out is in no order.
        """
        pairs: dict[tuple[Kind, Kind], frozenset[str]] = {}
        for clause in self.clauses:
            keys = frozenset(clause.key)
            for a, b in itertools.product(clause.left.kinds or (), clause.right.kinds or ()):
                if a is not b or not keys >= frozenset(a.names):
                    pairs[a, b] = pairs[b, a] = keys
        return pairs

    def picture(self) -> str:
        """The schema as an SVG picture: its parts, each above those that it is made of; notebooks show it."""
        from streamtight.stream.schema_picture import schema_picture

        return schema_picture(self)

    def _repr_html_(self) -> str:
        return self.picture()

    def _unknown_kind(self, event: Event) -> SchemaError:  # type: ignore[override]
        known = super()._unknown_kind(event)
        return SchemaError(known.where, needed=known.needed, came=known.came, hint=known.hint)


def _agreeing(keys: frozenset[str]) -> str:
    return f" of the same {', '.join(sorted(keys))}" if keys else " always"


class Bag(Schema):
    """Events of these kinds in no order.

    >>> from streamtight.stream.event import Kind
    >>> Bag(Kind("Ride", taxi_id=int), Kind("Tip", cents=int))
    Bag(Ride, Tip)
    """

    def __init__(self, *kinds: Kind | Iterable[Kind]) -> None:
        members = _kinds(kinds, "Bag")
        super().__init__((), text=f"Bag({_names(members)})", kinds=frozenset(members), keys=frozenset())
        self.shape = ("Bag", self.kinds)


class Sync(Schema):
    """Markers of these kinds in one order, with streams of type `between` between them."""

    def __init__(self, markers: Kind | Iterable[Kind], between: Schema) -> None:
        members = _kinds((markers,), "Sync")
        _require_schemas((between,), "Sync")
        text = f"Sync({_braced(members)}, {between!r})"
        # Seq is Sync(kinds, Bag()), but should read as it was written.
        if isinstance(between, Bag) and not between.kinds:
            text = f"Seq({_names(members)})"
        _require_apart([frozenset(members), between.kinds], text)
        kinds = frozenset(members) | between.kinds
        clause = Clause(text, (), Select(frozenset(members)), Select(kinds))
        clauses = (clause, *between.clauses) if members else between.clauses
        super().__init__(clauses, text=text, kinds=kinds, keys=between.keys)
        self.markers = frozenset(members)
        self.between = between
        self.shape = ("Sync", self.markers, between.shape)


def Seq(*kinds: Kind | Iterable[Kind]) -> Sync:  # noqa: N802 - a type of streams, like the others
    """Events of these kinds in one order: `Sync(kinds, Bag())`."""
    return Sync(_kinds(kinds, "Seq"), Bag())


class PartitionBy(Schema):
    """A stream of type `each` for every value of the key fields."""

    def __init__(self, key: str | Iterable[str], each: Schema) -> None:
        fields = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, Iterable) else ()
        _require_schemas((each,), "PartitionBy")
        listed = repr(fields[0]) if len(fields) == 1 else repr(fields)
        text = f"PartitionBy({listed}, {each!r})"
        if not fields or not all(isinstance(field, str) for field in fields):
            raise SchemaError(
                "PartitionBy",
                needed="a field name or several",
                came=repr(key),
                hint="PartitionBy('taxi_id', S)",
            )
        _require_key_fields(fields, each, text)
        clauses = (Clause(c.text, tuple(dict.fromkeys(fields + c.key)), c.left, c.right) for c in each.clauses)
        super().__init__(clauses, text=text, kinds=each.kinds, keys=each.keys | frozenset(fields))
        self.fields = fields
        self.each = each
        self.shape = ("PartitionBy", fields, each.shape)


class Par(Schema):
    """Streams side by side, in no order with each other."""

    def __init__(self, *parts: Schema) -> None:
        _require_schemas(parts, "Par")
        text = f"Par({', '.join(repr(part) for part in parts)})"
        _require_apart([part.kinds for part in parts], text)
        kinds = frozenset[Kind]().union(*(part.kinds for part in parts))
        keys = frozenset[str]().union(*(part.keys for part in parts))
        super().__init__((c for part in parts for c in part.clauses), text=text, kinds=kinds, keys=keys)
        self.parts = parts
        self.shape = ("Par", *(part.shape for part in parts))


# -- when a schema is well formed (Definition 2.8) ------------------------------------------------------------------


def _kinds(given: Iterable[Kind | Iterable[Kind]], where: str) -> tuple[Kind, ...]:
    kinds: list[Kind] = []
    for one in given:
        members = [one] if isinstance(one, Kind) else list(one) if isinstance(one, Iterable) else [None]
        if isinstance(one, (set, frozenset)):
            members = sorted(members, key=lambda kind: str(getattr(kind, "name", kind)))
        if not all(isinstance(kind, Kind) for kind in members):
            raise SchemaError(
                where,
                needed="kinds, or sets of kinds",
                came=repr(one),
                hint=f'{where}(Kind("GPS", taxi_id=int))',
            )
        kinds.extend(kind for kind in members if kind is not None)
    for kind in kinds:
        if kinds.count(kind) > 1:
            _refuse_twice(kind, f"{where}({_names(kinds)})")
    return tuple(kinds)


def _require_schemas(given: Iterable[object], where: str) -> None:
    for one in given:
        if not isinstance(one, Schema):
            raise SchemaError(where, needed="a schema", came=repr(one), hint=f"Bag({one!r}) or Seq({one!r})")


def _require_apart(groups: list[frozenset[Kind]], where: str) -> None:
    for one, other in itertools.combinations(groups, 2):
        for kind in one & other:
            _refuse_twice(kind, where)


def _refuse_twice(kind: Kind, where: str) -> NoReturn:
    raise SchemaError(
        where,
        needed="every kind in one place",
        came=f"{kind.name} twice",
        hint=f"keep {kind.name} in one place, or give the second one a kind of its own",
        rule=ONE_PLACE,
    )


def _require_key_fields(fields: tuple[str, ...], each: Schema, where: str) -> None:
    types: dict[str, tuple[Kind, object]] = {}
    for kind, field in itertools.product(sorted(each.kinds, key=lambda kind: kind.name), fields):
        if field not in kind.fields:
            raise SchemaError(
                where,
                needed=f"a field {field!r} in {kind.name}",
                came=f"the fields {', '.join(kind.names) or '(none)'}",
                hint=f"move {kind.name} out of this PartitionBy, or split by another field",
                rule=KEYS_ARE_FIELDS,
            )
        first, declared = types.setdefault(field, (kind, kind.fields[field]))
        if declared != kind.fields[field]:
            raise SchemaError(
                where,
                needed=f"one type for {field!r}",
                came=f"{type_name(declared)} in {first.name}, {type_name(kind.fields[field])} in {kind.name}",
                hint="give the field the same type in both kinds",
                rule=KEYS_CAN_MEET,
            )
    for field in fields:
        if field in each.keys or fields.count(field) > 1:
            raise SchemaError(
                where,
                needed=f"{field!r} to be split once",
                came="two splits by it, one inside the other",
                hint=f"leave {field!r} out of one of them",
                rule=SPLIT_ONCE,
            )


def _names(kinds: Iterable[Kind]) -> str:
    return ", ".join(kind.name for kind in kinds)


def _braced(kinds: tuple[Kind, ...]) -> str:
    return kinds[0].name if len(kinds) == 1 else "{" + _names(kinds) + "}"


# -- from a relation on kinds back to a schema (Prop 2.15) ------------------------------------------------------------


def schema_of(kinds: Iterable[Kind], depends: Callable[[Kind, Kind], bool]) -> Schema:
    """The schema whose order is this symmetric relation on kinds, if there is one.

    There is one exactly if in every connected group some kind is ordered with all of the group and with itself, and so
    on below it. A path or a cycle of four kinds has no such kind (P4, C4: Prop 2.15), nor has a pair of kinds that are
    ordered with each other but not in themselves.

    >>> from streamtight.stream.event import Kind
    >>> A, B, C = (Kind(name) for name in "ABC")
    >>> schema_of([A, B, C], lambda a, b: A in (a, b))
    Sync(A, Bag(B, C))
    """
    left = list(_kinds((kinds,), "schema_of"))
    parts: list[Schema] = []
    loose = [kind for kind in left if not any(depends(kind, other) for other in left)]
    if loose:
        parts.append(Bag(loose))
    left = [kind for kind in left if kind not in loose]
    while left:
        component = _connected(left, depends)
        left = [kind for kind in left if kind not in component]
        markers = [kind for kind in component if all(depends(kind, other) for other in component)]
        if not markers:
            _refuse_relation(component, depends)
        rest = [kind for kind in component if kind not in markers]
        parts.append(Sync(markers, schema_of(rest, depends)))
    return parts[0] if len(parts) == 1 else Par(*parts) if parts else Bag()


def _connected(kinds: list[Kind], depends: Callable[[Kind, Kind], bool]) -> list[Kind]:
    reached, waiting = {kinds[0]}, [kinds[0]]
    while waiting:
        kind = waiting.pop()
        for other in kinds:
            if other not in reached and depends(kind, other):
                reached.add(other)
                waiting.append(other)
    return [kind for kind in kinds if kind in reached]


def _refuse_relation(kinds: list[Kind], depends: Callable[[Kind, Kind], bool]) -> NoReturn:
    shape, witness = "no kind above the others", kinds
    for four in itertools.permutations(kinds, 4):
        a, b, c, d = four
        chain = depends(a, b) and depends(b, c) and depends(c, d)
        if chain and not depends(a, c) and not depends(b, d):
            shape, witness = ("the cycle C4" if depends(a, d) else "the path P4"), list(four)
            break
    else:
        for a, b in itertools.combinations(kinds, 2):
            if depends(a, b) and not depends(a, a) and not depends(b, b):
                shape, witness = "two kinds ordered with each other but neither in itself", [a, b]
                break
    raise SchemaError(
        "schema_of",
        needed="a hierarchy: in every connected group a kind that is ordered with all of the group",
        came=f"{shape} {' - '.join(kind.name for kind in witness)}",
        hint="use the relation as it is: depends(lambda a, b: ...)",
        rule="2.15: no P4 and no C4",
    )
