"""The dialect of tract and of its exporters, torch_to_nnef and tract's own writer."""

from nnef_hw.frontend.nnef.tract.dialect import TRACT, tract_rules
from nnef_hw.frontend.nnef.tract.symbols import open_shapes
from nnef_hw.frontend.nnef.tract.template import rendered

__all__ = ["TRACT", "open_shapes", "rendered", "tract_rules"]
