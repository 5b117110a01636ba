"""Reads the responses of a server as models of ``ferret_core.protocol``."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from ferret_core.protocol.errors import FerretError, field_errors

Model = TypeVar("Model", bound=BaseModel)


def read(kind: type[Model], value: Any) -> Model:
    """Returns ``value``, sent by a server, as a ``kind``. Raises ``server.unexpected`` with the wrong fields."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise FerretError.of_fields("server.unexpected", field_errors(error, [kind.__name__.lower()])) from error
