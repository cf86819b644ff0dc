"""What does `parallelize` cost, and when does it pay? Throughput, synchronisations, state sizes, and many workers.

    python benchmarks/parallelize.py [--full] [section] ...

Sections: synchronisations, leaves, vectorised, applications, scaling, varied, model; without any, all.

Everything runs on local[8], as plans have up to 8 leaves. A job has a fixed cost, which is measured with nearly empty
inputs, and a cost per event, which is what is left of a large job. Wall time decides, since the claims are about
throughput; CPU time, of the driver, the JVM and all Python workers, stands beside it. Those that are compared take
turns, and medians are taken.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import itertools
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import event_windows
import fraud
import key_counter
import numpy as np
import outliers
import page_views
import pyarrow.parquet as pq
import smart_home
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession

import streamtight as tight
from streamtight.method.parallelize.columns import Outputs
from streamtight.method.parallelize.files import Files
from streamtight.method.parallelize.leaf import Leaf
from streamtight.spark.parallel_run import BoundedRun, Given, LeafTask
from streamtight.stream.event import trusted_events

EXAMPLES = Path(__file__).parents[1] / "examples"
STREAMS = 4
BETWEEN = 10_000
"""Events of all streams together from one synchronisation to the next."""
FEW = 2_000
MOST_LEAVES = 8
CORES = len(os.sched_getaffinity(0))
CHART = Path(__file__).parents[1] / "docs" / "parallelize_costs.svg"


class Taken(NamedTuple):
    """Seconds: on the clock, and of all processors."""

    wall: float
    cpu: float


class Application(NamedTuple):
    name: str
    module: Any
    program: tight.ForkJoin
    sequential: Callable[[str], Any]
    by_hand: Callable[[SparkSession, str], dict[str, DataFrame]] | None
    events: int


LOOKUPS, BLOCKS = 800_000, 1_000_000


def with_udf(spark: SparkSession, folder: str) -> dict[str, DataFrame]:
    """The job by hand for revenue: as for event windows, with a function of Python for each row."""
    from pyspark.sql import functions as sf

    earned = sf.udf(event_windows.earned, "long")
    changed = spark.read.parquet(f"{folder}/values_*.parquet").withColumn("value", earned("time", "value"))
    return event_windows.by_hand(_Instead(spark, "values_", changed), folder)


class _Instead:
    """A session that reads one table from elsewhere."""

    def __init__(self, spark: SparkSession, files: str, frame: DataFrame) -> None:
        self._spark, self._files, self._frame = spark, files, frame
        self.read = self

    def parquet(self, path: str) -> DataFrame:
        return self._frame if self._files in path else self._spark.read.parquet(path)


def applications() -> list[Application]:
    e, f, p, k, o, s = event_windows, fraud, page_views, key_counter, outliers, smart_home
    return [
        Application("Revenue", e, e.Revenue(), e.sequential_revenue, with_udf, LOOKUPS),
        Application("ScoredFraud", f, f.ScoredFraud(), f.sequential_scored, None, LOOKUPS),
        Application("ChosenAdverts", p, p.ChosenAdverts(), p.sequential_adverts, None, LOOKUPS),
        Application("SmartHome", s, s.SmartHome(), s.sequential, s.by_hand, LOOKUPS),
        Application("EventWindows", e, e.EventWindows(), e.sequential, e.by_hand, BLOCKS),
        Application("Fraud", f, f.Fraud(), f.sequential, f.by_hand, BLOCKS),
        Application("PageViews", p, p.PageViews(), p.sequential, p.by_hand, BLOCKS),
        Application("KeyCounter", k, k.KeyCounter(), k.sequential, k.by_hand, BLOCKS),
        Application("Outliers", o, o.Outliers(), o.sequential, o.by_hand, BLOCKS),
    ]


# -- how it is measured ------------------------------------------------------------------------------------------------


@cache
def session() -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for module in (event_windows, fraud, key_counter, outliers, page_views, smart_home):
        cloudpickle.register_pickle_by_value(module)
    builder = SparkSession.builder.master(f"local[{MOST_LEAVES}]")
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    spark = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def cpu_of_all() -> float:
    """The seconds of processor time of this process and of all that it started, also of those that ended."""
    ticks, children, mine = {}, {}, os.getpid()
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            fields = Path(f"/proc/{int(entry)}/stat").read_text().rpartition(")")[2].split()
            ticks[int(entry)] = sum(map(int, fields[11:15]))
            children.setdefault(int(fields[1]), []).append(int(entry))
    total, todo = 0, [mine]
    while todo:
        each = todo.pop()
        total += ticks.get(each, 0)
        todo += children.get(each, [])
    return total / os.sysconf("SC_CLK_TCK")


def taken(work: Callable[[], object]) -> Taken:
    cpu, wall = cpu_of_all(), time.perf_counter()
    work()
    return Taken(time.perf_counter() - wall, cpu_of_all() - cpu)


def medians(rounds: int, works: dict[Any, Callable[[], object]]) -> dict[Any, Taken]:
    """What each takes, in the median of so many rounds; they take turns."""
    found: dict[Any, list[Taken]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(taken(work))
    return {name: Taken(*map(statistics.median, zip(*some, strict=True))) for name, some in found.items()}


def on_spark(plan: tight.Plan, folder: str) -> Callable[[], DataFrame]:
    files = {stream.name: f"{folder}/{stream.name}.parquet" for stream in plan.streams}
    return lambda: BoundedRun(plan, files, session()).outputs()


def collected(by_hand: Callable[[SparkSession, str], dict[str, DataFrame]], folder: str) -> None:
    """The job by hand, with its outputs on the driver, as those of a plan are."""
    for frame in by_hand(session(), folder).values():
        frame.toArrow()


def as_meant(program: tight.ForkJoin, streams: Sequence[tight.InputStream], folder: str) -> list[tight.Event]:
    """The program's own sequential meaning: events made from the files, in their order, one update after the other."""
    tables = []
    for stream in streams:
        table = pq.read_table(f"{folder}/{stream.name}.parquet")
        kind = next(iter(stream.rates)).kind
        ticks = table["time"].to_numpy()
        tables.append((kind, program.rank(kind), ticks, [table[name].to_numpy() for name in kind.names]))
    emitted: list[tight.Event] = []

    def in_order() -> Iterator[tight.Event]:
        step, last = 100_000 // len(tables), max(int(ticks[-1]) for _, _, ticks, _ in tables if len(ticks))
        for start in range(0, last + 1, step):
            events: list[tight.Event] = []
            keys = []
            for kind, rank, ticks, columns in tables:
                low, high = ticks.searchsorted([start, start + step])
                events.extend(trusted_events(kind, [column[low:high].tolist() for column in columns]))
                keys.append(ticks[low:high] * len(tables) + rank)
            yield from map(events.__getitem__, np.argsort(np.concatenate(keys), kind="stable").tolist())

    program.continued(program.init(), in_order(), emitted.append)
    return emitted


def per_event(large: Taken, small: Taken, events: int) -> float:
    """Microseconds of the clock for each event, without the fixed cost."""
    return max(large.wall - small.wall, 1e-9) / (events - FEW) * 1e6


@contextlib.contextmanager
def folders(module: Any, events: int, between: int = BETWEEN, streams: int = STREAMS) -> Iterator[tuple[str, str]]:
    """A folder with a large input, and one with a nearly empty one."""
    with tempfile.TemporaryDirectory() as large, tempfile.TemporaryDirectory() as small:
        for folder, count in ((large, events), (small, FEW)):
            module.make(folder, streams=streams, events=count, every=max(between // streams, 1))
        yield large, small


def warm_up() -> None:
    """Let Spark start its Python workers and compile what it runs often."""
    with folders(event_windows, FEW) as (folder, _):
        for workers in (1, 2, 4, 4, 2, 1):
            streams = event_windows.streams(STREAMS, BETWEEN // STREAMS)
            on_spark(tight.plan(event_windows.EventWindows(), streams, workers=workers), folder)()


def load() -> str:
    return f"[load {os.getloadavg()[0]:.1f}]"


# -- what the machine allows -------------------------------------------------------------------------------------------

LOOP = """
import importlib, sys, time
sys.path.insert(0, sys.argv[1])
loop = getattr(importlib.import_module(sys.argv[2]), sys.argv[3])
print("ready", flush=True)
for line in sys.stdin:
    started = time.perf_counter()
    loop(sys.argv[4])
    print(time.perf_counter() - started, flush=True)
"""


def allowed_by_machine(loop: Callable[[str], Any], folder: str, rounds: int) -> float:
    """How much faster two processes that know nothing of each other run this loop than one: no plan can do better.

    It differs from loop to loop: what two cores share, such as caches, is worth more to some than to others.
    """
    called = [str(EXAMPLES), loop.__module__, loop.__name__, folder]
    both = [
        subprocess.Popen([sys.executable, "-c", LOOP, *called], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    for each in both:
        each.stdout.readline()

    def together(some: list[Any]) -> float:
        for each in some:
            each.stdin.write(b"go\n")
            each.stdin.flush()
        return max(float(each.stdout.readline()) for each in some)

    found = [2 * together(both[:1]) / together(both) for _ in range(rounds)]
    for each in both:
        each.stdin.close()
        each.wait()
        each.stdout.close()
    return statistics.median(found)


# -- the applications --------------------------------------------------------------------------------------------------


def show_applications(rounds: int, factor: int) -> None:
    print(f"Applications, one synchronisation per {BETWEEN:,} events: microseconds per event, without the fixed cost")
    head = f"{'':15}{'events':>10}{'loop':>8}{'meant':>8}{'1':>8}{'2':>8}{'4':>8}{'by hand':>9} |"
    print(f"{head}{'2 to 1':>8}{'4 to 1':>8}{'1 / loop':>10}{'1 / meant':>11}{'hand / 2':>10}{'machine':>9}")
    fixed: dict[Any, list[Taken]] = {}
    whole = []
    for name, module, program, sequential, by_hand, count in applications():
        events = count * factor
        with folders(module, events) as (large, small):
            streams = module.streams(STREAMS, BETWEEN // STREAMS)
            plans = {workers: tight.plan(program, streams, workers=workers) for workers in (1, 2, 4)}
            expected = sum(map(len, sequential(small).values()))
            for workers, plan in plans.items():
                came = on_spark(plan, small)().count()
                if came != expected:
                    raise SystemExit(f"{name}, {workers} workers: {came} outputs instead of {expected}")
            works: dict[Any, Callable[[], object]] = {}
            for folder in (small, large):
                is_large = folder is large
                for workers, plan in plans.items():
                    works[workers, is_large] = on_spark(plan, folder)
                works["loop", is_large] = partial(sequential, folder)
                works["meant", is_large] = partial(as_meant, program, streams, folder)
                if by_hand is not None:
                    works["by hand", is_large] = partial(collected, by_hand, folder)
            found = medians(rounds, works)
            machine = allowed_by_machine(sequential, large, rounds)
        cost = {who: per_event(found[who, True], found[who, False], events) for who, is_large in found if is_large}
        for who in cost:
            fixed.setdefault(who, []).append(found[who, False])
        hand = f"{cost['by hand']:9.2f}" if by_hand else f"{'-':>9}"
        line = "".join(f"{cost[who]:8.3f}" for who in ("loop", "meant", 1, 2, 4))
        ratios = f"{cost[1] / cost[2]:8.2f}{cost[1] / cost[4]:8.2f}{cost[1] / cost['loop']:10.2f}"
        ratios += f"{cost[1] / cost['meant']:11.2f}" + (
            f"{cost['by hand'] / cost[2]:10.1f}" if by_hand else f"{'-':>10}"
        )
        print(f"{name:15}{events:10,}{line}{hand} |{ratios}{machine:9.2f}  {load()}", flush=True)
        whole.append((name, events, {who: found[who, True] for who in cost}))
    print(f"\n{'fixed cost of a job':30}{'wall, s':>9}{'CPU, s':>9}   (median of the applications, {FEW:,} events)")
    for who, some in fixed.items():
        wall, cpu = map(statistics.median, zip(*some, strict=True))
        print(f"  {who if isinstance(who, str) else f'{who} workers':28}{wall:9.3f}{cpu:9.3f}")
    print(f"\n{'whole jobs, events/ms':24}{'events':>10}" + "".join(f"{who:>12}" for who in ORDER))
    for name, events, each in whole:
        cells = "".join(f"{events / each[w].wall / 1000:12,.0f}" if w in each else f"{'-':>12}" for w in ORDER)
        print(f"  {name:22}{events:10,}{cells}")
    print(f"\n{'whole jobs, CPU seconds':24}{'events':>10}" + "".join(f"{who:>12}" for who in ORDER))
    for name, events, each in whole:
        cells = "".join(f"{each[w].cpu:12.2f}" if w in each else f"{'-':>12}" for w in ORDER)
        print(f"  {name:22}{events:10,}{cells}")


ORDER = ("loop", "meant", 1, 2, 4, "by hand")


# -- from one worker to two --------------------------------------------------------------------------------------------


def show_scaling(rounds: int) -> None:
    """One worker, two workers, one loop and two loops, each right after the other, as this machine's speed changes."""
    events = 1_600_000
    print(
        f"\nFrom one worker to two, {events:,} events, one synchronisation per {BETWEEN:,}: medians of {rounds} rounds"
    )
    print(f"{'':15}{'2 to 1':>8}{'all rounds':>40}{'machine':>9}{'of it':>8}")
    for name, module, program, sequential, _, count in applications():
        if count != LOOKUPS or name == "SmartHome":  # whose two workers are not balanced
            continue
        with folders(module, events) as (large, small):
            streams = module.streams(STREAMS, BETWEEN // STREAMS)
            one, two = (tight.plan(program, streams, workers=workers) for workers in (1, 2))
            fixed = medians(3, {plan: on_spark(plan, small) for plan in (one, two)})
            found = []
            for _ in range(rounds):
                cost = [per_event(taken(on_spark(plan, large)), fixed[plan], events) for plan in (one, two)]
                found.append((cost[0] / cost[1], allowed_by_machine(sequential, large, 1)))
        ratio, machine = (statistics.median(each) for each in zip(*found, strict=True))
        each = " ".join(f"{ratio:.2f}" for ratio, _ in sorted(found))
        print(f"{name:15}{ratio:8.2f}{each:>40}{machine:9.2f}{ratio / machine:8.0%}  {load()}", flush=True)


# -- one worker by processor time --------------------------------------------------------------------------------------


def leaf_alone(plan: tight.Plan, folder: str) -> None:
    """What the task of the one worker of a plan does, in this process."""
    files = {stream.name: Files.at(stream.name, f"{folder}/{stream.name}.parquet") for stream in plan.streams}
    schemas = Given(plan).schemas
    task = LeafTask(plan, ("", 0), b"", files, frozenset(), schemas)
    leaf = Leaf(plan, plan.root, Outputs(schemas))
    for _ in leaf.run(plan.program.init(), task._feeds(0, iter(())), (), lambda state: state):
        pass


def show_processor_time(rounds: int) -> None:
    """As wall time cannot be trusted on a busy machine: a leaf in this process, without Spark, by processor time."""
    print("\nA leaf alone, in this process: microseconds of processor time per event, which other load changes less")
    print(f"{'':15}{'loop':>8}{'meant':>8}{'1 leaf':>8}{'1 / loop':>10}{'1 / meant':>11}")
    gc.collect()
    gc.freeze()  # as Spark's tasks do
    for name, module, program, sequential, _, events in applications():
        with folders(module, events) as (folder, _):
            streams = module.streams(STREAMS, BETWEEN // STREAMS)
            works: dict[str, Callable[[], object]] = {
                "loop": partial(sequential, folder),
                "meant": partial(as_meant, program, streams, folder),
                "leaf": partial(leaf_alone, tight.plan(program, streams, workers=1), folder),
            }
            found: dict[str, list[float]] = {who: [] for who in works}
            for _ in range(rounds):
                for who, work in works.items():
                    started = time.process_time()
                    work()
                    found[who].append(time.process_time() - started)
        cost = {who: statistics.median(some) / events * 1e6 for who, some in found.items()}
        ratios = f"{cost['leaf'] / cost['loop']:10.2f}{cost['leaf'] / cost['meant']:11.2f}"
        print(f"{name:15}{''.join(f'{each:8.3f}' for each in cost.values())}{ratios}  {load()}", flush=True)


# -- blocks ------------------------------------------------------------------------------------------------------------


def bare_windows(folder: str) -> list[int]:
    """Event windows with NumPy alone."""
    values, barriers, found, cuts = _columns(folder, "values_*", "barriers")
    for window in range(len(barriers)):
        total = 0
        for (_, value), at in zip(values, cuts, strict=True):
            total += int(value[at[window] : at[window + 1]].sum())
        found.append(total)
    return found


def bare_fraud(folder: str) -> list[Any]:
    """Fraud detection with NumPy alone."""
    values, rules, found, cuts = _columns(folder, "transactions_*", "rules")
    model = 0
    for window in range(len(rules)):
        total = 0
        for columns, at in zip(values, cuts, strict=True):
            time_, account, cents = (column[at[window] : at[window + 1]] for column in columns)
            agrees = cents % 1000 == model % 1000
            if agrees.any():
                found.append((time_[agrees], account[agrees], cents[agrees]))
            total += int(cents.sum())
        model = total
    return found


def _columns(folder: str, fast: str, slow: str) -> tuple[list[Any], Any, list[Any], list[Any]]:
    tables = [pq.read_table(path) for path in sorted(Path(folder).glob(f"{fast}.parquet"))]
    values = [[column.to_numpy() for column in table.columns] for table in tables]
    ends = pq.read_table(f"{folder}/{slow}.parquet")["time"].to_numpy()
    return values, ends, [], [np.concatenate([[0], each[0].searchsorted(ends, side="right")]) for each in values]


def show_vectorised(rounds: int, factor: int) -> None:
    events = 8_000_000 * factor
    print(f"\nBlocks against a bare loop of NumPy that reads the same files: {events:,} events, nanoseconds per event")
    print(f"{'':15}{'bare':>8}{'1':>8}{'2':>8}{'1 / bare':>10}{'2 / bare':>10}")
    for name, module, program, bare in (
        ("EventWindows", event_windows, event_windows.EventWindows(), bare_windows),
        ("Fraud", fraud, fraud.Fraud(), bare_fraud),
    ):
        streams = module.streams(STREAMS, BETWEEN // STREAMS)
        plans = {workers: tight.plan(program, streams, workers=workers) for workers in (1, 2)}
        with folders(module, events) as (large, small):
            works: dict[Any, Callable[[], object]] = {}
            for is_large, folder in ((False, small), (True, large)):
                works["bare", is_large] = partial(bare, folder)
                works |= {(workers, is_large): on_spark(plan, folder) for workers, plan in plans.items()}
            found = medians(rounds + 2, works)
        cost = {who: 1000 * per_event(found[who, True], found[who, False], events) for who in ("bare", 1, 2)}
        line = "".join(f"{each:8.1f}" for each in cost.values())
        print(f"{name:15}{line}{cost[1] / cost['bare']:10.2f}{cost[2] / cost['bare']:10.2f}  {load()}", flush=True)


# -- synchronisations --------------------------------------------------------------------------------------------------

AT: list[tuple[float, float]] = []
"""When a barrier was handled: by the clock, and by the processor time of the driver."""


class Timed(event_windows.EventWindows):
    """Event windows that note when a barrier is handled, on the driver."""

    def update(self, total: int, event: Any, emit: Any) -> int:
        if event.kind is event_windows.Barrier:
            AT.append((time.perf_counter(), time.process_time()))
        return super().update(total, event, emit)


class Cost(NamedTuple):
    """Of one synchronisation: seconds on the clock, of them CPU time of the driver; and the whole distribution."""

    wall: float
    driver: float
    between: list[float]


def cost_of_synchronisation(leaves: int, count: int) -> Cost:
    """A barrier after every event of each leaf: nothing else is done."""
    streams = event_windows.streams(leaves, 1)
    plan = tight.plan(Timed(), streams, workers=leaves)
    with tempfile.TemporaryDirectory() as folder:
        event_windows.make(folder, streams=leaves, events=leaves * count, every=1)
        run = on_spark(plan, folder)
        AT.clear()
        run()
    between = [later - earlier for (earlier, _), (later, _) in itertools.pairwise(AT)]
    (started, cpu_before), (ended, cpu_after) = AT[0], AT[-1]
    return Cost((ended - started) / len(between), (cpu_after - cpu_before) / len(between), sorted(between))


def show_synchronisations(count: int) -> None:
    print(f"\nSynchronisations, one after each event: {count:,} in a row, microseconds each, from one to the next")
    print("(the median of seven runs)")
    print(f"{'leaves':>8}{'per second':>12}{'mean':>8}{'median':>8}{'95 %':>8}{'99 %':>8}{'most':>9}{'driver CPU':>12}")
    for leaves in (2, 4, MOST_LEAVES):
        wall, driver, between = sorted(cost_of_synchronisation(leaves, count) for _ in range(7))[3]
        some = [between[int(len(between) * part)] * 1e6 for part in (0.5, 0.95, 0.99)] + [between[-1] * 1e6]
        cells = "".join(f"{each:8.0f}" for each in some[:3])
        print(
            f"{leaves:8}{1 / wall:12,.0f}{wall * 1e6:8.0f}{cells}{some[3]:9,.0f}{driver * 1e6:12.0f}  {load()}",
            flush=True,
        )


# -- state size and frequency ------------------------------------------------------------------------------------------


class Sized(event_windows.Revenue):
    """Revenue with a state of a certain size, which goes up and down at each barrier."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size = size

    def init(self) -> Any:
        return 0, b"x" * self.size

    def update(self, state: Any, event: Any, emit: Any) -> Any:
        total, rest = state
        return super().update(total, event, emit), rest

    def fork(self, state: Any, left: tight.TagSet, right: tight.TagSet) -> Any:
        return state, (0, state[1])

    def join(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], right[1]


SIZES = (10, 1_000, 100_000, 1_000_000, 10_000_000)
FREQUENCIES = (100, 1_000, 10_000, 100_000, 1_000_000)


def show_varied(rounds: int) -> dict[int, list[float]]:
    """How much faster two workers are than one, by the size of the state and the events between synchronisations."""
    print("\nTwo workers against one, by the size of the state and the events from one synchronisation to the next")
    print(f"{'state, bytes':>14}" + "".join(f"{each:>12,}" for each in FREQUENCIES))
    ratios: dict[int, list[float]] = {size: [] for size in SIZES}
    for between in FREQUENCIES:
        streams = event_windows.streams(2, between // 2)
        with folders(event_windows, max(400_000, between), between, 2) as (large, small):
            plan = tight.plan(Sized(10), streams, workers=1)
            one = medians(rounds, {folder: on_spark(plan, folder) for folder in (small, large)})
            single = per_event(one[large], one[small], max(400_000, between))
        for size in SIZES:
            plan = tight.plan(Sized(size), streams, workers=2)
            # So many that they take about a second: a synchronisation takes a time, and each byte goes four times.
            most = int(1.0 / (0.0002 + 4e-9 * size))
            events = max(between, min(400_000, between * most))
            with folders(event_windows, events, between, 2) as (large, small):
                empty, found = _few_synchronisations(plan, small), on_spark(plan, large)
                two = medians(rounds, {"small": empty, "large": found})
            ratios[size].append(single / per_event(two["large"], two["small"], events))
    for size, line in ratios.items():
        print(f"{size:14,}" + "".join(f"{each:12.2f}" for each in line), load(), flush=True)
    return ratios


def _few_synchronisations(plan: tight.Plan, folder: str) -> Callable[[], DataFrame]:
    """The fixed cost of a job, with the first states of this size but nearly without barriers."""
    event_windows.make(folder, streams=2, events=FEW, every=FEW)
    return on_spark(plan, folder)


def chart(ratios: dict[int, list[float]]) -> str:
    """The ratios as a picture."""
    wide, high, left, top, bottom = 720, 400, 60, 40, 60
    colours = ("#2a78d6", "#eb6834", "#1baa7a", "#b0801a", "#8a5cd6")
    most = 2.0

    def at(place: int, ratio: float) -> tuple[float, float]:
        x = left + place * (wide - left - 150) / (len(FREQUENCIES) - 1)
        return x, top + (most - min(ratio, most)) / most * (high - top - bottom)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" '
        'aria-label="How much faster two workers are than one">',
        "<style>text{font:13px sans-serif;fill:#333}.line{stroke:#8888;fill:none}.one{stroke:#888;stroke-dasharray:4}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>",
        f'<text x="{left}" y="20">two workers against one: how much faster (dashed: as fast as one)</text>',
    ]
    for step in range(5):
        ratio = step / 2
        x, y = at(0, ratio)
        end = at(len(FREQUENCIES) - 1, ratio)[0]
        parts.append(f'<path class="line{" one" if ratio == 1 else ""}" d="M{x:.0f} {y:.1f}H{end:.0f}"/>')
        parts.append(f'<text x="{x - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">{ratio:g}x</text>')
    for place, between in enumerate(FREQUENCIES):
        x, y = at(place, 0)
        parts.append(f'<text x="{x:.0f}" y="{y + 20:.0f}" text-anchor="middle">{between:,}</text>')
    middle = (at(0, 0)[0] + at(len(FREQUENCIES) - 1, 0)[0]) / 2
    parts.append(
        f'<text x="{middle:.0f}" y="{high - 12}" text-anchor="middle">events between two synchronisations</text>'
    )
    labels: list[float] = []
    for (size, line), colour in zip(ratios.items(), colours, strict=True):
        points = [at(place, ratio) for place, ratio in enumerate(line)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points]
        label = points[-1][1]
        while any(abs(label - other) < 16 for other in labels):  # none on top of another
            label += 4
        labels.append(label)
        parts.append(
            f'<text x="{points[-1][0] + 12:.0f}" y="{label + 4:.1f}" style="fill:{colour}">{told(size)}</text>'
        )
    return "\n".join([*parts, "</svg>\n"])


def told(size: int) -> str:
    for unit, name in ((1_000_000, "MB"), (1_000, "kB")):
        if size >= unit:
            return f"state of {size // unit} {name}"
    return f"state of {size} bytes"


# -- many workers ------------------------------------------------------------------------------------------------------


class Costs(NamedTuple):
    """Seconds. What the machine does for an event and for a synchronisation."""

    event: float
    """An event at a leaf."""
    latency: float
    """A synchronisation, besides what the driver does for each leaf: the way there and back, and the event above."""
    up: float
    """What the driver does for a leaf's state that came: receive, unpickle, join."""
    down: float
    """What the driver does for a leaf's new state: fork, pickle, send."""


def calculated(costs: Costs, leaves: int, each: float, cores: float = math.inf) -> float:
    """Events a second, if each leaf has so many between synchronisations. The driver's work is not overlapped."""
    work = each * costs.event * max(1.0, leaves / cores)
    wait = 0.0 if leaves == 1 else costs.latency + leaves * (costs.up + costs.down)
    return leaves * each / (work + wait)


def calculated_spread(costs: Costs, leaves: int, each: float) -> float:
    """The same, if inner workers run in tasks of their own: two messages up and two down at each of log n levels."""
    levels = math.ceil(math.log2(leaves)) if leaves > 1 else 0
    return leaves * each / (each * costs.event + levels * (costs.latency + 2 * (costs.up + costs.down)))


def simulated(costs: Costs, leaves: int, each: float, *, rounds: int = 200, seed: int = 0, cores: int = 0) -> float:
    """Events a second in a simulation: leaves of uneven speed, and a driver that does one thing after the other.

    The driver takes states from left to right, as ours does, so a leaf on the left may be at work again while one on
    the right still waits for its state. With `cores`, leaves share them.
    """
    chance = random.Random(seed)
    starts = [0.0] * leaves
    driver = 0.0
    for _ in range(rounds):
        needed = [each * costs.event * chance.lognormvariate(0, 0.05) for _ in range(leaves)]
        done = _on_cores(starts, needed, cores) if cores else [a + b for a, b in zip(starts, needed, strict=True)]
        if leaves == 1:
            driver, starts = done[0], done
            continue
        for arrived in done:
            driver = max(driver, arrived + costs.latency / 2) + costs.up
        for leaf in range(leaves):
            driver += costs.down
            starts[leaf] = driver + costs.latency / 2
    return rounds * leaves * each / driver


def _on_cores(starts: list[float], needed: list[float], cores: int) -> list[float]:
    free = [0.0] * cores
    done = [0.0] * len(starts)
    for leaf in sorted(range(len(starts)), key=starts.__getitem__):
        core = heapq.heappop(free)
        done[leaf] = max(core, starts[leaf]) + needed[leaf]
        heapq.heappush(free, done[leaf])
    return done


def measured_costs(rounds: int, count: int) -> tuple[Costs, dict[int, float]]:
    """The costs on this machine, and what 1, 2 and 4 workers really do, in events a second."""
    program, events = event_windows.Revenue(), 400_000
    speeds = {}
    with folders(event_windows, events) as (large, small):
        streams = event_windows.streams(STREAMS, BETWEEN // STREAMS)
        works = {}
        for workers in (1, 2, 4):
            plan = tight.plan(program, streams, workers=workers)
            works |= {(workers, folder): on_spark(plan, folder) for folder in (small, large)}
        found = medians(rounds, works)
        for workers in (1, 2, 4):
            speeds[workers] = 1e6 / per_event(found[workers, large], found[workers, small], events)
    few, many = cost_of_synchronisation(2, count), cost_of_synchronisation(MOST_LEAVES, count)
    each = max(many.driver - few.driver, 1e-9) / (MOST_LEAVES - 2)
    latency = max(few.between[len(few.between) // 2] - 2 * each, 1e-6)
    return Costs(1 / speeds[1], latency, each / 2, each / 2), speeds


def show_model(rounds: int, count: int) -> None:
    costs, speeds = measured_costs(rounds, count)
    micro = Costs(*(each * 1e6 for each in costs))
    print("\nMany workers, from measured costs (microseconds):")
    print(f"  an event {micro.event:.2f}, a leaf at the driver {micro.up + micro.down:.1f}, the rest of a", end=" ")
    print(f"synchronisation {micro.latency:.0f}  {load()}")
    print(f"\n  {'on ' + str(CORES) + ' cores, events/ms':28}{'measured':>10}{'calculated':>12}{'simulated':>11}")
    for leaves in (1, 2, 4):
        each = BETWEEN / leaves
        there = calculated(costs, leaves, each, CORES), simulated(costs, leaves, each, cores=CORES)
        cells = f"{there[0] / 1000:12,.0f}{there[1] / 1000:11,.0f}"
        print(f"  {f'{leaves} workers':28}{speeds[leaves] / 1000:10,.0f}{cells}")
    print(f"\n  {'a core for each, events/ms':28}{'calculated':>10}{'simulated':>12}{'times one':>11}{'spread':>10}")
    for title, in_all in (("each leaf", False), ("all leaves", True)):
        for between in (BETWEEN, 100 * BETWEEN):
            print(f"  {between:,} events of {title} from one to the next")
            for leaves in (1, 20, 100, 1_000):
                each = between / leaves if in_all else between
                one, two = calculated(costs, leaves, each), simulated(costs, leaves, each)
                cells = f"{one / 1000:10,.0f}{two / 1000:12,.0f}{two * costs.event:11.1f}"
                print(f"    {f'{leaves:,} workers':26}{cells}{calculated_spread(costs, leaves, each) / 1000:10,.0f}")
    each = costs.up + costs.down
    print(
        f"  the driver does {1 / each:,.0f} states a second: {1 / (20 * each):,.0f} synchronisations of 20 workers,",
        end="",
    )
    print(f" {1 / (1000 * each):,.0f} of 1,000")
    print(
        f"  with {BETWEEN:,} events in all, {math.sqrt(BETWEEN * costs.event / each):.0f} workers are the most that pay"
    )


def main() -> None:
    chosen = [each for each in sys.argv[1:] if not each.startswith("-")]
    is_full = "--full" in sys.argv
    rounds, factor, count = (7, 4, 50_000) if is_full else (3, 1, 10_000)
    warm_up()
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f} at the start")
    sections: dict[str, Callable[[], object]] = {
        "synchronisations": lambda: show_synchronisations(count),
        "leaves": lambda: show_processor_time(rounds),
        "vectorised": lambda: show_vectorised(rounds, factor),
        "applications": lambda: show_applications(rounds, factor),
        "scaling": lambda: show_scaling(rounds + 4),
        "varied": lambda: CHART.write_text(chart(show_varied(rounds - 1))),
        "model": lambda: show_model(rounds, count),
    }
    for name, show in sections.items():
        if not chosen or name in chosen:
            show()


if __name__ == "__main__":
    main()
