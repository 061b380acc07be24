"""A network on an engine of some size: program, memories, and the cycles that follow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nnef_hw.blockram import SPRAM_SHAPE
from nnef_hw.devices import Device
from nnef_hw.engine.layer import Layer, Most, Places, Shape
from nnef_hw.engine.memory_plan import Stay, allocate, allocate_banks
from nnef_hw.engine.nest import Nest, Part
from nnef_hw.engine.network import Loading, Network
from nnef_hw.engine.sizing import size_engine
from nnef_hw.engine.store import Store
from nnef_hw.errors import TargetError
from nnef_hw.parts.engine import (
    CODE_BITS,
    LEVELS,
    QUANTITIES,
    RESIDUAL_CYCLES,
    RING_CONSTANTS,
    TABLE_BEATS,
    Engine,
    Kind,
)
from nnef_hw.parts.reader import Reader

__all__ = ["Design", "Instruction"]


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
    tables
        How many functions by table come with it.
    """

    kind: Kind
    fields: Mapping[str, int]
    nest: Nest | None = None
    weights: range = range(0)
    constants: range = range(0)
    weight_rows: int = 0
    tables: int = 0


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
    existing
        The engine that a bitstream has already; None to make one for this network.
    """

    network: Network
    shape: Shape
    device: Device
    ring_words: int = 0
    store: Store | None = None
    existing: Engine | None = None

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
            + instruction.tables * TABLE_BEATS
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
    def banks(self) -> Mapping[str, int] | None:
        """First word of every tensor in two banks of single-port RAM; None if that cannot be."""
        depth, width = SPRAM_SHAPE
        if 2 * self.shape.lanes * CODE_BITS // width > self.device.spram:
            return None
        apart = [(layer.operand, layer.tensor) for layer in self.layers]
        return allocate_banks(self._stays, apart, depth)

    @cached_property
    def memory(self) -> tuple[Mapping[str, int], int]:
        """First word of every tensor, and words in all."""
        if self.banks is not None:
            return self.banks, 2 * SPRAM_SHAPE[0]
        return allocate(self._stays)

    def shares(self, layer: Layer) -> bool:
        """Whether what is added to its result is in the bank that it reads."""
        if self.banks is None or layer.residual is None:
            return False
        depth, _ = SPRAM_SHAPE
        return self.banks[layer.residual.tensor] // depth != self.banks[layer.tensor] // depth

    @property
    def places(self) -> Mapping[str, int]:
        """First word of every tensor."""
        return self.memory[0]

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
        if self.existing is not None:
            return self.existing.shift
        return max(layer.scale.shift for layer in self.layers)

    def factors(self, layer: Layer) -> list[int]:
        """Return the factors of everything of a layer that has a bias, for that shift."""
        return [mult << (self.shift - layer.scale.shift) for mult in layer.factors(self.shape)]

    @cached_property
    def constants(self) -> list[int]:
        """Contents of the constant memory: a bias in the low bits, a factor above."""
        bits = self.engine.acc_bits
        return [
            factor << bits | int(bias) & ((1 << bits) - 1)
            for layer in self.layers
            for bias, factor in zip(layer.bias(self.shape), self.factors(layer), strict=True)
        ]

    @cached_property
    def entries(self) -> list[int]:
        """Contents of the memory of tables, 256 entries each."""
        unused = [()] * (self.engine.tables - len(self.tables))
        return [
            entry
            for table in (*self.tables, *unused)
            for entry in (*table, *[0] * ((1 << CODE_BITS) - len(table)))
        ]

    @cached_property
    def tables(self) -> list[tuple[int, ...]]:
        """The different tables."""
        return list(dict.fromkeys(layer.table for layer in self.layers if layer.table))

    @cached_property
    def residual_shift(self) -> int:
        """Shift behind all sums of two codes; 0 if there are none."""
        if self.existing is not None:
            return self.existing.residual_shift
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
        }, tables=self._sent_tables)  # fmt: skip
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

    @property
    def _sent_tables(self) -> int:
        """Functions that come with the program."""
        if not self.ring_words:
            return 0
        return len(self.tables) if self.existing is None else self.existing.tables

    def _weight_rows(self, layer: Layer) -> int:
        """Rows that need weights: all of which sums may move, if any do."""
        if not layer.by_lane:
            return self.shape.rows
        return self.slide_rows if layer.sliding_rows(self.shape) > 1 else 1

    @cached_property
    def slide_rows(self) -> int:
        """Rows between which sums move."""
        return max(layer.sliding_rows(self.shape) for layer in self.layers)

    def _function(self, layer: Layer) -> Mapping[str, int]:
        if layer.table is None:
            return {}
        return {"looks_up": 1, "table": self.tables.index(layer.table)}

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
        """The engine: that of the bitstream, or with fields as wide as this program needs them."""
        return self.existing or size_engine(self)

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


def _moved(places: range, by: int) -> range:
    return range(places.start + by, places.stop + by)
