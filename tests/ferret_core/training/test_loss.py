from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional
from transformers import LlamaForCausalLM

from ferret_core.datasets.tokenization.client_data import Batch, ClientData, Encoded
from ferret_core.training import loss
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


def test_chunks_give_the_same_gradients(tiny_model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = next(ClientData([LONG, SHORT], pad_id=2).ordered(2))
    whole = _gradients(tiny_model, batch)
    monkeypatch.setattr(loss, "CHUNK", 2 * tiny_model.config.vocab_size)
    torch.testing.assert_close(_gradients(tiny_model, batch), whole)
    for weight in tiny_model.lm_head.parameters():
        weight.requires_grad_(False)
    frozen = _gradients(tiny_model, batch)
    torch.testing.assert_close(frozen, {name: whole[name] for name in frozen})


def test_never_holds_more_than_a_chunk_of_logits(tiny_model: LlamaForCausalLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss, "CHUNK", 3 * tiny_model.config.vocab_size)
    largest: list[int] = []
    matrix_product = functional.linear

    def seen(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        result = matrix_product(rows, weight, bias)
        largest.append(result.numel() if len(weight) == tiny_model.config.vocab_size else 0)
        return result

    monkeypatch.setattr(functional, "linear", seen)
    response_loss(tiny_model, next(ClientData([LONG, SHORT], pad_id=2).ordered(2))).nll.backward()
    assert 0 < max(largest) <= loss.CHUNK


def test_capped_logits_give_the_models_own_loss(tiny_model: LlamaForCausalLM) -> None:
    class Capped(LlamaForCausalLM):
        """Changes its logits after the last layer, as Gemma 2 does."""

        def forward(self, **inputs: Any) -> Any:
            outputs = super().forward(**inputs)
            return type(outputs)(logits=outputs.logits.tanh())

    capped = Capped(tiny_model.config).eval()
    batch = next(ClientData([LONG], pad_id=2).ordered(1))
    probabilities = capped(input_ids=batch.input_ids).logits[0].log_softmax(-1)
    by_hand = -torch.stack([probabilities[2 + i, token] for i, token in enumerate(LONG.response)]).sum()
    assert response_loss(capped, batch).nll.item() == pytest.approx(by_hand.item(), rel=1e-6)


def _gradients(model: LlamaForCausalLM, batch: Batch) -> dict[str, torch.Tensor]:
    model.zero_grad()
    response_loss(model, batch).nll.backward()
    return {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
