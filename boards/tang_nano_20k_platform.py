"""Resources of Sipeed's Tang Nano 20K, as amaranth-boards has those of other boards."""

from amaranth.build import Attrs, Clock, Pins, PinsN, Resource, Subsignal
from amaranth.vendor import GowinPlatform

__all__ = ["TangNano20kPlatform"]

LVCMOS33 = Attrs(IO_TYPE="LVCMOS33")


class TangNano20kPlatform(GowinPlatform):
    """Oscillator, buttons, LEDs, the UART of the BL616, the SPI flash, and the package's SDRAM."""

    part = "GW2AR-LV18QN88C8/I7"
    family = "GW2AR-18C"
    default_clk = "clk27"
    resources = [
        Resource("clk27", 0, Pins("4", dir="i"), Clock(27e6), LVCMOS33),
        Resource("button", 0, Pins("88", dir="i"), LVCMOS33),
        Resource("button", 1, Pins("87", dir="i"), LVCMOS33),
        *(Resource("led", n, PinsN(pin, dir="o"), LVCMOS33)
          for n, pin in enumerate(["15", "16", "17", "18", "19", "20"])),
        Resource(
            "uart", 0,
            Subsignal("rx", Pins("70", dir="i")),
            Subsignal("tx", Pins("69", dir="o")),
            Attrs(PULL_MODE="UP", IO_TYPE="LVCMOS33")),
        Resource(
            "spi_flash", 0,
            Subsignal("cs", PinsN("60", dir="o")),
            Subsignal("clk", Pins("59", dir="o")),
            Subsignal("copi", Pins("61", dir="o")),
            Subsignal("cipo", Pins("62", dir="i")),
            LVCMOS33),
        # places within the package, which nextpnr knows by these very names of the ports
        Resource(
            "sdram", 0,
            Subsignal("clk", Pins("O_sdram_clk", dir="o")),
            Subsignal("clk_en", Pins("O_sdram_cke", dir="o")),
            Subsignal("cs", PinsN("O_sdram_cs_n", dir="o")),
            Subsignal("we", PinsN("O_sdram_wen_n", dir="o")),
            Subsignal("ras", PinsN("O_sdram_ras_n", dir="o")),
            Subsignal("cas", PinsN("O_sdram_cas_n", dir="o")),
            Subsignal("ba", Pins(" ".join(f"O_sdram_ba[{n}]" for n in range(2)), dir="o")),
            Subsignal("a", Pins(" ".join(f"O_sdram_addr[{n}]" for n in range(11)), dir="o")),
            Subsignal("dq", Pins(" ".join(f"IO_sdram_dq[{n}]" for n in range(32)), dir="io")),
            Subsignal("dqm", Pins(" ".join(f"O_sdram_dqm[{n}]" for n in range(4)), dir="o")),
            LVCMOS33),
    ]
    connectors = []
