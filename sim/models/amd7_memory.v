// Models of the block RAMs of AMD's 7 series, of which yosys has ports and parameters only, in the
// modes that it maps memories to; another mode ends the simulation. After AMD's guide of memories
// (UG473). Both ports have one clock.

`define NNEF_HW_AMD7_CONTENTS_18 \
    parameter [255:0] \
        INITP_00 = 0, INITP_01 = 0, INITP_02 = 0, INITP_03 = 0, INITP_04 = 0, INITP_05 = 0, \
        INITP_06 = 0, INITP_07 = 0, \
        INIT_00 = 0, INIT_01 = 0, INIT_02 = 0, INIT_03 = 0, INIT_04 = 0, INIT_05 = 0, \
        INIT_06 = 0, INIT_07 = 0, INIT_08 = 0, INIT_09 = 0, INIT_0A = 0, INIT_0B = 0, \
        INIT_0C = 0, INIT_0D = 0, INIT_0E = 0, INIT_0F = 0, INIT_10 = 0, INIT_11 = 0, \
        INIT_12 = 0, INIT_13 = 0, INIT_14 = 0, INIT_15 = 0, INIT_16 = 0, INIT_17 = 0, \
        INIT_18 = 0, INIT_19 = 0, INIT_1A = 0, INIT_1B = 0, INIT_1C = 0, INIT_1D = 0, \
        INIT_1E = 0, INIT_1F = 0, INIT_20 = 0, INIT_21 = 0, INIT_22 = 0, INIT_23 = 0, \
        INIT_24 = 0, INIT_25 = 0, INIT_26 = 0, INIT_27 = 0, INIT_28 = 0, INIT_29 = 0, \
        INIT_2A = 0, INIT_2B = 0, INIT_2C = 0, INIT_2D = 0, INIT_2E = 0, INIT_2F = 0, \
        INIT_30 = 0, INIT_31 = 0, INIT_32 = 0, INIT_33 = 0, INIT_34 = 0, INIT_35 = 0, \
        INIT_36 = 0, INIT_37 = 0, INIT_38 = 0, INIT_39 = 0, INIT_3A = 0, INIT_3B = 0, \
        INIT_3C = 0, INIT_3D = 0, INIT_3E = 0, INIT_3F = 0;
`define NNEF_HW_AMD7_CONTENTS_36 \
    parameter [255:0] \
        INITP_00 = 0, INITP_01 = 0, INITP_02 = 0, INITP_03 = 0, INITP_04 = 0, INITP_05 = 0, \
        INITP_06 = 0, INITP_07 = 0, INITP_08 = 0, INITP_09 = 0, INITP_0A = 0, INITP_0B = 0, \
        INITP_0C = 0, INITP_0D = 0, INITP_0E = 0, INITP_0F = 0, \
        INIT_00 = 0, INIT_01 = 0, INIT_02 = 0, INIT_03 = 0, INIT_04 = 0, INIT_05 = 0, \
        INIT_06 = 0, INIT_07 = 0, INIT_08 = 0, INIT_09 = 0, INIT_0A = 0, INIT_0B = 0, \
        INIT_0C = 0, INIT_0D = 0, INIT_0E = 0, INIT_0F = 0, INIT_10 = 0, INIT_11 = 0, \
        INIT_12 = 0, INIT_13 = 0, INIT_14 = 0, INIT_15 = 0, INIT_16 = 0, INIT_17 = 0, \
        INIT_18 = 0, INIT_19 = 0, INIT_1A = 0, INIT_1B = 0, INIT_1C = 0, INIT_1D = 0, \
        INIT_1E = 0, INIT_1F = 0, INIT_20 = 0, INIT_21 = 0, INIT_22 = 0, INIT_23 = 0, \
        INIT_24 = 0, INIT_25 = 0, INIT_26 = 0, INIT_27 = 0, INIT_28 = 0, INIT_29 = 0, \
        INIT_2A = 0, INIT_2B = 0, INIT_2C = 0, INIT_2D = 0, INIT_2E = 0, INIT_2F = 0, \
        INIT_30 = 0, INIT_31 = 0, INIT_32 = 0, INIT_33 = 0, INIT_34 = 0, INIT_35 = 0, \
        INIT_36 = 0, INIT_37 = 0, INIT_38 = 0, INIT_39 = 0, INIT_3A = 0, INIT_3B = 0, \
        INIT_3C = 0, INIT_3D = 0, INIT_3E = 0, INIT_3F = 0, INIT_40 = 0, INIT_41 = 0, \
        INIT_42 = 0, INIT_43 = 0, INIT_44 = 0, INIT_45 = 0, INIT_46 = 0, INIT_47 = 0, \
        INIT_48 = 0, INIT_49 = 0, INIT_4A = 0, INIT_4B = 0, INIT_4C = 0, INIT_4D = 0, \
        INIT_4E = 0, INIT_4F = 0, INIT_50 = 0, INIT_51 = 0, INIT_52 = 0, INIT_53 = 0, \
        INIT_54 = 0, INIT_55 = 0, INIT_56 = 0, INIT_57 = 0, INIT_58 = 0, INIT_59 = 0, \
        INIT_5A = 0, INIT_5B = 0, INIT_5C = 0, INIT_5D = 0, INIT_5E = 0, INIT_5F = 0, \
        INIT_60 = 0, INIT_61 = 0, INIT_62 = 0, INIT_63 = 0, INIT_64 = 0, INIT_65 = 0, \
        INIT_66 = 0, INIT_67 = 0, INIT_68 = 0, INIT_69 = 0, INIT_6A = 0, INIT_6B = 0, \
        INIT_6C = 0, INIT_6D = 0, INIT_6E = 0, INIT_6F = 0, INIT_70 = 0, INIT_71 = 0, \
        INIT_72 = 0, INIT_73 = 0, INIT_74 = 0, INIT_75 = 0, INIT_76 = 0, INIT_77 = 0, \
        INIT_78 = 0, INIT_79 = 0, INIT_7A = 0, INIT_7B = 0, INIT_7C = 0, INIT_7D = 0, \
        INIT_7E = 0, INIT_7F = 0;
`define NNEF_HW_AMD7_DATA_18 { \
        INIT_3F, INIT_3E, INIT_3D, INIT_3C, INIT_3B, INIT_3A, INIT_39, INIT_38, \
        INIT_37, INIT_36, INIT_35, INIT_34, INIT_33, INIT_32, INIT_31, INIT_30, \
        INIT_2F, INIT_2E, INIT_2D, INIT_2C, INIT_2B, INIT_2A, INIT_29, INIT_28, \
        INIT_27, INIT_26, INIT_25, INIT_24, INIT_23, INIT_22, INIT_21, INIT_20, \
        INIT_1F, INIT_1E, INIT_1D, INIT_1C, INIT_1B, INIT_1A, INIT_19, INIT_18, \
        INIT_17, INIT_16, INIT_15, INIT_14, INIT_13, INIT_12, INIT_11, INIT_10, \
        INIT_0F, INIT_0E, INIT_0D, INIT_0C, INIT_0B, INIT_0A, INIT_09, INIT_08, \
        INIT_07, INIT_06, INIT_05, INIT_04, INIT_03, INIT_02, INIT_01, INIT_00 \
    }
`define NNEF_HW_AMD7_PARITY_18 { \
        INITP_07, INITP_06, INITP_05, INITP_04, INITP_03, INITP_02, INITP_01, INITP_00 \
    }
`define NNEF_HW_AMD7_DATA_36 { \
        INIT_7F, INIT_7E, INIT_7D, INIT_7C, INIT_7B, INIT_7A, INIT_79, INIT_78, \
        INIT_77, INIT_76, INIT_75, INIT_74, INIT_73, INIT_72, INIT_71, INIT_70, \
        INIT_6F, INIT_6E, INIT_6D, INIT_6C, INIT_6B, INIT_6A, INIT_69, INIT_68, \
        INIT_67, INIT_66, INIT_65, INIT_64, INIT_63, INIT_62, INIT_61, INIT_60, \
        INIT_5F, INIT_5E, INIT_5D, INIT_5C, INIT_5B, INIT_5A, INIT_59, INIT_58, \
        INIT_57, INIT_56, INIT_55, INIT_54, INIT_53, INIT_52, INIT_51, INIT_50, \
        INIT_4F, INIT_4E, INIT_4D, INIT_4C, INIT_4B, INIT_4A, INIT_49, INIT_48, \
        INIT_47, INIT_46, INIT_45, INIT_44, INIT_43, INIT_42, INIT_41, INIT_40, \
        INIT_3F, INIT_3E, INIT_3D, INIT_3C, INIT_3B, INIT_3A, INIT_39, INIT_38, \
        INIT_37, INIT_36, INIT_35, INIT_34, INIT_33, INIT_32, INIT_31, INIT_30, \
        INIT_2F, INIT_2E, INIT_2D, INIT_2C, INIT_2B, INIT_2A, INIT_29, INIT_28, \
        INIT_27, INIT_26, INIT_25, INIT_24, INIT_23, INIT_22, INIT_21, INIT_20, \
        INIT_1F, INIT_1E, INIT_1D, INIT_1C, INIT_1B, INIT_1A, INIT_19, INIT_18, \
        INIT_17, INIT_16, INIT_15, INIT_14, INIT_13, INIT_12, INIT_11, INIT_10, \
        INIT_0F, INIT_0E, INIT_0D, INIT_0C, INIT_0B, INIT_0A, INIT_09, INIT_08, \
        INIT_07, INIT_06, INIT_05, INIT_04, INIT_03, INIT_02, INIT_01, INIT_00 \
    }
`define NNEF_HW_AMD7_PARITY_36 { \
        INITP_0F, INITP_0E, INITP_0D, INITP_0C, INITP_0B, INITP_0A, INITP_09, INITP_08, \
        INITP_07, INITP_06, INITP_05, INITP_04, INITP_03, INITP_02, INITP_01, INITP_00 \
    }

// Two ports onto lines of BYTES bytes of nine bits. An address counts bits, nine as eight; words of
// more than one byte have an enable for each. What is read while the other port writes it is wrong
// in every bit, unless that port reads first: nothing may depend on it.
module nnef_hw_amd7_ram #(
    parameter BYTES = 4, parameter ADDRESS = 14,
    parameter READ_A = 0, parameter WRITE_A = 0, parameter READ_B = 0, parameter WRITE_B = 0,
    parameter MODE_A = "WRITE_FIRST", parameter MODE_B = "WRITE_FIRST",
    parameter [9*BYTES-1:0] INIT_A = 0, parameter [9*BYTES-1:0] INIT_B = 0,
    parameter [9*BYTES-1:0] RESET_A = 0, parameter [9*BYTES-1:0] RESET_B = 0,
    parameter [64*64*BYTES-1:0] DATA = 0, parameter [8*64*BYTES-1:0] PARITY = 0
) (
    input clk_a, clk_b, enable_a, enable_b, reset_a, reset_b,
    input [BYTES-1:0] write_a, write_b,
    input [ADDRESS-1:0] address_a, address_b,
    input [9*BYTES-1:0] d_a, d_b,
    output reg [9*BYTES-1:0] q_a, q_b
);
    localparam LINE = 9 * BYTES, OFFSET = ADDRESS - 9;
    localparam USED_A = READ_A != 0 || WRITE_A != 0, USED_B = READ_B != 0 || WRITE_B != 0;
    reg [LINE-1:0] lines [0:511];
    integer n, k;
    initial begin
        q_a = INIT_A;
        q_b = INIT_B;
        for (n = 0; n < 512; n = n + 1)
            for (k = 0; k < BYTES; k = k + 1)
                lines[n][9*k +: 9] = {PARITY[BYTES*n+k], DATA[8*(BYTES*n+k) +: 8]};
    end

    // where the word of an address begins in its line
    function integer place(input [OFFSET-1:0] address, input integer width);
        place = width < 9 ? 9 * (address >> 3) + (address[2:0] & ~(width - 1))
            : 9 * ((address >> 3) & ~(width / 9 - 1));
    endfunction
    function [LINE-1:0] written(
        input [OFFSET-1:0] address, input integer width, input [BYTES-1:0] write
    );
        integer bit_number;
        begin
            written = 0;
            for (bit_number = 0; bit_number < width; bit_number = bit_number + 1)
                written[bit_number] = write[width <= 9 ? 0 : bit_number / 9];
            written = written << place(address, width);
        end
    endfunction

    wire clk = USED_A ? clk_a : clk_b;
    wire [8:0] line_a = address_a[ADDRESS-1:OFFSET], line_b = address_b[ADDRESS-1:OFFSET];
    wire [OFFSET-1:0] below_a = address_a[OFFSET-1:0], below_b = address_b[OFFSET-1:0];
    wire [LINE-1:0] mask_a = enable_a && WRITE_A != 0 ? written(below_a, WRITE_A, write_a) : 0;
    wire [LINE-1:0] mask_b = enable_b && WRITE_B != 0 ? written(below_b, WRITE_B, write_b) : 0;
    wire [LINE-1:0] word_a = d_a << place(below_a, WRITE_A);
    wire [LINE-1:0] word_b = d_b << place(below_b, WRITE_B);
    wire [LINE-1:0] after_a = lines[line_b] & ~mask_a | word_a & mask_a;
    wire [LINE-1:0] wrong_a = line_a == line_b && MODE_B != "READ_FIRST" ? mask_b : 0;
    wire [LINE-1:0] wrong_b = line_a == line_b && MODE_A != "READ_FIRST" ? mask_a : 0;
    wire [LINE-1:0] new_a = MODE_A == "WRITE_FIRST" ? mask_a : 0;
    wire [LINE-1:0] new_b = MODE_B == "WRITE_FIRST" ? mask_b : 0;
    wire [LINE-1:0] seen_a = lines[line_a] & ~new_a | word_a & new_a;
    wire [LINE-1:0] seen_b = lines[line_b] & ~new_b | word_b & new_b;
    localparam [LINE-1:0] ALL = {LINE{1'b1}};
    always @(posedge clk) begin
        if (USED_A && USED_B && clk_a != clk_b) begin
            $display("a block RAM with two clocks has no model");
            $fatal;
        end
        if (READ_A != 0 && enable_a) begin
            if (reset_a) q_a <= RESET_A;
            else if (MODE_A != "NO_CHANGE" || mask_a == 0)
                q_a <= ((seen_a ^ wrong_a) >> place(below_a, READ_A)) & (ALL >> (LINE - READ_A));
        end
        if (READ_B != 0 && enable_b) begin
            if (reset_b) q_b <= RESET_B;
            else if (MODE_B != "NO_CHANGE" || mask_b == 0)
                q_b <= ((seen_b ^ wrong_b) >> place(below_b, READ_B)) & (ALL >> (LINE - READ_B));
        end
        if (mask_a != 0) lines[line_a] <= lines[line_a] & ~mask_a | word_a & mask_a;
        if (mask_b != 0)
            lines[line_b] <= (line_a == line_b ? after_a : lines[line_b]) & ~mask_b
                | word_b & mask_b;
    end
endmodule

module RAMB18E1 (
    input CLKARDCLK, CLKBWRCLK, ENARDEN, ENBWREN, REGCEAREGCE, REGCEB,
    input RSTRAMARSTRAM, RSTRAMB, RSTREGARSTREG, RSTREGB,
    input [13:0] ADDRARDADDR, ADDRBWRADDR,
    input [15:0] DIADI, DIBDI,
    input [1:0] DIPADIP, DIPBDIP,
    input [1:0] WEA,
    input [3:0] WEBWE,
    output [15:0] DOADO, DOBDO,
    output [1:0] DOPADOP, DOPBDOP
);
    parameter integer DOA_REG = 0, DOB_REG = 0;
    parameter integer READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0;
    parameter [17:0] INIT_A = 0, INIT_B = 0, SRVAL_A = 0, SRVAL_B = 0;
    parameter RAM_MODE = "TDP", WRITE_MODE_A = "WRITE_FIRST", WRITE_MODE_B = "WRITE_FIRST";
    parameter RSTREG_PRIORITY_A = "RSTREG", RSTREG_PRIORITY_B = "RSTREG";
    parameter RDADDR_COLLISION_HWCONFIG = "DELAYED_WRITE", SIM_COLLISION_CHECK = "ALL";
    parameter SIM_DEVICE = "7SERIES", INIT_FILE = "NONE";
    parameter IS_CLKARDCLK_INVERTED = 1'b0, IS_CLKBWRCLK_INVERTED = 1'b0;
    parameter IS_ENARDEN_INVERTED = 1'b0, IS_ENBWREN_INVERTED = 1'b0;
    parameter IS_RSTRAMARSTRAM_INVERTED = 1'b0, IS_RSTRAMB_INVERTED = 1'b0;
    parameter IS_RSTREGARSTREG_INVERTED = 1'b0, IS_RSTREGB_INVERTED = 1'b0;
    `NNEF_HW_AMD7_CONTENTS_18

    initial
        if (DOA_REG != 0 || DOB_REG != 0 || INIT_FILE != "NONE"
            || (RAM_MODE != "TDP" && (RAM_MODE != "SDP" || READ_WIDTH_B != 0 || WRITE_WIDTH_A != 0))
            || IS_CLKARDCLK_INVERTED || IS_CLKBWRCLK_INVERTED || IS_ENARDEN_INVERTED
            || IS_ENBWREN_INVERTED || IS_RSTRAMARSTRAM_INVERTED || IS_RSTRAMB_INVERTED) begin
            $display("RAMB18E1: a mode without a model");
            $fatal;
        end
    // bytes of nine bits, of a word that fills both ports those of B above those of A
    function [17:0] joined(input [15:0] bits, input [1:0] parity);
        integer n;
        for (n = 0; n < 2; n = n + 1) joined[9*n +: 9] = {parity[n], bits[8*n +: 8]};
    endfunction
    function [17:0] initial_word(input [17:0] value, input integer width);
        initial_word = width < 9 ? value & ((1 << width) - 1)
            : width == 9 ? value[8:0] : width == 18
            ? {value[17], value[15:8], value[16], value[7:0]}
            : joined(value[15:0], value[17:16]);
    endfunction
    localparam WIDE = 36;
    localparam [WIDE-1:0] START_A = {READ_WIDTH_A == WIDE ? initial_word(INIT_B, 18) : 18'b0,
        initial_word(INIT_A, READ_WIDTH_A)};
    localparam [WIDE-1:0] RESET_A = {READ_WIDTH_A == WIDE ? initial_word(SRVAL_B, 18) : 18'b0,
        initial_word(SRVAL_A, READ_WIDTH_A)};
    wire [17:0] a = joined(DIADI, DIPADIP), b = joined(DIBDI, DIPBDIP);
    wire [WIDE-1:0] q_a, q_b;
    nnef_hw_amd7_ram #(
        .BYTES(4), .ADDRESS(14), .READ_A(READ_WIDTH_A), .READ_B(READ_WIDTH_B),
        .WRITE_A(WRITE_WIDTH_A), .WRITE_B(WRITE_WIDTH_B), .MODE_A(WRITE_MODE_A),
        .MODE_B(WRITE_MODE_B),
        .INIT_A(START_A), .INIT_B({18'b0, initial_word(INIT_B, READ_WIDTH_B)}), .RESET_A(RESET_A),
        .RESET_B({18'b0, initial_word(SRVAL_B, READ_WIDTH_B)}),
        .DATA(`NNEF_HW_AMD7_DATA_18), .PARITY(`NNEF_HW_AMD7_PARITY_18)
    ) ram (
        .clk_a(CLKARDCLK), .clk_b(CLKBWRCLK), .enable_a(ENARDEN), .enable_b(ENBWREN),
        .reset_a(RSTRAMARSTRAM), .reset_b(RSTRAMB), .write_a({2'b0, WEA}), .write_b(WEBWE),
        .address_a(ADDRARDADDR[13:0]), .address_b(ADDRBWRADDR[13:0]),
        .d_a({18'b0, a}), .d_b(WRITE_WIDTH_B == WIDE ? {b, a} : {18'b0, b}),
        .q_a(q_a), .q_b(q_b)
    );
    wire [17:0] high = READ_WIDTH_A == WIDE ? q_a[WIDE-1:18] : q_b[17:0];
    genvar n;
    generate
        for (n = 0; n < 2; n = n + 1) begin : bytes
            assign {DOPADOP[n], DOADO[8*n +: 8]} = q_a[9*n +: 9];
            assign {DOPBDOP[n], DOBDO[8*n +: 8]} = high[9*n +: 9];
        end
    endgenerate
endmodule

module RAMB36E1 (
    input CLKARDCLK, CLKBWRCLK, ENARDEN, ENBWREN, REGCEAREGCE, REGCEB,
    input RSTRAMARSTRAM, RSTRAMB, RSTREGARSTREG, RSTREGB,
    input CASCADEINA, CASCADEINB, INJECTDBITERR, INJECTSBITERR,
    output CASCADEOUTA, CASCADEOUTB, SBITERR, DBITERR,
    output [7:0] ECCPARITY,
    output [8:0] RDADDRECC,
    input [15:0] ADDRARDADDR, ADDRBWRADDR,
    input [31:0] DIADI, DIBDI,
    input [3:0] DIPADIP, DIPBDIP,
    input [3:0] WEA,
    input [7:0] WEBWE,
    output [31:0] DOADO, DOBDO,
    output [3:0] DOPADOP, DOPBDOP
);
    parameter integer DOA_REG = 0, DOB_REG = 0;
    parameter integer READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0;
    parameter [35:0] INIT_A = 0, INIT_B = 0, SRVAL_A = 0, SRVAL_B = 0;
    parameter RAM_MODE = "TDP", WRITE_MODE_A = "WRITE_FIRST", WRITE_MODE_B = "WRITE_FIRST";
    parameter RSTREG_PRIORITY_A = "RSTREG", RSTREG_PRIORITY_B = "RSTREG";
    parameter RDADDR_COLLISION_HWCONFIG = "DELAYED_WRITE", SIM_COLLISION_CHECK = "ALL";
    parameter SIM_DEVICE = "7SERIES", INIT_FILE = "NONE";
    parameter IS_CLKARDCLK_INVERTED = 1'b0, IS_CLKBWRCLK_INVERTED = 1'b0;
    parameter IS_ENARDEN_INVERTED = 1'b0, IS_ENBWREN_INVERTED = 1'b0;
    parameter IS_RSTRAMARSTRAM_INVERTED = 1'b0, IS_RSTRAMB_INVERTED = 1'b0;
    parameter IS_RSTREGARSTREG_INVERTED = 1'b0, IS_RSTREGB_INVERTED = 1'b0;
    parameter RAM_EXTENSION_A = "NONE", RAM_EXTENSION_B = "NONE";
    parameter EN_ECC_READ = "FALSE", EN_ECC_WRITE = "FALSE";
    `NNEF_HW_AMD7_CONTENTS_36

    initial
        if (DOA_REG != 0 || DOB_REG != 0 || INIT_FILE != "NONE"
            || (RAM_MODE != "TDP" && (RAM_MODE != "SDP" || READ_WIDTH_B != 0 || WRITE_WIDTH_A != 0))
            || IS_CLKARDCLK_INVERTED || IS_CLKBWRCLK_INVERTED || IS_ENARDEN_INVERTED
            || IS_ENBWREN_INVERTED || IS_RSTRAMARSTRAM_INVERTED || IS_RSTRAMB_INVERTED
            || RAM_EXTENSION_A != "NONE" || RAM_EXTENSION_B != "NONE"
            || EN_ECC_READ != "FALSE" || EN_ECC_WRITE != "FALSE") begin
            $display("RAMB36E1: a mode without a model");
            $fatal;
        end
    // bytes of nine bits, of a word that fills both ports those of B above those of A
    function [35:0] joined(input [31:0] bits, input [3:0] parity);
        integer n;
        for (n = 0; n < 4; n = n + 1) joined[9*n +: 9] = {parity[n], bits[8*n +: 8]};
    endfunction
    function [35:0] initial_word(input [35:0] value, input integer width);
        initial_word = width < 9 ? value & ((1 << width) - 1)
            : width == 9 ? value[8:0] : width == 18
            ? {value[17], value[15:8], value[16], value[7:0]}
            : joined(value[31:0], value[35:32]);
    endfunction
    localparam WIDE = 72;
    localparam [WIDE-1:0] START_A = {READ_WIDTH_A == WIDE ? initial_word(INIT_B, 36) : 36'b0,
        initial_word(INIT_A, READ_WIDTH_A)};
    localparam [WIDE-1:0] RESET_A = {READ_WIDTH_A == WIDE ? initial_word(SRVAL_B, 36) : 36'b0,
        initial_word(SRVAL_A, READ_WIDTH_A)};
    wire [35:0] a = joined(DIADI, DIPADIP), b = joined(DIBDI, DIPBDIP);
    wire [WIDE-1:0] q_a, q_b;
    nnef_hw_amd7_ram #(
        .BYTES(8), .ADDRESS(15), .READ_A(READ_WIDTH_A), .READ_B(READ_WIDTH_B),
        .WRITE_A(WRITE_WIDTH_A), .WRITE_B(WRITE_WIDTH_B), .MODE_A(WRITE_MODE_A),
        .MODE_B(WRITE_MODE_B),
        .INIT_A(START_A), .INIT_B({36'b0, initial_word(INIT_B, READ_WIDTH_B)}), .RESET_A(RESET_A),
        .RESET_B({36'b0, initial_word(SRVAL_B, READ_WIDTH_B)}),
        .DATA(`NNEF_HW_AMD7_DATA_36), .PARITY(`NNEF_HW_AMD7_PARITY_36)
    ) ram (
        .clk_a(CLKARDCLK), .clk_b(CLKBWRCLK), .enable_a(ENARDEN), .enable_b(ENBWREN),
        .reset_a(RSTRAMARSTRAM), .reset_b(RSTRAMB), .write_a({4'b0, WEA}), .write_b(WEBWE),
        .address_a(ADDRARDADDR[14:0]), .address_b(ADDRBWRADDR[14:0]),
        .d_a({36'b0, a}), .d_b(WRITE_WIDTH_B == WIDE ? {b, a} : {36'b0, b}),
        .q_a(q_a), .q_b(q_b)
    );
    wire [35:0] high = READ_WIDTH_A == WIDE ? q_a[WIDE-1:36] : q_b[35:0];
    genvar n;
    generate
        for (n = 0; n < 4; n = n + 1) begin : bytes
            assign {DOPADOP[n], DOADO[8*n +: 8]} = q_a[9*n +: 9];
            assign {DOPBDOP[n], DOBDO[8*n +: 8]} = high[9*n +: 9];
        end
    endgenerate
endmodule
