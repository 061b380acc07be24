# amaranth: UnusedElaboratable=no
"""What an engine's feed writes, whatever its source says while it has no beat."""

from dataclasses import dataclass

import pytest
from engine_graphs import planned
from simulators import run_benches

from nnef_hw.boards import find_board
from nnef_hw.parts.engine.codes import Residents
from nnef_hw.parts.engine.program import BEAT_BITS
from nnef_hw.rtl.engine.feed import EngineFeed
from nnef_hw.testing import GraphBuilder


@dataclass(frozen=True)
class Packet:
    """Rows, constants and weights of an instruction, as lists of their beats, the lowest first."""

    row: list
    constant: list
    weight: list

    @classmethod
    def random(cls, rng, part):
        """Return one of any words; those of its weights have as many beats as it says."""

        def words(count, beats):
            return rng.integers(1 << BEAT_BITS, size=(count, beats)).tolist()

        def count(places, bits):
            """Return a number of words: few, or as many as there may be."""
            most = min(places, (1 << bits) - 1)
            return int(rng.integers(1, min(most, 8) + 1)) if rng.random() < 0.6 else most

        rows = words(part.layout.rows, part.layout.row_beats)
        if rng.random() < 0.2:
            # Nothing is computed.
            return cls(rows, [], [])
        weights = count(part.ring.words, part.layout.bits("weights")) if rng.random() < 0.8 else 0
        return cls(
            rows,
            words(count(part.pipeline.constants_ahead, part.count_bits), part.constant_beats),
            words(weights, int(rng.integers(1, part.weight_beats(part.array.rows) + 1))),
        )

    def beats(self, part):
        """Return the packet as it comes."""
        width = len(self.weight[0]) - 1 if self.weight else 0
        header = [len(self.constant) | width << part.count_bits, len(self.weight)]
        words = (*self.row, *self.constant, *self.weight)
        return header + [beat for word in words for beat in reversed(word)]


@pytest.mark.parametrize("board", ["ulx3s_85f", "icebreaker"])
def test_words_are_as_they_came(fix, rng, board):
    """Of packets that fill all memories more than once, with any payload between beats."""
    builder = GraphBuilder()
    x = builder.conv(builder.input("x", (1, 3, 4, 4)), rng.normal(size=(4, 3, 3, 3)), padding=1)
    builder.conv(x, rng.normal(size=(4, 4, 3, 3)))
    plan = planned(fix(builder.build()), 4, 4, ring_words=32, board=find_board(board))
    part = plan.design.engine
    assert not part.has(Residents)
    if board == "ulx3s_85f":
        assert any(memory.width > BEAT_BITS for memory in part.supply.weight_memories(part))
    feed = EngineFeed(part)
    packets = [Packet.random(rng, part) for _ in range(12)]

    async def source(ctx):
        for beat in (beat for packet in packets for beat in packet.beats(part)):
            while rng.random() < 0.3:
                ctx.set(feed.i.valid, 0)
                ctx.set(feed.i.payload, int(rng.integers(1 << BEAT_BITS)))
                await ctx.tick()
            ctx.set(feed.i.valid, 1)
            ctx.set(feed.i.payload, beat)
            await ctx.tick().until(feed.i.ready)
        ctx.set(feed.i.valid, 0)

    async def instructions(ctx):
        places = {"row": 0, "constant": 0, "weight": 0}
        depths = {
            "row": part.slots * part.layout.stride, "constant": part.supply.constants,
            "weight": part.ring.words,
        }  # fmt: skip
        for packet in packets:
            await ctx.tick().until(feed.has_all)
            assert ctx.get(feed.has_rows)
            # An instruction begins a cycle later, at the earliest; all that fits may have come.
            for _ in range(1 if rng.random() < 0.5 else 500):
                await ctx.tick()
            for name, place in places.items():
                words = getattr(packet, name)
                for n, word in enumerate(words):
                    ctx.set(getattr(feed, f"{name}_address"), (place + n) % depths[name])
                    for _ in range(part.pipeline.read_stage if name == "row" else 1):
                        await ctx.tick()
                    found = ctx.get(getattr(feed, name)) & ((1 << BEAT_BITS * len(word)) - 1)
                    assert [found >> BEAT_BITS * k & 0xFFFF for k in range(len(word))] == word
                taken = part.layout.stride if name == "row" else len(words)
                places[name] = (place + taken) % depths[name]
            ctx.set(feed.constants, len(packet.constant))
            ctx.set(feed.weights, len(packet.weight))
            ctx.set(feed.end, 1)
            await ctx.tick()
            ctx.set(feed.end, 0)
            await ctx.tick()

    run_benches(feed, source, instructions)
