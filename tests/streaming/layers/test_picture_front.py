"""Networks that see, from a camera's bytes on: codes and cycles of accelerators."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.frontend.picture_front import ImageFront
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("name", "resize", "size"),
    [("rgb565", "area", (13, 18)), ("yuv422", "bilinear", (9, 14)), ("grey", "area", (20, 24))],
)
def test_codes_and_cycles(name, resize, size, simulate, rng):
    g = GraphBuilder("net")
    x = g.input("x", (1, 3, 6, 8))
    g.conv(x, rng.normal(size=(2, 3, 3, 3)), np.zeros((1, 2)), name="y")
    graph = ImageFront(size=size, pixels=name, resize=resize).put(g.build("y"))
    pictures = rng.integers(0, 256, (4, *graph.tensor("picture").shape[1:])) / 255
    fixed = quantize(simplify(graph), {"picture": pictures})
    simulate(schedule(fixed, find_board("ulx3s_85f")), fixed).check(2)
