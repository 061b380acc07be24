"""Spectrograms as Keras writes them with tf.signal: one operator of ours; what stays refused."""

import numpy as np
import pytest
from tflite_file import TfliteFile

from nnef_hw.errors import NnefHwError
from nnef_hw.frontend import load
from nnef_hw.passes import simplify
from nnef_hw.reference import run_float

POINTS, HOP, FRAMES, BANDS, PIECE = 64, 24, 6, 5, 8
SAMPLES = POINTS + (FRAMES - 1) * HOP
BINS = POINTS // 2 + 1
WINDOW = np.hanning(POINTS + 1)[:-1].astype(np.float32)
EDGES = np.linspace(1, POINTS // 2 - 1, BANDS + 2)
MEL = np.stack([np.interp(np.arange(BINS), EDGES[n : n + 3], [0, 1, 0]) for n in range(BANDS)])
FLOOR = np.float32(1e-3)


def transform(model, frames, *, height=1):
    """Add a transform of frames [frames, 1, points]; return its complex numbers."""
    lengths = model.constant("lengths", np.array([height, POINTS], np.int32))
    shape = [FRAMES, height, BINS]
    return model.op("RFFT2D", [frames, lengths], "z", shape, "complex64", ("Rfft2dOptions", {}))


def spectrogram(path, *, squares):
    """Pieces that frames share are gathered, as tf.signal.frame has them."""
    model = TfliteFile()
    x = model.input("samples", [1, SAMPLES])

    def constant(name, data, dtype=np.int32):
        return model.constant(name, np.asarray(data, dtype))

    def reshaped(source, name, shape, dtype="float32"):
        return model.op("RESHAPE", [source, constant(f"{name}_shape", shape)], name, shape, dtype)

    pieces = reshaped(x, "pieces", [SAMPLES // PIECE, PIECE])
    rows = np.arange(FRAMES)[:, None] * (HOP // PIECE) + np.arange(POINTS // PIECE)
    gathered = model.op("GATHER", [pieces, constant("rows", rows)], "gathered",
                        [*rows.shape, PIECE], options=("GatherOptions", {"Axis": 0}))  # fmt: skip
    frames = reshaped(gathered, "frames", [FRAMES, POINTS])
    window = constant("window", WINDOW, np.float32)
    windowed = model.op("MUL", [frames, window], "windowed", [FRAMES, POINTS],
                        options=("MulOptions", {}))  # fmt: skip
    z = transform(model, reshaped(windowed, "alone", [FRAMES, 1, POINTS]))
    z = reshaped(z, "spectra", [FRAMES, BINS], "complex64")
    size = model.op("COMPLEX_ABS", [z], "size", [FRAMES, BINS])
    if squares:
        size = model.op("SQUARE", [size], "power", [FRAMES, BINS])
    bands = model.op("FULLY_CONNECTED", [size, constant("mel", MEL, np.float32), -1], "bands",
                     [FRAMES, BANDS], options=("FullyConnectedOptions", {}))  # fmt: skip
    floor = constant("floor", FLOOR, np.float32)
    lifted = model.op("ADD", [bands, floor], "lifted", [FRAMES, BANDS],
                      options=("AddOptions", {}))  # fmt: skip
    model.output(model.op("LOG", [lifted], "y", [FRAMES, BANDS]))
    model.save(path)
    return path


@pytest.mark.parametrize("squares", [False, True])
def test_a_spectrogram_is_one_operator(squares, rng, tmp_path):
    x = rng.normal(size=(1, SAMPLES)) * 0.1
    places = np.arange(FRAMES)[:, None] * HOP + np.arange(POINTS)
    size = np.abs(np.fft.rfft(x[0][places] * WINDOW)) ** (1 + squares)
    graph = load(spectrogram(tmp_path / "net.tflite", squares=squares))
    whole = simplify(graph)
    [front] = [node for node in whole.nodes if node.op == "log_bands"]
    assert front.attrs["power"] == 1 + squares
    for each in (graph, whole):
        [found] = run_float(each, {"samples": x}).values()
        expected = np.log(size @ MEL.T + FLOOR)
        np.testing.assert_allclose(found.reshape(FRAMES, BANDS), expected, rtol=1e-4, atol=1e-4)


def refusal(model, tmp_path):
    model.save(tmp_path / "net.tflite")
    with pytest.raises(NnefHwError) as caught:
        load(tmp_path / "net.tflite")
    return str(caught.value)


def test_complex_numbers_that_stay(tmp_path):
    model = TfliteFile()
    model.output(transform(model, model.input("x", [FRAMES, 1, POINTS])))
    assert "the output 'z' is of complex numbers" in refusal(model, tmp_path)


def test_complex_numbers_that_are_added(tmp_path):
    model = TfliteFile()
    z = transform(model, model.input("x", [FRAMES, 1, POINTS]))
    total = model.op("ADD", [z, z], "total", [FRAMES, 1, BINS], "complex64", ("AddOptions", {}))
    model.output(model.op("REAL", [total], "y", [FRAMES, 1, BINS]))
    assert "the argument 'z' is of complex numbers" in refusal(model, tmp_path)


def test_a_transform_of_images(tmp_path):
    model = TfliteFile()
    z = transform(model, model.input("x", [FRAMES, 2, POINTS]), height=2)
    model.output(model.op("REAL", [z], "y", [FRAMES, 2, BINS]))
    assert "images of 2 rows" in refusal(model, tmp_path)
