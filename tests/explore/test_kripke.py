"""Kripke structures in Python and in SMV, with successors that were worked out by hand."""

from __future__ import annotations

import re
import subprocess

import pytest

from streamtight.errors import PipelineError
from streamtight.method.explore import smv_check
from streamtight.program.kripke import ANY, Kripke
from streamtight.program.model import BOOL, Range, Symbols

needs_checker = pytest.mark.skipif(smv_check.find() is None, reason="no NuSMV or nuXmv on the PATH")


def edges(system):
    return {
        system.states[place]: {system.states[each] for each in after} for place, after in enumerate(system.successors)
    }


def begins(system):
    return {system.states[each] for each in system.first_states}


# -- in Python -------------------------------------------------------------------------------------------------------


def test_a_counter_goes_round():
    system = Kripke({"x": range(3)}, {"x": 0}, lambda now: {"x": (now.x + 1) % 3})

    assert system.names == ("x",)
    assert system.states == [(0,), (1,), (2,)]
    assert system.first_states == [0]
    assert system.successors == [[1], [2], [0]]


def test_only_states_that_can_be_reached_are_there():
    system = Kripke({"x": range(10)}, {"x": 7}, lambda now: {})

    assert edges(system) == {(7,): {(7,)}}


def test_what_first_does_not_name_may_be_anything():
    system = Kripke({"x": [0, 1], "b": bool}, {"x": 1}, lambda now: {})

    assert begins(system) == {(1, False), (1, True)}


def test_first_can_be_several_dicts_or_a_function():
    variables = {"x": [0, 1, 2], "b": bool}

    listed = Kripke(variables, [{"x": 0, "b": True}, {"x": 2}], lambda now: {})
    told = Kripke(variables, lambda now: now.x == 2 or (now.x == 0 and now["b"]), lambda now: {})

    assert begins(listed) == begins(told) == {(0, True), (2, False), (2, True)}


def test_what_after_does_not_name_stays_as_it_is():
    system = Kripke({"x": [0, 1], "kept": ["a", "b"]}, {"x": 0}, lambda now: {"x": 1 - now.x})

    assert edges(system)[0, "b"] == {(1, "b")}


def test_sets_and_any_and_several_dicts_leave_a_choice():
    variables = {"x": [0, 1, 2]}

    assert edges(Kripke(variables, {"x": 0}, lambda now: {"x": {0, 2}}))[0,] == {(0,), (2,)}
    assert edges(Kripke(variables, {"x": 0}, lambda now: {"x": ANY}))[0,] == {(0,), (1,), (2,)}
    assert edges(Kripke(variables, {"x": 0}, lambda now: [{}, {"x": 1}]))[0,] == {(0,), (1,)}


def test_domains_are_told_for_those_who_watch():
    system = Kripke({"n": [1, 2, 3], "b": bool, "s": ["red", "off"]}, {"n": 1, "b": True, "s": "off"}, lambda now: {})

    assert system.domains == {"n": Range(1, 3), "b": BOOL, "s": Symbols(("red", "off"))}


def test_true_is_not_one():
    with pytest.raises(PipelineError, match=r"values of x: 0, 1; came True"):
        Kripke({"x": [0, 1]}, {"x": 0}, lambda now: {"x": True})


@pytest.mark.parametrize(
    ("variables", "first", "after", "said"),
    [
        ({"x": [0, 1]}, {"x": 2}, lambda now: {}, "values of x: 0, 1; came 2"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: {"x": 5}, r"after x=0: needed values of x: 0, 1; came 5"),
        ({"x": [0, 1]}, {"y": 0}, lambda now: {}, "variables among x; came 'y'"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: {"y": 0}, "variables among x; came 'y'"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: {"x": now.y}, "variables among x; came 'y'"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: [], "a state that comes next; came none"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: {"x": set()}, "a state that comes next; came none"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: None, "a dict, or several; came None"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: [3], "a dict of variables; came 3"),
        ({"x": [0, 1]}, {"x": 0}, lambda now: {"x": 1 // now.x}, "came ZeroDivisionError"),
        ({"x": [0, 1]}, lambda now: False, lambda now: {}, "a state to begin with; came none"),
        ({"x": [0, 1]}, [], lambda now: {}, "a state to begin with; came none"),
        ({"x": int}, {"x": 0}, lambda now: {}, "the values that it can have"),
        ({"x": []}, {"x": 0}, lambda now: {}, "the values that it can have"),
        ({"x": [0, True, 2]}, {"x": 0}, lambda now: {}, "values of one sort"),
        ({}, {}, lambda now: {}, "a variable; came none"),
    ],
)
def test_a_wrong_system_is_refused(variables, first, after, said):
    with pytest.raises(PipelineError, match=said):
        Kripke(variables, first, after)


def test_too_many_states_are_refused_before_memory_is_full():
    variables = {"x": range(10**6), "y": range(10**6)}

    with pytest.raises(PipelineError, match="at most 1,000 states; came more than 1,000"):
        Kripke(variables, {"x": 0, "y": 0}, lambda now: {"x": now.x + 1}, limit=1000)
    with pytest.raises(PipelineError, match="at most 100,000 states; came 1,000,000 at once"):
        Kripke(variables, {"x": 0}, lambda now: {})


# -- as SMV ----------------------------------------------------------------------------------------------------------


def test_smv_booleans_ranges_and_names():
    system = Kripke.from_smv("""
        MODULE main
        VAR b : boolean; n : -1..1; s : {red, green};  -- a comment
        ASSIGN
          init(b) := TRUE; init(n) := 0; init(s) := red;
          next(b) := !b;
          next(n) := case b & n < 1 : n + 1; TRUE : -1; esac;
          next(s) := s = red ? green : red;
    """)

    assert system.names == ("b", "n", "s")
    assert edges(system) == {
        (True, 0, "red"): {(False, 1, "green")},
        (False, 1, "green"): {(True, -1, "red")},
        (True, -1, "red"): {(False, 0, "green")},
        (False, 0, "green"): {(True, -1, "red")},
    }


def test_smv_sets_are_choices():
    system = Kripke.from_smv("""
        MODULE main
        VAR x : 0..5;
        ASSIGN init(x) := {0, 3};
               next(x) := case x = 0 : {1, 2} union {x}; x < 4 : 4..5; TRUE : x; esac;
    """)

    assert begins(system) == {(0,), (3,)}
    assert edges(system) == {
        (0,): {(0,), (1,), (2,)},
        (1,): {(4,), (5,)},
        (2,): {(4,), (5,)},
        (3,): {(4,), (5,)},
        (4,): {(4,)},
        (5,): {(5,)},
    }


def test_smv_what_is_not_assigned_may_be_anything():
    system = Kripke.from_smv("MODULE main VAR x : 0..1; b : boolean; ASSIGN init(x) := 0; next(x) := x;")

    assert edges(system) == {(0, b): {(0, False), (0, True)} for b in (False, True)}


def test_smv_definitions_and_constraints():
    system = Kripke.from_smv("""
        MODULE main
        VAR x : 0..3; y : 0..3;
        DEFINE near := max(x, y) - min(x, y) <= 1; /-- over
          two lines --/ busy := !(x = 0) | FALSE;
        INIT x = 0
        INVAR near;
        TRANS next(x) = x + 1 | (x = 3 & next(x) = 3);
        TRANS busy -> next(y) = next(x);
    """)

    assert begins(system) == {(0, 0), (0, 1)}
    assert edges(system) == {
        (0, 0): {(1, 0), (1, 1), (1, 2)},
        (0, 1): {(1, 0), (1, 1), (1, 2)},
        (1, 0): {(2, 2)},
        (1, 1): {(2, 2)},
        (1, 2): {(2, 2)},
        (2, 2): {(3, 3)},
        (3, 3): {(3, 3)},
    }


def test_smv_plain_assignments_hold_in_every_state_and_next_can_speak_of_next():
    system = Kripke.from_smv("""
        MODULE main
        VAR x : 0..2; double : 0..4; last : 0..2;
        ASSIGN init(x) := 0; next(x) := (x + 1) mod 3;
          double := 2 * x;
          init(last) := x; next(last) := next(x) - 0;
    """)

    assert edges(system) == {(0, 0, 0): {(1, 2, 1)}, (1, 2, 1): {(2, 4, 2)}, (2, 4, 2): {(0, 0, 0)}}


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("7 / 2", 3),
        ("-7 / 2", -3),
        ("7 / -2", -3),
        ("-7 mod 2", -1),
        ("7 mod -2", 1),
        ("2 + 3 * 2 - 1", 7),
        ("8 - 3 - 2", 3),
        ("abs(-3) + min(1, 2) * max(1, 2)", 5),
        ("TRUE -> FALSE -> FALSE ? 1 : 2", None),
        ("(TRUE -> FALSE -> FALSE) ? 1 : 2", 1),
        ("TRUE | FALSE & FALSE ? 1 : 2", 1),
        ("!TRUE | TRUE ? 1 : 2", 1),
        ("1 + 1 = 2 & 3 > 2 ? 1 : 2", 1),
        ("3 in 1..4 & !(5 in {1, 2}) ? 1 : 2", 1),
        ("TRUE xor TRUE xnor TRUE ? 1 : 2", 2),
        ("FALSE ? 1 : TRUE ? 2 : 3", 2),
        ("case FALSE : 1; 1 != 1 : 2; TRUE : 3; esac + 1", 4),
    ],
)
def test_smv_expressions_mean_what_they_mean_in_nusmv(expression, value):
    text = f"MODULE main VAR x : -9..9; ASSIGN init(x) := {expression}; next(x) := x;"

    if value is None:  # the arrow is the weakest of all, so this is no number
        with pytest.raises(PipelineError, match=r"whole numbers for x|TRUE or FALSE"):
            Kripke.from_smv(text)
    else:
        assert Kripke.from_smv(text).states == [(value,)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "line 1 of the SMV text: needed 'MODULE'; came 'the end'"),
        ("MODULE other", "needed MODULE main; came 'other'. Try: what is supported: MODULE main"),
        ("MODULE main", "a variable; came none"),
        ("MODULE main\nVAR x : 0..3;\nIVAR y : boolean;", "line 3 .*came 'IVAR'. Try: what is supported"),
        ("MODULE main\nVAR x : 0..3;\nFAIRNESS x = 0", "line 3 .*came 'FAIRNESS'"),
        ("MODULE main\nVAR x : 0..3;\nLTLSPEC G x = 0", "line 3 .*came 'LTLSPEC'"),
        ("MODULE main\nVAR x : 0..3;\nMODULE b", "line 3 .*came 'MODULE'"),
        ("MODULE main\nVAR x : 0..3\nASSIGN", "line 3 .*needed ';'; came 'ASSIGN'"),
        ("MODULE main\nVAR x : array 0..3 of boolean;", "line 2 .*boolean, a range .*came 'array'"),
        ("MODULE main\nVAR x : word[8];", "line 2 .*needed words of SMV; came"),
        ("MODULE main\nVAR x : 3..0;", "the least number first; came 3..0"),
        ("MODULE main\nVAR x : {a, a};", "different values"),
        ("MODULE main\nVAR x : 0..3; x : boolean;", "x once; came a second time"),
        ("MODULE main\nVAR a : {a, b};", "names of their own; came 'a' with two meanings"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := 0;\nnext(x) := 1;", "line 4 .*x once"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := 0;\nx := 1;", "line 4 .*x once"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(y) := 0;", "line 3 .*a variable; came 'y'"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := y;", "line 3 .*names among x.*came 'y'"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := x-1;", "Try: blanks around the minus: x - 1"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN init(x) := 4;", "line 3 .*a value of x, from 0 to 3; came 4"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := x + 1;", "line 3 .*a value of x, from 0 to 3; came 4"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := TRUE;", "whole numbers for x; came TRUE or FALSE"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := x & TRUE;", "TRUE or FALSE; came whole numbers"),
        ("MODULE main\nVAR x : boolean;\nTRANS x = 1", "values of one sort"),
        ("MODULE main\nVAR x : 0..3;\nTRANS x + ({0, 1}) = 1", "one value here; came a set"),
        ("MODULE main\nVAR x : 0..3;\nDEFINE d := {0, 1};", "one value for d; came a set"),
        ("MODULE main\nVAR x : 0..3;\nDEFINE d := e;\ne := d;", "definitions that end; came d -> e -> d"),
        ("MODULE main\nVAR x : 0..3;\nASSIGN init(x) := x;", "a circle: x <- x"),
        ("MODULE main\nVAR x : 0..3; y : 0..3;\nASSIGN init(x) := y; init(y) := x;", "a circle: y <- x <- y"),
        ("MODULE main\nVAR x : 0..3;\nINIT next(x) = 0", "INIT of one state; came next"),
        ("MODULE main\nVAR x : 0..3;\nTRANS next(next(x)) = 0", "one next"),
        (
            "MODULE main\nVAR x : 0..3;\nASSIGN next(x) := case x = 0 : 0; esac;",
            "a row of the case for every state; came x = 1",
        ),
        ("MODULE main\nVAR x : 0..3;\nASSIGN next(x) := 1 / x;", "a divisor; came 0"),
        ("MODULE main\nVAR x : 0..3;\nTRANS FALSE", "after x=0: needed a state that comes next"),
        ("MODULE main\nVAR x : 0..3;\nINIT FALSE", "a state to begin with"),
        ("MODULE main\nVAR x : 0..3; @", "line 2 .*words of SMV; came '@'"),
        ("MODULE main\nVAR x : 0..999999; y : 0..999999;", "at most 1,000,000 combinations"),
    ],
)
def test_smv_that_is_wrong_or_not_supported_is_refused_with_its_line(text, said):
    with pytest.raises(PipelineError, match=said):
        Kripke.from_smv(text)


def of_nusmv(text, folder):
    """The states that NuSMV reaches."""
    (folder / "model.smv").write_text(text)
    (folder / "script").write_text("go\nprint_reachable_states -v\nquit\n")
    asked = [smv_check.find(), "-source", "script", "model.smv"]
    said = subprocess.run(asked, cwd=folder, capture_output=True, text=True, timeout=60, check=True).stdout
    return {frozenset(re.findall(r"  (\w+) = (\S+)", each)) for each in said.split("------- State")[1:]}


@needs_checker
@pytest.mark.parametrize(
    "text",
    [
        "MODULE main VAR x : 0..9; ASSIGN init(x) := {1, 2}; next(x) := (3 * x) mod 10 union x;",
        "MODULE main VAR x : -5..5; b : boolean; "
        "ASSIGN init(x) := -5; next(x) := b ? x / 2 : -x mod 3; TRANS b -> x != 3;",
        "MODULE main VAR s : {a, b, c}; n : 0..4; INVAR s = c -> n > 2; "
        "ASSIGN init(s) := a; next(s) := case s = a : {b, c}; TRUE : {s, a}; esac; next(n) := min(4, n + 1); "
        "INIT n = 0;",
        "MODULE main VAR x : boolean; y : boolean; z : boolean; "
        "TRANS next(x) xor y -> z <-> next(z) | x & !y; INIT x & y & z;",
    ],
)
def test_smv_reaches_the_states_that_nusmv_reaches(text, tmp_path):
    system = Kripke.from_smv(text)

    shown = {
        frozenset(
            (name, str(value).upper() if type(value) is bool else str(value))
            for name, value in zip(system.names, state, strict=True)
        )
        for state in system.states
    }
    assert shown == of_nusmv(text, tmp_path)
