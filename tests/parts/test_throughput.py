"""How fast parts are, alone and one behind the other, as their processes say.

Examples compare the processes with the components, cycle by cycle.
"""

from dataclasses import replace

import numpy as np
import pytest
from examples.example import RAM, REGISTERED
from examples.images import SPREAD, depth_to_space
from examples.pixels import PIXELS
from examples.windows import BANKED, SERIAL, banked, line_buffer

from examples import EXAMPLES
from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window
from nnef_hw.parts.base.timing import Kernel
from nnef_hw.parts.functions.normalize import NormalizePart


def cycles(chain, items, *, words=1):
    """Return when items are taken of a source that always offers, and given to a willing sink.

    Items of the source have so many words, of which one is offered per cycle.
    """
    kernel, given = Kernel(), []
    origin = target = kernel.stream()
    never = kernel.stream()

    def source():
        time = -1
        for _ in range(items):
            time = yield origin, time + words
        yield never

    def sink():
        while True:
            given.append((yield target))
            target.accept(given[-1])

    for part in chain:
        target = part.start(kernel, target)
    kernel.start(source())
    kernel.start(sink())
    kernel.run()
    return np.array(origin.times), np.array(given)


@pytest.mark.parametrize("window", BANKED.values(), ids=BANKED)
def test_a_frame_of_a_banked_line_buffer_takes_its_beats_or_its_words(window):
    short = window.width * window.channel_blocks == 1 or window.height < window.reach[0]
    part = banked(window, spare=window.stride[0] + short).part
    _, given = cycles([part], 6 * window.beats)
    words = len(given) // 6
    assert (np.diff(given[words - 1 :: words])[-3:] == max(window.beats, words)).all()


def test_every_multiplier_of_a_depthwise_array_works_in_every_cycle():
    window = BANKED["depthwise"]
    array = replace(EXAMPLES["DepthwiseArray"]["whole window"].part, channels=3, kept_passes=10)
    assert array.latency + 1 == array.kept_passes
    _, given = cycles([banked(window, lines=4).part, array], 4 * window.beats)
    assert (np.diff(given) == 1).all()


@pytest.mark.parametrize(("kept_passes", "period"), [(10, 1), (9, 10 / 9), (5, 2), (1, 9)])
def test_the_period_of_a_pass_follows_from_the_kept_ones(kept_passes, period):
    array = EXAMPLES["DepthwiseArray"]["whole window"].part
    array = replace(array, kept_passes=kept_passes)
    assert array.latency == (9 if kept_passes > 1 else 8)
    taken, _ = cycles([array], 180)
    assert taken[-1] - taken[-1 - 9 * kept_passes] == 9 * kept_passes * period


@pytest.mark.parametrize("name", ["several lanes", "one block", "twice delayed weights"])
def test_a_depthwise_array_takes_a_word_in_every_cycle(name):
    array = EXAMPLES["DepthwiseArray"][name].part
    taken, _ = cycles([array], 20, words=array.words)
    assert (np.diff(taken) == array.words).all()


def test_a_requantizer_keeps_up_with_three_lanes():
    array = EXAMPLES["DepthwiseArray"]["several lanes"].part
    requantizer = parts.Requantizer(
        channels=1, acc_bits=22, factor_bits=3, digit_bits=1, stages=1, bits=8, signed=False
    )
    assert array.lanes * requantizer.interval == array.words
    taken, _ = cycles([array, requantizer], 40, words=array.words)
    assert (np.diff(taken) == array.words).all()


@pytest.mark.parametrize(("words", "group_rows"), [(12, 12), (12, 5), (9, 1)])
def test_a_sum_per_cycle_without_a_bubble(words, group_rows):
    array = replace(
        EXAMPLES["SystolicArray"]["weights far away, 2"].part, channels=24, words=words, lanes=1,
        rows=12, group_rows=group_rows,
    )  # fmt: skip
    _, given = cycles([array], 8, words=words)
    assert (np.diff(given[12:]) == 1).all()


@pytest.mark.parametrize("kept_passes", [1, 2])
@pytest.mark.parametrize(
    "name", ["one row", "one group", "linear at once", "sums of a pass at once"]
)
def test_the_period_of_a_systolic_array(name, kept_passes):
    array = replace(EXAMPLES["SystolicArray"][f"{name}, 1"].part, kept_passes=kept_passes)
    beats, flight = array.rows // array.out_lanes, array.latency + array.rows // array.out_lanes
    period = max(array.words, flight) if kept_passes == 1 else max(array.words, beats, flight / 2)
    taken, _ = cycles([array], 24 * array.passes, words=array.words)
    if array.channels % array.rows == 0:
        assert taken[-1] - taken[-9] == 8 * period


@pytest.mark.parametrize("case", SPREAD.values(), ids=SPREAD)
def test_a_frame_takes_its_beats_with_two_rows_of_memory(case):
    height, width, channels, factors = case
    row = width * channels * factors[0] * factors[1]
    taken, given = cycles([depth_to_space(*case, 2 * row).part], 4 * height * row)
    assert given[0] - taken[0] == parts.DepthToSpace.latency
    assert (np.diff(taken) == 1).all()
    assert (np.diff(given[height * row - 1 :: height * row]) == height * row).all()


def test_a_line_buffer_reads_a_word_per_cycle_when_memory_is_ample():
    window = Window(4, 4, 1, (2, 2), passes=4)
    part = parts.LineBuffer(
        window=window, bits=8, signed=False, lanes=1, pad_code=7, depth=64, ram=RAM
    )
    _, given = cycles([part], 5 * window.beats)
    assert (np.diff(given[window.passes :]) == window.pass_words).all()


@pytest.mark.parametrize(
    "part", ["Softmax", "PipelinedSoftmax", "TfliteSoftmax", "Normalize", "IntegerNormalize"]
)
def test_cycles_of_pixels(part):
    """From the last beat of the first one to its first result, and from pixel to pixel."""
    for example in PIXELS[part].values():
        part = example.part
        beats = part.channels // getattr(part, "lanes", 1)
        taken, given = cycles([part], 13 * beats)
        assert given[0] - taken[beats - 1] == part.latency
        starts = given[::beats]
        is_paired = isinstance(part, NormalizePart)
        period = part.frame_cycles(8) if is_paired else 8 * part.pixel_cycles
        assert starts[-1] - starts[-9] == period


@pytest.mark.parametrize("part", ["Requantizer", "TfliteRequantizer", "AverageRequantizer"])
def test_cycles_of_requantizers(part):
    for example in EXAMPLES[part].values():
        taken, given = cycles([example.part], 20)
        assert (given - taken == example.part.latency).all()
        assert (np.diff(taken) == example.part.interval).all()


@pytest.mark.parametrize("ram", [RAM, REGISTERED], ids=["plain", "registered"])
@pytest.mark.parametrize("name", ["same 3 x 3 twice", "whole image", "linear", "column"])
def test_latency_of_a_line_buffer_begins_with_the_beat_that_completes_a_window(name, ram):
    part = line_buffer(SERIAL[name], ram, early=True).part
    taken, given = cycles([part], part.window.beats)
    first = given[0] - (part.pass_words - 1)
    assert first - taken[completing(part.window)] == part.latency == 2 + ram.has_register


@pytest.mark.parametrize("name", ["same 3 x 3", "whole image", "one row", "two columns"])
def test_latency_of_a_parallel_one_does_likewise(name):
    part = EXAMPLES["ParallelLineBuffer"][name].part
    taken, given = cycles([part], part.window.beats)
    assert given[0] - taken[completing(part.window)] == part.latency


@pytest.mark.parametrize("ram", [RAM, REGISTERED], ids=["plain", "registered"])
def test_latency_of_a_banked_one_does_likewise(ram):
    part = banked(BANKED["pool"], ram).part
    taken, given = cycles([part], part.window.beats)
    # the beat that completes the first word is the first channel of the last pixel
    beat = completing(part.window) - part.window.channel_blocks + 1
    assert given[0] - taken[beat] == part.latency


def completing(window):
    """Beat that completes the first window."""
    (top, _), (left, _) = window.padding
    row = min(window.reach[0] - top, window.height) - 1
    column = min(window.reach[1] - left, window.width) - 1
    return (row * window.width + column + 1) * window.channel_blocks - 1


def test_latency_of_an_interpolation_begins_with_the_last_code():
    part = EXAMPLES["Interpolate"]["one pixel"].part
    taken, given = cycles([part], part.line)
    assert given[0] - taken[-1] == part.latency
    assert (np.diff(given) == part.interval).all()


@pytest.mark.parametrize("name", ["both", "rows only", "one code"])
def test_latency_of_what_leaves_at_once(name):
    part = EXAMPLES["Upsample"][name].part
    taken, given = cycles([part], 3 * part.height * part.width * part.channels)
    assert given[0] - taken[0] == part.latency
    assert (np.diff(given) == 1).all()
