"""The live page: a small server that shows the jobs of a board, and takes nothing.

It answers GET and HEAD on the few routes of `_ROUTES`, and nothing on them is the name of a file. Whoever asks from
another site by another name for this machine is refused by the Host header; whoever asks from another machine needs the
token. A connection is one request, read and answered within some seconds, so that a slow client keeps nobody waiting
for long. The page itself (live.html, live.css, live.js) is in this folder; texts of jobs come as JSON, never as HTML.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import http.client
import io
import ipaddress
import json
import re
import secrets
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from streamtight import __version__
from streamtight.errors import ReportError
from streamtight.findings import meaning_of
from streamtight.report.prometheus import CONTENT_TYPE, exposition
from streamtight.source.board import HISTORY, Board, Watched
from streamtight.stream.clean import cleaned

PORT = 8765
HOST = "127.0.0.1"
MOST_CONNECTIONS = 64
MOST_OF_HEAD = 16 * 1024
"""In bytes: the request line and the headers."""
SECONDS_TO_ASK, SECONDS_TO_ANSWER = 5.0, 30.0
SECONDS_BETWEEN_LOOKS = 0.4
"""However many pages are open, the board is read no more often."""
FEWEST_POINTS, MOST_POINTS = 60, 30_000
"""Of a job at least, and of all jobs about, when a page is opened."""
SHORTEST_TOKEN = 16
_TOKEN = re.compile(r"[\w.~-]+", re.ASCII)
_HOST = re.compile(r"(\[[\da-fA-F:]+\]|[\w.-]+)(?::\d{1,5})?", re.ASCII)
_PICTURE = re.compile(r"/picture/(\d{1,9})\.svg")
_SINCE = re.compile(r"([\da-f]{16})\.(\d{1,15})")

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PICTURE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; sandbox"
ICONS = {"FAILS": "#cf222e", "UNDECIDED": "#bf8700", "HOLDS": "#1a7f37", "NONE": "#59636e", "GONE": "#8c959f"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent back."""

    body: bytes
    type: str = "text/plain; charset=utf-8"
    status: HTTPStatus = HTTPStatus.OK
    policy: str = "default-src 'none'; frame-ancestors 'none'"
    headers: Mapping[str, str] | None = None


class LivePage(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """The server; `serve_forever()` runs it until `shutdown()` is called from another thread."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, folder: str | Path, *, host: str = HOST, port: int = PORT, token: str | None = None) -> None:
        """
        host    where it listens; an address that is not loopback needs a token, and gets one if none is given
        port    0 for any that is free
        token   what has to be known to see the page
        """
        if token is not None and (len(token) < SHORTEST_TOKEN or not _TOKEN.fullmatch(token)):
            raise ReportError(
                "--token ...",
                needed=f"at least {SHORTEST_TOKEN} letters, digits, or . _ ~ -",
                came=f"{len(token)} letters, or others",  # not which: it is a secret
                hint="none, on another address than 127.0.0.1: then one is made and printed",
            )
        family, address = _address(host, port)
        self.address_family = family
        self.is_open = not ipaddress.ip_address(address[0].partition("%")[0]).is_loopback
        self.token = secrets.token_urlsafe(24) if token is None and self.is_open else token
        self.board = Board(folder)
        self.epoch = secrets.token_hex(8)
        """Of this server: numbers of another one mean nothing here."""
        self._host = host
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._looked = -1e9
        self._look_lock = threading.Lock()
        super().__init__(address, _Handler)
        self.port: int = self.socket.getsockname()[1]

    def server_bind(self) -> None:
        """Bind, or say who is there."""
        try:
            super().server_bind()
        except OSError as error:
            self.socket.close()
            address = self.server_address
            raise ReportError(
                f"--host {self._host} --port {address[1]}",
                needed="an address on which nobody listens yet",
                came=_who_listens(str(address[0]), int(address[1]), error),
                hint="--port 0 takes a free one",
            ) from error

    @property
    def address(self) -> str:
        """Where a browser finds it, with the token if there is one."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}/" + (f"?token={self.token}" if self.token else "")

    # -- what is asked -----------------------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: Mapping[str, str]) -> Answer:
        """What is answered to a request."""
        if method not in ("GET", "HEAD"):
            return _refusal(HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD", {"Allow": "GET, HEAD"})
        if len(target) > 2_000 or not target.startswith("/"):
            return _refusal(HTTPStatus.BAD_REQUEST, "no such address")
        path, _, rest = target.partition("?")
        try:
            query = {name: values[-1] for name, values in parse_qs(rest, max_num_fields=20).items()}
        except ValueError:
            return _refusal(HTTPStatus.BAD_REQUEST, "no such address")
        if self.token is None:
            if not self._is_own_name(headers.get("Host", "")):
                return _refusal(
                    HTTPStatus.FORBIDDEN, "the name in the address is not one of this page: use 127.0.0.1 or localhost"
                )
        elif not self._knows_token(headers):
            if "token" in query and self._is(query["token"], self.token) and path == "/":
                return self._let_in()
            told = "this page needs its token: open the address that `streamtight watch --serve` printed"
            return _refusal(HTTPStatus.UNAUTHORIZED, told, {"WWW-Authenticate": 'Bearer realm="streamtight"'})
        elif path == "/" and "token" in query:
            return self._let_in()  # so that it leaves the address
        picture = _PICTURE.fullmatch(path)
        if picture is not None:
            return self._picture(int(picture[1]))
        route = _ROUTES.get(path)
        return _refusal(HTTPStatus.NOT_FOUND, "there is nothing here") if route is None else route(self, query)

    def _is_own_name(self, host: str) -> bool:
        """Another site may have made its own name lead here, and its pages would then be allowed to read ours."""
        name = _HOST.fullmatch(host)
        return name is not None and name[1].lower().strip("[]") in ("localhost", "127.0.0.1", "::1", self._host.lower())

    def _knows_token(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("Authorization", "")
        if given.startswith("Bearer ") and self._is(given.removeprefix("Bearer ").strip(), self.token or ""):
            return True
        try:
            cookie = SimpleCookie(headers.get("Cookie", "")).get(self._cookie_name)
        except CookieError:
            return False
        return cookie is not None and self._is(cookie.value, self._cookie)

    @staticmethod
    def _is(given: str, wanted: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())

    @property
    def _cookie_name(self) -> str:
        return f"streamtight_{self.port}"  # cookies do not tell ports apart

    @property
    def _cookie(self) -> str:
        """Not the token itself; and the same after a restart with the same token."""
        return hmac.new((self.token or "").encode(), b"cookie of the live page", hashlib.sha256).hexdigest()

    def _let_in(self) -> Answer:
        """The cookie, and on to the page. No redirect: after one, a cookie this strict would not come from a link."""
        body = b'<!doctype html><meta http-equiv="refresh" content="0;url=/"><title>streamtight</title>'
        cookie = f"{self._cookie_name}={self._cookie}; HttpOnly; SameSite=Strict; Path=/"
        return Answer(body, "text/html; charset=utf-8", headers={"Set-Cookie": cookie})

    # -- routes ------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        with self._look_lock:
            if time.monotonic() - self._looked >= SECONDS_BETWEEN_LOOKS:
                self.board.look()
                self._looked = time.monotonic()

    def _page(self, query: Mapping[str, str]) -> Answer:
        return Answer(_part("live.html"), "text/html; charset=utf-8", policy=PAGE_POLICY)

    def _script(self, query: Mapping[str, str]) -> Answer:
        return Answer(_part("live.js"), "text/javascript; charset=utf-8")

    def _style(self, query: Mapping[str, str]) -> Answer:
        return Answer(_part("page.css") + _part("live.css"), "text/css; charset=utf-8")

    def _metrics(self, query: Mapping[str, str]) -> Answer:
        self._look()
        with self.board.lock:
            text = exposition(self.board.jobs, refused=len(self.board.notes))
        return Answer(text.encode("utf-8", "replace"), CONTENT_TYPE)

    def _state(self, query: Mapping[str, str]) -> Answer:
        """What is new since the number that this server gave before; everything, if it did not."""
        self._look()
        known = _SINCE.fullmatch(query.get("since", ""))
        since = int(known[2]) if known is not None and known[1] == self.epoch else 0
        board = self.board
        with board.lock:
            since = since if since <= board.sequence else 0
            jobs = board.jobs
            most = HISTORY if since else max(FEWEST_POINTS, min(HISTORY, MOST_POINTS // max(1, len(jobs))))
            changed = [_job_state(job, since, most) for job in jobs if job.changed > since]
            ids = [job.id for job in jobs]
            head = {
                "next": f"{self.epoch}.{board.sequence}", "fresh": since == 0, "now": round(time.time(), 3),
                "board": str(board.folder), "version": __version__, "notes": board.notes,
            }  # fmt: skip
            if board.listed > since or since == 0:
                head["ids"] = ids
        text = f'{json.dumps(head)[:-1]},"jobs":[{",".join(changed)}]}}'
        return Answer(text.encode(), "application/json")

    def _picture(self, id_: int) -> Answer:
        drawn = cleaned(self.board.picture(id_))
        if not drawn:
            return _refusal(HTTPStatus.NOT_FOUND, "there is no picture")
        return Answer(drawn.encode("utf-8", "replace"), "image/svg+xml", policy=PICTURE_POLICY)

    # -- connections -------------------------------------------------------------------------------------------------

    def process_request(self, request: Any, client_address: Any) -> None:
        """One thread for each connection, and only so many."""
        if not self._free.acquire(blocking=False):
            request.settimeout(0.0)
            with contextlib.suppress(OSError):
                request.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """What the thread does."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error; a mistake of ours is shown as Python does."""
        import sys

        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


def _job_state(job: Watched, since: int, most: int) -> str:
    """A job as JSON: all of it but the points, of which those that are new."""
    found = job.finding
    told = {
        "id": job.id, "name": job.name, "folder": job.folder, "kind": job.kind, "asks": job.asks,
        "started": job.started, "starts": job.starts, "at": job.at, "alive": job.alive, "ended": job.ended,
        "verdict": job.verdict, "reason": job.reason, "latest": job.latest, "counted": job.alarm_counts,
        "alarms": list(job.alarms)[-10:], "unreadable": job.unreadable,
        "finding": None if found is None else {
            "finding": found.finding, "explanation": found.explanation, "story": found.story, "claim": found.claim,
            "at": found.at, "means": meaning_of(found.finding) or "", "picture": found.has_picture,
        },
    }  # fmt: skip
    points = [text for number, text in job.points if number > since][-most:]
    return f'{json.dumps(told)[:-1]},"points":[{",".join(points)}]}}'


def _icon(name: str) -> Callable[[LivePage, Mapping[str, str]], Answer]:
    circle = f'<circle cx="8" cy="8" r="7" fill="{ICONS[name]}"/>'
    body = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16">{circle}</svg>'
    return lambda page, query: Answer(body.encode(), "image/svg+xml", policy=PICTURE_POLICY)


_ROUTES: dict[str, Callable[[LivePage, Mapping[str, str]], Answer]] = {
    "/": LivePage._page,
    "/live.js": LivePage._script,
    "/live.css": LivePage._style,
    "/state.json": LivePage._state,
    "/metrics": LivePage._metrics,
    **{f"/icon/{name}.svg": _icon(name) for name in ICONS},
}


def _refusal(status: HTTPStatus, told: str, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(f"{told}\n".encode(), status=status, headers=headers)


class _Handler(BaseHTTPRequestHandler):
    """One request: its head is read within some seconds, or not at all."""

    server: LivePage
    server_version, sys_version = "streamtight", ""
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        head = self._read_head()
        if head is None:
            return
        self.close_connection = True
        self.rfile = io.BufferedReader(io.BytesIO(head))
        self.raw_requestline = self.rfile.readline()
        self.connection.settimeout(SECONDS_TO_ANSWER)
        if self.parse_request():
            headers = dict(reversed(self.headers.items()))  # of one that came twice, the first
            answer = self.server.answer(self.command, self.path, {name.title(): one for name, one in headers.items()})
            self._send(answer, with_body=self.command != "HEAD")
            if self.command not in ("GET", "HEAD"):
                self._let_go()

    def _read_head(self) -> bytes | None:
        """The request line and the headers; None if they do not come in time."""
        until, head = time.monotonic() + SECONDS_TO_ASK, b""
        while b"\r\n\r\n" not in head and b"\n\n" not in head:
            left = until - time.monotonic()
            if left <= 0:
                return None
            self.connection.settimeout(left)
            try:
                came = self.connection.recv(4096)
            except TimeoutError:
                return None
            if not came:
                return None
            head += came
            if len(head) > MOST_OF_HEAD:
                self._send(_refusal(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "too much"), with_body=True)
                self._let_go()
                return None
        return head

    def _let_go(self) -> None:
        """Take the rest of what is sent, for a moment: a connection that is closed before would lose the answer."""
        until, came = time.monotonic() + 0.5, 0
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while came < 1 << 20 and (left := until - time.monotonic()) > 0:
                self.connection.settimeout(left)
                part = len(self.connection.recv(65536))
                came += part
                if not part:
                    return

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """What the request could not be read for: as plain text, and without what came."""
        self.command = self.command or "GET"
        status = HTTPStatus(code)
        self._send(_refusal(status, status.phrase), with_body=True)

    def _send(self, answer: Answer, *, with_body: bool) -> None:
        lines = [
            f"HTTP/1.1 {answer.status.value} {answer.status.phrase}",
            f"Server: {self.server_version}",
            f"Content-Type: {answer.type}",
            f"Content-Length: {len(answer.body)}",
            f"Content-Security-Policy: {answer.policy}",
            "Cache-Control: no-store",
            "Connection: close",
            "Cross-Origin-Opener-Policy: same-origin",
            "Cross-Origin-Resource-Policy: same-origin",
            "Referrer-Policy: no-referrer",
            "X-Content-Type-Options: nosniff",
            "X-Frame-Options: DENY",
            *(f"{name}: {value}" for name, value in (answer.headers or {}).items()),
            "\r\n",
        ]
        self.connection.sendall("\r\n".join(lines).encode("latin-1") + (answer.body if with_body else b""))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is Python's
        """Nothing: a page that is open asks each second."""


@cache
def _part(name: str) -> bytes:
    return resources.files("streamtight.report").joinpath(name).read_bytes()


def _address(host: str, port: int) -> tuple[socket.AddressFamily, tuple[Any, ...]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError, OverflowError) as error:
        raise ReportError(
            f"--host {host} --port {port}",
            needed="an address of this machine",
            came=str(error),
            hint="--host 127.0.0.1",
        ) from error
    return found[0], found[4]


def _who_listens(host: str, port: int, error: OSError) -> str:
    """Who has the port, as far as that can be found out."""
    asked = http.client.HTTPConnection(host, port, timeout=1)
    try:
        asked.request("HEAD", "/", headers={"Host": "127.0.0.1"})
        server = asked.getresponse().getheader("Server", "")
    except (OSError, http.client.HTTPException):
        return str(error.strerror or error)
    finally:
        asked.close()
    return "another live page of streamtight, which is there already" if server == "streamtight" else "another server"
