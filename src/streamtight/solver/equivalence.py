"""Are two programs that were read equal on every input?

A program that was read is a list of outcomes: under a condition on its aggregates, a result. Two programs are equal if
any two outcomes that are possible together have the same result. What is known of the aggregates of both, such as that
one sum is twice the other, is found first (sums.py); what is left goes to the machines of the folds (machines.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.program.relation import (
    Aggregate,
    Distinct,
    Extreme,
    First,
    Fold,
    Grouped,
    Place,
    Relation,
    Summary,
    Total,
)
from streamtight.solver import laws, machines, sums
from streamtight.solver.ask import Budget, prove
from streamtight.solver.bags import Difference, same_bags, same_sets
from streamtight.solver.symbolic import Symbolic, SymbolicBool, explore, term_of
from streamtight.solver.terms import Atom, Bag, Meaning, Term, Variable
from streamtight.solver.values import (
    NO,
    YES,
    Maybe,
    Row,
    Truth,
    conjunction,
    constants,
    constants_in,
    either,
    negation,
    renamed,
    same,
    type_of,
    variable,
)

Value = Callable[[Aggregate], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An aggregate of a program, the constants that stand for its value, and the bag that it is of."""

    aggregate: Aggregate
    value: Row
    bag: Bag


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a program gives where the guard is true."""

    guard: Truth
    result: Any
    raised: Exception | None
    aggregates: tuple[Known, ...]


class Equivalence:
    """Reads programs and compares them, in a number of seconds."""

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self.meaning = Meaning(budget)
        self.methods: set[str] = set()
        """What was needed for the proof, in the words of a verdict."""
        self._names = itertools.count()

    # -- reading -----------------------------------------------------------------------------------------------------

    def outcomes(self, run: Callable[[Value], Any], name: str) -> list[Outcome]:
        """All outcomes of a program, which is given what stands for its aggregates."""
        ended: list[tuple[Any, tuple[Known, ...]]] = []

        def call() -> int:
            known: list[Known] = []

            def value(aggregate: Aggregate) -> Any:
                bag = self.meaning.bag(aggregate.of)
                keyed = replace(bag, terms=tuple(replace(term, row=(None, term.row)) for term in bag.terms))
                type_ = self.meaning.type_of_summary(aggregate.summary, keyed)
                known.append(Known(aggregate, variable(type_, f"{name}{len(known)}"), bag))
                return known[-1].value

            try:
                result = run(value)
            except Exception:
                ended.append((None, tuple(known)))
                raise
            ended.append((result, tuple(known)))
            return len(ended) - 1

        found = []
        for path in explore(call, budget=self.budget):
            if path.raised is not None:
                found.append(Outcome(path.guard, None, path.raised, ()))
            else:
                result, known = ended[path.result]  # type: ignore[call-overload]
                found.append(Outcome(path.guard, result, None, known))
        longest = max((outcome.aggregates for outcome in found), key=len, default=())
        # A path that raises was decided by aggregates which the others have as well.
        return [replace(one, aggregates=longest) if one.raised is not None else one for one in found]

    # -- comparing ---------------------------------------------------------------------------------------------------

    def difference(
        self,
        left: Sequence[Outcome],
        right: Sequence[Outcome],
        relation_of: Callable[[Any], tuple[str, Relation] | None],
    ) -> Difference | None:
        """None if the programs are proved to be equal. `relation_of` tells a result that is a relation from a value."""
        for one, other in itertools.product(left, right):
            found = self._pair(one, other, relation_of)
            if found is not None:
                return found
        return None

    def _pair(
        self, left: Outcome, right: Outcome, relation_of: Callable[[Any], tuple[str, Relation] | None]
    ) -> Difference | None:
        known = self._distinct((*left.aggregates, *right.aggregates))
        facts = self.facts(known)
        given = [left.guard, right.guard, *facts]
        if prove(z3.Not(conjunction(given)), seconds=self.budget.left).proved:
            return None
        both = conjunction((left.guard, right.guard))
        if left.raised is not None or right.raised is not None:
            if type(left.raised) is type(right.raised):
                return None
            return self._claimed(known, z3.Not(both), facts, "one of them raises where the other does not")
        mine, theirs = relation_of(left.result), relation_of(right.result)
        if (mine is None) is not (theirs is None):
            return Difference("one of them gives rows, the other a value")
        if mine is not None and theirs is not None:
            if mine[0] != theirs[0]:
                return Difference(f"one of them gives a {mine[0]}, the other a {theirs[0]}")
            return self.same_relations(mine[1], theirs[1], given)
        claim = z3.Implies(both, same(_row(left.result), _row(right.result)))
        return self._claimed(known, claim, facts, "their values differ")

    def _distinct(self, known: Sequence[Known]) -> list[Known]:
        seen: dict[tuple[int, ...], Known] = {}
        for one in known:
            seen.setdefault(tuple(constant.get_id() for constant in constants(one.value)), one)
        return list(seen.values())

    def _claimed(self, known: Sequence[Known], claim: Truth, facts: Sequence[Truth], text: str) -> Difference | None:
        answer = prove(claim, given=facts, seconds=min(self.budget.left, 2.0))
        if answer.proved:
            self.methods.add("sums" if known else "values")
            return None
        try:
            holds = machines.always([self._machine(one) for one in known], claim, budget=self.budget)
        except UnsupportedError as error:
            return Difference(f"{text}, as far as is known ({error.came})")
        if holds:
            self.methods.add("folds")
            return None
        return Difference(text if holds is False else f"{text}, or the solver does not find out")

    # -- aggregates --------------------------------------------------------------------------------------------------

    def facts(self, known: Sequence[Known]) -> list[Truth]:
        """What is known of the values of these aggregates. Raises if one of them has no value of its own."""
        totals = []
        for one in known:
            for value, number in self._totals(one.aggregate.summary, one.value):
                totals.append(sums.Sum(value, sums.summands(self.meaning, one.bag, number, YES)))
        return list(sums.facts(totals, budget=self.budget))

    def _totals(self, summary: Summary, value: Row) -> Iterator[tuple[Any, Callable[..., Any]]]:
        """The sums that a summary is made of: the constant of each, and the number that a row adds to it."""
        match summary:
            case Total(number, None):
                yield term_of(value), number
            case Fold() if self._is_additive(summary, value):
                for place in _places(value):
                    yield term_of(_at(value, place)), _added_by(summary, place)

    def _is_additive(self, fold: Fold, value: Row) -> bool:
        """Whether to add a row is to add numbers of this row to numbers that start with zero."""
        type_ = type_of(value)
        if not all(part in (int, float) for part in _leaves(type_)):
            return False
        if not fold.needs_row and any(_at(fold.start, place) != 0 for place in _places(value)):
            return False
        a, b = variable(type_, "a"), variable(type_, "b")
        results = list(self.meaning.applied(fold.merge, (a, b), YES))
        if len(results) != 1 or results[0][2] is not None:
            return False
        merged = results[0][1]
        claim = conjunction(
            term_of(_at(merged, place)) == term_of(_at(a, place)) + term_of(_at(b, place)) for place in _places(a)
        )
        return prove(claim, seconds=self.budget.left).proved

    def ill_defined(
        self, outcomes: Sequence[Outcome], relation_of: Callable[[Any], tuple[str, Relation] | None]
    ) -> Place | None:
        """Where the first fold is whose value may depend on how the rows are spread."""
        for outcome in outcomes:
            for one in outcome.aggregates:
                place = self._ill_defined_in(one.aggregate.of)
                if place is None and not self._is_well_defined(one.aggregate.summary, type_of(one.value), one.bag):
                    place = one.aggregate.place
                if place is not None:
                    return place
            found = relation_of(outcome.result)
            place = None if found is None else self._ill_defined_in(found[1])
            if place is not None:
                return place
        return None

    def _ill_defined_in(self, relation: Relation) -> Place | None:
        if isinstance(relation, Grouped):
            bag = self.meaning.bag(relation)
            atom = bag.terms[0].over[0].atom
            plain = replace(atom.inner, terms=tuple(replace(term, row=term.row[1]) for term in atom.inner.terms))
            for summary, type_ in zip(relation.summaries, atom.type[1:], strict=True):
                if not self._is_well_defined(summary, type_, plain):
                    return relation.place
        return next(filter(None, map(self._ill_defined_in, relation.parts)), None)

    def _is_well_defined(self, summary: Summary, type_: Any, bag: Bag) -> bool:
        if not isinstance(summary, Fold) or not bag.terms:
            return True
        value = self._value_type(summary, bag)
        return laws.is_well_defined(summary, type_, value, budget=self.budget).proved

    def _value_type(self, fold: Fold, bag: Bag) -> Any:
        keyed = replace(bag, terms=tuple(replace(term, row=(None, term.row)) for term in bag.terms))
        return self.meaning.type_of_summary(replace(fold, needs_row=True, start=None), keyed)

    def _machine(self, known: Known) -> machines.Machine:
        summary, type_ = known.aggregate.summary, type_of(known.value)
        meaning = self.meaning
        match summary:
            case Total(number, None):
                made = machines.machine(meaning, "?", known.bag, 0, _plus, type_, number)
            case Fold(needs_row=False):
                made = machines.machine(meaning, "?", known.bag, summary.start, summary.add, type_, summary.value)
            case Extreme(value, greatest):
                return self._of_rows(known, _greater if greatest else _smaller, value)
            case Fold():
                return self._of_rows(known, summary.add, summary.value)
            case _:
                raise UnsupportedError(
                    "a fold", needed="a sum, a fold, a least or greatest value", came=summary.name, hint=""
                )
        return replace(made, state=known.value)

    def _of_rows(self, known: Known, add: Callable[..., Any], value: Any) -> machines.Machine:
        """A machine whose first state is its first value: before that it only knows that there was none."""
        type_ = type_of(known.value)
        start = (False, _some_value(type_))
        made = machines.machine(self.meaning, "?", known.bag, start, _first_or(add), (bool, type_), value)
        name = str(next(iter(constants(known.value)), "?"))
        return replace(made, state=(SymbolicBool(z3.Bool(f"{name}.any")), known.value))

    # -- relations ---------------------------------------------------------------------------------------------------

    def same_relations(self, left: Relation, right: Relation, given: Sequence[Truth]) -> Difference | None:
        """None if the relations are proved to have the same rows, as often."""
        return self.same_bags(self.meaning.bag(left), self.meaning.bag(right), given)

    def same_bags(self, left: Bag, right: Bag, given: Sequence[Truth]) -> Difference | None:
        """None if the bags are proved to be equal."""
        left, right = self._with_common_atoms(left, right, given)
        found = same_bags(left, right, given=given, budget=self.budget)
        if found is None:
            self.methods.add("rows")
        return found

    def _with_common_atoms(self, left: Bag, right: Bag, given: Sequence[Truth]) -> tuple[Bag, Bag]:
        """The same bags, where distinct and grouped relations that are proved to be equal are one."""
        left, right = self._with_narrow_atoms(left), self._with_narrow_atoms(right)
        others = _wholes(right)
        for atom in _wholes(left):
            for other in others:
                if other is atom:
                    continue
                common = self._common(atom, other, given)
                if common is not None:
                    made, mine, theirs = common
                    left, right = _exchanged(left, atom, made, mine), _exchanged(right, other, made, theirs)
                    others = [one for one in others if one is not other]
                    break
        return left, right

    def _with_narrow_atoms(self, bag: Bag) -> Bag:
        """The same bag, where what is asked of the key of a group, or of a distinct row, is asked before.

        A group of which only the key is used is a distinct key.
        """
        terms = []
        for term in bag.terms:
            made = term
            for one in term.over:
                if isinstance(one.atom.relation, Grouped | Distinct) and one.atom.of is not None:
                    made = self._narrowed(made, one)
            terms.append(made)
        return replace(bag, terms=tuple(terms))

    def _narrowed(self, term: Term, one: Variable) -> Term:
        is_group = isinstance(one.atom.relation, Grouped)
        key = one.row[0] if is_group else one.row
        inner = one.atom.inner if is_group else replace(one.atom.inner, terms=_paired(one.atom.inner.terms))
        names = {constant.get_id() for constant in constants(key)}
        parts = list(term.guard.children()) if z3.is_and(term.guard) else [term.guard]
        told = [part for part in parts if _speaks_of(part, names)]
        rest = [part for part in parts if not any(part is other for other in told)]
        values = {constant.get_id() for constant in constants(one.row)} - names
        used = {c.get_id() for c in constants_in([conjunction(rest), *_terms_of(term.row)])}
        only_key = is_group and not values & used
        if not told and not only_key:
            return term
        asked = conjunction(told)
        kept = []
        for each in inner.terms:
            pairs = _equal_parts(key, each.row[0])
            if pairs is None:
                return term
            kept.append(
                replace(each, guard=conjunction((each.guard, z3.substitute(asked, *pairs) if pairs else asked)))
            )
        keyed = replace(inner, terms=tuple(kept))
        if is_group and not only_key:
            atom = replace(one.atom, name=f"{one.atom.name}/{next(self._names)}", of=keyed, member=_member(one.row))
            over = tuple(Variable(atom, one.row) if each is one else each for each in term.over)
        else:
            relation = Distinct(one.atom.relation)
            name = f"keys{next(self._names)}"
            atom = Atom(name, type_of(key), relation, _keys(keyed), _member(key))
            over = tuple(Variable(atom, key) if each is one else each for each in term.over)
        return Term(over, conjunction(rest), term.row)

    def _common(self, one: Atom, other: Atom, given: Sequence[Truth]) -> tuple[Atom, Any, Any] | None:
        """An atom that can stand for both, and how the row of each is read from its rows; None if they differ."""
        match one.relation, other.relation:
            case Distinct(), Distinct():
                left, right = self._with_common_atoms(_flat(one.inner), _flat(other.inner), given)
                if one.type == other.type and same_sets(left, right, given=given, budget=self.budget) is None:
                    self.methods.add("sets")
                    return one, _whole_row, _whole_row
            case Grouped() as mine, Grouped() as theirs:
                return self._common_groups(one, mine, other, theirs, given)
            case First() as mine, First() as theirs:
                if mine.count == theirs.count and mine.descending is theirs.descending:
                    return self._common_first(one, mine, other, theirs, given)
        return None

    def _common_first(
        self, one: Atom, mine: First, other: Atom, theirs: First, given: Sequence[Truth]
    ) -> tuple[Atom, Any, Any] | None:
        if one.type != other.type or self.same_bags(one.inner, other.inner, given) is not None:
            return None
        row = variable(one.type, "?first")
        law = laws._Law(self.budget)
        same_key = law.same(lambda: law.of(mine.key, row), lambda: law.of(theirs.key, row))
        if not same_key.proved:
            return None
        twin = variable(one.type, "?other")
        keys, others = list(law.of(mine.key, row)), list(law.of(mine.key, twin))
        # Of rows with equal keys any may be taken; so they must be equal rows.
        claim = conjunction(
            z3.Implies(conjunction((guard, other_guard, same(key, other_key))), same(row, twin))
            for guard, key in keys
            for other_guard, other_key in others
        )
        return (one, _whole_row, _whole_row) if prove(claim, given=given, seconds=self.budget.left).proved else None

    def _common_groups(
        self, one: Atom, mine: Grouped, other: Atom, theirs: Grouped, given: Sequence[Truth]
    ) -> tuple[Atom, Any, Any] | None:
        left, right = self._with_common_atoms(one.inner, other.inner, given)
        if one.type[0] != other.type[0]:
            return None
        if same_sets(_flat(_keys(left)), _flat(_keys(right)), given=given, budget=self.budget) is not None:
            return None
        width = len(one.type)
        type_ = (*one.type, *other.type[1:])
        template = variable(type_, f"?groups{next(self._names)}")
        known = self._group_facts(template[0], left, mine.summaries, template[1:width], given)
        known += self._group_facts(template[0], right, theirs.summaries, template[width:], given)
        facts = list(sums.facts(known, given=given, budget=self.budget))
        facts += self._same_folds(
            template[0], left, mine.summaries, template[1:width], right, theirs.summaries, template[width:]
        )
        names = constants(template)

        def known_of(row: Row) -> list[Truth]:
            renaming = list(zip(names, constants(row), strict=True))
            return [z3.substitute(fact, *renaming) for fact in facts]

        sorts = [constant.sort() for constant in constants(template)]
        name = f"groups{next(self._names)}"
        made = Atom(name, type_, mine, one.of, z3.Function(f"in {name}", *sorts, z3.BoolSort()), known_of)
        self.methods.add("groups")
        return made, lambda row: row[:width], lambda row: (row[0], *row[width:])

    def _group_facts(
        self, key: Row, keyed: Bag, summaries: Sequence[Summary], values: Sequence[Row], given: Sequence[Truth]
    ) -> list[sums.Sum]:
        here = _with_key(keyed, key)
        found = []
        for summary, value in zip(summaries, values, strict=True):
            for constant, number in self._totals(summary, value):
                found.append(sums.Sum(constant, sums.summands(self.meaning, here, number, conjunction(given))))
        return found

    def _same_folds(
        self, key: Row, left: Bag, mine: Any, my_values: Any, right: Bag, theirs: Any, their_values: Any
    ) -> list[Truth]:
        """Which summaries that are no sums are equal, for rows of one key."""
        facts = []
        my_bag, their_bag = _with_key(left, key), _with_key(right, key)
        for (summary, value), (other, other_value) in itertools.product(
            zip(mine, my_values, strict=True), zip(theirs, their_values, strict=True)
        ):
            if type_of(value) != type_of(other_value) or isinstance(summary, Total) or isinstance(other, Total):
                continue
            one = Known(Aggregate(_NOTHING, summary), value, my_bag)
            two = Known(Aggregate(_NOTHING, other), other_value, their_bag)
            try:
                pair = [self._machine(one), self._machine(two)]
                # A group has a row, so what it is without one does not matter.
                empty = [
                    negation(term_of(each.state[0]))
                    for each, own in zip(pair, (value, other_value), strict=True)
                    if each.state is not own
                ]
                claim = either(*empty, same(value, other_value))
                if machines.always(pair, claim, budget=self.budget):
                    facts.append(same(value, other_value))
            except UnsupportedError:
                continue
        return facts


_NOTHING: Any = None


def _plus(total: Any, number: Any) -> Any:
    return total + number


def _greater(best: Any, value: Any) -> Any:
    return value if value > best else best


def _smaller(best: Any, value: Any) -> Any:
    return value if value < best else best


def _first_or(add: Callable[..., Any]) -> Callable[..., Any]:
    return lambda state, value: (True, add(state[1], value) if state[0] else value)


def _some_value(type_: Any) -> Any:
    """Any value of a type: it stands where there is none yet."""
    if isinstance(type_, tuple):
        return tuple(map(_some_value, type_))
    return type_() if isinstance(type_, type) and type_ is not type(None) else None


def _row(result: Any) -> Row:
    return tuple(_row(part) for part in result) if isinstance(result, tuple | list) else result


def _places(row: Row) -> list[tuple[int, ...]]:
    """Where the leaves of a row are."""
    if not isinstance(row, tuple):
        return [()]
    return [(place, *inner) for place, part in enumerate(row) for inner in _places(part)]


def _at(row: Row, place: tuple[int, ...]) -> Any:
    for step in place:
        row = row[step]
    return row


def _leaves(type_: Any) -> list[Any]:
    return [leaf for part in type_ for leaf in _leaves(part)] if isinstance(type_, tuple) else [type_]


def _added_by(fold: Fold, place: tuple[int, ...]) -> Callable[..., Any]:
    """The number that a row adds to a part of the state."""
    add, start, value = fold.add, fold.start, fold.value

    def added(row: Any) -> Any:
        part = row if value is None else value(row)
        state = part if start is None else add(start, part)
        for step in place:
            state = state[step]
        return state

    return added


def _wholes(bag: Bag) -> list[Atom]:
    """The distinct and grouped relations that its variables range over."""
    found = {one.atom.name: one.atom for term in bag.terms for one in term.over if one.atom.of is not None}
    return list(found.values())


def _exchanged(bag: Bag, atom: Atom, made: Atom, read: Callable[[Row], Row]) -> Bag:
    """The bag with variables over another atom, whose rows hold those of the first."""

    def exchanged(term: Term) -> Term:
        over, guard, row = [], term.guard, term.row
        for one in term.over:
            if one.atom is not atom:
                over.append(one)
                continue
            name = str(constants(one.row)[0]) if constants(one.row) else made.name
            wider = Variable(made, variable(made.type, f"{name}'"))
            renaming = list(zip(constants(one.row), constants(read(wider.row)), strict=True))
            guard = z3.substitute(guard, *renaming)
            row = renamed(row, renaming)
            over.append(wider)
        return Term(tuple(over), guard, row)

    return Bag(tuple(map(exchanged, bag.terms)), tuple(map(exchanged, bag.failures)))


def _whole_row(row: Row) -> Row:
    return row


def _flat(bag: Bag) -> Bag:
    """A bag with the same rows, perhaps more often: a variable over a distinct relation is one over its own terms."""
    for place, term in enumerate(bag.terms):
        for one in term.over:
            if not isinstance(one.atom.relation, Distinct) or one.atom.of is None:
                continue
            made = []
            for inner in one.atom.inner.terms:
                pairs = _equal_parts(one.row, inner.row)
                if pairs is None:
                    return bag
                others = tuple(each for each in term.over if each is not one)
                guard = conjunction((z3.substitute(term.guard, *pairs) if pairs else term.guard, inner.guard))
                made.append(Term((*others, *inner.over), guard, renamed(term.row, pairs) if pairs else term.row))
            return _flat(replace(bag, terms=(*bag.terms[:place], *made, *bag.terms[place + 1 :])))
    return bag


def _equal_parts(variable_row: Row, row: Row) -> list[tuple[Any, Any]] | None:
    """The terms that take the place of the constants of a variable; None if a row has no such parts."""
    if isinstance(variable_row, tuple):
        if not isinstance(row, tuple) or len(row) != len(variable_row):
            return None
        parts = [_equal_parts(mine, theirs) for mine, theirs in zip(variable_row, row, strict=True)]
        return None if None in parts else [pair for part in parts if part is not None for pair in part]
    if isinstance(variable_row, Maybe) and not isinstance(row, tuple):
        if row is None:
            return [(variable_row.null, YES)]
        null, value = (row.null, row.value) if isinstance(row, Maybe) else (NO, row)
        inner = _equal_parts(variable_row.value, value)
        return None if inner is None else [(variable_row.null, null), *inner]
    if isinstance(variable_row, Symbolic) and row is not None and not isinstance(row, Maybe | tuple):
        term = term_of(row)
        return [(variable_row._term, term)] if term.sort() == variable_row._term.sort() else None
    if variable_row is None and row is None:
        return []
    return None


def _paired(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Each row as its own key."""
    return tuple(replace(term, row=(term.row, term.row)) for term in terms)


def _speaks_of(part: Truth, names: set[int]) -> bool:
    """Whether a formula is about these constants, and no others."""
    used = {constant.get_id() for constant in constants_in([part])}
    return bool(used) and used <= names


def _terms_of(row: Row) -> list[Any]:
    if isinstance(row, tuple):
        return [term for part in row for term in _terms_of(part)]
    if isinstance(row, Maybe):
        return [row.null, row.value._term]
    return [row._term] if isinstance(row, Symbolic) else []


_members = itertools.count()


def _member(row: Row) -> Any:
    sorts = [constant.sort() for constant in constants(row)]
    return z3.Function(f"in part {next(_members)}", *sorts, z3.BoolSort()) if sorts else None


def _keys(keyed: Bag) -> Bag:
    return replace(keyed, terms=tuple(replace(term, row=term.row[0]) for term in keyed.terms))


def _with_key(keyed: Bag, key: Row) -> Bag:
    """The rows that have this key."""
    return replace(
        keyed,
        terms=tuple(
            replace(term, guard=conjunction((term.guard, same(term.row[0], key))), row=term.row[1])
            for term in keyed.terms
        ),
    )
