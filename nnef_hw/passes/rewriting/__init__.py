"""Tools of all passes: the editor of a graph, views, names, function bodies.

A pass edits a graph through these. No pass stands here.
"""
