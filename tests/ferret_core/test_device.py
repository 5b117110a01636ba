"""Where models live, and what is said where there is no such place."""

from __future__ import annotations

import pytest
import torch

from ferret_core.device import chosen_device, place, require_room
from ferret_core.protocol.errors import FerretError


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
    with pytest.raises(FerretError, match=message) as caught:
        chosen_device()
    assert caught.value.code == "settings.invalid"


def test_a_model_beyond_the_gpus_memory_is_refused_with_what_would_help() -> None:
    require_room(10, 10)
    with pytest.raises(
        FerretError, match=r"takes 13.5 GB and 8.0 GB of the GPU are free: set FERRET_DEVICE=cpu"
    ) as caught:
        require_room(13_500_000_000, 8_000_000_000)
    assert caught.value.code == "memory.exhausted"


def test_on_the_cpu_nothing_is_asked(tiny_model: torch.nn.Module) -> None:
    place(tiny_model, torch.device("cpu"))
    assert {parameter.device.type for parameter in tiny_model.parameters()} == {"cpu"}
