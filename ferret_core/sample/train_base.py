"""Training of the demo's base model and its tokenizer, only from the text of :mod:`ferret_core.sample.corpus`::

    python -m ferret_core.sample.train_base --out ferret_core/sample/model

It takes about ten minutes on one core. The same seed on the same machine with the same versions gives the same bytes.
"""

from __future__ import annotations

import argparse
import logging
import math
from collections.abc import Sequence
from pathlib import Path
from random import Random

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from ferret_core.datasets._base import Example
from ferret_core.datasets._client_data import IGNORED
from ferret_core.datasets._prompt import WORDINGS
from ferret_core.datasets._tokenize import shard_of
from ferret_core.sample.corpus import document, vocabulary
from ferret_core.sample.tasks import Row

CONTEXT = 512
HIDDEN, MLP, LAYERS, HEADS = 144, 400, 4, 4
STEPS, BATCH, LEARNING_RATE, WARM_UP = 9000, 28, 4e-3, 100
VOCABULARY = 1024
PAD, END = "<pad>", "</s>"
PAD_ID, END_ID = 0, 1
MARKERS = (WORDINGS["paper"].preamble, "### Instruction:", "### Input:", "### Response:")

log = logging.getLogger(__name__)


def train_tokenizer(texts: Sequence[str]) -> PreTrainedTokenizerFast:
    """Trains byte-level BPE; each of the prompt template's four fixed pieces is one token, which keeps prompts short.

    The markers include the surrounding blanks, and every piece of text starts as if after a blank, so that a word has
    the same token everywhere.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(MARKERS),
        special_tokens=[PAD, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens([AddedToken(marker, lstrip=True, rstrip=True, normalized=False) for marker in MARKERS])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=PAD, eos_token=END, model_max_length=CONTEXT)


def new_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=HIDDEN,
            intermediate_size=MLP,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            max_position_embeddings=CONTEXT,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=END_ID,
            pad_token_id=PAD_ID,
        )
    )
    model.set_attn_implementation("eager")  # at this size fused attention is slower on a CPU
    return model


def encode(text: Row | str, tokenizer: PreTrainedTokenizerFast) -> list[int]:
    """Returns the token ids of one document, with end-of-text; a task is put into the prompt template."""
    if isinstance(text, str):
        return [*tokenizer(text).input_ids, END_ID]
    (encoded,) = shard_of([Example(*text)], tokenizer, CONTEXT).examples
    return encoded.prompt + encoded.response


def next_token_loss(model: LlamaForCausalLM, sequences: Sequence[list[int]]) -> Tensor:
    """Returns the mean −log p over all tokens except the first of each sequence, computed in bfloat16."""
    longest = max(map(len, sequences))
    ids = torch.tensor([[*tokens, *[PAD_ID] * (longest - len(tokens))] for tokens in sequences])
    labels = torch.tensor([[*tokens, *[IGNORED] * (longest - len(tokens))] for tokens in sequences])
    with torch.autocast("cpu", torch.bfloat16):
        loss = model(input_ids=ids, labels=labels).loss
    assert loss is not None
    return loss


def train(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, rng: Random, steps: int) -> None:
    """Trains with AdamW, a warm-up and a cosine decay to zero; every document is newly drawn."""
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min(1.0, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * step / steps)) / 2
    )
    for step in range(1, steps + 1):
        loss = next_token_loss(model, [encode(document(rng), tokenizer) for _ in range(BATCH)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if step % 100 == 0:
            log.info("step %d of %d: loss %.3f", step, steps, loss.item())


def write_base(out: Path, *, steps: int = STEPS, seed: int = 0) -> None:
    """Trains tokenizer and model and writes them to ``out`` in Hugging Face layout, weights in half precision."""
    torch.manual_seed(seed)
    rng = Random(seed)
    tokenizer = train_tokenizer(vocabulary(rng, each=300))
    model = new_model(tokenizer)
    train(model, tokenizer, rng, steps)
    model.half().save_pretrained(out)
    tokenizer.save_pretrained(out)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the demo's base model and its tokenizer.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write them to")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    torch.set_num_threads(1)
    write_base(options.out, steps=options.steps, seed=options.seed)


if __name__ == "__main__":
    main()
