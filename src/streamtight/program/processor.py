"""Processors: the boxes that pipelines of streams are made of, and what each does with an event.

A processor has input and output ports. It takes a step if, and only if, there is an event for each of its inputs (a
*front*); a step gives at most one event on each output. What waits for the other inputs waits in a queue before its
port, which belongs to the pipeline. So a processor says how it starts, and what one front makes of its state:

>>> decimate = CountDecimate(3)
>>> state, given = decimate.start(), []
>>> for event in "abcdefg":
...     state, outs = decimate.step(state, (event,), RULES)
...     given += [out for out in outs if out is not NOTHING]
>>> given
['a', 'd', 'g']

Bédard and Hallé, "Model Checking of Stream Processing Pipelines", section 2. States are tuples of plain values, so that
they can be kept and compared.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from streamtight.errors import PipelineError

if TYPE_CHECKING:
    from streamtight.program.pipeline import Pipeline

Value = Any
State = Any


class _Nothing(Enum):
    NOTHING = "nothing"

    def __repr__(self) -> str:
        return "NOTHING"


NOTHING: Final = _Nothing.NOTHING
"""What a pipe carries when it carries no event; None is an event like any other."""

Outs = tuple[Any, ...]
"""For each output an event, or NOTHING."""


class Rules:
    """By which rules boxes work: these are those of real runs, where queues and whole numbers have no end."""

    def call(self, function: Function, arguments: tuple[Value, ...]) -> Value:
        """What a function gives."""
        return function.call(*arguments)

    def kept(self, queue: str, events: tuple[Value, ...]) -> tuple[Value, ...]:
        """What stays in a queue of these events."""
        return events

    def passed(self, target: str, event: Value) -> Value:
        """What arrives at this port of an event, or of NOTHING."""
        return event

    def saw(self, pipes: Mapping[str, Value]) -> None:
        """Told what each output of each box carried, after every push."""

    def inside(self, box: str) -> Rules:
        """The rules for what is inside a box."""
        return self


RULES: Final = Rules()


# -- functions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Function:
    """A function of so many values; `name` is how it is drawn and told."""

    call: Callable[..., Value]
    arity: int
    name: str

    def __str__(self) -> str:
        return self.name


def is_even(value: Value) -> bool:
    """Is it divisible by two?"""
    return bool(value % 2 == 0)


def is_odd(value: Value) -> bool:
    """Does dividing by two leave something?"""
    return bool(value % 2 != 0)


def both(left: Value, right: Value) -> bool:
    """Are both true?"""
    return bool(left) and bool(right)


def either(left: Value, right: Value) -> bool:
    """Is one of them true?"""
    return bool(left) or bool(right)


def implies(left: Value, right: Value) -> bool:
    """Is the second true, if the first is?"""
    return not left or bool(right)


def same_event(left: Value, right: Value) -> bool:
    """Are they the same? True and 1 are not, though Python has them equal."""
    return type(left) is type(right) and bool(left == right)


def if_then_else(condition: Value, one: Value, other: Value) -> Value:
    """The one if the condition is true, else the other."""
    return one if condition else other


_SYMBOLS: dict[Any, tuple[str, int]] = {
    operator.add: ("+", 2),
    operator.sub: ("-", 2),
    operator.mul: ("*", 2),
    operator.floordiv: ("//", 2),
    operator.mod: ("%", 2),
    operator.neg: ("-", 1),
    operator.abs: ("abs", 1),
    abs: ("abs", 1),
    min: ("min", 2),
    max: ("max", 2),
    operator.eq: ("=", 2),
    operator.ne: ("≠", 2),
    operator.lt: ("<", 2),
    operator.le: ("≤", 2),
    operator.gt: (">", 2),
    operator.ge: ("≥", 2),
    operator.not_: ("not", 1),
    both: ("and", 2),
    either: ("or", 2),
    implies: ("→", 2),
    is_even: ("even", 1),
    is_odd: ("odd", 1),
    if_then_else: ("if", 3),
    same_event: ("=", 2),
}
_STARTS: dict[Any, Value] = {operator.add: 0, operator.mul: 1, both: True, either: False}
"""What a running total, product, and so on begins with."""


def function_of(given: object, where: str, arity: int | None = None) -> Function:
    """What a user gave as a function, with its number of arguments."""
    if isinstance(given, Function):
        return given
    if not callable(given):
        raise PipelineError(where, needed="a function of values", came=repr(given), hint="operator.add, or lambda x: x")
    if given in _SYMBOLS if _is_hashable(given) else False:
        name, known = _SYMBOLS[given]
        return Function(given, known, name)
    name = getattr(given, "__name__", type(given).__name__)
    return Function(given, _arity(given, where) if arity is None else arity, "f" if name == "<lambda>" else name)


def _is_hashable(given: object) -> bool:
    try:
        hash(given)
    except TypeError:
        return False
    return True


def _arity(given: Callable[..., Value], where: str) -> int:
    try:
        parameters = inspect.signature(given).parameters.values()
    except (TypeError, ValueError):
        parameters = None
    if parameters is None or any(each.kind is each.VAR_POSITIONAL for each in parameters):
        raise PipelineError(
            where,
            needed="how many values the function takes",
            came=f"{given!r}, which does not tell",
            hint="Apply(function, arity=2)",
        )
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(1 for each in parameters if each.kind in positional and each.default is each.empty)


# -- processors ------------------------------------------------------------------------------------------------------


class Processor:
    """A box: how many inputs and outputs it has, how it starts, and what it does with a front of events."""

    inputs: int = 1
    outputs: int = 1

    def start(self) -> State:
        """The state before the first event."""
        return ()

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        """The state after these events, one for each input, and what comes out."""
        raise NotImplementedError

    def end(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        """The same in the push with which the stream ends; the front is empty if no event comes with it."""
        return self.step(state, front, rules) if front else (state, (NOTHING,) * self.outputs)

    @property
    def acts_at_end(self) -> bool:
        """Whether something may come out at the end of the stream."""
        return False

    def __call__(self, *pipes: Any, name: str | None = None) -> Any:
        """This box at the end of these pipes: its output pipe, or a tuple of them if it has several."""
        from streamtight.program.pipeline import attached

        return attached(self, pipes, name)


@dataclass(frozen=True)
class Passthrough(Processor):
    """Gives what it gets."""

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return state, front

    def __str__(self) -> str:
        return "pass"


@dataclass(frozen=True)
class Fork(Processor):
    """Copies each event to `n` outputs."""

    n: int = 2

    def __post_init__(self) -> None:
        _require_count(self.n, "Fork(n)", least=1)

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return self.n

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return state, front * self.n

    def __str__(self) -> str:
        return "fork"


@dataclass(frozen=True, init=False)
class Apply(Processor):
    """A function of one event of each input. With `outputs` of more than one, the function gives a tuple of so many.

    values   what the function can give, if that is neither whole numbers nor Booleans: wanted by `explore`
    """

    function: Function
    outputs: int = 1
    values: tuple[Value, ...] | None = None

    def __init__(
        self,
        function: Callable[..., Value] | Function,
        *,
        arity: int | None = None,
        outputs: int = 1,
        values: Sequence[Value] | None = None,
    ) -> None:
        _require_count(outputs, "Apply(..., outputs=)", least=1)
        made = function_of(function, "Apply(function)", arity)
        _require_count(made.arity, "Apply(..., arity=)", least=1)
        object.__setattr__(self, "function", made)
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "values", None if values is None else tuple(values))

    @property
    def inputs(self) -> int:  # type: ignore[override]
        return self.function.arity

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        given = rules.call(self.function, front)
        return state, given if self.outputs > 1 else (given,)

    def __str__(self) -> str:
        return self.function.name


@dataclass(frozen=True)
class TurnInto(Processor):
    """Gives the same value for every event."""

    value: Value

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return state, (self.value,)

    def __str__(self) -> str:
        return f"→ {self.value!r}"


@dataclass(frozen=True)
class CountDecimate(Processor):
    """Keeps the first event and then every `k`-th one."""

    k: int

    def __post_init__(self) -> None:
        _require_count(self.k, "CountDecimate(k)", least=1)

    def start(self) -> State:
        return 0

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return (state + 1) % self.k, front if state == 0 else (NOTHING,)

    def __str__(self) -> str:
        return f"1 of {self.k}"


@dataclass(frozen=True)
class Trim(Processor):
    """Drops the first `k` events."""

    k: int

    def __post_init__(self) -> None:
        _require_count(self.k, "Trim(k)", least=0)

    def start(self) -> State:
        return 0

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return (state, front) if state == self.k else (state + 1, (NOTHING,))

    def __str__(self) -> str:
        return f"trim {self.k}"


@dataclass(frozen=True)
class Filter(Processor):
    """Passes an event of its first input if the event of its second one is True."""

    inputs = 2

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        event, control = front
        if not isinstance(control, bool):
            raise PipelineError(
                "Filter", needed="True or False on its second input", came=repr(control), hint="a comparison before it"
            )
        return state, (event if control else NOTHING,)

    def __str__(self) -> str:
        return "filter"


@dataclass(frozen=True, init=False)
class Cumulate(Processor):
    """A function of what it gave last and the event: running totals and the like.

    start   what stands for the last value before there is one; known for +, *, and, or
    """

    function: Function
    first: Value

    def __init__(self, function: Callable[[Value, Value], Value] | Function, start: Value = NOTHING) -> None:
        made = function_of(function, "Cumulate(function)", 2)
        if made.arity != 2:
            raise PipelineError(
                f"Cumulate({made})", needed="a function of two values", came=f"one of {made.arity}", hint="operator.add"
            )
        if start is NOTHING:
            start = _STARTS.get(made.call, NOTHING) if _is_hashable(made.call) else NOTHING
        if start is NOTHING:
            raise PipelineError(
                f"Cumulate({made})",
                needed="the value to start with",
                came="a function of which none is known",
                hint=f"Cumulate({made}, start=0)",
            )
        object.__setattr__(self, "function", made)
        object.__setattr__(self, "first", start)

    def start(self) -> State:
        return self.first

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        given = rules.call(self.function, (state, front[0]))
        return given, (given,)

    def __str__(self) -> str:
        return f"Σ {self.function}" if self.function.name != "+" else "Σ"


@dataclass(frozen=True, init=False)
class Insert(Processor):
    """Puts these events before those of the stream. As a push gives one event, it comes so many pushes later."""

    values: tuple[Value, ...]

    def __init__(self, *values: Value) -> None:
        if not values:
            raise PipelineError("Insert()", needed="one event or more", came="none", hint="Insert(0)")
        object.__setattr__(self, "values", values)

    def start(self) -> State:
        return self.values

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return (*state[1:], front[0]), (state[0],)

    def __str__(self) -> str:
        return f"insert {', '.join(map(repr, self.values))}"


def Delay(k: int, start: Value) -> Insert:  # noqa: N802 - it stands where boxes stand
    """The stream `k` pushes later, with `start` in the meantime."""
    _require_count(k, "Delay(k, start)", least=1)
    return Insert(*(start,) * k)


@dataclass(frozen=True)
class Freeze(Processor):
    """Gives the first event again and again, once for every event."""

    def start(self) -> State:
        return ()

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        kept = state or front
        return kept, kept

    def __str__(self) -> str:
        return "freeze"


@dataclass(frozen=True)
class Last(Processor):
    """Gives the last event of the stream, when that ends."""

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return front, (NOTHING,)

    def end(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return (), front or state or (NOTHING,)

    @property
    def acts_at_end(self) -> bool:
        return True

    def __str__(self) -> str:
        return "last"


@dataclass(frozen=True, init=False)
class Window(Processor):
    """What a box gives last for each `width` successive events, as if these were all; silent until there are so many.

    The state has one run of the box for each window that is open, the oldest first: its state, and what it gave last.
    """

    inner: Processor
    width: int

    def __init__(self, inner: Processor | Pipeline, width: int) -> None:
        _require_count(width, "Window(box, width)", least=1)
        object.__setattr__(self, "inner", box_of(inner, "Window(box, width)"))
        object.__setattr__(self, "width", width)

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        runs = []
        for inside, last in (*state, (self.inner.start(), ())):
            inside, (out,) = self.inner.step(inside, front, rules)
            runs.append((inside, last if out is NOTHING else (out,)))
        if len(runs) < self.width:
            return tuple(runs), (NOTHING,)
        due, *others = runs
        return tuple(others), due[1] or (NOTHING,)

    def __str__(self) -> str:
        return f"window {self.width}: {self.inner}"


@dataclass(frozen=True, init=False)
class Slice(Processor):
    """A run of a box for each key. Keys come on the first input and events on the second; with `by`, a function of the
    event says its key, and there is one input.

    The state has a pair for each key that came, the oldest first.
    """

    inner: Processor
    by: Function | None = None

    def __init__(self, inner: Processor | Pipeline, by: Callable[[Value], Value] | Function | None = None) -> None:
        object.__setattr__(self, "inner", box_of(inner, "Slice(box)"))
        object.__setattr__(self, "by", None if by is None else function_of(by, "Slice(..., by=)", 1))

    @property
    def inputs(self) -> int:  # type: ignore[override]
        return 2 if self.by is None else 1

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        # The key is no number that is calculated with, so it is not fitted into a domain.
        key = front[0] if self.by is None else self.by.call(front[0])
        runs = dict(state)
        inside, outs = self.inner.step(runs.get(key, self.inner.start()), front[-1:], rules)
        runs[key] = inside
        return tuple(runs.items()), outs

    def __str__(self) -> str:
        return f"slice: {self.inner}" if self.by is None else f"slice by {self.by}: {self.inner}"


@dataclass(frozen=True)
class Group(Processor):
    """A whole pipeline as one box."""

    pipeline: Pipeline = field(repr=False)

    @property
    def inputs(self) -> int:  # type: ignore[override]
        return len(self.pipeline.inputs)

    @property
    def outputs(self) -> int:  # type: ignore[override]
        return len(self.pipeline.outputs)

    def start(self) -> State:
        return self.pipeline.start()

    def step(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return self.pipeline.push(state, front, rules)

    def end(self, state: State, front: tuple[Value, ...], rules: Rules) -> tuple[State, Outs]:
        return self.pipeline.push(state, front or (NOTHING,) * self.inputs, rules, ends=True)

    @property
    def acts_at_end(self) -> bool:
        return any(box.acts_at_end for box in self.pipeline.boxes.values())

    def __str__(self) -> str:
        return self.pipeline.name


def box_of(given: object, where: str) -> Processor:
    """What a user gave as the box inside another: a processor or a pipeline, with one input and one output."""
    from streamtight.program.pipeline import Pipeline

    box = Group(given) if isinstance(given, Pipeline) else given
    if not isinstance(box, Processor):
        raise PipelineError(where, needed="a processor or a pipeline", came=repr(given), hint="Cumulate(operator.add)")
    if (box.inputs, box.outputs) != (1, 1):
        raise PipelineError(
            where,
            needed="a box with one input and one output inside",
            came=f"{box}, which has {box.inputs} and {box.outputs}",
            hint="a pipeline that makes one stream of its inputs first",
        )
    if box.acts_at_end:
        raise PipelineError(
            where,
            needed="a box inside that does not wait for the end of the stream",
            came=f"{box}",
            hint="Last() outside",
        )
    return box


def _require_count(value: object, where: str, *, least: int) -> None:
    if type(value) is not int or value < least:
        raise PipelineError(where, needed=f"a whole number from {least} on", came=repr(value), hint=str(max(least, 3)))
