"""Components that reduce or rearrange images.

Pools, pads, transposition and resampling are here. ``parts.images`` has their facts.
"""
