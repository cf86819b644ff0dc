"""All that pipelines are written with, under one name: `tight.pipes`.

>>> from streamtight import pipes
>>> @pipes.pipeline
... def smoothed(numbers: int):
...     return pipes.Window(pipes.Cumulate(max, start=0), 3)(numbers)
>>> smoothed.run([3, 1, 4, 1, 5])
[4, 4, 5]
"""

from __future__ import annotations

from streamtight.program.limits import Limits, modulo, whole
from streamtight.program.pipeline import Front, Pipe, Pipeline, Push, beside, pipeline
from streamtight.program.processor import (
    NOTHING,
    Apply,
    CountDecimate,
    Cumulate,
    Delay,
    Filter,
    Fork,
    Freeze,
    Group,
    Insert,
    Last,
    Passthrough,
    Processor,
    Slice,
    Trim,
    TurnInto,
    Window,
    both,
    either,
    if_then_else,
    implies,
    is_even,
    is_odd,
)

__all__ = [
    "NOTHING",
    "Apply",
    "CountDecimate",
    "Cumulate",
    "Delay",
    "Filter",
    "Fork",
    "Freeze",
    "Front",
    "Group",
    "Insert",
    "Last",
    "Limits",
    "Passthrough",
    "Pipe",
    "Pipeline",
    "Processor",
    "Push",
    "Slice",
    "Trim",
    "TurnInto",
    "Window",
    "beside",
    "both",
    "either",
    "if_then_else",
    "implies",
    "is_even",
    "is_odd",
    "modulo",
    "pipeline",
    "whole",
]
