"""Every kind of failure has its picture: found by the methods themselves, without a browser."""

from __future__ import annotations

from xml.etree import ElementTree

import gallery
import pytest

SHOWN = {
    gallery.order_lost: ("ORDER_LOST", "events and their order"),
    gallery.lost_on_restart: ("DUPLICATED_ON_REPLAY", "micro-batches by user"),
    gallery.violated: ("VIOLATED", "micro-batches by user"),
    gallery.diverged: ("DIVERGED", "events and their order"),
    gallery.left_over_live: ("LEFT_OVER", "2 pictures"),
    gallery.order_matters: ("ORDER_MATTERS", "2 pictures"),
    gallery.queue_full: ("QUEUE_FULL", "pipeline drift"),
}


@pytest.mark.parametrize("question", SHOWN, ids=lambda question: question.__name__)
def test_a_failure_has_the_picture_of_its_kind(question):
    finding, label = SHOWN[question]

    verdict = question()

    assert verdict.counterexample.finding == finding
    picture = ElementTree.fromstring(verdict.picture())  # noqa: S314 - we made it
    assert label in picture.attrib["aria-label"]
    assert 'class="tight-mark"' in verdict.picture() or finding == "ORDER_MATTERS"  # where two orders are both right


@pytest.mark.parametrize("question", SHOWN, ids=lambda question: question.__name__)
def test_everything_in_a_picture_is_inside_of_it(question):
    picture = ElementTree.fromstring(question().picture())  # noqa: S314 - we made it

    def inside(element: ElementTree.Element, width: float, height: float) -> None:
        for child in element:
            if child.tag.endswith("}svg"):
                inside(child, float(child.attrib["width"]), float(child.attrib["height"]))
                continue
            if child.tag.endswith(("}text", "}rect")):
                assert 0 <= float(child.attrib["x"]) <= width
                assert 0 <= float(child.attrib["y"]) <= height
            inside(child, width, height)

    inside(picture, float(picture.attrib["width"]), float(picture.attrib["height"]))
