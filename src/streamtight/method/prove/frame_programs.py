"""Programs on DataFrames, as they were read: run by the plain meaning of their relations, compared by the solver."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from streamtight.errors import SourceError, UnsupportedError
from streamtight.method.prove.allowed import constants_of, require_allowed
from streamtight.method.prove.draw import Row, Tables, constants_in
from streamtight.method.prove.inputs import TableInput
from streamtight.method.prove.programs import ORDER_DOES_NOT_MATTER, Difference, NotProved, Program, Run, in_other_ways
from streamtight.method.prove.results import IN_ORDER, Result, is_close
from streamtight.program.expression import Expression, Field, Literal, SqlError, SqlFunction, SqlValue
from streamtight.program.relation import Each, Extreme, First, Grouped, Matching, Place, Relation, Total, rows_of
from streamtight.solver.ask import Budget
from streamtight.solver.equivalence import Equivalence


@dataclass(frozen=True, slots=True)
class FrameOrder:
    """How a program sorts its result."""

    relation: Relation | None
    """Its rows, and behind the columns the parts by which they are sorted, as Python sorts; None if not known."""
    downwards: bool


@dataclass(frozen=True, slots=True)
class LiftedFrame:
    """What a DataFrame program means: its relation, the columns of its rows, and the order in which it puts them.

    The order is left out of the relation, as that of a bag.
    """

    relation: Relation
    columns: tuple[Field, ...]
    order: FrameOrder | None = None

    @property
    def is_ordered(self) -> bool:
        """Whether it sorts its rows."""
        return self.order is not None


@dataclass(frozen=True, slots=True)
class Repeated:
    """A row as often as two counts say: the least of them, or the first less the second."""

    is_least: bool

    def __call__(self, group: Row) -> list[Row]:
        row, one, other = group
        return [row] * (min(one, other) if self.is_least else max(0, one - other))


class Built(Protocol):
    """A program that was run on empty tables."""

    columns: tuple[tuple[str, str], ...]
    """The name and the type of each."""

    def lift(self) -> LiftedFrame:
        """What it means; UnsupportedError if that is not known."""


class FramePrograms:
    """Two programs on DataFrames."""

    def __init__(
        self,
        left: Program,
        right: Program,
        inputs: Sequence[TableInput],
        names: Sequence[str],
        build: Callable[[Program], Built],
        conditions: Sequence[Sequence[SqlFunction]],
        run_on_spark: Callable[[Run, bool], Result],
    ) -> None:
        self.programs = (left, right)
        self.inputs = tuple(inputs)
        self.names = names
        self._build = build
        self._conditions = conditions
        self._run_on_spark = run_on_spark
        self._built: dict[Program, Built] = {}
        self._lifted: dict[Program, LiftedFrame] = {}
        self._unread: dict[Program, UnsupportedError] = {}
        self._says_most: tuple[int, Tables] = (-1, tuple(() for _ in inputs))
        """How many rows go in and come out, and the input where these are most."""

    def require_allowed(self) -> None:
        for program in self.programs:
            require_allowed(program, may_use_session=True)
        self._built = {program: self._build(program) for program in self.programs}
        for program, built in self._built.items():
            try:
                self._lifted[program] = built.lift()
            except UnsupportedError as error:
                self._unread[program] = _with_line(error, program)

    def is_quick(self, program: Program) -> bool:
        """Those that were read are run by their meaning, others on Spark."""
        return program in self._lifted

    def constants(self) -> list[Any]:
        literals = [value for lifted in self._lifted.values() for value in literals_in(lifted.relation)]
        literals += [value for each in self._conditions for function in each for value in _constants(function)]
        return constants_in(*literals, *(value for program in self.programs for value in constants_of(program)))

    def allows(self, place: int, rows: Sequence[Row]) -> bool:
        if not self.inputs[place].keeps_keys(rows):
            return False
        try:
            return all(function(row) for function in self._conditions[place] for row in rows)
        except SqlError as error:
            raise SourceError(
                repr(self.inputs[place]),
                needed="a condition that is true or false for every row",
                came=str(error),
                hint="v IS NOT NULL AND v > 0",
            ) from error

    def at_once(self) -> Difference | None:
        left, right = (self._built[program].columns for program in self.programs)
        if left == right:
            return None
        empty = tuple(() for _ in self.inputs)
        runs = [Run(program, empty) for program in self.programs]
        results = columns_result(left), columns_result(right)
        return Difference(runs[0], runs[1], results, "DIFFERENT_COLUMNS")

    def result(self, run: Run) -> Result | None:
        lifted = self._lifted.get(run.program)
        if lifted is None:
            return self._run_on_spark(run, False)
        tables = dict(zip(self.names, run.tables, strict=True))
        try:
            if self._both_sort and lifted.order is not None and lifted.order.relation is not None:
                result = _sorted(lifted, lifted.order.relation, tables)
            else:
                result = Result("rows", tuple(sorted(rows_of(lifted.relation, tables), key=repr)))
        except UnsupportedError:
            return None
        except SqlError as error:
            return Result.raised(error)
        said = sum(map(len, run.tables)) + len(result.values)
        if said > self._says_most[0]:
            self._says_most = said, run.tables
        return result

    @property
    def _both_sort(self) -> bool:
        return all(program in self._lifted and self._lifted[program].is_ordered for program in self.programs)

    def ways(self, program: Program, tables: Tables) -> Iterator[Run]:
        return (run for run in in_other_ways(program, tables) if run.tables != tables and run.partitions == 1)

    def assumptions(self) -> Sequence[str]:
        sorts = [self._lifted[program].is_ordered for program in self.programs]
        return [ORDER_DOES_NOT_MATTER] if any(sorts) and not all(sorts) else []

    # -- a proof -----------------------------------------------------------------------------------------------------

    def prove(self, equivalence: Equivalence) -> NotProved | None:
        for error in self._unread.values():
            raise error
        left, right = (self._lifted[program] for program in self.programs)
        for lifted in (left, right):
            if (place := _place_of_repeated(lifted.relation)) is not None:
                return NotProved(f"{place}: how often its rows come is known for given rows only, not for all")
        try:
            # Spark's optimiser asks before it calculates, or not at all; so whether an expression is calculated
            # that raises is not determined by the program.
            found = equivalence.same_relations(left.relation, right.relation, [], errors_count=False)
        except UnsupportedError as error:
            raise self._of_program(error) from error
        if found is not None:
            return NotProved(found.reason, found.values())
        if left.order is not None and right.order is not None:
            unclear = self._other_order(left.order, right.order, equivalence)
            if unclear is not None:
                return unclear
        return self._read_otherwise()

    def _of_program(self, error: UnsupportedError) -> UnsupportedError:
        """The same, with the line of the program in which it is."""
        for program in self.programs:
            relation = self._lifted[program].relation
            try:
                Equivalence(Budget(1.0)).same_relations(relation, relation, [])
            except UnsupportedError:
                return _with_line(error, program)
        return error

    def _other_order(self, left: FrameOrder, right: FrameOrder, equivalence: Equivalence) -> NotProved | None:
        """None if both sort the same rows by the same values; so the lists that they may give are the same."""
        told = "they have the same rows; it is not proved that they sort them in the same order"
        if left.relation is None or right.relation is None or left.downwards is not right.downwards:
            return NotProved(told)
        found = equivalence.same_relations(left.relation, right.relation, [])
        return None if found is None else NotProved(told, found.values())

    def _read_otherwise(self) -> NotProved | None:
        """None if Spark gives what was read, on an input: a proof is about what was read."""
        for program in self.programs:
            run = Run(program, self._says_most[1])
            read = self.result(run)
            if read is None or read.kind == "raises":
                continue
            seen = self._run_on_spark(run, read.kind == IN_ORDER)
            if not read.is_same(seen):
                return NotProved(f"{run.name} is read as {read} for {list(run.tables)}, and gives {seen} on Spark")
        return None


def _with_line(error: UnsupportedError, program: Program) -> UnsupportedError:
    """The same, with the line of the program if Spark does not know that of the operation."""
    code = getattr(program, "__code__", None)
    if code is None or re.search(r":\d+\)?$", error.where):
        return error
    where = f"{error.where} in {Run(program, ()).name} ({code.co_filename}:{code.co_firstlineno})"
    return UnsupportedError(where, needed=error.needed, came=error.came, hint=error.hint)


def _place_of_repeated(relation: Relation) -> Place | None:
    if isinstance(relation, Each) and isinstance(relation.function, Repeated):
        return relation.place
    return next(filter(None, map(_place_of_repeated, relation.parts)), None)


def _sorted(lifted: LiftedFrame, relation: Relation, tables: Mapping[str, Sequence[Row]]) -> Result:
    """The rows in their order; as a bag if rows that differ may come either way."""
    width = len(lifted.columns)
    rows = rows_of(relation, tables)
    ordered = sorted(rows, key=lambda row: row[width:], reverse=lifted.order is not None and lifted.order.downwards)
    seen = [row[:width] for row in ordered]
    ties = any(
        one[width:] == other[width:] and not is_close(one[:width], other[:width])
        for one, other in itertools.pairwise(ordered)
    )
    return Result("rows", tuple(sorted(seen, key=repr))) if ties else Result(IN_ORDER, tuple(seen))


def columns_result(columns: Sequence[tuple[str, str]]) -> Result:
    """The columns of a result, as it is shown."""
    return Result("columns", tuple(f"{name} {type_}" for name, type_ in columns))


# -- constants -------------------------------------------------------------------------------------------------------


def literals_in(relation: Relation) -> Iterator[Any]:
    """The constants in the expressions of a relation."""
    functions: list[Any] = []
    match relation:
        case Each(_, function):
            functions = [function]
        case Matching(_, _, matches):
            functions = [matches]
        case Grouped(_, key, summaries):
            functions = [key]
            for summary in summaries:
                functions += [summary.number] if isinstance(summary, Total) else []
                functions += [summary.value] if isinstance(summary, Extreme) else []
        case First(_, _, key):
            functions = [key]
    for function in functions:
        yield from _constants(function)
    for part in relation.parts:
        yield from literals_in(part)


def _constants(function: Any) -> Iterator[Any]:
    expressions: list[Expression] = []
    if isinstance(function, SqlFunction):
        expressions = list(function.expressions)
    elif isinstance(function, SqlValue):
        expressions = [function.expression]
    while expressions:
        one = expressions.pop()
        if isinstance(one, Literal) and one.constant is not None:
            yield one.constant
        if callable(getattr(one, "function", None)):
            yield from constants_of(one.function)  # type: ignore[attr-defined]
        expressions += one.parts
