"""The loop of a language model in hardware: what chooses a token, and what feeds it back."""
