# amaranth: UnusedElaboratable=no
"""What every part computes is what its component gives, in the cycles that it predicts."""

from dataclasses import fields

import pytest
from example_bench import Bench

from examples import EXAMPLES, MEASURED
from nnef_hw.hardware.devices import ECP5_85K, GW2AR_18C, GW5A_25A, UP5K, XC7A35T
from nnef_hw.parts import Part

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


def test_every_part_has_an_example_or_says_why_not():
    shown = {
        name for named in EXAMPLES.values() for x in named.values() for name in parts_of(x.part)
    }
    for kind in concrete(Part):
        said = f"{kind.__name__}: an example in tests/parts/examples, or else a reason in `unshown`"
        assert (kind.__name__ in shown) != bool(kind.unshown), said


def test_every_part_names_sizes_to_measure():
    priced = [kind for kind in concrete(Part) if hasattr(kind, "costs")]
    for costs in {kind.costs for kind in priced}:
        assert costs in MEASURED, f"`MEASURED` in tests/parts/examples has no sizes of {costs!r}"
    for device in (UP5K, ECP5_85K, GW2AR_18C, GW5A_25A, XC7A35T):
        made = {kind.costs for kind in priced if kind.is_made_for(device.family)}
        for costs, sizes in MEASURED.items():
            assert {example.part.costs for example in sizes(device)} == {costs} & made, device.name


def test_examples_stand_under_their_part():
    for name, named in EXAMPLES.items():
        assert {type(example.part).__name__ for example in named.values()} == {name}
