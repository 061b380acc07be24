"""Networks that no layer computes as they are: the same numbers, by operators that layers have."""

import numpy as np
import pytest
from other_axes import NETWORKS

from nnef_hw.ir import Trait
from nnef_hw.ir.batch import sample_extents
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float
from nnef_hw.streaming.foldings.support import check_streamable
from nnef_hw.testing import GraphBuilder


@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.__name__)
def test_the_same_numbers(network, rng):
    graph = network(rng)
    canonical = simplify(graph)
    x = {
        name: rng.normal(size=(3, *sample_extents(graph.tensor(name).shape)))
        for name in graph.inputs
    }
    wanted, found = run_float(graph, x), run_float(canonical, x)
    for name in graph.outputs:
        assert found[name].shape == wanted[name].shape
        np.testing.assert_allclose(found[name], wanted[name], rtol=1e-5, atol=1e-6)
    assert [node.op for node in canonical.nodes if not node.has(Trait.MOVES)] == NETWORKS[network]
    assert not check_streamable(canonical)


def test_a_constant_is_as_small_as_it_can_be(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 3, 4, 5])
    canonical = simplify(g.build(g.op("max", x, np.full((1, 3, 4, 5), 0.25))))
    assert [node.op for node in canonical.nodes] == ["clamp"]
