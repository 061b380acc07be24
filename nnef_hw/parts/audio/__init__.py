"""Parts that compute features of audio by a program: a sequencer, its programs and constants.

Their components are in ``rtl.audio``.
"""
