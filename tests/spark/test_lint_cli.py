"""`streamtight lint`: files in, lines and a number out; nothing is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamtight.cli.app import app

pytestmark = pytest.mark.usefixtures("spark")

SCRIPT = """\
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

spark = SparkSession.builder.getOrCreate()
rows = spark.createDataFrame([(1, 2), (1, 3)], "k int, v int")
print("counted", rows.count())


def latest(df: DataFrame) -> DataFrame:
    return df.dropDuplicates(["k"])


def total(df: DataFrame) -> DataFrame:
    return df.groupBy("k").agg(sf.sum("v").alias("v"))


def upsert(batch, batch_id):
    batch.write.mode("append").parquet("rows")


latest(rows).write.mode("overwrite").parquet("latest")
total(rows).write.saveAsTable("totals")
counts = spark.readStream.format("rate").load().groupBy("value").count()
query = counts.writeStream.outputMode("update").foreachBatch(upsert).start()
query.awaitTermination()
spark.stop()
"""


STREAM = """\
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def replace(batch, batch_id):
    batch.write.mode("overwrite").parquet(f"rows/{batch_id}")


def append(batch, batch_id):
    batch.write.mode("append").parquet("rows")


def merge(batch, batch_id):
    batch.createOrReplaceTempView("changes")
    batch.sparkSession.sql("MERGE INTO rows USING changes ON rows.value = changes.value WHEN NOT MATCHED THEN INSERT *")


rates = spark.readStream.format("rate").load()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "job.py").write_text(SCRIPT)
    (tmp_path / "clean.py").write_text(SCRIPT.split("latest(rows)")[0] + 'total(rows).write.parquet("totals")\n')
    (tmp_path / "nothing.py").write_text("x = 1\n")
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "broken.py").write_text("def latest(df:\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["lint", *arguments])
    return result.exit_code, result.stdout


def test_a_script_is_read_without_its_writes(folder: Path) -> None:
    code, told = run("job.py")

    assert code == 2
    assert [line.split(" (")[0] for line in told.splitlines()] == [
        "job.py:10: DUPLICATE_CHOICE",
        "job.py:17: SINK_APPENDS_AGAIN",
        "job.py:23: NO_WATERMARK",
        "job.py:24: MODE_COUNTS_TWICE",
    ]
    assert {path.suffix for path in folder.iterdir()} == {".py"}


def test_a_clean_script_ends_with_0(folder: Path) -> None:
    assert run("clean.py") == (0, "")


@pytest.mark.slow
def test_a_function_that_is_shown_ends_with_1(folder: Path) -> None:
    code, told = run("job.py:latest", "--input", "table[k: int, v: int]", "--confirm", "--format", "json")

    assert code == 1
    (found,) = json.loads(told)["findings"]
    assert (found["rule"], found["file"], found["line"], found["shown"]) == ("DUPLICATE_CHOICE", "job.py", 10, "shown")


def test_a_key_makes_the_same_function_clean(folder: Path) -> None:
    assert run("job.py:latest", "--input", "table[k: int, v: int].key('k')") == (0, "")


def test_an_order_can_be_asked_for(folder: Path) -> None:
    code, told = run("job.py:total", "--input", "table[k: int, v: int]", "--gives", "same(k)")

    assert code == 2
    assert "ORDER_LOST" in told


def test_sarif_has_the_lines(folder: Path) -> None:
    code, told = run("job.py", "--format", "sarif")

    assert code == 2
    results = json.loads(told)["runs"][0]["results"]
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == 10


@pytest.mark.parametrize(
    ("write", "rules"),
    [
        ('outputMode("append").foreachBatch(append)', ["SINK_APPENDS_AGAIN"]),
        ('outputMode("update").foreachBatch(append)', ["SINK_APPENDS_AGAIN", "MODE_COUNTS_TWICE"]),
        ('outputMode("append").foreachBatch(replace)', []),
        ('outputMode("update").foreachBatch(replace)', ["MODE_COUNTS_TWICE"]),
        ('outputMode("update").foreachBatch(merge)', []),
    ],
    ids=["appends", "appends changes", "replaces its batch", "changes beside changes", "merges"],
)
def test_where_a_stream_goes_is_read_too(folder: Path, write: str, rules: list[str]) -> None:
    (folder / "stream.py").write_text(f"{STREAM}rates.writeStream.{write}.start()\n")

    code, told = run("stream.py")

    assert [line.split(" (")[0].split(": ")[1] for line in told.splitlines()] == rules
    assert code == (2 if rules else 0)


TABLE = ["--input", "table[k: int]"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["job.py:latest"], "--input 'table[k: int, v: int?]'"),
        (["job.py:no_such", *TABLE], "job.py:latest"),
        (["no_such.py"], "its path from this folder"),
        (["no_such.py:latest", *TABLE], "its path from this folder"),
        (["raises.py"], "ZeroDivisionError"),
        (["broken.py"], "SyntaxError"),
        (["broken.py:latest", *TABLE], "SyntaxError"),
        (["job.py:latest", "--input", "table[k: int"], "table[k: int, v: int?]"),
        (["job.py:latest", *TABLE, "--sample", "rows.csv"], "--input for each of its parameters"),
        (["job.py:latest", "--sample", "no_such.csv"], "no_such.csv"),
        (["job.py:latest", *TABLE, "--gives", "sideways"], "--gives 'same(user)'"),
        (["job.py:latest", *TABLE, "--gives", "same(v)"], "columns of the result"),
        (["job.py:latest", *TABLE, *TABLE], "latest"),
        (["job.py:total", *TABLE], "columns that it needs"),
        (["job.py:latest", *TABLE, "--format", "xml"], "--format json"),
        (["job.py:latest", *TABLE, "--mode", "often"], "mode='batch'"),
        (["job.py:latest", "--input", "rdd[int]", *TABLE], "RDDs alone"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else "",
)
def test_a_wrong_question_ends_with_3_and_says_what_to_do(folder: Path, arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(app, ["lint", *arguments])

    assert (result.exit_code, result.stdout) == (3, "")
    assert told in result.stderr


def test_a_script_that_writes_nothing_is_not_called_fine(folder: Path) -> None:
    assert run("nothing.py")[0] == 2
