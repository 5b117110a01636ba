from __future__ import annotations

from itertools import islice

import numpy as np
import torch

from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from tests.refusals import refused


def shard(count: int) -> ClientData:
    """Example i is one prompt token and i + 1 response tokens, all of value 10 + i."""
    return ClientData([Encoded([10 + i], [10 + i] * (i + 1)) for i in range(count)], pad_id=3)


def drawn(shard: ClientData, size: int, seed: int, batches: int) -> list[list[int]]:
    return [batch.input_ids[:, 0].tolist() for batch in islice(shard.batches(size, seed), batches)]


def test_a_batch_is_right_padded_and_only_responses_bear_labels() -> None:
    batch = next(ClientData([Encoded([5, 6], [7]), Encoded([5], [8, 9, 1])], pad_id=3).ordered(2))
    assert batch.input_ids.tolist() == [[5, 8, 9, 1], [5, 6, 7, 3]]
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    assert batch.labels.tolist() == [[-100, 8, 9, 1], [-100, -100, 7, -100]]
    assert {tensor.dtype for tensor in batch} == {torch.int64}


def test_every_pass_has_each_example_once_in_a_new_order() -> None:
    first, second = drawn(shard(12), 12, seed=1, batches=2)
    assert sorted(first) == sorted(second) == list(range(10, 22))
    assert first != second


def test_the_seed_alone_fixes_the_order() -> None:
    assert drawn(shard(9), 2, seed=4, batches=20) == drawn(shard(9), 2, seed=4, batches=20)
    assert drawn(shard(9), 2, seed=4, batches=20) != drawn(shard(9), 2, seed=2**64 - 1, batches=20)


def test_batches_run_on_over_the_end_of_a_pass() -> None:
    values = [value for batch in drawn(shard(5), 2, seed=0, batches=5) for value in batch]
    assert sorted(values[:5]) == sorted(values[5:]) == list(range(10, 15))


def test_a_shard_smaller_than_a_batch_repeats_itself() -> None:
    (batch,) = drawn(shard(2), 5, seed=0, batches=1)
    assert len(batch) == 5
    assert set(batch) == {10, 11}


def test_no_global_generator_is_touched() -> None:
    np.random.seed(1)
    torch.manual_seed(1)
    before = np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()
    drawn(shard(5), 2, seed=0, batches=9)
    assert (np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()) == before


def test_ordered_gives_every_example_once_longest_first() -> None:
    batches = [batch.input_ids[:, 0].tolist() for batch in shard(5).ordered(2)]
    assert batches == [[14, 13], [12, 11], [10]]


def test_an_empty_shard_says_what_to_change() -> None:
    with refused("partition.invalid", "fewer participants or more data"):
        ClientData([], pad_id=0)
