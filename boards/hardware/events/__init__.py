"""Hardware of sinks that tell events: means of scores, decimal numbers, lines of text."""
