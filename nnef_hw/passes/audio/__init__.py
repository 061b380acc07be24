"""Networks that hear: what they compute of samples, found by what it gives."""
