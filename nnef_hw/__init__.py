"""nnef-hw: from a trained neural network to a bit-exact FPGA accelerator with open tools.

What stands here is the Python API (docs/api.md); what it consists of is imported when it is used,
so that driving a board takes no more than NumPy and pyserial.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nnef_hw.api import (
        Build,
        Check,
        Exploration,
        FixedModel,
        Model,
        Plan,
        Survey,
        features,
        load,
        open_build,
    )
    from nnef_hw.boards import BOARDS
    from nnef_hw.quantize import Scheme
    from nnef_hw.run.device import Device, open_device

__all__ = [
    "BOARDS", "Build", "Check", "Device", "Exploration", "FixedModel", "Model", "Plan", "Scheme",
    "Survey", "features", "load", "open_build", "open_device",
]  # fmt: skip

__version__ = "0.1.0"

_HOMES = {
    "BOARDS": "nnef_hw.boards",
    "Device": "nnef_hw.run.device",
    "Scheme": "nnef_hw.quantize",
    "open_device": "nnef_hw.run.device",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES.get(name, "nnef_hw.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
