"""Pictures of schemas: SVG, which notebooks and browsers show. Each part stands above those that it is made of."""

from __future__ import annotations

from collections.abc import Iterable

from streamtight.stream import svg
from streamtight.stream.event import Kind
from streamtight.stream.schema import Bag, Par, PartitionBy, Schema, Sync
from streamtight.stream.tree_picture import Box, tree_picture

MOST_LINES, MOST_LETTERS = 6, 44
"""So much is told of the kinds of a part; the whole text is there when the pointer rests on it."""


def schema_picture(schema: Schema) -> str:
    """A schema as SVG: what is in one order, what is split by which key, what is in no order."""
    return tree_picture(repr(schema), _box(schema))


def schemas_picture(**schemas: Schema) -> str:
    """Several schemas side by side, each with its name."""
    named = [Box([name], repr(schema), [_box(schema)]) for name, schema in schemas.items()]
    return tree_picture(" and ".join(f"{name} {schema!r}" for name, schema in schemas.items()), *named)


def _box(schema: Schema) -> Box:
    match schema:
        case Sync(between=Bag(kinds=kinds)) if not kinds:
            return _part("in one order", schema.markers, schema)
        case Sync():
            return _part("in one order, the rest between them", schema.markers, schema, schema.between)
        case PartitionBy():
            return _part(f"for each {', '.join(schema.fields)}", (), schema, schema.each)
        case Par():
            return _part("side by side", (), schema, *schema.parts)
    return _part("in no order", schema.kinds, schema)


def _part(head: str, kinds: Iterable[Kind], schema: Schema, *parts: Schema) -> Box:
    texts = [svg.cut(repr(kind), MOST_LETTERS) for kind in sorted(kinds, key=lambda kind: kind.name)]
    if len(texts) > MOST_LINES:
        texts[MOST_LINES - 1 :] = [f"and {len(texts) - MOST_LINES + 1} more"]
    return Box([head, *texts], repr(schema), [_box(part) for part in parts])
