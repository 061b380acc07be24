# amaranth: UnusedElaboratable=no
"""TensorFlow Lite Micro's front end as a program: its integers, its gaps, its cycles."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from audio import read_wav, sounds
from example_bench import Bench
from examples.example import RAM, Example
from sequencer import Sequencer

from nnef_hw import parts
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.arithmetic.numerics import QType, Requant, choose_requant
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.parts.audio.front_cycles import front_cycles
from nnef_hw.parts.audio.front_program import FrontProgram
from nnef_hw.parts.audio.front_transform import SAMPLES
from nnef_hw.parts.audio.program import Instruction, Kind, Op, Place, Program, Register
from nnef_hw.sim.fast_runner import FastRunner

CODES = QType(8, signed=True, scale=26 / 255, zero_point=-128)
FEATURES = QType(16, signed=False, scale=1.0)
HEARD = ("noise", "quiet", "clipped", "lowest", "swelling", "tone in noise")


def micro(hop, frames, target=CODES, *, factor=256 / 666, in_dsp=True, heard=HEARD, **more):
    """Return an example: inferences of so many frames; of none, steps of 2 frames that go on."""
    front = MicroFrontend(hop)
    requant = choose_requant([factor], target, mult_bits=24)
    part = parts.MicroFrontend(
        hop=hop, frames=frames, out_bits=target.bits, out_signed=target.signed, in_dsp=in_dsp,
        ram=RAM,
    )  # fmt: skip
    length = front.window + (frames - 1) * hop if frames else 2 * hop

    def stimulus(rng):
        found = sounds(rng, length)
        return [np.concatenate([found[name] for name in heard])[:, None]]

    return Example(
        part=part, contents={"front": front, "requant": requant}, frames=len(heard),
        stimulus=stimulus, **more,
    )  # fmt: skip


@pytest.mark.parametrize("hop", [160, 320])
def test_the_program_computes_the_integers(hop, rng):
    front = MicroFrontend(hop)
    program = FrontProgram(front, 1)
    times = front_cycles(hop)
    assert len(program.code) <= 512
    found = sounds(rng, front.window + hop)
    for name in ("noise", "clipped", "lowest", "tone 2.5"):
        samples = found[name]
        machine = Sequencer(program)
        assert machine.run() == times.clears
        expected = front.apply(samples)
        assert machine.run(samples[: front.window], SAMPLES) == times.again
        machine.run(samples[front.window :], SAMPLES + front.window - hop)
        assert machine.given == expected.reshape(-1).tolist(), name
        assert not machine.hazards


def test_what_is_read_too_early_is_seen():
    """The tests' machine knows the gaps: without them it complains."""
    code = [
        Instruction(op=Op.ADD, writes=True, target=Place(7)), Instruction(op=Op.ADD, read=Place(7)),
        Instruction(kind=Kind.TAKE),
    ]  # fmt: skip
    machine = Sequencer(SimpleNamespace(code=code, words=[0]))
    machine.run()
    assert machine.hazards == [(1, 7)]


def test_programs_leave_gaps():
    program = Program()
    program.add(Instruction(op=Op.ADD, writes=True, target=Place(7)))
    program.add(Instruction(op=Op.ADD, read=Place(8)))
    program.add(Instruction(op=Op.ADD, read=Place(7)))
    assert len(program.code) == 5
    with program.loop(Register.M, 1, 9):
        program.add(Instruction(read=Place(3, Register.M)))
    assert program.code[5].target == Place(5)
    assert program.code[6].read == Place(2, Register.M)


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("hop", "frames", "in_dsp"), [(160, 0, True), (160, 2, False), (320, 1, True)]
)
def test_many_sounds_under_stalls(hop, frames, in_dsp, rng):
    Bench(micro(hop, frames, in_dsp=in_dsp), rng).check_verilog("verilator")


def features_of_hardware(samples, hop=160):
    """Return features of frames that the hardware computes of a sound, and cycles of results."""
    example = micro(hop, 0, FEATURES, factor=1.0)
    component = example.build()
    layout, results = component.i.payload.shape(), component.o.payload.shape()
    step = [{"data": [x], "last": 0} for x in samples.tolist()]
    beats = np.array([layout.const(item).as_bits() for item in step], np.uint64)[:, None]
    expected = 40 * (samples.size // hop)
    runner = FastRunner(to_verilog(component))
    run = runner.run(beats, expected_beats=expected, idle_limit=70_000)
    found = [int(results.from_bits(word).data[0]) for word in run.payloads.reshape(-1).tolist()]
    return np.array(found).reshape(-1, 40), run.out_cycles


@pytest.mark.verilator
def test_equals_the_original_for_a_word(sense):
    original = pytest.importorskip("pymicro_features", reason="pip install nnef-hw[crosscheck]")
    samples = read_wav(sense / "marvin.wav")[4_000:8_000]
    front, frames = original.MicroFrontend(), []
    # samples before the first ones are 0
    for chunk in np.concatenate([np.zeros(320, np.int64), samples]).reshape(-1, 160):
        found = front.process_samples(chunk.astype("<i2").tobytes()).features
        frames += [found] if found else []
    features, cycles = features_of_hardware(samples)
    np.testing.assert_array_equal(features, np.rint(np.array(frames) * 25.6).astype(np.int64))
    assert cycles[40] - cycles[0] == 160 + front_cycles(160).again


@pytest.mark.nightly
@pytest.mark.verilator
def test_equals_the_model_for_many_seconds(rng):
    loudness = np.repeat(10 ** rng.uniform(0, 4.8, 20), 8_000)
    samples = (rng.normal(size=160_000) * loudness).clip(-32_768, 32_767).astype(np.int64)
    features, _ = features_of_hardware(samples)
    expected = MicroFrontend().apply(np.concatenate([np.zeros(320, np.int64), samples]))
    np.testing.assert_array_equal(features, expected)


def test_contents_of_another_front_end_are_refused():
    example = micro(160, 1)
    with pytest.raises(ValueError, match="a hop of 160 samples, not 320"):
        example.part.check(MicroFrontend(320), example.contents["requant"])
    two = Requant((1, 2), 1, 0, 0, 1)
    with pytest.raises(ValueError, match=re.escape("one factor of 32 bits without an offset")):
        example.part.check(MicroFrontend(), two)
