"""Float reference: matrix products of the standard."""

from __future__ import annotations

import numpy as np

from nnef_hw.reference.real.elementwise import align
from nnef_hw.reference.real.functions import activated
from nnef_hw.reference.real.registry import Array, Evaluation, operator
from nnef_hw.reference.running.batch_rules import Case, constant_weights

__all__: list[str] = []


def _matmul_samples(case: Case) -> bool:
    return case.rank > 2 or (case.input_varies_alone and not case.node.attrs["transposeA"])


@operator("matmul", batch=_matmul_samples)
def matmul(call: Evaluation) -> Array:
    a, b = call.args
    a = np.swapaxes(a, -1, -2) if call.attr("transposeA", False) else a
    b = np.swapaxes(b, -1, -2) if call.attr("transposeB", False) else b
    return np.asarray(a @ b)


@operator("linear", batch=constant_weights)
def linear(call: Evaluation) -> Array:
    x, weights, bias = call.args
    y, offset = align(np.asarray(x @ np.swapaxes(weights, -1, -2)), bias)
    y = y + offset
    return activated(y, call.node.attrs)
