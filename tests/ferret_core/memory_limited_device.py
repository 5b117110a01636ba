"""A device whose memory is short."""

from __future__ import annotations

import copy
from typing import Any

import torch
from transformers import LlamaForCausalLM


def small(model: LlamaForCausalLM, sequences: int, error: Exception | None = None) -> LlamaForCausalLM:
    """``model`` on a device with room for the activations of so many ``sequences``."""
    module = copy.deepcopy(model)

    def allocate(_: Any, __: Any, given: dict[str, Any]) -> None:
        if len(given["input_ids"]) > sequences:
            raise error or torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB")

    module.register_forward_pre_hook(allocate, with_kwargs=True)
    return module
