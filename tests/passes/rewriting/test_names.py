"""Messages name the tensors of the model, not the views of them that passes compute on."""

from nnef_hw.passes.checks.check_supported import find_unsupported
from nnef_hw.passes.rewriting.names import authors_name
from nnef_hw.testing import GraphBuilder


def test_a_view_is_named_after_its_tensor():
    g = GraphBuilder()
    image = g.reshape(g.input("x", [1, 6]), [1, 6, 1, 1], name="x_image")
    y = g.op("tanh", image, name="y_2d")
    turned = g.op("transpose", y, axes=[0, 2, 3, 1], name="y_2d_t")
    g.reshape(turned, [1, 6], name="y")
    graph = g.build()
    names = {name: authors_name(graph, name) for name in ("x", "x_image", "y_2d", "y_2d_t", "y")}
    assert names == {"x": "x", "x_image": "x", "y_2d": "y", "y_2d_t": "y", "y": "y"}


def test_what_only_begins_alike_keeps_its_name():
    g = GraphBuilder()
    y = g.op("tanh", g.input("x", [1, 6]), name="y_2d")
    g.reshape(y, [1, 6, 1], name="other")
    g.op("neg", y, name="y")
    graph = g.build("other", "y")
    assert authors_name(graph, "y_2d") == "y_2d"


def test_a_refusal_names_the_authors_layer():
    g = GraphBuilder()
    x = g.reshape(g.input("x", [1, 2, 4]), [1, 2, 4, 1], name="x_image")
    g.reshape(g.op("pow", x, g.op("exp", x), name="y_2d"), [1, 2, 4], name="y")
    (error,) = find_unsupported(g.build())
    assert error.reason.startswith("pow 'y': ")
