"""Aggregate functions of an analysed plan, as summaries of program/relation.py."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from streamtight.program.expression import (
    INTEGER_BITS,
    NAN,
    WHOLE,
    Arithmetic,
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
    Operation,
    Or,
    SqlFunction,
    SqlValue,
    digits,
)
from streamtight.program.relation import Extreme, How, Summary, Total
from streamtight.spark.lift_expression import Scope, expression_of, mode_of, some_value
from streamtight.spark.plan import Node, refuse

_LARGEST_SUMMED_DECIMAL = 22  # a million of these have no more digits than Python's decimals keep


def summarised(node: Node, scope: Scope, summaries: list[Summary], *, has_rows: bool) -> Expression:
    """A function of a group's rows, made of summaries, which are added to the list."""
    function = node["aggregateFunction"]
    name, is_distinct = function["node"], node["isDistinct"]
    if node["mode"] != "Complete":
        refuse(node, f"an aggregate in the mode {node['mode']}")
    condition = None if node["filter"] is None else expression_of(node["filter"], scope)

    def column(summary: Summary, type_: str, nullable: bool = False) -> Column:
        if summary not in summaries:
            summaries.append(summary)
        return Column((1 + summaries.index(summary),), type_, nullable)

    def counted(values: Sequence[Expression]) -> Column:
        missing = [IsNull(value) for value in values if value.may_be_null]
        zero, one = Literal(0, "long"), Literal(1, "long")
        is_missing = missing[0] if len(missing) == 1 else Or(tuple(missing))
        ones = Case(((is_missing, zero),), one) if missing else one
        return column(Total(SqlValue(ones), once(values), name="count"), "long")

    def once(values: Sequence[Expression]) -> SqlFunction | None:
        return SqlFunction(tuple(values), How.MAP) if is_distinct else None

    def argument(inner: Node) -> Expression:
        value = expression_of(inner, scope)
        return value if condition is None else Case(((condition, value),), Literal(None, value.type))

    number: Expression
    match name:
        case "Count":
            return counted([argument(inner) for inner in function["children"]])
        case "CountIf" if not is_distinct:
            value = argument(function["child"])
            number = Case(((value, Literal(1, "long")),), Literal(0, "long"))
            return column(Total(SqlValue(number), name="count_if"), "long")
        case "Min" | "Max" | "BoolAnd" | "BoolOr":
            value = argument(function["child"])
            is_max = name in ("Max", "BoolOr")
            extreme, is_tuple = _extreme(value, is_max)
            found = column(extreme, value.type, nullable=not has_rows)
            return _unpacked(found, value.type, is_max) if is_tuple else found
        case "Sum":
            value = argument(function["child"])
            number, total_type, type_ = _summed(function, value)
            total: Expression = column(Total(SqlValue(number), once([value])), total_type)
            if total_type != type_:
                total = Cast(total, type_, mode_of(function))
            if has_rows and not value.may_be_null:
                return total
            is_empty = Compare(Comparison.EQUAL, counted([value]), Literal(0, "long"))
            return Case(((is_empty, Literal(None, type_)),), total)
        case "Average":
            value = argument(function["child"])
            if value.type not in INTEGER_BITS and value.type != "double":
                refuse(function, f"an average of {value.type}", "cast it to double")
            number = value if value.type == "double" else Cast(value, "double", Mode.ANSI)
            if value.may_be_null:
                number = Coalesce((number, Literal(0.0, "double")))
            total = column(Total(SqlValue(number), once([value])), "double")
            count = Cast(counted([value]), "double", Mode.ANSI)
            # Without ANSI: the average of no values is null.
            return Arithmetic(Operation.DIVIDE, total, count, "double", Mode.LEGACY)
    return refuse(function, f"the aggregate function {name}{' DISTINCT' if is_distinct else ''}")


def _extreme(value: Expression, is_max: bool) -> tuple[Extreme, bool]:
    """The least or the greatest value; of tuples, if some values stand outside of Python's order."""
    name = "max" if is_max else "min"
    if not value.may_be_null and value.type != "double":
        return Extreme(SqlValue(value), is_max, name), False
    null, present = _ranks(is_max)
    parts: list[Expression] = [Case(((IsNull(value), null),), present)]
    value = Coalesce((value, Literal(some_value(value.type), value.type)))
    if value.type == "double":
        is_nan = Compare(Comparison.SAME, value, Literal(NAN, "double"))
        parts.append(Case(((is_nan, Literal(1, "integer")),), Literal(0, "integer")))
        value = Case(((is_nan, Literal(0.0, "double")),), value)
    return Extreme(SqlFunction((*parts, value), How.MAP), is_max, name), True


def _unpacked(found: Column, type_: str, is_max: bool) -> Expression:
    """The value in the tuple that such an extreme gives."""
    null, _ = _ranks(is_max)
    is_null = Compare(Comparison.EQUAL, Column((*found.path, 0), "integer", nullable=False), null)
    branches: list[tuple[Expression, Expression]] = [(is_null, Literal(None, type_))]
    if type_ == "double":
        is_nan = Compare(Comparison.EQUAL, Column((*found.path, 1), "integer", nullable=False), Literal(1, "integer"))
        branches.append((is_nan, Literal(NAN, "double")))
    return Case(tuple(branches), Column((*found.path, len(branches)), type_, nullable=False))


def _ranks(is_max: bool) -> tuple[Literal, Literal]:
    """What null and what a value begins with, so that null is never chosen before a value."""
    low, high = Literal(0, "integer"), Literal(1, "integer")
    return (low, high) if is_max else (high, low)


def of_no_rows(summary: Summary) -> Any:
    """What a summary is without a row."""
    if isinstance(summary, Extreme):
        if not isinstance(summary.value, SqlFunction):
            return None
        null, _ = _ranks(summary.greatest)
        return (null.constant, *(some_value(part.type) for part in summary.value.expressions[1:]))
    return 0


def _summed(function: Node, value: Expression) -> tuple[Expression, str, str]:
    """What a sum adds up, the type of the total, and that of the sum."""
    if mode_of(function) is Mode.TRY:
        refuse(function, "try_sum, which is null or not by the order of the rows", "sum")
    precision = digits(value.type)
    if value.type in INTEGER_BITS:
        zero, total_type, type_ = Literal(0, value.type), WHOLE, "long"
    elif value.type == "double":
        zero, total_type, type_ = Literal(0.0, "double"), "double", "double"
    elif precision is not None and precision[0] <= _LARGEST_SUMMED_DECIMAL:
        type_ = f"decimal({precision[0] + 10},{precision[1]})"
        zero, total_type = Literal(Decimal(0), value.type), type_
    else:
        refuse(function, f"a sum of {value.type}", "cast it to long, double or a decimal of fewer digits")
    return (Coalesce((value, zero)) if value.may_be_null else value), total_type, type_
