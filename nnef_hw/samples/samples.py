"""Sample files (.npz; .npy without labels), and their split."""

from __future__ import annotations

import logging
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.errors import SampleError
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.ir import Graph
from nnef_hw.ir.batch import (
    join_batch,
    join_steps,
    samples_shape,
    sequences_shape,
    split_samples,
    split_sequences,
)
from nnef_hw.system.files import digest

__all__ = [
    "Given", "Samples", "check_samples", "load_samples", "samples_digest", "spread_order",
    "take_samples",
]  # fmt: skip

_log = logging.getLogger(__name__)

CALIBRATION_LIMIT = 200
CALIBRATION_SHARE = 5
ENOUGH_SAMPLES = 50
"""Calibration samples from which on more of them hardly improve a network."""


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Inputs of a network, one array [N, ...] per graph input, and perhaps labels [N, ...].

    Those of a network with states are sequences [N, T, ...]; their labels are of every step or of
    the last one. ``is_lone`` tells that a file holds one sequence without an axis for it.
    """

    inputs: Mapping[str, Array]
    labels: Array | None = None
    is_lone: bool = False

    def __len__(self) -> int:
        return len(next(iter(self.inputs.values())))

    def __getitem__(self, index: slice | NDArray[np.bool_] | NDArray[np.int64]) -> Samples:
        """Return some of the samples."""
        labels = None if self.labels is None else self.labels[index]
        return replace(
            self, inputs={name: x[index] for name, x in self.inputs.items()}, labels=labels
        )

    def extended(self, rows: Mapping[str, StreamRows]) -> Samples:
        """Return windows with rows more or less at both ends, by input."""
        return replace(self, inputs={n: rows[n].extended(x) for n, x in self.inputs.items()})

    def in_steps(self, rows: Mapping[str, StreamRows]) -> Samples:
        """Return windows as sequences of steps."""
        return replace(self, inputs={n: rows[n].sequences(x) for n, x in self.inputs.items()})

    @property
    def are_few(self) -> bool:
        """Whether there are so few samples that all calibrate, and all are scored, too."""
        return len(self) < ENOUGH_SAMPLES

    def split(self) -> tuple[Samples, Samples]:
        """Return calibration samples and the others; few samples (:attr:`are_few`) are both.

        Every fifth calibrates, or every n-th for at most 200. Of fewer than 250 about 50 do, but a
        fifth is left out. They are spread evenly over the file because many files are sorted: by
        class, or by value.
        """
        return self.calibration(), self if self.are_few else self[self.evaluation_mask()]

    def calibration(self) -> Samples:
        """Return the first part of :meth:`split`; without a copy of the other one."""
        return self if self.are_few else self[self.calibration_mask()]

    def calibration_mask(self) -> NDArray[np.bool_]:
        """Return which samples calibrate."""
        if self.are_few:
            return np.ones(len(self), bool)
        count = len(self)
        if count < 2 * ENOUGH_SAMPLES:
            others = max(count // CALIBRATION_SHARE, count - ENOUGH_SAMPLES)
            step = count // others
            chosen = np.ones(count, bool)
            chosen[step - 1 :: step] = False
            return chosen
        step = max(min(CALIBRATION_SHARE, count // ENOUGH_SAMPLES), -(-count // CALIBRATION_LIMIT))
        chosen = np.zeros(count, bool)
        chosen[: count - count % step : step] = True
        return chosen

    def evaluation_mask(self) -> NDArray[np.bool_]:
        """Return which samples :meth:`split` leaves for evaluation."""
        return np.ones(len(self), bool) if self.are_few else ~self.calibration_mask()


def samples_digest(samples: Samples | None) -> str:
    """Digest of all numbers of samples; empty if there are none."""
    if samples is None:
        return ""
    arrays = {**samples.inputs, "labels": samples.labels}
    parts = [
        part
        for name, array in arrays.items()
        if array is not None
        for part in (
            name,
            str(array.dtype),
            repr(array.shape),
            np.ascontiguousarray(array).tobytes(),
        )
    ]
    return digest(*parts)


Given: TypeAlias = Path | str | Samples | Mapping[str, object] | Array | tuple[Array, Array]
"""What :func:`take_samples` takes."""


def spread_order(count: int) -> NDArray[np.intp]:
    """Return positions 0 to count - 1 in an order of which every beginning is spread evenly.

    These are the numbers of as many bits as it takes, each with its bits reversed.
    """
    bits = max(count - 1, 1).bit_length()
    numbers = np.arange(1 << bits)
    reverse = np.zeros_like(numbers)
    for bit in range(bits):
        reverse |= (numbers >> bit & 1) << bits - 1 - bit
    return reverse[reverse < count]


def load_samples(path: Path | str, graph: Graph) -> Samples:
    """Read a sample file for a graph.

    It holds what :func:`check_samples` takes, by name.

    Raises
    ------
    SampleError
        If it is no such file, lacks an array, or one has the wrong shape or NaN or infinity in it.
    """
    return check_samples(_read(Path(path)), graph, str(path))


def take_samples(given: Given, graph: Graph) -> Samples:
    """Return the samples that a caller gives for a graph, in whatever way.

    Parameters
    ----------
    given
        A sample file; arrays by name as such a file holds them; the array of the only input; that
        and an array of labels; or samples, which are checked for this graph.

    Raises
    ------
    SampleError
        As for :func:`load_samples`.
    """
    if isinstance(given, str | Path):
        return load_samples(given, graph)
    if isinstance(given, Samples):
        arrays = dict(given.inputs)
        if given.labels is not None:
            arrays["labels"] = given.labels
    elif isinstance(given, Mapping):
        arrays = {name: np.asarray(x) for name, x in given.items()}
    elif isinstance(given, tuple):
        if len(given) != 2:
            raise SampleError(
                f"samples are a tuple of {len(given)}", remedy="give (inputs, labels)"
            )
        arrays = dict(zip(("inputs", "labels"), map(np.asarray, given), strict=True))
    else:
        arrays = {"inputs": np.asarray(given)}
    return check_samples(arrays, graph, "samples")


def check_samples(arrays: Mapping[str, Array], graph: Graph, source: str) -> Samples:
    """Return arrays as the samples of a graph.

    There is one array per graph input by name, or ``inputs`` if there is only one; ``labels`` is
    optional. The samples of an input are [N, ...] if its batch extent is 1, else [N, *shape]; of a
    graph with states [N, T, ...], or [T, ...] for one sequence, which gets an axis in front. Of a
    network of steps (``graph.rows``) windows [N, ...] of several rows, or longer pieces of a
    stream, become sequences.

    Parameters
    ----------
    source
        Where they come from, for errors.

    Raises
    ------
    SampleError
        If an array is missing, or one has the wrong shape or NaN or infinity in it.
    """
    inputs: dict[str, Array] = {}
    lone = False
    for name in graph.inputs:
        key = name if name in arrays else "inputs"
        if key not in arrays or (key == "inputs" and key != name and len(graph.inputs) > 1):
            expected = " and ".join(repr(n) for n in graph.inputs)
            also = " (or 'inputs')" if len(graph.inputs) == 1 else ""
            found = ", ".join(sorted(arrays)) or "nothing"
            raise SampleError(
                f"{source}: no array {name!r}; it holds {found}",
                remedy=f"store {expected}{also} with the sample number as the first axis",
            )
        shape, array = graph.tensor(name).shape, np.asarray(arrays[key])
        rows = graph.rows.get(name)
        if rows is not None and rows.accepts(array, shape):
            array = rows.sequences(array)
        takes = (sequences_shape if graph.is_sequential else samples_shape)(shape)
        if rows is not None:
            takes += f", or windows {rows.windows_shape(shape)}"
        inputs[name] = _check(
            source, key, array, shape, takes, is_sequence=graph.is_sequential,
            remedy=_remedy(graph, name, array.shape),
        )  # fmt: skip
        if graph.is_sequential and split_samples(array, shape) is not None:
            lone = True
            if array.shape[1:] == shape and shape[0] == 1 < len(array):
                _log.warning(
                    "%s: array %r of shape %s is taken for one sequence of %d steps; "
                    "%d sequences of one step have shape %s",
                    source, key, list(array.shape), len(array), len(array),
                    [len(array), 1, *shape],
                )  # fmt: skip
    counts = {len(x) for x in inputs.values()}
    labels = arrays.get("labels")
    if labels is not None and lone:
        labels = labels[np.newaxis]
    if labels is not None:
        counts.add(len(labels) if labels.ndim else 0)
    if len(counts) > 1:
        raise SampleError(f"{source}: arrays have different numbers of samples: {sorted(counts)}")
    steps = {x.shape[1] for x in inputs.values()} if graph.is_sequential else {1}
    if len(steps) > 1:
        raise SampleError(f"{source}: sequences have different numbers of steps: {sorted(steps)}")
    if labels is not None and not np.issubdtype(labels.dtype, np.integer):
        _check_numbers(source, "labels", labels)
    if labels is not None:
        _check_labels(source, labels, graph, max(steps, default=1))
    return Samples(inputs, labels, lone)


def _read(path: Path) -> dict[str, Array]:
    try:
        with path.open("rb") as file:
            archive = np.load(file, allow_pickle=False)
            if isinstance(archive, np.ndarray):
                return {"inputs": archive}
            return {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise SampleError(f"sample file {path} does not exist") from error
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise SampleError(
            f"{path} is not an .npz or .npy file of plain arrays",
            remedy="write it with numpy.savez",
        ) from error
    except OSError as error:
        raise SampleError(f"sample file {path} cannot be read: {error}") from error


def _check(
    source: str,
    name: str,
    x: Array,
    shape: tuple[int, ...],
    expected: str,
    *,
    is_sequence: bool,
    remedy: str | None,
) -> Array:
    samples = (split_sequences if is_sequence else split_samples)(x, shape)
    if samples is None:
        raise SampleError(
            f"{source}: array {name!r} has shape {list(x.shape)}, but the model takes {expected}",
            remedy=remedy,
        )
    if not samples.size:
        raise SampleError(f"{source}: array {name!r} has no samples")
    _check_numbers(source, name, samples)
    return (join_steps if is_sequence else join_batch)(samples, shape)


def _remedy(graph: Graph, name: str, given: tuple[int, ...]) -> str | None:
    """Name the remedy for sequences of another length than a loop of the network has steps."""
    shape = graph.tensor(name).shape
    differing = [axis for axis, pair in enumerate(_from_the_end(shape, given)) if len({*pair}) > 1]
    loops = [node for node in graph.nodes if node.op == "scan"]
    counts = {graph.tensor(node.inputs[0]).shape[node.attrs["scans"][0][0]] for node in loops}
    if len(differing) != 1 or shape[differing[0] - len(shape)] not in counts:
        return None
    axis = differing[0]
    steps = "1 step" if shape[axis] == 1 else f"{shape[axis]} steps"
    return (
        f"its loop takes {steps}: cut or fill up the sequences, or read an ONNX model "
        f"with --dim {name}.{axis}={given[axis - len(shape)]}"
    )


def _from_the_end(shape: tuple[int, ...], given: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the extents of a shape but a batch of 1, and those that are given in their places."""
    padded = (1,) * (len(shape) - len(given)) + given[max(0, len(given) - len(shape)) :]
    for place, extent in enumerate(shape):
        is_batch = place == 0 and extent == 1 and len(given) <= len(shape)
        yield (extent, extent if is_batch else padded[place])


def _check_labels(source: str, labels: Array, graph: Graph, steps: int) -> None:
    """Refuse labels that outputs cannot be scored with: one class, or one value per output.

    They may be of each of the steps of a sequence.
    """
    per_sample = labels.size // len(labels)
    if np.issubdtype(labels.dtype, np.integer):
        expected, remedy = 1, "give one class number per sample"
    elif np.issubdtype(labels.dtype, np.floating):
        expected, remedy = graph.tensor(graph.outputs[0]).volume, "give one value per output"
    else:
        raise SampleError(
            f"{source}: labels are {labels.dtype}", remedy="give integers (classes) or floats"
        )
    if per_sample not in {expected, expected * steps}:
        raise SampleError(
            f"{source}: array 'labels' has shape {list(labels.shape)}, {per_sample} per sample",
            remedy=remedy,
        )
    classes = graph.tensor(graph.outputs[0]).volume
    if expected == 1 and classes > 1 and (labels.min() < 0 or labels.max() >= classes):
        raise SampleError(
            f"{source}: array 'labels' has classes {labels.min()} to {labels.max()}, but the model "
            f"gives {classes}",
            remedy=f"give classes from 0 to {classes - 1}",
        )


def _check_numbers(source: str, name: str, x: Array) -> None:
    if not (np.issubdtype(x.dtype, np.number) or x.dtype == np.bool_):
        raise SampleError(f"{source}: array {name!r} holds {x.dtype}, not numbers")
    if np.issubdtype(x.dtype, np.complexfloating):
        raise SampleError(f"{source}: array {name!r} holds complex numbers")
    if not np.isfinite(x).all():
        bad = int((~np.isfinite(x).reshape(len(x), -1).all(axis=1)).argmax())
        raise SampleError(f"{source}: array {name!r} has NaN or infinity in sample {bad}")
