"""Modules of primitives.v as behaviour, and as the cells of each family that they instantiate."""

import re
from pathlib import Path

import pyosys
import pytest
from block_models import check_with
from sweeps import covering

import nnef_hw.sim
from nnef_hw.hardware.devices import find_device
from nnef_hw.hardware.families import FAMILIES
from nnef_hw.place.toolchain import toolchain_of
from nnef_hw.rtl.base.primitives import (
    ENGINE_PRIMITIVES,
    PACKED_PRIMITIVES,
    PRIMITIVES,
    WIDE_PRIMITIVES,
)

MODELS = Path(nnef_hw.sim.__file__).parent / "models"
YOSYS_CELLS = Path(pyosys.__file__).parent / "share"
MACROS = {
    "behaviour": [],
    "ecp5": ["NNEF_HW_ECP5", "YOSYS"],
    "gowin": ["NNEF_HW_GOWIN"],
    "arora": ["NNEF_HW_ARORA"],
    "amd7": ["NNEF_HW_AMD7"],
    "ice40": ["NNEF_HW_ICE40", "ICE40_DEFAULT_ASSIGNMENT_0=", "ICE40_DEFAULT_ASSIGNMENT_1="],
}
CELLS = {
    "behaviour": ("", []),
    "ecp5": ("ecp5/*_sim.vh", ["CCU2C", "LUT2", "LUT4"]),
    "gowin": ("gowin/cells_sim.v", ["ALU"]),
    "arora": ("gowin/cells_sim.v", ["ALU"]),
    "amd7": ("xilinx/cells_sim.v", ["CARRY4", "LUT6_2"]),
    "ice40": ("ice40/cells_sim.v", ["SB_CARRY", "SB_LUT4"]),
}
OURS = {family.name: toolchain_of(family).models.ours for family in FAMILIES}
SHAPES = [(8, 8), (7, 5), (4, 3), (3, 8), (1, 6)]
TOP = """
module top (
    input [{digits}-1:0] digits, input [{width}-1:0] operand, input [31:0] base,
    output signed [31:0] product, sum, selected, masked, inverted, difference, restarted, chained,
    output looked_up
);
    wire signed [{digits}+{width}-1:0] exact;
    assign product = exact;
    nnef_hw_lut_product #(.DIGITS({digits}), .SIGNED({signed}), .WIDTH({width}))
        a (.digits(digits), .operand(operand), .product(exact));
    nnef_hw_multiply_add #(.DIGITS({digits}), .WIDTH({width}), .SUM(32))
        b (.select(1'b0), .base(base), .other(0), .digits(digits), .operand(operand), .sum(sum));
    nnef_hw_multiply_add #(.DIGITS({digits}), .WIDTH({width}), .SUM(32), .SELECTED(1))
        selecting (.select(base[0]), .base(base), .other(~base * 3), .digits(digits),
                   .operand(operand), .sum(selected));
    nnef_hw_masked_sum #(.WIDTH(32))
        c (.a(digits[0]), .b(base), .c(operand[0]), .d(product), .sum(masked));
    nnef_hw_masked_sum #(.INVERTED(1), .WIDTH(32))
        d (.a(digits[0]), .b(base), .c(operand[0]), .d(product), .sum(inverted));
    nnef_hw_masked_difference #(.WIDTH(32))
        g (.taken(digits[0]), .less(base), .base(product), .difference(difference));
    nnef_hw_lut #(.TABLE(16'h6ca1))
        h (.index(base[3:0]), .value(looked_up));
    nnef_hw_restarted_sum #(.WIDTH(32))
        e (.keep(digits[0]), .kept(base), .added(product), .sum(restarted));
    nnef_hw_chained_multiply_add #(.DIGITS({digits}), .WIDTH({width}), .SUM(32))
        f (.base(base), .digits(digits), .operand(operand), .sum(chained));
endmodule
"""
HARNESS = """
#include "Vtop.h"
static int sign_extend(unsigned value, int bits) {{
    return int(value << (32 - bits)) >> (32 - bits);
}}
int main() {{
    Vtop top;
    unsigned base = 1;
    for (unsigned d = 0; d < 1u << {digits}; ++d)
        for (unsigned w = 0; w < 1u << {width}; ++w) {{
            base = base * 1664525u + 1013904223u;
            top.digits = d; top.operand = w; top.base = base;
            top.eval();
            int digits = {signed} ? sign_extend(d, {digits}) : int(d);
            unsigned product = unsigned(digits * sign_extend(w, {width}));
            unsigned grown = base + unsigned(int(d) * sign_extend(w, {width}));
            unsigned other = grown - base + (base & 1 ? ~base * 3 : base);
            unsigned kept = d & 1 ? base : 0, added = w & 1 ? product : 0;
            if (top.product != product || top.sum != grown || top.selected != other
                || top.masked != added + kept || top.inverted != added - kept
                || top.difference != product - kept || top.restarted != product + kept
                || top.chained != grown || top.looked_up != (0x6ca1 >> (base & 15) & 1)) {{
                std::printf("wrong for digits %u, operand %u, base %u", d, w, base);
                return 1;
            }}
        }}
}}
"""


def cell_models(pattern, names):
    """Return modules of yosys's own models."""
    text = "".join(path.read_text() for path in sorted(YOSYS_CELLS.glob(pattern or "none")))
    return "".join(
        re.search(rf"^ *module {name}\b.*?^endmodule$", text, re.DOTALL | re.MULTILINE)[0] + "\n"
        for name in names
    )


def check_blocks(verilog, harness, family, folder):
    """Run a harness on Verilog with a family's DSP blocks: it says nothing unless all is right."""
    verilog += "".join((MODELS / name).read_text() for name in OURS.get(family, ()))
    verilog += cell_models(*CELLS[family])
    check_with(harness, verilog, folder, MACROS[family])


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("digits", "width", "family", "signed"),
    [
        *covering(SHAPES, [(family, signed) for family in MACROS for signed in (0, 1)]),
        # the only family with other cells for two digits with a sign
        (4, 3, "amd7", 1),
    ],
)
def test_every_operand(digits, width, family, signed, tmp_path):
    values = {"digits": digits, "width": width, "signed": signed}
    verilog = TOP.format(**values) + PRIMITIVES.read_text() + ENGINE_PRIMITIVES.read_text()
    verilog += cell_models(*CELLS[family])
    check_with(HARNESS.format(**values), verilog, tmp_path, MACROS[family])


PAIR = """
/* verilator lint_off PINMISSING */
module top (input clk, input [31:0] operands, output [31:0] plain, signed_x);
    nnef_hw_product_pair #(.X_SIGNED(1'b0)) a (
        .clk(clk), .x0(operands[7:0]), .x1(operands[15:8]), .w0(operands[23:16]),
        .w1(operands[31:24]), .p0(plain[15:0]), .p1(plain[31:16]));
    nnef_hw_product_pair #(.X_SIGNED(1'b1)) b (
        .clk(clk), .x0(operands[7:0]), .x1(operands[15:8]), .w0(operands[23:16]),
        .w1(operands[31:24]), .p0(signed_x[15:0]), .p1(signed_x[31:16]));
endmodule
"""
PAIR_HARNESS = """
#include "Vtop.h"
static unsigned pair(unsigned operands, bool is_signed) {
    unsigned result = 0;
    for (int k = 0; k < 2; ++k) {
        unsigned x = operands >> 8 * k & 255, w = operands >> (16 + 8 * k) & 255;
        int product = (is_signed ? int(static_cast<signed char>(x)) : int(x))
            * int(static_cast<signed char>(w));
        result |= (unsigned(product) & 0xffff) << 16 * k;
    }
    return result;
}
int main() {
    Vtop top;
    unsigned seen[3] = {0, 0, 0}, operands = 1;
    for (int step = 0; step < 70000; ++step) {
        operands = step < 65536 ? unsigned(step & 255) * 0x101u | unsigned(step >> 8) * 0x1010000u
            : operands * 1664525u + 1013904223u;
        top.operands = operands;
        top.clk = 0; top.eval();
        top.clk = 1; top.eval();
        seen[1] = seen[0]; seen[0] = operands;
        bool right = top.plain == pair(seen[1], false) && top.signed_x == pair(seen[1], true);
        if (step > 2 && !right) {
            std::printf("wrong for %08x: %08x, %08x", seen[1], top.plain, top.signed_x);
            return 1;
        }
    }
}
"""


@pytest.mark.verilator
@pytest.mark.parametrize("family", [family for family in CELLS if family != "ice40"])
def test_product_pairs(family, tmp_path):
    """Of the models of DSP blocks that are ours; those of yosys run in the netlists of networks."""
    check_blocks(PAIR + PRIMITIVES.read_text(), PAIR_HARNESS, family, tmp_path)


NARROW = """
/* verilator lint_off PINMISSING */
module top (input clk, input [15:0] codes, input [{bits}-1:0] w0, w1,
            output [31:0] plain, signed_x);
    nnef_hw_product_pair #(.X_SIGNED(1'b0), .W_BITS({bits})) a (
        .clk(clk), .x0(codes[7:0]), .x1(codes[15:8]), .w0($signed(w0)),
        .w1($signed(w1)), .p0(plain[15:0]), .p1(plain[31:16]));
    nnef_hw_product_pair #(.X_SIGNED(1'b1), .W_BITS({bits})) b (
        .clk(clk), .x0(codes[7:0]), .x1(codes[15:8]), .w0($signed(w0)),
        .w1($signed(w1)), .p0(signed_x[15:0]), .p1(signed_x[31:16]));
endmodule
"""
NARROW_HARNESS = """
#include "Vtop.h"
int main() {{
    Vtop top;
    const int half = 1 << ({bits} - 1), count = 2 * half;
    const unsigned steps = 65536u * count * count;
    // what the registers take in a step comes out of them after the next one
    for (unsigned step = 0, seen = 0; step <= steps; seen = step++) {{
        top.codes = step & 65535;
        top.w0 = step >> 16 & (count - 1); top.w1 = (step >> 16) / count & (count - 1);
        top.clk = 0; top.eval();
        top.clk = 1; top.eval();
        if (step < 1) continue;
        for (int k = 0; k < 2; ++k) {{
            const int code = seen >> 8 * k & 255;
            int weight = (seen >> 16) / (k ? count : 1) % count;
            weight -= weight >= half ? count : 0;
            const int plain = short(top.plain >> 16 * k), wrapped = short(top.signed_x >> 16 * k);
            if (plain != code * weight || wrapped != static_cast<signed char>(code) * weight) {{
                std::printf("wrong for code %d, weight %d: %d, %d", code, weight, plain, wrapped);
                return 1;
            }}
        }}
    }}
}}
"""


@pytest.mark.verilator
def test_narrow_weights_share_a_dsp_block(tmp_path):
    """Every two codes and every two weights, in the one family whose block takes both."""
    bits = find_device("xc7a35t").family.paired_weight_bits
    verilog = NARROW.format(bits=bits) + PRIMITIVES.read_text()
    check_blocks(verilog, NARROW_HARNESS.format(bits=bits), "amd7", tmp_path)


SUMS = """
/* verilator lint_off PINMISSING */
module top (input clk, input [31:0] operands, output [17:0] product);
    nnef_hw_product_of_sums #(.WIDTH(9)) a (
        .clk(clk), .x0(operands[7:0]), .x1(operands[15:8]), .w0(operands[23:16]),
        .w1(operands[31:24]), .p(product));
endmodule
"""
SUMS_HARNESS = """
#include "Vtop.h"
int main() {
    Vtop top;
    unsigned seen[3] = {0, 0, 0}, operands = 1;
    for (int step = 0; step < 100000; ++step) {
        operands = operands * 1664525u + 1013904223u;
        // the ends of every range, each with each other
        if (step < 256)
            for (int k = 0; k < 4; ++k)
                reinterpret_cast<signed char *>(&operands)[k] =
                    "\x80\x7f\xff\x01"[step >> 2 * k & 3];
        top.operands = operands;
        top.clk = 0; top.eval();
        top.clk = 1; top.eval();
        seen[2] = seen[1]; seen[1] = seen[0]; seen[0] = operands;
        const auto *codes = reinterpret_cast<signed char *>(&seen[2]);
        const int expected = (codes[0] + codes[3]) * (codes[1] + codes[2]);
        if (step > 3 && top.product != (unsigned(expected) & 0x3ffff)) {
            std::printf("wrong for %08x: %05x", seen[2], top.product);
            return 1;
        }
    }
}
"""


@pytest.mark.verilator
@pytest.mark.parametrize("family", [family for family in CELLS if family != "ice40"])
def test_products_of_sums(family, tmp_path):
    check_blocks(SUMS + PRIMITIVES.read_text(), SUMS_HARNESS, family, tmp_path)


PACKED = """
/* verilator lint_off PINMISSING */
module top (input clk, input [31:0] operands, output [35:0] product);
    nnef_hw_packed_product #(.WIDTH(36)) a (
        .clk(clk), .x0(operands[7:0]), .x1(operands[15:8]), .w0(operands[19:16]),
        .w1(operands[23:20]), .v0(operands[27:24]), .v1(operands[31:28]), .p(product));
endmodule
"""
PACKED_HARNESS = """
#include "Vtop.h"
int main() {
    Vtop top;
    const unsigned codes[] = {0x80, 0x7f, 0, 0xff}, weights[] = {9, 7, 0, 15};
    unsigned long long seen[3] = {0, 0, 0}, state = 1;
    for (int step = 0; step < 200000; ++step) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned operands = state >> 32;
        if (step < 4096) {  // the ends of every range, each with each other
            operands = codes[step & 3] | codes[step >> 2 & 3] << 8;
            for (int k = 0; k < 4; ++k)
                operands |= weights[step >> (4 + 2 * k) & 3] << (16 + 4 * k);
        }
        for (int k = 16; k < 32; k += 4)  // a weight of -8 is another one
            if ((operands >> k & 15) == 8) operands ^= 4u << k;
        top.operands = operands;
        top.clk = 0; top.eval();
        top.clk = 1; top.eval();
        seen[2] = seen[1]; seen[1] = seen[0]; seen[0] = operands;
        const long long x0 = static_cast<signed char>(seen[2]);
        const long long x1 = static_cast<signed char>(seen[2] >> 8);
        long long w[4];
        for (int k = 0; k < 4; ++k) {
            w[k] = seen[2] >> (16 + 4 * k) & 15;
            w[k] -= w[k] > 7 ? 16 : 0;
        }
        const long long expected = (x0 + w[1] + 16384 * w[3]) * (x1 + w[0] + 16384 * w[2]);
        if (step > 3 && top.product != (expected & 0xfffffffff)) {
            std::printf("wrong for %08x: %09llx", unsigned(seen[2]), (long long) top.product);
            return 1;
        }
    }
}
"""


@pytest.mark.verilator
@pytest.mark.parametrize(
    "family", ["behaviour", *(x.name for x in FAMILIES if x.packed_weight_bits)]
)
def test_packed_products(family, tmp_path):
    check_blocks(
        PACKED + PRIMITIVES.read_text() + PACKED_PRIMITIVES.read_text(),
        PACKED_HARNESS,
        family,
        tmp_path,
    )


WIDE = """
/* verilator lint_off PINMISSING */
module top (input clk, enable, input [31:0] operands, output [31:0] plain, signed_a);
    nnef_hw_wide_product #(.A_SIGNED(1'b0)) a (
        .clk(clk), .enable(enable), .a(operands[15:0]), .b(operands[31:16]), .p(plain));
    nnef_hw_wide_product #(.A_SIGNED(1'b1)) b (
        .clk(clk), .enable(enable), .a(operands[15:0]), .b(operands[31:16]), .p(signed_a));
endmodule
"""
WIDE_HARNESS = """
#include "Vtop.h"
int main() {
    Vtop top;
    const unsigned ends[] = {0, 1, 0x7fff, 0x8000, 0xffff};
    unsigned operands = 1;
    for (int step = 0; step < 20000; ++step) {
        operands = step < 25 ? ends[step / 5] << 16 | ends[step % 5]
            : operands * 1664525u + 1013904223u;
        for (int enable = 1; enable >= 0; --enable) {
            top.operands = enable ? operands : ~operands;
            top.enable = enable;
            top.clk = 0; top.eval();
            top.clk = 1; top.eval();
        }
        const unsigned a = operands & 0xffff, b = operands >> 16;
        const unsigned negative = a & 0x8000 ? b << 16 : 0;
        if (top.plain != a * b || top.signed_a != a * b - negative) {
            std::printf("wrong for %08x: %08x, %08x", operands, top.plain, top.signed_a);
            return 1;
        }
    }
}
"""


@pytest.mark.verilator
@pytest.mark.parametrize(
    ("family", "cells"), [("behaviour", []), ("ecp5", []), ("amd7", []), ("ice40", ["SB_MAC16"])]
)
def test_wide_products(family, cells, tmp_path):
    verilog = WIDE + WIDE_PRIMITIVES.read_text()
    if not cells:
        verilog += "".join((MODELS / name).read_text() for name in OURS.get(family, ()))
    verilog += cell_models(CELLS[family][0], cells)
    check_with(WIDE_HARNESS, verilog, tmp_path, MACROS[family])
