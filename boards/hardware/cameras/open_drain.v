// A wire that is pulled low, or not: what `low` says is at the pin a cycle later, and the pin's level at `level`.
module nnef_hw_open_drain_pad (
    input clk, low,
    output level,
    inout pin_
);
    nnef_hw_data_pad data (.clk(clk), .d(1'b0), .enable(low), .q(level), .q_mid(), .pad(pin_));
endmodule
