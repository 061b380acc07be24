"""A board at work: real inputs to real outputs over the host link."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.boards.interfaces import HostLink, link_of
from nnef_hw.errors import TargetError, UsageError
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.host.chip_loop import BoardLoop
from nnef_hw.host.link import Host, LinkError, Timing, Transport
from nnef_hw.host.manifest import Manifest, answer_hash, probe_codes, read_manifest
from nnef_hw.host.packets import Counters, Identity, LayerCounts
from nnef_hw.host.streams import fill_batch, from_stream, to_stream
from nnef_hw.host.tokens import TextLoop, TokenLoop
from nnef_hw.ir.batch import sample_extents
from nnef_hw.run.device_inputs import checked_samples
from nnef_hw.run.simulated_board import simulated_board

__all__ = ["Device", "open_device"]

MAX_REPLAY = 0xFFFF

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Device:
    """An accelerator behind a host link, in session.

    Parameters
    ----------
    manifest
        Manifest of the build that the board runs.
    transport
        Carries the bytes.
    timing
        Time limits of the link.
    image
        What the board's memory has to hold, if the host fills it.
    progress
        Show a bar while batches run, if the standard error is a terminal.

    Raises
    ------
    LinkError
        If nobody answers, or the board runs another build.
    """

    def __init__(
        self,
        manifest: Manifest,
        transport: Transport,
        timing: Timing | None = None,
        *,
        image: bytes = b"",
        progress: bool = False,
    ) -> None:
        self.manifest = manifest
        self.host = Host(transport, timing)
        self._progress = progress
        self._image = image
        self.identity = self._open()
        self._broken = False

    def _open(self) -> Identity:
        """Begin a session; fill the board's memory if nobody has yet."""
        identity = self.host.open(self.manifest.hash)
        if self._image:
            packets = -(-len(self._image) // identity.max_payload)
            for _ in self._track(self.host.load(self._image), packets, "weights"):
                pass
        self._check_weights()
        return identity

    def _check_weights(self) -> None:
        """Check what a frame gives whose answer only the build's weights have."""
        memory = self.manifest.memory
        if memory is None or self.manifest.sources:
            return  # nobody may send such a frame
        again = "configure the FPGA anew, so that the host fills it" if memory.over_link else (
            "write it with nnef-hw flash"
        )  # fmt: skip
        wrong = TargetError(
            f"the board's {memory.kind} does not hold the weights of this build: a frame gives "
            "another answer than with them",
            remedy=again,
        )
        sources = [(x.name, sample_extents(x.shape), x.qtype) for x in self.manifest.inputs]
        try:
            found = self._exchange(probe_codes(sources))
        except LinkError as error:
            raise wrong from error
        if answer_hash([found[sink.name] for sink in self.manifest.outputs]) != memory.answer:
            raise wrong
        self.host.abort()

    def run(self, inputs: Mapping[str, Array] | Array) -> dict[str, NDArray[np.float64]]:
        """Run a batch: return the real outputs [N, ...] of real inputs [N, ...].

        Those of a network with states are sequences [N, T, ...], or one [T, ...]; each begins with
        the initial states. Windows of a stream, of several rows in time, become such sequences.

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
        return self._in_real_numbers(inputs, self.run_codes, self.manifest.rows)

    def reset(self) -> None:
        """Let the states of the network begin with their initial values, and clear the counters.

        Raises
        ------
        LinkError
            If the board stops answering.
        """
        self.host.abort()

    def step(self, inputs: Mapping[str, Array] | Array) -> dict[str, NDArray[np.float64]]:
        """Run one step: return the real outputs of real inputs, both without an axis of samples.

        The states are those that the step before has left, or the initial ones after
        :meth:`reset`, :meth:`replay` and an error of the link.

        Raises
        ------
        SampleError, LinkError
            The same as for :meth:`run`.
        """
        if not isinstance(inputs, Mapping):
            inputs = {self.manifest.inputs[0].name: inputs}
        batch = {name: np.asarray(x)[np.newaxis] for name, x in inputs.items()}
        found = self._in_real_numbers(batch, self._run_frames, {})
        return {name: x[0] for name, x in found.items()}

    def token_loop(
        self, *, temperature: float = 0.0, seed: int = 0, on_board: bool | None = None
    ) -> TextLoop:
        """Return the loop of a language model, which writes texts; see :class:`.TextLoop`.

        Parameters
        ----------
        temperature, seed
            As :meth:`generate` takes them.
        on_board
            Whether the board's own loop writes; by default it does where there is one.

        Raises
        ------
        UsageError
            If the network is no step of a language model.
        """
        roles = self.manifest.roles
        if self.manifest.loop is not None and on_board is not False:
            return BoardLoop(
                roles, self.host, temperature=temperature, seed=seed, begin=self._begin_texts
            )
        if on_board:
            raise UsageError(
                "the build has no loop on the board", remedy="build it with --token-loop"
            )
        return TokenLoop(
            roles, self.step_codes, temperature=temperature, seed=seed, begin=self.reset
        )

    def _begin_texts(self) -> None:
        # Frames need a session of their own again.
        self._broken = True
        self.host.begin_texts()

    def generate(
        self,
        prompt: Sequence[int],
        tokens: int,
        *,
        temperature: float = 0.0,
        seed: int = 0,
        stop: int | None = None,
    ) -> Iterator[int]:
        """Yield the tokens with which a language model continues a prompt, as they come.

        The loop is the board's own, where its build has one, and else the host's. States are the
        initial ones behind it, until the next step.

        Parameters
        ----------
        prompt
            Tokens from the beginning of a text.
        tokens, stop
            It ends behind so many tokens, or behind this one, or with the context.
        temperature, seed
            0 takes the greatest score; else one at random, as docs/numerics.md says.

        Raises
        ------
        UsageError
            If the network is no step of a language model, or the prompt does not fit it.
        LinkError
            If the board stops answering.
        """
        loop = self.token_loop(temperature=temperature, seed=seed)
        return loop.generate(prompt, tokens, stop)

    def step_codes(self, codes: Mapping[str, Array]) -> dict[str, NDArray[np.int64]]:
        """Run one step in codes, as :meth:`step` does in real numbers: [1, ...] of each tensor."""
        shapes = {source.name: sample_extents(source.shape) for source in self.manifest.inputs}
        return self._run_frames({name: x.reshape(1, *shapes[name]) for name, x in codes.items()})

    def run_codes(self, codes: Mapping[str, Array]) -> dict[str, NDArray[np.int64]]:
        """Return the output codes [N, ...] of input codes [N, ...], as the hardware has them.

        Those of a network with states are sequences, as for :meth:`run`.
        """
        if not self.manifest.states:
            return self._run_frames(codes)
        source = self.manifest.inputs[0]
        if np.ndim(codes[source.name]) == len(sample_extents(source.shape)) + 1:
            return self._run_sequence(codes)
        count = len(codes[source.name])
        runs = [self._run_sequence({name: x[n] for name, x in codes.items()}) for n in range(count)]
        return {name: np.stack([run[name] for run in runs]) for name in runs[0]}

    def _run_sequence(self, codes: Mapping[str, Array]) -> dict[str, NDArray[np.int64]]:
        self.reset()
        return self._run_frames(codes)

    def _in_real_numbers(
        self,
        inputs: Mapping[str, Array] | Array,
        run: Callable[[dict[str, NDArray[np.int64]]], dict[str, NDArray[np.int64]]],
        rows: Mapping[str, StreamRows],
    ) -> dict[str, NDArray[np.float64]]:
        samples = checked_samples(inputs, self.manifest, rows)
        codes = {
            source.name: source.quantize(samples[source.name]) for source in self.manifest.inputs
        }
        return self._real(run(codes))

    def _run_frames(self, codes: Mapping[str, Array]) -> dict[str, NDArray[np.int64]]:
        """Run frames one after the other, without a reset."""
        if self._broken:
            self._open()
        self._broken = True
        results = self._exchange(codes)
        self._broken = False
        return results

    def _exchange(self, codes: Mapping[str, Array]) -> dict[str, NDArray[np.int64]]:
        """Send frames, with what fills up the last batch, and receive their results."""
        batch, count = self.manifest.batch, len(codes[self.manifest.inputs[0].name])
        tensors = [
            to_stream(fill_batch(codes[source.name], batch), source).astype(source.dtype)
            for source in self.manifest.inputs
        ]
        frames = [
            b"".join(beats.tobytes() for beats in frame) for frame in zip(*tensors, strict=True)
        ]
        size = sum(sink.frame_bytes for sink in self.manifest.outputs)
        results = self._track(self.host.infer(frames, size), len(frames), self.manifest.board)
        return self._parted(list(results)[:count])

    def record(self, steps: int) -> dict[str, NDArray[np.float64]]:
        """Return the real outputs [N, ...] of the next steps of a board that its sensors feed.

        The same as :meth:`listen`, of so many steps.

        Raises
        ------
        UsageError
            If the host feeds an input, so that no result comes of itself.
        LinkError
            If the board stops answering.
        """
        found = list(islice(self._track(self._results(), steps, "steps"), steps))
        return self._real(self._parted(found))

    def listen(self) -> Iterator[dict[str, NDArray[np.float64]]]:
        """Yield the real outputs of each step of a board that its sensors feed, as they come.

        The network begins anew; sinks of the board go on. Results that come while the host does not
        read are missing: :meth:`counters` has all frames.

        Raises
        ------
        UsageError
            If the host feeds an input, so that no result comes of itself.
        LinkError
            If the board stops answering.
        """
        for result in self._results():
            outputs = self._real(self._parted([result]))
            yield {name: values[0] for name, values in outputs.items()}

    def _results(self) -> Iterator[bytes]:
        """Return the results of a session that begins now."""
        require_sensors(self.manifest)
        self.host.abort()
        return self.host.listen(sum(sink.frame_bytes for sink in self.manifest.outputs))

    def _parted(self, results: Sequence[bytes]) -> dict[str, NDArray[np.int64]]:
        """Return the codes of all outputs of results, in the bytes of the link."""
        sinks = self.manifest.outputs
        ends = np.cumsum([sink.frame_bytes for sink in sinks])
        parts = np.split(np.stack([np.frombuffer(x, np.uint8) for x in results]), ends, 1)
        return {
            sink.name: from_stream(np.ascontiguousarray(part).view(sink.dtype), sink, sink.shape)
            for sink, part in zip(sinks, parts[:-1], strict=True)
        }

    def _real(self, codes: Mapping[str, NDArray[np.int64]]) -> dict[str, NDArray[np.float64]]:
        """Return the real numbers of the outputs' codes."""
        return {sink.name: sink.dequantize(codes[sink.name]) for sink in self.manifest.outputs}

    def counters(self) -> Counters:
        """Measurements of the board, see docs/protocol.md."""
        return self.host.counters()

    def layer_counts(self) -> list[LayerCounts]:
        """Measurements of the layers, in the manifest's order; none if the build has no counters.

        They are those of the cycles from the end of the 8th frame to that of the 10th.
        """
        return [self.host.layer_counts(n + 1) for n in range(self.manifest.counted_layers)]

    def replay(self, frames: int) -> Counters:
        """Let the board feed itself frames without a pause; return its counters.

        ``interval`` then is the core's cycles per inference, which the link would hide; or per
        batch.

        Parameters
        ----------
        frames
            Number of frames, 2 to 65535; they are rounded up to whole batches, two or more.

        Raises
        ------
        ValueError
            If ``frames`` is out of this range.
        LinkError
            If the board stops answering, or has no replay.
        """
        if not 2 <= frames <= MAX_REPLAY:
            raise ValueError(f"frames must be 2 to {MAX_REPLAY}, not {frames}")
        batch = self.manifest.batch
        batches = max(-(-frames // batch), min(batch, 2))
        self.host.abort()
        self.host.replay(min(batches, MAX_REPLAY // batch) * batch)
        self.host.wait_for_replay()
        return self.host.counters()

    def _track(self, results: Iterator[T], total: int, what: str) -> Iterator[T]:
        if not (self._progress and sys.stderr.isatty()):
            return results
        from rich.console import Console
        from rich.progress import track

        console = Console(stderr=True)
        return iter(track(results, what, total=total, console=console))


def require_sensors(manifest: Manifest) -> None:
    """Refuse a build of which no result comes without the host.

    Raises
    ------
    UsageError
        If the host feeds an input.
    """
    fed = [x.name for x in manifest.inputs if x.name not in manifest.sources]
    if fed:
        raise UsageError(
            f"input {fed[0]!r} of this build comes from the host, so no result comes of itself",
            remedy="build it with --source, or use nnef-hw run",
        )


@contextlib.contextmanager
def open_device(
    build: PathLike[str] | str,
    port: str,
    *,
    timing: Timing | None = None,
    progress: bool = False,
) -> Iterator[Device]:
    """Open the board that runs a build, as a context manager.

    Parameters
    ----------
    build
        The build, or its folder; of it only ``manifest.json`` is read, and the image of weights
        that the host fills a memory with, unless the board is simulated.
    port
        Serial port, such as ``/dev/ttyUSB1`` or ``COM3``; ``sim`` starts the simulated board.
    timing
        Time limits, by default the protocol's usual ones.
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
    link = link_of(manifest.link)
    if isinstance(link, HostLink) and not link.has_host:
        raise UsageError(
            f"{str(build)!r} has no link, so nothing of it reaches a host",
            remedy=f"run 'nnef-hw sim {build} --wav FILE', or build it with --link uart",
        )
    if not link.has_packets:
        raise UsageError(
            f"{str(build)!r} has the link {link.name!r}, which carries no arrays",
            remedy=f"run '{link.usage} {build}', or build it with --link uart",
        )
    memory, image = manifest.memory, b""
    if memory is not None and memory.over_link:
        image = memory.read(build)
    with contextlib.ExitStack() as stack:
        if port == "sim":
            board = stack.enter_context(simulated_board(build))
            port, timing = board.port, (timing or Timing()).scaled(board.slowness)
            transport = stack.enter_context(board.open())
        else:
            transport = stack.enter_context(link.open(port, build))
        device = Device(manifest, transport, timing, image=image, progress=progress)
        yield device
        if device.host.repeats:
            _log.warning(
                "%s: %d packets were repeated because the line had damaged or lost them",
                port, device.host.repeats,
            )  # fmt: skip
