"""Where the tensors of a network are in an engine's memory, for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from nnef_hw.architecture import Port
from nnef_hw.blockram import SPRAM_SHAPE, tile_memory
from nnef_hw.devices import Device
from nnef_hw.engine.layer import Layer, Shape
from nnef_hw.engine.memory_plan import Stay, allocate, allocate_banks
from nnef_hw.engine.network import Loading, Network
from nnef_hw.parts.engine import CODE_BITS

__all__ = ["Placement", "Transfer"]


class Transfer(NamedTuple):
    """Frames of an input or output, by its number, that an instruction loads or sends."""

    port: int
    first: int
    frames: int


@dataclass(frozen=True, eq=False)
class Placement:
    """A network for an array of ``shape`` on a device: its tensors.

    Parameters
    ----------
    network, shape, device
        What runs, on which array, where.
    batch
        Frames that are taken before the first one is computed: each layer runs for all of them.
    """

    network: Network
    shape: Shape
    device: Device
    batch: int = field(default=1, kw_only=True)

    @property
    def loads(self) -> tuple[Transfer, ...]:
        """What loads the inputs of a batch."""
        return self._transfers(len(self.network.sources))

    @property
    def sends(self) -> tuple[Transfer, ...]:
        """What sends its outputs."""
        return self._transfers(len(self.network.sinks))

    def _transfers(self, ports: int) -> tuple[Transfer, ...]:
        # Several ports take turns, since only a frame of each can wait in the host link.
        if ports == 1:
            return (Transfer(0, 0, self.batch),)
        return tuple(Transfer(n, frame, 1) for frame in range(self.batch) for n in range(ports))

    @cached_property
    def tensor_words(self) -> Mapping[str, int]:
        """Words that a frame of every tensor takes."""
        inputs = zip(self.network.sources, self.loadings, strict=True)
        return {
            **{source.tensor: loading.words for source, loading in inputs},
            **{layer.tensor: layer.target.words(self.shape.lanes) for layer in self.layers},
        }

    @cached_property
    def _loaded(self) -> tuple[tuple[Loading, ...], tuple[Layer, ...]]:
        return self.network.loading(self.shape.lanes)

    @property
    def loadings(self) -> tuple[Loading, ...]:
        """How each input becomes words."""
        return self._loaded[0]

    @cached_property
    def inputs(self) -> tuple[Port, ...]:
        """Inputs, of which a beat has as many codes as are loaded in a cycle."""
        pairs = zip(self.network.sources, self.loadings, strict=True)
        return tuple(replace(source.port, lanes=loading.codes) for source, loading in pairs)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Layers in the order in which they run."""
        return self._loaded[1]

    @cached_property
    def stays(self) -> list[Stay]:
        """From when to when tensors are in memory: inputs are loaded, layers run, outputs sent."""
        network = self.network
        first = len(self.loads)
        sent = first + len(self.layers)

        def last(tensor: str, own: int) -> int:
            reads = [n for n, layer in enumerate(self.layers, first) if tensor in layer.operands]
            sends = [
                n for n, transfer in enumerate(self.sends, sent)
                if network.sinks[transfer.port].tensor == tensor
            ]  # fmt: skip
            return max([own, *reads, *sends])

        def words(tensor: str) -> int:
            return self.batch * self.tensor_words[tensor]

        inputs = [source.tensor for source in network.sources]
        stays = [Stay(name, words(name), n, last(name, n)) for n, name in enumerate(inputs)]
        for n, layer in enumerate(self.layers, first):
            other = None if layer.residual is None else layer.residual.tensor
            if other in layer.read_tensors:
                other = None  # words that are written over are read again
            stays.append(Stay(layer.tensor, words(layer.tensor), n, last(layer.tensor, n), other))
        return stays

    @property
    def peak(self) -> tuple[int, str]:
        """Most bytes that tensors take at a time, and the layer that runs then."""
        lanes, names = self.shape.lanes, [layer.name for layer in self.layers]
        first = len(self.loads)

        def taken(n: int) -> int:
            alive = [x for x in self.stays if x.first <= n <= x.last]
            written_over = {x.replaces for x in alive if x.first == n}
            return lanes * sum(
                x.words for x in alive if not (x.tensor in written_over and x.last == n)
            )

        n = max(range(first, first + len(names)), key=taken)
        return taken(n), names[n - first]

    @cached_property
    def banks(self) -> Mapping[str, int] | None:
        """First word of every tensor in two banks of single-port RAM; None if that cannot be."""
        depth, width = SPRAM_SHAPE
        has_ports = self.shape.results == 1
        if not has_ports or 2 * self.shape.lanes * CODE_BITS // width > self.device.spram:
            return None
        apart = [(name, layer.tensor) for layer in self.layers for name in layer.read_tensors]
        return allocate_banks(self.stays, apart, depth)

    @cached_property
    def memory(self) -> tuple[Mapping[str, int], int]:
        """First word of every tensor, and words in all.

        In block RAM those that are added come first, if that takes less of it.
        """
        if self.banks is not None:
            return self.banks, 2 * SPRAM_SHAPE[0]

        def size(found: tuple[Mapping[str, int], int]) -> tuple[int, int]:
            depths = found[1], self._added_until(found[0])
            bits, ram = self.shape.lanes * CODE_BITS, self.device.ram
            blocks = sum(tile_memory(ram, depth, bits).count for depth in depths if depth)
            return blocks, sum(depths)

        ways = (allocate(self.stays), allocate(self.stays, before=self._added))
        return min(ways, key=size)

    @property
    def _added(self) -> set[str]:
        """Tensors that are added to results."""
        return {layer.residual.tensor for layer in self.layers if layer.residual}

    def _added_until(self, places: Mapping[str, int]) -> int:
        """Return the end of those; 0 if there are none."""
        ends = (places[x.tensor] + x.words for x in self.stays if x.tensor in self._added)
        return max(ends, default=0)

    @property
    def other_words(self) -> int:
        """Words that are in block RAM a second time: up to the last one that is added."""
        return self._added_until(self.places) if self.banks is None else 0

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
