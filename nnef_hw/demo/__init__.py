"""The demonstration: a network that comes with the package, from its file to simulated hardware.

Nothing is compiled, so no C++ compiler is needed: Amaranth's own simulator runs the hardware.
``digits_cnn.nnef.tgz`` and ``samples.npz`` are copies of those of ``examples/digits_cnn``.
"""

from nnef_hw.demo.demonstration import IMAGES, Demonstration, demonstrate

__all__ = ["IMAGES", "Demonstration", "demonstrate"]
