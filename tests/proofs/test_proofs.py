# amaranth: UnusedElaboratable=no
"""Every component of rtl/ is proved to keep the contract of streams, or says why it is not."""

import importlib
import pkgutil

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from claims import CLAIMS, marked
from prover import Claim, find_mutant, prove, ready_to_valid

import nnef_hw.rtl
from nnef_hw.rtl.streams.stream import Fifo

pytestmark = pytest.mark.synth

QUICK = {
    ("Fifo", "depth 2"), ("Fork", "2 branches"), ("Argmax", "largest"), ("Concat", "two"),
    ("MaxPool", "words"),
}  # fmt: skip
EVERY = [
    pytest.param(
        component, name, id=f"{component}-{name}".replace(" ", "_"),
        marks=() if (component, name) in QUICK else pytest.mark.nightly,
    )
    for component, claims in CLAIMS.items()
    for name in claims
]  # fmt: skip


def components():
    """Classes of all components of rtl/."""
    for module in pkgutil.walk_packages(nnef_hw.rtl.__path__, "nnef_hw.rtl."):
        for value in vars(importlib.import_module(module.name)).values():
            if (
                isinstance(value, type)
                and issubclass(value, wiring.Component)
                and value.__module__ == module.name
            ):
                yield value


def test_every_component_has_a_proof_or_says_why_not():
    names = set()
    for component in components():
        names.add(component.__name__)
        reason = vars(component).get("unproved")
        proved = component.__name__ in CLAIMS
        assert proved != bool(reason), f"{component}: a proof, or else a reason in `unproved`"
    assert not set(CLAIMS) - names


@pytest.mark.parametrize(("component", "name"), EVERY)
def test_keeps_its_promises(component, name, tmp_path):
    verdict = prove(CLAIMS[component][name](), tmp_path)
    assert verdict.broken is None, f"{verdict.broken} in cycle {verdict.frames}"
    assert verdict.proved, verdict.log


@pytest.mark.parametrize(("component", "name"), EVERY)
def test_valid_does_not_depend_on_ready(component, name, tmp_path):
    assert ready_to_valid(CLAIMS[component][name]().component, tmp_path) == []


@pytest.mark.parametrize(("component", "name"), EVERY)
def test_a_mutant_breaks_a_promise(component, name, tmp_path):
    assert find_mutant(CLAIMS[component][name](), tmp_path).broken


class Broken(wiring.Component):
    """A queue that does one thing wrong."""

    def __init__(self, fault):
        self.fault = fault
        self.fifo = Fifo(1, depth=3)
        super().__init__(self.fifo.signature)

    def elaborate(self, platform):
        m = Module()
        m.submodules.fifo = fifo = self.fifo
        ready = self.o.ready
        m.d.comb += [
            fifo.i.valid.eq(self.i.valid), fifo.i.payload.eq(self.i.payload),
            self.i.ready.eq(fifo.i.ready), fifo.o.ready.eq(ready),
            self.o.valid.eq(fifo.o.valid), self.o.payload.eq(fifo.o.payload),
        ]  # fmt: skip
        cycle = Signal(3)
        m.d.sync += cycle.eq(cycle + 1)
        if self.fault == "waits for ready":
            m.d.comb += self.o.valid.eq(fifo.o.valid & ready)
        elif self.fault == "takes its offer back":
            m.d.comb += [self.o.valid.eq(fifo.o.valid & (cycle != 5)),
                         fifo.o.ready.eq(ready & (cycle != 5))]  # fmt: skip
        elif self.fault == "stops":
            m.d.comb += [fifo.i.valid.eq(self.i.valid & ~cycle[2]),
                         self.i.ready.eq(fifo.i.ready & ~cycle[2])]  # fmt: skip
        elif self.fault == "drops":
            m.d.comb += fifo.i.valid.eq(self.i.valid & (cycle != 5))
        return m


@pytest.mark.parametrize(
    ("fault", "broken"),
    [("takes its offer back", "stable"), ("drops", "order"), ("stops", "alive")],
)
def test_the_prover_finds_faults(fault, broken, tmp_path):
    frames = marked(3)
    claim = Claim(
        component=Broken(fault), inputs={"i": frames}, outputs={"o": frames}, frame_bits=3,
        patience=3,
    )  # fmt: skip
    verdict = prove(claim, tmp_path)
    assert not verdict.proved
    assert verdict.broken == broken


def test_the_prover_sees_a_path_from_ready_to_valid(tmp_path):
    assert ready_to_valid(Broken("waits for ready"), tmp_path) == ["o__valid"]
