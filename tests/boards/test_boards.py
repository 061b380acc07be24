# amaranth: UnusedElaboratable=no
"""Pins, clocks and tops of the boards."""

import re
from enum import IntEnum

import pytest
from amaranth.back import verilog
from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from nnef_hw.boards import BOARDS, get_board, protocol
from nnef_hw.boards.beats import beat_bytes, code_bytes
from nnef_hw.boards.core import LinkedCore
from nnef_hw.boards.link import PacketLink
from nnef_hw.boards.pll import Ecp5Pll, Ice40Pll
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.run import link as host_link

LAYOUT = data.StructLayout({"data": data.ArrayLayout(8, 1), "last": 1})


class Wire(wiring.Component):
    """Passes beats through; notes the platform it is elaborated for."""

    def __init__(self, layout=LAYOUT):
        self.platform = None
        super().__init__({"i": In(stream.Signature(layout)), "o": Out(stream.Signature(layout))})

    def elaborate(self, platform):
        self.platform = platform
        m = Module()
        wiring.connect(m, wiring.flipped(self.i), wiring.flipped(self.o))
        return m


@pytest.mark.parametrize(
    ("name", "board"),
    [("ice40", "icebreaker"), ("ecp5", "ulx3s_85f"), ("ULX3S_45F", "ulx3s_45f")],
    ids=["ice40", "ecp5", "upper"],
)
def test_boards_are_found_by_alias(name, board):
    assert get_board(name) is BOARDS[board]


def test_unknown_board_names_the_closest():
    with pytest.raises(
        UsageError,
        match="there is no board 'icebraker'; did you mean 'icebreaker'\\? boards: icebreaker, ",
    ):
        get_board("icebraker")
    with pytest.raises(UsageError, match="there is no board 'xyz'; boards: "):
        get_board("xyz")


@pytest.mark.parametrize("board", BOARDS.values(), ids=BOARDS)
def test_every_clock_that_is_offered_can_be_made(board):
    for mhz in (board.default_mhz, *board.frequencies[:: len(board.frequencies) // 50]):
        pll = board.clock(mhz)
        assert (pll.output_mhz if pll else board.input_mhz) == pytest.approx(mhz, abs=1e-8)


def test_icebreaker_clock_of_24_mhz():
    """The values icepll gives for it."""
    pll = get_board("icebreaker").clock(24)
    assert pll == Ice40Pll(12.0, divr=0, divf=63, divq=5)
    assert pll.filter_range == 1


def test_ulx3s_clock_keeps_oscillator_within_limits():
    pll = get_board("ulx3s_85f").clock(60)
    assert isinstance(pll, Ecp5Pll)
    assert 400 <= 25 / pll.clki_div * pll.clkop_div <= 800


@pytest.mark.parametrize(
    ("board", "mhz", "nearest"),
    [
        ("icebreaker", 25, "24.75 or 25.125"),
        ("icebreaker", 3, "12"),
        ("icebreaker", 300, "270"),
        ("ulx3s_85f", 66.5, "66.25 or 66.6667"),
    ],
    ids=["between", "slow", "fast", "ecp5"],
)
def test_impossible_clock_names_the_nearest(board, mhz, nearest):
    message = f"{board} cannot make {mhz} MHz from its"
    with pytest.raises(TargetError, match=re.escape(message)) as error:
        get_board(board).clock(mhz)
    assert error.value.remedy == f"nearest possible: {nearest} MHz"


def test_clock_that_the_uart_cannot_use_is_refused():
    with pytest.raises(TargetError, match=r"off by 3\.1%.*choose another clock or baud rate"):
        get_board("icebreaker").board_top(Wire(), 16.5)


def test_icebreaker_constraints():
    assert get_board("icebreaker").constraints().splitlines() == [
        "set_io clk 35",
        "set_io -pullup yes rx 6",
        "set_io tx 9",
        "set_io led 37",
        "set_frequency clk 12",
    ]


def test_ulx3s_constraints():
    lines = get_board("ulx3s_85f").constraints().splitlines()
    for line in (
        'LOCATE COMP "clk" SITE "G2";',
        'LOCATE COMP "rx" SITE "M1";',
        'LOCATE COMP "tx" SITE "L4";',
        'IOBUF PORT "led" IO_TYPE=LVCMOS33 DRIVE=4;',
        'FREQUENCY PORT "clk" 25 MHZ;',
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("board", "mhz", "primitive"),
    [
        ("icebreaker", 24, "SB_PLL40_PAD"),
        ("icebreaker", 12, None),
        ("ulx3s_85f", 60, "EHXPLLL"),
        ("ulx3s_45f", 25, None),
    ],
    ids=["icebreaker_pll", "icebreaker_plain", "ulx3s_pll", "ulx3s_plain"],
)
def test_top_converts_to_verilog(board, mhz, primitive):
    accelerator, platform = Wire(), object()
    top, ports, constraints = get_board(board).board_top(accelerator, mhz, bytes(32))
    assert constraints == get_board(board).constraints()
    text = verilog.convert(top, "board_top", platform, ports=ports, emit_src=False)
    assert accelerator.platform is platform
    header = re.search(r"^module board_top\((.*)\);", text, re.MULTILINE)
    assert sorted(header[1].split(", ")) == ["clk", "led", "rx", "tx"]
    assert (primitive in text) if primitive else not re.search("PLL", text)


def test_top_is_deterministic():
    texts = set()
    for _ in range(2):
        top, ports, _ = get_board("icebreaker").board_top(Wire())
        texts.add(verilog.convert(top, "board_top", ports=ports, emit_src=False))
    assert len(texts) == 1


def enumerations(module):
    return {
        name: {member.name: int(member) for member in value}
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, IntEnum) and value is not IntEnum
    }


def test_host_and_board_agree_on_the_numbers():
    assert enumerations(protocol) == enumerations(host_link)
    assert protocol.VERSION == host_link.PROTOCOL_VERSION
    assert (protocol.START, protocol.MAX_PAYLOAD) == (host_link.START, host_link.MAX_PAYLOAD)


@pytest.mark.parametrize(
    ("shape", "lanes", "expected"), [(1, 3, (1, 3)), (8, 1, (1, 1)), (9, 2, (2, 4))], ids=str
)
def test_bytes_of_beats(shape, lanes, expected):
    layout = data.StructLayout({"data": data.ArrayLayout(shape, lanes), "last": 1})
    assert (code_bytes(layout), beat_bytes(layout)) == expected


def test_misused_components_are_refused():
    with pytest.raises(TypeError, match="beat must be a StructLayout of an array 'data'"):
        code_bytes(8)
    with pytest.raises(ValueError, match="codes of a beat must have 1 to 16 bits, not 17"):
        code_bytes(data.StructLayout({"data": data.ArrayLayout(17, 1), "last": 1}))
    with pytest.raises(ValueError, match="manifest hash must have 32 bytes, not 4"):
        LinkedCore(Wire(), clk_hz=24e6, manifest_hash=bytes(4))
    with pytest.raises(ValueError, match="idle_cycles must be a power of two, not 1000"):
        PacketLink(LAYOUT, identity=bytes(40), idle_cycles=1000)
    with pytest.raises(ValueError, match="idle_cycles of 256 is no more than two bytes"):
        LinkedCore(Wire(), clk_hz=24e6, manifest_hash=bytes(32), idle_cycles=256)


def test_silence_lasts_10_ms_or_more():
    core = LinkedCore(Wire(), clk_hz=24_000_000, manifest_hash=bytes(32))
    assert 0.010 <= core.idle_cycles / 24e6 < 0.020
