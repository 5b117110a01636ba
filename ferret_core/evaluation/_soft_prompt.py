"""Generation by a model with PEFT's adapters, and the place of a soft prompt in a left-padded batch."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from ferret_core.models.load import virtual_tokens


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
