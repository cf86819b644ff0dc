"""The generators under one name: `gen.until(gen.batch(User), gen.batch_of([bad]), within=10)`.

>>> from streamtight.source import gen
>>> from streamtight.stream.event import Kind
>>> N = Kind("N", n=int)
>>> gen.always(gen.batch(N, size=2), during=3)
always(batch(N, size=2), during=3)
"""

from streamtight.source.batches import BatchGenerator, batch, batch_of, elements_of, empty
from streamtight.source.streams import (
    StreamGenerator,
    always,
    eventually,
    now,
    one_of,
    release,
    stream,
    streams,
    until,
)
from streamtight.source.streams import next_ as next  # noqa: A004 - as gen.next, which shadows nothing

__all__ = [
    "BatchGenerator",
    "StreamGenerator",
    "always",
    "batch",
    "batch_of",
    "elements_of",
    "empty",
    "eventually",
    "next",
    "now",
    "one_of",
    "release",
    "stream",
    "streams",
    "until",
]
