"""What is a document about? A count that is easy for one worker, wrong with several, and right again with care.

Documents come word by word in one stream, with a marker after each. A word's topic is looked up in Redis; the topic of
a document is the most frequent one of its words. One worker counts until it sees a marker. Looking up is slow, so one
wants more workers; but then a marker reaches only one of them, and the others do not know where a document ends. The
right way is to write the document's number next to each word first, which is cheap, and only then to spread the words.
(After DiffStream, OOPSLA 2020, sections 2.1 and 5.2.)

    python examples/topic_count.py
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

import streamtight as tight

if TYPE_CHECKING:
    import pandas as pd

    Tables = Iterator[pd.DataFrame]

Word = tight.Kind("Word", text=str)
EndOfFile = tight.Kind("EndOfFile")
Topic = tight.Kind("Topic", document=int, topic=str, words=int)

Job = Callable[[DataFrame], DataFrame]
AT_ONCE = 100
"""So many words are looked up in one round trip."""

TOPICS_OF_WORDS = {
    "sea": "sailing", "sail": "sailing", "wind": "sailing",
    "oven": "cooking", "salt": "cooking",
    "goal": "football",
}  # fmt: skip


# -- the jobs --------------------------------------------------------------------------------------------------------


def sequential(port: int) -> Job:
    """One worker reads the words in order; at a marker the document is done."""

    def sequential(tokens: DataFrame) -> DataFrame:
        return tokens.coalesce(1).mapInPandas(topics_of_documents(port), "document long, topic string, words long")

    return sequential


def naive(port: int, workers: int = 4) -> Job:
    """The same, with more workers: each counts its words until it sees a marker, and a marker reaches only one."""

    def naive(tokens: DataFrame) -> DataFrame:
        spread = tokens.repartition(workers)
        return spread.mapInPandas(topics_of_documents(port), "document long, topic string, words long")

    return naive


def parallel(port: int, workers: int = 4) -> Job:
    """First the number of the document next to each word, by one worker; then as many workers as one likes."""

    def parallel(tokens: DataFrame) -> DataFrame:
        numbered = tokens.coalesce(1).mapInPandas(with_document, "document long, text string")
        looked_up = numbered.repartition(workers).mapInPandas(with_topic(port), "document long, topic string")
        counted = looked_up.groupBy("document", "topic").agg(sf.count("*").alias("words"))
        is_word = sf.col("topic").isNotNull()
        most = sf.max_by(sf.struct("topic", "words"), sf.when(is_word, sf.struct("words", "topic")))
        documents = counted.groupBy("document").agg(most.alias("most"), sf.bool_or(~is_word).alias("ended"))
        return documents.filter("ended AND most IS NOT NULL").select("document", "most.*")

    return parallel


def topics_of_documents(port: int) -> Callable[[Tables], Tables]:
    """Counts until a marker comes: words in, documents out."""
    look_up = looks_up(port)

    def documents(tables: Tables) -> Tables:
        import pandas as pd

        document, counts = 0, Counter[str]()
        for table in tables:
            rows = []
            for text, topic in zip(table["text"], look_up(table["text"]), strict=True):
                if text is None:
                    if counts:
                        words, most_frequent = max((words, topic) for topic, words in counts.items())
                        rows.append((document, most_frequent, words))
                    document, counts = document + 1, Counter()
                elif topic is not None:
                    counts[topic] += 1
            yield pd.DataFrame(rows, columns=["document", "topic", "words"])

    return documents


def with_document(tables: Tables) -> Tables:
    """Writes next to each word, and to each marker, which document it is of."""
    document = 0
    for table in tables:
        ends = table["text"].isna()
        # A marker belongs to the document that it ends, so it counts only for what comes after it.
        table["document"] = document + ends.cumsum() - ends
        document += int(ends.sum())
        yield table[["document", "text"]]


def with_topic(port: int) -> Callable[[Tables], Tables]:
    """Writes the topic in the place of each word, null for a marker; words without one are left out."""
    look_up = looks_up(port)

    def topics(tables: Tables) -> Tables:
        for table in tables:
            table["topic"] = look_up(table["text"])
            yield table.loc[table["topic"].notna() | table["text"].isna(), ["document", "topic"]]

    return topics


def looks_up(port: int) -> Callable[[pd.Series[str]], list[str | None]]:
    """The topic of each word, None for a marker and for a word that has none."""

    def look_up(words: pd.Series[str]) -> list[str | None]:
        import redis

        found: list[str | None] = []
        with redis.Redis(port=port, decode_responses=True) as database:
            for start in range(0, len(words), AT_ONCE):
                # No word has the empty key; "topic:None" would be that of the word None.
                keys = ["" if word is None else f"topic:{word}" for word in words[start : start + AT_ONCE]]
                found += database.mget(keys)
        return found

    return look_up


# -- the test --------------------------------------------------------------------------------------------------------


def fill(port: int, topics_of_words: dict[str, str]) -> None:
    """Put the topic of each word into the database."""
    import redis

    with redis.Redis(port=port) as database:
        database.mset({f"topic:{word}": topic for word, topic in topics_of_words.items()})


def some_documents(rng: random.Random) -> tight.Trace:
    """Words and markers: words may come in any order, but not past a marker. The last document may have no end."""
    words = [*TOPICS_OF_WORDS, "unknown"]
    events = [EndOfFile() if rng.random() < 0.25 else Word(rng.choice(words)) for _ in range(16)]
    return tight.Trace(events, tight.barrier(EndOfFile))


def agrees_with_sequential(job: Job, *, port: int, runs: int = 30) -> tight.Verdict:
    """Does it find the same topics as one worker?"""
    takes = (Word, EndOfFile)
    return tight.compare(sequential(port), job, on=some_documents, takes=takes, gives=Topic, mode="batch", runs=runs)


def main() -> None:
    """Judge both parallel versions against the sequential one, tell the story, write the report."""
    from redis_server import missing, running

    options = argparse.ArgumentParser(description="Which of two parallel topic counts is right?")
    options.add_argument("--runs", type=int, default=20, help="generated inputs for each job")
    options.add_argument("--report", default="build/topic_count.html", help="a .html, .txt or .json file")
    chosen = options.parse_args()
    if (why := missing()) is not None:
        raise SystemExit(f"This example needs Redis, and {why}")

    with running() as port:
        fill(port, TOPICS_OF_WORDS)
        spark = tight.session()
        try:
            verdicts = []
            for job in (naive(port), parallel(port)):
                verdicts.append(agrees_with_sequential(job, port=port, runs=chosen.runs))
                print(verdicts[-1].story(), flush=True)
            print(f"\nReport: {tight.write_report(verdicts, chosen.report, title='Topics of documents')}")
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
