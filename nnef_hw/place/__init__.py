"""Synthesis, placement and routing: Verilog to a bitstream, or to a project for another program.

``toolchain.py`` says what a toolchain is; ``nextpnr`` holds the open one, ``netlist``, ``blocks``
and ``cells`` what that uses. A family names its toolchain, so everything above this room asks
``toolchain_of(family)``. Nothing here knows of networks; what a build does in which order stands in
``flow``.
"""
