"""Jobs that were written to mislead the lint, after its rules."""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from datetime import datetime
from typing import Any, ClassVar

from corpus import job
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.functions import udf

import streamtight as tight

events = tight.table(user=str, page=str, at=datetime, ms=int)
orders = tight.table(order_id=int, user=str, amount=int, price=float, at=datetime).key("order_id")
users = tight.table(user=str, name=str, country=str).key("user")
Event = tight.Kind("Event", user=str, page=str, at=datetime, ms=int)


@job(events)
def self_join_of_a_dropped_key(df: DataFrame) -> DataFrame:
    left = df.groupBy("user").agg(sf.max("ms").alias("slowest")).select(sf.col("user").alias("who"), "slowest")
    both = left.crossJoin(df.select("user", "page"))
    return both.groupBy("user").agg(sf.first("who").alias("who"))  # finds FIRST_VALUE


@job(events)
def filter_on_a_salted_part(df: DataFrame) -> DataFrame:
    salted = df.withColumn("salt", sf.floor(sf.rand() * 4))  # finds RANDOM
    parts = salted.groupBy("user", "salt").agg(sf.sum("ms").alias("ms")).where("ms > 2")
    return parts.groupBy("user").agg(sf.sum("ms").alias("ms"))


@job(events)
def count_of_salted_parts(df: DataFrame) -> DataFrame:
    salted = df.withColumn("salt", sf.floor(sf.rand() * 4))  # finds RANDOM
    return salted.groupBy("user", "salt").agg(sf.sum("ms").alias("ms")).groupBy("user").count()


@job(events)
def aliases_of_the_key(df: DataFrame) -> DataFrame:
    renamed = df.select(sf.col("user").alias("who"), sf.upper("user").alias("shout"), "ms")
    return renamed.groupBy("who").agg(sf.first("shout").alias("shout"), sf.sum("ms").alias("ms"))


@job(events)
def first_of_what_does_not_determine(df: DataFrame) -> DataFrame:
    renamed = df.select(sf.lower("user").alias("who"), "user")
    return renamed.groupBy("who").agg(sf.first("user").alias("user"))  # finds FIRST_VALUE


@job(events)
def constant_in_a_group(df: DataFrame) -> DataFrame:
    only = df.where("page = 'home'")
    return only.groupBy("user").agg(sf.first("page").alias("page"), sf.count("*").alias("n"))


@job({"orders": orders, "users": users})
def inner_join_keeps_the_key(orders: DataFrame, users: DataFrame) -> DataFrame:
    newest = Window.partitionBy("country").orderBy(sf.desc("at"), "order_id")
    joined = orders.join(users, "user")
    return joined.withColumn("n", sf.row_number().over(newest)).where("n <= 2")


@job({"orders": orders, "events": events})
def join_that_multiplies_the_key(orders: DataFrame, events: DataFrame) -> DataFrame:
    newest = Window.partitionBy(orders["user"]).orderBy("order_id")
    joined = orders.join(events.select("user", "page"), "user")
    numbered = joined.withColumn("n", sf.row_number().over(newest))  # finds TIED_ORDER
    return numbered.where("n = 1").select("user", "page")


@job({"orders": orders, "users": users})
def outer_join_loses_what_nulls_do_not_have(orders: DataFrame, users: DataFrame) -> DataFrame:
    left = users.join(orders, "user", "left")
    return left.groupBy("order_id").agg(sf.first("user").alias("user"))  # finds FIRST_VALUE


@job(events)
def union_of_keys(df: DataFrame) -> DataFrame:
    one = df.groupBy("user").agg(sf.max("ms").alias("ms"))
    other = df.groupBy("user").agg(sf.min("ms").alias("ms"))
    return one.union(other).groupBy("user").agg(sf.first("ms").alias("ms"))  # finds FIRST_VALUE


@job(events)
def distinct_over_a_chosen_column(df: DataFrame) -> DataFrame:
    firsts = df.groupBy("user").agg(sf.first("page").alias("page"))  # finds FIRST_VALUE
    return firsts.select("page").distinct().agg(sf.count("*").alias("pages"))


@job(events)
def how_many_users(df: DataFrame) -> DataFrame:
    firsts = df.groupBy("user").agg(sf.first("page").alias("page"))
    return firsts.agg(sf.count("*").alias("users"))


@job(events)
def limit_inside_and_a_group_outside(df: DataFrame) -> DataFrame:
    some = df.limit(4)  # finds LIMIT_WITHOUT_ORDER
    return some.groupBy("user").agg(sf.count("*").alias("n"))


@job(events)
def two_that_reach_other_columns(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(
        sf.first("page").alias("page"),  # finds FIRST_VALUE
        sf.collect_list("ms").alias("all"),  # finds LIST_ORDER
        sf.max("at").alias("at"),
    )


@job(events)
def rank_then_a_filter(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy(sf.desc("ms"))
    return df.withColumn("r", sf.rank().over(window)).where("r = 1").drop("r")


@job(events)
def numbered_and_paired(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at")
    return df.withColumn("n", sf.row_number().over(window)).select("n", "page")  # finds TIED_ORDER


@job(events)
def numbers_alone(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at")
    numbered = df.withColumn("n", sf.row_number().over(window))
    return numbered.groupBy("user").agg(sf.max("n").alias("n"), sf.sum(sf.col("n") * 2).alias("twice"))


@job(events)
def numbers_summed_with_what_ties(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at")
    numbered = df.withColumn("n", sf.row_number().over(window))  # finds TIED_ORDER
    return numbered.groupBy("user").agg(sf.sum(sf.col("n") * sf.col("ms")).alias("weighed"))


@job(events)
def whole_partition_window_is_a_group(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user")
    return df.select("user", sf.first("page").over(window).alias("page"))  # finds FIRST_VALUE


@job(events)
def list_in_a_window(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at").rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    return df.select("user", sf.collect_list("at").over(window).alias("times"))


@job(orders)
def floating_sum_in_one_order(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy("at", "order_id").rowsBetween(Window.unboundedPreceding, 0)
    return df.select("order_id", sf.sum("price").over(window).alias("so_far"))


@job(orders)
def largest_of_floats(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.max("price").alias("most"), sf.count_distinct("price").alias("prices"))


@job(orders)
def floating_sum_as_a_condition(df: DataFrame) -> DataFrame:
    totals = df.groupBy("user").agg(sf.sum("price").alias("total"))  # finds FLOAT_SUM
    return totals.where("total > 0.3").select("user")


@job(orders)
def decimal_after_all(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.sum(sf.col("price").cast("decimal(20,2)")).alias("total"))


@job(events)
def array_sort_by_a_part(df: DataFrame) -> DataFrame:
    visits = sf.collect_list(sf.struct("at", "page"))  # finds LIST_ORDER
    by_time = sf.array_sort(visits, lambda a, b: sf.when(a["at"] < b["at"], -1).when(a["at"] > b["at"], 1).otherwise(0))
    return df.groupBy("user").agg(by_time.alias("path"))


@job(events)
def transform_with_an_index(df: DataFrame) -> DataFrame:
    listed = sf.collect_list("ms")  # finds LIST_ORDER
    numbered = sf.transform(listed, lambda ms, place: ms * place)
    return df.groupBy("user").agg(sf.array_max(numbered).alias("most"))


@job(events)
def mapped_and_summed(df: DataFrame) -> DataFrame:
    doubled = sf.transform(sf.filter(sf.collect_list("ms"), lambda ms: ms > 0), lambda ms: ms * 2)
    return df.groupBy("user").agg(sf.array_max(doubled).alias("most"), sf.sort_array(doubled).alias("all"))


@job(events)
def subtracted_by_hand(df: DataFrame) -> DataFrame:
    listed = sf.collect_list("ms")  # finds LIST_ORDER
    folded = sf.aggregate(listed, sf.lit(0).cast("bigint"), lambda total, ms: ms - total)
    return df.groupBy("user").agg(folded.alias("ms"))


@job(events)
def json_of_a_list(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.to_json(sf.collect_list("page")).alias("pages"))  # finds LIST_ORDER


@job(events)
def hash_of_a_list(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.hash(sf.collect_list("page")).alias("print"))  # finds LIST_ORDER


@job(events)
def a_counter_in_python(df: DataFrame) -> DataFrame:
    numbers = itertools.count()
    number = udf(lambda page: next(numbers), "bigint")
    return df.withColumn("n", number("page"))  # finds UDF_VARIES


def _stamp() -> float:
    return time.time()


@job(events)
def a_clock_behind_a_helper(df: DataFrame) -> DataFrame:
    @udf("double")
    def age(ms: int) -> float:
        return _stamp() - ms

    return df.select("user", age("ms").alias("age"))  # finds UDF_VARIES


@job(events)
def a_hash_in_python(df: DataFrame) -> DataFrame:
    @udf("string")
    def fingerprint(user: str) -> str:
        return hashlib.sha256(user.encode()).hexdigest()

    return df.select(fingerprint("user").alias("id"), "ms").groupBy("id").agg(sf.sum("ms").alias("ms"))


@job(events)
def a_clock_that_only_sorts(df: DataFrame) -> DataFrame:
    return (
        df.withColumn("age", sf.unix_timestamp(sf.current_timestamp()) - sf.col("ms"))
        .orderBy("age")
        .select("user", "ms")
    )


@job(events)
def a_clock_in_a_case(df: DataFrame) -> DataFrame:
    is_old = sf.col("at") < sf.date_sub(sf.current_date(), 30)  # finds CLOCK
    return df.groupBy(sf.when(is_old, "old").otherwise("new").alias("age")).count()


@job(events)
def sample_of_everything(df: DataFrame) -> DataFrame:
    return df.sample(1.0)


@job(events, unknown=True)
def stratified(df: DataFrame) -> DataFrame:
    return df.sampleBy("page", {"a": 0.5}, seed=1)  # finds RANDOM


@job(events)
def first_in_sql(df: DataFrame) -> DataFrame:
    df.createOrReplaceTempView("seen")
    return df.sparkSession.sql(  # finds FIRST_VALUE
        "SELECT user, first_value(page) AS page FROM seen GROUP BY user"
    )


@job(events)
def ordered_subquery_in_sql(df: DataFrame) -> DataFrame:
    df.createOrReplaceTempView("seen")
    return df.sparkSession.sql(  # finds TIED_ORDER
        "SELECT user, page FROM (SELECT *, row_number() OVER (PARTITION BY user ORDER BY at) n FROM seen) WHERE n = 1"
    )


@job(events)
def scalar_subquery_that_is_fixed(df: DataFrame) -> DataFrame:
    df.createOrReplaceTempView("seen")
    return df.sparkSession.sql("SELECT user, ms - (SELECT max(ms) FROM seen) AS below FROM seen")


@job(events)
def sets_of_rows(df: DataFrame) -> DataFrame:
    return df.select("user", "ms").intersect(df.select("user", "ms")).exceptAll(df.where("ms = 0").select("user", "ms"))


@job(events, unknown=True)
def batches_in_python(df: DataFrame) -> DataFrame:
    def doubled(batches: object) -> object:
        for batch in batches:
            batch["ms"] = batch["ms"] * 2
            yield batch[["user", "ms"]]

    return df.mapInPandas(doubled, "user string, ms bigint")


@job(events)
def reused_view_of_one_row(df: DataFrame) -> DataFrame:
    top = df.agg(sf.max("at").alias("latest"))
    return df.crossJoin(top).where("at = latest").groupBy("user").agg(sf.first("latest").alias("latest"))


@job(Event, gives=tight.PartitionBy("user", tight.Seq(Event)))
def no_order_promised_none_made(df: DataFrame) -> DataFrame:
    return df.where("ms > 0")  # finds ORDER_LOST


@job(tight.PartitionBy("user", tight.Seq(Event)), gives=tight.PartitionBy("user", tight.Seq(Event)))
def order_of_the_input_is_kept(df: DataFrame) -> DataFrame:
    return df.where("ms > 0").withColumn("page", sf.upper("page"))


@job(tight.PartitionBy("user", tight.Seq(Event)), gives=tight.PartitionBy("user", tight.Seq(Event)))
def order_of_the_input_is_lost(df: DataFrame) -> DataFrame:
    dealt = df.where("ms > 0").repartition(4)
    return dealt.withColumn("page", sf.upper("page"))  # finds ORDER_LOST


@job(events)
def filtered_and_salted_by_the_same_random(df: DataFrame) -> DataFrame:
    drawn = df.withColumn("r", sf.floor(sf.rand() * 4)).where("r > 0")  # finds RANDOM
    return drawn.groupBy("user", "r").agg(sf.sum("ms").alias("ms")).groupBy("user").agg(sf.sum("ms").alias("ms"))


@job(events)
def array_sort_by_length(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(  # finds LIST_ORDER
        sf.expr(
            """array_sort(collect_list(page), (a, b) -> if(a is null and b is null, 0,
            if(a is null, 1, if(b is null, -1, if(length(a) < length(b), -1, if(length(a) > length(b), 1, 0))))))"""
        ).alias("pages")
    )


@job(events)
def list_as_text(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.collect_list("page").cast("string").alias("pages"))  # finds LIST_ORDER


@job(events, unknown=True)
def slices_in_pandas(df: DataFrame) -> DataFrame:
    def first_row(group: object) -> object:
        return group[:1]

    return df.select("user", "ms").groupBy("user").applyInPandas(first_row, "user string, ms bigint")


@job(events)
def lengths_are_integers(df: DataFrame) -> DataFrame:
    measured = df.withColumn("both", sf.struct("ms", "page"))
    return measured.groupBy("user").agg(sf.sum(sf.length("page")).alias("letters"), sf.sum("both.ms").alias("ms"))


@job(events)
def ranked_at_random(df: DataFrame) -> DataFrame:
    window = Window.partitionBy("user").orderBy(sf.rand())  # finds RANDOM
    return df.select("user", "ms", sf.rank().over(window).alias("place"))


@job(events)
def total_of_a_random_bucket(df: DataFrame) -> DataFrame:
    window = Window.partitionBy(sf.floor(sf.rand() * 2))  # finds RANDOM
    return df.select("user", sf.sum("ms").over(window).alias("ms"))


@job(events)
def sums_of_roots_and_halves(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(
        sf.sum(sf.sqrt("ms")).alias("roots"),  # finds FLOAT_SUM
        sf.sum(sf.col("ms") * 0.5).alias("halves"),  # finds FLOAT_SUM
    )


@job(orders)
def floats_folded_in_a_struct(df: DataFrame) -> DataFrame:
    prices, zero = sf.collect_list("price"), sf.struct(sf.lit(0.0).cast("float").alias("sum"))  # finds FLOAT_SUM
    total = sf.aggregate(prices, zero, lambda total, one: sf.struct((total["sum"] + one.cast("float")).alias("sum")))
    return df.groupBy("user").agg(total.alias("total"))


@job(events)
def products_that_are_rounded_at_every_step(df: DataFrame) -> DataFrame:
    money = "decimal(10,2)"
    rates = sf.collect_list((sf.col("ms") / 4).cast(money))  # finds LIST_ORDER
    product = sf.aggregate(rates, sf.lit(1).cast(money), lambda total, one: (total * one).cast(money))
    return df.groupBy("user").agg(product.alias("rate"))


@job(events)
def sums_that_are_rounded_at_every_step(df: DataFrame) -> DataFrame:
    quarters = (sf.col("ms") % 3 - 1) / 4  # what is halfway is rounded away from zero: 0.25 - 0.25 is 0.1, or -0.1
    prices = sf.collect_list(quarters.cast("decimal(10,2)"))  # finds LIST_ORDER
    tens = "decimal(10,1)"
    total = sf.aggregate(prices, sf.lit(0).cast(tens), lambda total, one: (total + one).cast(tens))
    return df.groupBy("user").agg(total.alias("total"))


@job(events)
def sums_that_are_cut_to_a_bit_at_every_step(df: DataFrame) -> DataFrame:
    listed = sf.collect_list("ms")  # finds LIST_ORDER
    bit = sf.aggregate(
        listed, sf.lit(0).cast("bigint"), lambda total, one: (total + one).cast("boolean").cast("bigint")
    )
    return df.groupBy("user").agg(bit.alias("odd"))


@job(events, unknown=True)
def greatest_of_collated_texts(df: DataFrame) -> DataFrame:
    return df.groupBy("user").agg(sf.max(sf.collate("page", "UTF8_LCASE")).alias("page"))


@job(events, unknown=True)
def distinct_collated_texts(df: DataFrame) -> DataFrame:
    pages = df.select(sf.collate("page", "UTF8_LCASE").alias("page"))
    return pages.intersect(pages)


class Calls:
    kept: ClassVar[list[str]] = []
    dice = random.Random(3)

    @staticmethod
    def note(page: str) -> int:
        Calls.kept.append(page)
        return len(Calls.kept)


@job(events)
def python_with_a_default_that_grows(df: DataFrame) -> DataFrame:
    @udf("bigint")
    def number(page: str, seen: list[str] = []) -> int:  # noqa: B006 - what is tested
        seen.append(page)
        return len(seen)

    return df.select("user", number("page").alias("n"))  # finds UDF_VARIES


@job(events)
def python_with_a_class_that_remembers(df: DataFrame) -> DataFrame:
    return df.select("user", udf(lambda page: Calls.note(page), "bigint")("page").alias("n"))  # finds UDF_VARIES


@job(events)
def python_with_dice_made_outside(df: DataFrame) -> DataFrame:
    return df.select("user", udf(lambda page: Calls.dice.random(), "double")("page").alias("n"))  # finds UDF_VARIES


@job(events)
def python_that_asks_for_its_task(df: DataFrame) -> DataFrame:
    @udf("bigint")
    def partition(page: str) -> int:
        from pyspark import TaskContext

        task = TaskContext.get()
        return -1 if task is None else task.partitionId()

    return df.select("user", partition("page").alias("n"))  # finds UDF_VARIES


@job(events, unknown=True)
def python_that_evaluates_text(df: DataFrame) -> DataFrame:
    return df.select("user", udf(lambda page: str(eval(page)), "string")("page").alias("n"))  # noqa: S307


@job(events, unknown=True)
def tenths_in_pandas(df: DataFrame) -> DataFrame:
    def total(group: Any) -> Any:
        return group.groupby("user").sum().assign(ms=(group["ms"] * 0.1).sum())

    return df.select("user", "ms").groupBy("user").applyInPandas(total, "ms double")


@job(events, unknown=True)
def first_by_its_name_in_pandas(df: DataFrame) -> DataFrame:
    def one(group: Any) -> Any:
        return group.groupby("user").agg({"ms": "first"})

    return df.select("user", "ms").groupBy("user").applyInPandas(one, "ms bigint")


@job(events)
def row_ids_that_are_counted_on(df: DataFrame) -> DataFrame:
    named = df.select("user", (sf.monotonically_increasing_id() % 2).alias("half"))  # finds ROW_ID
    return named.groupBy("half").agg(sf.count("*").alias("n")).select("n")


@job(events)
def subtracted_from_each_other(df: DataFrame) -> DataFrame:
    listed = sf.collect_list("ms")  # finds LIST_ORDER
    left = sf.aggregate(listed, sf.lit(100).cast("bigint"), lambda left, ms: ms - left)
    return df.groupBy("user").agg(left.alias("left"))


@job(events)
def seen_pages_of_a_list(df: DataFrame) -> DataFrame:
    wanted = sf.array(sf.lit("home"), sf.lit("a"))
    return df.groupBy("user").agg(sf.array_intersect(sf.collect_set("page"), wanted).alias("p"))  # finds LIST_ORDER


@job(events)
def whether_the_first_is_there(df: DataFrame) -> DataFrame:
    page = sf.when(sf.col("ms") > 2, sf.col("page"))
    return df.groupBy("user").agg(sf.first(page).isNotNull().alias("has_page"))  # finds FIRST_VALUE
