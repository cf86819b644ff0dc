"""The fault runs of all seeds: enough of each, and what is expected of them is right where it can be seen by eye."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from scenario import (
    CORRUPT,
    FAULTS,
    WHATS,
    expected_answers,
    expected_of_live,
    expected_totals,
    parsed,
    scenario,
    with_bug,
)

SEEDS = range(60)


def rows(*triples: tuple[int, int, int]) -> list[dict[str, int]]:
    return [dict(zip("knv", triple, strict=True)) for triple in triples]


def test_a_seed_is_always_the_same_run() -> None:
    assert scenario(17) == scenario(17)
    assert scenario(17) != scenario(18)


def test_every_kind_of_fault_comes_several_times_and_a_third_of_the_runs_has_a_bug() -> None:
    runs = [scenario(seed) for seed in SEEDS]
    faults = Counter(fault for run in runs for fault in run.faults)

    assert {fault for known in FAULTS.values() for fault in known} - {"|"} == set(faults)
    assert min(faults.values()) >= 4
    assert sum(run.bug is not None for run in runs) >= 20
    assert Counter(run.what for run in runs) == dict.fromkeys(WHATS, 10)


def test_a_bug_of_a_seed_changes_what_the_job_gives() -> None:
    for run in map(scenario, SEEDS):
        if run.bug in ("drop", "wrong", "swap"):
            given = [[parsed(line) for line in lines] for lines in run.files]
            made = [with_bug(mine, run.bug, run.target) for mine in given]
            assert made != given, f"seed {run.seed}"


def test_streams_of_one_key_differ_where_they_differ_and_are_longer_where_they_are_longer() -> None:
    old = rows((1, 0, 5), (2, 1, 6), (1, 2, 7))

    assert expected_of_live("live keyed", old, rows((2, 1, 6), (1, 0, 5), (1, 2, 7))) == "HOLDS"
    assert expected_of_live("live ordered", old, rows((2, 1, 6), (1, 0, 5), (1, 2, 7))) == "FAILS DIVERGED"
    assert expected_of_live("live keyed", old, old[:2]) == "FAILS LEFT_OVER"
    assert expected_of_live("live keyed", old, rows((1, 2, 7), (2, 1, 6), (1, 0, 5))) == "FAILS DIVERGED"
    assert expected_of_live("live bag", old, rows((1, 2, 7), (2, 1, 6), (1, 0, 5))) == "HOLDS"
    assert expected_of_live("live bag", old, [*old, old[0]]) == "FAILS LEFT_OVER"


def test_a_row_behind_one_that_was_answered_is_late_and_a_broken_one_is_left_out() -> None:
    files = [['{"k": 1, "n": 5, "v": 2}'], [CORRUPT, '{"k": 1, "n": 3, "v": 9}', '{"k": 1, "n": 7, "v": 4}']]

    assert expected_answers(files, None, -1) == [
        [1, 3, None, None, "late"],
        [1, 5, 2, True, "defined"],
        [1, 7, 6, True, "defined"],
    ]


def test_a_total_has_the_values_since_the_barrier_before() -> None:
    values = [['{"kind": "Value", "time": 1, "value": 5}', '{"kind": "Value", "time": 2, "value": 6}'], ["broken"]]
    barriers = [
        ['{"kind": "Barrier", "time": 1}'],
        ['{"kind": "Barrier", "time": 2}', '{"kind": "heartbeat", "time": 9}'],
    ]

    assert expected_totals(values, barriers) == [[1, 5], [2, 6]]
