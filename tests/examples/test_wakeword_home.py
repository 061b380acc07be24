"""examples/wakeword_home: it hears speech, in the fixed model and on the simulated board."""

import numpy as np
import pytest
from audio import read_wav
from heard_examples import ROOT, commands, events_of, heard_on_board, scores_of

import nnef_hw as nh
from nnef_hw.boards.interfaces import Result, UartText
from nnef_hw.frontend.front_file import read_front

FOLDER = ROOT / "examples" / "wakeword_home"
SOUND = ROOT / "examples" / "wakeword_mlperf" / "marvin.wav"
STEP = 480


def heard(samples):
    """Return the events of the fixed-point model in samples, which hears them as a board does."""
    front = read_front(FOLDER / "front.toml")
    fixed = nh.load(FOLDER / "vad.tflite", front=front).quantize().graph
    [name] = fixed.outputs
    scores, qtype = scores_of(fixed, samples, STEP), fixed.tensor(name).qtype
    [options] = [
        word.partition(":")[2] for word in commands(FOLDER)[0] if word.startswith("uart_text:")
    ]
    given = dict(option.split("=") for option in options.split(","))
    sink = UartText.of(
        Result(name, (1,), qtype=qtype), {}, names=given["names"], mean=int(given["mean"]),
        threshold=float(given["threshold"]), quiet=int(given["quiet"]),
    )  # fmt: skip
    return events_of(sink, scores, qtype)


def test_the_scale_is_that_of_the_firmware():
    """Features become codes by (feature * 256 + 333) / 666 - 128."""
    front = read_front(FOLDER / "front.toml")
    model = nh.load(FOLDER / "vad.tflite")
    step = model.graph.tensor(model.graph.inputs[0]).quant.args["scale"]
    assert front.scale == 256 / 666 * step


def test_the_model_hears_speech():
    samples = read_wav(SOUND)
    assert heard(samples) == [(12, "speech 0.54")]
    assert heard(np.zeros_like(samples)) == []


@pytest.mark.nightly
@pytest.mark.system
@pytest.mark.verilator
def test_the_board_hears_speech(cli, monkeypatch, tmp_path):
    """The README's commands, but for the bitstream."""
    build, sim = commands(FOLDER)
    told = heard_on_board(cli, monkeypatch, tmp_path / "build", build, sim)
    assert [event["step"] for event in told["events"]] == [12, 12]
    assert told["duty"] < 0.21
