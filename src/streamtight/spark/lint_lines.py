"""Where in the user's code the operators of a plan were written.

Spark keeps the lines of columns, not those of `limit` or `dropDuplicates`. So while a job is built, each DataFrame
that is made is noted with the line that made it. A part of a later plan that has the same shape as the plan of one of
these, numbers of columns aside, was written there.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark.errors.utils import _with_origin
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.functions import builtin

import streamtight
from streamtight.program.relation import Place
from streamtight.spark.plan import Node, plan_of
from streamtight.spark.session import java_class

_NOT_THE_USERS = tuple(os.path.dirname(str(package.__file__)) for package in (pyspark, streamtight))


class Lines:
    """The lines at which DataFrames were made."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._made: list[tuple[DataFrame, Place]] = []
        self._places: dict[str, Place] = {}

    @contextlib.contextmanager
    def noted(self) -> Iterator[None]:
        """Note what is made; not for several threads."""
        make = ClassicDataFrame.__init__
        invoke = builtin._invoke_function
        noting = self._made

        def making(frame: Any, *arguments: Any, **named: Any) -> None:
            make(frame, *arguments, **named)
            if (place := users_line()) is not None:
                noting.append((frame, place))

        ClassicDataFrame.__init__ = making  # type: ignore[method-assign, assignment]
        builtin._invoke_function = _with_origin(invoke)
        try:
            yield
        finally:
            ClassicDataFrame.__init__ = make  # type: ignore[method-assign]
            builtin._invoke_function = invoke

    def __call__(self, node: Node) -> Place | None:
        """Where this operator was written; None if it came with the one above it."""
        for frame, place in self._made:
            self._places.setdefault(_shape(plan_of(frame, self._spark)), place)
        self._made.clear()
        return self._places.get(_shape(node))


@contextlib.contextmanager
def rows_of_lists(spark: SparkSession) -> Iterator[list[DataFrame]]:
    """The DataFrames that the job makes of rows of its own: these are known, unlike those it makes of RDDs."""
    made: list[DataFrame] = []
    owner = type(spark)
    create = owner.createDataFrame

    def noting(self: SparkSession, data: Any, *arguments: Any, **named: Any) -> DataFrame:
        frame = create(self, data, *arguments, **named)
        if not hasattr(data, "mapPartitions"):
            made.append(frame)
        return frame

    owner.createDataFrame = noting  # type: ignore[method-assign]
    try:
        yield made
    finally:
        owner.createDataFrame = create  # type: ignore[method-assign]


def users_line() -> Place | None:
    """The line of the user's code that is being run."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_THE_USERS) and os.sep + "py4j" + os.sep not in file:
            return Place("", file, frame.f_lineno)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def _shape(node: Node) -> str:
    """A plan as text, with its columns numbered as they come."""
    numbers: dict[int, int] = {}

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: numbers.setdefault(inner, len(numbers)) if name == "exprId" else bare(inner)
                for name, inner in value.items()
                if name not in ("place", "resultId", "nodeId", "options", "extraOptions", "command", "seed")
            }
        return [bare(inner) for inner in value] if isinstance(value, list) else value

    return json.dumps(bare(node))


def is_spark_class(spark: SparkSession) -> Callable[[str], bool]:
    """Whether Spark has a function of this class; another one may do anything."""
    loader = java_class(spark, "org.apache.spark.util.Utils").getSparkClassLoader()
    known: dict[str, bool] = _KNOWN

    def asked(name: str) -> bool:
        if name not in known:
            known[name] = any(
                # Not by its name as a class: an exception of Java for each that is not there costs 40 ms.
                loader.getResource(f"org/apache/spark/sql/catalyst/expressions/{part}{name}.class") is not None
                for part in _PARTS
            )
        return known[name]

    return asked


_KNOWN: dict[str, bool] = {}
_PARTS = ("", "aggregate/", "objects/", "variant/", "xml/", "st/", "json/", "codegen/")


def short(place: Place) -> Place:
    """The place, with its file as seen from here, if it is below."""
    if not place.file:
        return place
    try:
        return Place(place.operation, str(Path(place.file).resolve().relative_to(Path.cwd())), place.line)
    except ValueError:
        return place
