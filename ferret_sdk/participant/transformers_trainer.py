"""A Hugging Face ``Trainer`` within a round: the site's own collator, loss and data, the experiment's numbers of steps.

::

    @site.train
    def train(model, examples, context):
        trainer = MyTrainer(
            model=model,
            args=arguments(context),
            train_dataset=my_dataset(examples, context.tokenizer),
            data_collator=my_collator,
            callbacks=[RoundCallback(context)],
        )
        return trainer.train().training_loss
"""

from __future__ import annotations

import tempfile
from typing import Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from ferret_core.training.custom_training import TrainingContext

SEEDS = 1 << 32
"""Number of seeds of NumPy, and so of the ``Trainer``."""


class RoundCallback(TrainerCallback):
    """Reports each optimizer step to the round. Ends training if the lease is lost or the site's terms require it."""

    def __init__(self, context: TrainingContext) -> None:
        self._context = context

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **rest: Any) -> None:
        self._context.on_step(state.global_step)


def arguments(context: TrainingContext, **changes: Any) -> TrainingArguments:
    """Returns a ``Trainer``'s arguments with the round's steps, rate, batch size and seed. ``changes`` override them.

    Nothing is saved, logged elsewhere or reported: Ferret stores the round. The rate is constant, because the
    experiment's schedule spans its rounds.
    """
    given: dict[str, Any] = {
        "output_dir": tempfile.gettempdir(),
        "max_steps": context.steps,
        "learning_rate": context.learning_rate,
        "lr_scheduler_type": "constant",
        "per_device_train_batch_size": context.batch_size,
        "seed": context.seed % SEEDS,
        "use_cpu": context.device.type == "cpu",
        "dataloader_pin_memory": context.device.type != "cpu",
        "save_strategy": "no",
        "logging_strategy": "no",
        "report_to": [],
        "disable_tqdm": True,
        "remove_unused_columns": False,
    }
    return TrainingArguments(**given | changes)
