"""Write docs/registers.md from the table of registers."""

from pathlib import Path

from nnef_hw.registers.accelerator import accelerator_registers
from nnef_hw.registers.page import access_table, register_table

TARGET = Path(__file__).resolve().parents[2] / "docs" / "registers.md"
PAGE = """\
# Registers

What software finds on the bus of an accelerator that was built with `--bus`
([own designs](howto/own-design.md)): addresses in bytes, words of 32 bits with the lowest byte
first. The registers from `input_free` on are there with `--bus-data registers`. This page is
written by `scripts/generate/register_table.py` from the same table as the hardware,
`ip/registers.h`, the CMSIS-SVD and the SystemRDL of a build; `hash` differs from build to build.

{registers}
{accesses}
Writes keep the bytes that are not enabled (`wstrb`, `sel`). An access without a register, or that
cannot be done now, is answered with `SLVERR` or `err`, and does nothing.

## Why the table is ours

Generators were looked at. PeakRDL-regblock has both buses, but makes SystemVerilog with packages
and structs in its ports, while all else here is Verilog for any tool; what PyPI has of amaranth-soc
is empty; LiteX's CSRs need LiteX. A table of fourteen registers in Python gives hardware in the
language of the rest, and formats that their own tools read: `systemrdl-compiler` and `cmsis-svd`
check them in the tests. From the SystemRDL, PeakRDL makes C++, Rust, UVM, HTML or IP-XACT.
"""


def make_table() -> str:
    """Return the page."""
    registers = accelerator_registers("net", "an accelerator", bytes(32), with_data=True)
    return PAGE.format(registers=register_table(registers), accesses=access_table())


if __name__ == "__main__":
    TARGET.write_text(make_table())
