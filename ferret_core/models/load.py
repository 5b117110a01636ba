"""Loads a causal language model and its tokenizer: by folder, or by hub name and revision. Never runs remote code."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ModelSpec


class LoadedModel(NamedTuple):
    """A model in evaluation mode, and its tokenizer."""

    model: nn.Module
    tokenizer: Any


def context_of(model: nn.Module) -> int:
    """The longest sequence, in tokens, for which ``model`` has positions; a soft prompt takes some of them."""
    return int(getattr(model.config, "max_position_embeddings", 2048)) - virtual_tokens(model)


def virtual_tokens(model: nn.Module) -> int:
    """The length of the soft prompt that ``model`` puts before every sequence; 0 for a model without."""
    return getattr(getattr(model, "active_peft_config", None), "num_virtual_tokens", 0)


def load(spec: ModelSpec) -> LoadedModel:
    """The model of ``spec`` in its ``dtype``, on the CPU; ``model.invalid`` names the source and what is wrong."""
    _look(spec)
    from safetensors import SafetensorError
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()

    options: dict[str, Any] = {"revision": spec.revision} if spec.revision else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(spec.source, trust_remote_code=False, **options)
        # With output_loading_info the answer is a pair, which the library's types do not say.
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            spec.source,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=getattr(torch, spec.dtype),
            output_loading_info=True,
            **options,
        )
    except (OSError, ValueError, KeyError, RuntimeError, ImportError, SafetensorError) as error:
        raise _invalid(spec, _first_line(error)) from error
    model, info = loaded
    if info["missing_keys"]:
        # transformers would fill them with random numbers, others on every machine.
        raise _invalid(spec, f"has no weights for {', '.join(sorted(info['missing_keys'])[:3])}")
    return LoadedModel(model.eval(), tokenizer)


def _look(spec: ModelSpec) -> None:
    """Says plainly what a local folder lacks, where transformers would speak of hub names."""
    path = Path(spec.source).expanduser()
    local = path.is_absolute() or spec.source.startswith((".", "~")) or path.exists()
    if not local:
        return
    if not path.is_dir():
        raise _invalid(spec, "is not a folder")
    if not (path / "config.json").is_file():
        raise _invalid(spec, "holds no config.json: not a Hugging Face model folder")
    if not any(path.glob("*.safetensors")):
        raise _invalid(spec, "holds no .safetensors weights")


def _invalid(spec: ModelSpec, message: str) -> FerretError:
    return FerretError.of_field("model.invalid", "model.source", spec.source, message)


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
