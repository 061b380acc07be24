"""Fixed graphs, foldings by force, and accelerators run cycle by cycle."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

from nnef_hw.codegen.accelerator import Accelerator
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed
from nnef_hw.schedule import lower
from nnef_hw.schedule.beats import BeatTimes, simulate_beats
from nnef_hw.schedule.fifos import give_fifos, shrink_fifos
from nnef_hw.schedule.folding import factor_bits
from nnef_hw.schedule.options import layer_options
from nnef_hw.schedule.resources import block_resources
from nnef_hw.sim.fast_runner import FastRunner
from nnef_hw.sim.frames import pack_frames, unpack_frames
from nnef_hw.sim.pysim import run_stream


@pytest.fixture
def fix(rng):
    """Return ``fix(graph, **scheme)``: a float graph quantized on noise."""

    def fix(graph, **scheme):
        canonical = simplify(graph)
        (name,) = canonical.inputs
        samples = rng.normal(size=[16, *canonical.tensor(name).shape[1:]])
        return quantize(canonical, {name: samples}, Scheme(**scheme))

    return fix


@pytest.fixture
def force(rng):
    """Return ``force(plan, graph, target)``: the plan with foldings drawn at random."""

    def force_block(layer, device):
        options = layer_options(layer, device)
        options = [block for block in options if block.multipliers <= 48] or options
        block = options[int(rng.integers(len(options)))]
        if block.kind == "conv":
            block = replace(
                block,
                group_rows=int(rng.integers(1, block.rows + 1)),
                kept_passes=int(rng.integers(1, 3)),
            )
        if block.interval:
            top_bits = factor_bits(layer.requant)
            digit_bits = int(rng.integers(1, top_bits + 1))
            digits = -(-top_bits // digit_bits)
            stages = int(rng.integers(1, digits + 1))
            block = replace(
                block, digit_bits=digit_bits, digit_stages=stages, interval=-(-digits // stages)
            )
        has_buffer = block.has_windows and not block.parallel
        if has_buffer and rng.random() < 0.5:
            depth = max(2, 1 << (block.window.min_depth - 1).bit_length())
            block = replace(block, depth=depth)
        return replace(block, resources=block_resources(block, device))

    def force(plan, graph, target):
        blocks = tuple(force_block(layer, target.device) for layer in lower(graph).layers)
        ports = plan.input, plan.output
        blocks, _ = give_fifos(blocks, ports, target.device)
        blocks, times = shrink_fifos(blocks, ports, target.device)
        return replace(plan, blocks=blocks, interval=times.interval, latency=times.latency)

    return force


@dataclass(frozen=True)
class Trial:
    """What an accelerator gave, and when, beside what it should have given."""

    codes: list[int]
    expected: list[int]
    times: BeatTimes


class Simulation:
    """One accelerator in one simulator."""

    def __init__(self, plan, graph, rng, engine):
        self.plan, self.graph, self.rng = plan, graph, rng
        accelerator = Accelerator(plan, graph)
        self.runner = FastRunner(to_verilog(accelerator)) if engine == "verilator" else None
        self.accelerator = accelerator

    def run(self, frames, stall=0.0):
        """Feed frames back to back: the extremes, then noise."""
        network, (name,) = lower(self.graph), self.graph.inputs
        tensor = self.graph.tensor(name)
        codes = self.rng.integers(
            tensor.qtype.lo, tensor.qtype.hi + 1, [frames, *tensor.shape[1:]]
        )  # fmt: skip
        codes[0], codes[-1] = tensor.qtype.hi, tensor.qtype.lo
        result = run_fixed(self.graph, {name: codes})[self.graph.outputs[0]]
        beats = _stream(codes.reshape(frames, *network.input_tensor.shape[1:]))
        expected = _stream(result.reshape(frames, *network.output_tensor.shape[1:]))
        run = self._verilator if self.runner else self._pysim
        given, in_cycles, out_cycles = run(beats, expected.size, stall)
        start = int(in_cycles[0])
        times = BeatTimes(
            tuple(int(t) - start for t in in_cycles[:: self.plan.input.beats]),
            tuple(int(t) - start for t in out_cycles[self.plan.output.beats - 1 ::
                                                     self.plan.output.beats]),
        )  # fmt: skip
        return Trial(given, expected.reshape(-1).tolist(), times)

    def check(self, frames, stall=0.3):
        """Every code is right, with stalls too, and every border beat comes when it should."""
        trial = self.run(frames)
        assert trial.codes == trial.expected
        plan = self.plan
        assert trial.times == simulate_beats(plan.blocks, plan.input, plan.output, frames)
        assert trial.times.latency == plan.latency
        trial = self.run(frames, stall=stall)
        assert trial.codes == trial.expected

    def _pysim(self, beats, count, stall):
        items = [
            {"data": [code], "last": n == beats.shape[1] - 1}
            for frame in beats.tolist()
            for n, code in enumerate(frame)
        ]
        outputs, in_cycles, out_cycles = run_stream(
            self.accelerator, items, expected=count, stall=stall, rng=self.rng, cycles=True
        )
        period = self.plan.output.beats
        assert [item.last for item in outputs] == [n % period == period - 1 for n in range(count)]
        return [item.data[0] for item in outputs], in_cycles, out_cycles

    def _verilator(self, beats, count, stall):
        source, target = self.plan.input, self.plan.output
        words = pack_frames(beats[:, :, None], source.bits, signed=source.signed)
        seed = int(self.rng.integers(1 << 30))
        done = self.runner.run(
            words, expected_beats=count, stall=stall, seed=seed, idle_limit=20_000
        )  # fmt: skip
        codes = unpack_frames(done.payloads, 1, target.bits, signed=target.signed,
                              beats=target.beats)  # fmt: skip
        return codes.reshape(-1).tolist(), done.in_cycles, done.out_cycles


def _stream(tensors):
    """Codes [frame, beat] in stream order: channels innermost."""
    return np.moveaxis(tensors, 1, -1).reshape(len(tensors), -1)


@pytest.fixture
def simulate(rng):
    """Return ``simulate(plan, graph, engine="pysim")``: a :class:`Simulation`."""

    def simulate(plan, graph, engine="pysim"):
        return Simulation(plan, graph, rng, engine)

    return simulate
