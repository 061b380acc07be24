// SPI NOR flash as W25Q128JV and its DTR variant have it, as far as it is read: commands, dummy
// clocks, volatile QE bit, power-down. The first violated timing or unknown command ends the
// simulation with a message. Times (data sheet, 9.6) are counted in halves of a period of `clk`, the
// board's clock, with whose edges everything happens; the data change with the edges of `sck`.
module nnef_hw_spi_flash #(
    parameter PERIOD_PS = 41667,        // of clk
    parameter [23:0] ID = 24'hEF7018,
    parameter DTR = 1,                  // knows EDh
    parameter QUAD_ENABLE = 0,          // QE after power-up
    parameter POWERED_DOWN = 1,         // as an iCE40 leaves it behind configuration
    parameter LINES = 4,                // of the board; with 1 there are two wires, /HOLD is tied high
    parameter BYTES = 65536,            // what is modelled of its contents
    parameter IMAGE = ""                // file of them for $readmemh
) (
    input clk,
    input cs_n,
    input sck,
    inout [(LINES == 4 ? 4 : 2)-1:0] dq
);
    localparam RES1_PS = 3000000, SHSL1_PS = 10000, SHSL2_PS = 50000, SLCH_PS = 5000;
    localparam FAST_PS = 9615, READ_PS = 20000, DTR_PS = 15151;    // 104, 50 and 66 MHz

    reg [7:0] bytes [0:BYTES-1];
    integer n;
    initial begin
        for (n = 0; n < BYTES; n = n + 1) bytes[n] = 8'hFF;
        if (IMAGE != "") $readmemh(IMAGE, bytes);
    end

    reg [63:0] cycles = 0;
    always @(posedge clk) cycles <= cycles + 1;

    reg was_cs_n = 1, was_sck = 0;
    reg asleep = POWERED_DOWN, quad_enable = QUAD_ENABLE, write_enabled = 0;
    reg [63:0] now = 0, selected_at = 0, deselected_at = 0, awake_at = 0, risen_at = 0;
    reg [63:0] deselect_ps = 0;
    reg [7:0] opcode = 0, written = 0;
    reg [23:0] address = 0;
    reg [7:0] mode = 0;
    integer clocks = 0, address_end = 0, mode_end = 0, data_begin = 0, bit_position = 0;
    reg double_rate = 0, quad_address = 0, quad_data = 0, has_data = 0;
    reg [3:0] out = 0;
    reg driving = 0;

    wire [3:0] in;
    assign in[1:0] = dq[1:0];
    assign dq[0] = driving & quad_data ? out[0] : 1'bz;
    assign dq[1] = driving ? out[1] : 1'bz;
    generate
        if (LINES == 4) begin : upper
            assign in[3:2] = dq[3:2];
            assign dq[2] = driving & quad_data ? out[2] : 1'bz;
            assign dq[3] = driving & quad_data ? out[3] : 1'bz;
        end else begin : tied
            assign in[3:2] = 2'b11;
        end
    endgenerate

    task violation(input [8*48-1:0] what);
        begin
            $display("spi_flash: %0s (opcode %02xh, clock %0d)", what, opcode, clocks);
            $fatal;
        end
    endtask

    task begin_read(input quad_a, input quad_d, input ddr, input integer mode_clocks, dummies);
        begin
            quad_address = quad_a;
            quad_data = quad_d;
            double_rate = ddr;
            has_data = 1;
            address_end = 8 + (quad_a ? (ddr ? 3 : 6) : 24);
            mode_end = address_end + mode_clocks;
            data_begin = mode_end + dummies;
            bit_position = 0;
            if (quad_d & ~quad_enable) violation("a quad command while QE is 0");
        end
    endtask

    task decode;
        begin
            if (asleep && opcode != 8'hAB) violation("a command in power-down");
            case (opcode)
                8'h03: begin_read(0, 0, 0, 0, 0);
                8'h0B: begin_read(0, 0, 0, 0, 8);
                8'h6B: begin_read(0, 1, 0, 0, 8);
                8'hEB: begin_read(1, 1, 0, 2, 4);
                8'hED:
                    if (DTR != 0) begin_read(1, 1, 1, 1, 7);
                    else violation("unknown command");
                8'h9F, 8'h35: begin
                    {quad_address, quad_data, double_rate, has_data} = 4'b0001;
                    {address_end, mode_end, data_begin} = {32'd8, 32'd8, 32'd8};
                    bit_position = 0;
                end
                8'hAB, 8'hB9, 8'h50, 8'h31: ;
                default: violation("unknown command");
            endcase
        end
    endtask

    // The address is sent from the highest bit on, then the mode bits.
    task take_address;
        if (clocks <= address_end)
            address = quad_address ? {address[19:0], in} : {address[22:0], in[0]};
        else if (clocks <= mode_end) mode = {mode[3:0], in};
    endtask

    function [7:0] current(input integer position);
        case (opcode)
            8'h9F: current = position / 8 == 0 ? ID[23:16] : position / 8 == 1 ? ID[15:8] : ID[7:0];
            8'h35: current = {6'b0, quad_enable, 1'b0};
            default: current = bytes[address + position / 8];
        endcase
    endfunction

    task give;
        begin
            if (opcode != 8'h9F && opcode != 8'h35 && address + bit_position / 8 >= BYTES)
                violation("an address beyond the modelled bytes");
            if (quad_data) begin
                out = bit_position % 8 == 0 ? current(bit_position) >> 4 : current(bit_position);
                bit_position = bit_position + 4;
            end else begin
                out[1] = current(bit_position) >> (7 - bit_position % 8);
                bit_position = bit_position + 1;
            end
            driving = 1;
        end
    endtask

    task select;
        begin
            if (now - deselected_at < deselect_ps) violation("tSHSL: selected again too soon");
            if (now < awake_at) violation("tRES1: selected before it was awake");
            {opcode, written, mode} = 0;
            {double_rate, quad_address, quad_data, has_data, driving} = 0;
            clocks = 0;
            selected_at = now;
        end
    endtask

    task deselect;
        begin
            deselect_ps = SHSL1_PS;
            // a command that is cut off is not executed
            if (clocks >= 8)
                case (opcode)
                    8'hAB: begin
                        asleep = 0;
                        awake_at = now + RES1_PS;
                    end
                    8'hB9: asleep = 1;
                    8'h50: write_enabled = 1;
                    8'h31: begin
                        if (!write_enabled) violation("31h without 50h before it");
                        if (clocks == 16) quad_enable = written[1];
                        write_enabled = 0;
                        deselect_ps = SHSL2_PS;
                    end
                    default: ;
                endcase
            deselected_at = now;
            driving = 0;
        end
    endtask

    task rise;
        begin
            if (now - selected_at < SLCH_PS) violation("tSLCH: a clock too soon behind /CS");
            if (clocks != 0)
                if (now - risen_at
                    < (opcode == 8'h03 && clocks >= 8 ? READ_PS : double_rate ? DTR_PS : FAST_PS))
                    violation("fC: the clock is too fast for the command");
            risen_at = now;
            clocks = clocks + 1;
            if (LINES == 4 && !quad_enable && !in[3]) violation("/HOLD is low");
            if (clocks <= 8) begin
                opcode = {opcode[6:0], in[0]};
                if (clocks == 8) decode;
            end else if (opcode == 8'h31) written = {written[6:0], in[0]};
            else if (has_data && clocks <= mode_end) begin
                take_address;
                if (!double_rate && clocks == mode_end && mode[5:4] == 2'b10)
                    violation("continuous read mode has no model");
            end else if (double_rate && clocks > data_begin) give;
        end
    endtask

    task fall;
        if (clocks > 8 && double_rate && clocks <= mode_end) begin
            take_address;
            if (clocks == mode_end && mode[5:4] == 2'b10)
                violation("continuous read mode has no model");
        end else if (has_data && clocks >= data_begin) give;
    endtask

    // One process, since each of the pins changes the same state.
    always @(posedge sck, negedge sck, posedge cs_n, negedge cs_n) begin
        now = {cycles, ~clk} * PERIOD_PS / 2;
        if (cs_n != was_cs_n) begin
            if (cs_n) deselect;
            else select;
        end
        if (sck != was_sck && !cs_n) begin
            if (sck) rise;
            else fall;
        end
        was_cs_n = cs_n;
        was_sck = sck;
    end
endmodule
