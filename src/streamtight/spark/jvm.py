"""The fast engine: everything but the user's own Python runs inside the JVM of a classic session.

Rows go in once and come out once, pickled. In between, the Java class `Driver` feeds Spark's memory streams and
captures the output of every micro-batch. The few Java classes are compiled at first use by Janino, the compiler that
Spark carries for its own generated code; so nothing has to be built or downloaded, and the package stays pure Python.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import pickle
import shutil
import tempfile
import time
import zipfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from streamtight.errors import UnsupportedError
from streamtight.spark.engine import (
    EXACT,
    LONGEST,
    MOST_IDLE,
    Build,
    Feed,
    Output,
    Piece,
    Row,
    flush_watermark,
    importable,
    interrupted_after,
    last_commit,
    read_state,
    require_all,
    settings,
    uncommit,
)
from streamtight.spark.failure import job_error, time_limit_error
from streamtight.spark.session import fast_folder, is_local, java_class
from streamtight.spark.ship import require_shared, shipped

JVM_ERRORS = (Py4JJavaError, PySparkException)  # PySpark translates some of what the JVM throws, not all

_LAST_BATCH_MILLIS = 2_000  # for the batch that runs when no more are wanted: cut off, Spark would write to the log
LAST = 2**63 - 1
"""No micro-batch has a higher number."""

_SOURCES = Path(__file__).parent / "java"

# Compiling a plan does not pay for a few rows.
_SMALL = {"spark.sql.codegen.wholeStage": "false"}
_SMALL_ROWS = 10_000

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_DEFAULT_PROVIDER = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_FILE_MANAGERS = (  # where Spark 4.1 and later, and 4.0, keep it
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
    "org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager",
)


class JvmEngine:
    """Runs jobs in a classic session."""

    def __init__(self, spark: SparkSession, *, shuffle_partitions: int) -> None:
        self._spark = spark
        self._session: Any = spark._jsparkSession
        self._confs = {**EXACT, "spark.sql.shuffle.partitions": str(shuffle_partitions)}
        shipped(spark)
        self._loader = _load_classes(spark)

    def stream(
        self,
        build: Build,
        feeds: Sequence[Feed],
        pieces: Iterable[Piece],
        *,
        mode: str,
        folder: Path,
        limit: float,
        as_they_come: bool,
    ) -> Generator[tuple[Piece, StructType, Output], None, None]:
        """Run the pieces one after another, with one checkpoint in this folder."""
        deadline = time.monotonic() + limit
        require_shared(self._spark, "the checkpoint of a small run", folder.parent)
        schemas, rows = self._schemas(feeds), _pickled(feeds)
        for piece in pieces:
            confs = {
                **self._confs_for(feeds),
                **self._checkpoint_confs(),
                "spark.sql.streaming.noDataMicroBatches.enabled": str(piece.is_end).lower(),
            }
            with settings(self._spark, confs):
                if piece.replays:
                    uncommit(folder, piece.first - 1)
                if piece.flushes:
                    flush_watermark(folder)
                driver = self._driver(rows, schemas)
                frames = self._opened(driver, schemas, len(feeds))
                with importable(self._spark):
                    output = build(frames)
                driver.feed(piece.given_at_start, piece.last + 1, piece.batches + MOST_IDLE)
                if piece.flushes:
                    driver.feedNothing()
                stops = range(1, piece.batches) if as_they_come else ()
                with settings(self._spark, self._state_store(output)):
                    for one in self._run_query(driver, output, piece, mode, folder, deadline, limit, stops):
                        yield piece, output.schema, one

    def state(self, folder: Path) -> list[tuple[str, StructType, list[Row]]]:
        """What a stopped job keeps in its state."""
        with settings(self._spark, self._checkpoint_confs()):
            return read_state(self._spark, self._location(folder))

    def probe(self, build: Build, structs: Sequence[StructType]) -> tuple[list[DataFrame], DataFrame]:
        """The streams that a job would read and the one that it would write, without running anything."""
        feeds = [Feed(struct, [[[]]]) for struct in structs]
        schemas = self._schemas(feeds)
        driver = self._driver(_pickled(feeds), schemas)
        frames = self._opened(driver, schemas, len(feeds))
        with importable(self._spark):
            return frames, build(frames)

    @staticmethod
    def refused_modes(frame: DataFrame) -> dict[str, str]:
        """The output modes in which Spark would not start a streaming DataFrame, each with its words for that."""
        spark, plan = frame.sparkSession, frame._jdf.queryExecution().analyzed()
        checker = java_class(spark, "org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker")
        modes = java_class(spark, "org.apache.spark.sql.streaming.OutputMode")
        refused = {}
        for name, mode in (("append", modes.Append), ("update", modes.Update), ("complete", modes.Complete)):
            try:
                checker.checkForStreaming(plan, mode())
            except JVM_ERRORS as error:
                refused[name] = str(error).partition("\n")[0]
        return refused

    def carry(self, output: DataFrame, column: str) -> DataFrame:
        """The output with a column of the input that the job does not know; ValueError if its plan might mix values."""
        carrier = self._loader.loadClass("streamtight.Carry").newInstance()
        try:
            return DataFrame(carrier.carry(output._jdf, column), self._spark)
        except IllegalArgumentException as error:  # PySpark's own, for the one of Java
            raise ValueError(str(error).partition("\n")[0]) from error

    def batch(self, build: Build, feeds: Sequence[Feed], *, limit: float) -> tuple[StructType, Sequence[Sequence[Row]]]:
        """Run the job once, on static DataFrames."""
        schemas = self._schemas(feeds)
        with settings(self._spark, self._confs_for(feeds)):
            driver = self._driver(_pickled(feeds), schemas)
            context = self._spark.sparkContext._jsc
            frames = [
                DataFrame(driver.frame(self._session, context, place, schemas[place]), self._spark)
                for place in range(len(feeds))
            ]
            with interrupted_after(self._spark, limit):
                with importable(self._spark):
                    output = build(frames)
                try:
                    driver.capture(0, output._jdf)
                except JVM_ERRORS as error:
                    raise job_error(error, batch=0) from error
            [(_, partitions)] = self._captured(driver, None)
        return output.schema, partitions

    def _run_query(
        self,
        driver: Any,
        output: DataFrame,
        piece: Piece,
        mode: str,
        folder: Path,
        deadline: float,
        limit: float,
        stops: Sequence[int],
    ) -> Iterator[Output]:
        """Every micro-batch of the query; told after each of these numbers of them, and at the end."""
        first = last_commit(folder) + 1
        told: list[Output] = []
        writer = output._jdf.writeStream().outputMode(mode).option("checkpointLocation", self._location(folder))
        try:
            query = writer.foreachBatch(driver).start()
        except JVM_ERRORS as error:
            raise job_error(error, batch=None) from error
        try:
            for batches in (*stops, piece.batches):
                left = min(max(0.0, deadline - time.monotonic()), LONGEST)
                ended = driver.waitFor(query, batches, batches == piece.batches, int(left * 1000))
                if ended == "late":
                    raise time_limit_error(f"batch {last_commit(folder) + 1}", limit)
                if ended == "ended":
                    raise self._failure(query, last_commit(folder) + 1)
                reports = {report["batchId"]: report for report in json.loads(driver.progress(query, len(told)))}
                if batches == piece.batches:
                    query.stop()
                # What was captured but not yet reported is told with the next ones.
                for batch, rows in self._captured(driver, None if batches == piece.batches else max(reports)):
                    told.append(Output(batch, rows, reports.get(batch, {})))
                    yield told[-1]
        except BaseException as error:  # Ctrl-C too: no query is left behind, and what went wrong first comes back
            with contextlib.suppress(*JVM_ERRORS):
                if isinstance(error, GeneratorExit):
                    driver.feedNoMore(query, _LAST_BATCH_MILLIS)
                query.stop()
            raise
        require_all(piece, told, first)

    def _failure(self, query: Any, batch: int) -> Exception:
        raised = StreamingQuery(query).exception()
        if raised is None:  # stopped from outside: by the job, or by whoever shares the session
            return job_error(RuntimeError("the query was stopped while it ran"), batch=batch)
        error = job_error(raised, batch=batch)
        error.__cause__ = raised
        return error

    def _driver(self, rows: bytes, schemas: Any) -> Any:
        driver = self._loader.loadClass("streamtight.Driver").newInstance()
        driver.load(bytearray(rows), schemas)
        return driver

    def _opened(self, driver: Any, schemas: Any, count: int) -> list[DataFrame]:
        """The streams that the driver feeds."""
        # By their places: to find the end of a list of Java, Py4J lets an exception be raised, which costs 40 ms.
        opened = driver.open(self._session, schemas)
        return [DataFrame(opened[place], self._spark) for place in range(count)]

    def _schemas(self, feeds: Sequence[Feed]) -> Any:
        schemas = java_class(self._spark, "java.util.ArrayList")()
        for feed in feeds:
            schemas.add(self._session.parseDataType(feed.struct.json()))
        return schemas

    def _captured(self, driver: Any, last: int | None) -> list[tuple[int, list[list[Row]]]]:
        """The rows of the micro-batches that were captured and not yet taken, up to this one."""
        as_bytes = self._spark.conf.get("spark.sql.execution.pyspark.binaryAsBytes", "true") == "true"
        batches, sizes, rows = pickle.loads(driver.takeRows(as_bytes, LAST if last is None else last))  # noqa: S301 - from our own JVM
        taken = iter(rows)
        return [
            (batch, [[next(taken) for _ in range(size)] for size in partitions])
            for batch, partitions in zip(batches, sizes, strict=True)
        ]

    def _confs_for(self, feeds: Sequence[Feed]) -> dict[str, str]:
        rows = sum(len(partition) for feed in feeds for batch in feed.batches for partition in batch)
        return {**self._confs, **(_SMALL if rows < _SMALL_ROWS else {})}

    def _checkpoint_confs(self) -> dict[str, str]:
        """Let checkpoints go through the quiet file system, which only this JVM knows."""
        if not is_local(self._spark):
            return {}
        for name in _FILE_MANAGERS:
            with contextlib.suppress(Py4JJavaError):
                java_class(self._spark, "java.lang.Class").forName(name)
                return {"spark.sql.streaming.checkpointFileManagerClass": name}
        return {}

    def _state_store(self, output: DataFrame) -> dict[str, str]:
        """RocksDB for jobs with transformWithState, which Spark runs with nothing else, if the user has not chosen."""
        needs_it = "TransformWithState" in output._jdf.queryExecution().analyzed().toString()
        has_own = self._spark.conf.get(_PROVIDER, None) not in (None, _DEFAULT_PROVIDER)
        return {_PROVIDER: _ROCKSDB} if needs_it and not has_own else {}

    def _location(self, folder: Path) -> str:
        return f"streamtight://{folder}" if is_local(self._spark) else folder.as_uri()


def _pickled(feeds: Sequence[Feed]) -> bytes:
    """The rows of all inputs as the Java driver takes them."""
    inputs = []
    for feed in feeds:
        rows = [
            feed.struct.toInternal(tuple(row)) for batch in feed.batches for partition in batch for row in partition
        ]
        inputs.append((rows, [len(partition) for batch in feed.batches for partition in batch]))
    up_to = [[0] * len(feeds) for _ in feeds[0].batches]
    for place, feed in enumerate(feeds):
        blocks = 0
        for number, batch in enumerate(feed.batches):
            blocks += len(batch)
            up_to[number][place] = blocks
    return pickle.dumps((inputs, up_to), protocol=4)


# -- the Java classes ------------------------------------------------------------------------------------------------

_LOADED: dict[str, Any] = {}


def _load_classes(spark: SparkSession) -> Any:
    """The class loader that has our classes, compiled and loaded once for every Spark application."""
    application = str(spark.sparkContext.applicationId)
    if application not in _LOADED:
        jar = _jar(_compiled(spark))
        loader = java_class(spark, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()
        try:
            loader.addURL(java_class(spark, "java.io.File")(str(jar)).toURI().toURL())
        except Py4JError as error:
            raise UnsupportedError(
                "preparing Spark for exact micro-batches",
                needed="a class loader that takes more classes, as sessions started from Python have",
                came=str(loader.getClass().getName()),
                hint="a session of your own: tight.session()",
            ) from error
        if not is_local(spark):
            spark.sparkContext._jsc.addJar(str(jar))
        loader.loadClass("streamtight.QuietFileSystem").newInstance().register(
            spark.sparkContext._jsc.hadoopConfiguration()
        )
        _LOADED.clear()  # an application that ended takes its classes with it
        _LOADED[application] = loader
    return _LOADED[application]


def _compiled(spark: SparkSession) -> dict[str, bytes]:
    compiler = java_class(spark, "org.codehaus.janino.SimpleCompiler")()
    compiler.setParentClassLoader(java_class(spark, "org.apache.spark.util.Utils").getContextOrSparkClassLoader())
    compiler.setTargetVersion(8)
    try:
        compiler.cook(_one_unit([path.read_text() for path in sorted(_SOURCES.glob("*.java"))]))
    except Py4JJavaError as error:
        raise UnsupportedError(
            "preparing Spark for exact micro-batches",
            needed="a Spark whose internals our driver knows (4.0 to 4.3)",
            came=f"Spark {spark.version}: {str(error.java_exception.getMessage()).splitlines()[0]}",
            hint="a released Spark 4, or a newer streamtight",
        ) from error
    return {name: bytes(code) for name, code in dict(compiler.getBytecodes()).items()}


def _one_unit(sources: Sequence[str]) -> str:
    """The sources as one file, since each of them needs the others to compile."""
    lines = [line for source in sources for line in source.splitlines()]
    imports = dict.fromkeys(line for line in lines if line.startswith("import "))
    body = [line for line in lines if not line.startswith(("import ", "package "))]
    return "\n".join(["package streamtight;", *imports, *body])


def _jar(classes: Mapping[str, bytes]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="streamtight-java-", dir=fast_folder()))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    jar = folder / "streamtight.jar"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, code in classes.items():
            archive.writestr(f"{name.replace('.', '/')}.class", code)
    return jar
