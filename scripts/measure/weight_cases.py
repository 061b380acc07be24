# amaranth: UnusedElaboratable=no
"""Parts to measure that write matrices of a stream, with the memories that they write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from cases import Case

from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.contraction import Contraction
from nnef_hw.parts.arrays.weight_writer import WeightWriter
from nnef_hw.parts.arrays.weights import WeightMemory
from nnef_hw.rtl.streams.stream import beat_layout

__all__ = ["weight_cases"]


class _Written(wiring.Component):  # type: ignore[misc]
    """A writer and its memories, read as an array does."""

    def __init__(self, part: WeightWriter) -> None:
        self.part = part
        memory = part.memory
        code = beat_layout(bits=part.in_bits, signed=part.in_signed, lanes=1)
        super().__init__({
            "i": In(stream.Signature(code)),
            "o": Out(stream.Signature(1)),
            "page": In(memory.page_bits),
            "address": In(memory.word_bits),
            **{f"data{n}": Out(rows * memory.lanes * memory.bits)
               for n, rows in enumerate(memory.group_sizes)},
        })  # fmt: skip

    def elaborate(self, platform: Any) -> Module:
        """Connect them."""
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


def weight_cases(device: Device) -> Iterator[Case]:
    """Return all cases, over their parameters."""
    # matrices, inner, columns, order, rows, group_rows, lanes, bits, zero_point, style
    spread: list[tuple[int, int, int, str, int, int, int, int, int, str]] = [
        (1, 16, 16, "mnk", 1, 1, 1, 8, 0, "block"),
        (4, 8, 16, "nmk", 4, 4, 2, 8, 0, "block"),
        (4, 16, 8, "kmn", 2, 2, 4, 8, 0, "block"),
        (8, 66, 2, "kmn", 2, 2, 6, 8, 0, "block"),
        (3, 64, 197, "mnk", 8, 4, 8, 8, 0, "block"),
        (1, 197, 64, "kmn", 4, 4, 8, 8, 0, "block"),
        (4, 16, 8, "knm", 2, 2, 2, 8, 0, "block"),
        (4, 8, 16, "nmk", 4, 2, 4, 9, 131, "block"),
        (2, 32, 32, "nmk", 16, 4, 1, 4, 0, "block"),
        (1, 8, 8, "mkn", 8, 8, 1, 8, 3, "block"),
    ]
    if device.family.has_lut_ram:
        spread += [
            (8, 2, 66, "nmk", 66, 16, 1, 8, 0, "distributed"),
            (4, 8, 16, "nmk", 8, 4, 4, 8, 0, "distributed"),
            (4, 8, 16, "nmk", 4, 4, 4, 8, 0, "distributed"),
            (4, 16, 8, "kmn", 8, 8, 4, 8, 0, "distributed"),
        ]
    for matrices, inner, columns, order, rows, group_rows, lanes, bits, zero_point, style in spread:
        product = Contraction(
            sets=1, matrices=matrices, repeats=1, turns=8, inner=inner, columns=columns,
            order=order,
        )  # fmt: skip
        memory = WeightMemory(
            ram=device.ram, product=product, rows=rows, group_rows=group_rows, lanes=lanes,
            bits=bits, style=style,
        )  # fmt: skip
        if sum(tiling.count for tiling in memory.memories(0, ())) > device.bram:
            continue
        part = WeightWriter(
            memory=memory, in_bits=min(bits, 8), in_signed=zero_point == 0, zero_point=zero_point
        )
        note: dict[str, int | str] = {
            "matrices": matrices, "inner": inner, "columns": columns, "order": order,
            "rows": rows, "group_rows": group_rows, "lanes": lanes, "bits": bits, "style": style,
        }  # fmt: skip
        yield Case(part, note=note, built=_Written(part))
