"""What the live page costs, in processor time: a job for its journal, and the server for pages that are open.

    python benchmarks/live_page.py          the journal, and the server
    python benchmarks/live_page.py spark    a live comparison on Spark: all that its driver does for the page

Shares are of one core. A micro-batch of a live comparison takes about 0.7 s of processor time (docs/live.md).
"""

from __future__ import annotations

import http.client
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from streamtight.source.journal import Journal

BATCH_SECONDS = 0.7
"""Of processor time: a micro-batch of a live comparison."""
LIMIT = 0.01


def note(journal: Journal, batch: int) -> None:
    journal.note(
        batch=batch, rows={"left": 4000 * batch, "right": 4000 * batch - 7}, rate=4000.5, oldest=1.25, seconds=0.61,
        unmatched={"left": 7, "right": 0}, verdict="UNDECIDED",
        reason="still running with 7 unmatched on the left and 0 on the right; the oldest is row(taxi_id=1, x=5)",
    )  # fmt: skip


def journal_cost(folder: Path) -> float:
    """Processor time of one micro-batch's line, with all rotations: the median of seven runs."""
    journal = Journal(folder, "job", kind="compare_live")
    taken = []
    for _ in range(7):
        begun = time.process_time()
        for batch in range(2_000):
            note(journal, batch)
        taken.append((time.process_time() - begun) / 2_000)
    journal.end()
    return statistics.median(taken)


def served(folder: Path, jobs: int, seconds: int, busy: bool) -> tuple[float, float, int]:
    """The share of a core that the server takes with one page open, the size of an answer, and of the first one.

    busy   whether each job has a micro-batch each second; else only the page asks
    """
    journals = [Journal(folder, f"job {number}", kind="compare_live") for number in range(jobs)]
    for journal in journals:
        for batch in range(300):
            note(journal, batch)
    server = subprocess.Popen(
        [sys.executable, "-m", "streamtight", "watch", "--serve", str(folder), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None  # noqa: S101
        port = int(server.stdout.readline().rsplit(":", 1)[1].split("/")[0])
        since, first = ask(port, "")
        begun, sizes = cpu_of(server.pid), []
        start = time.monotonic()
        for second in range(seconds):
            if busy:
                for journal in journals:
                    note(journal, 300 + second)
            since, size = ask(port, since)
            sizes.append(size)
            time.sleep(max(0.0, start + second + 1 - time.monotonic()))
        return (cpu_of(server.pid) - begun) / (time.monotonic() - start), statistics.median(sizes), first
    finally:
        server.terminate()
        server.wait()
        for journal in journals:
            journal.end()


def ask(port: int, since: str) -> tuple[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", f"/state.json?since={since}")
    body = connection.getresponse().read()
    connection.close()
    told: dict[str, Any] = json.loads(body)
    return told["next"], len(body)


def cpu_of(pid: int) -> float:
    """Seconds of processor time that a process has taken (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def on_spark(batches: int = 40) -> None:
    """What the driver of a live comparison does for the page, by the clock of the thread that does it."""
    from pyspark.sql import functions as sf

    import streamtight as tight
    from streamtight.spark.live_journal import LiveNotes

    taken: list[float] = []
    look = LiveNotes.look

    def timed(self: LiveNotes, live: tight.LiveComparison, active: bool) -> None:
        begun = time.thread_time()
        look(self, live, active)
        taken.append(time.thread_time() - begun)

    LiveNotes.look = timed  # type: ignore[method-assign]
    spark = tight.session()
    with tempfile.TemporaryDirectory() as folder:
        left, right = (
            spark.readStream.format("rate-micro-batch")
            .option("rowsPerBatch", 2_000)
            .load()
            .select((sf.col("value") % 50).alias("key"), "value")
            for _ in range(2)
        )
        with tight.compare_live(
            left, right, upto=tight.same("key"), checkpoint=f"{folder}/c", board=f"{folder}/board", tasks=2
        ) as live:
            while len(live.history) < batches:
                time.sleep(0.1)
                live.verdict()
            verdict, count, seconds = live.verdict(), len(live.history), sum(one.seconds for one in live.history)
    spark.stop()
    each = sum(taken) / count
    print(
        f"{verdict.outcome.name} after {count} micro-batches in {seconds:.0f} s; {len(taken)} looks of the page's part"
    )
    print(f"driver: {each * 1e6:.0f} us a micro-batch, {each / BATCH_SECONDS:.3%} of {BATCH_SECONDS} s")


def main() -> None:
    if sys.argv[1:] == ["spark"]:
        on_spark()
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    with tempfile.TemporaryDirectory() as folder:
        cost = journal_cost(Path(folder))
    share = cost / BATCH_SECONDS
    print(f"journal: {cost * 1e6:.0f} us a micro-batch, {share:.4%} of the {BATCH_SECONDS} s that it takes")
    print()
    print("| jobs | each second | share of a core | of the jobs' own | an answer | the first |")
    print("|---:|---|---:|---:|---:|---:|")
    for jobs in (1, 20, 200):
        for busy in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                core, size, first = served(Path(folder), jobs, 30, busy)
            own = f"{core / (jobs * BATCH_SECONDS):.3%}" if busy else "-"
            what = "a batch of each" if busy else "nothing new"
            print(f"| {jobs} | {what} | {core:.2%} | {own} | {size / 1e3:.1f} kB | {first / 1e3:.0f} kB |")
            if busy and core / (jobs * BATCH_SECONDS) + share > LIMIT:
                print(f"more than {LIMIT:.0%} of the jobs' processor time")
                sys.exit(1)


if __name__ == "__main__":
    main()
