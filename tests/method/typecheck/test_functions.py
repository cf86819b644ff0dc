"""Python functions: do they always give the same, and do they look at an order?"""

from __future__ import annotations

import datetime as dates
import functools
import itertools
import json
import os
import random
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from random import choice
from typing import Any
from uuid import uuid4

import pytest

from streamtight.method.typecheck.functions import appends_again, takes_in_any_order, why_varies, words_of

_calls = 0
_numbers = itertools.count()


def counts(x: Any) -> int:
    global _calls
    _calls += 1
    return _calls


def imports_inside(x: Any) -> Any:
    import random

    return random.choice(x)


def imports_names_inside(x: Any) -> Any:
    from datetime import datetime

    return datetime.utcnow()


def through_a_helper(x: Any) -> Any:
    return imports_inside(x)


def remembers() -> Callable[[Any], int]:
    last = 0

    def next_one(x: Any) -> int:
        nonlocal last
        last += 1
        return last

    return next_one


_seen: list[Any] = []
_cache: dict[Any, Any] = {}


def keeps(x: Any) -> int:
    _seen.append(x)
    return len(_seen)


def stores(x: Any) -> int:
    _cache[x] = 1
    return len(_cache)


def looks_up(x: Any) -> Any:
    return _cache.get(x, len(_seen))


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (keeps, "changes _seen, which other calls see"),
        (stores, "changes _cache, which other calls see"),
        (lambda x: random.random(), "uses random.random"),
        (lambda x: choice(x), "uses random.choice"),
        (lambda x: random.Random().random(), "uses random.Random"),
        (lambda x: time.time(), "uses time.time"),
        (lambda x: uuid.uuid4().hex, "uses uuid.uuid4"),
        (lambda x: uuid4().hex, "uses uuid.uuid4"),
        (lambda x: os.urandom(3), "uses os.urandom"),
        (lambda x: secrets.token_hex(), "uses secrets.token_hex"),
        (lambda x: datetime.now(), "uses datetime.now"),
        (lambda x: date.today(), "uses datetime.today"),
        (lambda x: dates.datetime.now(), "uses datetime.now"),
        (lambda x: next(_numbers), "takes the next of _numbers, which other calls see"),
        (counts, "changes the global _calls"),
        (remembers(), "changes last, which other calls see"),
        (imports_inside, "uses random.choice"),
        (imports_names_inside, "uses datetime.utcnow"),
        (through_a_helper, "uses random.choice"),
        (functools.partial(imports_inside, [1]), "uses random.choice"),
    ],
    ids=lambda value: value if isinstance(value, str) else "function",
)
def test_what_is_not_always_the_same_is_named(function: Any, why: str) -> None:
    assert why_varies(function) == why


@pytest.mark.parametrize(
    "function",
    [
        lambda x: random.Random(x).random(),
        lambda x: uuid.uuid5(uuid.NAMESPACE_DNS, x).hex,
        lambda x: datetime.strptime(x, "%Y"),
        lambda x: datetime(2020, 1, 1),
        lambda x: dates.datetime.fromisoformat(x),
        lambda x: time.strptime(x, "%Y"),
        lambda x: json.dumps(x),
        lambda x: os.path.join("a", x),
        lambda x: [choice for choice in x],  # noqa: C416 - a name like one of random's
        lambda now: now.today,
        looks_up,
    ],
    ids=range(11),
)
def test_what_is_always_the_same_is_left_alone(function: Any) -> None:
    assert why_varies(function) is None


FREE = [
    lambda xs: sum(xs),
    lambda xs: max(xs) - min(xs),
    lambda xs: sorted(xs)[0],
    lambda xs: sum(xs) / len(xs),
    lambda xs: ",".join(sorted(xs)) if isinstance(xs[:0], str) else 0,
    lambda xs: len(set(xs)),
]
BOUND = [
    lambda xs: xs[0],
    lambda xs: ",".join(map(str, xs)),
    lambda xs: set(xs).pop(),
    lambda xs: Counter(xs).most_common(1)[0],
    lambda xs: next(iter(xs)),
    lambda xs: [x for x in xs][-1],  # noqa: C416
    lambda xs: max(xs, key=lambda x: x % 2),
]


@pytest.mark.parametrize("function", FREE[:4] + FREE[5:], ids=range(5))
def test_functions_of_a_list_in_any_order_give_the_same_in_every_order(function: Any) -> None:
    assert takes_in_any_order(function)
    assert len({function(list(order)) for order in itertools.permutations([3, 1, 2, 2])}) == 1


@pytest.mark.parametrize("function", [*BOUND, FREE[4]], ids=range(8))
def test_others_are_not_taken_for_such(function: Any) -> None:
    assert not takes_in_any_order(function)


def test_a_name_of_the_user_is_not_the_builtin() -> None:
    space = {"sum": lambda xs: xs[0]}
    function = eval("lambda xs: sum(xs)", space)  # noqa: S307

    assert not takes_in_any_order(function)


def test_words_are_those_of_helpers_too() -> None:
    def helper(frame: Any) -> Any:
        return frame.iloc[0]

    assert "iloc" in words_of(lambda frame: helper(frame))


@pytest.mark.parametrize(
    ("function", "how"),
    [
        (lambda batch, batch_id: batch.write.mode("append").parquet("out"), "mode('append')"),
        (lambda batch, batch_id: batch.write.format("jdbc").mode("append").save(), "mode('append')"),
        (lambda batch, _: batch.write.insertInto("t"), "insertInto"),
        (lambda batch, _: batch.writeTo("t").append(), "writeTo(...).append()"),
        (lambda batch, _: batch.sparkSession.sql("INSERT INTO t SELECT * FROM b"), "INSERT INTO"),
        (lambda batch, n: batch.write.mode("append").parquet(f"out/{n}"), None),
        (lambda batch, n: batch.write.mode("overwrite").parquet("out"), None),
        (
            lambda batch, _: batch.sparkSession.sql("MERGE INTO t USING b ON t.k = b.k WHEN MATCHED THEN UPDATE SET *"),
            None,
        ),
        (lambda batch, _: batch.show(), None),
    ],
    ids=range(9),
)
def test_a_sink_that_adds_again_is_told_from_one_that_does_not(function: Any, how: str | None) -> None:
    assert appends_again(function) == how
