from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import Typed, events, kinds, lawful, lawful_slow, relaxations, schemas, typed, universe
from twins import Edges, four_in_a_row, reachable, representable, schema_depends, subsets

from streamtight.errors import SchemaError
from streamtight.stream.event import Event, Kind
from streamtight.stream.schema import Schema, schema_of
from streamtight.stream.trace import Trace


def orders_no_more(one: Schema, other: Schema) -> bool:
    """Definition 2.20 on all pairs of different tuples; identical ones do not count (misprints, reading 2)."""
    if not one.kinds >= other.kinds:
        return False
    pairs = itertools.combinations(universe(other.kinds), 2)
    return all(schema_depends(other, a, b) for a, b in pairs if schema_depends(one, a, b))


@st.composite
def schema_pairs(draw: st.DrawFn, *, same_kinds: bool = False) -> tuple[Schema, Schema]:
    of = draw(kinds(most=3))
    others = of if same_kinds else tuple(kind for kind in of if draw(st.integers(0, 3)))
    return draw(schemas(of, depth=2)), draw(schemas(others, depth=2))


# -- Prop 2.15 -------------------------------------------------------------------------------------------------------


@given(kinds(most=4).flatmap(schemas))
@lawful
def test_the_relation_of_a_schema_on_kinds_is_symmetric_and_has_no_path_or_cycle_of_four(schema: Schema):
    """Prop 2.15 (with the names P4 and C4 the right way round: misprints, item 1)."""
    order = schema.order()

    assert all((b, a) in order and order[b, a] == keys for (a, b), keys in order.items())
    assert four_in_a_row(schema.kinds, lambda a, b: (a, b) in order) is None


@given(kinds(most=4).flatmap(schemas))
@lawful
def test_the_relation_on_tuples_has_no_path_or_cycle_of_four(schema: Schema):
    """Prop 2.15 as it is printed: on tuples, four at a time."""
    tuples = universe(schema.kinds)[:7]

    assert four_in_a_row(tuples, schema.depends) is None


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4])
def test_a_relation_on_kinds_has_a_schema_exactly_if_some_schema_has_it(size: int):
    """Prop 2.15, both directions, for every relation (with loops) on up to four kinds."""
    of = [Kind(name, n=int) for name in "ABCD"[:size]]
    pairs = [frozenset(pair) for pair in itertools.combinations_with_replacement(of, 2)]
    having = representable(frozenset(of))

    found = {edges: _schema_or_none(of, edges) for edges in subsets(pairs)}

    assert {edges for edges, schema in found.items() if schema is not None} == having
    for edges, schema in found.items():
        if schema is not None:
            assert schema.kinds == frozenset(of)
            assert {frozenset(pair) for pair in schema.order()} == edges
            assert not any(schema.order().values())


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_a_relation_with_all_loops_has_a_schema_exactly_if_it_has_no_path_or_cycle_of_four(size: int):
    """Prop 2.15, "characterizes exactly": for reflexive relations, as the paper has it (misprints, item 1)."""
    of = [Kind(name, n=int) for name in "ABCD"[:size]]
    loops = frozenset(frozenset({kind}) for kind in of)
    for edges in subsets([frozenset(pair) for pair in itertools.combinations(of, 2)]):
        schema = _schema_or_none(of, edges | loops)
        related = lambda a, b, edges=edges: frozenset({a, b}) in edges  # noqa: E731

        assert (schema is not None) == (four_in_a_row(of, related) is None)


def test_a_refusal_shows_a_path_or_cycle_of_four_exactly_if_there_is_one():
    """Prop 2.15: the four kinds that are named are a path or a cycle indeed, for every relation on four kinds."""
    of = [Kind(name, n=int) for name in "ABCD"]
    pairs = [frozenset(pair) for pair in itertools.combinations_with_replacement(of, 2)]
    for edges in subsets(pairs):
        related = lambda a, b, edges=edges: frozenset({a, b}) in edges  # noqa: E731
        four = four_in_a_row(of, related)
        if four is None and _schema_or_none(of, edges) is not None:
            continue

        with pytest.raises(SchemaError) as caught:
            schema_of(of, related)

        shape = "no four"
        if four is not None:
            shape = "the cycle C4" if related(four[0], four[3]) else "the path P4"
        assert caught.value.came.startswith(shape) == (four is not None)
        assert ("C4" in caught.value.came or "P4" in caught.value.came) == (four is not None)


def _schema_or_none(of: list[Kind], edges: Edges) -> Schema | None:
    try:
        return schema_of(of, lambda a, b: frozenset({a, b}) in edges)
    except SchemaError:
        return None


@given(kinds(most=4).flatmap(schemas))
@lawful
def test_the_order_of_a_schema_says_which_different_events_are_dependent(schema: Schema):
    """`order` is Definition 2.13 on kinds: two different events are dependent if they agree on the keys given there."""
    order = schema.order()
    for a, b in itertools.combinations(universe(schema.kinds), 2):
        keys = order.get((a.kind, b.kind))
        agree = keys is not None and all(_same_value(a, b, key) for key in keys)

        assert schema_depends(schema, a, b) == agree


def _same_value(a: Event, b: Event, field: str) -> bool:
    one, other = getattr(a, field), getattr(b, field)
    return one is other or one == other


# -- Prop 2.16, Definition 2.20, Props 2.22 and 2.23 -----------------------------------------------------------------


@given(schema_pairs())
@lawful
def test_a_schema_relaxes_another_exactly_if_it_orders_no_pair_of_different_events_more(pair: tuple[Schema, Schema]):
    """Definition 2.20 and Prop 2.23, against all pairs of tuples over small domains."""
    one, other = pair

    assert one.relaxes(other) == orders_no_more(one, other)
    assert (one.why_not_relaxes(other) is None) == one.relaxes(other)
    assert other.relaxes(one) == orders_no_more(other, one)


@given(st.data())
@lawful
def test_letting_markers_loose_or_splitting_them_relaxes_a_schema(data: st.DataObject):
    """Definition 2.20, on pairs that are relaxations by construction."""
    schema = data.draw(kinds().flatmap(schemas))
    relaxed = data.draw(relaxations(schema))

    assert relaxed.relaxes(schema)
    assert schema.relaxes(relaxed) == orders_no_more(schema, relaxed)


@given(schema_pairs(same_kinds=True))
@lawful
def test_schemas_are_order_equivalent_exactly_if_they_make_the_same_sequences_equal(pair: tuple[Schema, Schema]):
    """Prop 2.16: for D1 = D2 it is enough to look at all sequences of two tuples."""
    one, other = pair
    alike = all(
        (Trace([a, b], one) == Trace([b, a], one)) == (Trace([a, b], other) == Trace([b, a], other))
        for a, b in itertools.combinations(universe(one.kinds), 2)
    )

    assert one.order_equivalent(other) == alike


@given(schema_pairs(same_kinds=True), st.data())
@lawful_slow
def test_order_equivalent_schemas_have_the_same_traces(pair: tuple[Schema, Schema], data: st.DataObject):
    """Prop 2.16, forwards: longer sequences, too, are equal for both or for neither."""
    one, other = pair
    listed = data.draw(events(tuple(sorted(one.kinds, key=lambda kind: kind.name)), most=5)) if one.kinds else []
    classes = [reachable(listed, lambda a, b, s=schema: schema_depends(s, a, b)) for schema in pair]

    if one.order_equivalent(other):
        assert classes[0] == classes[1]
    if one.relaxes(other):
        assert classes[0] >= classes[1]


@given(st.data())
@lawful
def test_relaxation_is_reflexive_and_transitive(data: st.DataObject):
    """Definition 2.20: relaxation is a preorder."""
    schema = data.draw(kinds().flatmap(schemas))
    weaker = data.draw(relaxations(schema))
    weakest = data.draw(relaxations(weaker))

    assert schema.relaxes(schema)
    assert weakest.relaxes(schema)


@given(typed(most=4), st.data())
@lawful
def test_a_stream_has_one_relaxed_stream_with_all_its_flattenings(given: Typed, data: st.DataObject):
    """Prop 2.22."""
    stream = given.schema.parse(given.streams[0])
    weaker = data.draw(relaxations(given.schema))

    relaxed = stream.relax(weaker)

    assert relaxed.schema == weaker
    assert set(stream.flattenings()) <= set(relaxed.flattenings())
    assert all(weaker.parse(word) == relaxed for word in stream.flattenings())
