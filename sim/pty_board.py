"""A simulated board behind a pseudo-terminal: a serial port for any program."""

import os
import select
import threading
import time
import tty

from nnef_hw.boards.interfaces import DEFAULT_LINK
from nnef_hw.errors import NnefHwError, ToolError
from nnef_hw.host.serial_port import SerialTransport
from nnef_hw.sim.board_runner import BoardTransport

__all__ = ["PtyBoard"]

# Simulated seconds per look at the terminal.
_STEP = 50e-6
_WARM_UP_CYCLES = 20_000
# A pseudo-terminal has no rate.
_ANY_BAUD = 115_200


class PtyBoard:
    """Run a board's top in a thread, its link on a pseudo-terminal.

    To be closed, or used as a context manager.

    Parameters
    ----------
    verilog, clk_hz, core_hz, link, others, top, cache_dir
        The same as for :class:`~nnef_hw.sim.board_runner.BoardTransport`.

    Attributes
    ----------
    port : str
        Name of the terminal, to be opened like any serial port.
    slowness : float
        How much longer than on the board everything takes; a host must be so much more patient.

    Raises
    ------
    ToolError
        If this system has no pseudo-terminals, or Verilator is missing.
    """

    def __init__(
        self, verilog, *, clk_hz, core_hz=None, link=DEFAULT_LINK, others=(), top="board_top",
        cache_dir=None,
    ):  # fmt: skip
        if not hasattr(os, "openpty"):
            raise ToolError("this system has no pseudo-terminals", remedy="use Linux or macOS")
        self._board = BoardTransport(
            verilog, clk_hz=clk_hz, core_hz=core_hz, link=link, others=others, top=top,
            cache_dir=cache_dir,
        )  # fmt: skip
        begin = time.perf_counter()
        self._board.advance(_WARM_UP_CYCLES)
        # twice, because the machine may be busier later
        seconds = time.perf_counter() - begin
        self.slowness = max(1.0, 2 * seconds * clk_hz / _WARM_UP_CYCLES)
        # held open, so that a host may come and go
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._wake, self._stop = os.pipe()
        self._silence = link.silence
        self._failure = None
        self._thread = threading.Thread(target=self._serve, name="board", daemon=True)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def is_running(self):
        """Whether the board still answers; otherwise :meth:`close` says why not."""
        return self._thread.is_alive()

    def open(self):
        """Return a transport to the terminal, as a context manager."""
        return SerialTransport(self.port, _ANY_BAUD)

    def close(self):
        """Power the board off.

        Raises
        ------
        CheckError, ToolError
            If the simulation has failed meanwhile.
        """
        os.write(self._stop, b"x")
        self._thread.join()
        for handle in (self._master, self._slave, self._wake, self._stop):
            os.close(handle)
        self._board.close()
        if self._failure is not None:
            raise self._failure

    def _serve(self):
        quiet = 0.0
        try:
            while True:
                timeout = 0 if quiet < self._silence else None
                ready, _, _ = select.select([self._master, self._wake], [], [], timeout)
                if self._wake in ready:
                    return
                if ready:
                    self._board.write(os.read(self._master, 4096))
                    quiet = 0.0
                received = self._board.read(_STEP)
                os.write(self._master, received)
                quiet = 0.0 if received else quiet + _STEP
        except NnefHwError as failure:
            self._failure = failure
