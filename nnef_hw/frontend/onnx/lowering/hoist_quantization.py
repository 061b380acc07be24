"""Quantizations of copies go to the tensors that are copied, where nothing else reads these."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from nnef_hw.ir import Graph, Node
from nnef_hw.ir.quantization import same_quantization

__all__ = ["hoist_quantization"]


def hoist_quantization(graph: Graph) -> Graph:
    """Return a graph in which tensors are quantized where they are computed.

    * copies, all in one quantization, of a tensor that nothing else reads -> that tensor, quantized
    * a copy of a tensor that is quantized in the same way -> that tensor
    * several copies of a tensor in one quantization -> the first of them

    Left alone: one copy in each quantization of a tensor that is read in several, or unquantized.
    """
    attacher = _Attacher(graph)
    return attacher.run() if attacher.copies else graph


class _Attacher:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._tensors = dict(graph.tensors)
        self._sources: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._uses = Counter(graph.outputs)
        self.copies: dict[str, list[str]] = {}
        """Results of quantizing copies, by the tensor that they copy."""
        for node in graph.nodes:
            self._uses.update(node.inputs)
            if self._is_quantizing(node):
                self.copies.setdefault(node.inputs[0], []).append(node.name)

    def run(self) -> Graph:
        nodes: list[Node] = []
        for name in self._graph.inputs:
            self._attach(name)
        for node in self._graph.nodes:
            if self._is_quantizing(node) and self._drop(node):
                continue
            for name in node.outputs:
                self._attach(name)
            nodes.append(node)
        tensors = {
            self._name(name): replace(tensor, name=self._name(name))
            for name, tensor in self._tensors.items()
            if name not in self._sources
        }
        named = [
            replace(
                node,
                inputs=tuple(map(self._name, node.inputs)),
                outputs=tuple(map(self._name, node.outputs)),
            )
            for node in nodes
        ]
        return self._graph.replaced(nodes=tuple(named), tensors=tensors)

    def _is_quantizing(self, node: Node) -> bool:
        return node.op == "copy" and self._tensors[node.name].quant is not None

    def _attach(self, name: str) -> None:
        """Quantize a tensor as all of its readers do."""
        copies, tensor = self.copies.get(name, []), self._tensors[name]
        if not copies or tensor.quant is not None or len(copies) != self._uses[name]:
            return
        quant = self._tensors[copies[0]].quant
        if all(same_quantization(self._tensors[copy].quant, quant) for copy in copies):
            self._tensors[name] = replace(tensor, quant=quant)

    def _drop(self, node: Node) -> bool:
        """Put a tensor of the same values in a copy's place, if there is one."""
        source = self._source(node.inputs[0])
        others = self.copies[node.inputs[0]]
        earlier = [self._source(name) for name in others[: others.index(node.name)]]
        quant = self._tensors[node.name].quant
        for same in (source, *earlier):
            if not same_quantization(self._tensors[same].quant, quant):
                continue
            if node.name in self._graph.outputs:
                if same in {*self._graph.inputs, *self._graph.outputs, *self._names}:
                    return False
                self._names[same] = node.name
            self._sources[node.name] = same
            return True
        return False

    def _source(self, name: str) -> str:
        return self._sources.get(name, name)

    def _name(self, name: str) -> str:
        source = self._source(name)
        return self._names.get(source, source)
