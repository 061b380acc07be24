"""Write docs/registers.md from the table of registers."""

from pathlib import Path

from nnef_hw.registers.accelerator import accelerator_registers
from nnef_hw.registers.page import access_table, register_table

TARGET = Path(__file__).resolve().parents[2] / "docs" / "registers.md"
PAGE = """\
# Registers

An accelerator that was built with `--bus` has these registers ([in a design of your
own](howto/own-design.md)). Addresses count bytes; words have 32 bits, the lowest byte first. The
registers from `input_free` to `result` are there with `--bus-data registers`. With `--bus-program`
there are `program_left` and `program`, at the next free addresses, and `control.load`. The value of
`hash` differs from build to build.

`scripts/generate/register_table.py` writes this page. The hardware, `ip/registers.h`, the CMSIS-SVD
and the SystemRDL of a build are made of the same table.

{registers}
{accesses}
Writes keep the bytes that are not enabled (`wstrb`, `sel`). An access without a register, or that
cannot be done now, is answered with `SLVERR` or `err`, and does nothing.

## Why the table is ours

Other generators were looked at. PeakRDL-regblock has both buses, but makes SystemVerilog with
packages and structs in its ports, while all else here is Verilog for any tool. PyPI's package of
amaranth-soc is empty. LiteX's CSRs need LiteX. A table of sixteen registers in Python gives
hardware in the language of the rest, and formats that other tools read: `systemrdl-compiler` and
`cmsis-svd` check them in the tests. From the SystemRDL, PeakRDL makes C++, Rust, UVM, HTML or
IP-XACT.
"""


def make_table() -> str:
    """Return the page."""
    registers = accelerator_registers(
        "net", "an accelerator", bytes(32), with_data=True, with_program=True
    )
    return PAGE.format(registers=register_table(registers), accesses=access_table())


if __name__ == "__main__":
    TARGET.write_text(make_table())
