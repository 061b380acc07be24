"""A board at work: real inputs to real outputs over the host link."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nnef_hw.errors import SampleError, UnsupportedError, UsageError
from nnef_hw.ir.batch import join_batch, samples_shape, split_samples
from nnef_hw.manifest import Manifest, TensorStream, read_manifest
from nnef_hw.run.link import Counters, Host, Timing, Transport
from nnef_hw.run.serial_port import SerialTransport
from nnef_hw.run.streams import from_stream, to_stream

__all__ = ["Device", "open_device"]

MAX_REPLAY = 0xFFFF

_log = logging.getLogger(__name__)


class Device:
    """An accelerator behind a host link, in session.

    Parameters
    ----------
    manifest
        Of the build that the board runs.
    transport
        Carries the bytes.
    timing
        How long to wait for what.
    progress
        Show a bar while batches run, if the standard error is a terminal.

    Raises
    ------
    LinkError
        If nobody answers, or the board runs another build.
    UnsupportedError
        If the network has several inputs or outputs.
    """

    def __init__(
        self,
        manifest: Manifest,
        transport: Transport,
        timing: Timing | None = None,
        *,
        progress: bool = False,
    ) -> None:
        for kind, streams in (("inputs", manifest.inputs), ("outputs", manifest.outputs)):
            if len(streams) != 1:
                raise UnsupportedError(
                    f"network {manifest.model!r} has {len(streams)} {kind}, the link carries one",
                    remedy="run it with --on rtl",
                )
        self.manifest = manifest
        self.host = Host(transport, timing)
        self.identity = self.host.open(manifest.hash)
        self._progress = progress
        self._broken = False

    def run(
        self, inputs: Mapping[str, NDArray[Any]] | NDArray[Any]
    ) -> dict[str, NDArray[np.float64]]:
        """Run a batch: return the real outputs [N, ...] of real inputs [N, ...].

        Parameters
        ----------
        inputs
            An array per input by name, or the array of the only one.

        Raises
        ------
        SampleError
            If an input is missing, or its shape or its numbers do not fit.
        LinkError
            If the board stops answering. The next run begins a new session.
        """
        (source,), (sink,) = self.manifest.inputs, self.manifest.outputs
        codes = self.run_codes(source.qtype.quantize(_samples(inputs, source)))
        return {sink.name: sink.qtype.dequantize(codes)}

    def run_codes(self, codes: NDArray[Any]) -> NDArray[np.int64]:
        """Return the output codes [N, ...] of input codes [N, ...], as the hardware has them."""
        (source,), (sink,) = self.manifest.inputs, self.manifest.outputs
        frames = [beats.astype(source.dtype).tobytes() for beats in to_stream(codes, source)]
        result_bytes = sink.beats * sink.lanes * np.dtype(sink.dtype).itemsize
        if self._broken:
            self.host.open(self.manifest.hash)
        self._broken = True
        results = list(self._track(self.host.infer(frames, result_bytes), len(frames)))
        self._broken = False
        beats = np.stack([np.frombuffer(result, sink.dtype) for result in results])
        return from_stream(beats, sink, sink.shape)

    def counters(self) -> Counters:
        """Measurements of the board, see docs/protocol.md."""
        return self.host.counters()

    def replay(self, frames: int) -> Counters:
        """Let the board feed itself frames without a pause; return what that took.

        ``interval`` then is the core's cycles per inference, which the link would hide.

        Parameters
        ----------
        frames
            How many, 2 to 65535.

        Raises
        ------
        ValueError
            If ``frames`` is out of this range.
        LinkError
            If the board stops answering, or has no replay.
        """
        if not 2 <= frames <= MAX_REPLAY:
            raise ValueError(f"frames must be 2 to {MAX_REPLAY}, not {frames}")
        self.host.abort()
        self.host.replay(frames)
        self.host.wait_for_replay()
        return self.host.counters()

    def _track(self, results: Iterator[bytes], total: int) -> Iterator[bytes]:
        if not (self._progress and sys.stderr.isatty()):
            return results
        from rich.console import Console
        from rich.progress import track

        console = Console(stderr=True)
        return iter(track(results, self.manifest.board, total=total, console=console))


@contextlib.contextmanager
def open_device(
    build: Path | str, port: str, *, timing: Timing | None = None, progress: bool = False
) -> Iterator[Device]:
    """Open the board that runs a build, as a context manager.

    Parameters
    ----------
    build
        The build's folder; of it only ``manifest.json`` is read, unless the board is simulated.
    port
        Serial port, such as ``/dev/ttyUSB1`` or ``COM3``; ``sim`` starts the simulated board.
    timing
        How long to wait for what, if not the protocol's usual times.
    progress
        Show a bar while batches run, if the standard error is a terminal.

    Raises
    ------
    UsageError
        If there is no such build or port, or no permission to open it.
    LinkError
        If the board does not answer, or runs another build.

    Examples
    --------
    >>> with open_device("build/digits_cnn", "/dev/ttyUSB1") as board:
    ...     scores = board.run(images)["scores"]
    """
    build = Path(build)
    manifest = read_manifest(build)
    if manifest.link != "uart":
        raise UsageError(
            f"{str(build)!r} has the link {manifest.link!r}, which is no serial port",
            remedy="build it with --link uart",
        )
    with contextlib.ExitStack() as stack:
        if port == "sim":
            from nnef_hw.sim.pty_board import PtyBoard

            verilog = build / "board" / "board_top.v"
            if not verilog.is_file():
                raise UsageError(f"{str(build)!r} has no board", remedy="build with --board")
            clk_hz = round(manifest.clock_mhz * 1e6)
            board = stack.enter_context(
                PtyBoard(verilog.read_text(), clk_hz=clk_hz, baud=manifest.baud)
            )
            port, timing = board.port, (timing or Timing()).scaled(board.slowness)
        transport = stack.enter_context(SerialTransport(port, manifest.baud))
        device = Device(manifest, transport, timing, progress=progress)
        yield device
        if device.host.repeats:
            _log.warning(
                "%s: %d packets were repeated because the line had damaged or lost them",
                port, device.host.repeats,
            )  # fmt: skip


def _samples(
    inputs: Mapping[str, NDArray[Any]] | NDArray[Any], source: TensorStream
) -> NDArray[np.float64]:
    """Return the samples [N, ...] of the only input."""
    if isinstance(inputs, Mapping):
        if source.name not in inputs:
            raise SampleError(f"no samples for input {source.name!r}")
        inputs = inputs[source.name]
    values = np.asarray(inputs, np.float64)
    samples = split_samples(values, source.shape)
    if samples is None:
        expected = samples_shape(source.shape)
        raise SampleError(f"input {source.name!r} has shape {list(values.shape)}, not {expected}")
    if not len(samples):
        raise SampleError("there are no samples")
    if not np.isfinite(samples).all():
        raise SampleError(f"input {source.name!r} holds NaN or infinity")
    return join_batch(samples, source.shape)
