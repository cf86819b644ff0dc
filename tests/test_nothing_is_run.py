"""Nothing that is read from disk is run: every place that could unpickle or execute is known, with its reason.

A new one makes these tests fail. If what it reads may come from a file, write JSON instead, or seal it (sealed.py).
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from pathlib import Path

SRC = Path(__file__).parents[1] / "src" / "streamtight"

UNPICKLES = {
    "method/parallelize/gang.py": (5, "between the driver and its leaves, over sockets that ask for a key"),
    "method/parallelize/laws.py": (1, "what was pickled on the line before"),
    "program/spread.py": (3, "between operators of one process, or of one query inside Spark"),
    "program/workers.py": (1, "what was pickled in the same expression"),
    "spark/jvm.py": (1, "what the JVM of this session gives"),
    "spark/lift_expression.py": (1, "a function in a plan of this session"),
    "spark/lint_expression.py": (1, "a function in a plan of this session"),
    "spark/live.py": (1, "reports of tasks, inside Spark"),
    "spark/live_bucket.py": (1, "rows from another task of the query, inside Spark"),
    "spark/recorded.py": (1, "notes of tasks, inside Spark"),
    "spark/recorded_tasks.py": (2, "the task, from the driver, inside Spark"),
    "spark/sealed.py": (1, "on disk: an unpickler that knows no class and no function"),
    "spark/stage_tasks.py": (3, "two between tasks, inside Spark; one on disk, with our seal or of plain values alone"),
}
EXECUTES = {
    "method/explore/compiled.py": (1, "text made of a model"),
    "method/replay.py": (1, "compiled only, to see whether it is Python"),
    "method/watch/kernel.py": (1, "text made of a query, kept in a folder that only the user can write to"),
    "properties/code.py": (2, "text made of a query"),
    "solver/symbolic/admit.py": (1, "compiled only: the code of a function that was given"),
    "stream/event.py": (1, "the constructor of a kind"),
}
LOADERS = {"loads", "load", "Unpickler", "_PlainOnly"}
SAFE_OWNERS = ("json", "tomllib", "spark.read", "self._spark.readStream", "reader ", "driver")
FORBIDDEN_MODULES = {"marshal", "shelve", "dill", "joblib", "yaml"}


@functools.cache
def _modules() -> dict[str, ast.Module]:
    return {path.relative_to(SRC).as_posix(): ast.parse(path.read_text()) for path in SRC.rglob("*.py")}


@functools.cache
def _calls(tree: ast.AST) -> list[tuple[str, str]]:
    """Who is called, as (module or object, name); the module is "" for a plain name."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(value=value, attr=name):
                    found.append((ast.unparse(value), name))
                case ast.Name(id=name):
                    found.append(("", name))
    return found


def _count(wanted) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for file, tree in _modules().items():
        for owner, name in _calls(tree):
            counts[file] += wanted(owner, name)
    return {file: count for file, count in counts.items() if count}


def _unpickles(owner: str, name: str) -> bool:
    return name in LOADERS and not owner.startswith((*SAFE_OWNERS, "_PlainOnly"))


def _executes(owner: str, name: str) -> bool:
    return (not owner and name in ("exec", "eval", "compile")) or name == "exec_module"


def test_every_place_that_unpickles_is_known():
    assert _count(_unpickles) == {file: count for file, (count, _) in UNPICKLES.items()}


def test_every_place_that_executes_text_is_known():
    known = _count(_executes)
    loads_the_users_file = known.pop("spark/load.py", 0)

    assert known == {file: count for file, (count, _) in EXECUTES.items()}
    assert loads_the_users_file <= 1


def test_no_other_format_that_can_run_code_is_read():
    for path, tree in _modules().items():
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not FORBIDDEN_MODULES & {name.split(".")[0] for name in names}, path
            assert not (isinstance(node, ast.keyword) and node.arg == "allow_pickle"), path


def test_the_search_sees_the_ways_to_unpickle():
    text = (
        "import pickle as p\np.loads(b'')\npickle.Unpickler(f).load()\ncloudpickle.load(f)\neval('1')\njson.loads('1')"
    )

    assert [_unpickles(*call) for call in _calls(ast.parse(text))].count(True) == 4
    assert [_executes(*call) for call in _calls(ast.parse(text))].count(True) == 1
