"""Shapes of a model's inputs, symbols replaced by numbers."""

from __future__ import annotations

from collections.abc import Mapping

from nnef_hw.errors import Location, ModelError, UnsupportedError, UsageError
from nnef_hw.frontend.building.model_file import MAX_VOLUME
from nnef_hw.frontend.onnx.file.model import ElementType, OnnxInput, OnnxModel
from nnef_hw.frontend.onnx.file.tensors import is_possible

__all__ = ["Symbols", "declared_shapes"]


class Symbols:
    """The extents that the shapes of a model's inputs leave open, or that a user wants otherwise.

    A symbol, or an unnamed extent, that is nothing but the first of inputs is the batch: 1 if
    nothing else is said. Unnamed ones are called after their input: ``x.2`` is dimension 2 of x.
    So are those that the file fixes, which another number may replace.

    Raises
    ------
    UsageError
        If a value is given for something that the model does not have.
    """

    def __init__(self, model: OnnxModel, dims: Mapping[str, int]) -> None:
        self._location = Location(model.path)
        self._inputs = {
            item.name: item
            for item in model.graph.inputs
            if item.name not in model.graph.initializers
        }
        self._values = dict(dims)
        places: dict[str, set[int]] = {}
        for item in self._inputs.values():
            for axis, extent in enumerate(item.shape or ()):
                if not isinstance(extent, int):
                    places.setdefault(_symbol(item, axis), set()).add(axis)
        fixed = [
            f"{item.name}.{axis}"
            for item in self._inputs.values()
            for axis, extent in enumerate(item.shape or ())
            if isinstance(extent, int)
        ]
        for name in sorted(dims.keys() - places.keys() - set(fixed)):
            names = ", ".join(sorted(places)) or "none"
            raise UsageError(
                f"{model.path}: no input's shape has a symbol {name!r}",
                remedy=f"the symbols are {names}; extents that are numbers are "
                f"{', '.join(fixed) or 'none'}",
            )
        for name, axes in places.items():
            if axes == {0}:
                self._values.setdefault(name, 1)

    def resolve(self, name: str) -> tuple[ElementType, tuple[int, ...]]:
        """Return the type and the shape of an input.

        Raises
        ------
        UsageError
            If a symbol has no value.
        ModelError, UnsupportedError
            If the input has no type or shape that can be used.
        """
        item = self._inputs[name]
        if item.type is None:
            raise UnsupportedError(
                f"the input {name!r} is a {item.kind}, not a tensor of numbers",
                location=self._location,
            )
        if item.shape is None:
            raise UnsupportedError(
                f"the input {name!r} has no shape",
                remedy="export the model with shapes of its inputs",
                location=self._location,
            )
        missing = {
            _symbol(item, axis): None
            for axis, extent in enumerate(item.shape)
            if not isinstance(extent, int) and _symbol(item, axis) not in self._values
        }
        if missing:
            options = " ".join(f"--dim {symbol}=X" for symbol in missing)
            raise UsageError(
                f"{self._location}: the shape {_shown(item)} of the input {name!r} is not known",
                remedy=f"give the numbers X that your samples have: {options}",
            )
        shape = tuple(
            self._values.get(f"{name}.{axis}", extent)
            if isinstance(extent, int)
            else self._values[_symbol(item, axis)]
            for axis, extent in enumerate(item.shape)
        )
        if not is_possible(shape):
            raise ModelError(
                f"the input {name!r} has shape {list(shape)}",
                remedy=f"extents must be positive, and their product at most {MAX_VOLUME}",
                location=self._location,
            )
        return item.type, shape


def declared_shapes(model: OnnxModel) -> dict[str, tuple[int | str, ...]]:
    """Return the shapes of a model's inputs, with the symbols that :class:`Symbols` knows."""
    return {
        item.name: tuple(
            extent if isinstance(extent, int) else _symbol(item, axis)
            for axis, extent in enumerate(item.shape or ())
        )
        for item in model.graph.inputs
        if item.name not in model.graph.initializers
    }


def _symbol(item: OnnxInput, axis: int) -> str:
    """Return the name of an extent that is not a number."""
    assert item.shape is not None
    return str(item.shape[axis] or f"{item.name}.{axis}")


def _shown(item: OnnxInput) -> str:
    return f"[{', '.join('?' if x is None else str(x) for x in item.shape or ())}]"
