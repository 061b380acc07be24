"""examples/wakeword_home: it hears speech, in the fixed model and on the simulated board."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest

import nnef_hw as nh
from nnef_hw.boards.interfaces import I2s, Result, UartText
from nnef_hw.frontend.front_file import read_front
from nnef_hw.reference import run_fixed
from nnef_hw.run.hear import read_wav

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "wakeword_home"
SOUND = ROOT / "examples" / "wakeword_mlperf" / "marvin.wav"
STEP = 480


def commands():
    """Return the commands of the README, as lists of words."""
    text = (FOLDER / "README.md").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    nnef-hw ")]
    return [shlex.split(line)[1:] for line in lines]


def heard(samples):
    """Return the events of the fixed-point model in samples, which hears them as a board does."""
    front = read_front(FOLDER / "front.toml")
    fixed = nh.load(FOLDER / "vad.tflite", front=front).quantize().graph
    samples = I2s("audio", 16_000, STEP).heard(samples)
    steps = len(samples) // STEP
    [source], [name] = fixed.inputs, fixed.outputs
    frames = samples[: steps * STEP].reshape(1, steps, *fixed.tensor(source).shape[1:])
    scores = run_fixed(fixed, {source: frames})[name].reshape(steps, -1)
    qtype = fixed.tensor(name).qtype
    [options] = [word.partition(":")[2] for word in commands()[0] if word.startswith("uart_text:")]
    given = dict(option.split("=") for option in options.split(","))
    sink = UartText.of(
        Result(name, (1,), qtype=qtype), {}, names=given["names"], mean=int(given["mean"]),
        threshold=float(given["threshold"]), quiet=int(given["quiet"]),
    )  # fmt: skip
    return [(event.step, sink.says(event)) for event in sink.occurrences(scores, qtype)]


def test_the_scale_is_that_of_the_firmware():
    """Features become codes by (feature * 256 + 333) / 666 - 128."""
    front = read_front(FOLDER / "front.toml")
    model = nh.load(FOLDER / "vad.tflite")
    step = model.graph.tensor(model.graph.inputs[0]).quant.args["scale"]
    assert front.scale == 256 / 666 * step


def test_the_model_hears_speech():
    samples = read_wav(SOUND, 16_000)
    assert heard(samples) == [(12, "speech 0.54")]
    assert heard(np.zeros_like(samples)) == []


@pytest.mark.nightly
@pytest.mark.system
@pytest.mark.verilator
def test_the_board_hears_speech(cli, monkeypatch, tmp_path):
    """The README's commands, but for the bitstream."""
    build, sim = commands()
    out = tmp_path / "build"
    monkeypatch.chdir(ROOT)
    result = cli(*build[: build.index("--out")], "--no-bitstream", "--frames", 3, "--out", out)
    assert result.status == 0, result.err
    result = cli("sim", out, *sim[2:], "--json")
    assert result.status == 0, result.err
    told = json.loads(result.out)
    assert (told["equal"], told["lost"]) == (True, 0)
    assert [event["step"] for event in told["events"]] == [12, 12]
    assert told["duty"] < 0.21
