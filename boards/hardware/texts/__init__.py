"""A line of texts: all that is on a board whose link carries texts of a language model alone."""
