"""Float reference: operators whose last operand is an integer place."""

from __future__ import annotations

import numpy as np

from nnef_hw.arithmetic.places import hide_behind, look_up_rows, write_rows
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import Case, all_vary

__all__: list[str] = []


def _index_varies(case: Case) -> bool:
    return case.varies == (False, True)


@operator("lookup", batch=_index_varies)
def lookup(call: Evaluation) -> Array:
    table, index = call.args
    return look_up_rows(table, index).reshape(call.shape)


@operator("causal_mask", batch=all_vary)
def causal_mask(call: Evaluation) -> Array:
    x, place = call.args
    [axis] = call.attr("axes")
    return np.moveaxis(hide_behind(np.moveaxis(x, axis, 1), place, -np.inf), 1, axis)


@operator("write_row", batch=all_vary)
def write_row(call: Evaluation) -> Array:
    return write_rows(*call.args)
