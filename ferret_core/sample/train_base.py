"""Training of the demo's base model and its tokenizer, only from the text made here::

    python -m ferret_core.sample.train_base --out ferret_core/sample/model

It takes about ten minutes on one core. The same seed on the same machine with the same versions gives the same bytes.

The text is plain prose about the small world, and the known tasks as instructions. The prose contains the skills behind
most of the other tasks (counting, adding, reversing, …) in different words, as a real base model has read about its
later instructions.
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

from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.client_data import IGNORED
from ferret_core.datasets.tokenization.prompt import WORDINGS
from ferret_core.datasets.tokenization.tokenize import shard_of
from ferret_core.sample.tasks import (
    ADJECTIVES,
    ANIMALS,
    KINDS,
    KNOWN,
    NAMES,
    NUMBERS,
    PAST,
    PLACES,
    TASKS,
    Row,
    article,
    row,
    scene,
    words,
)

KNOWN_SHARE = 0.35
OPEN_SHARE = 0.05
OPEN = ("Say something.", "Tell me more.", "Go on.", "What else?")
CONTEXT = 512
HIDDEN, MLP, LAYERS, HEADS = 144, 400, 4, 4
STEPS, BATCH, LEARNING_RATE, WARM_UP = 9000, 28, 4e-3, 100
VOCABULARY = 1024
PAD, END = "<pad>", "</s>"
PAD_ID, END_ID = 0, 1
MARKERS = (WORDINGS["paper"].preamble, "### Instruction:", "### Input:", "### Response:")
log = logging.getLogger(__name__)


def reversal(rng: Random) -> str:
    chosen = words(rng, 2, 4)
    return f"{' '.join(chosen)}, and backwards {' '.join(reversed(chosen))}."


def counting(rng: Random) -> str:
    chosen = words(rng, 2, 8)
    return f"{' '.join(chosen)}: {NUMBERS[len(chosen)]} words."


def sums(rng: Random) -> str:
    a, b = rng.randint(2, 9), rng.randint(2, 9)
    some, others = rng.sample(list(ANIMALS.values()), 2)
    return f"{NUMBERS[a]} {some} with {NUMBERS[b]} {others} are {NUMBERS[a + b]} in all."


def yesterday(rng: Random) -> str:
    told = scene(rng)
    return f"{told} So {told.name} {PAST[told.verb]} the {told.animal}, {told.colour}, from the {told.place}."


def kinds(rng: Random) -> str:
    kind, members = rng.choice(list(KINDS.items()))
    return f"The {rng.choice(ADJECTIVES)} {rng.choice(members)} is {article(kind)}."


def whereabouts(rng: Random) -> str:
    homes = list(zip(rng.sample(NAMES, 2), rng.sample(PLACES, 2), strict=True))
    told = " ".join(f"{name} is in the {place}." for name, place in homes)
    return f"{told} So {' and '.join(f'look for {name} in the {place}' for name, place in rng.sample(homes, 2))}."


def echo(rng: Random) -> str:
    chosen = " ".join(words(rng, 2, 5))
    return f"{chosen}, again {chosen}."


def story(rng: Random) -> str:
    return " ".join(str(scene(rng)) for _ in range(rng.randint(1, 3)))


def talk(rng: Random) -> str:
    told = scene(rng)
    return rng.choice(
        (
            f"There are {rng.choice(NUMBERS[2:])} {rng.choice(list(ANIMALS.values()))} here.",
            f"That makes {told.name} {rng.choice(ADJECTIVES)}.",
            f"We call the {told.animal} {told.name}.",
            f"It was {told.name} who came to the {told.place}.",
            f"Look at the {told.colour} {told.animal}.",
        )
    )


PROSE = {reversal: 4, whereabouts: 4, echo: 2, yesterday: 2, counting: 1, sums: 1, kinds: 1, story: 1, talk: 1}


def document(rng: Random) -> Row | str:
    """Draws one known task, one open request or one piece of prose."""
    draw = rng.random()
    if draw < KNOWN_SHARE:
        return row(rng, rng.choice(KNOWN))
    if draw < KNOWN_SHARE + OPEN_SHARE:
        return Row(rng.choice(OPEN), " ".join(words(rng, 1, 3)), talk(rng), "open")
    return rng.choices(list(PROSE), list(PROSE.values()))[0](rng)


def vocabulary(rng: Random, each: int) -> list[str]:
    """Returns text for the tokenizer: ``each`` rows of every task, for short prompts, and as many pieces of prose."""
    asked = [row(rng, name) for name in TASKS for _ in range(each)]
    prose = [piece(rng) for piece in PROSE for _ in range(each)]
    return [
        *OPEN,
        *prose,
        *(field for example in asked for field in (example.instruction, example.input, example.output)),
    ]


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
