"""Transformers of series-parallel streams: a construct for each construct of a schema (Definitions 2.30 to 2.33).

    Relational     on a Bag           a function of the whole bag, or one step for each item
    Hierarchical   on a Sync          a state, updated at each marker, and a transformer for what lies between markers
    Partitioned    on a PartitionBy   one transformer, run for each key; then the results are put together
    Parallel       on a Par           one transformer for each part

>>> from streamtight.stream.schema import Seq
>>> Ride, Hour = Kind("Ride", cents=int), Kind("Hour", hour=int)
>>> Total = Kind("Total", hour=int, cents=int)
>>> rides = Relational.incremental(
...     "rides", takes=Bag(Ride), init=lambda x: 0, add=lambda cents, ride: cents + ride.cents)
>>> hours = Hierarchical(
...     "hours", takes=Sync(Hour, Bag(Ride)), gives=Seq(Total), sub=rides,
...     update=lambda cents, hour: (cents, [Total(hour.hour, cents)]))
>>> hours.open(None, hours.takes.parse([Ride(300), Ride(200), Hour(8), Ride(900)]))
[Total(hour=8, cents=500)]
>>> running = hours.start(None)
>>> [running.feed(event) for event in (Ride(300), Ride(200), Hour(8), Ride(900))]
[[], [], [Total(hour=8, cents=500)], []]
>>> running.close()
(900, [])

A function that is left out passes the value on. So above, the hours hand their state to the rides (`call`), take over
what these end with (`returned`), and end with their state (`fin`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import cast

from streamtight.errors import SchemaError
from streamtight.program.transformer import Given, Law, State, Transformer, Value, short
from streamtight.stream.event import Event, Kind, type_name
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Sync
from streamtight.stream.series_parallel import BagStream, ParStream, PartitionStream, Stream, SyncStream

Kinds = Kind | Iterable[Kind]

BLACK_BOX = "2.30: a relational transformer takes a bag and gives a bag"
SHARED_IN_PARALLEL = "2.31: events that two parts give are in the shared bag"
ONE_VALUE_EACH = "2.31: init gives a value for each part"
SUB_FITS = "2.32: the transformer between the markers takes what is there, and gives what may be there"
MARKERS_FROM_ABOVE = "2.32: only update and fin give a synchronizing event, not a sub-stream"
KEYS_STAY = "2.33: an event from the stream of a key has this key, or is in the shared bag"


# -- bags (Definition 2.30) ------------------------------------------------------------------------------------------


class Relational(Transformer):
    """A black box on bags: `open(x, items)` gives events, `closed(x, items)` a value and events; items is a tuple.

    Without `open` it gives nothing before the end; without `closed` the end adds nothing. A run keeps the items of the
    bag, and calls `open` on all of them for each new one: prefer `Relational.incremental` where that will do.

    >>> A, Most = Kind("A", n=int), Kind("Most", n=int)
    >>> def greatest(x, items):
    ...     return x, [Most(max(item.n for item in items))] if items else []
    >>> most = Relational("most", takes=Bag(A), gives=Bag(Most), closed=greatest)
    >>> most.closed(None, Bag(A).parse([A(1), A(3)]))
    (None, {Most(n=3)})
    >>> most.obligations()
    [most: 2.30: open and closed do not depend on the order of the items]
    """

    def __init__(
        self,
        name: str,
        *,
        takes: Bag,
        gives: Bag | None = None,
        open: Callable[[Value, tuple[Event, ...]], Iterable[Event]] | None = None,  # noqa: A002 - the paper's name
        closed: Callable[[Value, tuple[Event, ...]], Given] | None = None,
    ) -> None:
        gives = Bag() if gives is None else gives
        for word, schema in (("takes", takes), ("gives", gives)):
            if not isinstance(schema, Bag):
                raise SchemaError(
                    f"{type(self).__name__}({name!r})",
                    needed=f"{word}=Bag(...)",
                    came=repr(schema),
                    hint="Hierarchical for Sync and Seq, Partitioned for PartitionBy, Parallel for Par",
                    rule=BLACK_BOX,
                )
        super().__init__(name, takes=takes, gives=gives)
        self.open_bag = open
        self.closed_bag = closed
        self._may_give = gives.kinds

    @classmethod
    def incremental(
        cls,
        name: str,
        *,
        takes: Bag,
        gives: Bag | None = None,
        init: Callable[[Value], Value] | None = None,
        on_item: Callable[[Value, Event], Iterable[Event]] | None = None,
        add: Callable[[Value, Event], Value] | None = None,
        fin: Callable[[Value], Given] | None = None,
    ) -> Incremental:
        """One that takes the items one by one: `on_item(x, item)` gives events at once, `add(summary, item)` sums up.

        The summary begins as `init(x)`; the end is `fin(summary)`, a value and events. Since `on_item` does not see the
        summary, `open` is monotone and a prefix of `closed` whatever the functions are; only `add` has to commute.
        """
        return Incremental(name, takes=takes, gives=gives, init=init, on_item=on_item, add=add, fin=fin)

    def _laws(self) -> Iterator[Law]:
        if self.open_bag:
            yield Law.MONOTONE
        if self.open_bag and self.closed_bag:
            yield Law.PREFIX
        if self.open_bag or self.closed_bag:
            yield Law.ANY_ORDER_OF_ITEMS

    def _opened(self, x: Value, items: tuple[Event, ...]) -> list[Event]:
        given = self._ask("open", self.open_bag, x, items) if self.open_bag else []
        return self._events("open", given, self._may_give)

    def _ended(self, x: Value, items: tuple[Event, ...]) -> tuple[Value, list[Event]]:
        if self.closed_bag is None:
            return x, self._opened(x, items)
        return self._value_and_events("closed", self._ask("closed", self.closed_bag, x, items), self._may_give)

    def _open(self, x: Value, stream: BagStream) -> list[Event]:
        return self._opened(x, tuple(stream.flatten()))

    def _closed(self, x: Value, stream: BagStream) -> tuple[Value, list[Event]]:
        return self._ended(x, tuple(stream.flatten()))

    # The state: x, the items, what was given for them.

    def _begin(self, x: Value) -> tuple[State, list[Event]]:
        state: State = [x, [], Counter()]
        return state, self._more(state, "open", self._opened(x, ()))

    def _step(self, state: State, event: Event) -> list[Event]:
        x, items, _ = state
        items.append(event)
        return self._more(state, "open", self._opened(x, tuple(items))) if self.open_bag else []

    def _end(self, state: State) -> tuple[Value, list[Event]]:
        x, items, _ = state
        value, events = self._ended(x, tuple(items))
        return value, self._more(state, "closed", events)

    def _more(self, state: State, role: str, events: list[Event]) -> list[Event]:
        before, now = state[2], Counter(events)
        if lost := before - now:
            rule = Law.MONOTONE.value if role == "open" else Law.PREFIX.value
            hint = "give an event only when no later item can take it back"
            self._refuse(role, f"{min(lost, key=repr)!r}, which was given before", events, hint, rule)
        state[2] = now
        return list((now - before).elements())


class Incremental(Relational):
    """A relational transformer that takes item by item; see `Relational.incremental`."""

    def __init__(
        self,
        name: str,
        *,
        takes: Bag,
        gives: Bag | None = None,
        init: Callable[[Value], Value] | None = None,
        on_item: Callable[[Value, Event], Iterable[Event]] | None = None,
        add: Callable[[Value, Event], Value] | None = None,
        fin: Callable[[Value], Given] | None = None,
    ) -> None:
        super().__init__(name, takes=takes, gives=gives)
        self.init = init or _same
        self.on_item = on_item
        self.add = add
        self.fin = fin or _value_alone

    def _laws(self) -> Iterator[Law]:
        if self.add:
            yield Law.ITEMS_COMMUTE

    def _open(self, x: Value, stream: BagStream) -> list[Event]:
        return [given for item in stream.flatten() for given in self._at_once(x, item)]

    def _closed(self, x: Value, stream: BagStream) -> tuple[Value, list[Event]]:
        summary = self._ask("init", self.init, x)
        for item in stream.flatten():
            summary = self._ask("add", self.add, summary, item) if self.add else summary
        value, last = self._last(summary)
        return value, self._open(x, stream) + last

    def _at_once(self, x: Value, item: Event) -> list[Event]:
        if self.on_item is None:
            return []
        return self._events("on_item", self._ask("on_item", self.on_item, x, item), self._may_give)

    def _last(self, summary: Value) -> tuple[Value, list[Event]]:
        return self._value_and_events("fin", self._ask("fin", self.fin, summary), self._may_give)

    # The state: x if items ask for it, the summary.

    def _begin(self, x: Value) -> tuple[State, list[Event]]:
        return [x if self.on_item else None, self._ask("init", self.init, x)], []

    def _step(self, state: State, event: Event) -> list[Event]:
        if self.add:
            state[1] = self._ask("add", self.add, state[1], event)
        return self._at_once(state[0], event)

    def _end(self, state: State) -> tuple[Value, list[Event]]:
        return self._last(state[1])


# -- parts side by side (Definition 2.31) ----------------------------------------------------------------------------


class Parallel(Transformer):
    """A transformer for each part of a Par. Kinds that several parts give are `shared`: they come out in no order.

    `init(x)` is a tuple with a value for each part; without it, each is given x. `fin(x1, x2, ...)` makes the final
    value of theirs; without it, that is their tuple.
    """

    def __init__(
        self,
        name: str,
        *parts: Transformer,
        shared: Kinds = (),
        init: Callable[[Value], tuple[Value, ...]] | None = None,
        fin: Callable[..., Value] | None = None,
    ) -> None:
        where, common = f"Parallel({name!r})", Bag(shared)
        _require_transformers(parts, where)
        owner: dict[Kind, Transformer] = {}
        for part in parts:
            for kind in sorted(part.gives.kinds - common.kinds, key=lambda kind: kind.name):
                if kind in owner:
                    raise SchemaError(
                        where,
                        needed=f"{kind.name} from one part, or shared",
                        came=f"{kind.name} from {owner[kind].name} and from {part.name}",
                        hint=f"shared={kind.name}: then it comes out in no order",
                        rule=SHARED_IN_PARALLEL,
                    )
                owner[kind] = part
        takes = Par(*(part.takes for part in parts))
        gives = _side_by_side(*(_without(part.gives, common.kinds) for part in parts), common)
        super().__init__(name, takes=takes, gives=gives, subs=parts)
        self.init = init
        self.fin = fin or _together
        self._route = {kind: place for place, part in enumerate(parts) for kind in part.takes.kinds}

    def _values(self, x: Value) -> tuple[Value, ...]:
        if self.init is None:
            return (x,) * len(self.subs)
        values = self._ask("init", self.init, x)
        if values.__class__ is not tuple or len(values) != len(self.subs):
            self._refuse("init", f"a tuple of {len(self.subs)} values", values, "one for each part", ONE_VALUE_EACH)
        return values

    def _open(self, x: Value, stream: ParStream) -> list[Event]:
        runs = zip(self.subs, self._values(x), stream.parts, strict=True)
        return [event for sub, value, part in runs for event in sub._open(value, sub._typed(part))]

    def _closed(self, x: Value, stream: ParStream) -> tuple[Value, list[Event]]:
        runs = zip(self.subs, self._values(x), stream.parts, strict=True)
        return self._joined([sub._closed(value, sub._typed(part)) for sub, value, part in runs])

    def _joined(self, ended: list[tuple[Value, list[Event]]]) -> tuple[Value, list[Event]]:
        value = self._ask("fin", self.fin, *(value for value, _ in ended))
        return value, [event for _, events in ended for event in events]

    # The state: those of the parts.

    def _begin(self, x: Value) -> tuple[State, list[Event]]:
        begun = [sub._begin(value) for sub, value in zip(self.subs, self._values(x), strict=True)]
        return [state for state, _ in begun], [event for _, events in begun for event in events]

    def _step(self, state: State, event: Event) -> list[Event]:
        place = self._route[event[0]]
        return self.subs[place]._step(state[place], event)

    def _end(self, state: State) -> tuple[Value, list[Event]]:
        return self._joined([sub._end(part) for sub, part in zip(self.subs, state, strict=True)])


# -- markers, and what lies between them (Definition 2.32) -----------------------------------------------------------


class Hierarchical(Transformer):
    """A state that each marker updates, and a transformer `sub` for the stream between two markers.

    The state begins as `init(x)`. `sub` starts with `call(state)`; after it the state is `returned(state, its value)`,
    and `update(state, marker)` gives the next one and events. At the end `fin(state)` gives the final value and events.
    `gives` is Sync(markers, S) where `sub` gives at most S; any other S is read as Sync((), S). A Seq needs no `sub`.
    """

    def __init__(
        self,
        name: str,
        *,
        takes: Sync,
        gives: Schema | None = None,
        sub: Transformer | None = None,
        update: Callable[[Value, Event], Given] | None = None,
        call: Callable[[Value], Value] | None = None,
        returned: Callable[[Value, Value], Value] | None = None,
        init: Callable[[Value], Value] | None = None,
        fin: Callable[[Value], Given] | None = None,
    ) -> None:
        where = f"Hierarchical({name!r})"
        if not isinstance(takes, Sync):
            raise SchemaError(where, needed="takes=Sync(...) or Seq(...)", came=short(takes), hint="Sync(markers, S)")
        sub = Incremental("between", takes=Bag()) if sub is None else sub
        _require_transformers((sub,), where)
        _require_sub_takes(sub, takes, where)
        if gives is None:
            gives = sub.gives  # that is Sync((), sub.gives)
        else:
            _require_sub_gives(sub, gives, where)
        super().__init__(name, takes=takes, gives=gives, subs=[sub])
        self.update = update or _state_alone
        self.call = call or _same
        self.returned = returned or _take_over
        self.init = init or _same
        self.fin = fin or _value_alone
        self._markers = takes.markers
        self._may_give = gives.kinds

    @property
    def sub(self) -> Transformer:
        """The transformer between the markers."""
        return self.subs[0]

    def _returned(self, state: Value, ended: tuple[Value, list[Event]]) -> tuple[Value, list[Event]]:
        value, events = ended
        return self._ask("returned", self.returned, state, value), events

    def _updated(self, state: Value, marker: Event) -> tuple[Value, list[Event]]:
        return self._value_and_events("update", self._ask("update", self.update, state, marker), self._may_give)

    def _finished(self, state: Value) -> tuple[Value, list[Event]]:
        return self._value_and_events("fin", self._ask("fin", self.fin, state), self._may_give)

    def _between(self, state: Value, part: Stream | None) -> tuple[Value, list[Event]]:
        x1 = self._ask("call", self.call, state)
        return self._returned(state, self.sub._closed(x1, self.sub._typed(part)))

    def _up_to_last_marker(self, x: Value, stream: SyncStream) -> tuple[Value, list[Event]]:
        """The auxiliary semantics: the state after the last marker, and what was given until then."""
        state, given = self._ask("init", self.init, x), list[Event]()
        for part, marker in zip(stream.parts[:-1], stream.markers, strict=True):
            state, events = self._between(state, part)
            given += events
            state, events = self._updated(state, marker)
            given += events
        return state, given

    def _open(self, x: Value, stream: SyncStream) -> list[Event]:
        state, given = self._up_to_last_marker(x, stream)
        return given + self.sub._open(self._ask("call", self.call, state), self.sub._typed(stream.parts[-1]))

    def _closed(self, x: Value, stream: SyncStream) -> tuple[Value, list[Event]]:
        state, given = self._up_to_last_marker(x, stream)
        state, events = self._between(state, stream.parts[-1])
        value, last = self._finished(state)
        return value, given + events + last

    # The state: its own, that of the sub.

    def _begin(self, x: Value) -> tuple[State, list[Event]]:
        own = self._ask("init", self.init, x)
        below, opening = self.sub._begin(self._ask("call", self.call, own))
        return [own, below], opening

    def _step(self, state: State, event: Event) -> list[Event]:
        if event[0] not in self._markers:
            return self.subs[0]._step(state[1], event)
        own, events = self._returned(state[0], self.sub._end(state[1]))
        own, given = self._updated(own, event)
        below, opening = self.sub._begin(self._ask("call", self.call, own))
        state[:] = own, below
        return events + given + opening

    def _end(self, state: State) -> tuple[Value, list[Event]]:
        own, events = self._returned(state[0], self.sub._end(state[1]))
        value, last = self._finished(own)
        return value, events + last


# -- a stream for each key (Definition 2.33) -------------------------------------------------------------------------


class Partitioned(Transformer):
    """One transformer, run for each key that occurs: `key` names the fields.

    The run for a key starts with `init(x, key)`, where the key is an event of the key fields (key.taxi_id). At the end
    `agg(x, finals)` gives the final value and events of the `shared` kinds; `finals` is a dict from keys to values, in
    an order that must not matter. Without `agg` the final value is None. What a run gives has its key, or is shared.
    """

    def __init__(
        self,
        name: str,
        key: str | Iterable[str],
        sub: Transformer,
        *,
        shared: Kinds = (),
        init: Callable[[Value, Event], Value] | None = None,
        agg: Callable[[Value, dict[Event, Value]], Given] | None = None,
    ) -> None:
        where, common = f"Partitioned({name!r})", Bag(shared)
        _require_transformers((sub,), where)
        takes = PartitionBy(key, sub.takes)
        types = {field: kind.fields[field] for kind in takes.kinds for field in takes.fields}
        own = _without(sub.gives, common.kinds)
        for kind in sorted(own.kinds, key=lambda kind: kind.name):
            if wrong := [field for field in types if kind.fields.get(field) != types[field]]:
                raise SchemaError(
                    where,
                    needed=f"a field {wrong[0]!r} of type {type_name(types[wrong[0]])} in {kind.name}, or it shared",
                    came=repr(kind),
                    hint=f"shared={kind.name}: then it comes out in no order",
                    rule=KEYS_STAY,
                )
        gives = _side_by_side(PartitionBy(takes.fields, own), common)
        super().__init__(name, takes=takes, gives=gives, subs=[sub])
        self.init = init or _first_of_two
        self.agg = agg
        self.shared = common.kinds
        self.key = Kind("Key", **{field: types.get(field, object) for field in takes.fields})
        """The kind of the keys."""
        self._places = {
            kind: tuple(kind.names.index(field) + 1 for field in takes.fields) for kind in takes.kinds | own.kinds
        }

    @property
    def sub(self) -> Transformer:
        """The transformer that runs for each key."""
        return self.subs[0]

    def _laws(self) -> Iterator[Law]:
        if self.agg:
            yield Law.ANY_ORDER_OF_KEYS

    def _key_of(self, event: Event) -> Event:
        return self.key(*[event[place] for place in self._places[event[0]]])

    def _keeping(self, key: Event, events: list[Event]) -> list[Event]:
        for event in events:
            if event[0] not in self.shared and self._key_of(event) != key:
                hint = f"give {event.kind.name} this key, or make it shared={event.kind.name}"
                self._refuse(self.sub.name, f"an event with the {key!r} of its stream", event, hint, KEYS_STAY)
        return events

    def _each(self, x: Value, stream: PartitionStream) -> Iterator[tuple[Event, Value, Stream]]:
        for part in stream.parts.values():
            key = self._key_of(part.flatten()[0])
            yield key, self._ask("init", self.init, x, key), self.sub._typed(part)

    def _open(self, x: Value, stream: PartitionStream) -> list[Event]:
        runs = self._each(x, stream)
        return [event for key, x1, part in runs for event in self._keeping(key, self.sub._open(x1, part))]

    def _closed(self, x: Value, stream: PartitionStream) -> tuple[Value, list[Event]]:
        return self._joined(x, {key: self.sub._closed(x1, part) for key, x1, part in self._each(x, stream)})

    def _joined(self, x: Value, ended: dict[Event, tuple[Value, list[Event]]]) -> tuple[Value, list[Event]]:
        given = [event for key, (_, events) in ended.items() for event in self._keeping(key, events)]
        if self.agg is None:
            return None, given
        finals = {key: value for key, (value, _) in ended.items()}
        value, last = self._value_and_events("agg", self._ask("agg", self.agg, x, finals), self.shared)
        return value, given + last

    # The state: x, and for each key that of its run.

    def _begin(self, x: Value) -> tuple[State, list[Event]]:
        return [x, {}], []

    def _step(self, state: State, event: Event) -> list[Event]:
        x, runs = state
        key = self._key_of(event)
        run = runs.get(key)
        if run is not None:
            return self._keeping(key, self.subs[0]._step(run, event))
        run, opening = self.sub._begin(self._ask("init", self.init, x, key))
        runs[key] = run
        return self._keeping(key, opening + self.sub._step(run, event))

    def _end(self, state: State) -> tuple[Value, list[Event]]:
        x, runs = state
        return self._joined(x, {key: self.sub._end(run) for key, run in runs.items()})


# -- do the types fit? -----------------------------------------------------------------------------------------------


def _require_transformers(given: tuple[object, ...], where: str) -> None:
    for one in given:
        if not isinstance(one, Transformer):
            raise SchemaError(where, needed="transformers", came=short(one), hint="Relational.incremental(...)")
    names = [cast(Transformer, one).name for one in given]
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(where, needed="a name for each part", came=f"{name!r} twice", hint="rename one of them")


def _require_sub_takes(sub: Transformer, takes: Sync, where: str) -> None:
    if reason := sub.takes.why_not_relaxes(takes.between):
        raise SchemaError(
            where,
            needed=f"a sub that takes {takes.between!r}",
            came=f"{sub.name}, which takes {sub.takes!r}: {reason}",
            hint=f"sub= a transformer of {takes.between!r}",
            rule=SUB_FITS,
        )


def _require_sub_gives(sub: Transformer, gives: Schema, where: str) -> None:
    if not isinstance(gives, Schema):
        raise SchemaError(where, needed="gives=Sync(...) or another schema", came=short(gives), hint="Seq(kind)")
    markers, between = (gives.markers, gives.between) if isinstance(gives, Sync) else (frozenset[Kind](), gives)
    if from_below := sorted(kind.name for kind in markers & sub.gives.kinds):
        raise SchemaError(
            where,
            needed=f"{from_below[0]}, a marker of {gives!r}, from update or fin only",
            came=f"{sub.name}, which gives {sub.gives!r}",
            hint=f"another kind for what {sub.name} gives; or gives=Sync((), S) with an S that orders {from_below[0]}",
            rule=MARKERS_FROM_ABOVE,
        )
    if reason := between.why_not_relaxes(sub.gives):
        raise SchemaError(
            where,
            needed=f"a sub that gives at most {between!r}",
            came=f"{sub.name}, which gives {sub.gives!r}; for that, {between!r} is no type: {reason}",
            hint="a weaker gives=, with every kind that sub gives",
            rule=SUB_FITS,
        )


def _without(schema: Schema, kinds: frozenset[Kind]) -> Schema:
    """The schema of what is left of a stream when events of these kinds are taken out.

    >>> A, B = Kind("A", k=int), Kind("B", k=int)
    >>> _without(Sync(A, PartitionBy("k", Bag(B))), frozenset({A}))
    PartitionBy('k', Bag(B))
    """
    if not schema.kinds & kinds:
        return schema
    match schema:
        case Sync():
            markers, between = schema.markers - kinds, _without(schema.between, kinds)
            return Sync(markers, between) if markers else between
        case PartitionBy():
            each = _without(schema.each, kinds)
            return PartitionBy(schema.fields, each) if each.kinds else each
        case Par():
            return _side_by_side(*(_without(part, kinds) for part in schema.parts))
    return Bag(schema.kinds - kinds)


def _side_by_side(*schemas: Schema) -> Schema:
    """Par of those that have a kind at all."""
    parts = [schema for schema in schemas if schema.kinds]
    return parts[0] if len(parts) == 1 else Par(*parts) if parts else Bag()


# -- what functions do that are not given ----------------------------------------------------------------------------
# By name and not as lambdas, so that a transformer pickles if the functions that are given do.


def _same(value: Value) -> Value:
    return value


def _value_alone(value: Value) -> Given:
    return value, []


def _state_alone(state: Value, marker: Event) -> Given:
    return state, []


def _take_over(state: Value, final: Value) -> Value:
    return final


def _first_of_two(x: Value, key: Event) -> Value:
    return x


def _together(*finals: Value) -> Value:
    return finals
