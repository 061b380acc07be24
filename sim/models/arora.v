// Models of the blocks of Arora V (GW5A, GW5AST) that yosys has no models of, in the modes this project
// uses; another mode ends the simulation. After Gowin's guides of memories and DSP blocks (UG300, UG305)
// and the names of parameters that yosys gives them. gowin_memory.v has what they are made of.

module SDPB (
    input CLKA, CEA, CLKB, CEB, OCE, RESET,
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
        .read_clk(CLKB), .read(CEB & ~|BLKSELB), .reset(RESET), .read_address(ADB), .q(DO)
    );
endmodule

module SDPX9B (
    input CLKA, CEA, CLKB, CEB, OCE, RESET,
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
        .read_clk(CLKB), .read(CEB & ~|BLKSELB), .reset(RESET), .read_address(ADB), .q(DO)
    );
endmodule

// Constants that two addresses read: nothing is written into it.
module nnef_hw_arora_constants #(
    parameter BYTE = 9, WIDTH_A = 18, WIDTH_B = 18, HAS_MODEL = 1,
    parameter [2048*BYTE-1:0] CONTENTS = 0
) (
    input clk_a, read_a, clk_b, read_b, changes,
    input [13:0] address_a, address_b,
    output [2*BYTE-1:0] q_a, q_b
);
    initial
        if (!HAS_MODEL) begin
            $display("DPB or DPX9B: a mode without a model");
            $fatal;
        end
    always @(posedge clk_a)
        if (changes) begin
            $display("DPB or DPX9B: a mode without a model");
            $fatal;
        end
    wire [4*BYTE-1:0] a, b;
    nnef_hw_gowin_ram #(
        .BYTE(BYTE), .WRITE_WIDTH(WIDTH_A), .READ_WIDTH(WIDTH_A), .CONTENTS(CONTENTS)
    ) first (
        .write_clk(clk_a), .write(1'b0), .write_address(address_a), .d({4*BYTE{1'b0}}),
        .read_clk(clk_a), .read(read_a), .reset(1'b0), .read_address(address_a), .q(a)
    );
    nnef_hw_gowin_ram #(
        .BYTE(BYTE), .WRITE_WIDTH(WIDTH_B), .READ_WIDTH(WIDTH_B), .CONTENTS(CONTENTS)
    ) second (
        .write_clk(clk_b), .write(1'b0), .write_address(address_b), .d({4*BYTE{1'b0}}),
        .read_clk(clk_b), .read(read_b), .reset(1'b0), .read_address(address_b), .q(b)
    );
    assign q_a = a[2*BYTE-1:0];
    assign q_b = b[2*BYTE-1:0];
endmodule

module DPX9B (
    input CLKA, CEA, OCEA, RESETA, WREA, CLKB, CEB, OCEB, RESETB, WREB,
    input [13:0] ADA, ADB,
    input [2:0] BLKSELA, BLKSELB,
    input [17:0] DIA, DIB,
    output [17:0] DOA, DOB
);
    parameter READ_MODE0 = 1'b0, READ_MODE1 = 1'b0, WRITE_MODE0 = 2'b00, WRITE_MODE1 = 2'b00;
    parameter BIT_WIDTH_0 = 18, BIT_WIDTH_1 = 18;
    parameter BLK_SEL_0 = 3'b000, BLK_SEL_1 = 3'b000, RESET_MODE = "SYNC";
    `NNEF_HW_GOWIN_CONTENTS(288)

    nnef_hw_arora_constants #(
        .BYTE(9), .WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1),
        .HAS_MODEL(READ_MODE0 == 0 && READ_MODE1 == 0 && BLK_SEL_0 == 0 && BLK_SEL_1 == 0),
        .CONTENTS(`NNEF_HW_GOWIN_ALL_CONTENTS)
    ) constants (
        .clk_a(CLKA), .read_a(CEA & ~|BLKSELA), .address_a(ADA), .q_a(DOA),
        .clk_b(CLKB), .read_b(CEB & ~|BLKSELB), .address_b(ADB), .q_b(DOB),
        .changes(WREA | WREB | RESETA | RESETB)
    );
endmodule

// The same with words of up to 8 bits.
module DPB (
    input CLKA, CEA, OCEA, RESETA, WREA, CLKB, CEB, OCEB, RESETB, WREB,
    input [13:0] ADA, ADB,
    input [2:0] BLKSELA, BLKSELB,
    input [15:0] DIA, DIB,
    output [15:0] DOA, DOB
);
    parameter READ_MODE0 = 1'b0, READ_MODE1 = 1'b0, WRITE_MODE0 = 2'b00, WRITE_MODE1 = 2'b00;
    parameter BIT_WIDTH_0 = 16, BIT_WIDTH_1 = 16;
    parameter BLK_SEL_0 = 3'b000, BLK_SEL_1 = 3'b000, RESET_MODE = "SYNC";
    `NNEF_HW_GOWIN_CONTENTS(256)

    nnef_hw_arora_constants #(
        .BYTE(8), .WIDTH_A(BIT_WIDTH_0), .WIDTH_B(BIT_WIDTH_1),
        .HAS_MODEL(READ_MODE0 == 0 && READ_MODE1 == 0 && BLK_SEL_0 == 0 && BLK_SEL_1 == 0),
        .CONTENTS(`NNEF_HW_GOWIN_ALL_CONTENTS)
    ) constants (
        .clk_a(CLKA), .read_a(CEA & ~|BLKSELA), .address_a(ADA), .q_a(DOA),
        .clk_b(CLKB), .read_b(CEB & ~|BLKSELB), .address_b(ADB), .q_b(DOB),
        .changes(WREA | WREB | RESETA | RESETB)
    );
endmodule

// A product of two factors with signs; a register of operands or product takes CLK[0], or is left out.
module MULT12X12 (
    input [11:0] A, B,
    input [1:0] CLK, CE, RESET,
    output [23:0] DOUT
);
    parameter AREG_CLK = "BYPASS", AREG_CE = "CE0", AREG_RESET = "RESET0";
    parameter BREG_CLK = "BYPASS", BREG_CE = "CE0", BREG_RESET = "RESET0";
    parameter PREG_CLK = "BYPASS", PREG_CE = "CE0", PREG_RESET = "RESET0";
    parameter OREG_CLK = "BYPASS", OREG_CE = "CE0", OREG_RESET = "RESET0";
    parameter MULT_RESET_MODE = "SYNC";

    initial
        if ((AREG_CLK != "BYPASS" && AREG_CLK != "CLK0") || AREG_CE != "CE0"
            || (BREG_CLK != "BYPASS" && BREG_CLK != "CLK0") || BREG_CE != "CE0"
            || (OREG_CLK != "BYPASS" && OREG_CLK != "CLK0") || OREG_CE != "CE0"
            || AREG_RESET != "RESET0" || BREG_RESET != "RESET0" || OREG_RESET != "RESET0"
            || PREG_CLK != "BYPASS" || MULT_RESET_MODE != "SYNC") begin
            $display("MULT12X12: a mode without a model");
            $fatal;
        end
    reg signed [11:0] a_register = 0, b_register = 0;
    reg signed [23:0] product_register = 0;
    wire signed [11:0] a = AREG_CLK == "BYPASS" ? A : a_register;
    wire signed [11:0] b = BREG_CLK == "BYPASS" ? B : b_register;
    wire signed [23:0] product = a * b;
    always @(posedge CLK[0])
        if (RESET[0]) begin
            a_register <= 0;
            b_register <= 0;
            product_register <= 0;
        end else if (CE[0]) begin
            a_register <= A;
            b_register <= B;
            product_register <= product;
        end
    assign DOUT = OREG_CLK == "BYPASS" ? product : product_register;
endmodule
