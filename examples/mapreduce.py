"""Five reducers that depend on the order of their rows: when is that a bug, and when is it not?

A study of 507 reducers at Microsoft found five common patterns whose result depends on the order in which the rows of a
group arrive, and a shuffle does not keep that order (Xiao et al., ICSE 2014). Whether it is a bug depends on the need:

    always the same        whatever comes in: then each of the five is a bug
    same on good input     for input with some property: then four of them are fine; the source has the property
    any right result       then three of them are fine; the reference, the equality or the relation says what is right

Each is judged here against itself: rows in one partition, in order, against rows that were dealt out over four workers
first. (After DiffStream, OOPSLA 2020, section 5.3 and Figure 12; two cases of the last line cannot be stated there.)

    python examples/mapreduce.py
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pyspark import RDD
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf

import streamtight as tight

Reducer = Callable[[DataFrame], DataFrame]
Source = Callable[[random.Random], tight.Trace]
Given = tuple[tight.Event, ...]

Item = tight.Kind("Item", key=str, x=int, y=int)
Picked = tight.Kind("Picked", key=str, x=int)
Index = tight.Kind("Index", key=str, y_of_x=dict[int, int])
Joined = tight.Kind("Joined", key=str, text=str)

N = 2


# -- the reducers ----------------------------------------------------------------------------------------------------


def single_item(items: DataFrame) -> DataFrame:
    """SingleItem: one x of each key."""
    return items.groupBy("key").agg(sf.first("x").alias("x"))


def index_value_pair(items: DataFrame) -> DataFrame:
    """IndexValuePair: for each key a map from x to y; a later row replaces an earlier one with the same x."""

    def put(index: Column, item: Column) -> Column:
        others = sf.map_filter(index, lambda x, _: x != item.x)
        return sf.map_concat(others, sf.create_map(item.x, item.y))

    rows, empty = sf.collect_list(sf.struct("x", "y")), sf.create_map().cast("map<bigint, bigint>")
    return items.groupBy("key").agg(sf.aggregate(rows, empty, put).alias("y_of_x"))


def max_row(items: DataFrame) -> DataFrame:
    """MaxRow: the x of the row with the largest y of each key."""
    return items.groupBy("key").agg(sf.max_by("x", "y").alias("x"))


def first_n(items: DataFrame) -> DataFrame:
    """FirstN: the first N rows of each key."""
    return _rows(items.groupBy("key").agg(sf.slice(sf.collect_list("x"), 1, N).alias("xs")))


def str_concat(items: DataFrame) -> DataFrame:
    """StrConcat: all x of each key, joined with @."""
    return items.groupBy("key").agg(sf.concat_ws("@", sf.collect_list("x")).alias("text"))


def str_stream(items: DataFrame) -> DataFrame:
    """StrConcat for streams: the same items, each as a row of its own."""
    return _rows(items.groupBy("key").agg(sf.collect_list("x").alias("xs")))


def _rows(lists: DataFrame) -> DataFrame:
    return lists.select("key", sf.explode("xs").alias("x"))


# -- one worker, and several -----------------------------------------------------------------------------------------


def sequential(reducer: Reducer) -> Reducer:
    """The reducer gets the rows in the order in which they came."""
    return _named(f"sequential({reducer.__name__})", lambda items: reducer(items.coalesce(1)))


def parallel(reducer: Reducer) -> Reducer:
    """The rows are dealt out over four workers, as before any costly map; they reach the reducer in another order."""
    return _named(f"parallel({reducer.__name__})", lambda items: reducer(items.repartition(4)))


def _named(name: str, job: Reducer) -> Reducer:
    job.__name__ = name  # what a verdict calls it, and what a person can paste
    return job


# -- the same as RDDs, as in the study -------------------------------------------------------------------------------


def index_by_rdd(items: RDD[Row]) -> RDD[Row]:
    """IndexValuePair as a reducer is written by hand."""

    def reduced(group: tuple[str, Any]) -> Row:
        key, rows = group
        y_of_x = {}
        for row in rows:
            y_of_x[row.x] = row.y
        return Row(key=key, y_of_x=y_of_x)

    return items.groupBy(lambda row: row.key).map(reduced)


def sequential_rdd(items: RDD[Row]) -> RDD[Row]:
    """In order."""
    return index_by_rdd(items.coalesce(1))


def parallel_rdd(items: RDD[Row]) -> RDD[Row]:
    """Dealt out over four workers first: not by `repartition`, which in PySpark deals out ten rows at a time."""
    numbered = items.zipWithIndex().map(lambda pair: (pair[1], pair[0]))
    return index_by_rdd(numbered.partitionBy(4).values())


# -- input: any, and with the property that makes a reducer deterministic --------------------------------------------


def any_items(rng: random.Random) -> tight.Trace:
    """Two keys, so that groups are large; few values of y, so that there are ties."""
    return _trace(Item(rng.choice("ab"), rng.randint(0, 9), rng.randint(0, 2)) for _ in range(12))


def one_x_for_each_key(rng: random.Random) -> tight.Trace:
    """For SingleItem: all rows of a key agree."""
    x_of = {key: rng.randint(0, 9) for key in "abc"}
    return _trace(Item(key, x_of[key], rng.randint(0, 2)) for key in rng.choices("abc", k=12))


def one_y_for_each_x(rng: random.Random) -> tight.Trace:
    """For IndexValuePair: y is a function of x."""
    y_of = {x: rng.randint(0, 9) for x in range(4)}
    return _trace(Item(rng.choice("ab"), x, y_of[x]) for x in rng.choices(range(4), k=12))


def no_ties(rng: random.Random) -> tight.Trace:
    """For MaxRow: no y comes twice."""
    return _trace(Item(rng.choice("ab"), rng.randint(0, 9), y) for y in rng.sample(range(100), k=12))


def at_most_n_of_each_key(rng: random.Random) -> tight.Trace:
    """For FirstN: nothing to leave out."""
    keys = rng.sample([key for key in "abcdef" for _ in range(N)], k=10)
    return _trace(Item(key, rng.randint(0, 9), rng.randint(0, 2)) for key in keys)


def _trace(items: Iterator[tight.Event]) -> tight.Trace:
    return tight.Trace(items, tight.ordered)


# -- what is right, where any right result will do -------------------------------------------------------------------


def largest(given: Given) -> Iterator[Given]:
    """For MaxRow: the x of any row with the largest y."""
    most = max((item.y for item in given), default=None)
    return ((Picked(item.key, item.x),) for item in given if item.y == most)


def some_n(given: Given, came: Given) -> bool:
    """For FirstN: any N rows of those that there are, or all if there are fewer."""
    invented = Counter(item.x for item in came) - Counter(item.x for item in given)
    return len(came) == min(N, len(given)) and not invented


def bag_of_items(joined: tight.Event) -> tuple[str, tuple[str, ...]]:
    """For StrConcat: its items in any order, each as often as it comes. As a set, 1@1@2 would be 1@2@2."""
    return joined.key, tuple(sorted(joined.text.split("@")))


# -- mutants: with any order accepted, a wrong value must still be found ---------------------------------------------


def min_row(items: DataFrame) -> DataFrame:
    """MaxRow that takes the wrong end."""
    return items.groupBy("key").agg(sf.min_by("x", "y").alias("x"))


def first_n_and_one(items: DataFrame) -> DataFrame:
    """FirstN that cannot count."""
    return _rows(items.groupBy("key").agg(sf.slice(sf.collect_list("x"), 1, N + 1).alias("xs")))


def first_n_with_a_foreign_one(items: DataFrame) -> DataFrame:
    """FirstN with a value in it that never came."""
    chosen = sf.slice(sf.collect_list("x"), 1, N)
    foreign = sf.transform(chosen, lambda x, place: sf.when(place == 0, -1).otherwise(x))
    return _rows(items.groupBy("key").agg(foreign.alias("xs")))


def str_concat_of_others(items: DataFrame) -> DataFrame:
    """StrConcat that loses items and doubles another one instead."""
    return items.groupBy("key").agg(sf.concat_ws("@", _lost_and_doubled(sf.collect_list("x"))).alias("text"))


def str_stream_of_others(items: DataFrame) -> DataFrame:
    """The same, streamed."""
    return _rows(items.groupBy("key").agg(_lost_and_doubled(sf.collect_list("x")).alias("xs")))


def _lost_and_doubled(xs: Column) -> Column:
    """As many items as before, and as a set the same: what came twice comes once, and the first one fills the gap."""
    once = sf.array_distinct(xs)
    return sf.concat(once, sf.array_repeat(sf.element_at(xs, 1), sf.size(xs) - sf.size(once)))


# -- Figure 12 -------------------------------------------------------------------------------------------------------


class Pattern(NamedTuple):
    """A reducer, and what its users may ask of it."""

    reducer: Reducer
    gives: tight.Kind
    upto: tight.Dependence = tight.unordered
    good_input: Source | None = None
    """Where it is deterministic; None if it is so nowhere."""
    any_right: dict[str, Any] | None = None
    """How `compare` is told that any right result will do; None if the study found no job for which that is so."""
    wrong: tuple[Reducer, ...] = ()
    """Mutants that are wrong even then."""


PATTERNS = {
    "SingleItem": Pattern(single_item, Picked, good_input=one_x_for_each_key),
    "IndexValuePair": Pattern(index_value_pair, Index, good_input=one_y_for_each_x),
    "MaxRow": Pattern(
        max_row,
        Picked,
        good_input=no_ties,
        any_right={"reference": tight.one_of(largest, by="key")},
        wrong=(min_row,),
    ),
    "FirstN": Pattern(
        first_n,
        Picked,
        good_input=at_most_n_of_each_key,
        any_right={"reference": tight.allowed(some_n, by="key")},
        wrong=(first_n_and_one, first_n_with_a_foreign_one),
    ),
    "StrConcat": Pattern(
        str_concat,
        Joined,
        any_right={"reference": sequential(str_concat), "equal": tight.equality(by=bag_of_items)},
        wrong=(str_concat_of_others,),
    ),
    "StrConcat, streamed": Pattern(
        str_stream,
        Picked,
        upto=tight.same("key"),
        any_right={"reference": sequential(str_stream), "upto": tight.unordered},
        wrong=(str_stream_of_others,),
    ),
}


def deterministic(pattern: Pattern, *, on: Source = any_items, mode: str = "batch", runs: int = 30) -> tight.Verdict:
    """Is the result the same, whatever order the rows arrive in?"""
    jobs = sequential(pattern.reducer), parallel(pattern.reducer)
    return tight.compare(*jobs, on=on, upto=pattern.upto, takes=Item, gives=pattern.gives, mode=mode, runs=runs)


def deterministic_on_good_input(pattern: Pattern, *, mode: str = "batch", runs: int = 30) -> tight.Verdict | None:
    """Is it the same for input with the property? None if there is no such property."""
    return pattern.good_input and deterministic(pattern, on=pattern.good_input, mode=mode, runs=runs)


def right(
    pattern: Pattern, reducer: Reducer | None = None, *, mode: str = "batch", runs: int = 30
) -> tight.Verdict | None:
    """Is the result of this reducer one that the pattern allows, if any right one will do? None if that is no use."""
    if pattern.any_right is None:
        return None
    options = {"upto": pattern.upto, "takes": Item, "gives": pattern.gives, "mode": mode, "runs": runs}
    candidate = parallel(reducer or pattern.reducer)
    return tight.compare(candidate=candidate, on=any_items, **{**options, **pattern.any_right})


def main() -> None:
    """Fill the table of Figure 12 and write a report."""
    options = argparse.ArgumentParser(description="Which reducers are deterministic, on which input, and need they be?")
    options.add_argument("--runs", type=int, default=30, help="generated inputs for each question")
    options.add_argument(
        "--mode", choices=("batch", "complete"), default="batch", help="a static DataFrame or a stream"
    )
    options.add_argument("--report", default="build/mapreduce.html", help="a .html, .txt or .json file")
    chosen = options.parse_args()

    spark = tight.session()
    try:
        verdicts = []
        print(f"{'':22}{'always the same':18}{'same on good input':20}{'any right result':18}{'mutants found':14}")
        for name, pattern in PATTERNS.items():
            how = {"mode": chosen.mode, "runs": chosen.runs}
            answers = [
                deterministic(pattern, **how),
                deterministic_on_good_input(pattern, **how),
                right(pattern, **how),
            ]
            mutants = [verdict for wrong in pattern.wrong if (verdict := right(pattern, wrong, **how))]
            found = f"{sum(verdict.fails for verdict in mutants)} of {len(mutants)}" if mutants else "-"
            shown = [answer.outcome.name if answer else "-" for answer in answers]
            print(f"{name:22}{shown[0]:18}{shown[1]:20}{shown[2]:18}{found:14}", flush=True)
            verdicts += [verdict for verdict in answers + mutants if verdict]
        print(f"\nReport: {tight.write_report(verdicts, chosen.report, title='Five reducers')}")
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
