"""Settings of an API that takes on more or less than follows from its settings, or does it sooner."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ferret_api.settings import ApiSettings
from ferret_api.sizing import Sizing

NAMES = {field.name for field in fields(Sizing)} - ApiSettings.model_fields.keys()


def made(**given: Any) -> ApiSettings:
    """``ApiSettings(**given)``, of which some may be fields of :class:`Sizing`."""
    sizes = {name: given.pop(name) for name in NAMES & given.keys()}
    settings = ApiSettings(**given)
    return settings.model_copy(update={"sizing": replace(settings.sizing, **sizes)}) if sizes else settings
