"""The results of a participant's contributions: receipts made from the records that it follows, without a request.

An acknowledged contribution is noted until its round's record arrives. If the record does not hold it, the note states
that, and stays. Receipts and notes outlive the membership: they are the site's proof.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field, ValidationError

from ferret_core.ledger.receipt import Receipt
from ferret_core.ledger.record import Leaf, LedgerRecord, broken
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest
from ferret_core.protocol.limits import MAX_ROUNDS
from ferret_core.protocol.signatures import public_key
from ferret_core.protocol.spec import StrictModel
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.participant.membership import Membership
from ferret_sdk.participant.paths import RECEIPTS, participants_folder
from ferret_sdk.participant.spool import Upload

log = logging.getLogger(__name__)

NOTES = "acknowledged.json"


class Acknowledged(StrictModel):
    """A contribution that the server acknowledged, with its record not yet here or without it.

    ``missing`` is the server's reason in the second case.
    """

    round: int = Field(ge=1, le=MAX_ROUNDS)
    digest: Digest
    missing: str | None = None


class Outcome(NamedTuple):
    """A contribution's result (``acknowledged``, ``in the round``, ``refused``, ``left out``), reason and receipt."""

    state: str
    reason: str | None = None
    receipt: Path | None = None


class _Acknowledgements(StrictModel):
    rounds: tuple[Acknowledged, ...] = ()


class Receipts:
    """The receipts of ``member``, in ``folder``; ``reason`` requests the server's reason for a missing contribution.

    A full disk does not stop the participant: a receipt is made again whenever its record is followed again.
    """

    def __init__(self, folder: Path, member: Membership, reason: Callable[[int], str]) -> None:
        self._folder = folder
        self._name = member.name
        self._key = public_key(member.key)
        self._reason = reason
        self._rounds = {each.round: each for each in acknowledged(folder)}

    @property
    def waiting(self) -> bool:
        """True while the record of an acknowledged contribution has not been followed."""
        return any(each.missing is None for each in self._rounds.values())

    def acknowledged(self, upload: Upload) -> None:
        """Notes that the server acknowledged the contribution, before the spool deletes it."""
        known = self._rounds.get(upload.round)
        if self._receipt(upload.round).is_file() or (known is not None and known.missing is not None):
            return  # sent again after its record was followed
        self._note({**self._rounds, upload.round: Acknowledged(round=upload.round, digest=upload.digest)})

    def follow(self, record: LedgerRecord) -> None:
        """Stores the receipt for this participant's contribution to a committed round, if it sent one.

        Raises ``ledger.broken`` if the record holds one in its name that this site did not sign.
        """
        leaf = next((leaf for leaf in record.leaves() if leaf.participant == self._name), None)
        acknowledged = self._rounds.get(record.round)
        if leaf is not None:
            self._require_own(record, leaf)
            if self._keep(record) and acknowledged is not None:
                self._note({number: each for number, each in self._rounds.items() if number != record.round})
        elif acknowledged is not None and acknowledged.missing is None:
            self._miss(acknowledged)

    def _receipt(self, number: int) -> Path:
        return self._folder / f"round-{number}.json"

    def _require_own(self, record: LedgerRecord, leaf: Leaf) -> None:
        """Compares the record's key, which its signature was checked with, to this site's."""
        if leaf.public_key != self._key:
            raise broken(record, f"the contribution of {self._name} is not signed with this site's key")

    def _keep(self, record: LedgerRecord) -> bool:
        """Stores the receipt. Returns False if it could not."""
        path = self._receipt(record.round)
        text = Receipt.of(record, self._name).model_dump_json(indent=2).encode() + b"\n"
        return (path.is_file() and path.read_bytes() == text) or _stored(path, text)

    def _miss(self, acknowledged: Acknowledged) -> None:
        reason = self._reason(acknowledged.round)
        missing = acknowledged.model_copy(update={"missing": reason})
        self._note({**self._rounds, acknowledged.round: missing})
        log.warning(
            "round %d was committed without this site's contribution %s, which the server acknowledged; its reason: %s",
            acknowledged.round,
            acknowledged.digest,
            reason,
        )

    def _note(self, rounds: Mapping[int, Acknowledged]) -> None:
        self._rounds = dict(sorted(rounds.items()))
        noted = _Acknowledgements(rounds=tuple(self._rounds.values()))
        _stored(self._folder / NOTES, noted.model_dump_json().encode())


def acknowledged(folder: Path) -> tuple[Acknowledged, ...]:
    """Returns the acknowledged contributions without a receipt in ``folder``."""
    path = folder / NOTES
    if not path.is_file():
        return ()
    try:
        return _Acknowledgements.model_validate_json(path.read_bytes()).rounds
    except ValidationError:
        log.warning("%s cannot be read: the acknowledged contributions are unknown", path)
        return ()


def outcomes(home: Path) -> dict[str, Outcome]:
    """Returns the result of each contribution from this ``home``, by its digest. Raises as :func:`read` does."""
    found = dict[str, Outcome]()
    for folder in sorted(participants_folder(home).glob(f"exp_*/par_*{RECEIPTS}")):
        for note in acknowledged(folder):
            found[note.digest] = Outcome("acknowledged" if note.missing is None else "left out", note.missing)
        for path in folder.glob("round-*.json"):
            leaf = read(path).verified()
            found[leaf.contribution] = outcome_of(leaf)._replace(receipt=path)
    return found


def outcome_of(leaf: Leaf) -> Outcome:
    """Returns the contribution's result from the record of a round."""
    if leaf.refused is not None:
        return Outcome("refused", leaf.refused)
    return Outcome("in the round", None if leaf.clipped is None else f"shortened to {leaf.clipped:.3g} of its length")


def read(path: Path) -> Receipt:
    """Returns the verified receipt in the file. Raises ``receipt.invalid``."""
    try:
        receipt = Receipt.model_validate_json(path.read_bytes())
        receipt.verified()
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else "holds no receipt"
        raise FerretError.of_field("receipt.invalid", "file", str(path), str(reason)) from error
    except FerretError as error:
        raise FerretError.of_field(error.code, "file", str(path), f"proves nothing: {error.detail}") from error
    return receipt


def _stored(path: Path, data: bytes) -> bool:
    """Returns False if the disk is full."""
    try:
        write_durably(path, data)
    except FerretError as error:
        log.warning("%s", error.detail)
        return False
    return True
