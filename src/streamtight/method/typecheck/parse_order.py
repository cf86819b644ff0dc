"""Orders from text, as the command line takes them.

>>> parse_order("same(user, page)")
same('user', 'page')
>>> parse_order("ordered")
ordered
"""

from __future__ import annotations

import re

from streamtight.errors import DependenceError
from streamtight.stream.dependence import Dependence, ordered, same


def parse_order(text: str) -> Dependence | None:
    """`ordered`, or `same(user)`: rows that agree in these columns keep their order. None if there is no text."""
    if not text.strip():
        return None
    if text.strip() == "ordered":
        return ordered
    found = re.fullmatch(r"\s*same\(\s*([\w\s,'\"]+?)\s*\)\s*", text)
    if found is None:
        raise DependenceError(
            f"--gives {text!r}", needed="ordered, or same(column, ...)", came=repr(text), hint="--gives 'same(user)'"
        )
    return same(*(name.strip(" '\"") for name in found[1].split(",")))
