"""Validation of query parameter names. Without it, a filter with a typo in its name would filter nothing."""

from __future__ import annotations

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from ferret_api.http.errors import SECRETS
from ferret_core.protocol.errors import MOST_ERRORS, FerretError, FieldError, FieldErrors, suggestion


async def _only_known(request: Request) -> None:  # a plain function would run in a thread
    route = request.scope.get("route")
    if not request.scope["query_string"] or not isinstance(route, APIRoute):
        return
    known = list(dict.fromkeys(_names(route.dependant)))
    unknown = [(name, value) for name, value in request.query_params.items() if name not in known]
    if unknown:
        # Bounded work, since this runs on the event loop.
        told = [_unknown(name, value, known) for name, value in unknown[:MOST_ERRORS]]
        raise FerretError.of_fields("request.invalid", FieldErrors(told, len(unknown) - len(told)))


def _names(dependant: Dependant) -> list[str]:
    below = [name for each in dependant.dependencies for name in _names(each)]
    return [*(field.alias for field in dependant.query_params), *below]


def _unknown(name: str, value: str, known: list[str]) -> FieldError:
    shown = None if name in SECRETS else value
    return FieldError(field=name, value=shown, message=f"is not a query parameter here; {suggestion(name, known)}")


OnlyKnownParameters = Depends(_only_known)
"""Dependency of every operation."""
