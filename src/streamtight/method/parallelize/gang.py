"""Leaves that run in other processes, and the driver that leads them: who talks to whom, and what happens if one dies.

All leaves of a plan connect to the driver. When all are there, the driver gives each its first state and tells it
where its ancestors have events; from then on states go up and down. If a connection breaks, all are closed: the engine
starts its tasks again, they connect again, and everything begins anew from the first state. So a result is always that
of one run from beginning to end.

Connections begin as those of `multiprocessing.connection`: each side shows first that it knows a random key.
"""

from __future__ import annotations

import contextlib
import heapq
import itertools
import math
import os
import pickle
import queue
import secrets
import socket
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, Listener, answer_challenge, deliver_challenge
from typing import Any

from streamtight.errors import StreamtightError
from streamtight.method.parallelize.inner import Keyed, Over, lead_all, leaders
from streamtight.method.parallelize.leaf import ancestors, packed_keys, uncertain, unpacked_keys
from streamtight.program.fork_join import Key, State
from streamtight.program.plan import Plan, Worker
from streamtight.stream.event import Event

_START, _STATE, _LAST, _FAILED, _STOP, _DONE = b"b", b"s", b"l", b"f", b"x", b"d"
_PATIENCE = 60.0
"""How many seconds the first leaf waits for the others."""

Pieces = list[tuple[str, bytes]]
_OVER, _CLOSED = object(), object()
"""What comes besides leaves: a try is over; no more leaves are taken."""


@dataclass(frozen=True, slots=True)
class Raised:
    """What a worker's code raised, as it can be sent: the error itself if it is one of ours, and how it came about."""

    error: StreamtightError | None
    text: str
    trace: str

    @classmethod
    def by(cls, error: BaseException) -> Raised:
        """What this error says."""
        ours = error if isinstance(error, StreamtightError) else None
        try:
            pickle.dumps(ours)
        except Exception:  # it holds what cannot be sent; its words can
            ours = None
        return cls(ours, f"{type(error).__name__}: {error}", "".join(traceback.format_exception(error)))


class Lost(Exception):
    """The other side of a connection is gone. User code may raise what connections raise, so this is told apart."""


_SIZE, _SMALL = 8, 65_536
"""So many bytes tell the size of a message, and so many are read at once."""
_EAGER, _CONTESTED, _PATIENT = 200e-6, 500e-6, 1_000
"""So many seconds a message is looked for; if others had the core for so many, so many messages are just waited for."""
Address = tuple[str, int] | str
"""A host and a port, or a file of this machine."""
Pack = Callable[[State], bytes]


def packed_plainly(state: State) -> bytes:
    """The bytes of a state."""
    return pickle.dumps(state, 5)


class Wire:
    """A connection whose other side is known: messages, each in one write and mostly in one read."""

    def __init__(self, connection: Connection, *, is_eager: bool = False) -> None:
        """is_eager   whether a message is looked for a moment before one waits for it"""
        self._patient = 0 if is_eager and hasattr(os, "sched_yield") else math.inf
        self._socket = socket.socket(fileno=os.dup(connection.fileno()))
        connection.close()
        if self._socket.family != socket.AF_UNIX:
            # Messages are small and each is waited for: the kernel must not collect them.
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._rest = b""

    def send(self, message: bytes) -> None:
        """Send a message; raises `Lost` if nobody is there."""
        size = len(message).to_bytes(_SIZE, "big")
        try:
            if len(message) < _SMALL:
                self._socket.sendall(size + message)
            else:
                self._socket.sendall(size)
                self._socket.sendall(message)
        except OSError as error:
            raise Lost(str(error)) from error

    def receive(self) -> memoryview:
        """The next message; raises `Lost` if there is none."""
        try:
            came = self._rest or self._some()
            while len(came) < _SIZE:
                came += self._some()
            size = _SIZE + int.from_bytes(came[:_SIZE], "big")
            if len(came) >= size:
                self._rest = came[size:]
                return memoryview(came)[_SIZE:size]
            self._rest = b""
            return self._large(came, size)
        except OSError as error:
            raise Lost(str(error)) from error

    def _large(self, came: bytes, size: int) -> memoryview:
        whole = bytearray(size)
        whole[: len(came)] = came
        left = memoryview(whole)[len(came) :]
        while left:
            count = self._socket.recv_into(left)
            if not count:
                raise Lost("the connection was closed")
            left = left[count:]
        return memoryview(whole)[_SIZE:]

    def _some(self) -> bytes:
        came = self._soon() or self._socket.recv(_SMALL)
        if not came:
            raise Lost("the connection was closed")
        return came

    def _soon(self) -> bytes:
        """What comes while one looks for it, or nothing.

        A core that falls asleep takes longer to wake than a synchronisation takes, most of all in a virtual machine. So
        it is kept awake for a moment; whoever else wants it, gets it. If somebody does, looking is left for a while:
        those who give way often are put last by the scheduler.
        """
        if self._patient > 0:
            self._patient -= 1
            return b""
        began = before = time.perf_counter()
        while True:
            with contextlib.suppress(BlockingIOError):
                return self._socket.recv(_SMALL, socket.MSG_DONTWAIT)
            now = time.perf_counter()
            if now - before > _CONTESTED:
                self._patient = _PATIENT
            if now - before > _CONTESTED or now - began > _EAGER:
                return b""
            before = now
            os.sched_yield()

    def wake(self) -> None:
        """Let nobody wait for a message any more."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def drain(self) -> None:
        """Wait until the other side ends it: what is closed with messages in it takes with it what was sent."""
        with contextlib.suppress(OSError):
            while self._socket.recv(_SMALL):
                pass

    def close(self) -> None:
        """End it."""
        self._socket.close()


# -- a leaf's side -----------------------------------------------------------------------------------------------


class Stopped(Exception):
    """The driver has no use for this leaf any more, since something was raised elsewhere."""


class Member:
    """A leaf's connection to the driver."""

    def __init__(self, address: Address, key: bytes, leaf: int, pack: Pack = packed_plainly) -> None:
        """pack   makes bytes of a state"""
        self._pack = pack
        try:
            connection = Client(address, authkey=key)
            connection.send(leaf)
        except (EOFError, OSError) as error:
            raise Lost(str(error)) from error
        self._wire = Wire(connection, is_eager=True)
        start = self._reply()
        self.state: State = pickle.loads(start[0])  # noqa: S301 - from the driver, which knows the key
        events = itertools.repeat(None) if start[2] is None else start[2]
        self.syncs: Iterator[tuple[Key, Event | None]] = zip(unpacked_keys(start[1]), events, strict=False)

    def exchange(self, state: State) -> State:
        """The state with which to go on after an event above."""
        self._wire.send(_STATE + self._pack(state))
        return pickle.loads(self._reply())  # noqa: S301 - from the driver, which knows the key

    def finish(self, state: State) -> Pieces:
        """Hand in the last state; gives what the workers on the driver have emitted, if this leaf is to carry it."""
        self._wire.send(_LAST + self._pack(state))
        pieces: Pieces = self._reply()
        return pieces

    def fail(self, error: BaseException) -> None:
        """Tell the driver what was raised here, and wait until it knows: its task must not end before."""
        with contextlib.suppress(Lost):
            self._wire.send(_FAILED + pickle.dumps(Raised.by(error), 5))
            self._wire.receive()

    def close(self) -> None:
        """End the connection."""
        self._wire.close()

    def _reply(self) -> Any:
        message = self._wire.receive()
        if message[:1] == _STOP:
            raise Stopped
        content = message[1:]
        return content if message[:1] == _STATE else pickle.loads(content)  # noqa: S301 - from the driver


# -- the driver's side -------------------------------------------------------------------------------------------


class _Line:
    """The driver's connection to a leaf. With the first state it sends where the events above are."""

    def __init__(self, wire: Wire, pack: Pack, above: Keyed, with_events: bool) -> None:
        self._wire, self._pack, self._above = wire, pack, above
        self._with_events = with_events
        self.send: Callable[[State], None] = self._send_first

    def _send_first(self, state: State) -> None:
        self.send = self._send_state
        events = [event for _, event in self._above] if self._with_events else None
        start = (self._pack(state), packed_keys([key for key, _ in self._above]), events)
        self._wire.send(_START + pickle.dumps(start, 5))

    def _send_state(self, state: State) -> None:
        self._wire.send(_STATE + self._pack(state))

    def receive(self) -> State:
        message = self._wire.receive()
        content = pickle.loads(message[1:])  # noqa: S301 - from a leaf that knows the key
        if message[:1] == _FAILED:
            raise _Reported(content)
        return content

    def done(self, pieces: Pieces) -> None:
        self._wire.send(_DONE + pickle.dumps(pieces, 5))

    def stop(self) -> None:
        with contextlib.suppress(Lost):
            self._wire.send(_STOP)


class _Reported(Exception):
    """A leaf told that its code raised."""

    def __init__(self, raised: Raised) -> None:
        super().__init__(raised.text)
        self.raised = raised


class Gang:
    """The driver's side of a run: waits for the leaves, leads them, and begins anew when they do.

    outputs      gives where the workers on the driver emit to, and what that is in the end; asked for each try
    host, bind   where leaves find the driver, and where it listens; without them, leaves are on this machine
    """

    def __init__(
        self,
        plan: Plan,
        state: bytes,
        events: Mapping[Worker, Keyed],
        outputs: Callable[[], tuple[Callable[[Event], None], Callable[[], Pieces]]],
        *,
        host: str | None = None,
        bind: str | None = None,
        pack: Pack = packed_plainly,
    ) -> None:
        self._pack = pack
        self._greeted: set[Connection] = set()
        self._plan, self._first, self._events, self._outputs = plan, state, events, outputs
        self._leaves = plan.leaves
        self._above: list[tuple[Keyed, bool]] = []
        for leaf in self._leaves:
            above = ancestors(plan, leaf)
            keyed = heapq.merge(*(events.get(each, ()) for each in above), key=lambda entry: entry[0])
            self._above.append((list(keyed), bool(uncertain(plan, leaf, above))))
        self.key = secrets.token_bytes(32)
        self._folder = tempfile.TemporaryDirectory(prefix="streamtight-") if host is None else None
        where: Address = (bind or host or "", 0) if self._folder is None else f"{self._folder.name}/gang"
        self._listener = Listener(where, backlog=2 * len(self._leaves) + 8)
        bound = self._listener.address
        self.address: Address = bound if host is None else (host, bound[1])
        self._arrivals: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = False
        self.tries = 0
        """How often all leaves have come together."""
        self.state: State = None
        """The state in the end, of the last try."""
        self.raised: Raised | None = None
        """What the program raised, if it did: nothing is tried again then."""
        self._settled = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._accept, self._manage)]
        for thread in self._threads:
            thread.start()

    def is_settled(self, seconds: float = 30.0) -> bool:
        """Whether a run came to its end, well or not; tasks that have ended may know it a moment before."""
        return self._settled.wait(seconds)

    def close(self) -> None:
        """Take no more leaves, and end all connections."""
        self._closed = True
        with contextlib.suppress(OSError):
            # Closing alone does not wake a thread that accepts; a connection does.
            Client(self._listener.address).close()
        self._listener.close()
        if self._folder is not None:
            self._folder.cleanup()
        self._arrivals.put(_CLOSED)
        for connection in list(self._greeted):  # those who came and said nothing
            _wake(connection)
        for thread in self._threads:
            thread.join(timeout=5)

    # -- who comes -----------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except OSError:
                continue
            # Each is greeted on its own: one that says nothing must not keep the others waiting.
            threading.Thread(target=self._greet, args=(connection,), daemon=True).start()

    def _greet(self, connection: Connection) -> None:
        self._greeted.add(connection)
        try:
            deliver_challenge(connection, self.key)
            answer_challenge(connection, self.key)
            self._arrivals.put((connection.recv(), Wire(connection)))
        except Exception:  # not one of ours: whatever it sent, it is not listened to
            connection.close()
        finally:
            self._greeted.discard(connection)

    def _manage(self) -> None:
        here: dict[int, Wire] = {}
        since = 0.0
        while True:
            try:
                came = self._arrivals.get(timeout=1.0 if here else None)
            except queue.Empty:
                if time.monotonic() - since > _PATIENCE:  # the others belong to an earlier try: all begin anew
                    _close_all(here)
                continue
            if came is _OVER:
                continue
            if came is _CLOSED:
                _close_all(here)
                return
            leaf, wire = came
            since = since if here else time.monotonic()
            if leaf in here:
                here[leaf].close()
            here[leaf] = wire
            if len(here) == len(self._leaves):
                wires, here = here, {}
                if (early := self._try(wires)) is not None:
                    self._arrivals.put(early)

    def _try(self, wires: dict[int, Wire]) -> Any:
        """One run with these leaves; ends early if a leaf comes that belongs to the next."""
        self._settled.clear()
        self.raised = None
        self.tries += 1
        over = threading.Event()
        thread = threading.Thread(target=self._lead, args=(wires, over), daemon=True)
        thread.start()
        early = self._arrivals.get()
        while early is _OVER and not over.is_set():  # of the try before
            early = self._arrivals.get()
        if not over.is_set():
            _wake_all(wires)
        thread.join()
        _close_all(wires)
        return None if early is _OVER else early

    def _lead(self, wires: Mapping[int, Wire], over: threading.Event) -> None:
        lines = [_Line(wires[place], self._pack, *above) for place, above in enumerate(self._above)]
        by_leaf = dict(zip(self._leaves, lines, strict=True))
        emit, taken = self._outputs()

        def failed(error: BaseException) -> None:
            if isinstance(error, Lost):
                _wake_all(wires)
            if isinstance(error, (Lost, Over)):
                return
            if self.raised is None:
                self.raised = error.raised if isinstance(error, _Reported) else Raised.by(error)
                self._settled.set()
            for line in lines:
                line.stop()

        try:
            state = pickle.loads(self._first)  # noqa: S301 - packed by this very process
            emits = dict.fromkeys(leaders(self._plan), emit)
            self.state = lead_all(self._plan, state, self._events, by_leaf.__getitem__, emits, failed)
            pieces = taken()
            for place, line in enumerate(lines):
                line.done([] if place else pieces)
            self._settled.set()
        except BaseException as error:
            failed(error)
            for wire in wires.values() if self.raised is not None else ():
                wire.drain()
        finally:
            over.set()
            self._arrivals.put(_OVER)


def _close_all(wires: dict[int, Wire]) -> None:
    for wire in wires.values():
        wire.close()
    wires.clear()


def _wake_all(wires: Mapping[int, Wire]) -> None:
    """Wake whoever waits for one of these; they are closed later, by whom they belong to."""
    for wire in wires.values():
        wire.wake()


def _wake(connection: Connection) -> None:
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
