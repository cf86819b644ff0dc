"""Dependence: which two events must keep their order, and the algebra of that.

A dependence is a symmetric relation on events. Everything but `depends(fn)` is built from one shape, the *clause*:
two events are related if they agree on some key fields, one is on the clause's left side and the other on its right:

    ordered         = ( no key,  any,   any )
    same("taxi")    = ( taxi,    any,   any )
    barrier(p)      = ( no key,  p,     any )
    between(p, q)   = ( no key,  p,     q   )

Clauses are closed under `&`, a relation is a union of clauses, and a synchronization schema is one too (Definition
2.13). So one index, `Frontier`, serves them all: for a new event it finds the latest earlier event that it depends on
in a time that does not grow with the number of events. Only `depends(fn)` has to look at pairs.

>>> from streamtight.stream.event import Kind
>>> GPS, EndOfDay = Kind("GPS", taxi_id=int, x=float), Kind("EndOfDay", day=int)
>>> upto = barrier(EndOfDay) | same("taxi_id", of=GPS)
>>> upto.depends(GPS(1, 0.0), GPS(2, 0.0)), upto.depends(GPS(1, 0.0), EndOfDay(1))
(False, True)
>>> upto.explain(GPS(1, 0.0), GPS(1, 7.5))
"same('taxi_id', of=GPS)"
"""

from __future__ import annotations

import bisect
import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from streamtight.errors import DependenceError
from streamtight.stream.event import Event, Kind

Predicate = Callable[[Event], bool]
Selection = Kind | Iterable[Kind] | Predicate
"""How a user says which events are meant: a kind, several kinds, or a predicate."""


@dataclass(frozen=True, slots=True)
class Select:
    """Which events one side of a clause speaks of: of these kinds (None: any), passing all tests."""

    kinds: frozenset[Kind] | None = None
    tests: tuple[Predicate, ...] = ()

    def __call__(self, event: Event) -> bool:
        return (self.kinds is None or event.kind in self.kinds) and all(test(event) for test in self.tests)

    def __and__(self, other: Select) -> Select:
        if self.kinds is None or other.kinds is None:
            kinds = other.kinds if self.kinds is None else self.kinds
        else:
            kinds = self.kinds & other.kinds
        return Select(kinds, tuple(dict.fromkeys(self.tests + other.tests)))

    def always(self, kind: Kind) -> bool:
        """Whether it selects every event of this kind."""
        return not self.tests and (self.kinds is None or kind in self.kinds)

    @property
    def impossible(self) -> bool:
        """Whether it selects nothing, whatever the events are."""
        return self.kinds is not None and not self.kinds


ANY = Select()


@dataclass(frozen=True, slots=True)
class Clause:
    """Relates a and b that agree on `key`, one in `left` and the other in `right`, if every pairwise test agrees."""

    text: str
    key: tuple[str, ...] = ()
    left: Select = ANY
    right: Select = ANY
    pairwise: tuple[Callable[[Event, Event], bool], ...] = ()

    def relates(self, a: Event, b: Event) -> bool:
        """Whether this clause makes a and b dependent."""
        if not ((self.left(a) and self.right(b)) or (self.right(a) and self.left(b))):
            return False
        # As tuples, since these compare by identity first: NaN, which is one object in events, is a key like any other.
        if self.key and (key_getter(a.kind, self)(a),) != (key_getter(b.kind, self)(b),):
            return False
        return all(test(a, b) for test in self.pairwise)

    def both(self, other: Clause) -> Iterator[Clause]:
        """The clauses whose union relates what self and other both relate."""
        text = f"{_bracketed(self.text)} & {_bracketed(other.text)}"
        key = tuple(dict.fromkeys(self.key + other.key))
        pairwise = tuple(dict.fromkeys(self.pairwise + other.pairwise))
        sides = [(self.left & other.left, self.right & other.right)]
        crossed = (self.left & other.right, self.right & other.left)
        if crossed not in (sides[0], sides[0][::-1]):
            sides.append(crossed)
        for left, right in sides:
            if not left.impossible and not right.impossible:
                yield Clause(text, key, left, right, pairwise)


def key_getter(kind: Kind, clause: Clause) -> Callable[[Event], Hashable]:
    """Reads the clause's key fields off an event of this kind, or says which field the kind lacks."""
    for field in clause.key:
        if field not in kind.fields:
            raise DependenceError(
                clause.text,
                needed=f"a field {field!r} in every kind that it speaks of",
                came=f"an event of {kind!r}",
                hint=f"one of {', '.join(kind.names) or 'none'}, or same({field!r}, of=...) with kinds that have it",
            )
    if not clause.key:
        return _no_key
    return operator.itemgetter(*(kind.names.index(field) + 1 for field in clause.key))


def _no_key(_: Event) -> Hashable:
    return None


class Dependence:
    """A symmetric relation on events: the union of its clauses.

    `domain` is the set of kinds that it is about, or None for all; an event of another kind is a wrong question.
    """

    def __init__(
        self, clauses: Iterable[Clause], *, text: str | None = None, domain: frozenset[Kind] | None = None
    ) -> None:
        self.clauses = tuple(clauses)
        self.domain = domain
        self._known_kinds: set[Kind] = set()
        self._text = text or " | ".join(clause.text for clause in self.clauses) or "unordered"

    def depends(self, a: Event, b: Event) -> bool:
        """Must a and b keep their order?"""
        self.require_known(a, b)
        return any(clause.relates(a, b) for clause in self.clauses)

    def independent(self, a: Event, b: Event) -> bool:
        """May a and b be swapped when they are neighbours?"""
        return not self.depends(a, b)

    def explain(self, a: Event, b: Event) -> str | None:
        """The clause that makes a and b dependent, as it was written; None if they are independent."""
        self.require_known(a, b)
        return next((clause.text for clause in self.clauses if clause.relates(a, b)), None)

    def partition_key(self) -> PartitionKey | None:
        """A key such that events with different keys are never dependent nor equal, or None if there is none.

        >>> same("taxi_id").partition_key()
        PartitionKey(taxi_id)
        >>> ordered.partition_key() is None
        True
        """
        first = self.clauses[0].key if self.clauses else ()
        fields = tuple(field for field in first if all(field in clause.key for clause in self.clauses))
        if self.clauses and not fields:
            return None
        return PartitionKey(fields, self.clauses)

    def require_known(self, *events: Event) -> None:
        """Raise if an event is not of this relation's domain, or has no field that the relation needs."""
        for event in events:
            if event.kind in self._known_kinds:
                continue
            if self.domain is not None and event.kind not in self.domain:
                raise self._unknown_kind(event)
            for clause in self.clauses:
                if any(side.always(event.kind) for side in (clause.left, clause.right)):
                    key_getter(event.kind, clause)
            self._known_kinds.add(event.kind)

    def _unknown_kind(self, event: Event) -> DependenceError:
        return DependenceError(
            repr(self),
            needed="an event of " + _names(self.domain or ()),
            came=repr(event),
            hint=f"add {event.kind.name} to it, or leave such events out",
        )

    def validate(self, events: Sequence[Event], *, equal: Callable[[Event, Event], bool] | None = None) -> None:
        """Raise if, on these events, the relation is not symmetric or does not respect the equality.

        To respect an equality is: if x depends on y and x' equals x, then x' depends on y. Both rules are checked on
        all pairs (triples where events are equal), so give a sample of a long stream, not all of it.

        >>> from streamtight.stream.event import Kind
        >>> N = Kind("N", value=int)
        >>> depends(lambda a, b: a.value < b.value).validate([N(1), N(2)])
        Traceback (most recent call last):
        ...
        streamtight.errors.DependenceError: depends(<lambda>): needed a symmetric relation; came depends(N(value=1), \
N(value=2)) is True, the other way round False. Try: a function that gives the same answer for (a, b) and (b, a)
        """
        distinct = list(dict.fromkeys(events))
        self.require_known(*distinct)
        for a, b in itertools.combinations(distinct, 2):
            for clause in self.clauses:  # every one, since the first that relates the two hides the others
                clause.relates(a, b)
        if equal is not None:
            self._validate_equality(distinct, equal)

    def _validate_equality(self, events: Sequence[Event], equal: Callable[[Event, Event], bool]) -> None:
        for a, b in itertools.combinations(events, 2):
            if not equal(a, b):
                continue
            for other in events:
                # The pairs (x, x) never change which streams are equivalent, so they prove nothing here.
                if other in (a, b) or self.depends(a, other) == self.depends(b, other):
                    continue
                related, unrelated = (a, b) if self.depends(a, other) else (b, a)
                raise DependenceError(
                    repr(self),
                    needed="a relation that treats equal events alike",
                    came=f"{a} and {b} are equal, but only {related} depends on {other}, not {unrelated}",
                    hint="a relation that reads only the fields that the equality compares",
                )

    def __or__(self, other: Dependence) -> Dependence:
        _require_dependence(other, f"{self!r} | ...")
        domain = None if self.domain is None or other.domain is None else self.domain | other.domain
        return Dependence(dict.fromkeys(self.clauses + other.clauses), text=f"{self!r} | {other!r}", domain=domain)

    def __and__(self, other: Dependence) -> Dependence:
        _require_dependence(other, f"{self!r} & ...")
        if self.domain is None or other.domain is None:
            domain = other.domain if self.domain is None else self.domain
        else:
            domain = self.domain & other.domain
        clauses = (c for a in self.clauses for b in other.clauses for c in a.both(b))
        text = f"{_bracketed(repr(self))} & {_bracketed(repr(other))}"
        return Dependence(dict.fromkeys(clauses), text=text, domain=domain)

    def _identity(self) -> tuple[object, ...]:
        return (frozenset((c.key, c.left, c.right, c.pairwise) for c in self.clauses), self.domain)

    def __eq__(self, other: object) -> bool:
        return self._identity() == other._identity() if isinstance(other, Dependence) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return self._text


@dataclass(frozen=True, slots=True)
class PartitionKey:
    """Where an event goes when a stream is split; `fields` are the columns to split by.

    Events that no clause speaks of are independent of everything, so each may go anywhere: their key is themselves.
    """

    fields: tuple[str, ...]
    clauses: tuple[Clause, ...]

    def __call__(self, event: Event) -> Hashable:
        for clause in self.clauses:
            if clause.left(event) or clause.right(event):
                key_getter(event.kind, clause)  # raises if the event's kind has no such fields
                return tuple(event[event.kind.names.index(field) + 1] for field in self.fields)
        return event

    def __repr__(self) -> str:
        return f"PartitionKey({', '.join(self.fields)})"


# -- what users write --------------------------------------------------------------------------------------------

unordered = Dependence((), text="unordered")
"""No two events depend on each other: a bag."""

ordered = Dependence((Clause("ordered"),))
"""Every two events depend on each other: a sequence."""


def same(*fields: str, of: Selection | None = None) -> Dependence:
    """Events that agree on these fields keep their order; `of` says for which events, if not for all.

    >>> same("taxi_id", "day")
    same('taxi_id', 'day')
    """
    if not fields or not all(isinstance(field, str) for field in fields):
        raise DependenceError(
            "same(...)",
            needed="one field name or more",
            came=repr(fields),
            hint="same('taxi_id'), or ordered",
        )
    listed = ", ".join(repr(field) for field in fields)
    if of is None:
        return Dependence((Clause(f"same({listed})", fields),))
    who, text = _selection(of, "same")
    clause = Clause(f"same({listed}, of={text})", fields, who, who)
    for kind in who.kinds or ():
        key_getter(kind, clause)  # raises if it has no such field
    return Dependence((clause,))


def barrier(which: Selection) -> Dependence:
    """These events keep their order with every event.

    >>> from streamtight.stream.event import Kind
    >>> barrier(Kind("EndOfDay", day=int))
    barrier(EndOfDay)
    """
    who, text = _selection(which, "barrier")
    return Dependence((Clause(f"barrier({text})", (), who, ANY),))


def between(one: Selection, other: Selection) -> Dependence:
    """Every event of the one sort keeps its order with every event of the other.

    >>> from streamtight.stream.event import Kind
    >>> between(Kind("Read", key=str), Kind("Write", key=str)) & same("key")
    between(Read, Write) & same('key')
    """
    (left, left_text), (right, right_text) = _selection(one, "between"), _selection(other, "between")
    return Dependence((Clause(f"between({left_text}, {right_text})", (), left, right),))


def punctuation(which: Selection, *, time: str, of: Selection | None = None) -> Dependence:
    """These events keep their order among themselves, and with every event whose time is before theirs.

    A punctuation says that what has an earlier time has most likely come; what comes after it nevertheless is late, and
    a consumer treats it otherwise. Later times are not its business. `of` says which events it is about, if not all.

    >>> from streamtight.stream.event import Kind
    >>> GPS, Mark = Kind("GPS", taxi_id=int, time=int), Kind("Mark", time=int)
    >>> upto = punctuation(Mark, time="time")
    >>> upto.depends(Mark(5), GPS(1, 4)), upto.depends(Mark(5), GPS(1, 5))
    (True, False)
    """
    marks, text = _selection(which, "punctuation")
    others, of_text = (ANY, "") if of is None else _selection(of, "punctuation")
    text = f"punctuation({text}, time={time!r}{f', of={of_text}' if of_text else ''})"
    if not isinstance(time, str):
        raise DependenceError(text, needed="the name of a field", came=repr(time), hint="time='seconds'")
    for kind in (marks.kinds or frozenset()) | (others.kinds or frozenset()):
        key_getter(kind, Clause(text, (time,)))  # raises if it has no such field
    return Dependence(
        (Clause(text, (), marks, marks), Clause(text, (), marks, others, (Earlier(marks, time),))), text=text
    )


@dataclass(frozen=True, slots=True)
class Earlier:
    """Is one of the two a mark, and the time of the other before that of the mark? None and NaN are before nothing."""

    marks: Select
    time: str

    def __call__(self, a: Event, b: Event) -> bool:
        return self._before(a, b) or self._before(b, a)

    def _before(self, event: Event, mark: Event) -> bool:
        if not self.marks(mark):
            return False
        early, late = getattr(event, self.time), getattr(mark, self.time)
        return early is not None and late is not None and bool(early < late)


def depends(fn: Callable[[Event, Event], bool]) -> Dependence:
    """Any other relation, as a function of two events, which must give the same answer for (a, b) and (b, a).

    It is opaque: it cannot be indexed or split, so prefer the other forms where they can say the same.
    """
    if not callable(fn) or isinstance(fn, Kind):
        raise DependenceError(
            "depends(...)",
            needed="a function of two events",
            came=repr(fn),
            hint="depends(lambda a, b: a.x == b.x)",
        )
    symmetric = Symmetric(fn)
    return Dependence((Clause(repr(symmetric), pairwise=(symmetric,)),))


@dataclass(frozen=True, slots=True)
class Symmetric:
    """A function of two events that raises where its answer depends on their order: that would hide a race."""

    fn: Callable[[Event, Event], bool]

    def __call__(self, a: Event, b: Event) -> bool:
        forth, back = bool(self.fn(a, b)), bool(self.fn(b, a))
        if forth != back:
            raise DependenceError(
                repr(self),
                needed="a symmetric relation",
                came=f"depends({a}, {b}) is {forth}, the other way round {back}",
                hint="a function that gives the same answer for (a, b) and (b, a)",
            )
        return forth

    def __repr__(self) -> str:
        return f"depends({getattr(self.fn, '__name__', repr(self.fn))})"


def _selection(which: Selection, where: str) -> tuple[Select, str]:
    if isinstance(which, Kind):
        return Select(frozenset({which})), which.name
    if callable(which):
        return Select(tests=(which,)), getattr(which, "__name__", repr(which))
    kinds = frozenset(which) if isinstance(which, Iterable) else frozenset[Any]()
    if not kinds or not all(isinstance(kind, Kind) for kind in kinds):
        raise DependenceError(
            f"{where}(...)",
            needed="a Kind, several Kinds, or a predicate on events",
            came=repr(which),
            hint=f"{where}(EndOfDay) or {where}(lambda e: e.x > 0)",
        )
    return Select(kinds), "{" + _names(kinds) + "}"


def _require_dependence(other: object, where: str) -> None:
    if not isinstance(other, Dependence):
        raise DependenceError(
            where,
            needed="a dependence or a schema",
            came=repr(other),
            hint="same('taxi_id'), or barrier(...) of a kind",
        )


def _names(kinds: Iterable[Kind]) -> str:
    return ", ".join(sorted(kind.name for kind in kinds)) or "no kind"


def _bracketed(text: str) -> str:
    return f"({text})" if " | " in text else text


# -- the index ---------------------------------------------------------------------------------------------------


class Frontier:
    """The heights of the events so far, such that the highest one that a new event depends on is found at once.

    `highest_below(event)` is the largest height among the events added so far that it depends on (0 if there is none);
    `add(event, height)` adds it. Each (clause, key) has to remember one number for either side, the largest.
    """

    def __init__(self, dependence: Dependence) -> None:
        self._dependence = dependence
        self._sides: list[tuple[dict[Hashable, Any], dict[Hashable, Any]]] = []
        for clause in dependence.clauses:
            left: dict[Hashable, Any] = {}
            # One book for both sides where they select alike: half the work for `same` and `ordered`.
            self._sides.append((left, left if clause.left == clause.right else {}))
        self._rules: dict[Kind, list[_Rule]] = {}

    def highest_below(self, event: Event) -> float:
        """The largest height of an event so far that this one depends on; 0 if there is none."""
        highest = 0.0
        for rule in self._rules_of(event):
            key = rule.key(event)
            if rule.left is None or rule.left(event):
                highest = max(highest, rule.look(rule.right_book, key, event))
            if rule.right_book is not rule.left_book and (rule.right is None or rule.right(event)):
                highest = max(highest, rule.look(rule.left_book, key, event))
        return highest

    def add(self, event: Event, height: float) -> None:
        """Let it be among the events so far."""
        for rule in self._rules_of(event):
            key = rule.key(event)
            if rule.left is None or rule.left(event):
                rule.note(rule.left_book, key, event, height)
            if rule.right_book is not rule.left_book and (rule.right is None or rule.right(event)):
                rule.note(rule.right_book, key, event, height)

    def place(self, event: Event, step: float) -> float:
        """Add the event a step above the highest that it depends on, and return its height."""
        rules = self._rules_of(event)
        if not rules:
            return step
        rule = rules[0]
        if rule.is_chain and len(rules) == 1:  # one queue, or one queue for each key: most streams are
            key = rule.key(event)
            height = rule.left_book[key] = rule.left_book.get(key, 0.0) + step
            return cast(float, height)
        height = self.highest_below(event) + step
        self.add(event, height)
        return height

    def _rules_of(self, event: Event) -> list[_Rule]:
        """What each clause means for events of this kind, worked out when the kind is first seen."""
        try:
            return self._rules[event[0]]
        except KeyError:
            self._dependence.require_known(event)
            rules = self._rules[event[0]] = list(self._make_rules(event[0]))
            return rules

    def _make_rules(self, kind: Kind) -> Iterator[_Rule]:
        for clause, (left_book, right_book) in zip(self._dependence.clauses, self._sides, strict=True):
            left, right = _side(clause.left, kind), _side(clause.right, kind)
            if left is _never and right is _never:
                continue
            key = _lazy_key(kind, clause) if left and right else key_getter(kind, clause)
            is_chain = left_book is right_book and left is None and not clause.pairwise
            yield _Rule(key, left, right, left_book, right_book, clause.pairwise, is_chain)


def _never(_: Event) -> bool:
    return False


def _side(select: Select, kind: Kind) -> Predicate | None:
    """What is left to test on an event whose kind is known; None for nothing."""
    if select.kinds is not None and kind not in select.kinds:
        return _never
    return Select(tests=select.tests) if select.tests else None


def _lazy_key(kind: Kind, clause: Clause) -> Callable[[Event], Hashable]:
    """The key of events that may or may not be selected: a kind without the key field is wrong only if selected."""

    def key(event: Event) -> Hashable:
        if clause.left(event) or clause.right(event):
            return key_getter(kind, clause)(event)
        return None

    return key


@dataclass(frozen=True, slots=True)
class _Rule:
    """One clause as it concerns one kind."""

    key: Callable[[Event], Hashable]
    left: Predicate | None
    right: Predicate | None
    left_book: dict[Hashable, Any]
    right_book: dict[Hashable, Any]
    pairwise: tuple[Callable[[Event, Event], bool], ...]
    is_chain: bool
    """Whether it relates every two of these events that have the same key."""

    def look(self, book: dict[Hashable, Any], key: Hashable, event: Event) -> float:
        if not self.pairwise:
            return book.get(key, 0.0)  # type: ignore[no-any-return]
        # Highest first: the first event that it depends on is the answer.
        for height, earlier in reversed(book.get(key, ())):
            if all(test(earlier, event) for test in self.pairwise):
                return height  # type: ignore[no-any-return]
        return 0.0

    def note(self, book: dict[Hashable, Any], key: Hashable, event: Event, height: float) -> None:
        if self.pairwise:
            bisect.insort(book.setdefault(key, []), (height, event), key=operator.itemgetter(0))
        elif height > book.get(key, 0.0):
            book[key] = height
