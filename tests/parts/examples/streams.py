"""Examples of streams that are passed on: queues, turns, states, widths, copies side by side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from examples.example import RAM, Example, Measured, Proof, swept
from examples.images import TILES, tiling
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import Requant
from nnef_hw.hardware.geometry.blockram import BlockRam
from nnef_hw.rtl.arrays.array import sum_layout
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["MEASURED", "REQUANTIZER", "STREAMS"]

VERILATED = ("verilator",)
BOTH = ("verilator", "cocotb")
CODES = {"bits": 8, "signed": True}
BITS = {"bits": 1, "signed": False}


def registers(part_class, depth, bits=8, shape=None, **more):
    part = part_class(depth=depth, bits=bits)
    return Example(part=part, contents={"shape": shape or bits}, sizes=[20], **more)


def proved_registers(depth):
    proof = Proof(frame_bits=2 + depth // 3, patience=2)
    part = parts.Fifo(bits=1, depth=depth)
    return Example(part=part, contents={"shape": 1}, sizes=[3], proof=proof)


def queue(part_class, depth, ram=RAM, bits=8, signed=False, lanes=1, frame=7, **more):
    part = part_class(bits=bits, signed=signed, lanes=lanes, frame=frame, depth=depth, ram=ram)
    contents = {"shape": beat_layout(bits=bits, signed=signed, lanes=lanes)}
    frames = max(22, 2 * depth // frame + 1)
    return Example(part=part, contents=contents, sizes=[frame], frames=frames, **more)


NINE_BITS, NARROW = BlockRam("nine", ((16, 9),)), BlockRam("narrow", ((16, 1),))


def queues(part_class):
    make = partial(queue, part_class)
    proved = {
        "last stored": (5, RAM), "last counted": (6, NARROW), "shallow": (4, RAM), "deep": (8, RAM),
    }  # fmt: skip
    return {
        **{f"depth {depth}": make(depth) for depth in (4, 5, 10, 18, 19, 40, 300)},
        "verilog": make(21, verilog=BOTH),
        "last in nine bits": make(12, NINE_BITS, 8, True),
        "last in eight bits": make(12, BlockRam("eight", ((16, 8),)), 8, True),
        "three lanes": make(12, NINE_BITS, 3, False, 3),
        "four lanes": make(12, NINE_BITS, 4, True, 4),
        "sixteen bits": make(12, NINE_BITS, 16, True),
        **{
            name: make(
                depth, ram, **BITS, frame=3, proof=Proof(frame_bits=2 + depth // 3, patience=4)
            )
            for name, (depth, ram) in proved.items()
        },
    }


def concat(runs, *, turns=3, bits=8, signed=True, **more):
    part = parts.Concat(runs=runs, bits=bits, signed=signed)
    return Example(part=part, sizes=[turns * run for run in runs], **more)


def split(runs, kept, *, turns=3, bits=8, signed=True, **more):
    part = parts.Split(runs=runs, turns=turns, kept=kept, bits=bits, signed=signed)

    def results(operands):
        pieces = enumerate(part.runs_of(operands[0]))
        return {f"o{n}": codes for n, codes in pieces if kept[n]}

    return Example(part=part, sizes=[turns * sum(runs)], results=results, **more)


RUNS = [(1, 1), (3, 2), (1, 4, 2), (5, 1, 1, 3), (8, 8)]


def all_but(count, dropped):
    return tuple(n not in dropped for n in range(count))


SPLITS = {
    **{
        f"{runs} {name}": split(runs, all_but(len(runs), dropped))
        for runs in RUNS
        for name, dropped in {
            "all": (), "not first": (0,), "not last": (len(runs) - 1,),
        }.items()
    },
    "cropped": split((3, 9, 3), (False, True, False), turns=4),
    "verilog": split((3, 1, 2), (True, True, True), verilog=VERILATED),
    "two": split((1, 2), (True, True), turns=2, **BITS, proof=Proof(patience=2)),
    "crop": split((1, 2, 1), (False, True, False), turns=2, **BITS, proof=Proof(patience=2)),
    "three": split((2, 1, 1), (True, False, True), turns=2, **BITS, proof=Proof(patience=2)),
}  # fmt: skip


def constant(
    count, repeats=4, style="block", bits=8, signed=True, codes=None, ram=RAM, lanes=1, **more
):  # fmt: skip
    if codes is None:
        codes = np.random.default_rng(count).integers(-128, 128, count * lanes).tolist()
    part = parts.Constant(
        count=count, repeats=repeats, bits=bits, signed=signed, ram=ram, style=style, lanes=lanes
    )
    return Example(part=part, contents={"codes": codes}, sizes=[], timed=False, **more)


def proved_constant(count, repeats, style):
    codes = [n % 4 for n in range(count)]
    return constant(count, repeats, style, 2, False, codes, proof=Proof(patience=3))


def delay(count, frame, code=-3, bits=8, signed=True, **more):
    part = parts.Delay(count=count, code=code, frame=frame, bits=bits, signed=signed)
    return Example(part=part, sizes=[frame], result_frame=frame, **more)


def proved_delay(count, frame):
    return delay(count, frame, 2, 2, False, proof=Proof(ahead=count, patience=4))


def state(count, style, steps=1, bits=8, signed=True, codes=None, ram=RAM, lanes=1, **more):
    if codes is None:
        drawn = np.random.default_rng(count).integers(-128, 128, count * lanes).tolist()
        codes = [9] * count * lanes if style == "equal" else drawn
    part = parts.State(
        count=count, bits=bits, signed=signed, ram=ram, style=style, steps=steps, lanes=lanes
    )
    return Example(
        part=part, contents={"codes": codes}, sizes=[part.passed or count], in_frame=count,
        result_frame=count, **more,
    )  # fmt: skip


def proved_state(count, style, steps=1):
    codes = [2] * count if style == "equal" else [2 + n % 2 for n in range(count)]
    return state(count, style, steps, 2, False, codes, proof=Proof(ahead=count, patience=4))


def pack(channels, lanes, bits=8, signed=True, in_lanes=1, **more):
    part = parts.Pack(channels=channels, lanes=lanes, bits=bits, signed=signed, in_lanes=in_lanes)
    return Example(part=part, sizes=[4 * channels // in_lanes], **more)


def proved_pack(channels, lanes, in_lanes=1):
    part = parts.Pack(channels=channels, lanes=lanes, in_lanes=in_lanes, **BITS)
    return Example(part=part, sizes=[2 * channels // in_lanes], proof=Proof(patience=3))


PACKS = {
    **swept(
        lambda sizes, fmt: pack(*sizes["of"], *fmt["is"]),
        {str(x): {"of": x} for x in [(7, 3), (6, 3), (2, 2), (3, 3), (4, 5), (5, 2), (9, 8)]},
        {"u2": {"is": (2, False)}, "s8": {"is": (8, True)}, "u16": {"is": (16, False)}},
    ),
    **{
        f"{channels} in beats of {in_lanes}": pack(channels, lanes, in_lanes=in_lanes)
        for channels, lanes, in_lanes in [(6, 4, 2), (8, 4, 2), (6, 6, 3), (4, 4, 4), (10, 4, 2)]
    },
    "short beat": proved_pack(3, 2), "full beats": proved_pack(4, 2),
    "one beat": proved_pack(3, 3), "wider than a pixel": proved_pack(2, 3),
    "several codes": proved_pack(6, 4, 2),
}  # fmt: skip
REQUANTIZER = parts.Requantizer(
    channels=3, acc_bits=14, factor_bits=8, digit_bits=2, stages=2, bits=8, signed=True
)


def requantizers(lanes):
    """Every lane has constants of its own."""
    channels, rng = 3 * lanes, np.random.default_rng(lanes)
    requant = Requant(tuple(rng.integers(1, 256, channels).tolist()), 12, 3, -128, 127)
    bias = rng.integers(-500, 500, channels)
    each = [
        {"requant": requant.of_channels(slice(n, None, lanes)), "bias": bias[n::lanes].tolist()}
        for n in range(lanes)
    ]
    return Example(
        part=parts.Lanes(part=REQUANTIZER, lanes=lanes), contents={"each": each}, frames=2,
        stimulus=lambda rng: [rng.integers(-7000, 7000, (24, lanes))], verilog=VERILATED,
    )  # fmt: skip


def maxima_of_lanes(lanes):
    copy = parts.RunningMax(window=tiling(2, 2, 1, (2, 1)), **BITS, ram=RAM)
    return Example(part=parts.Lanes(part=copy, lanes=lanes), sizes=[4], proof=Proof(patience=8))


LANES = {
    "2 requantizers": requantizers(2), "3 requantizers": requantizers(3),
    "two operands": Example(
        part=parts.Lanes(
            part=parts.EltwiseProduct(in_bits=(6, 8), in_signed=(True, False)), lanes=2
        ),
        contents={"in_zero_points": (3, 5)}, sizes=(5, 5),
    ),
    "maxima": Example(
        part=parts.Lanes(part=parts.RunningMax(window=TILES["pairs"], **CODES, ram=RAM), lanes=2),
        sizes=[72],
    ),
    "two": maxima_of_lanes(2), "three": maxima_of_lanes(3),
}  # fmt: skip
STREAMS: Mapping[str, Mapping[str, Example]] = {
    "Fifo": {
        **{f"{depth} items": registers(parts.Fifo, depth) for depth in (2, 3, 5)},
        **{f"depth {depth}": proved_registers(depth) for depth in (2, 3, 4, 6, 9)},
    },
    "Skid": {"8 bits": registers(parts.Skid, 2)},
    "SumQueue": {"30 bits": registers(parts.SumQueue, 2, 30)},
    "SumHop": {"30 bits": registers(parts.SumHop, 2, 30)},
    "BlockFifo": queues(parts.BlockFifo), "CutFifo": queues(parts.CutFifo),
    "Concat": {
        **{str(runs): concat(runs) for runs in RUNS},
        "verilog": concat((3, 1, 2), verilog=VERILATED),
        "two": concat((1, 2), turns=2, **BITS, proof=Proof(patience=3)),
        "three": concat((2, 1, 1), turns=2, **BITS, proof=Proof(patience=3)),
    },
    "Split": SPLITS,
    "Constant": {
        **swept(constant, [1, 2, 7, 20], [1, 4], ["block", "logic"]),
        "verilog": constant(5, verilog=VERILATED),
        **{
            f"beats of {lanes}, {style}": constant(count, 3, style, lanes=lanes)
            for count, style, lanes in [(1, "logic", 3), (4, "logic", 2), (5, "block", 4)]
        },
        "proof of logic": proved_constant(3, 2, "logic"),
        "proof of block": proved_constant(4, 1, "block"),
        "one code": proved_constant(1, 3, "logic"),
    },
    "Delay": {
        **{f"{count} of {frame}": delay(count, frame)
           for count, frame in [(1, 1), (6, 2), (5, 3), (2, 7)]},
        "verilog": delay(5, 3, verilog=VERILATED),
        "less than a frame": proved_delay(2, 3), "more than a frame": proved_delay(5, 2),
        "one": proved_delay(1, 1),
    },
    "State": {
        **swept(state, [1, 2, 7, 40], ["equal", "logic", "block"]),
        **{f"loop of {count}, {steps}": state(count, "logic", steps)
           for count, steps in [(1, 2), (3, 2), (4, 5)]},
        "verilog": state(5, "block", verilog=BOTH),
        **{
            f"beats of {lanes}, {style}, {steps}": state(3, style, steps, lanes=lanes)
            for style, steps, lanes in [("equal", 1, 2), ("logic", 3, 4), ("block", 1, 3)]
        },
        "equal": proved_state(3, "equal"), "logic": proved_state(3, "logic"),
        "block": proved_state(4, "block"), "one code": proved_state(1, "equal"),
        "loop": proved_state(2, "logic", 3), "loop of one code": proved_state(1, "logic", 2),
    },
    "Pack": PACKS, "Lanes": LANES,
}  # fmt: skip


JOINED = ((4, 4), (16, 16), (3, 5), (64, 32), (8, 8, 8), (4, 12, 16, 32), (784, 784))
CUT = (((4, 8, 4), 64), ((1, 3), 196), ((16, 16), 49), ((28, 700, 56), 1), ((300, 200, 284), 4))
PACKED = ((4, 2), (4, 4), (6, 3), (8, 8), (30, 5), (64, 16), (120, 2), (10, 4), (30, 8))
SOURCES = ((1, 64), (4, 16), (16, 64), (64, 16), (200, 1), (784, 1))
STATES = {
    "equal": [(count, bits) for bits in (4, 8, 16) for count in (8, 24, 100, 1000)],
    "logic": [(8, 8), (24, 8), (64, 8), (100, 8), (24, 16), (64, 4)],
    "block": [(200, 8), (1000, 8), (500, 16)],
}
DELAYS = ((32, 8, 8), (512, 64, 8), (24, 24, 16), (1000, 250, 4))


def beat(bits):
    return beat_layout(bits=bits, signed=False, lanes=1)


def large_constants(device):
    rng = np.random.default_rng(0)
    for count, repeats in SOURCES:
        codes = rng.integers(-128, 128, count).tolist()
        yield constant(
            count, repeats, "logic", codes=codes, ram=device.ram, typical=count > 1
        )  # fmt: skip


def large_states(device):
    rng = np.random.default_rng(0)
    for style, sizes in STATES.items():
        for count, bits in sizes:
            same = style == "equal"
            codes = [5] * count if same else rng.integers(0, 1 << bits, count).tolist()
            yield state(count, style, 1, bits, False, codes, device.ram)
    for count, frame, bits in DELAYS:
        yield delay(count, frame, 3, bits, False)


MEASURED: Measured = {
    "skid": lambda _: [registers(parts.Skid, 2, bits + 1, beat(bits)) for bits in (4, 8, 16)],
    "fifo": lambda _: [
        registers(parts.Fifo, depth, bits, beat(bits))
        for bits in (4, 8, 16)
        for depth in (2, 3, 4, 8, 16)
    ],
    "block fifo": lambda device: [
        queue(parts.BlockFifo, depth, device.ram, bits, frame=depth + 7)
        for bits in (4, 8, 16)
        for depth in (20, 100, 600, 3000)
    ],
    "sum queue": lambda _: [
        registers(parts.SumQueue, 2, bits + 1, sum_layout(bits)) for bits in (14, 20, 28)
    ],
    "concat": lambda _: [
        *(concat(runs, signed=False) for runs in JOINED), concat((16, 16), bits=16)
    ],
    "slice": lambda _: [
        split(runs, tuple(n == 1 for n in range(len(runs))), turns=turns, signed=False)
        for runs, turns in CUT
    ],
    "constant": large_constants, "state": large_states,
    "pack": lambda _: [pack(*sizes, signed=False) for sizes in PACKED],
}  # fmt: skip
