"""A board with its flash, behind the pins of its UART."""

import numpy as np
import pytest
from amaranth import ClockDomain, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw import parts
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.phy import UartPhy
from nnef_hw.boards.interfaces import Uart
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.rtl.readers.pads import FlashPads, padded_top, pads_verilog
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.sim.memories import FlashModel, simulated_board

CLK_HZ, DIVIDER = 24_000_000, 4
FLASH = find_board("icebreaker").spi_flash
PART = parts.FlashReader(
    chips=FLASH.chips, read=FLASH.best_read(24.0, ddr=True), clock_mhz=24.0, base=6, words=20
)
PINS = ("cs_n", "sck", "dq_o", "dq_oe", "dq_i", "dq_i_mid")


class Core(wiring.Component):
    """Answers a byte by the bytes of the image, or by the ID of a chip that it does not know."""

    def __init__(self):
        self.reader = PART.build()
        members = self.reader.signature.members
        super().__init__({
            "clk": In(1), "rx": In(1, init=1), "tx": Out(1, init=1),
            **{f"flash_{name}": members[name] for name in PINS},
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        sync.clk = self.clk
        m.submodules.reader = reader = self.reader
        m.submodules.phy = phy = UartPhy(DIVIDER)
        for name in PINS:
            inner, outer = getattr(reader, name), getattr(self, f"flash_{name}")
            m.d.comb += inner.eq(outer) if "_i" in name else outer.eq(inner)
        second, told = Signal(), Signal()
        sent = phy.i.valid & phy.i.ready
        word = reader.o.payload
        m.d.comb += [
            phy.rx.eq(self.rx), self.tx.eq(phy.tx), phy.o.ready.eq(1),
            reader.start.eq(phy.o.valid), reader.o.ready.eq(sent & second & ~reader.error),
            phy.i.valid.eq(reader.o.valid | (reader.error & ~told)),
            phy.i.payload.eq(Mux(reader.error, reader.id[8:16], Mux(second, word[8:], word[:8]))),
        ]  # fmt: skip
        with m.If(sent):
            m.d.sync += [second.eq(~second), told.eq(1)]
        return m


@pytest.mark.verilator
@pytest.mark.parametrize("jedec_id", [None, 0xEF4018], ids=["right", "wrong"])
def test_board_reads_its_flash(tmp_path, rng, jedec_id):
    contents = rng.integers(0, 256, 64).astype(np.uint8)
    image = tmp_path / "image.hex"
    image.write_text("\n".join(f"{byte:02x}" for byte in contents))
    ports = {"clk": ("input", 1), "rx": ("input", 1), "tx": ("output", 1)}
    top = padded_top("core", [FlashPads(PART)], ports)
    core = Core()
    signals = [core.clk, core.rx, core.tx, *(getattr(core, f"flash_{name}") for name in PINS)]
    verilog = to_verilog(core, name="core", ports=signals) + top + pads_verilog()
    model = FlashModel(FLASH, 24.0, image, 64, jedec_id=jedec_id)
    verilog = simulated_board(verilog, [model])
    with BoardTransport(
        verilog, clk_hz=CLK_HZ, link=Uart(CLK_HZ / DIVIDER), top="board_sim"
    ) as board:
        if jedec_id is not None:
            assert board.read(0.01) == bytes([jedec_id >> 8 & 0xFF])
            return
        board.advance(len(PART.startup))
        received = b""
        for _ in range(2):
            board.write(b"!")
            while chunk := board.read(0.001):
                received += chunk
        assert received == 2 * contents[6:46].tobytes()
