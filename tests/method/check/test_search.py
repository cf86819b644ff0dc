"""The search, with a back end that is a Python function: no Spark is needed to judge words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from streamtight.errors import FormulaError, JobError, SourceError, TimeLimitError
from streamtight.method.check.search import Question, search
from streamtight.program.letter import Letter
from streamtight.properties.records import all_records, count, no_record
from streamtight.properties.temporal import Formula, always, eventually, exists, forall, historically, next_, now, until
from streamtight.source import gen
from streamtight.source.cases import cases_of
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Restart, Schedule
from streamtight.verdict import Verdict

N = Kind("N", n=int)
Job = Callable[[Sequence[Event]], Sequence[Event]]


def doubles(rows: Sequence[Event]) -> Sequence[Event]:
    return [N(2 * row.n) for row in rows]


def loses_nines(rows: Sequence[Event]) -> Sequence[Event]:
    return [N(2 * row.n) for row in rows if row.n != 9]


class Backend:
    """Runs a function batch by batch, and notes how far."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.batches_run: list[int] = []

    def words(self, cases: Sequence[Schedule], steps: Sequence[Any], packed: bool) -> Iterator[Sequence[Letter]]:
        for case, step in zip(cases, steps, strict=True):
            word: list[Letter] = []
            for number, batch in enumerate(case.batches):
                rows = tuple(event for part in batch for event in part)
                word.append(Letter({"input": rows}, {"output": tuple(self.job(rows))}, batch=number))
                if step(word[-1]):
                    break
            self.batches_run.append(len(word))
            yield word


def ask(job: Job, formula: Formula, on: object, *, runs: int = 20, length: int = 3, shrink: float = 5.0) -> Verdict:
    question = Question(
        claim="job keeps it",
        formula=formula,
        cases=cases_of(on, length=length),
        words=Backend(job).words,
        replay=lambda case: case.code(),
        shrink_seconds=shrink,
    )
    return search(question, runs=runs, seed=3)


SAME_COUNT = always(count("output") == count("input"), during=3)


def test_a_job_that_keeps_the_property_in_every_case_holds():
    verdict = ask(doubles, SAME_COUNT, N)

    assert verdict.holds
    assert str(verdict.scope) == "tested on 20 generated inputs, seed 3"


def test_a_broken_property_is_shown_with_the_smallest_case():
    verdict = ask(loses_nines, SAME_COUNT, N, runs=200)

    found = verdict.counterexample
    assert found is not None
    assert found.finding == "VIOLATED"
    assert found.schedule is not None
    assert found.schedule.events == (N(9),)
    assert "count('output') is 0, count('input') is 1" in found.explanation
    assert found.failing_reruns == found.reruns == 3


def test_the_table_has_a_line_for_every_batch_that_was_read():
    verdict = ask(loses_nines, SAME_COUNT, [[N(1)], [N(9)], [N(2)]])

    found = verdict.counterexample
    assert found is not None
    assert found.table is not None
    assert found.table.rows == (
        ("0", "N(n=1)", "N(n=2)", "yes"),
        ("1 *", "N(n=9)", "-", "no"),
    )
    assert found.schedule is not None
    assert len(found.schedule.batches) == 2


def test_words_that_are_too_short_leave_it_undecided_and_say_how_long_is_enough():
    verdict = ask(doubles, SAME_COUNT, [[N(1)], [N(2)]])

    assert verdict.undecided
    assert verdict.reason == (
        "1 of 1 cases ended before it was decided, one after 2 batches; with 3 batches every case is decided"
    )


def test_a_property_without_a_timeout_is_never_decided():
    verdict = ask(doubles, always(count("output") == count("input")), [[N(1)], [N(2)]])

    assert verdict.undecided
    assert "try timeouts: within=5, during=5" in verdict.reason


@pytest.mark.parametrize(
    ("formula", "trigger"),
    [
        (always(now(lambda u: len(u.input) > 9, name="many") >> (count("output") == 0), during=2), "many"),
        (always(all_records("output", lambda row: row.n > 0), during=2), "a record for"),
        (always(forall(lambda u: u.output, lambda row: eventually(lambda u: False), name="rows"), during=2), "rows"),
    ],
)
def test_a_trigger_that_never_came_leaves_it_undecided(formula: Formula, trigger: str):
    verdict = ask(lambda rows: [], formula, [[N(1)], [N(2)]])

    assert verdict.undecided
    assert "vacuous" in verdict.reason
    assert trigger in verdict.reason


def test_a_trigger_that_came_in_one_case_is_enough():
    formula = always(all_records("output", lambda row: row.n % 2 == 0), during=3)

    assert ask(doubles, formula, N).holds


def test_a_source_that_yields_no_batches_leaves_it_undecided():
    verdict = ask(doubles, SAME_COUNT, st.just([]))

    assert verdict.undecided
    assert verdict.reason == "vacuous: the source yields no batches"
    with pytest.raises(SourceError, match="one batch or more"):
        ask(doubles, SAME_COUNT, [])


def test_a_failing_case_is_not_run_to_its_end():
    backend = Backend(loses_nines)
    case = Schedule.of([N(9), N(1), N(1)], cuts=[1, 2])
    question = Question("", SAME_COUNT, cases_of(case), backend.words, lambda case: "")

    search(question, runs=1, seed=0)

    assert set(backend.batches_run) == {1}


def test_a_run_that_does_not_end_leaves_it_undecided():
    def slow(rows: Sequence[Event]) -> Sequence[Event]:
        raise TimeLimitError("batch 0", needed="an end", came="none", hint="more", seconds=5)

    verdict = ask(slow, SAME_COUNT, N)

    assert verdict.undecided
    assert verdict.reason == "a run did not end within 5 seconds"


def test_a_job_that_raises_is_not_judged():
    def raises(rows: Sequence[Event]) -> Sequence[Event]:
        raise JobError("the job", needed="", came="", hint="", batch=0, raised="ValueError")

    with pytest.raises(JobError) as caught:
        ask(raises, SAME_COUNT, N)
    assert caught.value.__notes__ == ["while asking: job keeps it"]


# -- did it say anything? --------------------------------------------------------------------------------------------


def has(number: int) -> Formula:
    return now(lambda u: any(row.n == number for row in u.input))


OK, BAD = now(lambda u: True).named("ok"), now(lambda u: False).named("bad")
NEVER = has(99).named("never")
WORD = [[N(1), N(2)], [N(3)], [N(1), N(3)]]


@pytest.mark.parametrize(
    "formula",
    [
        always(NEVER >> BAD, during=3),
        always(has(99) >> BAD, during=3) & always(has(1) >> OK, during=3),  # two tests with the same text
        always(OK >> (NEVER >> BAD), during=3),
        always(~(NEVER & ~BAD), during=3),
        always(~NEVER | BAD, during=3),
        always((NEVER >> BAD).named("a rule"), during=3),
        next_(NEVER >> BAD, 2),
        always(historically(NEVER >> BAD), during=3),
        always(forall(lambda u: u.input, lambda r: now(lambda u: r.n == 99) >> BAD), during=3),
        always(forall(lambda u: u.input, lambda r: forall(lambda u: [], lambda s: BAD)), during=3),
        always(~exists(lambda u: [], lambda r: BAD), during=3),
        always(all_records("output", lambda r: r.n > 0), during=3),
    ],
    ids=repr,
)
def test_what_never_asks_anything_is_not_called_true(formula: Formula):
    verdict = ask(lambda rows: [], formula, WORD)

    assert verdict.undecided
    assert verdict.reason.startswith("vacuous")


@pytest.mark.parametrize(
    "formula",
    [
        always((has(1) >> OK) | OK, during=3),
        until(has(1) >> OK, has(2), within=3),
        eventually(has(1) >> OK, within=3),
        always(forall(lambda u: u.input, lambda r: now(lambda u: r.n == 1) >> OK), during=3),
        always(forall(lambda u: u.input, lambda r: now(lambda u: r.n > 0)), during=3),
        always(no_record("output", lambda r: r.n < 0), during=3),
        always(~(has(1) & BAD), during=3),
    ],
    ids=repr,
)
def test_what_was_asked_is_not_called_vacuous(formula: Formula):
    assert ask(lambda rows: rows, formula, WORD).holds


def test_that_nothing_comes_out_may_be_what_is_promised():
    nothing_bad = no_record("output", lambda row: row.n < 0)

    assert ask(lambda rows: [], always(nothing_bad, during=3), WORD).holds
    assert ask(lambda rows: [], always(has(1) >> nothing_bad, during=3), WORD).holds
    assert ask(lambda rows: [], always(forall(lambda u: u.input, lambda row: nothing_bad), during=3), WORD).holds


def test_without_a_row_in_the_input_nothing_is_tested():
    verdict = ask(doubles, SAME_COUNT, [[], [], []])

    assert verdict.undecided
    assert "no row was in the input" in verdict.reason


def test_the_trigger_of_a_record_is_called_by_its_name():
    rule = forall(lambda u: u.input, lambda row: now(lambda u: row.n == 99).named("is 99") >> BAD, name="rows")

    assert "is 99, for a record of rows, was never seen" in ask(doubles, always(rule, during=3), WORD).reason


def test_a_test_that_remembers_other_cases_is_refused():
    seen = set()

    def are_new(letter: Letter) -> bool:
        new = {row.n for row in letter.output} - seen
        is_new = len(new) == len(letter.output)
        seen.update(new)
        return is_new

    with pytest.raises(FormulaError, match="so_far"):
        ask(lambda rows: rows, always(are_new, during=3), [[N(1)], [N(2)], [N(3)]])


def test_a_case_that_breaks_it_early_is_shown_rather_than_one_of_fewer_rows():
    streams = gen.always(gen.batch(N, size=(0, 3), n=range(10)), during=8)

    verdict = ask(loses_nines, always(count("output") == count("input"), during=8), streams, runs=100)

    assert verdict.counterexample.schedule == Schedule((((N(9),),),))


def test_batches_that_are_the_same_are_told_once():
    formula = always(count("output") == count("input"), during=4)

    table = ask(loses_nines, formula, [[], [], [], [N(9)]]).counterexample.table

    assert [row[0] for row in table.rows] == ["0-2", "3 *"]


def test_a_test_that_the_formula_does_not_reach_may_raise():
    empty = now(lambda u: not u.input).named("empty")
    first = now(lambda u: u.input[0].n > 0).named("first")

    assert ask(doubles, always(empty | first, during=3), [[], [N(1)], [N(2)]]).holds
    assert ask(doubles, always(~empty >> first, during=3), [[], [N(1)], [N(2)]]).holds


# -- stories that cannot be told in full -----------------------------------------------------------------------------


def test_a_row_for_which_a_test_would_raise_does_not_hide_the_one_for_which_it_is_false():
    maybe = Kind("M", n=int | None)

    verdict = ask(
        lambda rows: rows, always(all_records("output", lambda r: r.n > 0), during=2), [[maybe(-1), maybe(None)], []]
    )

    assert verdict.fails
    assert "is false of M(n=-1)" in verdict.counterexample.explanation


def test_a_case_with_a_restart_is_cut_before_it():
    case = Schedule((((N(9),),), ((N(1),),), ((N(2),),)), restarts=(Restart(after=1),))

    verdict = ask(lambda rows: rows, always(now(lambda u: all(r.n != 9 for r in u.input)), during=3), case)

    assert verdict.fails
    assert verdict.counterexample.schedule == Schedule((((N(9),),),))


def test_a_formula_that_a_test_returns_is_not_said_to_be_decided_sooner_than_it_is():
    verdict = ask(lambda rows: rows, now(lambda u: eventually(BAD, within=9)), [[N(1)], [N(1)]])

    assert verdict.undecided
    assert "try streams of 9 batches or more" in verdict.reason
