"""What the order lint notes while it reads a plan: findings with their places, what is not known, what is assumed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from streamtight.method.typecheck.findings import RULES, Finding
from streamtight.program.relation import NOWHERE, Place
from streamtight.spark import lint_known as known
from streamtight.spark.plan import Node, place_of


class Notes:
    """The notes on one plan. `lines` says where the user wrote an operator, if it is known."""

    def __init__(self, lines: Callable[[Node], Place | None]) -> None:
        self._lines = lines
        self._operator: Node = {}
        """The one that is read, and where it was written."""
        self._place = NOWHERE
        self._unknown: dict[Place, None] = {}
        self._assumptions: dict[str, None] = {}

    @property
    def unknown(self) -> tuple[Place, ...]:
        """What is not known, each once."""
        return tuple(self._unknown)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What must be true of the rows, each once."""
        return tuple(self._assumptions)

    @contextlib.contextmanager
    def at(self, operator: Node) -> Iterator[None]:
        """While this operator is read."""
        outside = self._place, self._operator
        self._place, self._operator = self._lines(operator) or self._place, operator
        try:
            yield
        finally:
            self._place, self._operator = outside

    def found(self, rule: str, node: Node, detail: str = "", *, operation: str = "") -> Finding:
        """A finding here. It is told if it reaches the result."""
        return Finding(RULES[rule], self._place_of(node, operation), detail)

    def unread(self, node: Node, operation: str = "") -> None:
        """This is not known, and may depend on anything."""
        self._unknown[self._place_of(node, operation)] = None

    def assume(self, what: str) -> None:
        """This must be true of the rows."""
        self._assumptions[what] = None

    def _place_of(self, node: Node, operation: str) -> Place:
        inner = node["aggregateFunction"] if node["node"] == "AggregateExpression" else node
        name = inner["node"]
        named = operation or known.NAMES.get(name, name.lower() if name in known.SOURCES else name)
        # An operator was written where its frame was made; an expression has a line of its own.
        own = NOWHERE if node is self._operator else place_of(node)
        at = own if own.file else self._place
        return Place(named, at.file, at.line)
