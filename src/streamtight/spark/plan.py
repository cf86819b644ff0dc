"""The plan that Spark's analyser makes of a DataFrame, as data; and how something in it is refused, with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from streamtight.errors import UnsupportedError
from streamtight.program.relation import Place
from streamtight.spark.session import java_class

Node = dict[str, Any]
"""A node of a plan or of an expression: its class under "node", its arguments under their names."""

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
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructType;

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
    if (node instanceof Expression && isResolved(node)) {
      writeType((Expression) node);
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

  /** The type of the value, if no argument says it: nested ones by their SQL, which is short. */
  private void writeType(Expression node) throws Exception {
    scala.Product product = (scala.Product) node;
    for (int a = 0; a < product.productArity(); a++) {
      if (product.productElementName(a).equals("dataType") || product.productElementName(a).equals("type")) {
        return;
      }
    }
    DataType type;
    try {
      type = node.dataType();
    } catch (Exception e) {
      return; // a part of a window, for example, has no value
    }
    text.append(",\"type\":");
    if (type instanceof ArrayType || type instanceof MapType || type instanceof StructType) {
      quote(type.catalogString());
    } else {
      write(type);
    }
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


def plan_of(frame: DataFrame, spark: SparkSession) -> Node:
    """The analysed plan: each node with its class, its arguments by name, and the line of the user who made it."""
    application = str(spark.sparkContext.applicationId)
    if application not in _READERS:
        compiler = java_class(spark, "org.codehaus.janino.SimpleCompiler")()
        compiler.setParentClassLoader(java_class(spark, "org.apache.spark.util.Utils").getContextOrSparkClassLoader())
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


def rdd_of(frame: DataFrame, spark: SparkSession) -> int | None:
    """The number of the RDD that a frame made of rows reads."""
    rdd: int | None = plan_of(frame, spark).get("rdd")
    return rdd


# -- nodes -----------------------------------------------------------------------------------------------------------

_HINTS = {
    "Aggregate": "group by the columns or expressions that are selected",
    "Deduplicate": "dropDuplicates() on all columns; which of several rows is kept otherwise is up to Spark",
    "Expand": "a union of several groupBy, instead of cube, rollup or grouping sets",
    "Generate": "keep arrays out of the program, or compare on generated inputs instead",
    "Range": "give the numbers as an input",
    "Window": "a window without an order, or groupBy and a join, where that says the same",
}
_ANY_HINT = "write it with other operations, or compare on generated inputs instead"
_VARYING = {
    "CurrentDate", "CurrentTimestamp", "InputFileName", "LocalTimestamp", "MonotonicallyIncreasingID", "Now", "Rand",
    "Randn", "RandStr", "Sample", "Shuffle", "SparkPartitionID", "Uniform", "UnixTimestamp", "Uuid",
}  # fmt: skip
_BELOW = ("child", "left", "right", "children", "plan", "cteDefs")
"""The arguments of a node of a plan that are plans."""


def place_of(node: Node) -> Place:
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


def refuse(node: Node, came: str, hint: str = "") -> NoReturn:
    """Raise: this cannot be read exactly."""
    name = node["node"]
    if name in _VARYING:
        came, hint = f"{name}, which differs from run to run", "leave it out, or give it as a column of an input"
    raise UnsupportedError(
        str(place_of(node)),
        needed="what can be read exactly",
        came=came,
        hint=hint or _HINTS.get(name, _ANY_HINT),
    )


def nodes_of(value: Any) -> Iterator[Node]:
    """All nodes of these expressions; plans of subqueries are left out."""
    if isinstance(value, dict):
        if "node" in value:
            yield value
        for name, inner in value.items():
            if name not in ("plan", "outerAttrs"):
                yield from nodes_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes_of(inner)
