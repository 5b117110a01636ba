from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from ferret_core.models import parameters
from ferret_core.models.digest import model_digest
from ferret_core.models.parameters import _on_copies, finite, shapes, trainable, working_copy
from ferret_core.models.shapes import sizes
from ferret_core.projection.blocks import blocks_of
from tests.refusals import refused


class Mixed(nn.Module):
    """One of everything: tied, frozen, integer, of a half type, a buffer that training moves."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.last = nn.Linear(3, 2, dtype=dtype)
        self.first = nn.Linear(3, 2, bias=False, dtype=dtype)
        self.first.weight = self.last.weight
        self.frozen = nn.Parameter(torch.randn(4, dtype=dtype), requires_grad=False)
        self.table = nn.Parameter(torch.arange(5), requires_grad=False)
        self.norm = nn.BatchNorm1d(2, dtype=dtype)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.norm(self.last(inputs) + self.first(inputs)) * self.frozen[0]


@pytest.fixture
def model() -> Mixed:
    return Mixed()


def step(model: nn.Module) -> None:
    """A training step that is far below one unit in the last place of bf16."""
    model.train()
    inputs = torch.linspace(-1, 1, 12).view(4, 3)
    model(inputs).square().sum().backward()
    with torch.no_grad():
        for parameter in trainable(model).values():
            parameter -= 1e-5 * (parameter.grad + 1)
            parameter.grad = None
    model.eval()


def test_tied_parameters_count_once_under_their_first_name(model: Mixed) -> None:
    names = ["first.weight", "last.bias", "norm.bias", "norm.weight"]
    assert list(trainable(model)) == names
    assert shapes(model) == dict(zip(names, [(2, 3), (2,), (2,), (2,)], strict=True))
    assert list(sizes(shapes(model)).values()) == [6, 2, 2, 2]
    assert [block.name for block in blocks_of(trainable(model))] == names


def test_frozen_parameters_integers_and_buffers_are_no_blocks(model: Mixed) -> None:
    left_out = {"frozen", "table", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    assert not left_out & set(trainable(model))
    model.last.weight.requires_grad_(False)
    assert list(trainable(model)) == ["last.bias", "norm.bias", "norm.weight"]


def test_a_model_with_nothing_to_train_is_refused(model: Mixed) -> None:
    with refused("model.invalid", "Mixed has no trainable"):
        trainable(model.requires_grad_(False))


@pytest.mark.parametrize("originals_on_host", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_training_moves_fp32_copies_and_leaves_the_model_as_it_was(dtype: torch.dtype, originals_on_host: bool) -> None:
    model = Mixed(dtype)
    digest, tied = model_digest(model), model.first.weight
    with _on_copies(model, originals_on_host) as before:
        floating = [tensor for tensor in model.state_dict().values() if tensor.is_floating_point()]
        assert {tensor.dtype for tensor in floating} == {torch.float32}
        step(model)
        for name, parameter in trainable(model).items():
            assert before[name].dtype == dtype
            assert not torch.equal(before[name].float(), parameter), "a small step is not rounded away"
        assert model.first.weight is model.last.weight is tied
    assert model_digest(model) == digest


def test_originals_on_the_host_leave_the_models_own_tensors_to_be_trained(model: Mixed) -> None:
    own = places(model.state_dict())
    with _on_copies(model, originals_on_host=True) as before:
        assert places(model.state_dict()) == own, "no second copy"
        assert not places(before) & places(model.state_dict())
        assert {tensor.device.type for tensor in before.values()} == {"cpu"}


@pytest.mark.parametrize(("copies", "crowded"), [(4.9, True), (5.0, False)])
def test_a_gpu_keeps_the_originals_where_it_has_room_for_five_copies(
    model: Mixed, copies: float, crowded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    elements = sum(parameter.numel() for parameter in model.parameters())
    monkeypatch.setattr(parameters, "free_device_bytes", lambda _: copies * 4 * elements)
    assert parameters._crowded(model, torch.device("cuda"), pure=False) is crowded


def test_pure_copies_have_the_models_own_types_and_need_room_for_these(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Mixed(torch.bfloat16)
    before = model_digest(model)
    with working_copy(model, pure=True) as originals:
        for name, weight in trainable(model).items():
            assert weight.dtype == torch.bfloat16
            assert weight.data_ptr() != originals[name].data_ptr()
            weight.data.add_(1)
        assert model.frozen.dtype == torch.bfloat16
    assert model_digest(model) == before
    monkeypatch.setattr(parameters, "free_device_bytes", lambda _: 5 * sum(w.nbytes for w in model.parameters()))
    assert not parameters._crowded(model, torch.device("cuda"), pure=True)
    assert parameters._crowded(model, torch.device("cuda"), pure=False)


def test_on_the_cpu_the_originals_stay_where_they_are(model: Mixed) -> None:
    own = places(model.state_dict())
    with working_copy(model) as before:
        assert places(before) < own
        assert not places(before) & places(model.state_dict())
    assert places(model.state_dict()) == own


def places(tensors: Mapping[str, Tensor]) -> set[int]:
    return {tensor.data_ptr() for tensor in tensors.values()}


@pytest.mark.parametrize("originals_on_host", [False, True])
def test_the_model_comes_back_when_training_stops_midway(model: Mixed, originals_on_host: bool) -> None:
    def interrupted() -> None:
        with _on_copies(model, originals_on_host):
            step(model)
            raise KeyboardInterrupt

    digest = model_digest(model)
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert model_digest(model) == digest


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_weight_that_is_no_number_is_seen_in_every_type(dtype: torch.dtype) -> None:
    model = Mixed(dtype)
    assert finite(model)
    with torch.no_grad():
        model.last.bias[1] = math.nan
    assert not finite(model)
