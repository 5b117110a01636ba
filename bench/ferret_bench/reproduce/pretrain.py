"""Small models of a given size, trained from scratch on instruction data, for the study over size.

    python -m ferret_bench.reproduce.pretrain 15M --data DIR --tokenizer FOLDER --out FOLDER --minutes 25

The text is Natural Instructions, CodeAlpaca and Dolly, prompts and answers one after the other, cut into windows. GSM8K
is left out: it is what the study tunes on. Products are taken in bfloat16. Nothing but the time limits the training, so
a run is not repeated to the bit; the number of tokens and its final loss go into ``pretrain.json`` next to the
weights.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ferret_core import catalog
from ferret_core.datasets.tokenization.prompt import prompt_of
from ferret_core.protocol.spec import PluginChoice
from ferret_core.system.device import chosen_device, place

TEXTS = {
    "natural_instructions": ("tasks", "natural_instructions/tasks.jsonl.gz", {}),
    "codealpaca": ("path", "codealpaca_lang10.jsonl.gz", {"language": "language", "exclude": []}),
    "dolly": ("path", "databricks-dolly-15k.jsonl.gz", {}),
}
"""By dataset: the option that names its file, the file, and other options."""
WINDOW = 256
BATCH = 8
RATE = 1e-3
WARM_UP = 0.05
"""Share of the time in which the rate rises; in the rest it falls to 0 along a cosine."""
SEED = 0


class Size(NamedTuple):
    """Sizes of a LLaMA with tied embeddings."""

    hidden: int
    layers: int
    mlp: int
    heads: int


SIZES = {"toy": Size(32, 1, 64, 2), "15M": Size(384, 8, 1024, 6), "60M": Size(768, 8, 2048, 12)}


def main(
    size: Annotated[str, typer.Argument(help=f"One of {', '.join(SIZES)}")],
    data: Annotated[Path, typer.Option(help="Folder with the official files")],
    tokenizer: Annotated[Path, typer.Option(help="Folder of a model with the tokenizer to use")],
    out: Annotated[Path, typer.Option(help="Folder for the model")],
    minutes: Annotated[float, typer.Option(help="Minutes to train")] = 25,
    threads: Annotated[int, typer.Option()] = 1,
    batch: Annotated[int, typer.Option(help="Windows of 256 tokens per step")] = BATCH,
) -> None:
    """Train a small model for the study over size."""
    torch.set_num_threads(threads)
    pretrain(size, instructions(data), tokenizer, out, 60 * minutes, batch)


def instructions(data: Path) -> list[PluginChoice]:
    """The datasets in a folder with the official files."""
    return [
        PluginChoice.model_validate({"name": name, option: str(data / file), **others})
        for name, (option, file, others) in TEXTS.items()
    ]


def pretrain(
    size: str, sources: Sequence[PluginChoice], tokenizer: Path, out: Path, seconds: float, batch: int
) -> dict[str, Any]:
    """Trains on these datasets' texts on ``FERRET_DEVICE``. Returns the content of ``pretrain.json``."""
    torch.manual_seed(SEED)
    words: Any = AutoTokenizer.from_pretrained(tokenizer)
    model = LlamaForCausalLM(_config(SIZES[size], words))
    place(model, chosen_device())
    figures = {"size": size, **_train(model, _windows(_text(sources, words), batch), seconds)}
    model.eval().save_pretrained(out)
    words.save_pretrained(out)
    (out / "pretrain.json").write_text(json.dumps(figures, indent=2) + "\n")
    return figures


def _config(size: Size, words: Any) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=len(words),
        hidden_size=size.hidden,
        intermediate_size=size.mlp,
        num_hidden_layers=size.layers,
        num_attention_heads=size.heads,
        num_key_value_heads=size.heads,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=words.bos_token_id,
        eos_token_id=words.eos_token_id,
        pad_token_id=words.pad_token_id,
    )


def _text(sources: Sequence[PluginChoice], words: Any) -> torch.Tensor:
    """Returns all tokens, int64, example after example, in random order of the examples."""
    examples = [example for source in sources for example in catalog.dataset(source).train()]
    order = np.random.default_rng(SEED).permutation(len(examples))
    texts = [f"{prompt_of(examples[index])} {examples[index].output}" for index in order]
    begin = [] if words.bos_token_id is None else [words.bos_token_id]
    parts = [[*begin, *words(text, add_special_tokens=False).input_ids, words.eos_token_id] for text in texts]
    return torch.tensor(list(chain.from_iterable(parts)))


def _windows(tokens: torch.Tensor, batch: int) -> Iterator[torch.Tensor]:
    """Endless batches, int64 (batch, WINDOW)."""
    draw = np.random.default_rng(SEED + 1)
    while True:
        starts = draw.integers(0, len(tokens) - WINDOW, batch)
        yield torch.stack([tokens[start : start + WINDOW] for start in starts])


def _train(model: LlamaForCausalLM, batches: Iterator[torch.Tensor], seconds: float) -> dict[str, Any]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.1)
    device = next(model.parameters()).device
    begin, losses, tokens = time.monotonic(), list[float](), 0
    while (done := (time.monotonic() - begin) / seconds) < 1:
        share = min(done / WARM_UP, (1 + math.cos(math.pi * done)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = RATE * max(share, 0.01)
        batch = next(batches).to(device)
        tokens += batch.numel()
        with torch.autocast(device.type, torch.bfloat16):
            loss = model(input_ids=batch, labels=batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if len(losses) % 50 == 0:
            typer.echo(f"{done:5.0%}  step {len(losses)}  loss {np.mean(losses[-50:]):.3f}", err=True)
    weights = sum(weight.numel() for weight in model.parameters())
    return {"parameters": weights, "tokens": tokens, "loss": float(np.mean(losses[-50:]))}


if __name__ == "__main__":
    typer.run(main)
