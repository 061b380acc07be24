// What stands between the ports of a memory's reader and the pins. The ports' values of a cycle are at
// the pins in the next one; what stands at the pins at the end of a cycle is at the ports in the next
// one, and so is, on the `mid` ports, what stood there in the middle of that cycle. NNEF_HW_ICE40,
// NNEF_HW_ECP5 or NNEF_HW_GOWIN selects the device's cells at synthesis; without them the same
// behaviour is simulated.

// A clock: its level in the first and in the second half of a cycle.
module nnef_hw_clock_pad (
    input clk, first, second,
    output pad
);
`ifdef NNEF_HW_ICE40
    reg second_register;
    always @(posedge clk) second_register <= second;
    SB_IO #(.PIN_TYPE(6'b010001)) io (
        .PACKAGE_PIN(pad), .CLOCK_ENABLE(1'b1), .OUTPUT_CLK(clk), .D_OUT_0(first),
        .D_OUT_1(second_register)
    );
`elsif NNEF_HW_ECP5
    ODDRX1F io (.SCLK(clk), .RST(1'b0), .D0(first), .D1(second), .Q(pad));
`elsif NNEF_HW_GOWIN
    ODDR io (.CLK(clk), .TX(1'b1), .D0(first), .D1(second), .Q0(pad), .Q1());
`else
    // one of two flip-flops changes per edge, so that there is no glitch
    reg second_register = 0, at_rise = 0, at_fall = 0;
    always @(posedge clk) begin
        second_register <= second;
        at_rise <= first ^ at_fall;
    end
    always @(negedge clk) at_fall <= second_register ^ at_rise;
    assign pad = at_rise ^ at_fall;
`endif
endmodule

// An output with its register; it begins with INIT.
module nnef_hw_output_pad #(parameter INIT = 1'b0) (
    input clk, d,
    output pad
);
`ifdef NNEF_HW_ICE40
    SB_IO #(.PIN_TYPE(6'b010101)) io (
        .PACKAGE_PIN(pad), .CLOCK_ENABLE(1'b1), .OUTPUT_CLK(clk), .D_OUT_0(d)
    );
`else
    reg register = INIT;
    always @(posedge clk) register <= d;
    assign pad = register;
`endif
endmodule

// A data line with registers for what it gives, whether it does, and what it takes.
module nnef_hw_data_pad (
    input clk, d, enable,
    output q, q_mid,
    inout pad
);
`ifdef NNEF_HW_ICE40
    wire middle;
    reg middle_register;
    always @(posedge clk) middle_register <= middle;
    assign q_mid = middle_register;
    SB_IO #(.PIN_TYPE(6'b110100)) io (
        .PACKAGE_PIN(pad), .CLOCK_ENABLE(1'b1), .INPUT_CLK(clk), .OUTPUT_CLK(clk),
        .OUTPUT_ENABLE(enable), .D_OUT_0(d), .D_IN_0(q), .D_IN_1(middle)
    );
`else
    reg given = 0, enabled = 0, end_register = 0, middle = 0, middle_register = 0;
    wire level;
    always @(posedge clk) begin
        given <= d;
        enabled <= enable;
        end_register <= level;
        middle_register <= middle;
    end
    assign q = end_register;
    assign q_mid = middle_register;
    always @(negedge clk) middle <= level;
`ifdef NNEF_HW_GOWIN
    IOBUF io (.I(given), .O(level), .OEN(~enabled), .IO(pad));
`else
    assign level = pad;
    assign pad = enabled ? given : 1'bz;
`endif
`endif
endmodule

// The pins of a flash reader; with LINES = 1 there are two data lines, one for each direction.
module nnef_hw_flash_pads #(parameter LINES = 4) (
    input clk, cs_n,
    input [1:0] sck,
    input [3:0] dq_o, dq_oe,
    output [3:0] dq_i, dq_i_mid,
    output pin_cs_n, pin_sck,
    inout [(LINES == 4 ? 4 : 2)-1:0] pin_dq
);
    nnef_hw_output_pad #(.INIT(1'b1)) select (.clk(clk), .d(cs_n), .pad(pin_cs_n));
    nnef_hw_clock_pad clock (.clk(clk), .first(sck[0]), .second(sck[1]), .pad(pin_sck));
    genvar n;
    generate
        for (n = 0; n < 4; n = n + 1) begin : lines
            if (n < 2 || LINES == 4) begin : wired
                nnef_hw_data_pad data (
                    .clk(clk), .d(dq_o[n]), .enable(dq_oe[n]), .q(dq_i[n]), .q_mid(dq_i_mid[n]),
                    .pad(pin_dq[n])
                );
            end else begin : open
                assign dq_i[n] = 1'b1;
                assign dq_i_mid[n] = 1'b1;
            end
        end
    endgenerate
endmodule

// The pins of an SDRAM reader. The chip's clock rises in the middle of a cycle: what it takes then has
// stood for half a cycle, and what it gives is taken when it rises again.
module nnef_hw_sdram_pads #(parameter WIDTH = 16, ADDRESS = 13) (
    input clk,
    input [2:0] command,
    input [1:0] bank,
    input [12:0] address,
    input [WIDTH-1:0] dq_o,
    input dq_oe,
    output [WIDTH-1:0] dq_i,
    output pin_clk, pin_cke, pin_cs_n, pin_ras_n, pin_cas_n, pin_we_n,
    output [1:0] pin_ba,
    output [ADDRESS-1:0] pin_a,
    output [WIDTH/8-1:0] pin_dqm,
    inout [WIDTH-1:0] pin_dq
);
    assign pin_cke = 1'b1;
    assign pin_cs_n = 1'b0;
    assign pin_dqm = 0;
    nnef_hw_clock_pad clock (.clk(clk), .first(1'b0), .second(1'b1), .pad(pin_clk));
    wire [2:0] pin_command;
    assign {pin_ras_n, pin_cas_n, pin_we_n} = pin_command;
    genvar n;
    generate
        for (n = 0; n < 3; n = n + 1) begin : commands
            nnef_hw_output_pad #(.INIT(1'b1)) out (.clk(clk), .d(command[n]), .pad(pin_command[n]));
        end
        for (n = 0; n < 2; n = n + 1) begin : banks
            nnef_hw_output_pad out (.clk(clk), .d(bank[n]), .pad(pin_ba[n]));
        end
        for (n = 0; n < ADDRESS; n = n + 1) begin : addresses
            nnef_hw_output_pad out (.clk(clk), .d(address[n]), .pad(pin_a[n]));
        end
        for (n = 0; n < WIDTH; n = n + 1) begin : lines
            wire unused;
            nnef_hw_data_pad data (
                .clk(clk), .d(dq_o[n]), .enable(dq_oe), .q(unused), .q_mid(dq_i[n]),
                .pad(pin_dq[n])
            );
        end
    endgenerate
endmodule
