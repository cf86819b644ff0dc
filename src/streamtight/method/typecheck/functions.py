"""Python functions inside a job: do they look at the order of their rows? And do they append rows again?

The code of a function is read, and that of the user's functions it calls. What hides in a library is not seen.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Iterator

from streamtight.program.functions import Function, bare, codes_of
from streamtight.program.functions import file_of as file_of
from streamtight.program.functions import is_readable as is_readable
from streamtight.program.functions import why_unclear as why_unclear
from streamtight.program.functions import why_varies as why_varies

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
        "abs", "round", "isna", "notna", "isnull", "notnull", "int", "str", "bool", "DataFrame",
        "Series", "pd", "pandas", "np", "numpy", "clip", "empty", "shape",
    }
)  # fmt: skip
"""What does not depend on it."""
FREE_CALLS = frozenset({"sum", "len", "min", "max", "sorted", "set", "frozenset", "any", "all", "Counter"})
"""Functions of a list that do not depend on its order."""


def words_of(function: Function) -> frozenset[str]:
    """The names of attributes and globals in its code, and in that of the user's functions it calls."""
    return frozenset(name for _, code in codes_of(function) for name in code.co_names)


def only_adds(function: Function) -> bool:
    """Whether a function of a pandas frame or series of integers uses nothing but what any order of rows gives.

    >>> only_adds(lambda group: group["n"].sum()), only_adds(lambda group: (group["n"] * 0.1).sum())
    (True, False)
    """
    codes = [code for _, code in codes_of(function)]
    steps = [one for code in codes for one in dis.get_instructions(code)]
    makes_floats = any(isinstance(one, float) for code in codes for one in code.co_consts) or any(
        one.opname == "BINARY_OP" and one.argrepr in ("/", "/=", "**", "**=") for one in steps
    )
    # Methods can be named by texts: agg("first").
    named = {text for code in codes for text in _strings(code)}
    is_free = words_of(function) <= FREE_WORDS and not named & (ORDER_WORDS | _FLOATING_WORDS)
    return is_free and not makes_floats and not any(one.opname.startswith(_LOOKS) for one in steps)


_FLOATING_WORDS = frozenset({"mean", "std", "var", "sem", "skew", "kurt", "median", "quantile", "prod", "float64"})


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
    return None if _uses_batch_id(function) else appends(function)


def _uses_batch_id(function: Function) -> bool:
    code = getattr(bare(function), "__code__", None)
    if code is None or code.co_argcount < 2:
        return False
    batch_id = code.co_varnames[1]
    names = [one.argval for one in dis.get_instructions(code) if one.opname.startswith("LOAD_")]
    return any(batch_id in (name if isinstance(name, tuple) else (name,)) for name in names)


def appends(function: Function) -> str | None:
    """How a function of (batch, batch_id) leaves the rows of the batches before where they are; None if it does not.

    >>> appends(lambda batch, batch_id: batch.write.mode("overwrite").parquet(f"out/batch={batch_id}"))
    "mode('overwrite') of a place for each batch"
    """
    words = words_of(function)
    texts = [text for _, one in codes_of(function) for text in _strings(one)]
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
    if "overwrite" in texts and "write" in words and _uses_batch_id(function):
        return "mode('overwrite') of a place for each batch"
    return None


def _strings(code: types.CodeType) -> Iterator[str]:
    for constant in code.co_consts:
        for one in constant if isinstance(constant, tuple) else (constant,):
            if isinstance(one, str):
                yield one


_TAKES = ("LOAD_ATTR", "LOAD_METHOD", "BINARY_", "CONTAINS_", "UNPACK_")
_SILENT = ("CACHE", "RESUME", "PRECALL", "PUSH_NULL", "NOP", "EXTENDED_ARG")
