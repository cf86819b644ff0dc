"""streamtight: make your streams watertight.

The public names, each loaded on first use, so that `import streamtight` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamtight import errors as errors
    from streamtight.errors import StreamtightError as StreamtightError
    from streamtight.method.compare.matcher import Difference as Difference
    from streamtight.method.compare.matcher import Matcher as Matcher
    from streamtight.method.compare.oracle import allowed as allowed
    from streamtight.method.compare.oracle import expected as expected
    from streamtight.method.compare.oracle import one_of as one_of
    from streamtight.program.run import Cause as Cause
    from streamtight.program.run import Run as Run
    from streamtight.program.run import Step as Step
    from streamtight.report.write import write_report as write_report
    from streamtight.source.generate import Source as Source
    from streamtight.source.generate import generated as generated
    from streamtight.source.generate import listed as listed
    from streamtight.source.shrink import smallest_failing as smallest_failing
    from streamtight.spark.compare import compare as compare
    from streamtight.spark.compare import laws as laws
    from streamtight.spark.live import LiveComparison as LiveComparison
    from streamtight.spark.live import compare_live as compare_live
    from streamtight.spark.live_book import Alarm as Alarm
    from streamtight.spark.live_book import Metrics as Metrics
    from streamtight.spark.pack import Packed as Packed
    from streamtight.spark.pack import run_many as run_many
    from streamtight.spark.recorded import recorded as recorded
    from streamtight.spark.run import run as run
    from streamtight.spark.run import run_all as run_all
    from streamtight.spark.session import session as session
    from streamtight.stream.dependence import Dependence as Dependence
    from streamtight.stream.dependence import barrier as barrier
    from streamtight.stream.dependence import between as between
    from streamtight.stream.dependence import depends as depends
    from streamtight.stream.dependence import ordered as ordered
    from streamtight.stream.dependence import punctuation as punctuation
    from streamtight.stream.dependence import same as same
    from streamtight.stream.dependence import unordered as unordered
    from streamtight.stream.equality import Equality as Equality
    from streamtight.stream.equality import equality as equality
    from streamtight.stream.event import Event as Event
    from streamtight.stream.event import Kind as Kind
    from streamtight.stream.schedule import Race as Race
    from streamtight.stream.schedule import Restart as Restart
    from streamtight.stream.schedule import Schedule as Schedule
    from streamtight.stream.schedule import find_race as find_race
    from streamtight.stream.schema import Bag as Bag
    from streamtight.stream.schema import Par as Par
    from streamtight.stream.schema import PartitionBy as PartitionBy
    from streamtight.stream.schema import Schema as Schema
    from streamtight.stream.schema import Seq as Seq
    from streamtight.stream.schema import Sync as Sync
    from streamtight.stream.schema import schema_of as schema_of
    from streamtight.stream.trace import Trace as Trace
    from streamtight.verdict import Counterexample as Counterexample
    from streamtight.verdict import Outcome as Outcome
    from streamtight.verdict import Scope as Scope
    from streamtight.verdict import Verdict as Verdict
    from streamtight.verdict import combine as combine

__version__ = "0.1.0"

# Where each public name lives, in the order of the layers.
_HOMES = {
    "streamtight.errors": ["StreamtightError"],
    "streamtight.stream.event": ["Kind", "Event"],
    "streamtight.stream.dependence": [
        "Dependence",
        "unordered",
        "ordered",
        "same",
        "barrier",
        "between",
        "punctuation",
        "depends",
    ],
    "streamtight.stream.equality": ["Equality", "equality"],
    "streamtight.stream.schema": ["Schema", "Bag", "Seq", "Sync", "PartitionBy", "Par", "schema_of"],
    "streamtight.stream.trace": ["Trace"],
    "streamtight.stream.schedule": ["Schedule", "Restart", "Race", "find_race"],
    "streamtight.verdict": ["Verdict", "Outcome", "Scope", "Counterexample", "combine"],
    "streamtight.program.run": ["Run", "Step", "Cause"],
    "streamtight.source.generate": ["Source", "generated", "listed"],
    "streamtight.source.shrink": ["smallest_failing"],
    "streamtight.method.compare.matcher": ["Matcher", "Difference"],
    "streamtight.method.compare.oracle": ["expected", "one_of", "allowed"],
    "streamtight.report.write": ["write_report"],
    "streamtight.spark.session": ["session"],
    "streamtight.spark.run": ["run", "run_all"],
    "streamtight.spark.pack": ["run_many", "Packed"],
    "streamtight.spark.compare": ["compare", "laws"],
    "streamtight.spark.recorded": ["recorded"],
    "streamtight.spark.live": ["compare_live", "LiveComparison"],
    "streamtight.spark.live_book": ["Alarm", "Metrics"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["errors", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return importlib.import_module("streamtight.errors")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'streamtight' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
