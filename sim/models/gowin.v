// Models of the blocks of GW1N and GW2A that yosys has no models of, in the modes this project uses;
// another mode ends the simulation. After Gowin's guides of memories and DSP blocks (UG285, UG287) and
// the names of parameters that yosys gives them. gowin_memory.v has what they are made of.

module SDPB (
    input CLKA, CEA, CLKB, CEB, OCE, RESETA, RESETB,
    input [13:0] ADA, ADB,
    input [2:0] BLKSELA, BLKSELB,
    input [31:0] DI,
    output [31:0] DO
);
    parameter READ_MODE = 1'b0, BIT_WIDTH_0 = 32, BIT_WIDTH_1 = 32;
    parameter BLK_SEL_0 = 3'b000, BLK_SEL_1 = 3'b000, RESET_MODE = "SYNC";
    `NNEF_HW_GOWIN_CONTENTS(256)

    initial
        if (READ_MODE != 0 || BLK_SEL_0 != 0 || BLK_SEL_1 != 0 || RESET_MODE != "SYNC") begin
            $display("SDPB: a mode without a model");
            $fatal;
        end
    nnef_hw_gowin_ram #(
        .BYTE(8), .WRITE_WIDTH(BIT_WIDTH_0), .READ_WIDTH(BIT_WIDTH_1),
        .CONTENTS(`NNEF_HW_GOWIN_ALL_CONTENTS)
    ) ram (
        .write_clk(CLKA), .write(CEA & ~|BLKSELA), .write_address(ADA), .d(DI),
        .read_clk(CLKB), .read(CEB & ~|BLKSELB), .reset(RESETB), .read_address(ADB), .q(DO)
    );
endmodule

module SDPX9B (
    input CLKA, CEA, CLKB, CEB, OCE, RESETA, RESETB,
    input [13:0] ADA, ADB,
    input [2:0] BLKSELA, BLKSELB,
    input [35:0] DI,
    output [35:0] DO
);
    parameter READ_MODE = 1'b0, BIT_WIDTH_0 = 36, BIT_WIDTH_1 = 36;
    parameter BLK_SEL_0 = 3'b000, BLK_SEL_1 = 3'b000, RESET_MODE = "SYNC";
    `NNEF_HW_GOWIN_CONTENTS(288)

    initial
        if (READ_MODE != 0 || BLK_SEL_0 != 0 || BLK_SEL_1 != 0 || RESET_MODE != "SYNC") begin
            $display("SDPX9B: a mode without a model");
            $fatal;
        end
    nnef_hw_gowin_ram #(
        .BYTE(9), .WRITE_WIDTH(BIT_WIDTH_0), .READ_WIDTH(BIT_WIDTH_1),
        .CONTENTS(`NNEF_HW_GOWIN_ALL_CONTENTS)
    ) ram (
        .write_clk(CLKA), .write(CEA & ~|BLKSELA), .write_address(ADA), .d(DI),
        .read_clk(CLKB), .read(CEB & ~|BLKSELB), .reset(RESETB), .read_address(ADB), .q(DO)
    );
endmodule

// A product of 9 bits each, of either signedness, with registers for operands and product.
module MULT9X9 (
    input [8:0] A, B, SIA, SIB,
    input ASIGN, BSIGN, ASEL, BSEL, CE, CLK, RESET,
    output [17:0] DOUT,
    output [8:0] SOA, SOB
);
    parameter AREG = 1'b0, BREG = 1'b0, OUT_REG = 1'b0, PIPE_REG = 1'b0, ASIGN_REG = 1'b0;
    parameter BSIGN_REG = 1'b0, SOA_REG = 1'b0, MULT_RESET_MODE = "SYNC";

    initial
        if (PIPE_REG || ASIGN_REG || BSIGN_REG || SOA_REG || MULT_RESET_MODE != "SYNC") begin
            $display("MULT9X9: a mode without a model");
            $fatal;
        end
    always @(ASEL or BSEL)
        if (ASEL || BSEL) begin
            $display("MULT9X9: a mode without a model");
            $fatal;
        end
    reg [8:0] a_register = 0, b_register = 0;
    reg signed [17:0] product_register = 0;
    wire [8:0] a = AREG ? a_register : A, b = BREG ? b_register : B;
    wire signed [9:0] wide_a = {ASIGN & a[8], a}, wide_b = {BSIGN & b[8], b};
    wire signed [19:0] product = wide_a * wide_b;
    always @(posedge CLK)
        if (RESET) begin
            a_register <= 0;
            b_register <= 0;
            product_register <= 0;
        end else if (CE) begin
            a_register <= A;
            b_register <= B;
            product_register <= product[17:0];
        end
    assign DOUT = OUT_REG ? product_register : product[17:0];
    assign SOA = a;
    assign SOB = b;
endmodule
