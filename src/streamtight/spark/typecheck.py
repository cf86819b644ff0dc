"""`typecheck` for ordinary PySpark jobs: does the result depend on an order, or on a choice, that Spark does not fix?

typecheck(job, takes=Order)                              reads the plan, and shows on Spark what it finds
typecheck(job, takes=table(k=int, v=int).key("k"))       with what is known of the rows
typecheck(job, takes=..., gives=PartitionBy("k", Seq(Out)))   the rows of each k have an order, too
"""

from __future__ import annotations

import ast
import functools
import inspect
import operator
import random
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from streamtight.errors import SourceError, StreamtightError, TraceError, UnsupportedError
from streamtight.method.compare.search import Progress
from streamtight.method.prove.allowed import names_of, uses
from streamtight.method.prove.inputs import RDDInput, TableInput
from streamtight.method.typecheck.findings import RULES, Finding, Reading, Shown, is_ignored, sorted_findings
from streamtight.method.typecheck.functions import file_of
from streamtight.method.typecheck.graphs import typecheck_graph, typecheck_transformer
from streamtight.program.operators import Graph, Operator
from streamtight.program.relation import Place
from streamtight.program.transformer import Transformer
from streamtight.source.generate import Source, generated, source_of
from streamtight.spark.compare import compare
from streamtight.spark.lift_frame import named_views, no_actions
from streamtight.spark.lint_lines import Lines, is_spark_class, rows_of_lists
from streamtight.spark.lint_plan import read_plan
from streamtight.spark.plan import Node, plan_of, rdd_of
from streamtight.spark.progress import at_terminal
from streamtight.spark.prove import deterministic
from streamtight.spark.rows import Kinds, kind_of, kinds_of
from streamtight.spark.run import MODES, ONE_AT_A_TIME, Job, builder, job_name, no_views_left, require_job, tables_of
from streamtight.spark.samples import struct_of_input
from streamtight.spark.session import is_connect, session
from streamtight.stream.dependence import Dependence, unordered
from streamtight.stream.event import Event, Kind, without_none
from streamtight.stream.schema import Schema
from streamtight.stream.trace import Trace
from streamtight.verdict import Outcome, Scope, Verdict

METHOD = "every operator of the plan is known not to depend on an order"
RUNS = 12
"""How many inputs are tried for each finding, with and without many equal values."""
MOST_ROWS = 200
"""Of an input that is tried: more than a limit in the job, if that is not larger."""
Given = Kinds | TableInput | RDDInput | DataFrame
Takes = Given | Mapping[str, Given] | Sequence[TableInput] | Sequence[RDDInput]


def typecheck(
    job: Job | Graph | Operator | Transformer,
    *,
    takes: Takes | None = None,
    gives: Kinds | Dependence | None = None,
    mode: str = "batch",
    confirm: bool = True,
    runs: int = RUNS,
    seed: int = 0,
    progress: Progress | None = None,
    spark: SparkSession | None = None,
) -> Verdict:
    """Does the result of a job depend on an order, or on a choice, that Spark does not fix?

    A typed graph, an operator of one, or a transformer can be asked as well, and knows what it takes: are its functions
    proved, or seen on generated inputs, to give equivalent outputs for equivalent inputs?

    job             your own function of DataFrames, as it is: nothing has to be declared in it
    takes           what goes in: a Kind or a schema, a table (with its keys), a sample DataFrame; {name: ...} for
                    several; rdd(int) for a function of RDDs, of which the functions that merge are proved or shown
    gives           a schema or a relation, if rows of the result must keep an order: PartitionBy("user", Seq(Out)),
                    same("user"); else any order is fine
    mode            "batch", or the output mode of a stream: "append", "update", "complete"
    confirm         whether what is found is shown by running the job on Spark, several ways; if not, it is only read
    runs, seed      how many inputs are tried for that, and which

    HOLDS if nothing was found and every operator of the plan is known. FAILS if two runs on Spark gave different rows.
    UNDECIDED, with what was found as the reason, if it was not shown, or with the operator that is not known.
    """
    if isinstance(job, Graph | Operator):
        return typecheck_graph(job, seed=seed)
    if isinstance(job, Transformer):
        return typecheck_transformer(job, seed=seed)
    if takes is None:
        raise TraceError("typecheck(takes=...)", needed="what goes in", came="nothing", hint="takes=Order, a Kind")
    return examine(
        job, takes=takes, gives=gives, mode=mode, confirm=confirm, runs=runs, seed=seed, progress=progress, spark=spark
    ).verdict


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found in a job, and the verdict that follows from it."""

    findings: tuple[Finding, ...]
    reading: Reading
    verdict: Verdict


def examine(
    job: Job,
    *,
    takes: Takes,
    gives: Kinds | Dependence | None = None,
    mode: str = "batch",
    confirm: bool = True,
    runs: int = RUNS,
    seed: int = 0,
    progress: Progress | None = None,
    spark: SparkSession | None = None,
) -> Examined:
    """The findings behind `typecheck`, one by one."""
    require_job(job)
    if mode not in MODES or mode == "rdd":
        raise TraceError(
            "typecheck(mode=...)", needed="batch, append, update or complete", came=repr(mode), hint="mode='batch'"
        )
    if rdds := _rdds(takes):
        return _examined_rdds(job, rdds, runs, seed, spark)
    inputs = _inputs(job, takes)
    spark = spark or session()
    asked = _Asked(job, inputs, gives, mode, runs, seed, progress or at_terminal("typecheck"), spark)
    started = time.perf_counter()
    try:
        reading, plan = asked.read()
    except UnsupportedError as error:
        return Examined((), Reading(()), _undecided(asked.claim, f"{error}", Scope.tested(0)))
    read = time.perf_counter() - started
    findings = tuple(one for one in reading.findings if not is_ignored(one))
    cost = {"seconds to read": read}
    if confirm and findings:
        findings = asked.confirmed(findings, reading, plan)
        cost["seconds on Spark"] = time.perf_counter() - started - read
    ignored = len(reading.findings) - len(findings)
    return Examined(findings, reading, replace(_verdict(asked, findings, reading, ignored), cost=cost))


def second_opinion(
    job: Job,
    *,
    takes: Takes,
    gives: Kinds | Dependence | None = None,
    mode: str = "batch",
    runs: int = RUNS,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> Verdict:
    """What runs on Spark say of a job, whatever its plan says: FAILS if two of them differ."""
    asked = _Asked(job, _inputs(job, takes), gives, mode, runs, seed, None, spark or session())
    _, plan = asked.read()
    found, why = asked._difference(job, _rows_for(plan))
    return _undecided(asked.claim, why, Scope.tested(asked.tried, seed=seed)) if found is None else found


def _verdict(asked: _Asked, findings: tuple[Finding, ...], reading: Reading, ignored: int) -> Verdict:
    shown = [(one, one.counterexample) for one in findings if one.counterexample is not None]
    others = "\n".join(str(one) for one in findings)
    if shown:
        first, example = max(shown, key=lambda pair: pair[0].rule.severity)
        names = " or ".join(dict.fromkeys(one.rule.name for one, _ in shown))
        told = replace(example, finding=names, explanation=f"{first}\n{example.explanation}")
        rest = others if len(findings) > 1 else None
        scope = Scope.tested(asked.runs, seed=asked.seed)
        return Verdict(asked.claim, Outcome.FAILS, scope, told, rest)
    tried = Scope.tested(asked.tried, seed=asked.seed) if asked.tried else Scope.tested(0)
    unread = [f"{place} is not known, and may depend on an order" for place in reading.unknown]
    if findings or unread:
        return _undecided(asked.claim, "\n".join([*map(str, findings), *unread]), tried)
    assumptions = list(reading.assumptions)
    if ignored:
        assumptions.append(f"what {ignored} comments in the job ignore is meant so")
    return Verdict(asked.claim, Outcome.HOLDS, Scope.proved(), method=METHOD, assumptions=tuple(assumptions))


def _undecided(claim: str, reason: str, scope: Scope) -> Verdict:
    return Verdict(claim, Outcome.UNDECIDED, scope, reason=reason)


# -- what goes in ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Input:
    kinds: tuple[Kind, ...]
    keys: tuple[tuple[int, ...], ...] = ()
    promise: Dependence = unordered
    conditions: tuple[str, ...] = ()


def _inputs(job: Job, takes: Any) -> dict[str | None, _Input]:
    if isinstance(takes, Mapping):
        return {str(name): _input(str(name), given) for name, given in takes.items()}
    if isinstance(takes, Sequence) and takes and all(isinstance(one, TableInput | DataFrame) for one in takes):
        if len(takes) == 1:
            return {None: _input("Row", takes[0])}
        return {name: _input(name, given) for name, given in zip(names_of(job, len(takes)), takes, strict=True)}
    return {None: _input("Row", takes)}


def _input(name: str, given: Any) -> _Input:
    if isinstance(given, DataFrame):
        return _Input((kind_of(name, given.schema),))
    if isinstance(given, TableInput):
        return _Input((kind_of(name, struct_of_input(given)),), given.keys, conditions=given.conditions)
    return _Input(kinds_of(given, "takes"), promise=given if isinstance(given, Schema) else unordered)


# -- functions of RDDs -----------------------------------------------------------------------------------------------


def _rdds(takes: Any) -> list[RDDInput]:
    """The inputs, if they are RDDs."""
    given = (
        list(takes.values()) if isinstance(takes, Mapping) else takes if isinstance(takes, list | tuple) else [takes]
    )
    found = [one for one in given if isinstance(one, RDDInput)]
    if found and len(found) < len(given):
        raise SourceError(
            "typecheck(takes=...)",
            needed="RDDs alone, or tables alone",
            came=repr(takes),
            hint="takes=[tight.rdd(int)]",
        )
    return found


def _examined_rdds(job: Job, inputs: Sequence[RDDInput], runs: int, seed: int, spark: SparkSession | None) -> Examined:
    """May the functions that reduce and fold RDDs merge in any order? It is proved, or two results are shown."""
    verdict = deterministic(job, inputs=inputs, seed=seed, spark=spark)
    claim = f"{job_name(job)} does not depend on an order that Spark does not fix"
    if verdict.counterexample is None:
        return Examined((), Reading(()), replace(verdict, claim=claim))
    finding = Finding(RULES["REDUCE_ORDER"], _merging(job), shown=Shown.SHOWN, counterexample=verdict.counterexample)
    if is_ignored(finding):
        return Examined((), Reading((finding,)), _undecided(claim, f"a comment ignores {finding}", verdict.scope))
    told = replace(
        verdict.counterexample,
        finding=finding.rule.name,
        explanation=f"{finding}\n{verdict.counterexample.explanation}",
    )
    return Examined((finding,), Reading((finding,)), replace(verdict, claim=claim, counterexample=told))


_MERGING = ("reduce", "fold", "aggregate", "treeReduce", "treeAggregate", "reduceByKey", "foldByKey", "aggregateByKey",
    "combineByKey", "take", "first", "zipWithIndex", "groupByKey", "groupBy")  # fmt: skip


def _merging(job: Job) -> Place:
    """Where a job merges rows, if it does so in one place."""
    at = file_of(job)
    if at is None:
        return Place("the job")
    try:
        lines, first = inspect.getsourcelines(job)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError):  # a lambda inside something else
        return Place("the job", *at)
    calls = [one.func for one in ast.walk(tree) if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute)]
    found = [one for one in calls if one.attr in _MERGING]
    if len(found) != 1:
        return Place("the job", *at)
    return Place(found[0].attr, at[0], first + (found[0].end_lineno or 1) - 1)


# -- reading and showing ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Asked:
    job: Job
    inputs: dict[str | None, _Input]
    gives: Kinds | Dependence | None
    mode: str
    runs: int
    seed: int
    progress: Progress | None
    spark: SparkSession
    tried: int = 0

    @property
    def claim(self) -> str:
        up_to = f", up to {self.gives!r}" if self._order.clauses else ""
        return f"{job_name(self.job)} does not depend on an order that Spark does not fix{up_to}"

    @property
    def _order(self) -> Dependence:
        return self.gives if isinstance(self.gives, Dependence) else unordered

    @property
    def _takes(self) -> Any:
        if None in self.inputs:
            return self.inputs[None].kinds
        return {name: one.kinds for name, one in self.inputs.items()}

    @property
    def _promise(self) -> Dependence:
        made = [one.promise for one in self.inputs.values() if one.promise.clauses]
        return functools.reduce(operator.or_, made) if made else unordered

    # -- reading -----------------------------------------------------------------------------------------------------

    def read(self) -> tuple[Reading, Node]:
        """What the plan says."""
        if is_connect(self.spark):
            raise UnsupportedError(
                "typecheck", needed="a classic session", came="a Spark Connect session", hint="tight.session()"
            )
        lines = Lines(self.spark)
        try:
            frame, keys, own = self._built(lines)
        except StreamtightError:
            raise
        except Exception as error:  # the border of user code
            raise SourceError(
                f"typecheck({job_name(self.job)}, ...)",
                needed="a job that Spark can build on takes=",
                came=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}",
                hint="the columns that it needs in takes=; the exception above has all that Spark says",
            ) from error
        missing = {name for clause in self._order.clauses for name in clause.key} - set(frame.columns)
        if missing:
            raise SourceError(
                f"typecheck(gives={self._order!r})",
                needed=f"columns of the result: {', '.join(frame.columns)}",
                came=", ".join(sorted(missing)),
                hint=f"same({frame.columns[0]!r})",
            )
        plan = plan_of(frame, self.spark)
        reading = read_plan(
            plan,
            frame.columns,
            lines=lines,
            inputs=own,
            keys=keys,
            is_known=is_spark_class(self.spark),
            mode=self.mode,
            gives=self._order,
            promise=self._promise,
        )
        return reading, plan

    def _built(self, lines: Lines) -> tuple[DataFrame, dict[int, tuple[tuple[int, ...], ...]], set[int | None]]:
        """The job's result on empty inputs; the keys of inputs by the numbers of their RDDs; and what is input."""
        tables = tables_of(self._takes)
        build = builder(self.job, tables, None, wants_stream=self.mode != "batch")
        with ONE_AT_A_TIME, no_views_left(self.spark), no_actions(), rows_of_lists(self.spark) as listed:
            if self.mode != "batch":
                from streamtight.spark.jvm import JvmEngine

                with lines.noted():
                    engine = JvmEngine(self.spark, shuffle_partitions=1)
                    frame = engine.probe(build, [one.struct for one in tables.values()])[1]
                return frame, {}, {rdd_of(one, self.spark) for one in listed}
            frames = [self.spark.createDataFrame([], one.struct) for one in tables.values()]
            views = {name: one for name, one in zip(self.inputs, frames, strict=True) if name is not None}
            if not views:
                views = {names_of(self.job, 1)[0]: frames[0]}
            with named_views(self.spark, views), lines.noted():
                frame = build(frames)
            numbers = [rdd_of(one, self.spark) for one in frames]
            keys = {
                number: one.keys
                for number, one in zip(numbers, self.inputs.values(), strict=True)
                if number is not None
            }
            return frame, keys, {*numbers, *(rdd_of(one, self.spark) for one in listed)}

    # -- showing -----------------------------------------------------------------------------------------------------

    def confirmed(self, findings: tuple[Finding, ...], reading: Reading, plan: Node) -> tuple[Finding, ...]:
        """These findings of the reading, each with whether runs on Spark show it."""
        can = [one for one in findings if one.rule.runs_differ]
        cannot = [replace(one, because="two runs do not show it") for one in findings if not one.rule.runs_differ]
        if not can:
            return sorted_findings(cannot)
        if any(one.conditions for one in self.inputs.values()):
            told = "inputs with conditions are not generated"
            return sorted_findings([*(replace(one, because=told) for one in can), *cannot])
        rows = _rows_for(plan)
        whole, why = self._difference(self.job, rows)
        if whole is None:
            return sorted_findings([*(replace(one, shown=Shown.NOT_SHOWN, because=why) for one in can), *cannot])
        # What comments ignore can make runs differ as well, and so can operators that are not known.
        among = [one for one in reading.findings if one.rule.runs_differ]
        return sorted_findings([*(self._alone(one, among, reading, whole, rows) for one in can), *cannot])

    def _alone(self, one: Finding, among: Sequence[Finding], reading: Reading, whole: Verdict, rows: int) -> Finding:
        """This finding, shown where no other one reaches; the job as a whole is known to differ."""
        others = [other for other in among if other != one]
        ignored = any(is_ignored(other) for other in others)
        together = replace(one, shown=Shown.TOGETHER, counterexample=whole.counterexample)
        if ignored:
            together = replace(one, shown=Shown.NOT_SHOWN, because="what a comment ignores reaches the same columns")
        if reading.unknown:
            return together
        if not others:
            return replace(together, shown=Shown.SHOWN)
        own = [name for name in one.columns or () if not any(name in (other.columns or ()) for other in others)]
        if self._order.clauses or any(other.columns is None for other in others) or not (own or one.columns is None):
            return together
        columns = [sf.col(f"`{name}`") for name in own] or [sf.lit(1).alias("one")]
        job = self.job

        def only(*given: DataFrame, **named: DataFrame) -> DataFrame:
            made: Any = job(*given, **named)
            selected: DataFrame = made.select(*columns)
            return selected

        only.__name__ = job_name(job)
        found, why = self._difference(only, rows, shrink=5.0 if ignored else 0.0)
        if found is not None:
            return replace(one, shown=Shown.SHOWN, counterexample=(found if ignored else whole).counterexample)
        return together if one.columns is None else replace(one, shown=Shown.NOT_SHOWN, because=why)

    def _difference(self, job: Callable[..., Any], rows: int, shrink: float = 5.0) -> tuple[Verdict | None, str]:
        """Two runs of this job that differ; or why there are none."""
        why = ""
        gives = self.gives if isinstance(self.gives, Schema) else None
        job = self._finding_views(job)
        for source in self._sources(rows):
            self.tried += self.runs
            try:
                verdict = compare(
                    job,
                    job,
                    on=source,
                    upto=self._order if self.mode in ("batch", "append") else unordered,
                    takes=self._takes,
                    gives=gives,
                    mode=self.mode,
                    runs=self.runs,
                    seed=self.seed,
                    shrink=shrink,
                    progress=self.progress,
                    spark=self.spark,
                )
            except Exception as error:  # the border of user code: what raises is not shown, and no verdict
                why = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
                continue
            if verdict.fails:
                return verdict, ""
            why = verdict.reason or "all runs gave the same"
        return None, why

    def _finding_views(self, job: Callable[..., Any]) -> Callable[..., Any]:
        """The same job, whose SQL finds the inputs by their names."""
        if not (uses(self.job, "sql") or uses(self.job, "table")):
            return job
        names = names_of(self.job, len(self.inputs)) if None in self.inputs else list(self.inputs)

        @functools.wraps(job)
        def found(*given: DataFrame, **named: DataFrame) -> Any:
            for name, frame in [*zip(names, given, strict=False), *named.items()]:
                frame.createOrReplaceTempView(str(name))
            return job(*given, **named)

        return found

    def _sources(self, rows: int) -> Iterator[Source]:
        """Inputs with many equal values; then with few."""
        kinds = [kind for one in self.inputs.values() for kind in one.kinds]
        for spread in (False, True):
            values = _values(kinds, rows, spread, streams=self.mode != "batch")
            source = generated(kinds, upto=self._promise, size=(min(4, rows), rows), **values)
            yield (
                source_of(self._with_keys(source), kinds=kinds)
                if any(one.keys for one in self.inputs.values())
                else source
            )

    def _with_keys(self, source: Source) -> Callable[[random.Random], Trace]:
        keys = {one.kinds[0]: one.keys for one in self.inputs.values() if one.keys}

        def made(rng: random.Random) -> Trace:
            (trace,) = source.traces(1, rng.randrange(1 << 30))
            seen: set[Any] = set()
            events = [event for event in trace.events if _is_new(event, keys.get(event.kind, ()), seen)]
            return Trace(events, self._promise)

        return made


def _is_new(event: Event, keys: tuple[tuple[int, ...], ...], seen: set[Any]) -> bool:
    """Whether no event before had one of its keys."""
    own = [(event.kind, place, tuple(event[1 + column] for column in key)) for place, key in enumerate(keys)]
    if any(one in seen for one in own):
        return False
    seen.update(own)
    return True


_FLOATS = (0.1, 0.2, 0.3, 0.7, 1e16, -1e16, 1.0)
"""Of which sums depend on the order."""


_TEXTS = ("a", "b", "A", "home")
"""Few, so that groups are large and joins find partners."""
_SOON = [datetime(2024, 1, 1) + timedelta(milliseconds=100 * step) for step in range(8)]
"""Of which none is late for another."""


def _values(kinds: Sequence[Kind], rows: int, spread: bool, *, streams: bool) -> dict[str, Any]:
    """What fields draw from, where the usual small values would show less."""
    types: dict[str, set[Any]] = {}
    for kind in kinds:
        for name, declared in kind.fields.items():
            types.setdefault(name, set()).add(without_none(declared)[0])
    values: dict[str, Any] = {}
    for name, of in types.items():
        if of == {float}:
            values[name] = _FLOATS
        elif of == {datetime} and streams:
            values[name] = _SOON
        elif of == {int} and spread:
            values[name] = range(2 * rows)
        elif of == {str}:
            values[name] = [f"t{number}" for number in range(2 * rows)] if spread else _TEXTS
    return values


def _rows_for(plan: Node) -> int:
    """How many rows an input needs at most, so that limits in the plan leave some of them out."""
    counts = [0]
    for node in _operators(plan):
        number = node.get("limitExpr") or node.get("offsetExpr") or {}
        if isinstance(number.get("value"), int):
            counts.append(number["value"])
    return min(max(counts) + 12, MOST_ROWS)


def _operators(value: Any) -> Iterator[Node]:
    if isinstance(value, dict):
        if "node" in value:
            yield value
        for inner in value.values():
            yield from _operators(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _operators(inner)
