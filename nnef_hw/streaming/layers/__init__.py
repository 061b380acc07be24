"""Stream layers: what each kind of operator is in the streaming architecture.

A layer says how it may be folded, which parts it then has and how many cycles they take. Layers
with weights are in ``filters``; choices among foldings are in ``search``.
"""
