# amaranth: UnusedElaboratable=no
"""What every part computes is what its component gives, in the cycles that it predicts."""

from dataclasses import fields

import pytest
from example_bench import Bench

from examples import EXAMPLES
from nnef_hw.parts import Part
from nnef_hw.parts.readers.reader import Reader

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
    bench.check_idle()


@pytest.mark.verilator
@pytest.mark.parametrize(("example", "engine"), VERILOG)
def test_verilog(example, engine, rng):
    Bench(example, rng).check_verilog(engine)


def parts_of(part):
    """A part, and those that it is made of."""
    yield type(part).__name__
    for field in fields(part):
        if isinstance(getattr(part, field.name), Part):
            yield from parts_of(getattr(part, field.name))


def concrete(part):
    for kind in part.__subclasses__():
        # one in a test's own module is no part of the package
        if hasattr(kind, "component") and kind.__module__.startswith("nnef_hw."):
            yield kind
        yield from concrete(kind)


def test_every_part_has_an_example_or_a_chip_to_be_run_with():
    """Readers are run with models of the memories that they read (tests/rtl/readers)."""
    shown = {
        name for named in EXAMPLES.values() for x in named.values() for name in parts_of(x.part)
    }
    missing = {kind.__name__ for kind in concrete(Part) if not issubclass(kind, Reader)} - shown
    assert not missing, f"add examples of {missing} to tests/parts/examples"


def test_examples_stand_under_their_part():
    for name, named in EXAMPLES.items():
        assert {type(example.part).__name__ for example in named.values()} == {name}
