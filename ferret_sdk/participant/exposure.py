"""The exposure of a contribution: how much it can reveal of single examples, and who will be able to read it.

With every coordinate of a block (K_l = d_l), a gradient reveals the tokens of its examples if there are few: Zhu et
al., "Deep Leakage from Gradients", NeurIPS 2019. Fewer coordinates hide the words, but reveal if a given text was among
the examples (``docs/sites/what-leaves-your-site.md`` has figures).

A participant's agreement to it and to the base model is stored: after a restart the question is not repeated, and other
base models are refused.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from pydantic import Field

from ferret_core.catalog import ResolvedExperiment
from ferret_core.models.shapes import Shapes, count
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.ids import Digest
from ferret_core.protocol.spec import StrictModel
from ferret_core.system.atomic_files import write_durably
from ferret_sdk.participant.paths import read_stored

FEW_EXAMPLES = 16
"""A contribution of fewer examples may reveal them."""
WEAK = 10.0
"""Noise with a larger ε protects little."""
LARGE_SHARE = 0.1
"""A block with more coordinates per weight may reveal its examples."""


class Exposure(StrictModel):
    """The exposure from the contributions to an experiment. The fields are upper bounds, before training."""

    examples: int = Field(description="Distinct examples that a contribution is computed from")
    sequences: int = Field(description="Sequences that a round trains on: steps × batch × accumulation")
    share: float = Field(description="Largest number of sent coordinates for each weight of a block")
    whole_blocks: int = Field(description="Blocks that are sent whole")
    separate: bool = Field(description="True if a round's update shows each contribution separately")
    least_summed: int | None = Field(
        default=None, description="Least participants in a sum, if the server learns only sums of contributions"
    )
    epsilon: float | None = Field(default=None, description="ε after all rounds, if noise in the sum hides each record")
    trusts_server: bool = Field(default=False, description="True if the server adds this noise")

    @classmethod
    def of(cls, experiment: ResolvedExperiment, shapes: Shapes, examples: int) -> Self:
        """Computes the exposure of a site with ``examples`` examples, for a model with these tuned ``shapes``."""
        trained = sequences(experiment, examples)
        share, whole = _share(experiment, shapes)
        return cls(
            examples=min(examples, trained) if trained else examples,
            sequences=trained,
            share=share,
            whole_blocks=whole,
            separate=not experiment.traits.comparable,
            least_summed=experiment.spec.secure.least_summed,
            epsilon=experiment.spec.privacy.epsilon,
            trusts_server=experiment.spec.privacy.central,
        )

    @property
    def reasons(self) -> list[str]:
        """Returns the reasons that a contribution may reveal single examples; empty if none applies."""
        if self.epsilon is not None:
            return [f"its noise allows ε = {self.epsilon:g}, which protects little"] if self.epsilon > WEAK else []
        found = {
            f"it is computed from {self.examples} examples": self.examples < FEW_EXAMPLES,
            f"it has {self.share:.2g} coordinates for each weight of a block": self.share > LARGE_SHARE,
            f"it holds {self.whole_blocks} blocks of the model whole": self.whole_blocks > 0,
        }
        return [reason for reason, applies in found.items() if applies]


def sequences(experiment: ResolvedExperiment, examples: int) -> int:
    """Counts the sequences that a round trains on, including each perturbation's; 0 without local steps. If units are
    drawn by chance, it is their expected number."""
    local, privacy = experiment.traits.local, experiment.spec.privacy
    if privacy.of_records:
        return math.ceil(privacy.rate * examples)
    return 0 if local is None else local.sequences_for(examples)


def largest_share(counts: Sequence[int], sizes: Sequence[int]) -> float:
    """Returns the largest number of coordinates for each weight, of blocks that send ``counts`` and have ``sizes``."""
    return max((sent / size for sent, size in zip(counts, sizes, strict=True)), default=0.0)


def whole_blocks(counts: Sequence[int], sizes: Sequence[int]) -> int:
    """Returns the number of blocks of these ``sizes`` that send as many coordinates as they have weights."""
    return sum(sent >= size for sent, size in zip(counts, sizes, strict=True))


def _share(experiment: ResolvedExperiment, shapes: Shapes) -> tuple[float, int]:
    """The largest number of sent coordinates for each weight of a block, and how many blocks are sent whole.

    K_l is that of an update in which all weights move alike. Without blocks, every tensor is one, and a coordinate
    takes at least one bit.
    """
    if (projection := experiment.traits.projection) is None:
        share = min(1.0, 8 * experiment.config.size(shapes).arrays / count(shapes))
        return share, 0 if experiment.traits.sparse and share < 1 else len(shapes)
    blocks = projection.cut(shapes)
    counts, sizes = projection.expected_sent(blocks), [block.size for block in blocks]
    return largest_share(counts, sizes), whole_blocks(counts, sizes)


class Agreed(StrictModel):
    """An agreement: ``base`` is the digest of the base model with its files, ``exposure`` what people consented to."""

    base: Digest | None = None
    exposure: Exposure | None = None


class Agreement:
    """Stores the agreement in the file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def require_base(self, digest: str | None) -> None:
        """Stores the first base model's digest. Later raises ``server.unexpected`` for any other digest."""
        agreed = self._read()
        if agreed.base is None:
            self._write(agreed.model_copy(update={"base": digest}))
        elif agreed.base != digest:
            message = f"is another base model than {agreed.base}, with which this participant began"
            raise FerretError.of_field("server.unexpected", "base_digest", digest, f"{message}; nothing is trained")

    def covers(self, exposure: Exposure) -> bool:
        """Returns True if people consented to this exposure."""
        return self._read().exposure == exposure

    def consent(self, exposure: Exposure) -> None:
        """Stores that people consented to this exposure."""
        self._write(self._read().model_copy(update={"exposure": exposure}))

    def _read(self) -> Agreed:
        return read_stored(self._path, Agreed, "which base model this participant began with: restore it")

    def _write(self, agreed: Agreed) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_durably(self._path, agreed.model_dump_json().encode())
