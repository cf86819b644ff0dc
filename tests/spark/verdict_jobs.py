"""Jobs as a user has them: in a module of its own, with a function that the executors must import from it."""

from __future__ import annotations

from typing import Any

from pyspark import RDD
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import LongType

import streamtight as tight

Reading = tight.Kind("Reading", sensor=str, value=int)


def doubled(value: int) -> int:
    return 2 * value


def not_quite_doubled(value: int) -> int:
    return 2 * value + (value == 3)


twice = sf.udf(doubled, LongType())
not_quite_twice = sf.udf(not_quite_doubled, LongType())


def plain(rows: DataFrame) -> DataFrame:
    return rows.selectExpr("sensor", "value * 2 AS value")


def by_function(rows: DataFrame) -> DataFrame:
    # Not `twice`: Spark remembers which files a function has when it is used first.
    return rows.select("sensor", sf.udf(doubled, LongType())("value").alias("value"))


def by_wrong_function(rows: DataFrame) -> DataFrame:
    return rows.select("sensor", not_quite_twice("value").alias("value"))


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("sensor").agg(sf.sum(twice("value")).alias("total"))


def newest(rows: DataFrame) -> DataFrame:
    return rows.groupBy("sensor").agg(sf.last("value").alias("value"))


def largest(rows: DataFrame) -> DataFrame:
    return rows.groupBy("sensor").agg(sf.max("value").alias("value"))


def old(numbers: RDD[int]) -> RDD[int]:
    return numbers.map(doubled).filter(lambda x: x >= 100)


def new(numbers: RDD[int]) -> RDD[int]:
    return numbers.filter(lambda x: x >= 50).map(doubled)


def off_by_one(numbers: RDD[int]) -> RDD[int]:
    return numbers.filter(lambda x: x > 50).map(doubled)


class Once(StatefulProcessor):
    """Pass each number once; it remembers the last one only."""

    def init(self, handle: Any) -> None:
        self.seen = handle.getValueState("seen", "value long")

    def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Any:  # noqa: N802 - Spark's name
        from pyspark.sql import Row

        for row in rows:
            if not self.seen.exists() or self.seen.get()[0] != row.value:
                yield Row(sensor=key[0], value=row.value)
            self.seen.update((row.value,))

    def close(self) -> None:
        pass


def each_once(rows: DataFrame) -> DataFrame:
    return rows.groupBy("sensor").transformWithState(Once(), "sensor string, value long", "append", "none")


Value, Barrier = tight.Kind("Value", time=int, value=int), tight.Kind("Barrier", time=int)
Total = tight.Kind("Total", time=int, total=int)


class Windows(tight.ForkJoin):
    """Sums of the values between barriers."""

    takes, gives, depends = (Value, Barrier), (Total,), tight.barrier(Barrier)
    whole, part = tight.StateType(Value, Barrier), tight.StateType(Value)
    branches = (tight.Branch(whole, part, part), tight.Branch(part, part, part))

    def init(self) -> int:
        return 0

    def update(self, total: int, event: Any, emit: Any) -> int:
        if event.kind is Value:
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total: int, left: Any, right: Any) -> tuple[int, int]:
        return total, 0

    def join(self, left: int, right: int) -> int:
        return left + right
