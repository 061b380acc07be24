"""The engine architecture: one array of multipliers that all layers share (docs/engine.md)."""
