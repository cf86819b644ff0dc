"""What the user's job raised, dug out of what Spark makes of it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator

from streamtight.errors import JobError, TimeLimitError

_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<name>\S+)')


def job_error(raised: BaseException, *, batch: int | None) -> JobError:
    """The error that tells what the job raised, where, and in which micro-batch. Raise it from `raised`."""
    text, place = _own_words(raised)
    if "STREAMING_OUTPUT_MODE" in text or "output mode" in text.lower():
        hint = 'mode="update" or mode="complete", or a watermark'
    else:
        hint = missing_module_hint(text) or (f"look at {place}" if place else "its __cause__ has Spark's whole account")
    return JobError(
        "the job, when it was started" if batch is None else f"the job, in batch {batch}",
        needed="a query that Spark accepts" if batch is None else "no exception",
        came=text,
        hint=hint,
        batch=batch,
        raised=text,
    )


def time_limit_error(where: str, seconds: float) -> TimeLimitError:
    """The error for a run that was stopped because its time was up."""
    return TimeLimitError(
        where,
        needed=f"an end within {seconds:g} seconds",
        came="none; the job was stopped",
        hint="limit=... with more seconds, or a smaller schedule",
        seconds=seconds,
    )


def missing_module_hint(text: str) -> str | None:
    """What to do about an executor that could not import something, if that is what a message says."""
    words = "No module named "
    if "ModuleNotFoundError" not in text or words not in text:
        return None
    name = text.partition(words)[2].strip().strip("'\"").partition("'")[0]
    root = name.partition(".")[0]
    spec = None
    if root.isidentifier():
        try:
            spec = importlib.util.find_spec(root)
        except (ImportError, ValueError):
            spec = None
    if spec is None or spec.origin is None or "site-packages" in spec.origin:
        return f"the tasks cannot import {name}: install it where they run, or tight.ship(spark, ...) if it is yours"
    return f"tight.ship(spark, {root!r}) before the job is asked about, or spark-submit --py-files"


def _own_words(raised: BaseException) -> tuple[str, str | None]:
    """The innermost message, and the last line of the user's own code if Python raised it."""
    messages = list(_messages(raised))
    for message in reversed(messages):
        if _TRACEBACK in message:
            return _python_words(message)
    last = messages[-1] if messages else type(raised).__name__
    first_line = next((line for line in last.splitlines() if line.strip()), last)
    return first_line.strip(), None


def _messages(raised: BaseException) -> Iterator[str]:
    """Every message on the way to the root of it, through Python's and Java's causes."""
    yield str(raised)
    java = getattr(raised, "java_exception", None) or getattr(raised, "_origin", None)
    seen = 0
    while java is not None and seen < 30:
        message = java.getMessage()
        if message:
            yield str(message)
        java, seen = java.getCause(), seen + 1


def _python_words(message: str) -> tuple[str, str | None]:
    trace = message[message.rindex(_TRACEBACK) :].splitlines()[1:]
    place, words = None, ""
    for line in trace:
        frame = _FRAME.match(line)
        if frame and "site-packages" not in frame["file"] and "/pyspark/" not in frame["file"]:
            place = f"{frame['file']}, line {frame['line']}, in {frame['name']}"
        elif line and not line.startswith(" "):
            words = line.strip()
            break
    return words or "an exception in Python", place
