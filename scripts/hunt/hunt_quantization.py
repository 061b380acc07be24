"""Hunt networks that lose their signal when they are quantized, without a warning.

    python scripts/hunt/hunt_quantization.py --count 300 [--start 0]

Each random network (tests/helpers/graphs/doubtful_networks.py) is quantized by default, and by
every calibration on all samples that it has. One that another calibration gives more than 3 dB, on
samples that nobody has seen, fails if nothing was said. Exit status 1 if one fails.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(x) for x in (ROOT / "tests" / "helpers").rglob("*") if x.is_dir()]

from doubtful_networks import doubtful_network, judge  # noqa: E402  the folder is put on the path

from nnef_hw.errors import NnefHwError  # noqa: E402


def main() -> int:
    """Judge networks, and name those that fail."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=300, help="how many networks (default: 300)")
    parser.add_argument("--start", type=int, default=0, help="the first seed (default: 0)")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    silent = refused = 0
    for seed in range(options.start, options.start + options.count):
        network = doubtful_network(seed)
        try:
            verdict = judge(network)
        except NnefHwError as error:
            refused += 1
            print(f"{seed}: {', '.join(network.parts)}: refused: {error.reason}", flush=True)
            continue
        kinds.update(set(verdict.kinds) or {"none"})
        lost = verdict.best - verdict.found
        if verdict.is_silent or lost > 3:
            silent += verdict.is_silent
            said = "SILENT" if verdict.is_silent else ", ".join(verdict.kinds)
            print(
                f"{seed}: {', '.join(network.parts)}: {verdict.found:.1f} dB, --calibration "
                f"{verdict.by} {verdict.best:.1f} dB: {said}",
                flush=True,
            )
    print(f"{options.count} networks, {refused} refused, {silent} silent; warnings: {dict(kinds)}")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
