"""Systems as SMV text: the part of the language of NuSMV that small systems are written in.

>>> system = read_smv('''
... MODULE main
... VAR x : 0..3; up : boolean;
... ASSIGN
...   init(x) := 0;
...   next(x) := case up & x < 3 : x + 1; TRUE : {0, x}; esac;
... ''')
>>> list(system.first())
[{'x': 0, 'up': False}, {'x': 0, 'up': True}]
>>> list(system.after({"x": 2, "up": False}))
[{'x': 0, 'up': False}, {'x': 0, 'up': True}, {'x': 2, 'up': False}, {'x': 2, 'up': True}]

There is one module, with VAR (boolean, ranges, enumerations), DEFINE, ASSIGN (init, next, or a plain name), INIT, TRANS
and INVAR. What is not assigned may be anything. Whatever else there is, is refused with its line, so that no answer
rests on half of a text.

As in NuSMV, `/` rounds to zero and `mod` has the sign of what is divided.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from streamtight.errors import PipelineError

Value = Any
Values = Mapping[str, Value]
SUPPORTED: Final = (
    "MODULE main with VAR, DEFINE, ASSIGN, INIT, TRANS, INVAR; boolean, 0..3, {a, b}; case, ? :, sets, union, in, "
    "! & | xor xnor -> <-> = != < <= > >= + - * / mod, abs, min, max, next"
)
MOST_TRIED: Final = 1_000_000
"""Combinations of values that are tried for one step; only what is left open, or tied by TRANS and INVAR, counts."""


# -- what a text says ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SmvSystem:
    """A system: the values of its variables, how it begins, and what may come after a state."""

    variables: dict[str, list[Value]]
    begins: _Rules
    """For the first state."""
    goes: _Rules
    """For a state after another."""

    def first(self) -> list[dict[str, Value]]:
        """The states that it may begin with."""
        return list(self._found(self.begins, {}))

    def after(self, now: Values) -> Iterator[dict[str, Value]]:
        """The states that may come next."""
        return self._found(self.goes, now)

    def _found(self, rules: _Rules, now: Values) -> Iterator[dict[str, Value]]:
        options = [
            values if name not in rules.assigned else rules.assigned[name].options(now, values)
            for name, values in self.variables.items()
        ]
        count = 1
        for each in options:
            count *= len(each)
        if count > MOST_TRIED:
            raise PipelineError(
                "an SMV text",
                needed=f"at most {MOST_TRIED:,} combinations of values to try for one step",
                came=f"{count:,}",
                hint="init(x) and next(x) for more variables",
            )
        for row in itertools.product(*options):
            state = dict(zip(self.variables, row, strict=True))
            if all(rule(now, state) for rule in rules.tests):
                yield state


@dataclass(slots=True)
class _Rules:
    """Which states may come: the values of variables that depend on the state before only, and tests of both."""

    assigned: dict[str, _Assigned] = field(default_factory=dict)
    tests: list[Callable[[Values, Values], bool]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Assigned:
    """What a variable is assigned, from the state before."""

    name: str
    line: int
    given: _Evaluated

    def options(self, now: Values, values: Sequence[Value]) -> list[Value]:
        return self.checked(self.given(now, {}), values)

    def checked(self, found: tuple[Value, ...], values: Sequence[Value]) -> list[Value]:
        for value in found:
            if not _is_among(value, values):
                raise _error(
                    self.line,
                    needed=f"a value of {self.name}, from {_shown(values[0])} to {_shown(values[-1])}",
                    came=_shown(value),
                    hint="a case for this, or a larger range",
                )
        return [value for value in values if _is_among(value, found)]


_Evaluated = Callable[[Values, Values], tuple[Value, ...]]
"""The values of an expression, in a state and the one after it."""


def read_smv(text: str) -> SmvSystem:
    """The system that a text describes."""
    return _Meaning(_Parser(text).module()).system()


# -- words -----------------------------------------------------------------------------------------------------------


class _Token(NamedTuple):
    kind: str
    """number, name, sign or end."""
    text: str
    line: int


_TOKEN: Final = re.compile(
    r"(?P<space>\s+|/--.*?--/|--[^\n]*)"
    r"|(?P<number>\d+(?![\w$#]))"
    r"|(?P<name>[A-Za-z_][\w$#-]*)"
    r"|(?P<sign><->|->|:=|\.\.|!=|<=|>=|[-+*/=<>!&|?:;,(){}])",
    re.DOTALL | re.ASCII,
)
_SECTIONS: Final = ("VAR", "DEFINE", "ASSIGN", "INIT", "TRANS", "INVAR")
_OTHER_SECTIONS: Final = """
    MODULE FROZENVAR IVAR FUN MDEFINE CONSTANTS SPEC CTLSPEC LTLSPEC PSLSPEC INVARSPEC COMPUTE FAIRNESS JUSTICE
    COMPASSION ISA PRED MIRROR CONSTRAINT ITYPE
"""
_OTHER_WORDS: Final = """
    boolean case esac next init mod union in xor xnor abs min max TRUE FALSE process array of word signed unsigned bool
    toint count self
"""
_STARTS: Final = frozenset(_OTHER_SECTIONS.split()).union(_SECTIONS)
_WORDS: Final = frozenset(_OTHER_WORDS.split()).union(_STARTS)


def _tokens(text: str) -> list[_Token]:
    found, place, line = [], 0, 1
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise _error(
                line, needed="words of SMV", came=repr(text[place : place + 12].split("\n")[0]), hint="x : 0..3;"
            )
        if match.lastgroup != "space":
            found.append(_Token(str(match.lastgroup), match.group(), line))
        line += match.group().count("\n")
        place = match.end()
    return [*found, _Token("end", "the end", line)]


# -- sentences -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Node:
    """An expression: a value, a name, or an operator over others."""

    op: str
    parts: tuple[_Node, ...]
    value: Value
    line: int


@dataclass(slots=True)
class _Module:
    variables: dict[str, tuple[list[Value], int]] = field(default_factory=dict)
    defined: dict[str, _Node] = field(default_factory=dict)
    assigned: dict[tuple[str, str], tuple[_Node, int]] = field(default_factory=dict)
    """By "init", "next" or "", and the variable."""
    constraints: list[tuple[str, _Node]] = field(default_factory=list)


class _Parser:
    """A recursive descent: one method for each strength of operators, the weakest first."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.place = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.place]

    def take(self, *texts: str) -> _Token | None:
        """The next word, if it is one of these."""
        token = self.token
        if token.kind in ("name", "sign") and token.text in texts:
            self.place += 1
            return token
        return None

    def want(self, text: str, hint: str) -> _Token:
        token = self.take(text)
        if token is None:
            raise _error(self.token.line, needed=repr(text), came=repr(self.token.text), hint=hint)
        return token

    def name(self, hint: str) -> _Token:
        token = self.token
        if token.kind != "name" or token.text in _WORDS:
            raise _error(token.line, needed="a name", came=repr(token.text), hint=hint)
        self.place += 1
        return token

    def module(self) -> _Module:
        module = _Module()
        self.want("MODULE", "MODULE main")
        if self.take("main") is None:
            raise _refused(self.token, "MODULE main")
        readers = {"VAR": self.variable, "DEFINE": self.definition, "ASSIGN": self.assignment}
        while self.token.kind != "end":
            section = self.take(*_SECTIONS)
            if section is None:
                raise _refused(self.token, f"a section: {', '.join(_SECTIONS)}")
            if section.text in readers:
                while self.token.kind != "end" and self.token.text not in _STARTS:
                    readers[section.text](module)
            else:
                module.constraints.append((section.text, self.expression()))
                self.take(";")
        return module

    def variable(self, module: _Module) -> None:
        name = self.name("x : 0..3;")
        self.want(":", "x : 0..3;")
        if name.text in module.variables:
            raise _twice(name)
        module.variables[name.text] = (self.domain(), name.line)
        self.want(";", f"{name.text} : ...;")

    def domain(self) -> list[Value]:
        token = self.token
        if self.take("boolean"):
            return [False, True]
        if self.take("{"):
            values = [self.listed()]
            while self.take(","):
                values.append(self.listed())
            self.want("}", "{red, green}")
            if len(values) > len(dict.fromkeys(map(_key, values))):
                raise _error(token.line, needed="different values", came="one twice", hint="{red, green}")
            return values
        if token.kind == "number" or token.text == "-":
            low = self.whole()
            self.want("..", "0..3")
            high = self.whole()
            if low > high:
                raise _error(token.line, needed="the least number first", came=f"{low}..{high}", hint=f"{high}..{low}")
            return list(range(low, high + 1))
        raise _refused(token, "boolean, a range such as 0..3, or an enumeration such as {red, green}")

    def listed(self) -> Value:
        if self.token.kind == "number" or self.token.text == "-":
            return self.whole()
        if self.token.text in ("TRUE", "FALSE"):
            raise _refused(self.token, "names or numbers in an enumeration; boolean has TRUE and FALSE")
        return self.name("{red, green}").text

    def whole(self) -> int:
        sign = -1 if self.take("-") else 1
        token = self.token
        if token.kind != "number":
            raise _error(token.line, needed="a whole number", came=repr(token.text), hint="0..3")
        self.place += 1
        return sign * int(token.text)

    def definition(self, module: _Module) -> None:
        name = self.name("busy := x > 0;")
        self.want(":=", f"{name.text} := ...;")
        if name.text in module.defined:
            raise _twice(name)
        module.defined[name.text] = self.expression()
        self.want(";", f"{name.text} := ...;")

    def assignment(self, module: _Module) -> None:
        kind = self.take("init", "next")
        if kind:
            self.want("(", f"{kind.text}(x) := 0;")
        name = self.name("init(x) := 0;")
        if kind:
            self.want(")", f"{kind.text}({name.text}) := ...;")
        self.want(":=", f"{name.text} := ...;")
        key = (kind.text if kind else "", name.text)
        others = {("init", name.text), ("next", name.text)} if kind is None else {("", name.text)}
        if key in module.assigned or others & module.assigned.keys():
            raise _twice(name)
        module.assigned[key] = (self.expression(), name.line)
        self.want(";", f"{name.text} := ...;")

    # -- expressions ---------------------------------------------------------------------------------------------------

    def expression(self) -> _Node:
        one = self.iff()
        sign = self.take("->")
        return one if sign is None else _Node("->", (one, self.expression()), None, sign.line)

    def iff(self) -> _Node:
        return self.joined(self.choice, "<->")

    def choice(self) -> _Node:
        condition = self.either()
        sign = self.take("?")
        if sign is None:
            return condition
        one = self.expression()
        self.want(":", "condition ? one : other")
        return _Node("choose", (condition, one, self.choice()), None, sign.line)

    def either(self) -> _Node:
        return self.joined(self.both, "|", "xor", "xnor")

    def both(self) -> _Node:
        return self.joined(self.compared, "&")

    def compared(self) -> _Node:
        return self.joined(self.member, "=", "!=", "<", ">", "<=", ">=")

    def member(self) -> _Node:
        return self.joined(self.union, "in")

    def union(self) -> _Node:
        return self.joined(self.some, "union")

    def some(self) -> _Node:
        opening = self.take("{")
        if opening:
            parts = [self.expression()]
            while self.take(","):
                parts.append(self.expression())
            self.want("}", "{0, 1}")
            return _Node("set", tuple(parts), None, opening.line)
        low = self.sum()
        sign = self.take("..")
        return low if sign is None else _Node("range", (low, self.sum()), None, sign.line)

    def sum(self) -> _Node:
        return self.joined(self.product, "+", "-")

    def product(self) -> _Node:
        return self.joined(self.primary, "*", "/", "mod")

    def joined(self, part: Callable[[], _Node], *signs: str) -> _Node:
        node = part()
        while sign := self.take(*signs):
            node = _Node(sign.text, (node, part()), None, sign.line)
        return node

    def primary(self) -> _Node:
        token = self.token
        if sign := self.take("!", "-"):
            return _Node("not" if sign.text == "!" else "minus", (self.primary(),), None, sign.line)
        if self.take("("):
            node = self.expression()
            self.want(")", "(x + 1)")
            return node
        if self.take("TRUE", "FALSE"):
            return _Node("value", (), token.text == "TRUE", token.line)
        if self.take("case"):
            rows: list[_Node] = []
            while not self.take("esac"):
                rows.append(self.expression())
                self.want(":", "case x = 0 : 1; TRUE : x; esac")
                rows.append(self.expression())
                self.want(";", "case x = 0 : 1; TRUE : x; esac")
            return _Node("case", tuple(rows), None, token.line)
        if function := self.take("abs", "min", "max", "next"):
            self.want("(", f"{function.text}(...)")
            parts = [self.expression()]
            while self.take(","):
                parts.append(self.expression())
            self.want(")", f"{function.text}(...)")
            if len(parts) != (2 if function.text in ("min", "max") else 1):
                raise _error(
                    token.line, needed=f"{function.text} of other arguments", came=str(len(parts)), hint="min(a, b)"
                )
            return _Node(function.text, tuple(parts), None, token.line)
        if token.kind == "number":
            self.place += 1
            return _Node("value", (), int(token.text), token.line)
        if token.kind == "name" and token.text not in _WORDS:
            self.place += 1
            return _Node("name", (), token.text, token.line)
        raise _refused(token, "an expression")


# -- meaning ---------------------------------------------------------------------------------------------------------

_BOOLEAN, _WHOLE, _NAME = "TRUE or FALSE", "whole numbers", "names"


class _Typed(NamedTuple):
    """An expression that can be evaluated: the sorts of its values, and whether it is one value or a set."""

    call: _Evaluated
    sorts: frozenset[str]
    is_set: bool
    uses: frozenset[tuple[str, bool]]
    """The variables in it, and whether in the next state."""

    @property
    def speaks_of_next(self) -> bool:
        return any(is_next for _, is_next in self.uses)


_NONE: Final = frozenset[tuple[str, bool]]()


def _quotient(a: int, b: int) -> int:
    size = abs(a) // abs(b)
    return size if (a < 0) == (b < 0) else -size


_CALCULATED: Final[dict[str, Callable[..., Value]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _quotient,
    "mod": lambda a, b: a - b * _quotient(a, b),
    "min": min,
    "max": max,
    "minus": lambda a: -a,
    "abs": abs,
}
_LOGICAL: Final[dict[str, Callable[..., bool]]] = {
    "&": lambda a, b: a and b,
    "|": lambda a, b: a or b,
    "xor": lambda a, b: a is not b,
    "xnor": lambda a, b: a is b,
    "->": lambda a, b: not a or b,
    "<->": lambda a, b: a is b,
    "not": lambda a: not a,
}
_ORDERED: Final[dict[str, Callable[..., bool]]] = {
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
}
_SAME: Final[dict[str, Callable[..., bool]]] = {"=": lambda a, b: a == b, "!=": lambda a, b: a != b}


class _Meaning:
    """What the sentences of a module mean. Sorts are checked here: a wrong text is refused even where no run goes."""

    def __init__(self, module: _Module) -> None:
        self.module = module
        self.values = {name: values for name, (values, _) in module.variables.items()}
        self.symbols = {value for values in self.values.values() for value in values if isinstance(value, str)}
        self.waiting: list[str] = []
        """Definitions inside which we are."""
        self.known: dict[tuple[str, bool], _Typed] = {}
        self.from_same: dict[tuple[str, str], set[str]] = {}
        """For each assignment, the variables of the same state from which it calculates."""

    def system(self) -> SmvSystem:
        module = self.module
        if not module.variables:
            raise _error(1, needed="a variable", came="none", hint="VAR x : 0..3;")
        for name, (_, line) in module.variables.items():
            if name in module.defined or name in self.symbols:
                raise _error(line, needed="names of their own", came=f"{name!r} with two meanings", hint=f"{name}_1")
        for name, node in module.defined.items():
            if name in self.symbols:
                raise _error(
                    node.line, needed="names of their own", came=f"{name!r} with two meanings", hint=f"{name}_1"
                )
            self.definition(name, node, is_next=False)
        begins, goes = _Rules(), _Rules()
        for (kind, name), (node, line) in module.assigned.items():
            if name not in self.values:
                raise _error(line, needed="a variable", came=repr(name), hint=f"VAR {name} : ...;")
            self.assign(kind, name, node, line, begins, goes)
        for kind, node in module.constraints:
            test = self.boolean(node)
            if test.speaks_of_next and kind != "TRANS":
                raise _error(node.line, needed=f"{kind} of one state", came="next(...)", hint="TRANS")
            if kind in ("INIT", "INVAR"):
                begins.tests.append(_of_new(test))
            if kind == "INVAR":
                goes.tests.append(_of_new(test))
            if kind == "TRANS":
                goes.tests.append(_of_both(test))
        return SmvSystem(self.values, begins, goes)

    def assign(self, kind: str, name: str, node: _Node, line: int, begins: _Rules, goes: _Rules) -> None:
        given = self.typed(node)
        sorts = _sorts(self.values[name])
        if not given.sorts <= sorts:
            raise _error(
                line, needed=f"{_listed(sorts)} for {name}", came=_listed(given.sorts), hint="TRUE and FALSE; 0, 1"
            )
        if given.speaks_of_next and kind != "next":
            raise _error(
                line, needed=f"a value of {name} from one state", came="next(...)", hint=f"next({name}) := ..."
            )
        assigned = _Assigned(name, line, given.call)
        self.from_same[kind, name] = {each for each, is_next in given.uses if is_next == (kind == "next")}
        self.refuse_circle(kind, name, [name], line)
        if kind == "next":
            if not given.speaks_of_next:
                goes.assigned[name] = assigned
            else:
                goes.tests.append(_tied(assigned, given, self.values[name], is_new=False))
            return
        rules = [begins] if kind == "init" else [begins, goes]
        for each in rules:
            if given.uses:
                each.tests.append(_tied(assigned, given, self.values[name], is_new=True))
            else:
                each.assigned[name] = assigned

    def refuse_circle(self, kind: str, name: str, walk: list[str], line: int) -> None:
        """Refuse that a value is calculated from itself. The last assignment of a circle finds it."""
        for other in sorted({*self.from_same.get((kind, name), ()), *self.from_same.get(("", name), ())}):
            if other == walk[0]:
                raise _error(
                    line,
                    needed="values from others",
                    came=f"a circle: {' <- '.join([*walk, other])}",
                    hint="TRANS or INVAR",
                )
            if other not in walk:
                for each in {kind, "next", "init"} if kind == "" else {kind}:
                    self.refuse_circle(each, other, [*walk, other], line)

    def definition(self, name: str, node: _Node, *, is_next: bool) -> _Typed:
        key = (name, is_next)
        if key not in self.known:
            if name in self.waiting:
                raise _error(
                    node.line, needed="definitions that end", came=" -> ".join([*self.waiting, name]), hint="a variable"
                )
            self.waiting.append(name)
            meant = self.typed(node, is_next=is_next)
            self.waiting.pop()
            if meant.is_set:
                raise _error(node.line, needed=f"one value for {name}", came="a set", hint="a set in next(...) := ...")
            self.known[key] = meant
        return self.known[key]

    def boolean(self, node: _Node, *, is_next: bool = False) -> _Typed:
        return self.one(node, {_BOOLEAN}, is_next=is_next)

    def one(self, node: _Node, wanted: set[str] | None = None, *, is_next: bool = False) -> _Typed:
        """An expression with one value, of these sorts."""
        typed = self.typed(node, is_next=is_next)
        if typed.is_set:
            raise _error(
                node.line,
                needed="one value here",
                came="a set",
                hint="sets after := and in, and in the branches of case",
            )
        if wanted is not None and not typed.sorts <= wanted:
            raise _error(
                node.line, needed=_listed(wanted), came=_listed(typed.sorts), hint="x = 1 for a test of a number"
            )
        return typed

    def typed(self, node: _Node, *, is_next: bool = False) -> _Typed:
        op = node.op
        if op == "value":
            return _constant(node.value)
        if op == "name":
            return self.named(node, is_next=is_next)
        if op == "next":
            if is_next:
                raise _error(node.line, needed="one next", came="next in next", hint="next(x)")
            return self.typed(node.parts[0], is_next=True)
        if op in ("set", "union", "range", "in"):
            return self.set_of(node, is_next=is_next)
        if op in ("case", "choose"):
            return self.branches(node, is_next=is_next)
        if op in _SAME:
            a, b = (self.one(part, is_next=is_next) for part in node.parts)
            if (_BOOLEAN in a.sorts) != (_BOOLEAN in b.sorts) or not (a.sorts & b.sorts):
                raise _error(
                    node.line,
                    needed="values of one sort",
                    came=f"{_listed(a.sorts)} {op} {_listed(b.sorts)}",
                    hint="x = 1",
                )
            return _applied(_SAME[op], (a, b), _BOOLEAN)
        if op in _LOGICAL:
            parts = tuple(self.boolean(part, is_next=is_next) for part in node.parts)
            return _applied(_LOGICAL[op], parts, _BOOLEAN)
        parts = tuple(self.one(part, {_WHOLE}, is_next=is_next) for part in node.parts)
        if op in _ORDERED:
            return _applied(_ORDERED[op], parts, _BOOLEAN)
        if op in ("/", "mod"):
            return _applied(_dividing(_CALCULATED[op], node.line), parts, _WHOLE)
        return _applied(_CALCULATED[op], parts, _WHOLE)

    def named(self, node: _Node, *, is_next: bool) -> _Typed:
        name: str = node.value
        if name in self.module.defined:
            return self.definition(name, self.module.defined[name], is_next=is_next)
        if name in self.values:
            if is_next:
                return _Typed(
                    lambda now, new: (new[name],), _sorts(self.values[name]), False, frozenset({(name, True)})
                )
            return _Typed(lambda now, new: (now[name],), _sorts(self.values[name]), False, frozenset({(name, False)}))
        if name in self.symbols:
            return _constant(name)
        hint = f"blanks around the minus: {name.replace('-', ' - ')}" if "-" in name else f"VAR {name} : ...;"
        known = ", ".join((*self.values, *self.module.defined))
        raise _error(node.line, needed=f"names among {known}, or values of enumerations", came=repr(name), hint=hint)

    def set_of(self, node: _Node, *, is_next: bool) -> _Typed:
        if node.op == "in":
            one, several = self.one(node.parts[0], is_next=is_next), self.typed(node.parts[1], is_next=is_next)
            if not (one.sorts & several.sorts):
                raise _error(
                    node.line,
                    needed="values of one sort",
                    came=f"{_listed(one.sorts)} in {_listed(several.sorts)}",
                    hint="x in {0, 1}",
                )
            return _Typed(
                lambda now, new: (_is_among(one.call(now, new)[0], several.call(now, new)),),
                frozenset({_BOOLEAN}),
                False,
                one.uses | several.uses,
            )
        if node.op == "range":
            low, high = (self.one(part, {_WHOLE}, is_next=is_next) for part in node.parts)
            return _Typed(
                lambda now, new: tuple(range(low.call(now, new)[0], high.call(now, new)[0] + 1)),
                frozenset({_WHOLE}),
                True,
                low.uses | high.uses,
            )
        parts = [self.typed(part, is_next=is_next) for part in node.parts]
        sorts = frozenset[str]().union(*(part.sorts for part in parts))
        if _BOOLEAN in sorts and len(sorts) > 1:
            raise _error(node.line, needed="values of one sort", came=_listed(sorts), hint="{0, 1}")
        return _Typed(
            lambda now, new: tuple(value for part in parts for value in part.call(now, new)),
            sorts,
            len(parts) > 1 or parts[0].is_set,
            _NONE.union(*(part.uses for part in parts)),
        )

    def branches(self, node: _Node, *, is_next: bool) -> _Typed:
        parts = node.parts
        if node.op == "choose":
            condition, one, other = parts
            parts = (condition, one, _Node("value", (), True, node.line), other)
        if not parts:
            raise _error(node.line, needed="rows in a case", came="none", hint="case x = 0 : 1; TRUE : x; esac")
        conditions = [self.boolean(part, is_next=is_next) for part in parts[::2]]
        results = [self.typed(part, is_next=is_next) for part in parts[1::2]]
        sorts = frozenset[str]().union(*(each.sorts for each in results))
        if _BOOLEAN in sorts and len(sorts) > 1:
            raise _error(
                node.line, needed="branches of one sort", came=_listed(sorts), hint="TRUE and FALSE; or 0 and 1"
            )
        rows = list(zip((each.call for each in conditions), (each.call for each in results), strict=True))

        def call(now: Values, new: Values) -> tuple[Value, ...]:
            for condition, result in rows:
                if condition(now, new)[0]:
                    return result(now, new)
            raise _error(
                node.line, needed="a row of the case for every state", came=_told(now), hint="TRUE : x; as the last"
            )

        uses = _NONE.union(*(each.uses for each in (*conditions, *results)))
        return _Typed(call, sorts, any(each.is_set for each in results), uses)


def _applied(function: Callable[..., Value], parts: tuple[_Typed, ...], sort: str) -> _Typed:
    calls = [part.call for part in parts]

    def call(now: Values, new: Values) -> tuple[Value, ...]:
        return (function(*(each(now, new)[0] for each in calls)),)

    return _Typed(call, frozenset({sort}), False, _NONE.union(*(part.uses for part in parts)))


def _dividing(function: Callable[[int, int], int], line: int) -> Callable[[int, int], int]:
    def divided(a: int, b: int) -> int:
        if b == 0:
            raise _error(line, needed="a divisor", came="0", hint="x = 0 ? 0 : y / x")
        return function(a, b)

    return divided


def _constant(value: Value) -> _Typed:
    return _Typed(lambda now, new: (value,), _sorts([value]), False, frozenset())


def _sorts(values: Sequence[Value]) -> frozenset[str]:
    names = {bool: _BOOLEAN, int: _WHOLE, str: _NAME}
    return frozenset(names[type(value)] for value in values)


def _of_new(test: _Typed) -> Callable[[Values, Values], bool]:
    """A test of the new state alone."""
    return lambda now, new: bool(test.call(new, {})[0])


def _of_both(test: _Typed) -> Callable[[Values, Values], bool]:
    return lambda now, new: bool(test.call(now, new)[0])


def _tied(
    assigned: _Assigned, given: _Typed, values: Sequence[Value], *, is_new: bool
) -> Callable[[Values, Values], bool]:
    """The test that a variable has a value that it is assigned, where that depends on the new state."""

    def test(now: Values, new: Values) -> bool:
        found = given.call(new, {}) if is_new else given.call(now, new)
        return _is_among(new[assigned.name], assigned.checked(found, values))

    return test


# -- small things ----------------------------------------------------------------------------------------------------


def _key(value: Value) -> tuple[type, Value]:
    return type(value), value


def _is_among(value: Value, values: Sequence[Value]) -> bool:
    return any(type(value) is type(each) and value == each for each in values)


def _shown(value: Value) -> str:
    return str(value).upper() if isinstance(value, bool) else str(value)


def _told(state: Values) -> str:
    return ", ".join(f"{name} = {_shown(value)}" for name, value in state.items()) or "the first state"


def _listed(sorts: frozenset[str] | set[str]) -> str:
    return " and ".join(sorted(sorts))


def _error(line: int, *, needed: str, came: str, hint: str) -> PipelineError:
    return PipelineError(f"line {line} of the SMV text", needed=needed, came=came, hint=hint)


def _refused(token: _Token, needed: str) -> PipelineError:
    return _error(token.line, needed=needed, came=repr(token.text), hint=f"what is supported: {SUPPORTED}")


def _twice(token: _Token) -> PipelineError:
    return _error(token.line, needed=f"{token.text} once", came="a second time", hint="leave one out")
