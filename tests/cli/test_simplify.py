"""The command that prints what passes make of a model."""

import numpy as np
import pytest
from cli_cases import MODEL, write_model

from nnef_hw.frontend import load
from nnef_hw.ir import Stage, format_graph, parse_graph
from nnef_hw.passes import simplify


@pytest.fixture
def model(tmp_path):
    """Return a model whose clamp and bias passes rewrite one after the other."""
    return write_model(tmp_path / "m", "a = max(x, 0.5);", "y = clamp(a, 0.0, 6.0);")


def test_the_canonical_graph_can_be_read_back(cli, tiny):
    result = cli("simplify", tiny / "tiny.nnef.tgz", "--whole")
    assert result.status == 0
    assert not result.err
    graph = parse_graph(result.out)
    assert graph.stage == Stage.CANONICAL
    assert result.out == format_graph(simplify(load(tiny / "tiny.nnef.tgz")))


def test_large_constants_are_known_by_their_digest_and_places_are_left_out(cli):
    result = cli("simplify", MODEL)
    assert (
        "conv1_filter: scalar[8, 1, 3, 3] label='conv1/filter' = float32 <72 values, " in result.out
    )
    assert "@(" not in result.out


def test_the_graph_behind_a_pass_and_behind_a_phase(cli, model):
    def ops(*after):
        text = cli("simplify", model, *after).out
        return [node.op for node in parse_graph(text).nodes]

    assert ops("--after", "loops") == ["max", "clamp"]
    assert ops("--after", "SinkTransposes") == ["max", "clamp"]
    assert ops("--after", "LowerClamp") == ["clamp", "clamp"]
    assert ops("--after", "CollapseFunctions") == ops("--after", "canonical") == ops()
    assert len(ops()) == 1


def test_json(cli, model):
    found = cli("simplify", model, "--after", "LowerClamp", "--json").json
    assert found == {
        "after": "LowerClamp",
        "stage": "float",
        "graph": cli("simplify", model, "--after", "LowerClamp").out,
    }
    assert cli("simplify", model, "--json").json["stage"] == "canonical"


@pytest.mark.parametrize("after", [[], ["--after", "loops"], ["--after", "FuseActivation"]])
def test_states_are_those_of_the_model(cli, tmp_path, after):
    body = ("h = variable(shape = [1, 2, 4, 4], label = 'h');", "s = add(x, h);", "y = tanh(s);")
    model = write_model(tmp_path / "m", *body, "n = update(h, y);", h=np.zeros((1, 2, 4, 4)))
    text = cli("simplify", model, *after).out
    assert "\n  state h: scalar[1, 2, 4, 4] <- y label='h' = " in text
    assert text.endswith("\n  output y\n}\n")


def test_a_stream_is_printed_behind_all_passes(cli, refused, tmp_path):
    padding = "padding = [(0, 0), (0, 0), (0, 0), (0, 0)]"
    body = f"y = max_pool(x, size = [1, 1, 3, 1], border = 'ignore', {padding});"
    model = write_model(tmp_path / "m", body, shape="[1, 2, 6, 1]")
    assert "state" in cli("simplify", model, "--stream", "time=2").out
    refused(
        "simplify", model, "--stream", "time=2", "--after", "loops",
        match="--stream rewrites the canonical graph, behind all passes; leave out",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("lower_matmul", r"no pass and no phase is called '\w+'; did you mean .*'LowerMatmul'"),
        ("canonica", r"did you mean 'canonical'\?"),
        ("123", "the phases are loops, canonical, selections, layers, order"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_refused(refused, model, name, match):
    refused("simplify", model, "--after", name, match=match)


def test_a_quantized_model_is_refused(refused, built):
    refused("simplify", built / "model.nnef.tgz", match="is quantized: passes rewrite float models")


def test_what_cannot_be_built_is_refused_but_printed_behind_a_pass(cli, refused, tmp_path):
    model = write_model(tmp_path / "m", "y = debox(x, size = [1, 1, 2, 2], stride = [1, 1, 2, 2]);")
    refused("simplify", model, match="debox 'y'")
    assert "= debox(x, " in cli("simplify", model, "--after", "order").out
