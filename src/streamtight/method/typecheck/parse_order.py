"""Orders from text, as the command line takes them.

>>> parse_order("same(user, page)")
same('user', 'page')
>>> parse_order("ordered")
ordered
"""

from __future__ import annotations

import re

from streamtight.errors import DependenceError
from streamtight.stream.dependence import Dependence, ordered, same, unordered

_WORDS = {"ordered": ordered, "unordered": unordered}


def parse_order(text: str, option: str = "--gives") -> Dependence | None:
    """`ordered`, or `same(user)`: rows that agree in these columns keep their order. None if there is no text."""
    if not text.strip():
        return None
    if text.strip() in _WORDS:
        return _WORDS[text.strip()]
    found = re.fullmatch(r"\s*same\(\s*([\w\s,'\"]+?)\s*\)\s*", text)
    if found is None:
        raise DependenceError(
            f"{option} {text!r}",
            needed="ordered, unordered, or same(column, ...)",
            came=repr(text),
            hint=f"{option} 'same(user)'",
        )
    return same(*(name.strip(" '\"") for name in found[1].split(",")))
