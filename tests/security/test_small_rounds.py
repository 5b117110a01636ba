"""What few real participants contributed to is downloaded by nobody but participants."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from ferret_api.settings import ApiSettings
from ferret_core.protocol.roles import Role
from ferret_db.tables import LedgerEntry
from tests.api.conftest import open_site
from tests.api.people import a_user

SITES = ["site-a", "site-b", "site-c"]


@pytest.fixture
def guarded(make_settings: Any) -> Iterator[Any]:
    """A service with the setting's default."""
    least = ApiSettings.model_fields["min_participants"].default
    with open_site(make_settings(min_participants=least)) as site:
        yield site


class Tuned:
    """An experiment for which ``sites`` have joined; rounds are contributed to by some of them."""

    def __init__(self, site: Any, *, simulated: int = 0, sites: int = 3) -> None:
        self.site = site
        self.id = site.submit(participants={"simulated": simulated, "edge": sites})
        site.start(self.id, [site.store("base", b"the base model")])
        self.tokens = [site.enrol(self.id, name) for name in SITES[:sites]]
        self.path = f"/api/v1/experiments/{self.id}"

    def round(self, *edge: str, simulated: int = 0, number: int = 1) -> None:
        clients = [f"client-{each:03}" for each in range(1, simulated + 1)]
        for assignment_id in self.site.open_round(self.id, edge=edge, simulated=clients, number=number):
            self.site.deliver(assignment_id)
        self.site.commit(self.id, number, [self.site.store("weights", b"weights %d" % number)])

    def refuse(self, name: str) -> None:
        """Says in the record that the site's contribution was left out of the model."""
        with self.site.database.begin() as s:
            entry = s.get(LedgerEntry, (self.id, 1))
            (digest,) = (digest for each, digest in entry.record["contributions"] if each == name)
            entry.record = {**entry.record, "refused": [[name, digest, "its norm is out of bounds"]]}

    def files(self, round: int) -> list[str]:
        """Where the round's update and checkpoint are."""
        items = self.site.admin.get(f"{self.path}/artifacts").json()["items"]
        return [item["href"] for item in items if item["round"] == round] + (
            [f"{self.path}/updates/{round}"] if round else []
        )

    def answers(self, client: Any, round: int = 1) -> list[tuple[int, str]]:
        """Status and code of every download of the round."""
        found = [client.get(path) for path in self.files(round)]
        heads = [client.head(path).status_code for path in self.files(round)]
        assert heads == [answer.status_code for answer in found]
        return [(each.status_code, "" if each.status_code == 200 else each.json()["code"]) for each in found]


REFUSED = [(403, "round.too_small")] * 2
GIVEN = [(200, "")] * 2


def test_a_round_of_one_site_is_for_participants_alone(guarded: Any) -> None:
    tuned = Tuned(guarded)
    tuned.round("site-a")
    researcher = a_user(guarded, Role.RESEARCHER).client
    for client in (guarded.admin, researcher):
        assert tuned.answers(client) == REFUSED
    for token in tuned.tokens:
        assert tuned.answers(guarded.client(token)) == GIVEN
    problem = guarded.admin.get(tuned.files(1)[-1]).json()
    for said in ("round 1", "1 real participants", "FERRET_MIN_PARTICIPANTS = 3"):
        assert said in problem["detail"]


@pytest.mark.parametrize("asked", [{"Range": "bytes=0-0"}, {"If-None-Match": "*"}])
def test_no_header_is_a_way_around(guarded: Any, asked: dict[str, str]) -> None:
    tuned = Tuned(guarded)
    tuned.round("site-a", "site-b")
    for path in tuned.files(1):
        answer = guarded.admin.get(path, headers=asked)
        assert (answer.status_code, answer.json()["code"]) == (403, "round.too_small")


def test_rounds_are_counted_one_by_one_and_the_base_model_is_for_all(guarded: Any) -> None:
    tuned = Tuned(guarded)
    tuned.round(*SITES)
    tuned.round("site-a", "site-b", number=2)
    assert tuned.answers(guarded.admin, 0) == [(200, "")]
    assert tuned.answers(guarded.admin, 1) == GIVEN
    assert tuned.answers(guarded.admin, 2) == REFUSED


def test_a_small_round_cannot_be_computed_from_its_neighbours(guarded: Any) -> None:
    """Models 1 and 3 with the change of round 3 would give what round 2, of one site, changed."""
    tuned = Tuned(guarded)
    for number, names in enumerate((SITES, SITES[:1], SITES, SITES), start=1):
        tuned.round(*names, number=number)
    model, change = ((200, ""), (403, "round.too_small"))
    assert tuned.answers(guarded.admin, 1) == GIVEN
    assert tuned.answers(guarded.admin, 2) == REFUSED
    assert tuned.answers(guarded.admin, 3) == [model, change]
    assert tuned.answers(guarded.admin, 4) == GIVEN
    assert "rounds 2 to 3 together" in guarded.admin.get(tuned.files(3)[-1]).json()["detail"]


def test_small_rounds_count_together_once_enough_sites_took_part(guarded: Any) -> None:
    tuned = Tuned(guarded)
    for number, names in enumerate((["site-a"], ["site-b"], ["site-c"]), start=1):
        tuned.round(*names, number=number)
    assert [tuned.answers(guarded.admin, number)[0][0] for number in (1, 2, 3)] == [403, 403, 200]
    assert tuned.answers(guarded.admin, 3)[1] == (403, "round.too_small")


def test_the_model_of_a_small_round_answers_no_question(guarded: Any) -> None:
    """That of a large round would answer, if a worker were there."""
    tuned = Tuned(guarded)
    tuned.round(*SITES)
    tuned.round("site-a", number=2)
    answers = [
        guarded.admin.post(f"{tuned.path}/playground", json={"question": "?"} | of)
        for of in ({"round": 2}, {}, {"round": 1})
    ]
    assert [answer.json()["code"] for answer in answers] == [
        "round.too_small",
        "round.too_small",
        "playground.unavailable",
    ]


def test_simulated_clients_count_as_nobody(guarded: Any) -> None:
    tuned = Tuned(guarded, simulated=4, sites=1)
    tuned.round("site-a", simulated=4)
    assert tuned.answers(guarded.admin) == REFUSED


def test_a_contribution_that_was_left_out_does_not_count(guarded: Any) -> None:
    tuned = Tuned(guarded)
    tuned.round(*SITES)
    tuned.refuse("site-b")
    assert tuned.answers(guarded.admin) == REFUSED


def test_an_experiment_with_simulated_clients_alone_is_not_affected(guarded: Any) -> None:
    experiment_id = guarded.running()
    guarded.committed(experiment_id)
    assert guarded.admin.get(f"/api/v1/experiments/{experiment_id}/updates/1").status_code == 200
