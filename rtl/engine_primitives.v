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
    nnef_hw_masked_sum #(.WIDTH(WIDTH)) masked
        (.a(keep), .b(kept), .c(1'b1), .d(added), .sum(sum));
`endif
endmodule
