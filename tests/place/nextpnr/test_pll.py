"""The PLL of a routed design is set anew: the same bits as those of a design that has it so."""

import os
from types import MappingProxyType

import pytest
from amaranth.hdl import ClockDomain, Module, Signal
from amaranth.lib import cdc, wiring
from amaranth.lib.wiring import In, Out
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.boards.interfaces import Uart
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import ToolError
from nnef_hw.flow.clock import asked_clock, tuning_of
from nnef_hw.place.constraints import board_constraints
from nnef_hw.place.nextpnr.pll import tuned_clocks
from nnef_hw.place.synthesis import synthesize
from nnef_hw.place.toolchain import Setting, Tuning, toolchain_of
from nnef_hw.system.tools import find_tool

pytestmark = [pytest.mark.system, pytest.mark.synth]

# An iCE40's PLL behind its own pad and behind any pin, and one board of each other family.
BOARDS = {"icebreaker": 16.125, "upduino_v3": 16.125, "ulx3s_12f": 31.25, "tang_nano_20k": 33.75,
          "tang_primer_25k": 31.25}  # fmt: skip
PINNED = MappingProxyType({
    "pcf": "set_frequency core_clk {mhz}\n", "lpf": 'FREQUENCY NET "core_clk" {mhz} MHZ;\n',
    "cst": "",
})  # fmt: skip


class Blink(wiring.Component):
    """Two counters, one before and one behind a PLL."""

    def __init__(self, pll):
        self.pll = pll
        super().__init__({"clk": In(1), "rx": In(1), "tx": Out(1), "led": Out(1)})

    def elaborate(self, platform):
        m = Module()
        core_clk, locked, known = Signal(), Signal(), Signal()
        m.domains.sync = sync = ClockDomain(reset_less=True)
        m.domains.board = board = ClockDomain(reset_less=True)
        m.submodules.pll, board.clk = self.pll.instance_with_input(self.clk, core_clk, locked)
        m.d.comb += sync.clk.eq(core_clk)
        m.submodules.known = cdc.FFSynchronizer(self.rx & locked, known)
        count, slow = Signal(9), Signal(9)
        m.d.sync += count.eq(count + known)
        m.d.board += slow.eq(slow + 1)
        m.d.comb += [self.led.eq(count[-1]), self.tx.eq(slow[-1])]
        return m


@pytest.fixture(autouse=True)
def _installed():
    try:
        for name in BOARDS:
            for program in toolchain_of(find_board(name).device.family).programs:
                find_tool(program)
    except ToolError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("name", few([*BOARDS], ["icebreaker", "ulx3s_12f"]))
def test_a_pll_set_after_routing_gives_the_bits_of_one_set_before(name, tmp_path):
    board, wanted = find_board(name), BOARDS[name]
    family = board.device.family
    asked = asked_clock(board)
    before, after = board.clock(asked), board.clock(wanted)
    assert before.parameters != after.parameters
    pinned = PINNED[toolchain_of(family).constraints_suffix].format(mhz=asked)
    reached = []

    def choose(mhz):
        reached.append(mhz)
        return Setting(wanted, after.parameters)

    def bits(folder, pll, tuning=None):
        out = tmp_path / folder
        out.mkdir()
        (out / "blink.v").write_text(to_verilog(Blink(pll), name="board_top"))
        result = synthesize(
            out / "blink.v", top="board_top", family=family, device=board.part,
            package=board.package, speed=board.speed, out_dir=out, frequency_mhz=asked,
            constraints=board_constraints(board) + pinned, tuning=tuning,
        )  # fmt: skip
        return (out / result.files["bitstream"]).read_bytes(), result

    untouched, _ = bits("untouched", before)
    fresh, _ = bits("fresh", after)
    tuned, result = bits("tuned", before, Tuning(board.input_mhz, type(before).outputs, choose))
    assert tuned == fresh
    assert tuned != untouched
    assert (result.clock_mhz, result.timing_met) == (wanted, True)
    limits = sorted(limit for _, limit in result.clocks.values())
    assert limits == sorted([board.input_mhz, wanted])
    [(found, _)] = [clock for clock in result.clocks.values() if clock[1] == wanted]
    assert reached == [found]
    assert not list((tmp_path / "tuned").glob("**/pll.log"))


def test_the_clock_behind_a_pll_is_the_one_that_is_tuned():
    clocks = {"$glbnet$x.clk": (80.5, 90.0), "clk$in": (150.0, 90.0)}
    tuning = Tuning(25.0, {}, lambda mhz: Setting(mhz - 1, {}) if mhz > 10 else None)
    found, setting = tuned_clocks(clocks, frozenset({"x.clk", "y"}), tuning)
    assert found == {"$glbnet$x.clk": (80.5, 79.5), "clk$in": (150.0, 25.0)}
    assert setting == Setting(79.5, {})
    found, setting = tuned_clocks({"y": (5.0, 90.0)}, frozenset({"y"}), tuning)
    assert (found, setting) == ({"y": (5.0, 90.0)}, None)


@pytest.mark.parametrize("name", BOARDS)
def test_the_fastest_clock_below_what_is_reached_is_taken(name):
    """It stays 2% below, and the board's usual clock is left where what is asked for is reached."""
    board = find_board(name)
    tuning = tuning_of(board, Uart())
    asked = asked_clock(board)
    own = board.clock_mhz == board.input_mhz  # no PLL is set then
    assert own or board.clock_mhz <= tuning.choose(asked).clock_mhz <= 0.98 * asked
    for reached in (20.0, 41.57, 88.8):
        setting = tuning.choose(reached)
        made = [mhz for mhz in board.frequencies if mhz != board.input_mhz]
        fastest = max(mhz for mhz in made if mhz <= 0.98 * reached)
        assert setting.clock_mhz == pytest.approx(fastest, rel=1e-9)  # boards have rounded ones
        pll = next(x for x in [board.clock(setting.clock_mhz)] if x is not None)
        assert pll.parameters == setting.parameters
    assert tuning.choose(2.0) is None


def test_a_clock_too_slow_for_the_link_is_no_choice():
    """Twenty cycles for each byte that comes at 12 million baud."""
    board = find_board("orangecrab")
    tuning = tuning_of(board, Uart(12_000_000))
    assert tuning.choose(24.0) is None
    assert tuning.choose(25.0).clock_mhz >= 24.0
