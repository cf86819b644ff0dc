"""Tables from files that have some of their rows, and the types of their columns for Spark."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from streamtight.errors import SourceError
from streamtight.method.prove.inputs import TableInput
from streamtight.spark.load import first_line
from streamtight.spark.session import session


def read_sample(path: Path, option: str = "--sample") -> DataFrame:
    """The rows of this Parquet, CSV (with a header) or JSON Lines file, or of a folder of Parquet files."""
    ending = path.suffix.lower()
    if path.is_dir() and not ending:
        ending = ".parquet"
    if not path.exists() or ending not in (".parquet", ".csv", ".json", ".jsonl"):
        raise SourceError(
            f"{option} {path}",
            needed="a file that ends in .parquet, .csv or .json",
            came="no such file" if not path.exists() else repr(path.suffix),
            hint="--input 'table[k: int, v: int?]'",
        )
    read, file = session().read, str(path.resolve())  # the JVM may have been started in another folder
    try:
        if ending == ".parquet":
            return read.parquet(file)
        if ending == ".csv":
            return read.csv(file, header=True, inferSchema=True)
        return read.json(file, multiLine=path.is_file() and _is_array(path))
    except Exception as error:  # the border to what Spark makes of the file
        raise SourceError(
            f"{option} {path}",
            needed="a file that Spark can read",
            came=f"{type(error).__name__}: {first_line(error)}",
            hint="--input 'table[k: int, v: int?]'",
        ) from error


def _is_array(path: Path) -> bool:
    """Does a JSON file hold one list of rows, and not a row on each line?"""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(1000).lstrip("\ufeff \n\r\t").startswith("[")


def struct_of_input(given: TableInput) -> StructType:
    """The columns of a table as Spark has them."""
    fields = [{"name": one.name, "type": one.type, "nullable": one.nullable, "metadata": {}} for one in given.fields]
    return StructType.fromJson({"type": "struct", "fields": fields})
