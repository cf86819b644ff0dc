"""Is nothing called consistent that workers run otherwise, and nothing accused that they run well?

Each program here was once given a wrong answer.
"""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict
from typing import Any

import numpy
import pytest

from streamtight.method.parallelize.consistency import consistent
from streamtight.program.fork_join import Block, Branch, Emit, EmitBlock, ForkJoin, StateType, same_value
from streamtight.program.tags import TagSet, tags
from streamtight.stream.dependence import barrier, same
from streamtight.stream.event import Event, Kind
from streamtight.verdict import Strength, Verdict

Value = Kind("Value", time=int, value=int)
Word = Kind("Word", time=int, key=str, value=int)
Barrier = Kind("Barrier", time=int)
Number = Kind("Number", time=int, number=int)
Part = Kind("Part", time=int, part=float)
Text = Kind("Text", time=int, text=str)


class OfValues(ForkJoin):
    """A sum between barriers."""

    takes, gives = (Value, Barrier), (Number, Text)
    depends = barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self) -> Any:
        return 0

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return state + event.value
        emit(Number(event.time, state))
        return 0

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, 0

    def join(self, left: Any, right: Any) -> Any:
        return left + right


class OfWords(ForkJoin):
    """How often each word comes between barriers."""

    takes, gives = (Word, Barrier), (Number, Text)
    depends = barrier(Barrier)
    whole, part = StateType(Word, Barrier), StateType(Word)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self) -> Any:
        return {}

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Word:
            state[event.key] = state.get(event.key, 0) + event.value
            return state
        emit(Text(event.time, str(sorted(state.items()))))
        return {}

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, {}

    def join(self, left: Any, right: Any) -> Any:
        return {key: left.get(key, 0) + right.get(key, 0) for key in {*left, *right}}


def finding(program: ForkJoin) -> str | None:
    """What is found; None if it is called consistent."""
    verdict = consistent(program)
    print(verdict.story())
    assert verdict.outcome.name in ("HOLDS", "FAILS")
    return verdict.counterexample.finding if verdict.counterexample else None


def is_proved(verdict: Verdict) -> bool:
    return verdict.outcome.name == "HOLDS" and verdict.scope.strength is Strength.PROVED


# -- states that count as the same, and are told apart ---------------------------------------------------------------


class FirstOfMost(OfWords):
    """The order of a dict decides between equals."""

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Word:
            state[event.key] = 1
            return state
        if state:
            emit(Text(event.time, next(iter(state))))
        return {}

    def join(self, left: Any, right: Any) -> Any:
        return {**left, **right}


class OldestKept(FirstOfMost):
    def init(self) -> Any:
        return OrderedDict()

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Word:
            state[event.key] = 1
            return state
        if state:
            emit(Text(event.time, next(iter(state))))
        return OrderedDict()

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, OrderedDict()

    def join(self, left: Any, right: Any) -> Any:
        return OrderedDict([*left.items(), *right.items()])


class Capped(OfValues):
    """On several workers it says 2.0 for 2."""

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return min(state + 1, 3)
        emit(Text(event.time, f"{state}"))
        return 0

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, 0.0

    def join(self, left: Any, right: Any) -> Any:
        return min(left + right, 3)


class TrueForOne(OfValues):
    """On several workers its state is True, which is no whole number for an event."""

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return 1 if event.value > 0 else state
        emit(Number(event.time, state))
        return 0

    def join(self, left: Any, right: Any) -> Any:
        return left > 0 or right > 0


class AllTheSame(OfValues):
    def same_state(self, one: Any, other: Any) -> bool:
        return True

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, state


@pytest.mark.parametrize("make", [FirstOfMost, OldestKept, Capped, TrueForOne, AllTheSame])
def test_outputs_that_differ_are_found_where_states_count_as_the_same(make: type[ForkJoin]):
    verdict = consistent(make())

    assert verdict.outcome.name == "FAILS"
    assert "the outputs are" in verdict.counterexample.explanation
    assert verdict.counterexample.failing_reruns == 3


def test_outputs_that_differ_are_shown_side_by_side():
    shown = consistent(FirstOfMost()).counterexample

    assert shown.finding == "OUTPUTS_DIFFER"
    assert len(shown.expected) == len(shown.actual) == 1
    assert shown.expected != shown.actual


# -- which object a state is -----------------------------------------------------------------------------------------

START, IDLE, NOTHING, FRESH = (0, 0), "idle state", -1000, [0, 0]


class KnowsItsTuple(OfValues):
    def init(self) -> Any:
        return START

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return (state[0] + event.value, state[1] + 1)
        emit(Text(event.time, "nothing" if state is START else str(state)))
        return START

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, (0, 0)

    def join(self, left: Any, right: Any) -> Any:
        return left if right[1] == 0 else (left[0] + right[0], left[1] + right[1])


class KnowsItsText(OfValues):
    def init(self) -> Any:
        return IDLE

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return "busy"
        emit(Text(event.time, "nothing" if state is IDLE else "some"))
        return IDLE

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, IDLE

    def join(self, left: Any, right: Any) -> Any:
        return "busy" if "busy" in (left, right) else left


class KnowsItsNumber(OfValues):
    def init(self) -> Any:
        return NOTHING

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return max(state, abs(event.value))
        emit(Text(event.time, "nothing" if state is NOTHING else "some"))
        return NOTHING

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, NOTHING

    def join(self, left: Any, right: Any) -> Any:
        return left if left >= right else right


class GivesBackWhatItKeeps(OfValues):
    def init(self) -> Any:
        return [0, 0]

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            state[0] += event.value
            state[1] += 1
            return state
        emit(Text(event.time, str(state)))
        return FRESH

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, [0, 0]

    def join(self, left: Any, right: Any) -> Any:
        return [left[0] + right[0], left[1] + right[1]]


@pytest.mark.parametrize("make", [KnowsItsTuple, KnowsItsText, KnowsItsNumber, GivesBackWhatItKeeps])
def test_a_state_that_is_known_by_its_place_in_memory_is_found(make: type[ForkJoin]):
    assert finding(make()) == "NOT_A_FUNCTION"


# -- states that are the same but for the last digits ----------------------------------------------------------------


@dataclasses.dataclass
class Stats:
    total: float = 0.0
    count: int = 0


class InDataclass(OfValues):
    gives = (Part,)

    def init(self) -> Any:
        return Stats()

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return Stats(state.total + event.value % 100 * 0.19, state.count + 1)
        emit(Part(event.time, state.total / max(state.count, 1)))
        return Stats()

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, Stats()

    def join(self, left: Any, right: Any) -> Any:
        return Stats(left.total + right.total, left.count + right.count)


class InArray(OfValues):
    gives = (Part,)

    def init(self) -> Any:
        return numpy.zeros(2)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return state + numpy.array([event.value % 100 * 0.19, 1.0])
        emit(Part(event.time, float(state[0])))
        return numpy.zeros(2)

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, numpy.zeros(2)


class InCounter(OfWords):
    """A Counter takes a word that came no time for one that is not there."""

    def init(self) -> Any:
        return Counter()

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Word:
            state[event.key] += event.value % 5
            return state
        emit(Text(event.time, str(sorted(state.elements()))))
        return Counter()

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, Counter()

    def join(self, left: Any, right: Any) -> Any:
        return left + right


class RoundedText(OfValues):
    """Where the last digits of a float decide about the text, workers are not to blame."""

    gives = (Text,)

    def init(self) -> Any:
        return 0.0

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return state + event.value % 100 * 0.19
        emit(Text(event.time, str(state)))
        return 0.0

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, 0.0


@pytest.mark.parametrize("make", [InDataclass, pytest.param(InArray, marks=pytest.mark.slow), InCounter, RoundedText])
def test_what_differs_in_the_last_digits_only_is_not_accused(make: type[ForkJoin]):
    assert finding(make()) is None


@pytest.mark.parametrize(
    ("one", "other", "are_same"),
    [
        (0.1 + 0.2, 0.3, True),
        ((0.1 + 0.2, "a"), (0.3, "a"), True),
        ({"a": [0.1 + 0.2]}, {"a": [0.3]}, True),
        (Stats(0.1 + 0.2), Stats(0.3), True),
        (Stats(0.1, 1), Stats(0.1, 2), False),
        (numpy.array([0.1 + 0.2]), numpy.array([0.3]), True),
        (numpy.zeros(1), numpy.zeros(3), False),
        ((numpy.zeros(2), 1), (numpy.zeros(2), 1), True),
        ((numpy.zeros(2), 1), (numpy.ones(2), 1), False),
        (Counter(), Counter({"": 0}), True),
        (float("nan"), float("nan"), True),
        ((float("nan"),), (float("nan"),), True),
        (3, 3.0, True),
        (3, 4, False),
        (10**400, 0.5, False),
        (10**15, 10**15 + 1, False),
        ([1], (1,), False),
        ("a", None, False),
    ],
    ids=range(18),
)
def test_values_are_the_same_but_for_the_last_digits(one: Any, other: Any, are_same: bool):
    assert same_value(one, other) is are_same


# -- values that are seldom ------------------------------------------------------------------------------------------

Order = Kind("Order", time=int, size=int)
Whole, Broken = Kind("Whole", time=int, value=int), Kind("Broken", time=int, value=float)
RESET, LISTED = "reset", (54321,)


class NamedLikeAnOption(OfValues):
    takes = (Order, Barrier)
    whole, part = StateType(Order, Barrier), StateType(Order)
    branches = (Branch(whole, part, part),)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Order:
            return 0 if event.size == 54321 else state + event.size
        emit(Number(event.time, state))
        return 0


class OneNameTwoTypes(OfValues):
    takes = (Whole, Broken)
    depends = barrier(Broken)
    whole, part = StateType(Whole, Broken), StateType(Whole)
    branches = (Branch(whole, part, part),)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Whole:
            return 0 if event.value == 54321 else state + event.value
        emit(Number(event.time, state))
        return 0


class Huge(OfValues):
    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return 0 if event.value == 2**70 else state + event.value
        emit(Number(event.time, state))
        return 0


class InAGlobal(OfWords):
    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        return {} if event.kind is Word and event.key == RESET else super().update(state, event, emit)


class InAnAttribute(OfWords):
    empties = frozenset({"reset"})

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        return {} if event.kind is Word and event.key in self.empties else super().update(state, event, emit)


class InAnotherMethod(OfValues):
    def is_listed(self, event: Event) -> bool:
        return event.value in LISTED

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        return 0 if event.kind is Value and self.is_listed(event) else super().update(state, event, emit)


class KeepsTen(OfWords):
    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Word and len(state) >= 10:
            return state
        return super().update(state, event, emit)


class CountsLongWords(OfWords):
    def init(self) -> Any:
        return {"long": 0}

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Word:
            state["long"] += len(event.key) > 30
            return state
        emit(Number(event.time, state["long"]))
        return {"long": 0}

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, {"long": 0}

    def join(self, left: Any, right: Any) -> Any:
        return left


@pytest.mark.parametrize(
    "make",
    [
        NamedLikeAnOption,
        OneNameTwoTypes,
        Huge,
        InAGlobal,
        InAnAttribute,
        InAnotherMethod,
        pytest.param(KeepsTen, marks=pytest.mark.slow),
        CountsLongWords,
    ],
)
def test_values_that_a_program_names_are_tried(make: type[ForkJoin]):
    assert finding(make()) is not None


# -- memory, processes, blocks ---------------------------------------------------------------------------------------


class InItsClass(OfValues):
    peak = 0

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            type(self).peak = max(type(self).peak, event.value)
            return state + 1
        emit(Number(event.time, type(self).peak))
        return state


class InItsDict(OfValues):
    peak = 0

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            vars(self)["peak"] = max(self.peak, event.value)
            return state + 1
        emit(Number(event.time, self.peak))
        return state


class ByHash(OfWords):
    def init(self) -> Any:
        return [0, 0, 0]

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Word:
            state[hash(event.key) % 3] += 1
            return state
        emit(Text(event.time, str(state)))
        return [0, 0, 0]

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, [0, 0, 0]

    def join(self, left: Any, right: Any) -> Any:
        return [one + other for one, other in zip(left, right, strict=True)]


@pytest.mark.parametrize("make", [InItsClass, InItsDict, ByHash])
def test_what_may_be_otherwise_in_another_process_is_not_called_consistent(make: type[ForkJoin]):
    assert consistent(make()).outcome.name in ("FAILS", "UNDECIDED")


class DropsLargeBlocks(OfValues):
    def update_block(self, state: Any, block: Block, emit: EmitBlock) -> Any:
        if block.kind is not Value:
            return NotImplemented
        return state if len(block) >= 1000 else state + sum(block["value"].tolist())


class ChangesItsColumn(OfValues):
    def update_block(self, state: Any, block: Block, emit: EmitBlock) -> Any:
        if block.kind is not Value:
            return NotImplemented
        column = block["value"]
        column *= 2
        return state + sum(column.tolist()) // 2


Keyed = Kind("Keyed", time=int, key=int, value=int)


class HugeInBlocks(ForkJoin):
    """A tag beyond the whole numbers of columns: such events come one by one, and are no reason to raise."""

    takes, gives, depends = (Keyed, Barrier), (Number,), barrier(Barrier) | same("key", of=Keyed)
    whole, part, huge = StateType(Keyed, Barrier), StateType(Keyed), StateType(tags(Keyed, key=2**70))
    branches = (Branch(whole, part, huge),)

    def init(self) -> int:
        return 0

    def update(self, state: int, event: Event, emit: Emit) -> int:
        if event.kind is Keyed:
            return state + event.value
        emit(Number(event.time, state))
        return 0

    def update_block(self, state: int, block: Block, emit: EmitBlock) -> Any:
        return NotImplemented if block.kind is not Keyed else state + sum(block["value"].tolist())

    def fork(self, state: int, left: Any, right: Any) -> tuple[int, int]:
        return state, 0

    def join(self, left: int, right: int) -> int:
        return left + right


def test_an_update_of_blocks_that_is_wrong_for_large_ones_is_found():
    verdict = consistent(DropsLargeBlocks())

    assert verdict.counterexample.finding == "BLOCK_DIFFERS"
    assert verdict.counterexample.explanation.startswith("for 1024 events, update_block gives ")


@pytest.mark.parametrize("make", [ChangesItsColumn, HugeInBlocks])
def test_an_update_of_blocks_that_is_right_is_not_accused(make: type[ForkJoin]):
    assert finding(make()) is None


def test_a_fork_that_raises_is_not_proved():
    class Raises(OfValues):
        def join(self, left: Any, right: Any) -> Any:
            if left == 123456789012345678901:
                raise ValueError
            return left + right

    assert not is_proved(consistent(Raises()))
