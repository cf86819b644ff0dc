"""What engines share, without a JVM: checkpoints on disk, lost batches, what a job raised."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from pyspark.sql.datasource import DataSourceStreamReader

from streamtight.errors import EncodingError, UnsupportedError
from streamtight.spark.connect import ConnectEngine
from streamtight.spark.engine import END_OF_TIME, Output, Piece, flush_watermark, last_commit, require_all, uncommit
from streamtight.spark.failure import job_error

SPARK = SimpleNamespace(version="4.1.0")


def checkpoint(folder, batches):
    (folder / "commits").mkdir()
    for batch in range(batches):
        (folder / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":5,"other":1}')
        (folder / "commits" / f".{batch}.crc").write_text("")
    return folder


def test_a_batch_that_is_uncommitted_is_forgotten(tmp_path):
    folder = checkpoint(tmp_path, 11)

    uncommit(folder, 10)

    assert last_commit(folder) == 9
    assert not (folder / "commits" / ".10.crc").exists()


def test_nothing_is_committed_where_there_is_no_checkpoint(tmp_path):
    assert last_commit(tmp_path) == -1


def test_a_flush_moves_the_watermark_of_the_last_commit_only(tmp_path):
    folder = checkpoint(tmp_path, 11)

    flush_watermark(folder)

    version, metadata = (folder / "commits" / "10").read_text().split("\n")
    assert (version, json.loads(metadata)) == ("v1", {"nextBatchWatermarkMs": END_OF_TIME, "other": 1})
    assert '":5' in (folder / "commits" / "9").read_text()


@pytest.mark.parametrize("numbers", [[0, 1], [1, 2, 3], [0, 2, 3], [0, 0, 1], []])
def test_a_lost_batch_is_our_bug_and_is_said(numbers):
    with pytest.raises(EncodingError) as caught:
        require_all(Piece(0, 2), [Output(number, []) for number in numbers], 0)

    assert caught.value.came == str(numbers)


def test_batches_beyond_those_for_sure_are_fine_if_none_is_left_out():
    require_all(Piece(0, 2), [Output(number, []) for number in range(5)], 0)


def test_an_old_pyspark_has_no_connect_engine(monkeypatch):
    monkeypatch.delattr(DataSourceStreamReader, "getDefaultReadLimit")

    with pytest.raises(UnsupportedError) as caught:
        ConnectEngine(SPARK, shuffle_partitions=1)

    assert caught.value.came == "PySpark 4.1.0"


def test_a_server_that_keeps_its_checkpoint_elsewhere_cannot_replay(tmp_path):
    engine = ConnectEngine(SPARK, shuffle_partitions=1)

    with pytest.raises(UnsupportedError, match="does not write to"):
        engine._change_checkpoint(Piece(1, 1, replays=True), tmp_path)


def test_the_words_and_the_place_of_a_python_exception_are_found():
    raised = RuntimeError(
        "Job aborted.\nTraceback (most recent call last):\n"
        '  File "/x/site-packages/pyspark/worker.py", line 1, in main\n'
        '  File "/home/me/job.py", line 7, in price\n    raise ValueError("no price")\n'
        '  File "/x/site-packages/pyarrow/error.pxi", line 9, in check\n'
        "ValueError: no price\n\nat java.lang.Thread"
    )

    error = job_error(raised, batch=3)

    assert error.raised == "ValueError: no price"
    assert error.hint == "look at /home/me/job.py, line 7, in price"
    assert error.where == "the job, in batch 3"


def test_without_a_traceback_the_first_line_counts():
    assert job_error(RuntimeError("[DIVIDE_BY_ZERO] no\n\tat java"), batch=0).raised == "[DIVIDE_BY_ZERO] no"
