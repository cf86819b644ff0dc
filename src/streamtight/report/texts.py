r"""Texts and values as reports show them: what a person could not see is written out.

>>> visible("a\x00b\u202e")
'a\\x00b\\u202e'
>>> value_text("1"), value_text(1), value_text({"map": [["a", 1]]})
("'1'", '1', "{'a': 1}")
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

_CODE = re.compile(
    r"|null|none|true|false|nan|-?inf(inity)?|[-+]?[\d.]+(e[-+]?\d+)?|\s.*|.*\s|['\"{\[(].*", re.I | re.S
)
"""Texts that could be taken for something else, or that are not seen."""
MOST_DEPTH = 30
"""What is deeper inside of a value is left out."""
_WRAPPED = frozenset({"float", "int", "bytes", "datetime", "date", "Decimal", "time"})


def visible(text: str) -> str:
    """The text with letters that cannot be seen, or turn others around, written as Python writes them."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in "\n\t" else _escape(each) for each in text)


def _escape(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def value_text(value: Any) -> str:
    """A value of a row as data: as a person would write it, and so that a text is told from a number."""
    return _written(value, 0)


def _written(value: Any, depth: int) -> str:
    if depth > MOST_DEPTH:
        return "…"
    match value:
        case None:
            return "None" if depth else "null"
        case str():
            return repr(value) if depth or _CODE.fullmatch(value) else value
        case list():
            return f"[{_listed(value, depth)}]"
        case {"kind": str() as kind, "fields": Mapping() as fields}:
            return f"{kind}({', '.join(f'{name}={_written(one, depth + 1)}' for name, one in fields.items())})"
        case {"map": list() as items}:
            return f"{{{', '.join(_item(item, depth) for item in items)}}}"
        case {"set": list() as items}:
            return f"{{{_listed(items, depth)}}}"
        case {"microseconds": int() as count}:
            return f"{count / 1e6:g} s"
        case Mapping() if len(value) == 1 and (name := next(iter(value))) in _WRAPPED:
            text = str(value[name])
            return f"0x{text}" if name == "bytes" else text
        case Mapping():
            return f"{{{', '.join(f'{name}: {_written(one, depth + 1)}' for name, one in value.items())}}}"
    return json.dumps(value, default=str)


def _listed(values: list[Any], depth: int) -> str:
    return ", ".join(_written(one, depth + 1) for one in values)


def _item(item: Any, depth: int) -> str:
    if isinstance(item, list) and len(item) == 2:
        return f"{_written(item[0], depth + 1)}: {_written(item[1], depth + 1)}"
    return _written(item, depth + 1)
