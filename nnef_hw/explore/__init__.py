"""Many designs of one network: which boards, widths and speeds are worth a build.

``front`` says which designs no other one beats, ``jobs`` what is computed of a design, ``cache``
the steps that a folder has already, ``sweep`` the whole of it.
"""

from nnef_hw.explore.sweep import STAGES, Sweep, explore
from nnef_hw.report.model.exploration import Placed, Point

__all__ = ["STAGES", "Placed", "Point", "Sweep", "explore"]
