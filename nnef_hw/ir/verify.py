"""Conditions for a graph at each stage; our own passes are checked with them.

Stages and the attributes they add:

* ``float``: any NNEF operator, attributes complete.
* ``canonical``: operators of :mod:`nnef_hw.ir.operators` only, with the attributes that these name.
  ``activation`` is None, ``"relu"`` or ``"clamp"`` (then ``a`` and ``b`` are its limits); ``add``
  and ``sub`` carry it if it is not None. A ``linear`` behind a flatten is a ``conv`` whose filter
  covers the whole image, followed by a ``reshape`` of a [1, C, 1, 1] tensor. Operands of arithmetic
  are two activations of one shape, or one and a constant with one value, or one for each channel or
  each element. A ``slice`` is along one axis, with ``0 <= begin < end``; a ``pad`` is one of rows
  and columns with one value; a ``transpose`` is one of an image.
* ``fixed``: every activation has a QType; constants are integer codes. ``conv``, ``linear``,
  ``avg_pool``, ``box`` and ``mul`` carry ``requant``
  (:class:`~nnef_hw.arithmetic.numerics.Requant`), ``normalize`` a
  :class:`~nnef_hw.arithmetic.normalization.NormalizeRequant`, ``integer_normalize`` an
  :class:`~nnef_hw.arithmetic.integer_functions.IntegerNormalizeRequant`, ``add`` and ``sub`` an
  :class:`~nnef_hw.arithmetic.numerics.AddRequant` under that name, or their counterparts of
  :mod:`nnef_hw.arithmetic.tflite.numerics`; table operators carry ``table`` (int64 array,
  :mod:`nnef_hw.arithmetic.tables`), ``softmax`` and ``integer_softmax`` too (indexed by ``max -
  code``). Operands and
  result of ``max``, ``min`` and ``concat`` have one QType. A state, in whose ``initial`` are codes,
  and its next value have one QType. A filter keeps shape [outC, inC, ...], a bias has shape [1,
  outC] in int32 codes at ``scale_in * scale_w[c]`` without any zero point folded in.
"""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.tables import TABLE_BITS, table_size
from nnef_hw.ir.graph import Graph, Node, Stage
from nnef_hw.ir.operators import Attributes, CanonicalOperator, Trait

__all__ = ["verify"]


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
            operator = node.operator
            assert isinstance(operator, CanonicalOperator), f"{node.name}: {node.op} not canonical"
            missing = operator.attributes - node.attrs.keys()
            assert not missing, f"{node.name}: no attribute {sorted(missing)}"
            if operator.parsed is not None:
                _verify_attributes(node, operator.parsed)
            if graph.stage == Stage.FIXED:
                _verify_fixed(graph, node, operator)
    for name in graph.outputs:
        assert name in defined, f"graph result {name} is never computed"
    for name, state in graph.states.items():
        assert state.result in defined, f"state {name}: its next value is never computed"
        assert graph.tensor(name).data is None, f"state {name} is taken for a constant"
        shapes = {state.initial.shape, graph.tensor(name).shape, graph.tensor(state.result).shape}
        assert len(shapes) == 1, f"state {name}: it has several shapes"
        if graph.stage == Stage.FIXED:
            formats = {graph.tensor(tensor).qtype for tensor in (name, state.result)}
            assert len(formats) == 1, f"state {name}: its next value has another format"
            assert np.issubdtype(state.initial.dtype, np.integer), f"state {name}: no codes"
    for name, rows in graph.rows.items():
        extent = graph.tensor(name).shape[rows.axis]
        assert extent == rows.rows, f"input {name}: a step of it has {extent} rows"
    for name, scales in graph.features.items():
        extent = graph.tensor(name).shape[scales.axis]
        assert extent == len(scales.scale), f"input {name}: it has {extent} features"
        assert graph.stage == Stage.FIXED, f"input {name}: only codes have scales"
    for tensor in graph.tensors.values():
        if tensor.data is not None:
            assert tensor.data.shape == tensor.shape, f"{tensor.name}: data has another shape"


def _verify_attributes(node: Node, kind: type[Attributes]) -> None:
    try:
        node.attributes(kind)
    except AssertionError as error:
        raise AssertionError(f"{node.name}: {error}") from error


def _verify_fixed(graph: Graph, node: Node, operator: CanonicalOperator) -> None:
    for name in (*node.inputs, *node.outputs):
        tensor = graph.tensor(name)
        assert tensor.qtype is not None, f"{name}: no QType in a fixed graph"
        if tensor.data is not None:
            assert np.issubdtype(tensor.data.dtype, np.integer), f"{name}: constant is not integer"
    if operator.requant is not None:
        assert isinstance(node.attrs.get("requant"), operator.requant), f"{node.name}: no requant"
    if operator.has(Trait.ONE_FORMAT):
        formats = {graph.tensor(name).qtype for name in (*node.numbers, *node.outputs)}
        assert len(formats) == 1, f"{node.name}: operands have {len(formats)} formats"
    if operator.has(Trait.TABLE) or operator.has(Trait.EXACT_TABLE):
        table = node.attrs.get("table")
        source = graph.tensor(node.inputs[0]).qtype
        assert source is not None
        assert isinstance(table, np.ndarray), f"{node.name}: no table"
        if operator.has(Trait.EXACT_TABLE):
            assert source.bits <= TABLE_BITS, f"{node.name}: {source.bits} bits"
        sizes = {(table_size(source.bits),), (1 << source.bits,)}
        assert table.shape in sizes, f"{node.name}: table of {table.shape} entries"
