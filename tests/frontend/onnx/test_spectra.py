"""Fourier transforms and spectrograms in ONNX: numbers of onnxruntime, and one operator of ours."""

import numpy as np
import pytest
from onnx_runtime import run_onnxruntime
from spectrogram_models import SAMPLES, saved, spectrogram

from nnef_hw.frontend import load, save
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

onnx = pytest.importorskip("onnx", reason="pip install nnef-hw[onnx]")


def is_as_onnxruntime(path, inputs):
    expected, found = run_onnxruntime(path, list(inputs.values())), run_float(load(path), inputs)
    for name, value in found.items():
        np.testing.assert_allclose(value, expected[name], rtol=1e-4, atol=1e-4)
    return found


WINDOW = np.hanning(17)[:-1].astype(np.float32)
STFTS = {
    "window": (1, 1, {"w": WINDOW}, 9),
    "both sides": (1, 0, {"w": WINDOW}, 16),
    "complex": (2, 0, {"w": WINDOW}, 16),
    "window and length": (1, 1, {"w": WINDOW, "n": np.int64(16)}, 9),
}


@pytest.mark.parametrize("case", STFTS.values(), ids=STFTS)
def test_transforms_of_frames(case, rng, tmp_path):
    parts, one_sided, more, bins = case
    nodes = [("STFT", ["x", "step", *more], "y", {"onesided": one_sided})]
    path = saved(
        tmp_path / "net.onnx", nodes, {"x": [1, 50, parts]}, {"y": [1, 7, bins, 2]},
        {"step": np.int64(5), **more},
    )  # fmt: skip
    is_as_onnxruntime(path, {"x": rng.normal(size=(1, 50, parts)).astype(np.float32)})


DFTS = {
    "real": (17, [1, 3, 10, 1], [], {"axis": 2}, [1, 3, 10, 2]),
    "one-sided": (17, [1, 3, 10, 1], [], {"axis": 2, "onesided": 1}, [1, 3, 6, 2]),
    "complex, inverse": (20, [1, 7, 2], [], {"inverse": 1}, [1, 7, 2]),
    "longer": (20, [1, 3, 6, 1], [8], {}, [1, 3, 8, 2]),
    "shorter": (20, [1, 3, 9, 2], [4], {}, [1, 3, 4, 2]),
    "axis": (20, [1, 4, 3, 1], ["", 1], {"onesided": 1}, [1, 3, 3, 2]),
}


@pytest.mark.parametrize("case", DFTS.values(), ids=DFTS)
def test_transforms(case, rng, tmp_path):
    opset, shape, numbers, attributes, result = case
    constants = {f"c{n}": np.int64(x) for n, x in enumerate(numbers) if x != ""}
    names = [f"c{n}" if x != "" else "" for n, x in enumerate(numbers)]
    nodes = [("DFT", ["x", *names], "y", attributes)]
    path = saved(tmp_path / "net.onnx", nodes, {"x": shape}, {"y": result}, constants, opset)
    is_as_onnxruntime(path, {"x": rng.normal(size=shape).astype(np.float32)})


@pytest.mark.parametrize("count", [6, 7])
def test_a_one_sided_inverse_gives_the_samples_back(count, rng, tmp_path):
    """Not of onnxruntime, which has none."""
    x = rng.normal(size=(1, count))
    spectrum = np.fft.rfft(x)
    nodes = [("DFT", ["x", "n", "axis"], "y", {"inverse": 1, "onesided": 1})]
    path = saved(
        tmp_path / "net.onnx", nodes, {"x": [1, count // 2 + 1, 2]}, {"y": [1, count, 1]},
        {"n": np.int64(count), "axis": np.int64(1)}, 20,
    )  # fmt: skip
    given = np.stack([spectrum.real, spectrum.imag], -1)
    [found] = run_float(load(path), {"x": given}).values()
    np.testing.assert_allclose(found[..., 0], x, atol=1e-6)


def test_windows_and_triangles(rng, tmp_path):
    nodes = [
        ("HannWindow", ["n"], "hann", {}), ("HammingWindow", ["n"], "hamming", {"periodic": 0}),
        ("BlackmanWindow", ["n"], "blackman", {}), ("Mul", ["hann", "hamming"], "both", {}),
        ("Mul", ["both", "blackman"], "window", {}), ("Mul", ["x", "window"], "windowed", {}),
        ("MelWeightMatrix", ["bands", "points", "rate", "low", "high"], "mel", {}),
        ("MatMul", ["windowed", "mel"], "y", {}),
    ]  # fmt: skip
    constants = {
        "n": np.int64(129), "bands": np.int64(9), "points": np.int64(256),
        "rate": np.int64(8_000), "low": np.float32(50), "high": np.float32(3_900),
    }  # fmt: skip
    path = saved(tmp_path / "net.onnx", nodes, {"x": [1, 129]}, {"y": [1, 9]}, constants)
    is_as_onnxruntime(path, {"x": rng.normal(size=(1, 129)).astype(np.float32)})


def simplified(path, x):
    """Return the network and its results, those of ONNX Runtime before and after it is simple."""
    expected = is_as_onnxruntime(path, x)["y"]
    whole = simplify(load(path))
    np.testing.assert_allclose(run_float(whole, x)["y"], expected, rtol=1e-5, atol=1e-5)
    return whole, expected


def computing(graph):
    return [node for node in graph.nodes if node.op != "reshape"]


@pytest.mark.parametrize("magnitude", [False, True])
@pytest.mark.parametrize("least", [False, True])
def test_a_spectrogram_is_one_operator(least, magnitude, rng, tmp_path):
    path = spectrogram(tmp_path / "net.onnx", least=least, magnitude=magnitude)
    x = {"x": rng.normal(size=(1, SAMPLES)).astype(np.float32) * 0.01}
    nodes = computing(simplified(path, x)[0])
    assert [node.op for node in nodes] == ["slice", "log_bands", "conv"]
    assert nodes[1].attrs["power"] == 2 - magnitude


def test_mirrored_borders_are_part_of_it(rng, tmp_path):
    """As torch.stft has them by default."""
    path = spectrogram(tmp_path / "net.onnx", mirrored=32)
    x = {"x": rng.normal(size=(1, SAMPLES)).astype(np.float32)}
    whole, expected = simplified(path, x)
    assert [node.op for node in computing(whole)] == ["log_bands", "conv"]
    save(whole, tmp_path / "net.nnef.tgz")
    again = run_float(load(tmp_path / "net.nnef.tgz"), x)
    np.testing.assert_allclose(again["y"], expected, rtol=1e-5, atol=1e-5)


def test_an_emphasis_is_part_of_it(rng, tmp_path):
    path = spectrogram(tmp_path / "net.onnx", emphasis=0.97)
    x = {"raw": rng.normal(size=(1, SAMPLES)).astype(np.float32) * 0.01}
    nodes = computing(simplified(path, x)[0])
    assert [node.op for node in nodes] == ["slice", "log_bands", "conv"]
    assert nodes[1].attrs["emphasis"] == 0.97


def test_other_spectrograms_stay_as_they_are(rng, tmp_path):
    path = spectrogram(tmp_path / "net.onnx", points=60)
    x = {"x": rng.normal(size=(1, SAMPLES)).astype(np.float32)}
    whole, _ = simplified(path, x)
    assert "log_bands" not in {node.op for node in whole.nodes}
