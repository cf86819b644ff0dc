"""`explore` against a search of everything: random pipelines, claims, formulas and worlds.

A test that fails prints the seed; `checked(kind, seed)` runs that case again.
"""

from __future__ import annotations

import operator
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import Any

import pytest
from pipeline_oracle import (
    FAILS,
    HOLDS,
    UNDECIDED,
    Explored,
    Found,
    Letter,
    Linear,
    Side,
    TooLarge,
    atoms_of,
    branching,
    explored,
    fronts_of,
    holds_at,
    limits_of,
    live,
    never_stops,
    nodes_of,
    safety,
    value_on_lasso,
)
from random_pipelines import (
    BOOL,
    INT,
    NAME,
    Draw,
    Node,
    World,
    random_atoms,
    random_branching,
    random_linear,
    random_world,
    written,
)

from streamtight import pipes
from streamtight.errors import FormulaError, PipelineError
from streamtight.method.explore.explore import explore_pipeline as explore
from streamtight.program.limits import Integers, Stopped, modulo
from streamtight.program.pipeline import Front, Pipeline
from streamtight.program.processor import NOTHING, Cumulate, Filter, Freeze, Insert, both
from streamtight.properties import claims
from streamtight.properties.branching import Branching, formula_of_text
from streamtight.verdict import Verdict

KINDS = (
    "never_stops",
    "no_full_queues",
    "live",
    "live_within",
    "stays_true",
    "same_steps",
    "same_sequence",
    "approximates",
    "linear",
    "branching",
)


@dataclass
class Case:
    """A question, and how the oracle answers it for these whole numbers."""

    pipeline: Pipeline
    world: World
    claim: Any
    answer: Callable[[Integers | None], Found]
    shows: Callable[[list[Front], int, Integers | None], bool]
    """Whether a run of these pushes, the last so many for ever, breaks the claim."""
    engine: str = "auto"
    is_safety: bool = False
    sides: tuple[Pipeline, ...] = ()


def case_of(kind: str, seed: int) -> Case | None:
    """The case of a seed; None if what was drawn makes no sense."""
    rng = random.Random(f"{kind} {seed}")
    world = random_world(rng)
    draw = Draw(rng, world.integers, with_last=world.ends, arithmetic=kind.startswith("same") and rng.random() < 0.4)
    takes = tuple(rng.choice((INT, INT, BOOL, NAME)) for _ in range(rng.choice((1, 1, 1, 2))))
    compares = kind in ("same_steps", "same_sequence", "approximates")
    outputs = rng.choice((1, 1, 2))
    gives = tuple(BOOL for _ in range(outputs)) if kind in ("approximates", "stays_true") else ()
    most = 3 if compares else 4
    try:
        pipeline, sorts = draw.pipeline_of(takes, 1, outputs, gives=gives, most=most)
        other = pipeline
        if compares and rng.random() < 0.7:
            other, _ = draw.pipeline_of(takes, 1, len(sorts), gives=sorts, most=most)
    except (PipelineError, RecursionError):
        return None
    if rng.random() < 0.15 and not compares:
        ports = [*map(pipeline.input_name, pipeline.feeds), *pipeline.outputs]
        world = replace(world, leaks=tuple(rng.sample(ports, min(2, len(ports)))))
    if rng.random() < 0.2 and pipeline.queues and not compares:
        world = replace(world, queue={name: rng.randint(0, 2) for name in pipeline.queues})
    if rng.random() < 0.25:
        world = replace(world, inputs=_few_values(rng, pipeline, world))
    if kind == "live" and rng.random() < 0.6:
        pipeline, sorts, world = _falls_silent(rng, draw, takes, world)
    made = _claim(kind, rng, pipeline, other, sorts, world)
    if made is None:
        return None
    engines = ["auto", "auto", "search", *(["sat"] if made.is_safety and find_spec("pysat") else [])]
    return replace(made, engine=rng.choice(engines))


def _falls_silent(
    rng: random.Random, draw: Draw, takes: tuple[str, ...], world: World
) -> tuple[Pipeline, tuple[str, ...], World]:
    """A pipeline with a filter that may close for ever."""
    inner, _ = draw.pipeline_of(takes, 1, gives=(rng.choice((INT, NAME)), BOOL), most=3)
    names = list(inner.inputs)
    arrows = [f"{name} -> g.{place}" if len(names) > 1 else f"{name} -> g" for place, name in enumerate(names)]
    latch = rng.choice((Cumulate(both), Freeze(), Cumulate(both), Insert(True)))
    made = Pipeline.wired(
        "; ".join([*arrows, "g.0 -> f.0; g.1 -> latch -> f.1; f -> out"]),
        takes=inner.inputs,
        g=inner,
        latch=latch,
        f=Filter(),
    )
    return made, (INT,), replace(world, leaks=(), queue=2 if isinstance(world.queue, dict) else world.queue)


def _few_values(rng: random.Random, pipeline: Pipeline, world: World) -> dict[str, tuple[Any, ...]]:
    name = rng.choice(list(pipeline.inputs))
    kind = pipeline.inputs[name]
    every = list(range(world.integers.low, world.integers.high + 1)) if kind is int else [False, True]
    if not isinstance(kind, type):
        every = list(kind)
    # Neighbours only: whole numbers with gaps between them are asked in a test of their own.
    first = rng.randrange(len(every))
    return {name: tuple(every[first : first + rng.randint(1, 2)])}


def _claim(
    kind: str,
    rng: random.Random,
    pipeline: Pipeline,
    other: Pipeline,
    sorts: tuple[str, ...],
    world: World,
) -> Case | None:
    one = (pipeline,)

    def steps(
        claim: Any,
        is_bad: Callable[[Letter], bool],
        happens: Callable[[Letter], bool] | None = None,
        sides: tuple[Pipeline, ...] = one,
        extra: Any = None,
    ) -> Case:
        def shows(fronts: list[Front], loop: int, integers: Integers | None) -> bool:
            run = letters(sides, world, integers, fronts, extra)
            return run is not None and len(run) == len(fronts) and bool(run) and is_bad(run[-1])

        return Case(
            pipeline,
            world,
            claim,
            lambda integers: safety(explored(sides, world, integers, extra=extra), is_bad, happens),
            shows,
            is_safety=True,
            sides=sides,
        )

    match kind:
        case "never_stops":

            def stops(fronts: list[Front], loop: int, integers: Integers | None) -> bool:
                run = letters(one, world, integers, fronts)
                before = letters(one, world, integers, fronts[:-1])
                return run is None and before is not None

            return Case(
                pipeline,
                world,
                claims.never_stops(),
                lambda integers: never_stops(explored(one, world, integers)),
                stops,
                is_safety=True,
            )
        case "no_full_queues":
            if not pipeline.queues or _has_inner_queues(pipeline):
                return None
            names = rng.sample(list(pipeline.queues), 1) if rng.random() < 0.3 else list(pipeline.queues)
            limits = limits_of(world, None)
            return steps(
                claims.no_full_queues(*names),
                lambda letter: any(letter.lengths[name] >= limits.places(name) for name in names),
            )
        case "live":
            pipe = rng.choice([*pipeline.outputs, *pipeline.pipes])

            def silent(fronts: list[Front], loop: int, integers: Integers | None) -> bool:
                return letters(one, world, integers, fronts) is not None

            return Case(
                pipeline,
                world,
                claims.live(pipe),
                lambda integers: live(explored(one, world, integers), pipe),
                silent,
            )
        case "live_within":
            pipe, within = rng.choice(list(pipeline.outputs)), rng.randint(1, 3)
            node: Node = ("G", _within(("atom", pipe), within))
            return _linear(pipeline, world, claims.live(pipe, within=within), node)
        case "stays_true":
            place = rng.choice([place for place, sort in enumerate(sorts) if sort == BOOL])
            pipe = list(pipeline.outputs)[place]
            return steps(claims.stays_true(pipe), lambda letter: letter[pipe] is False, lambda letter: pipe in letter)
        case "same_steps" | "approximates":
            claim = claims.same_steps(other) if kind == "same_steps" else claims.approximates(other)

            def pair(memory: Any, told: list[Letter], front: Front) -> tuple[Any, dict[str, Any]]:
                outs = [
                    [each[name] for name in side.outputs] for each, side in zip(told, (pipeline, other), strict=True)
                ]
                return None, {"pairs": tuple(zip(*outs, strict=True))}

            def differs(letter: Letter) -> bool:
                for left, right in letter["pairs"] or ():
                    if (left is NOTHING) != (right is NOTHING):
                        return True
                    if kind == "same_steps" and left != right:
                        return True
                    if kind == "approximates" and left is True and right is False:
                        return True
                return False

            return steps(
                claim,
                differs,
                lambda letter: any(event is not NOTHING for each in letter["pairs"] for event in each),
                (pipeline, other),
                pair,
            )
        case "same_sequence":
            places = limits_of(world, None).queue

            def in_turn(memory: Any, told: list[Letter], front: Front) -> tuple[Any, dict[str, Any]]:
                held = list(memory or [((), ())] * len(sorts))
                equal = []
                for place, names in enumerate(zip(pipeline.outputs, other.outputs, strict=True)):
                    waits = [
                        (*mine, each[name]) if name in each else mine
                        for mine, each, name in zip(held[place], told, names, strict=True)
                    ]
                    if all(waits):
                        equal.append(waits[0][0] == waits[1][0])
                        waits = [mine[1:] for mine in waits]
                    if any(len(mine) > (places or 0) for mine in waits):
                        raise Stopped("QUEUE_OVERFLOW", "joined", "one is too far ahead")
                    held[place] = tuple(waits)
                return tuple(held), {"equal": tuple(equal)}

            def outputs_differ(fronts: list[Front], loop: int, integers: Integers | None) -> bool:
                """However far one of them is ahead."""
                given = []
                for each in (pipeline, other):
                    run = letters((each,), world, integers, fronts)
                    if run is None:
                        return False
                    given.append([[letter[name] for letter in run if name in letter] for name in each.outputs])
                return any(
                    a != b for left, right in zip(*given, strict=True) for a, b in zip(left, right, strict=False)
                )

            made = steps(
                claims.same_sequence(other),
                lambda letter: "equal" in letter and False in letter["equal"],
                lambda letter: bool(letter["equal"]),
                (pipeline, other),
                in_turn,
            )
            return replace(made, shows=outputs_differ)
        case "linear":
            named = dict(zip(pipeline.outputs, sorts, strict=True))
            node = random_linear(rng, random_atoms(rng, pipeline, named, world.integers), rng.randint(1, 3))
            return _linear(pipeline, world, written(node), node)
        case "branching":
            named = dict(zip(pipeline.outputs, sorts, strict=True))
            node = random_branching(rng, random_atoms(rng, pipeline, named, world.integers), rng.randint(1, 3))
            if not any(op in repr(node) for op in ("'A", "'E")):
                return None

            def answer(integers: Integers | None) -> Found:
                graph = explored(one, world, integers)
                found = branching(nodes_of(graph, atoms_of(node)), node)
                return Found(found, _broken_at(graph, node, "AG") if found is FAILS else None, happened=False)

            def goes_on(fronts: list[Front], loop: int, integers: Integers | None) -> bool:
                """It does not stop, and shows the same in each round; the body of an AF never."""
                start = len(fronts) - loop
                run = letters(one, world, integers, [*fronts, *fronts[start:] * 4 * bool(loop)])
                if run is None:
                    return False
                told = [[holds_at(atom, letter) for atom in atoms_of(node)] for letter in run]
                try:
                    never = node[0] != "AF" or not any(_holds(node[1], letter) for letter in run)
                except KeyError:
                    never = True
                return never and all(
                    told[at] == told[start + (at - start) % loop] for at in range(start, len(run)) if loop
                )

            return Case(pipeline, world, written(node), answer, goes_on)
    raise AssertionError(kind)


def _within(node: Node, within: int) -> Node:
    return node if within == 1 else ("or", node, ("X", _within(node, within - 1)))


def _broken_at(graph: Explored, node: Node, always: str) -> int | None:
    """After how many pushes a formula about every single step can be broken; None for other formulas."""
    if node[0] != always:
        return None
    try:
        return safety(graph, lambda letter: not _holds(node[1], letter)).length
    except KeyError:
        return None


def _holds(node: Node, letter: Letter) -> bool:
    op, *parts = node
    if op == "atom":
        return holds_at(parts[0], letter)
    given = [_holds(part, letter) for part in parts]
    tests: dict[str, Callable[[], bool]] = {
        "not": lambda: not given[0],
        "and": lambda: all(given),
        "or": lambda: any(given),
        "->": lambda: not given[0] or given[1],
    }
    return tests[op]()


def _linear(pipeline: Pipeline, world: World, claim: Any, node: Node) -> Case:
    atoms = atoms_of(node)

    def answer(integers: Integers | None) -> Found:
        graph = explored((pipeline,), world, integers)
        nodes = nodes_of(graph, atoms)
        if Linear(nodes, node, chaos=False).is_broken():
            return Found(FAILS, _broken_at(graph, node, "G"), happened=False)
        return Found(UNDECIDED if Linear(nodes, node, chaos=True).is_broken() else HOLDS, happened=False)

    def shows(fronts: list[Front], loop: int, integers: Integers | None) -> bool:
        def word(count: int) -> list[frozenset[str]] | None:
            path = fronts[: len(fronts) - loop]
            run = letters((pipeline,), world, integers, [*path, *fronts[len(path) :] * count])
            if run is None:
                return None
            return [frozenset(atom for atom in atoms if holds_at(atom, letter)) for letter in run]

        if not loop:
            told = word(1)
            # Whatever comes, it stays broken: the same letters for ever, of each sort, and none of them.
            ends = [frozenset(atoms), frozenset[str](), *(frozenset([atom]) for atom in atoms)]
            return told is not None and not any(value_on_lasso(node, told, [end]) for end in ends)
        # Going round often enough, the pipeline itself comes to a state again, and then shows the same.
        turns = 60
        told = word(turns)
        if told is None:
            return False
        start = len(fronts) - loop
        rounds = [tuple(told[start + turn * loop : start + (turn + 1) * loop]) for turn in range(turns)]
        assert len(set(rounds)) == 1, "the loop does not show the same each time"
        return not value_on_lasso(node, told[:start], list(rounds[0]))

    return Case(pipeline, world, claim, answer, shows)


def _has_inner_queues(pipeline: Pipeline) -> bool:
    return any(hasattr(box, "inner") or hasattr(box, "pipeline") for box in pipeline.boxes.values())


def letters(
    sides: tuple[Pipeline, ...], world: World, integers: Integers | None, fronts: list[Front], extra: Any = None
) -> list[Letter] | None:
    """What a run showed; None if it stops."""
    system = Side(sides, limits_of(world, integers))
    state, memory, run = system.start(), None, []
    for front in fronts:
        try:
            state, told = system.push(state, front)
            more: dict[str, Any] = {}
            if extra is not None:
                memory, more = extra(None if front.resets else memory, told, front)
        except Stopped:
            return None
        run.append(Letter({**told[0].pipes, **more}, told[0].lengths))
    return run


def counterexample(verdict: Verdict) -> tuple[list[Front], int]:
    """The pushes of a counterexample as its replay line has them, and how many of them go on for ever."""
    found = verdict.counterexample
    assert found is not None
    line = next(line for line in found.replay.splitlines() if line.startswith("for push in "))
    call = line[line.index("pushes(") + 6 : -1]
    events = eval(f"given{call}", {"pipes": pipes, "given": lambda events, limits=None: events})  # noqa: S307 - our text
    loop = re.search(r"the last (?:(\d+) pushes|push) can go on", found.explanation)
    return events, 0 if loop is None else int(loop[1] or 1)


def allowed(fronts: list[Front], case: Case) -> bool:
    """Whether the world may bring these pushes."""
    has_ended = False
    for front in fronts:
        told = replace(front, leaks=frozenset()) if front.resets else front
        if told not in fronts_of((case.pipeline,), case.world, has_ended):
            return False
        has_ended |= front.ends
    return True


def wide_of(integers: Integers) -> Integers:
    """Whole numbers with room around a small domain that stands for all of them."""
    return Integers(min(-128, -4 * integers.size), max(127, 4 * integers.size), wraps=False)


def problem(case: Case) -> str | None:
    """What is wrong with what `explore` says; None if nothing is.

    A domain that is a number stands for all whole numbers: what is calculated has room, and a verdict must be right
    for numbers without end. `wrapped` is what the oracle says if numbers wrap around, `exact` what it says of numbers
    with room; None if that is too much for it.
    """
    stand_in, integers = isinstance(case.world.domain, int), case.world.integers
    try:
        wrapped = case.answer(integers)
    except TooLarge:
        return None
    exact: Found | None = wrapped
    if stand_in:
        try:
            exact = case.answer(wide_of(integers))
        except TooLarge:
            exact = None
    try:
        verdict = explore(case.pipeline, case.claim, engine=case.engine, seconds=20, **case.world.options())
    except (PipelineError, FormulaError) as error:
        return None if _is_refusal(error) else f"refused: {error}"
    answers = [each for each in (wrapped, exact) if each is not None]
    outcomes = {each.outcome for each in answers}
    told = f"{verdict.outcome.name} ({verdict.reason}; {verdict.scope}; {verdict.assumptions}); {wrapped}, {exact}"
    # The oracle follows no sequences that one side has far ahead, and asks formulas of runs without end alone.
    is_far = isinstance(case.claim, claims.SameSequence)
    if verdict.outcome is UNDECIDED and "vacuous" in (verdict.reason or ""):
        fine = (HOLDS in outcomes or (is_far and UNDECIDED in outcomes)) and not wrapped.happened
        return None if fine else f"vacuous? {told}"
    if verdict.outcome is FAILS:
        fronts, loop = counterexample(verdict)
        fronts = [each if isinstance(each, Front) else _front(each, case.pipeline) for each in fronts]
        if not allowed(fronts, case):
            return f"the world does not bring {fronts}: {told}"
        is_more = exact is None or (UNDECIDED in outcomes and (is_far or (not case.is_safety and not loop)))
        if FAILS not in outcomes and not is_more:
            return f"wrong FAILS: {told}"
        meant = [integers]
        if stand_in:
            meant = [None] if isinstance(case.claim, claims.NeverStops) else [None, wide_of(integers)]
        if not any(case.shows(fronts, loop, each) for each in meant):
            return f"no counterexample: {fronts} {loop}; {told}"
        lengths = [each.length for each in answers if each.length is not None and exact is not None]
        if lengths and len(fronts) not in lengths:
            return f"not the shortest, {len(fronts)} pushes: {told}"
        return None
    if verdict.outcome is HOLDS:
        proved = "proved" in str(verdict.scope)
        # That a number leaves the domain is no stop where the domain stands for all numbers.
        is_no_stop = stand_in and isinstance(case.claim, claims.NeverStops)
        if exact is not None and exact.outcome is FAILS and not is_no_stop:
            return f"wrong HOLDS: {told}"
        if exact is not None and HOLDS not in outcomes and not proved and not is_far:
            return f"wrong HOLDS, nobody knows: {told}"
        return _tried(case, None if stand_in or not integers.wraps else integers, proved) if case.is_safety else None
    if UNDECIDED in outcomes or exact is None or (stand_in and isinstance(case.claim, claims.NeverStops)):
        return None
    # What comes after a stop is not compared with what a formula still asks for.
    # What the solver alone cannot take in, such as a large table, it may leave open.
    # Nor is it told of numbers that stand for others that no number brings an event out.
    is_open = isinstance(case.claim, str) or "SAT solver found nothing wrong" in told or "no run does it with" in told
    return f"{'(imprecise) ' if is_open else ''}wrong UNDECIDED: {told}"


def _tried(case: Case, integers: Integers | None, proved: bool) -> str | None:
    """Long random runs with real whole numbers, which must not break what holds for all of them."""
    rng = random.Random(7)
    for _ in range(6):
        has_ended, fronts = False, []
        for _ in range(12):
            front = rng.choice(fronts_of((case.pipeline,), case.world, has_ended))
            if proved and not case.world.inputs and integers is None:
                front = replace(
                    front,
                    events=tuple(
                        rng.choice((rng.randint(-5, 5), rng.randint(-(10**9), 10**9))) if type(event) is int else event
                        for event in front.events
                    ),
                )
            fronts.append(front)
            has_ended |= front.ends
            if case.shows(fronts, 0, integers):
                return f"holds, but not for {fronts}"
    return None


def _front(given: Any, pipeline: Pipeline) -> Front:
    return Front(given if len(pipeline.inputs) > 1 else (given,))


_REFUSALS = (
    "needed values of one sort",
    "an exception, whatever it is given",
    "needed values inside the domain",
    "needed whole numbers in",
    "needed a Cumulate that comes back",
    "needed two values of one sort",
    "needed True or False on the second input",
    "needed two whole numbers",
)


def _is_refusal(error: Exception) -> bool:
    """Whether it is a question that cannot be asked, as random ones may be."""
    return any(each in str(error) for each in _REFUSALS)


def checked(kind: str, seed: int) -> str | None:
    """What is wrong in the case of a seed; None if nothing is, or if there is no such case."""
    case = case_of(kind, seed)
    return None if case is None else problem(case)


@pytest.mark.parametrize("kind", KINDS)
def test_explore_says_what_a_search_of_everything_says(kind):
    wrong = {seed: found for seed in range(15) if (found := checked(kind, seed)) and "(imprecise)" not in found}

    assert not wrong


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_explore_says_what_a_search_of_everything_says_of_many_more(kind):
    wrong = {seed: found for seed in range(1000, 2000) if (found := checked(kind, seed)) and "(imprecise)" not in found}

    assert not wrong


# -- what the oracle found, as small as it gets ----------------------------------------------------------------------

W = Pipeline.wired
OPAQUE = pipes.Apply(lambda x: bool(str(x)))


def box(made: Any, **options: Any) -> Pipeline:
    """A pipeline of one box."""
    return W("in -> a -> out", a=made, **options)


def test_a_proof_for_all_numbers_does_not_lean_on_the_domain_of_a_function_that_is_only_called():
    arrows = "in -> o -> d.1; in -> p -> d.0; d -> out"
    pick = pipes.Apply(lambda x, y: x)
    less = W(arrows, o=OPAQUE, d=pick, p=pipes.Apply(lambda x: x < 10))
    true = W(arrows, o=OPAQUE, d=pick, p=pipes.TurnInto(True))

    assert "any size" not in str(explore(less, claims.same_steps(true)).scope)


def test_a_proof_for_all_numbers_does_not_lean_on_the_largest_number_that_there_is():
    less = box(pipes.Apply(lambda x: x < 2**61 + 5))

    assert "any size" not in str(explore(less, claims.same_steps(box(pipes.TurnInto(True)))).scope)


def test_a_proof_for_all_numbers_does_not_lean_on_the_numbers_that_come_in():
    more = W("in -> a -> b -> out", a=pipes.Apply(opaque_sum), b=pipes.Apply(lambda x: x > 0))

    assert "any size" not in str(explore(more, claims.stays_true(), domain=1).scope)


def opaque_sum(x: int) -> int:
    return int(str(x)) + 1


def test_what_holds_only_since_numbers_wrap_around_does_not_hold():
    more = W("in -> a -> b -> out", a=pipes.Apply(lambda x: x + 1), b=pipes.Apply(lambda x: x < 4))

    assert explore(more, claims.stays_true()).outcome is FAILS


def test_a_function_is_read_for_the_domain_that_it_has():
    # The first function has a divisor without 0; the second one has not.
    both_divide = W(
        "in -> one -> d.1; in -> d.0; d -> x; in -> e.0; in -> e.1; e -> y",
        gives=("x", "y"),
        one=pipes.Apply(lambda x: x % 2 + 1),
        d=pipes.Apply(operator.floordiv),
        e=pipes.Apply(operator.floordiv),
    )

    assert explore(both_divide, claims.never_stops()).outcome is FAILS


def test_only_listed_values_come_in():
    unequal = box(pipes.Apply(lambda x: x != 1))

    assert explore(unequal, claims.stays_true(), inputs={"in": [0, 3]}).outcome is HOLDS


def test_a_slice_by_whole_numbers_is_compared_without_listing_all_of_them():
    totals = W("in -> f; f.0 -> s.0; f.1 -> s.1; s -> out", f=pipes.Fork(2), s=pipes.Slice(Cumulate(operator.add)))

    assert explore(totals, claims.same_steps(totals)).outcome is not FAILS


def test_events_that_depend_on_values_are_events():
    either = W("in -> s -> out", takes={"in": bool}, s=pipes.Slice(Cumulate(both), by=operator.not_))

    assert explore(either, claims.same_steps(either)).outcome is HOLDS


def test_a_circle_is_one_though_a_box_that_does_not_matter_counts_on():
    counting = W(
        "in -> t -> c -> b; in -> f -> a",
        gives=("a", "b"),
        t=pipes.TurnInto(1),
        c=Cumulate(operator.add),
        f=pipes.Trim(2),
    )

    assert explore(counting, "G F !a", domain=modulo(4)).outcome is FAILS


def test_a_reset_empties_the_queues():
    waits = W("a -> m.0; b -> m.1; m -> out", takes={"a": int, "b": int}, m=pipes.Apply(operator.add))

    verdict = explore(waits, "F !(#m.0 >= 1)", resets=True)

    # One event waits for ever if both inputs bring one from then on; after a reset, none waits.
    assert verdict.outcome is FAILS
    assert all(not front.resets for front in counterexample(verdict)[0] if isinstance(front, Front))


def test_a_formula_of_ctl_is_broken_as_soon_as_it_can_be():
    verdict = explore(box(pipes.Passthrough()), "AG (out < 3)", domain=modulo(4))

    assert len(counterexample(verdict)[0]) == 1


def test_a_group_ends_in_the_push_in_which_its_last_event_comes():
    inside = W("in -> l -> m.0; in -> m.1; m -> out", l=pipes.Last(), m=pipes.Apply(operator.add))
    nested = W("in -> l -> g -> out", l=pipes.Last(), g=inside)
    flat = W("in -> l -> l2 -> m.0; l -> m.1; m -> out", l=pipes.Last(), l2=pipes.Last(), m=pipes.Apply(operator.add))

    assert nested.run([1, 2], ends=True) == flat.run([1, 2], ends=True) == [4]
    assert explore(nested, claims.never_stops(), queue=0, ends=True).outcome is HOLDS


def test_a_number_that_leaves_room_that_nobody_asked_for_is_no_stop():
    divides = W("in -> c -> a -> out", c=Cumulate(operator.add), a=pipes.Apply(lambda x: 10 // (x + 1)))

    assert explore(divides, claims.never_stops()).outcome is UNDECIDED


@pytest.mark.parametrize("option", [{"together": True}, {"pauses": True}, {"full": "drop"}])
def test_sequences_are_compared_in_every_world(option):
    ones = box(pipes.TurnInto(1))

    assert explore(ones, claims.same_sequence(ones), **option).outcome is HOLDS


# -- texts -----------------------------------------------------------------------------------------------------------

WORDS = [
    "AG",
    "AF",
    "AX",
    "EG",
    "EF",
    "EX",
    "A",
    "E",
    "G",
    "F",
    "X",
    "U",
    "R",
    "out",
    "in",
    "(",
    ")",
    "[",
    "]",
    "!",
    "~",
    "&",
    "|",
    "->",
    "<->",
    "==",
    "=",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "1",
    "-1",
    "'a'",
    "TRUE",
    "false",
    "#m.0",
    "#m",
    "out.0",
    "A[",
    "E[",
    "'",
    "#",
    "é",
    "1.5",
    "--",
    "always(",
    "eventually(",
    "within=",
    ",",
    "99999999999999999999",
    "²",
    "٣",
    "out.",
    "1out",
    "&&",
    "||",
    "=>",
    "{",
    ";",
    "%",
]


def test_a_text_is_a_formula_or_a_formula_error():
    rng = random.Random(5)
    texts = ["".join(rng.choice(("", " ")) + rng.choice(WORDS) for _ in range(rng.randint(0, 9))) for _ in range(4000)]
    texts += [
        "(" * 5000 + "out",
        "!" * 5000 + "out",
        "AX " * 300 + "out",
        "out -> " * 3000 + "out",
        f"out = {'9' * 5000}",
    ]
    made = 0
    for text in texts:
        try:
            made += bool(repr(formula_of_text(text)))
        except FormulaError:
            continue

    assert made > 100


@pytest.mark.parametrize("text", ["A[in U out]", "E[(in | out) U AX out]", "AG A[in -> out U out]", "!E[TRUE U !out]"])
def test_until_in_brackets_is_a_formula_of_ctl(text):
    assert isinstance(formula_of_text(text), Branching)
