"""Record what the compiler makes of the golden networks today, after a change that is meant."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from golden_digests import BOARDS, digests
from golden_networks import NETWORKS

if __name__ == "__main__":
    cases = [(network, board) for network in NETWORKS for board in BOARDS]
    with ProcessPoolExecutor() as pool:
        found = list(pool.map(digests, *zip(*cases, strict=True)))
    names = [f"{network.__name__}, {board}" for network, board in cases]
    text = json.dumps(dict(zip(names, found, strict=True)), indent=1)
    (Path(__file__).parent / "digests.json").write_text(text + "\n")
