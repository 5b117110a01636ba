from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ferret_core.projection import project as module
from ferret_core.projection.bases import basis, letters, signed_buckets, truncated_normal
from ferret_core.projection.project import apply_, norms, project
from ferret_core.projection.quantize import KINDS, quantize
from ferret_core.protocol.errors import FerretError

# A matrix beyond every chunk size, a vector that fills no lane, a scalar.
SHAPES = {"matrix": (520, 530), "vector": (77,), "scalar": ()}
COUNTS = {"G": [5000, 9, 1], "T": [2, 9, 1]}


def parameters(seed: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=generator) for name, shape in SHAPES.items()}


def as_bytes(tensors: list[Tensor]) -> list[bytes]:
    return [tensor.numpy().tobytes() for tensor in tensors]


def everything(letter: str) -> list[bytes]:
    """All results of a round: coordinates, norms, coordinates on the wire, moved model."""
    before, after = parameters(1), parameters(2)
    gammas = project(before, after, basis(letter), COUNTS[letter], seed=11)
    wire = [array.tobytes() for kind in KINDS for array in quantize(gammas, kind).values()]
    apply_(before, basis(letter), [(11, gammas), (12, gammas)])
    return [*as_bytes(gammas), *wire, np.array(norms(before, after)).tobytes(), *as_bytes(list(before.values()))]


@pytest.mark.parametrize("letter", letters())
def test_the_same_bytes_on_one_thread_and_on_two(letter: str) -> None:
    alone = everything(letter)
    torch.set_num_threads(2)
    assert everything(letter) == alone


@pytest.mark.parametrize("letter", letters())
@pytest.mark.parametrize("size", [4096, 1 << 30])
def test_the_same_bytes_in_small_chunks_and_in_one(letter: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = everything(letter)
    monkeypatch.setattr(module, "CHUNK", size)
    monkeypatch.setattr(signed_buckets, "CHUNK", size)
    monkeypatch.setattr(truncated_normal, "ELEMENTS", size)
    monkeypatch.setattr(truncated_normal, "ENTRIES", size)
    assert everything(letter) == usual


@pytest.mark.parametrize("letter", letters())
def test_the_mean_over_many_seeds_is_the_update(letter: str) -> None:
    before = {"a": torch.randn(64, generator=torch.Generator().manual_seed(0)), "b": torch.ones(8)}
    after = {"a": before["a"] * 0.5, "b": torch.zeros(8)}
    model = {name: tensor.clone() for name, tensor in before.items()}
    seeds = range(200)
    terms = [(s, [g / len(seeds) for g in project(before, after, basis(letter), [32, 8], s)]) for s in seeds]
    apply_(model, basis(letter), terms)
    for name, tensor in model.items():
        assert float((tensor - after[name]).norm()) < 0.2 * float((before[name] - after[name]).norm())


def test_a_block_that_is_not_sent_stays_as_it_is() -> None:
    before, after = parameters(1), parameters(2)
    gammas = project(before, after, basis("G"), [0, 9, 0], seed=1)
    assert [len(gamma) for gamma in gammas] == [0, 9, 0]
    moved = parameters(1)
    apply_(moved, basis("G"), [(1, gammas)])
    assert torch.equal(moved["matrix"], before["matrix"])
    assert not torch.equal(moved["vector"], before["vector"])


def test_trainable_parameters_are_moved_in_place_and_keep_no_graph() -> None:
    layer = nn.Linear(30, 20)
    after = {name: tensor.detach() - 1 for name, tensor in layer.named_parameters()}
    gammas = project(dict(layer.named_parameters()), after, basis("G"), [600, 20], seed=5)
    apply_(dict(layer.named_parameters()), basis("G"), [(5, gammas)])
    for name, tensor in layer.named_parameters():
        assert tensor.requires_grad
        assert tensor.grad_fn is None
        assert torch.allclose(tensor, after[name], atol=1e-6)  # K = d: nothing is lost


def test_norms_are_those_of_the_update() -> None:
    before, after = parameters(1), parameters(2)
    expected = [math.sqrt(math.fsum((b - a).double().square().view(-1).tolist())) for b, a in pairs(before, after)]
    assert norms(before, after) == pytest.approx(expected, rel=1e-14)


def test_norms_neither_overflow_nor_vanish() -> None:
    for scale in (1e-30, 1e30):
        assert norms({"w": torch.full((4,), scale)}, {"w": torch.zeros(4)}) == pytest.approx([2 * scale], rel=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_other_dtypes_are_refused_by_name(dtype: torch.dtype) -> None:
    model = {"head.weight": torch.zeros(4, dtype=dtype)}
    with pytest.raises(FerretError, match=r"head\.weight.*float32") as caught:
        apply_(model, basis("G"), [(1, [torch.ones(2)])])
    assert caught.value.code == "model.invalid"
    with pytest.raises(FerretError, match=r"head\.weight"):
        norms(model, model)


def test_a_strided_parameter_is_refused_by_name() -> None:
    with pytest.raises(FerretError, match=r"head\.weight.*contiguous") as caught:
        apply_({"head.weight": torch.zeros(4, 6).T}, basis("G"), [(1, [torch.ones(2)])])
    assert caught.value.code == "model.invalid"


def pairs(before: dict[str, Tensor], after: dict[str, Tensor]) -> list[tuple[Tensor, Tensor]]:
    return [(before[name], after[name]) for name in before]
