"""What a participant keeps of its enrolment: one small private file per experiment and name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ferret_core.durable import write_durably
from ferret_core.protocol.digest import digest_bytes


class Membership(NamedTuple):
    """A participant's place in one experiment. ``code`` is the digest of the enrolment code it came from."""

    url: str
    experiment: str
    participant: str
    name: str
    token: str
    code: str


def folder(home: Path, experiment: str) -> Path:
    """Where a participant keeps what belongs to ``experiment``."""
    return home / "participants" / experiment


def save(home: Path, membership: Membership) -> Path:
    """Writes the file so that only its owner can read it and it is never half there."""
    place = folder(home, membership.experiment)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = place / f"{membership.participant}.json"
    write_durably(path, json.dumps(membership._asdict(), indent=2).encode())
    return path


def find(home: Path, url: str, code: str) -> Membership | None:
    """The membership that ``code`` was turned into before, so that the same command can be run again."""
    wanted = digest_bytes(code.encode())
    return next((member for member in _all(home) if member.url == url and member.code == wanted), None)


def _all(home: Path) -> Iterator[Membership]:
    for path in sorted((home / "participants").glob("*/*.json")):
        yield Membership(**json.loads(path.read_text()))
