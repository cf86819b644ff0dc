"""Pictures of other people: nothing is left in them that does more than to be looked at."""

from __future__ import annotations

import pytest

from streamtight.stream.clean import MOST_LETTERS, cleaned
from streamtight.stream.dependence import ordered
from streamtight.stream.event import Kind
from streamtight.stream.order_picture import order_picture
from streamtight.stream.svg import STYLE

SVG = 'xmlns="http://www.w3.org/2000/svg"'

BAD = [
    f'<svg {SVG} onload="alert(1)"/>',
    f"<svg {SVG}><script>alert(1)</script></svg>",
    f'<svg {SVG}><g onclick="alert(1)"/></svg>',
    f'<svg {SVG}><a href="javascript:alert(1)"><text>x</text></a></svg>',
    f'<svg {SVG} xmlns:xlink="http://www.w3.org/1999/xlink"><use xlink:href="http://evil/x.svg#alert"/></svg>',
    f'<svg {SVG}><image href="http://evil/alert.png"/></svg>',
    f'<svg {SVG}><foreignObject><iframe src="http://evil/alert"/></foreignObject></svg>',
    f"<svg {SVG}><style>@import url(http://evil/alert.css);</style></svg>",
    f'<svg {SVG}><rect fill="url(http://evil/alert)" style="background: url(http://evil/alert)"/></svg>',
    f'<svg {SVG}><rect fill="url(alert)"/></svg>',
    f'<svg {SVG}><animate attributeName="href" to="javascript:alert(1)"/><set onbegin="alert(1)"/></svg>',
    f'<svg {SVG} xmlns:h="http://www.w3.org/1999/xhtml"><h:script>alert(1)</h:script></svg>',
    '<svg xmlns="http://www.w3.org/1999/xhtml"><script>alert(1)</script></svg>',
    f'<!DOCTYPE svg [<!ENTITY a "alert">]><svg {SVG}><text>&a;</text></svg>',
    f'<?xml-stylesheet href="http://evil/alert.css"?><svg {SVG}/>',
    "<script>alert(1)</script>",
    "alert(1)",
    f"<svg {SVG}><g>alert",
]


@pytest.mark.parametrize("picture", BAD)
def test_what_runs_or_loads_something_is_gone(picture):
    clean = cleaned(picture)

    assert "alert" not in clean
    assert "evil" not in clean
    assert clean == "" or clean.startswith("<svg ")


def test_a_text_stays_a_text():
    assert "&lt;script&gt;alert(1)" in cleaned(f"<svg {SVG}><text>&lt;script&gt;alert(1)</text></svg>")


def test_our_own_pictures_stay_as_they_are():
    n = Kind("N", text=str)
    picture = order_picture([n("<b>"), n("a")], [n("a"), n("<b>")], ordered)

    clean = cleaned(picture)

    assert clean == cleaned(clean)
    assert STYLE in clean
    for tag in ("<path", "<rect", "<circle", "<text", "<title", 'class="tight-mark"'):
        assert clean.count(tag) == picture.count(tag)


def test_another_style_becomes_ours():
    assert cleaned(f"<svg {SVG}><style>* {{ display: none }}</style></svg>").count(STYLE) == 1


def test_a_picture_that_is_too_long_is_left_out():
    assert cleaned(f"<svg {SVG}><text>{'x' * MOST_LETTERS}</text></svg>") == ""
