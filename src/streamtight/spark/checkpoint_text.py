"""What is read back from the checkpoints of live comparisons and parallel streams: JSON that this version wrote.

Whoever may write to a checkpoint can change what is believed to have happened, but reading it runs nothing.
"""

from __future__ import annotations

import json
from typing import Any

from streamtight.errors import CheckpointError

VERSION = 2
"""Of all these files. The first one was pickles."""


def read_kept(text: bytes, where: str) -> dict[str, Any]:
    """The dict that this text of a checkpoint is, of this version. Raises CheckpointError for anything else."""
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


def refused(where: str, came: str) -> CheckpointError:
    """The error for what this version did not write."""
    return CheckpointError(
        where,
        needed=f"what this version of streamtight writes: JSON, version {VERSION}",
        came=came,
        hint="a new checkpoint folder, in which everything begins anew",
    )
