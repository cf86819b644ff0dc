"""Streaming jobs: state, watermarks, and the same choices as in batch jobs."""

from __future__ import annotations

from datetime import datetime

from corpus import job
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import streamtight as tight

Click = tight.Kind("Click", user=str, page=str, at=datetime, ms=int)
View = tight.Kind("View", viewer=str, ad=str, seen=datetime)


@job(Click, mode="update")
def counts_without_a_watermark(df: DataFrame) -> DataFrame:
    return df.groupBy("user").count()  # finds NO_WATERMARK


@job(Click, mode="update")
def a_watermark_that_bounds_nothing(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.groupBy("user").count()  # finds UNBOUNDED_STATE


@job(Click, mode="append")
def duplicates_for_ever(df: DataFrame) -> DataFrame:
    return df.dropDuplicates(["user", "page", "at", "ms"])  # finds NO_WATERMARK


@job(Click, mode="append")
def duplicates_by_user_for_ever(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.dropDuplicates(["user"]).select("user")  # finds UNBOUNDED_STATE


@job({"clicks": Click, "views": View}, mode="append")
def joined_for_ever(clicks: DataFrame, views: DataFrame) -> DataFrame:
    return clicks.join(views, clicks.user == views.viewer)  # finds NO_WATERMARK


@job({"clicks": Click, "views": View}, mode="append")
def joined_without_a_bound_of_time(clicks: DataFrame, views: DataFrame) -> DataFrame:
    late = clicks.withWatermark("at", "10 minutes")
    shown = views.withWatermark("seen", "10 minutes")
    return late.join(shown, late.user == shown.viewer)  # finds UNBOUNDED_STATE


@job({"clicks": Click, "views": View}, mode="append")
def joined_with_two_watermarks(clicks: DataFrame, views: DataFrame) -> DataFrame:
    late = clicks.withWatermark("at", "10 minutes")
    shown = views.withWatermark("seen", "2 hours")
    return late.join(  # finds SHARED_WATERMARK
        shown,
        (late.user == shown.viewer) & (late.at >= shown.seen) & (late.at <= shown.seen + sf.expr("INTERVAL 1 HOUR")),
    )


@job(Click, mode="append")
def first_page_of_each_window(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.groupBy("user", sf.window("at", "5 minutes")).agg(
        sf.first("page").alias("page"),  # finds FIRST_VALUE
    )


@job(Click, mode="append")
def windowed_counts(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.groupBy(sf.window("at", "5 minutes"), "user").agg(sf.count("*").alias("n"), sf.max("ms").alias("ms"))


@job(Click, mode="complete")
def counts_as_a_whole_table(df: DataFrame) -> DataFrame:
    return df.groupBy("page").count()


@job(Click, mode="append")
def only_filtered(df: DataFrame) -> DataFrame:
    return df.where("ms > 0").select("user", sf.upper("page").alias("page"))


@job(Click, mode="append")
def duplicates_within_the_watermark(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.dropDuplicates(["user", "at"]).select("user", "at")


@job(Click, mode="append")
def duplicates_soon_forgotten(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.dropDuplicatesWithinWatermark(["user", "page"]).select("user", "page")


@job({"clicks": Click, "views": View}, mode="append")
def joined_within_an_hour(clicks: DataFrame, views: DataFrame) -> DataFrame:
    late = clicks.withWatermark("at", "10 minutes")
    shown = views.withWatermark("seen", "10 minutes")
    soon = (late.user == shown.viewer) & (late.at >= shown.seen) & (late.at <= shown.seen + sf.expr("INTERVAL 1 HOUR"))
    return late.join(shown, soon)


@job({"clicks": Click, "views": View}, mode="append")
def joined_with_all_that_came_before(clicks: DataFrame, views: DataFrame) -> DataFrame:
    late = clicks.withWatermark("at", "10 minutes")
    shown = views.withWatermark("seen", "10 minutes")
    return late.join(shown, (late.user == shown.viewer) & (late.at >= shown.seen))  # finds UNBOUNDED_STATE


@job({"clicks": Click, "views": View}, mode="append")
def joined_by_the_difference_of_times(clicks: DataFrame, views: DataFrame) -> DataFrame:
    late = clicks.withWatermark("at", "10 minutes")
    shown = views.withWatermark("seen", "10 minutes")
    soon = (late.at - shown.seen <= sf.expr("INTERVAL 1 HOUR")) & (shown.seen <= late.at)
    return late.join(shown, (late.user == shown.viewer) & soon)


@job(Click, mode="append")
def hours_that_are_no_windows(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.groupBy(sf.date_trunc("hour", "at").alias("hour"), "user").count()  # finds UNBOUNDED_STATE


@job(Click, mode="append")
def windows_of_windows(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    minutes = late.groupBy(sf.window("at", "1 minute"), "user").count()
    return minutes.groupBy(sf.window(sf.window_time("window"), "1 hour")).agg(sf.sum("count").alias("n"))


@job(Click, mode="append")
def sessions(df: DataFrame) -> DataFrame:
    late = df.withWatermark("at", "10 minutes")
    return late.groupBy(sf.session_window("at", "5 minutes"), "user").count()
