from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from ferret_core.distributed import process_group, sharded_tensor
from ferret_core.distributed.sharded_tensor import ElementRange, ranges


def test_rows_are_cut_as_fsdp_cuts_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_group, "_current", SimpleNamespace(size=4, rank=3))
    assert ranges(torch.empty(5, 3)) == [
        ElementRange(0, 6),
        ElementRange(6, 12),
        ElementRange(12, 15),
        ElementRange(15, 15),
    ]
    assert ranges(torch.empty(8)) == [ElementRange(0, 2), ElementRange(2, 4), ElementRange(4, 6), ElementRange(6, 8)]
    for rows in range(1, 20):
        chunks = torch.arange(rows).chunk(4)
        assert [part.length for part in ranges(torch.empty(rows)) if part.length] == [len(chunk) for chunk in chunks]


def test_what_a_process_alone_has_is_no_shard() -> None:
    weight = torch.ones(2, 3, requires_grad=True)
    assert not sharded_tensor.is_shard(weight)
    assert sharded_tensor.local(weight).shape == (2, 3)
    assert sharded_tensor.local(weight).data_ptr() == weight.data_ptr()
