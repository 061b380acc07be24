"""Turn static quantization operators into properties of tensors, each where it is computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from nnef_hw.arithmetic.softmax import SOFTMAX_QTYPE
from nnef_hw.ir import Graph, Node, Quantization, Trait
from nnef_hw.ir.quantization import same_quantization
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.structure.fold_constants import FoldConstants
from nnef_hw.reference.real.quantize import code_range, fake_quantize

__all__ = ["AbsorbQuantize"]

_TENSOR_ARGUMENTS = {
    "linear_quantize": ("min", "max"),
    "logarithmic_quantize": ("max",),
    "min_max_linear_quantize": ("min", "max"),
    "zero_point_linear_quantize": ("zero_point", "scale"),
}


@dataclass(frozen=True, slots=True)
class AbsorbQuantize(Pass):
    """Leave quantizations on graph inputs, constants and results of operators that compute.

    * a quantization operator with constant arguments -> the ``quant`` of its result, on a ``copy``
    * the ``quant`` of a ``copy`` or of an operator that only moves values -> that of the tensor
      before it, if nobody else reads this one; nothing, if it has the same already
    * a second quantization of quantized values, or of ``softmax``, whose format the hardware
      fixes -> a ``requantize`` of its own
    * a quantized constant -> its rounded values

    Left alone: quantization by ranges that are computed.
    """

    before: ClassVar[Reasons] = {
        FoldConstants: "A quantized constant is rounded before anything is computed from it.",
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            result = node.outputs[0]
            quant = editor.tensors[result].quant
            if node.op in _TENSOR_ARGUMENTS:
                static = _static(editor, node)
                if static is None or not (quant is None or same_quantization(quant, static)):
                    editor.keep(node)
                    continue
                node = Node("copy", node.inputs[:1], node.outputs, {}, node.location)
                editor.changed = True
                quant = static
            if quant is not None and node.op == "softmax":
                self._softmax(editor, node, quant)
            elif quant is not None and node.has(Trait.KEEPS_FORMAT):
                self._moved(editor, node, quant)
            else:
                editor.keep(node)
        return editor.finish()

    @staticmethod
    def _softmax(editor: Editor, node: Node, quant: Quantization) -> None:
        if _is_softmax_format(quant):
            _set(editor, node.name, None)
            editor.keep(node)
        else:
            _requantize(editor, node, quant)

    @staticmethod
    def _moved(editor: Editor, node: Node, quant: Quantization) -> None:
        source = editor.resolve(node.inputs[0])
        tensor = editor.tensors[source]
        if tensor.data is not None and node.op == "copy" and node.name not in editor.graph.outputs:
            data = fake_quantize(tensor.data, quant)
            result = editor.tensors[node.name]
            editor.tensors[node.name] = replace(result, data=data, quant=quant, label=tensor.label)
            editor.changed = True
            return
        effective = _effective(editor, source)
        origin = _origin(editor, source) if effective is None and node.op != "pad" else None
        if origin is not None:
            _set(editor, origin, quant)
        elif not same_quantization(effective, quant) or not _pads_with_a_value(node, quant):
            _requantize(editor, node, quant)
            return
        _set(editor, node.name, None)
        editor.keep(node)


def _static(editor: Editor, node: Node) -> Quantization | None:
    """Return the quantization of an operator with constant arguments; None if they are computed."""
    args = dict(node.attrs)
    for key, name in zip(_TENSOR_ARGUMENTS[node.op], node.inputs[1:], strict=True):
        data = editor.data(name)
        if data is None:
            return None
        args[key] = data.reshape(-1)[0].item() if data.size == 1 else data
    return Quantization(node.op, args)


def _effective(editor: Editor, name: str) -> Quantization | None:
    """Return the quantization that a tensor's values have, from where they come."""
    quant, node = editor.tensors[name].quant, editor.emitted(name)
    while quant is None and node is not None and node.has(Trait.KEEPS_FORMAT):
        name = node.inputs[0]
        quant, node = editor.tensors[name].quant, editor.emitted(name)
    return quant


def _origin(editor: Editor, name: str) -> str | None:
    """Return the tensor that can be quantized in place of this one, None if others read it."""
    states = editor.graph.states
    kept = {*states, *(state.result for state in states.values())}
    while name not in kept and editor.has_one_use(name) and editor.tensors[name].data is None:
        node = editor.emitted(name)
        if node is None or not node.has(Trait.KEEPS_FORMAT):
            return None if node is not None and node.op == "softmax" else name
        if node.op == "pad":  # the number it pads with need not be one of the values
            return None
        name = node.inputs[0]
    return None


def _pads_with_a_value(node: Node, quant: Quantization) -> bool:
    """Whether a ``pad`` adds nothing but values that the quantization has."""
    value = node.attrs.get("value", 0.0)
    return node.op != "pad" or bool(np.all(fake_quantize(value, quant) == value))


def _requantize(editor: Editor, node: Node, quant: Quantization) -> None:
    """Compute a node without the quantization of its result, and this one behind it."""
    like = replace(editor.tensors[node.name], quant=None)
    source = editor.resolve(node.inputs[0])
    if node.op != "copy":
        source = editor.activation(f"{node.name}_unquantized", like.shape, like)
        editor.emit(replace(node, outputs=(source,)))
    _set(editor, node.name, quant)
    editor.emit(Node("requantize", (source,), (node.name,), {}, node.location))


def _set(editor: Editor, name: str, quant: Quantization | None) -> None:
    editor.tensors[name] = replace(editor.tensors[name], quant=quant)
    editor.changed = True


def _is_softmax_format(quant: Quantization) -> bool:
    """Whether the values are those of the format that softmax has in hardware."""
    if quant.op != "zero_point_linear_quantize" or np.size(quant.args["scale"]) != 1:
        return False
    lo, hi = code_range(quant)
    steps = (quant.args["scale"], lo - quant.args["zero_point"], hi - lo)
    return steps == (SOFTMAX_QTYPE.scale, 0, SOFTMAX_QTYPE.hi - SOFTMAX_QTYPE.lo)
