"""Count adders of products with random constant matrices, beside da4ml's where it is installed.

da4ml (github.com/calad0i/da4ml, LGPL-3.0) is no dependency: its column is printed in an environment
that has it. The matrices are those of a classifier of 16-64-32-32-5 channels.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np
from bench_row import print_row
from numpy.typing import NDArray

from nnef_hw.arithmetic.adders import multiply_matrix

CODE_BITS = 6
LAYERS = [(16, 64), (64, 32), (32, 32), (32, 5)]
WEIGHTS: dict[str, Callable[[np.random.Generator, tuple[int, int]], NDArray[np.int64]]] = {
    "uniform": lambda rng, shape: rng.integers(-32, 32, shape),
    "normal": lambda rng, shape: np.round(rng.normal(0, 12.4, shape)).clip(-31, 31).astype(int),
}
"""6-bit weights, by how they are distributed."""


def main() -> None:
    """Print a line for each distribution."""
    for name, draw in WEIGHTS.items():
        rng = np.random.default_rng(0)
        matrices = [draw(rng, (results, inputs)) for inputs, results in LAYERS]
        begin = time.process_time()
        ours = sum(map(_adders, matrices))
        seconds = time.process_time() - begin
        cells = {
            "weights": name,
            "adders": f"{ours:,}",
            "CPU s": f"{seconds:.1f}",
            **_theirs(matrices),
        }
        print_row(cells, cells.values())


def _adders(matrix: NDArray[np.int64]) -> int:
    """Count those of the sums alone, without bias and rounding."""
    results = len(matrix)
    graph = multiply_matrix(
        matrix, factors=[1] * results, offsets=[0] * results, bits=CODE_BITS, signed=False
    )
    return sum(adder.first is not None for adder in graph.adders)


def _theirs(matrices: list[NDArray[np.int64]]) -> dict[str, str]:
    if importlib.util.find_spec("da4ml") is None:
        return {}
    solve = importlib.import_module("da4ml.cmvm").solve

    def adders() -> Iterator[int]:
        for matrix in matrices:
            codes = [(0, (1 << CODE_BITS) - 1, 1)] * matrix.shape[1]
            found = solve(np.ascontiguousarray(matrix.T).astype(np.float32), qintervals=codes)
            yield sum(op.opcode in (0, 1) for stage in found.solutions for op in stage.ops)

    return {"da4ml's": f"{sum(adders()):,}"}


if __name__ == "__main__":
    main()
