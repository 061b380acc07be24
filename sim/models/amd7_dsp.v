// A model of AMD's DSP48E1 in the modes that this project uses: a product of A or A + D by B, with
// or without C. Another mode ends the simulation. After AMD's guide of DSP blocks (UG479). Yosys has
// a model of every mode, several times slower, and with assignments that Verilator refuses; a test
// compares both.

module DSP48E1 #(
    parameter integer AREG = 1, BREG = 1, CREG = 1, DREG = 1, ADREG = 1, MREG = 1, PREG = 1,
    parameter integer ACASCREG = 1, BCASCREG = 1, INMODEREG = 1, OPMODEREG = 1, ALUMODEREG = 1,
    parameter integer CARRYINREG = 1, CARRYINSELREG = 1,
    parameter USE_MULT = "MULTIPLY", USE_DPORT = "FALSE", USE_SIMD = "ONE48",
    parameter USE_PATTERN_DETECT = "NO_PATDET", A_INPUT = "DIRECT", B_INPUT = "DIRECT"
) (
    input CLK,
    input signed [29:0] A, ACIN,
    input signed [17:0] B, BCIN,
    input signed [47:0] C, PCIN,
    input signed [24:0] D,
    input [6:0] OPMODE,
    input [4:0] INMODE,
    input [3:0] ALUMODE,
    input [2:0] CARRYINSEL,
    input CARRYIN, CARRYCASCIN, MULTSIGNIN,
    input CEA1, CEA2, CEB1, CEB2, CEC, CED, CEAD, CEM, CEP,
    input CEALUMODE, CECARRYIN, CECTRL, CEINMODE,
    input RSTA, RSTB, RSTC, RSTD, RSTM, RSTP, RSTALLCARRYIN, RSTALUMODE, RSTCTRL, RSTINMODE,
    output signed [47:0] P
);
    // the multiplier alone, or with C; the first registers of A and B do not exist here
    localparam [6:0] PRODUCT = 7'b0000101, PRODUCT_AND_C = 7'b0110101;
    initial
        if (AREG > 1 || BREG > 1 || INMODEREG != 0 || OPMODEREG != 0 || ALUMODEREG != 0
            || CARRYINREG != 0 || CARRYINSELREG != 0 || USE_MULT != "MULTIPLY"
            || USE_SIMD != "ONE48" || USE_PATTERN_DETECT != "NO_PATDET"
            || A_INPUT != "DIRECT" || B_INPUT != "DIRECT") begin
            $display("DSP48E1: a mode without a model");
            $fatal;
        end
    always @(posedge CLK)
        if ((OPMODE != PRODUCT && OPMODE != PRODUCT_AND_C) || ALUMODE != 0 || CARRYIN != 0
            || CARRYINSEL != 0 || INMODE != (USE_DPORT == "TRUE" ? 5'b00100 : 5'b00000)) begin
            $display("DSP48E1: a mode without a model");
            $fatal;
        end

    reg signed [24:0] a_register = 0, d_register = 0, sum_register = 0;
    reg signed [17:0] b_register = 0;
    reg signed [42:0] product_register = 0;
    reg signed [47:0] c_register = 0, p_register = 0;
    wire signed [24:0] a = AREG == 0 ? A[24:0] : a_register;
    wire signed [24:0] d = DREG == 0 ? D : d_register;
    wire signed [24:0] sum = ADREG == 0 ? a + d : sum_register;
    wire signed [17:0] b = BREG == 0 ? B : b_register;
    wire signed [42:0] product = (USE_DPORT == "TRUE" ? sum : a) * b;
    wire signed [47:0] c = CREG == 0 ? C : c_register;
    wire signed [47:0] multiplied = MREG == 0 ? product : product_register;
    wire signed [47:0] total = OPMODE == PRODUCT ? multiplied : multiplied + c;
    always @(posedge CLK) begin
        if (RSTA) a_register <= 0; else if (CEA2) a_register <= A[24:0];
        if (RSTB) b_register <= 0; else if (CEB2) b_register <= B;
        if (RSTC) c_register <= 0; else if (CEC) c_register <= C;
        if (RSTD) d_register <= 0; else if (CED) d_register <= D;
        if (RSTD) sum_register <= 0; else if (CEAD) sum_register <= a + d;
        if (RSTM) product_register <= 0; else if (CEM) product_register <= product;
        if (RSTP) p_register <= 0; else if (CEP) p_register <= total;
    end
    assign P = PREG == 0 ? total : p_register;
endmodule
