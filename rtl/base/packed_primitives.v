// What only packed products have; all names begin with the prefix of the modules above.

// (x0 + w1 + v1 * 2**14) * (x1 + w0 + v0 * 2**14): sums behind a register, then a product with a
// register before and after. Weights are at least -7, so that both factors have 18 bits.
module nnef_hw_packed_product #(parameter WIDTH = 36) (
    input clk,
    input signed [7:0] x0, x1,
    input signed [3:0] w0, w1, v0, v1,
    output signed [WIDTH-1:0] p
);
    wire [17:0] a, b;
    nnef_hw_packed_factor factor0 (.clk(clk), .x(x0), .w(w1), .v(v1), .factor(a));
    nnef_hw_packed_factor factor1 (.clk(clk), .x(x1), .w(w0), .v(v0), .factor(b));
`ifdef NNEF_HW_ECP5
    wire [35:0] q;
    assign p = q[WIDTH-1:0];
    MULT18X18D #(
        .REG_INPUTA_CLK("CLK0"), .REG_INPUTB_CLK("CLK0"), .REG_OUTPUT_CLK("CLK0"),
        .REG_PIPELINE_CLK("NONE"), .CLK0_DIV("ENABLED"), .RESETMODE("SYNC"), .GSR("DISABLED")
    ) mult (
        .CLK0(clk), .CLK1(1'b0), .CLK2(1'b0), .CLK3(1'b0),
        .CE0(1'b1), .CE1(1'b1), .CE2(1'b1), .CE3(1'b1),
        .RST0(1'b0), .RST1(1'b0), .RST2(1'b0), .RST3(1'b0),
        .SIGNEDA(1'b1), .SIGNEDB(1'b1), .SOURCEA(1'b0), .SOURCEB(1'b0),
        .A0(a[0]), .A1(a[1]), .A2(a[2]), .A3(a[3]), .A4(a[4]), .A5(a[5]),
        .A6(a[6]), .A7(a[7]), .A8(a[8]), .A9(a[9]), .A10(a[10]), .A11(a[11]),
        .A12(a[12]), .A13(a[13]), .A14(a[14]), .A15(a[15]), .A16(a[16]), .A17(a[17]),
        .B0(b[0]), .B1(b[1]), .B2(b[2]), .B3(b[3]), .B4(b[4]), .B5(b[5]),
        .B6(b[6]), .B7(b[7]), .B8(b[8]), .B9(b[9]), .B10(b[10]), .B11(b[11]),
        .B12(b[12]), .B13(b[13]), .B14(b[14]), .B15(b[15]), .B16(b[16]), .B17(b[17]),
        .P0(q[0]), .P1(q[1]), .P2(q[2]), .P3(q[3]), .P4(q[4]), .P5(q[5]), .P6(q[6]), .P7(q[7]),
        .P8(q[8]), .P9(q[9]), .P10(q[10]), .P11(q[11]), .P12(q[12]), .P13(q[13]), .P14(q[14]),
        .P15(q[15]), .P16(q[16]), .P17(q[17]), .P18(q[18]), .P19(q[19]), .P20(q[20]),
        .P21(q[21]), .P22(q[22]), .P23(q[23]), .P24(q[24]), .P25(q[25]), .P26(q[26]),
        .P27(q[27]), .P28(q[28]), .P29(q[29]), .P30(q[30]), .P31(q[31]), .P32(q[32]),
        .P33(q[33]), .P34(q[34]), .P35(q[35])
    );
`elsif NNEF_HW_AMD7
    wire [47:0] q;
    assign p = q[WIDTH-1:0];
    nnef_hw_dsp48e1 block (.clk(clk), .a({{7{a[17]}}, a}), .d(25'b0), .b(b), .p(q));
`else
    reg signed [17:0] a_register = 0, b_register = 0;
    reg signed [35:0] p_register = 0;
    always @(posedge clk) begin
        a_register <= $signed(a);
        b_register <= $signed(b);
        p_register <= a_register * b_register;
    end
    assign p = p_register[WIDTH-1:0];
`endif
endmodule

// x + w + v * 2**14 behind a register, in an adder of 13 bits. (x + 128) + (w - 128) carries out of
// nine bits unless it is negative, and w - 128 never is more than -1, so v loses 1 unless it gets
// that carry back. The bits between are copies of the sign.
module nnef_hw_packed_factor (
    input clk,
    input signed [7:0] x,
    input signed [3:0] w, v,
    output [17:0] factor
);
    reg [12:0] sum = 0;
    always @(posedge clk)
        sum <= {v, 1'b0, ~x[7], x[6:0]} + {5'b11111, ~w[3], {3{w[3]}}, w};
    assign factor = {sum[12:9], {5{sum[8]}}, sum[8:0]};
endmodule
