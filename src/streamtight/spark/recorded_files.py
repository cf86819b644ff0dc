"""What a recorded output has: which files, in which order, and which columns."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    ByteType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from streamtight.errors import DependenceError, RowError, SourceError
from streamtight.spark.failure import job_error
from streamtight.spark.rows import Kinds, Table, kind_of, kinds_of
from streamtight.spark.session import is_connect, java_class
from streamtight.stream.dependence import Dependence
from streamtight.stream.event import Kind

FORMATS = {"parquet": ("parquet",), "json": ("json", "jsonl", "ndjson")}
"""The formats that can be read, and the extensions by which they are known."""
NAMES = ("reference", "candidate")
WHOLE_NUMBERS = (ByteType, ShortType, IntegerType, LongType)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded output: a folder or a file. Make one with `recorded(path)`."""

    path: str
    order_by: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    format: str | None = None

    def __repr__(self) -> str:
        parts = [repr(self.path)]
        if self.order_by:
            parts.append(f"order_by={(self.order_by[0] if len(self.order_by) == 1 else self.order_by)!r}")
        names = [kind.name for kind in self.kinds]
        if names:
            parts.append(f"kind={names[0]}" if len(names) == 1 else f"kind=[{', '.join(names)}]")
        if self.format is not None:
            parts.append(f"format={self.format!r}")
        return f"recorded({', '.join(parts)})"


def recorded(
    path: str | os.PathLike[str],
    *,
    order_by: str | Iterable[str] | None = None,
    kind: Kinds | None = None,
    format: str | None = None,  # noqa: A002 - as PySpark calls it
) -> Recorded:
    """A recorded output, to be compared with another one: a folder or a file of Parquet or JSON Lines.

    order_by   the columns that say in which order the rows came; without them, what the files say
    kind       what the rows are: a kind, a schema, or several kinds, if a column `kind` tells; else the columns say it
    format     "parquet" or "json"; else the names of the files say it

    >>> recorded("out/fares", order_by="offset")
    recorded('out/fares', order_by='offset')
    """
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise SourceError(
            "recorded(path)", needed="the path of a folder or a file", came=repr(path), hint="'out/fares'"
        )
    where = f"recorded({os.fspath(path)!r})"
    names = (order_by,) if isinstance(order_by, str) else tuple(order_by or ())
    if not all(isinstance(name, str) for name in names):
        raise SourceError(
            where, needed="order_by= with names of columns", came=repr(order_by), hint="order_by='offset'"
        )
    if format is not None and format not in FORMATS:
        raise SourceError(where, needed="format= " + " or ".join(FORMATS), came=repr(format), hint="format='parquet'")
    return Recorded(os.fspath(path), names, () if kind is None else kinds_of(kind, "kind"), format)


@dataclass(slots=True)
class Side:
    """One of the two recordings, as it was found."""

    name: str
    given: Recorded
    format: str = "parquet"
    paths: list[str] = field(default_factory=list)
    """What Spark is told to read; nothing for a streaming query that has written nothing."""
    batches: dict[str, int] | None = None
    """For each file the place of its micro-batch, if a log tells."""
    schema: StructType | None = None
    """Its columns, and the types to read; None if there is no row from which they could be told."""

    @property
    def where(self) -> str:
        """What messages call it."""
        return f"the {self.name}, {self.given!r}"

    def read(self, spark: SparkSession) -> DataFrame:
        """Its rows."""
        if not self.paths:
            return spark.createDataFrame([], self.schema or StructType())
        # What cannot be read is an error: Spark would make null of a broken line, and nothing of a broken file.
        options = {"mode": "FAILFAST", "ignoreCorruptFiles": "false", "ignoreMissingFiles": "false"}
        if self.batches is not None:
            options["basePath"] = self.given.path
        reader = spark.read.options(**options)
        # Without a schema Spark looks for one: in all files, since a column may be in some of them only.
        reader = reader.option("mergeSchema", "true") if self.schema is None else reader.schema(self.schema)
        return reader.parquet(*self.paths) if self.format == "parquet" else reader.json(self.paths)

    def bytes(self, spark: SparkSession) -> int:
        """How large its files are; 0 if nobody knows."""
        if not self.paths or is_connect(spark):
            return 0
        plan = cast(Any, self.read(spark))._jdf.queryExecution().optimizedPlan()
        return int(str(plan.stats().sizeInBytes()))

    def batch_of(self, uri: str) -> int:
        """The place of the micro-batch that wrote this file; 0 for all files if nothing tells."""
        if not self.batches:
            return 0
        depth = next(iter(self.batches)).count("/") + 1
        return self.batches[_end(_path(uri), depth)]


def opened(spark: SparkSession, name: str, given: Recorded) -> Side:
    """Which files there are, in which format, and their columns."""
    side = Side(name, given)
    folder = _Folder(spark, given.path)
    if folder.has("_delta_log"):
        raise SourceError(
            side.where,
            needed="a folder of Parquet or JSON files",
            came="a Delta table, in which some files no longer count",
            hint=f"spark.read.format('delta').load({given.path!r}).write.parquet(...), and compare that",
        )
    log = folder.texts("_spark_metadata")
    try:
        if log is None:
            side.paths = [_literal(given.path)]
            names = spark.read.format("binaryFile").load(side.paths[0]).inputFiles()
        else:
            side.batches = _inside(folder, side, batches_of(log))
            side.paths = [_literal(f"{given.path.rstrip('/')}/{name}") for name in side.batches]
            names = list(side.batches)
        if not names and log is None:
            raise SourceError(
                side.where,
                needed="a folder with a file or more",
                came="an empty folder",
                hint="the folder that the job wrote; names that begin with _ or . do not count",
            )
        if names:
            side.format = given.format or _format(spark, side, names)
            columns = side.read(spark).schema
            side.schema = columns if columns.fields else None
    except AnalysisException as error:
        raise _not_there(side, error) from error
    except (PySparkException, Py4JJavaError) as error:
        raise unreadable(side.where, error) from error
    return side


def unreadable(where: str, error: Exception) -> SourceError:
    """What to say when Spark cannot read a file."""
    file = re.search(r"while reading file (\S+?)\.?\s", str(error))
    return SourceError(
        where,
        needed="files that Spark can read to the end",
        came=job_error(error, batch=None).raised + (f", in {file[1]}" if file else ""),
        hint="format=..., or kind=... if a column's type is not what its values look like",
    )


def _literal(path: str) -> str:
    """The path as Spark wants it, which takes brackets and stars for patterns."""
    return re.sub(r"([\\{}\[\]*?])", r"\\\1", path)


def _not_there(side: Side, error: AnalysisException) -> SourceError:
    if error.getCondition() != "PATH_NOT_FOUND":
        came, hint = str(error).splitlines()[0], "format=..., or another folder"
    elif side.batches is None:
        came, hint = "no such path", "the path of a folder or a file that is there"
    else:
        return _incomplete(side)
    return SourceError(side.where, needed="a recorded output", came=came, hint=hint)


def _incomplete(side: Side) -> SourceError:
    return SourceError(
        side.where,
        needed="all files that its log, _spark_metadata, names",
        came="a folder without some of them",
        hint="the whole folder, as the query wrote it",
    )


def _inside(folder: _Folder, side: Side, batches: Mapping[str, int]) -> dict[str, int]:
    """The files as they are called inside the folder, which may have been moved since the log was written."""
    for first in batches:
        for depth in range(1, first.count("/") + 1):  # more than 1 if there is a folder for each value of a column
            if folder.has(_end(first, depth)):
                return {_end(path, depth): place for path, place in batches.items()}
        raise _incomplete(side)
    return {}


def _end(path: str, depth: int) -> str:
    return "/".join(path.split("/")[-depth:])


def _path(uri: str) -> str:
    return unquote(urlsplit(uri).path)


def _format(spark: SparkSession, side: Side, names: Sequence[str]) -> str:
    """By the names of the files, else by how the first of them begins."""
    found = {
        form
        for name in names
        for form, extensions in FORMATS.items()
        if set(name.rsplit("/", 1)[-1].lower().split(".")[1:]) & set(extensions)
    }
    if not found:
        path = side.paths[0] if side.batches is not None else _literal(unquote(names[0]))
        begins = "".join(row[0] for row in spark.read.text(path).select(sf.substring("value", 1, 4)).limit(1).collect())
        found = {"parquet"} if begins == "PAR1" else {"json"} if begins.lstrip()[:1] == "{" else set()
    if len(found) != 1:
        raise SourceError(
            side.where,
            needed="files of one format, " + " or ".join(FORMATS),
            came=" and ".join(sorted(found)) or f"names such as {names[0].rsplit('/', 1)[-1]!r}",
            hint="format='parquet' or format='json', or another folder",
        )
    return found.pop()


class _Folder:
    """The small files that say something about a folder. Spark itself reads nothing below a name that begins with _."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._path = path
        self._spark: Any = None if is_connect(spark) else spark

    def has(self, name: str) -> bool:
        """Is there something of this name in the folder?"""
        if self._spark is None:
            return (self._local() / name).exists()
        files, path = self._hadoop(name)
        return bool(files.exists(path))

    def texts(self, name: str) -> dict[str, str] | None:
        """The texts in this folder of the folder, by name; None if there is no such folder."""
        if not self.has(name):
            return None
        if self._spark is None:
            return {file.name: file.read_text() for file in (self._local() / name).iterdir() if file.name[0] != "."}
        files, path = self._hadoop(name)
        found = {}
        for status in files.listStatus(path):
            stream = files.open(status.getPath())
            try:
                text = bytes(stream.readAllBytes()).decode(errors="replace")
            finally:
                stream.close()
            found[str(status.getPath().getName())] = text
        return found

    def _local(self) -> Path:
        # Through Connect only the files of this machine can be looked at; elsewhere there seems to be no log, and files
        # are in no order.
        return Path(re.sub("^file:/+", "/", self._path))

    def _hadoop(self, name: str) -> tuple[Any, Any]:
        path = java_class(self._spark, "org.apache.hadoop.fs.Path")(self._path, name)
        return path.getFileSystem(self._spark._jsparkSession.sessionState().newHadoopConf()), path


# -- the log of a streaming query -------------------------------------------------------------------------------------


def batches_of(log: Mapping[str, str]) -> dict[str, int]:
    """The files that a streaming query wrote, by their paths then, and the place of each one's batch.

    Every micro-batch has a file in the log, such as `7`; now and then one has the entries of all batches so far in
    their order, `9.compact`, and the older ones are deleted after a while. Then where a batch ends has to be seen
    from the names. Files that may be of one batch get one place.
    """
    single: dict[int, list[str]] = {}
    compact: dict[int, list[str]] = {}
    for name, text in log.items():
        digits, _, suffix = name.partition(".")
        if digits.isdigit() and suffix in ("", "compact"):
            (compact if suffix else single)[int(digits)] = _entries(text)
    newest = max(compact, default=-1)
    batch_of = {file: number for number, files in single.items() for file in files}
    contents = [set(files) for files in compact.values()]
    places: dict[str, int] = {}
    place = 0
    for earlier, file in itertools.pairwise([None, *compact.get(newest, ())]):
        if (
            earlier is not None
            and file is not None
            and (
                batch_of.get(earlier) != batch_of.get(file)
                or any((earlier in files) != (file in files) for files in contents)
                or (file not in batch_of and _must_be_later(earlier, file))
            )
        ):
            place += 1
        places[cast(str, file)] = place
    for number in sorted(number for number in single if number > newest):
        place += 1
        places.update(dict.fromkeys(single[number], place))
    return places


def _entries(text: str) -> list[str]:
    files: dict[str, None] = {}
    for line in text.splitlines()[1:]:  # the first one is the version
        try:
            entry = json.loads(line)
            file, action = _path(entry["path"]), entry.get("action")
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise SourceError(
                "recorded(...), the log of the query that wrote it",
                needed="lines as Spark writes them into _spark_metadata",
                came=f"{type(error).__name__}: {error}"[:200],
                hint="the folder as the query left it; or its files without that log, if their order does not matter",
            ) from error
        if action == "delete":
            files.pop(file, None)
        else:
            files[file] = None
    return list(files)


_PART = re.compile(r"part-(\d+)-.*-c(\d+)\.")


def _must_be_later(earlier: str, file: str) -> bool:
    """Is the second of two neighbours in the log of a later batch for sure? In one batch the tasks' numbers go up."""
    (folder, _, one), (other_folder, _, two) = earlier.rpartition("/"), file.rpartition("/")
    before, after = _PART.match(one), _PART.match(two)
    if before is None or after is None:
        return False
    task, other_task = int(before[1]), int(after[1])
    return other_task < task or (other_task == task and folder == other_folder and int(after[2]) <= int(before[2]))


# -- columns and types -----------------------------------------------------------------------------------------------


def kinds_meant(given: Sequence[Recorded], upto: Dependence) -> tuple[Kind, ...]:
    """What the rows are, as the user says it in one place or another; nothing if only the columns do."""
    named = [one.kinds for one in given if one.kinds]
    if len(named) == 2 and set(named[0]) != set(named[1]):
        came = " and ".join(map(repr, given))
        raise RowError("compare(recorded, recorded)", needed="the same kinds", came=came, hint="one kind= for both")
    if named:
        if upto.domain is not None and (unknown := set(named[0]) - upto.domain):
            raise DependenceError(
                repr(upto),
                needed="a relation on the recorded kinds",
                came=", ".join(sorted(kind.name for kind in unknown)) + ", which it does not know",
                hint="a relation that has these kinds, or another kind=",
            )
        return named[0]
    # Rows of a kind that the relation does not mean would be in no order, and every difference of order forgiven.
    meant = upto.domain or frozenset(
        kind for clause in upto.clauses for side in (clause.left, clause.right) for kind in side.kinds or ()
    )
    return kinds_of(meant, "upto") if meant else ()


def agree(sides: Sequence[Side], kinds: Sequence[Kind]) -> tuple[Table, StructType] | None:
    """What the rows of both sides are, and the types to which their columns are cast; None if there is no row."""
    if kinds:
        table = Table(kinds)
        for side in sides:
            _require_fit(side, table)
        return table, StructType([_common(name, sides) for name in table.struct.names])
    known = next((side.schema for side in sides if side.schema is not None), None)
    if known is None:
        return None
    for side in sides:
        side.schema = side.schema or known
    _require_same_names(sides)
    for side, other in (sides, sides[::-1]):
        if side.format == "json" and other.format == "parquet" and other.paths:
            side.schema = other.schema
    types = StructType([_common(name, sides) for name in known.names])
    try:
        return Table((kind_of("Row", types),)), types
    except RowError as error:
        hint = error.hint.partition(", or gives=")[0] + "; kind=... with what the rows are"
        raise RowError(error.where, needed=error.needed, came=error.came, hint=hint) from error


def _require_fit(side: Side, table: Table) -> None:
    """Raise unless the columns are those of the kinds. In JSON a field that is null may be left out."""
    wanted = table.struct.fields
    names = set() if side.schema is None else set(side.schema.names)
    optional = {column.name for column in wanted if column.nullable}
    may_lack = set(table.struct.names) - names <= optional
    if side.schema is None or (side.format == "json" and names <= set(table.struct.names) and may_lack):
        side.schema = StructType([StructField(column.name, column.dataType, True) for column in wanted])
        return
    try:
        table.order_of(side.schema)
    except RowError as error:
        at = error.where.removeprefix("the job's output")
        raise RowError(side.where + at, needed=error.needed, came=error.came, hint="another kind=") from error


def _require_same_names(sides: Sequence[Side]) -> None:
    one, other = (set(cast(StructType, side.schema).names) for side in sides)
    if one != other:
        differ = [
            f"only the {name} has {', '.join(sorted(names))}"
            for name, names in zip(NAMES, (one - other, other - one), strict=True)
            if names
        ]
        raise RowError(
            "compare(recorded, recorded)",
            needed="the same columns on both sides",
            came="; ".join(differ),
            hint="record the same columns; kind=... if JSON lacks a column because it is always null",
        )


def _common(name: str, sides: Sequence[Side]) -> StructField:
    one, other = (cast(StructType, side.schema)[name].dataType for side in sides)
    data_type = _wider(one, other)
    if data_type is None:
        raise RowError(
            f"column {name!r}",
            needed="the same type on both sides",
            came=f"{one.simpleString()} in the reference and {other.simpleString()} in the candidate",
            hint="cast one of them before recording; kind=... for JSON, which does not say what its values are",
        )
    return StructField(name, data_type, True)


def _wider(one: DataType, other: DataType) -> DataType | None:
    """The type that has the values of both and keeps them apart; None if there is none."""
    if isinstance(one, StringType) and isinstance(other, StringType):
        return StringType()  # without a collation, which could call 'a' and 'A' the same
    for family in (WHOLE_NUMBERS, (FloatType, DoubleType)):
        if isinstance(one, family) and isinstance(other, family):
            return max(one, other, key=lambda data_type: family.index(type(data_type)))
    if isinstance(one, DecimalType) and isinstance(other, DecimalType):
        scale = max(one.scale, other.scale)
        precision = max(one.precision - one.scale, other.precision - other.scale) + scale
        return DecimalType(precision, scale) if precision <= 38 else None
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        item = _wider(one.elementType, other.elementType)
        return None if item is None else ArrayType(item, one.containsNull or other.containsNull)
    if isinstance(one, MapType) and isinstance(other, MapType):
        key, value = _wider(one.keyType, other.keyType), _wider(one.valueType, other.valueType)
        has_null = one.valueContainsNull or other.valueContainsNull
        return None if key is None or value is None else MapType(key, value, has_null)
    if isinstance(one, StructType) and isinstance(other, StructType):
        fields = [] if one.names != other.names else list(zip(one.fields, other.fields, strict=True))
        wider = [_wider(mine.dataType, its.dataType) for mine, its in fields]
        if not fields or any(data_type is None for data_type in wider):
            return None
        named = zip(fields, wider, strict=True)
        return StructType([StructField(m.name, cast(DataType, t), m.nullable or i.nullable) for (m, i), t in named])
    return one if one == other else None
