"""What a live comparison reads back from its checkpoint: JSON that this version wrote, and nothing else.

Whoever may write to a checkpoint can change what the comparison believes, but reading it runs nothing.
"""

from __future__ import annotations

import json
from typing import Any

from streamtight.errors import TraceError

VERSION = 2
"""Of a bucket's state and of the book. The first one was pickles."""


def read_kept(text: bytes, where: str) -> dict[str, Any]:
    """The dict that this text of a checkpoint is, of this version. Raises TraceError for anything else."""
    if text[:1] == b"\x80":
        raise refused(where, "a pickle, which an older version wrote; pickles can run code, so none is read")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:  # also text that is no UTF-8
        raise refused(where, f"{type(error).__name__}: {error}"[:200]) from error
    if not isinstance(data, dict) or type(data.get("streamtight")) is not int or data["streamtight"] != VERSION:
        version = data.get("streamtight", "of before") if isinstance(data, dict) else "none"
        raise refused(where, f"version {version!r:.50}")
    return data


def refused(where: str, came: str) -> TraceError:
    """The error for what this version did not write."""
    return TraceError(
        where,
        needed=f"what this version of streamtight writes: JSON, version {VERSION}",
        came=came,
        hint="a new checkpoint folder; what was compared before is then not known any more",
    )
