"""The schema of report.json: complete, and true of reports."""

import pytest
from jsonschema import Draft202012Validator, ValidationError

from nnef_hw.report.model.checks import BoardSpeed, BuildComparison, Simulation
from nnef_hw.report.model.exploration import Explored
from nnef_hw.report.model.network import BuildProgram, ModelCheck, ModelDescription
from nnef_hw.report.model.quantization import Quantization
from nnef_hw.report.model.report import Report
from nnef_hw.report.model.schema import described_classes, report_schema


@pytest.mark.parametrize(
    "kind", [Report, Simulation, BuildComparison, BoardSpeed, ModelCheck, ModelDescription,
             BuildProgram, Quantization, Explored],
)  # fmt: skip
def test_every_key_is_described(kind):
    for name, described in described_classes(kind).items():
        for key, value in described["properties"].items():
            assert value.get("description"), f"{name}.{key}"


def test_reports_follow_the_schema(any_report):
    validator = Draft202012Validator(report_schema())
    validator.validate(any_report)
    with pytest.raises(ValidationError):
        validator.validate(any_report | {"macs": "many"})
