"""Host side of plain IP in a Zynq: frames by AXI DMA, registers by AXI4-Lite.

Nothing here imports PYNQ. What it needs are objects with the methods that PYNQ's have:
``pynq.MMIO`` or an IP of an overlay, channels of ``pynq.lib.dma.DMA``, and ``pynq.allocate``::

    overlay = pynq.Overlay("design.bit")
    dma = overlay.axi_dma_0
    device = DmaAccelerator(
        Path("build"), [dma.sendchannel], [dma.recvchannel], pynq.allocate, overlay.accelerator
    )
    scores = device.run({"image": images})["scores"]
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.numerics import IntArray
from nnef_hw.errors import ToolError, UsageError
from nnef_hw.host.manifest import Manifest, TensorStream, read_manifest
from nnef_hw.host.streams import fill_batch, from_stream, to_stream
from nnef_hw.registers.accelerator import ID, accelerator_registers

__all__ = ["Allocate", "Channel", "DmaAccelerator", "DmaError", "Registers"]


class DmaError(ToolError):
    """The accelerator does not do what its manifest says."""


class Registers(Protocol):
    """Registers of a peripheral by their addresses, in bytes."""

    def read(self, offset: int) -> int:
        """Return a word."""

    def write(self, offset: int, value: int) -> None:
        """Write a word."""


class Channel(Protocol):
    """A direction of an AXI DMA in its simple mode, without scatter and gather."""

    @property
    def idle(self) -> bool:
        """Whether the transfer that was begun is finished."""

    def transfer(self, array: NDArray[np.generic]) -> None:
        """Begin to transfer a buffer, as one packet."""

    def wait(self) -> None:
        """Wait until it is finished; the buffer then holds what came."""


Allocate = Callable[[tuple[int, ...], np.dtype[np.generic]], NDArray[np.generic]]
"""Makes a buffer that a DMA reaches, of a shape and a type."""


@dataclass
class _Lane:
    """A stream, the channel that carries it, and the buffer of one frame."""

    stream: TensorStream
    channel: Channel
    buffer: NDArray[np.generic]
    is_busy: bool = False

    def begin(self) -> None:
        self.channel.transfer(self.buffer)
        self.is_busy = True

    def finish(self) -> bool:
        """Return whether nothing is on its way; what was is in the buffer."""
        if self.is_busy and self.channel.idle:
            self.channel.wait()
            self.is_busy = False
        return not self.is_busy


class DmaAccelerator:
    """An accelerator on AXI4-Stream, each of whose streams has a channel of an AXI DMA.

    A frame is a packet. The next frame is on its way in while results come out.

    Parameters
    ----------
    build
        Folder of the build, of which ``manifest.json`` is read.
    send, receive
        Channels to the inputs and from the outputs, in the manifest's order. A channel's stream is
        as wide as a beat, or a converter of widths stands between.
    allocate
        Makes buffers for them: ``pynq.allocate``.
    registers
        The accelerator's registers, if it has them.
    stall
        Seconds without a frame in or out after which an error is raised.

    Raises
    ------
    UsageError
        If there are not as many channels as tensors.
    DmaError
        If what answers at the registers is no accelerator, or of another build.
    """

    def __init__(
        self,
        build: Path,
        send: Sequence[Channel],
        receive: Sequence[Channel],
        allocate: Allocate,
        registers: Registers | None = None,
        *,
        stall: float = 5.0,
    ) -> None:
        self.manifest: Manifest = read_manifest(build)
        self._build, self._stall = build, stall
        self._inputs = _lanes("inputs", self.manifest.inputs, send, allocate)
        self._outputs = _lanes("outputs", self.manifest.outputs, receive, allocate)
        self._registers = registers
        table = accelerator_registers(
            "accelerator", "", self.manifest.hash, with_data=False,
            with_program=self.manifest.program is not None,
        )  # fmt: skip
        self._addresses = {register.name: address for address, register in table.addressed()}
        if registers is not None:
            self._check(self._read("id"), self._read("hash"))

    def _check(self, identity: int, build: int) -> None:
        if identity != ID:
            raise DmaError(
                f"{identity:#010x} stands where an accelerator has {ID:#010x}",
                remedy="give the registers of the accelerator",
            )
        found, wanted = build.to_bytes(4, "little"), self.manifest.hash[:4]
        if found != wanted:
            raise DmaError(
                f"the FPGA has build {found.hex()}, not {wanted.hex()}",
                remedy="load the bitstream that was made with this build",
            )

    def run(self, inputs: Mapping[str, ArrayLike]) -> dict[str, NDArray[np.float64]]:
        """Return real outputs by name of real inputs [N, ...] by name."""
        streams = self.manifest.inputs
        codes = {stream.name: stream.quantize(inputs[stream.name]) for stream in streams}
        found = self.run_codes(codes)
        return {
            stream.name: stream.dequantize(found[stream.name]) for stream in self.manifest.outputs
        }

    def run_codes(self, codes: Mapping[str, Array]) -> dict[str, IntArray]:
        """Return codes of outputs by name, of codes of inputs [N, ...].

        Raises
        ------
        UsageError
            If an input is missing or empty, or inputs differ in how many frames they have.
        DmaError
            If no frame passes for as long as ``stall``.
        """
        names = [lane.stream.name for lane in self._inputs]
        missing = [name for name in names if name not in codes]
        counts = {len(codes[name]) for name in names if name not in missing}
        if missing or len(counts) != 1 or 0 in counts:
            raise UsageError(
                f"the network takes {', '.join(names)}: as many frames of each",
                remedy="give an array [N, ...] for every one of them, with the same N",
            )
        [count] = counts
        frames = [
            _packed(fill_batch(codes[lane.stream.name], self.manifest.batch), lane.stream)
            for lane in self._inputs
        ]
        found = self._exchange(frames)
        return {
            lane.stream.name: from_stream(beats, lane.stream, lane.stream.shape)[:count]
            for lane, beats in zip(self._outputs, found, strict=True)
        }

    def _exchange(self, frames: Sequence[NDArray[np.generic]]) -> list[NDArray[np.generic]]:
        """Pass frames [N, beats, lanes] of every input, and return those of every output."""
        count = len(frames[0])
        found = [np.empty((count, *lane.buffer.shape), lane.buffer.dtype) for lane in self._outputs]
        sent = [0] * len(self._inputs)
        taken = [0] * len(self._outputs)
        for lane in self._outputs:
            lane.begin()
        deadline = time.monotonic() + self._stall
        while min(taken) < count:
            before = sum(sent) + sum(taken)
            for n, lane in enumerate(self._inputs):
                if sent[n] < count and lane.finish():
                    lane.buffer[:] = frames[n][sent[n]]
                    lane.begin()
                    sent[n] += 1
            for n, lane in enumerate(self._outputs):
                if taken[n] < count and lane.finish():
                    found[n][taken[n]] = lane.buffer
                    taken[n] += 1
                    if taken[n] < count:
                        lane.begin()
            if sum(sent) + sum(taken) > before:
                deadline = time.monotonic() + self._stall
            elif time.monotonic() > deadline:
                raise DmaError(
                    f"no frame passes: {min(sent)} of {count} went in, {min(taken)} came out",
                    remedy="compare the streams' widths and order with those of the manifest",
                )
        for lane in self._inputs:
            lane.finish()
        return found

    def restart(self) -> None:
        """Drop the frames inside, and let states begin with their initial values."""
        control = self._addresses["control"]
        self._named().write(control, 0b11)

    def load_program(self) -> None:
        """Write the build's program with its weights, which drops the frames inside.

        That is how a build with ``--weights-of`` comes to the bitstream of another one.

        Raises
        ------
        UsageError
            If the build has no program to load, or its file is not that of the build.
        DmaError
            If words of it are missing at the end.
        """
        if self.manifest.program is None:
            raise UsageError(
                "the accelerator takes no other program", remedy="build it with --bus-program"
            )
        registers, addresses = self._named(), self._addresses
        words = np.frombuffer(self.manifest.program.read(self._build), "<u4")
        registers.write(addresses["control"], 0b101)
        for word in words.tolist():
            registers.write(addresses["program"], word)
        if left := self._read("program_left"):
            raise DmaError(
                f"{left:,} of {len(words):,} words of the program are missing",
                remedy="give the registers of the accelerator to nothing else meanwhile",
            )

    @property
    def latency(self) -> int:
        """Cycles of the latest frame that entered an empty accelerator."""
        return self._read("latency")

    @property
    def interval(self) -> int:
        """Cycles between the latest two results."""
        return self._read("interval")

    @property
    def frames(self) -> int:
        """Frames since the last restart."""
        return self._read("frames")

    def _read(self, name: str) -> int:
        return self._named().read(self._addresses[name])

    def _named(self) -> Registers:
        if self._registers is None:
            raise UsageError(
                "the accelerator was made without registers",
                remedy="build with --bus axi4-lite, and give its registers",
            )
        return self._registers


def _lanes(
    kind: str, streams: Sequence[TensorStream], channels: Sequence[Channel], allocate: Allocate
) -> list[_Lane]:
    if len(streams) != len(channels):
        raise UsageError(
            f"the network has {len(streams)} {kind} "
            f"({', '.join(stream.name for stream in streams)}), not {len(channels)}",
            remedy="give a channel for each",
        )
    return [
        _Lane(stream, channel, allocate((stream.beats, stream.lanes), np.dtype(stream.dtype)))
        for stream, channel in zip(streams, channels, strict=True)
    ]


def _packed(codes: Array, stream: TensorStream) -> NDArray[np.generic]:
    """Return frames [N, beats, lanes] of codes in whole bytes."""
    return to_stream(codes, stream).astype(stream.dtype)
