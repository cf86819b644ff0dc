"""What is done with groups: the summaries that a function of a group asks for, and the relation that has them.

The function is run on a group that notes what is asked of it (`solver/symbolic/groups.py`). What it asked is summed up
for each key, and the function is run again on the sums.

    groupByKey().mapValues(lambda g: sum(g) / len(g))       for each key the total and the count; then their quotient
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamtight.errors import EncodingError, UnsupportedError
from streamtight.method.prove import local
from streamtight.method.prove.draw import some_rows
from streamtight.method.prove.records import (
    Shape,
    at_value,
    classes_in,
    flattened,
    part,
    rebuilt,
    require_same,
    shape_of,
)
from streamtight.method.prove.results import same_rows
from streamtight.method.prove.typed import has_order, known
from streamtight.program.relation import (
    Each,
    Extreme,
    Fold,
    Function,
    Grouped,
    How,
    Matching,
    Place,
    Product,
    Relation,
    Rows,
    Summary,
    Total,
    Union,
    rows_of,
)
from streamtight.solver.ask import Budget
from streamtight.solver.symbolic.admit import Composed, Twin
from streamtight.solver.symbolic.groups import Group, Question, holds_group, is_over_group, with_one_element
from streamtight.solver.symbolic.paths import decide, refuse
from streamtight.solver.symbolic.read import read
from streamtight.solver.terms import Bag, Meaning
from streamtight.solver.values import YES, Maybe, cases, joined, type_of, variable

SECONDS = 5.0
"""How long a function of groups is read."""
_SAMPLES = 40

Steps = tuple[tuple[Function, How], ...]
Sides = tuple[Relation, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups of one RDD, or of two by `cogroup`, and what was done with them so far."""

    sides: Sides
    place: Place
    shapes: tuple[Shape, ...]
    """Where in the pairs of each side there are records."""
    steps: Steps = ()

    def then(self, function: Function, how: How) -> Groups | tuple[Relation, Shape]:
        """Groups, as long as there is a group in what the function gives; else the rows, and their records."""
        after = dataclasses.replace(self, steps=(*self.steps, (function, how)))
        noted = _noted(after)
        return after if noted.holds_group else (after.relation(noted), noted.shape)

    @property
    def classes(self) -> tuple[type, ...]:
        """The classes of the records."""
        return tuple(cls for shape in self.shapes for cls in classes_in(shape))

    @property
    def functions(self) -> tuple[Function, ...]:
        """The functions that are applied, one after the other."""
        return tuple(function for function, _ in self.steps)

    def composed(self, make: Callable[..., Function], besides: tuple[Any, ...] = ()) -> Composed:
        """A function that is made of all these functions. The classes of records are admitted before them."""
        count = len(self.classes)
        return Composed(
            lambda twin, *parts: make(twin, *parts[count:]), *self.classes, *self.functions, besides=besides
        )

    def relation(self, noted: _Noted) -> Relation:
        """The rows that the functions give."""
        return _relation(self, noted)

    def pair(self, key: Any, groups: Any) -> Any:
        """What the first function is given."""
        return rebuilt(key, part(self.shapes[0], 0)), groups

    def element(self, side: int, value: Any) -> Any:
        """A value of a side, as functions see it."""
        return rebuilt(value, part(self.shapes[side], 1))


@dataclass(slots=True, eq=False)
class _Noted:
    """What was asked of the groups of each side, in the order in which it was first asked."""

    questions: tuple[dict[object, Question], ...]
    types: list[Any]
    """The type of the rows of each side."""
    holds_group: bool = False
    goes_through: set[int | None] = field(default_factory=set)
    """The sides whose elements the last function gives one by one; None if it gives something else."""

    elements: tuple[Function, ...] = ()
    """For each side, what gives the value of a pair."""
    shape: Shape = None
    """Where in the rows there are records."""

    def summaries(self, side: int) -> tuple[Summary, ...]:
        """What has to be summed up."""
        return tuple(_summary(question, self.elements[side]) for question in self.questions[side].values())

    @property
    def only_sums(self) -> bool:
        """Whether nothing but sums is asked, which have a value without rows too."""
        found = [question for side in self.questions for question in side.values()]
        return all(question.kind in _SUMS and not question.once for question in found)


_SUMS = ("sum", "count", "any", "all")


def _noted(groups: Groups) -> _Noted:
    """What the functions ask."""
    hows = [how for _, how in groups.steps]

    def find() -> _Noted:
        noted = _Notes(groups).noted()
        if not noted.holds_group:
            _compare(groups, noted)
        return noted

    return known(f"groups: {hows} {groups.shapes}", (groups.sides, groups.functions, groups.classes), find)


# -- what is asked ---------------------------------------------------------------------------------------------------


class _Notes:
    """Runs the functions on groups that note what is asked of them."""

    def __init__(self, groups: Groups) -> None:
        self.groups = groups
        self.budget = Budget(SECONDS)
        self.meaning = Meaning(self.budget)
        self.elements = tuple(at_value(part(shape, 1)) for shape in groups.shapes)
        self.bags = [self._pairs(self.meaning.bag(side)) for side in groups.sides]
        self.asked: tuple[dict[object, tuple[Question, Any]], ...] = tuple({} for _ in groups.sides)
        self.holds_group = False
        self.goes_through: set[int | None] = set()
        self.shapes: list[Shape] = []

    def noted(self) -> _Noted:
        key_type = joined(type_of(term.row[0]) for bag in self.bags for term in bag.terms)
        for present in _situations(len(self.bags)):
            reading = self.groups.composed(self._on_notes(present))
            for _, (key,) in cases((variable(key_type, "?key"),)):
                read(reading, [key], budget=self.budget)
        questions = tuple(
            {key: question for key, (question, _) in asked.items() if question.kind != "compare"}
            for asked in self.asked
        )
        types = [bag.type for bag in self.bags]
        shape = next(iter(self.shapes), None)
        for other in self.shapes:
            require_same(shape, other, self.groups.place)
        return _Noted(questions, types, self.holds_group, self.goes_through, self.elements, shape)

    def _pairs(self, bag: Bag) -> Bag:
        for term in bag.terms:
            if not isinstance(term.row, tuple) or len(term.row) != 2:
                raise UnsupportedError(
                    str(self.groups.place),
                    needed="pairs of a key and a value",
                    came=f"rows like {type_of(term.row)!r}",
                    hint="map(lambda row: (key, value)) before it",
                )
        return bag

    def _on_notes(self, present: Sequence[bool]) -> Callable[..., Function]:
        def make(twin: Twin, *functions: Function) -> Function:
            def called(key: Any) -> None:
                asks = [self._asks(side) if is_there else None for side, is_there in enumerate(present)]
                results = _chained(functions, self.groups.steps, self.groups.pair(key, _groups(asks, twin)))
                through = [is_over_group(result) for result in results]
                if self.groups.steps[-1][1] is How.FLAT_MAP:
                    self.goes_through |= {None if group is None else group.side for group in through}
                    results = [
                        row
                        for result, group in zip(results, through, strict=True)
                        for row in (result if group is None else with_one_element(result, self._element(group.side)))
                    ]
                if any(map(holds_group, results)):
                    self.holds_group = True
                else:
                    self.shapes += map(shape_of, results)

            return called

        return make

    def _element(self, side: int) -> Any:
        type_ = joined(type_of(term.row[1]) for term in self.bags[side].terms)
        return self.groups.element(side, _chosen(variable(type_, f"?{side}")))

    def _asks(self, side: int) -> Callable[[Question], Any]:
        def ask(question: Question) -> Any:
            asked = self.asked[side]
            if question.key not in asked:
                asked[question.key] = (question, self._type(question, side))
            type_ = asked[question.key][1]
            place = list(asked).index(question.key)
            return _chosen(variable(type_, f"?{side}.{place}"))

        return ask

    def _type(self, question: Question, side: int) -> Any:
        """The type of the answer. Refuses what has no answer for some rows."""
        bag, element = self.bags[side], self.elements[side]
        name = f"{question.kind}() of a group"
        if question.kind == "compare":
            self._require_order(self._results(_one_value(question.steps, element), bag, name), "sorted() of a group")
            return type(None)
        summary = _summary(question, element)
        match summary:
            case Total(number, once_for):
                if once_for is not None:
                    self._results(once_for, bag, name)
                return joined(self._results(number, bag, name)) if bag.terms else int
            case Extreme(value):
                types = self._results(value, bag, name)
                self._require_order(types, name)
                return joined(types)
            case Fold():
                values = joined(self._results(summary.value or element, bag, name))
                state = values if summary.needs_row else type_of(summary.start)
                rows = (variable(state, "?state"), variable(values, "?value"))
                after = [type_of(result) for result in self._applied(summary.add, rows, YES, name)]
                if joined([state, *after]) != state:
                    refuse(f"uses {name} whose value has another type than the values of the group")
                return state
        raise TypeError(summary)  # pragma: no cover

    def _results(self, function: Function, bag: Bag, name: str) -> list[Any]:
        found = []
        for term in bag.terms:
            found += [type_of(result) for result in self._applied(function, (term.row,), term.guard, name)]
        return found

    def _applied(self, function: Function, rows: Sequence[Any], guard: Any, name: str) -> Iterator[Any]:
        for _, result, raised in self.meaning.applied(function, rows, guard):
            if raised is not None:
                refuse(f"uses {name}, which raises {type(raised).__name__} for some values, or has none for some")
            if shape_of(result) is not None:
                refuse(f"uses {name}, which is a namedtuple or dataclass")
            yield result

    def _require_order(self, types: Iterable[Any], name: str) -> None:
        for type_ in types:
            if not has_order(type_):
                refuse(f"uses {name} with values that may be None, and have no order then")


def _chosen(row: Any) -> Any:
    """A row without values that may be None: each is, or is not, on this path."""
    if isinstance(row, Maybe):
        return None if decide(row.null) else row.value
    return tuple(map(_chosen, row)) if isinstance(row, tuple) else row


def _situations(sides: int) -> Iterator[tuple[bool, ...]]:
    """Which sides have a row with the key: at least one."""
    return (present for present in itertools.product((True, False), repeat=sides) if any(present))


def _groups(asks: Sequence[Callable[[Question], Any] | None], twin: Twin) -> Any:
    groups = tuple(Group(ask, twin, side=side) for side, ask in enumerate(asks))
    return groups if len(groups) > 1 else groups[0]


def _chained(functions: Sequence[Function], steps: Steps, pair: Any) -> list[Any]:
    """What the functions make of a pair, one after the other; of the last flatMap what it gives as a whole."""
    rows = [pair]
    for number, (function, (_, how)) in enumerate(zip(functions, steps, strict=True), 1):
        if how is How.FILTER:
            rows = [row for row in rows if function(row)]
            continue
        rows = [function(row) for row in rows]
        if how is How.FLAT_MAP and number < len(steps):
            rows = [each for row in rows for each in row]
    return rows


# -- summaries -------------------------------------------------------------------------------------------------------


def _summary(question: Question, element: Function) -> Summary:
    """A question as a summary of pairs, whose values `element` gives."""
    values = _values(question.steps, element)
    one = _one_value(question.steps, element)
    if question.once and question.kind in _SUMS:
        numbers = {"sum": lambda row: 0 + one(row), "count": lambda row: 1, "any": _is_true(one), "all": _is_false(one)}
        return Total(numbers[question.kind], one, name=question.kind)
    match question.kind:
        case "sum":
            return Total((lambda row: sum(values(row))) if question.steps else lambda row: 0 + one(row), name="sum")
        case "count":
            return Total((lambda row: len(list(values(row)))) if question.steps else lambda row: 1, name="len")
        case "any":
            return Total(lambda row: 1 if any(values(row)) else 0, name="any")
        case "all":
            return Total(lambda row: 0 if all(values(row)) else 1, name="all")
        case "min" | "max":
            return Extreme(one, question.kind == "max", name=question.kind)
    function, *start = question.fold
    if start:
        return Fold(start[0], function, function, one, name="reduce")
    return Fold(None, function, function, one, needs_row=True, name="reduce")


def _is_true(one: Function) -> Function:
    return lambda row: 1 if one(row) else 0


def _is_false(one: Function) -> Function:
    return lambda row: 0 if one(row) else 1


def _values(steps: Sequence[Function], element: Function) -> Function:
    """What generator expressions, maps and filters make of the value of a pair."""
    values: Function = lambda row: (element(row),)  # noqa: E731
    for step in steps:
        values = _after(values, step)
    return values


def _after(values: Function, step: Function) -> Function:
    return lambda row: step(iter(values(row)))


def _one_value(steps: Sequence[Function], element: Function) -> Function:
    """The same, where it must be one value."""
    if not steps:
        return element
    values = _values(steps, element)

    def one(row: Any) -> Any:
        [value] = values(row)
        return value

    return one


# -- relations -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Shape:
    """Where a row of a relation has the key, the answers of each side (None if it has no rows), and an element."""

    key: Function
    answers: tuple[Function | None, ...]
    element: Function | None = None
    side: int = 0
    """The side that the element is of."""


def _relation(groups: Groups, noted: _Noted) -> Relation:
    through, place, sides = noted.goes_through, groups.place, groups.sides
    if through - {None} and len(through) > 1:
        raise UnsupportedError(
            str(place),
            needed="a function that gives the values of one group, or none of them",
            came="one that gives now these rows, now others",
            hint="two flatMaps and a union",
        )
    side = next(iter(through), None)
    shapes = _rows(sides, noted, place) if side is None else _elements(sides, noted, place, side)
    made = [
        Each(relation, _answering(groups, noted, shape, number), How.FLAT_MAP, place)
        for number, (relation, shape) in enumerate(shapes)
    ]
    relation: Relation = made[0]
    for other in made[1:]:
        relation = Union(relation, other, place)
    return relation


def _answering(groups: Groups, noted: _Noted, shape: _Shape, number: int) -> Function:
    """The functions, run on groups that have their answers in a row."""
    steps = groups.steps
    places = [{key: place for place, key in enumerate(asked)} for asked in noted.questions]

    def make(twin: Twin, *functions: Function) -> Function:
        def asks(side: int, row: Any) -> Callable[[Question], Any] | None:
            answers = shape.answers[side]
            if answers is None:
                return None

            def ask(question: Question) -> Any:
                if question.kind == "compare":
                    return None
                place = places[side].get(question.key)
                if place is None:
                    refuse(f"asks a group for {question.kind}(), which it did not when it was read first")
                return answers(row)[place]

            return ask

        def called(row: Any) -> list[Any]:
            answered = _groups([asks(side, row) for side in range(len(places))], twin)
            results = _chained(functions, steps, groups.pair(shape.key(row), answered))
            if steps[-1][1] is not How.FLAT_MAP:
                return [flattened(result) for result in results]
            if shape.element is None:
                return [flattened(each) for result in results for each in result]
            element = groups.element(shape.side, shape.element(row))
            return [flattened(each) for result in results for each in with_one_element(result, element)]

        return called

    return groups.composed(make, (noted, number))


def _rows(sides: Sides, noted: _Noted, place: Place) -> Iterator[tuple[Relation, _Shape]]:
    """One row for each key of any side, with the answers of all."""
    if len(sides) == 1:
        yield Grouped(sides[0], key_of_pair, noted.summaries(0), place), _Shape(_first, (_rest,))
        return
    if noted.only_sums:
        yield _tagged(sides, noted, place)
        return
    grouped = [Grouped(each, key_of_pair, noted.summaries(side), place) for side, each in enumerate(sides)]
    both = Each(Product(grouped[0], grouped[1], place), _same_keys, How.FILTER, place)
    yield both, _Shape(lambda row: row[0][0], (lambda row: row[0][1:], lambda row: row[1][1:]))
    yield Matching(grouped[0], sides[1], _same_first, False, place), _Shape(_first, (_rest, None))
    yield Matching(grouped[1], sides[0], _same_first, False, place), _Shape(_first, (None, _rest))


def _tagged(sides: Sides, noted: _Noted, place: Place) -> tuple[Relation, _Shape]:
    """The rows of both sides together: the key, the side, and the value at the place of its side."""
    fillers = [_filler(type_[1]) if isinstance(type_, tuple) else None for type_ in noted.types]
    left, right = fillers
    tagged = Union(
        Each(sides[0], lambda pair: (key_of_pair(pair), 0, pair[1], right), How.MAP, place),
        Each(sides[1], lambda pair: (key_of_pair(pair), 1, left, pair[1]), How.MAP, place),
        place,
    )
    summaries = [
        Total(_only_of(side, summary.number), name=summary.name)
        for side in (0, 1)
        for summary in noted.summaries(side)
        if isinstance(summary, Total)
    ]
    width = 1 + len(noted.questions[0])
    shape = _Shape(_first, (lambda row: row[1:width], lambda row: row[width:]))
    return Grouped(tagged, _first, tuple(summaries), place), shape


def _only_of(side: int, number: Function) -> Function:
    return lambda row: number((row[0], row[2 + side])) if row[1] == side else 0


def _filler(type_: Any) -> Any:
    """A value of a type, for where there is none."""
    if isinstance(type_, tuple):
        return tuple(map(_filler, type_))
    return type_() if type_ in (int, bool, float, str) else None


def _elements(sides: Sides, noted: _Noted, place: Place, side: int) -> Iterator[tuple[Relation, _Shape]]:
    """A row for each element of a side, with the answers that are needed for its key."""
    pairs: Relation = Each(sides[side], lambda pair: (key_of_pair(pair), pair[1]), How.MAP, place)
    count = len(sides)
    if noted.questions[side]:
        own = Grouped(sides[side], key_of_pair, noted.summaries(side), place)
        pairs = Each(Product(pairs, own, place), _same_keys, How.FILTER, place)
    else:
        pairs = Each(pairs, lambda pair: (pair, (pair[0],)), How.MAP, place)
    # From here on: the pair, and the row of its own group.
    others = [other for other in range(count) if other != side and noted.questions[other]]
    if not others:
        answers = tuple((lambda row: row[1][1:]) if each == side else _nothing for each in range(count))
        yield pairs, _Shape(lambda row: row[0][0], answers, lambda row: row[0][1], side)
        return
    [other] = others
    theirs = Grouped(sides[other], key_of_pair, noted.summaries(other), place)
    met = Each(Product(pairs, theirs, place), lambda row: row[0][0][0] == row[1][0], How.FILTER, place)
    both: list[Function] = [lambda row: row[0][1][1:], lambda row: row[1][1:]]
    in_order = tuple(both if side == 0 else both[::-1])
    yield met, _Shape(lambda row: row[0][0][0], in_order, lambda row: row[0][0][1], side)
    alone = Matching(pairs, sides[other], lambda row, pair: row[0][0] == pair[0], False, place)
    own_answers: Function = lambda row: row[1][1:]  # noqa: E731
    alone_answers = (own_answers, None) if side == 0 else (None, own_answers)
    yield alone, _Shape(lambda row: row[0][0], alone_answers, lambda row: row[0][1], side)


def key_of_pair(pair: Any) -> Any:
    """The key. What is no pair raises, as it does on Spark."""
    key, _ = pair
    return key


def _first(row: Any) -> Any:
    return row[0]


def _rest(row: Any) -> Any:
    return row[1:]


def _nothing(row: Any) -> tuple[()]:
    return ()


def _same_keys(both: Any) -> Any:
    return both[0][0] == both[1][0]


def _same_first(one: Any, other: Any) -> Any:
    return one[0] == other[0]


# -- is it read as it is? --------------------------------------------------------------------------------------------


def _compare(groups: Groups, noted: _Noted) -> None:
    """Compare the relation with the functions themselves, on groups of a few values."""
    chance = random.Random(0)
    twin = Twin(groups.composed(lambda twin, *_: _first))
    if twin.captures:
        return  # results of actions, which have no value yet
    near = list(twin.constants)
    for _ in range(_SAMPLES):
        tables = [some_rows(type_, near, chance, 3) if isinstance(type_, tuple) else [] for type_ in noted.types]
        on_table = dataclasses.replace(groups, sides=tuple(Rows(tuple(rows)) for rows in tables))
        relation = on_table.relation(noted)
        real = _outcome(lambda: _really(groups, tables))  # noqa: B023
        read_as = _outcome(lambda: rows_of(relation, {}))  # noqa: B023
        if real is None or read_as is None:
            if real is read_as:
                continue
        elif same_rows(real, read_as):
            continue
        raise EncodingError(
            f"{groups.place} on {tables}",
            needed=f"{'an exception' if real is None else real}, as Python gives",
            came=f"{'an exception' if read_as is None else read_as} from its summaries",
            hint="report this function",
        )


def _outcome(run: Callable[[], list[Any]]) -> list[Any] | None:
    try:
        return run()
    except UnsupportedError:
        raise
    except Exception:  # the user's own
        return None


def _really(groups: Groups, tables: Sequence[Sequence[Any]]) -> list[Any]:
    """What the functions give for groups that have all their values."""
    steps = groups.steps
    keys = dict.fromkeys(pair[0] for rows in tables for pair in rows)
    found: list[Any] = []
    for key in keys:
        sides = tuple(
            local.Group([groups.element(side, value) for own, value in rows if own == key])
            for side, rows in enumerate(tables)
        )
        rows = _chained(groups.functions, steps, groups.pair(key, sides if len(sides) > 1 else sides[0]))
        found += [each for row in rows for each in row] if steps[-1][1] is How.FLAT_MAP else rows
    return [flattened(row) for row in found]
