"""A network on the shared engine: layers one after the other, between inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nnef_hw.architecture.architecture import Port
from nnef_hw.engine.layers import gather
from nnef_hw.engine.layers.constant import (
    KeptState,
)
from nnef_hw.engine.layers.contraction import ContractionLayer
from nnef_hw.engine.layers.conv import ConvLayer
from nnef_hw.engine.layers.ends import Head, Tail
from nnef_hw.engine.layers.formats import Image
from nnef_hw.engine.layers.layer import EngineLayer
from nnef_hw.engine.layers.pieces import WordView
from nnef_hw.engine.network.loading import Loading, loading_of

__all__ = ["Arrangement", "Input", "Network", "Sink"]


@dataclass(frozen=True, slots=True)
class Input:
    """An input of the array.

    Parameters
    ----------
    port
        Its port; behind a head what that gives.
    tensor, image
        The tensor that it brings, and that one's image in memory.
    head
        What stands between the port and the array.
    """

    port: Port
    tensor: str
    image: Image
    head: Head | None = None


@dataclass(frozen=True, slots=True)
class Sink:
    """An output.

    Parameters
    ----------
    port
        Its port.
    tensor, image
        The tensor that is sent, and its image in memory.
    bits, signed
        Format of its codes.
    tail
        What stands between these and the port.
    """

    port: Port
    tensor: str
    image: Image
    bits: int
    signed: bool
    tail: Tail | None

    @property
    def instance(self) -> str:
        """Name of the tail's instance: that of the only one is ``tail``."""
        return f"tail{self.port.name.removeprefix('o')}"

    @property
    def codes(self) -> int:
        """Codes that are sent."""
        return self.image.pixels * self.image.channels


class Arrangement(NamedTuple):
    """A network for words of some size.

    Attributes
    ----------
    loadings
        How inputs become words.
    layers
        Layers that follow.
    states
        States, with the names of their next values among these.
    beginnings
        Layers that run once, before the first frame and behind initial values of states.
    filled
        States that never change, which are in memory when the FPGA is configured.
    """

    loadings: tuple[Loading, ...]
    layers: tuple[EngineLayer, ...]
    states: tuple[KeptState, ...]
    beginnings: tuple[EngineLayer, ...] = ()
    filled: tuple[KeptState, ...] = ()


@dataclass(frozen=True, eq=False)
class Network:
    """Layers in the order in which they run, between inputs and outputs.

    Parameters
    ----------
    name
        Name of the model.
    layers
        The layers.
    sources, sinks
        Inputs and outputs, in the order in which they are loaded and sent.
    states
        What a frame leaves for the next one.
    """

    name: str
    layers: tuple[EngineLayer, ...]
    sources: tuple[Input, ...]
    sinks: tuple[Sink, ...]
    states: tuple[KeptState, ...] = ()

    def fits(self, lanes: int) -> bool:
        """Whether codes that change their places do so in words of so many."""
        moves = [layer for layer in self.layers if isinstance(layer, gather.GatherLayer)]
        rows = [layer for layer in self.layers if layer.row is not None]
        are_whole = all(row.target.channels % lanes == 0 for row in rows)
        return are_whole and all(layer.fits(lanes) for layer in moves)

    @property
    def sent(self) -> frozenset[str]:
        """Names of the tensors that are outputs."""
        return frozenset(sink.tensor for sink in self.sinks)

    @property
    def _kept(self) -> frozenset[str]:
        """Names of the tensors that are there when all layers have run: sent, or kept."""
        return self.sent | {state.result for state in self.states}

    def arranged(self, lanes: int, *, splits_pixels: bool = False) -> Arrangement:
        """Return how inputs are loaded for words of so many codes, and the layers that follow.

        Parameters
        ----------
        splits_pixels
            Whether pixels of inputs may cross borders of words.
        """
        loadings, layers = [], list(self.layers)
        for source in self.sources:
            loading = Loading.of(source.image, lanes)
            readers = [n for n, layer in enumerate(layers) if source.tensor in layer.operands]
            reader = layers[readers[0]] if readers else None
            is_alone = len(readers) == 1 and source.tensor not in self._kept
            layer = reader
            if is_alone and isinstance(reader, ConvLayer) and reader.operands == (source.tensor,):
                loading, layer = loading_of(
                    reader, source.image, lanes, splits_pixels=splits_pixels
                )
            if source.port.image[2] % loading.codes or (source.head and loading.codes > 1):
                # The host's pixels are others than those in memory, and end within a word; and
                # what a head gives are single codes.
                loading, layer = Loading.by_code(source.image, lanes), reader
            if readers and layer is not None:
                layers[readers[0]] = layer
            loadings.append(loading)
        names: dict[str, str] = {}
        working = tuple(self._working(layers, lanes, names))
        states = tuple(state.renamed(names) for state in self.states)
        return Arrangement(tuple(loadings), working, states)

    def _working(
        self, layers: Sequence[EngineLayer], lanes: int, names: dict[str, str]
    ) -> Iterator[EngineLayer]:
        """Return the layers without moves of whole words that nobody needs.

        Words that stay as they are, in their order, whose tensors get other ``names``, and those
        that products of two activations find where they come from.
        """
        sent = self.sent
        views: dict[str, WordView] = {}
        found: list[EngineLayer] = []
        for layer in layers:
            own = layer.renamed(names)
            if isinstance(own, gather.GatherLayer):
                view = own.view(lanes)
                if own.is_idle(lanes) and own.tensor not in sent:
                    names[own.tensor] = own.operand
                    continue
                before = views.get(own.operand)
                whole = view if before is None or view is None else before.behind(view)
                if whole is not None:
                    views[own.tensor] = whole
            found.append(own.viewing(views, lanes) if isinstance(own, ContractionLayer) else own)
        read = {names.get(name, name) for name in self._kept}
        for own in reversed(found):
            is_read = not isinstance(own, gather.GatherLayer) or own.tensor in read
            read |= {*own.operands} if is_read else set()
        return (x for x in found if not isinstance(x, gather.GatherLayer) or x.tensor in read)
