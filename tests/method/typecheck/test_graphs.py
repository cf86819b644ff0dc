"""Typed operators judged: proved, tested, or refuted with two inputs that their type does not tell apart."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import streamtight.program.operators as ops
from streamtight.method.typecheck.graphs import typecheck_graph, typecheck_transformer
from streamtight.stream.event import Event, Kind
from streamtight.stream.trace import Trace
from streamtight.verdict import Outcome, Strength

Value = Kind("Value", key=int, at=int)
COUNTER = itertools.count()


def unordered(name: str = "totals", **options: Any) -> ops.KeyedUnordered:
    given: dict[str, Any] = {
        "takes": ops.U(Value),
        "gives": ops.U(Value),
        "key": "key",
        "summary": lambda v: v.at,
        "identity": 0,
        "combine": lambda a, b: a + b,
        "initial_state": 0,
        "update_state": lambda state, at: state + at,
        "on_marker": lambda state, key, marker, emit: emit(Value(key, state)),
    }
    return ops.KeyedUnordered(name, **{**given, **options})


def ordered(name: str = "steps", **options: Any) -> ops.KeyedOrdered:
    def step(state: int, value: Event, emit: ops.Emit) -> int:
        emit(Value(value.key, value.at - state))
        return value.at

    given = {"takes": ops.O("key", Value), "gives": ops.O("key", Value), "initial_state": 0, "on_item": step}
    return ops.KeyedOrdered(name, **{**given, **options})


def test_a_graph_of_operators_that_obey_is_proved() -> None:
    graph = ops.Graph(
        ops.Inlet("in", ops.U(Value))
        >> unordered()
        >> ops.Sort("sort", ops.U(Value), key="key", by="at")
        >> ordered()
        >> ops.Outlet("out")
    )

    verdict = typecheck_graph(graph)

    assert verdict.holds
    assert verdict.scope.strength is Strength.PROVED
    assert verdict.claim == "totals, sort and steps give equivalent outputs for equivalent inputs"


def test_what_cannot_be_read_is_tested_and_says_so() -> None:
    def step(state: dict[int, int], value: Event, emit: ops.Emit) -> dict[int, int]:
        emit(Value(value.key, len(state)))
        return {**state, value.at: 1}

    verdict = typecheck_graph(ordered(initial_state={}, on_item=step))

    assert verdict.holds
    assert verdict.scope.strength is Strength.TESTED
    assert "steps was tested" in verdict.method


def test_an_operator_that_never_gives_anything_is_not_judged_by_tests() -> None:
    verdict = typecheck_graph(ordered(initial_state={}, on_item=lambda s, v, emit: {**s, v.at: 1}))

    assert verdict.outcome is Outcome.UNDECIDED
    assert "no output" in str(verdict.reason)


WRONG: dict[str, tuple[Any, str]] = {
    "the last value wins": (unordered(combine=lambda a, b: b), "ORDER_MATTERS"),
    "a grouping matters": (unordered(combine=lambda a, b: a + b + 1), "GROUPING_MATTERS"),
    "a key is lost": (
        ordered(on_item=lambda s, v, emit: emit(Value(0, v.at)) or s),
        "TYPE_BROKEN",
    ),
    "it counts over all keys": (
        ops.Stateless(
            "numbered",
            takes=ops.U(Value),
            gives=ops.U(Value),
            on_item=lambda v, emit: emit(Value(v.key, next(COUNTER))),
        ),
        "NOT_A_FUNCTION",
    ),
}


@pytest.mark.parametrize("name", list(WRONG))
def test_a_broken_law_is_shown_by_two_inputs_that_the_type_does_not_tell_apart(name: str) -> None:
    operator, finding = WRONG[name]

    verdict = typecheck_graph(operator)

    assert verdict.fails
    found = verdict.counterexample
    assert found is not None
    assert found.finding == finding
    assert found.failing_reruns == found.reruns == 3
    assert len(str(found.table).splitlines()) <= 8  # small enough to read


def test_the_lines_of_the_replay_show_two_outputs_that_are_not_equivalent() -> None:
    import streamtight as tight

    operator = unordered("last", combine=lambda a, b: b)
    found = typecheck_graph(operator).counterexample
    assert found is not None
    printed: list[list[Event]] = []

    exec(
        found.replay, {"tight": tight, "last": operator, "Value": Value, "Marker": ops.Marker, "print": printed.append}
    )

    one, other = (Trace(events, operator.gives) for events in printed)
    assert one != other


def test_floats_that_differ_in_their_last_digits_are_no_difference() -> None:
    Price = Kind("Price", key=int, euros=float)  # noqa: N806 - a kind
    total = unordered(
        takes=ops.U(Price),
        gives=ops.U(Price),
        summary=lambda v: v.euros / 3,
        identity=0.0,
        initial_state=0.0,
        on_marker=lambda state, key, marker, emit: emit(Price(key, state)),
    )

    verdict = typecheck_graph(total)

    assert verdict.holds
    assert "floats are real numbers" in verdict.assumptions


# -- transformers ----------------------------------------------------------------------------------------------------


def bags(**options: Any) -> Any:
    from streamtight.program.transformer_forms import Relational
    from streamtight.stream.schema import Bag

    return Relational("bags", takes=Bag(Value), gives=Bag(Value), **options)


def test_a_transformer_that_sums_up_a_bag_holds_on_what_was_tried() -> None:
    verdict = typecheck_transformer(
        bags(closed=lambda x, items: (len(items), [Value(0, sum(item.at for item in items))]))
    )

    assert verdict.holds
    assert verdict.scope.strength is Strength.TESTED
    assert "do not depend on the order" in verdict.method


def test_a_transformer_that_takes_the_last_item_is_refuted_with_two_orders() -> None:
    verdict = typecheck_transformer(bags(closed=lambda x, items: (None, list(items[-1:]))))

    assert verdict.fails
    assert verdict.counterexample is not None
    assert verdict.counterexample.finding == "ORDER_MATTERS"


def test_a_transformer_that_takes_back_what_it_gave_is_refuted() -> None:
    verdict = typecheck_transformer(bags(open=lambda x, items: [Value(0, len(items))]))

    assert verdict.fails
    assert verdict.counterexample is not None
    assert verdict.counterexample.finding == "TYPE_BROKEN"


def test_values_near_the_numbers_of_the_code_are_tried() -> None:
    from streamtight.program.transformer_forms import Relational
    from streamtight.stream.schema import Bag

    capped = Relational.incremental(
        "capped",
        takes=Bag(Value),
        gives=Bag(Value),
        init=lambda x: 0,
        add=lambda total, item: min(total + item.at, 1000),
        fin=lambda total: (total, [Value(0, total)]),
    )

    assert typecheck_transformer(capped).fails


def test_a_function_that_is_known_to_vary_is_not_called_consistent() -> None:
    import random

    varied = ops.Stateless(
        "varied",
        takes=ops.U(Value),
        gives=ops.U(Value),
        on_item=lambda item, emit: emit(item) if random.random() < 0.99999999 else None,
    )

    verdict = typecheck_graph(varied)

    assert verdict.undecided
    assert "random" in str(verdict.reason)


def test_an_emit_that_is_kept_is_noticed() -> None:
    kept: list[Any] = []

    def keeping(item: Event, emit: ops.Emit) -> None:
        kept.append(emit)
        kept[0](item)

    verdict = typecheck_graph(ops.Stateless("kept", takes=ops.U(Value), gives=ops.U(Value), on_item=keeping))

    assert not verdict.holds


def test_a_key_that_is_not_kept_is_refused_when_it_is_run() -> None:
    from streamtight.errors import SchemaError

    lost = ordered(on_item=lambda s, v, emit: emit(Value(0, v.at)) or s)
    graph = ops.Graph(ops.Inlet("in", ops.O("key", Value)) >> lost >> ops.Outlet("out"))

    with pytest.raises(SchemaError, match="with the key that it was given, 1"):
        graph.run([Value(1, 2)])
