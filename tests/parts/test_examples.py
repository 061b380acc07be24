# amaranth: UnusedElaboratable=no
"""What every part computes is what its component gives, in the cycles that it predicts."""

import pytest
from example_bench import Bench

from examples import EXAMPLES

NIGHTLY = pytest.mark.nightly
QUICK = ("BlockFifo", "SystolicArray")
"""Parts that cocotb runs by day, too."""
EVERY = [
    pytest.param(
        example, id=f"{part}-{name}".replace(" ", "_"), marks=[NIGHTLY] * example.nightly
    )
    for part, named in EXAMPLES.items()
    for name, example in named.items()
]  # fmt: skip
VERILOG = [
    pytest.param(
        example, engine, id=f"{part}-{name}-{engine}".replace(" ", "_"),
        marks=[NIGHTLY] * (example.nightly or (engine == "cocotb" and part not in QUICK)),
    )
    for part, named in EXAMPLES.items()
    for name, example in named.items()
    for engine in example.verilog
]  # fmt: skip


@pytest.mark.parametrize("example", EVERY)
def test_gives_what_it_computes_when_it_says(example, rng):
    bench = Bench(example, rng)
    bench.check(0.0)
    bench.check(0.5)


@pytest.mark.verilator
@pytest.mark.parametrize(("example", "engine"), VERILOG)
def test_verilog(example, engine, rng):
    Bench(example, rng).check_verilog(engine)
