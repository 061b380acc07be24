"""Dilated windows as TensorFlow writes them: between SPACE_TO_BATCH_ND and BATCH_TO_SPACE_ND."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from nnef_hw.frontend.tflite.lowering.calls import TfliteCall
from nnef_hw.frontend.tflite.lowering.registry import Lowering, lowers
from nnef_hw.frontend.tflite.lowering.values import Value

__all__ = ["lower_in_blocks"]

_WINDOWS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D"})
_SHAPES = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})
_VALID = 1


def _pairs(call: TfliteCall, x: Value) -> tuple[list[int], list[tuple[int, int]]]:
    """Return the block and what is added or taken off at both ends of each spatial axis."""
    block, ends = call.integers(1, "the block"), call.integers(2, "the padding")
    if len(block) != x.rank - 2 or len(ends) != 2 * len(block) or min(*block, *ends) < 0:
        raise call.error(
            f"the block {block} and the padding {ends} do not fit the shape {list(x.shape)}"
        )
    return block, list(zip(ends[::2], ends[1::2], strict=True))


@lowers("SPACE_TO_BATCH_ND", newest=4)
def space_to_batch_nd(call: TfliteCall) -> Value:
    """Pad, and note that elements so many apart are an image."""
    x = call.required(0)
    block, padding = _pairs(call, x)
    y = x
    if any(map(any, padding)):
        stored = [(0, 0)] * x.rank
        for axis, pair in enumerate(padding, start=1):
            stored[x.stored_axis(axis)] = pair
        y = call.emit("pad", x, padding=stored, border="constant", value=0.0)
    if min(block) < 1 or any(n % step for n, step in zip(y.shape[1:-1], block, strict=True)):
        raise call.error(f"the block {block} does not divide the padded shape {list(y.shape)}")
    return replace(y, blocks=tuple(block)) if prod(block) > 1 else y


@lowers("BATCH_TO_SPACE_ND", newest=4)
def batch_to_space_nd(call: TfliteCall) -> Value:
    """Take the ends off an image whose elements are one again."""
    x = call.required(0)
    block, ends = _pairs(call, x)
    if prod(block) > 1:
        raise call.unsupported(
            "its input does not come from a SPACE_TO_BATCH_ND", "use dilated convolutions"
        )
    return _cropped(call, x, ends)


def _cropped(call: TfliteCall, x: Value, ends: list[tuple[int, int]]) -> Value:
    axes = [x.stored_axis(axis) for axis in range(1, x.rank - 1)]
    begin = [first for first, _ in ends]
    end = [n - last for n, (_, last) in zip(x.shape[1:-1], ends, strict=True)]
    if any(first >= last for first, last in zip(begin, end, strict=True)):
        raise call.error(f"nothing is left of the shape {list(x.shape)}")
    if not any(map(any, ends)):
        return x
    return call.emit("slice", x, axes=axes, begin=begin, end=end, stride=[1] * len(axes))


def lower_in_blocks(call: TfliteCall, lowering: Lowering) -> Value:
    """Lower an operator whose first argument TensorFlow Lite has in blocks.

    Raises
    ------
    UnsupportedError
        If it is no convolution, and none of the changes of shape that stand around one.
    """
    x, op = call.required(0), call.operator.op
    whole = replace(x, blocks=())
    if op == "BATCH_TO_SPACE_ND":
        block, ends = _pairs(call, x)
        if tuple(block) == x.blocks:
            return _cropped(call.with_input(whole), whole, ends)
    elif op in _WINDOWS:
        steps = [int(call.option(name, 1)) for name in ("StrideH", "StrideW")]
        if call.option("Padding") == _VALID and steps == [1, 1] and len(x.blocks) == 2:
            names = ("DilationHFactor", "DilationWFactor")
            dilation = {
                name: int(call.option(name, 1)) * step
                for name, step in zip(names, x.blocks, strict=True)
            }
            found = lowering(call.with_input(whole, **dilation))
            assert isinstance(found, Value), op
            return replace(found, blocks=x.blocks)
    elif op in _SHAPES and (view := _viewed(call, whole, x)) is not None:
        return view
    raise call.unsupported(
        "its input is cut into blocks by SPACE_TO_BATCH_ND",
        "have convolutions of stride 1 with VALID padding alone between it and BATCH_TO_SPACE_ND",
    )


def _viewed(call: TfliteCall, whole: Value, x: Value) -> Value | None:
    """Return a sequence as an image of one row, or such an image as a sequence; else None."""
    target = call.target().shape
    n, channels = whole.shape[0], whole.shape[-1]
    if len(target) == 4 and x.rank == 3 and target == (x.shape[0], 1, *x.shape[1:]):
        y = call.with_input(whole).reshaped(whole, (n, 1, whole.shape[1], channels))
        return replace(y, blocks=(1, *x.blocks))
    if len(target) == 3 and x.rank == 4 and x.blocks[0] == 1 and x.shape[1] == 1:
        y = call.with_input(whole).reshaped(whole, (n, whole.shape[2], channels))
        return replace(y, blocks=x.blocks[1:])
    return None
