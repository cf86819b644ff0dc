"""The search and the laws on jobs that are plain functions from a schedule to a run: no JVM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from streamtight.errors import JobError, TimeLimitError
from streamtight.method.compare import jobs
from streamtight.method.compare.jobs import LAWS, Asked, representative
from streamtight.method.compare.oracle import allowed, expected, one_of
from streamtight.program.run import Cause, Run, Step
from streamtight.source.generate import generated, listed
from streamtight.stream.dependence import ordered, same, unordered
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Schedule
from streamtight.stream.schema import PartitionBy, Seq
from streamtight.stream.trace import Trace

N = Kind("N", k=int, v=int)
Total = Kind("Total", k=int, v=int)
BY_KEY = PartitionBy("k", Seq(N))
PlainJob = Callable[[Schedule], Run]


def run_of(schedule: Schedule, outputs: Sequence[Sequence[Sequence[Event]]], **notes) -> Run:
    steps = [
        Step(number, Cause.DATA, given, tuple(map(tuple, output)), **notes)
        for number, (given, output) in enumerate(zip(schedule.batches, outputs, strict=True))
    ]
    return Run(tuple(steps))


class Local:
    """A back end for plain functions, that notes how it was asked."""

    def __init__(self) -> None:
        self.packed = Counter[bool]()

    def packs(self, job: PlainJob, mode: str) -> bool:
        return True

    def runner(self, job: PlainJob, mode: str):
        def run_them(schedules, packed):
            self.packed[packed] += len(schedules)
            return [job(schedule) for schedule in schedules]

        return run_them


def asked(source, upto=unordered, mode="append", key=(), runs=60, **more) -> Asked:
    return Asked(Local(), source, upto, None, mode, key, runs, 7, lambda schedule: schedule.code(), **more)


def compare(reference, candidate, source, upto=unordered, **more):
    return jobs.compare(asked(source, upto, **more), reference, candidate, reference_mode="append", claim="same")


def copies(schedule: Schedule) -> Run:
    return run_of(schedule, schedule.batches)


def turns_round(schedule: Schedule) -> Run:
    """Every partition back to front, if there are several."""
    return run_of(schedule, [[part[::-1] if len(batch) > 1 else part for part in batch] for batch in schedule.batches])


def loses_big_ones(schedule: Schedule) -> Run:
    return run_of(schedule, [[[e for e in part if e.v < 7] for part in batch] for batch in schedule.batches])


def deals_out(schedule: Schedule) -> Run:
    """Every batch over two partitions, in turn."""
    flat = [[e for part in batch for e in part] for batch in schedule.batches]
    return run_of(schedule, [[batch[::2], batch[1::2]] for batch in flat])


def test_a_job_is_the_same_as_itself():
    verdict = compare(copies, copies, generated(N), ordered)

    assert verdict.holds
    assert verdict.scope.count == 60
    assert verdict.scope.seed == 7


def test_a_lost_order_is_found_and_made_small():
    verdict = compare(copies, turns_round, generated(BY_KEY), same("k"))

    found = verdict.counterexample
    assert found.finding == "ORDER_LOST"
    assert len(found.schedule.events) == 2
    assert len({e.k for e in found.schedule.events}) == 1
    assert found.failing_reruns == found.reruns == 3


def test_an_order_that_does_not_matter_may_be_lost():
    assert compare(copies, turns_round, generated(BY_KEY)).holds


def test_rows_that_may_arrive_either_way_are_a_race():
    verdict = compare(copies, deals_out, generated(BY_KEY), same("k"))

    assert verdict.counterexample.finding == "RACE"
    assert len(verdict.counterexample.schedule.events) == 2


def test_a_race_of_the_reference_is_told_as_such():
    verdict = compare(deals_out, copies, generated(BY_KEY), same("k"))

    assert verdict.counterexample.finding == "RACE_IN_REFERENCE"


def test_a_lost_row_is_found_with_its_simplest_value():
    verdict = compare(copies, loses_big_ones, generated(N, v=range(20)))

    found = verdict.counterexample
    assert found.finding == "MISSING_ROWS"
    assert found.schedule.events == (N(0, 7),)
    assert found.expected == (N(0, 7),)
    assert found.actual == ()


def test_a_surplus_row_and_a_wrong_row_have_names_of_their_own():
    assert compare(loses_big_ones, copies, generated(N)).counterexample.finding == "EXTRA_ROWS"

    def adds_one(schedule):
        return run_of(schedule, [[[e.replace(v=e.v + 1) for e in part] for part in b] for b in schedule.batches])

    assert compare(copies, adds_one, generated(N, v=range(3))).counterexample.finding == "WRONG_ROWS"


def test_a_failure_that_does_not_come_again_is_undecided():
    calls = Counter()

    def fails_once(schedule):
        calls["all"] += 1
        return run_of(schedule, [[()] for _ in schedule.batches]) if calls["all"] == 3 else copies(schedule)

    verdict = compare(copies, fails_once, generated(N, size=(3, 5)))

    assert verdict.undecided
    assert "not when they were run again alone" in verdict.reason


def test_a_source_that_yields_nothing_is_undecided():
    verdict = compare(copies, copies, listed([]))

    assert verdict.undecided
    assert verdict.reason == "vacuous: the source yields nothing"


def test_jobs_that_give_nothing_are_undecided():
    def nothing(schedule):
        return run_of(schedule, [[()] for _ in schedule.batches])

    verdict = compare(nothing, nothing, generated(N))

    assert verdict.undecided
    assert "vacuous: neither job gave a row" in verdict.reason


def test_a_job_that_raises_is_no_verdict():
    def raises(schedule):
        raise JobError("job", needed="a", came="b", hint="c", batch=2, raised="ValueError: no")

    with pytest.raises(JobError, match="job") as raised:
        compare(copies, raises, generated(N))
    assert raised.value.batch == 2
    assert any("while asking: same" in note for note in raised.value.__notes__)


def test_a_run_that_does_not_end_is_undecided():
    def never(schedule):
        raise TimeLimitError("job", needed="a", came="b", hint="c", seconds=9.0)

    verdict = compare(copies, never, generated(N))

    assert verdict.undecided
    assert "9 seconds" in verdict.reason


def test_a_listed_trace_is_tried_with_many_schedules():
    verdict = compare(copies, turns_round, listed(Trace([N(1, 1), N(1, 2)], same("k"))), same("k"), runs=40)

    assert verdict.counterexample.finding == "ORDER_LOST"
    assert verdict.scope.seed is None


def test_a_job_that_gets_all_of_its_input_at_once_gets_it_in_the_order_that_was_promised():
    def joins_partitions(schedule):
        """As a static DataFrame: partition p has what partition p of every batch has."""
        width = max(len(batch) for batch in schedule.batches)
        parts = [[e for batch in schedule.batches if p < len(batch) for e in batch[p]] for p in range(width)]
        return Run((Step(0, Cause.DATA, ((),), tuple(map(tuple, parts))),))

    verdict = compare(joins_partitions, joins_partitions, generated(N, upto=ordered), ordered, mode="batch", runs=200)

    assert verdict.holds


def test_one_schedule_can_be_tried_alone():
    schedule = Schedule((((N(1, 1), N(1, 2)), ()),))

    verdict = compare(copies, turns_round, listed(list(schedule.events)), same("k"), fixed=schedule)

    assert verdict.fails
    assert verdict.counterexample.schedule == schedule
    assert verdict.scope.count == 1


def test_the_search_packs_and_the_confirmation_does_not():
    question = asked(generated(N, v=range(20)))
    jobs.compare(question, copies, loses_big_ones, reference_mode="append", claim="same")

    assert question.backend.packed[True] > 0
    assert question.backend.packed[False] >= 6


def test_progress_is_told():
    told = []
    compare(copies, copies, generated(N), runs=10, progress=lambda done, of: told.append((done, of)))

    assert told == [(2, 10), (6, 10), (10, 10)]


def test_the_same_seed_gives_the_same_counterexample():
    first, second = (compare(copies, turns_round, generated(BY_KEY), same("k")) for _ in range(2))

    assert first.counterexample == second.counterexample


# -- what is right is said about the input ----------------------------------------------------------------------------


def test_what_is_expected_may_be_plain_python():
    assert compare(expected(lambda given: given), copies, generated(N)).holds
    verdict = compare(expected(lambda given: given), loses_big_ones, generated(N))
    assert verdict.counterexample.finding == "MISSING_ROWS"


def last_of_each_partition(schedule):
    return run_of(schedule, [[part[-1:] for part in batch] for batch in schedule.batches])


def test_one_of_several_outputs_may_be_right():
    source = generated(N, size=(1, 4), upto=unordered)
    any_one = one_of(lambda given: [[event] for event in given] + [[]])

    def first(schedule):
        events = schedule.events[:1]
        return run_of(schedule, [[events if number == 0 else ()] for number, _ in enumerate(schedule.batches)])

    assert compare(any_one, first, source).holds
    assert compare(any_one, copies, source).counterexample.finding == "NOT_ALLOWED"


def test_a_test_of_input_and_output_may_say_what_is_right():
    some = allowed(lambda given, came: set(came) <= set(given))

    assert compare(some, loses_big_ones, generated(N)).holds

    def makes_up(schedule):
        return run_of(schedule, [[[N(99, 99)]] for _ in schedule.batches])

    assert compare(some, makes_up, generated(N)).counterexample.finding == "NOT_ALLOWED"


def test_an_oracle_may_judge_each_key_for_itself():
    at_most_one_lost = allowed(lambda given, came: len(given) - len(came) <= 1, by="k")
    verdict = compare(at_most_one_lost, loses_big_ones, generated(N, k=[1, 2], v=[0, 9]))

    found = verdict.counterexample
    assert len(found.schedule.events) == 2
    assert len({e.k for e in found.schedule.events}) == 1
    assert found.explanation.startswith("for 1: ")


# -- laws -------------------------------------------------------------------------------------------------------------


def all_laws(job, source=None, mode="append", key=(), **more):
    question = asked(source or generated(N, upto=same("k")), mode=mode, key=key, **more)
    verdicts = {law: jobs.law(question, job, name="job", law=law) for law in LAWS}
    return {
        law: v.outcome.name if v.counterexample is None else v.counterexample.finding for law, v in verdicts.items()
    }


def test_a_good_job_keeps_all_laws():
    assert set(all_laws(copies).values()) == {"HOLDS"}


def test_a_job_that_looks_at_batches_is_batch_dependent():
    def number_of_batch(schedule):
        return run_of(
            schedule, [[[Total(0, number) for part in b for _ in part]] for number, b in enumerate(schedule.batches)]
        )

    found = all_laws(number_of_batch)

    assert found["cuts"] == "BATCH_DEPENDENT"
    assert found["partitions"] == found["restarts"] == "HOLDS"


def test_a_job_that_drops_late_rows_is_told_apart():
    def drops(schedule):
        return run_of(schedule, [b if n == 0 else [()] for n, b in enumerate(schedule.batches)], late_rows=1)

    assert all_laws(drops)["cuts"] == "DROPPED_LATE"


def test_a_job_that_looks_at_partitions_is_partition_dependent():
    def widths(schedule):
        return run_of(schedule, [[[Total(0, len(b))] if any(b) else ()] for b in schedule.batches])

    assert all_laws(widths)["partitions"] == "PARTITION_DEPENDENT"


def test_a_job_that_reads_the_first_row_is_order_dependent():
    def first_of_all(schedule):
        first = schedule.events[:1]
        return run_of(schedule, [[first if n == 0 else ()] for n, _ in enumerate(schedule.batches)])

    found = all_laws(first_of_all)

    assert found["order"] == "ORDER_DEPENDENT"
    assert found["cuts"] == "HOLDS"


def test_a_job_that_forgets_at_a_restart_is_found():
    def forgets(schedule):
        stopped = {restart.after for restart in schedule.restarts if not restart.replay}
        return run_of(schedule, [[()] if n in stopped else b for n, b in enumerate(schedule.batches)])

    assert all_laws(forgets)["restarts"] == "LOST_ON_RESTART"


def test_a_job_that_counts_a_replayed_batch_twice_is_found():
    def twice(schedule):
        replayed = {restart.after for restart in schedule.restarts if restart.replay}
        return run_of(schedule, [[*b, *b] if n in replayed else b for n, b in enumerate(schedule.batches)])

    assert all_laws(twice)["restarts"] == "DUPLICATED_ON_REPLAY"


class ByMode(Local):
    """Runs another function as a batch."""

    def __init__(self, batch: PlainJob) -> None:
        super().__init__()
        self._batch = batch

    def runner(self, job, mode):
        return super().runner(self._batch if mode == "batch" else job, mode)


def batch_law(stream, batch):
    question = replace(asked(generated(N)), backend=ByMode(batch))
    return jobs.law(question, stream, name="job", law="batch")


def test_rows_that_stay_in_the_state_are_told_apart_from_lost_ones():
    def keeps_last(schedule, state_rows):
        return run_of(schedule, [*schedule.batches[:-1], [()]], state_rows=state_rows)

    open_at_end = batch_law(lambda schedule: keeps_last(schedule, 5), copies)
    lost = batch_law(lambda schedule: keeps_last(schedule, 0), copies)

    assert open_at_end.counterexample.finding == "OPEN_AT_END"
    assert lost.counterexample.finding == "LOST_IN_STREAM"


def test_rows_that_come_only_by_the_flush_are_told_though_the_law_holds():
    def flushed(schedule):
        run = run_of(schedule, [[()] for _ in schedule.batches])
        return Run((*run.steps, Step(len(run.steps), Cause.FLUSH, ((),), (schedule.events,))))

    verdict = batch_law(flushed, copies)

    assert verdict.holds
    assert "OPEN_AT_END" in verdict.reason


def test_a_job_that_does_not_run_as_a_batch_is_not_asked_about_it():
    def raises(schedule):
        raise JobError("job", needed="a", came="b", hint="c", batch=None, raised="AnalysisException: no")

    verdict = batch_law(copies, raises)

    assert verdict.undecided
    assert "AnalysisException: no" in verdict.reason


def counts(schedule):
    """The number of rows of each key so far, of those keys that the batch has; each time the key comes again."""
    so_far, outputs = Counter(), []
    for batch in schedule.batches:
        seen = [e.k for part in batch for e in part]
        so_far.update(seen)
        outputs.append([[Total(k, so_far[k]) for k in dict.fromkeys(seen)]])
    return run_of(schedule, outputs)


def test_updates_are_folded_to_the_last_row_of_each_key():
    assert all_laws(counts, mode="update", key=("k",))["cuts"] == "HOLDS"
    assert all_laws(counts)["cuts"] == "BATCH_DEPENDENT"


def test_complete_tables_are_folded_to_the_last():
    def tables(schedule):
        so_far, outputs = Counter(), []
        for batch in schedule.batches:
            so_far.update(e.k for part in batch for e in part)
            outputs.append([[Total(k, n) for k, n in so_far.items()]])
        return run_of(schedule, outputs)

    assert all_laws(tables, mode="complete")["cuts"] == "HOLDS"
    assert all_laws(tables)["cuts"] == "BATCH_DEPENDENT"


def test_equal_traces_have_one_representative():
    one, other = [N(1, 1), N(2, 2), N(1, 3)], [N(2, 2), N(1, 1), N(1, 3)]

    assert representative(one, same("k")) == representative(other, same("k"))
    assert Trace(representative(one, same("k")), same("k")) == Trace(one, same("k"))
