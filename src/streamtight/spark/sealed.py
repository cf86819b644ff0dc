"""States of the user's own code in checkpoints: pickles, of which only those are read that this user has written.

Such a state may be any object, and reading a pickle may run code. So each is sealed with a key (HMAC-SHA256) that
others do not have: the text of the environment variable STREAMTIGHT_KEY, or a file that is made at first use and that
nobody else may read. A pickle without our seal is read only if it holds plain values alone: numbers, texts, bytes,
None, and tuples, lists, sets and dicts of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import os
import pickle
import pickletools
import secrets
import stat
from pathlib import Path
from typing import Any, NoReturn

from streamtight.errors import CheckpointError

VARIABLE = "STREAMTIGHT_KEY"
LEAST_LETTERS = 16
_HEADER = b"streamtight 2\n"
_SEAL_BYTES = 32
_KEY_BYTES = 32


def own_key() -> bytes:
    """The key of this user; made at first use."""
    given = os.environ.get(VARIABLE)
    if given is not None:
        if len(given) < LEAST_LETTERS:
            raise _refused(VARIABLE, "a long text", f"{len(given)} letters", "openssl rand -hex 32")
        return hashlib.sha256(given.encode("utf-8", "surrogateescape")).digest()
    place = _place()
    try:
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not place.exists():
            _make(place)
        return _read(place)
    except OSError as error:
        hint = f"a home folder that can be written, or {VARIABLE} in the environment"
        raise _refused(
            f"the key in {place}", "a file of one's own", f"{type(error).__name__}: {error}", hint
        ) from error


def sealed(packed: bytes, key: bytes) -> bytes:
    """A pickle with our seal, for a checkpoint."""
    return _HEADER + _seal(packed, key) + packed


def opened(blob: bytes, key: bytes, where: str) -> bytes:
    """The pickle that was sealed. Raises CheckpointError unless it may be read."""
    start = len(_HEADER) + _SEAL_BYTES
    if not blob.startswith(_HEADER) or len(blob) <= start:
        came = "a pickle of an older version" if blob[:1] == b"\x80" else f"{blob[:20]!r}"
        raise _refused(where, "what this version of streamtight writes", came, "a new checkpoint folder")
    seal, packed = blob[len(_HEADER) : start], blob[start:]
    if not hmac.compare_digest(seal, _seal(packed, key)) and not _is_plain(packed):
        raise _refused(
            where,
            "a state that was written with this user's key, since reading it may run code",
            "one with another seal: of another user or machine, or changed since",
            f"the same {VARIABLE} in the environment of every driver that uses this checkpoint; or a new checkpoint",
        )
    return packed


def _seal(packed: bytes, key: bytes) -> bytes:
    return hmac.new(key, _HEADER + packed, hashlib.sha256).digest()


class _PlainOnly(pickle.Unpickler):
    """Reads pickles that name no class and no function. All that a pickle can run, it must name."""

    def find_class(self, module: str, name: str, /) -> NoReturn:
        raise pickle.UnpicklingError(f"{module}.{name}")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError("persistent")


def _is_plain(packed: bytes) -> bool:
    with contextlib.suppress(Exception):  # broken pickles raise whatever they like
        # Numbers that stand for classes are looked up in a table of the process, without a question to `find_class`.
        if any(code.name.startswith("EXT") for code, _, _ in pickletools.genops(packed)):
            return False
        return _has_plain_values(_PlainOnly(io.BytesIO(packed)).load())
    return False


def _has_plain_values(value: Any) -> bool:
    """Not only was no class named: what was made is nothing but values, to the bottom."""
    waiting, seen = [value], set()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            waiting += [*one, *one.values()]
        elif isinstance(one, list | tuple | set | frozenset):
            waiting += one
        elif not (one is None or isinstance(one, bool | int | float | complex | str | bytes | bytearray)):
            return False
    return True


def _place() -> Path:
    root = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(root) / "streamtight" / "key"


def _make(place: Path) -> None:
    """A new key, whole or not there: another process may be at it."""
    aside = place.with_name(f".key-{secrets.token_hex(8)}")
    with open(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
    try:
        os.link(aside, place)  # unlike a rename, this fails if another was quicker
    except FileExistsError:
        pass
    finally:
        aside.unlink()


def _read(place: Path) -> bytes:
    with open(os.open(place, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0)), "rb") as file:
        known = os.fstat(file.fileno())
        is_ours = not hasattr(os, "getuid") or known.st_uid == os.getuid()
        if not (is_ours and stat.S_ISREG(known.st_mode)) or known.st_mode & 0o077:
            came = "one that others own, or may read or write"
            hint = f"chmod 600 {place}, if nobody else had it; or delete it, and begin with new checkpoints"
            raise _refused(f"the key in {place}", "a file that nobody else can read", came, hint)
        key = file.read()
    if len(key) != _KEY_BYTES:
        hint = "delete it, and begin with new checkpoints"
        raise _refused(f"the key in {place}", f"{_KEY_BYTES} bytes", f"{len(key)}", hint)
    return key


def _refused(where: str, needed: str, came: str, hint: str) -> CheckpointError:
    return CheckpointError(where, needed=needed, came=came, hint=hint)
