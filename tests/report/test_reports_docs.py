"""The picture in docs/reports.md is the one that its code makes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def test_the_picture_on_the_page_is_that_of_its_verdict():
    page = (DOCS / "reports.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0], names)

    picture = names["verdict"].picture()

    path = DOCS / "report_order.svg"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(picture, encoding="utf-8")
    assert picture == path.read_text(encoding="utf-8")


def test_screenshots_are_small():
    for path in DOCS.glob("report_*.png"):
        assert path.stat().st_size < 150_000
