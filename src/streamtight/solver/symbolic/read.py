"""Reading a function: all its paths; and is the reading right?"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from streamtight.errors import EncodingError, UnsupportedError
from streamtight.solver.ask import Budget, check
from streamtight.solver.symbolic.admit import Fingerprints, Twin
from streamtight.solver.symbolic.paths import Exploration, NotReadable, Path, all_paths, refuse
from streamtight.solver.symbolic.trees import (
    NoValue,
    leaves,
    python_argument,
    python_value,
    settled,
    with_leaves,
)
from streamtight.solver.symbolic.values import REAL_NUMBERS, Symbolic, term_of


def explore(
    call: Callable[[], object],
    *,
    given: Sequence[z3.BoolRef] = (),
    budget: Budget,
    most: int = 200,
    replay: Callable[[z3.ModelRef], object] | None = None,
) -> list[Path]:
    """All paths of `call`. Their guards exclude each other, and where everything `given` is true one of them is.

    `call` is run once for each path and must do the same each time. An exception is a path that raises. A TypeError or
    AttributeError may also come from code that does not know symbolic values: it is refused, unless `replay`, which
    runs the same on the values of a model, raises it at the same line.
    """
    return all_paths(Exploration(given, budget, most), lambda: settled(call()), replay)


def read(
    function: Callable[..., object],
    arguments: Sequence[object],
    *,
    given: Sequence[z3.BoolRef] = (),
    budget: Budget,
    most: int = 200,
    then: Callable[[Any], object] | None = None,
) -> list[Path]:
    """All paths of the function on these arguments, which may hold symbolic values anywhere.

    `then` is applied to what the function gives while it is still being explored, such as `list` to what a flatMap
    gives.
    """
    twin = Twin(function, arguments)

    def call() -> object:
        if not twin.loops:
            return _finish(twin.call(*arguments), then)
        before = sys.gettrace()
        sys.settrace(_clock(twin, budget))
        try:
            return _finish(twin.call(*arguments), then)
        finally:
            sys.settrace(before)

    def replay(model: Any) -> object:
        def value(leaf: Symbolic) -> object:
            return python_value(model.eval(leaf._term, model_completion=True))

        return _finish(_on_values(function, twin, value)(*[with_leaves(each, value) for each in arguments]), then)

    exploration = Exploration(given, budget, most)
    exploration.function = twin
    return all_paths(exploration, lambda: settled(call()), replay)


def _finish(result: object, then: Callable[[Any], object] | None) -> object:
    return then(result) if then else result


def _clock(twin: Twin, budget: Budget) -> Callable[..., Any]:
    """A trace function that ends a loop which would go on for ever: loops on known values take no decisions."""
    instructions = 0

    def trace(frame: types.FrameType, _event: str, _argument: object) -> Any:
        nonlocal instructions
        if id(frame.f_code) not in twin.codes:
            return None
        frame.f_trace_opcodes = True  # `while True: pass` never reaches another line
        frame.f_trace_lines = False
        instructions += 1
        if instructions % 1024 == 0 and budget.left <= 0:
            refuse(f"loops for more than {budget.seconds:g} s")
        return trace

    return trace


def _on_values(
    function: Callable[..., object], twin: Twin, value: Callable[[Symbolic], object]
) -> Callable[..., object]:
    """The function itself; if it captures symbolic values, its twin that captures their values instead."""
    return Twin(function, twin.arguments, value).call if twin.captures else function


def check_reading(
    function: Callable[..., object],
    paths: Sequence[Path],
    arguments: Sequence[object],
    *,
    given: Sequence[z3.BoolRef] = (),
    then: Callable[[Any], object] | None = None,
    samples: int = 100,
    seed: int = 0,
) -> None:
    """Compare what was read with the function itself: on values near its constants, and on values of every path.

    A difference is our own bug (`EncodingError`), unless floats are involved: then rounding shows, and the function
    is not readable under the assumption that floats are real numbers. What was once found right is not asked again, for
    a function of the same code and the same captured values.
    """
    named = tuple(with_leaves(each, lambda leaf: (type(leaf).__name__, str(leaf._term))) for each in arguments)
    read_as = tuple(
        (path.guard.hash(), *(leaf._term.hash() for leaf in leaves(path.result)), type(path.raised)) for path in paths
    )
    keys = Fingerprints()
    key = (keys.of(function), keys.of(then), repr(named), read_as, samples, seed)
    if given or key not in _right:
        _check(function, paths, arguments, given, then, samples, seed)
    if not given:
        if len(_right) >= _MOST_KEPT:
            _right.clear()
        _right[key] = keys


_MOST_KEPT = 2000
_right: dict[object, Fingerprints] = {}


def _check(
    function: Callable[..., object],
    paths: Sequence[Path],
    arguments: Sequence[object],
    given: Sequence[z3.BoolRef],
    then: Callable[[Any], object] | None,
    samples: int,
    seed: int,
) -> None:
    twin = Twin(function, arguments)
    inputs: list[Symbolic] = [*leaves(list(arguments)), *twin.captures]
    outputs = [leaves(path.result) for path in paths]
    # The number of the path that is taken; below zero if there is none, or more than one.
    guards = [path.guard for path in paths]
    several = z3.Not(z3.AtMost(*guards, 1)) if len(guards) > 1 else z3.BoolVal(False)
    which = functools.reduce(lambda rest, i: z3.If(guards[i], i, rest), range(len(paths)), z3.IntVal(-1))
    terms = [
        z3.If(several, -2, which),
        z3.And(*given, True),
        *(leaf._term for leaf in itertools.chain(inputs, *outputs)),
    ]
    together = z3.Function("together", *[term.sort() for term in terms], z3.BoolSort())(*terms)
    starts = list(itertools.accumulate([2, len(inputs), *map(len, outputs)]))
    chance = random.Random(seed)
    for sample in _samples(_constants(terms), twin, [[*given, guard] for guard in guards], samples, chance):
        values = z3.simplify(z3.substitute(together, *sample))
        try:
            if given and not python_argument(values, 1):
                continue
            known = {id(leaf): python_argument(values, 2 + i) for i, leaf in enumerate(inputs)}
            taken = python_argument(values, 0)
            read_as: object = _NEITHER[taken] if taken < 0 else None
            if taken >= 0:
                start = starts[taken + 1]
                found = {id(leaf): python_argument(values, start + i) for i, leaf in enumerate(outputs[taken])}
                read_as = _read_outcome(paths[taken], found)
        except NoValue as error:
            what = f"has no value for {dict(sample)}: {error}"
            raise NotReadable(what, line=twin.place[0], file=twin.place[1]) from None
        concrete = [with_leaves(each, lambda leaf: known[id(leaf)]) for each in arguments]  # noqa: B023
        real = _outcome(_on_values(function, twin, lambda leaf: known[id(leaf)]), concrete, then)  # noqa: B023
        if taken >= 0 and _same(read_as, real):
            continue
        shown = f"{getattr(function, '__name__', 'the function')}({', '.join(map(repr, concrete))})"
        if any(REAL_NUMBERS in path.assumes for path in paths):
            what = f"depends on how floats are rounded: {shown} is {real!r}, with real numbers {read_as!r}"
            raise NotReadable(what, line=twin.place[0], file=twin.place[1])
        came = f"{read_as!r} from its formula"
        raise EncodingError(shown, needed=f"{real!r}, as Python gives", came=came, hint="report this function")


_NEITHER = {-1: "no path", -2: "several paths"}


def _outcome(function: Callable[..., object], arguments: list[object], then: Callable[[Any], object] | None) -> object:
    try:
        return _finish(function(*arguments), then)
    except Exception as error:  # the user's own; what it is, is the answer
        return _Raised(type(error))


def _read_outcome(path: Path, values: dict[int, Any]) -> object:
    if path.raised is not None:
        return _Raised(type(path.raised))
    return with_leaves(path.result, lambda leaf: values[id(leaf)])


@dataclass(frozen=True, slots=True)
class _Raised:
    kind: type[Exception]

    def __repr__(self) -> str:
        return f"an exception {self.kind.__name__}"


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if type(one) is float:
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_same, one, other))
    if dataclasses.is_dataclass(one) and type(one) is not _Raised:
        return all(_same(getattr(one, f.name), getattr(other, f.name)) for f in dataclasses.fields(one))
    return bool(one == other)


def _constants(terms: Iterable[Any]) -> list[Any]:
    """The constants without a value that occur in the terms, in the order in which they are met."""
    found: dict[int, Any] = {}
    seen: set[int] = set()
    waiting = list(terms)[::-1]
    while waiting:
        term = waiting.pop()
        if term.get_id() in seen:
            continue
        seen.add(term.get_id())
        if z3.is_const(term) and term.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            found[term.get_id()] = term
        waiting.extend(term.children()[::-1])
    return list(found.values())


def _samples(
    constants: list[Any], twin: Twin, guards: list[list[Any]], count: int, chance: random.Random
) -> Iterator[list[tuple[Any, Any]]]:
    """Values for the constants: one for each guard, then values near the numbers and strings of the function."""
    for guard in guards[:20]:
        solver = z3.Solver()
        solver.add(*guard)
        if check(solver, 0.2)[0] == z3.sat:
            model = solver.model()
            yield [(constant, model.eval(constant, model_completion=True)) for constant in constants]
    pools = [_pool(constant.sort(), twin.constants) for constant in constants]
    # First each value for all constants at once, then mixed.
    alike = min(max(map(len, pools), default=0), count // 3)
    for turn in range(count if constants else 1):
        chosen = [pool[turn % len(pool)] if turn < alike else chance.choice(pool) for pool in pools]
        yield list(zip(constants, chosen, strict=True))


def _pool(sort: Any, constants: Iterable[object]) -> list[Any]:
    """Values near these constants, and those that are always worth a try."""
    known = list(constants)[:40]
    numbers = [value for value in known if type(value) is int and value.bit_length() < 200]
    values: list[Any]
    if sort == z3.BoolSort():
        values = [False, True]
    elif sort == z3.IntSort():
        values = [0, 1, -1, *(n + d for n in numbers for d in (0, 1, -1)), *(-n for n in numbers)]
        values += [2, -2, 3, 7, -7, 2**31, -(2**63) - 1, 10**20]
    elif sort == z3.RealSort():
        floats = [value for value in known if type(value) is float and abs(value) < 1e15]
        near = [float(n + d) for n in [*numbers, *floats] if abs(n) < 1e15 for d in (0, 1, -0.5)]
        values = [0.0, 1.0, -1.0, *near, 0.5, -2.25, 7.0, 1024.0]
    elif sort == z3.StringSort():
        words = [
            value for value in known if type(value) is str and len(value) < 100 and all(c < "\U00030000" for c in value)
        ]
        near_words = [text for word in words for text in (word, word + "a", word[:-1], "a" + word)]
        values = ["", "a", *near_words, "b", "ab", "A", " ", "0", "\u00e9"]
    else:
        raise UnsupportedError(
            "check_reading", needed="int, bool, str or float", came=str(sort), hint="check its parts"
        )
    return [term_of(value) for value in dict.fromkeys(values)]
