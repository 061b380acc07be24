// Adds one to every lane of a beat. LANES is a macro; the others break a rule of streams.
module top(input clk, input rst, input [8 * `LANES : 0] i__payload, input i__valid, output i__ready,
           output [8 * `LANES : 0] o__payload, output o__valid, input o__ready);
  reg full = 0;
  reg [8 * `LANES : 0] payload = 0;
  reg [7:0] count = 0;
  reg [1:0] age = 0;
`ifdef STOP
  wire stop = count >= 9;
`else
  wire stop = 0;
`endif
  assign i__ready = !stop && (!full || o__ready);
  always @(posedge clk) begin
    if (i__ready) begin
      full <= i__valid;
      payload[8 * `LANES] <= i__payload[8 * `LANES];
      for (int lane = 0; lane < `LANES; lane++)
        payload[8 * lane +: 8] <= i__payload[8 * lane +: 8] + 8'd1;
    end
    age <= i__ready ? 0 : age + 1;
    count <= count + (i__valid && i__ready);
    if (rst) begin
      full <= 0;
      count <= 0;
    end
`ifdef SURPLUS
    if (full && o__ready && !i__valid) full <= 1;
`endif
  end
`ifdef DROP
  assign o__valid = full && age != 2;
`else
  assign o__valid = full && !stop;
`endif
`ifdef CHANGE
  assign o__payload = payload ^ age[1];
`else
  assign o__payload = payload;
`endif
endmodule
