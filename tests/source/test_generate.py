"""Sources: generated, listed, and what `on=` takes."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamtight as tight
from streamtight.errors import DependenceError, FieldError, SourceError
from streamtight.source.generate import Source, generated, listed, source_of
from streamtight.spark.rows import Table

GPS = tight.Kind("GPS", taxi_id=int, x=float)
Ride = tight.Kind("Ride", taxi_id=int, cents=int | None)
EndOfDay = tight.Kind("EndOfDay", day=int)
DAYS = tight.Sync(EndOfDay, tight.PartitionBy("taxi_id", tight.Seq(GPS, Ride)))
Everything = tight.Kind(
    "Everything",
    i=int,
    f=float,
    s=str,
    b=bool,
    raw=bytes,
    day=date,
    at=datetime,
    took=timedelta,
    price=Decimal,
    small=Annotated[int, "smallint"] | None,
    nested=GPS,
    many=tuple[int | None, ...],
    named=dict[str, float],
)


def events_of(source, count=100, seed=1):
    return [event for trace in source.traces(count, seed) for event in trace.events]


def all_traces(source, count=100, seed=1):
    return [trace.events for trace in source.traces(count, seed)]


# -- generated ---------------------------------------------------------------------------------------------------


def test_one_seed_gives_the_same_traces_and_another_one_others():
    source = generated(GPS)

    assert repr(all_traces(source, seed=3)) == repr(all_traces(generated(GPS), seed=3))
    assert all_traces(source, seed=3) != all_traces(source, seed=4)


def test_fewer_traces_are_the_first_of_more():
    assert all_traces(generated(GPS), 5) == all_traces(generated(GPS), 50)[:5]


SCRIPT = """
import random
import sys
from pathlib import Path
import {loaded}
from hypothesis import strategies as st
import streamtight as tight
from streamtight.source.generate import generated, source_of
A, B, C = (tight.Kind(name, n=int, s=str, d=dict[str, int], o=object) for name in "ABC")
schema = tight.Sync(A, tight.Bag(B, C))
def walk(rng):
    return [A(rng.randrange(9), rng.choice("xyz"), {{}}, "o") for _ in range(3)]
lists = st.lists(st.builds(B, st.integers(), st.text(max_size=3), st.just({{}}), st.none()), max_size=4)
for source in (
    generated(schema),
    generated({{A, B}}),
    generated(B, n=st.integers(), s=st.text(max_size=5), d=st.dictionaries(st.text(max_size=1), st.integers())),
    generated(B, n=range(10**9)),
    source_of(walk),
    source_of(lists),
):
    traces = list(source.traces(20, 5))
    print(source.kinds, [(trace.events, [list(source.simpler_events(e)) for e in trace.events]) for trace in traces])
print(sorted(str(p) for p in Path.cwd().rglob("*")), file=sys.stderr)
"""


@pytest.mark.slow
def test_every_process_gets_the_same_traces_and_no_folder(tmp_path):
    """Also if strings hash otherwise, and if other modules are loaded, whose constants Hypothesis would use."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "local_module.py").write_text("numbers = [987654321, 123123123, 555555555]\n" * 20)
    printed = []
    for hash_seed, folder, loaded in (("1", "one", "local_module"), ("2", "two", "json")):
        finished = subprocess.run(
            [sys.executable, "-B", "-W", "error", "-c", SCRIPT.format(loaded=loaded)],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path / folder,
            env={
                **os.environ,
                "PYTHONHASHSEED": hash_seed,
                "PYTHONIOENCODING": "utf-8",
                "PYTHONPATH": str(tmp_path / folder),
                "XDG_CACHE_HOME": str(tmp_path / "cache"),
            },
        )
        printed.append(finished.stdout)
        assert ".hypothesis" not in finished.stderr

    assert printed[0] == printed[1]
    assert printed[0].count("\n") == 6


def test_nothing_but_a_strategy_needs_hypothesis():
    code = (
        "import sys, streamtight as tight\n"
        "from streamtight.source.generate import generated\n"
        "list(generated(tight.Kind('K', n=int, s=str), n=[1, 2]).traces(5, 1))\n"
        "print('hypothesis' in sys.modules)"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "False"


@pytest.mark.parametrize(("size", "lengths"), [(3, {1, 2, 3}), ((0, 2), {0, 1, 2}), ((4, 4), {4}), ((0, 0), {0})])
def test_every_size_in_the_range_comes_and_no_other(size, lengths):
    assert set(map(len, generated(GPS, size=size).traces(100, 1))) == lengths


def test_traces_are_as_long_as_twelve_events_and_not_mostly_short():
    lengths = list(map(len, generated(GPS).traces(500, 1)))

    assert max(lengths) == 12
    assert sum(length >= 6 for length in lengths) > 250


def test_keys_repeat_within_traces():
    traces = [trace.events for trace in generated(GPS).traces(300, 1) if len(trace) >= 6]
    distinct = [len({event.taxi_id for event in events}) for events in traces]

    assert sum(count <= 3 for count in distinct) > len(distinct) / 3
    assert sum(count >= 5 for count in distinct) > len(distinct) / 10


def test_equal_events_come_in_one_trace():
    traces = all_traces(generated(Everything, size=(6, 12)))

    assert any(len(set(events)) < len(events) for events in traces)
    assert sum(len(set(events)) > 3 for events in traces) > 80


def test_every_type_of_field_is_generated_and_fits_spark():
    table = Table([Everything])

    for event in events_of(generated(Everything, extremes=True), 300):
        table.to_row(event)


def test_fields_take_values_in_every_kind_that_has_them():
    source = generated([GPS, Ride, EndOfDay], taxi_id=[7, 8])

    events = events_of(source)

    assert {event.kind for event in events} == {GPS, Ride, EndOfDay}
    assert {event.taxi_id for event in events if event.kind is not EndOfDay} == {7, 8}


def test_kinds_of_one_trace_meet_in_their_common_field():
    """Few values of a pool are used in one trace; the same few in all kinds, or nothing would ever be joined."""
    traces = all_traces(generated([GPS, Ride], size=(10, 12)), 300)
    both = [{kind: {e.taxi_id for e in events if e.kind is kind} for kind in (GPS, Ride)} for events in traces]
    both = [keys for keys in both if all(keys.values())]

    assert sum(bool(keys[GPS] & keys[Ride]) for keys in both) > len(both) * 0.7


def test_a_long_range_is_sampled_with_its_ends():
    source = generated(EndOfDay, day=range(10**12), size=(12, 12))

    first, second = ({event.day for event in events_of(source, 300, seed)} for seed in (1, 2))

    assert {0, 10**12 - 1} <= first & second
    assert 150 < len(first) <= 200
    assert len(first & second) < 10


def test_a_strategy_gives_a_field_its_values():
    source = generated(GPS, taxi_id=st.integers(100, 10_000), x=st.sampled_from([0.5, 1.5]))

    events = events_of(source)

    assert all(100 <= event.taxi_id <= 10_000 for event in events)
    assert len({event.taxi_id for event in events}) > 30
    assert {event.x for event in events} == {0.5, 1.5}
    assert {event.taxi_id for event in events} != {event.taxi_id for event in events_of(source, seed=2)}


def test_values_are_stored_as_events_store_them():
    source = generated(tight.Kind("T", many=tuple[int, ...], x=float), many=[[1, 2], []], x=[1, math.nan])

    events = events_of(source)

    assert {event.many for event in events} == {(1, 2), ()}
    assert all(isinstance(event.x, float) for event in events)


@settings(max_examples=3, deadline=None)
@given(st.integers(0, 2))
def test_a_strategy_can_be_drawn_inside_a_test_of_hypothesis(seed):
    source = generated(GPS, taxi_id=st.integers(5, 500))

    assert all(5 <= event.taxi_id <= 500 for event in events_of(source, 5, seed))


def test_drawing_says_nothing(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        events_of(generated(GPS, taxi_id=st.integers().filter(lambda n: n % 3 == 0)))

    assert capsys.readouterr() == ("", "")


def test_only_events_that_satisfy_where_come():
    source = generated([GPS, Ride], size=(3, 6), where=lambda e: e.taxi_id > 2 and e.kind is GPS)

    traces = all_traces(source)

    assert all(event.kind is GPS and event.taxi_id > 2 for events in traces for event in events)
    assert {len(events) for events in traces} == {3, 4, 5, 6}


def test_a_seldom_satisfied_where_is_satisfied():
    assert {event.taxi_id for event in events_of(generated(GPS, where=lambda e: e.taxi_id == 7), 10)} == {7}


def test_a_schema_is_the_order_that_its_source_promises():
    source = generated(DAYS)

    assert source.upto is DAYS
    assert source.kinds == (EndOfDay, GPS, Ride)
    assert all(trace.upto is DAYS for trace in source.traces(3, 1))
    assert {event.kind for event in events_of(source)} == {EndOfDay, GPS, Ride}


def test_kinds_are_ordered_unless_something_else_is_said():
    assert generated(GPS).upto == tight.ordered
    assert generated(GPS, upto=tight.same("taxi_id")).upto == tight.same("taxi_id")


def test_a_source_says_what_it_is():
    assert generated([GPS, Ride]).description == "generated GPS, Ride"
    assert generated(tight.Bag(GPS)).description == "generated Bag(GPS)"
    assert generated(GPS).seeded


def test_a_kind_without_fields_is_generated():
    tick = tight.Kind("Tick")

    assert set(events_of(generated(tick))) == {tick()}
    assert list(generated(tick).simpler_events(tick())) == []


def test_extremes_come_when_they_are_asked_for():
    largest = 2**63 - 1

    assert largest in {event.taxi_id for event in events_of(generated(GPS, extremes=True), 300)}
    assert largest not in {event.taxi_id for event in events_of(generated(GPS), 300)}


# -- simpler events ----------------------------------------------------------------------------------------------


def test_a_simpler_event_differs_in_one_field_that_is_simpler():
    simpler = list(generated(GPS).simpler_events(GPS(9, 2.0)))

    assert simpler[:2] == [GPS(0, 2.0), GPS(9, 0.0)]
    assert all((event.taxi_id == 9) != (event.x == 2.0) for event in simpler)
    assert len(simpler) <= 8


def test_the_next_simpler_value_is_among_the_steps():
    assert GPS(-3, 0.0) in list(generated(GPS).simpler_events(GPS(4, 0.0)))


def test_simpler_events_stay_in_the_domain():
    source = generated(GPS, taxi_id=[30, 10, 20], x=st.floats(1, 2), where=lambda event: event.taxi_id != 10)

    simpler = list(source.simpler_events(GPS(30, 1.75)))

    assert GPS(20, 1.75) in simpler
    assert {event.taxi_id for event in simpler} == {20, 30}
    assert all(1 <= event.x <= 2 for event in simpler)


def test_the_simplest_event_has_no_simpler_one():
    assert list(generated(GPS).simpler_events(GPS(0, 0.0))) == []
    assert list(generated(GPS, taxi_id=[5, 6]).simpler_events(GPS(5, 0.0))) == []


def test_none_is_the_simplest_value_where_it_is_admitted():
    assert next(generated(Ride).simpler_events(Ride(0, 3))) == Ride(0, None)


def test_nan_and_the_infinities_are_left_for_numbers():
    for odd in (math.nan, math.inf, -math.inf):
        assert next(generated(GPS).simpler_events(GPS(0, odd))) == GPS(0, 0.0)


def test_an_event_of_another_kind_has_no_simpler_one():
    assert list(generated(GPS).simpler_events(Ride(5, 5))) == []


def test_an_event_that_was_not_generated_has_simpler_ones_all_the_same():
    assert next(generated(EndOfDay).simpler_events(EndOfDay(777))) == EndOfDay(0)


@pytest.mark.parametrize("source", [generated(Everything), generated(DAYS, where=lambda e: e[1] != 0)])
def test_going_from_simpler_to_simpler_ends(source):
    event = events_of(source, 3)[-1]

    steps = 0
    while (simpler := next(source.simpler_events(event), None)) is not None:
        event, steps = simpler, steps + 1
        assert steps < 100


# -- listed ------------------------------------------------------------------------------------------------------


def test_listed_traces_come_as_they_are_listed():
    one, other = tight.Trace([GPS(1, 0.0)], tight.unordered), tight.Trace([], tight.unordered)

    source = listed([one, other])

    assert list(source.traces(10, seed=0)) == list(source.traces(10, seed=1)) == [one, other]
    assert list(source.traces(1, seed=0)) == [one]
    assert (source.kinds, source.upto, source.seeded) == ((GPS,), tight.unordered, False)
    assert source.description == "2 listed traces"


def test_listed_events_are_one_ordered_trace():
    source = listed([GPS(1, 0.0), EndOfDay(1)])

    assert list(source.traces(5, seed=0)) == [tight.Trace([GPS(1, 0.0), EndOfDay(1)], tight.ordered)]
    assert source.kinds == (EndOfDay, GPS)
    assert source.description == "1 listed trace"


def test_listed_events_can_promise_another_order():
    [trace] = listed([GPS(1, 0.0), GPS(2, 0.0)], upto=tight.same("taxi_id")).traces(5, seed=0)

    assert trace.upto == tight.same("taxi_id")


def test_an_empty_list_yields_nothing():
    source = listed([])

    assert list(source.traces(5, seed=0)) == []
    assert (source.kinds, source.description) == ((), "0 listed traces")


def test_a_trace_up_to_a_schema_may_lack_some_of_its_kinds():
    assert listed(tight.Trace([GPS(1, 0.0)], DAYS)).kinds == (EndOfDay, GPS, Ride)


def test_listed_events_have_no_simpler_ones():
    assert list(listed([GPS(9, 9.0)]).simpler_events(GPS(9, 9.0))) == []


# -- what on= takes ----------------------------------------------------------------------------------------------


def drive(rng):
    return tight.Trace([GPS(rng.randrange(3), float(place)) for place in range(4)], tight.same("taxi_id"))


def test_a_function_of_random_is_a_source():
    source = source_of(drive)

    traces = list(source.traces(20, seed=1))

    assert len(traces) == 20
    assert len({trace.events for trace in traces}) > 10
    assert traces == list(source.traces(20, seed=1)) != list(source.traces(20, seed=2))
    assert (source.kinds, source.upto, source.seeded) == ((GPS,), tight.same("taxi_id"), True)
    assert source.description == "traces made by drive"


def test_a_function_may_return_events():
    source = source_of(lambda rng: (EndOfDay(day) for day in range(rng.randint(1, 3))))

    assert source.upto == tight.ordered
    assert set(map(len, source.traces(50, seed=1))) == {1, 2, 3}


def test_a_strategy_of_lists_of_events_is_a_source():
    source = source_of(st.lists(st.builds(GPS, st.integers(0, 5), st.just(0.0)), min_size=1, max_size=6))

    traces = all_traces(source, 50)

    assert len(traces) == 50
    assert len(set(traces)) > 30
    assert all(1 <= len(events) <= 6 for events in traces)
    assert (source.kinds, source.seeded) == ((GPS,), True)
    assert all_traces(source, 0) == []


def test_a_source_with_few_traces_yields_at_most_those():
    assert set(all_traces(source_of(st.just([GPS(1, 0.0)])), 5)) == {(GPS(1, 0.0),)}


@pytest.mark.parametrize(
    ("given", "description"),
    [
        (GPS, "generated GPS"),
        ([GPS, Ride], "generated GPS, Ride"),
        (DAYS, f"generated {DAYS!r}"),
        (tight.Trace([GPS(1, 0.0)], tight.ordered), "1 listed trace"),
        ([tight.Trace([GPS(1, 0.0)], tight.ordered)], "1 listed trace"),
        ([GPS(1, 0.0), GPS(2, 0.0)], "1 listed trace"),
        ((tight.Kind("Tick")(),), "1 listed trace"),
        ([], "0 listed traces"),
        (listed([]), "0 listed traces"),
    ],
    ids=str,
)
def test_what_is_given_becomes_a_source(given, description):
    source = source_of(given)

    assert isinstance(source, Source)
    assert source.description == description


def test_a_given_order_replaces_that_of_traces():
    [trace] = source_of(drive, upto=tight.unordered).traces(1, seed=1)

    assert trace.upto == tight.unordered


def test_known_kinds_are_added():
    assert source_of([], kinds=[GPS]).kinds == (GPS,)
    assert source_of(drive, kinds=[Ride]).kinds == (GPS, Ride)


# -- wrong questions ---------------------------------------------------------------------------------------------


def sometimes_a_ride(rng):
    return [Ride(1, 2)] if rng.random() < 0.01 else [GPS(1, 2.0)]


def with_its_own_order(rng):
    return tight.Trace([GPS(1, 0.0)], tight.depends(lambda a, b: True))


def raises(rng):
    raise RuntimeError("no taxi")


WRONG = {
    "an unknown field": (lambda: generated(GPS, taxi=[1]), "generated(taxi=...)", "Try: taxi_id"),
    "a field of no kind": (lambda: generated(EndOfDay, zone=[1]), "'zone'", "one of day"),
    "a single value": (lambda: generated(GPS, taxi_id=5), "came 5", "taxi_id=[5]"),
    "a text for values": (lambda: generated(tight.Kind("S", s=str), s="abc"), "came 'abc'", "s=['abc']"),
    "a set of values": (lambda: generated(GPS, taxi_id={1, 2}), "came {1, 2}", "sorted(...)"),
    "a type for values": (lambda: generated(GPS, taxi_id=int), "int", "taxi_id=[...]"),
    "no values": (lambda: generated(GPS, taxi_id=[]), "came []", "[...]"),
    "values of a wrong type": (lambda: generated(GPS, taxi_id=["a"]), "GPS.taxi_id: int", "'a', a str"),
    "a strategy of a wrong type": (lambda: generated(GPS, taxi_id=st.text()), "GPS.taxi_id: int", "a str"),
    "None where it is not admitted": (lambda: generated(GPS, taxi_id=[1, None]), "None", "| None"),
    "an empty strategy": (lambda: generated(GPS, taxi_id=st.nothing()), "Unsatisfiable", "nothing().example()"),
    "a strategy that raises": (
        lambda: generated(GPS, taxi_id=st.integers().map(lambda n: n // 0)),
        "ZeroDivisionError",
        ".example()",
    ),
    "a size that is none": (lambda: generated(GPS, size="big"), "'big'", "size=12"),
    "a size of 0": (lambda: generated(GPS, size=0), "came 0", "size=(0, 12)"),
    "sizes that fall": (lambda: generated(GPS, size=(5, 2)), "(5, 2)", "size=(0, 12)"),
    "a negative size": (lambda: generated(GPS, size=(-1, 2)), "(-1, 2)", "from 0"),
    "a where that is none": (lambda: generated(GPS, where=3), "came 3", "lambda event"),
    "a where that is a kind": (lambda: generated(GPS, where=GPS), "GPS(", "lambda event"),
    "a where that nothing satisfies": (
        lambda: generated(GPS, where=lambda e: False),
        "none in 5,000 events, such as GPS(",
        "taxi_id=[1, 2, 3]",
    ),
    "a where that raises": (lambda: generated(Ride, where=lambda e: e.cents > "a"), "TypeError", "for Ride("),
    "an upto that is none": (lambda: generated(GPS, upto="taxi_id"), "'taxi_id'", "same('taxi_id')"),
    "no kind": (lambda: generated([]), "came []", "[GPS]"),
    "a schema of no kind": (lambda: generated(tight.Bag()), "Bag()", "[GPS]"),
    "something else than a kind": (lambda: generated([GPS, "Ride"]), "'Ride'", "[GPS]"),
    "a count that is none": (lambda: generated(GPS).traces("all", 1), "'all'", "count=100"),
    "a negative count": (lambda: generated(GPS).traces(-1, 1), "-1", "count=100"),
    "a seed that is none": (lambda: generated(GPS).traces(1, "lucky"), "'lucky'", "seed=100"),
    "listed lists": (lambda: listed([[GPS(1, 0.0)]]), "[GPS(", "Trace([...], ordered)"),
    "a listed number": (lambda: listed([GPS(1, 0.0), 3]), "came 3", "[event, event]"),
    "events and traces": (
        lambda: listed([GPS(1, 0.0), tight.Trace([], tight.ordered)]),
        "came [GPS(taxi_id=1, x=0.0), Trace(",
        "Trace([...], ordered)",
    ),
    "a listed event": (lambda: listed(GPS(1, 0.0)), "GPS(", "[event, event]"),
    "listed traces up to different orders": (
        lambda: listed([tight.Trace([], tight.ordered), tight.Trace([], tight.unordered)]),
        "one up to unordered",
        "one dependence",
    ),
    "a listed upto that is none": (lambda: listed([], upto=3), "came 3", "ordered"),
    "a number": (lambda: source_of(3), "on=: needed a source", "a Kind, or a list of events"),
    "a single event": (lambda: source_of(GPS(1, 0.0)), "GPS(", "[event]"),
    "a dependence": (lambda: source_of(tight.ordered), "came ordered", "generated(GPS, upto=...)"),
    "a class": (lambda: source_of(int), "int", "a Kind"),
    "a function of nothing": (lambda: source_of(lambda: []), "a function of a random.Random", "def <lambda>(rng)"),
    "a function of two": (lambda: source_of(lambda rng, n: []), "missing a required argument: 'n'", "(rng)"),
    "a function that raises": (
        lambda: source_of(raises, where="on="),
        "on=raises: needed a function that returns a trace or a list of events; came RuntimeError: no taxi",
        "raises(random.Random('0/0'))",
    ),
    "a function that returns a number": (lambda: source_of(lambda rng: 3), "came 3", "return [GPS"),
    "a function that returns a kind": (lambda: source_of(lambda rng: GPS), "GPS(", "return [GPS"),
    "a function with a new order each time": (lambda: source_of(with_its_own_order), "depends(", "made once"),
    "a function with a kind that seldom comes": (
        lambda: list(source_of(sometimes_a_ride).traces(2000, 1)),
        "needed events of GPS, as in its first 20 traces; came Ride(",
        "a schema that names Ride",
    ),
    "a strategy of no lists": (lambda: source_of(st.integers()), "came 0", "return [GPS"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_question_is_answered_with_what_to_try(case):
    ask, *said = WRONG[case]

    with pytest.raises(SourceError) as caught:
        ask()

    for text in said:
        assert text in str(caught.value)


def test_what_the_user_raised_is_the_cause():
    with pytest.raises(SourceError) as caught:
        source_of(raises)

    assert isinstance(caught.value.__cause__, RuntimeError)


def test_an_order_by_a_field_that_is_not_there_is_refused_at_once():
    with pytest.raises(DependenceError, match="'taxi_id'"):
        generated([GPS, EndOfDay], upto=tight.same("taxi_id"))


def test_a_where_that_reads_a_field_that_is_not_there_says_so():
    with pytest.raises(FieldError, match=r"EndOfDay\.taxi_id"):
        events_of(generated([GPS, EndOfDay], where=lambda event: event.taxi_id > 0))


def test_a_source_can_be_made_while_pytest_starts(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "from hypothesis import strategies as st\nimport streamtight as tight\n"
        "from streamtight.source.generate import generated\n"
        "SOURCE = generated(tight.Kind('S', s=str), s=st.text(max_size=2))\n"
    )
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")

    finished = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )

    assert "1 passed" in finished.stdout, finished.stdout + finished.stderr
    assert "Warning" not in finished.stdout + finished.stderr
