"""Are two programs that were read equal on every input?

A program that was read is a list of outcomes: under a condition on its aggregates, a result. Two programs are equal if
any two outcomes that are possible together have the same result. Bags are compared row by row (bags.py), after their
terms were made simpler (normal.py); what is known of sums and folds is found where it is needed (summaries.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import z3

from streamtight.errors import EncodingError, StreamtightError, UnsupportedError
from streamtight.program.relation import Aggregate, First, Fold, Grouped, NoRowError, Place, Relation, Summary
from streamtight.solver import laws, machines
from streamtight.solver.ask import Answer, Budget, check, prove
from streamtight.solver.axioms import Axioms, at_most, order_assumptions
from streamtight.solver.bags import Difference, same_bags, same_failures, same_sets
from streamtight.solver.normal import (
    Narrowing,
    flat,
    is_duplicate_free,
    unfolded,
    with_asked,
    with_atom,
    without_determined,
)
from streamtight.solver.summaries import Application, Summaries, applications
from streamtight.solver.symbolic.read import explore
from streamtight.solver.symbolic.trees import python_value, with_leaves
from streamtight.solver.symbolic.values import term_of
from streamtight.solver.terms import Atom, Bag, Group, Meaning, Term
from streamtight.solver.values import (
    NO,
    Row,
    Truth,
    conjunction,
    fitted,
    leaves,
    same,
    terms_in,
    type_of,
    values_in,
    variable,
)

Value = Callable[[Aggregate], Any]
RelationOf = Callable[[Any], tuple[str, Relation] | None]
"""Tells a result that is a relation, and as what, from a value."""

METHODS = {
    "rows": "rows compared one by one",
    "sets": "what comes once at most compared as sets",
    "sums": "totals compared by what each row adds",
    "groups": "groups compared for an arbitrary key",
    "folds": "folds compared by an invariant of their states",
    "values": "values compared",
}
"""How programs are proved to be equal."""
NO_ERROR = "no value makes one of them raise"
QUICK = 0.5
"""So many seconds for a question that only helps."""


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """An aggregate of a program, the constants that stand for its value, and the rows that it is of."""

    aggregate: Aggregate
    value: Row
    group: Group
    failures: tuple[Term, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """What a program gives where the guard is true."""

    guard: Truth
    result: Any
    raised: Exception | None
    aggregates: tuple[Known, ...]

    def is_taken(self, values: Sequence[Any]) -> bool:
        """Whether this is what happens if the aggregates have these values."""
        if len(values) != len(self.aggregates):
            return False
        return bool(z3.is_true(z3.simplify(z3.substitute(self.guard, *self._pairs(values)))))

    def result_at(self, values: Sequence[Any]) -> Any:
        """The result, if the aggregates have these values."""
        pairs = self._pairs(values)
        return with_leaves(self.result, lambda leaf: python_value(z3.simplify(z3.substitute(term_of(leaf), *pairs))))

    def _pairs(self, values: Sequence[Any]) -> list[tuple[Any, Any]]:
        return [
            pair
            for known, value in zip(self.aggregates, values, strict=True)
            for pair in zip(terms_in(known.value), fitted(value, type_of(known.value)), strict=True)
        ]


class Equivalence:
    """Reads programs and compares them, in a number of seconds."""

    def __init__(self, budget: Budget, *, overflows: bool = False) -> None:
        self.budget = budget
        self.meaning = Meaning(budget, overflows=overflows)
        self.methods: set[str] = set()
        """What was needed for the proof: names of `METHODS`."""
        self.paper_class = ""
        self._narrowing = Narrowing(self.meaning)
        self._summaries = Summaries(self.meaning, budget, self._simple, self._common)
        self._axioms = Axioms(self.meaning, budget, self._summaries.additions)
        self._equal_atoms: dict[tuple[str, str], bool] = {}
        self._unique: dict[str, bool] = {}

    @property
    def proof(self) -> str:
        """How the programs were proved to be equal, and their class in the paper of SparkLite, if they have one."""
        told = "; ".join(text for name, text in METHODS.items() if name in self.methods) or "nothing comes out of both"
        return f"{self.paper_class}: {told}" if self.paper_class else told

    # -- reading -----------------------------------------------------------------------------------------------------

    def outcomes(self, run: Callable[[Value], Any], name: str) -> list[Outcome]:
        """All outcomes of a program, which is given what stands for its aggregates."""
        ended: list[tuple[Any, tuple[Known, ...]]] = []

        def call() -> None:
            known: list[Known] = []

            def value(aggregate: Aggregate) -> Any:
                known.append(self._known(aggregate, f"{name}{len(known)}"))
                return known[-1].value

            result = None
            try:
                result = run(value)
            except Exception as error:
                _require_foreign(error)
                raise
            finally:
                ended.append((result, tuple(known)))

        paths = explore(call, budget=self.budget)
        self.meaning.assumptions |= {assumed for path in paths for assumed in path.assumes}
        return [
            Outcome(path.guard, result, path.raised, known) for path, (result, known) in zip(paths, ended, strict=True)
        ]

    def _known(self, aggregate: Aggregate, name: str) -> Known:
        bag = self.meaning.bag(aggregate.of)
        keyed = replace(bag, terms=tuple(replace(term, row=((), term.row)) for term in bag.terms))
        group = self.meaning.group(name, keyed, (aggregate.summary,))
        failures = (*bag.failures, *self.meaning.failing(keyed, group.summaries))
        return Known(aggregate, group.at(())[0], group, failures)

    def rows_on_paths(self, most: int) -> Iterator[list[tuple[str, Any]]]:
        """Rows of inputs, each with the name of its input, for each way that rows take through the functions.

        What was proved says that nothing differs there; to run the programs on these rows is to ask once more.
        """
        for term in itertools.islice(list(self.meaning.paths.values()), most):
            solver = z3.Solver()
            solver.add(term.guard, *(fact for one in term.over for fact in one.atom.facts(one.row)))
            if check(solver, min(0.05, self.budget.left))[0] == z3.sat:
                model = solver.model()
                yield [(one.atom.name, values_in(one.row, model)) for one in term.over if one.atom.of is None]

    # -- comparing ---------------------------------------------------------------------------------------------------

    def difference(
        self, left: Sequence[Outcome], right: Sequence[Outcome], relation_of: RelationOf
    ) -> Difference | None:
        """None if the programs are proved to be equal."""
        for one, other in itertools.product(left, right):
            found = self._pair(one, other, relation_of)
            if found is not None:
                return found
        self.paper_class = self._class_of(left, right, relation_of)
        return None

    def _class_of(self, left: Sequence[Outcome], right: Sequence[Outcome], relation_of: RelationOf) -> str:
        """The class of Table 1 of the paper, whose programs have no groups."""
        relations = [one.aggregate.of for outcome in (*left, *right) for one in outcome.aggregates]
        results = [relation_of(outcome.result) for outcome in (*left, *right)]
        relations += [found[1] for found in results if found is not None]
        if any(map(_sums_up, relations)):
            return ""
        sides = [{_place_of(one) for outcome in side for one in outcome.aggregates} for side in (left, right)]
        most = max(map(len, sides))
        if most == 0:
            return "NoAgg"
        if most > 1:
            return "Agg^n"
        if any(found is not None for found in results):
            return "Agg1R"
        return "AggPairSync1" if self._is_synchronous(left, right) else "Agg1"

    def _is_synchronous(self, left: Sequence[Outcome], right: Sequence[Outcome]) -> bool:
        """Whether two steps of both folds are as one (Definition 1 of the paper)."""
        known = [one for side in (left, right) for one in side[0].aggregates]
        if len(known) != 2:
            return False
        try:
            made = [self._summaries.machine_of(Application(one.group, ()), f"?{n}") for n, one in enumerate(known)]
            return machines.is_synchronous(made, budget=self.budget.part(QUICK))
        except UnsupportedError:
            return False

    def _pair(self, left: Outcome, right: Outcome, relation_of: RelationOf) -> Difference | None:
        known = (*left.aggregates, *right.aggregates)
        for one in known:
            self.meaning.enter(one.group)
        guards = [left.guard, right.guard]
        if self._ask(z3.Not(conjunction(guards)), [], with_invariants=False).proved:
            return None
        given = guards
        mine, theirs = relation_of(left.result), relation_of(right.result)
        found = self._same_failures(left, right, mine, theirs, given)
        if found is not None:
            return found
        if left.raised is not None or right.raised is not None:
            if left.raised is not None and right.raised is not None:
                return None
            return self._claimed(known, NO, given, "one of them raises where the other does not")
        if (mine is None) is not (theirs is None):
            return Difference("one of them gives rows, the other a value")
        if mine is not None and theirs is not None:
            if mine[0] != theirs[0]:
                return Difference(f"one of them gives a {mine[0]}, the other a {theirs[0]}")
            return self._same_bags(self.meaning.bag(mine[1]), self.meaning.bag(theirs[1]), given)
        return self._claimed(known, same(_row(left.result), _row(right.result)), given, "their values differ")

    def _same_failures(
        self,
        left: Outcome,
        right: Outcome,
        mine: tuple[str, Relation] | None,
        theirs: tuple[str, Relation] | None,
        given: Sequence[Truth],
    ) -> Difference | None:
        """None if a function inside of one raises whenever one inside of the other does."""
        found = []
        for outcome, relation in ((left, mine), (right, theirs)):
            failures = [term for one in outcome.aggregates for term in one.failures]
            if relation is not None:
                failures += self.meaning.bag(relation[1]).failures
            found.append(flat(Bag(tuple(failures)), self.meaning).terms)
        return same_failures(found[0], found[1], self._asking(given))

    def _claimed(self, known: Sequence[Known], claim: Truth, given: Sequence[Truth], text: str) -> Difference | None:
        answer = self._ask(claim, given)
        if answer.proved:
            self.methods |= set() if known else {"values"}
            return None
        return Difference(text if answer.refuted else f"{text}, or the solver does not find out: {answer.reason}")

    # -- questions -----------------------------------------------------------------------------------------------------

    def _asking(self, given: Sequence[Truth]) -> Callable[[Truth, Sequence[Truth]], Answer]:
        return lambda claim, known: self._ask(claim, [*given, *known])

    def _ask(self, claim: Truth, given: Sequence[Truth], *, with_invariants: bool = True) -> Answer:
        """Is the claim true wherever what is given is? Where it speaks of groups, by what is known of their values."""
        groups = applications([claim, *given], self.meaning.groups)
        answer = prove(claim, given=given, seconds=min(self.budget.left, 2.0 if groups else 60.0))
        if answer.proved:
            return answer
        facts: list[Truth] = []
        for found in self._summaries.facts(groups, given) if groups else ():
            facts += found
            answer = prove(claim, given=[*given, *facts], seconds=min(self.budget.left, 2.0)) if found else answer
            if answer.proved:
                self.methods.add("groups" if any(one.key for one in groups) else "sums")
                return answer
        axioms = self._axioms.about([claim, *given])
        known = [*given, *facts, *axioms]
        if axioms and prove(claim, given=known, seconds=min(self.budget.left, 1.0), by_matching=True).proved:
            self.methods.add("groups" if groups else "sets")
            return Answer()
        try:
            holds = self._always(groups, claim, given) if groups and with_invariants else None
        except UnsupportedError:
            holds = None
        return Answer() if holds else answer

    def _quick(self, claim: Truth, given: Sequence[Truth]) -> Answer:
        return prove(claim, given=given, seconds=min(self.budget.left, QUICK))

    def _always(self, groups: Sequence[Application], claim: Truth, given: Sequence[Truth]) -> bool | None:
        """Whether a claim about the values of groups holds whatever rows they have: an invariant is looked for."""
        holds = self._summaries.always(groups, claim, [fact for fact in given if not _has_quantifier(fact)])
        if holds:
            self.methods.add("folds")
        return holds

    # -- aggregates --------------------------------------------------------------------------------------------------

    def ill_defined(self, outcomes: Sequence[Outcome], relation_of: RelationOf) -> Place | None:
        """Where the first fold is whose value may depend on how the rows are spread."""
        for outcome in outcomes:
            for one in outcome.aggregates:
                place = self._ill_defined_in(one.aggregate.of)
                if place is None and not self._is_well_defined(one.group.summaries[0], one.group.types[0], one.group):
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
            terms = self.meaning.bag(relation).terms  # none, if no row comes through
            for group in terms[0].over[0].atom.groups if terms else ():
                for summary, type_ in zip(group.summaries, group.types, strict=True):
                    if not self._is_well_defined(summary, type_, group):
                        return relation.place
        return next(filter(None, map(self._ill_defined_in, relation.parts)), None)

    def _is_well_defined(self, summary: Summary, type_: Any, group: Group) -> bool:
        if not isinstance(summary, Fold) or not group.keyed.terms:
            return True
        terms = [replace(term, row=term.row[1]) for term in group.keyed.terms]
        return laws.is_well_defined(summary, type_, self._values(summary, terms), budget=self.budget).proved

    def _values(self, fold: Fold, terms: Sequence[Term]) -> list[Term]:
        """What of each row is added to a fold."""
        if fold.value is None:
            return list(terms)
        return [
            Term(term.over, conjunction((term.guard, guard)), result)
            for term in terms
            for guard, result, raised in self.meaning.applied(fold.value, (term.row,), term.guard)
            if raised is None
        ]

    # -- relations ---------------------------------------------------------------------------------------------------

    def same_relations(
        self, left: Relation, right: Relation, given: Sequence[Truth], *, errors_count: bool = True
    ) -> Difference | None:
        """None if the relations are proved to have the same rows, as often.

        If errors do not count, only for rows on which nothing raises; where that matters, it is an assumption.
        """
        self.paper_class = "" if _sums_up(left) or _sums_up(right) else "NoAgg"
        one, other = self.meaning.bag(left), self.meaning.bag(right)
        failures = [flat(Bag(bag.failures), self.meaning).terms for bag in (one, other)]
        found = same_failures(failures[0], failures[1], self._asking(given))
        if found is not None and errors_count:
            return found
        if found is not None:
            self.meaning.assumptions.add(NO_ERROR)
        return self._same_bags(one, other, given)

    def _same_bags(self, left: Bag, right: Bag, given: Sequence[Truth]) -> Difference | None:
        ask = self._asking(given)
        left, right = (replace(bag, terms=tuple(self._unfolded(bag.terms))) for bag in (left, right))
        mine, theirs = self._common([[self._simple(term) for term in bag.terms] for bag in (left, right)])
        one, other = replace(left, terms=tuple(mine)), replace(right, terms=tuple(theirs))
        found = same_bags(one, other, ask)
        if found is None:
            self.methods.add("rows")
            return None
        if not all(is_duplicate_free(bag, self.meaning, self._quick) for bag in (one, other)):
            return found
        if same_sets(flat(left, self.meaning), flat(right, self.meaning), ask) is None:
            self.methods.add("sets")
            return None
        return found

    def _unfolded(self, terms: Sequence[Term]) -> Iterator[Term]:
        """The same terms; where nothing would come twice anyway, to make it distinct is to do nothing."""
        for term in terms:
            one = next((each for each in term.over if each.atom.is_distinct and self._is_unique(each.atom)), None)
            if one is None:
                yield term
            else:
                yield from self._unfolded(list(unfolded(term, one, self.meaning)))

    def _is_unique(self, atom: Atom) -> bool:
        if atom.name not in self._unique:
            self._unique[atom.name] = is_duplicate_free(Bag(atom.inner.terms), self.meaning, self._quick)
        return self._unique[atom.name]

    def _simple(self, term: Term) -> Term:
        return self._narrowing.term(without_determined(term, self.meaning, self._quick))

    def _common(self, bags: Sequence[Sequence[Term]]) -> list[list[Term]]:
        """The same terms, where atoms that are proved to have the same rows are one."""
        found: list[Atom] = []
        made = [list(terms) for terms in bags]
        for atom in {one.atom.name: one.atom for terms in bags for term in terms for one in term.over}.values():
            if atom.of is None:
                continue
            twin = next((other for other in found if self._is_same_atom(atom, other)), None)
            if twin is None:
                found.append(atom)
            else:
                made = [[with_atom(term, atom, twin, self.meaning) for term in terms] for terms in made]
        atoms = {one.atom.name: one.atom for terms in made for term in terms for one in term.over if one.atom.asked}
        return [with_asked(terms, atoms) for terms in made]

    def _is_same_atom(self, one: Atom, other: Atom) -> bool:
        pair = (one.name, other.name)
        if pair not in self._equal_atoms:
            self._equal_atoms[pair] = False  # while it is being asked
            self._equal_atoms[pair] = self._has_same_rows(one, other)
        return self._equal_atoms[pair]

    def _has_same_rows(self, one: Atom, other: Atom) -> bool:
        if leaves(one.type) != leaves(other.type) or one.is_distinct is not other.is_distinct:
            return False
        if not one.is_distinct:
            return self._is_same_first(one, other)
        bags = [flat(Bag(atom.inner.terms), self.meaning) for atom in (one, other)]
        like = replace(bags[1], terms=tuple(_shaped(term, other.type, one.type) for term in bags[1].terms))
        same_rows = same_sets(bags[0], like, self._asking([])) is None
        if same_rows:
            self.methods.add("sets")
        return same_rows

    def _is_same_first(self, one: Atom, other: Atom) -> bool:
        mine, theirs = one.relation, other.relation
        if not isinstance(mine, First) or not isinstance(theirs, First) or one.type != other.type:
            return False
        if mine.count != theirs.count or mine.descending is not theirs.descending:
            return False
        if self._same_bags(one.inner, other.inner, []) is not None:
            return False
        # Of rows with equal keys any may be taken; so they must be equal rows.
        a, b = variable(one.type, "?a"), variable(one.type, "?b")
        self.meaning.assumptions |= order_assumptions(a)
        try:
            key, other_key = (laws.as_rows(each.key, (one.type,), self.budget) for each in (mine, theirs))
            claim = z3.Implies(same(key(a), key(b)), same(a, b))
            same_order = at_most(key(a), key(b)) == at_most(other_key(a), other_key(b))
        except UnsupportedError:
            return False
        return prove(conjunction((claim, same_order)), seconds=self.budget.left).proved


def _row(result: Any) -> Row:
    return tuple(_row(part) for part in result) if isinstance(result, tuple | list) else result


def _sums_up(relation: Relation) -> bool:
    """Whether groups or first rows are in it."""
    return isinstance(relation, Grouped | First) or any(map(_sums_up, relation.parts))


def _place_of(known: Known) -> tuple[Any, ...]:
    """What the user wrote: a mean is one aggregate, though it is a sum and a count."""
    return known.aggregate.place.file, known.aggregate.place.line, id(known.aggregate.of)


def _require_foreign(error: Exception) -> None:
    """Raise if an exception comes from this package: only what the user's code raises is a result."""
    if isinstance(error, StreamtightError | NoRowError):
        return
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = frame.tb_frame.f_globals.get("__name__", "") if frame is not None else ""
    if where.startswith("streamtight.") and not where.startswith("streamtight.solver.symbolic."):
        raise EncodingError(
            "reading a program", needed="no error", came=repr(error), hint="report this with the program"
        ) from error


def _shaped(term: Term, old: Any, new: Any) -> Term:
    """The term with a row of another shape that has the same values in it."""
    return term if old == new else replace(term, row=_refill(new, iter(leaves(term.row))))


def _refill(type_: Any, leaves: Any) -> Row:
    return tuple(_refill(part, leaves) for part in type_) if isinstance(type_, tuple) else next(leaves)


def _has_quantifier(formula: Truth) -> bool:
    return z3.is_quantifier(formula) or any(map(_has_quantifier, formula.children()))
