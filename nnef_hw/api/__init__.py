"""The Python API, which ``import nnef_hw`` offers: from a model to a build in a few nouns.

A :class:`Model` is quantized to a :class:`FixedModel`; that is scheduled on a board, which gives a
:class:`Plan`; a plan is built, which gives a :class:`Build`. Each can be run, and shows itself in a
terminal and in a notebook.
"""

from nnef_hw.api import features
from nnef_hw.api.build import Build, open_build
from nnef_hw.api.exploration import Exploration
from nnef_hw.api.fixed import FixedModel
from nnef_hw.api.loading import load
from nnef_hw.api.model import Model
from nnef_hw.api.plan import Plan
from nnef_hw.api.survey import Check, Survey

__all__ = [
    "Build",
    "Check",
    "Exploration",
    "FixedModel",
    "Model",
    "Plan",
    "Survey",
    "features",
    "load",
    "open_build",
]
