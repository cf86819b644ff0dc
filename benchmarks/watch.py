"""What does `watch` cost? Blocks, single events, the first answer, long streams, Spark; each beside what else there is.

    pip install -e ".[bench]"          polars, reelay and rtamt, to stand beside; without them their columns are empty
    python benchmarks/watch.py [section] ...

Sections: blocks, keyed, events, first, length, spark, stream; without any, all. Figures are events per second of
processor time, the best of some rounds that take turns, so that other load on the machine counts less.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

import streamtight as tight
from streamtight.method.watch.blocks import Blocks, KeyedBlocks
from streamtight.properties.code import as_values

q = tight.query
cur = q.cur
EVENTS = 4_000_000
ROUNDS = 5


def optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def best(works: dict[str, Callable[[], object] | None], rounds: int = ROUNDS) -> dict[str, float]:
    """Seconds of processor time that each takes at best; they take turns."""
    found: dict[str, float] = {}
    for _ in range(rounds):
        for name, work in works.items():
            if work is None:
                continue
            started = time.process_time()
            work()
            found[name] = min(found.get(name, 1e9), time.process_time() - started)
    return found


def millions(events: int, seconds: float | None) -> str:
    return f"{'-':>10}" if seconds is None else f"{events / seconds / 1e6:10.1f}"


def load() -> str:
    return f"[load {os.getloadavg()[0]:.1f}]"


# -- queries that several of them can state ----------------------------------------------------------------------------

P, Q, X = cur.p, cur.q, cur.x
ONCE = q.once(q.holds(Q))
HISTORICALLY = q.historically(q.holds(P, before=True))
SINCE = q.since(q.holds(P), q.holds(Q))
ONCE_100 = q.once_within(q.holds(Q), 101)
HISTORICALLY_100 = q.historically_within(q.holds(P, before=True), 101)
SINCE_100 = q.since_within(q.holds(P), q.holds(Q), 101)
NESTED = q.historically(
    q.implies(
        q.once_within(q.holds(Q), 11) & ~q.holds(X > 9.5),
        q.since_within(q.holds(P), q.holds(Q), 51) | q.once_within(q.holds(X > 5) & q.holds(P), 21),
    )
)
TOTAL = q.total(cur.x)
SINCE_MARKER = q.per("m", q.total(cur.x, "v"))
DAY_MEANS = q.top("m", q.mean(cur.x, "v"))
LAST_FIVE = q.historically(q.mean_of_last(cur.x, 5) > -1)

PROPERTIES: dict[str, tuple[Any, str | None, str | None]] = {
    "once": (ONCE, "once{q}", "once(q >= 1)"),
    "historically": (HISTORICALLY, "historically{p}", "historically(p >= 1)"),
    "since": (SINCE, "{p} since {q}", "(p >= 1) since (q >= 1)"),
    "once[0:100]": (ONCE_100, "once[0:100]{q}", "once[0:100](q >= 1)"),
    "historically[0:100]": (HISTORICALLY_100, "historically[0:100]{p}", "historically[0:100](p >= 1)"),
    "since[0:100]": (SINCE_100, "{p} since[0:100] {q}", "(p >= 1) since[0:100] (q >= 1)"),
    "nested, 10 operators": (
        NESTED,
        "historically((once[0:10]{q} and not {x > 9.5}) -> (({p} since[0:50] {q}) or once[0:20]({x > 5} and {p})))",
        "historically((once[0:10](q >= 1) and not(x > 9.5)) -> "
        "(((p >= 1) since[0:50] (q >= 1)) or once[0:20]((x > 5) and (p >= 1))))",
    ),
}


def signals(count: int, seed: int = 0) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    return {"p": rng.random(count) < 0.999, "q": rng.random(count) < 0.01, "x": rng.random(count) * 9}


# -- blocks ------------------------------------------------------------------------------------------------------------


def numpy_once(s: dict[str, Any]) -> Any:
    return np.logical_or.accumulate(s["q"])


def numpy_historically(s: dict[str, Any]) -> Any:
    return np.logical_and.accumulate(s["p"])


def numpy_since(s: dict[str, Any]) -> Any:
    places = np.arange(len(s["p"]))
    return np.maximum.accumulate(np.where(s["q"], places, -1)) > np.maximum.accumulate(
        np.where(~s["p"] & ~s["q"], places, -1)
    )


def numpy_total(s: dict[str, Any]) -> Any:
    return np.cumsum(s["x"])


BY_NUMPY = {"once": numpy_once, "historically": numpy_historically, "since": numpy_since, "total": numpy_total}


def show_blocks() -> None:
    s = signals(EVENTS)
    markers = (np.random.default_rng(1).random(EVENTS) > 0.001).astype(np.uint8)  # 0 is m, 1 is v
    print(f"\nBlocks of {EVENTS:,} events, millions of events a second of processor time {load()}")
    print(f"{'':24}{'compiled':>10}{'Python':>10}{'NumPy':>10}{'registers':>11}{'operations':>11}{'controls':>9}")
    rows: dict[str, tuple[Any, Any]] = {name: (each[0], None) for name, each in PROPERTIES.items()}
    rows["total"] = (TOTAL, None)
    rows["total since marker"] = (SINCE_MARKER, markers)
    rows["highest day mean"] = (DAY_MEANS, markers)
    rows["mean of 5 > -1 always"] = (LAST_FIVE, None)
    for name, (query, tags) in rows.items():
        compiled = query.compile(("m", "v") if tags is not None else None)
        columns = {field: s[field] for field in compiled.fields}
        blocks = Blocks(compiled, few=0)
        few = 200_000
        listed = [column[:few].tolist() for column in columns.values()]
        numbers = ([0] * few) if tags is None else tags[:few].tolist()
        expected = as_values(*compiled.block(numbers, listed, compiled.start)[:2])
        first = Blocks(compiled, few=0).run(
            None if tags is None else tags[:few], {k: v[:few] for k, v in columns.items()}
        )
        if first.listed() != expected:
            raise SystemExit(f"{name}: compiled and Python differ")
        by_hand = BY_NUMPY.get(name)
        if by_hand is not None and not np.array_equal(by_hand(s)[:few], np.array(expected)):
            raise SystemExit(f"{name}: NumPy differs")
        found = best(
            {
                "compiled": lambda b=blocks, t=tags, c=columns: b.run(t, c),
                "numpy": None if by_hand is None else (lambda f=by_hand: f(s)),
            }
        )
        python = best({"python": lambda c=compiled, n=numbers, v=listed: c.block(n, v, c.start)}, 2)
        bound = compiled.bound()
        cells = f"{millions(EVENTS, found['compiled'])}{millions(few, python['python'])}"
        cells += f"{millions(EVENTS, found.get('numpy'))}"
        print(f"{name:24}{cells}{bound.registers:11}{bound.operations:11}{bound.controls:9}", flush=True)


def show_keyed() -> None:
    polars = optional("polars")
    print(f"\nTotal since the last marker, for each key, millions of events a second of processor time {load()}")
    print(f"{'keys':>10}{'compiled':>10}{'numba':>10}{'NumPy':>10}{'pandas':>10}{'polars':>10}")
    rng = np.random.default_rng(2)
    tags = (rng.random(EVENTS) > 0.01).astype(np.uint8)
    values = rng.random(EVENTS)
    compiled = SINCE_MARKER.compile(("m", "v"))
    for count in (1, 1_000, 100_000, 1_000_000):
        keys = rng.integers(0, count, EVENTS)
        blocks = KeyedBlocks(compiled, few=0)
        frame = pd.DataFrame({"k": keys, "m": tags == 0, "x": np.where(tags == 0, 0.0, values)})
        lazy = None if polars is None else polars.DataFrame({"k": keys, "m": tags == 0, "x": frame["x"].to_numpy()})
        loop = by_hand_loop()
        answers = KeyedBlocks(compiled, few=0).run(tags, {"x": values}, keys=keys).values
        for name, other in (("NumPy", numpy_keyed(keys, tags, values)), ("pandas", pandas_keyed(frame).to_numpy())):
            if not np.allclose(answers, other):
                raise SystemExit(f"{name} differs")
        found = best(
            {
                "compiled": lambda b=blocks, k=keys: b.run(tags, {"x": values}, keys=k),
                "numba": lambda k=keys, n=count, run=loop: run(tags, k, values, np.zeros(n), np.empty(EVENTS)),
                "numpy": lambda k=keys: numpy_keyed(k, tags, values),
                "pandas": lambda f=frame: pandas_keyed(f),
                "polars": None if lazy is None else (lambda f=lazy: polars_keyed(polars, f)),
            },
            3,
        )
        cells = "".join(
            millions(EVENTS, found.get(each)) for each in ("compiled", "numba", "numpy", "pandas", "polars")
        )
        print(f"{count:10,}{cells}", flush=True)


def by_hand_loop() -> Callable[..., Any]:
    from numba import njit

    @njit
    def loop(tags, keys, values, sums, out):  # type: ignore[no-untyped-def]
        for i in range(len(tags)):
            k = keys[i]
            sums[k] = 0.0 if tags[i] == 0 else sums[k] + values[i]
            out[i] = sums[k]
        return out

    return loop


def numpy_keyed(keys: Any, tags: Any, values: Any) -> Any:
    order = np.argsort(keys, kind="stable")
    sorted_keys, is_marker, x = keys[order], tags[order] == 0, np.where(tags[order] == 0, 0.0, values[order])
    begins = is_marker | np.r_[True, sorted_keys[1:] != sorted_keys[:-1]]
    sums = np.cumsum(x)
    at = np.maximum.accumulate(np.where(begins, np.arange(len(x)), 0))
    found = np.empty(len(x))
    found[order] = sums - (sums[at] - x[at])
    return found


def pandas_keyed(frame: Any) -> Any:
    piece = frame.groupby("k")["m"].cumsum()
    return frame.groupby(["k", piece])["x"].cumsum()


def polars_keyed(polars: Any, frame: Any) -> Any:
    piece = polars.col("m").cast(polars.Int64).cum_sum().over("k")
    return frame.with_columns(piece=piece).select(polars.col("x").cum_sum().over(["k", "piece"]))


# -- one event a call --------------------------------------------------------------------------------------------------


def show_events() -> None:
    reelay, rtamt = optional("reelay"), optional("rtamt")
    count = 200_000
    s = signals(count, 3)
    rows = [dict(zip(s, each, strict=True)) for each in zip(*(column.tolist() for column in s.values()), strict=True)]
    floats = [[(name, float(value)) for name, value in row.items()] for row in rows]
    print(f"\nOne event a call, {count:,} events, thousands a second of processor time {load()}")
    print(f"{'':24}{'ours':>10}{'reelay':>10}{'rtamt':>10}{'ours/reelay':>13}{'ours/rtamt':>12}{'same answers':>14}")
    for name, (query, pattern, formula) in PROPERTIES.items():
        compiled = query.compile()
        tag = compiled.tags[0]
        used = [field for field in compiled.fields if field is not None]
        mine = [{field: row[field] for field in used} for row in rows]
        few = 3_000 if "since[" in name or "nested" in name else 20_000  # rtamt takes long there
        theirs = [[pair for pair in row if pair[0] in used] for row in floats[:few]]

        def ours(c: Any = compiled, t: str = tag, items: Any = mine) -> list[Any]:
            update = c.monitor().update
            return [update(t, item) for item in items]

        def by_reelay(p: Any = pattern, items: Any = mine) -> list[Any]:
            update = reelay.discrete_timed_monitor(pattern=p, semantics="boolean", condense=False).update
            return [update(item)["value"] for item in items]

        def by_rtamt(f: Any = formula, items: Any = theirs, names: Sequence[str] = tuple(used)) -> list[Any]:
            spec = rtamt.StlDiscreteTimeSpecification()
            for each in names:
                spec.declare_var(each, "float")
            spec.spec = f
            spec.parse()
            return [spec.update(number, item) >= 0 for number, item in enumerate(items)]

        answers = ours()
        same = []
        if reelay is not None:
            same.append("reelay" if by_reelay() == answers else "NOT reelay")
        if rtamt is not None:
            same.append("rtamt" if by_rtamt() == answers[:few] else "NOT rtamt")
        found = best(
            {
                "ours": ours,
                "reelay": by_reelay if reelay is not None else None,
                "rtamt": by_rtamt if rtamt is not None else None,
            },
            3,
        )
        rate = {who: (few if who == "rtamt" else count) / seconds / 1e3 for who, seconds in found.items()}
        cells = "".join(f"{rate[who]:10,.0f}" if who in rate else f"{'-':>10}" for who in ("ours", "reelay", "rtamt"))
        ratios = "".join(
            f"{rate['ours'] / rate[who]:{width}.1f}" if who in rate else f"{'-':>{width}}"
            for who, width in (("reelay", 13), ("rtamt", 12))
        )
        print(f"{name:24}{cells}{ratios}  {', '.join(same)}", flush=True)


# -- the first answer --------------------------------------------------------------------------------------------------

FIRST = """
import sys, time
sys.path.insert(0, sys.argv[1])
started = time.perf_counter()
import streamtight as tight
q, cur = tight.query, tight.query.cur
imported = time.perf_counter()
if sys.argv[2] == "simple":
    query = q.per("m", q.total(cur.x, "v"))
else:
    query = q.historically(q.implies(
        q.once_within(q.holds(cur.q), 11) & ~q.holds(cur.x > 9.5),
        q.since_within(q.holds(cur.p), q.holds(cur.q), 51) | q.once_within(q.holds(cur.x > 5) & q.holds(cur.p), 21)))
compiled = query.compile()
built = time.perf_counter()
compiled.monitor().update(compiled.tags[0], {"x": 1.0, "p": True, "q": False})
answered = time.perf_counter()
import numpy as np
from streamtight.method.watch.blocks import Blocks
loaded = time.perf_counter()
n = 100_000
columns = {"x": np.ones(n), "p": np.ones(n, bool), "q": np.zeros(n, bool)}
tags = np.zeros(n, np.uint8) if len(compiled.tags) > 1 else None
few = {f: columns[f][:10_000] for f in compiled.fields}
Blocks(compiled).run(None if tags is None else tags[:10_000], few)
small_block = time.perf_counter()
Blocks(compiled, few=0).run(tags, {f: columns[f] for f in compiled.fields})
compiled_block = time.perf_counter()
print(imported - started, built - imported, answered - built, small_block - loaded, compiled_block - small_block)
"""


def show_first() -> None:
    print(f"\nThe first answer, in a new process, milliseconds on the clock, median of 3 {load()}")
    print(f"{'':34}{'import':>8}{'build':>8}{'event':>8}{'10,000':>9}{'100,000, compiled':>19}")
    for which in ("simple", "nested"):
        with tempfile.TemporaryDirectory() as cache:
            for what in ("nothing kept on disk", "kept on disk"):
                runs = []
                for _ in range(3):
                    folder = tempfile.mkdtemp(dir=cache) if what.startswith("nothing") else cache
                    done = subprocess.run(
                        [sys.executable, "-c", FIRST, "src", which],
                        capture_output=True, text=True, check=True, env={**os.environ, "XDG_CACHE_HOME": folder},
                    )  # fmt: skip
                    runs.append([float(each) * 1000 for each in done.stdout.split()])
                middle = [sorted(each)[1] for each in zip(*runs, strict=True)]
                cells = f"{middle[0]:8.0f}{middle[1]:8.0f}{middle[2]:8.1f}{middle[3]:9.0f}{middle[4]:19.0f}"
                print(f"{f'{which}, {what}':34}{cells}", flush=True)


# -- long streams ------------------------------------------------------------------------------------------------------


def show_length() -> None:
    print(f"\nThe cost of an event by the length of the stream, nanoseconds of processor time {load()}")
    print(f"{'events before':>16}{'one a call':>12}{'in blocks':>12}")
    compiled = NESTED.compile()
    monitor, blocks = compiled.monitor(), Blocks(compiled, few=0)
    some, few = signals(500_000, 4), 100_000
    rows = [dict(zip(some, each, strict=True)) for each in zip(*(c[:few].tolist() for c in some.values()), strict=True)]
    blocks.run(None, some)
    seen = 0
    for until in (0, 1_000_000, 10_000_000, 50_000_000):
        while seen < until:
            blocks.run(None, some)
            seen += len(some["p"])
        for row in rows:
            monitor.update(compiled.tags[0], row)
        one = best({"one": lambda: [monitor.update(compiled.tags[0], row) for row in rows]}, 3)["one"] / few
        block = best({"block": lambda: blocks.run(None, some)}, 3)["block"] / len(some["p"])
        print(f"{until:16,}{one * 1e9:12.0f}{block * 1e9:12.2f}", flush=True)


# -- Spark -------------------------------------------------------------------------------------------------------------


def rows_of(events: int, keys: int) -> Any:
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "key": rng.integers(0, keys, events),
            "t": np.arange(events),
            "kind": np.where(rng.random(events) < 0.01, "m", "v"),
            "x": rng.random(events),
        }
    )


def show_spark() -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    spark = tight.session(spark__sql__codegen__wholeStage="true")
    events, keys = 2_000_000, 1_000
    folder = tempfile.mkdtemp()
    rows_of(events, keys).to_parquet(f"{folder}/in.parquet")
    frame = spark.read.parquet(f"{folder}/in.parquet")

    def watched() -> Any:
        return tight.watch(SINCE_MARKER, frame, key="key", order_by="t", tags="kind")

    def windowed() -> Any:
        by_key = Window.partitionBy("key").orderBy("t").rowsBetween(Window.unboundedPreceding, Window.currentRow)
        is_marker = (sf.col("kind") == "m").cast("int")
        x = sf.when(sf.col("kind") == "m", sf.lit(0.0)).otherwise(sf.col("x"))
        piece = frame.withColumn("piece", sf.sum(is_marker).over(by_key)).withColumn("x", x)
        per_piece = (
            Window.partitionBy("key", "piece").orderBy("t").rowsBetween(Window.unboundedPreceding, Window.currentRow)
        )
        return piece.select("key", "t", sf.sum("x").over(per_piece).alias("value"))

    def done(result: Any) -> float:
        started = time.perf_counter()
        result.write.format("noop").mode("overwrite").save()
        return time.perf_counter() - started

    ours = watched().select("key", "t", "value").toPandas().sort_values("t")["value"].to_numpy()
    theirs = windowed().toPandas().sort_values("t")["value"].to_numpy()
    if not np.allclose(ours, theirs):
        raise SystemExit("watch and window functions differ")
    times: dict[str, list[float]] = {"watch": [], "window functions": []}
    for _ in range(5):
        times["watch"].append(done(watched()))
        times["window functions"].append(done(windowed()))
    print(f"\nSpark, {events:,} rows, {keys:,} keys, total since marker, seconds on the clock, median of 5 {load()}")
    for name, each in times.items():
        print(f"  {name:20}{sorted(each)[2]:8.2f}{events / sorted(each)[2] / 1e3:10,.0f} thousand rows/s")
    print(f"  window functions / watch: {sorted(times['window functions'])[2] / sorted(times['watch'])[2]:.2f}")


def show_stream() -> None:
    """A stream of some micro-batches, against the function with state that one writes by hand for it."""
    from pyspark.sql.streaming.state import GroupStateTimeout

    spark = tight.session()
    folder, events, batches, keys = tempfile.mkdtemp(), 100_000, 4, 200
    few = rows_of(events, keys)
    os.makedirs(f"{folder}/stream")
    for number in range(batches):
        part = few.iloc[number * events // batches : (number + 1) * events // batches]
        part.to_parquet(f"{folder}/stream/{number:03}.parquet")
    schema = spark.read.parquet(f"{folder}/stream").schema

    def source() -> Any:
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/stream")

    def by_hand(key: Any, frames: Any, state: Any) -> Any:
        total = state.get[0] if state.exists else 0.0
        rows = pd.concat(list(frames), ignore_index=True).sort_values("t")
        answers = []
        for kind, x in zip(rows["kind"].tolist(), rows["x"].tolist(), strict=True):
            total = 0.0 if kind == "m" else total + x
            answers.append(total)
        state.update((total,))
        yield pd.DataFrame({"key": key[0], "t": rows["t"].to_numpy(), "value": answers})

    def watched() -> Any:
        return tight.watch(SINCE_MARKER, source(), key="key", order_by="t", tags="kind")

    def handmade() -> Any:
        return (
            source()
            .groupBy("key")
            .applyInPandasWithState(
                by_hand, "key long, t long, value double", "total double", "append", GroupStateTimeout.NoTimeout
            )
        )

    def done(result: Any) -> float:
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as checkpoint:
            query = (
                result.writeStream.format("noop").option("checkpointLocation", checkpoint).trigger(availableNow=True)
            ).start()
            query.awaitTermination()
        return time.perf_counter() - started

    times: dict[str, list[float]] = {"watch": [], "by hand": []}
    for _ in range(3):
        times["watch"].append(done(watched()))
        times["by hand"].append(done(handmade()))
    title = f"A stream, {events:,} rows in {batches} micro-batches, {keys} keys"
    print(f"\n{title}, seconds on the clock, median of 3 {load()}")
    for name, each in times.items():
        print(f"  {name:20}{sorted(each)[1]:8.2f}{len(few) / sorted(each)[1] / 1e3:10,.0f} thousand rows/s")
    print(f"  by hand / watch: {sorted(times['by hand'])[1] / sorted(times['watch'])[1]:.2f}")


def main() -> None:
    sections: dict[str, Callable[[], None]] = {
        "blocks": show_blocks,
        "keyed": show_keyed,
        "events": show_events,
        "first": show_first,
        "length": show_length,
        "spark": show_spark,
        "stream": show_stream,
    }
    chosen = sys.argv[1:] or list(sections)
    for name in chosen:
        sections[name]()


if __name__ == "__main__":
    main()
