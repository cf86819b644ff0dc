"""The theorems of section 5 about data transducers and queries, on random ones. A failure prints its seed."""

from __future__ import annotations

import copy
import itertools
import pickle
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

# The oracle stands beside the tests of the single operators.
sys.path.append(str(Path(__file__).parents[1] / "properties"))

from queries import TAGS, Seeded, any_query, base_query, machine, total_query, well_typed, word
from query_oracle import answers, cuts, join, machine_answers, same

from streamtight.errors import QueryError
from streamtight.properties.code import as_values, block_code, item_code, used_fields
from streamtight.properties.decide import difference, made_restartable, not_restartable, unsynchronised
from streamtight.properties.monitor import Compiled, Monitor
from streamtight.properties.query import Query, any_, atom, combine, cur, eps, first, iter_, or_, split
from streamtight.properties.query_machine import pass_machine, value_machine
from streamtight.properties.straight import Straight, straight, tidied
from streamtight.properties.support import support, unrolled
from streamtight.properties.term import Apply, Operation, Slot, Term, replaced, walk
from streamtight.properties.transducer import (
    CONFLICT,
    UNDEFINED,
    Evaluation,
    Status,
    Transducer,
    concatenate,
    data_function,
    iterate,
    parallel,
    prefix_sum,
    run,
    status_of,
    union,
)

SEEDS = st.integers(0, 2**32).map(Seeded)
lawful = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
few = settings(lawful, max_examples=10)
X, Y = Slot(0), Slot(1)
SOME: list[Any] = [1, CONFLICT]


def all_same(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(same, one, other))


def items(rng: Random, most: int = 5) -> list[tuple[str, int]]:
    return [(rng.choice(TAGS), rng.randint(0, 5)) for _ in range(rng.randint(0, most))]


def tag_words(most: int) -> Iterator[list[tuple[str, int]]]:
    for length in range(most + 1):
        for tags in itertools.product(TAGS, repeat=length):
            yield [(tag, 0) for tag in tags]


def statuses(values: Sequence[Any]) -> tuple[Status, ...]:
    return tuple(map(status_of, values))


# -- machines --------------------------------------------------------------------------------------------------------


@lawful
@given(SEEDS)
def test_an_evaluation_gives_the_least_vector_also_where_machines_have_cycles_and_restarts(rng):
    made, read = machine(rng), items(rng)
    given_at = [[rng.choice([UNDEFINED, 3, CONFLICT]) for _ in made.inputs] for _ in range(len(read) + 1)]
    at_work = Evaluation(made, given_at[0])
    found = [at_work.outputs, *(at_work.step(*each, more) for each, more in zip(read, given_at[1:], strict=True))]

    assert found == machine_answers(made, read, given_at[0], given_at[1:])


@lawful
@given(SEEDS)
def test_unrolled_and_tidied_machines_answer_the_same(rng):
    made, read = machine(rng, most=3), items(rng)
    start = [rng.choice([UNDEFINED, 3, CONFLICT]) for _ in made.inputs]

    assert run(tidied(unrolled(made)), read, start) == run(made, read, start)


@lawful
@given(SEEDS)
def test_a_support_tells_the_status_of_each_answer(rng):
    made, read = machine(rng, most=3), items(rng)
    wanted = [
        tuple(1 if status is status_of(value) else UNDEFINED for value in each for status in Status)
        for each in run(made, read, [0] * len(made.inputs))
    ]

    assert run(support(made), read) == wanted


@lawful
@given(SEEDS)
def test_code_of_a_machine_answers_as_its_evaluation(rng):
    made = tidied(unrolled(machine(rng, most=3, outputs=1)))
    start = [rng.choice([UNDEFINED, 3, CONFLICT]) for _ in made.inputs]
    read = items(rng)
    wanted = [answer for (answer,) in run(made, read, start)]

    assert all_same(one_at_a_time(straight(made, start), read), wanted)
    assert all_same(one_at_a_time(straight(made, start, most=0), read), wanted)


class Counted:
    """A machine whose operations are counted."""

    def __init__(self, made: Transducer) -> None:
        self.count = 0
        self.machine = replace(
            made, rules=tuple(replace(rule, term=replaced(rule.term, self._counted)) for rule in made.rules)
        )

    def _counted(self, term: Term) -> Term | None:
        if not isinstance(term, Apply):
            return None

        def function(*values: Any) -> Any:
            self.count += 1
            return term.operation.function(*values)

        arguments = tuple(replaced(each, self._counted) for each in term.arguments)
        return Apply(Operation(term.operation.name, term.operation.arity, function), arguments)


@lawful
@given(SEEDS)
def test_theorem_5_1_an_item_costs_at_most_the_size_of_the_machine_however_long_the_word(rng):
    counted = Counted(machine(rng))
    most = sum(isinstance(each, Apply) for rule in counted.machine.rules for each in walk(rule.term))
    at_work = Evaluation(counted.machine, [1] * len(counted.machine.inputs))
    costs = set()
    for tag, value in items(rng, 60):
        before = counted.count
        at_work.step(tag, value)
        costs.add(counted.count - before)

    assert max(costs, default=0) <= most <= counted.machine.size
    assert len(at_work.values) == len(counted.machine.states)


@lawful
@given(SEEDS)
def test_theorem_5_2_which_answers_there_are_depends_on_tags_alone(rng):
    made, read = machine(rng), items(rng)
    other = [(tag, rng.choice([None, 0, -1e300, 10**50])) for tag, _ in read]
    made = replace(made, rules=tuple(replace(rule, term=_total(rule.term)) for rule in made.rules))
    start = [rng.choice([UNDEFINED, 3, CONFLICT]) for _ in made.inputs]
    again = [each if each in (UNDEFINED, CONFLICT) else "x" for each in start]

    assert list(map(statuses, run(made, read, start))) == list(map(statuses, run(made, other, again)))


def _total(term: Term) -> Term:
    """The same term, with operations that are defined for all values."""

    def pair(*values: Any) -> Any:
        return values[:1]

    return replaced(
        term,
        lambda each: (
            Apply(Operation("pair", len(each.arguments), pair), tuple(map(_total, each.arguments)))
            if isinstance(each, Apply)
            else None
        ),
    )


@lawful
@given(SEEDS)
def test_theorem_5_3_a_difference_is_one_and_none_is_shorter(rng):
    one = machine(rng, most=3, inputs=1)
    other = machine(rng, most=3, inputs=1, outputs=len(one.outputs))
    found = difference(one, other)
    least = 3 if found is None else len(found.word) - 1
    for start in (UNDEFINED, 1, CONFLICT):
        for read in tag_words(min(3, least)):
            assert statuses(run(one, read, [start])[-1]) == statuses(run(other, read, [start])[-1])
    if found is not None:
        start = {Status.NONE: UNDEFINED, Status.ONE: 1, Status.MANY: CONFLICT}[found.start[0]]
        shown = [statuses(run(each, [(tag, 0) for tag in found.word], [start])[-1]) for each in (one, other)]
        assert shown == [found.one, found.other]
        assert found.one != found.other


@lawful
@given(SEEDS)
def test_equivalence_and_the_other_decisions_do_not_depend_on_the_order_of_rules(rng):
    made = machine(rng, most=3)
    mixed = replace(made, rules=tuple(rng.sample(made.rules, len(made.rules))))

    assert difference(made, mixed) is None
    assert not_restartable(made) == not_restartable(mixed)
    assert unsynchronised(made) == unsynchronised(mixed)


def joined_vectors(vectors: Sequence[Sequence[Any]], length: int) -> list[Any]:
    return [join(each[place] for each in vectors) for place in range(length)]


def interference(made: Transducer, most: int) -> int | None:
    """The length of the shortest word up to `most` on which at most three copies and one machine differ."""
    started = [(), *([each] for each in itertools.product(SOME, repeat=len(made.inputs)))]
    started += [[*one, *other] for one, other in itertools.product(started[1:], repeat=2)]
    for read in tag_words(most):
        for starts in itertools.product(started, repeat=len(read) + 1):
            if sum(map(len, starts)) > 3:
                continue
            together = [joined_vectors(each, len(made.inputs)) for each in starts]
            one = machine_answers(made, read, together[0], together[1:])[-1]
            apart = [
                machine_answers(made, read[after:], start)[-1] for after, those in enumerate(starts) for start in those
            ]
            if statuses(one) != statuses(joined_vectors(apart, len(made.outputs))):
                return len(read)
    return None


@few
@given(SEEDS)
def test_theorem_5_6_a_machine_is_restartable_if_one_answers_as_all_copies_do(rng):
    made = machine(rng, most=3, inputs=1)
    found = not_restartable(made)
    shortest = interference(made, 2)

    if found is None:
        assert shortest is None
    elif len(found.starts) <= 3 and len(found.word) <= 2:
        assert shortest == len(found.word)
    else:
        assert shortest is None
    if found is not None:
        read = [(tag, 0) for tag in found.word]
        as_value = {Status.NONE: UNDEFINED, Status.ONE: 1, Status.MANY: CONFLICT}
        starts = [(start.after, [as_value[each] for each in start.given]) for start in found.starts]
        together = [joined_vectors([given for after, given in starts if after == at], 1) for at in range(len(read) + 1)]
        apart = [machine_answers(made, read[after:], given)[-1] for after, given in starts]
        assert statuses(machine_answers(made, read, together[0], together[1:])[-1]) == found.together
        assert statuses(joined_vectors(apart, len(made.outputs))) == found.apart
        assert found.together != found.apart


@lawful
@given(SEEDS)
def test_a_machine_that_was_made_restartable_is_and_answers_the_same(rng):
    made, read = machine(rng, most=3), items(rng)
    restartable = made_restartable(made)
    start = [rng.randint(0, 9) for _ in made.inputs]

    assert not_restartable(restartable) is None
    assert run(restartable, read, start) == run(made, read, start)


def restartable_machine(rng: Random, count: int = 1) -> Transducer:
    """One that answers at some time, with as many inputs as outputs."""
    while True:
        made = machine(rng, most=3, inputs=count, outputs=count)
        made = made if not_restartable(made) is None else made_restartable(made)
        if len(made.inputs) == count and made.rules and unsynchronised(made) is None:
            return made


@few
@given(SEEDS)
def test_theorem_5_5_machines_of_restartable_ones_are_restartable(rng):
    one, other = restartable_machine(rng), restartable_machine(rng)

    for made in (parallel(one, other), union(one, other), concatenate(one, other), iterate(one)):
        assert not_restartable(made) is None


@few
@given(SEEDS)
def test_theorem_5_5_a_prefix_sum_of_a_restartable_machine_that_always_answers_is_restartable(rng):
    always_there = value_machine(well_typed(rng, total_query, 4), TAGS)

    assert not_restartable(prefix_sum(always_there, data_function(TAGS, 2, X + Y))) is None


@few
@given(SEEDS)
def test_concatenate_joins_all_splits_of_the_word(rng):
    one, other, read = restartable_machine(rng), restartable_machine(rng), items(rng, 4)
    wanted = join(
        run(other, read[end:], run(one, read[:end], [7])[-1])[-1][0] for end in range(len(read) + 1)
    )  # fmt: skip

    assert run(concatenate(one, other), read, [7])[-1][0] == wanted


@few
@given(SEEDS)
def test_iterate_joins_all_cuts_of_the_word(rng):
    one, read = restartable_machine(rng), items(rng, 4)
    at_once = run(one, [], [7])[-1][0] is not UNDEFINED
    folded = []
    for cut in cuts(tuple(read)):
        value: Any = 7
        for piece in cut:
            value = run(one, piece, [value])[-1][0]
        folded.append(value)
    wanted = join(folded)
    if at_once and wanted is not UNDEFINED:
        wanted = CONFLICT  # the empty piece can be put anywhere

    assert run(iterate(one), read, [7])[-1][0] == wanted


# -- queries ---------------------------------------------------------------------------------------------------------


def one_at_a_time(program: Straight, read: Sequence[tuple[str, Any]]) -> list[Any]:
    update, _ = item_code(program)(0, *program.start, lambda error, tag, value: error, KeyError)
    return [program.first, *(update(tag, value) for tag, value in read)]


def in_blocks(program: Straight, read: Sequence[tuple[str, Any]], rng: Random) -> list[Any]:
    """The answers in two blocks."""
    code, state, cut = block_code(program, is_keyed=False), (0, *program.start), rng.randint(0, len(read))
    found = [program.first]
    for block in (read[:cut], read[cut:]):
        values = [value for _, value in block]
        status, given, state = code(
            [TAGS.index(tag) for tag, _ in block], *[values for _ in used_fields(program)], state
        )
        found += as_values(status, given)
    return found


def wanted_answers(query: Query, read: Sequence[tuple[str, Any]]) -> list[Any] | None:
    try:
        return answers(query, read)
    except OverflowError:  # a huge int and a float: all raise, but not at the same item
        return None


@lawful
@given(SEEDS)
def test_theorem_5_7_the_machine_of_a_query_answers_as_the_query_means(rng):
    query, read = well_typed(rng, any_query), word(rng)
    wanted = wanted_answers(query, read)

    if wanted is not None:
        assert all_same([answer for (answer,) in run(value_machine(query, TAGS), read, [0])], wanted)


@lawful
@given(SEEDS)
def test_compiled_code_answers_as_the_query_means(rng):
    query, read = well_typed(rng, any_query), word(rng)
    made, wanted = Compiled(query, TAGS), wanted_answers(query, read)
    flat = straight(made.machine, [0], most=0)

    if wanted is not None:
        assert all_same(made.run(read), wanted)
        assert all_same(one_at_a_time(flat, read), wanted)
        assert all_same(in_blocks(made.program, read, rng), wanted)
        assert all_same(in_blocks(flat, read, rng), wanted)


@lawful
@given(SEEDS)
def test_blocks_with_keys_answer_as_a_monitor_for_each_key(rng):
    query, read = well_typed(rng, any_query), word(rng, 12)
    made = Compiled(query, TAGS)
    keys = [rng.randrange(3) for _ in read]
    try:
        alone = [made.monitor() for _ in range(3)]
        wanted = [alone[key].update(*each) for key, each in zip(keys, read, strict=True)]
    except QueryError as error:
        assert "OverflowError" in str(error)  # noqa: PT017 - a huge int and a float
        return
    states, cut, found = [made.start] * 3, rng.randint(0, len(read)), []
    for part in (slice(cut), slice(cut, None)):
        values = [value for _, value in read[part]]
        numbers = [TAGS.index(tag) for tag, _ in read[part]]
        found += as_values(*made.keyed_block(numbers, keys[part], [values for _ in made.fields], states))

    assert all_same(found, wanted)
    assert all_same(states, [each.state() for each in alone])


@lawful
@given(SEEDS)
def test_saving_and_restoring_at_any_point_changes_nothing(rng):
    query, read = well_typed(rng, any_query), word(rng, 8)
    made = Compiled(query, TAGS)
    try:
        wanted = made.run(read)
    except QueryError as error:
        assert "OverflowError" in str(error)  # noqa: PT017 - a huge int and a float
        return
    cut = rng.randint(0, len(read))
    monitor = made.monitor()
    before = [made.first, *(monitor.update(*each) for each in read[:cut])]
    kept = monitor.state()
    for restored in (
        Monitor(made, kept),
        Monitor(Compiled(query, TAGS), pickle.loads(pickle.dumps(kept))),
        pickle.loads(pickle.dumps(monitor)),
        copy.deepcopy(monitor),
        monitor,
    ):
        assert all_same([*before, *(restored.update(*each) for each in read[cut:])], wanted)
    monitor.restore(kept)
    assert all_same([*before, *(monitor.update(*each) for each in read[cut:])], wanted)


@lawful
@given(SEEDS)
def test_an_item_that_is_refused_changes_nothing(rng):
    made = Compiled(well_typed(rng, any_query), TAGS)
    for program in (made.program, straight(made.machine, [0], most=0)):
        update, state = item_code(program)(0, *program.start, lambda error, tag, value: error, KeyError)
        for tag, value in items(rng):
            before = state()
            for wrong in ((tag, object()), ("unknown", value)):
                try:
                    update(*wrong)
                except (TypeError, KeyError):
                    assert state() == before
                else:
                    update, state = item_code(program)(before[0], *before[1], lambda error, *_: error, KeyError)
            update(tag, value)


@lawful
@given(SEEDS)
def test_values_that_no_term_reads_may_be_anything(rng):
    query = well_typed(rng, any_query, 5)
    made = Compiled(query, TAGS)
    unread = {tag for tag in TAGS if not any(_reads(made, tag))}
    read = word(rng)
    wanted = wanted_answers(query, read)

    if wanted is not None:
        assert all_same(made.run([(tag, None if tag in unread else value) for tag, value in read]), wanted)


def _reads(made: Compiled, tag: str) -> Iterator[bool]:
    for (_, on), step in made.program.steps.items():
        if on == tag:
            yield bool(used_fields(replace(made.program, steps={(0, tag): step})))


@lawful
@given(SEEDS)
def test_theorem_5_1_the_code_of_a_query_does_at_most_as_many_operations_as_its_bound(rng):
    made = Compiled(well_typed(rng, any_query), TAGS)
    bound = made.bound()

    assert bound.operations <= bound.size
    assert bound.registers <= 2 * bound.states
    assert bound.operations == max(step.operations for step in made.program.steps.values())


@few
@given(SEEDS)
def test_theorem_5_7_value_and_pass_machines_are_restartable_and_equivalent(rng):
    query = well_typed(rng, base_query, 5)
    value, passed = value_machine(query, TAGS), pass_machine(query, TAGS)

    assert value.is_acyclic
    assert passed.is_acyclic
    assert difference(value, passed) is None
    assert not_restartable(value) is None
    assert not_restartable(passed) is None


@lawful
@given(SEEDS)
def test_theorem_5_7_a_pass_machine_answers_with_what_it_was_started_with(rng):
    query, read = well_typed(rng, base_query), word(rng)
    marker = object()
    found = [answer for (answer,) in run(pass_machine(query, TAGS), read, [marker])]

    assert all(each in (marker, UNDEFINED, CONFLICT) for each in found)


@lawful
@given(SEEDS)
def test_theorem_5_7_sizes_are_at_most_quadratic_and_those_of_pass_machines_linear(rng):
    query = base_query(rng, rng.randint(1, 40))

    assert value_machine(query, TAGS).size <= 40 * query.length**2
    assert pass_machine(query, TAGS).size <= 40 * query.length


def test_theorem_5_7_splits_to_the_right_need_quadratically_many_states_and_those_to_the_left_linearly_many():
    def states(count: int, *, to_the_left: bool) -> int:
        query = atom("a", 0)
        for _ in range(count - 1):
            query = split(query, atom("a", 0), first) if to_the_left else split(atom("a", 0), query, first)
        return len(value_machine(query, TAGS).states)

    assert [states(count, to_the_left=False) for count in (2, 4, 8, 16, 32)] == [10, 32, 100, 332, 1180]
    assert [states(count, to_the_left=True) for count in (2, 4, 8, 16, 32)] == [10, 26, 58, 122, 250]


def test_the_empty_word_is_a_word():
    assert Compiled(eps(3), TAGS).run([]) == [3]


def test_a_block_of_items_whose_values_nobody_reads_needs_no_column():
    made = Compiled(split(atom("a", 1), atom("b", 2), first), TAGS)

    assert made.fields == []
    assert as_values(*made.block([0, 1, 0], [], made.start)[:2]) == [UNDEFINED, 1, UNDEFINED]
    assert as_values(*made.keyed_block([0, 0, 1], [0, 1, 0], [], [made.start] * 2)) == [UNDEFINED, UNDEFINED, 1]


def test_constants_that_look_alike_are_told_apart():
    class Opaque:
        def __repr__(self) -> str:
            return "opaque"

    one, other = Opaque(), Opaque()
    query = split(or_(atom("a", one), atom("b", other)), any_(0), first)

    assert query.run([("a", 0), ("a", 0)])[-1] is one
    assert query.run([("b", 0), ("a", 0)])[-1] is other


def test_zero_and_minus_zero_and_false_are_told_apart():
    query = split(or_(atom("a", 0.0), atom("b", -0.0), atom("c", False)), any_(0), first)

    assert [repr(query.run([(tag, 0), ("a", 0)])[-1]) for tag in "abc"] == ["0.0", "-0.0", "False"]


def occurred(tag: str) -> Query:
    """The sum of all values if there was an item with this tag, else 0."""
    before = split(iter_(any_(cur, but=(tag,)), 0, add), atom(tag, cur), add)
    return or_(iter_(any_(0, but=(tag,)), 0, add), split(before, iter_(any_(cur), 0, add), add))


def add(one: Any, other: Any) -> Any:
    return one + other


def test_theorem_5_9_there_may_be_exponentially_many_control_states_and_code_goes_on_without_them():
    def controls(count: int) -> int:
        tags = "abcdefg"[:count]
        return Compiled(combine(*map(occurred, tags), lambda *values: sum(values, 0)), tuple(tags)).program.controls

    assert [controls(count) for count in (1, 2, 3, 4)] == [2, 4, 8, 16]
    assert controls(7) == 1


def test_theorem_5_9_code_that_calculates_statuses_answers_the_same():
    tags = tuple("abcdefg")
    made = Compiled(combine(*map(occurred, tags), lambda *values: sum(values, 0)), tags)
    rng = Random(5)
    read = [(rng.choice(tags), rng.randint(-9, 9)) for _ in range(40)]
    prefixes = [read[:end] for end in range(len(read) + 1)]
    wanted = [len({tag for tag, _ in each}) * sum(value for _, value in each) for each in prefixes]

    assert made.run(read) == wanted
    numbers, values = [tags.index(tag) for tag, _ in read], [value for _, value in read]
    assert as_values(*made.block(numbers, [values], made.start)[:2]) == wanted[1:]
