"""Expressions of an analysed plan, as expressions of program/expression.py."""

from __future__ import annotations

import base64
import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from pyspark.serializers import CPickleSerializer

from streamtight.program.expression import (
    INTEGER_BITS,
    NAN,
    TRUE,
    WHOLE,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Coalesce,
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
    can_cast,
    digits,
    is_known,
)
from streamtight.spark.plan import Node, refuse

_LONGEST_IN_OF_DOUBLES = 10
_ROW_WISE_PYTHON = (100, 101)  # the evaluation types of Python functions that get the values of one row at a time
SUBQUERIES = ("Exists", "InSubquery", "ListQuery", "ScalarSubquery", "LateralSubquery")


@dataclass(frozen=True, slots=True)
class Scope:
    """What the names in an expression refer to."""

    columns: Mapping[int, Expression]
    outer: Mapping[int, Expression] = field(default_factory=dict)
    common: Mapping[int, Expression] = field(default_factory=dict)
    subqueries: Mapping[int, Expression] = field(default_factory=dict)
    known: Callable[[Node], Expression | None] = lambda _: None
    """What stands for a whole expression: a key of a group, a summary of its rows."""


_OPERATIONS = {
    "Add": Operation.ADD,
    "Subtract": Operation.SUBTRACT,
    "Multiply": Operation.MULTIPLY,
    "Divide": Operation.DIVIDE,
    "IntegralDivide": Operation.DIV,
    "Remainder": Operation.REMAINDER,
    "Pmod": Operation.PMOD,
}
_COMPARISONS = {
    "EqualTo": (Comparison.EQUAL, False),
    "EqualNullSafe": (Comparison.SAME, False),
    "LessThan": (Comparison.LESS, False),
    "LessThanOrEqual": (Comparison.AT_MOST, False),
    "GreaterThan": (Comparison.LESS, True),
    "GreaterThanOrEqual": (Comparison.AT_MOST, True),
}
"""The comparison that it is, and whether the sides are swapped."""
_TEXT_TESTS = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_TEXT_CHANGES = {"Upper": "upper", "Lower": "lower", "Length": "length"}


def type_of(node: Node) -> str:
    """The type of a column or an expression, if its values are understood."""
    type_ = node["dataType"]
    if not isinstance(type_, str) or not is_known(type_):
        name = type_["type"] if isinstance(type_, dict) else type_
        of = f" of the column {node['name']}" if "name" in node else ""
        refuse(node, f"the type {name}{of}", "leave such columns out, or cast them to long, double or string before")
    return type_


def mode_of(node: Node) -> Mode:
    """What the node does when no result fits. Where Spark keeps this differs between its versions."""
    if "failOnError" in node:
        return Mode.ANSI if node["failOnError"] else Mode.LEGACY
    mode = str(node.get("evalMode") or (node.get("evalContext") or {}).get("evalMode"))
    if mode not in Mode.__members__:
        refuse(node, f"{node['node']} in the mode {mode}", "a Spark that is known (4.0 to 4.3)")
    return Mode[mode]


def expression_of(node: Node, scope: Scope) -> Expression:
    """What this node of an expression means."""
    if (known := scope.known(node)) is not None:
        return known

    def of(name: str) -> Expression:
        return expression_of(node[name], scope)

    match node["node"]:
        case "Alias":
            return of("child")
        case "AttributeReference":
            return _referred(node, scope.columns)
        case "OuterReference":
            return _referred(node["e"], scope.outer)
        case "ScalarSubquery" if node["exprId"] in scope.subqueries:
            return scope.subqueries[node["exprId"]]
        case "Literal":
            type_ = type_of(node)
            return Literal(constant_of(node["value"], type_, node), type_)
        case "Cast":
            return _cast_of(of("child"), node)
        case name if name in _OPERATIONS:
            return _arithmetic(_OPERATIONS[name], of("left"), of("right"), node)
        case "UnaryPositive":
            return of("child")
        case "UnaryMinus":
            return _negated(of("child"), node)
        case "Abs":
            value = of("child")
            is_negative = Compare(Comparison.LESS, value, Literal(some_value(value.type), value.type))
            return Case(((is_negative, _negated(value, node)),), value)
        case name if name in _COMPARISONS:
            comparison, is_swapped = _COMPARISONS[name]
            sides = (of("right"), of("left")) if is_swapped else (of("left"), of("right"))
            return compared(comparison, *sides, node)
        case "And" | "Or" as name:
            kind = And if name == "And" else Or
            parts = [expression_of(one, scope) for one in _flat(node, name)]
            return kind(tuple(parts))
        case "Not":
            return Not(of("child"))
        case "IsNull":
            return IsNull(of("child"))
        case "IsNotNull":
            return Not(IsNull(of("child")))
        case "IsNaN":
            return Compare(Comparison.SAME, of("child"), Literal(NAN, "double"))
        case "NaNvl":
            value = of("left")
            return Case(((Compare(Comparison.SAME, value, Literal(NAN, "double")), of("right")),), value)
        case "Coalesce":
            return Coalesce(_several(node["children"], scope))
        case "If":
            return Case(((of("predicate"), of("trueValue")),), of("falseValue"))
        case "NullIfResult":
            value = of("value")
            return Case(((of("predicate"), Literal(None, value.type)),), value)
        case "CaseWhen":
            branches = [(expression_of(when, scope), expression_of(then, scope)) for when, then in node["branches"]]
            otherwise = Literal(None, branches[0][1].type) if node["elseValue"] is None else of("elseValue")
            return Case(tuple(branches), otherwise)
        case "In":
            return _among(of("value"), _several(node["list"], scope), node)
        case "Least" | "Greatest" as name:
            return Most(_several(node["children"], scope), name == "Greatest")
        case "AtLeastNNonNulls":
            return _at_least(node["n"], _several(node["children"], scope))
        case "With":
            defined = {one["id"]: expression_of(one["child"], scope) for one in node["defs"]}
            return expression_of(node["child"], replace(scope, common={**scope.common, **defined}))
        case "CommonExpressionRef" if node["id"] in scope.common:
            return scope.common[node["id"]]
        case "Concat":
            return _text("concat", _several(node["children"], scope), node)
        case name if name in _TEXT_CHANGES:
            return _text(_TEXT_CHANGES[name], (of("child"),), node)
        case name if name in _TEXT_TESTS:
            return _text(_TEXT_TESTS[name], (of("left"), of("right")), node)
        case "Like":
            return _text("like", (of("left"), of("right"), Literal(node["escapeChar"], "string")), node)
        case "PythonUDF":
            return _python(node, scope)
    if isinstance(node.get("replacement"), dict):  # what Spark itself will put in its place
        return of("replacement")
    if node["node"] in SUBQUERIES:
        refuse(node, f"the subquery {node['node']} in this position", "a condition of its own in WHERE, or a join")
    return refuse(node, f"the function {node['node']}")


def _several(nodes: Sequence[Node], scope: Scope) -> tuple[Expression, ...]:
    return tuple(expression_of(node, scope) for node in nodes)


def _flat(node: Node, name: str) -> Iterator[Node]:
    if node["node"] == name:
        yield from _flat(node["left"], name)
        yield from _flat(node["right"], name)
    else:
        yield node


def _referred(node: Node, columns: Mapping[int, Expression]) -> Expression:
    type_of(node)
    if node["exprId"] not in columns:
        refuse(node, f"a reference to {node['name']} that its inputs do not have")
    return columns[node["exprId"]]


def constant_of(value: Any, type_: str, node: Node) -> Any:
    """A value as Python has it; Spark keeps dates as days, timestamps as microseconds."""
    if value is None or type_ in ("boolean", "string"):
        return value
    if type_ in INTEGER_BITS:
        return int(value)
    if digits(type_) is not None:
        return Decimal(value)
    if type_ == "double":
        number = float(value)
        return NAN if number != number else number
    try:
        if type_ == "date":
            return date(1970, 1, 1) + timedelta(days=value)
        if type_ == "timestamp_ntz":
            return datetime(1970, 1, 1) + timedelta(microseconds=value)
        # As PySpark does: local time, without a zone.
        return datetime.fromtimestamp(value // 1_000_000).replace(microsecond=value % 1_000_000)
    except (OverflowError, ValueError, OSError):
        refuse(node, f"a {type_} that Python does not have")


def _cast_of(value: Expression, node: Node) -> Expression:
    type_, mode = type_of(node), mode_of(node)
    if value.type == type_:
        return value
    if isinstance(value, Literal):
        if value.constant is None:
            return Literal(None, type_)
        if value.type == "string" and type_ == "date" and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value.constant):
            with contextlib.suppress(ValueError):
                return Literal(date.fromisoformat(value.constant), type_)
    if not can_cast(value.type, type_):
        refuse(node, f"a cast from {value.type} to {type_}", "cast the inputs before, or leave the cast out")
    cast = Cast(value, type_, mode)
    if isinstance(value, Literal) and value.type in INTEGER_BITS and not cast.may_be_null:
        with contextlib.suppress(ArithmeticError):
            return Literal(cast.value(()), type_)
    return cast


def _negated(value: Expression, node: Node) -> Expression:
    if not can_turn(value.type) or value.type in ("boolean", "void"):
        refuse(node, f"{node['node']} of {value.type}")
    zero = Literal(some_value(value.type), value.type)
    return Arithmetic(Operation.SUBTRACT, zero, value, value.type, mode_of(node))


def _arithmetic(operation: Operation, left: Expression, right: Expression, node: Node) -> Expression:
    mode = mode_of(node)
    both = digits(left.type), digits(right.type)
    if both[0] is not None and both[1] is not None:
        type_ = _decimal_type(operation, both[0], both[1])
        if type_ is None:
            refuse(node, f"{left.type} {operation.value} {right.type}, which Spark rounds", "cast to long or double")
        return Arithmetic(operation, left, right, type_, mode)
    numbers = ("double",) if operation is Operation.DIVIDE else (*INTEGER_BITS, "double")
    if operation is Operation.DIV:
        numbers = ("long",)
    if left.type != right.type or left.type not in numbers:
        refuse(node, f"{left.type} {operation.value} {right.type}", "arithmetic on numbers of one type")
    return Arithmetic(operation, left, right, left.type, mode)


def _decimal_type(operation: Operation, left: tuple[int, int], right: tuple[int, int]) -> str | None:
    """The type of a result that has room for all its digits; None if Spark's has not, and rounds."""
    (p, s), (q, t) = left, right
    if operation in (Operation.ADD, Operation.SUBTRACT):
        precision, scale = max(p - s, q - t) + max(s, t) + 1, max(s, t)
    elif operation is Operation.MULTIPLY:
        precision, scale = p + q + 1, s + t
    else:
        return None
    return f"decimal({precision},{scale})" if precision <= 38 else None


def compared(comparison: Comparison, left: Expression, right: Expression, node: Node) -> Compare:
    """A comparison of two values of one type."""
    are_decimals = digits(left.type) is not None and digits(right.type) is not None
    if left.type != right.type and not are_decimals:
        refuse(node, f"a comparison of {left.type} with {right.type}", "cast both sides to one type")
    return Compare(comparison, left, right)


def _among(value: Expression, candidates: Sequence[Expression], node: Node) -> Expression:
    if value.type == "double" and len(candidates) > _LONGEST_IN_OF_DOUBLES:
        # Spark looks in a hash set then, where -0.0 is not 0.0.
        refuse(node, "IN with many doubles", f"at most {_LONGEST_IN_OF_DOUBLES}, or integers")
    if not candidates:
        refuse(node, "IN with nothing to choose from", "lit(False)")
    equal = [compared(Comparison.EQUAL, value, candidate, node) for candidate in candidates]
    return equal[0] if len(equal) == 1 else Or(tuple(equal))


def _at_least(count: int, values: Sequence[Expression]) -> Expression:
    present: list[Expression] = []
    for value in values:
        there: Expression = Not(IsNull(value))
        if value.type == "double":
            there = And((there, Not(Compare(Comparison.SAME, value, Literal(NAN, "double")))))
        present.append(there)
    if count == len(present):
        return all_of(present)
    one, zero = Literal(1, WHOLE), Literal(0, WHOLE)
    total: Expression = zero
    for there in present:
        total = Arithmetic(Operation.ADD, total, Case(((there, one),), zero), WHOLE, Mode.ANSI)
    return Compare(Comparison.AT_MOST, Literal(count, WHOLE), total)


def _text(name: str, arguments: tuple[Expression, ...], node: Node) -> Expression:
    if any(argument.type not in ("string", "void") for argument in arguments):
        refuse(node, f"{name} of {', '.join(argument.type for argument in arguments)}", "strings")
    return Call(name, arguments)


def _python(node: Node, scope: Scope) -> Expression:
    if node["evalType"] not in _ROW_WISE_PYTHON:
        refuse(node, f"{node['name']}, a function of pandas or Arrow data", "udf, which gets one row at a time")
    if not node["udfDeterministic"]:
        refuse(node, f"{node['name']}, declared as not deterministic", "leave asNondeterministic() out")
    arguments = _several(node["children"], scope)
    return PythonUDF(node["name"], _function(node["command"]), arguments, type_of(node))


@functools.lru_cache(maxsize=256)
def _function(command: str) -> Callable[..., Any]:
    """The Python function, as the tasks of Spark would get it; the same one for the same bytes."""
    pickles: Any = CPickleSerializer()
    function: Callable[..., Any] = pickles.loads(base64.b64decode(command))[0]
    return function


def all_of(conditions: Sequence[Expression]) -> Expression:
    """That all of these are true."""
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions)) if conditions else TRUE


def can_turn(type_: str) -> bool:
    """Whether the order of values of this type can be turned round by an expression."""
    return type_ in INTEGER_BITS or type_ in ("double", "boolean", "void") or digits(type_) is not None


def some_value(type_: str) -> Any:
    """A value that takes the place of null; the zero, of numbers."""
    if digits(type_) is not None:
        return Decimal(0)
    others = {"boolean": False, "double": 0.0, "string": "", "date": date.min}
    return others.get(type_, datetime.min if type_.startswith("timestamp") else 0)
