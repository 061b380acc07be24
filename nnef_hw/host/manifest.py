"""A build's manifest, as a host reads it; needs NumPy only."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nnef_hw.arithmetic.features import FeatureScales
from nnef_hw.arithmetic.numerics import IntArray, QType
from nnef_hw.arithmetic.places import check_places
from nnef_hw.arithmetic.records import Fields, JsonObject
from nnef_hw.errors import UsageError
from nnef_hw.hardware.geometry.stream_rows import StreamRows
from nnef_hw.host.tokens import Roles, find_roles

__all__ = [
    "FORMAT_VERSION", "HEX_IMAGE", "IMAGE", "MODULE", "Manifest", "MemoryEntry", "PROGRAM",
    "ProgramEntry", "TensorStream", "answer_hash", "manifest_hash", "probe_codes", "read_manifest",
]  # fmt: skip

FORMAT_VERSION = 1
MODULE = "top"
"""Name of the accelerator's module in a build for a board."""
IMAGE = "board/weights.bin"
"""File of what the board's flash has to hold besides the bitstream."""
HEX_IMAGE = "sim/memory.hex"
"""The same as text, which the model of the flash reads."""
PROGRAM = "ip/program.bin"
"""File of the program that a processor may load through registers."""


@dataclass(frozen=True, slots=True)
class TensorStream:
    """A tensor at the accelerator's border, and the stream that carries it.

    Parameters
    ----------
    name, shape, qtype
        Name, shape and format of the graph's input or output.
    image
        (height, width, channels) in the order of the stream.
    lanes, beats
        Codes per beat, beats per frame.
    features
        Scales and zero points of the features of an input that has one for each; then ``qtype``
        has those of the network, which no host needs.
    integers
        How many integers from 0 on an input takes that holds places; 0 of others.
    """

    name: str
    shape: tuple[int, ...]
    qtype: QType
    image: tuple[int, int, int]
    lanes: int
    beats: int
    features: FeatureScales | None = None
    integers: int = 0

    def quantize(self, real: ArrayLike) -> IntArray:
        """Codes of real samples [..., *shape[1:]].

        Raises
        ------
        SampleError
            If an input takes integers, and one is none of these.
        """
        if self.integers:
            check_places(self.name, np.asarray(real), self.integers)
        if self.features is None:
            return self.qtype.quantize(real)
        return self.features.quantize(real, self.shape, self.qtype)

    def dequantize(self, codes: ArrayLike) -> NDArray[np.float64]:
        """Real numbers of codes."""
        if self.features is None:
            return self.qtype.dequantize(codes)
        return self.features.dequantize(codes, self.shape)

    @property
    def dtype(self) -> str:
        """NumPy's name of a code on the host link."""
        kind = "i" if self.qtype.signed else "u"
        return f"<{kind}{1 if self.qtype.bits <= 8 else 2}"

    @property
    def frame_bytes(self) -> int:
        """Bytes of a frame's tensor on the host link."""
        return self.beats * self.lanes * (1 if self.qtype.bits <= 8 else 2)

    @classmethod
    def from_json(cls, value: JsonObject) -> TensorStream:
        """Read an entry of ``inputs`` or ``outputs``."""
        height, width, channels = value["image"]
        qtype, features = dict(value["qtype"]), None
        if "axis" in qtype:
            features = FeatureScales.from_json(qtype)
            qtype.update(scale=1.0, zero_point=0)
        return cls(
            name=value["name"],
            shape=tuple(value["shape"]),
            qtype=QType.from_json(qtype),
            features=features,
            image=(height, width, channels),
            lanes=value["lanes"],
            beats=value["beats"],
            integers=value.get("integers", 0),
        )


@dataclass(frozen=True, slots=True)
class MemoryEntry:
    """Contents of the board's memory besides the bitstream.

    Parameters
    ----------
    kind
        What a user calls the memory.
    file, address
        File in the build's folder, and where its first byte goes.
    size, sha256
        Its bytes, and their hash.
    over_link
        The host fills the memory over the link, each time the FPGA has been configured.
    answer
        Hash of what the network answers to :func:`probe_codes`: only these weights do.
    """

    kind: str
    file: str
    address: int
    size: int
    sha256: str
    over_link: bool
    answer: str

    @classmethod
    def from_json(cls, value: JsonObject | None) -> MemoryEntry | None:
        """Read the entry ``memory``."""
        if value is None:
            return None
        return cls(
            value["kind"], value["file"], value["address"], value["bytes"], value["sha256"],
            value["over_link"], value["answer"],
        )  # fmt: skip

    def read(self, build: Path) -> bytes:
        """Return the contents of the file.

        Raises
        ------
        UsageError
            If it is missing, or not the one that belongs to the bitstream.
        """
        return _read_checked(build, self.file, self.sha256)


@dataclass(frozen=True, slots=True)
class ProgramEntry:
    """The program with its weights, which a processor may load through registers.

    Parameters
    ----------
    file, sha256
        The file in the build, and its hash.
    """

    file: str
    sha256: str

    @classmethod
    def from_json(cls, value: JsonObject | None) -> ProgramEntry | None:
        """Read the entry ``program``."""
        return None if value is None else cls(value["file"], value["sha256"])

    def read(self, build: Path) -> bytes:
        """Return the contents of the file.

        Raises
        ------
        UsageError
            If it is missing, or not the one of the build.
        """
        return _read_checked(build, self.file, self.sha256)


def _read_checked(build: Path, file: str, sha256: str) -> bytes:
    """Return the contents of a file that has a hash."""
    path = build / file
    if not path.is_file():
        raise UsageError(f"{str(build)!r} has no {file}", remedy="run nnef-hw build again")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise UsageError(
            f"{str(path)!r} is not the image of this build's weights: its SHA-256 is not that "
            "of the manifest",
            remedy="run nnef-hw build again",
        )
    return data


@dataclass(frozen=True, slots=True)
class Manifest:
    """Facts about a build that a host has to know.

    ``hash`` are the 32 bytes by which the board identifies the build that its bitstream is of;
    ``cycles_per_inference`` is the interval that the schedule predicts, at ``clock_mhz``. ``link``
    is the entry of the way to the board, which :mod:`nnef_hw.boards.interfaces` reads;
    ``counted_layers`` is 0 unless the board counts what they do; ``memory`` is None unless the
    board's memory has to hold an image. ``states`` are the names of what the network keeps from
    one inference to the next; ``rows`` how inputs take windows of a stream, by name; ``batch``
    how many frames have to come before there is a result. ``is_ip`` says that the build is plain
    IP, which has no board around it. ``loop`` are the purposes of the tensors that the board's own
    loop joins; None if it has none. ``sources`` are the names of inputs that do not come from the
    host. ``oscillator_mhz`` is the clock of the board's link, where the accelerator has one of its
    own, which the report has; None where both have ``clock_mhz``. ``program`` is what a processor
    may load through registers, if it may.
    """

    model: str
    board: str
    clock_mhz: float
    cycles_per_inference: int
    inputs: tuple[TensorStream, ...]
    outputs: tuple[TensorStream, ...]
    link: Mapping[str, object]
    counted_layers: int
    memory: MemoryEntry | None
    hash: bytes
    states: tuple[str, ...] = ()
    batch: int = 1
    rows: Mapping[str, StreamRows] = field(default_factory=dict)
    is_ip: bool = False
    loop: Roles | None = None
    sources: tuple[str, ...] = ()
    oscillator_mhz: float | None = None
    program: ProgramEntry | None = None

    @property
    def roles(self) -> Roles:
        """Purposes of the tensors of a language model's step.

        Raises
        ------
        UsageError
            If the network is none.
        """
        return self.loop or find_roles(self.inputs, self.outputs)


def probe_codes(sources: Sequence[tuple[str, Sequence[int], QType]]) -> dict[str, IntArray]:
    """Return a frame [1, ...] that looks random, by name, extents of a sample and format."""
    frame = {}
    for name, shape, qtype in sources:
        count = prod(shape)
        data = np.frombuffer(hashlib.shake_256(name.encode()).digest(2 * count), "<u2")
        codes = qtype.lo + data.astype(np.int64) % (qtype.hi - qtype.lo + 1)
        frame[name] = codes.reshape(1, *shape)
    return frame


def answer_hash(results: Sequence[IntArray]) -> str:
    """Return the hash of the codes of all outputs, in their order."""
    data = b"".join(np.asarray(codes, "<i4").tobytes() for codes in results)
    return hashlib.sha256(data).hexdigest()


def manifest_hash(value: dict[str, object]) -> bytes:
    """Return the 32 bytes by which a board's host recognises the build."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()


def _bitstream_hash(value: JsonObject) -> bytes:
    """Return the hash of the manifest that the bitstream was made with: this, or an earlier one."""
    if "bitstream" in value:
        return bytes.fromhex(value["bitstream"]["manifest"])
    return manifest_hash(value)


def _roles(entry: Fields | None, outputs: Sequence[TensorStream]) -> Roles | None:
    """Return the purposes of the tensors that an entry ``token_loop`` names."""
    if entry is None:
        return None
    [scores] = [output for output in outputs if output.name == entry["scores"]]
    return Roles(
        entry["token"], scores.name, scores.qtype, entry["tokens"], position=entry["position"],
        context=entry["context"], is_choice=entry["is_choice"],
    )  # fmt: skip


def read_manifest(build: Path) -> Manifest:
    """Read the manifest in a build's folder.

    Raises
    ------
    UsageError
        If there is none, or it is damaged or of another version.
    """
    path = build / "manifest.json"
    if not path.is_file():
        raise UsageError(f"{str(build)!r} is not a build: it has no manifest.json",
                         remedy="run nnef-hw build")  # fmt: skip
    try:
        value = json.loads(path.read_text())
        version = value["format"]
        if version == FORMAT_VERSION:
            outputs = tuple(TensorStream.from_json(item) for item in value["outputs"])
            return Manifest(
                model=value["model"],
                board=value["board"],
                clock_mhz=value["clock_mhz"],
                oscillator_mhz=value.get("oscillator_mhz"),
                cycles_per_inference=value["cycles_per_inference"],
                inputs=tuple(TensorStream.from_json(item) for item in value["inputs"]),
                outputs=outputs,
                link=value["link"],
                counted_layers=value["link"].get("counted_layers", 0),
                memory=MemoryEntry.from_json(value.get("memory")),
                program=ProgramEntry.from_json(value.get("program")),
                hash=_bitstream_hash(value),
                states=tuple(item["name"] for item in value.get("states", ())),
                batch=value.get("batch", 1),
                is_ip="ip" in value["files"],
                loop=_roles(value.get("token_loop"), outputs),
                sources=tuple(item["input"] for item in value.get("sources", ())),
                rows={
                    name: StreamRows.from_json(item)
                    for name, item in value.get("stream", {}).items()
                },
            )
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UsageError(f"{str(path)!r} is damaged", remedy="run nnef-hw build again") from error
    raise UsageError(
        f"{str(path)!r} has format {version}, not {FORMAT_VERSION}",
        remedy="build with the nnef-hw that runs it",
    )
