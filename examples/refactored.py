"""A report that was rewritten three times: in SQL, with a join, and with a window. Is it still the same report?

The join loses orders without a user; the other two are right, for every table of orders.

    python examples/refactored.py
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

import streamtight as tight

orders = tight.table(id=int, user=tight.nullable(int), amount=int)


def largest(orders: DataFrame) -> DataFrame:
    """Each user's largest order above 100."""
    top = orders.groupBy("user").agg(sf.max("amount").alias("amount"))
    return top.where("amount > 100")


def in_sql(orders: DataFrame) -> DataFrame:
    """The same in SQL, with the condition before the groups."""
    return orders.sparkSession.sql("SELECT user, max(amount) AS amount FROM orders WHERE amount > 100 GROUP BY user")


def with_a_join(orders: DataFrame) -> DataFrame:
    """The orders that are as large as the largest of their user. Null is not equal to null, so some are lost."""
    top = orders.groupBy("user").agg(sf.max("amount").alias("top"))
    found = orders.join(top, "user").where("amount = top AND amount > 100")
    return found.select("user", "amount").distinct()


def with_a_window(orders: DataFrame) -> DataFrame:
    """The same with a window, which takes orders without a user for those of one user, as groupBy does."""
    top = sf.max("amount").over(Window.partitionBy("user"))
    return orders.withColumn("top", top).where("amount = top AND amount > 100").select("user", "amount").distinct()


if __name__ == "__main__":
    for rewritten in (in_sql, with_a_join, with_a_window):
        print(tight.prove(largest, rewritten, inputs=[orders]).story())
