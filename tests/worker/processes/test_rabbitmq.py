"""The whole service on RabbitMQ: the simulation's model, whatever happens to workers and to the line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ferret_cli.stack.ports import free_port
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.states import ExperimentState
from ferret_core.protocol.tasks import Queue
from ferret_core.simulate import simulate
from ferret_sdk.service import Service
from tests.line import Line
from tests.worker.conftest import usually_on
from tests.worker.processes.test_workers import LONG, QUICK, leased

pytestmark = [pytest.mark.rabbitmq, pytest.mark.timeout(1200)]
TOKEN = "the admin token of this test"
RECEIVED = "Task ferret.train"
SpecFactory = Callable[..., ExperimentSpec]
RabbitFleet = tuple[Any, Line]  # tests/worker/processes/conftest.py


def service(fleet: Any) -> Service:
    """An API process that is ready."""
    port = free_port()
    command = [sys.executable, "-P", "-m", "ferret_api"]
    fleet.run("api", command, FERRET_PORT=str(port), FERRET_ADMIN_TOKEN=TOKEN)
    found = Service(f"http://127.0.0.1:{port}", TOKEN)
    fleet.until(lambda: is_ready(found))
    return found


def is_ready(service: Service) -> bool:
    try:
        return service.system().parts.ready
    except FerretError:
        return False


@usually_on("postgresql")
def test_an_experiment_gives_the_simulations_model_though_the_line_is_cut_and_hangs(
    rabbit_fleet: RabbitFleet, toy_spec: SpecFactory
) -> None:
    fleet, line = rabbit_fleet
    spec = toy_spec("fedavg", rounds=2, options={"local": LONG}, evaluation=QUICK)
    client = service(fleet)
    workers = [fleet.start(Queue.AGGREGATE), fleet.start(Queue.TRAIN)]
    run = client.submit(spec)
    fleet.until(lambda: bool(leased(fleet, run.id)))
    line.hang()
    line.cut()
    second = client.submit(toy_spec(rounds=1))
    fleet.until(lambda: not is_ready(client))
    assert "does not answer" in str(client.system().parts.broker.detail)
    fleet.until(lambda: fleet.stalled(second.id) == "broker.missing")
    line.cut()
    line.resume()
    experiment = fleet.until_finished(run.id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
    fleet.until_finished(second.id)
    fleet.until(lambda: is_ready(client))
    fleet.until(lambda: {queue.queue: queue.messages for queue in client.system().queues} == dict.fromkeys(Queue, 0))
    assert [worker.exit_code for worker in workers] == [None, None], fleet.last_lines()


@usually_on("sqlite")
def test_a_killed_workers_message_is_with_another_at_once_and_its_work_is_done_again(
    rabbit_fleet: RabbitFleet, toy_spec: SpecFactory
) -> None:
    fleet, _ = rabbit_fleet
    spec = toy_spec("fedavg", rounds=1, participants={"simulated": 1}, options={"local": LONG}, evaluation=QUICK)
    fleet.start(Queue.AGGREGATE)
    first = fleet.start(Queue.TRAIN)
    experiment_id = fleet.submit(spec)
    fleet.until(lambda: bool(leased(fleet, experiment_id)))
    second = fleet.start(Queue.TRAIN, FERRET_RECONCILE_SECONDS="600")
    fleet.until(lambda: second.pid in fleet.workers())
    assert RECEIVED not in second.log.read_text(), "one message at a time, and the first worker has it"
    os.kill(first.pid, signal.SIGKILL)
    fleet.until(lambda: RECEIVED in second.log.read_text())
    experiment = fleet.until_finished(experiment_id)
    assert (experiment.state, experiment.digest) == (ExperimentState.COMPLETED, simulate(spec).digest)
