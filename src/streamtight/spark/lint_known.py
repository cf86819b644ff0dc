"""What is known of Spark's operators and functions, by the names of their classes: which depend on an order?"""

from __future__ import annotations

SOURCES = {
    **dict.fromkeys(("Rand", "Randn", "Uuid", "Shuffle", "RandStr", "Uniform"), "RANDOM"),
    **dict.fromkeys(
        (
            "MonotonicallyIncreasingID", "SparkPartitionID", "InputFileName", "InputFileBlockStart",
            "InputFileBlockLength",
        ),
        "ROW_ID",
    ),
    **dict.fromkeys(
        ("CurrentTimestamp", "CurrentDate", "Now", "LocalTimestamp", "CurrentTime", "CurrentBatchTimestamp"), "CLOCK"
    ),
}  # fmt: skip
OPAQUE = {
    "ScalaUDF", "ScalaAggregator", "ScalaUDAF", "HiveSimpleUDF", "HiveGenericUDF", "HiveGenericUDTF",
    "HiveUDAFFunction", "CallMethodViaReflection", "ApplyFunctionExpression", "V2Aggregator", "TypedSimpleUDF",
    "PythonUDTF", "PythonUDAF",
}  # fmt: skip
IN_ANY_ORDER = {
    "Count", "Min", "Max", "BitAndAgg", "BitOrAgg", "BitXorAgg", "BoolAnd", "BoolOr", "CountIf",
    "HyperLogLogPlusPlus", "ApproxCountDistinctForIntervals", "Percentile", "Median", "PercentileCont",
    "PercentileDisc", "CountMinSketchAgg", "RegrCount", "PivotFirst", "BitmapOrAgg", "BitmapConstructAgg",
    "BloomFilterAggregate", "Grouping", "GroupingID",
}  # fmt: skip
ADD = {"Sum", "Average", "SumDistinct", "TrySum", "TryAverage"}
FLOATING = {
    "StddevSamp", "StddevPop", "VarianceSamp", "VariancePop", "Skewness", "Kurtosis", "Corr", "CovSample",
    "CovPopulation", "Product", "RegrAvgX", "RegrAvgY", "RegrSlope", "RegrIntercept", "RegrR2", "RegrSXX", "RegrSXY",
    "RegrSYY", "RegrReplacement",
}  # fmt: skip
ONE_OF = {"First", "Last", "AnyValue", "NthValue"}
BY = {"MaxBy", "MinBy"}
COLLECT = {"CollectList", "CollectSet", "Collect"}
ROUGH = {"ApproximatePercentile", "HistogramNumeric", "ApproxTopK", "Histogram"}
NAMES = {
    "CollectList": "collect_list", "CollectSet": "collect_set", "First": "first", "Last": "last",
    "AnyValue": "any_value", "NthValue": "nth_value", "MaxBy": "max_by", "MinBy": "min_by", "ListAgg": "listagg",
    "RowNumber": "row_number", "NTile": "ntile", "Lag": "lag", "Lead": "lead", "GlobalLimit": "limit",
    "Deduplicate": "dropDuplicates", "DeduplicateWithinWatermark": "dropDuplicatesWithinWatermark", "Average": "avg",
    "Sum": "sum", "Rand": "rand", "Randn": "randn", "MonotonicallyIncreasingID": "monotonically_increasing_id",
    "SparkPartitionID": "spark_partition_id", "CurrentTimestamp": "current_timestamp", "CurrentDate": "current_date",
    "InputFileName": "input_file_name", "Aggregate": "groupBy", "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow", "ApproximatePercentile": "percentile_approx", "Offset": "offset",
    "Tail": "tail", "Join": "join", "Union": "union", "MapInPandas": "mapInPandas", "MapInArrow": "mapInArrow",
    "PythonMapInArrow": "mapInArrow", "HistogramNumeric": "histogram_numeric", "LocalTimestamp": "localtimestamp",
    "Mode": "mode", "Max": "max", "Min": "min", "Count": "count",
    "Product": "product", "Corr": "corr", "StddevSamp": "stddev", "VarianceSamp": "variance",
}  # fmt: skip

KEEPS_ELEMENTS = {
    "ArrayDistinct", "ArrayExcept", "ArrayUnion", "ArrayIntersect", "ArrayRemove", "ArrayCompact", "Concat",
    "Flatten", "Reverse", "Cast", "Coalesce", "If", "CaseWhen", "KnownNullable", "KnownNotNull", "ArrayAppend",
    "ArrayPrepend", "Shuffle", "Nvl",
}  # fmt: skip
"""Their result has fixed elements if those of their arrays are fixed."""
ORDER_OF_THE_FIRST = {"ArrayIntersect", "ArrayExcept"}
"""Of their arrays, the second only says which elements there are."""
ONLY_ELEMENTS = {
    "Size", "ArraySize", "SortArray", "ArrayMin", "ArrayMax", "ArrayContains", "ArraysOverlap", "IsNull", "IsNotNull",
}  # fmt: skip
"""Their result depends on the elements alone."""
KEEPS_PLACES = {"ArrayTransform", "ArrayFilter"}
EACH_ELEMENT = {*KEEPS_PLACES, "ArrayExists", "ArrayForAll"}
"""Functions that are given a function of one element, and maybe of its place."""
GENERATORS = {"Explode", "PosExplode", "Inline", "Stack", "JsonTuple", "ExplodeMap"}
ROW_FOR_EACH = {"Explode", "PosExplode", "Inline"}
"""Those that make a row of each element, whatever its place."""
RANKS = {"Rank", "DenseRank", "PercentRank", "CumeDist"}
NUMBERED = {"RowNumber", "NTile"}
NEIGHBOURS = {"Lag", "Lead"}
COMMUTATIVE = {"Add", "Multiply", "Greatest", "Least", "And", "Or", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}
MERGES = {"Sum": "Sum", "Count": "Sum", "Min": "Min", "Max": "Max", "BoolAnd": "BoolAnd", "BoolOr": "BoolOr"}
"""How the results of parts of a group are merged to that of the whole."""
ROW_BY_ROW = (100, 101)
"""Types of Python functions that see one row."""
PASSED = {"SubqueryAlias", "View", "ResolvedHint", "CollectMetrics", "LocalLimit", "Subquery", "WatermarkPropagator"}
LEAVES = {
    "LogicalRelation", "DataSourceV2Relation", "DataSourceV2ScanRelation", "HiveTableRelation",
    "UnresolvedCatalogRelation", "StreamingRelation", "StreamingRelationV2", "StreamingExecutionRelation",
    "StreamingDataSourceV2Relation", "LocalRelation", "Range", "InMemoryRelation",
}  # fmt: skip

NO_OVERFLOW = "no sum of integers or decimals overflows"
NOT_LATE = "no row comes later than the watermark allows"
ONE_ZERO = "no floating number is -0.0, which is equal to 0.0 and can be told from it"
NO_WIDE_AVERAGE = "integers that are averaged add up to less than 2 ** 53"
