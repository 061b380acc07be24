"""Examples of line buffers, whose words are taps of windows over padded images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from examples.example import RAM, REGISTERED, Example, Measured, Proof, swept
from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window

__all__ = ["MEASURED", "WINDOWS"]

VERILATED = ("verilator",)
SAME = ((1, 1), (1, 1))
RAMS = {"plain": RAM, "registered": REGISTERED}
FORMATS = {
    "u2": (2, False, 3), "s4": (4, True, -8), "s8": (8, True, -1), "u16": (16, False, 9),
}  # fmt: skip
SMALL = Window(3, 3, 2, (2, 2), padding=((1, 0), (0, 1)), passes=2)
PROVED = {"bits": 2, "signed": False, "pad_code": 2}


def least_depth(window: Window) -> int:
    return max(2, 1 << (window.min_depth - 1).bit_length())


def line_buffer(
    window, ram=RAM, early=False, depth=None, bits=8, signed=False, pad_code=7, lanes=1, **more
):
    part = parts.LineBuffer(
        window=window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code,
        depth=depth or least_depth(window), ram=ram, decides_early=early,
    )  # fmt: skip
    words = window.out_pixels * window.passes * window.pass_words
    return Example(
        part=part, sizes=[window.beats], frames=4, result_frame=words,
        stalls_predicted=window.pass_words == 1, **more,
    )  # fmt: skip


SERIAL = {
    "same 3 x 3 twice": Window(5, 6, 2, (3, 3), padding=SAME, passes=2),
    "pool, uncovered tail": Window(7, 7, 3, (2, 2), (2, 2), passes=3, by_channel=True),
    "pool, overlapping, padded": Window(
        5, 5, 2, (3, 3), (2, 2), padding=((0, 1), (1, 0)), passes=2, by_channel=True
    ),
    "whole image": Window(3, 3, 4, (3, 3), passes=2),
    "linear": Window(1, 1, 5, passes=3),
    "one word": Window(1, 1, 1),
    "column": Window(9, 1, 2, (5, 1), (2, 1), padding=((2, 2), (0, 0))),
    "dilated rectangle": Window(8, 8, 1, (2, 3), (3, 2), (2, 1), ((0, 1), (1, 0))),
    "dilated columns": Window(3, 7, 2, (1, 3), dilation=(1, 3)),
    "wide padding": Window(2, 3, 1, (3, 2), padding=((3, 0), (0, 4)), passes=2),
    "strided": Window(3, 3, 1, (2, 2), (2, 2), passes=3),
    "stride beyond kernel": Window(6, 6, 1, (1, 1), (4, 4)),
    "stride skips most": Window(7, 5, 2, (2, 1), (5, 3), passes=2),
    "point": Window(3, 4, 3, passes=4),
    "goes on": Window(1, 1, 3, (4, 1), passes=2, history=3),
    "goes on, dilated": Window(1, 1, 2, (3, 1), dilation=(4, 1), history=8),
    "goes on, strided, by channel": Window(
        4, 1, 2, (5, 1), (2, 1), passes=2, by_channel=True, history=3
    ),
    "goes on, padded": Window(2, 5, 1, (3, 3), (2, 2), padding=((0, 0), (1, 1)), history=1),
    "goes on in padding": Window(1, 3, 2, (3, 1), padding=((0, 0), (1, 1)), history=2),
    "goes on behind": Window(1, 2, 2, (3, 1), history=3, lag=1),
    "goes on far behind": Window(2, 1, 2, (1, 1), (2, 1), history=9, lag=10),
}
DEEP = {name: SERIAL[name] for name in ("strided", "wide padding", "goes on in padding")}
EARLY = {"late": False, "early": True}


def proved_line_buffer(window, depth=None, pad_code=2, **proof):
    promise = Proof(**{"together": window.pass_words * window.passes, **proof})
    return line_buffer(window, depth=depth, **{**PROVED, "pad_code": pad_code}, proof=promise)


PROOFS = {
    "row": proved_line_buffer(Window(1, 3, 1, (1, 2))),
    "padded": proved_line_buffer(
        Window(1, 2, 1, (2, 2), padding=((1, 0), (0, 1))), patience=12, frame_bits=3
    ),
    "passes": proved_line_buffer(Window(1, 2, 2, (1, 2), passes=2), frame_bits=3),
    "by channel": proved_line_buffer(
        Window(2, 2, 2, (2, 2), passes=2, by_channel=True), frame_bits=3
    ),
    "strided": proved_line_buffer(Window(3, 2, 1, (1, 1), (2, 2))),
    "dilated": proved_line_buffer(Window(3, 1, 1, (2, 1), dilation=(2, 1)), frame_bits=3),
    "deep": proved_line_buffer(Window(1, 2, 1, (1, 2)), 8, frame_bits=3),
    # the unmarked code is the padding, so that an image before the first one is like any
    "endless": proved_line_buffer(
        Window(1, 1, 1, (3, 1), history=2), pad_code=0, lags=3, frame_bits=3
    ),
    "endless by channel": proved_line_buffer(
        Window(1, 1, 2, (2, 1), passes=2, by_channel=True, history=1), pad_code=0, lags=2,
        frame_bits=3,
    ),
}  # fmt: skip


def registered(example):
    part = replace(example.part, decides_early=True, ram=REGISTERED)
    # two frames of two words are inside with the register
    bits = 3 if example is PROOFS["strided"] else example.proof.frame_bits
    return replace(example, part=part, proof=replace(example.proof, frame_bits=bits))


def parallel(window, bits=8, signed=False, pad_code=7, lanes=1, ram=RAM, **more):
    part = parts.ParallelLineBuffer(
        window=window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code, ram=ram
    )
    return Example(part=part, sizes=[window.beats], frames=4, **more)


UNEVEN = Window(4, 5, 1, (3, 2), padding=((0, 2), (1, 0)), passes=2)
STRIDES = Window(6, 7, 1, (3, 2), (2, 3), padding=((2, 0), (0, 1)), passes=3)
PARALLEL = {
    "same 3 x 3": parallel(Window(5, 6, 1, (3, 3), padding=SAME)),
    "uneven padding twice": parallel(UNEVEN), "stride per axis": parallel(STRIDES),
    "uncovered tail": parallel(Window(7, 8, 1, (2, 2), (3, 3))),
    "whole image": parallel(Window(3, 4, 1, (3, 4), passes=2)),
    "one row": parallel(Window(3, 6, 1, (1, 3), (1, 2))),
    "one column": parallel(Window(6, 2, 1, (3, 1), (2, 1))),
    "two columns": parallel(Window(5, 2, 1, (4, 2))),
    "image of one column": parallel(Window(5, 1, 1, (2, 2), padding=((0, 0), (1, 1)))),
    "point": parallel(Window(3, 3, 1, passes=2)),
    "padding ends with the window": parallel(Window(3, 3, 1, (2, 3), padding=((1, 0), (2, 0)))),
    **swept(lambda *fmt: parallel(UNEVEN, *fmt), FORMATS, [1, 3]),
    "verilog": parallel(Window(5, 6, 1, (3, 3), padding=SAME), lanes=2, verilog=VERILATED),
    "cocotb": parallel(STRIDES, lanes=2, verilog=("cocotb",)),
    "image": parallel(Window(2, 3, 1, (2, 2)), **PROVED, proof=Proof()),
    "padded": parallel(
        Window(2, 2, 1, (2, 2), padding=((1, 0), (0, 1))), **PROVED, proof=Proof(patience=12)
    ),
    "passes": parallel(Window(1, 3, 1, (1, 2), passes=2), **PROVED, proof=Proof()),
    "strided": parallel(Window(3, 3, 1, (2, 1), (1, 2)), **PROVED, proof=Proof()),
}  # fmt: skip


def banked(
    window, ram=RAM, spare=0, bits=8, signed=False, pad_code=7, lanes=1, lines=None,
    long_wires=None, **more,
):  # fmt: skip
    """A line buffer of the window's reach and some more rows, rounded up to a power of two."""
    long_wires = ram.has_register if long_wires is None else long_wires
    lines = lines or 1 << (window.reach[0] + spare - 1).bit_length()
    part = parts.BankedLineBuffer(
        window=window, bits=bits, signed=signed, lanes=lanes, pad_code=pad_code, lines=lines,
        ram=ram, long_wires=long_wires,
    )  # fmt: skip
    return Example(part=part, sizes=[window.beats], frames=4, **more)


def proved_banked(window, lines, ram=RAM):
    return banked(window, ram, lines=lines, **PROVED, proof=Proof(frame_bits=3))


BANKED = {
    "same 3 x 3": Window(5, 6, 2, (3, 3), padding=SAME),
    "same 3 x 3, passes": Window(4, 5, 1, (3, 3), padding=SAME, passes=3),
    "depthwise": Window(5, 4, 3, (3, 3), padding=SAME, passes=3, by_channel=True),
    "depthwise, stride 2": Window(
        6, 7, 2, (3, 3), (2, 2), padding=((0, 1), (0, 1)), passes=2, by_channel=True
    ),
    "pool": Window(6, 4, 3, (2, 2), (2, 2), passes=3, by_channel=True),
    "pool, uncovered tail": Window(7, 7, 2, (2, 2), (2, 2), passes=2, by_channel=True),
    "pool, overlapping": Window(5, 5, 2, (3, 3), (2, 2), padding=SAME, passes=2, by_channel=True),
    "blocks and passes": Window(4, 4, 3, (2, 2), padding=((1, 0), (0, 1)), passes=2),
    "whole image": Window(3, 3, 4, (3, 3)),
    "tall, stride 2": Window(7, 5, 1, (10, 4), (2, 2), padding=((4, 5), (1, 1)), passes=3),
    "column": Window(9, 1, 2, (5, 1), (2, 1), padding=((2, 2), (0, 0)), passes=2, by_channel=True),
    "row": Window(1, 9, 2, (1, 3), padding=((0, 0), (1, 1)), passes=2, by_channel=True),
    "dilated": Window(7, 8, 2, (3, 3), dilation=(2, 2), padding=((2, 2), (2, 2))),
    "dilated by five": Window(12, 1, 1, (3, 1), dilation=(5, 1), padding=((5, 5), (0, 0))),
    "wide padding": Window(4, 5, 1, (3, 3), padding=((2, 2), (2, 2))),
    "point": Window(3, 4, 3, passes=2),
    "one word": Window(1, 1, 1),
    "stride beyond kernel": Window(8, 8, 1, (1, 1), (4, 4)),
    "short images": Window(1, 4, 2, (3, 3), padding=SAME),
}
SPARE = {name: BANKED[name] for name in ("same 3 x 3", "depthwise, stride 2", "pool")}
WINDOWS: Mapping[str, Mapping[str, Example]] = {
    "LineBuffer": {
        **{
            f"{name}, {how}, {early}": line_buffer(
                window, ram, EARLY[early], nightly=(n + at + EARLY[early]) % 2 == 1
            )
            for n, (name, window) in enumerate(SERIAL.items())
            for at, (how, ram) in enumerate(RAMS.items())
            for early in EARLY
        },
        **swept(
            lambda bits, signed, pad_code, lanes, ram: line_buffer(
                SMALL, ram, bits=bits, signed=signed, pad_code=pad_code, lanes=lanes
            ),
            FORMATS, [1, 3], RAMS,
        ),
        **swept(lambda *of: line_buffer(*of, depth=64), DEEP, RAMS, EARLY, prefix="deep "),
        "steady": line_buffer(Window(4, 4, 1, (2, 2), passes=4), depth=64),
        "verilog": line_buffer(SERIAL["wide padding"], lanes=2, verilog=VERILATED),
        "cocotb": line_buffer(SERIAL["pool, uncovered tail"], lanes=2, verilog=("cocotb",)),
        **PROOFS,
        **{f"{name}, early, registered": registered(each) for name, each in PROOFS.items()},
    },
    "ParallelLineBuffer": PARALLEL,
    "BankedLineBuffer": {
        **{
            f"{name}, {how}": banked(window, ram)
            for name, window in BANKED.items()
            for how, ram in RAMS.items()
        },
        **{f"{name}, lines to spare": banked(window, spare=2 * window.stride[0])
           for name, window in SPARE.items()},
        **swept(
            lambda bits, signed, pad_code, lanes, ram: banked(
                SMALL, ram, bits=bits, signed=signed, pad_code=pad_code, lanes=lanes
            ),
            FORMATS, [1, 3], RAMS,
        ),
        "verilog": banked(BANKED["depthwise, stride 2"], verilog=VERILATED),
        "verilog, dilated": banked(BANKED["dilated"], verilog=VERILATED),
        "cocotb": banked(BANKED["depthwise"], verilog=("cocotb",)),
        "image": proved_banked(Window(2, 2, 1, (2, 2)), 2),
        "padded": proved_banked(Window(2, 2, 1, (2, 2), padding=((0, 1), (0, 1))), 2),
        "passes": proved_banked(Window(1, 2, 2, (1, 2), passes=2), 1),
        "by channel": proved_banked(Window(2, 1, 2, (2, 1), passes=2, by_channel=True), 4),
        "registered": proved_banked(Window(2, 2, 1, (2, 2)), 2, REGISTERED),
    },
}  # fmt: skip


LARGE = [
    Window(28, 28, 1, (3, 3), passes=2), Window(28, 28, 1, (3, 3), padding=SAME, passes=4),
    Window(28, 28, 1, (5, 5), padding=((2, 2), (2, 2)), passes=1),
    Window(32, 32, 3, (3, 3), padding=SAME, passes=16),
    Window(14, 14, 8, (3, 3), padding=SAME, passes=4), Window(14, 14, 6, (5, 5), passes=16),
    Window(13, 13, 16, (3, 3), (2, 2), passes=8), Window(26, 1, 12, (5, 1), passes=6),
    Window(29, 1, 12, (3, 1), padding=((1, 1), (0, 0)), passes=24), Window(10, 10, 16, passes=32),
    Window(1, 1, 1, passes=1), Window(1, 1, 16, passes=16), Window(1, 1, 64, passes=10),
    Window(1, 1, 200, passes=10), Window(1, 1, 784, passes=8),
    Window(28, 28, 4, (2, 2), (2, 2), passes=4, by_channel=True),
    Window(24, 24, 6, (2, 2), (2, 2), passes=6, by_channel=True),
    Window(8, 8, 64, (8, 8), passes=64, by_channel=True),
    Window(15, 15, 16, (3, 3), (2, 2), padding=SAME, passes=16, by_channel=True),
    Window(1, 1, 12, (3, 1), dilation=(4, 1), passes=8, history=8),
    Window(1, 1, 40, (10, 1), passes=40, by_channel=True, history=9),
    Window(2, 5, 8, (10, 4), (2, 2), padding=((0, 0), (1, 1)), passes=4, history=8),
]  # fmt: skip
LARGE_PARALLEL = [
    (1, Window(28, 28, 1, (3, 3))), (1, Window(28, 28, 1, (3, 3), passes=4)),
    (1, Window(28, 28, 1, (3, 3), (2, 2))),
    (1, Window(28, 28, 1, (5, 5), padding=((2, 2), (2, 2)), passes=2)),
    (1, Window(8, 8, 1, (3, 3), padding=SAME, passes=4)),
    (3, Window(32, 32, 1, (3, 3), padding=SAME, passes=16)),
    (4, Window(14, 14, 1, (2, 2), passes=8)),
]  # fmt: skip
LARGE_BANKED = [
    (1, 4, Window(14, 14, 8, (3, 3), padding=SAME, passes=8, by_channel=True)),
    (4, 4, Window(14, 14, 8, (3, 3), padding=SAME, passes=8, by_channel=True)),
    (1, 4, Window(25, 5, 64, (3, 3), padding=SAME, passes=64, by_channel=True)),
    (8, 4, Window(25, 5, 8, (3, 3), padding=SAME, passes=8, by_channel=True)),
    (1, 8, Window(28, 28, 6, (5, 5), passes=6, by_channel=True)),
    (2, 4, Window(32, 32, 3, (3, 3), (2, 2), passes=3, by_channel=True)),
    (3, 4, Window(32, 32, 1, (3, 3), padding=SAME, passes=16)),
]  # fmt: skip


def large_line_buffers(device):
    for n, window in enumerate(LARGE):
        shallow = least_depth(window)
        for depth in (shallow, 4 * shallow):
            for lanes in (1,) if window.by_channel or n % 2 else (1, 4):
                yield line_buffer(window, device.ram, depth=depth, lanes=lanes, pad_code=0)


MEASURED: Measured = {
    "line buffer": large_line_buffers,
    "parallel line buffer": lambda device: [
        parallel(window, lanes=lanes, pad_code=0, ram=device.ram)
        for lanes, window in LARGE_PARALLEL
    ],
    "banked line buffer": lambda device: [
        banked(
            window, device.ram, lanes=lanes, pad_code=0, lines=lines, long_wires=device.long_wires
        )
        for lanes, lines, window in LARGE_BANKED
    ],
}
