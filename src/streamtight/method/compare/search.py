"""The search that every question about two runs shares: generate, run many at once, confirm alone, shrink, run again.

A question has a schedule for the candidate, from which that of the reference follows, so one schedule is all that a
counterexample needs. Searching happens where it is cheap: traces and schedules are made in Python, and a back end may
pack many of them into one run. What is reported was run alone, again.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from streamtight.errors import JobError, StreamtightError, TimeLimitError
from streamtight.method.compare.outputs import Finding
from streamtight.program.run import Run
from streamtight.source.generate import Source
from streamtight.source.shrink import smallest_failing
from streamtight.stream.dependence import Dependence
from streamtight.stream.schedule import Schedule
from streamtight.stream.trace import Trace
from streamtight.verdict import Counterexample, Interrupted, Outcome, Scope, Verdict

RERUNS = 3
"""How often a counterexample is run again before it is reported."""
PACK = 12
"""How many schedules are given to the back end at once; the first packs are smaller, since most bugs show early."""
SHRINK_LIMIT = 150
"""How many schedules are tried to make a counterexample smaller."""
SHRINK_SECONDS = 20.0
"""And how long, if the caller does not say: a person who waits wants the story, not the last event less."""
SHUFFLE_PARTITIONS = 3

Runner = Callable[[Sequence[Schedule], bool], Sequence[Run]]
"""Runs for these schedules; the flag says whether they may be packed into one."""
Progress = Callable[[int, int], None]
"""Told after each pack how many traces are done, and how many are asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """Do candidate and reference agree, on every trace of a source, however it is scheduled?"""

    claim: str
    source: Source
    schedule: Callable[[Trace, random.Random], Schedule]
    """What the candidate gets for a trace."""
    candidate: Runner
    reference: Runner | None
    """None if the judge needs no reference run."""
    judge: Callable[[Schedule, Run | None, Run], Finding | None]
    produced: Callable[[Run | None, Run], bool]
    """Whether there was anything to compare."""
    replay: Callable[[Schedule], str]
    promise: Dependence
    """What the order of a schedule must keep when it is shrunk."""
    picture: Callable[[Schedule, Finding], str] = lambda schedule, finding: ""
    """What a person looks at."""
    why_vacuous: str = "neither job gave a row"
    asks: Callable[[Schedule], bool] = lambda schedule: True
    """Whether a schedule puts the question at all: a law about partitions needs rows in two of them."""
    why_not_asked: str = ""
    packs: Callable[[], bool] = lambda: True
    """Whether the runners can put several schedules into one run; known only after they have tried."""
    shrink_seconds: float = SHRINK_SECONDS
    """How long a failing schedule is made smaller; 0 to show it as it is."""
    repeats: Callable[[Run, Run], Finding | None] | None = None
    """For a question about one job: how two of its runs on one schedule differ. Such a job breaks every law at once."""

    def findings(self, schedules: Sequence[Schedule], packed: bool) -> Iterator[tuple[Finding | None, bool]]:
        """For each schedule, what is wrong, and whether there was anything to compare."""
        came = self.candidate(schedules, packed)
        wanted: Sequence[Run | None] = [None] * len(schedules)
        if self.reference is not None:
            wanted = self.reference(schedules, packed)
        for schedule, expected, actual in zip(schedules, wanted, came, strict=True):
            yield self.judge(schedule, expected, actual), self.produced(expected, actual)

    def finding(self, schedule: Schedule) -> Finding | None:
        """What is wrong on this schedule, run alone."""
        return next(self.findings([schedule], False))[0]

    def differs_from_itself(self, schedule: Schedule) -> Finding | None:
        """How two runs of the job on exactly the same schedule differ."""
        if self.repeats is None or self.reference is None:
            return None
        pairs = [(self.candidate([schedule], False)[0], self.reference([schedule], False)[0]) for _ in range(2)]
        return next((f for one, two in zip(*pairs, strict=True) if (f := self.repeats(one, two)) is not None), None)


def search(question: Question, *, runs: int, seed: int, progress: Progress | None = None) -> Verdict:
    """The verdict after so many traces of the source."""
    started = time.perf_counter()
    done, produced, asked, unconfirmed = 0, False, False, 0
    rng = random.Random(seed)
    traces = _traces(question.source, runs, seed)

    def verdict(outcome: Outcome, found: Counterexample | None = None, reason: str | None = None) -> Verdict:
        seconds = time.perf_counter() - started
        rate = 60 * done / seconds if seconds else 0.0
        scope = Scope.tested(done, seed=seed if question.source.seeded else None)
        cost = {"seconds": seconds, "traces": float(done), "traces_per_minute": rate}
        return Verdict(question.claim, outcome, scope, found, reason, cost)

    try:
        for size in _pack_sizes():
            pack = [question.schedule(trace, rng) for trace in itertools.islice(traces, size)]
            if not pack:
                break
            if len(pack) > 1:
                # One number of shuffle partitions for all of them, so that they can share a run.
                width = rng.randint(1, SHUFFLE_PARTITIONS)
                if any(one.shuffle_partitions > 1 for one in pack):
                    pack = [replace(one, shuffle_partitions=width) for one in pack]
            for schedule, (finding, some) in zip(pack, list(question.findings(pack, True)), strict=True):
                done += 1
                produced = produced or some
                asked = asked or question.asks(schedule)
                if finding is None:
                    continue
                counterexample, stopped = _confirmed(question, schedule)
                if counterexample is not None:
                    answer = verdict(Outcome.FAILS, counterexample)
                    if stopped is not None:
                        raise Interrupted(answer) from stopped
                    return answer
                unconfirmed += 1
            if progress is not None:
                progress(done, runs)
    except KeyboardInterrupt as error:
        reason = f"stopped after {done} of {runs} inputs, none of which failed"
        raise Interrupted(verdict(Outcome.UNDECIDED, reason=reason)) from error
    except TimeLimitError as error:
        return verdict(Outcome.UNDECIDED, reason=f"a run did not end within {error.seconds:g} seconds")
    except StreamtightError as error:
        error.add_note(f"while asking: {question.claim}")
        raise
    if unconfirmed:
        return verdict(
            Outcome.UNDECIDED,
            reason=f"{unconfirmed} of {done} runs differed, but not when they were run again alone; try more runs",
        )
    if done == 0:
        return verdict(Outcome.UNDECIDED, reason="vacuous: the source yields nothing")
    if not produced:
        return verdict(Outcome.UNDECIDED, reason=f"vacuous: {question.why_vacuous} in {done} runs")
    if not asked:
        return verdict(Outcome.UNDECIDED, reason=f"vacuous: {question.why_not_asked}")
    return verdict(Outcome.HOLDS)


def _traces(source: Source, runs: int, seed: int) -> Iterator[Trace]:
    """Generated ones, or the listed ones again and again: each time with another schedule."""
    traces = source.traces(runs, seed)
    return traces if source.seeded else itertools.islice(itertools.cycle(traces), runs)


def _pack_sizes() -> Iterator[int]:
    yield from (2, 4, 8)
    while True:
        yield PACK


def _confirmed(question: Question, schedule: Schedule) -> tuple[Counterexample | None, KeyboardInterrupt | None]:
    """The counterexample that this schedule shrinks to, if it fails when it is run alone.

    Somebody who presses Ctrl-C meanwhile gets the smallest one so far.
    """
    if not any(question.finding(schedule) is not None for _ in range(RERUNS)):
        return None, None

    started = time.perf_counter()
    stopped: KeyboardInterrupt | None = None

    def first_failing(candidates: Sequence[Schedule]) -> Schedule | None:
        nonlocal stopped
        if stopped or time.perf_counter() - started > question.shrink_seconds:
            return None
        try:
            findings = [finding for finding, _ in question.findings(candidates, True)]
        except KeyboardInterrupt as error:
            stopped = error
            return None
        except (JobError, TimeLimitError):
            # A job may raise on an input that has less in it; that is another story than the one to be told.
            if len(candidates) == 1:
                return None
            return next((one for one in candidates if first_failing([one]) is not None), None)
        return next((one for one, finding in zip(candidates, findings, strict=True) if finding is not None), None)

    smallest = smallest_failing(
        schedule,
        promise=question.promise,
        simpler_events=question.source.simpler_events,
        first_failing=first_failing,
        limit=SHRINK_LIMIT if question.shrink_seconds > 0 else 0,
        at_once=8 if question.packs() else 1,  # one by one, the first that fails saves the others
    )
    # The smallest was perhaps found in a packed run; if it never fails alone, the one that did is what we can show.
    for found in dict.fromkeys((smallest, schedule)):
        again = [finding for finding in (question.finding(found) for _ in range(RERUNS)) if finding is not None]
        if again:
            shown = question.differs_from_itself(found) or again[0]
            counterexample = Counterexample(
                finding=shown.name,
                explanation=shown.explanation,
                schedule=found,
                expected=shown.expected,
                actual=shown.actual,
                replay=question.replay(found),
                picture=question.picture(found, shown),
                reruns=RERUNS,
                failing_reruns=len(again),
            )
            return counterexample, stopped
    return None, stopped
