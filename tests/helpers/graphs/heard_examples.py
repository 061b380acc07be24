"""Examples that hear, by the commands of their READMEs: on the simulated board and without one."""

import json
import shlex
from pathlib import Path

from nnef_hw.boards.interfaces import I2s
from nnef_hw.reference import run_fixed

ROOT = Path(__file__).parents[3]
RATE = 16_000


def commands(folder):
    """The commands of an example's README, as lists of words."""
    text = (folder / "README.md").read_text().replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    nnef-hw ")]
    return [shlex.split(line)[1:] for line in lines]


def scores_of(fixed, samples, step):
    """Codes of the only output after each step of a sound, as a microphone hears it."""
    samples = I2s("audio", RATE, step).heard(samples)
    steps = len(samples) // step
    [source], [name] = fixed.inputs, fixed.outputs
    frames = samples[: steps * step].reshape(1, steps, *fixed.tensor(source).shape[1:])
    return run_fixed(fixed, {source: frames})[name].reshape(steps, -1)


def events_of(sink, scores, qtype):
    """Steps at which a sink says something, and what."""
    return [(event.step, sink.says(event)) for event in sink.occurrences(scores, qtype)]


def heard_on_board(cli, monkeypatch, out, build, sim):
    """Run a README's commands, but for the bitstream; return what the board's simulation told."""
    monkeypatch.chdir(ROOT)
    result = cli(*build[: build.index("--out")], "--no-bitstream", "--frames", 3, "--out", out)
    assert result.status == 0, result.err
    result = cli("sim", out, *sim[2:], "--json")
    assert result.status == 0, result.err
    told = json.loads(result.out)
    assert (told["equal"], told["lost"]) == (True, 0)
    return told
