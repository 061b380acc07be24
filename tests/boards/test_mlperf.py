# amaranth: UnusedElaboratable=no
"""MLPerf Tiny's protocol: what a board answers to the lines that the runner sends."""

from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from output_streams import Wire, beats
from simulators import run_benches
from sweeps import few

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.mlperf.calculator import Calculator
from nnef_hw.boards.hardware.mlperf.core import RunnerCore
from nnef_hw.boards.hardware.mlperf.frames import FrameStore, ResultStore
from nnef_hw.boards.hardware.mlperf.microseconds import Microseconds
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.boards.interfaces import Border, Mlperf, Uart, find_link, link_of
from nnef_hw.codegen.board import may_follow
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import SampleError, TargetError, UsageError
from nnef_hw.host.benchmarks import BENCHMARKS, DistanceFormat
from nnef_hw.host.floats import FloatReading
from nnef_hw.host.link import LinkError
from nnef_hw.host.mlperf import RunnerHost
from nnef_hw.sim.board_runner import BoardTransport

CLK_HZ = 12_000_000
SOFTMAX = QType(8, signed=True, scale=1 / 256, zero_point=-128)
FEATURES = QType(8, signed=True, scale=0.5847029089927673, zero_point=83)
PIXELS = QType(8, signed=True, scale=1.0, zero_point=-128)
FRAME, CLASSES = 490, 12


class Tail(wiring.Component):
    """Gives the last codes of a frame, first ones first, after some cycles."""

    def __init__(self, cycles=50):
        self.cycles = cycles
        super().__init__({
            "i": In(stream.Signature(beats(signed(8)))),
            "o": Out(stream.Signature(beats(signed(8)))),
        })

    def elaborate(self, platform):
        m = Module()
        kept = Signal(8 * CLASSES)
        left, timer = Signal(range(CLASSES + 1)), Signal(range(self.cycles + 1))
        m.d.comb += [
            self.i.ready.eq((left == 0) & (timer == 0)),
            self.o.valid.eq((left != 0) & (timer == 0)),
            self.o.p.data[0].eq(kept[:8]),
            self.o.p.last.eq(left == 1),
        ]
        with m.If(timer != 0):
            m.d.sync += timer.eq(timer - 1)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += kept.eq(Cat(kept[8:], self.i.p.data[0]))
            with m.If(self.i.p.last):
                m.d.sync += [left.eq(CLASSES), timer.eq(self.cycles)]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [left.eq(left - 1), kept.eq(kept[8:])]
        return m


def bound(
    source=FEATURES, sink=SOFTMAX, *, image=(49, 10, 1), classes=CLASSES, shape=None, **options
):
    link = Mlperf(baud=1_000_000, **options)
    shape = shape or (image[2], *image[:2])
    return link.bound(
        {"x": Border("x", source, image, shape)},
        {"y": Border("y", sink, (1, 1, classes), (classes,))},
    )


@pytest.fixture(scope="module")
def verilog():
    top, ports = board_top(
        find_board("icebreaker"), Tail(), 12.0, link=bound(), frames={"i": FRAME, "o": CLASSES}
    )
    return to_verilog(top, name="board_top", ports=ports)


@pytest.fixture
def board(verilog):
    with BoardTransport(verilog, clk_hz=CLK_HZ, link=bound()) as transport:
        yield transport


@pytest.fixture
def host(board):
    host = RunnerHost(board, 0.05)
    mode, lap, done = host.answer()
    assert (mode, done) == ("m-timestamp-mode-performance", "m-init-done")
    assert lap.startswith("m-lap-us-")
    return host


def scores_of(frame):
    return tuple(float(f"{(int(code) + 128) / 256:.3f}") for code in frame[-CLASSES:].view(np.int8))


@pytest.mark.system
@pytest.mark.verilator
class TestAnswers:
    def test_who_it_is(self, host):
        assert host.ask("name") == ["m-name-dut-[nnef-hw]"]
        assert host.ask("profile") == [
            "m-profile-[ULPMark for tinyML Firmware V0.0.1]",
            "m-model-[kws01]",
        ]
        assert host.model() == "kws01"
        assert host.ask("") == host.ask("  ") == []

    def test_host_drops_what_the_board_said_before(self, board):
        host = RunnerHost(board, 0.05)
        board.advance(CLK_HZ // 100)
        assert host.greet() == "nnef-hw"
        assert host.model() == "kws01"

    def test_inferences(self, host, rng):
        for frame in rng.integers(0, 256, (3, FRAME), np.uint8):
            assert host.ask(f"db load {FRAME}") == [f"m-[Expecting {FRAME} bytes]"]
            host.load(frame.tobytes())
            result = host.infer()
            assert result.scores == scores_of(frame)
            lines = host.ask("results")
            assert lines == [f"m-results-[{','.join(f'{x:.3f}' for x in result.scores)}]"]

    def test_lines_of_infer_are_those_of_the_reference(self, host, rng):
        host.load(rng.integers(0, 256, FRAME, np.uint8).tobytes())
        lines = host.ask("infer 20 5")
        assert lines[:3] == ["m-warmup-start-5", "m-warmup-done", "m-infer-start-20"]
        assert lines[3].startswith("m-lap-us-")
        assert lines[4].startswith("m-lap-us-")
        assert lines[5] == "m-infer-done"
        assert lines[6].startswith("m-results-[0.")
        assert len(lines) == 7
        assert host.ask("infer")[0:3:2] == ["m-warmup-start-10", "m-infer-start-1"]
        lines = host.ask("  infer   12 0 ")
        assert lines[0:3:2] == ["m-warmup-start-0", "m-infer-start-12"]
        assert host.ask("infer 3")[0:3:2] == ["m-warmup-start-10", "m-infer-start-3"]

    def test_time_is_that_of_the_inferences_alone(self, host, rng):
        host.load(rng.integers(0, 256, FRAME, np.uint8).tobytes())
        runs = 137
        cycles = FRAME + 50 + CLASSES
        microseconds = host.infer(runs, 3).microseconds
        assert runs * cycles / 12 <= microseconds <= runs * (cycles + 8) / 12 + 1

    def test_clock_goes_on_between_commands(self, host, board):
        def now():
            [line] = host.ask("timestamp")
            return int(line.removeprefix("m-lap-us-"))

        before, begin = now(), board.cycles
        board.advance(CLK_HZ // 100)
        passed = now() - before
        # it stands still while it is printed
        assert passed == pytest.approx((board.cycles - begin) / 12, abs=300)

    @pytest.mark.parametrize(
        ("command", "error"),
        [
            ("nonsense 1 2", "Unknown command: nonsense"),
            ("names", "Unknown command: names"),
            ("nam", "Unknown command: nam"),
            ("x" * 200, "Unknown command: " + "x" * 127),
            ("db", "Command 'db' requires a subcommand"),
            ("db load", "Command 'db load' requires the # of bytes"),
            ("db load 489", "The input has 490 bytes"),
            ("db load -1", "Not a number of 0 to 999999"),
            ("db load 1000490", "Not a number of 0 to 999999"),
            ("db print", "Unknown subcommand of db"),
            ("db 00", "Command 'db load' comes first"),
            ("infer 1 0", "The input of 490 bytes is not loaded"),
            ("results", "No inference has been made"),
        ],
    )
    def test_errors(self, host, board, command, error):
        board.write(command.encode() + b"%")
        with pytest.raises(LinkError, match="the board answers") as caught:
            host.answer(command)
        assert f"e-[{error}]" in str(caught.value)
        assert host.ask("name") == ["m-name-dut-[nnef-hw]"]

    @pytest.mark.parametrize("line", ["db 0", "db 0g", "db 00112"])
    def test_line_that_is_no_bytes_cancels_the_input(self, host, line):
        host.ask(f"db load {FRAME}")
        with pytest.raises(LinkError, match="Not an even number of hex digits: load again"):
            host.ask(line)
        with pytest.raises(LinkError, match="Command 'db load' comes first"):
            host.ask("db 00")

    def test_input_that_is_not_whole_is_not_run(self, host, rng):
        frame = rng.integers(0, 256, FRAME, np.uint8)
        host.load(frame.tobytes())
        host.ask(f"db load {FRAME}")
        host.ask("db " + "12" * 31)
        with pytest.raises(LinkError, match="The input of 490 bytes is not loaded"):
            host.ask("infer 1 0")
        with pytest.raises(LinkError, match="No inference has been made"):
            host.ask("results")
        host.load(frame.tobytes())
        with pytest.raises(LinkError, match="Inference iterations must be >0"):
            host.ask("infer 0")

    def test_upper_case_control_characters_and_more_than_needed(self, host, board, rng):
        frame = rng.integers(0, 256, FRAME, np.uint8)
        host.ask(f"\r\ndb  load   {FRAME}")
        text = frame.tobytes().hex().upper() + "99"
        for begin in range(0, len(text), 60):
            lines = host.ask(f"db {text[begin : begin + 60]}")
        assert lines == ["m-load-done"]
        assert host.infer().scores == scores_of(frame)


@pytest.mark.parametrize(("channels", "lanes"), [(3, 1), (3, 3), (3, 2), (5, 4), (4, 2)])
def test_frame_is_given_as_often_as_wanted(rng, channels, lanes):
    pixels = 6
    per_pixel = -(-channels // lanes)
    store = FrameStore(beats(signed(8), lanes), beats=pixels * per_pixel, channels=channels)
    codes = rng.integers(-128, 128, (pixels, channels))
    padded = np.pad(codes, ((0, 0), (0, per_pixel * lanes - channels)))
    expected = padded.reshape(-1, lanes).tolist()
    found, marks = [], []

    async def bench(ctx):
        for code in codes.ravel():
            ctx.set(store.code, int(code))
            ctx.set(store.store, 1)
            await ctx.tick()
            ctx.set(store.store, 0)
            while ctx.get(store.busy):
                await ctx.tick()
        assert ctx.get(store.complete)
        for ready in (1, 0.5):
            ctx.set(store.start, 1)
            await ctx.tick()
            ctx.set(store.start, 0)
            while not ctx.get(store.idle):
                ctx.set(store.o.ready, int(rng.random() < ready))
                if ctx.get(store.o.valid) and ctx.get(store.o.ready):
                    found.append([ctx.get(store.o.p.data[n]) for n in range(lanes)])
                    marks.append(ctx.get(store.o.p.last))
                await ctx.tick()

    run_benches(store, bench)
    assert found == expected * 2
    assert marks == ([0] * (len(expected) - 1) + [1]) * 2


@pytest.mark.parametrize(("codes", "lanes"), [(12, 1), (10, 4), (2, 2), (1, 1)])
def test_result_is_given_code_by_code(rng, codes, lanes):
    count = -(-codes // lanes)
    result = ResultStore(beats(signed(8), lanes), beats=count, codes=codes)
    frames = rng.integers(-128, 128, (2, count, lanes))
    found = []

    async def bench(ctx):
        for frame in frames:
            for n, beat in enumerate(frame):
                ctx.set(result.i.payload, {"data": beat.tolist(), "last": n == count - 1})
                ctx.set(result.i.valid, 1)
                assert ctx.get(result.ended) == (n == count - 1)
                await ctx.tick()
            ctx.set(result.i.valid, 0)
            for name in ("first", *["following"] * (codes - 1)):
                ctx.set(getattr(result, name), 1)
                await ctx.tick()
                ctx.set(getattr(result, name), 0)
                await ctx.tick()
                found.append((ctx.get(result.code), ctx.get(result.is_last)))

    run_benches(result, bench)
    expected = [int(code) & 0xFF for frame in frames for code in frame.ravel()[:codes]]
    assert [code for code, _ in found] == expected
    assert [last for _, last in found] == ([0] * (codes - 1) + [1]) * 2


@pytest.mark.parametrize(("ticks", "cycles"), [(1, 1), (1, 12), (4, 147), (2, 3)])
def test_microseconds(ticks, cycles):
    clock = Microseconds(digits=3, ticks=ticks, cycles=cycles)

    async def digits(ctx):
        ctx.set(clock.frozen, 1)
        found = 0
        for _ in range(3):
            found = 10 * found + ctx.get(clock.top)
            ctx.set(clock.turn, 1)
            await ctx.tick()
        ctx.set(clock.turn, 0)
        ctx.set(clock.frozen, 0)
        return found

    async def bench(ctx):
        total = 0
        for wait in (5, 100, 1000, 3000):
            await ctx.tick().repeat(wait)
            total += wait
            assert abs(await digits(ctx) - total * ticks // cycles) % 1000 <= 1

    run_benches(clock, bench)


class TestFormats:
    def test_features_of_the_benchmark_are_codes(self):
        table = bound().facts(CLK_HZ).formats.table
        assert [code & 0xFF for code in table] == list(range(256))

    def test_features_of_another_format_are_rounded(self):
        narrow = QType(5, signed=True, scale=8.0, zero_point=9)
        table = bound(narrow).facts(CLK_HZ).formats.table
        reals = FEATURES.dequantize(np.arange(256).astype(np.uint8).view(np.int8))
        assert list(table) == narrow.quantize(reals).tolist()
        assert len(set(table)) > 16

    @pytest.mark.parametrize("unit", [1.0, 1 / 255])
    def test_pixels_are_less_128(self, unit):
        form = replace(PIXELS, scale=unit)
        link = bound(form, image=(32, 32, 3), classes=10)
        assert list(link.facts(CLK_HZ).formats.table) == list(range(-128, 128))
        assert link.benchmark == "ic01"
        assert bound(form, image=(32, 32, 3), classes=10, benchmark="ic02").benchmark == "ic02"

    @pytest.mark.parametrize(
        ("form", "reason"),
        [
            (QType(8, signed=True, scale=1 / 127), "holds -1.00787 to 1, and pixels are 0 to 255"),
            (QType(8, signed=False, scale=0.5), "its format ends at 127.5, and pixels at 255"),
        ],
    )
    def test_pixels_that_a_format_cannot_hold(self, form, reason):
        with pytest.raises(TargetError, match=reason):
            bound(form, image=(32, 32, 3), classes=10)

    def test_file_of_a_sample(self, rng):
        link = bound(PIXELS, image=(32, 32, 3), classes=10)
        picture = rng.integers(0, 256, (3, 32, 32))
        file = link.subject.file(link.source, picture)
        assert file == picture.transpose(1, 2, 0).astype(np.uint8).tobytes()
        with pytest.raises(SampleError, match=r"the number 0\.5 is none of the 256"):
            link.subject.file(link.source, np.full((3, 32, 32), 0.5))
        features = rng.integers(-128, 128, (1, 49, 10)).astype(np.int8)
        real = np.float32(FEATURES.dequantize(features))
        assert bound().subject.file(bound().source, real) == features.tobytes()

    def test_order_of_pixels(self, rng):
        """A stream of one pixel has the tensor's order: that of a file if channels come last."""
        link = bound(PIXELS, image=(1, 1, 3072), classes=10, shape=(32, 32, 3))
        picture = rng.integers(0, 256, (32, 32, 3))
        assert link.subject.file(link.source, picture) == bytes(picture.astype(np.uint8))
        with pytest.raises(TargetError, match="1 x 1 x 3072 inputs"):
            bound(PIXELS, image=(1, 1, 3072), classes=10, shape=(3, 32, 32))

    def test_scores_have_three_places(self):
        digits = bound().facts(CLK_HZ).formats.digits
        assert len(digits) == 256
        assert [f"{digits[code & 0xFF]:04x}" for code in (-128, -127, 0, 127)] == [
            "0000",
            "0004",
            "0500",
            "0996",
        ]

    @pytest.mark.parametrize(
        ("sink", "reason"),
        [
            (
                QType(8, signed=True, scale=0.1),
                "takes scores of 0 to 1, and these are -12.8 to 12.7",
            ),
            (QType(8, signed=False, scale=0.1), "and these are 0 to 25.5"),
            (QType(16, signed=False, scale=2**-16), "its scores have 16 bits, and at most 10"),
        ],
    )
    def test_scores_that_cannot_be_printed(self, sink, reason):
        with pytest.raises(TargetError, match=reason):
            bound(sink=sink)

    def test_network_of_no_benchmark(self):
        with pytest.raises(TargetError, match="28 x 28 x 1 inputs and 12 outputs"):
            bound(image=(28, 28, 1))
        with pytest.raises(TargetError, match="is for the benchmarks vww01"):
            bound(benchmark="vww01")
        with pytest.raises(TargetError, match="the network has 1 and 2"):
            Mlperf().bound({"x": bound().source}, {"y": bound().sink, "z": bound().sink})

    def test_entry_of_the_manifest(self):
        assert link_of(bound().to_json()) == bound()
        assert link_of(Mlperf().to_json()) == Mlperf()

    def test_options(self):
        assert find_link("mlperf", benchmark="ic02", baud=None) == Mlperf(benchmark="ic02")
        with pytest.raises(UsageError, match="there is no benchmark 'ic03'"):
            Mlperf(benchmark="ic03")
        with pytest.raises(UsageError, match="--benchmark is for --link mlperf"):
            find_link("uart", benchmark="ic02")
        with pytest.raises(TargetError, match="counts microseconds"):
            Mlperf(baud=9600).check_clock(500_000)
        with pytest.raises(ValueError, match="not bound to a network"):
            Mlperf().facts(CLK_HZ)

    def test_names_are_unique(self):
        assert len({x.name for x in BENCHMARKS}) == len(BENCHMARKS)


def test_clock_is_known_before_routing():
    board = find_board("icebreaker")
    assert may_follow(board, Uart())
    assert not may_follow(board, Mlperf())


def test_core_refuses_what_the_protocol_lacks():
    given = {"clk_hz": CLK_HZ, "link": bound()}
    with pytest.raises(ValueError, match="nothing for sinks, layers"):
        RunnerCore(Tail(), frames={"i": FRAME, "o": CLASSES}, sinks={"o": [1]}, layers=3, **given)
    with pytest.raises(ValueError, match="one input and one output"):
        RunnerCore(Tail(), frames={"i_a": FRAME, "i_b": 1, "o": CLASSES}, **given)


WINDOW = QType(8, signed=True, scale=0.3910152316093445, zero_point=89)
"""The format of windows of sound that the published int8 network of ad01 has."""


def special_floats():
    """Return floats at the ends of what there is, and at those of codes."""
    steps = np.float32((np.arange(-128, 128) - 89.5) * np.float64(WINDOW.scale))
    beside = [np.nextafter(steps, np.float32(x)) for x in (-np.inf, np.inf)]
    tiny = np.float32([0.0, -0.0, 1e-45, -1e-45, 1.2e-38, -1.2e-38, 1e-9, -1e-9])
    half = np.float32(WINDOW.scale) / 2
    far = np.float32([half, -half, 127.99999, -127.99999, 60.0, -127.0])
    return np.concatenate([steps, *beside, tiny, far])


class TestFloats:
    READING = FloatReading.of(WINDOW)

    def test_codes_are_those_of_the_format(self, rng):
        numbers = np.concatenate([special_floats(), np.float32(rng.normal(-30, 40, 500))])
        numbers = numbers[np.abs(numbers) < 2**self.READING.integer]
        codes = self.READING.codes(numbers.astype("<f4").tobytes())
        assert codes.tolist() == WINDOW.quantize(numbers).tolist()
        assert len(set(codes)) > 200
        reals = np.array(self.READING.reals(numbers.tobytes())) / 2**self.READING.real_bits
        assert np.abs(reals - numbers).max() <= 2 ** -(self.READING.real_bits + 1)

    @pytest.mark.parametrize(
        "form",
        [
            QType(8, signed=True, scale=1 / 16),
            QType(6, signed=False, scale=0.1234567890123),
            QType(8, signed=True, scale=3.0, zero_point=-128),
        ],
    )
    def test_codes_of_other_formats(self, rng, form):
        reading = FloatReading.of(form)
        span = [float(form.dequantize(code)) for code in (form.lo, form.hi)]
        numbers = np.float32(rng.uniform(span[0] - 1, span[1] + 1, 300))
        assert reading.codes(numbers.tobytes()).tolist() == form.quantize(numbers).tolist()

    @pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 1e30, -4096.0])
    def test_out_of_range(self, number):
        assert self.READING.reals(np.float32([1.0, number]).tobytes()) is None

    @pytest.mark.parametrize(
        "form",
        few(
            [WINDOW, QType(8, signed=True, scale=1 / 16), QType(11, signed=True, scale=0.1)],
            [WINDOW, QType(8, signed=True, scale=1 / 16)],
        ),
    )
    def test_hardware_reads_what_the_model_does(self, rng, form):
        """A scale of few bits has steps between which there are finer numbers."""
        reading = FloatReading.of(form)
        steps = np.float32((np.arange(-2, 2) + 0.5) * form.scale)
        beside = np.concatenate([np.nextafter(steps, np.float32(x)) for x in (-9, 9)])
        many = np.float32(rng.normal(-30, 40, 4))
        wild = rng.integers(0, 1 << 32, 8, np.uint32).view(np.float32)
        numbers = np.concatenate([rng.choice(special_floats(), 12), many, wild, beside])
        calculator = Calculator(
            reading, DistanceFormat((0,) * 256, 1000, 7), count=len(numbers), digits=6
        )
        found = []

        async def bench(ctx):
            for number in numbers:
                await clear(ctx, calculator)
                found.append((await read(ctx, calculator, number), ctx.get(calculator.beyond)))

        run_benches(calculator, bench)
        mask = (1 << form.bits) - 1
        for number, (code, beyond) in zip(numbers, found, strict=True):
            reals = reading.reals(number.tobytes())
            assert beyond == (reals is None)
            if reals is not None:
                assert code == int(reading.codes(number.tobytes())[0]) & mask
                assert code == int(form.quantize(number)) & mask


def anomaly(sink=WINDOW):
    return bound(WINDOW, sink, image=(1, 1, 640), classes=640, shape=(640,))


class TestDistance:
    def test_it_is_the_mean_of_squares(self, rng):
        link = anomaly()
        window = np.float32(rng.normal(-30, 15, 640))
        codes = WINDOW.quantize(window + rng.normal(0, 4, 640))
        [found] = link.subject.results(*link.borders, window.tobytes(), codes)
        exact = np.mean((WINDOW.dequantize(codes) - window.astype(np.float64)) ** 2)
        assert found == pytest.approx(exact, abs=0.003)
        assert found > 10

    def test_results_that_are_errors(self):
        link = anomaly()
        far = np.full(640, 120.0, np.float32)
        with pytest.raises(SampleError, match="has more than three digits"):
            link.subject.results(*link.borders, far.tobytes(), np.full(640, -128))
        far[7] = 1e9
        with pytest.raises(SampleError, match="a number of the input is"):
            link.subject.results(*link.borders, far.tobytes(), np.full(640, -128))

    def test_outputs_that_cannot_be_compared(self):
        with pytest.raises(TargetError, match="and the input's range ends at 256"):
            anomaly(QType(8, signed=True, scale=5.0))
        with pytest.raises(TargetError, match="codes have 16 bits, and at most 10"):
            anomaly(QType(16, signed=True, scale=0.001))

    @pytest.mark.parametrize(
        ("kind", "unit"),
        few(
            [("near", 100_000), ("near", 1000), ("far", 1000), ("equal", 1000), ("largest", 1000)],
            [("near", 100_000), ("equal", 1000), ("largest", 1000)],
        ),
    )
    def test_hardware_finds_its_digits(self, rng, kind, unit):
        """With the larger unit the digits are those of the sum: no number may be wrong by one."""
        count, limit = 3, 30_000
        reading = FloatReading.of(WINDOW)
        beside = rng.permutation([-0.5, 0.498, 0.5])
        numbers = np.float32((rng.integers(-limit, limit, count) + beside) / 2**reading.real_bits)
        if kind == "largest":
            numbers[:] = -32767 / 2**reading.real_bits
        reals = np.array(reading.reals(numbers.tobytes()))
        table = rng.integers(-limit, limit, 256)
        codes = rng.permutation(256)[:count]
        if kind == "largest":
            table[:] = 32767
        elif kind != "far":
            table[codes] = reals + (rng.integers(-40, 40, count) if kind == "near" else 0)
        form = DistanceFormat(tuple(table.tolist()), unit, first=7)
        calculator = Calculator(reading, form, count=count, digits=6)
        total = 7 + sum(int(table[c] - x) ** 2 for c, x in zip(codes, reals, strict=True))
        runs = []

        async def bench(ctx):
            await clear(ctx, calculator)
            for number in numbers:
                await read(ctx, calculator, number)
            runs.extend([await measure(ctx, calculator, codes) for _ in range(2)])

        run_benches(calculator, bench)
        for digits, beyond in runs:
            assert beyond == (total >= 10 * unit)
            if not beyond:
                assert digits == [*map(int, f"{total * 100_000 // unit:06}")]
        assert (kind in {"far", "largest"}) == (total >= 10 * unit)


async def pulse(ctx, calculator, *names):
    """Raise inputs for a cycle."""
    for name in names:
        ctx.set(getattr(calculator, name), 1)
    await ctx.tick()
    for name in names:
        ctx.set(getattr(calculator, name), 0)


async def clear(ctx, calculator):
    """Forget numbers, as a load does before its first byte."""
    await pulse(ctx, calculator, "clear", "rewind")
    while ctx.get(calculator.busy):
        await ctx.tick()


async def read(ctx, calculator, number):
    """Give the bytes of a number; return its code."""
    codes = []
    for byte in number.tobytes():
        ctx.set(calculator.byte, byte)
        await pulse(ctx, calculator, "store")
        cycles = 0
        while ctx.get(calculator.busy):
            if ctx.get(calculator.done):
                codes.append(ctx.get(calculator.code))
            await ctx.tick()
            cycles += 1
        assert 0 < cycles <= calculator.latency
    [code] = codes
    return code


async def measure(ctx, calculator, codes):
    """Give the codes of a result; return the digits of its distance, and if it has too many."""
    digits, place, cycles = [], 0, 0
    ctx.set(calculator.result, int(codes[0]))
    ctx.set(calculator.is_last, int(len(codes) == 1))
    await pulse(ctx, calculator, "start", "rewind")
    while ctx.get(calculator.busy):
        follows = ctx.get(calculator.following)
        if ctx.get(calculator.push):
            digits.append(ctx.get(calculator.digit))
        await ctx.tick()
        cycles += 1
        if follows:
            place += 1
            await ctx.tick()
            ctx.set(calculator.result, int(codes[place]))
            ctx.set(calculator.is_last, int(place == len(codes) - 1))
    assert 0 < cycles <= calculator.latency
    return digits, ctx.get(calculator.beyond)


@pytest.mark.system
@pytest.mark.verilator
def test_anomalies_end_to_end(rng):
    link = anomaly(replace(WINDOW, zero_point=80))
    top, ports = board_top(
        find_board("icebreaker"),
        Wire(beats(signed(8))),
        12.0,
        link=link,
        frames={"i": 640, "o": 640},
    )
    verilog = to_verilog(top, name="board_top", ports=ports)
    with BoardTransport(verilog, clk_hz=CLK_HZ, link=link) as board:
        host = RunnerHost(board, 0.2)
        host.answer()
        for _ in range(3):
            window = np.float32(rng.normal(-30, 15, 640))
            host.load(window.tobytes())
            expected = link.subject.results(
                *link.borders, window.tobytes(), WINDOW.quantize(window)
            )
            assert host.infer(2, 1).scores == expected
            assert expected[0] > 5
        window[3] = 1e9
        host.load(window.tobytes())
        with pytest.raises(LinkError, match="the input, or the result, is out of range"):
            host.infer()
        window[3] = 0
        host.load(window.tobytes())
        assert host.infer().scores
