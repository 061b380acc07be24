import re

import numpy as np
import pytest
from cli_cases import MODEL, UNSTREAMED_MODELS, WRONG_MODELS, Result, write_model

from nnef_hw.boards import BOARDS
from nnef_hw.frontend import save
from nnef_hw.frontend.nnef.archive.tensor_file import write_tensor
from nnef_hw.testing import GraphBuilder

pytestmark = pytest.mark.system


def test_check(cli, tiny):
    result = cli("check", MODEL)
    assert result == Result(0, "digits_cnn: valid NNEF; can be built (streaming, engine)\n", "")
    assert cli("check", tiny / "tiny.nnef.tgz", "--json").json == {
        "model": "tiny", "valid": True, "architectures": {"streaming": True, "engine": True},
        "problems": [],
        "refusals": {},
        "boards": [],
    }  # fmt: skip


def test_inspect(cli, tiny):
    text = cli("inspect", MODEL)
    assert (text.status, text.err) == (0, "")
    assert "23,680" in text.out
    value = cli("inspect", tiny / "tiny.nnef.tgz", "--json").json
    assert value["macs"] == 16 * 3 * 9 + 12 * 4
    assert value["parameters"] == 3 * 9 + 3 + 12 * 4 + 4
    assert value["inputs"] == {"image": [1, 1, 6, 6]}
    by_name = {layer["name"]: layer for layer in value["layers"]}
    assert by_name["conv1"]["macs"] == 16 * 3 * 9
    assert re.search(r"tiny\.nnef\.tgz/graph\.nnef:14:\d+$", by_name["scores"]["location"])


def test_inspect_counts_filters_that_were_reshaped(cli, tmp_path):
    """As torch_to_nnef writes linear layers of tokens: an axis of batches before the filter."""
    text = """version 1.0;
graph net(x) -> (y)
{
    x = external<scalar>(shape = [1, 5, 3]);
    w = variable<scalar>(label = 'w', shape = [4, 3]);
    b = variable<scalar>(label = 'b', shape = [4]);
    y = linear(x, unsqueeze(w, axes = [0]), unsqueeze(b, axes = [0, 1]));
}
"""
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "graph.nnef").write_text(text)
    (tmp_path / "net" / "w.dat").write_bytes(write_tensor(np.ones((4, 3), np.float32)))
    (tmp_path / "net" / "b.dat").write_bytes(write_tensor(np.ones(4, np.float32)))
    value = cli("inspect", tmp_path / "net", "--lenient", "--json").json
    assert (value["macs"], value["parameters"]) == (5 * 4 * 3, 4 * 3 + 4)


def test_inspect_keeps_the_order_of_inputs(cli, tmp_path):
    graph = GraphBuilder("two")
    graph.op("add", graph.input("z", [1, 2]), graph.input("a", [1, 2]))
    save(graph.build(), tmp_path / "two.nnef.tgz")
    out = cli("inspect", tmp_path / "two.nnef.tgz", "--json").out
    assert out.index('"z"') < out.index('"a"')


def test_check_lists_states_layers_and_streams_at_once(cli, tmp_path):
    model = write_model(
        tmp_path / "m",
        "h = variable<scalar>(shape = [1, 2, 4, 4], label = 'h');",
        "k = variable<scalar>(shape = [1, 2, 4, 4], label = 'k');",
        "e = pow(h, k);",
        "s = pow(e, h);",
        "y = tanh(s);",
        "n = update(h, s);",
        "c = variable<scalar>(shape = [1, 2, 4, 4], label = 'c');",
        "m = update(k, c);",
        h=np.zeros((1, 2, 4, 4)),
        k=np.zeros((1, 2, 4, 4)),
        c=np.ones((1, 2, 4, 4)),
    )
    result = cli("check", model)
    assert result.status == 2
    for problem in (
        "the variable 'k' takes a constant for its next value",
        "pow 'e': this operator is not supported", "pow 's': this operator is not",
        "input 'x' is never read",
    ):  # fmt: skip
        assert result.err.count(problem) == 1


def test_inspect_tells_what_is_special(cli, tmp_path):
    model = write_model(
        tmp_path / "m",
        "h = variable<scalar>(shape = [1, 2, 4, 4], label = 'h');",
        "e = erf(x);",
        "y = add(e, h);",
        "n = update(h, y);",
        h=np.zeros((1, 2, 4, 4)),
    )
    text = (model / "graph.nnef").read_text()
    erf = "fragment erf(x: tensor<scalar>) -> (y: tensor<scalar>);"
    head = f"version 1.0;\nextension KHR_enable_fragment_definitions;\n{erf}\n"
    (model / "graph.nnef").write_text(text.replace("version 1.0;\n", head))
    (model / "graph.quant").write_text('"e": linear_quantize(min = -1.0, max = 1.0, bits = 8);\n')
    value = cli("inspect", model, "--json").json
    assert value["format"] == "NNEF 1.0.5"
    assert value["states"] == {"h": [1, 2, 4, 4]}
    assert value["quantized"] == {"e": "linear_quantize"}
    assert value["extended_operators"] == ["erf"]
    out = cli("inspect", model).out
    assert out.startswith("net (NNEF 1.0.5, float): x [1, 2, 4, 4] -> y [1, 2, 4, 4]\n")
    assert "states: h [1, 2, 4, 4]\n" in out
    assert "quantized: 1 tensor (linear_quantize)\n" in out
    assert "not in NNEF 1.0.5: erf\n" in out


def test_loops_count_once_for_each_step(cli, exports):
    value = cli("inspect", exports / "rnn" / "rnn.tract.nnef.tgz", "--json").json
    (loop, *_) = (layer for layer in value["layers"] if layer["op"] == "scan")
    assert value["extended_operators"] == ["scan"]
    assert loop["macs"] == 9 * 6 * 6
    assert value["macs"] == 9 * 6 * 6 + 9 * 4 * 6


@pytest.mark.parametrize(
    ("make", "match"),
    [*WRONG_MODELS.values(), *UNSTREAMED_MODELS.values()],
    ids=[*WRONG_MODELS, *UNSTREAMED_MODELS],
)
def test_check_lists_the_problems(make, match, cli, tmp_path):
    model = make(tmp_path)
    text = cli("check", model)
    assert text.status == 2
    assert re.search(match, text.err, re.DOTALL)
    result = cli("check", model, "--json")
    assert result.status == 2
    if "does not exist" in match:
        assert result.json["error"]["status"] == 2
        assert text.out == ""
        return
    assert not result.err
    assert result.json["architectures"] == {"streaming": False, "engine": False}
    assert "".join(f"nnef-hw: {each}\n" for each in result.json["problems"]) == text.err
    valid, verdict = False, "not valid NNEF"
    if "conv 'y'" in match or "nothing to compute" in match:
        valid, verdict = True, "valid NNEF"
    elif "'foo'" in match:
        valid, verdict = None, "cannot be read"
    assert result.json["valid"] is valid
    assert f": {verdict}; {len(result.json['problems'])} problem" in text.out


class TestBoards:
    """``check --board``."""

    def test_one_that_it_fits_and_one_that_it_does_not(self, cli, tmp_path):
        g = GraphBuilder("wide")
        x = g.op("linear", g.input("x", [1, 150]), np.ones([150, 150]), np.zeros([1, 150]))
        save(g.build(x), tmp_path / "wide.nnef.tgz")
        result = cli("check", "wide.nnef.tgz", "--board", "fomu_pvt,ulx3s_85f")
        assert (result.status, result.err) == (0, "")
        verdict, _, row = result.out.split("\n")[:3]
        assert verdict == "wide: valid NNEF; can be built (streaming, engine)"
        assert row.startswith("ulx3s_85f ")
        assert re.search(
            r"\n\nfomu_pvt: model 'wide' does not fit fomu_pvt .* block RAMs", result.out
        )
        alone = cli("check", "wide.nnef.tgz", "--board", "fomu_pvt", "--json")
        assert alone.status == 2
        ((refused, fits),) = ((row["refusal"], row["fits"]) for row in alone.json["boards"])
        assert not fits
        assert "does not fit fomu_pvt" in refused
        assert alone.json["problems"] == []

    def test_boards_say_what_plan_says(self, cli, tiny):
        model = tiny / "tiny.nnef.tgz"
        asked = "icebreaker,icebreaker,ulx3s_25f"
        found, planned = (
            cli(command, model, "--board", asked, "--json").json["boards"]
            for command in ("check", "plan")
        )
        assert [row["board"] for row in found] == ["icebreaker", "ulx3s_25f"]
        assert found == planned

    def test_all_are_asked(self, cli, tiny):
        found = cli("check", tiny / "tiny.nnef.tgz", "--board", "all", "--json").json["boards"]
        assert [row["board"] for row in found] == [board.name for board in BOARDS]

    def test_none_is_asked_for_a_model_with_problems(self, cli, tmp_path):
        ((write, message),) = UNSTREAMED_MODELS.values()
        result = cli("check", write(tmp_path), "--board", "icebreaker", "--json")
        assert (result.status, result.err) == (2, "")
        assert message in "".join(result.json["problems"])
        assert result.json["boards"] == []

    def test_one_that_is_not_known_is_refused(self, cli):
        result = cli("check", MODEL, "--board", "icebreaker,fomu")
        assert (result.status, result.out) == (2, "")
        assert "board 'fomu' is not known; did you mean 'fomu_pvt'" in result.err
