"""Where models live, and what is said where there is no such place."""

from __future__ import annotations

import math

import pytest
import torch

from ferret_core.system import device
from ferret_core.system.device import chosen_device, fast_bfloat16, place, require_bfloat16, require_room
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


@pytest.mark.parametrize(
    ("capabilities", "gain", "quick"),
    [
        ({"avx512_f": True, "amx_bf16": False, "avx512_bf16": False}, 9.0, False),
        ({"avx512_bf16": True, "amx_bf16": True}, 7.0, True),
        ({"avx512_bf16": True}, 0.5, False),
        ({"avx512_bf16": True}, 1.8, True),
        ({"architecture": "aarch64", "bf16": True}, 2.0, True),
        ({}, 9.0, False),
    ],
    ids=str,
)
def test_a_processor_is_quick_at_bf16_if_its_instructions_for_it_are(
    capabilities: dict[str, bool], gain: float, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AVX512-BF16 without AMX takes twice as long as fp32 on some processors."""
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    monkeypatch.setattr(device, "bfloat16_gain", lambda: gain)
    assert fast_bfloat16(torch.device("cpu")) == quick


def test_the_gain_of_bf16_is_measured_once_and_leaves_torch_as_it_was() -> None:
    threads = torch.get_num_threads()
    gain = device.bfloat16_gain()
    assert 0 < gain < math.inf
    assert device.bfloat16_gain() == gain
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(("native", "emulated"), [(True, True), (False, True), (False, False)])
def test_a_gpu_may_be_quick_at_bf16_or_slow_or_without_it(
    native: bool, emulated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def supported(including_emulation: bool = True) -> bool:
        return native or (including_emulation and emulated)

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "Tesla K80")
    gpu = torch.device("cuda")
    assert fast_bfloat16(gpu) == native
    require_bfloat16(gpu, "float32")
    if emulated:
        require_bfloat16(gpu, "bfloat16")
        return
    for precision in ("bfloat16", "pure_bfloat16"):
        with refused("training.unsupported", "Tesla K80", "'float32'") as caught:
            require_bfloat16(gpu, precision)
        assert caught.value.errors[0].field == "algorithm.local.precision"
