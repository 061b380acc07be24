"""Foldings by force, and accelerators run cycle by cycle."""

from dataclasses import dataclass, replace
from math import lcm

import numpy as np
import pytest
from simulators import is_worth_compiling

from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.host.streams import to_stream
from nnef_hw.ir.batch import sample_extents
from nnef_hw.parts.arrays.requantizer import Requantizer
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.reference import run_fixed
from nnef_hw.sim import verilator
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.frames import pack_frames, unpack_frames
from nnef_hw.sim.pysim import StreamBench
from nnef_hw.streaming.beats.beats import BeatTimes, predict_interval, simulate_beats
from nnef_hw.streaming.beats.fifos import give_fifos, shrink_fifos
from nnef_hw.streaming.beats.steady import cycles_per_frame
from nnef_hw.streaming.filters.arrays import ArrayFolding
from nnef_hw.streaming.filters.systolic import SystolicFolding
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.hardware.accelerator import Accelerator
from nnef_hw.streaming.search import solver
from nnef_hw.streaming.search.options import layer_options
from nnef_hw.streaming.search.width import useful_widths


@pytest.fixture(autouse=True)
def few_cycles(monkeypatch):
    """Compile models that run a few thousand cycles: without optimization it takes half as long."""
    monkeypatch.setattr(verilator, "OPTIMIZATION", "-O0")


@pytest.fixture
def one_code_per_beat(monkeypatch):
    """Leave streams as narrow as they are where wider ones do not pay."""
    monkeypatch.setattr(solver, "useful_widths", lambda *given: useful_widths(*given)[-1:])


def least_in_dsp(folding):
    """Fewest multipliers that have to be in DSP blocks."""
    if not isinstance(folding, SystolicFolding):
        return 0
    return min(folding.kind.dsp_choices(folding.rows, folding.lanes))


@pytest.fixture
def force(rng):
    """Return ``force(plan, graph, target)``: the plan with foldings drawn at random.

    A ``network`` may be given, of the same graph with wider streams, and the condition of blocks
    that are ``preferred`` where a layer has any.
    """

    def force_block(layer, device, preferred):
        options = layer_options(layer, device)
        options = list(filter(preferred, options)) or options
        options = [block for block in options if block.multipliers <= 48] or options
        block = options[int(rng.integers(len(options)))]
        if isinstance(block.folding, SystolicFolding):
            unit = lcm(layer.result_lanes, block.folding.kind.row_unit)
            block = block.with_folding(
                group_rows=unit * int(rng.integers(1, block.folding.rows // unit + 1)),
                kept_passes=int(rng.integers(1, 3)),
            )
        if isinstance(block.folding, ArrayFolding) and block.in_dsp:
            least = least_in_dsp(block.folding)
            block = block.with_folding(in_dsp=int(rng.integers(least, block.multipliers + 1)))
        if isinstance(block.parts[-1], Requantizer):
            top_bits = block.parts[-1].factor_bits
            digit_bits = int(rng.integers(1, top_bits + 1))
            digits = -(-top_bits // digit_bits)
            stages = int(rng.integers(1, digits + 1))
            block = block.with_folding(digit_bits=digit_bits, digit_stages=stages)
        if isinstance(block.buffer, LineBuffer) and rng.random() < 0.5:
            depth = max(2, 1 << (block.buffer.window.min_depth - 1).bit_length())
            block = block.with_folding(depth=depth)
        return block

    def force(plan, graph, target, network=None, preferred=None):
        network = network or lower(graph)
        blocks = tuple(force_block(layer, target.device, preferred) for layer in network.layers)
        ports = network.inputs, network.outputs
        sized = give_fifos(blocks, ports, target.device)
        blocks, times = shrink_fifos(sized, ports, target.device)
        return replace(
            plan, inputs=network.inputs, outputs=network.outputs, blocks=blocks,
            interval=times.interval, latency=times.latency, period=times.steady.period,
            settling=times.steady.settling, apart=False,
        )  # fmt: skip

    return force


@dataclass(frozen=True)
class Trial:
    """What an accelerator sent by port, and when, beside what it should have sent."""

    codes: dict[str, list[int]]
    expected: dict[str, list[int]]
    times: BeatTimes


class Simulation:
    """One accelerator in one simulator: that of its first run, if none is asked for."""

    def __init__(self, plan, graph, rng, engine):
        self.plan, self.graph, self.rng, self.engine = plan, graph, rng, engine
        self.simulator = None

    def _prepare(self, frames):
        """Elaborate or compile it."""
        plan, accelerator = self.plan, Accelerator(self.plan, self.graph)
        if self.engine is None:
            cycles = plan.latency + frames * plan.interval
            # Most are run with pauses, too.
            self.engine = "verilator" if is_worth_compiling(2 * cycles) else "pysim"
        if self.engine == "verilator":
            names = [[port.name for port in ports] for ports in (plan.inputs, plan.outputs)]
            return FastRunner(to_verilog(accelerator), inputs=names[0], outputs=names[1])
        return StreamBench(accelerator)

    def run(self, frames, stall=0.0):
        """Feed frames back to back: the extremes, then noise."""
        if self.simulator is None:
            self.simulator = self._prepare(frames)
        codes = {}
        for name in self.graph.inputs:
            tensor = self.graph.tensor(name)
            lo, hi = tensor.qtype.lo, tensor.qtype.hi
            codes[name] = self.rng.integers(lo, hi + 1, [frames, *sample_extents(tensor.shape)])
            codes[name][0], codes[name][-1] = hi, lo
        beats = _streams(self.graph.inputs, self.plan.inputs, codes)
        results = run_fixed(self.graph, codes)
        expected = _streams(self.graph.outputs, self.plan.outputs, results)
        run = self._verilator if self.engine == "verilator" else self._pysim
        sent, in_cycles, out_cycles = run(beats, frames, stall)
        firsts = [in_cycles[port.name][:: port.beats] for port in self.plan.inputs]
        lasts = [out_cycles[port.name][port.beats - 1 :: port.beats] for port in self.plan.outputs]
        firsts, lasts = np.min(firsts, axis=0), np.max(lasts, axis=0)
        times = BeatTimes(*(tuple((t - firsts[0]).tolist()) for t in (firsts, lasts)))
        wanted = {name: tensors.reshape(-1).tolist() for name, tensors in expected.items()}
        return Trial(sent, wanted, times)

    def check(self, frames, stall=0.3):
        """Every code is right, with stalls too, and every border beat comes when it should."""
        trial = self.run(frames)
        assert trial.codes == trial.expected
        plan = self.plan
        assert trial.times == simulate_beats(plan.blocks, plan.inputs, plan.outputs, frames)
        assert trial.times.latency == plan.latency
        if frames > 1 and plan.settling is not None:
            found = cycles_per_frame(trial.times.last_outputs, plan.period)
            assert found == predict_interval(plan, frames)
        trial = self.run(frames, stall=stall)
        assert trial.codes == trial.expected

    def _pysim(self, beats, frames, stall):
        items = {
            name: [
                {"data": beat, "last": n == tensors.shape[1] - 1}
                for frame in tensors.tolist()
                for n, beat in enumerate(frame)
            ]
            for name, tensors in beats.items()
        }
        counts = {port.name: port.beats * frames for port in self.plan.outputs}
        run = self.simulator.run(items, counts, stall=stall, rng=self.rng)
        for port in self.plan.outputs:
            lasts = [item.last for item in run.items[port.name]]
            assert lasts == ([0] * (port.beats - 1) + [1]) * frames
        codes = {
            name: [code for item in items for code in item.data]
            for name, items in run.items.items()
        }
        return codes, run.in_cycles, run.out_cycles

    def _verilator(self, beats, frames, stall):
        words = {
            port.name: pack_frames(beats[port.name], port.bits, signed=port.signed)
            for port in self.plan.inputs
        }
        seed = int(self.rng.integers(1 << 30))
        counts = {port.name: port.beats * frames for port in self.plan.outputs}
        done = self.simulator.run_streams(
            words, counts, stall=stall, seed=seed, idle_limit=20_000 + self.plan.latency
        )
        codes = {
            port.name: unpack_frames(
                done.payloads[port.name], port.lanes, port.bits, signed=port.signed,
                beats=port.beats,
            ).reshape(-1).tolist()
            for port in self.plan.outputs
        }  # fmt: skip
        return codes, done.in_cycles, done.out_cycles


def _streams(names, ports, codes):
    """Codes [frame, beat, lane] of every port in stream order: channels innermost."""
    return {
        port.name: to_stream(codes[name], port) for name, port in zip(names, ports, strict=True)
    }


@pytest.fixture
def simulate(rng):
    """Return ``simulate(plan, graph, engine=None)``: a :class:`Simulation`.

    The engine is "pysim", "verilator", or whichever is quicker.
    """

    def simulate(plan, graph, engine=None):
        return Simulation(plan, graph, rng, engine)

    return simulate
