"""streamtight watch --serve as a user starts it: in a process of its own, without Spark, until it is stopped."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from streamtight.cli.app import app, main
from streamtight.source.journal import Journal

Serve = Callable[..., tuple[subprocess.Popen[str], str]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start it where importing pyspark fails; gives the process and the address that it printed."""
    (tmp_path / "broken" / "pyspark").mkdir(parents=True)
    (tmp_path / "broken" / "pyspark" / "__init__.py").write_text("raise RuntimeError('pyspark was imported')")
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
        known = {name: value for name, value in os.environ.items() if not name.startswith("STREAMTIGHT_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "streamtight", "watch", "--serve", "--port", "0", *arguments],
            env={**known, "PYTHONPATH": str(tmp_path / "broken"), **environment},
            cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            # Who runs the tests in the background has it ignored.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )  # fmt: skip
        started.append(process)
        line = process.stdout.readline()
        address = re.search(r"http://\S+", line)
        assert address, line + process.stderr.read()
        return process, address[0]

    yield start
    for process in started:
        process.kill()
        process.communicate()


def state(address: str) -> Any:
    with urllib.request.urlopen(address + "state.json", timeout=10) as answer:  # noqa: S310 - our own
        return json.loads(answer.read())


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_a_board_without_spark_and_ends_cleanly(serve, tmp_path, stop):
    Journal(tmp_path / "board", "taxis", kind="compare_live").note(batch=1)
    process, address = serve("board")

    assert [job["name"] for job in state(address)["jobs"]] == ["taxis"]
    process.send_signal(stop)
    out, err = process.communicate(timeout=20)

    assert (process.returncode, out, err) == (0, "", "stopped\n")


def test_without_a_folder_it_is_the_one_of_the_environment_or_the_usual_one(serve, tmp_path):
    Journal(tmp_path / ".streamtight" / "live", "usual", kind="watch")
    Journal(tmp_path / "named", "named", kind="watch")

    assert [job["name"] for job in state(serve()[1])["jobs"]] == ["usual"]
    address = serve(STREAMTIGHT_BOARD=str(tmp_path / "named"))[1]
    assert [job["name"] for job in state(address)["jobs"]] == ["named"]


def test_the_token_may_come_from_the_environment(serve):
    _, address = serve(STREAMTIGHT_TOKEN="0123456789abcdef")  # noqa: S106 - of this test

    assert address.endswith("/?token=0123456789abcdef")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--serve", "a", "b"], "needed one folder, the board"),
        (["--serve", "file.txt"], "came a file"),
        (["--serve", "--token", "short"], "at least 16 letters"),
        (["--serve", "--host", "no.such.host.invalid"], "an address of this machine"),
        ([], "a query and the rows it is asked of; or --serve"),
        (["count()"], "a query and the rows it is asked of; or --serve"),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path, monkeypatch, capsys, arguments, told):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["streamtight", "watch", *arguments])
    (tmp_path / "file.txt").write_text("")

    with pytest.raises(SystemExit) as end:
        main()

    assert end.value.code == 3
    assert told in " ".join(re.sub(r"[│╭╰╮╯─]", " ", capsys.readouterr().err).split())


def test_a_port_in_use_is_told(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        found = CliRunner().invoke(app, ["watch", "--serve", str(tmp_path), "--port", str(other.getsockname()[1])])

    assert found.exit_code == 3
    assert "--port 0 takes a free one" in found.output
