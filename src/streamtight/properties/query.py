"""QRE-Past: what is the value of this query, and is that still so, after every item of a stream?

    day = split(iter_(atom("v", cur), 0, add), atom("end", 0), first)      the sum of a day
    highest = iter_(day, 0, max)                                          the highest of all days so far
    once(fill_with(highest, constant(0)) > 100)                             was there a day above 100?

A query reads a *word*: items with a tag and a value. Regular operators cut the word into pieces, each of which matches
a part of the query, and put the values of the parts together. On a word that does not match, a query is `UNDEFINED`;
on one that can be cut in more than one way, it is a `CONFLICT`. The words that match are its *rate*, a regular
expression over the tags. Queries that always have a value can be compared, and comparisons put under past-temporal
operators: previously, once, historically, since.

Every query becomes a data transducer of at most quadratic size (Theorem 5.7), so what it keeps in memory and does for
an item is known before it runs (`bound`). Stanford, "Reliable Programming for Stream Processing Systems" (2021),
section 5.3, Figure 26; with its misprints corrected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from streamtight.errors import QueryError
from streamtight.properties.term import (
    ABSOLUTE,
    ADD,
    AND,
    AT_LEAST,
    AT_MOST,
    DIVIDE,
    EQUAL,
    FLOOR_DIVIDE,
    IFF,
    IMPLIES,
    LESS,
    MODULO,
    MORE,
    MULTIPLY,
    NEGATE,
    NOT,
    OR,
    SUBTRACT,
    UNEQUAL,
    Apply,
    Constant,
    Current,
    Operation,
    Slot,
    Term,
    Value,
    term_of,
    walk,
)
from streamtight.properties.term import cur as cur

if TYPE_CHECKING:
    from streamtight.properties.monitor import Bound, Compiled
    from streamtight.properties.query_types import Ambiguity

OTHER = "(other)"
"""The tag of items that no atom of a query names, where these are passed on."""
Op = Callable[..., Value] | Term
"""An operation: a function of values, or a term over `Slot(0)`, `Slot(1)`."""


class Level(Enum):
    """What a query may be part of."""

    BASE = "base"
    """Everything: its machine can be restarted, so it can be a piece of a word."""
    TOP = "top"
    """Comparisons, and queries that read the whole word."""
    TEMPORAL = "temporal"
    """As above, and its value is true or false."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Query:
    """A question about a stream. Make one with the functions of this module."""

    def __str__(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return str(self)

    @property
    def level(self) -> Level:
        """What it may be part of."""
        return Level.BASE

    @property
    def parts(self) -> tuple[Query, ...]:
        """The queries that it is made of."""
        return ()

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms that it has itself, without those of its parts."""
        return ()

    def walk(self) -> Iterator[Query]:
        """It and all queries in it."""
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags that it names, in order."""
        atoms = [each for each in self.walk() if isinstance(each, Atom)]
        return tuple(sorted({tag for each in atoms for tag in (each.tag, *each.but) if tag is not None}))

    @property
    def length(self) -> int:
        """How long it is: the queries and terms that it is made of."""
        return sum(1 + sum(sum(1 for _ in walk(term)) for term in each.terms) for each in self.walk())

    @property
    def is_nullable(self) -> bool:
        """Whether the empty word matches."""
        return True

    # What a query can be asked; the modules that answer know this one, so they are loaded when they are needed.

    def compile(self, tags: Sequence[str] | None = None) -> Compiled:
        """Make it ready to run on a stream with these tags; raises if it is ill-typed.

        tags   all tags of the stream; without them, those that the query names
        """
        from streamtight.properties.monitor import Compiled

        return Compiled(self, tags)

    def run(self, word: Iterable[Any], tags: Sequence[str] | None = None) -> list[Value]:
        """The answers: before the first item, and after each. Items are events, or pairs of a tag and a value.

        tags   all tags of the stream; without them, those that the query names, and if it names none, those that come

        >>> total = iter_(atom("v", cur), 0, lambda total, value: total + value)
        >>> total.run([("v", 5), ("v", 2), ("end", 0)], tags=("v", "end"))
        [0, 5, 7, UNDEFINED]
        """
        from streamtight.properties.monitor import item_of

        items = [item_of(each) for each in word]
        if tags is None and not self.tags and items:
            tags = sorted({tag for tag, _ in items})
        return self.compile(tags).run(items)

    def bound(self, tags: Sequence[str] | None = None) -> Bound:
        """What it needs, before it is ever run: registers, and operations for an item."""
        return self.compile(tags).bound()

    @property
    def rate(self) -> str:
        """The words on which it has a value, as a regular expression over the tags: `.` is any, `()` the empty word."""
        from streamtight.properties.query_types import rate

        return rate(self)

    def ambiguity(self, tags: Sequence[str] | None = None) -> Ambiguity | None:
        """The shortest word on which it, or a part that `fill` hides, is a conflict; None if there is no such word."""
        from streamtight.properties.query_types import ambiguity

        return ambiguity(self, tags_of(self, tags))

    # Arithmetic puts two queries together that match the same words; comparisons are temporal.

    def __add__(self, other: object) -> Query:
        return _arithmetic(ADD, self, other)

    def __radd__(self, other: object) -> Query:
        return _arithmetic(ADD, other, self)

    def __sub__(self, other: object) -> Query:
        return _arithmetic(SUBTRACT, self, other)

    def __rsub__(self, other: object) -> Query:
        return _arithmetic(SUBTRACT, other, self)

    def __mul__(self, other: object) -> Query:
        return _arithmetic(MULTIPLY, self, other)

    def __rmul__(self, other: object) -> Query:
        return _arithmetic(MULTIPLY, other, self)

    def __truediv__(self, other: object) -> Query:
        return _arithmetic(DIVIDE, self, other)

    def __rtruediv__(self, other: object) -> Query:
        return _arithmetic(DIVIDE, other, self)

    def __floordiv__(self, other: object) -> Query:
        return _arithmetic(FLOOR_DIVIDE, self, other)

    def __mod__(self, other: object) -> Query:
        return _arithmetic(MODULO, self, other)

    def __neg__(self) -> Query:
        return Combine((self,), Apply(NEGATE, (Slot(0),)))

    def __abs__(self) -> Query:
        return Combine((self,), Apply(ABSOLUTE, (Slot(0),)))

    def __lt__(self, other: object) -> Query:
        return Comparison(LESS, self, query_of(other))

    def __le__(self, other: object) -> Query:
        return Comparison(AT_MOST, self, query_of(other))

    def __gt__(self, other: object) -> Query:
        return Comparison(MORE, self, query_of(other))

    def __ge__(self, other: object) -> Query:
        return Comparison(AT_LEAST, self, query_of(other))

    def __eq__(self, other: object) -> Query:  # type: ignore[override]
        return Comparison(EQUAL, self, query_of(other))

    def __ne__(self, other: object) -> Query:  # type: ignore[override]
        return Comparison(UNEQUAL, self, query_of(other))

    __hash__ = object.__hash__  # `==` makes a query, so queries are told apart by who they are

    def __and__(self, other: Query) -> Query:
        return Boolean(AND, (self, other))

    def __or__(self, other: Query) -> Query:
        return Boolean(OR, (self, other))

    def __invert__(self) -> Query:
        return Boolean(NOT, (self,))

    def __rshift__(self, other: Query) -> Query:
        return Boolean(IMPLIES, (self, other))

    def __bool__(self) -> bool:
        raise QueryError(
            str(self),
            needed="a word, before it is true or false",
            came="a query where True or False was wanted",
            hint="&, | and ~ instead of and, or and not; query.run(word)",
        )


def _arithmetic(operation: Operation, one: object, other: object) -> Query:
    return Combine((query_of(one), query_of(other)), Apply(operation, (Slot(0), Slot(1))))


def query_of(given: object) -> Query:
    """A query as it is, and a plain value as the query that always has it."""
    if isinstance(given, Query):
        return given
    if isinstance(given, Term) or callable(given):
        raise QueryError(str(given), needed="a query or a plain value", came=repr(given), hint="atom('v', cur)")
    return constant(given)


# -- base queries ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Atom(Query):
    """One item with this tag, or with any (None) but these."""

    tag: str | None
    term: Term
    but: tuple[str, ...] = ()

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.term,)

    @property
    def is_nullable(self) -> bool:
        return False

    def __str__(self) -> str:
        if self.tag is not None:
            return f"atom({_tag(self.tag)}, {self.term})"
        but = f", but=({', '.join(map(_tag, self.but))})" if self.but else ""
        return f"any({self.term}{but})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Eps(Query):
    """The empty word."""

    term: Term

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.term,)

    def __str__(self) -> str:
        return f"eps({self.term})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Or(Query):
    """The word matches the one or the other."""

    one: Query
    other: Query

    def __post_init__(self) -> None:
        _require_base("or_", self.one, self.other)

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.one, self.other

    @property
    def is_nullable(self) -> bool:
        return self.one.is_nullable or self.other.is_nullable

    def __str__(self) -> str:
        return f"or({self.one}, {self.other})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Split(Query):
    """The word is cut in two."""

    one: Query
    other: Query
    op: Term

    def __post_init__(self) -> None:
        _require_base("split", self.one, self.other)

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.one, self.other

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.op,)

    @property
    def is_nullable(self) -> bool:
        return self.one.is_nullable and self.other.is_nullable

    def __str__(self) -> str:
        return f"split({self.one}, {self.other}, {named(self.op)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Iter(Query):
    """The word is cut into any number of pieces, and their values are folded."""

    one: Query
    start: Term
    op: Term

    def __post_init__(self) -> None:
        _require_base("iter_", self.one)

    @property
    def parts(self) -> tuple[Query, ...]:
        return (self.one,)

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.start, self.op

    def __str__(self) -> str:
        return f"iter({self.one}, {self.start}, {named(self.op)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Combine(Query):
    """All queries on the same word, and their values put together."""

    those: tuple[Query, ...]
    op: Term

    @property
    def level(self) -> Level:
        return Level.BASE if all(each.level is Level.BASE for each in self.those) else Level.TOP

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.those

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.op,)

    @property
    def is_nullable(self) -> bool:
        return all(each.is_nullable for each in self.those)

    def __str__(self) -> str:
        return f"combine({', '.join(map(str, self.those))}, {named(self.op)})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrefixSum(Query):
    """The values of a query on all prefixes of the word, folded."""

    one: Query
    start: Term
    op: Term

    @property
    def level(self) -> Level:
        return Level.BASE if self.one.level is Level.BASE else Level.TOP

    @property
    def parts(self) -> tuple[Query, ...]:
        return (self.one,)

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.start, self.op

    def __str__(self) -> str:
        return f"prefix_sum({self.one}, {self.start}, {named(self.op)})"


# -- queries about the whole word ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fill(Query):
    """The last value that a query had."""

    one: Query

    @property
    def level(self) -> Level:
        return Level.TOP

    @property
    def parts(self) -> tuple[Query, ...]:
        return (self.one,)

    @property
    def is_nullable(self) -> bool:
        return self.one.is_nullable

    def __str__(self) -> str:
        return f"fill({self.one})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FillWith(Query):
    """The value of a query, or that of another one if it has none."""

    one: Query
    other: Query

    @property
    def level(self) -> Level:
        return Level.TOP

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.one, self.other

    @property
    def is_nullable(self) -> bool:
        return self.one.is_nullable or self.other.is_nullable

    def __str__(self) -> str:
        return f"fill_with({self.one}, {self.other})"


class _Temporal(Query):
    """True or false after every item."""

    __slots__ = ()

    @property
    def level(self) -> Level:
        return Level.TEMPORAL


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(_Temporal):
    """Two values compared."""

    operation: Operation
    one: Query
    other: Query

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.one, self.other

    def __str__(self) -> str:
        return f"({self.one} {self.operation.symbol} {self.other})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Agree(_Temporal):
    """Two queries say the same: no value, a conflict, or equal values."""

    one: Query
    other: Query

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.one, self.other

    def __str__(self) -> str:
        return f"agree({self.one}, {self.other})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Boolean(_Temporal):
    """Not, and, or, implies, if and only if."""

    operation: Operation
    those: tuple[Query, ...]

    def __post_init__(self) -> None:
        _require_temporal(f"{self.operation.symbol}", *self.those)

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.those

    def __str__(self) -> str:
        if len(self.those) == 1:
            return f"~{self.those[0]}"
        return f"({self.those[0]} {self.operation.symbol} {self.those[1]})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Previously(_Temporal):
    """It was so one item ago; false before the first item."""

    one: Query

    def __post_init__(self) -> None:
        _require_temporal("previously", self.one)

    @property
    def parts(self) -> tuple[Query, ...]:
        return (self.one,)

    def __str__(self) -> str:
        return f"previously({self.one})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Once(_Temporal):
    """It is so now, or was so at some time."""

    one: Query

    def __post_init__(self) -> None:
        _require_temporal("once", self.one)

    @property
    def parts(self) -> tuple[Query, ...]:
        return (self.one,)

    def __str__(self) -> str:
        return f"once({self.one})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Historically(_Temporal):
    """It is so now, and was so at all times."""

    one: Query

    def __post_init__(self) -> None:
        _require_temporal("historically", self.one)

    @property
    def parts(self) -> tuple[Query, ...]:
        return (self.one,)

    def __str__(self) -> str:
        return f"historically({self.one})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Since(_Temporal):
    """The other was so at some time, and the one at all times since then; if weak, the one at all times will do."""

    one: Query
    other: Query
    is_weak: bool

    def __post_init__(self) -> None:
        _require_temporal("since", self.one, self.other)

    @property
    def parts(self) -> tuple[Query, ...]:
        return self.one, self.other

    def __str__(self) -> str:
        return f"{'weak_' if self.is_weak else ''}since({self.one}, {self.other})"


def _tag(tag: str) -> str:
    return tag if tag.isidentifier() else repr(tag)


def named(op: Term) -> str:
    """An operation as people write it: its name, or a term over x and y, or over x0, x1, x2."""
    if isinstance(op, Apply) and all(
        isinstance(each, Slot) and each.place == place for place, each in enumerate(op.arguments)
    ):
        return op.operation.name
    return ("first", "second")[op.place] if isinstance(op, Slot) and op.place < 2 else str(op)


def _require_base(where: str, *those: Query) -> None:
    for each in those:
        _require_query(where, each)
        if each.level is not Level.BASE:
            raise QueryError(
                f"{where}({each}, ...)",
                needed="a query that can be asked of a piece of the stream",
                came=f"{type(each).__name__.lower()}, which is about the whole stream",
                hint="fill and the temporal operators outside, the regular ones inside",
            )


def _require_temporal(where: str, *those: Query) -> None:
    for each in those:
        _require_query(where, each)
        if each.level is not Level.TEMPORAL:
            raise QueryError(
                f"{where}({each})",
                needed="something that is true or false",
                came="a query that has a value",
                hint=f"a comparison, such as {each} > 0",
            )


def _require_query(where: str, given: object) -> None:
    if not isinstance(given, Query):
        raise QueryError(where, needed="a query", came=repr(given), hint="atom('v', cur), constant(0)")


# -- what users write ------------------------------------------------------------------------------------------------


def atom(tag: str, term: object) -> Query:
    """One item with this tag; its value is the term, of `cur` or of a field as `cur.price`, or a function of the item.

    >>> atom("v", cur * 2), atom("v", lambda item: item.price)
    (atom(v, cur * 2), atom(v, cur.price))
    """
    if not isinstance(tag, str) or not tag:
        raise QueryError("atom(...)", needed="a tag", came=repr(tag), hint="atom('v', cur); any_(cur) for every tag")
    return Atom(tag, _with_current("atom", term))


def any_(term: object, *, but: Sequence[str] = ()) -> Query:
    """One item, whatever its tag; or with any tag but these.

    >>> iter_(or_(atom("v", cur), any_(0, but=("v",))), 0, lambda total, value: total + value)
    iter(or(atom(v, cur), any(0, but=(v))), 0, add)
    """
    if isinstance(but, str) or not all(isinstance(tag, str) and tag for tag in but):
        raise QueryError("any_(but=...)", needed="tags", came=repr(but), hint="any_(cur, but=('v',))")
    return Atom(None, _with_current("any_", term), tuple(dict.fromkeys(but)))


def _with_current(where: str, given: object) -> Term:
    term = term_of(given, 0, with_current=True)
    if any(isinstance(each, Slot) for each in walk(term)):
        raise QueryError(f"{where}({term})", needed="a term over cur", came=str(term), hint="cur, or a field of it")
    return term


def eps(term: object) -> Query:
    """The empty word, with this value."""
    return Eps(_constant("eps", term))


def _constant(where: str, given: object) -> Term:
    term = term_of(given, 0) if not callable(given) or isinstance(given, Term) else Constant(given)
    if any(isinstance(each, (Slot, Current)) for each in walk(term)):
        raise QueryError(f"{where}({term})", needed="a constant", came=str(term), hint="0, or another plain value")
    return term


def or_(*those: Query) -> Query:
    """The word matches one of these; a conflict if more than one."""
    if not those:
        raise QueryError("or_()", needed="at least one query", came="none", hint="or_(atom('a', cur), atom('b', 0))")
    found = those[0]
    _require_base("or_", found)
    for each in those[1:]:
        found = Or(found, each)
    return found


def split(one: Query, other: Query, op: Op) -> Query:
    """The word is cut in two, the values are put together by an operation; a conflict if there is more than one cut.

    >>> split(atom("a", cur), atom("b", cur), lambda x, y: x - y)
    split(atom(a, cur), atom(b, cur), subtract)
    """
    return Split(one, other, _operation("split", op, 2))


def iter_(one: Query, start: object, op: Op) -> Query:
    """The word is cut into pieces, whose values are folded: op(op(start, first), second) and so on.

    >>> iter_(atom("v", cur), 0, lambda total, value: total + value)
    iter(atom(v, cur), 0, add)
    """
    return Iter(one, _constant("iter_", start), _operation("iter_", op, 2))


def combine(*those: Any) -> Query:
    """Queries on the same word, then an operation on their values: combine(q1, q2, op)."""
    if len(those) < 2:
        raise QueryError(
            "combine(...)",
            needed="queries and an operation",
            came=f"{len(those)} arguments",
            hint="combine(q1, q2, op)",
        )
    *queries, op = those
    for each in queries:
        _require_query("combine", each)
    return Combine(tuple(queries), _operation("combine", op, len(queries)))


def prefix_sum(one: Query, start: object, op: Op) -> Query:
    """The values of a query on all prefixes, the empty one first, folded from a start value."""
    _require_query("prefix_sum", one)
    return PrefixSum(one, _constant("prefix_sum", start), _operation("prefix_sum", op, 2))


def fill(one: Query) -> Query:
    """The last value that a query had; undefined as long as it never had one."""
    _require_query("fill", one)
    return Fill(one)


def fill_with(one: Query, other: object) -> Query:
    """The value of a query, or that of another, or this value, where it has none."""
    _require_query("fill_with", one)
    return FillWith(one, query_of(other))


def constant(value: object) -> Query:
    """The query that has this value on every word."""
    return Iter(Atom(None, Constant(0)), _constant("constant", value), Slot(0))


def agree(one: Query, other: Query) -> Query:
    """Do two queries say the same: no value, a conflict, or equal values?"""
    _require_query("agree", one)
    _require_query("agree", other)
    return Agree(one, other)


def previously(one: Query) -> Query:
    """Was it so one item ago? False before the first item."""
    return Previously(one)


def once(one: Query) -> Query:
    """Is it so, or was it so at some time?"""
    return Once(one)


def historically(one: Query) -> Query:
    """Is it so, and was it so at all times? The time before the first item counts."""
    return Historically(one)


def since(one: Query, other: Query) -> Query:
    """Was the other so at some time, and the one at all times after it?"""
    return Since(one, other, False)


def weak_since(one: Query, other: Query) -> Query:
    """As since, or the one at all times."""
    return Since(one, other, True)


def implies(one: Query, other: Query) -> Query:
    """If the one, then the other."""
    return Boolean(IMPLIES, (one, other))


def iff(one: Query, other: Query) -> Query:
    """Both or none."""
    return Boolean(IFF, (one, other))


def _operation(where: str, op: Op, arity: int) -> Term:
    if not callable(op) and not isinstance(op, Term):
        raise QueryError(
            f"{where}(...)",
            needed=f"an operation on {arity} values",
            came=repr(op),
            hint="a function, as lambda x, y: x + y",
        )
    term = term_of(op, arity)
    wrong = [
        each for each in walk(term) if isinstance(each, Current) or (isinstance(each, Slot) and each.place >= arity)
    ]
    if wrong:
        raise QueryError(f"{where}(...)", needed=f"a term over {arity} values", came=str(term), hint="Slot(0), Slot(1)")
    return term


def first(one: Value, other: Value) -> Value:
    """The first of two."""
    return one


def second(one: Value, other: Value) -> Value:
    """The second of two."""
    return other


def tags_of(query: Query, tags: Sequence[str] | None) -> tuple[str, ...]:
    """The tags of the stream: those that are given, which must have all that the query names."""
    if tags is None:
        return query.tags or ("item",)
    unknown = [tag for tag in query.tags if tag not in tags]
    if unknown:
        raise QueryError(
            str(query),
            needed=f"tags of the stream: {', '.join(tags)}",
            came=f"a query about {unknown[0]!r}",
            hint="tags=(...) with all tags that come",
        )
    return tuple(dict.fromkeys(tags))
