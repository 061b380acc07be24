"""Recurrent loops: what crosses the border of a body, and in which direction."""

import numpy as np
import pytest

from nnef_hw.errors import ModelError, UnsupportedError
from nnef_hw.reference import run_float

BODY = """fragment body(x_t: tensor<scalar>, gain: tensor<scalar>, s: tensor<scalar>) ->
    (next: tensor<scalar>, y: tensor<scalar>)
{
    next = s + gain * sum_reduce(x_t, axes = [0]);
    y = next - 1.0;
}
"""
SCAN = """graph net(x) -> ({outputs}) {{
    x = external(shape = [6, 2]);
    {outputs} = tract_core_scan(
        body = "{body}",
        scan = [("x_t", x, 0, {step})],
        full = [("{full}", 2.0)],
        state = [("s", [[1.0, 1.0]], "{state}")],
        output = {output},
        {more}
    );
}}"""
OUTPUT = '[("y", "full", 0, 1)]'


def scan(
    step=1, output=OUTPUT, body="body", full="gain", state="next", outputs="y", more="skip = 0"
):
    found = {"step": step, "output": output, "body": body, "full": full, "state": state}
    return BODY + SCAN.format(outputs=outputs, more=more, **found)


def run(graph, x):
    found = run_float(graph, {"x": x})
    return [found[name] for name in graph.outputs]


@pytest.mark.parametrize("output", [OUTPUT, '[("y", "full", 0)]'], ids=["with step", "without"])
def test_a_state_goes_from_iteration_to_iteration(load_tract, rng, output):
    x = rng.normal(size=(6, 2))

    (y,) = run(load_tract(scan(output=output)), x)

    np.testing.assert_allclose(y, 2 * np.cumsum(x, 0))


def test_a_negative_step_goes_backwards(load_tract, rng):
    x = rng.normal(size=(6, 2))

    (y,) = run(load_tract(scan(-1, '[("y", "full", 0, -1)]')), x)

    np.testing.assert_allclose(y, 2 * np.cumsum(x[::-1], 0)[::-1])


def test_a_step_takes_several_elements(load_tract, rng):
    x = rng.normal(size=(6, 2))

    (y,) = run(load_tract(scan(3)), x)

    np.testing.assert_allclose(y, 2 * np.cumsum([x[:3].sum(0), x[3:].sum(0)], 0))


def test_an_output_may_be_the_last_value(load_tract, rng):
    x = rng.normal(size=(6, 2))
    text = scan(output='[("y", "full", 0, 1), ("next", "last", 0, 1)]', outputs="y, z")

    y, z = run(load_tract(text), x)

    np.testing.assert_allclose(z[0], y[-1] + 1)


def test_names_may_be_labels_of_nodes(load_tract):
    fragment = (
        "fragment body(x_t: tensor<scalar>, __a_b_c: tensor<scalar>, s: tensor<scalar>) ->"
        " (next: tensor<scalar>, y: tensor<scalar>)"
        " { next = s + x_t * __a_b_c; y = copy(next); }"
    )

    graph = load_tract(fragment + scan(full="/a/b.c").removeprefix(BODY))

    assert [node.op for node in graph.nodes] == ["scan"]


@pytest.mark.parametrize(("changed", "message"), [
    ({"body": "boddy"}, "there is no fragment 'boddy'; did you mean 'body'"),
    ({"full": "gian"}, "the fragment 'body' has no 'gian'; did you mean 'gain'"),
    ({"state": "y_t"}, "the fragment 'body' has no 'y_t'"),
    ({"step": 4}, "the step 4 does not divide the 6 elements"),
    ({"output": '[("y", "first", 0, 1)]'}, "must be 'full' or 'last', not 'first'"),
    ({"full": "x_t"}, "'gain' of the fragment 'body' is bound to nothing"),
])  # fmt: skip
def test_loops_that_do_not_fit_are_refused(load_tract, changed, message):
    with pytest.raises(ModelError, match=message):
        load_tract(scan(**changed))


@pytest.mark.parametrize("more", ["skip = 2", "external_state = 1"])
def test_pulses_are_refused(load_tract, more):
    with pytest.raises(UnsupportedError, match="is not supported; export the model without pulses"):
        load_tract(scan(more=more))


def test_an_error_in_the_body_says_in_which_loop(load_tract):
    text = scan().replace("next - 1.0", "relu(nxet)")

    with pytest.raises(ModelError, match="no tensor 'nxet', in the body 'body' of the loop 'y'"):
        load_tract(text)
