# amaranth: UnusedElaboratable=no
"""The loop of a language model in hardware, on networks that are known."""

import numpy as np
import pytest
from amaranth.hdl import signed
from amaranth.sim import Simulator
from output_streams import beats, give_beat
from simulators import run_benches
from sweeps import covering

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.arithmetic.sampling import Xorshift, choose_code, sampling_weights
from nnef_hw.boards.hardware.tokens.chooser import TokenChooser
from nnef_hw.boards.hardware.tokens.writer import TextWriter
from nnef_hw.boards.interfaces import ChipLoop
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.host.chip_loop import text_bytes
from nnef_hw.host.streams import to_stream
from nnef_hw.host.tokens import Roles, TokenLoop

CODE = signed(5)
SCORES = QType(5, signed=True, scale=0.25)


class Port:
    """A stream of scores."""

    def __init__(self, tokens, channels, lanes):
        self.image, self.lanes = (1, tokens // channels, channels), lanes
        self.beats = tokens // channels * -(-channels // lanes)


async def until(ctx, condition, value):
    """Return a value in the first cycle in which a condition holds."""
    while True:
        _, _, holds, found = await ctx.tick().sample(condition, value)
        if holds:
            return found


def choose(frames, port, *, weights=None, seed=0, is_choice=False, tokens=None):
    """Return the tokens that are chosen by frames of scores [N, ...], all of which are wanted."""
    tokens = tokens or frames.shape[1]
    layout = beats(CODE, port.lanes)
    dut = TokenChooser(layout, tokens=tokens, channels=port.image[2], is_choice=is_choice)
    found, generator, rng = [], Xorshift(seed), np.random.default_rng(seed)

    async def bench(ctx):
        if not is_choice:
            for place, weight in enumerate(weights if weights is not None else ()):
                ctx.set(dut.store, 1)
                ctx.set(dut.place, place)
                ctx.set(dut.weight, int(weight))
                await ctx.tick()
            ctx.set(dut.store, 0)
            ctx.set(dut.sampled, weights is not None)
        ctx.set(dut.wanted, 1)
        for frame in to_stream(frames, port):
            for n, beat in enumerate(frame):
                codes = [int(code) for code in beat]
                filled = n % -(-port.image[2] // port.lanes) * port.lanes
                codes[max(0, port.image[2] - filled):] = [15] * max(
                    0, port.lanes - max(0, port.image[2] - filled))  # fmt: skip
                await give_beat(ctx, dut, codes, n == len(frame) - 1)
                for _ in range(rng.integers(3)):
                    await ctx.tick()
            if not is_choice:
                ctx.set(dut.random, generator.draw())
            for _ in range(rng.integers(60)):
                await ctx.tick()
            ctx.set(dut.o.ready, 1)
            [token] = await ctx.tick().sample(dut.o.payload).until(dut.o.valid)
            found.append(token)
            ctx.set(dut.o.ready, 0)

    run_benches(dut, bench)
    return found


class TestChooser:
    """The component, against the choice in integers."""

    @pytest.mark.parametrize(
        ("tokens", "channels", "lanes"),
        [(7, 7, 1), (7, 7, 3), (7, 7, 7), (7, 7, 8), (7, 1, 1), (5, 1, 2), (8, 8, 4), (2, 2, 1)],
        ids=str,
    )
    @pytest.mark.parametrize("span", [2, 16], ids=["ties", "wide"])
    def test_choices(self, tokens, channels, lanes, span, rng):
        """Beats with room, equal scores, and a seed for each case."""
        frames = rng.integers(-span, min(span, 15), (24, tokens))
        port = Port(tokens, channels, lanes)
        assert choose(frames, port) == [choose_code(x, None, Xorshift(0)) for x in frames]
        for temperature in (0.5, 20.0):
            weights = sampling_weights(SCORES.scale, temperature, 32)
            generator = Xorshift(tokens)
            wanted = [choose_code(x, weights, generator) for x in frames]
            assert choose(frames, port, weights=weights, seed=tokens) == wanted
        assert len(set(wanted)) > 1

    def test_a_choice_of_the_network_itself(self, rng):
        frames = rng.integers(0, 9, (12, 1))
        for lanes in (1, 2):
            found = choose(frames, Port(1, 1, lanes), is_choice=True, tokens=9)
            assert found == frames[:, 0].tolist()

    @pytest.mark.parametrize("tokens", [2, 9])
    def test_cycles(self, tokens):
        """A choice at random goes through the scores twice, the second time up to the token."""
        dut = TokenChooser(beats(CODE), tokens=tokens, channels=tokens)
        found = []

        async def bench(ctx):
            ctx.set(dut.weight, 1)
            ctx.set(dut.store, 1)
            await ctx.tick()
            ctx.set(dut.store, 0)
            for sampled, random in (
                (0, 0),
                *((1, n * (2**32 // tokens) + 9) for n in range(tokens)),
            ):
                ctx.set(dut.sampled, sampled)
                ctx.set(dut.random, random)
                ctx.set(dut.wanted, 1)
                ctx.set(dut.o.ready, 1)
                for n in range(tokens):
                    ctx.set(dut.i.payload, {"data": [0], "last": n == tokens - 1})
                    ctx.set(dut.i.valid, 1)
                    await until(ctx, dut.i.ready, dut.ended)
                ctx.set(dut.i.valid, 0)
                cycles = 1
                while not ctx.get(dut.o.valid):
                    cycles += 1
                    await ctx.tick()
                found.append((ctx.get(dut.o.payload), cycles))
                await ctx.tick()

        run_benches(dut, bench)
        assert found[0] == (0, dut.latency)
        assert found[1:] == [(n, dut.sampled_latency + n) for n in range(tokens)]

    def test_misuse_is_refused(self):
        with pytest.raises(ValueError, match="10 scores are not pixels of 4 channels"):
            TokenChooser(beats(8), tokens=10, channels=4)
        with pytest.raises(ValueError, match="8 scores lie in several pixels of 4 channels"):
            TokenChooser(beats(8), tokens=8, channels=4)


class Network:
    """Scores of every token at every place, by a table."""

    def __init__(self, rng, tokens, context, *, is_choice=False):
        self.tokens, self.context = tokens, context
        self.table = rng.integers(-16, 16, (tokens, max(1, context), tokens))
        if is_choice:
            self.table = rng.integers(0, tokens, (tokens, max(1, context), 1))
        self.roles = Roles(
            "t", "y", SCORES, tokens, position="p" if context else None, context=context,
            is_choice=is_choice,
        )  # fmt: skip
        self.seen = []

    def scores(self, token, position=0):
        self.seen.append((token, position))
        return self.table[token, position]

    def step(self, codes):
        return {
            "y": self.scores(*(int(codes[name].item()) for name in ("t", "p") if name in codes))
        }


def write(network, texts, *, lanes=1, stalls=4, unread=0):
    """Return the tokens that the hardware writes behind some texts, a session of them."""
    roles = network.roles
    codes = 1 if roles.is_choice else roles.tokens
    loop = ChipLoop.of(roles, (1, 1, codes))
    names = {"t": "i_t", "p": "i_p", "y": "o"}
    code = 5 if roles.is_choice else CODE
    layouts = {"i_t": beats(6), "i_p": beats(5), "o": beats(code, lanes)}
    dut = TextWriter(loop.named(names), layouts)
    port = Port(codes, codes, lanes)
    rng, found = np.random.default_rng(codes), []
    waiting = []

    async def pause(ctx):
        for _ in range(rng.integers(stalls)):
            await ctx.tick()

    async def host(ctx):
        for text in texts:
            for n, byte in enumerate(text):
                await pause(ctx)
                ctx.set(dut.i.payload, {"data": [byte], "last": n == len(text) - 1})
                ctx.set(dut.i.valid, 1)
                await until(ctx, dut.i.ready, dut.i.ready)
                ctx.set(dut.i.valid, 0)

    async def reader(ctx):
        while True:
            await pause(ctx)
            for _ in range(unread):
                await ctx.tick()
            ctx.set(dut.o.ready, 1)
            byte = await until(ctx, dut.o.valid, dut.o.payload)
            ctx.set(dut.o.ready, 0)
            found.append(byte)

    def taker(stream, fed):
        async def take(ctx):
            while True:
                await pause(ctx)
                ctx.set(stream.ready, 1)
                beat = await until(ctx, stream.valid, stream.payload)
                ctx.set(stream.ready, 0)
                assert beat.last
                fed.append(beat.data[0])

        return take

    async def computer(ctx):
        while True:
            while not all(waiting):
                await ctx.tick()
            frame = network.scores(*(fed.pop(0) for fed in waiting))
            for n, beat in enumerate(to_stream(frame[np.newaxis], port)[0]):
                await pause(ctx)
                ctx.set(dut.i_scores.payload, {"data": beat.tolist(), "last": n == port.beats - 1})
                ctx.set(dut.i_scores.valid, 1)
                await until(ctx, dut.i_scores.ready, dut.i_scores.ready)
                ctx.set(dut.i_scores.valid, 0)

    async def end(ctx):
        quiet = 0
        while quiet < 400:
            before = len(found)
            await ctx.tick()
            quiet = 0 if len(found) != before or ctx.get(dut.busy) else quiet + 1

    simulator = Simulator(dut)
    simulator.add_clock(1e-6)
    for stream in (dut.o_token, *([dut.o_position] if roles.position else [])):
        waiting.append([])
        simulator.add_testbench(taker(stream, waiting[-1]), background=True)
    for process in (reader, computer):
        simulator.add_testbench(process, background=True)
    simulator.add_testbench(host, background=True)
    simulator.add_testbench(end)
    simulator.run()
    assert len(found) % 2 == 0
    return [low + 256 * high for low, high in zip(found[::2], found[1::2], strict=True)]


class TestWriter:
    """The whole loop, against that of the host."""

    @pytest.mark.parametrize(
        ("tokens", "context", "lanes", "temperature", "stalls"),
        covering([(11, 20, 1, 0.0), (11, 20, 3, 3.0), (6, 0, 1, 8.0), (9, 0, 9, 0.0)], [1, 5]),
    )
    def test_texts_are_those_of_the_hosts_loop(
        self, tokens, context, lanes, temperature, stalls, rng
    ):
        """Prompts of several tokens, ends by number and by a token, and a seed that goes on."""
        network = Network(rng, tokens, context)
        texts, wanted, seen = [], [], []
        loop = TokenLoop(network.roles, network.step, temperature=temperature, seed=3)
        weights = sampling_weights(SCORES.scale, temperature, 32).tolist() if temperature else None
        for prompt, count, stop in (
            ([3], 9, None), ([1, 5, 2, 0], 12, None), ([4, 4], 16, 1), ([5] * 6, 1, None),
            ([2, 3, 1], 15, 2),
        ):  # fmt: skip
            state = loop._generator.state if temperature else 0
            texts.append(text_bytes(prompt, count, stop, state, weights))
            wanted += loop.generate(prompt, count, stop)
        seen, network.seen = network.seen, []
        assert write(network, texts, lanes=lanes, stalls=stalls) == wanted
        assert network.seen == seen

    def test_a_network_that_chooses_itself(self, rng):
        network = Network(rng, 13, 9, is_choice=True)
        wanted = list(TokenLoop(network.roles, network.step).generate([2, 7], 8))
        assert write(network, [text_bytes([2, 7], 8, None, 0, None)]) == wanted

    def test_texts_that_end_too_early_are_dropped(self, rng):
        """In the head, in the weights, in the midst of a token, without a token."""
        network = Network(rng, 11, 20)
        whole = text_bytes([1, 2], 4, None, 0, None)
        weights = sampling_weights(SCORES.scale, 2.0, 32).tolist()
        sampled = text_bytes([1, 2], 4, None, 77, weights)
        wanted = list(TokenLoop(network.roles, network.step).generate([1, 2], 4))
        short = [whole[:3], whole[:8], whole[:9], whole[:11], sampled[:8], sampled[:9],
                 sampled[:50], sampled[:72], sampled[:75]]  # fmt: skip
        for text in short:
            assert write(network, [text, whole]) == wanted, text

    def test_a_host_that_reads_late(self, rng):
        """The next text is there before the last token of the one before has left."""
        network = Network(rng, 11, 20)
        wanted, loop = [], TokenLoop(network.roles, network.step)
        for prompt in ([1, 2], [3], [4, 5]):
            wanted += loop.generate(prompt, 3)
        texts = [text_bytes(prompt, 3, None, 0, None) for prompt in ([1, 2], [3], [4, 5])]
        assert write(network, texts, stalls=1, unread=60) == wanted

    def test_the_place_stays_the_last_one(self, rng):
        """Hardware that is asked for more than the context does not begin anew."""
        network = Network(rng, 7, 4)
        found = write(network, [text_bytes([1], 9, None, 0, None)])
        assert len(found) == 9
        assert [place for _, place in network.seen] == [0, 1, 2, *[3] * 6]


class TestChipLoop:
    """Facts that are known before there is hardware."""

    def test_it_is_an_entry_of_the_manifest(self):
        roles = Roles("t", "y", SCORES, 11, position="p", context=20)
        loop = ChipLoop.of(roles, (1, 1, 11))
        assert ChipLoop.from_json(loop.to_json()) == loop
        assert loop.inputs == ("t", "p")

    @pytest.mark.parametrize(
        ("bits", "tokens", "image", "match"),
        [
            (16, 11, (1, 1, 11), "its scores have 16 bits, .*; give --set y.activation_bits=8, or"),
            (8, 70_000, (1, 1, 70_000), "there are 70,000 tokens, and the link has numbers for 65"),
            (8, 12, (1, 3, 4), "its scores are 3 pixels of 4 channels"),
        ],
    )
    def test_what_cannot_be_is_refused(self, bits, tokens, image, match):
        qtype = QType(bits, signed=True, scale=0.25)
        with pytest.raises(TargetError, match=match):
            ChipLoop.of(Roles("t", "y", qtype, tokens), image)

    def test_a_temperature_needs_scores(self, rng):
        network = Network(rng, 5, 0, is_choice=True)
        with pytest.raises(UsageError, match="is a token, not scores to choose from with a temp"):
            TokenLoop(network.roles, network.step, temperature=1.0)
