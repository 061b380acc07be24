# amaranth: UnusedElaboratable=no
"""A line of text for every event of a network: the sums of its classes, lines, options."""

import json
import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from amaranth.hdl import signed
from output_streams import Port, beats, give
from simulators import run_benches
from sweeps import few

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.hardware.events.best_mean import BestMean
from nnef_hw.boards.hardware.events.event_text import EventText
from nnef_hw.boards.interfaces import Occurrence, Result, UartText, find_sink, sink_of
from nnef_hw.boards.interfaces.events import sums_of
from nnef_hw.errors import TargetError, UsageError

S8 = QType(8, signed=True, scale=1 / 256, zero_point=-128)
PINS = {"text": 1}
CLK_HZ = 8_000
DIVIDER = 4


@pytest.mark.parametrize(("image", "lanes"), [((1, 1, 3), 1), ((1, 1, 5), 2), ((4, 1, 1), 2)])
@pytest.mark.parametrize("mean", [1, 3, 16])
def test_the_best_mean_is_that_of_the_model(image, lanes, mean, rng):
    classes = image[0] * image[2]
    frames = rng.integers(-128, 128, (40, classes))
    frames[5] = frames[5, 0]  # the first of several
    dut = BestMean(beats(signed(8), lanes), classes=classes, channels=image[2], mean=mean)
    found = []

    async def watch(ctx):
        ctx.set(dut.o.ready, 1)
        async for _, _, valid, payload in ctx.tick().sample(dut.o.valid, dut.o.payload):
            if valid:
                found.append((payload.number, payload.total, payload.complete))

    async def bench(ctx):
        await give(ctx, dut, frames, Port(image, lanes))
        await ctx.tick().repeat(3)

    run_benches(dut, bench, watching=[watch], period=1 / CLK_HZ)
    sums = sums_of(frames, mean)
    best = sums.argmax(axis=1)
    assert found == [
        (number, sums[step, number], step >= mean - 1) for step, number in enumerate(best)
    ]


def lines_of(sink, frames, port, pause):
    """Return (second, rest) of every line that comes from the hardware."""
    dut = EventText(beats(signed(8), port.lanes), **sink.parameters(CLK_HZ))
    levels = []

    async def watch(ctx):
        async for _, _, level in ctx.tick().sample(dut.text):
            levels.append(level)

    async def bench(ctx):
        await give(ctx, dut, frames, port, pause)
        await ctx.tick().repeat(40 * 10 * DIVIDER)

    run_benches(dut, bench, watching=[watch], period=1 / CLK_HZ)
    text, at = "", 0
    while at < len(levels):
        if levels[at]:
            at += 1
            continue
        bits = [levels[at + DIVIDER * n + DIVIDER // 2] for n in range(10)]
        assert (bits[0], bits[9]) == (0, 1)
        text += chr(sum(bit << n for n, bit in enumerate(bits[1:9])))
        at += 10 * DIVIDER - 1
    assert not text or text.endswith("\n")
    return [tuple(line.split(" s ")) for line in text.splitlines()]


@pytest.mark.parametrize(("mean", "quiet"), few([(1, 1), (3, 2)], [(3, 2)]))
def test_lines_are_those_of_the_model(mean, quiet, rng):
    frames = rng.integers(-128, 60, (60, 3))
    for step, code in enumerate((127, -128, 0, 100, 77, 126)):
        frames[9 * step : 9 * step + mean + 1, step % 3] = code
    sink = UartText.of(
        Result("y", (3,), image=(1, 1, 3), qtype=S8), PINS, names="yes//no way", mean=mean,
        quiet=quiet, threshold=0.55, baud=CLK_HZ // DIVIDER,
    )  # fmt: skip
    events = sink.occurrences(frames, S8)
    assert {event.number for event in events} == {0, 2}
    pause = 1_500
    found = lines_of(sink, frames, Port((1, 1, 3), 1), pause)
    assert [rest for _, rest in found] == [sink.says(event) for event in events]
    for (time, _), event in zip(found, events, strict=True):
        assert re.fullmatch(r"(0|[1-9]\d*)\.\d\d", time)
        assert abs(float(time) - event.step * (pause + 4) / CLK_HZ) < 0.03


def test_no_event_is_lost_while_a_line_is_sent(rng):
    frames = np.full((8, 2), [100, -100])
    sink = UartText.of(
        Result("y", (2,), image=(1, 1, 2), qtype=S8), PINS, names="a/b", quiet=1,
        baud=CLK_HZ // DIVIDER,
    )  # fmt: skip
    events = sink.occurrences(frames, S8)
    assert [event.step for event in events] == [0, 2, 4, 6]
    found = lines_of(sink, frames, Port((1, 1, 2), 1), pause=0)
    assert [rest for _, rest in found] == ["a 0.89"] * 4


def test_scores_are_cut_and_whole_ones_are_not_less():
    sink = UartText.of(Result("y", (2,), qtype=S8), PINS, names="a/b", mean=2)
    says = {total: sink.says(Occurrence(1, 0, total, 0.0)) for total in range(-256, 255)}
    for total, text in says.items():
        exact = (total + 256) / 512
        assert 0 <= exact - float(text[2:]) < 0.01, total
    assert (says[-256], says[0], says[254]) == ("a 0.00", "a 0.50", "a 0.99")


def test_a_far_end_is_not_believed_that_lies_about_time():
    sink = UartText.of(Result("y", (2,), qtype=S8), PINS, names="a/b")

    def line(cycle, text):
        return cycle.to_bytes(8, "little") + len(text).to_bytes(8, "little") + text.encode()

    told = partial(sink.told, clk_hz=1_000.0)
    assert told(line(2_505, "2.50 s a 0.98")) == [(2_505, "a 0.98")]
    assert told(line(2_505, "2.51 s a 0.98")) == [(2_505, "2.51 s a 0.98")]
    assert told(line(2_605, "2.50 s a 0.98")) == [(2_605, "2.50 s a 0.98")]
    assert told(line(5, "?.50")) == [(5, "?.50")]


def test_options_are_read_and_kept():
    wish = find_sink("scores=uart_text:names=yes//no,threshold=0.9,mean=3,baud=9600")
    sink = UartText.of(Result("scores", (3,), qtype=S8), PINS, **dict(wish.options))
    assert sink.given == {
        "names": "yes//no", "threshold": 0.9, "mean": 3, "quiet": 32, "baud": 9600,
    }  # fmt: skip
    assert sink_of(json.loads(json.dumps(sink.to_json()))) == sink
    sink.check_clock(12_000_000)
    with pytest.raises(TargetError, match=r"sink uart_text: UART at 9600 baud needs a clock of"):
        sink.check_clock(30_000)
    assert UartText.of(Result("y", (2,)), PINS).names == ("0", "1")
    assert sink.far_end(1e6).path.is_file()
    assert Path(sink.far_end(1e6).path).name == "uart_text.h"


@pytest.mark.parametrize(
    ("shape", "options", "match"),
    [
        ((3,), {"names": "a/b"}, "'a/b' has 2 names, and there are 3 classes; put / between"),
        ((3,), {"names": "//"}, "'//' has 3 names"),
        ((2,), {"names": "ä/b"}, "the name 'ä' has other than printable ASCII"),
        ((2,), {"threshold": -0.1}, "a threshold of -0.1 allows scores below 0"),
        ((2,), {"mean": 17}, "mean=17 is not within 1 to 16 steps"),
        ((2,), {"quiet": 0}, "quiet=0 is no step"),
        ((2,), {"baud": 0}, "baud=0 is no rate"),
        ((2, 3), {}, r"it has several axes \(its shape is 2x3\)"),
    ],
)
def test_what_says_nothing_is_refused(shape, options, match):
    with pytest.raises((TargetError, UsageError), match=match):
        UartText.of(Result("y", shape, qtype=S8), PINS, **options)


def test_scores_that_are_no_short_numbers_are_refused():
    wide = QType(16, signed=True, scale=1e4, zero_point=0)
    with pytest.raises(TargetError, match=r"scores in steps of 10000 .*; end the network with a"):
        UartText.of(Result("y", (2,), qtype=wide), PINS)
