"""Of which type are the answers of a query? Found without running it, as far as its operations tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamtight.method.watch.kernel import BOOL, FLOAT, INT
from streamtight.properties.monitor import Compiled
from streamtight.properties.straight import Step, Temporary
from streamtight.properties.term import Apply, Constant, Current, Slot, Term, Value

TEXT = "s"
SQL_TYPES = {BOOL: "boolean", INT: "bigint", FLOAT: "double", TEXT: "string"}
_TRUTH = {"less", "at_most", "more", "at_least", "equal", "unequal", "not", "and", "or", "implies", "iff"}
_ORDER = (BOOL, INT, FLOAT)

Kinds = Mapping[str | None, str | None]


def answer_type(compiled: Compiled, fields: Kinds) -> str | None:
    """The type of the answers, as Spark writes it; None if that cannot be told.

    fields   the types of the fields of items, where they are known
    """
    program = compiled.program
    registers: list[str | None] = [_of_value(value) for value in program.start]
    is_set = [value is not None for value in program.start]
    for _ in range(3 * len(registers) + 3):  # a type grows at most twice; one more round shows that none does
        before = list(registers)
        for step in program.steps.values():
            kinds = _Kinds(step, registers, fields)
            for place, term in step.updates:
                found = kinds.of(term)
                registers[place] = _either(registers[place], found) if is_set[place] else found
                is_set[place] = True
        if registers == before:
            break
    answers = [
        _Kinds(step, registers, fields).of(step.answer)
        for step in program.steps.values()
        if isinstance(step.answer, Term)
    ]
    if not answers:
        return SQL_TYPES[BOOL]  # it never has one
    kind: str | None = answers[0]
    for each in answers[1:]:
        kind = _either(kind, each)
    return None if kind is None else SQL_TYPES[kind]


def _of_value(value: Value) -> str | None:
    return {bool: BOOL, int: INT, float: FLOAT, str: TEXT}.get(type(value))


def _either(one: str | None, other: str | None) -> str | None:
    """The type of something that is of the one or of the other."""
    if one == other:
        return one
    return max(one, other, key=_ORDER.index) if one in _ORDER and other in _ORDER else None


class _Kinds:
    """The types of the terms of a step."""

    def __init__(self, step: Step, registers: Sequence[str | None], fields: Kinds) -> None:
        self._registers, self._fields = registers, fields
        self._values: list[str | None] = []
        for term in step.values:
            self._values.append(self.of(term))

    def of(self, term: Term) -> str | None:
        match term:
            case Constant(value):
                return _of_value(value)
            case Slot(place):
                return self._registers[place]
            case Temporary(number):
                return self._values[number]
            case Current(name):
                return self._fields.get(name)
            case Apply(operation, arguments):
                return None if operation.code is None else self._applied(operation.name, list(map(self.of, arguments)))
        return None

    def _applied(self, name: str, kinds: list[str | None]) -> str | None:
        if name in _TRUTH:
            return BOOL
        if name in ("divide", "sqrt"):
            return FLOAT
        if name == "choose":
            return _either(kinds[1], kinds[2])
        if name in ("min", "max"):
            return _either(*kinds)
        if any(kind not in _ORDER for kind in kinds):
            return TEXT if name == "add" and set(kinds) == {TEXT} else None
        return FLOAT if FLOAT in kinds else INT
