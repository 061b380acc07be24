"""Layers as RTLIL, kept in the cache; those that are not there yet are converted side by side."""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path

from nnef_hw.codegen.hierarchy import Converted, Converter
from nnef_hw.streaming.hardware.layer_module import LayerModule
from nnef_hw.system.files import digest, publish_directory, writing
from nnef_hw.system.process_group import run_parallel
from nnef_hw.system.sources import package_digest
from nnef_hw.system.tools import Tool, cache_directory, run_tool

__all__ = ["CachingConverter", "convert_layers"]

_FILE = "modules.pickle"
# Another process takes about a second to start, a layer of fewer multipliers less to convert.
_WORTHWHILE = 64


class CachingConverter(Converter):
    """Takes layers from the cache, and puts those there that it has to convert."""

    def convert_component(self, component: object) -> Converted:
        """Return a component's module; of a layer, that of the cache."""
        if not isinstance(component, LayerModule):
            return super().convert_component(component)
        key, found = pickle.loads((self.kept(component) / _FILE).read_bytes())
        for unused in (component, *component.components):
            # Amaranth warns of what is never elaborated.
            unused._MustUse__used = True
        self.found.update(found)
        converted: Converted = self.found[key]
        return converted

    def kept(self, layer: LayerModule) -> Path:
        """Return the folder of the cache in which a layer is, after it is there."""

        def produce(folder: Path) -> None:
            alone = Converter(self.prefix)
            top = Converter.convert_component(alone, layer)
            (folder / _FILE).write_bytes(pickle.dumps((top.key, alone.found)))

        return publish_directory(self._place(layer), produce)

    def is_kept(self, layer: LayerModule) -> bool:
        """Whether a layer is in the cache."""
        return self._place(layer).is_dir()

    def _place(self, layer: LayerModule) -> Path:
        key = digest(package_digest(), version("amaranth"), self.prefix, layer.content)[:32]
        return cache_directory() / "layers" / key


def convert_layers(layers: Sequence[LayerModule], prefix: str) -> None:
    """Put layers into the cache, by as many processes as there are processors.

    Raises
    ------
    ToolError
        If one of them fails.
    """
    converter = CachingConverter(prefix)
    missing = [layer for layer in layers if not converter.is_kept(layer)]
    if sum(layer.block.multipliers for layer in missing) < _WORTHWHILE:
        return
    processors = os.cpu_count() or 1
    # The large ones first, each to the processor that has least to do.
    shares: list[list[LayerModule]] = [[] for _ in range(min(processors, len(missing)))]
    for layer in sorted(missing, key=_weight, reverse=True):
        min(shares, key=lambda share: sum(map(_weight, share))).append(layer)
    python = Tool("python", (sys.executable, "-P", "-m", __name__), "", Path(sys.executable))
    with tempfile.TemporaryDirectory(prefix="nnef-hw-") as scratch:
        jobs = []
        for n, share in enumerate(shares):
            file = Path(scratch) / f"{n}.pickle"
            with writing(file):
                described = [(x.block, x.beats, x.counted, x.resets_late) for x in share]
                file.write_bytes(pickle.dumps((prefix, described)))
            jobs.append(partial(run_tool, python, [file.name], cwd=Path(scratch)))
        run_parallel(jobs)


def _weight(layer: LayerModule) -> int:
    bits = sum(
        memory.depth * memory.width for part in layer.block.parts for memory in part.memories
    )
    return bits + 1000 * (layer.block.multipliers + len(layer.block.parts))


def _convert_share(file: Path) -> None:
    prefix, described = pickle.loads(file.read_bytes())
    converter = CachingConverter(prefix)
    for block, beats, counted, late in described:
        converter.kept(LayerModule(block, beats, counted=counted, resets_late=late))


if __name__ == "__main__":
    _convert_share(Path(sys.argv[1]))
