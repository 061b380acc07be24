"""Sequences of networks with states, in real numbers and in integers."""

import weakref
from types import SimpleNamespace

import numpy as np
import pytest
from recurrent_graphs import delay_line, gru

from nnef_hw.errors import SampleError
from nnef_hw.ir import open_states
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import (
    Sequences,
    iterate_fixed,
    iterate_float,
    quantize_inputs,
    run_fixed,
    run_float,
    trace_fixed,
    trace_float,
)

CASES = {"gru": (gru(initial=[[0.5, -0.5, 0.25, 0.0]]), (3,)), "delay line": (delay_line(), (2, 1))}


@pytest.fixture(params=CASES.values(), ids=CASES)
def case(request, rng):
    """A canonical network, its fixed form, and sequences [20, 5, ...]."""
    graph, shape = request.param
    canonical = simplify(graph)
    x = rng.normal(size=(20, 5, *shape))
    return canonical, quantize(canonical, {"x": x}), x


def test_every_sequence_begins_with_the_initial_states(case):
    canonical, fixed, x = case
    codes = quantize_inputs(fixed, {"x": x})["x"]
    for run, graph, inputs in ((run_float, canonical, x), (run_fixed, fixed, codes)):
        together = run(graph, {"x": inputs})["y"]
        assert together.shape[:2] == (20, 5)
        for n in (0, 7, 19):
            np.testing.assert_allclose(run(graph, {"x": inputs[n]})["y"], together[n])


def test_a_step_takes_over_what_the_one_before_has_left(case):
    _, fixed, x = case
    codes = quantize_inputs(fixed, {"x": x})["x"]
    expected = trace_fixed(fixed, {"x": codes})
    step = open_states(fixed)
    states = {
        name: np.repeat(state.initial, len(x), axis=0) for name, state in fixed.states.items()
    }
    for n in range(x.shape[1]):
        for name in states:
            np.testing.assert_array_equal(expected[name][:, n], states[name])
        values = trace_fixed(step, {"x": codes[:, n], **states})
        states = {name: values[state.result] for name, state in fixed.states.items()}
        np.testing.assert_array_equal(values["y"], expected["y"][:, n])


def test_only_what_is_wanted_is_kept_of_every_step(case):
    canonical, fixed, x = case
    codes = quantize_inputs(fixed, {"x": x})
    (found,) = iterate_fixed(fixed, {"x": codes["x"][:16]}, ["y"])
    assert list(found) == ["y"]
    np.testing.assert_array_equal(found["y"], next(iterate_fixed(fixed, codes))["y"])
    assert all(list(chunk) == ["y"] for chunk in iterate_float(canonical, {"x": x}, names=["y"]))

    made = []

    def step(values):
        state = values["s"] + 1
        made.append(weakref.ref(state))
        return {"s": values["s"], "next": state, "y": state.sum(axis=1)}

    graph = SimpleNamespace(states={"s": SimpleNamespace(result="next")})
    sequences = Sequences(graph, {"x": np.zeros((2, 5, 1))}, is_lone=False)
    kept = sequences.run(step, {"s": np.zeros((1, 3))}, 0, 2, ["y"])
    assert kept["y"].tolist() == [3, 6, 9, 12, 15] * 2
    assert all(state() is None for state in made)


def test_the_canonical_network_computes_what_the_models_does(rng):
    for graph, shape in CASES.values():
        x = rng.normal(size=(3, 4, *shape))
        np.testing.assert_allclose(
            run_float(simplify(graph), {"x": x})["y"], run_float(graph, {"x": x})["y"]
        )


def test_steps_of_a_chunk_are_those_of_whole_sequences(case):
    _, fixed, x = case
    codes = quantize_inputs(fixed, {"x": x})
    chunks = [len(chunk["y"]) for chunk in iterate_fixed(fixed, codes)]
    assert sum(chunks) == 100
    assert not any(count % 5 for count in chunks)


def test_a_batch_extent_of_one_may_be_given(rng):
    graph = gru()
    x = rng.normal(size=(4, 3))
    expected = trace_float(graph, {"x": x})
    assert expected["h"].shape == (4, 4)
    found = run_float(graph, {"x": x[:, None]})["y"]
    np.testing.assert_array_equal(found, expected["y"][:, None])
    np.testing.assert_array_equal(run_float(graph, {"x": x[None, :, None]})["y"][0], expected["y"])


def test_sequences_of_another_form_are_refused():
    graph = gru()
    with pytest.raises(SampleError, match=r"not \[N, T, 3\], or \[T, 3\] of one sequence"):
        run_float(graph, {"x": np.zeros((2, 5, 4))})
    with pytest.raises(SampleError, match="there are no samples"):
        run_float(graph, {"x": np.zeros((2, 0, 3))})
