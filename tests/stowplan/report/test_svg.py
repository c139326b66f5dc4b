"""Charts: where points are drawn, and that what is drawn is XML whatever it says."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks.growth import drawing
from stowplan.report.svg import HEIGHT, MARGIN, WIDTH, Axis, Curve, Point, line_chart

LEFT, RIGHT, TOP, BOTTOM = MARGIN, WIDTH - MARGIN, MARGIN, HEIGHT - MARGIN


def dots(svg: str) -> list[tuple[float, float]]:
    return [(float(c.attrib["cx"]), float(c.attrib["cy"])) for c in ElementTree.fromstring(svg).findall(".//{*}circle")]


def test_ends_of_the_axes_are_the_corners_of_the_grid() -> None:
    axis = Axis("", 2, 10, [])
    chart = line_chart("", axis, axis, [Curve([Point(2, 2), Point(6, 6), Point(10, 10)])])
    assert dots(chart) == [(LEFT, BOTTOM), (WIDTH / 2, HEIGHT / 2), (RIGHT, TOP)]


def test_on_a_logarithmic_axis_equal_factors_are_equally_long() -> None:
    axis = Axis("", 1, 10_000, [], logarithmic=True)
    chart = line_chart("", axis, axis, [Curve([Point(1, 1), Point(100, 100), Point(10_000, 10_000)])])
    assert dots(chart) == [(LEFT, BOTTOM), (WIDTH / 2, HEIGHT / 2), (RIGHT, TOP)]


@pytest.mark.parametrize(("stepped", "path"), [(True, "M56,304.0 H584.0 V56.0"), (False, "M56,304.0 L584.0,56.0")])
def test_a_step_goes_across_before_it_goes_up(stepped: bool, path: str) -> None:
    axis = Axis("", 0, 1, [])
    chart = line_chart("", axis, axis, [Curve([Point(0, 0), Point(1, 1)], stepped=stepped)])
    drawn = [element.attrib["d"] for element in ElementTree.fromstring(chart).findall(".//{*}path")]
    assert drawn == [path.replace("M56,", "M56.0,")]


def test_text_may_hold_anything_and_dashed_curves_have_no_marks() -> None:
    axis = Axis("a < b", 0, 1, [(0, "0 & none")])
    curves = [
        Curve([Point(0, 0), Point(1, 1)], dashed=True),
        Curve([Point(0, 0, "<p>", "x & y")], name='"n"'),
        Curve([]),
    ]
    svg = ElementTree.fromstring(line_chart("t & t", axis, axis, curves))
    assert [circle.findtext("{*}title") for circle in svg.findall(".//{*}circle")] == ["x & y"]
    texts = [text.text for text in svg.findall(".//{*}text")]
    assert {"t & t", "a < b", "0 & none", "<p>", '"n"'} <= set(texts)


def test_growth_is_drawn_beside_linear_growth_on_logarithmic_scales() -> None:
    svg = ElementTree.fromstring(drawing([[(100, 1.0), (1000, 10.0)], [(100, 2.0), (1000, 200.0)]]))
    assert len(svg.findall(".//{*}circle")) == 4
    dashed = [path.attrib["d"] for path in svg.findall(".//{*}path[@stroke-dasharray]")]
    solid = [p.attrib["d"] for p in svg.findall(".//{*}path[@fill]") if "stroke-dasharray" not in p.attrib]
    # The first grows linearly, and covers the line beside it; the second one grows with the square.
    assert dashed[0] == solid[0]
    assert dashed[1] != solid[1]
    # Qualities that were never reached are left out.
    assert len(dots(drawing([[(100, 1.0)], []]))) == 1
