"""Cycles in which codes of a front end come, whose samples are always there."""

from __future__ import annotations

from nnef_hw.engine.layers.ends import Head
from nnef_hw.engine.network.loading import Loading
from nnef_hw.parts.base.timing import Kernel, Stream

__all__ = ["Arrivals"]


class Arrivals:
    """A head as the engine waits for it, from a reset on.

    Attributes
    ----------
    begins
        Cycle of every frame's first sample.
    frames
        Frames that the engine has taken.
    """

    def __init__(self, head: Head) -> None:
        kernel = Kernel()
        self._samples, self._codes = Stream(kernel), Stream(kernel)
        self._process = head.part.process(self._codes, self._samples)
        self._beats = head.port.beats
        self.begins: list[int] = []
        self.frames = 0
        self._offered = self._goes_on(next(self._process))

    def _goes_on(self, request: object) -> int:
        """Give samples until the process offers a code; return the cycle of that."""
        while request is self._samples:
            request = self._process.send(0)
        assert isinstance(request, tuple)
        while self._beats * len(self.begins) < len(self._samples.times):
            self.begins.append(self._samples.times[self._beats * len(self.begins)])
        offered: int = request[1]
        return offered

    def taken(self, loading: Loading, first: int) -> int:
        """Return when the last beat of a frame is taken, padding included.

        Parameters
        ----------
        loading
            What beats of a row are.
        first
            The first cycle in which one may be.
        """
        cycle = first - 1
        for _ in range(loading.rows):
            for beat in range(loading.length):
                cycle += 1
                if loading.lead <= beat < loading.real:
                    cycle = max(cycle, self._offered)
                    self._offered = self._goes_on(self._process.send(cycle))
        self.frames += 1
        return cycle
