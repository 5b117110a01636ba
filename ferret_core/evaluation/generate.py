"""Greedy generation in batches: the most probable token at each step, until one that ends an answer."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.nn import functional

from ferret_core.datasets.tokenization.tokenize import pad_id, response_end
from ferret_core.models.load import virtual_tokens
from ferret_core.models.parameters import inference
from ferret_core.protocol.spec import Template
from ferret_core.training.loss import device_of
from ferret_core.training.micro_batches import MicroBatches

if TYPE_CHECKING:
    from transformers import GenerationConfig, PreTrainedTokenizerBase


def transformers_model(model: Any) -> Any:
    """Returns the generating model: ``model``, or the model inside PEFT's, with adapters in its layers."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def generation_inputs(model: Any, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
    """Returns the inputs of generation: ids and mask, (sequences, tokens), and embeddings if there is a soft prompt.

    The prompt is between padding and text, at the positions of its training. PEFT's own ``generate`` puts it before the
    padding, so that an answer depends on the length of the others in its batch.
    """
    length = virtual_tokens(model)
    if not length:
        return {"input_ids": ids, "attention_mask": mask}
    places = (mask == 0).sum(1, keepdim=True) + torch.arange(length, device=mask.device)
    ids, mask = functional.pad(ids, (length, 0)), functional.pad(mask, (0, length), value=1)
    embeddings = model.get_input_embeddings()(ids)
    rows = torch.arange(len(ids), device=ids.device).unsqueeze(1)
    embeddings[rows, places] = model.get_prompt(len(ids)).to(embeddings)
    return {"input_ids": ids, "attention_mask": mask, "inputs_embeds": embeddings}


def ends_of_answer(model: Any, tokenizer: PreTrainedTokenizerBase, template: Template) -> list[int]:
    """Returns the ids that end an answer: the one after responses in training, and the authors' own."""
    authors = transformers_model(model).generation_config.eos_token_id
    found = [response_end(tokenizer, template), *(authors if isinstance(authors, list) else [authors])]
    return sorted({end for end in found if end is not None})


def generate(
    model: nn.Module,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[list[int]],
    max_new_tokens: int,
    batch_size: int,
    on_batch: Callable[[], None] = lambda: None,
    *,
    template: Template = "paper",
    min_new_tokens: int = 0,
) -> list[str]:
    """Returns one answer for each of ``prompts`` (token ids, none empty), in their order, without surrounding blanks.

    Prompts of similar length run together, longest first; a prompt and ``max_new_tokens`` must fit the model's context.
    No answer ends before ``min_new_tokens``. ``model`` is a transformers model that can generate, or one with PEFT's
    adapters; ``template`` is that of the prompts. ``on_batch`` is called before each batch; an exception in it ends the
    generation. A batch that runs out of memory is halved, and so are later ones; raises ``memory.exhausted`` if not
    even one prompt fits.
    """
    from transformers import GenerationConfig

    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        min_new_tokens=min_new_tokens,
        pad_token_id=pad_id(tokenizer),
        eos_token_id=ends_of_answer(model, tokenizer, template) or None,
    )
    fitting = MicroBatches(batch_size)
    order = sorted(range(len(prompts)), key=lambda index: -len(prompts[index]))
    answers = [""] * len(prompts)
    with inference(model), plain_settings(transformers_model(model)):
        for start in range(0, len(order), batch_size):
            on_batch()
            chosen = order[start : start + batch_size]
            batch = [prompts[index] for index in chosen]
            continued = fitting.fit(partial(_continue_in_parts, model, settings, batch))
            for index, ids in zip(chosen, continued, strict=True):
                answers[index] = str(tokenizer.decode(ids, skip_special_tokens=True)).strip()
    return answers


def _continue_in_parts(
    model: Any, settings: GenerationConfig, prompts: Sequence[list[int]], size: int
) -> list[list[int]]:
    parts = (prompts[start : start + size] for start in range(0, len(prompts), size))
    return [ids for part in parts for ids in _continue(model, settings, part)]


def _continue(model: Any, settings: GenerationConfig, prompts: Sequence[list[int]]) -> list[list[int]]:
    """Returns the new ids of each prompt, without the end of the answer. Padding is on the left, so that all end
    together.
    """
    width = max(len(prompt) for prompt in prompts)
    padding = [width - len(prompt) for prompt in prompts]
    pad, ends = settings.pad_token_id, settings.eos_token_id or []
    ids = torch.tensor([[pad] * gap + prompt for gap, prompt in zip(padding, prompts, strict=True)])
    mask = torch.tensor([[0] * gap + [1] * (width - gap) for gap in padding])
    device = device_of(model)
    given = generation_inputs(model, ids.to(device), mask.to(device))
    output: torch.Tensor = transformers_model(model).generate(**given, generation_config=settings)
    answers = output[:, given["input_ids"].shape[1] :].tolist()
    return [list(takewhile(lambda token: token not in ends, answer)) for answer in answers]


@contextmanager
def plain_settings(model: Any) -> Generator[None]:
    """Suspends the model authors' sampling settings: transformers would merge them into ours."""
    from transformers import GenerationConfig

    shipped = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = shipped
