"""Commands that ask, in formats and files, with settings and kept counterexamples: on pipelines, which need no JVM."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from streamtight.cli.app import app, main
from streamtight.cli.options import functions_in_files
from streamtight.source.kept import Kept

PIPES = """
import streamtight as tight
from streamtight import pipes

every_second = tight.Pipeline.wired("in -> C; C.0 -> out", C=pipes.CountDecimate(2))
total = tight.Pipeline.wired("in -> T; T.0 -> out", T=pipes.Cumulate(lambda a, b: a + b, 0))


def slow():
    pass
"""
FIXED = PIPES.replace("CountDecimate(2)", "CountDecimate(1)")
KEY_COUNTER = f"{Path(__file__).parents[2] / 'examples' / 'key_counter.py'}:KeyCounter"
BROKEN = ["explore", "pipes.py:every_second", "G (in -> out)"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipes.py").write_text(PIPES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    forget_files()
    return tmp_path


def forget_files() -> None:
    """As in a new process: what was loaded from the user's files is read anew."""
    for name in [name for name in sys.modules if re.fullmatch(r"pipes(_\d+)?", name)]:
        del sys.modules[name]


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, list(arguments))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def kept_id(told: str) -> str:
    return re.findall(r"streamtight replay ([0-9a-f]{8})", told)[0]


def test_what_holds_ends_with_0() -> None:
    code, told, _ = run("explore", "pipes.py:every_second", "live")

    assert code == 0
    assert told.startswith("HOLDS  pipeline: live()")


def test_what_fails_ends_with_1_and_says_how_to_see_it_again(folder: Path) -> None:
    code, told, _ = run(*BROKEN)

    assert code == 1
    assert told.startswith("FAILS  pipeline:")
    assert "pipeline.pushes" not in told, "a command is shorter than code"
    [path] = (folder / ".streamtight").glob("*.json")
    assert Kept.read(path).id == kept_id(told)


def test_what_is_not_known_ends_with_2() -> None:
    code, told, _ = run(
        "explore", "pipes.py:total", "live", "--engine", "search", "--states", "2", "--domain", "whole(0, 3)"
    )

    assert code == 2
    assert told.startswith("UNDECIDED  pipeline: live(): 2 states were used up")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["explore", "pipes.py:nope", "live"], "needed a name that pipes.py has; came 'nope'"),
        (["explore", "pipes.py:every_secnd", "live"], "Try: pipes.py:every_second"),
        (["explore", "pipes.py", "live"], "needed a file or a module, and a function in it"),
        (["explore", "elsewhere.py:f", "live"], "needed a file that is there; came elsewhere.py"),
        (["explore", "pipes.py:every_second", "live", "--format", "yaml"], "needed one of text, json, junit, html"),
        (["explore", "pipes.py:every_second", "live", "-o", "a.yaml"], "--output a.yaml: needed one of"),
        (["explore", "pipes.py:every_second", "live", "-o", "pipes.py/a.html"], "needed a file that can be written"),
        (["explore", "pipes.py:every_second", "live", "-o", "."], "--output .: needed one of"),
        (["explore", "pipes.py:every_second", "live(withn=3)"], "needed the arguments of live"),
        (["explore", "pipes.py:every_second", "same_steps(other)"], "came other"),
        (["explore", "pipes.py:every_second", "live", "--domain", "many"], "needed 4, modulo(4) or whole(0, 9)"),
        (["replay", "01234567"], "came nothing of that name"),
        (["replay", "st1-broken"], "the token st1-broken"),
        (["report", "pipes.py"], "read_report('pipes.py')"),
        (["report", "none.json"], "none.json"),
        (["parallelize", "pipes.py:slow"], "needed a fork/join program"),
        (["watch", "cur <", "rows.csv"], "the query at"),
        (["laws", "pipes.py:slow"], "--input 'table[user: str, amount: int?]'"),
        (["laws", "pipes.py:slow", "--input", "rdd[int]", "--sample", "a.csv"], "came --input and --sample"),
    ],
)
def test_a_wrong_question_ends_with_3_and_a_line(arguments: list[str], said: str) -> None:
    code, told, aside = run(*arguments)

    assert code == 3
    assert told == ""
    assert said in aside
    assert "Traceback" not in aside


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import nothing_like_this", "ModuleNotFoundError: No module named 'nothing_like_this' (line 1)"),
        ("x = 1\ndef f(:\n", "SyntaxError: invalid syntax (line 2)"),
        ("a = {}\na['b']\n", "KeyError: 'b' (line 2)"),
    ],
)
def test_a_file_that_does_not_import_is_told_in_a_line(folder: Path, source: str, said: str) -> None:
    (folder / "broken.py").write_text(source)

    code, _, aside = run("explore", "broken.py:f", "live")

    assert (code, len(aside.splitlines())) == (3, 1)
    assert said in aside
    assert "Try: python broken.py" in aside


def test_an_output_that_cannot_be_written_is_told_before_the_work(folder: Path) -> None:
    (folder / "a.html").mkdir()

    code, told, aside = run("explore", "pipes.py:every_second", "live", "-o", "a.html")

    assert (code, told) == (3, "")
    assert "--output a.html: needed a file that can be written" in aside


# -- formats -----------------------------------------------------------------------------------------------------------


def test_json_is_the_verdict_with_what_was_kept() -> None:
    code, told, _ = run(*BROKEN, "--format", "json")

    [verdict] = json.loads(told)["verdicts"]
    assert code == 1
    assert verdict["outcome"] == "FAILS"
    assert Kept.read(verdict["kept"]["token"]).id == verdict["kept"]["id"]


def test_junit_has_a_failure_with_the_story_and_the_token() -> None:
    _, told, _ = run(*BROKEN, "--format", "junit")

    root = ElementTree.fromstring(told)  # noqa: S314 - our own
    [failure] = root.iter("failure")
    assert "push by push" in (failure.text or "")
    assert [one.get("value", "")[:4] for one in root.iter("property") if one.get("name") == "streamtight_replay"] == [
        "st1-"
    ]


def test_sarif_has_a_result() -> None:
    _, told, _ = run(*BROKEN, "--format", "sarif")

    [result] = json.loads(told)["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("PROPERTY_BROKEN", "error")


def test_several_files_are_written_in_one_go(folder: Path) -> None:
    code, told, aside = run(*BROKEN, "-o", "out/a.html", "-o", "out/a.xml", "-o", "out/a.sarif", "-o", "out/a.json")

    assert code == 1
    assert told.startswith("FAILS")
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["a.html", "a.json", "a.sarif", "a.xml"]
    assert "written: out/a.html" in aside.replace("\\", "/")
    assert "<svg" in (folder / "out" / "a.html").read_text()


@pytest.mark.parametrize("form", ["json", "html", "junit", "text"])
def test_notes_are_in_what_is_written(folder: Path, form: str) -> None:
    path = folder / f"a.{form}"

    run("parallelize", KEY_COUNTER, "--workers", "2", "--cases", "5", "--format", form, "--output", str(path))

    assert "Increment(key=#0/2)" in path.read_text()


def test_quiet_is_a_line_for_each_verdict() -> None:
    _, told, aside = run(*BROKEN, "--quiet", "-o", "a.html")

    assert (len(told.splitlines()), aside) == (1, "")


def test_a_page_is_made_later_from_json(folder: Path) -> None:
    run(*BROKEN, "-o", "a.json")
    run("explore", "pipes.py:every_second", "live", "-o", "b.json")

    code, _, _ = run("report", "a.json", "b.json", "-o", "page.html", "--title", "Both")

    assert code == 0
    page = (folder / "page.html").read_text()
    assert "1 FAILS" in page
    assert "1 HOLDS" in page


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = run(*BROKEN)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    forced = CliRunner().invoke(app, BROKEN, color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    refused = CliRunner().invoke(app, BROKEN, color=True).stdout

    assert "\x1b[" not in plain
    assert forced.startswith("\x1b[")
    assert "\x1b[" not in refused


# -- kept counterexamples ----------------------------------------------------------------------------------------------


def test_a_counterexample_fails_again_until_it_is_fixed(folder: Path) -> None:
    kept = kept_id(run(*BROKEN)[1])

    still = run("replay", kept)
    (folder / "pipes.py").write_text(FIXED)
    forget_files()
    fixed = run("replay")
    nothing = run("replay")

    assert still[0] == 1
    assert still[1].startswith(f"FAILS  {kept}")
    assert fixed[0] == 0
    assert fixed[1].startswith(f"FIXED  {kept}")
    assert nothing[:2] == (0, "no counterexample is kept in .streamtight\n")


def test_a_token_is_replayed_without_the_folder(folder: Path) -> None:
    token = json.loads(run(*BROKEN, "--format", "json", "--keep", "elsewhere")[1])["verdicts"][0]["kept"]["token"]

    code, told, _ = run("replay", token)

    assert code == 1
    assert told.startswith("FAILS")


def test_a_file_is_replayed_wherever_it_is(folder: Path) -> None:
    run(*BROKEN, "--keep", "a")
    [path] = (folder / "a").glob("*.json")
    path.rename(folder / "case.json")

    assert run("replay", "case.json")[0] == 1


def test_a_token_that_names_a_command_that_writes_is_refused(folder: Path) -> None:
    token = Kept({"command": ["demo", "--folder", "elsewhere"]}, "c", "F", "e").token

    code, _, aside = run("replay", token)

    assert code == 3
    assert "needed a command that asks; came demo" in aside
    assert not (folder / "elsewhere").exists()


def test_the_code_of_a_counterexample_can_be_printed() -> None:
    kept = kept_id(run(*BROKEN)[1])

    code, told, _ = run("replay", kept, "--code")

    assert code == 0
    assert "# asked by: streamtight explore pipes.py:every_second 'G (in -> out)'" in told
    assert "for push in pipeline.pushes([0, 1]):" in told


def test_nothing_is_kept_if_nobody_wants_it(folder: Path) -> None:
    code, told, _ = run(*BROKEN, "--keep", "")

    assert code == 1
    assert "streamtight replay" not in told
    assert "for push in pipeline.pushes([0, 1]):" in told
    assert not (folder / ".streamtight").exists()


def test_a_folder_that_cannot_be_written_does_not_change_the_answer(folder: Path) -> None:
    (folder / "kept").write_text("a file")

    code, told, _ = run(*BROKEN, "--keep", "kept")

    assert code == 1
    assert "not kept, since kept cannot be written" in told


# -- settings ----------------------------------------------------------------------------------------------------------


def test_settings_come_from_pyproject(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(
        '[tool.streamtight]\nkeep = "cases"\n[tool.streamtight.explore]\nquiet = true\n'
    )

    _, told, _ = run(*BROKEN)

    assert len(told.splitlines()) == 1
    assert list((folder / "cases").glob("*.json"))


def test_settings_of_a_folder_above_count_and_options_win(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pyproject.toml").write_text('[tool.streamtight]\nformat = "json"\n')
    (folder / "below").mkdir()
    monkeypatch.chdir(folder / "below")

    settings = run("explore", "../pipes.py:every_second", "live")[1]
    option = run("explore", "../pipes.py:every_second", "live", "--format", "text")[1]

    assert settings.startswith("{")
    assert option.startswith("HOLDS")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[tool.streamtight]\nsed = 3\n", "came 'sed'. Try: seed"),
        ("[tool.streamtight.lawz]\nseed = 3\n", "came 'lawz'. Try: laws"),
        ("[tool.streamtight.laws]\nruns_ = 3\n", "came 'runs_'. Try: runs"),
        ("[tool.streamtight\n", "needed a file that can be read"),
    ],
)
def test_settings_that_are_wrong_are_refused(folder: Path, text: str, said: str) -> None:
    (folder / "pyproject.toml").write_text(text)

    code, _, aside = run(*BROKEN)

    assert code == 3
    assert said in aside


# -- shells ------------------------------------------------------------------------------------------------------------


def test_places_are_completed(folder: Path) -> None:
    (folder / "more").mkdir()
    (folder / "broken.py").write_text("def f(:")

    assert list(functions_in_files("pi")) == ["pipes.py:"]
    assert list(functions_in_files("m")) == ["more/"]
    assert list(functions_in_files("pipes.py:s")) == ["pipes.py:slow"]
    assert list(functions_in_files("pipes.py:e")) == ["pipes.py:every_second"]
    assert list(functions_in_files("broken.py:")) == []
    assert list(functions_in_files("none.py:")) == []


def test_ctrl_c_tells_that_nothing_is_known_yet(folder: Path) -> None:
    (folder / "slow.py").write_text("print('begun', flush=True)\nimport time\ntime.sleep(60)\n")
    asked = subprocess.Popen(
        [sys.executable, "-m", "streamtight", "explore", "slow.py:f", "live"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        # Who runs the tests in the background has it ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert asked.stderr is not None
    assert asked.stderr.readline() == "begun\n"

    asked.send_signal(signal.SIGINT)
    _, aside = asked.communicate(timeout=20)

    assert asked.returncode == 2
    assert "stopped; nothing is known yet" in aside
    assert "Traceback" not in aside


def test_a_reader_who_has_enough_is_no_error(folder: Path) -> None:
    command = f"{sys.executable} -m streamtight explore pipes.py:every_second 'G (in -> out)' | head -1"

    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=folder, check=False)

    assert done.stdout.startswith("FAILS")
    assert done.stderr == ""


def test_wrong_arguments_end_with_3_in_a_process() -> None:
    done = subprocess.run([sys.executable, "-m", "streamtight", "laws"], capture_output=True, check=False)

    assert done.returncode == 3


def test_a_mistake_of_ours_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamtight.properties.parse_claim.CLAIMS", None)  # where our own code will raise

    code, told, aside = run("explore", "pipes.py:every_second", "live")

    assert (code, told) == (3, "")
    assert "This is a mistake in streamtight, and no answer." in aside


def test_what_users_code_raises_is_told_with_its_line(folder: Path) -> None:
    (folder / "raising.py").write_text(
        "class Streams(list):\n    def __iter__(self):\n        raise KeyError('sensor')\n\nof_mine = Streams([1])\n"
    )

    code, _, aside = run("parallelize", KEY_COUNTER, "--streams", "raising.py:of_mine")

    assert code == 3
    assert "raising.py:3: in __iter__: raise KeyError('sensor')\nKeyError: 'sensor'" in aside
    assert "Traceback" not in aside


def test_the_command_that_replays_says_where_it_is_kept(folder: Path) -> None:
    told = run(*BROKEN, "--keep", "my cases")[1]

    assert re.search(r"streamtight replay [0-9a-f]{8} --keep 'my cases'", told)


def test_main_ends_with_the_number_of_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["streamtight", *BROKEN])

    with pytest.raises(SystemExit) as end:
        main()

    assert end.value.code == 1
