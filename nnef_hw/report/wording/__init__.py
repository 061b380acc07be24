"""Words of reports: units, labels, tables, sentences about limits.

Terminal and pages use the same. Nothing here reads a folder.
"""
