"""Sensors of motion: acceleration and rotation over two wires (I2C)."""
