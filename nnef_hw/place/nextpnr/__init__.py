"""Yosys, nextpnr and a packer as a toolchain, and what nurses nextpnr.

``nextpnr.py`` is the toolchain, ``dialect.py`` what differs from family to family, with a file for
each. ``run.py`` runs nextpnr once, ``attempt.py`` makes one placement, ``mend.py`` routes it until
nothing is late, ``seeds.py`` takes the best of several. All numbers by which they decide, and where
each comes from, stand in ``policy.py``.
"""
