"""Accelerators, IP and boards under Icarus Verilog, where unknown values stay unknown."""

import re
import subprocess

import numpy as np

SOURCE = """
    reg [{width}-1:0] {name}_items [0:{count}-1];
    integer {name}_next = 0;
    reg {name}__valid = 0;
    wire {name}__ready;
    reg [{width}-1:0] {name}__payload = 0;
    initial $readmemh("{name}.hex", {name}_items);
    always @(negedge clk) begin
        if (rst) {name}_next = 0;
        if (rst) {name}__valid = 0;
        else if (!{name}__valid) {name}__valid = {name}_next < {count} && go(stall);
        {name}__payload = {name}__valid ? {name}_items[{name}_next] : {{{width}{{1'bx}}}};
    end
    always @(posedge clk) if (!rst) begin
        if ({name}__ready === 1'bx) fail("{name}__ready is unknown");
        if ({name}__valid && {name}__ready) begin
            {name}_next <= {name}_next + 1;
            {name}__valid <= 0;
        end
    end
"""
SINK = """
    reg [{width}-1:0] {name}_items [0:{count}-1];
    integer {name}_next = 0;
    wire {name}__valid;
    reg {name}__ready = 0;
    wire [{width}-1:0] {name}__payload;
    initial $readmemh("{name}.hex", {name}_items);
    always @(negedge clk) begin
        if (rst) {name}_next = 0;
        {name}__ready = go(stall);
    end
    always @(posedge clk) if (!rst) begin
        if ({name}__valid === 1'bx) fail("{name}__valid is unknown");
        if ({name}__valid && {name}__ready) begin
            if ({name}__payload !== {name}_items[{name}_next]) fail("{name} is another code");
            {name}_next <= {name}_next + 1;
            last_cycle = cycle;
        end else if ({name}__valid && ^{name}__payload === 1'bx) fail("{name} is unknown");
    end
"""
BENCH = """`timescale 1ns / 1ns
module bench;
    reg clk = 1, rst = {resets};
    integer cycle = 0, last_cycle = 0, stall = {stall}, random = {seed};
    function go(input integer percent);
        go = $unsigned($random(random)) % 100 >= percent;
    endfunction
    task fail(input [8*60-1:0] text);
        begin $display("FAILED %0s in cycle %0d", text, cycle); $finish; end
    endtask
{ports}
    top dut (.clk(clk), .rst(rst){connections});
    always #5 clk = ~clk;
    always @(posedge clk) if (rst) cycle <= 0; else cycle <= cycle + 1;
    initial begin
{sequence}
        repeat ({most}) @(negedge clk) if ({done}) begin
            $display("DONE %0d", last_cycle); $finish;
        end
        fail("it hangs");
    end
endmodule
"""
RESETS = """
        repeat (2) @(negedge clk); #1 rst = 0;
        repeat ({amid}) @(negedge clk); #1 rst = 1;
        @(negedge clk); #1 rst = 0;
"""


INITIALIZED = re.compile(r"^\s+(?:reg [^;]*;|output reg [^,;\n]*)", re.MULTILINE)
"""Declarations of registers, among them those that are ports."""


def without_initial_values(verilog):
    """Registers are unknown until they are reset or written."""
    value = re.compile(r" = (\{[^}]*\}+|[^,;{/])+")
    text, count = INITIALIZED.subn(lambda found: value.sub("", found[0]), verilog)
    assert count
    return text


def with_random_initial_values(verilog, rng):
    """Registers are anything, but known, until they are reset or written.

    Where a product with a weight of 0 hides what stands in a lane that is not used, an unknown bit
    would spread: to a simulator unknown times 0 is unknown.
    """
    literal = re.compile(r"(?<== )(\d+)'[dhb][0-9a-f]+")

    def anything(found):
        bits = "".join(map(str, rng.integers(0, 2, int(found[1]))))
        return f"{found[1]}'b{bits}"

    text, count = INITIALIZED.subn(lambda found: literal.sub(anything, found[0]), verilog)
    assert count
    return text


def run_bench(folder, verilog, fed, expected, *, stall, amid, start):
    """Run the bench; return the cycle of the last beat. Without ``amid`` there is no reset."""
    ports = []
    for template, streams in ((SOURCE, fed), (SINK, expected)):
        for name, items in streams.items():
            [width] = re.findall(rf"\[(\d+):0\] {name}__payload", verilog)[:1]
            (folder / f"{name}.hex").write_text("\n".join(f"{item:x}" for item in items.tolist()))
            ports.append(template.format(name=name, width=int(width) + 1, count=len(items)))
    names = [f"{name}__{field}" for name in (*fed, *expected)
             for field in ("payload", "valid", "ready")]  # fmt: skip
    beats = sum(map(len, (*fed.values(), *expected.values())))
    (folder / "bench.v").write_text(BENCH.format(
        resets=int(amid is not None), stall=stall, seed=start, ports="".join(ports),
        connections="".join(f", .{name}({name})" for name in names),
        sequence="" if amid is None else RESETS.format(amid=amid), most=1000 * beats + 100_000,
        done=" && ".join(f"{name}_next == {len(items)}" for name, items in expected.items()),
    ))  # fmt: skip
    (folder / "top.v").write_text(verilog)
    subprocess.run(["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", "bench.v", "top.v"],
                   cwd=folder, check=True)  # fmt: skip
    done = subprocess.run(["vvp", "-n", "bench.vvp"], cwd=folder, capture_output=True, text=True,
                          check=True)  # fmt: skip
    assert done.stdout.startswith("DONE "), done.stdout
    return int(done.stdout.split()[1])


RESET_NS = 500
"""The board's own reset holds at least so long, in cycles of 10 ns of the bench."""
BOARD = """`timescale 1ns / 1ns
module bench;
    reg clk = 0, rx = 1;
    wire tx;
    integer packet, bit_, byte_, sent = 0, got = 0, checked = 0, idle;
    reg [7:0] requests [0:{sent}-1], replies [0:{got}-1], found;
    integer lengths [0:2*{packets}-1];
    initial begin
        $readmemh("requests.hex", requests);
        $readmemh("replies.hex", replies);
        $readmemh("lengths.hex", lengths);
    end
    board_top dut (.clk(clk), .rx(rx), .tx(tx));
    always #5 clk = ~clk;
    task fail(input [8*60-1:0] text);
        begin $display("FAILED %0s, byte %0d", text, got); $finish; end
    endtask
    always @(posedge clk) if ($time > {reset} && tx === 1'bx) fail("tx is unknown");
    always @(negedge tx) if ($time > {reset}) begin
        repeat ({bit} + {bit} / 2) @(posedge clk);
        for (byte_ = 0; byte_ < 8; byte_ = byte_ + 1) begin
            found[byte_] = tx;
            if (byte_ < 7) repeat ({bit}) @(posedge clk);
        end
        if (found !== replies[got]) fail("another reply");
        got = got + 1;
        repeat ({bit}) @(posedge clk);
    end
    initial begin
        repeat ({startup}) @(negedge clk);
        for (packet = 0; packet < {packets}; packet = packet + 1) begin
            repeat ({pause}) @(negedge clk);
            for (checked = 0; checked < lengths[2*packet]; checked = checked + 1) begin
                rx = 0;
                repeat ({bit}) @(negedge clk);
                for (bit_ = 0; bit_ < 8; bit_ = bit_ + 1) begin
                    rx = requests[sent][bit_];
                    repeat ({bit}) @(negedge clk);
                end
                rx = 1;
                repeat ({bit}) @(negedge clk);
                sent = sent + 1;
            end
            for (idle = 0; got < lengths[2*packet + 1]; idle = idle + 1) begin
                if (idle == 1000 * {bit}) fail("no reply");
                @(negedge clk);
            end
        end
        $display("DONE");
        $finish;
    end
endmodule
"""


def run_board(folder, verilog, requests, *, bit, startup, pause):
    """Send requests over the UART of a board's top, and compare the replies byte by byte.

    ``bit`` and ``startup``, before the first request, and ``pause``, before each, are in cycles;
    ``requests`` are pairs of bytes, that are sent and that are expected.
    """
    ends = np.cumsum([len(reply) for _, reply in requests]).tolist()
    lengths = [n for (sent, _), end in zip(requests, ends, strict=True) for n in (len(sent), end)]
    for name, values in (
        ("requests", b"".join(sent for sent, _ in requests)),
        ("replies", b"".join(reply for _, reply in requests)), ("lengths", lengths),
    ):  # fmt: skip
        (folder / f"{name}.hex").write_text("\n".join(f"{value:x}" for value in values))
    (folder / "bench.v").write_text(BOARD.format(
        sent=sum(lengths[::2]), got=ends[-1], packets=len(requests), bit=bit, startup=startup,
        pause=pause, reset=RESET_NS,
    ))  # fmt: skip
    (folder / "top.v").write_text(verilog)
    run = ["iverilog", "-g2012", "-s", "bench", "-o", "bench.vvp", "bench.v", "top.v"]
    subprocess.run(run, cwd=folder, check=True)
    done = subprocess.run(
        ["vvp", "-n", "bench.vvp"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("DONE"), done.stdout
