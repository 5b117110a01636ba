"""Where models live, and what is said where there is no such place."""

from __future__ import annotations

import pytest
import torch

from ferret_core.system.device import chosen_device, place, require_room
from tests.refusals import refused


@pytest.fixture(autouse=True)
def _unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRET_DEVICE", raising=False)


@pytest.mark.parametrize(("there", "expected"), [(True, "cuda"), (False, "cpu")])
def test_a_gpu_is_used_where_there_is_one(there: bool, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    assert chosen_device().type == expected


def test_the_setting_wins_and_an_argument_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setenv("FERRET_DEVICE", "cpu")
    assert chosen_device().type == "cpu"
    assert chosen_device("cuda").type == "cuda"


@pytest.mark.parametrize(
    ("asked", "message"), [("tpu", "choose one of auto, cpu, cuda"), ("cuda", "torch finds no GPU here")]
)
def test_a_device_that_is_not_there_is_named(asked: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("FERRET_DEVICE", asked)
    with refused("settings.invalid", message):
        chosen_device()


def test_a_model_beyond_the_gpus_memory_is_refused_with_what_would_help() -> None:
    require_room(10, 10)
    with refused("memory.exhausted", "13.5", "8.0", "FERRET_DEVICE"):
        require_room(13_500_000_000, 8_000_000_000)


def test_on_the_cpu_nothing_is_asked(tiny_model: torch.nn.Module) -> None:
    place(tiny_model, torch.device("cpu"))
    assert {parameter.device.type for parameter in tiny_model.parameters()} == {"cpu"}
