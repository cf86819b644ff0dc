"""Models as Python: one function that gives all steps from a state.

>>> from streamtight.method.explore.build import World, model_of
>>> from streamtight.program.limits import Limits, modulo
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Trim
>>> model = model_of(Pipeline.wired("in -> t -> out", t=Trim(1)), World(Limits(queue=3, integers=modulo(4))))
>>> system = compiled(model, [model.pipes["out"].present])
>>> system.steps(system.first)
[(0, (1,), 0, 0)]
>>> system.steps((1,))
[(0, (1,), 1, 0)]

What the watched terms do not depend on is left out: here the values, so that there is one choice. What only depends on
the state is calculated once for all choices.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streamtight.program.model import Choice, Model, Stop, Table, Term, Value, evaluate, parts_of

State = tuple[Value, ...]
Step = tuple[int, State, int, int]
"""What was chosen (its number), the state after it, which watched terms were true (bits), which stop came (or 0)."""

MOST_CHOICES = 200_000
"""What the world can choose in one step; with more, a single state would take seconds."""


MOST_NESTED = 25
"""Parentheses in one line of text: Python refuses to read too many."""


class TooManyChoices(Exception):
    """A step has more choices than can be gone through."""

    def __init__(self, count: int) -> None:
        super().__init__(f"each push has {count:,} choices; {MOST_CHOICES:,} can be gone through")
        self.count = count


@dataclass(frozen=True, slots=True)
class System:
    """A model that can be searched: its first state, and all steps from a state."""

    first: State
    steps: Callable[[State], list[Step]]
    choices: Sequence[Mapping[str, Value]]
    """What each number of a choice means."""
    stops: Sequence[Stop]
    """What each number of a stop means, from 1."""
    variables: Sequence[str]
    """The names of what a state holds."""


def compiled(model: Model, watched: Sequence[Term], *, stops: bool = True) -> System:
    """The model as far as these terms depend on it. Each of them is true or false in a step."""
    stopping = [stop for stop in model.stops if stop.when is not model.terms.false] if stops else []
    variables, choices = model.cone([*watched, *(stop.when for stop in stopping)])
    places = {each.name: f"s{place}" for place, each in enumerate(variables)}
    names = {**places, **{each.name: f"c{place}" for place, each in enumerate(choices)}}
    is_static = not any(part.op == "variable" and part.value in places for part in parts_of([model.allowed]))
    chosen = list(_combinations(choices, model.allowed if is_static else None))
    roots = [*(each.after for each in variables), *watched, *(stop.when for stop in stopping)]
    if not is_static:
        roots.append(model.allowed)
    writer = _Writer(names, set(places))
    writer.note(roots)
    after = [writer.text(each.after) for each in variables]
    bits = [f"({1 << place} if {writer.text(term)} else 0)" for place, term in enumerate(watched)]
    stop_text = "0"
    for number, stop in reversed(list(enumerate(stopping, 1))):
        stop_text = f"({number} if {writer.text(stop.when)} else {stop_text})"
    guard = [] if is_static else [f"if not {writer.text(model.allowed)}: continue"]
    lines = [
        "def steps(state):",
        *([f"    ({', '.join(places.values())},) = state"] if places else []),
        *(f"    {line}" for line in writer.before),
        "    found = []",
        f"    for {', '.join([*(names[each.name] for each in choices), 'number'])} in CHOICES:",
        *(f"        {line}" for line in [*writer.inside, *guard]),
        f"        found.append((number, ({''.join(f'{text}, ' for text in after)}), "
        f"{' | '.join(bits) or '0'}, {stop_text}))",
        "    return found",
    ]
    space: dict[str, Any] = {**writer.constants}
    space["CHOICES"] = [(*values, number) if choices else number for number, values in enumerate(chosen)]
    exec("\n".join(lines), space)  # noqa: S102 - our own text
    return System(
        tuple(each.first for each in variables),
        space["steps"],
        _Named([each.name for each in choices], chosen),
        stopping,
        list(places),
    )


class _Named(Sequence[Mapping[str, Value]]):
    """Combinations of choices, as dicts when they are asked for."""

    def __init__(self, names: Sequence[str], values: Sequence[tuple[Value, ...]]) -> None:
        self.names, self.values = names, values

    def __getitem__(self, place: Any) -> Any:
        return dict(zip(self.names, self.values[place], strict=True))

    def __len__(self) -> int:
        return len(self.values)


def _combinations(choices: Sequence[Choice], allowed: Term | None) -> Iterator[tuple[Value, ...]]:
    """All that can be chosen together. What makes no difference has its first value."""
    count = 1
    for each in choices:
        count *= len(each.domain.values)
    if count > 4 * MOST_CHOICES:
        raise TooManyChoices(count)
    names = [each.name for each in choices]
    for values in itertools.product(*(each.domain.values for each in choices)):
        chosen = dict(zip(names, values, strict=True))
        idle = any(
            each.only_if is not None and not chosen.get(each.only_if, True) and value != each.domain.values[0]
            for each, value in zip(choices, values, strict=True)
        )
        if not idle and (allowed is None or evaluate(allowed, chosen)):
            yield values


class _Tabled(dict[tuple[Value, ...], Value]):
    def __init__(self, table: Table) -> None:
        self.table = table

    def __missing__(self, arguments: tuple[Value, ...]) -> Value:
        given = self[arguments] = self.table(*arguments)
        return given


class _Writer:
    """Terms as texts of Python: what is used more than once gets a name, before the loop over choices or in it."""

    def __init__(self, names: Mapping[str, str], of_state: set[str]) -> None:
        self.names, self.of_state = names, of_state
        self.before: list[str] = []
        self.inside: list[str] = []
        self.constants: dict[str, Any] = {}
        self.texts: dict[Term, str] = {}
        self.uses: dict[Term, int] = {}
        self.fixed: dict[Term, bool] = {}

    def note(self, roots: Sequence[Term]) -> None:
        """See how often each term is used, and which depend on the state alone; name what deserves one."""
        ordered = parts_of(roots)
        for term in ordered:
            for each in term.arguments:
                self.uses[each] = self.uses.get(each, 0) + 1
            is_mine = term.op != "variable" or term.value in self.of_state
            self.fixed[term] = is_mine and all(self.fixed[each] for each in term.arguments)
        for root in roots:
            self.uses[root] = self.uses.get(root, 0) + 1
        users: set[Term] = {
            each for term in ordered if not self.fixed[term] for each in term.arguments if self.fixed[each]
        }
        depths: dict[Term, int] = {}
        for term in ordered:
            if term.op in ("constant", "variable"):
                continue
            depth = depths[term] = 1 + max((depths.get(each, 0) for each in term.arguments), default=0)
            # What depends on the state alone is calculated before the loop if something in the loop wants it.
            if self.uses[term] > 1 or term in users or depth > MOST_NESTED:
                depths[term] = 0
                lines = self.before if self.fixed[term] else self.inside
                name = f"t{len(self.texts)}"
                lines.append(f"{name} = {self._written(term)}")
                self.texts[term] = name

    def text(self, term: Term) -> str:
        """The term, or its name."""
        known = self.texts.get(term)
        return known if known is not None else self._written(term)

    def _written(self, term: Term) -> str:
        if term.op == "constant":
            return self._constant(term.value)
        if term.op == "variable":
            return self.names[term.value]
        parts = [self.text(each) for each in term.arguments]
        match term.op:
            case "not":
                return f"(not {parts[0]})"
            case "and" | "or":
                return f"({f' {term.op} '.join(parts)})"
            case "choose":
                return f"({parts[1]} if {parts[0]} else {parts[2]})"
            case "call":
                table = self._constant(term.value)
                called = f"{table}[{''.join(f'{part}, ' for part in parts[1:])}]"
                return (
                    called
                    if term.arguments[0].is_constant
                    else f"({called} if {parts[0]} else {self._constant(term.value.default)})"
                )
            case "divide" | "modulo":
                sign = "//" if term.op == "divide" else "%"
                divisor = term.arguments[1]
                if divisor.is_constant and divisor.value:
                    return f"({parts[0]} {sign} {parts[1]})"
                return f"({parts[0]} {sign} {parts[1]} if {parts[1]} else 0)"
        return f"({parts[0]} {_SIGNS[term.op]} {parts[1]})"

    def _constant(self, value: Any) -> str:
        if type(value) in (int, bool, str):
            return repr(value)
        for name, known in self.constants.items():
            if known is value or (isinstance(known, _Tabled) and known.table is value):
                return name
        name = f"K{len(self.constants)}"
        self.constants[name] = _Tabled(value) if isinstance(value, Table) else value
        return name


_SIGNS = {
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "equal": "==",
    "less": "<",
    "at_most": "<=",
}
