"""Kripke structures: small systems, given in Python or as SMV text, for a pipeline to watch.

A system has variables with few values each. It says in which states it may begin, and what may come after a state:

>>> def after(now):
...     if now.colour == "red":
...         return {"colour": {"red", "green"} if now.waited < 2 else "green", "waited": min(now.waited + 1, 2)}
...     return {"colour": "red", "waited": 0}
>>> light = Kripke({"colour": ["red", "green"], "waited": range(3)}, {"colour": "red", "waited": 0}, after)
>>> light.states
[('red', 0), ('red', 1), ('green', 1), ('red', 2), ('green', 2)]
>>> light.successors
[[1, 2], [3, 4], [0], [4], [0]]

What `after` does not name stays as it is. A set stands for any of its values, ANY for all that the variable has; and
several dicts for several ways to go on. The same in SMV:

>>> Kripke.from_smv('''
... MODULE main
... VAR colour : {red, green}; waited : 0..2;
... ASSIGN
...   init(colour) := red;
...   init(waited) := 0;
...   next(colour) := case colour = red & waited < 2 : {red, green}; colour = red : green; TRUE : red; esac;
...   next(waited) := case colour = red : min(waited + 1, 2); TRUE : 0; esac;
... ''').successors == light.successors
True
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final

from streamtight.errors import PipelineError
from streamtight.program.model import BOOL, Domain, domain_of

Value = Any
MOST_STATES: Final = 100_000


class _Any(Enum):
    """All values that a variable has."""

    ANY = "any"

    def __repr__(self) -> str:
        return "ANY"


ANY: Final = _Any.ANY
"""All values that a variable has."""


class State(Mapping[str, Value]):
    """The values of all variables: `state.x`, or `state["x"]` where the name is no word of Python."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def __getitem__(self, name: str) -> Value:
        try:
            return self._values[name]
        except KeyError:
            raise _unknown(name, self._values) from None

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return _told(self._values)


First = Mapping[str, Value] | Sequence[Mapping[str, Value]] | Callable[[State], bool]
After = Callable[[State], Mapping[str, Value] | Iterable[Mapping[str, Value]]]


class Kripke:
    """A system of which all states that it can reach are known.

    variables   for each, its values: a list, a range, or bool
    first       in which states it begins: a dict, where what is not named may be anything; several of them; or a
                function that tells for a state whether it is one
    after       a function of a state: what may come next, as a dict or several; what is not named stays as it is
    limit       how many states there may be
    """

    names: tuple[str, ...]
    """The variables, in the order of the values in a state."""
    domains: dict[str, Domain]
    states: list[tuple[Value, ...]]
    """Those that can be reached, the nearest first."""
    first_states: list[int]
    """Their places in `states`."""
    successors: list[list[int]]
    """For each state, where it may go."""

    def __init__(
        self, variables: Mapping[str, object], first: First, after: After, *, limit: int = MOST_STATES
    ) -> None:
        self._values = {name: _values_of(name, given) for name, given in variables.items()}
        if not self._values:
            raise PipelineError(
                "Kripke", needed="a variable", came="none", hint="Kripke({'x': [0, 1]}, {'x': 0}, after)"
            )
        self.names = tuple(self._values)
        self.domains = {
            name: BOOL if given is bool else domain_of(self._values[name], f"the variable {name!r}")
            for name, given in variables.items()
        }
        self._ranks = {
            name: {_key(value): rank for rank, value in enumerate(values)} for name, values in self._values.items()
        }
        self._limit = limit
        self._explore(list(self._begins(first)), after)

    @classmethod
    def from_smv(cls, text: str, *, limit: int = MOST_STATES) -> Kripke:
        """The system that an SMV text describes: one module, with booleans, ranges and enumerations.

        Names are texts in Python, and TRUE and FALSE are Booleans.
        """
        from streamtight.program.smv_system import read_smv

        system = read_smv(text)
        return cls(system.variables, system.first(), system.after, limit=limit)

    def __repr__(self) -> str:
        return f"<Kripke structure: {', '.join(self.names)}; {len(self.states)} states>"

    def _begins(self, first: First) -> Iterator[tuple[Value, ...]]:
        where = "Kripke(..., first)"
        if callable(first):
            for state in self._completed(dict.fromkeys(self.names, ANY), where):
                if self._asked(first, state, where):
                    yield state
            return
        for given in [first] if isinstance(first, Mapping) else first:
            yield from self._completed({**dict.fromkeys(self.names, ANY), **self._checked(given, where)}, where)

    def _explore(self, begins: list[tuple[Value, ...]], after: After) -> None:
        places = {state: place for place, state in enumerate(dict.fromkeys(begins))}
        if not places:
            raise PipelineError("Kripke(..., first)", needed="a state to begin with", came="none", hint="{'x': 0}")
        self.states = list(places)
        self.first_states = list(range(len(places)))
        self.successors = []
        for state in self.states:  # which grows meanwhile
            told = _told(dict(zip(self.names, state, strict=True)))
            where = f"what comes after {told}"
            given = self._asked(after, state, where)
            found: dict[int, None] = {}
            for each in [given] if isinstance(given, Mapping) else _listed(given, where):
                changed = {**dict(zip(self.names, state, strict=True)), **self._checked(each, where)}
                for following in self._completed(changed, where):
                    if following not in places:
                        if len(places) >= self._limit:
                            raise self._too_many(f"more than {self._limit:,}", where)
                        places[following] = len(places)
                        self.states.append(following)
                    found[places[following]] = None
            if not found:
                raise PipelineError(
                    where, needed="a state that comes next", came="none", hint="return {} where it stays as it is"
                )
            self.successors.append(list(found))

    def _asked(self, function: Callable[[State], Any], state: tuple[Value, ...], where: str) -> Any:
        now = State(dict(zip(self.names, state, strict=True)))
        try:
            return function(now)
        except PipelineError:
            raise
        except Exception as error:
            raise PipelineError(
                where, needed="an answer of the function", came=f"{type(error).__name__}: {error}", hint=f"for {now}"
            ) from error

    def _checked(self, given: object, where: str) -> Mapping[str, Value]:
        if not isinstance(given, Mapping):
            raise PipelineError(
                where, needed="a dict of variables", came=repr(given), hint=f"{{{self.names[0]!r}: ...}}"
            )
        for name in given:
            if name not in self._values:
                raise _unknown(name, self._values, where)
        return given

    def _completed(self, given: Mapping[str, Value], where: str) -> Iterator[tuple[Value, ...]]:
        """All states with these values, where sets and ANY leave a choice."""
        options = []
        for name in self.names:
            value, values, ranks = given[name], self._values[name], self._ranks[name]
            if value is ANY:
                options.append(values)
                continue
            for each in value if type(value) is set else (value,):
                if _key(each) not in ranks:
                    raise PipelineError(
                        where,
                        needed=f"values of {name}: {', '.join(map(repr, values[:10]))}{', ...' if values[10:] else ''}",
                        came=repr(each),
                        hint="one of these, or a larger domain",
                    )
            options.append(sorted(value, key=lambda each: ranks[_key(each)]) if type(value) is set else [value])
        count = 1
        for each in options:
            count *= len(each)
        if count > self._limit:
            raise self._too_many(f"{count:,} at once", where)
        return itertools.product(*options)

    def _too_many(self, came: str, where: str) -> PipelineError:
        return PipelineError(
            where, needed=f"at most {self._limit:,} states", came=came, hint="fewer values, or Kripke(..., limit=...)"
        )


def _values_of(name: str, given: object) -> list[Value]:
    if given is bool:
        return [False, True]
    if not isinstance(name, str) or not isinstance(given, (list, tuple, range, set, frozenset)) or not given:
        raise PipelineError(
            f"the variable {name!r} of a Kripke structure",
            needed="the values that it can have: a list, a range, or bool",
            came=repr(given),
            hint=f"{{{name!r}: [0, 1, 2]}}",
        )
    return list(dict.fromkeys(sorted(given, key=repr) if isinstance(given, (set, frozenset)) else given))


def _key(value: Value) -> tuple[type, Value]:
    """What tells True from 1."""
    try:
        hash(value)
    except TypeError:
        return (type(value), repr(value))
    return (type(value), value)


def _listed(given: Any, where: str) -> Iterable[Any]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise PipelineError(where, needed="a dict, or several", came=repr(given), hint="return {'x': 1}")
    return given


def _told(values: Mapping[str, Value]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in values.items())


def _unknown(name: object, values: Mapping[str, Value], where: str = "a state") -> PipelineError:
    return PipelineError(where, needed=f"variables among {', '.join(values)}", came=repr(name), hint=next(iter(values)))
