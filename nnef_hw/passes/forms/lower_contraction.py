"""Compute products of two computed matrices as layers: rows by matrices that a stream writes."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from nnef_hw.ir import Graph, Node, Trait
from nnef_hw.passes.forms.lower_bias import LowerBias
from nnef_hw.passes.forms.lower_matmul import LowerMatmul
from nnef_hw.passes.rewriting.editor import Editor, reshape_node
from nnef_hw.passes.rewriting.rewrite import Pass, Reasons
from nnef_hw.passes.rewriting.stream_axes import axes_before
from nnef_hw.passes.rewriting.views import View

__all__ = ["LowerContraction"]

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LowerContraction(Pass):
    """Rewrite ``matmul`` of [..., M, K] and [..., K, N] that are both computed.

    * a ``contraction`` of images between transposes: the first has K channels and a pixel for each
      row, the second's channels are that axis of the matrices which comes last in its stream

    Where layers give the rows of all heads before those of the next token, the product takes them
    so, and gives its rows likewise: moves that split heads and join them leave streams as they are.
    Else it takes all rows of a matrix, then those of the next. All matrices of a cache are one set:
    they are there when the first row comes.

    Left alone: products with a constant, which are :class:`.LowerMatmul`'s.
    """

    after: ClassVar[Reasons] = {
        LowerBias: (
            "The product that LowerBias makes of a linear is one of the same round; a round later "
            "its bias is no longer beside it."
        ),
        LowerMatmul: (
            "A product with one constant matrix is a layer; LowerContraction takes what is left."
        ),
    }

    def __call__(self, graph: Graph) -> Graph:
        """Return the rewritten graph."""
        editor = Editor(graph)
        for node in graph.nodes:
            is_computed = all(editor.data(name) is None for name in node.inputs)
            ranks = [len(editor.shape(name)) for name in node.inputs]
            if node.op == "matmul" and is_computed and min(ranks) >= 2:
                _emit(editor, node, _Product.of(editor, node))
            else:
                editor.keep(node)
        return editor.finish()


@dataclass(frozen=True, slots=True)
class _Product:
    """A product with result [..., M, N], and which of its leading axes count what.

    Parameters
    ----------
    shapes
        Of both operands, with as many axes as the result.
    of_rows, of_columns
        Axis of M of the first operand, and of N of the second; the other one of its last two is K.
    """

    result: Shape
    shapes: tuple[Shape, Shape]
    of_rows: int
    of_columns: int

    @classmethod
    def of(cls, editor: Editor, node: Node) -> _Product:
        """Return the product that a node is."""
        result = editor.shape(node.name)
        rank = len(result)
        first, second = ((1,) * (rank - len(x)) + x for x in map(editor.shape, node.inputs))
        of_rows = rank - 1 if node.attrs.get("transposeA", False) else rank - 2
        of_columns = rank - 2 if node.attrs.get("transposeB", False) else rank - 1
        return cls(result, (first, second), of_rows, of_columns)

    @property
    def rank(self) -> int:
        return len(self.result)

    def leading(self, *, first: bool, second: bool) -> list[int]:
        """Return the leading axes along which there are several of just these operands."""
        wanted = first, second
        return [
            axis
            for axis in range(self.rank - 2)
            if tuple(shape[axis] > 1 for shape in self.shapes) == wanted
        ]

    @property
    def matrices(self) -> list[int]:
        """Axes that count matrices, each for rows of its own."""
        return self.leading(first=True, second=True)

    @property
    def columns(self) -> list[int]:
        """Axes of the second operand that are columns: every row is multiplied by all of them."""
        return [*self.leading(first=False, second=True), self.of_columns]

    def sequence(self, *, by_token: bool) -> list[int]:
        """Return the axes of the first operand's rows as they stream, outermost first.

        If ``by_token`` the rows of all matrices come by turns; axes that count these are
        neighbours.
        """
        rows, matrices = self.leading(first=True, second=False), self.matrices
        if not by_token:
            return [*matrices, *rows, self.of_rows]
        both = sorted(rows + matrices)
        places = [both.index(axis) for axis in matrices]
        are_neighbours = places == list(range(places[0], places[-1] + 1))
        return [self.of_rows, *(both if are_neighbours else rows + matrices)]


def _emit(editor: Editor, node: Node, product: _Product) -> None:
    first, second = product.shapes
    matrices, result = product.matrices, product.result
    by_token = _comes_by_token(editor, node, product)
    sequence = product.sequence(by_token=by_token)
    extents = [first[axis] for axis in sequence]
    place = sequence.index(product.of_rows) if by_token or not matrices else len(sequence) - 2
    height = prod(extents[: place + 1])
    pixels = height, prod(extents) // height
    of_inner = 2 * product.rank - 3 - product.of_rows
    x = View(
        (*_rest(product.rank, of_inner, *sequence), of_inner, *sequence),
        (1, first[of_inner], *pixels),
    )

    of_sums = 2 * product.rank - 3 - product.of_columns
    in_one_set = by_token or _is_cache(editor, node.inputs[1])
    sets = [] if in_one_set else matrices
    parts = {"m": matrices if in_one_set else [], "k": [of_sums], "n": product.columns}
    order = sorted(parts, key=_places(editor, node.inputs[1], product.rank, parts).__getitem__)
    outer, middle, inner = (parts[letter] for letter in order)
    volumes = [prod(second[axis] for axis in axes) for axes in (outer, middle, inner, sets)]
    w = View(
        (*_rest(product.rank, *inner, *sets, *outer, *middle), *inner, *sets, *outer, *middle),
        (1, volumes[2], volumes[3] * volumes[0], volumes[1]),
    )

    behind = sequence[sequence.index(matrices[-1]) + 1 :] if matrices and in_one_set else []
    count = prod(first[axis] for axis in matrices)
    attrs = {
        "sets": 1 if in_one_set else count,
        "matrices": count if in_one_set else 1,
        "repeats": prod(first[axis] for axis in behind),
        "order": "".join(order),
        "scale": 1.0,
        "offset": 0.0,
    }
    columns = [*product.columns[:-1], product.rank - 1]
    rows = [product.rank - 2 if axis == product.of_rows else axis for axis in sequence]
    y = View(
        (*_rest(product.rank, *columns, *rows), *columns, *rows),
        (1, prod(result[axis] for axis in columns), *pixels),
    )
    operands = tuple(
        view.enter(editor, node, _whole(editor, node, name, shape), f"{node.name}_{what}")
        for name, shape, view, what in zip(
            node.inputs, product.shapes, (x, w), ("rows", "matrices"), strict=True
        )
    )
    sums = editor.activation(f"{node.name}_product", y.shape, editor.tensors[node.name])
    editor.emit(Node("contraction", operands, (sums,), attrs, node.location))
    y.leave(editor, node, sums, node.name)


def _rest(rank: int, *axes: int) -> list[int]:
    """Return the axes that are none of these: their extent is 1."""
    return [axis for axis in range(rank) if axis not in axes]


def _whole(editor: Editor, node: Node, name: str, shape: Shape) -> str:
    """Return an operand with as many axes as the result."""
    if editor.shape(name) == shape:
        return name
    whole = editor.activation(f"{node.name}_whole", shape, editor.tensors[editor.resolve(name)])
    editor.emit(reshape_node(name, whole, shape, node))
    return whole


def _comes_by_token(editor: Editor, node: Node, product: _Product) -> bool:
    """Whether rows of all matrices come by turns in what the first operand is made of."""
    source = axes_before(editor, node.inputs[0], product.rank)
    if source is None or not product.matrices:
        return False
    return source[product.of_rows] < min(source[axis] for axis in product.matrices)


def _is_cache(editor: Editor, name: str) -> bool:
    """Whether a tensor is a cache of which a row was written, perhaps moved."""
    node = editor.emitted(editor.resolve(name))
    while node is not None and node.has(Trait.MOVES):
        node = editor.emitted(editor.resolve(node.inputs[0]))
    return node is not None and node.op == "write_row"


def _places(
    editor: Editor, name: str, rank: int, parts: dict[str, list[int]]
) -> dict[str, tuple[int, str]]:
    """Return by letter where its axes come in the stream of the second operand."""
    source = axes_before(editor, name, rank) or [*range(rank)]
    return {
        letter: (min((source[axis] for axis in axes), default=-1), letter)
        for letter, axes in parts.items()
    }
