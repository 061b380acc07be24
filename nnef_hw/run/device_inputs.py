"""Inputs that a board can take: checked against the manifest, cut into samples and steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from nnef_hw.arithmetic.arrays import Array
from nnef_hw.arithmetic.records import Fields
from nnef_hw.errors import SampleError
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.host.manifest import (
    Manifest,
    TensorStream,
)
from nnef_hw.ir.batch import (
    join_batch,
    join_steps,
    sample_extents,
    samples_shape,
    sequences_shape,
    split_samples,
    split_sequences,
)

__all__ = ["checked_samples"]


def checked_samples(
    inputs: Mapping[str, Array] | Array,
    manifest: Manifest,
    rows: Mapping[str, StreamRows],
) -> dict[str, NDArray[np.float64]]:
    """Return the samples [N, ...] of every input; steps [T, ...] or [N, T, ...] with states."""
    sources = manifest.inputs
    if not isinstance(inputs, Mapping):
        if len(sources) > 1:
            names = " and ".join(repr(source.name) for source in sources)
            raise SampleError(f"the network has {len(sources)} inputs", remedy=f"name {names}")
        inputs = {sources[0].name: inputs}
    samples = {}
    for source in sources:
        if source.name not in inputs:
            raise SampleError(f"no samples for input {source.name!r}")
        samples[source.name] = _checked(
            inputs[source.name],
            source,
            rows.get(source.name),
            is_sequence=bool(manifest.states),
        )
    counts: Fields = {}
    for source in sources:
        x = samples[source.name]
        counts[source.name] = x.shape[: x.ndim - len(sample_extents(source.shape))]
        if len(counts[source.name]) == 1:
            (counts[source.name],) = counts[source.name]
    if len(set(counts.values())) > 1:
        raise SampleError(f"inputs have different numbers of samples: {counts}")
    return samples


def _checked(
    values: Array, source: TensorStream, rows: StreamRows | None, *, is_sequence: bool
) -> NDArray[np.float64]:
    values = np.asarray(values, np.float64)
    if not values.size:
        raise SampleError("there are no samples")
    if not np.isfinite(values).all():
        raise SampleError(f"input {source.name!r} holds NaN or infinity")
    if rows is not None and rows.accepts(values, source.shape):
        values = rows.sequences(values)
    samples = split_samples(values, source.shape)
    if samples is not None:
        return join_batch(samples, source.shape)
    sequences = split_sequences(values, source.shape) if is_sequence else None
    if sequences is None:
        expected = (sequences_shape if is_sequence else samples_shape)(source.shape)
        raise SampleError(f"input {source.name!r} has shape {list(values.shape)}, not {expected}")
    return join_steps(sequences, source.shape)
