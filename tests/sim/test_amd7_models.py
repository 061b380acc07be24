"""Our models of AMD's blocks do what AMD's guides say of the modes in use."""

import re
from pathlib import Path

import numpy as np
import pyosys
import pytest
from block_models import check_with, design, outputs, verilog_model

from nnef_hw.errors import ToolError

pytestmark = pytest.mark.verilator

MEMORY, DSP = verilog_model("amd7_memory"), verilog_model("amd7_dsp")


# registers of A and B, C, D, sum and product, output; whether D, and C, take part
MODES = [
    (1, 0, 0, 0, 0, 1, 0, 0), (0, 0, 0, 0, 0, 1, 0, 0), (1, 0, 0, 0, 1, 1, 0, 0),
    (1, 1, 1, 1, 1, 1, 1, 1), (1, 1, 1, 0, 0, 1, 1, 1), (0, 1, 0, 1, 0, 0, 1, 1),
]  # fmt: skip


def block(number, module, mode):
    ab, c, d, ad, m, p, uses_d, uses_c = mode
    return f"""
    {module} #(
        .AREG({ab}), .BREG({ab}), .ACASCREG({ab}), .BCASCREG({ab}), .CREG({c}), .DREG({d}),
        .ADREG({ad}), .MREG({m}), .PREG({p}), .INMODEREG(0), .OPMODEREG(0), .ALUMODEREG(0),
        .CARRYINREG(0), .CARRYINSELREG(0), .USE_DPORT("{"TRUE" if uses_d else "FALSE"}")
    ) {module}{number} (
        .CLK(clk), .A(a), .B(b), .C(c), .D(d), .P({module}_p[48*{number} +: 48]),
        .OPMODE(7'b0{"11" if uses_c else "00"}0101), .INMODE(5'b00{uses_d}00), .ALUMODE(4'b0),
        .CARRYIN(1'b0), .CARRYINSEL(3'b0), .CEA1(1'b0), .CEB1(1'b0), .CEA2(e[0]), .CEB2(e[1]),
        .CEC(e[2]), .CED(e[3]), .CEAD(e[4]), .CEM(e[5]), .CEP(e[6]), .CEALUMODE(1'b0),
        .CECARRYIN(1'b0), .CECTRL(1'b0), .CEINMODE(1'b0), .RSTA(r[0]), .RSTB(r[1]), .RSTC(r[2]),
        .RSTD(r[3]), .RSTM(r[5]), .RSTP(r[6]), .RSTALLCARRYIN(1'b0), .RSTALUMODE(1'b0),
        .RSTCTRL(1'b0), .RSTINMODE(1'b0), .ACIN(30'b0), .BCIN(18'b0), .PCIN(48'b0),
        .CARRYCASCIN(1'b0), .MULTSIGNIN(1'b0)
    );"""


BOTH_HARNESS = """
#include "Vtop.h"
int main() {
    Vtop top;
    unsigned long long state = 1;
    auto draw = [&]() { state = state * 6364136223846793005ull + 1442695040888963407ull;
                        return state >> 16; };
    for (int step = 0; step < 20000; ++step) {
        top.a = draw() & 0x3fffffff; top.b = draw() & 0x3ffff; top.c = draw() & 0xffffffffffffull;
        top.d = draw() & 0x1ffffff;
        if (step % 7 == 0) { top.a = 0x3f000000; top.b = 0x20000; }
        top.e = draw() & draw() & 127 ^ 127;
        top.r = step % 9 == 0 ? draw() & draw() & 127 : 0;
        top.clk = 0; top.eval();
        top.clk = 1; top.eval();
        if (step > 4 && !top.same) { std::printf("step %d differs", step); return 1; }
    }
}
"""


def test_dsp_blocks_do_what_those_of_yosys_do(tmp_path):
    cells = Path(pyosys.__file__).parent / "share" / "xilinx" / "cells_sim.v"
    theirs = re.search(r"^module DSP48E1 .*?^endmodule$", cells.read_text(), re.DOTALL | re.M)[0]
    bits = 48 * len(MODES)
    body = "".join(
        block(n, module, mode) for module in ("DSP48E1", "theirs") for n, mode in enumerate(MODES)
    )
    verilog = f"""/* verilator lint_off PINMISSING */
    /* verilator lint_off COMBDLY */
    module top(input clk, input [29:0] a, input [17:0] b, input [47:0] c, input [24:0] d,
               input [6:0] e, r, output same);
    wire [{bits}-1:0] DSP48E1_p, theirs_p;
    assign same = DSP48E1_p == theirs_p;
    {body}
    endmodule
    {theirs.replace("module DSP48E1", "module theirs")}
    """
    check_with(BOTH_HARNESS, verilog + DSP, tmp_path)


class Memory:
    """Bytes of nine bits, as an access of some width sees them: the ninth bits are parity."""

    def __init__(self, size):
        self.data = [k * k // 7 & 1 for k in range(8 * size)]
        self.parity = [k * k // 5 & 1 for k in range(size)]

    def parameters(self):
        def lines(name, bits):
            for n in range(0, len(bits), 256):
                value = sum(bit << k for k, bit in enumerate(bits[n : n + 256]))
                yield f".{name}_{n // 256:02X}(256'h{value:x})"

        return ", ".join([*lines("INIT", self.data), *lines("INITP", self.parity)])

    def places(self, address, width):
        """Yield the bits of a word, lowest first, by a list and the place in it."""
        if width < 9:
            first = address // width * width
            return [(self.data, first + k) for k in range(width)]
        size = width // 9
        first = (address >> 3) // size * size
        return [
            place
            for byte in range(first, first + size)
            for place in [*((self.data, 8 * byte + k) for k in range(8)), (self.parity, byte)]
        ]

    def read(self, address, width):
        return sum(bits[n] << k for k, (bits, n) in enumerate(self.places(address, width)))

    def write(self, address, width, value, enables):
        for k, (bits, n) in enumerate(self.places(address, width)):
            if width <= 9 or enables >> k // 9 & 1:
                bits[n] = value >> k & 1


# kind, mode, widths of A (reads) and B (writes), what a port that writes shows of A
SIZES = {"RAMB18E1": (2048, 2), "RAMB36E1": (4096, 4)}
BLOCKS = [
    ("RAMB18E1", "TDP", 18, 9, "READ_FIRST"), ("RAMB18E1", "TDP", 9, 18, "READ_FIRST"),
    ("RAMB18E1", "TDP", 1, 4, "READ_FIRST"), ("RAMB18E1", "TDP", 2, 1, "READ_FIRST"),
    ("RAMB18E1", "SDP", 36, 36, "READ_FIRST"), ("RAMB18E1", "SDP", 9, 36, "READ_FIRST"),
    ("RAMB36E1", "TDP", 36, 18, "READ_FIRST"), ("RAMB36E1", "TDP", 9, 1, "READ_FIRST"),
    ("RAMB36E1", "SDP", 72, 72, "READ_FIRST"), ("RAMB36E1", "SDP", 36, 72, "READ_FIRST"),
    ("RAMB18E1", "SDP", 36, 36, "WRITE_FIRST"), ("RAMB18E1", "TDP", 4, 9, "NO_CHANGE"),
]  # fmt: skip


def ram(number, kind, mode, read, write, shows):
    size, port = SIZES[kind]
    top = "" if kind == "RAMB18E1" else "1'b1, "
    last = 13 if kind == "RAMB18E1" else 14
    high = write == 18 * port
    data = [f"d[{9 * k} +: 8]" for k in range(2 * port)]
    parity = [f"d[{9 * k + 8}]" for k in range(2 * port)]

    def listed(values):
        return "{" + ", ".join(reversed(values)) + "}"

    b = slice(port, None) if high else slice(0, port)
    reading = (
        [f"o__payload[{72 * number + 9 * k} +: 8]" for k in range(2 * port)],
        [f"o__payload[{72 * number + 9 * k + 8}]" for k in range(2 * port)],
    )
    return f"""
    {kind} #(
        .RAM_MODE("{mode}"), .READ_WIDTH_A({read}), .WRITE_WIDTH_B({write}),
        .WRITE_MODE_A("{shows}"), .WRITE_MODE_B("{shows}"), .INIT_A({9 * port}'h2a5),
        .SRVAL_A({9 * port}'h155), {Memory(size).parameters()}
    ) ram{number} (
        .CLKARDCLK(clk), .CLKBWRCLK(clk), .ENARDEN(re & i__valid), .ENBWREN(we & i__valid),
        .RSTRAMARSTRAM(reset), .RSTRAMB(1'b0), .WEA(0), .WEBWE(enables[{2 * port - 1}:0]),
        .ADDRARDADDR({{{top}ra[{last}:0]}}), .ADDRBWRADDR({{{top}wa[{last}:0]}}),
        .DIADI({listed(data[:port])}), .DIPADIP({listed(parity[:port])}),
        .DIBDI({listed(data[b])}), .DIPBDIP({listed(parity[b])}),
        .DOADO({listed(reading[0][:port])}), .DOPADOP({listed(reading[1][:port])}),
        .DOBDO({listed(reading[0][port:])}), .DOPBDOP({listed(reading[1][port:])})
    );"""


def test_memory(rng):
    body = """
    wire [71:0] d = i__payload[71:0];
    wire [14:0] wa = i__payload[86:72], ra = i__payload[101:87];
    wire we = i__payload[102], re = i__payload[103], reset = i__payload[104];
    wire [7:0] enables = i__payload[112:105];
    """
    for n, settings in enumerate(BLOCKS):
        body += ram(n, *settings)
        if settings[0] == "RAMB18E1":
            body += f"assign o__payload[{72 * n + 36} +: 36] = 0;"
    count = 3000
    data = [int.from_bytes(rng.bytes(9), "little") for _ in range(count)]
    addresses = rng.integers(0, 1 << 15, (count, 2))
    # half of the reads are of what was written just before or is written now
    again = rng.integers(0, 4, count)
    addresses[again == 1, 1] = np.roll(addresses[:, 0], 1)[again == 1]
    addresses[again == 2, 1] = addresses[again == 2, 0]
    flags = rng.integers(0, 2, (count, 2)).tolist()
    resets = (rng.integers(0, 8, count) == 0).tolist()
    enables = rng.integers(0, 256, count).tolist()
    inputs = np.array(
        [
            [
                d & (1 << 64) - 1,
                d >> 64
                | int(wa) << 8
                | int(ra) << 23
                | we << 38
                | re << 39
                | reset << 40
                | e << 41,
            ]
            for d, (wa, ra), (we, re), reset, e in zip(
                data, addresses, flags, resets, enables, strict=True
            )
        ],
        np.uint64,
    )
    found = outputs(design(MEMORY, body, i=113, o=72 * len(BLOCKS)), inputs)
    for n, (kind, mode, read, write, shows) in enumerate(BLOCKS):
        size, port = SIZES[kind]
        memory = Memory(size)
        mask = 8 * size - 1
        # the parity of a port's word is above its data, not between its bytes
        count = min(read, 9 * port) // 9
        starts = [
            sum((value >> 8 * k & 255) << 9 * k for k in range(count))
            if read >= 18
            else value & (1 << read) - 1
            for value in (0x2A5, 0x155)
        ]
        out = starts[0]
        for word, d, (wa, ra), (writes, reads), reset, e in zip(
            found, data, addresses.tolist(), flags, resets, enables, strict=True
        ):
            touched = set()
            if writes:
                for k, (bits, place) in enumerate(memory.places(wa & mask, write)):
                    if e >> (k // 9 if write > 9 else 0) & 1:
                        touched.add((id(bits), place))
            if reads:
                if reset:
                    out = starts[1]
                else:
                    out = memory.read(ra & mask, read)
                    for k, (bits, place) in enumerate(memory.places(ra & mask, read)):
                        # what the other port does not read first is wrong, never old or new
                        if shows != "READ_FIRST" and (id(bits), place) in touched:
                            out ^= 1 << k
            if writes and (write > 9 or e & 1):
                memory.write(wa & mask, write, d, e)
            assert word >> 72 * n & (1 << 72) - 1 == out, (n, kind, mode, read, write)


@pytest.mark.parametrize(
    ("cell", "mode"),
    [
        ("RAMB18E1", ".DOA_REG(1)"), ("RAMB36E1", '.RAM_EXTENSION_A("LOWER")'),
        ("RAMB36E1", '.EN_ECC_READ("TRUE")'), ("DSP48E1", ".AREG(2)"),
        ("DSP48E1", '.USE_SIMD("TWO24")'),
    ],
)  # fmt: skip
def test_other_modes_end_the_simulation(cell, mode):
    body = f"{cell} #({mode}) block (); assign o__payload = i__payload;"
    with pytest.raises(ToolError, match="a mode without a model"):
        outputs(design(MEMORY + DSP, body, i=2, o=2), np.ones(1, np.uint64))
