"""In which form samples enter a graph, and in which form its results leave."""

import re

import numpy as np
import pytest

from nnef_hw.errors import SampleError
from nnef_hw.frontend.building.builder import Builder
from nnef_hw.ir import Tensor
from nnef_hw.reference import run_float, trace_float
from nnef_hw.samples.samples import load_samples


def transposed(*shapes, dtype="scalar"):
    """The first input with its axes in reverse order; all inputs are results too."""
    builder = Builder("net")
    tensors = [builder.input(Tensor(f"x{i}", shape, dtype)) for i, shape in enumerate(shapes)]
    axes = list(range(len(shapes[0])))[::-1]
    (y,) = builder.node("transpose", tensors[:1], {"axes": axes}, "y", [dtype])
    constant = builder.constant("k", np.zeros((1, 7)))
    return builder.build([y.name, constant.name, *(tensor.name for tensor in tensors)])


@pytest.mark.parametrize(
    ("shape", "samples", "result", "constant"),
    [
        ((1, 3), (5, 3), (5, 3, 1), (5, 7)),
        ((1, 3), (5, 1, 3), (5, 3, 1), (5, 1, 7)),
        ((1, 3), (1, 3), (1, 3, 1), (1, 7)),
        ((2, 3), (2, 3), (3, 2), (1, 7)),
        ((2, 3), (5, 2, 3), (5, 3, 2), (5, 1, 7)),
        ((2, 3), (1, 2, 3), (1, 3, 2), (1, 1, 7)),
        ((3,), (3,), (3,), (1, 7)),
        ((3,), (5, 3), (5, 3), (5, 1, 7)),
        ((1,), (5,), (5,), (5, 7)),
        ((), (), (), (1, 7)),
        ((), (5,), (5,), (5, 1, 7)),
    ],
    ids=str,
)
def test_results_come_in_the_form_of_the_inputs(shape, samples, result, constant, rng):
    x = rng.standard_normal(samples)
    found = run_float(transposed(shape), {"x0": x})
    assert found["y"].shape == result
    assert found["k"].shape == constant
    np.testing.assert_array_equal(found["x0"], x)
    samples = x.reshape(-1, *shape)
    turned = [sample.T for sample in samples]
    np.testing.assert_array_equal(found["y"].reshape(len(samples), *turned[0].shape), turned)


def test_inputs_of_both_forms_go_together(rng):
    graph = transposed((4, 2), (1, 3))
    inputs = {"x0": rng.standard_normal((5, 4, 2)), "x1": rng.standard_normal((5, 3))}
    found = trace_float(graph, inputs)
    assert {name: x.shape for name, x in found.items()} == {
        "x0": (5, 4, 2),
        "x1": (5, 1, 3),
        "y": (5, 2, 4),
        "k": (5, 1, 7),
    }


def test_a_graph_without_inputs_has_results():
    builder = Builder("net")
    builder.node("relu", [builder.constant("k", np.array([-1.0, 2.0]))], {}, ["y"])
    assert run_float(builder.build(["y"]), {})["y"].tolist() == [0.0, 2.0]


@pytest.mark.parametrize(
    ("shape", "dtype", "samples", "message"),
    [
        ((2, 3), "scalar", np.zeros((3, 3)), "input 'x0' has shape [3, 3], not [N, 2, 3]"),
        ((1, 3), "scalar", np.zeros((5, 2, 3)), "input 'x0' has shape [5, 2, 3], not [N, 3]"),
        ((), "scalar", np.zeros((5, 1)), "input 'x0' has shape [5, 1], not [N]"),
        ((1, 2), "integer", np.array([[1.0, 2.5]]), "input 'x0' takes integer values, not 2.5"),
        ((1, 2), "logical", np.array([[1, 2]]), "input 'x0' takes logical values, not 2"),
        ((1, 2), "integer", np.array([[1.0, np.nan]]), "takes integer values, not nan"),
    ],
)
def test_what_does_not_fit_is_refused(shape, dtype, samples, message):
    with pytest.raises(SampleError, match=re.escape(message)):
        run_float(transposed(shape, dtype=dtype), {"x0": samples})


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.float32])
def test_whole_numbers_of_any_type_are_integers(dtype):
    found = run_float(transposed((2,), dtype="integer"), {"x0": np.array([1, 100], dtype)})
    assert found["y"].dtype == np.int64
    assert found["y"].tolist() == [1, 100]


@pytest.mark.parametrize(
    ("shape", "stored", "samples"),
    [
        ((1, 3), (5, 3), (5, 3)),
        ((1, 3), (5, 1, 3), (5, 3)),
        ((2, 3), (2, 3), (1, 2, 3)),
        ((2, 3), (5, 2, 3), (5, 2, 3)),
        ((), (5,), (5,)),
    ],
    ids=str,
)
def test_sample_files_may_hold_any_form(tmp_path, shape, stored, samples):
    np.savez(tmp_path / "s.npz", x0=np.zeros(stored))
    found = load_samples(tmp_path / "s.npz", transposed(shape))
    assert found.inputs["x0"].shape == samples
    assert len(found) == samples[0]
    assert all(len(x) == len(found) for x in run_float(transposed(shape), found.inputs).values())
