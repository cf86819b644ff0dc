"""`prove` for PySpark programs: are they equal on every input?

prove(old, new, inputs=[rdd(int), rdd((str, int))])     functions of RDDs, to RDDs or to values
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from streamtight.errors import SourceError
from streamtight.method.prove.inputs import RDDInput
from streamtight.method.prove.search import SECONDS, Difference, Question, comparable, parameters_of, search
from streamtight.method.replay import code_name
from streamtight.spark.rdd import require_rdds
from streamtight.spark.session import session
from streamtight.verdict import Verdict


def prove(
    left: Callable[..., Any],
    right: Callable[..., Any],
    *,
    inputs: Sequence[RDDInput],
    seconds: float = SECONDS,
    seed: int = 0,
    spark: SparkSession | None = None,
) -> Verdict:
    """Are the two programs equal on every input?

    left, right     your own functions of RDDs; they may return an RDD, a value, or what an action gives
    inputs          what they take, in this order: [rdd(int), rdd((str, int | None))]
    seconds         how long a proof is looked for
    seed            of the small inputs on which they are tried first

    HOLDS is a proof for every input. FAILS has an input on which real Spark was seen to give different results; or, as
    NOT_WELL_DEFINED, to give different results for one program if its rows are spread otherwise.
    """
    given = tuple(inputs)
    for place, each in enumerate(given):
        if not isinstance(each, RDDInput):
            raise SourceError(
                f"prove(inputs=[...]), number {place + 1}",
                needed="what an input holds",
                came=repr(each),
                hint="inputs=[tight.rdd(int)]",
            )
    for program in (left, right):
        count = parameters_of(program)
        if count is not None and count != len(given):
            raise SourceError(
                f"prove({code_name(program, 'program')}, ...)",
                needed=f"a function of {len(given)} RDDs, as inputs= says",
                came=f"one of {count}",
                hint="inputs=[tight.rdd(int)] for each of its parameters",
            )
    names = [code_name(left, "left"), code_name(right, "right")]
    question = Question(
        claim=f"{names[1]} gives what {names[0]} gives",
        left=left,
        right=right,
        inputs=given,
        confirm=lambda difference: _is_seen(difference, spark or session()),
        replay=lambda difference: _replay(difference, names if left is not right else names[:1]),
        seconds=seconds,
        seed=seed,
    )
    return search(question)


def _is_seen(difference: Difference, spark: SparkSession) -> bool:
    """Whether Spark gives different results as well."""
    require_rdds(spark, "prove")
    context = spark.sparkContext

    def outcome(program: Callable[..., Any], partitions: int) -> Any:
        try:
            return comparable(program(*[context.parallelize(list(rows), partitions) for rows in difference.tables]))
        except Exception as error:
            return ("raises", _name_of(error))

    first, second = difference.ways
    return bool(outcome(difference.one, first) != outcome(difference.other, second))


def _name_of(error: Exception) -> str:
    """The type of the exception that was raised in a task, which Spark wraps."""
    text = str(error)
    for line in reversed(text.splitlines()):
        name = line.split(":")[0].strip()
        if name.endswith("Error") and name.isidentifier():
            return name
    return type(error).__name__


def _replay(difference: Difference, names: Sequence[str]) -> str:
    lines = ["import streamtight as tight", "context = tight.session().sparkContext"]
    lines += [f"# {name}: as in your own code" for name in names]
    calls = []
    for program, partitions in zip((difference.one, difference.other), difference.ways, strict=True):
        rows = ", ".join(f"context.parallelize({list(rows)!r}, {partitions})" for rows in difference.tables)
        calls.append(f"{code_name(program, 'program')}({rows})")
    shown = [f"result = {call}\nprint(result.collect() if hasattr(result, 'collect') else result)" for call in calls]
    return "\n".join([*lines, *shown])
