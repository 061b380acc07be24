"""The pipeline: phases of groups of passes, from a network as it is read to canonical operators."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from nnef_hw.errors import NnefHwError, UsageError, raise_all
from nnef_hw.ir import Graph, Stage, State, close_states, open_states, verify, without_dead_states
from nnef_hw.passes.audio.merge_log_bands import MergeLogBands
from nnef_hw.passes.checks.check_supported import find_differing, find_unsupported
from nnef_hw.passes.checks.supported_part import find_supported_part, with_part
from nnef_hw.passes.forms.lower_axes import LowerAxes
from nnef_hw.passes.forms.lower_bias import LowerBias
from nnef_hw.passes.forms.lower_broadcast import LowerBroadcast
from nnef_hw.passes.forms.lower_concat import LowerConcat
from nnef_hw.passes.forms.lower_contraction import LowerContraction
from nnef_hw.passes.forms.lower_cumsum import LowerCumsum
from nnef_hw.passes.forms.lower_einsum import LowerEinsum
from nnef_hw.passes.forms.lower_flattened_linear import LowerFlattenedLinear
from nnef_hw.passes.forms.lower_gather import LowerGather
from nnef_hw.passes.forms.lower_matmul import LowerMatmul
from nnef_hw.passes.forms.lower_normalization import LowerNormalization
from nnef_hw.passes.forms.lower_product import LowerProduct
from nnef_hw.passes.forms.lower_reduce import LowerReduce
from nnef_hw.passes.forms.lower_scatter import LowerScatter
from nnef_hw.passes.forms.lower_slices import LowerSlices
from nnef_hw.passes.forms.merge_normalization import MergeNormalization
from nnef_hw.passes.forms.normalize_attributes import NormalizeAttributes
from nnef_hw.passes.functions.collapse_functions import CollapseFunctions
from nnef_hw.passes.functions.hoist_functions import HoistFunctions
from nnef_hw.passes.functions.lower_bipolar import LowerBipolar
from nnef_hw.passes.functions.lower_clamp import LowerClamp
from nnef_hw.passes.functions.lower_division import LowerDivision
from nnef_hw.passes.functions.lower_elementwise import LowerElementwise
from nnef_hw.passes.functions.lower_prelu import LowerPrelu
from nnef_hw.passes.functions.lower_selection import LowerSelection
from nnef_hw.passes.functions.sink_product import SinkProduct
from nnef_hw.passes.fusing.absorb_quantize import AbsorbQuantize
from nnef_hw.passes.fusing.fold_affine import FoldAffine
from nnef_hw.passes.fusing.fold_input import FoldInput
from nnef_hw.passes.fusing.fuse_activation import FuseActivation
from nnef_hw.passes.fusing.merge_average import MergeAverage
from nnef_hw.passes.fusing.merge_pad import MergePad
from nnef_hw.passes.fusing.merge_siblings import MergeSiblings
from nnef_hw.passes.fusing.scale_contraction import ScaleContraction
from nnef_hw.passes.images.lower_borders import LowerBorders
from nnef_hw.passes.images.lower_deconv import LowerDeconv
from nnef_hw.passes.images.lower_multilinear import LowerMultilinear
from nnef_hw.passes.images.lower_pad import LowerPad
from nnef_hw.passes.images.lower_resize import LowerResize
from nnef_hw.passes.images.merge_depth_to_space import MergeDepthToSpace
from nnef_hw.passes.images.sink_pad import SinkPad
from nnef_hw.passes.loops.lower_scan import lower_scans
from nnef_hw.passes.loops.unroll_scan import UnrollScan
from nnef_hw.passes.places.find_places import FindPlaces
from nnef_hw.passes.places.tabulate_integers import TabulateIntegers
from nnef_hw.passes.rewriting.rewrite import Pass, in_order
from nnef_hw.passes.structure.choose_order import ChooseOrder
from nnef_hw.passes.structure.fold_constants import FoldConstants
from nnef_hw.passes.structure.group_queries import GroupQueries
from nnef_hw.passes.structure.hoist_arithmetic import HoistArithmetic
from nnef_hw.passes.structure.lower_rank import LowerRank
from nnef_hw.passes.structure.lower_shapes import LowerShapes
from nnef_hw.passes.structure.merge_equal import MergeEqual
from nnef_hw.passes.structure.raise_rank import RaiseRank
from nnef_hw.passes.structure.remove_dead import RemoveDead
from nnef_hw.passes.structure.remove_identity import RemoveIdentity
from nnef_hw.passes.structure.sink_transposes import SinkTransposes
from nnef_hw.passes.structure.split_pairs import SplitPairs

__all__ = [
    "CLEANUP",
    "Group",
    "Phase",
    "Step",
    "graph_after",
    "phases",
    "rewrite",
    "simplify",
    "steps",
]

CLEANUP: tuple[Pass, ...] = (LowerShapes(), RemoveIdentity(), RemoveDead())
"""Passes that run behind each group, on what it leaves: moves without effect, and dead nodes."""

_MOST_ROUNDS = 1000
"""Each but the last of which rewrites something; networks of hundreds of layers take about ten."""


@dataclass(frozen=True)
class Group:
    """Passes that run one after the other, in the order that follows from what they declare."""

    name: str
    purpose: str
    passes: tuple[Pass, ...]

    @classmethod
    def of(cls, name: str, purpose: str, passes: Iterable[Pass]) -> Group:
        """Sort passes, and make a group of them."""
        return cls(name, purpose, in_order(passes))

    def preceded_by(self, *more: Pass) -> Group:
        """Return the group with more passes, listed in front of its own."""
        return self.of(self.name, self.purpose, (*more, *self.passes))


@dataclass(frozen=True)
class Phase:
    """Groups of passes, each followed by :data:`CLEANUP`, repeated until nothing changes."""

    name: str
    purpose: str
    groups: tuple[Group, ...]

    @property
    def passes(self) -> tuple[Pass, ...]:
        """Passes of one round."""
        return tuple(each for group in self.groups for each in (*group.passes, *CLEANUP))


_CONSTANTS = Group.of(
    "constants",
    "Remove loops of one step, take the author's quantization into formats, compute constants.",
    (UnrollScan(longest=1), AbsorbQuantize(), FoldConstants()),
)
_PLACES = Group.of(
    "places",
    "Find what is chosen by the integers of an input.",
    (FindPlaces(), TabulateIntegers()),
)
_EXPORTERS = Group.of(
    "exporters",
    "Find what exporters write out, before other passes take it apart.",
    (MergeLogBands(), MergeNormalization(), GroupQueries(), SplitPairs()),
)
_FORMS = Group.of(
    "forms",
    "Write every operator as the few canonical ones, of images [1, C, H, W] and vectors [1, C].",
    (
        SinkTransposes(),
        LowerCumsum(),
        LowerEinsum(),
        LowerBias(),
        LowerMatmul(),
        LowerContraction(),
        ScaleContraction(),
        SinkProduct(),
        LowerProduct(),
        LowerScatter(),
        LowerGather(),
        LowerConcat(),
        LowerSlices(),
        LowerResize(),
        LowerNormalization(),
        MergeEqual(),
        HoistArithmetic(),
        NormalizeAttributes(),
        LowerReduce(),
        MergeAverage(),
        LowerAxes(),
        LowerClamp(),
        LowerPrelu(),
        CollapseFunctions(),
        LowerDivision(),
        LowerBroadcast(),
        LowerElementwise(),
        LowerRank(),
        SinkPad(),
        LowerPad(),
        LowerMultilinear(),
        LowerBorders(),
        MergePad(),
        RaiseRank(),
    ),
)
_FUSING = Group.of(
    "fusing",
    "Join scales, offsets, activations and transposed convolutions with the layers around them.",
    (
        HoistFunctions(),
        FoldAffine(),
        FoldInput(),
        LowerBipolar(),
        LowerDeconv(),
        MergeDepthToSpace(),
        FuseActivation(),
    ),
)


def phases(images: Collection[str] = ()) -> tuple[Phase, ...]:
    """Return the phases of the pipeline in their order.

    Parameters
    ----------
    images
        Tensors that stream as images, as :class:`.LowerFlattenedLinear` takes them.
    """
    return (
        Phase(
            "loops",
            "Find the loops that stay: those of several steps, of which some operand is computed. "
            "Behind this phase their bodies become part of the graph (`lower_scans`).",
            (
                Group.of(
                    "loops",
                    "Remove loops of one step, and compute constants.",
                    (UnrollScan(longest=1), FoldConstants()),
                ),
            ),
        ),
        Phase(
            "canonical",
            "Rewrite the graph into canonical operators.",
            (_CONSTANTS, _PLACES, _EXPORTERS, _FORMS, _FUSING),
        ),
        Phase(
            "selections",
            "Compute a selection of two activations with products, and rewrite what these are of. "
            "The phase before has collapsed selections that are functions of one activation.",
            (_CONSTANTS.preceded_by(LowerSelection()), _FORMS, _FUSING),
        ),
        Phase(
            "layers",
            "Choose which layers there are: one for all gates of a loop, and a filter or a matrix "
            "for what is behind a flatten.",
            (
                Group.of(
                    "layers",
                    "Merge the gates of loops, and give layers behind a flatten their form.",
                    (MergeSiblings(), LowerFlattenedLinear(images=images)),
                ),
            ),
        ),
        Phase(
            "order",
            "Choose the order in which the elements of a tensor stream.",
            (
                Group.of(
                    "order",
                    "Compute in order what would otherwise wait in memories.",
                    (ChooseOrder(),),
                ),
            ),
        ),
    )


@dataclass(frozen=True)
class Step:
    """A graph on its way, behind a pass or a phase.

    Parameters
    ----------
    name
        Name of the pass or phase that has run.
    graph
        One step of the network: states are inputs, their next values outputs.
    states
        The states, with those of loops.
    """

    name: str
    graph: Graph
    states: Mapping[str, State]

    def closed(self) -> Graph:
        """Return the graph with its states."""
        return close_states(_with_unique_labels(self.graph), self.states)


def simplify(graph: Graph) -> Graph:
    """Rewrite a float graph to the canonical stage.

    The passes run until none of them finds anything to do; the graph is verified after each.

    Raises
    ------
    UnsupportedError, ErrorGroup
        If operators remain that cannot be built: one error for each, with its location.
    """
    graph, errors = rewrite(graph)
    raise_all(errors)
    graph = graph.replaced(stage=Stage.CANONICAL)
    verify(graph)
    return graph


def rewrite(graph: Graph) -> tuple[Graph, list[NnefHwError]]:
    """Rewrite a float graph as far as it goes; return every reason why it is not canonical.

    The passes see one step: states are inputs, and their next values outputs. If a part of the
    graph in front of what is refused can be built, the last reason says how to end it there.
    """
    found, errors = _rewrite(graph)
    if errors:
        part = find_supported_part(graph, errors, lambda part: _rewrite(part)[1])
        errors = with_part(errors, part)
    return found, errors


def graph_after(graph: Graph, name: str) -> Graph:
    """Return a float graph as it is when a pass of this name has run once, or a phase has ended.

    Raises
    ------
    UsageError
        If no pass and no phase has this name.
    """
    known = dict.fromkeys(
        name for phase in phases() for name in (phase.name, *(each.name for each in phase.passes))
    )
    if name not in known:
        close = get_close_matches(name, known, n=3, cutoff=0.5)
        meant = " or ".join(map(repr, close))
        names = ", ".join(phase.name for phase in phases())
        raise UsageError(
            f"no pass and no phase is called {name!r}",
            remedy=f"did you mean {meant}?" if close else f"the phases are {names}",
        )
    return next(step for step in steps(graph) if step.name == name).closed()


def steps(graph: Graph) -> Iterator[Step]:
    """Run the pipeline; yield the graph behind each pass, changed or not, and behind each phase."""
    graph = without_dead_states(graph)
    loops, *_ = phases()
    step = yield from _run(loops, open_states(graph), graph.states)
    step, loop_states = lower_scans(step)
    states = {**graph.states, **loop_states}
    for phase in phases(images=states)[1:]:
        step = yield from _run(phase, step, states)


def _run(phase: Phase, graph: Graph, states: Mapping[str, State]) -> Generator[Step, None, Graph]:
    """Repeat a phase's passes until a round changes nothing."""
    passes = phase.passes
    for _ in range(_MOST_ROUNDS):
        before = graph
        for each in passes:
            graph = _apply(each, graph)
            yield Step(each.name, graph, states)
        if graph is before:
            yield Step(phase.name, graph, states)
            return graph
    raise AssertionError(f"{graph.name}: two passes undo what the other one does")


def _apply(each: Pass, graph: Graph) -> Graph:
    graph = each(graph)
    verify(graph)
    return graph


def _rewrite(graph: Graph) -> tuple[Graph, list[NnefHwError]]:
    differing = find_differing(without_dead_states(graph))
    (last,) = deque(steps(graph), maxlen=1)
    graph = last.closed()
    verify(graph)
    return graph, differing + find_unsupported(graph)


def _with_unique_labels(graph: Graph) -> Graph:
    """Rename labels that variables made from the same one share."""
    tensors, labels = dict(graph.tensors), set()
    for name, tensor in graph.tensors.items():
        if tensor.label in labels:
            tensors[name] = replace(tensor, label=f"{tensor.label}_{name}")
        elif tensor.label is not None:
            labels.add(tensor.label)
    return graph.replaced(tensors=tensors)
