"""A site that trains with the Hugging Face Trainer: its own collator, its own loss.

ferret simulate examples/quickstart.toml --site examples/site/hugging_face_trainer.py
ferret join https://ferret.example.org --data records.jsonl --site examples/site/hugging_face_trainer.py
"""

from __future__ import annotations

import torch
from torch.nn.utils.rnn import pad_sequence
from transformers import Trainer

from ferret_sdk import Site
from ferret_sdk.participant.transformers_trainer import RoundCallback, arguments

site = Site()


class WholeText(Trainer):
    """Counts the loss of every token, the instruction's too."""

    def compute_loss(self, model, inputs, return_outputs=False, **rest):
        outputs = model(**inputs, labels=inputs["input_ids"].where(inputs["attention_mask"].bool(), -100))
        return (outputs.loss, outputs) if return_outputs else outputs.loss


def collate(rows):
    ids = pad_sequence(rows, batch_first=True, padding_value=-1)
    return {"input_ids": ids.clamp(min=0), "attention_mask": (ids >= 0).long()}


@site.train
def train(model, examples, context):
    texts = [f"{example.instruction} {example.input} {example.output}" for example in examples]
    tokens = [torch.tensor(context.tokenizer(text)["input_ids"][:64]) for text in texts]
    trainer = WholeText(
        model=model,
        args=arguments(context, weight_decay=0.01, max_grad_norm=1.0),
        train_dataset=tokens,
        data_collator=collate,
        callbacks=[RoundCallback(context)],
    )
    return trainer.train().training_loss
