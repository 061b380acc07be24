"""Integers of inputs: their format, what they choose, and which ones are refused."""

import re

import numpy as np
import pytest
from step_graphs import MASKS, WRITES, step

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.places import hide_behind, look_up_rows, write_rows
from nnef_hw.errors import SampleError
from nnef_hw.ir.input_readers import index_count
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import quantize_inputs, run_fixed, run_float


def samples(rng, sequences=3, steps=20, tokens=11):
    shape = sequences, steps, 1
    return {"token": rng.integers(0, tokens, shape), "position": rng.integers(0, 8, shape)}


def test_rows_of_a_table():
    table = np.array([[1, 2], [3, 4], [5, 6]])
    found = look_up_rows(table, np.array([[[0, 2]], [[7, 1]]]))
    assert found.tolist() == [[[1, 5], [2, 6]], [[5, 3], [6, 4]]]


def test_channels_behind_a_place_are_hidden_and_others_never_look_so():
    x = np.array([[[-8], [-8], [3]], [[5], [4], [-8]]])
    assert hide_behind(x, np.array([0, 9]), -8)[..., 0].tolist() == [[-7, -8, -8], [5, 4, -7]]
    real = hide_behind(x.astype(float), np.array([1, 1]), -np.inf)[..., 0]
    assert real.tolist() == [[-8.0, -8.0, -np.inf], [5.0, 4.0, -np.inf]]


def test_a_row_takes_the_place_of_another_one():
    cache = np.zeros((2, 2, 3), int)
    found = write_rows(cache, np.array([[1, 2], [3, 4]]), np.array([[1], [5]]))
    assert found.tolist() == [[[0, 1, 0], [0, 2, 0]], [[0, 0, 3], [0, 0, 4]]]


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("groups", [1, 2])
def test_passes_compute_what_the_network_does(write, mask, groups, rng):
    graph = step(rng, write=write, mask=mask, groups=groups)
    canonical = simplify(graph)
    x = samples(rng)
    [wanted], [found] = run_float(graph, x).values(), run_float(canonical, x).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-9)
    ops = [node.op for node in canonical.nodes]
    assert {op: ops.count(op) for op in ("lookup", "write_row", "causal_mask", "contraction")} == {
        "lookup": 2, "write_row": 2, "causal_mask": 1, "contraction": 2,
    }  # fmt: skip
    assert not {"select", "mul"} & set(ops)


def test_integers_are_their_codes_whatever_the_samples_are(rng):
    graph = simplify(step(rng))
    x = samples(rng) | {"token": np.full((3, 20, 1), 2)}
    fixed = quantize(graph, x)
    formats = [fixed.tensor(name).qtype for name in ("token", "position")]
    assert formats == [QType(bits, signed=False, scale=1.0) for bits in (4, 3)]
    assert [index_count(fixed, name) for name in ("token", "position")] == [11, 8]
    assert quantize_inputs(fixed, x)["token"].tolist() == x["token"][..., 0].tolist()


def test_tables_span_rows_that_no_sample_chose(rng):
    graph = simplify(step(rng))
    fixed = quantize(graph, samples(rng) | {"token": np.full((3, 20, 1), 2)})
    lookup = next(node for node in fixed.nodes if node.op == "lookup")
    table, real = fixed.tensor(lookup.inputs[0]), graph.tensor(lookup.inputs[0])
    error = abs(table.qtype.dequantize(table.data) - real.data).max()
    assert error <= table.qtype.scale * 0.5000001


def test_fixed_results_are_near_the_real_ones(rng):
    graph = simplify(step(rng))
    x = samples(rng, sequences=8)
    fixed = quantize(graph, x)
    [codes], [real] = (
        run_fixed(fixed, quantize_inputs(fixed, x)).values(),
        run_float(graph, x).values(),
    )
    found = fixed.tensor(fixed.outputs[0]).qtype.dequantize(codes)
    # 8-bit codes on the way: a sixth of the 46 dB of rounding once
    assert np.square(real).mean() > 1000 * np.square(found - real).mean()


@pytest.mark.parametrize(("name", "value", "last"), [("token", 11, 10), ("position", -1, 7)])
def test_an_integer_outside_of_the_tables_is_refused(name, value, last, rng):
    x = samples(rng)
    fixed = quantize(simplify(step(rng)), x)
    x[name][1, 4] = value
    reason = f"input '{name}' holds {value} at [1, 4], but its integers are 0 to {last}"
    with pytest.raises(SampleError, match=re.escape(reason)):
        quantize_inputs(fixed, x)
