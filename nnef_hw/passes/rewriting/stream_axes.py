"""Places of a tensor's axes in the stream that the tensor is made of."""

from __future__ import annotations

from nnef_hw.ir import Trait
from nnef_hw.passes.rewriting.editor import Editor
from nnef_hw.passes.rewriting.views import is_image

__all__ = ["axes_before"]

Shape = tuple[int, ...]


def axes_before(editor: Editor, name: str, rank: int) -> list[int] | None:
    """Return where each axis of a tensor is in the stream that is transposed to it, if one is.

    Functions of elements, and of all channels of a pixel, leave the order as it is, and so do
    reshapes that add or remove axes of extent 1, which have no place.
    """
    missing = rank - len(editor.shape(name))
    places = [*[-1] * missing, *range(rank - missing)]
    traits = Trait.MOVES, Trait.TABLE, Trait.ELEMENTWISE, Trait.ALONG_CHANNELS
    is_moved = False
    while node := editor.emitted(editor.resolve(name)):
        [source, *others] = [x for x in node.numbers if editor.data(x) is None]
        if others or not any(map(node.has, traits)):
            break
        if node.op == "transpose":
            is_moved, axes = True, node.attrs["axes"]
            places = [axes[place] if place >= 0 else -1 for place in places]
        elif node.has(Trait.RESHAPES):
            before, behind = (_several(editor.shape(x)) for x in (source, node.name))
            if [*before.values()] != [*behind.values()]:
                break
            moves = dict(zip(behind, before, strict=True))
            places = [moves.get(place, -1) for place in places]
        name = source
    if node is not None and not node.has(Trait.MOVES) and is_image(editor.shape(name)):
        # a layer gives the channels of each pixel
        places = [len(editor.shape(name)) if place == 1 else place for place in places]
    return places if is_moved else None


def _several(shape: Shape) -> dict[int, int]:
    """Return the extents of the axes along which there are several elements."""
    return {axis: extent for axis, extent in enumerate(shape) if extent > 1}
