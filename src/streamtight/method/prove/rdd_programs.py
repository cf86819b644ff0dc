"""Programs on RDDs: run on RDDs without Spark (local.py), read by RDDs that note what they are asked (recorded.py)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from streamtight.errors import UnsupportedError
from streamtight.method.prove.allowed import constants_of, require_allowed, require_readable, uses
from streamtight.method.prove.draw import Row, Tables, constants_in
from streamtight.method.prove.driver import DriverCode
from streamtight.method.prove.inputs import RDDInput
from streamtight.method.prove.local import LocalRDD
from streamtight.method.prove.programs import ORDER_DOES_NOT_MATTER, Difference, NotProved, Program, Run, in_other_ways
from streamtight.method.prove.recorded import Collected, RecordedRDD, Value, noted
from streamtight.method.prove.results import Result, holds_float, result_of, run
from streamtight.program.relation import Aggregate, Each, Fold, How, Input, Place, Relation, rows_of, value_of
from streamtight.program.relation import Tables as RelationTables
from streamtight.solver.equivalence import Equivalence, Outcome
from streamtight.solver.symbolic.known import with_known_len
from streamtight.solver.symbolic.paths import is_reading

READ_AGAIN = 12
"""On so many inputs what was read is compared with what the program does."""


class RDDPrograms:
    """Two programs on RDDs."""

    def __init__(self, left: Program, right: Program, inputs: Sequence[RDDInput]) -> None:
        self.programs = (left, right)
        self.inputs = tuple(inputs)
        self.names: Sequence[str] = [f"r{place}" for place in range(len(inputs))]
        self._tried: list[tuple[Run, Result]] = []
        self._gives_rdd = False

    def require_allowed(self) -> None:
        for program in self.programs:
            require_allowed(program, may_use_session=False)

    def is_quick(self, program: Program) -> bool:
        return True

    def constants(self) -> list[Any]:
        tests = [test for each in self.inputs for test in each.tests]
        return constants_in(*(value for program in (*self.programs, *tests) for value in constants_of(program)))

    def allows(self, place: int, rows: Sequence[Row]) -> bool:
        return self.inputs[place].allows(rows)

    def at_once(self) -> Difference | None:
        return None

    def result(self, run_: Run) -> Result | None:
        found = run(lambda: run_.program(*[LocalRDD.of(rows, run_.partitions) for rows in run_.tables]))
        if found is not None and run_.partitions == 1:
            self._tried.append((run_, found))
        return found

    def ways(self, program: Program, tables: Tables) -> Iterator[Run]:
        return in_other_ways(program, tables)

    def assumptions(self) -> Sequence[str]:
        sorts = any(uses(program, name) for program in self.programs for name in ("sortBy", "sortByKey"))
        return [ORDER_DOES_NOT_MATTER] if sorts and self._gives_rdd else []

    # -- a proof -----------------------------------------------------------------------------------------------------

    def prove(self, equivalence: Equivalence) -> NotProved | None:
        relations = [self._relation(place) for place in range(len(self.inputs))]

        def outcomes_of(program: Program, name: str) -> list[Outcome]:
            require_readable(program)
            known = with_known_len(program)
            driver = DriverCode(program, sees_values=True, is_reading=is_reading)

            def run_once(value: Value) -> Any:
                with driver.watched():
                    return noted(known, [RecordedRDD(each, value) for each in relations])

            return equivalence.outcomes(run_once, name)

        left, right = outcomes_of(self.programs[0], "a"), outcomes_of(self.programs[1], "b")
        self._gives_rdd = any(isinstance(outcome.result, RecordedRDD) for outcome in (*left, *right))
        for program, outcomes in zip(self.programs, (left, right), strict=True):
            self._read_again(program, outcomes, relations)
        for outcomes in (left, right):
            unclear = equivalence.ill_defined(outcomes, relation_of)
            if unclear is not None:
                return NotProved(f"{unclear}: it is not proved that the result is the same however the rows are spread")
        found = equivalence.difference(left, right, relation_of)
        return None if found is None else NotProved(found.reason, found.values())

    def _relation(self, place: int) -> Relation:
        each = self.inputs[place]
        relation: Relation = Input(self.names[place], each.row)
        for test in each.tests:
            relation = Each(relation, test, How.FILTER, Place(f"where of input {place + 1}"))
        return relation

    def _read_again(self, program: Program, outcomes: Sequence[Outcome], relations: Sequence[Relation]) -> None:
        """Compares what was read with what the program does. The functions inside are compared by the solver."""
        tried = [(one, result) for one, result in self._tried if one.program is program]
        for one, result in tried[:: max(1, len(tried) // READ_AGAIN)]:
            rows = dict(zip(self.names, one.tables, strict=True))
            values: list[Any] = []

            def value(aggregate: Aggregate, rows: RelationTables = rows, values: list[Any] = values) -> Any:
                values.append(_in_one_partition(aggregate, rows))
                return values[-1]

            def read(rows: RelationTables = rows, value: Value = value) -> Any:
                return _concrete(with_known_len(program)(*[RecordedRDD(each, value) for each in relations]), rows)

            again = run(read)
            if again is None or not again.is_same(result) or not _is_outcome(outcomes, values, result):
                raise UnsupportedError(
                    one.name,
                    needed="a program that is read as what it does",
                    came=f"one that gives {result} for {list(one.tables)}, and is read as {again}",
                    hint="operations of RDDs where it uses Python on what they gave",
                )


def _is_outcome(outcomes: Sequence[Outcome], values: Sequence[Any], result: Result) -> bool:
    """Whether what was read of a program says that it gives this result, if its aggregates have these values.

    A program that looks behind what stands for an aggregate takes another way than it does with the aggregate itself.
    """
    if result.kind == "raises" or any(map(holds_float, values)):
        return True  # what raises may do so in the middle; and rounding, which may decide, was not read
    taken = [one for one in outcomes if one.is_taken(values)]
    if len(taken) != 1 or taken[0].raised is not None:
        return False
    if relation_of(taken[0].result) is not None:
        return True  # what its rows are was compared above
    given = taken[0].result_at(values)
    return holds_float(given) or result_of(given).is_same(result)


def _in_one_partition(aggregate: Aggregate, tables: RelationTables) -> Any:
    """The value that an action gives for rows in one partition: what is found there is merged with the start."""
    found, fold = value_of(aggregate, tables), aggregate.summary
    merges = isinstance(fold, Fold) and not fold.needs_row and fold.name != "treeAggregate"
    return fold.merge(fold.start, found) if isinstance(fold, Fold) and merges else found


def _concrete(result: Any, tables: RelationTables) -> Any:
    found = relation_of(result)
    if found is None:
        return result
    rows = [result.row(row) for row in rows_of(found[1], tables)]
    return dict(rows) if found[0] == "dict" else rows


def relation_of(result: object) -> tuple[str, Relation] | None:
    """The relation that a program gives, and as what; None if it gives a value."""
    if isinstance(result, RecordedRDD):
        return "bag of rows", result.relation
    return (result.how, result.relation) if isinstance(result, Collected) else None
