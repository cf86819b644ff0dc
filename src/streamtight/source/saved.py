"""Databases for Hypothesis: where cases that failed are kept, and where shrinking goes on."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis.database import ExampleDatabase


class Shrinking(ExampleDatabase):
    """Knows the smallest failing case so far, so that a run of Hypothesis begins where the one before it was stopped.

    It is given as one of the secondary entries: Hypothesis takes it that the others cannot be made smaller.
    """

    def __init__(self) -> None:
        super().__init__()
        self.entry: tuple[bytes, bytes] | None = None
        """Its key, and the choices that lead to it."""
        self.is_open = True
        """False while Hypothesis is stopped: it saves whatever it is stopped at."""

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """The smallest case so far."""
        return [self.entry[1]] if self.entry is not None and key == self.entry[0] + b".secondary" else []

    def save(self, key: bytes, value: bytes) -> None:
        """Keep a case that failed, which is smaller than the one before."""
        if self.is_open and not key.endswith((b".secondary", b".pareto")):
            self.entry = (key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Nothing: what failed has failed."""


class WithPrefix(ExampleDatabase):
    """The user's own database, of which only the entries with this prefix are seen.

    Hypothesis knows a test by its code, and all questions are asked by the same code.
    """

    def __init__(self, inner: ExampleDatabase, prefix: bytes) -> None:
        super().__init__()
        self._inner = inner
        self._prefix = prefix

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """The entries of this key."""
        return self._inner.fetch(self._prefix + key)

    def save(self, key: bytes, value: bytes) -> None:
        """Keep an entry."""
        self._inner.save(self._prefix + key, value)

    def delete(self, key: bytes, value: bytes) -> None:
        """Forget an entry."""
        self._inner.delete(self._prefix + key, value)
