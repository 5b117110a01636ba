"""Options of local training; read and checked without loading torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal, Self, cast

from pydantic import Field, ValidationInfo, field_validator, model_validator

from ferret_core.protocol.limits import MAX_EPOCHS, MAX_REAL, MAX_SEQUENCES, MAX_STEPS, Label
from ferret_core.protocol.rounding import ceil_share
from ferret_core.protocol.spec import StrictModel
from ferret_core.training import optimizer_options
from ferret_core.training.optimizer_options import OptimizerName, Option

FINAL = 0.1
"""Share of the local rate in the last round of a schedule."""
Precision = Literal["auto", "float32", "bfloat16", "pure_bfloat16"]
LOCAL = "Local training within a round"
"""Description of the local options in the schema of every algorithm that has them."""


NORMALIZED = {"learning_rate": 0.1, "schedule": "linear"}
"""Defaults of a normalized optimizer: a step length, which means the same for a model of any size."""


class LocalConfig(StrictModel):
    """The local optimizer; steps, batch size and accumulation default to the paper's."""

    optimizer: OptimizerName = Field(
        default="adam", description="First-order method: one of torch.optim, or normalized"
    )
    learning_rate: float = Field(
        default=1e-4,
        gt=0,
        le=MAX_REAL,
        description="Local learning rate η, constant over a round's steps; for normalized the length of a step",
    )
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="Decay of the local rate over the rounds, to a tenth in the last one"
    )
    steps: int | None = Field(
        default=10,
        ge=1,
        le=MAX_STEPS,
        description="Local steps T per round",
        json_schema_extra={"unit": "steps", "excludes": ["epochs"]},
    )
    epochs: float | None = Field(
        default=None,
        gt=0,
        le=MAX_EPOCHS,
        description="Passes over the participant's examples per round, instead of steps",
        json_schema_extra={"unit": "passes", "excludes": ["steps"]},
    )
    batch_size: int = Field(
        default=1,
        ge=1,
        le=MAX_SEQUENCES,
        description="Sequences per forward pass",
        json_schema_extra={"unit": "sequences"},
    )
    accumulation: int = Field(
        default=4, ge=1, le=MAX_SEQUENCES, description="Forward passes per step", json_schema_extra={"unit": "passes"}
    )
    loss: Literal["tokens", "sequences"] = Field(
        default="tokens",
        description="Loss of a step: the mean over its response tokens, or over the means of its sequences, as "
        "published",
    )
    clip_norm: float | None = Field(default=None, gt=0, le=MAX_REAL, description="Largest L2 norm of a step's gradient")
    weight_decay: float = Field(
        default=0.0, ge=0, le=MAX_REAL, description="L2 penalty, or decoupled weight decay for optimizers like adamw"
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Heavy-ball momentum, for normalized and sgd")
    options: dict[Label, Option] = Field(
        default={},
        max_length=32,
        description="The optimizer's other arguments by their names in torch.optim: betas, eps, …",
    )
    precision: Precision = Field(
        default="auto",
        description="auto: bfloat16 if the hardware that trains is quick at it, else float32; bfloat16: mixed "
        "precision with fp32 weights; pure_bfloat16: no fp32 weights, stochastic rounding of each step; needs "
        "optimizer_in_backward and model.dtype = bfloat16",
    )
    activation_checkpointing: bool = Field(
        default=False, description="Store only the inputs of layers and recompute the rest: less memory, more time"
    )
    optimizer_in_backward: bool = Field(
        default=False,
        description="Step each parameter in the backward pass and free its gradient immediately; needs normalized or "
        "sgd without momentum, accumulation = 1, no clip_norm",
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, options: Any) -> Any:
        """Fills in implied values, so that a stored specification is explicit: steps unless epochs are given, and the
        optimizer's own defaults."""
        if not isinstance(options, Mapping):
            return options
        given = cast(Mapping[str, Any], options)
        own = NORMALIZED if given.get("optimizer") == "normalized" else {}
        return {**own, **given} if given.get("epochs") is None else {**own, "steps": None, **given}

    @field_validator("options")
    @classmethod
    def _suit_the_optimizer(cls, options: dict[str, Option], info: ValidationInfo) -> dict[str, Option]:
        """Checks the options, unless the optimizer or its momentum is already wrong."""
        if {"optimizer", "momentum"} <= info.data.keys():
            optimizer_options.check(info.data["optimizer"], info.data["momentum"], options)
        return options

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError(f"steps = {self.steps} and epochs = {self.epochs}: give one of the two")
        if self.momentum and self.optimizer not in optimizer_options.WITH_MOMENTUM:
            raise ValueError(
                f"momentum = {self.momentum} needs optimizer = 'normalized' or 'sgd', not {self.optimizer!r}"
            )
        if self.weight_decay and not optimizer_options.decays(self.optimizer):
            raise ValueError(f"weight_decay = {self.weight_decay}: {self.optimizer} has no weight decay, set it to 0")
        if self.clip_norm is not None and self.optimizer == "normalized":
            raise ValueError(f"clip_norm = {self.clip_norm}: normalized ignores the length of a gradient, leave it out")
        if self.optimizer_in_backward and (wrong := self.needs_whole_gradients()):
            raise ValueError(f"optimizer_in_backward = True holds no whole gradient: it needs {', '.join(wrong)}")
        if self.pure and not self.optimizer_in_backward:
            raise ValueError(
                f"precision = {self.precision!r} holds no fp32 weights: it needs optimizer_in_backward = true"
            )
        return self

    @property
    def pure(self) -> bool:
        """True if the trained weights are pure bf16."""
        return self.precision == "pure_bfloat16"

    @property
    def half(self) -> bool:
        """True if products are computed in bf16; False while the precision is not resolved."""
        return self.precision in ("bfloat16", "pure_bfloat16")

    def steps_for(self, examples: int | None) -> int:
        """Returns T for a shard of ``examples`` examples, at least 1; the last step of an epoch may begin the next
        pass.

        Raises ``TypeError`` if epochs are given and ``examples`` is None.
        """
        if self.epochs is None:
            assert self.steps is not None
            return self.steps
        if examples is None:
            raise TypeError("epochs are passes over a participant's examples: say how many it has")
        return math.ceil(ceil_share(self.epochs, examples) / (self.batch_size * self.accumulation))

    def sequences_for(self, examples: int | None) -> int:
        """How many sequences a round trains on, repeats counted; raises as :meth:`steps_for`."""
        return self.steps_for(examples) * self.batch_size * self.accumulation

    def rate(self, round_number: int, rounds: int) -> float:
        """Returns η of a round: the whole rate in the first, ``FINAL`` of it in the last of ``rounds``."""
        done = (round_number - 1) / max(1, rounds - 1)
        match self.schedule:
            case "constant":
                share = 1.0
            case "linear":
                share = 1 - (1 - FINAL) * done
            case "cosine":
                share = FINAL + (1 - FINAL) * (1 + math.cos(math.pi * done)) / 2
        return self.learning_rate * share

    def in_backward(self) -> LocalConfig:
        """Returns options for the same steps with the least memory: each in one backward pass over its sequences.

        Activations are checkpointed. The steps are the same only if nothing needs whole gradients.
        """
        together = {"batch_size": self.batch_size * self.accumulation, "accumulation": 1}
        return self.model_copy(update={**together, "optimizer_in_backward": True, "activation_checkpointing": True})

    def needs_whole_gradients(self) -> list[str]:
        """Returns the settings to change so that whole gradients are not needed."""
        asked = {
            "optimizer = 'normalized' or 'sgd'": self.optimizer not in optimizer_options.WITH_MOMENTUM,
            "momentum = 0": self.momentum > 0,
            "accumulation = 1": self.accumulation > 1,
            "no clip_norm": self.clip_norm is not None,
        }
        return [setting for setting, wrong in asked.items() if wrong]


class ZerothOrderConfig(StrictModel):
    """Steps along random directions; the defaults are FedKSeed's."""

    learning_rate: float = Field(
        default=3e-7, gt=0, le=MAX_REAL, description="Local learning rate η, constant over the steps"
    )
    steps: int = Field(
        default=200, ge=1, le=MAX_STEPS, description="Local steps per round", json_schema_extra={"unit": "steps"}
    )
    batch_size: int = Field(
        default=1,
        ge=1,
        le=MAX_SEQUENCES,
        description="Sequences per forward pass",
        json_schema_extra={"unit": "sequences"},
    )
    accumulation: int = Field(
        default=1,
        ge=1,
        le=MAX_SEQUENCES,
        description="Forward passes for each of a step's losses",
        json_schema_extra={"unit": "passes"},
    )
    epsilon: float = Field(
        default=5e-4, gt=0, le=MAX_REAL, description="Distance ε between the weights and the measured losses"
    )
    perturbations: int = Field(
        default=1,
        ge=1,
        le=MAX_SEQUENCES,
        description="Directions per step, two losses each, averaged",
        json_schema_extra={"unit": "directions"},
    )

    def steps_for(self, examples: int | None) -> int:
        """Returns the number of steps of a participant, for any number of ``examples``."""
        return self.steps

    def sequences_for(self, examples: int | None) -> int:
        """Number of sequences that a round uses, counted once per direction."""
        return self.steps * self.batch_size * self.accumulation * self.perturbations

    def rate(self, round_number: int, rounds: int) -> float:
        """η, the same in every round."""
        return self.learning_rate

    @property
    def directions(self) -> int:
        """Number of a participant's directions in a round."""
        return self.steps * self.perturbations
