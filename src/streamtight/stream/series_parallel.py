"""Series-parallel streams: the values of a schema (Definition 2.9).

A flat sequence of events is *parsed* into the one stream that it is a flattening of (Prop 2.19), in linear time:

    Bag            how often each event occurs
    Sync           [t0, d1, t1, ..., dm, tm]: the markers d and the streams t between them
    PartitionBy    a non-empty stream for each key
    Par            one stream for each part

The empty stream of any part is None inside, so that equal streams have equal insides; `Seq` then costs one
list item an event. Streams do not change once they are made.
"""

from __future__ import annotations

import abc
import itertools
import operator
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar, cast

from streamtight.errors import SchemaError
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Sync


def parse(schema: Schema, events: Iterable[Event]) -> Stream:
    """The stream of type `schema` that has these events as a flattening.

    >>> from streamtight.stream.event import Kind
    >>> from streamtight.stream.schema import Seq
    >>> A, B = Kind("A", n=int), Kind("B")
    >>> parse(Sync(B, Bag(A)), [A(1), A(2), B(), A(3)])
    [{A(n=1), A(n=2)}, B(), {A(n=3)}]
    """
    stream = _empty(schema)
    add, kinds = stream._add, schema.kinds
    for event in events:
        if not isinstance(event, Event):
            raise SchemaError(f"{schema!r}.parse", needed="events", came=repr(event), hint="make events with a Kind")
        if event[0] not in kinds:
            schema.require_known(event)
        add(event)
    return stream


class Stream(abc.ABC):
    """A stream of the type `schema`. `a + b` concatenates, `a <= b` asks whether a is a prefix of b."""

    __slots__ = ("schema",)

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    @abc.abstractmethod
    def _add(self, event: Event) -> None:
        """Put the event at the end; only while it is parsed."""

    @abc.abstractmethod
    def _inside(self) -> object:
        """What equal streams have equal."""

    @abc.abstractmethod
    def _followed_by(self, other: Any) -> Stream:
        """The concatenation with a stream of the same schema."""

    @abc.abstractmethod
    def _rest_after(self, prefix: Any) -> Stream | None:
        """What follows the prefix, a stream of the same schema, or None if it is no prefix."""

    @abc.abstractmethod
    def flatten(self) -> list[Event]:
        """One flattening: an order of its events in which dependent ones come as they must."""

    @abc.abstractmethod
    def flattenings(self) -> Iterator[tuple[Event, ...]]:
        """Every flattening once (Definition 2.18). There can be very many: only for small streams."""

    def __len__(self) -> int:
        """How many events it has."""
        return len(self.flatten())

    def __add__(self, other: Stream) -> Stream:
        self._require_same_schema(other, "+")
        return self._followed_by(other)

    def after(self, prefix: Stream) -> Stream | None:
        """The stream that follows `prefix` in this one, or None if that is no prefix (Definition 2.11).

        >>> from streamtight.stream.event import Kind
        >>> A = Kind("A", n=int)
        >>> Bag(A).parse([A(1), A(2)]).after(Bag(A).parse([A(2)]))
        {A(n=1)}
        """
        self._require_same_schema(prefix, "after")
        return self._rest_after(prefix)

    def __le__(self, other: Stream) -> bool:
        self._require_same_schema(other, "<=")
        return other._rest_after(self) is not None

    def relax(self, schema: Schema) -> Stream:
        """The stream of a weaker schema that has every flattening of this one (Prop 2.22)."""
        if reason := schema.why_not_relaxes(self.schema):
            raise SchemaError(
                f"relax({schema!r})",
                needed=f"a relaxation of {self.schema!r}",
                came=f"a schema that is none: {reason}",
                hint="a schema that orders no more than this one",
            )
        return parse(schema, self.flatten())

    def _require_same_schema(self, other: Stream, where: str) -> None:
        if not isinstance(other, Stream) or not _alike(self.schema, other.schema):
            came = repr(other.schema) if isinstance(other, Stream) else repr(other)
            raise SchemaError(
                where,
                needed=f"a stream of {self.schema!r}",
                came=came,
                hint="parse both sides with the same schema, or relax one of them",
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return _alike(self.schema, other.schema) and self._inside() == other._inside()


class BagStream(Stream):
    """How often each event occurs."""

    __slots__ = ("counts",)

    def __init__(self, schema: Schema, counts: dict[Event, int]) -> None:
        super().__init__(schema)
        self.counts = counts

    def _add(self, event: Event) -> None:
        counts = self.counts
        counts[event] = counts.get(event, 0) + 1

    def _inside(self) -> object:
        return self.counts

    def _followed_by(self, other: BagStream) -> Stream:
        return BagStream(self.schema, dict(Counter(self.counts) + Counter(other.counts)))

    def _rest_after(self, prefix: BagStream) -> Stream | None:
        if any(count > self.counts.get(event, 0) for event, count in prefix.counts.items()):
            return None
        return BagStream(self.schema, dict(Counter(self.counts) - Counter(prefix.counts)))

    def flatten(self) -> list[Event]:
        return [event for event, count in self.counts.items() for _ in range(count)]

    def flattenings(self) -> Iterator[tuple[Event, ...]]:
        yield from _permutations(dict(self.counts), len(self.flatten()))

    def __repr__(self) -> str:
        return "{" + ", ".join(map(repr, self.flatten())) + "}"


class SyncStream(Stream):
    """`markers` d1..dm in order, and the streams t0..tm between them in `parts` (None where one is empty)."""

    __slots__ = ("markers", "parts")

    def __init__(self, schema: Schema, markers: list[Event], parts: list[Stream | None]) -> None:
        super().__init__(schema)
        self.markers = markers
        self.parts = parts

    @property
    def _between(self) -> Schema:
        return cast(Sync, self.schema).between

    def _add(self, event: Event) -> None:
        if event[0] in cast(Sync, self.schema).markers:
            self.markers.append(event)
            self.parts.append(None)
            return
        part = self.parts[-1]
        if part is None:
            part = self.parts[-1] = _empty(self._between)
        part._add(event)

    def _inside(self) -> object:
        return (self.markers, self.parts)

    def _followed_by(self, other: SyncStream) -> Stream:
        seam = _joined(self.parts[-1], other.parts[0])
        parts = [*self.parts[:-1], seam, *other.parts[1:]]
        return SyncStream(self.schema, self.markers + other.markers, parts)

    def _rest_after(self, prefix: SyncStream) -> Stream | None:
        cut = len(prefix.markers)
        if self.markers[:cut] != prefix.markers or self.parts[:cut] != prefix.parts[:cut]:
            return None
        found, rest = _remainder(self.parts[cut], prefix.parts[cut]) if cut < len(self.parts) else (False, None)
        return SyncStream(self.schema, self.markers[cut:], [rest, *self.parts[cut + 1 :]]) if found else None

    def flatten(self) -> list[Event]:
        events = _flat(self.parts[0])
        for marker, part in zip(self.markers, self.parts[1:], strict=True):
            events.append(marker)
            events.extend(_flat(part))
        return events

    def flattenings(self) -> Iterator[tuple[Event, ...]]:
        choices: list[Iterable[tuple[Event, ...]]] = [_all_flat(self.parts[0])]
        for marker, part in zip(self.markers, self.parts[1:], strict=True):
            choices += [[(marker,)], _all_flat(part)]
        for chosen in itertools.product(*choices):
            yield tuple(itertools.chain.from_iterable(chosen))

    def __repr__(self) -> str:
        shown = [_shown(self.parts[0])]
        for marker, part in zip(self.markers, self.parts[1:], strict=True):
            shown += [repr(marker), _shown(part)]
        return "[" + ", ".join(text for text in shown if text) + "]"


class PartitionStream(Stream):
    """A non-empty stream for each value of the keys."""

    __slots__ = ("_getters", "parts")

    def __init__(self, schema: Schema, parts: dict[Hashable, Stream]) -> None:
        super().__init__(schema)
        self.parts = parts
        self._getters: dict[Kind, Callable[[Event], Hashable]] = {}

    def _add(self, event: Event) -> None:
        getter = self._getters.get(event[0])
        if getter is None:
            fields = cast(PartitionBy, self.schema).fields
            names = event.kind.names
            getter = self._getters[event[0]] = operator.itemgetter(*(names.index(f) + 1 for f in fields))
        key = getter(event)
        part = self.parts.get(key)
        if part is None:
            part = self.parts[key] = _empty(cast(PartitionBy, self.schema).each)
        part._add(event)

    def _inside(self) -> object:
        return self.parts

    def _followed_by(self, other: PartitionStream) -> Stream:
        keys = dict.fromkeys([*self.parts, *other.parts])
        joined = {key: _joined(self.parts.get(key), other.parts.get(key)) for key in keys}
        return PartitionStream(self.schema, {key: part for key, part in joined.items() if part is not None})

    def _rest_after(self, prefix: PartitionStream) -> Stream | None:
        rest = dict(self.parts)
        for key, part in prefix.parts.items():
            found, remaining = _remainder(rest.pop(key, None), part)
            if not found:
                return None
            if remaining is not None:
                rest[key] = remaining
        return PartitionStream(self.schema, rest)

    def flatten(self) -> list[Event]:
        return [event for part in self.parts.values() for event in part.flatten()]

    def flattenings(self) -> Iterator[tuple[Event, ...]]:
        return _interleavings(list(self.parts.values()))

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{key!r}: {part!r}" for key, part in self.parts.items()) + "}"


class ParStream(Stream):
    """One stream for each part (None where it is empty)."""

    __slots__ = ("_route", "parts")

    def __init__(self, schema: Schema, parts: list[Stream | None]) -> None:
        super().__init__(schema)
        self.parts = parts
        schemas = cast(Par, schema).parts
        self._route = {kind: place for place, part in enumerate(schemas) for kind in part.kinds}

    def _add(self, event: Event) -> None:
        place = self._route[event[0]]
        part = self.parts[place]
        if part is None:
            part = self.parts[place] = _empty(cast(Par, self.schema).parts[place])
        part._add(event)

    def _inside(self) -> object:
        return self.parts

    def _followed_by(self, other: ParStream) -> Stream:
        return ParStream(self.schema, [_joined(a, b) for a, b in zip(self.parts, other.parts, strict=True)])

    def _rest_after(self, prefix: ParStream) -> Stream | None:
        rest = [_remainder(a, b) for a, b in zip(self.parts, prefix.parts, strict=True)]
        return ParStream(self.schema, [part for _, part in rest]) if all(found for found, _ in rest) else None

    def flatten(self) -> list[Event]:
        return [event for part in self.parts for event in _flat(part)]

    def flattenings(self) -> Iterator[tuple[Event, ...]]:
        return _interleavings([part for part in self.parts if part is not None])

    def __repr__(self) -> str:
        return "<" + ", ".join(_shown(part) or "{}" for part in self.parts) + ">"


def _alike(one: Schema, other: Schema) -> bool:
    """Are they built alike? Schemas of other shapes may order alike and be equal, but their streams do not mix."""
    return one is other or one.shape == other.shape


# -- parts, which are None where they are empty --------------------------------------------------------------------


def _empty(schema: Schema) -> Stream:
    match schema:
        case Bag():
            return BagStream(schema, {})
        case Sync():
            return SyncStream(schema, [], [None])
        case PartitionBy():
            return PartitionStream(schema, {})
        case Par():
            return ParStream(schema, [None] * len(schema.parts))
    raise SchemaError("parse", needed="Bag, Sync, PartitionBy or Par", came=repr(schema), hint="build it from those")


def _flat(part: Stream | None) -> list[Event]:
    return [] if part is None else part.flatten()


def _all_flat(part: Stream | None) -> list[tuple[Event, ...]]:
    return [()] if part is None else list(part.flattenings())


def _shown(part: Stream | None) -> str:
    return "" if part is None else repr(part)


def _joined(first: Stream | None, second: Stream | None) -> Stream | None:
    if first is None or second is None:
        return second if first is None else first
    return first._followed_by(second)


def _remainder(whole: Stream | None, prefix: Stream | None) -> tuple[bool, Stream | None]:
    """Whether `prefix` is one, and what is left of `whole` after it."""
    if prefix is None:
        return True, whole
    rest = None if whole is None else whole._rest_after(prefix)
    if rest is None:
        return False, None
    return True, rest if rest.flatten() else None


Item = TypeVar("Item", bound=Hashable)


def _permutations(counts: dict[Item, int], size: int) -> Iterator[tuple[Item, ...]]:
    """The distinct orders of a multiset."""
    if size == 0:
        yield ()
        return
    for item in list(counts):
        if counts[item]:
            counts[item] -= 1
            for rest in _permutations(counts, size - 1):
                yield (item, *rest)
            counts[item] += 1


def _interleavings(streams: Sequence[Stream]) -> Iterator[tuple[Event, ...]]:
    """Every interleaving of every flattening; the streams have no event in common, so none comes twice."""
    for chosen in itertools.product(*(list(stream.flattenings()) for stream in streams)):
        turns = {place: len(word) for place, word in enumerate(chosen)}
        for order in _permutations(turns, sum(turns.values())):
            words = [iter(word) for word in chosen]
            yield tuple(next(words[place]) for place in order)
