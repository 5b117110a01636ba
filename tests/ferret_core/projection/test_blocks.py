import pytest
import torch

from ferret_core.projection import blocks
from ferret_core.projection.blocks import Block, blocks_of
from ferret_core.protocol.errors import FerretError


def test_one_block_per_tensor_in_the_order_given() -> None:
    parameters = {"b": torch.zeros(2, 3), "a": torch.zeros(())}
    assert blocks_of(parameters) == [Block(0, "b", 6), Block(1, "a", 1)]


def test_an_empty_tensor_is_refused_by_name() -> None:
    with pytest.raises(FerretError, match="head") as caught:
        blocks_of({"w": torch.zeros(1), "head": torch.zeros(0, 8)})
    assert caught.value.code == "model.invalid"


def test_more_blocks_than_the_format_numbers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_BLOCKS", 2)
    with pytest.raises(FerretError, match="at most 2") as caught:
        blocks_of({name: torch.zeros(1) for name in "abc"})
    assert caught.value.code == "model.invalid"
