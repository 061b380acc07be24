"""Every way to take a part becomes slices along one axis."""

from simplified import canonical_ops

from nnef_hw.testing import GraphBuilder


def test_a_split_becomes_slices(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 5, 3, 4])
    name = g.op("slice", x, axes=[1], begin=[0], end=[2], stride=[1])
    graph = g.build(name)
    other = graph.tensors[name]
    parts = graph.nodes[0].with_attrs(axis=1, ratios=[2, 3])
    rest = type(other)("rest", (1, 3, 3, 4))
    node = type(parts)("split", ("x",), (name, "rest"), {"axis": 1, "ratios": [2, 3]})
    both = type(parts)("concat", ("rest", name), ("y",), {"axis": 1})
    tensors = {**graph.tensors, "rest": rest, "y": type(other)("y", (1, 5, 3, 4))}
    graph = graph.replaced(nodes=(node, both), tensors=tensors, outputs=("y",))
    assert canonical_ops(graph, rng) == ["slice", "slice", "concat"]


def test_strides_of_a_slice_become_a_pool_of_one_pixel(rng):
    g = GraphBuilder()
    x = g.input("x", [1, 2, 7, 6])
    g.op("slice", x, axes=[1, 3], begin=[1, 0], end=[2, 6], stride=[1, 4])
    assert canonical_ops(g.build(), rng) == ["slice", "max_pool"]
