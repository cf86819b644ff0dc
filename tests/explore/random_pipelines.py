"""Random pipelines, worlds and formulas, all from a seed: every box, in every place where it may stand.

Values have a sort (whole numbers, Booleans, names), so that most of what is drawn can be built.
"""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtight.program.limits import Integers, modulo, whole
from streamtight.program.pipeline import Pipeline, Port
from streamtight.program.processor import (
    Apply,
    CountDecimate,
    Cumulate,
    Filter,
    Fork,
    Freeze,
    Insert,
    Last,
    Passthrough,
    Processor,
    Slice,
    Trim,
    TurnInto,
    Window,
    both,
    either,
    if_then_else,
    implies,
    is_even,
    is_odd,
)

INT, BOOL, NAME = "int", "bool", "name"
NAMES = ("a", "b")
DOMAINS: dict[str, Any] = {INT: int, BOOL: bool, NAME: list(NAMES)}


# -- functions: (what it takes, what it gives, the box) --------------------------------------------------------------


def opaque(x: int) -> int:
    return int(str(abs(x))) + 1


def opaque_pair(x: int, y: int) -> int:
    return x * y + 1 if x > y else y


def raising(x: int) -> int:
    return x if x != 1 else [][0]


def raising_pair(x: int, y: int) -> int:
    if x == y and x > 0:
        raise ValueError(x)
    return x + y


def second_if(condition: bool, name: str) -> str:
    return name if condition else "b"


Sorts = tuple[str, ...]
FUNCTIONS: list[tuple[Sorts, Sorts, Callable[[], Processor]]] = [
    ((INT, INT), (INT,), lambda: Apply(operator.add)),
    ((INT, INT), (INT,), lambda: Apply(operator.sub)),
    ((INT, INT), (INT,), lambda: Apply(operator.mul)),
    ((INT, INT), (INT,), lambda: Apply(operator.floordiv)),
    ((INT, INT), (INT,), lambda: Apply(operator.mod)),
    ((INT, INT), (INT,), lambda: Apply(min)),
    ((INT, INT), (INT,), lambda: Apply(max)),
    ((INT, INT), (INT,), lambda: Apply(lambda x, y: x + 2 * y)),
    ((INT, INT), (INT,), lambda: Apply(lambda x, y: x - y * y)),
    ((INT, INT), (INT,), lambda: Apply(opaque_pair)),
    ((INT, INT), (INT,), lambda: Apply(raising_pair)),
    ((INT,), (INT,), lambda: Apply(operator.neg)),
    ((INT,), (INT,), lambda: Apply(abs)),
    ((INT,), (INT,), lambda: Apply(lambda x: x + 1)),
    ((INT,), (INT,), lambda: Apply(lambda x: x % 2)),
    ((INT,), (INT,), lambda: Apply(lambda x: x // 2)),
    ((INT,), (INT,), lambda: Apply(lambda x: 3 * x - 1)),
    ((INT,), (INT,), lambda: Apply(opaque)),
    ((INT,), (INT,), lambda: Apply(raising)),
    ((INT,), (INT, INT), lambda: Apply(lambda x: (x, x + 1), outputs=2)),
    ((INT,), (BOOL, INT), lambda: Apply(lambda x: (x > 1, 0), outputs=2)),
    ((INT,), (BOOL,), lambda: Apply(is_even)),
    ((INT,), (BOOL,), lambda: Apply(is_odd)),
    ((INT,), (BOOL,), lambda: Apply(lambda x: x > 1)),
    ((INT,), (BOOL,), lambda: Apply(lambda x: x == 0)),
    ((INT,), (BOOL,), lambda: Apply(lambda x: str(x) != "1")),
    ((INT, INT), (BOOL,), lambda: Apply(operator.eq)),
    ((INT, INT), (BOOL,), lambda: Apply(operator.lt)),
    ((INT, INT), (BOOL,), lambda: Apply(operator.ge)),
    ((INT, INT), (BOOL,), lambda: Apply(lambda x, y: x + y != 2)),
    ((BOOL,), (BOOL,), lambda: Apply(operator.not_)),
    ((BOOL, BOOL), (BOOL,), lambda: Apply(both)),
    ((BOOL, BOOL), (BOOL,), lambda: Apply(either)),
    ((BOOL, BOOL), (BOOL,), lambda: Apply(implies)),
    ((BOOL, BOOL), (BOOL,), lambda: Apply(operator.eq)),
    ((BOOL,), (INT,), lambda: Apply(int, arity=1)),
    ((BOOL, INT, INT), (INT,), lambda: Apply(if_then_else)),
    ((BOOL, INT), (INT,), lambda: Apply(lambda condition, x: x if condition else 0)),
    ((INT,), (NAME,), lambda: Apply(lambda x: "a" if x > 0 else "b")),
    ((INT,), (NAME,), lambda: Apply(lambda x: "a" if x == 1 else "b", values=NAMES)),
    ((NAME,), (BOOL,), lambda: Apply(lambda name: name == "a")),
    ((NAME, NAME), (BOOL,), lambda: Apply(operator.eq)),
    ((BOOL, NAME), (NAME,), lambda: Apply(second_if)),
]
CUMULATED: list[tuple[str, str, Callable[[], Processor]]] = [
    (INT, INT, lambda: Cumulate(operator.add)),
    (INT, INT, lambda: Cumulate(operator.mul)),
    (INT, INT, lambda: Cumulate(max, start=0)),
    (INT, INT, lambda: Cumulate(min, start=1)),
    (INT, INT, lambda: Cumulate(lambda last, x: x - last, start=0)),
    (INT, INT, lambda: Cumulate(opaque_pair, start=1)),
    (INT, INT, lambda: Cumulate(raising_pair, start=0)),
    (BOOL, BOOL, lambda: Cumulate(both)),
    (BOOL, BOOL, lambda: Cumulate(either)),
    (BOOL, BOOL, lambda: Cumulate(lambda last, now: last == now, start=True)),
    (INT, BOOL, lambda: Cumulate(lambda last, x: bool(last or x == 1), start=False)),
    (NAME, NAME, lambda: Cumulate(lambda last, name: name if last == "a" else "a", start="b")),
]


@dataclass
class Draw:
    """What is drawn with: a source of chance, the whole numbers that there are, and what boxes are allowed."""

    rng: random.Random
    integers: Integers = field(default_factory=lambda: modulo(3))
    with_last: bool = False
    arithmetic: bool = False
    """Only what the symbols engine is good at: sums, products, delays."""

    def constant(self, sort: str) -> Any:
        if sort == INT:
            return self.rng.randint(self.integers.low, self.integers.high)
        return self.rng.random() < 0.5 if sort == BOOL else self.rng.choice(NAMES)

    # -- boxes -------------------------------------------------------------------------------------------------------

    def box(self, available: Sequence[str], depth: int, inside: bool) -> tuple[Sorts, Sorts, Processor]:
        """A box that takes only sorts that are there."""
        rng = self.rng
        sort = rng.choice(available)
        if self.arithmetic:
            return self.plain_box(sort, depth, inside)
        kind = rng.choice(
            ("function",) * 7 + ("simple",) * 4 + ("filter", "cumulate", "cumulate", "window", "slice", "group")
        )
        match kind:
            case "function":
                fitting = [each for each in FUNCTIONS if set(each[0]) <= set(available)]
                takes, gives, made = rng.choice(fitting)
                return takes, gives, made()
            case "filter" if BOOL in available:
                return (sort, BOOL), (sort,), Filter()
            case "cumulate":
                takes, gives, made = rng.choice([each for each in CUMULATED if each[0] in available])
                return (takes,), (gives,), made()
            case "window" if depth:
                takes, gives, inner = self.inner(available, depth - 1)
                return (takes,), (gives,), Window(inner, rng.randint(1, 3))
            case "slice" if depth:
                takes, gives, inner = self.inner(available, depth - 1)
                if rng.random() < 0.5:
                    return (sort, takes), (gives,), Slice(inner)
                by = {INT: lambda x: x % 2, BOOL: operator.not_, NAME: lambda name: name}[takes]
                return (takes,), (gives,), Slice(inner, by=by)
            case "group" if depth:
                takes = tuple(rng.choice(available) for _ in range(rng.randint(1, 2)))
                inner, gives = self.pipeline_of(takes, depth - 1, rng.randint(1, 2), inside=inside)
                from streamtight.program.processor import Group

                return takes, gives, Group(inner)
        return self.simple(sort, inside)

    def plain_box(self, sort: str, depth: int, inside: bool) -> tuple[Sorts, Sorts, Processor]:
        rng = self.rng
        kind = rng.choice(("function",) * 4 + ("cumulate", "window", "simple", "simple"))
        if kind == "function" and sort == INT:
            fitting = [
                each
                for each in FUNCTIONS[:20]
                if set(each[0]) == {INT} and each[1] == (INT,) and "div" not in str(each)
            ]
            takes, gives, made = rng.choice(fitting)
            return takes, gives, made()
        if kind == "cumulate" and sort == INT:
            return (INT,), (INT,), rng.choice((Cumulate(operator.add), Cumulate(operator.mul), Cumulate(max, start=0)))
        if kind == "window" and sort == INT and depth:
            inner = rng.choice((Cumulate(operator.add), Cumulate(operator.mul), Trim(1), CountDecimate(2)))
            return (INT,), (INT,), Window(inner, rng.randint(1, 3))
        return self.simple(sort, inside)

    def simple(self, sort: str, inside: bool) -> tuple[Sorts, Sorts, Processor]:
        rng = self.rng
        choices: list[Callable[[], Processor]] = [
            Passthrough,
            lambda: Trim(rng.randint(0, 2)),
            lambda: CountDecimate(rng.randint(1, 3)),
            lambda: Insert(*(self.constant(sort) for _ in range(rng.randint(1, 2)))),
            Freeze,
            lambda: Fork(rng.randint(1, 3)),
        ]
        if self.with_last and not inside:
            choices += [Last, Last]
        if rng.random() < 0.15:
            given = rng.choice((INT, BOOL, NAME))
            return (sort,), (given,), TurnInto(self.constant(given))
        box = rng.choice(choices)()
        return (sort,), (sort,) * box.outputs, box

    def inner(self, available: Sequence[str], depth: int) -> tuple[str, str, Processor | Pipeline]:
        """A box with one input and one output."""
        rng = self.rng
        sort = rng.choice(available)
        if rng.random() < 0.4:
            fitting = [each for each in CUMULATED if each[0] == sort]
            takes, gives, made = rng.choice(fitting)
            return takes, gives, made()
        if rng.random() < 0.4:
            takes, gives, box = self.box([sort], depth, True)
            if len(takes) == len(gives) == 1:
                return takes[0], gives[0], box
        made, gives = self.pipeline_of((sort,), depth, 1, inside=True)
        return sort, gives[0], made

    # -- pipelines ---------------------------------------------------------------------------------------------------

    def pipeline_of(
        self, takes: Sorts, depth: int = 1, outputs: int = 1, *, inside: bool = False, most: int = 4, gives: Sorts = ()
    ) -> tuple[Pipeline, Sorts]:
        """A pipeline with these sorts of inputs, and so many outputs; or outputs of these sorts."""
        rng = self.rng
        wanted = len(gives) or outputs
        boxes: dict[str, Processor] = {}
        feeds: dict[Port, Port] = {}
        inputs = [f"i{place}" for place in range(len(takes))] if len(takes) > 1 else ["in"]
        sorts: dict[Port, str] = {Port(name): sort for name, sort in zip(inputs, takes, strict=True)}
        unused: list[Port] = list(sorts)

        def add(box: Processor, fed: Sequence[Port], given: Sorts) -> list[Port]:
            name = f"b{len(boxes)}"
            boxes[name] = box
            for place, port in enumerate(fed):
                feeds[Port(name, place)] = port
                if port in unused:
                    unused.remove(port)
            made = [Port(name, place) for place in range(len(given))]
            sorts.update(zip(made, given, strict=True))
            unused.extend(made)
            return made

        def pick(sort: str) -> Port:
            fresh = [port for port in unused if sorts[port] == sort]
            known = [port for port in sorts if sorts[port] == sort]
            return rng.choice(fresh if fresh and rng.random() < 0.7 else known)

        for _ in range(rng.randint(1, most)):
            needs, made, box = self.box(sorted(set(sorts.values())), depth, inside)
            add(box, [pick(sort) for sort in needs], made)
        ends: list[Port] = []
        if gives:
            for sort in gives:
                ends.append(self.turned(rng.choice(list(sorts)), sort, sorts, add))
        while len([port for port in unused if port not in ends]) + len(ends) > wanted:
            loose = [port for port in unused if port not in ends]
            if ends or len(loose) < 2:
                # Two of one sort are joined with an output that is wanted.
                target = rng.randrange(len(ends))
                one, other = ends[target], loose[0]
                ends[target] = self.joined(one, self.turned(other, sorts[one], sorts, add), sorts[one], add)
            else:
                one, other = rng.sample(loose, 2)
                self.joined(one, self.turned(other, sorts[one], sorts, add), sorts[one], add)
        loose = [port for port in unused if port not in ends]
        ends += loose
        while len(ends) < wanted:
            ends.append(rng.choice(list(sorts)))
        # An output of the pipeline at an input of it wants a box between.
        ends = [add(Passthrough(), [port], (sorts[port],))[0] if port.box in inputs else port for port in ends]
        names = ["out"] if wanted == 1 else [f"o{place}" for place in range(wanted)]
        made = Pipeline(
            boxes,
            feeds,
            inputs={name: DOMAINS[sort] for name, sort in zip(inputs, takes, strict=True)},
            outputs=dict(zip(names, ends, strict=True)),
        )
        return made, tuple(sorts[port] for port in ends)

    def turned(self, port: Port, sort: str, sorts: dict[Port, str], add: Any) -> Port:
        """This port, or a box behind it that makes this sort of it."""
        has = sorts[port]
        if has == sort:
            return port
        fitting = [each for each in FUNCTIONS if each[0] == (has,) and each[1] == (sort,)]
        if not fitting:  # Booleans and names by way of the other sorts
            return self.turned(self.turned(port, INT if has == BOOL else BOOL, sorts, add), sort, sorts, add)
        _, gives, made = self.rng.choice(fitting)
        return add(made(), [port], gives)[0]

    def joined(self, one: Port, other: Port, sort: str, add: Any) -> Port:
        fitting = [each for each in FUNCTIONS if each[0] == (sort, sort) and each[1] == (sort,)]
        if self.arithmetic and sort == INT:
            fitting = fitting[:3]
        box: Processor = self.rng.choice(fitting)[2]() if fitting else Apply(lambda x, y: x if x == y else "b")
        return add(box, [one, other], (sort,))[0]


# -- worlds ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """The options of `explore` that say what may happen."""

    queue: int | dict[str, int] = 2
    domain: int | Integers = 3
    full: str = "stop"
    pauses: bool = False
    together: bool = False
    ends: bool = False
    resets: bool = False
    leaks: tuple[str, ...] = ()
    inputs: dict[str, tuple[Any, ...]] = field(default_factory=dict)

    @property
    def integers(self) -> Integers:
        return self.domain if isinstance(self.domain, Integers) else modulo(self.domain)

    def options(self) -> dict[str, Any]:
        """As `explore` is given them."""
        return {**vars(self), "leaks": list(self.leaks), "inputs": self.inputs or None}


def random_world(rng: random.Random) -> World:
    """Mostly plain; each option now and then."""

    def at(chance: float) -> bool:
        return rng.random() < chance

    domain = rng.choice((1, 2, 3, 3, 4, modulo(2), modulo(3), whole(0, 2), whole(-1, 1), whole(-2, 1)))
    return World(
        rng.choice((0, 1, 1, 2, 2, 3)),
        domain,
        "drop" if at(0.25) else "stop",
        at(0.3),
        at(0.3),
        at(0.25),
        at(0.15),
    )


# -- formulas --------------------------------------------------------------------------------------------------------


Node = tuple[Any, ...]
"""("atom", text), ("not", a), ("and", a, b), ("X", a), ("U", a, b), ("AG", a), ("AU", a, b), ..."""


def random_atoms(rng: random.Random, pipeline: Pipeline, sorts: dict[str, str], integers: Integers) -> list[str]:
    """Texts of tests of one step."""
    atoms = []
    for _ in range(rng.randint(1, 3)):
        name = rng.choice([*pipeline.outputs, *pipeline.pipes])
        sort = sorts.get(name)
        if sort == INT and rng.random() < 0.5:
            sign = rng.choice(("=", "==", "!=", "<", "<=", ">", ">="))
            atoms.append(f"{name} {sign} {rng.randint(integers.low, integers.high)}")
        elif sort == BOOL and rng.random() < 0.5:
            atoms.append(f"{name} = {rng.choice(('TRUE', 'FALSE'))}")
        elif sort == NAME and rng.random() < 0.5:
            atoms.append(f"{name} {rng.choice(('=', '!='))} '{rng.choice(NAMES)}'")
        elif pipeline.queues and rng.random() < 0.3:
            atoms.append(f"#{rng.choice(list(pipeline.queues))} {rng.choice(('=', '<', '>='))} {rng.randint(0, 2)}")
        else:
            atoms.append(name)
    return list(dict.fromkeys(atoms))


def random_linear(rng: random.Random, atoms: Sequence[str], depth: int) -> Node:
    """A formula of LTL."""
    if depth == 2 and rng.random() < 0.2:
        return ("G", random_linear(rng, atoms, 0))
    if depth == 0 or rng.random() < 0.15:
        return ("atom", rng.choice(atoms))
    op = rng.choice(("not", "and", "or", "->", "X", "F", "G", "G", "F", "U", "R"))
    count = 2 if op in ("and", "or", "->", "U", "R") else 1
    return (op, *(random_linear(rng, atoms, depth - 1) for _ in range(count)))


def random_branching(rng: random.Random, atoms: Sequence[str], depth: int) -> Node:
    """A formula of CTL."""
    if depth == 2 and rng.random() < 0.3:
        return ("AG", random_branching(rng, atoms, 0))
    if depth == 0 or rng.random() < 0.1:
        return ("atom", rng.choice(atoms))
    op = rng.choice(("not", "and", "or", "->", "AX", "AF", "AG", "AG", "EX", "EF", "EF", "EG", "AU", "EU"))
    count = 2 if op in ("and", "or", "->", "AU", "EU") else 1
    return (op, *(random_branching(rng, atoms, depth - 1) for _ in range(count)))


def written(node: Node) -> str:
    """The formula as a text."""
    op, *parts = node
    match op:
        case "atom":
            return parts[0] if re_name(parts[0]) else f"({parts[0]})"
        case "not":
            return f"!{written(parts[0])}"
        case "and" | "or" | "->" | "U" | "R":
            sign = {"and": "&", "or": "|"}.get(op, op)
            return f"({written(parts[0])} {sign} {written(parts[1])})"
        case "AU" | "EU":
            return f"{op[0]}[{written(parts[0])} U {written(parts[1])}]"
    return f"{op} {written(parts[0])}"


def re_name(text: str) -> bool:
    return all(part.isidentifier() or part.isdigit() for part in text.split("."))
