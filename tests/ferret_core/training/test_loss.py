from __future__ import annotations

import pytest
import torch
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import ClientData, Encoded
from ferret_core.training.loss import response_loss

LONG, SHORT = Encoded([0, 5, 6], [7, 8, 9, 1]), Encoded([0, 9], [4, 1])


def test_it_is_the_sum_over_response_tokens(tiny_model: LlamaForCausalLM) -> None:
    batch = next(ClientData([LONG], pad_id=2).ordered(1))
    nll, tokens = response_loss(tiny_model, batch)
    probabilities = tiny_model(torch.tensor([[0, 5, 6, 7, 8, 9, 1]])).logits[0].log_softmax(-1)
    by_hand = -torch.stack([probabilities[2 + i, token] for i, token in enumerate(LONG.response)]).sum()
    assert tokens == 4
    assert nll.item() == pytest.approx(by_hand.item(), rel=1e-6)
    assert nll.dtype == torch.float32


def test_padding_and_prompts_do_not_count(tiny_model: LlamaForCausalLM) -> None:
    both = response_loss(tiny_model, next(ClientData([LONG, SHORT], pad_id=2).ordered(2)))
    single = [response_loss(tiny_model, next(ClientData([item], pad_id=2).ordered(1))) for item in (LONG, SHORT)]
    assert both.tokens == 6
    assert both.nll.item() == pytest.approx(sum(loss.nll.item() for loss in single), rel=1e-5)
