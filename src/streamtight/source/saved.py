"""Where cases that failed are kept: in the user's own Hypothesis database, under a key of each question."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis.database import ExampleDatabase


class WithPrefix(ExampleDatabase):
    """A database of which only the entries with this prefix are seen.

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
