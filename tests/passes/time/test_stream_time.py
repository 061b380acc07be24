"""Networks of windows, step by step: the same numbers as windows that move along the stream."""

from dataclasses import replace

import numpy as np
import pytest
from recurrent_graphs import looped
from temporal_graphs import (
    TEMPORAL,
    Temporal,
    causal,
    classifier,
    exported_tcn,
    padded,
    random_temporal,
)

from nnef_hw.errors import ErrorGroup, UnsupportedError, UsageError
from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.ir import verify
from nnef_hw.ir.parser import parse_graph
from nnef_hw.ir.printer import format_graph
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.passes.time.time_rows import find_rows
from nnef_hw.quantize import quantize
from nnef_hw.reference import run_fixed, run_float

STEPS = 24
ROWS = StreamTime(2)
GUESSED = StreamTime()
BORDERS = StreamTime(2, continue_borders=True)


def streams(graph, how, rng):
    """Return the network of a window, that of a step, the rows of a step, and a stream of codes."""
    window, _ = how.window(simplify(graph))
    [name] = window.inputs
    shape = window.tensor(name).shape
    fixed = quantize(window, {name: rng.normal(size=(16, *shape[1:]))})
    step, rows = how.steps(fixed)
    rows = rows[name]
    qtype = fixed.tensor(name).qtype
    length = rows.rows * (shape[rows.axis] // rows.rows + STEPS)
    extents = [length if n == rows.axis else extent for n, extent in enumerate(shape)]
    return fixed, step, rows, rng.integers(qtype.lo, qtype.hi + 1, extents)


def check_steps(graph, rng, how=ROWS):
    """Every step gives what the window gives whose last rows are those of the step."""
    fixed, step, rows, stream = streams(graph, how, rng)
    [name], [result] = fixed.inputs, fixed.outputs
    given = fixed.tensor(name).shape[rows.axis]
    stepwise = StreamRows(rows.axis, rows.rows)
    found = run_fixed(step, {name: stepwise.sequences(stream)})[result][0]
    ends = given + rows.behind
    begins = [(n + 1) * rows.rows - ends for n in range(len(found))]
    steps = [n for n, begin in enumerate(begins) if begin >= 0]
    windows = [
        stream[0].take(range(begin, begin + given), rows.axis - 1)
        for begin in begins
        if 0 <= begin <= stream.shape[rows.axis] - given
    ]
    expected = run_fixed(fixed, {name: np.array(windows)})[result]
    found = found[steps][: len(expected)]
    assert len(expected) >= STEPS - 1
    plan = find_rows(fixed, {name: rows.axis})
    if plan.axes.get(result) == rows.axis:
        # What has rows still gives those up to the newest one that no padding reaches.
        expected = expected.take(plan.last[result], rows.axis)
        found = found.take(-1, rows.axis)
    assert len(np.unique(found)) > 1
    np.testing.assert_array_equal(found, expected)
    return step


@pytest.mark.parametrize("name", TEMPORAL)
def test_steps_are_windows_that_move(name, rng):
    check_steps(TEMPORAL[name](), rng)


@pytest.mark.parametrize(
    "shard", [0, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(1, 40))]
)
def test_random_networks(shard, rng):
    for seed in range(5 * shard, 5 * shard + 5):
        check_steps(random_temporal(seed), rng)


@pytest.mark.parametrize("cropped", [False, True])
def test_causal_networks_of_exporters(cropped, tmp_path, rng):
    """[1, C, T] tells its axis; residual layers with dilations keep 2, 4 and 8 rows."""
    pytest.importorskip("onnx")
    exported_tcn(tmp_path / "tcn.onnx", cropped=cropped)
    step = check_steps(load(tmp_path / "tcn.onnx"), rng, GUESSED)
    assert step.tensor("x").shape == (1, 4, 1)
    assert sorted(step.tensor(name).shape[2] for name in step.states) == [2, 4, 8]


def test_real_numbers_are_the_same_too(rng):
    graph = simplify(classifier())
    step, rows = StreamTime(2).steps(graph)
    stream = rng.normal(size=(1, 2, 40, 3))
    found = run_float(step, {"x": rows["x"].sequences(stream)})["y"][0]
    windows = [stream[0][:, begin : begin + 19] for begin in range(1, 22, 2)]
    np.testing.assert_allclose(found[9:], run_float(graph, {"x": np.array(windows)})["y"])


def test_a_causal_network_begins_as_with_its_padding(rng):
    """The rows before a stream are zeros, as the padding of its layers is."""
    fixed, step, rows, stream = streams(causal(), StreamTime(), rng)
    begin = stream[:, :, :16]
    found = run_fixed(step, {"x": rows.sequences(begin)})["y"][0]
    assert found.shape == (16, 2, 1, 1)
    np.testing.assert_array_equal(
        found[:, :, 0].transpose(1, 0, 2), run_fixed(fixed, {"x": begin})["y"][0]
    )


def test_a_step_knows_how_it_takes_windows(tmp_path):
    """So do its text and its archive, and another number of rows is another network."""
    window, extended = BORDERS.window(simplify(padded()))
    step, rows = BORDERS.steps(window, extended)
    assert step.rows == {"x": StreamRows(2, 2, 4, 3)}
    assert (rows["x"].front, rows["x"].behind) == (0, 0)
    assert BORDERS.of_model(simplify(padded())).rows == step.rows
    save(step, tmp_path / "step.nnef.tgz")
    assert load(tmp_path / "step.nnef.tgz").rows == step.rows
    assert parse_graph(format_graph(step)).rows == step.rows
    assert graph_hash(replace(step, rows=rows)) != graph_hash(step)
    with pytest.raises(AssertionError, match="input x: a step of it has 2 rows"):
        verify(replace(step, rows={"x": StreamRows(2, 3)}))


def test_continued_borders(rng):
    """Rows take the place of padding, in the network of a window as well."""
    window, rows = BORDERS.window(simplify(padded()))
    # The convolution in front reads a row more at each end, the pool one and, two rows further
    # out, that of the one behind, whose last row it makes of a row less.
    assert (rows["x"].rows, rows["x"].front, rows["x"].behind) == (19, 4, 3)
    assert window.tensor("x").shape == (1, 2, 19, 2)
    assert not any(
        any(node.attrs["padding"][-2]) for node in window.nodes if "padding" in node.attrs
    )
    check_steps(padded(), rng, BORDERS)
    # Where padding is not reached nothing changes: the middle of what a long window gives.
    check_steps(causal(), rng, BORDERS)


def test_a_window_becomes_a_sequence(rng):
    """Samples of a window end with the step that gives their result."""
    graph = simplify(classifier())
    step, rows = StreamTime(2).steps(graph)
    x = rng.normal(size=(3, 2, 19, 3))
    sequences = rows["x"].sequences(x)
    assert sequences.shape == (3, 10, 2, 2, 3)
    last = run_float(step, {"x": sequences})["y"][:, -1]
    np.testing.assert_allclose(last, run_float(graph, {"x": x})["y"])


def test_only_new_rows_are_computed():
    """A step multiplies as often as it has new rows; what no step needs is gone."""
    step, _ = StreamTime(2).steps(simplify(classifier()))
    shapes = {node.op: step.tensor(node.name).shape[2:3] for node in step.nodes}
    assert (shapes["max_pool"], shapes["avg_pool"]) == ((1,), (1,))
    assert step.tensor("x").shape == (1, 2, 2, 3)
    assert [step.tensor(name).shape[2] for name in step.states] == [3, 2, 5]


def refused(t, *outputs, how=GUESSED):
    with pytest.raises((UnsupportedError, ErrorGroup, UsageError)) as caught:
        how.steps(simplify(t.net.build(*outputs)))
    return str(caught.value)


def test_a_loop_over_a_window_is_refused():
    with pytest.raises(UnsupportedError, match="has a loop over the steps of a window") as caught:
        StreamTime().steps(simplify(looped(4)))
    assert "--state loops" in caught.value.remedy


def test_padding_that_results_see_is_refused():
    with pytest.raises(ErrorGroup) as caught:
        StreamTime(2).steps(simplify(padded()))
    message = str(caught.value)
    assert "padded.nnef:1: conv 'relu2' cannot run step by step: it pads its 12 rows" in message
    assert "--continue-borders" in message


def test_results_of_the_window_that_rows_are_combined_with_are_refused():
    t = Temporal("squeeze", 8)
    scale = t.net.op("sigmoid", t.pool("avg_pool", "x", 8, 1), name="scale")
    t.net.op("mul", "x", scale, name="y")
    assert "cannot run step by step: it combines rows with" in refused(t)


def test_rows_of_a_window_joined_in_time_are_refused():
    t = Temporal("joined", 8)
    t.conv(t.net.op("concat", "x", t.net.op("tanh", "x"), axis=2, name="both"), 2, 5)
    assert "concat 'both' cannot run step by step: it puts rows" in refused(t)


def test_positions_in_the_window_are_refused():
    t = Temporal("positions", 8)
    t.conv(t.net.op("add", "x", t.rng.normal(size=(1, 3, 8, 1)), name="placed"), 2, 5)
    assert "cannot run step by step: it mixes time, axis 2 of [1, 3, 8, 1]" in refused(t)


def test_constants_of_channels_stay(rng):
    t = Temporal("biased", 8)
    t.conv(t.net.op("mul", "x", np.linspace(1, 2, 3).reshape(1, 3, 1, 1)), 2, 5)
    check_steps(t.net.build(), rng)


def test_the_axis_of_time():
    t = Temporal("image", 8, 1, 6)
    t.conv("x", 2, 3, name="y")
    assert "does not tell which axis is time" in refused(t)
    assert "--stream time=2 (8 rows), time=3 (6 rows)" in refused(t)
    assert "has no rows along axis 1" in refused(t, how=StreamTime(1))


def test_columns_in_time(rng):
    """Time need not be the rows of an image."""
    t = Temporal("columns", 4, 2, 12)
    y = t.net.op("relu", t.conv("x", 3, 2, stride=2))
    t.pool("avg_pool", y, 2, 1, columns=3)
    check_steps(t.net.build(), rng, StreamTime(3))


def test_a_network_of_one_row_is_refused():
    t = Temporal("point", 8)
    t.conv("x", 2, 1)
    assert "there is nothing to keep" in refused(t)
