"""--stream time: what it says of a model, and what it refuses."""

import json
import re

import numpy as np
import pytest
from recurrent_graphs import gru
from sweeps import few
from temporal_graphs import causal, classifier, padded

from nnef_hw.frontend import load, save

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    for make in (causal, classifier, padded, gru):
        save(make(), folder / f"{make.__name__}.nnef.tgz")
    return folder


def test_check_and_inspect(cli, models):
    model = models / "classifier.nnef.tgz"
    result = cli("check", model, "--stream", "time=2")
    assert (result.status, "can be built (streaming, engine)" in result.out) == (0, True)
    found = json.loads(cli("inspect", model, "--stream", "time=2", "--json").out)
    assert found["inputs"] == {"x": [1, 2, 2, 3]}
    assert found["stream"] == {
        "rows": {"x": 2}, "window_rows": {"x": 19}, "window_macs": found["stream"]["window_macs"],
    }  # fmt: skip
    whole = json.loads(cli("inspect", model, "--json").out)["macs"]
    assert found["stream"]["window_macs"] == whole > 5 * found["macs"]
    assert "step: rows of x 2; " in cli("inspect", model, "--stream", "time=2").out
    # [1, C, T, 1] tells its axis.
    assert cli("check", models / "causal.nnef.tgz", "--stream", "time").status == 0


def test_steps_are_a_model_of_their_own(cli, models, tmp_path, rng):
    model = models / "causal.nnef.tgz"
    assert cli("convert", model, tmp_path / "step.nnef.tgz", "--stream", "time").status == 0
    step = load(tmp_path / "step.nnef.tgz")
    assert step.tensor("x").shape == (1, 3, 1, 1)
    np.savez(tmp_path / "s.npz", inputs=rng.normal(size=(8, 3, 16, 1)))
    arguments = ("--calibrate", tmp_path / "s.npz", "-o", tmp_path / "fixed.nnef.tgz")
    assert cli("quantize", model, "--stream", "time", *arguments).status == 0
    assert load(tmp_path / "fixed.nnef.tgz").states.keys() == step.states.keys()
    arguments = ("--input", tmp_path / "s.npz", "--output", tmp_path / "y.npz")
    assert cli("run", model, "--stream", "time", *arguments).status == 0
    assert np.load(tmp_path / "y.npz")["y"].shape == (8, 16, 2, 1, 1)


@pytest.mark.parametrize(
    ("model", "options", "match"),
    [
        ("classifier", ["time"], r"does not tell which axis is time; name it: --stream time=1"),
        ("classifier", ["time=7"], r"no rows along axis 7; name it: --stream time=1 \(2 rows\)"),
        ("padded", ["time=2"], r"graph.nnef:8:5: conv 'relu2' cannot run step by step: it pads"),
        ("gru", ["time=1"], "keeps states: it runs step by step already; leave out --stream"),
    ],
)
def test_refused(model, options, match, refused, models, tmp_path):
    archive = models / f"{model}.nnef.tgz"
    board = ("--board", "icebreaker", "--out", tmp_path / "out")
    refused("build", archive, *board, "--stream", *options, match=match)
    refused("inspect", archive, "--stream", *options, match=match)


def test_options_that_mean_nothing(refused, cli, models, tmp_path):
    model = models / "causal.nnef.tgz"
    refused("check", model, "--continue-borders", match="is for --stream time; give that, too")
    assert "neither time nor time=AXIS" in cli("check", model, "--stream", "space").err
    result = cli("check", models / "padded.nnef.tgz", "--stream", "time=2")
    assert (result.status, result.err.count("--continue-borders")) == (2, 3)
    result = cli("check", models / "padded.nnef.tgz", "--stream", "time=2", "--continue-borders")
    assert result.status == 0


@pytest.mark.verilator
@pytest.mark.parametrize(
    "options",
    few([["time=2"], ["time=2", "--continue-borders"]], [["time=2", "--continue-borders"]]),
)
def test_a_quantized_archive_takes_windows(options, cli, models, tmp_path, rng):
    """What is built of it is what is built of the model itself."""
    model = models / f"{'padded' if len(options) > 1 else 'classifier'}.nnef.tgz"
    [output], shape = load(model).outputs, load(model).tensor("x").shape[1:]
    np.savez(tmp_path / "s.npz", inputs=rng.uniform(-1, 1, (10, *shape)))
    calibrate = ("--calibrate", tmp_path / "s.npz")
    archive = tmp_path / "fixed.nnef.tgz"
    made = cli("quantize", model, "--stream", *options, *calibrate, "-o", archive, "--json",
               "--report", tmp_path / "q.html")  # fmt: skip
    build = ("--board", "icebreaker", "--no-bitstream", "--json", *calibrate, "--out")
    built = cli("build", archive, *build, tmp_path / "of archive")
    direct = cli("build", model, "--stream", *options, *build, tmp_path / "direct")
    assert (made.status, built.status, direct.status) == (0, 0, 0)

    manifests = [
        json.loads((tmp_path / name / "manifest.json").read_text())
        for name in ("of archive", "direct")
    ]
    assert manifests[0] == manifests[1]
    assert manifests[0]["stream"]["x"]["rows"] == 2
    assert manifests[0]["model_hash"] == json.loads(made.out)["hash"]
    reports = [json.loads(result.out) for result in (built, direct)]
    assert reports[0]["cycles_per_inference"] == reports[1]["cycles_per_inference"]
    assert reports[0]["stream"]["rows"] == reports[1]["stream"]["rows"] == {"x": 2}
    assert reports[0]["stream"]["window_rows"] is None
    again = cli("build", archive, *build[:3], *calibrate, "--out", tmp_path / "of archive")
    assert re.search(r"\nstep +2 rows: [\d,]+ MACs, [\d,]+ cycles\n", again.out)

    ways = {
        "of the archive": (archive, "--on", "fixed"),
        "rtl": (tmp_path / "of archive", "--on", "rtl"),
        "direct": (tmp_path / "direct", "--on", "fixed"),
    }
    results = []
    for name, way in ways.items():
        written = tmp_path / f"{name}.npz"
        assert cli("run", *way, "--input", tmp_path / "s.npz", "--output", written).status == 0
        results.append(np.load(written)[output])
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    compared = cli("compare", tmp_path / "of archive", "--samples", tmp_path / "s.npz", "--json")
    assert (compared.status, json.loads(compared.out)["bit_exact"]) == (0, True)
