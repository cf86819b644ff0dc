"""The pages of docs/findings: the code on each, what it prints, and how to write that anew (UPDATE_GOLDEN=1)."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import re
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "docs" / "findings"
_PARTS = re.compile(r"```python\n(?P<code>.*?)```\n.*?```text\n(?P<text>.*?)```", re.DOTALL)
_WINDOWS = re.compile(r"```python\n(# windows\.py\n.*?)```", re.DOTALL)


def names() -> list[str]:
    """The findings that have a page."""
    return sorted(path.stem for path in FOLDER.glob("[A-Z]*.md"))


def needs_spark(name: str) -> bool:
    code = _parts(name)["code"]
    return "pyspark" in code or any(
        verb in code for verb in ("compare", "laws", "check(", "prove(", "session", "takes=tight.rdd", "subprocess")
    )


def printed(name: str) -> str:
    """The text on the page."""
    return _parts(name)["text"]


def prints(name: str, folder: Path) -> str:
    """What the code of a page prints, in a folder of its own, up to the lines that show a counterexample again.

    A script that prints nothing is given to the lint.
    """
    code = _parts(name)["code"]
    found = _WINDOWS.search((FOLDER / "index.md").read_text())
    assert found is not None
    (folder / "windows.py").write_text(found[1])
    (folder / "jobs.py").write_text(code)
    before, sys.path[:0] = Path.cwd(), [str(folder)]
    out = io.StringIO()
    os.chdir(folder)
    try:
        if "print(" in code:
            with contextlib.redirect_stdout(out):
                _run(folder / "jobs.py")
            told = out.getvalue()
        else:
            from streamtight.spark.lint_script import lint

            told = "\n".join(map(str, lint("jobs.py", inputs=[]).findings)) + "\n"
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        for module in ("jobs", "windows"):
            sys.modules.pop(module, None)
    told = re.sub(r" at 0x\w+", " at 0x...", told.replace(f"{folder}/", ""))
    return re.sub(r"\n  to see it again\n.*", "\n", told, flags=re.DOTALL)


def write(name: str, text: str) -> None:
    """Put what was printed on the page."""
    path = FOLDER / f"{name}.md"
    whole = path.read_text()
    found = _PARTS.search(whole)
    assert found is not None
    path.write_text(whole[: found.start("text")] + text + whole[found.end("text") :])


def _parts(name: str) -> re.Match[str]:
    found = _PARTS.search((FOLDER / f"{name}.md").read_text())
    assert found is not None, f"docs/findings/{name}.md has no code with what it prints"
    return found


def _run(path: Path) -> None:
    spec = importlib.util.spec_from_file_location("jobs", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["jobs"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    import tempfile

    for each in sys.argv[1:] or names():
        began = time.perf_counter()
        try:
            text = prints(each, Path(tempfile.mkdtemp()).resolve())
        except BaseException as error:
            print(f"{each}: {type(error).__name__}: {error}"[:600])
            continue
        if each not in text:
            print(f"{each}: NOT FOUND in\n{text[:500]}")
        write(each, text)
        print(f"{each} {time.perf_counter() - began:.1f} s")
