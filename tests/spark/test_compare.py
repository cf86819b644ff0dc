from __future__ import annotations

import time

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

import streamtight as tight
from streamtight.errors import JobError, SourceError, TraceError

Position = tight.Kind("Position", taxi_id=int, x=int)
Item = tight.Kind("Item", key=str, x=int)
BY_TAXI = tight.PartitionBy("taxi_id", tight.Seq(Position))
EACH_TAXI = tight.same("taxi_id")


def metres(df):
    return df.selectExpr("taxi_id", "x * 1000 AS x")


def sequential(df):
    return metres(df.coalesce(1))


def by_taxi_first(df):
    return metres(df.repartition("taxi_id"))


def by_taxi_last(df):
    return metres(df.repartition(4)).repartition("taxi_id")


def positions(**options):
    return tight.generated(BY_TAXI, taxi_id=[1, 2, 3], x=range(5), **options)


# -- two jobs ---------------------------------------------------------------------------------------------------------


def test_a_job_that_keeps_the_order_holds(spark):
    verdict = tight.compare(sequential, by_taxi_first, on=positions(), upto=EACH_TAXI, runs=20, seed=1)

    assert verdict.holds
    assert verdict.scope.count == 20
    assert verdict.cost["traces_per_minute"] > 0


@pytest.mark.slow
def test_a_job_that_loses_the_order_fails_with_two_rows_of_one_taxi(spark):
    verdict = tight.compare(sequential, by_taxi_last, on=positions(), upto=EACH_TAXI, seed=1)

    found = verdict.counterexample
    assert found.finding == "ORDER_LOST"
    assert len(found.schedule.events) == 2
    assert len({event.taxi_id for event in found.schedule.events}) == 1
    assert found.failing_reruns == 3


@pytest.mark.slow
def test_the_replay_shows_it_again(spark):
    found = tight.compare(sequential, by_taxi_last, on=positions(), upto=EACH_TAXI, seed=1).counterexample
    lines = [line for line in found.replay.splitlines() if not line.startswith("from test_compare")]

    with pytest.raises(AssertionError, match="ORDER_LOST"):
        exec("\n".join(lines), {"sequential": sequential, "by_taxi_last": by_taxi_last})
    assert "from test_compare import by_taxi_last" in found.replay


@pytest.mark.slow
def test_the_replay_of_a_job_with_two_inputs_and_no_name_can_be_pasted(spark):
    Base = tight.Kind("Base", taxi_id=int)  # noqa: N806 - a kind
    takes = {"drives": Position, "bases": Base}
    drives = [Position(1, 0), Base(1), Base(1)]

    verdict = tight.compare(
        lambda drives, bases: drives.join(bases, "taxi_id"),
        lambda drives, bases: drives.join(bases.distinct(), "taxi_id"),
        on=tight.Schedule.of(drives),
        takes=takes,
    )

    replay = verdict.counterexample.replay
    assert "tight.compare(reference, candidate, on=schedule, takes={'drives': Position, 'bases': Base}" in replay
    with pytest.raises(AssertionError, match="MISSING_ROWS"):
        exec(
            replay,
            {
                "reference": lambda drives, bases: drives.join(bases, "taxi_id"),
                "candidate": lambda drives, bases: drives.join(bases.distinct(), "taxi_id"),
            },
        )


@pytest.mark.slow
def test_rows_spread_over_partitions_may_arrive_either_way(spark):
    verdict = tight.compare(sequential, lambda df: metres(df.repartition(4)), on=positions(), upto=EACH_TAXI, seed=1)

    assert verdict.counterexample.finding == "RACE"


@pytest.mark.slow
def test_batch_jobs_and_rdd_jobs_are_compared_too(spark):
    def distinct(df):
        return df.select("taxi_id").distinct()

    def grouped(df):
        return df.groupBy("taxi_id").count().select("taxi_id")

    def not_distinct(df):
        return df.select("taxi_id")

    assert tight.compare(distinct, grouped, on=positions(), mode="batch", runs=6).holds
    verdict = tight.compare(distinct, not_distinct, on=positions(), mode="batch", runs=6)
    assert verdict.counterexample.finding == "EXTRA_ROWS"
    assert len(verdict.counterexample.schedule.events) == 2

    def doubled(rdd):
        return rdd.map(lambda row: (row.taxi_id, row.x * 2))

    def doubled_otherwise(rdd):
        return rdd.map(lambda row: (row.taxi_id, row.x + row.x))

    def squared(rdd):
        return rdd.map(lambda row: (row.taxi_id, row.x * row.x))

    assert tight.compare(doubled, doubled_otherwise, on=positions(), mode="rdd", runs=6).holds
    verdict = tight.compare(doubled, squared, on=positions(), mode="rdd", runs=6)
    assert verdict.counterexample.finding == "WRONG_ROWS"


def test_a_batch_reference_may_stand_against_a_stream(spark):
    def counts(df):
        return df.groupBy("taxi_id").count()

    verdict = tight.compare(counts, counts, on=positions(), mode="complete", reference_mode="batch", runs=4)

    assert verdict.holds


@pytest.mark.slow
def test_one_job_is_asked_whether_it_is_deterministic(spark):
    def first_of_each(df):
        return df.groupBy("taxi_id").agg(F.first("x").alias("x"))

    any_order = tight.generated(Position, upto=tight.unordered, taxi_id=[1], x=range(5), size=(2, 6))
    verdict = tight.compare(first_of_each, first_of_each, on=any_order, mode="batch", runs=20)

    assert verdict.counterexample.finding == "WRONG_ROWS"
    assert len(verdict.counterexample.schedule.events) == 2


@pytest.mark.slow
def test_updates_are_folded_by_the_columns_of_the_group_by(spark):
    def counts(df):
        return df.groupBy((F.col("x") % 2).alias("odd"), "taxi_id").count()

    def wrong_counts(df):
        return df.where("x != 4").groupBy((F.col("x") % 2).alias("odd"), "taxi_id").count()

    assert tight.compare(counts, counts, on=positions(), mode="update", runs=4).holds
    verdict = tight.compare(counts, wrong_counts, on=positions(), mode="update", runs=10)
    assert verdict.counterexample.finding == "MISSING_ROWS"
    assert "key=" in verdict.counterexample.replay


def test_updates_of_a_job_that_does_not_show_its_key_need_one(spark):
    def renamed(df):
        return df.groupBy("taxi_id").count().selectExpr("taxi_id + 1 AS other", "count")

    with pytest.raises(TraceError, match="key="):
        tight.compare(renamed, renamed, on=positions(), mode="update", runs=2)
    assert tight.compare(renamed, renamed, on=positions(), mode="update", key="other", runs=2).holds


# -- accepted nondeterminism ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_any_right_output_is_right_and_a_wrong_one_still_fails(spark):
    def first_n(df):
        return df.groupBy("key").agg(F.slice(F.collect_list("x"), 1, 2).alias("xs"))

    def too_many(df):
        return df.groupBy("key").agg(F.slice(F.collect_list("x"), 1, 3).alias("xs"))

    def some_of_the_group(given, came):
        xs = [item.x for item in given]
        return len(came) == 1 and len(came[0].xs) == min(2, len(xs)) and all(x in xs for x in came[0].xs)

    source = tight.generated(Item, upto=tight.unordered, key=["a", "b"], x=range(4))
    right = tight.allowed(some_of_the_group, by="key")

    assert tight.compare(right, first_n, on=source, mode="batch", runs=10).holds
    verdict = tight.compare(right, too_many, on=source, mode="batch", runs=10)
    assert verdict.counterexample.finding == "NOT_ALLOWED"
    assert len(verdict.counterexample.schedule.events) == 3


# -- bad input --------------------------------------------------------------------------------------------------------


def test_a_source_that_yields_nothing_is_undecided(spark):
    verdict = tight.compare(sequential, by_taxi_first, on=[], takes=Position, upto=EACH_TAXI)

    assert verdict.undecided
    assert "the source yields nothing" in verdict.reason


def test_a_function_that_yields_nothing_is_undecided(spark):
    verdict = tight.compare(sequential, by_taxi_first, on=lambda rng: [], upto=EACH_TAXI)

    assert verdict.undecided
    assert "the source yields nothing" in verdict.reason


def test_a_claim_says_that_inputs_in_one_order_have_one_partition(spark):
    verdict = tight.compare(sequential, sequential, on=[Position(1, 1)], runs=2)

    assert verdict.claim.endswith("given its input in one partition")


def test_jobs_that_give_no_row_are_undecided(spark):
    def nothing(df):
        return df.where("false")

    verdict = tight.compare(nothing, nothing, on=positions(), runs=3)

    assert verdict.undecided
    assert "neither job gave a row" in verdict.reason or "the job gave no row" in verdict.reason


def test_a_job_that_raises_tells_its_own_error_and_the_batch(spark):
    def raises(df):
        return df.selectExpr("taxi_id", "x div (x - 3) AS x")

    with pytest.raises(JobError, match=r"DIVIDE_BY_ZERO|[Dd]ivision by zero") as raised:
        tight.compare(raises, raises, on=[Position(1, 1), Position(1, 3)], runs=2)
    assert raised.value.batch is not None
    assert str(raised.value).startswith("the job raises, in batch ")


@pytest.mark.slow
def test_a_query_that_never_ends_is_undecided(spark):
    def sleeps(df):
        slow = F.udf(lambda x: time.sleep(60) or x, LongType())
        return df.select("taxi_id", slow("x").alias("x"))

    verdict = tight.compare(sequential, sleeps, on=positions(size=(1, 2)), runs=2, limit=3)

    assert verdict.undecided
    assert "within 3 seconds" in verdict.reason


def test_jobs_of_different_columns_are_refused(spark):
    def other_columns(df):
        return df.selectExpr("taxi_id AS taxi", "x")

    with pytest.raises(TraceError, match="the same columns") as raised:
        tight.compare(sequential, other_columns, on=positions(size=(2, 3)), runs=2)
    assert "taxi_id" in str(raised.value)
    assert "taxi:" in str(raised.value)


def test_a_relation_on_a_field_that_the_output_lacks_is_refused(spark):
    with pytest.raises(tight.StreamtightError, match="'driver'"):
        tight.compare(sequential, by_taxi_first, on=positions(), upto=tight.same("driver"), runs=2)


def test_an_unknown_kind_in_the_input_is_refused(spark):
    with pytest.raises(tight.StreamtightError, match="Item"):
        tight.compare(sequential, by_taxi_first, on=[Item("a", 1)], takes=Position)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"on": None}, TraceError, "where the inputs come from"),
        ({"on": 5}, SourceError, "5"),
        ({"upto": "taxi_id"}, TraceError, "a dependence or a schema"),
        ({"mode": "appendix"}, TraceError, "one of append"),
        ({"mode": "update", "upto": EACH_TAXI}, TraceError, "a table"),
        ({"promise": EACH_TAXI}, TraceError, "a Schedule as on="),
        ({"runs": 0}, TraceError, "a whole number from 1"),
        ({"runs": "5"}, TraceError, "a whole number from 1"),
    ],
    ids=str,
)
def test_a_wrong_question_is_refused(spark, change, error, said):
    asked = {"on": positions(), "upto": EACH_TAXI, "runs": 1, **change}

    with pytest.raises(error) as raised:
        tight.compare(sequential, by_taxi_first, **asked)
    assert said in str(raised.value)


def test_what_is_no_job_is_refused(spark):
    with pytest.raises(JobError, match="a function"):
        tight.compare(sequential, 5, on=positions())
