"""Groups of values of which only summaries are known: what `sum(g)`, `len(set(g))` or `max(x.price for x in g)` ask.

A group stands where a function expects the values of a key. The builtins that make one value out of many ask it a
`Question`, and whoever made the group has the answer. What takes the values one by one is refused: which comes first is
not fixed. A generator expression over a group is not run; it is taken apart into a function of one element.
"""

from __future__ import annotations

import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from streamtight.solver.symbolic.paths import exploring, python_raises, refuse
from streamtight.solver.symbolic.values import Counted, Symbolic

Function = Callable[..., Any]
Step = Callable[[Iterator[Any]], Iterable[Any]]
"""What a generator expression, `map` or `filter` makes of an iterator."""

_NO_ORDER = "which Spark gives in any order"


class Origins(Protocol):
    """Who knows what the user wrote, where another thing runs in its place."""

    def original(self, value: Any, name: str) -> tuple[Any, object]:
        """The thing itself, and a key that is the same whenever it is the same thing."""

    def original_generator(self, generator: types.GeneratorType[Any, Any, Any]) -> tuple[Step, object]:
        """The function of an iterator that a generator expression is, and its key."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a group: a sum, a least or greatest value, or a fold of what `steps` make of its values.

    Two questions with equal keys are the same question.
    """

    kind: str
    """sum, count, any, all, min, max or reduce."""
    steps: tuple[Step, ...]
    once: bool
    """Whether equal values count once."""
    fold: tuple[Any, ...]
    """The function of a reduce, and where it starts if that is given."""
    key: tuple[object, ...]


Ask = Callable[[Question], Any]
_ABSENT: Any = object()
_partly_used: weakref.WeakSet[types.GeneratorType[Any, Any, Any]] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class _Done:
    """What was done with the values: how the user wrote it, how it runs here, and a key."""

    written: Step
    runs: Step | None
    key: object


class Group(Counted):
    """The values of a key, or what `list`, `sorted`, `set`, `map` or `filter` made of them.

    `ask` has the answers; without it the group has no values. `side` says which it is, where there are several.
    """

    def __init__(
        self,
        ask: Ask | None,
        origins: Origins,
        *,
        side: int = 0,
        made: tuple[_Done, ...] = (),
        kind: str = "group",
        once: bool = False,
    ) -> None:
        self.side = side
        self._ask, self._origins, self._made, self._kind, self._once = ask, origins, made, kind, once
        self._used = False

    # -- what builtins ask ---------------------------------------------------------------------------------------------

    def length(self) -> Any:
        """What `len` gives."""
        if self._kind == "iterator":
            python_raises(TypeError("object of type 'map' has no len()"))
        return self._asked("count", of_none=0)

    def total(self, start: Any = 0) -> Any:
        """What `sum` gives."""
        self._use()
        if not isinstance(start, int | float | Symbolic):
            refuse(f"uses sum() of a group with a start that is a {type(start).__name__}")
        total = self._asked("sum", of_none=0)
        return total if type(start) is int and start == 0 else start + total

    def extreme(self, name: str, default: Any = _ABSENT) -> Any:
        """What `min` or `max` gives."""
        self._use()
        if self._ask is None:
            if default is _ABSENT:
                python_raises(ValueError(f"{name}() arg is an empty sequence"))
            return default
        return self._asked(name)

    def holds_for(self, name: str) -> Any:
        """What `any` or `all` gives."""
        self._use()
        if self._ask is None:
            return name == "all"
        found = self._asked(name)
        return found > 0 if name == "any" else found == 0

    def reduced(self, function: Any, *start: Any) -> Any:
        """What `functools.reduce` gives."""
        self._use()
        if self._ask is None:
            if not start:
                python_raises(TypeError("reduce() of empty iterable with no initial value"))
            return start[0]
        self._require_all("reduce()")
        parts = [self._origins.original(part, "reduce()") for part in (function, *start)]
        return self._asked("reduce", tuple(part for part, _ in parts), tuple(key for _, key in parts))

    def reduced_by(self, function: Function, key: object, name: str, default: Any = _ABSENT) -> Any:
        """What `min` or `max` with a key gives: a reduction by a function that no user wrote."""
        self._use()
        if self._ask is None:
            return self.extreme(name, default)
        self._require_all(f"{name}()")
        return self._asked("reduce", (function,), (key,))

    def _require_all(self, name: str) -> None:
        if self._once:
            refuse(f"uses {name} of a set made of a group")

    def _asked(self, kind: str, fold: tuple[Any, ...] = (), keys: tuple[object, ...] = (), of_none: Any = None) -> Any:
        if self._ask is None:
            return of_none
        steps = tuple(done.written for done in self._made)
        return self._ask(
            Question(kind, steps, self._once, fold, (kind, self._once, tuple(done.key for done in self._made), keys))
        )

    def _use(self) -> None:
        """An iterator has its values once."""
        if self._kind == "iterator":
            if self._used:
                refuse("uses an iterator over a group twice")
            self._used = True

    def original(self, value: Any, name: str) -> tuple[Any, object]:
        """What the user wrote where a function has this value, and its key."""
        return self._origins.original(value, name)

    # -- what makes another group of it --------------------------------------------------------------------------------

    def made(self, written: Step, key: object, runs: Step | None, kind: str) -> Group:
        """What `map`, `filter` or a generator expression makes of it."""
        self._use()
        if self._once:
            refuse("makes something of a set made of a group, other than a number")
        return self._like(made=(*self._made, _Done(written, runs, key)), kind=kind)

    def listed(self, kind: str) -> Group:
        """What `list`, `tuple`, `sorted` or `set` makes of it."""
        self._use()
        if kind in ("sorted", "reversed"):
            self._asked("compare")
        return self._like(kind=kind, once=self._once or kind == "set")

    def _like(self, **changes: Any) -> Group:
        same = {"side": self.side, "made": self._made, "kind": self._kind, "once": self._once, **changes}
        return Group(self._ask, self._origins, **same)

    def with_one(self, element: Any) -> Iterator[Any]:
        """What comes of one of its elements, where a function gives what comes of each."""
        self._use()
        if self._once:
            refuse("goes through a set made of a group")
        found: Iterable[Any] = (element,)
        for done in self._made:
            if done.runs is None:
                refuse("goes through what it made of a group")
            found = done.runs(iter(found))
        return iter(found)

    # -- what a list, a set or a ResultIterable can do -----------------------------------------------------------------

    def __iter__(self) -> _Elements:
        return _Elements(self)

    def __bool__(self) -> bool:
        return True if self._kind == "iterator" else bool(self.length() > 0)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Symbolic) or not isinstance(item, int | float | str | None):
            refuse("looks for a value in a group that is no constant")
        equal = _Done(_equal_to(item), None, ("equal", type(item).__name__, item))
        return bool(self._like(made=(*self._made, equal), kind="iterator").holds_for("any"))

    def __getitem__(self, place: object) -> Any:
        if self._kind not in ("sorted", "reversed"):
            refuse(f"takes a value out of a group by its place, {_NO_ORDER}")
        if type(place) is not int or place not in (0, -1):
            refuse("takes another value out of a sorted group than the first or the last")
        if self._ask is None:
            python_raises(IndexError("list index out of range"))
        return self._asked("min" if (place == 0) is (self._kind == "sorted") else "max")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") and not exploring:
            raise AttributeError(name)
        refuse(f"uses .{name} of a group")

    def __repr__(self) -> str:
        return refuse("makes text of a group") if exploring else f"<{self._kind}>"

    def __hash__(self) -> int:
        refuse("uses a group as a key")

    def _not_known(self, *_: object) -> NoReturn:
        refuse("compares or calculates with a group")

    __str__ = __repr__
    __len__ = __length_hint__ = __reversed__ = __setitem__ = __delitem__ = _not_known
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _not_known
    __add__ = __radd__ = __iadd__ = __mul__ = __rmul__ = __imul__ = __mod__ = __rmod__ = _not_known
    __sub__ = __rsub__ = __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _not_known


class _Elements:
    """An iterator over a group. It gives nothing, unless it is told to go through one element."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.running: Iterator[Any] | None = None

    def __iter__(self) -> _Elements:
        return self

    def __next__(self) -> Any:
        if self.running is None:
            refuse(f"goes through a group, {_NO_ORDER}")
        return next(self.running)

    def __getattr__(self, name: str) -> NoReturn:
        refuse(f"uses .{name} of an iterator over a group")


def group_over(items: object, *, all_of_it: bool = True) -> Group | None:
    """The group that is gone through: it itself, an iterator over it, or a generator expression over it."""
    if isinstance(items, Group):
        return items
    if isinstance(items, _Elements):
        return items.group
    if isinstance(items, types.GeneratorType) and items.gi_frame is not None:
        over = group_over(items.gi_frame.f_locals.get(".0"))
        if over is None:
            return None
        if items in _partly_used:
            refuse("uses a generator over a group twice")
        step, key = over._origins.original_generator(items)
        made = over.made(step, key, _same_generator(items), "iterator")
        if all_of_it:
            items.close()  # a second use finds nothing, as in Python
        else:
            _partly_used.add(items)
        return made
    return None


def listed_over(origins: Origins, comprehension: Step, items: object) -> Any:
    """What a list comprehension gives: a list, or for a group what is made of it."""
    if not isinstance(items, _Elements) or items.running is not None:
        return comprehension(items)  # type: ignore[arg-type]
    written, key = origins.original(comprehension, "a list")
    return items.group.made(written, key, comprehension, "list")


def holds_group(tree: object) -> bool:
    """Whether a group is in what a function gives."""
    if isinstance(tree, Group | _Elements):
        return True
    if isinstance(tree, types.GeneratorType):
        return is_over_group(tree) is not None
    return isinstance(tree, tuple | list) and any(map(holds_group, tree))


def is_over_group(items: object) -> Group | None:
    """The group that an iterable goes through; the question uses nothing up."""
    if isinstance(items, types.GeneratorType):
        return is_over_group(items.gi_frame.f_locals.get(".0")) if items.gi_frame is not None else None
    return items.group if isinstance(items, _Elements) else items if isinstance(items, Group) else None


def with_one_element(items: object, element: Any) -> Iterator[Any]:
    """What comes of one element of the group that an iterable goes through."""
    if isinstance(items, Group):
        return items.with_one(element)
    under = items
    while isinstance(under, types.GeneratorType) and under.gi_frame is not None:
        under = under.gi_frame.f_locals.get(".0")
    if not isinstance(under, _Elements) or under.running is not None:
        refuse("goes through a group and something else")
    under.running = under.group.with_one(element)
    return iter(items)  # type: ignore[call-overload, no-any-return]


def _same_generator(generator: types.GeneratorType[Any, Any, Any]) -> Step:
    """The function that gives such a generator for another iterator."""
    code, frame = generator.gi_code, generator.gi_frame
    if frame is None:
        refuse("uses a generator over a group twice")
    cells = tuple(types.CellType(frame.f_locals[name]) for name in code.co_freevars)
    return types.FunctionType(code, frame.f_globals, code.co_name, None, cells)


def _equal_to(item: object) -> Step:
    def equal(values: Iterator[Any]) -> Iterable[Any]:
        return [value == item for value in values]

    return equal
