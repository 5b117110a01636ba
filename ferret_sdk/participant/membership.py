"""A participant's stored enrolment: one small private file per experiment and name."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.ids import Digest, ExperimentId, ParticipantId, ParticipantName, SecretKey, TokenText
from ferret_core.protocol.resources.enrolments import Enrolled
from ferret_core.protocol.spec import StrictModel
from ferret_core.system.atomic_files import write_durably
from ferret_core.system.permissions import restrict_secret_file
from ferret_sdk.participant.paths import ParticipantPaths, participants_folder

log = logging.getLogger(__name__)

LARGEST = 16 << 10
"""Maximum bytes of a membership's file, and of the folders around it."""


class Membership(StrictModel):
    """A participant's membership in one experiment.

    ``code`` is the digest of its enrolment code, ``key`` signs its contributions. People read its ``display_name``.
    """

    url: str
    experiment: ExperimentId
    participant: ParticipantId
    name: ParticipantName
    display_name: DisplayName
    token: TokenText
    code: Digest
    key: SecretKey

    @classmethod
    def of(cls, url: str, enrolled: Enrolled, code: str, key: str) -> Membership:
        """Creates the membership that the server at ``url`` granted for the enrolment code ``code`` to the holder of
        ``key``.
        """
        return cls(
            url=url,
            experiment=enrolled.experiment,
            participant=enrolled.participant,
            name=enrolled.name,
            display_name=enrolled.display_name,
            token=enrolled.token,
            code=digest_bytes(code.encode()),
            key=key,
        )


def save(home: Path, member: Membership) -> Path:
    """Writes the file atomically, readable only by its owner."""
    path = ParticipantPaths(home, member.experiment, member.participant).membership
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write_durably(path, member.model_dump_json(indent=2).encode())
    return path


def find(home: Path, url: str, code: str) -> Membership | None:
    """Returns the membership that ``code`` was exchanged for before, so that the same command can be repeated.

    Its file is made private by :func:`ferret_core.system.permissions.restrict_secret_file`.
    """
    wanted = digest_bytes(code.encode())
    member = next((member for member in all_in(home) if member.url == url and member.code == wanted), None)
    if member is not None:
        restrict_secret_file(ParticipantPaths(home, member.experiment, member.participant).membership)
    return member


@contextmanager
def room(home: Path) -> Generator[None]:
    """Reserves disk space for a membership, or raises ``storage.full``.

    A code works once: the token that it is exchanged for must not be lost.
    """
    taken = participants_folder(home) / f".room-{secrets.token_hex(8)}"
    taken.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        write_durably(taken, bytes(LARGEST))
        yield
    finally:
        taken.unlink(missing_ok=True)


def all_in(home: Path) -> Iterator[Membership]:
    """Yields every stored membership under ``home``, by experiment."""
    for path in sorted(participants_folder(home).glob("exp_*/par_*.json")):
        if "-" in path.stem:  # another file of a participant
            continue
        try:
            yield Membership.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            log.warning("%s is not read: it holds no membership", path)
