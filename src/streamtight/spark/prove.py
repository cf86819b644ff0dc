"""`prove` for PySpark programs: are they equal on every input?

prove(old, new, inputs=[rdd(int), rdd((str, int))])     functions of RDDs, to RDDs or to values
prove(old, new, inputs=[table(k=int), orders_sample])   functions of DataFrames, to a DataFrame
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from streamtight.errors import SourceError, StreamtightError, TimeLimitError
from streamtight.method.prove.allowed import names_of, parameters_of, uses
from streamtight.method.prove.frame_programs import FramePrograms, columns_result
from streamtight.method.prove.inputs import Input, RDDInput, TableInput, are_tables, require_settings, table
from streamtight.method.prove.programs import Difference, Program, Programs, Run
from streamtight.method.prove.results import IN_ORDER, Result, run
from streamtight.method.prove.search import SECONDS, Question, search
from streamtight.method.prove.watchdog import Watchdog
from streamtight.method.replay import code_name
from streamtight.program.expression import SqlFunction
from streamtight.spark.engine import importable, interrupted_after, settings
from streamtight.spark.failure import job_error
from streamtight.spark.lift_frame import BuiltFrame, build_frame, condition_of, named_views
from streamtight.spark.lift_plan import Known
from streamtight.spark.load import first_line, import_lines, load_function
from streamtight.spark.progress import is_watched
from streamtight.spark.rdd import require_rdds
from streamtight.spark.session import query_logs, session
from streamtight.verdict import Verdict

RERUNS = 2
"""So often what differs is run on Spark before it is told."""
LONGEST_RUN = 60.0
"""Seconds after which a run on a few rows is stopped: it may have no end."""
STARTING = 1.0
"""Seconds that a program on DataFrames may take to be built, besides those of the caller: Spark's first steps."""
QUIET = 2.0
"""Seconds until a person at a terminal is told that a proof is being looked for."""


def prove(
    left: Callable[..., Any],
    right: Callable[..., Any],
    *,
    inputs: Sequence[Input | DataFrame],
    overflow: bool = False,
    seconds: float = SECONDS,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> Verdict:
    """Are the two programs equal on every input?

    left, right     your own functions: of RDDs, which may return an RDD, a value, or what an action gives; or of
                    DataFrames, which return a DataFrame
    inputs          what they take, in this order: [rdd(int), rdd((str, int | None))]; or [table(k=int)], or DataFrames,
                    each of which stands for all tables with its columns
    overflow        whether integers that do not fit into their type count, at which Spark raises; if not, that there
                    are none is assumed, and said with a HOLDS
    seconds         how long an answer is looked for
    seed            of the small inputs on which they are tried first

    HOLDS is a proof for every input. FAILS has an input on which real Spark was seen to give different results; or, as
    NOT_WELL_DEFINED, to give different results for one program if its rows come otherwise. SQL in a program finds the
    tables by the names of the parameters of `left`.
    """
    names = _names(left, right)
    claim = f"{names[1].told} gives what {names[0].told} gives"
    return _answered(claim, names, left, right, inputs, overflow, seconds, seed, spark)


def prove_places(
    left: str, right: str, *, inputs: Sequence[Input], overflow: bool, seconds: float, seed: int
) -> Verdict:
    """The same for functions of the user's files, `old.py:clean` or `package.jobs:clean`, which are called so."""
    own = [place.rpartition(":")[2] for place in (left, right)]
    if left != right and (own[0] == own[1] or not all(map(str.isidentifier, own))):
        own = ["left", "right"]
    names = _Called(left, own[0], import_lines(left, own[0])), _Called(right, own[1], import_lines(right, own[1]))
    programs = load_function(left), load_function(right)
    return _answered(f"{right} gives what {left} gives", names, *programs, inputs, overflow, seconds, seed, None)


def deterministic(
    program: Callable[..., Any],
    *,
    inputs: Sequence[Input | DataFrame],
    seconds: float = SECONDS,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> Verdict:
    """Does a program give the same however its rows are spread over partitions, and in whatever order they come?

    It does if its folds, reductions and aggregates may be merged in any order: `lambda rdd: rdd.fold(0, f)`, which
    FAILS as NOT_WELL_DEFINED for a function that counts. The arguments are those of `prove`.
    """
    name = _Called(code_name(program, "the program"), code_name(program, "program"))
    claim = f"{name.told} gives the same however its rows are spread"
    return _answered(claim, (name, name), program, program, inputs, False, seconds, seed, spark)


@dataclass(frozen=True, slots=True)
class _Called:
    """What a program is called where it is told of, and in the lines that show it again; and how these come by it."""

    told: str
    code: str
    lines: tuple[str, ...] = ()

    @property
    def origin(self) -> tuple[str, ...]:
        return self.lines or (f"# {self.code}: as in your own code",)


def _answered(
    claim: str,
    names: tuple[_Called, _Called],
    left: Program,
    right: Program,
    inputs: Sequence[Input | DataFrame],
    overflow: bool,
    seconds: float,
    seed: int,
    spark: SparkSession | None,
) -> Verdict:
    require_settings("prove", seconds, seed)
    given = _inputs(inputs)
    for program in (left, right):
        _require_parameters(program, len(given))
    if are_tables(given):
        asked: _RDDs | _Frames = _Frames(
            left, right, [each for each in given if isinstance(each, TableInput)], spark or session(), seconds
        )
    else:
        asked = _RDDs(lambda: spark or session())
    question = Question(
        claim=claim,
        left=left,
        right=right,
        inputs=given,
        confirm=lambda difference: _seen(difference, asked.result),
        replay=lambda difference: asked.replay(difference, {right: names[1], left: names[0]}),
        seconds=seconds,
        seed=seed,
        overflows=overflow,
        programs=asked.programs,
        conditions=asked.conditions,
        names=(names[0].told, names[1].told),
    )
    with _telling(seconds):
        verdict = search(question)
    return replace(verdict, cost={**verdict.cost, "seconds on Spark": asked.seconds})


def _names(left: Program, right: Program) -> tuple[_Called, _Called]:
    """What the two programs are called: by their own names, if these tell them apart."""
    names = code_name(left, "left"), code_name(right, "right")
    if names[0] == names[1] and left is not right:
        names = ("left", "right")
    return _Called(names[0], names[0]), _Called(names[1], names[1])


def _inputs(inputs: Any) -> tuple[Input, ...]:
    given = []
    if isinstance(inputs, RDDInput | TableInput | DataFrame):
        inputs = [inputs]
    if not isinstance(inputs, Sequence) or isinstance(inputs, str):
        raise SourceError(
            "prove(inputs=...)",
            needed="a list with what each input holds",
            came=repr(inputs),
            hint="inputs=[tight.rdd(int)]",
        )
    for place, each in enumerate(inputs):
        if isinstance(each, DataFrame):
            each = table(each)
        if not isinstance(each, RDDInput | TableInput):
            raise SourceError(
                f"prove(inputs=[...]), number {place + 1}",
                needed="what an input holds",
                came=repr(each),
                hint="inputs=[tight.rdd(int)], inputs=[tight.table(k=int)], or a sample DataFrame",
            )
        given.append(each)
    if not given:
        raise SourceError("prove(inputs=[])", needed="an input or more", came="none", hint="inputs=[tight.rdd(int)]")
    return tuple(given)


def _require_parameters(program: Callable[..., Any], wanted: int) -> None:
    if not callable(program):
        raise SourceError(
            "prove(...)",
            needed="a function of RDDs or DataFrames",
            came=repr(program),
            hint="prove(old, new, inputs=[...])",
        )
    count = parameters_of(program)
    if count is not None and count != wanted:
        raise SourceError(
            f"prove({code_name(program, 'program')}, ...)",
            needed=f"a function of as many inputs as inputs= says, {wanted}",
            came=f"one of {count}",
            hint="an element of inputs= for each of its parameters",
        )


# -- on Spark --------------------------------------------------------------------------------------------------------


def _seen(found: Difference, run_on_spark: Callable[[Run, str], Result]) -> Difference | None:
    """The difference as Spark shows it, every time it is asked; None if it does not."""
    for one, other in _ways(found):
        results = None
        for _ in range(RERUNS):
            kind = found.results[0].kind
            pair = run_on_spark(one, kind), run_on_spark(other, kind)
            if pair[0].is_same(pair[1]):
                break
            results = results or pair
        else:
            if results is not None:
                return replace(found, one=one, other=other, results=results, reruns=RERUNS, failing_reruns=RERUNS)
    return None


def _ways(found: Difference) -> Iterator[tuple[Run, Run]]:
    """The two runs; and if it is one program on the same rows, other ways to spread these."""
    yield found.one, found.other
    if found.finding == "NOT_WELL_DEFINED":
        for partitions in (2, 3):
            yield found.one, replace(found.other, partitions=partitions)


class _OnSpark:
    """Programs, run on Spark."""

    seconds = 0.0
    """How long these runs took."""

    def result(self, one: Run, kind: str) -> Result:
        """What Spark gives."""
        started = time.perf_counter()
        try:
            return self._result(one, kind)
        finally:
            self.seconds += time.perf_counter() - started

    def _result(self, one: Run, kind: str) -> Result:
        raise NotImplementedError


class _RDDs(_OnSpark):
    """Programs on RDDs, run on Spark."""

    programs: Programs | None = None
    conditions: Sequence[Sequence[SqlFunction]] = ()

    def __init__(self, started: Callable[[], SparkSession]) -> None:
        self._started = started

    def _result(self, one: Run, kind: str) -> Result:
        spark = self._started()
        require_rdds(spark, "prove")
        context = spark.sparkContext
        with importable(spark), interrupted_after(spark, LONGEST_RUN):
            found = run(
                lambda: one.program(*[context.parallelize(list(rows), one.partitions) for rows in one.tables]), _name_of
            )
        return found or Result.raised("UnsupportedError")

    def replay(self, found: Difference, names: Mapping[Program, _Called]) -> str:
        """The lines of Python that show both results."""
        lines = ["import streamtight as tight", "context = tight.session().sparkContext"]
        lines += _own_code(found, names)
        for one in (found.one, found.other):
            rows = ", ".join(f"context.parallelize({_code(rows)}, {one.partitions})" for rows in one.tables)
            lines.append(f"result = {names[one.program].code}({rows})")
            lines.append("print(result.collect() if hasattr(result, 'collect') else result)")
        return "\n".join(lines)


def _own_code(found: Difference, names: Mapping[Program, _Called]) -> list[str]:
    """The lines before those that run the programs: how one comes by these."""
    programs = dict.fromkeys((found.one.program, found.other.program))
    return [line for program in programs for line in names[program].origin]


def _code(rows: Sequence[Any]) -> str:
    """Rows as they can be pasted."""
    return f"[{', '.join(map(_value_code, rows))}]"


def _value_code(value: Any) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_value_code, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value).replace("datetime.", "dt.") if isinstance(value, date) else repr(value)


def _name_of(error: Exception) -> str:
    """The type of the exception that was raised in a task, which Spark wraps; or Spark's own name for an error."""
    condition = getattr(error, "getCondition", lambda: None)()
    if condition and condition != "PYTHON_EXCEPTION":
        return str(condition)
    for line in reversed(str(error).splitlines()):
        name = line.split(":")[0].strip()
        if name.endswith("Error") and name.isidentifier():
            if name == "ModuleNotFoundError":  # the cluster lacks something: that is no result of the program
                raise job_error(error, batch=0) from error
            return name
    return type(error).__name__


class _Frames(_OnSpark):
    """Programs on DataFrames, built and run on Spark."""

    def __init__(
        self, left: Program, right: Program, inputs: Sequence[TableInput], spark: SparkSession, seconds: float
    ) -> None:
        self._spark = spark
        self._inputs = inputs
        self._names = names_of(left, len(inputs))
        self._by_name = any(uses(program, "sql") or uses(program, "table") for program in (left, right))
        """Whether a program may find its tables by their names."""
        self._schemas = [_schema(each) for each in inputs]
        tables = dict(zip(self._names, self._schemas, strict=True))
        self.conditions = [
            [_condition(text, name, tables[name], spark) for text in each.conditions]
            for name, each in zip(self._names, inputs, strict=True)
        ]
        known = {
            name: Known(name, each.keys, tuple(functions))
            for name, each, functions in zip(self._names, inputs, self.conditions, strict=True)
        }
        self.programs: Programs = FramePrograms(
            left,
            right,
            inputs,
            self._names,
            lambda program: _built(program, tables, spark, known, seconds),
            self.conditions,
            lambda one, in_order: self.result(one, IN_ORDER if in_order else "rows"),
        )

    def _result(self, one: Run, kind: str) -> Result:
        """Its columns, its rows in their order, or its rows in any."""
        spark = self._spark
        context = spark.sparkContext
        frames = {
            name: spark.createDataFrame(context.parallelize(list(rows), one.partitions), schema, verifySchema=False)
            for name, rows, schema in zip(self._names, one.tables, self._schemas, strict=True)
        }
        try:
            with (
                named_views(spark, frames),
                settings(spark, _QUICK),
                importable(spark),
                _quietly(),
                interrupted_after(spark, LONGEST_RUN),
            ):
                made = one.program(*frames.values())
                if kind == "columns":
                    return columns_result([(each.name, each.dataType.simpleString()) for each in made.schema.fields])
                rows = [tuple(row) for row in made.collect()]
        except TimeLimitError:
            raise
        except Exception as error:  # the border of user code
            return Result.raised(_name_of(error))
        return Result(kind, tuple(rows)) if kind == IN_ORDER else Result("rows", tuple(sorted(rows, key=repr)))

    def replay(self, found: Difference, names: Mapping[Program, _Called]) -> str:
        """The lines of Python that show both results."""
        lines = ["import streamtight as tight", "spark = tight.session()", *_own_code(found, names)]
        shows = "dtypes" if found.finding == "DIFFERENT_COLUMNS" else "collect()"
        arguments = ", ".join(self._names)
        calls = [f"print({names[one.program].code}({arguments}).{shows})" for one in (found.one, found.other)]
        if found.finding == "NOT_WELL_DEFINED":
            for one, call in zip((found.one, found.other), calls, strict=True):
                lines += [*self._frames_code(one, f", {one.partitions}"), call]
        else:
            lines += [*self._frames_code(found.one), *calls]
        text = "\n".join(lines)
        imports = ["import datetime as dt"] * ("dt." in text) + ["from decimal import Decimal"] * ("Decimal(" in text)
        return "\n".join([*imports, text])

    def _frames_code(self, one: Run, partitions: str = "") -> list[str]:
        lines = []
        for name, rows, each in zip(self._names, one.tables, self._inputs, strict=True):
            given = f"spark.sparkContext.parallelize({_code(rows)}{partitions})" if partitions else _code(rows)
            lines.append(f"{name} = spark.createDataFrame({given}, {each.ddl!r})")
            if self._by_name:
                lines.append(f"{name}.createOrReplaceTempView({name!r})")
        return lines


def _condition(text: str, name: str, schema: StructType, spark: SparkSession) -> SqlFunction:
    try:
        with _quietly():
            return condition_of(text, name, schema, spark)
    except StreamtightError as error:
        came = f"{error.came} ({error.where})"
        cause: Exception = error
    except Exception as error:  # the border to Spark's parser and analyser
        came, cause = first_line(error), error
    raise SourceError(
        f"where({text!r}) of {name}",
        needed="a condition in SQL on the columns of one row, which can be read exactly",
        came=came,
        hint="v >= 0 AND v < 100",
    ) from cause


def _built(
    program: Program,
    tables: Mapping[str, StructType],
    spark: SparkSession,
    known: Mapping[str, Known],
    seconds: float,
) -> BuiltFrame:
    def watched(*frames: DataFrame) -> DataFrame:
        with Watchdog() as watchdog:
            try:
                with watchdog.within(seconds + STARTING):
                    return program(*frames)  # type: ignore[no-any-return]
            finally:
                if watchdog.has_stopped:
                    _drop_connection(spark)

    try:
        with _quietly():
            return build_frame(watched, tables, spark, known)
    except StreamtightError:
        raise
    except Exception as error:  # the border of user code
        hint = "the columns that it needs in inputs=; the exception above has all that Spark says"
        if "TABLE_OR_VIEW_NOT_FOUND" in str(error):
            hint = f"the views that SQL finds, named after the parameters of the first program: {', '.join(tables)}"
        raise SourceError(
            f"prove({code_name(program, 'program')}, ...)",
            needed=f"a program that Spark can build on {', '.join(tables)}, with the columns of inputs=",
            came=f"{type(error).__name__}: {first_line(error)}",
            hint=hint,
        ) from error


def _drop_connection(spark: SparkSession) -> None:
    """What was stopped may have been waiting for the JVM: the answer must not be taken for that of the next call."""
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]
    connection = client.get_thread_connection() if hasattr(client, "get_thread_connection") else None
    if connection is not None:
        connection.close()


_QUICK = {"spark.sql.adaptive.enabled": "false"}


def _schema(each: TableInput) -> StructType:
    columns = [{"name": one.name, "type": one.type, "nullable": one.nullable, "metadata": {}} for one in each.fields]
    return StructType.fromJson({"type": "struct", "fields": columns})


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without the log of PySpark: what a program raises is a result like others."""
    logs = query_logs()
    before = [log.disabled for log in logs]
    for log in logs:
        log.disabled = True
    try:
        yield
    finally:
        for log, was in zip(logs, before, strict=True):
            log.disabled = was


# -- while one waits -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _telling(seconds: float) -> Iterator[None]:
    """A line on the terminal that says how long a proof has been looked for; nothing where nobody watches."""
    if not is_watched():
        yield
        return
    started, ended = time.monotonic(), threading.Event()

    def tell() -> None:
        wait = QUIET
        while not ended.wait(wait):
            wait = 1.0
            sys.stderr.write(f"\rprove: {time.monotonic() - started:.0f} of {seconds:g} seconds\033[K")
            sys.stderr.flush()

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()
        if time.monotonic() - started > QUIET:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
