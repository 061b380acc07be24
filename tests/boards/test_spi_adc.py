# amaranth: UnusedElaboratable=no
"""A converter of 12 bits with SPI: its wires, its samples, and what is lost."""

import json

import pytest
from simulators import run_benches

from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.microphones.spi_adc import SpiAdcReceiver
from nnef_hw.boards.interfaces import Mcp3201, SpiAdc, source_of
from nnef_hw.errors import TargetError
from nnef_hw.rtl.streams.stream import beat_layout

LAYOUT = beat_layout(bits=16, signed=True, lanes=1)


def transfer(leading, code):
    """The bits of a transfer, as the data sheets have them."""
    bits = [0] * leading + [code >> n & 1 for n in reversed(range(12))]
    return [*bits, code >> 1 & 1, 1, 1][:18]


def receive(codes, leading, *, edges=1, cycles=4, frame=3, ready=1):
    """Return what comes out: (cycle, sample, last), clocks of each transfer, what was lost."""
    receiver = SpiAdcReceiver(LAYOUT, edges=edges, cycles=cycles, leading=leading, frame=frame)
    found, counts, lost = [], [], 0

    async def drive(ctx):
        nonlocal lost
        waiting, bits, before = list(codes), [], (1, 0)
        for cycle in range(int((len(codes) + 2) * receiver.sample_cycles)):
            cs_n, sck = ctx.get(receiver.adc_cs_n), ctx.get(receiver.adc_sck)
            if before[0] and not cs_n:
                # while the clock is low, and before it rises
                assert not sck
                bits = transfer(leading, waiting.pop(0) if waiting else 0)
                counts.append(0)
            elif before[1] and not sck and not cs_n:
                bits.pop(0)
                counts[-1] += 1
            elif before[1] and not sck:
                counts[-1] += 1
            before = cs_n, sck
            ctx.set(receiver.adc_data, bits[0] if bits else 1)
            ctx.set(receiver.o.ready, ready)
            if ctx.get(receiver.o.valid) and ready:
                found.append((cycle, ctx.get(receiver.o.p.data[0]), ctx.get(receiver.o.p.last)))
            await ctx.tick()
        lost = ctx.get(receiver.lost)

    run_benches(receiver, drive, period=1e-8)
    return found, counts, lost, receiver


@pytest.mark.parametrize("leading", [SpiAdc.leading, Mcp3201.leading])
@pytest.mark.parametrize(("edges", "cycles"), [(1, 2), (1, 4), (32, 75)])
def test_takes_the_codes(leading, edges, cycles, rng):
    codes = [0, 4_095, 2_048, 2_047, *rng.integers(0, 4_096, 8).tolist()]
    found, counts, lost, receiver = receive(codes, leading, edges=edges, cycles=cycles)
    values = [sample for _, sample, _ in found]
    assert values[: len(codes)] == [16 * (code - 2_048) for code in codes]
    assert [last for *_, last in found[:6]] == [0, 0, 1] * 2
    assert set(counts[:-1]) == {16}
    assert lost == 0
    first, *_, end = (cycle for cycle, *_ in found)
    assert abs((end - first) / (len(found) - 1) - float(receiver.sample_cycles)) < 0.2


def test_what_does_not_fit_is_counted(rng):
    codes = rng.integers(0, 4_096, 262).tolist()
    found, _, lost, _ = receive(codes, 4, cycles=2, ready=0)
    assert found == []
    assert lost in {6, 7, 8}


@pytest.mark.parametrize("kind", [SpiAdc, Mcp3201])
def test_says_what_it_needs(kind):
    source = kind("audio", 16_000, 512)
    assert source.title == f"source {kind.name}"
    assert sorted(source.pins) == ["adc_cs_n", "adc_data", "adc_sck"]
    assert source.parameters(24_000_000) == {
        "edges": 16, "cycles": 375, "leading": kind.leading, "frame": 512,
    }  # fmt: skip
    assert source_of(json.loads(json.dumps(source.to_json()))) == source
    with pytest.raises(TargetError, match=r"SPI at 16,000 .* needs a clock of 2\.048 MHz, not 2;"):
        source.check_clock(2_000_000)
    samples = [-32_768, 32_767, 15, -1]
    assert source.played(samples).tolist() == [0, 4_095, 2_048, 2_047]
    assert source.heard(samples).tolist() == [-32_768, 32_752, 0, -16]
    with pytest.raises(ValueError, match="behind 0 to 4, not 5"):
        SpiAdcReceiver(LAYOUT, edges=1, cycles=4, leading=5, frame=1)
    for name in ("icebreaker", "tang_nano_20k", "ulx3s"):
        assert source.pins.keys() <= find_board(name).pins.keys()
