"""Formulas as text."""

from __future__ import annotations

from datetime import timedelta

import pytest
from formulas import formulas
from hypothesis import given, settings

from streamtight.errors import FormulaError
from streamtight.properties.parse import MOST_NESTED, parse
from streamtight.properties.temporal import (
    FALSE,
    TRUE,
    Formula,
    always,
    eventually,
    forall,
    historically,
    next_,
    now,
    once,
    previously,
    release,
    since,
    until,
)


def is_good(seen):
    return seen == "good"


def is_bad(seen):
    return seen == "bad"


def is_banned(seen):
    return seen == "banned"


ATOMS = {"good": is_good, "bad": is_bad, "banned": now(is_banned, name="banned")}
good, bad, banned = now(is_good), now(is_bad), now(is_banned)
a, b = now("a"), now("b")


@settings(max_examples=150, deadline=None)
@given(formulas(past=True, time=True))
def test_a_formula_is_read_as_it_prints(formula):
    assert parse(repr(formula)) == formula


@settings(max_examples=50, deadline=None)
@given(formulas(past=True, time=True))
def test_formulas_of_named_atoms_are_read_as_they_print(formula):
    named = renamed(formula)

    assert parse(repr(named), ATOMS) == named


def renamed(formula: Formula) -> Formula:
    """With named atoms instead of quoted ones."""
    if not formula.parts:
        names = {"'a'": "good", "'b'": "bad", "'c'": "banned"}
        name = names.get(getattr(formula, "name", ""))
        return parse(name, ATOMS) if name else formula
    return formula._rebuilt([renamed(part) for part in formula.parts]) if not formula.has_past else formula


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        (
            "always(bad >> always(banned, during=5), during=10) & until(good, bad, within=10)",
            always(bad >> always(banned, during=5), during=10) & until(good, bad, within=10),
        ),
        ("good", good),
        ("now(good)", good),
        ("'a' | now('b')", a | b),
        ('"it\'s"', now("it's")),
        ("TRUE", TRUE),
        ("False", FALSE),
        ("~good & !bad", ~good & ~bad),
        ("~~good", good),
        ("not good and bad or banned", (~good & bad) | banned),
        ("good | bad & banned", good | (bad & banned)),
        ("good -> bad", good >> bad),
        ("not good -> bad", ~good >> bad),
        ("good -> (bad >> banned)", good >> (bad >> banned)),
        ("'and' and 'or'", now("and") & now("or")),
        ("next(good)", next_(good)),
        ("next(good, n=2)", next_(good, 2)),
        ("next(good, n=0)", good),
        ("eventually(good)", eventually(good)),
        ("eventually(good, within=10_000)", eventually(good, within=10_000)),
        ("release(good, bad, within=3)", release(good, bad, within=3)),
        ("previously(good)", previously(good)),
        ("once(good, within=3)", once(good, within=3)),
        ("historically(good, during=3)", historically(good, during=3)),
        ("since(good, bad, within=3)", since(good, bad, within=3)),
        ("always(good, during=5s)", always(good, during=timedelta(seconds=5))),
        ("always(good, during=10min)", always(good, during=timedelta(minutes=10))),
        ("always(good, during=2h)", always(good, during=timedelta(hours=2))),
        ("always(good, during=1d12h)", always(good, during=timedelta(days=1, hours=12))),
        ("always(good, during=1.5s)", always(good, during=timedelta(seconds=1.5))),
        ("always(good, during=250ms)", always(good, during=timedelta(milliseconds=250))),
        ("  always(  # for ever\n\tgood\n)", always(good)),
    ],
)
def test_texts(text, formula):
    assert parse(text, ATOMS) == formula


def test_an_atom_may_be_a_formula_of_any_kind():
    every = forall(lambda seen: seen, lambda row: now(lambda _: row > 0), name="rows")

    assert parse("always(all_positive)", {"all_positive": every}) == always(every)
    assert parse("never", {"never": always(~good)}) == always(~good)
    assert parse("x", {"x": "a"}) == a
    assert parse("x", {"x": True}) == TRUE


def test_a_test_prints_by_its_name_in_the_text():
    assert repr(parse("always(good)", ATOMS)) == "always(good)"


REFUSED = [
    ("always(bad >> bnned)", 14, "needed an atom; came 'bnned'. Try: banned"),
    ("alway(bad)", 0, "needed an operator; came 'alway'. Try: always"),
    ("always(nothing_like_it)", 7, "Try: one of the atoms: good, bad, banned"),
    ("always", 6, "needed '(' after always; came the end of the text. Try: always(formula, during=...)"),
    ("always(bad", 10, "needed ')'; came the end of the text"),
    ("(bad", 4, "needed ')'"),
    ("bad)", 3, "needed an operator, or the end; came ')'"),
    ("bad good", 4, "needed an operator, or the end; came 'good'"),
    ("", 0, "needed a formula; came the end of the text"),
    ("bad &", 5, "needed a formula; came the end of the text"),
    ("()", 1, "needed a formula; came ')'"),
    ("5", 0, "needed a formula; came '5'"),
    ("always(bad, within=5)", 12, "needed during=; came 'within'. Try: always(formula, during=...)"),
    ("previously(bad, within=5)", 16, "needed no further argument"),
    ("always(bad, 5)", 12, "needed 1 formula and no more; came '5'"),
    ("until(bad)", 9, "needed 2 formulas for until; came ')'. Try: until(left, right, within=...)"),
    ("until(bad, good, banned)", 17, "needed 2 formulas and no more"),
    ("always(bad, during=5, 6)", 20, "needed ')'; came ','"),
    ("always(bad, during=)", 19, "needed a timeout above 0"),
    ("always(bad, during=0)", 19, "needed a timeout above 0: letters, or a duration in d, h, min, s, ms, us; came '0'"),
    ("always(bad, during=0s)", 19, "needed a timeout above 0"),
    ("always(bad, during=5m)", 19, "came '5m'. Try: 5, 10s, 2min or 1h30min"),
    ("always(bad, during=5_s)", 19, "came '5_s'"),
    ("always(bad, during='5')", 19, "needed a timeout"),
    ("always(bad, during=999999999999d)", 19, "needed a timeout"),
    ("next(bad, n=2s)", 12, "needed a number of letters; came '2s'"),
    ("bad(good)", 3, "needed nothing in parentheses after the atom bad"),
    ("forall(bad)", 0, "a quantifier has a name, as one of the atoms"),
    ("now(5)", 4, "needed the name of an atom"),
    ("now(bd)", 4, "needed an atom; came 'bd'. Try: bad"),
    ("once(next(bad))", 0, "needed a formula of the present and the past under a past operator; came next(bad)"),
    ("bad && good", 4, "came '&&'. Try: &"),
    ("bad => good", 4, "came '=>'. Try: >>"),
    ("count > 5", 6, "Try: a name for what you mean, as one of the atoms"),
    ("'a", 0, "needed a quoted name that ends on its line"),
    ("bad & good >> banned", 4, "needed parentheses where '>>' and '&' meet"),
    ("bad >> good | banned", 12, "Try: (a | b) >> c, or a | (b >> c)"),
    ("bad -> good -> banned", 12, "needed parentheses around one of two implications"),
    ("not bad & good", 8, "needed parentheses where 'not' and '&' meet"),
    ("bad and good | banned", 13, "needed parentheses where 'and' and '|' meet"),
    ("(" * 200, MOST_NESTED, "needed parentheses not deeper than"),
]


@pytest.mark.parametrize(("text", "column", "told"), REFUSED)
def test_a_wrong_text_is_refused_with_the_place(text, column, told):
    with pytest.raises(FormulaError) as raised:
        parse(text, ATOMS)

    message = str(raised.value)
    [where, shown, rest] = message.split("\n")
    assert where == f"column {column + 1} of the formula"
    assert shown == f"    {text}"
    assert rest.index("^") == 4 + column
    assert told in rest


def test_of_a_longer_text_the_line_is_shown():
    with pytest.raises(FormulaError) as raised:
        parse("always(good,\n  during=5) &\n\tbda", ATOMS)

    assert str(raised.value) == (
        "line 3, column 2 of the formula\n     bda\n     ^: needed an atom; came 'bda'. Try: bad"
    )


@pytest.mark.parametrize("name", ["always", "and", "TRUE", "n > 0", "", 5])
def test_names_that_mean_something_else_cannot_be_atoms(name):
    with pytest.raises(FormulaError, match="which have no meaning of their own"):
        parse("good", {name: is_good})


def test_what_is_no_text_or_no_test_is_refused():
    with pytest.raises(FormulaError, match="needed a text"):
        parse(always(good))
    with pytest.raises(FormulaError, match="the atom x: needed a formula"):
        parse("x", {"x": 5})
