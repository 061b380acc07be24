"""Components that compute features of audio by a program.

``parts.audio`` has their facts and programs.
"""
