"""Front ends of audio in front of networks: shapes, files, integers, steps of a stream."""

import re
from dataclasses import replace

import numpy as np
import pytest
from audio import read_wav, sounds

import nnef_hw as nh
from nnef_hw.arithmetic.audio.log_mel import LogMel, choose_log_mel
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.arithmetic.numerics import QType
from nnef_hw.cli import main
from nnef_hw.errors import ErrorGroup, ModelError, UnsupportedError, UsageError
from nnef_hw.frontend import graph_hash, load, save
from nnef_hw.frontend.audio_front import LogMelFront, MicroFront, put_in_front
from nnef_hw.frontend.front_file import read_front
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.passes.time.stream_time import StreamTime
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed, run_float, trace_fixed
from nnef_hw.testing import GraphBuilder

SIZES = {"window": 64, "hop": 32, "points": 64, "bands": 4}
SMALL = LogMelFront(**SIZES)
FRAMES = 5


def network(features, frames, rng):
    """A convolution over two frames each."""
    g = GraphBuilder("net")
    x = g.input("x", (1, features, frames, 1))
    g.conv(x, rng.normal(size=(3, features, 2, 1)), np.zeros((1, 3)), name="y")
    return g.build("y")


@pytest.fixture
def graph(rng):
    return network(4, FRAMES, rng)


def fixed_of(graph, x):
    """The fixed network of one that hears."""
    return quantize(simplify(graph), {"audio": x / 32_768}, Scheme())


def features_of(graph, x, run):
    """What a front end gives: codes, or real numbers."""
    given = x if run is run_fixed else x / 32_768
    [values] = run(replace(graph, outputs=(graph.nodes[0].name,)), {"audio": given}).values()
    return values[..., 0].transpose(0, 2, 1)


def audio(rng, graph, count=4):
    samples = graph.tensor("audio").shape[2]
    return sounds(rng, samples)["tone in noise"][None, None, :, None].repeat(count, 0)


def test_samples_become_the_features_of_the_network(rng, graph):
    heard = put_in_front(graph, SMALL)
    assert heard.inputs == ("audio",)
    assert heard.tensor("audio").shape == (1, 1, 64 + 4 * 32, 1)
    x = audio(rng, heard)
    expected = LogMel(**SIZES).apply(x[:, 0, :, 0] / 32_768).transpose(0, 2, 1)[..., None]
    found = run_float(heard, {"audio": x / 32_768})["y"]
    np.testing.assert_allclose(found, run_float(graph, {"x": expected})["y"], rtol=1e-12)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1, 4, 5, 1), 2), ((1, 5, 4, 1), 1), ((1, 4, 5), 2), ((1, 1, 5, 4), 2), ((1, 5, 1, 4), 1)],
)
def test_finds_features_in_any_layout(rng, shape, axis):
    g = GraphBuilder("net")
    g.op("neg", g.input("x", shape), name="y")
    heard = put_in_front(g.build("y"), SMALL)
    x = audio(rng, heard, 1)
    values = -SMALL.apply(x[:, 0, :, 0] / 32_768)[0]
    found = run_float(heard, {"audio": x / 32_768})["y"]
    assert found.shape == shape
    rows = np.moveaxis(found, axis, 0).reshape(5, 4)
    np.testing.assert_allclose(rows, values, rtol=1e-12)


def test_fixed_model_computes_the_integers(rng, graph):
    heard = put_in_front(graph, SMALL)
    x = audio(rng, heard)
    fixed = fixed_of(heard, x)
    target = fixed.tensor(fixed.nodes[0].name).qtype
    assert (target.bits, target.lo, float(target.dequantize(target.hi))) == (8, 0, 1.0)
    requant = choose_log_mel(LogMel(**SIZES), target)
    assert fixed.nodes[0].attrs["requant"] == requant
    expected = requant.apply(x[:, 0, :, 0])
    np.testing.assert_array_equal(features_of(fixed, x, run_fixed), expected)


@pytest.mark.parametrize("front", [SMALL, MicroFront()], ids=["log_mel", "micro_frontend"])
def test_is_written_and_read_back(rng, front, tmp_path):
    heard = put_in_front(network(front.features, FRAMES, rng), front)
    x = audio(rng, heard)
    for run, made in ((run_float, heard), (run_fixed, fixed_of(heard, x))):
        path = tmp_path / f"{run.__name__}.nnef.tgz"
        save(made, path)
        again = load(path)
        given = {"audio": x if run is run_fixed else x / 32_768}
        np.testing.assert_array_equal(run(again, given)["y"], run(made, given)["y"])
    assert graph_hash(again) == graph_hash(made)


def test_micro_frontend_gives_the_codes_of_its_users(rng):
    """With a scale for which features become codes as microWakeWord's firmware has them."""
    step = 26 / 255
    heard = put_in_front(network(40, FRAMES, rng), MicroFront(scale=256 / 666 * step))
    given = Quantization("zero_point_linear_quantize", {
        "zero_point": -128, "scale": step, "bits": 8, "signed": True, "symmetric": False,
    })  # fmt: skip
    name = heard.nodes[0].name
    heard = replace(heard, tensors={
        **heard.tensors, name: replace(heard.tensor(name), quant=given),
    })  # fmt: skip
    x = audio(rng, heard)
    fixed = fixed_of(heard, x)
    features = MicroFrontend().apply(x[:, 0, :, 0])
    assert features.max() > 300
    found = features_of(fixed, x, run_fixed)
    np.testing.assert_array_equal(found, ((features * 256 + 333) // 666 - 128).clip(-128, 127))
    real = features_of(heard, x, run_float)
    np.testing.assert_allclose(real, (found + 128) * step)
    integers = np.arange(667)
    requant = fixed.nodes[0].attrs["requant"]
    expected = ((integers * 256 + 333) // 666 - 128).clip(-128, 127)
    np.testing.assert_array_equal(requant.apply(integers[None])[0], expected)


def test_steps_of_a_stream_equal_windows(rng, graph):
    """The window has no edges, so that the sample before it counts."""
    heard = put_in_front(graph, LogMelFront(**SIZES, shape="ones"))
    x = audio(rng, heard)
    fixed = fixed_of(heard, x)
    stream = StreamTime(2)
    step, rows = stream.steps(*stream.window(fixed))
    assert step.tensor("audio").shape == (1, 1, 32, 1)
    [state] = [name for name in step.states if "features" in name]
    # the rest of a window, and the sample before it
    assert step.tensor(state).shape == (1, 1, 33, 1)
    length = fixed.tensor("audio").shape[2]
    long = sounds(rng, length + 6 * 32)["noise"]
    windows = np.stack([long[k * 32 : k * 32 + length] for k in range(7)])[:, None, :, None]
    whole = run_fixed(fixed, {"audio": windows})["y"]
    steps = long.reshape(1, -1, 1, 1, 32, 1)
    streamed = run_fixed(step, {"audio": steps})["y"][0]
    np.testing.assert_array_equal(streamed[-7:, :, -1], whole[:, :, -1])
    assert rows["audio"].rows == 32


@pytest.mark.parametrize("front", [SMALL, MicroFront()], ids=["log_mel", "micro_frontend"])
def test_a_network_with_states_hears_a_stream(rng, front, tmp_path):
    """Features of its steps are those of one long window that begins in silence."""
    g = GraphBuilder("net")
    past = g.state("past", np.zeros((1, 3, 1, 1)))
    x = g.conv(g.input("x", (1, front.features, 2, 1)), rng.normal(size=(3, front.features, 2, 1)))
    g.update(past, g.op("add", x, past, name="y"))
    heard = put_in_front(g.build("y"), front)
    hop = front.hop
    assert heard.tensor("audio").shape == (1, 1, 2 * hop, 1)
    x = sounds(rng, 10 * hop)["swelling"]
    steps = x.reshape(1, 5, 1, 1, 2 * hop, 1)
    fixed = quantize(simplify(heard), {"audio": steps / 32_768}, Scheme())
    save(fixed, tmp_path / "net.nnef.tgz")
    [front_node] = [n for n in fixed.nodes if n.op in ("log_mel", "micro_frontend_step")]
    found = trace_fixed(load(tmp_path / "net.nnef.tgz"), {"audio": steps})[front_node.name]
    codes = found[0].transpose(0, 2, 1, 3).reshape(10, -1)
    silent = np.concatenate([np.zeros(front.kept, np.int64), x])[None]
    requant = front_node.attrs["requant"]
    if front is SMALL:
        expected = requant.apply(silent[:, 1:], before=silent[:, :1])[0]
    else:
        expected = requant.apply(front.apply(silent)[0])
    np.testing.assert_array_equal(codes, expected)
    real = run_float(heard, {"audio": steps / 32_768})["y"]
    fixed_y = fixed.tensor("y").qtype.dequantize(run_fixed(fixed, {"audio": steps})["y"])
    assert np.abs(fixed_y - real).max() < 0.1 * np.abs(real).max()


def test_micro_frontend_has_no_steps_yet(rng):
    heard = put_in_front(network(40, FRAMES, rng), MicroFront())
    fixed = fixed_of(heard, audio(rng, heard))
    with pytest.raises((UnsupportedError, ErrorGroup), match="noise that it has estimated"):
        StreamTime(2).window(fixed)


def test_a_wake_word_is_heard(sense, zoo):
    """MLPerf Tiny's short file: its reference finds the word twice and misses it once, too."""
    model = nh.load(zoo / "mlperf_sww_ds1d" / "original_int8.tflite", front=nh.features.log_mel())
    fixed = model.quantize()
    samples = read_wav(sense / "short_wav_easy10s.wav") / 32_768
    length = model.inputs["audio"][2]
    starts = range(0, samples.size - length + 1, 512)
    windows = np.stack([samples[k : k + length] for k in starts])[:, None, :, None]
    [scores] = fixed.run(windows).values()
    ends = (np.flatnonzero(scores[:, 0] > 0.95) * 512 + length) / 16_000
    words = [(1.0, 1.647625), (4.0, 4.76175), (7.0, 7.358625)]
    found = [any(begin <= end <= last + 1 for end in ends) for begin, last in words]
    assert found == [True, True, False]
    assert all(any(begin <= end <= last + 1 for begin, last in words) for end in ends)


FILE = """front = "log_mel"
window = 64
hop = 32
points = 64
bands = 4
high = 8000
"""


def test_a_file_describes_it(tmp_path, cli, graph):
    path = tmp_path / "front.toml"
    path.write_text(FILE)
    assert read_front(path) == SMALL
    save(graph, tmp_path / "net.nnef.tgz")
    found = cli("inspect", tmp_path / "net.nnef.tgz", "--front", path)
    assert found.status == 0
    assert "log_mel" in found.out
    assert "audio [1, 1, 192, 1]" in found.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("window = 64", 'names no front end; write front = "log_mel" or'),
        ("front = 'mfcc'", "no front end 'mfcc'"),
        ("front = 'log_mel'\nwidth = 3", "no parameter 'width'; its parameters are"),
        ("front = 'log_mel'\nhop = 1.5", "hop = 1.5 is not a whole number"),
        ("front = 'log_mel'\nhop = true", "hop = True is not a whole number"),
        ("front = 'log_mel'\nhop = 2000", "not 2000"),
        ("front = log_mel", "Invalid value"),
    ],
)
def test_says_what_is_wrong_in_a_file(tmp_path, text, message):
    path = tmp_path / "front.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        read_front(path)
    assert str(path) in str(caught.value)
    with pytest.raises(UsageError, match="--front FILE"):
        read_front(tmp_path / "none.toml")


def test_refuses_networks_that_it_does_not_fit(rng, graph):
    with pytest.raises(UsageError, match=r"frames of 40 features.* has the shape \[1, 4, 5, 1\]"):
        put_in_front(graph, LogMelFront())
    with pytest.raises(UsageError, match=r"with frames along axis 1"):
        put_in_front(graph, LogMelFront(**SIZES, time=1))
    with pytest.raises(UsageError, match="no input 'z'; its inputs are x"):
        put_in_front(graph, LogMelFront(**SIZES, network_input="z"))
    square = network(4, 4, rng)
    with pytest.raises(UsageError, match="time = 1 or 2"):
        put_in_front(square, SMALL)
    assert put_in_front(square, LogMelFront(**SIZES, time=2)).inputs == ("audio",)
    fixed = quantize(simplify(graph), {"x": rng.normal(size=(4, 4, FRAMES, 1))}, Scheme())
    with pytest.raises(UsageError, match="integers are fixed"):
        put_in_front(fixed, SMALL)
    with pytest.raises(UsageError, match=r"log_mel: .*not 7"):
        nh.features.log_mel(points=7)
    with pytest.raises(UsageError, match=r"micro_frontend: .*not 7"):
        nh.features.micro_frontend(hop=7)


@pytest.mark.parametrize(("loudest", "full"), [(0.1, 1), (1.0, 1), (3.0, 4)])
def test_full_scale_is_one_or_a_power_of_two(loudest, full, rng, graph):
    heard = put_in_front(graph, SMALL)
    plain = replace(heard.tensor("audio"), quant=None)
    samples = audio(rng, heard)
    fixed = fixed_of(
        replace(heard, tensors={**heard.tensors, "audio": plain}),
        samples / np.abs(samples).max() * loudest * 32_768,
    )
    assert fixed.tensor("audio").qtype == QType(16, signed=True, scale=full / 32_768)


def test_samples_have_a_sign_and_no_zero_point(rng, graph):
    heard = put_in_front(graph, SMALL)
    bytes_of = {"zero_point": 128, "scale": 1 / 128, "bits": 8, "signed": False, "symmetric": False}
    quant = Quantization("zero_point_linear_quantize", bytes_of)
    plain = replace(heard.tensor("audio"), quant=quant)
    unsigned = replace(heard, tensors={**heard.tensors, "audio": plain})
    with pytest.raises(UnsupportedError, match="audio has 16 bits with a sign"):
        fixed_of(unsigned, audio(rng, heard))


DOCUMENT = """version 1.0;
extension KHR_enable_fragment_definitions;
fragment micro_frontend(input: tensor<scalar>, hop: integer, scale: scalar) ->
    (output: tensor<scalar>);
graph net(audio) -> (y) {{
    audio = external(shape = {shape});
    y = micro_frontend(audio, hop = {hop}, scale = 1.0);
}}
"""


@pytest.mark.parametrize(
    ("shape", "hop", "message"),
    [
        ("[1, 1, 480]", 160, "not audio of one channel"),
        ("[1, 1, 400, 1]", 160, "400 samples are less than the 480 of a frame"),
        ("[1, 1, 480, 1]", 100, "not 100"),
    ],
)
def test_documents_with_wrong_audio_are_refused(tmp_path, shape, hop, message):
    (tmp_path / "graph.nnef").write_text(DOCUMENT.format(shape=shape, hop=hop))
    with pytest.raises((ModelError, ErrorGroup), match=message):
        load(tmp_path)
    assert main(["check", str(tmp_path)]) == 2
