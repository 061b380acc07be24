"""Rewriting a graph takes time in proportion to its size."""

import sys

import numpy as np

from nnef_hw.passes import rewrite
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.testing import GraphBuilder


def chain(length, rng):
    """Layers with something to fold, fuse, rename and drop."""
    g = GraphBuilder()
    x = g.input("x", [1, 4, 1, 1])
    for _ in range(length):
        x = g.op("relu", g.op("add", g.conv(x, rng.normal(size=(4, 4, 1, 1))), np.ones((1, 4))))
        flat = g.reshape(g.op("copy", x), [1, 4])
        x = g.op("add", x, g.reshape(flat, [1, 4, 1, 1]))
    return g.build(x)


def steps_to_rewrite(graph):
    """Count the calls of Python functions, steps of generators among them."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        rewrite(graph)
    finally:
        sys.setprofile(None)
    return count


def test_twice_the_layers_take_twice_the_steps(rng):
    graphs = [chain(length, rng) for length in (100, 200)]
    rewrite(graphs[0])
    few, many = map(steps_to_rewrite, graphs)
    assert many < 2.1 * few


def test_a_renamed_tensor_keeps_those_who_read_it():
    g = GraphBuilder()
    x = g.op("tanh", g.input("x", [1, 2]), name="a")
    g.op("add", g.op("exp", x, name="b"), x, name="c")
    graph = g.build()
    editor = Editor(graph)
    for node in graph.nodes[:2]:
        editor.keep(node)
    editor.activation("other", (1, 2), editor.tensors["a"])
    editor.rename("a", "other")
    editor.keep(graph.nodes[2])
    nodes = editor.finish().nodes
    assert [node.inputs for node in nodes] == [("x",), ("other",), ("b", "other")]
    assert editor.emitted("other") is nodes[0]
    editor.drop(nodes[1])
    assert editor.emitted("b") is None
