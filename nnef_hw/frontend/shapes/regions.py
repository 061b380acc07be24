"""Shapes of operators on regions of interest."""

from __future__ import annotations

from nnef_hw.frontend.shapes.call import Call
from nnef_hw.frontend.shapes.common import Shape, check_choice
from nnef_hw.frontend.shapes.windows import METHODS

__all__ = ["REGION_RULES"]


def _regions(call: Call) -> list[Shape]:
    source, rois, batch_index = (tensor.shape for tensor in call.inputs)
    spatial = len(source) - 2
    if spatial < 1:
        raise call.error(
            f"the input has rank {len(source)}, but needs batch, channel and spatial dimensions",
            at="input",
        )
    if len(rois) != 2 or rois[1] != 2 * spatial:
        raise call.error(
            f"the rois {call.inputs[1].name!r} have shape {list(rois)}, not [N, {2 * spatial}]",
            "give the begin, then the end of each region in every spatial dimension",
            at="rois",
        )
    if batch_index not in {(rois[0], 1), (rois[0],)}:
        raise call.error(
            f"the batch index {call.inputs[2].name!r} has shape {list(batch_index)}, "
            f"not [{rois[0]}, 1]",
            at="batch_index",
        )
    for name in ("output_size", "sampling_rate"):
        values = call.attrs.get(name, [1] * spatial)
        if len(values) != spatial or any(value < 1 for value in values):
            raise call.error(f"{name} {values} must have {spatial} positive items", at=name)
    for name in {"method", "resize_method"} & call.attrs.keys():
        check_choice(call, name, METHODS)
    return [(rois[0], source[1], *call.attrs["output_size"])]


REGION_RULES = dict.fromkeys(
    ("avg_roi_pool", "max_roi_pool", "roi_resample", "avg_roi_align", "max_roi_align"), _regions
)
