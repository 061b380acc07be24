"""Building: steps, their cache, external tools in order, and the report's data."""
