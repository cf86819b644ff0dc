"""Batch jobs that do not depend on what Spark does not fix, though a careless reader may think so."""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

from corpus import job
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.functions import udf

import streamtight as tight

orders = tight.table(order_id=int, user=str, amount=int, price="decimal(10,2)", at=datetime).key("order_id")
events = tight.table(user=str, page=str, at=datetime, ms=int)
users = tight.table(user=str, name=str, country=str).key("user")
Out = tight.Kind("Out", user=str, page=str, at=datetime, ms=int)


@job(events)
def clicks(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(
        sf.count("*").alias("clicks"), sf.max("ms").alias("slowest"), sf.sum("ms").alias("ms")
    )


@job(events)
def sorted_pages(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.sort_array(sf.collect_list("page")).alias("pages"))


@job(events)
def path_in_order_of_time(df: DataFrame) -> DataFrame:
    visits = sf.array_sort(sf.collect_list(sf.struct("at", "page")))
    return df.groupBy("user").agg(sf.transform(visits, lambda visit: visit["page"]).alias("path"))


@job(events)
def sorted_text(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.concat_ws(",", sf.sort_array(sf.collect_set("page"))).alias("pages"))


@job(events)
def how_many_different_pages(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.size(sf.collect_set("page")).alias("pages"))


@job(events)
def saw_the_cart(df: DataFrame) -> DataFrame:
    pages = df.groupBy("user").agg(sf.collect_list("page").alias("pages"))
    return pages.select(
        "user", sf.array_contains("pages", "cart").alias("saw"), sf.exists("pages", lambda p: p == "x").alias("x")
    )


@job(events)
def summed_by_hand(df: DataFrame) -> DataFrame:
    def plus(total: Column, ms: Column) -> Column:
        return total + ms * 2

    return df.groupBy("user").agg(sf.aggregate(sf.collect_list("ms"), sf.lit(0).cast("bigint"), plus).alias("ms"))


@job(events)
def exploded_again(df: DataFrame) -> DataFrame:
    lists = df.groupBy("user").agg(sf.collect_list("page").alias("pages"), sf.count("*").alias("n"))
    return lists.select("user", "n", sf.explode("pages").alias("page"))


@job(events)
def three_are_enough_to_count(df: DataFrame) -> DataFrame:
    return df.limit(3).agg(sf.count("*").alias("n"))


@job(events)
def slowest_times(df: DataFrame) -> DataFrame:
    return df.orderBy(sf.desc("ms")).limit(3).select("ms")


@job(orders)
def newest_orders(df: DataFrame) -> DataFrame:
    return df.orderBy(sf.desc("at"), "order_id").limit(3)


@job(events)
def top_of_all_columns(df: DataFrame) -> DataFrame:
    return df.select("page", "ms").orderBy("ms", "page").limit(3)


@job(events)
def top_users_by_count(df: DataFrame) -> DataFrame:
    counts = df.groupBy("user").agg(sf.count("*").alias("n"))
    return counts.orderBy(sf.desc("n"), "user").limit(2)


@job(events)
def one_total(df: DataFrame) -> DataFrame:
    return df.agg(sf.sum("ms").alias("ms")).limit(1)


@job(events)
def distinct_rows(df: DataFrame) -> DataFrame:
    return df.dropDuplicates().select("user", "page").distinct()


@job(events)
def users_seen(df: DataFrame) -> DataFrame:
    return df.dropDuplicates(["user", "page"]).select("user", "page")


@job({"events": events, "users": users})
def duplicates_that_agree(events: DataFrame, users: DataFrame) -> DataFrame:
    named = events.select("user").join(users, "user")
    return named.dropDuplicates(["user"])


@job({"events": events, "users": users})
def first_of_what_the_key_determines(events: DataFrame, users: DataFrame) -> DataFrame:
    named = events.join(users, "user", "left")
    return named.groupBy("user").agg(sf.first("name").alias("name"), sf.sum("ms").alias("ms"))


@job(orders)
def first_of_single_rows(df: DataFrame) -> DataFrame:
    return df.groupBy("order_id").agg(sf.first("user").alias("user"), sf.collect_list("amount").alias("amounts"))


@job(orders)
def latest_order(df: DataFrame) -> DataFrame:
    newest = Window.partitionBy("user").orderBy(sf.desc("at"), sf.desc("order_id"))
    return df.withColumn("n", sf.row_number().over(newest)).where("n = 1").drop("n")


@job(orders)
def latest_order_by_struct(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.max_by("amount", sf.struct("at", "order_id")).alias("amount"))


@job(events)
def latest_time_by_row_number(df: DataFrame) -> DataFrame:
    newest = Window.partitionBy("user").orderBy(sf.desc("at"))
    return df.withColumn("n", sf.row_number().over(newest)).where("n <= 2").select("user", "at", "n")


@job(events)
def ranked(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("ms")
    return df.withColumn("rank", sf.rank().over(window)).withColumn("dense", sf.dense_rank().over(window))


@job(events)
def running_total_by_range(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at")
    return df.withColumn("total", sf.sum("ms").over(window))


@job(events)
def share_of_the_total(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user")
    return df.select("user", "page", (sf.col("ms") * 100 / sf.sum("ms").over(window)).alias("percent"))


@job(orders)
def exact_revenue(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.sum(sf.col("price") * sf.col("amount").cast("decimal(10,0)")).alias("revenue"))


@job(events)
def average_of_integers(df: DataFrame) -> DataFrame:
    return df.groupBy("page").agg(sf.avg("ms").alias("mean"), sf.percentile("ms", 0.5).alias("median"))


@job(events)
def salted_and_merged(df: DataFrame) -> DataFrame:
    salted = df.withColumn("salt", sf.floor(sf.rand() * 8))
    parts = salted.groupBy("user", "salt").agg(
        sf.sum("ms").alias("ms"), sf.count("*").alias("n"), sf.max("at").alias("at")
    )
    return parts.groupBy("user").agg(sf.sum("ms").alias("ms"), sf.sum("n").alias("n"), sf.max("at").alias("at"))


@job(events)
def random_order_of_rows(df: DataFrame) -> DataFrame:
    return df.repartition(4).orderBy(sf.rand())


@job(events)
def a_random_column_that_is_dropped(df: DataFrame) -> DataFrame:
    tagged = (
        df.withColumn("r", sf.rand())
        .withColumn("id", sf.monotonically_increasing_id())
        .withColumn("at2", sf.current_timestamp())
    )
    return tagged.drop("r", "id", "at2")


@job(events)
def a_hash_instead_of_random(df: DataFrame) -> DataFrame:
    return df.where(sf.pmod(sf.xxhash64("user"), sf.lit(2)) == 0).withColumn("bucket", sf.hash("page"))


@job(events)
def python_that_is_seeded(df: DataFrame) -> DataFrame:
    @udf("bigint")
    def bucket(user: str) -> int:
        return random.Random(user).randrange(4)

    return df.select("user", bucket("user").alias("bucket"))


@job(events)
def python_sums_a_list(df: DataFrame) -> DataFrame:
    total = udf(lambda values: sum(values), "bigint")
    widest = udf(lambda values: max(values) - min(values), "bigint")
    lists = df.groupBy("user").agg(sf.collect_list("ms").alias("all"))
    return lists.select("user", total("all").alias("total"), widest("all").alias("range"))


@job(events)
def python_parses_dates(df: DataFrame) -> DataFrame:
    @udf("bigint")
    def year(text: str) -> int | None:
        return datetime.strptime(text, "%Y").year if text.isdigit() and len(text) == 4 else None

    return df.withColumn("year", year("page"))


@job(events)
def groups_in_pandas_that_only_add(df: DataFrame) -> DataFrame:
    def total(group: Any) -> Any:
        return group.groupby("user").agg({"ms": "sum"}).assign(user=group["user"].max())

    return df.groupBy("user").applyInPandas(total, "ms bigint, user string")


@job({"orders": orders, "users": users})
def star_join_in_sql(orders: DataFrame, users: DataFrame) -> DataFrame:
    return orders.sparkSession.sql(
        """
        WITH named AS (SELECT o.*, u.country FROM orders o LEFT JOIN users u ON o.user = u.user)
        SELECT country, sum(amount) AS amount, any_value(country) AS same, count(DISTINCT user) AS users
        FROM named GROUP BY country
        """
    )


@job({"orders": orders, "users": users})
def there_is_one(orders: DataFrame, users: DataFrame) -> DataFrame:
    return orders.sparkSession.sql(
        "SELECT name FROM users u WHERE EXISTS (SELECT 1 FROM orders o WHERE o.user = u.user AND o.amount > 1 LIMIT 1)"
    )


@job(events)
def pivoted(df: DataFrame) -> DataFrame:
    return df.groupBy("user").pivot("page", ["a", "b"]).agg(sf.sum("ms"))


@job(events)
def union_and_rollup(df: DataFrame) -> DataFrame:
    both = df.union(df.withColumn("ms", sf.col("ms") + 1))
    return both.rollup("user", "page").agg(sf.sum("ms").alias("ms"), sf.grouping_id().alias("level"))


@job(events)
def listed_in_a_total_order(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.expr("listagg(page, ',') WITHIN GROUP (ORDER BY page)").alias("pages"))


@job(events, gives=tight.PartitionBy("user", tight.Seq(Out)))
def in_order_for_each_user(df: DataFrame) -> DataFrame:
    return df.repartition("user").sortWithinPartitions("user", "at", "page", "ms")


@job(events, gives=tight.Seq(Out))
def first_of_all_in_order(df: DataFrame) -> DataFrame:
    return df.orderBy("at", "user", "page", "ms").limit(3).where("ms >= 0")


@job(events, gives=tight.Seq(Out))
def all_in_one_partition_in_order(df: DataFrame) -> DataFrame:
    return df.repartition(1).sortWithinPartitions("at", "user", "page", "ms")


@job(events)
def row_ids_that_only_tell_rows_apart(df: DataFrame) -> DataFrame:
    words = df.select(
        "user", sf.explode(sf.split("page", "o")).alias("word"), sf.monotonically_increasing_id().alias("id")
    )
    return words.groupBy("id", "user").agg(sf.count("*").alias("words")).select("user", "words")


@job(events)
def pages_of_a_list_that_were_seen(df: DataFrame) -> DataFrame:
    wanted = sf.array(sf.lit("home"), sf.lit("a"))
    return df.groupBy("user").agg(
        sf.array_intersect(wanted, sf.collect_set("page")).alias("seen"),
        sf.array_except(wanted, sf.collect_list("page")).alias("missed"),
    )


@job(events)
def whether_there_is_any(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.first("page", ignorenulls=True).isNotNull().alias("has_page"))


@job(events)
def subtracted_one_by_one(df: DataFrame) -> DataFrame:
    left = sf.aggregate(sf.collect_list("ms"), sf.lit(100).cast("bigint"), lambda left, ms: left - ms)
    return df.groupBy("user").agg(left.alias("left"))


@job(events)
def sums_of_what_is_exact(df: DataFrame) -> DataFrame:
    parsed = sf.from_json("page", "n bigint")
    return df.groupBy("user").agg(
        sf.sum(sf.ceil(sf.col("ms") / 3)).alias("thirds"),
        sf.sum(sf.round("ms", -1)).alias("tens"),
        sf.sum(sf.when(sf.col("ms") > 3, sf.length("page")).otherwise(sf.col("ms"))).alias("either"),
        sf.avg(sf.nvl2("page", sf.lit(1), sf.col("ms"))).alias("known"),
        sf.sum(sf.element_at(sf.array("ms"), 1)).alias("first"),
        sf.sum(parsed["n"]).alias("parsed"),
        sf.sum(sf.try_add("ms", sf.lit(1))).alias("more"),
    )


@job(orders)
def decimals_folded(df: DataFrame) -> DataFrame:
    prices, zero = sf.collect_list("price"), sf.lit(0).cast("decimal(20,2)")
    total = sf.aggregate(prices, zero, lambda total, price: (total + price).cast("decimal(20,2)"))
    return df.groupBy("user").agg(total.alias("total"))


@job(events)
def totals_of_a_column_with_a_misleading_name(df: DataFrame) -> DataFrame:
    clicks = sf.collect_list(sf.struct(sf.col("ms").alias("double_clicks")))
    total = sf.aggregate(clicks, sf.lit(0).cast("bigint"), lambda total, one: total + one["double_clicks"])
    return df.groupBy("user").agg(total.alias("ms"))


@job(events)
def about_how_many_pages(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.approx_count_distinct("page").alias("pages"))


@job(events)
def meant_so(df: DataFrame) -> DataFrame:
    return df.withColumn("loaded", sf.current_timestamp())  # streamtight: ignore[CLOCK]
