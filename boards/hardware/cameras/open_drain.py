"""A wire that several pull low, and a resistor pulls up: one pin, two signals of the design."""

from contextlib import contextmanager
from pathlib import Path

from nnef_hw.rtl.readers.pads import Pads

__all__ = ["OpenDrainPads", "open_drain_verilog", "quarters"]

MODULE = Path(__file__).with_name("open_drain.v")


def open_drain_verilog():
    """Return the module."""
    return MODULE.read_text()


@contextmanager
def quarters(m, phase, *earlier):
    """Assign to a wire in each of the first quarters of a bit; what stands inside is the last's."""
    m.d.sync += phase.eq(phase + 1)
    with m.Switch(phase):
        for n, assignment in enumerate(earlier):
            with m.Case(n):
                m.d.sync += assignment
        with m.Case(len(earlier)):
            yield


class OpenDrainPads(Pads):
    """Pad of a wire ``NAME``, with ports ``NAME_low`` and ``NAME_level``.

    Parameters
    ----------
    name : str
    """

    module = "nnef_hw_open_drain_pad"

    def __init__(self, name):
        super().__init__(f"{name}_")
        self.name = name

    @property
    def parameters(self):
        return {}

    @property
    def ports(self):
        return {"low": ("output", 1), "level": ("input", 1)}

    @property
    def pins(self):
        return {"": ("inout", 1)}

    def pin_name(self, pin):
        """Name of the pin at the top: that of the wire."""
        return self.name
