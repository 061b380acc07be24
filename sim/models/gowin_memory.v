// Block RAMs with one port of every Gowin device, and what is common to all block RAMs, in the modes this
// project uses; another mode ends the simulation. After Gowin's guide of memories (UG285) and the names
// of parameters that yosys gives them.

`define NNEF_HW_GOWIN_CONTENTS(BITS) \
    parameter [BITS-1:0] \
        INIT_RAM_00 = 0, INIT_RAM_01 = 0, INIT_RAM_02 = 0, INIT_RAM_03 = 0, INIT_RAM_04 = 0, \
        INIT_RAM_05 = 0, INIT_RAM_06 = 0, INIT_RAM_07 = 0, INIT_RAM_08 = 0, INIT_RAM_09 = 0, \
        INIT_RAM_0A = 0, INIT_RAM_0B = 0, INIT_RAM_0C = 0, INIT_RAM_0D = 0, INIT_RAM_0E = 0, \
        INIT_RAM_0F = 0, INIT_RAM_10 = 0, INIT_RAM_11 = 0, INIT_RAM_12 = 0, INIT_RAM_13 = 0, \
        INIT_RAM_14 = 0, INIT_RAM_15 = 0, INIT_RAM_16 = 0, INIT_RAM_17 = 0, INIT_RAM_18 = 0, \
        INIT_RAM_19 = 0, INIT_RAM_1A = 0, INIT_RAM_1B = 0, INIT_RAM_1C = 0, INIT_RAM_1D = 0, \
        INIT_RAM_1E = 0, INIT_RAM_1F = 0, INIT_RAM_20 = 0, INIT_RAM_21 = 0, INIT_RAM_22 = 0, \
        INIT_RAM_23 = 0, INIT_RAM_24 = 0, INIT_RAM_25 = 0, INIT_RAM_26 = 0, INIT_RAM_27 = 0, \
        INIT_RAM_28 = 0, INIT_RAM_29 = 0, INIT_RAM_2A = 0, INIT_RAM_2B = 0, INIT_RAM_2C = 0, \
        INIT_RAM_2D = 0, INIT_RAM_2E = 0, INIT_RAM_2F = 0, INIT_RAM_30 = 0, INIT_RAM_31 = 0, \
        INIT_RAM_32 = 0, INIT_RAM_33 = 0, INIT_RAM_34 = 0, INIT_RAM_35 = 0, INIT_RAM_36 = 0, \
        INIT_RAM_37 = 0, INIT_RAM_38 = 0, INIT_RAM_39 = 0, INIT_RAM_3A = 0, INIT_RAM_3B = 0, \
        INIT_RAM_3C = 0, INIT_RAM_3D = 0, INIT_RAM_3E = 0, INIT_RAM_3F = 0;
`define NNEF_HW_GOWIN_ALL_CONTENTS { \
        INIT_RAM_3F, INIT_RAM_3E, INIT_RAM_3D, INIT_RAM_3C, INIT_RAM_3B, INIT_RAM_3A, \
        INIT_RAM_39, INIT_RAM_38, INIT_RAM_37, INIT_RAM_36, INIT_RAM_35, INIT_RAM_34, \
        INIT_RAM_33, INIT_RAM_32, INIT_RAM_31, INIT_RAM_30, INIT_RAM_2F, INIT_RAM_2E, \
        INIT_RAM_2D, INIT_RAM_2C, INIT_RAM_2B, INIT_RAM_2A, INIT_RAM_29, INIT_RAM_28, \
        INIT_RAM_27, INIT_RAM_26, INIT_RAM_25, INIT_RAM_24, INIT_RAM_23, INIT_RAM_22, \
        INIT_RAM_21, INIT_RAM_20, INIT_RAM_1F, INIT_RAM_1E, INIT_RAM_1D, INIT_RAM_1C, \
        INIT_RAM_1B, INIT_RAM_1A, INIT_RAM_19, INIT_RAM_18, INIT_RAM_17, INIT_RAM_16, \
        INIT_RAM_15, INIT_RAM_14, INIT_RAM_13, INIT_RAM_12, INIT_RAM_11, INIT_RAM_10, \
        INIT_RAM_0F, INIT_RAM_0E, INIT_RAM_0D, INIT_RAM_0C, INIT_RAM_0B, INIT_RAM_0A, \
        INIT_RAM_09, INIT_RAM_08, INIT_RAM_07, INIT_RAM_06, INIT_RAM_05, INIT_RAM_04, \
        INIT_RAM_03, INIT_RAM_02, INIT_RAM_01, INIT_RAM_00 \
    }

// A port that writes and one that reads onto 16384 bits (BYTE = 8) or 18432 (BYTE = 9). An address
// counts bits, nine as eight, so that a word of 16 or 18 is at address[13:4]; such words and wider
// ones have an enable per byte in the bits of the write address below that.
module nnef_hw_gowin_ram #(
    parameter BYTE = 8, parameter WRITE_WIDTH = 32, parameter READ_WIDTH = 32,
    parameter [2048*BYTE-1:0] CONTENTS = 0
) (
    input write_clk, write, read_clk, read, reset,
    input [13:0] write_address, read_address,
    input [4*BYTE-1:0] d,
    output reg [4*BYTE-1:0] q
);
    localparam LINE = 4 * BYTE;
    reg [LINE-1:0] lines [0:511];
    integer n;
    initial begin
        q = 0;
        for (n = 0; n < 512; n = n + 1) lines[n] = CONTENTS[n * LINE +: LINE];
    end

    // where the word of an address begins in its line
    function [5:0] place(input [4:0] address, input integer width);
        place = BYTE * (address[4:3] & ~(width > 2 * BYTE ? 2'd3 : width > BYTE ? 2'd1 : 2'd0))
            + (width < 8 ? address[2:0] & ~(width - 1) : 0);
    endfunction
    function [LINE-1:0] merge(input [LINE-1:0] line, input [LINE-1:0] word, input [4:0] address);
        integer k;
        begin
            merge = line;
            for (k = 0; k < WRITE_WIDTH; k = k + 1)
                if (WRITE_WIDTH <= BYTE || address[k / BYTE])
                    merge[place(address, WRITE_WIDTH) + k] = word[k];
        end
    endfunction

    wire [LINE-1:0] word = lines[read_address[13:5]] >> place(read_address[4:0], READ_WIDTH);
    localparam [LINE-1:0] MASK = {LINE{1'b1}} >> (LINE - READ_WIDTH);
    always @(posedge write_clk)
        if (write)
            lines[write_address[13:5]]
                <= merge(lines[write_address[13:5]], d, write_address[4:0]);
    always @(posedge read_clk)
        if (reset) q <= 0;
        else if (read) q <= word & MASK;
endmodule

module SP (
    input CLK, CE, OCE, RESET, WRE,
    input [13:0] AD,
    input [2:0] BLKSEL,
    input [31:0] DI,
    output [31:0] DO
);
    parameter READ_MODE = 1'b0, WRITE_MODE = 2'b00, BIT_WIDTH = 32, BLK_SEL = 3'b000;
    parameter RESET_MODE = "SYNC";
    `NNEF_HW_GOWIN_CONTENTS(256)

    initial
        if (READ_MODE != 0 || WRITE_MODE != 0 || BLK_SEL != 0 || RESET_MODE != "SYNC") begin
            $display("SP: a mode without a model");
            $fatal;
        end
    wire selected = CE & ~|BLKSEL;
    nnef_hw_gowin_ram #(
        .BYTE(8), .WRITE_WIDTH(BIT_WIDTH), .READ_WIDTH(BIT_WIDTH),
        .CONTENTS(`NNEF_HW_GOWIN_ALL_CONTENTS)
    ) ram (
        .write_clk(CLK), .write(selected & WRE), .write_address(AD), .d(DI),
        .read_clk(CLK), .read(selected & ~WRE), .reset(RESET), .read_address(AD), .q(DO)
    );
endmodule

module SPX9 (
    input CLK, CE, OCE, RESET, WRE,
    input [13:0] AD,
    input [2:0] BLKSEL,
    input [35:0] DI,
    output [35:0] DO
);
    parameter READ_MODE = 1'b0, WRITE_MODE = 2'b00, BIT_WIDTH = 36, BLK_SEL = 3'b000;
    parameter RESET_MODE = "SYNC";
    `NNEF_HW_GOWIN_CONTENTS(288)

    initial
        if (READ_MODE != 0 || WRITE_MODE != 0 || BLK_SEL != 0 || RESET_MODE != "SYNC") begin
            $display("SPX9: a mode without a model");
            $fatal;
        end
    wire selected = CE & ~|BLKSEL;
    nnef_hw_gowin_ram #(
        .BYTE(9), .WRITE_WIDTH(BIT_WIDTH), .READ_WIDTH(BIT_WIDTH),
        .CONTENTS(`NNEF_HW_GOWIN_ALL_CONTENTS)
    ) ram (
        .write_clk(CLK), .write(selected & WRE), .write_address(AD), .d(DI),
        .read_clk(CLK), .read(selected & ~WRE), .reset(RESET), .read_address(AD), .q(DO)
    );
endmodule
