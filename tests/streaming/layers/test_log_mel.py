"""Networks that hear, from samples on: codes and cycles of accelerators, whole and step by step."""

from dataclasses import replace

import pytest
from hearing_graphs import fixed_of, hearing, small_front, step_of
from spectrogram_models import spectrogram
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.layers.log_mel import LogMelLayer
from nnef_hw.streaming.search.solver import schedule

SMALL = small_front(bands=4)


@pytest.mark.verilator
@pytest.mark.parametrize("board", few(["icebreaker", "ulx3s_85f", "tang_nano_20k"], ["icebreaker"]))
def test_codes_and_cycles(board, simulate, rng):
    graph = fixed_of(hearing(rng, SMALL), rng)
    plan = schedule(graph, find_board(board))
    simulate(plan, graph).check(3)


@pytest.mark.verilator
@pytest.mark.parametrize("emphasis", few([0.96875, 0.0], [0.96875]))
def test_steps_of_a_stream(emphasis, simulate, rng):
    front = replace(SMALL, emphasis=emphasis)
    graph = step_of(fixed_of(hearing(rng, front), rng))
    [layer] = [one for one in lower(graph).layers if isinstance(one, LogMelLayer)]
    assert (layer.goes_on, layer.frames, layer.sources) == (True, 1, ("audio",))
    plan = schedule(graph, find_board("icebreaker"))
    assert plan.interval == layer.cycles(None, plan.blocks[0].device)
    simulate(plan, graph).check(9)


def test_samples_that_no_frame_reads_are_refused(rng):
    heard = hearing(rng, SMALL)
    longer = replace(heard.tensor("audio"), shape=(1, 1, 215, 1))
    fixed = fixed_of(replace(heard, tensors={**heard.tensors, "audio": longer}), rng)
    with pytest.raises(UnsupportedError, match="215 samples are not 6 frames of 60 samples"):
        lower(fixed)


def test_mirrored_borders_are_no_hardware(rng, tmp_path):
    fixed = fixed_of(load(spectrogram(tmp_path / "net.onnx", mirrored=32)), rng, axis=1)
    with pytest.raises(UnsupportedError, match="mirrors 32 samples at the first one and 32 at"):
        lower(fixed)


@pytest.mark.verilator
def test_a_stream_takes_the_place_of_mirrored_borders(simulate, rng, tmp_path):
    graph = load(spectrogram(tmp_path / "net.onnx", mirrored=32))
    stream = StreamTime(1, continue_borders=True)
    window, _ = stream.window(simplify(graph))
    graph, _ = stream.steps(fixed_of(window, rng, axis=1))
    simulate(schedule(graph, find_board("icebreaker")), graph).check(9)


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("goes_on", "kind"),
    few(
        [(False, {}), (True, {}), (False, {"emphasis": 0.97}), (True, {"magnitude": True})],
        [(False, {"emphasis": 0.97}), (True, {"magnitude": True})],
    ),
)
def test_a_spectrogram_of_the_network_itself(goes_on, kind, simulate, rng, tmp_path):
    """As torch.onnx writes it: window, bands, and a power that is added are its own."""
    path = spectrogram(tmp_path / "net.onnx", **kind)
    graph = fixed_of(load(path), rng, axis=1)
    assert graph.tensor(*graph.inputs).qtype.bits == 16
    graph = step_of(graph, axis=1) if goes_on else graph
    plan = schedule(graph, find_board("ulx3s_85f"))
    assert any(node.op == "log_bands" for node in graph.nodes)
    simulate(plan, graph).check(9 if goes_on else 3)
