# amaranth: UnusedElaboratable=no
"""Where outputs go besides the host, and inputs come from: hardware, errors, whole boards."""

import json
import re
from dataclasses import replace

import golden_networks
import numpy as np
import pytest
from amaranth.hdl import Module, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from cli_cases import write_samples
from golden_digests import fixed_graph
from increment import Increment
from output_streams import Port, beats, give_beat
from simulators import run_benches
from sweeps import few
from switches import Switches

from nnef_hw.architectures import find_architecture
from nnef_hw.boards import find_board
from nnef_hw.boards.hardware.core import LinkedCore
from nnef_hw.boards.hardware.leds import ClassLeds
from nnef_hw.boards.hardware.memory_pins import memory_pins
from nnef_hw.boards.hardware.pins import plan_pins
from nnef_hw.boards.hardware.top import board_top
from nnef_hw.boards.interfaces import (
    SINKS,
    ClassOnLeds,
    Direction,
    PinUse,
    Result,
    SinkWish,
    Uart,
    find_sink,
    sink_of,
)
from nnef_hw.codegen.board import design_board
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.codegen.verilog import to_verilog
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.flow.sinks import bind_sinks
from nnef_hw.frontend import save
from nnef_hw.host.link import Host, LinkError, Timing
from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.streams import to_stream
from nnef_hw.place.constraints import board_constraints
from nnef_hw.rtl.streams.stream import Fifo
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import Device
from nnef_hw.run.memories import board_with_memories
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.testing import GraphBuilder

HASTY = Timing(silence=0.001, reply=0.002, stall=0.1, pause=20e-6)


def lit_leds(frames, port, shape, *, leds, is_index=False, classes=None):
    """Return what the LEDs show behind each frame of codes [N, ...], and after a reset."""
    classes = classes or frames[0].size
    layout = beats(shape, port.lanes)
    dut = ClassLeds(layout, classes=classes, leds=leds, is_index=is_index, channels=port.image[2])
    found = []

    async def bench(ctx):
        found.append(ctx.get(dut.leds))
        for frame in to_stream(frames, port):
            for n, beat in enumerate(frame):
                # fillers are the greatest codes here
                codes = [int(code) for code in beat]
                filled = n % -(-port.image[2] // port.lanes) * port.lanes
                for lane in range(port.lanes):
                    if filled + lane >= port.image[2]:
                        codes[lane] = 100
                await give_beat(ctx, dut, codes, n == len(frame) - 1)
                for _ in range(n % 3):
                    await ctx.tick()
            await ctx.tick()
            found.append(ctx.get(dut.leds))

    run_benches(dut, bench)
    return found


class TestClassLeds:
    """The component, against argmax."""

    @pytest.mark.parametrize(
        ("image", "lanes"),
        [((1, 1, 5), 1), ((1, 1, 5), 2), ((1, 1, 5), 5), ((1, 1, 5), 8), ((1, 5, 1), 1),
         ((5, 1, 1), 2), ((2, 1, 3), 1), ((2, 2, 3), 2), ((1, 3, 2), 2)],
        ids=str,
    )  # fmt: skip
    @pytest.mark.parametrize("span", [3, 128], ids=["ties", "wide"])
    def test_the_class_is_that_of_argmax(self, image, lanes, span, rng):
        """Signed codes, equal ones, beats with room, pixels in another order than their classes."""
        count = image[0] * image[1] * image[2]
        frames = rng.integers(-span, min(span, 99), (30, count))
        expected = frames.argmax(1)
        assert len(set(expected)) > 2
        binary = (count - 1).bit_length()
        port = Port(image, lanes)
        found = lit_leds(frames, port, signed(8), leds=binary)
        assert found == [0, *expected.tolist()]
        assert lit_leds(frames[:9], port, signed(8), leds=count) == [
            0, *(1 << expected[:9]).tolist(),
        ]  # fmt: skip

    def test_the_number_of_a_class_is_shown(self, rng):
        frames = rng.integers(0, 5, (20, 1))
        for lanes in (1, 3):
            port = Port((1, 1, 1), lanes)
            found = lit_leds(frames, port, 8, leds=3, is_index=True, classes=5)
            assert found == [0, *frames[:, 0].tolist()]

    def test_misuse_is_refused(self):
        layout = beats(8)
        with pytest.raises(ValueError, match="3 LEDs cannot show 10 classes"):
            ClassLeds(layout, classes=10, leds=3, is_index=False, channels=10)
        with pytest.raises(ValueError, match="10 classes are not pixels of 4 channels"):
            ClassLeds(layout, classes=10, leds=4, is_index=False, channels=4)


class TestClassOnLeds:
    """What the sink says before there is hardware."""

    @pytest.mark.parametrize(
        ("classes", "available", "leds"),
        [(2, 1, 1), (2, 2, 2), (3, 2, 2), (3, 3, 3), (10, 8, 4), (8, 8, 8), (256, 8, 8)],
    )
    def test_one_led_for_each_class_or_their_number(self, classes, available, leds):
        sink = ClassOnLeds.of(Result("y", (classes,)), {"leds": available})
        assert sink.leds == leds
        assert sink.pins == {"leds": PinUse(Direction.OUTPUT, leds)}
        assert sink_of(json.loads(json.dumps(sink.to_json()))) == sink

    @pytest.mark.parametrize(
        ("shape", "match"),
        [
            ((10,), "output 'y': its 10 classes need 4 LEDs in binary, and the board has 2; take"),
            ((1, 1), r"one score, not several \(its shape is 1x1\); name an output with a score"),
            ((3, 4, 4), r"it has several axes \(its shape is 3x4x4\)"),
        ],
    )
    def test_what_cannot_be_shown_is_refused(self, shape, match):
        with pytest.raises(TargetError, match=match):
            ClassOnLeds.of(Result("y", shape), {"leds": 2})

    def test_wishes(self):
        assert find_sink("led") == SinkWish(ClassOnLeds)
        assert find_sink("a=b=led") == SinkWish(ClassOnLeds, "a=b")
        assert [sink.name for sink in SINKS] == ["led", "pin", "event_led", "uart_text"]
        with pytest.raises(
            UsageError, match="there is no sink 'lamp'; use --sink led or pin or event_led or"
        ):
            find_sink("scores=lamp")
        with pytest.raises(UsageError, match="has a sink 'lamp', which is not known"):
            sink_of({"kind": "lamp"})


@pytest.mark.system
class TestBuilds:
    """The command line, and whole boards."""

    def test_errors(self, cli, tiny, tmp_path):
        model = tiny / "tiny.nnef.tgz"
        for arguments, match in (
            (
                ("colorlight_5a_75b", "--sink", "led"),
                "board 'colorlight_5a_75b' has no pin leds, which the sink led needs; .*free on it",
            ),
            (
                ("tinyfpga_bx", "--sink", "led"),
                "4 classes need 2 LEDs in binary, and the board has",
            ),
            (("none", "--device", "up5k", "--sink", "led"), "the sink led needs a board; omit it"),
            (("icebreaker", "--sink", "lamp"), "there is no sink 'lamp'; use --sink led"),
            (("icebreaker", "--sink", "x=led"), "has no output 'x' for the sink led; its outputs"),
            (
                ("icebreaker", "--sink", "led", "--sink", "led"),
                "sink led and sink led both need the pin 'leds'; omit one",
            ),
        ):
            result = cli("build", model, "--out", "out", "--board", *arguments)
            assert (result.status, result.out) == (2, ""), arguments
            assert re.search(match, result.err), result.err
            assert not (tmp_path / "out").exists()
        assert "--sink [OUTPUT=]NAME" in cli("build", "--help").out

    @pytest.mark.verilator
    @pytest.mark.parametrize(
        ("board", "leds", "status"),
        # the board in a file is like an ULX3S
        few(
            [("icebreaker", 2, False), ("ulx3s_85f", 4, False), ("./board.py", 4, True)],
            [("icebreaker", 2, False), ("./board.py", 4, True)],
        ),
    )
    def test_leds_show_the_class_and_the_host_gets_its_results(
        self, board, leds, status, cli, tiny, tmp_path, rng
    ):
        """In binary, or one for each class; those of an iCEBreaker are lit by a low level."""
        net = GraphBuilder("four")
        x = net.reshape(net.input("image", [1, 1, 6, 6]), [1, 36])
        save(
            net.build(net.op("linear", x, rng.normal(size=(4, 36)), 0.0)),
            tmp_path / "four.nnef.tgz",
        )
        cli("new", "board.py", "--like", "ulx3s_85f")
        path = tmp_path / "board.py"
        leds_of_it = "'leds': ('led:1', 'led:2', 'led:3', 'led:4'), 'other': ("
        path.write_text(path.read_text().replace("'leds': (", leds_of_it, 1))
        result = cli(
            "build", "four.nnef.tgz", "--board", board, "--sink", "led", "--calibrate",
            tiny / "bare.npz", "--frames", 3, "--no-bitstream", "--out", "out",
        )  # fmt: skip
        assert result.status == 0, result.err
        out = tmp_path / "out"
        [entry] = json.loads((out / "manifest.json").read_text())["sinks"]
        sink = sink_of(entry)
        assert (entry["kind"], sink.leds, sink.classes) == ("led", leds, 4)
        constraints = next((out / "board").glob("board_top.[pl]*f")).read_text()
        pins = re.findall(r"\bleds\[\d\]", constraints)
        assert sorted(set(pins)) == [f"leds[{n}]" for n in range(leds)]
        assert (re.search(r"\bled\b", constraints) is not None) == status
        shown, classes = self.run(out, tiny, sink, find_board(board))
        assert shown == [sink.shown(number) for number in classes]
        assert len(set(shown)) > 2

    @pytest.mark.verilator
    def test_one_of_several_outputs(self, make_ports, cli, tmp_path):
        result = cli(*make_ports, "--sink", "led")
        assert result.status == 2
        assert re.search(
            r"the network has 2 outputs \(scores, out\): which one is for the sink led is not "
            r"clear; write --sink scores=led",
            result.err,
        )
        result = cli(*make_ports, "--sink", "out=led")
        assert "output 'out': it has several axes (its shape is 1x5x5)" in result.err
        result = cli(*make_ports, "--sink", "scores=led")
        assert result.status == 0, result.err
        folder = BuildFolder.open(tmp_path / "out")
        [entry] = folder.manifest["sinks"]
        assert (entry["output"], entry["classes"]) == ("scores", 3)

    @pytest.mark.verilator
    def test_the_number_of_a_class(self, cli, tiny, tmp_path, rng):
        net = GraphBuilder("choice")
        x = net.input("image", [1, 1, 6, 6])
        y = net.conv(x, rng.normal(size=(5, 1, 6, 6)), rng.normal(size=(1, 5)))
        winner = net.op("argmax_reduce", y, axes=[1])
        save(net.build(net.reshape(winner, [1])), tmp_path / "choice.nnef.tgz")
        result = cli(
            "build", "choice.nnef.tgz", "--board", "icebreaker", "--sink", "led", "--calibrate",
            tiny / "bare.npz", "--frames", 3, "--no-bitstream", "--out", "out",
        )  # fmt: skip
        assert result.status == 2
        assert "its 5 classes need 3 LEDs in binary, and the board has 2" in result.err
        result = cli(
            "build", "choice.nnef.tgz", "--board", "upduino_v3", "--sink", "led", "--calibrate",
            tiny / "bare.npz", "--frames", 3, "--no-bitstream", "--out", "out",
        )  # fmt: skip
        assert result.status == 0, result.err
        sink = sink_of(BuildFolder.open(tmp_path / "out").manifest["sinks"][0])
        assert (sink.is_index, sink.leds, sink.classes) == (True, 3, 5)
        shown, classes = self.run(tmp_path / "out", tiny, sink, find_board("upduino_v3"), int)
        assert shown == classes
        assert len(set(shown)) > 1

    @pytest.fixture
    def make_ports(self, tmp_path, rng):
        """Return the arguments that build a network with two outputs."""
        net = GraphBuilder("ports")
        image = net.input("image", [1, 1, 5, 5])
        out = net.op("relu", net.conv(image, rng.normal(size=(1, 1, 3, 3)), padding=1), name="out")
        flat = net.reshape(net.pool("max_pool", out, 2, stride=2), [1, 4])
        scores = net.op("linear", flat, rng.normal(size=(3, 4)), 0.0, name="scores")
        save(net.build(scores, out), tmp_path / "ports.nnef.tgz")
        samples = write_samples(tmp_path / "samples.npz", [1, 5, 5])
        return (
            "build", "ports.nnef.tgz", "--board", "icesugar", "--calibrate", samples,
            "--frames", 3, "--no-bitstream", "--out", "out",
        )  # fmt: skip

    def run(self, out, tiny, sink, board, number=np.argmax):
        """Return what the LEDs show behind each frame, and the classes that the host finds."""
        manifest = read_manifest(out)
        verilog = (out / "board" / "board_top.v").read_text()
        core_hz, own = round(manifest.clock_mhz * 1e6), manifest.oscillator_mhz
        clk_hz = core_hz if own is None else round(own * 1e6)
        inverted = plan_pins(board, (Uart(), sink)).inverted("leds")
        shown, classes, now = [], [], 0
        with (
            np.load(tiny / "samples.npz") as samples,
            BoardTransport(
                verilog, clk_hz=clk_hz, core_hz=None if own is None else core_hz, others=[sink]
            ) as transport,
        ):
            device = Device(manifest, transport, HASTY)
            for image in samples["inputs"][:12]:
                [scores] = device.run(image[np.newaxis]).values()
                transport.advance(1000)
                events = sink.seen(transport.received())
                now = events[-1][1] if events else now
                shown.append(now ^ inverted)
                classes.append(int(number(scores.squeeze())))
        return shown, classes


@pytest.mark.system
class TestMemories:
    """LEDs on a top that has pads of a memory, too."""

    def test_they_are_ports_of_the_top_and_of_its_simulation(self, tmp_path):
        board = find_board("icebreaker")
        places = tuple(f"@{site}" for site in (27, 25, 21, 23, 20, 26))
        board = replace(board, pins={**board.pins, "leds": places})
        fixed = fixed_graph(golden_networks.wide)
        plan = find_architecture("engine").plan(fixed, board)
        sinks = bind_sinks([find_sink("led")], fixed, board, plan.outputs)
        manifest = make_manifest(fixed, plan, generator="test", link=Uart(), sinks=sinks)
        design = design_board(plan, fixed, manifest, board)
        assert "\n    output [5:0] leds,\n    output led,\n" in design.verilog
        assert "set_io leds[5] 26" in design.constraints.splitlines()
        text, top = board_with_memories(design.verilog, plan, tmp_path / "memory.hex")
        [head] = re.findall(rf"^module {top} \((.*)\);$", text, re.MULTILINE)
        assert head == "input clk, input rx, output tx, output [5:0] leds, output led"

    def test_a_pin_of_the_memory_is_refused(self):
        board = find_board("icebreaker")
        board = replace(board, pins={**board.pins, "leds": ("@27", "@14")})
        users = (Uart(), ClassOnLeds.of(Result("y", (4,)), {"leds": 2}))
        with pytest.raises(TargetError, match=r"leds\[1\] and flash_dq\[0\] are both pin 14"):
            board_constraints(board, users, memory_pins(board, board.spi_flash))


class Sum(wiring.Component):
    """Adds beats of two inputs, the second of which may wait inside."""

    def __init__(self):
        layout = beats(8)
        super().__init__({
            "i_x": In(stream.Signature(layout)),
            "i_y": In(stream.Signature(layout)),
            "o": Out(stream.Signature(layout)),
        })

    def elaborate(self, platform):
        m = Module()
        m.submodules.waiting = waiting = Fifo(self.i_y.payload.shape())
        wiring.connect(m, wiring.flipped(self.i_y), waiting.i)
        y = waiting.o
        m.d.comb += [
            self.o.p.data[0].eq(self.i_x.p.data[0] + y.p.data[0]),
            self.o.p.last.eq(self.i_x.p.last),
            self.o.valid.eq(self.i_x.valid & y.valid),
            self.i_x.ready.eq(self.o.valid & self.o.ready),
            y.ready.eq(self.o.valid & self.o.ready),
        ]
        return m


@pytest.mark.verilator
class TestSources:
    """A source of a test's own, on a board's top in simulation."""

    BEATS = 6

    @pytest.fixture(params=["icebreaker", "tang_nano_20k"])
    def board(self, request):
        board = find_board(request.param)
        places = tuple(f"@{site}" for site in (3, 48, 46, 44, 31, 42, 36, 32))
        return replace(board, pins={**board.pins, "switches": places}, clock_mhz=board.input_mhz)

    def power_on(self, board, accelerator, frames, inputs, pause=0):
        """Return the simulated board, whose inputs of these names come from switches."""
        source = Switches(self.BEATS, pause)
        top, ports = board_top(
            board, accelerator, sources=dict.fromkeys(inputs, source), frames=frames
        )
        verilog = to_verilog(top, name="board_top", ports=ports)
        clk_hz = round(1e6 * board.clock_mhz)
        return BoardTransport(verilog, clk_hz=clk_hz, others=[source])

    def test_an_input_that_is_not_the_hosts(self, board):
        """The host sends the other one, and replays both while the source gives nothing."""
        frames = dict.fromkeys(("i_x", "i_y", "o"), self.BEATS)
        with self.power_on(board, Sum(), frames, ["i_y"], 20_000) as transport:
            host = Host(transport, HASTY)
            assert host.open(bytes(32)).in_bytes == 1
            sent = [bytes(range(n, n + self.BEATS)) for n in range(0, 100, 7)]
            expected = [bytes((0x30 + n + x) % 256 for n, x in enumerate(frame)) for frame in sent]
            assert list(host.infer(sent, self.BEATS)) == expected
            assert host.counters().frames == len(sent)
            host.abort()
            assert host.replay(500)
            host.wait_for_replay()
            assert host.counters().interval == self.BEATS
            # now the source's next frame comes in the midst of it, and waits
            host.abort()
            assert host.replay(5000)
            assert list(host.infer(sent, self.BEATS)) == expected

    def test_no_input_is_the_hosts(self, board):
        """It reads results, and may send nothing."""
        frames = {"i": self.BEATS, "o": self.BEATS}
        with self.power_on(board, Increment(), frames, ["i"]) as transport:
            host = Host(transport, HASTY)
            assert host.open(bytes(32)).in_bytes == 0
            read = b"".join(host.read() for _ in range(20))
            frame = bytes(0x31 + n for n in range(self.BEATS))
            assert len(read) > 100
            assert read == (frame * len(read))[: len(read)]
            with pytest.raises(LinkError, match="the board refuses DATA: type"):
                host.send(b"x")
            host.abort()
            assert host.read()[: self.BEATS] == frame[: len(host.read()) or self.BEATS]

    def test_its_pins_and_clock_are_checked(self, board):
        bare = find_board(board.name)
        source = Switches(self.BEATS)
        with pytest.raises(TargetError, match="has no pin switches, which the source switches"):
            board_top(bare, Increment(), sources={"i": source})
        fast = replace(board, clock_mhz=54.0)
        with pytest.raises(TargetError, match="switches cannot be read at 54000000 Hz"):
            board_top(fast, Increment(), sources={"i": source})

    def test_unknown_streams_are_refused(self):
        sources = {"x": Switches(self.BEATS)}
        with pytest.raises(ValueError, match=r"streams \['i', 'o'\] are not those of sources"):
            LinkedCore(Increment(), clk_hz=24e6, manifest_hash=bytes(32), sources=sources)
