"""A row of a contribution that somebody altered in the database is found and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import delete, update

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import RoundState
from ferret_db.engine.file_integrity import Inconsistency, altered
from ferret_db.repositories import contributions
from ferret_db.tables import Contribution, Round
from tests.worker.conftest import usually_on

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


@pytest.fixture
def finished(service: Service, plain_spec: SpecFactory) -> str:
    experiment_id = service.submit(plain_spec(rounds=2))
    service.run()
    return experiment_id


@pytest.fixture
def row(service: Service, finished: str) -> Contribution:
    """What the second client sent in round 1."""
    with service.database.read() as s:
        return contributions.of_experiment(s, finished)[1]


def found(service: Service) -> list[Inconsistency]:
    with service.database.read() as s:
        return list(altered(s, service.context.storage))


def test_what_the_service_wrote_is_not_altered(service: Service, finished: str) -> None:
    assert found(service) == []


@usually_on("sqlite")
@pytest.mark.parametrize(
    ("column", "value"), [("size", 7), ("participant", "client-900"), ("round", 2), ("digest", "ab" * 32)]
)
def test_a_changed_column_is_found(service: Service, row: Contribution, column: str, value: Any) -> None:
    with service.database.begin() as s:
        s.execute(update(Contribution).where(Contribution.id == row.id).values({column: value}))
    blamed = {(item.participant, item.round) for item in found(service)}
    expected = value if column == "participant" else row.participant, value if column == "round" else row.round
    assert expected in blamed
    assert all(item.experiment_id == row.experiment_id for item in found(service))


@usually_on("sqlite")
def test_two_swapped_files_are_found(service: Service, finished: str) -> None:
    """Both are there and whole: only the ledger and what they say themselves tell whose they are."""
    with service.database.begin() as s:
        first, second, *_ = contributions.of_experiment(s, finished)
        digests = {first.id: second.digest, second.id: first.digest}
        for id, digest in digests.items():
            s.execute(update(Contribution).where(Contribution.id == id).values(digest=digest))
    assert {item.participant for item in found(service)} >= {first.participant, second.participant}


@usually_on("sqlite")
def test_a_deleted_row_is_found(service: Service, row: Contribution) -> None:
    with service.database.begin() as s:
        s.execute(delete(Contribution).where(Contribution.id == row.id))
    (missing,) = found(service)
    assert (missing.participant, missing.round) == (row.participant, row.round)
    assert row.digest in missing.reason


@usually_on("sqlite")
def test_a_row_of_a_set_that_is_frozen_only_is_found(service: Service, row: Contribution) -> None:
    with service.database.begin() as s:
        s.execute(update(Round).where(Round.id == row.round_id).values(state=RoundState.FROZEN))
        s.execute(delete(Contribution).where(Contribution.id == row.id))
    (missing,) = found(service)
    assert missing.reason == "the accepted set differs from the frozen one"
