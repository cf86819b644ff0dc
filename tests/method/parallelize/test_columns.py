"""Rows of Arrow as events and blocks, files in lanes, outputs packed and unpacked."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from streamtight.errors import InputError
from streamtight.method.parallelize.columns import Outputs, Rows, StreamReader, output_table
from streamtight.method.parallelize.files import Files
from streamtight.program.fork_join import ForkJoin
from streamtight.program.tags import Bucket, Tags, tags
from streamtight.stream.dependence import barrier, same
from streamtight.stream.event import Event, Kind

Add = Kind("Add", time=int, key=str, n=int | None)
Read = Kind("Read", time=int, key=str)
Mean = Kind("Mean", time=float, value=float, is_good=bool)


class Counters(ForkJoin):
    takes, depends = (Add, Read), barrier(Read) & same("key")


class Means(ForkJoin):
    takes, depends = (Mean,), barrier(Mean)


def batch_of(**columns: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def reader(*wanted: Tags, of: Iterable[Tags] = ()) -> StreamReader:
    return StreamReader(Counters(), "log", 2, list(of) or [Tags(Add), Tags(Read)], list(wanted))


def events(read: StreamReader, batch: pa.RecordBatch) -> list[tuple[int, list[Event]]]:
    return [(number, list(rows.events())) for number, rows in read.rows(batch)]


def test_rows_of_several_kinds_are_told_apart():
    read = reader(Tags(Add), Tags(Read))
    batch = batch_of(kind=["Add", "heartbeat", "Read"], time=[1, 1, 2], key=["a", None, "b"], n=[5, None, None])

    assert events(read, batch) == [(0, [Add(1, "a", 5)]), (1, [Read(2, "b")])]
    assert read.last == (2, 1, 2)


def test_rows_of_one_kind_need_no_column_that_says_so():
    read = reader(Tags(Read), of=[Tags(Read)])

    assert events(read, batch_of(time=[1, 1], key=["a", ""])) == [(0, [Read(1, "a"), Read(1, "")])]


def test_shares_get_the_rows_of_their_keys():
    halves = [tags(Read, key=Bucket(index, of=2)).parts[0] for index in range(2)]
    keys = ["a", "b", "c", "ä", "", "日本"]

    found = dict(events(reader(*halves, of=[Tags(Read)]), batch_of(time=list(range(6)), key=keys)))

    assert all(event.key in Bucket(index, of=2) for index, some in found.items() for event in some)
    assert sorted(event.key for some in found.values() for event in some) == sorted(keys)


def test_nulls_are_none_where_the_kind_says_so_and_refused_elsewhere():
    read = reader(Tags(Add), of=[Tags(Add)])

    assert events(read, batch_of(time=[1], key=["a"], n=pa.array([None], pa.int64()))) == [(0, [Add(1, "a", None)])]
    with pytest.raises(InputError, match=r"column 'key' of Add: needed a value in every row.*came 1 nulls"):
        events(read, batch_of(time=[1], key=pa.array([None], pa.string()), n=[1]))


def test_events_have_the_one_nan_and_blocks_have_numpys():
    read = StreamReader(Means(), "means", 0, [Tags(Mean)], [Tags(Mean)])
    ((_, rows),) = read.rows(batch_of(time=[0.5, 1.5], value=[math.nan, 2.0], is_good=[True, False]))

    assert list(rows.events()) == [Mean(0.5, math.nan, True), Mean(1.5, 2.0, False)]
    block = rows.block()
    assert len(block) == 2
    assert np.isnan(block["value"][0])
    assert block["is_good"].dtype == bool
    assert dict(block.columns).keys() == {"time", "value", "is_good"}


def test_integers_are_floats_where_the_kind_says_so():
    read = StreamReader(Means(), "means", 0, [Tags(Mean)], [Tags(Mean)])
    ((_, rows),) = read.rows(batch_of(time=[1, 2], value=[3, 4], is_good=[True, True]))

    assert [type(event.value) for event in rows.events()] == [float, float]


def test_narrow_floats_are_floats_of_python():
    read = StreamReader(Means(), "means", 0, [Tags(Mean)], [Tags(Mean)])
    value = pa.array([0.1], pa.float32())
    ((_, rows),) = read.rows(pa.RecordBatch.from_pydict({"time": [1.0], "value": value, "is_good": [True]}))

    assert rows.block()["value"].dtype == np.float64


def test_numbers_that_do_not_fit_are_refused():
    read = StreamReader(Counters(), "adds", 0, [Tags(Add)], [Tags(Add)])
    batch = pa.RecordBatch.from_pydict({"time": [1], "key": ["a"], "n": pa.array([2**64 - 1], pa.uint64())})

    with pytest.raises(InputError, match="column 'n' of Add: needed values that are int64"):
        events(read, batch)


def test_times_in_the_old_type_of_parquet_are_instants(tmp_path: Path):
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    table = pa.table({"at": pa.array([at], pa.timestamp("us", "UTC"))})
    pyarrow.parquet.write_table(table, tmp_path / "old.parquet", use_deprecated_int96_timestamps=True)
    files = Files.at("old", tmp_path)

    (batch,) = files.batches()

    assert batch.column("at").type == pa.timestamp("us", "UTC") == files.type_of("at")
    assert batch.column("at").to_pylist() == [at]
    assert files.type_of("nothing") is None


def test_a_slice_has_the_same_columns():
    rows = Rows(Read, np.array([1, 2, 3]), batch_of(time=[1, 2, 3], key=["a", "b", "c"])).read_all()

    assert list(rows.slice(1, 3).events()) == [Read(2, "b"), Read(3, "c")]
    assert rows.slice(1, 2).block()["key"] == ["b"]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"time": [2, 1], "key": ["a", "b"]}, "came time 1 after time 2"),
        ({"time": [1.0, math.nan], "key": ["a", "b"]}, "came time nan after time 1.0"),
        ({"time": [None, 1], "key": ["a", "b"]}, "needed times: whole numbers, floats or timestamps; came 1 nulls"),
        ({"time": ["1", "2"], "key": ["a", "b"]}, "needed times: whole numbers, floats or timestamps; came string"),
        ({"time": [1, 2]}, "needed the columns time, key of Read; came time"),
        ({"key": ["a"]}, "needed a column 'time', the time; came key"),
        ({"time": [1, 2], "key": [1, 2]}, "column 'key' of Read: needed str; came int64"),
    ],
    ids=["back", "nan", "null", "text", "missing", "no time", "type"],
)
def test_rows_that_do_not_fit_are_refused(columns: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        events(reader(Tags(Read), of=[Tags(Read)]), batch_of(**columns))


def test_a_stream_may_not_go_back_from_batch_to_batch():
    read = reader(Tags(Read), of=[Tags(Read)])
    events(read, batch_of(time=[5], key=["a"]))

    with pytest.raises(InputError, match="came time 4 after time 5"):
        events(read, batch_of(time=[4], key=["a"]))


def test_kinds_and_tags_that_do_not_belong_to_the_stream_are_refused():
    with pytest.raises(InputError, match="came a row of kind 'Write', for which no worker is responsible"):
        events(reader(), batch_of(kind=["Write"], time=[1]))
    with pytest.raises(InputError, match=r"came Read\(time=1, key='b'\), for which no worker is responsible"):
        events(reader(of=tags(Read, key="a").parts), batch_of(time=[1], key=["b"]))
    with pytest.raises(InputError, match="needed a column 'kind' that says which of Add, Read a row is"):
        events(reader(), batch_of(time=[1], key=["b"]))


SCHEMAS = {
    Read: pa.schema([("time", pa.int64()), ("key", pa.string())]),
    Mean: pa.schema([("time", pa.float64()), ("value", pa.float64()), ("is_good", pa.bool_())]),
}
TABLE = pa.schema([("kind", pa.string()), *((f.name, f.type) for f in SCHEMAS[Mean]), ("key", pa.string())])


def test_outputs_come_back_as_a_table():
    outputs = Outputs(SCHEMAS)
    outputs(Read(1, "a"))
    outputs.block(Mean, time=np.array([1.5, 2.5]), value=np.array([0.0, math.inf]), is_good=[True, False])
    outputs(Read(2, "b"))

    pieces = outputs.taken()

    rows = output_table(pieces, TABLE, named=True).to_pylist()
    assert sorted((row["kind"], row["time"], row["key"], row["value"]) for row in rows) == [
        ("Mean", 1.5, None, 0.0),
        ("Mean", 2.5, None, math.inf),
        ("Read", 1.0, "a", None),
        ("Read", 2.0, "b", None),
    ]
    assert outputs.taken() == []


def test_outputs_that_were_not_declared_are_refused():
    outputs = Outputs(SCHEMAS)
    outputs(Add(1, "a", 1))
    with pytest.raises(InputError, match="needed one of the kinds that the program gives: Read, Mean; came Add"):
        outputs.taken()
    with pytest.raises(InputError, match=r"emit.block\(Read\): needed the columns time, key; came time"):
        Outputs(SCHEMAS).block(Read, time=[1])
    with pytest.raises(InputError, match="an output of Read: needed a value of key in every row; came 1 without one"):
        Outputs(SCHEMAS).block(Read, time=[1], key=[None])
    with pytest.raises(InputError, match="an output of Read: needed time: int64; came"):
        Outputs(SCHEMAS).block(Read, time=[2**63], key=["a"])
    nothing = Outputs(SCHEMAS)
    nothing.append(None)
    with pytest.raises(InputError, match=r"emit\(...\): needed an event; came None"):
        nothing.taken()


def test_lanes_of_files_are_every_so_many_row_groups(tmp_path: Path):
    for number in range(2):
        table = pa.table({"time": list(range(number * 10, number * 10 + 10))})
        pyarrow.parquet.write_table(table, tmp_path / f"{number}.parquet", row_group_size=3)
    (tmp_path / "_SUCCESS").touch()
    files = Files.at("values", tmp_path)

    def times(lane: int, lanes: int) -> list[int]:
        return [time for batch in files.batches(lane, lanes) for time in batch.column("time").to_pylist()]

    assert times(0, 1) == list(range(20))
    lanes = [times(lane, 3) for lane in range(3)]
    assert sorted(time for lane in lanes for time in lane) == list(range(20))
    assert all(lane == sorted(lane) for lane in lanes)
    assert Files.at("values", [tmp_path / "0.parquet", str(tmp_path / "1.parquet")]) == files
    assert Files.at("values", str(tmp_path / "*.parquet")) == files


def test_files_that_are_not_there_or_no_parquet_are_refused(tmp_path: Path):
    (tmp_path / "a.parquet").write_text("no")

    with pytest.raises(InputError, match="stream 'values': needed Parquet files; came none at"):
        Files.at("values", tmp_path / "nothing")
    with pytest.raises(InputError, match=r"stream 'values': needed Parquet files; came .*a.parquet: Parquet"):
        Files.at("values", tmp_path)
