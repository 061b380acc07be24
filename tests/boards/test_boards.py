# amaranth: UnusedElaboratable=no
"""Pins, clocks and tops of the boards."""

import functools
import importlib
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from amaranth.back import rtlil, verilog
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from output_streams import Wire, beats

from nnef_hw.boards import BOARDS, Pins, find_board
from nnef_hw.boards.hardware.beats import beat_bytes, code_bytes
from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.link import PacketLink
from nnef_hw.boards.hardware.pins import board_pins
from nnef_hw.boards.hardware.pll import Amd7Mmcm, AroraPll, Ecp5Pll, GowinPll, Ice40Pll
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.hardware.families import AMD7, ARORA, GOWIN, ICE40
from nnef_hw.place.constraints import board_constraints
from nnef_hw.rtl.base.primitives import PREFIX

WITH_PLATFORM = [board for board in BOARDS if board.platform]
OF_AMD7 = [board for board in BOARDS if board.device.family is AMD7]
OF_ARORA = [board for board in BOARDS if board.device.family is ARORA]
each_board = pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)


@pytest.mark.parametrize(
    ("name", "board"),
    [
        ("ice40", "icebreaker"), ("ecp5", "ulx3s_85f"), ("gowin", "tang_nano_20k"),
        ("arora", "tang_primer_25k"), ("amd7", "arty_a7_100"),
        ("ULX3S_45F", "ulx3s_45f"),
    ],
    ids=["ice40", "ecp5", "gowin", "arora", "amd7", "upper"],
)  # fmt: skip
def test_boards_are_found_by_alias(name, board):
    assert find_board(name).name == board


def test_unknown_board_names_the_closest():
    match = "board 'icebraker' is not known; did you mean 'icebreaker'\\? choose one of amd7"
    with pytest.raises(UsageError, match=match):
        find_board("icebraker")
    with pytest.raises(
        UsageError, match=r"board 'xyz' is not known; choose .*or give a file \./xyz"
    ):
        find_board("xyz")


@pytest.mark.parametrize("board", WITH_PLATFORM, ids=lambda board: board.name)
def test_facts_agree_with_the_platform(board):
    """The clock is the platform's; the names are its tools'."""
    module, _, name = board.platform.partition(":")
    platform = getattr(importlib.import_module(module), name)
    (clock,) = [item.clock for item in platform.resources if item.name == board.pins["clk"]]
    assert clock.frequency == pytest.approx(board.input_mhz * 1e6)
    if board.device.family is GOWIN:
        assert platform.part == board.package + board.speed
        assert platform.family.lower() == board.device.name
        assert board.part == re.sub("^(GW..)R-", r"\1-", platform.family)
        return
    size = re.search(r"\d+k?", board.part)[0].removesuffix("k")
    assert size in platform.device.lower()
    assert size in board.device.name
    if board.device.family is ICE40:
        assert platform.package.lower() == board.package
    else:
        assert platform.package[-3:] == board.package[-3:]
        assert platform.speed == board.speed


@each_board
def test_every_clock_that_is_offered_can_be_made(board):
    for mhz in (board.clock_mhz, *board.frequencies[:: 1 + len(board.frequencies) // 50]):
        pll = board.clock(mhz)
        assert (pll.output_mhz if pll else board.input_mhz) == pytest.approx(mhz, abs=1e-8)


def test_icebreaker_clock_of_24_mhz():
    """The values icepll gives for it."""
    pll = find_board("icebreaker").clock(24)
    assert pll == Ice40Pll(12.0, divr=0, divf=63, divq=5)
    assert pll.filter_range == 1


def test_ulx3s_clock_keeps_oscillator_within_limits():
    pll = find_board("ulx3s_85f").clock(60)
    assert isinstance(pll, Ecp5Pll)
    assert 400 <= 25 / pll.clki_div * pll.clkop_div <= 800


def test_tang_nano_clock_keeps_oscillator_within_limits():
    """The settings gowin_pll gives for it, but for an oscillator that both boards can have."""
    for name in ("tang_nano_9k", "tang_nano_20k"):
        board = find_board(name)
        assert board.clock(40.5) == GowinPll(27.0, idiv=2, fbdiv=3, odiv=16)
        for mhz in board.frequencies:
            if pll := board.clock(mhz):
                assert 500 <= mhz * pll.odiv <= 1200
                assert mhz <= 120


def test_tang_primer_clock_keeps_oscillator_within_limits():
    board = find_board("tang_primer_25k")
    assert board.clock(50) is None
    assert board.clock(75) == AroraPll(50.0, idiv=1, mdiv=18, odiv=12)
    for mhz in board.frequencies:
        if pll := board.clock(mhz):
            assert 50 / pll.idiv >= 19
            assert 800 <= 50 / pll.idiv * pll.mdiv <= 1600
            assert mhz * pll.odiv == pytest.approx(50 / pll.idiv * pll.mdiv)
            assert mhz <= 120


@pytest.mark.parametrize("board", OF_AMD7, ids=lambda board: board.name)
def test_clocks_of_amd_keep_the_oscillator_within_limits(board):
    """Those of speed grade -1, whatever the clock is; the fastest oscillator comes first."""
    slowest, fastest = board.frequencies[0], board.frequencies[-1]
    assert 4.69 <= slowest < 4.8
    assert 380 < fastest <= 464
    for mhz in board.frequencies[::40]:
        if pll := board.clock(mhz):
            phase = board.input_mhz / pll.divclk
            assert 10 <= phase <= 450
            assert 600 <= phase * pll.mult <= 1200
            assert 2 <= pll.mult <= 64
            assert 1 <= pll.divide <= 128
            assert mhz * pll.divide == pytest.approx(phase * pll.mult)


@pytest.mark.parametrize(
    ("board", "mhz", "settings"),
    [
        ("arty_a7_100", 100, None),
        ("arty_a7_100", 50, (1, 12, 24)),
        ("arty_a7_35", 83.3333333, (1, 10, 12)),
        ("cmod_a7", 96, (1, 64, 8)),
        ("pynq_z2", 100, (1, 8, 10)),
    ],
)
def test_settings_of_an_mmcm(board, mhz, settings):
    pll = find_board(board).clock(mhz)
    assert pll == (settings and Amd7Mmcm(find_board(board).input_mhz, *settings))


def test_an_mmcm_has_its_settings_as_real_numbers():
    """Vivado takes no text for them."""

    class Clocked(wiring.Component):
        clk: In(1)
        core_clk: Out(1)
        locked: Out(1)

        def elaborate(self, platform):
            m = Module()
            m.submodules.pll = (
                find_board("cmod_a7").clock(96).instance(self.clk, self.core_clk, self.locked)
            )
            return m

    text = re.sub(r"\s+", " ", to_verilog(Clocked()))
    assert ".CLKIN1_PERIOD(83.333), .DIVCLK_DIVIDE(1), .CLKFBOUT_MULT_F(64.0)" in text
    assert ".CLKOUT0_DIVIDE_F(8.0)" in text
    assert "BUFG" in text


@pytest.mark.parametrize("name", ["tang_mega_138k", "tang_console_138k"])
def test_a_board_without_clock_generators_has_its_oscillator(name):
    board = find_board(name)
    assert (board.frequencies, board.clock(50)) == ((50.0,), None)
    with pytest.raises(TargetError, match="cannot make 75 MHz from its 50 MHz"):
        board.clock(75)


@functools.cache
def database_of(part):
    chipdb = pytest.importorskip("apycula.chipdb", reason="apycula is not installed")
    return chipdb.load_chipdb(str(Path(chipdb.__file__).with_name(f"{part}.msgpack.xz")))


@pytest.mark.parametrize("board", OF_ARORA, ids=lambda board: board.name)
def test_pins_are_those_of_the_package(board):
    """As apycula has them, which describes the devices to nextpnr, too."""
    database = database_of(board.part)
    package, device, _ = database.packages[board.package + board.speed]
    sites = {place.strip("@") for pins in board.pins.values() for place in Pins.of(pins).places}
    assert len(sites) >= 5
    assert sites <= set(database.pinout[device][package])
    tiles = (database[n, k] for n in range(database.rows) for k in range(database.cols))
    bels = [bel for tile in tiles for bel in tile.bels]
    for pattern, count in (
        (r"LUT\d", board.device.lut), (r"MULT12X120[01]", board.device.dsp),
        (r"BSRAM", board.device.bram),
    ):  # fmt: skip
        assert sum(re.fullmatch(pattern, bel) is not None for bel in bels) == count


@pytest.mark.parametrize(
    ("board", "mhz", "nearest"),
    [
        ("icebreaker", 25, "24.75 or 25.125"),
        ("icebreaker", 3, "12"),
        ("icebreaker", 300, "270"),
        ("ulx3s_85f", 66.5, "66.25 or 66.6667"),
        ("tang_nano_20k", 61.3, "60.75 or 61.7143"),
        ("tang_nano_9k", 200, "120"),
    ],
    ids=["between", "slow", "fast", "ecp5", "gowin", "gowin_fast"],
)
def test_impossible_clock_names_the_nearest(board, mhz, nearest):
    message = f"{board} cannot make {mhz} MHz from its"
    with pytest.raises(TargetError, match=re.escape(message)) as error:
        find_board(board).clock(mhz)
    assert error.value.remedy == f"nearest possible: {nearest} MHz"


def test_a_setting_below_is_never_above():
    board = find_board("icebreaker")
    assert board.setting_below(25).output_mhz == 24.75
    assert board.setting_below(5) is None


def test_clock_that_the_uart_cannot_use_is_refused():
    with pytest.raises(TargetError, match=r"off by 3\.1%.*choose another --freq or --baud"):
        board_top(find_board("icebreaker"), Wire(), 16.5)


def test_icebreaker_constraints():
    assert board_constraints(find_board("icebreaker")).splitlines() == [
        "set_io clk 35",
        "set_io -pullup yes rx 6",
        "set_io tx 9",
        "set_io led 37",
        "set_frequency clk 12",
    ]


def test_constraints_of_pins_without_a_resource():
    assert board_constraints(find_board("tinyfpga_bx")).splitlines()[1:3] == [
        "set_io -pullup yes rx A2",
        "set_io tx A1",
    ]


def test_ulx3s_constraints():
    lines = board_constraints(find_board("ulx3s_85f")).splitlines()
    for line in (
        'LOCATE COMP "clk" SITE "G2";',
        'LOCATE COMP "rx" SITE "M1";',
        'LOCATE COMP "tx" SITE "L4";',
        'IOBUF PORT "led" IO_TYPE=LVCMOS33 DRIVE=4;',
        'FREQUENCY PORT "clk" 25 MHZ;',
    ):
        assert line in lines


@pytest.mark.parametrize(
    ("board", "clk", "rx", "tx", "led"),
    [("tang_nano_9k", 52, 18, 17, 10), ("tang_nano_20k", 4, 70, 69, 15)],
)
def test_tang_nano_constraints(board, clk, rx, tx, led):
    board = find_board(board)
    assert board_constraints(board).splitlines() == [
        f'IO_LOC "clk" {clk};', 'IO_PORT "clk" IO_TYPE=LVCMOS33;',
        f'IO_LOC "rx" {rx};', 'IO_PORT "rx" PULL_MODE=UP IO_TYPE=LVCMOS33;',
        f'IO_LOC "tx" {tx};', 'IO_PORT "tx" PULL_MODE=UP IO_TYPE=LVCMOS33;',
        f'IO_LOC "led" {led};', 'IO_PORT "led" IO_TYPE=LVCMOS33;',
    ]  # fmt: skip
    assert board_pins(board)["led"].invert


@pytest.mark.parametrize(
    ("board", "clk", "rx", "tx", "led"),
    [("tang_primer_25k", "E2", "B3", "C3", "E8"), ("tang_mega_138k", "V22", "V14", "U15", "U12")],
)
def test_arora_constraints(board, clk, rx, tx, led):
    assert board_constraints(find_board(board)).splitlines() == [
        f'IO_LOC "clk" {clk};', 'IO_PORT "clk" IO_TYPE=LVCMOS33;',
        f'IO_LOC "rx" {rx};', 'IO_PORT "rx" IO_TYPE=LVCMOS33 PULL_MODE=UP;',
        f'IO_LOC "tx" {tx};', 'IO_PORT "tx" IO_TYPE=LVCMOS33;',
        f'IO_LOC "led" {led};', 'IO_PORT "led" IO_TYPE=LVCMOS33;',
    ]  # fmt: skip
    assert not board_pins(find_board(board))["led"].invert


@pytest.mark.parametrize(
    ("board", "clk", "period", "rx", "tx", "led"),
    [
        ("arty_a7_35", "E3", "10.000", "A9", "D10", "H5"),
        ("arty_a7_100", "E3", "10.000", "A9", "D10", "H5"),
        ("basys3", "W5", "10.000", "B18", "A18", "U16"),
        ("cmod_a7", "L17", "83.333", "J17", "J18", "A17"),
        ("pynq_z2", "H16", "8.000", "T14", "U12", "R14"),
    ],
)
def test_amd_constraints(board, clk, period, rx, tx, led):
    places = {"clk": clk, "rx": rx, "tx": tx, "led": led}
    assert board_constraints(find_board(board)).splitlines() == [
        *(
            f"set_property -dict {{PACKAGE_PIN {site} IOSTANDARD LVCMOS33}} [get_ports {{{port}}}]"
            for port, site in places.items()
        ),
        f"create_clock -name clk -period {period} [get_ports {{clk}}]",
        "set_property CFGBVS VCCO [current_design]",
        "set_property CONFIG_VOLTAGE 3.3 [current_design]",
    ]


def test_clock_of_two_pins_takes_the_positive_one():
    lines = board_constraints(find_board("versa_ecp5")).splitlines()
    assert lines[:2] == ['LOCATE COMP "clk" SITE "P3";', 'IOBUF PORT "clk" IO_TYPE=LVDS;']


@each_board
def test_top_has_the_pins_of_the_board(board):
    accelerator, platform = Wire(), SimpleNamespace(prefix=PREFIX)
    top, ports = board_top(board, accelerator)
    # of which Amaranth makes Verilog with a yosys that takes longer to start than all the rest
    text = rtlil.convert(top, "board_top", platform, ports=ports, emit_src=False)
    assert accelerator.platform is platform
    body = re.search(r"^module \\board_top$(.*?)^end$", text, re.MULTILINE | re.DOTALL)
    names = set(re.findall(r"^  wire .*put \d+ +\\(\S+)$", body[1], re.MULTILINE))
    assert names == board.pins.keys() & {"clk", "rx", "tx", "led"}
    for name in names:
        assert re.search(rf'\b"?{name}"?[ }}]', board_constraints(board))
    assert re.search("SB_PLL40_PAD|SB_PLL40_CORE|EHXPLLL|rPLL|PLLA|MMCME2_BASE", text) or (
        board.clock_mhz == board.input_mhz
    )


@pytest.mark.parametrize("board", ["icebreaker", "ulx3s_45f"])
def test_oscillator_as_clock_needs_no_pll(board):
    board = find_board(board)
    top, ports = board_top(board, Wire(), board.input_mhz)
    assert "PLL" not in verilog.convert(top, "board_top", ports=ports, emit_src=False)


def test_loop_filter_of_an_ecp5_is_in_the_verilog():
    """Its settings are attributes of the primitive: without them nextpnr writes zeros."""
    top, ports = board_top(find_board("ulx3s_45f"), Wire())
    text = to_verilog(top, name="board_top", ports=ports)
    assert re.search(r'\(\* ICP_CURRENT = "12", LPF_RESISTOR = "8", .* \*\)\n +EHXPLLL', text)


def test_top_is_deterministic():
    texts = set()
    for _ in range(2):
        top, ports = board_top(find_board("icebreaker"), Wire())
        texts.add(verilog.convert(top, "board_top", ports=ports, emit_src=False))
    assert len(texts) == 1


USER_BOARD = """
from nnef_hw.boards import Board
from nnef_hw.hardware.devices import find_device

MINE = Board(
    name="mine", title="My board", device=find_device("up5k"), part="up5k", package="sg48",
    clock_mhz=24.0, input_mhz=12.0, clock_pad=True,
    pins={"clk": "@35", "rx": "@6", "tx": "@9"},
)
"""


def test_board_in_a_file_of_the_user(tmp_path):
    (tmp_path / "mine.py").write_text(USER_BOARD)
    board = find_board(str(tmp_path / "mine.py"))
    assert board.clock(24) == find_board("icebreaker").clock(24)
    assert board_constraints(board).splitlines()[:3] == [
        "set_io clk 35", "set_io rx 6", "set_io tx 9",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (None, "mine.py' does not exist; see docs/boards.md"),
        ("1 / 0", "fails: ZeroDivisionError: division by zero"),
        ("", "defines 0 boards, not one"),
        (USER_BOARD.replace("title", "titel"), "fails: TypeError: .*titel"),
        (
            USER_BOARD.replace("input_mhz=12.0", "input_mhz='12'"),
            "py': board 'mine': input_mhz must be a positive number, not '12'; see docs",
        ),
        (USER_BOARD.replace('"clk": "@35",', ""), "board 'mine': pins lack clk, the oscillator's"),
        (USER_BOARD.replace('"@9"', "9"), r"'mine': tx: pins must have a tuple .* not 9; write"),
        (USER_BOARD.replace('"up5k")', '"up7k")'), "py': device 'up7k' is not known"),
    ],
    ids=[
        "missing",
        "error",
        "none",
        "mistyped",
        "oscillator",
        "no clock",
        "no place",
        "device",
    ],
)
def test_wrong_board_files_are_refused(text, match, tmp_path):
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UsageError, match=match):
        find_board(str(tmp_path / "mine.py"))


def test_platform_without_the_pin_is_named():
    board = replace(find_board("icebreaker"), pins={"clk": "clk12", "rx": "uart.xr", "tx": "led"})
    match = "platform 'amaranth_boards.icebreaker:ICEBreakerPlatform' has no pin 'uart.xr'"
    with pytest.raises(TargetError, match=match):
        board_constraints(board)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"pins": {"clk": "@35", "rx": "@6", "tx": "@6"}}, "rx and tx are both pin 6"),
        # the platform's name of pin 6
        ({"pins": {"clk": "@35", "rx": "uart.rx", "tx": "@6"}}, "rx and tx are both pin 6"),
        (
            {"platform": ""},
            "pin 'clk12' belongs to a platform, but the board names none; name its platform",
        ),
        ({"platform": "amaranth_boards:Nope"}, "cannot be imported: .*; write module:class"),
        ({"platform": "nope:Nope"}, "'nope:Nope' cannot be imported: No module named 'nope'"),
    ],
)
def test_pins_that_cannot_be_are_refused(changes, match):
    with pytest.raises(TargetError, match=match):
        board_constraints(replace(find_board("icebreaker"), **changes))


@pytest.mark.parametrize(
    ("shape", "lanes", "expected"), [(1, 3, (1, 3)), (8, 1, (1, 1)), (9, 2, (2, 4))], ids=str
)
def test_bytes_of_beats(shape, lanes, expected):
    layout = beats(shape, lanes)
    assert (code_bytes(layout), beat_bytes(layout)) == expected


def test_misused_components_are_refused():
    with pytest.raises(TypeError, match="beat must be a StructLayout of an array 'data'"):
        code_bytes(8)
    with pytest.raises(ValueError, match="codes of a beat must have 1 to 16 bits, not 17"):
        code_bytes(beats(17))
    with pytest.raises(ValueError, match="manifest hash must have 32 bytes, not 4"):
        LinkedCore(Wire(), clk_hz=24e6, manifest_hash=bytes(4))
    with pytest.raises(ValueError, match="idle_cycles must be a power of two, not 1000"):
        PacketLink(beats(8), identity=bytes(40), idle_cycles=1000)
    with pytest.raises(ValueError, match="idle_cycles of 256 is no more than two bytes"):
        LinkedCore(Wire(), clk_hz=24e6, manifest_hash=bytes(32), idle_cycles=256)


def test_silence_lasts_10_ms_or_more():
    core = LinkedCore(Wire(), clk_hz=24_000_000, manifest_hash=bytes(32))
    assert 0.010 <= core.idle_cycles / 24e6 < 0.020
