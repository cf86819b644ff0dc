"""What are more workers worth when words are looked up in Redis? Topic count, sequential and parallel.

    python benchmarks/topic_count.py

Wall time of a warm run, the median of three, with one core and with two. Redis is a process of its own and takes part
of the second core, so two cores give less than twice the speed. Look at the ratios, on a machine that is idle.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from pyspark.sql import DataFrame, SparkSession

import streamtight as tight

EXAMPLES = Path(__file__).parents[1] / "examples"
DOCUMENTS, VOCABULARY, TOPICS, ROUNDS = 5, 10_000, 20, 3


def load(name: str) -> ModuleType:
    """An example as a module that tasks get by value, since they could not import it."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tokens(spark: SparkSession, words: int) -> DataFrame:
    """So many words for each document, with a marker after each document."""
    rng = random.Random(0)
    texts: list[tuple[str | None]] = []
    for _ in range(DOCUMENTS):
        texts += [(f"word{rng.randrange(VOCABULARY)}",) for _ in range(words)]
        texts.append((None,))
    return spark.createDataFrame(texts, "text string").cache()


def seconds(job: Callable[[DataFrame], DataFrame], given: DataFrame) -> tuple[float, list[tuple[int, str, int]]]:
    taken, found = [], []
    for _ in range(ROUNDS + 1):
        started = time.perf_counter()
        found = sorted(tuple(row) for row in job(given).collect())
        taken.append(time.perf_counter() - started)
    return statistics.median(taken[1:]), found


def main() -> None:
    options = argparse.ArgumentParser(description="The speed-up of topic count")
    options.add_argument("--words", type=int, default=20_000, help="words of each document")
    options.add_argument("--at-once", type=int, default=1, help="words that are looked up in one round trip")
    chosen = options.parse_args()
    topic_count, redis_server = load("topic_count"), load("redis_server")
    if (why := redis_server.missing()) is not None:
        raise SystemExit(f"This benchmark needs Redis, and {why}")
    topic_count.AT_ONCE = chosen.at_once
    rng = random.Random(1)

    print(f"{DOCUMENTS} documents of {chosen.words:,} words, {chosen.at_once} at once; load {os.getloadavg()[0]:.1f}")
    with redis_server.running() as port:
        topic_count.fill(port, {f"word{n}": f"topic{rng.randrange(TOPICS)}" for n in range(VOCABULARY)})
        answers, slowest = [], 0.0
        for cores in (1, 2):
            # Compiled plans, unlike in a session for small runs.
            spark = tight.session(spark__master=f"local[{cores}]", spark__sql__codegen__wholeStage="true")
            given = tokens(spark, chosen.words)
            for job in (topic_count.sequential(port), topic_count.parallel(port, workers=cores)):
                taken, found = seconds(job, given)
                answers.append(found)
                slowest = slowest or taken
                print(
                    f"{job.__name__:12} {cores} core{'s' * (cores > 1):1}  {taken:7.2f} s  x{slowest / taken:.2f}",
                    flush=True,
                )
            spark.stop()
        if any(answer != answers[0] for answer in answers):
            raise SystemExit("The jobs do not agree, so these figures mean nothing")


if __name__ == "__main__":
    main()
