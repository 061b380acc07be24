"""What is proved of each component of ``rtl/``: claims by its class, and by a name of their own.

Those of parts are examples with a proof; the others are here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

from example_bench import claim_of
from prover import Claim

from claims.arrays import ARRAYS
from claims.functions import FUNCTIONS
from claims.movement import MOVEMENT
from claims.operators import OPERATORS
from claims.windows import WINDOWS
from examples import EXAMPLES

__all__ = ["CLAIMS"]


def _of_examples() -> Mapping[str, Mapping[str, Callable[[], Claim]]]:
    found: dict[str, dict[str, Callable[[], Claim]]] = defaultdict(dict)
    for named in EXAMPLES.values():
        for name, example in named.items():
            if example.proof is not None:
                component = example.part.component.partition(":")[2]
                found[component][name] = partial(claim_of, example)
    return found


CLAIMS: Mapping[str, Mapping[str, Callable[[], Claim]]] = {
    **MOVEMENT, **WINDOWS, **OPERATORS, **FUNCTIONS, **ARRAYS, **_of_examples(),
}  # fmt: skip
