"""Move pads behind transposes, towards the windows that they are for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor, is_trivial
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["SinkPad"]

Place = int | None


@dataclass(frozen=True, slots=True)
class SinkPad(Pass):
    """Rewrite a ``pad`` of channels that are rows behind the one move that reads it.

    Then it is the result of a ``transpose``, or of a ``reshape`` that adds, removes and moves axes
    of extent 1, that is padded: an image with the channels last, whose rows and columns are.

    Left alone: pads with other readers, and other moves.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            pad = editor.emitted(node.inputs[0]) if node.inputs else None
            if pad is None or pad.op != "pad" or not editor.has_one_use(pad.name):
                editor.keep(node)
                continue
            places = _places(graph, node, pad)
            if places is None or not _is_better(pad, places):
                editor.keep(node)
                continue
            editor.drop(pad)
            source = editor.tensors[pad.inputs[0]]
            shape = tuple(1 if place is None else source.shape[place] for place in places)
            name = editor.activation(f"{node.name}_unpadded", shape, source)
            move = replace(node, inputs=(source.name,), outputs=(name,))
            if node.op == "reshape":
                move = move.with_attrs(shape=list(shape))
            pad = pad.with_attrs(padding=_padding(pad, places))
            editor.emit(move, replace(pad, inputs=(name,), outputs=node.outputs))
        return editor.finish()


def _places(graph: Graph, node: Node, pad: Node) -> list[Place] | None:
    """Return which axis of a padded tensor becomes which of a move's result, None of a new one.

    None for other operators, and for a reshape that does not leave the axes as they are.
    """
    if node.op == "transpose":
        return [*node.attrs["axes"]]
    before, after = graph.tensor(pad.name).shape, graph.tensor(node.name).shape
    kept = [axis for axis, extent in enumerate(before) if extent != 1]
    if node.op != "reshape" or [before[n] for n in kept] != [n for n in after if n != 1]:
        return None
    remaining = iter(kept)
    return [None if extent == 1 else next(remaining) for extent in after]


def _padding(pad: Node, places: Sequence[Place]) -> list[tuple[int, int]]:
    """Return the padding of a move's result."""
    return [(0, 0) if n is None else tuple(pad.attrs["padding"][n]) for n in places]


def _is_better(pad: Node, places: Sequence[Place]) -> bool:
    """Whether channels are padded now, and nothing but rows and columns will be."""
    padded = [n for n, pair in enumerate(pad.attrs["padding"]) if any(pair)]
    after = [n for n in places if n in padded]
    is_of_pixels = len(places) in {3, 4} and is_trivial(_padding(pad, places)[:2], (0, 0))
    return 1 in padded and sorted(filter(None, after)) == padded and is_of_pixels
