"""One catalog of problems: the same code in REST, CLI, SDK and the database.

A problem carries a stable ``code``, the HTTP status (RFC 9110) and the process exit code that stand
for it everywhere, and messages that name the field, the offending value and the next step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic_core import ErrorDetails


class Exit(IntEnum):
    """Exit codes of the ``ferret`` command."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    NOT_FOUND = 3
    AUTH = 4
    CONFLICT = 5
    UNREACHABLE = 6
    INTERRUPTED = 130


class Problem(NamedTuple):
    """What a code stands for: a title for people, a status for HTTP, an exit code for shells."""

    title: str
    status: int
    exit: Exit


PROBLEMS: dict[str, Problem] = {
    "spec.invalid": Problem("The experiment specification is not valid", 422, Exit.USAGE),
    "request.invalid": Problem("The request is not valid", 422, Exit.USAGE),
    "request.too_large": Problem("The request body is too large", 413, Exit.FAILURE),
    "auth.missing": Problem("A token is needed", 401, Exit.AUTH),
    "auth.invalid": Problem("The token is not valid", 401, Exit.AUTH),
    "auth.forbidden": Problem("This token may not do that", 403, Exit.AUTH),
    "enrolment.invalid": Problem("The enrolment code is unknown, used or expired", 403, Exit.AUTH),
    "experiment.not_found": Problem("No such experiment", 404, Exit.NOT_FOUND),
    "round.not_found": Problem("No such round", 404, Exit.NOT_FOUND),
    "artifact.not_found": Problem("No such artifact", 404, Exit.NOT_FOUND),
    "assignment.not_found": Problem("No such assignment", 404, Exit.NOT_FOUND),
    "catalog.not_found": Problem("No such entry in the catalog", 404, Exit.NOT_FOUND),
    "route.not_found": Problem("No such address", 404, Exit.NOT_FOUND),
    "method.not_allowed": Problem("The address does not support this method", 405, Exit.FAILURE),
    "experiment.conflict": Problem("The experiment is in a state that does not allow this", 409, Exit.CONFLICT),
    "idempotency.conflict": Problem("The idempotency key was used with another request", 409, Exit.CONFLICT),
    "extension.refused": Problem("The experiment cannot be extended", 409, Exit.CONFLICT),
    "lease.lost": Problem("The lease on this assignment is no longer held", 409, Exit.CONFLICT),
    "contribution.duplicate": Problem("A different contribution was already accepted", 409, Exit.CONFLICT),
    "contribution.wrong_base": Problem("The contribution was trained from another model", 409, Exit.CONFLICT),
    "round.closed": Problem("The round no longer takes contributions", 410, Exit.CONFLICT),
    "contribution.malformed": Problem("The contribution cannot be decoded", 422, Exit.FAILURE),
    "contribution.non_finite": Problem("The contribution holds values that are not finite", 422, Exit.FAILURE),
    "range.invalid": Problem("The requested range is outside the file", 416, Exit.FAILURE),
    "model.invalid": Problem("The model cannot be loaded", 422, Exit.FAILURE),
    "projection.invalid": Problem("The update cannot be projected as asked", 422, Exit.FAILURE),
    "dataset.invalid": Problem("The dataset cannot be read", 422, Exit.FAILURE),
    "partition.invalid": Problem("The dataset cannot be split as asked", 422, Exit.FAILURE),
    "training.non_finite": Problem("The training loss is not finite", 422, Exit.FAILURE),
    "quorum.missed": Problem("Too few participants reported for the round to count", 409, Exit.FAILURE),
    "task.dead": Problem("A task failed too often and is not tried again", 500, Exit.FAILURE),
    "worker.stopping": Problem("The worker is stopping and returns its work", 503, Exit.FAILURE),
    "memory.exhausted": Problem("The device does not have enough memory", 507, Exit.FAILURE),
    "backup.invalid": Problem("The backup cannot be used", 422, Exit.FAILURE),
    "ledger.broken": Problem("The ledger does not lead to the recorded model", 500, Exit.FAILURE),
    "storage.corrupt": Problem("A stored file does not match its digest", 500, Exit.FAILURE),
    "storage.missing": Problem("A stored file is missing", 500, Exit.FAILURE),
    "storage.full": Problem("There is no disk space left", 507, Exit.FAILURE),
    "storage.busy": Problem("The stored files are being cleaned up or copied", 409, Exit.CONFLICT),
    "port.in_use": Problem("The port is in use", 500, Exit.CONFLICT),
    "home.in_use": Problem("Another ferret serve is using this folder", 500, Exit.CONFLICT),
    "settings.invalid": Problem("A setting is not valid", 500, Exit.USAGE),
    "setup.missing": Problem("Something that Ferret needs is not installed", 500, Exit.FAILURE),
    "server.unreachable": Problem("The server cannot be reached", 503, Exit.UNREACHABLE),
    "server.not_ready": Problem("The server is not ready", 503, Exit.UNREACHABLE),
    "server.unexpected": Problem("The server sent a response that Ferret does not understand", 502, Exit.UNREACHABLE),
    "experiment.timeout": Problem("The experiment did not finish in the time given", 504, Exit.FAILURE),
    "internal": Problem("Something went wrong inside Ferret", 500, Exit.FAILURE),
}


class FieldError(BaseModel):
    """One offending value: where it stands, what it is, and what would be right."""

    model_config = ConfigDict(frozen=True)

    field: str
    message: str
    value: Any = None

    def __str__(self) -> str:
        given = "" if self.value is None else f" = {self.value!r}"
        return f"{self.field}{given}: {self.message}"


class FerretError(Exception):
    """The one exception of Ferret: raised anywhere, rendered the same everywhere.

    ``code`` must stand in :data:`PROBLEMS`; ``detail`` is a sentence that names the value and the next step;
    ``members`` are further members of the problem document (RFC 9457, section 3.2).
    """

    def __init__(
        self, code: str, detail: str, errors: Sequence[FieldError] = (), members: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = tuple(errors)
        self.members = dict(members or {})
        self.problem = PROBLEMS[code]

    @classmethod
    def of_field(cls, code: str, field: str, value: Any, message: str) -> FerretError:
        """An error about exactly one field."""
        return cls(code, f"{field} = {value!r}: {message}", [FieldError(field=field, value=value, message=message)])

    @classmethod
    def of_fields(cls, code: str, errors: Sequence[FieldError]) -> FerretError:
        """One error about several fields."""
        return cls(code, "; ".join(map(str, errors)), errors)

    def to_json(self) -> dict[str, Any]:
        """``code``, ``title``, ``status``, ``detail``, ``errors`` and what else there is of a problem document."""
        return {
            **self.members,
            "code": self.code,
            "title": self.problem.title,
            "status": self.problem.status,
            "detail": self.detail,
            "errors": [error.model_dump(mode="json") for error in self.errors],
        }


def field_errors(
    details: Sequence[ErrorDetails], prefix: Sequence[str] = (), model: type[BaseModel] | None = None
) -> list[FieldError]:
    """Pydantic's error list as ours: dotted field, value as given, message.

    With the ``model`` that was validated, an unknown field is told with the known ones that it may stand for.
    """
    return [
        FieldError(
            field=".".join(str(part) for part in (*prefix, *detail["loc"])),
            message=_message(detail, model),
            value=None if detail["type"] == "missing" else _plain(detail.get("input")),
        )
        for detail in details
    ]


def _message(detail: ErrorDetails, model: type[BaseModel] | None) -> str:
    match detail["type"]:
        case "missing":
            return "is required"
        case "extra_forbidden":
            return f"is unknown; {_alternatives(str(detail['loc'][-1]), _fields_beside(detail['loc'], model))}"
        case "value_error":
            return str(detail.get("ctx", {})["error"])
        case _:
            return detail["msg"]


def _alternatives(name: str, known: Sequence[str]) -> str:
    if close := get_close_matches(name, known, n=1):
        return f"did you mean {close[0]}?"
    return f"choose from {', '.join(known)}" if known else "leave it out"


def _fields_beside(location: Sequence[int | str], model: type[BaseModel] | None) -> list[str]:
    """The fields that ``model`` has where ``location`` leads to."""
    for name in location[:-1]:
        below = model.model_fields[str(name)].annotation if model and name in model.model_fields else None
        model = below if isinstance(below, type) and issubclass(below, BaseModel) else None
    return list(model.model_fields) if model else []


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else repr(value)[:200]
