"""Texts of a language model: the loop that a board runs, and the link that carries them alone."""
