"""Questions that every architecture answers, and facts of any plan.

A further architecture implements this interface. Nothing here names an architecture.
"""
