"""Is it told which fork/join programs give the same outputs on any number of workers, and shown why others do not?"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from streamtight.errors import DependenceError, PlanError
from streamtight.method.parallelize.consistency import consistent
from streamtight.program.fork_join import Block, Branch, Emit, EmitBlock, ForkJoin, StateType
from streamtight.program.tags import Bucket, TagSet, tags
from streamtight.stream.dependence import barrier, same
from streamtight.stream.event import Event, Kind
from streamtight.verdict import Strength, Verdict

sys.path.insert(0, str(Path(__file__).parents[2] / "catalogue"))
import fork_join_programs as programs
from fork_join_programs import ENTRIES, Barrier, Entry, Total, Value, Windows

CASES = 60
Seen = Kind("Seen", time=int, user=int)
Told = Kind("Told", user=int, seen=int)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_each_program_of_the_catalogue_gets_its_answer(entry: Entry):
    verdict = consistent(entry.make(), cases=CASES, seconds=60)

    assert verdict.outcome.name == entry.outcome, verdict.story()
    assert entry.says in verdict.story()
    assert (verdict.scope.strength is Strength.PROVED) == entry.proved
    if entry.findings:
        assert verdict.counterexample.finding in entry.findings
        assert verdict.counterexample.failing_reruns == verdict.counterexample.reruns == 3


def printed(verdict: Verdict) -> list[str]:
    """What the pasted lines print."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(verdict.counterexample.replay, {**vars(programs)})
    return out.getvalue().splitlines()


@pytest.mark.parametrize(
    "make",
    [programs.WindowsByWrongBlocks, programs.ForkSharesItsState, programs.InitIsShared],
    ids=lambda make: make.__name__,
)
def test_pasted_lines_show_other_findings_too(make: Callable[[], ForkJoin]):
    one, other = printed(consistent(make(), cases=CASES))

    assert one != other


def test_a_relation_that_is_not_symmetric_is_shown_by_the_error_that_it_raises():
    replay = consistent(programs.OneWayDependence(), cases=CASES).counterexample.replay

    with pytest.raises(DependenceError, match="symmetric"):
        exec(replay, {**vars(programs)})


LAWS = ("JOIN_UPDATE_LEFT", "JOIN_UPDATE_RIGHT", "FORK_JOIN", "ORDER_MATTERS")


RAISING = (programs.RaisesOnOneSide, programs.ForkRaises)


@pytest.mark.parametrize(
    "entry",
    [each for each in ENTRIES if each.findings and set(each.findings) <= set(LAWS) and each.make not in RAISING],
    ids=lambda entry: entry.name,
)
def test_pasted_lines_show_two_results_that_differ(entry: Entry):
    one, other = printed(consistent(entry.make(), cases=CASES))

    assert one != other


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "make",
    [
        programs.WindowsOfOneType,
        programs.FraudWithoutModel,
        programs.FraudRulesInAnyOrder,
        programs.PageViewsThatLoseUsers,
        programs.DailyMostOfLeft,
        programs.OutliersCopied,
        programs.SmartHomeMinutesInAnyOrder,
    ],
    ids=lambda make: make.__name__,
)
def test_wrong_programs_are_found_from_any_seed(make: Callable[[], ForkJoin], seed: int):
    assert consistent(make(), seed=seed).fails


def test_a_wrong_program_is_shown_by_a_small_run_beside_the_sequential_one():
    shown = consistent(programs.WindowsOfOneType()).counterexample

    assert (
        shown.story()
        == """\
JOIN_UPDATE_RIGHT: join(left, update(right, event)) is 1 with Total(time=0, total=0), update(join(left, right), event) \
is 0 with Total(time=0, total=1); in sequence the outputs are Total(time=0, total=1), on several workers \
Total(time=0, total=0)
a run, step by step
  wire   what                         state    output
  root   Value(time=0, value=1)       1
  root   fork for no tag and Barrier  1 and 0
  right  Barrier(time=0)              0        Total(time=0, total=0)
  root   join                         1
expected
  Total(time=0, total=1)
came
  Total(time=0, total=0)
run again: failed 3 of 3 times
to see it again
  from streamtight import TagSet, tags
  from fork_join_programs import WindowsOfOneType, Value, Barrier, Total
  program = WindowsOfOneType()
  print(program.run([Value(time=0, value=1), Barrier(time=0)]))
  out = []
  state = program.init()
  state = program.update(state, Value(time=0, value=1), out.append)
  left, right = program.fork(state, TagSet(()), tags(Barrier))
  right = program.update(right, Barrier(time=0), out.append)
  state = program.join(left, right)
  print(out)"""
    )


def test_one_seed_gives_one_answer():
    one, other = (consistent(programs.KeyCounterForkedByAdds(), seed=3).story() for _ in range(2))

    assert one == other


def test_a_state_type_may_have_its_own_update():
    class Own(Windows):
        whole = StateType(Value, Barrier)
        part = StateType(Value, update=lambda total, event, emit: total + event.value)
        branches = (Branch(whole, part, part), Branch(part, part, part))

    class Wrong(Windows):
        whole = StateType(Value, Barrier)
        part = StateType(Value, update=lambda total, event, emit: total + 1)
        branches = (Branch(whole, part, part), Branch(part, part, part))

    assert consistent(Own(), cases=CASES).scope.strength is Strength.PROVED
    assert consistent(Wrong(), cases=CASES).fails


def test_a_branch_may_have_its_own_fork_and_join():
    class Own(Windows):
        branches = (Branch(Windows.whole, Windows.part, Windows.part, fork="split", join="merge"),)

        def split(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
            return total // 2, total - total // 2

        def merge(self, left: int, right: int) -> int:
            return left + right

    class Wrong(Own):
        def split(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
            return total // 2, total // 2

    assert consistent(Own(), cases=CASES).scope.strength is Strength.PROVED
    assert consistent(Wrong(), cases=CASES).counterexample.finding == "FORK_JOIN"


def test_a_type_that_takes_some_keys_only_is_tried_on_these():
    class OneUser(ForkJoin):
        takes, gives, depends = (Seen,), (Told,), same("user")
        all_users, one_user = StateType(Seen), StateType(tags(Seen, user=77))
        branches = (Branch(all_users, all_users, one_user),)

        def init(self) -> dict[int, int]:
            return {}

        def update(self, state: dict[int, int], event: Event, emit: Emit) -> dict[int, int]:
            state[event.user] = state.get(event.user, 0) + 1
            emit(Told(event.user, state[event.user]))
            return state

        def fork(self, state: dict[int, int], left: TagSet, right: TagSet) -> Any:
            return {u: n for u, n in state.items() if u != 77}, {u: n for u, n in state.items() if u == 77}

        def join(self, left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
            return left | right

    verdict = consistent(OneUser(), cases=CASES)

    assert verdict.fails  # where the left side may see user 77, the right one has the count
    assert verdict.counterexample.finding == "JOIN_UPDATE_LEFT"


def test_shares_of_keys_are_tried_too():
    class Shared(ForkJoin):
        """Right where tags are listed, wrong where they are shares of all keys."""

        takes, gives, depends = (Seen,), (Told,), same("user")

        def init(self) -> dict[int, int]:
            return {}

        def update(self, state: dict[int, int], event: Event, emit: Emit) -> dict[int, int]:
            state[event.user] = state.get(event.user, 0) + 1
            emit(Told(event.user, state[event.user]))
            return state

        def fork(self, state: dict[int, int], left: TagSet, right: TagSet) -> Any:
            shares = any(isinstance(part.values("user"), Bucket) for part in right.parts)
            on_right = {u: n for u, n in state.items() if right(Seen, user=u) and not shares}
            return {u: n for u, n in state.items() if u not in on_right}, on_right

        def join(self, left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
            return left | right

    assert consistent(Shared()).counterexample.finding == "JOIN_UPDATE_RIGHT"


def test_a_number_that_only_the_proof_knows_is_shown_by_a_run():
    class Trap(Windows):
        def join(self, left: int, right: int) -> int:
            return left + right if left != 2**40 + 5 else 0

    assert consistent(Trap(), seconds=60).fails


def test_rounded_sums_of_floats_count_as_the_same():
    class Tenths(programs.FloatSums):
        def update(self, total: float, event: Event, emit: Emit) -> float:
            return total + event.value * 0.1 if event.kind is programs.Measure else super().update(total, event, emit)

    assert consistent(Tenths(), cases=CASES).holds


def test_a_state_may_begin_at_infinity():
    class Least(Windows):
        def init(self) -> Any:
            return float("inf")

        def update(self, least: Any, event: Event, emit: Emit) -> Any:
            if event.kind is Value:
                return min(least, event.value)
            emit(Total(event.time, 0 if least == float("inf") else int(least)))
            return float("inf")

        def fork(self, least: Any, left: TagSet, right: TagSet) -> Any:
            return least, float("inf")

        def join(self, left: Any, right: Any) -> Any:
            return min(left, right)

    verdict = consistent(Least(), cases=CASES)

    assert verdict.holds
    assert verdict.scope.strength is Strength.TESTED


class Pair(NamedTuple):
    count: int
    total: int


def test_a_namedtuple_is_tested_since_it_is_no_plain_tuple():
    class Named(Windows):
        def init(self) -> Pair:
            return Pair(0, 0)

        def update(self, state: Pair, event: Event, emit: Emit) -> Pair:
            if event.kind is Value:
                return Pair(state.count + 1, state.total + event.value)
            emit(Total(event.time, state.total))
            return Pair(0, 0)

        def fork(self, state: Pair, left: TagSet, right: TagSet) -> tuple[Pair, Pair]:
            return state, Pair(0, 0)

        def join(self, left: Pair, right: Pair) -> Pair:
            return Pair(left.count + right.count, left.total + right.total)

    verdict = consistent(Named(), cases=CASES)

    assert verdict.holds
    assert "Pair in its state" in verdict.method


def test_blocks_of_outputs_are_compared_as_events():
    class Doubled(ForkJoin):
        takes, gives, depends = (Value,), (Total,), barrier(Barrier)
        factor = 2

        def init(self) -> None:
            return None

        def update(self, state: None, event: Event, emit: Emit) -> None:
            emit(Total(event.time, event.value * 2))

        def update_block(self, state: None, block: Block, emit: EmitBlock) -> None:
            emit.block(Total, time=block["time"], total=block["value"] * self.factor)

        def fork(self, state: None, left: TagSet, right: TagSet) -> tuple[None, None]:
            return None, None

        def join(self, left: None, right: None) -> None:
            return None

    class Tripled(Doubled):
        factor = 3

    assert consistent(Doubled(), cases=CASES).holds
    assert consistent(Tripled(), cases=CASES).counterexample.finding == "BLOCK_DIFFERS"


def test_what_is_no_program_is_a_wrong_question():
    with pytest.raises(PlanError, match="needed a fork/join program"):
        consistent(Windows)  # type: ignore[arg-type]
