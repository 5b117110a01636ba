"""Which kernel computes, and what is said when it cannot."""

from __future__ import annotations

from importlib.machinery import ModuleSpec

import pytest
import torch

from ferret_core.projection import kernels
from ferret_core.projection.bases import basis
from ferret_core.projection.kernels import kernel, reference
from ferret_core.projection.kernels.cpu import signed_buckets
from tests.refusals import refused

CPU = torch.device("cpu")


def test_the_processor_has_kernels_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRET_KERNEL", raising=False)
    assert isinstance(kernel(basis("G"), CPU), signed_buckets.Kernel)


def test_a_device_without_one_uses_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRET_KERNEL", raising=False)
    assert isinstance(kernel(basis("G"), torch.device("mps")), reference.Kernel)


def test_the_setting_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", "reference")
    assert isinstance(kernel(basis("G"), CPU), reference.Kernel)


def test_a_family_without_a_file_there_uses_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", "cpu")
    assert isinstance(kernel(basis("I"), CPU), reference.Kernel)


def test_an_unknown_name_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", "cuda")
    with refused("settings.invalid", "FERRET_KERNEL = 'cuda'"):
        kernel(basis("G"), CPU)


@pytest.fixture
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(name: str) -> ModuleSpec | None:
        return None

    monkeypatch.setattr(kernels, "find_spec", find)


@pytest.mark.usefixtures("_nothing_installed")
@pytest.mark.parametrize(("name", "library"), [("cpu", "numba"), ("gpu", "triton")])
def test_what_is_not_installed_is_named(name: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", name)
    with refused("settings.invalid", f"needs {library}: install it or choose auto"):
        kernel(basis("G"), CPU)


@pytest.mark.usefixtures("_nothing_installed")
def test_without_numba_the_reference_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRET_KERNEL", raising=False)
    assert isinstance(kernel(basis("G"), CPU), reference.Kernel)


@pytest.mark.parametrize(("name", "device"), [("cpu", "mps"), ("gpu", "cpu")])
def test_weights_on_another_device_are_refused(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", name)
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    with refused("settings.invalid", f"the weights are on {device}: choose auto or reference"):
        kernel(basis("G"), torch.device(device))
