"""The columns of a table, taken from a file that has some of its rows."""

from __future__ import annotations

from pathlib import Path

from streamtight.errors import SourceError
from streamtight.method.prove.inputs import TableInput, table
from streamtight.spark.load import first_line
from streamtight.spark.session import session


def sample_of(path: Path) -> TableInput:
    """A table with the columns of this Parquet, CSV (with a header) or JSON Lines file. All of them may be null."""
    ending = path.suffix.lower()
    if not path.exists() or ending not in (".parquet", ".csv", ".json", ".jsonl"):
        raise SourceError(
            f"--sample {path}",
            needed="a file that ends in .parquet, .csv or .json",
            came="no such file" if not path.exists() else repr(path.suffix),
            hint="--input 'table[k: int, v: int?]'",
        )
    read, file = session().read, str(path.resolve())  # the JVM may have been started in another folder
    try:
        if ending == ".parquet":
            return table(read.parquet(file))
        if ending == ".csv":
            return table(read.csv(file, header=True, inferSchema=True))
        return table(read.json(file))
    except SourceError:
        raise
    except Exception as error:  # the border to what Spark makes of the file
        raise SourceError(
            f"--sample {path}",
            needed="a file that Spark can read",
            came=f"{type(error).__name__}: {first_line(error)}",
            hint="--input 'table[k: int, v: int?]'",
        ) from error
