"""Pictures of schemas: every part with its kinds, each above those that it is made of."""

from __future__ import annotations

from xml.etree import ElementTree

from streamtight.stream.event import Kind
from streamtight.stream.schema import Bag, Par, PartitionBy, Seq, Sync
from streamtight.stream.svg import frame, stacked

GPS, Ride, Hour = Kind("GPS", taxi=int, x=float), Kind("Ride", taxi=int), Kind("Hour", n=int)
TAXIS = Sync(Hour, Par(PartitionBy("taxi", Seq(GPS)), Bag(Ride)))


def parts(picture: str, tag: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(picture)  # noqa: S314 - we made it
    return [each for each in root.iter() if each.tag.endswith(f"}}{tag}")]


def test_a_schema_is_a_tree_of_its_parts():
    texts = ["".join(each.itertext()) for each in parts(TAXIS.picture(), "text")]

    assert sorted(texts) == sorted(
        [
            *("in one order, the rest between them", "Hour(n: int)", "side by side", "for each taxi"),
            *("in one order", "GPS(taxi: int, x: float)", "in no order", "Ride(taxi: int)"),
        ]
    )
    assert len(parts(TAXIS.picture(), "line")) == 4  # a tree of five parts


def test_boxes_do_not_overlap():
    boxes = [{name: float(value) for name, value in each.attrib.items() if name in ("x", "y", "width", "height")}
             for each in parts(TAXIS.picture(), "rect")]  # fmt: skip

    for place, one in enumerate(boxes):
        for other in boxes[:place]:
            apart_in_x = one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"]
            apart_in_y = one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"]
            assert apart_in_x or apart_in_y


def test_a_schema_without_kinds_has_a_picture_too():
    assert "in no order" in Bag().picture()


def test_notebooks_show_the_picture():
    assert TAXIS._repr_html_() == TAXIS.picture()


def test_stacked_pictures_stand_below_each_other():
    one, other = frame([], 40, 20, "one"), frame([], 30, 50, "other")

    both = ElementTree.fromstring(stacked(one, "", other))  # noqa: S314 - we made it

    assert (both.attrib["width"], both.attrib["height"]) == ("40", "70")
    inner = [each for each in both.iter() if each.tag.endswith("}svg")][1:]
    assert [each.attrib["y"] for each in inner] == ["0", "20"]
    assert stacked(one) == one
    assert stacked() == ""
