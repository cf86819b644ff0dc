"""Fork/join programs: which can be defined, what they mean, and which streams they can be given."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from streamtight.errors import InputError, PlanError
from streamtight.program.fork_join import BEGINNING, END, Branch, ForkJoin, Heartbeat, StateType
from streamtight.stream.dependence import barrier, same, unordered
from streamtight.stream.event import Event, Kind

Value, Barrier = Kind("Value", time=int, value=int), Kind("Barrier", time=int)
Total = Kind("Total", time=int, total=int)
Other = Kind("Other", time=int)
Seen = Kind("Seen", what=str)


class Windows(ForkJoin):
    takes, gives = (Value, Barrier), (Total,)
    depends = barrier(Barrier)

    def init(self):
        return 0

    def update(self, total, event, emit):
        if event.kind is Value:
            return total + event.value
        emit(Total(event.time, total))
        return 0

    def fork(self, total, left, right):
        return total, 0

    def join(self, left, right):
        return left + right


def defined(**attributes: Any) -> ForkJoin:
    """A program like `Windows`, but for some attributes."""
    return type("Changed", (Windows,), attributes)()


# -- definitions -----------------------------------------------------------------------------------------------------

Keyed = Kind("Keyed", time=int, key=int)
Dated = Kind("Dated", time=datetime)
stranger = StateType(Value)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        pytest.param({"takes": ()}, "needed takes, its kinds of events; came ()", id="takes nothing"),
        pytest.param({"takes": Value}, "needed takes, its kinds of events", id="a kind, not several"),
        pytest.param({"takes": ("Value",)}, "needed takes, its kinds of events; came ('Value',)", id="a name"),
        pytest.param({"takes": (Value, Barrier, Value)}, "needed each kind once in takes", id="a kind twice"),
        pytest.param({"gives": Total}, "needed gives, its kinds of outputs", id="gives a kind, not several"),
        pytest.param({"depends": None}, "needed depends, a dependence; came None", id="no dependence"),
        pytest.param({"depends": lambda a, b: True}, "needed depends, a dependence; came <", id="a bare function"),
        pytest.param({"takes": (Seen,)}, "needed a field 'time' in each kind: an int, a float or a", id="no time"),
        pytest.param({"time": "what", "takes": (Seen,)}, "needed a field 'what' in each kind", id="time is a text"),
        pytest.param(
            {"takes": (Value, Dated)},
            "needed times that can be compared: datetimes in all kinds, or numbers; "
            "came Value(time: int), Dated(time: datetime)",
            id="two types of time",
        ),
        pytest.param(
            {"takes": (Keyed,), "depends": same("key"), "tag": ()},
            "needed a tag with the fields that same('key') looks at; came tag = (), without key. Try: tag = ('key',)",
            id="a tag without a field",
        ),
        pytest.param(
            {"part": StateType(Value)},
            "needed the first type of states to take every kind, since it is that of init(); came one that takes Value",
            id="a first type that takes too little",
        ),
        pytest.param(
            {"branches": (Branch(stranger, stranger, stranger),)},
            "needed types of states of this program: state; came StateType(Value)",
            id="a branch of a strange type",
        ),
        pytest.param({"fork": None}, "needed a method fork; came none", id="no fork"),
        pytest.param({"join": ForkJoin.join}, "needed a method join; came none", id="no join"),
    ],
)
def test_what_cannot_be_a_program_is_refused_when_it_is_made(attributes: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError) as raised:
        defined(**attributes)

    assert message in str(raised.value)
    assert str(raised.value).startswith("class Changed")


def test_a_program_without_fork_has_no_branches() -> None:
    class Alone(ForkJoin):
        takes, depends = (Value,), unordered

    assert Alone().all_branches == ()
    assert [type_.name for type_ in Alone().state_types] == ["state"]


def test_a_program_of_one_type_with_a_fork_has_the_branch_of_this_type() -> None:
    assert list(map(repr, Windows().all_branches)) == ["state -> (state, state)"]


def test_state_types_are_inherited_and_the_first_stays_the_first() -> None:
    class One(Windows):
        whole = StateType(Value, Barrier)

    class Two(One):
        part = StateType(Value)

    assert [type_.name for type_ in Two().state_types] == ["whole", "part"]


def test_the_update_of_a_type_goes_before_that_of_the_program() -> None:
    def skip(state: int, event: Event, emit: Any) -> int:
        return state

    program = defined(whole=StateType(Value, Barrier), part=StateType(Value, update=skip))

    assert program.update_of(program.state_types[0]) == program.update
    assert program.update_of(program.state_types[1]) is skip


def test_tags_have_the_key_fields_of_the_dependence_if_no_others_are_named() -> None:
    class ByKey(ForkJoin):
        takes, depends = (Keyed, Value), same("key", of=Keyed)

    class ByValue(ByKey):
        tag = ("key", "value")

    assert (ByKey().tag_fields(Keyed), ByKey().tag_fields(Value)) == (("key",), ())
    assert (ByValue().tag_fields(Keyed), ByValue().tag_fields(Value)) == (("key",), ("value",))


# -- meaning ---------------------------------------------------------------------------------------------------------


def test_events_come_by_time_then_by_kind_then_by_stream_then_by_place() -> None:
    streams = {
        "b": [Value(1, 1), Value(1, 2), Barrier(1), Value(2, 3)],
        "a": [Value(0, 4), Heartbeat(0), Value(1, 5), Barrier(1), Heartbeat(4)],
        "none": [],
    }

    assert list(Windows().sequence(streams)) == [
        Value(0, 4),
        Value(1, 1),
        Value(1, 2),
        Value(1, 5),
        Barrier(1),
        Barrier(1),
        Value(2, 3),
    ]


def test_run_applies_updates_alone() -> None:
    program = defined(fork=lambda *_: 1 / 0, join=lambda *_: 1 / 0)

    assert program.run({"values": [Value(1, 5), Value(2, 6)], "barriers": [Barrier(1), Barrier(2)]}) == [
        Total(1, 5),
        Total(2, 6),
    ]


def test_one_stream_needs_no_name() -> None:
    assert (
        Windows().run([Value(1, 5), Barrier(1)]) == Windows().run({"all": [Value(1, 5), Barrier(1)]}) == [Total(1, 5)]
    )


@pytest.mark.parametrize("streams", [{}, [], {"a": [], "b": [Heartbeat(3)]}], ids=repr)
def test_where_nothing_comes_nothing_is_given(streams: Any) -> None:
    assert Windows().run(streams) == []


def test_a_run_can_go_on_from_a_state() -> None:
    out: list[Event] = []

    state = Windows().continued(40, [Value(1, 2), Barrier(1), Value(2, 7)], out.append)

    assert (state, out) == (7, [Total(1, 42)])


@pytest.mark.parametrize(
    ("type_", "times"),
    [
        pytest.param(int, [-(10**30), -1, 0, 10**30], id="int"),
        pytest.param(float, [-math.inf, -0.0, 0.0, 5e-324, math.inf], id="float"),
        pytest.param(datetime, [datetime(1, 1, 1), datetime(2024, 5, 1), datetime.max], id="datetime"),
        pytest.param(datetime, [datetime(2024, 5, 1, tzinfo=UTC) + timedelta(n) for n in range(3)], id="with a zone"),
        pytest.param(int | None, [1, 2], id="int or None"),
    ],
)
def test_times_are_numbers_or_datetimes_and_lie_between_beginning_and_end(type_: Any, times: list[Any]) -> None:
    timed = Kind("At", time=type_)
    program = defined(takes=(timed,), depends=unordered)
    events = [timed(time) for time in times]

    assert list(program.sequence({"a": events[::2], "b": events[1::2]})) == events
    assert all(BEGINNING < program.key(event) < END for event in events)


# -- streams that cannot be ------------------------------------------------------------------------------------------

Maybe = Kind("Maybe", time=float | None)


@pytest.mark.parametrize(
    ("items", "came"),
    [
        pytest.param([Value(2, 0), Value(1, 0)], "Value at time 1 after time 2", id="back in time"),
        pytest.param([Barrier(1), Value(1, 0)], "Value at time 1 after time 1", id="kinds in the wrong order"),
        pytest.param([Heartbeat(1), Value(1, 0)], "Value at time 1 after time 1", id="an event after its heartbeat"),
        pytest.param([Heartbeat(2), Heartbeat(1)], "a heartbeat at time 1 after time 2", id="a heartbeat back in time"),
        pytest.param([Value(2, 0), Heartbeat(1)], "a heartbeat at time 1 after time 2", id="a heartbeat too late"),
        pytest.param([Heartbeat(math.nan)], "a heartbeat at time nan after", id="a heartbeat at NaN"),
        pytest.param([Value(1, 0), Heartbeat(None)], "a heartbeat at time None after", id="a heartbeat at None"),
        pytest.param([Heartbeat("1")], "a heartbeat at time 1 after", id="a heartbeat at a text"),
        pytest.param([Heartbeat(datetime(2024, 1, 1))], "a heartbeat at time 2024-01-01", id="another type of time"),
        pytest.param([Maybe(math.nan)], "Maybe at time nan after", id="NaN first"),
        pytest.param([Maybe(1.0), Maybe(math.nan)], "Maybe at time nan after time 1.0", id="NaN"),
        pytest.param([Maybe(None)], "Maybe at time None after", id="None"),
        pytest.param([Other(1)], "Other(time=1)", id="another kind"),
        pytest.param([(1, 2)], "(1, 2)", id="no event"),
        pytest.param([None], "None", id="nothing"),
    ],
)
def test_a_stream_that_does_not_increase_or_has_no_events_is_refused(items: list[Any], came: str) -> None:
    program = defined(takes=(Value, Barrier, Maybe))

    with pytest.raises(InputError) as raised:
        list(program.sequence({"good": [Value(0, 1)], "bad": items}))

    assert str(raised.value).startswith("stream 'bad': ")
    assert f"came {came}" in str(raised.value)


def test_equal_events_and_equal_heartbeats_may_follow_each_other() -> None:
    events = [Value(1, 1), Value(1, 1), Heartbeat(1), Heartbeat(1), Barrier(2), Barrier(2)]

    assert Windows().run(events) == [Total(2, 2), Total(2, 0)]


def test_datetimes_with_and_without_a_zone_are_not_put_in_an_order() -> None:
    dated = Kind("At", time=datetime)
    program = defined(takes=(dated,), depends=unordered)

    with pytest.raises(InputError, match="came At at time 2024-05-02"):
        list(program.sequence([dated(datetime(2024, 5, 1, tzinfo=UTC)), dated(datetime(2024, 5, 2))]))


# -- states ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "same_"),
    [
        pytest.param(0.1 + 0.2, 0.3, True, id="last digits"),
        pytest.param({"a": [0.1 + 0.2]}, {"a": [0.3]}, True, id="last digits inside"),
        pytest.param(math.nan, math.nan, True, id="NaN"),
        pytest.param((1, 2), (1, 2, 3), False, id="lengths"),
        pytest.param({1: 2}, {2: 2}, False, id="keys"),
        pytest.param(10**20, 10**20 + 1, False, id="ints are exact"),
        pytest.param(None, 0, False, id="None"),
        pytest.param({1, 2}, {2, 1}, True, id="sets"),
    ],
)
def test_states_are_the_same_up_to_the_last_digits_of_floats(one: Any, other: Any, same_: bool) -> None:
    assert Windows().same_state(one, other) is same_
