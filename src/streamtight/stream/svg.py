"""The frame that all pictures share: SVG with ink, paper and a colour for marks, which go together on any page.

Colours are dark on light or light on dark, as the reader likes it, and dark on light in print. A page may set them with
the variables `--tight-ink`, `--tight-paper` and `--tight-mark`. All pictures have the same style, so that several may
stand on one page.

>>> print(frame(["<path d='M0 0H4'/>"], 40, 20, "a < b").splitlines()[0])
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 20" width="40" height="20" role="img" aria-label="a &lt; b" \
font-family="monospace" font-size="12">
>>> cut("sensor_reading", 7)
'sensor…'
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from html import escape

LETTER, SMALL = 7.5, 6.5
"""In pixels: the width of a letter, and of a small one."""
SMALL_SIZE = 10
"""The font size of small letters."""
MOST_OF_TITLE = 2_000
"""So many letters are told of a whole text when the pointer rests on what was cut."""

_LIGHT = {"ink": "#1f2328", "paper": "#ffffff", "mark": "#cf222e"}
_DARK = {"ink": "#e6edf3", "paper": "#0d1117", "mark": "#ff7b72"}


def _rules(colours: dict[str, str]) -> str:
    ink, paper, mark = (f"var(--tight-{name}, {colours[name]})" for name in ("ink", "paper", "mark"))
    return f".tight-ink {{ color: {ink}; }} .tight-paper {{ fill: {paper}; }} .tight-mark {{ color: {mark}; }}"


STYLE = f"{_rules(_LIGHT)} @media screen and (prefers-color-scheme: dark) {{ {_rules(_DARK)} }}"
"""The style of every picture."""


def frame(lines: Iterable[str], width: float, height: float, label: str) -> str:
    """These lines of SVG as a picture of this size; `label` says what a reader who cannot see it is told."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
            f'height="{height:g}" role="img" aria-label="{escaped(cut(label, MOST_OF_TITLE))}" '
            'font-family="monospace" font-size="12">',
            f"<style>{STYLE}</style>",
            # The attributes are for programs that know no variables.
            f'<path class="tight-paper" fill="{_LIGHT["paper"]}" d="M0 0H{width:g}V{height:g}H0Z"/>',
            f'<g class="tight-ink" color="{_LIGHT["ink"]}" fill="currentColor">',
            *lines,
            "</g>",
            "</svg>",
        ]
    )


def words(
    text: str, x: float, y: float, *, size: int = 12, bold: bool = False, anchor: str = "start", faint: bool = False
) -> str:
    """A line of text whose baseline is at y, and which begins, ends or has its middle at x."""
    anchored = "" if anchor == "start" else f' text-anchor="{anchor}"'
    sized = "" if size == 12 else f' font-size="{size}"'
    weight = ' font-weight="bold"' if bold else ""
    opacity = ' fill-opacity="0.65"' if faint else ""
    return f'<text x="{x:g}" y="{y:g}"{anchored}{sized}{weight}{opacity}>{escaped(text)}</text>'


def titled(title: str, *lines: str, marked: bool = False) -> str:
    """These lines as a group that tells this text when the pointer rests on it."""
    mark = ' class="tight-mark"' if marked else ""
    return f"<g{mark}><title>{escaped(cut(title, MOST_OF_TITLE))}</title>{''.join(lines)}</g>"


def cut(text: str, most: int) -> str:
    """The text, or as much of it as goes into so many letters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def width_of(text: str, letter: float = LETTER) -> float:
    """How wide a text is, about: letters of East Asia, and pictures, are twice as wide as others."""
    if text.isascii():
        return letter * len(text)
    return letter * sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)


def escaped(text: str) -> str:
    """The text as it may stand in SVG, as a text or in the quotes of an attribute."""
    # XML has no place for control characters, not even escaped ones.
    if not text.isprintable():
        text = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)
    return escape(text)


_SIZE = re.compile(r'<svg [^>]*?width="([\d.e+]+)" height="([\d.e+]+)"')


def stacked(*pictures: str) -> str:
    """These pictures as one, each below the one before; those that are empty are left out."""
    drawn = [picture for picture in pictures if picture]
    if len(drawn) < 2:
        return "".join(drawn)
    lines, top, width = [], 0.0, 0.0
    for picture in drawn:
        found = _SIZE.match(picture)
        if found is None:
            raise AssertionError("every picture begins with its size")  # pragma: no cover
        lines.append(picture.replace("<svg ", f'<svg y="{top:g}" ', 1))
        width, top = max(width, float(found[1])), top + float(found[2])
    return frame(lines, width, top, f"{len(drawn)} pictures")
