# amaranth: UnusedElaboratable=no
"""Weights come from where an array is told, and it reads them through one port."""

import numpy as np
import pytest
from simulators import run_benches

from nnef_hw import parts
from nnef_hw.rtl.arrays.weights import WeightRom
from nnef_hw.rtl.base.memory import TiledMemory
from nnef_hw.sim.pysim import run_stream

CODES = {"x_bits": 8, "x_signed": True, "w_bits": 8, "acc_bits": 24, "in_dsp": 0}


def systolic(ram, style="block"):
    return parts.SystolicArray(
        channels=5, words=3, lanes=2, rows=3, group_rows=2, kept_passes=1, weight_delay=0,
        weights=parts.WeightRom(ram=ram, style=style), **CODES,
    )  # fmt: skip


def test_words_have_the_rows_of_a_group_and_absent_rows_are_zero(ram):
    weights = np.arange(1, 31).reshape(5, 3, 2)
    first, second = systolic(ram).arranged(weights)
    for pass_, word in np.ndindex(2, 3):
        rows = [weights[n, word] if n < 5 else [0, 0] for n in range(3 * pass_, 3 * pass_ + 3)]
        assert first[3 * pass_ + word].tolist() == np.concatenate(rows[:2]).tolist()
        assert second[3 * pass_ + word].tolist() == list(rows[2])


def test_words_of_a_block_have_its_lanes_tap_by_tap(ram):
    part = parts.DepthwiseArray(
        channels=3, positions=3, lanes=2, taps=2, kept_passes=1, weight_delay=0, lut_ram=False,
        weights=parts.WeightRom(ram=ram), **CODES,
    )  # fmt: skip
    [words] = part.arranged(np.arange(1, 10).reshape(3, 3))
    assert words.tolist() == [[1, 4, 2, 5], [3, 6, 0, 0], [7, 0, 8, 0], [9, 0, 0, 0]]


@pytest.mark.parametrize("style", ["block", "logic"])
@pytest.mark.parametrize("bits", [1, 3, 8])
def test_a_rom_gives_the_codes_of_its_weights(bits, style, ram, rng):
    low = -(1 << bits - 1)
    weights = rng.integers(low, -low, (20, 3)) if bits > 1 else 1 - 2 * rng.integers(0, 2, (20, 3))
    [rom] = parts.WeightRom(ram=ram, style=style).build([weights], bits)
    found = []

    async def bench(ctx):
        ctx.set(rom.read_enable, 1)
        for address in range(len(weights)):
            ctx.set(rom.read_address, address)
            await ctx.tick()
            found.append(ctx.get(rom.read_data))

    run_benches(rom, bench)
    codes = weights < 0 if bits == 1 else weights % (1 << bits)
    assert found == [sum(int(code) << n * bits for n, code in enumerate(row)) for row in codes]


def test_one_bit_holds_no_weight_of_zero(ram):
    with pytest.raises(ValueError, match="one bit cannot hold a weight of 0"):
        WeightRom(parts.WeightRom(ram=ram), weights=np.zeros((4, 2), int), bits=1)


def test_an_array_takes_weights_from_any_memory_that_has_the_read_port(ram, rng):
    part = systolic(ram)
    weights, codes = rng.integers(-128, 128, (5, 3, 2)), rng.integers(-128, 128, (4, 3, 2))
    memories = [
        TiledMemory(tiling, words=[sum(int(w) % 256 << 8 * n for n, w in enumerate(word))
                                   for word in words])
        for tiling, words in zip(part.weight_memories, part.arranged(weights), strict=True)
    ]  # fmt: skip
    array = part.component_class()(part, weights=memories)
    items = [
        {"data": row.tolist(), "last": n == 2, "end": False}
        for pixel in codes for _ in range(part.passes) for n, row in enumerate(pixel)
    ]  # fmt: skip
    sums = np.einsum("pwl,cwl->pc", codes, weights).reshape(-1)
    found = run_stream(array, items, expected=len(sums), rng=rng)
    assert [item.acc[0] for item in found] == sums.tolist()
