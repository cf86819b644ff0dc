"""States of pipelines as text: they can be kept, read by anybody, and run nothing when they are read.

>>> import operator
>>> from streamtight.program.pipeline import Pipeline
>>> from streamtight.program.processor import Cumulate
>>> totals = Pipeline.wired("in -> A -> out", A=Cumulate(operator.add))
>>> state, _ = totals.push(totals.start(), (5,))
>>> text = packed_state(totals, mark_of(totals), state)
>>> unpacked_state(totals, mark_of(totals), text) == state
True

The text says whose state it is, so that another pipeline does not go on from it. Values come back as they were: True is
not 1, a tuple is no list, minus zero and NaN stay what they are.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import CodeType, FunctionType, MethodType
from typing import Any, NamedTuple

from streamtight.errors import PipelineError
from streamtight.program.pipeline import Pipeline
from streamtight.program.processor import Apply, Function, Processor, State, Value

_PLAIN_BITS = 2_000
"""Whole numbers of more bits are written with base 16: Python refuses to read very long ones with base 10."""


class Mark(NamedTuple):
    """Whose states they are."""

    shape: str
    """Of boxes, pipes, and the names of functions."""
    code: str
    """Of what functions do, as this version of Python compiles it."""
    python: str


def mark_of(pipeline: Pipeline) -> Mark:
    """What tells the states of this pipeline from those of others.

    A function is known by its name and its code, with what it was given when it was made. What it reads by a global
    name is not looked at.
    """
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Mark(_hashed(_Teller().of(pipeline)), _hashed(_Teller(with_code=True).of(pipeline)), version)


def packed_state(pipeline: Pipeline, mark: Mark, state: State) -> str:
    """The state as text."""
    boxes, queues = state
    made = {
        "of": list(mark),
        "boxes": [
            _packed(each, f"{pipeline.name}: the state of {name} ({box})")
            for (name, box), each in zip(pipeline.boxes.items(), boxes, strict=True)
        ],
        "queues": [
            _packed(each, f"{pipeline.name}: the queue {name}")
            for name, each in zip(pipeline.queues, queues, strict=True)
        ],
    }
    return json.dumps(made, separators=(",", ":"))


def unpacked_state(pipeline: Pipeline, mark: Mark, text: str) -> State:
    """The state again; raises if it is that of another pipeline."""
    try:
        found = json.loads(text)
        of, boxes, queues = Mark(*found["of"]), found["boxes"], found["queues"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise another_pipeline(pipeline, "a state that is none") from None
    # Another version of Python compiles the same function to other code: then names have to do.
    if of.shape != mark.shape or (of.python == mark.python and of.code != mark.code):
        raise another_pipeline(pipeline, "other boxes or pipes" if of.shape != mark.shape else "other functions")
    return tuple(map(_unpacked, boxes)), tuple(map(_unpacked, queues))


def another_pipeline(pipeline: Pipeline, came: str) -> PipelineError:
    """The error for a state that is not of this pipeline."""
    return PipelineError(
        f"the kept state of {pipeline.name}",
        needed="a checkpoint of the same pipeline",
        came=f"one of a pipeline with {came}",
        hint="a new checkpoint folder for a pipeline that was changed",
    )


# -- values ----------------------------------------------------------------------------------------------------------

# A value that JSON does not have is an object with one entry: the name of its type, and what it is made of.
_READ: Mapping[str, Callable[[Any], Value]] = {
    "int": lambda text: int(text, 16),
    "float": float,
    "decimal": Decimal,
    "bytes": bytes.fromhex,
    "date": date.fromisoformat,
    "time": lambda given: _of_clock(time.fromisoformat(given[0]), given),
    "datetime": lambda given: _of_clock(datetime.fromisoformat(given[0]), given),
    "timedelta": lambda given: timedelta(*given),
    "list": lambda given: [_unpacked(each) for each in given],
    "dict": lambda given: {_unpacked(key): _unpacked(each) for key, each in given},
    "set": lambda given: {_unpacked(each) for each in given},
    "frozenset": lambda given: frozenset(map(_unpacked, given)),
}


def _packed(value: Value, where: str) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if value.bit_length() <= _PLAIN_BITS else {"int": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is tuple:
        return [_packed(each, where) for each in value]
    if kind in (list, set, frozenset):
        return {kind.__name__: [_packed(each, where) for each in value]}
    if kind is dict:
        return {"dict": [[_packed(key, where), _packed(each, where)] for key, each in value.items()]}
    if kind is Decimal:
        return {"decimal": str(value)}
    if kind is bytes:
        return {"bytes": value.hex()}
    if kind is timedelta:
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if kind is date:
        return {"date": value.isoformat()}
    if kind in (time, datetime) and (value.tzinfo is None or type(value.tzinfo) is timezone):
        return {kind.__name__: [value.replace(tzinfo=None).isoformat(), value.fold, *_zone(value.tzinfo)]}
    raise PipelineError(
        where,
        needed="numbers, texts, truth values, times, and tuples of these, since it is kept as text",
        came=f"{value!r} of {kind.__module__}.{kind.__qualname__}",
        hint="functions that give such values: int(...), float(...), tuple(...)",
    )


def _unpacked(given: Any) -> Value:
    if type(given) is list:
        return tuple(map(_unpacked, given))
    if type(given) is dict:
        [(name, made_of)] = given.items()
        return _READ[name](made_of)
    return given


def _zone(zone: timezone | None) -> list[Any]:
    if zone is None:
        return []
    offset = zone.utcoffset(None)
    return [offset.days, offset.seconds, offset.microseconds]


def _of_clock(value: Any, given: list[Any]) -> Any:
    zone = timezone(timedelta(*given[2:])) if given[2:] else None
    return value.replace(fold=given[1], tzinfo=zone)


# -- whose state it is -----------------------------------------------------------------------------------------------


def _hashed(told: str) -> str:
    return hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Teller:
    """Makes texts that are the same for what acts the same, in every process."""

    def __init__(self, *, with_code: bool = False) -> None:
        self._with_code = with_code
        self._met: dict[int, int] = {}

    def of(self, given: object) -> str:
        """The text for a pipeline, a box, a function or a value."""
        if isinstance(given, Pipeline):
            boxes = [f"{name}: {self.of(box)}" for name, box in given.boxes.items()]
            pipes = sorted(f"{tuple(source)} -> {tuple(target)}" for target, source in given.feeds.items())
            ends = [f"{tuple(port)} -> {name}" for name, port in given.outputs.items()]
            return f"pipeline({list(given.inputs)}; {'; '.join([*boxes, *pipes, *ends])})"
        if isinstance(given, Function):
            return f"{given.name}/{given.arity}" + (self.of(given.call) if self._with_code else "")
        if isinstance(given, Processor):
            parts = dict(sorted(vars(given).items()))
            if isinstance(given, Apply):  # what it is said to give is for those who explore it
                del parts["values"]
            return f"{type(given).__qualname__}({self.of(parts)})"
        if isinstance(given, (tuple, list)):
            return f"{type(given).__name__}({', '.join(map(self.of, given))})"
        if isinstance(given, (set, frozenset)):
            return f"{type(given).__name__}({', '.join(sorted(map(self.of, given)))})"
        if isinstance(given, dict):
            return f"dict({', '.join(f'{self.of(key)}: {self.of(each)}' for key, each in given.items())})"
        if given is None or given is ... or isinstance(given, (bool, int, float, complex, str, bytes)):
            return repr(given)
        if isinstance(given, (Decimal, date, time, timedelta)):
            return repr(given)
        return self._code(given) if self._with_code else type(given).__qualname__

    def _code(self, given: object) -> str:
        if id(given) in self._met:  # functions may reach themselves
            return f"met {self._met[id(given)]}"
        self._met[id(given)] = len(self._met)
        if isinstance(given, FunctionType):
            return f"[{self._of_code(given.__code__)}{self.of(given.__defaults__)}{self._closure(given)}]"
        if isinstance(given, functools.partial):
            return f"partial({self.of(given.func)}, {self.of(given.args)}, {self.of(given.keywords)})"
        if isinstance(given, MethodType):
            return f"{self.of(given.__func__)} of {self.of(given.__self__)}"
        name = getattr(given, "__qualname__", None)
        return str(name) if name else f"{type(given).__qualname__}({self.of(getattr(given, '__dict__', {}))})"

    def _of_code(self, code: CodeType) -> str:
        consts = [self._of_code(each) if isinstance(each, CodeType) else self.of(each) for each in code.co_consts]
        return f"{code.co_code.hex()}{consts}{code.co_names}{code.co_varnames}"

    def _closure(self, given: FunctionType) -> str:
        told = []
        for cell in given.__closure__ or ():
            try:
                told.append(self.of(cell.cell_contents))
            except ValueError:  # nothing in it yet
                told.append("empty")
        return str(told)
