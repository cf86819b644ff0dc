"""Fork/join programs of which it is known whether they give the same outputs on any number of workers.

Those of the literature that are wrong are wrong as they were published: the fork of the page-view join that loses
users, the join that ignores the maximum of its right side, dependences that leave out that barriers keep their order.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy

from streamtight.program.fork_join import Block, Branch, Emit, EmitBlock, ForkJoin, StateType
from streamtight.program.tags import TagSet
from streamtight.stream.dependence import barrier, between, depends, ordered, same, unordered
from streamtight.stream.event import Event, Kind

Value = Kind("Value", time=int, value=int)
Barrier = Kind("Barrier", time=int)
Total = Kind("Total", time=int, total=int)
Measure = Kind("Measure", time=float, value=float)
Sum = Kind("Sum", time=float, total=float)
Tick = Kind("Tick", time=float)


@dataclass(frozen=True)
class Entry:
    """A program, and what is true of it."""

    make: Callable[[], ForkJoin]
    outcome: str
    """HOLDS, FAILS or UNDECIDED."""
    findings: tuple[str, ...] = ()
    """If it fails, what may be found: any of these."""
    proved: bool = False
    says: str = ""
    """What the reason, the method, an assumption or the explanation has in it."""

    @property
    def name(self) -> str:
        return self.make.__name__


ENTRIES: list[Entry] = []
LEFT, RIGHT, FORK, ORDER = "JOIN_UPDATE_LEFT", "JOIN_UPDATE_RIGHT", "FORK_JOIN", "ORDER_MATTERS"


def holds(*, proved: bool = False, says: str = "") -> Callable[[type[ForkJoin]], type[ForkJoin]]:
    return _entered("HOLDS", (), proved, says)


def fails(*findings: str, says: str = "") -> Callable[[type[ForkJoin]], type[ForkJoin]]:
    return _entered("FAILS", findings, False, says)


def undecided(says: str) -> Callable[[type[ForkJoin]], type[ForkJoin]]:
    return _entered("UNDECIDED", (), False, says)


def _entered(outcome: str, findings: tuple[str, ...], proved: bool, says: str) -> Callable[[Any], Any]:
    def enter(cls: Any) -> Any:
        ENTRIES.append(Entry(cls, outcome, findings, proved, says))
        return cls

    return enter


# -- event windows ---------------------------------------------------------------------------------------------------


@holds(proved=True)
class Windows(ForkJoin):
    """The sum of the values between two barriers."""

    takes, gives = (Value, Barrier), (Total,)
    depends = barrier(Barrier)
    whole, part = StateType(Value, Barrier), StateType(Value)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self) -> int:
        return 0

    def update(self, total: int, event: Event, emit: Emit) -> int:
        if event.kind is Value:
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
        return total, 0

    def join(self, left: int, right: int) -> int:
        return left + right


@fails(RIGHT, says="Barrier")
class WindowsOfOneType(Windows):
    """The fork does not look where the barriers go: on the right they find no sum."""

    whole = part = None
    branches = ()


@holds(says="fork")
class WindowsThatAsk(WindowsOfOneType):
    """The sum goes where the barriers go."""

    def fork(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
        return (0, total) if right(Barrier) else (total, 0)


@holds(proved=True, says="update_block does what update does")
class WindowsByBlocks(Windows):
    """Sums of columns."""

    def update_block(self, total: int, block: Block, emit: EmitBlock) -> Any:
        return total + int(numpy.sum(block["value"])) if block.kind is Value else NotImplemented


@fails("BLOCK_DIFFERS")
class WindowsByWrongBlocks(Windows):
    """Counts the values of a block."""

    def update_block(self, total: int, block: Block, emit: EmitBlock) -> Any:
        return total + len(block) if block.kind is Value else NotImplemented


@fails("BLOCK_DIFFERS", says="Total")
class WindowsWithSilentBlocks(Windows):
    """A block of barriers gives no output."""

    def update_block(self, total: int, block: Block, emit: EmitBlock) -> Any:
        return NotImplemented if block.kind is Value else 0


@fails(RIGHT)
class JoinIgnoresRight(Windows):
    """What the right side adds up is lost."""

    def join(self, left: int, right: int) -> int:
        return left


@fails(LEFT, FORK)
class JoinIgnoresLeft(Windows):
    def join(self, left: int, right: int) -> int:
        return right


@fails(FORK)
class ForkCopies(Windows):
    """The sum counts twice."""

    def fork(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
        return total, total


@fails(ORDER, LEFT, RIGHT)
class UndeclaredBarrierOrder(Windows):
    """Barriers do not depend on each other, so the outputs of two may be exchanged."""

    depends = between(Barrier, Value)


@fails(ORDER)
class LastValue(Windows):
    """The last value wins, but values have no order."""

    branches = ()

    def update(self, total: int, event: Event, emit: Emit) -> int:
        if event.kind is Value:
            return event.value
        emit(Total(event.time, total))
        return 0


@holds(proved=True, says="no fork")
class OneWorker(ForkJoin):
    """Nothing to fork, and all in order."""

    takes, gives, depends = (Value, Barrier), (Total,), ordered

    def init(self) -> int:
        return 0

    def update(self, last: int, event: Event, emit: Emit) -> int:
        emit(Total(event.time, last))
        return event.value if event.kind is Value else last


@holds(proved=True, says="floats are real numbers")
class FloatSums(ForkJoin):
    """Sums of floats: the same but for the last digits."""

    takes, gives = (Measure, Tick), (Sum,)
    depends = barrier(Tick)
    whole, part = StateType(Measure, Tick), StateType(Measure)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self) -> float:
        return 0.0

    def update(self, total: float, event: Event, emit: Emit) -> float:
        if event.kind is Measure:
            return total + event.value
        emit(Sum(event.time, total))
        return 0.0

    def fork(self, total: float, left: TagSet, right: TagSet) -> tuple[float, float]:
        return total, 0.0

    def join(self, left: float, right: float) -> float:
        return left + right


@fails(LEFT, RIGHT, FORK, ORDER)
class FloatMeans(FloatSums):
    """A mean of means."""

    def update(self, mean: float, event: Event, emit: Emit) -> float:
        if event.kind is Measure:
            return (mean + event.value) / 2
        emit(Sum(event.time, mean))
        return 0.0


@holds(proved=True)
class CountAndSum(Windows):
    """A tuple of two."""

    def init(self) -> Any:
        return (0, 0)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        count, total = state
        if event.kind is Value:
            return count + 1, total + event.value
        emit(Total(event.time, total // count if count else 0))
        return 0, 0

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, (0, 0)

    def join(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], left[1] + right[1]


@fails(LEFT, RIGHT, ORDER)
class OutputsDifferStatesAgree(Windows):
    """A value that is greater than the sum so far is told; the sums are right."""

    def update(self, total: int, event: Event, emit: Emit) -> int:
        if event.kind is Value and event.value > total:
            emit(Total(event.time, event.value))
        return total + event.value if event.kind is Value else 0


@fails(LEFT, RIGHT, ORDER, says="no output showed it")
class StatesDifferOutputsAgree(Windows):
    """The state also has the last value, which nobody ever sees."""

    def init(self) -> Any:
        return (0, 0)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Value:
            return state[0] + event.value, event.value
        emit(Total(event.time, state[0]))
        return 0, 0

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, (0, state[1])

    def join(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], left[1]


# -- fraud detection -------------------------------------------------------------------------------------------------

Transaction = Kind("Transaction", time=int, value=int)
Rule = Kind("Rule", time=int)
Flagged = Kind("Flagged", time=int, value=int)


class Fraud(ForkJoin):
    """Transactions are flagged by a model that each rule makes of the transactions before it."""

    takes, gives = (Transaction, Rule), (Flagged, Total)
    depends = barrier(Rule)
    whole, part = StateType(Transaction, Rule), StateType(Transaction)
    branches = (Branch(whole, part, part), Branch(part, part, part))


@holds(proved=True)
class FraudA(Fraud):
    """The model is the sum of the window before."""

    def init(self) -> Any:
        return (0, 0)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        previous, current = state
        if event.kind is Rule:
            emit(Total(event.time, current))
            return current, 0
        if previous % 1000 == event.value % 1000:
            emit(Flagged(event.time, event.value))
        return previous, current + event.value

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        previous, current = state
        return (previous, current), (previous, 0)

    def join(self, left: Any, right: Any) -> Any:
        return left[0], left[1] + right[1]


@fails(RIGHT)
class FraudWithoutModel(FraudA):
    """The right side does not get the model."""

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, (0, 0)


@holds(proved=True)
class FraudB(Fraud):
    """The model is a residue of the time of the last rule; the sum is never reset."""

    def init(self) -> Any:
        return (0, 0)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        total, residue = state
        if event.kind is Rule:
            emit(Total(event.time, total))
            return total, (event.time + 1) % 100
        if event.value % 100 == residue:
            emit(Flagged(event.time, event.value))
        return total + event.value, residue

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        total, residue = state
        return (total, residue), (0, residue)

    def join(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], left[1]


@fails(ORDER, LEFT, RIGHT)
class FraudRulesInAnyOrder(FraudB):
    """Rules do not depend on each other, as in the experiments that were published."""

    depends = between(Rule, Transaction)


# -- page views ------------------------------------------------------------------------------------------------------

Move = Kind("Move", time=int, user=int, zip=int)
Get = Kind("Get", time=int, user=int)
View = Kind("View", time=int, user=int)
Visit = Kind("Visit", time=int, user=int, zip=int)


@holds()
class PageViews(ForkJoin):
    """Views are joined with the address of the user: a copy goes to each side that may see views."""

    takes, gives = (Move, Get, View), (Visit,)
    depends = (barrier(Move)) & same("user")

    def init(self) -> dict[int, int]:
        return {}

    def update(self, state: dict[int, int], event: Event, emit: Emit) -> dict[int, int]:
        if event.kind is Move:
            state[event.user] = event.zip
        emit(Visit(event.time, event.user, state.get(event.user, 0)))
        return state

    def fork(self, state: dict[int, int], left: TagSet, right: TagSet) -> tuple[dict[int, int], dict[int, int]]:
        def sees(side: TagSet, user: int) -> bool:
            return any(side(kind, user=user) for kind in (Move, Get, View))

        on_right = {user: code for user, code in state.items() if sees(right, user)}
        on_left = {user: code for user, code in state.items() if sees(left, user) or user not in on_right}
        return on_left, on_right

    def join(self, left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
        return left | right


@fails(FORK)
class PageViewsThatLoseUsers(PageViews):
    """Users that neither side may see are lost, as in the program that was published."""

    def fork(self, state: dict[int, int], left: TagSet, right: TagSet) -> tuple[dict[int, int], dict[int, int]]:
        kinds = (Move, Get, View)
        one = {user: code for user, code in state.items() if any(left(kind, user=user) for kind in kinds)}
        other = {user: code for user, code in state.items() if any(right(kind, user=user) for kind in kinds)}
        return one, other


# -- counters --------------------------------------------------------------------------------------------------------

Add = Kind("Add", time=int, key=int)
Read = Kind("Read", time=int, key=int)
Count = Kind("Count", key=int, count=int)


@holds()
class KeyCounter(ForkJoin):
    """A map from keys to counters (Figure 15)."""

    takes, gives = (Add, Read), (Count,)
    depends = barrier(Read) & same("key")

    def init(self) -> dict[int, int]:
        return {}

    def update(self, counts: dict[int, int], event: Event, emit: Emit) -> dict[int, int]:
        if event.kind is Add:
            counts[event.key] = counts.get(event.key, 0) + 1
        else:
            emit(Count(event.key, counts.get(event.key, 0)))
            counts.pop(event.key, None)
        return counts

    def fork(self, counts: dict[int, int], left: TagSet, right: TagSet) -> tuple[dict[int, int], dict[int, int]]:
        one = {key: count for key, count in counts.items() if left(Read, key=key)}
        return one, {key: count for key, count in counts.items() if key not in one}

    def join(self, left: dict[int, int], right: dict[int, int]) -> dict[int, int]:
        for key, count in right.items():
            left[key] = left.get(key, 0) + count
        return left


@fails(RIGHT, LEFT)
class KeyCounterForkedByAdds(KeyCounter):
    """A counter goes where the key is counted, not where it is read."""

    def fork(self, counts: dict[int, int], left: TagSet, right: TagSet) -> tuple[dict[int, int], dict[int, int]]:
        one = {key: count for key, count in counts.items() if left(Add, key=key)}
        return one, {key: count for key, count in counts.items() if key not in one}


@fails("FORK_SHARES_STATE", FORK)
class ForkSharesItsState(KeyCounter):
    """Both sides count in one dict."""

    def fork(self, counts: dict[int, int], left: TagSet, right: TagSet) -> tuple[dict[int, int], dict[int, int]]:
        return (counts, counts) if not counts else super().fork(counts, left, right)


Up = Kind("Up", time=int, amount=int)
Down = Kind("Down", time=int, amount=int)
Day = Kind("Day", time=int)
Most = Kind("Most", time=int, most=int)


class DailyMost(ForkJoin):
    """The greatest single amount of a day, and the balance."""

    takes, gives = (Up, Down, Day), (Most,)
    depends = barrier(Day)
    whole, part = StateType(Up, Down, Day), StateType(Up, Down)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self) -> Any:
        return (0, 0)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        balance, most = state
        if event.kind is Day:
            emit(Most(event.time, most))
            return balance, 0
        if event.kind is Down:
            return balance - event.amount, most
        return balance + event.amount, max(most, event.amount)

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return state, (0, 0)


@holds(proved=True)
class DailyMostOfBoth(DailyMost):
    def join(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], max(left[1], right[1])


@fails(RIGHT)
class DailyMostOfLeft(DailyMost):
    """The maximum of the right side is ignored, as in the program that was published."""

    def join(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], left[1]


# -- outliers, smart homes -------------------------------------------------------------------------------------------

Connection = Kind("Connection", time=int, size=int)
Check = Kind("Check", time=int)
Outliers = Kind("Outliers", time=int, seen=int, greatest=int)


@fails(FORK)
class OutliersCopied(ForkJoin):
    """Each side gets the model with its count, and the counts are added: what was there counts twice."""

    takes, gives = (Connection, Check), (Outliers,)
    depends = barrier(Check)
    whole, part = StateType(Connection, Check), StateType(Connection)
    branches = (Branch(whole, part, part), Branch(part, part, part))

    def init(self) -> Any:
        return {"seen": 0, "greatest": 0}

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        if event.kind is Check:
            emit(Outliers(event.time, state["seen"], state["greatest"]))
            return state
        return {"seen": state["seen"] + 1, "greatest": max(state["greatest"], event.size)}

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return dict(state), dict(state)

    def join(self, left: Any, right: Any) -> Any:
        return {"seen": left["seen"] + right["seen"], "greatest": max(left["greatest"], right["greatest"])}


Warm = Kind("Warm", time=int, room=str, degrees=int)
Minute = Kind("Minute", time=int)
Warmest = Kind("Warmest", time=int, room=str, degrees=int)


@holds()
class SmartHome(ForkJoin):
    """The greatest temperature of each room, told each minute."""

    takes, gives = (Warm, Minute), (Warmest,)
    depends = barrier(Minute)
    tag = ("room",)
    home, rooms = StateType(Warm, Minute), StateType(Warm)
    branches = (Branch(home, rooms, rooms), Branch(rooms, rooms, rooms))

    def init(self) -> dict[str, int]:
        return {}

    def update(self, state: dict[str, int], event: Event, emit: Emit) -> dict[str, int]:
        if event.kind is Warm:
            state[event.room] = max(state.get(event.room, event.degrees), event.degrees)
            return state
        for room, degrees in state.items():
            emit(Warmest(event.time, room, degrees))
        return {}

    def fork(self, state: dict[str, int], left: TagSet, right: TagSet) -> Any:
        return state, {}

    def join(self, left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
        for room, degrees in right.items():
            left[room] = max(left.get(room, degrees), degrees)
        return left


@fails(ORDER, LEFT, RIGHT)
class SmartHomeMinutesInAnyOrder(SmartHome):
    """The marker does not depend on itself."""

    depends = between(Minute, Warm)


# -- what nobody can tell, and what is no program --------------------------------------------------------------------


@undecided("random.random")
class Random(Windows):
    """Some values are left out by chance."""

    def update(self, total: int, event: Event, emit: Emit) -> int:
        return super().update(total, event, emit) if event.kind is Barrier or random.random() < 0.5 else total


@undecided("time.time")
class Clock(Windows):
    """The time of the clock is told."""

    def update(self, total: int, event: Event, emit: Emit) -> int:
        if event.kind is Barrier:
            emit(Total(event.time, int(time.time() * 1e6)))
        return total


@undecided("changes self")
class HiddenState(Windows):
    """Barriers are numbered, by what is not in the state."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = 0

    def update(self, total: int, event: Event, emit: Emit) -> int:
        if event.kind is Value:
            return total + event.value
        self.seen += 1
        emit(Total(self.seen, total))
        return 0


_told: list[int] = []


@undecided("_told")
class GlobalState(Windows):
    """Writes into a list that all see."""

    def update(self, total: int, event: Event, emit: Emit) -> int:
        _told.append(total)
        return super().update(total, event, emit)


@undecided("do not count as the same")
class StatesWithoutEquality(Windows):
    """Two equal states are not equal."""

    class Sum:
        def __init__(self, total: int) -> None:
            self.total = total

    def init(self) -> Any:
        return self.Sum(0)

    def update(self, state: Any, event: Event, emit: Emit) -> Any:
        return self.Sum(super().update(state.total, event, emit))

    def fork(self, state: Any, left: TagSet, right: TagSet) -> Any:
        return self.Sum(state.total), self.Sum(0)

    def join(self, left: Any, right: Any) -> Any:
        return self.Sum(left.total + right.total)


@holds()
class StatesWithOwnEquality(StatesWithoutEquality):
    """The program says when they are."""

    def same_state(self, one: Any, other: Any) -> bool:
        return bool(one.total == other.total)


@undecided("gave no output")
class NeverTells(Windows):
    """Declares an output that never comes."""

    def update(self, total: int, event: Event, emit: Emit) -> int:
        return total + event.value if event.kind is Value else 0


@undecided("KeyError")
class AlwaysRaises(Windows):
    def update(self, total: int, event: Event, emit: Emit) -> int:
        raise KeyError("never")


@holds(says="no function raises")
class RaisesForSome(Windows):
    """Zero is refused, wherever it comes."""

    def update(self, total: int, event: Event, emit: Emit) -> int:
        if event.kind is Value and event.value == 0:
            raise ValueError("zero")
        return super().update(total, event, emit)


@fails(LEFT, RIGHT, ORDER)
class RaisesOnOneSide(Windows):
    """A sum of more than 5 is refused, which a part of it is not."""

    def update(self, total: int, event: Event, emit: Emit) -> int:
        if total > 5:
            raise OverflowError("too much")
        return super().update(total, event, emit)


@fails(FORK)
class ForkRaises(WindowsThatAsk):
    """There is no fork for barriers."""

    def fork(self, total: int, left: TagSet, right: TagSet) -> tuple[int, int]:
        if left(Barrier) or right(Barrier):
            raise ValueError("values only")
        return total, 0


@fails("STATE_NOT_PICKLED")
class StateWithFunction(Windows):
    """A function in the state cannot be sent."""

    def init(self) -> Any:
        return (0, lambda: 0)


@fails("OUTPUT_NOT_DECLARED")
class OutputNotDeclared(Windows):
    gives = (Count,)


@fails("INIT_DIFFERS", "NOT_A_FUNCTION")
class InitIsShared(KeyCounter):
    """All runs count in one dict."""

    first: ClassVar[dict[int, int]] = {}

    def init(self) -> dict[int, int]:
        return self.first


@fails("DEPENDENCE_NOT_SYMMETRIC")
class OneWayDependence(Windows):
    depends = depends(lambda a, b: a.kind is Barrier)
    whole = StateType(Value, Barrier)
    branches = ()


@fails("DEPENDENCE_LOOKS_AT_PAYLOAD")
class DependsOnPayload(Windows):
    depends = depends(lambda a, b: a.kind is Barrier or b.kind is Barrier or (a.value > 2 and b.value > 2))
    branches = ()


@holds(says="is a function, which is not read")
class DependsByFunction(Windows):
    """The same as `barrier(Barrier)`, as a function."""

    depends = depends(lambda a, b: a.kind is Barrier or b.kind is Barrier)


@holds(proved=True)
class EachAlone(ForkJoin):
    """No state at all: each value is told as it comes."""

    takes, gives, depends = (Value,), (Total,), unordered

    def init(self) -> None:
        return None

    def update(self, state: None, event: Event, emit: Emit) -> None:
        if event.value % 7 == 3:
            emit(Total(event.time, event.value))

    def fork(self, state: None, left: TagSet, right: TagSet) -> tuple[None, None]:
        return None, None

    def join(self, left: None, right: None) -> None:
        return None
