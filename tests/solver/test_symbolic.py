# ruff: noqa: B905, C416, C417, F601, RET505, RUF060, SIM300  the functions are as users may write them
from __future__ import annotations

import dataclasses
import datetime
import functools
import itertools
import math
import operator
import os
import random
import re
import sys
import time
from collections import namedtuple
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamtight.errors import EncodingError, UnsupportedError
from streamtight.solver.ask import Budget, prove
from streamtight.solver.symbolic.admit import Composed, fingerprint, require_readable
from streamtight.solver.symbolic.known import with_known_len
from streamtight.solver.symbolic.paths import NotReadable, Path
from streamtight.solver.symbolic.read import check_reading, explore, read
from streamtight.solver.symbolic.trees import cases, fresh, value_in
from streamtight.solver.symbolic.values import (
    REAL_NUMBERS,
    SymbolicBool,
    SymbolicFloat,
    SymbolicInt,
    SymbolicStr,
    term_of,
)

INTS = [0, 1, -1, 2, -2, 3, -3, 4, 5, 7, 8, -8, 10, -10, 11, 100, 2**63, -(2**63) - 1, 10**40 + 1]
STRINGS = ["", "a", "b", "ab", "ba", "abc", "A", "Z", " ", "x-y", "\u00e9", "\\u{61}", "\n", "aa"]
FLOATS = [0.0, 1.0, -1.0, 0.5, -0.5, 2.0, 3.0, -4.0, 1024.0, 0.25]
GRID = {SymbolicInt: INTS, SymbolicBool: [False, True], SymbolicStr: STRINGS, SymbolicFloat: FLOATS}
MOST = 64


def leaves(tree: object) -> list[Any]:
    if isinstance(tree, (tuple, list)):
        return [leaf for item in tree for leaf in leaves(item)]
    if dataclasses.is_dataclass(tree):
        return [leaf for field in dataclasses.fields(tree) for leaf in leaves(getattr(tree, field.name))]
    return [tree] if type(tree) in GRID else []


def replaced(tree: Any, values: dict[int, object]) -> Any:
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[replaced(item, values) for item in tree])
    if isinstance(tree, (tuple, list)):
        return type(tree)(replaced(item, values) for item in tree)
    if dataclasses.is_dataclass(tree):
        return type(tree)(*[replaced(getattr(tree, field.name), values) for field in dataclasses.fields(tree)])
    return values.get(id(tree), tree)


def plain(term: Any) -> object:
    """A Python value of a Z3 value, written without the code that is tested."""
    term = z3.simplify(z3.simplify(term))
    if z3.is_int_value(term):
        return term.as_long()
    if z3.is_string_value(term):
        return re.sub(r"\\u\{([0-9a-f]+)\}", lambda m: chr(int(m[1], 16)), term.as_string())
    if z3.is_rational_value(term):
        return float(Fraction(term.numerator_as_long(), term.denominator_as_long()))
    assert z3.is_true(term) or z3.is_false(term), term
    return z3.is_true(term)


def with_types(tree: Any) -> Any:
    """Unequal for True and 1."""
    if isinstance(tree, (tuple, list)):
        return type(tree), [with_types(item) for item in tree]
    if dataclasses.is_dataclass(tree):
        return type(tree), [with_types(getattr(tree, field.name)) for field in dataclasses.fields(tree)]
    return type(tree), tree


def outcome(call: Any, *arguments: object) -> object:
    try:
        return with_types(call(*arguments))
    except Exception as error:
        return "raises", type(error)


def outcome_of(path: Path, point: list[tuple[Any, Any]]) -> object:
    if path.raised is not None:
        return "raises", type(path.raised)
    found = {id(leaf): plain(z3.substitute(leaf._term, *point)) for leaf in leaves(path.result)}
    return with_types(replaced(path.result, found))


def require_exact(function: Any, paths: list[Path], arguments: list[object], then: Any = None) -> None:
    """Guards exclude each other and cover everything, and on the grid each path gives what Python gives."""
    for one, other in itertools.combinations([path.guard for path in paths][:12], 2):
        assert prove(z3.Not(z3.And(one, other)), seconds=5).proved
    assert prove(z3.Or([path.guard for path in paths]), seconds=5).proved
    inputs = leaves(arguments)
    grids = [GRID[type(leaf)] for leaf in inputs]
    points = list(itertools.islice(itertools.product(*grids), MOST + 1))
    if len(points) > MOST:
        chance = random.Random(0)
        points = [tuple(chance.choice(grid) for grid in grids) for _ in range(MOST)]
    for point in points:
        pairs = [(leaf._term, term_of(value)) for leaf, value in zip(inputs, point, strict=True)]
        taken = [path for path in paths if plain(z3.substitute(path.guard, *pairs))]
        assert len(taken) == 1, point
        values = replaced(list(arguments), {id(leaf): value for leaf, value in zip(inputs, point, strict=True)})
        real = outcome(lambda *values: then(function(*values)) if then else function(*values), *values)
        assert outcome_of(taken[0], pairs) == real, point


def readings(function: Any, *types_: object, then: Any = None) -> list[Path]:
    found: list[Path] = []
    options = [list(cases(type_, f"x{i}")) for i, type_ in enumerate(types_)]
    for chosen in itertools.product(*options):
        arguments = [tree for tree, _ in chosen]
        paths = read(function, arguments, budget=Budget(20), then=then)
        require_exact(function, paths, arguments, then)
        check_reading(function, paths, arguments, then=then, samples=40)
        found += paths
    return found


# -- functions that are read -----------------------------------------------------------------------------------------

LIMIT = 10
NAMES = ["a", "b"]
PRICES = {"a": 3, "b": 5}
NUMBERED = {1: "one", 2: "two", True: "also one"}
SMALL = {1, 2, 3}
PAIRS = ((1, 2), (3, 4))


class Config:
    limit = 7

    @staticmethod
    def above(x: int) -> bool:
        return x > 7


class Point(NamedTuple):
    x: int
    y: int = 4

    def total(self) -> int:
        return self.x + abs(self.y)

    @property
    def larger(self) -> int:
        return max(self.x, self.y)


Pair = namedtuple("Pair", "key value")


@dataclasses.dataclass(frozen=True)
class Account:
    owner: str
    amount: int = 0

    def plus(self, more: int) -> Account:
        return Account(self.owner, self.amount + more)

    @property
    def in_debt(self) -> bool:
        return self.amount < 0


@dataclasses.dataclass(frozen=True)
class Limits:
    low: int
    high: int


LIMITS = Limits(2, 8)


class Wrong(ValueError):
    """An error of the user's own."""


def clamp(x, low=0, high=LIMIT):
    if x < low:
        return low
    if x > high:
        return high
    return x


def grade(x):
    if x < 0:
        return "negative"
    elif x == 0:
        return "zero"
    elif x < 10:
        size = "small"
    else:
        size = "large"
    return size + "!"


def logged(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@logged
def decorated(x, *, by=3):
    return x * by


def adder(n):
    return lambda x: x + n


def factorial_of(n):
    def factorial(x):
        return 1 if x <= 0 else 0 if x > n else x * factorial(x - 1)

    return factorial


def checked(x):
    if x > 5:
        raise ValueError("too large")
    return 100 // x


def wrong(x):
    if x == 2:
        raise Wrong("two")
    raise Wrong


def loops(x):
    total = 0
    for i in range(4):
        if i == 2:
            continue
        total += i * x
    for part in (x, 1, -x):
        total = total * 2 + part
    n = 3
    while n > 0:
        total += n
        n -= 1
    return total


def digits(x):
    parts = []
    for _ in range(3):
        x, rest = divmod(x, 10)
        parts.append(rest)
    parts.reverse()
    parts[0] += 1
    return parts


def fall_through(x):
    if x > 0:
        y = x
    return y


def power(x, n):
    return 1 if n == 0 else x * power(x, n - 1)


def matched(pair):
    match pair:
        case (0, y):
            return y
        case (x, 0):
            return -x
        case (x, y):
            return x * y


def nested_functions(x):
    def twice(y):
        return y * 2 + x

    return [twice(part) for part in (x, 1)]


def counts(x):
    count = 0
    for limit in (1, 5, 9):
        if x > limit:
            count += 1
    return count


def sorted_three(x, y, z):
    return sorted([x, y, z])


def running(x, y):
    table = {"x": x}
    table["y"] = y
    table["x"] += 1
    return table["x"] - table.get("y", 0)


def deleted(x):
    parts = [x, x + 1, x + 2]
    del parts[1]
    first, *rest = parts
    return first, rest


ONE_INT = [
    lambda x: x + 1,
    lambda x: 1 - x,
    lambda x: -x,
    lambda x: +x,
    lambda x: ~x,
    lambda x: abs(x),
    lambda x: x * x - 2 * x,
    lambda x: x // 3,
    lambda x: x // -3,
    lambda x: x % 3,
    lambda x: x % -3,
    lambda x: 7 // x,
    lambda x: -7 % x,
    lambda x: x // 0,
    lambda x: x % 0,
    lambda x: divmod(x, -4),
    lambda x: divmod(17, x),
    lambda x: x**0,
    lambda x: x**3,
    lambda x: pow(x, 2),
    lambda x: x**True,
    lambda x: x & 1,
    lambda x: 7 & x,
    lambda x: x & 0,
    lambda x: x << 3,
    lambda x: x >> 2,
    lambda x: x >> -1,
    lambda x: round(x),
    lambda x: round(x, 2),
    lambda x: math.floor(x) + math.ceil(x) + math.trunc(x),
    lambda x: int(x),
    lambda x: bool(x),
    lambda x: int(bool(x)) + int(x > 3),
    lambda x: float(x),
    lambda x: not x,
    lambda x: x > 0,
    lambda x: x >= 0,
    lambda x: x != 3,
    lambda x: (x < 3, x <= 3, x == 3, 3 < x, 3 >= x, 3 == x, 3 != x),
    lambda x: 0 < x <= 7,
    lambda x: x < 3 < 5 < x,
    lambda x: (x > 0) + (x > 2) + True,
    lambda x: sum([x > 0, x > 5, x % 2 == 0]),
    lambda x: (x > 0) & (x < 5),
    lambda x: (x > 0) | (x < -5),
    lambda x: (x > 0) ^ (x < 5),
    lambda x: (x > 0) & 1,
    lambda x: (x > 0) - (x < 0),
    lambda x: -(x > 0),
    lambda x: ~(x > 0),
    lambda x: +(x > 0),
    lambda x: abs(x > 0),
    lambda x: (x > 0) * x,
    lambda x: (x > 0) < (x < 5),
    lambda x: (x > 0) == (x < 5),
    lambda x: (x > 0) == 1,
    lambda x: (x > 0) != x,
    lambda x: x == (x > 0),
    lambda x: (x > 0) // 1,
    lambda x: 3 % (x > 0),
    lambda x: x or 7,
    lambda x: x and 7,
    lambda x: x and x - 1 and x - 2,
    lambda x: x > 3 or x < -3 or x == 0,
    lambda x: x > 3 and x % 2 == 0 and "even",
    lambda x: not (x > 3 and not x > 7),
    lambda x: "big" if x > 7 else "mid" if x > 3 else None,
    lambda x: x in (1, 2, 5),
    lambda x: x not in (1, 2, 5),
    lambda x: x in {1, 2, 5},
    lambda x: x in [1, x, 5],
    lambda x: x in (),
    lambda x: x in SMALL,
    lambda x: x in range(3),
    lambda x: (x, 2) in PAIRS,
    lambda x: (x, 2) in {(1, 2), (3, 4)},
    lambda x: x == "a",
    lambda x: x != None,  # noqa: E711
    lambda x: x is None,
    lambda x: x is not None,
    lambda x: x == (1, 2),
    lambda x: [x] == [3],
    lambda x: (x, 1) < (3, x),
    lambda x: (x, x) == (2, 2.0),
    lambda x: min(x, 3),
    lambda x: max(x, 3, -x),
    lambda x: min([x, 2, 5]),
    lambda x: max((x, 1), (2, 0)),
    lambda x: max(x > 0, 0),
    lambda x: max(x, True),
    lambda x: min(True, x, x > 3),
    lambda x: (1, 2, 5) if x in (1, 2, 5) else (x in (1, 2, 5), (1, 2, 5)[0]),
    lambda x: min(x, 2.5),
    lambda x: min(x, math.inf),
    lambda x: max(-math.inf, x),
    lambda x: x < math.inf,
    lambda x: x == float("-inf"),
    lambda x: max([x, -3], key=lambda y: y * y),
    lambda x: max([], default=x),
    lambda x: max([x][1:]),
    lambda x: sum((x, 1, x)),
    lambda x: sum([x], start=5),
    lambda x: sum(y * 2 for y in (x, 3) if y > 0),
    lambda x: len([x, x]),
    lambda x: any(x == y for y in (1, 2)),
    lambda x: all([x > 0, x < 5]),
    lambda x: [y + x for y in range(3)],
    lambda x: tuple(y for y in (x, 2, 3) if y % 2),
    lambda x: list(map(lambda y: y + 1, [x, 0])),
    lambda x: list(filter(None, [x, 0, 1])),
    lambda x: list(zip([x, 1], "ab")),
    lambda x: list(enumerate([x, 1])),
    lambda x: list(reversed([x, 1])),
    lambda x: sorted([x, 3, 5]),
    lambda x: functools.reduce(lambda a, b: a * b, [x, 2, x]),
    lambda x: functools.reduce(operator.add, [x, 2, x]),
    lambda x: next((y for y in (1, 5) if y > x), None),
    lambda x: [*(x, 1), 2],
    lambda x: {"a": x}["a"],
    lambda x: {1: 2}[1] + x,
    lambda x: (lambda y, *, z=2: y + z)(x, z=3),
    lambda x: NUMBERED[x],
    lambda x: NUMBERED.get(x, "many"),
    lambda x: x in NUMBERED,
    lambda x: x in PRICES.values(),
    lambda x: sum(PRICES.values()) + x,
    lambda x: len(NAMES) + x,
    lambda x: x / 2,
    lambda x: x / 4 + 1,
    lambda x: 1 / x if x in (1, 2, 4) else 0,
    lambda x: x / 0,
    lambda x: 0 / x,
    lambda x: x * 0.5,
    lambda x: x + 0.5 > 3,
    lambda x: x == 3.0,
    lambda x: x + Config.limit,
    lambda x: Config.above(x),
    lambda x: LIMITS.low <= x < LIMITS.high,
    lambda x: Point(x, 2),
    lambda x: Point(x)._replace(y=3),
    lambda x: Point(x=x).total(),
    lambda x: Point(x, 2).larger,
    lambda x: Point(x, 1) == (1, 1),
    lambda x: Point(3, x)[1] + Point(3, x).x,
    lambda x: Pair(x, [x]),
    lambda x: Account("a", x),
    lambda x: Account("a", x).plus(3).amount,
    lambda x: Account("a", x).in_debt,
    lambda x: Account("a", x) == Account("a", 3),
    lambda x: x + None,
    lambda x: "a" + x,
    lambda x: x + "a",
    lambda x: x < "a",
    lambda x: "a" < x,
    lambda x: x < None,
    lambda x: x[0],
    lambda x: x(),
    lambda x: len(x),
    lambda x: [y for y in x],
    lambda x: 3 in x,
    lambda x: x in "abc",
    lambda x: x.foo,
    lambda x: (x, 1)[2],
    lambda x: {}["a"],
    lambda x: (1, x, 1).count(1),
    lambda x: (lambda a, b: a)(x),
    lambda x: int("7") + x,
    lambda x: int("seven"),
    lambda x: ",".join(["a", "b"]) if x else "A".lower(),
    lambda x: x.real if False else x,
    clamp,
    grade,
    decorated,
    checked,
    wrong,
    loops,
    digits,
    fall_through,
    nested_functions,
    counts,
    deleted,
    adder(5),
    factorial_of(3),
    lambda x: ("no", "yes")[x > 3],
    lambda x: [x, 5][x < 5],
    lambda x: dataclasses.replace(Account("a", x), amount=x + 1),
    lambda x: operator.contains((1, x), 3),
    lambda x: x @ 2,
    lambda x: [*x],
    abs,
    bool,
    float,
    max,
    operator.neg,
    functools.partial(clamp, high=3),
    functools.partial(operator.mul, 3),
    functools.partial(power, n=3),
]
TWO_INTS = [
    lambda x, y: x + y * 2,
    lambda x, y: x // y,
    lambda x, y: x % y,
    lambda x, y: divmod(x, y),
    lambda x, y: x // y * y + x % y == x,
    lambda x, y: x < y,
    lambda x, y: x and y,
    lambda x, y: x or y,
    lambda x, y: x if x > y else y,
    lambda x, y: max(x, y) - min(x, y),
    lambda x, y: (x > 0) == (y > 0),
    lambda x, y: (x, y) < (y, x),
    lambda x, y: [x, y] == [y, x],
    lambda x, y: x in (y, 3),
    lambda x, y: Point(x, y) < Point(y, x),
    running,
    operator.add,
    operator.lt,
    max,
    min,
    clamp,
    divmod,
]
STRING = [
    lambda s: s + "b",
    lambda s: "b" + s + s,
    lambda s: s == "ab",
    lambda s: "ab" != s,
    lambda s: s < "b",
    lambda s: (s <= "b", s > "b", s >= "b", "b" < s),
    lambda s: len(s),
    lambda s: len(s + "a") > 2,
    lambda s: bool(s),
    lambda s: s or "nothing",
    lambda s: "a" in s,
    lambda s: "" in s,
    lambda s: s.startswith("a"),
    lambda s: s.endswith(("b", "c")),
    lambda s: s.startswith(()),
    lambda s: s in ("a", "b"),
    lambda s: s in {"a", "b"},
    lambda s: s in NAMES,
    lambda s: PRICES.get(s, 0),
    lambda s: PRICES[s],
    lambda s: s == 3,
    lambda s: s + 3,
    lambda s: 3 + s,
    lambda s: s - "a",
    lambda s: s < 3,
    lambda s: 3 in s,
    lambda s: s.startswith(3),
    lambda s: s.foo,
    lambda s: str(s) + "!",
    lambda s: max(s, "b"),
    lambda s: sum(["a"], s),
    lambda s: s == "\\u{61}",
    lambda s: s + "\u00e9\\",
    lambda s: s / 2,
    lambda s: -s,
    len,
    str,
    lambda s: PRICES.get(s),
]
FLOAT = [
    lambda f: f + 1,
    lambda f: 2 * f - 0.5,
    lambda f: f / 2,
    lambda f: f > 0.25,
    lambda f: f == 1,
    lambda f: -f,
    lambda f: abs(f),
    lambda f: int(f),
    lambda f: math.floor(f),
    lambda f: math.ceil(f),
    lambda f: bool(f),
    lambda f: 1 if f else 0,
    lambda f: f**2,
    lambda f: max(f, 1.0),
    lambda f: f + True,
    lambda f: f / (f - f),
    lambda f: f < math.inf,
    lambda f: f & 1,
    lambda f: ~f,
]
OPTIONAL_INT = [
    lambda x: x is None,
    lambda x: 0 if x is None else x + 1,
    lambda x: x is not None and x > 3,
    lambda x: x == None,  # noqa: E711
    lambda x: x or 5,
    lambda x: x + 1,
    lambda x: x > 1,
    lambda x: [x],
    lambda x: x in (None, 3),
    lambda x: max(x, 1),
    lambda x: -x,
    lambda x: x.foo,
    lambda x: len(x),
    lambda x: x[0],
    lambda x: sum([x, 1]),
]
OTHER = [
    (lambda p: p[0] + p[1][1], (int, (str, int))),
    (lambda p: (p[1], p[0]), (int, (str, int))),
    (matched, (int, int)),
    (lambda kv: (lambda k, v: (v, k))(*kv), (int, str)),
    (sorted_three, int, int, int),
    (lambda b: b + 1, bool),
    (lambda b: (b, not b, b == 1, b is None), bool),
    (lambda b, x: x if b else -x, bool, int),
    (lambda b, c: (b & c, b | c, b ^ c, b < c, b == c, b + c), bool, bool),
    (lambda b, x: b == x, bool, int),
    (lambda b: "yes" if b else "no", bool),
    (lambda s, t: s + t == t + s, str, str),
    (lambda s, t: (s < t, s in t, t.startswith(s)), str, str),
    (lambda x, s: x == s, int, str),
    (lambda x, s: x + s, int, str),
    (lambda x, s: s < x, int, str),
    (lambda p: p is None or p[0], tuple[int, str] | None),
    (lambda p: p[1] if p[1] is not None else p[0], (int, int | None)),
    (lambda a, b: (a or 0) + (b or 0), int | None, int | None),
    (lambda p: p.x * 2 + p.y, Point),
    (lambda p: p.total() + p.larger, Point),
    (lambda p: p._asdict()["x"], Point),
    (lambda n: n, None),
    (operator.itemgetter(1), (int, str)),
    (operator.itemgetter(0, -1), (int, str)),
    (operator.attrgetter("y"), Point),
    (lambda p: operator.itemgetter(1)(p) + operator.attrgetter("x")(p), Point),
    (tuple, (int, int)),
    (list, (int, int)),
    (sum, (int, int)),
    (any, (int, bool)),
    (lambda p: [q for q in p][::-1], (int, int, int)),
    (lambda p: p[1:], (int, int, int)),
    (lambda p: p + (1,), (int, int)),  # noqa: RUF005
    (lambda p: p * 2, (int,)),
    (lambda a, b: a.x if a > b else b.x, Point, Point),
]
ALL = (
    [(function, int) for function in ONE_INT]
    + [(function, int, int) for function in TWO_INTS]
    + [(function, str) for function in STRING]
    + [(function, float) for function in FLOAT]
    + [(function, int | None) for function in OPTIONAL_INT]
    + OTHER
)


def name_of(entry: Any) -> str | None:
    return f"{entry.__code__.co_firstlineno}" if hasattr(entry, "__code__") else None


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: name_of(entry[0]))
def test_what_is_read_is_what_python_does(entry):
    readings(*entry)


def test_a_path_is_taken_for_each_answer_that_is_possible():
    x, _ = fresh(int, "x")

    paths = read(lambda x: (x > 0, x > 1) if x > 2 and x > 1 and x > 0 else None, [x], budget=Budget(5))

    assert len(paths) == 2


def test_what_is_given_cuts_paths_off():
    x, _ = fresh(int, "x")
    positive = [x._term > 0]

    paths = read(lambda x: "positive" if x > 0 else 1 // 0, [x], given=positive, budget=Budget(5))

    (path,) = paths
    assert path.result == "positive"
    # Also for a reader who forgets what was given, the guard does not say more than was read.
    assert prove(path.guard == (x._term > 0), seconds=5).proved
    check_reading(lambda x: "positive" if x > 0 else 1 // 0, paths, [x], given=positive)


def test_where_nothing_is_possible_there_is_no_path():
    x, _ = fresh(int, "x")

    assert read(lambda x: x, [x], given=[x._term > 0, x._term < 0], budget=Budget(5)) == []


def test_branches_that_the_solver_cannot_decide_are_followed():
    numbers = [fresh(int, name)[0] for name in "xyz"]
    positive = [number._term > 0 for number in numbers]

    def fermat(x, y, z):
        return "found" if x**3 + y**3 == z**3 else "none"

    paths = read(fermat, numbers, given=positive, budget=Budget(0.5))

    assert {path.result for path in paths} == {"found", "none"}


def test_a_sum_of_comparisons_and_a_minimum_need_no_paths():
    x, _ = fresh(int, "x")

    assert len(read(lambda x: (x > 0) + (x > 5) + min(x, 3, -x) + abs(x), [x], budget=Budget(5))) == 1
    assert len(read(lambda x: x in (1, 2, 3, 4), [x], budget=Budget(5))) == 2


def test_an_exception_is_a_path_that_raises_it():
    x, _ = fresh(int, "x")

    zero, other = sorted(read(checked, [x], budget=Budget(5)), key=lambda path: path.raised is None)[:2]

    assert {type(zero.raised), type(other.raised)} == {ZeroDivisionError, ValueError}
    assert zero.result is None


def test_a_failing_assert_is_a_path_too():
    function = compiled("""
        def f(x):
            assert x > 3, "too small"
            return x
        """)

    readings(function, int)


def test_paths_say_that_floats_were_taken_for_real_numbers():
    x, _ = fresh(int, "x")
    whole, half = read(lambda x: x if x > 0 else x / 2, [x], budget=Budget(5))

    assert (whole.assumes, half.assumes) in (
        (frozenset(), frozenset({REAL_NUMBERS})),
        (frozenset({REAL_NUMBERS}), frozenset()),
    )


def test_results_of_a_flat_map_are_drawn_while_they_are_explored():
    readings(lambda x: (y for y in (x, -x) if y > 0), int, then=list)
    readings(lambda x: range(3) if x > 0 else [x], int, then=list)


def test_symbolic_values_may_be_captured():
    n, _ = fresh(int, "n")
    x, _ = fresh(int, "x")

    def above(x):
        return x > n

    paths = read(above, [x], budget=Budget(5))
    check_reading(above, paths, [x])

    assert prove(term_of(paths[0].result) == (x._term > n._term), seconds=5).proved


def test_explorations_may_be_nested():
    n, _ = fresh(int, "n")
    x, _ = fresh(int, "x")

    def outer():
        inner = read(lambda x: "in" if x > 3 else "out", [x], budget=Budget(5))
        return (len(inner), "big") if n > 5 else len(inner)

    assert [path.result for path in explore(outer, budget=Budget(5))] in ([(2, "big"), 2], [2, (2, "big")])


def test_a_class_of_the_user_may_be_an_argument():
    account = Account("me", fresh(int, "x")[0])

    function = lambda a: a.plus(1) if a.in_debt else a  # noqa: E731

    paths = read(function, [account], budget=Budget(5))
    require_exact(function, paths, [account])
    check_reading(function, paths, [account])


def test_captured_lists_are_not_touched():
    captured = [1, 2]

    def function(x):
        captured.append(x)
        return len(captured)

    with pytest.raises(NotReadable, match="changes a list that is not its own"):
        read(function, [fresh(int, "x")[0]], budget=Budget(5))
    assert captured == [1, 2]


def test_lists_that_are_given_may_be_read_and_not_changed():
    x, _ = fresh(int, "x")

    require_exact(sum, read(sum, [[x, 1]], budget=Budget(5)), [[x, 1]])
    with pytest.raises(NotReadable, match="changes a list"):
        read(lambda xs: xs.append(1) or xs, [[x, 1]], budget=Budget(5))


# -- functions that are refused --------------------------------------------------------------------------------------


def compiled(source: str, **names: object) -> Any:
    lines = source.strip("\n").split("\n")
    margin = len(lines[0]) - len(lines[0].lstrip())
    space: dict[str, Any] = {"__name__": "job", **names}
    exec(compile("\n".join(line[margin:] for line in lines), "job.py", "exec"), space)
    return space["f"]


class Callable_:  # noqa: N801
    def __call__(self, x):
        return x

    def method(self, x):
        return x


def generator(x):
    yield x


async def coroutine(x):
    return x


class Loud(Exception):
    def __init__(self, x):
        self.x = x


@dataclasses.dataclass
class Odd:
    x: int

    def __getattr__(self, name):
        return 3


@dataclasses.dataclass
class Impure:
    x: int

    def noisy(self):
        print(self.x)


SOURCES = {
    # the line, the reason, the body of f(x), what else it can see
    "random": (2, "uses random.random()", "return x + random.random()", {"random": random}),
    "random by name": (2, "uses random()", "return x + random()", {"random": random.random}),
    "randint": (2, "uses random.randint, a method of a Random", "return random.randint(1, x)", {"random": random}),
    "time": (3, "uses time.time()", "y = x\nreturn y + time.time()", {"time": time}),
    "now": (2, "uses datetime.now()", "return datetime.now()", {"datetime": datetime.datetime}),
    "now of the module": (2, "uses datetime.now()", "return dt.datetime.now()", {"dt": datetime}),
    "environ": (2, "uses os.environ, a _Environ", "return os.environ['x']", {"os": os}),
    "a function of os": (2, "uses posix.getpid()|uses os.getpid()", "return os.getpid()", {"os": os}),
    "argv is changed": (1, "changes a list that is not its own", "sys.argv.append(x)", {"sys": sys}),
    "print": (2, "uses print()", "print(x)", {}),
    "input": (2, "uses input()", "return input()", {}),
    "open": (2, "uses open()", "return open('x')", {}),
    "eval": (2, "uses eval()", "return eval('x')", {}),
    "getattr": (2, "uses getattr()", "return getattr(x, 'real')", {}),
    "isinstance": (2, "uses isinstance()", "return isinstance(x, int)", {}),
    "type": (2, "uses type()", "return type(x) == int", {}),
    "id": (2, "uses id()", "return id(x)", {}),
    "hash": (2, "uses hash()", "return hash(x)", {}),
    "repr": (2, "uses repr()", "return repr(x)", {}),
    "globals": (2, "uses globals()", "return globals()", {}),
    "object": (2, "uses object()", "return object()", {}),
    "no such name": (2, "uses nothing, which is not defined", "return nothing(x)", {}),
    "no such part": (2, "uses math.nothing, which is not defined", "return math.nothing(x)", {"math": math}),
    "is": (2, "uses 'is' with something other than None", "return x is True", {}),
    "is not": (2, "uses 'is' with something other than None", "return x is not y", {"y": 1}),
    "is, from two sides": (
        2,
        "uses 'is' with something other than None",
        "return x is (y if x > 0 else None)",
        {"y": 1},
    ),
    "operator.is_": (
        2,
        "uses operator.is_()|uses _operator.is_()",
        "return operator.is_(x, 1)",
        {"operator": operator},
    ),
    "global": (3, "changes the global variable y", "global y\ny = x", {"y": 1}),
    "import": (2, "imports math", "import math", {}),
    "try": (3, "uses try or with", "y = 1\ntry:\n    return 1 // x\nexcept ZeroDivisionError:\n    return 0", {}),
    "finally": (2, "uses try or with", "try:\n    return 1 // x\nfinally:\n    x = 1", {}),
    "with": (2, "uses with", "with x:\n    return 1", {}),
    "a class": (2, "defines a class", "class A: pass", {}),
    "an attribute is set": (2, "sets the attribute a", "x.a = 1", {}),
    "a captured attribute is set": (2, "sets the attribute a", "f.a = 1", {}),
    "a dunder": (2, "uses the attribute __class__", "return x.__class__", {}),
    "a dunder of a class": (2, "uses the attribute __new__", "return Point.__new__(Point, x, 1)", {"Point": Point}),
    "a private attribute": (2, "uses the attribute _term", "return x._term", {}),
    "a private attribute by name": (
        2,
        "uses operator.attrgetter of a private attribute",
        "return operator.attrgetter('_term')(x)",
        {"operator": operator},
    ),
    "format": (2, "uses the attribute format", "return '{}'.format(x)", {}),
    "a generator's frame": (2, "uses the attribute gi_frame", "return (y for y in (x,)).gi_frame", {}),
    "yield": (2, "yields", "def g(): yield x\nreturn list(g())", {}),
    "match of a class": (3, "matches a class", "match x:\n    case int(): return 1", {"int": int}),
    "an f-string": (3, "makes text of a symbolic int with an f-string or format()", "y = 1\nreturn f'{x}'", {}),
    "an f-string of a tuple": (2, "makes text of a symbolic int with repr()", "return f'{(x, 1)}'", {}),
    "str": (2, "makes text of a symbolic int with str()", "return str(x)", {}),
    "%": (2, "makes text of a symbolic int with str()", "return '%s' % (x,)", {}),
    "% alone": (2, "makes text of a symbolic int with str()|formats a symbolic value with %", "return '%s' % x", {}),
    "% with d": (2, "needs the value of a symbolic int", "return '%d' % (x,)", {}),
    "a key": (2, "uses a symbolic value as a key", "return {x: 1}", {}),
    "an element": (2, "builds a set", "return len({x, 1})", {}),
    "a key of a local dict": (3, "uses a symbolic value as a key", "t = {1: 2}\nreturn t[x]", {}),
    "an index": (2, "needs the value of a symbolic int", "return (1, 2)[x]", {}),
    "a slice": (2, "needs the value of a symbolic int", "return (1, 2)[:x]", {}),
    "range": (2, "uses range() of a symbolic number", "return sum(range(x))", {}),
    "a long range": (2, "uses a range() of more than 10000 numbers", "return sum(range(10**30))", {}),
    "repetition": (2, "repeats a sequence a symbolic number of times", "return 'a' * x", {}),
    "repetition of a list": (2, "repeats a sequence a symbolic number of times", "return x * [0]", {}),
    "a method of int": (2, "uses .bit_length of a symbolic int", "return x.bit_length()", {}),
    "sqrt": (2, "needs the value of a symbolic int", "return math.sqrt(x)", {"math": math}),
    "gcd": (2, "needs the value of a symbolic int", "return math.gcd(x, 4)", {"math": math}),
    "a power": (2, "uses ** with an exponent other than 0 to 8", "return 2 ** x", {}),
    "a negative power": (2, "uses ** with an exponent other than 0 to 8", "return x ** -1", {}),
    "a large power": (2, "uses ** with an exponent other than 0 to 8", "return x ** 9", {}),
    "a modular power": (2, "uses pow() with three arguments", "return pow(x, 2, 5)", {}),
    "bits": (2, "uses | on integers", "return x | 4", {}),
    "some bits": (2, "uses & on integers", "return x & 6", {}),
    "a symbolic shift": (2, "uses << on integers", "return 1 << x", {}),
    "round to tens": (2, "that has no exact formula", "return round(x, -1)", {}),
    "floor of a float": (2, "uses // on floats", "return x // 0.5", {}),
    "infinity": (2, "calculates with an infinite float", "return x + y", {"y": math.inf}),
    "nan": (2, "uses nan", "return x + float('nan')", {}),
    "nan by name": (2, "uses y, which is nan", "return x + y", {"y": math.nan}),
    "a complex number": (1, "uses 1j", "return x + 1j", {}),
    "a complex result": (2, "compares a symbolic value with a complex", "return x == (0 - y) ** 0.5", {"y": 8}),
    "a fraction": (2, "uses y, a Fraction", "return x + y", {"y": Fraction(1, 2)}),
    "a set": (2, "builds a set", "return {1}", {}),
    "another set": (2, "uses set()", "return set([x])", {}),
    "a captured set": (1, "gives a set", "return y", {"y": {1}}),
    "a captured dict": (1, "gives a dict", "return y", {"y": {1: 2}}),
    "a dict": (1, "gives a dict", "return {1: x}", {}),
    "a generator": (1, "gives a generator", "return (y for y in (x,))", {}),
    "an infinite result": (1, "gives inf", "return y", {"y": math.inf}),
    "text of a value in an error": (2, "makes text of a symbolic int", "return [1].index(x)", {}),
    "a builtin's method": (2, "uses str.upper()", "return list(map(str.upper, ['a']))", {}),
    "a builtin's method in disguise": (3, "raises AttributeError", "s = str\nreturn s.upper('a')", {}),
    "a captured dict is changed": (2, "changes a dict that is not its own", "y['a'] = x", {"y": {}}),
    "a captured dict is updated": (2, "uses .update of a dict that is not its own", "y.update(a=x)", {"y": {}}),
    "a captured set is changed": (2, "uses .add of a set that is not its own", "y.add(1)", {"y": set()}),
    "an alias of a captured list": (1, "changes a list that is not its own", "z = y\nz[0] = x", {"y": [1]}),
    "a default that is changed": (1, "changes a list", "def g(y, seen=z): seen.append(y)\nreturn g(x)", {"z": []}),
    "the order of a set": (2, "depends on the order of a set", "return list(y)", {"y": {"a", "b"}}),
    "a callable object": (2, "uses y, a Callable_", "return y(x)", {"y": Callable_()}),
    "its method": (2, "uses y, a method of a Callable_", "return y(x)", {"y": Callable_().method}),
    "its class": (2, "uses y()", "return y(x)", {"y": Callable_}),
    "an error that does something": (2, "an exception with methods of its own", "raise y(x)", {"y": Loud}),
    "a record that does something": (2, "uses Odd, which defines __getattr__", "return y(x).z", {"y": Odd}),
    "the standard library": (2, "uses re.match()", "return re.match('a', 'a')", {"re": re}),
    "a cached function": (2, "uses y, a _lru_cache_wrapper", "return y(x)", {"y": functools.lru_cache(clamp)}),
    "text to a number": (2, "uses int() of a symbolic str", "return int(s if x > 0 else 1)", {"s": None}),
    "endless": (2, "loops for more than", "while True: pass", {}),
    "too deep": (2, "raises RecursionError", "return f(x)", {}),
}


@pytest.mark.parametrize("entry", SOURCES.values(), ids=list(SOURCES))
def test_what_cannot_be_read_is_refused_with_its_line(entry):
    line, reason, body, names = entry
    if "s" in names:
        names = {**names, "s": fresh(str, "s")[0]}
    function = compiled("def f(x):\n" + "\n".join("    " + part for part in body.split("\n")), **names)

    with pytest.raises(NotReadable) as refused:
        read(function, [fresh(int, "x")[0]], budget=Budget(0.3 if "loops" in reason else 20))

    assert any(part in refused.value.what for part in reason.split("|")), refused.value.what
    assert (refused.value.line, refused.value.file) == (line, "job.py")
    assert str(refused.value).startswith(f"line {line} of job.py: needed a function that can be run on symbolic values")


STRING_SOURCES = {
    "a character": ("does something with a symbolic str", "return s[0]"),
    "characters": ("does something with a symbolic str", "return list(s)"),
    "upper": ("uses .upper of a symbolic str", "return s.upper()"),
    "split": ("uses .split of a symbolic str", "return s.split(',')"),
    "repetition": ("does something with a symbolic str", "return s * 2"),
    "repetition, turned": ("does something with a symbolic str", "return 2 * s"),
    "formatting": ("does something with a symbolic str", "return s % 2"),
    "int": ("uses int() of a symbolic str", "return int(s)"),
    "float": ("uses float() of a symbolic str", "return float(s)"),
    "startswith from": ("with a start or an end", "return s.startswith('a', 1)"),
    "a large character": ("that the solver's strings do not have", "return s == '\U0010ffff'"),
    "join": ("raises TypeError on a symbolic value", "return ','.join([s])"),
    "in": ("raises TypeError on a symbolic value", "return s in 'abc'"),
    "an argument of a real string": ("raises TypeError on a symbolic value", "return 'abc'.startswith(s)"),
    "f-string": ("makes text of a symbolic str", "return f'{s}!'"),
    "ord": ("uses ord()", "return ord(s)"),
}


@pytest.mark.parametrize("entry", STRING_SOURCES.values(), ids=list(STRING_SOURCES))
def test_what_cannot_be_read_of_strings_is_refused_with_its_line(entry):
    reason, body = entry
    function = compiled(f"def f(s):\n    {body}")

    with pytest.raises(NotReadable) as refused:
        read(function, [fresh(str, "s")[0]], budget=Budget(1))

    assert reason in refused.value.what
    assert refused.value.line == 2


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (generator, "yields"),
        (coroutine, "is async"),
        (Callable_(), "a Callable_"),
        (Callable_().method, "a method of a Callable_"),
        (Callable_, "uses Callable_"),
        (print, "uses print()"),
        (3, "is a int, not a function"),
        (functools.partial(print, 1), "uses print()"),
        (operator.attrgetter("x.__class__"), "uses the attribute __class__"),
        (operator.methodcaller("upper"), "a methodcaller"),
        (str.upper, "uses str.upper()"),
        ("abc".startswith, "uses str.startswith()"),
        (Impure(3).noisy, "uses print()"),
        (lambda x: Impure(x).noisy(), "uses print()"),
    ],
)
def test_what_is_no_plain_function_is_refused(function, reason):
    with pytest.raises(NotReadable) as refused:
        require_readable(function)

    assert reason in refused.value.what


def test_an_error_of_types_counts_only_if_real_values_raise_it_at_the_same_line():
    function = compiled("""
        def f(s):
            y = "abc".startswith(s)
            return None + y
        """)

    with pytest.raises(NotReadable) as refused:
        read(function, [fresh(str, "s")[0]], budget=Budget(5))
    assert refused.value.line == 2


def test_what_is_private_elsewhere_may_be_a_field():
    class Bar(NamedTuple):
        format: int
        close: int

    readings(lambda bar: bar.format + bar.close, Bar)


def test_arguments_are_values():
    with pytest.raises(NotReadable, match="takes a Fraction"):
        read(lambda x: x, [Fraction(1, 2)], budget=Budget(5))


def test_a_helper_is_refused_at_its_own_line():
    helper = compiled("def f(x):\n    y = x\n    return print(y)")
    function = compiled("def f(x):\n    return helper(x)", helper=helper)

    with pytest.raises(NotReadable, match=r"line 3 of job\.py"):
        require_readable(function)


def test_a_nonlocal_variable_must_not_change():
    count = 0

    def function(x):
        nonlocal count
        count += 1
        return x + count

    with pytest.raises(NotReadable, match="changes the nonlocal variable count"):
        require_readable(function)


def test_a_function_that_decides_differently_each_time_is_refused():
    x, _ = fresh(int, "x")
    limits = iter(range(100))

    with pytest.raises(NotReadable, match="does not take the same decisions"):
        explore(lambda: 1 if x > next(limits) else 2, budget=Budget(5))


def test_paths_are_counted():
    x, _ = fresh(int, "x")
    function = lambda x: [x > limit or limit for limit in range(7)]  # noqa: E731

    assert len(read(function, [x], budget=Budget(5), most=8)) == 8
    with pytest.raises(NotReadable, match="has more than 7 paths"):
        read(function, [x], budget=Budget(5), most=7)


def test_paths_take_no_more_than_their_time():
    x, _ = fresh(int, "x")
    start = time.monotonic()

    with pytest.raises(NotReadable, match=r"not all followed in 0\.1 s"):
        read(lambda x: [x % n == 1 or n for n in range(2, 60)], [x], budget=Budget(0.1), most=10**9)
    assert time.monotonic() - start < 3


def test_without_a_replay_an_error_of_types_is_refused_if_python_raised_it():
    x, _ = fresh(int, "x")

    with pytest.raises(NotReadable, match="raises TypeError"):
        explore(lambda: None + 1, budget=Budget(5))
    (path,) = explore(lambda: x + None, budget=Budget(5))
    assert type(path.raised) is TypeError


def test_a_refusal_that_c_code_swallows_is_still_one():
    x, _ = fresh(int, "x")

    def swallow():
        try:
            return x.bit_length()
        except UnsupportedError:
            return 3

    with pytest.raises(NotReadable, match="bit_length"):
        explore(swallow, budget=Budget(5))


def test_outside_of_an_exploration_nothing_is_decided():
    x, _ = fresh(int, "x")

    with pytest.raises(NotReadable, match="while nothing is explored"):
        bool(x > 3)
    assert str(x) == repr(x) == f"{x}" == "x"


# -- values of types -------------------------------------------------------------------------------------------------


def test_values_of_a_type_are_named_by_where_they_are():
    tree, constraints = fresh((int, (str, bool), float, None), "r")

    assert constraints == []
    number, (text, truth), real, nothing = tree
    assert [str(term_of(leaf)) for leaf in (number, text, truth, real)] == ["r.0", "r.1.0", "r.1.1", "r.2"]
    assert nothing is None
    assert [type(leaf) for leaf in (number, text, truth, real)] == [
        SymbolicInt,
        SymbolicStr,
        SymbolicBool,
        SymbolicFloat,
    ]


def test_each_way_to_be_none_is_a_case():
    found = list(cases((int | None, tuple[str, bool | None] | None), "r"))

    assert len(found) == 2 * 3
    formulas = [formula for _, formula in found]
    for one, other in itertools.combinations(formulas, 2):
        assert prove(z3.Not(z3.And(one, other)), seconds=5).proved
    assert str(formulas[0]) == "And(r.0.null, r.1.null)"
    assert found[0][0] == (None, None)
    # Where the pair is None, the flag of its second part says nothing.
    assert prove(z3.Or(formulas), seconds=5).proved


def test_a_type_without_none_has_one_case():
    ((tree, formula),) = cases((int, str), "r")

    assert z3.is_true(formula)
    assert str(tree) == "(r.0, r.1)"


def test_a_namedtuple_is_a_type():
    tree, _ = fresh(Point, "p")

    assert type(tree) is Point
    assert str(tree.y) == "p.1"


@pytest.mark.parametrize(
    "type_", [complex, list[int], int | str, int | str | None, tuple[int, ...], "int", [int], Pair]
)
def test_other_types_are_refused(type_):
    with pytest.raises(UnsupportedError, match="x"):
        list(cases(type_, "x"))


def test_an_optional_value_is_not_one_value():
    with pytest.raises(UnsupportedError, match="without None"):
        fresh(int | None, "x")


@pytest.mark.parametrize("value", [0, -5, 10**50, True, False, "", "\\u{61}\n\u00e9", "a b", 0.1, -2.5])
def test_constants_have_terms_with_their_values(value):
    solver = z3.Solver()
    assert solver.check() == z3.sat
    found = value_in(SymbolicInt(term_of(value)), solver.model())

    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize("value", [None, math.inf, 1j, (1,)])
def test_other_values_have_no_term(value):
    with pytest.raises(UnsupportedError, match="term_of"):
        term_of(value)


def test_a_tree_has_a_value_in_a_model():
    pair, _ = fresh((int, (str, float)), "p")
    answer = prove(
        z3.Not(z3.And(term_of(pair[0]) == 7, term_of(pair[1][0]) == "x", term_of(pair[1][1]) == z3.Q(1, 2))), seconds=5
    )

    assert value_in([pair, None], answer.model) == [(7, ("x", 0.5)), None]


# -- the reading is compared with the function -----------------------------------------------------------------------


def wrong_paths(paths: list[Path], **changes: Any) -> list[Path]:
    return [dataclasses.replace(paths[0], **changes), *paths[1:]]


X, _ = fresh(int, "x")
WRONG_READINGS = {
    "another value": {"result": SymbolicInt(X._term + 1)},
    "another type": {"result": SymbolicBool(X._term > 0)},
    "another shape": {"result": (X,)},
    "an exception": {"raised": ValueError("x")},
    "a guard that is too wide": {"guard": z3.BoolVal(True)},
    "a guard that is too narrow": {"guard": z3.BoolVal(False)},
}


@pytest.mark.parametrize("changes", WRONG_READINGS.values(), ids=list(WRONG_READINGS))
def test_a_wrong_reading_is_our_own_bug(changes):
    function = lambda x: -x if x > 20 else x * 3  # noqa: E731
    paths = read(function, [X], budget=Budget(5))

    with pytest.raises(EncodingError, match="as Python gives"):
        check_reading(function, wrong_paths(paths, **changes), [X])


def test_values_near_the_constants_of_the_function_are_tried():
    paths = [Path(X._term < 12345, False), Path(X._term >= 12345, True)]

    check_reading(lambda x: x >= 12345, paths, [X])
    with pytest.raises(EncodingError, match="12345"):
        check_reading(lambda x: x > 12345, paths, [X])


def test_every_path_is_tried():
    function = lambda x: 1 if x * 7 == 700000007 * 7 else 0  # noqa: E731
    paths = read(function, [X], budget=Budget(5))

    with pytest.raises(EncodingError):
        check_reading(function, [dataclasses.replace(path, result=0) for path in paths], [X])


def test_where_rounding_shows_floats_are_not_real_numbers():
    function = lambda x: x / 10 * 3 == x * 3 / 10  # noqa: E731
    paths = read(function, [X], budget=Budget(5))

    with pytest.raises(NotReadable, match="depends on how floats are rounded"):
        check_reading(function, paths, [X])


# -- random expressions ----------------------------------------------------------------------------------------------

NUMBERS = st.sampled_from(["x", "y", "b", "0", "1", "2", "-3", "7", "True"])


def combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pairs = st.tuples(inner, inner)
    return st.one_of(
        pairs.flatmap(lambda p: st.sampled_from([f"({p[0]} {sign} {p[1]})" for sign in ("+", "-", "*", "//", "%")])),
        pairs.flatmap(lambda p: st.sampled_from([f"({p[0]} {s} {p[1]})" for s in ("<", "<=", "==", "!=", ">", ">=")])),
        pairs.flatmap(lambda p: st.sampled_from([f"({p[0]} {sign} {p[1]})" for sign in ("and", "or")])),
        pairs.flatmap(lambda p: st.sampled_from([f"{f}({p[0]}, {p[1]})" for f in ("min", "max", "divmod_sum")])),
        inner.flatmap(lambda a: st.sampled_from([f"(-{a})", f"(not {a})", f"abs({a})", f"int({a})", f"bool({a})"])),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} if {p[1]} else {p[2]})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} < {p[1]} <= {p[2]})"),
        st.tuples(inner, inner, inner).map(lambda p: f"({p[0]} in ({p[1]}, {p[2]}))"),
        st.tuples(inner, inner).map(lambda p: f"sum([{p[0]}, {p[1]}])"),
    )


def divmod_sum(a, b):
    quotient, rest = divmod(a, b)
    return quotient + rest


@given(st.recursive(NUMBERS, combined, max_leaves=6))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_expressions_are_read_as_python_calculates_them(text):
    function = compiled(f"f = lambda x, y, b: {text}", divmod_sum=divmod_sum)
    arguments = [fresh(int, "x")[0], fresh(int, "y")[0], fresh(bool, "b")[0]]

    paths = read(function, arguments, budget=Budget(20))
    check_reading(function, paths, arguments, samples=40)
    inputs = list(itertools.product([0, 1, -1, 7, -8, 10**20], [0, 2, -3, 7], [False, True]))
    terms = [leaf._term for leaf in arguments]
    for values in inputs:
        point = list(zip(terms, map(term_of, values), strict=True))
        (taken,) = [path for path in paths if plain(z3.substitute(path.guard, *point))]
        assert outcome_of(taken, point) == outcome(function, *values)


# -- functions made of others ----------------------------------------------------------------------------------------


def test_a_composed_function_is_read_through_its_parts():
    def make(twin, first, second):
        return lambda x: second(first(x))

    composed = Composed(make, lambda x: x + 1, lambda x: -x if x < 0 else x, besides=())
    x, _ = fresh(int, "x")

    paths = read(composed, [x], budget=Budget(5))

    assert len(paths) == 2
    check_reading(composed, paths, [x])
    assert composed(-5) == 4


def test_what_a_part_of_a_composed_function_may_not_do_is_refused_with_its_line():
    composed = Composed(lambda twin, part: part, lambda x: hash((x,)), besides=())
    x, _ = fresh(int, "x")

    with pytest.raises(NotReadable, match="hash") as caught:
        read(composed, [x], budget=Budget(5))

    assert caught.value.line == sys._getframe().f_lineno - 6


def test_functions_of_the_same_code_and_captures_have_one_fingerprint():
    def adding(n: object) -> object:
        return lambda x: x + n

    assert fingerprint(adding(1)) == fingerprint(adding(1))
    assert fingerprint(adding(1)) != fingerprint(adding(2))
    assert fingerprint(adding(1)) != fingerprint(adding(True))
    assert fingerprint(adding(adding(1))) == fingerprint(adding(adding(1)))

    def itself(n: int) -> int:
        return itself(n - 1) if n else 0

    assert fingerprint(itself) == fingerprint(itself)


def test_a_fingerprint_is_another_one_if_what_is_reached_by_name_has_changed():
    table: dict[str, object] = {"limit": 1, "helper": lambda x: x}
    function = compiled("f = lambda x: helper(x) > limit", **table)
    names = function.__globals__
    before = fingerprint(function)

    assert fingerprint(function) == before
    names["limit"] = 2
    changed = fingerprint(function)
    assert changed != before
    names["helper"] = lambda x: x + 1
    assert fingerprint(function) not in (before, changed)


def test_a_fingerprint_sees_into_lists_that_are_captured():
    known = [1, 2]
    before = fingerprint(lambda x: x in known)

    known.append(3)

    assert fingerprint(lambda x: x in known) != before


def test_a_program_that_is_run_as_it_is_may_ask_for_the_length_of_a_symbolic_text():
    text, _ = fresh(str, "text")

    def program(text: Any) -> Any:
        return len(text) + len("ab")

    paths = explore(lambda: with_known_len(program)(text), budget=Budget(5))

    assert prove(term_of(paths[0].result) == z3.Length(text._term) + 2, seconds=5).proved
    assert with_known_len(program)("c") == 3


def test_a_list_comprehension_with_captured_values_means_the_same():
    limit, words = 3, {"a": 1}

    def function(x: int) -> Any:
        inside = 2
        return sum([y * inside + words["a"] for y in (x, limit) if y < limit + inside] + [z for z in [1]])

    x, _ = fresh(int, "x")
    check_reading(function, read(function, [x], budget=Budget(5)), [x])
