"""The five reducers of the DiffStream paper (section 5.3): as bugs, and where what is known makes them right."""

from __future__ import annotations

from corpus import job
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

import streamtight as tight

items = tight.table(key=str, x=int, y=int)


def put(index: Column, item: Column) -> Column:
    others = sf.map_filter(index, lambda x, _: x != item.x)
    return sf.map_concat(others, sf.create_map(item.x, item.y))


@job(items)
def single_item(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(sf.first("x").alias("x"))  # finds FIRST_VALUE


@job(items)
def index_value_pair(df: DataFrame) -> DataFrame:
    rows = sf.collect_list(sf.struct("x", "y"))  # finds LIST_ORDER
    return df.groupBy("key").agg(sf.aggregate(rows, sf.create_map().cast("map<bigint, bigint>"), put).alias("y_of_x"))


@job(items)
def max_row(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(sf.max_by("x", "y").alias("x"))  # finds TIED_ORDER


@job(items)
def first_n(df: DataFrame) -> DataFrame:
    lists = df.groupBy("key").agg(sf.slice(sf.collect_list("x"), 1, 2).alias("xs"))  # finds LIST_ORDER
    return lists.select("key", sf.explode("xs").alias("x"))


@job(items)
def str_concat(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(sf.concat_ws("@", sf.collect_list("x")).alias("text"))  # finds TEXT_ORDER


@job(items, gives=tight.PartitionBy("key", tight.Seq(tight.Kind("Picked", key=str, x=int))))
def str_stream_in_order(df: DataFrame) -> DataFrame:
    lists = df.groupBy("key").agg(sf.collect_list("x").alias("xs"))
    return lists.select("key", sf.explode("xs").alias("x"))  # finds ORDER_LOST


@job(items.key("key"))
def single_item_of_keys_that_come_once(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(sf.first("x").alias("x"))


@job(items)
def index_of_sorted_pairs(df: DataFrame) -> DataFrame:
    rows = sf.sort_array(sf.collect_list(sf.struct("x", "y")))
    return df.groupBy("key").agg(sf.aggregate(rows, sf.create_map().cast("map<bigint, bigint>"), put).alias("y_of_x"))


@job(items.key("key", "y"))
def max_row_without_ties(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(sf.max_by("x", "y").alias("x"))


@job(items.key("key"))
def first_n_of_keys_that_come_once(df: DataFrame) -> DataFrame:
    lists = df.groupBy("key").agg(sf.slice(sf.collect_list("x"), 1, 2).alias("xs"))
    return lists.select("key", sf.explode("xs").alias("x"))


@job(items)
def str_concat_sorted(df: DataFrame) -> DataFrame:
    return df.groupBy("key").agg(sf.concat_ws("@", sf.sort_array(sf.collect_list("x"))).alias("text"))


@job(items)
def str_stream_in_any_order(df: DataFrame) -> DataFrame:
    lists = df.groupBy("key").agg(sf.collect_list("x").alias("xs"))
    return lists.select("key", sf.explode("xs").alias("x"))
