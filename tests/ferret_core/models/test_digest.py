"""A model's bytes, chunk after chunk."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ferret_core.models import digest

KINDS = (torch.float32, torch.bfloat16, torch.bool, torch.int64)


def joined(chunks) -> bytes:
    """What is read of each chunk before the next is asked for."""
    return b"".join(chunk.numpy().tobytes() for chunk in chunks)


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from(KINDS)), max_size=5))
def test_they_are_the_tensors_memory_in_order(sizes) -> None:
    tensors = [torch.randn(2, size).to(kind) for size, kind in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digest, "CHUNK", 24)
        expected = b"".join(tensor.view(torch.uint8).numpy().tobytes() for tensor in tensors if tensor.numel())
        assert joined(digest.host_bytes(tensors)) == expected


def test_strided_tensors_and_single_numbers_are_read_as_what_they_show() -> None:
    tensors = [torch.arange(6.0).reshape(2, 3).T, torch.tensor(3.0)]
    assert joined(digest.host_bytes(tensors)) == torch.tensor([0.0, 3, 1, 4, 2, 5, 3]).numpy().tobytes()


@given(st.integers(0, 5), st.integers(1, 7))
def test_two_buffers_by_turns_hold_every_chunk_until_the_next_is_asked_for(full: int, last: int) -> None:
    source = torch.randint(256, (full * 7 + last,), dtype=torch.uint8)
    assert joined(digest.prefetch_to_host(source.split(7))) == source.numpy().tobytes()
