"""How the compiler's time grows with a network's nodes: ``make bench-growth``.

Synthetic networks of several shapes and sizes; CPU seconds of every pass and of other walks over a
graph, of the largest one, and the exponent by which they grow: 1 is linear.
"""

from __future__ import annotations

import argparse
import gc
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from nnef_hw.boards import find_board
from nnef_hw.engine.network.lowering import lower as engine_layers
from nnef_hw.flow.survey import roughly_fixed
from nnef_hw.ir import Graph, Stage, StreamOrder, format_graph, parse_graph, verify
from nnef_hw.passes import Pass, pipeline
from nnef_hw.passes.checks.check_supported import find_unsupported
from nnef_hw.streaming.foldings.lower import lower as streaming_layers
from nnef_hw.testing import GraphBuilder

SIZES = (500, 1000, 2500, 5000)
CHANNELS = 4
LEAST_SECONDS = 0.02
"""Less than that of the largest network is not shown."""


def convolution(g: GraphBuilder, x: str, number: int, gain: float = 1.0) -> str:
    """Add a convolution with weights of its own; thousands in a row leave numbers as large."""
    weights = np.eye(CHANNELS) * gain * (1 + (-1) ** number * (number + 1) * 1e-6)
    return g.conv(x, weights.reshape(CHANNELS, CHANNELS, 1, 1), 0.0)


def chain(g: GraphBuilder, x: str, nodes: int) -> str:
    """Convolutions and functions in a row."""
    for n in range(nodes // 2):
        x = g.op("relu", convolution(g, x, n))
    return x


def residual(g: GraphBuilder, x: str, nodes: int) -> str:
    """Blocks of two convolutions beside a connection that skips them."""
    for n in range(nodes // 4):
        y = convolution(g, g.op("relu", convolution(g, x, n)), n, gain=1e-3)
        x = g.op("add", x, y)
    return x


def wide(g: GraphBuilder, x: str, nodes: int) -> str:
    """Branches of one tensor, and the sum of all."""
    return _sum(g, [g.op("tanh", convolution(g, x, n)) for n in range(nodes // 3)])


def attention(g: GraphBuilder, x: str, nodes: int) -> str:
    """Heads that are joined along another axis, and the projection of what they are joined to."""
    for n in range(nodes // 9):
        y = g.op("transpose", convolution(g, x, n), axes=[0, 3, 1, 2])
        y = g.op("concat", g.op("tanh", y), g.op("sigmoid", y), axis=2)
        y = g.op("slice", y, axes=[2], begin=[2], end=[6], stride=[1])
        y = g.op("add", y, g.op("exp", y))
        x = g.op("add", g.op("transpose", y, axes=[0, 2, 3, 1]), x)
    return x


def unrolled(g: GraphBuilder, x: str, nodes: int) -> str:
    """Unroll a recurrence, whose steps take a column each of the input, and the state before."""
    columns = nodes // 4
    sequence = g.input("sequence", [1, CHANNELS, 4, columns])
    for n in range(columns):
        column = g.op("slice", sequence, axes=[3], begin=[n], end=[n + 1], stride=[1])
        column = g.op("concat", column, column, column, column, axis=3)
        x = g.op("tanh", g.op("add", column, x))
    return x


def _sum(g: GraphBuilder, terms: list[str]) -> str:
    while len(terms) > 1:
        pairs = zip(terms[::2], terms[1::2], strict=False)
        terms = [g.op("add", *pair) for pair in pairs] + terms[len(terms) // 2 * 2 :]
    return terms[0]


SHAPES = (chain, residual, wide, attention, unrolled)


def network(shape: Callable[[GraphBuilder, str, int], str], nodes: int) -> Graph:
    """Return the network of a shape with about so many nodes."""
    g = GraphBuilder(shape.__name__)
    return g.build(shape(g, g.input("x", [1, CHANNELS, 4, 4]), nodes))


def measure(graph: Graph) -> dict[str, float]:
    """Return the CPU seconds of each pass until the graph is stable, and of other walks."""
    seconds: dict[str, float] = defaultdict(float)
    gc.collect()
    gc.disable()

    def apply(each: Pass, graph: Graph) -> Graph:
        before = time.process_time()
        graph = each(graph)
        after = time.process_time()
        seconds[each.name] += after - before
        verify(graph)
        seconds["verify"] += time.process_time() - after
        return graph

    with patch.object(pipeline, "_apply", apply):
        found, problems = pipeline.rewrite(graph)
    assert not problems, problems[0]
    for name, walk in _walks(found.replaced(stage=Stage.CANONICAL)):
        before = time.process_time()
        walk()
        seconds[name] += time.process_time() - before
    return seconds


def _walks(graph: Graph) -> Iterator[tuple[str, Callable[[], object]]]:
    text = format_graph(graph)
    yield "format_graph", lambda: format_graph(graph)
    yield "parse_graph", lambda: parse_graph(text)
    yield "StreamOrder", lambda: StreamOrder(graph)
    yield "find_unsupported", lambda: find_unsupported(graph)
    fixed = roughly_fixed(graph, None)
    yield "quantize", lambda: roughly_fixed(graph, None)
    yield "verify (fixed)", lambda: verify(fixed)
    yield "layers (streaming)", lambda: streaming_layers(fixed)
    device = find_board("ulx3s_85f").device
    yield "layers (engine)", lambda: engine_layers(fixed, device)


def main() -> None:
    """Measure; print a table for each shape."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", type=lambda text: [*map(int, text.split(","))], default=SIZES)
    parser.add_argument("shapes", nargs="*", help="only these")
    options = parser.parse_args()
    for shape in SHAPES:
        if options.shapes and shape.__name__ not in options.shapes:
            continue
        table = Table(title=shape.__name__, title_justify="left")
        for heading in ("", *(f"{size:,} nodes" for size in options.sizes), "exponent"):
            table.add_column(heading)
        found = [measure(network(shape, size)) for size in options.sizes]
        first, last = found[0], found[-1]
        for name in sorted(last, key=last.__getitem__, reverse=True):
            if last[name] < LEAST_SECONDS:
                continue
            growth = math.log(last[name] / max(first[name], 1e-4))
            exponent = growth / math.log(options.sizes[-1] / options.sizes[0])
            cells = (f"{seconds[name]:.3f}" for seconds in found)
            table.add_row(name, *cells, f"{exponent:.2f}")
        Console(width=120).print(table)


if __name__ == "__main__":
    main()
