"""The few lines of Python that show a counterexample again."""

from __future__ import annotations

import ast
import builtins
import io
import itertools
import sys
import tokenize
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence

from streamtight.stream.dependence import Dependence
from streamtight.stream.event import FieldType, Kind, kinds_in, origin
from streamtight.stream.schedule import Schedule


def replay_code(
    verb: str,
    arguments: Sequence[str],
    jobs: Mapping[str, object],
    kinds: Iterable[Kind],
    schedule: Schedule,
    *,
    pick: str | None = None,
    as_batches: bool = False,
) -> str:
    """The imports, the kinds, the schedule and the call, ready to be pasted.

    `jobs` are what the call names; what cannot be imported, as it was made inside a function, is named in a comment.
    With `as_batches`, a schedule that is no more than its batches is a list of them, which is easier to read.
    """
    shown = [*kinds, *(event.kind for event in schedule.events)]
    call = f"tight.{verb}({', '.join(arguments)}){'' if pick is None else f'[{pick!r}]'}"
    known = {"tight", "schedule", *jobs, *(kind.name for kind in shown)}
    lines = ["import streamtight as tight", *_names_of_ours(call, known), *_imports_of(shown)]
    modules = [getattr(job, "__module__", None) for job in jobs.values()]
    for name, job in jobs.items():
        homes = [module for module in modules if module and getattr(sys.modules.get(module), name, None) is job]
        if homes and homes[0] != "__main__":
            lines.append(f"from {homes[0]} import {name}")
        else:
            lines.append(f"# {name}: as in your own code")
    lines += definitions(shown)
    is_plain = as_batches and schedule == Schedule(tuple((partition,) for partition, *_ in schedule.batches))
    lines.append(f"schedule = {_batches_code(schedule) if is_plain else schedule.code()}")
    lines += [f"verdict = {call}", "verdict.require()"]
    return _with_datetime_as_dt("\n".join(lines))


def _names_of_ours(call: str, known: Collection[str]) -> list[str]:
    """The import of the names in the call that are neither the user's nor Python's."""
    try:
        nodes = list(ast.walk(ast.parse(call)))
    except SyntaxError:  # a relation that has a function in it
        return []
    names = {node.id for node in nodes if isinstance(node, ast.Name)} - set(known) - set(vars(builtins))
    return [f"from streamtight import {', '.join(sorted(names))}"] if names else []


def _with_datetime_as_dt(code: str) -> str:
    """The same code with the module datetime as dt: where it is pasted, datetime may be the class."""
    if "datetime." not in code:
        return code
    lines = code.splitlines()
    tokens = list(tokenize.generate_tokens(io.StringIO(code).readline))
    for before, token, after in reversed(list(zip(tokens, tokens[1:], tokens[2:], strict=False))):
        if token.string == "datetime" and after.string == "." and before.string != ".":
            row, start = token.start[0] - 1, token.start[1]
            lines[row] = f"{lines[row][:start]}dt{lines[row][start + len('datetime') :]}"
    return "\n".join("import datetime as dt" if line == "import datetime" else line for line in lines)


def _batches_code(schedule: Schedule) -> str:
    lines = _grouped(f"[{', '.join(_grouped(map(repr, events)))}]" for (events,) in schedule.batches)
    return "\n".join(["[", *(f"    {line}," for line in lines), "]"])


def _grouped(items: Iterable[str]) -> list[str]:
    """The items of a list, where those that follow each other and are the same are written once."""
    groups = [(item, len(list(same))) for item, same in itertools.groupby(items)]
    return [text for item, count in groups for text in ([item] * count if count <= 2 else [f"*[{item}] * {count}"])]


def code_name(job: object, otherwise: str) -> str:
    """What the pasted lines call a job: its own name, unless it has none that Python could read."""
    name = getattr(job, "__name__", None) or getattr(job, "name", "")
    return name if isinstance(name, str) and name.isidentifier() else otherwise


def name_beside(job: object, wanted: object, otherwise: str) -> str:
    """What the user calls something in the module of a job."""
    module = sys.modules.get(getattr(job, "__module__", None) or "")
    names = [name for name, value in vars(module).items() if value is wanted] if module is not None else []
    return names[0] if names else otherwise


def definitions(kinds: Iterable[Kind]) -> list[str]:
    """The lines that define these kinds, each after those that it is made of."""
    ordered: dict[Kind, None] = {}
    for kind in kinds:
        _visit(kind, ordered)
    return [
        f"{kind.name} = tight.Kind({', '.join([repr(kind.name), *_fields(kind)])})"
        for kind in ordered
        if kind.name.isidentifier()
    ]


def _visit(kind: Kind, ordered: dict[Kind, None]) -> None:
    for declared in kind.fields.values():
        for inner in kinds_in(declared):
            _visit(inner, ordered)
    ordered.setdefault(kind)


def _fields(kind: Kind) -> list[str]:
    plain = [f"{name}={_type_code(declared)}" for name, declared in kind.fields.items() if name.isidentifier()]
    odd = {name: declared for name, declared in kind.fields.items() if not name.isidentifier()}
    return plain + ([f"**{{{', '.join(f'{n!r}: {_type_code(d)}' for n, d in odd.items())}}}"] if odd else [])


def _type_code(declared: FieldType) -> str:
    if isinstance(declared, Kind):
        return declared.name
    arguments = typing.get_args(declared)
    if origin(declared) is typing.Annotated:
        return f"typing.Annotated[{_type_code(arguments[0])}, {', '.join(map(repr, arguments[1:]))}]"
    if origin(declared) in (tuple, dict):
        inner = ", ".join("..." if part is ... else _type_code(part) for part in arguments)
        return f"{'tuple' if origin(declared) is tuple else 'dict'}[{inner}]"
    if arguments:
        return " | ".join("None" if part is type(None) else _type_code(part) for part in arguments)
    module = "" if declared.__module__ == "builtins" else f"{declared.__module__}."
    return f"{module}{declared.__qualname__}"


def _imports_of(kinds: Iterable[Kind]) -> list[str]:
    text = " ".join(definitions(kinds))
    lines = [f"import {module}" for module in ("datetime", "typing") if f"{module}." in text]
    return lines + (["import decimal", "from decimal import Decimal"] if "decimal." in text else [])


def relation_code(upto: Dependence) -> str:
    """A relation as it can be pasted; if it has a function in it, its text only names it."""
    text = repr(upto)
    try:
        compile(text, "", "eval")
    except SyntaxError:
        return f"...  # {text}\n"
    return text
