"""`streamtight lint`: a function of a file, or a whole script, which is run without its writes.

What a script would write is noted with its plan, sink, mode and line, and then read.

Reads, `show`, `collect` and `count` really happen. `write...`, `writeStream...start()` and `stop()` do not.
"""

from __future__ import annotations

import contextlib
import inspect
import os
import runpy
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql.readwriter import DataFrameWriterV2
from pyspark.sql.streaming.query import StreamingQueryManager
from pyspark.sql.streaming.readwriter import DataStreamWriter

from streamtight.errors import SourceError
from streamtight.method.prove.allowed import parameters_of
from streamtight.method.prove.inputs import Input
from streamtight.method.typecheck import functions
from streamtight.method.typecheck.findings import RULES, Finding, Reading, is_ignored, sorted_findings
from streamtight.program.relation import Place
from streamtight.spark.lint_lines import Lines, is_spark_class, rows_of_lists, short, users_line
from streamtight.spark.lint_plan import read_plan
from streamtight.spark.load import load_function
from streamtight.spark.plan import plan_of, rdd_of
from streamtight.spark.session import session
from streamtight.spark.typecheck import METHOD, RUNS, Examined, examine
from streamtight.stream.dependence import Dependence
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

_WRITES = {
    DataFrameWriter: ("save", "saveAsTable", "insertInto", "parquet", "json", "csv", "orc", "text", "jdbc", "xml"),
    DataFrameWriterV2: ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions"),
    DataStreamWriter: ("start", "toTable"),
}


@dataclass(slots=True)
class _Written:
    """A write that was not carried out."""

    frame: DataFrame
    place: Place
    mode: str = "batch"
    each_batch: Callable[..., Any] | None = None


@dataclass(slots=True)
class Script:
    """What a script would have written, and the functions in it."""

    reading: Reading
    writes: int
    functions: dict[str, Callable[..., Any]] = field(default_factory=dict)
    """Those of which every parameter is a DataFrame."""


@dataclass(frozen=True, slots=True)
class Linted:
    """What was found in a file."""

    findings: tuple[Finding, ...]
    unknown: tuple[str, ...]
    """What could not be read, with its place."""
    read: int
    """How many results were read: of functions, and of writes."""

    @property
    def told(self) -> str:
        """How much of what was found, in a line."""
        shown = sum(one.shown.is_seen for one in self.findings)
        unknown = f", {len(self.unknown)} not known" if self.unknown else ""
        if not self.read:
            return "nothing was read: the file writes nothing; name a function, file.py:function"
        return f"{self.read} read, {len(self.findings)} found, {shown} of them shown{unknown}"

    def verdicts(self, place: str) -> list[Verdict]:
        """The same as verdicts: a FAILS for what was shown, an UNDECIDED for what was only read."""
        claim = f"{place} does not depend on an order that Spark does not fix"
        found = []
        for one in self.findings:
            if one.shown.is_seen:
                example = one.counterexample or Counterexample(one.rule.name, str(one))
                example = replace(example, finding=one.rule.name, explanation=f"{one}\n{example.explanation}")
                found.append(Verdict(claim, Outcome.FAILS, Scope.tested(1), example))
            else:
                found.append(Verdict(claim, Outcome.UNDECIDED, Scope.tested(0), reason=str(one)))
        found += [Verdict(claim, Outcome.UNDECIDED, Scope.tested(0), reason=text) for text in self.unknown]
        if not found and not self.read:
            found.append(Verdict(claim, Outcome.UNDECIDED, Scope.tested(0), reason=self.told))
        return found or [Verdict(claim, Outcome.HOLDS, Scope.proved(), method=METHOD)]

    @property
    def exit_code(self) -> int:
        """0 if nothing was found, 1 if something was shown, 2 if it was not, or if not all could be read."""
        if any(one.shown.is_seen for one in self.findings):
            return 1
        return 2 if self.findings or self.unknown or not self.read else 0


def lint(
    place: str,
    *,
    inputs: Sequence[Input],
    gives: Dependence | None = None,
    mode: str = "batch",
    confirm: bool = False,
    runs: int = RUNS,
    seed: int = 0,
) -> Linted:
    """What the order lint finds in `file.py:function`, or in what `file.py` writes and in its functions of tables."""
    spark = session()
    takes: Any = list(inputs)

    def examined(function: Callable[..., Any]) -> Examined:
        return examine(
            function, takes=takes, gives=gives, mode=mode, confirm=confirm, runs=runs, seed=seed, spark=spark
        )

    if not place.endswith(".py"):
        with _not_carried_out([]), _told_aside():  # the file is run to get at its function
            function = load_function(place)
        return _linted([examined(function)], Reading(()), 0)
    script = read_script(Path(place), spark)
    wanted = [one for one in script.functions.values() if inputs and parameters_of(one) == len(inputs)]
    return _linted([examined(one) for one in wanted], script.reading, script.writes)


def _linted(examined: Sequence[Examined], script: Reading, writes: int) -> Linted:
    found = [one for each in examined for one in each.findings]
    # A function that the script calls is found twice: once where its result is written, and once alone.
    seen = {(one.rule.name, one.place) for one in found}
    found += [one for one in script.findings if not is_ignored(one) and (one.rule.name, one.place) not in seen]
    places = [*script.unknown, *(place for each in examined for place in each.reading.unknown)]
    unknown = [f"{short(place)} is not known, and may depend on an order" for place in places]
    for each in examined:
        if each.verdict.undecided and not each.findings and not each.reading.unknown:
            unknown.append(each.verdict.reason or "")
    findings = [replace(one, place=short(one.place)) for one in found]
    return Linted(sorted_findings(findings), tuple(dict.fromkeys(unknown)), len(examined) + writes)


def read_script(path: Path, spark: SparkSession) -> Script:
    """Run a script without its writes, and read what it would have written."""
    if not path.is_file():
        raise SourceError(str(path), needed="a file that is there", came="none", hint="its path from this folder")
    lines = Lines(spark)
    written: list[_Written] = []
    with _not_carried_out(written), rows_of_lists(spark) as listed, lines.noted(), _as_main(path), _told_aside():
        try:
            names = runpy.run_path(str(path), run_name="__main__")
        except SystemExit:
            names = {}
        except Exception as error:  # the border of user code
            raise SourceError(
                str(path),
                needed="a script that runs to its end",
                came=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}",
                hint=f"python {path}; or one function of it: {path}:name",
            ) from error
    own = {rdd_of(frame, spark) for frame in listed}
    findings: list[Finding] = []
    unknown: dict[Place, None] = {}
    for one in written:
        reading = read_plan(
            plan_of(one.frame, spark),
            one.frame.columns,
            lines=lines,
            inputs=own,
            keys={},
            is_known=is_spark_class(spark),
            mode=one.mode,
        )
        findings += [*reading.findings, *_sink(one, reading)]
        unknown.update(dict.fromkeys(reading.unknown))
    return Script(Reading(sorted_findings(findings), tuple(unknown)), len(written), _of_frames(names, path))


def _sink(one: _Written, reading: Reading) -> Iterator[Finding]:
    """What is wrong with where it goes."""
    if one.each_batch is None:
        return
    again = functions.appends_again(one.each_batch)
    if again is not None:
        at = functions.file_of(one.each_batch)
        place = Place("foreachBatch", *at) if at is not None else one.place
        yield Finding(RULES["SINK_APPENDS_AGAIN"], place, again)
    # A whole table for each batch is a history of it, and may be meant; changes beside changes are not a table.
    added = functions.appends(one.each_batch) if one.mode == "update" else again if one.mode == "complete" else None
    if added is not None:
        place = Place(f"outputMode({one.mode!r})", one.place.file, one.place.line)
        yield Finding(RULES["MODE_COUNTS_TWICE"], place, added)


def _of_frames(names: dict[str, Any], path: Path) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for name, value in names.items():
        if not inspect.isfunction(value) or Path(value.__code__.co_filename).resolve() != path.resolve():
            continue
        parameters = inspect.signature(value).parameters.values()
        if parameters and all(
            str(one.annotation).strip("'\"").endswith(("DataFrame", "DataFrame'>")) for one in parameters
        ):
            found[name] = value
    return found


# -- what does not happen --------------------------------------------------------------------------------------------


class _NotStarted:
    """Stands for a query that was not started."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


@contextlib.contextmanager
def _not_carried_out(written: list[_Written]) -> Iterator[None]:
    """Notes writes instead; not for several threads."""
    options: dict[int, dict[str, Any]] = {}

    def remembers(owner: type, name: str, key: str) -> Callable[..., Any]:
        original = getattr(owner, name)

        def remember(self: Any, value: Any, *arguments: Any, **named: Any) -> Any:
            options.setdefault(id(self), {"of": self})[key] = value
            return self if name == "foreachBatch" else original(self, value, *arguments, **named)

        return remember

    def notes(self: Any, *_: Any, **named: Any) -> Any:
        streams = isinstance(self, DataStreamWriter)
        known = options.get(id(self), {})
        frame: DataFrame = self._df
        mode = named.get("outputMode") or known.get("mode") or "append"
        place = users_line() or Place("")
        written.append(_Written(frame, place, mode if streams else "batch", known.get("each")))
        return _NotStarted() if streams else None

    patches: list[tuple[type, str, Any]] = [(owner, name, notes) for owner, names in _WRITES.items() for name in names]
    patches += [
        (DataStreamWriter, "outputMode", remembers(DataStreamWriter, "outputMode", "mode")),
        (DataStreamWriter, "foreachBatch", remembers(DataStreamWriter, "foreachBatch", "each")),
        (StreamingQueryManager, "awaitAnyTermination", lambda *_, **__: None),
        (SparkSession, "stop", lambda self: None),
    ]
    with contextlib.ExitStack() as stack:
        for owner, name, value in patches:
            if (before := vars(owner).get(name)) is not None:
                setattr(owner, name, value)
                stack.callback(setattr, owner, name, before)
        yield


def _told_aside() -> contextlib.AbstractContextManager[Any]:
    """What the script prints does not mix with what the lint prints."""
    return contextlib.redirect_stdout(sys.stderr)


@contextlib.contextmanager
def _as_main(path: Path) -> Iterator[None]:
    """As Python runs a script: what lies beside it can be imported, and it has no arguments."""
    arguments, folder = sys.argv, os.path.dirname(path.resolve())
    sys.argv = [str(path)]
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.argv = arguments
        sys.path.remove(folder)
