"""Passes that keep what is computed and change where: order, copies, constants.

They remove, merge and move nodes. None of them writes an operator as others.
"""
