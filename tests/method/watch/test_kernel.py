"""Compiled code gives what Python gives: every operation, on every type, at the ends of all ranges."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamtight.errors import QueryError
from streamtight.method.watch import kernel
from streamtight.method.watch.blocks import Blocks
from streamtight.properties.query import any_, combine, cur, iter_, prefix_sum
from streamtight.properties.query_library import current, total
from streamtight.properties.term import OPERATIONS, Apply, Current, Operation, Term, choose, larger, smaller

pytest.importorskip("numba")

WHOLE = [0, 1, -1, 2, -3, 7, 2**31 - 1, -(2**31), 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 1.0, -2.5, 7.0, 0.1, 2.0**53, 1e19, 1e300, -1e308, 5e-324, math.inf, -math.inf, math.nan]
COLUMNS = {"whole": WHOLE, "float": FLOATS, "truth": [True, False]}


def same(one: Any, other: Any) -> bool:
    """Equal numbers; floats to the last bit."""
    if isinstance(one, float) and isinstance(other, float):
        return repr(one) == repr(other)
    return bool(one == other) or one is other


def one_by_one(term: Term, columns: dict[str, list[Any]]) -> list[Any]:
    """What the monitor gives for each row, alone; the name of the error where it refuses."""
    compiled = current(term).compile(["v"])
    found = []
    for values in zip(*columns.values(), strict=True):
        try:
            found.append(compiled.monitor().update("v", dict(zip(columns, values, strict=True))))
        except QueryError as error:
            found.append(type(error.__cause__).__name__)
    return found


def in_blocks(term: Term, columns: dict[str, list[Any]]) -> list[Any]:
    compiled = current(term).compile(["v"])
    found = []
    for values in zip(*columns.values(), strict=True):
        given = {name: np.array([value]) for name, value in zip(columns, values, strict=True)}
        try:
            found += Blocks(compiled, few=0).run(["v"], given).listed()
        except QueryError as error:
            found.append(type(error.__cause__).__name__)
    return found


@pytest.fixture
def in_kernels(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each block from now on: whether a kernel gave its answers."""
    told: list[bool] = []
    plain = Blocks._by_kernel

    def noted(self: Blocks, *given: Any) -> Any:
        found = plain(self, *given)
        told.append(found is not None)
        return found

    monkeypatch.setattr(Blocks, "_by_kernel", noted)
    return told


def run(term: Term, column: Any) -> list[Any]:
    return Blocks(current(term).compile(["v"]), few=0).run(None, column).listed()


# -- operations ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("one", COLUMNS)
@pytest.mark.parametrize("other", COLUMNS)
def test_every_operation_gives_what_python_gives(operation: Operation, one: str, other: str) -> None:
    if operation.arity == 1 and other != "whole":
        return
    pairs = [(x, y) for x in COLUMNS[one] for y in COLUMNS[other]]
    columns = {"a": [x for x, _ in pairs], "b": [y for _, y in pairs]}
    fields = [Current("a"), Current("b"), Current("a")][: operation.arity]
    if operation.name == "choose":
        fields = [Current("b"), Current("a"), Current("a")]

    term = Apply(operation, tuple(fields))
    columns = {name: column for name, column in columns.items() if any(each._field == name for each in fields)}

    expected, found = one_by_one(term, columns), in_blocks(term, columns)
    assert all(map(same, expected, found)), list(zip(*columns.values(), expected, found, strict=True))


@pytest.mark.parametrize(
    "term",
    [
        larger(cur, 0) + 1,
        abs(cur) + abs(cur),
        choose(cur > 5, cur + 9, 3),
        smaller(cur, 0) - 1,
        larger(cur, 2) * larger(cur, 3),
    ],
    ids=str,
)
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**62, 2**32 - 1, 4])
def test_what_leaves_64_bits_is_exact_where_the_compiler_knows_signs(term: Term, value: int) -> None:
    monitor = current(term).compile(["v"]).monitor()

    assert run(term, np.array([value, 4])) == [monitor.update("v", value), monitor.update("v", 4)]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", ">i4", ">i8", "u8", "f2", "f4", ">f8", "?"])
@pytest.mark.parametrize("term", [-cur, cur * cur, abs(cur) - 300, cur + cur, cur / 3], ids=str)
def test_narrow_and_foreign_numbers_are_calculated_with_as_pythons(dtype: str, term: Term) -> None:
    kind = np.dtype(dtype)
    ends = [np.iinfo(kind).min, np.iinfo(kind).max] if kind.kind in "iu" else [1.1, 3.3] if kind.kind == "f" else [1, 0]
    column = np.array([*ends, 1], dtype=kind)
    monitor = current(term).compile(["v"]).monitor()

    assert run(term, column) == [monitor.update("v", value) for value in column.tolist()]


def test_constants_beside_floats_stay_exact() -> None:
    factor = choose(cur > 0, cur, 3037000501)

    assert run(factor * factor, np.array([1.5, -1.0])) == [2.25, 3037000501**2]


def test_a_product_of_whole_constants_beside_floats_stays_exact() -> None:
    product = iter_(any_(choose(cur > 0, cur, 3)), 1, lambda x, y: x * y).compile(["v"])

    assert Blocks(product, few=0).run(None, np.full(50, -1.0)).listed()[-1] == 3**50


def test_a_sum_of_floats_that_starts_with_a_whole_number_is_compiled(in_kernels: list[bool]) -> None:
    Blocks(total().compile(["v"]), few=0).run(None, np.array([0.5, 1e300]))

    assert in_kernels == [True]


def test_a_sum_beyond_64_bits_goes_on_in_python(in_kernels: list[bool]) -> None:
    blocks = Blocks(total().compile(["v"]), few=0)

    assert blocks.run(None, np.array([2**62])).listed() == [2**62]
    assert blocks.run(None, np.array([2**62, 2**62])).listed() == [2**63, 2**63 + 2**62]
    assert blocks.run(None, np.array([1])).listed() == [2**63 + 2**62 + 1]
    assert in_kernels == [True, False, False]


def test_a_sum_that_comes_back_into_64_bits_is_compiled_again(in_kernels: list[bool]) -> None:
    blocks = Blocks(total().compile(["v"]), few=0)
    blocks.run(None, np.array([2**62, 2**62]))
    blocks.run(None, np.array([-(2**62)]))

    assert blocks.run(None, np.array([5])).listed() == [2**62 + 5]
    assert in_kernels == [False, False, True]


def test_whole_numbers_and_floats_in_one_register_are_left_to_python(in_kernels: list[bool]) -> None:
    query = iter_(any_(cur.a), 0.5, max).compile(["v"])

    assert Blocks(query, few=0).run(None, {"a": np.array([2**53 + 1])}).listed() == [2**53 + 1]
    assert in_kernels == [False]


def test_a_whole_number_that_is_kept_from_before_is_not_made_a_float() -> None:
    square = prefix_sum(combine(current(), current(), lambda x, _: x), 0.5, lambda x, y: x * x + y).compile(["v"])
    monitor, blocks = square.monitor(), Blocks(square, few=0)
    for column in (np.array([2**27 + 1]), np.array([0.5]), np.array([2**30 + 1]), np.array([3])):
        expected = [monitor.update("v", value) for value in column.tolist()]
        assert blocks.run(None, column).listed() == expected


# -- kernels on disk -------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Path]:
    """No kernel is known; those to come are kept in a folder of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kernel.kernel.cache_clear()

    def folder() -> Path:
        (found,) = (tmp_path / "streamtight").iterdir()
        return found

    return folder


def test_kernels_are_kept_on_disk_and_used_again(fresh: Callable[[], Path]) -> None:
    run(cur * 41, np.array([1]))
    (compiled,) = fresh().glob("__pycache__/*.nbc")
    before = compiled.stat().st_mtime_ns
    kernel.kernel.cache_clear()
    for name in [name for name in kernel.sys.modules if name.startswith("streamtight_kernel_")]:
        del kernel.sys.modules[name]

    assert run(cur * 41, np.array([2])) == [82]
    assert [each.stat().st_mtime_ns for each in fresh().glob("__pycache__/*.nbc")] == [before]


def test_a_kernel_whose_file_was_changed_is_written_again(fresh: Callable[[], Path]) -> None:
    run(cur * 43, np.array([1]))
    (path,) = fresh().glob("*.py")
    path.write_text("kernel = None")
    kernel.kernel.cache_clear()
    del kernel.sys.modules[path.stem]

    assert run(cur * 43, np.array([2])) == [86]


def test_a_folder_that_others_can_write_to_is_not_used(fresh: Callable[[], Path]) -> None:
    run(cur * 45, np.array([1]))
    folder = fresh()
    folder.chmod(0o777)
    kernel.kernel.cache_clear()

    assert run(cur * 47, np.array([2])) == [94]
    assert len(list(folder.glob("*.py"))) == 1


def test_a_folder_of_somebody_else_is_not_used(fresh: Callable[[], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)

    assert run(cur * 49, np.array([2])) == [98]
    assert not list(fresh().glob("*.py"))


def test_without_a_folder_kernels_are_compiled_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    kernel.kernel.cache_clear()

    assert run(cur * 51, np.array([2])) == [102]


def test_the_folder_is_for_its_owner_only(fresh: Callable[[], Path]) -> None:
    run(cur * 53, np.array([1]))

    assert stat.S_IMODE(fresh().stat().st_mode) == 0o700
