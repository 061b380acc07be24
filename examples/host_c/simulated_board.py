"""Simulates the board of a build, for the host in C: python simulated_board.py BUILD.

Prints the serial port that the board is behind, and the patience that a host needs, as main.c takes
them: PORT PATIENCE. Goes on until it is interrupted.
"""

import math
import signal
import sys

from nnef_hw.errors import NnefHwError
from nnef_hw.run.simulated_board import simulated_board

if len(sys.argv) != 2:
    sys.exit("usage: python simulated_board.py BUILD")
signal.signal(signal.SIGTERM, signal.default_int_handler)
try:
    with simulated_board(sys.argv[1]) as board:
        print(board.port, math.ceil(board.slowness), flush=True)
        while True:
            signal.pause()
except NnefHwError as error:
    sys.exit(str(error))
except KeyboardInterrupt:
    pass
