"""Secure sums: participants' one-time keys, and the roster, messages and transcript of each round that is one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from ferret_core.protocol.states import RoundState, SumStage
from ferret_core.rounds.sampling import SignedGroup
from ferret_core.secure.prekeys import Prekey
from ferret_core.secure.roster import Roster, RosterMember, invalid
from ferret_db.repositories import contributions
from ferret_db.statements import upsert
from ferret_db.tables import Participant, Round, SecureMessage, SecureSum
from ferret_db.tables import Prekey as PrekeyRow


def restock(s: Session, participant: Participant, keys: Sequence[Prekey]) -> None:
    """Makes these the participant's unused keys. Keys that a roster had are not offered again.

    Raises ``secure.roster_invalid`` for a key that another participant of the experiment has: their roster would be
    invalid. The caller has locked the experiment.
    """
    kept, shares = [key.mask for key in keys], [key.share for key in keys]
    others = select(PrekeyRow.mask).where(
        PrekeyRow.experiment_id == participant.experiment_id,
        PrekeyRow.participant_id != participant.id,
        or_(PrekeyRow.mask.in_(kept), PrekeyRow.share.in_(shares)),
    )
    if keys and s.execute(others.limit(1)).first():
        raise invalid("participant", participant.name, "has a one-time key of another participant: make new ones")
    s.execute(
        delete(PrekeyRow).where(
            PrekeyRow.participant_id == participant.id, PrekeyRow.used.is_(False), PrekeyRow.mask.not_in(kept)
        )
    )
    about = {"participant_id": participant.id, "experiment_id": participant.experiment_id, "used": False}
    rows = [{**about, **key.model_dump()} for key in keys]
    if rows:
        s.connection().execute(upsert(s, PrekeyRow).on_conflict_do_nothing(), rows)


def stocked(s: Session, experiment_id: str) -> dict[str, RosterMember]:
    """Returns the active participants that have an unused key, each with one of them, by name."""
    query = (
        select(Participant, PrekeyRow)
        .join(PrekeyRow, PrekeyRow.participant_id == Participant.id)
        .where(Participant.experiment_id == experiment_id, PrekeyRow.used.is_(False))
        .where(Participant.revoked_at.is_(None), Participant.pending.is_(False), Participant.public_key.is_not(None))
        .order_by(Participant.name, PrekeyRow.mask.desc())
    )
    return {
        member.name: RosterMember(
            name=member.name,
            identity=member.public_key or "",
            mask=key.mask,
            share=key.share,
            signature=key.signature,
        )
        for member, key in s.execute(query)
    }


def unused(s: Session, participant_ids: Collection[str]) -> dict[str, int]:
    """Returns the number of unused keys of each of the participants."""
    if not participant_ids:
        return {}
    query = select(PrekeyRow.participant_id, func.count()).where(
        PrekeyRow.participant_id.in_(participant_ids), PrekeyRow.used.is_(False)
    )
    return dict.fromkeys(participant_ids, 0) | dict(s.execute(query.group_by(PrekeyRow.participant_id)).all())


def add(s: Session, round_: Round, rosters: Sequence[Roster]) -> None:
    """Stores the rosters of the round's groups; their keys are used from now on."""
    for roster in rosters:
        about = {"round_id": round_.id, "number": roster.group, "experiment_id": round_.experiment_id}
        s.add(SecureSum(**about, roster=roster.model_dump(mode="json")))
    keys = [member.mask for roster in rosters for member in roster.members]
    used = PrekeyRow.experiment_id == round_.experiment_id, PrekeyRow.mask.in_(keys)
    s.execute(update(PrekeyRow).where(*used).values(used=True))
    s.flush()


def rosters(s: Session, round_ids: Collection[str]) -> dict[str, list[Roster]]:
    """Returns the rosters, by group, of those rounds that are secure sums."""
    query = select(SecureSum.round_id, SecureSum.roster).where(SecureSum.round_id.in_(round_ids))
    found = dict[str, list[Roster]]()
    for round_id, roster in s.execute(query.order_by(SecureSum.round_id, SecureSum.number)):
        found.setdefault(round_id, []).append(Roster.model_validate(roster))
    return found


def rosters_of(s: Session, round_id: str) -> list[Roster]:
    """Returns the rosters of the round's groups; none if it is not a secure sum."""
    return rosters(s, [round_id]).get(round_id, [])


def roster_with(rosters: Collection[Roster], participant: str) -> Roster:
    """Returns the roster that has the participant."""
    return next(roster for roster in rosters if participant in roster.names)


def signed_groups(s: Session, experiment_id: str, number: int) -> list[list[SignedGroup]]:
    """Returns the groups of each abandoned attempt at the round that came to the signatures of the survivors."""
    attempts = (
        select(Round.id)
        .where(Round.experiment_id == experiment_id, Round.number == number)
        .where(Round.state == RoundState.ABANDONED, Round.stage.is_not(None), Round.frozen_at.is_not(None))
        .order_by(Round.attempt)
    )
    found = list[list[SignedGroup]]()
    for round_id in s.scalars(attempts).all():
        arrived = {name for name, _ in contributions.digests_of_round(s, round_id)}
        found.append([SignedGroup(each.names, arrived & {*each.names}) for each in rosters_of(s, round_id)])
    return found


def put(s: Session, round_: Round, participant: str, kind: SumStage, body: bytes) -> None:
    """Stores a message; a later one replaces it."""
    about = {"round_id": round_.id, "participant": participant, "kind": kind, "experiment_id": round_.experiment_id}
    row = upsert(s, SecureMessage).values(**about, body=body)
    s.execute(
        row.on_conflict_do_update(index_elements=["round_id", "participant", "kind"], set_={"body": row.excluded.body})
    )


def messages(s: Session, round_id: str, kind: SumStage) -> dict[str, bytes]:
    """Returns the messages of a kind by participant, in the order of the names."""
    query = select(SecureMessage.participant, SecureMessage.body).where(
        SecureMessage.round_id == round_id, SecureMessage.kind == kind
    )
    return dict(s.execute(query.order_by(SecureMessage.participant)).all())


def senders(s: Session, round_id: str, kind: SumStage) -> set[str]:
    """Returns the participants that have sent a message of this kind."""
    query = select(SecureMessage.participant).where(SecureMessage.round_id == round_id, SecureMessage.kind == kind)
    return set(s.scalars(query))


def end(s: Session, round_id: str, transcripts: Sequence[Mapping[str, Any]] = ()) -> None:
    """Deletes the round's messages, and stores the groups' transcripts, if there are any."""
    s.execute(delete(SecureMessage).where(SecureMessage.round_id == round_id))
    for transcript in transcripts:
        group = SecureSum.round_id == round_id, SecureSum.number == transcript["roster"]["group"]
        s.execute(update(SecureSum).where(*group).values(transcript=dict(transcript)))


def transcripts(s: Session, experiment_id: str, number: int) -> list[dict[str, Any]]:
    """Returns the transcripts, by group, of the committed round; none if it is not a secure sum."""
    query = (
        select(SecureSum.transcript)
        .join(Round, Round.id == SecureSum.round_id)
        .where(Round.experiment_id == experiment_id, Round.number == number, SecureSum.transcript.is_not(None))
    )
    return [found for found in s.scalars(query.order_by(SecureSum.number)) if found is not None]
