"""Texts of a language model: the streams that a loop on the board joins."""
