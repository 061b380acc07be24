// What only multipliers of many bits have; all names begin with the prefix of the modules above.

// a * b in a DSP block, registered behind it if enabled; b has no sign, a has one if A_SIGNED.
module nnef_hw_wide_product #(parameter A_SIGNED = 1'b0) (
    input clk, enable,
    input [15:0] a, b,
    output [31:0] p
);
`ifdef NNEF_HW_ICE40
    SB_MAC16 #(
        .PIPELINE_16x16_MULT_REG2(1'b1), .TOPOUTPUT_SELECT(2'b11), .BOTOUTPUT_SELECT(2'b11),
        .A_SIGNED(A_SIGNED), .B_SIGNED(1'b0)
    ) mac16 (
        .CLK(clk), .CE(enable), .A(a), .B(b), .C(16'b0), .D(16'b0), .O(p),
        .AHOLD(1'b0), .BHOLD(1'b0), .CHOLD(1'b0), .DHOLD(1'b0),
        .IRSTTOP(1'b0), .IRSTBOT(1'b0), .ORSTTOP(1'b0), .ORSTBOT(1'b0),
        .OLOADTOP(1'b0), .OLOADBOT(1'b0), .ADDSUBTOP(1'b0), .ADDSUBBOT(1'b0),
        .OHOLDTOP(1'b0), .OHOLDBOT(1'b0), .CI(1'b0), .ACCUMCI(1'b0), .SIGNEXTIN(1'b0)
    );
`elsif NNEF_HW_ECP5
    wire [17:0] x = {{2{A_SIGNED & a[15]}}, a}, y = {2'b0, b};
    wire [3:0] rest;
    MULT18X18D #(
        .REG_INPUTA_CLK("NONE"), .REG_INPUTB_CLK("NONE"), .REG_OUTPUT_CLK("CLK0"),
        .REG_PIPELINE_CLK("NONE"), .CLK0_DIV("ENABLED"), .RESETMODE("SYNC"), .GSR("DISABLED")
    ) mult (
        .CLK0(clk), .CLK1(1'b0), .CLK2(1'b0), .CLK3(1'b0),
        .CE0(enable), .CE1(1'b1), .CE2(1'b1), .CE3(1'b1),
        .RST0(1'b0), .RST1(1'b0), .RST2(1'b0), .RST3(1'b0),
        .SIGNEDA(1'b1), .SIGNEDB(1'b1), .SOURCEA(1'b0), .SOURCEB(1'b0),
        .A0(x[0]), .A1(x[1]), .A2(x[2]), .A3(x[3]), .A4(x[4]), .A5(x[5]),
        .A6(x[6]), .A7(x[7]), .A8(x[8]), .A9(x[9]), .A10(x[10]), .A11(x[11]),
        .A12(x[12]), .A13(x[13]), .A14(x[14]), .A15(x[15]), .A16(x[16]), .A17(x[17]),
        .B0(y[0]), .B1(y[1]), .B2(y[2]), .B3(y[3]), .B4(y[4]), .B5(y[5]),
        .B6(y[6]), .B7(y[7]), .B8(y[8]), .B9(y[9]), .B10(y[10]), .B11(y[11]),
        .B12(y[12]), .B13(y[13]), .B14(y[14]), .B15(y[15]), .B16(y[16]), .B17(y[17]),
        .P0(p[0]), .P1(p[1]), .P2(p[2]), .P3(p[3]), .P4(p[4]), .P5(p[5]), .P6(p[6]), .P7(p[7]),
        .P8(p[8]), .P9(p[9]), .P10(p[10]), .P11(p[11]), .P12(p[12]), .P13(p[13]), .P14(p[14]),
        .P15(p[15]), .P16(p[16]), .P17(p[17]), .P18(p[18]), .P19(p[19]), .P20(p[20]),
        .P21(p[21]), .P22(p[22]), .P23(p[23]), .P24(p[24]), .P25(p[25]), .P26(p[26]),
        .P27(p[27]), .P28(p[28]), .P29(p[29]), .P30(p[30]), .P31(p[31]), .P32(rest[0]),
        .P33(rest[1]), .P34(rest[2]), .P35(rest[3])
    );
`elsif NNEF_HW_AMD7
    wire [47:0] q;
    assign p = q[31:0];
    DSP48E1 #(
        .AREG(0), .BREG(0), .MREG(0), .PREG(1), .ACASCREG(0), .BCASCREG(0), .CREG(0), .DREG(0),
        .ADREG(0), .INMODEREG(0), .OPMODEREG(0), .ALUMODEREG(0), .CARRYINREG(0), .CARRYINSELREG(0),
        .USE_MULT("MULTIPLY"), .USE_DPORT("FALSE")
    ) mult (
        .CLK(clk), .A({{14{A_SIGNED & a[15]}}, a}), .B({2'b0, b}), .C(48'b0), .D(25'b0), .P(q),
        .OPMODE(7'b0000101), .ALUMODE(4'b0), .INMODE(5'b0), .CARRYIN(1'b0), .CARRYINSEL(3'b0),
        .CEA1(1'b0), .CEA2(1'b0), .CEB1(1'b0), .CEB2(1'b0), .CEP(enable), .CEM(1'b0), .CEC(1'b0),
        .CED(1'b0), .CEAD(1'b0), .CEALUMODE(1'b0), .CECARRYIN(1'b0), .CECTRL(1'b0),
        .CEINMODE(1'b0), .RSTA(1'b0), .RSTB(1'b0), .RSTC(1'b0), .RSTD(1'b0), .RSTM(1'b0),
        .RSTP(1'b0), .RSTALLCARRYIN(1'b0), .RSTALUMODE(1'b0), .RSTCTRL(1'b0), .RSTINMODE(1'b0),
        .ACIN(30'b0), .BCIN(18'b0), .PCIN(48'b0), .CARRYCASCIN(1'b0), .MULTSIGNIN(1'b0)
    );
`else
    reg [31:0] p_register = 0;
    wire signed [16:0] x = {A_SIGNED & a[15], a}, y = {1'b0, b};
    always @(posedge clk)
        if (enable) p_register <= x * y;
    assign p = p_register;
`endif
endmodule
