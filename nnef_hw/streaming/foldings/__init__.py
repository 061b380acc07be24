"""A network as blocks: layers with their foldings, and the plan made of them.

Resources and budgets of blocks are added up here. Which folding is chosen is decided in ``search``.
"""
