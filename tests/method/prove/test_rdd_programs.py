"""Programs on RDDs: proved, refuted, or not decided and why. Spark is not needed: what differs is believed here."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from streamtight.errors import SourceError
from streamtight.method.prove.draw import some_rows
from streamtight.method.prove.inputs import RDDInput, rdd
from streamtight.method.prove.programs import Run
from streamtight.method.prove.rdd_programs import RDDPrograms
from streamtight.method.prove.search import Question, search
from streamtight.verdict import Verdict

Program = Callable[..., Any]


def ask(left: Program, right: Program, *types: Any, seconds: float = 10.0) -> Verdict:
    inputs = tuple(each if isinstance(each, RDDInput) else rdd(each) for each in types)
    return search(Question("they are equal", left, right, inputs, lambda found: found, lambda _: "", seconds=seconds))


EQUAL: list[tuple[str, Program, Program, tuple[Any, ...]]] = [
    (
        "a filter before a map (Figure 1)",
        lambda r: r.map(lambda x: 2 * x).filter(lambda x: x >= 100),
        lambda r: r.filter(lambda x: x >= 50).map(lambda x: 2 * x),
        (int,),
    ),
    ("a count is a sum of ones", lambda r: r.count(), lambda r: r.map(lambda x: 1).sum(), (int,)),
    (
        "a factor before and after a sum",
        lambda r: r.map(lambda x: 2 * x + 1).sum(),
        lambda r: 2 * r.sum() + r.count(),
        (int,),
    ),
    (
        "an aggregate of pairs is two aggregates",
        lambda r: r.aggregate((0, 0), lambda s, x: (s[0] + x, s[1] + 1), lambda a, b: (a[0] + b[0], a[1] + b[1])),
        lambda r: (r.sum(), r.count()),
        (int,),
    ),
    ("a maximum is a reduce", lambda r: r.max(), lambda r: r.reduce(lambda a, b: a if a > b else b), (int,)),
    ("a factor before and after a maximum", lambda r: r.map(lambda x: 2 * x).max(), lambda r: 2 * r.max(), (int,)),
    ("a count modulo 5", lambda r: r.count() % 5 == 0, lambda r: r.map(lambda x: 1).sum() % 5 == 0, (int,)),
    (
        "a filter by an aggregate",
        lambda r: (lambda n: r.filter(lambda x: x > n))(r.count()),
        lambda r: (lambda n: r.filter(lambda x: x >= n + 1))(r.map(lambda x: 1).sum()),
        (int,),
    ),
    (
        "sums by key",
        lambda r: r.mapValues(lambda v: 2 * v).reduceByKey(lambda a, b: a + b),
        lambda r: r.aggregateByKey(0, lambda s, x: s + x, lambda a, b: a + b).mapValues(lambda v: 2 * v),
        ((int, int),),
    ),
    (
        "maxima by key",
        lambda r: r.reduceByKey(lambda a, b: max(a, b)),
        lambda r: r.reduceByKey(lambda a, b: a if a >= b else b),
        ((str, int),),
    ),
    (
        "distinct twice",
        lambda r: r.map(lambda x: x % 3).distinct(),
        lambda r: r.distinct().map(lambda x: x % 3).distinct(),
        (int,),
    ),
    (
        "a join the other way round",
        lambda r, s: r.join(s),
        lambda r, s: s.join(r).mapValues(lambda p: (p[1], p[0])),
        ((int, int), (int, str)),
    ),
    (
        "a left outer join without what is missing",
        lambda r, s: r.leftOuterJoin(s).filter(lambda kv: kv[1][1] is not None),
        lambda r, s: r.join(s),
        ((int, int), (int, int)),
    ),
    (
        "a filter before a join",
        lambda r, s: r.join(s).filter(lambda kv: kv[1][0] > 3),
        lambda r, s: r.filter(lambda kv: kv[1] > 3).join(s),
        ((int, int), (int, int)),
    ),
    ("counts by value", lambda r: r.countByValue(), lambda r: r.map(lambda x: (x, 1)).countByKey(), (int,)),
    ("a self product", lambda r: r.cartesian(r), lambda r: r.cartesian(r).map(lambda p: (p[1], p[0])), (int,)),
    (
        "a split that is united",
        lambda r: r.filter(lambda x: x > 0).union(r.filter(lambda x: x <= 0)),
        lambda r: r,
        (int,),
    ),
    (
        "None by cases",
        lambda r: r.map(lambda x: 0 if x is None else x).filter(lambda x: x != 0),
        lambda r: r.filter(lambda x: x is not None and x != 0),
        (int | None,),
    ),
    (
        "what is there and what is not",
        lambda r, s: r.subtract(s).filter(lambda x: x > 0),
        lambda r, s: r.filter(lambda x: x > 0).subtract(s),
        (int, int),
    ),
]
DIFFERENT: list[tuple[str, Program, Program, tuple[Any, ...]]] = [
    ("off by one", lambda r: r.filter(lambda x: x >= 50), lambda r: r.filter(lambda x: x > 50), (int,)),
    ("another input (Example 3)", lambda r, s: r.map(lambda x: 1), lambda r, s: s.map(lambda x: 1), (int, int)),
    (
        "rows that come more often",
        lambda r, s: r.filter(lambda x: x > 0),
        lambda r, s: r.cartesian(s).map(lambda p: p[0]).filter(lambda x: x > 0),
        (int, int),
    ),
    (
        "a product is not empty",
        lambda r: r.cartesian(r).map(lambda p: p[0] - p[1]).filter(lambda x: x > 0),
        lambda r: r.filter(lambda x: False),
        (int,),
    ),
    (
        "three conditions",
        lambda r: r.filter(lambda x: x > 0 and x < 9 and x % 2 == 0),
        lambda r: r.filter(lambda x: x > 0 and x < 9),
        (int,),
    ),
    ("a chain of comparisons", lambda r: r.filter(lambda x: 0 < x < 10), lambda r: r.filter(lambda x: x > 0), (int,)),
    ("a negative divisor", lambda r: r.map(lambda x: x % -3), lambda r: r.map(lambda x: x % 3), (int,)),
    ("once or as often as it comes", lambda r, s: r.subtract(s).union(r.intersection(s)), lambda r, s: r, (int, int)),
    ("a division by zero", lambda r: r.map(lambda x: 10 // x), lambda r: r.map(lambda x: 10 // x if x else 0), (int,)),
    (
        "a sum that is seven",
        lambda r: r.reduceByKey(lambda a, b: a + b),
        lambda r: r.reduceByKey(lambda a, b: a + b).filter(lambda kv: kv[1] != 7),
        ((int, int),),
    ),
    ("a maximum of nothing", lambda r: r.max(), lambda r: r.fold(-(10**9), lambda a, b: max(a, b)), (int,)),
]


@pytest.mark.parametrize(("left", "right", "types"), [case[1:] for case in EQUAL], ids=[case[0] for case in EQUAL])
def test_programs_that_are_equal_are_proved_to_be(left: Program, right: Program, types: tuple[Any, ...]):
    verdict = ask(left, right, *types)

    assert verdict.holds, verdict.story()
    assert str(verdict.scope) == "proved for every input"


@pytest.mark.parametrize(
    ("left", "right", "types"), [case[1:] for case in DIFFERENT], ids=[case[0] for case in DIFFERENT]
)
def test_programs_that_differ_are_shown_to(left: Program, right: Program, types: tuple[Any, ...]):
    verdict = ask(left, right, *types)

    assert verdict.fails, verdict.story()
    assert verdict.counterexample.finding == "DIFFERENT"


@pytest.mark.parametrize(
    "program",
    [
        lambda r: r.fold(0, lambda a, x: a + 1),
        lambda r: r.fold(1, lambda a, x: a + x),
        lambda r: r.aggregate(0, lambda a, x: 3 * a + x, lambda a, b: a + b),
        lambda r: r.map(lambda x: (0, x)).foldByKey(0, lambda a, x: a + 1),
    ],
)
def test_a_fold_that_depends_on_the_partitions_is_no_number(program: Program):
    verdict = ask(program, program, int)

    assert verdict.fails
    assert verdict.counterexample.finding == "NOT_WELL_DEFINED"


def test_a_fold_that_is_merged_otherwise_than_it_adds_is_not_taken_for_a_loop():
    # Spark merges the results of the partitions with the same function: minus, twice, is plus.
    verdict = ask(lambda r: r.fold(0, lambda a, x: a - x), lambda r: -r.sum(), int)

    assert verdict.fails


@pytest.mark.parametrize(
    "program",
    [
        lambda r: r.first(),
        lambda r: r.take(1),
        lambda r: r.max(key=lambda x: x % 3),
        lambda r: r.map(str).fold("", lambda a, b: a + b),
        lambda r: r.map(lambda x: (x % 2, x)).collectAsMap(),
    ],
)
def test_what_depends_on_the_order_of_rows_is_not_well_defined(program: Program):
    verdict = ask(program, program, int)

    assert verdict.fails, verdict.story()
    assert verdict.counterexample.finding == "NOT_WELL_DEFINED"


def test_what_is_known_of_the_rows_is_used_in_a_proof_and_for_small_inputs():
    def all_of_them(r: Any) -> Any:
        return r

    def positive(r: Any) -> Any:
        return r.filter(lambda x: x > 0)

    def above_one(r: Any) -> Any:
        return r.filter(lambda x: x > 1)

    known = rdd(int).where(lambda x: x > 0)

    assert ask(all_of_them, positive, int).fails
    assert ask(all_of_them, positive, known).holds
    refuted = ask(all_of_them, above_one, known)
    assert refuted.counterexample.table.rows == (("1", "1", "no rows"),)


def test_programs_that_both_raise_are_the_same_whatever_they_raise():
    def divides(r: Any) -> Any:
        return r.map(lambda x: 1 // x).filter(lambda x: x > 5)

    def looks_up(r: Any) -> Any:
        return r.map(lambda x: {}[x] if x == 0 else x).filter(lambda x: x is None)

    verdict = ask(divides, looks_up, int)

    assert not verdict.fails, verdict.story()


def test_the_order_of_rdds_that_were_sorted_is_not_compared_and_that_is_told():
    verdict = ask(lambda r: r, lambda r: r.sortBy(lambda x: -x), int)

    assert verdict.undecided or verdict.assumptions == ("the order of rows does not matter",)


def test_a_proof_says_how_it_was_found_and_what_it_assumes():
    verdict = ask(lambda r: r.map(lambda x: x * 2), lambda r: r.map(lambda x: x + x), float)

    assert verdict.method.startswith("NoAgg")
    assert verdict.assumptions
    assert "assuming that" in str(verdict)


def test_a_program_without_an_end_is_stopped():
    def waits(x: int) -> int:
        while x == 0:
            pass
        return x

    verdict = ask(lambda r: r.map(waits), lambda r: r, int, seconds=0.5)

    assert verdict.undecided
    assert "seconds" in verdict.reason


seen: list[int] = []


def noisy(r: Any) -> Any:
    return r.map(lambda x: x + random.random())


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (noisy, "random"),
        (lambda r: r.zipWithIndex(), "zipWithIndex"),
        (lambda r: r.mapPartitions(lambda rows: rows), "mapPartitions"),
        (lambda r: r.map(lambda x: hash((x,))), "hash"),
        (lambda r: r.sum() if isinstance(r.count(), int) else 0, "isinstance"),
        (lambda r: None, "None"),
        (lambda r: print(r.count()), "print"),
        (lambda r: (x for x in [1]), "generator"),
        (lambda r: r.map(lambda x: seen.append(x) or x), "changes seen"),
        (lambda r: [x + 1 for x in r.collect()], ""),
    ],
)
def test_what_cannot_be_read_is_not_decided_and_says_why(program: Program, reason: str):
    verdict = ask(program, program, int)

    assert verdict.undecided, verdict.story()
    assert reason in verdict.reason


def test_a_type_that_is_not_known_is_refused():
    with pytest.raises(SourceError, match="rdd"):
        rdd(list)
    with pytest.raises(SourceError, match="rdd"):
        rdd((int, dict))


# -- random programs: no verdict is contradicted by a run --------------------------------------------------------------


def _random_program(chance: random.Random) -> tuple[str, Program]:
    """A program of a few steps on one RDD of numbers, as its text and as a function."""
    text = "r"
    for _ in range(chance.randint(1, 3)):
        a, b = chance.randint(-3, 3), chance.randint(-3, 3)
        text += chance.choice(
            [
                f".map(lambda x: {a} * x + {b})",
                f".map(lambda x: x % {a or 2})",
                f".map(lambda x: x // {b or 3})",
                f".filter(lambda x: x > {a})",
                f".filter(lambda x: x % 2 == {abs(b) % 2})",
                f".flatMap(lambda x: [x, {a}] if x > {b} else [x])",
                ".distinct()",
                f".union(r.map(lambda x: x + {a}))",
                f".subtract(r.filter(lambda x: x > {b}))",
                f".map(lambda x: abs(x) if x < {a} else max(x, {b}))",
            ]
        )
    text += chance.choice(["", "", ".count()", ".sum()", ".map(lambda x: (x % 2, x)).reduceByKey(lambda a, b: a + b)"])
    return text, eval(f"lambda r: {text}")  # noqa: S307


@pytest.mark.parametrize("seed", [*range(6), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(6, 60))])
def test_no_proof_is_contradicted_by_a_run(seed: int):
    chance = random.Random(seed)
    for _ in range(4):
        (one, left), (other, right) = _random_program(chance), _random_program(chance)
        if chance.random() < 0.6:  # two programs that are nearly the same
            other = one.replace("> 1", "> 0").replace("* x + 2", "* x + 1").replace(".distinct()", "", 1)
            right = eval(f"lambda r: {other}")  # noqa: S307
        verdict = ask(left, right, int, seconds=5)
        if not verdict.holds:
            continue
        for _ in range(200):
            rows = (tuple(some_rows(int, [-3, 3, 7], chance, 6)),)
            programs = RDDPrograms(left, right, [rdd(int)])
            mine, theirs = programs.result(Run(left, rows)), programs.result(Run(right, rows, chance.randint(1, 4)))
            assert mine is not None, one
            assert theirs is not None, other
            assert mine.is_same(theirs), (one, other, rows)
