"""Components that move beats: queues, borders, turns, other orders."""

from __future__ import annotations

from functools import partial

import numpy as np
from prover import Claim

from claims.frames import RAM, beats, claim, marked, payloads
from nnef_hw import parts
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.rtl.streams.fork import Fork
from nnef_hw.rtl.streams.stream import Fifo

__all__ = ["MOVEMENT"]

NARROW = BlockRam("narrow", ((16, 1),))


def fifo(depth):
    frames = [frame.tolist() for frame in marked(3)]
    return Claim(
        component=Fifo(1, depth=depth), inputs={"i": frames}, outputs={"o": frames},
        frame_bits=2 + depth // 3, patience=2,
    )  # fmt: skip


def block_fifo(kind, depth, ram):
    part = kind(bits=1, signed=False, frame=3, depth=depth, ram=ram)
    component = part.component_class()(part)
    return claim(component, marked(3), beats, frame_bits=2 + depth // 3, patience=4)


def fork(branches):
    frames = [frame.tolist() for frame in marked(3)]
    return Claim(
        component=Fork(1, branches=branches), inputs={"i": frames},
        outputs={f"o{n}": frames for n in range(branches)}, patience=2,
    )  # fmt: skip


def pad(height, width, channels, padding):
    part = parts.Pad(
        height=height, width=width, channels=channels, padding=padding, pad_code=2, bits=2,
        signed=False,
    )  # fmt: skip

    def golden(codes):
        image = codes.reshape(height, width, channels)
        return beats(np.pad(image, (*padding, (0, 0)), constant_values=2))

    return claim(part.build(), marked(height * width * channels), golden, patience=2)


def delay(count, frame):
    part = parts.Delay(count=count, code=2, frame=frame, bits=2, signed=False)
    component, frames = part.build(), marked(frame)

    def shifted(codes):
        items = beats(codes)
        return [{**item, "last": (n + count) % frame == frame - 1} for n, item in enumerate(items)]

    first = [{"data": [2], "last": n % frame == frame - 1} for n in range(count)]
    return Claim(
        component=component,
        inputs={"i": payloads(component.i, map(beats, frames))},
        outputs={"o": payloads(component.o, map(shifted, frames))},
        ahead={"o": payloads(component.o, [first])[0]}, patience=4,
    )  # fmt: skip


def state(count, style):
    codes = [2] * count if style == "equal" else [2 + n % 2 for n in range(count)]
    part = parts.State(count=count, bits=2, signed=False, ram=RAM, style=style)
    component, frames = part.build(codes=codes), [beats(frame) for frame in marked(count)]
    return Claim(
        component=component,
        inputs={"i": payloads(component.i, frames)}, outputs={"o": payloads(component.o, frames)},
        ahead={"o": payloads(component.o, [beats(codes)])[0]}, patience=4,
    )  # fmt: skip


def state_of_loop(count, steps):
    """All that passes between initial codes is one frame here, which ends with initial codes."""
    codes = [2 + n % 2 for n in range(count)]
    part = parts.State(count=count, bits=2, signed=False, ram=RAM, style="logic", steps=steps)
    component = part.build(codes=codes)
    frames = marked((steps - 1) * count)
    given = [beats(np.concatenate([frame, codes]), frame=count) for frame in frames]
    return Claim(
        component=component,
        inputs={"i": payloads(component.i, [beats(frame, frame=count) for frame in frames])},
        outputs={"o": payloads(component.o, given)},
        ahead={"o": payloads(component.o, [beats(codes)])[0]}, patience=4,
    )  # fmt: skip


def constant(count, repeats, style):
    codes = [n % 4 for n in range(count)]
    part = parts.Constant(count=count, repeats=repeats, bits=2, signed=False, ram=RAM, style=style)
    component = part.build(codes=codes)
    frames = payloads(component.o, [beats(codes * repeats)])
    return Claim(component=component, inputs={}, outputs={"o": frames}, patience=3)


def pack(channels, lanes, in_lanes=1):
    part = parts.Pack(channels=channels, lanes=lanes, bits=1, signed=False, in_lanes=in_lanes)

    def golden(codes):
        pixels = codes.reshape(-1, channels)
        return beats(np.pad(pixels, ((0, 0), (0, -channels % lanes))), lanes)

    return claim(part.build(), marked(2 * channels), golden, lanes=in_lanes, patience=3)


def concat(runs):
    """A stream per run, two turns a frame; the mark may be in any of them."""
    part = parts.Concat(runs=runs, bits=1, signed=False)
    component = part.build()
    frames = [frame.reshape(2, -1) for frame in marked(2 * sum(runs))]
    ends = np.cumsum(runs)
    inputs = {
        f"i{n}": payloads(component.i0, [beats(frame[:, end - run : end]) for frame in frames])
        for n, (run, end) in enumerate(zip(runs, ends, strict=True))
    }
    return Claim(
        component=component, inputs=inputs,
        outputs={"o": payloads(component.o, map(beats, frames))},
        patience=3,
    )  # fmt: skip


def split(runs, kept):
    part = parts.Split(runs=runs, kept=kept, turns=2, bits=1, signed=False)
    component = part.build()
    frames = [frame.reshape(2, -1) for frame in marked(2 * sum(runs))]
    ends = np.cumsum(runs)
    outputs = {
        f"o{n}": payloads(component.i, [beats(frame[:, end - run : end]) for frame in frames])
        for n, (run, end) in enumerate(zip(runs, ends, strict=True)) if kept[n]
    }  # fmt: skip
    return Claim(
        component=component, inputs={"i": payloads(component.i, map(beats, frames))},
        outputs=outputs, patience=2,
    )  # fmt: skip


def transpose(extents, order, turns=1, backwards=()):
    part = parts.Transpose(
        extents=extents, order=order, turns=turns, backwards=backwards, bits=1, signed=False,
        ram=RAM,
    )  # fmt: skip

    def golden(codes):
        images = codes.reshape(turns, *extents)
        return beats(np.stack([np.flip(image, backwards).transpose(order) for image in images]))

    return claim(part.build(), marked(turns * int(np.prod(extents))), golden, frame_bits=3)


def depth_to_space(height, width, channels, factors, depth):
    part = parts.DepthToSpace(
        height=height, width=width, channels=channels, factors=factors, depth=depth, bits=1,
        signed=False, ram=RAM,
    )  # fmt: skip

    def golden(codes):
        return beats(codes.reshape(height, width, *factors, channels).transpose(0, 2, 1, 3, 4))

    return claim(
        part.build(),
        marked(height * width * channels * factors[0] * factors[1]),
        golden,
        frame_bits=3,
    )


def upsample(height, width, channels, factors, depth):
    part = parts.Upsample(
        height=height, width=width, channels=channels, factors=factors, depth=depth, bits=1,
        signed=False, ram=RAM,
    )  # fmt: skip

    def golden(codes):
        image = codes.reshape(height, width, channels)
        return beats(image.repeat(factors[0], axis=0).repeat(factors[1], axis=1))

    return claim(part.build(), marked(height * width * channels), golden, frame_bits=3)


MOVEMENT = {
    "Fifo": {f"depth {depth}": partial(fifo, depth) for depth in (2, 3, 4, 6, 9)},
    **{
        kind.__name__: {
            "last stored": partial(block_fifo, kind, 5, RAM),
            "last counted": partial(block_fifo, kind, 6, NARROW),
            "shallow": partial(block_fifo, kind, 4, RAM),
            "deep": partial(block_fifo, kind, 8, RAM),
        }
        for kind in (parts.BlockFifo, parts.CutFifo)
    },
    "Fork": {f"{branches} branches": partial(fork, branches) for branches in (2, 3, 4)},
    "Pad": {
        "all around": partial(pad, 2, 2, 1, ((1, 1), (1, 1))),
        "ahead": partial(pad, 2, 1, 2, ((2, 0), (0, 1))),
        "behind": partial(pad, 1, 3, 1, ((0, 2), (0, 0))),
    },
    "Delay": {
        "less than a frame": partial(delay, 2, 3),
        "more than a frame": partial(delay, 5, 2),
        "one": partial(delay, 1, 1),
    },
    "State": {
        "equal": partial(state, 3, "equal"), "logic": partial(state, 3, "logic"),
        "block": partial(state, 4, "block"), "one code": partial(state, 1, "equal"),
        "loop": partial(state_of_loop, 2, 3), "loop of one code": partial(state_of_loop, 1, 2),
    },
    "Constant": {
        "logic": partial(constant, 3, 2, "logic"), "block": partial(constant, 4, 1, "block"),
        "one code": partial(constant, 1, 3, "logic"),
    },
    "Pack": {
        "short beat": partial(pack, 3, 2), "full beats": partial(pack, 4, 2),
        "one beat": partial(pack, 3, 3), "wider than a pixel": partial(pack, 2, 3),
        "several codes": partial(pack, 6, 4, 2),
    },
    "Concat": {"two": partial(concat, (1, 2)), "three": partial(concat, (2, 1, 1))},
    "Split": {
        "two": partial(split, (1, 2), (True, True)),
        "crop": partial(split, (1, 2, 1), (False, True, False)),
        "three": partial(split, (2, 1, 1), (True, False, True)),
    },
    "Transpose": {
        "columns first": partial(transpose, (2, 2, 1), (1, 0, 2)),
        "channels first": partial(transpose, (2, 1, 2), (2, 0, 1)),
        "turns": partial(transpose, (1, 2, 2), (0, 2, 1), 2),
        "backwards": partial(transpose, (1, 3, 2), (0, 2, 1), 1, (1,)),
    },
    "DepthToSpace": {
        "shallow": partial(depth_to_space, 2, 1, 1, (2, 2), 4),
        "deep": partial(depth_to_space, 1, 1, 1, (2, 2), 8),
        "rows": partial(depth_to_space, 2, 2, 1, (2, 1), 8),
    },
    "Upsample": {
        "one row": partial(upsample, 1, 2, 1, (2, 2), 2),
        "two rows": partial(upsample, 2, 1, 1, (2, 2), 2),
        "channels": partial(upsample, 1, 1, 2, (2, 1), 3),
    },
}  # fmt: skip
