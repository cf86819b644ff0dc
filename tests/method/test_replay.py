"""The lines that show a counterexample again can be run."""

from __future__ import annotations

from datetime import datetime

import pytest

from streamtight.method.replay import replay_code
from streamtight.stream.event import Kind
from streamtight.stream.schedule import Restart, Schedule

N = Kind("N", n=int)


def schedule_in(code: str) -> object:
    import streamtight as tight

    lines = code[code.index("schedule = ") : code.index("verdict = ")]
    names: dict[str, object] = {"tight": tight, "N": N}
    exec(lines, names)
    return names["schedule"]


def _code(schedule: Schedule) -> str:
    return replay_code("check", ["job", "on=schedule"], {}, [N], schedule, as_batches=True)


@pytest.mark.parametrize(
    "batches",
    [
        [[N(1)]],
        [[], [], []],
        [[N(1)] * 5, [N(1)] * 5, [N(1)] * 5, []],
        [[N(1), N(1), N(2)], [N(1), N(1)], [N(1), N(1)]],
    ],
)
def test_a_schedule_of_batches_is_a_list_of_them(batches: list[list[object]]):
    schedule = Schedule(tuple((tuple(batch),) for batch in batches))

    assert schedule_in(_code(schedule)) == batches


def test_what_repeats_is_written_once():
    code = _code(Schedule((((N(1),) * 20,),) * 4))

    assert code.count("N(n=1)") == 1


@pytest.mark.parametrize(
    "schedule",
    [
        Schedule((((N(1),), (N(2),)),)),
        Schedule((((N(1),),),), shuffle_partitions=2),
        Schedule((((N(1),),), ((),)), restarts=(Restart(after=0),)),
        Schedule((((N(1),),), ((), ()))),
    ],
)
def test_a_schedule_that_is_more_than_its_batches_is_written_in_full(schedule: Schedule):
    assert schedule_in(_code(schedule)) == schedule


def test_what_is_pasted_takes_no_name_away():
    at = Kind("At", at=datetime, text=str)
    code = replay_code(
        "compare",
        ["one", "upto=same('at')"],
        {},
        [at],
        Schedule((((at(datetime(2024, 5, 1), "datetime.datetime"),),),)),
    )

    assert "import *" not in code
    assert "from streamtight import one, same" in code
    assert "import datetime as dt" in code
    assert "at=dt.datetime(2024, 5, 1, 0, 0), text='datetime.datetime'" in code
