"""Claims about pipelines from text, as the command line takes them. Nothing of it is evaluated.

>>> parse_claim("live(within=3)", {}), parse_claim("no_full_queues", {}), parse_claim("AG EF out", {})
(live(within=3), no_full_queues(), 'AG EF out')
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from streamtight.errors import FormulaError
from streamtight.properties.claims import (
    approximates,
    live,
    never_stops,
    no_full_queues,
    same_sequence,
    same_steps,
    stays,
    stays_true,
)

CLAIMS: Mapping[str, Any] = {
    "live": live,
    "no_full_queues": no_full_queues,
    "never_stops": never_stops,
    "stays_true": stays_true,
    "same_steps": same_steps,
    "same_sequence": same_sequence,
    "approximates": approximates,
    "stays": stays,
}


def parse_claim(text: str, names: Mapping[str, Any]) -> Any:
    """`live`, `live(within=3)`, `same_steps(other)`; a name of the user's; or else a text that `explore` reads itself.

    `names` is what stands beside the pipeline in the user's file.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:  # LTL and CTL are not Python
        return text
    match tree:
        case ast.Name(id=name) if name in CLAIMS:
            return CLAIMS[name]()
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in CLAIMS:
            given = [_value(arg, names, text) for arg in args]
            named = {str(one.arg): _value(one.value, names, text) for one in keywords}
            try:
                return CLAIMS[name](*given, **named)
            except TypeError as error:
                raise FormulaError(
                    text, needed=f"the arguments of {name}", came=str(error), hint=f"{name}()"
                ) from error
    return text


def _value(node: ast.expr, names: Mapping[str, Any], text: str) -> Any:
    match node:
        case ast.Constant(value=int() | str() as value):
            return value
        case ast.Name(id=name) if name in names:
            return names[name]
    raise FormulaError(
        text,
        needed="numbers, quoted names of pipes, or names that stand in the file of the pipeline",
        came=ast.unparse(node),
        hint=", ".join(name for name in names if not name.startswith("_"))[:200] or "live(within=3)",
    )
