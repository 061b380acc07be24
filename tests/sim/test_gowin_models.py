"""Our models of Gowin blocks do what Gowin's guides say of the modes in use."""

import numpy as np
import pytest
from block_models import design, outputs, signed, verilog_model

from nnef_hw.errors import ToolError

pytestmark = pytest.mark.verilator

MODELS = {family: verilog_model("gowin_memory", family) for family in ("gowin", "arora")}
# those of Arora V have one reset
RESETS = {"gowin": ".RESETA(1'b0), .RESETB(rst)", "arora": ".RESET(rst)"}
each_family = pytest.mark.parametrize("family", MODELS)
REGISTERS = [(0, 0), (1, 0), (0, 1), (1, 1)]


def multiplier(number, before, behind):
    delay = 2 - before - behind
    late = f"late{number}[18*{delay + 1}-1 -: 18]"
    return f"""
    wire [17:0] p{number};
    MULT9X9 #(.AREG({before}), .BREG({before}), .OUT_REG({behind})) mult{number} (
        .CLK(clk), .CE(1'b1), .RESET(rst), .A(i__payload[8:0]), .B(i__payload[17:9]),
        .ASIGN(i__payload[18]), .BSIGN(i__payload[19]), .ASEL(1'b0), .BSEL(1'b0), .DOUT(p{number})
    );
    reg [18*2-1:0] before{number};
    always @(posedge clk) before{number} <= {{before{number}, p{number}}};
    wire [18*3-1:0] late{number} = {{before{number}, p{number}}};
    assign o__payload[18*{number} +: 18] = {late};
    """


def test_multiplier(rng):
    body = "".join(multiplier(n, *registers) for n, registers in enumerate(REGISTERS))
    runner = design(MODELS["gowin"], body, i=20, o=18 * len(REGISTERS), latency=2)
    # the signs have no registers in this mode: they stay for the whole run
    for signs in range(4):
        values = rng.integers(0, 1 << 9, (300, 2))
        values[:16] = np.stack(np.meshgrid(*[[0, 1, 255, 256]] * 2), -1).reshape(-1, 2)
        inputs = values[:, 0] | values[:, 1] << 9 | signs << 18
        found = outputs(runner, inputs.astype(np.uint64))
        for (a, b), word in zip(values.tolist(), found, strict=True):
            product = (signed(a, 9) if signs & 1 else a) * (signed(b, 9) if signs & 2 else b)
            assert [word >> 18 * n & 0x3FFFF for n in range(4)] == [product & 0x3FFFF] * 4


def wide_multiplier(number, before, behind):
    delay = 2 - before - behind
    registers = [("AREG", before), ("BREG", before), ("OREG", behind)]
    settings = ", ".join(f'.{name}_CLK("{"CLK0" if used else "BYPASS"}")'
                         for name, used in registers)  # fmt: skip
    return f"""
    wire [23:0] p{number};
    MULT12X12 #({settings}) mult{number} (
        .CLK({{1'b0, clk}}), .CE(2'b01), .RESET({{1'b0, rst}}),
        .A(i__payload[11:0]), .B(i__payload[23:12]), .DOUT(p{number})
    );
    reg [24*2-1:0] before{number};
    always @(posedge clk) before{number} <= {{before{number}, p{number}}};
    wire [24*3-1:0] late{number} = {{before{number}, p{number}}};
    assign o__payload[24*{number} +: 24] = late{number}[24*{delay + 1}-1 -: 24];
    """


def test_multiplier_of_arora(rng):
    body = "".join(wide_multiplier(n, *registers) for n, registers in enumerate(REGISTERS))
    values = rng.integers(0, 1 << 12, (300, 2))
    values[:16] = np.stack(np.meshgrid(*[[0, 1, 2047, 2048]] * 2), -1).reshape(-1, 2)
    inputs = values[:, 0] | values[:, 1] << 12
    runner = design(MODELS["arora"], body, i=24, o=24 * len(REGISTERS), latency=2)
    found = outputs(runner, inputs.astype(np.uint64))
    for (a, b), word in zip(values.tolist(), found, strict=True):
        product = signed(a, 12) * signed(b, 12)
        assert [word >> 24 * n & 0xFFFFFF for n in range(4)] == [product & 0xFFFFFF] * 4


class Memory:
    """16 kbit in bytes of 8 or 9 bits, as an access of some width sees them."""

    def __init__(self, byte):
        self.byte = byte
        self.bits = [k * k // 7 & 1 for k in range(2048 * byte)]

    def places(self, address, width):
        if width < 8:
            first = address // width * width
        else:
            size = width // self.byte
            first = (address >> 3) // size * size * self.byte
        return range(first, first + width)

    def read(self, address, width):
        return sum(self.bits[p] << k for k, p in enumerate(self.places(address, width)))

    def write(self, address, width, value):
        for k, p in enumerate(self.places(address, width)):
            if width <= self.byte or address >> k // self.byte & 1:
                self.bits[p] = value >> k & 1

    def parameters(self):
        size = 32 * self.byte
        rows = [self.bits[n : n + size] for n in range(0, len(self.bits), size)]
        values = [sum(bit << k for k, bit in enumerate(row)) for row in rows]
        return ", ".join(f".INIT_RAM_{n:02X}({size}'h{v:x})" for n, v in enumerate(values))


BLOCKS = [
    ("SDPB", 1, 1), ("SDPB", 2, 8), ("SDPB", 8, 16), ("SDPB", 32, 4), ("SDPB", 32, 32),
    ("SDPX9B", 9, 9), ("SDPX9B", 9, 36), ("SDPX9B", 18, 9), ("SDPX9B", 36, 36),
    ("SP", 4, 4), ("SP", 16, 16), ("SPX9", 9, 9), ("SPX9", 18, 18), ("SPX9", 36, 36),
]  # fmt: skip


def block(family, number, kind, write_width, read_width):
    byte = 9 if "X9" in kind else 8
    contents = Memory(byte).parameters()
    out = f"wire [{4 * byte}-1:0] q{number}; assign o__payload[36*{number} +: 36] = q{number};"
    if kind.startswith("SDP"):
        return f"""{out}
        {kind} #(.BIT_WIDTH_0({write_width}), .BIT_WIDTH_1({read_width}), {contents}) ram{number} (
            .CLKA(clk), .CEA(we & i__valid), .ADA(wa), .DI(d), .BLKSELA(3'b0),
            .CLKB(clk), .CEB(re & i__valid), .ADB(ra), .DO(q{number}), .BLKSELB(3'b0),
            .OCE(1'b1), {RESETS[family]}
        );"""
    return f"""{out}
    {kind} #(.BIT_WIDTH({write_width}), {contents}) ram{number} (
        .CLK(clk), .CE(re & i__valid), .WRE(we), .AD(wa), .DI(d), .DO(q{number}), .BLKSEL(3'b0),
        .RESET(rst), .OCE(1'b1)
    );"""


@each_family
def test_memory(family, rng):
    body = """
    wire [35:0] d = i__payload[35:0];
    wire [13:0] wa = i__payload[49:36], ra = i__payload[63:50];
    wire we = i__payload[64], re = i__payload[65];
    """
    body += "".join(block(family, n, *settings) for n, settings in enumerate(BLOCKS))
    count = 2000
    data = rng.integers(0, 1 << 36, count).tolist()
    # few addresses, so that what was written is read again
    addresses = rng.integers(0, 256, (count, 2)) | rng.integers(0, 2, (count, 2)) << 13
    addresses = addresses.tolist()
    enables = rng.integers(0, 4, count).tolist()
    inputs = np.array(
        [
            [d | w << 36 | (r & 0x3FFF) << 50, e]
            for d, (w, r), e in zip(data, addresses, enables, strict=True)
        ],
        np.uint64,
    )
    found = outputs(design(MODELS[family], body, i=66, o=36 * len(BLOCKS)), inputs)
    for n, (kind, write_width, read_width) in enumerate(BLOCKS):
        memory = Memory(9 if "X9" in kind else 8)
        out = 0
        for step, word in enumerate(found):
            write, read = addresses[step]
            we, re = enables[step] & 1, enables[step] >> 1
            if kind.startswith("SDP"):
                # a word that is written at the same time is read as it was before
                out = memory.read(read, read_width) if re else out
                if we:
                    memory.write(write, write_width, data[step])
            elif re and we:
                memory.write(write, write_width, data[step])
            elif re:
                out = memory.read(write, read_width)
            assert word >> 36 * n & 0xFFFFFFFFF == out, (kind, write_width, read_width, step)


@pytest.mark.parametrize(
    ("cell", "width"), [("DPX9B", 9), ("DPX9B", 18), ("DPB", 1), ("DPB", 4), ("DPB", 16)]
)
def test_constants_of_arora_that_two_addresses_read(rng, cell, width):
    memory = Memory(9 if "X9" in cell else 8)
    body = f"""
    wire [17:0] a, b;
    {cell} #(.BIT_WIDTH_0({width}), .BIT_WIDTH_1({width}), {memory.parameters()}) ram (
        .CLKA(clk), .CEA(i__payload[28] & i__valid), .OCEA(1'b1), .RESETA(1'b0), .WREA(1'b0),
        .CLKB(clk), .CEB(i__payload[29] & i__valid), .OCEB(1'b1), .RESETB(1'b0), .WREB(1'b0),
        .ADA(i__payload[13:0]), .ADB(i__payload[27:14]), .BLKSELA(3'b0), .BLKSELB(3'b0),
        .DIA(18'b0), .DIB(18'b0), .DOA(a), .DOB(b)
    );
    assign o__payload = {{36'b0, b, a}};
    """
    addresses = rng.integers(0, 1 << 14, (500, 2))
    enables = rng.integers(0, 4, 500)
    inputs = addresses[:, 0] | addresses[:, 1] << 14 | enables << 28
    found = outputs(design(MODELS["arora"], body, i=30, o=72), inputs.astype(np.uint64))
    expected = [0, 0]
    for pair, enable, word in zip(addresses.tolist(), enables.tolist(), found, strict=True):
        for port, address in enumerate(pair):
            if enable >> port & 1:
                expected[port] = memory.read(address, width)
        assert [word & 0x3FFFF, word >> 18] == expected


@pytest.mark.parametrize(
    ("family", "cell", "mode"),
    [
        ("gowin", "MULT9X9", ".PIPE_REG(1'b1)"), ("gowin", "SDPX9B", ".READ_MODE(1'b1)"),
        ("gowin", "SPX9", ".WRITE_MODE(2'b01)"), ("arora", "SDPX9B", ".READ_MODE(1'b1)"),
        ("arora", "DPB", ".READ_MODE1(1'b1)"), ("arora", "DPX9B", ".BLK_SEL_0(3'b001)"),
        ("arora", "MULT12X12", '.PREG_CLK("CLK0")'), ("arora", "MULT12X12", '.AREG_CE("CE1")'),
    ],
)  # fmt: skip
def test_other_modes_end_the_simulation(family, cell, mode):
    body = f"{cell} #({mode}) block (); assign o__payload = i__payload;"
    with pytest.raises(ToolError, match="a mode without a model"):
        outputs(design(MODELS[family], body, i=2, o=2), np.ones(1, np.uint64))
