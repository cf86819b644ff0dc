"""A count for every batch, and a count of all so far: two right jobs, and two that are off by a little.

The first property is the one with which the paper of sscheck begins.

    python examples/counts.py
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.streaming import DStream

import streamtight as tight
from streamtight import gen

Measured = tight.Kind("Measured", value=float)
measured = gen.always(gen.batch(Measured, size=(0, 5)), during=6)


# -- a DStream of counts ---------------------------------------------------------------------------------------------


def count(values: DStream[Any]) -> DStream[Any]:
    """How many there are in each batch."""
    return values.count()


def faulty_count(values: DStream[Any]) -> DStream[Any]:
    """One less."""
    return values.count().map(lambda n: n - 1)


Number = tight.Kind("Number", n=int)
one_number_the_right_one = tight.same_rows("output", lambda letter: [Number(len(letter.input))])
counted = tight.always(one_number_the_right_one.named("the count of the batch"), during=6)


# -- a DataFrame of totals -------------------------------------------------------------------------------------------


def total(values: DataFrame) -> DataFrame:
    """How many there were so far."""
    return values.groupBy().count()


def faulty_total(values: DataFrame) -> DataFrame:
    """Those that are different, which nobody wanted."""
    return values.dropDuplicates().groupBy().count()


# For the total seen now: in the next batch it is greater by what came in.
grows = tight.now(
    lambda now: tight.next(lambda after: after.output[0].count == now.output[0].count + len(after.input)),
    name="the total grows by what comes in",
)
totals = tight.always(grows, during=5)


def main() -> None:
    """Ask about all four."""
    for job in (count, faulty_count):
        print(tight.check(job, counted, on=measured, mode="dstream", gives=Number, runs=5).story())
    for job in (total, faulty_total):
        print(tight.check(job, totals, on=measured, mode="complete").story())


if __name__ == "__main__":
    main()
