"""Questions that every part answers, and the timed processes that simulate it.

A part is a class in a room beside this one. Nothing here is a part.
"""
