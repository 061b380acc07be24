"""What must hold for a graph at each stage; our own passes are checked with it.

Stages and the attributes they add:

* ``float``: any NNEF operator, attributes complete.
* ``canonical``: operators of :data:`CANONICAL_OPS` only. ``conv`` and ``linear`` carry
  ``activation``: None or ``"relu"``; ``add`` and ``sub`` carry it if it is ``"relu"``. A
  ``linear`` behind a flatten is a ``conv`` whose filter covers the whole image, followed by a
  ``reshape`` of a [1, C, 1, 1] tensor. Operands of :data:`ARITHMETIC_OPS` are two activations of
  one shape, or one and a constant with one value, or one for each channel. A ``slice`` is along
  one axis, with ``0 <= begin < end``; a ``pad`` is one of rows and columns with one value;
  a ``transpose`` is one of an image.
* ``fixed``: every activation has a QType; constants are integer codes. ``conv``, ``linear``,
  ``avg_pool``, ``box`` and ``mul`` carry ``requant`` (:class:`~nnef_hw.numerics.Requant`), ``add``
  and ``sub`` an :class:`~nnef_hw.numerics.AddRequant` under that name, or their counterparts of
  :mod:`nnef_hw.tflite_numerics`; table operators carry ``table``
  (int64 array, :mod:`nnef_hw.tables`), ``softmax`` too (indexed by ``max - code``).
  Operands and result of ``max``, ``min`` and ``concat`` have one QType.
  A filter keeps shape [outC, inC, ...], a bias has shape [1, outC] in int32 codes at
  ``scale_in * scale_w[c]`` without any zero point folded in.
"""

from __future__ import annotations

import numpy as np

from nnef_hw.ir.graph import Graph, Node, Stage
from nnef_hw.numerics import AddRequant, Requant
from nnef_hw.tables import TABLE_BITS, table_size
from nnef_hw.tflite_numerics import TfliteAddRequant, TfliteAverage, TfliteRequant

__all__ = [
    "ARITHMETIC_OPS", "CANONICAL_OPS", "EXACT_TABLE_OPS", "ONE_FORMAT_OPS", "TABLE_OPS", "verify",
]  # fmt: skip

TABLE_OPS = frozenset({
    "abs", "acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "clamp", "cos", "cosh",
    "elu", "exp", "floor", "gelu", "hard_sigmoid", "hard_swish", "leaky_relu", "log", "log2",
    "neg", "rcp", "relu", "requantize", "round", "rsqr", "rsqrt", "selu", "sigmoid", "sign", "silu",
    "sin", "sinh", "softplus", "sqr", "sqrt", "tan", "tanh",
})  # fmt: skip
"""Functions of one activation: a table in the fixed stage."""

EXACT_TABLE_OPS = frozenset({"ceil", "floor", "round", "sign", "softmax"})
"""Operators whose table must have every code: functions of steps have nothing between knots."""

ARITHMETIC_OPS = frozenset({"add", "max", "min", "mul", "sub"})
"""Functions of two operands, element by element."""

ONE_FORMAT_OPS = frozenset({"concat", "max", "min"})
"""Operators that hand codes on: operands and result have one QType in the fixed stage."""

CANONICAL_OPS = (
    TABLE_OPS
    | ARITHMETIC_OPS
    | {
        "argmax_reduce",
        "avg_pool",
        "box",
        "concat",
        "conv",
        "depth_to_space",
        "linear",
        "max_pool",
        "nearest_upsample",
        "pad",
        "reshape",
        "slice",
        "softmax",
        "transpose",
    }
)


def verify(graph: Graph) -> None:
    """Check a graph's own invariants.

    Raises
    ------
    AssertionError
        If a pass of ours broke the graph: never caused by a user's model.
    """
    defined = {*graph.inputs, *graph.states}
    defined.update(name for name, tensor in graph.tensors.items() if tensor.data is not None)
    for node in graph.nodes:
        for name in node.inputs:
            assert name in defined, f"{node.name}: reads {name} before it is computed"
        for name in node.outputs:
            assert name in graph.tensors, f"{node.name}: result {name} has no tensor"
            assert name not in defined, f"{node.name}: computes {name} twice"
            defined.add(name)
        if graph.stage != Stage.FLOAT:
            assert node.op in CANONICAL_OPS, f"{node.name}: {node.op} is not canonical"
        if graph.stage == Stage.FIXED:
            _verify_fixed(graph, node)
    for name in graph.outputs:
        assert name in defined, f"graph result {name} is never computed"
    for name, state in graph.states.items():
        assert state.result in defined, f"state {name}: its next value is never computed"
        assert graph.tensor(name).data is None, f"state {name} is taken for a constant"
        assert state.initial.shape == graph.tensor(name).shape, f"state {name}: another shape"
    for tensor in graph.tensors.values():
        if tensor.data is not None:
            assert tensor.data.shape == tensor.shape, f"{tensor.name}: data has another shape"


_REQUANTS = {
    **dict.fromkeys(("conv", "linear", "mul"), Requant | TfliteRequant),
    **dict.fromkeys(("add", "sub"), AddRequant | TfliteAddRequant),
    "avg_pool": Requant | TfliteAverage,
    "box": Requant,
}


def _verify_fixed(graph: Graph, node: Node) -> None:
    for name in (*node.inputs, *node.outputs):
        tensor = graph.tensor(name)
        assert tensor.qtype is not None, f"{name}: no QType in a fixed graph"
        if tensor.data is not None:
            assert np.issubdtype(tensor.data.dtype, np.integer), f"{name}: constant is not integer"
    if node.op in _REQUANTS:
        kind = _REQUANTS[node.op]
        assert isinstance(node.attrs.get("requant"), kind), f"{node.name}: no requant"
    if node.op in ONE_FORMAT_OPS:
        formats = {graph.tensor(name).qtype for name in (*node.inputs, *node.outputs)}
        assert len(formats) == 1, f"{node.name}: operands have {len(formats)} formats"
    if node.op in TABLE_OPS or node.op == "softmax":
        table = node.attrs.get("table")
        source = graph.tensor(node.inputs[0]).qtype
        assert source is not None
        assert isinstance(table, np.ndarray), f"{node.name}: no table"
        if node.op in EXACT_TABLE_OPS:
            assert source.bits <= TABLE_BITS, f"{node.name}: {source.bits} bits"
        size = (table_size(source.bits),)
        assert table.shape == size, f"{node.name}: table of {table.shape} entries"
