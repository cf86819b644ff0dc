"""Terms of models as circuits: each value as bits, each operation as gates.

>>> from streamtight.program.model import Range, Terms
>>> terms = Terms()
>>> count = terms.variable("count", Range(0, 3))
>>> wiring = Wiring(Circuit())
>>> wiring.name("count", count.domain)
(2, 3, -1)
>>> wiring.bits(terms.add(count, terms.constant(4)))
(2, 3, 1, -1)

Whole numbers are in two's complement, the least bit first and the sign last, with as many bits as the domain of the
term needs, so that nothing overflows. A listed value is its place in its domain, in binary. A Boolean is one bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from streamtight.program.model import Bools, Domain, Range, Symbols, Table, Term, Value, parts_of
from streamtight.solver.gates import FALSE, TRUE, Circuit, TooLarge

Bits = tuple[int, ...]

MOST_ENTRIES = 65_536
"""A function that can only be asked is written down as a table; a larger one is given up."""


class Wiring:
    """Terms as wires of a circuit, where the names of variables have their bits."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.names: dict[str, tuple[Bits, Domain]] = {}
        self._known: dict[Term, Bits] = {}

    def name(self, name: str, domain: Domain) -> Bits:
        """New wires for a variable or a choice. `within` says which of their values are in the domain."""
        if isinstance(domain, Range):
            # Where all numbers have the same sign, it needs no wire.
            sign = TRUE if domain.high < 0 else FALSE
            size = _width(domain) - 1
            if domain.low == domain.high:
                bits = constant_bits(domain.low, domain)
            elif domain.low < 0 <= domain.high:
                bits = tuple(self.circuit.wire() for _ in range(size + 1))
            else:
                bits = (*(self.circuit.wire() for _ in range(size)), sign)
        else:
            bits = tuple(self.circuit.wire() for _ in range(_places(domain)))
        self.names[name] = bits, domain
        return bits

    def within(self, name: str) -> int:
        """Is its value in its domain?"""
        bits, domain = self.names[name]
        circuit = self.circuit
        if isinstance(domain, Range):
            low, high = (constant_bits(end, domain) for end in (domain.low, domain.high))
            return circuit.and_(-less(circuit, bits, low), -less(circuit, high, bits))
        if isinstance(domain, Symbols):
            last = tuple(_bit(len(domain.values) - 1, place) for place in range(len(bits)))
            return -less(circuit, (*last, FALSE), (*bits, FALSE))
        return TRUE

    def bits(self, term: Term) -> Bits:
        """The wires that carry the value of a term."""
        if term not in self._known:
            for part in parts_of([term]):
                if part not in self._known:
                    self._known[part] = self._made(part)
        return self._known[term]

    def bits_in(self, term: Term, domain: Domain) -> Bits:
        """The same as bits of a domain that has its value, whatever its own domain is."""
        return _recoded(self.circuit, self.bits(term), term.domain, domain)

    def fits(self, term: Term, domain: Domain) -> int:
        """Is the value of a term in this domain?"""
        bits, own, circuit = self.bits(term), term.domain, self.circuit
        if isinstance(own, Range) and isinstance(domain, Range):
            low, high = (constant_bits(end, Range(end, end)) for end in (domain.low, domain.high))
            is_low = FALSE if domain.low <= own.low else less(circuit, bits, low)
            is_high = FALSE if own.high <= domain.high else less(circuit, high, bits)
            return circuit.and_(-is_low, -is_high)
        strangers = [value for value in own.values if value not in domain.values]
        return -circuit.any(_equal(circuit, bits, constant_bits(value, own), own, own) for value in strangers)

    def wire(self, term: Term) -> int:
        """The wire of a Boolean term."""
        (wire,) = self.bits(term)
        return wire

    def _made(self, term: Term) -> Bits:
        circuit, domain = self.circuit, term.domain
        if term.op == "constant":
            return constant_bits(term.value, domain)
        if term.op == "variable":
            bits, named = self.names[term.value]
            return _recoded(circuit, bits, named, domain)
        given = [self._known[each] for each in term.arguments]
        domains = [each.domain for each in term.arguments]
        match term.op:
            case "not":
                return (-given[0][0],)
            case "and":
                return (circuit.all(bit for (bit,) in given),)
            case "or":
                return (circuit.any(bit for (bit,) in given),)
            case "choose":
                one, other = (_recoded(circuit, given[place], domains[place], domain) for place in (1, 2))
                return _chosen(circuit, given[0][0], one, other)
            case "equal":
                return (_equal(circuit, given[0], given[1], domains[0], domains[1]),)
            case "less":
                return (less(circuit, given[0], given[1]),)
            case "at_most":
                return (-less(circuit, given[1], given[0]),)
            case "call":
                return self._called(term.value, given, domains, domain)
        number = _ARITHMETIC[term.op](circuit, given[0], given[1], domains[0], domains[1])  # type: ignore[arg-type]
        return _sized(number, domain)  # type: ignore[arg-type]

    def _called(self, table: Table, given: Sequence[Bits], domains: Sequence[Domain], domain: Domain) -> Bits:
        count = math.prod(len(each.values) for each in domains[1:])
        if count > MOST_ENTRIES:
            raise TooLarge(f"{table.name} would be a table of {count:,} values; {MOST_ENTRIES:,} are the most")
        circuit = self.circuit
        places: list[int] = []
        for bits, argument in zip(given[1:], domains[1:], strict=True):
            if isinstance(argument, Range):
                # Counted from the least, so that there are few combinations of bits that mean nothing.
                least = constant_bits(-argument.low, Range(-argument.low, -argument.low))
                bits = _sum(circuit, bits, least, _width(Range(0, argument.high - argument.low)))[:-1]
            places += bits
        columns = _columns(table, domains[1:], domain)
        found = tuple(_looked_up(circuit, column, tuple(places), {}) for column in columns)
        return _chosen(circuit, given[0][0], found, constant_bits(table.default, domain))


# -- values ----------------------------------------------------------------------------------------------------------


def _width(domain: Range) -> int:
    """How many bits its numbers need, with the sign."""
    return (
        max(
            domain.high if domain.high >= 0 else ~domain.high, domain.low if domain.low >= 0 else ~domain.low
        ).bit_length()
        + 1
    )


def _places(domain: Symbols | Bools) -> int:
    return 1 if isinstance(domain, Bools) else (len(domain.values) - 1).bit_length()


def _bit(value: int, place: int) -> int:
    return TRUE if value >> place & 1 else FALSE


def constant_bits(value: Value, domain: Domain) -> Bits:
    """The bits of this value of a domain."""
    if isinstance(domain, Range):
        return tuple(_bit(value, place) for place in range(_width(domain)))
    if isinstance(domain, Bools):
        return (TRUE if value else FALSE,)
    code = domain.values.index(value)
    return tuple(_bit(code, place) for place in range(_places(domain)))


def value_of(bits: Sequence[bool], domain: Domain) -> Value:
    """The value that these bits stand for."""
    code = sum(1 << place for place, bit in enumerate(bits) if bit)
    if isinstance(domain, Range):
        return code - (1 << len(bits)) if bits[-1] else code
    return domain.values[code]


def _sized(bits: Bits, domain: Range) -> Bits:
    """The same number with the bits of a domain that it is in."""
    width = _width(domain)
    found = bits[:width] + bits[-1:] * (width - len(bits))
    return found if domain.low < 0 <= domain.high else (*found[:-1], TRUE if domain.high < 0 else FALSE)


def _recoded(circuit: Circuit, bits: Bits, domain: Domain, wanted: Domain) -> Bits:
    """A value of one domain as one of another that has it."""
    if domain == wanted or isinstance(domain, Bools):
        return bits
    if isinstance(wanted, Range):
        return _sized(bits, wanted)
    found = []
    for place in range(_places(wanted)):
        column = bytes(
            wanted.values.index(value) >> place & 1 if value in wanted.values else 2 for value in domain.values
        )
        found.append(_looked_up(circuit, column.ljust(1 << len(bits), b"\2"), bits, {}))
    return tuple(found)


def _chosen(circuit: Circuit, condition: int, one: Bits, other: Bits) -> Bits:
    return tuple(circuit.choose(condition, a, b) for a, b in zip(one, other, strict=True))


def _equal(circuit: Circuit, a: Bits, b: Bits, one: Domain, other: Domain) -> int:
    if isinstance(one, Symbols) and isinstance(other, Symbols) and one != other:
        common = [value for value in one.values if value in other.values]
        return circuit.any(
            circuit.and_(
                _equal(circuit, a, constant_bits(value, one), one, one),
                _equal(circuit, b, constant_bits(value, other), other, other),
            )
            for value in common
        )
    width = max(len(a), len(b))
    pairs = zip(_extended(a, width), _extended(b, width), strict=True)
    return circuit.all(-circuit.xor(x, y) for x, y in pairs)


# -- whole numbers ---------------------------------------------------------------------------------------------------


def _extended(bits: Bits, width: int) -> Bits:
    return bits + bits[-1:] * (width - len(bits)) if bits else bits


def _sum(circuit: Circuit, a: Bits, b: Bits, width: int, carry: int = FALSE) -> Bits:
    """a + b + carry, in so many bits; what is beyond them is lost."""
    found = []
    for x, y in zip(_extended(a, width)[:width], _extended(b, width)[:width], strict=True):
        found.append(circuit.xor(circuit.xor(x, y), carry))
        carry = circuit.majority(x, y, carry)
    return tuple(found)


def _opposite(bits: Bits) -> Bits:
    """-a - 1."""
    return tuple(-bit for bit in bits)


def _negated(circuit: Circuit, bits: Bits) -> Bits:
    return _sum(circuit, (FALSE,), _opposite(bits), len(bits) + 1, TRUE)


def less(circuit: Circuit, a: Bits, b: Bits) -> int:
    """Is the first number less?"""
    width = max(len(a), len(b))
    found = FALSE
    for x, y in zip(_extended(a, width)[:-1], _extended(b, width)[:-1], strict=True):
        found = circuit.majority(-x, y, found)
    # The sign counts the other way round: a number with it is less.
    return circuit.majority(a[-1], -b[-1], found)


def _add(circuit: Circuit, a: Bits, b: Bits, one: Range, other: Range) -> Bits:
    return _sum(circuit, a, b, max(len(a), len(b)) + 1)


def _subtract(circuit: Circuit, a: Bits, b: Bits, one: Range, other: Range) -> Bits:
    return _sum(circuit, a, _opposite(b), max(len(a), len(b)) + 1, TRUE)


def _multiply(circuit: Circuit, a: Bits, b: Bits, one: Range, other: Range) -> Bits:
    if one.low == one.high:
        a, b, one, other = b, a, other, one
    width = len(a) + len(b)
    found: Bits = (FALSE,) * width
    if other.low == other.high:
        factor, place = other.low, 0
        while factor:
            # 255 is 256 - 1: with minus as a digit, a number has fewer digits that are not 0.
            digit = 2 - factor % 4 if factor % 2 else 0
            if digit:
                row = _shifted(a, place, width)
                found = _sum(circuit, found, row if digit > 0 else _opposite(row), width, TRUE if digit < 0 else FALSE)
            factor, place = (factor - digit) // 2, place + 1
        return found
    for place, bit in enumerate(b):
        row = _shifted(tuple(circuit.and_(bit, x) for x in a), place, width)
        # The sign of b stands for minus its power of two.
        is_sign = place == len(b) - 1 and bit != FALSE
        found = _sum(circuit, found, _opposite(row) if is_sign else row, width, TRUE if is_sign else FALSE)
    return found


def _shifted(bits: Bits, places: int, width: int) -> Bits:
    return ((FALSE,) * places + _extended(bits, width))[:width]


def _divide(circuit: Circuit, a: Bits, b: Bits, one: Range, other: Range) -> Bits:
    return _divided(circuit, a, b, one, other)[0]


def _modulo(circuit: Circuit, a: Bits, b: Bits, one: Range, other: Range) -> Bits:
    return _divided(circuit, a, b, one, other)[1]


def _divided(circuit: Circuit, a: Bits, b: Bits, one: Range, other: Range) -> tuple[Bits, Bits]:
    """The quotient, rounded down, and the remainder; both 0 if the divisor is."""
    if other.low == other.high and other.low > 0:
        return _divided_by(circuit, a, one, other.low)
    sign_a, sign_b = a[-1], b[-1]
    size_a = (*_chosen(circuit, sign_a, _negated(circuit, a)[:-1], a), FALSE)
    size_b = (*_chosen(circuit, sign_b, _negated(circuit, b)[:-1], b), FALSE)
    quotient, rest = _long_division(circuit, size_a, size_b)
    # With unlike signs, rounding down leads away from 0 unless it divides.
    is_unlike = circuit.xor(sign_a, sign_b)
    has_rest = circuit.any(rest)
    width = max(len(rest), len(size_b)) + 1
    back = _sum(circuit, size_b, _opposite(rest), width, TRUE)
    rest = _chosen(circuit, circuit.and_(is_unlike, has_rest), back, _extended(rest, width))
    rest = _chosen(circuit, sign_b, _negated(circuit, rest), _extended(rest, width + 1))
    away = _sum(circuit, _opposite(quotient), (FALSE,), len(quotient) + 1, -has_rest)
    quotient = _chosen(circuit, is_unlike, away, _extended(quotient, len(quotient) + 1))
    is_some = circuit.any(b)
    return tuple(circuit.and_(is_some, x) for x in quotient), tuple(circuit.and_(is_some, x) for x in rest)


def _divided_by(circuit: Circuit, a: Bits, one: Range, divisor: int) -> tuple[Bits, Bits]:
    """The same by a number above 0 that is known."""
    if divisor & (divisor - 1) == 0:
        place = divisor.bit_length() - 1
        return a[place:] or a[-1:], (*_extended(a, place)[:place], FALSE)
    # A multiple of the divisor makes it positive, and changes nothing of the remainder.
    lifts = -(one.low // divisor) if one.low < 0 else 0
    lifted = Range(one.low + lifts * divisor, one.high + lifts * divisor)
    offset = constant_bits(lifts * divisor, Range(0, lifts * divisor))
    a = _sized(_sum(circuit, a, offset, max(len(a), len(offset)) + 1), lifted)
    quotient: list[int] = []
    for place in range((lifted.high // divisor).bit_length() - 1, -1, -1):
        part = constant_bits(divisor << place, Range(0, divisor << place))
        # What is left is below twice the part, so it has no more bits than the part has.
        left = _sum(circuit, a, _opposite(part), max(len(a), len(part)), TRUE)
        fits = -left[-1]
        a = _chosen(circuit, fits, left, _extended(a, len(left)))
        a = _sized(a, Range(0, (divisor << place) - 1))
        quotient.insert(0, fits)
    lowered = constant_bits(lifts, Range(0, lifts))
    found = (*quotient, FALSE)
    return _sum(circuit, found, _opposite(lowered), max(len(found), len(lowered)) + 1, TRUE), a


def _long_division(circuit: Circuit, a: Bits, b: Bits) -> tuple[Bits, Bits]:
    """Quotient and remainder of numbers that are not negative."""
    rest: Bits = (FALSE,)
    quotient: list[int] = []
    for bit in reversed(a[:-1]):
        rest = (bit, *rest)
        left = _sum(circuit, rest, _opposite(b), max(len(rest), len(b)) + 1, TRUE)
        fits = -left[-1]
        chosen = _chosen(circuit, fits, left, _extended(rest, len(left)))
        rest = (*chosen[: min(len(rest), len(b)) - 1], FALSE)
        quotient.insert(0, fits)
    return (*quotient, FALSE), rest


_ARITHMETIC = {"add": _add, "subtract": _subtract, "multiply": _multiply, "divide": _divide, "modulo": _modulo}


# -- tables ----------------------------------------------------------------------------------------------------------


def _columns(table: Table, domains: Sequence[Domain], domain: Domain) -> list[bytes]:
    """For each bit of what a function gives: 0 or 1 for each combination of bits, 2 for those that mean nothing."""
    sizes = [len(each.values) for each in domains]
    widths = [(size - 1).bit_length() for size in sizes]
    width = len(constant_bits(domain.values[0], domain))
    columns = [bytearray(b"\2") * (1 << sum(widths)) for _ in range(width)]
    codes: dict[Value, Bits] = {}
    for at in itertools.product(*(range(size) for size in sizes)):
        arguments = [each.values[place] for each, place in zip(domains, at, strict=True)]
        try:
            given = table(*arguments)
            if given not in codes:
                codes[given] = constant_bits(domain.values[domain.values.index(given)], domain)
        except Exception as error:  # the border of user code, which may be asked here for what never comes
            came = f"{type(error).__name__}: {error}"
            raise TooLarge(f"{table.name}({', '.join(map(repr, arguments))}) cannot be written down: {came}") from None
        row = shift = 0
        for place, wide in zip(at, widths, strict=True):
            row |= place << shift
            shift += wide
        for column, bit in zip(columns, codes[given], strict=True):
            column[row] = bit == TRUE
    return [bytes(column) for column in columns]


def _looked_up(circuit: Circuit, column: bytes, bits: Bits, known: dict[bytes, int]) -> int:
    """The entry of a column at the place that these bits say."""
    if 1 not in column:
        return FALSE
    if 0 not in column:
        return TRUE
    found = known.get(column)
    if found is None:
        half = len(column) // 2
        low, high = column[:half], column[half:]
        one = _looked_up(circuit, high, bits[:-1], known)
        other = _looked_up(circuit, low, bits[:-1], known)
        # Where one half means nothing, the other serves for both.
        if low.count(2) == half:
            other = one
        elif high.count(2) == half:
            one = other
        found = known[column] = circuit.choose(bits[-1], one, other)
    return found
