"""examples/wakeword_mlperf: it hears the word, in the fixed model and on the simulated board."""

import json

import numpy as np
import pytest
from audio import read_wav
from heard_examples import ROOT, commands, events_of, heard_on_board, scores_of

import nnef_hw as nh
from nnef_hw.boards.interfaces import Result, UartText
from nnef_hw.frontend.front_file import read_front
from nnef_hw.passes.time.stream_time import StreamTime

FOLDER = ROOT / "examples" / "wakeword_mlperf"
HOP = 512


def heard(samples):
    """Return the events of the fixed-point model in samples, which hears them as a board does."""
    model = nh.load(FOLDER / "wakeword.tflite", front=read_front(FOLDER / "front.toml"))
    fixed = StreamTime(continue_borders=True).of_model(model.quantize().graph)
    [name] = fixed.outputs
    scores, qtype = scores_of(fixed, samples, HOP), fixed.tensor(name).qtype
    sink = UartText.of(Result(name, (3,), qtype=qtype), {}, names="marvin//", threshold=0.95)
    return events_of(sink, scores, qtype)


def test_the_model_hears_the_word():
    samples = read_wav(FOLDER / "marvin.wav")
    assert heard(samples) == [(18, "marvin 0.97")]
    assert heard(np.zeros_like(samples)) == []


@pytest.mark.nightly
@pytest.mark.system
@pytest.mark.verilator
def test_the_board_hears_the_word(cli, monkeypatch, tmp_path):
    """The README's commands, but for the bitstream."""
    build, sim, *_ = commands(FOLDER)
    told = heard_on_board(cli, monkeypatch, tmp_path / "build", build, sim)
    assert [(event["step"], event["name"]) for event in told["events"]] == [
        (18, "StatefulPartitionedCall_0 0"), (18, "marvin"),
    ]  # fmt: skip
    assert all(abs(event["seconds"] - 0.61) < 0.005 for event in told["events"])
    assert told["duty"] < 0.05


@pytest.mark.nightly
@pytest.mark.system
@pytest.mark.verilator
def test_a_small_board_hears_the_word(cli, monkeypatch, tmp_path):
    """The README's commands for an iCE40UP5K, whose sums of resources have to fit it."""
    *_, build, sim = commands(FOLDER)
    told = heard_on_board(cli, monkeypatch, tmp_path / "build", build, sim)
    report = json.loads((tmp_path / "build" / "report.json").read_text())
    used = {name: row["estimated"] for name, row in report["resources"].items()}
    assert used["lut"] <= 4_800
    assert used["bram"] <= 30
    assert used["spram"] == 4
    assert [event["step"] for event in told["events"]] == [18]
    assert told["duty"] < 0.082


def test_ten_seconds_of_speech(sense):
    """Two of three words in time, as the benchmark's reference has it, and nothing else."""
    samples = read_wav(sense / "short_wav_easy10s.wav")
    [clip] = json.loads((sense / "sww_short_test.json").read_text())
    found = [(step + 1) * HOP / 16_000 for step, _ in heard(samples)]
    true = [
        [time for time in found if begin <= time <= end + 1]
        for begin, end in clip["detection_windows"]
    ]
    assert [len(times) for times in true] == [1, 1, 0]
    assert len(found) == 2
