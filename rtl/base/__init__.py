"""Ground of all components: memories, primitives, reset.

Block RAM keeps the shape of its device; primitives map to fewer LUTs. No stream is known here.
"""
