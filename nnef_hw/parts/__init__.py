"""Parts: what is known of every component of ``rtl/``, without Amaranth.

A part holds a component's parameters, and says what follows from them: its cycles, its memories,
its multipliers, what it is made of. The file of a component ``rtl/NAME.py`` is ``parts/NAME.py``.
"""

from nnef_hw.parts.part import Part, Pipe, WindowPart

__all__ = ["Part", "Pipe", "WindowPart"]
