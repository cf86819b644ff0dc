"""What a program must not use, because it is run many times before it is judged."""

from __future__ import annotations

import datetime
import functools
import logging
import os
import random
import subprocess
import sys
import time
from datetime import datetime as moment
from pathlib import Path
from random import randint
from typing import Any

import pytest

from streamtight.errors import UnsupportedError
from streamtight.method.prove.allowed import Captured, constants_of, names_of, parameters_of, require_allowed, uses

log = logging.getLogger(__name__)
noted: list[int] = []
counted = 0
LIMIT = 7


class Counter:
    count = 0

    def __call__(self, r: Any) -> Any:
        self.count += 1
        return r


def counts(r: Any) -> Any:
    global counted
    counted += 1
    return r


def helped(x: int) -> int:
    return int(os.environ.get("FACTOR", "1")) * x


def calls_a_helper(r: Any) -> Any:
    return r.map(lambda x: helped(x))


def remembers() -> Any:
    last = 0

    def program(r: Any) -> Any:
        nonlocal last
        last = r.count()
        return r

    return program


def imports(r: Any) -> Any:
    import socket

    return r.map(lambda x: socket.gethostname())


REFUSED = {
    "prints": lambda r: r.map(lambda x: print(x)),
    "opens": lambda r: r.map(lambda x: open("/dev/null").read()),  # noqa: SIM115
    "random": lambda r: r.map(lambda x: x + random.random()),
    "a function of random": lambda r: r.map(lambda x: randint(0, x)),
    "time": lambda r: r.map(lambda x: time.time()),
    "datetime.now": lambda r: r.map(lambda x: datetime.datetime.now()),
    "now": lambda r: r.map(lambda x: moment.now()),
    "os": lambda r: r.map(lambda x: os.getpid()),
    "subprocess": lambda r: r.map(lambda x: subprocess.run(["true"])),
    "a path": lambda r: r.map(lambda x: Path("/etc/hostname").read_text()),
    "a logger": lambda r: r.map(lambda x: log.info("%s", x)),
    "exec": lambda r: exec("x = 1") or r,
    "hash": lambda r: r.map(lambda x: hash((x,))),
    "a global": counts,
    "a variable around it": remembers(),
    "an attribute of itself": Counter(),
    "a helper": calls_a_helper,
    "an import": imports,
    "a partial": functools.partial(counts),
}


@pytest.mark.parametrize("program", REFUSED.values(), ids=REFUSED)
def test_what_reaches_outside_or_changes_is_refused_with_its_line(program: Any):
    with pytest.raises(UnsupportedError, match=r"test_allowed\.py:\d+: needed a program that only works on its inputs"):
        require_allowed(program, may_use_session=False)


def today(r: Any) -> Any:
    return r.map(lambda x: (x.today, x.now)).filter(lambda x: x < datetime.date(2024, 1, 1))


ALLOWED = {
    "columns with the names of clocks": today,
    "the greatest number": lambda r: r.map(lambda x: min(x, sys.maxsize)),
    "what is captured": lambda r: r.map(lambda x: x + LIMIT),
    "its own variables": lambda r: [one + 1 for one in [1, 2]],
}


@pytest.mark.parametrize("program", ALLOWED.values(), ids=ALLOWED)
def test_what_is_always_the_same_is_allowed(program: Any):
    require_allowed(program, may_use_session=False)


def test_what_a_program_changes_is_noticed_and_put_back():
    def program(x: int) -> int:
        noted.append(x)
        return x

    captured = Captured(program)
    assert captured.changed() is None
    program(1)

    assert captured.changed() == "noted"
    assert noted == []


def test_constants_are_found_in_functions_inside_and_in_what_they_call():
    found = constants_of(lambda r: r.map(lambda x: (x + LIMIT, "x")))

    assert LIMIT in found
    assert "x" in found


def test_parameters_are_those_that_must_be_given():
    assert parameters_of(lambda a, b: a) == 2
    assert parameters_of(lambda a, b=3: a) == 1
    assert parameters_of(lambda *a: a) is None


def test_inputs_are_named_after_the_parameters_if_spark_can_tell_them_apart():
    assert names_of(lambda orders, users: orders, 2) == ["orders", "users"]
    assert names_of(lambda t, T: t, 2) == ["input1", "input2"]  # noqa: N803
    assert names_of(lambda *tables: tables[0], 2) == ["input1", "input2"]


def test_names_that_are_used_are_found():
    assert uses(lambda r: r.sortBy(lambda x: x), "sortBy")
    assert not uses(lambda r: r.map(lambda x: x), "sortBy")
