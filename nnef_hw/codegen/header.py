"""A header with what a host in C has to know of a build."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.boards.interfaces import link_of
from nnef_hw.codegen.comments import printable
from nnef_hw.host.manifest import Manifest, TensorStream

__all__ = ["HEADER", "model_header"]

HEADER = "model.h"
HASH_COLUMNS = 8
_COLUMNS = 4


def model_header(manifest: Manifest) -> str:
    """Text of ``model.h``: the build's hash, bytes of a frame, and scales, as C99.

    A code stands for ``scale * (code - zero_point)``, with arrays of both where each feature of an
    input has its own. A tensor's codes come in the order of its
    stream, row by row, the channels of a pixel together, of 1 byte each up to 8 bits, else 2, the
    lowest first; several tensors one after the other.
    """
    lines = [
        f"/* What a host has to know of {_comment(manifest.model)} on {_comment(manifest.board)}.",
        " * A code stands for SCALE * (code - ZERO_POINT). */",
        "#ifndef MODEL_H",
        "#define MODEL_H",
        "",
        "#include <stdint.h>",
        "",
        "/* By this the board knows the build: nnef_hw_open(&link, MODEL_HASH). */",
        "static const uint8_t MODEL_HASH[32] = {",
        *_hash_lines(manifest.hash),
        "};",
        f"#define MODEL_BAUD {link_of(manifest.link).serial_baud}",
        f"#define MODEL_CYCLES_PER_INFERENCE {manifest.cycles_per_inference}",
    ]
    for kind, tensors in (("INPUT", manifest.inputs), ("OUTPUT", manifest.outputs)):
        lines += ["", f"#define MODEL_{kind}_BYTES {sum(x.frame_bytes for x in tensors)}"]
        for number, tensor in enumerate(tensors):
            lines += _tensor(f"MODEL_{kind}{number if len(tensors) > 1 else ''}", tensor)
    return "\n".join([*lines, "", "#endif"]) + "\n"


def _tensor(prefix: str, tensor: TensorStream) -> Iterator[str]:
    qtype, (height, width, channels) = tensor.qtype, tensor.image
    kind = f"{'' if qtype.signed else 'u'}int{8 if qtype.bits <= 8 else 16}_t"
    yield f"/* {_comment(tensor.name)}: {height} rows, {width} columns, {channels} channels */"
    yield f"typedef {kind} {prefix.lower()}_code;"
    yield f"#define {prefix}_CODES {tensor.beats * tensor.lanes}"
    if tensor.features is None:
        yield f"#define {prefix}_SCALE {qtype.scale!r}"
        yield f"#define {prefix}_ZERO_POINT {_parenthesized(qtype.zero_point)}"
    else:
        yield from _features(prefix, tensor, tensor.features)
    yield f"#define {prefix}_LOWEST {_parenthesized(qtype.lo)}"
    yield f"#define {prefix}_HIGHEST {tensor.integers - 1 if tensor.integers else qtype.hi}"


def _features(prefix: str, tensor: TensorStream, features: FeatureScales) -> Iterator[str]:
    """Yield tables of scales and zero points, in the order in which features stream."""
    height, width, channels = tensor.image
    ids = np.arange(len(features.scale)).reshape(-1, *[1] * (len(tensor.shape) - 1 - features.axis))
    image = np.broadcast_to(ids, tensor.shape).reshape(channels, height, width).transpose(1, 2, 0)
    filled = np.pad(image, ((0, 0), (0, 0), (0, -channels % tensor.lanes)))
    stream = filled.reshape(-1)
    lengths = range(1, len(stream) + 1)
    period = next(n for n in lengths if (stream == np.resize(stream[:n], len(stream))).all())
    order = stream[:period].tolist()
    yield (
        f"/* Code n stands for {prefix}_SCALE[n % {prefix}_FEATURES] * "
        f"(code - {prefix}_ZERO_POINT[n % {prefix}_FEATURES]). */"
    )
    yield f"#define {prefix}_FEATURES {period}"
    for kind, name, values in (
        ("double", "SCALE", [repr(features.scale[n]) for n in order]),
        ("int32_t", "ZERO_POINT", [str(features.zero_point[n]) for n in order]),
    ):
        yield f"static const {kind} {prefix}_{name}[{period}] = {{"
        for first in range(0, period, _COLUMNS):
            yield f"    {', '.join(values[first : first + _COLUMNS])},"
        yield "};"


def _hash_lines(value: bytes) -> Iterator[str]:
    for first in range(0, len(value), HASH_COLUMNS):
        codes = ", ".join(f"0x{byte:02x}" for byte in value[first : first + HASH_COLUMNS])
        yield f"    {codes},"


def _parenthesized(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _comment(text: str) -> str:
    """Return a text that does not end a comment, nor begin one."""
    return re.sub(r"\*(?=/)|/(?=\*)", "_", printable(text))
