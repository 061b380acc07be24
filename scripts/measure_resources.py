"""Measure what each component costs after packing, and how far the estimates are off.

``components`` builds every component alone over a spread of parameters and prints one JSON line
per case: what was built, what nextpnr packs it into, and what ``resources.py`` says. ``fit`` reads
such lines and prints the weights that ``resources.py`` should have, and the errors they leave.
``blocks`` does the same with the components that real networks are built of. ``networks`` compares
whole accelerators without host link.
"""

from __future__ import annotations

import argparse
import json
import logging
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.build.synthesis import map_only
from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.codegen.blocks import stream_components
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.devices import Device
from nnef_hw.frontend import load
from nnef_hw.numerics import QType, Requant, signed_bits
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.rtl.argmax import Argmax
from nnef_hw.rtl.array import SystolicArray, sum_layout
from nnef_hw.rtl.interpolated_table import InterpolatedTable
from nnef_hw.rtl.linebuffer import LineBuffer
from nnef_hw.rtl.parallel import ParallelLineBuffer
from nnef_hw.rtl.pool import MaxPool, SumPool
from nnef_hw.rtl.requantizer import Requantizer
from nnef_hw.rtl.runningpool import RunningMax, RunningSum
from nnef_hw.rtl.softmax import Softmax
from nnef_hw.rtl.stream import Fifo, beat_layout
from nnef_hw.rtl.table import Table
from nnef_hw.rtl.tablesum import TableSum
from nnef_hw.rtl.tflite_requantizer import TfliteRequantizer
from nnef_hw.rtl.tflite_softmax import TfliteSoftmax
from nnef_hw.rtl.width import Pack
from nnef_hw.schedule import Block, Plan, find_board, lower, schedule
from nnef_hw.schedule.layers import ConcatLayer, EltwiseLayer, MoveLayer
from nnef_hw.schedule.plan import Resources
from nnef_hw.schedule.resources import (
    block_parts,
    component_features,
    component_resources,
    port_resources,
)
from nnef_hw.tables import unary_table
from nnef_hw.tflite_numerics import TfliteRequant, tflite_exp_table
from nnef_hw.tools import run_tool
from nnef_hw.window import Window

__all__ = ["Case", "component_cases", "fit", "measure", "network_cases"]

BOARDS = {"ice40": "icebreaker", "ecp5": "ulx3s_85f"}
NEXTPNR = {
    "ice40": ("nextpnr-ice40", ["--up5k", "--package", "sg48"]),
    "ecp5": ("nextpnr-ecp5", ["--85k", "--package", "CABGA381"]),
}
ROWS = {
    "ice40": {
        "lut": "ICESTORM_LC", "dsp": "ICESTORM_DSP", "bram": "ICESTORM_RAM",
        "spram": "ICESTORM_SPRAM",
    },
    "ecp5": {"lut": "TRELLIS_COMB", "dsp": "MULT18X18D", "bram": "DP16KD"},
}  # fmt: skip
CALIBRATION_SAMPLES = 200


def measure(component: Any, family: str, folder: Path) -> Resources:
    """Synthesize and pack a component; return what nextpnr would place."""
    source = folder / "top.v"
    source.write_text(to_verilog(component))
    cells = map_only(source, top="top", family=family, out_dir=folder)
    tool, arguments = NEXTPNR[family]
    log = folder / "nextpnr.log"
    run_tool(tool, [*arguments, "--json", "top.json", "--pack-only"], cwd=folder, log=log)
    text = log.read_text()
    counts = {
        name: int(match[1])
        for name, row in ROWS[family].items()
        if (match := re.search(rf"{row}:\s*(\d+)/", text))
    }
    flip_flops = sum(n for cell, n in cells.items() if cell.startswith(("SB_DFF", "TRELLIS_FF")))
    return Resources(**counts, ff=flip_flops)


@dataclass(frozen=True, slots=True)
class Case:
    """A component, and the block and part of the plan that it stands for.

    A Block does not say everything: cases that differ from others in what it leaves out are not
    ``typical`` and not fitted.
    """

    part: str
    block: Block
    build: Callable[[], Any]
    note: dict[str, int | str] = field(default_factory=dict)
    typical: bool = True


BLOCK = Block(
    name="case", op="conv", kind="conv", sources=(), tensor="y", channels=1, out_channels=1,
    x_bits=8, x_signed=False, out_bits=8, out_signed=False, cycles=1, resources=Resources(),
)  # fmt: skip


def component_cases(device: Device) -> Iterator[Case]:
    """Every component over its parameters, one or two of them varied at a time."""
    yield from _line_buffers(device)
    yield from _parallel_line_buffers(device)
    yield from _arrays(device)
    yield from _requantizers()
    yield from _tflite_components(device)
    yield from _pools()
    yield from _running_pools(device)
    full = [(4, 2), (4, 4), (6, 3), (8, 8), (30, 5), (64, 16), (120, 2)]
    for channels, lanes in (*full, (10, 4), (30, 8)):
        block = replace(BLOCK, channels=channels, lanes=lanes)
        yield Case(
            "pack", block, partial(Pack, channels=channels, lanes=lanes, bits=8, signed=False)
        )
    for bits in (4, 8):
        block = replace(BLOCK, kind="table", x_bits=bits, out_bits=bits)
        entries = np.random.default_rng(bits).integers(0, 1 << bits, 1 << bits).tolist()
        table = partial(
            Table, entries=entries, in_bits=bits, in_signed=False, out_bits=bits, out_signed=False,
            lanes=1, ram=device.ram,
        )  # fmt: skip
        yield Case("table", block, table)
    yield from _interpolated_tables(device)
    for channels in (2, 9, 10, 100):
        for bits in (4, 8):
            block = replace(BLOCK, kind="argmax", channels=channels, x_bits=bits)
            yield Case("argmax", block, partial(Argmax, channels=channels, bits=bits, signed=True))
    for channels in (2, 10, 100):
        block = replace(BLOCK, kind="softmax", channels=channels, x_signed=True)
        exponentials = np.random.default_rng(1).integers(0, 1 << 16, 256).tolist()
        softmax = partial(
            Softmax, channels=channels, bits=8, signed=True, table=exponentials, ram=device.ram
        )
        yield Case("softmax", block, softmax)
    for bits in (14, 20, 28) if device.long_wires else ():
        block = replace(BLOCK, acc_bits=bits, queued_sums=True)
        yield Case("sum queue", block, partial(Fifo, sum_layout(bits)))
    for bits in (4, 8, 16):
        fifo = partial(Fifo, beat_layout(bits=bits, signed=False, lanes=1))
        yield Case("port", replace(BLOCK, x_bits=bits), fifo)


def network_cases(plan: Plan, graph: Any, device: Device) -> Iterator[Case]:
    """Every component of a network's blocks that compute on one operand."""
    for block, layer in zip(plan.blocks, lower(graph).layers, strict=True):
        if isinstance(layer, ConcatLayer | EltwiseLayer | MoveLayer):
            continue
        components = stream_components(block, layer, device)
        for part, (suffix, component) in zip(block_parts(block), components, strict=True):
            note = {"network": plan.model, "component": f"{block.name}_{suffix}"}
            yield Case(part, block, partial(_same, component), note)


def _same(component: Any) -> Any:
    return component


def _running_pools(device: Device) -> Iterator[Case]:
    images = [(28, 8, 2), (14, 16, 2), (7, 32, 2), (9, 4, 3), (8, 64, 8), (5, 12, 5)]
    for size, channels, kernel in images:
        window = Window(
            size, size, channels, kernel=(kernel, kernel), stride=(kernel, kernel),
            passes=channels, by_channel=True,
        )  # fmt: skip
        for single_port in (False, True) if device.spram else (False,):
            block = replace(
                BLOCK, kind="running_max", channels=channels, window=window,
                depth=channels * window.out_width, single_port=single_port,
            )  # fmt: skip
            shape = {"window": window, "ram": device.ram, "single_port": single_port, "bits": 8}
            yield Case("running pool", block, partial(RunningMax, signed=False, **shape))
            if single_port == bool(device.spram):
                block = replace(block, kind="running_sum", acc_bits=14)
                pool = partial(RunningSum, signed=False, acc_bits=14, **shape)
                yield Case("running pool", block, pool)


def _line_buffers(device: Device) -> Iterator[Case]:
    same = ((1, 1), (1, 1))
    windows = [
        Window(28, 28, 1, kernel=(3, 3), passes=2),
        Window(28, 28, 1, kernel=(3, 3), padding=same, passes=4),
        Window(28, 28, 1, kernel=(5, 5), padding=((2, 2), (2, 2)), passes=1),
        Window(32, 32, 3, kernel=(3, 3), padding=same, passes=16),
        Window(14, 14, 8, kernel=(3, 3), padding=same, passes=4),
        Window(14, 14, 6, kernel=(5, 5), passes=16),
        Window(13, 13, 16, kernel=(3, 3), stride=(2, 2), passes=8),
        Window(26, 1, 12, kernel=(5, 1), passes=6),
        Window(29, 1, 12, kernel=(3, 1), padding=((1, 1), (0, 0)), passes=24),
        Window(10, 10, 16, passes=32),
        Window(1, 1, 1, passes=1),
        Window(1, 1, 16, passes=16),
        Window(1, 1, 64, passes=10),
        Window(1, 1, 200, passes=10),
        Window(1, 1, 784, passes=8),
        Window(28, 28, 4, kernel=(2, 2), stride=(2, 2), passes=4, by_channel=True),
        Window(24, 24, 6, kernel=(2, 2), stride=(2, 2), passes=6, by_channel=True),
        Window(8, 8, 64, kernel=(8, 8), passes=64, by_channel=True),
        Window(15, 15, 16, kernel=(3, 3), stride=(2, 2), padding=same, passes=16, by_channel=True),
    ]
    for n, window in enumerate(windows):
        shallow = max(2, 1 << (window.min_depth - 1).bit_length())
        lanes = (1,) if window.by_channel or n % 2 else (1, 4)
        for depth in (shallow, 4 * shallow):
            for width in lanes:
                block = replace(BLOCK, window=window, depth=depth, lanes=width)
                buffer = partial(
                    LineBuffer, window=window, bits=8, signed=False, lanes=width, pad_code=0,
                    depth=depth, ram=device.ram,
                )  # fmt: skip
                yield Case("line buffer", block, buffer)


def _parallel_line_buffers(device: Device) -> Iterator[Case]:
    same = ((1, 1), (1, 1))
    spread = [
        (1, Window(28, 28, 1, kernel=(3, 3))),
        (1, Window(28, 28, 1, kernel=(3, 3), passes=4)),
        (1, Window(28, 28, 1, kernel=(3, 3), stride=(2, 2))),
        (1, Window(28, 28, 1, kernel=(5, 5), padding=((2, 2), (2, 2)), passes=2)),
        (1, Window(8, 8, 1, kernel=(3, 3), padding=same, passes=4)),
        (3, Window(32, 32, 1, kernel=(3, 3), padding=same, passes=16)),
        (4, Window(14, 14, 1, kernel=(2, 2), passes=8)),
    ]
    for channels, window in spread:
        lanes = channels * window.taps
        block = replace(
            BLOCK, window=window, channels=channels, lanes=lanes, depth=window.padded_width,
            parallel=True,
        )  # fmt: skip
        buffer = partial(
            ParallelLineBuffer, window=window, bits=8, signed=False, lanes=channels, pad_code=0,
            ram=device.ram,
        )  # fmt: skip
        yield Case("parallel line buffer", block, buffer)


def _arrays(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # channels, words, rows, lanes, group_rows, acc_bits, in_dsp, style, kept_passes, code bits
    spread: list[tuple[int, int, int, int, int, int, bool, str, int, int]] = [
        (8, 72, 1, 1, 1, 20, True, "block", 1, 8),
        (8, 72, 2, 1, 2, 20, True, "block", 1, 8),
        (8, 72, 4, 1, 4, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 8, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 8, 26, True, "block", 1, 8),
        (8, 72, 8, 1, 2, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 1, 20, True, "block", 1, 8),
        (8, 72, 8, 1, 8, 20, True, "block", 2, 8),
        (8, 72, 8, 1, 2, 20, True, "block", 2, 8),
        (8, 72, 1, 2, 1, 20, True, "block", 1, 8),
        (8, 72, 2, 4, 2, 20, True, "block", 1, 8),
        (8, 72, 4, 4, 2, 20, True, "block", 1, 8),
        (8, 72, 1, 8, 1, 22, True, "block", 1, 8),
        (8, 72, 2, 8, 2, 22, True, "block", 1, 8),
        (8, 9, 4, 1, 4, 20, True, "logic", 1, 8),
        (8, 16, 4, 1, 4, 20, True, "logic", 1, 8),
        (16, 9, 2, 1, 2, 20, True, "logic", 1, 8),
        (10, 64, 10, 1, 10, 22, True, "logic", 1, 8),
        (64, 64, 4, 1, 4, 20, True, "block", 1, 8),
        (64, 200, 2, 1, 2, 24, True, "block", 1, 8),
        (64, 64, 4, 1, 2, 20, True, "block", 1, 8),
        (8, 72, 1, 1, 1, 20, False, "block", 1, 8),
        (8, 72, 2, 1, 2, 20, False, "block", 1, 8),
        (8, 72, 4, 1, 4, 20, False, "block", 1, 8),
        (8, 72, 8, 1, 8, 20, False, "block", 1, 8),
        (8, 72, 2, 4, 2, 20, False, "block", 1, 8),
        (8, 9, 4, 1, 4, 20, False, "logic", 1, 8),
        (8, 72, 4, 1, 4, 14, False, "block", 1, 4),
        (8, 72, 2, 2, 2, 16, False, "block", 1, 5),
    ]
    for channels, words, rows, lanes, group_rows, acc_bits, in_dsp, style, kept, bits in spread:
        highest = (1 << (bits - 1)) - 1
        values = np.round(rng.normal(0, 0.3 * highest, (channels, words, lanes)))
        weights = np.clip(values, -highest, highest)
        passes = -(-channels // rows)
        block = replace(
            BLOCK, channels=words * lanes, out_channels=channels, lanes=lanes, rows=rows,
            group_rows=group_rows, acc_bits=acc_bits, in_dsp=in_dsp, weight_style=style,
            kept_passes=kept, multipliers=rows * lanes, x_bits=bits, weight_bits=bits,
            weight_delay=device.weight_delay,
            window=Window(1, 1, words, passes=passes),
        )  # fmt: skip
        array = partial(
            SystolicArray, weights=weights.astype(np.int64), rows=rows, group_rows=group_rows,
            x_bits=bits, x_signed=False, w_bits=bits, acc_bits=acc_bits, in_dsp=in_dsp,
            ram=device.ram, weight_style=style, kept_passes=kept,
            weight_delay=device.weight_delay,
        )  # fmt: skip
        yield Case("array", block, array)


def _requantizers() -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # channels, mults, acc_bits, (digit_bits, stages), low end of the clip, mult_bits
    spread = [(1, 1, bits, (1, 1), 0, 16) for bits in (12, 18, 24)]
    spread += [(8, 8, 20, folding, 0, 16) for folding in ((1, 1), (2, 1), (2, 2), (2, 3))]
    spread += [(8, 8, bits, (2, stages), 0, 16) for bits in (14, 20, 26) for stages in (1, 4, 8)]
    counts = (2, 4, 10, 16, 24, 32, 48, 64, 96, 128)
    spread += [(count, count, 22, (1, 1), 0, 16) for count in counts]
    spread += [(64, 64, 24, (2, 8), -128, 16), (16, 16, 22, (2, 4), -128, 16)]
    spread += [(count, 1, 22, (1, 1), 0, 16) for count in (4, 16, 64)]
    spread += [(8, 8, 20, (2, 1), 128, 16), (16, 16, 22, (2, 1), 0, 8)]
    for channels, mults, acc_bits, (digit_bits, stages), lowest, mult_bits in spread:
        mult = rng.integers(1 << (mult_bits - 2), 1 << mult_bits, mults)
        mult[0] |= 1 << (mult_bits - 1)
        spread_bits = min(acc_bits - 3, 15)
        bias = np.round(rng.normal(0, 1 << (spread_bits - 1), channels)).astype(np.int64)
        signed = lowest < 0
        block = replace(
            BLOCK, out_channels=channels, acc_bits=acc_bits, digit_bits=digit_bits,
            digit_stages=stages, interval=-(-mult_bits // (digit_bits * stages)),
            out_signed=signed,
        )  # fmt: skip
        requant = Requant(
            tuple(mult.tolist()), acc_bits + mult_bits - 11, 0, lowest,
            127 if signed else 255, mult_bits,
        )  # fmt: skip
        requantizer = partial(
            Requantizer, requant=requant, bias=bias.tolist(), in_bits=acc_bits, acc_bits=acc_bits,
            digit_bits=digit_bits, stages=stages, bits=8, signed=signed,
        )  # fmt: skip
        note: dict[str, int | str] = {"mults": mults, "mult_bits": mult_bits}
        typical = mults == channels and mult_bits == 16
        yield Case("requantizer", block, requantizer, note, typical)


def _tflite_components(device: Device) -> Iterator[Case]:
    rng = np.random.default_rng(0)
    # channels, acc_bits, digit_bits, stages
    spread = [(16, 20, 2, 1), (64, 22, 2, 1), (64, 22, 2, 4), (16, 20, 2, 8), (64, 22, 2, 16)]
    spread += [(10, 18, 1, 1), (1, 30, 2, 8), (1, 30, 2, 1)]
    for channels, acc_bits, digit_bits, stages in spread:
        mult, bias = rng.integers(1 << 30, 1 << 31, channels), rng.integers(-9999, 9999, channels)
        requant = TfliteRequant(
            tuple(mult.tolist()), tuple(rng.integers(-10, -6, channels).tolist()), -5, -128, 127
        )
        block = replace(
            BLOCK, out_channels=channels, acc_bits=acc_bits, digit_bits=digit_bits,
            digit_stages=stages, interval=-(-31 // (digit_bits * stages)), round_stages=3,
            out_signed=True,
        )  # fmt: skip
        requantizer = partial(
            TfliteRequantizer, requant=requant, bias=bias.tolist(), in_bits=acc_bits,
            acc_bits=acc_bits, digit_bits=digit_bits, stages=stages, bits=8, signed=True,
        )  # fmt: skip
        yield Case("requantizer", block, requantizer, typical=channels > 1)
    exponentials = tflite_exp_table(0.1).tolist()
    for channels in (2, 10, 100):
        softmax = partial(
            TfliteSoftmax, channels=channels, bits=8, signed=True, table=exponentials,
            ram=device.ram,
        )  # fmt: skip
        block = replace(BLOCK, kind="tflite_softmax", channels=channels, x_signed=True)
        yield Case("tflite_softmax", block, softmax)
    tables = rng.integers(-1 << 28, 1 << 28, (2, 256)).tolist()
    total = partial(
        TableSum, entries=tables, in_bits=(8, 8), in_signed=(True, True), acc_bits=30,
        ram=device.ram,
    )  # fmt: skip
    block = replace(BLOCK, kind="table_sum", x_signed=True, y_bits=8, acc_bits=30)
    yield Case("table_sum", block, total)


def _interpolated_tables(device: Device) -> Iterator[Case]:
    # function, its range, bits in and out
    spread: list[tuple[Any, float, int, int]] = [
        (np.tanh, 4.0, 16, 16),
        (np.tanh, 1.0, 16, 16),
        (np.tanh, 4.0, 14, 14),
        (np.tanh, 4.0, 12, 12),
        (np.tanh, 4.0, 10, 10),
        (np.tanh, 4.0, 9, 16),
        (np.tanh, 8.0, 16, 8),
        (np.exp, 8.0, 16, 16),
        (np.sin, 300.0, 16, 16),
        (np.sin, 300.0, 12, 16),
    ]
    for function, reach, in_bits, out_bits in spread:
        source = QType(in_bits, True, 2 * reach / (1 << in_bits))
        top = float(function(reach)) if function is np.exp else 1.0
        knots = unary_table(function, source, QType(out_bits, True, 2 * top / (1 << out_bits)))
        rises = np.diff(knots)
        block = replace(
            BLOCK, kind="interpolated_table", x_bits=in_bits, x_signed=True, out_bits=out_bits,
            out_signed=True, y_bits=signed_bits(int(rises.min()), int(rises.max())),
        )  # fmt: skip
        table = partial(
            InterpolatedTable, knots=knots.tolist(), in_bits=in_bits, in_signed=True,
            out_bits=out_bits, out_signed=True, lanes=1, ram=device.ram,
        )  # fmt: skip
        yield Case("interpolated_table", block, table)


def _pools() -> Iterator[Case]:
    for bits in (4, 8, 16):
        block = replace(BLOCK, kind="max_pool", x_bits=bits)
        yield Case("pool", block, partial(MaxPool, bits=bits, signed=True, lanes=1))
    for bits in (8, 11, 16):
        block = replace(BLOCK, kind="avg_pool", acc_bits=bits)
        yield Case("pool", block, partial(SumPool, bits=8, signed=False, acc_bits=bits))


def _estimate(case: Case, device: Device) -> Resources:
    if case.part == "port":
        return port_resources(case.block.x_bits)
    return component_resources(case.part, case.block, device)


def _describe(case: Case) -> dict[str, Any]:
    defaults = vars_of(BLOCK)
    changed = {k: v for k, v in vars_of(case.block).items() if v != defaults[k]}
    for name in ("sources", "resources"):
        changed.pop(name, None)
    if case.block.window is not None:
        changed["window"] = case.block.window.to_json()
    return {**changed, **case.note}


def fit(lines: Sequence[dict[str, Any]]) -> None:
    """Print weights and errors of every component, least squares of relative errors."""
    for part in dict.fromkeys(line["name"] for line in lines if line["features"]):
        cases = [line for line in lines if line["name"] == part and line["typical"]]
        names = list(cases[0]["features"])
        features = np.array([[line["features"][name] for name in names] for line in cases], float)
        found = np.array([line["found"]["lut"] for line in cases], float)
        weights = _least_squares(features / found[:, None])
        errors = features @ weights / found - 1
        shown = ", ".join(f'"{name}": {w:.2f}' for name, w in zip(names, weights, strict=True))
        sys.stdout.write(
            f"{part}: {shown}\n    {len(cases)} cases, mean error {np.abs(errors).mean():.1%}, "
            f"worst {np.abs(errors).max():.1%}\n"
        )


def _least_squares(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights >= 0 for which every row's sum is about 1."""
    kept = list(range(features.shape[1]))
    while True:
        solution = np.linalg.lstsq(features[:, kept], np.ones(len(features)), rcond=None)[0]
        if solution.min() >= 0:
            break
        kept.pop(int(np.argmin(solution)))
    weights = np.zeros(features.shape[1])
    weights[kept] = solution
    return weights


def vars_of(block: Block) -> dict[str, Any]:
    """Fields of a block."""
    return {name: getattr(block, name) for name in Block.__dataclass_fields__}


def load_plan(model: Path, samples: Path, board: str) -> tuple[Plan, Any]:
    """Quantize a network on its samples and schedule it."""
    graph = load(model)
    canonical = simplify(graph)
    inputs = np.load(samples)["inputs"]
    count = min(CALIBRATION_SAMPLES, max(1, len(inputs) // 5))
    fixed = quantize(canonical, {graph.inputs[0]: inputs[:count]})
    return schedule(fixed, find_board(board)), fixed


def main(arguments: list[str]) -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("components", "blocks", "networks"):
        command = commands.add_parser(name)
        command.add_argument("family", choices=sorted(BOARDS))
        if name == "components":
            command.add_argument("--part", help="measure this part only")
        else:
            command.add_argument("folder", nargs="+", type=Path, help="has *.nnef.tgz, samples.npz")
    command = commands.add_parser("fit")
    command.add_argument("file", nargs="+", type=Path, help="what `components` printed")
    options = parser.parse_args(arguments)
    if options.command == "fit":
        fit([json.loads(line) for file in options.file for line in file.open()])
        return
    target = find_board(BOARDS[options.family])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.command == "components":
            for case in component_cases(target.device):
                if options.part in {None, case.part}:
                    _measure_case(case, target.device, options.family, folder)
            return
        for network in options.folder:
            model = min(network.glob("*.nnef.tgz"), key=lambda path: len(path.name))
            plan, graph = load_plan(model, network / "samples.npz", target.name)
            if options.command == "blocks":
                for case in network_cases(plan, graph, target.device):
                    _measure_case(case, target.device, options.family, folder)
                continue
            found = measure(Accelerator(plan, graph), options.family, folder)
            link = Resources(target.link_lut, target.link_lut // 2, 0, target.link_bram)
            ours = {k: v - getattr(link, k) for k, v in plan.resources.to_json().items()}
            _print(network.name, {"interval": plan.interval}, found, Resources(**ours), {})


def _measure_case(case: Case, device: Device, family: str, folder: Path) -> None:
    found = measure(case.build(), family, folder)
    features = {} if case.part == "port" else component_features(case.part, case.block, device)
    extra = {"features": features, "typical": case.typical}
    _print(case.part, _describe(case), found, _estimate(case, device), extra)


def _print(
    name: str, case: dict[str, Any], found: Resources, estimate: Resources, extra: dict[str, Any]
) -> None:
    line = {"name": name, "case": case, "found": found.to_json(), "estimate": estimate.to_json()}
    line.update(extra)
    error = estimate.lut / found.lut - 1 if found.lut else 0.0
    sys.stdout.write(json.dumps({**line, "error": round(error, 3)}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    main(sys.argv[1:])
