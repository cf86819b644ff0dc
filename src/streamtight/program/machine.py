"""The user's own stateful code as a machine: a state, and what one input makes of it.

>>> class Seen:
...     def start(self):
...         return set()
...     def step(self, state, event):
...         outputs = [] if event in state else [event]
...         return state | {event}, outputs
>>> machine = Machine("dedup", ("a", "b"), Seen().start, Seen().step)
>>> held = machine.first()
>>> held, outputs = machine.stepped(held, "a")
>>> outputs, machine.stepped(held, "a")[1]
(('a',), ())

States may be any values, also such that change: each step gets a copy. Two states are one if they look the same all the
way down.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any

from streamtight.errors import PipelineError
from streamtight.program.fork_join import ForkJoin
from streamtight.stream.event import Event, Kind

State = Any


class Held:
    """A state that can be told from others, and from which a run can go on."""

    __slots__ = ("key", "value")

    def __init__(self, value: State) -> None:
        self.value = value
        self.key = look(value)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.key == other.key

    def __repr__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True)
class Machine:
    """A program that gets one input after the other.

    inputs   all that can come
    step     the state after an input, and what comes out
    """

    name: str
    inputs: Sequence[Any]
    start: Callable[[], State]
    step: Callable[[State, Any], tuple[State, Iterable[Any]]]
    shown: Callable[[Any], str] = repr
    """How an input is written."""
    told: Callable[[State], str] | None = repr
    """How a state is written; None if it is nothing for people."""
    events: Sequence[Any] = ()
    """The event that each input stands for, if it is not the input itself; None where there is none."""

    def event_of(self, number: int) -> Event | None:
        """The event that an input is, or stands for."""
        given = self.events[number] if number < len(self.events) else self.inputs[number]
        return given if isinstance(given, Event) else None

    def __post_init__(self) -> None:
        if not callable(self.start) or not callable(self.step) or not self.inputs:
            raise PipelineError(
                f"Machine({self.name!r}, ...)",
                needed="inputs, a function that gives the first state, and one of a state and an input",
                came=f"{self.inputs!r}, {self.start!r}, {self.step!r}",
                hint="Machine('dedup', ('a', 'b'), set, lambda state, event: (state | {event}, [event]))",
            )

    def first(self) -> Held:
        """The state before the first input."""
        return Held(self.start())

    def stepped(self, held: Held, given: Any) -> tuple[Held, tuple[Any, ...]]:
        """The state after an input, and what came out."""
        after = self.step(copy.deepcopy(held.value), copy.deepcopy(given))
        if not isinstance(after, tuple) or len(after) != 2 or isinstance(after[1], (str, bytes)):
            raise PipelineError(
                f"{self.name}: a step with {self.shown(given)}",
                needed="the state after it, and a list of what comes out",
                came=repr(after),
                hint="return state, [output]",
            )
        return Held(after[0]), tuple(after[1])


def fork_join_machine(program: ForkJoin, inputs: Sequence[Any]) -> Machine:
    """A fork/join program, run by one worker."""

    def step(state: State, event: Any) -> tuple[State, list[Any]]:
        outputs: list[Any] = []
        after = program.update(state, event, outputs.append)
        return after, outputs

    unknown = [event for event in inputs if getattr(event, "kind", None) not in program.takes]
    if unknown:
        raise PipelineError(
            f"explore({type(program).__name__}(), on=...)",
            needed=f"events of {', '.join(kind.name for kind in program.takes)}",
            came=repr(unknown[0]),
            hint="a list of all events that can come",
        )
    return Machine(type(program).__name__, tuple(inputs), program.init, step)


def look(value: Any) -> Hashable:
    """What tells a value from others, all the way down: types too, since 1, True and 1.0 are equal for Python."""
    match value:
        case None | bool() | int() | str() | bytes():
            return type(value), value
        case type() | Kind():
            return value
        case float():
            return float, repr(value)  # so that NaN is itself, and -0.0 is not 0.0
        case list() | tuple():
            return type(value), *map(look, value)
        case dict():
            return type(value), *((look(key), look(each)) for key, each in value.items())
        case set() | frozenset():
            return type(value), frozenset(map(look, value))
        case FunctionType():
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            return FunctionType, value.__code__, *map(look, cells), look(value.__defaults__)
        case MethodType():
            return MethodType, look(value.__func__), look(value.__self__)
    if hasattr(value, "__dict__"):
        return type(value), *((name, look(each)) for name, each in vars(value).items())
    names = [name for cls in type(value).__mro__ for name in getattr(cls, "__slots__", ())]
    if names:
        return type(value), *((name, look(getattr(value, name, None))) for name in names)
    try:
        return type(value), pickle.dumps(value)
    except Exception as error:
        raise PipelineError(
            f"a state with {type(value).__name__} in it",
            needed="values that can be told apart",
            came=f"{value!r}, which cannot be pickled",
            hint="plain values, dataclasses, lists and dicts",
        ) from error
