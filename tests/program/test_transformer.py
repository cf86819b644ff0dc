from __future__ import annotations

import math
import pickle
import runpy
from collections.abc import Callable
from pathlib import Path

import pytest

from streamtight.errors import JobError, SchemaError
from streamtight.program.transformer import Law, Obligation, Running
from streamtight.program.transformer_forms import Hierarchical, Parallel, Partitioned, Relational
from streamtight.stream.event import Kind
from streamtight.stream.schema import Bag, Par, PartitionBy, Seq, Sync

A, B, C = Kind("A", k=int, n=int), Kind("B", k=int, n=int), Kind("C", k=int, n=int)
Out, Loose, Mark = Kind("Out", k=int, n=int), Kind("Loose", n=int), Kind("Mark", n=int)
Hour = Kind("Hour", h=int)

count = Relational.incremental("count", takes=Bag(A), init=lambda x: 0, add=lambda n, item: n + 1)
"""How many there are."""
copy_a = Relational.incremental("copy", takes=Bag(A), gives=Bag(Out), on_item=lambda x, a: [Out(a.k, a.n)])
keep_b = Relational.incremental("keep", takes=Bag(B), gives=Bag(B), on_item=lambda x, b: [b])


def sequence(name: str = "seq", **given: object) -> Hierarchical:
    """Numbers each A with the sum so far."""
    functions = {"update": lambda total, a: (total + a.n, [Out(a.k, total + a.n)]), **given}
    return Hierarchical(name, takes=Seq(A), gives=Seq(Out), **functions)


# -- what is left out passes the value on ----------------------------------------------------------------------------


def test_a_bag_is_counted_and_the_count_is_the_final_value():
    assert count.closed(None, Bag(A).parse([A(1, 1), A(1, 1), A(2, 1)])) == (3, Bag().parse([]))


def test_a_black_box_without_functions_gives_nothing_and_passes_its_value_on():
    nothing = Relational("nothing", takes=Bag(A))

    assert nothing.closed("x", Bag(A).parse([A(1, 1)])) == ("x", Bag().parse([]))
    assert nothing.start("x").close() == ("x", [])


def test_a_black_box_without_closed_has_given_everything_before_the_end():
    big = Relational("big", takes=Bag(A), gives=Bag(Out), open=lambda x, items: [Out(a.k, x) for a in items if a.n > 1])
    running = big.start(7)

    assert [running.feed(A(1, 1)), running.feed(A(2, 2)), running.close()] == [[], [Out(2, 7)], (7, [])]


def test_a_sequence_needs_no_transformer_between_its_markers():
    value, given = sequence().closed(10, Seq(A).parse([A(1, 1), A(1, 2)]))

    assert (value, given.flatten()) == (13, [Out(1, 11), Out(1, 13)])


def test_without_update_markers_only_end_what_is_between_them():
    hours = Hierarchical("hours", takes=Sync(Hour, Bag(A)), sub=count)

    assert hours.gives.shape == count.gives.shape
    assert hours.closed(None, hours.takes.parse([A(1, 1), Hour(1), A(1, 1), A(1, 1)]))[0] == 2


def test_the_parts_of_a_parallel_get_its_value_and_their_final_values_are_its():
    both = Parallel("both", sequence("one"), Relational("two", takes=Bag(B)), Relational("three", takes=Bag(C)))

    value, given = both.closed(5, both.takes.parse([B(1, 1), A(1, 1), C(1, 1)]))

    assert (value, given.flatten()) == ((6, 5, 5), [Out(1, 6)])


def test_without_agg_the_final_values_of_the_keys_are_dropped():
    keyed = Partitioned("keyed", "k", sequence())

    assert keyed.closed(0, keyed.takes.parse([A(1, 1)]))[0] is None


# -- types -----------------------------------------------------------------------------------------------------------


def test_the_types_follow_from_the_parts():
    keyed = Partitioned("keyed", "k", sequence())
    both = Parallel("both", keyed, Relational("rest", takes=Bag(B), gives=Bag(Loose, Mark)), shared=Mark)

    assert keyed.takes.shape == PartitionBy("k", Seq(A)).shape
    assert keyed.gives.shape == PartitionBy("k", Seq(Out)).shape
    assert both.takes.shape == Par(keyed.takes, Bag(B)).shape
    assert both.gives.shape == Par(keyed.gives, Bag(Loose), Bag(Mark)).shape


def test_what_is_shared_leaves_its_place_and_is_in_a_bag():
    left = Hierarchical("left", takes=Seq(A), gives=Sync(Out, Bag(Loose)))
    right = Relational("right", takes=Bag(B), gives=Bag(Loose))

    assert Parallel("both", left, right, shared=Loose).gives.shape == Par(Seq(Out), Bag(Loose)).shape


def test_a_sub_may_ask_for_less_order_and_the_output_may_have_more_kinds():
    hours = Hierarchical(
        "hours", takes=Sync(Hour, Seq(A)), gives=Sync(Mark, Par(Bag(Out), Bag(Loose))), sub=copy_a, call=lambda y: 0
    )

    assert hours.open(0, hours.takes.parse([A(1, 1), A(1, 2)])).flatten() == [Out(1, 1), Out(1, 2)]


def test_a_sub_may_give_what_would_be_a_marker_if_it_is_in_order():
    """By the letter of 2.32 a sub cannot give Seq(Out), or Sync(Out, Bag()); Sync((), Seq(Out)) orders the same."""
    hours = Hierarchical("hours", takes=Sync(Hour, Seq(A)), gives=Sync((), Seq(Out)), sub=sequence(), init=lambda x: 0)

    given = hours.open(None, hours.takes.parse([A(1, 1), Hour(1), A(1, 2)]))

    assert given.flatten() == [Out(1, 1), Out(1, 3)]
    assert Hierarchical("hours", takes=Sync(Hour, Seq(A)), sub=sequence()).gives.shape == Seq(Out).shape


def test_a_relaxed_output_type_is_that_of_the_whole_tree():
    loose = sequence().giving(Bag(Out))

    assert loose.gives.shape == Bag(Out).shape
    assert Partitioned("keyed", "k", loose).gives.shape == PartitionBy("k", Bag(Out)).shape
    assert sequence().gives.shape == Seq(Out).shape


def both_give_out() -> Parallel:
    other = Relational.incremental("other", takes=Bag(B), gives=Bag(Out))
    return Parallel("both", copy_a, other)


WRONG_TYPES: dict[str, tuple[str, str, Callable[[], object]]] = {
    "a relational on a sequence": ("2.30", "Seq(A)", lambda: Relational("r", takes=Seq(A))),
    "a relational that gives a sequence": ("2.30", "Seq(Out)", lambda: Relational("r", takes=Bag(A), gives=Seq(Out))),
    "an incremental on a sequence": ("2.30", "Seq(A)", lambda: Relational.incremental("r", takes=Seq(A))),
    "one kind from two parts": ("2.31", "Out from copy and from other", both_give_out),
    "a sub that does not take a kind": (
        "2.32",
        "it has no B",
        lambda: Hierarchical("h", takes=Sync(Hour, Bag(A, B)), sub=count),
    ),
    "no sub where there is something between": (
        "2.32",
        "it has no A",
        lambda: Hierarchical("h", takes=Sync(Hour, Bag(A))),
    ),
    "a sub that needs more order": (
        "2.32",
        "it orders A with A always",
        lambda: Hierarchical("h", takes=Sync(Hour, Bag(A)), sub=sequence(), gives=Seq(Mark)),
    ),
    "a marker from a sub": (
        "2.32: only update and fin",
        "Out, a marker",
        lambda: Hierarchical("h", takes=Sync(Hour, Bag(A)), sub=copy_a, gives=Sync(Out, Bag())),
    ),
    "a sequence of what a sub gives in no order": (
        "2.32",
        "it orders Out with Out always",
        lambda: Hierarchical("h", takes=Sync(Hour, Bag(A)), sub=copy_a, gives=Sync((), Seq(Out))),
    ),
    "a sub that gives what the output has not": (
        "2.32",
        "it has no Out",
        lambda: Hierarchical("h", takes=Sync(Hour, Bag(A)), sub=copy_a, gives=Seq(Mark)),
    ),
    "an output without the key": (
        "2.33",
        "Loose(n: int)",
        lambda: Partitioned("p", "k", Hierarchical("h", takes=Seq(A), gives=Seq(Loose))),
    ),
    "an output with a key of another type": (
        "2.33",
        "Text(k: str)",
        lambda: Partitioned("p", "k", Relational("r", takes=Bag(A), gives=Bag(Kind("Text", k=str)))),
    ),
    "an input without the key": ("2.8 (2)", "Loose", lambda: Partitioned("p", "k", Relational("r", takes=Bag(Loose)))),
    "an input with a kind twice": ("2.8 (1)", "A twice", lambda: Parallel("p", count, copy_a)),
    "no relaxation": ("2.29", "it orders Out with Out always", lambda: copy_a.giving(Seq(Out))),
    "no schema": ("2.29", "it is no schema", lambda: copy_a.giving(Out)),
    "a stream of another type": ("2.28", "it has no B", lambda: count.open(None, Bag(B).parse([]))),
    "a stream with less order": ("2.28", "it orders A with A", lambda: sequence().open(0, Bag(A).parse([]))),
    "a list for a stream": ("2.28", "[A(", lambda: count.open(None, [A(1, 1)])),
    "an event of another kind": ("2.28", "B(k=1, n=1)", lambda: count.start(None).feed(B(1, 1))),
    "a number for an event": ("2.28", "3", lambda: count.start(None).feed(3)),
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_what_does_not_fit_is_refused_by_the_rule_of_its_definition(name: str):
    rule, named, build = WRONG_TYPES[name]

    with pytest.raises(SchemaError) as caught:
        build()

    assert caught.value.rule.startswith(rule)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: Hierarchical("h", takes=Bag(A)), "Bag(A)"),
        (lambda: Hierarchical("h", takes=Seq(A), gives=Out), "Out("),
        (lambda: Hierarchical("h", takes=Seq(A), sub=Bag(A)), "Bag(A)"),
        (lambda: Parallel("p", count, 3), "3"),
        (lambda: Parallel("p", count, Relational("count", takes=Bag(B))), "'count' twice"),
        (lambda: Partitioned("p", "k", Bag(A)), "Bag(A)"),
    ],
    ids=["a sync", "an output type", "a sub", "a part", "two names", "a transformer for each key"],
)
def test_what_is_no_part_is_refused(build: Callable[[], object], named: str):
    with pytest.raises(SchemaError, match="needed") as caught:
        build()

    assert named in caught.value.came


# -- what functions give, and where they go wrong --------------------------------------------------------------------


def fleet(update: Callable[..., object]) -> Hierarchical:
    """Every transformer below another: hours > both > keyed > seq."""
    keyed = Partitioned("keyed", "k", sequence(update=update), shared=Loose, init=lambda x, key: 0)
    both = Parallel("both", keyed, keep_b)
    return Hierarchical("hours", takes=Sync(Hour, both.takes), gives=Sync(Mark, both.gives), sub=both)


@pytest.mark.parametrize("way", ["open", "closed", "feed"])
def test_an_update_that_raises_is_named_with_its_path_and_arguments(way: str):
    broken = fleet(lambda total, a: 1 // 0)
    stream = broken.takes.parse([A(1, 2)])
    ask = {
        "open": lambda: broken.open(None, stream),
        "closed": lambda: broken.closed(None, stream),
        "feed": lambda: broken.start(None).feed(A(1, 2)),
    }

    with pytest.raises(JobError) as caught:
        ask[way]()

    assert caught.value.where == "hours > both > keyed > seq: update"
    assert caught.value.needed == "a result for (0, A(k=1, n=2))"
    assert caught.value.raised.startswith("ZeroDivisionError")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize(
    ("update", "where", "named"),
    [
        (lambda total, a: (total, [Loose(1)]), "hours > both > keyed > seq: update", "Loose(n=1)"),
        (lambda total, a: (total, [B(1, 1)]), "hours > both > keyed > seq: update", "B(k=1, n=1)"),
        (lambda total, a: (total, [Out(a.k + 1, 0)]), "hours > both > keyed: seq", "Out(k=2, n=0)"),
        (lambda total, a: (total, Out(a.k, 0)), "hours > both > keyed > seq: update", "Out(k=1, n=0)"),
        (lambda total, a: (total, [3]), "hours > both > keyed > seq: update", "3"),
        (lambda total, a: (total, None), "hours > both > keyed > seq: update", "None"),
        (lambda total, a: total, "hours > both > keyed > seq: update", "0"),
        (lambda total, a: Loose(1), "hours > both > keyed > seq: update", "Loose(n=1)"),
    ],
    ids=[
        "a kind of no output",
        "a kind of another part",
        "another key",
        "an event for a list",
        "a number",
        "nothing",
        "no pair",
        "an event for a pair",
    ],
)
def test_what_is_not_of_the_output_type_is_refused_with_its_path(update: Callable, where: str, named: str):
    broken = fleet(update)
    for ask in (
        lambda: broken.open(None, broken.takes.parse([A(1, 2)])),
        lambda: broken.closed(None, broken.takes.parse([A(1, 2)])),
        lambda: broken.start(None).feed(A(1, 2)),
    ):
        with pytest.raises(SchemaError) as caught:
            ask()
        assert (caught.value.where, caught.value.came) == (where, named)


def test_the_key_of_every_event_is_checked_and_not_that_of_the_first_only():
    running = fleet(lambda total, a: (total, [Out(a.n, 0)])).start(None)

    assert running.feed(A(1, 1)) == [Out(1, 0)]
    with pytest.raises(SchemaError) as caught:
        running.feed(A(1, 2))
    assert caught.value.rule.startswith("2.33")


def test_agg_gives_shared_kinds_only():
    keyed = Partitioned("keyed", "k", sequence(), shared=Loose, agg=lambda x, finals: (x, [Out(1, 1)]))

    with pytest.raises(SchemaError, match="keyed: agg: needed events of Loose; came Out"):
        keyed.closed(0, keyed.takes.parse([A(1, 1)]))


def test_init_of_a_parallel_gives_a_value_for_each_part():
    both = Parallel("both", copy_a, keep_b, init=lambda x: (x,))

    with pytest.raises(SchemaError, match="both: init: needed a tuple of 2 values") as caught:
        both.start(1)
    assert caught.value.rule.startswith("2.31")


def test_a_function_may_be_a_generator_and_is_named_if_it_raises():
    def halves(x: object, a: object):
        yield Out(a.k, 12 // a.n)

    by_item = Relational.incremental("halves", takes=Bag(A), gives=Bag(Out), on_item=halves)

    assert by_item.start(None).feed(A(1, 2)) == [Out(1, 6)]
    with pytest.raises(JobError, match="halves: on_item"):
        by_item.start(None).feed(A(1, 0))


# -- the laws of black boxes -----------------------------------------------------------------------------------------


def test_a_run_notices_an_open_that_takes_something_back():
    last = Relational("last", takes=Bag(A), gives=Bag(Out), open=lambda x, items: [Out(0, len(items))])
    running = last.start(None)

    assert running.opening == [Out(0, 0)]
    with pytest.raises(SchemaError) as caught:
        running.feed(A(1, 1))
    assert caught.value.rule == Law.MONOTONE.value


def test_a_run_notices_a_closed_that_takes_something_back():
    gone = Relational(
        "gone", takes=Bag(A), gives=Bag(Out), open=lambda x, items: [Out(1, 1)], closed=lambda x, items: (x, [])
    )

    with pytest.raises(SchemaError) as caught:
        gone.start(None).close()
    assert caught.value.rule == Law.PREFIX.value


def test_the_obligations_of_a_tree_are_those_of_its_functions():
    black = Relational("black", takes=Bag(A), open=lambda x, items: [], closed=lambda x, items: (x, []))
    only_closed = Relational("closed", takes=Bag(B), closed=lambda x, items: (x, []))
    keyed = Partitioned("keyed", "k", black, agg=lambda x, finals: (x, []))
    counted = Relational.incremental("count", takes=Bag(C), add=lambda n, c: n + 1)
    tree = Parallel("tree", keyed, only_closed, counted)

    assert [(o.of.path, o.law) for o in tree.obligations()] == [
        ("tree > keyed", Law.ANY_ORDER_OF_KEYS),
        ("tree > keyed > black", Law.MONOTONE),
        ("tree > keyed > black", Law.PREFIX),
        ("tree > keyed > black", Law.ANY_ORDER_OF_ITEMS),
        ("tree > closed", Law.ANY_ORDER_OF_ITEMS),
        ("tree > count", Law.ITEMS_COMMUTE),
    ]
    assert copy_a.obligations() == []
    assert repr(Obligation(counted, Law.ITEMS_COMMUTE)) == "count: 2.30: add(add(s, a), b) equals add(add(s, b), a)"


# -- runs ------------------------------------------------------------------------------------------------------------


def test_a_black_box_gives_what_open_gives_on_nothing_when_it_starts_and_after_every_marker():
    greets = Relational("greets", takes=Bag(A), gives=Bag(Out), open=lambda x, items: [Out(x, 0)])
    hours = Hierarchical("hours", takes=Sync(Hour, Bag(A)), sub=greets, update=lambda y, hour: (hour.h, []))
    running = hours.start(0)

    assert running.opening == [Out(0, 0)]
    assert [running.feed(A(1, 1)), running.feed(Hour(5)), running.feed(Hour(6))] == [[], [Out(5, 0)], [Out(6, 0)]]


def test_events_that_one_event_gives_stay_in_order_on_their_way_up():
    twice = sequence(update=lambda total, a: (total, [Out(a.k, 1), Out(a.k, 2)]))
    hours = Hierarchical("hours", takes=Sync(Hour, PartitionBy("k", Seq(A))), sub=Partitioned("keyed", "k", twice))

    assert hours.start(0).feed(A(1, 1)) == [Out(1, 1), Out(1, 2)]


def test_nothing_is_computed_twice_and_the_state_does_not_grow():
    calls: list[str] = []

    def add(total: int, a: object) -> int:
        calls.append("add")
        return total + a.n

    counted = Relational.incremental("count", takes=Bag(A), init=lambda x: 0, add=add)
    hours = Hierarchical("hours", takes=Sync(Hour, PartitionBy("k", Bag(A))), sub=Partitioned("keyed", "k", counted))
    running = hours.start(None)
    sizes = []
    for hour in range(20):
        for n in range(50):
            running.feed(A(n % 5, 1))
        sizes.append(len(pickle.dumps(running.state)))
        running.feed(Hour(hour))

    assert len(calls) == 20 * 50
    assert len(set(sizes)) == 1


@pytest.mark.parametrize("key", [math.nan, None, "a"], ids=["nan", "none", "text"])
def test_a_run_goes_on_from_pickled_state_whatever_the_key(key: object):
    item = Kind("Item", k=object)
    counted = Relational.incremental("count", takes=Bag(item), init=lambda x: 0, add=lambda n, one: n + 1)
    keyed = Partitioned("keyed", "k", counted, agg=lambda x, finals: (list(finals.values()), []))
    running = keyed.start(None)
    running.feed(item(key))

    resumed = keyed.resume(pickle.loads(pickle.dumps(running.state)))
    resumed.feed(item(key))

    assert resumed.close() == ([2], [])


def one_more(total: int, item: object) -> int:
    return total + 1


def test_a_run_pickles_as_a_whole_if_its_functions_do():
    hours = Hierarchical(
        "hours",
        takes=Sync(Hour, PartitionBy("k", Bag(A))),
        sub=Partitioned("keyed", "k", Relational.incremental("count", takes=Bag(A), add=one_more)),
    )
    running = hours.start(0)
    running.feed(A(1, 1))

    other: Running = pickle.loads(pickle.dumps(running))

    assert other.transformer.sub.sub.path == "hours > keyed > count"
    assert repr(other.state) == repr(running.state)
    assert other.close() == running.close()


def test_a_run_that_was_closed_takes_nothing_more():
    running = count.start(None)
    running.close()

    for ask in (running.close, lambda: running.feed(A(1, 1)), lambda: running.state):
        with pytest.raises(SchemaError, match="count: needed a run that goes on; came one that was closed"):
            ask()


def test_a_run_that_failed_takes_nothing_more_but_a_wrong_event_does_no_harm():
    running = sequence(update=lambda total, a: (total, [Out(a.k, 6 // a.n)])).start(0)

    with pytest.raises(SchemaError):
        running.feed(B(1, 1))
    assert running.feed(A(1, 2)) == [Out(1, 3)]
    with pytest.raises(JobError):
        running.feed(A(1, 0))
    with pytest.raises(SchemaError, match="or that failed"):
        running.feed(A(1, 1))


def test_a_transformer_says_its_type():
    assert repr(sequence()) == "Hierarchical('seq', Seq(A) -> Seq(Out))"


# -- the example -----------------------------------------------------------------------------------------------------


def test_the_taxi_example_reports_every_hour(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "taxi_hours.py"), run_name="__main__")

    told = capsys.readouterr().out
    assert "HourReport(hour=8, taxis=2, average_metres=200.0, cents=500)" in told
    assert "HourReport(hour=9, taxis=1, average_metres=400.0, cents=1600)" in told
    assert told.endswith("the schema allows give the same: True\n")
