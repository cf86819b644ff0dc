"""Counterexamples that are kept: in files, or as a token that can be sent to somebody.

A kept case says how the question was asked (a command, or a test) and on which schedule the answer was FAILS. While a
`Keeper` is in charge, a question that it knows is asked of the kept schedule first. A case that does not fail any more
is removed. All of it is plain JSON: nothing that is read here is run, but for the user's own command or test.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamtight.errors import SourceError, StreamtightError
from streamtight.redaction import without_secrets
from streamtight.stream.event import Kind
from streamtight.stream.plain import schedule_data, schedule_from
from streamtight.stream.schedule import Schedule
from streamtight.verdict import Outcome, Scope, Verdict

FOLDER = ".streamtight"
"""Where they are kept, if nobody says: below the folder where the question is asked."""
VERSION = 1
TOKEN = "st1-"  # noqa: S105 - no secret
"""What a token begins with: also the version of what is in it."""
MOST_BYTES = 16 * 2**20
"""A token that unpacks to more than this is refused."""
STILL_FAILS = "an input that failed before, and was kept"
NOTHING_KEPT = "no input of this question was kept, and no other was tried"
"""Why a question has no answer while nothing but kept inputs is tried, and it has none."""
Ask = Mapping[str, Any]
"""How a question was asked: {"command": [...]}, or {"test": "its node id"}."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A question that was answered FAILS, and the input for which it was."""

    ask: Ask
    claim: str
    finding: str
    explanation: str
    seed: int | None = None
    schedule: Mapping[str, Any] | None = None
    """As `schedule_data` gives it; None if asking again is all that is needed."""
    code: str = ""
    """The lines of Python that show it again, for people; they are not run."""
    path: Path | None = field(default=None, compare=False)

    @property
    def id(self) -> str:
        """Eight letters that stand for the question: the same as long as it is asked the same way."""
        return hashlib.sha256(json.dumps([self.ask, self.claim], sort_keys=True).encode()).hexdigest()[:8]

    @property
    def token(self) -> str:
        """All of it as one word, for another machine."""
        packed = zlib.compress(json.dumps(self._data(), separators=(",", ":")).encode(), 9)
        return TOKEN + base64.urlsafe_b64encode(packed).decode().rstrip("=")

    def schedule_of(self, kinds: Iterable[Kind]) -> Schedule | None:
        """The input, of events of these kinds; raises if they have changed since."""
        return None if self.schedule is None else schedule_from(self.schedule, kinds)

    @classmethod
    def of(cls, verdict: Verdict, ask: Ask) -> Kept:
        """What there is to keep of a verdict that FAILS."""
        found = verdict.counterexample
        if found is None:
            raise SourceError("keep(verdict)", needed="a verdict that FAILS", came=str(verdict), hint="verdict.fails")
        schedule = None if found.schedule is None else schedule_data(found.schedule)
        code = without_secrets(found.replay)  # for people; it is not run
        return cls(ask, verdict.claim, found.finding, found.explanation, verdict.scope.seed, schedule, code)

    @classmethod
    def read(cls, what: str | Path) -> Kept:
        """The case in a file, or in a token."""
        if isinstance(what, str) and what.startswith(TOKEN):
            return cls._from(_unpacked(what), f"the token {what[:20]}...", None)
        path = Path(what)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _unreadable(str(path), f"{type(error).__name__}: {error}") from error
        return cls._from(text, str(path), path)

    @classmethod
    def _from(cls, text: str, where: str, path: Path | None) -> Kept:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise _unreadable(where, f"{type(error).__name__}: {error}") from error
        match data:
            case {
                "streamtight": int(version),
                "ask": dict(ask),
                "claim": str(claim),
                "finding": str(finding),
                "explanation": str(explanation),
                "seed": int() | None as seed,
                "schedule": dict() | None as schedule,
                "code": str(code),
            }:
                if version != VERSION:
                    raise _unreadable(where, f"version {version}")
                if not _is_ask(ask):
                    raise _unreadable(where, f"asked by {ask!r:.100}")
                return cls(ask, claim, finding, explanation, seed, schedule, code, path)
        raise _unreadable(where, f"{text[:60]!r}")

    def _data(self) -> dict[str, Any]:
        return {
            "streamtight": VERSION,
            "ask": dict(self.ask),
            "claim": self.claim,
            "finding": self.finding,
            "explanation": self.explanation,
            "seed": self.seed,
            "schedule": self.schedule,
            "code": self.code,
        }

    def write(self, folder: Path) -> Kept:
        """The same in a file of this folder; whoever reads it meanwhile sees the old one or the new one."""
        folder.mkdir(parents=True, exist_ok=True)
        if not (folder / ".gitignore").exists():
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        path = folder / f"{re.sub(r'[^a-z0-9]+', '_', self.claim.lower())[:50].strip('_')}-{self.id}.json"
        with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".part", delete=False, encoding="utf-8") as file:
            json.dump(self._data(), file, indent=2)
        Path(file.name).replace(path)
        return replace(self, path=path)


@dataclass(slots=True)
class Keeper:
    """Keeps cases in a folder, for questions that are asked this way."""

    folder: Path
    ask: Ask
    only: bool = False
    """Whether nothing but kept cases is tried."""
    retired: list[Kept] = field(default_factory=list)
    """Those that did not fail any more."""
    outdated: list[Kept] = field(default_factory=list)
    """Those that cannot come any more."""
    tried: list[Kept] = field(default_factory=list)
    """Those that a question was asked of."""
    given: tuple[Kept, ...] = ()
    """Those to try besides what is in the folder."""

    def keep(self, verdict: Verdict) -> Kept:
        """Keep the counterexample of a verdict, in place of an earlier one of the same question."""
        return Kept.of(verdict, self.ask).write(self.folder)

    def all(self) -> list[Kept]:
        """All that can be read in the folder, whoever asked."""
        return list(all_kept(self.folder))

    def of(self, claim: str) -> list[Kept]:
        """Those of this question."""
        found = [one for one in (*self.given, *self.all()) if one.claim == claim and one.ask == self.ask]
        return list({one.id: one for one in reversed(found)}.values())

    def retire(self, kept: Kept) -> None:
        """Forget a case that does not fail any more."""
        self.retired.append(kept)
        self._forget(kept)

    def outdate(self, kept: Kept) -> None:
        """Forget a case whose kinds are not what they were: it cannot come any more."""
        self.outdated.append(kept)
        self._forget(kept)

    def _forget(self, kept: Kept) -> None:
        if kept.path is not None:
            with contextlib.suppress(OSError):  # of a folder that cannot be written it stays, and is tried again
                kept.path.unlink(missing_ok=True)


def all_kept(folder: Path) -> Iterator[Kept]:
    """The cases in a folder, by their names; what cannot be read is passed over."""
    for path in sorted(folder.glob("*.json")) if folder.is_dir() else ():
        with contextlib.suppress(StreamtightError):
            yield Kept.read(path)


_IN_CHARGE: ContextVar[Keeper | None] = ContextVar("keeper", default=None)


@contextlib.contextmanager
def keeping(keeper: Keeper) -> Iterator[Keeper]:
    """While this is open, questions that the keeper knows are asked of its kept cases first."""
    before = _IN_CHARGE.set(keeper)
    try:
        yield keeper
    finally:
        _IN_CHARGE.reset(before)


def keeper_in_charge() -> Keeper | None:
    """The keeper, if there is one."""
    return _IN_CHARGE.get()


def kept_answer(claim: str, kinds: Iterable[Kind], ask: Callable[[Schedule], Verdict]) -> Verdict | None:
    """What the kept inputs of this question say, if that is an answer: one still fails, or nothing else may be tried.

    `ask` gives the verdict on one input. An input on which it holds now is retired; one whose kinds have changed
    since is outdated.
    """
    keeper, kinds, right, tried = _IN_CHARGE.get(), tuple(kinds), 0, 0
    if keeper is None:
        return None
    for kept in keeper.of(claim):
        try:
            schedule = kept.schedule_of(kinds)
        except StreamtightError:
            keeper.outdate(kept)
            continue
        if schedule is None:
            continue
        verdict, tried = ask(schedule), tried + 1
        keeper.tried.append(kept)
        if verdict.fails:
            return replace(verdict, scope=Scope.tested(1, seed=kept.seed), method=STILL_FAILS)
        if verdict.holds:
            keeper.retire(kept)
            right += 1
    if not keeper.only:
        return None
    if tried and right == tried:
        return Verdict(claim, Outcome.HOLDS, Scope.tested(tried), method="inputs that failed before, and nothing else")
    reason = "not decided on the input that was kept, and no other was tried" if tried else NOTHING_KEPT
    return Verdict(claim, Outcome.UNDECIDED, Scope.tested(tried), reason=reason)


def _is_ask(ask: Mapping[str, Any]) -> bool:
    match ask:
        case {"command": [str(), *_] as words} if len(ask) == 1:
            return all(isinstance(word, str) for word in words)
        case {"test": str()} if len(ask) == 1:
            return True
    return False


def _unpacked(token: str) -> str:
    body = token.removeprefix(TOKEN)
    try:
        packed = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
        unpacker = zlib.decompressobj()
        text = unpacker.decompress(packed, MOST_BYTES)
        if unpacker.unconsumed_tail or not unpacker.eof:
            raise _unreadable(f"the token {token[:20]}...", "one that is cut off, or too large")
        return text.decode()
    except (binascii.Error, zlib.error, UnicodeDecodeError) as error:
        raise _unreadable(f"the token {token[:20]}...", f"{type(error).__name__}: {error}") from error


def _unreadable(where: str, came: str) -> SourceError:
    return SourceError(
        where,
        needed="a kept counterexample, as streamtight writes it",
        came=came,
        hint=f"a file of the folder {FOLDER}, or a whole token, which begins with {TOKEN}",
    )
