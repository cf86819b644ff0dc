"""The second engine against plain search: the same verdict, the same length, and every violation replayed."""

from __future__ import annotations

import itertools
import operator
import random
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import pytest
from random_terms import RandomTerms

from streamtight.errors import UnsupportedError
from streamtight.method.explore.build import World, model_of
from streamtight.program.limits import Integers, Limits, modulo, whole
from streamtight.program.model import (
    BOOL,
    Choice,
    Domain,
    Model,
    Range,
    Stop,
    Symbols,
    Table,
    Term,
    Terms,
    Value,
    Variable,
    evaluate,
)
from streamtight.program.pipeline import Pipeline
from streamtight.program.processor import (
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Freeze,
    Group,
    Insert,
    Last,
    Passthrough,
    Processor,
    Slice,
    Trim,
    TurnInto,
    Window,
    is_even,
)
from streamtight.solver.gates import FALSE
from streamtight.solver.pdr import Proof
from streamtight.solver.sat import Safe, Unknown, Unsafe, search
from streamtight.solver.transitions import Clock, Solver, merged, new_solver, system_of

pytest.importorskip("pysat")

MOST_STATES = 600

State = tuple[Value, ...]


# -- the slow and obvious way ----------------------------------------------------------------------------------------


def steps_from(model: Model, state: State) -> Iterator[tuple[dict[str, Value], State]]:
    """All steps that can be made in a state: the values during the step, and the state after it."""
    for chosen in itertools.product(*(choice.domain.values for choice in model.choices.values())):
        values = {**dict(zip(model.variables, state, strict=True)), **dict(zip(model.choices, chosen, strict=True))}
        if evaluate(model.allowed, values) and not any(evaluate(stop.when, values) for stop in model.stops):
            after = {name: evaluate(each.after, values) for name, each in model.variables.items()}
            for name, value in after.items():
                assert value in model.variables[name].domain.values, f"{name} = {value!r} leaves its domain"
            yield values, tuple(after.values())


def reached_states(model: Model) -> dict[State, list[dict[str, Value]]]:
    """All states that are reached, those that are reached sooner first, with the values during each step from there.

    How many steps they need is one of the values, `steps`.
    """
    first = tuple(model.first().values())
    reached: dict[State, list[dict[str, Value]]] = {}
    waiting = deque([(first, 1)])
    known = {first}
    while waiting:
        state, steps = waiting.popleft()
        reached[state] = []
        for values, after in steps_from(model, state):
            reached[state].append({**values, "steps": steps})
            if after not in known:
                known.add(after)
                waiting.append((after, steps + 1))
        if len(known) > MOST_STATES:
            pytest.skip("too many states to be searched so")
    return reached


def shortest_by_search(reached: Mapping[State, Sequence[Mapping[str, Value]]], bad: Term) -> int | None:
    """The number of steps of a shortest run to a violation. None if there is none."""
    return next((values["steps"] for each in reached.values() for values in each if evaluate(bad, values)), None)


def assert_is_a_run_to_a_violation(model: Model, bad: Term, choices: list[dict[str, Value]]) -> None:
    state = model.first()
    for number, chosen in enumerate(choices, start=1):
        assert set(chosen) == set(model.choices)
        for name, value in chosen.items():
            assert value in model.choices[name].domain.values
        values = {**state, **chosen}
        assert evaluate(model.allowed, values)
        assert not any(evaluate(stop.when, values) for stop in model.stops)
        assert bool(evaluate(bad, values)) == (number == len(choices))  # else it would not be a shortest one
        state = {name: evaluate(each.after, values) for name, each in model.variables.items()}


def assert_engines_agree(model: Model, *questions: Term) -> None:
    reached = reached_states(model)
    for bad in questions:
        assert_engine_finds(shortest_by_search(reached, bad), model, bad)


def assert_engine_finds(wanted: int | None, model: Model, bad: Term) -> None:
    found = search(model, bad, seconds=60)
    if wanted is None:
        assert isinstance(found, Safe), found
    else:
        assert isinstance(found, Unsafe), found
        assert found.is_shortest
        assert len(found.choices) == wanted
        assert_is_a_run_to_a_violation(model, bad, found.choices)


# -- models drawn by chance ------------------------------------------------------------------------------------------

SMALL: list[Domain] = [
    Range(0, 2),
    Range(-2, 1),
    Range(3, 5),
    Range(-5, -4),
    BOOL,
    BOOL,
    Symbols(("red", "green", "blue")),
]


def random_model(rng: random.Random) -> tuple[Model, Term]:
    """Variables, choices, what is allowed and where runs stop: all by chance."""
    terms = Terms()
    variables = {f"v{place}": rng.choice(SMALL) for place in range(rng.randint(1, 4))}
    choices = {f"c{place}": rng.choice(SMALL) for place in range(rng.randint(0, 2))}
    drawn = RandomTerms(rng, terms, {**variables, **choices})

    def becomes(domain: Domain) -> Term:
        match domain:
            case Range():
                return terms.fit(drawn.number(rng.randint(0, 2)), Integers(domain.low, domain.high, rng.random() < 0.7))
            case Symbols():
                table = Table("paint", lambda value: value if value in domain.values else "green", domain, "red")
                return terms.call(table, drawn.truth(1), drawn.symbol(2))
        return drawn.truth(rng.randint(0, 2))

    def mostly_true() -> Term:
        return terms.or_(drawn.truth(2), drawn.truth(2), drawn.truth(1)) if rng.random() < 0.6 else terms.true

    model = Model(
        terms,
        {
            name: Variable(name, domain, rng.choice(domain.values), becomes(domain), is_data=True)
            for name, domain in variables.items()
        },
        {name: Choice(name, domain) for name, domain in choices.items()},
        mostly_true(),
        stops=tuple(Stop("RAISES", "here", terms.not_(mostly_true())) for _ in range(rng.randint(0, 2))),
    )
    return model, terms.and_(*(drawn.truth(2) for _ in range(rng.randint(1, 4))))


@pytest.mark.parametrize("seed", range(25))
def test_random_models_have_the_verdict_that_search_gives(seed: int) -> None:
    for number in range(12):
        assert_engines_agree(*random_model(random.Random(f"model {seed} {number}")))


def random_counters(rng: random.Random) -> Model:
    """Variables that count, with steps that depend on each other: models with long runs."""
    terms = Terms()
    domains: dict[str, Domain] = {
        f"v{place}": rng.choice([Range(0, 4), Range(-3, 2), Range(0, 7), Range(2, 4), BOOL])
        for place in range(rng.randint(2, 3))
    }
    choices = {"c": rng.choice([BOOL, Range(0, 2)])} if rng.random() < 0.7 else {}
    drawn = RandomTerms(rng, terms, {**domains, **choices})
    variables = {}
    for name, domain in domains.items():
        before = terms.variable(name, domain)
        if isinstance(domain, Range):
            step = rng.choice([terms.constant(1), terms.constant(-2), drawn.number(0)])
            after = terms.fit(terms.add(before, step), Integers(domain.low, domain.high, rng.random() < 0.8))
        else:
            after = terms.not_(before)
        variables[name] = Variable(
            name, domain, rng.choice(domain.values), terms.choose(drawn.truth(1), after, before), is_data=False
        )
    return Model(
        terms,
        variables,
        {name: Choice(name, domain) for name, domain in choices.items()},
        terms.or_(drawn.truth(1), drawn.truth(1)) if rng.random() < 0.5 else terms.true,
        stops=(Stop("RAISES", "here", terms.and_(drawn.truth(1), drawn.truth(1))),) if rng.random() < 0.5 else (),
    )


def random_target(rng: random.Random, model: Model) -> Term:
    """A state of which it is hard to say whether it is reached: late or never."""
    terms = model.terms
    reached = reached_states(model)
    every = list(itertools.product(*(each.domain.values for each in model.variables.values())))
    never = [state for state in every if state not in reached]
    late = list(reached)[-2:]
    target = rng.choice(never if never and rng.random() < 0.5 else late)
    parts = [
        terms.equal(terms.variable(each.name, each.domain), terms.constant(value))
        for each, value in zip(model.variables.values(), target, strict=True)
    ]
    return terms.and_(*(rng.sample(parts, len(parts) - 1) if rng.random() < 0.3 else parts))


@pytest.mark.parametrize("seed", range(25))
def test_states_that_are_reached_late_or_never_are_told_apart(seed: int) -> None:
    for number in range(8):
        rng = random.Random(f"target {seed} {number}")
        model = random_counters(rng)

        assert_engines_agree(model, random_target(rng, model))


# -- pipelines drawn by chance ---------------------------------------------------------------------------------------


def twice_less_one(x: int) -> int:
    return {0: 0, 1: 1}.get(x, 2 * x - 1)


def random_pipeline(rng: random.Random) -> Pipeline:
    """A pipeline of all sorts of boxes: each new one takes its inputs from pipes that are there."""
    inputs: dict[str, object] = {"a": int, **({"b": rng.choice([int, bool])} if rng.random() < 0.3 else {})}
    kinds = {name: "number" if given is int else "truth" for name, given in inputs.items()}
    boxes: dict[str, object] = {}
    arrows: list[str] = []
    unused = set(inputs)

    def pick(kind: str) -> str | None:
        fitting = [pipe for pipe, has in kinds.items() if has == kind]
        fresh = [pipe for pipe in fitting if pipe in unused]
        return rng.choice(fresh if fresh and rng.random() < 0.7 else fitting) if fitting else None

    def add(name: str, box: object, sources: list[str], gives: list[str]) -> None:
        boxes[name] = box
        for place, source in enumerate(sources):
            unused.discard(source)
            arrows.append(f"{source} -> {name}" + (f".{place}" if len(sources) > 1 else ""))
        for place, kind in enumerate(gives):
            pipe = f"{name}.{place}" if len(gives) > 1 else name
            kinds[pipe] = kind
            unused.add(pipe)

    sum_ = Cumulate(operator.add)
    inner = Pipeline.wired("in -> t; in -> s; t -> p.0; s -> p.1; p -> out", t=Trim(1), s=sum_, p=Apply(operator.sub))
    for place in range(rng.randint(1, 4)):
        name = f"x{place}"
        kind = rng.choice(list(kinds.values()))
        source = pick(kind)
        assert source is not None
        if kind == "number":
            box = rng.choice(
                [
                    Passthrough(),
                    Trim(rng.randint(1, 2)),
                    CountDecimate(rng.randint(2, 3)),
                    Insert(1),
                    Insert(0, 1),
                    Freeze(),
                    Last(),
                    TurnInto(1),
                    Cumulate(rng.choice([operator.add, operator.mul])),
                    Cumulate(max, start=0),
                    Window(sum_, 2),
                    Window(CountDecimate(2), 2),
                    Window(Window(sum_, 2), 2),
                    Slice(sum_, by=is_even),
                    Group(inner),
                    Apply(twice_less_one),
                    Apply(lambda x: 3 // (x - 1)),
                ]
            )
            if rng.random() < 0.6:
                add(name, box, [source], ["number"])
            else:
                other = pick("number")
                control = pick("truth")
                options = [
                    (Apply(operator.add), [source, other], ["number"]),
                    (Apply(operator.sub), [source, other], ["number"]),
                    (Apply(operator.mul), [source, other], ["number"]),
                    (Apply(operator.le), [source, other], ["truth"]),
                    (Apply(is_even), [source], ["truth"]),
                    (Fork(2), [source], ["number", "number"]),
                    (Slice(Trim(1)), [source, other], ["number"]),
                ]
                if control is not None:
                    options.append((Filter(), [source, control], ["number"]))
                add(name, *rng.choice(options))  # type: ignore[arg-type]
        else:
            add(name, rng.choice([Apply(operator.not_), Trim(1), Insert(True), Freeze()]), [source], ["truth"])
    outputs = {f"out{place}": pipe for place, pipe in enumerate(sorted(unused))}
    arrows += [f"{pipe} -> {output}" for output, pipe in outputs.items()]
    return Pipeline.wired("; ".join(arrows), takes=inputs, gives=tuple(outputs), **boxes)  # type: ignore[arg-type]


def random_world(rng: random.Random, pipeline: Pipeline) -> World:
    size = rng.randint(2, 3)
    ports = [pipeline.input_name(port) for port in pipeline.feeds]
    return World(
        Limits(
            queue=rng.randint(1, 2),
            full=rng.choice(["stop", "drop"]),
            integers=modulo(size) if rng.random() < 0.6 else whole(rng.randint(-1, 0), size - 1),
        ),
        pauses=rng.random() < 0.5,
        together=rng.random() < 0.3,
        ends=rng.random() < 0.3,
        resets=rng.random() < 0.2,
        leaks=tuple(rng.sample(ports, 1)) if rng.random() < 0.2 else (),
    )


def random_question(rng: random.Random, model: Model) -> Term:
    """What must not be: something about one or two pipes, or a queue, or a state."""
    terms = model.terms
    parts: list[Term] = []
    for signal in rng.choices(list(model.pipes.values()), k=rng.randint(1, 2)):
        wanted = terms.constant(rng.choice(signal.value.domain.values))
        parts.append(signal.present if rng.random() < 0.7 else terms.not_(signal.present))
        parts.append(terms.equal(signal.value, wanted))
    if model.queues and rng.random() < 0.3:
        queue = rng.choice(list(model.queues.values()))
        parts.append(terms.equal(queue.length, terms.constant(queue.places)))
    if model.variables and rng.random() < 0.5:
        variable = rng.choice(list(model.variables.values()))
        wanted = terms.constant(rng.choice(variable.domain.values))
        parts.append(terms.equal(terms.variable(variable.name, variable.domain), wanted))
    return terms.and_(*parts)


@pytest.mark.parametrize("seed", range(60))
def test_random_pipelines_have_the_verdict_that_search_gives(seed: int) -> None:
    rng = random.Random(f"pipeline {seed}")
    pipeline = random_pipeline(rng)
    model = model_of(pipeline, random_world(rng, pipeline))

    assert_engines_agree(model, *(random_question(rng, model) for _ in range(4)))


def glucose() -> Solver:
    return new_solver("glucose4")


# -- each way alone --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_merged", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_proof_needs_no_help_and_its_violations_are_runs(seed: int, is_merged: bool) -> None:
    for number in range(8):
        rng = random.Random(f"alone {seed} {number}")
        model = random_counters(rng)
        bad = random_target(rng, model)
        wanted = shortest_by_search(reached_states(model), bad)
        clock = Clock(60)
        system, choices = system_of(model, bad, glucose, clock)
        proof = Proof(merged(system, glucose, clock) if is_merged else system, "glucose4", clock)

        for _ in proof.work():
            clock.look()

        assert proof.proved == (wanted is None)
        if wanted is not None:
            assert proof.steps < wanted <= len(proof.violation)
            state = model.first()
            for step in proof.violation:
                values = {**state, **choices.read(step)}
                assert evaluate(model.allowed, values)
                assert not any(evaluate(stop.when, values) for stop in model.stops)
                state = {name: evaluate(each.after, values) for name, each in model.variables.items()}
            assert evaluate(bad, values)


def test_a_proof_does_not_go_through_states_in_which_nothing_is_allowed() -> None:
    terms = Terms()
    domain = Range(0, 3)
    count, gate = terms.variable("count", domain), terms.variable("gate", BOOL)
    model = Model(
        terms,
        {
            "count": Variable("count", domain, 0, terms.add(count, terms.constant(1)), is_data=False),
            "gate": Variable("gate", BOOL, False, gate, is_data=False),
        },
        {},
        terms.or_(gate, terms.not_(terms.equal(count, terms.constant(1)))),
    )
    bad = terms.equal(count, terms.constant(2))
    clock = Clock(60)
    # Not merged: else it would be known that the gate is never open.
    proof = Proof(system_of(model, bad, glucose, clock)[0], "glucose4", clock)

    for _ in proof.work():
        clock.look()

    assert proof.proved


@pytest.mark.parametrize("seed", range(10))
def test_bits_that_are_merged_are_the_same_in_all_states_that_are_reached(seed: int) -> None:
    rng = random.Random(f"merged {seed}")
    one = random_counters(rng)
    twins = {f"{name} too": each for name, each in one.variables.items()}
    terms = one.terms
    renamed = {name: terms.variable(f"{name} too", each.domain) for name, each in one.variables.items()}
    model = Model(
        terms,
        {
            **one.variables,
            **{
                name: Variable(name, each.domain, each.first, replaced(terms, each.after, renamed), is_data=False)
                for name, each in twins.items()
            },
        },
        one.choices,
        one.allowed,
        stops=one.stops,
    )
    unlike = terms.or_(
        *(
            terms.not_(terms.equal(terms.variable(name, each.domain), renamed[name]))
            for name, each in one.variables.items()
        )
    )
    clock = Clock(60)
    system, _ = system_of(model, unlike, glucose, clock)

    smaller = merged(system, glucose, clock)

    assert smaller.bad == FALSE
    assert_engines_agree(model, unlike)


def replaced(terms: Terms, term: Term, by: dict[str, Term]) -> Term:
    """A term with other variables."""
    if term.op == "variable":
        return by.get(term.value, term)
    arguments = [replaced(terms, each, by) for each in term.arguments]
    match term.op:
        case "constant":
            return term
        case "call":
            return terms.call(term.value, *arguments)
        case "not" | "and" | "or":
            return getattr(terms, f"{term.op}_")(*arguments)
    return getattr(terms, term.op)(*arguments)


# -- what is known of larger models ----------------------------------------------------------------------------------


def window_and_chain(width: int) -> Pipeline:
    """The sum of a window, and the same by a chain of sums."""
    pipes = [f"in -> w -> left; in -> f; a{width - 1} -> right"]
    boxes = {"w": Window(Cumulate(operator.add), width), "f": Fork(width)}
    for place in range(1, width):
        boxes |= {f"t{place}": Trim(place), f"a{place}": Apply(operator.add)}
        before = "f.0" if place == 1 else f"a{place - 1}"
        pipes.append(f"{before} -> a{place}.0; f.{place} -> t{place} -> a{place}.1")
    return Pipeline.wired("; ".join(pipes), gives=("left", "right"), **boxes)


def first_and_third(name: str, out: str) -> tuple[str, dict[str, Processor]]:
    pipes = f"in -> f{name}; f{name}.0 -> m{name}.0; f{name}.1 -> d{name} -> m{name}.1; m{name} -> {out}"
    return pipes, {f"f{name}": Fork(2), f"d{name}": CountDecimate(3), f"m{name}": Apply(operator.mul)}


def unlike_step_by_step(model: Model) -> Term:
    terms, left, right = model.terms, model.pipes["left"], model.pipes["right"]
    same_value = terms.or_(terms.not_(left.present), terms.equal(left.value, right.value))
    return terms.not_(terms.and_(terms.equal(left.present, right.present), same_value))


def world(numbers: int, queue: int, *, pauses: bool = False) -> World:
    return World(Limits(queue=queue, full="drop", integers=modulo(numbers)), pauses=pauses)


@pytest.mark.parametrize(("width", "numbers"), [(3, 256), (3, 100), (5, 8)])
@pytest.mark.parametrize("pauses", [False, True])
def test_a_window_and_a_chain_of_sums_are_the_same(width: int, numbers: int, pauses: bool) -> None:
    model = model_of(window_and_chain(width), world(numbers, width, pauses=pauses))

    assert isinstance(search(model, unlike_step_by_step(model)), Safe)


def test_a_window_that_is_one_wider_is_told_apart_as_soon_as_it_can_be() -> None:
    pipes = "in -> v -> left; in -> w -> right"
    sum_ = Cumulate(operator.add)
    pipeline = Pipeline.wired(pipes, gives=("left", "right"), v=Window(sum_, 6), w=Window(sum_, 7))
    model = model_of(pipeline, world(16, 1))

    found = search(model, unlike_step_by_step(model))

    assert isinstance(found, Unsafe)
    assert len(found.choices) == 6


def test_product_of_first_and_third_is_like_itself() -> None:
    (one, boxes), (other, more) = first_and_third("1", "left"), first_and_third("2", "right")
    pipeline = Pipeline.wired(f"{one}; {other}", gives=("left", "right"), **boxes, **more)
    model = model_of(pipeline, world(16, 6))

    assert isinstance(search(model, unlike_step_by_step(model)), Safe)


@pytest.mark.parametrize("pauses", [False, True])
def test_a_queue_of_64_is_full_after_96_pushes(pauses: bool) -> None:
    pipes, boxes = first_and_third("", "out")
    model = model_of(Pipeline.wired(pipes, **boxes), world(16, 64, pauses=pauses))
    terms = model.terms
    full = terms.or_(*(terms.equal(each.length, terms.constant(each.places)) for each in model.queues.values()))

    found = search(model, full)

    assert isinstance(found, Unsafe)
    assert len(found.choices) == 96
    assert_is_a_run_to_a_violation(model, full, found.choices)


# -- limits ----------------------------------------------------------------------------------------------------------


def counter(most: int) -> tuple[Model, Term]:
    """A counter that may pause, and the term for what it counts."""
    terms = Terms()
    domain = Range(0, most)
    count = terms.variable("count", domain)
    tick = terms.variable("tick", BOOL)
    is_on = terms.and_(tick, terms.less(count, terms.constant(most)))
    after = terms.choose(is_on, terms.add(count, terms.constant(1)), count)
    variable = Variable("count", domain, 0, after, is_data=False)
    return Model(terms, {"count": variable}, {"tick": Choice("tick", BOOL)}, terms.true), count


def hard() -> tuple[Model, Term]:
    """Two numbers whose product is a product of large primes: no solver has an answer soon."""
    terms = Terms()
    domain = Range(0, 2**40 - 1)
    a, b = (terms.variable(name, domain) for name in "ab")
    wanted = terms.constant(999_999_999_989 * 1_099_511_627_689)
    is_found = terms.and_(terms.equal(terms.multiply(a, b), wanted), terms.less(terms.constant(1), a), terms.less(a, b))
    model = Model(terms, {}, {name: Choice(name, domain) for name in "ab"}, terms.true)
    return model, is_found


def test_time_is_kept_and_nothing_is_claimed() -> None:
    began = time.monotonic()

    found = search(*hard(), seconds=1)

    assert time.monotonic() - began < 4
    assert found == Unknown(0, "1 seconds were not enough")


def test_runs_of_no_more_steps_than_wanted_are_asked_about() -> None:
    model, count = counter(20)
    bad = model.terms.equal(count, model.terms.constant(9))

    assert search(model, bad, most_steps=9) == Unknown(9, "runs of more than 9 steps were not asked about")
    assert len(search(model, bad, most_steps=10).choices) == 10  # type: ignore[union-attr]


def test_a_table_that_is_too_large_is_unknown() -> None:
    model, count = counter(700)
    terms = model.terms
    table = Table("far", lambda a, b: a == b, BOOL, default=False)

    found = search(model, terms.call(table, terms.true, count, terms.add(count, terms.constant(1))))

    assert found == Unknown(0, "far would be a table of 491,401 values; 65,536 are the most")


def test_a_model_in_which_every_run_stops_is_safe() -> None:
    model, count = counter(20)
    terms = model.terms
    stops = (Stop("RAISES", "here", terms.at_most(terms.constant(3), count)),)
    stopping = Model(terms, model.variables, model.choices, terms.variable("tick", BOOL), stops=stops)

    assert isinstance(search(stopping, terms.equal(count, terms.constant(4))), Safe)


def test_nothing_is_judged_in_the_step_that_stops_a_run() -> None:
    model, count = counter(20)
    terms = model.terms
    three = terms.equal(count, terms.constant(3))
    stopping = Model(terms, model.variables, model.choices, terms.true, stops=(Stop("RAISES", "here", three),))

    assert isinstance(search(stopping, three), Safe)
    assert isinstance(search(model, three), Unsafe)


def test_a_value_that_leaves_its_domain_is_unknown_and_not_cut_off() -> None:
    model, count = counter(8)
    terms = model.terms
    narrow = Variable("count", Range(0, 3), 0, model.variables["count"].after, is_data=False)
    wrong = Model(terms, {"count": narrow}, model.choices, terms.true)

    never = search(wrong, terms.equal(count, terms.constant(8)))
    sooner = search(wrong, terms.equal(count, terms.constant(3)))

    assert never == Unknown(3, "after 4 steps, a variable may have a value outside its domain")
    assert isinstance(sooner, Unsafe)
    assert len(sooner.choices) == 4


def test_domains_that_are_kept_for_a_reason_that_one_step_does_not_show_are_proved() -> None:
    terms = Terms()
    small, large = Range(0, 5), Range(0, 9)
    a, b = terms.variable("a", small), terms.variable("b", large)
    tick = terms.variable("tick", BOOL)
    five, one = terms.constant(5), terms.constant(1)
    # Both count together, but only one looks where it goes.
    on = terms.and_(tick, terms.less(b, five))
    model = Model(
        terms,
        {
            "a": Variable("a", small, 0, terms.choose(on, terms.add(a, one), a), is_data=False),
            "b": Variable("b", large, 0, terms.choose(on, terms.add(b, one), b), is_data=False),
        },
        {"tick": Choice("tick", BOOL)},
        terms.true,
    )

    assert_engines_agree(model, terms.less(a, b), terms.equal(a, five), terms.less(five, b))


def test_what_no_run_by_chance_comes_to_is_found_all_the_same() -> None:
    """Bits that look like constants, or the same, until a choice comes that is one in a million."""
    terms = Terms()
    numbers = Range(0, 2**20 - 1)
    needle = terms.equal(terms.variable("c", numbers), terms.constant(123_456))
    found, later, never = (terms.variable(name, BOOL) for name in ("found", "later", "never"))
    afters = {"found": terms.or_(found, needle), "later": terms.or_(later, found), "never": terms.and_(never, needle)}
    model = Model(
        terms,
        {name: Variable(name, BOOL, False, after, is_data=False) for name, after in afters.items()},
        {"c": Choice("c", numbers)},
        terms.true,
    )

    assert len(search(model, found).choices) == 2  # type: ignore[union-attr]
    assert len(search(model, later).choices) == 3  # type: ignore[union-attr]
    assert len(search(model, terms.and_(found, terms.not_(later))).choices) == 2  # type: ignore[union-attr]
    assert isinstance(search(model, never), Safe)


def test_a_model_without_variables_and_choices_has_an_answer() -> None:
    terms = Terms()
    model = Model(terms, {}, {}, terms.true)

    assert search(model, terms.true) == Unsafe([{}])
    assert isinstance(search(model, terms.false), Safe)


def test_choices_that_make_no_difference_have_a_value_too() -> None:
    model, count = counter(3)
    more = {**model.choices, "color": Choice("color", Symbols(("red", "blue")))}
    wider = Model(model.terms, model.variables, more, model.terms.true)

    found = search(wider, model.terms.equal(count, model.terms.constant(1)))

    assert isinstance(found, Unsafe)
    assert [set(step) for step in found.choices] == [{"tick", "color"}] * 2


def test_the_same_question_has_the_same_answer() -> None:
    pipes, boxes = first_and_third("", "out")
    model = model_of(Pipeline.wired(pipes, **boxes), world(16, 8, pauses=True))
    terms, out = model.terms, model.pipes["out"]
    bad = terms.and_(out.present, terms.equal(out.value, terms.constant(9)))

    assert search(model, bad) == search(model, bad)


def test_a_missing_package_is_told_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pysat.solvers", None)
    model, count = counter(3)

    with pytest.raises(UnsupportedError, match=r'pip install "streamtight\[sat\]"'):
        search(model, model.terms.equal(count, model.terms.constant(1)))
