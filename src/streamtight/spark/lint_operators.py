"""The operators of a plan: what is known of their rows, from what is known of the rows below.

A cause that does not go on is dropped here: a random column that nobody selects, an order that nobody relies on. How
many rows there are, and which values they have, is told apart: `limit(3)` without an order chooses values, but there
are three rows of them.
"""

# ruff: noqa: N802, N815 - methods that read a node are called as Spark calls the node
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from streamtight.method.typecheck import functions
from streamtight.spark import lint_known as known
from streamtight.spark.lint_expression import (
    all_fixed_by,
    children_of,
    conjuncts,
    determined,
    equations,
    fixed_by,
    function_of,
    ids_of,
    is_collated,
    is_column,
    is_pure,
    text_of,
    unnamed,
)
from streamtight.spark.lint_facts import (
    FIXED,
    NO_COLUMN,
    NONE,
    Causes,
    Id,
    Order,
    Rows,
    Value,
    all_causes,
    both_ways,
    joined,
)
from streamtight.spark.lint_join import equal_columns, facts_of, in_own_terms, keys_of
from streamtight.spark.lint_notes import Notes
from streamtight.spark.lint_stream import Streams, keeps_watermark
from streamtight.spark.lint_value import Group, Values
from streamtight.spark.plan import Node, nodes_of

Keys = tuple[tuple[int, ...], ...]
"""The keys of a table, each as positions of columns."""


class Operators:
    """Reads plans: `_read_Sort` is for nodes that Spark calls Sort, and so on."""

    def __init__(
        self,
        notes: Notes,
        streams: Streams,
        inputs: Set[int | None],
        keys: Mapping[int, Keys],
        is_known: Callable[[str], bool],
    ) -> None:
        self._notes = notes
        self._streams = streams
        self._inputs = inputs
        self._keys = keys
        self._values = Values(notes, is_known, self.rows)
        self._names: dict[Id, str] = {}
        """Of the columns of the inputs."""
        self._tables: dict[int, Rows] = {}
        """What common table expressions give."""

    def rows(self, node: Node) -> Rows:
        """What is known of the rows of this operator."""
        name = node["node"]
        with self._notes.at(node):
            if name in known.PASSED:
                return self.rows(node["child"])
            if name in known.LEAVES:
                return self._leaf(node)
            read: Callable[[Node], Rows] = getattr(self, f"_read_{name}", self._unknown)
            return read(node)

    def names_of(self, ids: Set[Id]) -> Set[str]:
        """The names of those columns that are columns of inputs."""
        return {self._names[id_] for id_ in ids if id_ in self._names}

    def _unknown(self, node: Node) -> Rows:
        self._notes.unread(node)
        below = [node[name] for name in ("child", "left", "right") if name in node] + node.get("children", [])
        read = [self.rows(child) for child in below if isinstance(child, dict)]
        output = [one["exprId"] for one in node.get("output", []) if isinstance(one, dict)]
        ids = output or [id_ for one in read for id_ in one.columns]
        causes = NONE.union(*(one.all_causes for one in read))
        return Rows(dict.fromkeys(ids, Value(causes)), causes, streaming=any(one.streaming for one in read))

    # -- inputs ------------------------------------------------------------------------------------------------------

    def _leaf(self, node: Node) -> Rows:
        output = _columns_of(node)
        self._names.update((one["exprId"], one["name"]) for one in node["output"])
        streaming = node["node"].startswith("Streaming") or bool(node.get("isStreaming"))
        rows = Rows(dict.fromkeys(output, FIXED), streaming=streaming, keeps_arrival=True)
        if node["node"] == "Range":
            return replace(rows, keys=(frozenset(output),))
        if node["node"] == "LocalRelation" and len(node.get("data", [])) == 1:
            return replace(rows, keys=(frozenset(),))
        return rows

    def _read_LogicalRDD(self, node: Node) -> Rows:
        rows = self._leaf(node)
        if node["rdd"] not in self._inputs and not node.get("isStreaming"):
            self._notes.unread(node, "rows of an RDD")
        ids = list(rows.columns)
        keys = self._keys.get(node["rdd"], ())
        return replace(rows, keys=tuple(frozenset(ids[place] for place in key) for key in keys))

    def _read_OneRowRelation(self, node: Node) -> Rows:
        return Rows({}, keys=(frozenset(),))

    def _read_WithCTE(self, node: Node) -> Rows:
        for definition in node["cteDefs"]:
            self._tables[definition["id"]] = self.rows(definition["child"])
        return self.rows(node["plan"])

    def _read_CTERelationRef(self, node: Node) -> Rows:
        table = self._tables.get(node["cteId"])
        output = _columns_of(node)
        if table is None:
            self._notes.unread(node)
            return Rows(dict.fromkeys(output, FIXED))
        renamed = dict(zip(table.columns, output, strict=False))
        return replace(
            table,
            columns={renamed[id_]: value for id_, value in table.columns.items()},
            determines=(*table.determines, *(pair for ids in renamed.items() for pair in both_ways(*ids))),
            times=table.times | {renamed[id_] for id_ in table.times if id_ in renamed},
        )

    # -- columns and conditions --------------------------------------------------------------------------------------

    def _read_Project(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        listed: list[Node] = node["projectList"]
        columns = {one["exprId"]: self._values.settled(one, rows, ids_of(one)) for one in listed}
        made = [one for one in listed if not is_column(one)]
        facts = [fact for one in made for fact in determined(one)]
        times = {one["exprId"] for one in made if keeps_watermark(unnamed(one), rows.times)}
        return replace(rows, columns=columns, determines=(*rows.determines, *facts), times=rows.times | times)

    def _read_DataFrameDropColumns(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        dropped = ids_of(node["dropList"])
        return replace(rows, columns={id_: value for id_, value in rows.columns.items() if id_ not in dropped})

    def _read_Filter(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        condition = node["condition"]
        asked = self._values.settled(condition, rows, ids_of(condition))
        columns = dict(rows.columns)
        for tie in asked.ties:
            # Of tied rows any may pass; what they agree in is the same whichever does.
            agreed = rows.closure(tie.base)
            for id_, own in columns.items():
                if id_ not in agreed and tie not in own.ties:
                    columns[id_] = replace(own, varies=own.varies | {tie.cause})
        facts = [
            (ids_of(other), fixed)
            for sides in equations(condition)
            for one, other in (sides, sides[::-1])
            if is_pure(other)
            for fixed in fixed_by(one)
        ]
        return replace(
            rows,
            columns=columns,
            varies=rows.varies | asked.causes,
            merges=rows.merges - asked.causes,
            determines=(*rows.determines, *facts),
        )

    def _read_Generate(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        generator = node["generator"]
        name = generator["node"]
        if name not in known.GENERATORS:
            self._notes.unread(generator)
        given = joined(self._values.settled(one, rows, ids_of(one)) for one in children_of(generator))
        varies = _untied(given).varies
        columns = dict(rows.columns)
        for place, one in enumerate(node["generatorOutput"]):
            is_number = name == "PosExplode" and place == 0
            columns[one["exprId"]] = Value(varies | given.listing if is_number else varies)
        count = varies if name in known.ROW_FOR_EACH else varies | given.listing
        return replace(
            rows, columns=columns, varies=rows.varies | count, merges=NONE, keys=(), order=None, partitioned=None
        )

    def _read_Expand(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        projections = [
            [self._values.settled(one, rows, ids_of(projection)) for one in projection]
            for projection in node["projections"]
        ]
        columns = {
            id_: _untied(joined(values))
            for id_, values in zip(_columns_of(node), zip(*projections, strict=True), strict=True)
        }
        return replace(rows.shuffled(), columns=columns, merges=NONE, keys=(), determines=())

    # -- groups ------------------------------------------------------------------------------------------------------

    def _read_Aggregate(self, node: Node) -> Rows:
        below = self.rows(node["child"])
        grouping: list[Node] = node["groupingExpressions"]
        made: list[Node] = node["aggregateExpressions"]
        context = ids_of(grouping)
        by = {text_of(one): self._values.settled(one, below, context) for one in grouping}
        told_apart = all_causes(one for one in by.values() if not one.is_name)
        self._require_exact_keys(grouping, node)
        self._streams.aggregate(node, below)
        group = Group(below.closure(all_fixed_by(grouping)), context=context)
        key = {one["exprId"] for one in grouping if is_column(one)}
        have_columns = {text_of(one) for one in grouping if is_column(one)}
        columns: dict[Id, Value] = {}
        for one in made:
            text = text_of(unnamed(one))
            if text in by:
                key.add(one["exprId"])
                have_columns.add(text)
                columns[one["exprId"]] = by[text]
            else:
                columns[one["exprId"]] = self._aggregated(one, below, group, told_apart)
        facts = [(of, id_) for of, id_ in below.determines if id_ in key and of <= key]
        for one in made:
            if one["node"] == "Alias" and is_column(one["child"]):
                facts += both_ways(one["exprId"], one["child"]["exprId"])
        timed = {one["exprId"] for one in made if keeps_watermark(unnamed(one), below.times)}
        return Rows(
            columns,
            # A group is there whichever of its parts are; and without keys there is one row.
            varies=(below.varies - below.merges) | told_apart if grouping else NONE,
            merges=told_apart - below.varies,
            keys=(frozenset(key),) if have_columns == by.keys() else (),
            determines=tuple(facts),
            streaming=below.streaming,
            times=frozenset(key & (below.times | timed)),
            delays=below.delays,
        )

    def _aggregated(self, one: Node, below: Rows, group: Group, told_apart: Causes) -> Value:
        """A column of an Aggregate that is no key."""
        own = self._values.settled(one, below, ids_of(one) | group.context, group)
        rows = below.varies
        function = _only_function(one)
        name = None if function is None else function["node"]
        if function is not None and below.merges and name in known.MERGES.values():
            value = below.columns.get(_only_argument(function), FIXED)
            if value.partial == name:
                # Sums of parts are summed again: how the parts were cut does not matter.
                rows, own = rows - below.merges, replace(own, varies=(own.varies - below.merges) | value.whole)
        return Value(
            own.varies | rows | told_apart, own.listing, own.ties, known.MERGES.get(name or ""), own.varies | rows
        )

    def _require_exact_keys(self, keys: Sequence[Node], node: Node) -> None:
        """Texts that differ are one key under a collation, and 0.0 is one with -0.0: any of them may stand for it."""
        self._values.compare(keys)
        if any(is_collated(one) for one in nodes_of(keys)):
            self._notes.unread(node, f"{known.NAMES.get(node['node'], node['node'])} by a collated text")

    def _read_Deduplicate(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        keys = ids_of(node["keys"])
        self._require_exact_keys(node["keys"], node)
        self._streams.deduplicate(node, rows)
        cause = self._notes.found("DUPLICATE_CHOICE", node)
        agreed = rows.closure(keys)
        columns = {
            id_: value if id_ in agreed else replace(value, varies=value.varies | {cause}, partial=None)
            for id_, value in rows.columns.items()
        }
        varies = rows.varies | all_causes(rows.columns[id_] for id_ in keys)
        return replace(rows.shuffled(), columns=columns, varies=varies, merges=NONE, keys=(*rows.keys, keys))

    _read_DeduplicateWithinWatermark = _read_Deduplicate

    def _read_Distinct(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        self._require_exact_keys(_listed(node["child"]), node)
        return replace(rows.shuffled(), varies=rows.all_causes, merges=NONE, keys=(*rows.keys, rows.ids))

    def _read_Window(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        partition: list[Node] = node["partitionSpec"]
        columns, keys = dict(rows.columns), list(rows.keys)
        for one in node["windowExpressions"]:
            window = next(inner for inner in nodes_of(one) if inner["node"] == "WindowExpression")
            columns[one["exprId"]] = self._values.windowed(window, rows, partition)
            if window["windowFunction"]["node"] == "RowNumber" and all(map(is_column, partition)):
                keys.append(ids_of(partition) | {one["exprId"]})
        return replace(rows.shuffled(), columns=columns, merges=NONE, keys=tuple(keys))

    # -- orders and partitions ---------------------------------------------------------------------------------------

    def _read_Sort(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        order: list[Node] = [one["child"] for one in node["order"]]
        self._values.compare(order)
        causes = all_causes(self._values.settled(one, rows, rows.ids) for one in order)
        is_global: bool = node["global"]
        within = None if is_global else rows.partitioned  # a global sort cuts its order into partitions
        return replace(rows, order=Order(all_fixed_by(order), causes, is_global, within), keeps_arrival=False)

    def _read_GlobalLimit(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        number = node.get("limitExpr") or node.get("offsetExpr") or {}
        count = number.get("value") if number.get("node") == "Literal" else None
        if frozenset() in rows.keys or count == 0:
            return rows
        order = rows.order if rows.order is not None and rows.order.is_global else None
        agreed = rows.closure(frozenset() if order is None else order.columns)
        cause = self._notes.found("LIMIT_WITHOUT_ORDER" if order is None else "TIED_ORDER", node)
        chosen = NONE if order is None else order.causes
        columns = {}
        for id_, value in rows.columns.items():
            # A limit of rows of which it is not known which there are takes others of them.
            more = chosen | rows.varies | (NONE if id_ in agreed or chosen else {cause})
            more |= {tie.cause for tie in value.ties} if id_ in agreed else NONE
            columns[id_] = replace(value, varies=value.varies | more, partial=None)
        keys = (*rows.keys, frozenset()) if count == 1 and node["node"] != "Offset" else rows.keys
        # What is left lies in one partition.
        left = None if order is None else replace(order, within=frozenset())
        return replace(rows, columns=columns, merges=NONE, keys=keys, order=left, partitioned=frozenset())

    _read_Offset = _read_GlobalLimit
    _read_Tail = _read_GlobalLimit

    def _read_Sample(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        if float(node["lowerBound"]) == 0 and float(node["upperBound"]) == 1 and not node["withReplacement"]:
            return rows
        return replace(rows, varies=rows.varies | {self._notes.found("SAMPLE", node, operation="sample")}, merges=NONE)

    def _read_Repartition(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        if node["shuffle"]:
            return replace(rows.shuffled(), partitioned=frozenset() if node["numPartitions"] == 1 else None)
        # Partitions are put together whole: what is sorted inside of them stays so only if it need not be merged.
        order = rows.order if rows.order is not None and rows.order.within is not None else None
        return replace(rows, order=order)

    def _read_RepartitionByExpression(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        by: list[Node] = node["partitionExpressions"]
        return replace(rows.shuffled(), partitioned=ids_of(by) if by and all(map(is_column, by)) else None)

    _read_RebalancePartitions = _read_RepartitionByExpression

    def _read_EventTimeWatermark(self, node: Node) -> Rows:
        rows = self.rows(node["child"])
        return replace(rows, times=rows.times | ids_of(node["eventTime"]), delays=rows.delays | {str(node["delay"])})

    _read_UpdateEventTimeWatermarkColumn = _read_EventTimeWatermark

    # -- several inputs ----------------------------------------------------------------------------------------------

    def _read_Union(self, node: Node) -> Rows:
        parts = [self.rows(child) for child in node["children"]]
        self._streams.union(node, parts)
        outputs = [output_of(child, one) for child, one in zip(node["children"], parts, strict=True)]
        values = [one.settled_columns() for one in parts]
        columns = {
            ids[0]: replace(joined(one[id_] for one, id_ in zip(values, ids, strict=True)), ties=frozenset())
            for ids in zip(*outputs, strict=True)
        }
        return Rows(
            columns,
            NONE.union(*(one.varies for one in parts)),
            streaming=any(one.streaming for one in parts),
            times=parts[0].times if all(one.times for one in parts) else frozenset(),
            delays=frozenset().union(*(one.delays for one in parts)),
        )

    def _read_Except(self, node: Node) -> Rows:
        left, right = self.rows(node["left"]), self.rows(node["right"])
        self._require_exact_keys(_listed(node["left"]), node)
        varies = left.all_causes | right.all_causes
        keys = left.keys if node["isAll"] else (*left.keys, left.ids)
        return replace(left.shuffled(), varies=varies, merges=NONE, keys=keys)

    _read_Intersect = _read_Except

    def _read_Join(self, node: Node) -> Rows:
        left, right = in_own_terms(self.rows(node["left"])), in_own_terms(self.rows(node["right"]))
        self._streams.join(node, left, right)
        kind, condition = node["joinType"], node.get("condition")
        self._values.compare([] if condition is None else [one for sides in equations(condition) for one in sides])
        both = Rows(
            {id_: replace(value, partial=None) for id_, value in {**left.columns, **right.columns}.items()},
            left.varies | right.varies,
            determines=(*left.determines, *right.determines),
            streaming=left.streaming or right.streaming,
            times=left.times | right.times,
            delays=left.delays | right.delays,
        )
        varies = both.varies
        if condition is not None:
            varies |= self._values.settled(condition, both, ids_of(condition)).all_causes
        if kind in ("LeftSemi", "LeftAnti") or kind.startswith("ExistenceJoin"):
            return replace(left.shuffled(), varies=varies)
        equal = [] if condition is None else list(equal_columns(condition, left, right))
        only_equal = condition is None or len(equal) == len(list(conjuncts(condition)))
        facts = facts_of(kind, left, right, equal, only_equal=only_equal)
        return replace(both, varies=varies, keys=keys_of(kind, left, right, equal), determines=tuple(facts))

    # -- functions of Python on whole frames -------------------------------------------------------------------------

    def _read_FlatMapGroupsInPandas(self, node: Node) -> Rows:
        below = self.rows(node["child"])
        return _made(node, below, below.all_causes | self._values.group_function(_called(node), node))

    _read_FlatMapGroupsInArrow = _read_FlatMapGroupsInPandas

    def _read_MapInPandas(self, node: Node) -> Rows:
        below = self.rows(node["child"])
        function = function_of(_called(node))
        varies = functions.why_varies(function) if function is not None else None
        if varies is None:
            self._notes.unread(node)  # it sees rows as they were cut into partitions
            return _made(node, below, below.all_causes)
        return _made(node, below, below.all_causes | {self._notes.found("UDF_VARIES", node, f"it {varies}")})

    _read_MapInArrow = _read_MapInPandas
    _read_PythonMapInArrow = _read_MapInPandas


def _called(node: Node) -> Node:
    called: Node = node.get("functionExpr") or node.get("func") or {}
    return called


def _made(node: Node, below: Rows, causes: Causes) -> Rows:
    """Rows that are made of all rows below."""
    return Rows(dict.fromkeys(_columns_of(node), Value(causes)), causes, streaming=below.streaming)


def _untied(value: Value) -> Value:
    """The value, where it counts which of tied rows has it."""
    return Value(value.varies | {tie.cause for tie in value.ties}, value.listing)


# -- columns of the output -------------------------------------------------------------------------------------------


def _columns_of(node: Node) -> list[Id]:
    return [one["exprId"] for one in node["output"]]


def output_of(plan: Node, rows: Rows) -> list[Id]:
    """The columns of an operator by their places: one may be there twice."""
    return [one["exprId"] for one in _listed(plan)] or list(rows.columns)


def _listed(plan: Node) -> list[Node]:
    """The expressions that its columns are, if they are written somewhere below."""
    while plan["node"] in _SAME_COLUMNS:
        plan = plan["plan"] if plan["node"] == "WithCTE" else plan["child"]
    listed: list[Node] = plan.get("projectList" if plan["node"] == "Project" else "aggregateExpressions") or []
    return listed


_SAME_COLUMNS = {
    *known.PASSED, "Filter", "Sort", "GlobalLimit", "Offset", "Tail", "Sample", "Repartition",
    "RepartitionByExpression", "RebalancePartitions", "Distinct", "Deduplicate",
    "DeduplicateWithinWatermark", "EventTimeWatermark", "WithCTE",
}  # fmt: skip


# -- aggregates that merge parts -------------------------------------------------------------------------------------


def _only_function(one: Node) -> Node | None:
    """The aggregate function of all rows that this column is, if it is nothing else."""
    inner = unnamed(one)
    if inner["node"] != "AggregateExpression" or inner["isDistinct"] or inner.get("filter") is not None:
        return None
    function: Node = inner["aggregateFunction"]
    return function


def _only_argument(function: Node) -> Id:
    """The column that it is of, if that is all; else none."""
    arguments = children_of(function)
    return arguments[0]["exprId"] if len(arguments) == 1 and is_column(arguments[0]) else NO_COLUMN
