"""Code for machines, as text: the same few lines for one item at a time and for blocks of items.

    if tag == 0:                 # v
        if control == 0:
            t0 = r0 + cur
            r0 = t0
            ...

Nothing in the text is a user's own: names are made here, numbers are printed exactly, and everything else is handed
over as a global name.
"""

from __future__ import annotations

import keyword
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtight.properties.straight import Step, Straight, Temporary
from streamtight.properties.term import Apply, Constant, Current, Slot, Term, Value, fields_of
from streamtight.properties.transducer import CONFLICT, UNDEFINED, Nothing, Status, status_of

Answer = Callable[[Status | str, str], list[str]]
"""Writes what is done with the answer of a step: its status, or the text of that, and the text of its value."""


@dataclass(slots=True)
class Writer:
    """Writes terms as text, and keeps what the text refers to."""

    fields: dict[str | None, str]
    """How the item, and each field of it, is written."""
    globals: dict[str, Any] = field(default_factory=lambda: {"sqrt": math.sqrt, "nan": math.nan, "inf": math.inf})

    def term(self, term: Term) -> str:
        """The text of a term."""
        match term:
            case Constant(value):
                return self._constant(value)
            case Slot(place):
                return f"r{place}"
            case Temporary(number):
                return f"t{number}"
            case Current(name):
                return self.fields[name]
            case Apply():
                return self._applied(term)
        raise TypeError(f"not a term: {term!r}")

    def _constant(self, value: Value) -> str:
        if type(value) is float and not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "(-inf)"
        if type(value) in (float, bool) or (type(value) is int and abs(value) < 2**63):
            return f"({value!r})" if value < 0 or repr(value).startswith("-") else repr(value)
        return self.named(value)

    def _applied(self, term: Apply) -> str:
        operation, texts = term.operation, [self.term(each) for each in term.arguments]
        if operation.code is None or (operation.repeats and any(isinstance(each, Apply) for each in term.arguments)):
            # What is written more than once would be calculated more than once.
            return f"{self.named(operation.function)}({', '.join(texts)})"
        return operation.code.format(*texts)

    def named(self, value: Value) -> str:
        """A global name for a value."""
        for name, known in self.globals.items():
            if known is value:
                return name
        name = f"g{len(self.globals)}"
        self.globals[name] = value
        return name


def step_lines(step: Step, control: int, writer: Writer, answer: Answer) -> list[str]:
    """The lines of a step."""
    lines = [f"t{number} = {writer.term(term)}" for number, term in enumerate(step.values)]
    status: Status | str = status_of(step.answer) if isinstance(step.answer, Nothing) else Status.ONE
    if step.status is not None:
        lines.append(f"status_now = {writer.term(step.status)}")
        status = "status_now"
    value = writer.named(step.answer) if isinstance(step.answer, Nothing) else writer.term(step.answer)
    if isinstance(step.answer, Slot) and step.answer.place in {place for place, _ in step.updates}:
        lines.append(f"kept = {value}")  # the answer is what the register was before
        value = "kept"
    if step.updates:  # all at once, and after all that may raise: an item that is refused changes nothing
        places = ", ".join(f"r{place}" for place, _ in step.updates)
        lines.append(f"{places} = {', '.join(writer.term(term) for _, term in step.updates)}")
    if step.then != control:
        lines.append(f"control = {step.then}")
    return [*lines, *answer(status, value)] or ["pass"]


def body(
    program: Straight,
    lines_of: Callable[[Step, int], list[str]],
    tags: Sequence[str],
    unknown: list[str] | None,
) -> list[str]:
    """The lines for one item: which tag, which control state, and its step.

    tags      how each tag is written in a test
    unknown   what is done if the tag is none of these; None if it is known to be one of them
    """
    # Tags that do the same are one case, and the one of most tags needs no test: hundreds of tags compile in no time.
    cases: dict[tuple[str, ...], list[str]] = {}
    for tag, text in zip(program.tags, tags, strict=True):
        controls = _of_controls([lines_of(program.steps[c, tag], c) for c in range(program.controls)])
        cases.setdefault(tuple(controls), []).append(f"tag == {text}")
    *tested, last = sorted(cases.items(), key=lambda case: len(case[1]))
    if unknown is not None:
        tested, last = [*tested, last], (tuple(unknown), [])
    if not tested:
        return list(last[0])
    lines: list[str] = []
    for text_of_case, tests in tested:
        lines += [f"{'elif' if lines else 'if'} {' or '.join(tests)}:", *indented(text_of_case)]
    return [*lines, "else:", *indented(last[0])]


def _of_controls(texts: list[list[str]]) -> list[str]:
    if len(texts) == 1:
        return texts[0]
    lines: list[str] = []
    for control, text in enumerate(texts):
        is_last = control == len(texts) - 1
        lines.append("else:" if is_last else f"{'elif' if control else 'if'} control == {control}:")
        lines += indented(text)
    return lines


def indented(lines: Iterable[str]) -> list[str]:
    """The lines, further to the right."""
    return [f"    {line}" for line in lines]


def used_fields(program: Straight) -> list[str | None]:
    """The fields of items that the code reads, in order; None stands for the item itself."""
    terms = [term for step in program.steps.values() for term in step.terms]
    return sorted(fields_of(terms), key=lambda name: (name is not None, name))


def registers(program: Straight) -> list[str]:
    """The names of its registers."""
    return [f"r{place}" for place in range(program.registers)]


# -- one item at a time ----------------------------------------------------------------------------------------------


def item_code(program: Straight) -> Callable[..., tuple[Callable[..., Value], Callable[[], Any]]]:
    """A function that makes, from a control state and registers, a function of an item and one that tells the state."""
    names = used_fields(program)
    writer = Writer({name: "cur" if name is None else f"f{number}" for number, name in enumerate(names)})
    reads = [f"f{number} = {_read(name)}" for number, name in enumerate(names) if name is not None]

    def answer(status: Status | str, value: str) -> list[str]:
        if isinstance(status, Status):
            return [f"return {value}"]
        return [f"return {value} if {status} == 1 else {writer.named(NOTHING)}[{status}]"]

    def lines_of(step: Step, control: int) -> list[str]:
        used = {writer.fields[name] for name in fields_of(step.terms)}
        lines = step_lines(step, control, writer, answer)
        return [*(read for read in reads if read.split(" ", 1)[0] in used), *lines]

    steps = body(program, lines_of, [repr(tag) for tag in program.tags], ["pass"])
    kept = ["control", *registers(program)]
    lines = [
        f"def made({', '.join(kept)}, failed, unknown):",
        "    def update(tag, cur=None):",
        f"        nonlocal {', '.join(kept)}",
        "        try:",
        *indented(indented(indented(steps))),
        "        except Exception as error:",
        "            raise failed(error, tag, cur) from error",
        "        raise unknown(tag)",
        "    def state():",
        f"        return control, ({''.join(f'{name}, ' for name in kept[1:])})",
        "    return update, state",
    ]
    return compiled(lines, "made", writer.globals)


def _read(name: str) -> str:
    """How a field is read: items are dicts, or have it as an attribute."""
    is_plain = name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("_")
    return f"cur[{name!r}] if isinstance(cur, dict) else {f'cur.{name}' if is_plain else f'getattr(cur, {name!r})'}"


# -- blocks of items -------------------------------------------------------------------------------------------------


def block_code(program: Straight, *, is_keyed: bool) -> Callable[..., Any]:
    """A function of a block: tags (numbers), a list for each field that is used, and the state; with keys, states.

    It gives the statuses and values of the answers, and the state; with keys, the states were changed in their place.
    What an operation raises comes with the number of its item.
    """
    names = used_fields(program)
    columns = [f"f{number}" for number in range(len(names))]
    writer = Writer(dict(zip(names, columns, strict=True)))

    def answer(status: Status | str, value: str) -> list[str]:
        if isinstance(status, str):
            return [f"status[i] = {status}", f"values[i] = {value} if {status} == 1 else None"]
        return [f"values[i] = {value}"] if status is Status.ONE else [f"status[i] = {int(status)}"]

    def lines_of(step: Step, control: int) -> list[str]:
        return step_lines(step, control, writer, answer)

    steps = body(program, lines_of, [str(number) for number in range(len(program.tags))], None)
    kept = ["control", *registers(program)]
    each = ", ".join(["tag", *(["key"] if is_keyed else []), *columns])
    given = ", ".join(["tags", *(["keys"] if is_keyed else []), *(f"all_{name}" for name in columns)])
    state = f"{', '.join(kept)}, = "
    load = [state + "states[key]"] if is_keyed else []
    store = [f"states[key] = ({', '.join(kept)},)"] if is_keyed else []
    lines = [
        f"def block({given}, {'states' if is_keyed else 'state'}):",
        "    status, values, i = bytearray(b'\\x01') * len(tags), [None] * len(tags), -1",
        *([] if is_keyed else [f"    {state}state"]),
        "    try:",
        f"        for {each}, in zip({given}):",
        "            i += 1",
        *indented(indented(indented([*load, *steps, *store]))),
        "    except Exception as error:",
        "        raise AtItem(i, error) from error",
        f"    return status, values, {'None' if is_keyed else '(' + ', '.join(kept) + ',)'}",
    ]
    return compiled(lines, "block", {**writer.globals, "AtItem": AtItem})


class AtItem(Exception):
    """What an operation raised at an item of a block."""

    def __init__(self, number: int, error: Exception) -> None:
        super().__init__(number, error)
        self.number, self.error = number, error


def compiled(lines: Sequence[str], name: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function of this name in these lines."""
    scope = dict(names)
    exec(compile("\n".join(lines), "<query>", "exec"), scope)  # noqa: S102 - text that is made here, see above
    return scope[name]  # type: ignore[no-any-return]


NOTHING = {int(Status.NONE): UNDEFINED, int(Status.MANY): CONFLICT}


def as_values(status: Iterable[int], values: Iterable[Value]) -> list[Value]:
    """Statuses and values as answers."""
    return [NOTHING.get(each, value) for each, value in zip(status, values, strict=True)]
