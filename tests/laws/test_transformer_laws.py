"""The laws of section 2.4, on generated transformers: every construct below every other, with functions that mix all
they see.

The second way to the same answers is `meaning`: the definitions once more, on plain dicts, lists and tuples.
"""

from __future__ import annotations

import pickle
import random
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import TYPES, VALUES, kinds, lawful, pools, relaxations, schemas, typed
from twins import structure

from streamtight.program.transformer import Transformer
from streamtight.program.transformer_forms import (
    Hierarchical,
    Incremental,
    Parallel,
    Partitioned,
    Relational,
    _without,
)
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Sync
from streamtight.stream.trace import Trace

lawful_transformers = settings(lawful, max_examples=40)

# -- generated transformers ------------------------------------------------------------------------------------------
# A value is a number, and the keys in whose scope it is, so that every function can give events with these keys.

Number = tuple[int, tuple[tuple[str, Any], ...]]
SHARED = (Kind("Common", v=int), Kind("Also", v=int))


def mix(*given: object) -> int:
    """A number that differs, mostly, if anything differs."""
    return zlib.crc32(repr(given).encode()) % 11


def bag_of(items: Sequence[object]) -> list[str]:
    return sorted(map(repr, items))


def make(kind: Kind, value: Number, number: int) -> Event:
    """An event of an output kind, with the keys of the value; those that it has not got are free."""
    scope = dict(value[1])
    fields = {name: scope.get(name, VALUES[name][number % 2]) for name in kind.names if name != "v"}
    return kind(**fields, v=number)


class Emitter:
    """Gives up to two events of some kinds, depending on all that it is told."""

    def __init__(self, kinds: Sequence[Kind], seed: int) -> None:
        self.kinds = sorted(kinds, key=lambda kind: kind.name)
        self.seed = seed

    def __call__(self, value: Number, *seen: object) -> list[Event]:
        number = mix(self.seed, value, *seen)
        if not self.kinds:
            return []
        return [make(self.kinds[(number + i) % len(self.kinds)], value, mix(number, i)) for i in range(number % 3)]


@st.composite
def transformers(draw: st.DrawFn, schema: Schema, scope: tuple[str, ...] = (), name: str = "p") -> Transformer:
    """Transformers that take exactly this schema."""
    match schema:
        case Bag():
            built = draw(_relational(schema, scope, name))
        case Sync():
            built = draw(_hierarchical(schema, scope, name))
        case PartitionBy():
            built = draw(_partitioned(schema, scope, name))
        case _:
            built = draw(_parallel(schema, scope, name))
    if draw(st.booleans()):
        return built.giving(draw(relaxations(built.gives, used=frozenset(scope))))
    return built


def _fresh(name: str, scope: tuple[str, ...]) -> Kind:
    return Kind(f"Out_{name}", **{field: TYPES[field] for field in scope}, v=int)


_shared = st.lists(st.sampled_from(SHARED), unique=True)
_seeds = st.integers(0, 1000)


@st.composite
def _relational(draw: st.DrawFn, schema: Bag, scope: tuple[str, ...], name: str) -> Transformer:
    gives = Bag(_fresh(name, scope), *draw(_shared))
    emit = Emitter(list(gives.kinds), draw(_seeds))
    if draw(st.booleans()):
        return Relational.incremental(
            name,
            takes=schema,
            gives=gives,
            init=lambda x: (mix("init", x), x[1]),
            on_item=lambda x, item: emit(x, item),
            add=lambda total, item: ((total[0] + mix(item)) % 97, total[1]),
            fin=lambda total: ((mix(total), total[1]), emit(total, "fin")),
        )

    def open_bag(x: Number, items: tuple[Event, ...]) -> list[Event]:
        many = 2 * emit(x, "many") if len(items) >= 2 else []  # the same events twice
        return emit(x, "opening") + many + [event for item in items for event in emit(x, item)]

    return Relational(
        name,
        takes=schema,
        gives=gives,
        open=open_bag,
        closed=lambda x, items: (
            (mix(x, bag_of(items)), x[1]),
            emit(x, bag_of(items)) + open_bag(x, items[::-1]),
        ),
    )


@st.composite
def _hierarchical(draw: st.DrawFn, schema: Sync, scope: tuple[str, ...], name: str) -> Transformer:
    sub = draw(transformers(schema.between, scope, f"{name}s"))
    free = [kind for kind in draw(_shared) if kind not in sub.gives.kinds]
    between = Par(sub.gives, Bag(_fresh(f"{name}b", scope))) if draw(st.booleans()) else sub.gives
    gives: Schema = Sync([_fresh(name, scope), *free], between)
    if draw(st.sampled_from([False, False, True])):
        gives = between  # no Sync, or one whose markers the sub gives: read as Sync((), between)
        gives = Sync((), gives) if isinstance(gives, Sync) else gives
    emit = Emitter(list(gives.kinds), draw(_seeds))
    return Hierarchical(
        name,
        takes=schema,
        gives=gives,
        sub=sub,
        update=lambda y, marker: ((mix("update", y, marker), y[1]), emit(y, marker)),
        call=lambda y: (mix("call", y), y[1]),
        returned=lambda y, final: (mix("returned", y, final), y[1]),
        init=lambda x: (mix("init", x), x[1]),
        fin=lambda y: ((mix("fin", y), y[1]), emit(y, "fin")),
    )


@st.composite
def _partitioned(draw: st.DrawFn, schema: PartitionBy, scope: tuple[str, ...], name: str) -> Transformer:
    sub = draw(transformers(schema.each, scope + schema.fields, f"{name}e"))
    without_key = {kind for kind in sub.gives.kinds if not set(schema.fields) <= set(kind.names)}
    loose = {kind for kind in sub.gives.kinds if draw(st.sampled_from([False, False, True]))}
    shared = sorted(without_key | loose | set(draw(_shared)), key=lambda kind: kind.name)
    emit = Emitter(shared, draw(_seeds))

    def agg(x: Number, finals: dict[Event, Number]) -> tuple[Number, list[Event]]:
        return (mix(x, bag_of(list(finals.items()))), x[1]), emit(x, bag_of(list(finals.items())))

    return Partitioned(
        name,
        schema.fields,
        sub,
        shared=shared,
        init=lambda x, key: (mix(x, key), x[1] + tuple(key.as_dict().items())),
        agg=agg,
    )


@st.composite
def _parallel(draw: st.DrawFn, schema: Par, scope: tuple[str, ...], name: str) -> Transformer:
    parts = [draw(transformers(part, scope, f"{name}{place}")) for place, part in enumerate(schema.parts)]
    count = Counter(kind for part in parts for kind in part.gives.kinds)
    loose = {kind for kind in count if draw(st.sampled_from([False, False, True]))}
    shared = sorted({kind for kind in count if count[kind] > 1} | loose, key=lambda kind: kind.name)
    return Parallel(
        name,
        *parts,
        shared=shared,
        init=lambda x: tuple((mix(x, place), x[1]) for place in range(len(parts))),
        fin=lambda *finals: (mix(finals), finals[0][1] if finals else ()),
    )


class Case(NamedTuple):
    """A transformer, an initial value, and inputs, flat."""

    transformer: Transformer
    x: Number
    inputs: list[list[Event]]


@st.composite
def cases(draw: st.DrawFn, *, inputs: int = 1, most: int = 6) -> Case:
    of = draw(kinds())
    schema = draw(schemas(of))
    pool = draw(pools(of))
    sizes = st.sampled_from([size for size in (3, 4, 5, 6, 2, 1, 0) if size <= most])
    lists = sizes.flatmap(lambda size: st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    return Case(draw(transformers(schema)), (draw(st.integers(0, 3)), ()), [draw(lists) for _ in range(inputs)])


# -- the second way --------------------------------------------------------------------------------------------------


class Meaning(NamedTuple):
    """Both semantics, the streams as plain structures of the output schema."""

    opened: Any
    value: Any
    closed: Any


def meaning(p: Transformer, x: Any, tree: Any) -> Meaning:
    """Definitions 2.30 to 2.33, on the structure of an input."""
    bottom = structure(p.gives, [])
    if isinstance(p, Incremental):
        summary, at_once = p.init(x), []
        for item in flat(p.takes, tree):
            summary = p.add(summary, item)
            at_once += p.on_item(x, item)
        value, last = p.fin(summary)
        return Meaning(structure(p.gives, at_once), value, structure(p.gives, at_once + last))
    if isinstance(p, Relational):
        items = tuple(flat(p.takes, tree))
        value, events = p.closed_bag(x, items)
        return Meaning(structure(p.gives, p.open_bag(x, items)), value, structure(p.gives, events))
    if isinstance(p, Parallel):
        parts = [meaning(sub, value, part) for sub, value, part in zip(p.subs, p.init(x), tree, strict=True)]
        opened, closed = bottom, bottom
        for sub, part in zip(p.subs, parts, strict=True):
            opened = concatenated(p.gives, opened, relaxed(sub.gives, part.opened, p.gives))
            closed = concatenated(p.gives, closed, relaxed(sub.gives, part.closed, p.gives))
        return Meaning(opened, p.fin(*(part.value for part in parts)), closed)
    if isinstance(p, Hierarchical):
        chunks, markers = tree
        y, before = p.init(x), bottom
        for chunk, marker in zip(chunks, markers, strict=False):
            inside = meaning(p.sub, p.call(y), chunk)
            y, events = p.update(p.returned(y, inside.value), marker)
            before = concatenated(p.gives, before, relaxed(p.sub.gives, inside.closed, p.gives))
            before = concatenated(p.gives, before, structure(p.gives, events))
        inside = meaning(p.sub, p.call(y), chunks[-1])
        value, events = p.fin(p.returned(y, inside.value))
        closed = concatenated(p.gives, before, relaxed(p.sub.gives, inside.closed, p.gives))
        return Meaning(
            concatenated(p.gives, before, relaxed(p.sub.gives, inside.opened, p.gives)),
            value,
            concatenated(p.gives, closed, structure(p.gives, events)),
        )
    assert isinstance(p, Partitioned)
    opened, closed, finals = bottom, bottom, {}
    for values, part in tree.items():
        key = p.key(*values)
        inside = meaning(p.sub, p.init(x, key), part)
        finals[key] = inside.value
        opened = concatenated(p.gives, opened, relaxed(p.sub.gives, inside.opened, p.gives))
        closed = concatenated(p.gives, closed, relaxed(p.sub.gives, inside.closed, p.gives))
    value, events = p.agg(x, finals)
    return Meaning(opened, value, concatenated(p.gives, closed, structure(p.gives, events)))


def flat(schema: Schema, tree: Any) -> list[Event]:
    """A flattening (Definition 2.18): the last part and the last key first, so another than the one in use."""
    match schema:
        case Bag():
            return list(Counter(tree).elements())[::-1]
        case Sync():
            chunks, markers = tree
            rest = [e for d, chunk in zip(markers, chunks[1:], strict=True) for e in [d, *flat(schema.between, chunk)]]
            return flat(schema.between, chunks[0]) + rest
        case PartitionBy():
            return [event for part in reversed(tree.values()) for event in flat(schema.each, part)]
        case Par():
            parts = reversed(list(zip(schema.parts, tree, strict=True)))
            return [event for part, inside in parts for event in flat(part, inside)]
    raise AssertionError(schema)


def concatenated(schema: Schema, t: Any, u: Any) -> Any:
    """Definition 2.11."""
    match schema:
        case Bag():
            return dict(Counter(t) + Counter(u))
        case Sync():
            seam = concatenated(schema.between, t[0][-1], u[0][0])
            return [[*t[0][:-1], seam, *u[0][1:]], t[1] + u[1]]
        case PartitionBy():
            both = {key: concatenated(schema.each, part, u[key]) for key, part in t.items() if key in u}
            return {**t, **u, **both}
        case Par():
            return tuple(concatenated(part, a, b) for part, a, b in zip(schema.parts, t, u, strict=True))
    raise AssertionError(schema)


def relaxed(schema: Schema, tree: Any, weaker: Schema) -> Any:
    """Prop 2.22."""
    return structure(weaker, flat(schema, tree))


# -- the laws --------------------------------------------------------------------------------------------------------


@given(cases())
@lawful_transformers
def test_open_and_closed_are_those_of_the_definitions(case: Case):
    """Definitions 2.30 to 2.33."""
    p, events = case.transformer, case.inputs[0]
    expected = meaning(p, case.x, structure(p.takes, events))

    opened = p.open(case.x, p.takes.parse(events))
    value, closed = p.closed(case.x, p.takes.parse(events))

    assert structure(p.gives, opened.flatten()) == expected.opened
    assert structure(p.gives, closed.flatten()) == expected.closed
    assert value == expected.value


@given(cases(inputs=2, most=4))
@lawful_transformers
def test_open_is_monotone(case: Case):
    """Theorem 2.34."""
    p = case.transformer
    first, second = map(p.takes.parse, case.inputs)

    assert p.open(case.x, first) <= p.open(case.x, first + second)


@given(cases())
@lawful_transformers
def test_open_is_a_prefix_of_closed(case: Case):
    """Definition 2.28."""
    p = case.transformer
    stream = p.takes.parse(case.inputs[0])

    assert p.open(case.x, stream) <= p.closed(case.x, stream)[1]


@given(cases())
@lawful_transformers
def test_a_run_gives_after_every_event_what_open_gives_and_at_the_end_what_closed_gives(case: Case):
    """With a run that goes on from pickled state beside it, and one that is closed, at every event."""
    p, events = case.transformer, case.inputs[0]
    running = p.start(case.x)
    given = list(running.opening)
    for place in range(len(events) + 1):
        stream = p.takes.parse(events[:place])
        assert p.gives.parse(given) == p.open(case.x, stream)

        value, last = p.resume(pickle.loads(pickle.dumps(running.state))).close()
        assert (value, p.gives.parse(given + last)) == p.closed(case.x, stream)

        if place < len(events):
            other = p.resume(pickle.loads(pickle.dumps(running.state)))
            more = running.feed(events[place])
            assert Counter(other.feed(events[place])) == Counter(more)
            assert repr(other.state) == repr(running.state)
            given += more


@given(cases(), st.randoms(use_true_random=False))
@lawful_transformers
def test_the_order_of_independent_events_does_not_matter(case: Case, rng: random.Random):
    """Two flattenings of one stream give flattenings of one stream, and the same value."""
    p, events = case.transformer, case.inputs[0]
    ended = []
    for word in (events, Trace(events, p.takes).reordered(rng).events):
        running = p.start(case.x)
        given = running.opening + [new for event in word for new in running.feed(event)]
        value, last = running.close()
        ended.append((p.gives.parse(given), value, p.gives.parse(given + last)))

    assert ended[0] == ended[1]


@given(cases(), st.data())
@lawful_transformers
def test_a_relaxed_output_type_gives_the_relaxed_output(case: Case, data: st.DataObject):
    """Definition 2.29."""
    p = case.transformer
    stream = p.takes.parse(case.inputs[0])
    weaker = data.draw(relaxations(p.gives))
    value, closed = p.closed(case.x, stream)

    q = p.giving(weaker)

    assert q.gives is weaker
    assert q.open(case.x, stream) == p.open(case.x, stream).relax(weaker)
    assert q.closed(case.x, stream) == (value, closed.relax(weaker))


@given(cases(), st.data())
@lawful_transformers
def test_a_stronger_input_is_relaxed_first(case: Case, data: st.DataObject):
    """Prop 2.22, for inputs: a stream of a schema that orders more is one of the schema that is taken."""
    events = case.inputs[0]
    weaker = data.draw(relaxations(case.transformer.takes))
    p = data.draw(transformers(weaker))
    strong = case.transformer.takes.parse(events)

    assert p.open(case.x, strong) == p.open(case.x, weaker.parse(events))
    assert p.closed(case.x, strong) == p.closed(case.x, weaker.parse(events))


@given(cases())
@lawful_transformers
def test_what_parts_give_is_relaxed_and_what_they_share_is_in_no_order(case: Case):
    """Definitions 2.31 to 2.33: the output types."""
    pairs = [(case.transformer, sub) for sub in case.transformer.subs]
    while pairs:
        p, sub = pairs.pop()
        pairs += [(sub, below) for below in sub.subs]
        assert sub.path == f"{p.path} > {sub.name}"
        if isinstance(p, Partitioned):
            within = PartitionBy(p.key.names, _without(sub.gives, p.shared))
            assert p.gives.relaxes(Par(within, Bag(p.shared)))
        else:
            assert p.gives.relaxes(sub.gives)


@given(typed(most=5), st.data())
@lawful
def test_taking_kinds_out_of_a_schema_keeps_the_order_of_the_others(given: Any, data: st.DataObject):
    schema: Schema = given.schema
    out = frozenset(data.draw(st.sets(st.sampled_from(sorted(schema.kinds, key=lambda kind: kind.name)))))

    rest = _without(schema, out)

    assert rest.kinds == schema.kinds - out
    assert rest.order() == {pair: keys for pair, keys in schema.order().items() if not out & set(pair)}
