from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.simulate import simulate
from ferret_db.engine import lifecycle
from ferret_db.repositories import ledger
from ferret_db.repositories.experiments import spec_of

SpecFactory = Callable[..., ExperimentSpec]
Service = Any  # tests/worker/conftest.py


def test_a_kept_model_follows_the_specification_in_force(service: Service, plain_spec: SpecFactory) -> None:
    """The same worker goes on after more rounds were asked for; its records name the specification of their time."""
    experiment_id = service.submit(plain_spec(rounds=1))
    service.run()
    first = service.experiment(experiment_id)
    assert first.state == ExperimentState.COMPLETED
    with service.database.begin() as s:
        lifecycle.extend(s, experiment_id, 1)
    service.run()
    extended = service.experiment(experiment_id)
    assert (extended.state, extended.digest) == (ExperimentState.COMPLETED, simulate(plain_spec(rounds=2)).digest)
    with service.database.read() as s:
        records = [entry.record for entry in ledger.after(s, experiment_id, 0, 10)]
    in_force = [digest_json(spec_of(item).model_dump(mode="json")) for item in (first, extended)]
    assert [record["spec"] for record in records] == in_force
    assert len(set(in_force)) == 2
