"""Is a fork/join program consistent, for all events and all states that can come about? (Definition 4.3)

    (C1)  join(update(left, e), right)  is  update(join(left, right), e), and the mirror image
    (C2)  join(fork(s))  is  s
    (C3)  update(update(s, e), f)  is  update(update(s, f), e), if e and f are independent

The functions are read on states and events that are not known. What is true of all states of a type, and of all pairs
of states on the two sides of a fork, is guessed as many simple facts, of which those are dropped that a fork or an
update does not keep; the rest is an invariant. A joined state needs no fact of its own: by the laws, it is one that
updates alone come to.
"""

from __future__ import annotations

import functools
import itertools
import math
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import z3

from streamtight.errors import EncodingError, UnsupportedError
from streamtight.program.fork_join import Branch, ForkJoin, StateType
from streamtight.program.tags import NO_TAGS
from streamtight.solver.ask import Answer, Budget, prove
from streamtight.solver.reading import ROUNDS, Reader, any_event, together
from streamtight.solver.symbolic.admit import Composed, Twin
from streamtight.solver.symbolic.kinds import event_of, holds_event, row_of
from streamtight.solver.symbolic.paths import exploring, refuse
from streamtight.solver.symbolic.values import StandIn, Symbolic, term_of
from streamtight.solver.terms import Meaning
from streamtight.solver.values import (
    NO,
    YES,
    Maybe,
    Row,
    Truth,
    conjunction,
    either,
    joined,
    leaves,
    negation,
    number,
    same,
    type_of,
    values_in,
    variable,
)
from streamtight.stream.dependence import Clause, Select
from streamtight.stream.event import Kind

C1, C2, C3 = "update commutes with join", "join undoes fork", "independent events in any order"
MOST_OUTPUTS = 4
"""Outputs are compared in all orders if there are no more of them."""


@dataclass(frozen=True, slots=True)
class Proof:
    """Which laws were proved, and why others were not."""

    proved: tuple[str, ...] = ()
    tested: Mapping[str, str] = field(default_factory=dict)
    """The laws that were not proved, and why, as it follows "since"."""
    assumptions: frozenset[str] = frozenset()
    suspects: tuple[object, ...] = ()
    """Numbers and texts of states and events for which a law does not hold; it may be that none comes about."""


def is_consistent(program: ForkJoin, budget: Budget) -> Proof:
    """Which of the laws are true for all events, and for all states that can come about."""
    laws = (C1, C2, C3) if program.all_branches else (C3,)
    if type(program).same_state is not ForkJoin.same_state:
        return Proof((), dict.fromkeys(laws, "same_state is the program's own"))
    meaning = Meaning(budget)
    reading = _Reading(program, meaning)
    try:
        reading.read()
        claims = {law: list(reading.claims(law)) for law in laws}
    except UnsupportedError as error:
        return Proof((), {", ".join(laws): f"it could not be read: {error.where} {error.came}"})
    except EncodingError as error:
        told = f"{error.where} is {error.needed}, and {error.came}"
        return Proof((), {", ".join(laws): f"reading and running disagree: {told}"})
    answers = {law: _all_proved(of, budget) for law, of in claims.items()}
    suspects = [value for answer, rows in answers.values() if answer.model for value in _values(rows, answer.model)]
    return Proof(
        tuple(law for law, (answer, _) in answers.items() if answer.proved),
        {law: _why(program, answer, rows) for law, (answer, rows) in answers.items() if not answer.proved},
        frozenset(meaning.assumptions),
        tuple(dict.fromkeys(suspects)),
    )


@dataclass(frozen=True, slots=True)
class _Claim:
    """What must be true where something is given, and the rows that it speaks of."""

    given: Truth
    truth: Truth
    rows: tuple[tuple[str, Row], ...]


def _all_proved(claims: Sequence[_Claim], budget: Budget) -> tuple[Answer, tuple[tuple[str, Row], ...]]:
    """Whether all are true; else the answer to the first that is not known to be, and its rows."""
    for claim in claims:
        answer = prove(claim.truth, given=[claim.given], seconds=budget.left)
        if not answer.proved:
            return answer, claim.rows
    return Answer(), ()


def _why(program: ForkJoin, answer: Answer, rows: Sequence[tuple[str, Row]]) -> str:
    opaque = next((clause.text for clause in program.depends.clauses if _is_opaque(clause)), None)
    if opaque is not None:
        return f"{opaque} is a function, which is not read"
    if answer.model is None:
        return f"the solver does not know: {answer.reason}"
    told = ", ".join(f"{name} = {values_in(row, answer.model)!r}" for name, row in rows)
    return f"it is not so for {told}, which no run came to"


def _values(rows: Sequence[tuple[str, Row]], model: z3.ModelRef) -> Iterator[object]:
    for _, row in rows:
        for value in leaves(values_in(row, model)):
            if isinstance(value, (int, float, str)):
                yield value


# -- what is read ----------------------------------------------------------------------------------------------------


class _Reading(Reader):
    """Reads the functions of a program."""

    def __init__(self, program: ForkJoin, meaning: Meaning) -> None:
        super().__init__(program.name, meaning)
        self._program = program
        self._composed: dict[object, Composed] = {}
        self._shapes: dict[StateType, list[Any]] = {type_: [] for type_ in program.state_types}
        self._facts = _Facts(meaning.budget)

    def read(self) -> None:
        """Find out what states can be, and what is true of all of them."""
        start = self._program.init()
        self._require_plain(start)
        self._shapes[self._program.state_types[0]] = [type_of(start)]
        for _ in range(ROUNDS):
            before = {type_: list(shapes) for type_, shapes in self._shapes.items()}
            for type_, row in list(self._made()):
                self._require_plain(row)
                self._shapes[type_] = together([*self._shapes[type_], type_of(row)])
            if before == self._shapes:
                break
        else:
            self.refuse_wider(next(iter(self._shapes.values())))
        constants = [leaf for leaf in leaves(start) if leaf is not None]
        self._facts.guess(self._keys(), list(dict.fromkeys([*constants, 0])))
        self._facts.keep(list(self._steps(start)))

    def _require_plain(self, row: Row) -> None:
        """Raise unless a state is of the types that stand for themselves: a namedtuple would be read as a tuple."""
        if type(row) is tuple:
            for part in row:
                self._require_plain(part)
        elif isinstance(row, float) and not math.isfinite(row):
            raise UnsupportedError(self.name, needed="finite numbers", came=f"has {row} in its state", hint="None")
        elif row is not None and type(row) not in (int, float, str, bool) and not isinstance(row, Symbolic | Maybe):
            came = f"has a {type(row).__name__} in its state"
            raise UnsupportedError(self.name, needed="tuples of numbers and texts", came=came, hint="a tuple")

    def claims(self, law: str) -> Iterator[_Claim]:
        """All that this law says."""
        branches = self._program.all_branches
        if law == C2:
            return (claim for branch in branches for claim in self._join_undoes_fork(branch))
        if law == C3:
            return (claim for type_ in self._program.state_types for claim in self._any_order(type_))
        return (claim for branch in branches for own in (0, 1) for claim in self._commutes(branch, own))

    def _states(self, type_: StateType, name: str) -> Iterator[Row]:
        """A state of each shape, of which nothing else is known."""
        return (variable(shape, name) for shape in self._shapes[type_])

    def _made(self) -> Iterator[tuple[StateType, Row]]:
        """What comes of states that are known to come about."""
        for type_ in self._program.state_types:
            for state, kind in itertools.product(self._states(type_, "?state"), type_.handles.kinds):
                yield from ((type_, after) for _, after, _ in self._update(type_, state, kind, any_event(kind)))
        for branch in self._program.all_branches:
            for state in self._states(branch.of, "?state"):
                for _, (left, right) in _returned(self._fork(branch, state)):
                    yield branch.left, left
                    yield branch.right, right
            for left, right in self._pairs(branch):
                yield from ((branch.of, row) for _, row in _returned(self._join(branch, left, right)))

    def _pairs(self, branch: Branch) -> Iterator[tuple[Row, Row]]:
        return itertools.product(self._states(branch.left, "?left"), self._states(branch.right, "?right"))

    # -- facts -------------------------------------------------------------------------------------------------------

    def _key(self, type_: StateType, row: Row) -> _Key:
        return (type_.name, self._place(type_, row))

    def _place(self, type_: StateType, row: Row) -> int:
        """Which of the shapes of a type a row has."""
        for place, shape in enumerate(self._shapes[type_]):
            try:
                if joined([shape, type_of(row)]) == shape:
                    return place
            except UnsupportedError:
                continue
        return self.refuse_wider(type_of(row))

    def _pair_key(self, branch: Branch, mode: _Mode, left: Row, right: Row) -> _Key:
        number_of = self._program.all_branches.index(branch)
        return (number_of, mode, self._place(branch.left, left), self._place(branch.right, right))

    def _modes(self, branch: Branch) -> list[_Mode]:
        """On which side an event comes, and of which kind: the other side sees only what is independent of it."""
        return [(own, kind) for own, type_ in enumerate((branch.left, branch.right)) for kind in type_.handles.kinds]

    def _keys(self) -> Iterator[tuple[_Key, Row]]:
        for type_ in self._program.state_types:
            yield from ((self._key(type_, state), state) for state in self._states(type_, "?state"))
        for branch in self._program.all_branches:
            for (left, right), mode in itertools.product(self._pairs(branch), self._modes(branch)):
                yield self._pair_key(branch, mode, left, right), (left, right)

    def _steps(self, start: Row) -> Iterator[_Step]:
        """How states come about, alone and in pairs."""
        program = self._program
        yield _Step((), NO_GUARD, self._key(program.state_types[0], start), start)
        for type_ in program.state_types:
            for state, kind in itertools.product(self._states(type_, "?state"), type_.handles.kinds):
                for guard, after, _ in self._update(type_, state, kind, any_event(kind)):
                    yield _Step(((self._key(type_, state), state),), guard, self._key(type_, after), after)
        for branch in program.all_branches:
            for state in self._states(branch.of, "?state"):
                known = ((self._key(branch.of, state), state),)
                for guard, (left, right) in _returned(self._fork(branch, state)):
                    yield _Step(known, guard, self._key(branch.left, left), left)
                    yield _Step(known, guard, self._key(branch.right, right), right)
                    for mode in self._modes(branch):
                        yield _Step(known, guard, self._pair_key(branch, mode, left, right), (left, right))
            for mode in self._modes(branch):
                yield from self._steps_of_pairs(branch, mode)

    def _steps_of_pairs(self, branch: Branch, mode: _Mode) -> Iterator[_Step]:
        own, kind = mode
        event = any_event(kind)
        for left, right in self._pairs(branch):
            known = self._known(branch, mode, left, right)
            for side, type_ in enumerate((branch.left, branch.right)):
                for other in type_.handles.kinds:
                    row = any_event(other, "?other")
                    allowed = NO_GUARD if side == own else self._independent(kind, event, other, row)
                    for guard, after, _ in self._update(type_, (left, right)[side], other, row):
                        pair = (after, right) if side == 0 else (left, after)
                        yield _Step(known, conjunction((allowed, guard)), self._pair_key(branch, mode, *pair), pair)

    def _known(self, branch: Branch, mode: _Mode, left: Row, right: Row) -> tuple[tuple[_Key, Row], ...]:
        return (
            (self._key(branch.left, left), left),
            (self._key(branch.right, right), right),
            (self._pair_key(branch, mode, left, right), (left, right)),
        )

    # -- laws --------------------------------------------------------------------------------------------------------

    def _join_undoes_fork(self, branch: Branch) -> Iterator[_Claim]:
        for state in self._states(branch.of, "?state"):
            known = self._facts.of(((self._key(branch.of, state), state),))
            for guard, pair in self._fork(branch, state):
                if pair is _RAISES:
                    yield _Claim(conjunction((known, guard)), NO, (("state", state),))
                    continue
                for then, row in self._join(branch, *pair):
                    truth = NO if row is _RAISES else same(row, state)
                    yield _Claim(conjunction((known, guard, then)), truth, (("state", state),))

    def _commutes(self, branch: Branch, own: int) -> Iterator[_Claim]:
        type_ = (branch.left, branch.right)[own]
        for kind, (left, right) in itertools.product(type_.handles.kinds, self._pairs(branch)):
            event = any_event(kind)
            known = self._facts.of(self._known(branch, (own, kind), left, right))
            rows = (("left", left), ("right", right), (kind.name, event))
            inner = [
                (conjunction((guard, then)), row, outputs)
                for guard, after, outputs in self._update(type_, (left, right)[own], kind, event)
                for then, row in self._join(branch, *((after, right) if own == 0 else (left, after)))
            ]
            outer = [
                (conjunction((guard, then)), row, outputs)
                for guard, state in self._join(branch, left, right)
                for then, row, outputs in (
                    [(YES, _RAISES, ())] if state is _RAISES else self._update(branch.of, state, kind, event)
                )
            ]
            yield from _agree(known, inner, outer, rows)

    def _any_order(self, type_: StateType) -> Iterator[_Claim]:
        for one, other in itertools.combinations_with_replacement(type_.handles.kinds, 2):
            e, f = any_event(one, "?e"), any_event(other, "?f")
            independent = self._independent(one, e, other, f)
            if z3.is_false(z3.simplify(independent)):
                continue
            for state in self._states(type_, "?state"):
                known = conjunction((self._facts.of(((self._key(type_, state), state),)), independent))
                rows = (("state", state), (one.name, e), (other.name, f))
                forth = self._two(type_, state, (one, e), (other, f))
                back = self._two(type_, state, (other, f), (one, e))
                yield from _agree(known, forth, back, rows)

    def _two(self, type_: StateType, state: Row, first: tuple[Kind, Row], second: tuple[Kind, Row]) -> list[_Made]:
        return [
            (conjunction((guard, then)), row, (*outputs, *more))
            for guard, after, outputs in self._update(type_, state, *first)
            for then, row, more in self._update(type_, after, *second)
        ]

    def _independent(self, one: Kind, e: Row, other: Kind, f: Row) -> Truth:
        """Whether no clause relates two events. One that is a function is taken to relate none: then more is asked."""
        return negation(either(*(_related(clause, one, e, other, f) for clause in self._program.depends.clauses)))

    # -- functions ---------------------------------------------------------------------------------------------------

    def _update(self, type_: StateType, state: Row, kind: Kind, event: Row) -> Iterator[_Made]:
        bound = self._program.update_of(type_)

        def make(twin: Twin, own: Callable[..., Any]) -> Callable[..., Any]:
            twin.kind(kind)
            called = self._own(twin, own, bound)
            return lambda state, row: _with_outputs(called, state, event_of(row, kind))

        composed = self._once(
            ("update", type_, kind), make, bound, lambda state, row: _with_outputs(bound, state, kind(*row))
        )
        for guard, (after, outputs) in self.paths(composed, [state, event]):
            yield guard, after, outputs

    def _fork(self, branch: Branch, state: Row) -> Iterator[tuple[Truth, Row]]:
        bound = self._program.fork_of(branch)

        def make(twin: Twin, own: Callable[..., Any]) -> Callable[..., Any]:
            called = self._own(twin, own, bound)
            return lambda state: _two_states(called(state, _UnknownTags(), _UnknownTags()))

        real = functools.partial(lambda state: _two_states(bound(state, NO_TAGS, NO_TAGS)))
        return self._all_paths(self._once(("fork", branch), make, bound, real), [state])

    def _join(self, branch: Branch, left: Row, right: Row) -> Iterator[tuple[Truth, Row]]:
        bound = self._program.join_of(branch)

        def make(twin: Twin, own: Callable[..., Any]) -> Callable[..., Any]:
            return self._own(twin, own, bound)

        return self._all_paths(self._once(("join", branch), make, bound, bound), [left, right])

    def _all_paths(self, function: Composed, rows: Sequence[Row]) -> Iterator[tuple[Truth, Row]]:
        """What a fork or a join makes, path by path, also where it raises: the sequential program never calls it."""
        for guard, row, raised in self.meaning.applied(function, rows, YES):
            yield guard, row if raised is None else _RAISES

    def _own(self, twin: Twin, own: Callable[..., Any], bound: Any) -> Callable[..., Any]:
        """The function, as the program calls it."""
        if not isinstance(bound, types.MethodType):
            return own
        if bound.__self__ is not self._program:
            came = f"is a method of another object, a {type(bound.__self__).__name__}"
            raise UnsupportedError(bound.__qualname__, needed="methods of the program", came=came, hint="a function")
        return functools.partial(own, _Itself(self._program, twin))

    def _once(self, key: tuple[Any, ...], make: Any, bound: Any, real: Callable[..., Any]) -> Composed:
        if key not in self._composed:
            function = getattr(bound, "__func__", bound)
            told = tuple(map(repr, key))
            self._composed[key] = Composed(make, function, besides=(id(self._program), *told), real=real)
        return self._composed[key]


class _Itself(StandIn):
    """What takes the place of the program in its methods: its constants, its kinds, its other methods."""

    def __init__(self, program: ForkJoin, twin: Twin) -> None:
        self._program, self._twin = program, twin

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._program, name):
            refuse(f"uses self.{name}, which is not defined")
        value = getattr(self._program, name)
        if isinstance(value, types.MethodType) and value.__self__ is self._program:
            return functools.partial(self._twin.admit(value.__func__, f"self.{name}"), self)
        return self._twin.admit(value, f"self.{name}")

    def _as_a_whole(self, *_: object) -> Any:
        return refuse("looks at self as a whole") if exploring else object.__hash__(self)

    __hash__ = _as_a_whole
    __eq__ = _as_a_whole
    __class__ = property(_as_a_whole)


class _UnknownTags(StandIn):
    """What takes the place of the tags of a side."""

    def __call__(self, *_: object, **__: object) -> Any:
        return refuse("asks which tags will come")

    __bool__ = __or__ = __eq__ = __hash__ = __repr__ = __str__ = __format__ = __call__
    __class__ = property(__call__)

    def __getattr__(self, name: str) -> Any:
        return refuse(f"asks which tags will come, by .{name}")


def _with_outputs(update: Callable[..., Any], state: Any, event: Any) -> tuple[Any, Any]:
    out: list[Any] = []
    after = update(state, event, out.append)
    if holds_event(after):
        refuse("keeps an event in its state; its values in a tuple can be read")
    return after, tuple(map(row_of, out))


def _two_states(made: Any) -> tuple[Any, Any]:
    if not isinstance(made, tuple) or len(made) != 2:
        refuse(f"gives a {type(made).__name__}, not a tuple of two states")
    return made


_RAISES: Any = object()
"""Stands for what a fork or a join gives if it raises."""


def _returned(paths: Iterable[tuple[Truth, Row]]) -> Iterator[tuple[Truth, Row]]:
    return (path for path in paths if path[1] is not _RAISES)


_Made = tuple[Truth, Row, Sequence[Row]]
"""When, the state, and the outputs."""
_Mode = tuple[int, Kind]
_Key = tuple[Any, ...]
NO_GUARD = z3.BoolVal(True)


def _agree(
    known: Truth, one: Iterable[_Made], other: Sequence[_Made], rows: tuple[tuple[str, Row], ...]
) -> Iterator[_Claim]:
    """That two ways end in the same state, with the same outputs."""
    for guard, state, outputs in one:
        for then, other_state, others in other:
            raises = state is _RAISES or other_state is _RAISES
            truth = NO if raises else conjunction((same(state, other_state), _same_outputs(outputs, others)))
            yield _Claim(conjunction((known, guard, then)), truth, rows)


def _same_outputs(one: Sequence[Row], other: Sequence[Row]) -> Truth:
    """Whether they are the same multiset; of many outputs, whether they are the same in this order."""
    if len(one) != len(other):
        return NO
    orders = itertools.permutations(other) if len(other) <= MOST_OUTPUTS else [tuple(other)]
    return either(*(conjunction(map(same, one, order)) for order in orders))


def _related(clause: Clause, one: Kind, e: Row, other: Kind, f: Row) -> Truth:
    if _is_opaque(clause):
        return NO
    sides = (clause.left, clause.right)
    if not any(_speaks(a, one) and _speaks(b, other) for a, b in (sides, sides[::-1])):
        return NO
    fields = [(e[one.names.index(name)], f[other.names.index(name)]) for name in clause.key]
    return conjunction(same(mine, its) for mine, its in fields)


def _is_opaque(clause: Clause) -> bool:
    return bool(clause.pairwise or clause.left.tests or clause.right.tests)


def _speaks(side: Select, kind: Kind) -> bool:
    return side.kinds is None or kind in side.kinds


# -- facts -----------------------------------------------------------------------------------------------------------

_Fact = Callable[[Row], Truth]


@dataclass(frozen=True, slots=True)
class _Step:
    """How a row comes about of rows that are known."""

    known: tuple[tuple[_Key, Row], ...]
    guard: Truth
    key: _Key
    row: Row


class _Facts:
    """What is true of all rows of a key: guessed, and dropped where a step does not keep it (Houdini)."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._kept: dict[_Key, list[_Fact]] = {}

    def guess(self, keys: Iterable[tuple[_Key, Row]], constants: Sequence[Any]) -> None:
        """Begin with all simple facts."""
        for key, row in keys:
            self._kept[key] = list(_guesses(row, constants))

    def of(self, known: Iterable[tuple[_Key, Row]]) -> Truth:
        """What is known of these rows."""
        return conjunction(fact(row) for key, row in known for fact in self._kept[key])

    def keep(self, steps: Sequence[_Step]) -> None:
        """Drop facts until all steps keep those that are left."""
        is_stable = False
        while not is_stable:
            is_stable = True
            for step in steps:
                before = len(self._kept[step.key])
                self._keep(step)
                is_stable = is_stable and len(self._kept[step.key]) == before

    def _keep(self, step: _Step) -> None:
        while self._kept[step.key]:
            given = [self.of(step.known), step.guard]
            facts = [(fact, fact(step.row)) for fact in self._kept[step.key]]
            answer = prove(conjunction(truth for _, truth in facts), given=given, seconds=self._budget.left)
            if answer.proved:
                return
            if answer.model is None:  # no fact is better than one that is not known to be true
                self._kept[step.key] = []
                return
            model = answer.model
            self._kept[step.key] = [
                fact for fact, truth in facts if z3.is_true(model.eval(truth, model_completion=True))
            ]


def _guesses(row: Row, constants: Sequence[Any]) -> Iterator[_Fact]:
    """That a value is a constant, or at least or at most one; or so with another value."""
    places = [place for place, leaf in enumerate(leaves(row)) if isinstance(leaf, Symbolic)]
    for place in places:
        for constant in constants:
            yield functools.partial(_is, place, constant)
            if type(constant) in (int, float):
                yield functools.partial(_at_least, place, constant)
                yield functools.partial(_at_most, place, constant)
    for one, other in itertools.combinations(places, 2):
        yield lambda row, one=one, other=other: same(leaves(row)[one], leaves(row)[other])  # type: ignore[misc]
        yield functools.partial(_in_order, one, other)
        yield functools.partial(_in_order, other, one)


def _is(place: int, constant: Any, row: Row) -> Truth:
    return same(leaves(row)[place], constant)


def _at_least(place: int, constant: Any, row: Row) -> Truth:
    return _compared(leaves(row)[place], constant, lambda a, b: a >= b)


def _at_most(place: int, constant: Any, row: Row) -> Truth:
    return _compared(leaves(row)[place], constant, lambda a, b: a <= b)


def _in_order(one: int, other: int, row: Row) -> Truth:
    return _compared(leaves(row)[one], leaves(row)[other], lambda a, b: a <= b)


def _compared(one: Any, other: Any, order: Callable[[Any, Any], Truth]) -> Truth:
    """Whether two numbers are in order; no, if one is no number."""
    terms = [number(term_of(leaf)) for leaf in (one, other) if isinstance(leaf, (Symbolic, int, float))]
    if len(terms) < 2 or not all(map(z3.is_arith, terms)):
        return NO
    return order(*terms)
