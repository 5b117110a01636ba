from __future__ import annotations

from itertools import pairwise
from statistics import median

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.projection import blocks
from ferret_core.projection.blocks import Block, BlockRule, Piece, blocks_of, cut
from tests.refusals import refused

models = st.lists(st.one_of(st.integers(1, 8), st.integers(1, 400)), min_size=1, max_size=12).map(
    lambda sizes: {f"layer.{i}": size for i, size in enumerate(sizes)}
)
kinds: list[BlockRule] = ["tensor", "grouped"]
rules = st.one_of(st.sampled_from(kinds), st.integers(1, 30))


@given(models, rules, st.integers(0, 100))
def test_pieces_tile_the_model_exactly_once(sizes: dict[str, int], rule: BlockRule, whole_up_to: int) -> None:
    if isinstance(rule, int):
        rule = min(rule, sum(sizes.values()))
    found = cut(sizes, rule, whole_up_to)
    covered = {name: [0] * size for name, size in sizes.items()}
    for position, block in enumerate(found):
        assert block.id == position
        assert block.whole == (block.size <= whole_up_to)
        start = 0
        for piece in block.pieces:
            assert piece.start == start
            assert 0 < piece.length <= sizes[piece.parameter] - piece.begin
            for i in range(piece.begin, piece.begin + piece.length):
                covered[piece.parameter][i] += 1
            start += piece.length
        assert start == block.size
    assert all(count == 1 for counts in covered.values() for count in counts)
    assert len({block.name for block in found}) == len(found)


@given(models, st.integers(1, 50))
def test_equal_blocks_are_ranges_that_differ_by_one_element_at_most(sizes: dict[str, int], count: int) -> None:
    count = min(count, sum(sizes.values()))
    found = cut(sizes, count)
    assert len(found) == count
    assert max(block.size for block in found) - min(block.size for block in found) <= 1
    names = list(sizes)
    places = [(names.index(piece.parameter), piece.begin) for block in found for piece in block.pieces]
    assert places == sorted(places), "contiguous, in canonical order"


@given(models)
def test_grouping_leaves_large_tensors_alone_and_fills_blocks_with_small_ones(sizes: dict[str, int]) -> None:
    limit = 0.9 * median(sizes.values())
    found = cut(sizes, "grouped")
    large = [name for name, size in sizes.items() if size >= limit]
    assert [block.name for block in found if block.name in large] == large
    gathered = [block for block in found if block.name not in large]
    assert all(block.size <= limit for block in gathered)
    for block, following in pairwise(gathered):
        assert block.size + following.pieces[0].length > limit, "no block is closed while the next tensor fits"


def test_norm_vectors_share_a_block_and_matrices_keep_theirs() -> None:
    sizes = {"a.norm": 8, "a.weight": 64, "b.norm": 8, "b.weight": 64, "head": 640, "norm": 8}
    found = cut(sizes, "grouped")
    assert [block.name for block in found] == ["a.norm … norm", "a.weight", "b.weight", "head"]
    assert found[0].pieces == (Piece("a.norm", 0, 0, 8), Piece("b.norm", 0, 8, 8), Piece("norm", 0, 16, 8))


def test_a_block_that_spans_tensors_says_from_where_to_where() -> None:
    found = cut({"embed": 10, "head": 4}, 2)
    assert [block.name for block in found] == ["embed[0:7]", "embed[7:10] … head"]
    assert found[1].pieces == (Piece("embed", 7, 0, 3), Piece("head", 0, 3, 4))


def test_one_block_per_tensor_in_the_order_given() -> None:
    parameters = {"b": torch.zeros(2, 3), "a": torch.zeros(())}
    assert blocks_of(parameters) == [
        Block(0, "b", 6, (Piece("b", 0, 0, 6),)),
        Block(1, "a", 1, (Piece("a", 0, 0, 1),)),
    ]


def test_an_empty_tensor_is_refused_by_name() -> None:
    with refused("model.invalid", "head"):
        blocks_of({"w": torch.zeros(1), "head": torch.zeros(0, 8)})


@pytest.mark.parametrize("rule", ["tensor", "grouped", 3])
def test_more_blocks_than_the_format_numbers_are_refused(rule: BlockRule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "MAX_BLOCKS", 2)
    with refused("projection.invalid", "2 at most", field="blocks"):
        blocks_of({name: torch.zeros(1) for name in "abc"}, rule)


@pytest.mark.parametrize(("sizes", "count"), [({"embed": 2**40}, 2**24 + 1), ({"w": 3, "v": 2}, 6)])
def test_more_blocks_than_there_can_be_are_refused_before_they_are_made(sizes: dict[str, int], count: int) -> None:
    with refused("projection.invalid", field="blocks"):
        cut(sizes, count)
