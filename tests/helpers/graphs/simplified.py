"""Simplify a graph, and compare what it computes before and after."""

import numpy as np

from nnef_hw.ir import Stage, verify
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float


def check(graph, rng, ops=None):
    """Simplify; the results must agree to the last bits, and the operators be as expected."""
    canonical = simplify(graph)
    assert canonical.stage == Stage.CANONICAL
    assert canonical.outputs == graph.outputs
    assert canonical.inputs == graph.inputs
    verify(canonical)
    x = {name: rng.standard_normal((5, *graph.tensor(name).shape[1:])) for name in graph.inputs}
    before, after = run_float(graph, x), run_float(canonical, x)
    for name in graph.outputs:
        assert graph.tensor(name).shape == canonical.tensor(name).shape
        np.testing.assert_allclose(after[name], before[name], rtol=1e-9, atol=1e-10)
    if ops is not None:
        assert [node.op for node in canonical.nodes] == ops
    return canonical


def batch_norm(builder, x, channels, rng, **kwargs):
    mean, variance, offset, scale = rng.standard_normal((4, 1, channels))
    return builder.op(
        "batch_normalization", x, mean, variance**2, offset, scale, epsilon=1e-3, **kwargs
    )


def canonical_ops(graph, rng):
    """Simplify; check that the results are the same; return the operators."""
    canonical = simplify(graph)
    (name,) = graph.inputs
    x = {name: rng.normal(size=(2, *graph.tensor(name).shape[1:]))}
    wanted, found = (run_float(g, x)[g.outputs[0]] for g in (graph, canonical))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    return [node.op for node in canonical.nodes]
