"""Machines with nothing in common but database, broker and bucket."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ferret_cli.stack.ports import free_port
from ferret_core.protocol.digest import digest_file
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.task_names import Queue
from ferret_core.simulate import simulate
from ferret_sdk.service.service import Service
from tests.network_namespaces import Host, host, missing
from tests.worker.processes.test_workers import LONG, leased

pytestmark = [pytest.mark.redis, pytest.mark.timeout(1200)]
TOKEN = "the admin token of this test"
Fleet = Any  # tests/worker/processes/conftest.py


@pytest.fixture(params=["this machine", "hosts"])
def hosts(request: pytest.FixtureRequest, need: Callable[[bool, str], None]) -> Iterator[list[Host | None]]:
    """Where two workers run: with folders of their own on this machine, or each in a network of its own."""
    if request.param == "this machine":
        yield [None, None]
        return
    need((reason := missing()) is None, reason or "")
    with host() as first, host() as second:
        yield [first, second]


@pytest.mark.slow
@pytest.mark.postgresql
@pytest.mark.parametrize("settings", ["postgresql"], indirect=True)
def test_workers_of_other_machines_need_database_broker_and_bucket_alone(
    fleet: Fleet, bucket: Any, hosts: list[Host | None], toy_spec: Callable[..., ExperimentSpec], tmp_path: Path
) -> None:
    """One of them is killed in the middle of a round."""
    url, options = bucket()
    fleet.environment |= {"FERRET_STORAGE_URL": f"{url}/ferret", "FERRET_S3_ENDPOINT": options.endpoint}
    spec = toy_spec("fedavg", rounds=2, options={"local": LONG}, evaluation={"examples": 2, "generate_examples": 0})
    service = _api(fleet, str(tmp_path / "api"))
    fleet.start(Queue.AGGREGATE, FERRET_HOME=str(tmp_path / "aggregate"))
    trainers = [
        fleet.start(Queue.TRAIN, host=host, FERRET_HOME=str(tmp_path / f"train-{number}"), **_reached(fleet, host))
        for number, host in enumerate(hosts)
    ]
    run = service.submit(spec)
    fleet.until(lambda: bool(leased(fleet, run.id)))
    os.kill(trainers[0].pid, signal.SIGKILL)
    experiment = fleet.until_finished(run.id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
    folder = run.export(tmp_path / "model")
    (weights,) = [file for file in run.checkpoint() if file.name == "model.safetensors"]
    assert digest_file(folder / weights.name) == weights.digest
    assert not list(tmp_path.glob("*/storage")), "no machine keeps a storage of its own"


def _reached(fleet: Fleet, host: Host | None) -> dict[str, str]:
    """The services' addresses as a host has them."""
    names = ("FERRET_DATABASE_URL", "FERRET_BROKER_URL", "FERRET_S3_ENDPOINT")
    return {name: host.reach(fleet.environment[name]) for name in names} if host else {}


def _api(fleet: Fleet, home: str) -> Service:
    port = free_port()
    command = [sys.executable, "-P", "-m", "ferret_api"]
    fleet.run("api", command, FERRET_HOME=home, FERRET_PORT=str(port), FERRET_ADMIN_TOKEN=TOKEN)
    service = Service(f"http://127.0.0.1:{port}", TOKEN)

    def answers() -> bool:
        try:
            return service.system().parts.ready
        except FerretError:
            return False

    fleet.until(answers)
    assert service.system().storage.kind == "s3"
    return service
