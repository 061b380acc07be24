"""Our models of ECP5 blocks do what Lattice's guides say of the modes in use."""

import numpy as np
import pytest
from block_models import design, outputs, signed, verilog_model

from nnef_hw.errors import ToolError

pytestmark = pytest.mark.verilator

MODEL = verilog_model("ecp5")


def pins(port, signal, width):
    return ", ".join(f".{port}{k}({signal}[{k}])" for k in range(width))


def split(words, widths):
    """Return the fields of every result, the first one lowest."""
    fields = []
    for width in widths:
        fields.append([word & ((1 << width) - 1) for word in words])
        words = [word >> width for word in words]
    return fields


REGISTERS = {"none": (0, 0, 0), "in_out": (1, 0, 1), "all": (1, 1, 1)}


def multiplier(number, registers):
    clocks = ["CLK0" if used else "NONE" for used in registers]
    delay = 3 - sum(registers)
    p, late = f"p{number}", f"late{number}"
    text = f"""
    wire [35:0] {p};
    MULT18X18D #(
        .REG_INPUTA_CLK("{clocks[0]}"), .REG_INPUTB_CLK("{clocks[0]}"),
        .REG_PIPELINE_CLK("{clocks[1]}"), .REG_OUTPUT_CLK("{clocks[2]}")
    ) mult{number} (
        .CLK0(clk), .CE0(1'b1), .RST0(rst), .SIGNEDA(i__payload[36]), .SIGNEDB(i__payload[37]),
        .SOURCEA(1'b0), .SOURCEB(1'b0),
        {pins("A", "a", 18)}, {pins("B", "b", 18)}, {pins("P", p, 36)}
    );
    """
    if not delay:
        return text + f"assign o__payload[{36 * number} +: 36] = {p};"
    return (
        text
        + f"""
    reg [36*{delay}-1:0] {late};
    always @(posedge clk) {late} <= {{{late}, {p}}};
    assign o__payload[{36 * number} +: 36] = {late}[36*{delay}-1 -: 36];
    """
    )


def test_multiplier(rng):
    body = "wire [17:0] a = i__payload[17:0], b = i__payload[35:18];"
    body += "".join(multiplier(n, registers) for n, registers in enumerate(REGISTERS.values()))
    values = rng.integers(0, 1 << 18, (400, 2))
    values[:16] = np.stack(np.meshgrid(*[[0, 1, 0x1FFFF, 0x20000]] * 2), -1).reshape(-1, 2)
    signs = rng.integers(0, 2, (400, 2))
    words = values[:, 0] | values[:, 1] << 18 | signs[:, 0] << 36 | signs[:, 1] << 37
    runner = design(MODEL, body, i=38, o=36 * len(REGISTERS), latency=3)
    result = outputs(runner, words.astype(np.uint64))
    expected = []
    for (a, b), (sa, sb) in zip(values.tolist(), signs.tolist(), strict=True):
        product = (signed(a, 18) if sa else a) * (signed(b, 18) if sb else b)
        expected.append(product & ((1 << 36) - 1))
    for name, products in zip(REGISTERS, split(result, [36] * 3), strict=True):
        assert products == expected, name


class Memory:
    """16 kbit in bytes of 9 bits, as an access of some width sees them."""

    def __init__(self):
        self.bits = [0] * (2048 * 9)

    def places(self, address, width):
        byte, bit = address >> 3, address & 7
        if width < 9:
            return [9 * byte + bit // width * width + k for k in range(width)]
        first = byte // (width // 9) * (width // 9)
        return [9 * first + k for k in range(width)]

    def read(self, address, width):
        return sum(self.bits[p] << k for k, p in enumerate(self.places(address, width)))

    def write(self, address, width, value):
        for k, p in enumerate(self.places(address, width)):
            if width < 18 or address >> k // 9 & 1:
                self.bits[p] = value >> k & 1


NO, YES = "NOREG", "OUTREG"
BLOCKS = [
    (1, 1, "NORMAL", NO, NO), (2, 9, "NORMAL", NO, NO), (4, 4, "WRITETHROUGH", NO, NO),
    (9, 9, "READBEFOREWRITE", NO, NO), (9, 18, "WRITETHROUGH", NO, NO), (18, 9, "NORMAL", NO, NO),
    (18, 18, "READBEFOREWRITE", NO, NO), (36, 36, "NORMAL", NO, NO), (36, 9, "NORMAL", NO, NO),
    (9, 9, "NORMAL", YES, NO), (18, 9, "READBEFOREWRITE", NO, YES), (36, 36, "NORMAL", YES, YES),
    (36, 18, "NORMAL", NO, YES),
]  # fmt: skip


def block(number, width_a, width_b, mode, register_a, register_b):
    return f"""
    wire [17:0] doa{number}, dob{number};
    DP16KD #(
        .DATA_WIDTH_A({width_a}), .DATA_WIDTH_B({width_b}), .WRITEMODE_A("{mode}"),
        .REGMODE_A("{register_a}"), .REGMODE_B("{register_b}")
    ) ram{number} (
        .CLKA(clk), .CEA(1'b1), .OCEA(1'b1), .WEA(we & i__valid), .RSTA(1'b0),
        .CSA0(1'b0), .CSA1(1'b0), .CSA2(1'b0), {pins("ADA", "wa", 14)}, {pins("DIA", "di", 18)},
        .CLKB(clk), .CEB(1'b1), .OCEB(1'b1), .WEB(1'b0), .RSTB(1'b0),
        .CSB0(1'b0), .CSB1(1'b0), .CSB2(1'b0), {pins("ADB", "ra", 14)}, {pins("DIB", "dj", 18)},
        {pins("DOA", f"doa{number}", 18)}, {pins("DOB", f"dob{number}", 18)}
    );
    assign o__payload[{36 * number} +: 36] = {{dob{number}, doa{number}}};
    """


def test_memory(rng):
    body = """
    wire [17:0] di = i__payload[17:0], dj = i__payload[35:18];
    wire [13:0] wa = i__payload[49:36], ra = i__payload[63:50];
    wire we = i__payload[64];
    """
    body += "".join(block(n, *settings) for n, settings in enumerate(BLOCKS))
    count = 3000
    data = rng.integers(0, 1 << 36, count)
    # few addresses, so that what was written is read again
    addresses = rng.integers(0, 256, (count, 2)) | rng.integers(0, 2, (count, 2)) << 13
    enables = rng.integers(0, 2, count)
    low = [int(d) | int(w) << 36 | int(r) << 50 for d, (w, r) in zip(data, addresses, strict=True)]
    words = np.array([[word, e] for word, e in zip(low, enables, strict=True)], np.uint64)
    result = outputs(design(MODEL, body, i=65, o=36 * len(BLOCKS)), words)
    fields = split(result, [36] * len(BLOCKS))
    for (width_a, width_b, mode, register_a, register_b), found in zip(BLOCKS, fields, strict=True):
        memory = Memory()
        out_a = None
        words_a, words_b = [0], [0]
        for step, output in enumerate(found):
            write, read = (int(address) for address in addresses[step])
            before = memory.read(write, width_a)
            expected_b = memory.read(read, width_b)
            if enables[step]:
                memory.write(write, width_a, int(data[step]))
            if not enables[step] or mode == "READBEFOREWRITE":
                out_a = before
            elif mode == "WRITETHROUGH":
                out_a = memory.read(write, width_a)
            words_a.append(out_a)
            words_b.append(expected_b)
            seen_a, seen_b = words_a[-1 - (register_a == YES)], words_b[-1 - (register_b == YES)]
            doa, dob = output & 0x3FFFF, output >> 18
            label = (width_a, width_b, mode, register_a, register_b, step)
            if width_b == 36:
                assert output == seen_b, label
            else:
                assert dob == seen_b, label
                if width_a < 36 and seen_a is not None:
                    assert doa == seen_a, label


@pytest.mark.parametrize(
    ("cell", "mode"),
    [
        ("MULT18X18D", '.REG_OUTPUT_CLK("CLK1")'),
        ("DP16KD", '.CLKBMUX("INV")'),
        ("DP16KD", '.DATA_WIDTH_A(36), .DATA_WIDTH_B(36), .REGMODE_B("OUTREG")'),
    ],
    ids=["multiplier", "memory", "half a register"],
)
def test_other_modes_end_the_simulation(cell, mode):
    body = f"{cell} #({mode}) block (); assign o__payload = i__payload;"
    with pytest.raises(ToolError, match="a mode without a model"):
        outputs(design(MODEL, body, i=2, o=2), np.ones(1, np.uint64))
