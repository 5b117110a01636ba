from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import PreTrainedTokenizerFast

from ferret_core.algorithms import fedit, fedprompt
from ferret_core.datasets._client_data import ClientData, Encoded
from ferret_core.evaluation.generate import generate
from ferret_core.models.parameters import trainable
from ferret_core.training.loss import response_loss

LONG, SHORT = Encoded([0, 5, 6], [7, 8, 9, 1]), Encoded([0, 9], [4, 1])
PROMPTS = [[0, 17, 40, 5, 99, 61, 30], [0, 8], [0, 120, 77, 11]]


@pytest.fixture
def prompted(tiny_model: Any) -> Any:
    """A soft prompt of 5 tokens, in a model whose attention is sharp enough for it, and for places, to count."""
    with torch.no_grad():
        for parameter in tiny_model.model.layers.parameters():
            parameter *= 15
    return fedprompt.Algorithm(fedprompt.Config(virtual_tokens=5)).prepare(tiny_model, 3)


def by_hand(model: Any, prompt: list[int], count: int) -> list[int]:
    """Greedy answers by a forward pass for every token, without padding."""
    ids = list(prompt)
    for _ in range(count):
        ids.append(int(model(input_ids=torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


def test_the_loss_is_taken_behind_the_prompt(prompted: Any) -> None:
    nll, tokens = response_loss(prompted, next(ClientData([LONG, SHORT], pad_id=2).ordered(2)))
    expected = 0.0
    for prompt, response in (LONG, SHORT):
        embeddings = prompted.get_input_embeddings()(torch.tensor([[*prompt, *response]]))
        whole = torch.cat([prompted.get_prompt(1), embeddings], dim=1)
        logs = prompted.get_base_model()(inputs_embeds=whole).logits[0].log_softmax(-1)
        expected -= sum(logs[5 + len(prompt) - 1 + i, token].item() for i, token in enumerate(response))
    assert tokens == 6
    assert nll.item() == pytest.approx(expected, rel=1e-5)


def test_answers_follow_the_prompt_and_not_their_neighbours(
    prompted: Any, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    together = generate(prompted, tiny_tokenizer, PROMPTS, 6, batch_size=3)
    assert together == [str(tiny_tokenizer.decode(by_hand(prompted, prompt, 6))).strip() for prompt in PROMPTS]
    assert together == generate(prompted, tiny_tokenizer, PROMPTS, 6, batch_size=1)
    assert together != generate(prompted.get_base_model(), tiny_tokenizer, PROMPTS, 6, batch_size=3)


def test_answers_come_from_the_adapted_layers(tiny_model: Any, tiny_tokenizer: PreTrainedTokenizerFast) -> None:
    model: Any = fedit.Algorithm(fedit.Config(targets=["down_proj"])).prepare(tiny_model, 3)
    before = generate(model, tiny_tokenizer, PROMPTS, 6, batch_size=3)
    with torch.no_grad():
        for parameter in trainable(model).values():
            parameter.copy_(torch.linspace(-1, 1, parameter.numel()).view_as(parameter).sin())
    after = generate(model, tiny_tokenizer, PROMPTS, 6, batch_size=3)
    assert after == [str(tiny_tokenizer.decode(by_hand(model, prompt, 6))).strip() for prompt in PROMPTS]
    assert after != before
    assert tiny_model.generation_config.eos_token_id == tiny_tokenizer.eos_token_id, "and its settings are put back"
