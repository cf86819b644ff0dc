"""What the value of an expression depends on: columns, Python functions, aggregate functions, windows, subqueries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from streamtight.method.typecheck import functions
from streamtight.method.typecheck.findings import RULES
from streamtight.spark import lint_known as known
from streamtight.spark.lint_expression import (
    adds_exactly,
    all_fixed_by,
    asked_for_any,
    children_of,
    fixed_by,
    fold_of,
    function_of,
    has_floats,
    has_usual_comparator,
    ids_of,
    is_collated,
    may_hold_floats,
    type_of,
)
from streamtight.spark.lint_facts import FIXED, NONE, Causes, Ids, Rows, Tie, Value, all_causes, joined
from streamtight.spark.lint_notes import Notes
from streamtight.spark.plan import Node, nodes_of


@dataclass(frozen=True, slots=True)
class Group:
    """Where an aggregate function stands."""

    same: Ids = frozenset()
    """The columns in which its rows agree."""
    order: Ids | None = None
    """Those in which rows agree that tie in its order; None if rows come in no order."""
    context: Ids = frozenset()
    """The columns that its rows are grouped and ordered by."""


class Values:
    """Reads expressions.

    is_known    whether Spark has a function of this class
    rows_of     reads the plan of a subquery
    """

    def __init__(self, notes: Notes, is_known: Callable[[str], bool], rows_of: Callable[[Node], Rows]) -> None:
        self._notes = notes
        self._is_known = is_known
        self._rows_of = rows_of

    def value(self, node: Node, rows: Rows, group: Group | None = None) -> Value:
        """What an expression depends on, for a row of these; aggregate functions, for a group of them."""
        name = node["node"]
        if name == "AttributeReference":
            return rows.columns.get(node["exprId"], FIXED)
        if name in ("Literal", "NamedLambdaVariable", "OuterReference"):
            return FIXED
        if name == "AggregateExpression":
            return self._summary(node, rows, group or Group())
        if name == "PythonUDF":
            return self._python(node, rows, group)
        if isinstance(node.get("plan"), dict):
            return self._subquery(node, rows, group)
        if (function := asked_for_any(node)) is not None:  # whether there is a value, whichever it is
            return joined(self.value(one, rows, group) for one in children_of(function))
        children = [self.value(one, rows, group) for one in children_of(node)]
        if name == "Alias":
            return children[0]  # what can be merged still can be
        if name == "MonotonicallyIncreasingID":
            return Value(frozenset({self._notes.found("ROW_ID", node)}), is_name=True)
        if name in known.ORDER_OF_THE_FIRST:
            children[1] = replace(children[1], listing=NONE)
        if name in known.SOURCES:
            return joined([Value(frozenset({self._notes.found(known.SOURCES[name], node)})), *children])
        # The analyser takes windows out of other expressions; one that is left there is not read.
        if name in known.OPAQUE or name == "WindowExpression" or not self._is_known(name):
            self._notes.unread(node)
        return self._of_lists(node, joined(children))

    def settled(self, node: Node, rows: Rows, used: Ids, group: Group | None = None) -> Value:
        """The same, where it is looked at together with these columns."""
        return rows.settled(self.value(node, rows, group), used)

    def _subquery(self, node: Node, rows: Rows, group: Group | None) -> Value:
        inner = self._rows_of(node["plan"])
        outer = [self.value(one, rows, group) for one in (*children_of(node), *nodes_of(node.get("outerAttrs", [])))]
        asked = (
            inner.varies if node["node"] == "Exists" else inner.all_causes
        )  # EXISTS asks only whether there are rows
        return Value(asked | all_causes(outer))

    def _of_lists(self, node: Node, given: Value) -> Value:
        """The value of a function of such arguments; some may be arrays whose elements are in no fixed order."""
        name = node["node"]
        if not given.listing:
            return given
        if name in known.KEEPS_ELEMENTS and (name != "Cast" or isinstance(node["dataType"], dict)):  # to another array
            return given
        if name in known.ONLY_ELEMENTS or (name == "ArraySort" and has_usual_comparator(node)):
            return replace(given, listing=NONE)
        if name in known.EACH_ELEMENT and len(node["function"].get("arguments", [])) == 1:  # without its place
            return given if name in known.KEEPS_PLACES else replace(given, listing=NONE)
        if name == "ArrayAggregate" and (fold := fold_of(node["merge"])) != "ordered":
            if fold == "exact":
                self._notes.assume(known.NO_OVERFLOW)
                return replace(given, listing=NONE)
            return self._floating(given, node, "aggregate")
        if name in ("ConcatWs", "ArrayJoin"):
            texts = {replace(one, rule=RULES["TEXT_ORDER"]) for one in given.listing}
            return replace(given, listing=NONE, varies=given.varies | texts)
        return replace(given, listing=NONE, varies=given.causes)

    def _floating(self, given: Value, node: Node, operation: str) -> Value:
        """The sum of the elements of a list."""
        floats = self._notes.found("FLOAT_SUM", node, operation=operation)
        return replace(given, listing=NONE, varies=given.varies | {floats})

    # -- functions of Python -----------------------------------------------------------------------------------------

    def _python(self, node: Node, rows: Rows, group: Group | None) -> Value:
        arguments = children_of(node)
        given = joined(self.value(one, rows, group) for one in arguments)
        whole = replace(given, varies=given.causes, listing=NONE)
        operation = f"{node['name']}(...)"
        if node.get("evalType") not in known.ROW_BY_ROW:
            if group is not None:
                return replace(whole, varies=whole.varies | self.group_function(node, node))
            self._notes.unread(node, operation)  # it sees rows in batches
            return whole
        function = function_of(node)
        if function is None or not functions.is_readable(function) or functions.why_unclear(function):
            self._notes.unread(node, operation)
            return whole
        varies = functions.why_varies(function)
        if varies is None and node.get("udfDeterministic") is False:
            varies = "is marked as not deterministic"
        if varies is not None:
            cause = self._notes.found("UDF_VARIES", node, f"it {varies}", operation=operation)
            return replace(whole, varies=whole.varies | {cause})
        if given.listing and functions.takes_in_any_order(function):
            if any(map(may_hold_floats, arguments)):
                return self._floating(given, node, operation)
            return replace(given, listing=NONE)
        return whole

    def group_function(self, called: Node, node: Node) -> Causes:
        """What the result of a Python function of all rows of a group depends on."""
        function = function_of(called)
        operation = f"{known.NAMES.get(node['node'], '')}({called.get('name', 'a function')})".removeprefix("()")
        if function is None or not functions.is_readable(function) or functions.why_unclear(function):
            self._notes.unread(node, operation)
            return NONE
        varies = functions.why_varies(function)
        if varies is not None:
            return frozenset({self._notes.found("UDF_VARIES", node, f"it {varies}", operation=operation)})
        words = functions.words_of(function)
        looks = sorted(words & functions.ORDER_WORDS)
        if looks and not words & functions.SORT_WORDS:
            detail = f"it uses {', '.join(looks[:3])}"
            return frozenset({self._notes.found("GROUP_FUNCTION_ORDER", node, detail, operation=operation)})
        if any(map(may_hold_floats, children_of(called))) or not functions.only_adds(function):
            self._notes.unread(node, operation)
        return NONE

    # -- aggregate functions -----------------------------------------------------------------------------------------

    def _summary(self, node: Node, rows: Rows, group: Group) -> Value:
        """What an aggregate function depends on."""
        function = node["aggregateFunction"]
        if function["node"] == "PythonUDF":
            return self._python(function, rows, group)
        read = children_of(function)
        if isinstance(node.get("filter"), dict):
            read.append(node["filter"])
        used = ids_of(read) | group.context
        causes = joined(self.settled(one, rows, used) for one in read).causes
        rule = self._broken_rule(function, rows, group)
        found = NONE if rule is None else frozenset({self._notes.found(rule, function)})
        return Value(causes, listing=found) if rule == "LIST_ORDER" else Value(causes | found)

    def _broken_rule(self, function: Node, rows: Rows, group: Group) -> str | None:
        """The rule that says why an aggregate function can give another result for the same rows."""
        name, used = function["node"], ids_of(function)
        # Among rows that agree in all that it uses, it does not matter which comes first.
        agreed = used <= (group.same if group.order is None else group.order)
        if name != "Count" and any(map(is_collated, nodes_of(function))):  # texts that differ can be the same maximum
            self._notes.unread(function, f"{known.NAMES.get(name, name)} of a collated text")
        if name not in known.ADD | known.FLOATING | {"Count", "CountIf"}:
            self.compare(children_of(function))
        if name in known.IN_ANY_ORDER:
            return None
        if name in known.ADD or name in known.FLOATING:
            in_one_order = group.order is not None and agreed
            return None if in_one_order or self._adds_exactly(function) else "FLOAT_SUM"
        if name in known.ONE_OF:
            return None if agreed else "FIRST_VALUE" if group.order is None else "TIED_ORDER"
        if name in known.BY:
            fixed = rows.closure(group.same | fixed_by(function["orderingExpr"]))
            return None if ids_of(function["valueExpr"]) <= fixed else "TIED_ORDER"
        if name in known.COLLECT:
            return None if agreed else "LIST_ORDER"
        if name == "ListAgg":
            fixed = rows.closure(group.same | all_fixed_by(function.get("orderExpressions", [])))
            return None if ids_of(function["child"]) <= fixed else "TEXT_ORDER"
        if name == "Mode":
            return None if function.get("reverseOpt") or used <= group.same else "TIED_ORDER"
        if name in known.ROUGH:
            return "APPROXIMATE"
        self._notes.unread(function)
        return None

    def _adds_exactly(self, function: Node) -> bool:
        added = children_of(function)[0]
        if function["node"] not in known.ADD or not adds_exactly(added):
            return False
        averages = function["node"] in ("Average", "TryAverage") and not type_of(added).startswith("decimal")
        self._notes.assume(known.NO_WIDE_AVERAGE if averages else known.NO_OVERFLOW)
        return True

    def compare(self, nodes: Iterable[Node]) -> None:
        """Values of these are compared: which of two equal ones is taken must not matter."""
        if any(map(has_floats, nodes)):
            self._notes.assume(known.ONE_ZERO)

    # -- windows -----------------------------------------------------------------------------------------------------

    def windowed(self, window: Node, rows: Rows, partition: list[Node]) -> Value:
        """What a function over a window depends on."""
        function, spec = window["windowFunction"], window["windowSpec"]
        order: list[Node] = spec["orderSpec"]
        sides = [*partition, *(one["child"] for one in order)]
        self.compare(sides)
        causes = rows.varies | all_causes(self.settled(one, rows, rows.ids) for one in sides)
        name = function["node"]
        if name in known.RANKS:
            return Value(causes)
        base = all_fixed_by(sides)
        agreed = rows.closure(base)
        is_total = rows.ids <= agreed
        tie = Tie(self._notes.found("TIED_ORDER", function, "" if order else "no order at all"), base)
        if name in known.NUMBERED:
            return Value(causes, ties=frozenset() if is_total else frozenset({tie}))
        if name in known.NEIGHBOURS or name == "NthValue":
            own = Value(self.settled(function["input"], rows, rows.ids).all_causes)
            sees_ties, used = True, ids_of(function["input"])
        else:
            group = Group(rows.closure(all_fixed_by(partition)), agreed if order else None, ids_of(sides))
            own = self.settled(function, rows, rows.ids, group)
            frame = spec["frameSpecification"]
            ends = [frame.get(side, {}).get("node", "").rstrip("$") for side in ("lower", "upper")]
            whole = ends == ["UnboundedPreceding", "UnboundedFollowing"]
            # A frame that counts rows ends between tied ones.
            sees_ties, used = frame.get("frameType") == "RowFrame" and not whole, ids_of(function)
        varies, ties = own.varies | causes, own.ties
        if sees_ties and not is_total:
            if used <= agreed:
                ties |= {tie}
            else:
                varies |= {tie.cause}
        return Value(varies, own.listing, ties)
