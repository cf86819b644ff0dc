"""One Spark session, set up for many small runs; and what to say when Spark does not start."""

from __future__ import annotations

import importlib.util
import logging
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamtight.errors import SparkStartError, UnsupportedError
from streamtight.spark.java import INSTALL_HINT, OLDEST, find_java, installed_javas, use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# What pays for runs of a few rows: no web page, no progress bars, no warehouse in the user's folder, no code generation
# for plans that see ten rows, and as many shuffle partitions as cores.
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUIET = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties')}"
SMALL_RUNS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.catalogImplementation": "in-memory",
    # The quick compiler and the simple collector: a third less time for a suite of small runs.
    _JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(**confs: str) -> SparkSession:
    """The active Spark session; if there is none, one on this machine, set up for small runs.

    `confs` are further settings for a new session; the dots of their names are written as double underscores:
    `session(spark__sql__session__timeZone="UTC")`.
    """
    from pyspark.sql import SparkSession

    active = running_session()
    if active is not None:
        if confs:
            raise SparkStartError(
                "session(...)",
                needed="no session yet, since these settings are for a new one",
                came="a session that already runs",
                hint="session() without settings, or call it with them first",
            )
        return active
    use_java()
    # Tasks run the Python that asks, not the first one on PATH, which may lack the job's packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("streamtight").master("local[2]")
    warehouse = Path(tempfile.gettempdir()) / "streamtight-warehouse"
    settings = {"spark.sql.warehouse.dir": str(warehouse), **SMALL_RUNS}
    settings.update({name.replace("__", "."): value for name, value in confs.items()})
    if "log4j2.configurationFile" not in settings[_JAVA_OPTIONS]:
        settings[_JAVA_OPTIONS] += f" {_QUIET}"
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        started = builder.getOrCreate()
    except Exception as error:  # the border to the JVM's launcher: whatever it raised is kept as the cause
        raise _start_error(error) from error
    for log in query_logs():
        log.disabled = True
    return started


def query_logs() -> list[logging.Logger]:
    """Where PySpark logs what jobs raise: a line of JSON with the whole stack of Java, beside what we tell of it."""
    from pyspark.logger import PySparkLogger

    # Not by logging.getLogger: it would make them of a class that PySpark cannot use.
    return [PySparkLogger.getLogger(f"{api}QueryContextLogger") for api in ("SQL", "DataFrame")]


def running_session() -> SparkSession | None:
    """The session that already runs in this process, if there is one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is None and SparkContext._active_spark_context is not None:
        active = SparkSession.builder.getOrCreate()  # it was started in another thread
    return active


def java_class(spark: SparkSession, name: str) -> Any:
    """A class of the JVM, by its full name.

    Not as `spark._jvm.org.apache...`: Py4J would ask for each of these names whether it is a class, and the JVM would
    look for it in some hundred jars: three milliseconds, where this takes a third of one.
    """
    return getattr(spark._jvm, name)


def stop_session() -> None:
    """Stop Spark, if it runs, and its streams before it."""
    pyspark = sys.modules.get("pyspark")
    if pyspark is None or pyspark.SparkContext._active_spark_context is None:
        return
    from pyspark.sql import SparkSession

    active = SparkSession.builder.getOrCreate()
    for query in active.streams.active:
        query.stop()
    active.stop()


def require_packages(what: str, needed: Mapping[str, str]) -> None:
    """Raise if a package is missing that this needs. `needed` says for each module what to install."""
    missing = [wheel for module, wheel in needed.items() if not _is_installed(module)]
    if missing:
        raise UnsupportedError(
            what,
            needed="some packages besides Spark",
            came=f"no {', no '.join(missing)}",
            hint=f"pip install {' '.join(missing)}, here and where the tasks run",
        )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def is_connect(spark: SparkSession) -> bool:
    """Is this a Spark Connect session, which has no JVM of its own at hand?"""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: SparkSession) -> bool:
    """Do the tasks run in this process's JVM?"""
    return not is_connect(spark) and (spark.sparkContext.master or "").partition("[")[0] == "local"


def _start_error(error: Exception) -> SparkStartError:
    problems = [f"{check.name}: {check.found}; {check.hint}" for check in doctor() if not check.fine]
    return SparkStartError(
        "starting Spark",
        needed="a Spark session on this machine",
        came=f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no message'}",
        hint=" / ".join(problems)
        or "`streamtight doctor` found nothing wrong; the lines above, from the JVM, may tell",
    )


# -- doctor ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: what was found, whether that is fine, and what to do if not."""

    name: str
    fine: bool
    found: str
    hint: str = ""

    def __str__(self) -> str:
        mark = "ok     " if self.fine else "PROBLEM"
        return f"{mark}  {self.name}: {self.found}" + (f"\n         {self.hint}" if self.hint else "")


def doctor() -> Iterator[Check]:
    """What Spark needs, what is here, and what to do about the difference. Starts nothing."""
    version = platform.python_version()
    yield Check(
        "Python",
        sys.version_info >= (3, 11),
        version,
        "" if sys.version_info >= (3, 11) else "use Python 3.11 or newer",
    )
    yield _check_java()
    yield _check_pyspark()
    if home := os.environ.get("SPARK_HOME"):
        yield Check(
            "SPARK_HOME", True, home, "Spark runs from there, not from the package; unset it if versions differ"
        )
    yield from _check_shell_tools()
    yield _check_folder()
    yield from _check_optional()


def _check_java() -> Check:
    notes = [
        f"Java {java.version} by {java.found_by} ({java.home}) is older than {OLDEST} and is not used"
        for java in installed_javas()
        if not java.usable
    ]
    home = os.environ.get("JAVA_HOME")
    if home and not (Path(home) / "bin" / "java").is_file():
        notes.append(f"JAVA_HOME is not used: there is no {Path(home) / 'bin' / 'java'}")
    old = "; ".join(notes)
    try:
        java_found = find_java()
    except SparkStartError as error:
        return Check("Java", False, error.came, error.hint)
    if java_found is None:
        return Check("Java", False, "none" + (f"; {old}" if old else ""), INSTALL_HINT)
    return Check("Java", True, f"{java_found.version} by {java_found.found_by} ({java_found.home})", old)


def _check_pyspark() -> Check:
    if importlib.util.find_spec("pyspark") is None:
        return Check("PySpark", False, "not installed", "pip install 'pyspark>=4.0'")
    import pyspark

    version = pyspark.__version__
    fine = int(version.split(".")[0]) >= 4
    return Check("PySpark", fine, version, "" if fine else "pip install 'pyspark>=4.0'")


def _check_shell_tools() -> Iterator[Check]:
    missing = [tool for tool in ("bash", "ps", "dirname", "chmod") if shutil.which(tool) is None]
    found = ", ".join(missing) + " not on PATH" if missing else "all on PATH"
    hint = "Spark's launcher calls them (Debian: packages bash, procps, coreutils)" if missing else ""
    yield Check("shell tools", not missing, found, hint)


def _check_folder() -> Check:
    folder = fast_folder()
    free = shutil.disk_usage(folder).free // 2**20
    return Check(
        "checkpoints", free >= 100, f"{folder}, {free} MiB free", "" if free >= 100 else "free some room there"
    )


def _check_optional() -> Iterator[Check]:
    for package, purpose in (("pyarrow", "pandas and Arrow functions"), ("pandas", "pandas functions")):
        if importlib.util.find_spec(package) is None:
            yield Check(package, True, "not installed", f"needed only for jobs with {purpose}: pip install {package}")
            continue
        version = _version(package)
        # PySpark 4.3 warns that it does not fully support pandas 3 yet.
        hint = (
            "PySpark does not fully support pandas 3 yet: pip install 'pandas<3'"
            if (package == "pandas" and version.startswith("3."))
            else ""
        )
        yield Check(package, True, version, hint)


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def fast_folder() -> Path:
    """Where checkpoints of test runs go: memory if there is a folder in memory, else the temporary folder."""
    memory = Path("/dev/shm")  # noqa: S108 - each run makes a folder of its own in it
    return memory if memory.is_dir() and os.access(memory, os.W_OK) else Path(tempfile.gettempdir())
