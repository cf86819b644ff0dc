"""What stands for the dicts and sets that a function captures: they can be asked for a symbolic key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

import z3

from streamtight.solver.symbolic.paths import decide, python_raises, refuse
from streamtight.solver.symbolic.values import StandIn, Symbolic


class Members(StandIn):
    """A captured set, or the constant of `x in {1, 2}`: one question about a symbolic value, not one for each."""

    def __init__(self, members: frozenset[object] | tuple[object, ...]) -> None:
        self._members = members

    def __contains__(self, item: object) -> bool:
        return _is_among(item, self._members) if _has_symbol(item) else item in self._members

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[object]:
        if len(self._members) > 1 and any(isinstance(member, (str, bytes, tuple)) for member in self._members):
            refuse("depends on the order of a set")
        return iter(self._members)

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"uses .{name} of a set that is not its own")

    def __eq__(self, other: object) -> NoReturn:
        refuse("compares a set that is not its own")

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __sub__ = __xor__ = __eq__
    __rand__ = __ror__ = __rsub__ = __rxor__ = __eq__


class Table(StandIn):
    """A captured dict, which can be looked into with a symbolic key and cannot be changed."""

    def __init__(self, table: dict[object, object]) -> None:
        self._table = table

    def _found(self, key: object) -> list[object]:
        if not _has_symbol(key):
            return [self._table[key]] if key in self._table else []
        return next(([value] for known, value in self._table.items() if key == known), [])

    def __getitem__(self, key: object) -> object:
        found = self._found(key)
        if not found:
            python_raises(KeyError(key))
        return found[0]

    def get(self, key: object, default: object = None) -> object:
        """The value at the key, or the default."""
        return next(iter(self._found(key)), default)

    def __contains__(self, key: object) -> bool:
        return _is_among(key, self._table) if _has_symbol(key) else key in self._table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[object]:
        return iter(self._table)

    def keys(self) -> object:
        """The keys, in order."""
        return _View(tuple(self._table))

    def values(self) -> object:
        """The values, in order."""
        return _View(tuple(self._table.values()))

    def items(self) -> object:
        """The pairs, in order."""
        return _View(tuple(self._table.items()))

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"uses .{name} of a dict that is not its own")

    def __eq__(self, other: object) -> NoReturn:
        refuse("compares or changes a dict that is not its own")

    def __setitem__(self, key: object, value: object) -> NoReturn:
        refuse("changes a dict that is not its own")

    __hash__ = object.__hash__
    __delitem__ = __or__ = __ror__ = __ior__ = __eq__


def _is_among(item: object, members: Iterable[object]) -> bool:
    equal: list[object] = [item == member for member in members]
    return decide(z3.Or([one._term if isinstance(one, Symbolic) else z3.BoolVal(one) for one in equal]))


class _View(StandIn):
    """Keys, values or items of a captured dict."""

    def __init__(self, items: tuple[object, ...]) -> None:
        self._items = items

    def __contains__(self, item: object) -> bool:
        return _is_among(item, self._items) if _has_symbol(item) else item in self._items

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[object]:
        return iter(self._items)

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"uses .{name} of a dict that is not its own")

    def __eq__(self, other: object) -> NoReturn:
        refuse("compares the keys or values of a dict that is not its own")

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __or__ = __sub__ = __xor__ = __eq__
    __rand__ = __ror__ = __rsub__ = __rxor__ = __eq__


def _has_symbol(value: object) -> bool:
    return isinstance(value, Symbolic) or (isinstance(value, tuple) and any(_has_symbol(item) for item in value))
