"""What a site keeps, told and deleted."""

from __future__ import annotations

from pathlib import Path

import pytest

from ferret_core.protocol.states import ExperimentState
from ferret_sdk import Participant
from ferret_sdk.participant import membership
from ferret_sdk.participant.egress_log import SentLog, verify
from ferret_sdk.participant.lock import sole
from tests.refusals import refused

pytestmark = pytest.mark.timeout(90)


@pytest.fixture
def two(api, worker, service, toy_spec, toy_data, tmp_path) -> tuple[Path, str, str]:
    """A home with two memberships: one of an experiment that has ended, one that goes on."""
    home = tmp_path / "site"
    ids: list[str] = []
    for _ in range(2):
        run = service.submit(toy_spec(participants={"edge": 1}, rounds=1))
        site = Participant.enrol(api.url, run.create_code().code, "site-a", home)
        while run.refresh().experiment.digest is None:
            pass
        if ids:
            site.preview(toy_data[0])
        else:
            site.run(toy_data[0])
        ids.append(run.id)
    return home, ids[0], ids[1]


def test_what_is_kept_is_told_and_of_what_has_ended_deleted(two: tuple[Path, str, str]) -> None:
    home, ended, goes_on = two
    found = {one.member.experiment: one for one in membership.memberships(home)}
    assert (found[ended].ended, found[ended].rounds, found[ended].round) == (ExperimentState.COMPLETED, 1, 1)
    assert found[ended].spent.seconds > 0
    assert (found[goes_on].ended, found[goes_on].rounds) == (None, 0)
    lying = list(membership.pieces(home))
    assert {piece.experiment for piece in lying if piece.what == "base model"} == {ended, goes_on}
    folder = home / "participants"
    proofs = list(membership.receipts(home))
    assert [(piece.experiment, len(list(piece.path.glob("round-1.json")))) for piece in proofs] == [(ended, 1)]
    assert sum(piece.size for piece in [*lying, *proofs]) == sum(
        path.stat().st_size for path in folder.glob("exp_*/**/*") if path.is_file() and path.suffix != ".lock"
    )

    head = verify(SentLog(home))
    pieces = list(membership.pieces(home, [found[ended]]))
    assert {piece.experiment for piece in pieces} == {ended}
    membership.remove(home, pieces, lambda piece: None)
    assert [one.member.experiment for one in membership.memberships(home)] == [goes_on]
    assert list((folder / ended).iterdir()) == [proofs[0].path]
    assert (folder / goes_on / "base" / "model.safetensors").exists()
    assert verify(SentLog(home)) == head


def test_a_membership_in_use_is_left(two: tuple[Path, str, str]) -> None:
    home, ended, _ = two
    (one,) = [one for one in membership.memberships(home) if one.member.experiment == ended]
    with sole(one.places.lock, "site-a"), refused("participant.in_use"):
        membership.remove(home, list(membership.pieces(home, [one])), lambda piece: None)
    assert one.places.membership.exists()
