"""Runs with faults, each told by a seed: python tests/faults/run.py [--seed 17] [--seeds 0-59] [--out FILE].

A driver process runs a live comparison, a watched query, a watched formula or a parallel program on files that come one
by one; meanwhile it, an executor or a worker is killed, a batch is done again, inputs are late, doubled or broken. What
must be answered is calculated in plain Python from the seed (scenario.py). Ends with 1 if a run was not as it must be.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from queue import Empty, Queue
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(HERE.parent / "spark")]

from driver import put  # noqa: E402
from scenario import (  # noqa: E402
    RELATIONS,
    Scenario,
    expected_answers,
    expected_of_formula,
    expected_of_live,
    expected_totals,
    is_corrupt,
    parsed,
    scenario,
    with_bug,
)
from standalone import Cluster, cluster, python_elsewhere  # noqa: E402

LONGEST = 600.0
"""Seconds for what a driver is asked."""
SEEDS = 60
QUERIES = dict.fromkeys(RELATIONS, 2)
"""How many queries a run has, if not one: the job and the comparison."""
TOO_SLOW = "Python worker failed to connect back"


class Driver:
    """A driver process, which may be killed."""

    def __init__(self, master: str, python: str, log: Path) -> None:
        self._log = log.open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "driver.py"), master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env={**os.environ, "PYSPARK_PYTHON": python, "SPARK_LOCAL_IP": "127.0.0.1"},
            start_new_session=True,
            cwd=log.parent,
        )
        self._said: Queue[dict[str, Any] | None] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        self.expect("READY")

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                self._said.put(json.loads(line))
        self._said.put(None)

    @property
    def is_alive(self) -> bool:
        return self._process.poll() is None

    def tell(self, **told: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write((json.dumps(told) + "\n").encode())
        self._process.stdin.flush()

    def expect(self, *words: str) -> dict[str, Any]:
        until = time.monotonic() + LONGEST
        while True:
            try:
                said = self._said.get(timeout=max(0.1, until - time.monotonic()))
            except Empty:
                raise TimeoutError(f"no {' or '.join(words)} within {LONGEST:g} s") from None
            if said is None:
                raise RuntimeError(f"the driver ended instead of {' or '.join(words)}")
            if said["said"] in words:
                return said
            if said["said"] == "RAISED":
                raise RuntimeError(said["error"])

    def kill(self) -> None:
        """End it at once, with its JVM and what that started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()


class Place:
    """Where runs take place: a cluster and this machine, with a driver for each that is used as long as it lives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self._cluster: Cluster | None = None
        self._drivers: dict[bool, Driver] = {}
        self._elsewhere = ""

    @property
    def cluster(self) -> Cluster:
        if self._cluster is None:
            (self.folder / "cluster").mkdir()
            self._elsewhere = python_elsewhere(self.folder / "cluster", [ROOT, ROOT / "src", HERE])
            started = cluster(self.folder / "cluster", self._elsewhere, workers=2)
            self._cluster = self._stack.enter_context(started)
        return self._cluster

    def driver(self, is_on_cluster: bool) -> Driver:
        known = self._drivers.get(is_on_cluster)
        if known is None or not known.is_alive:
            master = self.cluster.url if is_on_cluster else "local[2]"
            python = self._elsewhere if is_on_cluster else sys.executable
            known = self._drivers[is_on_cluster] = Driver(master, python, self.folder / "drivers.log")
        return known

    def close(self) -> None:
        for driver in self._drivers.values():
            driver.kill()
        self._stack.close()


class FaultRun:
    """One run, from the first file to the answer."""

    def __init__(self, given: Scenario, place: Place) -> None:
        self.given, self.place = given, place
        self.folder = place.folder / f"seed{given.seed}"
        for name in ("in", "old", "new", "barriers", "answers"):
            (self.folder / name).mkdir(parents=True)
        self._later: list[threading.Timer] = []
        self.restarts = 0
        self.replayed = 0
        """Of how many queries the last batch was done again."""

    def result(self) -> dict[str, Any]:
        """What the driver said in the end."""
        refused = self._start()
        if refused is not None:
            return refused
        for number in range(len(self.given.files)):
            self._deliver(number)
            time.sleep(0.3)
            if number == self.given.struck:
                refused = self._strike(number)
                if refused is not None:
                    return refused
        for timer in self._later:
            timer.join()
        found = self._finish()
        while TOO_SLOW in f"{found.get('job')} {found.get('live')}" and self.restarts < 3:
            # Spark gives a new Python ten seconds. What then ends the query is the machine's fault; whoever looks after
            # it would start it again.
            self.restarts += 1
            self.place.driver(self.given.is_on_cluster).kill()
            refused = self._start()
            if refused is not None:
                return refused
            found = self._finish()
        return found

    def _finish(self) -> dict[str, Any]:
        driver = self.place.driver(self.given.is_on_cluster)
        driver.tell(finish=True)
        return driver.expect("RESULT")

    def _start(self) -> dict[str, Any] | None:
        driver = self.place.driver(self.given.is_on_cluster)
        driver.tell(
            folder=str(self.folder),
            what=self.given.what,
            bug=self.given.bug,
            target=self.given.target,
            fails_fast="failfast" in self.given.faults,
            files=len(self.given.files),
        )
        said = driver.expect("STARTED", "REFUSED")
        return said if said["said"] == "REFUSED" else None

    def _deliver(self, number: int) -> None:
        """The file of this number, on all inputs; on the delayed one some seconds later."""
        lines = list(self.given.files[number])
        wait = 3.0 if number >= self.given.delayed >= 0 else 0.0
        others = []
        if self.given.what in RELATIONS:
            others = [("old", [json.dumps(parsed(line)) for line in lines])]
        elif self.given.what == "parallel":
            others = [("barriers", list(self.given.barriers[number]))]
        elif wait:
            time.sleep(wait if number == self.given.delayed else 0.0)
        put(self.folder / "in" / f"{number}.json", lines, number + 1)
        for name, other in others:
            if wait:
                # One after another, since a later file must not come before.
                timer = threading.Timer(wait, put, (self.folder / name / f"{number}.json", other, number + 1))
                timer.start()
                self._later.append(timer)
            else:
                put(self.folder / name / f"{number}.json", other, number + 1)

    def _strike(self, number: int) -> dict[str, Any] | None:
        """Kill what shall be killed."""
        for fault in self.given.faults:
            if fault == "executor":
                time.sleep(self.given.pause)
                self.place.cluster.kill_executor()
            elif fault == "worker":
                time.sleep(self.given.pause)
                self.place.cluster.kill_worker()
                self.place.cluster.add_worker()
            elif fault in ("driver", "replay"):
                if fault == "replay":
                    self._wait_until_quiet(number)
                else:
                    time.sleep(self.given.pause)
                self.place.driver(self.given.is_on_cluster).kill()
                if fault == "replay":
                    self.replayed = sum(map(_forget_last_commit, self._checkpoints()))
                return self._start()
        return None

    def _checkpoints(self) -> list[Path]:
        names = ("job", "live/spark", "promise/query", "parallel/spark")
        return [self.folder / name for name in names if (self.folder / name).is_dir()]

    def _wait_until_quiet(self, number: int) -> None:
        """Wait until all queries have handled what came: only then the last batch of each can be done again."""
        until = time.monotonic() + 180
        before: list[tuple[int, int]] = []
        while time.monotonic() < until:
            found = [(_last(each / "commits"), _last(each / "offsets")) for each in self._checkpoints()]
            is_settled = bool(found) and found[0][0] >= number and all(done == begun for done, begun in found)
            if is_settled and found == before:
                return
            before = found
            time.sleep(2.0)


def _last(log: Path) -> int:
    return max((int(entry.name) for entry in log.iterdir() if entry.name.isdigit()), default=-1) if log.is_dir() else -1


def _forget_last_commit(checkpoint: Path) -> bool:
    """Let Spark do the last batch again, if it is not in the middle of the next one; whether it will."""
    last = _last(checkpoint / "commits")
    if last < 0 or last != _last(checkpoint / "offsets"):
        return False
    (checkpoint / "commits" / str(last)).unlink()
    (checkpoint / "commits" / f".{last}.crc").unlink(missing_ok=True)
    return True


# -- what must be, and what is ---------------------------------------------------------------------------------------


def judged(given: Scenario, folder: Path, found: dict[str, Any]) -> tuple[str, str]:
    """What must come out, and what did, in words that are equal if all is right."""
    if found["said"] == "REFUSED":
        return ("InconsistentError JOIN_UPDATE_RIGHT" if given.bug == "join" else "a run"), found["error"]
    if given.what in RELATIONS:
        return _judged_live(given, folder, found)
    if given.what == "query":
        return _judged_query(given, folder, found)
    if given.what == "formula":
        expected = expected_of_formula(given.files, given.bug, given.target)
        rows = sum(parsed(line)["k"] is not None for lines in given.files for line in lines)
        # A micro-batch that is judged twice decides it too early, and the last one is not judged at all.
        told = f", {len(given.files)} letters, {rows} rows" if expected == "HOLDS" else ""
        got = found.get("verdict", found["job"])
        return (
            f"{expected}{told}",
            f"{got}, {found['letters']} letters, {found['rows']} rows" if got == "HOLDS" else got,
        )
    return _judged_parallel(given, folder, found)


def _judged_live(given: Scenario, folder: Path, found: dict[str, Any]) -> tuple[str, str]:
    old = [parsed(line) for lines in given.files for line in lines]
    new, fails = [], False
    for number, lines in enumerate(given.files):
        fails = fails or ("failfast" in given.faults and is_corrupt(lines))
        if not fails:
            times = len(list((folder / "new").glob(f"{number}-*.json"))) if given.bug == "double" else 1
            new += with_bug([parsed(line) for line in lines], given.bug, given.target) * times
    verdict = "UNDECIDED" if fails else expected_of_live(given.what, old, new)
    alarms = ["DIVERGED"] if verdict == "FAILS DIVERGED" else []
    expected = f"{verdict}, alarms {alarms}, {len(old)}/{len(new)} rows, {'job fails' if fails else 'job runs'}"
    if found["live"] is not None:
        return expected, found["live"][:300]
    got = f"{found['verdict']}, alarms {found['alarms']}, {found.get('left')}/{found.get('right')} rows, {_job(found)}"
    return expected, got


def _job(found: dict[str, Any]) -> str:
    if found["job"] is None:
        return "job runs"
    return "job fails" if "MALFORMED_RECORD" in found["job"] else found["job"][:300]


def _judged_query(given: Scenario, folder: Path, found: dict[str, Any]) -> tuple[str, str]:
    broken = [number for number, lines in enumerate(given.files) if is_corrupt(lines) and "failfast" in given.faults]
    files = given.files[: broken[0]] if broken else given.files
    answers = expected_answers(files, given.bug, given.target)
    paths = sorted((folder / "answers").glob("*.json"))
    got = sorted((json.loads(line) for path in paths for line in path.read_text().splitlines()), key=repr)
    expected = f"{_told(answers)}, {'job fails' if broken else 'job runs'}"
    same = _told(got) if got == answers else f"OTHER ANSWERS {_told(got)}"
    return expected, f"{same}, {_job(found)}"


def _told(answers: list[list[Any]]) -> str:
    alarms = sum(answer[3] is False for answer in answers)
    late = sum(answer[4] == "late" for answer in answers)
    return f"{len(answers)} answers, {late} late, {alarms} alarms"


def _judged_parallel(given: Scenario, folder: Path, found: dict[str, Any]) -> tuple[str, str]:
    if "late" in given.faults:
        needed = "InputError: stream 'values': needed times"
        return needed, needed if needed in str(found["job"]) else str(found["job"])[:300]
    expected = expected_totals(given.files, given.barriers)
    if found["job"] is not None:
        return f"{len(expected)} totals", found["job"][:300]
    import pyarrow.parquet

    got = []
    for path in (folder / "totals").glob("batch=*/*.parquet"):
        table = pyarrow.parquet.ParquetFile(path).read()
        got += [list(row) for row in zip(table["time"].to_pylist(), table["total"].to_pylist(), strict=True)]
    got.sort()
    return f"{len(expected)} totals", f"{len(got)} totals" if got == expected else f"OTHER TOTALS {got} for {expected}"


# -- all of them -----------------------------------------------------------------------------------------------------


def one(seed: int, place: Place) -> dict[str, Any]:
    """The run of a seed, and whether it was as it must be."""
    given = scenario(seed)
    started = time.monotonic()
    run = FaultRun(given, place)
    try:
        expected, got = judged(given, run.folder, run.result())
        if "replay" in given.faults:  # of all of its queries, or nothing was asked
            expected += f", {QUERIES.get(given.what, 1)} replayed"
            got += f", {run.replayed} replayed"
    except Exception as error:  # the run goes into the table, whatever happened
        expected, got = "a run", f"{type(error).__name__}: {error}"[:500]
        place.driver(given.is_on_cluster).kill()
    return {
        "seed": seed,
        "where": "cluster" if given.is_on_cluster else "local[2]",
        "what": given.what,
        "faults": given.told(),
        "restarts": run.restarts,
        "expected": expected,
        "got": got,
        "seconds": round(time.monotonic() - started, 1),
        "ok": expected == got,
    }


def line(row: dict[str, Any]) -> str:
    mark = "ok  " if row["ok"] else "BAD "
    got = "as expected" if row["ok"] else f"GOT {row['got']}"
    if row["restarts"]:
        got += f" (started again {row['restarts']} times: {TOO_SLOW})"
    head = f"{mark} {row['seed']:>3} {row['where']:<8} {row['what']:<12} {row['seconds']:>6.1f} s"
    return f"{head}  [{row['faults'] or 'none'}] {row['expected']} -> {got}"


def main() -> int:
    parser = argparse.ArgumentParser(description="fault runs")
    parser.add_argument("--seed", type=int, help="one run")
    parser.add_argument("--seeds", default=f"0-{SEEDS - 1}", help="from-to")
    parser.add_argument("--out", type=Path, help="the table as JSON")
    parser.add_argument("--folder", type=Path, help="a new folder for all files, which is kept")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started ends, too
    first, _, last = asked.seeds.partition("-")
    seeds = [asked.seed] if asked.seed is not None else list(range(int(first), int(last or first) + 1))
    with contextlib.ExitStack() as stack:
        if asked.folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="streamtight-faults-")))
        else:
            folder = asked.folder.resolve()
            folder.mkdir(parents=True)
        place = Place(folder)
        stack.callback(place.close)
        rows = []
        for seed in seeds:
            rows.append(one(seed, place))
            print(line(rows[-1]), flush=True)
            if asked.out is not None:
                asked.out.parent.mkdir(parents=True, exist_ok=True)
                asked.out.write_text(json.dumps(rows, indent=1))
    bad = [row["seed"] for row in rows if not row["ok"]]
    kinds = Counter(fault for row in rows for fault in row["faults"].split(", ") if fault)
    print(f"{len(rows)} runs, {len(bad)} not as expected {bad or ''}, {sum(row['seconds'] for row in rows):.0f} s")
    print(", ".join(f"{fault} {count}" for fault, count in sorted(kinds.items())))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
