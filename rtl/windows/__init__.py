"""Components that turn streams into windows.

Line buffers of every kind are here. ``parts.windows`` has their facts.
"""
