"""Size of the link without an accelerator, and of sinks: the compiler's budgets for them."""

import json
import math

import pytest
from amaranth.back import verilog
from amaranth.hdl import signed
from output_streams import Wire, beats
from sweeps import few

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.cameras.queues import PictureQueue
from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.events.event_pin import EventOnPin
from nnef_hw.boards.hardware.events.event_text import EventText
from nnef_hw.boards.hardware.leds import ClassLeds
from nnef_hw.boards.hardware.mlperf.core import RunnerCore
from nnef_hw.boards.hardware.tokens.writer import TextWriter
from nnef_hw.boards.interfaces import (
    SOURCES,
    Border,
    ChipLoop,
    ClassOnLeds,
    Dvp,
    EventPin,
    Imu,
    Mlperf,
    Result,
    UartText,
)
from nnef_hw.boards.interfaces.cameras import CAMERAS
from nnef_hw.boards.interfaces.microphone import Microphone
from nnef_hw.flow.language_models import loop_luts
from nnef_hw.hardware.geometry.blockram import tile_memory

pytestmark = pytest.mark.system

ys = pytest.importorskip("pyosys.libyosys")

UP5K_BOARD = find_board("icebreaker")


@pytest.mark.synth
@pytest.mark.parametrize("has_own_clock", few([False, True], [True]))
def test_link_fits_its_budget_on_up5k(has_own_clock, tmp_path):
    """Logic cells: a LUT and the flip-flop behind it share one, other flip-flops take their own."""
    core = LinkedCore(
        Wire(), clk_hz=24_000_000, manifest_hash=bytes(range(32)), frames={"i": 784, "o": 784},
        has_own_clock=has_own_clock,
    )  # fmt: skip
    logic_cells, memories = synthesized(core, tmp_path)
    assert memories == UP5K_BOARD.link_bram
    assert logic_cells <= UP5K_BOARD.link_lut
    assert logic_cells > 500


@pytest.mark.synth
@pytest.mark.parametrize(
    ("classes", "leds", "lanes", "bits"),
    few([(10, 4, 1, 8), (4, 4, 2, 8), (10, 10, 5, 8)], [(10, 10, 5, 8)]),
)
def test_class_on_leds_fits_its_budget_on_up5k(classes, leds, lanes, bits, tmp_path):
    layout = beats(signed(bits), lanes)
    leds = ClassLeds(layout, classes=classes, leds=leds, is_index=False, channels=classes)
    logic_cells, memories = synthesized(leds, tmp_path)
    assert memories == 0
    assert 20 < logic_cells <= ClassOnLeds.lut


@pytest.mark.synth
@pytest.mark.parametrize(
    ("names", "mean", "blocks"),
    few(
        [
            ("/person", 1, 0), ("yes/no/stop/go", 16, 2),
            ("yes/no/up/down/left/right/on/off/stop/go//", 1, 0), (None, 1, 0),
        ],
        [("yes/no/stop/go", 16, 2), (None, 1, 0)],
    ),
    ids=["one", "mean", "many", "numbers"],
)  # fmt: skip
def test_a_line_of_text_fits_its_budget_on_up5k(names, mean, blocks, tmp_path):
    layout = beats(signed(8))
    scores = QType(8, signed=True, scale=1 / 256, zero_point=-128)
    classes = len(names.split("/")) if names else 4
    result = Result("y", (classes,), image=(1, 1, classes), qtype=scores)
    sink = UartText.of(result, {}, names=names, mean=mean)
    logic_cells, memories = synthesized(EventText(layout, **sink.parameters(24_000_000)), tmp_path)
    assert memories <= blocks == UartText.blocks(mean=mean)
    assert 150 < logic_cells <= UartText.luts(names=names, mean=mean), logic_cells


@pytest.mark.synth
@pytest.mark.parametrize(
    "options",
    few([{}, {"mean": 16}, {"best": 1}, {"mean": 16, "best": 1}], [{}, {"mean": 16, "best": 1}]),
)
def test_a_pin_fits_its_budget_on_up5k(options, tmp_path):
    layout = beats(signed(8))
    scores = QType(8, signed=True, scale=1 / 256, zero_point=-128)
    sink = EventPin.of(Result("y", (4,), image=(1, 1, 4), qtype=scores), {"alert": 1}, **options)
    logic_cells, memories = synthesized(EventOnPin(layout, **sink.parameters(1)), tmp_path)
    assert memories == EventPin.blocks(**options)
    assert 10 < logic_cells <= EventPin.luts(**options), logic_cells


def cells_of(source, layout, folder):
    """Return the logic cells of a source, whose memories are those that it says."""
    receiver = source.hardware_class()(layout, **source.parameters(36_750_000))
    logic_cells, memories = synthesized(receiver, folder)
    assert memories == source.bram
    return logic_cells


@pytest.mark.synth
@pytest.mark.parametrize("kind", [kind for kind in SOURCES if issubclass(kind, Microphone)])
def test_microphones_fit_their_budgets_on_up5k(kind, tmp_path):
    source = kind("x", 16_000, 512)
    logic_cells = cells_of(source, beats(signed(16)), tmp_path)
    assert 50 < logic_cells <= source.lut


@pytest.mark.synth
@pytest.mark.parametrize(
    ("numbers", "bits", "lanes"),
    few([(3, 8, 1), (6, 8, 1), (6, 16, 1), (6, 8, 2), (6, 8, 6)], [(6, 8, 6)]),
)
def test_a_sensor_of_motion_fits_its_budget_on_up5k(numbers, bits, lanes, tmp_path):
    source = Imu("x", 100, 32 * numbers, numbers, numbers, bits, scale=0.0123 * 2.0 ** (8 - bits))
    logic_cells = cells_of(source, beats(signed(bits), lanes), tmp_path)
    assert 200 < logic_cells <= source.lut


@pytest.mark.synth
@pytest.mark.parametrize("camera", few([camera.name for camera in CAMERAS], ["ov2640"]))
def test_a_camera_fits_its_budget_on_up5k(camera, tmp_path):
    source = Dvp("x", 96, 96, 1, camera=camera)
    logic_cells = cells_of(source, beats(8), tmp_path)
    assert 300 < logic_cells <= Dvp.luts(camera=camera), logic_cells


@pytest.mark.synth
def test_a_picture_that_waits_takes_the_blocks_that_are_counted(tmp_path):
    count = 24 * 32
    _, memories = synthesized(PictureQueue(beats(signed(8)), count), tmp_path)
    assert memories == tile_memory(UP5K_BOARD.device.ram, count, 8).count == 2


@pytest.mark.synth
@pytest.mark.parametrize(("tokens", "context"), few([(27, 16), (512, 256)], [(512, 256)]))
def test_token_loop_fits_its_budget_on_up5k(tokens, context, tmp_path):
    """The memories are those that a build counts: weights, and scores."""
    loop = ChipLoop("token", "position", "scores", tokens, context, tokens, is_choice=False)
    integers = beats(range(tokens))
    scores = beats(signed(8))
    writer = TextWriter(loop, {"token": integers, "position": integers, "scores": scores})
    logic_cells, memories = synthesized(writer, tmp_path)
    assert memories == 2
    assert 300 < logic_cells <= loop_luts(UP5K_BOARD.device.family, tokens)


@pytest.mark.synth
@pytest.mark.parametrize(
    ("benchmark", "image", "classes", "most_luts"),
    few(
        [("ic01", (32, 32, 3), 10, 600), ("ad01", (1, 640, 1), 640, 700)],
        [("ad01", (1, 640, 1), 640, 700)],
    ),
)
def test_mlperf_fits_its_budget_on_up5k(benchmark, image, classes, most_luts, tmp_path):
    """Among the memories are the program, the input and its result."""
    form = QType(8, signed=True, scale=1 / 256, zero_point=-128)
    pixels = QType(8, signed=True, scale=1.0, zero_point=-128)
    codes = math.prod(image)
    source = Border("x", form if classes == codes else pixels, image, image)
    link = Mlperf().bound({"x": source}, {"y": Border("y", form, (1, 1, classes), (classes,))})
    assert link.benchmark == benchmark
    core = RunnerCore(Wire(), clk_hz=12_000_000, link=link, frames={"i": codes, "o": classes})
    logic_cells, memories = synthesized(core, tmp_path)
    room = link.room(codes, classes)
    blocks = sum(tile_memory(UP5K_BOARD.device.ram, *size).count for size in room.memories)
    assert memories <= UP5K_BOARD.link_bram + blocks
    assert 500 < logic_cells <= UP5K_BOARD.link_lut + room.lut
    netlist = json.loads((tmp_path / "core.json").read_text())["modules"]["core"]["cells"]
    assert sum(cell["type"] == "SB_LUT4" for cell in netlist.values()) <= most_luts


def synthesized(component, folder):
    """Return the logic cells and the block RAMs of a component on an UP5K."""
    source, netlist = folder / "core.v", folder / "core.json"
    source.write_text(verilog.convert(component, name="core", emit_src=False))
    design = ys.Design()
    ys.run_pass(f"read_verilog {source}", design)
    ys.run_pass(f"synth_ice40 -device u -abc9 -top core -json {netlist}", design)

    cells = json.loads(netlist.read_text())["modules"]["core"]["cells"].values()
    readers = {}
    for cell in cells:
        for port, bits in cell["connections"].items():
            if cell["port_directions"][port] == "input":
                for bit in bits:
                    readers[bit] = readers.get(bit, 0) + 1
    luts = [cell["connections"]["O"][0] for cell in cells if cell["type"] == "SB_LUT4"]
    packed = {output for output in luts if readers.get(output) == 1}
    flip_flops = [
        cell["connections"]["D"][0] for cell in cells if cell["type"].startswith("SB_DFF")
    ]
    logic_cells = len(luts) + sum(bit not in packed for bit in flip_flops)
    memories = sum(cell["type"] == "SB_RAM40_4K" for cell in cells)
    return logic_cells, memories
