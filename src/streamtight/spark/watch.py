"""What is the value of a query, is a property still true, after every event of a stream?

    watch(query, frame, key="sensor", order_by="time")     a DataFrame with the answer after each row

On a DataFrame that ends, rows are sorted by key and order, and each task asks about its keys in blocks. On a stream,
each key has a state in Spark's state store, and every micro-batch goes on from it; what comes too late for its place is
said so, and with `wait=` rows are put in order first. On Arrow tables and on plain events nothing of Spark is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from streamtight.errors import QueryError
from streamtight.properties.monitor import Compiled, Monitor, item_of
from streamtight.properties.query import OTHER, Level, Query
from streamtight.properties.query_parse import parse_query
from streamtight.properties.temporal import Formula

Named = Query | str | Mapping[str, Query | str]
OUTPUTS = ("values", "changes", "alarms")


def watch(
    query: Named | Formula,
    stream: Any,
    *,
    key: str | Sequence[str] | Callable[[Any], Any] | None = None,
    order_by: str | Sequence[str] | None = None,
    tags: str | Mapping[str, Any] | None = None,
    value: str | None = None,
    keep: str | Sequence[str] = (),
    outputs: str = "values",
    others: str = "refuse",
    ties: str = "refuse",
    wait: str | None = None,
    forget_after: str | None = None,
    gives: Mapping[str, str] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    board: str | os.PathLike[str] | None = None,
) -> Any:
    """Ask a query, or several with names, after every row of a DataFrame or an Arrow table, or after every event.

    key        the columns that tell one stream from another: each has answers of its own
    order_by   the columns that order the rows of a stream
    tags       the column with the tag of a row; or a condition for each tag, of which the first that is true counts;
               for single items, all tags that come, where the query does not name all
    value      the column that is `cur`; fields are columns: `cur.price`
    keep       further columns to keep beside the answers
    outputs    "values": an answer for each row; "changes": those that differ from the one before;
               "alarms": rows at which something that should be true is false, or cannot be told
    others     "refuse" rows without a tag of the query, "ignore" them, or "pass" them on: no atom names them, but they
               are items, and get an answer
    ties       "refuse" different rows of equal order, or take "any" order
    wait       on streams: how long rows that come late are waited for, as "10 minutes"; needs a timestamp in order_by
    forget_after   on streams: after how long a key without rows is forgotten, as "2 hours"
    gives      the types of values, as Spark writes them, where they cannot be found out

    A temporal formula, as `check` has them, is judged on a streaming DataFrame, whose micro-batches are its letters
    (`letter.output` has their rows): that starts a query and gives a `WatchedFormula`. It needs a `checkpoint`;
    `board` is a folder for the live page. (The answers of queries are shown there by `WatchMetrics(board=...)`.)

    For each query there is a column with its value, `value` or its name, and one with the status of that: "defined",
    "undefined", "conflict", on streams also "late". For plain events, it gives an iterator of answers.

    >>> from streamtight.properties.query import atom, cur, iter_
    >>> total = iter_(atom("v", cur), 0, lambda total, value: total + value)
    >>> list(watch(total, [("v", 5), ("v", 2)]))
    [5, 7]
    """
    if isinstance(query, Formula):
        return _watched_formula(query, stream, checkpoint, board)
    if board is not None:
        raise QueryError(
            "watch(board=...)",
            needed="a temporal formula, which starts a query of its own",
            came="a query, whose answers you write",
            hint="spark.streams.addListener(tight.WatchMetrics(board=...))",
        )
    queries = _named(query)
    for name, given, known in (
        ("outputs", outputs, OUTPUTS),
        ("others", others, ("refuse", "ignore", "pass")),
        ("ties", ties, ("refuse", "any")),
    ):
        if given not in known:
            raise QueryError(
                f"watch({name}=...)",
                needed=" or ".join(map(repr, known)),
                came=repr(given),
                hint=f"{name}={known[0]!r}",
            )
    if outputs == "alarms":
        _require_temporal(queries)
    if not (hasattr(stream, "sparkSession") or hasattr(stream, "to_batches") or hasattr(stream, "iloc")):
        for name, was_given in (
            ("order_by", order_by), ("value", value), ("keep", tuple(keep)), ("wait", wait), ("gives", gives),
            ("forget_after", forget_after), ("outputs", outputs != "values"), ("tags", isinstance(tags, Mapping)),
        ):  # fmt: skip
            if was_given:
                raise QueryError(
                    f"watch({name}=...)", needed="a table or a DataFrame", came="single items", hint=f"no {name}="
                )
        if not hasattr(stream, "__iter__"):
            raise QueryError(
                "watch(...)", needed="a table, a DataFrame, or items", came=repr(stream), hint="[('v', 5)]"
            )
        return _answers(query, queries, stream, key, others, tags)
    from streamtight.method.watch.columns import Asked

    asked = Asked(
        queries, _names("key", key), _names("order_by", order_by), tags, value, _names("keep", keep),
        outputs, others, ties == "any", dict(gives or {}),
    )  # fmt: skip
    if hasattr(stream, "sparkSession"):
        from streamtight.spark.watch_frames import watched

        return watched(asked, stream, wait, forget_after)
    for name, time in (("wait", wait), ("forget_after", forget_after)):
        if time is not None:
            raise QueryError(f"watch({name}=...)", needed="a streaming DataFrame", came="a table", hint=f"no {name}=")
    from streamtight.method.watch.columns import answered

    return answered(asked, stream)


def _watched_formula(
    formula: Formula,
    stream: Any,
    checkpoint: str | os.PathLike[str] | None,
    board: str | os.PathLike[str] | None,
) -> Any:
    if not hasattr(stream, "sparkSession"):
        judge = formula.judge(keep=True)
        return (judge.step(letter) for letter in stream)
    if checkpoint is None:
        raise QueryError(
            f"watch({formula!r}, frame)",
            needed="a folder for what must survive a restart",
            came="no checkpoint=",
            hint="checkpoint='checkpoints/promise'",
        )
    from streamtight.spark.watch_formula import WatchedFormula

    return WatchedFormula(formula, stream, checkpoint, board=board)


def _named(given: Named) -> dict[str, Query]:
    those = given if isinstance(given, Mapping) else {"value": given}
    found = {name: parse_query(each) if isinstance(each, str) else each for name, each in those.items()}
    for name, each in found.items():
        if not isinstance(name, str) or not isinstance(each, Query):
            raise QueryError(
                "watch(...)", needed="queries, with names", came=f"{name!r}: {each!r}", hint="{'total': q}"
            )
    if not found:
        raise QueryError("watch({}, ...)", needed="a query or more", came="none", hint="watch({'total': q}, ...)")
    return found


def _names(what: str, given: Any) -> tuple[str, ...]:
    is_one = isinstance(given, str) or not hasattr(given, "__iter__")
    names = () if given is None else (given,) if is_one else tuple(given)
    if not all(isinstance(name, str) for name in names):
        raise QueryError(f"watch({what}=...)", needed="names of columns", came=repr(given), hint=f"{what}='time'")
    return names


def _require_temporal(queries: Mapping[str, Query]) -> None:
    for name, each in queries.items():
        if each.level is not Level.TEMPORAL:
            raise QueryError(
                f"watch(outputs='alarms') with {name}",
                needed="a query that is true or false",
                came=f"{each}, which has a value",
                hint="a comparison: q > 100; or outputs='changes'",
            )


def _answers(
    given: Named, queries: Mapping[str, Query], items: Iterable[Any], key: Any, others: str, tags: Any
) -> Iterator[Any]:
    """The answers after each item, for each key; several queries give a dict."""
    known = list(tags or sorted({tag for each in queries.values() for tag in each.tags}))
    # A query that names no tag takes all: they count as one.
    passes = others == "pass" or not known
    compiled = {name: each.compile([*known, *([OTHER] if passes else [])]) for name, each in queries.items()}
    return _given(compiled, not isinstance(given, Mapping), items, key, frozenset(known), others, passes)


def _given(
    compiled: Mapping[str, Compiled],
    is_one: bool,
    items: Iterable[Any],
    key: Any,
    known: frozenset[str],
    others: str,
    passes: bool,
) -> Iterator[Any]:
    at_work: dict[Any, dict[str, Monitor]] = {}
    key_of: Callable[[Any], Any] = key if callable(key) else lambda item: _key(item, key)
    for item in items:
        tag, value = item_of(item)
        if tag not in known:
            if others == "ignore" and known:
                continue
            tag = OTHER if passes else tag
        mine = None if key is None else key_of(value)
        mine = "NaN" if mine != mine else mine  # which is not equal to itself
        if mine not in at_work:
            at_work[mine] = {name: each.monitor() for name, each in compiled.items()}
        found = {name: each.update(tag, value) for name, each in at_work[mine].items()}
        yield found["value"] if is_one else found


def _key(item: Any, key: str | Sequence[str]) -> Any:
    names = (key,) if isinstance(key, str) else tuple(key)
    values = tuple(item[name] if isinstance(item, dict) else getattr(item, name) for name in names)
    return values[0] if isinstance(key, str) else values
