"""Models of a given shape with random weights: enough to measure what a round costs, and nothing about quality."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ferret_core import sample
from ferret_core.models.architecture import LLAMAS, LayerSizes
from ferret_core.protocol.errors import FerretError
from ferret_core.system.device import chosen_device

if TYPE_CHECKING:
    from transformers import LlamaConfig

TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
CONTEXT = 2048
HEAD = 64


def model_of(name: str, folder: Path) -> Path:
    """Returns the folder of a model of this shape below ``folder``, creating it if needed.

    ``name`` is one of ``LLAMAS``, or ``HIDDEN/LAYERS`` such as ``512/8``. Weights are random and stored as bfloat16,
    which loses nothing; the tokenizer is that of Ferret's demo. Raises ``request.invalid`` for another name.
    """
    shape = LLAMAS.get(name) or _custom(name)
    path = folder / f"random-{name.replace('/', 'x')}"
    if not path.exists():
        _make(shape, path)
    return path


def _custom(name: str) -> LayerSizes:
    found = re.fullmatch(r"(\d+)/(\d+)", name)
    if not found or int(found[1]) % HEAD or not int(found[1]) or not int(found[2]):
        message = f"choose one of {', '.join(LLAMAS)}, or HIDDEN/LAYERS with HIDDEN a multiple of {HEAD}, e.g. 512/8"
        raise FerretError.of_field("request.invalid", "--shape", name, message)
    hidden, layers = int(found[1]), int(found[2])
    heads = hidden // HEAD
    return LayerSizes(hidden, layers, 4 * hidden, heads, heads, 32_000)


def config_of(shape: LayerSizes) -> LlamaConfig:
    """The configuration of a model of this shape, in bf16."""
    import torch
    from transformers import LlamaConfig

    return LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        intermediate_size=shape.mlp,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=False,
        dtype=torch.bfloat16,
    )


def _make(shape: LayerSizes, path: Path) -> None:
    """Creates the folder as a draft and renames it: an existing folder is complete.

    A GPU, if present, draws the weights: a processor takes minutes for billions.
    """
    import torch
    from transformers import LlamaForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    config = config_of(shape)
    draft = path.with_name(f".{path.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    with torch.random.fork_rng(), chosen_device():
        torch.manual_seed(0)
        LlamaForCausalLM._from_config(config, dtype=torch.bfloat16).save_pretrained(draft)
    for name in TOKENIZER_FILES:
        shutil.copy(sample.model_path() / name, draft / name)
    draft.rename(path)
