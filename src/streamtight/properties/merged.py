"""What a program calculates or keeps twice, it calculates and keeps once.

Machines are put together from machines, so the same value is often made in several places: a split keeps what its left
part gave beside what it makes of it, and each part of a formula reads the item for itself. Two registers are the same
if they begin with the same value and every step gives them the same; that is found by assuming that all which begin
alike are the same, and by taking apart those for which a step shows that they are not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from streamtight.properties.straight import Step, Straight, Temporary
from streamtight.properties.term import Apply, Constant, Current, Slot, Term, Value, replaced
from streamtight.properties.transducer import Nothing


def merged(program: Straight) -> Straight:
    """The same program, without registers and values that another one has anyway."""
    classes = _classes(program)
    first = {number: register for register, number in reversed(list(enumerate(classes)))}
    kept = sorted(first.values())
    place = {register: kept.index(first[number]) for register, number in enumerate(classes)}
    steps = {way: _step(step, classes, place, set(kept)) for way, step in program.steps.items()}
    start = tuple(program.start[register] for register in kept)
    return Straight(program.tags, len(kept), program.controls, start, program.first, steps)


def _classes(program: Straight) -> list[int]:
    """For each register, the number of those that are always the same as it."""
    classes = _numbered([_constant_key(value) for value in program.start])
    while True:
        signatures: list[list[Hashable]] = [[number] for number in classes]
        for step in program.steps.values():
            temporaries = _temporaries(step, classes)
            updates = dict(step.updates)
            for register, signature in enumerate(signatures):
                signature.append(_key(updates.get(register, Slot(register)), classes, temporaries))
        finer = _numbered([tuple(signature) for signature in signatures])
        if finer == classes:
            return classes
        classes = finer


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


def _temporaries(step: Step, classes: Sequence[int]) -> list[int]:
    """For each value of a step, the first one that is the same."""
    found: list[int] = []
    known: dict[Hashable, int] = {}
    for number, term in enumerate(step.values):
        found.append(known.setdefault(_key(term, classes, found), number))
    return found


def _key(term: Term, classes: Sequence[int], temporaries: Sequence[int]) -> Hashable:
    """Terms with equal keys have equal values."""
    match term:
        case Constant(value):
            return _constant_key(value)
        case Slot(register):
            return "register", classes[register]
        case Temporary(number):
            return "value", temporaries[number]
        case Current(name):
            return "field", name
        case Apply(operation, arguments):
            if operation.code is None:  # a function may count its calls
                return "function", id(term)
            return operation.name, tuple(_key(each, classes, temporaries) for each in arguments)
    raise TypeError(f"not a term: {term!r}")


def _constant_key(value: Value) -> Hashable:
    is_plain = type(value) in (int, float, bool, str, type(None))
    return "constant", type(value), (repr(value) if type(value) is float else value) if is_plain else id(value)


def _step(step: Step, classes: Sequence[int], place: Mapping[int, int], kept: set[int]) -> Step:
    same = _temporaries(step, classes)
    numbers = {old: new for new, old in enumerate(sorted(set(same)))}

    def by(each: Term) -> Term | None:
        if isinstance(each, Slot):
            return Slot(place[each.place])
        return Temporary(numbers[same[each.number]]) if isinstance(each, Temporary) else None

    updates = [(place[register], replaced(term, by)) for register, term in step.updates if register in kept]
    return Step(
        tuple(replaced(step.values[old], by) for old in numbers),
        tuple((at, term) for at, term in updates if not (isinstance(term, Slot) and term.place == at)),
        step.answer if isinstance(step.answer, Nothing) else replaced(step.answer, by),
        step.then,
        None if step.status is None else replaced(step.status, by),
    )
