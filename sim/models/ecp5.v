// Models of the ECP5 blocks that yosys has no models of, in the modes this project uses; another mode
// ends the simulation. After Lattice's memory and sysDSP usage guides (FPGA-TN-02204, FPGA-TN-02205)
// and the names of parameters that yosys and nextpnr give them.

// Two ports onto 16 kbit. An address counts bits: words of 9 bits begin at every eighth address, so
// a word of 18 is at ADA[13:4] and its byte enables take ADA[1:0]. 36 bits: port A writes DIB, DIA,
// port B reads DOB, DOA. INITVAL_xx holds 16 words of 18 bits, each in 20.
module DP16KD (
    input DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4,
        DIA3, DIA2, DIA1, DIA0,
    input ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
    input CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
    output DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4,
        DOA3, DOA2, DOA1, DOA0,
    input DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4,
        DIB3, DIB2, DIB1, DIB0,
    input ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
    input CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
    output DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4,
        DOB3, DOB2, DOB1, DOB0
);
    parameter integer DATA_WIDTH_A = 18, DATA_WIDTH_B = 18;
    parameter REGMODE_A = "NOREG", REGMODE_B = "NOREG", RESETMODE = "SYNC";
    parameter ASYNC_RESET_RELEASE = "SYNC", GSR = "DISABLED";
    parameter CSDECODE_A = "0b000", CSDECODE_B = "0b000", CLKAMUX = "CLKA", CLKBMUX = "CLKB";
    parameter WRITEMODE_A = "NORMAL", WRITEMODE_B = "NORMAL";
    parameter [319:0]
        INITVAL_00 = 0, INITVAL_01 = 0, INITVAL_02 = 0, INITVAL_03 = 0, INITVAL_04 = 0,
        INITVAL_05 = 0, INITVAL_06 = 0, INITVAL_07 = 0, INITVAL_08 = 0, INITVAL_09 = 0,
        INITVAL_0A = 0, INITVAL_0B = 0, INITVAL_0C = 0, INITVAL_0D = 0, INITVAL_0E = 0,
        INITVAL_0F = 0, INITVAL_10 = 0, INITVAL_11 = 0, INITVAL_12 = 0, INITVAL_13 = 0,
        INITVAL_14 = 0, INITVAL_15 = 0, INITVAL_16 = 0, INITVAL_17 = 0, INITVAL_18 = 0,
        INITVAL_19 = 0, INITVAL_1A = 0, INITVAL_1B = 0, INITVAL_1C = 0, INITVAL_1D = 0,
        INITVAL_1E = 0, INITVAL_1F = 0, INITVAL_20 = 0, INITVAL_21 = 0, INITVAL_22 = 0,
        INITVAL_23 = 0, INITVAL_24 = 0, INITVAL_25 = 0, INITVAL_26 = 0, INITVAL_27 = 0,
        INITVAL_28 = 0, INITVAL_29 = 0, INITVAL_2A = 0, INITVAL_2B = 0, INITVAL_2C = 0,
        INITVAL_2D = 0, INITVAL_2E = 0, INITVAL_2F = 0, INITVAL_30 = 0, INITVAL_31 = 0,
        INITVAL_32 = 0, INITVAL_33 = 0, INITVAL_34 = 0, INITVAL_35 = 0, INITVAL_36 = 0,
        INITVAL_37 = 0, INITVAL_38 = 0, INITVAL_39 = 0, INITVAL_3A = 0, INITVAL_3B = 0,
        INITVAL_3C = 0, INITVAL_3D = 0, INITVAL_3E = 0, INITVAL_3F = 0;

    wire [17:0] di_a = {
        DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4,
        DIA3, DIA2, DIA1, DIA0
    };
    wire [13:0] ad_a = {
        ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0
    };
    wire [17:0] di_b = {
        DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4,
        DIB3, DIB2, DIB1, DIB0
    };
    wire [13:0] ad_b = {
        ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0
    };
    reg [35:0] do_a = 0, do_b = 0, registered_a = 0, registered_b = 0;
    // the register behind the memory; a word of 36 bits needs those of both ports, by port B's clock
    wire [35:0] out_a = REGMODE_A == "OUTREG" ? registered_a : do_a;
    wire [35:0] out_b = REGMODE_B == "OUTREG" ? registered_b : do_b;
    assign {
        DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4,
        DOA3, DOA2, DOA1, DOA0
    } = DATA_WIDTH_B == 36 ? out_b[17:0] : out_a[17:0];
    assign {
        DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4,
        DOB3, DOB2, DOB1, DOB0
    } = DATA_WIDTH_B == 36 ? out_b[35:18] : out_b[17:0];

    // of a port: the 36 bits around an address, what an access sees of them, and what a write leaves
    function [35:0] select(input [13:0] address, input [35:0] line, input integer width);
        case (width)
            1: select = line[9 * address[4:3] + address[2:0] +: 1];
            2: select = line[9 * address[4:3] + 2 * address[2:1] +: 2];
            4: select = line[9 * address[4:3] + 4 * address[2] +: 4];
            9: select = line[9 * address[4:3] +: 9];
            18: select = line[18 * address[4] +: 18];
            default: select = line;
        endcase
    endfunction
    function [35:0] merge(
        input [13:0] address, input [35:0] line, input [35:0] value, input integer width
    );
        integer k;
        begin
            merge = line;
            case (width)
                1: merge[9 * address[4:3] + address[2:0] +: 1] = value[0];
                2: merge[9 * address[4:3] + 2 * address[2:1] +: 2] = value[1:0];
                4: merge[9 * address[4:3] + 4 * address[2] +: 4] = value[3:0];
                9: merge[9 * address[4:3] +: 9] = value[8:0];
                default:
                    for (k = 0; k < width / 9; k = k + 1)
                        if (address[k])
                            merge[(width == 18 ? 18 * address[4] : 0) + 9 * k +: 9]
                                = value[9 * k +: 9];
            endcase
        end
    endfunction

    reg [35:0] lines [0:511];
    task fill(input integer index, input [319:0] words);
        integer n;
        for (n = 0; n < 8; n = n + 1)
            lines[8 * index + n] = {words[40 * n + 20 +: 18], words[40 * n +: 18]};
    endtask
    initial begin
        fill('h00, INITVAL_00); fill('h01, INITVAL_01); fill('h02, INITVAL_02);
        fill('h03, INITVAL_03); fill('h04, INITVAL_04); fill('h05, INITVAL_05);
        fill('h06, INITVAL_06); fill('h07, INITVAL_07); fill('h08, INITVAL_08);
        fill('h09, INITVAL_09); fill('h0A, INITVAL_0A); fill('h0B, INITVAL_0B);
        fill('h0C, INITVAL_0C); fill('h0D, INITVAL_0D); fill('h0E, INITVAL_0E);
        fill('h0F, INITVAL_0F); fill('h10, INITVAL_10); fill('h11, INITVAL_11);
        fill('h12, INITVAL_12); fill('h13, INITVAL_13); fill('h14, INITVAL_14);
        fill('h15, INITVAL_15); fill('h16, INITVAL_16); fill('h17, INITVAL_17);
        fill('h18, INITVAL_18); fill('h19, INITVAL_19); fill('h1A, INITVAL_1A);
        fill('h1B, INITVAL_1B); fill('h1C, INITVAL_1C); fill('h1D, INITVAL_1D);
        fill('h1E, INITVAL_1E); fill('h1F, INITVAL_1F); fill('h20, INITVAL_20);
        fill('h21, INITVAL_21); fill('h22, INITVAL_22); fill('h23, INITVAL_23);
        fill('h24, INITVAL_24); fill('h25, INITVAL_25); fill('h26, INITVAL_26);
        fill('h27, INITVAL_27); fill('h28, INITVAL_28); fill('h29, INITVAL_29);
        fill('h2A, INITVAL_2A); fill('h2B, INITVAL_2B); fill('h2C, INITVAL_2C);
        fill('h2D, INITVAL_2D); fill('h2E, INITVAL_2E); fill('h2F, INITVAL_2F);
        fill('h30, INITVAL_30); fill('h31, INITVAL_31); fill('h32, INITVAL_32);
        fill('h33, INITVAL_33); fill('h34, INITVAL_34); fill('h35, INITVAL_35);
        fill('h36, INITVAL_36); fill('h37, INITVAL_37); fill('h38, INITVAL_38);
        fill('h39, INITVAL_39); fill('h3A, INITVAL_3A); fill('h3B, INITVAL_3B);
        fill('h3C, INITVAL_3C); fill('h3D, INITVAL_3D); fill('h3E, INITVAL_3E);
        fill('h3F, INITVAL_3F);
        if (!(REGMODE_A == "NOREG" || REGMODE_A == "OUTREG")
            || !(REGMODE_B == "NOREG" || REGMODE_B == "OUTREG")
            || DATA_WIDTH_B == 36 && REGMODE_A != REGMODE_B || CLKAMUX != "CLKA" || CLKBMUX != "CLKB"
            || CSDECODE_A != "0b000" || CSDECODE_B != "0b000") begin
            $display("DP16KD: a mode without a model");
            $fatal;
        end
    end

    wire [35:0] line_a = lines[ad_a[13:5]];
    wire [35:0] merged_a = merge(
        ad_a, line_a, DATA_WIDTH_A == 36 ? {di_b, di_a} : {18'b0, di_a},
        DATA_WIDTH_A);
    wire writing_a = WEA & ~(CSA2 | CSA1 | CSA0);
    always @(posedge CLKA) begin
        if (CEA & writing_a) lines[ad_a[13:5]] <= merged_a;
        if (RSTA) do_a <= 0;
        else if (CEA & (~writing_a | WRITEMODE_A != "NORMAL"))
            do_a <= select(ad_a, writing_a & WRITEMODE_A == "WRITETHROUGH" ? merged_a : line_a,
                DATA_WIDTH_A);
        if (RSTA) registered_a <= 0;
        else if (OCEA) registered_a <= do_a;
    end
    wire [35:0] line_b = lines[ad_b[13:5]];
    wire [35:0] merged_b = merge(
        ad_b, line_b, {18'b0, di_b},
        DATA_WIDTH_B);
    wire writing_b = WEB & ~(CSB2 | CSB1 | CSB0);
    always @(posedge CLKB) begin
        if (CEB & writing_b) lines[ad_b[13:5]] <= merged_b;
        if (RSTB) do_b <= 0;
        else if (CEB & (~writing_b | WRITEMODE_B != "NORMAL"))
            do_b <= select(ad_b, writing_b & WRITEMODE_B == "WRITETHROUGH" ? merged_b : line_b,
                DATA_WIDTH_B);
        if (RSTB) registered_b <= 0;
        else if (OCEB & (OCEA | DATA_WIDTH_B != 36)) registered_b <= do_b;
    end
endmodule

// An 18 x 18 multiplier with registers before, within and behind it, all by CLK0, CE0 and RST0.
module MULT18X18D (
    input A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
    input B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
    input C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
    input SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
    input CLK3, CLK2, CLK1, CLK0, CE3, CE2, CE1, CE0, RST3, RST2, RST1, RST0,
    input SRIA17, SRIA16, SRIA15, SRIA14, SRIA13, SRIA12, SRIA11, SRIA10, SRIA9, SRIA8, SRIA7, SRIA6,
        SRIA5, SRIA4, SRIA3, SRIA2, SRIA1, SRIA0,
    input SRIB17, SRIB16, SRIB15, SRIB14, SRIB13, SRIB12, SRIB11, SRIB10, SRIB9, SRIB8, SRIB7, SRIB6,
        SRIB5, SRIB4, SRIB3, SRIB2, SRIB1, SRIB0,
    output SROA17, SROA16, SROA15, SROA14, SROA13, SROA12, SROA11, SROA10, SROA9, SROA8, SROA7, SROA6,
        SROA5, SROA4, SROA3, SROA2, SROA1, SROA0,
    output SROB17, SROB16, SROB15, SROB14, SROB13, SROB12, SROB11, SROB10, SROB9, SROB8, SROB7, SROB6,
        SROB5, SROB4, SROB3, SROB2, SROB1, SROB0,
    output ROA17, ROA16, ROA15, ROA14, ROA13, ROA12, ROA11, ROA10, ROA9, ROA8, ROA7, ROA6, ROA5, ROA4,
        ROA3, ROA2, ROA1, ROA0,
    output ROB17, ROB16, ROB15, ROB14, ROB13, ROB12, ROB11, ROB10, ROB9, ROB8, ROB7, ROB6, ROB5, ROB4,
        ROB3, ROB2, ROB1, ROB0,
    output ROC17, ROC16, ROC15, ROC14, ROC13, ROC12, ROC11, ROC10, ROC9, ROC8, ROC7, ROC6, ROC5, ROC4,
        ROC3, ROC2, ROC1, ROC0,
    output P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
        P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0,
    output SIGNEDP
);
    parameter REG_INPUTA_CLK = "NONE", REG_INPUTA_CE = "CE0", REG_INPUTA_RST = "RST0";
    parameter REG_INPUTB_CLK = "NONE", REG_INPUTB_CE = "CE0", REG_INPUTB_RST = "RST0";
    parameter REG_INPUTC_CLK = "NONE", REG_INPUTC_CE = "CE0", REG_INPUTC_RST = "RST0";
    parameter REG_PIPELINE_CLK = "NONE", REG_PIPELINE_CE = "CE0", REG_PIPELINE_RST = "RST0";
    parameter REG_OUTPUT_CLK = "NONE", REG_OUTPUT_CE = "CE0", REG_OUTPUT_RST = "RST0";
    parameter CLK0_DIV = "ENABLED", CLK1_DIV = "ENABLED", CLK2_DIV = "ENABLED", CLK3_DIV = "ENABLED";
    parameter HIGHSPEED_CLK = "NONE", GSR = "ENABLED", CAS_MATCH_REG = "FALSE";
    parameter SOURCEB_MODE = "B_SHIFT", MULT_BYPASS = "DISABLED", RESETMODE = "SYNC";

    initial
        if (!(REG_INPUTA_CLK == "NONE" || REG_INPUTA_CLK == "CLK0")
            || !(REG_INPUTB_CLK == "NONE" || REG_INPUTB_CLK == "CLK0")
            || !(REG_PIPELINE_CLK == "NONE" || REG_PIPELINE_CLK == "CLK0")
            || !(REG_OUTPUT_CLK == "NONE" || REG_OUTPUT_CLK == "CLK0")
            || REG_INPUTA_CE != "CE0" || REG_INPUTB_CE != "CE0" || REG_PIPELINE_CE != "CE0"
            || REG_OUTPUT_CE != "CE0" || REG_INPUTA_RST != "RST0" || REG_INPUTB_RST != "RST0"
            || REG_PIPELINE_RST != "RST0" || REG_OUTPUT_RST != "RST0"
            || CLK0_DIV != "ENABLED" || HIGHSPEED_CLK != "NONE" || CAS_MATCH_REG != "FALSE"
            || MULT_BYPASS != "DISABLED" || RESETMODE != "SYNC") begin
            $display("MULT18X18D: a mode without a model");
            $fatal;
        end
    always @(SOURCEA or SOURCEB)
        if (SOURCEA || SOURCEB) begin
            $display("MULT18X18D: operands from the shift chain have no model");
            $fatal;
        end

    // the bit above an operand is its sign, registered with it
    wire [18:0] a = {
        SIGNEDA & A17, A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0
    };
    wire [18:0] b = {
        SIGNEDB & B17, B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0
    };
    reg [18:0] a_register = 0, b_register = 0;
    reg [35:0] pipeline_register = 0, output_register = 0;
    wire signed [18:0] x = REG_INPUTA_CLK == "NONE" ? a : a_register;
    wire signed [18:0] y = REG_INPUTB_CLK == "NONE" ? b : b_register;
    wire signed [37:0] product = x * y;
    wire [35:0] piped = REG_PIPELINE_CLK == "NONE" ? product[35:0] : pipeline_register;
    always @(posedge CLK0)
        if (RST0) begin
            a_register <= 0;
            b_register <= 0;
            pipeline_register <= 0;
            output_register <= 0;
        end else if (CE0) begin
            a_register <= a;
            b_register <= b;
            pipeline_register <= product[35:0];
            output_register <= piped;
        end
    assign {
        P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18,
        P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
    } = REG_OUTPUT_CLK == "NONE" ? piped : output_register;
endmodule
