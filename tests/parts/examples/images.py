"""Examples of images: pools, borders, other orders, interpolation."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from functools import partial

import numpy as np

from examples.example import RAM, Example, Marks, Measured, Proof, swept
from nnef_hw import parts
from nnef_hw.arithmetic.interpolation import Places
from nnef_hw.hardware.devices import UP5K
from nnef_hw.hardware.geometry.window import Window

__all__ = ["CODES", "IMAGES", "MEASURED"]

CODES = {"u2": (2, False), "s4": (4, True), "u8": (8, False), "s8": (8, True), "s16": (16, True)}
VERILATED = ("verilator",)
BOTH = ("verilator", "cocotb")


def maxima(bits, signed, lanes, words, **more):
    """Passes of which all codes are equal, of one outlier in every position, and of noise."""

    def stimulus(rng):
        lo, hi = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        codes = rng.integers(lo, hi + 1, (3 * (words + 4), words, lanes))
        codes[0], codes[1], codes[2 : 2 + words] = lo, hi, lo
        codes[2 + np.arange(words), np.arange(words)] = hi
        return [codes]

    part = parts.MaxPool(bits=bits, signed=signed, lanes=lanes)
    return Example(part=part, stimulus=stimulus, frames=3, **more)


def sums(bits, signed, words, acc_bits=None, **more):
    acc_bits = acc_bits or bits + (words - 1).bit_length() + 1
    part = parts.SumPool(bits=bits, signed=signed, acc_bits=acc_bits)
    return Example(part=part, sizes=[(3, words)], **more)


POOLS = {
    "MaxPool": {
        **swept(maxima, CODES, [1, 3], [1, 2, 9]),
        "verilog": maxima(8, True, 2, 4, verilog=BOTH),
        **{
            name: Example(
                part=parts.MaxPool(bits=2, signed=True), sizes=[size],
                proof=Proof(marks=[Marks(base=-1, mark=1)]),
            )
            for name, size in {"passes": (2, 3), "words": (3, 1)}.items()
        },
    },
    "SumPool": {
        **swept(sums, CODES, [1, 2, 9]),
        **{
            name: Example(
                part=parts.SumPool(bits=2, signed=False, acc_bits=5), sizes=[size],
                proof=Proof(marks=[Marks(base=1, mark=3)]),
            )
            for name, size in {"passes": (2, 3), "words": (3, 1)}.items()
        },
    },
}  # fmt: skip


def tiling(height, width, channels, kernel=None, stride=None):
    kernel = kernel or (height, width)
    return Window(
        height, width, channels, kernel=kernel, stride=stride or kernel, passes=channels,
        by_channel=True,
    )  # fmt: skip


def running(
    part_class, window, bits=8, signed=True, single_port=None, ram=RAM, acc_bits=None, **more
):
    fields = {"window": window, "bits": bits, "signed": signed, "ram": ram}
    if part_class is parts.RunningSum:
        fields["acc_bits"] = acc_bits or bits + 1 + (window.taps - 1).bit_length()
    part = part_class(single_port=single_port, **fields)
    return Example(part=part, sizes=[window.beats], **more)


TILES = {
    **{
        f"{channels} channels of {height} x {width}": tiling(height, width, channels)
        for channels, height, width in [
            (1, 1, 1), (1, 3, 3), (2, 1, 1), (2, 5, 1), (3, 2, 2), (4, 1, 1), (4, 1, 3), (5, 2, 3),
            (17, 4, 1), (40, 1, 3),
        ]
    },
    "pairs": tiling(4, 6, 3, (2, 2)), "last row and column dropped": tiling(7, 7, 4, (2, 2)),
    "threes": tiling(7, 8, 3, (3, 3)), "rows": tiling(6, 5, 4, (2, 1)),
    "rows of one channel": tiling(6, 5, 1, (2, 1)), "columns": tiling(3, 9, 5, (1, 4)),
    "pixels": tiling(3, 4, 2, (1, 1)), "one window and a border": tiling(5, 5, 4, (3, 3)),
    "stride of a single window": tiling(3, 9, 3, (3, 2), (1, 2)),
    "wide and dropped": tiling(5, 11, 3, (2, 5)), "three results": tiling(4, 6, 1, (2, 2)),
    "two results": tiling(4, 4, 1, (2, 2)),
}  # fmt: skip
MEMORIES = {"block": None, "single port": UP5K.single_port}


def running_pools(part_class):
    return {
        **swept(lambda window, ram: running(part_class, window, single_port=ram), TILES, MEMORIES),
        **swept(partial(running, part_class, TILES["pairs"]), CODES),
    }


def proved_pool(part_class, window, single_port=None):
    fields = {} if part_class is parts.RunningMax else {"acc_bits": 5}
    part = part_class(
        window=window, bits=2, signed=False, ram=RAM, single_port=single_port, **fields
    )
    proof = Proof(marks=[Marks(base=1, mark=2)], patience=8)
    return Example(part=part, sizes=[window.beats], proof=proof)


RUNNING = {
    "RunningMax": {
        **running_pools(parts.RunningMax),
        "verilog": running(
            parts.RunningMax, TILES["pairs"], single_port=UP5K.single_port, verilog=VERILATED
        ),
        "registers": proved_pool(parts.RunningMax, tiling(2, 4, 1, (2, 2))),
        "block RAM": proved_pool(parts.RunningMax, tiling(2, 2, 4, (2, 1))),
        "rest": proved_pool(parts.RunningMax, tiling(3, 3, 1, (2, 2))),
        "one port": proved_pool(parts.RunningMax, tiling(2, 2, 1, (2, 1)), UP5K.single_port),
    },
    "RunningSum": {
        **running_pools(parts.RunningSum),
        "verilog": running(parts.RunningSum, TILES["2 channels of 5 x 1"], verilog=VERILATED),
        "verilog of a block RAM": running(parts.RunningSum, TILES["threes"], verilog=BOTH),
        "verilog of one port": running(
            parts.RunningSum, TILES["threes"], single_port=UP5K.single_port, verilog=VERILATED
        ),
        "registers": proved_pool(parts.RunningSum, tiling(2, 2, 1, (2, 2))),
        "block RAM": proved_pool(parts.RunningSum, tiling(2, 1, 4, (2, 1))),
        "one port": proved_pool(parts.RunningSum, tiling(2, 2, 1, (2, 1)), UP5K.single_port),
    },
}  # fmt: skip


def pad(padding, shape=(3, 4), channels=2, bits=8, signed=True, pad_code=-7, lanes=1, **more):
    part = parts.Pad(
        height=shape[0], width=shape[1], channels=channels, padding=padding, pad_code=pad_code,
        bits=bits, signed=signed, lanes=lanes,
    )  # fmt: skip
    return Example(part=part, sizes=[shape[0] * shape[1] * channels], frames=4, **more)


SIDES = ((1, 2), (2, 1))
PROVED = {"bits": 2, "signed": False, "pad_code": 2}
PADS = {
    "all sides": pad(SIDES, verilog=BOTH), "top": pad(((2, 0), (0, 0))),
    "bottom": pad(((0, 2), (0, 0))), "left": pad(((0, 0), (3, 0))),
    "right": pad(((0, 0), (0, 1))), "none": pad(((0, 0), (0, 0))),
    "u2": pad(SIDES, bits=2, signed=False, pad_code=3),
    "u8, 2 lanes": pad(SIDES, signed=False, pad_code=200, lanes=2),
    "s16, 3 lanes": pad(SIDES, bits=16, pad_code=-9, lanes=3),
    "one pixel": pad(SIDES, (1, 1), 1),
    "all around": pad(((1, 1), (1, 1)), (2, 2), 1, **PROVED, proof=Proof(patience=2)),
    "ahead": pad(((2, 0), (0, 1)), (2, 1), 2, **PROVED, proof=Proof(patience=2)),
    "behind": pad(((0, 2), (0, 0)), (1, 3), 1, **PROVED, proof=Proof(patience=2)),
}  # fmt: skip


def transpose(extents, order, turns=1, backwards=(), bits=8, signed=False, ram=RAM, **more):
    part = parts.Transpose(
        extents=extents, order=order, turns=turns, backwards=backwards, bits=bits, signed=signed,
        ram=ram,
    )  # fmt: skip
    return Example(part=part, sizes=[turns * part.image], **more)


REORDERED = Proof(frame_bits=3)
TRANSPOSES = {
    **swept(
        lambda extents, order: transpose(extents["of"], order["is"]),
        {str(x): {"of": x} for x in [(2, 3, 4), (1, 4, 3), (3, 1, 2), (1, 1, 1)]},
        {str(x): {"is": x} for x in itertools.permutations(range(3))},
    ),
    "turns": transpose((1, 2, 3), (0, 2, 1), 5), "two turns": transpose((1, 3, 2), (0, 2, 1), 2),
    "four axes": transpose((2, 2, 3, 2), (2, 0, 3, 1)),
    "five axes": transpose((2, 3, 2, 2, 2), (0, 3, 1, 4, 2), 3),
    "columns backwards": transpose((1, 4, 3), (0, 1, 2), backwards=(1,)),
    "two axes backwards": transpose((2, 3, 4), (2, 0, 1), backwards=(0, 2)),
    "two codes backwards": transpose((1, 2, 1), (0, 1, 2), backwards=(1,)),
    "u2": transpose((2, 3, 4), (2, 0, 1), bits=2),
    "s16": transpose((2, 3, 4), (2, 0, 1), bits=16, signed=True),
    "verilog": transpose((2, 3, 4), (2, 0, 1), verilog=BOTH),
    "proof of columns": transpose((2, 2, 1), (1, 0, 2), bits=1, proof=REORDERED),
    "proof of channels": transpose((2, 1, 2), (2, 0, 1), bits=1, proof=REORDERED),
    "proof of turns": transpose((1, 2, 2), (0, 2, 1), 2, bits=1, proof=REORDERED),
    "proof of backwards": transpose((1, 3, 2), (0, 2, 1), 1, (1,), bits=1, proof=REORDERED),
}  # fmt: skip


def enlarged(
    part_class, height, width, channels, factors, depth=None, bits=8, signed=False, ram=RAM, **more
):
    row = width * channels
    size = height * row
    if part_class is parts.DepthToSpace:
        row, size = (x * factors[0] * factors[1] for x in (row, size))
        depth = 1 << ((depth or row) - 1).bit_length()
    part = part_class(
        height=height, width=width, channels=channels, factors=factors, bits=bits, signed=signed,
        depth=depth or max(2, row), ram=ram,
    )  # fmt: skip
    return Example(part=part, sizes=[size], frames=4, **more)


upsample = partial(enlarged, parts.Upsample)
depth_to_space = partial(enlarged, parts.DepthToSpace)
ENLARGED = {
    "both": (3, 4, 2, (2, 2)), "rows only": (3, 4, 2, (3, 1)), "columns only": (2, 3, 2, (1, 3)),
    "identity": (2, 3, 2, (1, 1)), "one channel": (4, 5, 1, (2, 2)),
    "one column": (4, 1, 3, (2, 2)),
}  # fmt: skip
UPSAMPLES = {
    **{
        name: upsample(*case, verilog=VERILATED * (name == "rows only"))
        for name, case in ENLARGED.items()
    },
    "one code": upsample(1, 1, 1, (2, 3), verilog=VERILATED),
    "one pixel of many channels": upsample(1, 1, 7, (4, 4)),
    "large factors": upsample(2, 3, 2, (4, 5)),
    "both, u2": upsample(*ENLARGED["both"], 9, 2, False),
    "both, s8": upsample(*ENLARGED["both"], 30, 8, True, verilog=("cocotb",)),
    "both, s16": upsample(*ENLARGED["both"], 8, 16, True),
    "one row": upsample(1, 2, 1, (2, 2), 2, 1, proof=REORDERED),
    "two rows": upsample(2, 1, 1, (2, 2), 2, 1, proof=REORDERED),
    "channels": upsample(1, 1, 2, (2, 1), 3, 1, proof=REORDERED),
}
SPREAD = {
    **ENLARGED, "one code": (1, 1, 1, (1, 1)), "one pixel": (1, 1, 3, (4, 4)),
    "large factors": (2, 3, 1, (4, 3)),
}  # fmt: skip
SPREADS = {
    **{
        name: depth_to_space(*case, verilog=VERILATED * (name == "rows only"))
        for name, case in SPREAD.items()
    },
    **{
        f"{name}, two rows": depth_to_space(*case, 2 * case[1] * case[2] * case[3][0] * case[3][1])
        for name, case in SPREAD.items()
    },
    "both, u2": depth_to_space(*SPREAD["both"], None, 2, False),
    "both, s8": depth_to_space(*SPREAD["both"], None, 8, True, verilog=("cocotb",)),
    "both, s16": depth_to_space(*SPREAD["both"], None, 16, True),
    "shallow": depth_to_space(2, 1, 1, (2, 2), 4, 1, proof=REORDERED),
    "deep": depth_to_space(1, 1, 1, (2, 2), 8, 1, proof=REORDERED),
    "rows": depth_to_space(2, 2, 1, (2, 1), 8, 1, proof=REORDERED),
}


def interpolate(image, size, mode, bits=8, signed=True, ram=RAM, **more):
    height, width, channels = image
    part = parts.Interpolate(
        rows=Places.of(height, size[0], mode), columns=Places.of(width, size[1], mode),
        channels=channels, bits=bits, signed=signed, ram=ram,
    )  # fmt: skip
    return Example(part=part, sizes=[height * width * channels], frames=4, **more)


def any_places(seed):
    rng = np.random.default_rng(seed)
    image, size = rng.integers(1, 14, 3).tolist(), rng.integers(1, 14, 2).tolist()
    mode = ("half_pixel", "asymmetric", "align_corners")[seed % 3]
    return interpolate((*image[:2], image[2] % 4 + 1), size, mode, nightly=True)


THIRDS = (2, 3, 2), (6, 9), "half_pixel"
INTERPOLATIONS = {
    "thirds": interpolate(*THIRDS, verilog=("cocotb",)),
    "corner": interpolate((3, 2, 1), (5, 7), "asymmetric"),
    "aligned": interpolate((3, 4, 2), (7, 6), "align_corners"),
    "one pixel": interpolate((1, 1, 3), (3, 4), "half_pixel"),
    "to one pixel": interpolate((5, 7, 1), (1, 1), "align_corners"),
    "fewer": interpolate((11, 7, 2), (3, 2), "half_pixel", verilog=VERILATED),
    "far fewer": interpolate((23, 5, 1), (2, 3), "asymmetric"),
    "more rows, fewer columns": interpolate((2, 9, 1), (9, 4), "half_pixel"),
    "the same": interpolate((3, 3, 2), (3, 3), "half_pixel"),
    "s2": interpolate(*THIRDS, 2, True), "u8": interpolate(*THIRDS, 8, False),
    "s16": interpolate(*THIRDS, 16, True), "u1": interpolate(*THIRDS, 1, False),
    **{f"places {seed}": any_places(seed) for seed in range(60)},
}  # fmt: skip
IMAGES: Mapping[str, Mapping[str, Example]] = {
    **POOLS, **RUNNING, "Pad": PADS, "Transpose": TRANSPOSES, "Upsample": UPSAMPLES,
    "DepthToSpace": SPREADS, "Interpolate": INTERPOLATIONS,
}  # fmt: skip


LARGE_TILES = [(28, 8, 2), (14, 16, 2), (7, 32, 2), (9, 4, 3), (8, 64, 8), (5, 12, 5)]
LARGE = [(8, 8, 4), (28, 28, 1), (14, 14, 16), (5, 7, 12), (49, 1, 64)]
BORDERS = [((1, 1), (1, 1)), ((0, 1), (0, 0)), ((2, 0), (3, 3))]
LARGER = [
    ((8, 8, 4), (24, 24), "half_pixel", 8), ((28, 28, 1), (96, 96), "asymmetric", 8),
    ((14, 14, 16), (20, 31), "half_pixel", 8), ((5, 7, 12), (13, 22), "align_corners", 8),
    ((49, 40, 3), (10, 9), "half_pixel", 8), ((8, 8, 4), (24, 24), "half_pixel", 4),
    ((14, 14, 8), (20, 31), "half_pixel", 16),
]  # fmt: skip


def pools(device):
    del device
    for bits in (4, 8, 16):
        yield maxima(bits, True, 1, 1)
        yield sums(8, False, 1, {4: 11}.get(bits, bits))


def large_running_pools(device):
    for size, channels, kernel in LARGE_TILES:
        window = tiling(size, size, channels, (kernel, kernel))
        for single_port in dict.fromkeys((None, device.single_port)):
            fields = {"single_port": single_port, "ram": device.ram}
            yield running(parts.RunningMax, window, 8, False, **fields)
            if single_port == device.single_port:
                yield running(parts.RunningSum, window, 8, False, acc_bits=14, **fields)


def large_enlarged(device, part_class):
    for height, width, channels in LARGE:
        for factors in ((2, 2), (1, 3)):
            inner = max(1, channels // 4) if part_class is parts.DepthToSpace else channels
            depth = 2 * width * inner
            if part_class is parts.DepthToSpace:
                depth *= factors[0] * factors[1]
            yield enlarged(part_class, height, width, inner, factors, depth, ram=device.ram)


def large_transposes(device):
    for extents in LARGE:
        for order in ((2, 0, 1), (1, 0, 2)):
            yield transpose(extents, order, ram=device.ram)
        # Groups of channels that change places in each of so many pixels.
        yield transpose((1, 2, 8), (0, 2, 1), extents[0] * extents[1], ram=device.ram)


MEASURED: Measured = {
    "pool": pools, "running pool": large_running_pools,
    "pad": lambda _: [
        pad(padding, (height, width), channels, signed=False, pad_code=7)
        for height, width, channels in LARGE
        for padding in BORDERS
    ],
    "upsample": partial(large_enlarged, part_class=parts.Upsample),
    "depth to space": partial(large_enlarged, part_class=parts.DepthToSpace),
    "transpose": large_transposes,
    "interpolate": lambda device: [interpolate(*of, ram=device.ram) for of in LARGER],
}  # fmt: skip
