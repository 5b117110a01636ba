"""Validation of a draft specification: collects all its errors."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticUndefined

from ferret_core import catalog
from ferret_core.catalog import ResolvedExperiment
from ferret_core.experiment.spec_patch import nested
from ferret_core.protocol import merge_patch
from ferret_core.protocol.errors import FerretError, FieldErrors, field_errors
from ferret_core.protocol.spec import ExperimentSpec, PluginChoice


class Validation(NamedTuple):
    """``experiment`` is None while ``problem`` says what is wrong.

    ``filled`` is the document with its defaults, as far as they can be filled in: a section with an invalid value is
    left out.
    """

    experiment: ResolvedExperiment | None
    filled: dict[str, Any]
    problem: FerretError | None


def validate(document: Mapping[str, Any]) -> Validation:
    """Validates ``document``. Its ``problem`` is the response that a submission would get, and also includes errors in
    options of an incomplete specification.
    """
    try:
        experiment = catalog.resolve(ExperimentSpec.model_validate(document))
    except ValidationError as error:
        found = field_errors(error, model=ExperimentSpec)
        more = [each for section in catalog.SECTIONS for each in _option_errors(section, document)]
        problem = FerretError.of_fields("spec.invalid", FieldErrors([*found.told, *more], found.omitted))
        return Validation(None, _filled(document), problem)
    except FerretError as error:
        return Validation(None, _filled(document), error)
    return Validation(experiment, experiment.spec.model_dump(mode="json"), None)


def minimal_document(resolved: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the shortest part of a ``resolved`` specification that determines the rest, without its name."""
    return _without_what_follows(dict(resolved), resolved, ())


def _without_what_follows(
    document: dict[str, Any], resolved: Mapping[str, Any], path: tuple[str, ...]
) -> dict[str, Any]:
    for name, value in _at(resolved, path).items():
        shorter = merge_patch.apply(document, nested((*path, name), None))
        if name != "name" and _resolves_to(shorter, resolved):
            document = shorter
        elif isinstance(value, Mapping) and value:
            document = _without_what_follows(document, resolved, (*path, name))
    return document


def _at(tree: Mapping[str, Any], path: tuple[str, ...]) -> Mapping[str, Any]:
    for name in path:
        tree = tree[name]
    return tree


def _resolves_to(document: Mapping[str, Any], resolved: Mapping[str, Any]) -> bool:
    try:
        found = catalog.resolve(ExperimentSpec.model_validate(document)).spec
    except (ValidationError, FerretError):
        return False
    return found.model_dump(mode="json") == resolved


def _option_errors(section: str, document: Mapping[str, Any]) -> list[Any]:
    """Returns the errors in the options of a named choice."""
    try:
        catalog.filled(section, PluginChoice.model_validate(_given(section, document)))
    except ValidationError:
        return []  # reported by the specification itself
    except FerretError as error:
        return list(error.errors)
    return []


def _filled(document: Mapping[str, Any]) -> dict[str, Any]:
    filled: dict[str, Any] = {}
    for name, field in ExperimentSpec.model_fields.items():
        value, kind = _given(name, document), field.annotation
        with suppress(ValidationError, FerretError):
            if name in catalog.SECTIONS:
                filled[name] = catalog.filled(name, PluginChoice.model_validate(value)).model_dump(mode="json")
            elif isinstance(kind, type) and issubclass(kind, BaseModel):
                filled[name] = kind.model_validate(value).model_dump(mode="json")
            elif value != {}:
                filled[name] = value
    return filled


def _given(name: str, document: Mapping[str, Any]) -> Any:
    """Returns a part of the document, its default if it is omitted, or else nothing."""
    default = ExperimentSpec.model_fields[name].default
    return document.get(name, {} if default is PydanticUndefined else default)
