from __future__ import annotations

import itertools
import random

from hypothesis import given
from hypothesis import strategies as st
from strategies import Typed, lawful, lawful_slow, typed
from twins import flattenings, is_prefix, reachable, schema_depends, structure

from streamtight.stream.trace import Trace


@given(typed(streams=3, most=4))
@lawful
def test_the_empty_stream_is_neutral(given: Typed):
    """Prop 2.12 (1)."""
    stream = given.schema.parse(given.streams[0])
    empty = given.schema.parse([])

    assert stream + empty == stream
    assert empty + stream == stream
    assert len(empty) == 0


@given(typed(streams=3, most=4))
@lawful
def test_concatenation_is_associative(given: Typed):
    """Prop 2.12 (2)."""
    one, two, three = map(given.schema.parse, given.streams)

    assert (one + two) + three == one + (two + three)


@given(typed(streams=1))
@lawful
def test_a_stream_is_a_prefix_of_itself(given: Typed):
    """Prop 2.12 (3)."""
    stream = given.schema.parse(given.streams[0])

    assert stream <= stream
    assert stream.after(stream) == given.schema.parse([])


@given(typed(streams=2, most=3), st.randoms(use_true_random=False))
@lawful
def test_streams_that_are_prefixes_of_each_other_are_equal(given: Typed, rng: random.Random):
    """Prop 2.12 (4), also on shuffles of the same events, which are often equal."""
    shuffled = rng.sample(given.streams[0], len(given.streams[0]))
    for other in (given.streams[1], shuffled):
        one, two = given.schema.parse(given.streams[0]), given.schema.parse(other)

        assert (one <= two and two <= one) == (one == two)


@given(typed(streams=3, most=3))
@lawful
def test_a_prefix_of_a_prefix_is_a_prefix(given: Typed):
    """Prop 2.12 (5), with what comes after it."""
    one, two, three = map(given.schema.parse, given.streams)

    assert one <= one + two
    assert one + two <= one + two + three
    assert one <= one + two + three
    assert (one + two + three).after(one) == two + three


@given(typed(streams=3, most=2))
@lawful
def test_being_a_prefix_is_transitive(given: Typed):
    """Prop 2.12 (5), on streams that have nothing to do with each other."""
    for one, two, three in itertools.permutations(map(given.schema.parse, given.streams)):
        if one <= two and two <= three:
            assert one <= three


@given(typed(streams=2, most=4))
@lawful
def test_concatenation_of_streams_is_concatenation_of_sequences(given: Typed):
    """Definition 2.11: parsing turns concatenation into concatenation."""
    first, second = given.streams

    joined = given.schema.parse(first) + given.schema.parse(second)

    assert joined == given.schema.parse(first + second)
    assert len(joined) == len(first) + len(second)
    assert structure(given.schema, joined.flatten()) == structure(given.schema, first + second)


@given(typed(streams=2, most=4))
@lawful
def test_what_comes_after_a_prefix_completes_it(given: Typed):
    """Definition 2.11: t is a prefix of u if and only if there is a t' with t o t' = u, and `after` gives it."""
    one, two = map(given.schema.parse, given.streams)
    rest = two.after(one)

    assert (rest is not None) == (one <= two)
    if rest is not None:
        assert one + rest == two


@given(typed(streams=2, most=4), st.randoms(use_true_random=False))
@lawful
def test_streams_are_equal_exactly_if_their_structures_are(given: Typed, rng: random.Random):
    """Definition 2.9, with the structure in plain dicts and lists as the twin."""
    first = given.streams[0]
    for other in (given.streams[1], rng.sample(first, len(first))):
        equal = given.schema.parse(first) == given.schema.parse(other)

        assert equal == (structure(given.schema, first) == structure(given.schema, other))


@given(typed(most=5))
@lawful
def test_every_sequence_is_a_flattening_of_exactly_one_stream(given: Typed):
    """Prop 2.19 (1): of what it is parsed into, and whatever has it as a flattening is equal to that."""
    sequence = tuple(given.streams[0])
    stream = given.schema.parse(sequence)

    assert sequence in set(stream.flattenings())
    assert given.schema.parse(stream.flatten()) == stream
    for word in itertools.islice(itertools.permutations(sequence), 60):
        other = given.schema.parse(word)
        assert (sequence in set(other.flattenings())) == (other == stream)


@given(typed(most=5))
@lawful
def test_the_flattenings_are_those_of_the_definition_each_once(given: Typed):
    """Definition 2.18."""
    listed = list(given.schema.parse(given.streams[0]).flattenings())

    assert len(listed) == len(set(listed))
    assert set(listed) == flattenings(given.schema, given.streams[0])


@given(typed(most=6))
@lawful_slow
def test_equivalent_sequences_are_flattenings_of_the_same_stream(given: Typed):
    """Prop 2.19 (2a) and (2b): the flattenings of a stream are one class of equivalent sequences."""
    sequence = given.streams[0]
    words = reachable(sequence, lambda a, b: schema_depends(given.schema, a, b))
    stream = given.schema.parse(sequence)

    assert all(given.schema.parse(word) == stream for word in words)
    assert set(stream.flattenings()) == words == set(Trace(sequence, given.schema).reorderings())
    assert tuple(stream.flatten()) in words


@given(typed(streams=2, most=4), st.randoms(use_true_random=False))
@lawful
def test_prefixes_of_streams_are_prefixes_of_traces(given: Typed, rng: random.Random):
    """Definition 2.11 and Section 2.1: the two prefix orders agree."""
    whole, schema = given.streams[0], given.schema
    for part in (given.streams[1], rng.sample(whole, rng.randint(0, len(whole)))):
        as_streams = schema.parse(part) <= schema.parse(whole)

        assert as_streams == (Trace(part, schema) <= Trace(whole, schema))
        assert as_streams == is_prefix(part, whole, lambda a, b: schema_depends(schema, a, b))
