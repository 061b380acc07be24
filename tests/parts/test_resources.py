"""Resource estimates: their form, and what synthesis says about a small accelerator."""

from dataclasses import fields, replace
from importlib import import_module
from itertools import cycle

import pytest
from golden_digests import fixed_graph
from golden_networks import NETWORKS
from sweeps import few

from nnef_hw.boards import find_board
from nnef_hw.hardware.devices import DEVICES, UP5K, Resources
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.arrays.array import SystolicArray
from nnef_hw.parts.arrays.requantizer import Requantizer, TfliteRequantizer
from nnef_hw.parts.arrays.weights import WeightRom
from nnef_hw.parts.base.part import Pipe
from nnef_hw.parts.functions.quotient import Quotient
from nnef_hw.parts.functions.tablesum import TableSum
from nnef_hw.parts.functions.tflite_softmax import TfliteSoftmax
from nnef_hw.parts.images.runningpool import RunningMax, RunningSum
from nnef_hw.parts.windows.banked import BankedLineBuffer
from nnef_hw.parts.windows.linebuffer import LineBuffer
from nnef_hw.parts.windows.parallel import ParallelLineBuffer
from nnef_hw.streaming.foldings.lower import lower
from nnef_hw.streaming.search.options import layer_options

pytestmark = pytest.mark.system

BOARDS = ["icebreaker", "ulx3s_85f", "tang_nano_20k", "tang_primer_25k", "arty_a7_100"]
RAM = find_board("ulx3s_85f").device.ram
WINDOW = Window(10, 12, 3, kernel=(3, 3), padding=((1, 1), (1, 1)), passes=6)
BUFFER = LineBuffer(
    window=WINDOW, bits=8, signed=False, lanes=2, pad_code=0, depth=512, ram=RAM
)  # fmt: skip
ARRAY = SystolicArray(
    channels=12, words=27, rows=2, lanes=2, group_rows=2, kept_passes=1, x_bits=8, x_signed=False,
    w_bits=8, acc_bits=20, in_dsp=4, weights=WeightRom(ram=RAM), weight_delay=0,
)  # fmt: skip
REQUANTIZER = Requantizer(
    channels=12, acc_bits=20, factor_bits=16, digit_bits=2, stages=1, bits=8, signed=False
)


TILES = Window(8, 8, 6, (2, 2), (2, 2), passes=6, by_channel=True)


@pytest.mark.parametrize(
    "device",
    few(DEVICES, {device.family.name: device for device in DEVICES}.values()),
    ids=lambda device: device.name,
)
def test_every_feature_has_a_weight_and_every_weight_a_feature(device):
    for network in NETWORKS:
        for layer in lower(fixed_graph(network)).layers:
            for part in {
                part for block in layer_options(layer, device)[::50] for part in block.parts
            }:
                weights = device.family.lut_weights[part.costs]
                assert {*part.features, "fixed"} == set(weights)
                assert min(weights.values()) >= 0
                assert min(part.features.values(), default=0) >= 0


def test_a_part_of_which_nobody_knows_the_luts_cannot_be_defined():
    facts = {"component": "x:X", "label": "nothing", "costs": "unheard of"}
    with pytest.raises(AssertionError, match="Unheard does not say what it computes"):
        type("Unheard", (Pipe,), facts)
    with pytest.raises(AssertionError, match=r"nothing of .* has no row 'unheard of'"):
        type("Unheard", (Pipe,), {**facts, "compute": LineBuffer.compute})
    match = r"'ice40', 'ecp5', 'gowin', 'arora', 'amd7'.* has no row 'unheard of'"
    with pytest.raises(AssertionError, match=match):
        type("Unheard", (LineBuffer,), {"costs": "unheard of"})


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize(
    ("part", "more"),
    [
        (ARRAY, {"rows": 4}),
        (ARRAY, {"acc_bits": 24}),
        (ARRAY, {"kept_passes": 2}),
        (ARRAY, {"in_dsp": 0}),
        (ARRAY, {"weights": WeightRom(ram=RAM, style="logic")}),
        (ARRAY, {"group_rows": 1}),
        (REQUANTIZER, {"digit_bits": 4}),
        (REQUANTIZER, {"channels": 40}),
        (BUFFER, {"depth": 1024}),
        (BUFFER, {"window": replace(WINDOW, height=40, width=40)}),
        (BUFFER, {"window": replace(WINDOW, padding=((2, 2), (2, 2)))}),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_more_hardware_takes_no_fewer_luts(part, more, board):
    device = find_board(board).device
    assert replace(part, **more).resources(device).lut >= part.resources(device).lut > 0


@pytest.mark.parametrize("board", BOARDS)
def test_two_roundings_take_more_luts_than_one(board):
    device = find_board(board).device
    parameters = {field.name: getattr(REQUANTIZER, field.name) for field in fields(REQUANTIZER)}
    assert TfliteRequantizer(**parameters).resources(device).lut > REQUANTIZER.resources(device).lut


# of Arora V and AMD samples were measured, without these
@pytest.mark.parametrize("board", BOARDS[:3])
def test_narrow_multipliers_cost_less(script, board):
    """As was measured of arrays of 16 multipliers, whose other LUTs hardly differ."""
    family = find_board(board).device.family
    assert family.product_share(8, 8) == 1
    shares = [family.product_share(bits, 8) for bits in range(1, 9)]
    assert shares == sorted(shares)
    luts = {
        case.part.w_bits: found.lut
        for case, found in import_module("measured_cases").measured_cases(family)
        if case.part.costs == "array" and case.part.channels == 16 and case.part.lanes == 4
    }
    for wide, narrow in ((4, 3), (4, 2)):
        saved = shares[wide - 1] - shares[narrow - 1]
        measured = (luts[wide] - luts[narrow]) / 16 / family.lut_multiplier
        assert measured - 0.11 < saved <= measured + 0.02


@pytest.mark.parametrize("board", BOARDS)
def test_lut_multipliers_cost_what_the_device_says(board):
    device = find_board(board).device
    in_dsp, in_lut = (replace(ARRAY, in_dsp=dsp).resources(device) for dsp in (4, 0))
    assert in_lut.lut - in_dsp.lut == 4 * device.lut_multiplier
    assert (in_dsp.dsp, in_lut.dsp) == (4 // device.products_per_dsp(8), 0)
    assert in_lut.bram == in_dsp.bram


@pytest.mark.parametrize("board", BOARDS)
def test_a_block_is_the_sum_of_its_parts(board):
    device = find_board(board).device
    network = next(network for network in NETWORKS if network.__name__ == "lenet")
    for layer in lower(fixed_graph(network)).layers:
        block = layer_options(layer, device)[0]
        parts = [part.resources(device) for part in block.parts]
        assert block.resources == sum(parts, Resources())
        deeper = block.with_fifos([40] * len(block.fifos))
        fifos = [deeper.fifo(n).resources(device) for n in range(len(block.fifos))]
        assert deeper.resources == sum(parts + fifos, Resources())


@pytest.mark.parametrize(
    ("part", "bits"),
    [
        (replace(BUFFER, window=Window(6, 6, 2, (3, 3)), lanes=4, depth=64), 64 * 4 * 8),
        (
            ParallelLineBuffer(
                window=Window(6, 6, 1, (3, 3)), bits=8, signed=False, lanes=8, pad_code=0, ram=RAM
            ),
            6 * 8 * 8 * 2,
        ),
        (
            BankedLineBuffer(
                window=Window(6, 6, 8, (3, 3)), bits=8, signed=False, lanes=1, pad_code=0,
                lines=4, ram=RAM,
            ),
            4 * 6 * 8 * 8 * 9,
        ),
        (
            RunningSum(
                window=TILES, bits=8, signed=False, acc_bits=14,
                ram=RAM,
            ),
            6 * 4 * 14,
        ),
        (
            RunningMax(
                window=TILES, bits=8, signed=False, ram=RAM,
                single_port=UP5K.single_port,
            ),
            6 * 4 * 8,
        ),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_bits_of_an_image_that_are_kept(part, bits):
    assert part.kept_bits == bits


def test_fit_finds_the_weights(script, rng, capsys):
    lines = [
        {
            "features": {"bits": int(bits), "useless": 1 / bits, "fixed": 1},
            "found": {"lut": 3.0 * bits + 7},
        }
        for bits in rng.permutation(40)[:20] + 1
    ]
    script.fit({"toy": script.PartCases.of(lines)})
    answer = capsys.readouterr().out
    assert '"bits": 3.00, "useless": 0.00, "fixed": 7.00' in answer
    assert "20 cases, mean error 0.0%, worst 0.0%, mean of a case that is left out 0.0%" in answer


def by_day(sizes, boards):
    """Return each size on a board in turn; the rest is for the night."""
    rows = [(*size, *board) for size in sizes for board in boards]
    return few(rows, [(*size, *board) for size, board in zip(sizes, cycle(boards), strict=False)])


@pytest.mark.synth
@pytest.mark.parametrize(
    ("part", "wanted", "board", "beside"),
    by_day(
        [
            (LineBuffer, {"depth": 256, "lanes": 1}),
            (SystolicArray, {"rows": 8, "group_rows": 8, "in_dsp": 8}),
            (Requantizer, {"channels": 8, "digit_bits": 2, "stages": 4}),
            (TfliteRequantizer, {"stages": 8}),
            (TfliteSoftmax, {"channels": 10}),
            (TableSum, {"acc_bits": 30}),
            (Quotient, {"digit_bits": 4}),
        ],
        [("icebreaker", 0), ("ulx3s_85f", 0), ("tang_nano_20k", 256)],
    ),
    ids=lambda value: getattr(value, "__name__", value if isinstance(value, str) else ""),
)
def test_component_is_within_15_percent(part, wanted, board, beside, script, tmp_path):
    target = find_board(board)
    device = target.device
    case = next(
        case
        for case in script.component_cases(device)
        if type(case.part) is part and all(getattr(case.part, k) == v for k, v in wanted.items())
    )
    found = script.Meter(target, tmp_path, beside).measure(case.build())
    estimate = case.part.resources(device)
    error = estimate.lut / found.lut - 1
    assert abs(error) < 0.15, f"{error:+.1%}"
    assert (estimate.dsp, estimate.bram) == (found.dsp, found.bram)
