"""A whole board in simulation, behind the pins of its link.

What runs is the top that goes to place and route; only the clock generator is another one.
"""

import contextlib
import struct
import subprocess
import time
from pathlib import Path

import numpy as np

from nnef_hw.boards import interfaces
from nnef_hw.boards.interfaces import CLOCK, DEFAULT_LINK, Direction
from nnef_hw.errors import CheckError, ToolError
from nnef_hw.sim.verilator import build_model
from nnef_hw.system.process_group import start_process

__all__ = ["PLL_MODELS", "BoardTransport"]

# The clock behind the PLL is its input, or that of the module around the board which has both.
PLL_MODELS = """
`ifdef NNEF_HW_OWN_CLOCK
`define NNEF_HW_PLL(clk_in) board_clocks.core_clk
`else
`define NNEF_HW_PLL(clk_in) clk_in
`endif

module SB_PLL40_PAD (
    input PACKAGEPIN, RESETB, BYPASS,
    output PLLOUTGLOBAL, LOCK
);
    parameter FEEDBACK_PATH = "SIMPLE";
    parameter [3:0] DIVR = 0;
    parameter [6:0] DIVF = 0;
    parameter [2:0] DIVQ = 0, FILTER_RANGE = 0;
    assign PLLOUTGLOBAL = PACKAGEPIN;
    nnef_hw_pll_lock lock (.clk(PACKAGEPIN), .enable(RESETB & ~BYPASS), .locked(LOCK));
endmodule

module SB_PLL40_2_PAD (
    input PACKAGEPIN, RESETB, BYPASS,
    output PLLOUTGLOBALA, PLLOUTGLOBALB, LOCK
);
    parameter FEEDBACK_PATH = "SIMPLE";
    parameter [3:0] DIVR = 0;
    parameter [6:0] DIVF = 0;
    parameter [2:0] DIVQ = 0, FILTER_RANGE = 0;
    assign PLLOUTGLOBALA = PACKAGEPIN;
    assign PLLOUTGLOBALB = `NNEF_HW_PLL(PACKAGEPIN);
    nnef_hw_pll_lock lock (.clk(PACKAGEPIN), .enable(RESETB & ~BYPASS), .locked(LOCK));
endmodule

module SB_PLL40_CORE (
    input REFERENCECLK, RESETB, BYPASS,
    output PLLOUTGLOBAL, LOCK
);
    parameter FEEDBACK_PATH = "SIMPLE";
    parameter [3:0] DIVR = 0;
    parameter [6:0] DIVF = 0;
    parameter [2:0] DIVQ = 0, FILTER_RANGE = 0;
    assign PLLOUTGLOBAL = `NNEF_HW_PLL(REFERENCECLK);
    nnef_hw_pll_lock lock (.clk(REFERENCECLK), .enable(RESETB & ~BYPASS), .locked(LOCK));
endmodule

module EHXPLLL (
    input CLKI, CLKFB, RST, STDBY, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG,
    input PLLWAKESYNC, ENCLKOP, ENCLKOS,
    output CLKOP, CLKOS, LOCK
);
    parameter PLLRST_ENA = "", INTFB_WAKE = "", STDBY_ENABLE = "", DPHASE_SOURCE = "";
    parameter FEEDBK_PATH = "", OUTDIVIDER_MUXA = "", OUTDIVIDER_MUXB = "";
    parameter CLKOP_ENABLE = "", CLKOS_ENABLE = "";
    parameter CLKI_DIV = 1, CLKFB_DIV = 1, CLKOP_DIV = 1, CLKOS_DIV = 1;
    parameter CLKOP_CPHASE = 0, CLKOP_FPHASE = 0, CLKOS_CPHASE = 0, CLKOS_FPHASE = 0;
    assign CLKOP = CLKI;
    assign CLKOS = CLKOS_ENABLE == "ENABLED" & `NNEF_HW_PLL(CLKI);
    nnef_hw_pll_lock lock (.clk(CLKI), .enable(~RST & ~STDBY), .locked(LOCK));
endmodule

module rPLL (
    input CLKIN, CLKFB, RESET, RESET_P,
    input [5:0] FBDSEL, IDSEL, ODSEL,
    input [3:0] PSDA, DUTYDA, FDLY,
    output CLKOUT, LOCK
);
    parameter FCLKIN = "", CLKFB_SEL = "";
    parameter DYN_IDIV_SEL = "", DYN_FBDIV_SEL = "", DYN_ODIV_SEL = "";
    parameter IDIV_SEL = 0, FBDIV_SEL = 0, ODIV_SEL = 8;
    assign CLKOUT = `NNEF_HW_PLL(CLKIN);
    nnef_hw_pll_lock lock (.clk(CLKIN), .enable(~RESET & ~RESET_P), .locked(LOCK));
endmodule

module nnef_hw_pll_lock (input clk, enable, output locked);
    reg [6:0] count = 0;
    always @(posedge clk)
        if (!enable) count <= 0;
        else if (!locked) count <= count + 1;
    assign locked = &count;
endmodule
"""

_HARNESS = Path(__file__).with_suffix(".cpp")
_FAR_END = Path(interfaces.__file__).with_name("far_ends") / "far_end.h"
_ONCE = {"#pragma once", '#include "far_end.h"'}
_DIRECTIONS = {Direction.INPUT: "in", Direction.OUTPUT: "out", Direction.BOTH: "out"}
_COMMAND = struct.Struct("<2Q")
_ANSWER = struct.Struct("<3Q")
_SIZE = struct.Struct("<Q")
# Seconds for a simulation to end by itself, which it does unless it was interrupted.
_PATIENCE = 0.5


def _prelude(link, others):
    """Return C++ of the far ends: all in one text, since it is compiled elsewhere."""
    paths = dict.fromkeys([_FAR_END, link.path, *(other.path for other in others)])
    texts = [path.read_text() for path in paths]
    lines = [line for text in texts for line in text.splitlines() if line not in _ONCE]
    lines.append(f"using Link = nnef_hw::{link.name};")
    lines.append(f"constexpr size_t OTHERS = {len(others)};")
    lines.append("static std::vector<std::unique_ptr<nnef_hw::FarEnd>> make_others(")
    lines.append("        [[maybe_unused]] const std::vector<std::vector<double>>& numbers) {")
    lines.append("    std::vector<std::unique_ptr<nnef_hw::FarEnd>> others;")
    for n, other in enumerate(others):
        made = f"std::make_unique<nnef_hw::{other.name}>(numbers[{n}])"
        lines.append(f"    others.push_back({made});")
    return "\n".join([*lines, "    return others;", "}", ""])


def _with_clocks(top, ports):
    """Return Verilog of a module around a board whose accelerator has a clock of its own."""
    directions = {"in": "input", "out": "output"}
    listed = "".join(
        f",\n    {directions[way]} [{width - 1}:0] {name}" for name, (way, width) in ports.items()
    )
    wired = "".join(f", .{name}({name})" for name in ports)
    return f"""
module board_clocks (
    input core_clk{listed}
);
    // pins that nobody looks at stay open
    /* verilator lint_off PINMISSING */
    {top} board ({wired[2:]});
    /* verilator lint_on PINMISSING */
endmodule
"""


class BoardTransport:
    """Carries a host's bytes to the pins of a simulated board, and back.

    A transport as :class:`nnef_hw.host.link.Host` wants it. Time passes in :meth:`write`,
    :meth:`read` and :meth:`advance` only, and a second is ``clk_hz`` cycles however long they take.
    To be closed, or used as a context manager.

    Parameters
    ----------
    verilog : str
        Verilog of the board's top, complete but for the PLL.
    clk_hz : float
        Clock of the board: the oscillator's, or the one behind the PLL for all.
    core_hz : float, optional
        Clock behind the PLL, where that is the accelerator's own; any, and with any phase.
    link : HostLink
        The host's end of the link. The rate of a UART need not divide the clock, and may be a
        little off the board's as it is in reality.
    others : Sequence[Interface]
        Sources and sinks whose other ends take part.
    numbers : Mapping[str, Sequence[float]], optional
        What other ends are made with in place of their own arguments, by the interface's name: the
        samples that a microphone hears.
    top : str
        Name of the module; has at least the ports ``clk``, and the pins of link and others.
    cache_dir : Path, optional
        Where compiled models are kept; the user's cache by default.

    Attributes
    ----------
    cycles : int
        Cycles since power-on.
    seconds : float
        Real time that these cycles took.
    """

    def __init__(
        self,
        verilog,
        *,
        clk_hz,
        core_hz=None,
        link=DEFAULT_LINK,
        others=(),
        numbers=None,
        top="board_top",
        cache_dir=None,
    ):
        self.others = tuple(others)
        self._others_received = [b"" for _ in self.others]
        far_end = link.far_end(clk_hz)
        self._clk_hz = clk_hz
        self._received = b""
        self.cycles = 0
        self.seconds = 0.0
        pins = {CLOCK: ("in", 1)}
        for interface in (link, *self.others):
            pins |= {
                name: (_DIRECTIONS[use.direction], use.width)
                for name, use in interface.pins.items()
            }
            pins |= {
                f"{name}_far": ("in", use.width)
                for name, use in interface.pins.items()
                if use.direction is Direction.BOTH
            }
        ports = {name: way for name, (way, _) in pins.items()}
        ends = [interface.far_end(clk_hz) for interface in self.others]
        given = [
            np.asarray((numbers or {}).get(interface.name, end.arguments), "<f8")
            for interface, end in zip(self.others, ends, strict=True)
        ]
        prelude = _prelude(far_end, ends)
        text, defines, ratio = verilog + PLL_MODELS, [], 0.0
        if core_hz is not None:
            text, top, ratio = text + _with_clocks(top, pins), "board_clocks", core_hz / clk_hz
            ports["core_clk"] = "in"
            defines.append("NNEF_HW_OWN_CLOCK")
            prelude += "#define OWN_CLOCK\n"
        model = build_model(
            text, top=top, harness=_HARNESS, prelude=prelude, ports=ports, defines=defines,
            cache_dir=cache_dir,
        )  # fmt: skip
        self._process = start_process(
            [model.executable, repr(ratio), *map(repr, far_end.arguments)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        for one in given:
            self._process.stdin.write(_SIZE.pack(len(one)) + one.tobytes())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def write(self, data):
        """Send all bytes; returns when the last one's stop bit has passed.

        Raises
        ------
        CheckError
            When the board has sent a byte without a start or a stop bit.
        ToolError
            When the simulation has ended.
        """
        self._received += self._exchange(data, 0)

    def read(self, timeout):
        """Bytes received, as soon as there are any; none after ``timeout`` seconds of silence.

        Raises
        ------
        CheckError, ToolError
            The same as for :meth:`write`.
        """
        received, self._received = self._received, b""
        return received or self._exchange(b"", round(timeout * self._clk_hz))

    def received(self, number=0):
        """Bytes that the far end of one of the others has received since this was asked."""
        data, self._others_received[number] = self._others_received[number], b""
        return data

    def advance(self, cycles):
        """Let the board run; what it sends meanwhile is read later.

        Raises
        ------
        CheckError, ToolError
            The same as for :meth:`write`.
        """
        end = self.cycles + cycles
        while self.cycles < end:
            self._received += self._exchange(b"", end - self.cycles)

    @property
    def has_sent(self):
        """Whether there are bytes that :meth:`read` has not returned yet."""
        return bool(self._received)

    def close(self):
        """End the simulation, whatever it is doing."""
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _exchange(self, data, cycles):
        """Send bytes, then run until one is received, for so many cycles at most."""
        if self._process.stdin.closed:
            raise ToolError("simulation of the board is closed")
        begin = time.perf_counter()
        try:
            self._process.stdin.write(_COMMAND.pack(len(data), cycles) + data)
            self._process.stdin.flush()
            answer = self._process.stdout.read(_ANSWER.size)
        except BrokenPipeError:
            answer = b""
        if len(answer) != _ANSWER.size:
            raise ToolError(f"simulation of the board ended with status {self._process.wait()}")
        self.cycles, broken, count = _ANSWER.unpack(answer)
        received = self._process.stdout.read(count)
        for n in range(len(self.others)):
            [size] = _SIZE.unpack(self._process.stdout.read(_SIZE.size))
            self._others_received[n] += self._process.stdout.read(size)
        self.seconds += time.perf_counter() - begin
        if broken:
            raise CheckError(
                f"board sent a byte without start or stop bit before cycle {self.cycles}"
            )
        return received
