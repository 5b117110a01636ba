"""The catalog of problems: the same codes in REST, CLI, SDK and the database.

A problem has a stable ``code``, an HTTP status (RFC 9110), a process exit code, and messages that name the field, the
offending value and the next step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from enum import IntEnum
from reprlib import Repr
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from pydantic_core import ErrorDetails

from ferret_core.protocol.sanitize import Line, shown_lines

MOST_ERRORS = 20
"""Maximum number of field errors in one problem; further ones are only counted."""
LONGEST_DETAIL = 4_000
"""Maximum length, in characters."""
LONGEST_SUMMARY = 1_000
LONGEST_MESSAGE = 1_000
LONGEST_VALUE = 200


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
    """A code's title for people, status for HTTP and exit code for shells."""

    title: str
    status: int
    exit: Exit


PROBLEMS: dict[str, Problem] = {
    "spec.invalid": Problem("The experiment specification is not valid", 422, Exit.USAGE),
    "request.invalid": Problem("The request is not valid", 422, Exit.USAGE),
    "request.too_many": Problem("There are too many requests", 429, Exit.UNREACHABLE),
    "request.too_large": Problem("The request body is too large", 413, Exit.FAILURE),
    "request.timeout": Problem("The request took too long to arrive", 408, Exit.UNREACHABLE),
    "auth.missing": Problem("A token is needed", 401, Exit.AUTH),
    "auth.invalid": Problem("The token is not valid", 401, Exit.AUTH),
    "auth.cross_site": Problem("The request comes from another site", 403, Exit.AUTH),
    "host.unknown": Problem("The server does not serve this host name", 421, Exit.FAILURE),
    "auth.forbidden": Problem("This token does not allow that", 403, Exit.AUTH),
    "password.invalid": Problem("The name or the password is wrong", 401, Exit.AUTH),
    "oidc.not_configured": Problem("There is no identity provider to sign in with", 404, Exit.NOT_FOUND),
    "oidc.unreachable": Problem("The identity provider cannot be reached", 502, Exit.UNREACHABLE),
    "oidc.unexpected": Problem(
        "The identity provider sent a response that Ferret does not understand", 502, Exit.UNREACHABLE
    ),
    "oidc.refused": Problem("The identity provider refused the sign-in", 401, Exit.AUTH),
    "oidc.state_mismatch": Problem("The sign-in does not belong to this browser", 401, Exit.AUTH),
    "oidc.token_invalid": Problem("The identity provider's ID token is not valid", 401, Exit.AUTH),
    "oidc.clock_skew": Problem("The identity provider's clock and this server's differ", 401, Exit.AUTH),
    "oidc.no_role": Problem("You have no role here", 403, Exit.AUTH),
    "user.disabled": Problem("The account is disabled", 403, Exit.AUTH),
    "project.not_found": Problem("No such project", 404, Exit.NOT_FOUND),
    "project.conflict": Problem("The project cannot be created, changed or deleted like this", 409, Exit.CONFLICT),
    "project.refused": Problem("The project's experiments may not use this model or data", 422, Exit.USAGE),
    "alert.not_found": Problem("No such alert", 404, Exit.NOT_FOUND),
    "alert.no_mail": Problem("The server sends no e-mail", 409, Exit.CONFLICT),
    "alert.too_many": Problem("The project has reached its limit of alerts", 409, Exit.CONFLICT),
    "user.not_found": Problem("No such user", 404, Exit.NOT_FOUND),
    "user.conflict": Problem("The user cannot be created or changed like this", 409, Exit.CONFLICT),
    "session.not_found": Problem("No such session", 404, Exit.NOT_FOUND),
    "token.not_found": Problem("No such token", 404, Exit.NOT_FOUND),
    "token.conflict": Problem("The user already has a token of this name", 409, Exit.CONFLICT),
    "enrolment.invalid": Problem("The enrolment code is unknown, used or expired", 403, Exit.AUTH),
    "enrolment.used": Problem("The enrolment code has already been used", 403, Exit.AUTH),
    "enrolment.other_server": Problem("The enrolment code was created by another server", 403, Exit.AUTH),
    "enrolment.not_found": Problem("No such enrolment code", 404, Exit.NOT_FOUND),
    "participant.in_use": Problem("This participant is already running on this machine", 409, Exit.CONFLICT),
    "participant.pending": Problem("The participant is waiting for approval", 403, Exit.AUTH),
    "participant.refused": Problem("The participant was not approved", 403, Exit.AUTH),
    "participant.conflict": Problem("The participant is in a state that does not allow this", 409, Exit.CONFLICT),
    "participant.failed": Problem("The participant could not finish the round", 422, Exit.CONFLICT),
    "participant.revoked": Problem("The participant was removed from the experiment", 403, Exit.AUTH),
    "participant.not_found": Problem("No such participant", 404, Exit.NOT_FOUND),
    "experiment.not_found": Problem("No such experiment", 404, Exit.NOT_FOUND),
    "stream.refused": Problem("Too many event streams are open", 429, Exit.UNREACHABLE),
    "round.not_found": Problem("No such round", 404, Exit.NOT_FOUND),
    "round.uncommitted": Problem("The round is not committed yet", 409, Exit.CONFLICT),
    "round.too_small": Problem("Too few participants contributed to the round for a download", 403, Exit.AUTH),
    "receipt.not_found": Problem("The round has no receipt for this participant", 404, Exit.NOT_FOUND),
    "artifact.not_found": Problem("No such artifact", 404, Exit.NOT_FOUND),
    "assignment.not_found": Problem("No such assignment", 404, Exit.NOT_FOUND),
    "catalog.not_found": Problem("No such entry in the catalog", 404, Exit.NOT_FOUND),
    "route.not_found": Problem("No such address", 404, Exit.NOT_FOUND),
    "method.not_allowed": Problem("The address does not support this method", 405, Exit.FAILURE),
    "experiment.conflict": Problem("The experiment is in a state that does not allow this", 409, Exit.CONFLICT),
    "experiment.changed": Problem("The experiment was edited by somebody else in the meantime", 412, Exit.CONFLICT),
    "idempotency.conflict": Problem("The idempotency key was used with another request", 422, Exit.CONFLICT),
    "extension.refused": Problem("The experiment cannot be extended", 409, Exit.CONFLICT),
    "lease.lost": Problem("The lease on this assignment is no longer held", 409, Exit.CONFLICT),
    "contribution.duplicate": Problem("A different contribution was already accepted", 409, Exit.CONFLICT),
    "contribution.wrong_base": Problem("The contribution was trained from another model", 409, Exit.CONFLICT),
    "round.closed": Problem("The round no longer takes contributions", 410, Exit.CONFLICT),
    "contribution.malformed": Problem("The contribution cannot be decoded", 422, Exit.FAILURE),
    "contribution.non_finite": Problem("The contribution holds values that are not finite", 422, Exit.FAILURE),
    "contribution.out_of_bounds": Problem("The contribution exceeds the round's bounds", 422, Exit.FAILURE),
    "upload.offset": Problem("The part does not start at the end of the upload", 409, Exit.CONFLICT),
    "upload.corrupt": Problem("The uploaded parts do not match the announced digest", 422, Exit.FAILURE),
    "signature.invalid": Problem("The contribution's signature is not valid", 422, Exit.FAILURE),
    "secure.roster_invalid": Problem("The group's roster is not valid", 422, Exit.FAILURE),
    "secure.peers_unknown": Problem("Too few of the group's members are known to the site", 403, Exit.FAILURE),
    "secure.too_few": Problem("The group has too few members for a secure sum", 409, Exit.FAILURE),
    "secure.shares_invalid": Problem("The shares of a secure sum are not valid", 422, Exit.FAILURE),
    "secure.survivors_invalid": Problem("The list of a secure sum's survivors is not valid", 422, Exit.FAILURE),
    "secure.conflict": Problem("The secure sum has already taken another course", 409, Exit.CONFLICT),
    "secure.closed": Problem("The secure sum does not take this message now", 410, Exit.CONFLICT),
    "secure.out_of_range": Problem("A number is outside the range of the secure sum", 422, Exit.FAILURE),
    "privacy.meaningless": Problem("The noise leaves nothing to learn", 422, Exit.USAGE),
    "privacy.too_few_records": Problem("The site has fewer records than the experiment requires", 409, Exit.CONFLICT),
    "privacy.unit_missing": Problem("A record lacks the field of the unit to protect", 422, Exit.USAGE),
    "privacy.spent": Problem("The privacy budget is spent", 409, Exit.CONFLICT),
    "range.invalid": Problem("The requested range is outside the file", 416, Exit.FAILURE),
    "model.invalid": Problem("The model cannot be loaded", 422, Exit.FAILURE),
    "projection.invalid": Problem("The update cannot be projected as requested", 422, Exit.FAILURE),
    "dataset.invalid": Problem("The dataset cannot be read", 422, Exit.FAILURE),
    "partition.invalid": Problem("The dataset cannot be split as requested", 422, Exit.FAILURE),
    "training.non_finite": Problem("The training loss is not finite", 422, Exit.FAILURE),
    "training.unsupported": Problem("The algorithm or the hardware does not support the training", 422, Exit.USAGE),
    "round.diverged": Problem("Training diverged", 422, Exit.FAILURE),
    "noise.too_large": Problem("The noise of the projection is too large for the model", 422, Exit.FAILURE),
    "quorum.missed": Problem("Too few participants reported for the round to count", 409, Exit.FAILURE),
    "task.given_up": Problem("A task failed too often and is not retried", 500, Exit.FAILURE),
    "broker.missing": Problem("The broker that carries task messages does not answer", 503, Exit.UNREACHABLE),
    "task.too_long": Problem("A task exceeded its time limit", 422, Exit.FAILURE),
    "playground.busy": Problem("Too many questions are waiting for an answer", 429, Exit.UNREACHABLE),
    "playground.unavailable": Problem("No worker answers questions", 503, Exit.UNREACHABLE),
    "playground.interrupted": Problem("The answer was interrupted", 503, Exit.UNREACHABLE),
    "playground.no_example": Problem("The service has no held-out examples of this experiment", 404, Exit.NOT_FOUND),
    "consent.missing": Problem("Consent to what a contribution may reveal is missing", 403, Exit.USAGE),
    "terms.invalid": Problem("The site's terms cannot be read", 422, Exit.USAGE),
    "terms.refused": Problem("The site's terms do not allow this experiment", 403, Exit.AUTH),
    "terms.round_not_allowed": Problem("The site's terms do not allow this round", 403, Exit.AUTH),
    "terms.quiet_hours": Problem("The site's terms do not allow this now", 403, Exit.AUTH),
    "terms.limit_reached": Problem("A limit of the site's terms is used up", 403, Exit.AUTH),
    "worker.stopping": Problem("The worker is stopping and returns its work", 503, Exit.FAILURE),
    "process_group.failed": Problem("A process of the team failed or lost contact", 503, Exit.FAILURE),
    "memory.exhausted": Problem("The device does not have enough memory", 507, Exit.FAILURE),
    "backup.invalid": Problem("The backup cannot be used", 422, Exit.FAILURE),
    "database.damaged": Problem("The database cannot be read", 500, Exit.FAILURE),
    "database.missing": Problem("The database is empty or missing", 500, Exit.FAILURE),
    "receipt.invalid": Problem("The receipt is not valid", 422, Exit.FAILURE),
    "ledger.broken": Problem("The ledger does not lead to the recorded model", 500, Exit.FAILURE),
    "audit.broken": Problem("The audit log was changed", 500, Exit.FAILURE),
    "storage.corrupt": Problem("A stored file does not match its digest", 500, Exit.FAILURE),
    "storage.missing": Problem("A stored file is missing", 500, Exit.FAILURE),
    "storage.full": Problem("There is no disk space left", 507, Exit.FAILURE),
    "storage.unreachable": Problem("The storage cannot be reached", 503, Exit.UNREACHABLE),
    "storage.refused": Problem("The storage refuses the service", 502, Exit.AUTH),
    "storage.taken": Problem("The storage belongs to another installation", 409, Exit.CONFLICT),
    "storage.busy": Problem("The stored files are being cleaned up or copied", 409, Exit.CONFLICT),
    "tune.changed": Problem("The study was started with another specification", 409, Exit.CONFLICT),
    "tune.in_use": Problem("Another ferret tune is using this folder", 409, Exit.CONFLICT),
    "tune.no_result": Problem("No trial of the study completed", 422, Exit.FAILURE),
    "port.in_use": Problem("The port is in use", 500, Exit.CONFLICT),
    "home.in_use": Problem("Another ferret serve is using this folder", 500, Exit.CONFLICT),
    "settings.invalid": Problem("A setting is not valid", 500, Exit.USAGE),
    "dependency.missing": Problem("Something that Ferret needs is not installed", 500, Exit.FAILURE),
    "secret.exposed": Problem("Other users can read a file with a secret", 403, Exit.AUTH),
    "server.unreachable": Problem("The server cannot be reached", 503, Exit.UNREACHABLE),
    "server.not_ready": Problem("The server is not ready", 503, Exit.UNREACHABLE),
    "server.busy": Problem("The server has no room for another connection", 503, Exit.UNREACHABLE),
    "server.unexpected": Problem("The server sent a response that Ferret does not understand", 502, Exit.UNREACHABLE),
    "certificate.invalid": Problem("The server's certificate is not valid", 502, Exit.UNREACHABLE),
    "proxy.refused": Problem("A proxy refuses to connect to the server", 502, Exit.UNREACHABLE),
    "export.failed": Problem("The results could not be exported to their destination", 502, Exit.FAILURE),
    "hub.refused": Problem("The hub does not allow this token to write there", 403, Exit.AUTH),
    "hub.conflict": Problem("The hub repository is in an unexpected state", 409, Exit.CONFLICT),
    "hub.unreachable": Problem("The hub cannot be reached", 502, Exit.UNREACHABLE),
    "experiment.timeout": Problem("The experiment did not finish in the time given", 504, Exit.FAILURE),
    "internal": Problem("Something went wrong inside Ferret", 500, Exit.FAILURE),
}

NEXT_STEPS: dict[str, str] = {
    "auth.missing": "set FERRET_HOME to the server's folder, or FERRET_TOKEN to the token in its admin.token",
    "auth.invalid": "set FERRET_TOKEN to the token in the server's FERRET_HOME/admin.token",
    "enrolment.invalid": "ask the person who runs the experiment for a new code",
    "experiment.not_found": "list the experiments: ferret experiment list",
    "enrolment.not_found": "list them: ferret code list ID",
    "participant.not_found": "list them: ferret participant list ID",
    "participant.conflict": "see its state: ferret participant list ID",
    "user.not_found": "list them: ferret user list",
    "token.not_found": "list them: ferret token list",
    "experiment.conflict": "see its state: ferret experiment show ID",
    "extension.refused": "run a copy with more rounds: ferret experiment clone ID --set rounds=N",
    "artifact.not_found": "see the stored files: ferret experiment show ID",
    "round.diverged": "lower a learning rate: ferret experiment clone ID --set algorithm.local.learning_rate=RATE",
    "round.too_small": "export another: ferret experiment export ID FOLDER --round N; see docs/operators/people.md",
    "home.in_use": "use that server, stop it, or choose another folder with --home",
    "server.unreachable": "check the address (FERRET_URL or --url); to run a server on this machine: ferret serve",
    "server.not_ready": "list what is missing: ferret doctor",
    "dependency.missing": "see what else is missing: ferret doctor",
    "tune.changed": "begin a separate study in another folder with --out, or set the values back",
    "tune.in_use": "wait for it, stop it, or choose another folder with --out",
    "tune.no_result": "choose other ranges, and another folder with --out",
    "internal": "run the command again as ferret --debug … to see the traceback",
}
"""Next steps for a person who runs experiments, by error code."""


class FieldError(BaseModel):
    """One offending value: its field, the value, and the accepted ones. Long texts are cut.

    Parts of it come from the sender of the value, and end up in responses, logs and the database.
    """

    model_config = ConfigDict(frozen=True)

    field: Line
    message: Line
    value: Any = None

    @field_validator("field")
    @classmethod
    def _short_field(cls, field: str) -> str:
        return cut(field, LONGEST_VALUE)

    @field_validator("message")
    @classmethod
    def _short_message(cls, message: str) -> str:
        return cut(message, LONGEST_MESSAGE)

    @field_validator("value")
    @classmethod
    def _short_value(cls, value: Any) -> Any:
        return _plain(value)

    def __str__(self) -> str:
        given = "" if self.value is None else f" = {self.value!r}"
        return f"{self.field}{given}: {self.message}"


class FieldErrors(NamedTuple):
    """The first few field errors, and the number of further ones."""

    told: list[FieldError]
    omitted: int = 0


class FerretError(Exception):
    """Ferret's only exception: raised anywhere, rendered the same everywhere.

    ``code`` is a key of :data:`PROBLEMS`; ``detail`` is a sentence that names the value and the next step; ``members``
    are further members of the problem document (RFC 9457, section 3.2). At most :data:`MOST_ERRORS` of the ``errors``
    are kept; ``omitted`` counts the others. Messages often quote a participant, a server or a library: they are
    sanitized here, for terminals, logs and pages alike.
    """

    def __init__(
        self,
        code: str,
        detail: str,
        errors: Sequence[FieldError] | FieldErrors = (),
        members: Mapping[str, Any] | None = None,
    ) -> None:
        told, omitted = errors if isinstance(errors, FieldErrors) else (errors, 0)
        detail = cut(shown_lines(detail), LONGEST_DETAIL)
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.errors = tuple(told[:MOST_ERRORS])
        self.omitted = omitted + len(told) - len(self.errors)
        self.members = dict(members or {})
        self.problem = PROBLEMS[code]
        self.add_note("\n".join(self._told()))

    def _told(self) -> Iterator[str]:
        """Yields the lines that a traceback shows below the detail."""
        yield f"code: {self.code}"
        yield from (f"  {error}" for error in self.errors if str(error) not in self.detail)
        if self.omitted:
            yield f"  and {self.omitted} more"
        if step := NEXT_STEPS.get(self.code):
            yield f"next: {step}"

    def __repr__(self) -> str:
        fields = [f"fields={[error.field for error in self.errors]}"] if self.errors else []
        step = [f"next={NEXT_STEPS[self.code]!r}"] if self.code in NEXT_STEPS else []
        return f"FerretError({', '.join([repr(self.code), repr(self.detail), *fields, *step])})"

    @classmethod
    def of_field(cls, code: str, field: str, value: Any, message: str) -> FerretError:
        """Creates an error about exactly one field."""
        error = FieldError(field=field, value=value, message=message)
        return cls(code, f"{error.field} = {_excerpt(value)}: {error.message}", [error])

    @classmethod
    def of_fields(cls, code: str, errors: Sequence[FieldError] | FieldErrors) -> FerretError:
        """Creates one error about several fields."""
        told, omitted = errors if isinstance(errors, FieldErrors) else (errors, 0)
        omitted += max(0, len(told) - MOST_ERRORS)
        more = [f"and {omitted} more"] if omitted else []
        return cls(code, "; ".join([*map(str, told[:MOST_ERRORS]), *more]), errors)

    def to_json(self) -> dict[str, Any]:
        """Returns the problem document: ``code``, ``title``, ``status``, ``detail``, ``errors`` and further members."""
        return {
            **self.members,
            "code": self.code,
            "title": self.problem.title,
            "status": self.problem.status,
            "detail": self.detail,
            "errors": [error.model_dump(mode="json") for error in self.errors],
            "errors_omitted": self.omitted,
        }

    def summary(self) -> dict[str, Any]:
        """Returns :meth:`to_json` in about :data:`LONGEST_SUMMARY` characters, for storage once per participant."""
        whole = self.to_json()
        if len(json.dumps(whole)) <= LONGEST_SUMMARY:
            return whole
        omitted = len(self.errors) + self.omitted
        return {**whole, "detail": cut(self.detail, LONGEST_SUMMARY // 2), "errors": [], "errors_omitted": omitted}


def field_errors(
    error: ValidationError, prefix: Sequence[str] = (), model: type[BaseModel] | None = None
) -> FieldErrors:
    """Converts Pydantic's errors: dotted field, value as given, message.

    With the ``model`` that was validated, an error about an unknown field suggests known ones.
    """
    return described(error.errors(include_url=False), prefix, model)


def described(
    details: Sequence[ErrorDetails], prefix: Sequence[str] = (), model: type[BaseModel] | None = None
) -> FieldErrors:
    """Converts the list that ``ValidationError.errors`` returns, like :func:`field_errors`."""
    told = [
        FieldError(
            field=".".join(str(part) for part in (*prefix, *detail["loc"])),
            message=_message(detail, model),
            value=None if detail["type"] == "missing" else _plain(detail.get("input")),
        )
        for detail in details[:MOST_ERRORS]
    ]
    return FieldErrors(told, len(details) - len(told))


def cut(text: str, length: int) -> str:
    """Returns the text, cut to ``length`` characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


_INTEGER, _NUMBER, _BOOLEAN = "must be an integer", "must be a number", "must be true or false"
_MESSAGES = {
    "int_type": _INTEGER,
    "int_parsing": _INTEGER,
    "int_from_float": _INTEGER,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "bool_type": _BOOLEAN,
    "bool_parsing": _BOOLEAN,
    "string_type": "must be a text",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
}
"""Messages of Pydantic's most frequent errors, with its values; the others keep its text."""


def _message(detail: ErrorDetails, model: type[BaseModel] | None) -> str:
    match detail["type"]:
        case known if known in _MESSAGES:
            bounds = detail.get("ctx", {}).items()
            whole = {
                name: int(value) if isinstance(value, float) and value.is_integer() else value for name, value in bounds
            }
            return _MESSAGES[known].format(**whole)
        case "too_long":
            kind = "characters" if isinstance(detail.get("input"), str) else "entries"
            return f"must have at most {detail.get('ctx', {})['max_length']} {kind}"
        case "missing":
            return "is required"
        case "extra_forbidden":
            return f"is unknown; {suggestion(str(detail['loc'][-1]), _fields_beside(detail['loc'], model))}"
        case "value_error":
            return str(detail.get("ctx", {})["error"])
        case _:
            return detail["msg"].replace("Input should be", "must be", 1)


def suggestion(name: str, known: Sequence[str]) -> str:
    """Suggests a replacement for the unknown ``name``: the nearest known one, or all of them."""
    if close := get_close_matches(name[:LONGEST_VALUE], known, n=1):
        return f"did you mean {close[0]}?"
    return f"choose from {', '.join(known)}" if known else "leave it out"


def _fields_beside(location: Sequence[int | str], model: type[BaseModel] | None) -> list[str]:
    """Returns the fields of ``model`` at the same level as ``location``."""
    for name in location[:-1]:
        below = model.model_fields[str(name)].annotation if model and name in model.model_fields else None
        model = below if isinstance(below, type) and issubclass(below, BaseModel) else None
    return list(model.model_fields) if model else []


def _plain(value: Any) -> Any:
    """Makes a value small and JSON-compatible: numbers and short texts stay, anything else is cut."""
    match value:
        case None | bool():
            return value
        case float() if math.isfinite(value):
            return value
        case int() if value.bit_length() <= 64:
            return value
        case str():
            return cut(value, LONGEST_VALUE)
        case [*items] if len(items) <= MOST_ERRORS and all(isinstance(item, str | int | float) for item in items):
            return [_plain(item) for item in items]
        case _:
            return _excerpt(value)


def _excerpt(value: Any) -> str:
    """Returns the ``repr`` of the value, cut: work and length do not grow with the value."""
    if isinstance(value, int) and value.bit_length() > 512:
        return f"a number of {value.bit_length()} bits"
    return cut(_writer.repr(value), LONGEST_VALUE)


_writer = Repr()
_writer.maxlevel = 3
_writer.maxtuple = _writer.maxlist = _writer.maxset = _writer.maxdict = MOST_ERRORS
_writer.maxother = _writer.maxlong = _writer.maxstring = LONGEST_VALUE
