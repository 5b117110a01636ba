from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers import LlamaForCausalLM

from ferret_core.distributed.sharded_tensor import ElementRange
from ferret_core.replica.sharded import check_cover, layers_of, outline, require_plain
from tests.refusals import refused

EXPECTED = [ElementRange(0, 6), ElementRange(6, 10)]


def test_the_layers_are_what_the_authors_do_not_split(tiny_model: LlamaForCausalLM) -> None:
    assert layers_of(tiny_model) == list(tiny_model.model.layers)
    with refused("model.invalid", "has no layers"):
        layers_of(nn.Linear(2, 2))


def test_shards_that_do_not_make_up_the_model_break_the_team() -> None:
    check_cover("a.weight", EXPECTED, [6, 4])
    with refused("process_group.failed", "a.weight process 1 holds 3 elements, not 4"):
        check_cover("a.weight", EXPECTED, [6, 3])


def test_another_name_type_or_shape_is_another_model() -> None:
    outlines = [
        outline(each)
        for each in (
            nn.Linear(2, 3),
            nn.Linear(3, 2),
            nn.Linear(2, 3, bias=False),
            nn.Linear(2, 3, dtype=torch.float16),
        )
    ]
    assert len(set(outlines)) == 4
    assert outline(nn.Linear(2, 3)) == outlines[0]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_quantised_weights_are_refused(dtype: torch.dtype) -> None:
    weight = nn.Parameter(torch.zeros(2, 2).to(dtype), requires_grad=False)
    with refused("model.invalid", "is quantised", field="model.layers.0.mlp.weight"):
        require_plain("model.layers.0.mlp.weight", weight)


def test_a_class_of_tensors_as_torchao_has_is_refused() -> None:
    class Packed(torch.Tensor):
        pass

    weight = nn.Parameter(torch.zeros(2, 2).as_subclass(Packed))
    with refused("model.invalid", "Packed"):
        require_plain("weight", weight)


def test_a_single_number_cannot_be_cut_up() -> None:
    with refused("model.invalid", "single number"):
        require_plain("scale", nn.Parameter(torch.tensor(1.0)))
