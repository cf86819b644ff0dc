"""Random bag programs over two inputs of pairs `(int, int | None)`, and programs that differ a little from these."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from streamtight.program.relation import (
    Distinct,
    Each,
    Extreme,
    Fold,
    Grouped,
    How,
    Input,
    Matching,
    Product,
    Relation,
    Total,
    Union,
    rows_of,
)

PAIR = (int, int | None)


def _or_zero(row: Any) -> Any:
    return 0 if row[1] is None else row[1]


def _plus(a: Any, b: Any) -> Any:
    return a + b


MAPS: dict[str, Callable[..., Any]] = {
    "(k, v)": lambda t: t,
    "(k + 1, v)": lambda t: (t[0] + 1, t[1]),
    "(2k, v)": lambda t: (2 * t[0], t[1]),
    "(k % 2, v)": lambda t: (t[0] % 2, t[1]),
    "(k, 0)": lambda t: (t[0], 0),
    "(k, None)": lambda t: (t[0], None),
    "(k, v or 0)": lambda t: (t[0], t[1] or 0),
    "(k, v, 0 for None)": lambda t: (t[0], _or_zero(t)),
    "(k, k)": lambda t: (t[0], t[0]),
    "(|k|, v)": lambda t: (abs(t[0]), t[1]),
    "(v or 0, k)": lambda t: (_or_zero(t), t[0]),
    "(0, v)": lambda t: (0, t[1]),
}
FILTERS: dict[str, Callable[..., Any]] = {
    "k > 0": lambda t: t[0] > 0,
    "k >= 1": lambda t: t[0] >= 1,
    "v": lambda t: t[1] is not None,
    "no v": lambda t: t[1] is None,
    "v > 0": lambda t: t[1] is not None and t[1] > 0,
    "k == v": lambda t: t[0] == t[1],
    "never": lambda t: False,
    "always": lambda t: True,
    "k != 1": lambda t: t[0] != 1,
}
FLAT_MAPS: dict[str, Callable[..., Any]] = {
    "twice": lambda t: [t, t],
    "if k > 0": lambda t: [t] if t[0] > 0 else [],
    "and without v": lambda t: [t, (t[0], None)],
}
CONDITIONS: dict[str, Callable[..., Any]] = {
    "k = k": lambda a, b: a[0] == b[0],
    "v = v": lambda a, b: a[1] == b[1],
    "v = k": lambda a, b: a[1] == b[0],
    "same": lambda a, b: a == b,
    "always": lambda a, b: True,
    "k < k": lambda a, b: a[0] < b[0],
    "k = k and v": lambda a, b: a[0] == b[0] and b[1] is not None,
}
JOINED: dict[str, Callable[..., Any]] = {
    "left": lambda p: p[0],
    "right": lambda p: p[1],
    "(k, other v)": lambda p: (p[0][0], p[1][1]),
    "(k, other k)": lambda p: (p[0][0], p[1][0]),
    "(other k, v)": lambda p: (p[1][0], p[0][1]),
}
KEYS: dict[str, Callable[..., Any]] = {
    "k": lambda t: t[0],
    "v": _or_zero,
    "nothing": lambda t: 0,
    "k % 2": lambda t: t[0] % 2,
    "k > 0": lambda t: 1 if t[0] > 0 else 0,
}
SUMMARIES: dict[str, Any] = {
    "count": Total(lambda t: 1),
    "twice the count": Total(lambda t: 2),
    "sum of v": Total(_or_zero),
    "sum of k": Total(lambda t: t[0]),
    "count of v": Total(lambda t: 0 if t[1] is None else 1),
    "count of different v": Total(lambda t: 1, once_for=lambda t: t[1]),
    "count of different k": Total(lambda t: 1, once_for=lambda t: t[0]),
    "greatest k": Extreme(lambda t: t[0], True),
    "least k": Extreme(lambda t: t[0], False),
    "greatest v": Extreme(_or_zero, True),
    "k reduced by max": Fold(None, max, max, lambda t: t[0], needs_row=True),
    "k reduced by +": Fold(None, _plus, _plus, lambda t: t[0], needs_row=True),
    "v folded by +": Fold(0, _plus, _plus, _or_zero),
    "how many v > 0": Fold(0, lambda a, v: a + 1 if v > 0 else a, _plus, _or_zero),
}
SHAPES: dict[str, Callable[..., Any]] = {
    "(key, value)": lambda row: (row[0], row[1]),
    "(value, key)": lambda row: (row[1], row[0]),
    "(key, None)": lambda row: (row[0], None),
}


@dataclass(frozen=True)
class Kind:
    """A kind of node: how many children it has, what can be chosen, and the relation that it makes."""

    children: int
    choices: tuple[dict[str, Any], ...]
    make: Callable[..., Relation]
    often: int = 1


def _joined(left: Relation, right: Relation, condition: Any, made: Any) -> Relation:
    met = Each(Product(left, right), lambda pair: condition(pair[0], pair[1]), How.FILTER)
    return Each(met, made, How.MAP)


KINDS = {
    "map": Kind(1, (MAPS,), lambda of, f: Each(of, f, How.MAP), 2),
    "filter": Kind(1, (FILTERS,), lambda of, f: Each(of, f, How.FILTER), 2),
    "flat map": Kind(1, (FLAT_MAPS,), lambda of, f: Each(of, f, How.FLAT_MAP)),
    "distinct": Kind(1, (), Distinct, 2),
    "union": Kind(2, (), Union),
    "join": Kind(2, (CONDITIONS, JOINED), _joined, 2),
    "with": Kind(2, (CONDITIONS,), lambda a, b, met: Matching(a, b, met, some=True)),
    "without": Kind(2, (CONDITIONS,), lambda a, b, met: Matching(a, b, met, some=False)),
    "group": Kind(
        1, (KEYS, SUMMARIES, SHAPES), lambda of, key, one, made: Each(Grouped(of, key, (one,)), made, How.MAP), 4
    ),
}


@dataclass(frozen=True)
class Node:
    """A program, as what was chosen for it."""

    kind: str
    chosen: tuple[str, ...] = ()
    children: tuple[Node, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join([*self.chosen, *map(str, self.children)])
        return f"{self.kind}[{inner}]" if inner else self.kind

    def relation(self, keys: tuple[tuple[int, ...], ...] = ()) -> Relation:
        """The program; `keys` are those of the input s."""
        if self.kind in ("r", "s"):
            return Input(self.kind, PAIR, keys=keys if self.kind == "s" else ())
        kind = KINDS[self.kind]
        chosen = [choice[name] for choice, name in zip(kind.choices, self.chosen, strict=True)]
        return kind.make(*[child.relation(keys) for child in self.children], *chosen)


class Programs:
    """Makes programs and changes them, by chance."""

    def __init__(self, seed: object) -> None:
        self.chance = random.Random(str(seed))

    def node(self, depth: int) -> Node:
        if depth <= 0 or self.chance.random() < 0.1:
            return Node(self.chance.choice("rrs"))
        [name] = self.chance.choices(list(KINDS), [kind.often for kind in KINDS.values()])
        kind = KINDS[name]
        depths = [depth - 1, depth - 2][: kind.children]
        chosen = tuple(self.chance.choice(list(choice)) for choice in kind.choices)
        return Node(name, chosen, tuple(map(self.node, depths)))

    def changed(self, node: Node) -> Node:
        """The same, but for something: a choice, an order of operations, or one that was put in or left out."""
        chance = self.chance.random()
        if node.children and chance < 0.5:
            place = self.chance.randrange(len(node.children))
            children = list(node.children)
            children[place] = self.changed(children[place])
            return replace(node, children=tuple(children))
        if chance < 0.6:
            return Node("distinct", (), (node,))
        if chance < 0.68:
            return Node("filter", (self.chance.choice(list(FILTERS)),), (node,))
        if not node.children:
            return Node("s" if node.kind == "r" else "r")
        first, *others = node.children
        if chance < 0.76:
            return first
        if chance < 0.86 and first.children:  # this operation before the one that was before it
            under, *beside = first.children
            return replace(first, children=(replace(node, children=(under, *others)), *beside))
        if node.kind == "union":
            return replace(node, children=(*others, first))
        if node.chosen:
            place = self.chance.randrange(len(node.chosen))
            chosen = list(node.chosen)
            chosen[place] = self.chance.choice(list(KINDS[node.kind].choices[place]))
            return replace(node, chosen=tuple(chosen))
        return first

    def pair(self, depth: int) -> tuple[Node, Node]:
        one = self.node(self.chance.randint(1, depth))
        other = one
        for _ in range(self.chance.randint(1, 3)):
            other = self.changed(other)
        return one, other

    def tables(self, *, unique: bool) -> dict[str, list[Any]]:
        """A few rows of both inputs; if asked for, of s no two with the same first value."""
        rows = {name: [self._row() for _ in range(self.chance.choice([0, 1, 1, 2, 2, 3, 4]))] for name in "rs"}
        return {**rows, "s": list({row[0]: row for row in rows["s"]}.values())} if unique else rows

    def _row(self) -> tuple[int, int | None]:
        return self.chance.choice([-1, 0, 1, 2]), self.chance.choice([None, 0, 1, -1, 3])


def differing(left: Relation, right: Relation, tables: Sequence[dict[str, list[Any]]]) -> dict[str, list[Any]] | None:
    """Rows for which two programs give different bags, by their plain meaning."""
    return next((one for one in tables if Counter(rows_of(left, one)) != Counter(rows_of(right, one))), None)
