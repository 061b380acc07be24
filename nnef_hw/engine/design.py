"""A network on an engine of some size: program, memories, and the cycles that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnef_hw.blockram import SPRAM_SHAPE
from nnef_hw.devices import Device
from nnef_hw.engine.layer import Layer, Most, Places, Shape
from nnef_hw.engine.memory_plan import Stay, allocate, allocate_banks
from nnef_hw.engine.nest import Nest, Part
from nnef_hw.engine.network import Loading, Network
from nnef_hw.engine.store import Store
from nnef_hw.errors import TargetError
from nnef_hw.numerics import signed_bits
from nnef_hw.parts.engine import (
    CODE_BITS,
    LEVELS,
    QUANTITIES,
    RESIDUAL_CYCLES,
    RING_CONSTANTS,
    Engine,
    Kind,
)
from nnef_hw.parts.reader import Reader

__all__ = ["Design", "Instruction"]

_LEAST_SUM_BITS = 16
_OFTEN_SAME = frozenset({
    "pad", "zero_point", "low", "high", "sum_low", "sum_high", "other", "own_factor",
    "other_factor", "offset",
})  # fmt: skip
_DIGITS = 3
"""Bits of a factor per stage of the requantizer: it is the only one, and stages take registers."""


@dataclass(frozen=True)
class Instruction:
    """A step of the program.

    Parameters
    ----------
    kind
        What it does.
    fields
        Its fields by name; others are 0.
    nest
        Loops of a layer.
    weights, constants
        Which words of all weights, and which of all constants, it needs.
    weight_rows
        Rows of the array that need weights.
    """

    kind: Kind
    fields: Mapping[str, int]
    nest: Nest | None = None
    weights: range = range(0)
    constants: range = range(0)
    weight_rows: int = 0


@dataclass(frozen=True, eq=False)
class Design:
    """A network for an array of ``shape`` on a device.

    Parameters
    ----------
    network, shape, device
        What runs, on which array, where.
    ring_words
        Words of the memory that weights pass, if the program comes as a stream with its weights and
        constants; 0 if all are in memory.
    store
        Where it comes from then; None if from anywhere, whenever it is wanted.
    """

    network: Network
    shape: Shape
    device: Device
    ring_words: int = 0
    store: Store | None = None

    @cached_property
    def reader(self) -> Reader | None:
        """What brings the program, if it comes as a stream from a memory of the board."""
        return None if self.store is None else self.store.reader(self.image_words, self.device)

    @cached_property
    def image_words(self) -> int:
        """Beats of the program as a stream (:mod:`nnef_hw.engine.image`)."""
        return sum(map(self.packet_words, self.instructions))

    def packet_words(self, instruction: Instruction) -> int:
        """Return the beats of an instruction and of what it needs."""
        engine = self.engine
        return (
            2
            + engine.instruction_rows * len(engine.program_memories)
            + len(instruction.constants) * len(engine.constant_memories)
            + len(instruction.weights) * engine.weight_beats(instruction.weight_rows)
        )

    @property
    def memory_bytes(self) -> Mapping[str, int]:
        """Bytes of the stream per frame by the name of the layer; nothing if there is none."""
        if not self.ring_words:
            return {}
        instructions = iter(self.instructions[1:-1])
        return {
            layer.name: 2 * sum(self.packet_words(next(instructions)) for _ in parts)
            for layer, parts in zip(self.layers, self.parts, strict=True)
        }

    @cached_property
    def _loaded(self) -> tuple[Loading, tuple[Layer, ...]]:
        return self.network.loading(self.shape.lanes)

    @property
    def loading(self) -> Loading:
        """How the input becomes words."""
        return self._loaded[0]

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Layers in the order in which they run."""
        return self._loaded[1]

    @cached_property
    def _stays(self) -> list[Stay]:
        """From when to when tensors are in memory: instruction 0 loads, layers follow."""
        sent = len(self.layers) + 1
        lanes = self.shape.lanes

        def last(tensor: str, first: int) -> int:
            reads = [n for n, layer in enumerate(self.layers, 1) if tensor in layer.operands]
            return max([first, *reads, *([sent] if tensor == self.network.result else [])])

        source = self.network.source
        stays = [Stay(source, self.loading.words, 0, last(source, 0))]
        for n, layer in enumerate(self.layers, 1):
            other = None if layer.residual is None else layer.residual.tensor
            words = layer.target.words(lanes)
            stays.append(Stay(layer.tensor, words, n, last(layer.tensor, n), other))
        return stays

    @property
    def peak(self) -> tuple[int, str]:
        """Most bytes that tensors take at a time, and the layer that runs then."""
        lanes, names = self.shape.lanes, [layer.name for layer in self.layers]

        def taken(n: int) -> int:
            alive = [x for x in self._stays if x.first <= n <= x.last]
            written_over = {x.replaces for x in alive if x.first == n}
            return lanes * sum(
                x.words for x in alive if not (x.tensor in written_over and x.last == n)
            )

        n = max(range(1, len(names) + 1), key=taken)
        return taken(n), names[n - 1]

    @cached_property
    def _banks(self) -> Mapping[str, int] | None:
        """First word of every tensor in two banks of single-port RAM; None if that cannot be."""
        depth, width = SPRAM_SHAPE
        if 2 * self.shape.lanes * CODE_BITS // width > self.device.spram:
            return None
        apart = [(layer.operand, layer.tensor) for layer in self.layers]
        return allocate_banks(self._stays, apart, depth)

    @cached_property
    def _memory(self) -> tuple[Mapping[str, int], int]:
        """First word of every tensor, and words in all."""
        if self._banks is not None:
            return self._banks, 2 * SPRAM_SHAPE[0]
        return allocate(self._stays)

    def shares(self, layer: Layer) -> bool:
        """Whether what is added to its result is in the bank that it reads."""
        if self._banks is None or layer.residual is None:
            return False
        depth, _ = SPRAM_SHAPE
        return self._banks[layer.residual.tensor] // depth != self._banks[layer.tensor] // depth

    @property
    def places(self) -> Mapping[str, int]:
        """First word of every tensor."""
        return self._memory[0]

    @cached_property
    def weights(self) -> list[int]:
        """Contents of the weight memory: row 0 and lane 0 lowest."""
        words: list[int] = []
        for layer in self.layers:
            codes = layer.weights(self.shape).reshape(-1, self.shape.rows * self.shape.lanes)
            data = codes.astype(np.int8)
            assert (data == codes).all(), f"{layer.name}: weights exceed 8 bits"
            words += [int.from_bytes(row.tobytes(), "little") for row in data]
        return words or [0]

    @cached_property
    def shift(self) -> int:
        """Shift behind the factors of all layers."""
        return max(layer.scale.shift for layer in self.layers)

    def _factors(self, layer: Layer) -> list[int]:
        return [mult << (self.shift - layer.scale.shift) for mult in layer.factors(self.shape)]

    @cached_property
    def constants(self) -> list[int]:
        """Contents of the constant memory: a bias in the low bits, a factor above."""
        bits = self.engine.acc_bits
        return [
            factor << bits | int(bias) & ((1 << bits) - 1)
            for layer in self.layers
            for bias, factor in zip(layer.bias(self.shape), self._factors(layer), strict=True)
        ]

    @cached_property
    def entries(self) -> list[int]:
        """Contents of the memory of tables, 256 entries each."""
        return [
            entry
            for table in self._tables
            for entry in (*table, *[0] * ((1 << CODE_BITS) - len(table)))
        ]

    @cached_property
    def _tables(self) -> list[tuple[int, ...]]:
        """The different tables."""
        return list(dict.fromkeys(layer.table for layer in self.layers if layer.table))

    @cached_property
    def residual_shift(self) -> int:
        """Shift behind all sums of two codes; 0 if there are none."""
        return max((layer.residual.shift for layer in self.layers if layer.residual), default=0)

    @property
    def residual_cycles(self) -> int:
        """Cycles per sum of two codes: as many as no pass waits for, since few cells do then."""
        passes = [
            (words, results)
            for layer in self.layers
            if layer.residual
            for words, results in layer.passes(self.shape)[0]
        ]
        if not passes:
            return 1
        fast = (x for x in RESIDUAL_CYCLES if all(words >= x * n for words, n in passes))
        return next(fast, 1)

    @cached_property
    def parts(self) -> tuple[list[Part], ...]:
        """What each layer is divided into: with a ring, so that two parts have room in it."""
        found = []
        weight = constant = 0
        most = Most(self.ring_words // 2, RING_CONSTANTS // 4) if self.ring_words else None
        for layer in self.layers:
            places = Places(self.places[layer.operand], weight, constant, self.places[layer.tensor])
            found.append(parts := layer.parts(self.shape, places, most))
            longest = max(len(part.weights) for part in parts)
            if most is not None and longest > self.ring_words:
                raise TargetError(
                    f"layer {layer.name!r}: a pass takes {longest:,} words of weights, and the "
                    f"ring has {self.ring_words:,}",
                    remedy="take a larger array, or a larger ring",
                )
            weight += parts[-1].weights.stop
            constant += parts[-1].constants.stop
        return tuple(found)

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        """The program."""
        return tuple(self._instructions())

    def _instructions(self) -> Iterator[Instruction]:
        lanes = self.shape.lanes
        loading, network = self.loading, self.network
        yield Instruction(Kind.LOAD, {
            "write": self.places[network.source], "rows": loading.rows - 1,
            "length": loading.length - 1, "lead": loading.lead,
            "real": loading.lead + loading.real, "first_word": loading.window - 1,
            "word_step": loading.step - 1, "pad": loading.pad,
        })  # fmt: skip
        weight = constant = 0
        for layer, parts in zip(self.layers, self.parts, strict=True):
            scale = layer.scale
            fields = {
                **layer.fields(self.shape), "zero_point": scale.zero_point, "low": scale.low,
                "high": scale.high, **self._residual(layer, self.places[layer.tensor]),
                **self._function(layer),
            }  # fmt: skip
            for part in parts:
                own = {"results": part.passes[0].results, "last_results": part.passes[-1].results}
                if self.ring_words:
                    follows = int(part is not parts[0])
                    own |= {"weights": len(part.weights), "constants": len(part.constants),
                            "follows": follows}  # fmt: skip
                yield Instruction(
                    Kind.RUN, {**fields, **own, **part.nest.starts}, part.nest,
                    _moved(part.weights, weight), _moved(part.constants, constant),
                    self._weight_rows(layer),
                )  # fmt: skip
            weight += parts[-1].weights.stop
            constant += parts[-1].constants.stop
        image = network.result_image
        yield Instruction(Kind.SEND, {
            "read": self.places[network.result], "pixels": image.pixels - 1,
            "blocks": image.blocks(lanes) - 1, "last_lanes": (image.channels - 1) % lanes,
        })  # fmt: skip

    def _weight_rows(self, layer: Layer) -> int:
        """Rows that need weights: all of which sums may move, if any do."""
        if not layer.by_lane:
            return self.shape.rows
        return self._slide_rows if layer.sliding_rows(self.shape) > 1 else 1

    @cached_property
    def _slide_rows(self) -> int:
        """Rows between which sums move."""
        return max(layer.sliding_rows(self.shape) for layer in self.layers)

    def _function(self, layer: Layer) -> Mapping[str, int]:
        if layer.table is None:
            return {}
        return {"looks_up": 1, "table": self._tables.index(layer.table)}

    def _residual(self, layer: Layer, write: int) -> Mapping[str, int]:
        residual = layer.residual
        if residual is None:
            return {}
        up = self.residual_shift - residual.shift
        return {
            **({"shares": 1} if self.shares(layer) else {}),
            "adds": 1, "other": self.places[residual.tensor] - write,
            "own_factor": residual.own << up, "other_factor": residual.other << up,
            "offset": residual.offset << up, "sum_low": residual.low, "sum_high": residual.high,
        }  # fmt: skip

    @cached_property
    def engine(self) -> Engine:
        """The engine, with fields as wide as this program needs them."""
        layers = self.layers
        sums = [signed_bits(*layer.largest_sum) for layer in layers]
        weight_words = max(2, len(self.weights))
        constant_words = max(2, sum(parts[-1].constants.stop for parts in self.parts))
        if self.ring_words:
            constant_words = RING_CONSTANTS
        factors = [factor for layer in layers for factor in self._factors(layer)]
        depth = self.ring_words or weight_words
        fields, residual_bits = self._fields(depth, constant_words)
        same = {name: (fields.pop(name), value) for name, value in self._same().items()}
        code_words = max(2, self._memory[1])
        products = self.shape.rows * self.shape.lanes
        return Engine(
            rows=self.shape.rows, lanes=self.shape.lanes,
            slide_rows=self._slide_rows,
            in_dsp=products <= self.device.products, acc_bits=max(_LEAST_SUM_BITS, *sums),
            factor_bits=max(factors).bit_length(), shift=self.shift,
            digit_bits=min(_DIGITS, max(factors).bit_length()),
            residual_bits=residual_bits, residual_shift=self.residual_shift,
            residual_cycles=self.residual_cycles,
            maximum=any(layer.maximum for layer in layers), code_words=code_words,
            weight_words=weight_words, constant_words=constant_words,
            instructions=len(self.instructions), fields=fields, ram=self.device.ram,
            ring_words=self.ring_words, tables=len(self._tables),
            single_port=self._banks is not None, same_fields=same,
        )  # fmt: skip

    def _same(self) -> Mapping[str, int]:
        """Return what all instructions have that look at a field, if it is the same."""
        found: dict[str, set[int]] = {}
        for instruction in self.instructions:
            for name in _OFTEN_SAME & instruction.fields.keys():
                found.setdefault(name, set()).add(instruction.fields[name])
        return {name: min(values) for name, values in found.items() if len(values) == 1}

    def _fields(self, weight_words: int, constant_words: int) -> tuple[dict[str, int], int]:
        """Return the widths of all fields, and that of the factors of residuals."""
        run = [x for x in self.instructions if x.nest is not None]
        factors = [x.fields.get(f"{name}_factor", 0) for x in run for name in ("own", "other")]
        residual_bits = 0
        if self.residual_shift:
            residual_bits = signed_bits(min(factors), max(factors))
        widths = {
            "count": _bits([count - 1 for x in run if x.nest for count in x.nest.counts]),
            **self._address_bits(run, weight_words, constant_words),
        }
        own = {name: width for name, width in widths.items() if name in QUANTITIES}
        offsets = [x.fields.get("offset", 0) for x in run]
        signed = {"own_factor": residual_bits, "other_factor": residual_bits,
                  "offset": signed_bits(min(offsets), max(offsets))}  # fmt: skip
        steps = {f"{name}_step": width for name, width in own.items()}
        fields = {
            "count": widths["count"], **steps, "kind": 2, **own,
            **dict.fromkeys(("slides", "by_lane", "maximum", "adds"), 1),
            "results": self.shape.rows.bit_length(), "last_results": self.shape.rows.bit_length(),
            **dict.fromkeys(("pad", "zero_point", "low", "high"), CODE_BITS),
        }  # fmt: skip
        if residual_bits:
            fields |= {"other": own["write"], "sum_low": CODE_BITS, "sum_high": CODE_BITS, **signed}
        if any(map(self.shares, self.layers)):
            fields["shares"] = 1
        if self._tables:
            fields |= {"looks_up": 1, "table": _bits([len(self._tables) - 1])}
        if self.ring_words:
            fields |= {"weights": self.ring_words.bit_length(),
                       "constants": RING_CONSTANTS.bit_length(), "follows": 1}  # fmt: skip
        for name in (
            "silent", "height", "width", "rows", "length", "lead", "real", "first_word",
            "word_step", "pixels", "blocks", "last_lanes",
        ):  # fmt: skip
            fields[name] = _bits([x.fields.get(name, 0) for x in self.instructions])
        return fields, residual_bits

    def _address_bits(
        self, run: Sequence[Instruction], weight_words: int, constant_words: int
    ) -> dict[str, int]:
        depths = {"read": self._memory[1], "write": self._memory[1], "weight": weight_words,
                  "constant": constant_words}  # fmt: skip
        widths = {name: max(1, (depth - 1).bit_length()) for name, depth in depths.items()}
        for name in ("y", "x"):
            extremes = [x.nest.extremes(name) for x in run if x.nest is not None]
            widths[name] = _bits([max(high, 0) for _, high in extremes])
            extent = "height" if name == "y" else "width"
            sizes = [
                x.fields[extent] - min(low, 0) for x, (low, _) in zip(run, extremes, strict=True)
            ]
            # what is before an image must not look like being inside of it
            widths[name] = max(widths[name], _bits(sizes))
        return widths

    @cached_property
    def program(self) -> list[int]:
        """Contents of the program memory."""
        stride = self.engine.instruction_stride
        found: list[int] = []
        for instruction in self.instructions:
            rows = self.rows(instruction)
            found += [*rows, *[0] * (stride - len(rows))]
        return found

    def rows(self, instruction: Instruction) -> list[int]:
        """Return the rows of an instruction."""
        engine = self.engine
        rows = [0] * engine.instruction_rows
        if instruction.nest is not None:
            rows[:LEVELS] = self._loops(instruction.nest)
        fields = {"kind": int(instruction.kind), **instruction.fields}
        known = engine.fields.keys() | engine.same_fields.keys()
        assert fields.keys() <= known | {"adds"}, fields.keys()
        for name, (row, bit) in engine.parameters.items():
            width = engine.fields[name]
            rows[LEVELS + row] |= (fields.get(name, 0) & ((1 << width) - 1)) << bit
        return rows

    def _loops(self, nest: Nest) -> Iterator[int]:
        steps = {name: nest.steps(name) for name in QUANTITIES}
        for level in range(LEVELS):
            word = bit = 0
            for name, width in self.engine.loop_fields.items():
                if name == "count":
                    value = nest.counts[level] - 1
                else:
                    value = steps[name.removesuffix("_step")][level]
                word |= (value & ((1 << width) - 1)) << bit
                bit += width
            yield word


def _bits(values: Sequence[int]) -> int:
    return max(1, max(values).bit_length())


def _moved(places: range, by: int) -> range:
    return range(places.start + by, places.stop + by)
