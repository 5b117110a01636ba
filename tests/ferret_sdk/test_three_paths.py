"""One update that is not a number, on the three roads a contribution takes: the same code and the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from ferret_core.algorithms import fedavg
from ferret_core.algorithms.base import Client, LocalUpdate
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.wire import Array
from ferret_core.simulate import simulate
from ferret_sdk import Participant
from ferret_sdk.service.run import Run

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(90)]

SpecFactory = Callable[..., ExperimentSpec]
SITE, CLIENT = "site-a", "client-003"


class Outcome(NamedTuple):
    """How a run of one round ended: why a contribution was refused, how many were accepted, why the run failed."""

    refused: list[str]
    accepted: int
    failed: str | None


@pytest.fixture
def spoil(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Array], Array]], None]:
    """``spoil(change)``: one participant sends ``change`` of its update, however well its training went."""

    def spoil(change: Callable[[Array], Array]) -> None:
        honest = fedavg.Algorithm.local_update

        def local_update(self: fedavg.Algorithm, model: Any, state: Any, client: Client) -> LocalUpdate:
            update = honest(self, model, state, client)
            if client.task.participant in {SITE, CLIENT}:
                update = update._replace(arrays={"update": change(update.arrays["update"])})
            return update

        monkeypatch.setattr(fedavg.Algorithm, "local_update", local_update)

    return spoil


def in_one_process(spec: ExperimentSpec) -> Outcome:
    try:
        _, first = simulate(spec).rounds
    except FerretError as error:
        # The simulation ends with this error alone, which says why the contribution was refused.
        refused = ["contribution.non_finite"] if "holds NaN or infinity" in error.detail else []
        return Outcome(refused, 2, error.code)
    return Outcome([error.code for error in first.rejected.values()], len(first.accepted), None)


def at_the_service(run: Run) -> Outcome:
    with suppress(FerretError):
        run.wait()
    parts, error = list(run.contributions()), run.refresh().experiment.error
    refused = [part.error.code for part in parts if part.state == "rejected" and part.error]
    accepted = [part for part in parts if part.state == "accepted"]
    return Outcome(refused, len(accepted), error and error.code)


@pytest.fixture(params=["simulate", "worker", "edge"])
def take(
    request: pytest.FixtureRequest,
    api: Any,
    worker: Any,
    service: Any,
    toy_spec: SpecFactory,
    toy_data: tuple[Path, Path],
    tmp_path: Path,
) -> Callable[[float], Outcome]:
    """``take(quorum)``: one round of three participants, of whom the road's own one is the last."""

    def take(quorum: float) -> Outcome:
        def spec(**participants: int) -> ExperimentSpec:
            policy = {"quorum": quorum, "attempts": 1}
            return toy_spec("fedavg", rounds=1, participants=participants, round=policy)

        match request.param:
            case "simulate":
                return in_one_process(spec(simulated=3))
            case "worker":
                return at_the_service(service.submit(spec(simulated=3)))
            case _:
                run = service.submit(spec(simulated=2, edge=1))
                Participant.enrol(api.url, run.create_code().code, SITE, tmp_path / "home").run(toy_data[0])
                return at_the_service(run)

    return take


@pytest.mark.parametrize(
    ("quorum", "failed"), [(0.5, None), (1.0, "quorum.missed")], ids=["the quorum decides", "all are needed"]
)
def test_a_nan_is_refused_alike_on_every_road(
    spoil: Any, take: Callable[[float], Outcome], quorum: float, failed: str | None
) -> None:
    spoil(lambda update: np.full_like(update, np.nan))
    assert take(quorum) == Outcome(["contribution.non_finite"], 2, failed)


def test_a_thousand_times_the_norm_is_left_out_alike_on_every_road(
    spoil: Any, take: Callable[[float], Outcome]
) -> None:
    spoil(lambda update: np.float32(-1000) * update)
    assert take(1.0) == Outcome(["contribution.out_of_bounds"], 2, None)
