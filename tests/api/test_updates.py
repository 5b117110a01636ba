"""What was inside a round's update: read by block, tagged, and judged by its noise."""

from __future__ import annotations

from typing import Any

import pytest

INSIDE: dict[str, Any] = {
    "step": [0.25, 0.5],
    "weights": [1.0, 2.0],
    "noise": [0.2, 0.4],
    "update": [0.1, 0.2],
    "K": [2.0, 3.0],
    "error": {"expected": 4.0, "low": 3.0, "high": 5.0},
    "agreement": {"participants": ["client-001", "client-002"], "cosines": [0.2], "errors": [0.4]},
}
FERRET = {"name": "ferret", "K": 5, "local": {"optimizer": "adam", "learning_rate": 0.01, "steps": 2}}


def address(experiment_id: str, number: int = 1) -> str:
    return f"/api/v1/experiments/{experiment_id}/rounds/{number}/update"


@pytest.fixture
def experiment_id(site: Any) -> str:
    """One committed round of Ferret."""
    experiment_id = site.running(algorithm=FERRET)
    site.committed(experiment_id, 1, inside=INSIDE)
    return experiment_id


def test_figures_come_with_the_blocks_they_are_of(site: Any, experiment_id: str) -> None:
    found = site.admin.get(address(experiment_id)).json()
    assert (found["round"], found["blocks"], found["sizes"]) == (1, ["bias", "weight"], [4, 6])
    assert {name: found[name] for name in ("step", "weights", "noise", "update", "K", "error")} == {
        name: INSIDE[name] for name in ("step", "weights", "noise", "update", "K", "error")
    }
    assert found["agreement"] == {**INSIDE["agreement"], "display_names": {}}


def test_what_projects_nothing_has_steps_alone(site: Any) -> None:
    experiment_id = site.running()
    site.committed(experiment_id, 1, inside={"step": [0.25, 0.5], "weights": [1.0, 2.0]})
    found = site.admin.get(address(experiment_id)).json()
    assert (found["blocks"], found["step"]) == (["bias", "weight"], [0.25, 0.5])
    for name in ("noise", "update", "K", "error", "projection_noise", "agreement"):
        assert found[name] is None


def test_what_is_known_is_not_sent_again(site: Any, experiment_id: str) -> None:
    first = site.admin.get(address(experiment_id))
    again = site.admin.get(address(experiment_id), headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert site.admin.get(address(experiment_id), headers={"If-None-Match": '"other"'}).status_code == 200


def test_rounds_without_figures_say_why(site: Any, experiment_id: str) -> None:
    site.open_round(experiment_id, simulated=["a"], number=2)
    for wanted, status, code in (
        (address(experiment_id, 2), 409, "round.uncommitted"),
        (address(experiment_id, 3), 404, "round.not_found"),
        (address("exp_0000000000000000"), 404, "experiment.not_found"),
    ):
        answer = site.admin.get(wanted)
        assert (answer.status_code, answer.json()["code"]) == (status, code)


@pytest.mark.parametrize(("blocks", "percent"), [([0.2, 0.4], 20), ([0.01, 0.02], 1)])
def test_only_too_much_noise_comes_with_what_to_change(site: Any, blocks: list[float], percent: float) -> None:
    experiment_id = site.running(algorithm=FERRET)
    site.committed(experiment_id, 1, inside={**INSIDE, "noise": blocks})
    noise = site.admin.get(address(experiment_id)).json()["projection_noise"]
    assert (noise["percent"], noise["advised_percent"], noise["most_percent"]) == (percent, 5, 50)
    assert bool(noise["advice"]) is (percent > 5)
