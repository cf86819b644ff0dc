"""What the example of `prove` says."""

from __future__ import annotations

import pytest
from load_example import load_example

import streamtight as tight

pytestmark = pytest.mark.usefixtures("spark")


def test_two_of_three_rewritten_reports_are_the_same():
    reports = load_example("refactored")

    def answer(rewritten):
        return tight.prove(reports.largest, rewritten, inputs=[reports.orders])

    assert answer(reports.in_sql).holds
    assert answer(reports.with_a_window).holds
    assert answer(reports.with_a_join).counterexample.table.rows == (("(0, None, 101)", "(None, 101)", "no rows"),)
