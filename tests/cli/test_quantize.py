"""The command quantize: schemes, searches and reports."""

import re

import numpy as np
import pytest
from cli_cases import tiny_graph

from nnef_hw.frontend import load
from nnef_hw.passes import simplify


def filters(path):
    graph = load(path)
    return {
        node.name: graph.tensor(node.inputs[1]).qtype
        for node in graph.nodes
        if node.op in {"conv", "linear"}
    }


def layer_names():
    """Names of the tiny network's layers, as quantize knows them."""
    return [node.name for node in simplify(tiny_graph()).nodes if node.op in {"conv", "linear"}]


@pytest.fixture
def arguments(tiny):
    model, samples = tiny / "tiny.nnef.tgz", tiny / "samples.npz"
    return ["quantize", model, "--calibrate", samples, "-o", "q.nnef.tgz"]


def test_the_command_line_stands_above_the_file(cli, arguments, tmp_path):
    name = layer_names()[0]
    text = f"weight_bits = 5\nactivation_bits = 6\n[layers.{name}]\nweight_bits = 3\n"
    (tmp_path / "scheme.toml").write_text(text)
    result = cli(*arguments, "--scheme", "scheme.toml", "--weight-bits", "4")
    assert result.status == 0
    assert re.fullmatch(r"nnef-hw: warning: 20 samples calibrate: .*\n    .*\n", result.err)
    bits = {key: qtype.bits for key, qtype in filters("q.nnef.tgz").items()}
    assert bits.pop(name) == 3
    assert set(bits.values()) == {4}
    graph = load("q.nnef.tgz")
    assert graph.tensor(graph.inputs[0]).qtype.bits == 6


@pytest.mark.parametrize(
    "options",
    [
        ["--calibration", "percentile"],
        ["--round", "nearest"],
        ["--no-correct-bias"],
        ["--equalize"],
    ],
    ids=" ".join,
)
def test_options_change_the_integers(options, cli, arguments):
    hashes = [cli(*arguments, "--json", *more).json["hash"] for more in ([], options)]
    assert hashes[0] != hashes[1]


def test_json_tells_accuracy_and_what_layers_lose(cli, arguments):
    value = cli(*arguments, "--json").json
    assert value["accuracy"].keys() == {"metric", "float", "fixed", "nats"}
    assert value["accuracy"]["nats"] is None
    assert value["samples"] > 0 < value["calibration_samples"]
    assert value["layers"][0]["name"] == load("q.nnef.tgz").inputs[0]
    assert all(row["sqnr_db"] > 5 for row in value["layers"])


def test_reports_are_pages(cli, arguments, tmp_path):
    result = cli(*arguments, "--report", "page.html")
    assert result.status == 0
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    accuracy, report = result.out.splitlines()[-2:]
    scores = r"float [\d.]+%, fixed [\d.]+%"
    assert re.fullmatch(f"accuracy on 20 samples, those that calibrated: {scores}", accuracy)
    assert report == "report: page.html"
    assert "that calibrated</dd>" in (tmp_path / "page.html").read_text()


def test_most_of_60_samples_calibrate(cli, arguments, tiny, tmp_path):
    with np.load(tiny / "samples.npz") as samples:
        many = {name: np.concatenate([x] * 3) for name, x in samples.items()}
    np.savez(tmp_path / "many.npz", **many)
    arguments[3] = "many.npz"
    result = cli(*arguments, "--report", "page.html")
    used, accuracy, _ = result.out.splitlines()[-3:]
    assert used == "48 of 60 samples calibrated"
    assert re.fullmatch(r"accuracy on 12 others: float [\d.]+%, fixed [\d.]+%", accuracy)
    assert "that calibration did not see</dd>" in (tmp_path / "page.html").read_text()


def test_searched_widths_are_narrower(cli, arguments):
    found = cli(*arguments, "--bits", "auto", "--accuracy-drop", "50", "--board", "ice40", "--json")
    assert found.status == 0
    assert found.json["weight_bytes"] < cli(*arguments, "--json").json["weight_bytes"]


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--weight-bits", "9"], r"weight_bits must be in 1\.\.8, not 9"),
        (["--accuracy-drop", "1"], "--accuracy-drop is for a search; give --bits auto, too"),
        (["--board", "ice40"], "--board is for a search; give --bits auto, too"),
        (
            ["--bits", "auto", "--accuracy-drop", "-1"],
            "--accuracy-drop must be 0 to 100 points, not -1",
        ),
        (["--bits", "auto", "--board", "ice4"], "board 'ice4' is not known; did you mean 'ice40'?"),
        (["--scheme", "none.toml"], "scheme 'none.toml' cannot be read: No such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_that_make_no_sense_are_refused(options, match, refused, arguments):
    refused(*arguments, *options, match=match)


def test_unknown_layers_are_refused_with_their_line(refused, arguments, tmp_path):
    (tmp_path / "scheme.toml").write_text("[layers.nothing]\nweight_bits = 4\n")
    match = r"scheme\.toml:1: layer 'nothing' does not exist; the layers are image, relu1, "
    refused(*arguments, "--scheme", tmp_path / "scheme.toml", match=match)


def test_progress_is_shown_on_terminals_only(cli, arguments, monkeypatch):
    # of so few samples there is a warning, and no more
    assert re.fullmatch(
        r"nnef-hw: warning: 20 samples calibrate: [^\n]*\n[^\n]*\n", cli(*arguments).err
    )
    monkeypatch.setenv("FORCE_COLOR", "1")
    result = cli(*arguments)
    assert result.status == 0
    assert "calibrating" in result.err
    assert "calibrating" not in result.out


@pytest.mark.parametrize(
    "options", [["--weight-bits", 4], ["--bits", "auto"], ["--scheme", "s.toml"]]
)
def test_fixed_models_cannot_be_quantized_again(options, cli, refused, arguments, tmp_path):
    assert cli(*arguments).status == 0
    (tmp_path / "s.toml").write_text('rounding = "tflite"\n')
    again = ["quantize", "q.nnef.tgz", *arguments[2:4], "-o", "again.nnef.tgz"]
    refused(*again, *options, match="is fixed: its formats and integers stay as they are; omit")
    assert cli(*again).status == 0


def test_what_was_found_is_printed(cli, arguments):
    result = cli(*arguments, "--bits", "auto", "--accuracy-drop", 100)
    size, widths, samples, hint = result.out.splitlines()
    assert re.fullmatch(r"q.nnef.tgz: [\d,]+ bytes of weights", size)
    bits = {key: qtype.bits for key, qtype in filters("q.nnef.tgz").items()}
    assert widths == "bits of weights: " + ", ".join(
        f"{name} {bits[name]}" for name in layer_names()
    )
    assert re.fullmatch(r"\d+ of \d+ samples calibrated", samples)
    assert hint.startswith("--report")


def test_searches_need_more_than_one_sample(refused, arguments, tiny, tmp_path):
    with np.load(tiny / "samples.npz") as samples:
        archive = dict(samples)
    np.savez(tmp_path / "one.npz", **{name: x[:1] for name, x in archive.items()})
    arguments[3] = "one.npz"
    refused(*arguments, "--bits", "auto", match="cannot be searched with one sample")


def test_advice_names_what_each_layer_loses_and_gains(cli, arguments):
    result = cli(*arguments, "--advise", "--set", f"{layer_names()[0]}.weight_bits=4")
    assert result.status == 0
    lines = [" ".join(line.split()) for line in result.out.splitlines()]
    head = lines.index("layer weights of 4 bits codes of 16 bits")
    assert re.fullmatch(r"results: [\d.]+ dB signal to noise on \d+ samples; .*", lines[head - 1])
    first, *others = lines[head + 1 : head + 1 + len(layer_names())]
    assert re.fullmatch(rf"{layer_names()[0]} [\d.]+ dB", first)
    for name, line in zip(layer_names()[1:], others, strict=True):
        assert re.fullmatch(rf"{name} [\d.]+ dB [\d.]+ dB", line)
    assert any(line.startswith("cheapest to narrow: --set ") for line in lines)
    assert any(line.startswith("most to gain: --set ") for line in lines)
    found = cli(*arguments, "--advise", "--json").json["sensitivities"]
    assert [layer["name"] for layer in found["layers"]] == layer_names()


def test_advice_that_cannot_be_given(cli, arguments):
    result = cli(*arguments, "--advise", "--bits", "auto")
    assert (result.status, result.out) == (2, "")
    assert "--advise is for given widths; omit --bits auto" in result.err
    result = cli(*arguments[:2], "--advise", "-o", "q.nnef.tgz")
    assert (result.status, result.out) == (2, "")
    assert "--advise needs samples; give --calibrate samples.npz" in result.err
