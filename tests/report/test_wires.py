import re

import numpy as np
import pytest

from nnef_hw.report.pages.wires import Edge, Grid, route


def grid_of(count, per_row=5):
    return Grid(count=count, per_row=per_row, left=22, top=1, width=100, height=160, gap=28)


def segments(path):
    """Return the straight parts of a path of M, H, V and q as pairs of points."""
    x = y = 0.0
    parts = []
    for command, numbers in re.findall(r"([MHVq])([^MHVq]*)", path):
        values = [float(n) for n in numbers.split()]
        before = (x, y)
        if command == "M":
            x, y = values
        elif command == "q":
            x, y = x + values[2], y + values[3]
        else:
            x, y = (values[0], y) if command == "H" else (x, values[0])
            parts.append((before, (x, y)))
    return parts


def boxes(grid, wiring):
    for box in range(grid.count):
        x, y = grid.x(box), wiring.tops[grid.row(box)]
        yield x, y, x + grid.width, y + grid.height


def random_graph(seed):
    """Return a chain of boxes with some branches and loops, FIFOs in front of half of them."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 24))
    edges = [Edge(n - 1, n) for n in range(count) if n == 0 or rng.random() < 0.8]
    for _ in range(int(rng.integers(1, 9))):
        target = int(rng.integers(1, count))
        edges.append(Edge(int(rng.integers(-1, target)), target, int(rng.integers(0, 2)) * 900))
    for _ in range(int(rng.integers(0, 3))):  # states, which read what comes behind them
        source = int(rng.integers(1, count))
        edges.append(Edge(source, int(rng.integers(0, source)), int(rng.integers(0, 2)) * 900))
    return grid_of(count), edges


@pytest.mark.parametrize("seed", range(30))
def test_wires_of_any_graph_cross_no_box(seed):
    grid, edges = random_graph(seed)
    wiring = route(grid, edges)
    assert len(wiring.routes) == len(edges)
    for wire in wiring.routes:
        for start, end in segments(wire.path):
            left, right = sorted((start[0], end[0]))
            top, bottom = sorted((start[1], end[1]))
            for x1, y1, x2, y2 in boxes(grid, wiring):
                inside = left < x2 - 0.2 and right > x1 + 0.2 and top < y2 - 0.2
                assert not (inside and bottom > y1 + 0.2), wire.path
            assert 0 <= left <= right <= wiring.right
            assert 0 <= top <= bottom <= wiring.bottom


@pytest.mark.parametrize("seed", range(30))
def test_level_parts_of_two_wires_never_meet(seed):
    grid, edges = random_graph(seed)
    wiring = route(grid, edges)
    drawn = []
    for wire, edge in zip(wiring.routes, edges, strict=True):
        level = [part for part in segments(wire.path) if part[0][1] == part[1][1]]
        for (x1, y), (x2, _) in level:
            if any(abs(y - top - grid.height / 2) < 0.01 for top in wiring.tops):
                continue  # beside a box: what leaves it may go several ways
            left, right = sorted((x1, x2))
            assert not [
                other for other in drawn if other[0] == y and left < other[2] and other[1] < right
            ], edge
            drawn.append((y, left, right))


def test_rows_move_apart_for_parallel_wires():
    chain = [Edge(n - 1, n) for n in range(10)]
    narrow = route(grid_of(10), chain)
    crowded = route(grid_of(10), [*chain, Edge(0, 4), Edge(0, 5), Edge(1, 6)])
    assert narrow.tops[0] == crowded.tops[0]
    assert crowded.tops[1] >= narrow.tops[1] + 30


def test_far_wires_run_beside_the_rows():
    chain = [Edge(n - 1, n) for n in range(15)]
    wiring = route(grid_of(15), [*chain, Edge(2, 13, 64)])
    beside = max(x for part in segments(wiring.routes[-1].path) for x, _ in part)
    assert grid_of(15).right < beside < wiring.right


def test_second_wire_between_the_same_boxes_takes_a_detour():
    wiring = route(grid_of(2), [Edge(-1, 0), Edge(0, 1), Edge(0, 1, 16)])
    assert len({wire.path for wire in wiring.routes}) == 3
    assert wiring.routes[2].fifo == 16


def test_what_nobody_reads_leaves():
    wiring = route(grid_of(4), [Edge(-1, 0), Edge(0, 1), Edge(0, 2), Edge(1, 3)])
    assert len(wiring.exits) == 2
    assert len(wiring.dots) == 3


def test_outputs_leave_though_they_are_read():
    edges = [Edge(-1, 0), Edge(0, 1)]
    wiring = route(grid_of(2), edges, outputs={0, 1})
    assert len(wiring.exits) == 2
    assert wiring.exits != route(grid_of(2), edges).exits
