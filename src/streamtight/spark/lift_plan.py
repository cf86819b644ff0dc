"""An analysed plan, node by node, as a relation of program/relation.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from streamtight.method.prove.frame_programs import Repeated
from streamtight.program.expression import (
    INTEGER_BITS,
    NAN,
    TRUE,
    WHOLE,
    Arithmetic,
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
    Not,
    Operation,
    SqlFunction,
    SqlValue,
)
from streamtight.program.relation import (
    Distinct,
    Each,
    First,
    Grouped,
    How,
    Input,
    Matching,
    Place,
    Product,
    Relation,
    Rows,
    Summary,
    Total,
    Union,
)
from streamtight.spark.lift_expression import (
    SUBQUERIES,
    Scope,
    all_of,
    can_turn,
    compared,
    constant_of,
    expression_of,
    some_value,
    type_of,
)
from streamtight.spark.lift_summary import of_no_rows, summarised
from streamtight.spark.plan import Node, nodes_of, place_of, refuse


@dataclass(frozen=True, slots=True)
class Cell:
    """A position of a row: the number by which Spark refers to it, None if nothing does, its type, may it be null."""

    id: int | None
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class SortKey:
    """What rows are sorted by, first of all or where what came before is equal."""

    of: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A relation, what stands in its rows, how many of these cells are seen, and the order that Spark would keep."""

    relation: Relation
    cells: tuple[Cell, ...]
    shown: int
    order: tuple[SortKey, ...] | None = None

    @property
    def fields(self) -> tuple[Cell, ...]:
        return self.cells[: self.shown]

    def columns(self, *path: int) -> list[Expression]:
        """The seen cells, of rows that are found at this path."""
        return [Column((*path, place), cell.type, cell.nullable) for place, cell in enumerate(self.fields)]

    def by_id(self, *path: int) -> dict[int, Expression]:
        """All cells by Spark's numbers."""
        return {
            cell.id: Column((*path, place), cell.type, cell.nullable)
            for place, cell in enumerate(self.cells)
            if cell.id is not None
        }

    def with_order(self) -> Relation | None:
        """The seen cells and behind them the parts by which they are sorted; None if these are not known."""
        order = None if self.order is None else order_of(self.order)
        return None if order is None else _each(self.relation, [*self.columns(), *order.parts], How.MAP, Place("sort"))

    def visible(self) -> Table:
        """Without hidden cells, and without an order, which may need them."""
        if self.shown == len(self.cells):
            return replace(self, order=None)
        cut = Each(self.relation, SqlFunction(tuple(self.columns()), How.MAP), How.MAP, self.relation.place)
        return Table(cut, self.fields, self.shown)


def _each(relation: Relation, expressions: Sequence[Expression], how: How, place: Place) -> Each:
    return Each(relation, SqlFunction(tuple(expressions), how), how, place)


def _distinct(table: Table, place: Place) -> Table:
    relation = table.relation
    if any(cell.type == "double" for cell in table.cells):  # columns make all NaN one
        relation = _each(relation, table.columns(), How.MAP, place)
    return replace(table, relation=Distinct(relation, place))


def _nulls(table: Table) -> list[Expression]:
    return [Literal(None, cell.type) for cell in table.fields]


def _nullable(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    return tuple(replace(cell, nullable=True) for cell in cells)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the rows of an input: keys, as positions of columns, and conditions that all of them satisfy."""

    name: str
    keys: tuple[tuple[int, ...], ...] = ()
    conditions: tuple[SqlFunction, ...] = ()


class PlanReader:
    """Turns the nodes of one plan into tables."""

    def __init__(self, inputs: Mapping[int | None, Known], literals: Mapping[int | None, DataFrame]) -> None:
        self._inputs = inputs
        self._literals = literals
        self._shared: dict[int, Table] = {}

    def table(self, node: Node) -> Table:
        """What this node of the plan means."""
        match node["node"]:
            case "SubqueryAlias" | "View" | "ResolvedHint":
                return self.table(node["child"])
            case "Repartition" | "RepartitionByExpression" | "RebalancePartitions":
                return self.table(node["child"]).visible()
            case "LogicalRDD":
                return self._given(node)
            case "LocalRelation":
                cells = self._cells(node)
                rows = [
                    tuple(constant_of(value, cell.type, node) for value, cell in zip(row, cells, strict=True))
                    for row in node["data"]
                ]
                return Table(Rows(tuple(rows), place_of(node)), cells, len(cells))
            case "OneRowRelation":
                return Table(Rows(((),), place_of(node)), (), 0)
            case "Project":
                return self._project(node)
            case "Filter":
                return self._filter(node)
            case "Aggregate":
                return self._aggregate(node)
            case "Window":
                return self._window(node)
            case "Join":
                return self._join(node)
            case "Union":
                return self._union(node)
            case "Distinct":
                return _distinct(self.table(node["child"]).visible(), place_of(node))
            case "Deduplicate":
                return self._deduplicate(node)
            case "Except" | "Intersect":
                return self._set_operation(node)
            case "Sort":
                return self._sort(node)
            case "GlobalLimit":
                return self._limit(node)
            case "WithCTE":
                for definition in node["cteDefs"]:
                    self._shared[definition["id"]] = self.table(definition["child"]).visible()
                return self.table(node["plan"])
            case "CTERelationRef" if node["cteId"] in self._shared and not node.get("recursive"):
                table = self._shared[node["cteId"]]
                ids = [attribute["exprId"] for attribute in node["output"]]
                cells = tuple(replace(cell, id=id_) for cell, id_ in zip(table.cells, ids, strict=True))
                return replace(table, cells=cells)
        return refuse(node, node["node"])

    def _cells(self, node: Node) -> tuple[Cell, ...]:
        return tuple(
            Cell(attribute["exprId"], type_of(attribute), attribute["nullable"]) for attribute in node["output"]
        )

    def _given(self, node: Node) -> Table:
        cells = self._cells(node)
        if node["rdd"] in self._inputs:
            names = [attribute["name"] for attribute in node["output"]]
            fields = tuple(Field(name, cell.type, cell.nullable) for name, cell in zip(names, cells, strict=True))
            known = self._inputs[node["rdd"]]
            relation: Relation = Input(known.name, fields, Place("input"), known.keys)
            for condition in known.conditions:
                relation = Each(relation, condition, How.FILTER, Place("where of the input"))
        elif node["rdd"] in self._literals:
            rows = [tuple(row) for row in self._literals[node["rdd"]].collect()]
            relation = Rows(tuple(rows), Place("createDataFrame"))
        else:
            refuse(node, "rows that come neither from an input nor from a list", "give them as an input")
        return Table(relation, cells, len(cells))

    # -- row by row --

    def _project(self, node: Node) -> Table:
        child = self.table(node["child"])
        child, scope = self._with_scalars(child, node["projectList"])
        made = [expression_of(one, scope) for one in node["projectList"]]
        ids = [one["exprId"] for one in node["projectList"]]
        return _projected(child, made, ids, place_of(node))

    def _filter(self, node: Node) -> Table:
        table = self.table(node["child"])
        place = place_of(node)
        conditions = list(_conjuncts(node["condition"]))
        row_wise = [one for one in conditions if _existence(one) is None]
        if row_wise:
            table, scope = self._with_scalars(table, row_wise)
            condition = all_of([expression_of(one, scope) for one in row_wise])
            table = replace(table, relation=_each(table.relation, [condition], How.FILTER, place))
        for one in conditions:
            if (found := _existence(one)) is not None:
                table = self._existing(table, *found, place)
        return table

    def _sort(self, node: Node) -> Table:
        table = self.table(node["child"])
        if not node["global"]:
            return replace(table, order=None)
        scope = Scope(table.by_id())
        keys = [
            SortKey(
                expression_of(one["child"], scope),
                one["direction"] == "Descending",
                one["nullOrdering"] == "NullsFirst",
            )
            for one in node["order"]
        ]
        return replace(table, order=tuple(keys))

    def _limit(self, node: Node) -> Table:
        below = node["child"]
        count = expression_of(node["limitExpr"], Scope({}))
        if below["node"] != "LocalLimit" or not isinstance(count, Literal):
            refuse(node, "a limit that is no number", "limit(n) with a number")
        table = self.table(below["child"])
        order = order_of(table.order or ())
        if order is None:
            refuse(node, "text or dates in both directions before a limit", "sort these in one direction")
        by = SqlFunction(order.parts, How.MAP)
        first = First(table.relation, count.constant, by, order.downwards, place_of(node))
        # An order of one row says nothing.
        return replace(table, relation=first, order=table.order if count.constant > 1 else None)

    # -- several tables --

    def _join(self, node: Node) -> Table:
        left, right = self.table(node["left"]).visible(), self.table(node["right"]).visible()
        place, kind = place_of(node), node["joinType"]
        scope = Scope({**left.by_id(0), **right.by_id(1)})
        condition = TRUE if node["condition"] is None else expression_of(node["condition"], scope)
        matches = SqlFunction((condition,), How.FILTER)
        if kind in ("LeftSemi", "LeftAnti"):
            return replace(left, relation=Matching(left.relation, right.relation, matches, kind == "LeftSemi", place))
        if kind not in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"):
            refuse(node, f"a join of the kind {kind}", "an inner, outer, semi or anti join")
        pairs: Relation = Product(left.relation, right.relation, place)
        if condition != TRUE:
            pairs = Each(pairs, matches, How.FILTER, place)
        joined: Relation = _each(pairs, [*left.columns(0), *right.columns(1)], How.MAP, place)
        cells = [*left.cells, *right.cells]
        if kind in ("LeftOuter", "FullOuter"):
            alone = Matching(left.relation, right.relation, matches, False, place)
            joined = Union(joined, _each(alone, [*left.columns(), *_nulls(right)], How.MAP, place), place)
            cells[left.shown :] = _nullable(right.cells)
        if kind in ("RightOuter", "FullOuter"):
            swapped = {**left.by_id(1), **right.by_id(0)}
            turned = TRUE if node["condition"] is None else expression_of(node["condition"], Scope(swapped))
            alone = Matching(right.relation, left.relation, SqlFunction((turned,), How.FILTER), False, place)
            joined = Union(joined, _each(alone, [*_nulls(left), *right.columns()], How.MAP, place), place)
            cells[: left.shown] = _nullable(left.cells)
        return Table(joined, tuple(cells), len(cells))

    def _union(self, node: Node) -> Table:
        if node.get("byName"):
            refuse(node, "a union by name that is not resolved")
        first, *others = [self.table(child).visible() for child in node["children"]]
        for other in others:
            _require_same_types(first, other, node)
            cells = tuple(
                replace(cell, nullable=cell.nullable or its.nullable)
                for cell, its in zip(first.cells, other.cells, strict=True)
            )
            first = replace(first, relation=Union(first.relation, other.relation, place_of(node)), cells=cells)
        return first

    def _deduplicate(self, node: Node) -> Table:
        table = self.table(node["child"]).visible()
        if {cell.id for cell in table.cells} != {key["exprId"] for key in node["keys"]}:
            refuse(node, "dropDuplicates on some of the columns")
        return _distinct(table, place_of(node))

    def _set_operation(self, node: Node) -> Table:
        left, right = self.table(node["left"]).visible(), self.table(node["right"]).visible()
        _require_same_types(left, right, node)
        if node["isAll"]:
            return _repeated(left, right, node["node"] == "Intersect", place_of(node))
        same = [
            Compare(Comparison.SAME, one, other) for one, other in zip(left.columns(0), right.columns(1), strict=True)
        ]
        place = place_of(node)
        matches = SqlFunction((all_of(same),), How.FILTER)
        found = Matching(left.relation, right.relation, matches, node["node"] == "Intersect", place)
        return _distinct(replace(left, relation=found), place)

    # -- groups --

    def _aggregate(self, node: Node) -> Table:
        child = self.table(node["child"])
        place = place_of(node)
        scope = Scope(child.by_id())
        keys = [expression_of(one, scope) for one in node["groupingExpressions"]]
        summaries: list[Summary] = []

        def known(part: Node) -> Expression | None:
            if part["node"] == "AggregateExpression":
                return summarised(part, scope, summaries, has_rows=bool(keys))
            if any(inner["node"] == "AggregateExpression" for inner in nodes_of(part)):
                return None
            whole = expression_of(part, scope)
            if whole in keys:
                return Column((0, keys.index(whole)), whole.type, whole.may_be_null)
            if part["node"] == "AttributeReference":
                refuse(node, f"the column {part['name']}, by which it does not group")
            return None

        made = [expression_of(one, Scope({}, known=known)) for one in node["aggregateExpressions"]]
        ids = [one["exprId"] for one in node["aggregateExpressions"]]
        groups: Relation = Grouped(child.relation, SqlFunction(tuple(keys), How.MAP), tuple(summaries), place)
        if not keys:
            # Without keys there is one group, even if no row came: then its row is what the summaries give for none.
            without_rows = ((), *map(of_no_rows, summaries))
            always = SqlFunction((TRUE,), How.FILTER)
            groups = Union(groups, Matching(Rows((without_rows,), place), child.relation, always, False, place), place)
        cells = tuple(Cell(id_, one.type, one.may_be_null) for id_, one in zip(ids, made, strict=True))
        return Table(_each(groups, made, How.MAP, place), cells, len(cells))

    def _window(self, node: Node) -> Table:
        """Each row with the summaries of the rows that share its keys: a join with groups, in one of which it is."""
        child = self.table(node["child"]).visible()
        place, scope = place_of(node), Scope(child.by_id())
        keys = [expression_of(one, scope) for one in node["partitionSpec"]]
        summaries: list[Summary] = []

        def known(part: Node) -> Expression | None:
            if part["node"] != "WindowExpression":
                return None
            if part["windowFunction"]["node"] != "AggregateExpression" or not _is_whole(part["windowSpec"]):
                refuse(node, "a window that depends on the order of rows")
            return summarised(part["windowFunction"], scope, summaries, has_rows=True)

        made = [expression_of(one, Scope({}, known=known)) for one in node["windowExpressions"]]
        groups = Grouped(child.relation, SqlFunction(tuple(keys), How.MAP), tuple(summaries), place)
        found = [Column((0, at), key.type, key.may_be_null) for at, key in enumerate(keys)]
        flat = _each(groups, [*found, *made], How.MAP, place)
        pairs: Relation = Product(child.relation, flat, place)
        if keys:
            beside = Scope(child.by_id(0))
            same = [
                Compare(Comparison.SAME, expression_of(one, beside), Column((1, at), key.type, key.may_be_null))
                for at, (one, key) in enumerate(zip(node["partitionSpec"], keys, strict=True))
            ]
            pairs = Each(pairs, SqlFunction((all_of(same),), How.FILTER), How.FILTER, place)
        values = [Column((1, len(keys) + at), one.type, one.may_be_null) for at, one in enumerate(made)]
        ids = [one["exprId"] for one in node["windowExpressions"]]
        cells = [Cell(id_, one.type, one.may_be_null) for id_, one in zip(ids, made, strict=True)]
        joined = _each(pairs, [*child.columns(0), *values], How.MAP, place)
        return Table(joined, (*child.cells, *cells), len(child.cells) + len(cells))

    # -- subqueries --

    def _with_scalars(self, table: Table, nodes: Sequence[Node]) -> tuple[Table, Scope]:
        """The table with a hidden cell for each scalar subquery in these expressions."""
        values: dict[int, Expression] = {}
        for node in nodes_of(nodes):
            if node["node"] != "ScalarSubquery":
                continue
            if not _has_one_row(node["plan"]) or _is_correlated(node["plan"]):
                refuse(
                    node,
                    "a scalar subquery that is no aggregate of whole tables",
                    "a join with the grouped table; or, without a reference to the outer query, an aggregate",
                )
            inner = self.table(node["plan"]).visible()
            whole = [Column((0, place), cell.type, cell.nullable) for place, cell in enumerate(table.cells)]
            pairs = Product(table.relation, inner.relation, place_of(node))
            relation = _each(pairs, [*whole, *inner.columns(1)], How.MAP, place_of(node))
            (cell,) = inner.cells
            values[node["exprId"]] = Column((len(table.cells),), cell.type, cell.nullable)
            table = replace(table, relation=relation, cells=(*table.cells, replace(cell, id=None)))
        return table, Scope(table.by_id(), subqueries=values)

    def _existing(self, table: Table, node: Node, is_negated: bool, place: Place) -> Table:
        """The rows for which IN or EXISTS is true; or false, which for IN is less than not true."""
        query = node["query"] if node["node"] == "InSubquery" else node
        inner, correlated = self._uncorrelated(query["plan"])
        scope = Scope(inner.by_id(1), outer=table.by_id(0))
        conditions = [expression_of(one, scope) for one in correlated]
        if node["node"] == "InSubquery":
            if len(node["values"]) != inner.shown:
                refuse(node, "IN with another number of columns than its subquery")
            outside = Scope(table.by_id(0))
            for value, column in zip(node["values"], inner.columns(1), strict=True):
                equal: Expression = compared(Comparison.EQUAL, expression_of(value, outside), column, node)
                # NOT IN is true only if every comparison is false: a null counts as a row that is found.
                conditions.append(Coalesce((equal, TRUE)) if is_negated and equal.may_be_null else equal)
        matches = SqlFunction((all_of(conditions),), How.FILTER)
        found = Matching(table.relation, inner.relation, matches, not is_negated, place)
        return replace(table, relation=found, order=None)  # Spark joins, which keeps no order

    def _uncorrelated(self, plan: Node) -> tuple[Table, list[Node]]:
        """The plan of an IN or EXISTS without the conditions that refer to the outer query, and these conditions.

        What they need of the rows is kept in hidden cells. How often a row comes does not matter here.
        """
        if not _is_correlated(plan):
            return self.table(plan).visible(), []
        match plan["node"]:
            case "SubqueryAlias" | "View" | "ResolvedHint" | "Distinct":
                return self._uncorrelated(plan["child"])
            case "Project" if not _has_outer(plan["projectList"]):
                child, correlated = self._uncorrelated(plan["child"])
                scope = Scope(child.by_id())
                made = [expression_of(one, scope) for one in plan["projectList"]]
                ids = [one["exprId"] for one in plan["projectList"]]
                needed = {
                    inner["exprId"]
                    for inner in nodes_of(correlated)
                    if inner["node"] == "AttributeReference" and inner["exprId"] not in ids
                } & scope.columns.keys()
                table = _projected(child, made, ids, place_of(plan), kept=sorted(needed))
                return table, correlated
            case "Filter":
                child, correlated = self._uncorrelated(plan["child"])
                own: list[Node] = []
                for one in _conjuncts(plan["condition"]):
                    if any(inner["node"] in SUBQUERIES for inner in nodes_of(one)):
                        refuse(plan, "a subquery in a correlated subquery", "a join")
                    (correlated if _has_outer(one) else own).append(one)
                if own:
                    condition = all_of([expression_of(one, Scope(child.by_id())) for one in own])
                    child = replace(child, relation=_each(child.relation, [condition], How.FILTER, place_of(plan)))
                return child, correlated
        return refuse(plan, f"a reference to the outer query below {plan['node']}", "a join")


def _is_whole(spec: Node) -> bool:
    """Is this a window of all rows that share its keys?"""
    frame = spec["frameSpecification"]
    ends = [frame.get("lower"), frame.get("upper")]
    names = [one["node"].rstrip("$") for one in ends if isinstance(one, dict)]
    return not spec["orderSpec"] and names == ["UnboundedPreceding", "UnboundedFollowing"]


def _repeated(left: Table, right: Table, is_least: bool, place: Place) -> Table:
    """INTERSECT ALL and EXCEPT ALL: each row as often as the least of both sides, or as the left has it more often."""
    one, zero = Literal(1, WHOLE), Literal(0, WHOLE)
    both = Union(
        _each(left.relation, [*left.columns(), one, zero], How.MAP, place),
        _each(right.relation, [*right.columns(), zero, one], How.MAP, place),
        place,
    )
    counts = [Total(SqlValue(Column((left.shown + side,), WHOLE, False)), name="count") for side in (0, 1)]
    groups = Grouped(both, SqlFunction(tuple(left.columns()), How.MAP), tuple(counts), place)
    cells = tuple(
        replace(cell, nullable=cell.nullable or its.nullable) for cell, its in zip(left.cells, right.cells, strict=True)
    )
    return Table(Each(groups, Repeated(is_least), How.FLAT_MAP, place), cells, left.shown)


def _projected(
    child: Table, made: list[Expression], ids: Sequence[int], place: Place, kept: Sequence[int] = ()
) -> Table:
    """The rows as these expressions make them; hidden cells hold what an order, or someone above, needs."""
    cells = [Cell(id_, one.type, one.may_be_null) for id_, one in zip(ids, made, strict=True)]
    shown = len(made)
    made = list(made)
    columns = child.by_id()
    for id_ in kept:
        made.append(columns[id_])
        cells.append(Cell(id_, columns[id_].type, columns[id_].may_be_null))
    order = None
    if child.order is not None:
        keys = []
        for key in child.order:
            if key.of not in made:
                made.append(key.of)
                cells.append(Cell(None, key.of.type, key.of.may_be_null))
            moved = Column((made.index(key.of),), key.of.type, key.of.may_be_null)
            keys.append(replace(key, of=moved))
        order = tuple(keys)
    whole = [Column((position,), cell.type, cell.nullable) for position, cell in enumerate(child.cells)]
    relation = child.relation if made == whole else _each(child.relation, made, How.MAP, place)
    return Table(relation, tuple(cells), shown, order)


def _require_same_types(left: Table, right: Table, node: Node) -> None:
    if [cell.type for cell in left.cells] != [cell.type for cell in right.cells]:
        refuse(node, "columns of different types", "cast them to the same types")


@dataclass(frozen=True, slots=True)
class Order:
    """What the rows are sorted by with Python's order: parts of each row, and whether from the greatest down."""

    parts: tuple[Expression, ...]
    downwards: bool


def order_of(keys: Sequence[SortKey]) -> Order | None:
    """The order of these keys; None if they are of text or dates, in both directions.

    Numbers and booleans can be turned round; text and dates give the direction. Nulls and NaN have their own places.
    """
    firm = {key.descending for key in keys if not can_turn(key.of.type)}
    if len(firm) > 1:
        return None
    downwards = firm.pop() if firm else False
    parts: list[Expression] = []
    for key in keys:
        of = key.of
        if of.type == "void":
            continue
        if of.may_be_null:
            null_is_low = key.nulls_first is not downwards
            low, high = Literal(0, "integer"), Literal(1, "integer")
            parts.append(Case(((IsNull(of), low if null_is_low else high),), high if null_is_low else low))
            of = Coalesce((of, Literal(some_value(of.type), of.type)))
        is_turned = key.descending is not downwards
        if of.type == "double":
            is_nan = Compare(Comparison.SAME, of, Literal(NAN, "double"))
            parts.append(Case(((is_nan, Literal(-1 if is_turned else 1, "integer")),), Literal(0, "integer")))
            of = Case(((is_nan, Literal(0.0, "double")),), of)
        parts.append(_turned(of) if is_turned else of)
    return Order(tuple(parts), downwards)


def _turned(of: Expression) -> Expression:
    if of.type == "boolean":
        return Not(of)
    if of.type in INTEGER_BITS:  # the least long has no negative
        return Arithmetic(Operation.SUBTRACT, Literal(0, WHOLE), Cast(of, WHOLE, Mode.ANSI), WHOLE, Mode.ANSI)
    return Arithmetic(Operation.SUBTRACT, Literal(some_value(of.type), of.type), of, of.type, Mode.ANSI)


# -- subqueries ------------------------------------------------------------------------------------------------------


def _conjuncts(node: Node) -> Iterator[Node]:
    if node["node"] == "And":
        yield from _conjuncts(node["left"])
        yield from _conjuncts(node["right"])
    else:
        yield node


def _existence(node: Node) -> tuple[Node, bool] | None:
    """The IN or EXISTS that this condition is, and whether it is negated."""
    if node["node"] in ("InSubquery", "Exists"):
        return node, False
    if node["node"] == "Not" and (inner := _existence(node["child"])) is not None:
        return inner[0], not inner[1]
    return None


def _has_outer(value: Any) -> bool:
    return any(node["node"] == "OuterReference" for node in nodes_of(value))


def _is_correlated(plan: Node) -> bool:
    """Does a plan, or a subquery in it, refer to something outside?"""
    return '"node": "OuterReference"' in json.dumps(plan)


def _has_one_row(plan: Node) -> bool:
    """Does this plan always give exactly one row?"""
    if plan["node"] in ("Project", "SubqueryAlias", "View"):
        return _has_one_row(plan["child"])
    return plan["node"] == "OneRowRelation" or (plan["node"] == "Aggregate" and not plan["groupingExpressions"])
