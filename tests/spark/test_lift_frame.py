"""DataFrame programs as relations: the plain meaning of what was read is compared with what Spark gives."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)
from pyspark.sql.window import Window

from streamtight.errors import UnsupportedError
from streamtight.program.expression import PythonUDF, SqlError, SqlFunction
from streamtight.program.relation import Each, First, Matching, Relation, rows_of
from streamtight.spark.engine import settings
from streamtight.spark.lift_frame import LiftedFrame, lift_frame

pytestmark = pytest.mark.slow

TABLES = {
    "r": StructType().add("k", LongType()).add("v", LongType()).add("s", StringType()),
    "q": StructType().add("k", LongType()).add("w", IntegerType()).add("b", BooleanType()),
    "e": StructType()
    .add("x", DoubleType())
    .add("n", LongType(), nullable=False)
    .add("d", DateType())
    .add("c", DecimalType(6, 2)),
}
CALM, WILD, TINY = 2, 1, 3  # inputs of small values, of those with the ends of the types, of a row or two of those

NAN, INF = math.nan, math.inf
SMALL: dict[str, list[Any]] = {
    "k": [None, 0, 1, 2, -1],
    "v": [None, 0, 1, -1, 2, 3, -7, 10],
    "s": [None, "", "a", "b", "A", "ab", "1", " 2 "],
    "w": [None, 0, 1, -3, 2],
    "b": [None, True, False],
    "x": [None, 0.0, -0.0, 1.5, -2.0, NAN],
    "n": [0, 1, 2, -2],
    "d": [None, date(2024, 1, 1), date(2024, 2, 29), date(1969, 12, 31)],
    "c": [None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25")],
}
ENDS: dict[str, list[Any]] = {
    "k": [2**63 - 1, -(2**63)],
    "v": [2**63 - 1, -(2**63), 2**31],
    "s": ["99999999999999999999", "é", "x%_y"],
    "w": [2**31 - 1, -(2**31)],
    "x": [INF, -INF, 2.0**63, 300.7, -300.7],
    "n": [2**63 - 1, -(2**63)],
    "d": [date.min, date.max],
    "c": [Decimal("9999.99"), Decimal("-9999.99")],
}

Program = Callable[..., DataFrame]
Input = dict[str, list[tuple[Any, ...]]]


def inputs() -> list[Input]:
    chance = random.Random(7)
    made: list[Input] = [{name: [] for name in TABLES}]
    for number in range(1, CALM + WILD + TINY):
        is_wild, is_tiny = number >= CALM, number >= CALM + WILD
        one: Input = {}
        for name, schema in TABLES.items():
            pools = [SMALL[field] + (2 * ENDS.get(field, []) if is_wild else []) for field in schema.names]
            rows = [tuple(map(chance.choice, pools)) for _ in range(chance.randint(1, 2) if is_tiny else 9)]
            one[name] = rows if is_tiny else rows + rows[:2]
        made.append(one)
    return made


INPUTS = inputs()


OF_SQL: dict[Program, str] = {}
"""The programs that find their inputs by name, and their text."""


def sql(text: str) -> Program:
    def program(r: DataFrame, q: DataFrame, e: DataFrame) -> DataFrame:
        return r.sparkSession.sql(text)

    OF_SQL[program] = text
    return program


@sf.udf(LongType())
def plus_one(n):
    return None if n is None else (n + 1) % 1000


@sf.udf(StringType())
def sign(n, s):
    return f"{'none' if n is None else 'below' if n < 0 else 'above'}:{s}"


@sf.udf(BooleanType())
def is_even(n):
    return None if n is None else n % 2 == 0


# Whether these raise depends on single rows; so they get many inputs of few rows.
ARITHMETIC: dict[str, Program] = {
    "add": lambda r, q, e: r.select(sf.col("v") + sf.col("k")),
    "subtract and multiply": lambda r, q, e: r.select(sf.col("v") - 1, sf.col("k") * sf.col("v")),
    "int and long": lambda r, q, e: q.select(sf.col("w") + sf.col("k"), sf.col("w") * 2, sf.col("w") - 1),
    "divide": lambda r, q, e: r.select(sf.col("v") / 4, sf.col("v") / sf.col("k")),
    "div": sql("SELECT v div 3, v div -3, k div v FROM r"),
    "remainder": sql("SELECT v % 3, v % -3, k % v, pmod(v, 3), pmod(v, -3) FROM r"),
    "remainder of doubles": lambda r, q, e: e.select(sf.col("x") % 2, sf.pmod("x", sf.lit(1.25)), sf.col("x") * 2),
    "minus and abs": lambda r, q, e: r.select(-sf.col("v"), sf.abs("v"), sf.expr("+v")),
    "minus and abs of others": sql("SELECT -w, abs(w), -x, abs(x) FROM q, e WHERE n > 0"),
    "division by a double": lambda r, q, e: e.select(1.5 / sf.col("x")),
    "decimals": sql("SELECT c + 1.5, c * 2, c - n, c > 1, v * 0.5, -c, abs(c) FROM e, r"),
    "casts of integers": sql("SELECT cast(k as int), cast(w as long), cast(w as double), cast(w as boolean) FROM q"),
    "casts to small": sql("SELECT cast(w as byte), cast(w as short) FROM q"),
    "casts to text": sql("SELECT cast(k as string), cast(b as string), cast(b as int) FROM q"),
    "cast of dates": sql("SELECT cast(d as string) FROM e"),
    "casts of text": sql("SELECT cast(s as int) FROM r"),
    "casts of text to booleans": sql("SELECT cast(s as boolean) FROM r WHERE s like '1%'"),
    "casts of doubles": lambda r, q, e: e.select(sf.col("x").cast("long"), sf.col("x").cast("boolean")),
    "casts of doubles to small": lambda r, q, e: e.select(sf.col("x").cast("byte")),
    "casts of decimals": sql(
        "SELECT cast(c as int), cast(c as double), cast(n as decimal(20,1)), cast(c as boolean) FROM e"
    ),
    "casts to narrow decimals": sql("SELECT cast(c as decimal(5,2)), cast(n as decimal(3,0)) FROM e"),
    "try": sql("SELECT try_add(v, k), try_divide(v, k), try_cast(s as int), try_subtract(v, 1), try_mod(v, k) FROM r"),
}

TEXTS = ["1.5", "1.", ".", "-.5", "+", "-", "", " -7\\t", "1e3", "+5", "127", "128", "-129", "32768", "2147483648",
         "9223372036854775807", "-9223372036854775809", "é", "TRUE", " y ", "no", "00012", "1_0", "٣"]  # fmt: skip
DOUBLES = ["9223372036854775807", "-9223372036854775808", "9223372036854777856", "127.9", "-128.9", "128", "32767.5",
           "2147483647.9", "2147483648", "-2147483649", "1e300", "NaN", "Infinity", "-Infinity", "-0.0"]  # fmt: skip
LEAST = -(2**63)


def casts(cast: str, values: list[str]) -> Program:
    targets = ("byte", "short", "int", "long", "boolean")
    return lambda r, q, e: r.sparkSession.sql(f"VALUES {', '.join(values)} AS t(a)").selectExpr(
        *(f"{cast}(a AS {target})" for target in targets)
    )


def of_pairs(*pairs: tuple[int, int], sql: list[str]) -> Program:
    return lambda r, q, e: r.sparkSession.createDataFrame(list(pairs), "a long, b long").selectExpr(*sql)


# The same for every input: what stands at the edges of types.
EDGES: dict[str, Program] = {
    f"{cast} of edges of {kind}": casts(cast, values)
    for cast in ("cast", "try_cast")
    for kind, values in {
        "text": [f"('{text}')" for text in TEXTS],
        "doubles": [f"(double('{number}'))" for number in DOUBLES],
        "integers": [f"({number}L)" for number in (127, 128, -129, 2**15, -(2**31) - 1, 2**63 - 1, 0)],
        "decimals": [f"({number})" for number in ("127.99", "-128.99", "2147483648.00", "0.00")],
    }.items()
} | {
    "edges of pmod": of_pairs(
        *((-1, LEAST), (-5, -3), (LEAST, -1), (LEAST, LEAST), (5, -3), (2**63 - 1, LEAST)), sql=["pmod(a, b)", "a % b"]
    ),
    "edges of div": of_pairs((LEAST, -1), sql=["a div b"]),
    "null by zero": sql("SELECT v / 0, v div 0, v % 0, pmod(v, 0) FROM r WHERE v is null"),
    "edges of bytes": sql("SELECT pmod(a, b), a % b, try_add(a, b) FROM VALUES (-1Y, -128Y), (127Y, 1Y) AS t(a, b)"),
}

PROGRAMS: dict[str, Program] = {
    **ARITHMETIC,
    **EDGES,
    # -- row by row
    "select": lambda r, q, e: r.select("s", "k", "k"),
    "select nothing new": lambda r, q, e: r.select("k", "v", "s"),
    "where": lambda r, q, e: r.where("v > 0 and k < 2"),
    "where or": lambda r, q, e: r.where((sf.col("v") > 0) | (sf.col("k") == 1) | sf.col("s").isNull()),
    "where not": lambda r, q, e: r.where(~(sf.col("v") > 0)),
    "where !=": lambda r, q, e: r.where(sf.col("s") != "a"),
    "where a boolean": lambda r, q, e: q.where("b"),
    "where null": sql("SELECT * FROM r WHERE v > null"),
    "withColumn": lambda r, q, e: r.withColumn("v", sf.col("v") * 2).withColumn("z", sf.col("v") - sf.col("k")),
    "rename and drop": lambda r, q, e: r.withColumnRenamed("v", "u").drop("s"),
    "comparisons": sql("SELECT k = v, k <=> v, k != v, k < v, k <= v, k > v, k >= v FROM r"),
    "comparisons of doubles": lambda r, q, e: e.select(
        sf.col("x") == sf.lit(NAN), sf.col("x") < 1, sf.lit(NAN) > sf.col("x"), sf.col("x") == sf.lit(-0.0)
    ),
    "comparisons of text and dates": lambda r, q, e: r.join(e, r.s < sf.lit("b")).where("d > '2024-01-15' or s >= 'a'"),
    "comparison of int and text": lambda r, q, e: r.where("s in ('1', ' 2 ')").select(
        sf.expr("s = 1"), sf.expr("s + 1")
    ),
    "logic": sql("SELECT b and w > 0, b or w > 0, not b, b and null, b or null FROM q"),
    "logic of booleans": sql("SELECT b = true, b < (w > 0), b <=> null FROM q"),
    "nulls": sql("SELECT v is null, v is not null, coalesce(v, k, 0), ifnull(v, k), nvl(s, 'x'), nvl2(v, 1, 2) FROM r"),
    "nullif": sql("SELECT nullif(v, 1), nullif(v, k), nullif(k + 1 < v, true) FROM r WHERE k < 9"),
    "case": sql("SELECT CASE WHEN v > 1 THEN k WHEN v is null THEN -1 END, CASE k WHEN 1 THEN 'one' ELSE s END FROM r"),
    "when": lambda r, q, e: r.select(sf.when(sf.col("v") > 0, 1).when(sf.col("k") > 0, 2).otherwise(None)),
    "if": sql("SELECT if(v > 1, s, 'none'), if(v > k, 1, 2L) FROM r"),
    "in": sql("SELECT v in (1, 2), v in (1, null), s in ('a'), v not in (k, 3) FROM r"),
    "isin": lambda r, q, e: r.where(sf.col("v").isin(1, 2, -7)),
    "between": sql("SELECT v between 0 and 2, v not between k and 3 FROM r"),
    "Column.between": lambda r, q, e: r.where(sf.col("v").between(-1, 2)),
    "least and greatest": sql("SELECT least(k, v), greatest(k, v, 1), least(s, 'b') FROM r"),
    "greatest of doubles": lambda r, q, e: e.select(sf.greatest("x", sf.lit(1.0)), sf.least("x", sf.lit(1.0))),
    "text": sql("SELECT concat(s, '-', s), s || k, length(s), s like 'a%', s like '_' FROM r"),
    "text tests": sql("SELECT startswith(s, 'a'), endswith(s, 'b'), contains(s, ' ') FROM r"),
    "letters": lambda r, q, e: r.where("s != 'é'").select(sf.upper("s"), sf.lower("s")),
    "na.fill": lambda r, q, e: e.drop("c").na.fill(0.5),
    "na.fill text": lambda r, q, e: r.na.fill("none"),
    "na.drop": lambda r, q, e: e.na.drop(),
    "na.drop some": lambda r, q, e: e.na.drop(thresh=3),
    "na.replace": lambda r, q, e: r.replace(1, 5),
    "isnan and nanvl": lambda r, q, e: e.select(sf.isnan("x"), sf.nanvl("x", sf.lit(7.0))),
    "literals": sql("SELECT 1, 1L, 1.5, 1.5e0, 'a', true, null, date'2024-01-01', 1Y, 1S FROM r"),
    # -- groups
    "sum and count": lambda r, q, e: r.groupBy("k").agg(sf.sum("v"), sf.count("*"), sf.count("v"), sf.count("s")),
    "min and max": lambda r, q, e: r.groupBy("k").agg(sf.min("v"), sf.max("v"), sf.min("s"), sf.max("s")),
    "min and max of all": lambda r, q, e: e.agg(sf.min("x"), sf.max("x"), sf.max("n"), sf.min("d"), sf.max("c")),
    "min and max of doubles": lambda r, q, e: e.groupBy("d").agg(sf.min("x"), sf.max("x"), sf.min("n")),
    "avg": lambda r, q, e: r.groupBy("k").agg(sf.avg("v"), sf.avg(sf.col("v") + 1)),
    "avg of doubles": lambda r, q, e: e.groupBy("n").agg(sf.avg("x"), sf.sum("x")),
    "sum of ints": lambda r, q, e: q.groupBy("b").agg(sf.sum("w"), sf.sum(sf.col("w") % 2)),
    "sum of what is there": lambda r, q, e: e.groupBy("d").agg(sf.sum("n"), sf.count("n")),
    "sum of decimals": lambda r, q, e: e.groupBy("n").agg(sf.sum("c"), sf.max("c")),
    "count distinct": lambda r, q, e: r.groupBy("k").agg(sf.countDistinct("v"), sf.countDistinct("v", "s")),
    "sum distinct": sql("SELECT k, sum(DISTINCT v % 4), avg(DISTINCT v % 4), max(DISTINCT v) FROM r GROUP BY k"),
    "several keys": lambda r, q, e: r.groupBy("k", "s").count(),
    "keys that are expressions": lambda r, q, e: r.groupBy((sf.col("v") % 2).alias("p")).agg(sf.max("k").alias("m")),
    "key in an expression": sql("SELECT k % 2 + 1, count(*) + k % 2 FROM r GROUP BY k % 2"),
    "keys that are doubles": lambda r, q, e: e.groupBy("x").count(),
    "keys that are booleans": lambda r, q, e: q.groupBy("b").agg(
        sf.max("b"), sf.bool_and("b"), sf.bool_or(sf.col("w") > 0)
    ),
    "no keys": lambda r, q, e: r.agg(sf.sum("v"), sf.count("*"), sf.max("s"), sf.countDistinct("k")),
    "no keys, not null": lambda r, q, e: e.agg(sf.sum("n"), sf.count("n"), sf.min("n")),
    "avg of all": lambda r, q, e: r.agg(sf.avg("v")),
    "no keys, then more": lambda r, q, e: r.agg(sf.count("*").alias("c")).where("c > 2").select(sf.col("c") * 2),
    "having": sql("SELECT k, sum(v) FROM r GROUP BY k HAVING count(*) > 1 and max(v) > 0"),
    "filter clause": sql(
        "SELECT k, count(*) FILTER (WHERE v > 0), sum(v) FILTER (WHERE s is null), count_if(v > 1) FROM r GROUP BY k"
    ),
    "distinct with a filter": sql("SELECT count(DISTINCT k) FILTER (WHERE v > 0) FROM r"),
    "expressions over aggregates": sql(
        "SELECT sum(v) * 2 - count(*), coalesce(max(v), 0) + k FROM r WHERE v < 99 GROUP BY k"
    ),
    "groups of groups": lambda r, q, e: r.groupBy("k", "s").agg(sf.sum("v").alias("t")).groupBy("k").agg(sf.max("t")),
    "group by all that is selected": sql("SELECT k, v FROM r GROUP BY k, v"),
    "window": lambda r, q, e: r.withColumn("m", sf.max("v").over(Window.partitionBy("k"))).where("v = m"),
    "window of several": lambda r, q, e: r.select(
        "s", sf.sum("v").over(Window.partitionBy("k", "s")), sf.count("*").over(Window.partitionBy(sf.col("v") % 2))
    ),
    "window of all": sql("SELECT k, avg(v) OVER (), v - min(v) OVER () FROM r WHERE v < 100"),
    "window by doubles": lambda r, q, e: e.select("x", sf.count("n").over(Window.partitionBy("x"))),
    "window in an expression": sql("SELECT s, k + max(v) OVER (PARTITION BY k) * 2 FROM r WHERE v < 100 AND k < 100"),
    # -- several tables
    "join": lambda r, q, e: r.join(q, "k"),
    "join on a condition": lambda r, q, e: r.join(q, (r.k == q.k) & (r.v > q.w)),
    "join null-safe": lambda r, q, e: r.join(q, r.k.eqNullSafe(q.k)),
    "left join": lambda r, q, e: r.join(q, "k", "left"),
    "left join on a condition": lambda r, q, e: r.join(q, (r.k == q.k) & (q.w > 0), "left"),
    "right join": lambda r, q, e: r.join(q, (r.k == q.k) & (r.v > 0), "right"),
    "full join": lambda r, q, e: r.join(q, "k", "full"),
    "full join on a condition": lambda r, q, e: r.join(q, (r.k == q.k) & (r.v >= q.w), "outer"),
    "semi join": lambda r, q, e: r.join(q, "k", "semi"),
    "anti join": lambda r, q, e: r.join(q, (r.k == q.k) & q.b, "anti"),
    "cross join": lambda r, q, e: r.crossJoin(q),
    "self join": lambda r, q, e: r.alias("a").join(r.alias("b"), sf.col("a.k") == sf.col("b.v")),
    "self join of groups": lambda r, q, e: r.join(r.groupBy("k").agg(sf.max("v").alias("m")), "k").where("v = m"),
    "natural join": sql("SELECT * FROM r NATURAL JOIN q"),
    "join on doubles": lambda r, q, e: (
        e.alias("a").join(e.alias("b"), sf.col("a.x") == sf.col("b.x")).select("a.n", "b.n")
    ),
    "left join, then where": lambda r, q, e: r.join(q, "k", "left").where(sf.col("w").isNull()).select("k", "v"),
    "three tables": lambda r, q, e: r.join(q, "k").join(e, sf.col("w") == sf.col("n"), "left").select("k", "x", "s"),
    "groups of a left join": lambda r, q, e: (
        r.join(e, r.k == e.n, "left").groupBy("k").agg(sf.count("n"), sf.sum("n"), sf.max("n"), sf.min(sf.col("n") + 1))
    ),
    "groups of a right join": lambda r, q, e: (
        e.join(r, r.k == e.n, "right").groupBy("k").agg(sf.count("n"), sf.sum("n"))
    ),
    "groups of a full join": lambda r, q, e: e.join(r, r.v == e.n, "full").groupBy("k").agg(sf.count("n"), sf.max("n")),
    "not in, after a left join": sql(
        "SELECT r.k FROM r LEFT JOIN e ON r.k = e.n WHERE n NOT IN (SELECT n FROM e WHERE x > 0)"
    ),
    "union with nulls": lambda r, q, e: e.select("n").union(r.select("k")).groupBy("n").agg(sf.count("n"), sf.max("n")),
    "union": lambda r, q, e: r.select("k", "v").union(q.select("k", "w")),
    "union of three": sql("SELECT k FROM r UNION ALL SELECT w FROM q UNION ALL SELECT n FROM e"),
    "union distinct": sql("SELECT k FROM r UNION SELECT k FROM q"),
    "unionByName": lambda r, q, e: r.select("k", "v").unionByName(q.select("w", "k"), allowMissingColumns=True),
    "distinct": lambda r, q, e: r.distinct(),
    "distinct doubles": lambda r, q, e: e.select("x").distinct(),
    "dropDuplicates": lambda r, q, e: r.select("k", "s").dropDuplicates(),
    "subtract": lambda r, q, e: r.select("k").subtract(q.select("k")),
    "except of rows": sql("SELECT k, v FROM r EXCEPT SELECT k, w FROM q"),
    "except all": sql("SELECT k FROM r EXCEPT ALL SELECT k FROM q"),
    "intersect all": sql("SELECT k, v FROM r INTERSECT ALL SELECT k, w FROM q"),
    "exceptAll": lambda r, q, e: r.union(r).exceptAll(r.where("k > 0")),
    "intersectAll of doubles": lambda r, q, e: e.select("x").union(e.select("x")).intersectAll(e.select("x")),
    "intersect": lambda r, q, e: r.select("k").intersect(q.select("k")),
    "intersect of doubles": lambda r, q, e: e.select("x").intersect(e.where("n > 0").select("x")),
    # -- order
    "orderBy": lambda r, q, e: r.orderBy("v", sf.desc("k")),
    "orderBy limit": lambda r, q, e: r.orderBy("v", "k", "s").limit(2),
    "descending": lambda r, q, e: r.orderBy(sf.desc("v"), sf.desc("k"), sf.desc("s")).limit(3),
    "both directions": lambda r, q, e: r.orderBy(sf.desc("v"), "k", "s").limit(3),
    "nulls last": lambda r, q, e: r.orderBy(
        sf.asc_nulls_last("v"), sf.desc_nulls_first("k"), sf.asc_nulls_last("s")
    ).limit(3),
    "order of doubles": lambda r, q, e: e.select("x", "n").orderBy(sf.desc("x"), "n").limit(3),
    "order of all types": lambda r, q, e: e.orderBy(sf.desc("n"), "x", "d", sf.desc("c")).limit(3),
    "order of booleans": lambda r, q, e: q.orderBy(sf.desc("b"), "k", "w").limit(2),
    "order by what is not selected": sql("SELECT s FROM r ORDER BY k, v, s LIMIT 2"),
    "order, select, limit": lambda r, q, e: r.orderBy("k", "v", "s").select("s").where("s is not null").limit(2),
    "limits": lambda r, q, e: r.orderBy("k", "v", "s").limit(4).orderBy(sf.desc("v"), "k", "s").limit(2),
    "limit below groups": lambda r, q, e: r.orderBy("v", "k", "s").limit(3).groupBy("k").count(),
    "order below groups": lambda r, q, e: r.orderBy("v").groupBy("k").count(),
    "sortWithinPartitions": lambda r, q, e: r.sortWithinPartitions("v").repartition(2).coalesce(1).hint("broadcast"),
    # -- subqueries
    "in a subquery": sql("SELECT * FROM r WHERE k IN (SELECT k FROM q)"),
    "not in a subquery": sql("SELECT * FROM r WHERE k NOT IN (SELECT k FROM q)"),
    "not in, no nulls inside": sql("SELECT * FROM r WHERE k NOT IN (SELECT k FROM q WHERE k is not null)"),
    "not in, of pairs": sql("SELECT * FROM r WHERE (k, v) NOT IN (SELECT k, w FROM q)"),
    "in, correlated": sql("SELECT * FROM r WHERE v IN (SELECT w FROM q WHERE q.k = r.k)"),
    "not in, correlated": sql("SELECT * FROM r WHERE v NOT IN (SELECT w FROM q WHERE q.k = r.k)"),
    "exists": sql("SELECT * FROM r WHERE EXISTS (SELECT 1 FROM q WHERE q.k = r.k AND w > 0) AND v is not null"),
    "not exists": sql("SELECT * FROM r WHERE NOT EXISTS (SELECT DISTINCT w FROM q WHERE q.k = r.k AND q.w < r.v)"),
    "exists at all": sql("SELECT * FROM r WHERE EXISTS (SELECT * FROM q WHERE b)"),
    "a scalar subquery": sql("SELECT * FROM r WHERE v >= (SELECT max(w) FROM q)"),
    "scalar subqueries": sql("SELECT k, (SELECT count(*) FROM q) + v, (SELECT 5) FROM r WHERE v < 99"),
    "with": sql("WITH c AS (SELECT k, count(*) n FROM r GROUP BY k) SELECT a.n, b.k FROM c a JOIN c b ON a.k < b.k"),
    "from a subquery": sql("SELECT m + 1 FROM (SELECT k, max(w) AS m FROM q GROUP BY k) WHERE m < 99"),
    # -- other rows
    "values": sql("SELECT * FROM VALUES (1, 'a', date'2024-01-01', 1.5, 1e0), (2, null, null, 2.5, null)"),
    "one row": sql("SELECT 1 AS a, 'b' AS b"),
    "createDataFrame": lambda r, q, e: r.join(
        r.sparkSession.createDataFrame([(1, "one"), (2, None)], "k long, t string"), "k"
    ),
    # -- Python functions
    "udf": lambda r, q, e: r.select(plus_one("v"), sign("k", "s")),
    "where udf": lambda r, q, e: r.where(is_even("v")),
    "udf in a case": lambda r, q, e: r.select(sf.when(is_even("v"), plus_one("k")).otherwise(sf.col("v"))),
    "group by udf": lambda r, q, e: r.groupBy(is_even("v")).agg(sf.count("*")),
    "two lambdas": lambda r, q, e: r.select(
        sf.udf(lambda n: n is None, "boolean")("v"), sf.udf(lambda n: 1.5 if n else None, "double")("v")
    ),
}

# Sums of the ends of the types: whether Spark raises depends on which rows it adds first.
SUMS = {
    "expressions over aggregates", "filter clause", "groups of a left join", "groups of a right join",
    "groups of groups", "having", "no keys", "no keys, not null", "sum and count", "sum of ints",
    "sum of what is there",
}  # fmt: skip
# Floating point numbers of very different size: what their sum is depends on that too.
CALM_ONLY = {"avg", "avg of all", "avg of doubles", "sum distinct"}

LEGACY = [
    *ARITHMETIC,
    *EDGES,
    "sum and count",
    "no keys",
    "avg",
    "sum of what is there",
    "in",
    "expressions over aggregates",
]


# What small local queries do not need: several partitions, broadcasts, and compiled expressions.
QUICK = {
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Iterator[list[dict[str, DataFrame]]]:
    """The inputs as Spark has them: local relations, which need no shuffle."""
    with settings(spark, QUICK):
        yield [{name: local_frame(spark, name, rows) for name, rows in one.items()} for one in INPUTS]
        for name in TABLES:
            spark.catalog.dropTempView(name)


def local_frame(spark: SparkSession, name: str, rows: list[tuple[Any, ...]]) -> DataFrame:
    schema = TABLES[name]
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in schema]
    return spark.createDataFrame(pa.table(columns, schema=to_arrow_schema(schema)), schema)


def bag(rows: list[Any]) -> Counter[Any]:
    return Counter(tuple(map(plain, row)) for row in rows)


def plain(value: Any) -> Any:
    """With its type, since True is 1 in Python; NaN and the zeros made one."""
    if isinstance(value, float):
        value = "NaN" if value != value else value + 0.0
    return type(value).__name__, value


def meaning(lifted: LiftedFrame, tables: Input) -> list[Any] | None:
    try:
        return rows_of(lifted.relation, tables)
    except SqlError:
        return None


def on_spark(program: Program, tables: dict[str, DataFrame]) -> list[Any] | None:
    """The rows that Spark gives; None if it raises."""
    words = re.findall(r"\w+", OF_SQL.get(program, ""))
    for name in tables.keys() & words:
        tables[name].createOrReplaceTempView(name)
    try:
        return program(*tables.values()).collect()
    except PySparkException:
        return None


def chosen(name: str) -> range:
    """The inputs for a program; the first one is empty."""
    if name in EDGES:
        return range(1)
    if name in ARITHMETIC:
        return range(1, CALM + WILD + TINY)
    return range(CALM if name in CALM_ONLY else CALM + WILD)


def require_agreement(name: str, spark: SparkSession, frames: list[dict[str, DataFrame]]) -> None:
    program = PROGRAMS[name]
    lifted = lift_frame(program, TABLES, spark)
    for number in chosen(name):
        expected, found = meaning(lifted, INPUTS[number]), on_spark(program, frames[number])
        if found is None and number >= CALM and name in SUMS:
            continue
        assert (expected is None) == (found is None), f"input {number}: {INPUTS[number]}"
        assert bag(expected or []) == bag(found or []), f"input {number}: {INPUTS[number]}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_means_what_spark_does(name: str, spark: SparkSession, frames: list[dict[str, DataFrame]]) -> None:
    require_agreement(name, spark, frames)


@pytest.mark.parametrize("name", LEGACY)
def test_without_ansi_too(name: str, spark: SparkSession, frames: list[dict[str, DataFrame]]) -> None:
    with settings(spark, {"spark.sql.ansi.enabled": "false"}):
        require_agreement(name, spark, frames)


# -- what is refused ---------------------------------------------------------------------------------------------------

not_the_same_twice = sf.udf(lambda n: n, LongType()).asNondeterministic()

REFUSED: dict[str, tuple[Program, str]] = {
    "a range": (lambda r, q, e: r.crossJoin(r.sparkSession.range(3)), "Range"),
    "a window": (lambda r, q, e: r.select(sf.max("v").over(Window.partitionBy("k").orderBy("v"))), "Window"),
    "a rank": (lambda r, q, e: r.select(sf.row_number().over(Window.partitionBy("k").orderBy("v"))), "Window"),
    "some rows of a window": (
        lambda r, q, e: r.select(sf.sum("v").over(Window.partitionBy("k").rowsBetween(-1, 0))),
        "Window",
    ),
    "explode": (lambda r, q, e: r.select(sf.explode(sf.array("k", "v"))), "Generate"),
    "an array": (lambda r, q, e: r.select(sf.array("k", "v")), "CreateArray"),
    "a sample": (lambda r, q, e: r.sample(0.5), "Sample.*differs from run to run"),
    "rand": (lambda r, q, e: r.select(sf.rand()), "Rand.*differs from run to run"),
    "uuid": (lambda r, q, e: r.select(sf.expr("uuid()")), "Uuid.*differs from run to run"),
    "current_timestamp": (
        lambda r, q, e: r.select(sf.current_timestamp()),
        "CurrentTimestamp.*differs from run to run",
    ),
    "monotonically_increasing_id": (
        lambda r, q, e: r.select(sf.monotonically_increasing_id()),
        "MonotonicallyIncreasingID",
    ),
    "dropDuplicates of some": (lambda r, q, e: r.dropDuplicates(["k"]), "some of the columns"),
    "cube": (lambda r, q, e: r.cube("k").count(), "Expand"),
    "pivot": (lambda r, q, e: r.groupBy("k").pivot("s", ["a"]).sum("v"), "PivotFirst|GetArrayItem"),
    "pivot without values": (lambda r, q, e: r.groupBy("k").pivot("s").sum("v"), "pivot"),
    "first": (lambda r, q, e: r.groupBy("k").agg(sf.first("v")), "aggregate function First"),
    "collect_list": (lambda r, q, e: r.groupBy("k").agg(sf.collect_list("v")), "CollectList"),
    "stddev": (lambda r, q, e: r.agg(sf.stddev("v")), "StddevSamp"),
    "average of decimals": (lambda r, q, e: e.agg(sf.avg("c")), r"average of decimal\(6,2\)"),
    "try_sum": (sql("SELECT try_sum(v) FROM r"), "try_sum"),
    "offset": (lambda r, q, e: r.orderBy("v").offset(1), "Offset"),
    "tail": (lambda r, q, e: r.tail(1), "DataFrame.tail"),
    "mixed directions of text": (
        lambda r, q, e: r.join(e, r.k == e.n).orderBy("s", sf.desc("d")).limit(1),
        "both directions",
    ),
    "division of decimals": (sql("SELECT c / 3 FROM e"), "which Spark rounds"),
    "double to text": (sql("SELECT cast(x as string) FROM e"), "a cast from double to string"),
    "text to double": (sql("SELECT cast(s as double) FROM r"), "a cast from string to double"),
    "rounded decimals": (sql("SELECT cast(c as decimal(6,1)) FROM e"), r"from decimal\(6,2\) to decimal\(6,1\)"),
    "date to timestamp": (sql("SELECT cast(d as timestamp) FROM e"), "a cast from date to timestamp"),
    "a float": (sql("SELECT cast(x as float) FROM e"), "the type float"),
    "a collation": (sql("SELECT * FROM r WHERE s COLLATE UTF8_LCASE = 'a'"), "collate|Collate"),
    "round": (lambda r, q, e: e.select(sf.round("x")), "Round"),
    "date_add": (lambda r, q, e: e.select(sf.date_add("d", 1)), "DateAdd"),
    "a correlated scalar": (sql("SELECT k, (SELECT max(w) FROM q WHERE q.k = r.k) FROM r"), "scalar subquery"),
    "a scalar of some row": (sql("SELECT * FROM r WHERE v = (SELECT w FROM q LIMIT 1)"), "scalar subquery"),
    "in below or": (sql("SELECT * FROM r WHERE v > 1 OR k IN (SELECT k FROM q)"), "InSubquery in this position"),
    "correlated below groups": (
        sql("SELECT * FROM r WHERE v IN (SELECT max(w) FROM q WHERE q.k = r.k)"),
        "outer query below Aggregate",
    ),
    "a lateral join": (sql("SELECT * FROM r, LATERAL (SELECT w FROM q WHERE q.k = r.k)"), "LateralJoin"),
    "many doubles": (lambda r, q, e: e.where(sf.col("x").isin([n / 2 for n in range(11)])), "IN with many doubles"),
    "a nondeterministic udf": (lambda r, q, e: r.select(not_the_same_twice("v")), "not deterministic"),
    "rows of an RDD": (
        lambda r, q, e: r.sparkSession.createDataFrame(r.sparkSession.sparkContext.parallelize([(1,)]), "k long"),
        "neither from an input nor from a list",
    ),
    "a file": (lambda r, q, e: r.sparkSession.read.text(__file__), "LogicalRelation"),
    "count()": (lambda r, q, e: r if r.count() else q, "DataFrame.count"),
    "collect()": (lambda r, q, e: r.where(sf.col("k") == len(r.collect())), "DataFrame.collect"),
    "rdd": (lambda r, q, e: r.rdd.toDF(), "DataFrame.rdd"),
    "no DataFrame": (lambda r, q, e: 3, "needed a DataFrame"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_known_exactly_is_refused_by_name(name: str, spark: SparkSession) -> None:
    program, words = REFUSED[name]
    with pytest.raises(UnsupportedError, match=words):
        lift_frame(program, TABLES, spark)


def test_a_refusal_says_where_the_user_wrote_it(spark: SparkSession) -> None:
    with pytest.raises(UnsupportedError) as refused:
        lift_frame(lambda r, q, e: r.select(-sf.col("k"), sf.col("v").cast("float") + 1), TABLES, spark)
    assert re.search(r"test_lift_frame.py:\d+", refused.value.where)


def test_a_type_that_is_not_known_is_refused_at_the_input(spark: SparkSession) -> None:
    schema = StructType().add("k", LongType()).add("tags", ArrayType(StringType()))
    with pytest.raises(UnsupportedError, match="the type array of the column tags"):
        lift_frame(lambda t: t.select("k"), {"t": schema}, spark)


# -- what else a lifted program tells ----------------------------------------------------------------------------------


def only(relation: Relation, kind: type) -> Any:
    found = [part for part in parts(relation) if isinstance(part, kind)]
    assert len(found) == 1
    return found[0]


def parts(relation: Relation) -> Iterator[Relation]:
    yield relation
    for part in relation.parts:
        yield from parts(part)


def test_columns_have_names_types_and_whether_they_may_be_null(spark: SparkSession) -> None:
    lifted = lift_frame(lambda r, q, e: e.select("n", sf.col("x").alias("y"), sf.col("c") * 2), TABLES, spark)
    assert lifted.columns == (("n", "long", False), ("y", "double", True), ("(c * 2)", "decimal(8,2)", True))


def test_an_order_is_seen_where_it_reaches_the_user(spark: SparkSession) -> None:
    def is_ordered(program: Program) -> bool:
        return lift_frame(program, TABLES, spark).is_ordered

    assert is_ordered(lambda r, q, e: r.orderBy("v").select("k"))
    assert is_ordered(lambda r, q, e: r.orderBy("v").limit(2))
    assert not is_ordered(lambda r, q, e: r.orderBy("v").limit(1))  # one row is in any order
    assert not is_ordered(lambda r, q, e: r.orderBy("v").distinct())
    assert not is_ordered(lambda r, q, e: r.limit(1))


def test_a_limit_without_an_order_gives_any_rows(spark: SparkSession) -> None:
    first = only(lift_frame(lambda r, q, e: r.limit(2), TABLES, spark).relation, First)
    assert first.count == 2
    assert first.key((1, 2, "a")) == first.key((3, 4, "b"))


def test_operations_know_the_line_that_made_them(spark: SparkSession) -> None:
    lifted = lift_frame(lambda r, q, e: r.where(sf.col("v") > 1), TABLES, spark)
    place = only(lifted.relation, Each).place
    assert place.operation == "Filter"
    assert place.file == __file__


def test_operations_of_sql_know_their_words(spark: SparkSession) -> None:
    lifted = lift_frame(sql("SELECT * FROM r WHERE k NOT IN (SELECT k FROM q)"), TABLES, spark)
    assert "NOT IN" in only(lifted.relation, Matching).place.operation


def test_a_python_function_keeps_its_code(spark: SparkSession) -> None:
    factor = 3
    triple = sf.udf(lambda n: n * factor, LongType())
    lifted = lift_frame(lambda r, q, e: r.select(triple("v")), TABLES, spark)
    function = only(lifted.relation, Each).function
    assert isinstance(function, SqlFunction)
    (read,) = function.expressions
    assert isinstance(read, PythonUDF)
    assert read.function(5) == 15
    assert read.function.__code__.co_filename == __file__


def test_a_registered_python_function_is_found(spark: SparkSession) -> None:
    spark.udf.register("halve", lambda n: n // 2, LongType())
    lifted = lift_frame(sql("SELECT halve(n) FROM e"), TABLES, spark)
    assert rows_of(lifted.relation, {"e": [(None, 7, None, None)]}) == [(3,)]


def test_a_python_function_that_raises_is_an_error_of_the_row(spark: SparkSession) -> None:
    invert = sf.udf(lambda n: 1.0 / n, DoubleType())
    lifted = lift_frame(lambda r, q, e: r.select(invert("v")), TABLES, spark)
    with pytest.raises(SqlError, match="ZeroDivisionError"):
        rows_of(lifted.relation, {"r": [(1, 0, "a")]})


def test_timestamps_are_compared(spark: SparkSession) -> None:
    schema = StructType().add("a", TimestampType()).add("b", TimestampType()).add("c", TimestampNTZType())
    rows = [
        (datetime(2024, 1, 1, 12), datetime(2024, 1, 1, 13), datetime(2024, 1, 1)),
        (datetime(2024, 1, 1, 12), None, None),
        (datetime(2023, 1, 1, 0, 0, 0, 1), datetime(2023, 1, 1), datetime(2025, 1, 1)),
    ]
    for program in (
        lambda t: t.where("a < b or c is null"),
        lambda t: t.groupBy("a").agg(sf.max("b"), sf.min("c")),
        lambda t: t.where("c >= timestamp_ntz'2024-06-01 00:00:00'"),
    ):
        lifted = lift_frame(program, {"t": schema}, spark)
        found = program(spark.createDataFrame(rows, schema)).collect()
        assert bag(rows_of(lifted.relation, {"t": rows})) == bag(found)


def test_views_of_these_names_come_back(spark: SparkSession) -> None:
    tables = {"taken": TABLES["r"], "free": TABLES["r"]}
    spark.sql("SELECT 42 AS answer").createOrReplaceTempView("taken")
    try:
        lift_frame(lambda *_: spark.sql("SELECT taken.k FROM taken JOIN free USING (k)"), tables, spark)
        assert spark.table("taken").columns == ["answer"]
        assert not spark.catalog.tableExists("free")
    finally:
        spark.catalog.dropTempView("taken")


def test_all_is_as_before_when_the_program_raises(spark: SparkSession) -> None:
    def broken(mine: DataFrame) -> DataFrame:
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        lift_frame(broken, {"mine": TABLES["r"]}, spark)
    assert not spark.catalog.tableExists("mine")
    assert spark.sql("SELECT 1").count() == 1


def test_tables_of_the_same_schema_are_told_apart(spark: SparkSession) -> None:
    lifted = lift_frame(lambda a, b: a.subtract(b), {"a": TABLES["r"], "b": TABLES["r"]}, spark)
    assert rows_of(lifted.relation, {"a": [(1, 1, "x"), (2, 2, "y")], "b": [(1, 1, "x")]}) == [(2, 2, "y")]


def test_nan_is_one_value_whichever_object_it_is(spark: SparkSession) -> None:
    lifted = lift_frame(lambda t: t.distinct(), {"t": StructType().add("x", DoubleType())}, spark)
    assert len(rows_of(lifted.relation, {"t": [(float("nan"),), (float("nan"),)]})) == 1


def test_an_order_does_not_last_through_a_subquery(spark: SparkSession) -> None:
    def program(r: DataFrame, q: DataFrame, e: DataFrame) -> DataFrame:
        return r.orderBy("v").where("k IN (SELECT k FROM q)")

    assert not lift_frame(program, TABLES, spark).is_ordered


def test_a_group_of_everything_is_there_without_rows(spark: SparkSession) -> None:
    lifted = lift_frame(lambda r, q, e: r.agg(sf.count("*"), sf.sum("v"), sf.max("s"), sf.avg("v")), TABLES, spark)
    assert rows_of(lifted.relation, {"r": []}) == [(0, None, None, None)]
