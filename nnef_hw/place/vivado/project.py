"""Text of a Vivado project: a script that makes and runs it, and constraints."""

from __future__ import annotations

from collections.abc import Mapping

from nnef_hw.hardware.families import Pin

__all__ = ["project_script", "vivado_constraints"]

SCRIPT = """\
# Makes a Vivado project in the folder vivado, and with it {top}.bit:
#   vivado -mode batch -source {top}.tcl
# and for the project alone, to be opened in Vivado:
#   vivado -mode batch -source {top}.tcl -tclargs project
# The clock that is reached stands in vivado_timing.txt, what is used in vivado_utilization.txt.
cd [file dirname [file normalize [info script]]]
create_project -force {top} vivado -part {part}
add_files -norecurse {{{sources}}}
add_files -norecurse -fileset constrs_1 {{{constraints}}}
set_property verilog_define {{{define}=1}} [get_filesets sources_1]
set_property top {top} [get_filesets sources_1]
set_property strategy Performance_Explore [get_runs impl_1]
update_compile_order -fileset sources_1
if {{[lindex $argv 0] eq "project"}} {{
    return
}}
launch_runs impl_1 -to_step write_bitstream -jobs 2
wait_on_run impl_1
if {{[get_property PROGRESS [get_runs impl_1]] ne "100%"}} {{
    error "{top}: [get_property STATUS [get_runs impl_1]], see vivado/{top}.runs"
}}
open_run impl_1
report_timing_summary -file vivado_timing.txt
report_utilization -file vivado_utilization.txt
file copy -force vivado/{top}.runs/impl_1/{top}.bit {top}.bit
set slack [get_property SLACK [get_timing_paths -max_paths 1]]
if {{$slack < 0}} {{
    puts "{top}: the clock of {mhz:g} MHz is missed by [expr {{-$slack}}] ns"
}} else {{
    puts "{top}: the clock of {mhz:g} MHz is met with [expr {{$slack}}] ns to spare"
}}
"""


def project_script(
    *, top: str, part: str, sources: str, constraints: str, define: str, frequency_mhz: float
) -> str:
    """Return a script (Tcl) that makes the project, and from it a bitstream and reports."""
    return SCRIPT.format(
        top=top, part=part, sources=sources, constraints=constraints, define=define,
        mhz=frequency_mhz,
    )  # fmt: skip


def vivado_constraints(pins: Mapping[str, Pin], input_mhz: float) -> str:
    """Return constraints (XDC): the pins by port, and the clock at port ``clk``.

    Vivado derives the clock behind a clock generator from that.
    """
    lines = []
    for port, pin in pins.items():
        attributes = {"PACKAGE_PIN": pin.site, **pin.attributes}
        listed = " ".join(f"{name} {value}" for name, value in attributes.items())
        lines.append(f"set_property -dict {{{listed}}} [get_ports {{{port}}}]")
    lines += [
        f"create_clock -name clk -period {1000 / input_mhz:.3f} [get_ports {{clk}}]",
        "set_property CFGBVS VCCO [current_design]",
        "set_property CONFIG_VOLTAGE 3.3 [current_design]",
    ]
    return "\n".join(lines) + "\n"
