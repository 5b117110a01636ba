"""Many contributions are accepted in one transaction, each as if it came alone."""

from __future__ import annotations

from typing import Any

import pytest

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.states import AssignmentState, RoundState
from ferret_core.rounds.cost import LocalCost
from ferret_db.database import Database
from ferret_db.engine import assignments
from ferret_db.engine.acceptance import ContributionOffer, accept_all
from ferret_db.repositories import contributions, events
from ferret_db.tables import Assignment

pytestmark = pytest.mark.about_database


def offer(lab: Any, leased: Assignment, digest: str | None = None, key: str | None = None) -> ContributionOffer:
    sealed = lab.sealed(leased, digest or f"digest of {leased.id}")
    return ContributionOffer(leased.id, leased.fence, sealed, LocalCost(1.0), idempotency_key=key)


def accepted(database: Database, *offers: ContributionOffer) -> list[str]:
    """Each one's digest, or the code of its error."""
    with database.begin() as s:
        found = accept_all(s, offers)
    return [row.code if isinstance(row, FerretError) else row.digest for row in found]


def leased(lab: Any, **opened: Any) -> list[Assignment]:
    return [lab.lease(row) for row in lab.assignments(lab.open(lab.start(), **opened))]


def test_contributions_to_several_experiments_are_accepted_at_once(database: Database, lab: Any) -> None:
    first, second = leased(lab, participants=3), leased(lab, participants=2)
    offers = [offer(lab, row, f"{n}") for n, row in enumerate([second[0], first[2], second[1], first[0]])]
    assert accepted(database, *offers) == ["0", "1", "2", "3"]
    with database.read() as s:
        rounds = {row.participant: row.digest for row in contributions.of_round(s, first[0].round_id)}
        told = events.after(s, first[0].experiment_id, 0, 100)
    assert rounds == {"client-2": "1", "client-0": "3"}
    assert [event.seq for event in told] == [*range(1, len(told) + 1)]
    assert [event.data["digest"] for event in told if event.type == "contribution.accepted"] == ["1", "3"]
    state = {row.participant: lab.get(row).state for row in first}
    assert state == {
        "client-0": AssignmentState.ACCEPTED,
        "client-1": AssignmentState.LEASED,
        "client-2": AssignmentState.ACCEPTED,
    }


def test_the_round_that_has_all_is_frozen_and_no_other(database: Database, lab: Any) -> None:
    whole, part = lab.open(lab.start(), participants=2), lab.open(lab.start(), participants=2)
    rows = [*lab.assignments(whole), lab.assignments(part)[0]]
    accepted(database, *(offer(lab, lab.lease(row)) for row in rows))
    assert (lab.get(whole).state, lab.get(part).state) == (RoundState.FROZEN, RoundState.OPEN)
    assert (lab.get(whole).bytes_up, lab.get(part).bytes_up) == (100, 50)


def test_what_is_wrong_with_one_concerns_no_other(database: Database, lab: Any) -> None:
    good, late, elsewhere = leased(lab, participants=3)
    unknown = offer(lab, good)._replace(assignment_id="asg_none")
    of_another_model = offer(lab, elsewhere)._replace(sealed=lab.sealed(elsewhere, "x", base_digest="ff" * 32))
    offers = offer(lab, late)._replace(fence=9), unknown, offer(lab, good, "good"), of_another_model
    codes = ["lease.lost", "assignment.not_found", "good", "contribution.wrong_base"]
    assert accepted(database, *offers) == codes


def test_a_round_takes_no_more_than_it_needs(database: Database, lab: Any) -> None:
    rows = leased(lab, participants=4, needed=2)
    assert accepted(database, *(offer(lab, row, row.participant) for row in rows)) == [
        "client-0",
        "client-1",
        "round.closed",
        "round.closed",
    ]
    with database.read() as s:
        assert len(contributions.of_round(s, rows[0].round_id)) == 2


def test_the_second_for_one_assignment_meets_the_first(database: Database, lab: Any) -> None:
    row, _ = leased(lab, participants=2)
    offers = offer(lab, row, "first"), offer(lab, row, "first"), offer(lab, row, "second")
    assert accepted(database, *offers) == ["first", "first", "contribution.duplicate"]


def test_a_key_is_good_once_within_a_transaction_too(database: Database, lab: Any) -> None:
    row, other = leased(lab, participants=2)
    same = offer(lab, row, "first", "key"), offer(lab, row, "second", "key"), offer(lab, other, "third", "key")
    assert accepted(database, *same) == ["first", "idempotency.conflict", "third"], "a key is one participant's own"


def test_threads_that_accept_for_the_same_experiments_end(database: Database, lab: Any) -> None:
    """In whatever order their contributions come."""
    rows = [*leased(lab, participants=8), *leased(lab, participants=8)]

    def deliver(thread: int) -> list[str]:
        mine = rows[thread::8]
        return accepted(database, *(offer(lab, row) for row in (mine if thread % 2 else reversed(mine))))

    assert sorted(digest for digests in lab.race(deliver) for digest in digests) == sorted(
        f"digest of {row.id}" for row in rows
    )
    assert {lab.get(row).state for row in rows} == {AssignmentState.ACCEPTED}


def test_many_are_leased_at_once_and_none_twice(database: Database, lab: Any) -> None:
    rows = lab.assignments(lab.open(lab.start(), participants=20))
    closed = lab.assignments(lab.open(lab.start(round={"quorum": 0.3}), participants=1, deadline=-1))[0]
    lab.deliver(closed)

    def lease(thread: int) -> list[str]:
        ids = [row.id for row in [*rows, closed]]
        with database.begin() as s:
            found = assignments.lease_all(s, [*(ids if thread % 2 else reversed(ids)), "asg_none"], 60)
        return [id_ for id_, row in found.items() if row.fence == 1 and row.task["participant"] == row.participant]

    assert sorted(id_ for found in lab.race(lease) for id_ in found) == sorted(row.id for row in rows)
