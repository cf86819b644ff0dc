"""Jobs on DStreams: exact batches, no time waited for."""

from __future__ import annotations

import pytest

import streamtight as tight
from streamtight import gen
from streamtight.errors import JobError

Reading = tight.Kind("Reading", sensor=str, value=int)
Count = tight.Kind("Count", n=int)
readings = gen.always(gen.batch(Reading, size=(0, 4), sensor=["a", "b"], value=range(5)), during=3)

one_count = tight.count("output") == 1
right_count = tight.now(lambda u: u.output[0].n == len(u.input))


def counted(stream):
    return stream.count()


def miscounted(stream):
    return stream.count().map(lambda n: n - 1)


def test_a_count_of_every_batch_is_right(spark):
    verdict = tight.check(
        counted, tight.always(one_count & right_count, during=3), on=readings, gives=Count, mode="dstream", runs=2
    )

    assert verdict.holds


def test_a_count_that_is_off_by_one_is_found_in_the_first_batch(spark):
    verdict = tight.check(
        miscounted, tight.always(one_count & right_count, during=3), on=readings, gives=Count, mode="dstream", runs=2
    )

    assert verdict.counterexample.finding == "VIOLATED"
    assert len(verdict.counterexample.schedule.batches) == 1


def test_state_is_kept_from_batch_to_batch(spark):
    def totals(stream):
        pairs = stream.map(lambda row: (row.sensor, row.value))
        return pairs.updateStateByKey(lambda new, old: sum(new) + (old or 0))

    Total = tight.Kind("Total", sensor=str, total=int)  # noqa: N806 - a kind
    grows = tight.some_record("output", lambda row: row == Total("a", 3))

    verdict = tight.check(
        totals,
        tight.next(tight.now(lambda u: grows.evaluate([u]) is True)),
        on=[[Reading("a", 1)], [Reading("a", 2)]],
        gives=Total,
        mode="dstream",
    )

    assert verdict.holds


def test_a_job_that_raises_tells_its_own_error_and_the_batch(spark):
    with pytest.raises(JobError, match="ZeroDivisionError") as caught:
        tight.check(
            lambda stream: stream.map(lambda row: 1 // row.value),
            tight.always(one_count, during=2),
            on=[[Reading("a", 1)], [Reading("a", 0)]],
            mode="dstream",
        )
    assert caught.value.batch == 1


def test_what_is_no_dstream_is_refused(spark):
    with pytest.raises(JobError, match="a DStream"):
        tight.check(lambda stream: 5, one_count, on=[[Reading("a", 1)]], mode="dstream")
