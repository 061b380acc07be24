"""Run samples on a board: python run_on_board.py BUILD PORT SAMPLES.npz (PORT may be ``sim``)."""

import sys
import time

import numpy as np

from nnef_hw.run import open_device

build, port, samples = sys.argv[1:]
with np.load(samples) as file:
    inputs, labels = file["inputs"], file.get("labels")

with open_device(build, port, progress=True) as board:
    begin = time.perf_counter()
    (outputs,) = board.run(inputs).values()
    seconds = time.perf_counter() - begin

print(f"{len(outputs)} samples in {seconds:.2f} s")
if labels is not None:
    print(f"{(outputs.argmax(axis=1) == labels).mean():.2%} of the labels found")
