"""The real services that examples can use: a Kafka broker with Spark's connector, and a Redis server."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from load_example import load_example

kafka_broker = load_example("kafka_broker")
redis_server = load_example("redis_server")

MESSAGES = 1000
PASSWORD = "lighthouse77"  # noqa: S105


def told(part: str) -> dict[str, Any]:
    """What the script saw. It has a session of its own: jars that come to one that runs change how it loads classes."""
    command = [sys.executable, Path(__file__).with_name("kafka_script.py"), PASSWORD, part]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    if ended.returncode == 77:
        pytest.skip(f"no Kafka here: {ended.stderr.strip().splitlines()[-1]}")
    assert ended.returncode == 0, ended.stderr[-3000:]
    if part == "restart":  # the other one raises an exception with the password, and Spark logs what users' code raises
        assert PASSWORD not in ended.stderr
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_a_stream_from_kafka_goes_on_after_a_restart_and_nothing_is_lost_or_doubled() -> None:
    found = told("restart")
    [(number, lost)] = found["lost"].items()
    came = [tuple(row) for rows in found["batches"].values() for row in rows]

    assert "lost on its way" in found["said"][0]
    assert found["said"][1:] == ["", ""]
    assert sorted(found["batches"][number]) == sorted(lost), "a batch that is done again has the same messages"
    assert sorted(int(value) for value, _, _ in came) == list(range(MESSAGES))
    assert {partition for _, partition, _ in came} == {0, 1, 2}
    assert len({(partition, offset) for _, partition, offset in came}) == MESSAGES
    assert found["in_all"] == MESSAGES


@pytest.mark.slow
def test_our_questions_work_with_the_connector_and_show_no_password_of_a_broker_that_does_not_answer() -> None:
    found = told("questions")

    assert found["ours"] == "Word(value='a')"
    assert found["live"].startswith("HOLDS")
    assert f"observed on {2 * MESSAGES} events" in found["live"]
    said = "\n".join(found["wrong"])
    assert "TimeoutException" in said
    assert "redis://ann:***@127.0.0.1:1/0" in said
    assert len(found["wrong"]) >= 8
    assert PASSWORD not in said


def test_the_password_of_a_broker_is_not_shown() -> None:
    broker = kafka_broker.Broker("127.0.0.1:9092", PASSWORD)

    assert PASSWORD not in repr(broker)
    assert PASSWORD in broker.options["kafka.sasl.jaas.config"]


@pytest.mark.slow
def test_a_broker_leaves_no_process_and_no_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(kafka_broker.tempfile, "tempdir", str(tmp_path))
    if (why := kafka_broker.missing()) is not None:
        pytest.skip(f"no Kafka here: {why}")
    address = ""
    try:
        with kafka_broker.running() as started:
            address = started.address
            assert any(tmp_path.iterdir())
            raise InterruptedError
    except InterruptedError:
        pass
    except kafka_broker.Unavailable as unavailable:
        pytest.skip(f"no Kafka here: {unavailable}")

    host, port = address.split(":")
    with pytest.raises(OSError, match="refused"):
        socket.create_connection((host, int(port)), timeout=2)
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("version", "wanted", "serves"),
    [
        ("4.2.0", "4.3.0", True),
        ("4.1.2", "4.3.0", False),
        ("4.3.0", "4.3.1", True),
        ("4.3.1", "4.3.0", False),
        ("4.3.0", "4.2.0", False),
        ("4.0.0", "5.1.0", False),
    ],
)
def test_a_connector_serves_its_own_spark_and_the_next_one(version: str, wanted: str, serves: bool) -> None:
    assert kafka_broker._may_serve(version, wanted) is serves


def pretend(monkeypatch: pytest.MonkeyPatch, folder: Path, says: str) -> Path:
    """A mvn that notes what it was asked and fails with these words."""
    program = folder / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho asked >> "{folder}/asked"\ncat "$4" >> "{folder}/asked"\necho "[ERROR] {says}"\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STREAMTIGHT_CACHE", str(folder / "cache"))
    return folder / "asked"


def test_without_a_network_maven_is_asked_once_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = pretend(monkeypatch, tmp_path, "Could not transfer artifact x: Unknown host repository.example")

    with pytest.raises(kafka_broker.Unavailable, match=r"cannot reach its repository for kafka-.*Unknown host"):
        kafka_broker.broker_jars()

    assert asked.read_text().count("asked") == 1
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_connector_that_is_not_there_is_looked_for_in_older_releases(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = pretend(monkeypatch, tmp_path, "Could not find artifact org.apache.spark:spark-sql-kafka-0-10_2.13")

    with pytest.raises(kafka_broker.Unavailable, match=r"for Spark 4\.3\.0, tried 4\.3\.0, 4\.2\.1, 4\.2\.0: "):
        kafka_broker.connector_jars("4.3.0")

    assert asked.read_text().count("asked") == 3


def test_without_maven_or_java_the_reason_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("STREAMTIGHT_CACHE", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    java = kafka_broker.shutil.which("java")
    monkeypatch.setattr(kafka_broker.shutil, "which", lambda name, path=None: java if name == "java" else None)

    assert kafka_broker.missing() == "there is no mvn here to fetch jars with: apt install maven"

    monkeypatch.setattr(kafka_broker.shutil, "which", lambda name, path=None: None)

    assert kafka_broker.missing() == "there is no java here to run Kafka with: apt install openjdk-17-jre-headless"
    with pytest.raises(kafka_broker.Unavailable, match="no java here"), kafka_broker.running():
        pass


def test_a_redis_server_with_a_password_lets_nobody_else_in_and_forgets() -> None:
    if (why := redis_server.missing()) is not None:
        pytest.skip(f"no Redis here: {why}")
    import redis

    with redis_server.running(password=PASSWORD) as port:
        ours = redis.Redis(port=port, password=PASSWORD)
        ours.hset("campaign:7", mapping={"0": 3, "10": 4})
        ours.hincrby("campaign:7", "10", 2)
        assert ours.hgetall("campaign:7") == {b"0": b"3", b"10": b"6"}
        with pytest.raises(redis.AuthenticationError):
            redis.Redis(port=port).hgetall("campaign:7")
        command_line = Path(f"/proc/{ours.info()['process_id']}/cmdline")
        assert not command_line.exists() or PASSWORD.encode() not in command_line.read_bytes()
        ours.close()

    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), timeout=2)
    with redis_server.running() as port, redis.Redis(port=port) as empty:
        assert empty.keys() == []
