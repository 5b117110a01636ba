"""A participant's stored enrolment: one small private file per experiment and name; and the site's files around it,
listed and deleted offline."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from ferret_core.protocol.digest import digest_bytes
from ferret_core.protocol.display_name import DisplayName
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest, ExperimentId, ParticipantId, ParticipantName, SecretKey, TokenText
from ferret_core.protocol.resources.participants import Enrolled
from ferret_core.protocol.signatures import new_key
from ferret_core.protocol.spec import StrictModel
from ferret_core.protocol.states import ExperimentState
from ferret_core.system.atomic_files import create_durably, write_durably
from ferret_core.system.permissions import restrict_secret_file
from ferret_sdk.participant.egress_log import SentLog
from ferret_sdk.participant.lock import in_turn, sole
from ferret_sdk.participant.paths import RECEIPTS, ParticipantPaths, participants_folder
from ferret_sdk.participant.usage_counter import Usage, UsageTotals
from ferret_sdk.service.server_address import split

log = logging.getLogger(__name__)


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
        """Creates the membership that the server at ``url`` granted for ``code`` to the holder of ``key``."""
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

    ``url`` is the server's base URL, as :func:`split` spells it. The file is made private by
    :func:`ferret_core.system.permissions.restrict_secret_file`.
    """
    wanted = digest_bytes(code.encode())
    found = (member for member in all_in(home) if split(member.url).url == url and member.code == wanted)
    member = next(found, None)
    if member is not None:
        restrict_secret_file(ParticipantPaths(home, member.experiment, member.participant).membership)
    return member


def site_key(home: Path) -> str:
    """Returns the secret key of this site, with which its participants sign; creates it at the first call.

    Its public half is the site's identity, the same in all experiments: other sites can pin it.
    """
    path = participants_folder(home) / "identity.key"
    if not path.exists():
        create_durably(path, new_key().encode())
    restrict_secret_file(path)
    return path.read_text().strip()


def enrolment_key(url: str, code: str, key: str) -> str:
    """Returns the idempotency key with which the site that signs with ``key`` exchanges ``code`` at ``url``.

    Only this site can repeat the exchange, also after a crash that lost the response. A server that the code was sent
    to by mistake cannot repeat it elsewhere.
    """
    return digest_bytes(f"{url} {code} {key}".encode())


def all_in(home: Path) -> Iterator[Membership]:
    """Yields every stored membership under ``home``, by experiment."""
    for path in sorted(participants_folder(home).glob("exp_*/par_*.json")):
        if "-" in path.stem:  # another file of a participant
            continue
        try:
            yield Membership.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            log.warning("%s is not read: it holds no membership", path)


class Ended(StrictModel):
    """The end of a membership's experiment."""

    state: ExperimentState


class MembershipFiles(NamedTuple):
    """A membership; ``ended`` is None while its experiment continues.

    ``rounds`` counts the sent contributions, ``round`` is the last one's round, 0 without any.
    """

    member: Membership
    places: ParticipantPaths
    ended: ExperimentState | None
    rounds: int
    round: int
    spent: UsageTotals


class DiskItem(NamedTuple):
    """A file or folder of kind ``what`` at ``path``, of a participant (empty: of the whole experiment)."""

    what: str
    experiment: str
    participant: str
    path: Path
    size: int


def note_end(path: Path, state: ExperimentState) -> None:
    """Records that the experiment is over, so that the membership can be cleaned up.

    On a full disk this is skipped; the membership can still be named.
    """
    try:
        write_durably(path, Ended(state=state).model_dump_json().encode())
    except FerretError as error:
        log.warning("%s", error.detail)


def memberships(home: Path) -> list[MembershipFiles]:
    """Returns all memberships under ``home``, by experiment. Raises as reading the log and the usage does."""
    sent: dict[tuple[str, str], set[int]] = {}
    for request in SentLog(home).read():
        if request.round is not None:
            sent.setdefault((request.experiment or "", request.participant or ""), set()).add(request.round)
    found = list[MembershipFiles]()
    for member in all_in(home):
        places = ParticipantPaths(home, member.experiment, member.participant)
        rounds = sent.get((member.experiment, member.name), set())
        spent = Usage(places.usage).read()
        found.append(MembershipFiles(member, places, _ended(places.ended), len(rounds), max(rounds, default=0), spent))
    return found


def pieces(home: Path, among: list[MembershipFiles] | None = None) -> Iterator[DiskItem]:
    """Yields the files of the memberships ``among`` (default: all), and base models that no other membership uses."""
    everyone = memberships(home)
    chosen = everyone if among is None else among
    for kept in chosen:
        places, of = kept.places, (kept.member.experiment, kept.member.name)
        for what, path in (
            ("contribution that was not sent", places.upload),
            ("memory between rounds", places.memory),
            ("secrets of secure sums", places.secure),
            ("usage so far", places.usage),
            ("consent", places.agreed),
            ("end of the experiment", places.ended),
            ("membership", places.membership),
        ):
            if (size := size_of(path)) is not None and (path.is_file() or size):
                yield DiskItem(what, *of, path, size)
    leaving = [kept.member for kept in chosen]
    others = {kept.member.experiment for kept in everyone if kept.member not in leaving}
    for folder in sorted(participants_folder(home).glob("exp_*")):
        if folder.name not in others and (size := size_of(folder / "base")) is not None:
            yield DiskItem("base model", folder.name, "", folder / "base", size)


def receipts(home: Path) -> Iterator[DiskItem]:
    """Yields each participant's receipts, which stay when its membership is deleted."""
    for folder in sorted(participants_folder(home).glob(f"exp_*/par_*{RECEIPTS}")):
        yield DiskItem("receipts", folder.parent.name, "", folder, size_of(folder) or 0)


def base_models(home: Path) -> Iterator[DiskItem]:
    """Yields all base models, which can be downloaded again."""
    for folder in sorted(participants_folder(home).glob("exp_*/base")):
        yield DiskItem("base model", folder.parent.name, "", folder, size_of(folder) or 0)


def remove(home: Path, found: list[DiskItem], on_piece: Callable[[DiskItem], None]) -> None:
    """Deletes the pieces in order, memberships after the files that belong to them, so that it can be repeated.

    Raises ``participant.in_use`` before a participant's first file while a process takes part as it.
    """
    held = {kept.places.membership: kept for kept in memberships(home)}
    for piece in found:
        owner = next((kept for kept in held.values() if piece.path in _own(kept.places)), None)
        if owner is None:
            with in_turn(piece.path.with_suffix(".lock"), lambda: None):
                _delete(piece.path)
        else:
            with sole(owner.places.lock, owner.member.display_name):
                _delete(piece.path)
        on_piece(piece)
    for folder in {piece.path.parent for piece in found}:
        _tidy(folder)


def size_of(path: Path) -> int | None:
    """Returns the bytes of a file or of all files in a folder; None if it does not exist."""
    if path.is_file():
        return path.stat().st_size
    if not path.is_dir():
        return None
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())


def _own(places: ParticipantPaths) -> set[Path]:
    kept = {places.upload, places.memory, places.secure, places.usage, places.agreed}
    return {*kept, places.ended, places.membership}


def _ended(path: Path) -> ExperimentState | None:
    try:
        return Ended.model_validate_json(path.read_bytes()).state
    except (OSError, ValidationError):
        return None


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _tidy(folder: Path) -> None:
    """Removes an experiment's folder if only locks and empty folders are left; receipts stay."""
    if not folder.is_dir():
        return
    found = list(folder.iterdir())
    receipts = [path for path in found if path.name.endswith(RECEIPTS) and size_of(path)]
    empty = [path for path in found if path.suffix in {".lock", ".pid"} or size_of(path) == 0]
    if len(receipts) + len(empty) < len(found):
        return
    for path in empty:
        _delete(path)
    if not receipts:
        folder.rmdir()
