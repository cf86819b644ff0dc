"""What the name of a finding means, in a line. Every name that a verdict, an alarm or the lint can give stands here.

>>> meaning_of("ORDER_LOST")
'the same rows, but two that must keep their order are the other way round'
>>> meaning_of("FIRST_VALUE or LIST_ORDER")[:60]
'the rows of a group have no order, so any of its values may '

The names are of the same kind as those of compilers: short, stable, and what a team talks about. Each has a page in
docs/findings, with an example, why it happens on Spark, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping

MEANINGS: Mapping[str, str] = {
    # compare: two jobs, or two recorded or running streams
    "ORDER_LOST": "the same rows, but two that must keep their order are the other way round",
    "MISSING_ROWS": "rows of the reference that the candidate does not give",
    "EXTRA_ROWS": "rows of the candidate that the reference does not give",
    "WRONG_ROWS": "rows are missing, and others came in their place",
    "RACE": "two rows that must keep their order come in different partitions of one batch, in no order",
    "RACE_IN_REFERENCE": "the reference itself gives two rows that must keep their order in different partitions",
    "NOT_ALLOWED": "the output is not among those that the reference allows",
    "DIVERGED": "a row came after which nothing to come can make the two streams agree",
    "LEFT_OVER": "both streams ended, and rows of one have no partner in the other",
    "STUCK": "a row of a running stream has waited too long for its partner",
    # laws: one job against itself
    "BATCH_DEPENDENT": "the result depends on how the input is cut into micro-batches",
    "PARTITION_DEPENDENT": "the result depends on how the input is spread over partitions",
    "ORDER_DEPENDENT": "the result depends on the order of input rows that nobody promised",
    "DROPPED_LATE": "rows that came later than the watermark allows were dropped",
    "LOST_ON_RESTART": "rows are missing after the job was stopped and started again from its checkpoint",
    "DUPLICATED_ON_REPLAY": "rows come twice when a batch is run again after a failure",
    "DUPLICATED_ON_RESTART": "rows come twice after the job was stopped and started again, with no batch run twice",
    "OPEN_AT_END": "rows are still held in the state when the input ends, and never come out",
    "LOST_IN_STREAM": "rows that the job gives as a batch never come as a stream, and are not held in the state either",
    "STREAM_DIFFERS": "the job gives other rows as a stream than as a batch",
    "NOT_REPEATABLE": "the job gives other rows each time it is run on the same input",
    # check: promises over time
    "VIOLATED": "a promise over time is broken at a certain batch",
    # watch: what is true of a stream right now
    "ALARM": "a query that should be true is false after some rows, or has no answer there",
    # prove: two programs on every input, and functions that merge
    "DIFFERENT": "the two programs give different results on this input",
    "DIFFERENT_COLUMNS": "the results have other columns, by name or type, on every input",
    "NOT_WELL_DEFINED": "one program alone gives different results, by how its rows are spread or ordered",
    "NOT_ASSOCIATIVE": "the grouping in which values are merged changes the result",
    "NOT_COMMUTATIVE": "the order in which two values are merged changes the result",
    "NOT_NEUTRAL": "merging with the value to start from changes the result",
    # typecheck: what depends on something that Spark does not fix
    "FIRST_VALUE": "the rows of a group have no order, so any of its values may be taken",
    "LIST_ORDER": "the rows of a group have no order, and neither has the list of them",
    "TEXT_ORDER": "rows without an order are joined to one text",
    "TIED_ORDER": "rows can tie in this order, and which of them comes first is up to Spark",
    "LIMIT_WITHOUT_ORDER": "which rows are kept is up to Spark",
    "DUPLICATE_CHOICE": "which of several rows with one key is kept is up to Spark",
    "RANDOM": "random, and with a seed too a row gets another value in another partition",
    "SAMPLE": "a random sample, which with a seed too depends on how rows are spread",
    "ROW_ID": "tells how rows are spread over partitions or files, not what they are",
    "CLOCK": "the time of the run, another one in each",
    "UDF_VARIES": "a Python function that does not give the same for the same arguments",
    "GROUP_FUNCTION_ORDER": "a Python function of a group looks at the order of its rows, which is up to Spark",
    "REDUCE_ORDER": (
        "the function merges rows in an order that is up to Spark, and gives another result in another order"
    ),
    "FLOAT_SUM": "the last digits of a floating sum depend on the order of its terms",
    "APPROXIMATE": "an approximation that depends on how rows are merged",
    "NO_WATERMARK": "no watermark says when its state can be forgotten, so it grows for ever",
    "UNBOUNDED_STATE": (
        "the watermark does not bound its state: the event time is not among the keys, or not in the condition"
    ),
    "SHARED_WATERMARK": (
        "Spark has one watermark for the whole query, so one stream decides what is late in the other"
    ),
    "SINK_APPENDS_AGAIN": "a batch that is replayed after a failure is appended a second time",
    "MODE_COUNTS_TWICE": "each change sends a row again, to a sink that adds it to those it has",
    # typecheck and parallelize: operators, and programs that are split over workers
    "TYPE_BROKEN": "an operator emits what the type of its output does not have",
    "ORDER_MATTERS": "two events that do not depend on each other give different results in different orders",
    "GROUPING_MATTERS": "the same items, added up in other groups, give another result",
    "NOT_A_FUNCTION": "the same call gives different results: it remembers something, or chooses",
    "FORK_JOIN": "a state that is forked and joined again is not what it was",
    "JOIN_UPDATE_LEFT": "an update of the left part before a join gives another result than after it",
    "JOIN_UPDATE_RIGHT": "an update of the right part before a join gives another result than after it",
    "FORK_SHARES_STATE": "fork gave both sides the same object, and an update of one is seen on the other",
    "INIT_DIFFERS": "init gives a state that an earlier run has changed",
    "BLOCK_DIFFERS": "update_block does not give what update gives for the same events, one after the other",
    "OUTPUTS_DIFFER": "states that count as the same give different outputs later on",
    "OUTPUT_NOT_DECLARED": "update emits a kind of event that gives does not name",
    "STATE_NOT_PICKLED": "a state cannot be sent to another process",
    "STATE_CHANGED_BY_PICKLE": "a state is another one after it was sent to another process",
    "DEPENDENCE_NOT_SYMMETRIC": "one event depends on another, but not the other way round",
    "DEPENDENCE_RAISES": "the function that says which events depend on each other raises",
    "DEPENDENCE_LOOKS_AT_PAYLOAD": "the dependence looks at a field that is not among the tags",
    # explore: pipelines and stateful code, on any input
    "SILENT": "from some point on nothing comes out any more, whatever comes in",
    "QUEUE_FULL": "a queue holds as many events as it can",
    "STEPS_DIFFER": "the two pipelines do not give the same at some push",
    "SEQUENCES_DIFFER": "the two pipelines do not give the same events in the same order",
    "NO_APPROXIMATION": "the pipeline says True where the other does not",
    "BECOMES_FALSE": "a pipe that should always carry True carries False",
    "STOPS": "a function raises, a number leaves its domain, or an event comes to a full queue",
    "PROPERTY_BROKEN": "a run breaks the formula, or the test of what comes out",
}


def meaning_of(name: str) -> str:
    """What a finding means; of several, `A or B`, the meanings one after the other. Empty for a name of the user's."""
    return "; ".join(MEANINGS[one] for one in name.split(" or ") if one in MEANINGS)
