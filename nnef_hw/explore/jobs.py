"""Computations on a design, each in whatever process: arguments and outcomes are all it has."""

from __future__ import annotations

import lzma
import pickle
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nnef_hw.architectures import able_architectures
from nnef_hw.boards import Board
from nnef_hw.errors import NnefHwError, TargetError, ToolError
from nnef_hw.explore.cache import Outcome
from nnef_hw.flow.choice import Candidates, choose_plan
from nnef_hw.flow.emit import board_of
from nnef_hw.flow.fixed import quantize_model
from nnef_hw.frontend import graph_hash
from nnef_hw.ir import Graph
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.place.toolchain import Design, toolchain_of
from nnef_hw.quantize import Scheme
from nnef_hw.reference import dequantize_outputs, quantize_inputs, run_fixed
from nnef_hw.report.model.exploration import Quality
from nnef_hw.report.quantization import describe_quantization
from nnef_hw.samples.samples import Samples
from nnef_hw.samples.scoring import labelled, score

__all__ = ["map_board", "place_board", "plan_board", "quantize_graph", "score_fixed"]

FIXED, REAL, PLAN = "fixed.pickle", "real.pickle", "plan.pickle"
NETLIST, CONSTRAINTS = "netlist.xz", "constraints"
TOP = "board_top"


def quantize_graph(
    graph: Graph, samples: Samples | None, scheme: Scheme, stream: StreamTime | None, arch: str
) -> Outcome:
    """Quantize a network: its integers, and their hash.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If the architecture has no hardware for it.
    """

    def check(built: Graph) -> None:
        rounding = scheme.rounding
        able_architectures(
            arch, built if rounding == "author" else built.replaced(rounding=rounding)
        )

    found = quantize_model(graph, samples, scheme, stream, check=check)
    others, is_float = None, found.canonical is not None
    if found.samples is not None:
        others = found.samples.split()[1] if is_float else found.samples
    calibrated = is_float and found.samples is not None and found.samples.are_few
    return Outcome(
        {"hash": graph_hash(found.fixed)},
        {FIXED: pickle.dumps(found.fixed),
         REAL: pickle.dumps((found.canonical, others, calibrated))},
    )  # fmt: skip


def score_fixed(quantized: bytes, real: bytes) -> Outcome:
    """Score a quantized network on samples that did not calibrate it; nothing if there are none."""
    fixed = pickle.loads(quantized)
    canonical, others, calibrated = pickle.loads(real)
    if others is None:
        return Outcome(None, {})
    if canonical is None:
        value = None
        if others.labels is not None:
            codes = run_fixed(fixed, quantize_inputs(fixed, others.inputs))
            outputs = dequantize_outputs(fixed, codes)[fixed.outputs[0]]
            value = score(*labelled(fixed, outputs, others.labels))
        kind = None if value is None else value.kind
        number = None if value is None else value.value
        return Outcome([kind, len(others), None, number, None, None, None, False], {})
    described = describe_quantization(canonical, fixed, others)
    noise = {layer.name: layer.sqnr_db for layer in described.layers}
    known = {name: value for name, value in noise.items() if value is not None}
    worst = min(known, key=lambda name: known[name], default=None)
    metric = real_score = fixed_score = None
    if (accuracy := described.accuracy) is not None:
        metric, real_score, fixed_score = accuracy.metric, accuracy.float, accuracy.fixed
    return Outcome(
        [metric, len(others), real_score, fixed_score,
         None if worst is None else known[worst], worst, noise.get(fixed.outputs[0]), calibrated],
        {},
    )  # fmt: skip


def quality(value: Sequence[Any] | None) -> Quality | None:
    """Return the scores that :func:`score_fixed` found."""
    return None if value is None else Quality(*value)


def plan_board(
    quantized: bytes, arch: str, board: Board, clock_mhz: float, target_fps: float | None
) -> Outcome:
    """Plan a quantized network for a board, or say why it cannot be."""
    fixed = pickle.loads(quantized)
    try:
        plan, _ = choose_plan(
            Candidates(able_architectures(arch, fixed)), fixed, board, clock_mhz=clock_mhz,
            target_fps=target_fps,
        )  # fmt: skip
    except NnefHwError as error:
        return _refused(error)
    slowest = max(plan.stations, key=lambda station: station.cycles, default=None)
    value = {
        "arch": plan.arch,
        "cycles_per_inference": plan.interval,
        "latency_cycles": plan.latency,
        "multipliers": plan.multipliers,
        "bottleneck": None if slowest is None else slowest.name,
        "estimated": plan.resources.to_json(),
    }
    return Outcome(value, {PLAN: pickle.dumps(plan)})


def map_board(quantized: bytes, planned: bytes, board: Board) -> Outcome:
    """Write a board's Verilog, map and pack it; the outcome has the netlist for placements."""
    fixed = pickle.loads(quantized)
    plan = pickle.loads(planned)
    design = board_of(fixed, plan, board)
    with _scratch() as folder:
        source = folder / "source" / f"{TOP}.v"
        source.parent.mkdir()
        source.write_text(design.verilog)
        toolchain = toolchain_of(board.device.family)
        top = _top(board, plan.clock_mhz, design.constraints)
        try:
            toolchain.map(top, [source], folder, folder, pads=True)
            used = toolchain.count(top, folder, folder / "pack.log")
        except TargetError as error:
            return _refused(error)
        netlist = (folder / top.netlist).read_bytes()
    return Outcome(
        {"mapped": {kind: count for kind, (count, _) in used.items()}},
        {NETLIST: lzma.compress(netlist, preset=1), CONSTRAINTS: design.constraints.encode()},
    )


def place_board(
    netlist: bytes, constraints: bytes, board: Board, clock_mhz: float, seed: int
) -> Outcome:
    """Place and route a netlist with one seed: the clock in MHz that it reaches, what it takes."""
    with _scratch() as folder:
        top = _top(board, clock_mhz, constraints.decode())
        (folder / top.netlist).write_bytes(lzma.decompress(netlist))
        toolchain = toolchain_of(board.device.family)
        try:
            found = toolchain.attempt(top, folder, seed, folder / "place.log")
        except TargetError as error:
            return _refused(error)
    return Outcome({"fmax_mhz": found.fmax_mhz, "mapped": found.used}, {})


def _top(board: Board, clock_mhz: float, constraints: str) -> Design:
    """Return the board's top as a toolchain is asked for it."""
    return Design(
        top=TOP, part=board.part, package=board.package, speed=board.speed,
        frequency_mhz=clock_mhz, constraints=constraints,
    )  # fmt: skip


@contextmanager
def _scratch() -> Iterator[Path]:
    """Give a folder for tools; the logs that their errors name go with it."""
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as name:
        try:
            yield Path(name)
        except ToolError as error:
            reason = re.sub(rf", see {re.escape(name)}\S*?(?=:?$)", "", error.reason, flags=re.M)
            raise ToolError(reason, remedy=error.remedy) from error


def _refused(error: NnefHwError) -> Outcome:
    reasons = getattr(error, "errors", (error,))
    remedies = dict.fromkeys(each.remedy for each in reasons if each.remedy)
    value = {"refusal": "; ".join(each.reason for each in reasons), "remedy": "; ".join(remedies)}
    return Outcome(value, {})
