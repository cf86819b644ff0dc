"""Six jobs that pass every small test, and what the order lint says of them.

Each is written twice: as it is often found, with a result that depends on an order or on a choice that is up to Spark;
and right. Nothing in them is for the lint.

    python examples/order_bugs.py [--confirm]
    streamtight lint examples/order_bugs.py:latest_status --input 'table[id: int, status: str, at: timestamp]'
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import datetime

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

import streamtight as tight

Job = Callable[[DataFrame], DataFrame]

changes = tight.table(id=int, status=str, at=datetime)
clicks = tight.table(user=str, page=str, at=datetime, ms=int)
orders = tight.table(id=int, user=str, price=float, cents=int).key("id")


def latest_status(df: DataFrame) -> DataFrame:
    """The status that came last; dropDuplicates does not know what was sorted."""
    return df.orderBy(sf.desc("at")).dropDuplicates(["id"])


def latest_status_right(df: DataFrame) -> DataFrame:
    """Of changes at the same time, the greatest."""
    newest = Window.partitionBy("id").orderBy(sf.desc("at"), sf.desc("status"))
    return df.withColumn("n", sf.row_number().over(newest)).where("n = 1").drop("n")


def path(df: DataFrame) -> DataFrame:
    """The pages of a user, in the order in which they happen to arrive."""
    return df.groupBy("user").agg(sf.concat_ws(" > ", sf.collect_list("page")).alias("path"))


def path_right(df: DataFrame) -> DataFrame:
    """In the order of time."""
    visits = sf.sort_array(sf.collect_list(sf.struct("at", "page")))
    return df.groupBy("user").agg(sf.concat_ws(" > ", sf.transform(visits, lambda one: one["page"])).alias("path"))


def slowest(df: DataFrame) -> DataFrame:
    """Three clicks; if the third and the fourth took as long, either of them."""
    return df.orderBy(sf.desc("ms")).limit(3)


def slowest_right(df: DataFrame) -> DataFrame:
    """Ties are broken by all other columns."""
    return df.orderBy(sf.desc("ms"), "user", "page", "at").limit(3)


def test_group(df: DataFrame) -> DataFrame:
    """Half of the orders, others on each cluster."""
    return df.where(sf.rand(seed=42) < 0.5).select("id")


def test_group_right(df: DataFrame) -> DataFrame:
    """Half of them, always the same."""
    return df.where(sf.pmod(sf.xxhash64("id"), sf.lit(2)) == 0).select("id")


def revenue(df: DataFrame) -> DataFrame:
    """A sum of doubles, whose last digits depend on the order of its terms."""
    return df.groupBy("user").agg(sf.sum("price").alias("revenue"))


def revenue_right(df: DataFrame) -> DataFrame:
    """In cents."""
    return df.groupBy("user").agg(sf.sum("cents").alias("revenue"))


def salted(df: DataFrame) -> DataFrame:
    """Against skew: parts told apart at random. The largest part is not the sum of all."""
    parts = df.withColumn("salt", sf.floor(sf.rand() * 8)).groupBy("user", "salt").agg(sf.sum("cents").alias("cents"))
    return parts.groupBy("user").agg(sf.max("cents").alias("cents"))


def salted_right(df: DataFrame) -> DataFrame:
    """Sums of parts are summed again, so that it does not matter how they were cut."""
    parts = df.withColumn("salt", sf.floor(sf.rand() * 8)).groupBy("user", "salt").agg(sf.sum("cents").alias("cents"))
    return parts.groupBy("user").agg(sf.sum("cents").alias("cents"))


PAIRS: list[tuple[Job, Job, object]] = [
    (latest_status, latest_status_right, changes),
    (path, path_right, clicks),
    (slowest, slowest_right, clicks),
    (test_group, test_group_right, orders),
    (revenue, revenue_right, orders),
    (salted, salted_right, orders),
]


def main() -> None:
    """Ask about all twelve."""
    options = argparse.ArgumentParser(description="Which jobs depend on an order that Spark does not fix?")
    options.add_argument("--confirm", action="store_true", help="show what is found by running the jobs on Spark")
    chosen = options.parse_args()
    spark = tight.session()
    try:
        for job in (one for wrong, right, takes in PAIRS for one in ((wrong, takes), (right, takes))):
            verdict = tight.typecheck(job[0], takes=job[1], confirm=chosen.confirm)  # type: ignore[arg-type]
            print(verdict.story() if chosen.confirm else verdict)
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
