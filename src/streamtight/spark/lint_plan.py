"""What in an analysed plan depends on an order or on a choice that Spark does not fix?

The walk goes from the inputs to the result and carries facts about the rows of every operator: for each column, what
its value depends on (*causes*); which columns are unique keys, and which determine which; in what order the rows are.
A cause that does not reach the result is no finding: a random column that is dropped, a row_number of which only the
columns it orders by are kept. How many rows there are, and which values they have, is told apart: `limit(3)` without an
order chooses values, but there are three rows of them.

Facts about columns that are no longer there stay true of the rows that came from them, and are kept.
"""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.serializers import CPickleSerializer

from streamtight.method.typecheck import functions
from streamtight.method.typecheck.findings import RULES, Finding, Reading, sorted_findings
from streamtight.program.relation import NOWHERE, Place
from streamtight.spark import lint_known as known
from streamtight.spark.plan import Node, nodes_of, place_of
from streamtight.stream.dependence import Dependence
from streamtight.stream.schema import Schema

Id = int
"""The number that Spark gives a column."""
Ids = frozenset[Id]
Causes = frozenset[Finding]
NONE: Causes = frozenset()


@dataclass(frozen=True, slots=True)
class Tie:
    """Rows that agree in the columns that `base` determines may swap their values."""

    cause: Finding
    base: Ids


@dataclass(frozen=True, slots=True)
class Value:
    """What the value of a column, or of an expression, depends on."""

    varies: Causes = NONE
    listing: Causes = NONE
    """Only the order of the elements of this array depends on these."""
    ties: frozenset[Tie] = frozenset()
    partial: str | None = None
    """The function, if merging these values with it again makes up for groups that were too small."""
    whole: Causes = NONE
    """What the merged value depends on."""

    @property
    def causes(self) -> Causes:
        """All, as soon as the order of elements counts."""
        return self.varies | self.listing


FIXED = Value()


@dataclass(frozen=True, slots=True)
class Order:
    """The order of rows: what its columns determine, what it depends on, and whether it is of all rows."""

    columns: Ids
    causes: Causes
    within: Ids | None
    """None for all rows; else the columns by which partitions are told apart, within which rows are sorted."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What is known of the rows of an operator."""

    columns: Mapping[Id, Value]
    """In the order of the output."""
    varies: Causes = NONE
    """What the number of the rows depends on."""
    merges: Causes = NONE
    """The part of it that goes if partial results are merged again: groups that were told apart at random."""
    keys: tuple[Ids, ...] = ()
    determines: tuple[tuple[Ids, Id], ...] = ()
    order: Order | None = None
    partitioned: Ids | None = None
    keeps_arrival: bool = False
    """Whether rows of one partition of the input are still in one partition, in their order."""
    streaming: bool = False
    times: Ids = frozenset()
    """Columns that the watermark bounds."""
    delays: frozenset[str] = frozenset()
    """The watermarks below."""

    def closure(self, base: Iterable[Id]) -> Ids:
        """The columns that have one value for each value of these."""
        found = set(base)
        grew = True
        while grew:
            grew = False
            if any(key <= found for key in self.keys) and not found.issuperset(self.columns):
                found |= set(self.columns) | {made for _, made in self.determines}
                grew = True
            for of, made in self.determines:
                if made not in found and of <= found:
                    found.add(made)
                    grew = True
        return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Group:
    """Where an aggregate function stands: the columns its rows agree in, and those they are ordered by."""

    same: Ids
    order: Ids | None = None
    """None if rows come in no order."""
    order_causes: Causes = NONE
    by_rows: bool = False
    """Whether a frame counts rows, so that tied rows see different ones."""
    context: Ids = frozenset()


def read_plan(
    plan: Node,
    names: Sequence[str],
    *,
    lines: Callable[[Node], Place | None] = lambda node: None,
    inputs: Mapping[int, tuple[tuple[int, ...], ...]] | None = None,
    is_input: Callable[[Node], bool] = lambda node: True,
    is_known: Callable[[str], bool] = lambda name: True,
    mode: str = "batch",
    gives: Dependence | None = None,
    promise: Dependence | None = None,
) -> Reading:
    """What in this plan depends on what Spark does not fix.

    names       of the columns of the result
    lines       where the user wrote a node
    inputs      the keys of inputs, as positions of columns, by the number of their RDD
    is_input    whether an RDD is an input, and not something that the job made in a way that cannot be read
    is_known    whether Spark has a function of this class
    gives       the order that the rows of the result must have; promise: the one that the input has
    """
    reader = _Reader(lines, inputs or {}, is_input, is_known, mode)
    return reader.result(plan, names, gives, promise)


class _Reader:
    def __init__(
        self,
        lines: Callable[[Node], Place | None],
        inputs: Mapping[int, tuple[tuple[int, ...], ...]],
        is_input: Callable[[Node], bool],
        is_known: Callable[[str], bool],
        mode: str,
    ) -> None:
        self._lines = lines
        self._inputs = inputs
        self._is_input = is_input
        self._is_known = is_known
        self._mode = mode
        self._unknown: dict[Place, None] = {}
        self._stream: dict[Finding, None] = {}
        self._assumptions: dict[str, None] = {}
        self._inputs_names: dict[Id, str] = {}
        """The columns of the inputs."""
        self._tables: dict[int, Rows] = {}
        """What common table expressions give."""
        self._place = NOWHERE
        self._operator: Node = {}
        """The one that is read, and where it was written."""

    # -- the result --------------------------------------------------------------------------------------------------

    def result(self, plan: Node, names: Sequence[str], gives: Dependence | None, promise: Dependence | None) -> Reading:
        rows = self.rows(plan)
        reached: dict[Finding, list[str]] = {}
        for name, id_ in zip(names, _output(plan, rows), strict=True):
            for cause in self._settled(rows.columns[id_], rows, frozenset(rows.columns)).causes:
                reached.setdefault(cause, []).append(name)
        found = [
            replace(cause, columns=tuple(columns)) for cause, columns in reached.items() if cause not in rows.varies
        ]
        found += list(rows.varies)
        if gives is not None and gives.clauses:
            self._place = self._lines(plan) or NOWHERE
            found += self._order_lost(rows, plan, names, gives, promise)
        found += self._stream
        return Reading(sorted_findings(found), tuple(self._unknown), tuple(self._assumptions))

    def _order_lost(
        self, rows: Rows, plan: Node, names: Sequence[str], gives: Dependence, promise: Dependence | None
    ) -> Iterator[Finding]:
        ids = dict(zip(names, _output(plan, rows), strict=True))
        key = rows.closure(ids[name] for name in _common_key(gives) if name in ids)
        order = rows.order
        if order is not None and frozenset(rows.columns) <= rows.closure(order.columns):
            yield from order.causes
            if order.within is None or (order.within and order.within <= key):
                return
        kept = {self._inputs_names[id_] for id_ in key if id_ in self._inputs_names}
        if rows.keeps_arrival and promise is not None and promise.clauses and kept.issuperset(_common_key(promise)):
            if _kinds(gives) > 1 or _kinds(promise) > 1:
                self._unread(plan, f"whether the order {gives!r} is kept")
            return
        yield self._found("ORDER_LOST", plan)

    def _found(self, rule: str, node: Node, detail: str = "", *, operation: str = "") -> Finding:
        return Finding(RULES[rule], self._place_of(node, operation), detail)

    def _place_of(self, node: Node, operation: str = "") -> Place:
        own = NOWHERE if node is self._operator else place_of(node)
        named = operation or known.NAMES.get(
            node["node"], node["node"].lower() if node["node"] in known.SOURCES else node["node"]
        )
        if own.file:
            return Place(named, own.file, own.line)
        return Place(named, self._place.file, self._place.line)

    def _unread(self, node: Node, operation: str = "") -> None:
        self._unknown[self._place_of(node, operation)] = None

    # -- plans -------------------------------------------------------------------------------------------------------

    def rows(self, node: Node) -> Rows:
        """What is known of the rows of this operator."""
        outside = self._place, self._operator
        self._place, self._operator = self._lines(node) or self._place, node
        try:
            name = node["node"]
            read = getattr(self, f"_read_{name}", None)
            if name in known.PASSED:
                return self.rows(node["child"])
            if name in known.LEAVES:
                return self._leaf(node)
            if read is not None:
                made: Rows = read(node)
                return made
            return self._unknown_node(node)
        finally:
            self._place, self._operator = outside

    def _unknown_node(self, node: Node) -> Rows:
        self._unread(node)
        below = [child for name in ("child", "left", "right") if isinstance(child := node.get(name), dict)]
        below += [child for child in node.get("children", []) if isinstance(child, dict)]
        read = [self.rows(child) for child in below]
        output = [one["exprId"] for one in node.get("output", []) if isinstance(one, dict)]
        ids = output or [id_ for one in read for id_ in one.columns]
        causes = NONE.union(*[self._all(one) for one in read])
        return Rows(dict.fromkeys(ids, Value(causes)), causes, streaming=any(one.streaming for one in read))

    @staticmethod
    def _all(rows: Rows) -> Causes:
        return rows.varies.union(*(value.causes for value in rows.columns.values()), *(
            {tie.cause for tie in value.ties} for value in rows.columns.values()
        ))  # fmt: skip

    def _leaf(self, node: Node) -> Rows:
        output = [one["exprId"] for one in node["output"]]
        self._inputs_names.update((one["exprId"], one["name"]) for one in node["output"])
        streaming = node["node"].startswith("Streaming") or bool(node.get("isStreaming"))
        rows = Rows(dict.fromkeys(output, FIXED), streaming=streaming, keeps_arrival=True)
        if node["node"] == "Range":
            return replace(rows, keys=(frozenset(output),))
        if node["node"] == "LocalRelation" and len(node.get("data", [])) == 1:
            return replace(rows, keys=(frozenset(),))
        return rows

    def _read_LogicalRDD(self, node: Node) -> Rows:  # noqa: N802 - as Spark calls it
        rows = self._leaf(node)
        if not self._is_input(node):
            self._unread(node, "rows of an RDD")
        ids = list(rows.columns)
        keys = self._inputs.get(node["rdd"], ())
        return replace(rows, keys=tuple(frozenset(ids[place] for place in key) for key in keys))

    def _read_OneRowRelation(self, node: Node) -> Rows:  # noqa: N802
        return Rows({}, keys=(frozenset(),))

    def _read_Project(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        return self._projected(rows, node["projectList"])

    def _projected(self, rows: Rows, listed: Sequence[Node]) -> Rows:
        columns: dict[Id, Value] = {}
        facts = list(rows.determines)
        times = set(rows.times)
        for one in listed:
            id_ = one["exprId"]
            columns[id_] = self._settled(self.value(one, rows), rows, self._ids(one))
            if one["node"] != "AttributeReference":
                facts += self._facts(one, id_)
                if self._ids(one) & rows.times:
                    times.add(id_)
        return replace(rows, columns=columns, determines=tuple(facts), times=frozenset(times))

    def _facts(self, one: Node, id_: Id) -> Iterator[tuple[Ids, Id]]:
        """What an expression and its columns determine of each other."""
        if self._is_pure(one):
            yield self._ids(one), id_
        for fixed in self._fixed_by(one):
            yield frozenset({id_}), fixed

    def _read_DataFrameDropColumns(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        dropped = self._ids(node["dropList"])
        return replace(rows, columns={id_: value for id_, value in rows.columns.items() if id_ not in dropped})

    def _read_Filter(self, node: Node) -> Rows:  # noqa: N802
        return self._filtered(self.rows(node["child"]), node["condition"])

    def _filtered(self, rows: Rows, condition: Node) -> Rows:
        value = self.value(condition, rows)
        used = self._ids(condition)
        settled = self._settled(value, rows, used)
        columns = dict(rows.columns)
        for tie in settled.ties:
            # Of tied rows any may pass; what they agree in is the same whichever does.
            agreed = rows.closure(tie.base)
            for id_, own in columns.items():
                if id_ not in agreed and tie not in own.ties:
                    columns[id_] = replace(own, varies=own.varies | {tie.cause})
        facts = list(rows.determines)
        for part in _conjuncts(condition):
            if part["node"] in ("EqualTo", "EqualNullSafe"):
                left, right = part["left"], part["right"]
                for one, other in ((left, right), (right, left)):
                    facts += [(self._ids(other), fixed) for fixed in self._fixed_by(one) if self._is_pure(other)]
        return replace(
            rows,
            columns=columns,
            varies=rows.varies | settled.causes,
            merges=rows.merges - settled.causes,
            determines=tuple(facts),
        )

    def _read_Aggregate(self, node: Node) -> Rows:  # noqa: N802
        below = self.rows(node["child"])
        grouping: list[Node] = node["groupingExpressions"]
        same = frozenset(fixed for one in grouping for fixed in self._fixed_by(one))
        context = self._ids(grouping)
        by = [self._settled(self.value(one, below), below, context) for one in grouping]
        told_apart = NONE.union(*(value.causes for value in by), *({tie.cause for tie in value.ties} for value in by))
        self._require_exact_keys(grouping, node)
        group = _Group(below.closure(same), context=context)
        texts = [_text(one) for one in grouping]
        columns: dict[Id, Value] = {}
        key: set[Id] = {one["exprId"] for one in grouping if one["node"] == "AttributeReference"}
        named = {place for place, one in enumerate(grouping) if one["node"] == "AttributeReference"}
        for one in node["aggregateExpressions"]:
            inner = one["child"] if one["node"] == "Alias" else one
            if _text(inner) in texts:
                place = texts.index(_text(inner))
                columns[one["exprId"]] = by[place]
                key.add(one["exprId"])
                named.add(place)
                continue
            columns[one["exprId"]] = self._aggregated(one, below, group, told_apart)
        facts = [(of, made) for of, made in below.determines if made in key and of <= key]
        for one in node["aggregateExpressions"]:
            if one["node"] == "Alias" and one["child"]["node"] == "AttributeReference":
                facts += [
                    (frozenset({one["exprId"]}), one["child"]["exprId"]),
                    (frozenset({one["child"]["exprId"]}), one["exprId"]),
                ]
        keys = (frozenset(key),) if len(named) == len(grouping) else ()
        # A group is there whichever of its parts are; and without keys there is one row.
        varies = (below.varies - below.merges) | told_apart if grouping else NONE
        bounded = frozenset(id_ for id_ in key if id_ in below.times) | frozenset(
            one["exprId"]
            for one in node["aggregateExpressions"]
            if "exprId" in one and self._ids(one) & below.times and one["exprId"] in key
        )
        if below.streaming:
            self._stateful(node, below, bool(self._ids(grouping) & below.times), "groupBy")
        return Rows(
            columns,
            varies,
            told_apart - below.varies,
            keys,
            tuple(facts),
            streaming=below.streaming,
            times=bounded,
            delays=below.delays,
        )

    def _aggregated(self, one: Node, below: Rows, group: _Group, told_apart: Causes) -> Value:
        """A column of an Aggregate."""
        own = self.value(one, below, group)
        own = self._settled(own, below, self._ids(one) | group.context)
        function = _only_function(one)
        name = None if function is None else function["aggregateFunction"]["node"]
        rows = below.varies
        plain = function is not None and not function["isDistinct"] and function.get("filter") is None
        if function is not None and plain and below.merges and name in known.MERGES.values():
            column = _only_argument(function)
            value = below.columns.get(column["exprId"]) if column is not None else None
            if value is not None and value.partial == name:
                # Sums of parts are summed again: how the parts were cut does not matter.
                rows, own = rows - below.merges, replace(own, varies=(own.varies - below.merges) | value.whole)
        varies = own.varies | rows | told_apart
        merged = known.MERGES.get(name or "") if plain else None
        return Value(varies, own.listing, own.ties, merged, own.varies | rows)

    def _require_exact_keys(self, keys: Iterable[Node], node: Node) -> None:
        """Under a collation, texts that differ are the same key, and any of them may stand for it."""
        for one in nodes_of(list(keys)):
            if str(one.get("dataType", "")).startswith("string collate"):
                self._unread(node, f"{known.NAMES.get(node['node'], node['node'])} by a collated text")

    def _read_Deduplicate(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        keys = self._ids(node["keys"])
        told_apart = NONE.union(*(rows.columns[id_].causes | {t.cause for t in rows.columns[id_].ties} for id_ in keys))
        self._require_exact_keys(node["keys"], node)
        agreed = rows.closure(keys)
        columns = dict(rows.columns)
        cause = self._found("DUPLICATE_CHOICE", node)
        for id_, value in columns.items():
            if id_ not in agreed:
                columns[id_] = replace(value, varies=value.varies | {cause}, partial=None)
        if rows.streaming:
            if node["node"] == "Deduplicate":
                self._stateful(node, rows, bool(keys & rows.times), "dropDuplicates")
            else:
                self._stateful(node, rows, True, "dropDuplicatesWithinWatermark")
        return replace(
            rows, columns=columns, varies=rows.varies | told_apart, merges=NONE, keys=(*rows.keys, keys), order=None,
            partitioned=None, keeps_arrival=False,
        )  # fmt: skip

    _read_DeduplicateWithinWatermark = _read_Deduplicate  # noqa: N815

    def _read_Distinct(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        return replace(
            rows, varies=self._all(rows), merges=NONE, keys=(*rows.keys, frozenset(rows.columns)), order=None,
            partitioned=None, keeps_arrival=False,
        )  # fmt: skip

    def _read_Sort(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        order: list[Node] = node["order"]
        columns = frozenset(fixed for one in order for fixed in self._fixed_by(one["child"]))
        values = [self._settled(self.value(one["child"], rows), rows, frozenset(rows.columns)) for one in order]
        causes = NONE.union(*(value.causes | {tie.cause for tie in value.ties} for value in values))
        within = None if node["global"] else rows.partitioned if rows.partitioned is not None else frozenset()
        return replace(rows, order=Order(columns, causes, within), keeps_arrival=False)

    def _read_GlobalLimit(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        number = node.get("limitExpr") or node.get("offsetExpr") or {}
        count = number.get("value") if number.get("node") == "Literal" else None
        if frozenset() in rows.keys or count == 0:
            return rows
        order = rows.order if rows.order is not None and rows.order.within is None else None
        agreed = rows.closure(frozenset() if order is None else order.columns)
        cause = self._found("LIMIT_WITHOUT_ORDER" if order is None else "TIED_ORDER", node)
        chosen = NONE if order is None else order.causes
        columns = {}
        for id_, value in rows.columns.items():
            # A limit of rows of which it is not known which there are takes others of them.
            more = chosen | rows.varies | (NONE if id_ in agreed or chosen else {cause})
            more |= {tie.cause for tie in value.ties} if id_ in agreed else NONE
            columns[id_] = replace(value, varies=value.varies | more, partial=None)
        keys = (*rows.keys, frozenset()) if count == 1 and node["node"] != "Offset" else rows.keys
        return replace(rows, columns=columns, merges=NONE, keys=keys)

    _read_Offset = _read_GlobalLimit  # noqa: N815
    _read_Tail = _read_GlobalLimit  # noqa: N815

    def _read_Sample(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        if (
            node.get("lowerBound") in ("0.0", 0)
            and node.get("upperBound") in ("1.0", 1)
            and not node["withReplacement"]
        ):
            return rows
        return replace(rows, varies=rows.varies | {self._found("SAMPLE", node, operation="sample")}, merges=NONE)

    def _read_Repartition(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        if node["shuffle"]:
            return replace(rows, order=None, partitioned=None, keeps_arrival=False)
        # Partitions are put together whole: what is sorted inside of them stays so only if it need not be merged.
        order = rows.order if rows.order is not None and rows.order.within is not None else None
        return replace(rows, order=order)

    def _read_RepartitionByExpression(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        by = node["partitionExpressions"]
        own = frozenset(one["exprId"] for one in by if one["node"] == "AttributeReference")
        known = bool(by) and len(own) == len(by)
        return replace(rows, order=None, partitioned=own if known else None, keeps_arrival=False)

    _read_RebalancePartitions = _read_RepartitionByExpression  # noqa: N815

    def _read_EventTimeWatermark(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        time, delay = self._ids(node["eventTime"]), str(node["delay"])
        return replace(rows, times=rows.times | time, delays=rows.delays | {delay})

    def _read_UpdateEventTimeWatermarkColumn(self, node: Node) -> Rows:  # noqa: N802
        return self._read_EventTimeWatermark(node)

    def _read_Generate(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        generator = node["generator"]
        made = [one["exprId"] for one in node["generatorOutput"]]
        if generator["node"] not in known.GENERATORS:
            self._unread(generator)
        inner = [self._settled(self.value(one, rows), rows, self._ids(one)) for one in _children(generator)]
        varies = NONE.union(*(value.varies | {tie.cause for tie in value.ties} for value in inner))
        listing = NONE.union(*(value.listing for value in inner))
        columns = dict(rows.columns)
        for place, id_ in enumerate(made):
            numbers = generator["node"] == "PosExplode" and place == 0
            columns[id_] = Value(varies | listing if numbers else varies)
        if listing and generator["node"] not in ("Explode", "PosExplode", "Inline"):
            varies |= listing
        return replace(
            rows, columns=columns, varies=rows.varies | varies, merges=NONE, keys=(), order=None, partitioned=None
        )

    def _read_Expand(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        output = [one["exprId"] for one in node["output"]]
        made: list[list[Value]] = [[] for _ in output]
        for projection in node["projections"]:
            for place, one in enumerate(projection):
                made[place].append(self._settled(self.value(one, rows), rows, self._ids(projection)))
        columns = {
            id_: Value(
                NONE.union(*(v.varies | {tie.cause for tie in v.ties} for v in values)),
                NONE.union(*(v.listing for v in values)),
            )
            for id_, values in zip(output, made, strict=True)
        }
        return replace(rows, columns=columns, merges=NONE, keys=(), determines=(), order=None, keeps_arrival=False)

    def _read_Union(self, node: Node) -> Rows:  # noqa: N802
        parts = [self.rows(child) for child in node["children"]]
        columns = {}
        outputs = [_output(child, one) for child, one in zip(node["children"], parts, strict=True)]
        joint = [self._joint(one) for one in parts]
        for place, id_ in enumerate(outputs[0]):
            values = [one[output[place]] for one, output in zip(joint, outputs, strict=True)]
            columns[id_] = Value(NONE.union(*(v.varies for v in values)), NONE.union(*(v.listing for v in values)))
        times = parts[0].times if all(one.times for one in parts) else frozenset()
        delays = frozenset().union(*(one.delays for one in parts))
        if len(delays) > 1 and sum(one.streaming for one in parts) > 1:
            self._stream[self._found("SHARED_WATERMARK", node)] = None
        return Rows(
            columns,
            NONE.union(*(one.varies for one in parts)),
            streaming=any(one.streaming for one in parts),
            times=times,
            delays=delays,
        )

    def _joint(self, rows: Rows) -> dict[Id, Value]:
        """The columns, where all of them are looked at together."""
        return {id_: self._settled(value, rows, frozenset(rows.columns)) for id_, value in rows.columns.items()}

    def _read_Except(self, node: Node) -> Rows:  # noqa: N802
        left, right = self.rows(node["left"]), self.rows(node["right"])
        varies = self._all(left) | self._all(right)
        keys = left.keys if node["isAll"] else (*left.keys, frozenset(left.columns))
        return replace(left, varies=varies, merges=NONE, keys=keys, order=None, partitioned=None, keeps_arrival=False)

    _read_Intersect = _read_Except  # noqa: N815

    def _read_WithCTE(self, node: Node) -> Rows:  # noqa: N802
        for definition in node["cteDefs"]:
            self._tables[definition["id"]] = self.rows(definition["child"])
        return self.rows(node["plan"])

    def _read_CTERelationRef(self, node: Node) -> Rows:  # noqa: N802
        known = self._tables.get(node["cteId"])
        output = [one["exprId"] for one in node["output"]]
        if known is None:
            self._unread(node)
            return Rows(dict.fromkeys(output, FIXED))
        renamed = dict(zip(known.columns, output, strict=False))
        facts = [pair for old, new in renamed.items() for pair in ((frozenset({old}), new), (frozenset({new}), old))]
        columns = {renamed[id_]: value for id_, value in known.columns.items()}
        return replace(
            known,
            columns=columns,
            determines=(*known.determines, *facts),
            times=known.times | {renamed[t] for t in known.times if t in renamed},
        )

    def _read_Join(self, node: Node) -> Rows:  # noqa: N802
        left, right = self._present(self.rows(node["left"])), self._present(self.rows(node["right"]))
        kind = node["joinType"]
        condition = node.get("condition")
        both = Rows(
            {**left.columns, **right.columns},
            left.varies | right.varies,
            determines=(*left.determines, *right.determines),
            streaming=left.streaming or right.streaming,
            times=left.times | right.times,
            delays=left.delays | right.delays,
        )
        equal = list(self._equalities(condition, left, right)) if condition is not None else []
        varies = both.varies
        columns = dict(both.columns)
        if condition is not None:
            settled = self._settled(self.value(condition, both), both, self._ids(condition))
            varies |= settled.causes | {tie.cause for tie in settled.ties}
        left_side = frozenset(a for a, _ in equal)
        right_side = frozenset(b for _, b in equal)
        right_one = any(key <= right.closure(right_side) for key in right.keys)
        left_one = any(key <= left.closure(left_side) for key in left.keys)
        only_equal = condition is None or len(equal) == len(list(_conjuncts(condition)))
        facts = list(both.determines)
        if kind in ("LeftSemi", "LeftAnti") or kind.startswith("ExistenceJoin"):
            self._stateful_join(node, left, right, condition)
            return replace(left, varies=varies, order=None, partitioned=None, keeps_arrival=False)
        if kind == "Inner" or kind == "Cross":
            facts += [(frozenset({a}), b) for a, b in equal] + [(frozenset({b}), a) for a, b in equal]
        else:  # rows of nulls have none of the facts of the side that they stand for
            facts = [
                *(left.determines if kind == "LeftOuter" else ()),
                *(right.determines if kind == "RightOuter" else ()),
            ]
        if right_one and only_equal and kind in ("Inner", "LeftOuter"):
            facts += [(left_side, id_) for id_ in right.columns]
        if left_one and only_equal and kind in ("Inner", "RightOuter"):
            facts += [(right_side, id_) for id_ in left.columns]
        keys: tuple[Ids, ...] = ()
        if right_one and kind in ("Inner", "LeftOuter"):
            keys += left.keys
        if left_one and kind in ("Inner", "RightOuter"):
            keys += right.keys
        if not keys and kind in ("Inner", "Cross"):
            keys = tuple(one | other for one in left.keys for other in right.keys)
        self._stateful_join(node, left, right, condition)
        columns = {id_: replace(value, partial=None) for id_, value in columns.items()}
        return replace(both, columns=columns, varies=varies, keys=keys, determines=tuple(facts))

    def _present(self, rows: Rows) -> Rows:
        """The same, in terms of columns that are there: both sides of a join may have lost the same one."""
        here = frozenset(rows.columns)
        facts = [(of, made) for of, made in rows.determines if of <= here and made in here]
        facts += [(frozenset({id_}), made) for id_ in here for made in (rows.closure({id_}) & here) - {id_}]
        facts += [(frozenset(), made) for made in rows.closure(()) & here]
        stands_for = {made: id_ for id_ in here for made in rows.closure({id_}) if made not in here}
        keys = [frozenset(id_ if id_ in here else stands_for.get(id_, -1) for id_ in key) for key in rows.keys]
        return replace(
            rows,
            columns=self._joint(rows),
            keys=tuple(key for key in keys if -1 not in key),
            determines=tuple(dict.fromkeys(facts)),
            times=rows.times & here,
        )

    def _equalities(self, condition: Node, left: Rows, right: Rows) -> Iterator[tuple[Id, Id]]:
        for part in _conjuncts(condition):
            if part["node"] not in ("EqualTo", "EqualNullSafe"):
                continue
            one, other = part["left"], part["right"]
            if one["node"] == other["node"] == "AttributeReference":
                a, b = one["exprId"], other["exprId"]
                if a in left.columns and b in right.columns:
                    yield a, b
                elif b in left.columns and a in right.columns:
                    yield b, a

    def _stateful_join(self, node: Node, left: Rows, right: Rows, condition: Node | None) -> None:
        if not (left.streaming and right.streaming):
            return
        if len(left.delays | right.delays) > 1:
            self._stream[self._found("SHARED_WATERMARK", node)] = None
        used = self._ids(condition) if condition is not None else frozenset()
        bounded = bool(used & left.times) and bool(used & right.times)
        joined = replace(left, delays=left.delays if right.delays else frozenset())
        self._stateful(node, joined, bounded, "join")

    def _stateful(self, node: Node, below: Rows, bounded: bool, operation: str) -> None:
        """An operator that keeps state for a stream."""
        if self._mode == "complete" and node["node"] == "Aggregate":
            return  # the whole table is sent with each batch, so all of it is kept on purpose
        if below.delays:
            self._assumptions[known.NOT_LATE] = None
        if not below.delays:
            self._stream[self._found("NO_WATERMARK", node, operation=operation)] = None
        elif not bounded:
            self._stream[self._found("UNBOUNDED_STATE", node, operation=operation)] = None

    def _read_Window(self, node: Node) -> Rows:  # noqa: N802
        rows = self.rows(node["child"])
        partition = node["partitionSpec"]
        same = frozenset(fixed for one in partition for fixed in self._fixed_by(one))
        own = frozenset(one["exprId"] for one in partition if one["node"] == "AttributeReference")
        columns, keys = dict(rows.columns), list(rows.keys)
        for one in node["windowExpressions"]:
            window = next(inner for inner in nodes_of(one) if inner["node"] == "WindowExpression")
            columns[one["exprId"]] = self._windowed(window, rows, same, partition)
            if window["windowFunction"]["node"] == "RowNumber" and len(own) == len(partition):
                keys.append(own | {one["exprId"]})
        return replace(
            rows, columns=columns, merges=NONE, keys=tuple(keys), order=None, keeps_arrival=False, partitioned=None
        )

    def _windowed(self, window: Node, rows: Rows, same: Ids, partition: Sequence[Node]) -> Value:
        function, spec = window["windowFunction"], window["windowSpec"]
        order = [one["child"] for one in spec["orderSpec"]]
        by = frozenset(fixed for one in order for fixed in self._fixed_by(one))
        sides = [*partition, *order]
        values = [self._settled(self.value(one, rows), rows, frozenset(rows.columns)) for one in sides]
        causes = rows.varies.union(*(value.causes | {tie.cause for tie in value.ties} for value in values))
        name = function["node"]
        agreed = rows.closure(same | by)
        everything = frozenset(rows.columns) <= agreed
        tie = Tie(self._found("TIED_ORDER", function, "" if order else "no order at all"), same | by)
        if name in known.RANKS:
            return Value(causes)
        if name in known.NUMBERED:
            return Value(causes) if everything else Value(causes, ties=frozenset({tie}))
        frame = spec["frameSpecification"]
        by_rows = frame.get("frameType") == "RowFrame"
        ends = [frame.get(side, {}).get("node", "").rstrip("$") for side in ("lower", "upper")]
        whole = ends == ["UnboundedPreceding", "UnboundedFollowing"]
        if name in known.NEIGHBOURS or name == "NthValue":
            own = self.value(function["input"], rows)
            used = self._ids(function["input"])
            own = self._settled(own, rows, frozenset(rows.columns))
            varies = causes | own.causes | {t.cause for t in own.ties}
            if everything:
                return Value(varies)
            if used <= agreed:
                return Value(varies, ties=frozenset({tie}))
            return Value(varies | {tie.cause})
        group = _Group(
            rows.closure(same), agreed if order else None, by_rows=by_rows and not whole, context=self._ids(sides)
        )
        own = self.value(function, rows, group)
        own = self._settled(own, rows, frozenset(rows.columns))
        varies, ties = own.varies | causes, own.ties
        if group.by_rows and not everything:
            used = self._ids(function)
            if used <= agreed:
                ties |= {tie}
            else:
                varies |= {tie.cause}
        return Value(varies, own.listing, ties)

    # -- functions of Python on whole frames -------------------------------------------------------------------------

    def _read_FlatMapGroupsInPandas(self, node: Node) -> Rows:  # noqa: N802
        below = self.rows(node["child"])
        called = node.get("functionExpr") or node.get("func") or {}
        output = [one["exprId"] for one in node["output"]]
        causes = self._all(below) | self._group_function(called, node)
        return Rows(dict.fromkeys(output, Value(causes)), below.varies | causes, streaming=below.streaming)

    _read_FlatMapGroupsInArrow = _read_FlatMapGroupsInPandas  # noqa: N815

    def _group_function(self, called: Node, node: Node) -> Causes:
        """What the result of a Python function of all rows of a group depends on."""
        function = _function(called.get("command", ""))
        operation = f"{known.NAMES.get(node['node'], '')}({called.get('name', 'a function')})".removeprefix("()")
        if function is None or not functions.is_readable(function):
            self._unread(node, operation)
            return NONE
        varies = functions.why_varies(function)
        if varies is not None:
            return frozenset({self._found("UDF_VARIES", node, f"it {varies}", operation=operation)})
        words = functions.words_of(function)
        looks = sorted(words & functions.ORDER_WORDS)
        if looks and not words & functions.SORT_WORDS:
            detail = f"it uses {', '.join(looks[:3])}"
            return frozenset({self._found("GROUP_FUNCTION_ORDER", node, detail, operation=operation)})
        exact = not any(one.get("dataType") in ("double", "float") for one in _children(called))
        if not exact or not functions.only_adds(function):
            self._unread(node, operation)
        return NONE

    def _read_MapInPandas(self, node: Node) -> Rows:  # noqa: N802
        below = self.rows(node["child"])
        called = node.get("func") or node.get("functionExpr") or {}
        output = [one["exprId"] for one in node["output"]]
        function = _function(called.get("command", ""))
        varies = functions.why_varies(function) if function is not None else None
        causes = self._all(below)
        if varies is not None:
            causes |= {self._found("UDF_VARIES", node, f"it {varies}")}
        else:
            self._unread(node)  # it sees rows as they were cut into partitions
        return Rows(dict.fromkeys(output, Value(causes)), below.varies | causes, streaming=below.streaming)

    _read_MapInArrow = _read_MapInPandas  # noqa: N815
    _read_PythonMapInArrow = _read_MapInPandas  # noqa: N815

    # -- expressions -------------------------------------------------------------------------------------------------

    def value(self, node: Node, rows: Rows, group: _Group | None = None) -> Value:
        """What an expression depends on, for a row of these; aggregate functions, for a group of them."""
        name = node["node"]
        if name == "AttributeReference":
            return rows.columns.get(node["exprId"], FIXED)
        if name in ("Literal", "NamedLambdaVariable", "OuterReference"):
            return FIXED
        if name == "AggregateExpression":
            return self._summary(node, rows, group or _Group(frozenset()))
        if name == "WindowExpression":  # inside another expression, before the analyser takes it out: not seen
            self._unread(node)
        if name in known.SOURCES:
            cause = self._found(known.SOURCES[name], node)
            return _joined([Value(frozenset({cause})), *(self.value(one, rows, group) for one in _children(node))])
        if "plan" in node and isinstance(node["plan"], dict):
            inner = self.rows(node["plan"])
            outer = [self.value(one, rows, group) for one in _children(node)]
            outer += [self.value(one, rows, group) for one in nodes_of(node.get("outerAttrs", []))]
            # EXISTS asks only whether there are rows.
            causes = (inner.varies if name == "Exists" else self._all(inner)).union(
                *(value.causes | {t.cause for t in value.ties} for value in outer)
            )
            return Value(causes)
        if name == "PythonUDF":
            return self._python(node, rows, group)
        if name in known.OPAQUE or not self._is_known(name):
            self._unread(node)
        children = [self.value(one, rows, group) for one in _children(node)]
        if not any(value.listing for value in children):
            only = children[0] if name in ("Alias",) and len(children) == 1 else None
            return only or _joined(children)
        return self._of_lists(node, children)

    def _of_lists(self, node: Node, children: list[Value]) -> Value:
        """The value of a function of arrays whose elements are in no fixed order."""
        name = node["node"]
        joined = _joined(children)
        if name == "Alias":
            return children[0]
        if name in known.ONLY_ELEMENTS or (name == "ArraySort" and _is_default_comparator(node["function"])):
            return replace(joined, listing=NONE)
        if name in known.KEEPS_ELEMENTS and (name != "Cast" or isinstance(node["dataType"], dict)):
            return joined
        if name in ("ArrayTransform", "ArrayFilter", "ArrayExists", "ArrayForAll"):
            if len(node["function"].get("arguments", [])) == 1:
                return replace(joined, listing=NONE) if name in ("ArrayExists", "ArrayForAll") else joined
        elif name == "ArrayAggregate" and (kind := _merge_kind(node["merge"])) is not None:
            if kind == "exact":
                return replace(joined, listing=NONE)
            floats = self._found("FLOAT_SUM", node, operation="aggregate")
            return replace(joined, listing=NONE, varies=joined.varies | {floats})
        elif name in ("ConcatWs", "ArrayJoin"):
            texts = {replace(one, rule=RULES["TEXT_ORDER"]) for one in joined.listing}
            return replace(joined, listing=NONE, varies=joined.varies | texts)
        return replace(joined, listing=NONE, varies=joined.causes)

    def _python(self, node: Node, rows: Rows, group: _Group | None) -> Value:
        children = [self.value(one, rows, group) for one in _children(node)]
        joined = _joined(children)
        function = _function(node["command"])
        operation = f"{node['name']}(...)"
        if node.get("evalType") not in known.ROW_BY_ROW:
            causes = self._group_function(node, node) if group is not None else NONE
            if group is None:
                self._unread(node, operation)  # it sees rows in batches
            return replace(joined, varies=joined.causes | causes, listing=NONE)
        if function is None or not functions.is_readable(function):
            self._unread(node, operation)
            return replace(joined, varies=joined.causes, listing=NONE)
        varies = functions.why_varies(function)
        if varies is None and node.get("udfDeterministic") is False:
            varies = "is marked as not deterministic"
        if varies is not None:
            cause = self._found("UDF_VARIES", node, f"it {varies}", operation=operation)
            return replace(joined, varies=joined.causes | {cause}, listing=NONE)
        if joined.listing and functions.takes_in_any_order(function):
            if "double" in _text(node.get("children", [])) or "float" in _text(node.get("children", [])):
                floats = self._found("FLOAT_SUM", node, operation=operation)
                return replace(joined, listing=NONE, varies=joined.varies | {floats})
            return replace(joined, listing=NONE)
        return replace(joined, varies=joined.causes, listing=NONE)

    def _summary(self, node: Node, rows: Rows, group: _Group) -> Value:
        """What an aggregate function depends on."""
        function = node["aggregateFunction"]
        name = function["node"]
        if name == "PythonUDF":
            return self._python(function, rows, group)
        used = self._ids(function) | self._ids(node.get("filter"))
        children = [self._settled(self.value(one, rows), rows, used | group.context) for one in _children(function)]
        if isinstance(node.get("filter"), dict):
            only_if = self._settled(self.value(node["filter"], rows), rows, used | group.context)
            children.append(Value(only_if.causes, ties=only_if.ties))
        joined = _joined(children)
        ties = joined.ties
        joined = Value(
            joined.causes | {tie.cause for tie in ties if not self._may_sum(tie, rows, used | group.context)}
        )
        agreed = group.same if group.order is None else group.order
        if name in known.IN_ANY_ORDER:
            return joined
        if name in known.ADD or name in known.FLOATING:
            in_order = group.order is not None and self._ids(function) <= group.order
            if name in known.ADD or in_order:  # in one order, the digits are always the same
                return self._added(function, joined, in_order)
            return Value(joined.varies | {self._found("FLOAT_SUM", function)})
        if name in known.ONE_OF:
            fine = self._ids(function) <= agreed
            return (
                joined
                if fine
                else Value(
                    joined.varies | {self._found("FIRST_VALUE" if group.order is None else "TIED_ORDER", function)}
                )
            )
        if name in known.BY:
            by = self._fixed_by(function["orderingExpr"])
            fine = self._ids(function["valueExpr"]) <= rows.closure(group.same | by)
            return joined if fine else Value(joined.varies | {self._found("TIED_ORDER", function)})
        if name in ("CollectList", "CollectSet", "Collect"):
            one_value = self._ids(function) <= agreed
            return joined if one_value else Value(joined.varies, frozenset({self._found("LIST_ORDER", function)}))
        if name == "ListAgg":
            by = frozenset(
                fixed for one in function.get("orderExpressions", []) for fixed in self._fixed_by(one["child"])
            )
            fine = self._ids(function["child"]) <= rows.closure(group.same | by)
            return joined if fine else Value(joined.varies | {self._found("TEXT_ORDER", function)})
        if name == "Mode":
            fine = bool(function.get("reverseOpt")) or self._ids(function) <= group.same
            return joined if fine else Value(joined.varies | {self._found("TIED_ORDER", function, operation="mode")})
        if name in known.ROUGH:
            return Value(joined.varies | {self._found("APPROXIMATE", function)})
        self._unread(function)
        return joined

    def _may_sum(self, tie: Tie, rows: Rows, used: Ids) -> bool:
        agreed = rows.closure(tie.base)
        return all(id_ in agreed or tie in rows.columns.get(id_, FIXED).ties for id_ in used)

    def _added(self, function: Node, joined: Value, in_order: bool) -> Value:
        if in_order:
            return joined
        type_ = self._type(function.get("child") or _children(function)[0])
        if type_ in ("double", "float", "string", None):
            return Value(joined.varies | {self._found("FLOAT_SUM", function)})
        if function["node"] in ("Average", "TryAverage") and not type_.startswith("decimal"):
            self._assumptions[known.NO_WIDE_AVERAGE] = None
        else:
            self._assumptions[known.NO_OVERFLOW] = None
        return joined

    def _type(self, node: Node) -> str | None:
        """The type of an expression, where it is easily seen; None if it may be a floating number."""
        if isinstance(type_ := node.get("dataType"), str):
            return type_
        if node["node"] in known.INTEGERS:
            return "integer"
        if node["node"] in ("GetStructField", "GetArrayItem", "ElementAt"):
            return _part_type(node)
        if node["node"] in ("Alias", "UnaryMinus", "Abs", "Coalesce", "Greatest", "Least", "Nvl"):
            types = {self._type(one) for one in _children(node)}
            return types.pop() if len(types) == 1 else None
        if node["node"] in ("Add", "Subtract", "Multiply", "Remainder", "Pmod"):
            types = {self._type(node["left"]), self._type(node["right"])}
            return (
                types.pop()
                if len(types) == 1
                else "decimal"
                if all(t and t.startswith("decimal") for t in types)
                else None
            )
        if node["node"] in ("CaseWhen", "If"):
            types = {self._type(one) for one in _results(node)} - {"void"}
            return types.pop() if len(types) == 1 else None
        if node["node"] == "Divide" and str(self._type(node["left"])).startswith("decimal"):
            return "decimal"
        return None

    def _settled(self, value: Value, rows: Rows, used: Ids) -> Value:
        """The value, where it is looked at together with these columns."""
        lost = {tie for tie in value.ties if not self._may_sum(tie, rows, used)}
        if not lost:
            return value
        return replace(value, varies=value.varies | {tie.cause for tie in lost}, ties=value.ties - lost)

    @staticmethod
    def _ids(value: Any) -> Ids:
        return frozenset(one["exprId"] for one in nodes_of(value) if one["node"] == "AttributeReference")

    def _fixed_by(self, node: Node) -> Ids:
        """The columns whose values are known if the value of this expression is."""
        name = node["node"]
        if name == "AttributeReference":
            return frozenset() if str(node["dataType"]).startswith("string collate") else frozenset({node["exprId"]})
        if name in ("Alias", "UnaryMinus", "KnownNotNull", "KnownNullable"):
            return self._fixed_by(node["child"])
        if name == "Cast" and self._type(node["child"]) in _WIDENING.get(str(node["dataType"]), ()):
            return self._fixed_by(node["child"])
        if name == "CreateNamedStruct":
            return frozenset().union(*(self._fixed_by(one) for one in node["children"][1::2]))
        return frozenset()

    def _is_pure(self, node: Node) -> bool:
        """Whether it has one value for each value of its columns."""
        for one in nodes_of(node):
            if one["node"] in known.SOURCES or one["node"] in known.OPAQUE or "plan" in one:
                return False
            if one["node"] in ("AggregateExpression", "WindowExpression"):
                return False
            if one["node"] == "PythonUDF":
                function = _function(one["command"])
                if function is None or one.get("evalType") not in known.ROW_BY_ROW or functions.why_varies(function):
                    return False
        return True


_WIDENING = {
    "string": ("byte", "short", "integer", "long", "date", "boolean"),
    "long": ("byte", "short", "integer"),
    "integer": ("byte", "short"),
    "double": ("byte", "short", "integer", "float"),
}
"""Casts that keep values apart."""


def _output(plan: Node, rows: Rows) -> list[Id]:
    """The columns of an operator by their places: one may be there twice."""
    while plan["node"] in _SAME_COLUMNS:
        plan = plan["plan"] if plan["node"] == "WithCTE" else plan["child"]
    listed = plan.get("projectList") if plan["node"] == "Project" else plan.get("aggregateExpressions")
    return [one["exprId"] for one in listed] if listed else list(rows.columns)


_SAME_COLUMNS = {
    *known.PASSED, "Filter", "Sort", "GlobalLimit", "Offset", "Tail", "Sample", "Repartition",
    "RepartitionByExpression", "RebalancePartitions", "Distinct", "Deduplicate",
    "DeduplicateWithinWatermark", "EventTimeWatermark", "WithCTE",
}  # fmt: skip


def _joined(values: Sequence[Value]) -> Value:
    return Value(
        NONE.union(*(value.varies for value in values)),
        NONE.union(*(value.listing for value in values)),
        frozenset().union(*(value.ties for value in values)),
    )


def _children(node: Node) -> list[Node]:
    """The expressions right below this one."""
    found: list[Node] = []

    def add(value: Any) -> None:
        if isinstance(value, dict) and "node" in value:
            found.append(value)
        elif isinstance(value, dict):
            for inner in value.values():
                add(inner)
        elif isinstance(value, list):
            for inner in value:
                add(inner)

    for name, value in node.items():
        if name not in ("plan", "outerAttrs", "dataType", "metadata"):
            add(value)
    return found


def _part_type(node: Node) -> str | None:
    """The type of a field of a struct, or of an element of an array, of a column."""
    of = (node.get("child") or node.get("left") or {}).get("dataType")
    if not isinstance(of, dict):
        return None
    found = of.get("elementType")
    if node["node"] == "GetStructField":
        found = of.get("fields", [])[node["ordinal"]]["type"] if of.get("type") == "struct" else None
    return found if isinstance(found, str) else None


def _results(node: Node) -> list[Node]:
    if node["node"] == "If":
        return [node["trueValue"], node["falseValue"]]
    others = [node["elseValue"]] if isinstance(node.get("elseValue"), dict) else []
    return [branch[1] for branch in node["branches"]] + others


def _conjuncts(condition: Node) -> Iterator[Node]:
    if condition["node"] == "And":
        yield from _conjuncts(condition["left"])
        yield from _conjuncts(condition["right"])
    else:
        yield condition


def _text(node: Any) -> str:
    """An expression, whoever wrote it and wherever."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: bare(inner) for name, inner in value.items() if name not in ("place", "resultId")}
        return [bare(inner) for inner in value] if isinstance(value, list) else value

    return json.dumps(bare(node), sort_keys=True)


def _only_function(one: Node) -> Node | None:
    """The aggregate function that this column is, if it is nothing else."""
    inner = one["child"] if one["node"] == "Alias" else one
    return inner if inner["node"] == "AggregateExpression" else None


def _only_argument(function: Node) -> Node | None:
    """The column that it is of, if that is all."""
    arguments = _children(function["aggregateFunction"])
    return arguments[0] if len(arguments) == 1 and arguments[0]["node"] == "AttributeReference" else None


def _common_key(relation: Dependence) -> tuple[str, ...]:
    """The fields that two events agree in if they depend on each other."""
    keys = [set(clause.key) for clause in relation.clauses]
    return tuple(sorted(set.intersection(*keys))) if keys else ()


def _kinds(relation: Dependence) -> int:
    """How many kinds a schema has; 1 for another relation."""
    return len(relation.kinds) if isinstance(relation, Schema) else 1


def _is_default_comparator(function: Node) -> bool:
    """Whether array_sort was given no function: then it compares whole elements."""
    names = [one["node"] for one in nodes_of(function.get("function", {}))]
    return names == _COMPARES_ELEMENTS


_VARIABLE = "NamedLambdaVariable"
_COMPARES_ELEMENTS = [
    *["If", "And", "IsNull", _VARIABLE, "IsNull", _VARIABLE, "Literal"],
    *["If", "IsNull", _VARIABLE, "Literal", "If", "IsNull", _VARIABLE, "Literal"],
    *[
        "If",
        "LessThan",
        _VARIABLE,
        _VARIABLE,
        "Literal",
        "If",
        "GreaterThan",
        _VARIABLE,
        _VARIABLE,
        "Literal",
        "Literal",
    ],
]
"""The function of an array_sort that was given none: nulls last, then smaller or greater as a whole."""


def _merge_kind(merge: Node) -> str | None:
    """Whether a fold that gives the same in every order is "exact" or "floating": acc + f(x), and structs of such."""
    arguments = merge.get("arguments", [])
    if len(arguments) != 2:
        return None
    total = arguments[0]["exprId"]

    def uses(node: Any) -> bool:
        return any(one["node"] == "NamedLambdaVariable" and one["exprId"] == total for one in nodes_of(node))

    def is_total(node: Node) -> bool:
        return bool(node["node"] == "NamedLambdaVariable" and node["exprId"] == total)

    def merged(body: Node, place: str | None) -> str | None:
        if body["node"] in ("Cast", "KnownNullable", "KnownNotNull"):
            return merged(body["child"], place)
        if body["node"] not in known.COMMUTATIVE:
            return None
        parts = body.get("children") or [body["left"], body["right"]]
        own = [one for one in parts if uses(one)]
        if len(own) != 1:
            return None
        inner = own[0]
        if (
            place is not None
            and inner["node"] == "GetStructField"
            and is_total(inner["child"])
            and inner.get("name") == place
        ):
            return "floating" if "double" in _text(parts) and body["node"] in ("Add", "Multiply") else "exact"
        if is_total(inner) and place is None:
            return (
                "floating"
                if ("double" in _text(parts) or "float" in _text(parts)) and body["node"] in ("Add", "Multiply")
                else "exact"
            )
        if body["node"] == inner["node"]:  # (acc + x) + y
            return merged(inner, place)
        return None

    body = merge["function"]
    if body["node"] == "CreateNamedStruct":
        named = list(zip(body["children"][::2], body["children"][1::2], strict=True))
        kinds = [merged(value, str(name.get("value"))) for name, value in named]
        return None if None in kinds else "floating" if "floating" in kinds else "exact"
    return merged(body, None)


@functools.lru_cache(maxsize=256)
def _function(command: str) -> Callable[..., Any] | None:
    """The Python function, as the tasks of Spark get it; None if it cannot be loaded here."""
    pickles: Any = CPickleSerializer()
    try:
        loaded = pickles.loads(base64.b64decode(command))
    except Exception:  # the border of user code: a module that is not here
        return None
    return loaded[0] if isinstance(loaded, tuple) and callable(loaded[0]) else None
