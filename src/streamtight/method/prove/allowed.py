"""What a program may use: its inputs, and what is always the same.

A program is run many times before it is judged. So what it does to the world outside is looked for first, in its code
and in that of the functions that it calls, as far as they are the user's: what is found is refused by name and line.
What hides (behind `getattr`, in a C extension) is not seen here; a program that gives different results for the same
rows, or that changes what it has captured, is noticed when it is run.
"""

from __future__ import annotations

import copy
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from streamtight.errors import UnsupportedError

Program = Callable[..., Any]

_OUTSIDE = (
    "asyncio", "boto3", "concurrent", "ctypes", "fileinput", "ftplib", "glob", "http", "httpx", "io",
    "kafka", "logging", "mmap", "multiprocessing", "os", "pathlib", "posix", "posixpath", "psycopg2", "pymongo",
    "redis", "requests", "select", "shelve", "shutil", "signal", "smtplib", "socket", "sqlalchemy", "sqlite3", "ssl",
    "subprocess", "tempfile", "threading", "urllib", "urllib3", "webbrowser", "_io",
)  # fmt: skip
_CHANGING = ("random", "secrets", "time", "uuid", "gc", "platform", "getpass", "locale", "sys", "weakref", "inspect")
_SURE = {"sys": ("maxsize", "float_info"), "time": ()}
_CLOCKS = ("now", "today", "utcnow")
"""Methods of the classes of the module datetime that tell the time."""
_BUILTINS = {
    "open": "reads or writes files",
    "print": "prints",
    "input": "reads what is typed",
    "exec": "runs text as code",
    "eval": "runs text as code",
    "compile": "runs text as code",
    "__import__": "loads code by name",
    "breakpoint": "stops",
    "globals": "reaches all globals",
    "locals": "reaches all locals",
    "vars": "reaches all variables",
    "id": "shows where values are in memory",
    "hash": "differs from process to process",
}
_OF_SPARK = ("SparkContext", "RDD", "DataFrame", "Accumulator", "SparkSession")
_WRITES = ("STORE_GLOBAL", "DELETE_GLOBAL", "DELETE_DEREF", "STORE_ATTR", "DELETE_ATTR")


def require_allowed(program: Program, *, may_use_session: bool) -> None:
    """Raise if a program does what running it many times must not do, or what is not always the same."""
    for function, code in _codes_of(program):
        for instruction in dis.get_instructions(code):
            name = instruction.argval
            if instruction.opname in _WRITES or _rebinds(instruction, code):
                _refuse(code, instruction, f"changes {name}, which may not be its own", "return what it finds out")
            if instruction.opname == "IMPORT_NAME":
                _require_module(str(name), code, instruction)
            if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                _require_global(function, code, instruction)
            if name in _CLOCKS and _is_of_datetime(function, code, instruction):
                _refuse(code, instruction, f"uses .{name}, which tells the time", "the time as a column of an input")
        for name, value in _captured(function):
            _require_value(name, value, code, may_use_session=may_use_session)
        for name, value in _globals_of(function, code):
            _require_value(name, value, code, may_use_session=may_use_session)


def require_readable(program: Program) -> None:
    """Raise if a program has no code that could be read."""
    if getattr(program, "__code__", None) is None:
        raise UnsupportedError(
            repr(program), needed="a function of Python", came="a callable without code", hint="lambda rdd: ..."
        )


def parameters_of(program: Program) -> int | None:
    """How many inputs a program takes; None if that cannot be known."""
    try:
        parameters = list(inspect.signature(program).parameters.values())
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return None
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return len([one for one in positional if one.default is one.empty])


def names_of(program: Program, count: int) -> list[str]:
    """The names of the parameters of a program; made up where it has none."""
    try:
        names = [
            name for name, one in inspect.signature(program).parameters.items() if one.kind is not one.VAR_POSITIONAL
        ]
    except (TypeError, ValueError):
        names = []
    # Spark finds views by names of its own alphabet, large or small letters alike.
    fine = len({name.lower() for name in names}) == len(names) and all(name.isascii() for name in names)
    return [names[place] if fine and place < len(names) else f"input{place + 1}" for place in range(count)]


def constants_of(program: Program) -> list[Any]:
    """What stands in the code of a program, of the functions in it, and in what they have captured."""
    found: list[Any] = []
    for function, code in _codes_of(program):
        found += [constant for constant in code.co_consts if not isinstance(constant, types.CodeType)]
        found += [value for _, value in _captured(function)]
        found += [value for _, value in _globals_of(function, code)]
    return found


def uses(program: Program, name: str) -> bool:
    """Whether a program, or a function that it reaches, names an attribute or a global like this."""
    return any(name in code.co_names for _, code in _codes_of(program))


class Captured:
    """The containers that a program has captured, and what was in them before it was run."""

    def __init__(self, program: Program) -> None:
        self._before: list[tuple[str, Any, Any]] = []
        for function, code in _codes_of(program):
            for name, value in (*_captured(function), *_globals_of(function, code)):
                if isinstance(value, list | dict | set | bytearray):
                    try:
                        self._before.append((name, value, copy.deepcopy(value)))
                    except Exception:  # noqa: S112 - what cannot be copied is not watched
                        continue

    def changed(self) -> str | None:
        """The name of the first that is not as it was. It is put back, as the program was not to be run for real."""
        found = None
        for name, value, before in self._before:
            if not _is_equal(value, before):
                found = found or name
                value.clear()
                (value.extend if isinstance(value, list | bytearray) else value.update)(copy.deepcopy(before))
        return found


class Snapshot:
    """What a function has captured, and what was in it, when it was handed over."""

    def __init__(self, function: types.FunctionType) -> None:
        self.function = function
        self._before = [(name, value, _copied(value)) for name, value in _all_captured(function)]

    def changed(self) -> str | None:
        """The name of the first variable that is not as it was."""
        now = _all_captured(self.function)
        if len(now) != len(self._before):
            return "what"
        for (name, value, copy_), (_, other) in zip(self._before, now, strict=True):
            if value is not other or (copy_ is not None and not _is_equal(other, copy_)):
                return name
        return None


def _copied(value: Any) -> Any:
    if not isinstance(value, list | dict | set | bytearray):
        return None
    try:
        return copy.deepcopy(value)
    except Exception:  # what cannot be copied is not watched
        return None


def _all_captured(function: types.FunctionType, depth: int = 3) -> list[tuple[str, Any]]:
    """What a function has captured, and what the functions among that have."""
    found = _captured(function)
    inner = [value for _, value in found if isinstance(value, types.FunctionType) and depth]
    return found + [pair for value in inner for pair in _all_captured(value, depth - 1)]


def _is_equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except Exception:
        return True


def _codes_of(program: Any) -> Iterator[tuple[Any, types.CodeType]]:
    """The code of a program and of all functions of the user that it reaches, each with the function it is in."""
    start = _function_of(program)
    waiting: list[tuple[Any, Any]] = [(start, getattr(start, "__code__", None))]
    seen: set[int] = set()
    while waiting:
        function, code = waiting.pop()
        if not isinstance(code, types.CodeType) or id(code) in seen:
            continue
        seen.add(id(code))
        yield function, code
        waiting += [(function, inner) for inner in code.co_consts]
        for _, value in (*_captured(function), *_globals_of(function, code)):
            reached = _function_of(getattr(value, "func", value) if type(value).__name__ == "udf" else value)
            if isinstance(reached, types.FunctionType) and not _is_library(reached):
                waiting.append((reached, reached.__code__))


def _function_of(program: Any) -> Any:
    """The function of Python behind a partial, a decorator, a method or an object that can be called."""
    for _ in range(10):
        if isinstance(program, functools.partial):
            program = program.func
        elif hasattr(program, "__wrapped__"):
            program = program.__wrapped__
        elif isinstance(program, types.MethodType):
            program = program.__func__
        elif not isinstance(program, types.FunctionType | type):
            called = inspect.getattr_static(type(program), "__call__", None)
            program = called if isinstance(called, types.FunctionType) else program
    return program


def _is_library(function: types.FunctionType) -> bool:
    root = (function.__module__ or "").split(".")[0]
    return root in sys.stdlib_module_names or root in ("pyspark", "numpy", "pandas", "streamtight")


def _captured(function: Any) -> list[tuple[str, Any]]:
    """The variables that a function has from around it, and its defaults."""
    found: list[tuple[str, Any]] = []
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=False):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:
            continue
    return found + [("a default", value) for value in getattr(function, "__defaults__", None) or ()]


def _globals_of(function: Any, code: types.CodeType) -> list[tuple[str, Any]]:
    space = getattr(function, "__globals__", {})
    names = {
        one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")
    }
    return [(name, space[name]) for name in sorted(names) if name in space]


def _rebinds(instruction: dis.Instruction, code: types.CodeType) -> bool:
    """Whether it gives another value to a variable of a function around it."""
    return instruction.opname == "STORE_DEREF" and instruction.argval in code.co_freevars


def _require_global(function: Any, code: types.CodeType, instruction: dis.Instruction) -> None:
    name = instruction.argval
    space = getattr(function, "__globals__", {})
    if name in _BUILTINS and name not in space:
        _refuse(code, instruction, f"uses {name}, which {_BUILTINS[name]}", "leave it to the code around the program")
    value = space.get(name)
    if isinstance(value, types.ModuleType):
        root = value.__name__.split(".")[0]
        used = _attribute_after(code, instruction)
        if used in _SURE.get(root, ()):
            return
        _require_module(value.__name__, code, instruction)


def _attribute_after(code: types.CodeType, instruction: dis.Instruction) -> Any:
    following = (one for one in dis.get_instructions(code) if one.offset > instruction.offset)
    after = next((one for one in following if one.opname != "CACHE"), None)
    return after.argval if after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD") else None


def _is_of_datetime(function: Any, code: types.CodeType, instruction: dis.Instruction) -> bool:
    """Whether it takes an attribute of the module datetime, or of a class of it."""
    before = [one for one in dis.get_instructions(code) if one.offset < instruction.offset and one.opname != "CACHE"]
    if instruction.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not before:
        return False
    owner = getattr(function, "__globals__", {}).get(before[-1].argval, before[-1].argval)
    return "datetime" in (getattr(owner, "__module__", None), getattr(owner, "__name__", None), owner)


def _require_module(name: str, code: types.CodeType, instruction: dis.Instruction | None) -> None:
    root = name.split(".")[0]
    if root in _OUTSIDE:
        _refuse(code, instruction, f"uses {root}, which reaches outside of Spark", "give what it needs as an input")
    if root in _CHANGING:
        _refuse(code, instruction, f"uses {root}, which is not always the same", "a seed, a time or an id as an input")


def _require_value(name: str, value: Any, code: types.CodeType, *, may_use_session: bool) -> None:
    kinds = [one for one in type(value).__mro__ if one.__module__.split(".")[0] == "pyspark"]
    for kind in kinds:
        if kind.__name__ in _OF_SPARK and not (kind.__name__ == "SparkSession" and may_use_session):
            instruction = _first_use(code, name)
            _refuse(code, instruction, f"uses {name}, a {kind.__name__} that is no input of it", "give it as an input")
    if isinstance(value, types.ModuleType):
        return
    owner = getattr(value, "__self__", None)
    homes = [type(value).__module__, None if owner is None else type(owner).__module__]
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        homes.append(value.__module__)
    for home in filter(None, homes):
        if not (isinstance(value, types.FunctionType) and not _is_library(value)):
            _require_module(home, code, _first_use(code, name))


def _first_use(code: types.CodeType, name: str) -> dis.Instruction | None:
    return next((one for one in dis.get_instructions(code) if one.argval == name), None)


def _refuse(code: types.CodeType, instruction: dis.Instruction | None, came: str, hint: str) -> NoReturn:
    line = instruction.positions.lineno if instruction is not None and instruction.positions else None
    raise UnsupportedError(
        f"{code.co_filename}:{line or code.co_firstlineno}",
        needed="a program that only works on its inputs",
        came=f"one that {came}",
        hint=hint,
    )
