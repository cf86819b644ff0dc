"""No verdict of `prove` contradicts the catalogue."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import streamtight as tight

sys.path.append(str(Path(__file__).parents[1] / "catalogue"))

from frame_pairs import FRAME_PAIRS
from pairs import Pair
from rdd_pairs import RDD_PAIRS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]


@pytest.fixture(scope="module", autouse=True)
def functions_by_value() -> Any:
    """The workers do not have the catalogue's folder on their path."""
    from pyspark import cloudpickle

    modules = [sys.modules[name] for name in ("rdd_pairs", "frame_pairs")]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


def inputs_of(pair: Pair) -> list[Any]:
    if pair.api == "rdd":
        return [tight.rdd(row) for row in pair.inputs]
    tables = [tight.table(**columns) for columns in pair.inputs]
    return [one.key(*key) if key else one for one, key in zip(tables, pair.keys or [()] * len(tables), strict=True)]


@pytest.mark.parametrize("pair", RDD_PAIRS + FRAME_PAIRS, ids=str)
def test_no_verdict_contradicts_the_catalogue(pair: Pair):
    verdict = tight.prove(pair.left, pair.right, inputs=inputs_of(pair), overflow=pair.overflows)

    if verdict.holds:
        assert pair.verdict == "HOLDS", verdict.story()
    elif verdict.fails:
        assert pair.verdict in ("FAILS", "NOT_WELL_DEFINED"), verdict.story()
