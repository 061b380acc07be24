"""Python files that users begin with: a board of their own, a script that trains a network."""
