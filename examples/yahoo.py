"""Do two versions of the Yahoo streaming benchmark still agree, while they run? And what does it cost to ask?

    python examples/yahoo.py                      half a minute with generated events; then one version gets a bug
    python examples/yahoo.py --kafka --redis      events from a Kafka broker, campaigns and counts in a Redis server
    python examples/yahoo.py --bug-after 0        no bug

Advertisements are shown, clicked and bought: JSON events, of which the views are kept, joined with the campaigns of the
ads, and counted for each campaign and ten seconds. One version runs in one task, the other in several. They are
compared after the join, as rows in no order, since the counts do not depend on it; and both go on to count. The broker
and the server are started on loopback and stopped again by kafka_broker.py and redis_server.py beside this file.
"""

from __future__ import annotations

import argparse
import contextlib
import secrets
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import streamtight as tight

sys.path.append(str(Path(__file__).parent))

CAMPAIGNS, ADS_PER_CAMPAIGN = 100, 10
WINDOW_MS = 10_000
VERSIONS = ("one task", "several")
TOPIC = "ad-events"
FIELDS = (
    "user_id string, page_id string, ad_id string, ad_type string, event_type string, event_time string, "
    "ip_address string"
)
FAST = {  # what tight.session() switches off for tests of a few rows
    "spark__sql__codegen__wholeStage": "true",
    "spark__driver__extraJavaOptions": "-XX:+UseG1GC",  # and the compiler that takes its time
    "spark__driver__memory": "2g",
    "spark__sql__session__timeZone": "UTC",
}


# -- the job ---------------------------------------------------------------------------------------------------------


def views(events: DataFrame, campaigns: DataFrame, *, tasks: int, bug_from: int | None = None) -> DataFrame:
    """The ads that were viewed, with their campaigns: parse, filter, project, join. `events` has JSON in `value`.

    tasks      1: all in one task; more: events are spread over so many
    bug_from   from this event time on (in milliseconds), the ads of one campaign are looked up in another
    """
    spread = events.coalesce(1) if tasks == 1 else events.repartition(tasks)
    parsed = spread.select(sf.from_json("value", FIELDS).alias("event")).select("event.*")
    viewed = parsed.where(parsed.event_type == "view").select("ad_id", sf.col("event_time").cast("long"))
    joined = viewed.join(sf.broadcast(campaigns), "ad_id").select("campaign_id", "ad_id", "event_time")
    if bug_from is None:
        return joined
    is_wrong = (sf.col("event_time") >= bug_from) & (sf.col("campaign_id") == campaign_name(7))
    return joined.withColumn("campaign_id", sf.when(is_wrong, campaign_name(8)).otherwise(sf.col("campaign_id")))


def counts(viewed: DataFrame) -> DataFrame:
    """How often each campaign was viewed in each ten seconds."""
    window = (sf.col("event_time") - sf.col("event_time") % WINDOW_MS).alias("window")
    return viewed.groupBy("campaign_id", window).agg(
        sf.count("*").alias("views"), sf.min("event_time").alias("first"), sf.max("event_time").alias("last")
    )


# -- what goes in ----------------------------------------------------------------------------------------------------


def campaign_name(number: int) -> str:
    """The id of a campaign."""
    return f"campaign-{number:03}"


def ads() -> list[tuple[str, str]]:
    """All ads, with the campaigns that they belong to."""
    number = CAMPAIGNS * ADS_PER_CAMPAIGN
    return [(f"ad-{ad:012}", campaign_name(ad // ADS_PER_CAMPAIGN)) for ad in range(number)]


def as_json(numbered: DataFrame, *, start_ms: int, per_second: int) -> DataFrame:
    """Events in JSON, for rows with a number in `value`: the same number always gives the same event."""
    number = sf.col("value")
    kinds, sorts = ("view", "click", "purchase"), ("banner", "modal", "sponsored-search", "mail", "mobile")

    def pick(salt: int, count: int) -> Any:
        return sf.pmod(sf.xxhash64(number, sf.lit(salt)), sf.lit(count)).cast("int")

    def one_of(texts: tuple[str, ...], salt: int) -> Any:
        return sf.element_at(sf.array(*map(sf.lit, texts)), pick(salt, len(texts)) + 1)

    event = sf.struct(
        sf.md5(sf.concat(sf.lit("user"), pick(1, 100))).alias("user_id"),
        sf.md5(sf.concat(sf.lit("page"), pick(2, 100))).alias("page_id"),
        sf.format_string("ad-%012d", pick(3, CAMPAIGNS * ADS_PER_CAMPAIGN)).alias("ad_id"),
        one_of(sorts, 4).alias("ad_type"),
        one_of(kinds, 5).alias("event_type"),
        (sf.lit(start_ms) + (number * 1000 / per_second).cast("long")).cast("string").alias("event_time"),
        sf.lit("1.2.3.4").alias("ip_address"),
    )
    return numbered.select(sf.to_json(event).alias("value"))


class Generated:
    """Events that Spark generates: so many for each micro-batch, one a second."""

    def __init__(self, spark: SparkSession, per_second: int) -> None:
        self.per_second = per_second
        self.start_ms = int(time.time() * 1000)
        self._spark = spark

    def read(self) -> DataFrame:
        """A stream of events, the same each time it is read."""
        source = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", self.per_second)
        return as_json(source.load(), start_ms=self.start_ms, per_second=self.per_second)


class Kafka:
    """Events on a topic of a broker, written by a thread: so many a second."""

    def __init__(self, spark: SparkSession, per_second: int, options: dict[str, str]) -> None:
        self.per_second = per_second
        self.start_ms = int(time.time() * 1000)
        self._spark, self._options = spark, options
        self._stop = threading.Event()
        self.write(range(1))  # makes the topic
        self._thread = threading.Thread(target=self._produce, name="ad-events", daemon=True)

    def read(self, **further: str) -> DataFrame:
        """A stream of what comes on the topic, from its beginning."""
        stream = self._spark.readStream.format("kafka").options(**self._options, **further).option("subscribe", TOPIC)
        return stream.option("startingOffsets", "earliest").load().select(sf.col("value").cast("string").alias("value"))

    def write(self, numbers: range) -> None:
        """Put the events of these numbers on the topic."""
        numbered = self._spark.range(numbers.start, numbers.stop, 1, 1).withColumnRenamed("id", "value")
        events = as_json(numbered, start_ms=self.start_ms, per_second=self.per_second)
        events.write.format("kafka").options(**self._options).option("topic", TOPIC).save()

    def start(self) -> None:
        """Begin to write."""
        self.start_ms = int(time.time() * 1000)
        self._thread.start()

    def stop(self) -> None:
        """Stop writing."""
        self._stop.set()
        self._thread.join()

    def _produce(self) -> None:
        written = 1
        while not self._stop.wait(0.2):
            due = int((time.time() * 1000 - self.start_ms) * self.per_second / 1000)
            if due > written:
                self.write(range(written, due))
                written = due


# -- where counts go -------------------------------------------------------------------------------------------------


class Store(Protocol):
    """Keeps counts. What a micro-batch counted replaces what it counted before: it may run twice."""

    def campaigns(self) -> list[tuple[str, str]]:
        """Ads and their campaigns."""
        ...

    def put(self, version: str, batch: int, rows: list[Any]) -> None:
        """Keep what a micro-batch counted."""
        ...

    def total(self, version: str, batches: int) -> dict[tuple[str, int], int]:
        """The counts of all campaigns and windows, by the first so many micro-batches."""
        ...


class InMemory:
    """A store for one run."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, int], dict[int, int]] = {}

    def campaigns(self) -> list[tuple[str, str]]:
        """Ads and their campaigns."""
        return ads()

    def put(self, version: str, batch: int, rows: list[Any]) -> None:
        """Keep what a micro-batch counted."""
        for row in rows:
            self._kept.setdefault((version, row["campaign_id"], row["window"]), {})[batch] = row["views"]

    def total(self, version: str, batches: int) -> dict[tuple[str, int], int]:
        """The counts of all campaigns and windows, by the first so many micro-batches."""
        return {
            (campaign, window): sum(count for batch, count in of.items() if batch < batches)
            for (kept_version, campaign, window), of in self._kept.items()
            if kept_version == version and min(of) < batches
        }


class InRedis:
    """A store in a Redis server: ads are keys, a window of a campaign is a hash with a field for each micro-batch."""

    def __init__(self, port: int, password: str) -> None:
        import redis

        self._server = redis.Redis(port=port, password=password, decode_responses=True)
        self._server.mset({f"ad:{ad}": campaign for ad, campaign in ads()})

    def campaigns(self) -> list[tuple[str, str]]:
        """Ads and their campaigns."""
        keys = sorted(self._server.scan_iter("ad:*", count=1000))
        return [(key.removeprefix("ad:"), str(c)) for key, c in zip(keys, self._server.mget(keys), strict=True)]

    def put(self, version: str, batch: int, rows: list[Any]) -> None:
        """Keep what a micro-batch counted."""
        pipe = self._server.pipeline()
        for row in rows:
            pipe.hset(f"views:{version}:{row['campaign_id']}:{row['window']}", str(batch), row["views"])
        pipe.execute()

    def total(self, version: str, batches: int) -> dict[tuple[str, int], int]:
        """The counts of all campaigns and windows, by the first so many micro-batches."""
        found = {}
        for key in self._server.scan_iter(f"views:{version}:*", count=1000):
            _, _, campaign, window = key.split(":")
            of = self._server.hgetall(key)
            counted = [int(count) for batch, count in of.items() if int(batch) < batches]
            if counted:
                found[campaign, int(window)] = sum(counted)
        return found


# -- both together ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def parts(*, kafka: bool, redis: bool, per_second: int) -> Iterator[tuple[SparkSession, Generated | Kafka, Store]]:
    """A session, events and a store; services run for as long as the block."""
    with contextlib.ExitStack() as stack:
        confs = dict(FAST)
        broker: Any = None
        if kafka:
            import kafka_broker

            confs["spark__jars"] = ",".join(map(str, kafka_broker.connector_jars().files))
            broker = stack.enter_context(kafka_broker.running(partitions=2, password=secrets.token_hex(16)))
        store: Store = InMemory()
        if redis:
            import redis_server

            password = secrets.token_hex(16)
            store = InRedis(stack.enter_context(redis_server.running(password=password)), password)
        spark = tight.session(**confs)
        stack.callback(spark.stop)
        if broker is None:
            yield spark, Generated(spark, per_second), store
        else:
            yield spark, Kafka(spark, per_second, broker.options), store


def count_and_write(store: Store, version: str, viewed: DataFrame, batch: int) -> None:
    """What a version does after the join with a micro-batch."""
    store.put(version, batch, counts(viewed).collect())


def run(options: argparse.Namespace) -> int:
    """Start both versions, compare them while they run, and tell what came of it."""
    folder = Path(tempfile.mkdtemp(prefix="streamtight-yahoo-"))
    try:
        with parts(kafka=options.kafka, redis=options.redis, per_second=options.per_second) as (spark, events, store):
            return _run(options, folder, spark, events, store)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _run(
    options: argparse.Namespace, folder: Path, spark: SparkSession, events: Generated | Kafka, store: Store
) -> int:
    campaigns = spark.createDataFrame(store.campaigns(), "ad_id string, campaign_id string").cache()
    if isinstance(events, Kafka):
        events.start()
    bug_from = events.start_ms + int(options.bug_after * 1000) if options.bug_after else None
    seen = threading.Event()

    def go_on(left: DataFrame, right: DataFrame, batch: int) -> None:
        for version, viewed in zip(VERSIONS, (left, right), strict=True):
            count_and_write(store, version, viewed, batch)

    def tell(alarm: tight.Alarm) -> None:
        print(f"micro-batch {alarm.batch}: {alarm}", flush=True)
        seen.set()

    live = tight.compare_live(
        views(events.read(), campaigns, tasks=1),
        views(events.read(), campaigns, tasks=options.tasks, bug_from=bug_from),
        upto=tight.unordered,
        checkpoint=folder / "checkpoint",
        stuck_after_events=max(1, options.per_second // 3),  # views that come in a second and a half, of both sides
        on_alarm=tell,
        every=1.0,
        then=go_on,
        name="yahoo",
        board=options.board,
    )
    print(f"{live.way}; {options.per_second:,} events a second", flush=True)
    with live:
        while live.metrics is None and live.query.isActive:  # the first micro-batch compiles code
            time.sleep(0.1)
        end = time.monotonic() + options.seconds
        while time.monotonic() < end and live.query.isActive and not seen.wait(5):
            print(_line(live.metrics), flush=True)
        if isinstance(events, Kafka):
            events.stop()
    verdict = live.verdict(ended=seen.is_set())
    print(verdict.story())
    judged = 0 if live.metrics is None else live.metrics.batch + 1  # a further one may have been stopped halfway
    one, several = (store.total(version, judged) for version in VERSIONS)
    wrong = sum(one.get(key) != several.get(key) for key in one | several)
    print(f"{sum(one.values()):,} views counted by either version; {wrong} of {len(one | several)} counts differ")
    return int(verdict.fails)


def _line(known: tight.Metrics | None) -> str:
    if known is None:
        return "nothing yet"
    return (
        f"micro-batch {known.batch}: {known.left:,} and {known.right:,} views, {known.unmatched} unmatched, "
        f"{known.seconds:.1f} s"
    )


def main() -> int:
    """The exit code: 1 if the versions differ."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--kafka", action="store_true", help="events from a Kafka broker")
    options.add_argument("--redis", action="store_true", help="campaigns and counts in a Redis server")
    options.add_argument("--seconds", type=float, default=40.0, help="at most so long")
    options.add_argument("--per-second", type=int, default=3_000, help="events a second")
    options.add_argument("--tasks", type=int, default=2, help="tasks of the second version")
    options.add_argument(
        "--bug-after", type=float, default=15.0, help="after so many seconds it gets a bug; 0 for none"
    )
    options.add_argument("--board", help="a folder for the live page: streamtight watch --serve FOLDER")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the services stop with it
    try:
        return run(options.parse_args())
    except RuntimeError as why:
        if type(why).__name__ != "Unavailable":
            raise
        print(f"This cannot be run here: {why}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
