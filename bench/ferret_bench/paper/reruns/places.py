"""The places of a study's runs: a service that the command starts, an existing one, or this process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from ferret_bench.measure.machine import machine
from ferret_bench.paper.reruns.at_service import Place, served
from ferret_bench.paper.reruns.rerun import Runner
from ferret_bench.paper.reruns.store import Store
from ferret_cli.demo import own_environment
from ferret_cli.output import say
from ferret_cli.stack import ports
from ferret_cli.stack.home_lock import locked
from ferret_cli.stack.stack import Plan, running
from ferret_sdk.service.service import Service


@contextmanager
def own_service(home: Path, store: Store, together: int) -> Generator[Runner]:
    """Starts a whole service in ``home`` with ``together`` training workers, and stops it at the end."""
    own_environment()
    with running(Plan(home, port=ports.free_port(), workers=together, roots=(Path("/"),)), say) as stack:
        service = Service(stack.plan.url, stack.token)
        place = Place(service, machine(), stack.supervisor.supervise, together)
        yield lambda cells: served(place, cells, lambda cell: store.attempts(cell.key))


@contextmanager
def service_at(url: str, token: str | None, home: Path, store: Store, together: int) -> Generator[Runner]:
    """Uses a running service; ``home`` keeps a second command from running the same cells."""
    with locked(home):
        service = Service(url, token)
        place = Place(service, {"server": service.info().model_dump(mode="json")}, together=together)
        yield lambda cells: served(place, cells, lambda cell: store.attempts(cell.key))


@contextmanager
def this_process(home: Path) -> Generator[Runner]:
    from ferret_bench.paper.reruns.in_process import simulated

    with locked(home):
        yield simulated
