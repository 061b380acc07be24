"""A reset of one component, besides that of its clock domain."""

from amaranth import *

from nnef_hw.rtl.base.primitives import own_register

__all__ = ["WithReset", "reset_late"]


class WithReset(Elaboratable):
    """A component that a signal of its parent resets as the clock domain's reset does.

    Where components become modules of their own (:mod:`nnef_hw.codegen.hierarchy`) the signal is a
    part of what the module's port ``rst`` gets.

    Parameters
    ----------
    component : wiring.Component
    reset : Signal or None
        Active high, synchronous; None leaves it to the clock domain.
    alone : bool
        It holds all that the clock domain's reset does, later: a module of its own gets it alone.
    """

    def __init__(self, component, reset, *, alone=False):
        self.component = component
        self.reset = reset
        self.alone = alone

    def elaborate(self, platform):
        if hasattr(platform, "instance"):
            return platform.instance(self.component, self.reset, alone=self.alone)
        return self.component if self.reset is None else ResetInserter(self.reset)(self.component)


def reset_late(m, platform, component, reset, *, name):
    """Return a component that is reset a cycle later, by a register of its own and nothing else."""
    late = own_register(m, platform, reset, name=f"{name}_reset")
    return WithReset(component, late, alone=True)
