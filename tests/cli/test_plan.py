"""``plan``: what boards would make of a model."""

import re

import numpy as np
import pytest
from cli_cases import MODEL, UNSTREAMED_MODELS
from step_graphs import step

from nnef_hw.boards import BOARDS
from nnef_hw.errors import UsageError
from nnef_hw.flow import survey
from nnef_hw.frontend import save
from nnef_hw.streaming.search import solver
from nnef_hw.streaming.search.width import useful_widths
from nnef_hw.testing import GraphBuilder


def test_every_board_is_asked(cli, tiny):
    found = cli("plan", tiny / "tiny.nnef.tgz", "--json").json
    assert [row["board"] for row in found["boards"]] == [board.name for board in BOARDS]
    assert not found["calibrated"]
    assert all(row["fits"] and not row["refusal"] for row in found["boards"])


def test_cycles_are_those_of_a_build(cli, tiny, built):
    report = cli("sim", built, "--json").json
    for samples in ((), ("--calibrate", tiny / "samples.npz")):
        found = cli("plan", tiny / "tiny.nnef.tgz", "--board", "icebreaker", *samples, "--json")
        (row,) = found.json["boards"]
        assert row["cycles_per_inference"] == report["steady_cycles_per_inference"]


def test_the_fastest_stands_first_and_refusals_below(cli):
    text = cli("plan", MODEL, "--board", "fomu_pvt,ulx3s_85f", "--arch", "streaming").out
    assert re.search(r"^board .*\nulx3s_85f .*\nfomu_pvt ", text)
    result = cli("plan", MODEL, "--board", "fomu_pvt,ulx3s_85f", "--target-fps", "50000")
    assert result.status == 0
    assert re.search(r"\nulx3s_85f +streaming ", result.out)
    assert re.search(r"\n\nfomu_pvt: model 'digits_cnn' does not reach 50000 ", result.out)


def test_the_soonest_result_stands_first_where_latency_counts(cli, tiny):
    model, boards = tiny / "tiny.nnef.tgz", ("--board", "icebreaker,tang_nano_9k")
    text = cli("plan", model, *boards, "--goal", "latency").out
    assert re.search(r"^board .* latency ", text)
    rows = cli("plan", model, *boards, "--goal", "latency", "--json").json["boards"]
    times = {row["board"]: row["latency_cycles"] / row["clock_mhz"] for row in rows}
    usual = cli("plan", model, *boards, "--json").json["boards"]
    for row in usual:
        assert times[row["board"]] <= row["latency_cycles"] / row["clock_mhz"]
    soonest = min(times, key=times.get)
    assert re.search(rf"^board .*\n{soonest} ", text)


def test_it_says_how_clocks_are_decided(cli):
    boards = ("--board", "icebreaker,ulx3s_85f,tang_mega_138k", "--arch", "streaming")
    text = cli("plan", MODEL, *boards).out
    rule = "set after routing to the fastest that the PLL makes 2% below what is reached"
    assert f"\nclock of icebreaker, ulx3s_85f: {rule}\n" in text
    why = "the open tools have no PLL of gw5ast-138c"
    assert f"\nclock of tang_mega_138k: a constant: {why}\n" in text
    rows = cli("plan", MODEL, *boards, "--json").json["boards"]
    assert [row["clock"]["by"] for row in rows] == ["routing", "routing", "constant"]
    assert [row["clock"]["planned_mhz"] for row in rows] == [row["clock_mhz"] for row in rows]
    assert rows[2]["clock"]["reason"] == why
    (row,) = cli("plan", MODEL, "--board", "icebreaker", "--freq", "24", "--json").json["boards"]
    assert row["clock"] == {"by": "option", "planned_mhz": 24.0, "margin": 0.0, "reason": ""}
    sunk = cli("plan", MODEL, "--board", "icebreaker", "--sink", "uart_text", "--json").json
    (row,) = sunk["boards"]
    assert row["clock"]["reason"] == "sink uart_text counts time by the accelerator's clock"


def test_nothing_that_fits_is_an_error(cli):
    result = cli("plan", MODEL, "--board", "fomu_pvt", "--target-fps", "1e9")
    assert result.status == 2
    assert "fomu_pvt: " in result.out


def test_wrong_wishes(cli, tmp_path):
    for arguments, message in (
        (("--board", "fomu"), "board 'fomu' is not known; did you mean"),
        (("--arch", "engin"), "there is no architecture 'engin'"),
        (("--freq", "-3"), "--freq must be positive"),
        (("--goal", "latency", "--target-fps", "5"), "which --target-fps would decide; omit"),
        (("--goal", "latency", "--source", "i2s"), "which --source would decide; omit"),
        (("--bits", "auto"), "plans take the widths that they are given"),
        (("--calibrate", tmp_path / "none.npz"), "none.npz does not exist"),
    ):
        result = cli("plan", MODEL, *arguments)
        assert (result.status, result.out) == (2, "")
        assert message in result.err


def test_a_model_that_cannot_be_built_is_refused_once(cli, tmp_path):
    ((write, message),) = UNSTREAMED_MODELS.values()
    result = cli("plan", write(tmp_path))
    assert (result.status, result.out) == (2, "")
    assert result.err.count(message) == 1


def test_networks_of_windows_step_by_step(cli, tmp_path, monkeypatch):
    # of one code per beat: wider streams shorten the window of so small a network, not its step
    monkeypatch.setattr(solver, "useful_widths", lambda *given: useful_widths(*given)[-1:])
    g = GraphBuilder("taps")
    rng = np.random.default_rng(0)
    x = g.conv(g.input("x", [1, 2, 12, 1]), rng.normal(size=[3, 2, 4, 1]))
    save(g.build(g.conv(x, rng.normal(size=[2, 3, 9, 1]))), tmp_path / "taps.nnef.tgz")
    cycles = []
    for options in ((), ("--stream", "time")):
        arguments = ("--board", "ulx3s_85f", "--arch", "streaming", *options, "--json")
        (row,) = cli("plan", tmp_path / "taps.nnef.tgz", *arguments).json["boards"]
        cycles.append(row["cycles_per_inference"])
    assert cycles[1] <= cycles[0] / 3


@pytest.mark.parametrize(
    ("words", "luts", "blocks"),
    [
        ([], 840, 1),
        (["--token-loop"], 840 + 560, 1 + 2),
        (["--token-loop", "--link", "text_line"], 190 + 560, 2),
    ],
)
def test_a_token_loop_takes_room(cli, tmp_path, monkeypatch, words, luts, blocks):
    """Of a board, as when it is built; architectures are chosen by their latency."""

    def planned(fixed, targets, *arguments, by_latency, **wishes):
        [board] = targets
        raise UsageError(f"{board.link_lut} LUTs, {board.link_bram} blocks, {by_latency}")

    monkeypatch.setattr(survey, "survey", planned)
    save(step(np.random.default_rng(3), size=2), tmp_path / "step.nnef.tgz")
    found = cli("plan", "step.nnef.tgz", "--board", "icebreaker", *words)
    assert f"{luts} LUTs, {blocks} blocks, {'--token-loop' in words}" in found.err


def test_a_link_takes_room_for_the_network(cli, tmp_path, monkeypatch):
    """Of a board, as when it is built: the runner's link keeps a picture."""

    def planned(fixed, targets, *arguments, **wishes):
        [board] = targets
        raise UsageError(f"{board.link_bram} blocks")

    monkeypatch.setattr(survey, "survey", planned)
    g = GraphBuilder("picture")
    x = g.conv(g.input("x", [1, 3, 32, 32]), np.ones([2, 3, 32, 32]))
    save(g.build(x), tmp_path / "picture.nnef.tgz")
    words = "plan", "picture.nnef.tgz", "--board", "icebreaker", "--link"
    assert "1 blocks" in cli(*words, "uart").err
    assert "14 blocks" in cli(*words, "mlperf").err


def test_a_token_loop_that_cannot_be_is_refused(cli, tiny, tmp_path):
    found = cli("plan", tiny / "tiny.nnef.tgz", "--board", "icebreaker", "--token-loop")
    assert found.status == 2
    assert "the network is no step of a language model" in found.err
    save(step(np.random.default_rng(3), size=2), tmp_path / "step.nnef.tgz")
    words = "plan", "step.nnef.tgz", "--board", "icebreaker"
    found = cli(*words, "--link", "text_line")
    assert found.status == 2
    assert "nothing on the board writes any; give --token-loop" in found.err
    found = cli(*words, "--token-loop", "--source", "i2s")
    assert "--token-loop feeds all inputs, and the source i2s one of them" in found.err
