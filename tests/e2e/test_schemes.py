"""Hardware is the fixed network for every scheme: all widths in one chain of layers."""

import numpy as np
import pytest

from nnef_hw.boards import find_board
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.streams import from_stream, to_stream
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.frames import pack_frames, unpack_frames
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search.solver import schedule
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system

WEIGHTS = (1, 2, 3, 4, 5, 6, 7, 8)
ACTIVATIONS = (2, 3, 4, 5, 6, 7, 8, 16)
MULTIPLIERS = (1, 2, 4, 6, 8, 12, 16, 31)
SHAPE = (1, 3, 5, 5)


def chain(rng):
    """Padded convolutions with and without ReLU, depthwise ones, and pools between them."""
    builder = GraphBuilder()
    builder.input("x", SHAPE)
    y, channels = "x", SHAPE[1]
    for n in range(8):
        depthwise = n in {2, 5}
        shape = (channels, 1, 3, 3) if depthwise else (4, channels, 3, 3)
        y = builder.conv(
            y, rng.standard_normal(shape) / 3, rng.standard_normal(shape[0]) / 2, name=f"c{n}",
            padding=1, groups=shape[0] if depthwise else 1,
        )  # fmt: skip
        channels = shape[0]
        if n % 3 == 0:
            y = builder.op("relu", y, name=f"r{n}")
        if n == 3:
            y = builder.pool("avg_pool", y, 2, stride=1, name="mean")
        if n == 6:
            y = builder.pool("max_pool", y, 2, stride=1, name="most")
    return simplify(builder.build())


def layer_values(graph, order, averages):
    """Give every layer widths of its own, in an order of :data:`WEIGHTS` and the others."""
    convs = [node.name for node in graph.nodes if node.op == "conv"]
    values = {
        name: {
            "weight_bits": WEIGHTS[n],
            "activation_bits": ACTIVATIONS[-1 - n],
            "mult_bits": MULTIPLIERS[n * 3 % 8],
        }
        for name, n in zip(convs, order, strict=True)
    }
    return {**values, "mean": {"activation_bits": averages}}


def simulate(plan, graph, codes):
    """Run input codes through Verilog that is compiled for a quick start."""
    (source,), (sink,) = plan.inputs, plan.outputs
    beats = to_stream(codes, source)
    done = FastRunner(to_verilog(Accelerator(plan, graph))).run(
        pack_frames(beats, source.bits, signed=source.signed),
        expected_beats=len(beats) * sink.beats,
        stall=0.1,
    )
    found = unpack_frames(
        done.payloads, sink.lanes, sink.bits, signed=sink.signed, beats=sink.beats
    )
    return from_stream(found, sink, graph.tensor(graph.outputs[0]).shape)


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("arguments", "order", "board"),
    [
        ({}, (0, 1, 2, 3, 4, 5, 6, 7), "ecp5"),
        ({"symmetric": True, "per_channel": False}, (7, 4, 1, 6, 3, 0, 5, 2), "icebreaker"),
        pytest.param(
            {"power_of_two": True}, (5, 2, 7, 4, 1, 6, 3, 0), "ecp5", marks=pytest.mark.nightly
        ),
    ],
    ids=["affine", "symmetric", "powers of two"],
)
def test_hardware_is_bit_exact_for_every_scheme(arguments, order, board, rng):
    graph = chain(rng)
    scheme = Scheme(**arguments, layers=layer_values(graph, order, averages=11))
    samples = {"x": rng.standard_normal((40, *SHAPE[1:])) + 0.3}
    fixed = quantize(graph, samples, scheme)
    plan = schedule(fixed, find_board(board), target_fps=1.0)
    source = fixed.tensor("x").qtype
    codes = rng.integers(source.lo, source.hi + 1, (12, *SHAPE[1:]))
    codes[0], codes[1] = source.lo, source.hi
    expected = run_fixed(fixed, {"x": codes})[fixed.outputs[0]]
    np.testing.assert_array_equal(simulate(plan, fixed, codes), expected)
    assert len(np.unique(expected)) > 2
