"""A front end of pictures in front of networks: bytes, colours, sizes, files, hardware."""

import re
from dataclasses import replace

import numpy as np
import pytest

import nnef_hw as nh
from nnef_hw.errors import UsageError
from nnef_hw.frontend import load, save
from nnef_hw.frontend.front_file import read_front
from nnef_hw.frontend.picture_front import ImageFront
from nnef_hw.ir import Quantization
from nnef_hw.passes import simplify
from nnef_hw.quantize import Scheme, quantize
from nnef_hw.reference import run_fixed, run_float
from nnef_hw.testing import GraphBuilder

SIZE = (6, 8)
ZERO = 3
"""Byte that means 0 to a quantized network."""
PICTURES = {1: (1, 1, 6, 8), 3: (1, 3, 6, 8)}


def network(shape, *, rounding=None, signed=True):
    """A network that gives its picture back, with rows and columns swapped."""
    g = GraphBuilder("net")
    x = g.input("x", shape)
    swapped = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    g.op("transpose", x, axes=swapped, name="y")
    graph = g.build("y")
    if rounding is None:
        return graph
    low = -128 if signed else 0
    quant = Quantization("zero_point_linear_quantize", {
        "zero_point": low + ZERO, "scale": 1 / 64, "bits": 8, "signed": signed, "symmetric": False,
    })  # fmt: skip
    tensors = {name: replace(tensor, quant=quant) for name, tensor in graph.tensors.items()}
    return graph.replaced(tensors=tensors, rounding=rounding)


def fixed_of(front, channels, **kind):
    graph = front.put(network(PICTURES[channels], **kind))
    return quantize(simplify(graph), None, Scheme(rounding=kind.get("rounding") or "half_up"))


def bytes_seen(fixed, pictures):
    """The bytes of the network's picture, where its codes are bytes and an offset."""
    form = fixed.tensor("picture").qtype
    [codes] = run_fixed(fixed, {"picture": pictures + form.lo}).values()
    return codes.swapaxes(2, 3) - form.lo


def half_up(total, divisor):
    return (total + divisor // 2) // divisor


def as_tflite(total, divisor):
    """As an int8 convolution of TensorFlow Lite rounds what is added to its zero point: twice."""
    total = total - ZERO * divisor
    total = half_up(total, 2)
    return np.sign(total) * half_up(np.abs(total), divisor // 2) + ZERO


def rgb565(pictures):
    """Its colours by shifts, as displays have them."""
    word = pictures[:, 0] << 8 | pictures[:, 1]
    red, green, blue = word >> 11, word >> 5 & 63, word & 31
    return np.stack([red << 3 | red >> 2, green << 2 | green >> 4, blue << 3 | blue >> 2], 1)


def yuv422(pictures, rounded=half_up):
    bright = pictures[:, 0]
    u, v = (pictures[:, 1, :, n::2].repeat(2, axis=-1) - 128 for n in range(2))
    colours = (64 * bright + 90 * v, 64 * bright - 22 * u - 46 * v, 64 * bright + 113 * u)
    return rounded(np.stack(colours, 1), 64).clip(0, 255)


def grey(colours, rounded=half_up):
    return rounded(np.tensordot(colours, [38, 75, 15], (1, 0)), 128)[:, None]


EXPECTED = {
    ("grey", 1): lambda x, _: x,
    ("grey", 3): lambda x, _: x.repeat(3, axis=1),
    ("rgb888", 3): lambda x, _: x,
    ("rgb888", 1): grey,
    ("rgb565", 3): lambda x, _: rgb565(x),
    ("rgb565", 1): lambda x, rounded: grey(rgb565(x), rounded),
    ("yuv422", 3): yuv422,
    ("yuv422", 1): lambda x, _: x[:, :1],
}
KINDS = [
    {},
    {"rounding": "tflite"},
    {"rounding": "tflite", "signed": False},
    {"rounding": "half_up"},
]


def pictures_for(fixed, rng, count=40):
    return rng.integers(0, 256, (count, *fixed.tensor("picture").shape[1:]))


@pytest.mark.parametrize("kind", KINDS, ids=["float", "int8", "uint8", "given"])
@pytest.mark.parametrize(("name", "channels"), EXPECTED)
def test_colours_are_exact_integers(name, channels, kind, rng):
    fixed = fixed_of(ImageFront(size=SIZE, pixels=name), channels, **kind)
    x = pictures_for(fixed, rng)
    rounded = as_tflite if kind.get("rounding") == "tflite" else half_up
    expected = EXPECTED[name, channels](x, rounded)
    np.testing.assert_array_equal(bytes_seen(fixed, x), expected)


@pytest.mark.parametrize(("name", "channels"), EXPECTED)
def test_real_numbers_are_near(name, channels, rng):
    """Their halves are rounded either way: sums of weights are not exact there."""
    graph = ImageFront(size=SIZE, pixels=name).put(network(PICTURES[channels]))
    x = pictures_for(graph, rng)
    [found] = run_float(graph, {"picture": x / 255}).values()
    expected = EXPECTED[name, channels](x, half_up) / 255
    np.testing.assert_allclose(found.swapaxes(2, 3).clip(0, 1), expected, atol=1.01 / 255)


@pytest.mark.parametrize("kind", KINDS, ids=["float", "int8", "uint8", "given"])
def test_area_is_the_mean_of_blocks(kind, rng):
    fixed = fixed_of(ImageFront(size=(20, 26), crop=(1, 2, 18, 24)), 1, **kind)
    x = pictures_for(fixed, rng)
    blocks = x[:, :, 1:19, 2:26].reshape(-1, 1, 6, 3, 8, 3).sum((3, 5))
    np.testing.assert_array_equal(bytes_seen(fixed, x), half_up(blocks, 9))


def bilinear(x, rows, columns):
    """Interpolation in steps of 1/1024 between the centres of pixels."""
    for axis, count in ((2, rows), (3, columns)):
        extent = x.shape[axis]
        step = (1024 * extent + count // 2) // count
        place = step // 2 - 512 + step * np.arange(count)
        first = np.maximum(place >> 10, 0)
        second = np.clip(-(-place >> 10), 0, extent - 1)
        part = (place & 1023).reshape((-1, 1) if axis == 2 else (-1,))
        x = x.take(first, axis) * (1024 - part) + x.take(second, axis) * part
    return x


@pytest.mark.parametrize("kind", KINDS, ids=["float", "int8", "uint8", "given"])
def test_bilinear_weighs_four_pixels(kind, rng):
    fixed = fixed_of(ImageFront(size=(9, 13), resize="bilinear"), 1, **kind)
    x = pictures_for(fixed, rng)
    # the largest part of its shape: 9 x 12 in the middle
    sums = bilinear(x[:, :, :, :12], *SIZE)
    found = bytes_seen(fixed, x)
    assert np.abs(found * 2**20 - sums).max() <= 2**19
    ties = sums % 2**20 == 2**19
    np.testing.assert_array_equal(found[~ties], half_up(sums, 2**20)[~ties])


def test_the_part_in_the_middle_is_seen(rng):
    for size, shown in (((10, 12), (2, 8, 2, 10)), ((13, 30), (0, 12, 7, 23)), ((6, 8), None)):
        fixed = fixed_of(ImageFront(size=size), 1)
        x = pictures_for(fixed, rng)
        if shown is None:
            assert [node.op for node in fixed.nodes] == ["transpose"]
            continue
        top, bottom, left, right = shown
        part = x[:, :, top:bottom, left:right]
        factor = part.shape[2] // 6
        blocks = part.reshape(-1, 1, 6, factor, 8, factor).sum((3, 5))
        np.testing.assert_array_equal(bytes_seen(fixed, x), half_up(blocks, factor**2))


def test_channels_may_come_last(rng):
    last = ImageFront(size=SIZE, pixels="rgb888").put(network((1, 6, 8, 3)))
    x = pictures_for(last, rng) / 255
    [found] = run_float(last, {"picture": x}).values()
    np.testing.assert_allclose(found, x.transpose(0, 2, 1, 3))


def test_lowest_and_highest_are_what_bytes_mean(rng):
    graph = ImageFront(size=SIZE, lowest=-1.0, highest=1.0).put(network(PICTURES[1]))
    fixed = quantize(simplify(graph), None, Scheme())
    form = fixed.tensor("picture").qtype
    assert (form.lo, form.hi, form.zero_point) == (0, 255, 128)
    assert float(form.scale) == pytest.approx(2 / 255)


@pytest.mark.parametrize("name", ["rgb565", "yuv422"])
def test_is_written_and_read_back(name, rng, tmp_path):
    front = ImageFront(size=(9, 16), crop=(0, 0, 9, 12), pixels=name, resize="bilinear")
    made = front.put(network(PICTURES[3], rounding="tflite"))
    x = pictures_for(made, rng, 3)
    save(made, tmp_path / "net.nnef.tgz")
    again = load(tmp_path / "net.nnef.tgz")
    given = {"picture": x / 64}
    np.testing.assert_array_equal(run_float(again, given)["y"], run_float(made, given)["y"])


def test_a_file_describes_it(tmp_path):
    path = tmp_path / "front.toml"
    path.write_text('front = "image"\nsize = [122, 162]\npixels = "yuv422"\ncrop = [1, 2, 96, 96]')
    wanted = ImageFront(size=(122, 162), pixels="yuv422", crop=(1, 2, 96, 96))
    assert read_front(path) == wanted
    assert nh.features.image((122, 162), (1, 2, 96, 96), "yuv422") == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "image lacks size; write size ="),
        ("size = 96", "size = 96 is not a list of whole numbers"),
        ("size = [96, 0]", "size = [96, 0] is not rows and columns"),
        ("size = [96]", "size = [96] is not rows and columns"),
        ("size = [96, 96]\npixels = 'jpeg'", "no pixels 'jpeg': use grey or rgb888 or"),
        ("size = [96, 96]\nresize = 'cubic'", "no resize 'cubic': use area or bilinear"),
        ("size = [96, 95]\npixels = 'yuv422'", "an even number of columns, not 95"),
        ("size = [96, 96]\ncrop = [1, 2, 3]", "crop = [1, 2, 3] is not top, left"),
        ("size = [96, 96]\ncrop = [1, 0, 96, 96]", "not within pictures of 96x96"),
        ("size = [96, 96]\npixels = 'yuv422'\ncrop = [0, 1, 9, 9]", "share their colour"),
        ("size = [96, 96]\nlowest = 1", "highest = 1 is not above lowest = 1"),
    ],
)
def test_says_what_is_wrong_in_a_file(tmp_path, text, message):
    path = tmp_path / "front.toml"
    path.write_text(f"front = 'image'\n{text}")
    with pytest.raises(UsageError, match=re.escape(message)) as caught:
        read_front(path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("shape", "front", "message"),
    [
        ((1, 1, 6, 8), {"size": (20, 20), "crop": (0, 0, 10, 20)},
         "a part of 10x20 pixels does not divide into the 6x8 of the network's input; crop 6x16"),
        ((1, 1, 6, 8), {"size": (5, 20)}, "pictures of 5x20 are smaller than the network's input"),
        ((1, 4, 6, 8), {"size": (6, 8)}, "a picture of 1 or 3 channels, but input 'x'"),
        ((1, 48), {"size": (6, 8)}, "has the shape [1, 48]"),
        ((1, 1, 6, 8), {"size": (6, 8), "network_input": "z"}, "has no input 'z'"),
    ],
)  # fmt: skip
def test_refuses_networks_that_it_does_not_fit(shape, front, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        ImageFront(**front).put(network(shape))


def test_refuses_codes_that_are_no_bytes():
    quantized = network(PICTURES[1], rounding="tflite")
    with pytest.raises(UsageError, match="bytes are its codes; omit them"):
        ImageFront(size=SIZE, lowest=-1.0).put(quantized)
    args = {**quantized.tensor("x").quant.args, "bits": 16}
    wide = Quantization("zero_point_linear_quantize", args)
    tensors = {**quantized.tensors, "x": replace(quantized.tensor("x"), quant=wide)}
    with pytest.raises(UsageError, match="with 16 bits; quantize the model to int8 or uint8"):
        ImageFront(size=SIZE).put(quantized.replaced(tensors=tensors))
    with pytest.raises(UsageError, match="integers are fixed"):
        ImageFront(size=SIZE).put(fixed_of(ImageFront(size=SIZE), 1))
    with pytest.raises(UsageError, match=r"image: size = \[0, 8\]"):
        nh.features.image((0, 8))
