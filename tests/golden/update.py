"""Record what the compiler makes of the golden networks today, after a change that is meant."""

import json
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from golden_builds import BUILDS, GoldenBuild
from golden_digests import BOARDS, digests
from golden_networks import NETWORKS

if __name__ == "__main__":
    cases = [(network, board) for network in NETWORKS for board in BOARDS]
    with ProcessPoolExecutor() as pool:
        builds = pool.map(GoldenBuild.digests, BUILDS)
        found = pool.map(digests, *zip(*cases, strict=True))
        names = [f"{network.__name__}, {board}" for network, board in cases]
        recorded = {
            "digests.json": dict(zip(names, found, strict=True)),
            "builds.json": dict(zip([build.name for build in BUILDS], builds, strict=True)),
        }
    for name, value in recorded.items():
        (Path(__file__).parent / name).write_text(json.dumps(value, indent=1) + "\n")
