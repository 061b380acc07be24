"""Pads stand between a design and the pins of its memories, in Verilog.

Amaranth's components have no pins; so a board with memories has another module around its top, with
the pads, which only that module's text describes.
"""

from abc import ABC, abstractmethod
from pathlib import Path

from amaranth.lib.wiring import In, Out

__all__ = [
    "PADS", "FlashPads", "Pads", "SdramPads", "connect_pads", "pad_ports", "padded_top",
    "pads_verilog",
]  # fmt: skip

PADS = Path(__file__).with_name("pads.v")
"""Modules whose names begin with ``nnef_hw_``, behavioural in simulation."""


def pads_verilog():
    """Return the modules."""
    return PADS.read_text()


class Pads(ABC):
    """The pads of a memory: an instance of a module of ``pads.v``.

    Parameters
    ----------
    prefix : str
        Of the names of the pins, and of the ports of the core that they belong to.
    """

    module: str
    open_ports: tuple[str, ...] = ()
    """Ports of the module that the reader has no use for."""

    def __init__(self, prefix):
        self.prefix = prefix

    @property
    @abstractmethod
    def parameters(self):
        """Parameters of the module, by name."""

    @property
    @abstractmethod
    def ports(self):
        """Ports of the reader, by name: the direction that the reader gives them, and the width."""

    @property
    @abstractmethod
    def pins(self):
        """Pins by name, without prefix: ``output`` or ``inout``, and the width."""


    def pin_name(self, pin):
        """Name of a pin at the top."""
        return self.prefix + pin


class FlashPads(Pads):
    """Pads of a :class:`.FlashReader`.

    Parameters
    ----------
    part : parts.FlashReader
    """

    module = "nnef_hw_flash_pads"

    def __init__(self, part, prefix="flash_"):
        super().__init__(prefix)
        self.read = part.read
        self.open_ports = () if part.read.double_rate else ("dq_i_mid",)

    @property
    def parameters(self):
        return {"LINES": self.read.lines}

    @property
    def ports(self):
        ports = {"cs_n": ("output", 1), "sck": ("output", 2), "dq_o": ("output", 4),
                 "dq_oe": ("output", 4), "dq_i": ("input", 4)}
        return {**ports, "dq_i_mid": ("input", 4)} if self.read.double_rate else ports

    @property
    def pins(self):
        lines = 4 if self.read.lines == 4 else 2
        return {"cs_n": ("output", 1), "sck": ("output", 1), "dq": ("inout", lines)}


class SdramPads(Pads):
    """Pads of an :class:`.SdramReader`.

    Parameters
    ----------
    part : parts.SdramReader
    """

    module = "nnef_hw_sdram_pads"

    def __init__(self, part, prefix="sdram_"):
        super().__init__(prefix)
        self.chip = part.chip

    @property
    def parameters(self):
        return {"WIDTH": self.chip.width, "ADDRESS": self.chip.row_bits}

    @property
    def ports(self):
        width = self.chip.width
        return {"command": ("output", 3), "bank": ("output", 2), "address": ("output", 13),
                "dq_o": ("output", width), "dq_oe": ("output", 1), "dq_i": ("input", width)}

    @property
    def pins(self):
        single = ("clk", "cke", "cs_n", "ras_n", "cas_n", "we_n")
        return {**dict.fromkeys(single, ("output", 1)), "ba": ("output", 2),
                "a": ("output", self.chip.row_bits), "dqm": ("output", self.chip.width // 8),
                "dq": ("inout", self.chip.width)}


def pad_ports(pads):
    """Members of a component that passes on what goes to pads."""
    flows = {"input": In, "output": Out}
    return {
        group.prefix + name: flows[direction](width)
        for group in pads
        for name, (direction, width) in group.ports.items()
    }


def connect_pads(m, pads, inner, outer, *, is_reader=False):
    """Connect the ports to pads of what is inside to those of what contains it.

    Those of a reader have no prefix.
    """
    for group in pads:
        for name, (direction, _) in group.ports.items():
            one = getattr(inner, name if is_reader else group.prefix + name)
            other = getattr(outer, group.prefix + name)
            m.d.comb += one.eq(other) if direction == "input" else other.eq(one)


def padded_top(core, pads, ports, *, name="board_top", clock="clk", names=None, constants=None):
    """Verilog of a module that has a core and the pads of its memories.

    Parameters
    ----------
    core : str
        Module of the core. It has the ports of every reader, behind the prefix of its pads.
    pads : Sequence[Pads]
    ports : Mapping[str, tuple[str, int]]
        Further ports with their directions and widths; those of the core by the same names.
    name : str
        Of the module.
    clock : str
        Clock of the readers: one of ``ports``, or else an output of the core.
    names : Mapping[str, str], optional
        Other names of pins, where a placer asks for them.
    constants : Mapping[str, str], optional
        What stands at other ports of the core, in Verilog.
    """
    names = names or {}
    lines, connections, wires = [], [], []
    for port, (direction, width) in ports.items():
        lines.append(f"    {direction} {_range(width)}{port}")
        connections.append(f".{port}({port})")
    connections += [f".{port}({value})" for port, value in (constants or {}).items()]
    if clock not in ports:
        wires.append(f"    wire {clock};")
        connections.append(f".{clock}({clock})")
    instances = []
    for group in pads:
        inner = [f".clk({clock})"]
        for pin, (direction, width) in group.pins.items():
            called = names.get(group.pin_name(pin), group.pin_name(pin))
            lines.append(f"    {direction} {_range(width)}{called}")
            inner.append(f".pin_{pin}({called})")
        for port, (_, width) in group.ports.items():
            wire = f"core_{group.prefix}{port}"
            wires.append(f"    wire {_range(width)}{wire};")
            connections.append(f".{group.prefix}{port}({wire})")
            inner.append(f".{port}({wire})")
        inner += [f".{port}()" for port in group.open_ports]
        parameters = ", ".join(f".{key}({value})" for key, value in group.parameters.items())
        instances.append(
            f"    {group.module} #({parameters}) {group.prefix}pads (\n{_listed(inner)}\n    );")
    return "\n".join([
        f"module {name} (", ",\n".join(lines), ");", *wires,
        f"    {core} core (\n{_listed(connections)}\n    );", *instances, "endmodule", "",
    ])


def _range(width):
    return f"[{width - 1}:0] " if width > 1 else ""


def _listed(connections):
    return ",\n".join(f"        {connection}" for connection in connections)
