// Of the shared engine; beside primitives.v.

// (keep ? kept : 0) + added modulo 2**WIDTH.
module nnef_hw_restarted_sum #(parameter WIDTH = 8) (
    input keep,
    input [WIDTH-1:0] kept, added,
    output [WIDTH-1:0] sum
);
`ifdef NNEF_HW_ICE40
    // A logic cell per bit, which shows `added` alone where nothing is kept; yosys would take two.
    wire [WIDTH:0] carry;
    assign carry[0] = 1'b0;
    genvar n;
    generate
        for (n = 0; n < WIDTH; n = n + 1) begin : bits
            SB_CARRY chain (.I0(kept[n]), .I1(added[n]), .CI(carry[n]), .CO(carry[n+1]));
            SB_LUT4 #(.LUT_INIT(16'hD278)) total (
                .I0(keep), .I1(kept[n]), .I2(added[n]), .I3(carry[n]), .O(sum[n])
            );
        end
    endgenerate
`else
    nnef_hw_masked_sum #(.WIDTH(WIDTH)) chosen
        (.a(keep), .b(kept), .c(1'b1), .d(added), .sum(sum));
`endif
endmodule

// base + operand * digits modulo 2**SUM, combinational; digits are unsigned.
module nnef_hw_chained_multiply_add #(
    parameter DIGITS = 4, parameter WIDTH = 8, parameter SUM = 12
) (
    input signed [SUM-1:0] base,
    input [DIGITS-1:0] digits,
    input signed [WIDTH-1:0] operand,
    output signed [SUM-1:0] sum
);
`ifdef NNEF_HW_ICE40
    // A logic cell per bit and digit, which selects between the sum and what was; as their carries
    // ripple side by side, a further digit takes little time.
    wire signed [SUM-1:0] totals [0:DIGITS];
    assign totals[0] = base;
    genvar n;
    generate
        for (n = 0; n < DIGITS; n = n + 1) begin : steps
            wire signed [SUM-1:n] start = totals[n][SUM-1:n];
            wire signed [SUM-1:n] total = digits[n] ? start + operand : start;
            if (n == 0) assign totals[1] = total;
            else assign totals[n+1] = {total, totals[n][n-1:0]};
        end
    endgenerate
    assign sum = totals[DIGITS];
`else
    nnef_hw_multiply_add #(.DIGITS(DIGITS), .WIDTH(WIDTH), .SUM(SUM)) plain (
        .select(1'b0), .base(base), .other({SUM{1'b0}}), .digits(digits), .operand(operand),
        .sum(sum)
    );
`endif
endmodule
