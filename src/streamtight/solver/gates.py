"""Circuits: gates over wires, each made once and simplified, and the clauses that say the same to a SAT solver.

A wire is a number from 1 on, and its negative is its opposite, as solvers have it. Wire 1 is always true.

>>> circuit = Circuit()
>>> a, b = circuit.wire(), circuit.wire()
>>> circuit.and_(a, TRUE) == a, circuit.xor(a, -a) == TRUE, circuit.and_(a, b) == circuit.and_(b, a)
(True, True, True)
>>> circuit.clauses([circuit.and_(a, b)])
[[1], [-4, 2], [-4, 3], [4, -2, -3]]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

TRUE: Final = 1
FALSE: Final = -1

Gate = tuple[str, int, int, int]
"""What a gate is (and, xor, choose, majority) and its wires; the third is 0 if there is none."""

MOST_GATES = 300_000
"""A circuit with more is given up: a gate takes about half a kilobyte, here and in the solver."""


class TooLarge(Exception):
    """A circuit would need more memory than it is given."""


class Circuit:
    """Gates by the wires they lead to. Each comes after those that feed it."""

    def __init__(self) -> None:
        self.last = TRUE
        self.gates: dict[int, Gate] = {}
        self._made: dict[Gate, int] = {}

    def wire(self) -> int:
        """A new wire that no gate leads to."""
        self.last += 1
        return self.last

    def _gate(self, gate: Gate) -> int:
        made = self._made.get(gate)
        if made is None:
            if len(self.gates) >= MOST_GATES:
                raise TooLarge(f"its circuit has more than {MOST_GATES:,} gates")
            self.last = made = self.last + 1
            self._made[gate] = made
            self.gates[made] = gate
        return made

    def forget(self) -> None:
        """Let go of all gates. Their wires stay, and what a solver knows of them."""
        self.gates.clear()
        self._made.clear()

    # -- gates -------------------------------------------------------------------------------------------------------

    def and_(self, a: int, b: int) -> int:
        """Are both true?"""
        if a in (TRUE, b):
            return b
        if b == TRUE:
            return a
        if a == FALSE or b == FALSE or a == -b:
            return FALSE
        return self._gate(("and", a, b, 0) if a < b else ("and", b, a, 0))

    def or_(self, a: int, b: int) -> int:
        """Is one true?"""
        return -self.and_(-a, -b)

    def xor(self, a: int, b: int) -> int:
        """Is exactly one true?"""
        sign = 1
        if a < 0:
            a, sign = -a, -sign
        if b < 0:
            b, sign = -b, -sign
        if a == b:
            return -sign
        if a == TRUE:
            return -sign * b
        if b == TRUE:
            return -sign * a
        return sign * self._gate(("xor", a, b, 0) if a < b else ("xor", b, a, 0))

    def choose(self, condition: int, one: int, other: int) -> int:
        """The one if the condition is true, else the other."""
        if condition < 0:
            condition, one, other = -condition, other, one
        if condition == TRUE or one == other:
            return one
        if one == -other:
            return -self.xor(condition, one)
        if one in (TRUE, condition):
            return self.or_(condition, other)
        if one == FALSE or one == -condition:
            return self.and_(-condition, other)
        if other == TRUE or other == -condition:
            return self.or_(-condition, one)
        if other in (FALSE, condition):
            return self.and_(condition, one)
        if one < 0:
            return -self._gate(("choose", condition, -one, -other))
        return self._gate(("choose", condition, one, other))

    def majority(self, a: int, b: int, c: int) -> int:
        """Are two or three true?"""
        a, b, c = sorted((a, b, c), key=abs)
        if a == TRUE:
            return self.or_(b, c)
        if a == FALSE:
            return self.and_(b, c)
        if a == b or b == c:
            return b
        if a == -b:
            return c
        if b == -c:
            return a
        return self._gate(("majority", a, b, c)) if a > 0 else -self._gate(("majority", -a, -b, -c))

    def all(self, wires: Iterable[int]) -> int:
        """Are all true?"""
        level = list(dict.fromkeys(wires))
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            level = [*(self.and_(a, b) for a, b in pairs), *(level[-1:] if len(level) % 2 else ())]
        return level[0] if level else TRUE

    def any(self, wires: Iterable[int]) -> int:
        """Is one of them true?"""
        return -self.all(-wire for wire in wires)

    # -- what others do with them ------------------------------------------------------------------------------------

    def cone(self, roots: Iterable[int]) -> list[int]:
        """The wires of all gates that lead to these, in the order in which they were made."""
        gates = self.gates
        found: set[int] = set()
        waiting = [abs(root) for root in roots]
        while waiting:
            wire = waiting.pop()
            if wire in gates and wire not in found:
                found.add(wire)
                _, a, b, c = gates[wire]
                waiting += (abs(a), abs(b), abs(c)) if c else (abs(a), abs(b))
        return sorted(found)

    def clauses(self, roots: Iterable[int]) -> list[list[int]]:
        """What is true of these wires, and of all that lead to them."""
        found = [[TRUE]]
        for wire in self.cone(roots):
            found += clauses_of(wire, self.gates[wire])
        return found

    def simulated(self, cone: Sequence[int], values: dict[int, int], mask: int) -> Callable[[int], int]:
        """What wires carry in many runs at once: a bit of the number for each. `values` are those of the others."""
        gates = self.gates
        values[TRUE] = mask

        def of(wire: int) -> int:
            return values[wire] if wire > 0 else values[-wire] ^ mask

        for wire in cone:
            kind, a, b, c = gates[wire]
            if kind == "and":
                values[wire] = of(a) & of(b)
            elif kind == "xor":
                values[wire] = of(a) ^ of(b)
            elif kind == "choose":
                condition = of(a)
                values[wire] = (condition & of(b)) | (~condition & mask & of(c))
            else:
                values[wire] = (of(a) & of(b)) | (of(a) & of(c)) | (of(b) & of(c))
        return of


class Copier:
    """Makes the gates that lead to some wires again, in another circuit, with other wires in front."""

    def __init__(self, circuit: Circuit, roots: Sequence[int]) -> None:
        self._roots = roots
        self._gates = [(wire, *circuit.gates[wire]) for wire in circuit.cone(roots)]

    def into(self, circuit: Circuit, wires: Mapping[int, int]) -> list[int]:
        """What the roots are there, if these wires stand for the ones in front."""
        known = {TRUE: TRUE, **wires}
        and_, xor, choose, majority = circuit.and_, circuit.xor, circuit.choose, circuit.majority
        for wire, kind, a, b, c in self._gates:
            a = known[a] if a > 0 else -known[-a]
            b = known[b] if b > 0 else -known[-b]
            if kind == "and":
                known[wire] = and_(a, b)
            elif kind == "xor":
                known[wire] = xor(a, b)
            else:
                c = known[c] if c > 0 else -known[-c]
                known[wire] = choose(a, b, c) if kind == "choose" else majority(a, b, c)
        return [known[root] if root > 0 else -known[-root] for root in self._roots]


def clauses_of(wire: int, gate: Gate) -> Iterator[list[int]]:
    """What is true of a wire that a gate leads to."""
    kind, a, b, c = gate
    if kind == "and":
        yield [-wire, a]
        yield [-wire, b]
        yield [wire, -a, -b]
    elif kind == "xor":
        yield [-wire, a, b]
        yield [-wire, -a, -b]
        yield [wire, -a, b]
        yield [wire, a, -b]
    elif kind == "choose":
        yield [-a, -b, wire]
        yield [-a, b, -wire]
        yield [a, -c, wire]
        yield [a, c, -wire]
        # Both follow from the others, but not by looking at one clause at a time, as solvers do.
        yield [-b, -c, wire]
        yield [b, c, -wire]
    else:
        for one, other in ((a, b), (a, c), (b, c)):
            yield [-one, -other, wire]
            yield [one, other, -wire]
