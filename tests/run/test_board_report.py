"""The clock of a board, by a time of its own."""

from types import SimpleNamespace

import pytest

from nnef_hw.run import board_report


class Board:
    """A board that takes ``delay`` seconds to answer, and runs at another clock than it says."""

    def __init__(self, clk_hz, real_hz, interval, batch=1, delay=0.004):
        self.host = SimpleNamespace(clock_hz=lambda: clk_hz)
        self.real_hz, self.interval, self.batch, self.delay = real_hz, interval, batch, delay
        self.now = 0.0
        self.replayed = []

    def replay(self, frames):
        batches = -(-frames // self.batch)
        self.replayed.append(frames)
        self.now += self.delay + (5000 + (batches - 1) * self.interval) / self.real_hz
        return SimpleNamespace(frames=batches * self.batch)


@pytest.mark.parametrize(
    ("clk_hz", "real_hz", "interval", "batch", "frames"),
    [
        (36.75e6, 36.1e6, 1000, 1, 65535),  # as many frames as a replay can have
        (12e6, 12.3e6, 1_000_000, 1, 24),  # two seconds
        (12e6, 11.9e6, 100_000_000, 1, 10),  # longer, but some frames
        (48e6, 48.5e6, 30_000, 4, 12800),  # a batch has four frames
    ],
)
def test_clock(monkeypatch, clk_hz, real_hz, interval, batch, frames):
    board = Board(clk_hz, real_hz, interval, batch)
    monkeypatch.setattr(board_report.time, "perf_counter", lambda: board.now)
    clock, error = board_report.measured_clock(board, interval / batch)
    assert board.replayed == [2, frames]
    assert clock == pytest.approx(real_hz / 1e6, rel=1e-9)
    seconds = (frames - 2) * interval / batch / real_hz
    assert error == pytest.approx(clock * 0.005 / seconds, rel=1e-3)
