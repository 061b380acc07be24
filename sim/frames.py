"""Activations packed into the payloads of stream beats, and back.

A payload has lane 0 in its lowest bits and ``last`` as its top bit. Up to 64 bits it is one uint64;
a wider one is a row of uint64 words, lowest first.
"""

import numpy as np

from nnef_hw.errors import CheckError

__all__ = ["pack_frames", "unpack_frames"]

_WORD = 64


def pack_frames(codes, bits, *, signed):
    """Pack frames of activations.

    Parameters
    ----------
    codes : ndarray
        Integers of shape (frames, beats, lanes).
    bits : int
        Width of an activation.
    signed : bool
        Whether activations are two's complement.

    Returns
    -------
    ndarray
        uint64 of shape (frames * beats,), or (frames * beats, words) for wide payloads.
    """
    codes = np.asarray(codes)
    if codes.ndim != 3 or not np.issubdtype(codes.dtype, np.integer):
        raise ValueError(
            f"codes must be integers (frames, beats, lanes), not {codes.dtype} {codes.shape}"
        )
    lo, hi = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if codes.size and not lo <= codes.min() <= codes.max() <= hi:
        raise ValueError(f"codes must lie in {lo}..{hi}, not {codes.min()}..{codes.max()}")

    frames, beats, lanes = codes.shape
    fields = codes.reshape(frames * beats, lanes).astype(np.int64).astype(np.uint64)
    fields &= np.uint64((1 << bits) - 1)
    payloads = np.zeros((frames * beats, _words(lanes * bits + 1)), np.uint64)
    for lane in range(lanes):
        word, shift = divmod(lane * bits, _WORD)
        payloads[:, word] |= fields[:, lane] << np.uint64(shift)
        if shift + bits > _WORD:
            payloads[:, word + 1] |= fields[:, lane] >> np.uint64(_WORD - shift)
    word, shift = divmod(lanes * bits, _WORD)
    payloads[beats - 1 :: beats, word] |= np.uint64(1 << shift)
    return payloads[:, 0] if payloads.shape[1] == 1 else payloads


def unpack_frames(payloads, lanes, bits, *, signed, beats=None):
    """Unpack beats and check that ``last`` is where it belongs.

    Parameters
    ----------
    payloads : ndarray
        What :func:`pack_frames` returns.
    lanes : int
        Activations in a beat.
    bits : int
        Width of an activation.
    signed : bool
        Whether activations are two's complement.
    beats : int, optional
        Beats in a frame; taken from the first ``last`` by default.

    Returns
    -------
    ndarray
        int64 of shape (frames, beats, lanes).

    Raises
    ------
    CheckError
        ``last`` is missing, or set where it must not be.
    """
    payloads = np.asarray(payloads, np.uint64)
    payloads = payloads.reshape(len(payloads), -1)
    if payloads.shape[1] != _words(lanes * bits + 1):
        raise ValueError(f"payloads of {lanes} x {bits} bits do not have {payloads.shape[1]} words")
    word, shift = divmod(lanes * bits, _WORD)
    last = (payloads[:, word] >> np.uint64(shift) & np.uint64(1)).astype(bool)
    if beats is None:
        beats = int(last.argmax()) + 1 if last.any() else max(len(last), 1)
    expected = np.arange(len(last)) % beats == beats - 1
    if len(last) % beats or (last != expected).any():
        wrong = np.flatnonzero(last != expected)
        where = int(wrong[0]) if wrong.size else len(last)
        raise CheckError(
            f"frames of {beats} beats expected, but in {len(last)} beats the first difference of "
            f"`last` is at beat {where}"
        )

    codes = np.empty((len(payloads), lanes), np.int64)
    for lane in range(lanes):
        word, shift = divmod(lane * bits, _WORD)
        field = payloads[:, word] >> np.uint64(shift)
        if shift + bits > _WORD:
            field = field | payloads[:, word + 1] << np.uint64(_WORD - shift)
        # to the top of the word and back, which extends the sign or clears what is above
        field = field << np.uint64(_WORD - bits)
        codes[:, lane] = (
            field.view(np.int64) >> (_WORD - bits) if signed else field >> np.uint64(_WORD - bits)
        )
    return codes.reshape(-1, beats, lanes)


def _words(bits):
    return -(-bits // _WORD)
