// Modules of the accelerator above; all names begin with its prefix.

// Two 8x8 products in one iCE40 SB_MAC16, elsewhere in two blocks; registered before and after.
// Weights of at most 4 bits take one DSP48E1 for both.
// NNEF_HW_ICE40, NNEF_HW_ECP5, NNEF_HW_GOWIN, NNEF_HW_ARORA or NNEF_HW_AMD7 selects the device's block
// at synthesis; without them the same behaviour is simulated. Logic cells of Arora V are those of
// Gowin's others.
`ifdef NNEF_HW_ARORA
`define NNEF_HW_GOWIN
`endif
module nnef_hw_product_pair #(parameter X_SIGNED = 1'b0, parameter W_BITS = 8) (
    input clk,
    input [7:0] x0, x1,
    input signed [7:0] w0, w1,
    output signed [15:0] p0, p1
);
`ifdef NNEF_HW_ICE40
    SB_MAC16 #(
        .A_REG(1'b1), .B_REG(1'b1),
        .TOP_8x8_MULT_REG(1'b1), .BOT_8x8_MULT_REG(1'b1),
        .TOPOUTPUT_SELECT(2'b10), .BOTOUTPUT_SELECT(2'b10),
        .MODE_8x8(1'b1), .A_SIGNED(X_SIGNED), .B_SIGNED(1'b1)
    ) mac16 (
        .CLK(clk), .CE(1'b1),
        .A({x1, x0}), .B({w1, w0}), .C(16'b0), .D(16'b0), .O({p1, p0}),
        .AHOLD(1'b0), .BHOLD(1'b0), .CHOLD(1'b0), .DHOLD(1'b0),
        .IRSTTOP(1'b0), .IRSTBOT(1'b0), .ORSTTOP(1'b0), .ORSTBOT(1'b0),
        .OLOADTOP(1'b0), .OLOADBOT(1'b0), .ADDSUBTOP(1'b0), .ADDSUBBOT(1'b0),
        .OHOLDTOP(1'b0), .OHOLDBOT(1'b0), .CI(1'b0), .ACCUMCI(1'b0), .SIGNEXTIN(1'b0)
    );
`else
    wire signed [8:0] a0 = {X_SIGNED & x0[7], x0}, a1 = {X_SIGNED & x1[7], x1};
    wire signed [8:0] b0 = w0, b1 = w1;
    generate
`ifdef NNEF_HW_AMD7
        if (W_BITS <= 4) begin : one_block
            // (x1 * 2**16 + x0) * (w1 * 2**13 + w0): x1 * w1 begins at bit 29. What is below has
            // a value of at most 2040 * (2**16 + 2**13 + 1) < 2**28, so half a step rounds it off.
            // x0 * w0 has 12 bits, below all others.
            wire [4:0] high = w1[4:0] - w0[3];
            wire [17:0] weights = {high, {9{w0[3]}}, w0[3:0]};
            wire [47:0] q;
            nnef_hw_dsp48e1 #(.PREADDED(1), .ADDED(48'h10000000))
                block (.clk(clk), .a({a1, 16'b0}), .d({{16{a0[8]}}, a0}), .b(weights), .p(q));
            assign p0 = $signed(q[11:0]);
            assign p1 = $signed(q[40:29]);
        end
        if (W_BITS > 4) begin : blocks
`else
        if (1) begin : blocks
`endif
            nnef_hw_product #(.BITS(16)) product0 (.clk(clk), .a(a0), .b(b0), .p(p0));
            nnef_hw_product #(.BITS(16)) product1 (.clk(clk), .a(a1), .b(b1), .p(p1));
        end
    endgenerate
`endif
endmodule

`ifdef NNEF_HW_AMD7
// a * b + ADDED, or (a + d) * b + ADDED, in a DSP48E1; registered before and after, and with
// SUM_REGISTER between sum and product.
module nnef_hw_dsp48e1 #(
    parameter PREADDED = 0, parameter SUM_REGISTER = 0, parameter [47:0] ADDED = 0
) (
    input clk,
    input signed [24:0] a, d,
    input signed [17:0] b,
    output signed [47:0] p
);
    DSP48E1 #(
        .AREG(1), .BREG(1), .MREG(0), .PREG(1), .ACASCREG(1), .BCASCREG(1), .CREG(0),
        .DREG(PREADDED), .ADREG(SUM_REGISTER), .INMODEREG(0), .OPMODEREG(0), .ALUMODEREG(0),
        .CARRYINREG(0), .CARRYINSELREG(0), .USE_MULT("MULTIPLY"),
        .USE_DPORT(PREADDED ? "TRUE" : "FALSE")
    ) mult (
        .CLK(clk), .A({{5{a[24]}}, a}), .B(b), .C(ADDED), .D(d), .P(p),
        .OPMODE(ADDED == 0 ? 7'b0000101 : 7'b0110101), .ALUMODE(4'b0),
        .INMODE(PREADDED ? 5'b00100 : 5'b0), .CARRYIN(1'b0), .CARRYINSEL(3'b0),
        .CEA1(1'b0), .CEA2(1'b1), .CEB1(1'b0), .CEB2(1'b1), .CEP(1'b1), .CEM(1'b0), .CEC(1'b0),
        .CED(PREADDED), .CEAD(SUM_REGISTER), .CEALUMODE(1'b0), .CECARRYIN(1'b0), .CECTRL(1'b0),
        .CEINMODE(1'b0), .RSTA(1'b0), .RSTB(1'b0), .RSTC(1'b0), .RSTD(1'b0), .RSTM(1'b0),
        .RSTP(1'b0), .RSTALLCARRYIN(1'b0), .RSTALUMODE(1'b0), .RSTCTRL(1'b0), .RSTINMODE(1'b0),
        .ACIN(30'b0), .BCIN(18'b0), .PCIN(48'b0), .CARRYCASCIN(1'b0), .MULTSIGNIN(1'b0)
    );
endmodule
`endif

// (x0 + w1) * (x1 + w0): sums behind a register, then a product with a register before and after.
module nnef_hw_product_of_sums #(parameter WIDTH = 9) (
    input clk,
    input signed [WIDTH-2:0] x0, x1, w0, w1,
    output signed [2*WIDTH-1:0] p
);
    reg signed [WIDTH-1:0] b = 0;
    always @(posedge clk) b <= x1 + w0;
`ifdef NNEF_HW_AMD7
    // one of the sums is the block's
    wire signed [24:0] code = x0, weight = w1;
    wire signed [17:0] factor = b;
    wire [47:0] q;
    assign p = q[2*WIDTH-1:0];
    nnef_hw_dsp48e1 #(.PREADDED(1), .SUM_REGISTER(1))
        block (.clk(clk), .a(weight), .d(code), .b(factor), .p(q));
`else
    reg signed [WIDTH-1:0] a = 0;
    always @(posedge clk) a <= x0 + w1;
    wire signed [8:0] wide_a = a, wide_b = b;
    wire signed [17:0] wide_p;
    assign p = wide_p[2*WIDTH-1:0];
    nnef_hw_product product (.clk(clk), .a(wide_a), .b(wide_b), .p(wide_p));
`endif
endmodule

// The low bits of a 9x9 product, in an ECP5 MULT18X18D, a Gowin MULT9X9 or MULT12X12, or a DSP48E1;
// registered before and after.
module nnef_hw_product #(parameter BITS = 18) (
    input clk,
    input signed [8:0] a, b,
    output signed [BITS-1:0] p
);
`ifdef NNEF_HW_ECP5
    wire [17:0] x = {{9{a[8]}}, a}, y = {{9{b[8]}}, b};
    wire [17:0] q;
    assign p = q[BITS-1:0];
    MULT18X18D #(
        .REG_INPUTA_CLK("CLK0"), .REG_INPUTB_CLK("CLK0"), .REG_OUTPUT_CLK("CLK0"),
        .REG_PIPELINE_CLK("NONE"), .CLK0_DIV("ENABLED"), .RESETMODE("SYNC"), .GSR("DISABLED")
    ) mult (
        .CLK0(clk), .CLK1(1'b0), .CLK2(1'b0), .CLK3(1'b0),
        .CE0(1'b1), .CE1(1'b1), .CE2(1'b1), .CE3(1'b1),
        .RST0(1'b0), .RST1(1'b0), .RST2(1'b0), .RST3(1'b0),
        .SIGNEDA(1'b1), .SIGNEDB(1'b1), .SOURCEA(1'b0), .SOURCEB(1'b0),
        .A0(x[0]), .A1(x[1]), .A2(x[2]), .A3(x[3]), .A4(x[4]), .A5(x[5]),
        .A6(x[6]), .A7(x[7]), .A8(x[8]), .A9(x[9]), .A10(x[10]), .A11(x[11]),
        .A12(x[12]), .A13(x[13]), .A14(x[14]), .A15(x[15]), .A16(x[16]), .A17(x[17]),
        .B0(y[0]), .B1(y[1]), .B2(y[2]), .B3(y[3]), .B4(y[4]), .B5(y[5]),
        .B6(y[6]), .B7(y[7]), .B8(y[8]), .B9(y[9]), .B10(y[10]), .B11(y[11]),
        .B12(y[12]), .B13(y[13]), .B14(y[14]), .B15(y[15]), .B16(y[16]), .B17(y[17]),
        .P0(q[0]), .P1(q[1]), .P2(q[2]), .P3(q[3]), .P4(q[4]), .P5(q[5]), .P6(q[6]), .P7(q[7]),
        .P8(q[8]), .P9(q[9]), .P10(q[10]), .P11(q[11]), .P12(q[12]), .P13(q[13]), .P14(q[14]),
        .P15(q[15]), .P16(q[16]), .P17(q[17])
    );
`elsif NNEF_HW_ARORA
    wire [23:0] q;
    assign p = q[BITS-1:0];
    MULT12X12 #(
        .AREG_CLK("CLK0"), .BREG_CLK("CLK0"), .OREG_CLK("CLK0"), .PREG_CLK("BYPASS"),
        .MULT_RESET_MODE("SYNC")
    ) mult (
        .CLK({1'b0, clk}), .CE(2'b01), .RESET(2'b00),
        .A({{3{a[8]}}, a}), .B({{3{b[8]}}, b}), .DOUT(q)
    );
`elsif NNEF_HW_AMD7
    wire [47:0] q;
    assign p = q[BITS-1:0];
    nnef_hw_dsp48e1 block (.clk(clk), .a({{16{a[8]}}, a}), .d(25'b0), .b({{9{b[8]}}, b}), .p(q));
`elsif NNEF_HW_GOWIN
    wire [17:0] q;
    assign p = q[BITS-1:0];
    MULT9X9 #(
        .AREG(1'b1), .BREG(1'b1), .OUT_REG(1'b1), .PIPE_REG(1'b0), .ASIGN_REG(1'b0),
        .BSIGN_REG(1'b0), .SOA_REG(1'b0), .MULT_RESET_MODE("SYNC")
    ) mult (
        .CLK(clk), .CE(1'b1), .RESET(1'b0), .ASIGN(1'b1), .BSIGN(1'b1), .ASEL(1'b0), .BSEL(1'b0),
        .A(a), .B(b), .SIA(9'b0), .SIB(9'b0), .DOUT(q)
    );
`else
    reg signed [8:0] a_register = 0, b_register = 0;
    reg signed [BITS-1:0] p_register = 0;
    always @(posedge clk) begin
        a_register <= a;
        b_register <= b;
        p_register <= a_register * b_register;
    end
    assign p = p_register;
`endif
endmodule
// 16384 words of 16 bits; a word is read or written per cycle, and q is defined after a read only.
module nnef_hw_single_port_ram (
    input clk, enable, write,
    input [13:0] address,
    input [15:0] d,
    output [15:0] q
);
`ifdef NNEF_HW_ICE40
    SB_SPRAM256KA ram (
        .CLOCK(clk), .CHIPSELECT(enable), .WREN(write), .MASKWREN(4'b1111), .ADDRESS(address),
        .DATAIN(d), .DATAOUT(q), .STANDBY(1'b0), .SLEEP(1'b0), .POWEROFF(1'b1)
    );
`else
    reg [15:0] words [0:16383];
    reg [15:0] q_register = 0;
    always @(posedge clk)
        if (enable) begin
            if (write) words[address] <= d;
            else q_register <= words[address];
        end
    assign q = q_register;
`endif
endmodule
// operand * digits in LUTs, combinational and exact. Digits are unsigned, or signed: the top one
// then counts negatively.
module nnef_hw_lut_product #(
    parameter DIGITS = 8, parameter SIGNED = 0, parameter WIDTH = 8
) (
    input [DIGITS-1:0] digits,
    input signed [WIDTH-1:0] operand,
    output signed [WIDTH+DIGITS-1:0] product
);
`ifdef NNEF_HW_GOWIN
    localparam LEAF = 4;
`else
    localparam LEAF = 2;
`endif
    generate
        if (DIGITS > LEAF) begin : halves
            // the low half has an even number of digits, at least half of them
            localparam LOW = (DIGITS + 3) / 4 * 2;
            wire signed [WIDTH+LOW-1:0] low;
            wire signed [WIDTH+DIGITS-LOW-1:0] high;
            nnef_hw_lut_product #(.DIGITS(LOW), .WIDTH(WIDTH))
                low_half (.digits(digits[LOW-1:0]), .operand(operand), .product(low));
            nnef_hw_lut_product #(.DIGITS(DIGITS - LOW), .SIGNED(SIGNED), .WIDTH(WIDTH))
                high_half (.digits(digits[DIGITS-1:LOW]), .operand(operand), .product(high));
            wire signed [WIDTH-1:0] carried = low >>> LOW;
            wire signed [WIDTH+DIGITS-LOW-1:0] upper = carried + high;
            assign product = {upper, low[LOW-1:0]};
        end else begin : leaf
`ifdef NNEF_HW_GOWIN
            // a digit after the other in one cell per bit: its bit of the product, and what is above
            localparam WIDE = WIDTH + 1;
            wire [WIDTH:0] single = operand;
            wire [WIDE*DIGITS-1:0] sums;
            assign sums[WIDTH:0] = digits[0] ? (SIGNED && DIGITS == 1 ? -single : single) : 0;
            genvar n;
            for (n = 1; n < DIGITS; n = n + 1) begin : steps
                localparam NEGATIVE = SIGNED && n == DIGITS - 1;
                wire [WIDTH:0] below = sums[WIDE*(n-1) +: WIDE], total;
                wire [WIDTH:0] above = {below[WIDTH], below[WIDTH:1]};
                nnef_hw_gated_sum #(.WIDTH(WIDE)) gated (
                    .enable(digits[n]), .a(single), .b(NEGATIVE ? ~above : above), .sum(total)
                );
                // b - a is ~(~b + a)
                assign sums[WIDE*n +: WIDE] = NEGATIVE ? ~total : total;
                assign product[n-1] = below[0];
            end
            assign product[WIDTH+DIGITS-1:DIGITS-1] = sums[WIDE*(DIGITS-1) +: WIDE];
`else
            wire signed [WIDTH+1:0] single = operand;
            if (DIGITS == 2) begin : pair
                wire signed [WIDTH+1:0] twice = single <<< 1;
`ifdef NNEF_HW_AMD7
                nnef_hw_gated_sums #(.INVERTED(SIGNED), .WIDTH(WIDTH + 2)) both (
`else
                nnef_hw_masked_sum #(.INVERTED(SIGNED), .WIDTH(WIDTH + 2)) both (
`endif
                    .a(digits[SIGNED ? 1 : 0]), .b(SIGNED ? twice : single),
                    .c(digits[SIGNED ? 0 : 1]), .d(SIGNED ? single : twice), .sum(product)
                );
            end else begin : bit_product
                assign product = digits[0] ? (SIGNED ? -single : single) : 0;
            end
`endif
        end
    endgenerate
endmodule

// (select ? other : base) + operand * digits modulo 2**SUM, combinational; digits are unsigned.
// SELECTED = 0: select is 0.
module nnef_hw_multiply_add #(
    parameter DIGITS = 4, parameter WIDTH = 8, parameter SUM = 12, parameter SELECTED = 0
) (
    input select,
    input signed [SUM-1:0] base, other,
    input [DIGITS-1:0] digits,
    input signed [WIDTH-1:0] operand,
    output signed [SUM-1:0] sum
);
`ifdef NNEF_HW_ECP5
    wire signed [WIDTH+DIGITS-1:0] product;
    nnef_hw_lut_product #(.DIGITS(DIGITS), .WIDTH(WIDTH))
        products (.digits(digits), .operand(operand), .product(product));
    wire signed [SUM-1:0] extended = product;
    generate
        if (SELECTED) begin : choice
            nnef_hw_selected_sum #(.WIDTH(SUM)) selected
                (.a(extended), .select(select), .b(other), .c(base), .sum(sum));
        end else begin : plain
            assign sum = base + extended;
        end
    endgenerate
`elsif NNEF_HW_AMD7
    // A LUT per bit selects and adds.
    wire signed [WIDTH+DIGITS-1:0] product;
    nnef_hw_lut_product #(.DIGITS(DIGITS), .WIDTH(WIDTH))
        products (.digits(digits), .operand(operand), .product(product));
    wire signed [SUM-1:0] extended = product;
    assign sum = extended + (SELECTED && select ? other : base);
`elsif NNEF_HW_GOWIN
    // Two digits take one logic cell per bit each; more are multiplied beside them.
    localparam LOW = DIGITS > 2 ? 2 : DIGITS;
    wire [SUM-1:0] start = SELECTED && select ? other : base;
    wire [SUM-1:0] extended = operand;
    wire [SUM-1:0] one, low;
    nnef_hw_gated_sum #(.WIDTH(SUM)) first
        (.enable(digits[0]), .a(extended), .b(start), .sum(one));
    generate
        if (DIGITS == 1) begin : one_digit
            assign low = one;
        end else begin : two_digits
            assign low[0] = one[0];
            nnef_hw_gated_sum #(.WIDTH(SUM - 1)) second
                (.enable(digits[1]), .a(extended[SUM-2:0]), .b(one[SUM-1:1]), .sum(low[SUM-1:1]));
        end
        if (DIGITS > LOW) begin : high
            wire signed [WIDTH+DIGITS-LOW-1:0] product;
            nnef_hw_lut_product #(.DIGITS(DIGITS - LOW), .WIDTH(WIDTH))
                products (.digits(digits[DIGITS-1:LOW]), .operand(operand), .product(product));
            wire signed [SUM-1:LOW] above = low[SUM-1:LOW];
            wire signed [SUM-1:LOW] total = above + product;
            assign sum = {total, low[LOW-1:0]};
        end else begin : low_only
            assign sum = low;
        end
    endgenerate
`else
    // The low digits take one logic cell per bit each: a digit selects between the sum and what
    // was. The high ones are multiplied beside them, which halves the depth.
    localparam LOW = DIGITS > 2 ? 2 : DIGITS;
    wire signed [SUM-1:0] start = SELECTED && select ? other : base;
    wire signed [SUM-1:0] one = digits[0] ? start + operand : start;
    wire signed [SUM-1:1] upper = one[SUM-1:1];
    wire signed [SUM-1:0] low;
    generate
        if (DIGITS == 1) begin : one_digit
            assign low = one;
        end else begin : two_digits
            assign low = {digits[1] ? upper + operand : upper, one[0]};
        end
        if (DIGITS > LOW) begin : high
            wire signed [WIDTH+DIGITS-LOW-1:0] product;
            nnef_hw_lut_product #(.DIGITS(DIGITS - LOW), .WIDTH(WIDTH))
                products (.digits(digits[DIGITS-1:LOW]), .operand(operand), .product(product));
            wire signed [SUM-1:LOW] above = low[SUM-1:LOW];
            wire signed [SUM-1:LOW] total = above + product;
            assign sum = {total, low[LOW-1:0]};
        end else begin : low_only
            assign sum = low;
        end
    endgenerate
`endif
endmodule

`ifdef NNEF_HW_ECP5
// a + (select ? b : c) modulo 2**WIDTH, in one cell per two bits.
module nnef_hw_selected_sum #(parameter WIDTH = 8) (
    input select,
    input [WIDTH-1:0] a, b, c,
    output [WIDTH-1:0] sum
);
    // INIT[3:0] is the carry where the sum of two bits is 0: the first addend.
    localparam PAIRS = (WIDTH + 1) / 2;
    localparam [15:0] INIT = 16'h596a;
    wire [2*PAIRS-1:0] first = a, set = b, clear = c;
    wire [2*PAIRS-1:0] s;
    wire [PAIRS:0] carry;
    assign carry[0] = 1'b0;
    assign sum = s[WIDTH-1:0];
    genvar n;
    generate
        for (n = 0; n < PAIRS; n = n + 1) begin : bits
            CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) cell_pair (
                .CIN(carry[n]), .COUT(carry[n+1]),
                .A0(first[2*n]), .B0(select), .C0(set[2*n]), .D0(clear[2*n]), .S0(s[2*n]),
                .A1(first[2*n+1]), .B1(select), .C1(set[2*n+1]), .D1(clear[2*n+1]), .S1(s[2*n+1])
            );
        end
    endgenerate
endmodule
`endif

// (a ? b : 0) + (c ? d : 0) modulo 2**WIDTH; INVERTED: -(a ? b : 0) + (c ? d : 0).
module nnef_hw_masked_sum #(parameter INVERTED = 0, parameter WIDTH = 8) (
    input a, c,
    input [WIDTH-1:0] b, d,
    output [WIDTH-1:0] sum
);
`ifdef NNEF_HW_ECP5
    // A CCU2C adds A & B to C & D in one cell: where the sum of two bits is 0 the carry is the first
    // addend, and that is what INIT[3:0] has to be.
    localparam PAIRS = (WIDTH + 1) / 2;
    localparam [15:0] INIT = INVERTED ? 16'h8777 : 16'h7888;
    wire [2*PAIRS-1:0] first = b, second = d;
    wire [2*PAIRS-1:0] s;
    wire [PAIRS:0] carry;
    assign carry[0] = INVERTED;
    assign sum = s[WIDTH-1:0];
    genvar n;
    generate
        for (n = 0; n < PAIRS; n = n + 1) begin : bits
            CCU2C #(.INIT0(INIT), .INIT1(INIT), .INJECT1_0("NO"), .INJECT1_1("NO")) cell_pair (
                .CIN(carry[n]), .COUT(carry[n+1]),
                .A0(a), .B0(first[2*n]), .C0(c), .D0(second[2*n]), .S0(s[2*n]),
                .A1(a), .B1(first[2*n+1]), .C1(c), .D1(second[2*n+1]), .S1(s[2*n+1])
            );
        end
    endgenerate
`elsif NNEF_HW_GOWIN
    // masked - b is ~(~masked + b)
    wire [WIDTH-1:0] masked = c ? d : 0;
    wire [WIDTH-1:0] total;
    nnef_hw_gated_sum #(.WIDTH(WIDTH)) gated
        (.enable(a), .a(b), .b(INVERTED ? ~masked : masked), .sum(total));
    assign sum = INVERTED ? ~total : total;
`elsif NNEF_HW_AMD7
    // the first addend goes to the carries as it is: a constant 1 in c saves the LUTs that mask it
    wire [WIDTH-1:0] masked = c ? d : 0, gated = a ? b : 0;
    assign sum = INVERTED ? masked - gated : masked + gated;
`else
    wire [WIDTH-1:0] masked = c ? d : 0;
    assign sum = INVERTED ? (a ? masked - b : masked) : (a ? masked + b : masked);
`endif
endmodule

// base - (taken ? less : 0) modulo 2**WIDTH.
module nnef_hw_masked_difference #(parameter WIDTH = 8) (
    input taken,
    input [WIDTH-1:0] less, base,
    output [WIDTH-1:0] difference
);
`ifdef NNEF_HW_ECP5
    nnef_hw_masked_sum #(.INVERTED(1), .WIDTH(WIDTH))
        masked (.a(taken), .b(less), .c(1'b1), .d(base), .sum(difference));
`elsif NNEF_HW_GOWIN
    wire [WIDTH-1:0] masked = taken ? less : 0;
    assign difference = base - masked;
`elsif NNEF_HW_AMD7
    wire [WIDTH-1:0] masked = taken ? less : 0;
    assign difference = base - masked;
`else
    assign difference = taken ? base - less : base;
`endif
endmodule

`ifdef NNEF_HW_GOWIN
// (enable ? a : 0) + b modulo 2**WIDTH, in one cell per bit: the ALU's mode MULT adds I0 & I1 to I3.
module nnef_hw_gated_sum #(parameter WIDTH = 8) (
    input enable,
    input [WIDTH-1:0] a, b,
    output [WIDTH-1:0] sum
);
    localparam MULT = 9;
    wire [WIDTH:0] carry;
    assign carry[0] = 1'b0;
    genvar n;
    generate
        for (n = 0; n < WIDTH; n = n + 1) begin : bits
            ALU #(.ALU_MODE(MULT)) adder (
                .I0(enable), .I1(a[n]), .I3(b[n]), .CIN(carry[n]), .COUT(carry[n+1]), .SUM(sum[n])
            );
        end
    endgenerate
endmodule
`endif

`ifdef NNEF_HW_AMD7
// (a ? b : 0) + (c ? d : 0) modulo 2**WIDTH, in one LUT per bit; INVERTED: -(a ? b : 0) + (c ? d : 0).
module nnef_hw_gated_sums #(parameter INVERTED = 0, parameter WIDTH = 8) (
    input a, c,
    input [WIDTH-1:0] b, d,
    output [WIDTH-1:0] sum
);
    // O6 tells whether a carry passes, O5 is the carry where none does: that of the second addend.
    localparam [63:0] INIT = INVERTED ? 64'h87778777f000f000 : 64'h78887888f000f000;
    localparam QUADS = (WIDTH + 3) / 4;
    wire [4*QUADS-1:0] first = b, second = d;
    wire [4*QUADS-1:0] s, pass, made, carry;
    wire [QUADS:0] between;
    assign between[0] = 1'b0;
    assign sum = s[WIDTH-1:0];
    genvar n;
    generate
        for (n = 0; n < 4 * QUADS; n = n + 1) begin : bits
            LUT6_2 #(.INIT(INIT)) lut (
                .I0(a), .I1(first[n]), .I2(c), .I3(second[n]), .I4(1'b0), .I5(1'b1),
                .O6(pass[n]), .O5(made[n])
            );
        end
        for (n = 0; n < QUADS; n = n + 1) begin : quads
            CARRY4 chain (
                .CI(between[n]), .CYINIT(n == 0 && INVERTED), .DI(made[4*n +: 4]),
                .S(pass[4*n +: 4]), .O(s[4*n +: 4]), .CO(carry[4*n +: 4])
            );
            assign between[n+1] = carry[4*n+3];
        end
    endgenerate
endmodule
`endif

// A register that synthesis does not merge with equal ones on an ECP5: one that is near its users.
module nnef_hw_register #(parameter WIDTH = 8) (
    input clk,
    input [WIDTH-1:0] d,
    output [WIDTH-1:0] q
);
`ifdef NNEF_HW_ECP5
    genvar n;
    generate
        for (n = 0; n < WIDTH; n = n + 1) begin : bits
            TRELLIS_FF #(
                .GSR("AUTO"), .CEMUX("1"), .CLKMUX("CLK"), .LSRMUX("LSR"), .REGSET("RESET")
            ) flip_flop (.CLK(clk), .LSR(1'b0), .CE(1'b1), .DI(d[n]), .Q(q[n]));
        end
    endgenerate
`else
    reg [WIDTH-1:0] register = 0;
    always @(posedge clk) register <= d;
    assign q = register;
`endif
endmodule

// A LUT that synthesis neither shares nor merges on an ECP5: one that is near its users.
module nnef_hw_lut #(parameter [15:0] TABLE = 0) (
    input [3:0] index,
    output value
);
`ifdef NNEF_HW_ECP5
    LUT4 #(.INIT(TABLE)) lut (.A(index[0]), .B(index[1]), .C(index[2]), .D(index[3]), .Z(value));
`else
    assign value = TABLE[index];
`endif
endmodule
