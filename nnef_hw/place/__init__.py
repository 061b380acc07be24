"""Synthesis, placement and routing: Verilog to a bitstream.

Yosys maps, our own placement gives blocks and cells their places, nextpnr routes, a packer writes
the file. Nothing here knows of networks; what a build does in which order stands in ``flow``.
"""
