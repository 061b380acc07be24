"""Documents that are templates: tract fills them in from the archive's JSON files first."""

from __future__ import annotations

import json

from nnef_hw.errors import Location, ModelError
from nnef_hw.frontend.nnef.archive.archive import Archive

__all__ = ["rendered"]

_SUFFIX = ".json"


def rendered(text: str, archive: Archive, where: Location) -> str:
    """Return the document a template makes; a text without ``{{`` and ``{%`` as it is.

    The variables are the JSON files of the archive, by their names without suffix.

    Raises
    ------
    ModelError
        If the template, or a JSON file, is wrong.
    """
    if "{{" not in text and "{%" not in text:
        return text
    # hardly any document is one, and the import takes longer than reading most models
    from jinja2 import StrictUndefined, TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    try:
        return environment.from_string(text).render(_resources(archive))
    except TemplateError as error:
        line = getattr(error, "lineno", None) or 1
        raise ModelError(
            f"the template is wrong: {error}",
            remedy="its variables are the JSON files of the model",
            location=Location(where.file, line, 1),
        ) from None


def _resources(archive: Archive) -> dict[str, object]:
    result: dict[str, object] = {}
    for name in archive.names(_SUFFIX):
        try:
            result[name.removesuffix(_SUFFIX)] = json.loads(archive.read(name))
        except ValueError as error:
            raise ModelError(
                f"it is not valid JSON: {error}",
                remedy="export the model again",
                location=archive.location(name),
            ) from None
    return result
