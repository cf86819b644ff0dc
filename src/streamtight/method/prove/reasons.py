"""Why there is no answer, in words of the user's.

>>> error = UnsupportedError("line 3 of jobs.py", needed="a function that can be run on symbolic values",
...     came="one that uses .strip of a symbolic str", hint="another way")
>>> reason_of(error)
'line 3 of jobs.py: the function uses .strip, whose result is not known for every text'
"""

from __future__ import annotations

import re

from streamtight.errors import StreamtightError, UnsupportedError

_KINDS = {"str": "text", "int": "whole number", "bool": "truth value", "float": "number"}
_NOT_SHOWN = {
    "they differ on some rows": "that they give the same rows could not be shown",
    "their values differ": "that their values are the same could not be shown",
}
"""What the solver says if it has a model in which they differ; it may be none that rows and programs have."""


def reason_of(error: StreamtightError) -> str:
    """What stands in the way: where, and what it does."""
    # A line of a function says more than the line of the program in which it is.
    where = re.sub(r"^(line \d+ of .*?) in \S.* \(.*:\d+\)$", r"\1", error.where)
    came = error.came
    if came.startswith("one that "):
        found = re.match(r"an? (function|program)\b", error.needed)
        came = f"{f'the {found[1]}' if found else 'it'} {came.removeprefix('one that ')}"
    return f"{where}: {_plain(came)}"


def advice_of(error: UnsupportedError) -> str:
    """The same, and what to try."""
    return f"{reason_of(error)}. Try: {error.hint}"


def not_proved(reason: str, tried: int) -> str:
    """That a proof was not found, and that no difference was seen either."""
    inputs = f"{tried} input{'' if tried == 1 else 's'}"
    return f"no proof was found ({_NOT_SHOWN.get(reason, reason)}), and no difference on {inputs}"


def _plain(text: str) -> str:
    """Without the names that the solver's values have among themselves."""
    text = re.sub(
        r"uses (\.\w+) of a symbolic (\w+)",
        lambda found: f"uses {found[1]}, whose result is not known for every {_kind(found[2])}",
        text,
    )
    text = re.sub(r"\ba symbolic (\w+)", lambda found: f"a {_kind(found[1])} that is not known", text)
    return re.sub(r"\bSymbolic(\w+)", lambda found: f"a {_kind(found[1].lower())} that is not known", text)


def _kind(name: str) -> str:
    return _KINDS.get(name, name)
