"""A site that trains by a loop of its own: AdamW, with every gradient clipped.

ferret simulate examples/quickstart.toml --site examples/site/own_loop.py
ferret join https://ferret.example.org --data records.jsonl --site examples/site/own_loop.py
"""

from __future__ import annotations

import torch

from ferret_sdk import Site

site = Site()


@site.train
def train(model, examples, context):
    """Moves ``model``; what is sent follows from how far. Returns the mean loss of its steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    losses = []
    for step, batch in enumerate(context.batches(), start=1):
        loss = model(**batch).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        context.on_step(step)
    return sum(losses) / len(losses)


@site.evaluate
def evaluate(model, examples, context):
    """The round's model on this site's own examples, before it is trained."""
    losses = [model(**batch).loss.item() for batch in context.every_example()]
    return sum(losses) / len(losses)
