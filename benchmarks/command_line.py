"""What a person at a terminal waits for: start-up, a question without a JVM, the first look at a job, a replay.

    python benchmarks/command_line.py

Seconds of processor time (of the command and all that it starts) and of the clock, the medians of some runs; the last
column is the ratio to starting Spark and doing nothing else, which nobody can avoid who asks about a job.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 3
JOBS = """
from pyspark.sql import functions as sf

def totals(sales):
    return sales.groupBy("shop").agg(sf.sum("amount").alias("total"))

def newest(sales):
    return sales.groupBy("shop").agg(sf.last("amount").alias("amount"))
"""
PIPES = """
import streamtight as tight
from streamtight import pipes

every_second = tight.Pipeline.wired("in -> C; C.0 -> out", C=pipes.CountDecimate(2))
"""
TABLE = ["--input", "table[shop: str, amount: int]"]
START = "from streamtight.spark.session import session; session().range(1).count()"
COMMANDS = {
    "python, nothing else": ["-c", "pass"],
    "import streamtight": ["-c", "import streamtight"],
    "streamtight --help": ["-m", "streamtight", "--help"],
    "explore, no JVM": ["-m", "streamtight", "explore", "pipes.py:every_second", "live", "--keep", ""],
    "start Spark, count one row": ["-c", START],
    "laws, one law that holds": ["-m", "streamtight", "laws", "jobs.py:totals", *TABLE, "--only", "cuts", "--keep", ""],
    "laws, one law that fails": ["-m", "streamtight", "laws", "jobs.py:newest", *TABLE, "--only", "order"],
    "the same again: kept": ["-m", "streamtight", "laws", "jobs.py:newest", *TABLE, "--only", "order"],
    "replay": ["-m", "streamtight", "replay"],
}


def spent(arguments: list[str], folder: str) -> tuple[float, float]:
    """Processor seconds of a command and its children, and seconds of the clock."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.perf_counter() - started


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "jobs.py").write_text(JOBS)
        Path(folder, "pipes.py").write_text(PIPES)
        found = {name: [spent(arguments, folder) for _ in range(RUNS)] for name, arguments in COMMANDS.items()}
    base = statistics.median(clock for _, clock in found["start Spark, count one row"])
    print(f"{'':28} {'processor':>10} {'clock':>8} {'ratio':>7}")
    for name, runs in found.items():
        processor, clock = (statistics.median(one[place] for one in runs) for place in (0, 1))
        print(f"{name:28} {processor:9.2f}s {clock:7.2f}s {clock / base:7.2f}")


if __name__ == "__main__":
    main()
