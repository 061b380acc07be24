"""Caches of keys and values that grow by a row in each step."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nnef_hw.errors import UnsupportedError
from nnef_hw.frontend.building.open_shapes import PLACES
from nnef_hw.frontend.nnef.evaluation.invocation import Invoked
from nnef_hw.frontend.nnef.tract.loops import identifier_of
from nnef_hw.ir import Tensor

__all__ = ["CACHES"]


def _growing(call: Invoked) -> Tensor:
    """Return a row behind those of earlier steps, which are an input, as tract unfolds a cache."""
    values, row = call.values, call.tensor("input")
    past, axis = tuple(values["past_sequence_shape"]), values["axis"]
    if not 0 <= axis < len(row.shape):
        raise call.error(f"axis {axis} is not one of {list(row.shape)}", at="axis")
    expected = (*row.shape[:axis], past[axis] if axis < len(past) else 0, *row.shape[axis + 1 :])
    if past != expected or past[axis] < 1:
        raise call.error(
            f"rows of shape {list(past)} and a row of {list(row.shape)} do not fit along axis "
            f"{axis}",
            at="past_sequence_shape",
        )
    return _cached(call, row, axis, past[axis], values["name"], call.name)


def _cached(call: Invoked, row: Tensor, axis: int, rows: int, label: str, result: str) -> Tensor:
    """Add an input of earlier rows, and what is made of them and a row: the next ones."""
    evaluator, builder = call.evaluator, call.evaluator.builder
    if builder.is_loop:
        raise UnsupportedError(
            f"{call.op} {call.name!r}: a cache inside of a loop is not supported",
            remedy="export the model without the loop",
            location=call.location,
        )
    shape = (*row.shape[:axis], rows, *row.shape[axis + 1 :])
    name = builder.unique(identifier_of(label))
    past = builder.input(Tensor(name, shape, row.dtype, location=call.location))
    [after] = builder.node(
        "concat", [past, row], {"axis": axis}, [evaluator.claim(result)], (row.dtype,),
        location=call.location,
    )  # fmt: skip
    builder.caches[name] = after.name
    return after


def _window(call: Invoked) -> object:
    """Attend to rows of caches; of texts no longer than the window none leaves it."""
    values = call.values
    q, k, v = (call.tensor(key) for key in ("q", "k", "v"))
    rank, axis, window = len(q.shape), values["axis"], values["window"]
    if rank != 4 or axis != rank - 2:
        raise call.error(f"rows are along axis 2 of 4, not {axis} of {rank}", at="axis")
    rows = call.evaluator.symbols[PLACES]
    assert isinstance(rows, int)
    if rows + k.shape[axis] > window:
        raise UnsupportedError(
            f"{call.op} {call.name!r}: a text of {rows + 1:,} places is longer than its window of "
            f"{window:,}, whose oldest rows would be replaced",
            remedy=f"give --context {window} or less",
            location=call.places.get("window", call.location),
        )
    keys, values_ = (
        _cached(call, row, axis, rows, f"{call.name}_{what}", f"{call.name}_{what}_next")
        for row, what in ((k, "keys"), (v, "values"))
    )
    scale = values["scale"]
    return call.call("tract_transformers_sdpa", q, keys, values_, scale=scale, names=call.names)


CACHES: Mapping[str, Callable[[Invoked], object]] = {
    "tract_transformers_dyn_kv_cache": _growing,
    "tract_transformers_window_kv_sdpa": _window,
}
"""Lowerings by operator."""
