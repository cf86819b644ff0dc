"""Functions of the user's files, by the names that the command line gives: `jobs.py:clean`, `package.jobs:clean`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from streamtight.errors import SourceError


def load_function(place: str) -> Callable[..., Any]:
    """The function at `file.py:name` or `module:name`."""
    found = load_object(place)
    if not callable(found):
        raise SourceError(place, needed="a function", came=repr(found)[:100], hint="a def, or a lambda with a name")
    return found  # type: ignore[no-any-return]


def load_object(place: str) -> Any:
    """What has this name in `file.py:name` or `module:name`. The file is run, as Python runs what is imported."""
    where, _, name = place.rpartition(":")
    if not where or not name:
        raise SourceError(
            place, needed="a file or a module, and a function in it", came=repr(place), hint="jobs.py:clean"
        )
    module = _load_file(Path(where), place) if where.endswith(".py") else _load_module(where, place)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            own = {one: value for one, value in vars(module).items() if not one.startswith("_")}
            near = difflib.get_close_matches(part, own) or [
                one for one, value in own.items() if getattr(value, "__module__", None) == module.__name__
            ]
            raise SourceError(
                place,
                needed=f"a name that {where} has",
                came=repr(name),
                hint=", ".join(f"{where}:{one}" for one in near[:5]) or "a function in this file",
            )
        found = getattr(found, part)
    # Tasks get what the user's functions need by value: workers cannot import the file.
    register: Any = cloudpickle.register_pickle_by_value
    register(module)
    return found


def place_of(found: Any) -> tuple[str, int] | None:
    """The file and the line where a function or a class of the user's begins, from this folder if it is below it."""
    try:
        file, line = inspect.getsourcefile(found), inspect.getsourcelines(found)[1]
    except (TypeError, OSError):  # an object, or code that was typed in
        file, line = inspect.getsourcefile(type(found)) if _is_users(found) else None, 1
    if file is None:
        return None
    path = Path(file).resolve()
    return (str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)), line


def _is_users(found: Any) -> bool:
    return not type(found).__module__.startswith(("streamtight", "builtins"))


def names_beside(place: str) -> dict[str, Any]:
    """All that has a name in the file or module of a place that was loaded."""
    where = place.rpartition(":")[0]
    module = _load_file(Path(where), place) if where.endswith(".py") else _load_module(where, place)
    return dict(vars(module))


def import_lines(place: str, name: str) -> tuple[str, ...]:
    """The lines of Python that bring the function at a place under this name, in the folder where it lies."""
    where, _, own = place.rpartition(":")
    path = Path(where)
    module = path.stem if where.endswith(".py") else where
    if not all(map(str.isidentifier, (*module.split("."), *own.split(".")))):
        return (f"# {name}: {own} of {where}",)
    first = own.partition(".")[0]
    lines = [f"# in the folder {path.parent}"] if where.endswith(".py") and path.parent.resolve() != Path.cwd() else []
    lines.append(f"from {module} import {first}" + (f" as {name}" if first == own != name else ""))
    return (*lines, *([f"{name} = {own}"] if first != own else []))


def first_line(error: BaseException) -> str:
    """The first line of what an exception says; Spark's parser begins with an empty one."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "")


def _load_file(path: Path, place: str) -> ModuleType:
    if not path.is_file():
        raise SourceError(place, needed="a file that is there", came=str(path), hint="its path from this folder")
    # Another file of the same name is another module.
    name = f"{path.stem}_{len(sys.modules)}" if path.stem in sys.modules else path.stem
    known = [one for one in list(sys.modules.values()) if _is_of(one, path)]
    if known:
        return known[0]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SourceError(place, needed="a file of Python", came=str(path), hint="jobs.py:clean")
    module = importlib.util.module_from_spec(spec)
    folder = str(path.resolve().parent)
    sys.modules[name] = module
    sys.path.insert(0, folder)  # as for a script, what lies beside it can be imported
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, Exception):
            raise
        raise _did_not_load(place, error) from error
    finally:
        sys.path.remove(folder)
    return module


def _is_of(module: Any, path: Path) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).resolve() == path.resolve() and module.__name__ != "__main__"


def _load_module(name: str, place: str) -> ModuleType:
    folder = os.getcwd()  # as for `python -m`
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except Exception as error:  # the border of user code
        raise _did_not_load(place, error) from error
    finally:
        sys.path.remove(folder)


def _did_not_load(place: str, error: Exception) -> SourceError:
    where = place.rpartition(":")[0]
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(where)]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    said = error.msg if isinstance(error, SyntaxError) else first_line(error)
    return SourceError(
        place,
        needed="code that can be imported",
        came=f"{type(error).__name__}: {said}" + (f" (line {line})" if line else ""),
        hint=f"python {where}" if where.endswith(".py") else f"python -c 'import {where}'",
    )
