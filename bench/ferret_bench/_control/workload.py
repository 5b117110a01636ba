"""A federated run with very cheap mathematics, so that the measured time is the service's.

A model of some 20,000 random weights, and one file of examples per owner. So an owner may be a simulated client or a
real participant, and trains on the same examples.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch

from ferret_core import sample
from ferret_core.protocol.spec import ExperimentSpec

WORDS = ("red", "green", "blue", "fish", "bird", "tree", "sun", "moon", "rain", "snow")
EXAMPLES = 4
"""Examples per owner."""


class Workload:
    """The model and the examples of ``owners`` in ``folder``; every owner is a label of the training examples."""

    def __init__(self, folder: Path, owners: int) -> None:
        self.folder = folder
        self.owners = owners
        folder.mkdir(parents=True, exist_ok=True)
        _write_model(folder / "model")
        _write(self.examples, [row for owner in range(owners) for row in _rows(owner)])
        _write(folder / "test.jsonl", _rows(0))

    @property
    def examples(self) -> Path:
        """The file with all owners' examples."""
        return self.folder / "train.jsonl"

    def deal_out(self, real: int) -> tuple[Path, list[Path]]:
        """Returns the examples without the last ``real`` owners', and theirs, one file each."""
        simulated = self.folder / f"train-{self.owners - real}.jsonl"
        _write(simulated, [row for owner in range(self.owners - real) for row in _rows(owner)])
        files = [self.folder / f"owner-{owner}.jsonl" for owner in range(self.owners - real, self.owners)]
        for owner, file in enumerate(files, self.owners - real):
            _write(file, _rows(owner))
        return simulated, files

    def spec(self, rounds: int, *, real: int = 0, **changes: Any) -> ExperimentSpec:
        """Every owner takes part in every round, the last ``real`` as real participants. Evaluated only at the end."""
        train, _ = self.deal_out(real)
        precision = "float32"  # with participants at the edge or without
        local = {"learning_rate": 1e-2, "steps": 1, "batch_size": 1, "accumulation": 1, "precision": precision}
        given = {
            "name": "next to no mathematics",
            "seed": 5,
            "rounds": rounds,
            "model": {"source": str(self.folder / "model")},
            "dataset": {"name": "jsonl", "train": str(train), "test": str(self.folder / "test.jsonl")},
            "partition": {"name": "natural"},
            "participants": {"simulated": self.owners - real, "edge": real},
            "algorithm": {"name": "ferret", "K": 256, "local": local},
            "evaluation": {"every": rounds, "examples": EXAMPLES, "generate_examples": 0},
            "checkpoint": {"every": rounds},
        }
        return ExperimentSpec.model_validate(given | changes)


def _rows(owner: int) -> list[dict[str, str]]:
    words = [WORDS[(owner + number) % len(WORDS)] for number in range(EXAMPLES)]
    return [{"instruction": "Repeat.", "input": word, "output": word, "label": f"owner-{owner:06}"} for word in words]


def _write(file: Path, rows: list[dict[str, str]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write_model(folder: Path) -> None:
    """Writes the demo's tokenizer with random weights."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(sample.model_path() / name, folder / name)
    vocabulary = json.loads((sample.model_path() / "config.json").read_text())["vocab_size"]
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=128,
        tie_word_embeddings=True,
        eos_token_id=1,
        pad_token_id=0,
    )
    with torch.random.fork_rng([]):
        torch.manual_seed(7)
        LlamaForCausalLM(config).save_pretrained(folder)
