from __future__ import annotations

import pytest

from ferret_core.distributed.environment import ProcessRank, from_environment
from tests.refusals import refused

TOLD = {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def test_the_place_that_torchrun_tells() -> None:
    assert from_environment(TOLD) == ProcessRank(rank=1, size=4, local=1)


@pytest.mark.parametrize("told", [{}, {"RANK": "0", "WORLD_SIZE": "1"}])
def test_a_process_alone_is_in_no_team(told: dict[str, str]) -> None:
    assert from_environment(told) is None


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"RANK": None}, "RANK"),
        ({"MASTER_PORT": None}, "MASTER_PORT"),
        ({"RANK": "4"}, "RANK"),
        ({"RANK": "-1"}, "RANK"),
        ({"WORLD_SIZE": "many"}, "WORLD_SIZE"),
        ({"WORLD_SIZE": "0"}, "WORLD_SIZE"),
    ],
)
def test_half_a_place_is_refused_by_its_variable(changed: dict[str, str | None], field: str) -> None:
    told = {name: value for name, value in (TOLD | changed).items() if value is not None}
    with refused("settings.invalid", field, field=field) as caught:
        from_environment(told)
    assert "torchrun" in caught.value.detail
