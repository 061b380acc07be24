"""Models of memories beside a board's top: what they are given, and the board that has them."""

import math
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from nnef_hw.boards.board import Sdram, SpiFlash

__all__ = ["FlashModel", "SdramModel", "hex_image", "simulated_board"]

MODELS = Path(__file__).parent / "models"


@dataclass(frozen=True)
class FlashModel:
    """A board's flash.

    Parameters
    ----------
    memory
        What the board has; of several chips the first one.
    clock_mhz
        Clock of the design.
    image
        File of its first bytes for Verilog's ``$readmemh``; an absolute path.
    size
        How many of its bytes are modelled.
    jedec_id
        Another ID than the chip's.
    prefix
        Of its pins.
    """

    memory: SpiFlash
    clock_mhz: float
    image: Path
    size: int
    jedec_id: int | None = None
    prefix: str = "flash_"

    source = MODELS / "spi_flash.v"

    @classmethod
    def of(cls, memory, clock_mhz, image, size):
        """Return the model of a memory with an image in its first ``size`` bytes."""
        # The chip shows the bit behind the last one, too.
        return cls(memory, clock_mhz, image, size + 1)

    def text(self, data, address):
        """Text for ``$readmemh`` of bytes at an address."""
        return hex_image(data, address)

    def instance(self, clk="clk"):
        """Verilog of an instance, on wires that are called like the pins."""
        chip = self.memory.chips[0]
        values = {
            "PERIOD_PS": math.ceil(1e6 / self.clock_mhz),
            "ID": f"24'h{chip.jedec_id if self.jedec_id is None else self.jedec_id:06x}",
            "DTR": int(chip.knows_ddr),
            "LINES": self.memory.lines,
            "BYTES": self.size,
            "IMAGE": f'"{self.image}"',
        }
        pins = {"cs_n": "cs_n", "sck": "sck", "dq": "dq"}
        return _instance("nnef_hw_spi_flash", self.prefix, values, pins, {"clk": clk})

    @property
    def wires(self):
        """Wires of the memory and their widths."""
        return {"cs_n": 1, "sck": 1, "dq": 4 if self.memory.lines == 4 else 2}


@dataclass(frozen=True)
class SdramModel:
    """A board's SDRAM.

    Parameters
    ----------
    memory
        What the board has.
    clock_mhz
        Clock of the design.
    words
        How many of its words are modelled.
    image
        File of its first words for Verilog's ``$readmemh``, an absolute path; by default they are
        unknown until they are written.
    prefix
        Of its pins.
    """

    memory: Sdram
    clock_mhz: float
    words: int = 65536
    image: Path | None = None
    prefix: str = "sdram_"

    source = MODELS / "sdram.v"

    @classmethod
    def of(cls, memory, clock_mhz, image, size):
        """Return the model of a memory of ``size`` bytes, which has an image if one is given."""
        return cls(memory, clock_mhz, size // (memory.chip.width // 8), image)

    def text(self, data, address):
        """Text for ``$readmemh`` of the chip's words from the first one on, low bytes first."""
        assert address == 0
        size = self.memory.chip.width // 8
        words = (data[n : n + size][::-1].hex() for n in range(0, len(data), size))
        return "".join(f"{word}\n" for word in words)

    def instance(self, clk="clk"):
        """Verilog of an instance, on wires that are called like the pins."""
        del clk  # it has one of its own
        chip = self.memory.chip
        times = {
            "RCD": chip.t_rcd, "RP": chip.t_rp, "RAS": chip.t_ras, "RC": chip.t_rc,
            "RFC": chip.t_rfc, "RRD": chip.t_rrd, "WR": chip.t_wr, "MRD": chip.t_mrd,
            "CAS_2": 1000 / chip.cas_mhz[0], "CAS_3": 1000 / chip.cas_mhz[1],
            "REFRESH": 1000 * chip.refresh_us, "POWER_UP": 1000 * chip.power_up_us,
        }  # fmt: skip
        values = {f"{name}_PS": int(1000 * time) for name, time in times.items()}
        values |= {"PERIOD_PS": round(1e6 / self.clock_mhz), "WIDTH": chip.width}
        values |= {"ROW_BITS": chip.row_bits, "COLUMN_BITS": chip.column_bits}
        values["WORDS"] = self.words
        if self.image is not None:
            values["IMAGE"] = f'"{self.image}"'
        return _instance("nnef_hw_sdram", self.prefix, values, {x: x for x in self.wires}, {})

    @property
    def wires(self):
        """Wires of the memory and their widths."""
        chip = self.memory.chip
        single = ("clk", "cke", "cs_n", "ras_n", "cas_n", "we_n")
        return {**dict.fromkeys(single, 1), "ba": 2, "a": chip.row_bits, "dqm": chip.width // 8,
                "dq": chip.width}  # fmt: skip


def _instance(module, prefix, values, pins, others):
    parameters = ", ".join(f".{name}({value})" for name, value in values.items())
    ports = {**others, **{port: prefix + pin for port, pin in pins.items()}}
    connected = ", ".join(f".{port}({wire})" for port, wire in ports.items())
    return f"    {module} #({parameters}) {prefix}model ({connected});"


def simulated_board(
    verilog, models, *, top="board_top", name="board_sim", ports=None, names=MappingProxyType({})
):
    """Verilog of a board with its memories, whose ports are those of the top without their pins.

    A wire ``x`` of both directions becomes its level ``x``, and ``x_far``: the other end pulls it
    low.

    Parameters
    ----------
    verilog : str
        The board's top, with pads that have the models' pins, and all that it is made of.
    models : Sequence[FlashModel | SdramModel]
    top, name : str
        Modules of the top, and of what is returned.
    ports : Mapping[str, tuple[str, int]], optional
        Ports with their directions and widths; ``clk``, ``rx`` and ``tx`` by default.
    names : Mapping[str, str], optional
        What the top calls pins that it does not call like a model's, by what that one calls them.
    """
    if ports is None:
        ports = {"clk": ("input", 1), "rx": ("input", 1), "tx": ("output", 1)}
    shared = [port for port, (direction, _) in ports.items() if direction == "inout"]
    listed = [
        f"{'output' if port in shared else direction} {_bits(width)}{port}"
        for port, (direction, width) in ports.items()
    ]
    listed += [f"input {port}_far" for port in shared]
    lines = [f"module {name} ({', '.join(listed)});"]
    for port in shared:
        # pulled up, and low if either end pulls
        lines += [f"    wire {port}_pad;", f"    pullup({port}_pad);",
                  f"    assign {port}_pad = {port}_far ? 1'b0 : 1'bz;",
                  f"    assign {port} = {port}_pad;"]  # fmt: skip
    connected = [f".{port}({port}{'_pad' if port in shared else ''})" for port in ports]
    for model in models:
        for wire, width in model.wires.items():
            lines.append(f"    wire {_bits(width)}{model.prefix}{wire};")
            pin = model.prefix + wire
            connected.append(f".{names.get(pin, pin)}({pin})")
        lines.append(model.instance())
    lines += [f"    {top} board ({', '.join(connected)});", "endmodule", ""]
    sources = {model.source: model.source.read_text() for model in models}
    return "\n".join([verilog, *lines, *sources.values()])


def _bits(width):
    return f"[{width - 1}:0] " if width > 1 else ""


def hex_image(data, address):
    """Text for ``$readmemh`` of bytes at an address."""
    rows = (data[n : n + 16] for n in range(0, len(data), 16))
    return "".join([f"@{address:x}\n", *(row.hex(" ") + "\n" for row in rows)])
