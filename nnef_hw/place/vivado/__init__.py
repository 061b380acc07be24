"""A project for AMD's Vivado as a toolchain: yosys maps and counts, the vendor's program places.

``vivado.py`` is the toolchain, ``project.py`` the text of the project and of its constraints, and
``amd7.py`` what the 7 series need.
"""
