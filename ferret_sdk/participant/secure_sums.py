"""A participant's part in secure sums: its secret state on disk, and the messages that follow from it.

Each new state is on disk before its message is sent, so a restart sends the same message, and a server never gets both
shares of a dealer. A site that loses its state drops out of the sums under way.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from ferret_core.contribution import SealedContribution, seal_vector
from ferret_core.ledger.record import LedgerRecord
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.resources.participants import Lease, SumStep, SumTask
from ferret_core.protocol.signatures import public_key
from ferret_core.protocol.states import SumStage
from ferret_core.secure.member import (
    STOCK,
    Agreed,
    Dealt,
    Demands,
    Masked,
    Member,
    Ready,
    Released,
    decode_signatures,
)
from ferret_core.secure.roster import Roster, invalid
from ferret_core.system.atomic_files import write_durably
from ferret_core.system.failpoints import failpoint
from ferret_sdk.http.retry import PATIENT
from ferret_sdk.http.transport import Transport, read_model
from ferret_sdk.participant.membership import Membership
from ferret_sdk.participant.site_terms import Secure
from ferret_sdk.participant.spool import Upload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ferret_core.replica.replica import Replica
    from ferret_core.secure.packing import Entries

log = logging.getLogger(__name__)

FEW = 2
"""Unused keys at the server below which a site makes new ones."""
KEPT_SECONDS = 7 * 24 * 3600.0
"""Maximum age of the secrets of an unfinished attempt."""
LARGEST_DELIVERY = 1 << 20


class MaskedVector(NamedTuple):
    """A masked vector as it is sent, and the state that must be on disk before it is."""

    sealed: SealedContribution
    member: Member


class SecureSums:
    """The part of ``member`` in secure sums; ``path`` is the file of its state, ``terms`` are the site's demands."""

    def __init__(self, transport: Transport, path: Path, member: Membership, terms: Secure) -> None:
        self._transport = transport
        self._path = path
        self._membership = member
        self._demands = Demands(least=terms.least, peers=tuple(terms.peers), peers_required=terms.peers_required)
        self._stale = False
        """True if a roster had a key that this site does not have: the server's keys are of a lost state."""
        self._refused: tuple[str, str] | None = None
        terms.require_others(public_key(member.key))

    def restock(self, unused: int | None) -> None:
        """Sends new one-time keys if the server has few; ``unused`` is their number, None if it is unknown.

        Keys that the server had before stay here, since a roster may already have one.
        """
        if unused is None:
            return
        member = self._member()
        if unused >= FEW and member.keys and not self._stale:
            return
        member = member.stocked(len(member.keys) + STOCK)
        member = member.model_copy(update={"keys": member.keys[-2 * STOCK :]})
        self._save(member)
        failpoint("secure.stocked")
        keys = member.prekeys(self._membership.experiment, self._membership.key)[-STOCK:]
        self._put("/participant/prekeys", b"".join(key.encode() for key in keys))
        self._stale = False

    def roster(self, lease: Lease, replica: Replica) -> Roster:
        """Returns the lease's roster.

        Raises ``secure.roster_invalid`` unless it is for the round that follows in this site's copy of the model and
        ledger, under the experiment's specification. Only the number of rounds may differ.
        """
        from ferret_core.aggregation.group_sum import task_of
        from ferret_core.aggregation.masked_sum import origin_of, require_roster

        assert lease.sum is not None
        roster = read_model(Roster, lease.sum.roster)
        if roster.context != lease.sum.context:
            raise invalid("context", lease.sum.context, f"this roster has {roster.context}")
        attempt = roster.origin.attempt
        task = task_of(replica, lease.task.experiment, attempt, lease.task.participant, lease.task.population)
        # An extended experiment has more rounds than when this site read the specification.
        task = task.model_copy(update={"rounds": lease.task.rounds})
        if task != lease.task:
            raise invalid("task", lease.task.model_dump_json(), f"the specification gives {task.model_dump_json()}")
        require_roster(replica, roster, origin_of(replica, task, attempt))
        return roster

    def deal(self, lease: Lease, roster: Roster) -> None:
        """Joins the group of a checked roster and sends its deal. Raises as :meth:`Member.join`."""
        try:
            member = self._member().join(roster, roster.origin, self._membership.key, self._demands)
        except FerretError as error:
            self._stale = self._stale or error.code == "secure.roster_invalid"
            raise
        self._save(member)
        failpoint("secure.dealt")
        self._put(_path(lease.id, "shares"), member.message, {"Ferret-Fence": str(lease.fence)})

    def accept(self, lease: Lease, task: SumTask) -> None:
        """Fetches the others' shares, before the training. Raises as :meth:`Member.accept`, and ``secure.closed`` if
        this site has lost its state of the sum, or its masked vector."""
        member = self._in(task.context)
        if isinstance(member.attempt, Dealt):
            path = _path(lease.id, "shares")
            shares = self._transport.request("GET", path, attempts=PATIENT, at_most=LARGEST_DELIVERY).body
            self._save(member.accept(shares))
            failpoint("secure.shares_accepted")
        elif not isinstance(member.attempt, Ready):
            raise self._lost("has masked a vector that it no longer has")

    def members(self, context: str) -> int:
        """Returns the number of members of the group that this site has joined."""
        attempt = self._in(context).attempt
        assert attempt is not None
        return len(attempt.roster.members)

    def mask(self, lease: Lease, replica: Replica, vector: Sequence[Entries]) -> MaskedVector:
        """Masks the integers of the contribution to the lease's round."""
        assert lease.sum is not None
        member, packed = self._in(lease.sum.context).mask(vector)
        return MaskedVector(seal_vector(packed, replica.spec, lease.task), member)

    def keep(self, masked: MaskedVector) -> None:
        """Writes that this vector, which is in the spool, may be sent, and no other."""
        self._save(masked.member)

    def may_send(self, upload: Upload) -> bool:
        """Returns True for a contribution without masks, and for the masked vector that the state has."""
        if upload.context is None:
            return True
        attempt = self._member().attempt
        if attempt is None or attempt.roster.context != upload.context:
            return False
        if isinstance(attempt, Masked):
            return attempt.masked == upload.digest
        return isinstance(attempt, Agreed | Released)  # it has arrived before

    def take(self, step: SumStep) -> bool:
        """Sends the next message after the masked vector. Returns False for a step that was refused before.

        Raises as :meth:`Member.agree` and :meth:`Member.release`: nothing is sent then, and the step is not tried
        again.
        """
        if self._refused == (step.context, step.stage):
            return False
        try:
            self._take(step)
        except FerretError as error:
            if error.code.startswith("secure."):
                self._refused = (step.context, step.stage)
            raise
        return True

    def follow(self, record: LedgerRecord) -> None:
        """Erases the secrets of the record's round, and of earlier ones."""
        if not self._path.exists():
            return
        member = self._member()
        if member.attempt is not None and member.attempt.roster.origin.round <= record.round:
            self._save(member.end())

    def clear(self) -> None:
        """Deletes the state at the end of the experiment."""
        self._path.unlink(missing_ok=True)

    def _take(self, step: SumStep) -> None:
        member = self._in(step.context)
        if isinstance(member.attempt, Masked):
            member = member.agree(step.survivors, self._membership.key)
            self._save(member)
            failpoint("secure.agreed")
        member = member.agree(step.survivors, self._membership.key)  # raises if the server has another list now
        signatures = bytes.fromhex(step.signatures or "")
        if isinstance(member.attempt, Agreed):
            known = decode_signatures(member.attempt.roster, signatures)
            if member.name not in known:
                self._put_in_time(_path(step.assignment, "survivors"), member.message)
        if step.stage == SumStage.AGREE:
            return
        member = member.release(signatures)
        self._save(member)
        failpoint("secure.released")
        self._put_in_time(_path(step.assignment, "unmask"), member.message)

    def _in(self, context: str) -> Member:
        member = self._member()
        if member.attempt is None or member.attempt.roster.context != context:
            raise self._lost("has no secrets of this sum: it lost its state, or gave up the attempt")
        return member

    def _lost(self, message: str) -> FerretError:
        return FerretError.of_field("secure.closed", "participant", self._membership.name, message)

    def _member(self) -> Member:
        if not self._path.exists():
            return Member(name=self._membership.name)
        try:
            member = Member.model_validate_json(self._path.read_bytes())
        except ValidationError as error:
            detail = f"{self._path} cannot be read, and contains this site's part in secure sums: delete it, and the "
            raise FerretError("terms.invalid", f"{detail}site drops out of the sum under way") from error
        if member.attempt is not None and time.time() - self._path.stat().st_mtime > KEPT_SECONDS:
            member = member.end()
            self._save(member)
        return member

    def _save(self, member: Member) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_durably(self._path, member.model_dump_json().encode())

    def _put_in_time(self, path: str, message: bytes) -> None:
        """Sends a message. The server needs none after enough others have sent theirs."""
        try:
            self._put(path, message)
        except FerretError as error:
            if error.code != "secure.closed":
                raise
            log.info("%s: %s", path, error.detail)

    def _put(self, path: str, message: bytes, headers: dict[str, str] | None = None) -> None:
        sent = {"Content-Type": "application/octet-stream", **(headers or {})}
        self._transport.request("PUT", path, content=message, headers=sent, attempts=PATIENT)


def _path(assignment: str, message: str) -> str:
    return f"/participant/assignments/{assignment}/{message}"
