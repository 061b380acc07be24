"""The machine that a build runs on: files, processes, tools.

Whole files and locks, jobs in other processes, external programs and their versions are here. No
module here knows of networks or hardware.
"""
