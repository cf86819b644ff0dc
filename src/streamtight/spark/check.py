"""`check` for PySpark jobs: does every run keep a temporal property?

check(job, formula, on=source)                              a streaming job, a letter for each micro-batch
check(job, formula, on=source, gives={"alerts": Alert, ...})    a job with several outputs
check(job, formula, on=source, mode="batch")                a static job, or "rdd": a word of one letter
check(job, formula, on=source, mode="dstream")              a job on DStreams
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession

from streamtight.errors import FormulaError, JobError, SourceError, TraceError, UnsupportedError
from streamtight.method.check.search import SHRINK_SECONDS, Progress, Question, Step, search
from streamtight.method.replay import code_name, name_beside, replay_code
from streamtight.program.letter import INPUT, OUTPUT, Letter, Rows, Word, letters_of, start_of
from streamtight.program.run import Step as RunStep
from streamtight.properties.temporal import Clock, Constant, Formula, Now, Operand, formula_of
from streamtight.source.batches import BatchGenerator
from streamtight.source.cases import LENGTH, Cases, cases_of
from streamtight.source.streams import StreamGenerator
from streamtight.spark.pack import run_many
from streamtight.spark.progress import at_terminal
from streamtight.spark.rows import Kinds, Table, kind_of, kinds_code, kinds_of
from streamtight.spark.run import LIMIT, MODES, STATIC, Job, Takes, job_name, output_columns, require_job, run, run_all
from streamtight.spark.session import session
from streamtight.stream.event import Event, Kind
from streamtight.stream.schedule import Schedule
from streamtight.verdict import Verdict

if TYPE_CHECKING:
    from streamtight.source.cases import Settings

RUNS = 50
"""How many cases are tried, if nobody says."""


def check(
    job: Job,
    formula: Operand,
    *,
    on: object,
    takes: Takes | None = None,
    gives: Kinds | Mapping[str, Kinds | None] | None = None,
    mode: str = "append",
    runs: int | None = None,
    seed: int = 0,
    length: int | None = None,
    time: Clock | None = None,
    flush: bool = False,
    shrink: float = SHRINK_SECONDS,
    limit: float = LIMIT,
    settings: Settings | None = None,
    progress: Progress | None = None,
    spark: SparkSession | None = None,
) -> Verdict:
    """Does every run of the job keep the property?

    job             the user's own function of streaming DataFrames
    formula         what must hold, from the first micro-batch on; a letter has `input`, `output`, `batch`, `watermark`
    on              where the inputs come from: streams of `gen`, a list of batches, a Schedule, or a source or kind,
                    whose events are then cut into batches
    takes, gives    what goes in and what comes out; by default what the source has, and the columns as they come;
                    a dict for jobs with several inputs or outputs
    mode            append, update or complete; batch or rdd for a word of one letter; dstream
    runs, seed      how many cases are tried; the seed makes them the same every time
    length          for sources of events: how many batches a case has; by default as many as the formula needs
    time            the time of a letter, for timeouts in time; by default the latest time in the input so far
    flush           whether the watermark is moved to the end of time at the end, so that every window closes
    shrink          seconds that are spent on making a failing case smaller; 0 to see it as it was found
    limit           seconds that a query may take
    settings        of Hypothesis: how many examples, and where failing ones are kept
    """
    require_job(job)
    _require_sides(formula, on)
    wanted = formula_of(formula, "check(job, formula)")
    if isinstance(wanted, Constant):
        raise FormulaError(
            "check(job, formula)",
            needed="a formula that reads the batches",
            came=repr(wanted),
            hint='always(all_records("output", lambda row: ...), during=5)',
        )
    if mode not in (*MODES, DSTREAM):
        raise TraceError(
            "check(mode=...)", needed="one of " + ", ".join((*MODES, DSTREAM)), came=repr(mode), hint="'append'"
        )
    if mode in STATIC and (wanted.safe_length or 1) > 1:
        raise FormulaError(
            f"check(mode={mode!r})",
            needed="a formula that one batch decides, since a run is one",
            came=f"{wanted!r}, which needs {wanted.safe_length}",
            hint="the formula without always or next; or mode='append', for a streaming job",
        )
    inputs = () if takes is None else takes.values() if isinstance(takes, Mapping) else (takes,)
    known = [kind for kinds in inputs for kind in kinds_of(kinds, "takes")]
    cases = cases_of(
        on,
        kinds=known,
        length=1 if mode in STATIC else length or max(LENGTH, wanted.safe_length or 0),
        key=f"{job_name(job)} {wanted!r}",
        settings=settings,
    )
    backend = _Backend(job, cases, takes, gives, mode, flush, limit, spark or session())
    _require_streams(wanted, backend)
    name = job_name(job)
    claim = f"{name} keeps {wanted!r}"
    called = code_name(job, "job")
    formula_name = name_beside(job, wanted, "formula")
    named = {called: job, formula_name: wanted}
    call = [called, formula_name, "on=schedule", *backend.options()]
    question = Question(
        claim=claim,
        formula=wanted,
        cases=cases,
        words=backend.words,
        replay=lambda case: replay_code("check", call, named, backend.kinds(), case, as_batches=True),
        packs=backend.may_pack,
        time=time,
        shrink_seconds=shrink,
    )
    return search(question, runs=_runs(runs, settings), seed=seed, progress=progress or at_terminal("check"))


def property_(job: Job | None = None, **options: Any) -> Callable[[Callable[..., Operand]], Callable[..., None]]:
    """A test of pytest: the decorated function returns the formula, and the test fails unless `check` holds.

    @tight.property(banned_users, on=users)
    def test_bad_users_stay_banned():
        return tight.always(bad >> tight.always(banned, during=5), during=10)

    The options are those of `check`. The function may take fixtures, and settings of Hypothesis may stand below the
    property: @settings(max_examples=20).
    """
    if job is None or "on" not in options:
        raise SourceError(
            "@tight.property(...)",
            needed="the job and where its input comes from",
            came="no job" if job is None else "no on=...",
            hint="@tight.property(job, on=gen.always(...))",
        )
    require_job(job)

    def decorate(make: Callable[..., Operand]) -> Callable[..., None]:
        @functools.wraps(make)
        def test(*arguments: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            given = {"settings": getattr(make, "_hypothesis_internal_use_settings", None), **options}
            formula = make(*arguments, **fixtures)
            if not isinstance(formula, Formula) and not callable(formula):
                raise FormulaError(
                    f"what {make.__name__} returns",
                    needed="the formula that must hold",
                    came=repr(formula),
                    hint="return tight.always(...)",
                )
            check(job, formula, **given).require()

        # Hypothesis refuses settings of a test that is not one of its own.
        for name in [name for name in vars(test) if name.startswith("_hypothesis")]:
            delattr(test, name)
        return test

    return decorate


def _require_sides(formula: object, on: object) -> None:
    """Raise if the formula and the source were mixed up: their operators have the same names."""
    if isinstance(formula, StreamGenerator | BatchGenerator):
        raise FormulaError(
            "check(job, formula)",
            needed="what must hold",
            came=f"where streams come from, {formula!r}",
            hint="check(job, tight.always(...), on=gen.always(...))",
        )
    if isinstance(on, Formula):
        raise SourceError(
            "check(on=...)",
            needed="where streams come from: streams of gen, or a list of batches",
            came=f"a formula, {on!r}",
            hint="check(job, tight.always(...), on=gen.always(...))",
        )


def _runs(runs: int | None, settings: Settings | None) -> int:
    if runs is None:
        return RUNS if settings is None else settings.max_examples
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise TraceError("check(runs=...)", needed="a whole number from 1", came=repr(runs), hint="runs=50")
    return runs


def _require_streams(formula: Formula, backend: _Backend) -> None:
    """Raise if a test names a stream that is not there, or two of them: known now, not after a run."""
    streams = (*backend.inputs, *backend.outputs)
    both = set(backend.inputs) & set(backend.outputs)
    if both:
        raise TraceError(
            "check(takes=..., gives=...)",
            needed="different names for inputs and outputs, since a formula reads both",
            came=f"{min(both)!r} for one of each",
            hint=f"gives={{'new_{min(both)}': ...}}, and the same name in what the job returns",
        )
    waiting = [formula]
    while waiting:
        part = waiting.pop()
        waiting += part.parts
        named = getattr(part.test, "stream", None) if isinstance(part, Now) else None
        if isinstance(named, str) and named not in streams:
            raise FormulaError(
                repr(part),
                needed="one of the streams " + ", ".join(map(repr, streams)),
                came=repr(named),
                hint=f"{streams[-1]!r}; with several, name them: takes={{...}}, gives={{...}}",
            )


# -- the back end -----------------------------------------------------------------------------------------------------

DSTREAM = "dstream"


@dataclass(slots=True)
class _Backend:
    """Runs the job on Spark, many cases at once where its plan permits it."""

    job: Job
    cases: Cases
    given: Takes | None
    gives: Kinds | Mapping[str, Kinds | None] | None
    mode: str
    flush: bool
    limit: float
    spark: SparkSession
    packs: bool = True
    tables: dict[str, Table] = field(default_factory=dict)
    """How the rows of each output are rows of Spark, once that was asked."""

    @property
    def takes(self) -> Takes:
        return self.cases.kinds if self.given is None else self.given

    @property
    def inputs(self) -> Mapping[str, Sequence[Kind]]:
        takes = self.takes
        named = takes if isinstance(takes, Mapping) else {INPUT: takes}
        return {name: kinds_of(kinds, "takes") for name, kinds in named.items()}

    @property
    def outputs(self) -> Mapping[str, Kinds | None]:
        return self.gives if isinstance(self.gives, Mapping) else {OUTPUT: self.gives}

    def kinds(self) -> list[Kind]:
        """Those that a replay has to know."""
        given = [kind for kinds in self.inputs.values() for kind in kinds]
        return given + [k for kinds in self.outputs.values() if kinds is not None for k in kinds_of(kinds, "gives")]

    def options(self) -> list[str]:
        """The arguments that a replay needs, where they are not what they are by default."""
        # Always with what goes in: a small case may not have a row of every kind, or none at all.
        told = [f"takes={kinds_code(self.takes)}"]
        told += [] if self.gives is None else [f"gives={kinds_code(self.gives)}"]
        told += [] if self.mode == "append" else [f"mode={self.mode!r}"]
        return told + (["flush=True"] if self.flush else [])

    # -- words -------------------------------------------------------------------------------------------------------

    def words(self, cases: Sequence[Schedule], steps: Sequence[Step], packed: bool) -> Iterator[Sequence[Letter]]:
        """The word of each case, letter by letter given to its step."""
        if packed and len(cases) > 1 and self.may_pack():
            result = run_many(
                self.job,
                cases,
                takes=self.takes,
                gives=self.gives,  # type: ignore[arg-type]  # not a dict, as may_pack has seen
                mode=self.mode,
                flush=self.flush,
                limit=self.limit,
                spark=self.spark,
            )
            self.packs = result.way != "alone"
            for ran, step in zip(result.runs, steps, strict=True):
                yield _read(letters_of({OUTPUT: ran}, self.inputs, self._frame), step)
            return
        for case, step in zip(cases, steps, strict=True):
            try:
                yield self._alone(case, step)
            except JobError as error:
                error.add_note(f"on this input:\n{case}")
                raise

    def may_pack(self) -> bool:
        """Whether several cases can share a run, as far as is known."""
        return self.packs and self.mode not in (*STATIC, DSTREAM) and not isinstance(self.gives, Mapping)

    def _alone(self, case: Schedule, step: Step) -> Sequence[Letter]:
        word = Word(self.inputs, self._frame, start_of(case.batches))

        def until(steps: Mapping[str, RunStep]) -> bool:
            letter = word.add(steps, self.outputs)
            return letter is not None and step(letter)

        if self.mode == DSTREAM:
            from streamtight.spark.dstream import run_dstreams

            run_dstreams(
                self.job,
                case,
                takes=self.takes,
                gives=self.outputs,
                limit=self.limit,
                spark=self.spark,
                until=until,
            )
            return word.letters
        flush = self.flush and self.mode not in STATIC
        if isinstance(self.gives, Mapping):
            # Every output is a query of its own, so what a batch gave is known only when the last one has run.
            runs = run_all(
                self.job,
                case,
                takes=self.takes,
                gives=self.gives,
                mode=self.mode,
                flush=flush,
                limit=self.limit,
                spark=self.spark,
            )
            return _read(letters_of(runs, self.inputs, self._frame), step)
        ran = run(
            self.job,
            case,
            takes=self.takes,
            gives=self.gives,
            mode=self.mode,
            flush=flush,
            until=lambda one: until({OUTPUT: one}),
            limit=self.limit,
            spark=self.spark,
        )
        if self.mode in STATIC:
            until({OUTPUT: ran.steps[0]})
        return word.letters

    # -- DataFrames --------------------------------------------------------------------------------------------------

    def _frame(self, stream: str, rows: Rows) -> DataFrame:
        table = self._table(stream, rows)
        return self.spark.createDataFrame([table.to_row(event) for event in rows], table.struct)

    def _table(self, stream: str, rows: Rows) -> Table:
        if stream in self.inputs:
            return Table(self.inputs[stream])
        if stream not in self.tables:
            kinds = self.outputs[stream]
            self.tables[stream] = Table(self._own(stream, rows) if kinds is None else kinds_of(kinds, "gives"))
        return self.tables[stream]

    def _own(self, stream: str, rows: Sequence[Event]) -> list[Kind]:
        """The kind of an output that the user did not describe."""
        if rows:
            return [rows[0].kind]
        output = stream if isinstance(self.gives, Mapping) else None
        columns = output_columns(self.job, takes=self.takes, output=output, mode=self.mode, spark=self.spark)
        if columns is None:
            raise UnsupportedError(
                f"letter.frame({stream!r})",
                needed="the columns of an output that has no row yet",
                came="a job that does not show them before it runs",
                hint="gives=..., which says what comes out",
            )
        return [kind_of(stream, columns)]


def _read(word: Sequence[Letter], step: Step) -> Sequence[Letter]:
    """The word up to the letter after which no more are wanted."""
    for place, letter in enumerate(word):
        if step(letter):
            return word[: place + 1]
    return word
