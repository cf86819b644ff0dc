"""SQL expressions on concrete values. What Spark itself says about them is asked in tests/spark/test_lift_frame.py."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest

from streamtight.errors import UnsupportedError
from streamtight.program.expression import (
    FALSE,
    FUNCTIONS,
    NAN,
    TRUE,
    WHOLE,
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
    IsNull,
    Literal,
    Mode,
    Most,
    Not,
    Operation,
    Or,
    PythonUDF,
    SqlError,
    SqlFunction,
    SqlValue,
    can_cast,
    digits,
    is_known,
)
from streamtight.program.relation import How

ANSI, LEGACY, TRY = Mode.ANSI, Mode.LEGACY, Mode.TRY
GREATEST, LEAST = 2**63 - 1, -(2**63)
NULL = Literal(None, "boolean")
BROKEN = Arithmetic(Operation.DIVIDE, Literal(1.0, "double"), Literal(0.0, "double"), "double", ANSI)


def constant(value: Any) -> Literal:
    kinds = {bool: "boolean", int: "long", float: "double", str: "string", Decimal: "decimal(6,2)", date: "date"}
    return Literal(value, kinds.get(type(value), "void"))


def calculated(left: Any, operation: str, right: Any, mode: Mode = ANSI, type_: str = "long") -> Any:
    return Arithmetic(Operation(operation), Literal(left, type_), Literal(right, type_), type_, mode).value(())


def compared(left: Any, comparison: str, right: Any) -> bool | None:
    return Compare(Comparison(comparison), constant(left), constant(right)).value(())


def cast(value: Any, source: str, target: str, mode: Mode = ANSI) -> Any:
    assert can_cast(source, target)
    return Cast(Literal(value, source), target, mode).value(())


# -- columns -----------------------------------------------------------------------------------------------------------


def test_a_column_is_found_level_by_level():
    pair = (("a", 1), ("b", 2))
    assert Column((1,), "long").value(("a", 1)) == 1
    assert Column((1, 0), "string").value(pair) == "b"


def test_a_column_is_the_same_whether_it_may_be_null_or_not():
    assert Column((0,), "long", nullable=False) == Column((0,), "long")


def test_all_nan_become_one():
    column = Column((0,), "double")
    assert column.value((float("nan"),)) is column.value((-math.inf * 0,)) is NAN


# -- arithmetic --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "operation", "right", "result"),
    [
        (7, "+", -3, 4), (7, "-", 9, -2), (-7, "*", 3, -21),
        (7, "div", 2, 3), (-7, "div", 2, -3), (7, "div", -2, -3), (-7, "div", -2, 3), (1, "div", 2, 0),
        (-1, "div", 2, 0),
        (7, "%", 3, 1), (-7, "%", 3, -1), (7, "%", -3, 1), (-7, "%", -3, -1), (LEAST, "%", -1, 0),
        (7, "pmod", 3, 1), (-7, "pmod", 3, 2), (7, "pmod", -3, 1), (-7, "pmod", -3, -1),
        (-1, "pmod", LEAST, GREATEST),
        (None, "+", 1, None), (1, "*", None, None), (None, "div", 0, None), (None, "%", 0, None),
    ],
)  # fmt: skip
def test_arithmetic_on_longs(left: Any, operation: str, right: Any, result: Any):
    assert calculated(left, operation, right) == result


@pytest.mark.parametrize(
    ("left", "operation", "right", "wrapped"),
    [(GREATEST, "+", 1, LEAST), (LEAST, "-", 1, GREATEST), (GREATEST, "*", 2, -2), (LEAST, "div", -1, LEAST)],
)
def test_what_does_not_fit_raises_wraps_or_is_null(left: int, operation: str, right: int, wrapped: int):
    with pytest.raises(SqlError, match="does not fit into long"):
        calculated(left, operation, right, ANSI)
    assert calculated(left, operation, right, LEGACY) == wrapped
    assert calculated(left, operation, right, TRY) is None


@pytest.mark.parametrize("operation", ["div", "%", "pmod"])
def test_division_by_zero_raises_or_is_null(operation: str):
    with pytest.raises(SqlError, match="division by zero"):
        calculated(1, operation, 0, ANSI)
    assert calculated(1, operation, 0, LEGACY) is None
    assert calculated(1, operation, 0, TRY) is None


def test_an_sql_error_is_an_arithmetic_error():
    with pytest.raises(ArithmeticError):
        calculated(1, "div", 0)


@pytest.mark.parametrize(("type_", "greatest"), [("byte", 127), ("short", 2**15 - 1), ("integer", 2**31 - 1)])
def test_smaller_integers_have_their_own_ends(type_: str, greatest: int):
    assert calculated(greatest, "+", 1, LEGACY, type_) == -greatest - 1
    with pytest.raises(SqlError):
        calculated(greatest, "+", 1, ANSI, type_)


def test_whole_numbers_have_no_ends():
    assert calculated(GREATEST, "+", 1, ANSI, WHOLE) == GREATEST + 1


@pytest.mark.parametrize(
    ("left", "operation", "right", "result"),
    [
        (1.0, "/", 4.0, 0.25), (math.inf, "%", 2.0, NAN), (-5.5, "%", 2.0, -1.5), (-5.5, "pmod", 2.0, 0.5),
        (5.0, "%", math.inf, 5.0), (math.inf, "-", math.inf, NAN), (1e308, "*", 10.0, math.inf),
        (NAN, "pmod", 2.0, NAN),
    ],
)  # fmt: skip
def test_arithmetic_on_doubles(left: float, operation: str, right: float, result: float):
    found = calculated(left, operation, right, type_="double")
    assert found is NAN if result is NAN else found == result


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_doubles_are_not_divided_by_zero(zero: float):
    with pytest.raises(SqlError, match="division by zero"):
        calculated(1.0, "/", zero, type_="double")
    assert calculated(1.0, "/", zero, LEGACY, "double") is None


def test_decimals_keep_every_digit():
    long = Decimal("12345678901234567.89")
    product = Arithmetic(
        Operation.MULTIPLY, Literal(long, "decimal(19,2)"), Literal(long, "decimal(19,2)"), "decimal(38,4)", ANSI
    )
    assert product.value(()) == Decimal("152415787532388367501905199875019.0521")


# -- comparisons -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "comparison", "right", "result"),
    [
        (1, "=", 1, True), (1, "=", 2, False), (1, "<", 2, True), (2, "<", 2, False), (2, "<=", 2, True),
        (None, "=", None, None), (1, "<", None, None), (None, "<=>", None, True), (1, "<=>", None, False),
        (1, "<=>", 1, True), ("a", "<", "ab", True), ("B", "<", "a", True), (False, "<", True, True),
        (NAN, "=", NAN, True), (NAN, "<", NAN, False), (NAN, "<=", NAN, True), (math.inf, "<", NAN, True),
        (NAN, "<", math.inf, False), (NAN, "<=>", 1.0, False), (-0.0, "=", 0.0, True), (-0.0, "<", 0.0, False),
        (date(2024, 1, 1), "<", date(2024, 1, 2), True), (Decimal("1.50"), "=", Decimal("1.5"), True),
    ],
)  # fmt: skip
def test_comparisons(left: Any, comparison: str, right: Any, result: bool | None):
    assert compared(left, comparison, right) is result


# -- logic -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (TRUE, TRUE, True, True), (TRUE, FALSE, False, True), (FALSE, FALSE, False, False),
        (TRUE, NULL, None, True), (FALSE, NULL, False, None), (NULL, NULL, None, None),
    ],
)  # fmt: skip
def test_logic_of_three_values(left: Expression, right: Expression, both: bool | None, either: bool | None):
    for parts in ((left, right), (right, left)):
        assert And(parts).value(()) is both
        assert Or(parts).value(()) is either


def test_not_keeps_null():
    assert [Not(one).value(()) for one in (TRUE, FALSE, NULL)] == [False, True, None]


def test_what_decides_first_spares_the_rest():
    is_broken = Compare(Comparison.EQUAL, BROKEN, BROKEN)
    assert And((FALSE, is_broken)).value(()) is False
    assert Or((TRUE, is_broken)).value(()) is True
    assert Coalesce((Literal(2.0, "double"), BROKEN)).value(()) == 2.0
    assert Case(((TRUE, Literal(3.0, "double")), (is_broken, BROKEN)), BROKEN).value(()) == 3.0
    with pytest.raises(SqlError):
        And((NULL, is_broken)).value(())


def test_is_null_is_never_null():
    assert IsNull(NULL).value(()) is True
    assert IsNull(FALSE).value(()) is False


def test_case_takes_the_first_branch_that_is_true_and_no_null():
    one, two, none = Literal(1, "long"), Literal(2, "long"), Literal(None, "long")
    assert Case(((NULL, one), (TRUE, two)), none).value(()) == 2
    assert Case(((NULL, one), (FALSE, two)), none).value(()) is None


def test_least_and_greatest_leave_nulls_out():
    parts = tuple(Literal(value, "double") for value in (None, 2.0, NAN, -1.0))
    assert Most(parts, greatest=True).value(()) is NAN
    assert Most(parts, greatest=False).value(()) == -1.0
    assert Most(parts[:1], greatest=True).value(()) is None


# -- casts -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "source", "target", "result"),
    [
        (5, "long", "integer", 5), (5, "integer", "double", 5.0), (0, "integer", "boolean", False),
        (True, "boolean", "long", 1),
        (-7, "long", "string", "-7"), (True, "boolean", "string", "true"),
        (date(24, 1, 2), "date", "string", "0024-01-02"),
        (" +12\t", "string", "integer", 12), ("Yes", "string", "boolean", True), (" 0 ", "string", "boolean", False),
        (-2.9, "double", "long", -2), (2.0**63, "double", "long", GREATEST), (127.9, "double", "byte", 127),
        (NAN, "double", "boolean", True), (5, "long", "decimal(3,1)", Decimal(5)),
        (Decimal("-2.99"), "decimal(5,2)", "integer", -2), (Decimal("2.50"), "decimal(5,2)", "double", 2.5),
        (Decimal("2.50"), "decimal(5,2)", "decimal(7,3)", Decimal("2.500")), (GREATEST, WHOLE, "long", GREATEST),
        (None, "string", "long", None),
    ],
)  # fmt: skip
def test_casts(value: Any, source: str, target: str, result: Any):
    found = cast(value, source, target)
    assert found == result
    assert type(found) is type(result)


@pytest.mark.parametrize(
    ("value", "source", "target", "legacy"),
    [
        (2**31, "long", "integer", -(2**31)), (2**63, WHOLE, "long", LEAST), (300, "integer", "byte", 44),
        ("1.5", "string", "integer", 1), (".", "string", "integer", 0), ("x", "string", "integer", None),
        ("", "string", "long", None), ("+", "string", "long", None), ("128", "string", "byte", None),
        ("maybe", "string", "boolean", None), (NAN, "double", "long", 0), (1e300, "double", "integer", 2**31 - 1),
        (-math.inf, "double", "long", LEAST), (300.5, "double", "byte", 44), (1000, "long", "decimal(3,0)", None),
        (Decimal("99.99"), "decimal(4,2)", "decimal(3,2)", None),
    ],
)  # fmt: skip
def test_casts_that_fail_raise_or_give_what_they_did_before_ansi(value: Any, source: str, target: str, legacy: Any):
    with pytest.raises(SqlError):
        cast(value, source, target, ANSI)
    assert cast(value, source, target, LEGACY) == legacy
    assert cast(value, source, target, TRY) is None


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("double", "string"), ("string", "double"), ("double", "decimal(10,2)"), ("decimal(10,2)", "string"),
        ("decimal(10,2)", "decimal(10,1)"), ("decimal(16,2)", "double"), ("date", "timestamp"), ("string", "date"),
        ("boolean", "decimal(1,0)"), ("long", "array"), ("timestamp", "long"), ("boolean", WHOLE),
    ],
)  # fmt: skip
def test_casts_that_are_not_exact_are_not_known(source: str, target: str):
    assert not can_cast(source, target)


def test_types():
    assert digits("decimal(38,18)") == (38, 18)
    assert digits("long") is None
    assert all(map(is_known, ["long", "void", "decimal(4,2)", "timestamp_ntz", WHOLE]))
    assert not any(map(is_known, ["float", "binary", "char(3)", "string collate UTF8_LCASE"]))


# -- functions of text -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("concat", ("a", "b", "c"), "abc"), ("length", ("\N{TAXI}é",), 2), ("upper", ("aB1",), "AB1"),
        ("lower", ("aB1",), "ab1"),
        ("startswith", ("abc", "ab"), True), ("endswith", ("abc", "ab"), False), ("contains", ("abc", "bc"), True),
        ("like", ("a.c", "a.c", "\\"), True), ("like", ("abc", "a.c", "\\"), False),
        ("like", ("a\nc", "a_c", "\\"), True),
        ("like", ("abc", "%", "\\"), True), ("like", ("a%", "a\\%", "\\"), True), ("like", ("ab", "a/%", "/"), False),
        ("like", ("", "", "\\"), True), ("concat", ("a", None), None), ("like", (None, "%", "\\"), None),
    ],
)  # fmt: skip
def test_functions_of_text(name: str, arguments: tuple[Any, ...], result: Any):
    call = Call(name, tuple(Literal(argument, "string") for argument in arguments))
    assert call.value(()) == result
    assert call.type == FUNCTIONS[name].type


@pytest.mark.parametrize("pattern", ["a\\", "a\\b"])
def test_an_escape_character_must_escape_something(pattern: str):
    with pytest.raises(SqlError, match="must stand before"):
        Call("like", tuple(Literal(text, "string") for text in ("ab", pattern, "\\"))).value(())


def test_letters_outside_of_ascii_are_refused_where_case_matters():
    with pytest.raises(UnsupportedError, match="ASCII"):
        Call("upper", (Literal("straße", "string"),)).value(())


# -- Python functions --------------------------------------------------------------------------------------------------


def called(function: Callable[..., Any], *arguments: Any, type_: str) -> Any:
    return PythonUDF("f", function, tuple(map(constant, arguments)), type_).value(())


def test_a_python_function_is_called_with_none_for_null():
    assert called(lambda a, b: (a is None, b) == (True, 2), None, 2, type_="boolean") is True


def test_what_a_python_function_raises_is_an_error_of_sql():
    with pytest.raises(SqlError, match=r"f\(0,\) raised ZeroDivisionError") as raised:
        called(lambda n: 1 // n, 0, type_="long")
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("result", "type_"),
    [(1, "double"), (True, "long"), (2**63, "long"), (128, "byte"), (1.0, "long"), (1, "string"), (0, "boolean"),
     (datetime(2024, 1, 1), "date"), (Decimal("1.234"), "decimal(5,2)"), (1, "decimal(5,2)")],
)  # fmt: skip
def test_a_result_of_another_type_is_refused(result: Any, type_: str):
    with pytest.raises(UnsupportedError, match="a result of its declared type"):
        called(lambda: result, type_=type_)


@pytest.mark.parametrize(
    ("result", "type_"),
    [(None, "long"), (1.0, "double"), (7, "long"), ("", "string"), (False, "boolean"), (date(2024, 1, 1), "date"),
     (Decimal("1.2"), "decimal(5,2)")],
)  # fmt: skip
def test_a_result_of_the_type_is_kept(result: Any, type_: str):
    assert called(lambda: result, type_=type_) == result


# -- may it be null ----------------------------------------------------------------------------------------------------

MAYBE, NEVER = Column((0,), "long"), Column((0,), "long", nullable=False)


@pytest.mark.parametrize(
    ("expression", "may_be_null"),
    [
        (MAYBE, True), (NEVER, False), (Literal(None, "long"), True), (Literal(1, "long"), False),
        (IsNull(MAYBE), False),
        (Compare(Comparison.EQUAL, MAYBE, NEVER), True), (Compare(Comparison.SAME, MAYBE, NEVER), False),
        (Coalesce((MAYBE, NEVER)), False), (Coalesce((MAYBE, MAYBE)), True), (Most((MAYBE, NEVER), True), False),
        (Case(((IsNull(MAYBE), NEVER),), NEVER), False), (Case(((TRUE, NEVER),), MAYBE), True),
        (Cast(NEVER, "integer", ANSI), False), (Cast(NEVER, "integer", TRY), True), (Cast(NEVER, "double", TRY), False),
        (Arithmetic(Operation.ADD, NEVER, NEVER, "long", LEGACY), False),
        (Arithmetic(Operation.ADD, NEVER, NEVER, "long", TRY), True),
        (Arithmetic(Operation.DIV, NEVER, NEVER, "long", ANSI), False),
        (Arithmetic(Operation.DIV, NEVER, NEVER, "long", LEGACY), True),
        (And((TRUE, NULL)), True), (Not(TRUE), False), (PythonUDF("f", len, (), "long"), True),
    ],
)  # fmt: skip
def test_what_may_be_null(expression: Expression, may_be_null: bool):
    assert expression.may_be_null is may_be_null


# -- functions of rows -------------------------------------------------------------------------------------------------


def test_a_function_gives_the_tuple_of_its_values():
    assert SqlFunction((Column((1,), "long"), Literal("x", "string")), How.MAP)((1, 2)) == (2, "x")
    assert SqlFunction((), How.MAP)((1, 2)) == ()


def test_a_condition_that_is_null_is_not_true():
    assert [SqlFunction((one,), How.FILTER)(()) for one in (TRUE, FALSE, NULL)] == [True, False, False]


def test_a_function_of_two_rows_sees_the_pair():
    matches = SqlFunction((Compare(Comparison.EQUAL, Column((0, 0), "long"), Column((1, 1), "long")),), How.FILTER)
    assert matches((7, 0), (0, 7)) is True
    assert matches(((7, 0), (0, 8))) is False


def test_a_value_is_no_tuple():
    assert SqlValue(Column((0,), "long"))((5,)) == 5


def test_expressions_are_values_themselves():
    def made() -> Expression:
        return Case(((IsNull(Column((0,), "long")), Literal(0, "long")),), Column((0,), "long"))

    assert made() == made()
    assert hash(made()) == hash(made())
    assert pickle.loads(pickle.dumps(made())) == made()
    assert made().parts == (IsNull(Column((0,), "long")), Literal(0, "long"), Column((0,), "long"))


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        (TRUE, "boolean"), (IsNull(MAYBE), "boolean"), (And((TRUE, TRUE)), "boolean"),
        (Coalesce((Literal(None, "void"), MAYBE)), "long"), (Case(((TRUE, Literal(None, "void")),), MAYBE), "long"),
        (Most((MAYBE,), True), "long"), (Call("length", (Literal("", "string"),)), "integer"),
    ],
)  # fmt: skip
def test_types_of_expressions(expression: Expression, type_: str):
    assert expression.type == type_
