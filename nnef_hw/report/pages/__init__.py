"""Reports as self-contained HTML pages, with their drawings and templates.

Each drawing is a file here. The data come from the report, never from a plan.
"""
