"""Golden text: what a person reads is compared with a file, which UPDATE_GOLDEN=1 rewrites for review in the diff."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def assert_golden(name: str, text: str) -> None:
    """Assert that the text is that of golden/<name>.txt."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text + "\n", encoding="utf-8")
    assert path.exists(), f"no {path}: run again with UPDATE_GOLDEN=1"
    assert text + "\n" == path.read_text(encoding="utf-8"), f"{path} differs: if that is right, UPDATE_GOLDEN=1"
