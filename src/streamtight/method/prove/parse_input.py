"""Inputs of programs from text, as the command line takes them. Nothing of it is evaluated.

>>> parse_input("rdd[(str, int | None)]")
rdd((str, int | None))
>>> parse_input("table[k: int, v: int?, d: decimal(10, 2)].key('k').where('v >= 0')")
table("k BIGINT NOT NULL, v BIGINT, d DECIMAL(10,2) NOT NULL").key('k').where('v >= 0')
"""

from __future__ import annotations

import ast
import re
from typing import Any, NoReturn

from streamtight.errors import SourceError
from streamtight.method.prove.inputs import Input, RDDInput, nullable, rdd, table

_TYPES: dict[str, Any] = {"int": int, "bool": bool, "str": str, "float": float}


def parse_input(text: str) -> Input:
    """`rdd[(str, int | None)]`, `table[k: int, v: int?]`; a table may have `.key('k')` and `.where('...')` after it."""
    return _Reader(text).input()


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        # A type that may be null is written int? as well; quotes hold SQL, in which ? stays what it is.
        parts = re.split(r"('[^']*'|\"[^\"]*\")", text)
        parts[::2] = [part.replace("?", " | None") for part in parts[::2]]
        try:
            self.tree = ast.parse("".join(parts).strip(), mode="eval").body
        except (SyntaxError, ValueError):
            self.refuse()

    def refuse(self, came: str = "", needed: str = "rdd[type], or table[column: type, ...]") -> NoReturn:
        raise SourceError(
            f"--input {self.text!r}",
            needed=needed,
            came=came or repr(self.text),
            hint="'rdd[(str, int | None)]', 'table[k: int, v: int?]', \"table[k: int].key('k').where('k >= 0')\"",
        )

    def input(self) -> Input:
        match self.tree:
            case ast.Call(func=ast.Attribute(value=inner, attr=("key" | "where") as name), args=args, keywords=[]):
                words = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
                self.tree = inner
                of = self.input()
                if isinstance(of, RDDInput) or len(words) != len(args) or (name == "where" and len(words) != 1):
                    self.refuse()
                return of.key(*words) if name == "key" else of.where(words[0])
            case ast.Subscript(value=ast.Name(id="rdd"), slice=inner):
                return rdd(self.row(inner))
            case ast.Subscript(value=ast.Name(id="table"), slice=inner):
                columns = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                named = list(map(self.column, columns))
                names = [name for name, _ in named]
                if twice := [name for name in names if names.count(name) > 1]:
                    self.refuse(f"{twice[0]} more than once", "columns with names of their own")
                return table(**dict(named))
        return self.refuse()

    def row(self, node: ast.expr) -> Any:
        """The type of the rows of an RDD."""
        match node:
            case ast.Tuple(elts=parts):
                return tuple(map(self.row, parts))
            case ast.Name(id=name) if name in _TYPES:
                return _TYPES[name]
            case ast.BinOp(left=ast.Name(id=name), op=ast.BitOr(), right=ast.Constant(value=None)) if name in _TYPES:
                return _TYPES[name] | None
        return self.refuse(ast.unparse(node), "int, bool, str, float, a tuple of these, or one of them or None")

    def column(self, node: ast.expr) -> tuple[str, Any]:
        """The name and the type of a column."""
        match node:
            case ast.Slice(lower=ast.Name(id=name), upper=ast.expr() as type_, step=None):
                return name, self.cell(type_)
            case ast.Slice(lower=ast.Constant(value=str(name)), upper=ast.expr() as type_, step=None):
                return name, self.cell(type_)
        return self.refuse()

    def cell(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name):
                return _TYPES.get(name, name)
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                numbers = [arg.value for arg in args if isinstance(arg, ast.Constant) and isinstance(arg.value, int)]
                return f"{name}({','.join(map(str, numbers))})" if len(numbers) == len(args) else self.refuse()
            case ast.BinOp(left=inner, op=ast.BitOr(), right=ast.Constant(value=None)):
                return nullable(self.cell(inner))
        return self.refuse()
