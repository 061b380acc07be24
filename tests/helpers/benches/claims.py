"""What is proved of each component of ``rtl/``: claims by its class, and by a name of their own.

Those of parts are examples with a proof; a fork is no part.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

from example_bench import claim_of
from prover import Claim

from examples import EXAMPLES
from nnef_hw.rtl.streams.fork import Fork

__all__ = ["CLAIMS", "marked"]


def marked(count: int) -> list[list[int]]:
    """Return frames of so many bits: one of zeros, then one for each place of a one."""
    return [[int(place == mark) for place in range(count)] for mark in range(-1, count)]


def _fork(branches: int) -> Claim:
    frames = marked(3)
    return Claim(
        component=Fork(1, branches=branches), inputs={"i": frames},
        outputs={f"o{n}": frames for n in range(branches)}, patience=2,
    )  # fmt: skip


def _of_examples() -> Mapping[str, Mapping[str, Callable[[], Claim]]]:
    found: dict[str, dict[str, Callable[[], Claim]]] = defaultdict(dict)
    for named in EXAMPLES.values():
        for name, example in named.items():
            if example.proof is not None:
                component = example.part.component.partition(":")[2]
                found[component][name] = partial(claim_of, example)
    return found


CLAIMS: Mapping[str, Mapping[str, Callable[[], Claim]]] = {
    "Fork": {f"{branches} branches": partial(_fork, branches) for branches in (2, 3, 4)},
    **_of_examples(),
}
