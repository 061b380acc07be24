"""Hardware components in Amaranth, each usable alone; they know nothing of graphs."""
