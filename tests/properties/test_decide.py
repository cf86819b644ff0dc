"""Decisions on data transducers: equivalent, output-synchronised, restartable; and machines made restartable."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from streamtight.errors import QueryError
from streamtight.properties import decide
from streamtight.properties.decide import (
    Interference,
    Start,
    difference,
    made_restartable,
    not_restartable,
    unsynchronised,
)
from streamtight.properties.query import any_, atom, combine, cur, eps, first, iter_, or_, split
from streamtight.properties.query_machine import pass_machine, value_machine
from streamtight.properties.term import Constant, Slot
from streamtight.properties.transducer import (
    Rule,
    Status,
    Transducer,
    When,
    concatenate,
    copy_rule,
    data_function,
    iterate,
    new,
    old,
    parallel,
    prefix_sum,
    run,
    union,
)
from streamtight.properties.transducer_picture import picture

TAGS = ("a", "b")
X, Y = Slot(0), Slot(1)
NONE, ONE, MANY = Status


def machine(*rules: Rule, states: str = "if", inputs: tuple[int, ...] = (0,), outputs: tuple[int, ...] = (1,)):
    return Transducer(TAGS, tuple(states), rules, inputs, outputs)


def words(*texts: str) -> Transducer:
    """A conflict on these words: as the machines of automata in the hardness proofs."""
    found = None
    for text in texts:
        query = eps(0)
        for tag in text:
            query = split(query, atom(tag, 0), first)
        made = pass_machine(query, TAGS)
        found = made if found is None else union(found, made)
    return concatenate(found, data_function(TAGS, 1, [X, X]))


# -- equivalence -----------------------------------------------------------------------------------------------------


def test_machines_with_different_values_are_equivalent_if_they_have_them_at_the_same_times():
    one = value_machine(iter_(atom("a", cur), 0, first), TAGS)
    other = value_machine(iter_(atom("a", 7), 1, max), TAGS)

    assert difference(one, other) is None


def test_the_shortest_word_shows_a_difference():
    one = value_machine(iter_(split(atom("a", 0), atom("b", 0), first), 0, first), TAGS)
    found = difference(one, value_machine(or_(eps(0), split(atom("a", 0), atom("b", 0), first)), TAGS))

    assert found.word == ("a", "b", "a", "b")
    assert (found.one, found.other) == ((ONE,), (NONE,))
    assert str(found) == "started with a value, on a b a b: the one answers a value, the other undefined"


def test_one_value_and_a_conflict_are_different():
    once = value_machine(atom("a", cur), TAGS)

    assert difference(once, union(once, once)).word == ("a",)


def test_a_difference_that_only_a_conflict_at_the_start_shows_is_found():
    gated = machine(copy_rule(0, 1))
    first_of_two = Transducer(TAGS, ("i", "j", "o"), (Rule(When.ALWAYS, (new(0), new(1)), 2, X),), (0, 1), (2,))
    second_only = Transducer(TAGS, ("i", "j", "o"), (copy_rule(1, 2),), (0, 1), (2,))

    assert difference(gated, gated) is None
    assert difference(first_of_two, second_only).start in {(NONE, ONE), (MANY, ONE), (NONE, MANY)}


def test_machines_with_cycles_can_be_compared():
    always_many = concatenate(data_function(TAGS, 1, [X, X]), iterate(value_machine(atom("a", 0), TAGS)))
    cyclic = iterate(union(data_function(TAGS, 1, X), value_machine(atom("a", 0), TAGS)))

    assert not cyclic.is_acyclic
    assert difference(cyclic, always_many) is None


def test_machines_of_different_kinds_cannot_be_compared():
    one = value_machine(eps(0), TAGS)

    with pytest.raises(QueryError, match="same inputs"):
        difference(one, data_function(TAGS, 2, X))
    with pytest.raises(QueryError, match="same outputs"):
        difference(one, data_function(TAGS, 1, X, X))
    with pytest.raises(QueryError, match="same tags"):
        difference(one, value_machine(eps(0), ("a",)))


def test_a_search_that_is_too_long_is_refused_and_not_guessed(monkeypatch):
    monkeypatch.setattr(decide, "MOST_WAYS", 3)
    long = value_machine(split(atom("a", 0), split(atom("a", 0), atom("a", 0), first), first), TAGS)

    for ask in (lambda: difference(long, long), lambda: not_restartable(long), lambda: made_restartable(long)):
        with pytest.raises(QueryError, match="at most 3 ways"):
            ask()


# -- output-synchronised ---------------------------------------------------------------------------------------------


def test_a_machine_with_one_output_is_synchronised():
    assert unsynchronised(value_machine(atom("a", cur), TAGS)) is None


def test_machines_side_by_side_are_synchronised_if_they_answer_on_the_same_words():
    both = split(atom("a", 0), atom("b", 0), first)
    one, other = value_machine(both, TAGS), pass_machine(both, TAGS)

    assert unsynchronised(parallel(one, other)) is None
    found = unsynchronised(parallel(one, value_machine(split(atom("a", 0), any_(0), first), TAGS)))
    assert (found.word, found.answers) == (("a", "a"), (NONE, ONE))
    assert str(found) == "started with a value, on a a: it answers (undefined, a value)"


# -- restartable -----------------------------------------------------------------------------------------------------


def test_the_example_of_the_paper_is_restartable():
    assert not_restartable(machine(Rule("a", (old(0),), 1, X + cur))) is None


def test_the_counterexample_of_the_paper_fails_with_one_copy_that_starts_late():
    found = not_restartable(machine(Rule("a", (old(0),), 0, X), Rule("a", (new(0),), 1, X + cur)))

    assert found == Interference((Start(1, (ONE,)),), ("a",), (ONE,), (NONE,))
    assert (
        str(found) == "started with a value after item 1, on a: one machine answers a value, separate copies undefined"
    )


def test_a_machine_that_answers_without_a_start_is_not_restartable():
    found = not_restartable(machine(Rule("b", (), 1, cur)))

    assert found == Interference((), ("b",), (ONE,), (NONE,))
    assert str(found) == "never started, on b: one machine answers a value, separate copies undefined"


def test_copies_that_give_an_operand_each_interfere():
    one = value_machine(atom("a", cur), TAGS)
    other = value_machine(split(atom("b", cur), atom("a", cur), first), TAGS)
    joined = concatenate(parallel(one, other), data_function(TAGS, 2, X + Y))
    found = not_restartable(joined)

    assert found.word == ("b", "a")
    assert [start.after for start in found.starts] == [0, 1]
    assert (found.together, found.apart) == ((ONE,), (NONE,))


def test_the_hardness_proof_is_about_suffixes_and_not_about_prefixes():
    def joined(one: Transducer, other: Transducer) -> Transducer:
        return concatenate(parallel(one, other), data_function(TAGS, 2, X))

    assert not_restartable(joined(words("a"), words("ab"))) is None
    assert not_restartable(joined(words("b"), words("ab"))).word == ("a", "b")


def test_a_prefix_sum_of_a_function_of_its_inputs_is_restartable_and_of_a_source_free_rule_it_is_not():
    total = iterate(value_machine(any_(cur), TAGS))
    free = Transducer(TAGS, ("x0", "x1", "y"), (Rule(When.ALWAYS, (), 2, Constant(1)),), (0, 1), (2,))

    assert not_restartable(prefix_sum(total, data_function(TAGS, 2, X + Y))) is None
    assert not_restartable(prefix_sum(total, data_function(TAGS, 2, Constant(1)))) is None
    assert not_restartable(prefix_sum(total, free)) is not None


def test_a_data_function_is_restartable_and_a_source_free_one_is_not():
    free = machine(Rule(When.ALWAYS, (), 1, Constant(1)))

    assert not_restartable(data_function(TAGS, 2, X + Y, [X, Y])) is None
    assert not_restartable(free).word == ()


@pytest.mark.parametrize(
    "query",
    [
        iter_(or_(atom("a", cur), split(atom("a", 0), atom("b", cur), max)), 0, max),
        iter_(or_(eps(0), atom("a", cur)), 0, max),
        combine(iter_(any_(cur), 0, max), iter_(or_(atom("a", 0), atom("b", cur)), 0, min), lambda x, y: x - y),
    ],
)
def test_machines_of_queries_are_restartable(query):
    assert not_restartable(value_machine(query, TAGS)) is None
    assert not_restartable(pass_machine(query, TAGS)) is None


# -- made restartable ------------------------------------------------------------------------------------------------


def test_the_counterexample_of_the_paper_can_be_made_restartable():
    sums = machine(Rule("a", (old(0),), 0, X), Rule("a", (new(0),), 1, X + cur))
    made = made_restartable(sums)
    word = [("a", 5), ("a", 7), ("b", 0), ("a", 1)]

    assert not_restartable(made) is None
    assert run(made, word, [10]) == run(sums, word, [10])


def test_a_conflict_stays_one_in_a_machine_made_restartable():
    both = union(value_machine(any_(cur), TAGS), value_machine(atom("a", cur), TAGS))
    made = made_restartable(replace(both, rules=(*both.rules, Rule("b", (), both.outputs[0], Constant(1)))))

    assert not_restartable(made) is None
    assert [str(answer) for (answer,) in run(made, [("a", 1)], [0])] == ["UNDEFINED", "CONFLICT"]
    assert [str(answer) for (answer,) in run(made, [("b", 1)], [0])] == ["UNDEFINED", "CONFLICT"]


def test_a_control_state_without_registers_has_a_token():
    late = machine(Rule("a", (), 2, cur), Rule("b", (old(2),), 1, X), states="ifg")
    made = made_restartable(late)
    word = [("b", 1), ("a", 2), ("b", 3), ("b", 4)]

    assert any("token" in state for state in made.states)
    assert not_restartable(made) is None
    assert run(made, word, [0]) == run(late, word, [0])


def test_a_machine_without_inputs_cannot_be_made_restartable():
    with pytest.raises(QueryError, match="a machine with inputs"):
        made_restartable(machine(inputs=()))


# -- pictures --------------------------------------------------------------------------------------------------------


def texts(svg: str) -> list[str]:
    drawn = ElementTree.fromstring(svg)  # noqa: S314 - we made it
    return [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]


def test_a_picture_shows_states_rules_inputs_and_answers():
    drawn = picture(machine(Rule("a", (old(0),), 1, X + cur), Rule(When.ALWAYS, (new(0),), 1, X)))

    assert texts(drawn) == ["i", "input 1", "f", "answer 1", "a: f' = i + cur", "always: f' = i'"]
    assert drawn.count("stroke-dasharray") == 1


def test_names_in_a_picture_are_escaped_and_cut():
    made = Transducer(("<a>",), ("i&\x00", "f" * 50), (Rule("<a>", (old(0),), 1, X),), (0,), (1,))
    drawn = picture(made)

    assert texts(drawn)[0] == "i&\N{REPLACEMENT CHARACTER}"
    assert all(len(text) <= 36 for text in texts(drawn))
    assert "<a>" not in drawn
    assert "f" * 50 in drawn


def test_the_smallest_machine_has_a_picture():
    assert texts(picture(Transducer((), ("i",), (), (), ()))) == ["i"]
    assert texts(picture(Transducer((), (), (), (), ()))) == []
