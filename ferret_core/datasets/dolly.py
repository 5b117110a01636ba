"""Dolly: 15,011 instructions and answers by the staff of Databricks in eight categories, one of them held out.

Conover et al., "Free Dolly: Introducing the World's First Truly Open Instruction-Tuned LLM", 2023,
https://www.databricks.com/blog/2023/04/12/dolly-first-open-commercially-viable-instruction-tuned-llm; CC BY-SA 3.0. The
label is the category. The Ferret paper evaluates on "the final task" and trains on the seven others: in FedKSeed (Qin
et al., ICML 2024, https://arxiv.org/abs/2312.06353), which it follows in this, categories are numbered in alphabetical
order and the last one is held out. That is ``summarization`` (1,188 examples). A validation split follows the same
rule: it takes the last of the remaining categories, ``open_qa``.

Read from the official ``databricks-dolly-15k.jsonl`` (plain or ``.gz``) or, without ``path``, from the official
repository on the Hugging Face hub.
"""

from __future__ import annotations

from collections.abc import Set
from typing import Self

from pydantic import Field, model_validator

from ferret_core.datasets._hub import OPTION, download
from ferret_core.datasets._json import read_lines
from ferret_core.datasets.base import Example
from ferret_core.protocol import limits
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import StrictModel

FILE = "databricks-dolly-15k.jsonl"


class Config(StrictModel):
    """A local file, or a hub repository, and the category to evaluate on."""

    path: limits.Path | None = Field(default=None, description="Official JSON Lines file, plain or .gz")
    hub: limits.HubName = Field(
        default="databricks/databricks-dolly-15k", description="Hub repository, used without path"
    )
    revision: limits.Revision | None = Field(default=None, description="Commit or tag of the hub repository")
    held_out: limits.Label = Field(
        default="summarization", description="Category to evaluate on; the others are for training"
    )

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.path is not None and self.revision is not None:
            raise ValueError("revision is for the hub: leave it out with a local file")
        return self


class Dataset:
    """Examples in the order of the file; ``dataset.invalid`` names file, line and field, or the category."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def train(self) -> list[Example]:
        """Returns the examples of every category except the held-out one."""
        return self._split()[0]

    def test(self) -> list[Example]:
        """Returns the examples of the held-out category."""
        return self._split()[1]

    def first_held_out(self, labels: Set[str]) -> list[str]:
        """Returns the labels in reverse alphabetical order, as for the test."""
        return sorted(labels, reverse=True)

    def _split(self) -> tuple[list[Example], list[Example]]:
        examples, held_out = self._read(), self.config.held_out
        categories = sorted({example.label for example in examples})
        if held_out not in categories:
            message = f"no example has this category; the file has {len(categories)} others"
            raise FerretError.of_field("dataset.invalid", "dataset.held_out", held_out, message)
        if len(categories) == 1:
            message = "is the only category, so none is left to train on: give the whole file"
            raise FerretError.of_field("dataset.invalid", "dataset.held_out", held_out, message)
        train = [example for example in examples if example.label != held_out]
        return train, [example for example in examples if example.label == held_out]

    def _read(self) -> list[Example]:
        config = self.config
        if config.path is not None:
            lines = read_lines(config.path, "dataset.path")
        else:
            lines = read_lines(download(config.hub, config.revision, FILE), OPTION)
        return [
            Example(
                line.text("instruction"), line.text_or_empty("context"), line.text("response"), line.text("category")
            )
            for line in lines
        ]
