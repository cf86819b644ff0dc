"""Circuits give what terms give, for all values of the variables: each operation, and terms drawn by chance."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

import pytest
from random_terms import RandomTerms

from streamtight.program.model import BOOL, Domain, Range, Symbols, Table, Term, Terms, Value, evaluate
from streamtight.solver.circuit import Wiring, constant_bits, value_of
from streamtight.solver.gates import FALSE, TRUE, Circuit, Copier, TooLarge, clauses_of

DOMAINS: dict[str, Domain] = {
    "small": Range(0, 2),
    "signed": Range(-3, 2),
    "shifted": Range(4, 6),
    "below": Range(-6, -5),
    "single": Range(7, 7),
    "color": Symbols(("red", "green", "blue")),
    "light": Symbols(("blue", "red", None)),
    "p": BOOL,
    "q": BOOL,
}


def values_of_circuit(term: Term, domains: Mapping[str, Domain]) -> list[tuple[dict[str, Value], Value]]:
    """The values of a term by its circuit, for all values of its variables."""
    wiring = Wiring(Circuit())
    bits = {name: wiring.name(name, domain) for name, domain in domains.items()}
    out = wiring.bits(term)
    given = [dict(zip(domains, each, strict=True)) for each in itertools.product(*(d.values for d in domains.values()))]
    front: dict[int, int] = {}
    for row, values in enumerate(given):
        for name, domain in domains.items():
            for wire, bit in zip(bits[name], constant_bits(values[name], domain), strict=True):
                if wire not in (TRUE, FALSE):
                    front[wire] = front.get(wire, 0) | (bit == TRUE) << row
    of = wiring.circuit.simulated(wiring.circuit.cone(out), front, (1 << len(given)) - 1)
    found = [of(wire) for wire in out]
    return [
        (values, value_of([bool(each >> row & 1) for each in found], term.domain)) for row, values in enumerate(given)
    ]


def assert_circuit_gives_what_the_term_gives(term: Term, domains: Mapping[str, Domain]) -> None:
    for values, given in values_of_circuit(term, domains):
        wanted = evaluate(term, values)
        assert given == wanted, f"{term} at {values}: {given!r} instead of {wanted!r}"


def random_terms(rng: random.Random) -> RandomTerms:
    return RandomTerms(rng, Terms(), {name: DOMAINS[name] for name in rng.sample(sorted(DOMAINS), 4)})


@pytest.mark.parametrize("seed", range(40))
def test_circuits_of_random_terms_give_what_the_terms_give(seed: int) -> None:
    for number in range(20):
        drawn = random_terms(random.Random(f"{seed} {number}"))
        make = drawn.rng.choice([drawn.number, drawn.symbol, drawn.truth])

        term = make(drawn.rng.randint(1, 4))

        assert_circuit_gives_what_the_term_gives(term, {name: DOMAINS[name] for name in drawn.domains})


RANGES = [Range(0, 6), Range(-5, 4), Range(-8, 7), Range(3, 5), Range(-9, -2), Range(0, 0), Range(-1, 0), Range(-4, -4)]


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "modulo", "less", "at_most", "equal"])
def test_each_operation_is_right_for_all_numbers_of_some_ranges(op: str) -> None:
    for one, other in itertools.product(RANGES, RANGES):
        terms = Terms()

        term = getattr(terms, op)(terms.variable("a", one), terms.variable("b", other))

        assert_circuit_gives_what_the_term_gives(term, {"a": one, "b": other})


@pytest.mark.parametrize("op", ["multiply", "divide", "modulo"])
def test_operations_with_a_number_that_is_known_are_right(op: str) -> None:
    for domain in (Range(0, 255), Range(-70, 60), Range(-90, -3), Range(17, 40)):
        for number in [*range(-20, 21), 31, 32, 33, 64, 85, 100, 127, 128, 255, 256, -64, -255]:
            terms = Terms()
            number_and_variable = terms.constant(number), terms.variable("a", domain)

            for arguments in (number_and_variable, number_and_variable[::-1]):
                assert_circuit_gives_what_the_term_gives(getattr(terms, op)(*arguments), {"a": domain})


def test_a_remainder_of_a_power_of_two_needs_no_gates_of_its_own() -> None:
    terms = Terms()
    wiring = Wiring(Circuit())
    bits = wiring.name("a", Range(-200, 300))

    remainder = wiring.bits(terms.modulo(terms.variable("a", Range(-200, 300)), terms.constant(16)))

    assert remainder == (*bits[:4], FALSE)
    assert not wiring.circuit.gates


def test_a_product_modulo_256_is_small() -> None:
    terms = Terms()
    wiring = Wiring(Circuit())
    for name in "ab":
        wiring.name(name, Range(0, 255))
    product = terms.multiply(terms.variable("a", Range(0, 255)), terms.variable("b", Range(0, 255)))

    wrapped = wiring.bits(terms.modulo(product, terms.constant(256)))

    assert len(wiring.circuit.cone(wrapped)) < 150  # 36 products of bits, and three gates to add one to another


@pytest.mark.parametrize("name", sorted(DOMAINS))
def test_bits_are_within_a_domain_if_they_mean_a_value_of_it(name: str) -> None:
    wiring = Wiring(Circuit())
    domain = DOMAINS[name]
    bits = wiring.name(name, domain)
    wires = [wire for wire in bits if abs(wire) != TRUE]
    within = wiring.within(name)

    rows = list(itertools.product((False, True), repeat=len(wires)))
    front = {wire: sum(row[place] << number for number, row in enumerate(rows)) for place, wire in enumerate(wires)}
    said = wiring.circuit.simulated(wiring.circuit.cone([within]), front, (1 << len(rows)) - 1)(within)

    fine = {constant_bits(value, domain) for value in domain.values}
    for number, row in enumerate(rows):
        carried = dict(zip(wires, row, strict=True))
        code = tuple((TRUE if carried[wire] else FALSE) if wire in carried else wire for wire in bits)
        assert bool(said >> number & 1) == (code in fine)


@pytest.mark.parametrize("kind", ["and", "xor", "choose", "majority"])
def test_clauses_of_a_gate_hold_exactly_if_its_wire_carries_what_it_gives(kind: str) -> None:
    meaning = {
        "and": lambda a, b, c: a and b,
        "xor": lambda a, b, c: a != b,
        "choose": lambda a, b, c: b if a else c,
        "majority": lambda a, b, c: a + b + c >= 2,
    }[kind]
    for signs in itertools.product((1, -1), repeat=3):
        a, b, c = (sign * wire for sign, wire in zip(signs, (2, 3, 4), strict=True))
        gate = (kind, a, b, c if kind in ("choose", "majority") else 0)
        for carried in itertools.product((False, True), repeat=4):

            def true(wire: int, carried: tuple[bool, ...] = carried) -> bool:
                return carried[abs(wire) - 2] == (wire > 0)

            holds = all(any(map(true, clause)) for clause in clauses_of(5, gate))

            assert holds == (true(5) == meaning(true(a), true(b), true(c)))


def test_gates_simplify_to_what_they_mean() -> None:
    circuit = Circuit()
    a, b = circuit.wire(), circuit.wire()
    wires = [TRUE, FALSE, a, -a, b, -b]

    for x, y, z in itertools.product(wires, repeat=3):
        made = [
            circuit.and_(x, y),
            circuit.or_(x, y),
            circuit.xor(x, y),
            circuit.choose(x, y, z),
            circuit.majority(x, y, z),
        ]
        of = circuit.simulated(circuit.cone(made), {a: 0b0011, b: 0b0101}, 0b1111)
        p, q, r = of(x), of(y), of(z)
        wanted = [p & q, p | q, p ^ q, (p & q) | (~p & r & 15), (p & q) | (p & r) | (q & r)]

        assert [of(each) for each in made] == wanted, (x, y, z)


def test_a_copy_of_a_circuit_simplifies_with_what_is_known_in_front() -> None:
    circuit = Circuit()
    a, b = circuit.wire(), circuit.wire()
    root = circuit.choose(a, circuit.xor(a, b), circuit.and_(a, b))
    copier = Copier(circuit, [root, -root])
    other = Circuit()
    c = other.wire()

    assert copier.into(other, {a: TRUE, b: c}) == [-c, c]
    assert copier.into(other, {a: FALSE, b: c}) == [FALSE, TRUE]


def test_a_table_that_is_too_large_is_given_up() -> None:
    terms = Terms()
    wiring = Wiring(Circuit())
    domain = Range(0, 999)
    for name in "ab":
        wiring.name(name, domain)
    table = Table("far", lambda a, b: a ^ b, Range(0, 1023), 0)
    term = terms.call(table, terms.true, terms.variable("a", domain), terms.variable("b", domain))

    with pytest.raises(TooLarge, match="far would be a table of 1,000,000 values"):
        wiring.bits(term)


def test_a_function_that_leaves_its_domain_is_given_up_and_not_guessed() -> None:
    terms = Terms()
    wiring = Wiring(Circuit())
    wiring.name("a", Range(0, 3))
    table = Table("grows", lambda a: a + 1, Range(0, 3), 0)

    with pytest.raises(TooLarge, match=r"grows\(3\) cannot be written down"):
        wiring.bits(terms.call(table, terms.true, terms.variable("a", Range(0, 3))))
