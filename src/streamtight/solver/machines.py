"""Folds as machines that read the rows one after the other: is a claim about their final states always true?

All machines step together, on the same arbitrary row. A claim holds for every input if there is an invariant of the
states: it holds at the start, every step keeps it, and it implies the claim. Z3's Horn solver looks for one. This is
the induction of the paper of SparkLite (section 3.2), where the invariant need not be the claim itself; it covers its
classes Agg1, AggPairSync1, Agg1R and Agg^n for folds over rows of inputs.

A fold has a state that does not depend on the order of the rows only if it is well defined; see laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from streamtight.errors import UnsupportedError
from streamtight.solver.ask import Budget, check, prove
from streamtight.solver.bags import instances
from streamtight.solver.symbolic.values import term_of
from streamtight.solver.terms import Atom, Bag, Meaning, Variable
from streamtight.solver.values import (
    Maybe,
    Row,
    Truth,
    conjunction,
    constants,
    constants_in,
    fitted,
    number,
    type_of,
    variable,
)


@dataclass(frozen=True, slots=True, eq=False)
class Machine:
    """A fold over a bag: its state, its start, and what a row of the bag does to the state."""

    state: Row
    """Constants that stand for the state, and in claims for what it is at the end."""
    start: Row
    bag: Bag
    add: Callable[[Row, Row, Truth], Row]
    """The next state, for a state and a row, where a guard is known."""


def always(machines: Sequence[Machine], claim: Truth, *, given: Sequence[Truth] = (), budget: Budget) -> bool | None:
    """Whether the claim about the final states holds for every input; None if that is not known."""
    state = [constant for machine in machines for constant in constants(machine.state)]
    start = [term for machine in machines for term in fitted(machine.start, type_of(machine.state))]
    steps = []
    for atom in _atoms(machines):
        one = Variable(atom, variable(atom.type, f"{atom.name}~"))
        after = [term for machine in machines for term in fitted(_stepped(machine, one), type_of(machine.state))]
        steps.append((constants(one.row), after))
    # What else is spoken of, such as another aggregate, stays as it is while rows are read.
    own = {one.get_id() for one in (*state, *(one for row, _ in steps for one in row))}
    told = [claim, *given, *start, *(term for _, after in steps for term in after)]
    fixed = [one for one in constants_in(told) if one.get_id() not in own]
    if any(map(has_predicate, told)):
        raise UnsupportedError("a fold", needed="rows of inputs", came="rows that depend on other rows", hint="a sum")
    reached = z3.Function("reached", *[one.sort() for one in (*state, *fixed)], z3.BoolSort())
    solver = z3.SolverFor("HORN")

    def rule(bound: Sequence[Any], body: Sequence[Truth], head: Truth) -> None:
        implied = z3.Implies(conjunction((*given, *body)), head)
        names = [*bound, *fixed]
        solver.add(z3.ForAll(names, implied) if names else implied)

    here = reached(*state, *fixed)
    rule(state, [], reached(*start, *fixed))
    for row, after in steps:
        rule([*state, *row], [here], reached(*after, *fixed))
    rule(state, [here, z3.Not(claim)], z3.BoolVal(False))
    status, _ = check(solver, budget.left)
    return None if status == z3.unknown else bool(status == z3.sat)


def is_synchronous(pair: Sequence[Machine], *, budget: Budget) -> bool:
    """Whether for any two rows there is one that does to both machines, from their starts, what the two do in turn."""
    atoms = _atoms(pair)
    if len(atoms) != 1:
        return False
    [atom] = atoms
    u, v, w = (Variable(atom, variable(atom.type, f"?{name}")) for name in "uvw")

    def after(machine: Machine, row: Variable, state: Sequence[Any]) -> list[Any]:
        names = constants(machine.state)
        terms = fitted(_stepped(machine, row), type_of(machine.state))
        return [z3.substitute(term, *zip(names, state, strict=True)) for term in terms]

    claims = []
    for machine in pair:
        start = fitted(machine.start, type_of(machine.state))
        twice = after(machine, v, after(machine, u, start))
        claims += [one == two for one, two in zip(after(machine, w, start), twice, strict=True)]
    names = [constants(one.row) for one in (u, v, w)]
    claim = z3.ForAll([*names[0], *names[1]], z3.Exists(names[2], conjunction(claims)))
    return prove(claim, seconds=budget.left).proved


def has_predicate(term: Any) -> bool:
    """Whether a function without a meaning is in it. The Horn solver would choose the meaning that it likes best."""
    waiting, seen = [term], set()
    while waiting:
        one = waiting.pop()
        if one.get_id() in seen:
            continue
        seen.add(one.get_id())
        if z3.is_app(one) and one.num_args() and one.decl().kind() == z3.Z3_OP_UNINTERPRETED:
            return True
        waiting += one.children()
    return False


def machine(
    meaning: Meaning, name: str, bag: Bag, start: Row, add: Callable[..., Any], type_: Any, value: Any = None
) -> Machine:
    """The machine of a fold, whose functions are read as they are needed."""

    def added(state: Row, row: Row, guard: Truth) -> Row:
        values = [(guard, row)]
        if value is not None:
            values = [
                (conjunction((guard, when)), result)
                for when, result, raised in meaning.applied(value, (row,), guard)
                if _returned(raised)
            ]
        after = state
        for here, one in values:
            for when, result, raised in meaning.applied(add, (state, one), here):
                _returned(raised)
                after = chosen(conjunction((here, when)), result, after)
        return after

    return Machine(variable(type_, name), start, bag, added)


def _returned(raised: Exception | None) -> bool:
    if raised is not None:
        raise UnsupportedError("a fold", needed="functions that never raise", came=repr(raised), hint="a test before")
    return True


def _stepped(machine: Machine, row: Variable) -> Row:
    """The state after a row of an atom: each term that reads it does so in turn."""
    state = machine.state
    for term in machine.bag.terms:
        if [one.atom.name for one in term.over] == [row.atom.name]:
            [(guard, made)] = instances(term, [row])
            state = chosen(guard, machine.add(state, made, guard), state)
    return state


def _atoms(machines: Sequence[Machine]) -> list[Atom]:
    found: dict[str, Atom] = {}
    for each in machines:
        for term in each.bag.terms:
            if len(term.over) != 1:
                raise UnsupportedError(
                    "a fold over a product", needed="rows of one input at a time", came="pairs of rows", hint="a sum"
                )
            found[term.over[0].atom.name] = term.over[0].atom
    return list(found.values())


def chosen(guard: Truth, one: Row, other: Row) -> Row:
    """The one row where the guard is true, else the other; both have the type of a state."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return tuple(chosen(guard, mine, theirs) for mine, theirs in zip(one, other, strict=True))
    if isinstance(one, tuple) or isinstance(other, tuple):
        raise UnsupportedError("a fold", needed="states of one shape", came=f"{one!r} and {other!r}", hint="a tuple")
    if one is None and other is None:
        return None
    (null, value), (other_null, other_value) = _parts(one), _parts(other)
    value, other_value = (other_value if value is None else value), (value if other_value is None else other_value)
    if value.sort() != other_value.sort():
        value, other_value = number(value), number(other_value)
    kinds = {z3.IntSort(): int, z3.BoolSort(): bool, z3.StringSort(): str, z3.RealSort(): float}
    made = variable(kinds[value.sort()], "?")
    result = type(made)(z3.If(guard, value, other_value))
    no_value = z3.simplify(z3.If(guard, null, other_null))
    return result if z3.is_false(no_value) else Maybe(no_value, result)


def _parts(leaf: Any) -> tuple[Truth, Any]:
    if leaf is None:
        return z3.BoolVal(True), None
    return (leaf.null, term_of(leaf.value)) if isinstance(leaf, Maybe) else (z3.BoolVal(False), term_of(leaf))
