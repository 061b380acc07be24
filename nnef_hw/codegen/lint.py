"""What Verilator's lint (``-Wall``) says of the emitted Verilog, and why that is meant so."""

__all__ = ["WAIVERS"]

WAIVERS = {
    "DECLFILENAME": "all modules of a design are in one file",
    "PINCONNECTEMPTY": "an output that nobody reads is left open by name",
    "PROCASSINIT": "registers begin with what their reset gives them, as FPGAs configure them",
    "UNUSEDPARAM": "primitives have parameters that only some devices' cells need",
    "UNUSEDSIGNAL": "a part takes a stream as a whole, and may need no `last` and not every bit",
    "WIDTHEXPAND": "operands are extended to the width of the sum that they are assigned to",
    "WIDTHTRUNC": "what is assigned has as many bits as are needed of a sum, by its bounds",
}
"""Rules and reasons; nothing else may be warned of. Icarus warns of nothing."""
