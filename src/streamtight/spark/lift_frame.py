"""DataFrame and SQL programs as relations, read off the plan that Spark's analyser makes of them.

The user's function is called on empty DataFrames of the declared schemas. Spark resolves names, types, casts and
nullability; what is left is a tree of a few dozen kinds of nodes. Those that are known exactly become relations and
expressions, everything else is refused by name, with the user's line if Spark knows it.

Three things are not what a reader may expect. MIN and MAX of what may be null are an `Extreme` of tuples, which begin
with whether there is a value; so are those of doubles, for NaN. A total of integers has the type `WHOLE` and is then
cast to a long: it raises, or wraps, if the sum does not fit, while Spark may raise already for a part of the rows. A
row is calculated before a filter above it is asked, as the plan says; Spark's optimiser may ask first, and not raise.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, NoReturn

from py4j.protocol import Py4JJavaError
from pyspark.serializers import CPickleSerializer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame
from pyspark.sql.group import GroupedData
from pyspark.sql.types import StructType

from streamtight.errors import EncodingError, UnsupportedError
from streamtight.program.expression import (
    INTEGER_BITS,
    NAN,
    TRUE,
    WHOLE,
    And,
    Arithmetic,
    Call,
    Case,
    Cast,
    Coalesce,
    Column,
    Compare,
    Comparison,
    Expression,
    Field,
    IsNull,
    Literal,
    Mode,
    Most,
    Not,
    Operation,
    Or,
    PythonUDF,
    SqlFunction,
    SqlValue,
    can_cast,
    digits,
    is_known,
)
from streamtight.program.relation import (
    Distinct,
    Each,
    Extreme,
    First,
    Grouped,
    How,
    Input,
    Matching,
    Place,
    Product,
    Relation,
    Rows,
    Summary,
    Total,
    Union,
)
from streamtight.spark.session import is_connect

Node = dict[str, Any]
"""A node of a plan or of an expression: its class under "node", its arguments under their names."""


@dataclass(frozen=True, slots=True)
class LiftedFrame:
    """What a DataFrame program means: its relation, the columns of its rows, and whether it put them in an order.

    The order itself is left out of the relation, as that of a bag.
    """

    relation: Relation
    columns: tuple[Field, ...]
    is_ordered: bool


def lift_frame(program: Callable[..., DataFrame], tables: Mapping[str, StructType], spark: SparkSession) -> LiftedFrame:
    """The relation that a program makes of its tables; UnsupportedError if it cannot be read exactly.

    The program is called with a DataFrame for each table, in this order; SQL in it finds them by their names.
    """
    if is_connect(spark):
        raise UnsupportedError(
            "lift_frame", needed="a classic session", came="a Spark Connect session", hint="tight.session()"
        )
    empty = {name: _empty(name, schema, spark) for name, schema in tables.items()}
    frames = {name: one.frame for name, one in empty.items()}
    made: list[DataFrame] = []
    with _views(spark, frames), _no_actions(), _noting_frames(spark, made):
        result = program(*frames.values())
    if not isinstance(result, DataFrame):
        raise UnsupportedError(
            "the program",
            needed="a DataFrame as its result",
            came=type(result).__name__,
            hint="return the DataFrame that holds the answer",
        )
    reader = _PlanReader(
        {one.rdd: name for name, one in empty.items()},
        {_rdd_of(frame, spark): frame for frame in made},
    )
    table = reader.table(_plan_of(result, spark))
    schema = result.schema
    columns = tuple(
        Field(name, table_field.type, column.nullable)
        for name, table_field, column in zip(schema.names, table.fields, schema.fields, strict=False)
    )
    planned = [one.dataType.jsonValue() for one in schema.fields]
    if [column.type for column in columns] != planned:
        raise EncodingError(
            "reading a plan",
            needed=f"columns of the types {planned}, as Spark says",
            came=str([column.type for column in columns]),
            hint="report this with the program",
        )
    return LiftedFrame(table.visible().relation, columns, table.order is not None)


# -- building the program --------------------------------------------------------------------------------------------


class _Empty(NamedTuple):
    """An input without rows, and the number of its RDD, by which it is known again in plans."""

    frame: DataFrame
    rdd: int


_EMPTY: dict[tuple[str, str], _Empty] = {}
_MOST_EMPTY = 100


def _empty(name: str, schema: StructType, spark: SparkSession) -> _Empty:
    """The empty input of this name and schema; making one takes longer than reading most programs."""
    known = _EMPTY.get((name, schema.json()))
    if known is None or known.frame.sparkSession is not spark:
        if len(_EMPTY) >= _MOST_EMPTY:
            _EMPTY.clear()
        frame = spark.createDataFrame([], schema)
        rdd = _rdd_of(frame, spark)
        if rdd is None:  # it would be taken for rows that the program brings along: none
            raise UnsupportedError(
                f"the input {name}",
                needed="a Spark that makes empty DataFrames of RDDs (4.0 to 4.3)",
                came=f"Spark {spark.version}",
                hint="a released Spark 4, or a newer streamtight",
            )
        known = _EMPTY[name, schema.json()] = _Empty(frame, rdd)
    return known


# What would look at the rows of an empty input, and go on with what it saw.
_ACTIONS = (
    "approxQuantile", "checkpoint", "collect", "corr", "count", "cov", "crosstab", "describe", "first", "foreach",
    "foreachPartition", "freqItems", "head", "inputFiles", "isEmpty", "localCheckpoint", "show", "summary", "tail",
    "take", "toArrow", "toJSON", "toLocalIterator", "toPandas", "transpose", "writeTo",
)  # fmt: skip
_ACTION_PROPERTIES = ("rdd", "write", "writeStream")


@contextlib.contextmanager
def _replaced(owner: type, name: str, value: Any) -> Iterator[None]:
    """A class with another attribute; not for several threads."""
    before = vars(owner).get(name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)  # it was inherited
        else:
            setattr(owner, name, before)


@contextlib.contextmanager
def _no_actions() -> Iterator[None]:
    """Refuses programs that run something while they are built."""

    def refusing(name: str) -> Callable[..., NoReturn]:
        def refuse(*_: Any, **__: Any) -> NoReturn:
            raise UnsupportedError(
                f"DataFrame.{name}",
                needed="a program that only describes a DataFrame",
                came="one that runs an action while it is built",
                hint="express it with DataFrame operations: a join or a crossJoin with an aggregate, for example",
            )

        return refuse

    pivot = GroupedData.pivot

    def only_listed(self: GroupedData, pivot_col: str, values: Any = None) -> GroupedData:
        if values is None:  # Spark would look for them in the empty input
            refusing("groupBy(...).pivot")()
        return pivot(self, pivot_col, values)

    with contextlib.ExitStack() as stack:
        for name in _ACTIONS:
            if hasattr(ClassicDataFrame, name):
                stack.enter_context(_replaced(ClassicDataFrame, name, refusing(name)))
        for name in _ACTION_PROPERTIES:
            stack.enter_context(_replaced(ClassicDataFrame, name, property(refusing(name))))
        stack.enter_context(_replaced(GroupedData, "pivot", only_listed))
        yield


@contextlib.contextmanager
def _noting_frames(spark: SparkSession, made: list[DataFrame]) -> Iterator[None]:
    """Notes the DataFrames that the program makes of rows of its own."""
    create = type(spark).createDataFrame

    def noting(self: SparkSession, data: Any, *arguments: Any, **named: Any) -> DataFrame:
        frame = create(self, data, *arguments, **named)
        if isinstance(data, list | tuple):
            made.append(frame)
        return frame

    with _replaced(type(spark), "createDataFrame", noting):
        yield


@contextlib.contextmanager
def _views(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Iterator[None]:
    """The frames as views under their names; what had these names before comes back at the end."""
    catalog: Any = spark._jsparkSession.sessionState().catalog()
    before = {name: spark.table(name) for name in frames if catalog.getTempView(name).isDefined()}
    try:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        yield
    finally:
        for name in frames:
            if name in before:
                before[name].createOrReplaceTempView(name)
            else:
                spark.catalog.dropTempView(name)


# -- reading the plan ------------------------------------------------------------------------------------------------

# Spark's own `toJSON` leaves out what decides the meaning: whether an operation is ANSI, which Python function it
# calls, which common expression it refers to, which RDD it reads. Janino, which Spark carries, compiles this once.
_JAVA = r"""
package streamtight;

import java.lang.reflect.Method;
import org.apache.spark.QueryContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.ExprId;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;

/** Writes an analysed plan as JSON: every node with its class, its named arguments and where the user wrote it. */
public class PlanWriter {
  private final StringBuilder text = new StringBuilder();

  /** The analysed plan of this Dataset. */
  public static String planOf(Dataset frame) throws Exception {
    Object execution = frame.getClass().getMethod("queryExecution", new Class[0]).invoke(frame, new Object[0]);
    PlanWriter writer = new PlanWriter();
    writer.write(execution.getClass().getMethod("analyzed", new Class[0]).invoke(execution, new Object[0]));
    return writer.text.toString();
  }

  private void write(Object value) throws Exception {
    if (value instanceof scala.Option) {
      value = ((scala.Option) value).isEmpty() ? null : ((scala.Option) value).get();
    }
    if (value == null || value instanceof Boolean || value instanceof Integer || value instanceof Long) {
      text.append(value);
    } else if (value instanceof ExprId) {
      text.append(((ExprId) value).id());
    } else if (value instanceof RDD) {
      text.append(((RDD) value).id());
    } else if (value instanceof StringType) {
      quote(((DataType) value).typeName()); // with its collation, which the JSON leaves out
    } else if (value instanceof DataType) {
      text.append(((DataType) value).json());
    } else if (value instanceof TreeNode) {
      writeNode((TreeNode) value);
    } else if (value instanceof scala.collection.Iterable) {
      text.append('[');
      scala.collection.Iterator items = ((scala.collection.Iterable) value).iterator();
      while (items.hasNext()) {
        write(items.next());
        if (items.hasNext()) {
          text.append(',');
        }
      }
      text.append(']');
    } else if (value instanceof scala.Tuple2) {
      text.append('[');
      write(((scala.Tuple2) value)._1());
      text.append(',');
      write(((scala.Tuple2) value)._2());
      text.append(']');
    } else if (value.getClass().getName().indexOf("NumericEvalContext") >= 0) {
      text.append('{');
      writeArguments((scala.Product) value);
      text.append('}');
    } else if (value.getClass().getName().endsWith("CommonExpressionId")) {
      write(((scala.Product) value).productElement(0));
    } else if (value instanceof scala.Product) {
      quote(((scala.Product) value).productPrefix()); // for example, a type of join
    } else {
      quote(value.toString()); // literals, and what no reader needs
    }
  }

  private void writeNode(TreeNode node) throws Exception {
    text.append("{\"node\":");
    quote(node.getClass().getSimpleName());
    if (node instanceof NamedExpression && isResolved(node)) {
      text.append(",\"exprId\":");
      text.append(((NamedExpression) node).exprId().id());
    }
    String place = place(node);
    if (place != null) {
      text.append(",\"place\":");
      quote(place);
    }
    if (node.getClass().getSimpleName().equals("PythonUDF")) {
      writeCommand((scala.Product) node);
    }
    text.append(',');
    writeArguments((scala.Product) node);
    if (node.getClass().getSimpleName().equals("LocalRelation")) {
      writeRows((LogicalPlan) node);
    }
    if (text.charAt(text.length() - 1) == ',') {
      text.setLength(text.length() - 1);
    }
    text.append('}');
  }

  private static boolean isResolved(TreeNode node) {
    return ((Expression) node).resolved();
  }

  private void writeArguments(scala.Product product) throws Exception {
    boolean isFirst = true;
    for (int a = 0; a < product.productArity(); a++) {
      Object argument = product.productElement(a);
      String name = product.productElementName(a);
      if (name.equals("data") || name.equals("desc") || name.equals("metadata") || name.equals("qualifier")) {
        continue;
      }
      if (!isFirst) {
        text.append(',');
      }
      isFirst = false;
      quote(name);
      text.append(':');
      write(argument);
    }
  }

  /** The rows as Spark keeps them: dates as days, timestamps as microseconds. */
  private void writeRows(LogicalPlan relation) throws Exception {
    scala.Product product = (scala.Product) relation;
    scala.collection.Iterator rows = null;
    for (int a = 0; a < product.productArity(); a++) {
      if (product.productElementName(a).equals("data")) {
        rows = ((scala.collection.Iterable) product.productElement(a)).iterator();
      }
    }
    text.append(",\"data\":[");
    while (rows.hasNext()) {
      InternalRow row = (InternalRow) rows.next();
      text.append('[');
      for (int c = 0; c < relation.output().size(); c++) {
        if (c > 0) {
          text.append(',');
        }
        write(row.get(c, ((Attribute) relation.output().apply(c)).dataType()));
      }
      text.append(']');
      if (rows.hasNext()) {
        text.append(',');
      }
    }
    text.append(']');
  }

  /** The pickled Python function. */
  private void writeCommand(scala.Product udf) throws Exception {
    for (int a = 0; a < udf.productArity(); a++) {
      if (udf.productElementName(a).equals("func")) {
        Object function = udf.productElement(a);
        Object command = function.getClass().getMethod("command", new Class[0]).invoke(function, new Object[0]);
        byte[] bytes;
        if (command instanceof byte[]) {
          bytes = (byte[]) command;
        } else {
          scala.collection.Seq items = (scala.collection.Seq) command;
          bytes = new byte[items.size()];
          scala.collection.Iterator each = items.iterator();
          for (int b = 0; b < bytes.length; b++) {
            bytes[b] = ((Byte) each.next()).byteValue();
          }
        }
        text.append(",\"command\":");
        quote(java.util.Base64.getEncoder().encodeToString(bytes));
      }
    }
  }

  /** "file.py:12" of a DataFrame's column, the words of a piece of SQL, or null. */
  private static String place(TreeNode node) {
    try {
      Method method = node.origin().getClass().getMethod("getQueryContext", new Class[0]);
      QueryContext[] contexts = (QueryContext[]) method.invoke(node.origin(), new Object[0]);
      if (contexts.length == 0) {
        return null;
      }
      QueryContext first = contexts[0];
      if (first.contextType().toString().equals("DataFrame")) {
        return "line:" + first.fragment() + "\n" + first.callSite();
      }
      return "sql:" + first.fragment();
    } catch (Exception e) {
      return null; // a place is a help, no more
    }
  }

  private void quote(String words) {
    text.append('"');
    for (int c = 0; c < words.length(); c++) {
      char one = words.charAt(c);
      if (one == '"' || one == '\\') {
        text.append('\\').append(one);
      } else if (one < ' ' || one > '~') {
        String digits = Integer.toHexString(one);
        text.append("\\u").append("0000".substring(digits.length())).append(digits);
      } else {
        text.append(one);
      }
    }
    text.append('"');
  }
}
"""

_READERS: dict[str, Any] = {}


def _plan_of(frame: DataFrame, spark: SparkSession) -> Node:
    """The analysed plan: each node with its class, its arguments by name, and the line of the user who made it."""
    application = str(spark.sparkContext.applicationId)
    if application not in _READERS:
        jvm: Any = spark._jvm
        compiler = jvm.org.codehaus.janino.SimpleCompiler()
        compiler.setParentClassLoader(jvm.org.apache.spark.util.Utils.getContextOrSparkClassLoader())
        compiler.setTargetVersion(8)
        try:
            compiler.cook(_JAVA)
        except Py4JJavaError as error:
            raise UnsupportedError(
                "reading a plan",
                needed="a Spark whose plans are known (4.0 to 4.3)",
                came=f"Spark {spark.version}: {str(error.java_exception.getMessage()).splitlines()[0]}",
                hint="a released Spark 4, or a newer streamtight",
            ) from error
        _READERS.clear()  # an application that ended takes its classes with it
        _READERS[application] = compiler.getClassLoader().loadClass("streamtight.PlanWriter").newInstance()
    plan: Node = json.loads(_READERS[application].planOf(frame._jdf))
    return plan


def _rdd_of(frame: DataFrame, spark: SparkSession) -> int | None:
    """The number of the RDD that a frame made of rows reads."""
    rdd: int | None = _plan_of(frame, spark).get("rdd")
    return rdd


_HINTS = {
    "Aggregate": "group by the columns or expressions that are selected",
    "Deduplicate": "dropDuplicates() on all columns; which of several rows is kept otherwise is up to Spark",
    "Except": "subtract, or count the rows of both sides by groupBy",
    "Expand": "a union of several groupBy, instead of cube, rollup or grouping sets",
    "Generate": "keep arrays out of the program, or compare on generated inputs instead",
    "Intersect": "intersect, or count the rows of both sides by groupBy",
    "Range": "give the numbers as an input",
    "Window": "groupBy and a join, where that says the same",
}
_ANY_HINT = "write it with other operations, or compare on generated inputs instead"
_VARYING = {
    "CurrentDate", "CurrentTimestamp", "InputFileName", "LocalTimestamp", "MonotonicallyIncreasingID", "Now", "Rand",
    "Randn", "RandStr", "Sample", "Shuffle", "SparkPartitionID", "Uniform", "UnixTimestamp", "Uuid",
}  # fmt: skip
_LONGEST_IN_OF_DOUBLES = 10
_ROW_WISE_PYTHON = (100, 101)  # the evaluation types of Python functions that get the values of one row at a time
_LARGEST_SUMMED_DECIMAL = 22  # a million of these have no more digits than Python's decimals keep
_SUBQUERIES = ("Exists", "InSubquery", "ListQuery", "ScalarSubquery", "LateralSubquery")
_BELOW = ("child", "left", "right", "children", "plan", "cteDefs")
"""The arguments of a node of a plan that are plans."""


def _place(node: Node) -> Place:
    """Where the user wrote this node, or something in it."""
    operation: str = node["node"]
    texts = list(_texts({name: value for name, value in node.items() if name not in _BELOW}))
    for text in texts:
        if found := re.fullmatch(r"line:.*\n(.+\.py):(\d+)", text, re.DOTALL):
            return Place(operation, found[1], int(found[2]))
    for text in texts:
        if text.startswith("sql:"):
            words = " ".join(text.removeprefix("sql:").split())
            return Place(f"{operation} of {words if len(words) <= 60 else words[:57] + '...'!r}")
    return Place(operation)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "place" in value:
            yield value["place"]
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _refuse(node: Node, came: str, hint: str = "") -> NoReturn:
    name = node["node"]
    if name in _VARYING:
        came, hint = f"{name}, which differs from run to run", "leave it out, or give it as a column of an input"
    raise UnsupportedError(
        str(_place(node)),
        needed="what can be read exactly",
        came=came,
        hint=hint or _HINTS.get(name, _ANY_HINT),
    )


# -- tables ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Cell:
    """A position of a row: the number by which Spark refers to it, None if nothing does, its type, may it be null."""

    id: int | None
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True)
class _SortKey:
    of: Expression
    descending: bool
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class _Table:
    """A relation, what stands in its rows, how many of these cells are seen, and the order that Spark would keep."""

    relation: Relation
    cells: tuple[_Cell, ...]
    shown: int
    order: tuple[_SortKey, ...] | None = None

    @property
    def fields(self) -> tuple[_Cell, ...]:
        return self.cells[: self.shown]

    def columns(self, *path: int) -> list[Expression]:
        """The seen cells, of rows that are found at this path."""
        return [Column((*path, place), cell.type, cell.nullable) for place, cell in enumerate(self.fields)]

    def by_id(self, *path: int) -> dict[int, Expression]:
        """All cells by Spark's numbers."""
        return {
            cell.id: Column((*path, place), cell.type, cell.nullable)
            for place, cell in enumerate(self.cells)
            if cell.id is not None
        }

    def visible(self) -> _Table:
        """Without hidden cells, and without an order, which may need them."""
        if self.shown == len(self.cells):
            return replace(self, order=None)
        cut = Each(self.relation, SqlFunction(tuple(self.columns()), How.MAP), How.MAP, self.relation.place)
        return _Table(cut, self.fields, self.shown)


@dataclass(frozen=True, slots=True)
class _Scope:
    """What the names in an expression refer to."""

    columns: Mapping[int, Expression]
    outer: Mapping[int, Expression] = field(default_factory=dict)
    common: Mapping[int, Expression] = field(default_factory=dict)
    subqueries: Mapping[int, Expression] = field(default_factory=dict)
    known: Callable[[Node], Expression | None] = lambda _: None
    """What stands for a whole expression: a key of a group, a summary of its rows."""


def _each(relation: Relation, expressions: Sequence[Expression], how: How, place: Place) -> Each:
    return Each(relation, SqlFunction(tuple(expressions), how), how, place)


def _all_of(conditions: Sequence[Expression]) -> Expression:
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions)) if conditions else TRUE


def _distinct(table: _Table, place: Place) -> _Table:
    relation = table.relation
    if any(cell.type == "double" for cell in table.cells):  # columns make all NaN one
        relation = _each(relation, table.columns(), How.MAP, place)
    return replace(table, relation=Distinct(relation, place))


def _nulls(table: _Table) -> list[Expression]:
    return [Literal(None, cell.type) for cell in table.fields]


def _nullable(cells: Iterable[_Cell]) -> tuple[_Cell, ...]:
    return tuple(replace(cell, nullable=True) for cell in cells)


class _PlanReader:
    """Turns the nodes of one plan into tables."""

    def __init__(self, inputs: Mapping[int | None, str], literals: Mapping[int | None, DataFrame]) -> None:
        self._inputs = inputs
        self._literals = literals
        self._shared: dict[int, _Table] = {}

    def table(self, node: Node) -> _Table:
        """What this node of the plan means."""
        match node["node"]:
            case "SubqueryAlias" | "View" | "ResolvedHint":
                return self.table(node["child"])
            case "Repartition" | "RepartitionByExpression" | "RebalancePartitions":
                return self.table(node["child"]).visible()
            case "LogicalRDD":
                return self._given(node)
            case "LocalRelation":
                cells = self._cells(node)
                rows = [
                    tuple(_constant(value, cell.type, node) for value, cell in zip(row, cells, strict=True))
                    for row in node["data"]
                ]
                return _Table(Rows(tuple(rows), _place(node)), cells, len(cells))
            case "OneRowRelation":
                return _Table(Rows(((),), _place(node)), (), 0)
            case "Project":
                return self._project(node)
            case "Filter":
                return self._filter(node)
            case "Aggregate":
                return self._aggregate(node)
            case "Join":
                return self._join(node)
            case "Union":
                return self._union(node)
            case "Distinct":
                return _distinct(self.table(node["child"]).visible(), _place(node))
            case "Deduplicate":
                return self._deduplicate(node)
            case "Except" | "Intersect":
                return self._set_operation(node)
            case "Sort":
                return self._sort(node)
            case "GlobalLimit":
                return self._limit(node)
            case "WithCTE":
                for definition in node["cteDefs"]:
                    self._shared[definition["id"]] = self.table(definition["child"]).visible()
                return self.table(node["plan"])
            case "CTERelationRef" if node["cteId"] in self._shared and not node.get("recursive"):
                table = self._shared[node["cteId"]]
                ids = [attribute["exprId"] for attribute in node["output"]]
                cells = tuple(replace(cell, id=id_) for cell, id_ in zip(table.cells, ids, strict=True))
                return replace(table, cells=cells)
        _refuse(node, node["node"])

    def _cells(self, node: Node) -> tuple[_Cell, ...]:
        return tuple(
            _Cell(attribute["exprId"], _type_of(attribute), attribute["nullable"]) for attribute in node["output"]
        )

    def _given(self, node: Node) -> _Table:
        cells = self._cells(node)
        if node["rdd"] in self._inputs:
            names = [attribute["name"] for attribute in node["output"]]
            fields = tuple(Field(name, cell.type, cell.nullable) for name, cell in zip(names, cells, strict=True))
            relation: Relation = Input(self._inputs[node["rdd"]], fields, Place("input"))
        elif node["rdd"] in self._literals:
            rows = [tuple(row) for row in self._literals[node["rdd"]].collect()]
            relation = Rows(tuple(rows), Place("createDataFrame"))
        else:
            _refuse(node, "rows that come neither from an input nor from a list", "give them as an input")
        return _Table(relation, cells, len(cells))

    # -- row by row --

    def _project(self, node: Node) -> _Table:
        child = self.table(node["child"])
        child, scope = self._with_scalars(child, node["projectList"])
        made = [_expression(one, scope) for one in node["projectList"]]
        ids = [one["exprId"] for one in node["projectList"]]
        return _projected(child, made, ids, _place(node))

    def _filter(self, node: Node) -> _Table:
        table = self.table(node["child"])
        place = _place(node)
        conditions = list(_conjuncts(node["condition"]))
        row_wise = [one for one in conditions if _existence(one) is None]
        if row_wise:
            table, scope = self._with_scalars(table, row_wise)
            condition = _all_of([_expression(one, scope) for one in row_wise])
            table = replace(table, relation=_each(table.relation, [condition], How.FILTER, place))
        for one in conditions:
            if (found := _existence(one)) is not None:
                table = self._existing(table, *found, place)
        return table

    def _sort(self, node: Node) -> _Table:
        table = self.table(node["child"])
        if not node["global"]:
            return replace(table, order=None)
        scope = _Scope(table.by_id())
        keys = [
            _SortKey(
                _expression(one["child"], scope), one["direction"] == "Descending", one["nullOrdering"] == "NullsFirst"
            )
            for one in node["order"]
        ]
        return replace(table, order=tuple(keys))

    def _limit(self, node: Node) -> _Table:
        below = node["child"]
        count = _expression(node["limitExpr"], _Scope({}))
        if below["node"] != "LocalLimit" or not isinstance(count, Literal):
            _refuse(node, "a limit that is no number", "limit(n) with a number")
        table = self.table(below["child"])
        parts, descending = _order_of(table.order or (), node)
        first = First(table.relation, count.constant, SqlFunction(parts, How.MAP), descending, _place(node))
        return replace(table, relation=first)

    # -- several tables --

    def _join(self, node: Node) -> _Table:
        left, right = self.table(node["left"]).visible(), self.table(node["right"]).visible()
        place, kind = _place(node), node["joinType"]
        scope = _Scope({**left.by_id(0), **right.by_id(1)})
        condition = TRUE if node["condition"] is None else _expression(node["condition"], scope)
        matches = SqlFunction((condition,), How.FILTER)
        if kind in ("LeftSemi", "LeftAnti"):
            return replace(left, relation=Matching(left.relation, right.relation, matches, kind == "LeftSemi", place))
        if kind not in ("Inner", "Cross", "LeftOuter", "RightOuter", "FullOuter"):
            _refuse(node, f"a join of the kind {kind}", "an inner, outer, semi or anti join")
        pairs: Relation = Product(left.relation, right.relation, place)
        if condition != TRUE:
            pairs = Each(pairs, matches, How.FILTER, place)
        joined: Relation = _each(pairs, [*left.columns(0), *right.columns(1)], How.MAP, place)
        cells = [*left.cells, *right.cells]
        if kind in ("LeftOuter", "FullOuter"):
            alone = Matching(left.relation, right.relation, matches, False, place)
            joined = Union(joined, _each(alone, [*left.columns(), *_nulls(right)], How.MAP, place), place)
            cells[left.shown :] = _nullable(right.cells)
        if kind in ("RightOuter", "FullOuter"):
            swapped = {**left.by_id(1), **right.by_id(0)}
            turned = TRUE if node["condition"] is None else _expression(node["condition"], _Scope(swapped))
            alone = Matching(right.relation, left.relation, SqlFunction((turned,), How.FILTER), False, place)
            joined = Union(joined, _each(alone, [*_nulls(left), *right.columns()], How.MAP, place), place)
            cells[: left.shown] = _nullable(left.cells)
        return _Table(joined, tuple(cells), len(cells))

    def _union(self, node: Node) -> _Table:
        if node.get("byName"):
            _refuse(node, "a union by name that is not resolved")
        first, *others = [self.table(child).visible() for child in node["children"]]
        for other in others:
            _require_same_types(first, other, node)
            cells = tuple(
                replace(cell, nullable=cell.nullable or its.nullable)
                for cell, its in zip(first.cells, other.cells, strict=True)
            )
            first = replace(first, relation=Union(first.relation, other.relation, _place(node)), cells=cells)
        return first

    def _deduplicate(self, node: Node) -> _Table:
        table = self.table(node["child"]).visible()
        if {cell.id for cell in table.cells} != {key["exprId"] for key in node["keys"]}:
            _refuse(node, "dropDuplicates on some of the columns")
        return _distinct(table, _place(node))

    def _set_operation(self, node: Node) -> _Table:
        if node["isAll"]:
            _refuse(node, f"{node['node']} ALL")
        left, right = self.table(node["left"]).visible(), self.table(node["right"]).visible()
        _require_same_types(left, right, node)
        same = [
            Compare(Comparison.SAME, one, other) for one, other in zip(left.columns(0), right.columns(1), strict=True)
        ]
        place = _place(node)
        matches = SqlFunction((_all_of(same),), How.FILTER)
        found = Matching(left.relation, right.relation, matches, node["node"] == "Intersect", place)
        return _distinct(replace(left, relation=found), place)

    # -- groups --

    def _aggregate(self, node: Node) -> _Table:
        child = self.table(node["child"])
        place = _place(node)
        scope = _Scope(child.by_id())
        keys = [_expression(one, scope) for one in node["groupingExpressions"]]
        summaries: list[Summary] = []

        def known(part: Node) -> Expression | None:
            if part["node"] == "AggregateExpression":
                return _summarised(part, scope, summaries, has_rows=bool(keys))
            if any(inner["node"] == "AggregateExpression" for inner in _nodes(part)):
                return None
            whole = _expression(part, scope)
            if whole in keys:
                return Column((0, keys.index(whole)), whole.type, whole.may_be_null)
            if part["node"] == "AttributeReference":
                _refuse(node, f"the column {part['name']}, by which it does not group")
            return None

        made = [_expression(one, _Scope({}, known=known)) for one in node["aggregateExpressions"]]
        ids = [one["exprId"] for one in node["aggregateExpressions"]]
        groups: Relation = Grouped(child.relation, SqlFunction(tuple(keys), How.MAP), tuple(summaries), place)
        if not keys:
            # Without keys there is one group, even if no row came: then its row is what the summaries give for none.
            without_rows = ((), *map(_of_no_rows, summaries))
            always = SqlFunction((TRUE,), How.FILTER)
            groups = Union(groups, Matching(Rows((without_rows,), place), child.relation, always, False, place), place)
        cells = tuple(_Cell(id_, one.type, one.may_be_null) for id_, one in zip(ids, made, strict=True))
        return _Table(_each(groups, made, How.MAP, place), cells, len(cells))

    # -- subqueries --

    def _with_scalars(self, table: _Table, nodes: Sequence[Node]) -> tuple[_Table, _Scope]:
        """The table with a hidden cell for each scalar subquery in these expressions."""
        values: dict[int, Expression] = {}
        for node in _nodes(nodes):
            if node["node"] != "ScalarSubquery":
                continue
            if not _has_one_row(node["plan"]) or _is_correlated(node["plan"]):
                _refuse(
                    node,
                    "a scalar subquery that is no aggregate of whole tables",
                    "a join with the grouped table; or, without a reference to the outer query, an aggregate",
                )
            inner = self.table(node["plan"]).visible()
            whole = [Column((0, place), cell.type, cell.nullable) for place, cell in enumerate(table.cells)]
            pairs = Product(table.relation, inner.relation, _place(node))
            relation = _each(pairs, [*whole, *inner.columns(1)], How.MAP, _place(node))
            (cell,) = inner.cells
            values[node["exprId"]] = Column((len(table.cells),), cell.type, cell.nullable)
            table = replace(table, relation=relation, cells=(*table.cells, replace(cell, id=None)))
        return table, _Scope(table.by_id(), subqueries=values)

    def _existing(self, table: _Table, node: Node, is_negated: bool, place: Place) -> _Table:
        """The rows for which IN or EXISTS is true; or false, which for IN is less than not true."""
        query = node["query"] if node["node"] == "InSubquery" else node
        inner, correlated = self._uncorrelated(query["plan"])
        scope = _Scope(inner.by_id(1), outer=table.by_id(0))
        conditions = [_expression(one, scope) for one in correlated]
        if node["node"] == "InSubquery":
            if len(node["values"]) != inner.shown:
                _refuse(node, "IN with another number of columns than its subquery")
            outside = _Scope(table.by_id(0))
            for value, column in zip(node["values"], inner.columns(1), strict=True):
                equal: Expression = _compared(Comparison.EQUAL, _expression(value, outside), column, node)
                # NOT IN is true only if every comparison is false: a null counts as a row that is found.
                conditions.append(Coalesce((equal, TRUE)) if is_negated and equal.may_be_null else equal)
        matches = SqlFunction((_all_of(conditions),), How.FILTER)
        found = Matching(table.relation, inner.relation, matches, not is_negated, place)
        return replace(table, relation=found, order=None)  # Spark joins, which keeps no order

    def _uncorrelated(self, plan: Node) -> tuple[_Table, list[Node]]:
        """The plan of an IN or EXISTS without the conditions that refer to the outer query, and these conditions.

        What they need of the rows is kept in hidden cells. How often a row comes does not matter here.
        """
        if not _is_correlated(plan):
            return self.table(plan).visible(), []
        match plan["node"]:
            case "SubqueryAlias" | "View" | "ResolvedHint" | "Distinct":
                return self._uncorrelated(plan["child"])
            case "Project" if not _has_outer(plan["projectList"]):
                child, correlated = self._uncorrelated(plan["child"])
                scope = _Scope(child.by_id())
                made = [_expression(one, scope) for one in plan["projectList"]]
                ids = [one["exprId"] for one in plan["projectList"]]
                needed = {
                    inner["exprId"]
                    for inner in _nodes(correlated)
                    if inner["node"] == "AttributeReference" and inner["exprId"] not in ids
                } & scope.columns.keys()
                table = _projected(child, made, ids, _place(plan), kept=sorted(needed))
                return table, correlated
            case "Filter":
                child, correlated = self._uncorrelated(plan["child"])
                own: list[Node] = []
                for one in _conjuncts(plan["condition"]):
                    if any(inner["node"] in _SUBQUERIES for inner in _nodes(one)):
                        _refuse(plan, "a subquery in a correlated subquery", "a join")
                    (correlated if _has_outer(one) else own).append(one)
                if own:
                    condition = _all_of([_expression(one, _Scope(child.by_id())) for one in own])
                    child = replace(child, relation=_each(child.relation, [condition], How.FILTER, _place(plan)))
                return child, correlated
        _refuse(plan, f"a reference to the outer query below {plan['node']}", "a join")


def _projected(
    child: _Table, made: list[Expression], ids: Sequence[int], place: Place, kept: Sequence[int] = ()
) -> _Table:
    """The rows as these expressions make them; hidden cells hold what an order, or someone above, needs."""
    cells = [_Cell(id_, one.type, one.may_be_null) for id_, one in zip(ids, made, strict=True)]
    shown = len(made)
    made = list(made)
    columns = child.by_id()
    for id_ in kept:
        made.append(columns[id_])
        cells.append(_Cell(id_, columns[id_].type, columns[id_].may_be_null))
    order = None
    if child.order is not None:
        keys = []
        for key in child.order:
            if key.of not in made:
                made.append(key.of)
                cells.append(_Cell(None, key.of.type, key.of.may_be_null))
            moved = Column((made.index(key.of),), key.of.type, key.of.may_be_null)
            keys.append(replace(key, of=moved))
        order = tuple(keys)
    whole = [Column((position,), cell.type, cell.nullable) for position, cell in enumerate(child.cells)]
    relation = child.relation if made == whole else _each(child.relation, made, How.MAP, place)
    return _Table(relation, tuple(cells), shown, order)


def _require_same_types(left: _Table, right: _Table, node: Node) -> None:
    if [cell.type for cell in left.cells] != [cell.type for cell in right.cells]:
        _refuse(node, "columns of different types", "cast them to the same types")


def _order_of(keys: Sequence[_SortKey], node: Node) -> tuple[tuple[Expression, ...], bool]:
    """What to sort rows by with Python's order, and whether from the greatest down.

    Numbers and booleans can be turned round; text and dates give the direction. Nulls and NaN have their own places.
    """
    firm = {key.descending for key in keys if not _can_turn(key.of.type)}
    if len(firm) > 1:
        _refuse(node, "text or dates in both directions before a limit", "sort these in one direction")
    downwards = firm.pop() if firm else all(key.descending for key in keys) and bool(keys)
    parts: list[Expression] = []
    for key in keys:
        of = key.of
        if of.type == "void":
            continue
        if of.may_be_null:
            null_is_low = key.nulls_first is not downwards
            low, high = Literal(0, "integer"), Literal(1, "integer")
            parts.append(Case(((IsNull(of), low if null_is_low else high),), high if null_is_low else low))
            of = Coalesce((of, Literal(_some_value(of.type), of.type)))
        is_turned = key.descending is not downwards
        if of.type == "double":
            is_nan = Compare(Comparison.SAME, of, Literal(NAN, "double"))
            parts.append(Case(((is_nan, Literal(-1 if is_turned else 1, "integer")),), Literal(0, "integer")))
            of = Case(((is_nan, Literal(0.0, "double")),), of)
        parts.append(_turned(of) if is_turned else of)
    return tuple(parts), downwards


def _can_turn(type_: str) -> bool:
    return type_ in INTEGER_BITS or type_ in ("double", "boolean", "void") or digits(type_) is not None


def _turned(of: Expression) -> Expression:
    if of.type == "boolean":
        return Not(of)
    if of.type in INTEGER_BITS:  # the least long has no negative
        return Arithmetic(Operation.SUBTRACT, Literal(0, WHOLE), Cast(of, WHOLE, Mode.ANSI), WHOLE, Mode.ANSI)
    return Arithmetic(Operation.SUBTRACT, Literal(_some_value(of.type), of.type), of, of.type, Mode.ANSI)


def _some_value(type_: str) -> Any:
    """A value that takes the place of null; the zero, of numbers."""
    if digits(type_) is not None:
        return Decimal(0)
    others = {"boolean": False, "double": 0.0, "string": "", "date": date.min}
    return others.get(type_, datetime.min if type_.startswith("timestamp") else 0)


# -- summaries -------------------------------------------------------------------------------------------------------


def _summarised(node: Node, scope: _Scope, summaries: list[Summary], *, has_rows: bool) -> Expression:
    """A function of a group's rows, made of summaries, which are added to the list."""
    function = node["aggregateFunction"]
    name, is_distinct = function["node"], node["isDistinct"]
    if node["mode"] != "Complete":
        _refuse(node, f"an aggregate in the mode {node['mode']}")
    condition = None if node["filter"] is None else _expression(node["filter"], scope)

    def column(summary: Summary, type_: str, nullable: bool = False) -> Column:
        if summary not in summaries:
            summaries.append(summary)
        return Column((1 + summaries.index(summary),), type_, nullable)

    def counted(values: Sequence[Expression]) -> Column:
        missing = [IsNull(value) for value in values if value.may_be_null]
        zero, one = Literal(0, "long"), Literal(1, "long")
        is_missing = missing[0] if len(missing) == 1 else Or(tuple(missing))
        ones = Case(((is_missing, zero),), one) if missing else one
        return column(Total(SqlValue(ones), once(values), name="count"), "long")

    def once(values: Sequence[Expression]) -> SqlFunction | None:
        return SqlFunction(tuple(values), How.MAP) if is_distinct else None

    def argument(inner: Node) -> Expression:
        value = _expression(inner, scope)
        return value if condition is None else Case(((condition, value),), Literal(None, value.type))

    number: Expression
    match name:
        case "Count":
            return counted([argument(inner) for inner in function["children"]])
        case "CountIf" if not is_distinct:
            value = argument(function["child"])
            number = Case(((value, Literal(1, "long")),), Literal(0, "long"))
            return column(Total(SqlValue(number), name="count_if"), "long")
        case "Min" | "Max" | "BoolAnd" | "BoolOr":
            value = argument(function["child"])
            is_max = name in ("Max", "BoolOr")
            extreme, is_tuple = _extreme(value, is_max)
            found = column(extreme, value.type, nullable=not has_rows)
            return _unpacked(found, value.type, is_max) if is_tuple else found
        case "Sum":
            value = argument(function["child"])
            number, total_type, type_ = _summed(function, value)
            total: Expression = column(Total(SqlValue(number), once([value])), total_type)
            if total_type != type_:
                total = Cast(total, type_, _mode_of(function))
            if has_rows and not value.may_be_null:
                return total
            is_empty = Compare(Comparison.EQUAL, counted([value]), Literal(0, "long"))
            return Case(((is_empty, Literal(None, type_)),), total)
        case "Average":
            value = argument(function["child"])
            if value.type not in INTEGER_BITS and value.type != "double":
                _refuse(function, f"an average of {value.type}", "cast it to double")
            number = value if value.type == "double" else Cast(value, "double", Mode.ANSI)
            if value.may_be_null:
                number = Coalesce((number, Literal(0.0, "double")))
            total = column(Total(SqlValue(number), once([value])), "double")
            count = Cast(counted([value]), "double", Mode.ANSI)
            # Without ANSI: the average of no values is null.
            return Arithmetic(Operation.DIVIDE, total, count, "double", Mode.LEGACY)
    _refuse(function, f"the aggregate function {name}{' DISTINCT' if is_distinct else ''}")


def _extreme(value: Expression, is_max: bool) -> tuple[Extreme, bool]:
    """The least or the greatest value; of tuples, if some values stand outside of Python's order."""
    name = "max" if is_max else "min"
    if not value.may_be_null and value.type != "double":
        return Extreme(SqlValue(value), is_max, name), False
    null, present = _ranks(is_max)
    parts: list[Expression] = [Case(((IsNull(value), null),), present)]
    value = Coalesce((value, Literal(_some_value(value.type), value.type)))
    if value.type == "double":
        is_nan = Compare(Comparison.SAME, value, Literal(NAN, "double"))
        parts.append(Case(((is_nan, Literal(1, "integer")),), Literal(0, "integer")))
        value = Case(((is_nan, Literal(0.0, "double")),), value)
    return Extreme(SqlFunction((*parts, value), How.MAP), is_max, name), True


def _unpacked(found: Column, type_: str, is_max: bool) -> Expression:
    """The value in the tuple that such an extreme gives."""
    null, _ = _ranks(is_max)
    is_null = Compare(Comparison.EQUAL, Column((*found.path, 0), "integer", nullable=False), null)
    branches: list[tuple[Expression, Expression]] = [(is_null, Literal(None, type_))]
    if type_ == "double":
        is_nan = Compare(Comparison.EQUAL, Column((*found.path, 1), "integer", nullable=False), Literal(1, "integer"))
        branches.append((is_nan, Literal(NAN, "double")))
    return Case(tuple(branches), Column((*found.path, len(branches)), type_, nullable=False))


def _ranks(is_max: bool) -> tuple[Literal, Literal]:
    """What null and what a value begins with, so that null is never chosen before a value."""
    low, high = Literal(0, "integer"), Literal(1, "integer")
    return (low, high) if is_max else (high, low)


def _of_no_rows(summary: Summary) -> Any:
    """What a summary is without a row."""
    if isinstance(summary, Extreme):
        if not isinstance(summary.value, SqlFunction):
            return None
        null, _ = _ranks(summary.greatest)
        return (null.constant, *(_some_value(part.type) for part in summary.value.expressions[1:]))
    return 0


def _summed(function: Node, value: Expression) -> tuple[Expression, str, str]:
    """What a sum adds up, the type of the total, and that of the sum."""
    if _mode_of(function) is Mode.TRY:
        _refuse(function, "try_sum, which is null or not by the order of the rows", "sum")
    precision = digits(value.type)
    if value.type in INTEGER_BITS:
        zero, total_type, type_ = Literal(0, value.type), WHOLE, "long"
    elif value.type == "double":
        zero, total_type, type_ = Literal(0.0, "double"), "double", "double"
    elif precision is not None and precision[0] <= _LARGEST_SUMMED_DECIMAL:
        type_ = f"decimal({precision[0] + 10},{precision[1]})"
        zero, total_type = Literal(Decimal(0), value.type), type_
    else:
        _refuse(function, f"a sum of {value.type}", "cast it to long, double or a decimal of fewer digits")
    return (Coalesce((value, zero)) if value.may_be_null else value), total_type, type_


# -- subqueries ------------------------------------------------------------------------------------------------------


def _nodes(value: Any) -> Iterator[Node]:
    """All nodes of these expressions; plans of subqueries are left out."""
    if isinstance(value, dict):
        if "node" in value:
            yield value
        for name, inner in value.items():
            if name not in ("plan", "outerAttrs"):
                yield from _nodes(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _nodes(inner)


def _conjuncts(node: Node) -> Iterator[Node]:
    if node["node"] == "And":
        yield from _conjuncts(node["left"])
        yield from _conjuncts(node["right"])
    else:
        yield node


def _existence(node: Node) -> tuple[Node, bool] | None:
    """The IN or EXISTS that this condition is, and whether it is negated."""
    if node["node"] in ("InSubquery", "Exists"):
        return node, False
    if node["node"] == "Not" and (inner := _existence(node["child"])) is not None:
        return inner[0], not inner[1]
    return None


def _has_outer(value: Any) -> bool:
    return any(node["node"] == "OuterReference" for node in _nodes(value))


def _is_correlated(plan: Node) -> bool:
    """Does a plan, or a subquery in it, refer to something outside?"""
    return '"node": "OuterReference"' in json.dumps(plan)


def _has_one_row(plan: Node) -> bool:
    """Does this plan always give exactly one row?"""
    if plan["node"] in ("Project", "SubqueryAlias", "View"):
        return _has_one_row(plan["child"])
    return plan["node"] == "OneRowRelation" or (plan["node"] == "Aggregate" and not plan["groupingExpressions"])


# -- expressions -----------------------------------------------------------------------------------------------------

_OPERATIONS = {
    "Add": Operation.ADD,
    "Subtract": Operation.SUBTRACT,
    "Multiply": Operation.MULTIPLY,
    "Divide": Operation.DIVIDE,
    "IntegralDivide": Operation.DIV,
    "Remainder": Operation.REMAINDER,
    "Pmod": Operation.PMOD,
}
_COMPARISONS = {
    "EqualTo": (Comparison.EQUAL, False),
    "EqualNullSafe": (Comparison.SAME, False),
    "LessThan": (Comparison.LESS, False),
    "LessThanOrEqual": (Comparison.AT_MOST, False),
    "GreaterThan": (Comparison.LESS, True),
    "GreaterThanOrEqual": (Comparison.AT_MOST, True),
}
"""The comparison that it is, and whether the sides are swapped."""
_TEXT_TESTS = {"StartsWith": "startswith", "EndsWith": "endswith", "Contains": "contains"}
_TEXT_CHANGES = {"Upper": "upper", "Lower": "lower", "Length": "length"}


def _type_of(node: Node) -> str:
    type_ = node["dataType"]
    if not isinstance(type_, str) or not is_known(type_):
        name = type_["type"] if isinstance(type_, dict) else type_
        of = f" of the column {node['name']}" if "name" in node else ""
        _refuse(node, f"the type {name}{of}", "leave such columns out, or cast them to long, double or string before")
    return type_


def _mode_of(node: Node) -> Mode:
    """What the node does when no result fits. Where Spark keeps this differs between its versions."""
    if "failOnError" in node:
        return Mode.ANSI if node["failOnError"] else Mode.LEGACY
    mode = str(node.get("evalMode") or (node.get("evalContext") or {}).get("evalMode"))
    if mode not in Mode.__members__:
        _refuse(node, f"{node['node']} in the mode {mode}", "a Spark that is known (4.0 to 4.3)")
    return Mode[mode]


def _expression(node: Node, scope: _Scope) -> Expression:
    """What this node of an expression means."""
    if (known := scope.known(node)) is not None:
        return known

    def of(name: str) -> Expression:
        return _expression(node[name], scope)

    match node["node"]:
        case "Alias":
            return of("child")
        case "AttributeReference":
            return _referred(node, scope.columns)
        case "OuterReference":
            return _referred(node["e"], scope.outer)
        case "ScalarSubquery" if node["exprId"] in scope.subqueries:
            return scope.subqueries[node["exprId"]]
        case "Literal":
            type_ = _type_of(node)
            return Literal(_constant(node["value"], type_, node), type_)
        case "Cast":
            return _cast_of(of("child"), node)
        case name if name in _OPERATIONS:
            return _arithmetic(_OPERATIONS[name], of("left"), of("right"), node)
        case "UnaryPositive":
            return of("child")
        case "UnaryMinus":
            return _negated(of("child"), node)
        case "Abs":
            value = of("child")
            is_negative = Compare(Comparison.LESS, value, Literal(_some_value(value.type), value.type))
            return Case(((is_negative, _negated(value, node)),), value)
        case name if name in _COMPARISONS:
            comparison, is_swapped = _COMPARISONS[name]
            sides = (of("right"), of("left")) if is_swapped else (of("left"), of("right"))
            return _compared(comparison, *sides, node)
        case "And" | "Or" as name:
            kind = And if name == "And" else Or
            parts = [_expression(one, scope) for one in _flat(node, name)]
            return kind(tuple(parts))
        case "Not":
            return Not(of("child"))
        case "IsNull":
            return IsNull(of("child"))
        case "IsNotNull":
            return Not(IsNull(of("child")))
        case "IsNaN":
            return Compare(Comparison.SAME, of("child"), Literal(NAN, "double"))
        case "NaNvl":
            value = of("left")
            return Case(((Compare(Comparison.SAME, value, Literal(NAN, "double")), of("right")),), value)
        case "Coalesce":
            return Coalesce(_several(node["children"], scope))
        case "If":
            return Case(((of("predicate"), of("trueValue")),), of("falseValue"))
        case "NullIfResult":
            value = of("value")
            return Case(((of("predicate"), Literal(None, value.type)),), value)
        case "CaseWhen":
            branches = [(_expression(when, scope), _expression(then, scope)) for when, then in node["branches"]]
            otherwise = Literal(None, branches[0][1].type) if node["elseValue"] is None else of("elseValue")
            return Case(tuple(branches), otherwise)
        case "In":
            return _among(of("value"), _several(node["list"], scope), node)
        case "Least" | "Greatest" as name:
            return Most(_several(node["children"], scope), name == "Greatest")
        case "AtLeastNNonNulls":
            return _at_least(node["n"], _several(node["children"], scope))
        case "With":
            defined = {one["id"]: _expression(one["child"], scope) for one in node["defs"]}
            return _expression(node["child"], replace(scope, common={**scope.common, **defined}))
        case "CommonExpressionRef" if node["id"] in scope.common:
            return scope.common[node["id"]]
        case "Concat":
            return _text("concat", _several(node["children"], scope), node)
        case name if name in _TEXT_CHANGES:
            return _text(_TEXT_CHANGES[name], (of("child"),), node)
        case name if name in _TEXT_TESTS:
            return _text(_TEXT_TESTS[name], (of("left"), of("right")), node)
        case "Like":
            return _text("like", (of("left"), of("right"), Literal(node["escapeChar"], "string")), node)
        case "PythonUDF":
            return _python(node, scope)
    if isinstance(node.get("replacement"), dict):  # what Spark itself will put in its place
        return of("replacement")
    if node["node"] in _SUBQUERIES:
        _refuse(node, f"the subquery {node['node']} in this position", "a condition of its own in WHERE, or a join")
    _refuse(node, f"the function {node['node']}")


def _several(nodes: Sequence[Node], scope: _Scope) -> tuple[Expression, ...]:
    return tuple(_expression(node, scope) for node in nodes)


def _flat(node: Node, name: str) -> Iterator[Node]:
    if node["node"] == name:
        yield from _flat(node["left"], name)
        yield from _flat(node["right"], name)
    else:
        yield node


def _referred(node: Node, columns: Mapping[int, Expression]) -> Expression:
    _type_of(node)
    if node["exprId"] not in columns:
        _refuse(node, f"a reference to {node['name']} that its inputs do not have")
    return columns[node["exprId"]]


def _constant(value: Any, type_: str, node: Node) -> Any:
    """A value as Python has it; Spark keeps dates as days, timestamps as microseconds."""
    if value is None or type_ in ("boolean", "string"):
        return value
    if type_ in INTEGER_BITS:
        return int(value)
    if digits(type_) is not None:
        return Decimal(value)
    if type_ == "double":
        number = float(value)
        return NAN if number != number else number
    try:
        if type_ == "date":
            return date(1970, 1, 1) + timedelta(days=value)
        if type_ == "timestamp_ntz":
            return datetime(1970, 1, 1) + timedelta(microseconds=value)
        # As PySpark does: local time, without a zone.
        return datetime.fromtimestamp(value // 1_000_000).replace(microsecond=value % 1_000_000)
    except (OverflowError, ValueError, OSError):
        _refuse(node, f"a {type_} that Python does not have")


def _cast_of(value: Expression, node: Node) -> Expression:
    type_, mode = _type_of(node), _mode_of(node)
    if value.type == type_:
        return value
    if isinstance(value, Literal):
        if value.constant is None:
            return Literal(None, type_)
        if value.type == "string" and type_ == "date" and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value.constant):
            with contextlib.suppress(ValueError):
                return Literal(date.fromisoformat(value.constant), type_)
    if not can_cast(value.type, type_):
        _refuse(node, f"a cast from {value.type} to {type_}", "cast the inputs before, or leave the cast out")
    cast = Cast(value, type_, mode)
    if isinstance(value, Literal) and value.type in INTEGER_BITS and not cast.may_be_null:
        with contextlib.suppress(ArithmeticError):
            return Literal(cast.value(()), type_)
    return cast


def _negated(value: Expression, node: Node) -> Expression:
    if not _can_turn(value.type) or value.type in ("boolean", "void"):
        _refuse(node, f"{node['node']} of {value.type}")
    zero = Literal(_some_value(value.type), value.type)
    return Arithmetic(Operation.SUBTRACT, zero, value, value.type, _mode_of(node))


def _arithmetic(operation: Operation, left: Expression, right: Expression, node: Node) -> Expression:
    mode = _mode_of(node)
    both = digits(left.type), digits(right.type)
    if both[0] is not None and both[1] is not None:
        type_ = _decimal_type(operation, both[0], both[1])
        if type_ is None:
            _refuse(node, f"{left.type} {operation.value} {right.type}, which Spark rounds", "cast to long or double")
        return Arithmetic(operation, left, right, type_, mode)
    numbers = ("double",) if operation is Operation.DIVIDE else (*INTEGER_BITS, "double")
    if operation is Operation.DIV:
        numbers = ("long",)
    if left.type != right.type or left.type not in numbers:
        _refuse(node, f"{left.type} {operation.value} {right.type}", "arithmetic on numbers of one type")
    return Arithmetic(operation, left, right, left.type, mode)


def _decimal_type(operation: Operation, left: tuple[int, int], right: tuple[int, int]) -> str | None:
    """The type of a result that has room for all its digits; None if Spark's has not, and rounds."""
    (p, s), (q, t) = left, right
    if operation in (Operation.ADD, Operation.SUBTRACT):
        precision, scale = max(p - s, q - t) + max(s, t) + 1, max(s, t)
    elif operation is Operation.MULTIPLY:
        precision, scale = p + q + 1, s + t
    else:
        return None
    return f"decimal({precision},{scale})" if precision <= 38 else None


def _compared(comparison: Comparison, left: Expression, right: Expression, node: Node) -> Compare:
    are_decimals = digits(left.type) is not None and digits(right.type) is not None
    if left.type != right.type and not are_decimals:
        _refuse(node, f"a comparison of {left.type} with {right.type}", "cast both sides to one type")
    return Compare(comparison, left, right)


def _among(value: Expression, candidates: Sequence[Expression], node: Node) -> Expression:
    if value.type == "double" and len(candidates) > _LONGEST_IN_OF_DOUBLES:
        # Spark looks in a hash set then, where -0.0 is not 0.0.
        _refuse(node, "IN with many doubles", f"at most {_LONGEST_IN_OF_DOUBLES}, or integers")
    if not candidates:
        _refuse(node, "IN with nothing to choose from", "lit(False)")
    equal = [_compared(Comparison.EQUAL, value, candidate, node) for candidate in candidates]
    return equal[0] if len(equal) == 1 else Or(tuple(equal))


def _at_least(count: int, values: Sequence[Expression]) -> Expression:
    present: list[Expression] = []
    for value in values:
        there: Expression = Not(IsNull(value))
        if value.type == "double":
            there = And((there, Not(Compare(Comparison.SAME, value, Literal(NAN, "double")))))
        present.append(there)
    if count == len(present):
        return _all_of(present)
    one, zero = Literal(1, WHOLE), Literal(0, WHOLE)
    total: Expression = zero
    for there in present:
        total = Arithmetic(Operation.ADD, total, Case(((there, one),), zero), WHOLE, Mode.ANSI)
    return Compare(Comparison.AT_MOST, Literal(count, WHOLE), total)


def _text(name: str, arguments: tuple[Expression, ...], node: Node) -> Expression:
    if any(argument.type not in ("string", "void") for argument in arguments):
        _refuse(node, f"{name} of {', '.join(argument.type for argument in arguments)}", "strings")
    return Call(name, arguments)


def _python(node: Node, scope: _Scope) -> Expression:
    if node["evalType"] not in _ROW_WISE_PYTHON:
        _refuse(node, f"{node['name']}, a function of pandas or Arrow data", "udf, which gets one row at a time")
    if not node["udfDeterministic"]:
        _refuse(node, f"{node['name']}, declared as not deterministic", "leave asNondeterministic() out")
    arguments = _several(node["children"], scope)
    return PythonUDF(node["name"], _function(node["command"]), arguments, _type_of(node))


@functools.lru_cache(maxsize=256)
def _function(command: str) -> Callable[..., Any]:
    """The Python function, as the tasks of Spark would get it; the same one for the same bytes."""
    pickles: Any = CPickleSerializer()
    function: Callable[..., Any] = pickles.loads(base64.b64decode(command))[0]
    return function
