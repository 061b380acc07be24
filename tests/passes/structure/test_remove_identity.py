"""What hands its input on is dropped; results keep their names."""

import numpy as np
import pytest
from simplified import canonical_ops, check

from nnef_hw.testing import GraphBuilder


def test_identities_vanish_and_outputs_keep_their_names(image, rng):
    y = image.op("copy", image.conv("x", rng.standard_normal((4, 3, 1, 1))))
    y = image.reshape(y, [1, 4, 6, 6])
    y = image.op("transpose", y, axes=[0, 1, 2, 3])
    image.op("copy", y, name="out")
    graph = check(image.build(), rng, ["conv"])
    assert graph.nodes[0].name == "out"


def test_an_identity_between_input_and_output_stays(image, rng):
    image.op("copy", "x", name="out")
    check(image.build(), rng, ["reshape"])


def test_a_twice_returned_tensor_stays_twice(image, rng):
    y = image.op("tanh", "x", name="y")
    z = image.op("copy", y, name="z")
    check(image.build(y, z), rng, ["tanh", "reshape"])


def test_a_slice_of_everything_is_nothing(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2, 4, 4]))
    x = g.op("slice", x, axes=[1, 2], begin=[0, 0], end=[2, 4], stride=[1, 1])
    assert canonical_ops(g.build(g.op("nearest_upsample", x, factor=[1, 1])), rng) == ["tanh"]


@pytest.mark.parametrize("chosen", [True, False])
def test_a_constant_choice_of_one_operand_everywhere_is_nothing(chosen, rng):
    """Values that are not chosen need not be finite; ONNX's Attention guards hidden rows so."""
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 4]))
    condition = g.constant("c", np.full((1, 1), chosen), dtype="logical")
    other = g.constant("other", np.asarray(np.nan))
    g.op("select", condition, *((x, other) if chosen else (other, x)), name="out")
    graph = check(g.build(), rng, ["tanh"])
    assert graph.nodes[0].name == "out"


def test_a_constant_choice_that_differs_stays(rng):
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 4]))
    condition = g.constant("c", np.array([[True, False, True, True]]), dtype="logical")
    g.op("select", condition, x, 0.5)
    assert len(canonical_ops(g.build(), rng)) > 1
