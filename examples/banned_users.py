"""Bad users stay banned: a property over time, a job that breaks it, and two that keep it.

Users come with whether they behaved. Whoever did not must be among the banned from then on, in every batch. The paper
of sscheck has this system in section 3.3; there the first job is the one that fails.

    python examples/banned_users.py
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

import streamtight as tight
from streamtight import gen

User = tight.Kind("User", id=int, ok=bool)
BAD = User(15, ok=False)


def stateless(users: DataFrame) -> DataFrame:
    """Whoever misbehaves in this batch: forgotten in the next one."""
    return users.where("NOT ok").select("id")


def counted(users: DataFrame) -> DataFrame:
    """Whoever has ever misbehaved; in complete mode all of them come out of every batch."""
    return users.where("NOT ok").groupBy("id").count().select("id")


class Banned(StatefulProcessor):
    """Keeps the banned users, and gives all of them in every batch that has a row."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Called by Spark, once for each task."""
        self._ids = handle.getMapState("ids", "id long", "since long")

    def handleInputRows(self, key: Any, rows: Iterator[pd.DataFrame], timer_values: Any) -> Iterator[pd.DataFrame]:  # noqa: N802
        """Called by Spark with the rows of one batch."""
        for frame in rows:
            for user in frame.loc[~frame["ok"], "id"]:
                self._ids.updateValue((int(user),), (0,))
        yield pd.DataFrame({"id": sorted(row[0] for row in self._ids.keys())})  # noqa: SIM118 - a state, not a dict

    def close(self) -> None:
        """Called by Spark at the end."""


def remembered(users: DataFrame) -> DataFrame:
    """The same with a state of its own, under one key: every batch looks at all of it."""
    return (
        users.withColumn("everyone", sf.lit(0))
        .groupBy("everyone")
        .transformWithStateInPandas(Banned(), "id long", "append", "none")
    )


good_users = gen.batch(User, size=20, id=range(1, 51), ok=[True])
with_a_bad_one = good_users + gen.batch_of([BAD])
users = gen.until(good_users, with_a_bad_one, within=10) + gen.always(good_users | with_a_bad_one, during=14)

all_good = tight.all_records("input", lambda user: user.ok).named("all good")
bad = tight.some_record("input", lambda user: user == BAD).named("bad")
banned = tight.some_record("output", lambda row: row.id == BAD.id).named("banned")

stays_banned = tight.until(all_good, bad, within=10) & tight.always(bad >> tight.always(banned, during=5), during=10)


def main() -> None:
    """Ask about all three."""
    print(tight.check(stateless, stays_banned, on=users, runs=10).story())
    print(tight.check(counted, stays_banned, on=users, runs=10, mode="complete").story())
    print(tight.check(remembered, stays_banned, on=users, runs=5).story())


if __name__ == "__main__":
    main()
