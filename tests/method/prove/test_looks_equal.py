"""Programs on RDDs that differ where no small input shows it: none of them may be proved to be equal."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from streamtight.method.prove.inputs import rdd
from streamtight.method.prove.search import Question, search
from streamtight.verdict import Verdict

Program = Callable[..., Any]


def ask(left: Program, right: Program, *types: Any) -> Verdict:
    inputs = tuple(map(rdd, types))
    return search(Question("they are equal", left, right, inputs, lambda found: found, lambda _: "", seconds=5.0))


def is_rare(x: Any) -> Any:
    """True of 1000 only, and not to be found by values near the constants."""
    return x * x == 1000000 and x > 0


def raises_rarely(x: int) -> int:
    return 1 // (x * x - 1000000)


def is_int(value: Any) -> bool:
    return isinstance(value, int)


@dataclasses.dataclass(frozen=True)
class Point:
    x: int


@dataclasses.dataclass(frozen=True, eq=False)
class Named(Point):
    """Is equal to others with the same x, whatever its name."""

    name: int


class Turned(NamedTuple):
    x: int

    def __gt__(self, other: Any) -> bool:
        return bool(self.x < other.x) if self.x * self.x == 1000000 else bool(self.x > other.x)


class Untrue(NamedTuple):
    x: int

    def __bool__(self) -> bool:
        return self.x * self.x != 1000000


def swallowing(r: Any) -> Any:
    try:
        return r.zipWithIndex().map(lambda p: p[0])
    except Exception:
        return r.filter(lambda x: False)


def returning_anyway(r: Any) -> Any:
    rows = r.filter(lambda x: False)
    try:
        rows = r.mapPartitions(lambda it: it)
    finally:
        return rows  # noqa: B012


def summed_or_not(r: Any) -> Any:
    try:
        return r.map(raises_rarely).sum()
    except Exception:
        return -1


def with_unused_rows(r: Any) -> Any:
    r.map(raises_rarely).collect()
    return r.count()


def with_unused_order(r: Any) -> Any:
    r.sortBy(raises_rarely)
    return r.count()


def by_truth(rare: bool) -> Program:
    def program(r: Any) -> Any:
        if r.isEmpty() is False:
            return r.filter(lambda x: not is_rare(x)).sum() if rare else r.sum()
        return 0

    return program


def by_class(rare: bool) -> Program:
    def program(r: Any) -> Any:
        n = r.count()
        if n.__class__ is int:
            return n if not rare or n < 1000 else 7
        return 0

    return program


def by_match(rare: bool) -> Program:
    def program(r: Any) -> Any:
        n = r.count()
        match n:
            case int():
                return n if not rare or n < 1000 else 7
        return 0

    return program


def by_helper(rare: bool) -> Program:
    def program(r: Any) -> Any:
        n = r.count()
        return (n if not rare or n < 1000 else 7) if is_int(n) else 0

    return program


def with_sum(rare: bool) -> Program:
    """What is known of the rows that are kept must not be taken to be known of the rows that are summed."""

    def program(r: Any) -> Any:
        n = (r.map(lambda v: 0 if is_rare(v) else v) if rare else r).sum()
        return r.filter(lambda x: x == 5).map(lambda x: x + n)

    return program


def with_own_sum(rare: bool) -> Program:
    def program(r: Any) -> Any:
        summed = (r.mapValues(lambda v: 0 if is_rare(v) else v) if rare else r).reduceByKey(operator.add)
        return r.join(summed).filter(lambda p: p[1][0] == 5)

    return program


def apart(rare: bool) -> Program:
    """Two narrowings of one distinct relation must not share what they are made of."""

    def one(d: Any) -> Any:
        return d.filter(lambda p: p[0] - 123000 == 456 and p[1] - 123000 != 456)

    def other(d: Any) -> Any:
        return d.filter(lambda p: p[1] - 123000 == 456 and p[0] - 123000 != 456)

    def program(r: Any) -> Any:
        pairs = r.cartesian(r).distinct()
        return one(pairs).union(other(pairs)) if rare else one(pairs)

    return program


def bound_late(r: Any) -> Any:
    return [r.map(lambda x: (x, k)).reduceByKey(operator.add) for k in (1, 2)][0]  # noqa: B023, RUF015 - that is the point


CHECKS = {"int": isinstance}


def by_table(rare: bool) -> Program:
    def program(r: Any) -> Any:
        n = r.count()
        return (n if not rare or n < 1000 else 7) if CHECKS["int"](n, int) else 0

    return program


@functools.singledispatch
def dispatched(value: Any) -> Any:
    return 0


@dispatched.register
def _(value: int) -> Any:
    return value


class Swallow(contextlib.ContextDecorator):
    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> bool:
        return True


def swallowed_by_a_library(r: Any) -> Any:
    out = [r.filter(lambda x: False)]
    Swallow()(lambda: out.append(r.zipWithIndex().map(lambda p: p[0])))()
    return out[-1]


def made_point(number: int) -> Any:
    @dataclasses.dataclass(frozen=True)
    class Made:
        x: int

    return Made


ONE, OTHER = made_point(1), made_point(2)


class Plain(NamedTuple):
    x: int

    def value(self) -> int:
        return self.x


class Hiding(NamedTuple):
    x: int

    def value(self) -> int:
        return 0 if self.x - 123000 == 456 else self.x


def of_two_sides(left: Any, right: Any) -> Program:
    """The values of keys that only the second side has."""

    def values(sides: Any) -> Any:
        count = len(sides[0])
        return (each.value() if count == 0 else 0 for each in sides[1])

    return lambda r, s: r.mapValues(left).cogroup(s.mapValues(right)).flatMapValues(values)


LOOK_EQUAL: dict[str, tuple[Program, Program, tuple[Any, ...]]] = {
    "a sum beside the rows": (with_sum(False), with_sum(True), (int,)),
    "sums of a key beside its rows": (with_own_sum(False), with_own_sum(True), ((int, int),)),
    "a join with a relation that may be empty": (
        lambda a, b: a.map(lambda x: (None, x)).leftOuterJoin(b.map(lambda x: (None, x)).reduceByKey(operator.add)),
        lambda a, b: a.map(lambda x: (None, x)).join(b.map(lambda x: (None, x)).reduceByKey(operator.add)),
        (int, int),
    ),
    "rows without those of a relation without columns": (
        lambda a, b: a.map(lambda x: ((), x)).subtractByKey(b.filter(is_rare).map(lambda x: ((), ())).distinct()),
        lambda a, b: a.filter(lambda x: False).map(lambda x: ((), x)),
        (int, int),
    ),
    "two parts of one distinct relation": (apart(True), apart(False), (int,)),
    "a variable that is bound late": (bound_late, lambda r: r.map(lambda x: (x, 2)).reduceByKey(operator.add), (int,)),
    "a class by a table of functions": (by_table(False), by_table(True), (int,)),
    "a class by dispatch": (lambda r: dispatched(r.count()), lambda r: 0 * r.count(), (int,)),
    "a refusal that a library swallows": (swallowed_by_a_library, lambda r: r.filter(lambda x: False), (int,)),
    "classes of two sides": (of_two_sides(Plain, Hiding), of_two_sides(Plain, Plain), ((int, int), (int, int))),
    "two classes of one name": (
        lambda r: r.filter(is_rare).map(ONE).subtract(r.map(OTHER)).count(),
        lambda r: 0 * r.count(),
        (int,),
    ),
    "partitions by an aggregate": (lambda r: r.repartition(1000 - r.count()).count(), lambda r: r.count(), (int,)),
    "no partitions": (lambda r: r.distinct(1 - r.filter(is_rare).count()), lambda r: r.distinct(), (int,)),
    "a checkpoint, which gives nothing": (
        lambda r: r.count() if r.localCheckpoint() is None else 0,
        lambda r: 0 * r.count(),
        (int,),
    ),
    "a refusal that is swallowed": (swallowing, lambda r: r.filter(lambda x: False), (int,)),
    "a return that hides a refusal": (returning_anyway, lambda r: r.filter(lambda x: False), (int,)),
    "an error that is caught": (summed_or_not, lambda r: r.map(raises_rarely).sum(), (int,)),
    "rows that are not used": (with_unused_rows, lambda r: r.count(), (int,)),
    "an order that is not used": (with_unused_order, lambda r: r.count(), (int,)),
    "a product whose second part is not always asked for": (
        lambda a, b: a.cartesian(b.map(raises_rarely)).count(),
        lambda a, b: b.map(raises_rarely).cartesian(a).count(),
        (int, int),
    ),
    "a partitioner that raises": (
        lambda r: r.map(lambda x: (x, x)).partitionBy(2, raises_rarely).count(),
        lambda r: r.count(),
        (int,),
    ),
    "a truth value by identity": (by_truth(False), by_truth(True), (int,)),
    "a class by attribute": (by_class(False), by_class(True), (int,)),
    "a class by match": (by_match(False), by_match(True), (int,)),
    "a class by a helper": (by_helper(False), by_helper(True), (int,)),
    "tuples with an order of their own": (lambda r: r.map(Turned).max(), lambda r: (r.max(),), (int,)),
    "tuples with a truth of their own": (
        lambda r: r.map(Untrue).filter(lambda n: n).map(lambda n: n.x),
        lambda r: r,
        (int,),
    ),
    "dataclasses with an equality of their parents": (
        lambda r: r.map(lambda x: Named(0 if is_rare(x) else x, x)).distinct().map(lambda c: c.name),
        lambda r: r.distinct(),
        (int,),
    ),
}


@pytest.mark.parametrize("name", list(LOOK_EQUAL))
def test_what_only_looks_equal_is_not_proved(name: str) -> None:
    left, right, types = LOOK_EQUAL[name]

    assert not ask(left, right, *types).holds


def test_rows_that_never_come_are_no_error() -> None:
    nothing: Program = lambda r: r.filter(lambda x: False).map(lambda x: (x, 1)).reduceByKey(operator.add)  # noqa: E731

    assert not ask(nothing, lambda r: r.map(lambda x: (x, 1)).filter(lambda p: False), int).fails


def test_floats_are_real_numbers_also_if_they_are_only_handed_on() -> None:
    verdict = ask(lambda r: r.union(r).distinct(), lambda r: r.distinct(), float)

    assert verdict.holds
    assert "floats are real numbers" in verdict.assumptions


def test_a_division_on_the_driver_assumes_real_numbers() -> None:
    verdict = ask(lambda r: r.mean(), lambda r: r.sum() / r.count() if r.count() else 0.0, int)

    assert verdict.holds
    assert "floats are real numbers" in verdict.assumptions


def test_the_order_of_texts_assumes_characters_that_the_solver_knows() -> None:
    verdict = ask(lambda r: r.filter(lambda s: s > "b"), lambda r: r.filter(lambda s: not s <= "b"), str)

    assert verdict.holds
    assert "texts have no characters beyond U+2FFFF" in verdict.assumptions


def test_what_differs_on_one_rare_path_is_found_by_a_row_for_each_path() -> None:
    verdict = ask(lambda r: r.map(lambda x: 0 if is_rare(x) else 1).sum(), lambda r: r.count(), int)

    assert verdict.fails
    assert verdict.counterexample is not None
    assert "1000" in str(verdict.counterexample.table)
