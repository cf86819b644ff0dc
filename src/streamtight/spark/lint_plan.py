"""What in an analysed plan depends on an order or on a choice that Spark does not fix?

The walk goes from the inputs to the result and carries facts about the rows of every operator (lint_operators.py). Here
it is asked what of all that reaches the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from streamtight.method.typecheck.findings import Finding, Reading, sorted_findings
from streamtight.program.relation import Place
from streamtight.spark.lint_facts import NONE, Id, Order, Rows
from streamtight.spark.lint_notes import Notes
from streamtight.spark.lint_operators import Keys, Operators, output_of
from streamtight.spark.lint_stream import Streams
from streamtight.spark.plan import Node
from streamtight.stream.dependence import Dependence, unordered
from streamtight.stream.schema import Schema


def read_plan(
    plan: Node,
    names: Sequence[str],
    *,
    lines: Callable[[Node], Place | None],
    inputs: Set[int | None],
    keys: Mapping[int, Keys],
    is_known: Callable[[str], bool],
    mode: str = "batch",
    gives: Dependence = unordered,
    promise: Dependence = unordered,
) -> Reading:
    """What in this plan depends on what Spark does not fix.

    names       of the columns of the result
    lines       where the user wrote a node
    inputs      the numbers of RDDs that are inputs; others were made in a way that cannot be read
    keys        those of inputs, by the number of their RDD
    is_known    whether Spark has a function of this class
    gives       the order that the rows of the result must have; promise: the one that the input has
    """
    notes = Notes(lines)
    streams = Streams(notes, mode)
    operators = Operators(notes, streams, inputs, keys, is_known)
    rows = operators.rows(plan)
    columns = output_of(plan, rows)
    if len(columns) != len(names) and not notes.unknown:  # an operator with columns of its own
        notes.unread(plan)
    output = list(zip(names, columns, strict=False))
    found = [*rows.varies, *streams.findings, *_reached(rows, output)]
    if gives.clauses:
        ids = dict(output)
        key = rows.closure(ids[name] for name in _common_key(gives) if name in ids)
        order = _order_without_ties(rows)
        found += NONE if order is None else order.causes
        with notes.at(plan):
            if order is not None and order.within is not None and order.within <= key:
                pass  # rows that have an order lie in one partition, which is sorted; of two, either may come first
            elif not (rows.keeps_arrival and promise.clauses and _common_key(promise) <= operators.names_of(key)):
                found.append(notes.found("ORDER_LOST", plan))
            elif max(_kinds(gives), _kinds(promise)) > 1:
                notes.unread(plan, f"whether the order {gives!r} is kept")
    return Reading(sorted_findings(found), notes.unknown, notes.assumptions)


def _reached(rows: Rows, output: Iterable[tuple[str, Id]]) -> Iterator[Finding]:
    """What values of the result depend on, with the names of their columns."""
    columns: dict[Finding, list[str]] = {}
    values = rows.settled_columns()
    for name, id_ in output:
        for cause in values[id_].causes - rows.varies:
            columns.setdefault(cause, []).append(name)
    for cause, reached in columns.items():
        yield replace(cause, columns=tuple(reached))


def _order_without_ties(rows: Rows) -> Order | None:
    order = rows.order
    return order if order is not None and rows.ids <= rows.closure(order.columns) else None


def _common_key(relation: Dependence) -> set[str]:
    """The fields that two events agree in if they depend on each other."""
    keys = [set(clause.key) for clause in relation.clauses]
    return set.intersection(*keys) if keys else set()


def _kinds(relation: Dependence) -> int:
    """How many kinds a schema has; 1 for another relation."""
    return len(relation.kinds) if isinstance(relation, Schema) else 1
