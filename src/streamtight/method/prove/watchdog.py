"""Stops what runs too long in this thread: a loop of the user's, perhaps for ever."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections.abc import Iterator
from types import TracebackType

from streamtight.errors import UnsupportedError

OFTEN = 0.2
"""Every so many seconds the clock is looked at."""


class _TooLong(BaseException):  # no user code catches it by accident
    pass


class Watchdog:
    """Looks at the clock in a thread of its own, one for many short runs, which starts with the first of them."""

    def __init__(self) -> None:
        self._watched = threading.get_ident()
        self._lock = threading.Lock()
        self._ends: float | None = None
        self.has_stopped = False
        """Whether something had to be stopped."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Watchdog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        if self._thread.is_alive():
            self._thread.join()

    @contextlib.contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """UnsupportedError if what is run does not end in so many seconds."""
        if not self._thread.is_alive():
            self._thread.start()
        with self._lock:
            self._ends = time.monotonic() + seconds
        try:
            try:
                yield
            finally:
                with self._lock:
                    self._ends = None
                for _ in range(100):  # what was sent in the last moment arrives in a loop at the latest
                    pass
        except _TooLong:
            self.has_stopped = True
            raise UnsupportedError(
                "running the programs",
                needed=f"an end within {seconds:g} seconds",
                came=f"no end within {seconds:.3g} seconds, on a small input",
                hint="seconds=..., or tight.compare, which runs both programs on Spark",
            ) from None

    def _watch(self) -> None:
        while not self._closed.wait(OFTEN):
            with self._lock:
                # Again and again: what is run may catch everything, and exceptions in destructors are lost.
                if self._ends is not None and time.monotonic() > self._ends:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(
                        ctypes.c_ulong(self._watched), ctypes.py_object(_TooLong)
                    )
