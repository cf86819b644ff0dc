"""The server of the live page, over real sockets: what it answers, to whom, and what it refuses."""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamtight.errors import ReportError
from streamtight.report import live_server
from streamtight.report.live_server import LivePage
from streamtight.source.journal import Journal

TOKEN = "a-token-of-sixteen-or-more"  # noqa: S105 - of these tests
NASTY = "</script><img src=x onerror=alert(1)>\"'&\\\n\u202e\ud800"
Started = Callable[..., LivePage]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    return tmp_path / "board"


@pytest.fixture
def serve(board: Path) -> Iterator[Started]:
    started: list[LivePage] = []

    def start(**options: Any) -> LivePage:
        page = LivePage(options.pop("folder", board), **{"port": 0, **options})
        threading.Thread(target=page.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        started.append(page)
        return page

    yield start
    for page in started:
        page.shutdown()
        page.server_close()


@pytest.fixture(autouse=True)
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_server, "SECONDS_BETWEEN_LOOKS", 0.0)


class Got:
    def __init__(self, answer: http.client.HTTPResponse) -> None:
        self.status, self.body = answer.status, answer.read()
        self.headers = {name.lower(): value for name, value in answer.getheaders()}

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def ask(
    page: LivePage, path: str = "/", method: str = "GET", headers: dict[str, str] | None = None, **more: Any
) -> Got:
    connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=10)
    try:
        connection.putrequest(method, path, skip_host="Host" in (headers or {}), skip_accept_encoding=True)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        connection.endheaders(more.get("body"))
        return Got(connection.getresponse())
    finally:
        connection.close()


def raw(page: LivePage, request: bytes, seconds: float = 10) -> bytes:
    with socket.create_connection(("127.0.0.1", page.port), timeout=seconds) as connection:
        connection.sendall(request)
        came = b""
        while part := connection.recv(65536):
            came += part
        return came


# -- routes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("/", "text/html; charset=utf-8"), ("/live.js", "text/javascript; charset=utf-8"),
        ("/live.css", "text/css; charset=utf-8"), ("/state.json", "application/json"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"), ("/icon/FAILS.svg", "image/svg+xml"),
        ("/?anything", "text/html; charset=utf-8"),
    ],
)  # fmt: skip
def test_a_route_is_answered_with_its_type_and_its_protections(serve, path, type_):
    got = ask(serve(), path)

    assert (got.status, got.headers["content-type"]) == (200, type_)
    assert got.headers["x-content-type-options"] == "nosniff"
    assert got.headers["cache-control"] == "no-store"
    assert got.headers["referrer-policy"] == "no-referrer"
    assert got.headers["cross-origin-resource-policy"] == "same-origin"
    assert got.headers["x-frame-options"] == "DENY"
    policy = got.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy or path.endswith(".svg")


def test_the_page_has_no_code_of_its_own_so_that_its_policy_can_forbid_any(serve):
    page = ask(serve()).text

    assert re.findall(r"<script[^>]*>", page) == ['<script src="/live.js" defer>']
    assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", page)
    assert not re.search(r"https?://", page)


@pytest.mark.parametrize("name", ["live.js", "live.css"])
def test_nothing_is_loaded_from_elsewhere_and_no_text_becomes_html(serve, name):
    text = ask(serve(), f"/{name}").text.replace("http://www.w3.org/2000/svg", "")

    assert not re.search(r"https?://|@import|url\(", text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "//etc/passwd", "/live.html", "/page.css", "/live.js/",
        "/LIVE.JS", "/picture/../live.js", "/picture/1", "/picture/-1.svg", "/picture/1.svg/x", "/picture/%31.svg",
        "/picture/1.svg%00",
        "/picture/" + "9" * 30 + ".svg", "/picture/1.svg", "/finding.json", "/00000001.jsonl", "/%2e%2e/", "/.", "/..",
        "/state.json%20", "/static/", "/favicon.ico", "/icon/../live.js", "/icon/FAILS.svg/..",
        "/\\..\\..\\etc\\passwd",
    ],
)  # fmt: skip
def test_there_is_nothing_but_the_routes(serve, path):
    got = ask(serve(), path)

    assert got.status in (400, 404)
    assert got.headers["content-type"].startswith("text/plain")
    assert path not in got.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "get", "BREW"])
@pytest.mark.parametrize("path", ["/", "/state.json", "/nothing"])
def test_nothing_but_get_and_head_is_taken(serve, method, path):
    got = ask(serve(), path, method, body=b"x=1" if method == "POST" else None)

    assert got.status == 405
    assert got.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("path", ["/", "/state.json", "/metrics", "/nothing"])
def test_head_tells_what_get_would_without_it(serve, path):
    page = serve()

    head, got = ask(page, path, "HEAD"), ask(page, path)

    assert (head.status, head.body) == (got.status, b"")
    assert head.headers["content-type"] == got.headers["content-type"]
    assert abs(int(head.headers["content-length"]) - len(got.body)) < 10  # the time may have a digit less


# -- who may ask -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:{port}", "localhost", "localhost:{port}", "LOCALHOST:1", "[::1]:{port}"]
)
def test_loopback_has_several_names(serve, host):
    page = serve()

    assert ask(page, "/state.json", headers={"Host": host.format(port=page.port)}).status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example", "",
     "127.0.0.1@evil.example", "evil.example#127.0.0.1", "[::1", "10.0.0.1", "127.0.0.1:{port}.evil.example",
     "x" * 300],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/", "/state.json", "/metrics", "/live.js"])
def test_a_name_that_another_site_made_lead_here_is_refused(serve, host, path):
    page = serve()

    got = ask(page, path, headers={"Host": host.format(port=page.port)})

    assert got.status == 403
    assert "evil" not in got.text


def test_a_request_without_a_host_is_refused(serve):
    assert b" 403 " in raw(serve(), b"GET /state.json HTTP/1.1\r\n\r\n").split(b"\r\n")[0]


def test_with_a_token_nothing_is_told_without_it(serve, board):
    Journal(board, "secret job", kind="watch").note(batch=1)
    page = serve(token=TOKEN)

    for path in ("/", "/state.json", "/metrics", "/live.js", "/picture/1.svg", "/nothing"):
        for headers in (
            {}, {"Authorization": "Bearer wrong-token-of-some-length"}, {"Authorization": f"Basic {TOKEN}"},
            {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": "Bearer "},
            {"Cookie": f"streamtight_{page.port}="}, {"Cookie": f"streamtight_{page.port}={TOKEN}"},
            {"Cookie": f"streamtight_1={page._cookie}"},
            {"Cookie": "\xff;;=;\x01"}, {"Authorization": "Bearer \xe9\xff"},
        ):  # fmt: skip
            got = ask(page, path, headers={name: value.encode("latin-1") for name, value in headers.items()})
            assert (got.status, got.headers["www-authenticate"]) == (401, 'Bearer realm="streamtight"')
            assert "secret" not in got.text
            assert TOKEN not in got.text
    assert ask(page, f"/?token={TOKEN}x").status == 401
    assert ask(page, f"/state.json?token={TOKEN}").status == 401  # only where it can leave the address again


def test_the_token_opens_by_a_header_whatever_the_name(serve, board):
    Journal(board, "a", kind="watch")
    page = serve(token=TOKEN)

    got = ask(page, "/state.json", headers={"Authorization": f"Bearer {TOKEN}", "Host": "metrics.example"})

    assert got.json["jobs"][0]["name"] == "a"


def test_the_token_in_the_address_becomes_a_cookie_and_leaves_it(serve):
    page = serve(token=TOKEN)
    assert page.address.endswith(f"/?token={TOKEN}")

    first = ask(page, f"/?token={TOKEN}")
    cookie = first.headers["set-cookie"]
    again = ask(page, "/state.json", headers={"Cookie": f"other=1; {cookie.split(';')[0]}"})

    assert first.status == 200
    assert '<meta http-equiv="refresh" content="0;url=/">' in first.text
    assert TOKEN not in first.text + cookie
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
    assert again.status == 200
    assert ask(page, "/state.json").status == 401


def test_a_cookie_is_good_for_a_server_with_the_same_token_only(serve):
    page, same, other = serve(token=TOKEN), serve(token=TOKEN), serve(token=TOKEN[::-1])
    assert page._cookie == same._cookie
    assert page._cookie != other._cookie


@pytest.mark.parametrize("token", ["", "short", "x" * 15, "with spaces in the token", "semicolon;semicolon;", "é" * 20])
def test_a_token_that_is_short_or_cannot_stand_in_a_cookie_is_refused_and_not_repeated(board, token):
    with pytest.raises(ReportError) as error:
        LivePage(board, port=0, token=token)

    assert not token or token not in str(error.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_needs_no_token(serve, host):
    page = serve(host=host)

    assert (page.token, page.is_open) == (None, False)


def test_every_other_address_has_a_token_of_its_own_each_time(board):
    pages = [LivePage(board, host="0.0.0.0", port=0) for _ in range(2)]  # noqa: S104 - never served
    for page in pages:
        page.server_close()

    assert all(page.is_open and len(page.token) >= 32 for page in pages)
    assert pages[0].token != pages[1].token


@pytest.mark.parametrize("host", ["no.such.host.invalid", "8.8.8.8", "a b", ""])
def test_an_address_that_is_not_of_this_machine_is_told(board, host):
    with pytest.raises(ReportError, match="--host"):
        LivePage(board, host=host, port=0)


def test_a_port_that_is_taken_is_told_with_who_has_it(serve, board):
    page = serve()
    with pytest.raises(ReportError, match=r"another live page of streamtight.*--port 0"):
        LivePage(board, port=page.port)
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(ReportError, match="in use"):
        LivePage(board, port=other.getsockname()[1])


# -- clients that are slow, rude or many -----------------------------------------------------------------------------


def test_slow_clients_keep_nobody_waiting(serve):
    page = serve()
    slow = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(20)]
    for one in slow:
        one.sendall(b"GET / HT")

    begun = time.monotonic()
    assert ask(page).status == 200
    assert time.monotonic() - begun < 2
    for one in slow:
        one.close()


def test_a_client_that_sends_a_letter_now_and_then_is_let_go_in_time(serve, monkeypatch):
    monkeypatch.setattr(live_server, "SECONDS_TO_ASK", 0.5)
    page = serve()
    with socket.create_connection(("127.0.0.1", page.port), timeout=5) as one:
        begun, closed = time.monotonic(), False
        one.settimeout(0.1)
        while time.monotonic() - begun < 4 and not closed:
            try:
                one.sendall(b"x")
                closed = one.recv(100) == b""
            except TimeoutError:
                continue
            except OSError:
                closed = True

    assert closed
    assert time.monotonic() - begun < 3


def test_more_connections_than_there_is_room_for_are_turned_away_and_come_back_later(serve, monkeypatch):
    monkeypatch.setattr(live_server, "MOST_CONNECTIONS", 3)
    page = serve()
    held = [socket.create_connection(("127.0.0.1", page.port)) for _ in range(3)]
    time.sleep(0.3)

    assert b" 503 " in raw(page, b"")[:30]
    for one in held:
        one.close()
    time.sleep(0.3)
    assert ask(page).status == 200


@pytest.mark.parametrize(
    "request_",
    [
        b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1 more words\r\n\r\n",
        b"\x00\xff\x00\xff\r\n\r\n", b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: " + b"h" * 100_000 + b"\r\n\r\n",
        b"GET /?" + b"a=1&" * 100 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nNo colon here\r\n\r\n" , b"G" * 20_000,
    ],
    ids=range(13),
)  # fmt: skip
def test_what_is_no_request_is_refused_and_the_page_goes_on(serve, request_, capfd):
    page = serve()

    came = raw(page, request_)

    assert came == b"" or re.match(rb"HTTP/1.1 (4\d\d|505|200) ", came)
    assert b"evil" not in came
    assert ask(page).status == 200
    assert capfd.readouterr().err == ""


def test_one_connection_is_one_request(serve):
    twice = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2

    assert raw(serve(), twice).count(b"HTTP/1.1 200") == 1


def test_many_readers_at_once_see_the_same(serve, board):
    journals = [Journal(board, f"job {number}", kind="watch") for number in range(5)]
    page = serve()
    found: list[int] = []

    def read() -> None:
        for _ in range(10):
            found.append(len(ask(page, "/state.json").json["jobs"]))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for number in range(50):
        journals[number % 5].note(batch=number)
    for thread in threads:
        thread.join()

    assert found == [5] * 80


# -- what is told ----------------------------------------------------------------------------------------------------


def test_a_page_that_asks_again_is_told_what_is_new(serve, board):
    one, other = (Journal(board, name, kind="watch") for name in ("one", "other"))
    one.note(batch=1)
    other.note(batch=1)
    page = serve()
    first = ask(page, "/state.json").json
    assert first["fresh"]
    assert [job["name"] for job in first["jobs"]] == ["one", "other"]

    one.note(batch=2)
    second = ask(page, f"/state.json?since={first['next']}").json
    third = ask(page, f"/state.json?since={second['next']}").json

    assert not second["fresh"]
    assert [(job["name"], [point["batch"] for point in job["points"]]) for job in second["jobs"]] == [("one", [2])]
    assert "ids" not in second
    assert third["jobs"] == []


def test_nothing_is_told_twice_though_nothing_else_happens_meanwhile(serve, board):
    journal = Journal(board, "a", kind="watch")
    path = journal.folder / "00000001.jsonl"
    page = serve()
    since, told = "", []
    for number in range(5):
        journal.note(batch=number)
        os.utime(path, (1, 1))  # so that a line is the last thing that changed
        state = ask(page, f"/state.json?since={since}").json
        since = state["next"]
        told += [point["batch"] for job in state["jobs"] for point in job["points"]]

    assert told == [0, 1, 2, 3, 4]


def test_a_page_that_missed_nothing_has_in_the_end_what_a_new_one_gets(serve, board):
    journals = [Journal(board, f"job {number}", kind="watch") for number in range(3)]
    page = serve()
    known: dict[int, list[Any]] = {}
    since = ""
    for number in range(60):
        journals[number % 3].note(batch=number, rate=number / 7)
        if number % 4 == 0:
            state = ask(page, f"/state.json?since={since}").json
            since = state["next"]
            for job in state["jobs"]:
                known.setdefault(job["id"], []).extend(job["points"])
    for job in ask(page, f"/state.json?since={since}").json["jobs"]:
        known.setdefault(job["id"], []).extend(job["points"])

    whole = {job["id"]: job["points"] for job in ask(page, "/state.json").json["jobs"]}
    assert known == whole


@pytest.mark.parametrize(
    "since", ["x", "0", "-1", "0.5", "ffffffffffffffff.3", "{epoch}.999999", "{epoch}.-1", "{epoch}.", "%00"]
)
def test_a_number_that_this_server_did_not_give_means_everything(serve, board, since):
    Journal(board, "a", kind="watch").note(batch=1)
    page = serve()

    state = ask(page, f"/state.json?since={since.format(epoch=page.epoch)}").json

    assert state["fresh"]
    assert len(state["jobs"]) == 1


def test_jobs_that_come_and_go_are_told(serve, board):
    Journal(board, "stays", kind="watch")
    goes = Journal(board, "goes", kind="watch")
    page = serve()
    first = ask(page, "/state.json").json
    assert len(first["ids"]) == 2

    for path in goes.folder.iterdir():
        path.unlink()
    goes.folder.rmdir()
    second = ask(page, f"/state.json?since={first['next']}").json

    assert len(second["ids"]) == 1


def test_many_jobs_have_fewer_points_each_when_a_page_opens(serve, board, monkeypatch):
    monkeypatch.setattr(live_server, "MOST_POINTS", 240)
    monkeypatch.setattr(live_server, "FEWEST_POINTS", 10)
    for name in ("a", "b", "c", "d"):
        journal = Journal(board, name, kind="watch")
        for number in range(100):
            journal.note(batch=number)

    state = ask(serve(), "/state.json").json

    assert [[point["batch"] for point in job["points"]] for job in state["jobs"]] == [list(range(40, 100))] * 4


def test_texts_of_jobs_come_as_they_are_and_as_json(serve, board):
    journal = Journal(board, NASTY, kind="watch", asks=NASTY)
    journal.alarm(NASTY, NASTY)
    journal.found("DIVERGED", NASTY, story=NASTY)

    got = ask(serve(), "/state.json")

    (job,) = got.json["jobs"]
    assert got.body.isascii()
    assert (job["name"], job["asks"], job["alarms"][0][1:]) == (NASTY, NASTY, [NASTY, NASTY])
    assert (job["finding"]["story"], job["finding"]["picture"]) == (NASTY, False)
    assert job["finding"]["means"]


def test_a_board_of_rubbish_is_served_with_what_is_wrong(serve, board):
    (board / "x").mkdir(parents=True)
    (board / "x" / "00000001.jsonl").write_text("rubbish\n")
    (board / "y.txt").write_text("")
    Journal(board, "good", kind="watch")

    state = ask(serve(), "/state.json").json

    assert [job["name"] for job in state["jobs"]] == ["good"]
    assert [note.split(":")[0] for note in state["notes"]] == ["y.txt", "x"]


def test_a_board_that_is_not_there_is_an_empty_page(serve, tmp_path):
    page = serve(folder=tmp_path / "nowhere")

    assert ask(page).status == 200
    assert ask(page, "/state.json").json["jobs"] == []


# -- pictures --------------------------------------------------------------------------------------------------------

PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><path d="M0 0H4"/>{}</svg>'


def test_a_picture_is_cleaned_and_sandboxed(serve, board):
    evil = '<script>alert(1)</script><image href="http://evil.example"/><a href="javascript:x"/><g onload="x"/>'
    Journal(board, "a", kind="watch").found("X", "y", picture=PICTURE.format(evil))
    page = serve()
    state = ask(page, "/state.json").json

    got = ask(page, f"/picture/{state['jobs'][0]['id']}.svg")

    assert (got.status, got.headers["content-type"]) == (200, "image/svg+xml")
    assert got.headers["content-security-policy"].endswith("; sandbox")
    assert 'd="M0 0H4"' in got.text
    assert not re.search("script|evil|href|onload", got.text)


@pytest.mark.parametrize(
    "picture", ["", "no picture", "<html><script>x</script></html>", '<!DOCTYPE x [<!ENTITY a "b">]><svg/>']
)
def test_what_is_no_picture_is_not_served(serve, board, picture):
    Journal(board, "a", kind="watch").found("X", "y", picture=picture)
    page = serve()
    (job,) = ask(page, "/state.json").json["jobs"]

    assert ask(page, f"/picture/{job['id']}.svg").status == 404


# -- Prometheus ------------------------------------------------------------------------------------------------------

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\\\|\\"|\\n)*)"(?:,|$)')


def parsed(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """A second way to read the format, by its grammar: HELP, TYPE, then the samples of that name, each once."""
    assert text.endswith("\n")
    types: dict[str, str] = {}
    found: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    helped = current = ""
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            helped = line.split(" ")[2]
            assert helped not in types, "a name comes once"
        elif line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current == helped
            assert kind in ("counter", "gauge")
            assert current.endswith("_total") == (kind == "counter")
            types[current] = kind
        else:
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1] == current
            labels, place = [], 0
            while place < len(sample[2] or ""):
                one = LABEL.match(sample[2], place)
                assert one, line
                value = re.sub(r"\\(.)", lambda e: {"n": "\n"}.get(e[1], e[1]), one[2])
                labels.append((one[1], value))
                place = one.end()
            assert len({name for name, _ in labels}) == len(labels)
            key = (sample[1], tuple(sorted(labels)))
            assert key not in found, "a sample comes once"
            found[key] = float(sample[3])
    return found


def test_metrics_are_what_the_jobs_told(serve, board):
    journal = Journal(board, "taxis", kind="compare_live")
    journal.note(
        batch=3, rows={"left": 40, "right": 20}, rate=1.5, unmatched={"left": 20, "right": 0}, oldest=0.25, lag=2,
        seconds=0.5, keys=9, counts={"q": {"late": 1}}, values={"q": {"min": -1.5e-7}}, verdict="FAILS",
    )  # fmt: skip
    journal.alarm("STUCK", "x")
    journal.alarm("STUCK", "y")
    page = serve()

    found = parsed(ask(page, "/metrics").text)

    mine = (("folder", journal.folder.name), ("name", "taxis"))
    told = {
        (name.removeprefix("streamtight_"), *(one for one in labels if one not in mine)): value
        for (name, labels), value in found.items()
        if name != "streamtight_last_seen_timestamp_seconds"
    }
    assert told == {
        ("rows_total", ("side", "left")): 40, ("rows_total", ("side", "right")): 20, ("rows_per_second",): 1.5,
        ("unmatched_rows", ("side", "left")): 20, ("unmatched_rows", ("side", "right")): 0,
        ("oldest_unmatched_seconds",): 0.25, ("watermark_lag_seconds",): 2, ("batch_seconds",): 0.5, ("keys",): 9,
        ("answers_total", ("query", "q"), ("what", "late")): 1, ("query_value", ("of", "min"), ("query", "q")): -1.5e-7,
        ("verdict", ("outcome", "FAILS")): 1, ("verdict", ("outcome", "UNDECIDED")): 0,
        ("verdict", ("outcome", "HOLDS")): 0, ("alarms_total", ("finding", "STUCK")): 2, ("running",): 1,
        ("jobs",): 1, ("refused",): 0,
    }  # fmt: skip
    seen = found["streamtight_last_seen_timestamp_seconds", mine]
    assert abs(seen - time.time()) < 60


def test_odd_names_of_jobs_and_queries_do_not_spoil_the_metrics(serve, board):
    names = [
        "a",
        "a",
        'quote " here',
        "back\\slash",
        "new\nline",
        "\\n",
        "{}",
        "é 表 🎉",
        'x",y="z',
        "# HELP x",
        "\ud800",
        "",
    ]
    for name in names:
        Journal(board, name, kind="watch").note(
            batch=1, rows={name: 2**60}, counts={name: {name: 1}}, values={name: {name: 1e250, "min": -0.0}}
        )

    found = parsed(ask(serve(), "/metrics").text)

    told = [dict(labels)["name"] for name, labels in found if name == "streamtight_running"]
    folders = {dict(labels)["folder"] for name, labels in found if name == "streamtight_running"}
    assert len(told) == len(folders) == len(names)
    assert set(names) - {"\ud800", ""} <= set(told)
    rows = {dict(labels)["side"]: value for (name, labels), value in found.items() if name == "streamtight_rows_total"}
    assert rows['x",y="z'] == 2**60


def test_an_empty_board_has_metrics_too(serve):
    assert parsed(ask(serve(), "/metrics").text) == {("streamtight_jobs", ()): 0, ("streamtight_refused", ()): 0}
