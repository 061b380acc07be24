"""Registers of an accelerator in a system: one table, and the texts that are made of it.

``table.py`` says what a register is, ``accelerator.py`` which ones there are; ``header.py``,
``svd.py``, ``systemrdl.py`` and ``page.py`` write them for C, CMSIS-SVD, SystemRDL and people. The
hardware, in :mod:`nnef_hw.boards.buses`, is made from the same table.
"""
