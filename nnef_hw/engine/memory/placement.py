"""Places of a network's tensors in an engine's memory, and for how long they stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from nnef_hw.architecture.architecture import Port
from nnef_hw.engine.layers.constant import InitialLayer
from nnef_hw.engine.layers.formats import Shape
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.memory.addressed_tables import address_tables
from nnef_hw.engine.memory.in_place import Replacing, attend_in_place
from nnef_hw.engine.memory.keeping import Keeping, keep
from nnef_hw.engine.memory.kept_matrices import keep_matrices
from nnef_hw.engine.memory.kept_tables import keep_tables
from nnef_hw.engine.memory.memory_plan import (
    Stay,
    allocate,
    allocate_banks,
    allocate_closely,
    are_apart,
)
from nnef_hw.engine.memory.rounds import Rounds, find_rounds, in_rounds
from nnef_hw.engine.memory.steps import Steps
from nnef_hw.engine.network.loading import Loading
from nnef_hw.engine.network.network import Arrangement, Network
from nnef_hw.hardware.devices import Device
from nnef_hw.hardware.geometry.blockram import tile_memory
from nnef_hw.parts.engine.sizes import CODE_BITS

__all__ = ["Placement"]


@dataclass(frozen=True, eq=False)
class Placement:
    """A network for an array of ``shape`` on a device: its tensors.

    Parameters
    ----------
    network, shape, device
        What runs, on which array, where.
    batch
        Frames that are computed together: a layer runs for all of them.
    frame_by_frame
        How many layers, from the first one on, still run for one frame after the other, as each is
        loaded.
    keeps_tables
        Whether tables of which an integer chooses a row are there as well.
    addresses_tables
        Whether they stay in the memory of the board, from which a row comes.
    fills_tables
        Whether they are in the memory of codes when the FPGA is configured.
    keeps_matrices
        Whether caches stay among the array's weights.
    dense
        Whether the second bank begins as early as it can, so that addresses have few bits.
    single_copy
        Whether codes that are added to others are in block RAM once: they are read where the array
        reads, in cycles in which it does not.
    head_by_head
        Whether products of activations, and what is between them, run for one head after the other.
    splits_pixels
        Whether pixels of inputs may cross borders of words.
    """

    network: Network
    shape: Shape
    device: Device
    batch: int = field(default=1, kw_only=True)
    frame_by_frame: int = field(default=0, kw_only=True)
    keeps_tables: bool = field(default=False, kw_only=True)
    addresses_tables: bool = field(default=False, kw_only=True)
    fills_tables: bool = field(default=False, kw_only=True)
    keeps_matrices: bool = field(default=False, kw_only=True)
    dense: bool = field(default=False, kw_only=True)
    single_copy: bool = field(default=False, kw_only=True)
    head_by_head: bool = field(default=False, kw_only=True)
    splits_pixels: bool = field(default=False, kw_only=True)

    @cached_property
    def steps(self) -> Steps:
        """Loads, layers and sends, in their order."""
        return Steps(
            inputs=len(self.network.sources), outputs=len(self.network.sinks),
            layers=len(self.frame_layers), once=len(self.layers) - len(self.frame_layers),
            batch=self.batch, frame_by_frame=self.frame_by_frame, rounds=self.rounds,
        )  # fmt: skip

    @cached_property
    def tensor_words(self) -> Mapping[str, int]:
        """Words that a frame of every tensor takes."""
        inputs, lanes = zip(self.network.sources, self.loadings, strict=True), self.shape.lanes
        return {
            **{source.tensor: loading.words for source, loading in inputs},
            **{layer.tensor: layer.target.words(lanes) for layer in (*self.layers, *self.filled)},
        }

    @property
    def _runs_by_head(self) -> bool:
        return self.head_by_head and self.batch == 1 and not self._has_banks

    @cached_property
    def rounds(self) -> tuple[Rounds, ...]:
        """Layers that run for one head after the other, in block RAM and frame by frame."""
        if not self._runs_by_head:
            return ()
        return tuple(find_rounds(self.replacing.layers, self._kept))

    @cached_property
    def _arranged(self) -> Arrangement:
        return self._whole._replace(layers=in_rounds(self.replacing.layers, self.rounds))

    @cached_property
    def replacing(self) -> Replacing:
        """The layers, and results that take the place of what was read."""
        if not self._runs_by_head:
            return Replacing(self._whole.layers, {})
        return attend_in_place(self._whole.layers, self._kept, self.shape.lanes)

    @property
    def _kept(self) -> frozenset[str]:
        """Tensors that are needed behind all layers."""
        return self.network.sent.union(state.result for state in self._whole.states)

    @cached_property
    def _whole(self) -> Arrangement:
        """The network for words of this size, of which all tensors are there as a whole."""
        found = self.network.arranged(self.shape.lanes, splits_pixels=self.splits_pixels)
        if self.keeps_matrices:
            found = keep_matrices(found, self.shape, self.network.sent)
        if self.addresses_tables:
            return found._replace(layers=address_tables(found.layers))
        fills = self.fills_tables and not self._has_banks
        if not self.keeps_tables and not fills:
            return found
        layers, tables = keep_tables(found.layers, self.shape.lanes)
        if fills:
            return found._replace(layers=layers, filled=tables)
        return found._replace(layers=layers, states=(*found.states, *tables))

    @property
    def loadings(self) -> tuple[Loading, ...]:
        """Words of each input, and how its beats become these."""
        return self._arranged.loadings

    @cached_property
    def keeping(self) -> Keeping:
        """Ways in which states get their next values, so that banks hold all if they can."""
        layers, states = self._arranged.layers, self._arranged.states

        def is_possible(trial: Keeping) -> bool:
            return are_apart(self._apart_in_banks((*layers, *trial.copies), trial))

        found = keep(states, layers, is_possible) if self._has_banks else None
        if found is not None and is_possible(found):
            return found
        return keep(states, layers, lambda _: True)

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Inputs, of which a beat has as many codes as are loaded in a cycle."""
        pairs = zip(self.network.sources, self.loadings, strict=True)
        return tuple(replace(source.port, lanes=loading.codes) for source, loading in pairs)

    @property
    def layers(self) -> tuple[EngineLayer, ...]:
        """All layers: those of a frame, then what writes initial values of states."""
        initial = (state.initial for state in self._arranged.states)
        return (*self.frame_layers, *initial, *self._arranged.beginnings)

    @property
    def filled(self) -> tuple[InitialLayer, ...]:
        """Contents of the memory of codes when the FPGA is configured: tables."""
        return tuple(state.initial for state in self._arranged.filled)

    @cached_property
    def frame_layers(self) -> tuple[EngineLayer, ...]:
        """Layers of a frame in the order in which they run."""
        return (*self._arranged.layers, *self.keeping.copies)

    @cached_property
    def stays(self) -> list[Stay]:
        """Times that tensors stay in memory: inputs are loaded, layers run, outputs sent.

        States are there all the time, and so are next values in their places.
        """
        network = self.network
        first = self.steps.loads_of_turn
        sent = first + len(self.frame_layers)
        held = self.keeping.held

        def stay(tensor: str, own: int, replaces: str | None = None) -> Stay:
            rounds = next((x for x in self.rounds if own - first in x.layers), None)
            reads = [
                first + self._read_last(n, rounds) for n, layer in enumerate(self.frame_layers)
                if tensor in layer.operands
            ]  # fmt: skip
            if rounds is not None:
                own = first + rounds.begin(own - first)
            sends = [
                n for n, step in enumerate(self.steps.sends, sent)
                if network.sinks[step.n].tensor == tensor
            ]  # fmt: skip
            last = max([own, *reads, *sends])
            words = self.tensor_words[tensor]
            if own >= first + self.frame_by_frame or not self.frame_by_frame:
                return Stay(tensor, self.batch * words, own, last, replaces)
            if last < first + self.frame_by_frame:
                return Stay(tensor, words, own, last, replaces)
            # Those of the first frames stay while the others come.
            return Stay(tensor, self.batch * words, 0, last)

        inputs = [source.tensor for source in network.sources]
        stays = [stay(name, n) for n, name in enumerate(inputs)]
        states = [state.name for state in (*self._arranged.states, *self._arranged.filled)]
        always = sent + len(self.steps.sends) - 1
        stays += [Stay(name, self.tensor_words[name], 0, always) for name in states]
        for n, layer in enumerate(self.frame_layers, first):
            if held(layer.tensor) in states or layer.tensor in self.replacing.tensors:
                continue
            other = layer.written_over
            stays.append(stay(layer.tensor, n, None if other is None else held(other)))
        return stays

    def _read_last(self, reader: int, own: Rounds | None) -> int:
        """Return the layer with which a tensor is read last that a layer reads.

        Parameters
        ----------
        own
            Those of the layer that computes the tensor, if it is in any.
        """
        rounds = next((x for x in self.rounds if reader in x.layers), None)
        return reader if rounds is None else rounds.end(reader, is_inside=rounds == own)

    @cached_property
    def _apart(self) -> frozenset[str]:
        """Tensors of which every frame has a place of its own."""
        return frozenset(
            x.tensor for x in self.stays if x.words == self.batch * self.tensor_words[x.tensor]
        )

    def place(self, tensor: str, frame: int) -> int:
        """Return the first word of a frame's tensor."""
        own = frame * self.tensor_words[tensor] if tensor in self._apart else 0
        return self.places[tensor] + own

    def places_read(self, layer: EngineLayer, frame: int) -> list[int]:
        """Return the first words of a frame's tensors that a layer reads.

        One that reads none has a place in the bank that it does not write.
        """
        reads = [self.place(name, frame) for name in layer.read_tensors]
        if reads or self.banks is None:
            return reads or [0]
        return [(1 - self.bank(self.banks[layer.tensor])) * self.bank_words]

    @property
    def peak(self) -> tuple[int, str]:
        """Most bytes that tensors take at a time, and the layer that runs then."""
        lanes, names = self.shape.lanes, [layer.name for layer in self.frame_layers]
        first = self.steps.loads_of_turn

        def taken(n: int) -> int:
            alive = [x for x in self.stays if x.first <= n <= x.last]
            written_over = {x.replaces for x in alive if x.first == n}
            return lanes * sum(
                x.words for x in alive if not (x.tensor in written_over and x.last == n)
            )

        n = max(range(first, first + len(names)), key=taken)
        return taken(n), names[n - first]

    @property
    def _has_banks(self) -> bool:
        """Whether words are of such a size that single-port RAM holds them."""
        ram, has_ports = self.device.single_port, self.shape.results == 1
        if not ram or not has_ports:
            return False
        return 2 * self.shape.lanes * CODE_BITS // ram.width <= self.device.spram

    @property
    def banks(self) -> Mapping[str, int] | None:
        """First word of every tensor in two banks of single-port RAM; None if that cannot be."""
        return self._in_banks[0]

    @cached_property
    def _in_banks(self) -> tuple[Mapping[str, int] | None, int]:
        """First word of every tensor in two banks, and the words of a bank; None and 0 if none."""
        if not self._has_banks:
            return None, 0
        assert self.device.single_port is not None
        apart = self._apart_in_banks(self.frame_layers, self.keeping)
        depth = self.device.single_port.depth
        found = allocate_banks(self.stays, apart, depth)
        if found is None:
            return None, 0
        if self.dense:
            words = {stay.tensor: stay.words for stay in self.stays}
            longest = max(place % depth + words[name] for name, place in found.items())
            depth = 1 << (longest - 1).bit_length()
            found = allocate_banks(self.stays, apart, depth)
            assert found is not None, "both banks have room for what they hold"
        return self._with_next(found), depth

    def _apart_in_banks(
        self, layers: Sequence[EngineLayer], keeping: Keeping
    ) -> list[tuple[str, str]]:
        """Return pairs of tensors of which one is read while the other one is written."""
        held = keeping.held
        return [(held(x), held(layer.tensor)) for layer in layers for x in layer.tensors_apart]

    def _with_next(self, places: Mapping[str, int]) -> Mapping[str, int]:
        """Return the places of tensors, and those of results in the places of others."""
        held = {**self.keeping.in_place, **self.replacing.tensors}
        own = {name: places[other] for name, other in held.items()}
        return {**places, **own}

    @property
    def bank_words(self) -> int:
        """Words of a bank; the second one begins there."""
        assert self.banks is not None, "banks are of single-port RAM"
        return self._in_banks[1]

    def bank(self, place: int) -> int:
        """Return the bank of a word."""
        return place // self.bank_words

    def meets(self, layer: EngineLayer, part: int) -> bool:
        """Whether a part of a layer reads the bank that its other parts write."""
        if self.banks is None or layer.part_operand(part) in layer.tensors_apart:
            return False
        read, written = (self.places[x] for x in (layer.part_operand(part), layer.tensor))
        return self.bank(read) == self.bank(written)

    @cached_property
    def memory(self) -> tuple[Mapping[str, int], int]:
        """First word of every tensor, and words in all.

        In block RAM those that are added come first, if that takes less of it.
        """
        if self.banks is not None:
            return self.banks, 2 * self.bank_words

        ways = [allocate(self.stays), allocate(self.stays, before=self._added)]
        if self.head_by_head:
            ways.append(allocate_closely(self.stays))
        places, words = min(ways, key=self._size)
        return self._with_next(places), words

    def _size(self, memory: tuple[Mapping[str, int], int]) -> tuple[int, int]:
        """Return the block RAMs of a memory, and its words."""
        depths = memory[1], self._added_until(memory[0])
        bits, ram = self.shape.lanes * CODE_BITS, self.device.ram
        blocks = sum(tile_memory(ram, depth, bits).count for depth in depths if depth)
        return blocks, sum(depths)

    @property
    def code_blocks(self) -> int:
        """Block RAMs of all tensors."""
        return self._size(self.memory)[0] if self.banks is None else 0

    @property
    def _added(self) -> set[str]:
        """Tensors that are added to results, of which there is a second copy."""
        if self.single_copy:
            return set()
        held = self.keeping.held
        return {held(layer.residual.tensor) for layer in self.layers if layer.residual}

    def _added_until(self, places: Mapping[str, int]) -> int:
        """Return the end of those; 0 if there are none."""
        ends = (places[x.tensor] + x.words for x in self.stays if x.tensor in self._added)
        return max(ends, default=0)

    @property
    def other_words(self) -> int:
        """Words that are in block RAM a second time: up to the last one that is added."""
        return self._added_until(self.places) if self.banks is None else 0

    @cached_property
    def lasting(self) -> tuple[range, range]:
        """Words of each bank that no tensor ever takes: what is there outlives a frame.

        They are the last ones. Whoever keeps something from a frame to the next one puts it there.
        """
        return self._behind(0, self.stays), self._behind(1, self.stays)

    def unused(self, bank: int, first: int, last: int) -> range:
        """Return the words of a bank behind all tensors that are there in some steps of a turn.

        What is there in these steps does not outlive them, unless it is :attr:`lasting`.
        """
        key = bank, first, last
        if key not in self._unused:
            stays = [x for x in self.stays if x.first <= last and first <= x.last]
            self._unused[key] = self._behind(bank, stays)
        return self._unused[key]

    @cached_property
    def _unused(self) -> dict[tuple[int, int, int], range]:
        return {}

    def _behind(self, bank: int, stays: Sequence[Stay]) -> range:
        begin = bank * self.bank_words
        ends = (self.places[x.tensor] + x.words for x in stays)
        own = (
            end
            for x, end in zip(stays, ends, strict=True)
            if self.bank(self.places[x.tensor]) == bank
        )
        return range(max(own, default=begin), begin + self.bank_words)

    def shares(self, layer: EngineLayer) -> bool:
        """Whether what is added to its result is in the memory, or bank, that it reads."""
        if layer.residual is None:
            return False
        if self.banks is None:
            return self.single_copy
        other, own = self.banks[layer.residual.tensor], self.banks[layer.tensor]
        return self.bank(other) != self.bank(own)

    @property
    def places(self) -> Mapping[str, int]:
        """First word of every tensor."""
        return self.memory[0]
