"""Search for foldings: the fastest that fit, or the smallest for a rate.

Options, knapsack, solver, and the reasons of a misfit are here. Cycles come from ``beats``, never
from estimates here.
"""
