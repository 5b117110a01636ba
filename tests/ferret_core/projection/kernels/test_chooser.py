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


@pytest.mark.parametrize(
    ("setting", "family", "device", "expected"),
    [
        (None, "G", "cpu", signed_buckets.Kernel),
        (None, "G", "mps", reference.Kernel),
        ("reference", "G", "cpu", reference.Kernel),
        ("cpu", "I", "cpu", reference.Kernel),
    ],
    ids=["the processor's own", "no other device's", "the setting wins", "a family without a file"],
)
def test_which_kernel_computes(
    setting: str | None, family: str, device: str, expected: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    if setting is None:
        monkeypatch.delenv("FERRET_KERNEL", raising=False)
    else:
        monkeypatch.setenv("FERRET_KERNEL", setting)
    assert isinstance(kernel(basis(family), torch.device(device)), expected)


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
    monkeypatch.delenv("FERRET_KERNEL")
    assert isinstance(kernel(basis("G"), CPU), reference.Kernel)


@pytest.mark.parametrize(("name", "device"), [("cpu", "mps"), ("gpu", "cpu")])
def test_weights_on_another_device_are_refused(name: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRET_KERNEL", name)
    monkeypatch.setenv("TRITON_INTERPRET", "0")
    with refused("settings.invalid", f"the weights are on {device}: choose auto or reference"):
        kernel(basis("G"), torch.device(device))
