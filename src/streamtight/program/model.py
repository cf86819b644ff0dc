"""Models: finite transition systems, as what each variable becomes in one step.

A model has variables with finite domains, choices that the world makes anew in each step, and terms: the next value of
each variable, what the pipes carry during the step, when a run stops. Engines search it, reason about it, or write it
down for others; none needs to know what a processor is.

>>> terms = Terms()
>>> tick, count = terms.variable("tick", BOOL), terms.variable("count", Range(0, 2))
>>> after = terms.choose(tick, terms.choose(terms.equal(count, terms.constant(2)), terms.constant(0),
...                      terms.add(count, terms.constant(1))), count)
>>> print(after)
if tick then (if count = 2 then 0 else (count + 1)) else count
>>> evaluate(after, {"tick": True, "count": 1})
2

Terms are made by `Terms`, which simplifies what it can and makes no term twice: equal terms are one object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from streamtight.errors import PipelineError
from streamtight.program.limits import Integers

Value = Any


# -- domains ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Range:
    """The whole numbers from low to high."""

    low: int
    high: int

    @property
    def values(self) -> range:
        """All of them, the least first."""
        return range(self.low, self.high + 1)

    def __str__(self) -> str:
        return f"{self.low}..{self.high}"


@dataclass(frozen=True, slots=True)
class Symbols:
    """These values, which are only told apart."""

    values: tuple[Value, ...]

    def __str__(self) -> str:
        return "{" + ", ".join(map(repr, self.values)) + "}"


@dataclass(frozen=True, slots=True)
class Bools:
    """True and False."""

    @property
    def values(self) -> tuple[bool, bool]:
        """Both."""
        return (False, True)

    def __str__(self) -> str:
        return "boolean"


BOOL: Final = Bools()
Domain = Range | Symbols | Bools


def united(domains: Iterable[Domain], where: str = "a pipe") -> Domain:
    """The domain of what is of one of these."""
    listed = list(dict.fromkeys(domains))
    if len(listed) == 1:
        return listed[0]
    ranges = [each for each in listed if isinstance(each, Range)]
    if len(ranges) == len(listed):
        return Range(min(each.low for each in ranges), max(each.high for each in ranges))
    symbols = [each for each in listed if isinstance(each, Symbols)]
    if len(symbols) == len(listed):
        return Symbols(tuple(dict.fromkeys(value for each in symbols for value in each.values)))
    raise PipelineError(
        where,
        needed="values of one sort: whole numbers, Booleans, or listed values",
        came=" and ".join(map(str, listed)),
        hint="functions that give the same sort for every event",
    )


def domain_of(values: Iterable[Value], where: str) -> Domain:
    """The smallest domain that has these values."""
    try:
        listed = list(dict.fromkeys(values))
    except TypeError:
        raise PipelineError(
            where, needed="values that have a hash", came=repr(values), hint="a tuple instead of a list"
        ) from None
    types = {type(value) for value in listed}
    if types == {bool}:
        return BOOL
    if types == {int}:
        return Range(min(listed), max(listed))
    if types & {bool, int}:
        # As keys, True and 1 are the same for Python, so they could not be told apart.
        raise PipelineError(
            where,
            needed="values of one sort: whole numbers, Booleans, or others",
            came=", ".join(map(repr, listed)),
            hint="names instead of numbers",
        )
    return Symbols(tuple(listed))


# -- terms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, slots=True)
class Term:
    """What is calculated from variables and choices.

    op       what to do: one of those of `Terms`
    value    the value of a constant, the name of a variable, the table of a function
    """

    op: str
    arguments: tuple[Term, ...]
    value: Any
    domain: Domain

    @property
    def is_constant(self) -> bool:
        """Whether it is always the same."""
        return self.op == "constant"

    def __str__(self) -> str:
        return _text(self)

    __repr__ = __str__


class Table:
    """A function that was given as Python: what it gives is found out when it is wanted, and kept.

    `default` stands where nobody asks; RAISED is what it gives where the function raises.
    """

    def __init__(self, name: str, function: Callable[..., Value], domain: Domain, default: Value) -> None:
        self.name, self.function, self.domain, self.default = name, function, domain, default
        self.known: dict[tuple[Value, ...], Value] = {}

    def __call__(self, *arguments: Value) -> Value:
        try:
            return self.known[arguments]
        except KeyError:
            given = self.known[arguments] = self.function(*arguments)
            return given

    def __repr__(self) -> str:
        return self.name


_INFIX = {"add": "+", "subtract": "-", "multiply": "*", "equal": "=", "less": "<", "at_most": "<="}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "not": lambda a: not a,
    "and": lambda *parts: all(parts),
    "or": lambda *parts: any(parts),
    "equal": lambda a, b: a == b,
    "less": lambda a, b: a < b,
    "at_most": lambda a, b: a <= b,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a // b if b else 0,
    "modulo": lambda a, b: a % b if b else 0,
}
"""What the operations of terms give, of plain values."""


class Terms:
    """Makes terms. Each is made once, and simplified where constants or equal parts allow it."""

    def __init__(self, *, keeps_wraps: bool = False) -> None:
        """With `keeps_wraps`, numbers that wrap stay an operation of their own, for reasoning about all domains."""
        self.keeps_wraps = keeps_wraps
        self._made: dict[tuple[Any, ...], Term] = {}
        self.true = self.constant(True)
        self.false = self.constant(False)

    def _make(self, op: str, arguments: tuple[Term, ...], value: Any, domain: Domain) -> Term:
        # True and 1 are one key for Python; their types tell them apart.
        key = (op, arguments, type(value), value)
        made = self._made.get(key)
        if made is None:
            made = self._made[key] = Term(op, arguments, value, domain)
        return made

    def constant(self, value: Value) -> Term:
        """Always this value."""
        domain = BOOL if type(value) is bool else Range(value, value) if type(value) is int else Symbols((value,))
        return self._make("constant", (), value, domain)

    def variable(self, name: str, domain: Domain) -> Term:
        """The value of a variable or a choice."""
        return self._make("variable", (), name, domain)

    def not_(self, a: Term) -> Term:
        """Is it false?"""
        if a.is_constant:
            return self.constant(not a.value)
        return a.arguments[0] if a.op == "not" else self._make("not", (a,), None, BOOL)

    def and_(self, *parts: Term) -> Term:
        """Are all true?"""
        return self._joined("and", parts, self.true, self.false)

    def or_(self, *parts: Term) -> Term:
        """Is one true?"""
        return self._joined("or", parts, self.false, self.true)

    def _joined(self, op: str, parts: Sequence[Term], neutral: Term, absorbing: Term) -> Term:
        flat: dict[Term, None] = {}
        for part in parts:
            for each in part.arguments if part.op == op else (part,):
                if each is absorbing or self.not_(each) in flat:
                    return absorbing
                if each is not neutral:
                    flat[each] = None
        if len(flat) < 2:
            return next(iter(flat), neutral)
        return self._make(op, tuple(flat), None, BOOL)

    def choose(self, condition: Term, one: Term, other: Term) -> Term:
        """The one if the condition is true, else the other."""
        if condition.is_constant:
            return one if condition.value else other
        if one is other:
            return one
        if condition.op == "not":
            condition, one, other = condition.arguments[0], other, one
        if one.op == "choose" and one.arguments[0] is condition:
            one = one.arguments[1]
        if other.op == "choose" and other.arguments[0] is condition:
            other = other.arguments[2]
        if isinstance(one.domain, Bools):
            if one is self.true:
                return self.or_(condition, other)
            if one is self.false:
                return self.and_(self.not_(condition), other)
            if other is self.true:
                return self.or_(self.not_(condition), one)
            if other is self.false:
                return self.and_(condition, one)
        return self._make("choose", (condition, one, other), None, united((one.domain, other.domain)))

    def equal(self, a: Term, b: Term) -> Term:
        """Are they the same value?"""
        if a is b:
            return self.true
        if a.is_constant and b.is_constant:
            return self.constant(type(a.value) is type(b.value) and a.value == b.value)
        for one, other in ((a, b), (b, a)):
            if one is self.true:
                return other
            if one is self.false:
                return self.not_(other)
        if not _overlap(a.domain, b.domain):
            return self.false
        if b.is_constant and a.op == "choose":  # so that tests of counters become tests of what moved them
            condition, one, other = a.arguments
            if one.is_constant or other.is_constant:
                return self.choose(condition, self.equal(one, b), self.equal(other, b))
        return self._make("equal", (a, b), None, BOOL)

    def less(self, a: Term, b: Term) -> Term:
        """Is the first less?"""
        return self._compared("less", a, b, strict=True)

    def at_most(self, a: Term, b: Term) -> Term:
        """Is the first not more?"""
        return self._compared("at_most", a, b, strict=False)

    def _compared(self, op: str, a: Term, b: Term, *, strict: bool) -> Term:
        one, other = _range(a), _range(b)
        if a is b:
            return self.constant(not strict)
        if one.high < other.low or (one.high == other.low and not strict):
            return self.true
        if one.low > other.high or (one.low == other.high and strict):
            return self.false
        return self._make(op, (a, b), None, BOOL)

    def add(self, a: Term, b: Term) -> Term:
        """The sum; exact, like the others."""
        one, other = _range(a), _range(b)
        if a.is_constant and a.value == 0:
            return b
        if b.is_constant and b.value == 0:
            return a
        return self._arithmetic("add", a, b, Range(one.low + other.low, one.high + other.high))

    def subtract(self, a: Term, b: Term) -> Term:
        """The difference."""
        one, other = _range(a), _range(b)
        if b.is_constant and b.value == 0:
            return a
        return self._arithmetic("subtract", a, b, Range(one.low - other.high, one.high - other.low))

    def multiply(self, a: Term, b: Term) -> Term:
        """The product."""
        one, other = _range(a), _range(b)
        for each, rest in ((a, b), (b, a)):
            if each.is_constant and each.value in (0, 1):
                return rest if each.value else each
        ends = [x * y for x in (one.low, one.high) for y in (other.low, other.high)]
        return self._arithmetic("multiply", a, b, Range(min(ends), max(ends)))

    def divide(self, a: Term, b: Term) -> Term:
        """The quotient, rounded down; 0 if the divisor is 0."""
        one = _range(a)
        most = max(abs(one.low), abs(one.high))
        low = 0 if one.low >= 0 and _range(b).low >= 0 else -most
        return self._arithmetic("divide", a, b, Range(low, most))

    def modulo(self, a: Term, b: Term) -> Term:
        """The remainder, with the sign of the divisor; 0 if that is 0."""
        other = _range(b)
        return self._arithmetic("modulo", a, b, Range(min(other.low + 1, 0), max(other.high - 1, 0)))

    def _arithmetic(self, op: str, a: Term, b: Term, domain: Range) -> Term:
        if a.is_constant and b.is_constant:
            return self.constant(FUNCTIONS[op](a.value, b.value))
        return self._make(op, (a, b), None, domain)

    def fit(self, a: Term, integers: Integers) -> Term:
        """The number that stands for this one. If they do not wrap, the nearest: the run has stopped then."""
        domain = _range(a)
        if integers.low <= domain.low and domain.high <= integers.high:
            return a
        if not integers.wraps:
            low, high = self.constant(integers.low), self.constant(integers.high)
            return self._retyped(
                self.choose(self.less(a, low), low, self.choose(self.less(high, a), high, a)), integers
            )
        if a.is_constant:
            return self.constant(integers.fit(a.value))
        if self.keeps_wraps:
            return self._make("wrap", (a,), integers, Range(integers.low, integers.high))
        low, size = self.constant(integers.low), self.constant(integers.size)
        return self.add(self.modulo(self.subtract(a, low), size), low)

    def _retyped(self, a: Term, integers: Integers) -> Term:
        return a if a.op != "choose" else self._make("choose", a.arguments, None, Range(integers.low, integers.high))

    def call(self, table: Table, when: Term, *arguments: Term) -> Term:
        """What a function gives, where `when` is true."""
        if when is self.false:
            return self.constant(table.default)
        if all(each.is_constant for each in (when, *arguments)):
            return self.constant(table(*(each.value for each in arguments)))
        return self._make("call", (when, *arguments), table, table.domain)


def _range(a: Term) -> Range:
    if isinstance(a.domain, Range):
        return a.domain
    raise PipelineError(str(a), needed="a whole number", came=f"one of {a.domain}", hint="whole numbers to count with")


def _overlap(a: Domain, b: Domain) -> bool:
    if isinstance(a, Range) and isinstance(b, Range):
        return a.low <= b.high and b.low <= a.high
    if isinstance(a, Symbols) and isinstance(b, Symbols):
        return bool(set(a.values) & set(b.values))
    return type(a) is type(b)


def _text(term: Term) -> str:
    arguments = term.arguments
    if term.op == "constant":
        return repr(term.value)
    if term.op == "variable":
        return str(term.value)
    if term.op == "choose":
        condition, one, other = (f"({each})" if each.op == "choose" else str(each) for each in arguments)
        return f"if {condition} then {one} else {other}"
    if term.op in _INFIX and len(arguments) == 2:
        sign = _INFIX[term.op]
        text = f" {sign} ".join(map(str, arguments))
        return text if sign in ("=", "<", "<=") else f"({text})"
    if term.op in ("and", "or"):
        return "(" + f" {term.op} ".join(map(str, arguments)) + ")"
    name = term.value.name if term.op == "call" else term.op
    return f"{name}({', '.join(map(str, arguments[term.op == 'call' :]))})"


def evaluate(term: Term, values: Mapping[str, Value]) -> Value:
    """The value of a term: slow, and plainly what is meant."""
    if term.op == "constant":
        return term.value
    if term.op == "variable":
        return values[term.value]
    if term.op == "choose":
        condition, one, other = term.arguments
        return evaluate(one if evaluate(condition, values) else other, values)
    if term.op == "call":
        when, *arguments = term.arguments
        if not evaluate(when, values):
            return term.value.default
        return term.value(*(evaluate(each, values) for each in arguments))
    return FUNCTIONS[term.op](*(evaluate(each, values) for each in term.arguments))


def parts_of(roots: Iterable[Term]) -> list[Term]:
    """All terms in these, each once, and after those that it is made of."""
    ordered: dict[Term, None] = {}
    stack = [(root, False) for root in reversed(list(roots))]
    while stack:
        term, is_done = stack.pop()
        if term in ordered:
            continue
        if is_done:
            ordered[term] = None
        else:
            stack.append((term, True))
            stack.extend((each, False) for each in reversed(term.arguments) if each not in ordered)
    return list(ordered)


# -- models ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Variable:
    """What a model remembers. `is_data` says that it holds a value of the streams, and no count of them."""

    name: str
    domain: Domain
    first: Value
    after: Term
    """Its value after the step."""
    is_data: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """What the world chooses anew in each step. `only_if` names the choice without which it makes no difference."""

    name: str
    domain: Domain
    only_if: str | None = None


@dataclass(frozen=True, slots=True)
class Signal:
    """What a pipe carries in a step: whether there is an event, and which."""

    present: Term
    value: Term


@dataclass(frozen=True, slots=True)
class Stop:
    """Where a run is followed no further, and when. Kinds are those of `limits.Stopped`."""

    kind: str
    where: str
    when: Term


@dataclass(frozen=True, slots=True)
class Wrap:
    """Where a whole number leaves its domain and comes in at the other end; when, and what stands for it."""

    where: str
    when: Term
    value: Term


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue: how many events are in it after the step, and how many it can hold."""

    length: Term
    places: int


@dataclass(frozen=True, slots=True)
class Model:
    """A transition system: one step for each push.

    variables what it remembers
    choices   what the world chooses in each step
    allowed   which choices can be made together, and now
    pipes     what each carries during the step
    wraps     when a whole number comes in again at the other end of its domain
    """

    terms: Terms
    variables: Mapping[str, Variable]
    choices: Mapping[str, Choice]
    allowed: Term
    pipes: Mapping[str, Signal] = field(default_factory=dict)
    queues: Mapping[str, Queue] = field(default_factory=dict)
    stops: tuple[Stop, ...] = ()
    wraps: tuple[Wrap, ...] = ()

    def first(self) -> dict[str, Value]:
        """The state before the first step."""
        return {name: each.first for name, each in self.variables.items()}

    def cone(self, roots: Iterable[Term]) -> tuple[list[Variable], list[Choice]]:
        """The variables and choices on which these terms depend, now or later."""
        names: dict[str, None] = {}
        waiting = [*roots, self.allowed]
        seen: set[Term] = set()
        while waiting:
            found = []
            for term in parts_of(waiting):
                if term in seen:
                    continue
                seen.add(term)
                if term.op == "variable" and term.value not in names:
                    names[term.value] = None
                    if term.value in self.variables:
                        found.append(self.variables[term.value].after)
            waiting = found
        variables = [each for name, each in self.variables.items() if name in names]
        return variables, [each for name, each in self.choices.items() if name in names]
