# amaranth: UnusedElaboratable=no
"""Examples of products of two streams: of rows with matrices, or with a cache."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations

import numpy as np
from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from examples.arrays import pixels_of
from examples.example import RAM, Example, Marks, Measured, Proof, ends, swept
from nnef_hw import parts
from nnef_hw.arithmetic.numerics import signed_bits
from nnef_hw.hardware.geometry.contraction import Contraction
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["CONTRACTIONS", "MEASURED"]

VERILATED = ("verilator",)


@dataclass(frozen=True, kw_only=True)
class Format:
    """Codes of an operand of a contraction, and their zero point."""

    bits: int = 8
    signed: bool = True
    zero_point: int = 0

    @property
    def differences(self):
        return tuple(end - self.zero_point for end in ends(self.bits, self.signed))


def contraction(
    order, inner, columns, *, x=Format(), w=Format(), matrices=1, repeats=1, turns=2, rows=1,
    lanes=1, group_rows=1, kept=1, out_lanes=1, gain=0, weight_delay=0, style="block",
    acc_bits=None, place_bits=0, proof=None, verilog=(),
):  # fmt: skip
    """A product with matrices of a stream; with bits of a place, with a cache."""
    product = Contraction(
        sets=1, matrices=matrices, repeats=repeats, turns=turns, inner=inner, columns=columns,
        order=order,
    )  # fmt: skip
    w_bits = signed_bits(*w.differences)
    x_signed = x.differences[0] < 0
    corners = [inner * a * b for a in x.differences for b in w.differences]
    memory = parts.WeightMemory(
        ram=RAM, product=product, rows=rows, group_rows=group_rows, lanes=lanes, bits=w_bits,
        style=style, halves=1 if place_bits else 2,
    )  # fmt: skip
    array = parts.SystolicArray(
        channels=columns, words=memory.words, lanes=lanes, rows=rows, group_rows=group_rows,
        kept_passes=kept, x_bits=signed_bits(*x.differences) - (not x_signed), x_signed=x_signed,
        w_bits=w_bits, acc_bits=acc_bits or signed_bits(min(corners), max(corners)), in_dsp=0,
        weights=memory, weight_delay=weight_delay, out_lanes=out_lanes,
    )  # fmt: skip
    kind = partial(parts.RowWriter, place_bits=place_bits) if place_bits else parts.WeightWriter
    writer = kind(memory=memory, in_bits=w.bits, in_signed=w.signed, zero_point=w.zero_point)
    part = parts.ContractionArray(
        array=array, writer=writer, in_bits=x.bits, in_signed=x.signed, zero_point=x.zero_point,
        gain=gain,
    )  # fmt: skip

    frames = 40 if place_bits else 5

    def stimulus(rng):
        lines = np.zeros((frames * product.rows, memory.words * lanes), int)
        lines[:, :inner] = pixels_of(rng, (len(lines), inner), x.bits, x.signed)
        passes = lines.repeat(array.passes, axis=0)
        operands = [
            passes.reshape(-1, memory.words, lanes),
            pixels_of(rng, (frames * writer.codes, 1), w.bits, w.signed),
        ]
        if place_bits:  # one beyond the last row is that, and some are never written
            places = rng.integers(writer.rows // 2, writer.rows + 2, (frames, 1))
            places[0] = 0
            operands.append(places)
        return operands

    if proof is not None:
        proof = replace(proof, patience=array.latency + product.codes + 4)
    return Example(
        part=part, stimulus=None if proof else stimulus, frames=frames, proof=proof,
        verilog=verilog,
        sizes=[(product.rows * array.passes, memory.words), product.codes],
        stalls_predicted=memory.words == 1,
    )  # fmt: skip


UNSIGNED = Format(signed=False)
PRODUCTS = {
    "one": (1, 1), "dot": (5, 1, {"turns": 3, "lanes": 2}),
    "passes": (3, 7, {"rows": 2, "lanes": 2, "group_rows": 2, "turns": 3}),
    "heads": (5, 6, {"matrices": 3, "rows": 4, "lanes": 3, "group_rows": 2, "kept": 2}),
    "rows of a head": (
        4, 3, {"matrices": 2, "repeats": 3, "turns": 1, "rows": 3, "lanes": 4, "group_rows": 2},
    ),
    "groups of one": (4, 5, {"matrices": 2, "rows": 5}),
    "wide": (
        6, 8,
        {"matrices": 2, "rows": 4, "lanes": 6, "group_rows": 2, "out_lanes": 2, "kept": 2},
    ),
    "zero points": (
        5, 4,
        {"rows": 2, "lanes": 2, "group_rows": 2, "x": Format(zero_point=-20),
         "w": Format(zero_point=7), "gain": 2},
    ),
    "unsigned": (
        7, 5,
        {"rows": 3, "lanes": 2, "group_rows": 3, "x": UNSIGNED,
         "w": Format(signed=False, zero_point=3)},
    ),
    "LUT RAM": (
        6, 5,
        {"matrices": 3, "rows": 3, "lanes": 2, "group_rows": 2, "kept": 2,
         "style": "distributed"},
    ),
    "late": (4, 6, {"matrices": 2, "rows": 3, "lanes": 2, "weight_delay": 1}),
    "narrow": (3, 4, {"rows": 2, "x": Format(bits=4, signed=False), "w": Format(bits=2)}),
}  # fmt: skip
CACHES = {
    "keys": ("nmk", 3, 8, {"matrices": 2, "rows": 4, "lanes": 2, "group_rows": 2, "turns": 1}),
    "keys of one pass": ("nkm", 2, 5, {"matrices": 3, "rows": 5, "lanes": 2, "group_rows": 5}),
    "values": ("kmn", 8, 3, {"matrices": 2, "rows": 2, "lanes": 4, "turns": 1}),
    "values of one word": (
        "knm", 5, 4,
        {"rows": 3, "lanes": 5, "group_rows": 2, "x": Format(zero_point=3),
         "w": Format(zero_point=-7)},
    ),
    "values by matrix": ("knm", 6, 2, {"matrices": 2, "rows": 2, "lanes": 2, "group_rows": 2}),
}  # fmt: skip
BIT = {
    "x": Format(bits=1, signed=False), "w": Format(bits=2), "acc_bits": 3, "turns": 1,
    "proof": Proof(marks=[Marks(beside=1), Marks(base=-1, mark=-2)], frame_bits=3),
}  # fmt: skip


def contraction_of(order, inner, columns, fields=None):
    return contraction(order, inner, columns, **(fields or {}))


CONTRACTIONS: Mapping[str, Mapping[str, Example]] = {
    "ContractionArray": {
        **swept(
            contraction_of, {"".join(axes): "".join(axes) for axes in permutations("mkn")},
            PRODUCTS,
        ),
        "a row": contraction("mkn", 2, 1, **BIT),
        "two rows of columns": contraction("mnk", 1, 2, **BIT | {"turns": 2}),
        "groups": contraction("mkn", 1, 2, rows=2, kept=2, **BIT),
        "lanes": contraction("nkm", 2, 1, lanes=2, repeats=2, **BIT),
        "matrices": contraction("nmk", 1, 1, matrices=2, **BIT),
        "verilog": contraction("mkn", 3, 4, rows=2, verilog=VERILATED),
        **{
            f"cache of {name}": contraction(*of, **fields, place_bits=5)
            for name, (*of, fields) in CACHES.items()
        },
        "cache, verilog": contraction("nmk", 3, 4, rows=2, place_bits=3, verilog=VERILATED),
    },
}  # fmt: skip


class Written(wiring.Component):
    """A writer and its memories, read as an array does."""

    def __init__(self, part):
        self.part = part
        memory = part.memory
        code = beat_layout(bits=part.in_bits, signed=part.in_signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(code)), "o": Out(stream.Signature(1)),
            "page": In(memory.page_bits), "address": In(memory.word_bits),
            **{f"data{n}": Out(rows * memory.lanes * memory.bits)
               for n, rows in enumerate(memory.group_sizes)},
        })  # fmt: skip

    def elaborate(self, platform):
        m = Module()
        m.submodules.writer = writer = self.part.build()
        connect(m, flipped(self.i), writer.i)
        connect(m, writer.o, flipped(self.o))
        for n, bank in enumerate(self.part.memory.build()):
            m.submodules[f"bank{n}"] = bank
            m.d.comb += [
                bank.page.eq(self.page), bank.read_address.eq(self.address),
                bank.read_enable.eq(1), bank.write_address.eq(writer.write_address),
                bank.write_data.eq(writer.write_data),
                bank.write_enable.eq(getattr(writer, f"write_enable{n}")),
                getattr(self, f"data{n}").eq(bank.read_data),
            ]  # fmt: skip
        return m


FIELDS = ("matrices", "inner", "columns", "order", "rows", "group_rows", "lanes", "bits", "style")
WRITTEN = [
    (1, 16, 16, "mnk", 1, 1, 1, 8, "block", 0), (4, 8, 16, "nmk", 4, 4, 2, 8, "block", 0),
    (4, 16, 8, "kmn", 2, 2, 4, 8, "block", 0), (8, 66, 2, "kmn", 2, 2, 6, 8, "block", 0),
    (3, 64, 197, "mnk", 8, 4, 8, 8, "block", 0), (1, 197, 64, "kmn", 4, 4, 8, 8, "block", 0),
    (4, 16, 8, "knm", 2, 2, 2, 8, "block", 0), (4, 8, 16, "nmk", 4, 2, 4, 9, "block", 131),
    (2, 32, 32, "nmk", 16, 4, 1, 4, "block", 0), (1, 8, 8, "mkn", 8, 8, 1, 8, "block", 3),
    (8, 2, 66, "nmk", 66, 16, 1, 8, "distributed", 0),
    (4, 8, 16, "nmk", 8, 4, 4, 8, "distributed", 0),
    (4, 8, 16, "nmk", 4, 4, 4, 8, "distributed", 0),
    (4, 16, 8, "kmn", 8, 8, 4, 8, "distributed", 0),
]  # fmt: skip
"""Fields, and a zero point."""


def large_writers(device):
    """Yield those that fit a device and need no memory that it has not."""
    for *values, zero_point in WRITTEN:
        matrices, inner, columns, order, *sizes, style = values
        product = Contraction(
            sets=1, matrices=matrices, repeats=1, turns=8, inner=inner, columns=columns, order=order
        )
        fields = dict(zip(FIELDS[4:8], sizes, strict=True))
        memory = parts.WeightMemory(ram=device.ram, product=product, style=style, **fields)
        fits = sum(tiling.count for tiling in memory.memories(0, ())) <= device.bram
        if not fits or (style == "distributed" and not device.family.has_lut_ram):
            continue
        part = parts.WeightWriter(
            memory=memory, in_bits=min(fields["bits"], 8), in_signed=zero_point == 0,
            zero_point=zero_point,
        )  # fmt: skip
        note = dict(zip(FIELDS, values, strict=True))
        yield Example(part=part, note=note, component=partial(Written, part))


MEASURED: Measured = {"weight writer": large_writers}
