"""The machines of queries: each query becomes a data transducer, as section 5.3.2 says.

A base query has two machines with one input and one output each: `value_machine` answers with its value, and
`pass_machine` with what it was started with, on the same words. The second one keeps a value while the first reads on:
a split starts both for its right part, with the value of its left part. Both can be restarted, so they can be parts of
machines that cut words into pieces. Sizes are at most quadratic (Theorem 5.7), and no machine has a cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streamtight.errors import QueryError
from streamtight.properties.query import (
    Agree,
    Atom,
    Boolean,
    Combine,
    Comparison,
    Eps,
    Fill,
    FillWith,
    Historically,
    Iter,
    Level,
    Once,
    Or,
    PrefixSum,
    Previously,
    Query,
    Since,
    Split,
)
from streamtight.properties.support import all_of, support
from streamtight.properties.term import AND, EQUAL, OR, Apply, Constant, Slot, Term, apply
from streamtight.properties.transducer import (
    Rule,
    Status,
    Transducer,
    When,
    concatenate,
    copy_rule,
    data_function,
    iterate,
    new,
    old,
    parallel,
    prefix_sum,
    side_by_side,
    union,
)

Tags = tuple[str, ...]
_X, _Y, _Z = Slot(0), Slot(1), Slot(2)
_YES = Constant(1)


def value_machine(query: Query, tags: Tags) -> Transducer:
    """The machine that answers with the value of a query, on every prefix; its input may be any value."""
    match query:
        case Atom(_, term):
            return _of_item(query, term, tags)
        case Eps(term):
            return _two_states(tags, Rule(When.ALWAYS, (new(0),), 1, term))
        case Or(one, other):
            return union(value_machine(one, tags), value_machine(other, tags))
        case Split(one, other, op):
            right = parallel(pass_machine(other, tags), value_machine(other, tags))
            return concatenate(concatenate(value_machine(one, tags), right), data_function(tags, 2, op))
        case Iter(one, start, op):
            begin = data_function(tags, 1, start)
            if one.is_nullable:  # the empty piece can be put anywhere, so every cut is one of many
                return concatenate(concatenate(begin, iterate(_without_empty(one, tags))), _twice(tags))
            piece = concatenate(parallel(pass_machine(one, tags), value_machine(one, tags)), data_function(tags, 2, op))
            return concatenate(begin, iterate(piece))
        case Combine(those, op):
            return _applied(those, op, tags)
        case PrefixSum(one, start, op):
            return _folded([one], start, op, tags)
        case Fill(one):
            return _fill(one, tags)
        case FillWith(one, other):
            return _fill_with(one, other, tags)
        case Comparison(operation, one, other):
            return _applied((one, other), Apply(operation, (_X, _Y)), tags)
        case Agree(one, other):
            return _agree(one, other, tags)
        case Boolean(operation, those):
            return _applied(those, Apply(operation, tuple(Slot(place) for place in range(len(those)))), tags)
        case Previously(one):
            held = _two_states(tags, Rule(When.ITEM, (old(0),), 1, _X))
            false = _two_states(tags, Rule(When.START, (new(0),), 1, Constant(False)))
            return union(concatenate(value_machine(one, tags), held), false)
        case Once(one):
            return _folded([one], Constant(False), apply(OR, _X, _Y), tags)
        case Historically(one):
            return _folded([one], Constant(True), apply(AND, _X, _Y), tags)
        case Since(one, other, is_weak):
            return _folded([one, other], Constant(is_weak), apply(OR, _Z, apply(AND, _Y, _X)), tags)
    raise QueryError(repr(query), needed="a query", came=type(query).__name__, hint="the functions of this module")


def pass_machine(query: Query, tags: Tags) -> Transducer:
    """The machine that answers with what it was started with, on the words on which a base query has a value."""
    match query:
        case Atom():
            return _of_item(query, _X, tags)
        case Eps(_):
            return _two_states(tags, copy_rule(0, 1))
        case Or(one, other):
            return union(pass_machine(one, tags), pass_machine(other, tags))
        case Split(one, other, _):
            return concatenate(pass_machine(one, tags), pass_machine(other, tags))
        case Iter(one, _, _):
            if one.is_nullable:
                return concatenate(iterate(_without_empty(one, tags)), _twice(tags))
            return iterate(pass_machine(one, tags))
        case Combine(those, _):
            return concatenate(
                parallel(*(pass_machine(each, tags) for each in those)), data_function(tags, len(those), _X)
            )
        case PrefixSum():
            return Transducer(tags, ("held",), (Rule(When.ITEM, (old(0),), 0, _X),), (0,), (0,))
    raise QueryError(repr(query), needed="a base query", came=query.level.value, hint="fill outside, split inside")


def _without_empty(query: Query, tags: Tags) -> Transducer:
    """As `pass_machine`, without the empty word, so that it can be iterated without a cycle."""
    match query:
        case Eps(_):
            return Transducer(tags, ("i", "f"), (), (0,), (1,))
        case Or(one, other):
            return union(_without_empty(one, tags), _without_empty(other, tags))
        case Split(one, other, _):
            first = concatenate(_without_empty(one, tags), pass_machine(other, tags))
            return union(first, _without_empty(other, tags)) if one.is_nullable else first
        case Iter(one, _, _):
            piece = _without_empty(one, tags)
            return concatenate(piece, iterate(piece))
        case Combine(those, _):
            return _without_empty(those[0], tags)
        case PrefixSum():
            rules = (Rule(When.ITEM, (old(0),), 1, _X), Rule(When.ITEM, (old(1),), 1, _X))
            return Transducer(tags, ("i", "held"), rules, (0,), (1,))
    return pass_machine(query, tags)


def _two_states(tags: Tags, *rules: Rule) -> Transducer:
    return Transducer(tags, ("i", "f"), rules, (0,), (1,))


def _of_item(atom: Atom, term: Term, tags: Tags) -> Transducer:
    """At each item that fits, the value of a term."""
    fits: Sequence[When | str] = [When.ITEM] if atom.tag is None else [atom.tag]
    if atom.but:
        fits = [tag for tag in tags if tag not in atom.but]
    return _two_states(tags, *(Rule(on, (old(0),), 1, term) for on in fits))


def _twice(tags: Tags) -> Transducer:
    """A conflict whenever there is a value."""
    return data_function(tags, 1, [_X, _X])


def _applied(those: Sequence[Query], op: Term, tags: Tags) -> Transducer:
    machines = parallel(*(value_machine(each, tags) for each in those))
    return concatenate(machines, data_function(tags, len(those), op))


def _folded(those: Sequence[Query], start: Term, op: Term, tags: Tags) -> Transducer:
    """The values of queries on all prefixes, folded: op is of the sum so far and of the new values."""
    machine = value_machine(those[0], tags) if len(those) == 1 else parallel(*(value_machine(q, tags) for q in those))
    summed = prefix_sum(machine, data_function(tags, 1 + len(those), op))
    return concatenate(data_function(tags, 1, start, start), summed)


def _status(query: Query, tags: Tags) -> Transducer:
    """Whether a query has no value, one, or a conflict: three answers, without an input; exactly one of them is 1.

    Never the support of a support: each would multiply the size.
    """
    if query.level is Level.BASE:
        return support(pass_machine(query, tags))
    match query:
        case Fill(one):
            return _filled_status(_status(one, tags), tags)
        case FillWith(one, other):
            return _both_statuses(_status(one, tags), _status(other, tags), lambda a, b: a if a is Status.ONE else b)
        case Combine(those, _):
            found = _status(those[0], tags)
            for each in those[1:]:
                found = _both_statuses(found, _status(each, tags), all_of)
            return found
    # Prefix sums of such, and temporal queries, always have a value: the typing rules say so.
    return Transducer(tags, ("none", "one", "many"), (Rule(When.ALWAYS, (), 1, _YES),), (), (0, 1, 2))


def _filled_status(inner: Transducer, tags: Tags) -> Transducer:
    states, rules, (_, never) = side_by_side([inner], ["none", "one", "many"])
    had = never + 1
    none, some, many = inner.outputs
    rules.append(Rule(When.ALWAYS, (new(some),), had, _YES))
    for each in (none, many):
        rules.append(Rule(When.START, (new(each),), never, _YES))
        rules.append(Rule(When.ITEM, (old(never), new(each)), never, _YES))
        rules.append(Rule(When.ITEM, (old(had), new(each)), had, _YES))
    return Transducer(tags, tuple(states), tuple(rules), (), (never, had, had + 1))


def _both_statuses(one: Transducer, other: Transducer, result: Callable[[Status, Status], Status]) -> Transducer:
    states, rules, (_, then, start) = side_by_side([one, other], ["none", "one", "many"])
    for a in Status:
        for b in Status:  # exactly one of the nine applies
            sources = (new(one.outputs[a]), new(then + other.outputs[b]))
            rules.append(Rule(When.ALWAYS, sources, start + result(a, b), _YES))
    return Transducer(one.tags, tuple(states), tuple(rules), (), (start, start + 1, start + 2))


def _fill(one: Query, tags: Tags) -> Transducer:
    value, status = value_machine(one, tags), _status(one, tags)
    states, rules, (_, start, output) = side_by_side([value, status], ["o"])
    none, some, many = (start + status.outputs[each] for each in Status)
    rules.append(Rule(When.ALWAYS, (new(value.outputs[0]), new(some)), output, _X))
    rules += [Rule(When.ITEM, (old(output), new(each)), output, _X) for each in (none, many)]
    return Transducer(tags, tuple(states), tuple(rules), value.inputs, (output,))


def _fill_with(one: Query, other: Query, tags: Tags) -> Transducer:
    both, status = parallel(value_machine(one, tags), value_machine(other, tags)), _status(one, tags)
    states, rules, (_, start, output) = side_by_side([both, status], ["o"])
    none, some, many = (start + status.outputs[each] for each in Status)
    rules.append(Rule(When.ALWAYS, (new(both.outputs[0]), new(some)), output, _X))
    rules += [Rule(When.ALWAYS, (new(both.outputs[1]), new(each)), output, _X) for each in (none, many)]
    return Transducer(tags, tuple(states), tuple(rules), both.inputs, (output,))


def _agree(one: Query, other: Query, tags: Tags) -> Transducer:
    both = parallel(value_machine(one, tags), value_machine(other, tags))
    first, second = _status(one, tags), _status(other, tags)
    states, rules, (_, start, then, output) = side_by_side([both, first, second], ["o"])
    for a in Status:
        for b in Status:  # exactly one of the nine applies
            sources = [new(start + first.outputs[a]), new(then + second.outputs[b])]
            term: Term = Constant(a is b)
            if a is b is Status.ONE:
                sources, term = [*map(new, both.outputs), *sources], apply(EQUAL, _X, _Y)
            rules.append(Rule(When.ALWAYS, tuple(sources), output, term))
    return Transducer(tags, tuple(states), tuple(rules), both.inputs, (output,))
