"""Pictures as a page may show them: SVG of which only shapes and texts are left.

A report may be made of a file of another person, so what is in its pictures is not trusted: no scripts, no links, no
style but our own, nothing that is loaded from anywhere.

>>> cleaned('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script><g id="x"/></svg>')
'<svg xmlns="http://www.w3.org/2000/svg"><g /></svg>'
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from streamtight.stream.svg import STYLE

SVG = "http://www.w3.org/2000/svg"
MOST_LETTERS = 2_000_000
"""A picture that is longer is not shown."""
ELEMENTS = frozenset(
    [
        "svg",
        "g",
        "path",
        "rect",
        "circle",
        "ellipse",
        "line",
        "polyline",
        "polygon",
        "text",
        "tspan",
        "title",
        "desc",
        "style",
    ]
)
ATTRIBUTES = frozenset(
    [
        "aria-label",
        "class",
        "color",
        "cx",
        "cy",
        "d",
        "dx",
        "dy",
        "fill",
        "fill-opacity",
        "fill-rule",
        "font-family",
        "font-size",
        "font-style",
        "font-weight",
        "height",
        "opacity",
        "points",
        "r",
        "role",
        "rx",
        "ry",
        "stroke",
        "stroke-dasharray",
        "stroke-linecap",
        "stroke-linejoin",
        "stroke-opacity",
        "stroke-width",
        "text-anchor",
        "transform",
        "viewBox",
        "width",
        "x",
        "x1",
        "x2",
        "y",
        "y1",
        "y2",
    ]
)
_FREE = frozenset({"aria-label"})
_VALUE = re.compile(r"[-\w\s.,#%+()]*")


def cleaned(picture: str) -> str:
    """The picture without anything that does more than to be looked at; nothing if it is no picture."""
    if not picture or len(picture) > MOST_LETTERS or "<!" in picture or "<?" in picture:
        return ""
    try:
        root = ElementTree.fromstring(picture)  # noqa: S314 - it has no document type, so there are no entities
    except (ElementTree.ParseError, ValueError, RecursionError):
        return ""
    if root.tag != f"{{{SVG}}}svg":
        return ""
    _clean(root)
    return ElementTree.tostring(root, encoding="unicode")


def _clean(root: ElementTree.Element) -> None:
    waiting = [root]
    while waiting:
        element = waiting.pop()
        name = element.tag.removeprefix(f"{{{SVG}}}")
        if name == "style":
            element.text = STYLE
            element[:] = []
        for attribute, value in list(element.attrib.items()):
            known = attribute in ATTRIBUTES and (attribute in _FREE or _VALUE.fullmatch(value))
            if not known or ("(" in value and attribute not in ("transform", *_FREE)):
                del element.attrib[attribute]
        for child in list(element):
            is_known = isinstance(child.tag, str) and child.tag.removeprefix(f"{{{SVG}}}") in ELEMENTS
            if is_known and child.tag.startswith(f"{{{SVG}}}"):
                waiting.append(child)
            else:
                element.remove(child)
        element.tag = name
    root.attrib = {"xmlns": SVG, **root.attrib}
