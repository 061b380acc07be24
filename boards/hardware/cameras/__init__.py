"""Hardware of cameras with a parallel port: registers over two wires, and their pictures."""
