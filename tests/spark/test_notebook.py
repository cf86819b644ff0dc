"""The tour runs from the top, and shows what it promises: verdicts, and pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

TOUR = Path(__file__).parents[2] / "docs" / "tour.ipynb"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """What each cell with code shows last, by its form."""
    notebook = nbformat.read(TOUR, as_version=4)
    folder = tmp_path_factory.mktemp("tour")
    nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(folder)}}).execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [next((out["data"] for out in reversed(cell.outputs) if "data" in out), {}) for cell in cells]


@pytest.mark.slow
def test_the_verdicts_are_as_the_text_says(shown: list[dict[str, Any]]) -> None:
    told = [cell.get("text/plain", "") + cell.get("text/html", "") for cell in shown]

    for number, words in {
        1: "ORDER_LOST",
        3: "DIFFERENT",
        4: "HOLDS",
        5: "FIRST_VALUE",
        6: "HOLDS",
        9: "QUEUE_FULL",
    }.items():
        assert words in told[number], f"cell {number} shows {told[number][:300]}"


@pytest.mark.slow
def test_verdicts_traces_plans_pipelines_and_machines_are_pictures(shown: list[dict[str, Any]]) -> None:
    pictures = [
        number
        for number, cell in enumerate(shown)
        if "<svg" in cell.get("text/html", "") + cell.get("image/svg+xml", "")
    ]

    assert {1, 2, 7, 8, 9, 11} <= set(pictures)


def test_the_file_holds_no_outputs() -> None:
    notebook = nbformat.read(TOUR, as_version=4)

    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code")
