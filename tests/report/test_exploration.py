"""The page of a sweep: what a marker tells, and the line of what can be placed."""

import re

import pytest

from nnef_hw.report.model.exploration import Explored, Point, Quality
from nnef_hw.report.pages.exploration import LARGEST, SMALLEST, draw_points, render_exploration


def point(number, arch, bits, lut, board="icebreaker"):
    return Point(
        number=number, board=board, device="up5k", weight_bits=bits, target_fps=None,
        clock_mhz=12.0, build="nnef-hw build", available={"lut": 1000, "dsp": 8, "bram": 30},
        arch=arch, cycles_per_inference=1000 * number, estimated={"lut": lut, "dsp": 1, "bram": 2},
        quality=Quality("accuracy", 1, None, 0.9, None, None, None),
    )  # fmt: skip


@pytest.fixture
def points():
    return [
        point(1, "streaming", 8, 980), point(2, "engine", 8, 500), point(3, "engine", 4, 400),
        point(4, "engine", 2, 300),
    ]  # fmt: skip


def test_shapes_are_architectures_and_sizes_are_widths(points):
    outlines = [marker.outline for marker in draw_points(points).markers]
    assert ["A" in outline for outline in outlines] == [False, True, True, True]
    sizes = [abs(float(re.match(r"M-([\d.]+)", outline)[1])) for outline in outlines]
    assert sizes == [LARGEST, LARGEST, LARGEST - 2, SMALLEST]


def test_the_most_that_can_be_placed_is_a_line_where_designs_come_near(points):
    plot = draw_points(points)
    left, _, width, _ = plot.box
    assert plot.limit == (pytest.approx(left + 0.95 * width, abs=0.1), "95% can be placed")
    assert draw_points(points[1:]).limit is None


def test_a_legend_tells_architectures_apart_where_there_are_several(points):
    def legend(shown):
        page = render_exploration(Explored("net", tuple(shown), (), ()))
        found = re.search(r'<ul class="legend">.*?</ul>', page, re.S)[0]
        return re.sub(r"<[^>]*>|\s+", " ", found).split()

    bits = [word for n in (8, 4, 2) for word in ("weights", "of", str(n), "bits")]
    assert legend(points) == ["icebreaker", "engine", "streaming", *bits]
    assert "engine" not in legend(points[1:])
