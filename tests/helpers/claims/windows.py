"""Line buffers, whose words are taps of windows over a padded image."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from prover import Claim

from claims.frames import RAM, beats, claim, marked, payloads
from nnef_hw import parts
from nnef_hw.hardware.geometry.window import Window

__all__ = ["WINDOWS"]

PAD = 2
FORMAT = {"bits": 2, "signed": False, "lanes": 1, "pad_code": PAD, "ram": RAM}
REGISTERED = replace(RAM, has_register=True)
SAME = ((1, 1), (1, 1))


def windows(image, window):
    """Return the taps of every window, row by row: [window, tap, channel block]."""
    padded = np.pad(image, (*window.padding, (0, 0)), constant_values=PAD)
    (rows, columns), (down, across) = window.reach, window.dilation
    return np.stack([
        padded[y : y + rows : down, x : x + columns : across].reshape(window.taps, -1)
        for y in range(0, window.out_height * window.stride[0], window.stride[0])
        for x in range(0, window.out_width * window.stride[1], window.stride[1])
    ])


def image_of(codes, window):
    return codes.reshape(window.height, window.width, window.channel_blocks)


def serial_words(taps, window):
    """Return the words of all windows, one tap of a channel block each."""
    words = []
    for n, of_window in enumerate(taps):
        for index in range(window.passes):
            blocks = of_window[:, index : index + 1] if window.by_channel else of_window
            final = n == len(taps) - 1 and index == window.passes - 1
            codes = blocks.reshape(-1).tolist()
            words += [
                {"data": [code], "last": last, "end": last and final}
                for code, last in zip(codes, [*[False] * (len(codes) - 1), True], strict=True)
            ]
    return words


def line_buffer(window, depth=None, *, decides_early=False, ram=RAM, **options):
    part = parts.LineBuffer(
        window=window, depth=depth or minimum_depth(window), decides_early=decides_early,
        **FORMAT | {"ram": ram},
    )  # fmt: skip
    return claim(
        part.build(), marked(window.beats),
        lambda codes: serial_words(windows(image_of(codes, window), window), window),
        together=window.pass_words * window.passes, **options,
    )  # fmt: skip


def minimum_depth(window):
    return max(2, 1 << (window.min_depth - 1).bit_length())


def endless_line_buffer(window, frames, *, decides_early=False, ram=RAM):
    """Windows that read rows of the frames before, of which the first ones are padding.

    The unmarked code is that of the padding, so that an image before the first one is like any.
    """
    part = parts.LineBuffer(
        window=window, depth=minimum_depth(window), decides_early=decides_early,
        **FORMAT | {"pad_code": 0, "ram": ram},
    )  # fmt: skip
    component, images = part.build(), marked(window.beats)

    def after(codes, lag):
        rows = np.zeros((window.history + (lag + 1) * window.height, window.width,
                         window.channel_blocks), int)  # fmt: skip
        rows[window.history : window.history + window.height] = image_of(codes, window)
        seen = rows[lag * window.height :][: window.history + window.height]
        return serial_words(windows(seen, window), window)

    lags = [payloads(component.o, [after(codes, lag) for codes in images]) for lag in range(frames)]
    return Claim(
        component=component, inputs={"i": payloads(component.i, map(beats, images))},
        outputs={"o": lags}, frame_bits=3, together=window.pass_words * window.passes,
    )  # fmt: skip


def parallel(window, **options):
    part = parts.ParallelLineBuffer(window=window, **FORMAT)

    def golden(codes):
        taps = np.repeat(windows(image_of(codes, window), window), window.passes, axis=0)
        return [
            {"data": word.reshape(-1).tolist(), "last": 1, "end": n == len(taps) - 1}
            for n, word in enumerate(taps)
        ]

    return claim(part.build(), marked(window.beats), golden, **options)


def banked(window, lines, *, ram=RAM, **options):
    part = parts.BankedLineBuffer(
        window=window, lines=lines, long_wires=ram.has_register, **FORMAT | {"ram": ram}
    )
    passes = 1 if window.by_channel else window.passes

    def golden(codes):
        words = []
        for taps in windows(image_of(codes, window), window):
            for _ in range(passes):
                words += [
                    {"data": taps[:, n].tolist(), "end": 0,
                     "last": window.by_channel or n == window.channel_blocks - 1}
                    for n in range(window.channel_blocks)
                ]  # fmt: skip
        words[-1]["end"] = 1
        return words

    return claim(part.build(), marked(window.beats), golden, **options)


LINE_BUFFERS = {
    "row": partial(line_buffer, Window(1, 3, 1, (1, 2))),
    "padded": partial(
        line_buffer, Window(1, 2, 1, (2, 2), padding=((1, 0), (0, 1))), patience=12, frame_bits=3
    ),
    "passes": partial(line_buffer, Window(1, 2, 2, (1, 2), passes=2), frame_bits=3),
    "by channel": partial(
        line_buffer, Window(2, 2, 2, (2, 2), passes=2, by_channel=True), frame_bits=3
    ),
    "strided": partial(line_buffer, Window(3, 2, 1, (1, 1), (2, 2))),
    "dilated": partial(line_buffer, Window(3, 1, 1, (2, 1), dilation=(2, 1)), frame_bits=3),
    "deep": partial(line_buffer, Window(1, 2, 1, (1, 2)), 8, frame_bits=3),
    "endless": partial(endless_line_buffer, Window(1, 1, 1, (3, 1), history=2), 3),
    "endless by channel": partial(
        endless_line_buffer, Window(1, 1, 2, (2, 1), passes=2, by_channel=True, history=1), 2
    ),
}

WINDOWS = {
    "LineBuffer": LINE_BUFFERS | {
        f"{name}, early, registered": partial(made, decides_early=True, ram=REGISTERED)
        for name, made in (LINE_BUFFERS | {
            # two frames of two words are inside with the register
            "strided": partial(LINE_BUFFERS["strided"], frame_bits=3),
        }).items()
    },
    "ParallelLineBuffer": {
        "image": partial(parallel, Window(2, 3, 1, (2, 2))),
        "padded": partial(parallel, Window(2, 2, 1, (2, 2), padding=((1, 0), (0, 1))), patience=12),
        "passes": partial(parallel, Window(1, 3, 1, (1, 2), passes=2)),
        "strided": partial(parallel, Window(3, 3, 1, (2, 1), (1, 2))),
    },
    "BankedLineBuffer": {
        "image": partial(banked, Window(2, 2, 1, (2, 2)), 2, frame_bits=3),
        "padded": partial(banked, Window(2, 2, 1, (2, 2), padding=((0, 1), (0, 1))), 2,
                          frame_bits=3),
        "passes": partial(banked, Window(1, 2, 2, (1, 2), passes=2), 1, frame_bits=3),
        "by channel": partial(banked, Window(2, 1, 2, (2, 1), passes=2, by_channel=True), 4,
                              frame_bits=3),
        "registered": partial(banked, Window(2, 2, 1, (2, 2)), 2, ram=REGISTERED, frame_bits=3),
    },
}  # fmt: skip
