"""Data transducers: what a step does, and what machines that are made of others answer."""

from __future__ import annotations

import itertools
from dataclasses import replace
from random import Random

import pytest
from query_oracle import calculated, join, lifted, machine_answers

from streamtight.errors import QueryError
from streamtight.properties.support import support, unrolled
from streamtight.properties.term import Constant, Slot, cur
from streamtight.properties.transducer import (
    CONFLICT,
    UNDEFINED,
    Evaluation,
    Rule,
    Status,
    Transducer,
    When,
    concatenate,
    copy_rule,
    data_function,
    iterate,
    joined,
    new,
    old,
    parallel,
    prefix_sum,
    run,
    status_of,
    union,
)

TAGS = ("a", "b")
X, Y = Slot(0), Slot(1)


def machine(*rules: Rule, states: str = "if", inputs: tuple[int, ...] = (0,), outputs: tuple[int, ...] = (1,)):
    return Transducer(TAGS, tuple(states), rules, inputs, outputs)


def one_item(tag: str, term=X) -> Transducer:
    return machine(Rule(tag, (old(0),), 1, term))


def word(text: str) -> list[tuple[str, int]]:
    """`a5 b3` as items."""
    return [(each[0], int(each[1:])) for each in text.split()]


def answers(made: Transducer, text: str, *start) -> list:
    found = run(made, word(text), start or (0,) * len(made.inputs))
    return [each[0] if len(each) == 1 else each for each in found]


# -- values ----------------------------------------------------------------------------------------------------------


def test_two_values_are_a_conflict_also_if_they_are_equal():
    assert joined(3, 3) is CONFLICT
    assert joined(UNDEFINED, 3) == joined(3, UNDEFINED) == 3
    assert joined(UNDEFINED, CONFLICT) is CONFLICT
    assert joined(UNDEFINED, UNDEFINED) is UNDEFINED


def test_none_and_zero_are_values():
    assert status_of(None) is status_of(0) is Status.ONE


# -- steps -----------------------------------------------------------------------------------------------------------


def test_a_value_is_there_after_the_item_that_gives_it_and_gone_after_the_next():
    assert answers(one_item("a", X + cur), "a5 a7", 10) == [UNDEFINED, 15, UNDEFINED]


def test_a_rule_of_another_tag_does_not_apply():
    assert answers(one_item("a", X + cur), "b5", 10) == [UNDEFINED, UNDEFINED]


def test_a_source_that_the_term_does_not_use_is_a_gate():
    gated = machine(Rule("a", (old(0), old(2)), 1, X), Rule("b", (), 2, Constant(1)), states="ifg")

    assert answers(gated, "a0", 5) == [UNDEFINED, UNDEFINED]
    kept = replace(gated, rules=(*gated.rules, Rule("b", (old(0),), 0, X)))
    assert answers(kept, "b0 a0", 5) == [UNDEFINED, UNDEFINED, 5]


def test_undefined_beats_a_conflict():
    both = machine(Rule("a", (old(0), old(1)), 2, X + Y), states="ijo", inputs=(0, 1), outputs=(2,))

    assert answers(both, "a0", CONFLICT, UNDEFINED)[-1] is UNDEFINED
    assert answers(both, "a0", CONFLICT, 1)[-1] is CONFLICT


def test_a_rule_without_sources_always_applies():
    assert answers(machine(Rule(When.ITEM, (), 1, cur)), "a3 b4") == [UNDEFINED, 3, 4]
    assert answers(machine(Rule(When.START, (), 1, Constant(1))), "a3") == [1, UNDEFINED]
    assert answers(machine(Rule(When.ALWAYS, (), 1, Constant(1))), "a3") == [1, 1]


def test_the_least_values_that_fit_a_cycle_are_meant():
    cycle = machine(copy_rule(0, 1), copy_rule(1, 0))

    assert answers(cycle, "a0", UNDEFINED) == [UNDEFINED, UNDEFINED]
    assert answers(cycle, "a0", 5) == [CONFLICT, UNDEFINED]


def test_a_restart_is_joined_with_what_the_input_has():
    held = machine(Rule(When.ITEM, (old(0),), 0, X), states="h", outputs=(0,))
    at_work = Evaluation(held, [5])

    assert at_work.step("a", 0) == (5,)
    assert at_work.step("a", 0, [6]) == (CONFLICT,)


# The evaluation of Figure 25 as it is printed, with some of three repairs: wake the rules that read a state, not those
# that write it; wait for new sources only; and do something only if a state changes.
REPAIRS = {"readers", "new sources", "changes"}


def printed(made: Transducer, before: list, tag: str, current: int, repairs: set[str], rng: Random) -> list | None:
    """The values after an item, in some order of the work list; None if it does not end."""
    rules = made.rules_for(tag)
    after, of_rule = [UNDEFINED] * len(made.states), [UNDEFINED] * len(rules)
    waits = [len([s for s in rule.sources if s.is_new or "new sources" not in repairs]) for rule in rules]
    todo: list[tuple[str, int]] = [("state", each) for each in range(len(after))]
    todo += [("rule", each) for each in range(len(rules))]
    for _ in range(1000):
        if not todo:
            return after
        kind, number = todo.pop(rng.randrange(len(todo)))
        if kind == "rule":
            rule = rules[number]
            sources = [(after if is_new else before)[state] for state, is_new in rule.sources]
            of_rule[number] = lifted(lambda *values, rule=rule: calculated(rule.term, values, current), *sources)
            if after[rule.target] is not CONFLICT:
                todo.append(("state", rule.target))
            continue
        was = after[number]
        after[number] = join(value for value, rule in zip(of_rule, rules, strict=True) if rule.target == number)
        if "changes" in repairs and after[number] == was:
            continue
        for other, rule in enumerate(rules):
            reads = new(number) in rule.sources
            waits[other] -= was is UNDEFINED and reads
            value = of_rule[other]
            is_ready = status_of(value) is Status.ONE or (value is UNDEFINED and waits[other] == 0)
            if is_ready and (reads if "readers" in repairs else rule.target == number):
                todo.append(("rule", other))
    return None


SIMPLEST = machine(Rule("a", (old(0),), 1, X + cur))
OLD_AND_NEW = machine(Rule("a", (old(0), new(2)), 1, X + Y), Rule("a", (old(0),), 2, cur), states="ifg")
CHAIN = machine(Rule("a", (new(2),), 1, X), Rule("a", (new(3),), 2, X), Rule("a", (old(0),), 3, X), states="ifgh")


@pytest.mark.parametrize(
    ("made", "missing"),
    [(SIMPLEST, REPAIRS), (CHAIN, {"readers"}), (OLD_AND_NEW, {"new sources"}), (CHAIN, {"changes"})],
)
def test_each_repair_of_the_printed_evaluation_is_needed(made, missing):
    wanted = machine_answers(made, [("a", 5)], [10])[-1][0]
    before = [10, *[UNDEFINED] * (len(made.states) - 1)]
    outcomes = [printed(made, before, "a", 5, REPAIRS - missing, Random(seed)) for seed in range(22)]

    assert any(each is None or each[1] != wanted for each in outcomes)


@pytest.mark.parametrize("made", [SIMPLEST, OLD_AND_NEW, CHAIN])
def test_the_evaluation_is_right_where_the_printed_one_is_wrong_whatever_the_order_of_rules(made):
    wanted = machine_answers(made, word("a5 a1"), [10])

    for rules in itertools.permutations(made.rules):
        assert run(replace(made, rules=rules), word("a5 a1"), [10]) == wanted


def test_an_unknown_tag_is_refused():
    with pytest.raises(QueryError, match="one of the tags a, b; came 'c'"):
        run(one_item("a"), [("c", 1)], [0])


def test_as_many_start_values_as_inputs_are_needed():
    with pytest.raises(QueryError, match="1 values to start with; came 2"):
        Evaluation(one_item("a"), [1, 2])


# -- machines that cannot be -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "needed"),
    [
        (Rule("c", (old(0),), 1, X), "one of the tags a, b"),
        (Rule("a", (old(2),), 1, X), "states from 0 to 1"),
        (Rule("a", (old(0),), 2, X), "states from 0 to 1"),
        (Rule("a", (old(0),), 1, Y), "a term over its sources"),
        (Rule(When.START, (old(0),), 1, X), "new sources only"),
        (Rule(When.ALWAYS, (new(0),), 1, X + cur), "a term without cur"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(rule, needed):
    with pytest.raises(QueryError, match=needed):
        machine(rule)


def test_an_input_is_there_once():
    with pytest.raises(QueryError, match="different states as inputs"):
        machine(copy_rule(0, 1), inputs=(0, 0))


def test_parts_must_fit():
    two = data_function(TAGS, 2, X)

    for make in (
        lambda: parallel(one_item("a"), two),
        lambda: union(one_item("a"), two),
        lambda: union(one_item("a"), data_function(TAGS, 1, X, X)),
        lambda: concatenate(one_item("a"), two),
        lambda: iterate(two),
        lambda: prefix_sum(one_item("a"), one_item("a")),
        lambda: parallel(one_item("a"), Transducer(("a",), ("i",), (), (0,), (0,))),
    ):
        with pytest.raises(QueryError):
            make()


# -- constructions ---------------------------------------------------------------------------------------------------


def test_parallel_answers_with_all_answers():
    both = parallel(one_item("a", X + cur), one_item("b", X))

    assert answers(both, "a5", 1) == [(UNDEFINED, UNDEFINED), (6, UNDEFINED)]


def test_union_is_a_conflict_where_both_answer():
    either = union(one_item("a", cur), one_item("b", cur))

    assert [answers(either, text)[-1] for text in ("a1", "b2")] == [1, 2]
    assert answers(union(one_item("a", cur), one_item("a", cur)), "a1")[-1] is CONFLICT


def test_concatenate_goes_on_from_what_the_first_answers():
    sequence = concatenate(one_item("a", X + cur), one_item("b", 10 * X + cur))

    assert answers(sequence, "a1 b2 b3", 4) == [UNDEFINED, UNDEFINED, 52, UNDEFINED]


def test_concatenate_joins_all_splits():
    some = iterate(one_item("a", X + cur))

    assert answers(concatenate(some, some), "a1 a2") == [0, CONFLICT, CONFLICT]


def test_iterate_folds_the_pieces_and_gives_back_the_start_before_the_first():
    pairs = iterate(concatenate(one_item("a", X + cur), one_item("b", X)))

    assert answers(pairs, "a1 b0 a2 b0 b0", 7) == [7, UNDEFINED, 8, UNDEFINED, 10, UNDEFINED]


def test_iterate_of_a_machine_that_answers_at_once_is_a_conflict():
    assert answers(iterate(data_function(TAGS, 1, X)), "a1") == [CONFLICT, UNDEFINED]


def test_a_constant_data_function_does_not_answer_without_a_start():
    assert answers(data_function(TAGS, 1, Constant(7)), "a1", UNDEFINED) == [UNDEFINED, UNDEFINED]
    assert answers(data_function(TAGS, 1, Constant(7)), "a1", 1) == [7, UNDEFINED]


def test_a_data_function_may_have_several_terms_for_an_answer():
    assert answers(data_function(TAGS, 1, [X, X], X), "", 1) == [(CONFLICT, 1)]


def test_a_prefix_sum_folds_the_answers_on_all_prefixes():
    total = iterate(union(one_item("a", X + cur), one_item("b", X + cur)))
    summed = prefix_sum(total, data_function(TAGS, 2, X + Y))

    assert answers(summed, "a1 b2 a3", 0, 100) == [100, 101, 104, 110]


def test_a_prefix_sum_is_undefined_once_an_answer_is():
    summed = prefix_sum(iterate(one_item("a", X + cur)), data_function(TAGS, 2, X + Y))

    assert answers(summed, "a1 b2 a3", 0, 100) == [100, 101, UNDEFINED, UNDEFINED]


# -- size ------------------------------------------------------------------------------------------------------------


def test_size_counts_states_and_lengths_of_rules():
    assert one_item("a", X + cur).size == 2 + (2 + 1 + 3)


def test_registers_are_what_a_rule_reads_from_before_the_item():
    assert one_item("a").registers == 1
    assert data_function(TAGS, 2, X + Y).registers == 0


def test_constructions_add_sizes():
    one, other = one_item("a", X + cur), one_item("b", X + cur)
    both = one.size + other.size

    assert parallel(one, other).size == both + 1 + 2 * 4
    assert union(one, other).size == both + 2 + 4 * 4
    assert concatenate(one, other).size == both + 4
    assert iterate(one).size == one.size + 1 + 2 * 4


# -- support ---------------------------------------------------------------------------------------------------------

WORDS = ["", "a0", "b0", "a0 a0", "a0 b0", "b0 a0 a0", "a0 b0 a0 b0"]
CYCLIC = iterate(union(data_function(TAGS, 1, X), one_item("a", X)))


def supported(made: Transducer, text: str) -> list[tuple]:
    return [tuple(status for status in Status if each[status] == 1) for each in run(support(made), word(text))]


@pytest.mark.parametrize("text", WORDS)
@pytest.mark.parametrize(
    "made",
    [
        one_item("a"),
        iterate(one_item("a")),
        concatenate(iterate(one_item("a")), iterate(union(one_item("a"), one_item("b")))),
        machine(Rule("a", (old(0), old(0), new(1)), 2, X), copy_rule(0, 1), states="ifo", outputs=(2,)),
        machine(Rule("a", (), 1, cur), Rule("b", (), 1, cur), Rule(When.ITEM, (), 1, cur)),
        CYCLIC,
    ],
)
def test_exactly_one_of_three_answers_of_a_support_is_there(made, text):
    wanted = [(status_of(each[0]),) for each in run(made, word(text), [0])]

    assert supported(made, text) == wanted


def test_a_support_is_linear():
    sizes = [support(parallel(*[one_item("a")] * count)).size for count in (5, 10, 20)]

    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


# -- unrolled --------------------------------------------------------------------------------------------------------


def test_a_machine_without_cycles_stays_as_it_is():
    made = iterate(one_item("a"))

    assert made.is_acyclic
    assert unrolled(made) is made


@pytest.mark.parametrize("start", [UNDEFINED, 3, CONFLICT])
def test_an_unrolled_machine_has_no_cycle_and_answers_the_same(start):
    flat = unrolled(CYCLIC)

    assert not CYCLIC.is_acyclic
    assert flat.is_acyclic
    for text in WORDS:
        assert run(flat, word(text), [start]) == machine_answers(CYCLIC, word(text), [start])
