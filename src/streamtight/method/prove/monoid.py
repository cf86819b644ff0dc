"""Laws of a function that merges two values: may its results be merged in any order and grouping?

>>> print(commutative_monoid(lambda a, b: a + b, int, identity=0))
HOLDS  f merges in any order and grouping, and 0 changes nothing (proved for every input)
>>> commutative_monoid(lambda a, b: a - b, int).counterexample.finding
'NOT_ASSOCIATIVE'
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from streamtight.errors import SourceError, UnsupportedError
from streamtight.method.prove.allowed import constants_of, parameters_of
from streamtight.method.prove.draw import some_rows
from streamtight.method.prove.inputs import options, require_settings, require_type
from streamtight.method.prove.programs import called
from streamtight.method.prove.reasons import reason_of
from streamtight.method.prove.results import is_close
from streamtight.solver import laws
from streamtight.solver.ask import Answer, Budget
from streamtight.solver.symbolic.values import REAL_NUMBERS
from streamtight.solver.values import values_in, variable
from streamtight.verdict import Counterexample, Outcome, Scope, Table, Verdict

TRIED = 200
_MISSING: Any = object()
Merge = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class _Law:
    """A law: its finding, how many values it speaks of, two ways to merge these that must agree, and its proof."""

    finding: str
    values: str
    one: tuple[str, Callable[..., Any]]
    other: tuple[str, Callable[..., Any]]
    prove: Callable[[Budget], Answer]


def commutative_monoid(
    combine: Merge, of: Any, *, identity: Any = _MISSING, seconds: float = 10.0, seed: int = 0
) -> Verdict:
    """May results be merged by this function in any order and grouping?

    combine     a function of two values, such as Spark's reduce and the last function of aggregate take
    of          the type of the values: int, str, (int, float), int | None
    identity    if given, also whether merging with this value changes nothing: the start of a fold
    """
    require_settings("commutative_monoid", seconds, seed)
    require_type(of, f"commutative_monoid(..., {of!r})", "commutative_monoid(combine, (int, float))")
    name = called(combine, "f")
    _require_two_parameters(combine, name)
    laws_ = list(_laws(combine, of, identity, name))
    claim = f"{name} merges in any order and grouping"
    claim += "" if identity is _MISSING else f", and {identity!r} changes nothing"
    started, tried = time.perf_counter(), 0
    threes = list(_drawn(of, constants_of(combine), random.Random(seed)))
    for law in laws_:
        for tried, drawn in enumerate(threes, start=1):
            found = _broken(law, drawn[: len(law.values)], name)
            if found is not None:
                return Verdict(claim, Outcome.FAILS, Scope.tested(tried, seed=seed), found, None, _cost(started))
    reasons = []
    for law in laws_:
        try:
            answer = law.prove(Budget(seconds))
        except UnsupportedError as error:
            reasons.append(reason_of(error))
            continue
        if answer.refuted:
            found = _broken(law, [values_in(variable(of, f"{value}"), answer.model) for value in law.values], name)
            if found is not None:
                return Verdict(claim, Outcome.FAILS, Scope.tested(tried, seed=seed), found, None, _cost(started))
        if not answer.proved:
            reasons.append(f"{law.finding} is not excluded: {answer.reason or 'a model that does not show it'}")
    if reasons:
        scope = Scope.tested(tried, seed=seed)
        return Verdict(claim, Outcome.UNDECIDED, scope, None, "; ".join(reasons), _cost(started))
    assumptions = (REAL_NUMBERS,) if _has_floats(of) else ()
    return Verdict(claim, Outcome.HOLDS, Scope.proved(), cost=_cost(started), assumptions=assumptions)


def _has_floats(type_: Any) -> bool:
    return any(map(_has_floats, type_)) if isinstance(type_, tuple) else float in options(type_)


def _require_two_parameters(combine: Merge, name: str) -> None:
    count = parameters_of(combine) if callable(combine) else None
    if not callable(combine) or count not in (None, 2):
        raise SourceError(
            f"commutative_monoid({name}, ...)",
            needed="a function that merges two values",
            came=repr(combine) if count is None else f"one of {count} parameter{'' if count == 1 else 's'}",
            hint="lambda a, b: a + b",
        )


def _laws(combine: Merge, of: Any, identity: Any, name: str) -> Iterator[_Law]:
    yield _Law(
        "NOT_ASSOCIATIVE",
        "abc",
        (f"{name}({name}(a, b), c)", lambda a, b, c: combine(combine(a, b), c)),
        (f"{name}(a, {name}(b, c))", lambda a, b, c: combine(a, combine(b, c))),
        lambda budget: laws.is_associative(combine, of, budget=budget),
    )
    yield _Law(
        "NOT_COMMUTATIVE",
        "ab",
        (f"{name}(a, b)", combine),
        (f"{name}(b, a)", lambda a, b: combine(b, a)),
        lambda budget: laws.is_commutative(combine, of, budget=budget),
    )
    if identity is not _MISSING:
        yield _Law(
            "NOT_NEUTRAL",
            "a",
            (f"{name}({identity!r}, a)", lambda a: combine(identity, a)),
            ("a", lambda a: a),
            lambda budget: laws.is_neutral(identity, combine, of, budget=budget),
        )


def _broken(law: _Law, values: Sequence[Any], name: str) -> Counterexample | None:
    """The law for these values, if the function itself breaks it."""
    results = []
    for _, call in (law.one, law.other):
        try:
            results.append(call(*values))
        except Exception as error:  # the border of user code
            results.append(f"raises {type(error).__name__}")
    if is_close(results[0], results[1]):
        return None
    given = tuple(f"{name_} = {value!r}" for name_, value in zip(law.values, values, strict=True))
    told = {"NOT_ASSOCIATIVE": "the grouping matters", "NOT_COMMUTATIVE": "the order matters"}
    return Counterexample(
        finding=law.finding,
        explanation=told.get(law.finding, "it is not neutral"),
        table=Table(
            ("values", law.one[0], law.other[0]), (("\n".join(given), *map(repr, results)),), "values and results"
        ),
        replay="\n".join(
            [f"# {name}: as in your own code", *given, *(f"print({text})" for text, _ in (law.one, law.other))]
        ),
        reruns=1,
        failing_reruns=1,
    )


def _drawn(of: Any, near: Sequence[Any], chance: random.Random) -> Iterator[list[Any]]:
    """Some threes of values."""
    values: list[Any] = []
    while len(values) < 3 * TRIED:
        values += some_rows(of, near, chance)
    for place in range(TRIED):
        yield values[3 * place : 3 * place + 3]


def _cost(started: float) -> dict[str, float]:
    return {"seconds": time.perf_counter() - started}
