"""The demonstration: a network of the package, whose hardware is simulated in Python."""

from pathlib import Path

import numpy as np
import pytest

import nnef_hw.demo
from nnef_hw.api.plan import Plan, Simulated
from nnef_hw.run import component

EXAMPLE = Path(__file__).parents[2] / "examples" / "digits_cnn"
PACKAGED = Path(nnef_hw.demo.__file__).parent


@pytest.mark.parametrize("name", ["digits_cnn.nnef.tgz", "samples.npz"])
def test_files_are_those_of_the_example(name):
    assert (PACKAGED / name).read_bytes() == (EXAMPLE / name).read_bytes()


def test_hardware_reads_digits(cli, tmp_path):
    page = tmp_path / "made" / "demo.html"
    result = cli("demo", "--images", "2", "--report", page)
    assert result.status == 0
    assert "read 2 of 2 digits in 3,559 cycles, as predicted" in result.out
    # Pixels of the first images, and what was read below them.
    assert "██" in result.out
    assert result.out.splitlines()[4].split() == ["1", "5"]
    assert "digits_cnn" in page.read_text()


def test_json(cli, tmp_path):
    found = cli("demo", "--images", "1", "--report", tmp_path / "demo.html", "--json").json
    assert found["found"] == found["labels"] == [1]
    # A lone image takes the latency.
    assert (found["cycles"], found["interval"]) == (2407, 1152)


def test_a_wrong_digit_is_told(cli, tmp_path, monkeypatch):
    one = np.eye(10)[4]
    monkeypatch.setattr(Plan, "simulate", lambda *_: Simulated({"scores": one[None]}, 2407))
    result = cli("demo", "--images", "1", "--report", tmp_path / "demo.html")
    assert "4 not 1" in result.out
    assert "read 0 of 1 digits" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--images", "451"], "there are 450 images; give --images 450 or fewer"),
        (["--images", "0"], "--images"),
        (["--board", "icebraker"], "icebreaker"),
    ],
)
def test_wrong_arguments(cli, tmp_path, arguments, message):
    page = tmp_path / "demo.html"
    result = cli("demo", *arguments, "--report", page)
    assert result.status == 2
    assert message in result.err
    assert not page.exists()


def test_wrong_integers_are_an_error(cli, tmp_path, monkeypatch):
    right = component.from_stream
    monkeypatch.setattr(component, "from_stream", lambda *given: right(*given) ^ 1)
    result = cli("demo", "--images", "1", "--report", tmp_path / "demo.html")
    assert result.status == 1
    assert "the hardware gives other integers" in result.err
