"""Between an accelerator and a system's bus: registers, their front ends, and frames in words.

:class:`.BusPeripheral` stands beside an accelerator of plain IP. Its registers are those of
:mod:`nnef_hw.registers`.
"""
