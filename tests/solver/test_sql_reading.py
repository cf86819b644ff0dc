"""SQL expressions as formulas: what they say of a row is what the expression gives for it."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
import z3

from streamtight.errors import UnsupportedError
from streamtight.program.expression import (
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Coalesce,
    Column,
    Compare,
    Comparison,
    Expression,
    Field,
    IsNull,
    Literal,
    Mode,
    Most,
    Not,
    Operation,
    Or,
    PythonUDF,
    SqlError,
)
from streamtight.solver.ask import Budget
from streamtight.solver.sql import NO_OVERFLOW, Reading, row_type
from streamtight.solver.symbolic.values import REAL_NUMBERS
from streamtight.solver.terms import Meaning
from streamtight.solver.values import constants, fitted, variable

FIELDS = (
    Field("a", "long"),
    Field("b", "long"),
    Field("i", "integer"),
    Field("p", "boolean"),
    Field("q", "boolean"),
    Field("s", "string"),
    Field("x", "double"),
    Field("d", "date"),
)
TYPE = row_type(FIELDS)
VALUES: dict[str, list[Any]] = {
    "long": [None, 0, 1, -1, 2, 3, -7, 2**63 - 1, -(2**63)],
    "integer": [None, 0, 1, -1, 5, 2**31 - 1, -(2**31)],
    "boolean": [None, True, False],
    "string": [None, "", "a", "b", "ab", "1", "true"],
    "double": [None, 0.0, 1.0, -1.0, 0.5, -2.5, 3.75],
    "date": [None, date(2024, 2, 28), date(2024, 2, 29), date(1969, 12, 31)],
}


class Expressions:
    """Random expressions, each of a type."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)

    def of(self, type_: str, depth: int) -> Expression:
        makers: list[Callable[[str, int], Expression]] = [self._column, self._literal]
        if depth:
            makers += [self._case, self._coalesce, self._of_type, self._of_type, self._of_type]
        return self.chance.choice(makers)(type_, depth - 1)

    def _column(self, type_: str, _: int) -> Expression:
        return Column((self.chance.choice([n for n, field in enumerate(FIELDS) if field.type == type_]),), type_)

    def _literal(self, type_: str, _: int) -> Expression:
        return Literal(self.chance.choice(VALUES[type_]), type_)

    def _case(self, type_: str, depth: int) -> Expression:
        return Case(((self.of("boolean", depth), self.of(type_, depth)),), self.of(type_, depth))

    def _coalesce(self, type_: str, depth: int) -> Expression:
        return Coalesce((self.of(type_, depth), self.of(type_, depth)))

    def _of_type(self, type_: str, depth: int) -> Expression:
        chance = self.chance
        mode = chance.choice([Mode.ANSI, Mode.TRY])
        match type_:
            case "boolean":
                kind = chance.choice(list(VALUES))
                one, other = self.of(kind, depth), self.of(kind, depth)
                inner = (self.of("boolean", depth), self.of("boolean", depth))
                texts = (self.of("string", depth), self.of("string", depth))
                pattern = Literal(chance.choice(["a%", "%b", "_", "", "%", "a_%", "1", "\\%%"]), "string")
                about_text: list[Expression] = [Call(name, texts) for name in ("startswith", "endswith", "contains")]
                about_text.append(Call("like", (texts[0], pattern, Literal("\\", "string"))))
                if chance.random() < 0.3:
                    return chance.choice(about_text)
                return chance.choice(
                    [
                        Compare(chance.choice(list(Comparison)), one, other),
                        IsNull(one),
                        And(inner),
                        Or(inner),
                        Not(inner[0]),
                    ]
                )
            case "long" | "integer":
                kind = "integer" if type_ == "long" else "long"
                whole = [one for one in Operation if one is not Operation.DIVIDE]
                if chance.random() < 0.3:
                    return Cast(self.of(chance.choice([kind, "boolean"]), depth), type_, mode)
                if chance.random() < 0.2:
                    return Most((self.of(type_, depth), self.of(type_, depth)), chance.random() < 0.5)
                return Arithmetic(chance.choice(whole), self.of(type_, depth), self.of(type_, depth), type_, mode)
            case "double":
                operation = chance.choice([Operation.ADD, Operation.SUBTRACT, Operation.MULTIPLY])
                return Arithmetic(operation, self.of("double", depth), self.of("double", depth), "double", mode)
            case "string":
                if chance.random() < 0.4:
                    return Cast(self.of(chance.choice(["long", "boolean"]), depth), "string", mode)
                return Call("concat", (self.of("string", depth), self.of("string", depth)))
        return self._column(type_, depth)

    def row(self) -> tuple[Any, ...]:
        return tuple(self.chance.choice(VALUES[field.type]) for field in FIELDS)


def reading(overflows: bool = True) -> Reading:
    return Reading(Meaning(Budget(10)).applied, overflows=overflows)


def in_days(value: Any) -> Any:
    return value.toordinal() if isinstance(value, date) else value


def read_at(expression: Expression, row: tuple[Any, ...], *, overflows: bool = True) -> Any:
    """What the formulas of the expression say of a row."""
    free = variable(TYPE, "row")
    cell = reading(overflows).cell(expression, free)
    known = list(zip(constants(free), fitted(tuple(map(in_days, row)), TYPE), strict=True))

    def at(term: Any) -> Any:
        return z3.simplify(z3.substitute(term, *known))

    if z3.is_true(at(cell.fails)):
        return SqlError
    assert z3.is_false(at(cell.fails))
    if z3.is_true(at(cell.null)):
        return None
    value = at(cell.value)
    if z3.is_bool(value):
        return z3.is_true(value)
    if z3.is_string(value):
        return value.as_string()
    return value.as_long() if z3.is_int(value) else float(value.as_fraction())


def given_by(expression: Expression, row: tuple[Any, ...]) -> Any:
    try:
        return in_days(expression.value(row))
    except SqlError:
        return SqlError


@pytest.mark.parametrize("seed", range(150))
def test_a_formula_says_what_the_expression_gives(seed: int):
    expressions = Expressions(seed)
    expression = expressions.of(expressions.chance.choice(["boolean", "long", "integer", "double", "string"]), 3)
    for _ in range(12):
        row = expressions.row()
        assert read_at(expression, row) == given_by(expression, row), f"{expression} of {row}"


@pytest.mark.parametrize("value", [0.0, 0.5, -0.5, 1.75, -1.75, -3.0])
def test_a_double_is_cut_towards_zero(value: float):
    cast = Cast(Column((6,), "double"), "long", Mode.ANSI)
    row = (None,) * 6 + (value, None)
    assert read_at(cast, row) == given_by(cast, row) == int(value)


def test_a_decimal_is_the_number_that_it_is():
    tenth = Literal(Decimal("0.10"), "decimal(4,2)")
    cell = reading().cell(Arithmetic(Operation.ADD, tenth, tenth, "decimal(4,2)", Mode.ANSI), ())
    assert z3.is_true(z3.simplify(cell.value == z3.RealVal("0.2")))


def test_a_divisor_near_the_least_number_wraps_around_in_pmod():
    rest = Arithmetic(Operation.PMOD, Column((0,), "long"), Column((1,), "long"), "long", Mode.ANSI)
    row = (-1, -(2**63), *[None] * 6)
    assert read_at(rest, row) == given_by(rest, row) == 2**63 - 1


def test_that_integers_do_not_overflow_is_assumed_or_asked():
    more = Arithmetic(Operation.ADD, Column((0,), "long"), Literal(1, "long"), "long", Mode.ANSI)
    assumed, asked = reading(overflows=False), reading(overflows=True)
    assert z3.is_false(z3.simplify(assumed.cell(more, variable(TYPE, "row")).fails))
    assert not z3.is_false(z3.simplify(asked.cell(more, variable(TYPE, "row")).fails))
    assert (assumed.assumptions, asked.assumptions) == ({NO_OVERFLOW}, set())


def test_doubles_are_taken_for_real_numbers_and_that_is_told():
    one = reading()
    one.cell(Compare(Comparison.LESS, Column((6,), "double"), Literal(1.0, "double")), variable(TYPE, "row"))
    assert one.assumptions == {REAL_NUMBERS}


def test_a_python_function_inside_is_read_as_python():
    udf = PythonUDF("rest", lambda n: None if n is None else n % 3, (Column((0,), "long"),), "long")
    for number in (None, 5, -5, 0):
        row = (number, *[None] * 7)
        assert read_at(udf, row, overflows=False) == (None if number is None else number % 3)


@pytest.mark.parametrize(
    ("function", "argument", "declared"),
    [
        (lambda n: n > 1, "long", "long"),
        (lambda n: n + 1, "long", "double"),
        (lambda n: n / 2, "long", "long"),
        (lambda d: d.year, "date", "long"),
        (lambda d: d / 2, "decimal(10,2)", "double"),
    ],
    ids=["truth for a number", "number for a double", "double for a number", "of a day", "of a decimal"],
)
def test_a_python_function_of_other_types_than_spark_gives_and_wants_is_refused(
    function: Any, argument: str, declared: str
):
    row = variable((_PYTHON[argument],), "row")
    udf = PythonUDF("f", function, (Column((0,), argument),), declared)

    with pytest.raises(UnsupportedError):
        reading(overflows=False).cell(udf, row)


_PYTHON = {"long": int, "date": int, "decimal(10,2)": float}


def test_a_python_function_raises_also_in_a_branch_that_is_not_taken():
    udf = PythonUDF("f", lambda n: 1 // n, (Column((0,), "long"),), "long")
    chosen = Case(((Literal(True, "boolean"), Literal(0, "long")),), udf)
    asked = reading(overflows=False)

    asked.cell(chosen, variable((int,), "row"))

    assert not z3.is_false(z3.simplify(z3.Or(*asked.fails_anyway)))


def test_what_is_null_where_it_does_not_fit_is_so_whether_or_not_overflow_is_asked_for():
    row = variable((int, float), "row")
    narrow = reading(overflows=False).cell(Cast(Column((0,), "long"), "byte", Mode.TRY), row)
    decimal = reading(overflows=False).cell(Cast(Column((1,), "decimal(10,2)"), "decimal(4,2)", Mode.TRY), row)

    assert z3.is_true(z3.simplify(z3.substitute(narrow.null, (row[0]._term, z3.IntVal(200)))))
    assert z3.is_true(z3.simplify(z3.substitute(decimal.null, (row[1]._term, z3.RealVal("123.45")))))


def test_of_some_functions_it_is_only_known_that_they_give_the_same_for_the_same():
    free = variable(TYPE, "row")
    one, other = (reading().cell(Call("upper", (Column((5,), "string"),)), free) for _ in range(2))
    assert z3.is_true(z3.simplify(one.value == other.value))
    assert not z3.is_string_value(z3.simplify(z3.substitute(one.value, (free[5].value._term, z3.StringVal("a")))))


def test_what_has_no_formula_is_refused():
    with pytest.raises(UnsupportedError, match="string to long"):
        reading().cell(Cast(Column((5,), "string"), "long", Mode.ANSI), variable(TYPE, "row"))
