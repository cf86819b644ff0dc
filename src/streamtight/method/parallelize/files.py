"""Input streams in Parquet files: read where they are needed, a lane by every so many row groups."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet

from streamtight.errors import InputError

_ROWS = 65_536
"""How many rows are taken out of a file at once."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a stream, in the order of time, and how many row groups each has."""

    paths: tuple[str, ...]
    groups: tuple[int, ...]

    @classmethod
    def at(cls, stream: str, where: Any) -> Files:
        """The files of a path, a folder (in the order of their names), a pattern, or several of these."""
        several = where if isinstance(where, (list, tuple)) else [where]
        if not all(isinstance(each, (str, os.PathLike)) for each in several):
            raise InputError(
                f"stream {stream!r}",
                needed="a DataFrame or paths of files",
                came=repr(where)[:80],
                hint="'values.parquet'",
            )
        paths = [path for each in several for path in _listed(each)]
        if not paths:
            raise InputError(
                f"stream {stream!r}",
                needed="Parquet files",
                came=f"none at {where!r}",
                hint="a path of a file or folder",
            )
        groups = []
        for path in paths:
            try:
                groups.append(_opened(path).num_row_groups)
            except (pa.ArrowInvalid, OSError) as error:
                raise InputError(
                    f"stream {stream!r}", needed="Parquet files", came=f"{path}: {error}", hint="df.write.parquet(path)"
                ) from error
        return cls(tuple(paths), tuple(groups))

    def batches(self, lane: int = 0, lanes: int = 1) -> Iterator[pa.RecordBatch]:
        """The rows of a lane: of every so many row groups, one after the other."""
        before = 0
        for path, count in zip(self.paths, self.groups, strict=True):
            mine = [group for group in range(count) if (before + group) % lanes == lane]
            before += count
            if mine:
                file = _opened(path)
                instants = _int96_columns(file)
                for batch in file.iter_batches(batch_size=_ROWS, row_groups=mine):
                    yield batch if not instants else _with_zone(batch, instants)

    def type_of(self, column: str) -> pa.DataType | None:
        """The type of a column; None if there is none."""
        file = _opened(self.paths[0])
        if column not in file.schema_arrow.names:
            return None
        zone = "UTC" if column in _int96_columns(file) else None
        return pa.timestamp("us", zone) if zone else file.schema_arrow.field(column).type


def _opened(path: str) -> pyarrow.parquet.ParquetFile:
    system, inside = pyarrow.fs.FileSystem.from_uri(path) if "://" in path else (None, path)
    return pyarrow.parquet.ParquetFile(inside, filesystem=system, coerce_int96_timestamp_unit="us")


def _int96_columns(file: pyarrow.parquet.ParquetFile) -> frozenset[str]:
    """The columns of the old type for times, in which Spark writes instants; the file does not say so."""
    columns = (file.schema.column(place) for place in range(len(file.schema)))
    return frozenset(column.name for column in columns if column.physical_type == "INT96")


def _with_zone(batch: pa.RecordBatch, instants: frozenset[str]) -> pa.RecordBatch:
    columns = {
        name: column.cast(pa.timestamp("us", "UTC")) if name in instants else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    return pa.RecordBatch.from_pydict(columns)


def _listed(where: Any) -> Sequence[str]:
    path = os.fspath(where)
    if "://" in path:
        system, inside = pyarrow.fs.FileSystem.from_uri(path)
        if system.get_file_info(inside).type is not pyarrow.fs.FileType.Directory:
            return [path]
        found = system.get_file_info(pyarrow.fs.FileSelector(inside))
        scheme = path.split("://", 1)[0]
        return sorted(f"{scheme}://{each.path}" for each in found if each.path.endswith(".parquet"))
    if os.path.isdir(path):
        return sorted(glob.glob(os.path.join(glob.escape(path), "*.parquet")))
    return [path] if os.path.exists(path) else sorted(glob.glob(path))
