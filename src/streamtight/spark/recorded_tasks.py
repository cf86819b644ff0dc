"""What the tasks of a comparison of recorded outputs do with their rows, which come as Arrow batches.

Every task ends with notes to the driver, as one cell each: few and small, however many rows it had.
"""

from __future__ import annotations

import operator
import pickle
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Protocol, cast

from pyspark import cloudpickle
from pyspark.sql.types import StructType

from streamtight.errors import StreamtightError
from streamtight.method.compare.matcher import Matcher
from streamtight.spark.rows import Table, arrow_values, is_as_given
from streamtight.stream.dependence import Clause, Dependence, Select, key_getter
from streamtight.stream.equality import Equality
from streamtight.stream.event import Event, FieldType, Kind, trusted_events, without_annotation, without_none

Equal = Equality | Callable[[Event, Event], bool] | None

FEW = 5
"""How many findings a task reports, and how many of the rows that are left over."""
MOST_LOOSE = 1_000
"""So many rows in no order are looked at in pairs, if the relation cannot be told in another way."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a task has to know."""

    kinds: tuple[Kind, ...]
    types: StructType
    upto: Dependence
    equal: Equal
    wanted: tuple[Event, ...] = ()


class Worker(Protocol):
    """What a task does."""

    def take(self, batch: Any) -> None:
        """Look at these rows, an Arrow batch."""

    def told(self) -> Iterable[object]:
        """What there is to say in the end."""


class InTask:
    """Called by Spark with the batches of a partition: the notes of a worker on them."""

    def __init__(self, worker: Callable[[Task], Worker], task: Task) -> None:
        # Packed apart, since the relation may have functions of modules that a task finds only with the driver's path.
        self._packed = cast(Any, cloudpickle).dumps((worker, task))
        self._paths = list(sys.path)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        sys.path += [path for path in self._paths if path not in sys.path]
        make, task = pickle.loads(self._packed)  # noqa: S301 - the driver packed it
        last = None
        try:
            worker = make(task)
            for batch in batches:
                last = batch
                worker.take(batch)
            told = list(worker.told())
        except StreamtightError as error:  # a wrong question; as a note it reaches the user as it is
            told = [error]
        if last is not None and told:
            yield last.from_pydict({"note": [pickle.dumps(note) for note in told]})


@dataclass(frozen=True, slots=True)
class Wants:
    """What tasks are to add to the rows."""

    rounded: tuple[str, ...] = ()
    """Fields of floats: what is compared of them, as v0, v1, ..."""
    tested: tuple[int, ...] = ()
    """Clauses whose tests are functions: the role of a row in each, as t0, t1, ..., by the number of the clause."""
    runs: tuple[int, ...] = ()
    """Clauses without a key: the run within a piece of a file, as u0, u1, ..., and where the piece begins, as start."""

    @property
    def columns(self) -> dict[str, str]:
        """The names and types of what is added."""
        types = {f"v{n}": "double" for n in range(len(self.rounded))} | {f"t{n}": "long" for n in self.tested}
        return types | {f"u{n}": "long" for n in self.runs} | ({"start": "long"} if self.runs else {})


LEFT, RIGHT = 1, 2
"""The roles of a row in a clause, to be added: on its left side, on its right one; 3 is both, 0 is neither."""
BOTH = LEFT + RIGHT


class Adding:
    """Called by Spark with the batches of a partition, which have columns for what is wanted: the same rows with it."""

    def __init__(self, task: Task, wants: Wants) -> None:
        self._packed = cast(Any, cloudpickle).dumps((task, wants))
        self._paths = list(sys.path)

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        sys.path += [path for path in self._paths if path not in sys.path]
        task, wants = pickle.loads(self._packed)  # noqa: S301 - the driver packed it
        add = Adder(task, wants)
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            yield batch.from_pydict({**columns, **add(columns)}, schema=batch.schema)


class Adder:
    """What is wanted, for the rows of one batch after another, in the order of the files."""

    def __init__(self, task: Task, wants: Wants) -> None:
        self._wants = wants
        self._names = task.types.names
        self._events = Events(task)
        clauses = [task.upto.clauses[number] for number in wants.tested]
        self._roles_of = Roles(clauses, task.kinds)
        equal = task.equal
        self._rounding = {name: cast(Equality, equal).rounding(name) or (lambda value: value) for name in wants.rounded}
        self._piece: object = None
        self._place = self._start = 0
        self._last = dict.fromkeys(wants.runs, (0, 0))

    def __call__(self, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
        added: dict[str, list[Any]] = {}
        for number, name in enumerate(self._wants.rounded):
            rounding = self._rounding[name]
            values = (rounding(value) for value in columns[f"c{self._names.index(name)}"].to_pylist())
            added[f"v{number}"] = [None if value is None else float(cast(Any, value)) for value in values]
        if self._wants.tested:
            added.update(self._roles(columns))
        if self._wants.runs:
            added.update(self._runs(columns, added))
        return added

    def _roles(self, columns: Mapping[str, Any]) -> dict[str, list[int]]:
        values = [columns[f"c{place}"] for place in range(len(self._names))]
        bad = columns["bad"].to_pylist()
        has_bad = any(bad)
        if has_bad:  # they are no events; that they are there is told elsewhere
            good = [not is_bad for is_bad in bad]
            values = [column.filter(good) for column in values]
        added = {}
        for number, roles in zip(self._wants.tested, self._roles_of(self._events(values)), strict=True):
            known = iter(roles)
            added[f"t{number}"] = [0 if is_bad else next(known) for is_bad in bad] if has_bad else roles
        return added

    def _runs(self, columns: Mapping[str, Any], added: Mapping[str, list[int]]) -> dict[str, list[int]]:
        pieces = self._pieces(columns)
        runs: dict[str, list[int]] = {}
        for number in self._wants.runs:
            name = f"t{number}"
            run, last = self._last[number]
            found = runs[f"u{number}"] = []
            roles = added[name] if name in added else columns[name].to_pylist()
            for piece in pieces:
                if piece.is_new:
                    run = last = 0
                for role in roles[piece.first : piece.first + piece.rows]:
                    if role and (role == BOTH or role != last):
                        run += 1
                        last = role
                    found.append(run)
            self._last[number] = run, last
        return {**runs, "start": [start for piece in pieces for start in [piece.start] * piece.rows]}

    def _pieces(self, columns: Mapping[str, Any]) -> list[_Piece]:
        """What this batch has of the pieces that Spark splits files into.

        A piece is read from its beginning to its end, and not side by side with another.
        """
        files, blocks, places = (columns[name] for name in ("file", "block", "place"))
        numbers = places.to_pylist()
        if not numbers:
            return []
        if len(files.unique()) == len(blocks.unique()) == 1 and numbers == list(
            range(numbers[0], numbers[0] + len(numbers))
        ):  # as nearly every batch is
            return [self._next_piece((files[0].as_py(), blocks[0].as_py()), numbers[0], 0, len(numbers))]
        pieces = []
        first = 0
        owners = list(zip(files.to_pylist(), blocks.to_pylist(), strict=True))
        for end in range(1, len(numbers) + 1):
            if end == len(numbers) or owners[end] != owners[first] or numbers[end] != numbers[end - 1] + 1:
                pieces.append(self._next_piece(owners[first], numbers[first], first, end - first))
                first = end
        return pieces

    def _next_piece(self, owner: object, place: int, first: int, rows: int) -> _Piece:
        is_new = owner != self._piece or place != self._place + 1
        if is_new:
            self._piece, self._start = owner, place
        self._place = place + rows - 1
        return _Piece(first, rows, self._start, is_new)


class _Piece(NamedTuple):
    """Rows of a batch that are of one piece of a file."""

    first: int
    rows: int
    start: int
    """The place in the file at which the piece begins, maybe in an earlier batch."""
    is_new: bool
    """Does it begin here?"""


class Roles:
    """The roles of events in these clauses. Millions of events are asked, so what can be known before is not asked.

    Tests are called in comprehensions: `map` would take a StopIteration of a test for the end of the events.
    """

    def __init__(self, clauses: Sequence[Clause], kinds: Sequence[Kind]) -> None:
        self._selects: list[Select] = []
        for select in (select for clause in clauses for select in (clause.left, clause.right)):
            if select not in self._selects:
                self._selects.append(select)
        self._sides = [(self._selects.index(clause.left), self._selects.index(clause.right)) for clause in clauses]
        self._kind = kinds[0] if len(kinds) == 1 else None

    def __call__(self, events: Sequence[Event]) -> list[list[int]]:
        """For each clause, the roles of these events. Each test sees an event once, however many clauses have it."""
        selected = [self._selected(select, events) for select in self._selects]
        return [[LEFT * a + RIGHT * b for a, b in zip(selected[i], selected[j], strict=True)] for i, j in self._sides]

    def _selected(self, select: Select, events: Sequence[Event]) -> Sequence[bool]:
        if self._kind is None:
            return list(map(select, events))
        if select.kinds is not None and self._kind not in select.kinds:
            return [False] * len(events)
        if len(select.tests) == 1:
            test = select.tests[0]  # without a call of ours around it
            return [bool(test(event)) for event in events]
        return list(map(select, events)) if select.tests else [True] * len(events)


class Events:
    """Makes events of the columns of a batch."""

    def __init__(self, task: Task) -> None:
        self._table = Table(task.kinds)
        self._types = [column.dataType for column in task.types.fields]
        is_plain = len(task.kinds) == 1 and all(map(is_as_given, self._types))
        self._kind = task.kinds[0] if is_plain else None

    def __call__(self, columns: Sequence[Any]) -> list[Event]:
        values = [arrow_values(column, data_type) for column, data_type in zip(columns, self._types, strict=True)]
        kind = self._kind
        if kind is not None and values and all(map(_is_trusted, kind.fields.values(), columns)):
            return list(trusted_events(kind, values))
        rows = zip(*values, strict=True)
        if kind is None:
            return [self._table.from_row(row) for row in rows]
        events = []
        for row in rows:
            try:
                events.append(kind(*row))
            except StreamtightError:
                events.append(self._table.from_row(row))  # raises, and says more
        return events


_TRUSTED = {
    int: ("int8", "int16", "int32", "int64"),
    float: ("float", "double"),
    str: ("string", "large_string"),
    bool: ("bool",),
    bytes: ("binary", "large_binary"),
    datetime: ("timestamp",),
}
"""The types of Arrow whose values are of these classes: the constructor of a kind would keep them as they are."""


def _is_trusted(declared: FieldType, column: Any) -> bool:
    """Is every value of the column one of a field of this type, as it is? NaN is none: events have one of their own."""
    plain, admits_none = without_none(without_annotation(declared))
    plain = without_annotation(plain)
    if not isinstance(plain, type) or str(column.type).partition("[")[0] not in _TRUSTED.get(plain, ()):
        return False
    missing: int = column.null_count
    if missing and not admits_none:
        return False
    return plain is not float or column.is_null(nan_is_null=True).true_count == missing


# -- matching --------------------------------------------------------------------------------------------------------


class Order(NamedTuple):
    """Two rows that the recordings have in different orders."""

    hash: int
    rank: int
    in_reference: tuple[Event, Event]
    clause: str


class Loose(NamedTuple):
    """Two rows of one recording whose order it does not tell; None for too many to look at."""

    hash: int
    side: int
    pair: tuple[Event, Event] | None


@dataclass(slots=True)
class Found:
    """What the matching of rows has shown; where rows are loose, nothing else is said about their key."""

    seen: list[int] = field(default_factory=lambda: [0, 0])
    bad: int = 0
    orders: list[Order] = field(default_factory=list)
    loose: list[Loose] = field(default_factory=list)
    left_over: list[int] = field(default_factory=lambda: [0, 0])
    examples: tuple[list[Event], list[Event]] = field(default_factory=lambda: ([], []))

    def add(self, other: Found) -> None:
        """Let it be what both have shown."""
        self.bad += other.bad
        self.orders += other.orders
        self.loose += other.loose
        for side in (0, 1):
            self.seen[side] += other.seen[side]
            self.left_over[side] += other.left_over[side]
            self.examples[side].extend(other.examples[side][: FEW - len(self.examples[side])])

    @property
    def nothing(self) -> bool:
        """Whether both sides are the same."""
        return not (self.orders or self.loose or any(self.left_over))


class Judge:
    """Matches the rows of both sides, key by key. The rows of a key come one after another, both sides in turn.

    Columns: the hash of the key, side, rank, group, chain, how often the row comes, its values, and whether it is bad.
    """

    def __init__(self, task: Task) -> None:
        self._task = task
        self._events = Events(task)
        self._found = Found()
        self._watches = [Watch(task.upto, task.equal), Watch(task.upto, task.equal)]
        self._hash: int | None = None
        self._order: Order | None = None
        self._loose: Loose | None = None
        self._renew()

    def _renew(self) -> None:
        self._matcher = Matcher(upto=self._task.upto, equal=self._task.equal)
        self._offers = (self._matcher.left, self._matcher.right)

    def take(self, batch: Any) -> None:
        *about, bad = (batch.columns[place].to_pylist() for place in (0, 1, 2, 3, 4, 5, -1))
        found, offers = self._found, self._offers
        found.bad += sum(bad)
        for hash_, side, rank, group, chain, times, event in zip(
            *about, self._events(batch.columns[6:-1]), strict=True
        ):
            if hash_ != self._hash:
                self._end_key()
                self._hash = hash_
                offers = self._offers
            found.seen[side] += times
            if group is not None and self._loose is None:
                self._watch(side, event, group, chain)
            if self._order is None and self._loose is None:
                for _ in range(times):
                    if not offers[side](event):
                        self._refuted(rank)
                        break

    def _watch(self, side: int, event: Event, group: int, chain: int) -> None:
        try:
            pair = self._watches[side].see(event, group, chain)
        except _TooMany:
            self._loose = Loose(self._hash or 0, side, None)
        else:
            if pair is not None:
                self._loose = Loose(self._hash or 0, side, pair)

    def _refuted(self, rank: int) -> None:
        difference = self._matcher.difference
        if difference is None or difference.came is None:
            raise AssertionError("a refutation has an event")  # pragma: no cover
        came, waits = difference.came.event, difference.against[0].event
        # What came is too early on its side: on the other one, what waits there comes first.
        pair = (waits, came) if difference.came.side == "right" else (came, waits)
        self._order = Order(self._hash or 0, rank, pair, difference.clause or repr(self._task.upto))

    def _end_key(self) -> None:
        """Write down what this key has shown, and be ready for another one."""
        found = self._found
        unmatched = self._matcher.unmatched
        if self._loose is not None:
            found.loose += [self._loose] if len(found.loose) < FEW else []
        elif self._order is not None:
            found.orders.append(self._order)
            found.orders.sort(key=lambda order: (order.rank, order.hash))
            del found.orders[FEW:]
        elif any(unmatched):
            for side in (0, 1):
                found.left_over[side] += len(unmatched[side])
                found.examples[side].extend(unmatched[side][: FEW - len(found.examples[side])])
        if self._loose is not None or self._order is not None or any(unmatched):
            self._renew()
        self._loose = self._order = None
        for watch in self._watches:
            watch.clear()

    def told(self) -> Iterable[object]:
        self._end_key()
        return [self._found]


class _TooMany(Exception):
    """More rows in no order than can be compared with each other."""


_NEW = object()  # a value that no row has had so far
_Kept = tuple[Event, Hashable, int]
"""A row, what it is compared by, and its chain."""


class Watch:
    """Are there two rows that must keep their order, are not equal, and are in no order: of one group, but two chains?

    Of the rows that a clause speaks of, a few are enough to know whether a later row has such a partner among them: at
    most four, since a row asks only for another value in another chain (Bollobás' theorem on pairs of sets). A clause
    with a pairwise test asks for more, and needs all.
    """

    def __init__(self, upto: Dependence, equal: Equal) -> None:
        self._clauses = [(number, clause, clause.left == clause.right) for number, clause in enumerate(upto.clauses)]
        self._value: Callable[[Event], Hashable] = (
            equal.canonical if isinstance(equal, Equality) else lambda event: event
        )
        self._same: Callable[[Any, Any], bool] = operator.eq if equal is None or isinstance(equal, Equality) else equal
        self._group: int | None = None
        self._books: dict[tuple[int, Hashable, bool], list[_Kept]] = {}

    def clear(self) -> None:
        """Forget everything: another key begins."""
        self._group = None

    def see(self, event: Event, group: int, chain: int) -> tuple[Event, Event] | None:
        """An earlier row and this one, if they are such a pair."""
        if group != self._group:
            self._group = group
            self._books = {}
        kept = (event, self._value(event), chain)
        for number, clause, is_alike in self._clauses:
            is_left = clause.left(event)
            is_right = is_left if is_alike else clause.right(event)
            if not (is_left or is_right):
                continue
            key = key_getter(event.kind, clause)(event)
            roles = [True] if is_alike else [role for role, has in ((True, is_left), (False, is_right)) if has]
            for role in roles:
                for other in self._books.get((number, key, role if is_alike else not role), ()):
                    if self._is_partner(other, kept) and all(test(other[0], event) for test in clause.pairwise):
                        return other[0], event
            for role in roles:
                self._keep(self._books.setdefault((number, key, role), []), kept, bool(clause.pairwise))
        return None

    def _is_partner(self, other: _Kept, kept: _Kept) -> bool:
        return other[2] != kept[2] and not self._same(other[1], kept[1])

    def _keep(self, book: list[_Kept], kept: _Kept, all_of_them: bool) -> None:
        if not all_of_them:
            if self._tells_more(book, kept):
                book.append(kept)
        elif not any(other[2] == kept[2] and self._same(other[1], kept[1]) for other in book):
            if len(book) >= MOST_LOOSE:
                raise _TooMany
            book.append(kept)

    def _tells_more(self, book: Sequence[_Kept], kept: _Kept) -> bool:
        """Could a row find a partner in this one and in none of the book? It would have another value and chain."""
        _, value, chain = kept
        values = [other[1] for other in book if not self._same(other[1], value)]
        chains = {other[2] for other in book if other[2] != chain}
        for asked in [_NEW, *values]:
            rest = [other for other in book if asked is _NEW or not self._same(other[1], asked)]
            if not rest or any(all(other[2] == asks_chain for other in rest) for asks_chain in chains):
                return True
        return False


# -- a second way ----------------------------------------------------------------------------------------------------


class Labels:
    """Which of the wanted events an event is equal to."""

    def __init__(self, task: Task) -> None:
        self._wanted = task.wanted
        self._equal = task.equal

    def __call__(self, event: Event) -> list[int]:
        if self._equal is None:
            return [place for place, wanted in enumerate(self._wanted) if event == wanted]
        return [place for place, wanted in enumerate(self._wanted) if self._equal(event, wanted)]


class Counter:
    """Counts the rows of either side that are equal to the wanted ones. Columns: side, and the values."""

    def __init__(self, task: Task) -> None:
        self._events = Events(task)
        self._labels = Labels(task)
        self._counts = [[0, 0] for _ in task.wanted]

    def take(self, batch: Any) -> None:
        for side, event in zip(batch.columns[0].to_pylist(), self._events(batch.columns[1:]), strict=True):
            for label in self._labels(event):
                self._counts[label][side] += 1

    def told(self) -> Iterable[object]:
        return [self._counts]


class Alternation:
    """Do two events alternate differently on the two sides, all others left out? Columns: side, rank, and the values.

    Both sides come in turn, each in its order. Streams that are equivalent are so after all but two events that must
    keep their order were left out, and then they are equal as sequences.
    """

    def __init__(self, task: Task) -> None:
        self._events = Events(task)
        self._labels = Labels(task)
        self._ahead: deque[int] = deque()
        self._ahead_side = 0
        self._differ = False

    def take(self, batch: Any) -> None:
        for side, event in zip(batch.columns[0].to_pylist(), self._events(batch.columns[2:]), strict=True):
            for label in self._labels(event):
                if self._ahead and self._ahead_side != side:
                    self._differ = self._differ or self._ahead.popleft() != label
                else:
                    self._ahead_side = side
                    self._ahead.append(label)

    def told(self) -> Iterable[object]:
        return [self._differ or bool(self._ahead)]
