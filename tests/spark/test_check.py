"""Does every run of a job keep a temporal property? Asked on Spark."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from pyspark.sql import functions as sf
from pyspark.sql.types import LongType

import streamtight as tight
from streamtight import gen
from streamtight.errors import FieldError, FormulaError, JobError, PredicateError, SourceError, TraceError

User = tight.Kind("User", id=int, ok=bool)
Order = tight.Kind("Order", number=int)
Shipment = tight.Kind("Shipment", shipped=int)
BAD = User(15, ok=False)

good_batch = gen.batch(User, size=(1, 3), id=range(1, 20), ok=[True])
bad_batch = good_batch + gen.batch_of([BAD])
users = gen.until(good_batch, bad_batch, within=3) + gen.always(good_batch | bad_batch, during=5)

bad = tight.some_record("input", lambda user: user == BAD)
banned = tight.some_record("output", lambda row: row.id == 15)
stays_banned = tight.always(bad >> tight.always(banned, during=3), during=4)


def stateless(rows):
    return rows.where("NOT ok").select("id")


def ever(rows):
    return rows.where("NOT ok").groupBy("id").count().select("id")


def test_a_job_that_forgets_breaks_the_property_with_two_batches(spark):
    verdict = tight.check(stateless, stays_banned, on=users, runs=10)

    found = verdict.counterexample
    assert found.finding == "VIOLATED"
    assert len(found.schedule.batches) == 2
    assert found.schedule.batches[0][0][-1] == BAD
    assert "at batch 1 some_record('output', row.id == 15) is false" in found.explanation
    assert found.failing_reruns == 3


@pytest.mark.slow
def test_a_job_that_remembers_keeps_it_and_cases_share_a_query(spark):
    verdict = tight.check(ever, stays_banned, on=users, runs=12, mode="complete")

    assert verdict.holds
    assert verdict.cost["cases"] == 12


@pytest.mark.slow
def test_the_same_seed_gives_the_same_answer(spark):
    first, second = (tight.check(stateless, stays_banned, on=users, runs=5, seed=4) for _ in range(2))

    assert first.counterexample.schedule == second.counterexample.schedule


def test_a_letter_has_the_rows_of_its_own_micro_batch_and_the_watermark(spark):
    Timed = tight.Kind("Timed", at=datetime, n=int)  # noqa: N806 - a kind
    noon = datetime(2024, 5, 1, 12)
    stream = [[Timed(noon + timedelta(minutes=10 * k), k)] for k in range(4)]
    seen = []

    def note(letter):
        seen.append((letter.batch, [e.n for e in letter.input], [e.n for e in letter.output], letter.watermark))
        return True

    tight.check(
        lambda rows: rows.withWatermark("at", "5 minutes").select("n"), tight.always(note, during=4), on=stream
    ).require()

    assert [entry[:3] for entry in seen[:4]] == [(k, [k], [k]) for k in range(4)]  # the first case is judged twice
    assert seen[2][3] == noon + timedelta(minutes=5)


def test_timeouts_in_event_time_follow_the_input(spark):
    Timed = tight.Kind("Timed", at=datetime, n=int)  # noqa: N806 - a kind
    noon = datetime(2024, 5, 1, 12)
    stream = [[Timed(noon + timedelta(minutes=10 * k), k)] for k in range(4)]
    soon = tight.eventually(tight.some_record("output", lambda row: row.n == 2), within=timedelta(minutes=20))
    too_soon = tight.eventually(tight.some_record("output", lambda row: row.n == 2), within=timedelta(minutes=19))

    assert tight.check(lambda rows: rows.select("n"), soon, on=stream).holds
    assert tight.check(lambda rows: rows.select("n"), too_soon, on=stream).fails


def test_several_inputs_and_outputs_are_letters_of_one_word(spark):
    def split(orders, shipments):
        return {"open": orders.select("number"), "done": shipments.select("shipped")}

    stream = [[Order(1), Shipment(2)], [Shipment(1)]]
    formula = tight.forall(
        lambda u: u["open"], lambda row: tight.eventually(tight.count("done", lambda s: s.shipped == row.number) == 1)
    )

    verdict = tight.check(
        split,
        formula,
        on=stream,
        takes={"orders": Order, "shipments": Shipment},
        gives={"open": None, "done": None},
    )

    assert verdict.holds


@pytest.mark.parametrize("mode", ["batch", "rdd"])
def test_a_static_job_is_a_word_of_one_letter(spark, mode):
    def job(rows):
        return rows.where("ok") if mode == "batch" else rows.filter(lambda row: row.ok)

    kept = tight.all_records("output", lambda row: row.ok) & (tight.count("output") <= tight.count("input"))

    assert tight.check(job, kept, on=User, mode=mode, gives=User, runs=5).holds


def test_a_test_may_read_a_stream_as_a_dataframe(spark):
    formula = tight.always(tight.on_frame("output", lambda df: df.where("id < 0").count() == 0), during=2)

    assert tight.check(stateless, formula, on=[[BAD], []]).holds


def test_rows_that_differ_are_shown_side_by_side(spark):
    wanted = tight.same_rows("output", lambda u: [(user.id + 1,) for user in u.input])

    verdict = tight.check(lambda rows: rows.select("id"), wanted, on=[[User(1, ok=True), User(2, ok=True)]])

    assert "  came   expected" in verdict.counterexample.explanation
    assert "  id=2   id=2" in verdict.counterexample.explanation
    assert "* id=1   -" in verdict.counterexample.explanation
    assert "* -      id=3" in verdict.counterexample.explanation


@pytest.mark.slow
def test_the_replay_can_be_pasted(spark):
    replay = tight.check(stateless, stays_banned, on=users, runs=5).counterexample.replay

    assert "from test_check import stays_banned" in replay
    with pytest.raises(AssertionError, match="VIOLATED"):
        exec(replay, {})


@pytest.mark.slow
def test_a_failing_case_is_kept_and_tried_first_the_next_time(spark, tmp_path):
    from hypothesis.database import DirectoryBasedExampleDatabase

    def up_to_ninety(rows):
        return rows.where("id < 90")

    every_row = tight.always(tight.count("output") == tight.count("input"), during=2)
    some = gen.always(gen.batch(User, size=1, id=range(100)), during=2)
    kept = settings(max_examples=50, database=DirectoryBasedExampleDatabase(tmp_path))

    first = tight.check(up_to_ninety, every_row, on=some, settings=kept)
    again = tight.check(up_to_ninety, every_row, on=some, settings=kept, seed=5)
    elsewhere = tight.check(up_to_ninety, every_row, on=some, settings=settings(kept, database=None), seed=5)

    assert again.counterexample.schedule == first.counterexample.schedule
    assert again.cost["cases"] == 1
    assert elsewhere.cost["cases"] > 1


@tight.property(ever, on=users, mode="complete", runs=3)
def test_a_property_is_a_test_of_pytest():
    return stays_banned


@pytest.fixture
def formula():
    return stays_banned


@tight.property(ever, on=users, mode="complete")
@settings(max_examples=2)
def test_a_property_takes_fixtures_and_settings(formula):
    return formula


def test_the_settings_below_a_property_say_how_many_cases_there_are(spark, monkeypatch):
    seen = []
    monkeypatch.setattr(tight.Verdict, "require", lambda verdict: seen.append(verdict.scope.count))

    test_a_property_takes_fixtures_and_settings(stays_banned)

    assert seen == [2]


def test_a_property_that_fails_raises_with_the_story(spark):
    @tight.property(stateless, on=users, runs=3)
    def wrong():
        return stays_banned

    with pytest.raises(AssertionError, match="VIOLATED"):
        wrong()


# -- bad input -------------------------------------------------------------------------------------------------------


def test_a_test_that_raises_tells_its_own_error_with_letter_and_record(spark):
    formula = tight.always(tight.all_records("output", lambda row: 1 / (row.id - 15) > 0), during=2)

    with pytest.raises(PredicateError, match="ZeroDivisionError") as caught:
        tight.check(stateless, formula, on=[[User(1, ok=True)], [BAD]])
    assert caught.value.letter == 1
    assert caught.value.record.id == 15


def test_a_stream_that_is_not_there_is_known_before_the_job_runs(spark):
    with pytest.raises(FormulaError, match="'outputs'"):
        tight.check(stateless, tight.count("outputs") == 1, on=[[BAD]])


@pytest.mark.parametrize("formula", [tight.TRUE, tight.FALSE, tight.always(tight.TRUE), False])
def test_a_formula_that_reads_nothing_asks_nothing(spark, formula):
    with pytest.raises(FormulaError, match="reads the batches"):
        tight.check(stateless, formula, on=[[BAD]])


def test_what_belongs_elsewhere_is_told_where(spark):
    with pytest.raises(FormulaError, match="where streams come from"):
        tight.check(stateless, users, on=users)
    with pytest.raises(SourceError, match="a formula"):
        tight.check(stateless, stays_banned, on=stays_banned)
    with pytest.raises(TraceError, match="different names"):
        tight.check(stateless, stays_banned, on=users, takes={"x": User}, gives={"x": None})
    with pytest.raises(FormulaError, match="one batch decides"):
        tight.check(stateless, stays_banned, on=users, mode="batch")
    with pytest.raises(FormulaError, match="a test of a letter"):
        tight.check(stateless, tight.always("bad", during=2), on=users)
    with pytest.raises(SourceError, match="needed an operator of generators"):
        tight.check(stateless, stays_banned, on=users and users)


def test_a_property_that_is_written_wrongly_says_how_it_is_written():
    with pytest.raises(SourceError, match=r"no on=\.\.\."):
        tight.property(stateless)
    with pytest.raises(SourceError, match="no job"):
        tight.property(on=users)


def test_a_property_that_returns_nothing_is_told_to(spark):
    @tight.property(stateless, on=users)
    def nothing():
        pass

    with pytest.raises(FormulaError, match="what nothing returns"):
        nothing()


def test_an_empty_first_batch_has_the_time_of_the_first_row(spark):
    Timed = tight.Kind("Timed", at=datetime)  # noqa: N806 - a kind
    noon = datetime(2024, 5, 1, 12)
    batches = [[], [Timed(noon)], [Timed(noon + timedelta(minutes=5))]]
    same = tight.count("output") == tight.count("input")

    assert tight.check(lambda df: df, tight.always(same, during=timedelta(minutes=2)), on=batches).holds


def test_a_column_that_is_not_there_is_named(spark):
    with pytest.raises(FieldError, match="name"):
        tight.check(stateless, tight.some_record("output", lambda row: row.name == "x"), on=[[BAD]])


def test_a_job_that_raises_tells_its_own_error(spark):
    with pytest.raises(JobError, match=r"DIVIDE_BY_ZERO|[Dd]ivision by zero") as caught:
        tight.check(lambda rows: rows.selectExpr("1 div (id - 15) AS x"), stays_banned, on=[[User(1, ok=True)], [BAD]])
    assert caught.value.batch == 1


def test_a_query_that_never_ends_is_undecided(spark):
    def sleeps(rows):
        return rows.select(sf.udf(lambda x: time.sleep(60) or x, LongType())("id").alias("id"))

    verdict = tight.check(sleeps, stays_banned, on=[[BAD]], limit=4)

    assert verdict.undecided
    assert verdict.reason == "a run did not end within 4 seconds"


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"mode": "appendix"}, TraceError, "one of append"),
        ({"runs": 0}, TraceError, "a whole number from 1"),
        ({"on": 5}, SourceError, "5"),
        ({"on": [[1]]}, SourceError, "1"),
    ],
)
def test_a_wrong_question_is_refused(spark, change, error, said):
    with pytest.raises(error) as caught:
        tight.check(stateless, stays_banned, **{"on": users, **change})
    assert said in str(caught.value)


def test_what_is_no_formula_is_refused(spark):
    with pytest.raises(FormulaError, match="a formula, a function of a letter"):
        tight.check(stateless, 5, on=users)
