"""Expressions of a plan as the order lint sees them: columns, types, what they determine, what they call.

Nothing here depends on rows: it is what can be told of an expression by itself.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

from pyspark.serializers import CPickleSerializer

from streamtight.method.typecheck import functions
from streamtight.spark import lint_known as known
from streamtight.spark.lint_facts import Id, Ids
from streamtight.spark.plan import Node, nodes_of


def is_column(node: Node) -> bool:
    """Whether it is a column, as it is."""
    return bool(node["node"] == "AttributeReference")


def unnamed(node: Node) -> Node:
    """The expression without the name that it is given."""
    inner: Node = node["child"] if node["node"] == "Alias" else node
    return inner


def children_of(node: Node) -> list[Node]:
    """The expressions right below this one."""
    found: list[Node] = []

    def add(value: Any) -> None:
        if isinstance(value, dict) and "node" in value:
            found.append(value)
        elif isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                add(inner)

    add([value for name, value in node.items() if name not in ("plan", "outerAttrs", "dataType")])
    return found


def ids_of(value: Any) -> Ids:
    """The columns that expressions use; those of the plans of subqueries are left out."""
    return frozenset(one["exprId"] for one in nodes_of(value) if is_column(one))


def text_of(node: Node) -> str:
    """An expression, whoever wrote it and wherever."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: bare(inner) for name, inner in value.items() if name not in ("place", "resultId")}
        return [bare(inner) for inner in value] if isinstance(value, list) else value

    return json.dumps(bare(node), sort_keys=True)


def conjuncts(condition: Node) -> Iterator[Node]:
    """The conditions that must all be true."""
    if condition["node"] == "And":
        yield from conjuncts(condition["left"])
        yield from conjuncts(condition["right"])
    else:
        yield condition


def equations(condition: Node) -> Iterator[tuple[Node, Node]]:
    """The sides of those of them that say that two values are equal."""
    for part in conjuncts(condition):
        if part["node"] in ("EqualTo", "EqualNullSafe"):
            yield part["left"], part["right"]


def function_of(called: Node) -> Callable[..., Any] | None:
    """The Python function that is called, as the tasks of Spark get it; None if it cannot be loaded here."""
    return _unpickled(called.get("command", ""))


@functools.lru_cache(maxsize=256)
def _unpickled(command: str) -> Callable[..., Any] | None:
    pickles: Any = CPickleSerializer()
    try:
        loaded = pickles.loads(base64.b64decode(command))
    except Exception:  # the border of user code: a module that is not here
        return None
    return loaded[0] if isinstance(loaded, tuple) and callable(loaded[0]) else None


# -- types -----------------------------------------------------------------------------------------------------------

_INTEGERS = ("byte", "short", "integer", "long")
_FLOATS = ("double", "float")


def type_of(node: Node) -> str:
    """The type of an expression: "long", "decimal(10,2)"; of nested ones, some text that has those of all parts."""
    declared = node.get("type", node.get("dataType", ""))
    return declared if isinstance(declared, str) else json.dumps(declared)


def is_collated(node: Node) -> bool:
    """Whether texts that differ can count as equal."""
    return "collat" in type_of(node).lower()


def adds_exactly(node: Node) -> bool:
    """Whether sums of such values are the same in every order, if they do not overflow."""
    return type_of(node).startswith((*_INTEGERS, "decimal", "interval", "void"))


def has_floats(node: Node) -> bool:
    """Whether it is a floating number, or something that has one in it, as far as its type is known."""
    return any(one in type_of(node) for one in _FLOATS)


def may_hold_floats(node: Node) -> bool:
    """The same, where a type that is not known may have one, too."""
    return not type_of(node) or has_floats(node)


def _scale(node: Node) -> int:
    """How many digits a number has after the point."""
    found = re.fullmatch(r"decimal\(\d+,\s*(-?\d+)\)", type_of(node))
    return int(found[1]) if found else 0


# -- what determines what --------------------------------------------------------------------------------------------

_WIDENING = {
    "string": ("byte", "short", "integer", "long", "date", "boolean"),
    "long": ("byte", "short", "integer"),
    "integer": ("byte", "short"),
    "double": ("byte", "short", "integer", "float"),
}
"""Casts that keep values apart."""


def fixed_by(node: Node) -> Ids:
    """The columns whose values are known if the value of this expression is."""
    match node["node"]:
        case "AttributeReference":
            return frozenset() if is_collated(node) else frozenset({node["exprId"]})
        case "Alias" | "UnaryMinus" | "KnownNotNull" | "KnownNullable" | "SortOrder":
            return fixed_by(node["child"])
        case "Cast" if type_of(node["child"]) in _WIDENING.get(type_of(node), ()):
            return fixed_by(node["child"])
        case "CreateNamedStruct":
            return all_fixed_by(node["children"][1::2])
    return frozenset()


def all_fixed_by(nodes: list[Node]) -> Ids:
    """The columns whose values are known if those of all these expressions are."""
    return frozenset().union(*map(fixed_by, nodes))


def is_pure(node: Node) -> bool:
    """Whether it has one value for each value of its columns."""
    return all(map(_is_pure_alone, nodes_of(node)))


def _is_pure_alone(node: Node) -> bool:
    name = node["node"]
    if name == "PythonUDF":
        function = function_of(node)
        if function is None or node.get("evalType") not in known.ROW_BY_ROW:
            return False
        return functions.why_varies(function) is None and functions.why_unclear(function) is None
    varies = name in known.SOURCES or name in known.OPAQUE
    return not varies and name not in ("AggregateExpression", "WindowExpression") and "plan" not in node


def determined(named: Node) -> Iterator[tuple[Ids, Id]]:
    """What a named expression and its columns determine of each other."""
    own = named["exprId"]
    if is_pure(named):
        yield ids_of(named), own
    for fixed in fixed_by(named):
        yield frozenset({own}), fixed


def asked_for_any(node: Node) -> Node | None:
    """The aggregate function of which this asks only whether it has a value: first(x, ignoreNulls) IS NOT NULL."""
    if node["node"] not in ("IsNull", "IsNotNull") or node["child"]["node"] != "AggregateExpression":
        return None
    aggregate: Node = node["child"]
    function: Node = aggregate["aggregateFunction"]
    ignores = function["node"] in ("First", "Last", "AnyValue") and function.get("ignoreNulls") is True
    return function if ignores and aggregate.get("filter") is None else None


# -- functions of lists ----------------------------------------------------------------------------------------------


def has_usual_comparator(array_sort: Node) -> bool:
    """Whether array_sort was given no function: then it compares whole elements."""
    return [one["node"] for one in nodes_of(array_sort["function"]["function"])] == _USUAL_COMPARATOR


_USUAL_COMPARATOR = [
    "If", "And", "IsNull", "NamedLambdaVariable", "IsNull", "NamedLambdaVariable", "Literal",
    "If", "IsNull", "NamedLambdaVariable", "Literal", "If", "IsNull", "NamedLambdaVariable", "Literal",
    "If", "LessThan", "NamedLambdaVariable", "NamedLambdaVariable", "Literal",
    "If", "GreaterThan", "NamedLambdaVariable", "NamedLambdaVariable", "Literal", "Literal",
]  # fmt: skip
"""The function of an array_sort that was given none: nulls last, then smaller or greater as a whole."""

Fold = Literal["exact", "floating", "ordered"]
_FOLDS: tuple[Fold, ...] = ("exact", "floating", "ordered")


def fold_of(merge: Node) -> Fold:
    """Whether a fold of a list is the same in every order of it, or up to the last digits, or may depend on the order.

    It is the same for acc + f(x), and for structs of such totals.
    """
    arguments, body = merge.get("arguments", []), merge["function"]
    if len(arguments) != 2:
        return "ordered"
    total = arguments[0]["exprId"]
    if body["node"] != "CreateNamedStruct":
        return _fold_to(body, total, None)
    named = zip(body["children"][::2], body["children"][1::2], strict=True)
    return _worst(_fold_to(value, total, str(name.get("value"))) for name, value in named)


def _fold_to(body: Node, total: Id, field: str | None) -> Fold:
    """The same, of one total or of one field of it: (acc + x) + y, with one operation all the way down to acc."""
    casts: list[Node] = []
    steps: list[Node] = []
    while not _is_total(body, total, field):
        if body["node"] in ("Cast", "KnownNullable", "KnownNotNull") and not steps:
            casts.append(body)
            body = body["child"]
            continue
        within = [one for one in _operands(body) if any(_is_total(inner, total, None) for inner in nodes_of(one))]
        operation = _operation(body)
        if operation not in known.COMMUTATIVE or len(within) != 1 or (steps and _operation(steps[0]) != operation):
            return "ordered"
        if body["node"] == "Subtract" and within[0] is not body["left"]:  # x - total turns its sign at every step
            return "ordered"
        steps.append(body)
        (body,) = within
    if any(type_of(one) != type_of(body) for one in casts):
        return "ordered"
    return _worst(_step(one, body) for one in steps)


def _operation(node: Node) -> str:
    """To subtract is to add."""
    return "Add" if node["node"] == "Subtract" else str(node["node"])


def _step(step: Node, total: Node) -> Fold:
    if _operation(step) not in ("Add", "Multiply"):
        return "exact"
    if type_of(step) in _FLOATS:
        return "floating"
    if step["node"] == "Multiply":  # products of decimals are rounded at every step
        return "exact" if type_of(step) in _INTEGERS else "ordered"
    # A total with fewer digits than what is added to it is rounded at every step.
    rounds = _scale(step) != _scale(total) or max(map(_scale, _operands(step))) > _scale(total)
    return "exact" if adds_exactly(step) and not rounds else "ordered"


def _worst(folds: Iterable[Fold]) -> Fold:
    return max(folds, key=_FOLDS.index, default="exact")


def _operands(node: Node) -> list[Node]:
    operands: list[Node] = node.get("children") or [node[side] for side in ("left", "right") if side in node]
    return operands


def _is_total(node: Node, total: Id, field: str | None) -> bool:
    if field is not None:
        return node["node"] == "GetStructField" and node.get("name") == field and _is_total(node["child"], total, None)
    return bool(node["node"] == "NamedLambdaVariable" and node["exprId"] == total)
