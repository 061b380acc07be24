"""Windows in time, run step by step.

Rows, taps and states of a step are found here. These passes run on request alone.
"""
