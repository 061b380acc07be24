"""Files of what a sensor took up: WAV, tables of text (CSV), arrays (.npy, .npz)."""

from __future__ import annotations

import csv
import wave
import zipfile
from pathlib import Path

import numpy as np

from nnef_hw.arithmetic.numerics import FloatArray, IntArray
from nnef_hw.errors import UsageError

__all__ = ["read_recording"]

_FULL = 1 << 15
"""Full scale of a number of 16 bits."""
_ROWS = "give rows of as many numbers each, with commas between them"


def read_recording(path: Path, *, rate: int, channels: int, sensor: str) -> IntArray:
    """Return the samples [N, channels] of a file, as numbers of 16 bits.

    A table or an array has a row for each sample. Whole numbers are those of the sensor, -32768 to
    32767; real ones are shares of its full scale, -1 to 1. Its rate is taken for granted, that of a
    WAV file is compared. Where one channel is wanted, it is the first one of a WAV file.

    Parameters
    ----------
    path
        The file; its suffix says what it is: ``.csv``, ``.npy``, ``.npz``, and anything else is a
        WAV file.
    rate
        Samples per second.
    channels
        Numbers of a sample.
    sensor
        Name of the sensor in messages.

    Raises
    ------
    UsageError
        If it cannot be read, or has another rate, another number of channels or other numbers.
    """
    reader = {".csv": _read_csv, ".npy": _read_array, ".npz": _read_array}.get(path.suffix.lower())
    try:
        if reader is None:
            return _read_wav(path, rate, channels, sensor)
        values, are_whole = reader(path)
        return _numbers(path, values, channels, sensor, are_whole=are_whole)
    except OSError as error:
        what = error.strerror or error
        raise UsageError(f"{path}: {what}", remedy="name a file: --wav FILE") from error


def _read_wav(path: Path, rate: int, channels: int, sensor: str) -> IntArray:
    """Return the samples of a WAV file."""
    mix = " -ac 1" if channels == 1 else ""
    convert = f"convert it: ffmpeg -i {path} -ar {rate} -c:a pcm_s16le{mix} converted.wav"
    try:
        with wave.open(str(path)) as file:
            found, width, count = file.getframerate(), file.getsampwidth(), file.getnchannels()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        what = str(error) or "it ends too early"
        raise UsageError(f"{path} is no WAV file of integers: {what}", remedy=convert) from error
    if (found, width) != (rate, 2):
        raise UsageError(
            f"{path} has {found:,} samples of {8 * width} bits per second; the build's {sensor} "
            f"gives {rate:,} of 16 bits",
            remedy=convert,
        )
    if channels not in {1, count}:
        raise _other_channels(path, count, channels, sensor)
    samples = np.frombuffer(data[: len(data) // (2 * count) * 2 * count], "<i2")
    return samples.reshape(-1, count)[:, :channels].astype(np.int64)


def _read_csv(path: Path) -> tuple[FloatArray, bool]:
    """Return the numbers of a table, which may begin with titles, and whether all are whole."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [(file_row, row) for file_row, row in enumerate(csv.reader(file), 1) if row]
    except (csv.Error, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is no table of text: {error}", remedy=_ROWS) from error
    if rows and not any(_is_number(text) for text in rows[0][1]):
        rows = rows[1:]
    if not rows:
        raise UsageError(f"{path} has no rows of numbers", remedy=_ROWS)
    for line, row in rows:
        for column, text in enumerate(row, 1):
            if not _is_number(text):
                raise UsageError(
                    f"{path}:{line}: {text!r} in column {column} is no number", remedy=_ROWS
                )
        if len(row) != len(rows[0][1]):
            raise UsageError(
                f"{path}:{line} has {len(row)} columns, and the first row has {len(rows[0][1])}",
                remedy=_ROWS,
            )
    texts = [[text.strip() for text in row] for _, row in rows]
    are_whole = all(text.lstrip("+-").isdecimal() for row in texts for text in row)
    return np.array(texts, np.float64), are_whole


def _is_number(text: str) -> bool:
    """Whether a text is a real number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False


def _read_array(path: Path) -> tuple[FloatArray, bool]:
    """Return the numbers of the only array of a file, and whether they are whole ones."""
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            named = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise UsageError(
            f"{path} is no file of arrays: {error}", remedy="save one with numpy.save"
        ) from error
    if len(named) != 1:
        raise UsageError(f"{path} has {len(named)} arrays", remedy="save one with numpy.save")
    [array] = named.values()
    if array.dtype.kind not in "iuf":
        raise UsageError(f"{path} has no numbers, but {array.dtype}", remedy="give numbers")
    return array.astype(np.float64), array.dtype.kind != "f"


def _numbers(
    path: Path, values: FloatArray, channels: int, sensor: str, *, are_whole: bool
) -> IntArray:
    """Return the rows of a table or an array as numbers of 16 bits."""
    rows = values.reshape(-1, 1) if values.ndim == 1 and channels == 1 else values
    if rows.ndim != 2:
        shape = "x".join(map(str, rows.shape))
        raise UsageError(
            f"{path} has an array of {shape}", remedy=f"give one of samples x {channels}"
        )
    if rows.shape[1] != channels:
        raise _other_channels(path, rows.shape[1], channels, sensor)
    lowest, highest, what = -1, 1, "real numbers, shares of its full scale,"
    if are_whole:
        lowest, highest, what = -_FULL, _FULL - 1, "whole numbers"
    wrong = np.argwhere(~((rows >= lowest) & (rows <= highest)))
    if len(wrong):
        row, column = wrong[0]
        raise UsageError(
            f"{path} has {rows[row, column]:g} for sample {row}, channel {column}; of a {sensor} "
            f"{what} are within {lowest} and {highest}",
            remedy="divide by the full scale that the build has, which gives real numbers",
        )
    if not are_whole:
        return np.clip(np.rint(rows * _FULL), -_FULL, _FULL - 1).astype(np.int64)
    if np.abs(rows).max(initial=0) == 1:
        raise UsageError(
            f"{path} has only -1, 0 and 1, which whole numbers make {1 / _FULL:.6f} of the full "
            "scale at most",
            remedy="write shares of the full scale as real numbers: 1.0",
        )
    return rows.astype(np.int64)


def _other_channels(path: Path, found: int, wanted: int, sensor: str) -> UsageError:
    """Return the refusal of a file with another number of channels."""
    return UsageError(
        f"{path} has {found} channels; the build's {sensor} gives {wanted}",
        remedy=f"keep {wanted} columns, without times, in the order of the network's channels",
    )
