"""Jobs on RDDs."""

from __future__ import annotations

import re
import threading
from argparse import Action
from collections import namedtuple
from collections.abc import Callable
from datetime import datetime
from fractions import Fraction
from http import HTTPMethod
from typing import Any

import pytest
from pyspark import RDD
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, Row, SparkSession

import streamtight as tight
from streamtight import Cause, Kind, Restart, Schedule
from streamtight.errors import JobError, RowError, TimeLimitError, TraceError, UnsupportedError

pytestmark = pytest.mark.usefixtures("spark")

KV, N = Kind("KV", k=str, v=int), Kind("N", n=int)
Point = Kind("Point", x=int, y=int)


def numbers(*partitions: tuple[int, ...], shuffle_partitions: int = 1) -> Schedule:
    batch = tuple(tuple(N(n) for n in partition) for partition in partitions)
    return Schedule((batch,), shuffle_partitions=shuffle_partitions)


def same(rows: RDD[Any]) -> RDD[Any]:
    return rows


def output_of(job: Callable[..., object], schedule: Schedule, **options: Any) -> tight.Batch:
    [step] = tight.run(job, schedule, **{"takes": N, "mode": "rdd", **options}).steps
    return step.output


def given_out(element: Any, **options: Any) -> Any:
    """What becomes of one element that a job gives out."""
    [[event]] = output_of(lambda rows: rows.map(lambda row: element), numbers((1,)), **options)
    return event


def refused(element: Any, **options: Any) -> RowError:
    with pytest.raises(RowError) as caught:
        given_out(element, **options)
    return caught.value


# -- what goes in ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_each_partition_of_the_schedule_is_a_partition_of_the_rdd() -> None:
    def placed(rows: RDD[Any]) -> RDD[Any]:
        return rows.mapPartitionsWithIndex(lambda place, part: [(place, row.n) for row in part])

    output = output_of(placed, numbers((1,), (), (2, 3)))

    assert [[event.value for event in part] for part in output] == [[(0, 1)], [], [(2, 2), (2, 3)]]


def test_all_batches_are_there_at_once() -> None:
    schedule = Schedule((((N(1),), (N(2),)), ((),), ((N(3),), (), (N(4),))))

    run = tight.run(same, schedule, takes=N, gives=N, mode="rdd")

    assert run.batches == (((N(1), N(3)), (N(2),), (N(4),)),)
    assert [(step.batch, step.cause, step.input) for step in run.steps] == [(0, Cause.DATA, run.batches[0])]


def test_an_empty_schedule_is_an_rdd_without_elements() -> None:
    assert output_of(same, numbers((), ())) == ((), ())


def test_an_rdd_without_partitions_is_an_output_without_partitions() -> None:
    assert output_of(lambda rows: rows.context.emptyRDD(), numbers((1,))) == ()


def test_elements_are_rows_by_name_by_place_and_unpacked() -> None:
    def job(rows: RDD[Any]) -> RDD[Any]:
        def read(row):
            k, v = row
            return [k, v, row.k, row["v"], row[0], type(row).__name__]

        return rows.map(read)

    [[event]] = output_of(job, Schedule.of([KV("a", 1)]), takes=KV)

    assert event.value == ("a", 1, "a", 1, "a", "Row")


@pytest.mark.slow
def test_elements_are_what_the_rdd_of_a_frame_has(spark: SparkSession) -> None:
    kind = Kind("Deep", p=Point | None, ps=tuple[Point, ...], by=dict[str, Point | None], t=datetime, b=bytes)
    event = kind(Point(1, 2), (Point(3, 4),), {"a": Point(5, 6), "b": None}, datetime(2024, 1, 2, 3), b"x")
    nothing = kind(None, (), {}, datetime(2024, 1, 1), b"")
    seen: dict[str, list[Any]] = {}

    def of_an_rdd(rows: RDD[Any]) -> RDD[Any]:
        seen["rdd"] = rows.collect()
        return rows

    def of_a_frame(rows: DataFrame) -> DataFrame:
        seen["frame"] = rows.rdd.collect()
        return rows

    schedule = Schedule.of([event, nothing])
    from_rdd = tight.run(of_an_rdd, schedule, takes=kind, gives=kind, mode="rdd")
    from_frame = tight.run(of_a_frame, schedule, takes=kind, gives=kind, mode="batch")

    assert repr(seen["rdd"]) == repr(seen["frame"])  # repr, since a Row is equal to any tuple
    assert from_rdd.events == from_frame.events == (event, nothing)


def test_several_inputs_are_several_rdds() -> None:
    def matched(pairs: RDD[Any], wanted: RDD[Any]) -> RDD[Any]:
        by_value = pairs.map(lambda row: (row.v, row.k))
        return by_value.join(wanted.map(lambda row: (row.n, None))).map(lambda found: found[1][0])

    schedule = Schedule.of([KV("a", 1), N(2), KV("b", 2)])

    [[event]] = output_of(matched, schedule, takes={"pairs": KV, "wanted": N})

    assert event.value == "b"


def test_several_kinds_in_one_input_are_told_apart_as_in_a_frame() -> None:
    schedule = Schedule.of([KV("a", 1), N(2)])
    options: dict[str, Any] = {"takes": [KV, N], "gives": [KV, N]}

    in_rdd = tight.run(same, schedule, mode="rdd", **options)
    in_frame = tight.run(lambda rows: rows, schedule, mode="batch", **options)

    assert in_rdd.batches == in_frame.batches == schedule.batches


def test_a_shuffle_has_the_shuffle_partitions_of_the_schedule(spark: SparkSession) -> None:
    before = spark.sparkContext.defaultParallelism

    def by_rest(rows: RDD[Any]) -> RDD[Any]:
        return rows.map(lambda row: (row.n % 5, row.n)).reduceByKey(lambda a, b: a + b)

    output = output_of(by_rest, numbers((1, 6), (2, 7, 3), shuffle_partitions=3))

    assert [[event.value for event in part] for part in output] == [[(3, 3)], [(1, 7)], [(2, 9)]]
    assert spark.sparkContext.defaultParallelism == before


def test_a_job_may_make_rdds_of_its_own() -> None:
    def with_more(rows: RDD[Any]) -> RDD[Any]:
        return rows.map(lambda row: row.n).union(rows.context.parallelize([8, 9], 2))

    output = output_of(with_more, numbers((1,), (2,)))

    assert [[event.value for event in part] for part in output] == [[1], [2], [8], [9]]


def test_a_job_may_look_at_its_input_before_it_answers() -> None:
    def above_average(rows: RDD[Any]) -> RDD[Any]:
        average = rows.map(lambda row: row.n).mean()
        return rows.filter(lambda row: row.n > average)

    assert output_of(above_average, numbers((1, 2), (9,)), gives=N) == ((), (N(9),))


def test_a_job_may_use_frames_inside() -> None:
    def in_sql(rows: RDD[Any]) -> RDD[Any]:
        return rows.toDF().groupBy("n").count().orderBy("n").rdd

    output = output_of(in_sql, numbers((1, 2), (1,), shuffle_partitions=2))

    assert [tuple(event)[1:] for part in output for event in part] == [(1, 2), (2, 1)]
    assert len(output) == 2


def test_frames_inside_are_of_the_session_that_was_asked_also_after_a_foreach_batch(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").load()
    query = rows.writeStream.foreachBatch(lambda batch, number: None).trigger(once=True).start()
    query.awaitTermination(60)
    query.stop()

    output_of(lambda rows: rows.toDF().rdd, numbers((1, 2)))

    active = SparkSession.getActiveSession()
    assert active is not None
    assert active._jsparkSession.equals(spark._jsparkSession)


def test_what_a_job_caches_is_let_go_and_nothing_else(spark: SparkSession) -> None:
    mine = spark.sparkContext.parallelize([1]).cache()
    mine.count()
    cached = spark.sparkContext._jsc.getPersistentRDDs
    before = cached().size()

    output_of(lambda rows: rows.cache(), numbers((1,)))

    assert cached().size() == before
    assert cached().containsKey(mine.id())
    mine.unpersist()


# -- what comes out, without gives -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("element", "value"),
    [
        (5, 5),
        (None, None),
        ("a", "a"),
        (("a", 1), ("a", 1)),
        ((1,), (1,)),
        ([1, [2]], (1, (2,))),
        ({1, 2}, frozenset({1, 2})),
        ({"a": [1]}, {"a": (1,)}),
        (("a", Row(x=1)), ("a", (1,))),
        (Row(1, 2), (1, 2)),
    ],
    ids=repr,
)
def test_an_element_is_the_value_of_a_kind_named_after_the_job(element: Any, value: Any) -> None:
    def made(rows: RDD[Any]) -> RDD[Any]:
        return rows.map(lambda row: element)

    [[event]] = output_of(made, numbers((1,)))

    assert event.kind is Kind("made", value=object)
    assert event.value == value
    hash(event)


def test_a_row_keeps_its_names() -> None:
    event = given_out(Row(b=[1], a="x"))

    assert event == Kind("output", b=object, a=object)((1,), "x")


def test_a_named_tuple_keeps_its_names() -> None:
    def pairs(rows: RDD[Any]) -> RDD[Any]:
        return rows.mapPartitions(lambda part: [namedtuple("Pair", "v k")(row.n, "a") for row in part])

    [[event]] = output_of(pairs, numbers((1,)))

    assert event == Kind("pairs", v=object, k=object)(1, "a")


def test_elements_of_different_shapes_are_events_of_different_kinds() -> None:
    def mixed(rows: RDD[Any]) -> RDD[Any]:
        return rows.map(lambda row: Row(n=row.n) if row.n > 1 else row.n)

    output = output_of(mixed, numbers((1, 2)))

    assert output == ((Kind("mixed", value=object)(1), Kind("mixed", n=object)(2)),)


def test_an_event_comes_out_as_it_is() -> None:
    assert given_out(KV("a", 1)) == given_out(KV("a", 1), gives=KV) == KV("a", 1)
    assert "N(n: int)" in str(refused(N(1), gives=KV))


def test_a_value_that_cannot_be_hashed_is_refused() -> None:
    error = refused([bytearray(b"x")])

    assert error.where == "partition 0 of the job's output, element 0: [bytearray(b'x')]"
    assert "hashed" in error.hint


def test_a_value_that_is_equal_only_to_itself_is_refused() -> None:
    error = refused({"a": [Action(["-a"], "a")]})  # any class without an equality that workers know

    assert error.came == "an object of Action, which is equal to nothing but itself"


def test_values_with_an_equality_of_their_own_are_fine() -> None:
    assert given_out(Fraction(1, 2)).value == Fraction(1, 2)


def test_members_and_classes_are_values() -> None:
    assert given_out((HTTPMethod.GET, int, None)).value == (HTTPMethod.GET, int, None)


@pytest.mark.parametrize("names", [["kind", "n"], ["n", "n"]])
def test_a_row_with_names_that_an_event_cannot_have_is_refused(names: list[str]) -> None:
    error = refused(Row(*names)(1, 2))

    assert error.came == ", ".join(names)
    assert "gives=[...]" in error.hint


# -- what comes out, with gives --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "element",
    [Row(k="a", v=1), Row(v=1, k="a"), {"v": 1, "k": "a"}, ("a", 1), ["a", 1], Row("a", 1)],
    ids=["row", "row in another order", "dict", "tuple", "list", "row without names"],
)
def test_an_element_is_an_event_by_name_or_by_position(element: Any) -> None:
    assert given_out(element, gives=KV) == KV("a", 1)


def test_a_named_tuple_is_read_by_name() -> None:
    def pairs(rows: RDD[Any]) -> RDD[Any]:
        return rows.mapPartitions(lambda part: [namedtuple("Pair", "v k")(row.n, "a") for row in part])

    assert output_of(pairs, numbers((1,)), gives=KV) == ((KV("a", 1),),)


@pytest.mark.parametrize("element", [5, (5,), [5], Row(n=5), {"n": 5}], ids=repr)
def test_a_kind_of_one_field_takes_a_plain_value_too(element: Any) -> None:
    assert given_out(element, gives=N) == N(5)


Numbers, Counts, Thing = (
    Kind("Numbers", ns=tuple[int, ...]),
    Kind("Counts", by=dict[str, int]),
    Kind("Thing", it=object),
)


@pytest.mark.parametrize(
    ("element", "event"),
    [
        ([1, 2], Numbers((1, 2))),
        ((1,), Numbers((1,))),
        (Row(ns=[1]), Numbers((1,))),
        ({"ns": (1,)}, Numbers((1,))),
        ({"by": 1}, Counts({"by": 1})),
        (({"a": 1},), Counts({"a": 1})),
        ((1,), Thing((1,))),
        ({"it": 1}, Thing({"it": 1})),
        (Row(it=1), Thing(1)),
    ],
    ids=repr,
)
def test_an_only_field_that_can_hold_a_whole_element_does(element: Any, event: tight.Event) -> None:
    assert given_out(element, gives=event.kind) == event


def test_rows_inside_of_elements_become_events() -> None:
    deep = Kind("Deep", p=Point | None, ps=tuple[Point, ...], by=dict[str, Point])

    event = given_out(Row(p=None, ps=[Row(y=2, x=1), (3, 4)], by={"a": {"x": 5, "y": 6}}), gives=deep)

    assert event == deep(None, (Point(1, 2), Point(3, 4)), {"a": Point(5, 6)})


@pytest.mark.parametrize(
    ("element", "came"),
    [
        (Row(k="a", n=1), "k, n"),
        ({"k": "a"}, "k"),
        ({1: "a", 2: 1}, "names that are not all text, or come twice"),
        (Row("k", "k")("a", 1), "names that are not all text, or come twice"),
        (("a", 1, 2), "3 values"),
        ("ab", "one value, of type str"),
        (None, "one value, of type NoneType"),
        (("a", "b"), "'b'"),
        ((None, 1), "None"),
    ],
    ids=repr,
)
def test_an_element_of_another_shape_is_refused_and_shown(element: Any, came: str) -> None:
    error = refused(element, gives=KV)

    assert error.where == f"partition 0 of the job's output, element 0: {element!r}"
    assert came in error.came


def test_the_place_of_a_wrong_element_is_told() -> None:
    def one_wrong(rows: RDD[Any]) -> RDD[Any]:
        return rows.map(lambda row: row.n if row.n < 4 else "four" * 1000)

    with pytest.raises(RowError) as caught:
        output_of(one_wrong, numbers((1,), (2, 3, 4)), gives=N)

    assert caught.value.where.startswith("partition 1 of the job's output, element 2: 'fourfour")
    assert len(str(caught.value)) < 1000


def test_an_element_too_long_to_write_out_is_refused_too() -> None:
    assert refused([10**5000], gives=KV).where.endswith("a list with a number too long to show")


@pytest.mark.parametrize(
    "element", [N(1), Row(kind="N", n=1), {"kind": "N", "n": 1}, Row(kind="N", n=1, k=None, v=None)], ids=repr
)
def test_of_several_kinds_an_element_names_its_own(element: Any) -> None:
    assert given_out(element, gives=[KV, N]) == N(1)


@pytest.mark.parametrize(
    "element",
    [1, ("N", 1), Row(n=1), Row(kind="M", n=1), Row(kind="N", n=1, k="a"), Row(kind=["N"], n=1), Kind("M", n=int)(1)],
    ids=repr,
)
def test_of_several_kinds_an_element_that_names_none_is_refused(element: Any) -> None:
    refused(element, gives=[KV, N])


def test_several_kinds_of_one_name_are_refused() -> None:
    with pytest.raises(RowError, match="different names"):
        output_of(same, numbers((1,)), gives=[N, Kind("N", m=int)])


# -- jobs that fail --------------------------------------------------------------------------------------------------


def fails_at_three(rows: RDD[Any]) -> RDD[Any]:
    def check(row):
        if row.n == 3:
            raise ValueError("three is too much")
        return row

    return rows.map(check)


def error_of(job: Any, schedule: Schedule | None = None, **options: Any) -> JobError:
    with pytest.raises(JobError) as caught:
        output_of(job, schedule or numbers((1, 2), (3,)), **options)
    return caught.value


@pytest.mark.parametrize(
    "job",
    [
        fails_at_three,
        lambda rows: fails_at_three(rows).sortBy(lambda row: row.n),
        lambda rows: rows.context.parallelize([fails_at_three(rows).count()]),
    ],
    ids=["in its own tasks", "in a sort", "in a count"],
)
def test_an_exception_in_a_task_is_told_with_its_line(job: Any) -> None:
    error = error_of(job)

    assert (error.batch, error.raised) == (0, "ValueError: three is too much")
    assert re.fullmatch(rf"look at {re.escape(__file__)}, line \d+, in check", error.hint)
    assert "three is too much" in str(error.__cause__)


def test_what_cannot_be_sent_to_the_tasks_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    lock = threading.Lock()

    error = error_of(lambda rows: rows.map(lambda row: (row, lock)))

    assert "cannot pickle '_thread.lock' object" in error.raised


def test_an_exception_while_the_job_is_built_comes_as_it_is() -> None:
    def job(rows: RDD[Any]) -> RDD[Any]:
        raise KeyError("a setting")

    with pytest.raises(KeyError, match="a setting"):
        output_of(job, numbers((1,)))


def test_an_unknown_column_comes_as_sparks_own_exception() -> None:
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        output_of(lambda rows: rows.toDF().select("x").rdd, numbers((1,)))


@pytest.mark.parametrize(
    ("job", "came", "hint"),
    [
        (lambda rows: None, "None", "before collect"),
        (lambda rows: rows.collect(), r"\[Row\(n=1\)\]", "before collect"),
        (lambda rows: rows.toDF(), r"DataFrame\[n: bigint\]", r"\.rdd of that DataFrame"),
        (lambda rows: {"good": rows}, "'good'", "output='good'"),
        (lambda: None, "too many positional", "several inputs"),
    ],
    ids=["nothing", "a list", "a frame", "a dict", "no parameter"],
)
def test_a_job_that_is_not_from_rdd_to_rdd_is_refused(job: Any, came: str, hint: str) -> None:
    error = error_of(job, numbers((1,)))

    assert re.search(came, error.came)
    assert re.search(hint, error.hint)
    assert error.batch is None


def test_one_of_several_outputs_can_be_asked_for() -> None:
    def split(rows: RDD[Any]) -> dict[str, RDD[Any]]:
        return {"odd": rows.filter(lambda row: row.n % 2), "even": rows.filter(lambda row: row.n % 2 == 0)}

    schedule = numbers((1, 2), (3,))

    assert output_of(split, schedule, output="odd", gives=N) == ((N(1),), (N(3),))
    runs = tight.run_all(split, schedule, takes=N, gives={"odd": N, "even": N}, mode="rdd")
    assert {name: run.events for name, run in runs.items()} == {"odd": (N(1), N(3)), "even": (N(2),)}


@pytest.mark.parametrize(
    ("schedule", "options"),
    [(numbers((1,)), {"flush": True}), (Schedule.of([N(1)], restarts=[Restart(0)]), {})],
    ids=["flush", "restart"],
)
def test_an_rdd_has_no_restart_and_no_flush(schedule: Schedule, options: dict[str, Any]) -> None:
    with pytest.raises(TraceError, match=r"run\(mode='rdd'\)"):
        output_of(same, schedule, **options)


def slow(rows: RDD[Any]) -> RDD[Any]:
    def wait(row):
        import time

        time.sleep(15)
        return row

    return rows.map(wait)


@pytest.mark.parametrize(
    "job", [slow, lambda rows: slow(rows).sortBy(lambda row: row.n)], ids=["slow", "slow to build"]
)
@pytest.mark.slow
def test_a_slow_job_is_stopped_and_the_session_goes_on(job: Any, spark: SparkSession) -> None:
    with pytest.raises(TimeLimitError) as caught:
        output_of(job, numbers((1,), (2,)), limit=2)

    assert caught.value.seconds == 2
    assert not spark.sparkContext.getJobTags()
    assert output_of(same, numbers((1,)), gives=N) == ((N(1),),)


def test_settings_are_as_before_a_run_that_fails(spark: SparkSession) -> None:
    def seen() -> tuple[object, ...]:
        return dict(spark.conf.getAll), spark.sparkContext.defaultParallelism

    before = seen()

    error_of(fails_at_three, numbers((3,), shuffle_partitions=7))

    assert seen() == before


def test_a_context_without_a_parallelism_of_its_own_has_none_afterwards(spark: SparkSession) -> None:
    conf = spark.sparkContext._conf
    own = conf.get("spark.default.parallelism")
    assert own is not None
    conf._jconf.remove("spark.default.parallelism")
    try:
        output_of(same, numbers((1,)))

        assert conf.get("spark.default.parallelism") is None
    finally:
        conf.set("spark.default.parallelism", own)


def test_spark_connect_has_no_rdds() -> None:
    remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()

    with pytest.raises(UnsupportedError, match="Spark Connect has no RDDs"):
        output_of(same, numbers((1,)), spark=remote)


def test_many_runs_are_run_alone() -> None:
    packed = tight.run_many(same, [numbers((1,)), numbers((2,))], takes=N, gives=N, mode="rdd")

    assert [run.events for run in packed.runs] == [(N(1),), (N(2),)]
    assert (packed.way, packed.why_not) == ("alone", "an RDD job may look at all of its input at once")
