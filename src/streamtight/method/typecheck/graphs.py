"""Do typed operators keep their types: equivalent inputs, equivalent outputs? (Definition 2.24, Theorem 2.27)

Each operator is tried on pairs of inputs that its input type does not tell apart, and proved where its functions can be
read. A graph of operators that keep their types keeps its own.

>>> from streamtight.program.operators import KeyedUnordered, U
>>> from streamtight.stream.event import Kind
>>> Bid, Best = Kind("Bid", item=str, cents=int), Kind("Best", item=str, cents=int)
>>> def best(combine):
...     return KeyedUnordered(
...         "best", takes=U(Bid), gives=U(Best), key="item", summary=lambda bid: bid.cents, identity=0,
...         combine=combine, initial_state=0, update_state=lambda state, cents: cents,
...         on_marker=lambda state, item, marker, emit: emit(Best(item, state)))
>>> print(typecheck_graph(best(lambda a, b: a + b)))
HOLDS  best gives equivalent outputs for equivalent inputs (proved for every input)
>>> print(typecheck_graph(best(lambda a, b: b)).counterexample.explanation)
best gives different outputs for two orders of the same items: combine(0, 1) is 1, combine(1, 0) is 0
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from streamtight.errors import UnsupportedError
from streamtight.program.network import Network, in_marker_order, sort_key
from streamtight.program.operators import Graph, Inlet, KeyedUnordered, Merge, Operator, Outlet, Sort, Split
from streamtight.solver.ask import Budget
from streamtight.solver.obligations import is_consistent
from streamtight.source.generate import Source as Inputs
from streamtight.source.generate import generated
from streamtight.stream.event import Event
from streamtight.stream.schema import Sync
from streamtight.stream.trace import Trace
from streamtight.verdict import Counterexample, Outcome, Scope, Table, Verdict

SIZE = 8
"""How many events a generated input has, at most."""


def typecheck_graph(
    graph: Graph | Operator,
    *,
    cases: int = 100,
    seconds: float = 10.0,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Verdict:
    """Does every operator give equivalent outputs for equivalent inputs?

    cases     how many pairs of inputs each operator is tried on
    seconds   how long a proof may take, for each operator
    """
    operators = [graph] if isinstance(graph, Operator) else [v for v in graph.vertices if isinstance(v, Operator)]
    claim = f"{_names(operators)} {'gives' if len(operators) == 1 else 'give'} equivalent outputs for equivalent inputs"
    started = time.perf_counter()
    tested, reasons, assumptions = [], [], {}
    for operator in operators:
        progress(operator.name)
        trial = _tried(operator, cases, seed)
        if trial.found is not None:
            scope = Scope.tested(trial.cases, seed=seed)
            return Verdict(claim, Outcome.FAILS, scope, trial.found, None, _cost(started))
        try:
            answer, assumed = is_consistent(operator, Budget(seconds))
        except UnsupportedError as error:
            tested.append(f"{operator.name} was tested: {error.where}: {error.came}")
            if not trial.outputs:
                reasons.append(
                    f"{operator.name} gave no output in {trial.cases} cases, and {error.where}: {error.came}"
                )
            continue
        assumptions.update(dict.fromkeys(sorted(assumed)))
        if answer.refuted:
            reasons.append(f"{operator.name} does not obey: {operator.obligations()[0].text}; no outputs showed it")
        elif not answer.proved:
            tested.append(f"{operator.name} was tested: {answer.reason}")
    scope = Scope.tested(cases, seed=seed) if tested or reasons else Scope.proved()
    outcome = Outcome.UNDECIDED if reasons else Outcome.HOLDS
    return Verdict(
        claim,
        outcome,
        scope,
        None,
        "; ".join(reasons) or None,
        _cost(started),
        method="; ".join(tested) or "the functions of each operator were read, and their laws proved",
        assumptions=tuple(assumptions),
    )


def _names(operators: Sequence[Operator]) -> str:
    names = [operator.name for operator in operators]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _cost(started: float) -> dict[str, float]:
    return {"seconds": time.perf_counter() - started}


# -- an operator, tried ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Trial:
    cases: int = 0
    outputs: int = 0
    found: Counterexample | None = None


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two inputs that a type does not tell apart: events, and another order of them."""

    events: tuple[Event, ...]
    order: tuple[int, ...]
    grouping: int | None
    """If given, the second run groups summaries by chance from this seed."""

    @property
    def other(self) -> tuple[Event, ...]:
        return tuple(self.events[place] for place in self.order)

    def smaller(self) -> Iterator[_Pair]:
        for left_out in range(len(self.events)):
            events = (*self.events[:left_out], *self.events[left_out + 1 :])
            order = tuple(place - (place > left_out) for place in self.order if place != left_out)
            yield _Pair(events, order, self.grouping)
        if self.order != tuple(range(len(self.events))):
            yield _Pair(self.events, tuple(range(len(self.events))), self.grouping)
        if self.grouping is not None:
            yield _Pair(self.events, self.order, None)


def _tried(operator: Operator, cases: int, seed: int) -> _Trial:
    trial = _Trial()
    if isinstance(operator, Sort | Merge) or (isinstance(operator, Split) and not callable(operator.by)):
        return trial  # these have no functions of the user
    chance = random.Random(seed)
    inputs = generated(sorted(operator.takes.kinds, key=lambda kind: kind.name), upto=operator.takes, size=(0, SIZE))
    for trace in inputs.traces(cases, seed):
        trial.cases += 1
        events = _with_markers_in_order(trace.events, operator.takes)
        pair = _Pair(events, _another_order(events, operator.takes, chance), chance.getrandbits(30))
        one = _given(operator, pair.events)
        trial.outputs += sum(event.kind not in operator.gives.markers for event in one.events)
        if _differ(operator, pair):
            trial.found = _shown(operator, _smallest(operator, pair, inputs))
            return trial
    return trial


def _with_markers_in_order(events: Sequence[Event], takes: Sync) -> tuple[Event, ...]:
    markers = iter(sorted((e for e in events if e.kind in takes.markers), key=sort_key(())))
    return tuple(next(markers) if event.kind in takes.markers else event for event in events)


def _another_order(events: tuple[Event, ...], takes: Sync, chance: random.Random) -> tuple[int, ...]:
    """An equivalent order of the events, as their places."""
    places: dict[Event, list[int]] = {}
    for place, event in enumerate(events):
        places.setdefault(event, []).append(place)
    return tuple(places[event].pop(0) for event in Trace(events, takes).reordered(chance).events)


@dataclass(frozen=True, slots=True)
class _Output:
    events: tuple[Event, ...]
    raised: str | None = None


def _given(operator: Operator, events: Sequence[Event], grouping: int | None = None) -> _Output:
    """What an operator alone makes of these events."""
    graph = _alone(operator)
    out: list[Event] = []
    chance = random.Random(grouping)
    network = Network(
        graph,
        graph.vertices,
        lambda edge: out.append,
        grouped=None if grouping is None else lambda: chance.random() < 0.4,
    )
    feed = network.entrance(graph.inlets[0])
    try:
        for event in in_marker_order(events, operator.takes, operator.name):
            feed(event)
    except Exception as error:  # the border of user code
        return _Output((), f"{type(error).__name__}: {error}")
    return _Output(tuple(out))


def _alone(operator: Operator) -> Graph:
    source = Inlet("in", operator.takes)
    if isinstance(operator, Split):
        ways = [operator[way] >> Outlet(f"out {way}") for way in range(operator.ways)]
        return Graph(source >> operator, *ways)
    return Graph(source >> operator >> Outlet("out"))


def _differ(operator: Operator, pair: _Pair) -> bool:
    one, other = _given(operator, pair.events), _given(operator, pair.other, pair.grouping)
    if one.raised or other.raised:
        return bool(one.raised) != bool(other.raised)
    return Trace(map(_rounded, one.events), operator.gives) != Trace(map(_rounded, other.events), operator.gives)


def _rounded(event: Event) -> Event:
    """With floats to nine digits: another order of additions gives other last ones."""
    values = [float(f"{value:.9g}") if isinstance(value, float) else value for value in event[1:]]
    return event.kind(*values)


def _smallest(operator: Operator, pair: _Pair, inputs: Inputs) -> _Pair:
    """The pair with what is not needed left out, and with simpler events."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in itertools.chain(pair.smaller(), _simpler(pair, inputs, operator.takes)):
            if _is_pair(candidate, operator.takes) and _differ(operator, candidate):
                pair, smaller = candidate, True
                break
    return pair


def _simpler(pair: _Pair, inputs: Inputs, takes: Sync) -> Iterator[_Pair]:
    for place, event in enumerate(pair.events):
        for simpler in inputs.simpler_events(event):
            events = (*pair.events[:place], simpler, *pair.events[place + 1 :])
            yield _Pair(_with_markers_in_order(events, takes), pair.order, pair.grouping)


def _is_pair(pair: _Pair, takes: Sync) -> bool:
    return Trace(pair.events, takes) == Trace(pair.other, takes)


# -- what a person sees ----------------------------------------------------------------------------------------------


def _shown(operator: Operator, pair: _Pair) -> Counterexample:
    same_order = pair.order == tuple(range(len(pair.events)))
    one, other = _given(operator, pair.events), _given(operator, pair.other, pair.grouping)
    if same_order and pair.grouping is None:
        finding, told = "NOT_A_FUNCTION", "two runs on the same events: it remembers something, or chooses"
    elif same_order:
        finding, told = "GROUPING_MATTERS", "two groupings of the same items"
    else:
        finding, told = "ORDER_MATTERS", "two orders of the same items"
    law = _broken_law(operator, pair)
    again = sum(_differ(operator, pair) for _ in range(3))
    return Counterexample(
        finding=finding,
        explanation=f"{operator.name} gives different outputs for {told}{f': {law}' if law else ''}",
        table=Table(
            ("", "input", "output"),
            (("one", _lines(pair.events), _told(one)), ("other", _lines(pair.other), _told(other))),
        ),
        replay=_replay(operator, pair),
        reruns=3,
        failing_reruns=again,
    )


def _lines(events: Sequence[Event]) -> str:
    return "\n".join(map(str, events)) or "(none)"


def _told(output: _Output) -> str:
    return output.raised or _lines(output.events)


def _broken_law(operator: Operator, pair: _Pair) -> str | None:
    """Which law `combine` breaks on the summaries of these items."""
    if not isinstance(operator, KeyedUnordered):
        return None
    combine, items = operator.combine, [event for event in pair.events if event.kind not in operator.takes.markers]
    try:
        values = [operator.identity, *map(operator.summary, items)]
        for a, b in itertools.product(values, repeat=2):
            if combine(a, b) != combine(b, a):
                return f"combine({a!r}, {b!r}) is {combine(a, b)!r}, combine({b!r}, {a!r}) is {combine(b, a)!r}"
        for a in values:
            if combine(operator.identity, a) != a:
                return f"combine({operator.identity!r}, {a!r}) is {combine(operator.identity, a)!r}"
        for a, b, c in itertools.product(values, repeat=3):
            left, right = combine(combine(a, b), c), combine(a, combine(b, c))
            if left != right:
                grouped = f"combine(combine({a!r}, {b!r}), {c!r}) is {left!r}"
                return f"{grouped}, combine({a!r}, combine({b!r}, {c!r})) is {right!r}"
    except Exception:  # the border of user code; the outputs tell
        return None
    return None


def _replay(operator: Operator, pair: _Pair) -> str:
    if pair.grouping is not None:
        return f"tight.typecheck({operator.name})  # {operator.name}: as in your own code"
    lines = [f"# {operator.name}: as in your own code"]
    lines.append(
        f'alone = tight.Graph(tight.Inlet("in", {operator.name}.takes) >> {operator.name} >> tight.Outlet("out"))'
    )
    for events in (pair.events, pair.other):
        lines.append(f"print(alone.run([{', '.join(map(repr, events))}]))")
    return "\n".join(lines)
