"""Whatever a device has room for, training makes the same steps; and where one sequence is too much, it says so."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import IGNORED, Batch, ClientData, Encoded
from ferret_core.system.device import is_out_of_memory, memory_checked
from ferret_core.training.config import LocalConfig, ZerothOrderConfig
from ferret_core.training.local import train
from ferret_core.training.micro_batches import MicroBatches, micro_batches
from ferret_core.training.zeroth_order import Descent, zeroth_order_steps
from tests.ferret_core.memory_limited_device import small
from tests.ferret_core.training.conftest import with_dropout
from tests.refusals import refused
from tests.tiers import slow

pytestmark = pytest.mark.heavy

CPU_SAYS = "[enforce fail at alloc_cpu.cpp:124] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to"
Trained = Callable[..., torch.Tensor]


def small_going_back(model: LlamaForCausalLM, sequences: int) -> LlamaForCausalLM:
    """As ``small``, but memory is short in the middle of the backward pass, when half of the gradients are there."""
    module = copy.deepcopy(model)

    def allocate(_: Any, __: Any, gradients: tuple[torch.Tensor, ...]) -> None:
        if len(gradients[0]) > sequences:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    module.model.layers[0].register_full_backward_hook(allocate)
    return module


@pytest.mark.parametrize("room", [2, 5, *slow(1, 3)])
@pytest.mark.parametrize("shrink", [small, small_going_back])
@pytest.mark.parametrize(
    "options", [{"optimizer": "adam", "options": {"eps": 1e-3}}, {"clip_norm": 0.5}, {"activation_checkpointing": True}]
)
def test_a_small_device_makes_the_same_steps(
    tiny_model: LlamaForCausalLM,
    trained: Trained,
    shrink: Callable[..., LlamaForCausalLM],
    room: int,
    options: dict[str, Any],
) -> None:
    settings = {"batch_size": 6, "accumulation": 2, "learning_rate": 0.01, **options}
    undisturbed = trained(tiny_model, **settings)
    torch.testing.assert_close(trained(shrink(tiny_model, room), **settings), undisturbed, rtol=0, atol=2e-6)


def test_a_step_made_in_parts_is_that_of_the_parts_to_the_bit(tiny_model: LlamaForCausalLM, trained: Trained) -> None:
    """Batches of equal length, so that no padding is cut: accumulating halves is what asking for them would do."""
    settings = {"learning_rate": 0.01, "optimizer": "adam"}
    asked = trained(tiny_model, batch_size=1, accumulation=4, **settings)
    assert torch.equal(trained(small(tiny_model, 1), batch_size=4, accumulation=1, **settings), asked)


def test_with_dropout_a_step_made_again_depends_on_its_seed_alone(tiny_model: Any, trained: Trained) -> None:
    """What the failed attempt drew is not drawn from the one that counts."""
    with_dropout(tiny_model)
    settings = {"batch_size": 4, "accumulation": 1, "steps": 1}
    early, late = small(tiny_model, 1), small_going_back(tiny_model, 1)
    assert torch.equal(trained(early, **settings), trained(late, **settings))


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30), st.integers(1, 8))
def test_a_tenth_of_a_pass_is_padding_at_most(lengths: list[int], size: int) -> None:
    examples = [Encoded([3] * length, [5]) for length in lengths]
    found = list(micro_batches([next(ClientData(examples, pad_id=2).ordered(len(examples)))], size))
    rows = [row for batch in found for row in batch.attention_mask.sum(dim=1).tolist()]
    assert sorted(rows) == sorted(length + 1 for length in lengths)
    assert all(len(batch.input_ids) <= size for batch in found)
    assert all(batch.attention_mask.float().mean() >= 0.9 - 1e-6 for batch in found)


def test_the_size_that_fits_is_kept_and_said_once(
    tiny_model: LlamaForCausalLM, shard: ClientData, caplog: pytest.LogCaptureFixture
) -> None:
    sizes: list[int] = []
    model = small(tiny_model, 2)
    model.register_forward_pre_hook(lambda _, __, given: sizes.append(len(given["input_ids"])), with_kwargs=True)
    config = LocalConfig(batch_size=6, accumulation=1, steps=2, optimizer="sgd")
    with caplog.at_level(logging.WARNING):
        done = train(model, shard.batches(6, 5), config)
    assert done.examples == 12
    assert sizes == [1] * 12
    assert [record.args for record in caplog.records] == [(3,), (1,)]
    assert all("out of memory" in record.message for record in caplog.records)


@pytest.mark.parametrize("error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError(CPU_SAYS), MemoryError()])
def test_one_sequence_that_does_not_fit_is_said(
    tiny_model: LlamaForCausalLM, shard: ClientData, error: Exception
) -> None:
    before = torch.cat([weight.detach().reshape(-1) for weight in tiny_model.parameters()])
    model = small(tiny_model, 0, error)
    with refused("memory.exhausted", "activation_checkpointing"):
        train(model, shard.batches(4, 5), LocalConfig(batch_size=4))
    assert torch.equal(torch.cat([weight.detach().reshape(-1) for weight in model.parameters()]), before)
    assert all(parameter.grad is None for parameter in model.parameters())


def test_steps_in_the_backward_pass_cannot_be_made_again(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    config = LocalConfig(optimizer="sgd", optimizer_in_backward=True, accumulation=1, batch_size=4)
    with refused("memory.exhausted", "batch_size = 4"):
        train(small_going_back(tiny_model, 2), shard.batches(4, 5), config)


def test_other_errors_are_left_as_they_are(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    broken = small(tiny_model, 0, RuntimeError("device-side assert triggered"))
    with pytest.raises(RuntimeError, match="device-side assert"):
        train(broken, shard.batches(4, 5), LocalConfig(batch_size=4))
    with pytest.raises(RuntimeError, match="device-side assert"), memory_checked():
        raise RuntimeError("device-side assert triggered")


@pytest.mark.parametrize("room", [1, 3])
def test_forward_passes_see_the_same_slopes(tiny_model: LlamaForCausalLM, shard: ClientData, room: int) -> None:
    config = ZerothOrderConfig(learning_rate=1e-3, steps=3, batch_size=6, accumulation=2, epsilon=1e-2)

    def run(model: LlamaForCausalLM) -> Descent:
        return zeroth_order_steps(model, shard.batches(6, 5), config, seeds=range(3))

    undisturbed, disturbed = run(copy.deepcopy(tiny_model)), run(small(tiny_model, room))
    torch.testing.assert_close(
        torch.from_numpy(disturbed.slopes), torch.from_numpy(undisturbed.slopes), rtol=1e-3, atol=1e-4
    )
    assert disturbed.trained.train_loss == pytest.approx(undisturbed.trained.train_loss, rel=1e-5)
    assert disturbed.trained.examples == undisturbed.trained.examples == 36


def test_one_sequence_that_does_not_fit_forward_is_said(tiny_model: LlamaForCausalLM, shard: ClientData) -> None:
    config = ZerothOrderConfig(steps=1, batch_size=2)
    with refused("memory.exhausted"):
        zeroth_order_steps(small(tiny_model, 0), shard.batches(2, 5), config, seeds=range(1))


def test_parts_have_the_longest_first_and_no_padding_that_all_of_them_share(shard: ClientData) -> None:
    group = list(islice(shard.batches(5, 5), 2))
    parts = list(micro_batches(group, 2))
    assert [len(part.input_ids) for part in parts] == [2] * 5
    rows = sorted((row for batch in group for row in _unpadded(batch)), key=lambda row: -len(row[0]))
    assert [row for part in parts for row in _unpadded(part)] == rows
    assert all(bool(part.attention_mask[:, -1].any()) for part in parts)
    assert all(bool((part.labels[part.attention_mask == 0] == IGNORED).all()) for part in parts)


def test_a_single_batch_that_fits_is_left_as_it_is(shard: ClientData) -> None:
    (batch,) = group = list(islice(shard.batches(5, 5), 1))
    (part,) = micro_batches(group, 5)
    assert part is batch


def test_accumulated_batches_are_the_same_step_as_one_batch(tiny_model: LlamaForCausalLM, trained: Trained) -> None:
    settings = {"learning_rate": 0.01, "optimizer": "adam", "options": {"eps": 1e-3}}
    whole = trained(tiny_model, batch_size=12, accumulation=1, **settings)
    torch.testing.assert_close(trained(tiny_model, batch_size=3, accumulation=4, **settings), whole, rtol=0, atol=2e-6)


def _unpadded(batch: Batch) -> list[tuple[list[int], list[int]]]:
    lengths = batch.attention_mask.sum(dim=1).tolist()
    rows = zip(batch.input_ids.tolist(), batch.labels.tolist(), lengths, strict=True)
    return [(ids[:length], labels[:length]) for ids, labels, length in rows]


def test_sizes_are_halved_until_they_fit() -> None:
    tried: list[int] = []
    undone: list[int] = []

    def work(size: int) -> int:
        tried.append(size)
        if size > 3:
            raise MemoryError
        return size

    fitting = MicroBatches(25)
    assert fitting.fit(work, lambda: undone.append(len(tried))) == 3
    assert fitting.fit(work) == 3
    assert tried == [25, 12, 6, 3, 3]
    assert undone == [1, 2, 3]


def test_what_running_out_of_memory_looks_like() -> None:
    assert is_out_of_memory(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
