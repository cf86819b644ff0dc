"""Pairs of RDD programs."""

# ruff: noqa: E711, RUF005, SIM300 (programs as users write them)

from __future__ import annotations

import operator
import random
import time
from collections import namedtuple
from dataclasses import dataclass
from typing import Any

from pairs import Pair, Program, Rows, Verdict

PAIR = (int, int)
FIGURE_9, EXAMPLES, PROBES = "SparkLite Figure 9", "SparkLite Examples", "wrong answers of SparkLite's tool"


def rdd(
    name: str,
    inputs: tuple[Any, ...],
    left: Program,
    right: Program,
    why: str,
    verdict: Verdict,
    witness: tuple[Rows, ...] | None,
    source: str,
) -> Pair:
    return Pair(name, inputs, left, right, verdict, witness, why, "rdd", source)


def holds(
    name: str, inputs: tuple[Any, ...], left: Program, right: Program, why: str, *, source: str = "refactoring"
) -> Pair:
    return rdd(name, inputs, left, right, why, "HOLDS", None, source)


def fails(
    name: str,
    inputs: tuple[Any, ...],
    left: Program,
    right: Program,
    witness: tuple[Rows, ...],
    why: str,
    *,
    source: str = "refactoring",
) -> Pair:
    return rdd(name, inputs, left, right, why, "FAILS", witness, source)


def undefined(
    name: str,
    inputs: tuple[Any, ...],
    left: Program,
    right: Program,
    witness: tuple[Rows, ...],
    why: str,
    *,
    source: str = "refactoring",
) -> Pair:
    return rdd(name, inputs, left, right, why, "NOT_WELL_DEFINED", witness, source)


def undecided(name: str, inputs: tuple[Any, ...], left: Program, right: Program, why: str) -> Pair:
    return rdd(name, inputs, left, right, why, "UNDECIDED", None, "refused")


# -- the functions of Figure 10 --------------------------------------------------------------------------------------


def m2(x):
    return 2 * x


def m2p1(x):
    return 2 * x + 1


def m3(x):
    return 3 * x


def invert(x):
    return -x


def a50(x):
    return x >= 50


def ba50(xy):
    x, y = xy
    return x >= 50 and y >= 50


def ea50(xy):
    x, y = xy
    return x >= 50 or y >= 50


def smaller(x, y):
    return x if x < y else y


def greater(x, y):
    return x if x > y else y


def dis(x):
    return x - 20


def add(x, y):
    return x + y


def s_mod_5(x, y):
    return (x + y) % 5


def count(x, y):
    return x + 1


def odd(x):
    return x % 2 == 1


def odd_key(xy):
    return xy[0] % 2 == 1


def one_if_odd(x):
    if x % 2 == 1:
        return 1
    else:  # noqa: RET505
        return 0


def double_both(xy):
    x, y = xy
    return 2 * x, 2 * y


def double_joined(row):
    x, (y, w) = row
    return 2 * x, (2 * y, 2 * w)


def double_value(xy):
    return xy[0], 2 * xy[1]


def double_values(rows):
    (x, y), (z, w) = rows
    return (x, 2 * y), (z, 2 * w)


def joined(s1, s2):
    """The paper's join: a product, a filter and a map."""
    return (
        s1.cartesian(s2)
        .filter(lambda rows: rows[0][0] == rows[1][0])
        .map(lambda rows: (rows[0][0], (rows[0][1], rows[1][1])))
    )


FIGURE_9_PAIRS = [
    holds(
        "figure 9, 1: doubled then filtered",
        (int,),
        lambda r: r.map(lambda x: 2 * x).filter(lambda x: x >= 100),
        lambda r: r.filter(lambda x: x >= 50).map(lambda x: 2 * x),
        "2x >= 100 where x >= 50",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 2: doubled then filtered, by another bound",
        (int,),
        lambda r: r.map(lambda x: 2 * x).filter(lambda x: x >= 100),
        lambda r: r.filter(lambda x: x >= 100).map(lambda x: 2 * x),
        ([50],),
        "the second filter drops 50",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 3: map of a product",
        (int, int),
        lambda r1, r2: r1.cartesian(r2).map(double_both),
        lambda r1, r2: r1.map(m2).cartesian(r2.map(m2)),
        "a product of maps is a map of the product",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 4: even and odd",
        (int,),
        lambda r: r.map(m2),
        lambda r: r.map(m2p1),
        ([0],),
        "0 and 1",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 5: filter of a product by and",
        (int, int),
        lambda r1, r2: r1.cartesian(r2).filter(ba50),
        lambda r1, r2: r1.filter(a50).cartesian(r2.filter(a50)),
        "a conjunction of conditions on each side",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 6: filter of a product by or",
        (int, int),
        lambda r1, r2: r1.cartesian(r2).filter(ea50),
        lambda r1, r2: r1.filter(a50).cartesian(r2.filter(a50)),
        ([50], [0]),
        "one side is enough for or",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 7: count of odd numbers",
        (int,),
        lambda r: r.filter(odd).aggregate(0, count, add),
        lambda r: r.map(one_if_odd).fold(0, add),
        "a sum of ones",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 8: minimum of discounted",
        (int,),
        lambda r: r.fold(1000, smaller),
        lambda r: r.map(dis).fold(1000, smaller),
        ([0],),
        "0 and -20",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 9: minimum at least",
        (int,),
        lambda r: r.fold(1000, smaller) >= 100,
        lambda r: r.map(dis).fold(1000, smaller) >= 80,
        "all are at least 100, or one is not",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 10: minimum equal",
        (int,),
        lambda r: r.fold(1000, smaller) == 100,
        lambda r: r.map(dis).fold(1000, smaller) == 80,
        "needs that the two minima differ by 20 or are both 1000 or nearly",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 11: sum modulo 5 in the fold",
        (int,),
        lambda r: r.fold(0, s_mod_5),
        lambda r: r.map(m3).fold(0, s_mod_5),
        ([1],),
        "1 and 3",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 12: sum divisible by 5",
        (int,),
        lambda r: r.fold(0, add) % 5 == 0,
        lambda r: r.map(m3).fold(0, add) % 5 == 0,
        "3 has an inverse modulo 5",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 13: sum divisible by 6",
        (int,),
        lambda r: r.fold(0, add) % 6 == 0,
        lambda r: r.map(m3).fold(0, add) % 6 == 0,
        ([2],),
        "3 has no inverse modulo 6",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 14: maximum as minimum of the inverted",
        (int,),
        lambda r: r.fold(-100, greater),
        lambda r: -r.map(invert).fold(100, smaller),
        "max is -min of -x",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 15: maximum from another start",
        (int,),
        lambda r: r.fold(0, greater),
        lambda r: -r.map(invert).fold(100, smaller),
        ([],),
        "0 and -100 of nothing",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 16: join of doubled",
        (PAIR, PAIR),
        lambda s1, s2: joined(s1.map(double_both), s2.map(double_both)),
        lambda s1, s2: joined(s1, s2).map(double_joined),
        "doubling keys keeps them apart",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 17: product of doubled values",
        (PAIR, PAIR),
        lambda s1, s2: s1.map(double_value).cartesian(s2.map(double_value)),
        lambda s1, s2: s1.cartesian(s2).map(double_values),
        "a product of maps is a map of the product",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 18: join of doubled values",
        (PAIR, PAIR),
        lambda s1, s2: joined(s1.map(double_value), s2.map(double_value)),
        lambda s1, s2: joined(s1, s2).map(double_joined),
        ([(1, 1)], [(1, 1)]),
        "one side doubles the key too",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 19: join of filtered by key",
        (PAIR, PAIR),
        lambda s1, s2: joined(s1.filter(odd_key), s2.filter(odd_key)),
        lambda s1, s2: joined(s1, s2).filter(odd_key),
        "a condition on the key goes to both sides",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 16 with Spark's join",
        (PAIR, PAIR),
        lambda s1, s2: s1.map(double_both).join(s2.map(double_both)),
        lambda s1, s2: s1.join(s2).map(double_joined),
        "doubling keys keeps them apart",
        source=FIGURE_9,
    ),
    fails(
        "figure 9, 18 with Spark's join",
        (PAIR, PAIR),
        lambda s1, s2: s1.map(double_value).join(s2.map(double_value)),
        lambda s1, s2: s1.join(s2).map(double_joined),
        ([(1, 1)], [(1, 1)]),
        "one side doubles the key too",
        source=FIGURE_9,
    ),
    holds(
        "figure 9, 19 with Spark's join",
        (PAIR, PAIR),
        lambda s1, s2: s1.filter(odd_key).join(s2.filter(odd_key)),
        lambda s1, s2: s1.join(s2).filter(odd_key),
        "a condition on the key goes to both sides",
        source=FIGURE_9,
    ),
    undefined(
        "figure 9, 7 as printed",
        (int,),
        lambda r: r.filter(odd).fold(0, count),
        lambda r: r.map(one_if_odd).fold(0, add),
        ([1, 1],),
        "Spark merges partitions with the same function: it counts partitions",
        source=FIGURE_9,
    ),
    undefined(
        "count by fold",
        (int,),
        lambda r: r.fold(0, lambda a, x: a + 1),
        lambda r: r.count(),
        ([1, 1],),
        "counts partitions",
        source=FIGURE_9,
    ),
]

# -- examples of the paper, and what its tool got wrong --------------------------------------------------------------


def signed_sums(sums, x):
    p, n = sums
    return (p + x, n) if x >= 0 else (p, n - x)


def merged_sums(a, b):
    return a[0] + b[0], a[1] + b[1]


EXAMPLE_PAIRS = [
    fails(
        "example 3: ones for each row of another input",
        (int, int),
        lambda r0, r1: r0.map(lambda x: 1),
        lambda r0, r1: r1.map(lambda x: 1),
        ([0], []),
        "as many ones as rows",
        source=EXAMPLES,
    ),
    holds(
        "example 4: a constant fold of another input",
        (int, int),
        lambda r0, r1: r0.fold(0, add),
        lambda r0, r1: r0.fold(0, add) + r1.fold(0, lambda a, x: 0),
        "the other fold is 0",
        source=EXAMPLES,
    ),
    fails(
        "example 4 with a fold that is not constant",
        (int, int),
        lambda r0, r1: r0.fold(0, add),
        lambda r0, r1: r0.fold(0, add) + r1.fold(0, add),
        ([], [1]),
        "the other sum counts",
        source=EXAMPLES,
    ),
    fails(
        "example 5 as printed",
        (int,),
        lambda r: r.aggregate((0, 0), signed_sums, merged_sums),
        lambda r: (
            r.filter(lambda x: x >= 0).sum(),
            -r.filter(lambda x: x < 0).map(lambda x: -x).sum(),
        ),
        ([-1],),
        "one side negates the sum",
        source=EXAMPLES,
    ),
    holds(
        "example 5 without the extra minus",
        (int,),
        lambda r: r.aggregate((0, 0), signed_sums, merged_sums),
        lambda r: (
            r.filter(lambda x: x >= 0).sum(),
            r.filter(lambda x: x < 0).map(lambda x: -x).sum(),
        ),
        "two independent sums",
        source=EXAMPLES,
    ),
    fails(
        "example 5 with the paper's fold",
        (int,),
        lambda r: r.fold((0, 0), signed_sums),
        lambda r: r.aggregate((0, 0), signed_sums, merged_sums),
        ([1],),
        "the merge compares a tuple with 0, which raises",
        source=EXAMPLES,
    ),
    holds(
        "figure 2: all prices at least 100",
        ((str, int),),
        lambda r: r.aggregate(10**6, lambda a, xy: a if a < xy[1] else xy[1], min) >= 100,
        lambda r: r.map(lambda p: (p[0], p[1] - 20)).aggregate(10**6, lambda a, xy: min(a, xy[1]), min) >= 80,
        "the paper's P3 and P4",
        source=EXAMPLES,
    ),
    holds(
        "Agg1R: rows above a maximum",
        (int, int),
        lambda r, s: above(r, s.fold(-100, greater)),
        lambda r, s: above(r.map(m2), s.map(m2).fold(-200, greater)).map(lambda x: x // 2),
        "both sides doubled",
        source=EXAMPLES,
    ),
    fails(
        "Agg1R: rows above a maximum, from a start that was not doubled",
        (int, int),
        lambda r, s: above(r, s.fold(-100, greater)),
        lambda r, s: above(r.map(m2), s.map(m2).fold(-100, greater)).map(lambda x: x // 2),
        ([-60], []),
        "-120 is not above -100",
        source=EXAMPLES,
    ),
    fails(
        "filter and projected product",
        (int, int),
        lambda r, s: r.filter(lambda x: x > 0),
        lambda r, s: r.cartesian(s).filter(lambda rows: rows[0] > 0).map(lambda rows: rows[0]),
        ([1], []),
        "as often as the other input has rows",
        source=PROBES,
    ),
    fails(
        "a self product is not the diagonal",
        (int,),
        lambda r: r.cartesian(r).filter(lambda rows: rows[0] - rows[1] > 0),
        lambda r: r.cartesian(r).filter(lambda rows: False),
        ([0, 1],),
        "(1, 0) is there",
        source=PROBES,
    ),
    fails(
        "three operands of and",
        (int,),
        lambda r: r.filter(lambda x: x > 0 and x < 10 and x % 2 == 0),
        lambda r: r.filter(lambda x: x > 0 and x < 10),
        ([1],),
        "the third operand counts",
        source=PROBES,
    ),
    fails(
        "a chained comparison",
        (int,),
        lambda r: r.filter(lambda x: 0 < x < 10),
        lambda r: r.filter(lambda x: 0 < x),
        ([10],),
        "the second comparison counts",
        source=PROBES,
    ),
    holds(
        "a chained comparison as and",
        (int,),
        lambda r: r.filter(lambda x: 0 < x < 10),
        lambda r: r.filter(lambda x: 0 < x and x < 10),
        "that is what it means",
        source=PROBES,
    ),
    fails(
        "remainder by a negative number",
        (int,),
        lambda r: r.map(lambda x: x % -3),
        lambda r: r.map(lambda x: x % 3),
        ([1],),
        "-2 and 1",
        source=PROBES,
    ),
    holds(
        "remainder by a negative number as Python has it",
        (int,),
        lambda r: r.map(lambda x: x % -3),
        lambda r: r.map(lambda x: -((-x) % 3)),
        "the sign of the divisor",
        source=PROBES,
    ),
    fails(
        "division by a negative number",
        (int,),
        lambda r: r.map(lambda x: x // -2),
        lambda r: r.map(lambda x: -(x // 2)),
        ([1],),
        "-1 and 0: towards minus infinity",
        source=PROBES,
    ),
    fails(
        "one hard component of two",
        (PAIR,),
        lambda r: r.map(lambda p: (p[0], p[0] * p[1] * p[1])),
        lambda r: r.map(lambda p: (p[0], p[0] * p[1] * p[1] + (1 if p[0] * p[1] == 391 and p[0] > 1 < p[1] else 0))),
        ([(17, 23)],),
        "differ for the factors of 391",
        source=PROBES,
    ),
    undefined(
        "a fold that multiplies",
        (int,),
        lambda r: r.fold(0, lambda a, x: 3 * a + x),
        lambda r: r.fold(0, lambda a, x: 3 * a + x),
        ([1, 2, 3],),
        "the order of rows and partitions counts",
        source=PROBES,
    ),
    undefined(
        "a fold that keeps the last row",
        (int,),
        lambda r: r.fold(0, lambda a, x: x),
        lambda r: r.fold(0, lambda a, x: x),
        ([1, 2],),
        "the last row, or 0 of an empty last partition",
        source=PROBES,
    ),
    fails(
        "a fold that subtracts",
        (int,),
        lambda r: r.fold(0, lambda a, x: a - x),
        lambda r: r.map(lambda x: -x).sum(),
        ([1],),
        "the merge subtracts again: it is the sum",
        source=PROBES,
    ),
    holds(
        "a fold that subtracts is a sum",
        (int,),
        lambda r: r.fold(0, lambda a, x: a - x),
        lambda r: r.sum(),
        "each partition gives minus its sum, and the merge subtracts those",
        source=PROBES,
    ),
    holds(
        "less or equal",
        (int,),
        lambda r: r.filter(lambda x: x <= 3),
        lambda r: r.filter(lambda x: x < 4),
        "whole numbers",
        source=PROBES,
    ),
    undefined(
        "count by key by fold",
        (PAIR,),
        lambda r: r.foldByKey(0, count),
        lambda r: r.mapValues(lambda v: 1).reduceByKey(add),
        ([(1, 1), (1, 1), (1, 1)],),
        "merged with the same function",
        source=PROBES,
    ),
]


def above(rows, bound):
    return rows.filter(lambda x: x > bound)


# -- each row by itself ----------------------------------------------------------------------------------------------

Point = namedtuple("Point", "x y")


@dataclass(frozen=True)
class Order:
    customer: int
    price: int

    def total(self):
        return self.price * 2


def clamped(x):
    if x < 0:
        return 0
    if x > 10:
        return 10
    return x


def clamped_below(x):
    if x <= 0:
        return 0
    elif x >= 10:  # noqa: RET505
        return 10
    return x


def graded(x):
    if x >= 90:
        return "a"
    elif x >= 50:  # noqa: RET505
        return "b"
    return "c"


def graded_carelessly(x):
    if x >= 50:
        return "b"
    elif x >= 90:  # noqa: RET505
        return "a"
    return "c"


def plus_three(x):
    for step in range(3):
        x += step
    return x


def first_match(x):
    for bound in (10, 20, 30):
        if x < bound:
            return bound
    return 0


NAMES = {1: 10, 2: 20}

EACH_PAIRS = [
    holds(
        "two maps are one",
        (int,),
        lambda r: r.map(lambda x: x + 1).map(lambda x: x * 2),
        lambda r: r.map(lambda x: 2 * x + 2),
        "2(x + 1)",
    ),
    fails(
        "two maps in the other order",
        (int,),
        lambda r: r.map(lambda x: x + 1).map(lambda x: x * 2),
        lambda r: r.map(lambda x: x * 2).map(lambda x: x + 1),
        ([0],),
        "2 and 1",
    ),
    holds(
        "filter pushed below a map",
        (int,),
        lambda r: r.map(lambda x: x + 1).filter(lambda x: x > 10),
        lambda r: r.filter(lambda x: x > 9).map(lambda x: x + 1),
        "the bound moves with it",
    ),
    fails(
        "filter pushed below a map, off by one",
        (int,),
        lambda r: r.map(lambda x: x + 1).filter(lambda x: x > 10),
        lambda r: r.filter(lambda x: x > 10).map(lambda x: x + 1),
        ([10],),
        "10 becomes 11",
    ),
    holds(
        "two filters are one",
        (int,),
        lambda r: r.filter(lambda x: x > 0).filter(lambda x: x % 2 == 0),
        lambda r: r.filter(lambda x: x % 2 == 0 and x > 0),
        "and",
    ),
    fails(
        "two filters are not or",
        (int,),
        lambda r: r.filter(lambda x: x > 0).filter(lambda x: x % 2 == 0),
        lambda r: r.filter(lambda x: x > 0 or x % 2 == 0),
        ([1],),
        "1 is positive and odd",
    ),
    holds(
        "de Morgan with three operands",
        (PAIR,),
        lambda r: r.filter(lambda p: not (p[0] > 0 or p[1] > 0 or p[0] == p[1])),
        lambda r: r.filter(lambda p: p[0] <= 0 and p[1] <= 0 and p[0] != p[1]),
        "not or is and not",
    ),
    holds(
        "at least and above, whole numbers",
        (int,),
        lambda r: r.filter(lambda x: x >= 10),
        lambda r: r.filter(lambda x: x > 9),
        "nothing is between 9 and 10",
    ),
    fails(
        "at least and above, fractions",
        (float,),
        lambda r: r.filter(lambda x: x >= 10),
        lambda r: r.filter(lambda x: x > 9),
        ([9.5],),
        "9.5 is between 9 and 10",
    ),
    holds(
        "membership as a range",
        (int,),
        lambda r: r.filter(lambda x: x in (1, 2, 3)),
        lambda r: r.filter(lambda x: 1 <= x <= 3),
        "whole numbers",
    ),
    fails(
        "a range without its end",
        (int,),
        lambda r: r.filter(lambda x: x in range(1, 3)),
        lambda r: r.filter(lambda x: 1 <= x <= 3),
        ([3],),
        "range stops before 3",
    ),
    holds(
        "clamping by min and max",
        (int,),
        lambda r: r.map(lambda x: max(0, min(x, 10))),
        lambda r: r.map(clamped),
        "early returns",
    ),
    holds(
        "clamping with other borders",
        (int,),
        lambda r: r.map(clamped),
        lambda r: r.map(clamped_below),
        "at the borders both give the border",
    ),
    fails(
        "clamping with min and max exchanged",
        (int,),
        lambda r: r.map(clamped),
        lambda r: r.map(lambda x: min(0, max(x, 10))),
        ([5],),
        "5 and 0",
    ),
    fails(
        "the order of elif",
        (int,),
        lambda r: r.map(graded),
        lambda r: r.map(graded_carelessly),
        ([90],),
        "the second test is never reached",
    ),
    holds(
        "absolute value",
        (int,),
        lambda r: r.map(abs),
        lambda r: r.map(lambda x: x if x > 0 else -x),
        "0 is -0",
    ),
    fails(
        "absolute value of a difference",
        (PAIR,),
        lambda r: r.map(lambda p: abs(p[0] - p[1])),
        lambda r: r.map(lambda p: abs(p[0]) - abs(p[1])),
        ([(1, -1)],),
        "2 and 0",
    ),
    holds(
        "quotient and remainder",
        (int,),
        lambda r: r.map(lambda x: x // 7 * 7 + x % 7),
        lambda r: r,
        "for negative numbers too",
    ),
    fails(
        "truncation and floor",
        (int,),
        lambda r: r.map(lambda x: int(x / 2)),
        lambda r: r.map(lambda x: x // 2),
        ([-1],),
        "0 and -1",
    ),
    holds(
        "two divisions are one",
        (int,),
        lambda r: r.map(lambda x: x // 2 // 3),
        lambda r: r.map(lambda x: x // 6),
        "floors of floors",
    ),
    fails(
        "a division is not undone",
        (int,),
        lambda r: r.map(lambda x: x // 3 * 3),
        lambda r: r,
        ([1],),
        "0 and 1",
    ),
    holds(
        "division rounded up",
        (int,),
        lambda r: r.map(lambda x: -(-x // 2)),
        lambda r: r.map(lambda x: (x + 1) // 2),
        "the ceiling",
    ),
    holds(
        "odd by remainder and by bit",
        (int,),
        lambda r: r.filter(lambda x: x % 2 == 1),
        lambda r: r.filter(lambda x: x & 1 == 1),
        "Python's remainder is not negative",
    ),
    holds(
        "odd by its absolute value",
        (int,),
        lambda r: r.filter(lambda x: x % 2 == 1),
        lambda r: r.filter(lambda x: abs(x) % 2 == 1),
        "in Python",
    ),
    fails(
        "remainder of the absolute value",
        (int,),
        lambda r: r.map(lambda x: x % 3),
        lambda r: r.map(lambda x: abs(x) % 3),
        ([-1],),
        "2 and 1",
    ),
    holds(
        "a square of a sum",
        (int,),
        lambda r: r.map(lambda x: (x + 1) ** 2),
        lambda r: r.map(lambda x: x * x + 2 * x + 1),
        "a polynomial",
    ),
    holds(
        "squares are not negative",
        (int,),
        lambda r: r.filter(lambda x: x * x >= 0),
        lambda r: r,
        "every row stays",
    ),
    fails(
        "squares grow, but not from 0 to 1",
        (int,),
        lambda r: r.filter(lambda x: x * x > x),
        lambda r: r.filter(lambda x: x > 1),
        ([-1],),
        "1 > -1",
    ),
    holds(
        "a bounded loop",
        (int,),
        lambda r: r.map(plus_three),
        lambda r: r.map(lambda x: x + 3),
        "0 + 1 + 2",
    ),
    holds(
        "a search in a loop",
        (int,),
        lambda r: r.map(first_match),
        lambda r: r.map(lambda x: 10 if x < 10 else 20 if x < 20 else 30 if x < 30 else 0),
        "early returns of a loop",
    ),
    holds(
        "a look into a captured dict",
        (int,),
        lambda r: r.map(lambda x: NAMES.get(x, 0)),
        lambda r: r.map(lambda x: x * 10 if x == 1 or x == 2 else 0),
        "two entries",
    ),
    holds(
        "named tuples",
        (PAIR,),
        lambda r: r.map(lambda p: Point(*p)).map(lambda p: p.x + p.y),
        lambda r: r.map(sum),
        "fields by name",
    ),
    fails(
        "named tuples with fields exchanged",
        (PAIR,),
        lambda r: r.map(lambda p: Point(x=p[1], y=p[0])).map(lambda p: p.x - p.y),
        lambda r: r.map(lambda p: p[0] - p[1]),
        ([(1, 0)],),
        "-1 and 1",
    ),
    holds(
        "dataclasses",
        (PAIR,),
        lambda r: r.map(lambda p: Order(p[0], p[1])).filter(lambda o: o.customer > 0).map(Order.total),
        lambda r: r.filter(lambda p: p[0] > 0).map(lambda p: p[1] + p[1]),
        "a method of the row",
    ),
    holds(
        "nested tuples",
        ((int, (int, int)),),
        lambda r: r.map(lambda row: (row[1][1], (row[0], row[1][0]))),
        lambda r: r.map(lambda row: (row[-1][-1], (row[0],) + row[1][:1])),
        "the same places",
    ),
    holds(
        "True is 1",
        (int,),
        lambda r: r.map(lambda x: x == 1),
        lambda r: r.map(lambda x: 1 if x == 1 else 0),
        "Python's == says so",
    ),
    holds(
        "not none before and after",
        (int | None,),
        lambda r: r.filter(lambda x: x is not None).map(lambda x: x + 1),
        lambda r: r.map(lambda x: None if x is None else x + 1).filter(lambda x: x is not None),
        "None stays None",
    ),
    fails(
        "truth is not not-none",
        (int | None,),
        lambda r: r.filter(lambda x: x),
        lambda r: r.filter(lambda x: x is not None),
        ([0],),
        "0 is false",
    ),
    holds(
        "or 0",
        (int | None,),
        lambda r: r.map(lambda x: x or 0),
        lambda r: r.map(lambda x: 0 if x is None else x),
        "what 0 stands in for is 0 or None",
    ),
    fails(
        "or 5",
        (int | None,),
        lambda r: r.map(lambda x: x or 5),
        lambda r: r.map(lambda x: 5 if x is None else x),
        ([0],),
        "5 stands in for 0 too",
    ),
    fails(
        "none differs from 3 in Python",
        (int | None,),
        lambda r: r.filter(lambda x: x != 3),
        lambda r: r.filter(lambda x: x is not None and x != 3),
        ([None],),
        "None != 3 is True",
    ),
    holds(
        "none by == and by is",
        (int | None,),
        lambda r: r.filter(lambda x: x == None),
        lambda r: r.filter(lambda x: x is None),
        "nothing else is equal to None",
    ),
    fails(
        "none cannot be added",
        (int | None,),
        lambda r: r.map(lambda x: x + 1),
        lambda r: r.map(lambda x: None if x is None else x + 1),
        ([None],),
        "raises",
    ),
    holds(
        "strings put together",
        (str,),
        lambda r: r.map(lambda s: s + "a").filter(lambda s: s == "ba"),
        lambda r: r.filter(lambda s: s == "b").map(lambda s: s + "a"),
        "only b + a is ba",
    ),
    fails(
        "strings put together the other way",
        (str,),
        lambda r: r.map(lambda s: s + "a"),
        lambda r: r.map(lambda s: "a" + s),
        (["b"],),
        "ba and ab",
    ),
    holds(
        "empty strings",
        (str,),
        lambda r: r.filter(lambda s: s != ""),
        lambda r: r.filter(lambda s: len(s) > 0),
        "only the empty one has no length",
    ),
    fails(
        "a row that raises",
        (int,),
        lambda r: r.map(lambda x: 10 // x),
        lambda r: r.filter(lambda x: x != 0).map(lambda x: 10 // x),
        ([0],),
        "raises: division by zero",
    ),
    fails(
        "counting rows that raise",
        (int,),
        lambda r: r.map(lambda x: 10 // x).count(),
        lambda r: r.count(),
        ([0],),
        "raises: count runs the map",
    ),
    holds(
        "a test that protects",
        (int,),
        lambda r: r.filter(lambda x: x != 0 and 10 // x > 2),
        lambda r: r.filter(lambda x: 0 < x <= 3),
        "and stops at the first false",
    ),
    fails(
        "a test that protects too late",
        (int,),
        lambda r: r.filter(lambda x: 10 // x > 2 and x != 0),
        lambda r: r.filter(lambda x: 0 < x <= 3),
        ([0],),
        "raises: division by zero",
    ),
    holds(
        "booleans as rows",
        (bool,),
        lambda r: r.filter(lambda b: not b).count() + r.filter(lambda b: b).count(),
        lambda r: r.count(),
        "every row is one or the other",
    ),
    fails(
        "exclusive or is not or",
        ((bool, bool),),
        lambda r: r.map(lambda p: p[0] != p[1]),
        lambda r: r.map(lambda p: p[0] or p[1]),
        ([(True, True)],),
        "both are true",
    ),
    fails(
        "a rare difference",
        (int,),
        lambda r: r.map(lambda x: x),
        lambda r: r.map(lambda x: 0 if x == 123456789 else x),
        ([123456789],),
        "one number in very many",
    ),
]

# -- flatMap, unions, products, distinct -----------------------------------------------------------------------------

BAG_PAIRS = [
    holds(
        "each row twice",
        (int,),
        lambda r: r.flatMap(lambda x: [x, x]),
        lambda r: r.union(r),
        "two of each",
    ),
    fails(
        "a union with itself is not itself",
        (int,),
        lambda r: r.union(r),
        lambda r: r,
        ([0],),
        "two of each",
    ),
    holds(
        "flatMap as filter",
        (int,),
        lambda r: r.flatMap(lambda x: [x] if x > 0 else []),
        lambda r: r.filter(lambda x: x > 0),
        "one or none",
    ),
    holds(
        "flatMap in another order",
        (int,),
        lambda r: r.flatMap(lambda x: [x, -x]),
        lambda r: r.map(lambda x: -x) + r,
        "a bag has no order",
    ),
    fails(
        "flatMap of values of a key",
        (PAIR,),
        lambda r: r.flatMapValues(lambda v: [v, v + 1]),
        lambda r: r.flatMap(lambda p: [p, (p[0] + 1, p[1])]),
        ([(0, 0)],),
        "the key is not what grows",
    ),
    holds(
        "count of a flatMap",
        (int,),
        lambda r: r.flatMap(lambda x: (x, x + 1, x + 2)).count(),
        lambda r: 3 * r.count(),
        "three of each",
    ),
    holds(
        "unions commute",
        (int, int),
        lambda r, s: r.union(s).map(lambda x: x + 1),
        lambda r, s: s.map(lambda x: 1 + x).union(r.map(lambda x: x + 1)),
        "as bags",
    ),
    holds(
        "split by a condition and put together",
        (int,),
        lambda r: r.filter(lambda x: x > 0).union(r.filter(lambda x: x <= 0)),
        lambda r: r,
        "every row is in one of them",
    ),
    fails(
        "split by conditions that overlap",
        (int,),
        lambda r: r.filter(lambda x: x >= 0).union(r.filter(lambda x: x <= 0)),
        lambda r: r,
        ([0],),
        "0 is in both",
    ),
    fails(
        "split with a hole",
        (int,),
        lambda r: r.filter(lambda x: x > 0).union(r.filter(lambda x: x < 0)),
        lambda r: r,
        ([0],),
        "0 is in neither",
    ),
    holds(
        "distinct below an injective map",
        (int,),
        lambda r: r.distinct().map(lambda x: 2 * x),
        lambda r: r.map(lambda x: 2 * x).distinct(),
        "different rows stay different",
    ),
    fails(
        "distinct below a map that is not injective",
        (int,),
        lambda r: r.distinct().map(abs),
        lambda r: r.map(abs).distinct(),
        ([1, -1],),
        "1 twice and once",
    ),
    holds(
        "distinct below a filter",
        (int,),
        lambda r: r.distinct().filter(lambda x: x > 3),
        lambda r: r.filter(lambda x: x > 3).distinct(),
        "equal rows are kept together",
    ),
    holds(
        "distinct twice",
        (PAIR,),
        lambda r: r.distinct().distinct(),
        lambda r: r.distinct(),
        "once is enough",
    ),
    fails(
        "distinct is not nothing",
        (int,),
        lambda r: r.distinct(),
        lambda r: r,
        ([0, 0],),
        "one and two",
    ),
    fails(
        "distinct of a union",
        (int, int),
        lambda r, s: r.distinct().union(s.distinct()),
        lambda r, s: r.union(s).distinct(),
        ([0], [0]),
        "a row of both",
    ),
    holds(
        "distinct inside a distinct union",
        (int, int),
        lambda r, s: r.distinct().union(s.distinct()).distinct(),
        lambda r, s: r.union(s).distinct(),
        "the outer one is enough",
    ),
    holds(
        "distinct of a doubled union",
        (int,),
        lambda r: r.union(r).distinct(),
        lambda r: r.distinct(),
        "the same rows",
    ),
    fails(
        "the first of a product",
        (int, int),
        lambda r, s: r.cartesian(s).keys().distinct(),
        lambda r, s: r.distinct(),
        ([0], []),
        "no rows without the other input",
    ),
    holds(
        "count of a product",
        (int, int),
        lambda r, s: r.cartesian(s).count(),
        lambda r, s: r.count() * s.count(),
        "each with each",
    ),
    fails(
        "count of a product is not a sum",
        (int, int),
        lambda r, s: r.cartesian(s).count(),
        lambda r, s: r.count() + s.count(),
        ([0], []),
        "0 and 1",
    ),
    holds(
        "a product turned round",
        (int, int),
        lambda r, s: r.cartesian(s),
        lambda r, s: s.cartesian(r).map(lambda p: (p[1], p[0])),
        "pairs exchanged",
    ),
    fails(
        "a product not turned round",
        (int, int),
        lambda r, s: r.cartesian(s),
        lambda r, s: s.cartesian(r),
        ([0], [1]),
        "(0, 1) and (1, 0)",
    ),
    holds(
        "pairs of a self product, both ways",
        (int,),
        lambda r: r.cartesian(r).filter(lambda p: p[0] < p[1]),
        lambda r: r.cartesian(r).filter(lambda p: p[0] > p[1]).map(lambda p: (p[1], p[0])),
        "every pair comes both ways",
    ),
    fails(
        "half of a self product",
        (int,),
        lambda r: r.cartesian(r).filter(lambda p: p[0] < p[1]).count() * 2,
        lambda r: r.cartesian(r).filter(lambda p: p[0] != p[1] or p[0] > 5).count(),
        ([6],),
        "the diagonal of the large",
    ),
    holds(
        "where it is kept is not what it is",
        (int,),
        lambda r: r.repartition(3).cache().map(lambda x: x + 1).coalesce(1),
        lambda r: r.map(lambda x: x + 1),
        "the same rows",
    ),
    holds(
        "sorted, as a bag",
        (int,),
        lambda r: r.sortBy(lambda x: -x).map(lambda x: x + 1),
        lambda r: r.map(lambda x: x + 1),
        "order is not a part of a bag",
    ),
    holds(
        "keys and back",
        (int,),
        lambda r: r.keyBy(lambda x: x % 3).values(),
        lambda r: r,
        "the rows themselves",
    ),
    holds(
        "subtract as an anti join",
        (int, int),
        lambda r, s: r.subtract(s),
        lambda r, s: (
            r.map(lambda x: (x, 1)).leftOuterJoin(s.map(lambda x: (x, 1))).filter(lambda p: p[1][1] is None).keys()
        ),
        "rows without a partner, as often as they come",
    ),
    fails(
        "subtract keeps duplicates",
        (int, int),
        lambda r, s: r.subtract(s),
        lambda r, s: r.distinct().subtract(s),
        ([0, 0], []),
        "two and one",
    ),
    fails(
        "subtract takes all of a row",
        (int, int),
        lambda r, s: r.union(s).subtract(s),
        lambda r, s: r,
        ([0], [0]),
        "not one for one",
    ),
    holds(
        "subtract of a union",
        (int, int),
        lambda r, s: r.union(s).subtract(s),
        lambda r, s: r.subtract(s),
        "nothing of s is left",
    ),
    fails(
        "subtract does not commute",
        (int, int),
        lambda r, s: r.subtract(s),
        lambda r, s: s.subtract(r),
        ([0], []),
        "0 and nothing",
    ),
    holds(
        "intersections commute",
        (int, int),
        lambda r, s: r.intersection(s),
        lambda r, s: s.intersection(r),
        "each row of both once",
    ),
    fails(
        "intersection as a double subtract",
        (int, int),
        lambda r, s: r.intersection(s),
        lambda r, s: r.subtract(r.subtract(s)),
        ([0, 0], [0]),
        "intersection drops duplicates",
    ),
    holds(
        "intersection as a double subtract of distinct rows",
        (int, int),
        lambda r, s: r.intersection(s),
        lambda r, s: r.distinct().subtract(r.subtract(s)),
        "each row of both once",
    ),
    fails(
        "a split by subtract and intersection",
        (int, int),
        lambda r, s: r.subtract(s).union(r.intersection(s)),
        lambda r, s: r,
        ([0, 0], [0]),
        "intersection drops duplicates",
    ),
    fails(
        "intersection as a join",
        (int, int),
        lambda r, s: r.map(lambda x: (x, 1)).join(s.map(lambda x: (x, 1))).keys(),
        lambda r, s: r.intersection(s),
        ([0, 0], [0]),
        "a join multiplies",
    ),
    holds(
        "intersection as a distinct join",
        (int, int),
        lambda r, s: r.map(lambda x: (x, 1)).join(s.map(lambda x: (x, 1))).keys().distinct(),
        lambda r, s: r.intersection(s),
        "each row of both once",
    ),
    holds(
        "an intersection with itself",
        (int,),
        lambda r: r.intersection(r),
        lambda r: r.distinct(),
        "duplicates go",
    ),
]

# -- joins -----------------------------------------------------------------------------------------------------------

JOIN_PAIRS = [
    holds(
        "a join turned round",
        (PAIR, PAIR),
        lambda p, q: p.join(q),
        lambda p, q: q.join(p).mapValues(lambda vw: (vw[1], vw[0])),
        "values exchanged",
    ),
    fails(
        "a join not turned round",
        (PAIR, PAIR),
        lambda p, q: p.join(q),
        lambda p, q: q.join(p),
        ([(0, 0)], [(0, 1)]),
        "(0, 1) and (1, 0)",
    ),
    holds(
        "joins in another order",
        (PAIR, PAIR, PAIR),
        lambda p, q, s: p.join(q).join(s).mapValues(lambda v: (v[0][0], v[0][1], v[1])),
        lambda p, q, s: p.join(s.join(q)).mapValues(lambda v: (v[0], v[1][1], v[1][0])),
        "the same three values",
    ),
    holds(
        "a join as product and filter",
        (PAIR, PAIR),
        lambda p, q: p.join(q),
        lambda p, q: joined(p, q),
        "what a join is",
    ),
    holds(
        "filter of values pushed below a join",
        (PAIR, PAIR),
        lambda p, q: p.join(q).filter(lambda row: row[1][0] > 3),
        lambda p, q: p.filter(lambda row: row[1] > 3).join(q),
        "a condition on one side",
    ),
    fails(
        "filter of values pushed to the wrong side",
        (PAIR, PAIR),
        lambda p, q: p.join(q).filter(lambda row: row[1][0] > 3),
        lambda p, q: p.join(q.filter(lambda row: row[1] > 3)),
        ([(0, 0)], [(0, 4)]),
        "the other value",
    ),
    holds(
        "filter of the left pushed below a left join",
        (PAIR, PAIR),
        lambda p, q: p.leftOuterJoin(q).filter(lambda row: row[1][0] > 3),
        lambda p, q: p.filter(lambda row: row[1] > 3).leftOuterJoin(q),
        "rows of the left by themselves",
    ),
    fails(
        "filter of the right pushed below a left join",
        (PAIR, PAIR),
        lambda p, q: p.leftOuterJoin(q).filter(lambda row: row[1][1] is not None and row[1][1] > 3),
        lambda p, q: p.leftOuterJoin(q.filter(lambda row: row[1] > 3)),
        ([(0, 0)], []),
        "below, rows without a partner stay",
    ),
    holds(
        "a left join with partners only",
        (PAIR, PAIR),
        lambda p, q: p.leftOuterJoin(q).filter(lambda row: row[1][1] is not None),
        lambda p, q: p.join(q),
        "values are not None",
    ),
    fails(
        "a left join with partners only, of values that may be None",
        (PAIR, (int, int | None)),
        lambda p, q: p.leftOuterJoin(q).filter(lambda row: row[1][1] is not None),
        lambda p, q: p.join(q),
        ([(0, 0)], [(0, None)]),
        "a partner whose value is None",
    ),
    holds(
        "a left join without partners only",
        (PAIR, PAIR),
        lambda p, q: p.leftOuterJoin(q).filter(lambda row: row[1][1] is None).mapValues(lambda vw: vw[0]),
        lambda p, q: p.subtractByKey(q),
        "values are not None",
    ),
    fails(
        "a left join without partners only, of values that may be None",
        (PAIR, (int, int | None)),
        lambda p, q: p.leftOuterJoin(q).filter(lambda row: row[1][1] is None).mapValues(lambda vw: vw[0]),
        lambda p, q: p.subtractByKey(q),
        ([(0, 0)], [(0, None)]),
        "a partner whose value is None",
    ),
    fails(
        "a left join is not a join",
        (PAIR, PAIR),
        lambda p, q: p.leftOuterJoin(q),
        lambda p, q: p.join(q),
        ([(0, 0)], []),
        "a row without a partner",
    ),
    holds(
        "a right join as a left one",
        (PAIR, PAIR),
        lambda p, q: p.rightOuterJoin(q),
        lambda p, q: q.leftOuterJoin(p).mapValues(lambda wv: (wv[1], wv[0])),
        "values exchanged",
    ),
    holds(
        "a full join as a left one and the rest",
        (PAIR, PAIR),
        lambda p, q: p.fullOuterJoin(q),
        lambda p, q: p.leftOuterJoin(q).union(q.subtractByKey(p).mapValues(lambda w: (None, w))),
        "the rest has no partner",
    ),
    fails(
        "a full join as a left and a right one",
        (PAIR, PAIR),
        lambda p, q: p.fullOuterJoin(q),
        lambda p, q: p.leftOuterJoin(q).union(p.rightOuterJoin(q)),
        ([(0, 0)], [(0, 0)]),
        "partners come twice",
    ),
    fails(
        "a self join is not the diagonal",
        (PAIR,),
        lambda p: p.join(p),
        lambda p: p.mapValues(lambda v: (v, v)),
        ([(0, 0), (0, 1)],),
        "two rows of a key give four",
    ),
    holds(
        "a self join after a reduction is the diagonal",
        (PAIR,),
        lambda p: p.reduceByKey(add).join(p.reduceByKey(add)),
        lambda p: p.reduceByKey(add).mapValues(lambda v: (v, v)),
        "one row for each key",
    ),
    holds(
        "keys of a join",
        (PAIR, PAIR),
        lambda p, q: p.join(q).keys().distinct(),
        lambda p, q: p.keys().intersection(q.keys()),
        "keys of both",
    ),
    fails(
        "a join to keep rows",
        (PAIR, PAIR),
        lambda p, q: p.join(q).mapValues(lambda vw: vw[0]),
        lambda p, q: p.subtractByKey(p.subtractByKey(q)),
        ([(0, 0)], [(0, 0), (0, 0)]),
        "two partners double the row",
    ),
    holds(
        "a join with distinct keys to keep rows",
        (PAIR, PAIR),
        lambda p, q: p.join(q.keys().distinct().map(lambda k: (k, None))).mapValues(lambda vw: vw[0]),
        lambda p, q: p.subtractByKey(p.subtractByKey(q)),
        "at most one partner",
    ),
    fails(
        "subtract by key is not subtract",
        (PAIR, PAIR),
        lambda p, q: p.subtractByKey(q),
        lambda p, q: p.subtract(q),
        ([(0, 0)], [(0, 1)]),
        "the same key with another value",
    ),
    holds(
        "join by a key made injectively",
        (PAIR, PAIR),
        lambda p, q: p.map(lambda row: (row[0] + 1, row[1])).join(q.map(lambda row: (row[0] + 1, row[1]))),
        lambda p, q: p.join(q).map(lambda row: (row[0] + 1, row[1])),
        "keys stay apart",
    ),
    fails(
        "join by a key that falls together",
        (PAIR, PAIR),
        lambda p, q: p.map(lambda row: (abs(row[0]), row[1])).join(q.map(lambda row: (abs(row[0]), row[1]))),
        lambda p, q: p.join(q).map(lambda row: (abs(row[0]), row[1])),
        ([(1, 0)], [(-1, 0)]),
        "1 meets -1",
    ),
    holds(
        "eager aggregation below a join",
        (PAIR, PAIR),
        lambda p, q: p.join(q).mapValues(lambda vw: vw[0]).reduceByKey(add),
        lambda p, q: (
            p.reduceByKey(add)
            .join(q.mapValues(lambda w: 1).reduceByKey(add))
            .mapValues(lambda sum_count: sum_count[0] * sum_count[1])
        ),
        "each value once for each partner",
    ),
    fails(
        "eager aggregation that forgets partners",
        (PAIR, PAIR),
        lambda p, q: p.join(q).mapValues(lambda vw: vw[0]).reduceByKey(add),
        lambda p, q: p.reduceByKey(add).join(q.keys().distinct().map(lambda k: (k, 1))).mapValues(lambda vw: vw[0]),
        ([(0, 1)], [(0, 0), (0, 0)]),
        "2 and 1",
    ),
    fails(
        "a join of two sums is not the sums of a join",
        (PAIR, PAIR),
        lambda p, q: p.reduceByKey(add).join(q.reduceByKey(add)),
        lambda p, q: p.join(q).reduceByKey(merged_sums),
        ([(0, 1), (0, 1)], [(0, 1)]),
        "a join multiplies",
    ),
    holds(
        "sums of two inputs by a union",
        (PAIR, PAIR),
        lambda p, q: p.union(q).reduceByKey(add),
        lambda p, q: (
            p.reduceByKey(add).fullOuterJoin(q.reduceByKey(add)).mapValues(lambda vw: (vw[0] or 0) + (vw[1] or 0))
        ),
        "None stands for nothing",
    ),
    fails(
        "sums of two inputs by a join",
        (PAIR, PAIR),
        lambda p, q: p.union(q).reduceByKey(add),
        lambda p, q: p.reduceByKey(add).join(q.reduceByKey(add)).mapValues(sum),
        ([(0, 0)], []),
        "keys of one input only",
    ),
    holds(
        "a cogroup counted",
        (PAIR, PAIR),
        lambda p, q: (
            p.cogroup(q).mapValues(lambda groups: len(groups[0]) * len(groups[1])).filter(lambda row: row[1] > 0)
        ),
        lambda p, q: p.join(q).mapValues(lambda vw: 1).reduceByKey(add),
        "each with each",
    ),
    fails(
        "a cogroup counted, with keys of one side",
        (PAIR, PAIR),
        lambda p, q: p.cogroup(q).mapValues(lambda groups: len(groups[0]) * len(groups[1])),
        lambda p, q: p.join(q).mapValues(lambda vw: 1).reduceByKey(add),
        ([(0, 0)], []),
        "a key with 0",
    ),
    holds(
        "a cogroup as a subtract by key",
        (PAIR, PAIR),
        lambda p, q: p.cogroup(q).filter(lambda row: len(row[1][1]) == 0).flatMapValues(lambda groups: groups[0]),
        lambda p, q: p.subtractByKey(q),
        "keys without a partner",
    ),
    fails(
        "count of a join",
        (PAIR, PAIR),
        lambda p, q: p.join(q).count(),
        lambda p, q: p.count(),
        ([(0, 0)], []),
        "rows without a partner go",
    ),
    fails(
        "count of a left join",
        (PAIR, PAIR),
        lambda p, q: p.leftOuterJoin(q).count(),
        lambda p, q: p.count(),
        ([(0, 0)], [(0, 0), (0, 1)]),
        "two partners double the row",
    ),
    holds(
        "none as a key joins",
        ((int | None, int), (int | None, int)),
        lambda p, q: p.join(q).filter(lambda row: row[0] is None),
        lambda p, q: p.filter(lambda row: row[0] is None).join(q),
        "None == None in Python",
    ),
    fails(
        "none as a key is not left out",
        ((int | None, int), (int | None, int)),
        lambda p, q: p.join(q),
        lambda p, q: p.filter(lambda row: row[0] is not None).join(q),
        ([(None, 0)], [(None, 0)]),
        "unlike in SQL",
    ),
]

# -- by key ----------------------------------------------------------------------------------------------------------

KEY_PAIRS = [
    holds(
        "sum of a group",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(sum),
        lambda p: p.reduceByKey(add),
        "what everyone is told to rewrite",
    ),
    holds(
        "size of a group",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(len),
        lambda p: p.mapValues(lambda v: 1).reduceByKey(add),
        "a sum of ones",
    ),
    fails(
        "size of a distinct group",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(len),
        lambda p: p.distinct().mapValues(lambda v: 1).reduceByKey(add),
        ([(0, 0), (0, 0)],),
        "2 and 1",
    ),
    holds(
        "maximum of a group",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(max),
        lambda p: p.reduceByKey(max),
        "a maximum of maxima",
    ),
    holds(
        "minimum of a group as the negated maximum",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(min),
        lambda p: p.mapValues(lambda v: -v).reduceByKey(max).mapValues(lambda v: -v),
        "min is -max of -x",
    ),
    holds(
        "mean of a group",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(lambda vs: sum(vs) / len(vs)),
        lambda p: p.aggregateByKey((0, 0), lambda a, v: (a[0] + v, a[1] + 1), merged_sums).mapValues(
            lambda a: a[0] / a[1]
        ),
        "sum and count together",
    ),
    undefined(
        "mean of a group by halves",
        (PAIR,),
        lambda p: p.reduceByKey(lambda a, b: (a + b) / 2),
        lambda p: p.groupByKey().mapValues(lambda vs: sum(vs) / len(vs)),
        ([(0, 0), (0, 1), (0, 2)],),
        "a mean of means depends on their order",
    ),
    undefined(
        "a group as a list",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(list),
        lambda p: p.groupByKey().mapValues(list),
        ([(0, 0), (0, 1)],),
        "in any order",
    ),
    holds(
        "a group as a sorted list's first",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(lambda vs: sorted(vs)[0]),
        lambda p: p.reduceByKey(min),
        "the smallest",
    ),
    holds(
        "fold by key from 0",
        (PAIR,),
        lambda p: p.foldByKey(0, add),
        lambda p: p.reduceByKey(add),
        "0 is neutral",
    ),
    fails(
        "maximum by key from 0",
        (PAIR,),
        lambda p: p.foldByKey(0, max),
        lambda p: p.reduceByKey(max),
        ([(0, -1)],),
        "0 is not neutral below 0",
    ),
    undefined(
        "fold by key from 1",
        (PAIR,),
        lambda p: p.foldByKey(1, add),
        lambda p: p.reduceByKey(add).mapValues(lambda v: v + 1),
        ([(0, 0), (0, 0)],),
        "1 for every partition that has the key",
    ),
    holds(
        "combine by key",
        (PAIR,),
        lambda p: p.combineByKey(lambda v: (v, v), lambda c, v: (min(c[0], v), max(c[1], v)), merged_spans),
        lambda p: p.reduceByKey(min).join(p.reduceByKey(max)),
        "both ends of the values",
    ),
    undefined(
        "combine by key with another merge",
        (PAIR,),
        lambda p: p.combineByKey(lambda v: 1, lambda c, v: c + 1, max),
        lambda p: p.mapValues(lambda v: 1).reduceByKey(add),
        ([(0, 0), (0, 0)],),
        "counts inside partitions, the largest of them",
    ),
    holds(
        "a reduction that adds one",
        (PAIR,),
        lambda p: p.reduceByKey(lambda a, b: a + b + 1),
        lambda p: p.mapValues(lambda v: v + 1).reduceByKey(add).mapValues(lambda v: v - 1),
        "one for each but the first",
    ),
    fails(
        "a reduction that adds one, off by one",
        (PAIR,),
        lambda p: p.reduceByKey(lambda a, b: a + b + 1),
        lambda p: p.mapValues(lambda v: v + 1).reduceByKey(add),
        ([(0, 0)],),
        "a single value is not reduced",
    ),
    undefined(
        "a reduction that subtracts",
        (PAIR,),
        lambda p: p.reduceByKey(lambda a, b: a - b),
        lambda p: p.reduceByKey(lambda a, b: a - b),
        ([(0, 1), (0, 2)],),
        "1 - 2 and 2 - 1",
    ),
    holds(
        "keys of a reduction that keeps any value",
        (PAIR,),
        lambda p: p.reduceByKey(lambda a, b: a).keys(),
        lambda p: p.keys().distinct(),
        "the value is any, the keys are not",
    ),
    undefined(
        "a reduction that keeps any value",
        (PAIR,),
        lambda p: p.reduceByKey(lambda a, b: a),
        lambda p: p.reduceByKey(min),
        ([(0, 0), (0, 1)],),
        "the first of a partition",
    ),
    holds(
        "filter of keys below a reduction",
        (PAIR,),
        lambda p: p.reduceByKey(add).filter(lambda row: row[0] > 3),
        lambda p: p.filter(lambda row: row[0] > 3).reduceByKey(add),
        "whole groups",
    ),
    fails(
        "filter of values below a reduction",
        (PAIR,),
        lambda p: p.reduceByKey(add).filter(lambda row: row[1] > 3),
        lambda p: p.filter(lambda row: row[1] > 3).reduceByKey(add),
        ([(0, 2), (0, 2)],),
        "together they are above 3",
    ),
    holds(
        "filter of values below a maximum",
        (PAIR,),
        lambda p: p.reduceByKey(max).filter(lambda row: row[1] > 3),
        lambda p: p.filter(lambda row: row[1] > 3).reduceByKey(max),
        "the maximum is above 3 where one is",
    ),
    holds(
        "sum of sums",
        (PAIR,),
        lambda p: p.reduceByKey(add).values().sum(),
        lambda p: p.values().sum(),
        "every value once",
    ),
    holds(
        "maximum of maxima",
        (PAIR,),
        lambda p: p.reduceByKey(max).values().max(),
        lambda p: p.values().max(),
        "both raise without rows",
    ),
    fails(
        "mean of means",
        (PAIR,),
        lambda p: p.groupByKey().mapValues(lambda vs: sum(vs) / len(vs)).values().mean(),
        lambda p: p.values().mean(),
        ([(0, 0), (0, 0), (1, 3)],),
        "keys have different weights",
    ),
    holds(
        "sum by a coarser key",
        (PAIR,),
        lambda p: p.reduceByKey(add).map(lambda row: (row[0] // 10, row[1])).reduceByKey(add),
        lambda p: p.map(lambda row: (row[0] // 10, row[1])).reduceByKey(add),
        "sums of sums",
    ),
    fails(
        "count by a coarser key",
        (PAIR,),
        lambda p: p.keys().distinct().map(lambda k: (k // 10, 1)).reduceByKey(add),
        lambda p: p.map(lambda row: (row[0] // 10, 1)).reduceByKey(add),
        ([(0, 0), (0, 1)],),
        "keys and rows",
    ),
    holds(
        "count by key on the driver",
        (PAIR,),
        lambda p: p.countByKey(),
        lambda p: p.mapValues(lambda v: 1).reduceByKey(add).collectAsMap(),
        "the same dict",
    ),
    holds(
        "count by value",
        (int,),
        lambda r: r.countByValue(),
        lambda r: r.map(lambda x: (x, 1)).reduceByKey(add).collectAsMap(),
        "the same dict",
    ),
    fails(
        "count by value is not count by key",
        (PAIR,),
        lambda p: p.countByKey(),
        lambda p: p.values().countByValue(),
        ([(0, 1)],),
        "keys and values",
    ),
    undefined(
        "a dict of the last values",
        (PAIR,),
        lambda p: p.collectAsMap(),
        lambda p: p.collectAsMap(),
        ([(0, 0), (0, 1)],),
        "the last row of a key",
    ),
    holds(
        "number of keys",
        (PAIR,),
        lambda p: p.groupByKey().count(),
        lambda p: p.keys().distinct().count(),
        "one row for each key",
    ),
    holds(
        "group by a function",
        (int,),
        lambda r: r.groupBy(lambda x: x % 3).mapValues(len),
        lambda r: r.map(lambda x: (x % 3, 1)).reduceByKey(add),
        "three keys at most",
    ),
    fails(
        "values of a key",
        (PAIR,),
        lambda p: sorted(p.lookup(1)),
        lambda p: sorted(p.filter(lambda row: row[1] == 1).keys().collect()),
        ([(1, 0)],),
        "key and value exchanged",
    ),
    holds(
        "sums of two columns",
        ((int, (int, int)),),
        lambda p: p.reduceByKey(merged_sums),
        lambda p: p.mapValues(lambda v: v[0]).reduceByKey(add).join(p.mapValues(lambda v: v[1]).reduceByKey(add)),
        "one row for each key on both sides",
    ),
]


def merged_spans(a, b):
    return min(a[0], b[0]), max(a[1], b[1])


# -- actions ---------------------------------------------------------------------------------------------------------


def mean_or_0(r):
    rows = r.count()
    return r.sum() / rows if rows else 0.0


def rows_equal_to_mean(r):
    total, rows = r.sum(), r.count()
    return r.filter(lambda x: x * rows == total)


def rows_equal_to_mean_by_division(r):
    total, rows = r.sum(), r.count()
    return r.filter(lambda x: x == total / rows)


def rows_at_the_top(r):
    top = r.max()
    return r.filter(lambda x: x == top)


def rows_not_below_the_top(r):
    top = r.max()
    return r.filter(lambda x: x >= top)


def rows_above_mean(r):
    mean = r.sum() // max(r.count(), 1)
    return r.filter(lambda x: x > mean)


ACTION_PAIRS = [
    holds("count as a sum of ones", (int,), lambda r: r.count(), lambda r: r.map(lambda x: 1).sum(), "1 for each"),
    fails(
        "count of distinct rows",
        (int,),
        lambda r: r.count(),
        lambda r: r.distinct().count(),
        ([0, 0],),
        "2 and 1",
    ),
    holds(
        "count of a filter as a sum of truth",
        (int,),
        lambda r: r.filter(lambda x: x > 3).count(),
        lambda r: r.map(lambda x: x > 3).sum(),
        "True is 1",
    ),
    holds(
        "sum of a linear map",
        (int,),
        lambda r: r.map(lambda x: 2 * x + 3).sum(),
        lambda r: 2 * r.sum() + 3 * r.count(),
        "3 for each row",
    ),
    fails(
        "sum of a linear map, 3 once",
        (int,),
        lambda r: r.map(lambda x: 2 * x + 3).sum(),
        lambda r: 2 * r.sum() + 3,
        ([],),
        "0 and 3",
    ),
    holds(
        "sum and count in one pass",
        (int,),
        lambda r: r.aggregate((0, 0), lambda a, x: (a[0] + x, a[1] + 1), merged_sums),
        lambda r: (r.sum(), r.count()),
        "two aggregates together",
    ),
    fails(
        "sum of squares",
        (int,),
        lambda r: r.map(lambda x: x * x).sum(),
        lambda r: r.sum() ** 2,
        ([1, 1],),
        "2 and 4",
    ),
    holds(
        "square of a sum",
        (int,),
        lambda r: r.cartesian(r).map(lambda p: p[0] * p[1]).sum(),
        lambda r: r.sum() ** 2,
        "each with each",
    ),
    holds(
        "product of sums",
        (int, int),
        lambda r, s: r.cartesian(s).map(lambda p: p[0] * p[1]).sum(),
        lambda r, s: r.sum() * s.sum(),
        "each with each",
    ),
    undefined(
        "a sum from 1",
        (int,),
        lambda r: r.fold(1, add),
        lambda r: r.sum() + 1,
        ([],),
        "1 for every partition, and for the merge",
    ),
    undefined(
        "an aggregate with another merge",
        (int,),
        lambda r: r.aggregate(0, lambda a, x: a + 1, max),
        lambda r: r.count(),
        ([0, 0],),
        "the largest partition",
    ),
    undefined(
        "an aggregate from 1",
        (int,),
        lambda r: r.aggregate(1, lambda a, x: a + x, add),
        lambda r: r.sum() + 1,
        ([0],),
        "1 for every partition, and for the merge",
    ),
    undefined(
        "a tree from 1",
        (int,),
        lambda r: r.treeAggregate(1, add, add),
        lambda r: r.sum() + 1,
        ([0, 0],),
        "1 for every partition",
    ),
    holds(
        "a tree from 0",
        (int,),
        lambda r: r.treeAggregate(0, lambda a, x: a + abs(x), add),
        lambda r: r.map(abs).sum(),
        "0 is neutral",
    ),
    holds("a tree of a sum", (int,), lambda r: r.treeReduce(add), lambda r: r.reduce(add), "both raise without rows"),
    fails("a reduction of nothing", (int,), lambda r: r.reduce(add), lambda r: r.sum(), ([],), "raises, and 0"),
    undefined(
        "a reduction that subtracts rows",
        (int,),
        lambda r: r.reduce(operator.sub),
        lambda r: r.reduce(operator.sub),
        ([1, 2, 3],),
        "in any order",
    ),
    undefined(
        "a mean by halves",
        (int,),
        lambda r: r.reduce(lambda a, b: (a + b) / 2),
        lambda r: r.mean(),
        ([0, 1, 2],),
        "a mean of means",
    ),
    holds(
        "minimum as reduction",
        (int,),
        lambda r: r.min(),
        lambda r: r.reduce(lambda a, b: a if a < b else b),
        "both raise without rows",
    ),
    holds(
        "minimum as the first of the sorted",
        (int,),
        lambda r: r.min(),
        lambda r: r.sortBy(lambda x: x).first(),
        "both raise without rows",
    ),
    fails("minimum from 0", (int,), lambda r: r.min(), lambda r: r.fold(0, min), ([1],), "1 and 0"),
    fails(
        "minimum of nothing",
        (int,),
        lambda r: r.fold(1000, min),
        lambda r: r.min(),
        ([],),
        "1000, and raises",
    ),
    holds("maximum as top", (int,), lambda r: r.max(), lambda r: r.top(1)[0], "both raise without rows"),
    holds(
        "maximum of negated",
        (int,),
        lambda r: r.max(),
        lambda r: -r.map(lambda x: -x).min(),
        "both raise without rows",
    ),
    holds(
        "maximum of a shifted input",
        (int,),
        lambda r: r.map(lambda x: x + 7).max() - 7,
        lambda r: r.max(),
        "a monotone map",
    ),
    fails(
        "maximum of the absolute values",
        (int,),
        lambda r: r.map(abs).max(),
        lambda r: abs(r.max()),
        ([0, -1],),
        "1 and 0",
    ),
    holds(
        "maximum of a union",
        (int,),
        lambda r: r.union(r).max(),
        lambda r: r.max(),
        "duplicates do not count",
    ),
    fails(
        "sum of a union",
        (int,),
        lambda r: r.union(r).sum(),
        lambda r: r.sum(),
        ([1],),
        "duplicates count",
    ),
    holds(
        "sum of a union doubled",
        (int,),
        lambda r: r.union(r).sum(),
        lambda r: 2 * r.sum(),
        "every row twice",
    ),
    fails(
        "mean of nothing",
        (int,),
        lambda r: r.mean(),
        lambda r: r.sum() / r.count(),
        ([],),
        "0.0, and raises",
    ),
    holds(
        "mean with a guard",
        (int,),
        lambda r: r.mean(),
        mean_or_0,
        "of real numbers; Spark's mean of no rows is 0.0",
    ),
    holds(
        "empty by count",
        (int,),
        lambda r: r.isEmpty(),
        lambda r: r.count() == 0,
        "the same question",
    ),
    fails("empty by sum", (int,), lambda r: r.isEmpty(), lambda r: r.sum() == 0, ([0],), "0 adds nothing"),
    holds(
        "empty by take",
        (int,),
        lambda r: r.filter(lambda x: x > 3).isEmpty(),
        lambda r: r.filter(lambda x: x > 3).take(1) == [],
        "the same question",
    ),
    holds(
        "at least two by take",
        (int,),
        lambda r: len(r.take(2)) == 2,
        lambda r: r.count() >= 2,
        "how many, not which",
    ),
    fails(
        "more than six and more than seven",
        (int,),
        lambda r: r.count() > 6,
        lambda r: r.count() > 7,
        ([0] * 7,),
        "seven rows",
        source=PROBES,
    ),
    holds(
        "count modulo 5 inside",
        (int,),
        lambda r: r.aggregate(0, lambda a, x: (a + 1) % 5, lambda a, b: (a + b) % 5),
        lambda r: r.count() % 5,
        "sums modulo 5",
        source=PROBES,
    ),
    holds(
        "count modulo 5 and six for each",
        (int,),
        lambda r: r.count() % 5 == 0,
        lambda r: r.map(lambda x: 6).sum() % 5 == 0,
        "6 is 1 modulo 5",
    ),
    holds(
        "parity by exclusive or",
        (int,),
        lambda r: r.aggregate(False, lambda a, x: a != (x % 2 == 1), operator.ne),
        lambda r: r.sum() % 2 == 1,
        "an odd number of odd rows",
    ),
    holds(
        "the sum of positives is not below their count",
        (int,),
        lambda r: r.filter(lambda x: x > 0).sum() >= r.filter(lambda x: x > 0).count(),
        lambda r: True,
        "each is at least 1",
    ),
    fails(
        "the sum of positives is not above their count",
        (int,),
        lambda r: r.filter(lambda x: x > 0).sum() > r.filter(lambda x: x > 0).count(),
        lambda r: not r.filter(lambda x: x > 0).isEmpty(),
        ([1],),
        "1 is not above 1",
    ),
    holds(
        "all and any",
        (int,),
        lambda r: r.filter(lambda x: x <= 3).isEmpty(),
        lambda r: r.map(lambda x: x > 3).fold(True, lambda a, b: a and b),
        "no row that is not",
    ),
    fails(
        "all of nothing",
        (int,),
        lambda r: r.map(lambda x: x > 3).fold(True, lambda a, b: a and b),
        lambda r: not r.filter(lambda x: x > 3).isEmpty(),
        ([],),
        "all, and none",
    ),
    holds(
        "rows at the top",
        (int,),
        rows_at_the_top,
        rows_not_below_the_top,
        "none is above; both raise without rows",
    ),
    holds(
        "rows equal to the mean",
        (int,),
        rows_equal_to_mean,
        rows_equal_to_mean_by_division,
        "of real numbers; without rows nothing divides",
    ),
    fails(
        "rows above the mean",
        (int,),
        rows_above_mean,
        rows_at_the_top,
        ([1, 1],),
        "none is above the mean of equal rows",
    ),
    holds(
        "the smallest three",
        (int,),
        lambda r: r.takeOrdered(3),
        lambda r: r.sortBy(lambda x: x).take(3),
        "equal rows cannot be told apart",
    ),
    holds(
        "the greatest three",
        (int,),
        lambda r: r.top(3),
        lambda r: r.sortBy(lambda x: x, ascending=False).take(3),
        "equal rows cannot be told apart",
    ),
    fails(
        "the greatest two of distinct rows",
        (int,),
        lambda r: r.top(2),
        lambda r: r.distinct().top(2),
        ([1, 1],),
        "duplicates count",
    ),
    fails(
        "the greatest three, off by one",
        (int,),
        lambda r: r.top(3),
        lambda r: r.sortBy(lambda x: -x).take(2),
        ([1, 2, 3],),
        "three and two",
    ),
    fails(
        "smallest and greatest",
        (int,),
        lambda r: r.takeOrdered(1),
        lambda r: r.top(1),
        ([0, 1],),
        "[0] and [1]",
    ),
    undefined(
        "the greatest by key, with ties",
        (PAIR,),
        lambda p: p.top(1, key=lambda row: row[0]),
        lambda p: p.sortBy(lambda row: -row[0]).take(1),
        ([(1, 0), (1, 1)],),
        "either of two with the same key",
    ),
    undefined(
        "a row with the greatest key",
        (PAIR,),
        lambda p: p.max(key=lambda row: row[0]),
        lambda p: p.reduce(lambda a, b: a if a[0] >= b[0] else b),
        ([(1, 0), (1, 1)],),
        "either of two with the same key",
    ),
    holds(
        "the greatest key of a row with the greatest key",
        (PAIR,),
        lambda p: p.max(key=lambda row: row[0])[0],
        lambda p: p.keys().max(),
        "the key is the same",
    ),
    undefined("any row", (int,), lambda r: r.first(), lambda r: r.first(), ([0, 1],), "an RDD has no first row"),
    undefined(
        "any two rows",
        (int,),
        lambda r: r.take(2),
        lambda r: r.take(2),
        ([0, 1, 2],),
        "an RDD has no first rows",
    ),
    undefined(
        "strings put together by fold",
        (str,),
        lambda r: r.fold("", lambda a, s: a + s),
        lambda r: r.fold("", lambda a, s: a + s),
        (["a", "b"],),
        "neutral and associative, but in any order",
    ),
    holds(
        "total length of strings",
        (str,),
        lambda r: len(r.fold("", lambda a, s: a + s)),
        lambda r: r.map(len).sum(),
        "the order does not change the length",
    ),
    holds(
        "an aggregate of another input that filters",
        (int, int),
        lambda r, s: r.filter(lambda x: x > 0) if s.count() > 0 else r,
        lambda r, s: r if s.isEmpty() else r.filter(lambda x: not x <= 0),
        "the driver asks",
    ),
    fails(
        "an aggregate of another input that filters, off by one",
        (int, int),
        lambda r, s: r.filter(lambda x: x > 0) if s.count() > 1 else r,
        lambda r, s: r if s.isEmpty() else r.filter(lambda x: x > 0),
        ([0], [0]),
        "one row is not more than one",
    ),
]

# -- not to be answered for ------------------------------------------------------------------------------------------

seen: list[int] = []


def remembered(x):
    seen.append(x)
    return len(seen)


def steps_to_one(x):
    steps = 0
    while x > 1:
        x = x // 2 if x % 2 == 0 else 3 * x + 1
        steps += 1
    return steps


def written_down(x):
    with open("/dev/null", "a") as notes:
        notes.write(str(x))
    return x


UNDECIDED_PAIRS = [
    undecided(
        "random numbers",
        (int,),
        lambda r: r.map(lambda x: x + random.random()),
        lambda r: r.map(lambda x: random.random() + x),
        "not the same twice",
    ),
    undecided(
        "a clock",
        (int,),
        lambda r: r.map(lambda x: time.time()),
        lambda r: r.map(lambda x: time.time()),
        "not a function",
    ),
    undecided("what writes to a file", (int,), lambda r: r.map(written_down), lambda r: r, "does I/O"),
    undecided("what remembers", (int,), lambda r: r.map(remembered), lambda r: r.map(remembered), "changes a global"),
    undecided(
        "a loop of unknown length",
        (int,),
        lambda r: r.map(steps_to_one).filter(lambda n: n < 0),
        lambda r: r.filter(lambda x: False),
        "whether it ends is not known",
    ),
    undecided(
        "a sum of three cubes",
        ((int, int, int),),
        lambda r: r.filter(lambda p: p[0] ** 3 + p[1] ** 3 + p[2] ** 3 == 114),
        lambda r: r.filter(lambda p: False),
        "an open problem",
    ),
    undecided(
        "squares of sums and sums of squares",
        (int,),
        lambda r: r.sum() ** 2 <= r.count() * r.map(lambda x: x * x).sum(),
        lambda r: True,
        "true by Cauchy and Schwarz, which no tier knows",
    ),
    undecided("rows side by side", (int,), lambda r: r.zip(r), lambda r: r.map(lambda x: (x, x)), "zip"),
    undecided("whole partitions", (int,), lambda r: r.glom().map(len).sum(), lambda r: r.count(), "glom"),
    undecided(
        "what is done with a partition",
        (int,),
        lambda r: r.mapPartitions(lambda rows: [sum(rows)]).sum(),
        lambda r: r.sum(),
        "mapPartitions",
    ),
    undecided("a sample", (int,), lambda r: r.sample(False, 0.5).count() <= r.count(), lambda r: True, "sample"),
    undecided("numbered rows", (int,), lambda r: r.zipWithIndex().keys(), lambda r: r, "zipWithIndex"),
    undecided(
        "words of a text",
        (str,),
        lambda r: r.flatMap(lambda s: s.split()),
        lambda r: r.flatMap(lambda s: s.split(None)),
        "methods of strings",
    ),
    undecided(
        "the context",
        (int,),
        lambda r: r.context.parallelize([1]).union(r),
        lambda r: r.union(r.context.parallelize([1])),
        "touches the SparkContext",
    ),
]

RDD_PAIRS: list[Pair] = [
    *FIGURE_9_PAIRS,
    *EXAMPLE_PAIRS,
    *EACH_PAIRS,
    *BAG_PAIRS,
    *JOIN_PAIRS,
    *KEY_PAIRS,
    *ACTION_PAIRS,
    *UNDECIDED_PAIRS,
]
