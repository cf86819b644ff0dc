"""The rows of a recorded output as Spark compares them: columns that can be grouped, and their places in the order.

**Runs.** A clause (left, right, key) says that rows of one key keep their order if one is on the left side and the
other on the right. Take the rows of one key that it speaks of: neighbours may be swapped if both are only on the left,
or both only on the right. So these rows are a sequence of *runs*: several rows of one such sort in any order, or one
row that is on both sides. Swaps never leave a run; hence two streams are the same up to this clause exactly if each run
has the same rows. And they are the same up to several clauses if they are so up to each of them, since then every two
rows that must keep their order do (projections of traces). Equal rows are in the same sort and key, and their runs go
up, so the runs of all clauses can stand side by side as columns: streams are the same exactly if they have the same
rows, with the numbers of their runs, equally often. For `ordered` the number of the run is that of the row; for
`same(key)` that of the row in its key; for `barrier(p)` that of the epoch.
"""

from __future__ import annotations

import collections
import functools
import re
from collections.abc import Iterable, Sequence
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession, Window, WindowSpec
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType

from streamtight.errors import SourceError
from streamtight.spark.recorded_files import Side
from streamtight.spark.recorded_tasks import BOTH, LEFT, RIGHT
from streamtight.spark.rows import KIND_COLUMN, Table, struct_of
from streamtight.stream.dependence import Clause


class Rows:
    """The rows of one side: the compared columns as c0, c1, ..., and what is known about their order."""

    def __init__(self, spark: SparkSession, side: Side, table: Table, types: StructType) -> None:
        self._spark = spark
        self._side = side
        self._read = side.read(spark)
        self._columns = [
            _quoted(column.name).cast(column.dataType).alias(f"c{place}") for place, column in enumerate(types.fields)
        ]
        self._by = _order_columns(side, types)
        bad = [_is_no_event(table, types)]
        for name, column in self._by.items():
            bad.append(column.isNull())
            if isinstance(types[name].dataType, FloatType | DoubleType):
                bad.append(sf.isnan(column))
        self._bad = sf.lit(False)
        for one in bad:
            self._bad = self._bad if one is None else self._bad | one
        self.plain = self._read.select(*self._columns).withColumn("bad", self._bad.cast("int"))
        """Without the order."""

    @functools.cached_property
    def _order(self) -> list[str]:
        """The columns that order the rows. The number of a file says its micro-batch, too."""
        by_files = ["batch", "file", "block", "place"] if self.can_be_loose else ["file", "block", "place"]
        return [f"o{place}" for place in range(len(self._by))] or by_files

    @property
    def by_files(self) -> bool:
        """Do the files say the order, and no columns?"""
        return not self._by

    @functools.cached_property
    def frame(self) -> DataFrame:
        """With the columns that order them."""
        if self._by:
            return self.plain.withColumns(dict(zip(self._order, self._by.values(), strict=True)))
        return self._placed()

    @functools.cached_property
    def _files(self) -> list[tuple[str, int, int, int]]:
        """Each file: its path, its number, the place of its micro-batch, and how many files that one has."""
        if not self._side.paths:
            return []
        placed = sorted((self._side.batch_of(path), path) for path in self._read.inputFiles())
        sizes = collections.Counter(batch for batch, _ in placed)
        return [(_LOCAL.sub("file:/", path), n, batch, sizes[batch]) for n, (batch, path) in enumerate(placed)]

    @property
    def can_be_loose(self) -> bool:
        """Can there be rows in no order?"""
        return bool(self._by) or any(size > 1 for *_, size in self._files)

    def _placed(self) -> DataFrame:
        """By micro-batch, file, and place in the file."""
        zero = sf.lit(0).cast("long")
        if not self._files:
            return self.plain.withColumns(dict.fromkeys(("batch", "file", "block", "place", "files"), zero))
        about = self._read.metadataColumn("_metadata")
        if self._side.format == "parquet":
            places = {"block": zero, "place": about.getField("row_index")}
        else:  # a long file is read in blocks, each from its beginning to its end
            places = {"block": about.getField("file_block_start"), "place": sf.monotonically_increasing_id()}
        paths = [path for path, *_ in self._files]
        names = {path: path.rpartition("/")[2] for path in paths}
        if len(set(names.values())) == len(paths) and all(map(_PLAIN_NAME.fullmatch, names.values())):
            path = about.getField("file_name")  # no need to look at the whole path of every row
        else:
            names = {path: path for path in paths}
            path = sf.regexp_replace(about.getField("file_path"), _LOCAL.pattern, "file:/")
        order = (column.alias(name) for name, column in places.items())
        frame = self._read.select(*self._columns, *order, path.alias("path"))
        frame = frame.withColumn("bad", self._bad.cast("int"))
        if len(self._files) == 1:
            return frame.withColumns({"batch": zero, "file": zero, "files": zero + 1}).drop("path")
        files = [(names[path], *about) for path, *about in self._files]
        known = self._spark.createDataFrame(files, "path string, file long, batch long, files long")
        lost = sf.raise_error(sf.concat(sf.lit("a file that was not there before: "), sf.col("path"))).cast("long")
        placed = frame.join(sf.broadcast(known), "path", "left")
        return placed.withColumn("file", sf.coalesce(sf.col("file"), lost)).drop("path")

    def ranked(self, frame: DataFrame, keys: Sequence[str], side: int) -> DataFrame:
        """These rows of it with their places within their key, and with what is in no order there.

        Rows of one `group` but of different `chain`s are in no order; `group` is null where there are none.
        """
        of_key = self._within(keys)
        frame = frame.withColumns({"rank": sf.row_number().over(of_key).cast("long"), "side": sf.lit(side)})
        if not self.can_be_loose:
            return frame.withColumns({"group": sf.lit(None).cast("long"), "chain": sf.lit(0).cast("long")})
        if not self._by:
            return frame.withColumns({"group": sf.when(sf.col("files") > 1, sf.col("batch")), "chain": sf.col("file")})
        frame = frame.withColumn("tie", sf.dense_rank().over(of_key).cast("long"))
        neighbours = (sf.lag("tie").over(of_key), sf.lead("tie").over(of_key))
        is_tied = sf.coalesce(sf.col("tie").isin(*neighbours), sf.lit(False))
        return frame.withColumns({"group": sf.when(is_tied, sf.col("tie")), "chain": sf.col("rank")})

    def with_runs(
        self, frame: DataFrame, number: int, keys: Sequence[str], compared: Column, *, only_both: bool
    ) -> DataFrame:
        """These rows, of one side or both, with the run of each in this clause as r0, r1, ... by its number.

        Its roles are there as t0, t1, ...; if `only_both`, none but 0 and 3. `compared` is what is compared of a row.
        `loose` is 1 somewhere in a key that may have unequal rows in no order; if every role is 3, it has.
        """
        role = f"t{number}"
        frame = frame.withColumns({"compared": compared, "speaks": sf.col(role) > 0})
        keys = ["side", "speaks", *keys]
        of_key = self._within(keys)
        if only_both:
            frame = frame.withColumn("run", sf.row_number().over(of_key).cast("long"))
        else:
            begins = (sf.col(role) == BOTH) | ~sf.lag(role).over(of_key).eqNullSafe(sf.col(role))
            so_far = of_key.rowsBetween(Window.unboundedPreceding, Window.currentRow)
            frame = frame.withColumn("begins", begins.cast("long"))
            frame = frame.withColumn("run", sf.sum("begins").over(so_far))
        frame = frame.withColumn(f"r{number}", sf.when(sf.col("speaks"), sf.col("run")))
        if self._by:
            # All rows of a tie are equal if each is equal to the one before it.
            order = sf.struct(*self._order)
            is_tied = sf.lag(order).over(of_key).eqNullSafe(order)
            loose = (is_tied & _is_other("compared", of_key)).cast("int")
        elif self.can_be_loose:
            # Two files and two values in a micro-batch: then a row in one file has an unequal one in another.
            of_batch = self._within(keys, "batch")
            notes = {name: _is_other(name, of_batch).cast("int") for name in ("file", "compared")}
            frame = frame.withColumns({f"other_{name}": column for name, column in notes.items()})
            so_far = of_batch.rowsBetween(Window.unboundedPreceding, Window.currentRow)
            both = [sf.max(f"other_{name}").over(so_far) for name in notes]
            loose = sf.when(sf.col("files") > 1, both[0] * both[1]).otherwise(0)
        else:
            return frame
        return frame.withColumn("loose", sf.greatest("loose", sf.when(sf.col("speaks"), loose).otherwise(0)))

    def with_places(self, frame: DataFrame, number: int) -> DataFrame:
        """These rows with their places among all, as the run of this clause: it is enough to count those of files."""
        pieces = frame.groupBy("file", "block").agg(sf.count("*").alias("size"), sf.min("place").alias("start"))
        before, known = 0, []
        for file, block, size, start in sorted(tuple(row) for row in pieces.collect()):
            known.append((file, block, before - start + 1))
            before += size
        return (
            self._shifted(frame, known, "file long, block long, shift long")
            .withColumn(f"r{number}", sf.col("place") + sf.col("shift"))
            .drop("shift")
        )

    def with_joined_runs(self, frame: DataFrame, number: int) -> DataFrame:
        """These rows with their runs in a clause without a key, out of those within each piece of a file."""
        role, run = f"t{number}", f"u{number}"
        speaks = sf.when(sf.col(role) > 0, sf.col("place"))
        pieces = frame.groupBy("file", "block", "start").agg(
            sf.max(run), sf.min_by(role, speaks), sf.max_by(role, speaks)
        )
        known = shifts_of_runs(sorted(tuple(row) for row in pieces.collect()))
        shifted = self._shifted(frame, known, "file long, block long, start long, shift long")
        joined = sf.when(sf.col(role) > 0, sf.col(run) + sf.col("shift"))
        return shifted.withColumn(f"r{number}", joined).drop("shift")

    def _shifted(self, frame: DataFrame, known: Sequence[tuple[int, ...]], columns: str) -> DataFrame:
        shifts = self._spark.createDataFrame(known, columns)
        joined = frame.join(sf.broadcast(shifts), [name for name in shifts.columns if name != "shift"], "left")
        lost = sf.raise_error(sf.lit("the files have changed")).cast("long")
        return joined.withColumn("shift", sf.coalesce(sf.col("shift"), lost))

    def _within(self, keys: Sequence[str], *more: str) -> WindowSpec:
        columns = [sf.col(name) for name in (*keys, *more)]
        # If there is no key, all rows have the same one: without any, Spark warns.
        # What rows agree on does not order them; if it stood there, Spark would sort them again.
        order = [name for name in self._order if name not in more]
        return Window.partitionBy(*(columns or [sf.lit(0)])).orderBy(*order)


def shifts_of_runs(pieces: Iterable[Sequence[Any]]) -> list[tuple[int, ...]]:
    """What to add to the runs within each piece: file, block and start of it, and how many runs there are before.

    Of a piece is known, after these three, how many runs it has, and the roles of its first and last row that counts.
    """
    before, last, shifts = 0, 0, []
    for *place, runs, first, final in pieces:
        if runs and first == last and last != BOTH:
            before -= 1  # the run goes on from the piece before
        shifts.append((*place, before))
        before += runs
        last = final or last
    return shifts


def roles_in(clause: Clause, table: Table) -> dict[str, int]:
    """For each kind, by its name, the role that its rows have in a clause without tests."""
    return {kind.name: LEFT * clause.left.always(kind) + RIGHT * clause.right.always(kind) for kind in table.kinds}


def _is_other(name: str, window: WindowSpec) -> Column:
    """Has a row another value there than the one before it? Not the first."""
    is_first = sf.row_number().over(window) == 1
    return ~is_first & ~sf.lag(name).over(window).eqNullSafe(sf.col(name))


_LOCAL = re.compile("^file:/+")
_PLAIN_NAME = re.compile(r"[\w.-]+", re.ASCII)  # looks the same in a path and in a URI


def _order_columns(side: Side, types: StructType) -> dict[str, Column]:
    """The columns that the user named for the order."""
    for name in side.given.order_by:
        if name not in types.names:
            raise SourceError(
                side.where,
                needed="order_by= with columns that are there",
                came=repr(name),
                hint="one of " + ", ".join(types.names),
            )
        if _has_map(types[name].dataType):
            raise SourceError(
                side.where,
                needed="order_by= with columns that have an order",
                came=f"{name!r}, a map",
                hint="another one",
            )
    return {name: sf.col(f"c{types.names.index(name)}") for name in side.given.order_by}


def _is_no_event(table: Table, types: StructType) -> Column | None:
    """Is a row of no kind: of an unknown one, with null where it needs a value, or with a value for none of its fields?

    None if none can be.
    """

    def column(name: str) -> Column:
        return sf.col(f"c{types.names.index(name)}")

    wrong: dict[str, Column | None] = {}
    for kind in table.kinds:
        tests = [_lacks(column(field.name), field.dataType, field.nullable) for field in struct_of(kind).fields]
        if len(table.kinds) > 1:
            tests += [column(name).isNotNull() for name in types.names if name not in {KIND_COLUMN, *kind.names}]
        wrong[kind.name] = functools.reduce(_either, tests, None)
    if len(wrong) == 1:
        return wrong[table.kinds[0].name]
    chosen = sf.when(sf.lit(False), sf.lit(True))
    for name, test in wrong.items():
        chosen = chosen.when(column(KIND_COLUMN) == name, sf.lit(False) if test is None else test)
    return chosen.otherwise(True)


def _either(one: Column | None, other: Column | None) -> Column | None:
    return other if one is None else one if other is None else one | other


def _lacks(column: Column, declared: DataType, nullable: bool) -> Column | None:
    """Is there a null where the declared type admits none? None if there cannot be."""
    inside: Column | None = None
    if isinstance(declared, ArrayType | MapType):
        if isinstance(declared, ArrayType):
            item, has_null, items = declared.elementType, declared.containsNull, column
        else:
            item, has_null, items = declared.valueType, declared.valueContainsNull, sf.map_values(column)
        if _lacks(column, item, has_null) is not None:
            inside = sf.exists(items, lambda value: cast(Column, _lacks(value, item, has_null)))
    elif isinstance(declared, StructType):
        parts = [_lacks(column.getField(field.name), field.dataType, field.nullable) for field in declared.fields]
        inside = functools.reduce(_either, parts, None)
    if inside is None:
        return None if nullable else column.isNull()
    inside = column.isNotNull() & sf.coalesce(inside, sf.lit(False))
    return inside if nullable else column.isNull() | inside


def _quoted(name: str) -> Column:
    return sf.col("`" + name.replace("`", "``") + "`")


def _has_map(data_type: DataType) -> bool:
    if isinstance(data_type, StructType):
        return any(_has_map(column.dataType) for column in data_type.fields)
    return isinstance(data_type, MapType) or (isinstance(data_type, ArrayType) and _has_map(data_type.elementType))


def groupable(column: Column, data_type: DataType) -> Column:
    """The column as it can be grouped, sorted and hashed: Spark knows no order of maps."""
    if not _has_map(data_type):
        return column
    if isinstance(data_type, ArrayType):
        item = data_type.elementType
        return sf.transform(column, lambda value: groupable(value, item))
    if isinstance(data_type, StructType):
        fields = [groupable(column.getField(f.name), f.dataType).alias(f.name) for f in data_type.fields]
        return sf.when(column.isNotNull(), sf.struct(*fields))
    pairs = cast(MapType, data_type)

    def pair(entry: Column) -> Column:
        key, value = entry.getField("key"), entry.getField("value")
        return sf.struct(groupable(key, pairs.keyType).alias("key"), groupable(value, pairs.valueType).alias("value"))

    return sf.array_sort(sf.transform(sf.map_entries(column), pair))
