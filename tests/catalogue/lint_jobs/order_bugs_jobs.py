"""Batch jobs that depend on what Spark does not fix."""

from __future__ import annotations

import random
import uuid
from datetime import datetime
from typing import Any

from corpus import job
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.functions import udf

import streamtight as tight

orders = tight.table(order_id=int, user=str, amount=int, price=float, at=datetime).key("order_id")
events = tight.table(user=str, page=str, at=datetime, ms=int)
Out = tight.Kind("Out", user=str, page=str, ms=int)
Event = tight.Kind("Event", user=str, page=str, at=datetime, ms=int)


@job(events)
def landing_page(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(
        sf.count("*").alias("clicks"),
        sf.first("page").alias("landed_on"),  # finds FIRST_VALUE
    )


@job(events)
def last_page_after_a_sort_that_groups_do_not_keep(df: DataFrame) -> DataFrame:
    in_order = df.orderBy("user", "at")
    return in_order.groupBy("user").agg(sf.last("page", ignorenulls=True).alias("left_from"))  # finds FIRST_VALUE


@job(events)
def any_page(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.any_value("page").alias("page"))  # finds FIRST_VALUE


@job(events)
def click_path(df: DataFrame) -> DataFrame:
    paths = df.groupBy("user").agg(
        sf.collect_list("page").alias("path"),  # finds LIST_ORDER
    )
    return paths.where(sf.size("path") > 1)


@job(events)
def distinct_pages(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.collect_set("page").alias("pages"))  # finds LIST_ORDER


@job(events)
def click_path_as_text(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(
        sf.concat_ws(" > ", sf.collect_list("page")).alias("path")  # finds TEXT_ORDER
    )


@job(events)
def joined_by_listagg(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.listagg("page", sf.lit(",")).alias("pages"))  # finds TEXT_ORDER


@job(events)
def first_two_pages(df: DataFrame) -> DataFrame:
    lists = df.groupBy("user").agg(
        sf.slice(sf.collect_list("page"), 1, 2).alias("pages"),  # finds LIST_ORDER
    )
    return lists.select("user", sf.explode("pages").alias("page"))


@job(events)
def position_of_pages(df: DataFrame) -> DataFrame:
    lists = df.groupBy("user").agg(sf.collect_list("page").alias("pages"))  # finds LIST_ORDER
    return lists.select("user", sf.posexplode("pages").alias("place", "page"))


@job(events)
def last_write_wins_fold(df: DataFrame) -> DataFrame:
    def keep(_: Column, item: Column) -> Column:
        return item

    return df.groupBy("user").agg(
        sf.aggregate(sf.collect_list("ms"), sf.lit(0).cast("bigint"), keep).alias("ms")  # finds LIST_ORDER
    )


@job(events)
def a_handful(df: DataFrame) -> DataFrame:
    slow = df.where("ms > 1")
    return slow.limit(3)  # finds LIMIT_WITHOUT_ORDER


@job(events)
def slowest_pages_with_ties(df: DataFrame) -> DataFrame:
    return (
        df.select("page", "ms").orderBy(sf.desc("ms")).limit(3)  # finds TIED_ORDER
    )


@job(events)
def sorted_then_shuffled_then_cut(df: DataFrame) -> DataFrame:
    return df.orderBy("user", "page", "at", "ms").repartition(4).limit(3)  # finds LIMIT_WITHOUT_ORDER


@job(events)
def second_page_of_results(df: DataFrame) -> DataFrame:
    return df.orderBy("at").offset(2)  # finds TIED_ORDER


@job(events)
def one_row_for_each_user(df: DataFrame) -> DataFrame:
    return df.dropDuplicates(["user"])  # finds DUPLICATE_CHOICE


@job(events)
def sorted_before_duplicates_go(df: DataFrame) -> DataFrame:
    newest = df.orderBy(sf.desc("at"))
    return newest.dropDuplicates(["user"]).select("user", "page")  # finds DUPLICATE_CHOICE


@job(events)
def latest_by_row_number_with_ties(df: DataFrame) -> DataFrame:
    newest = Window.partitionBy("user").orderBy(sf.desc("at"))
    return (
        df.withColumn("n", sf.row_number().over(newest))  # finds TIED_ORDER
        .where("n = 1")
        .drop("n")
    )


@job(events)
def numbered_in_no_order(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy(sf.lit(1))
    return df.withColumn("n", sf.row_number().over(window))  # finds TIED_ORDER


@job(events)
def previous_page(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at")
    return df.select(
        "user",
        "at",
        sf.lag("page").over(window).alias("came_from"),  # finds TIED_ORDER
    )


@job(events)
def running_total_by_rows(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at").rowsBetween(Window.unboundedPreceding, 0)
    return df.withColumn("total", sf.sum("ms").over(window))  # finds TIED_ORDER


@job(events)
def first_of_an_ordered_window(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at")
    landed = sf.first("page").over(window)  # finds TIED_ORDER
    return df.select("user", "page", landed.alias("landed"))


@job(events)
def page_of_the_slowest_click(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.max_by("page", "ms").alias("page"))  # finds TIED_ORDER


@job(events)
def favourite_page(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.mode("page").alias("page"))  # finds TIED_ORDER


@job(orders)
def revenue(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(
        sf.sum(sf.col("price") * sf.col("amount")).alias("revenue")  # finds FLOAT_SUM
    )


@job(orders)
def spread_of_prices(df: DataFrame) -> DataFrame:
    return df.agg(sf.stddev("price").alias("spread"))  # finds FLOAT_SUM


@job(orders)
def a_test_group(df: DataFrame) -> DataFrame:
    return df.withColumn("in_test", sf.rand(42) < 0.5)  # finds RANDOM


@job(orders)
def surrogate_keys(df: DataFrame) -> DataFrame:
    return df.select(
        sf.monotonically_increasing_id().alias("id"),  # finds ROW_ID
        "order_id",
    )


@job(orders)
def row_uuids(df: DataFrame) -> DataFrame:
    return df.withColumn("row_id", sf.expr("uuid()"))  # finds RANDOM


@job(orders)
def one_in_two(df: DataFrame) -> DataFrame:
    return df.sample(0.5, seed=7).groupBy("user").count()  # finds SAMPLE


@job(orders)
def a_random_order_cut(df: DataFrame) -> DataFrame:
    return df.orderBy(sf.rand()).limit(3)  # finds RANDOM


@job(orders)
def recent_orders(df: DataFrame) -> DataFrame:
    return df.where(
        sf.col("at") > sf.current_timestamp() - sf.expr("INTERVAL 7 DAYS")  # finds CLOCK
    ).select("order_id")


@job(orders)
def loaded_at(df: DataFrame) -> DataFrame:
    return df.withColumn("loaded_at", sf.current_timestamp())  # finds CLOCK


@job(orders)
def python_ids(df: DataFrame) -> DataFrame:
    @udf("string")
    def fresh(user: str) -> str:
        return f"{user}-{uuid.uuid4()}"

    return df.select("order_id", fresh("user").alias("token"))  # finds UDF_VARIES


@job(orders)
def python_jitter(df: DataFrame) -> DataFrame:
    jitter = udf(lambda amount: amount + random.choice([0, 1]), "bigint")
    totals = df.groupBy("user").agg(sf.sum("amount").alias("total"))
    return totals.withColumn("total", jitter("total"))  # finds UDF_VARIES


@job(events)
def python_looks_at_the_first_element(df: DataFrame) -> DataFrame:
    first_of = udf(lambda pages: pages[0], "string")
    return (
        df.groupBy("user")
        .agg(
            sf.collect_list("page").alias("pages"),  # finds LIST_ORDER
        )
        .select("user", first_of("pages").alias("page"))
    )


@job(events)
def groups_in_pandas_that_look_at_their_order(df: DataFrame) -> DataFrame:
    def gaps(group: Any) -> Any:
        group["ms"] = group["ms"].diff().fillna(0).astype("int64")
        return group[["user", "ms"]]

    return df.groupBy("user").applyInPandas(gaps, "user string, ms bigint")  # finds GROUP_FUNCTION_ORDER


@job(orders)
def about_the_median(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.percentile_approx("amount", 0.5, 10).alias("p50"))  # finds APPROXIMATE


@job({"orders": orders, "events": events})
def joined_with_any_event(orders: DataFrame, events: DataFrame) -> DataFrame:
    one = events.dropDuplicates(["user"])  # finds DUPLICATE_CHOICE
    return orders.join(one.select("user", "page"), "user", "left").select("order_id", "page")


@job({"orders": orders, "events": events})
def total_of_a_limited_subquery(orders: DataFrame, events: DataFrame) -> DataFrame:
    return orders.sparkSession.sql(  # finds LIMIT_WITHOUT_ORDER
        "SELECT order_id FROM orders WHERE user IN (SELECT user FROM events LIMIT 2)"
    )


@job(events)
def random_salt_in_the_result(df: DataFrame) -> DataFrame:
    salted = df.withColumn("salt", sf.floor(sf.rand() * 4))  # finds RANDOM
    return salted.groupBy("user", "salt").agg(sf.sum("ms").alias("ms"))


@job(events)
def average_of_salted_averages(df: DataFrame) -> DataFrame:
    salted = df.withColumn("salt", sf.floor(sf.rand() * 4))  # finds RANDOM
    parts = salted.groupBy("user", "salt").agg(sf.max("ms").alias("ms"))
    return parts.groupBy("user").agg(sf.sum("ms").alias("ms"))


@job(events, gives=tight.PartitionBy("user", tight.Seq(Out)))
def promised_in_order_but_shuffled(df: DataFrame) -> DataFrame:
    return df.sortWithinPartitions("user", "at").repartition(3).select("user", "page", "ms")  # finds ORDER_LOST


@job(events, gives=tight.Seq(Event))
def in_order_of_all(df: DataFrame) -> DataFrame:
    return df.orderBy("at", "user", "page", "ms").where("ms >= 0")  # finds ORDER_LOST


@job(events, gives=tight.PartitionBy("user", tight.Seq(Event)))
def users_cut_by_the_partitions_of_a_sort(df: DataFrame) -> DataFrame:
    return df.orderBy("at", "user", "page", "ms")  # finds ORDER_LOST
