# amaranth: UnusedElaboratable=no
"""A pin that says what a network has found: component, options, and a board that hears a sound."""

import json
import re
import wave

import numpy as np
import pytest
from amaranth.hdl import signed
from audio import sounds
from output_streams import Port, beats
from simulators import run_benches
from sweeps import few

from nnef_hw.arithmetic.numerics import QType
from nnef_hw.boards.hardware.events.event_pin import EventOnPin
from nnef_hw.boards.interfaces import EventPin, Feed, I2s, Result, find_sink, sink_of, source_of
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.frontend import save
from nnef_hw.host.manifest import read_manifest
from nnef_hw.host.streams import to_stream
from nnef_hw.reference import run_fixed
from nnef_hw.run.artifacts import BuildFolder
from nnef_hw.run.device import Device
from nnef_hw.sim.board_runner import BoardTransport
from nnef_hw.testing import GraphBuilder

S8 = QType(8, signed=True, scale=1 / 256, zero_point=-128)
PINS = {"alert": 1}


def watched(sink, frames, port):
    """Return the frames behind which the pin of a sink rises."""
    dut = EventOnPin(beats(signed(8), port.lanes), **sink.parameters(1))
    found = []

    async def bench(ctx):
        before = 0
        for step, frame in enumerate(to_stream(frames, port)):
            for n, beat in enumerate(frame):
                codes = [int(code) for code in beat]
                ctx.set(dut.i.payload, {"data": codes, "last": n == len(frame) - 1})
                ctx.set(dut.i.valid, 1)
                assert ctx.get(dut.i.ready) or sink.best
                await ctx.tick().until(dut.i.ready)
                ctx.set(dut.i.valid, 0)
                for _ in range(n % 3 + sink.best):
                    await ctx.tick()
            level = ctx.get(dut.alert)
            if level and not before:
                found.append(step)
            before = level

    run_benches(dut, bench)
    return found


@pytest.mark.parametrize(("image", "lanes"), [((1, 1, 3), 1), ((1, 1, 5), 2), ((2, 2, 3), 2)])
@pytest.mark.parametrize(("mean", "quiet"), [(1, 1), (3, 4), (16, 2)])
def test_events_are_those_of_the_model(image, lanes, mean, quiet, rng):
    count = image[0] * image[1] * image[2]
    frames = rng.integers(-128, 128, (120, count))
    frames[60:90, count - 2] = 127
    sink = EventPin.of(
        Result("y", (count,), image=image, qtype=S8), PINS, number=count - 2, mean=mean,
        quiet=quiet, threshold=0.55,
    )  # fmt: skip
    expected = sink.events(frames)
    assert len(expected) > 1
    assert watched(sink, frames, Port(image, lanes)) == expected


@pytest.mark.parametrize(("image", "lanes"), [((1, 1, 3), 1), ((1, 1, 5), 2), ((4, 1, 1), 1)])
@pytest.mark.parametrize(("mean", "quiet"), [(1, 1), (3, 4)])
def test_the_greatest_of_all_counts(image, lanes, mean, quiet, rng):
    """Scores that are high for several classes are no event of all but one."""
    count = image[0] * image[1] * image[2]
    frames = rng.integers(0, 4, (120, count)) * 40
    result = Result("y", (count,), image=image, qtype=S8)
    options = {"number": 1, "mean": mean, "quiet": quiet, "threshold": 0.7}
    sink = EventPin.of(result, PINS, best=1, **options)
    expected = sink.events(frames)
    assert len(expected) > 1
    assert expected != EventPin.of(result, PINS, **options).events(frames)
    sums = np.stack([frames[max(0, n + 1 - mean) : n + 1].sum(axis=0) for n in range(120)])
    assert all(sums[n].argmax() == 1 for n in expected)
    assert watched(sink, frames, Port(image, lanes)) == expected


def test_a_mean_equal_to_the_threshold_is_an_event():
    sink = EventPin.of(Result("y", (2,), qtype=S8), PINS, threshold=0.5, mean=2, quiet=1)
    assert sink.cutoff == 0
    assert sink.events(np.array([[9, 0], [-9, 0], [8, 0], [-9, 0], [8, 0]])) == [1]


def test_options_are_read_and_kept():
    wish = find_sink("scores=pin:number=2,threshold=0.9,mean=3")
    assert (wish.output, dict(wish.options)) == (
        "scores", {"number": 2, "threshold": 0.9, "mean": 3},
    )  # fmt: skip
    sink = EventPin.of(Result("scores", (3,), qtype=S8), PINS, **dict(wish.options))
    assert sink.given == {"number": 2, "threshold": 0.9, "mean": 3, "quiet": 32, "best": 0}
    assert sink_of(json.loads(json.dumps(sink.to_json()))) == sink


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("pin:loud=1", "sink pin has no option 'loud'; its options are number, threshold, mean"),
        ("pin:mean=x", "'x' is no value of mean"),
        ("led:mean=1", "sink led has no option 'mean'; it has no options"),
    ],
)
def test_wrong_options_are_refused(text, match):
    with pytest.raises(UsageError, match=match):
        find_sink(text)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"number": 3}, "there is no class 3; its 3 scores have the numbers 0 to 2"),
        ({"mean": 17}, "mean=17 is not within 1 to 16"),
        ({"quiet": 0}, "quiet=0 is no step"),
        ({"best": 2}, "best=2 is neither 0 nor 1"),
        ({"threshold": 1.0}, r"a threshold of 1 is not within its scores, 0 to 0\.996094"),
        ({"threshold": 0.0}, "a threshold of 0 is not within its scores"),
    ],
)
def test_what_says_nothing_is_refused(options, match):
    with pytest.raises((TargetError, UsageError), match=match):
        EventPin.of(Result("y", (3,), qtype=S8), PINS, **options)


def test_a_network_or_its_user_says_the_rate_of_a_microphone():
    """A spectrogram of the network's own is of any rate."""
    hears = Feed("x", 512, hears=True)
    with pytest.raises(UsageError, match="does not say how many samples per second input 'x'"):
        I2s.of(hears)
    assert I2s.of(hears, rate=8_000).rate == 8_000
    assert I2s.of(Feed("x", 512, 16_000), rate=16_000).rate == 16_000
    with pytest.raises(UsageError, match="takes 16,000 samples per second, not 8,000"):
        I2s.of(Feed("x", 512, 16_000), rate=8_000)


def test_a_microphone_is_for_audio_and_waits_for_nobody():
    with pytest.raises(TargetError, match="no front end reads input 'x'; put a front end before"):
        I2s.of(Feed("x", 512))
    source = I2s.of(Feed("x", 512, 16_000))
    source.check_interval(768_000, 24_000_000)
    with pytest.raises(
        TargetError, match=r"512 samples every 768,000 cycles at 24 MHz, and .* takes 768,001 for"
    ):
        source.check_interval(768_001, 24_000_000)


def write_wav(path, samples, rate=16_000, width=2):
    with wave.open(str(path), "wb") as file:
        file.setparams((1, width, rate, 0, "NONE", ""))
        file.writeframes(np.asarray(samples, f"<i{width}").tobytes())
    return path


FRONT = """front = "log_mel"
window = 32
hop = 16
points = 32
bands = 4
emphasis = 0.0
"""


@pytest.fixture
def ear(tmp_path, rng):
    """Return the arguments that build a network that hears; ``sound.wav`` stands beside it."""
    net = GraphBuilder("ear")
    weights = 20 * rng.normal(size=(3, 4, 2, 1))
    # what counts is how power changes, not how much there is
    weights -= weights.mean((1, 2, 3), keepdims=True)
    x = net.conv(net.input("features", [1, 4, 2, 1]), weights)
    save(net.build(net.op("softmax", net.reshape(x, [1, 3]), axes=[1])), tmp_path / "ear.nnef.tgz")
    (tmp_path / "front.toml").write_text(FRONT)
    found = sounds(rng, 48)
    heard = np.stack([found[name] / 32_768 for name in ("noise", "quiet", "swelling", "square")])
    np.savez(tmp_path / "samples.npz", inputs=heard.reshape(-1, 1, 48, 1))
    sound = sounds(rng, 1_600)
    samples = np.concatenate([sound["noise"], sound["quiet"], sound["swelling"]])
    write_wav(tmp_path / "sound.wav", samples)
    return (
        "build", "ear.nnef.tgz", "--front", "front.toml", "--stream", "time", "--board",
        "icebreaker", "--calibrate", "samples.npz", "--frames", 3, "--no-bitstream", "--out", "out",
    )  # fmt: skip


def heard(cli):
    """Return the verdict on a sound, of which all steps are equal and none is lost."""
    result = cli("sim", "out", "--wav", "sound.wav", "--json")
    assert result.status == 0, result.err
    told = result.json
    assert (told["equal"], told["lost"], told["steps"]) == (True, 0, 300)
    return told


@pytest.mark.system
@pytest.mark.verilator
def test_a_board_hears_what_the_model_hears(cli, ear, tmp_path):
    arguments = ear
    result = cli(*arguments, "--sink", "pin:threshold=0.1,mean=2,quiet=3")
    assert result.status == 0, result.err
    result = cli("sim", "out", "--wav", "sound.wav")
    assert result.status == 2
    assert "has no microphone, and no sensor of motion, so that --wav says nothing" in result.err

    result = cli(
        *arguments,
        "--source",
        "i2s",
        "--sink",
        "pin:threshold=0.1,mean=2,quiet=3",
        "--sink",
        "event_led:number=2,threshold=0.3,quiet=5",
        "--sink",
        "uart_text:names=up/down/,threshold=0.4,mean=2,quiet=8,baud=1000000",
    )
    assert result.status == 0, result.err
    constraints = (tmp_path / "out" / "board" / "board_top.pcf").read_text()
    assert re.findall(r"set_io (i2s_\w+|alert) (\d+)", constraints) == [
        ("i2s_bclk", "43"), ("i2s_ws", "38"), ("i2s_data", "34"), ("alert", "31"),
    ]  # fmt: skip
    told = heard(cli)
    # more results than the host, which is not there, could be told of
    names = [event["name"] for event in told["events"]]
    [output] = {event["output"] for event in told["events"]}
    assert 3 < names.count(f"{output} 0") < 75
    assert names.count(f"{output} 2") > 3
    assert {"up", "down"} & set(names)
    times = [event["seconds"] - (event["step"] + 1) / 1_000 for event in told["events"]]
    assert 0 < min(times) <= max(times) < 0.0005


@pytest.mark.system
@pytest.mark.verilator
@pytest.mark.parametrize("source", few(["pdm", "spi_adc", "mcp3201"], ["spi_adc"]))
def test_other_microphones_hear_the_same_samples(source, cli, ear, tmp_path):
    result = cli(*ear, "--source", source, "--sink", "pin:threshold=0.45,quiet=1")
    assert result.status == 0, result.err
    told = heard(cli)
    assert 10 < len(told["events"]) < 140
    times = [event["seconds"] - (event["step"] + 1) / 1_000 for event in told["events"]]
    assert 0 < min(times) <= max(times) < 0.0005
    assert told["page"] == "out/sound.html"
    page = (tmp_path / "out" / "sound.html").read_text()
    assert "events as in the fixed-point model" in page
    assert page.count('class="event"') == len(told["events"])
    assert page.count('class="score') == 3
    if source == "spi_adc":
        _record(tmp_path / "out", cli)


@pytest.mark.system
@pytest.mark.verilator
def test_a_board_without_a_link_hears_the_same(cli, ear, tmp_path):
    alone = (*ear, "--link", "none", "--sink", "pin:threshold=0.45,quiet=1")
    result = cli(*alone)
    assert result.status == 2
    assert "a board without a link does nothing unless a sensor feeds it and a sink" in result.err
    result = cli(*alone, "--source", "spi_adc", "--token-loop")
    assert result.status == 2
    result = cli(*alone, "--source", "spi_adc")
    assert result.status == 0, result.err
    assert not re.search(r"set_io (rx|tx) ", (tmp_path / "out/board/board_top.pcf").read_text())
    told = heard(cli)
    assert 2 < len(told["events"]) < 140
    given = ("--input", "samples.npz", "--output", "found.npz")
    result = cli("run", "out", "--on", "device", "--port", "sim", *given)
    assert result.status == 2
    assert "has no link, so nothing of it reaches a host; run 'nnef-hw sim out" in result.err


def _record(out, cli):
    """Scores of a session, from wherever it begins in the sound, are those of the model."""
    build = BuildFolder.open(out)
    microphone = source_of(build.manifest["sources"][0])
    samples = sounds(np.random.default_rng(5), 3_000)["noise"]
    clk_hz = build.manifest["clock_mhz"] * 1e6
    with BoardTransport(
        (out / "board" / "board_top.v").read_text(), clk_hz=clk_hz,
        others=[microphone, sink_of(build.manifest["sinks"][0])],
        numbers={"spi_adc": microphone.played(samples)},
    ) as transport:  # fmt: skip
        device = Device(read_manifest(out), transport)
        [scores] = device.record(30).values()
        end = int(transport.cycles / clk_hz * 16_000)
        assert device.counters().frames >= 30
    heard = microphone.heard(samples)
    fixed = build.fixed
    [name], [output] = fixed.inputs, fixed.outputs
    begins = range(end - 30 * 16 - 300, end - 30 * 16)
    sequences = np.stack([heard[n : n + 480].reshape(30, 1, 16, 1) for n in begins])
    codes = run_fixed(fixed, {name: sequences})[output]
    expected = fixed.tensor(output).qtype.dequantize(codes.reshape(len(begins), 30, 3))
    assert (expected == scores.reshape(30, 3)).all(axis=(1, 2)).sum() == 1

    result = cli("record", out, "--port", "sim", "--steps", 5, "-o", out / "y.npz", "--json")
    assert result.status == 0, result.err
    assert result.json["steps"] == 5
    assert result.json["frames"] >= 5
    with np.load(out / "y.npz") as found:
        assert found[output].shape[0] == 5
        silence = found[output][:3].reshape(3, 3)
    result = cli("record", out, "--port", "sim", "--steps", 3, "-o", out / "z.npz", "--live")
    assert result.status == 0, result.err
    with np.load(out / "z.npz") as found:
        scores = found[output].reshape(3, 3)
    assert np.array_equal(scores, silence)
    told = [line for line in result.out.splitlines() if line.startswith("step ")]
    assert told == [
        f"step {n}  {output} " + " ".join(f"{value:.2f}" for value in row)
        for n, row in enumerate(scores)
    ]
