"""Every order is followed by a shipment or an alert within six batches: a join of two streams, with a bound.

python examples/orders.py
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import DataFrame

import streamtight as tight
from streamtight import gen

Order = tight.Kind("Order", number=int, ordered_at=datetime)
Shipment = tight.Kind("Shipment", shipped=int, shipped_at=datetime)
STREAMS = {"orders": Order, "shipments": Shipment}
NOON = datetime(2024, 5, 1, 12)


def followed(orders: DataFrame, shipments: DataFrame) -> DataFrame:
    """The shipment of each order; none, which is the alert, once it is too late for one."""
    return orders.withWatermark("ordered_at", "1 minute").join(
        shipments.withWatermark("shipped_at", "1 minute"),
        on=_in_time(),
        how="left_outer",
    )


def only_shipped(orders: DataFrame, shipments: DataFrame) -> DataFrame:
    """The same without the alert: an order that is never shipped is never heard of again."""
    return orders.withWatermark("ordered_at", "1 minute").join(
        shipments.withWatermark("shipped_at", "1 minute"), on=_in_time(), how="inner"
    )


def _in_time():  # type: ignore[no-untyped-def]
    from pyspark.sql import functions as sf

    return sf.expr("number = shipped AND shipped_at BETWEEN ordered_at AND ordered_at + INTERVAL 2 MINUTES")


# A batch a minute: orders, and shipments for some of them. The clock of both streams goes on, or nothing would close.
everything = gen.always(
    gen.batch(Order, size=(1, 2), number=range(4)) + gen.batch(Shipment, size=1, shipped=range(4)), during=8
)
traffic = everything.timed("ordered_at", start=NOON, every=timedelta(minutes=1)).timed(
    "shipped_at", start=NOON, every=timedelta(minutes=1)
)

answered = tight.forall(
    lambda letter: letter["orders"],
    lambda order: tight.eventually(tight.some_record("output", lambda row: row.number == order.number), within=6),
).named("its orders are answered within 6 batches")
always_answered = tight.always(answered, during=3)


def main() -> None:
    """Ask about both."""
    for job in (followed, only_shipped):
        print(tight.check(job, always_answered, on=traffic, takes=STREAMS, runs=8).story())


if __name__ == "__main__":
    main()
