"""streamtight: make your streams watertight.

The public names, each loaded on first use, so that `import streamtight` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamtight import errors as errors
    from streamtight.errors import StreamtightError as StreamtightError
    from streamtight.method.check.satisfying import satisfying as satisfying
    from streamtight.method.compare.matcher import Difference as Difference
    from streamtight.method.compare.matcher import Matcher as Matcher
    from streamtight.method.compare.oracle import allowed as allowed
    from streamtight.method.compare.oracle import expected as expected
    from streamtight.method.compare.oracle import one_of as one_of
    from streamtight.method.explore.dead import dead_paths as dead_paths
    from streamtight.method.explore.export import to_smv as to_smv
    from streamtight.method.explore.queues import smallest_queues as smallest_queues
    from streamtight.method.parallelize.consistency import consistent as consistent
    from streamtight.method.parallelize.optimize import plan as plan
    from streamtight.method.prove.inputs import nullable as nullable
    from streamtight.method.prove.inputs import rdd as rdd
    from streamtight.method.prove.inputs import table as table
    from streamtight.method.prove.monoid import commutative_monoid as commutative_monoid
    from streamtight.program import pipes as pipes
    from streamtight.program.fork_join import Block as Block
    from streamtight.program.fork_join import Branch as Branch
    from streamtight.program.fork_join import ForkJoin as ForkJoin
    from streamtight.program.fork_join import Heartbeat as Heartbeat
    from streamtight.program.fork_join import StateType as StateType
    from streamtight.program.kripke import ANY as ANY
    from streamtight.program.kripke import Kripke as Kripke
    from streamtight.program.letter import Letter as Letter
    from streamtight.program.limits import modulo as modulo
    from streamtight.program.limits import whole as whole
    from streamtight.program.machine import Machine as Machine
    from streamtight.program.operators import Inlet as Inlet
    from streamtight.program.operators import KeyedOrdered as KeyedOrdered
    from streamtight.program.operators import KeyedUnordered as KeyedUnordered
    from streamtight.program.operators import Marker as Marker
    from streamtight.program.operators import Merge as Merge
    from streamtight.program.operators import O as O
    from streamtight.program.operators import Outlet as Outlet
    from streamtight.program.operators import Sort as Sort
    from streamtight.program.operators import Split as Split
    from streamtight.program.operators import Stateless as Stateless
    from streamtight.program.operators import U as U
    from streamtight.program.pipeline import Pipeline as Pipeline
    from streamtight.program.pipeline import pipeline as pipeline
    from streamtight.program.plan import InputStream as InputStream
    from streamtight.program.plan import Plan as Plan
    from streamtight.program.plan import Share as Share
    from streamtight.program.plan import Worker as Worker
    from streamtight.program.run import Cause as Cause
    from streamtight.program.run import Run as Run
    from streamtight.program.run import Step as Step
    from streamtight.program.tags import Bucket as Bucket
    from streamtight.program.tags import TagSet as TagSet
    from streamtight.program.tags import tags as tags
    from streamtight.program.transformer import Running as Running
    from streamtight.program.transformer import Transformer as Transformer
    from streamtight.program.transformer_forms import Hierarchical as Hierarchical
    from streamtight.program.transformer_forms import Parallel as Parallel
    from streamtight.program.transformer_forms import Partitioned as Partitioned
    from streamtight.program.transformer_forms import Relational as Relational
    from streamtight.program.watched import watched as watched
    from streamtight.properties import branching as ctl  # noqa: F401
    from streamtight.properties import queries as query  # noqa: F401
    from streamtight.properties import transducers as transducer  # noqa: F401
    from streamtight.properties.branching import pipe as pipe
    from streamtight.properties.branching import queue as queue
    from streamtight.properties.claims import approximates as approximates
    from streamtight.properties.claims import live as live
    from streamtight.properties.claims import never_stops as never_stops
    from streamtight.properties.claims import no_full_queues as no_full_queues
    from streamtight.properties.claims import same_sequence as same_sequence
    from streamtight.properties.claims import same_steps as same_steps
    from streamtight.properties.claims import stays as stays
    from streamtight.properties.claims import stays_true as stays_true
    from streamtight.properties.explain import Why as Why
    from streamtight.properties.judge import Judge as Judge
    from streamtight.properties.parse import parse as parse
    from streamtight.properties.records import all_records as all_records
    from streamtight.properties.records import asserts as asserts
    from streamtight.properties.records import count as count
    from streamtight.properties.records import no_record as no_record
    from streamtight.properties.records import on_frame as on_frame
    from streamtight.properties.records import same_rows as same_rows
    from streamtight.properties.records import some_record as some_record
    from streamtight.properties.temporal import FALSE as FALSE
    from streamtight.properties.temporal import TRUE as TRUE
    from streamtight.properties.temporal import Formula as Formula
    from streamtight.properties.temporal import always as always
    from streamtight.properties.temporal import eventually as eventually
    from streamtight.properties.temporal import exists as exists
    from streamtight.properties.temporal import forall as forall
    from streamtight.properties.temporal import historically as historically
    from streamtight.properties.temporal import next_ as next  # noqa: A004, F401
    from streamtight.properties.temporal import now as now
    from streamtight.properties.temporal import once as once
    from streamtight.properties.temporal import previously as previously
    from streamtight.properties.temporal import release as release
    from streamtight.properties.temporal import since as since
    from streamtight.properties.temporal import until as until
    from streamtight.properties.transducer import CONFLICT as CONFLICT
    from streamtight.properties.transducer import UNDEFINED as UNDEFINED
    from streamtight.report.write import write_report as write_report
    from streamtight.source import gen as gen
    from streamtight.source.generate import Source as Source
    from streamtight.source.generate import generated as generated
    from streamtight.source.generate import listed as listed
    from streamtight.source.shrink import smallest_failing as smallest_failing
    from streamtight.spark.check import check as check
    from streamtight.spark.check import property_ as property  # noqa: A004, F401
    from streamtight.spark.compare import compare as compare
    from streamtight.spark.compare import laws as laws
    from streamtight.spark.explore import explore as explore
    from streamtight.spark.graph import Graph as Graph
    from streamtight.spark.graph import spread as spread
    from streamtight.spark.live import LiveComparison as LiveComparison
    from streamtight.spark.live import compare_live as compare_live
    from streamtight.spark.live_book import Alarm as Alarm
    from streamtight.spark.live_book import Metrics as Metrics
    from streamtight.spark.pack import Packed as Packed
    from streamtight.spark.pack import run_many as run_many
    from streamtight.spark.parallelize import Parallelized as Parallelized
    from streamtight.spark.parallelize import parallelize as parallelize
    from streamtight.spark.pipelines import run_pipeline as run_pipeline
    from streamtight.spark.prove import deterministic as deterministic
    from streamtight.spark.prove import prove as prove
    from streamtight.spark.recorded import recorded as recorded
    from streamtight.spark.rows import kind_of as kind_of
    from streamtight.spark.run import run as run
    from streamtight.spark.run import run_all as run_all
    from streamtight.spark.session import session as session
    from streamtight.spark.ship import ship as ship
    from streamtight.spark.typecheck import typecheck as typecheck
    from streamtight.spark.watch import watch as watch
    from streamtight.spark.watch_formula import WatchedFormula as WatchedFormula
    from streamtight.spark.watch_metrics import WatchMetrics as WatchMetrics
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
    "streamtight.program.letter": ["Letter"],
    "streamtight.program.operators": [
        "U",
        "O",
        "Marker",
        "Inlet",
        "Outlet",
        "Stateless",
        "KeyedOrdered",
        "KeyedUnordered",
        "Sort",
        "Merge",
        "Split",
    ],
    "streamtight.program.transformer": ["Transformer", "Running"],
    "streamtight.program.transformer_forms": ["Relational", "Parallel", "Hierarchical", "Partitioned"],
    "streamtight.program.fork_join": ["ForkJoin", "StateType", "Branch", "Block", "Heartbeat"],
    "streamtight.program.tags": ["TagSet", "tags", "Bucket"],
    "streamtight.program.plan": ["InputStream", "Share", "Worker", "Plan"],
    "streamtight.program.limits": ["modulo", "whole"],
    "streamtight.program.pipeline": ["Pipeline", "pipeline"],
    "streamtight.program.kripke": ["Kripke", "ANY"],
    "streamtight.program.watched": ["watched"],
    "streamtight.program.machine": ["Machine"],
    "streamtight.properties.temporal": [
        "Formula",
        "TRUE",
        "FALSE",
        "now",
        "next",
        "eventually",
        "always",
        "until",
        "release",
        "forall",
        "exists",
        "previously",
        "once",
        "historically",
        "since",
    ],
    "streamtight.properties.judge": ["Judge"],
    "streamtight.properties.explain": ["Why"],
    "streamtight.properties.parse": ["parse"],
    "streamtight.properties.records": [
        "all_records",
        "some_record",
        "no_record",
        "count",
        "same_rows",
        "asserts",
        "on_frame",
    ],
    "streamtight.properties.transducer": ["UNDEFINED", "CONFLICT"],
    "streamtight.properties.branching": ["pipe", "queue"],
    "streamtight.properties.claims": [
        "live",
        "no_full_queues",
        "same_steps",
        "same_sequence",
        "approximates",
        "stays_true",
        "stays",
        "never_stops",
    ],
    "streamtight.source.generate": ["Source", "generated", "listed"],
    "streamtight.source.shrink": ["smallest_failing"],
    "streamtight.method.compare.matcher": ["Matcher", "Difference"],
    "streamtight.method.compare.oracle": ["expected", "one_of", "allowed"],
    "streamtight.method.check.satisfying": ["satisfying"],
    "streamtight.method.prove.inputs": ["rdd", "table", "nullable"],
    "streamtight.method.prove.monoid": ["commutative_monoid"],
    "streamtight.method.parallelize.optimize": ["plan"],
    "streamtight.method.parallelize.consistency": ["consistent"],
    "streamtight.method.explore.queues": ["smallest_queues"],
    "streamtight.method.explore.dead": ["dead_paths"],
    "streamtight.method.explore.export": ["to_smv"],
    "streamtight.report.write": ["write_report"],
    "streamtight.spark.session": ["session"],
    "streamtight.spark.ship": ["ship"],
    "streamtight.spark.run": ["run", "run_all"],
    "streamtight.spark.pack": ["run_many", "Packed"],
    "streamtight.spark.compare": ["compare", "laws"],
    "streamtight.spark.check": ["check", "property"],
    "streamtight.spark.prove": ["prove", "deterministic"],
    "streamtight.spark.explore": ["explore"],
    "streamtight.spark.pipelines": ["run_pipeline"],
    "streamtight.spark.graph": ["Graph", "spread"],
    "streamtight.spark.parallelize": ["parallelize", "Parallelized"],
    "streamtight.spark.typecheck": ["typecheck"],
    "streamtight.spark.watch": ["watch"],
    "streamtight.spark.watch_formula": ["WatchedFormula"],
    "streamtight.spark.watch_metrics": ["WatchMetrics"],
    "streamtight.spark.rows": ["kind_of"],
    "streamtight.spark.recorded": ["recorded"],
    "streamtight.spark.live": ["compare_live", "LiveComparison"],
    "streamtight.spark.live_book": ["Alarm", "Metrics"],
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

# Names that Python has too are written with an underscore where they are defined.
_WRITTEN = {"next": "next_", "property": "property_"}
_MODULES = {
    "ctl": "streamtight.properties.branching",
    "errors": "streamtight.errors",
    "gen": "streamtight.source.gen",
    "pipes": "streamtight.program.pipes",
    "query": "streamtight.properties.queries",
    "transducer": "streamtight.properties.transducers",
}

__all__ = [*_MODULES, *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name not in _HOME_OF:
        raise AttributeError(f"module 'streamtight' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME_OF[name]), _WRITTEN.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
