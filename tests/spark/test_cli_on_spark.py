"""The command line on real Spark: from the user's own file to a counterexample, and back to a fix."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamtight.cli.app import app

pytestmark = pytest.mark.usefixtures("spark")

JOBS = """
import streamtight as tight
from pyspark.sql import functions as sf
from streamtight import gen


def latest(orders):
    return orders.groupBy("order_id").agg(sf.last("state").alias("state"))


def paid(orders):
    return orders.where("state = 'paid'").select("order_id")


def ordered_by_id(orders):
    return orders.orderBy("order_id")


def two(orders, users):
    return orders.join(users, "user")


def nothing():
    return None


def misspelt(orders):
    return orders.select("sate")


def raises(orders):
    raise ValueError("not today")


def prints(orders):
    print("HELLO")
    return orders.where("order_id > 0")


def totals(sales):
    return sales.groupBy("shop").agg(sf.sum("amount").alias("total"))


def totals_of_each(sales):
    return sales.distinct().groupBy("shop").agg(sf.sum("amount").alias("total"))


User = tight.Kind("User", id=int, ok=bool)
bad = tight.some_record("input", lambda user: not user.ok).named("bad")
banned = tight.some_record("output", lambda row: row.id == 15).named("banned")
users = gen.always(gen.elements_of([User(1, ok=True), User(15, ok=False)], size=2), during=4)


def bans(users):
    return users.where("NOT ok").select("id")


stays_banned = tight.always(bad >> tight.always(banned, during=3), during=1)
"""
ORDERS = ["--input", "table[order_id: int, state: str]"]
SALES = ["--input", "table[shop: str, amount: int]", "--mode", "batch"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "cli_jobs.py").write_text(JOBS)
    (tmp_path / "orders.csv").write_text("order_id,state\n1,open\n1,paid\n2,open\n")
    (tmp_path / "broken.json").write_text("{{{")
    (tmp_path / "array.json").write_text(
        '[\n  {"order_id": 1, "state": "paid"},\n  {"order_id": 2, "state": "open"}\n]\n'
    )
    (tmp_path / "readings.csv").write_text("sensor,at,degrees\na,1,20\na,2,25\nb,1,3\na,3,90\n")
    monkeypatch.chdir(tmp_path)
    forget_files()
    return tmp_path


def forget_files() -> None:
    for name in [name for name in sys.modules if re.fullmatch(r"cli_jobs(_\d+)?", name)]:
        del sys.modules[name]


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


# -- laws --------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_laws_finds_a_bug_from_a_sample_and_replay_sees_it_fixed(folder: Path) -> None:
    code, told, _ = run("laws", "cli_jobs.py:latest", "--sample", "orders.csv", "--only", "order", "--runs", "4")

    assert code == 1
    assert "ORDER_DEPENDENT" in told
    assert "note: it is asked in mode update, since Spark does not run it in mode append" in told
    assert "lint: cli_jobs.py:8: FIRST_VALUE" in told
    assert "not looked at: " in told
    kept = re.findall(r"streamtight replay ([0-9a-f]{8})", told)[0]

    still, told, _ = run("replay", kept)
    assert (still, told.split()[0]) == (1, "FAILS")

    (folder / "cli_jobs.py").write_text(JOBS.replace("sf.last(", "sf.max("))
    forget_files()
    fixed, told, _ = run("replay")
    assert (fixed, told.split()[0]) == (0, "FIXED")
    assert not list((folder / ".streamtight").glob("*.json"))


def test_values_in_the_code_let_rows_pass() -> None:
    code, told, _ = run("laws", "cli_jobs.py:paid", *ORDERS, "--only", "cuts", "--runs", "4")

    assert code == 0, told
    assert told.count("HOLDS") == 1


def test_what_a_job_prints_does_not_mix_with_the_answer() -> None:
    code, told, aside = run(
        "laws", "cli_jobs.py:prints", "--sample", "array.json", "--only", "cuts", "--runs", "3", "--format", "json"
    )

    assert code == 0
    assert json.loads(told)["verdicts"][0]["outcome"] == "HOLDS"
    assert "HELLO" in aside


def test_a_job_that_is_no_stream_is_asked_as_a_batch() -> None:
    code, told, _ = run("laws", "cli_jobs.py:ordered_by_id", *ORDERS, "--runs", "3")

    assert code == 0, told
    assert "it is asked in mode batch, since Spark does not run it in mode append: Sorting is not supported" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["cli_jobs.py:two", *ORDERS], "two(orders, users): needed --input once for each of its parameters: 2"),
        (["cli_jobs.py:nothing", *ORDERS], "a function that takes its DataFrames as parameters"),
        (["cli_jobs.py:misspelt", *ORDERS], "sate"),
        (["cli_jobs.py:raises", *ORDERS], 'in raises: raise ValueError("not today")\nValueError: not today'),
        (["cli_jobs.py:paid", "--sample", "broken.json"], "--sample broken.json: needed rows that Spark can read"),
        (["cli_jobs.py:User", *ORDERS], "needed"),
        (["cli_jobs.py:paid", "--input", "table[order_id: int].key('order_id')"], "without keys and conditions"),
        (["cli_jobs.py:paid", *ORDERS, "--promise", "same(user)"], "needed columns of the input: order_id, state"),
        (["cli_jobs.py:paid", *ORDERS, "--promise", "some(user)"], "--promise 'some(user)': needed ordered"),
        (["cli_jobs.py:paid", *ORDERS, "--mode", "apend"], "Try: --mode append"),
        (["cli_jobs.py:paid", *ORDERS, "--only", "cut"], "Try: --only cuts"),
        (["cli_jobs.py:paid", "--sample", "none.csv"], "--sample none.csv: needed a file"),
    ],
)
def test_a_wrong_question_about_laws_ends_with_3(arguments: list[str], said: str) -> None:
    code, _, aside = run("laws", *arguments)

    assert code == 3
    assert said in aside
    assert "Traceback" not in aside


# -- the other verbs ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_compare_finds_a_difference_between_two_jobs() -> None:
    code, told, _ = run("compare", "cli_jobs.py:totals", "cli_jobs.py:totals_of_each", *SALES, "--runs", "20")

    assert code == 1
    assert "totals_of_each gives the same stream as totals" in told


@pytest.mark.slow
def test_compare_takes_recorded_outputs(folder: Path) -> None:
    for name, rows in (("old", '{"k": 1}\n{"k": 2}\n'), ("new", '{"k": 2}\n{"k": 1}\n'), ("other", '{"k": 3}\n')):
        (folder / name).mkdir()
        (folder / name / "part-0.json").write_text(rows)

    assert run("compare", "old", "new")[0] == 0
    assert run("compare", "old", "other")[0] == 1
    assert run("compare", "old", "missing")[0] == 3


@pytest.mark.parametrize("formula", ["cli_jobs.py:stays_banned", "always(bad >> always(banned, during=3), during=1)"])
def test_check_takes_a_formula_by_name_and_as_text(formula: str) -> None:
    code, told, _ = run("check", "cli_jobs.py:bans", formula, "--on", "cli_jobs.py:users", "--runs", "6")

    assert code == 1
    assert "VIOLATED" in told


@pytest.mark.slow
def test_typecheck_and_lint_say_the_same_of_a_job() -> None:
    table = ["--input", "table[order_id: int, state: str]"]

    code, told, _ = run("typecheck", "cli_jobs.py:latest", *table, "--runs", "4")
    page = run("lint", "cli_jobs.py:latest", *table, "--confirm", "--runs", "4", "--format", "junit")

    assert code == 1
    assert "FIRST_VALUE" in told
    assert page[0] == 1
    assert "<failure" in page[1]
    assert "FIRST_VALUE" in page[1]


def test_watch_shows_values_and_alarms() -> None:
    where = ["readings.csv", "--key", "sensor", "--order-by", "at", "--value", "degrees"]

    code, told, _ = run("watch", "current(cur)", *where)
    lines = run("watch", "current(cur)", *where, "--format", "json")[1]
    some = run("watch", "current(cur)", *where, "--rows", "1")
    alarm = run("watch", "current(cur) < 50", *where, "--outputs", "alarms")
    fine = run("watch", "current(cur) < 100", *where, "--outputs", "alarms")
    wrong = run("watch", "current(cur)", *where, "--format", "html")

    assert code == 0
    assert told.splitlines()[0].split()[:2] == ["sensor", "at"]
    assert [json.loads(line)["value"] for line in lines.splitlines()] == [20, 25, 90, 3]
    assert "3 more rows are not shown: --rows 4 shows all" in some[2]
    assert alarm[0] == 1
    assert "ALARM: it is not true after 1 of 4 rows" in alarm[1]
    assert fine[0] == 0
    assert wrong[0] == 3


# -- processes --------------------------------------------------------------------------------------------------------


def running_in(group: int) -> list[str]:
    """The processes of a group that still run."""
    listed = subprocess.run(["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True).stdout
    return [one for one in listed.splitlines() if one.split()[0] == str(group) and not one.split()[1].startswith("Z")]


def read_until(terminal: int, wanted: str) -> str:
    """What a terminal shows until this is in it, or until the end."""
    shown = b""
    while not wanted or wanted.encode() not in shown:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # nobody writes any more
            break
        if not more:
            break
        shown += more
    return shown.decode(errors="replace")


@pytest.mark.slow
def test_ctrl_c_stops_spark_and_tells_what_is_known(folder: Path) -> None:
    arguments = ["laws", "cli_jobs.py:paid", *ORDERS, "--runs", "100000", "--only", "cuts"]
    terminal, its_end = pty.openpty()
    asked = subprocess.Popen(
        [sys.executable, "-m", "streamtight", *arguments],
        stdout=subprocess.PIPE,
        stderr=its_end,
        text=True,
        cwd=folder,
        start_new_session=True,
    )
    os.close(its_end)
    shown = read_until(terminal, "of 100000 inputs, ")

    os.killpg(asked.pid, signal.SIGINT)  # as a terminal does: to the JVM, too
    told, _ = asked.communicate(timeout=60)
    aside = shown + read_until(terminal, "")
    os.close(terminal)

    assert re.search(r"laws: cuts ━*─+ \d+ of 100000 inputs, [\d.]+ a second, \d+ (s|min|h) left", shown)
    assert asked.returncode == 2, aside
    assert re.search(r"UNDECIDED .*: stopped after \d+ of 100000 inputs, none of which failed", told), told + aside
    assert "stopped; this is what is known so far" in aside
    assert "Traceback" not in aside
    assert running_in(asked.pid) == []


def test_without_java_there_is_a_hint(folder: Path) -> None:
    code = (
        "import streamtight.spark.java as java; java.find_java = lambda: None\n"
        "import streamtight.spark.session as session; session.find_java = lambda: None\n"
        "import sys; sys.argv = ['streamtight', 'laws', 'cli_jobs.py:paid', '--input', 'table[order_id: int]']\n"
        "from streamtight.cli.app import main; main()"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )

    assert done.returncode == 3
    assert "Java" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_port_in_use_is_told(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        arguments = f"--conf spark.driver.port={port} --conf spark.port.maxRetries=0 pyspark-shell"
        done = subprocess.run(
            [sys.executable, "-m", "streamtight", "laws", "cli_jobs.py:paid", *ORDERS],
            capture_output=True,
            text=True,
            cwd=folder,
            env={**os.environ, "PYSPARK_SUBMIT_ARGS": arguments},
            check=False,
        )

    assert done.returncode == 3
    assert "port" in done.stderr
    assert "Traceback" not in done.stderr
