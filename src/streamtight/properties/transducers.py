"""Data transducers under one name: `tight.transducer.concatenate(a, b)`."""

from streamtight.properties.decide import difference, made_restartable, not_restartable, unsynchronised
from streamtight.properties.query_machine import pass_machine, value_machine
from streamtight.properties.support import support, unrolled
from streamtight.properties.term import Slot
from streamtight.properties.transducer import (
    Evaluation,
    Rule,
    Source,
    Status,
    Transducer,
    When,
    concatenate,
    data_function,
    iterate,
    new,
    old,
    parallel,
    prefix_sum,
    run,
    union,
)
from streamtight.properties.transducer_picture import picture

__all__ = [
    "Evaluation",
    "Rule",
    "Slot",
    "Source",
    "Status",
    "Transducer",
    "When",
    "concatenate",
    "data_function",
    "difference",
    "iterate",
    "made_restartable",
    "new",
    "not_restartable",
    "old",
    "parallel",
    "pass_machine",
    "picture",
    "prefix_sum",
    "run",
    "support",
    "union",
    "unrolled",
    "unsynchronised",
    "value_machine",
]
