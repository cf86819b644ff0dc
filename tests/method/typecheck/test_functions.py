"""Python functions: do they always give the same, and do they look at an order?"""

from __future__ import annotations

import datetime as dates
import functools
import heapq
import importlib
import itertools
import json
import os
import random
import re
import secrets
import time
import uuid
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime
from random import choice
from typing import Any, ClassVar
from uuid import uuid4

import numpy
import pytest

from streamtight.method.typecheck.functions import appends_again, takes_in_any_order, why_unclear, why_varies, words_of

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


class Box:
    kept: ClassVar[dict[Any, int]] = {}
    step = 1

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, x: Any) -> int:
        return self.more(x)

    def more(self, x: Any) -> int:
        self.n += self.step
        return self.n

    def twice(self, x: int) -> int:
        return 2 * x * self.step

    @property
    def next(self) -> int:
        self.n += 1
        return self.n

    @staticmethod
    def note(x: Any) -> int:
        Box.kept[x] = Box.kept.get(x, 0) + 1
        return Box.kept[x]

    @classmethod
    def note_all(cls, x: Any) -> int:
        cls.kept.update({x: 1})
        return len(cls.kept)


_box = Box()
_dice = random.Random(3)
_numpy_dice = numpy.random.default_rng(3)
_pools: dict[str, list[Any]] = {"a": []}


def counts_on_itself(x: Any) -> Any:
    counts_on_itself.n = getattr(counts_on_itself, "n", 0) + 1  # type: ignore[attr-defined]
    return counts_on_itself.n  # type: ignore[attr-defined]


def default_appended(x: Any, seen: list[Any] = []) -> int:  # noqa: B006 - what is tested
    seen.append(x)
    return len(seen)


def default_extended(x: Any, seen: list[Any] = []) -> int:  # noqa: B006
    seen += [x]
    return len(seen)


def default_given_on(x: Any, *, seen: list[Any] = []) -> int:  # noqa: B006
    return put_into(seen, x)


def put_into(those: list[Any], x: Any) -> int:
    those.append(x)
    return len(those)


def changed_by_another_name(x: Any) -> int:
    kept = Box.kept if x else {}
    kept[x] = 1
    return len(kept)


def changed_in_a_handler(x: Any) -> int:
    try:
        return _cache[x]
    except KeyError:
        _cache[x] = len(_cache)
        return _cache[x]


def changed_inside(x: Any) -> int:
    pool = _pools

    def put() -> None:
        pool["a"].append(x)

    put()
    return len(pool["a"])


def counted(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    calls = [0]

    @functools.wraps(function)
    def wrapper(x: Any) -> Any:
        calls[0] += 1
        return function(x) + calls[0]

    return wrapper


def asks_the_task(x: Any) -> Any:
    from pyspark import TaskContext

    return TaskContext.get().partitionId()  # type: ignore[union-attr]


def copies_first(x: Any, seen: list[Any] = []) -> int:  # noqa: B006
    seen = list(seen)
    seen.append(x)
    return len(seen)


def none_first(x: Any, seen: list[Any] | None = None) -> int:
    seen = [] if seen is None else seen
    seen.append(x)
    return len(seen)


def its_own_list(text: str) -> int:
    numbers, total = [], {"n": 0}
    for letter in text:
        numbers.append(ord(letter))
        total["n"] += len(_cache)

    def put() -> None:
        nonlocal text
        text = ""
        numbers.append(1)

    put()
    return sum(numbers)


def its_own_box(x: Any) -> int:
    return Box().more(x)


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
        (counts_on_itself, "changes counts_on_itself, which other calls see"),
        (default_appended, "changes seen, which other calls see"),
        (default_extended, "changes seen, which other calls see"),
        (default_given_on, "changes seen, which other calls see"),
        (functools.partial(put_into, []), "changes an argument of a partial, which other calls see"),
        (changed_by_another_name, "changes Box.kept, which other calls see"),
        (changed_in_a_handler, "changes _cache, which other calls see"),
        (changed_inside, "changes _pools, which other calls see"),
        (counted(lambda x: x), "changes calls, which other calls see"),
        (asks_the_task, "uses pyspark.TaskContext"),
        (lambda x: Box.note(x), "changes Box.kept, which other calls see"),
        (lambda x: Box.note_all(x), "changes Box.kept, which other calls see"),
        (lambda x: _box.more(x), "changes _box, which other calls see"),
        (lambda x: _box(x), "changes self, which other calls see"),
        (lambda x: _box.next, "changes _box, which other calls see"),
        (_box.more, "changes self, which other calls see"),
        (lambda x: setattr(_box, "n", x), "changes _box, which other calls see"),
        (lambda x: heapq.heappush(_seen, x), "changes _seen, which other calls see"),
        (lambda x: list.append(_seen, x), "changes _seen, which other calls see"),
        (lambda x: _pools.get("a").append(x), "changes _pools.get, which other calls see"),  # type: ignore[union-attr]
        (lambda x: _dice.random(), "uses _dice, which gives something else each time"),
        (lambda x: float(_numpy_dice.random()), "uses _numpy_dice, which gives something else each time"),
        (lambda x: numpy.random.rand(), "uses numpy.random.rand"),
        (lambda x: id(x), "uses builtins.id"),
        (lambda x: getattr(time, "time")(), "uses time.time"),  # noqa: B009
        (lambda x: __import__("time").time(), "uses time.time"),
        (lambda x: importlib.import_module("time").time(), "uses time.time"),
        (lambda x: sorted(x, key=lambda one: random.random()), "uses random.random"),
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
        copies_first,
        none_first,
        its_own_list,
        its_own_box,
        lambda x: _box.twice(x),
        lambda x: hash(x),
        lambda x: re.compile(",").split(x).pop(),
        lambda x: _pools.get("b", x).split(",").pop(),  # type: ignore[attr-defined]
        lambda x: {**_cache, x: 1}.pop(x),
        lambda x: _cache.copy().pop(x),
        lambda x: numpy.random.default_rng(x).random(),
        lambda x: getattr(json, "dumps")(x),  # noqa: B009
        lambda x: [x][0] if x else getattr(x, str(x)),
        functools.lru_cache(lambda x: x),
    ],
    ids=range(25),
)
def test_what_is_always_the_same_is_left_alone(function: Any) -> None:
    assert why_varies(function) is None


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: eval(x), "calls eval"),  # noqa: S307
        (lambda x: open(x).read(), "calls open"),  # noqa: SIM115
        (lambda x: repr(object()), "calls object"),
        (lambda x: getattr(json, x)(), "calls getattr with a name that its code does not tell"),
        (lambda x: importlib.import_module(x).now(), "calls import_module with a name that its code does not tell"),
    ],
    ids=range(5),
)
def test_what_the_code_does_not_tell_is_neither_fine_nor_accused(function: Any, why: str) -> None:
    assert why_unclear(function) == why
    assert why_varies(function) is None


def test_what_is_clear_is_not_unclear() -> None:
    assert why_unclear(its_own_list) is None


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
