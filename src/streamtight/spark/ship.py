"""What the tasks of a cluster need from here: this package and the modules of the jobs; and what must be there already.

On one machine tasks import what the driver can import. On a cluster the executors have neither this package nor the
user's modules, so their sources are sent along. What is no plain Python (pyarrow, pandas, NumPy, protobuf) cannot be
sent; it is looked for on the executors once, so that a missing package is told as such.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import importlib.util
import io
import os
import shutil
import tempfile
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

import streamtight
from streamtight.errors import SourceError, UnsupportedError
from streamtight.spark.session import is_connect, is_local, java_class

CHECKPOINTS = "spark.streamtight.checkpoints"
"""The setting that names a folder, mounted on all nodes, for the checkpoints of small runs."""

_LOOKED_FOR = ("pyarrow", "pandas", "numpy", "google.protobuf")
_CANNOT_TRAVEL = (".so", ".pyd", ".dylib")
_LEFT_OUT = ("__pycache__", ".git", ".venv", ".mypy_cache", ".pytest_cache")


class _Known(NamedTuple):
    """What is known of a running application."""

    sent: set[str]
    """The archives that it has."""
    missing: dict[str, list[str]]
    """The packages that executors lack, by host."""
    seen: set[str]
    """The folders that executors were found to see."""


_APPLICATIONS: dict[str, _Known] = {}


def ship(spark: SparkSession, *modules: ModuleType | str | os.PathLike[str]) -> None:
    """Send modules of yours to all executors, present and future, so that tasks can import them; and this package.

    A module is given itself, by its name, or by the path of its file or folder; of a package all of it goes along. Call
    it when the session has started, before functions of these modules become part of a DataFrame: a udf that was used
    before stays as it was. Modules that need something compiled must be installed where the tasks run.

    This package is sent by every verb when it is needed; `ship(spark)` does nothing else.
    """
    own = [] if is_local(spark) else [_root(streamtight)]  # on this machine tasks import what is installed
    for name, place in dict.fromkeys([*own, *map(_root, modules)]):
        _send(spark, name, place)


def shipped(spark: SparkSession) -> None:
    """Make sure that tasks can import this package. Costs nothing on one machine, or if it was done before."""
    if not is_connect(spark) and not is_local(spark):
        ship(spark)


def require_there(spark: SparkSession, what: str, needed: Mapping[str, str]) -> None:
    """Raise if an executor lacks a package that this needs. `needed` says for each module what to install."""
    if is_connect(spark) or is_local(spark):
        return
    ship(spark)
    known = _known(spark)
    if not known.missing:
        known.missing.update(_missing_packages(spark))
    for host, missing in known.missing.items():
        wheels = [wheel for module, wheel in needed.items() if module in missing]
        if wheels:
            raise UnsupportedError(
                what,
                needed=f"{', '.join(needed)} where the tasks run",
                came=f"an executor on {host} without {', '.join(wheels)}",
                hint=f"pip install {' '.join(wheels)} on every node, in the Python that spark.pyspark.python names",
            )


def require_shared(spark: SparkSession, where: str, folder: str | os.PathLike[str]) -> None:
    """Raise if an executor does not see a folder of the driver's own file system, where state or rows shall lie.

    Such a folder on each node for itself would look fine, and lose what a task wrote when the next one runs elsewhere.
    """
    path = os.fspath(folder)
    if is_connect(spark) or is_local(spark) or path in _known(spark).seen:
        return
    hadoop = java_class(spark, "org.apache.hadoop.fs.Path")(path)
    scheme = hadoop.toUri().getScheme()
    if scheme is None:  # then it is of the file system that the cluster has by default
        scheme = hadoop.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).getScheme()
    if scheme != "file":
        return
    marker = Path(str(hadoop.toUri().getPath())).absolute() / f".streamtight-{uuid.uuid4().hex}"
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()
    try:
        blind = _hosts_without(spark, str(marker))
    finally:
        marker.unlink(missing_ok=True)
    if blind:
        raise UnsupportedError(
            where,
            needed="a folder that the driver and all executors see",
            came=f"{path}, which is another one on {', '.join(blind)}",
            hint=f"hdfs://..., s3a://..., or a folder that is mounted everywhere ({CHECKPOINTS} for small runs)",
        )
    _known(spark).seen.add(path)


# -- archives --------------------------------------------------------------------------------------------------------


def _root(module: ModuleType | str | os.PathLike[str]) -> tuple[str, Path]:
    """The name of what must be sent for a module, and the file or folder of it."""
    if isinstance(module, ModuleType):
        name = module.__name__
    elif isinstance(module, str) and not module.endswith(".py") and os.sep not in module:
        name = module
    else:
        path = Path(module)
        if not path.exists() or not path.stem.isidentifier() or (path.is_file() and path.suffix != ".py"):
            raise SourceError("ship(...)", needed="a file of Python, or a folder", came=str(path), hint="jobs.py")
        return path.stem, path
    if name == "__main__":
        raise SourceError(
            "ship(...)",
            needed="a module with a name",
            came="the script that runs",
            hint="nothing to do: functions of the script travel by themselves",
        )
    root = name.partition(".")[0]
    try:
        found = importlib.import_module(root)
    except ImportError as error:
        raise SourceError("ship(...)", needed="a module", came=f"{root!r}: {error}", hint="jobs, or jobs.py") from error
    places = [*getattr(found, "__path__", ()), getattr(found, "__file__", None)]
    place = Path(places[0] or "nowhere")
    if places[0] is None or not place.exists() or (place.is_file() and place.suffix != ".py"):
        raise SourceError(
            "ship(...)",
            needed="a module of plain Python",
            came=f"{root!r}, which has no file of it",
            hint=f"pip install {root} where the tasks run",
        )
    return root, place


def _send(spark: SparkSession, name: str, place: Path) -> None:
    known = _known(spark)
    data = _archive(name, place)
    archive = f"{name}-{hashlib.sha256(data).hexdigest()[:12]}.zip"
    if archive in known.sent:
        return
    folder = Path(tempfile.mkdtemp(prefix="streamtight-ship-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)  # executors that come later fetch it from there
    (folder / archive).write_bytes(data)
    if is_connect(spark):
        spark.addArtifacts(str(folder / archive), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(folder / archive))
        # transformWithState asks a Python beside the driver first, which does not look at these files.
        paths = spark.sparkContext.environment
        paths["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder / archive), paths.get("PYTHONPATH")]))
    known.sent.add(archive)


_ARCHIVES: dict[tuple[str, Path], bytes] = {}


def _archive(name: str, place: Path) -> bytes:
    """The sources as a zip; with what Python made of them, so that no worker has to compile them again."""
    own = name == streamtight.__name__
    if own and (name, place) in _ARCHIVES:  # it does not change while it runs
        return _ARCHIVES[name, place]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for inside, path in _files(name, place):
            if path.suffix in _CANNOT_TRAVEL:
                raise SourceError(
                    f"ship({name!r})",
                    needed="a module of plain Python",
                    came=f"{path.name}, which is compiled",
                    hint=f"pip install {name} where the tasks run",
                )
            source = path.read_bytes()
            # Always the same time, so that the same sources are the same archive.
            archive.writestr(zipfile.ZipInfo(inside, (2020, 1, 1, 0, 0, 0)), source)
            compiled = _compiled(path, source) if path.suffix == ".py" else None
            if compiled is not None:
                archive.writestr(zipfile.ZipInfo(f"{inside}c", (2020, 1, 1, 0, 0, 0)), compiled)
    if own:
        _ARCHIVES[name, place] = buffer.getvalue()
    return buffer.getvalue()


def _files(name: str, place: Path) -> Iterator[tuple[str, Path]]:
    if place.is_file():
        yield f"{name}.py", place
        return
    for path in sorted(place.rglob("*")):
        inside = path.relative_to(place)
        if path.is_file() and path.suffix != ".pyc" and not set(_LEFT_OUT) & set(inside.parts):
            yield f"{name}/{inside.as_posix()}", path


def _compiled(path: Path, source: bytes) -> bytes | None:
    """The bytes of a .pyc that needs no date to be believed, if Python has kept one for this source."""
    try:
        kept = Path(importlib.util.cache_from_source(str(path))).read_bytes()
        state = path.stat()
    except (OSError, NotImplementedError):
        return None
    flags, written, size = (int.from_bytes(kept[at : at + 4], "little") for at in (4, 8, 12))
    is_of_source = written == int(state.st_mtime) & 0xFFFFFFFF and size == state.st_size & 0xFFFFFFFF
    if kept[:4] != importlib.util.MAGIC_NUMBER or flags != 0 or not is_of_source:
        return None
    is_hashed_and_unchecked = (1).to_bytes(4, "little")
    return kept[:4] + is_hashed_and_unchecked + importlib.util.source_hash(source) + kept[16:]


# -- a look at the executors -----------------------------------------------------------------------------------------


def _known(spark: SparkSession) -> _Known:
    application = str(vars(spark)["_session_id"] if is_connect(spark) else spark.sparkContext.applicationId)
    return _APPLICATIONS.setdefault(application, _Known(set(), {}, set()))


def _missing_packages(spark: SparkSession) -> dict[str, list[str]]:
    """For each host of executors, the packages that are not there."""
    names = _LOOKED_FOR

    def look(_: Any) -> Iterator[tuple[str, list[str]]]:  # in here, so that it travels by value
        import importlib
        import socket

        missing = []
        for name in names:
            try:
                importlib.import_module(name)
            except ImportError:
                missing.append(name)
        yield socket.gethostname(), missing

    return dict(_asked_everywhere(spark, look))


def _hosts_without(spark: SparkSession, path: str) -> list[str]:
    """The hosts of executors that do not see a file."""

    def look(_: Any) -> Iterator[tuple[str, bool]]:
        import os
        import socket

        yield socket.gethostname(), os.path.exists(path)

    return sorted({host for host, is_there in _asked_everywhere(spark, look) if not is_there})


def _asked_everywhere(spark: SparkSession, look: Any) -> list[Any]:
    """What tasks say, more of them than there are places: so executors that are there are reached, most likely all."""
    context = spark.sparkContext
    tasks = max(2, 2 * context.defaultParallelism)
    return context.parallelize(range(tasks), tasks).mapPartitions(look).collect()
