from __future__ import annotations

import itertools

from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import Drawn, dependences, drawn, kinds, lawful, schemas, universe
from twins import schema_depends

from streamtight.stream.dependence import Frontier


@given(drawn())
@lawful
def test_a_dependence_means_what_its_parts_mean(given: Drawn):
    """The algebra: `a | b` is or, `a & b` is and, and each form relates what its docstring says."""
    for a, b in itertools.product(universe(given.kinds), repeat=2):
        assert given.upto.depends(a, b) == given.meaning(a, b)
        assert given.upto.independent(a, b) != given.meaning(a, b)


@given(st.data())
@lawful
def test_a_schema_is_the_dependence_of_its_definition(data: st.DataObject):
    """Definition 2.13, on all pairs of events over small domains."""
    of = data.draw(kinds())
    schema = data.draw(schemas(of))

    for a, b in itertools.product(universe(of), repeat=2):
        assert schema.depends(a, b) == schema_depends(schema, a, b)


@given(drawn())
@lawful
def test_every_dependence_is_symmetric(given: Drawn):
    """Section 2.1: a dependence is a symmetric relation."""
    for a, b in itertools.combinations(given.events, 2):
        assert given.upto.depends(a, b) == given.upto.depends(b, a)
    given.upto.validate(given.events)


@given(drawn())
@lawful
def test_a_dependence_explains_exactly_the_pairs_that_it_relates(given: Drawn):
    """`explain` names a clause if and only if `depends` is true."""
    clauses = {clause.text for clause in given.upto.clauses}

    for a, b in itertools.product(set(given.events), repeat=2):
        assert (given.upto.explain(a, b) in clauses) == given.meaning(a, b)
        assert (given.upto.explain(a, b) is None) != given.meaning(a, b)


@given(drawn())
@lawful
def test_events_with_different_partition_keys_are_neither_dependent_nor_equal(given: Drawn):
    """The contract of `partition_key`: a stream may be split by it."""
    key = given.upto.partition_key()
    assume(key is not None)

    assert all(key(event) == key(event.replace()) for event in given.events)
    for a, b in itertools.combinations(universe(given.kinds), 2):
        if key(a) != key(b):
            assert a != b
            assert not given.meaning(a, b)


@given(drawn(most=10), st.lists(st.floats(0.125, 4.0), min_size=10, max_size=10))
@lawful
def test_the_index_finds_what_a_scan_of_all_earlier_events_finds(given: Drawn, steps: list[float]):
    """`Frontier.highest_below`, with heights that rise along dependences as a trace's do."""
    frontier = Frontier(given.upto)
    earlier = []
    for event, step in zip(given.events, steps, strict=False):
        scanned = max((height for other, height in earlier if given.meaning(other, event)), default=0.0)

        assert frontier.highest_below(event) == scanned

        frontier.add(event, scanned + step)
        earlier.append((event, scanned + step))


@given(drawn(), st.data())
@lawful
def test_equal_dependences_relate_the_same_events(given: Drawn, data: st.DataObject):
    """`==` on dependences is sound, agrees with hash, and knows that `|` is idempotent."""
    other = data.draw(dependences(given.kinds))
    again = given.upto | given.upto

    assert again == given.upto
    assert hash(again) == hash(given.upto)
    if given.upto == other.dependence:
        assert hash(given.upto) == hash(other.dependence)
        assert all(given.meaning(a, b) == other.meaning(a, b) for a, b in itertools.product(given.events, repeat=2))
