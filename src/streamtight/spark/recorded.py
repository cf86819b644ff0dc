"""Two recorded outputs: is one the same stream as the other? As big as Spark can read; a few rows reach the driver.

    compare_recorded(recorded("out/old"), recorded("out/new"), upto=same("taxi_id"))

**What a recording says about order.** The rows of one file are in order. The files that a streaming query wrote are in
the order of its micro-batches, which its log `_spark_metadata` tells; files of one micro-batch, and files without a
log, are in no order with each other. `order_by` columns say it instead, if they are given; rows that agree on them are
in no order. If two unequal rows that must keep their order are in none, the question cannot be decided, and the
verdict says so: no order is ever guessed.

**How it is decided.** What Spark can count is counted there:

    bag             the rows are grouped by what is compared, and counted on either side
    clauses         the same, with the run that a row is in as one more column for each clause (`recorded_rows`)
    anything else   the rows of both sides, in turn, go through matchers: split by the key that the relation has, or
                    all in one task

Tests of events and the rounding of floats are Python's: tasks add what they say to the rows, as columns. If the
equality is a function, rows that are exactly equal cancel out in Spark, and the rest is matched in tasks. What was
found to differ is looked for a second time, in another way, before it is reported.
"""

from __future__ import annotations

import contextlib
import functools
import operator
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DoubleType,
    FloatType,
    StringType,
    StructType,
)

from streamtight.errors import (
    DependenceError,
    EncodingError,
    SourceError,
    StreamtightError,
    TimeLimitError,
    TraceError,
    UnsupportedError,
)
from streamtight.method.compare.pictures import picture_of_streams
from streamtight.method.replay import definitions, relation_code
from streamtight.spark.engine import interrupted_after, settings
from streamtight.spark.failure import job_error
from streamtight.spark.recorded_files import (
    NAMES,
    WHOLE_NUMBERS,
    Side,
    agree,
    kinds_meant,
    opened,
    unreadable,
)
from streamtight.spark.recorded_files import Recorded as Recorded
from streamtight.spark.recorded_files import recorded as recorded
from streamtight.spark.recorded_rows import Rows, groupable, roles_in
from streamtight.spark.recorded_tasks import (
    BOTH,
    FEW,
    MOST_LOOSE,
    Adding,
    Alternation,
    Counter,
    Equal,
    Found,
    InTask,
    Judge,
    Loose,
    Order,
    Task,
    Wants,
    Worker,
)
from streamtight.spark.rows import KIND_COLUMN, Table
from streamtight.spark.run import ONE_AT_A_TIME
from streamtight.spark.session import session
from streamtight.spark.ship import require_there
from streamtight.stream.dependence import Clause, Dependence, unordered
from streamtight.stream.equality import Equality, equality_of
from streamtight.stream.event import Event
from streamtight.verdict import Counterexample, Outcome, Scope, Verdict

LIMIT = 3600.0
"""Seconds that a comparison may take, if the caller does not say."""

# A session of ours compiles no plans, since its jobs are small; these are not.
_FOR_MANY_ROWS = {"spark.sql.codegen.wholeStage": "true"}


def compare_recorded(
    reference: Recorded,
    candidate: Recorded,
    *,
    upto: Dependence,
    equal: Equal = None,
    spark: SparkSession | None = None,
    limit: float = LIMIT,
) -> Verdict:
    """Is the candidate the same stream as the reference, up to the reorderings that the relation forgives?

    `limit` is how many seconds it may take.
    """
    for given in (reference, candidate):
        if not isinstance(given, Recorded):
            raise SourceError(
                "compare(recorded, recorded)",
                needed="two recorded outputs",
                came=repr(given),
                hint="tight.recorded('path of a folder')",
            )
    if not isinstance(upto, Dependence):
        raise TraceError(
            "compare(upto=...)",
            needed="a dependence or a schema",
            came=repr(upto),
            hint="ordered, unordered, same('taxi_id'), or a schema",
        )
    if not limit > 0:
        raise TraceError("compare(limit=...)", needed="seconds above 0", came=repr(limit), hint="limit=60")
    equal = equality_of(equal, "compare")
    spark = spark or session()
    require_there(spark, "comparing recorded outputs", {"pyarrow": "pyarrow"})
    claim = f"{candidate.path} is the same stream as {reference.path} up to {upto!r}"
    started = time.monotonic()
    with ONE_AT_A_TIME, settings(spark, _FOR_MANY_ROWS):
        try:
            with interrupted_after(spark, limit), _telling_errors():
                answer = _answer(spark, (reference, candidate), upto, equal)
        except TimeLimitError:
            answer = _Answer(Outcome.UNDECIDED, (0, 0), reason=f"no answer within {limit:g} seconds")
    cost = {"seconds": time.monotonic() - started, "rows": float(sum(answer.seen))}
    if answer.in_one_task:
        cost["tasks"] = 1.0
    scope = Scope.observed(sum(answer.seen))
    return Verdict(claim, answer.outcome, scope, answer.counterexample, answer.reason, cost)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A verdict without its claim and its cost."""

    outcome: Outcome
    seen: tuple[int, int]
    counterexample: Counterexample | None = None
    reason: str | None = None
    in_one_task: bool = False


_VACUOUS = _Answer(Outcome.UNDECIDED, (0, 0), reason="vacuous: neither recording has a row")


def _answer(spark: SparkSession, given: tuple[Recorded, Recorded], upto: Dependence, equal: Equal) -> _Answer:
    sides = [opened(spark, name, one) for name, one in zip(NAMES, given, strict=True)]
    agreed = agree(sides, kinds_meant(given, upto))
    if agreed is None:
        return _VACUOUS
    with settings(spark, {_PARTITIONS: str(_partitions(spark, sides))}):
        return _Comparison(spark, sides, *agreed, upto, equal).answer()


_PARTITIONS = "spark.sql.shuffle.partitions"
PARTITION = 16 << 20
"""Bytes of files for one task after a shuffle. As rows they are some ten times as many, which should fit its memory."""


def _partitions(spark: SparkSession, sides: Sequence[Side]) -> int:
    """How many tasks share the rows: more than the session says if there are many."""
    own = int(spark.conf.get(_PARTITIONS) or 1)
    return max(own, sum(side.bytes(spark) for side in sides) // PARTITION)


@contextlib.contextmanager
def _telling_errors() -> Iterator[None]:
    """What Spark raises, in its own few words."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        told = job_error(error, batch=None)
        if "pyarrow" in told.raised.lower() and "PACKAGE_NOT_INSTALLED" in str(error):
            raise UnsupportedError(
                "comparing recorded outputs", needed="pyarrow", came="none", hint="pip install pyarrow"
            ) from error
        if told.raised.startswith("ModuleNotFoundError"):
            raise UnsupportedError(
                "the tasks of a comparison",
                needed="streamtight, and the modules of the relation, in the Python that runs them",
                came=told.raised,
                hint="PYSPARK_PYTHON=... before Spark starts, or install them there",
            ) from error
        if "Traceback (most recent call last)" in str(error):
            raise DependenceError(
                "the relation or the equality, on a recorded row",
                needed="no exception",
                came=told.raised,
                hint=told.hint,
            ) from error
        raise unreadable("the recorded outputs", error) from error


# -- the comparison --------------------------------------------------------------------------------------------------


class _Bag(NamedTuple):
    """How the rows of both sides differ, if their order does not matter."""

    seen: tuple[int, int]
    missing: int
    extra: int
    examples: tuple[list[Event], list[Event]]
    """Some of the rows that are missing, and of those that are extra."""


class _Comparison:
    """Two recordings whose columns agree, and the ways to compare them."""

    def __init__(
        self,
        spark: SparkSession,
        sides: Sequence[Side],
        table: Table,
        types: StructType,
        upto: Dependence,
        equal: Equal,
    ) -> None:
        self._sides = sides
        self._table = table
        self._types = types
        self._upto = upto
        self._equal = equal
        self._columns = [f"c{place}" for place in range(len(types.names))]
        self._rows = [Rows(spark, side, table, types) for side in sides]
        self._require_compared_fields()

    def _require_compared_fields(self) -> None:
        """What an equality compares must be there, as it must be when it compares events."""
        for name in (self._equal.only or ()) if isinstance(self._equal, Equality) else ():
            for kind in self._table.kinds:
                if name not in kind.fields:
                    raise DependenceError(
                        repr(self._equal),
                        needed=f"a field {name!r} in every kind that it compares",
                        came=repr(kind),
                        hint=f"one of {', '.join(kind.names) or '(none)'}",
                    )

    def answer(self) -> _Answer:
        """Are they the same?"""
        if self._upto.clauses:
            return self._answer_with_order()
        bag = self._bag()
        return self._refuted(bag) if bag.missing or bag.extra else self._holds(bag.seen)

    def _answer_with_order(self) -> _Answer:
        runs = self._countable()
        with contextlib.ExitStack() as undo:
            counted = None if runs is None else self._with_runs(runs, undo)
            if counted is None:
                key = self._partition_key()
                found = self._matched(key)
                if found.nothing:
                    return self._holds((found.seen[0], found.seen[1]), in_one_task=not key)
            else:
                said = self._said(counted, runs or ())
                if not (said.differ or said.loose):
                    in_one_task = any(not one.clause.key for one in runs or ()) and not self._in_order_of_files
                    return self._holds(said.seen, in_one_task=in_one_task)
                found = Found()
            bag = self._bag()
            if bag.missing or bag.extra:
                return self._refuted(bag)
            if counted is not None:
                found = self._lost(counted, runs or (), is_loose=said.loose)
        if found.orders:
            return self._reordered(min(found.orders, key=lambda order: (order.rank, order.hash)), bag.seen)
        if found.loose:
            return self._unrecorded(min(found.loose, key=lambda loose: loose.hash), bag.seen)
        if found.nothing:  # rows that might have been in no order are in one, after all
            return self._holds(bag.seen)
        raise self._disagreement(f"the same rows on both sides, but for {sum(found.left_over)}", "the same rows")

    # -- answers ------------------------------------------------------------------------------------------------------

    def _holds(self, seen: tuple[int, int], *, in_one_task: bool = False) -> _Answer:
        if not any(seen):
            return _VACUOUS
        if not in_one_task:
            return _Answer(Outcome.HOLDS, seen)
        whose = repr(self._upto) if self._upto.partition_key() is None else f"{self._upto!r} with {self._equal!r}"
        reason = f"one task had to read all rows, since {whose} has no key to split them by"
        return _Answer(Outcome.HOLDS, seen, reason=reason, in_one_task=True)

    def _refuted(self, bag: _Bag) -> _Answer:
        finding = "WRONG_ROWS" if bag.missing and bag.extra else "MISSING_ROWS" if bag.missing else "EXTRA_ROWS"
        missing, extra = bag.examples
        wanted = list(dict.fromkeys((*missing, *extra)))
        counts = self._counts(wanted)
        for event, (left, right) in zip(wanted, counts, strict=True):
            if left == right or (left > right) != (event in missing):
                raise self._disagreement(f"{event} on one side more often", f"it {_times(left)} and {_times(right)}")
        left, right = counts[0]
        total = [f"{_rows_are(n)} {what}" for n, what in ((bag.missing, "missing"), (bag.extra, "extra")) if n]
        explanation = (
            f"{wanted[0]} comes {_times(left)} in the reference and {_times(right)} in the candidate; "
            f"in all, {' and '.join(total)}"
        )
        return self._fails(finding, explanation, missing, extra, bag.seen)

    def _reordered(self, found: Order, seen: tuple[int, int]) -> _Answer:
        first, second = found.in_reference
        if not self._alternate_differently(first, second):
            raise self._disagreement(f"{first} and {second} in different orders", "them in the same order")
        explanation = (
            f"{first} comes before {second} in the reference, after it in the candidate, "
            f"but {found.clause} keeps their order"
        )
        return self._fails("ORDER_LOST", explanation, [first, second], [second, first], seen)

    def _unrecorded(self, found: Loose, seen: tuple[int, int]) -> _Answer:
        side = self._sides[found.side]
        whose = f"more than {MOST_LOOSE} rows" if found.pair is None else " and ".join(map(str, found.pair))
        if side.given.order_by:
            why = f"they agree on {', '.join(side.given.order_by)}"
            hint = "one more column in order_by=, that tells them apart"
        else:
            why = "they are in different files" + ("" if side.batches is None else " of one micro-batch")
            hint = "order_by= with the columns that tell it"
        keeps = "may keep" if found.pair is None else "keeps"
        reason = f"the {side.name} does not tell the order of {whose}: {why}, and {self._upto!r} {keeps} their order"
        return _Answer(Outcome.UNDECIDED, seen, reason=f"{reason}. Try: {hint}")

    def _fails(
        self, finding: str, explanation: str, expected: list[Event], actual: list[Event], seen: tuple[int, int]
    ) -> _Answer:
        counterexample = Counterexample(
            finding=finding,
            explanation=explanation,
            expected=tuple(expected),
            actual=tuple(actual),
            replay=self._replay(),
            picture=picture_of_streams(expected, actual, self._upto, self._equal),
            reruns=1,
            failing_reruns=1,
        )
        return _Answer(Outcome.FAILS, seen, counterexample)

    def _replay(self) -> str:
        reference, candidate = (side.given for side in self._sides)
        equal = "" if self._equal is None else f", equal={_code(self._equal)}"
        lines = [
            "import streamtight as tight",
            "from streamtight import *",
            *definitions([*reference.kinds, *candidate.kinds]),
            f"reference = tight.{reference!r}",
            f"candidate = tight.{candidate!r}",
            f"verdict = tight.compare(reference, candidate, upto={relation_code(self._upto)}{equal})",
            "print(verdict.story())",
        ]
        return "\n".join(lines)

    def _disagreement(self, needed: str, came: str) -> StreamtightError:
        """What was found was not found again."""
        came = f"{came}, when it was looked for in a second way"
        if self._equal is not None and not isinstance(self._equal, Equality):
            where, hint = (
                f"equal={_code(self._equal)}",
                "equality(places=...), equality(buckets=...) or equality(by=...)",
            )
            return DependenceError(where, needed=f"an equivalence; with it, {needed}", came=came, hint=hint)
        hint = "if the files did not change meanwhile, report it: this is a bug of streamtight"
        return EncodingError("comparing recorded outputs", needed=needed, came=came, hint=hint)

    # -- which columns ------------------------------------------------------------------------------------------------

    def _compared(self) -> list[str]:
        """The fields that matter to the equality."""
        names = self._types.names
        if not isinstance(self._equal, Equality) or self._equal.by is not None:
            return names
        compared = set(self._equal.columns(names)) | ({KIND_COLUMN} if len(self._table.kinds) > 1 else set())
        return [name for name in names if name in compared]

    def _exact(self) -> list[str]:
        """The fields on which equal events agree for sure."""
        if self._equal is None:
            return self._types.names
        if not isinstance(self._equal, Equality) or self._equal.by is not None:
            return []
        rounded = {*self._equal.places, *self._equal.buckets}
        return [name for name in self._compared() if name not in rounded]

    @functools.cached_property
    def _rounded(self) -> tuple[str, ...]:
        """The fields that are compared after they were rounded, where that gives floats."""
        names = [name for name in self._compared() if name not in self._exact()] if self._exact() else []
        return tuple(name for name in names if isinstance(self._types[name].dataType, FloatType | DoubleType))

    @functools.cached_property
    def _is_exact(self) -> bool:
        """Can Spark tell which rows are equal, once tasks have rounded what is to be rounded?"""
        return bool(self._exact()) and set(self._exact()) | set(self._rounded) == set(self._compared())

    @property
    def _in_order_of_files(self) -> bool:
        """Do the files alone tell the order of any two rows?"""
        return all(rows.by_files and not rows.can_be_loose for rows in self._rows)

    def _countable(self) -> list[_Clause] | None:
        """The clauses for which rows have runs; None if rows have to be matched."""
        if not self._is_exact or any(clause.pairwise for clause in self._upto.clauses):
            return None
        clauses = []
        for number, clause in enumerate(self._upto.clauses):
            roles = None if clause.left.tests or clause.right.tests else roles_in(clause, self._table)
            for kind in self._table.kinds:
                speaks = any(side.kinds is None or kind in side.kinds for side in (clause.left, clause.right))
                if speaks and not set(clause.key) <= set(kind.fields):
                    return None  # a wrong question, if there is such a row
            if not set(clause.key) <= set(self._exact()):
                return None
            one = _Clause(number, clause, roles)
            if not (clause.key or one.is_total or self._in_order_of_files):
                return None
            if one.can_relate:
                clauses.append(one)
        return clauses

    def _partition_key(self) -> tuple[str, ...]:
        """The fields by which tasks can share the rows; none if one task must have them all."""
        key = self._upto.partition_key()
        # An equality that does not look at the key may call rows equal that would go to different tasks.
        return key.fields if key is not None and set(key.fields) <= set(self._exact()) else ()

    def _letters(self) -> dict[str, Column]:
        """What is compared of a row."""
        values = {
            name: sf.col(f"v{self._rounded.index(name)}") if name in self._rounded else self._groupable(name)
            for name in self._compared()
        }
        return {f"k{place}": value for place, value in enumerate(values.values())}

    def _added(self, frame: DataFrame, wants: Wants) -> DataFrame:
        """These rows with what tasks add to them."""
        if not wants.columns:
            return frame
        frame = frame.withColumns({name: sf.lit(None).cast(kind) for name, kind in wants.columns.items()})
        task = Task(self._table.kinds, self._types, self._upto, self._equal)
        return frame.mapInArrow(Adding(task, wants), frame.schema)

    def _groupable(self, name: str) -> Column:
        return groupable(sf.col(self._columns[self._types.names.index(name)]), self._types[name].dataType)

    def _hash(self, fields: Sequence[str]) -> Column:
        # Two keys of one hash go to one matcher, which keeps them apart by itself.
        hashed = sf.xxhash64(*map(self._groupable, fields)) if fields else sf.lit(0).cast("long")
        return hashed.alias("hash")

    # -- counting in Spark --------------------------------------------------------------------------------------------

    def _bag(self) -> _Bag:
        """The rows that one side has more often than the other, whatever their order."""
        counted = self._counts_by_value(with_rows=not self._is_exact)
        more = {"missing": sf.col("l") - sf.col("r"), "extra": sf.col("r") - sf.col("l")}
        total = counted.agg(
            *(sf.sum(name) for name in ("l", "r", "bad")),
            *(sf.sum(sf.greatest(column, sf.lit(0))) for column in more.values()),
        ).collect()[0]
        left, right, bad, missing, extra = (int(value or 0) for value in total)
        self._require_good(bad)
        if not missing and not extra:
            return _Bag((left, right), 0, 0, ([], []))
        if not self._is_exact:
            found = self._matched_leftovers(counted)
            return _Bag((left, right), found.left_over[0], found.left_over[1], found.examples)
        counted = (
            self._counts_by_value(with_rows=True).withColumn("more", sf.col("l") - sf.col("r")).filter("more != 0")
        )
        values = [name for name in counted.columns if name.startswith("k")]
        place = sf.row_number().over(Window.partitionBy(sf.col("more") > 0).orderBy(*values))
        examples: tuple[list[Event], list[Event]] = ([], [])
        for row in counted.withColumn("place", place).filter(sf.col("place") <= FEW).orderBy("place").collect():
            side, times = (0, row["more"]) if row["more"] > 0 else (1, -row["more"])
            event = self._table.from_row(row["left" if side == 0 else "right"])
            examples[side].extend([event] * min(times, FEW - len(examples[side])))
        return _Bag((left, right), missing, extra, examples)

    def _counts_by_value(self, *, with_rows: bool) -> DataFrame:
        """For each value that is compared, how often either side has it, and on request a row of either side."""
        letters = (
            self._letters()
            if self._is_exact
            else {f"k{place}": self._groupable(name) for place, name in enumerate(self._compared())}
        )
        wants = Wants(self._rounded if self._is_exact else ())
        row = sf.struct(*self._columns).alias("row")
        sides = [
            self._added(rows.plain, wants).select(
                *(value.alias(name) for name, value in letters.items()),
                sf.lit(number).alias("side"),
                "bad",
                *([row] if with_rows else []),
            )
            for number, rows in enumerate(self._rows)
        ]
        both = _spread(sides[0].unionAll(sides[1]), letters)
        return both.groupBy(*letters).agg(*_tallies(), *(_a_row_of_each() if with_rows else []))

    def _with_runs(self, clauses: Sequence[_Clause], undo: contextlib.ExitStack) -> DataFrame:
        """The rows of both sides with the runs of these clauses, as r0, r1, ..., and with what is compared."""
        unkeyed = [one for one in clauses if not one.clause.key and not one.is_total]
        wants = Wants(
            self._rounded,
            tuple(one.number for one in clauses if one.roles is None),
            tuple(one.number for one in unkeyed),
        )
        sides = []
        for number, rows in enumerate(self._rows):
            frame = rows.frame
            for one in clauses:
                if one.roles is not None:
                    frame = frame.withColumn(f"t{one.number}", self._role(one.roles).cast("long"))
            if wants.columns and self._in_order_of_files:
                frame = frame.drop("batch", "files")  # less to send to the tasks
            frame = self._added(frame, wants)
            if unkeyed or (wants.tested and self._equal is not None):
                # They are read twice, and what tasks say takes longer than to keep it.
                frame = frame.persist(StorageLevel.DISK_ONLY)
                undo.callback(frame.unpersist)
            frame = frame.withColumns({"side": sf.lit(number), "loose": sf.lit(0)})
            for one in unkeyed:
                frame = rows.with_joined_runs(frame, one.number)
            for one in clauses:
                if one.is_total and not one.clause.key and self._in_order_of_files:
                    frame = rows.with_places(frame, one.number)
            sides.append((rows, frame))
        if all(rows.by_files for rows in self._rows) or self._sides[0].given.order_by == self._sides[1].given.order_by:
            # Both sides in one go: then they are shuffled once, by a key, and never again.
            loosest = max(self._rows, key=lambda rows: rows.can_be_loose)
            sides = [(loosest, sides[0][1].unionByName(sides[1][1]))]
        keys = [{self._columns[self._types.names.index(name)] for name in one.clause.key} for one in clauses]
        common = sorted(set.intersection(*filter(None, keys))) if any(keys) else []
        compared = sf.struct(*(value.alias(name) for name, value in self._letters().items()))
        both = None
        for rows, frame in sides:
            frame = frame.repartition(*common) if common else frame
            for one, key in zip(clauses, keys, strict=True):
                if f"r{one.number}" not in frame.columns:
                    frame = rows.with_runs(frame, one.number, sorted(key), compared, only_both=one.only_both)
            names = [f"{letter}{one.number}" for one in clauses for letter in "tr"]
            letters = [value.alias(name) for name, value in self._letters().items()]
            frame = frame.select(*letters, *self._columns, "side", "loose", "bad", *names)
            both = frame if both is None else both.unionByName(frame)
        return cast(DataFrame, both) if common and len(sides) == 1 else _spread(cast(DataFrame, both), self._letters())

    def _role(self, roles: Mapping[str, int]) -> Column:
        if len(set(roles.values())) == 1:
            return sf.lit(next(iter(roles.values())))
        kind = sf.col(self._columns[self._types.names.index(KIND_COLUMN)])
        chosen = sf.when(sf.lit(False), sf.lit(0))
        for name, role in roles.items():
            chosen = chosen.when(kind == name, sf.lit(role))
        return chosen.otherwise(0)

    def _said(self, counted: DataFrame, clauses: Sequence[_Clause]) -> _Said:
        """How many rows there are, and whether some differ or may be in no order."""
        grouped = counted.groupBy(*self._letters(), *(f"r{one.number}" for one in clauses))
        sums = grouped.agg(*_tallies(), sf.max("loose").alias("loose")).agg(
            *(sf.sum(name) for name in ("l", "r", "bad")),
            sf.max((sf.col("l") != sf.col("r")).cast("int")),
            sf.max("loose"),
        )
        left, right, bad, differ, loose = (value or 0 for value in sums.collect()[0])
        self._require_good(bad)
        self._require_alike(counted, clauses)
        return _Said((left, right), bool(differ), bool(loose))

    def _require_alike(self, counted: DataFrame, clauses: Sequence[_Clause]) -> None:
        """Raise if a test takes some of the rows that are equal, and others not."""
        tested = [f"t{one.number}" for one in clauses if one.roles is None]
        if self._equal is None or not tested:
            return
        row = sf.struct(*self._columns)
        most = [sf.max_by(row, name).alias(f"most_{name}") for name in tested]
        least = [sf.min_by(row, name).alias(f"least_{name}") for name in tested]
        unlike = functools.reduce(operator.or_, (sf.min(name) != sf.max(name) for name in tested))
        grouped = counted.groupBy(*self._letters()).agg(unlike.alias("unlike"), *most, *least)
        for found in grouped.filter("unlike").limit(1).collect():
            pairs = [[self._table.from_row(found[f"{which}_{name}"]) for which in ("most", "least")] for name in tested]
            one, other = next((pair for pair in pairs if pair[0] != pair[1]), pairs[0])
            raise DependenceError(
                repr(self._upto),
                needed="a relation that treats equal events alike (if x depends on y, so does every x' equal to x)",
                came=f"{one} and {other}, equal by {self._equal!r}, of which a test takes only one",
                hint="a relation that reads only what the equality compares",
            )

    def _lost(self, counted: DataFrame, clauses: Sequence[_Clause], *, is_loose: bool) -> Found:
        """Two rows whose order differs, or is not told. The bags are equal."""
        key = self._partition_key()
        if not is_loose:
            for one in clauses:
                order = self._lost_by(counted, one)
                if order is not None:
                    return Found(orders=[order])
            raise self._disagreement("rows whose order differs", "none")
        if not all(one.is_total for one in clauses) or not key:
            return self._matched(key)
        # What differs in a key without an order proves nothing.
        hashed = counted.withColumn("hash", self._hash(key))
        loose = hashed.filter("loose = 1").select("hash").distinct()
        places = [f"r{one.number}" for one in clauses]
        rest = hashed.join(loose, "hash", "left_anti").groupBy(*self._letters(), *places)
        differ = (
            rest.agg(*_tallies(), sf.max("hash").alias("hash")).filter("l != r").agg(sf.min("hash")).collect()[0][0]
        )
        suspect = loose.agg(sf.min("hash")).collect()[0][0] if differ is None else differ
        found = self._matched(key, only=suspect)
        if found.nothing:
            raise self._disagreement("rows of one key that differ", "none that does")
        return found

    def _lost_by(self, counted: DataFrame, one: _Clause) -> Order | None:
        """Two rows whose order differs and matters to this clause; None if there are none.

        Take the first run that differs, and a row x that one side has more often there. The other side has it again,
        and before that a row y that must keep its order with it: in this run, if that is of another sort there, else in
        the next one. On the first side x comes before y, since up to this run there are as many of both.
        """
        role, run, row = f"t{one.number}", f"r{one.number}", sf.struct(*self._columns).alias("row")
        rows = counted.filter(sf.col(role) > 0)
        letters = list(self._letters())
        hashed = self._hash(one.clause.key)
        by_run = rows.select(*letters, role, run, "side", "bad", hashed, row).groupBy(*letters, role, run)
        differ = by_run.agg(*_tallies(), *_a_row_of_each(), sf.max("hash").alias("hash")).filter("l != r")
        found = differ.orderBy(run, *letters).limit(1).collect()
        if not found:
            return None
        x = found[0]
        ahead = 0 if x["l"] > x["r"] else 1
        others = rows.filter((sf.col("side") == 1 - ahead) & sf.col(run).between(x[run], x[run] + 1))
        others = others.filter((sf.col(role) == BOTH) | (sf.col(role) != x[role]))
        others = others.filter(hashed == x["hash"]).select(row, run, *letters).orderBy(run, *letters)
        event = self._table.from_row(x["left" if ahead == 0 else "right"])
        for y in others.limit(1).collect():
            pair = (event, self._table.from_row(y["row"]))
            clause = self._upto.explain(*pair)
            if clause is not None:
                return Order(0, x[run], pair if ahead == 0 else pair[::-1], clause)
        raise self._disagreement(f"a row before {event} on one side only", "none")

    def _require_good(self, bad: int) -> None:
        """Raise if there are rows that are no events of the kinds, or that have no place in the order."""
        for side, rows in zip(self._sides, self._rows, strict=True) if bad else ():
            for row in rows.plain.filter("bad = 1").select(*self._columns).limit(1).collect():
                event = self._table.from_row(row)  # raises, if it is no event
                raise SourceError(
                    side.where,
                    needed="a value in every row for each column of order_by",
                    came=repr(event),
                    hint="order_by= with columns that are never null or NaN",
                )

    # -- matching in tasks --------------------------------------------------------------------------------------------

    def _matched(self, key: tuple[str, ...], *, only: int | None = None) -> Found:
        """What matchers say about the rows, split by this key; `only` about those with this hash of it."""
        sides = []
        for number, rows in enumerate(self._rows):
            frame = rows.frame.withColumn("hash", self._hash(key))
            if only is not None:
                frame = frame.filter(sf.col("hash") == only)
            ranked = rows.ranked(frame, ["hash"], number).withColumn("n", sf.lit(1).cast("long"))
            sides.append(ranked.select(*_JUDGED, *self._columns, "bad"))
        both = sides[0].unionAll(sides[1])
        spread = both.repartition("hash") if key and only is None else both.repartition(1)
        found = self._judged(self._upto, spread.sortWithinPartitions("hash", "rank", "side"))
        self._require_good(found.bad)
        return found

    def _matched_leftovers(self, counted: DataFrame) -> Found:
        """What the equality says about the rows that do not cancel out exactly."""
        is_left = sf.col("l") > sf.col("r")
        nothing = sf.lit(0).cast("long")
        rows = counted.filter("l != r").select(
            sf.when(is_left, 0).otherwise(1).alias("side"),
            nothing.alias("rank"),
            sf.lit(None).cast("long").alias("group"),
            nothing.alias("chain"),
            sf.abs(sf.col("l") - sf.col("r")).alias("n"),
            sf.when(is_left, sf.col("left")).otherwise(sf.col("right")).alias("row"),
            "bad",
        )
        for name in self._columns:
            rows = rows.withColumn(name, sf.col("row").getField(name))
        exact = self._exact()
        rows = rows.withColumn("hash", self._hash(exact)).select(*_JUDGED, *self._columns, "bad")
        spread = rows.repartition("hash") if exact else rows.repartition(1)
        # Close values stand together, so that few of them wait for a partner.
        return self._judged(
            unordered, spread.sortWithinPartitions("hash", *map(self._groupable, self._compared()), "side")
        )

    def _judged(self, upto: Dependence, rows: DataFrame) -> Found:
        found = Found()
        for note in self._notes(rows, Judge, Task(self._table.kinds, self._types, upto, self._equal)):
            found.add(note)
        return found

    def _notes(self, rows: DataFrame, worker: Callable[[Task], Worker], task: Task) -> list[Any]:
        """What the tasks have to say about these rows."""
        cells = rows.mapInArrow(InTask(worker, task), "note binary").collect()
        notes = [pickle.loads(cell["note"]) for cell in cells]  # noqa: S301 - our own tasks wrote it
        for note in notes:
            if isinstance(note, StreamtightError):
                raise note
        return notes

    # -- a second way -------------------------------------------------------------------------------------------------

    def _like(self, rows: DataFrame, wanted: Sequence[Event]) -> DataFrame:
        """Those rows that can be equal to one of these events, as far as simple columns tell."""
        simple = [
            name
            for name in self._exact()
            if isinstance(self._types[name].dataType, (*WHOLE_NUMBERS, StringType, BooleanType, DateType))
        ]
        if not simple:
            return rows
        any_of = sf.lit(False)
        for event in wanted:
            values = dict(zip(self._table.struct.names, self._table.to_row(event), strict=True))
            all_of = sf.lit(True)
            for name in simple:
                column = sf.col(self._columns[self._types.names.index(name)])
                all_of = all_of & column.eqNullSafe(sf.lit(values[name]))
            any_of = any_of | all_of
        return rows.filter(any_of)

    def _counts(self, wanted: Sequence[Event]) -> list[tuple[int, int]]:
        """How often either side has these, by the equality of events."""
        sides = [
            self._like(rows.plain, wanted).select(sf.lit(number).alias("side"), *self._columns)
            for number, rows in enumerate(self._rows)
        ]
        task = Task(self._table.kinds, self._types, self._upto, self._equal, tuple(wanted))
        counts = [(0, 0)] * len(wanted)
        for note in self._notes(sides[0].unionAll(sides[1]), Counter, task):
            counts = [(left + n, right + m) for (left, right), (n, m) in zip(counts, note, strict=True)]
        return counts

    def _alternate_differently(self, first: Event, second: Event) -> bool:
        """Have the two sides another order of these two, all other rows left out?"""
        sides = []
        for number, rows in enumerate(self._rows):
            frame = self._like(rows.frame, (first, second)).withColumn("hash", self._hash(()))
            sides.append(rows.ranked(frame, ["hash"], number).select("side", "rank", *self._columns))
        both = sides[0].unionAll(sides[1]).repartition(1).sortWithinPartitions("rank", "side")
        task = Task(self._table.kinds, self._types, self._upto, self._equal, (first, second))
        return any(self._notes(both, Alternation, task))


@dataclass(frozen=True, slots=True)
class _Clause:
    """A clause, and the role that rows of each kind have in it; None if that is a matter of tests."""

    number: int
    clause: Clause
    roles: Mapping[str, int] | None

    @property
    def is_total(self) -> bool:
        """Does it order every two rows of a key?"""
        return self.roles is not None and set(self.roles.values()) == {BOTH}

    @property
    def only_both(self) -> bool:
        """Is a row on both of its sides, or on none?"""
        return self.clause.left == self.clause.right or (
            self.roles is not None and set(self.roles.values()) <= {0, BOTH}
        )

    @property
    def can_relate(self) -> bool:
        """Can there be rows on its left side, and rows on its right?"""
        return self.roles is None or functools.reduce(operator.or_, self.roles.values(), 0) == BOTH


class _Said(NamedTuple):
    """What counting says: whether there are rows that differ, and whether some may be in no order."""

    seen: tuple[int, int]
    differ: bool
    loose: bool


_JUDGED = ("hash", "side", "rank", "group", "chain", "n")


def _spread(rows: DataFrame, by: Iterable[str]) -> DataFrame:
    """The rows, shuffled by what they are grouped by.

    Else Spark would group them before the shuffle, too. Rows that are all different, as those of most recordings are,
    would fill the memory of a task that reads a large file for nothing.
    """
    return rows.repartition(*by)


def _tallies() -> list[Column]:
    return [sf.sum(1 - sf.col("side")).alias("l"), sf.sum("side").alias("r"), sf.sum("bad").alias("bad")]


def _a_row_of_each() -> list[Column]:
    """A row of the left side, and one of the right."""
    return [
        sf.first(sf.when(sf.col("side") == number, sf.col("row")), ignorenulls=True).alias(name)
        for number, name in enumerate(("left", "right"))
    ]


def _code(equal: Equal) -> str:
    """An equality as it can be pasted; a function only by its name."""
    text = repr(equal) if isinstance(equal, Equality) else getattr(equal, "__name__", repr(equal))
    return f"...  # {text}\n" if "<" in text else text


def _times(count: int) -> str:
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")


def _rows_are(count: int) -> str:
    return "1 row is" if count == 1 else f"{count} rows are"
