"""How Hypothesis draws values that depend on nothing but the seed. Hypothesis imports this module by its name."""

from __future__ import annotations

from hypothesis.internal.conjecture.providers import HypothesisProvider


class FromSeed(HypothesisProvider):
    """Hypothesis' own way to draw, without the constants that it takes out of whatever modules are loaded."""

    def _maybe_draw_constant(self, *_: object, **__: object) -> None:
        return None
