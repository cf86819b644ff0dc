"""Queries as text."""

from __future__ import annotations

import inspect
import math
from random import Random

import pytest
from queries import TAGS, any_query, well_typed, word
from query_oracle import same

from streamtight.errors import QueryError
from streamtight.properties import query_library as library
from streamtight.properties.query import (
    Query,
    agree,
    any_,
    atom,
    combine,
    constant,
    eps,
    fill,
    fill_with,
    first,
    historically,
    iff,
    implies,
    iter_,
    once,
    or_,
    prefix_sum,
    previously,
    second,
    since,
    split,
    weak_since,
)
from streamtight.properties.query_library import change, count, current, holds, mean_of_last, per, total, window
from streamtight.properties.query_parse import MOST_NESTED, parse_query
from streamtight.properties.term import OPERATIONS, Apply, Constant, Slot, Term, choose, cur

v, w = atom("v", cur), atom("w", cur)


def add(x, y):
    return x + y


def has_function(query: Query) -> bool:
    """Whether there is a function in it that has no text."""
    return any(name in str(query) for name in ("_called", "_of_item", "function"))


# -- what prints is read ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_a_query_is_read_as_it_prints(seed):
    rng = Random(seed)
    for _ in range(50):
        query = any_query(rng, rng.randint(1, 9))
        if not has_function(query):
            assert str(parse_query(str(query))) == str(query)


@pytest.mark.parametrize("seed", range(20))
def test_a_query_that_was_read_answers_as_before(seed):
    rng = Random(seed)
    query = well_typed(rng, any_query)
    while has_function(query):
        query = well_typed(rng, any_query)
    items = word(rng)

    assert all(map(same, outcome(parse_query(str(query)), items), outcome(query, items)))


def outcome(query, items):
    try:
        return query.run(items, tags=TAGS)
    except QueryError as error:
        return [error.came]


PLAIN = [
    0,
    1,
    -3,
    2.5,
    -0.0,
    1e-7,
    1e300,
    10**30,
    math.inf,
    -math.inf,
    math.nan,
    True,
    None,
    "it's",
    'a "b"\n',
    (1, -2),
]
UNARY = [each for each in OPERATIONS.values() if each.arity == 1]


def random_term(rng: Random, size: int, leaves: list[Term]) -> Term:
    if size <= 1:
        return rng.choice([*leaves, Constant(rng.choice(PLAIN))])
    operation = rng.choice([*OPERATIONS.values(), *UNARY])
    return Apply(operation, tuple(random_term(rng, size // operation.arity, leaves) for _ in range(operation.arity)))


@pytest.mark.parametrize("seed", range(20))
def test_every_term_is_read_as_it_prints_and_means_the_same(seed):
    rng = Random(seed)
    for _ in range(100):
        items = random_term(rng, rng.randint(1, 12), [cur, cur.price, cur["unit price"], cur["_x"], cur["class"]])
        values = random_term(rng, rng.randint(1, 12), [Slot(0), Slot(1), Slot(2)])
        query = combine(any_(items), any_(0), any_(1), values)

        again = parse_query(str(query))

        assert str(again) == str(query)
        # As text with all parentheses: the same operations on the same parts.
        assert nested(again.parts[0].terms[0]) == nested(items)
        assert nested(again.terms[0]) == nested(values)


def nested(term: Term) -> str:
    if isinstance(term, Apply):
        name, parts = term.operation.name, [nested(each) for each in term.arguments]
        if name == "negate" and parts[0] in ("1", "2.5", "0.0", "1e-07", "1e+300", "inf", str(10**30)):
            return f"-{parts[0]}"  # minus a number, and the number below 0
        return f"{name}({', '.join(parts)})"
    return str(term)


@pytest.mark.parametrize("name", ["v w", "it's", "5", "", "a,b", "a)", "é", "None", "cur", "any"])
def test_tags_need_not_be_names(name):
    query = fill_with(iter_(atom(name or "\n", cur), 0, add), 0)

    assert str(parse_query(str(query))) == str(query)
    assert parse_query(str(query)).tags == (name or "\n",)


def test_the_third_of_three_values_is_no_second():
    query = combine(constant(1), constant(2), constant(3), Slot(2))

    assert parse_query(str(query)).run([]) == [3]


def test_queries_that_print_deep_are_read():
    query = mean_of_last(cur, 40)

    assert str(parse_query(str(query))) == str(query)


# -- what people write -----------------------------------------------------------------------------------------------

TEXTS = [
    ("atom(v, cur)", v),
    ("atom('v', cur)", v),
    ("any(cur.price * 2)", any_(cur.price * 2)),
    ("any_(cur['unit price'])", any_(cur["unit price"])),
    ('any(cur["unit price"])', any_(cur["unit price"])),
    ("any(cur == 'x')", any_(cur == "x")),
    ("eps(-5)", eps(-5)),
    ("eps(10_000)", eps(10_000)),
    ("eps(.5)", eps(0.5)),
    ("eps((1, 'a'))", eps((1, "a"))),
    ("eps([])", eps([])),
    ("eps({'a': (1, 2)})", eps({"a": (1, 2)})),
    ("or(atom(v, cur), atom(w, cur), eps(0))", or_(v, w, eps(0))),
    ("or_(eps(0))", eps(0)),
    ("split(atom(v, cur), atom(w, cur), first)", split(v, w, first)),
    ("split(atom(v, cur), atom(w, cur), y - x)", split(v, w, lambda x, y: y - x)),
    ("split(atom(v, cur), atom(w, cur), x0 + 2 * x1)", split(v, w, lambda x, y: x + 2 * y)),
    (
        "split(atom(v, cur), atom(w, cur), choose(x > y, x, y))",
        split(v, w, choose(Slot(0) > Slot(1), Slot(0), Slot(1))),
    ),
    ("iter(atom(v, cur), 0, add)", iter_(v, 0, add)),
    ("iter_(one=atom(v, cur), op=second, start=0)", iter_(v, 0, second)),
    ("combine(count(), total(), y / x)", combine(count(), total(), lambda x, y: y / x)),
    ("combine(count(), abs)", combine(count(), abs)),
    ("combine(count(), count(), count(), x + y * z)", combine(count(), count(), count(), lambda x, y, z: x + y * z)),
    ("prefix_sum(count(), 0, max)", prefix_sum(count(), 0, max)),
    ("fill(count())", fill(count())),
    ("fill_with(atom(v, cur), 0)", fill_with(v, 0)),
    ("constant(3)", constant(3)),
    ("3", constant(3)),
    ("count() > 3", count() > 3),
    ("3 < count()", constant(3) < count()),
    ("count() == 3", count() == 3),
    ("count() != 3", count() != 3),
    ("count() + 1 >= 2 * 3", count() + 1 >= 6),
    ("-count() / 2 < 1", combine(count(), lambda x: -x) / 2 < 1),
    ("count() - 1 - 2 <= 0", count() - 1 - 2 <= 0),
    ("count() % 2 == 0", combine(count(), constant(2), lambda x, y: x % y) == 0),
    ("max(count(), 3) > 4", combine(count(), constant(3), max) > 4),
    ("abs(change(cur)) <= 4", combine(change(cur), abs) <= 4),
    ("count() > 1 & count() < 3 | count() == 7", ((count() > 1) & (count() < 3)) | (count() == 7)),
    ("~(count() > 1)", ~(count() > 1)),
    ("count() > 1 & count() > 2 -> count() > 3", ((count() > 1) & (count() > 2)) >> (count() > 3)),
    ("count() > 1 <-> count() > 2", iff(count() > 1, count() > 2)),
    ("implies(count() > 1, count() > 2)", implies(count() > 1, count() > 2)),
    ("(count() > 1) == (count() > 2)", (count() > 1) == (count() > 2)),
    ("agree(atom(v, cur), atom(w, cur))", agree(v, w)),
    ("previously(once(historically(count() > 1)))", previously(once(historically(count() > 1)))),
    ("since(count() > 1, count() > 2)", since(count() > 1, count() > 2)),
    ("weak_since(count() > 1, count() > 2)", weak_since(count() > 1, count() > 2)),
    ("holds(cur > 3 & cur < 5 | ~cur.ok)", holds((cur > 3) & (cur < 5) | ~cur.ok)),
    ("current(cur.price, sale, before=-1)", current(cur.price, "sale", before=-1)),
    ("count('v w', where=cur > 3)", count("v w", where=cur > 3)),
    ("any(cur, but=(w, 'x y'))", any_(cur, but=("w", "x y"))),
    ("per(day, total(cur, v))", per("day", total(cur, "v"))),
    ("window(cur, n=3, start=0, op=max)", window(cur, 3, 0, max)),
    ("  count( # of all\n\t) > 3", count() > 3),
]


@pytest.mark.parametrize(("text", "query"), TEXTS, ids=[text for text, _ in TEXTS])
def test_texts(text, query):
    assert str(parse_query(text)) == str(query)


def test_every_query_of_the_library_can_be_written():
    names = [
        name for name, each in vars(library).items() if inspect.isfunction(each) and each.__module__ == library.__name__
    ]
    for name in (name for name in names if not name.startswith("_")):
        with pytest.raises(QueryError, match=r"needed no more for|needed an argument that it has"):
            parse_query(f"{name}(nonsense=1)")


# -- what is refused -------------------------------------------------------------------------------------------------

REFUSED = [
    ("", 0, "needed a query; came the end of the text"),
    ("cur > 3", 0, "needed a query; came 'cur'. Try: current(cur), or cur in an atom: atom(v, cur)"),
    ("total", 5, "needed '(' after total; came the end of the text. Try: total(term, tag)"),
    ("totl(cur)", 0, "needed a query; came 'totl'. Try: total"),
    ("nothing_like_it", 0, "needed a query; came 'nothing_like_it'. Try: one of atom, any"),
    ("count() > 3)", 11, "needed a sign between two queries, or the end; came ')'"),
    ("(count() > 3", 12, "needed ')'; came the end of the text"),
    ("count() count()", 8, "needed a sign between two queries, or the end; came 'count'"),
    ("count() >", 9, "needed a query; came the end of the text"),
    ("0 < count() < 3", 12, "needed parentheses where two comparisons meet; came '<'. Try: a < b & b < c"),
    ("holds(0 < cur < 3)", 14, "needed parentheses where two comparisons meet"),
    ("holds(cur -> cur -> cur)", 17, "needed parentheses where two implications meet; came '->'. Try: a -> (b -> c)"),
    ("count() > 1 and count() > 2", 12, "needed a sign between two queries; came 'and'. Try: &"),
    ("not count() > 1", 0, "needed a query; came 'not'. Try: ~ instead of not"),
    ("count() > 1 && count() > 2", 12, "needed a sign that queries have; came '&&'. Try: &"),
    ("count() > 1 >> count() > 2", 12, "came '>>'. Try: ->"),
    ("count() = 1", 8, "needed a sign between two queries, or the end; came '='. Try: =="),
    ("!(count() > 1)", 0, "came '!'. Try: ~"),
    ("count() ** 2", 8, "came '**'. Try: x * x"),
    ("count() > 5x", 10, "came '5x'"),
    ("count() > 1__0", 10, "needed a number; came '1__0'"),
    ("count() > 'a", 10, "needed a text that ends on its line"),
    ("count() @ 3", 8, "came '@'"),
    ("count() > 1 / 0", 12, "needed values that can be calculated with; came division by zero"),
    ("count() & count()", 8, "needed something that is true or false; came a query that has a value"),
    ("once(count())", 0, "needed something that is true or false"),
    ("split(fill(count()), atom(v, cur), add)", 0, "needed a query that can be asked of a piece of the stream"),
    ("split(atom(v, cur), atom(w, cur))", 32, "needed an operation: op of split; came ')'. Try: split(one, other, op)"),
    (
        "split(atom(v, cur), atom(w, cur), ad)",
        34,
        "needed an operation that has a name, or a term over x0, x1; came 'ad'",
    ),
    ("split(atom(v, cur), atom(w, cur), x0 + x2)", 39, "needed one of 2 values; came 'x2'. Try: a term over x0, x1"),
    ("split(atom(v, cur), atom(w, cur), cur)", 34, "which is not about the current item; came 'cur'"),
    ("split(atom(v, cur), atom(w, cur), choose)", 34, "needed an operation on 2 values; came 'choose'"),
    ("combine(count(), second)", 17, "needed an operation on 1 values; came 'second'"),
    ("combine(add)", 8, "needed queries, and an operation on their values; came 'add'"),
    ("iter(atom(v, cur), cur, add)", 19, "needed a value, which is not about the current item; came 'cur'"),
    ("atom(v, x0)", 8, "needed a term over cur; came 'x0'"),
    ("atom(v, cur.)", 12, "needed the name of a field; came ')'"),
    ("atom(v, cur[1])", 12, "needed the name of a field in quotation marks; came '1'"),
    ("atom(v, maxx(cur, 1))", 8, "needed an operation; came 'maxx'. Try: max"),
    ("atom(v, max(cur))", 15, "needed 2 for max; came ')'. Try: max(x0, x1)"),
    ("atom(5, cur)", 5, "needed a tag; came '5'"),
    ("atom(v, cur, 5)", 13, "needed no more for atom; came '5'. Try: atom(tag, term)"),
    ("total(cur, before=3)", 11, "needed an argument that it has; came 'before'. Try: total(term, tag)"),
    ("total(cur, term=3)", 11, "needed each argument once; came 'term'"),
    ("any(cur, but=v)", 13, "needed '('; came 'v'. Try: but=(v, w)"),
    ("mean_of_last(cur)", 16, "needed a number of items: n of mean_of_last; came ')'"),
    ("mean_of_last(cur, 2.5)", 18, "needed a number of items; came '2.5'"),
    ("mean_of_last(cur, 0)", 0, "needed a number of items, at least 1; came 0"),
    ("per(day, fill(count()))", 0, "needed a query that can be asked of pieces of the stream, without 'day'"),
    ("eps((1, cur))", 4, "needed a term over cur"),
    ("eps([1, count()])", 4, "needed a term over cur; came '['"),
    ("eps([1, 2", 9, "needed ']'; came the end of the text"),
]


@pytest.mark.parametrize(("text", "column", "message"), REFUSED, ids=[text for text, _, _ in REFUSED])
def test_what_is_no_query_is_refused_where_it_goes_wrong(text, column, message):
    with pytest.raises(QueryError) as caught:
        parse_query(text)

    assert message in str(caught.value)
    assert caught.value.where == f"the query at column {column + 1}\n    {text}\n    {' ' * column}^"


def test_an_error_in_many_lines_is_marked_in_its_line():
    with pytest.raises(QueryError) as caught:
        parse_query("count() > 3\n\t& cont() < 5")

    assert caught.value.where == "the query at line 2, column 4\n     & cont() < 5\n       ^"


def test_only_text_is_read():
    with pytest.raises(QueryError, match="needed a text; came 5"):
        parse_query(5)


def test_too_many_parentheses_are_refused_before_python_gives_up():
    assert str(parse_query("(" * 140 + "3" + ")" * 140)) == str(constant(3))
    for text in ("(" * 5000 + "3" + ")" * 5000, "~" * 5000 + "3", "fill(" * 5000 + "count()" + ")" * 5000, "-" * 5000):
        with pytest.raises(QueryError, match=f"not deeper than {MOST_NESTED}"):
            parse_query(text)


def test_long_texts_that_are_not_deep_are_read():
    text = " & ".join(["count() > 3"] * 300)

    assert str(parse_query(text)).count("any(1)") == 300
