"""The order lint on streams: does a watermark bound the state of each operator, and do two watermarks meet?

What is found here grows, or comes late: it does not reach single columns of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from streamtight.method.typecheck.findings import Finding
from streamtight.spark import lint_known as known
from streamtight.spark.lint_expression import ids_of
from streamtight.spark.lint_facts import Rows
from streamtight.spark.lint_notes import Notes
from streamtight.spark.plan import Node


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
            self._keeps_state(node, below, not ids_of(node["groupingExpressions"]).isdisjoint(below.times), "groupBy")

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
        used = ids_of(node.get("condition"))
        bounded = not used.isdisjoint(left.times) and not used.isdisjoint(right.times)
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
