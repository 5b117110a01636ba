from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from ferret_core.projection import block_views as module
from ferret_core.projection.apply import reconstruct_
from ferret_core.projection.bases import basis
from ferret_core.projection.blocks import Block, Piece, blocks_of
from ferret_core.projection.project import Projected, norms, project
from ferret_core.projection.quantize import dequantize, quantize
from tests.ferret_core.projection.sample import BLOCKS, COUNTS, SHAPES, as_bytes, every_letter, parameters
from tests.refusals import refused

# Of before and after: equal ones, and an fp32 master beside the half precision it trained in.
TYPES = [(torch.float32, torch.float32), (torch.float16, torch.float16), (torch.float32, torch.bfloat16)]


@pytest.mark.parametrize(("letter", "bias"), [("H", False), ("G", True)])
def test_one_bit_coordinates_keep_the_mean_up_to_K_near_d_on_h_but_not_on_g(letter: str, bias: bool) -> None:
    update = torch.randn(4096, generator=torch.Generator().manual_seed(0)) ** 3
    before, after, mean = {"a": update}, {"a": torch.zeros(4096)}, {"a": torch.zeros(4096)}
    blocks, seeds = blocks_of(before), range(100)
    for seed in seeds:
        sent = project(before, after, blocks, basis(letter), [4096], seed)
        (gamma,) = dequantize(quantize(sent.coordinates, "sign"), "sign", [4096])
        reconstruct_(mean, blocks, basis(letter), [Projected(seed, [-gamma / len(seeds)])])
    assert (float((mean["a"] - update).norm()) > 0.15 * float(update.norm())) == bias


@pytest.mark.parametrize("letter", ["G", "H"])
def test_trainable_parameters_are_moved_in_place_and_keep_no_graph(letter: str) -> None:
    layer = nn.Linear(30, 20)
    own = dict(layer.named_parameters())
    after = {name: tensor.detach() - 1 for name, tensor in own.items()}
    projected = project(own, after, blocks_of(own), basis(letter), [600, 20], seed=5)
    reconstruct_(own, blocks_of(own), basis(letter), [projected])
    for name, tensor in layer.named_parameters():
        assert tensor.requires_grad
        assert tensor.grad_fn is None
        assert torch.allclose(tensor, after[name], atol=1e-5)  # K = d: nothing is lost


def in_pieces(size: int, cuts: Sequence[int]) -> Block:
    """Block 7, its elements spread over tensors "0", "1", … with one element of a neighbour before each."""
    edges = [0, *cuts, size]
    return Block(7, "l", size, tuple(Piece(str(i), 1, a, b - a) for i, (a, b) in enumerate(pairwise(edges))))


def spread(block: Block, elements: Tensor) -> dict[str, Tensor]:
    pieces = ((piece.parameter, elements[piece.start : piece.start + piece.length]) for piece in block.pieces)
    return {name: torch.cat([part.new_full((1,), 9.0), part, part.new_full((1,), 9.0)]) for name, part in pieces}


@every_letter
@settings(max_examples=15, deadline=None)
@given(data=st.data())
@pytest.mark.heavy
def test_a_block_in_pieces_is_the_same_as_one_tensor(letter: str, data: st.DataObject) -> None:
    size = data.draw(st.sampled_from([1, 2, 127, 4096, 9973]))
    cuts = sorted(data.draw(st.sets(st.integers(1, size - 1), max_size=3))) if size > 1 else []
    K = data.draw(st.integers(1, min(size, 12)) | st.just(size if letter in "GH" else 1))
    old, new = data.draw(st.sampled_from(TYPES))
    generator = torch.Generator().manual_seed(data.draw(st.integers(0, 99)))
    before, after = (torch.randn(size, generator=generator).to(dtype) for dtype in (old, new))
    block = in_pieces(size, cuts)
    item = Block(7, "l", size, (Piece("w", 0, 0, size),))

    whole = project({"w": before}, {"w": after}, [item], basis(letter), [K], seed=4)
    parts = project(spread(block, before), spread(block, after), [block], basis(letter), [K], seed=4)
    rounding = 1e-4 * K**0.5 + 1e-6 * size / K  # T multiplies its sums by up to 3d/K
    torch.testing.assert_close(parts.coordinates[0], whole.coordinates[0], rtol=1e-4, atol=rounding)
    assert norms(spread(block, before), spread(block, after), [block]) == pytest.approx(
        norms({"w": before}, {"w": after}, [item]), rel=1e-12
    )

    spread_out, together = spread(block, before), before.clone()
    terms = [whole, whole._replace(seed=5)]
    reconstruct_(spread_out, [block], basis(letter), terms, rounding=6)
    reconstruct_({"w": together}, [item], basis(letter), terms, rounding=6)
    assert as_bytes(list(spread_out.values())) == as_bytes(list(spread(block, together).values()))


@every_letter
def test_before_may_have_another_type(letter: str) -> None:
    before, after = parameters(1), parameters(2, torch.bfloat16)
    widened = {name: tensor.float() for name, tensor in after.items()}
    mixed, plain = (project(before, end, BLOCKS, basis(letter), COUNTS[letter], seed=1) for end in (after, widened))
    assert as_bytes(mixed.coordinates) == as_bytes(plain.coordinates)
    assert norms(before, after, BLOCKS) == norms(before, widened, BLOCKS)


class Far(Tensor):
    """A tensor that says it lies on another device, and what was asked for at once."""

    device: ClassVar[torch.device] = torch.device("meta")  # pyrefly: ignore[bad-override]
    moved: ClassVar[list[int]] = []

    def to(self, *args: Any, **options: Any) -> Tensor:
        self.moved.append(self.numel())
        return self.as_subclass(Tensor)


@every_letter
def test_before_comes_from_another_device_in_bounded_stretches(letter: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STRETCH", 100_000)
    before, after = parameters(1), parameters(2)
    near = project(before, after, BLOCKS, basis(letter), COUNTS[letter], seed=1)
    Far.moved.clear()
    far = {name: tensor.as_subclass(Far) for name, tensor in before.items()}
    projected = project(far, after, BLOCKS, basis(letter), COUNTS[letter], seed=1)
    assert Far.moved == [100_000, 100_000, 75_600, 77, 1]
    for item, other in zip(projected.coordinates, near.coordinates, strict=True):
        torch.testing.assert_close(item, other, rtol=1e-4, atol=1e-2)
    assert norms(far, after, BLOCKS) == pytest.approx(norms(before, after, BLOCKS), rel=1e-12)


class Loaded(Mapping[str, Tensor]):
    """Loads a tensor when it is asked for, and counts those whose memory is still held."""

    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.tensors, self.memory, self.peak = tensors, list[weakref.ref[Any]](), 0

    def __getitem__(self, name: str) -> Tensor:
        memory = self.tensors[name].numpy().copy()
        self.memory.append(weakref.ref(memory))
        self.peak = max(self.peak, sum(item() is not None for item in self.memory))
        return torch.from_numpy(memory)

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)


@pytest.mark.parametrize("rule", ["tensor", 1])
def test_tensors_are_looked_up_one_after_the_other_and_let_go(rule: Any) -> None:
    tensors = {f"{name}{i}": tensor for i in range(3) for name, tensor in parameters(1).items()}
    before, after, blocks = Loaded(tensors), Loaded(tensors), blocks_of(tensors, rule)
    project(before, after, blocks, basis("G"), [1] * len(blocks), seed=1)
    norms(before, after, blocks)
    assert before.peak <= 2  # one at work while the next is looked up
    assert after.peak <= 2


def test_norms_are_those_of_the_update() -> None:
    before, after = parameters(1), parameters(2)
    expected = [math.sqrt(math.fsum((before[n] - after[n]).double().square().view(-1).tolist())) for n in SHAPES]
    assert norms(before, after, BLOCKS) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_norms_neither_overflow_nor_vanish(scale: float) -> None:
    before, after = {"w": torch.full((4,), scale)}, {"w": torch.zeros(4)}
    assert norms(before, after, blocks_of(before)) == pytest.approx([2 * scale], rel=1e-6)


@every_letter
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_update_that_is_not_finite_is_refused_by_block(letter: str, value: float) -> None:
    before, after = parameters(1), parameters(2)
    after["vector"][5] = value
    for act in (
        lambda: project(before, after, BLOCKS, basis(letter), COUNTS[letter], seed=1),
        lambda: norms(before, after, BLOCKS),
    ):
        with refused("training.non_finite", "vector = '") as caught:
            act()
        caught.value.to_json()


GAMMAS = [torch.ones(5), torch.ones(9), torch.ones(1)]
MODEL = parameters(1)


def projecting(K: Sequence[int] = (5, 9, 1), seed: int = 1) -> Callable[[], object]:
    return lambda: project(MODEL, MODEL, BLOCKS, basis("G"), K, seed)


def applying(
    *, model: dict[str, Tensor] = MODEL, blocks: Sequence[Block] = BLOCKS, rounding: int = 0, **changes: Any
) -> Callable[[], object]:
    term = Projected(1, GAMMAS)._replace(**changes)
    return lambda: reconstruct_(model, blocks, basis("G"), [Projected(1, GAMMAS), term], rounding)


def last(**changes: Any) -> list[Block]:
    return [*BLOCKS[:2], BLOCKS[2]._replace(**changes)]


REFUSED = {
    "K beyond d": (projecting(K=(5, 78, 1)), "K of vector", "projection.invalid"),
    "K below zero": (projecting(K=(5, -1, 1)), "K of vector", "projection.invalid"),
    "K for fewer blocks": (projecting(K=(5, 9)), "K", "projection.invalid"),
    "seed below zero": (projecting(seed=-1), "seed", "projection.invalid"),
    "seed beyond 64 bits": (projecting(seed=2**64), "seed", "projection.invalid"),
    "a term beyond d": (applying(coordinates=[*map(torch.ones, (5, 78, 1))]), "K of vector", "projection.invalid"),
    "a term for fewer blocks": (applying(coordinates=GAMMAS[:2]), "K", "projection.invalid"),
    "a term's seed": (applying(seed=2**64), "seed", "projection.invalid"),
    "the rounding's seed": (applying(rounding=-5), "rounding", "projection.invalid"),
    "no numbers": (applying(coordinates=[*GAMMAS[:2], torch.tensor([math.nan])]), "scalar", "training.non_finite"),
    "part of a whole block": (
        applying(blocks=[BLOCKS[0]._replace(whole=True), *BLOCKS[1:]]),
        "K of matrix",
        "projection.invalid",
    ),
    "a block of another model": (applying(blocks=last(pieces=(Piece("bias", 0, 0, 1),))), "bias", "projection.invalid"),
    "a block of a larger model": (
        applying(blocks=last(size=2, pieces=(Piece("scalar", 0, 0, 2),))),
        "scalar",
        "projection.invalid",
    ),
    "a block whose pieces are not all of it": (applying(blocks=last(size=2)), "scalar", "projection.invalid"),
    "a block without pieces": (applying(blocks=last(pieces=())), "scalar", "projection.invalid"),
    "double precision": (applying(model=MODEL | {"scalar": torch.zeros(()).double()}), "scalar", "model.invalid"),
    "integers": (applying(model=MODEL | {"scalar": torch.tensor(1)}), "scalar", "model.invalid"),
    "a strided parameter": (applying(model=MODEL | {"vector": torch.zeros(154)[::2]}), "vector", "model.invalid"),
}


@pytest.mark.parametrize(("act", "field", "code"), REFUSED.values(), ids=REFUSED)
def test_bad_input_is_refused_by_name_and_moves_nothing(act: Callable[[], object], field: str, code: str) -> None:
    with refused(code, field=field):
        act()
    assert as_bytes(list(MODEL.values())) == as_bytes(list(parameters(1).values()))
