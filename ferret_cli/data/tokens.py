"""A model's tokenizer and context, without its weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ferret_core.datasets._base import Example
from ferret_core.datasets._client_data import Shard
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec, PromptSpec


def tokenised_by(spec: ModelSpec, prompt: PromptSpec) -> Callable[[Sequence[Example]], Shard]:
    """What makes a shard of examples as this model would be given it; ``model.invalid`` if it cannot be loaded."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    from ferret_core.datasets._tokenize import longest, shard_of
    from ferret_core.models.load import context_of

    options: dict[str, Any] = {"revision": spec.revision, "trust_remote_code": False}
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(spec.source, **options)
        config = AutoConfig.from_pretrained(spec.source, **options)
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config)
    except (OSError, ValueError, KeyError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FerretError.of_field("model.invalid", "model.source", spec.source, reason) from error
    most = longest(prompt, tokenizer, context_of(model))
    return partial(shard_of, tokenizer=tokenizer, max_tokens=most, template=prompt.template)
