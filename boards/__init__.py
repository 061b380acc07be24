"""One file per board: pins, clock generation and host link."""
