"""The fields of an engine's instructions, and who owns them."""

from collections import Counter

from nnef_hw.parts.engine.feature import Feature
from nnef_hw.parts.engine.features import FEATURES


def test_every_field_has_one_owner():
    names = Counter(
        name for feature in FEATURES for record in feature.says for name in record.facts()
    )
    assert {name for name, count in names.items() if count > 1} == set()


def test_every_feature_is_listed():
    """Those that stand for several need not be: they are bases of these."""

    def below(kind):
        return [kind, *(x for sub in kind.__subclasses__() for x in below(sub))]

    kinds = below(Feature)
    assert {kind for kind in kinds if not kind.__subclasses__()} <= set(FEATURES) <= set(kinds)
