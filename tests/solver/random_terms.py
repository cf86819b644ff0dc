"""Terms of models, drawn by chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from streamtight.program.model import BOOL, Bools, Domain, Range, Symbols, Table, Term, Terms, Value


class RandomTerms:
    """Terms drawn by chance, of any sort, over these variables."""

    def __init__(self, rng: random.Random, terms: Terms, domains: Mapping[str, Domain]) -> None:
        self.rng, self.terms, self.domains = rng, terms, domains

    def _some(self, kind: type) -> Term | None:
        """A variable of this kind, mostly."""
        names = [name for name, domain in self.domains.items() if isinstance(domain, kind)]
        if not names or self.rng.random() < 0.2:
            return None
        name = self.rng.choice(names)
        return self.terms.variable(name, self.domains[name])

    def number(self, depth: int) -> Term:
        rng, terms = self.rng, self.terms
        if depth == 0:
            return self._some(Range) or terms.constant(rng.randint(-9, 9))
        op = rng.choice(["add", "subtract", "multiply", "divide", "modulo", "choose", "call"])
        if op == "choose":
            return terms.choose(self.truth(depth - 1), self.number(depth - 1), self.number(depth - 1))
        if op == "call":
            low = rng.randint(-5, 3)
            return self.call(depth, lambda draw: draw.randint(low, low + 6), Range(low, low + 6))
        made = getattr(terms, op)(self.number(depth - 1), self.number(depth - 1))
        # Beyond that, products of products would only be slow.
        return made if max(abs(made.domain.low), abs(made.domain.high)) < 10_000 else self.number(0)

    def symbol(self, depth: int) -> Term:
        rng, terms = self.rng, self.terms
        if depth == 0:
            return self._some(Symbols) or terms.constant(rng.choice(["red", "blue", "black"]))
        if rng.random() < 0.3:
            colors = ("green", "white", "red")
            return self.call(depth, lambda draw: draw.choice(colors), Symbols(colors))
        return terms.choose(self.truth(depth - 1), self.symbol(depth - 1), self.symbol(depth - 1))

    def truth(self, depth: int) -> Term:
        rng, terms = self.rng, self.terms
        if depth == 0:
            return self._some(Bools) or terms.constant(rng.random() < 0.5)
        op = rng.choice(["not_", "and_", "or_", "choose", "numbers", "symbols", "truths", "less", "at_most", "call"])
        match op:
            case "not_":
                return terms.not_(self.truth(depth - 1))
            case "and_" | "or_":
                return getattr(terms, op)(*(self.truth(depth - 1) for _ in range(rng.randint(2, 4))))
            case "choose":
                return terms.choose(*(self.truth(depth - 1) for _ in range(3)))
            case "numbers":
                return terms.equal(self.number(depth - 1), self.number(depth - 1))
            case "symbols":
                return terms.equal(self.symbol(depth - 1), self.symbol(depth - 1))
            case "truths":
                return terms.equal(self.truth(depth - 1), self.truth(depth - 1))
            case "call":
                return self.call(depth, lambda draw: draw.random() < 0.5, BOOL)
        return getattr(terms, op)(self.number(depth - 1), self.number(depth - 1))

    def call(self, depth: int, draw: Callable[[random.Random], Value], domain: Domain) -> Term:
        makers = self.rng.choices([self.number, self.symbol, self.truth], k=self.rng.randint(1, 2))
        arguments = [make(depth - 1) for make in makers]
        if any(len(each.domain.values) > 60 for each in arguments):
            arguments = [self.truth(depth - 1)]
        seed = self.rng.random()
        table = Table("f", lambda *given: draw(random.Random(f"{seed} {given}")), domain, domain.values[-1])
        return self.terms.call(table, self.truth(depth - 1), *arguments)
