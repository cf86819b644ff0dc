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
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any

from streamtight.errors import SchemaError, UnsupportedError
from streamtight.method.typecheck.consistency import Output, Pair, Trial, tried
from streamtight.program.functions import constants_of, why_unclear, why_varies
from streamtight.program.network import Network, in_marker_order
from streamtight.program.operators import Graph, Inlet, KeyedUnordered, Merge, Operator, Outlet, Sort, Split
from streamtight.program.transformer import Transformer
from streamtight.solver.ask import Budget
from streamtight.solver.obligations import NOTHING_RAISES, is_consistent
from streamtight.solver.symbolic.values import REAL_NUMBERS
from streamtight.stream.event import Event, Kind, without_none
from streamtight.stream.schema import Schema
from streamtight.verdict import Outcome, Scope, Verdict

Told = Callable[[str], None]


def _silent(_: str) -> None:
    """Tells nobody how far it is."""


def typecheck_graph(
    graph: Graph | Operator, *, cases: int = 100, seconds: float = 10.0, seed: int = 0, progress: Told = _silent
) -> Verdict:
    """Does every operator give equivalent outputs for equivalent inputs?

    cases     how many pairs of inputs each operator is tried on
    seconds   how long a proof may take, for each operator
    """
    operators = [graph] if isinstance(graph, Operator) else [v for v in graph.vertices if isinstance(v, Operator)]
    claim = f"{_names(operators)} {'gives' if len(operators) == 1 else 'give'} equivalent outputs for equivalent inputs"
    started = time.perf_counter()
    tested: list[str] = []
    reasons: list[str] = []
    assumptions: dict[str, None] = {}
    for operator in filter(_has_functions, operators):
        progress(operator.name)
        trial = tried(_Alone(operator), cases, seed)
        if trial.found is not None:
            scope = Scope.tested(trial.cases, seed=seed)
            return Verdict(claim, Outcome.FAILS, scope, trial.found, None, _cost(started))
        assumptions.update(dict.fromkeys(_assumed(trial, operator.takes.kinds)))
        if (varies := _varies(operator)) is not None:
            reasons.append(f"{operator.name} {varies}, so it may give other events another time")
            continue
        try:
            answer, assumed = is_consistent(operator, Budget(seconds))
        except UnsupportedError as error:
            told = f"{error.where} {error.came}"
            tested.append(f"{operator.name} was tested, since it could not be read: {told}")
            if not trial.items:
                reasons.append(f"{operator.name} gave no output in {cases} cases, and could not be read: {told}")
            continue
        assumptions.update(dict.fromkeys(sorted(assumed)))
        if answer.refuted:
            reasons.append(f"{operator.name} does not obey: {operator.obligations()[0].text}; no outputs showed it")
        elif not answer.proved:
            tested.append(f"{operator.name} was tested: {answer.reason}")
    return Verdict(
        claim,
        Outcome.UNDECIDED if reasons else Outcome.HOLDS,
        Scope.tested(cases, seed=seed) if tested or reasons else Scope.proved(),
        None,
        "; ".join(reasons) or None,
        _cost(started),
        method="; ".join(tested) or "the functions of each operator were read, and their laws proved",
        assumptions=tuple(assumptions),
    )


def typecheck_transformer(transformer: Transformer, *, x: Any = None, cases: int = 100, seed: int = 0) -> Verdict:
    """Does a transformer, begun with x, give equivalent outputs for equivalent inputs, and never take any back?"""
    claim = f"{transformer.name} gives equivalent outputs for equivalent inputs"
    started = time.perf_counter()
    trial = tried(_Begun(transformer, x), cases, seed)
    scope = Scope.tested(trial.cases, seed=seed)
    if trial.found is not None:
        return Verdict(claim, Outcome.FAILS, scope, trial.found, None, _cost(started))
    varies = next((why for each in _functions_of(transformer) if (why := _why(each))), None)
    reason = None if trial.items else f"it gave no event in {trial.cases} cases"
    reason = reason if varies is None else f"it {varies}, so it may give other events another time"
    outcome = Outcome.HOLDS if reason is None else Outcome.UNDECIDED
    method = "; ".join(map(repr, transformer.obligations()))
    return Verdict(
        claim,
        outcome,
        scope,
        None,
        reason,
        _cost(started),
        method=f"tested: {method}" if method else "tested",
        assumptions=tuple(_assumed(trial, transformer.takes.kinds)),
    )


def _names(operators: Sequence[Operator]) -> str:
    names = [operator.name for operator in operators]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _cost(started: float) -> dict[str, float]:
    return {"seconds": time.perf_counter() - started}


def _assumed(trial: Trial, kinds: Iterable[Kind]) -> list[str]:
    """What tests take for granted: they do not try NaN, and cannot compare what raises."""
    floats = any(without_none(type_)[0] is float for kind in kinds for type_ in kind.fields.values())
    return [REAL_NUMBERS] * floats + [NOTHING_RAISES] * bool(trial.raised)


def _varies(operator: Operator) -> str | None:
    """How a function of it can give other results for the same arguments, as far as its code shows."""
    found = ((name, _why(each)) for name, each in vars(operator).items() if isinstance(each, FunctionType))
    return next((f"has an {name} that {why}" for name, why in found if why is not None), None)


def _why(function: FunctionType) -> str | None:
    return why_varies(function) or why_unclear(function)


def _functions_of(transformer: Transformer) -> Iterator[FunctionType]:
    yield from (each for each in vars(transformer).values() if isinstance(each, FunctionType))
    for sub in transformer.subs:
        yield from _functions_of(sub)


def _has_functions(operator: Operator) -> bool:
    """Whether the user wrote something of it."""
    return not isinstance(operator, Sort | Merge) and not (isinstance(operator, Split) and not callable(operator.by))


MOST_EVENTS = 2000
"""What gives more events for a small input is not run to its end: it may go on for ever."""


class _FewEvents(list[Event]):
    """Some events."""

    def append(self, event: Event) -> None:
        if len(self) >= MOST_EVENTS:
            raise OverflowError(f"more than {MOST_EVENTS} events for a small input")
        super().append(event)


class _Alone:
    """An operator with nothing around it."""

    def __init__(self, operator: Operator) -> None:
        self._operator = operator
        self.name = operator.name
        self.takes: Schema = operator.takes
        self.gives: Schema = operator.gives
        self.markers = operator.takes.markers
        self.constants = constants_of(each for each in vars(operator).values() if isinstance(each, FunctionType))
        inlet = Inlet("in", operator.takes)
        if isinstance(operator, Split):
            ways = [operator[way] >> Outlet(f"out {way}") for way in range(operator.ways)]
            self._graph = Graph(inlet >> operator, *ways)
        else:
            self._graph = Graph(inlet >> operator >> Outlet("out"))

    def outputs(self, events: Sequence[Event], grouping: int | None) -> Output:
        out = _FewEvents()
        chance = random.Random(grouping)
        network = Network(
            self._graph,
            self._graph.vertices,
            lambda edge: out.append,
            grouped=None if grouping is None else lambda: chance.random() < 0.4,
        )
        feed = network.entrance(self._graph.inlets[0])
        try:
            for event in in_marker_order(events, self._operator.takes, self.name):
                feed(event)
        except SchemaError as error:  # what it emits is not of its type
            return Output((), str(error), None, str(error))
        except Exception as error:  # the border of user code
            return Output((), f"{type(error).__name__}: {error}")
        return Output(tuple(out))

    def law(self, pair: Pair) -> str | None:
        if not isinstance(self._operator, KeyedUnordered):
            return None
        items = [event for event in pair.events if event.kind not in self.markers]
        try:
            return _broken_law(self._operator, items)
        except Exception:  # the border of user code; the outputs tell
            return None

    def replay(self, pair: Pair) -> str:
        named = self.name if self.name.isidentifier() else "operator"
        if pair.grouping is not None:
            return f"tight.typecheck({named})  # {named}: as in your own code"
        return "\n".join(
            [
                f"# {named}: as in your own code",
                f'alone = tight.Graph(tight.Inlet("in", {named}.takes) >> {named} >> tight.Outlet("out"))',
                *(f"print(alone.run([{', '.join(map(repr, each))}]))" for each in (pair.events, pair.other)),
            ]
        )


def _broken_law(operator: KeyedUnordered, items: Sequence[Event]) -> str | None:
    """Which law `combine` breaks on the summaries of these items."""
    combine, values = operator.combine, [operator.identity, *[operator.summary(item) for item in items]]
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
    return None


class _Begun:
    """A transformer, begun with a value."""

    def __init__(self, transformer: Transformer, x: Any) -> None:
        self._transformer, self._x = transformer, x
        self.name, self.takes, self.gives = transformer.name, transformer.takes, transformer.gives
        self.markers = frozenset[Kind]()
        self.constants = constants_of(_functions_of(transformer))

    def outputs(self, events: Sequence[Event], grouping: int | None) -> Output:
        try:
            running = self._transformer.start(self._x)
            out = list(running.opening)
            for event in events:
                out += running.feed(event)
            value, last = running.close()
        except SchemaError as error:  # what it gives is not of its type, or is taken back
            return Output((), str(error), None, str(error))
        except Exception as error:  # the border of user code
            return Output((), f"{type(error).__name__}: {error}")
        return Output((*out, *last), None, value)

    def law(self, pair: Pair) -> str | None:
        return None

    def replay(self, pair: Pair) -> str:
        lines = [f"# {self.name}: as in your own code"]
        for events in (pair.events, pair.other):
            stream = f"{self.name}.takes.parse([{', '.join(map(repr, events))}])"
            lines.append(f"print({self.name}.closed({self._x!r}, {stream}))")
        return "\n".join(lines)
