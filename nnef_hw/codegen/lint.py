"""Messages of Verilator's lint (``-Wall``) on the emitted Verilog, and why each is meant so."""

__all__ = ["WAIVERS", "lint_waivers"]

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


def lint_waivers(files: tuple[str, ...]) -> str:
    """Return a configuration file for Verilator that turns these rules off in some files."""
    lines = ["// What Verilator's -Wall says of this Verilog is meant so.", "`verilator_config"]
    for rule, reason in WAIVERS.items():
        lines += [f"// {reason}", *(f'lint_off -rule {rule} -file "*{file}"' for file in files)]
    return "\n".join(lines) + "\n"
