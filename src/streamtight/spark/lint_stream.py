"""The order lint on streams: does a watermark bound the state of each operator, and do two watermarks meet?

What is found here grows, or comes late: it does not reach single columns of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamtight.method.typecheck.findings import Finding
from streamtight.spark import lint_known as known
from streamtight.spark.lint_expression import conjuncts, ids_of, is_column
from streamtight.spark.lint_facts import Ids, Rows
from streamtight.spark.lint_notes import Notes
from streamtight.spark.plan import Node, nodes_of


class Streams:
    """What is found in the operators of a stream that keep state, in this output mode."""

    def __init__(self, notes: Notes, mode: str) -> None:
        self.findings: list[Finding] = []
        self._notes = notes
        self._mode = mode

    def aggregate(self, node: Node, below: Rows) -> None:
        """A group is kept until the watermark passes one of its keys."""
        # In complete mode the whole table is sent with each batch, so all of it is kept on purpose.
        if self._mode != "complete":
            bounded = any(keeps_watermark(one, below.times) for one in node["groupingExpressions"])
            self._keeps_state(node, below, bounded, "groupBy")

    def deduplicate(self, node: Node, below: Rows) -> None:
        """A key is kept until the watermark passes it, or for as long as the watermark says."""
        within = node["node"] == "DeduplicateWithinWatermark"
        bounded = within or not ids_of(node["keys"]).isdisjoint(below.times)
        self._keeps_state(node, below, bounded, known.NAMES[node["node"]])

    def join(self, node: Node, left: Rows, right: Rows) -> None:
        """Rows of both sides are kept until the condition and the watermarks say that no partner can come."""
        if not (left.streaming and right.streaming):
            return
        self._share_watermark(node, (left, right))
        condition = node.get("condition")
        bounded = condition is not None and all(
            any(_is_bounded(part, one.times, other.times) for part in conjuncts(condition))
            for one, other in ((left, right), (right, left))
        )
        delays = left.delays if right.delays else frozenset()  # one side without a watermark is never forgotten
        self._keeps_state(node, replace(left, delays=delays), bounded, "join")

    def union(self, node: Node, parts: Sequence[Rows]) -> None:
        """Rows of several streams, of which one may be behind the others."""
        if sum(one.streaming for one in parts) > 1:
            self._share_watermark(node, parts)

    def _share_watermark(self, node: Node, parts: Sequence[Rows]) -> None:
        if len({delay for one in parts for delay in one.delays}) > 1:
            self.findings.append(self._notes.found("SHARED_WATERMARK", node))

    def _keeps_state(self, node: Node, below: Rows, bounded: bool, operation: str) -> None:
        if not below.streaming:
            return
        if not below.delays:
            self.findings.append(self._notes.found("NO_WATERMARK", node, operation=operation))
            return
        self._notes.assume(known.NOT_LATE)
        if not bounded:
            self.findings.append(self._notes.found("UNBOUNDED_STATE", node, operation=operation))


def keeps_watermark(node: Node, times: Ids) -> bool:
    """Whether Spark knows of this value that a watermark bounds it: a column with one as it is, or a window of it."""
    if is_column(node):
        return node["exprId"] in times
    is_window = any(one["node"] == "PreciseTimestampConversion" for one in nodes_of(node))
    return is_window and not ids_of(node).isdisjoint(times)


def _is_bounded(condition: Node, times: Ids, others: Ids) -> bool:
    """Whether it says that a time is not much before one of the other side: then the other's watermark lets it go."""
    match condition["node"]:
        case "EqualTo" | "EqualNullSafe":
            sides = [("left", "right"), ("right", "left")]
        case "GreaterThan" | "GreaterThanOrEqual":
            sides = [("left", "right")]
        case "LessThan" | "LessThanOrEqual":
            sides = [("right", "left")]
        case _:
            return False
    for later, earlier in sides:
        (plus, minus), (plus_too, minus_too) = _added(condition[later]), _added(condition[earlier])
        if (plus | minus_too) & times and (minus | plus_too) & others:
            return True
    return False


def _added(node: Node) -> tuple[Ids, Ids]:
    """The columns that are added in this expression, and those that are subtracted."""
    if "Subtract" in node["node"] and "left" in node:
        (plus, minus), (plus_too, minus_too) = _added(node["left"]), _added(node["right"])
        return plus | minus_too, minus | plus_too
    return ids_of(node), frozenset()
