"""RTLIL to the Verilog that an engineer would write.

The text of a design is parsed, simplified, named and printed. No module here knows what a design
computes.
"""
