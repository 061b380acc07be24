# amaranth: UnusedElaboratable=no
import re

import numpy as np
import pytest
from simulators import run_benches

from nnef_hw.hardware.devices import UP5K
from nnef_hw.hardware.geometry.blockram import BlockRam, Tiling, tile_memory
from nnef_hw.rtl.base.memory import SinglePortMemory, TiledMemory

# Shapes so small that a few words take several primitives.
TINY = BlockRam("tiny", ((4, 8), (8, 4), (16, 2)))
TINY_READ_TWICE = BlockRam("tiny", ((8, 4), (16, 2)), reads_twice=True)
SIZES = {
    "one_tile": (4, 8),
    "partial_tile": (3, 5),
    "side_by_side": (4, 20),
    "stacked": (37, 2),
    "grid": (35, 5),
    "one_word": (1, 3),
    "narrow": (16, 1),
}


@pytest.mark.parametrize(("depth", "width"), SIZES.values(), ids=SIZES)
@pytest.mark.parametrize("kind", ["read_only", "read_twice", "writable", "registered", "logic"])
def test_reads_what_was_written_its_latency_later(depth, width, kind, rng):
    words = rng.integers(0, 1 << width, depth).tolist()[: max(1, depth - 2)]
    twice = kind == "read_twice"
    memory = TiledMemory(
        tile_memory(TINY_READ_TWICE if twice else TINY, depth, width, constant=twice),
        words=words,
        writable=kind in {"writable", "registered"},
        registered=kind == "registered",
        style="logic" if kind == "logic" else "block",
    )
    assert memory.latency == 1 + (kind == "registered")
    model = words + [0] * (depth - len(words))

    async def bench(ctx):
        expected, before = None, 0
        for cycle in range(40 + 2 * depth):
            address = cycle if cycle < depth else int(rng.integers(depth))
            enable = int(cycle < depth or rng.random() < 0.7)
            ctx.set(memory.read_address, address)
            ctx.set(memory.read_enable, enable)
            before, expected = expected or 0, model[address] if enable else expected
            if memory.writable:
                target, value = int(rng.integers(depth)), int(rng.integers(1 << width))
                write = int(rng.random() < 0.6 and target != address)
                ctx.set(memory.write_address, target)
                ctx.set(memory.write_data, value)
                ctx.set(memory.write_enable, write)
                if write:
                    model[target] = value
            await ctx.tick()
            found = before if kind == "registered" else expected
            assert ctx.get(memory.read_data) == found

    run_benches(memory, bench)


@pytest.mark.parametrize(("depth", "width"), [(4, 8), (9, 8), (4, 24), (11, 24)])
def test_parts_of_words_are_written_alone(depth, width, rng):
    tiling = Tiling(depth, width, tile_depth=4, tile_width=8)
    memory = TiledMemory(tiling, writable=True, part_bits=4)
    parts = width // 4
    model = np.zeros((depth, parts), int)

    async def bench(ctx):
        for _ in range(120):
            address, target = map(int, rng.integers(0, depth, 2))
            value, enables = rng.integers(0, 16, parts), rng.integers(0, 2, parts)
            enables *= target != address
            ctx.set(memory.read_address, address)
            ctx.set(memory.read_enable, 1)
            ctx.set(memory.write_address, target)
            ctx.set(memory.write_data, sum(int(x) << 4 * n for n, x in enumerate(value)))
            ctx.set(memory.write_enable, sum(int(x) << n for n, x in enumerate(enables)))
            expected = sum(int(x) << 4 * n for n, x in enumerate(model[address]))
            model[target] = np.where(enables, value, model[target])
            await ctx.tick()
            assert ctx.get(memory.read_data) == expected

    run_benches(memory, bench)


def test_tiles_have_whole_parts():
    with pytest.raises(ValueError, match="no whole parts of 8 bits"):
        TiledMemory(Tiling(4, 24, 4, 12), writable=True, part_bits=8)


def test_constants_that_are_read_twice_take_half_of_the_primitives():
    once = tile_memory(TINY_READ_TWICE, 4, 20)
    twice = tile_memory(TINY_READ_TWICE, 4, 20, constant=True)
    assert (once.count, twice.count, twice.reads) == (5, 3, 2)
    # where the words fill it, a primitive has no room for halves behind each other
    assert tile_memory(TINY_READ_TWICE, 8, 4, constant=True).reads == 1
    with pytest.raises(ValueError, match="read at two addresses is read-only"):
        TiledMemory(twice, writable=True)


def test_logic_cannot_be_written():
    with pytest.raises(ValueError, match=re.escape("TiledMemory in logic is read-only")):
        TiledMemory(Tiling(4, 8, 4, 8), writable=True, style="logic")


def test_a_single_port_memory_has_one_block():
    message = "SinglePortMemory has at most 16384 words of 16 bits, not 16385 of 8"
    with pytest.raises(ValueError, match=message):
        SinglePortMemory(UP5K.single_port, depth=16385, width=8)


@pytest.mark.parametrize("depth", [1, 2, 255, 256, 257, 700, 2048, 2049])
@pytest.mark.parametrize("width", [1, 2, 4, 7, 16, 17, 33, 64])
def test_tiling_takes_the_fewest_primitives(depth, width, ram):
    tiling = tile_memory(ram, depth, width)
    counts = [-(-depth // d) * -(-width // w) for d, w in ram.shapes]
    assert tiling.count == min(counts)
    assert tiling.rows * tiling.columns == tiling.count
    assert tiling.rows * tiling.tile_depth >= depth
    assert tiling.columns * tiling.tile_width >= width
    equal = [-(-depth // d) for (d, _), n in zip(ram.shapes, counts, strict=True)
             if n == tiling.count]  # fmt: skip
    assert tiling.rows == min(equal)
