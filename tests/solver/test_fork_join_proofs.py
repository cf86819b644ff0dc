"""Are the laws of consistency proved where they hold, and never where they do not?"""

from __future__ import annotations

import random
from typing import Any

import pytest

from streamtight.program.fork_join import Branch, Emit, ForkJoin, StateType
from streamtight.program.tags import TagSet
from streamtight.solver.ask import Budget
from streamtight.solver.fork_join import C1, C2, C3, Proof, is_consistent
from streamtight.stream.dependence import barrier, between, same, unordered
from streamtight.stream.event import Event, Kind

Value = Kind("Value", time=int, key=int, value=int)
Barrier = Kind("Barrier", time=int, key=int)
Total = Kind("Total", time=int, total=int)
Name = Kind("Name", time=int, name=str)


class Windows(ForkJoin):
    """The sum of the values between two barriers."""

    takes, gives = (Value, Barrier), (Total,)
    depends = barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self) -> Any:
        return 0

    def update(self, total: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total: Any, left: TagSet, right: TagSet) -> Any:
        return total, 0

    def join(self, left: Any, right: Any) -> Any:
        return left + right


def proof(program: ForkJoin) -> Proof:
    return is_consistent(program, Budget(60))


def test_sums_are_proved():
    assert proof(Windows()) == Proof((C1, C2, C3))


def test_a_maximum_needs_that_it_never_falls_below_the_first_one():
    class Most(Windows):
        def update(self, most: int, event: Event, emit: Emit) -> int:
            if event.kind is Value:
                return max(most, event.value)
            emit(Total(event.time, most))
            return 0

        def join(self, left: int, right: int) -> int:
            return max(left, right)

    class FromAnywhere(Most):
        def update(self, most: int, event: Event, emit: Emit) -> int:
            return max(most, event.value) if event.kind is Value else event.time

    assert proof(Most()).tested == {}
    assert set(proof(FromAnywhere()).tested) == {C2}


def test_both_sides_need_the_same_model():
    class Flagged(Windows):
        def init(self) -> Any:
            return (0, 0)

        def update(self, state: Any, event: Event, emit: Emit) -> Any:
            model, total = state
            if event.kind is Barrier:
                return total, 0
            if event.value > model:
                emit(Total(event.time, event.value))
            return model, total + event.value

        def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
            return state, (state[0], 0)

        def join(self, left: Any, right: Any) -> Any:
            return left[0], left[1] + right[1]

    class WithoutModel(Flagged):
        def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
            return state, (0, 0)

    assert proof(Flagged()).tested == {}
    assert set(proof(WithoutModel()).tested) == {C1}


@pytest.mark.parametrize(
    ("join", "law"),
    [
        (lambda self, left, right: left, C1),
        (lambda self, left, right: right, C1),
        (lambda self, left, right: left + right + 1, C2),
        (lambda self, left, right: left + right if right != 1234567 else 0, C1),
        (lambda self, left, right: left - right, C1),
    ],
    ids=["left", "right", "one more", "but for one number", "difference"],
)
def test_a_wrong_join_is_not_proved(join: Any, law: str):
    class Wrong(Windows):
        pass

    Wrong.join = join
    found = proof(Wrong())

    assert law in found.tested
    assert law not in found.proved


def test_what_comes_out_counts_too():
    class Told(Windows):
        def update(self, total: int, event: Event, emit: Emit) -> int:
            if event.kind is Value:
                emit(Total(event.time, total))
                return total + event.value
            return 0

    assert set(proof(Told()).tested) == {C1, C3}


def test_outputs_may_come_in_another_order():
    class Each(Windows):
        def update(self, total: int, event: Event, emit: Emit) -> int:
            if event.kind is Value:
                emit(Total(event.time, event.value))
                emit(Total(0, 0))
            return 0

    assert proof(Each()).tested == {}


@pytest.mark.parametrize(
    ("depends", "is_proved"),
    [
        (barrier(Barrier), True),
        (between(Barrier, Value), False),
        (unordered, False),
        (barrier(Barrier) & same("key"), False),
    ],
    ids=["barrier", "between", "unordered", "by key"],
)
def test_the_dependence_says_what_may_be_exchanged(depends: Any, is_proved: bool):
    class Ordered(Windows):
        branches = ()

    Ordered.depends = depends

    assert (C3 in proof(Ordered()).proved) == is_proved


def test_keys_that_differ_are_independent():
    class LastOfKeyZero(Windows):
        depends = same("key")
        branches = ()

        def update(self, last: int, event: Event, emit: Emit) -> int:
            return event.time if event.key == 0 else last

    class LastOfAll(LastOfKeyZero):
        def update(self, last: int, event: Event, emit: Emit) -> int:
            return event.time

    assert proof(LastOfKeyZero()).proved == (C3,)
    assert proof(LastOfAll()).proved == ()


def test_texts_and_none_are_read():
    class Least(ForkJoin):
        takes, gives, depends = (Name,), (Name,), unordered

        def init(self) -> str | None:
            return None

        def update(self, state: str | None, event: Event, emit: Emit) -> str | None:
            return event.name if state is None or event.name < state else state

        def fork(self, state: str | None, left: TagSet, right: TagSet) -> Any:
            return state, None

        def join(self, left: str | None, right: str | None) -> str | None:
            if left is None or right is None:
                return right if left is None else left
            return left if left < right else right

    assert proof(Least()).tested == {}


def test_constants_and_other_methods_of_the_program_are_read():
    class Tariff(Windows):
        factor = 3

        def worth(self, event: Event) -> int:
            return event.value * self.factor

        def update(self, total: int, event: Event, emit: Emit) -> int:
            if event.kind is Value:
                return total + self.worth(event)
            emit(Total(event.time, total))
            return 0

    assert proof(Tariff()).tested == {}


@pytest.mark.parametrize("seed", range(8))
def test_no_random_join_is_proved_that_runs_refute(seed: int):
    print("seed", seed)
    chance = random.Random(seed)
    parts = ["left", "right", "left + right", "max(left, right)", "left + right + 1", "left * right", "left - right"]
    forks = ["(s, 0)", "(0, s)", "(s, s)", "(s // 2, s - s // 2)", "(s - 1, 1)"]
    space: dict[str, Any] = {"Windows": Windows}
    exec(
        f"class Made(Windows):\n    def fork(self, s, a, b): return {chance.choice(forks)}\n"
        f"    def join(self, left, right): return {chance.choice(parts)}\n",
        space,
    )
    program = space["Made"]()
    found = proof(program)

    for s in range(-4, 5):
        left, right = program.fork(s, TagSet(()), TagSet(()))
        assert C2 not in found.proved or program.join(left, right) == s
        for a, b, e in ((a, b, e) for a in range(-3, 4) for b in range(-3, 4) for e in (-2, 0, 3)):
            one, other = program.join(left + a + e, right + b), program.join(left + a, right + b) + e
            assert C1 not in found.proved or one == other
            mirrored = program.join(left + a, right + b + e)
            assert C1 not in found.proved or mirrored == other


class Asks(Windows):
    def fork(self, total: int, left: TagSet, right: TagSet) -> Any:
        return (total, 0) if left(Barrier) else (0, total)


class WithDict(Windows):
    def init(self) -> Any:
        return {}


class WithOwnEquality(Windows):
    def same_state(self, one: Any, other: Any) -> bool:
        return True


class KeepsEvents(Windows):
    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        return event


class Infinite(Windows):
    def init(self) -> Any:
        return float("inf")


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (Asks, "asks which tags will come"),
        (WithDict, "has a dict in its state"),
        (WithOwnEquality, "same_state is the program's own"),
        (KeepsEvents, "keeps an event in its state"),
        (Infinite, "has inf in its state"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_read_says_why(program: type[ForkJoin], why: str):
    found = proof(program())

    assert found.proved == ()
    assert all(why in told for told in found.tested.values())


def test_without_time_nothing_is_proved():
    found = is_consistent(Windows(), Budget(0))

    assert found.proved == ()
    assert found.tested


Low, High = Kind("Out", time=int, low=int), Kind("Out", time=int, high=int)
RARE = 123456789012


class TwoOutputs(Windows):
    """The kind of its output says whether a value came before; both kinds have one name."""

    gives = (Low, High)

    def update(self, total: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            if event.value == RARE:
                emit(Low(event.time, 1) if total > 0 else High(event.time, 1))
            return total + abs(event.value)
        emit(Low(event.time, total))
        return total


def test_outputs_of_two_kinds_of_one_name_are_not_the_same():
    assert C1 in proof(TwoOutputs()).tested


def told_by_str(left: TagSet) -> bool:
    return "key=98765" in str(left)


def told_by_format(left: TagSet) -> bool:
    return "key=98765" in f"{left}"


def told_by_repr(left: TagSet) -> bool:
    return repr(left) == "Value(key=98765)"


def told_by_class(left: TagSet) -> bool:
    return left.__class__.__name__ != "TagSet"


@pytest.mark.parametrize("told", [told_by_str, told_by_format, told_by_repr, told_by_class])
def test_a_fork_that_looks_at_its_tags_in_any_way_is_not_proved(told: Any):
    class Looks(Windows):
        def fork(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
            return (total + 1, 0) if told(left) else (total, 0)

    assert not proof(Looks()).proved


def test_text_of_the_program_or_of_a_kind_is_not_read():
    class Shown(Windows):
        gives = (Name,)

        def update(self, total: int, event: Event, emit: Emit) -> int:
            if event.kind is Value:
                return total + event.value
            emit(Name(event.time, f"{event.kind}{str(self)[:3]}"))
            return 0

    assert not proof(Shown()).proved


class Tripled:
    factor = 3

    def update(self, total: int, event: Event, emit: Emit) -> int:
        return total + event.value * self.factor


def test_a_method_of_another_object_is_not_read_as_one_of_the_program():
    class Borrows(Windows):
        factor = 1
        whole, part = StateType(Value, Barrier), StateType(Value, update=Tripled().update)
        branches = (Branch(whole, part, part),)

    assert "is a method of another object, a Tripled" in str(proof(Borrows()).tested)


def test_a_fork_or_a_join_that_raises_is_not_proved():
    class JoinRaises(Windows):
        def join(self, left: int, right: int) -> int:
            if left == RARE:
                raise ValueError
            return left + right

    class ForkRaises(Windows):
        def fork(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
            if total == RARE:
                raise ValueError
            return total, 0

    assert set(proof(JoinRaises()).tested) == {C1, C2}
    assert set(proof(ForkRaises()).tested) == {C2}


def test_a_join_that_would_raise_for_states_that_never_come_is_proved():
    class NeverNegative(Windows):
        def update(self, total: int, event: Event, emit: Emit) -> int:
            if event.kind is Value:
                return total + abs(event.value)
            emit(Total(event.time, total))
            return 0

        def join(self, left: int, right: int) -> int:
            if left < 0:
                raise ValueError
            return left + right

    assert proof(NeverNegative()) == Proof((C1, C2, C3))
