"""Orders from text."""

from __future__ import annotations

import pytest

from streamtight.errors import DependenceError
from streamtight.method.typecheck.parse_order import parse_order
from streamtight.stream.dependence import Dependence, ordered, same


@pytest.mark.parametrize(
    ("text", "order"),
    [("", None), ("ordered", ordered), (" same(user) ", same("user")), ("same('a', b)", same("a", "b"))],
)
def test_text_is_an_order(text: str, order: Dependence | None) -> None:
    assert parse_order(text) == order


@pytest.mark.parametrize("text", ["same()", "bag", "same(user", "same(a);b"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(DependenceError, match="ordered, or same"):
        parse_order(text)
