"""Turn sums of products of two tensors into products of matrices."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

from nnef_hw.ir import Graph, Node
from nnef_hw.passes.rewriting.editor import Editor, Step, emit_steps
from nnef_hw.passes.rewriting.rewrite import Pass

__all__ = ["LowerEinsum"]


@dataclass(frozen=True, slots=True)
class LowerEinsum(Pass):
    """Rewrite ``einsum`` of two tensors.

    * letters of both and of the result count matrices, those of both alone are summed over, those
      of one are its rows or columns -> a ``matmul`` between transposes and reshapes
    * letters of one alone whose extent is 1 -> a reshape without them

    Left alone: other numbers of tensors; letters that occur twice in one, that only one has and not
    the result though there is more than one element, or whose extents differ.
    """

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            if node.op != "einsum" or not _lower(editor, node):
                editor.keep(node)
        return editor.finish()


def _lower(editor: Editor, node: Node) -> bool:
    left, _, result = node.attrs["expr"].replace(" ", "").partition("->")
    terms = left.split(",")
    node, terms = _without_ones(editor, node, terms, result)
    if len(terms) != len(_KINDS) or any(len({*term}) != len(term) for term in terms):
        return False
    shapes = [editor.shape(name) for name in node.inputs]
    extents: dict[str, int] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for letter, extent in zip(term, shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                return False
    first, second = terms
    several = [x for x in result if x in first and x in second]
    summed = [x for x in first if x in second and x not in result]
    rows = [x for x in result if x not in second]
    columns = [x for x in result if x not in first]
    if {*several, *summed, *rows, *columns} != extents.keys():
        return False
    count, inner, height, width = (
        prod(extents[x] for x in letters) for letters in (several, summed, rows, columns)
    )
    operands = [
        _matrices(editor, node, place, [terms[place].index(x) for x in order], shape)
        for place, order, shape in (
            (0, [*several, *rows, *summed], (count, height, inner)),
            (1, [*several, *summed, *columns], (count, inner, width)),
        )
    ]
    like = editor.tensors[node.name]
    product = editor.activation(f"{node.name}_product", (count, height, width), like)
    attrs = {"transposeA": False, "transposeB": False}
    editor.emit(Node("matmul", tuple(operands), (product,), attrs, node.location))
    order = [*several, *rows, *columns]
    shape = tuple(extents[x] for x in order)
    axes = [order.index(x) for x in result]
    steps: list[Step] = [("reshape", shape, {}), ("transpose", like.shape, {"axes": axes})]
    last = emit_steps(editor, node, product, f"{node.name}_sums", steps)
    editor.emit(Node("copy", (last,), node.outputs, {}, node.location))
    return True


def _without_ones(
    editor: Editor, node: Node, terms: list[str], result: str
) -> tuple[Node, list[str]]:
    """Reshape operands so that they lack letters of extent 1 that nothing else has."""
    inputs, kept = [], []
    for place, (name, term) in enumerate(zip(node.inputs, terms, strict=True)):
        others = result + "".join(terms[:place] + terms[place + 1 :])
        extents = list(zip(term, editor.shape(name), strict=True))
        left = [(x, extent) for x, extent in extents if extent > 1 or x in others]
        if len(left) < len(extents):
            shape = tuple(extent for _, extent in left)
            name = emit_steps(editor, node, name, f"{node.name}_operand", [("reshape", shape, {})])
        inputs.append(name)
        kept.append("".join(x for x, _ in left))
    return replace(node, inputs=tuple(inputs)), kept


_KINDS = ("rows", "columns")


def _matrices(
    editor: Editor, node: Node, place: int, axes: list[int], shape: tuple[int, int, int]
) -> str:
    name = node.inputs[place]
    like = editor.tensors[editor.resolve(name)]
    hint = f"{node.name}_{_KINDS[place]}"
    if like.data is not None:
        return editor.rearranged(hint, like, lambda data: data.transpose(axes).reshape(shape))
    moved = tuple(like.shape[axis] for axis in axes)
    steps: list[Step] = [("transpose", moved, {"axes": axes}), ("reshape", shape, {})]
    return emit_steps(editor, node, name, hint, steps)
