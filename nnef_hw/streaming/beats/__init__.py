"""Beat times: when every beat of a streaming accelerator moves.

Interval, latency, FIFO sizes and activity follow from this simulation, exactly. It reads plans and
changes none.
"""
