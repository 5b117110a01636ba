"""The experiment specification, as TOML, as JSON and as a Python object."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ferret_core.protocol import spec_file
from ferret_core.protocol.errors import field_errors, suggestion
from ferret_core.protocol.ids import Digest, ExperimentId, ParticipantName
from ferret_core.protocol.limits import (
    LEAST_DEVELOPMENT,
    MAX_DEVELOPMENT,
    MAX_EXAMPLES,
    MAX_REAL,
    MAX_ROUNDS,
    MAX_SECONDS,
    MAX_SEQUENCES,
    MAX_WIDTH,
    Revision,
    Source,
)
from ferret_core.protocol.metrics import JUDGING
from ferret_core.protocol.rounding import ceil_share
from ferret_core.protocol.sanitize import Line

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Dtype = Literal["float32", "bfloat16", "float16"]
Worded = Literal["paper", "alpaca", "dolly"]
"""Templates with their own wording (``ferret_core/datasets/tokenization/prompt.py``)."""
Rendered = Literal[Worded, "chat"]
Template = Literal[Rendered, "auto"]
"""``auto`` becomes one of the others when the model is loaded (``resolve_template`` in
``ferret_core/datasets/tokenization/tokenize.py``)."""


class StrictModel(BaseModel):
    """A frozen model that rejects unknown fields, so that a misspelt option is never ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class PluginChoice(BaseModel):
    """An algorithm, dataset or partition: its name and its options, in one table.

    The options are checked against the plug-in's ``Config`` by :func:`ferret_core.catalog.resolve`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    name: str = Field(min_length=1, max_length=64, description="Name of the plug-in; its options are in the same table")

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


def is_folder(source: str) -> bool:
    """Returns True if a model's ``source`` is a folder rather than a hub name."""
    return source.startswith(("/", ".", "~")) or ".." in source.split("/") or source.count("/") > 1


class ModelSpec(StrictModel):
    """The base model: a folder in Hugging Face layout, or a hub name with its revision."""

    source: Source = Field(description="Folder of a Hugging Face causal language model, or a hub name")
    revision: Revision | None = Field(
        default=None, description="Commit or tag, if source is a hub name, unless digest is given"
    )
    digest: Annotated[Digest, Field(max_length=64)] | None = Field(
        default=None, description="Digest of the base model with all its files; a different model is rejected"
    )
    dtype: Dtype = Field(
        default="float32", description="Type of the global model's weights; 16-bit types round each step stochastically"
    )


class PromptSpec(StrictModel):
    """The conversion of an example to tokens, in training and evaluation alike."""

    template: Template = Field(
        default="auto",
        description="auto: chat if the model has a chat template, else paper; chat: the model's own chat template; "
        "paper: as in the paper; alpaca, dolly: with line breaks, as in published code",
    )
    max_tokens: int | None = Field(
        default=1024,
        ge=1,
        le=MAX_WIDTH,
        description="Longest sequence, prompt and answer, in tokens, or the model's context if that is smaller; longer "
        "examples are cut; null: the model's context",
        json_schema_extra={"unit": "tokens"},
    )


class ParticipantsSpec(StrictModel):
    """The participants: simulated clients over one dataset, real participants at the edge, or both."""

    simulated: int = Field(default=0, ge=0, le=100_000, description="Simulated clients that share the dataset")
    edge: int = Field(default=0, ge=0, le=100_000, description="Real participants to wait for before round 1")
    fraction: float = Field(default=1.0, gt=0, le=1, description="Share of the participants sampled in each round")
    approval: bool = Field(
        default=False, description="Real participants take part only after a researcher has approved them"
    )

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.simulated + self.edge == 0:
            raise ValueError("there are no participants: set simulated or edge to at least 1")
        return self

    def sample_size(self, population: int) -> int:
        """Returns the number of participants that a round needs: ⌈fraction · population⌉."""
        return ceil_share(self.fraction, population)


class RoundSpec(StrictModel):
    """Closing of rounds: after enough participants have reported, or at the deadline if the quorum has."""

    deadline_seconds: float | None = Field(
        default=None,
        gt=0,
        le=MAX_SECONDS,
        description="Seconds until an open round closes. If unset: an hour without real participants and in the first "
        "rounds; later the median of recent contributions plus six median absolute deviations, at least twice the "
        "time of the quorum, from 5 minutes to a day",
        json_schema_extra={"unit": "seconds"},
    )
    quorum: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of the assignments that must report for the round to count; if unset, 0.5 with real "
        "participants and 1 without",
    )
    over_selection: float = Field(
        default=0.0,
        ge=0,
        le=10,
        description="Extra share of participants to invite; the round closes after the sampled number has reported",
    )
    attempts: int = Field(
        default=3, ge=1, le=1000, description="Attempts at a round before a missed quorum fails the experiment"
    )


class ServerSpec(StrictModel):
    """The server's optimizer, which applies a round's update to the global model; the same for every algorithm.

    ``momentum`` belongs to FedAvgM; ``beta1``, ``beta2`` and ``tau`` to FedAdam and FedYogi.
    """

    optimizer: Literal["sgd", "adam", "yogi"] = Field(
        default="sgd", description="sgd applies the mean update; adam and yogi scale it by its running second moment"
    )
    learning_rate: float = Field(
        default=1.0, gt=0, le=MAX_REAL, description="Server learning rate a; 1 is the unbiased mean update"
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Heavy-ball momentum over the rounds, for sgd only")
    beta1: float = Field(default=0.9, ge=0, lt=1, description="Decay of the mean, for adam and yogi")
    beta2: float = Field(default=0.99, ge=0, lt=1, description="Decay of the second moment, for adam and yogi")
    tau: float = Field(
        default=1e-3, gt=0, le=MAX_REAL, description="Added to the root of the second moment, for adam and yogi"
    )
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="Decay of the learning rate towards 0 over the rounds"
    )
    warmup_rounds: int = Field(
        default=0,
        ge=0,
        le=MAX_ROUNDS,
        description="Rounds over which the learning rate first rises",
        json_schema_extra={"unit": "rounds"},
    )
    weights: Literal["equal", "examples"] = Field(
        default="equal",
        description="equal: all participants have the same weight; examples: weighted by their number of examples",
    )
    step_guard: bool = Field(
        default=False,
        description="Halve a round's step until it raises the loss on development sequences by at most max_loss_rise",
    )
    max_loss_rise: float = Field(
        default=0.05,
        ge=0,
        le=MAX_REAL,
        description="Largest accepted rise of the loss on development sequences, as a share; above it step_guard "
        "halves the step",
    )
    development_examples: int = Field(
        default=16,
        ge=LEAST_DEVELOPMENT,
        le=MAX_DEVELOPMENT,
        description="Training examples, from the validation split, set aside as development sequences for step_guard",
        json_schema_extra={"unit": "examples"},
    )

    @model_validator(mode="after")
    def _momentum_is_for_sgd(self) -> Self:
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum = {self.momentum} needs optimizer = 'sgd', not {self.optimizer!r}: set beta1")
        return self


class RobustSpec(StrictModel):
    """Limits on the influence of one participant: bounds relative to the round's median, and undoing of a failed round.

    Factors are relative to the median over the round's participants, which needs at least three.
    """

    rule: Literal["clip", "cosine_filter", "median", "trimmed_mean", "none"] = Field(
        default="clip",
        description="clip: large updates are scaled down, except SCAFFOLD's; cosine_filter: also rejects updates that "
        "point in another direction; median, trimmed_mean: per coordinate, if the coordinates are comparable; none: "
        "only implausible values are rejected",
    )
    clip_factor: float = Field(
        default=2.0,
        ge=1,
        le=1e6,
        description="Largest norm of an update, or of a part of it, as a multiple of the median; larger ones are "
        "scaled down to it",
    )
    reject_factor: float = Field(
        default=4.0,
        ge=1,
        le=1e6,
        description="Largest norm of an update, as a multiple of the median; larger ones are rejected",
    )
    min_cosine_share: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Smallest cosine with the mean of the other updates, as a share of the median; cosine_filter "
        "rejects updates below it",
    )
    trim: float = Field(
        default=0.2, gt=0, lt=0.5, description="Share of the largest and of the smallest values that trimmed_mean omits"
    )
    max_example_factor: float = Field(
        default=3.0,
        ge=1,
        le=1e6,
        description="Largest number of examples that counts in a weight, as a multiple of the median",
    )

    max_loss_ratio: float = Field(
        default=2.0,
        gt=1,
        le=1e6,
        description="Largest accepted ratio of the loss on 8 held-out sequences after and before a round; above it "
        "the round is rolled back",
    )

    @model_validator(mode="after")
    def _clips_below_rejection(self) -> Self:
        if self.reject_factor < self.clip_factor:
            raise ValueError(
                f"reject_factor = {self.reject_factor} is below clip_factor = {self.clip_factor}: no update would be "
                "scaled down"
            )
        return self


class SecureSpec(StrictModel):
    """Secure sums: the server learns the sum of a round's contributions, and none of them.

    Participants mask their contributions so that the masks cancel in the sum (``docs/reference/secure-sums.md``).
    """

    aggregation: Literal["none", "masked"] = Field(
        default="none",
        description="none: the server reads each contribution; masked: only the sum of a round's contributions",
    )
    least: int = Field(
        default=3, ge=3, le=64, description="Participants that a sum needs", json_schema_extra={"unit": "participants"}
    )
    colluders: int = Field(
        default=1,
        ge=0,
        le=62,
        description="Participants that may collude with the server without learning another's contribution",
        json_schema_extra={"unit": "participants"},
    )
    group: int = Field(
        default=0,
        ge=0,
        le=64,
        description="Largest group; each group of a round is summed for itself, and its mean enters the aggregation as "
        "one contribution; 0: one group",
        json_schema_extra={"unit": "participants"},
    )
    clip: float = Field(
        default=1.0,
        gt=0,
        le=1000,
        description="Largest change of a weight in a participant's update, for algorithms that send whole updates; "
        "larger changes are cut to it",
    )

    @property
    def masked(self) -> bool:
        """True if contributions are summed under masks."""
        return self.aggregation == "masked"

    @property
    def least_summed(self) -> int | None:
        """The least number of participants in a sum; None if the server reads each contribution."""
        return self.least if self.masked else None

    def groups(self, members: int) -> int:
        """Returns the number of groups of a sum over this many members: as few as ``group`` allows, none too small."""
        return max(1, min(math.ceil(members / self.group), members // self.least)) if self.group else 1

    @model_validator(mode="after")
    def _two_are_honest(self) -> Self:
        if self.least < self.colluders + 2:
            raise ValueError(
                f"least = {self.least} is below colluders + 2 = {self.colluders + 2}: colluders would learn one "
                "participant's contribution from the sum"
            )
        if 0 < self.group < self.least:
            raise ValueError(f"group = {self.group} is below least = {self.least}: no group could be summed")
        return self


class PrivacySpec(StrictModel):
    """Differential privacy of the participants' records.

    Each round, participants draw units by a secret coin, and noise is added to the sum of their gradients
    (``docs/reference/record-privacy.md``).
    """

    unit: str = Field(
        default="site",
        max_length=70,
        pattern=r"^(site|example|field:.{1,64})$",
        description="site: each site may protect itself, by its own terms; example: the noise hides each example; "
        "field:NAME: it hides all of a site's examples with the same value in the field NAME, such as a person's",
    )
    mechanism: Literal["distributed", "central"] = Field(
        default="distributed",
        description="distributed: participants add the noise under masks, and the server is not trusted; central: the "
        "server reads each contribution and adds less noise, and all others see only the noised mean",
    )
    epsilon: float | None = Field(
        default=None, gt=0, le=1000, description="ε after all rounds; the noise follows from it"
    )
    noise_multiplier: float | None = Field(
        default=None,
        gt=0,
        le=1e6,
        description="Noise z in units of the sensitivity; if unset, as little as epsilon allows",
    )
    delta: float = Field(
        default=1e-6, gt=0, lt=1, description="δ of the guarantee; well below 1 / number of units of a site"
    )
    batch: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="Expected units that a site with records_least units draws in a round",
        json_schema_extra={"unit": "units"},
    )
    records_least: int | None = Field(
        default=None,
        ge=1,
        le=MAX_EXAMPLES,
        description="Units that each site must have; batch / records_least is the chance that a unit is drawn",
        json_schema_extra={"unit": "units"},
    )

    @model_validator(mode="after")
    def _complete(self) -> Self:
        needed = {"batch": self.batch, "records_least": self.records_least, "epsilon": self.epsilon}
        if not self.of_records:
            central = self.mechanism if self.mechanism == "central" else None
            given = {**needed, "noise_multiplier": self.noise_multiplier, "mechanism": central}
            if extra := [name for name, value in given.items() if value is not None]:
                raise ValueError(
                    f"unit = 'site' does not use {', '.join(extra)}: set unit to 'example' or 'field:NAME'"
                )
            return self
        if missing := [name for name, value in needed.items() if value is None]:
            raise ValueError(f"unit = {self.unit!r} needs {' and '.join(missing)}")
        if self.rate > 1:
            raise ValueError(f"batch = {self.batch} is more than records_least = {self.records_least}: lower it")
        if self.delta * (self.records_least or 0) >= 1:
            raise ValueError(f"delta = {self.delta:g} is not below 1 / records_least: a site could publish a record")
        return self

    @property
    def of_records(self) -> bool:
        """True if the noise hides single units."""
        return self.unit != "site"

    @property
    def central(self) -> bool:
        """True if the server adds the noise."""
        return self.mechanism == "central"

    @property
    def field(self) -> str | None:
        """The field that examples of the same unit share; None if each example is a unit."""
        return self.unit.removeprefix("field:") if self.unit.startswith("field:") else None

    @property
    def rate(self) -> float:
        """The chance that a unit is drawn in a round."""
        return (self.batch or 0) / (self.records_least or 1)


class EvaluationSpec(StrictModel):
    """Measurements on the held-out examples of the dataset after a round.

    Settings are chosen on the validation split, and the test examples are then never read. Results come from the test
    split. Where the test split is evaluated, examples of the validation split are used for training.
    """

    split: Literal["test", "validation"] = Field(
        default="test",
        description="test: the dataset's held-out examples; validation: training examples set aside to choose settings",
    )
    validation_share: float = Field(
        default=0.1,
        gt=0,
        lt=1,
        description="Share of the training examples, or of their labels, that split = validation sets aside",
    )
    every: int = Field(
        default=1,
        ge=1,
        le=MAX_ROUNDS,
        description="Evaluate after every n-th round (always after the last)",
        json_schema_extra={"unit": "rounds"},
    )
    examples: int = Field(default=256, ge=1, le=MAX_EXAMPLES, description="Held-out examples for the loss")
    generate_examples: int = Field(
        default=64,
        ge=0,
        le=MAX_EXAMPLES,
        description="Number of these to answer, greedily, for Rouge-L; 0 for none",
        json_schema_extra={"unit": "examples"},
    )
    max_new_tokens: int = Field(
        default=64,
        ge=1,
        le=4096,
        description="Longest generated answer, in tokens",
        json_schema_extra={"unit": "tokens"},
    )
    batch_size: int = Field(
        default=32, ge=1, le=MAX_SEQUENCES, description="Sequences per batch", json_schema_extra={"unit": "sequences"}
    )
    by_label: bool = Field(
        default=False, description="Also measure loss and Rouge-L for each label (task) of the held-out data"
    )


class StoppingSpec(StrictModel):
    """The metric that ranks rounds, and early stopping.

    Only metrics that the service measures itself count: reports of participants end nothing.
    """

    metric: str = Field(
        default="eval_loss",
        max_length=64,
        description="Metric of the evaluation that ranks rounds",
        json_schema_extra={"enum": list(JUDGING)},
    )
    patience: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROUNDS,
        description="Stop after this number of evaluations in a row without improvement; if unset, all rounds run. If "
        "set, the next round waits for the evaluation, and every evaluated round is saved",
    )
    min_delta: float = Field(
        default=0.0, ge=0, le=MAX_REAL, description="Smallest change of the metric that counts as an improvement"
    )

    @field_validator("metric")
    @classmethod
    def _is_measured_here(cls, metric: str) -> str:
        if metric not in JUDGING:
            raise ValueError(f"no evaluation measures it; {suggestion(metric, JUDGING)}")
        return metric


class CheckpointSpec(StrictModel):
    """Saving of the global model; rounds in between can be rebuilt from the ledger.

    A null ``keep`` stays null: the ledger of a stored specification has the digest of its JSON.
    """

    every: int = Field(
        default=1,
        ge=1,
        le=MAX_ROUNDS,
        description="Save after every n-th round (always after the last)",
        json_schema_extra={"unit": "rounds"},
    )
    keep: Annotated[int, Field(ge=1, le=MAX_ROUNDS)] | Literal["all"] | None = Field(
        default=2,
        description="Number of newest checkpoints to keep (base model and best always stay), or all; null also means "
        "all, in specifications of earlier releases",
        json_schema_extra={"unit": "checkpoints"},
    )
    keep_best: int = Field(
        default=1,
        ge=1,
        le=MAX_ROUNDS,
        description="Number of best checkpoints, by stopping.metric, to keep in addition to the newest",
    )


ExperimentName = Annotated[Line, Field(min_length=1, max_length=120)]


class ExperimentSpec(StrictModel):
    """One federated tuning run. Together with the base model and the data it determines every bit of the result."""

    name: ExperimentName = Field(description="Name in lists; need not be unique")
    seed: Seed = Field(
        default=0, description="Seed of all random choices: the same seed gives the same model, to the last bit"
    )
    rounds: int = Field(default=12, ge=1, le=MAX_ROUNDS, description="Rounds of training")
    model: ModelSpec = Field(description="The base model to tune")
    prompt: PromptSpec = Field(default=PromptSpec(), description="Conversion of examples to tokens")
    dataset: PluginChoice = Field(description="The training and the held-out examples")
    partition: PluginChoice = Field(
        default=PluginChoice(name="iid"), description="Split of the examples over the simulated clients"
    )
    participants: ParticipantsSpec = Field(description="The participants")
    algorithm: PluginChoice = Field(
        default=PluginChoice(name="ferret"), description="Local training, and the form of the contributions"
    )
    server: ServerSpec = Field(
        default=ServerSpec(), description="The server's optimizer, which applies a round's update"
    )
    round: RoundSpec = Field(default=RoundSpec(), description="Closing of rounds")
    robust: RobustSpec = Field(default=RobustSpec(), description="Limits on the influence of one participant")
    secure: SecureSpec = Field(default=SecureSpec(), description="Secure sums of contributions")
    privacy: PrivacySpec = Field(default=PrivacySpec(), description="Differential privacy of participants' records")
    evaluation: EvaluationSpec = Field(default=EvaluationSpec(), description="Measurements after a round")
    stopping: StoppingSpec = Field(default=StoppingSpec(), description="Early stopping")
    checkpoint: CheckpointSpec = Field(default=CheckpointSpec(), description="Checkpoints to save")

    @property
    def summed(self) -> bool:
        """True if the server uses contributions only as a sum: under masks, or with its noise for records."""
        return self.secure.masked or self.privacy.central

    @classmethod
    def from_toml(cls, source: str | Path, *, absolute_paths: bool = True) -> Self:
        """Reads a specification from a TOML file, or from a text of several lines, which is the TOML itself.

        ``${NAME}`` is replaced by an environment variable. A relative path that exists next to the file or in the
        working folder is made absolute; for a server on another machine, which has its own files, set
        ``absolute_paths`` to False. Raises ``spec.invalid`` with every value that is missing or wrong.
        """
        return cls.read(*spec_file.of_toml(source, absolute_paths=absolute_paths))

    @classmethod
    def read(cls, tree: dict[str, Any], source: str) -> Self:
        """Validates ``tree``; raises ``spec.invalid``, which refers to the tree as ``source``."""
        try:
            return cls.model_validate(tree)
        except ValidationError as error:
            raise spec_file.invalid(field_errors(error, model=cls), source) from error


class RoundTask(StrictModel):
    """One participant's work in one round; the same for simulated clients and real participants.

    ``data_seed`` orders the batches. ``seed`` is the participant's own, for its bases. ``round_seed`` is shared by all
    participants of the round. ``population`` is the number of participants they were sampled from. ``rounds`` is the
    number of rounds of the experiment, for schedules. The service derives all of them: clients never choose seeds.
    """

    experiment: ExperimentId
    round: int = Field(ge=1, le=MAX_ROUNDS)
    rounds: int = Field(ge=1, le=MAX_ROUNDS)
    participant: ParticipantName
    base_digest: Digest = Field(description="Digest of the global model to start from")
    data_seed: int = Field(ge=0, lt=2**64)
    seed: int = Field(ge=0, lt=2**64)
    round_seed: int = Field(ge=0, lt=2**64)
    population: int = Field(ge=1, lt=2**31)
