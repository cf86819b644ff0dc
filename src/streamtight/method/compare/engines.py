"""The hot loop of the matcher: one engine for each shape that a dependence can have.

All of them decide the same thing (DiffStream, section 4.2). Both streams have *unmatched* events. For a new event x of
one side, take the oldest unmatched event y of the other side that is equal to x or dependent on it:

    y is equal to x       both are matched: forget y
    y depends on x        no continuation can make the streams equivalent: refuted
    there is none         x is unmatched too

No order has to be kept inside a side: were x blocked by an unmatched x' of its own side while an equal y waits, then x'
would depend on y as well, and one of them would have refuted the other when it came.

What differs is how y is found without looking at all that is unmatched. A relation is a union of clauses, and `plan`
takes it apart from the outside: an event that is ordered with everything starts a new epoch, a key that all clauses
share splits the stream, kinds that no clause connects go side by side. What is left is a bag, a queue, a queue for
each key, or, if nothing simpler fits, an index of every clause.

An engine is a pair of functions over shared state, not a class: they are called for every event, and reading a variable
of the enclosing function is the cheapest that Python has.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import operator
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamtight.errors import DependenceError
from streamtight.stream.dependence import ANY, Clause, Earlier, Select, key_getter
from streamtight.stream.event import Event, Kind

Offer = Callable[[Event], bool]
Scope = frozenset[Kind] | None
"""The kinds that can reach an engine; None for any."""

_EMPTY_QUEUES = 4_096  # so many, and as many as are not empty, may be kept for keys that come again
_EMPTY_ENGINES = 256


class Engine(NamedTuple):
    """What a shape of relation needs: offer an event of either side, and tell what is unmatched."""

    offers: tuple[Offer, Offer]
    """For the left side and for the right one: take this event; False if that refutes."""
    settles: tuple[Offer, Offer]
    """The same for an event that may not wait: it finds its match at once, or refutes."""
    holds: Callable[[int], bool]
    """Has this side unmatched events?"""
    unmatched: Callable[[int], Iterator[tuple[int, Event]]]
    """Those of this side, with their positions; in no particular order."""


def _engine(
    of_side: Callable[[int, bool], Offer],
    holds: Callable[[int], bool],
    unmatched: Callable[[int], Iterator[tuple[int, Event]]],
) -> Engine:
    """The engine whose offers this makes, for a side and for whether an event may wait."""
    offers, settles = ((of_side(0, may_wait), of_side(1, may_wait)) for may_wait in (True, False))
    return Engine(offers, settles, holds, unmatched)


class Desk:
    """What the engines of one matcher share: the positions, the kinds that were seen, and the refutation."""

    def __init__(self, require_known: Callable[[Event], None], starts: Sequence[Iterator[int]]) -> None:
        self.positions = (starts[0], starts[1])
        """Of either side, the position of the event that comes next: to be read with next()."""
        self.refuted_by: tuple[int, Event, int] | None = None
        """The side, the event and its position."""
        self._require_known = require_known
        self._tables: list[tuple[dict[type[Event], Any], Callable[[Kind], Any]]] = []

    def table(self, of_kind: Callable[[Kind], Any]) -> dict[type[Event], Any]:
        """What an engine has to know about each kind, worked out when the kind is first seen.

        It is looked up by the class of an event, since every kind has its own: that is quicker than to read the kind.
        It is empty from the refutation on, so that every event then takes the slow way to `admits`: the engines need
        no test of their own for that.
        """
        made: dict[type[Event], Any] = {}
        self._tables.append((made, of_kind))
        return made

    def admits(self, event: Event) -> bool:
        """Learn the kind of this event; False if the streams were refuted before. Raises if it is no event of ours."""
        if self.refuted_by is not None:
            return False
        self._require_known(event)
        for table, of_kind in self._tables:
            table[type(event)] = of_kind(event.kind)
        return True

    def refute(self, side: int, event: Event, position: int) -> bool:
        """This event cannot be matched, nor wait. Always False, to be returned."""
        self.refuted_by = (side, event, position)
        for table, _ in self._tables:
            table.clear()
        return False


# -- which engine -----------------------------------------------------------------------------------------------------

Make = Callable[[], Engine]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a relation is matched."""

    way: str
    """In words: "bag", "total", "keyed", "epochs", "split", "side by side", "index" or "scan"."""
    make: Make
    key: tuple[str, ...] = ()
    inner: tuple[Plan, ...] = ()

    def __str__(self) -> str:
        inner = ", ".join(map(str, self.inner))
        return f"{self.way}{' by ' + ', '.join(self.key) if self.key else ''}{f'({inner})' if inner else ''}"


def plan(desk: Desk, clauses: Sequence[Clause], scope: Scope) -> Plan:
    """The best engine for the union of these clauses, on events of these kinds, that are equal if all fields are."""
    if not clauses:
        return Plan("bag", _bag(desk))
    for clause in clauses:
        marks = None if clause.key or clause.pairwise else _marks(clause, scope)
        if marks is not None:
            if _covers(marks, scope):
                return Plan("total", _total(desk))
            rest = [one for one in clauses if one is not clause and _concerns_others(one, marks)]
            inside = scope - marks.kinds if scope and marks.kinds and not marks.tests else scope
            inner = plan(desk, rest, inside)
            return Plan("epochs", _epochs(desk, marks, inner.make), inner=(inner,))
    parts = _components(clauses, scope)
    if parts is not None:
        plans = [(kinds, plan(desk, some, kinds)) for kinds, some in parts]
        return Plan("side by side", _side_by_side(desk, plans), inner=tuple(one for _, one in plans))
    shared = tuple(name for name in clauses[0].key if all(name in clause.key for clause in clauses))
    if shared and _all_have(shared, clauses, scope):
        rest = [
            Clause(c.text, tuple(n for n in c.key if n not in shared), c.left, c.right, c.pairwise) for c in clauses
        ]
        inner = plan(desk, rest, scope)
        if inner.way == "total":
            return Plan("keyed", _keyed(desk, shared), shared)
        return Plan("split", _split(desk, shared, inner.make), shared, (inner,))
    if all(can_be_indexed(clause, clauses) for clause in clauses):
        return Plan("index", index(desk, clauses, None))
    return Plan("scan", scan(desk, clauses, None))


def _covers(select: Select, scope: Scope) -> bool:
    """Does it select every event that can come here?"""
    return not select.tests and (select.kinds is None or (scope is not None and scope <= select.kinds))


def _marks(clause: Clause, scope: Scope) -> Select | None:
    """The events that this clause orders with all others, if it is such a clause."""
    if _covers(clause.right, scope):
        return clause.left
    return clause.right if _covers(clause.left, scope) else None


def _concerns_others(clause: Clause, marks: Select) -> bool:
    """Can it relate two events that are no marks?"""
    if marks.tests or marks.kinds is None:
        return True
    return all(side.kinds is None or side.kinds - marks.kinds for side in (clause.left, clause.right))


def _all_have(key: tuple[str, ...], clauses: Sequence[Clause], scope: Scope) -> bool:
    """Has every event that can come here these fields? A clause that speaks of all events requires them."""
    if scope is not None:
        return all(name in kind.fields for kind in scope for name in key)
    return any(_marks(clause, scope) is not None for clause in clauses)


def _components(clauses: Sequence[Clause], scope: Scope) -> list[tuple[Scope, list[Clause]]] | None:
    """Clauses that share no kind, and the kinds that are in none, each for itself; None if all hang together."""
    groups: list[tuple[frozenset[Kind], list[Clause]]] = []
    for clause in clauses:
        if clause.left.kinds is None or clause.right.kinds is None:
            return None
        kinds, members = clause.left.kinds | clause.right.kinds, [clause]
        for group in [group for group in groups if group[0] & kinds]:
            groups.remove(group)
            kinds, members = kinds | group[0], group[1] + members
        groups.append((kinds, members))
    if len(groups) == 1 and scope is not None and scope <= groups[0][0]:
        return None
    # Kinds that no clause speaks of; if it is not known which there are, whatever comes.
    loose = None if scope is None else scope.difference(*(kinds for kinds, _ in groups))
    return [*groups, (loose, [])]


# -- bag, queue, queue for each key -----------------------------------------------------------------------------------


def _bag(desk: Desk) -> Make:
    known = desk.table(lambda kind: True)

    def make() -> Engine:
        # Each event that waits with its position, or with a deque of positions if it waits more than once.
        waiting: tuple[dict[Event, Any], dict[Event, Any]] = ({}, {})

        def of_side(side: int, may_wait: bool) -> Offer:
            mine, others, positions = waiting[side], waiting[1 - side], desk.positions[side]

            def offer(event: Event) -> bool:
                try:
                    known[type(event)]
                except KeyError:
                    return desk.admits(event) and offer(event)
                position = next(positions)
                found = others.pop(event, None)
                if found is None:
                    if not may_wait:
                        return desk.refute(side, event, position)
                    first = mine.setdefault(event, position)
                    if first is not position:
                        if first.__class__ is deque:
                            first.append(position)
                        else:
                            mine[event] = deque((first, position))
                elif found.__class__ is deque:
                    found.popleft()
                    others[event] = found if len(found) > 1 else found[0]
                return True

            return offer

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            for event, positions in waiting[side].items():
                for position in positions if positions.__class__ is deque else (positions,):
                    yield position, event

        return _engine(of_side, lambda side: bool(waiting[side]), unmatched)

    return make


def _total(desk: Desk) -> Make:
    known = desk.table(lambda kind: True)

    def make() -> Engine:
        waiting: tuple[deque[tuple[Event, int]], ...] = (deque(), deque())  # one of them is always empty

        def of_side(side: int, may_wait: bool) -> Offer:
            mine, others, positions = waiting[side], waiting[1 - side], desk.positions[side]

            def offer(event: Event) -> bool:
                try:
                    known[type(event)]
                except KeyError:
                    return desk.admits(event) and offer(event)
                position = next(positions)
                if not others and may_wait:
                    mine.append((event, position))
                    return True
                if others and others[0][0] == event:
                    others.popleft()
                    return True
                return desk.refute(side, event, position)

            return offer

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            return ((position, event) for event, position in waiting[side])

        return _engine(of_side, lambda side: bool(waiting[side]), unmatched)

    return make


def _keyed(desk: Desk, key: tuple[str, ...]) -> Make:
    keys = desk.table(_getter(key))

    def make() -> Engine:
        # For each key what waits: event, position, event, position, and so on. A queue that has run empty stays for a
        # while, since most keys come again.
        waiting: tuple[dict[Hashable, deque[Any]], dict[Hashable, deque[Any]]] = ({}, {})
        collects = (_collector(waiting[0], _EMPTY_QUEUES), _collector(waiting[1], _EMPTY_QUEUES))

        def of_side(side: int, may_wait: bool) -> Offer:
            mine, others, positions = waiting[side], waiting[1 - side], desk.positions[side]
            collect = collects[side]

            def offer(event: Event) -> bool:
                try:
                    key = keys[type(event)](event)
                except KeyError:
                    return desk.admits(event) and offer(event)
                position = next(positions)
                queue = others.get(key)
                if queue:
                    if queue[0] == event:
                        queue.popleft()
                        queue.popleft()
                        return True
                    return desk.refute(side, event, position)
                if not may_wait:
                    return desk.refute(side, event, position)
                queue = mine.get(key)
                if queue is None:
                    mine[key] = deque((event, position))
                    collect()
                else:
                    queue.append(event)
                    queue.append(position)
                return True

            return offer

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            for queue in waiting[side].values():
                places = iter(queue)
                for event in places:
                    yield next(places), event

        return _engine(of_side, lambda side: any(waiting[side].values()), unmatched)

    return make


def _collector(
    found: dict[Hashable, Any], spare: int, is_empty: Callable[[Any], bool] = operator.not_
) -> Callable[[], None]:
    """A function that removes the empty ones when there are more than twice as many as were not empty, and some."""
    most = spare

    def collect() -> None:
        nonlocal most
        if len(found) > most:
            for key in [key for key, one in found.items() if is_empty(one)]:
                del found[key]
            most = 2 * len(found) + spare

    return collect


def _getter(key: tuple[str, ...]) -> Callable[[Kind], Callable[[Event], Hashable] | None]:
    """Reads the key off events of a kind; None for kinds that never come here."""
    clause = Clause("", key)
    return lambda kind: key_getter(kind, clause) if all(name in kind.fields for name in key) else None


# -- marks, keys and kinds around them --------------------------------------------------------------------------------


def _epochs(desk: Desk, marks: Select, make_inner: Make) -> Make:
    """Events that are ordered with all others cut the stream into epochs, and each epoch has an engine of its own.

    The side that is ahead has marks that the other has not reached. What the other side brings meanwhile belongs to an
    epoch that is over, so it must find its match there at once: it may not come after the mark.
    """
    is_mark = desk.table(lambda kind: _decided(marks, kind))

    def make() -> Engine:
        ended: deque[tuple[Engine, Event, int]] = (
            deque()
        )  # epochs of the side that is ahead, with the marks that end them
        current = make_inner()
        ahead = -1  # the side that is ahead; -1 if both are in the same epoch

        def of_side(side: int, may_wait: bool) -> Offer:
            other, positions = 1 - side, desk.positions[side]

            def offer(event: Event) -> bool:
                try:
                    mark = is_mark[type(event)]
                except KeyError:
                    return desk.admits(event) and offer(event)
                if mark is not False and (mark is True or mark(event)):
                    return offer_mark(event)
                if ahead == other:
                    return ended[0][0].settles[side](event)
                return current.offers[side](event) if may_wait else current.settles[side](event)

            def offer_mark(event: Event) -> bool:
                nonlocal ahead, current
                position = next(positions)
                if ahead == other:
                    engine, waiting, _ = ended[0]
                    if waiting != event or engine.holds(other):
                        return desk.refute(side, event, position)
                    ended.popleft()
                    if not ended:
                        ahead = -1
                    return True
                if current.holds(other) or not may_wait:
                    return desk.refute(side, event, position)
                ended.append((current, event, position))
                current = make_inner()
                ahead = side
                return True

            return offer

        def holds(side: int) -> bool:
            return ahead == side or current.holds(side)

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            for engine, event, position in ended:
                yield from engine.unmatched(side)
                if ahead == side:
                    yield position, event
            yield from current.unmatched(side)

        return _engine(of_side, holds, unmatched)

    return make


def _decided(select: Select, kind: Kind) -> bool | Select:
    """Whether it selects events of this kind, or what it depends on."""
    if select.kinds is not None and kind not in select.kinds:
        return False
    return Select(tests=select.tests) if select.tests else True


def _split(desk: Desk, key: tuple[str, ...], make_inner: Make) -> Make:
    keys = desk.table(_getter(key))

    def make() -> Engine:
        engines: dict[Hashable, Engine] = {}  # of the keys that have something unmatched, and some others
        collect = _collector(engines, _EMPTY_ENGINES, lambda engine: not engine.holds(0) and not engine.holds(1))

        def of_side(side: int, may_wait: bool) -> Offer:
            def offer(event: Event) -> bool:
                try:
                    key = keys[type(event)](event)
                except KeyError:
                    return desk.admits(event) and offer(event)
                engine = engines.get(key)
                if engine is None:
                    collect()  # before: the new one is empty
                    engine = engines[key] = make_inner()
                return (engine.offers if may_wait else engine.settles)[side](event)

            return offer

        def holds(side: int) -> bool:
            return any(engine.holds(side) for engine in engines.values())

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            return itertools.chain.from_iterable(engine.unmatched(side) for engine in engines.values())

        return _engine(of_side, holds, unmatched)

    return make


def _side_by_side(desk: Desk, plans: Sequence[tuple[Scope, Plan]]) -> Make:
    """Kinds that are not ordered with each other."""

    def number_of(kind: Kind) -> int:
        return next((number for number, (kinds, _) in enumerate(plans) if kinds is None or kind in kinds), -1)

    numbers = desk.table(number_of)

    def make() -> Engine:
        engines = [one.make() for _, one in plans]

        def of_side(side: int, may_wait: bool) -> Offer:
            offers = [(engine.offers if may_wait else engine.settles)[side] for engine in engines]

            def offer(event: Event) -> bool:
                try:
                    number = numbers[type(event)]
                except KeyError:
                    return desk.admits(event) and offer(event)
                return offers[number](event)  # type: ignore[no-any-return]

            return offer

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            return itertools.chain.from_iterable(engine.unmatched(side) for engine in engines)

        return _engine(of_side, lambda side: any(engine.holds(side) for engine in engines), unmatched)

    return make


# -- every clause has an index ----------------------------------------------------------------------------------------


class _Role(NamedTuple):
    """What an event is for one clause."""

    book: _Book
    key: Hashable
    is_left: bool
    is_right: bool
    time: Any
    """If the clause looks at times; None also for NaN, which is before nothing either."""


class _Entry:
    """An unmatched event, and what the clauses that speak of it know of it."""

    __slots__ = ("event", "late_for", "mark", "matched", "pending", "position", "roles")

    def __init__(self, event: Event, position: int, roles: list[_Role]) -> None:
        self.event = event
        self.position = position
        self.roles = roles
        self.matched = False
        self.late_for = 0
        """The position of the last mark before it that has a later time."""
        self.pending = 0
        """Of a mark: how many unmatched events of earlier times came before it, and not before an earlier such mark."""
        self.mark: _Entry | None = None
        """Of another event: the mark that counts it as pending."""


def index(desk: Desk, clauses: Sequence[Clause], canonical: Callable[[Event], Hashable] | None) -> Make:
    """Any union of clauses, and any equality that has a canonical value."""
    kinds = desk.table(lambda kind: list(_parts_of(kind, clauses)))

    def make() -> Engine:
        # By canonical value what waits: an entry, or a deque of these.
        waiting: tuple[dict[Hashable, Any], dict[Hashable, Any]] = ({}, {})
        books = [_TimeBook() if _time_of(clause) else _Book() for clause in clauses]

        def of_side(side: int, may_wait: bool) -> Offer:
            mine, others, positions, other = waiting[side], waiting[1 - side], desk.positions[side], 1 - side

            def offer(event: Event) -> bool:
                try:
                    parts = kinds[type(event)]
                except KeyError:
                    return desk.admits(event) and offer(event)
                roles = []
                for number, key, left, right, time in parts:
                    is_left = left if left.__class__ is bool else left(event)
                    is_right = right if right.__class__ is bool else right(event)
                    if is_left or is_right:
                        when = None if time is None else time(event)
                        roles.append(
                            _Role(books[number], key(event), is_left, is_right, when if when == when else None)
                        )
                value = event if canonical is None else canonical(event)
                position = next(positions)
                match = found = others.get(value)
                if found.__class__ is deque:
                    match = found[0]
                for role in roles:
                    if role.book.blocks(other, role, match):
                        return desk.refute(side, event, position)
                if match is not None:
                    if canonical is not None and roles != match.roles:
                        raise _treats_equals_apart(event, roles, match)
                    if found.__class__ is not deque:
                        del others[value]
                    else:
                        others[value].popleft()
                        if not found:
                            del others[value]
                    match.matched = True
                    for role in match.roles:
                        role.book.remove(other, role, match)
                    return True
                if not may_wait:
                    return desk.refute(side, event, position)
                entry = _Entry(event, position, roles)
                first = mine.setdefault(value, entry)
                if first is not entry:
                    if first.__class__ is deque:
                        first.append(entry)
                    else:
                        mine[value] = deque((first, entry))
                for role in roles:
                    role.book.add(side, role, entry)
                return True

            return offer

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            for found in waiting[side].values():
                for entry in found if found.__class__ is deque else (found,):
                    yield entry.position, entry.event

        return _engine(of_side, lambda side: bool(waiting[side]), unmatched)

    return make


def _treats_equals_apart(event: Event, roles: list[_Role], match: _Entry) -> DependenceError:
    return DependenceError(
        "upto=",
        needed="a relation that treats equal events alike (if x depends on y, so does every x' that is equal to x)",
        came=f"{match.event} and {event} are equal, but it orders them with other events: "
        f"{_spoken(match.roles)} and {_spoken(roles)}",
        hint="a relation that reads only what the equality compares",
    )


def _spoken(roles: list[_Role]) -> str:
    return ", ".join(repr(part) for role in roles for part in (role.key, role.time) if part is not None) or "none"


def can_be_indexed(clause: Clause, clauses: Sequence[Clause]) -> bool:
    """A clause without pairwise tests; or that of a punctuation, if the marks themselves are in one order."""
    if not clause.pairwise:
        return True
    if _time_of(clause) is None:
        return False
    in_order = (clause.key, clause.left, clause.left, ())
    return any((c.key, c.left, c.right, c.pairwise) == in_order for c in clauses)


def _time_of(clause: Clause) -> str | None:
    """The field that a punctuation's clause compares."""
    test = clause.pairwise[0] if len(clause.pairwise) == 1 else None
    return test.time if isinstance(test, Earlier) and test.marks == clause.left else None


def _parts_of(kind: Kind, clauses: Sequence[Clause]) -> Iterator[tuple[int, Any, bool | Select, bool | Select, Any]]:
    """For each clause that may speak of events of this kind: its number, and how to read off such an event its role."""
    for number, clause in enumerate(clauses):
        left, right = _decided(clause.left, kind), _decided(clause.right, kind)
        if left is not False or right is not False:
            time = _time_of(clause)
            yield number, _key_or_error(kind, clause), left, right, time and _key_or_error(kind, Clause("", (time,)))


def _key_or_error(kind: Kind, clause: Clause) -> Callable[[Event], Hashable]:
    """Reads the key. A kind that lacks a field of it is wrong only if the clause selects an event of this kind."""
    if all(name in kind.fields for name in clause.key):
        return key_getter(kind, clause)
    return lambda event: key_getter(kind, clause)(event)


class _Book:
    """The unmatched events of either side that a clause speaks of, by key, in order of arrival."""

    def __init__(self) -> None:
        # For each side, those on the clause's left and those on its right.
        self._queues: list[tuple[dict[Hashable, OrderedDict[int, _Entry]], ...]] = [({}, {}), ({}, {})]

    def blocks(self, side: int, role: _Role, match: _Entry | None) -> bool:
        """Has this side an event that the clause orders with such a one, and that came before the match?"""
        lefts, rights = self._queues[side]
        for looks, queues in ((role.is_left, rights), (role.is_right, lefts)):
            if looks and role.key in queues and (match is None or next(iter(queues[role.key])) < match.position):
                return True
        return False

    def add(self, side: int, role: _Role, entry: _Entry) -> None:
        for is_here, queues in zip((role.is_left, role.is_right), self._queues[side], strict=True):
            if is_here:
                if role.key not in queues:
                    queues[role.key] = OrderedDict()
                queues[role.key][entry.position] = entry

    def remove(self, side: int, role: _Role, entry: _Entry) -> None:
        for is_here, queues in zip((role.is_left, role.is_right), self._queues[side], strict=True):
            if is_here:
                queue = queues[role.key]
                del queue[entry.position]
                if not queue:
                    del queues[role.key]


class _Times:
    """The unmatched marks and the other events of one side and key."""

    __slots__ = ("loose", "marks", "matched_in_heap", "peaks")

    def __init__(self) -> None:
        self.marks: deque[_Entry] = deque()
        self.peaks: deque[tuple[Any, _Entry]] = deque()
        """Those marks that no later mark exceeds in time: their times fall."""
        self.loose: list[tuple[Any, int, _Entry]] = []
        """A heap, by time, of the events that no mark counts as pending; also some that are matched by now."""
        self.matched_in_heap = 0

    def drop_matched(self) -> None:
        """Let no matched event be the first of the heap, and matched ones not be most of it."""
        if 2 * self.matched_in_heap > len(self.loose) + 16:
            self.loose = [one for one in self.loose if not one[2].matched]
            heapq.heapify(self.loose)
            self.matched_in_heap = 0
        while self.loose and self.loose[0][2].matched:
            heapq.heappop(self.loose)
            self.matched_in_heap -= 1


class _TimeBook(_Book):
    """The clause of a punctuation: a mark is ordered with the events whose time is before its own.

    Marks are in one order, so of one side the oldest is matched first. An event that waits is counted by the first mark
    after it that it must precede; the marks after that one come later anyway.
    """

    def __init__(self) -> None:
        super().__init__()
        self._times: tuple[dict[Hashable, _Times], ...] = ({}, {})

    def blocks(self, side: int, role: _Role, match: _Entry | None) -> bool:
        times = self._times[side].get(role.key)
        if times is None or role.time is None:
            return False
        if role.is_left:
            if match is not None:
                return match.pending > 0
            return bool(times.loose) and bool(times.loose[0][0] < role.time)
        if match is not None:
            return bool(times.marks) and match.late_for >= times.marks[0].position
        return bool(times.peaks) and bool(times.peaks[0][0] > role.time)

    def add(self, side: int, role: _Role, entry: _Entry) -> None:
        time = role.time
        if time is None:
            return
        times = self._times[side].get(role.key)
        if times is None:
            times = self._times[side][role.key] = _Times()
        if not role.is_left:
            # The peaks fall in time, so the last one that is later than this event is found by halving.
            later = bisect.bisect_left(times.peaks, True, key=lambda peak: not peak[0] > time)
            entry.late_for = times.peaks[later - 1][1].position if later else 0
            heapq.heappush(times.loose, (time, entry.position, entry))
            return
        while times.loose and times.loose[0][0] < time:
            _, _, other = heapq.heappop(times.loose)
            if other.matched:
                times.matched_in_heap -= 1
            else:
                other.mark = entry
                entry.pending += 1
        while times.peaks and times.peaks[-1][0] <= time:
            times.peaks.pop()
        times.peaks.append((time, entry))
        times.marks.append(entry)

    def remove(self, side: int, role: _Role, entry: _Entry) -> None:
        if role.time is None:
            return
        times = self._times[side][role.key]
        if role.is_left:
            times.marks.popleft()
            if times.peaks[0][1] is entry:
                times.peaks.popleft()
        elif entry.mark is not None:
            entry.mark.pending -= 1
        else:
            times.matched_in_heap += 1
        times.drop_matched()
        if not times.marks and not times.loose:
            del self._times[side][role.key]


# -- anything else ----------------------------------------------------------------------------------------------------


def scan(desk: Desk, clauses: Sequence[Clause], equal: Callable[[Event, Event], bool] | None) -> Make:
    """Any relation and any equality: one plain queue for each side, looked through from the oldest."""
    known = desk.table(lambda kind: True)
    relations = [_relates(clause) for clause in clauses]

    def make() -> Engine:
        waiting: tuple[deque[tuple[Event, int]], ...] = (deque(), deque())

        def of_side(side: int, may_wait: bool) -> Offer:
            mine, others, positions = waiting[side], waiting[1 - side], desk.positions[side]

            def offer(event: Event) -> bool:
                try:
                    known[type(event)]
                except KeyError:
                    return desk.admits(event) and offer(event)
                position = next(positions)
                for place, (other, _) in enumerate(others):
                    if event == other if equal is None else equal(event, other):
                        del others[place]
                        return True
                    for relates in relations:
                        if relates(event, other):
                            return desk.refute(side, event, position)
                if not may_wait:
                    return desk.refute(side, event, position)
                mine.append((event, position))
                return True

            return offer

        def unmatched(side: int) -> Iterator[tuple[int, Event]]:
            return ((position, event) for event, position in waiting[side])

        return _engine(of_side, lambda side: bool(waiting[side]), unmatched)

    return make


def _relates(clause: Clause) -> Callable[[Event, Event], bool]:
    """What says whether it relates two events: its test alone, where there is nothing else to ask."""
    is_bare = clause.left == clause.right == ANY and not clause.key and len(clause.pairwise) == 1
    return clause.pairwise[0] if is_bare else clause.relates
