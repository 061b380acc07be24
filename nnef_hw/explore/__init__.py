"""Many designs of one network: which boards, widths and speeds are worth a build.

``points`` has what is known of a design, ``front`` which designs no other one beats, ``jobs`` what
is computed of a design, ``cache`` the steps that a folder has already, ``sweep`` the whole of it.
"""

from nnef_hw.explore.points import Placed, Point
from nnef_hw.explore.sweep import STAGES, Sweep, explore

__all__ = ["STAGES", "Placed", "Point", "Sweep", "explore"]
