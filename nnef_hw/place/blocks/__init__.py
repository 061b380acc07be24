"""Places for DSP blocks and block RAMs before anything else: wires, and cells spread along them.

This room needs scipy, which comes with the extras of the families that use it.
"""
