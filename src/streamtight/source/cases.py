"""Cases: the inputs that a property is tried on, batch by batch, and how a failing one is made small.

A source of `gen`, or any Hypothesis strategy of lists of batches, is drawn from and shrunk by Hypothesis: what comes
out keeps the temporal shape that the source gives it. What failed is kept in Hypothesis' database and tried first the
next time. Sources of events have no shape to keep; their events are cut into batches, and left out one by one.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import random
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from unittest import SkipTest

from streamtight.errors import SourceError, StreamtightError
from streamtight.source.batches import BatchGenerator
from streamtight.source.generate import (
    SAMPLE_SIZE,
    Source,
    backend,
    drawn,
    is_strategy,
    no_folder_left_behind,
    source_of,
)
from streamtight.source.shrink import smallest_failing
from streamtight.source.streams import StreamGenerator
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Schedule

if TYPE_CHECKING:
    from hypothesis import Phase, settings
    from hypothesis.database import ExampleDatabase
    from hypothesis.strategies import SearchStrategy

LENGTH = 6
"""How many batches the events of a source are cut into, if nothing else is known."""
FEW = 4
"""So many smaller cases are tried at once while most of them fail, as at the beginning."""
KEPT = 100
"""So many cases that failed before are tried again at most; one that passes now is forgotten."""
SHRINK_LIMIT = 150
"""How many schedules are tried to make a failing one of a source smaller."""

Fails = Callable[[Schedule], bool]
WhichFail = Callable[[Sequence[Schedule]], Sequence[bool] | None]
"""Which of these cases fail; None if there is no more time to find out."""
Settings: TypeAlias = "settings"
"""The settings of Hypothesis."""


class Cases(Protocol):
    """Where cases come from."""

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Every kind that may come."""

    @property
    def seeded(self) -> bool:
        """Whether another seed gives other cases."""

    def draw(self, count: int, seed: int) -> Iterator[Schedule]:
        """At most so many cases; for one seed the same ones in every process."""

    def smallest(self, case: Schedule, which_fail: WhichFail, *, at_once: int, count: int, seed: int) -> Schedule:
        """The smallest failing case that this one, of those drawn with this count and seed, leads to.

        `which_fail` is asked about up to `at_once` cases: more than one where a run judges several.
        """

    def first_saved(self, fails: Fails) -> Schedule | None:
        """The smallest of those that failed in an earlier process and still do."""


def cases_of(
    on: object,
    *,
    kinds: Iterable[Kind] = (),
    length: int | None = None,
    key: str = "",
    settings: Settings | None = None,
) -> Cases:
    """The cases that a user means.

    A stream of `gen`, a strategy of lists of batches, one list of batches, a Schedule, or whatever `source_of` knows,
    of which the events are cut into `length` batches. `key` tells the questions apart whose failing cases are kept.
    """
    if isinstance(on, Schedule):
        return Listed((on,), _kinds_in([on]) or tuple(kinds))
    if isinstance(on, list | tuple) and not on:
        raise SourceError("on=", needed="one batch or more", came=repr(on), hint="[[User(1, True)], []]")
    if _is_batches(on):
        schedule = schedule_of(on, "on=")
        return Listed((schedule,), _kinds_in([schedule]) or tuple(kinds))
    if isinstance(on, BatchGenerator):
        raise SourceError("on=", needed="streams of batches", came=repr(on), hint=f"gen.streams({on!r}, length=10)")
    if isinstance(on, StreamGenerator):
        return Drawn(on.strategy, on.kinds, key, settings)
    if _gives_batches(on):
        return Drawn(on, _sampled_kinds(on, tuple(kinds)), key, settings)  # type: ignore[arg-type]
    return Cut(source_of(on, kinds=kinds), length or LENGTH)


def schedule_of(stream: object, where: str) -> Schedule:
    """A list of batches as a schedule, each batch in one partition."""
    if not _is_batches(stream):
        raise SourceError(
            where,
            needed="a list of batches, each a list of events",
            came=repr(stream)[:200],
            hint="[[GPS(1, 0), GPS(2, 0)], [], [GPS(1, 1)]]",
        )
    return Schedule(tuple((tuple(batch),) for batch in stream))  # type: ignore[attr-defined]


def _is_batches(given: object) -> bool:
    return (
        isinstance(given, list | tuple)
        and not isinstance(given, Event)
        and bool(given)
        and all(
            isinstance(batch, list | tuple)
            and not isinstance(batch, Event)
            and all(isinstance(event, Event) for event in batch)
            for batch in given
        )
    )


def _gives_batches(given: object) -> bool:
    """Is it a strategy of lists of batches, and not of events or traces?"""
    return is_strategy(given) and all(made in ([], ()) or _is_batches(made) for made in drawn(given, 5, 0, "on="))


def _sampled_kinds(strategy: SearchStrategy[Any], kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """The kinds that a strategy yields: known only from a sample, and from what the user says."""
    sample = [schedule_of(made, "on=") for made in drawn(strategy, SAMPLE_SIZE, 0, "on=") if made]
    return tuple(dict.fromkeys((*kinds, *_kinds_in(sample))))


def _kinds_in(schedules: Iterable[Schedule]) -> tuple[Kind, ...]:
    return tuple(dict.fromkeys(event.kind for schedule in schedules for event in schedule.events))


# -- given -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Listed:
    """Exactly these cases, which are shown as they are."""

    schedules: tuple[Schedule, ...]
    kinds: tuple[Kind, ...]
    seeded: bool = False

    def draw(self, count: int, seed: int) -> Iterator[Schedule]:
        """These, as far as so many are wanted."""
        return itertools.islice(iter(self.schedules), count)

    def smallest(self, case: Schedule, which_fail: WhichFail, *, at_once: int, count: int, seed: int) -> Schedule:
        """The case itself: who lists a case wants to see it."""
        return case

    def first_saved(self, fails: Fails) -> Schedule | None:
        """None: they are known."""
        return None


# -- events, cut into batches ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cut:
    """The traces of a source, cut into so many batches."""

    source: Source
    length: int

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Every kind that the source may yield."""
        return self.source.kinds

    @property
    def seeded(self) -> bool:
        """True: the cuts depend on it."""
        return True

    def draw(self, count: int, seed: int) -> Iterator[Schedule]:
        """A case for each trace; of a source that is listed, as many different cuts as are wanted."""
        rng = random.Random(seed)
        traces: Iterable[Any] = self.source.traces(count, seed)
        if not self.source.seeded:
            traces = itertools.islice(itertools.cycle(traces), count)
        for trace in traces:
            events = trace.events
            cuts = sorted(rng.randint(0, len(events)) for _ in range(self.length - 1))
            yield Schedule.of(events, cuts=cuts)

    def smallest(self, case: Schedule, which_fail: WhichFail, *, at_once: int, count: int, seed: int) -> Schedule:
        """The case without what it does not need; all of it if the events were listed one by one."""
        if not self.source.seeded:
            return case

        def first_failing(cases: Sequence[Schedule]) -> Schedule | None:
            return next(itertools.compress(cases, which_fail(cases) or ()), None)

        return smallest_failing(
            case,
            first_failing=first_failing,
            promise=self.source.upto,
            simpler_events=self.source.simpler_events,
            limit=SHRINK_LIMIT,
            at_once=min(at_once, FEW),
        )

    def first_saved(self, fails: Fails) -> Schedule | None:
        """None: the seed finds it again."""
        return None


# -- drawn by Hypothesis ---------------------------------------------------------------------------------------------


class _RefutedError(Exception):
    """How Hypothesis is told that a case fails."""


class _EnoughError(BaseException):
    """How Hypothesis is stopped; an Exception would mean to it that the case fails."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What Hypothesis draws."""

    strategy: SearchStrategy[Any]
    kinds: tuple[Kind, ...]
    key: str
    settings: Settings | None
    seeded: bool = True

    def draw(self, count: int, seed: int) -> Iterator[Schedule]:
        """The first so many different cases of this seed, small ones first: one that fails is then nearly small."""
        from hypothesis import Phase

        drawn: dict[Schedule, None] = {}

        def collect(case: Schedule) -> bool:
            drawn[case] = None
            return False

        self._explore(collect, [Phase.generate], count, seed, None)
        cases = [case for case in drawn if case.batches][:count]
        return iter(sorted(cases, key=lambda case: (len(case.events), len(case.batches))))

    def smallest(self, case: Schedule, which_fail: WhichFail, *, at_once: int, count: int, seed: int) -> Schedule:
        """What Hypothesis shrinks it to; also kept for the next time.

        Hypothesis asks about one smaller case after the other, but most of them pass. So it is told that they do until
        some have come together, and those are tried at once; then it begins again, with what is known by then.
        """
        from hypothesis import Phase

        from streamtight.source.saved import Shrinking

        shrinking = Shrinking()
        # Hypothesis shrinks what it has seen fail, so it draws the same cases again, and all but this one pass.
        self._explore(case.__eq__, [Phase.generate], count, seed, shrinking)
        known = {case: True}
        smallest, has_time = case, True
        asked: dict[Schedule, None] = {}
        size = min(at_once, FEW)

        def ask() -> None:
            nonlocal has_time, size
            answers = which_fail(list(asked))
            has_time = answers is not None
            known.update(zip(asked, answers or (), strict=False))
            size = min(at_once, FEW if any(answers or ()) else 2 * size)
            asked.clear()

        def fails(other: Schedule) -> bool:
            nonlocal smallest
            if other not in known and other.batches:
                if len(asked) == size or not has_time:
                    shrinking.is_open = False
                    raise _EnoughError
                asked[other] = None
                if at_once == 1:
                    ask()
            if known.get(other, False):
                smallest = other
                return True
            return False

        while has_time:
            shrinking.is_open = True
            with contextlib.suppress(_EnoughError):
                self._explore(fails, [Phase.reuse, Phase.shrink], 1, 0, shrinking)
                if not asked:
                    break
            if asked:
                ask()
        database = self._database()
        if database is not None and shrinking.entry is not None:
            database.save(*shrinking.entry)
        return smallest

    def first_saved(self, fails: Fails) -> Schedule | None:
        """The smallest of those in Hypothesis' database that still fail."""
        from hypothesis import Phase

        database = self._database()
        if database is None:
            return None
        return self._explore(lambda case: bool(case.batches) and fails(case), [Phase.reuse], KEPT, 0, database)

    def _database(self) -> ExampleDatabase | None:
        from hypothesis import settings

        from streamtight.source.saved import WithPrefix

        inner: ExampleDatabase | None = (self.settings or settings()).database
        return None if inner is None else WithPrefix(inner, hashlib.sha256(self.key.encode()).digest()[:8])

    def _explore(
        self, fails: Fails, phases: Sequence[Phase], count: int, seed: int, database: ExampleDatabase | None
    ) -> Schedule | None:
        """The last case that failed, which is the smallest one; None if none did."""
        from hypothesis import HealthCheck, Verbosity, currently_in_test_context, given, settings
        from hypothesis import seed as seeded
        from hypothesis.errors import HypothesisException, HypothesisSideeffectWarning

        last: Schedule | None = None
        known: dict[Schedule, bool] = {}

        @settings(
            backend=backend(),
            database=database,
            deadline=None,
            derandomize=False,
            max_examples=max(count, 1),
            phases=phases,
            print_blob=False,
            report_multiple_bugs=False,
            # What is too large is refused at once, instead of being drawn again and again.
            suppress_health_check=[check for check in HealthCheck if check is not HealthCheck.data_too_large],
            verbosity=Verbosity.quiet,
        )
        @seeded(seed)  # before the settings: a seed takes away the database that it finds
        @given(self.strategy)
        def case_holds(stream: object) -> None:
            nonlocal last
            case = Schedule(()) if stream in ([], ()) else schedule_of(stream, "on=")
            if case not in known:
                known[case] = fails(case)
            if known[case]:
                last = case
                raise _RefutedError

        def explore() -> None:
            with no_folder_left_behind() if database is None else contextlib.nullcontext(), warnings.catch_warnings():
                warnings.simplefilter("ignore", HypothesisSideeffectWarning)
                case_holds()

        try:
            if currently_in_test_context():
                # Hypothesis forbids a test within a test, but knows only of those of the same thread.
                with ThreadPoolExecutor(1) as thread:
                    thread.submit(explore).result()
            else:
                explore()
        except _RefutedError:
            return last
        except SkipTest:
            return None  # nothing is kept
        except StreamtightError:
            raise
        except HypothesisException as error:
            if last is not None:  # it could not settle on a smallest one
                return last
            raise SourceError(
                "on=",
                needed="a strategy that gives streams of batches",
                came=f"{type(error).__name__}: {error}",
                hint="strategy.example(), which raises it too",
            ) from error
        return None
