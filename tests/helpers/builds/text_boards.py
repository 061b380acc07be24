"""Boards that write texts: small samples, what a loop writes, a board whose streams pause."""

import json

import numpy as np
from hesitant import Hesitant

from nnef_hw.architectures import find_architecture
from nnef_hw.boards import find_board
from nnef_hw.codegen import board as codegen_board
from nnef_hw.codegen.board import design_board
from nnef_hw.codegen.manifest import make_manifest
from nnef_hw.flow.language_models import bind_loop
from nnef_hw.host.manifest import read_manifest

__all__ = ["paused_board", "texts", "token_samples"]


def token_samples(rng):
    """Return tokens at their positions, for steps with 11 tokens and a context of 8."""
    return {
        "token": rng.integers(0, 11, (6, 16, 1)),
        "position": np.tile(np.arange(8), (6, 2))[..., None],
    }


def texts(loop, prompts, tokens):
    return [list(loop.generate(prompt, tokens)) for prompt in prompts]


def paused_board(fixed, arch, link, folder, patch):
    """Return a board on which all streams pause: its Verilog, its clock, and the manifest."""
    board, architecture = find_board("tang_nano_20k"), find_architecture(arch)
    plan = architecture.plan(fixed, board)
    loop = bind_loop(fixed, plan.outputs)
    manifest = make_manifest(fixed, plan, generator="test", link=link, loop=loop)

    class Hesitating:
        def component(self, *arguments, **wishes):
            return Hesitant(architecture.component(*arguments, **wishes))

    patch.setattr(codegen_board, "find_architecture", lambda name: Hesitating())
    design = design_board(plan, fixed, manifest, board)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return design.verilog, round(plan.clock_mhz * 1e6), read_manifest(folder)
