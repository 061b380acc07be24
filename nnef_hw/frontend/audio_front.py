"""A front end of audio in front of a network that hears: its input becomes samples."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import permutations
from math import prod

import numpy as np

from nnef_hw.arithmetic.audio.log_mel import LogMel
from nnef_hw.arithmetic.audio.micro_frontend import MicroFrontend
from nnef_hw.errors import Location, UsageError
from nnef_hw.frontend.front import Front, chosen_input, unused_name, with_tensors
from nnef_hw.ir import Graph, Node, Quantization, State, Tensor

__all__ = ["AudioFront", "LogMelFront", "MicroFront", "put_in_front"]

SAMPLES = "audio"
"""Name of the input of samples."""

_FULL_SCALE = 1 << 15


@dataclass(frozen=True, kw_only=True)
class AudioFront(Front):
    """A front end of audio, to be put in front of a network.

    Its ``op`` is also the name of its operator.

    Parameters
    ----------
    time
        Axis of frames in the shape of the network's input; None if the shape tells.
    """

    time: int | None = None

    def put(self, graph: Graph) -> Graph:
        """Return a network whose input is samples of audio, see :func:`put_in_front`."""
        return put_in_front(graph, self)

    @property
    @abstractmethod
    def features(self) -> int:
        """Features of a frame."""

    @abstractmethod
    def samples(self, frames: int) -> int:
        """Return how many samples there are in so many frames."""

    @property
    @abstractmethod
    def kept(self) -> int:
        """Samples of steps before that a step reads."""

    @abstractmethod
    def attributes(self) -> Mapping[str, object]:
        """Return the attributes of its operator."""

    @abstractmethod
    def step(self, graph: Graph, samples: str, features: str, location: Location | None) -> Graph:
        """Return a network that computes features of the samples of a step and those before.

        Parameters
        ----------
        graph
            The network, which has both tensors.
        samples, features
            Their names.
        location
            Where the features come from.
        """


@dataclass(frozen=True, kw_only=True)
class LogMelFront(AudioFront, LogMel):
    """Logarithms of the power in bands of the mel scale."""

    op = LogMel.name

    @property
    def features(self) -> int:
        """Features of a frame."""
        return self.bands

    def samples(self, frames: int) -> int:
        """Return how many samples there are in so many frames."""
        return self.window + (frames - 1) * self.hop

    @property
    def kept(self) -> int:
        """Samples of steps before that a step reads."""
        return self.reach - self.hop

    def attributes(self) -> Mapping[str, object]:
        """Return the attributes of a ``log_mel``."""
        before = int(self.emphasis > 0)
        own = {field.name: getattr(self, field.name) for field in fields(LogMel)}
        return {**own, "padding": [(before, 0), (0, 0)], "border": "constant"}

    def step(self, graph: Graph, samples: str, features: str, location: Location | None) -> Graph:
        """Return a network that computes features of the samples of a step and those before."""
        attrs = {**self.attributes(), "padding": [(0, 0), (0, 0)]}
        node = Node(self.op, (samples,), (features,), attrs, location)
        return replace(graph, nodes=(*graph.nodes, node))


@dataclass(frozen=True, kw_only=True)
class MicroFront(AudioFront, MicroFrontend):
    """The front end of TensorFlow Lite Micro.

    Parameters
    ----------
    scale
        What a step of its integers stands for.
    """

    op = "micro_frontend"
    scale: float = 10 / 256

    @property
    def features(self) -> int:
        """Features of a frame."""
        return self.channels

    def samples(self, frames: int) -> int:
        """Return how many samples there are in so many frames."""
        return self.window + (frames - 1) * self.hop

    @property
    def kept(self) -> int:
        """Samples of steps before that a step reads."""
        return self.window - self.hop

    def attributes(self) -> Mapping[str, object]:
        """Return the attributes of a ``micro_frontend``."""
        return {"hop": self.hop, "scale": self.scale}

    def step(self, graph: Graph, samples: str, features: str, location: Location | None) -> Graph:
        """Return the same as of any front end; what is estimated of noise is a state as well."""
        noise = unused_name(graph, f"{features}_noise")
        after = unused_name(graph, f"{features}_noise_after")
        attrs = self.attributes()
        nodes = (
            Node("micro_noise", (samples, noise), (after,), {"hop": self.hop}, location),
            Node("micro_frontend_step", (samples, noise), (features,), attrs, location),
        )
        shape = (1, self.channels, 1, 1)
        made = {name: Tensor(name, shape) for name in (noise, after)}
        state = State(np.zeros(shape), after, label=noise)
        return replace(
            graph, nodes=(*graph.nodes, *nodes), tensors={**graph.tensors, **made},
            states={**graph.states, noise: state},
        )  # fmt: skip


def put_in_front(graph: Graph, front: AudioFront) -> Graph:
    """Return a network whose input is samples of audio, of which a front end computes the old one.

    A network with states runs step by step: its front end takes the new samples of a step, and
    keeps those of steps before that its windows reach.

    Raises
    ------
    UsageError
        If the network has no such input, or an input of another shape than the front gives; if its
        integers are fixed already.
    """
    name = chosen_input(graph, front)
    old = graph.tensor(name)
    axis = _time(old, front)
    frames = old.shape[axis]
    audio = unused_name(graph, SAMPLES)
    features = unused_name(graph, f"{name}_features")
    made = [Tensor(features, (1, front.features, frames, 1), quant=old.quant)]
    if graph.states:
        begun = _keeping(graph, front, audio, frames)
        begun = front.step(with_tensors(begun, made), begun.nodes[-2].name, features, old.location)
    else:
        made.append(Tensor(audio, (1, 1, front.samples(frames), 1), quant=_samples_format()))
        node = Node(front.op, (audio,), (features,), front.attributes(), old.location)
        begun = replace(graph, nodes=(node,))
    nodes = [*begun.nodes]
    rows = [axis, *(n for n in range(1, len(old.shape)) if n != axis and old.shape[n] > 1)]
    if rows == sorted(rows):
        # frames come before features: their order has to change
        turned = unused_name(graph, f"{name}_frames")
        made.append(Tensor(turned, (1, frames, front.features, 1), quant=old.quant))
        nodes.append(Node("transpose", (features,), (turned,), {"axes": [0, 2, 1, 3]}))
        features = turned
    shape = {"shape": list(old.shape), "axis_start": 0, "axis_count": -1}
    nodes.append(Node("reshape", (features,), (name,), shape, old.location))
    inputs = tuple(audio if other == name else other for other in graph.inputs)
    whole = replace(begun, inputs=inputs, nodes=(*nodes, *graph.nodes))
    return with_tensors(whole, made)


def _keeping(graph: Graph, front: AudioFront, audio: str, frames: int) -> Graph:
    """Return the beginning of a network: samples of a step behind those that are kept.

    They are the result of the last node but one; the last one gives what is kept of them.
    """
    past, both, kept = (unused_name(graph, f"{audio}_{name}") for name in ("past", "rows", "kept"))
    new = front.samples(frames + 1) - front.samples(1)
    counts = {audio: new, past: front.kept, both: front.kept + new, kept: front.kept}
    made = [Tensor(name, (1, 1, n, 1), quant=_samples_format()) for name, n in counts.items()]
    part = {"axes": [2], "begin": [new], "end": [new + front.kept], "stride": [1]}
    nodes = (
        Node("concat", (past, audio), (both,), {"axis": 2}),
        Node("slice", (both,), (kept,), part),
    )
    state = State(np.zeros((1, 1, front.kept, 1)), kept, label=past)
    return with_tensors(replace(graph, nodes=nodes, states={**graph.states, past: state}), made)


def _time(tensor: Tensor, front: AudioFront) -> int:
    """Return the axis of frames of an input: the only one beside that of features, if any."""
    shape = tensor.shape
    found = [
        time
        for time, other in permutations(range(1, len(shape)), 2)
        if shape[other] == front.features and prod(shape) == shape[time] * shape[other]
    ]
    named = [time for time in found if front.time in (None, time)]
    if not named:
        at = "" if front.time is None else f" with frames along axis {front.time}"
        raise UsageError(
            f"{front.op} gives frames of {front.features} features, [1, {front.features}, frames], "
            f"but input {tensor.name!r} of the network has the shape {list(shape)}{at}",
            remedy="let it give as many features as the network takes, and one window at a time",
        )
    several = sorted({time for time in named if shape[time] > 1})
    if len(several) > 1:
        raise UsageError(
            f"input {tensor.name!r} {list(shape)} has {front.features} features and as many frames",
            remedy=f"name the axis of frames: time = {several[0]} or {several[1]}",
        )
    return several[0] if several else named[0]


def _samples_format() -> Quantization:
    return Quantization(
        "zero_point_linear_quantize",
        {
            "zero_point": 0,
            "scale": 1 / _FULL_SCALE,
            "bits": 16,
            "signed": True,
            "symmetric": False,
        },
    )
