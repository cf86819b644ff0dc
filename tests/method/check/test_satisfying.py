"""Streams that are derived from a formula."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from streamtight.errors import FormulaError, PredicateError, SourceError
from streamtight.method.check.satisfying import satisfying
from streamtight.program.letter import Letter
from streamtight.properties.records import all_records, count, no_record, some_record
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    always,
    eventually,
    forall,
    historically,
    next_,
    now,
    once,
    release,
    until,
)
from streamtight.source import gen
from streamtight.stream.event import Kind

A, B, C = (Kind(name, n=int) for name in "ABC")
A_BATCH, B_BATCH, C_BATCH = (gen.batch(kind, size=(1, 2)) for kind in (A, B, C))
User = Kind("User", id=int, good=bool)


def names(batch):
    """A letter as a set of names, so that now("A") asks for a record of kind A."""
    return {record.kind.name for record in batch}


def has_only(kind):
    return now(lambda batch: all(record.kind is kind for record in batch), name=f"only {kind.name}")


BY_NAME = {"A": A_BATCH, "B": B_BATCH}
ALL = {
    now("A"): A_BATCH,
    now("B"): B_BATCH,
    ~now("A"): gen.empty | B_BATCH,
    ~now("B"): gen.empty | A_BATCH,
}


def shapes(generator, number=80):
    return {
        " ".join("".join(sorted(names(batch))) or "-" for batch in stream)
        for stream in generator.examples(number, seed=1)
    }


def derived(formula, generators=None, **options):
    return satisfying(formula, BY_NAME if generators is None else generators, letter=names, **options)


# -- the shapes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (now("A") & "B", {"AB"}),
        (now("A") | "B", {"A", "B"}),
        (next_("A", 2) & "B", {"B - A"}),
        (always("A", during=2) | next_("B"), {"A A", "- B"}),
        (until("A", "B", within=3), {"B", "A B", "A A B"}),
        (release("A", "B", within=2), {"B B", "AB", "B AB"}),
        (always(now("A") & next_("B"), during=2), {"A AB B"}),
        (eventually(always("A", during=2), within=2) & "B", {"AB A", "B A A"}),
        (TRUE & now("A") & "B", {"AB"}),
    ],
)
def test_streams_have_the_shape_of_the_formula(formula, expected):
    used = {name: batch for name, batch in BY_NAME.items() if repr(name) in repr(formula)}

    assert shapes(derived(formula, used)) == expected


def test_an_implication_is_made_true_with_its_trigger_too():
    found = shapes(derived(now("A") >> next_("B")))

    assert found == {"A B", "- B"}


def test_an_implication_may_also_lack_its_trigger_if_a_generator_says_how():
    found = shapes(derived(now("A") >> next_("B"), {**BY_NAME, ~now("A"): gen.empty}))

    assert found == {"A B", "- B", "-"}


def derived_from(formula):
    """With those generators that it needs."""
    needed = dict(ALL)
    while True:
        try:
            return derived(formula, needed)
        except FormulaError as error:
            unused = [key for key in needed if error.came.startswith(f"one for {key!r}, ")]
            if not unused:
                raise
            del needed[unused[0]]


@pytest.mark.parametrize(
    "formula",
    [
        ~always("A", during=3),
        ~eventually("A", within=3),
        ~until("A", "B", within=2),
        ~release("A", "B", within=3),
        ~next_("A", 2),
        ~(now("A") >> "B"),
        ~(now("A") | next_("B")),
        ~(now("A") & next_("B")),
    ],
    ids=repr,
)
def test_a_negation_reaches_the_atoms(formula):
    streams = derived_from(formula).examples(50)

    assert len(streams) > 1
    assert all(formula.evaluate(map(names, stream)) is True for stream in streams)


def test_what_is_false_in_itself_is_refused():
    with pytest.raises(FormulaError, match="make it true together"):
        derived_from(~(now("A") >> "A"))


def test_an_operator_without_a_timeout_gets_the_length_that_is_asked_for():
    assert shapes(derived(eventually("A"), {"A": A_BATCH}, length=2)) == {"A", "- A"}
    assert shapes(derived(always("A"), {"A": A_BATCH}, length=3)) == {"A A A"}


# -- what is kept out ------------------------------------------------------------------------------------------------


def test_streams_that_do_not_satisfy_the_formula_are_left_out():
    """The union of both parts would have A and B in one batch at times."""
    only = has_only(A)
    formula = always(only, during=2) & eventually(now(lambda batch: len(batch) == 3, name="three"), within=2)

    streams = satisfying(formula, {only: gen.batch(A, size=(1, 2)), "three": gen.batch([A, B], size=1)}, letter=tuple)

    found = streams.examples(40)
    assert len(found) == 40
    assert all(formula.evaluate(stream) is True for stream in found)


def test_generators_that_cannot_make_it_true_are_refused():
    only = has_only(A)

    with pytest.raises(FormulaError, match=r"needed generators that make it true together; came none in 200 streams"):
        satisfying(always(only, during=3) & now("B"), {only: A_BATCH, "B": B_BATCH}, letter=tuple)


# -- letters ---------------------------------------------------------------------------------------------------------


def test_the_formula_sees_a_batch_as_the_input_of_a_letter():
    good, bad = all_records("input", lambda u: u.good), some_record("input", lambda u: not u.good)
    formula = until(good, bad, within=4)
    goods = gen.batch(User, good=[True])

    streams = satisfying(formula, {good: goods, bad: goods + gen.batch(User, size=1, good=[False])})

    for stream in streams.examples(50):
        assert [any(not user.good for user in batch) for batch in stream] == [False] * (len(stream) - 1) + [True]
    assert streams.kinds == (User,)


def test_several_inputs_are_told_apart_by_their_kinds():
    ordered, shipped = some_record("orders", lambda r: True), count("shipments") > 0
    formula = always(ordered >> eventually(shipped, within=2), during=3)

    streams = satisfying(
        formula, {ordered: A_BATCH, shipped: B_BATCH, ~ordered: gen.empty}, takes={"orders": A, "shipments": [B, C]}
    )

    def letter(batch):
        kinds = {"orders": (A,), "shipments": (B, C)}
        return Letter({name: tuple(r for r in batch if r.kind in of) for name, of in kinds.items()}, {})

    assert all(formula.evaluate(map(letter, stream)) is True for stream in streams.examples(50))


# -- other keys ------------------------------------------------------------------------------------------------------


def test_a_test_itself_can_be_the_key():
    def is_full(batch):
        return len(batch) > 3

    assert {len(b) for (b,) in satisfying(now(is_full), {is_full: gen.batch(A, size=4)}, letter=tuple).examples()} == {
        4
    }


def test_any_part_of_a_formula_can_have_a_generator_of_streams():
    each = forall(lambda batch: batch, lambda record: eventually(lambda batch: B(record.n) in batch, within=2))
    pairs = gen.stream([[A(1)], [B(1)]]) | gen.stream([[A(2), B(2)]])

    streams = satisfying(always(~now(lambda b: not b, name="empty") | each, during=1), {each: pairs}, letter=tuple)

    assert shapes(streams) == {"A B", "AB"} or shapes(streams) == {"AB"}


def test_the_generator_reads_as_its_formula():
    assert repr(derived(until("A", "B", within=3))) == "satisfying(until('A', 'B', within=3))"


# -- random formulas -------------------------------------------------------------------------------------------------


@st.composite
def formulas(draw, depth=2):
    atom = now(draw(st.sampled_from("AB")))
    if depth == 0:
        return draw(st.sampled_from([atom, ~atom]))
    f = draw(formulas(depth=depth - 1))
    g = draw(formulas(depth=draw(st.integers(0, depth - 1))))
    n = draw(st.integers(1, 3))
    return draw(
        st.sampled_from(
            [
                ~f,
                f & g,
                f | g,
                f >> g,
                next_(f, n),
                always(f, during=n),
                eventually(f, within=n),
                until(f, g, within=n),
                release(f, g, within=n),
            ]
        )
    )


@settings(max_examples=15, deadline=None)
@given(formulas())
def test_every_stream_of_a_random_formula_satisfies_it_by_the_definition(formula):
    try:
        streams = derived_from(formula).examples(5)
    except FormulaError as error:
        # Too much was asked at once: that is said, and no wrong stream is given.
        if "make it true together" not in str(error):
            raise
        event("refused")
    else:
        event("derived")
        assert all(formula.evaluate(map(names, stream)) is True for stream in streams)


# -- wrong questions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda: derived(~now("A")),
            r"satisfying\(~now\('A'\)\): needed a generator of batches .*Try: \{~now\('A'\): ",
        ),
        (lambda: derived(until("A", ~now("B"))), r"satisfying\(~now\('B'\)\): needed a generator of batches"),
        (lambda: derived(now("C")), r"satisfying\(now\('C'\)\): needed a generator of batches for which it is true"),
        (lambda: derived(now("A")), r"needed generators for parts of now\('A'\); came one for now\('B'\)"),
        (lambda: derived(FALSE, {}), r"needed a formula that can be true; came FALSE"),
        (lambda: derived(once("A"), {"A": A_BATCH}), r"needed a generator of streams on which it is true"),
        (lambda: derived(~historically("A"), {}), r"needed a generator of streams on which it is true"),
        (lambda: derived(forall(list, lambda r: TRUE), {}), r"needed a generator of streams on which it is true"),
        (
            lambda: derived(eventually("A", within=timedelta(seconds=5))),
            r"needed timeouts in batches; came one in time",
        ),
        (lambda: satisfying(3, {}), r"satisfying\(formula, ...\): needed a formula"),
        (lambda: satisfying(now("A"), {3: A_BATCH}), r"satisfying\(..., \{3: ...\}\): needed a formula"),
    ],
)
def test_a_wrong_question_says_what_to_try(ask, message):
    with pytest.raises(FormulaError, match=message):
        ask()


def test_a_generator_has_to_be_one():
    with pytest.raises(SourceError, match=r"satisfying\(..., \{'A': ...\}\): needed a generator of batches; came A\("):
        derived(now("A"), {"A": A})


def test_a_formula_about_the_output_is_refused():
    none = no_record("output", lambda r: True)

    with pytest.raises(FormulaError, match=r"letter\['output'\]: needed one of 'input'"):
        satisfying(none, {none: A_BATCH})


def test_a_test_that_raises_is_told_as_it_is():
    broken = now(lambda batch: batch.missing, name="broken")

    with pytest.raises(PredicateError, match="AttributeError"):
        satisfying(broken, {broken: A_BATCH}, letter=tuple)


def test_letters_have_their_numbers_and_times():
    reading = Kind("Reading", at=datetime)
    first = now(lambda letter: letter.batch == 0 and letter.time.minute == 0, name="first")
    soon = eventually(lambda letter: letter.batch == 2, within=timedelta(minutes=2))

    streams = satisfying(
        first & soon, {first: gen.empty, soon: gen.always(gen.batch(reading, size=1), during=3).timed("at")}
    )

    assert {len(stream) for stream in streams.examples(20)} == {3}


def test_times_can_be_given_to_what_is_derived():
    reading = Kind("Reading", at=datetime)
    some = count("input") > 0

    streams = satisfying(always(some, during=3), {some: gen.batch(reading)}).timed("at")

    assert all(stream[2][0].at >= datetime(2024, 1, 15, 12, 2) for stream in streams.examples(10))
