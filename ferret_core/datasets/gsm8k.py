"""GSM8K: 7,473 grade-school maths word problems with worked answers for training, 1,319 held out.

Cobbe et al., "Training Verifiers to Solve Math Word Problems", 2021, https://arxiv.org/abs/2110.14168; MIT licence.
Read from the official JSON Lines files (``train.jsonl`` and ``test.jsonl``, plain or ``.gz``) or, without paths, from
the official repository on the Hugging Face hub. Answers keep their ``<<a*b=c>>`` calculator marks and the closing line
``#### <number>``. It has no labels: a Dirichlet partition skews only the sizes of the shards.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ferret_core.datasets._hub import read_parquet
from ferret_core.datasets._json import read_lines
from ferret_core.datasets.base import Example
from ferret_core.protocol import limits
from ferret_core.protocol.spec import StrictModel


class Config(StrictModel):
    """Two local files, or a hub repository; files take precedence."""

    train: limits.Path | None = Field(default=None, description="Official training file, plain or .gz")
    test: limits.Path | None = Field(default=None, description="Official test file, plain or .gz")
    hub: limits.HubName = Field(default="openai/gsm8k", description="Hub repository, used without local files")
    revision: limits.Revision | None = Field(default=None, description="Commit or tag of the hub repository")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.train is None) != (self.test is None):
            raise ValueError("give both train and test, or neither to read from the hub")
        if self.train is not None and self.revision is not None:
            raise ValueError("revision is for the hub: leave it out with local files")
        return self


class Dataset:
    """The official split; ``dataset.invalid`` for files that are not GSM8K's."""

    def __init__(self, config: Config) -> None:
        self.config = config

    def train(self) -> list[Example]:
        """Returns the official training problems, in their order."""
        return self._read("train", self.config.train)

    def test(self) -> list[Example]:
        """Returns the official test problems, in their order."""
        return self._read("test", self.config.test)

    def _read(self, split: Literal["train", "test"], path: str | None) -> list[Example]:
        if path is not None:
            problems = read_lines(path, f"dataset.{split}")
        else:
            problems = read_parquet(self.config.hub, self.config.revision, f"main/{split}-00000-of-00001.parquet")
        return [Example(problem.text("question"), "", problem.text("answer")) for problem in problems]
