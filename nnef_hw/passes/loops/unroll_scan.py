"""Unroll loops into straight-line graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node, Tensor
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["UnrollScan"]


@dataclass(frozen=True, slots=True)
class UnrollScan(Pass):
    """Replace every ``scan`` by one copy of its body for each iteration.

    Those of more iterations than ``longest`` are left alone, if it is given. Scanned inputs are
    split along their axis, ``full`` results concatenated. All copies share the constants of the
    body. Loops in the body are unrolled as well.
    """

    longest: int | None = None

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op == "scan" and self._is_short(graph, node):
                _Loop(editor, node, self(node.attrs["body"])).unroll()
            elif node.op == "scan" and (body := self(node.attrs["body"])) is not node.attrs["body"]:
                editor.emit(node.with_attrs(body=body))
            else:
                editor.keep(node)
        return editor.finish()

    def _is_short(self, graph: Graph, node: Node) -> bool:
        return self.longest is None or _iterations(graph, node) <= self.longest


def _iterations(graph: Graph, node: Node) -> int:
    axis, step = node.attrs["scans"][0]
    return int(graph.tensor(node.inputs[0]).shape[axis]) // abs(int(step))


class _Loop:
    def __init__(self, editor: Editor, node: Node, body: Graph) -> None:
        self._editor, self._node, self._body = editor, node, body
        scans = node.attrs["scans"]
        ends = (len(scans), len(scans) + node.attrs["full"])
        self._scanned, self._full, self._initial = (
            list(zip(body.inputs, node.inputs, strict=True))[start:end]
            for start, end in ((0, ends[0]), ends, (ends[1], None))
        )
        self._iterations = _iterations(editor.graph, node)

    def unroll(self) -> None:
        shared = {
            name: self._editor.add(f"{self._node.name}_{name}", tensor)
            for name, tensor in self._body.tensors.items()
            if tensor.data is not None
        }
        shared.update(self._full)
        slices = {
            name: self._slices(source, axis, step)
            for (name, source), (axis, step) in zip(
                self._scanned, self._node.attrs["scans"], strict=True
            )
        }
        states = dict(self._initial)
        history: list[dict[str, str]] = []
        for index in range(self._iterations):
            parts = {name: pieces[index] for name, pieces in slices.items()}
            values = self._iteration(index, {**shared, **parts, **states})
            history.append(values)
            results = self._node.attrs["states"]
            states = {name: values[r] for name, r in zip(states, results, strict=True)}
        for name, (source, kind, axis, step) in zip(
            self._node.outputs, self._node.attrs["outputs"], strict=True
        ):
            parts_of = [values[source] for values in history]
            if kind == "last" or len(parts_of) == 1:
                self._emit("copy", parts_of[-1:], name)
            else:
                self._emit("concat", parts_of if step > 0 else parts_of[::-1], name, axis=axis)

    def _slices(self, source: str, axis: int, step: int) -> list[str]:
        """Return the pieces of a scanned input in the order of the iterations."""
        count = self._iterations
        if count == 1:
            return [source]
        whole = self._editor.graph.tensor(source)
        shape = list(whole.shape)
        shape[axis] = abs(step)
        piece = replace(whole, shape=tuple(shape), data=None, label=None)
        pieces = [self._editor.add(f"{source}_{index}", piece) for index in range(count)]
        self._emit("split", [source], *pieces, axis=axis, ratios=[1] * count)
        return pieces if step > 0 else pieces[::-1]

    def _iteration(self, index: int, values: dict[str, str]) -> dict[str, str]:
        """Emit a copy of the body; return what its tensors are called in it."""
        for node in self._body.nodes:
            inputs = tuple(values[name] for name in node.inputs)
            for name in node.outputs:
                tensor: Tensor = self._body.tensor(name)
                values[name] = self._editor.add(f"{self._node.name}_{name}_{index}", tensor)
            outputs = tuple(values[name] for name in node.outputs)
            self._editor.emit(replace(node, inputs=inputs, outputs=outputs))
        return values

    def _emit(self, op: str, inputs: list[str], *outputs: str, **attrs: object) -> None:
        self._editor.emit(Node(op, tuple(inputs), outputs, attrs, self._node.location))
