"""A Spark standalone cluster on this machine: a master and some workers, each a process of its own."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sysconfig
import time
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

import streamtight as tight
from streamtight.spark.java import use_java

HOME = Path(pyspark.__file__).parent
ELSEWHERE = "STREAMTIGHT_TESTS_ELSEWHERE"
"""Set for what runs on the cluster's side, so that it can be told from the driver's."""
_EXECUTOR = "CoarseGrainedExecutorBackend"


_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The quick compiler: these processes live for a minute."""


def session_on(master: str) -> SparkSession:
    """A session for small runs on a cluster of ours, or on this machine."""
    return tight.session(
        spark__master=master,
        spark__executor__memory="512m",
        spark__executor__extraJavaOptions=_SMALL_JVM,
        spark__cores__max="2",
    )


class Cluster:
    """A master and its workers; ends only what it started."""

    def __init__(self, folder: Path, python: str) -> None:
        use_java()
        self._folder = folder
        self._environment = {
            **os.environ,
            "SPARK_HOME": str(HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": python,
            "SPARK_NO_DAEMONIZE": "1",
            "SPARK_DAEMON_JAVA_OPTS": _SMALL_JVM,
            "SPARK_DAEMON_MEMORY": "256m",
            ELSEWHERE: "1",
        }
        port = _free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", str(port))

    def add_worker(self, cores: int = 1) -> None:
        """Start a worker with so many cores."""
        name = f"worker{len(self._processes)}"
        self._start(
            name,
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--cores", str(cores), "--memory", "700m"),
            *("--work-dir", str(self._folder / name), self.url),
        )

    def _start(self, name: str, *command: str) -> None:
        with (self._folder / f"{name}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [str(HOME / "bin" / "spark-class"), *command, *(("--webui-port", "0"))]
                    if name == "master"
                    else [str(HOME / "bin" / "spark-class"), command[0], "--webui-port", "0", *command[1:]],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=self._environment,
                    cwd=self._folder,
                    start_new_session=True,
                )
            )
        self._wait_for(name, "Successfully registered with master" if name != "master" else "New state: ALIVE")

    def _wait_for(self, name: str, words: str, seconds: float = 60.0) -> None:
        until = time.monotonic() + seconds
        while words not in (self._folder / f"{name}.log").read_text(errors="replace"):
            assert time.monotonic() < until, (self._folder / f"{name}.log").read_text(errors="replace")
            time.sleep(0.1)

    def executors(self) -> list[int]:
        """The processes of executors that the workers started."""
        mine = {process.pid for process in self._processes}
        found = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and _EXECUTOR in (entry / "cmdline").read_text():
                    parent = re.search(r"PPid:\s+(\d+)", (entry / "status").read_text())
                    if parent is not None and int(parent.group(1)) in mine:
                        found.append(int(entry.name))
        return found

    def kill_executor(self, seconds: float = 60.0) -> int:
        """End an executor at once, without a word to anybody."""
        until = time.monotonic() + seconds
        while not (running := self.executors()):
            assert time.monotonic() < until, "no executor came"
            time.sleep(0.1)
        os.kill(running[0], signal.SIGKILL)
        return running[0]

    def kill_worker(self) -> int:
        """End a worker at once, with its executors."""
        worker = next(each for each in self._processes[1:] if each.poll() is None)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        return worker.pid

    def close(self) -> None:
        """End all processes that were started."""
        for process in reversed(self._processes):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
        for process in self._processes:
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


@contextlib.contextmanager
def cluster(folder: Path, python: str, *, workers: int, cores: int = 1) -> Iterator[Cluster]:
    """A cluster with so many workers."""
    started = Cluster(folder, python)
    try:
        for _ in range(workers):
            started.add_worker(cores)
        yield started
    finally:
        started.close()


def python_elsewhere(folder: Path, hidden: Sequence[Path], *, without: Sequence[str] = ()) -> str:
    """A Python as another machine has it: Spark and its packages are there, but nothing of these folders.

    Its packages are links to ours, except this one and those that it shall be without. What a driver adds to
    PYTHONPATH is taken away again, since such folders do not exist on another machine.
    """
    home = folder / "elsewhere"
    venv.create(home, with_pip=False, symlinks=True)
    [site] = home.glob("lib/python*/site-packages")
    mine = Path(sysconfig.get_paths()["purelib"])
    for entry in mine.iterdir():
        is_left_out = entry.suffix == ".pth" or "streamtight" in entry.name or entry.name in without
        if not is_left_out:
            (site / entry.name).symlink_to(entry)
    taken_away = [str(path) for path in (mine, *hidden)]
    (site / "sitecustomize.py").write_text(
        "import os, sys\n"
        f"if {ELSEWHERE!r} in os.environ:\n"
        f"    hidden = {taken_away!r}\n"
        "    sys.path[:] = [path for path in sys.path if path not in hidden and 'streamtight-ship-' not in path]\n"
    )
    return str(home / "bin" / "python")


def _free_port() -> int:
    with socket.socket() as line:
        line.bind(("127.0.0.1", 0))
        port: int = line.getsockname()[1]
        return port
