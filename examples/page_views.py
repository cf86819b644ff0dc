"""Page views with the address of the visitor: a join of a stream with a table that changes, for very few users.

    python examples/page_views.py

Cut by user, there are never more workers busy than users. But views do not depend on each other, not even those of one
user: only a new address has to wait for the views before it, and to come before those after it.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamtight as tight

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PageView = tight.Kind("PageView", time=int, user=int, page=int)
GetAddress = tight.Kind("GetAddress", time=int, user=int)
UpdateAddress = tight.Kind("UpdateAddress", time=int, user=int, zip=int)
Viewed = tight.Kind("Viewed", time=int, user=int, page=int, zip=int)
Address = tight.Kind("Address", time=int, user=int, zip=int)
Updated = tight.Kind("Updated", time=int, user=int, zip=int)

NOWHERE = 10_000
"""The zip code of users of whom none is known yet."""
ROWS_AT_ONCE = 100_000
State = dict[int, int]
"""The zip code of each user."""


class PageViews(tight.ForkJoin):
    """Where does the visitor live, for each page view; and which addresses were asked for, and which changed?

    An update of a user's address depends on everything else of this user: other updates, gets and page views. Gets and
    page views do not depend on each other, and different users have nothing to do with each other.

    With `views=False`, page views are joined but not given, as in the published measurements of this program.
    """

    takes, gives = (PageView, GetAddress, UpdateAddress), (Viewed, Address, Updated)
    depends = tight.barrier(UpdateAddress) & tight.same("user")
    everyone = tight.StateType(PageView, GetAddress, UpdateAddress)
    one_user = tight.StateType(PageView, GetAddress, UpdateAddress)
    gets, views = tight.StateType(GetAddress), tight.StateType(PageView)
    branches = (
        tight.Branch(everyone, everyone, one_user),
        tight.Branch(one_user, gets, views),
        tight.Branch(one_user, one_user, views),
        tight.Branch(views, views, views),
    )

    def __init__(self, *, views: bool = True) -> None:
        super().__init__()
        self.gives_views = views

    def init(self) -> State:
        return {}

    def update(self, state: State, event: Any, emit: Any) -> State:
        if event.kind is PageView:
            zip_code = state.get(event.user, NOWHERE)
            if self.gives_views:
                emit(Viewed(event.time, event.user, event.page, zip_code))
        elif event.kind is GetAddress:
            emit(Address(event.time, event.user, state.get(event.user, NOWHERE)))
        else:
            state[event.user] = event.zip
            emit(Updated(event.time, event.user, event.zip))
        return state

    def update_block(self, state: State, block: Any, emit: Any) -> Any:
        if block.kind is not PageView:
            return NotImplemented
        import numpy as np

        users, place = np.unique(block["user"], return_inverse=True)
        zips = np.array([state.get(user, NOWHERE) for user in users.tolist()], dtype=np.int64)[place]
        if self.gives_views:
            emit.block(Viewed, time=block["time"], user=block["user"], page=block["page"], zip=zips)
        return state

    def fork(self, state: State, left: tight.TagSet, right: tight.TagSet) -> tuple[State, State]:
        # Both sides get a copy if both see views of a user; what neither side will see must not be lost.
        to_the_right = {user: zip_code for user, zip_code in state.items() if comes(right, user)}
        to_the_left = {
            user: zip_code for user, zip_code in state.items() if user not in to_the_right or comes(left, user)
        }
        return to_the_left, to_the_right

    def join(self, left: State, right: State) -> State:
        return {**left, **right}


def comes(tags: tight.TagSet, user: int) -> bool:
    """Whether anything of a user may come."""
    return any(tags(kind, user=user) for kind in PageViews.takes)


# -- the same join, with an advertisement for each view ----------------------------------------------------------------

PAGES = {page: {"topic": page % 8, "tone": page * 31 % 100} for page in range(1000)}
ADVERTS = {topic: [(topic * 100 + number, number * 23 % 100, number * 7) for number in range(4)] for topic in range(8)}
"""For each topic the advertisements: number, the region that they are meant for, what is paid for one."""


class ChosenAdverts(PageViews):
    """Which advertisement suits a page and the address of its visitor best? It is given in the place of the page.

    What depends on what is as in `PageViews`. Each view takes some look-ups, as in most real programs.
    """

    update_block = tight.ForkJoin.update_block  # one event after the other, as the look-ups are written

    def update(self, state: State, event: Any, emit: Any) -> State:
        if event.kind is not PageView:
            return super().update(state, event, emit)
        zip_code = state.get(event.user, NOWHERE)
        advert = best_advert(event.page, zip_code)
        if self.gives_views:
            emit(Viewed(event.time, event.user, advert, zip_code))
        return state


def best_advert(page: int, zip_code: int) -> int:
    """The advertisement for a page and an address: near is good, and so is well paid."""
    about = PAGES[page % 1000]
    region, tone = zip_code // 1000, about["tone"]
    best, best_points = -1, -1
    for number, meant_for, cents in ADVERTS[about["topic"]]:
        points = 1000 + cents - abs(region - meant_for) - (tone - meant_for) % 10
        if points > best_points:
            best, best_points = number, points
    return best


# -- the input ---------------------------------------------------------------------------------------------------------


def streams(count: int, every: int, *, users: int = 2) -> list[tight.InputStream]:
    """Streams of page views, each of one user; gets; and updates, one of each user for so many times."""
    fast = [
        tight.InputStream(f"views_{number}", tight.tags(PageView, user=number % users), rate=every)
        for number in range(count)
    ]
    gets = {tight.tags(GetAddress, user=user): 10 for user in range(users)}
    updates = {tight.tags(UpdateAddress, user=user): 1 for user in range(users)}
    return [*fast, tight.InputStream("gets", gets), tight.InputStream("updates", updates)]


def make(directory: str | Path, *, streams: int, events: int, every: int, seed: int = 0, users: int = 2) -> None:
    """Write a file for each stream: so many views, one for each time; an update of each user every so often."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("views_*.parquet"):
        old.unlink()
    schema = pa.schema({"time": pa.int64(), "user": pa.int64(), "page": pa.int64()})
    for number in range(streams):
        rng, last = np.random.default_rng([seed, number]), events // streams + (number < events % streams)
        with pq.ParquetWriter(folder / f"views_{number}.parquet", schema) as file:
            for start in range(0, last, ROWS_AT_ONCE):
                time = np.arange(start, min(start + ROWS_AT_ONCE, last)) + 1
                user, page = np.full(time.size, number % users), rng.integers(0, 1000, time.size)
                file.write_table(pa.table({"time": time, "user": user, "page": page}))
    last, rng = -(-events // streams), np.random.default_rng([seed, streams])
    for name, step in (("gets", max(every // 10, 1)), ("updates", every)):
        time = np.repeat(np.arange(step, last + 1, step), users)
        table = pa.table({"time": time, "user": np.resize(np.arange(users), time.size)})
        if name == "updates":
            table = table.append_column("zip", pa.array(rng.integers(10_000, 100_000, time.size)))
        pq.write_table(table, folder / f"{name}.parquet", row_group_size=ROWS_AT_ONCE)


# -- the same question without fork and join ---------------------------------------------------------------------------


def sequential(directory: str | Path, *, views: bool = True) -> dict[str, list[Any]]:
    """The plain program: one loop over everything in the order of time."""
    viewed, addresses, updated = [], [], []
    zips: dict[int, int] = {}
    for time, kind, user, payload in in_order(directory):
        if kind == 0:
            zip_code = zips.get(user, NOWHERE)
            if views:
                viewed.append((time, user, payload, zip_code))
        elif kind == 1:
            addresses.append((time, user, zips.get(user, NOWHERE)))
        else:
            zips[user] = payload
            updated.append((time, user, payload))
    return {"Viewed": viewed, "Address": addresses, "Updated": updated}


def sequential_adverts(directory: str | Path, *, views: bool = True) -> dict[str, list[Any]]:
    """The same for `ChosenAdverts`."""
    viewed, addresses, updated = [], [], []
    zips: dict[int, int] = {}
    for time, kind, user, payload in in_order(directory):
        if kind == 0:
            zip_code = zips.get(user, NOWHERE)
            advert = best_advert(payload, zip_code)
            if views:
                viewed.append((time, user, advert, zip_code))
        elif kind == 1:
            addresses.append((time, user, zips.get(user, NOWHERE)))
        else:
            zips[user] = payload
            updated.append((time, user, payload))
    return {"Viewed": viewed, "Address": addresses, "Updated": updated}


def in_order(directory: str | Path) -> Iterator[tuple[int, int, int, int]]:
    """All rows by time; where times are equal, views (0), gets (1), updates (2): time, kind, user, page or zip code."""
    import numpy as np
    import pyarrow.parquet as pq

    names = [*sorted(path.stem for path in Path(directory).glob("views_*.parquet")), "gets", "updates"]
    tables = [pq.read_table(Path(directory) / f"{name}.parquet") for name in names]
    kinds = [0] * (len(tables) - 2) + [1, 2]
    time, user = (np.concatenate([table[name].to_numpy() for table in tables]) for name in ("time", "user"))
    kind = np.concatenate([np.full(len(table), kind) for table, kind in zip(tables, kinds, strict=True)])
    payload = np.concatenate([table[-1].to_numpy() for table in tables])
    order = np.argsort(time, kind="stable")
    for start in range(0, len(order), ROWS_AT_ONCE):
        rows = order[start : start + ROWS_AT_ONCE]
        yield from zip(*(column[rows].tolist() for column in (time, kind, user, payload)), strict=True)


def by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The job one writes by hand: all rows of a user in the order of time, each with the last zip code before it."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sf

    def read(files: str, kind: int) -> DataFrame:
        return spark.read.parquet(f"{directory}/{files}.parquet").withColumn("kind", sf.lit(kind))

    updates = read("updates", 2)
    asked = read("views_*", 0).unionByName(read("gets", 1), allowMissingColumns=True)
    rows = asked.unionByName(updates, allowMissingColumns=True)
    so_far = Window.partitionBy("user").orderBy("time", "kind").rowsBetween(Window.unboundedPreceding, 0)
    known = sf.last("zip", ignorenulls=True).over(so_far)
    joined = rows.withColumn("zip", sf.coalesce(known, sf.lit(NOWHERE)))
    return {
        "Viewed": joined.filter("kind = 0").select("time", "user", "page", "zip"),
        "Address": joined.filter("kind = 1").select("time", "user", "zip"),
        "Updated": updates.select("time", "user", "zip"),
    }


def quickly_by_hand(spark: SparkSession, directory: str | Path) -> dict[str, DataFrame]:
    """The quick job by hand, if all updates fit into memory: each batch looks them up where it is read."""
    import numpy as np
    import pyarrow as pa

    updates = spark.read.parquet(f"{directory}/updates.parquet")
    known = {
        user: (of_user["time"].to_numpy(), np.array([NOWHERE, *of_user["zip"]]))
        for user, of_user in updates.toPandas().sort_values("time").groupby("user")
    }

    def look_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time, users = batch["time"].to_numpy(), batch["user"].to_numpy()
            zips = np.full(len(batch), NOWHERE)
            for user in np.unique(users).tolist():
                if user in known:
                    mine, (changed_at, zips_then) = users == user, known[user]
                    zips[mine] = zips_then[np.searchsorted(changed_at, time[mine])]
            yield batch.append_column("zip", pa.array(zips))

    views = spark.read.parquet(f"{directory}/views_*.parquet")
    gets = spark.read.parquet(f"{directory}/gets.parquet")
    return {
        "Viewed": views.mapInArrow(look_up, "time long, user long, page long, zip long"),
        "Address": gets.mapInArrow(look_up, "time long, user long, zip long"),
        "Updated": updates.select("time", "user", "zip"),
    }


def main() -> int:
    """May it be split? Its plan, a few events on two workers here, and many on Spark, compared with the plain loop."""
    ready = tight.parallelize(PageViews(), streams(2, every=1_000), workers=2)
    print(ready.verdict)
    print(ready.plan.show())
    some = {
        "views_0": [PageView(1, 0, 17), PageView(3, 0, 18), PageView(5, 0, 17)],
        "views_1": [PageView(2, 1, 17), PageView(4, 1, 20)],
        "gets": [GetAddress(4, 0)],
        "updates": [UpdateAddress(2, 0, 19104), UpdateAddress(4, 0, 19103), UpdateAddress(4, 1, 94110)],
    }
    print(*ready.run(some), sep="\n")

    with tempfile.TemporaryDirectory() as folder:
        make(folder, streams=2, events=100_000, every=1_000)
        files = {stream.name: f"{folder}/{stream.name}.parquet" for stream in ready.plan.streams}
        outputs = ready.events(ready.on_spark(files))
        expected = Counter((name, *row) for name, rows in sequential(folder).items() for row in rows)
    same = Counter((event.kind.name, *event.as_dict().values()) for event in outputs) == expected
    print(f"{len(outputs)} outputs on Spark; those of the plain loop: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
