"""Python functions inside a job: do they always give the same, and do they look at the order of their rows?

The code of a function is read, and that of the user's functions it calls. What hides in a library is not seen.

>>> import random
>>> why_varies(lambda x: x + random.random())
'uses random.random'
>>> why_varies(lambda x: random.Random(x).random()) is None
True
"""

from __future__ import annotations

import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

Function = Callable[..., Any]

_VARYING: dict[str, frozenset[str] | None] = {
    "random": None,
    "secrets": None,
    "uuid": frozenset({"uuid1", "uuid4", "getnode"}),
    "time": frozenset(
        {
            "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "ctime",
            "localtime", "gmtime",
        }
    ),
    "os": frozenset({"urandom", "getpid", "times"}),
    "numpy.random": None,
    "threading": frozenset({"get_ident", "current_thread"}),
    **dict.fromkeys(
        (
            "socket", "requests", "httpx", "urllib", "urllib.request", "http.client", "redis", "boto3", "psycopg2",
            "pymongo", "sqlite3", "sqlalchemy", "subprocess", "kafka",
        )
    ),
}  # fmt: skip
"""Modules, and which of their names are not always the same; None for all."""
_CLOCKS = frozenset({"now", "today", "utcnow"})
_SEEDED = frozenset({"Random", "default_rng", "RandomState", "Generator", "PCG64"})
"""Of random and numpy.random: always the same if they are given a seed."""

ORDER_WORDS = frozenset(
    {
        "iloc", "iat", "head", "tail", "shift", "diff", "cumsum", "cumprod", "cummax", "cummin", "cumcount", "ffill",
        "bfill", "fillna", "rolling", "expanding", "ewm", "first", "last", "nth", "drop_duplicates", "duplicated",
        "pct_change", "interpolate", "iterrows", "itertuples", "to_list", "tolist", "values", "array", "items",
        "idxmax", "idxmin", "argmax", "argmin", "reset_index", "index", "rank", "ngroup", "squeeze", "asof", "keys",
    }
)  # fmt: skip
"""What of a pandas frame or series depends on the order of its rows, or may."""
SORT_WORDS = frozenset({"sort_values", "sort_index", "nlargest", "nsmallest", "sort", "argsort", "sorted"})
FREE_WORDS = frozenset(
    {
        "sum", "max", "min", "count", "nunique", "size", "any", "all", "len", "assign", "groupby", "agg", "aggregate",
        "abs", "round", "astype", "isna", "notna", "isnull", "notnull", "float", "int", "str", "bool", "DataFrame",
        "Series", "pd", "pandas", "np", "numpy", "clip", "empty", "shape",
    }
)  # fmt: skip
"""What does not depend on it."""
FREE_CALLS = frozenset({"sum", "len", "min", "max", "sorted", "set", "frozenset", "any", "all", "Counter"})
"""Functions of a list that do not depend on its order."""


def why_varies(function: Function) -> str | None:
    """How it can give different results for the same arguments, as it follows "it"; None if no way is seen."""
    for owner, code in _codes(function):
        found = _varies(owner, code)
        if found is not None:
            return found
    return None


def words_of(function: Function) -> frozenset[str]:
    """The names of attributes and globals in its code, and in that of the user's functions it calls."""
    return frozenset(name for _, code in _codes(function) for name in code.co_names)


def only_adds(function: Function) -> bool:
    """Whether a function of a pandas frame or series uses nothing but what does not depend on the order of rows."""
    names = words_of(function)
    steps = [one.opname for _, code in _codes(function) for one in dis.get_instructions(code)]
    return names <= FREE_WORDS and not any(name.startswith(_LOOKS) for name in steps)


_LOOKS = (
    "BUILD_SLICE",
    "BINARY_SLICE",
    "GET_ITER",
    "FOR_ITER",
    "UNPACK_",
    "GET_LEN",
    "MATCH_",
    "IMPORT_",
    "LIST_EXTEND",
)
"""What could see one row before another: a slice, a loop."""


def takes_in_any_order(function: Function) -> bool:
    """Whether a function of one list certainly gives the same however the list is ordered: `lambda xs: max(xs)`."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_argcount != 1 or getattr(function, "__closure__", None):
        return False
    steps = [one for one in dis.get_instructions(code) if one.opname not in _SILENT]
    uses = [place for place, one in enumerate(steps) if one.opname.startswith("LOAD_FAST")]
    # What is made of a set may depend on the order in which it was filled; a loop over the list always may.
    taken = _TAKES if {"set", "frozenset", "Counter"} & set(code.co_names) else ()
    if any(one.opname.startswith(("STORE_", "FOR_", "GET_ITER", "MAKE_", *taken)) for one in steps):
        return False
    spaces = getattr(function, "__globals__", {})
    return bool(uses) and all(
        place > 0
        and steps[place - 1].opname in ("LOAD_GLOBAL", "LOAD_NAME")
        and steps[place - 1].argval in FREE_CALLS
        and steps[place - 1].argval not in spaces
        and steps[place + 1].opname == "CALL"
        for place in uses
    )


def appends_again(function: Function) -> str | None:
    """How a function of (batch, batch_id) adds rows once more if it is called again for a batch; None if it does not.

    >>> appends_again(lambda batch, batch_id: batch.write.mode("append").parquet("out"))
    "mode('append')"
    >>> appends_again(lambda batch, batch_id: batch.write.mode("append").parquet(f"out/batch={batch_id}"))
    """
    code = getattr(_bare(function), "__code__", None)
    if code is None or code.co_argcount < 2:
        return None
    batch_id = code.co_varnames[1]
    if any(one.argval == batch_id and one.opname.startswith("LOAD_") for one in dis.get_instructions(code)):
        return None
    words = words_of(function)
    texts = [text for _, one in _codes(function) for text in _strings(one)]
    if words & {"merge", "whenMatchedUpdate", "whenMatchedUpdateAll"} or any("MERGE" in text.upper() for text in texts):
        return None
    if "append" in texts and words & {"write", "mode"}:
        return "mode('append')"
    if "append" in words and "writeTo" in words:
        return "writeTo(...).append()"
    if "insertInto" in words and "overwrite" not in texts:
        return "insertInto"
    if any(text.upper().lstrip().startswith("INSERT INTO") for text in texts):
        return "INSERT INTO"
    return None


def _strings(code: types.CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        for one in constant if isinstance(constant, tuple) else (constant,):
            if isinstance(one, str):
                yield one


_TAKES = ("LOAD_ATTR", "LOAD_METHOD", "BINARY_", "CONTAINS_", "UNPACK_")
_SILENT = ("CACHE", "RESUME", "PRECALL", "PUSH_NULL", "NOP", "EXTENDED_ARG")


def file_of(function: Function) -> tuple[str, int] | None:
    """The file and the line of a function."""
    code = getattr(_bare(function), "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else None


def is_readable(function: Function) -> bool:
    """Whether it has code of Python that can be read."""
    return isinstance(getattr(_bare(function), "__code__", None), types.CodeType)


def _varies(owner: Any, code: types.CodeType) -> str | None:
    space = getattr(owner, "__globals__", {})
    modules: dict[str, str] = {}
    """Names of this code that are modules which it imports itself."""
    steps = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "PRECALL", "EXTENDED_ARG")]
    for place, one in enumerate(steps):
        after = steps[place + 1] if place + 1 < len(steps) else None
        if one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
            return f"changes the global {one.argval}"
        if one.opname == "STORE_DEREF" and one.argval in code.co_freevars:
            return f"changes {one.argval}, which other calls see"
        if one.opname in ("LOAD_GLOBAL", "LOAD_DEREF") and after is not None and _changes(steps[place + 1 :]):
            shared = space.get(one.argval) if one.opname == "LOAD_GLOBAL" else _cells(owner).get(one.argval)
            if shared is not None and not isinstance(shared, types.ModuleType | types.FunctionType | type):
                return f"changes {one.argval}, which other calls see"
        if one.opname == "IMPORT_NAME" and after is not None and after.opname.startswith("STORE_"):
            modules[after.argval] = one.argval
        if one.opname == "IMPORT_FROM":
            module = next(step.argval for step in reversed(steps[:place]) if step.opname == "IMPORT_NAME")
            if _is_varying(module, one.argval) and one.argval not in _SEEDED:
                return f"uses {module}.{one.argval}"
            if module == "datetime" and after is not None:
                modules[after.argval] = "datetime"
        if not one.opname.startswith("LOAD_"):
            continue
        value = space.get(one.argval) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME") else None
        if one.opname == "LOAD_DEREF":
            value = _cells(owner).get(one.argval)
        home = _home(value) if value is not None else modules.get(str(one.argval))
        if home is None:
            continue
        attribute = after.argval if after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD") else None
        if isinstance(value, types.ModuleType) or value is None:
            third = steps[place + 2] if attribute is not None and place + 2 < len(steps) else None
            if home == "numpy" and attribute == "random" and third is not None:
                home, attribute = "numpy.random", third.argval
            if home == "datetime" and attribute in ("datetime", "date") and third is not None:
                attribute = third.argval
        elif attribute is None or home != "datetime":
            attribute = getattr(value, "__name__", None)
        if home == "datetime" and attribute in _CLOCKS:
            return f"uses datetime.{attribute}"
        if isinstance(attribute, str) and _is_varying(home, attribute):
            if attribute in _SEEDED and _has_arguments(steps[place:]):
                continue
            return f"uses {home}.{attribute}"
    for name, value in (*_cells(owner).items(), *((name, space[name]) for name in code.co_names if name in space)):
        if isinstance(value, Iterator):
            return f"takes the next of {name}, which other calls see"
    return None


_CHANGING = frozenset(
    {
        "append", "extend", "insert", "add", "update", "pop", "popitem", "remove", "clear", "setdefault", "discard",
        "appendleft", "popleft", "sort", "reverse", "put",
    }
)  # fmt: skip


def _changes(steps: list[dis.Instruction]) -> bool:
    """Whether the value that was just loaded is changed next: `seen.append(x)`, `seen[x] = 1`, `a.n = 1`."""
    first = steps[0]
    if first.opname in ("LOAD_ATTR", "LOAD_METHOD"):
        return first.argval in _CHANGING
    if first.opname in ("STORE_ATTR", "DELETE_ATTR"):
        return True
    # A key that is a name or a constant, and then the store.
    return len(steps) > 1 and first.opname.startswith("LOAD_") and steps[1].opname in ("STORE_SUBSCR", "DELETE_SUBSCR")


def _is_varying(module: str, name: str) -> bool:
    names = _VARYING.get(module, frozenset())
    return names is None or name in names


def _has_arguments(steps: list[dis.Instruction]) -> bool:
    call = next((one for one in steps if one.opname in ("CALL", "CALL_FUNCTION", "CALL_METHOD", "CALL_KW")), None)
    return call is not None and bool(call.arg)


def _home(value: Any) -> str | None:
    """The module that a value is, or is from."""
    if isinstance(value, types.ModuleType):
        return value.__name__
    owner = getattr(value, "__self__", None)
    if owner is not None and not isinstance(owner, types.ModuleType):
        return type(owner).__module__  # random.random is a method of a hidden object
    home = getattr(value, "__module__", None)
    return home if isinstance(home, str) else None


def _cells(function: Any) -> dict[str, Any]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    cells = getattr(function, "__closure__", None) or ()
    found = {}
    for name, cell in zip(names, cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not yet bound
            continue
    return found


def _bare(function: Any) -> Any:
    """The function of Python behind a partial, a decorator or a method."""
    for _ in range(10):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.MethodType):
            function = function.__func__
    return function


def _codes(function: Any) -> Iterator[tuple[Any, types.CodeType]]:
    """The code of a function and of those of the user that it reaches, each with the function that it is in."""
    start = _bare(function)
    waiting: list[tuple[Any, Any]] = [(start, getattr(start, "__code__", None))]
    seen: set[types.CodeType] = set()
    while waiting:
        owner, code = waiting.pop()
        if not isinstance(code, types.CodeType) or code in seen:
            continue
        seen.add(code)
        yield owner, code
        waiting += [(owner, inner) for inner in code.co_consts]
        space = getattr(owner, "__globals__", {})
        for value in (*_cells(owner).values(), *(space[name] for name in code.co_names if name in space)):
            reached = _bare(value)
            if isinstance(reached, types.FunctionType) and not _is_library(reached):
                waiting.append((reached, reached.__code__))


def _is_library(function: types.FunctionType) -> bool:
    root = (function.__module__ or "").split(".")[0]
    return root in sys.stdlib_module_names or root in ("pyspark", "numpy", "pandas", "streamtight")
