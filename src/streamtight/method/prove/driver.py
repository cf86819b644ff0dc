"""What a program may do while it is read: the code that runs on the driver, as it is.

A program is read by running it on what stands for its inputs. So it must not look behind that: what tells a value from
what stands for it, and what goes on after a refusal as if nothing had happened. Its functions that are run on rows are
admitted elsewhere (solver/symbolic/admit.py).
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import operator
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator
from typing import Any

from streamtight.errors import UnsupportedError

_SEES_THROUGH = (
    "callable", "delattr", "dir", "getattr", "hasattr", "id", "isinstance", "issubclass", "setattr", "type", "vars",
)  # fmt: skip
"""Builtins that could tell the values that stand for aggregates from real ones."""
_REVEALING = (*(getattr(builtins, name) for name in _SEES_THROUGH), operator.is_, operator.is_not)
_INSTALLED = tuple(sysconfig.get_path(name) for name in ("purelib", "platlib", "stdlib"))
_LIBRARIES = ("streamtight", "pyspark", "py4j", "z3", "numpy", "pandas", "pyarrow")


class DriverCode:
    """Looks at the code of the user that runs on the driver, once for each function.

    That is all code but what is installed, unless the program is installed with it: Python calls hooks of libraries by
    the way, for imports and for memory. `sees_values` if what stands for values is within its reach; `is_reading` says
    whether a function of rows is being read at the moment, which is not for the driver.
    """

    def __init__(
        self, program: Callable[..., Any], *, sees_values: bool, is_reading: Callable[[], bool] = lambda: False
    ) -> None:
        self._own = _root(getattr(program, "__module__", None))
        self._sees_values, self._is_reading = sees_values, is_reading
        self._seen: set[types.CodeType] = set()
        self._refusal: UnsupportedError | None = None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """While this lasts. Raises at the end what was refused, whatever the program made of that."""
        before = sys.gettrace()
        self._refusal = None
        sys.settrace(self._trace)
        try:
            yield
        finally:
            sys.settrace(before)
            if self._refusal is not None:
                raise self._refusal

    def _trace(self, frame: types.FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code in self._seen or self._is_reading():
            return
        self._seen.add(code)
        if not self._is_library(frame):
            try:
                self._require_plain(frame)
            except UnsupportedError as error:
                self._refusal = self._refusal or error

    def _is_library(self, frame: types.FrameType) -> bool:
        root, file = _root(frame.f_globals.get("__name__")), frame.f_code.co_filename
        if root in _LIBRARIES or (root in sys.stdlib_module_names and root != "__main__"):
            return True
        is_made_by_dataclass = file == "<string>" and frame.f_code.co_name.startswith("__")
        return is_made_by_dataclass or (file.startswith(_INSTALLED) and root != self._own)

    def _require_plain(self, frame: types.FrameType) -> None:
        code = frame.f_code
        before: dis.Instruction | None = None
        for instruction in dis.get_instructions(code):
            name = instruction.opname
            if name in ("PUSH_EXC_INFO", "BEFORE_WITH", "LOAD_SPECIAL"):
                _refuse(code, instruction, "try or with, which may hide what cannot be read", "leave it out")
            if self._sees_values and (used := _seen_through(frame, instruction, before)):
                _refuse(code, instruction, used, "leave it out: types are given by inputs=")
            before = instruction


def _seen_through(frame: types.FrameType, instruction: dis.Instruction, before: dis.Instruction | None) -> str | None:
    """What in this instruction could tell what stands for a value from the value."""
    name, argument = instruction.opname, instruction.argval
    if name == "IS_OP" and not (before and before.opname in ("LOAD_CONST", "RETURN_CONST") and before.argval is None):
        return "'is' with something other than None"
    if name in ("MATCH_CLASS", "MATCH_MAPPING"):
        return "match with a class"
    if name in ("LOAD_ATTR", "LOAD_METHOD") and str(argument).startswith("__"):
        return f"the attribute {argument}"
    value: Any = None
    if name in ("LOAD_GLOBAL", "LOAD_NAME"):
        value = frame.f_globals.get(argument, frame.f_builtins.get(argument))
    elif name in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
        value = frame.f_locals.get(argument)
    elif name in ("LOAD_ATTR", "LOAD_METHOD") and before is not None and before.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
        owner = frame.f_globals.get(before.argval)
        value = getattr(owner, str(argument), None) if isinstance(owner, types.ModuleType) else None
    return next((one.__name__ for one in _REVEALING if value is one), None)


def _root(module: Any) -> str:
    return str(module).split(".")[0]


def _refuse(code: types.CodeType, instruction: dis.Instruction, came: str, hint: str) -> None:
    line = instruction.positions.lineno if instruction.positions else None
    raise UnsupportedError(
        f"{code.co_filename}:{line or code.co_firstlineno}",
        needed="a program that can be read by running it",
        came=f"one that uses {came}",
        hint=hint,
    )
