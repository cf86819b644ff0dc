"""The search: draw cases, run many at once, confirm alone, make small, run again."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from streamtight.errors import FormulaError, JobError, PredicateError, StreamtightError, TimeLimitError
from streamtight.method.check.trigger import triggers
from streamtight.method.check.words import Judged, WordJudge, picture, step_by_step, told
from streamtight.program.letter import Letter
from streamtight.properties.temporal import Clock, Formula
from streamtight.source.cases import Cases
from streamtight.source.kept import kept_answer
from streamtight.stream.schedule import Schedule
from streamtight.verdict import Counterexample, Interrupted, Outcome, Scope, Verdict

ASKED_TWICE = 2
"""Of so many cases the formula is asked twice, to see whether its tests always say the same."""
RERUNS = 3
"""How often a counterexample is run again before it is reported."""
PACK = 20
"""How many cases are given to the back end at once; the first packs are smaller, since most bugs show early."""
SHRINK_SECONDS = 20.0
"""How long a counterexample is made smaller, if the caller does not say."""

Step = Callable[[Letter], bool]
"""Takes a letter; True if no more are wanted."""
Runner = Callable[[Sequence[Schedule], Sequence[Step], bool], Iterator[Sequence[Letter]]]
"""The words of these cases, each letter given to the case's own step; the flag says whether they may share a run."""
Progress = Callable[[int, int], None]
"""Told how many cases are done, and how many are asked for."""


@dataclass(frozen=True, slots=True)
class Question:
    """Does every run of a job keep a temporal property?"""

    claim: str
    formula: Formula
    cases: Cases
    words: Runner
    replay: Callable[[Schedule], str]
    packs: Callable[[], bool] = lambda: False
    """Whether several cases do share a run."""
    time: Clock | None = None
    shrink_seconds: float = SHRINK_SECONDS


def search(question: Question, *, runs: int, seed: int, progress: Progress | None = None) -> Verdict:
    """The verdict after so many cases."""
    return _Search(question, runs, seed, progress).verdict()


class _Search:
    def __init__(self, question: Question, runs: int, seed: int, progress: Progress | None) -> None:
        self.question = question
        self.runs = runs
        self.seed = seed
        self.progress = progress
        named = list(triggers(question.formula))
        self.triggers, self.silent = [name for name, _ in named], [silent for _, silent in named]
        self.started = time.perf_counter()
        self.done = 0
        self.letters = 0
        self.rows = 0
        """How many rows went in."""
        self.open: list[Judged] = []
        self.pulled: set[int] = set()
        self.soonest: float = math.inf
        """After how many letters the case that is made smaller breaks it; a smaller one must not take longer."""
        self.broken = 0
        """How many cases broke it."""
        self.stopped: KeyboardInterrupt | None = None
        """What ended the search for a smaller case: Ctrl-C."""
        self.unconfirmed = 0
        """How many of these did not when they were run again alone."""

    def verdict(self) -> Verdict:
        if self.question.cases.seeded:  # else these are the cases that somebody wants to see
            kept = kept_answer(self.question.claim, self.question.cases.kinds, self._on_kept)
            if kept is not None:
                return kept
        try:
            found = self._saved() or self._found()
        except KeyboardInterrupt as error:
            before = "none of which broke it" if not self.broken else f"of which {self.broken} broke it"
            stopped = f"stopped after {self.done} of {self.runs} cases, {before}"
            raise Interrupted(self._answer(Outcome.UNDECIDED, reason=stopped)) from error
        except TimeLimitError as error:
            before = "; before that, a case had broken it" if self.broken else ""
            return self._answer(Outcome.UNDECIDED, reason=f"a run did not end within {error.seconds:g} seconds{before}")
        except StreamtightError as error:
            error.add_note(f"while asking: {self.question.claim}")
            raise
        if found is not None:
            answer = self._answer(Outcome.FAILS, found)
            if self.stopped is not None:
                raise Interrupted(answer) from self.stopped
            return answer
        reason = self._why_undecided()
        return self._answer(Outcome.HOLDS if reason is None else Outcome.UNDECIDED, reason=reason)

    def _answer(self, outcome: Outcome, found: Counterexample | None = None, reason: str | None = None) -> Verdict:
        seconds = time.perf_counter() - self.started
        scope = Scope.tested(self.done, seed=self.seed if self.question.cases.seeded else None)
        cost = {
            "seconds": seconds,
            "cases": float(self.done),
            "batches": float(self.letters),
            "cases_per_minute": 60 * self.done / seconds if seconds else 0.0,
        }
        return Verdict(self.question.claim, outcome, scope, found, reason, cost)

    # -- cases -------------------------------------------------------------------------------------------------------

    def _saved(self) -> Counterexample | None:
        """What failed the last time is tried first."""
        found = self.question.cases.first_saved(self._fails)
        if found is None:
            return None
        self.broken += 1
        counterexample = self._shown(found)
        if counterexample is None:
            self.unconfirmed += 1
        else:
            self.done += 1
        return counterexample

    def _on_kept(self, case: Schedule) -> Verdict:
        """The verdict on a case that failed the last time."""
        found = self._shown(case) if any(self._fails(case) for _ in range(RERUNS)) else None
        return self._answer(Outcome.HOLDS if found is None else Outcome.FAILS, found)

    def _found(self) -> Counterexample | None:
        question = self.question
        cases = question.cases.draw(self.runs, self.seed)
        for size in _pack_sizes():
            pack = list(itertools.islice(cases, size))
            if not pack:
                return None
            judges = [WordJudge(question.formula, self.silent, question.time) for _ in pack]
            words = question.words(pack, [judge.step for judge in judges], True)
            broken: list[tuple[int, Schedule]] = []
            for case, judge, word in zip(pack, judges, words, strict=True):
                judged = judge.judged
                if self.done < ASKED_TWICE:
                    self._require_same_again(judged, word)
                self.done += 1
                self.letters += judged.letters
                self.rows += sum(len(rows) for letter in word for rows in letter.inputs.values())
                if judged.value is False:
                    broken.append((judged.letters, case))
                elif judged.value is None:
                    self.open.append(judged)
                self.pulled |= judged.pulled
            self.broken += len(broken)
            # What breaks it soonest first: a short story is easier to follow than one of few rows.
            for _, case in sorted(broken, key=lambda one: one[0]):
                counterexample = self._confirmed(case)
                if counterexample is not None:
                    return counterexample
                self.unconfirmed += 1
            if self.progress is not None:
                self.progress(self.done, self.runs)
        return None

    def _require_same_again(self, judged: Judged, word: Sequence[Letter]) -> None:
        """Raise if a test remembers what it was asked before: it would blame a job for another case."""
        formula = self.question.formula
        again = formula.evaluate(word, time=self.question.time)
        if again is not judged.value:
            raise FormulaError(
                repr(formula),
                needed="tests that always say the same of the same batches",
                came=f"{judged.value} when it was asked first, then {again}",
                hint="letter.so_far('output'), instead of a set or list that the test fills itself",
            )

    def _alone(self, case: Schedule) -> tuple[Judged, Sequence[Letter]]:
        """The case in a run of its own, which stops as soon as the formula is decided."""
        judge = WordJudge(self.question.formula, (), self.question.time)
        [word] = self.question.words([case], [judge.step], False)
        return judge.judged, word

    def _fails(self, case: Schedule) -> bool:
        try:
            return self._is_broken(self._alone(case)[0])
        except (JobError, PredicateError, TimeLimitError):
            return False  # a job may raise on an input that has less in it; that is another story

    def _is_broken(self, judged: Judged) -> bool:
        return judged.value is False and judged.letters <= self.soonest

    def _which_fail(self, cases: Sequence[Schedule]) -> list[bool]:
        """Which of these break it, no later than the one that was found."""
        judges = [WordJudge(self.question.formula, (), self.question.time) for _ in cases]
        try:
            for _ in self.question.words(cases, [judge.step for judge in judges], True):
                pass
        except (JobError, PredicateError, TimeLimitError):
            return [self._fails(case) for case in cases]  # one of them raises; which one is seen when each runs alone
        return [self._is_broken(judge.judged) for judge in judges]

    def _confirmed(self, case: Schedule) -> Counterexample | None:
        """The counterexample that this case shrinks to, if it fails when it is run alone."""
        found = next((one for one in (self._alone(case)[0] for _ in range(RERUNS)) if one.value is False), None)
        if found is None:
            return None
        self.soonest = found.letters
        question, until = self.question, time.perf_counter() + self.question.shrink_seconds

        def which_fail(smaller: Sequence[Schedule]) -> Sequence[bool] | None:
            try:
                return self._which_fail(smaller) if not self.stopped and time.perf_counter() < until else None
            except KeyboardInterrupt as error:
                self.stopped = error
                return None

        smallest = case
        if question.shrink_seconds > 0:
            at_once = PACK if question.packs() else 1
            smallest = question.cases.smallest(case, which_fail, at_once=at_once, count=self.runs, seed=self.seed)
        return self._shown(smallest) or self._shown(case)

    def _shown(self, case: Schedule) -> Counterexample | None:
        """The case up to the batch that decides it, run again; None if it does not fail."""
        read = min(self._alone(case)[0].letters, len(case.batches))
        for shown in dict.fromkeys((_beginning(case, read) if read else case, case)):
            words = [word for judged, word in (self._alone(shown) for _ in range(RERUNS)) if judged.value is False]
            if words:
                return self._counterexample(shown, words)
        return None

    def _counterexample(self, case: Schedule, words: Sequence[Sequence[Letter]]) -> Counterexample:
        question, word = self.question, words[0]
        why = question.formula.explain(word, time=question.time)
        return Counterexample(
            finding="VIOLATED",
            explanation=told(why, word),
            schedule=case,
            table=step_by_step(question.formula, word, why.letters, question.time),
            picture=picture(question.formula, word, why.letters, question.time, case),
            replay=question.replay(case),
            reruns=RERUNS,
            failing_reruns=len(words),
        )

    # -- no answer ---------------------------------------------------------------------------------------------------

    def _why_undecided(self) -> str | None:
        if self.unconfirmed:
            return (
                f"{self.unconfirmed} of the cases broke it, but not when they were run again alone; "
                "try laws(job, on=...), which asks whether the job always means the same"
            )
        if self.done == 0 or self.letters == 0:
            return "vacuous: the source yields no batches"
        if self.rows == 0:
            return f"vacuous: no row was in the input, in {_cases(self.done)}; try a source in which rows come"
        if self.open:
            return self._why_open()
        for place, name in enumerate(self.triggers):  # the first will do: those inside of it were not seen either
            if place not in self.pulled:
                return (
                    f"vacuous: {name} was never seen in {_cases(self.done)}, so nothing was asked of the job; "
                    "try a source in which it comes, such as gen.until(..., ..., within=n)"
                )
        return None

    def _why_open(self) -> str:
        shortest = min(self.open, key=lambda judged: judged.letters)
        batches = "batch" if shortest.letters == 1 else "batches"
        told_open = (
            f"{len(self.open)} of {self.done} cases ended before it was decided, one after {shortest.letters} {batches}"
        )
        safe = self.question.formula.safe_length
        if safe is not None and safe > shortest.letters:
            return f"{told_open}; with {safe} batches every case is decided"
        needed = [judged.safe_length for judged in self.open]
        if None not in needed:  # it may yet have more to ask of the letters to come, so this is no more than a hint
            return f"{told_open}; try streams of {max(filter(None, needed))} batches or more"
        hint = "longer streams" if self.question.formula.reads_time else "timeouts: within=5, during=5"
        return f"{told_open}, with this still open: {shortest.rest!r}; try {hint}"


def _cases(count: int) -> str:
    return "1 case" if count == 1 else f"{count} cases"


def _beginning(case: Schedule, batches: int) -> Schedule:
    """The first so many batches."""
    restarts = tuple(restart for restart in case.restarts if restart.after < batches)
    return replace(case, batches=case.batches[:batches], restarts=restarts)


def _pack_sizes() -> Iterator[int]:
    yield from (2, 6, 12)
    while True:
        yield PACK
