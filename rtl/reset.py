"""A reset of one component, besides that of its clock domain."""

from amaranth import *

__all__ = ["WithReset"]


class WithReset(Elaboratable):
    """A component that a signal of its parent resets as the clock domain's reset does.

    Where components become modules of their own (:mod:`nnef_hw.codegen.hierarchy`) the signal is a
    part of what the module's port ``rst`` gets.

    Parameters
    ----------
    component : wiring.Component
    reset : Signal or None
        Active high, synchronous; None leaves it to the clock domain.
    """

    def __init__(self, component, reset):
        self.component = component
        self.reset = reset

    def elaborate(self, platform):
        if hasattr(platform, "instance"):
            return platform.instance(self.component, self.reset)
        return self.component if self.reset is None else ResetInserter(self.reset)(self.component)
