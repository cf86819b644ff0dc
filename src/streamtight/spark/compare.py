"""`compare` and `laws` for PySpark jobs: the questions of method/compare, asked on Spark.

compare(reference, candidate, on=source, upto=relation)     do two jobs give the same stream?
compare(job, job, on=source)                                is one job deterministic?
compare(allowed(...), job, on=source)                       is every output right for its input?
compare(recorded(path), recorded(other))                    are two recorded outputs the same?
laws(job, on=source)                                        does a job mean the same however it is run?
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from streamtight.errors import JobError, TraceError
from streamtight.method.compare import jobs
from streamtight.method.compare.jobs import LAWS, Asked
from streamtight.method.compare.oracle import Oracle
from streamtight.method.compare.outputs import Equal
from streamtight.method.compare.search import SHRINK_SECONDS, Progress, Runner
from streamtight.method.replay import code_name, relation_code, replay_code
from streamtight.program.run import Run
from streamtight.source.generate import Source, listed, source_of
from streamtight.spark.pack import grouping_columns, run_many
from streamtight.spark.progress import at_terminal
from streamtight.spark.recorded import LIMIT as RECORDED_LIMIT
from streamtight.spark.recorded import Recorded, compare_recorded
from streamtight.spark.rows import Kinds, kinds_code, kinds_of
from streamtight.spark.run import LIMIT, MODES, STATIC, Job, Takes, job_name, require_job, run
from streamtight.spark.session import session
from streamtight.stream.dependence import Dependence, ordered, unordered
from streamtight.stream.equality import equality_of
from streamtight.stream.event import Event, Kind, without_none
from streamtight.stream.schedule import Schedule
from streamtight.verdict import Outcome, Scope, Verdict


def compare(
    reference: Job | Oracle | Recorded,
    candidate: Job | Recorded,
    *,
    on: object = None,
    upto: Dependence = unordered,
    equal: Equal = None,
    takes: Takes | None = None,
    gives: Kinds | None = None,
    mode: str = "append",
    reference_mode: str | None = None,
    key: str | Iterable[str] | None = None,
    runs: int = 50,
    seed: int = 0,
    flush: bool = True,
    promise: Dependence | None = None,
    shrink: float = SHRINK_SECONDS,
    limit: float | None = None,
    progress: Progress | None = None,
    spark: SparkSession | None = None,
) -> Verdict:
    """Do two jobs give the same stream, up to the order that matters to whoever reads it?

    reference       a job, what is right (`expected`, `one_of`, `allowed`), or a recorded output
    candidate       the job that is asked about; the reference itself, to ask whether it is deterministic
    on              the source of inputs: generated, listed, a function of a random generator; a Schedule to replay one
    upto            which rows of the output must keep their order; by default none
    equal           when two rows count as equal, if not all of their columns matter
    takes, gives    what goes in and what comes out; by default what the source has, and the columns as they come
    mode            append, update, complete, batch or rdd; reference_mode if the reference runs another way
    key             for update: the columns that say which row an update replaces; by default those of the groupBy
    runs, seed      how many inputs are tried; the seed makes them the same every time
    flush           whether the watermark is moved to the end of time at the end, so that every window closes
    promise         with a Schedule: the order that the source of it keeps
    shrink          seconds that are spent on making a failing input smaller; 0 to see it as it was found
    limit           seconds that a query may take, by default 120; of a comparison of recorded outputs, by default 3600
    """
    if isinstance(reference, Recorded) or isinstance(candidate, Recorded):
        return _compare_recorded(reference, candidate, on=on, upto=upto, equal=equal, limit=limit, spark=spark)
    _require_modes(mode, reference_mode)
    name, reference_name = _name(candidate), _name(reference)
    upto, equal = _relation(upto, mode), equality_of(equal, "compare")
    source, fixed = _source(on, takes, promise)
    _require_runs(runs)
    if takes is None and not source.kinds:
        return _yields_nothing(f"{name} gives the same stream as {reference_name}")
    backend = _Spark.of(source, takes, gives, flush, LIMIT if limit is None else limit, spark)
    for one, its_mode in ((candidate, mode), (reference, reference_mode or mode)):
        if not isinstance(one, Oracle):
            require_job(one)
            key = backend.key_of(one, its_mode, key)
    call = [code_name(reference, "reference"), code_name(candidate, "candidate"), "on=schedule"]
    call += [] if upto == unordered else [f"upto={relation_code(upto)}"]
    call += [f"promise={relation_code(source.upto)}"] if reference is candidate else []
    call += _options(
        takes=takes, equal=equal, gives=gives, key=key, mode=mode, reference_mode=reference_mode, flush=flush
    )
    named = {call[0]: reference, call[1]: candidate}
    asked = Asked(
        backend=backend,
        source=source,
        upto=upto,
        equal=equal,
        mode=mode,
        key=_names(key),
        runs=runs,
        seed=seed,
        replay=lambda schedule: replay_code("compare", call, named, backend.kinds(), schedule),
        fixed=fixed,
        progress=progress or at_terminal("compare"),
        shrink_seconds=shrink,
    )
    up_to = "" if upto == unordered else f", up to {upto!r}"
    if source.upto == ordered and fixed is None:  # such an input has no second partition, and the claim must say so
        up_to += ", given its input in one partition"
    if reference is candidate:
        claim = f"{name} gives the same stream whenever it is given the same one{up_to}"
    elif isinstance(reference, Oracle):
        claim = f"{name} gives a stream that {reference.name} calls right{up_to}"
    else:
        claim = f"{name} gives the same stream as {reference_name}{up_to}"
    return jobs.compare(asked, reference, candidate, reference_mode=reference_mode or mode, claim=claim)


def laws(
    job: Job,
    *,
    on: object,
    upto: Dependence = unordered,
    equal: Equal = None,
    takes: Takes | None = None,
    gives: Kinds | None = None,
    mode: str = "append",
    key: str | Iterable[str] | None = None,
    only: str | Sequence[str] = LAWS,
    runs: int = 20,
    seed: int = 0,
    flush: bool = True,
    promise: Dependence | None = None,
    shrink: float = SHRINK_SECONDS,
    limit: float = LIMIT,
    progress: Progress | None = None,
    spark: SparkSession | None = None,
) -> dict[str, Verdict]:
    """Does a streaming job mean the same however it is run? A verdict for each law; no specification is needed.

    cuts         however its input is cut into micro-batches        BATCH_DEPENDENT, DROPPED_LATE
    partitions   however its input is spread over partitions        PARTITION_DEPENDENT
    order        in every order that the source allows              ORDER_DEPENDENT, DROPPED_LATE
    restarts     stopped and started again, a batch replayed        LOST_ON_RESTART, DUPLICATED_ON_REPLAY
    batch        run as a batch instead of a stream                 LOST_IN_STREAM, OPEN_AT_END, STREAM_DIFFERS

    What is compared is what a consumer ends up with: every row in append mode, the last table in complete mode, the
    last row of each key in update mode. The options are those of `compare`.
    """
    chosen = [only] if isinstance(only, str) else list(only)
    if unknown := [law for law in chosen if law not in LAWS]:
        raise TraceError("laws(only=...)", needed="some of " + ", ".join(LAWS), came=repr(unknown), hint="only='cuts'")
    if mode in STATIC or mode not in MODES:
        raise TraceError(
            "laws(mode=...)",
            needed="a streaming mode: append, update or complete",
            came=repr(mode),
            hint=f"compare(job, job, mode={mode if mode in STATIC else 'batch'!r}, ...): is it deterministic?",
        )
    require_job(job)
    upto, equal = _relation(upto, mode), equality_of(equal, "laws")
    source, fixed = _source(on, takes, promise)
    _require_runs(runs)
    name = _name(job)
    if takes is None and not source.kinds:
        return {law: _yields_nothing(f"{name} keeps the law of {law}") for law in chosen}
    backend = _Spark.of(source, takes, gives, flush, limit, spark)
    key = backend.key_of(job, mode, key)
    options = [] if upto == unordered else [f"upto={relation_code(upto)}"]
    options += [f"promise={relation_code(source.upto)}"]
    options += _options(takes=takes, equal=equal, gives=gives, key=key, mode=mode, reference_mode=None, flush=flush)
    called = code_name(job, "job")

    def asked(law: str) -> Asked[Job]:
        call = [called, "on=schedule", f"only={law!r}", *options]
        return Asked(
            backend=backend,
            source=source,
            upto=upto,
            equal=equal,
            mode=mode,
            key=_names(key),
            runs=runs,
            seed=seed,
            replay=lambda schedule: replay_code("laws", call, {called: job}, backend.kinds(), schedule, pick=law),
            fixed=fixed,
            progress=progress or at_terminal(f"laws: {law}"),
            shrink_seconds=shrink,
        )

    return {law: jobs.law(asked(law), job, name=name, law=law) for law in chosen}


# -- what was asked ---------------------------------------------------------------------------------------------------


def _compare_recorded(
    reference: object,
    candidate: object,
    *,
    on: object,
    upto: Dependence,
    equal: Equal,
    limit: float | None,
    spark: SparkSession | None,
) -> Verdict:
    if not isinstance(reference, Recorded) or not isinstance(candidate, Recorded):
        raise TraceError(
            "compare(reference, candidate)",
            needed="two recorded outputs, or two jobs",
            came=f"{_name(reference)} and {_name(candidate)}",
            hint="record the output of the job first: df.write.parquet(path)",
        )
    if on is not None:
        raise TraceError(
            "compare(recorded, recorded, on=...)",
            needed="no source",
            came=repr(on),
            hint="leave out on=: nothing is run",
        )
    limit = RECORDED_LIMIT if limit is None else limit
    return compare_recorded(reference, candidate, upto=upto, equal=equal, limit=limit, spark=spark)


def _require_modes(mode: str, reference_mode: str | None) -> None:
    for given in (mode, reference_mode or mode):
        if given not in MODES:
            raise TraceError(
                "compare(mode=...)", needed="one of " + ", ".join(MODES), came=repr(given), hint="'append'"
            )


def _require_runs(runs: object) -> None:
    if not isinstance(runs, int) or isinstance(runs, bool) or runs < 1:
        raise TraceError("runs=...", needed="a whole number from 1", came=repr(runs), hint="runs=50")


def _yields_nothing(claim: str) -> Verdict:
    reason = "vacuous: the source yields nothing"
    return Verdict(claim, Outcome.UNDECIDED, Scope.tested(0), reason=reason)


def _relation(upto: object, mode: str) -> Dependence:
    if not isinstance(upto, Dependence):
        raise TraceError(
            "upto=...", needed="a dependence or a schema", came=repr(upto), hint="same('taxi_id'), ordered, unordered"
        )
    if mode in ("update", "complete") and upto.clauses:
        raise TraceError(
            f"upto=... with mode={mode!r}",
            needed="no order: what a consumer ends up with is a table",
            came=repr(upto),
            hint="leave out upto=, or mode='append'",
        )
    return upto


def _source(on: object, takes: Takes | None, promise: Dependence | None) -> tuple[Source, Schedule | None]:
    if isinstance(on, Schedule):
        return listed([*on.events], upto=promise or ordered), on
    if on is None:
        raise TraceError("on=...", needed="where the inputs come from", came="nothing", hint="on=generated(GPS)")
    if promise is not None:
        raise TraceError(
            "promise=...",
            needed="a Schedule as on=",
            came=repr(on),
            hint="a source has its own: generated(GPS, upto=...)",
        )
    inputs = () if takes is None else takes.values() if isinstance(takes, Mapping) else (takes,)
    return source_of(on, kinds=[kind for kinds in inputs for kind in kinds_of(kinds, "takes")]), None


def _name(job: object) -> str:
    return job.name if isinstance(job, Oracle) else job_name(job)


def _names(key: str | Iterable[str] | None) -> tuple[str, ...]:
    return () if key is None else (key,) if isinstance(key, str) else tuple(key)


def _options(
    *,
    takes: Takes | None,
    equal: Equal,
    gives: Kinds | None,
    key: object,
    mode: str,
    reference_mode: str | None,
    flush: bool,
) -> list[str]:
    """The arguments that a replay needs, where they are not what they are by default."""
    told = {
        "takes": None if takes is None else kinds_code(takes),
        "equal": None if equal is None else repr(equal),
        "gives": None if gives is None else kinds_code(gives),
        "key": None if key is None else repr(key),
        "mode": None if mode == "append" else repr(mode),
        "reference_mode": None if reference_mode is None else repr(reference_mode),
        "flush": None if flush else "False",
    }
    return [f"{name}={text}" for name, text in told.items() if text is not None]


# -- the back end -----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Spark:
    """Runs jobs on Spark, packed where the plan permits it."""

    takes: Takes
    gives: Kinds | None
    flush: bool
    limit: float
    spark: SparkSession
    own_columns: dict[Kind, Kind] = field(default_factory=dict)
    """What came out of each job, if the user did not say it, and the one kind that stands for both."""
    alone: set[tuple[int, str]] = field(default_factory=set)
    """The jobs, and their modes, of which it turned out that they cannot be packed."""

    @classmethod
    def of(
        cls,
        source: Source,
        takes: Takes | None,
        gives: Kinds | None,
        flush: bool,
        limit: float,
        spark: SparkSession | None,
    ) -> _Spark:
        return cls(source.kinds if takes is None else takes, gives, flush, limit, spark or session())

    def kinds(self) -> list[Kind]:
        """Those that a replay has to know."""
        given = self.takes.values() if isinstance(self.takes, Mapping) else (self.takes,)
        told = [kind for kinds in given for kind in kinds_of(kinds, "takes")]
        return told if self.gives is None else [*told, *kinds_of(self.gives, "gives")]

    def key_of(self, job: Job, mode: str, key: str | Iterable[str] | None) -> str | Iterable[str] | None:
        """Which columns say what row an update replaces."""
        if mode != "update" or key is not None:
            return key
        found = grouping_columns(job, takes=self.takes, spark=self.spark)
        if found is None:
            raise TraceError(
                f"mode='update' of {_name(job)}",
                needed="the columns that say which row an update replaces",
                came="a plan that does not show them",
                hint="key='user', or key=('user', 'window')",
            )
        return found

    def packs(self, job: Job, mode: str) -> bool:
        """Whether several schedules of this job could share a run, as far as is known."""
        return mode not in STATIC and (id(job), mode) not in self.alone

    def runner(self, job: Job, mode: str) -> Runner:
        """How this job is run: alone, or many schedules at once."""

        def run_them(schedules: Sequence[Schedule], packed: bool) -> Sequence[Run]:
            flush = self.flush and mode not in STATIC
            if packed and self.packs(job, mode) and len(schedules) > 1:
                result = run_many(
                    job,
                    schedules,
                    takes=self.takes,
                    gives=self.gives,
                    mode=mode,
                    flush=flush,
                    limit=self.limit,
                    spark=self.spark,
                )
                if result.way == "alone" and not any(schedule.restarts for schedule in schedules):
                    self.alone.add((id(job), mode))
                return self._unnamed(job, result.runs)
            return self._unnamed(job, [self._alone(job, mode, flush, schedule) for schedule in schedules])

        return run_them

    def _alone(self, job: Job, mode: str, flush: bool, schedule: Schedule) -> Run:
        try:
            return run(
                job,
                schedule,
                takes=self.takes,
                gives=self.gives,
                mode=mode,
                flush=flush,
                limit=self.limit,
                spark=self.spark,
            )
        except JobError as error:
            error.add_note(f"on this input:\n{schedule}")
            raise

    def _unnamed(self, job: Job, runs: Sequence[Run]) -> Sequence[Run]:
        """The same, where the user did not say what comes out, with one kind for the columns of both jobs."""
        if self.gives is not None:
            return runs
        return [
            replace(
                one,
                steps=tuple(
                    replace(step, output=tuple(tuple(self._output(job, e) for e in part) for part in step.output))
                    for step in one.steps
                ),
            )
            for one in runs
        ]

    def _output(self, job: Job, event: Event) -> Event:
        kind = self.own_columns.get(event.kind)
        if kind is None:
            kind = Kind("Output", **{n: without_none(declared)[0] | None for n, declared in event.kind.fields.items()})
            for own, known in self.own_columns.items():
                if known is not kind:
                    raise TraceError(
                        "compare(...)",
                        needed="two jobs that give the same columns",
                        came=f"{own!r} and {Kind(_name(job), **event.kind.fields)!r}",
                        hint="gives=Kind(...) for both, or a select(...) at the end of one",
                    )
            self.own_columns[event.kind] = kind
        return kind(*event[1:])
