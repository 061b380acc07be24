import re

import pytest
from cli_cases import MODEL, WRONG_MODELS, Result


def test_check(cli, tiny):
    result = cli("check", MODEL)
    assert result == Result(0, "digits_cnn: valid NNEF; can be built (streaming)\n", "")
    assert cli("check", tiny / "tiny.nnef.tgz", "--json").json == {
        "model": "tiny", "valid": True, "architectures": {"streaming": True}, "problems": [],
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


@pytest.mark.parametrize(("make", "match"), WRONG_MODELS.values(), ids=WRONG_MODELS)
def test_check_lists_the_problems(make, match, cli, tmp_path):
    model = make(tmp_path)
    text = cli("check", model)
    assert text.status == 2
    assert re.search(match, text.err, re.DOTALL)
    result = cli("check", model, "--json")
    assert result.status == 2
    if "does not exist" in match:
        assert (result.out, text.out) == ("", "")
        return
    assert not result.err
    assert result.json["architectures"] == {"streaming": False}
    assert "".join(f"nnef-hw: {each}\n" for each in result.json["problems"]) == text.err
    valid, verdict = False, "not valid NNEF"
    if "conv 'y'" in match:
        valid, verdict = True, "valid NNEF"
    elif "'foo'" in match:
        valid, verdict = None, "cannot be read"
    assert result.json["valid"] is valid
    assert f": {verdict}; {len(result.json['problems'])} problem" in text.out
