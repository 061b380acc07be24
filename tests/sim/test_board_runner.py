import pytest
from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.top import BoardTop
from nnef_hw.boards.interfaces import Uart
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import CheckError, ToolError
from nnef_hw.sim.board_runner import BoardTransport

pytestmark = pytest.mark.verilator

MHZ = 1_000_000
LOOPBACK = """
module board_top(input clk, input rx, output reg tx);
  initial tx = 1;
  always @(posedge clk) tx <= {tx};
endmodule
"""


class Loopback(wiring.Component):
    """Stands for a core: sends what it receives, but for the time of its reset."""

    latency = 1
    pads, wires = (), {}
    has_own_clock = False

    def __init__(self):
        self.pins = {"rx": In(1, init=1), "tx": Out(1, init=1)}
        super().__init__({"reset": In(1), **self.pins, "led": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.d.sync += self.tx.eq(self.rx | self.reset)
        return m


def loopback(baud=MHZ / 4, clk_hz=MHZ, tx="rx"):
    return BoardTransport(LOOPBACK.format(tx=tx), clk_hz=clk_hz, link=Uart(baud))


@pytest.mark.parametrize("bit_cycles", [2, 4, 10 / 3, 24.4, 521])
def test_bytes_pass_through_the_pins(bit_cycles):
    with loopback(MHZ / bit_cycles) as board:
        for data in (b"\x00", bytes(range(256)), b"", b"\xff\xa5"):
            begin = board.cycles
            board.write(data)
            assert board.cycles - begin == pytest.approx(len(data) * 10 * bit_cycles, rel=0.02)
            assert board.read(0) == data
        assert board.cycles / board.seconds > 1000


def test_ends_that_differ_in_rate_understand_each_other():
    """The receiver of the harness samples its own bits in the middle."""
    with loopback(MHZ / 100) as sender, loopback(MHZ / 103) as receiver:
        sender.write(b"\x55\x00\xff")
        receiver.write(sender.read(0))
        assert receiver.read(0) == b"\x55\x00\xff"


def test_waiting_takes_simulated_time():
    with loopback() as board:
        assert board.read(0.5) == b""
        assert board.cycles == 500_000
        board.advance(30)
        assert board.cycles == 500_030
        board.write(b"ab")
        board.advance(1000)
        assert board.cycles == 501_110
        assert board.read(1) == b"ab"
        assert board.cycles == 501_110


def test_reading_ends_with_the_first_byte():
    delay = "1; reg [499:0] line = ~500'd0; always @(posedge clk) {tx, line} <= {line, rx}"
    with loopback(tx=delay) as board:
        board.write(b"abc")
        assert (board.read(1), board.cycles) == (b"a", 500 + 38 + 1)
        assert (board.read(10e-6), board.cycles) == (b"", 500 + 49)
        assert (board.read(1), board.cycles) == (b"b", 500 + 78 + 1)
        board.advance(100)
        assert (board.read(0), board.cycles) == (b"c", 500 + 179)


@pytest.mark.parametrize("name", ["icebreaker", "ulx3s_85f", "tang_nano_9k"])
def test_board_starts_behind_its_pll(name):
    settings = find_board(name).clock(find_board(name).clock_mhz)
    clk_hz = settings.output_mhz * MHZ
    top = BoardTop(Loopback(), pll=settings, clk_hz=clk_hz)
    verilog = to_verilog(top, name="board_top", ports=[top.clk, top.rx, top.tx, top.led])
    with BoardTransport(verilog, clk_hz=clk_hz, link=Uart(clk_hz / 4)) as board:
        board.advance(top.startup_cycles - 1)
        board.write(b"x")
        assert board.read(0) == b""
        # the PLL took its time as well
        board.advance(150)
        board.write(b"abc")
        assert board.read(0) == b"abc"


@pytest.mark.parametrize(
    "tx", ["0", "rx; reg [6:0] n = 0; always @(posedge clk) begin n <= n + 1; tx <= n != 0; end"],
    ids=["no_stop_bit", "glitch"],
)  # fmt: skip
def test_broken_bytes_are_an_error(tx):
    with loopback(tx=tx) as board, pytest.raises(CheckError, match="without start or stop bit"):
        board.read(0.001)


def test_wrong_uses_are_refused():
    with pytest.raises(ValueError, match="must have the output port 'tx'"):
        BoardTransport("module board_top(input clk, input rx); endmodule", clk_hz=8, link=Uart(1))
    with pytest.raises(ValueError, match="at most half of 8 Hz, not 5"):
        BoardTransport("", clk_hz=8, link=Uart(5))


def test_output_of_the_model_does_not_disturb(capfd):
    with loopback(tx='rx; always @(posedge clk) $display("tick")') as board:
        board.write(b"abc")
        assert board.read(0) == b"abc"
    assert "tick" in capfd.readouterr().err


def test_end_of_the_simulation_is_reported():
    with loopback() as board:
        pass
    with pytest.raises(ToolError, match="simulation of the board is closed"):
        board.write(b"x")
    with loopback(tx="rx; always @(posedge clk) if (!rx) $stop") as board:
        for _ in range(2):
            with pytest.raises(ToolError, match="simulation of the board ended with status"):
                board.write(b"x")
