"""How fast networks are quantized, and fixed networks computed.

    python scripts/bench/bench_quantize.py ZOO/mlperf_ic_resnet8 ZOO/mlperf_kws_dscnn

Each folder holds model.nnef.tgz and samples.npz.
"""

import sys
import time
from pathlib import Path

from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.quantize import quantize
from nnef_hw.reference import quantize_inputs, run_fixed
from nnef_hw.samples.samples import load_samples

REPEATS = 3


def seconds(function, *arguments):
    """Return a result and the shortest time that it took."""
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = function(*arguments)
        times.append(time.perf_counter() - start)
    return result, min(times)


def main():
    """Print a line for each network."""
    for folder in map(Path, sys.argv[1:]):
        graph = load(folder / "model.nnef.tgz")
        samples = load_samples(folder / "samples.npz", graph)
        calibration, others = samples.split()
        fixed, spent = seconds(quantize, simplify(graph), calibration.inputs)
        _, run = seconds(run_fixed, fixed, quantize_inputs(fixed, others.inputs))
        print(
            f"{folder.name}: quantized with {len(calibration)} samples in {spent:.1f} s, "
            f"{len(others) / run:.0f} fixed inferences per second"
        )


if __name__ == "__main__":
    main()
