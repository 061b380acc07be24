"""Integer layers: what they compute, and what hardware reads of them, from the same nodes."""

import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
from golden_networks import NETWORKS

from nnef_hw.arithmetic.images.windows import gather_taps, pad_border
from nnef_hw.arithmetic.tflite.numerics import TfliteAverage
from nnef_hw.ir import StreamOrder
from nnef_hw.ir.layers import Convolution, MaxPool, Pool, Sum, SumPool, layer_of, layers_of
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.testing import GraphBuilder


def grouped():
    """Three groups of two channels each: neither dense nor one filter per channel."""
    rng = np.random.default_rng(0)
    net = GraphBuilder("net")
    weights, bias = rng.uniform(-1, 1, (9, 2, 3, 2)), rng.uniform(-1, 1, (1, 9))
    y = net.op(
        "conv", net.input("x", (1, 6, 5, 4)), net.constant("w", weights, "w"),
        net.constant("b", bias, "b"), stride=[2, 1], dilation=[1, 1], border="constant",
        padding=[(1, 0), (0, 2)], groups=3,
    )  # fmt: skip
    samples = {"x": rng.uniform(-1, 2, (16, 6, 5, 4))}
    return quantize(simplify(net.build(y)), samples, Scheme(symmetric=False))


FIXED = {network.__name__: network().fixed() for network in NETWORKS} | {"grouped": grouped()}
LAYERS = [
    pytest.param(graph, layer, id=f"{name}-{layer.node.name}")
    for name, graph in FIXED.items()
    for layer in layers_of(graph).values()
]


def of_kind(*kinds):
    return [case for case in LAYERS if isinstance(case.values[1], kinds)]


def codes_of(layer, rng, count=2):
    source = layer.source
    shape = (count, *layer.operands[0].shape[1:])
    return rng.integers(source.lo, source.hi + 1, shape)


@pytest.mark.parametrize(("graph", "layer"), of_kind(Convolution))
def test_convolutions_by_the_model_itself(graph, layer, rng):
    """Every result from the stored weights, one product after the other."""
    node, x = layer.node, codes_of(layer, rng)
    weights, bias = (graph.constant(name).astype(np.int64) for name in node.inputs[1:])
    weights = weights - graph.tensor(node.inputs[1]).qtype.zero_point
    image = x.reshape(*x.shape[:2], *(x.shape[2:] or (1, 1))) - layer.source.zero_point
    weights = weights.reshape(*weights.shape[:2], *(weights.shape[2:] or (1, 1)))
    padding = node.attrs.get("padding", [(0, 0), (0, 0)])
    (down, across), (dy, dx) = (node.attrs.get(name, (1, 1)) for name in ("stride", "dilation"))
    image = np.pad(image, [(0, 0), (0, 0), *padding])
    outputs, inputs, rows, columns = weights.shape
    of_group = outputs // node.attrs.get("groups", 1)
    found = layer.compute(x)
    shape = found.shape[2:] or (1, 1)
    sums = np.zeros((len(x), outputs, *shape), np.int64)
    for o, y, c in itertools.product(range(outputs), *map(range, shape)):
        first = o // of_group * inputs
        for i, r, k in itertools.product(range(inputs), range(rows), range(columns)):
            sums[:, o, y, c] += (
                weights[o, i, r, k] * image[:, first + i, y * down + r * dy, c * across + k * dx]
            )
    expected = node.attrs["requant"].apply(sums + bias.reshape(1, -1, 1, 1))
    assert (found.reshape(expected.shape) == expected).all()


@pytest.mark.parametrize(("graph", "layer"), of_kind(Convolution))
def test_hardware_reads_the_same_convolution(graph, layer, rng):
    """Filters over all channels, folded bias and window give the codes; also less an offset."""
    del graph
    x, window = codes_of(layer, rng), layer.window
    image = x if x.ndim > 2 else x[:, :, None, None]
    padded = pad_border(image, window.padding, value=layer.pad_code)
    taps = np.stack(gather_taps(padded, window.kernel, window.stride, window.dilation), axis=1)
    assert taps.shape[3:] == (window.out_height, window.out_width)
    kind = "ntchw,ct->nchw" if layer.by_channel else "ntchw,otc->nohw"
    for offset in (0, -128):
        sums = np.einsum(kind, taps - offset, layer.filters)
        sums += layer.folded_bias(offset)[:, None, None]
        codes = layer.requant.apply(sums)
        assert (codes.reshape(len(x), -1) == layer.compute(x).reshape(len(x), -1)).all()
        if not offset:
            low, high = layer.sums
            assert low <= sums.min()
            assert sums.max() <= high
    # the limits are reached: by codes that are the lowest or the highest as a weight has a sign
    ends, weights = (
        (layer.source.lo, layer.source.hi),
        layer.filters.reshape(len(layer.filters), -1),
    )
    codes = (np.where(weights > 0, *pair) for pair in (ends, ends[::-1]))
    low, high = ((weights * x).sum(axis=1) + layer.folded_bias() for x in codes)
    assert layer.sums == (low.min(), high.max())


def pool(rng, op, border):
    net = GraphBuilder("net")
    x = net.input("x", (1, 3, 6, 5))
    attrs = {
        "size": [1, 1, 3, 2], "stride": [1, 1, 2, 1], "dilation": [1, 1, 1, 2],
        "padding": [(0, 0), (0, 0), (1, 2), (1, 0)], "border": border,
    }  # fmt: skip
    y = net.op(op, x, **attrs)
    samples = {"x": rng.uniform(-1, 3, (16, 3, 6, 5))}
    graph = quantize(simplify(net.build(y)), samples, Scheme(symmetric=False))
    [layer] = [x for x in layers_of(graph).values() if isinstance(x, Pool)]
    return layer


@pytest.mark.parametrize("border", ["constant", "ignore"])
@pytest.mark.parametrize("kind", ["max_pool", "avg_pool", "tflite"])
def test_hardware_reads_the_same_pool(kind, border, rng):
    """Padding codes, what is taken from every code, and a factor for each position."""
    layer = pool(rng, "max_pool" if kind == "max_pool" else "avg_pool", border)
    source = layer.source
    if kind == "tflite":
        average = TfliteAverage(layer.pool.taps, source.zero_point, source.lo, source.hi)
        layer = replace(layer, requant=average)
    x, window = codes_of(layer, rng, 5), layer.window
    padded = pad_border(x, window.padding, value=layer.pad_code)
    taps = np.stack(gather_taps(padded, window.kernel, window.stride, window.dilation))
    if isinstance(layer, MaxPool):
        assert (taps.max(axis=0) == layer.compute(x)).all()
        return
    assert isinstance(layer, SumPool)
    sums, requant, found = taps.sum(axis=0), layer.factors, layer.compute(x)
    assert layer.positions.max() + 1 == len(layer.counts)
    assert (len(layer.counts) > 1) == (border == "ignore")
    for place, count in np.ndenumerate(layer.inside):
        n = layer.counts.index(count) if border == "ignore" else 0
        assert border == "constant" or layer.positions[place] == n
        one = requant.of_channels(slice(n, n + 1)) if len(requant.mult) > 1 else requant
        bias = -layer.zero * layer.pool.taps
        assert (one.apply(sums[:, :, *place] + bias) == found[:, :, *place]).all(), place


def test_a_graph_is_lowered_once(rng):
    graph = FIXED["residual"]
    assert layers_of(graph) is layers_of(graph)
    for node in graph.nodes:
        assert layer_of(graph, node).node is node
    assert graph.once(StreamOrder) is graph.once(StreamOrder)
    copy = pickle.loads(pickle.dumps(graph))
    assert not copy._made
    assert layers_of(copy) is not layers_of(graph)
    made = []
    for choice in (1, 2, 1):
        assert graph.once(made_of, choice, made.append) == (graph, choice)
    assert made == [1, 2]


def made_of(graph, choice, note):
    note(choice)
    return graph, choice


def test_a_layer_reads_another_tensor():
    graph = FIXED["residual"]
    layer = next(x for x in layers_of(graph).values() if isinstance(x, Convolution))
    other = graph.tensor(graph.inputs[0])
    changed = layer.reading(other)
    assert (changed.operands, changed.node.inputs) == ((other,), (other.name,))
    assert changed.weights is layer.weights


def test_sums_take_a_constant_operand_by_themselves(rng):
    net = GraphBuilder("net")
    x = net.input("x", (1, 3, 4))
    y = net.op("add", net.constant("c", rng.uniform(-1, 1, (1, 3, 4))), net.op("tanh", x))
    samples = {"x": rng.uniform(-1, 1, (16, 3, 4))}
    graph = quantize(simplify(net.build(y)), samples, Scheme())
    [layer] = [found for found in layers_of(graph).values() if isinstance(found, Sum)]
    [activation] = [operand for operand in layer.operands if operand.data is None]
    x = rng.integers(-9, 9, (2, *activation.shape[1:]))
    args = [x if operand is activation else operand.data for operand in layer.operands]
    found = layer.run({activation.name: x})
    assert (found == layer.compute(*args)).all()
    assert len(np.unique(found)) > 9
