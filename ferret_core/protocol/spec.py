"""The experiment specification: the same thing as TOML, as JSON and as a Python object."""

from __future__ import annotations

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
from ferret_core.protocol.sanitize import Line

Seed = Annotated[int, Field(ge=0, lt=2**63)]
Dtype = Literal["float32", "bfloat16", "float16"]
FinalModel = Literal["last", "average"]
"""Which of two models: that of the last round, or the mean of those of the last rounds."""
Worded = Literal["paper", "alpaca", "dolly"]
"""Templates with words of their own (``ferret_core/datasets/_prompt.py``)."""
Template = Literal[Worded, "chat"]


class Strict(BaseModel):
    """Frozen, and an unknown field is an error: a misspelt option must never be ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Choice(BaseModel):
    """An algorithm, dataset or partition: its name, and its own options in the same table.

    The options are checked against the plug-in's ``Config`` by :func:`ferret_core.catalog.resolve`.
    """

    model_config = ConfigDict(frozen=True, extra="allow", allow_inf_nan=False)

    name: str = Field(min_length=1, max_length=64, description="Which one: its own options stand in the same table")

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


class ModelSpec(Strict):
    """The base model: a folder in Hugging Face layout, or a hub name with its revision."""

    source: Source = Field(description="Folder of a Hugging Face causal language model, or a hub name")
    revision: Revision | None = Field(default=None, description="Commit or tag, if source is a hub name")
    digest: Annotated[Digest, Field(max_length=64)] | None = Field(
        default=None, description="Digest of the base model with all its files; refused if another is found"
    )
    dtype: Dtype = Field(
        default="float32", description="Type of the global model's weights; 16-bit types round each step stochastically"
    )


class PromptSpec(Strict):
    """How an example becomes tokens, in training and in evaluation alike."""

    template: Template = Field(
        default="paper",
        description="paper: as printed there; alpaca, dolly: with line breaks, as published codes do; chat: the "
        "model's own chat template",
    )
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        le=MAX_WIDTH,
        description="Longest sequence, prompt and answer, in tokens; the model's context if unset, 1024 as published",
        json_schema_extra={"unit": "tokens"},
    )


class ParticipantsSpec(Strict):
    """Who takes part: simulated clients over one dataset, real participants at the edge, or both."""

    simulated: int = Field(default=0, ge=0, le=100_000, description="Simulated clients the dataset is split over")
    edge: int = Field(default=0, ge=0, le=100_000, description="Real participants to wait for before round 1")
    fraction: float = Field(default=1.0, gt=0, le=1, description="Share of the participants sampled in each round")
    approval: bool = Field(
        default=False, description="Real participants take part only once an administrator has approved them"
    )

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.simulated + self.edge == 0:
            raise ValueError("there are no participants: set simulated or edge to at least 1")
        return self


class RoundSpec(Strict):
    """When a round closes: once enough participants have reported, or at the deadline if a quorum has."""

    deadline_seconds: float | None = Field(
        default=None,
        gt=0,
        le=MAX_SECONDS,
        description="Seconds until an open round closes; if unset, an hour without real participants and in the first "
        "rounds, then what recent contributions took: their median and six median absolute deviations, at least twice "
        "what the quorum took, from 5 minutes to a day",
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
        description="Extra share of participants to invite; the round closes once as many as sampled have reported",
    )
    attempts: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Attempts at a round before a missed quorum fails the experiment",
    )


class ServerSpec(Strict):
    """How a round's update moves the global model: the same choices for every algorithm.

    ``momentum`` is FedAvgM's, with ``nesterov`` DiLoCo's; ``beta1``, ``beta2`` and ``tau`` are FedAdam's and FedYogi's.
    """

    optimizer: Literal["sgd", "adam", "yogi"] = Field(
        default="sgd", description="sgd applies the mean update; adam and yogi scale it by its running second moment"
    )
    learning_rate: float = Field(
        default=1.0, gt=0, le=MAX_REAL, description="Server learning rate a; 1 is the unbiased mean update"
    )
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Heavy-ball momentum over the rounds, for sgd only")
    nesterov: bool = Field(
        default=False, description="Nesterov's momentum: the step looks one round ahead, as DiLoCo's; needs momentum"
    )
    beta1: float = Field(default=0.9, ge=0, lt=1, description="Decay of the mean, for adam and yogi")
    beta2: float = Field(default=0.99, ge=0, lt=1, description="Decay of the second moment, for adam and yogi")
    tau: float = Field(
        default=1e-3, gt=0, le=MAX_REAL, description="Added to the second moment's root, for adam and yogi"
    )
    schedule: Literal["constant", "linear", "cosine"] = Field(
        default="constant", description="How the learning rate falls towards 0 over the rounds"
    )
    warmup_rounds: int = Field(
        default=0,
        ge=0,
        le=MAX_ROUNDS,
        description="Rounds over which the learning rate first rises",
        json_schema_extra={"unit": "rounds"},
    )
    weights: Literal["equal", "examples"] = Field(
        default="equal", description="equal: all participants count the same; examples: by their number of examples"
    )
    step: Literal["fixed", "guard"] = Field(
        default="fixed",
        description="fixed: every round is applied in full; guard: its step is halved as long as it would raise the "
        "loss on development sequences by more than rise",
    )
    rise: float = Field(
        default=0.05,
        ge=0,
        le=MAX_REAL,
        description="Share by which a round may raise the loss on development sequences before guard halves its step",
    )
    development: int = Field(
        default=16,
        ge=LEAST_DEVELOPMENT,
        le=MAX_DEVELOPMENT,
        description="Training examples, of the validation split, that are set aside for guard and tail to measure on",
        json_schema_extra={"unit": "examples"},
    )

    average: Literal["none", "tail"] = Field(
        default="none",
        description="tail: the mean of the models of the last rounds is kept and evaluated beside the last model",
    )
    average_from: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROUNDS,
        description="First round of the mean, for tail; if unset, the one after the first half of the rounds",
        json_schema_extra={"unit": "round"},
    )

    @property
    def halves(self) -> bool:
        """Whether the server measures every round before it counts, and may halve its step."""
        return self.step == "guard"

    @property
    def develops(self) -> bool:
        """Whether development sequences are set aside."""
        return self.halves or self.average == "tail"

    @model_validator(mode="after")
    def _momentum_is_for_sgd(self) -> Self:
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f"momentum = {self.momentum} needs optimizer = 'sgd', not {self.optimizer!r}: set beta1")
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov = True needs a momentum above 0")
        return self


class RobustSpec(Strict):
    """What keeps one participant from ruining a round: bounds against the round's median, and what is undone.

    Factors are of the median over the round's participants, of which there must be three for one to be taken.
    """

    rule: Literal["clip", "agree", "median", "trimmed_mean", "none"] = Field(
        default="clip",
        description="clip: long updates are shortened; agree: and who points elsewhere is left out; "
        "median, trimmed_mean: of each coordinate, where these are comparable; none: only what is absurd is refused",
    )
    factor: float = Field(
        default=2.0,
        ge=1,
        le=1e6,
        description="Norm, of the update or a part of it, beyond which an update is shortened to it",
    )
    refuse: float = Field(default=4.0, ge=1, le=1e6, description="Norm of the update beyond which it is left out")
    agree: float = Field(
        default=0.1,
        ge=0,
        le=1,
        description="Share of the round's median agreement with the others below which agree leaves an update out",
    )
    trim: float = Field(
        default=0.2, gt=0, lt=0.5, description="Share of the greatest and of the least values that trimmed_mean omits"
    )
    examples: float = Field(
        default=3.0, ge=1, le=1e6, description="Number of examples beyond which a participant weighs no more"
    )

    explosion: float = Field(
        default=2.0,
        gt=1,
        le=1e6,
        description="Factor by which a round may raise the loss on 8 held-out sequences before it is undone",
    )

    @model_validator(mode="after")
    def _clip_before_refusal(self) -> Self:
        if self.refuse < self.factor:
            raise ValueError(f"refuse = {self.refuse} is below factor = {self.factor}: nothing would be shortened")
        return self


class EvaluationSpec(Strict):
    """What is measured on the held-out examples of the dataset after a round.

    Settings are chosen on the validation split, for which the test examples are not even read; results are read from
    the test split. Examples of the validation split are trained on where the test split is evaluated.
    """

    split: Literal["test", "validation"] = Field(
        default="test",
        description="test: the dataset's held-out examples; validation: training examples set aside to choose settings",
    )
    validation: float = Field(
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
    generate: int = Field(
        default=64,
        ge=0,
        le=MAX_EXAMPLES,
        description="How many of these to answer, greedily, for Rouge-L; 0 for none",
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
        default=32,
        ge=1,
        le=MAX_SEQUENCES,
        description="Sequences evaluated at once",
        json_schema_extra={"unit": "sequences"},
    )
    by_label: bool = Field(
        default=False, description="Also measure loss and Rouge-L for each label (task) of the held-out data"
    )


class StoppingSpec(Strict):
    """By which metric rounds are compared, and when an experiment ends before its last round because of it.

    Only what the service measures itself counts: what participants report of themselves ends nothing.
    """

    metric: str = Field(
        default="eval_loss",
        max_length=64,
        description="Metric of the evaluation that says which round is best",
        json_schema_extra={"enum": list(JUDGING)},
    )
    patience: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROUNDS,
        description="Stop after so many evaluations in a row that were no improvement; unset runs all rounds. With it, "
        "the next round waits for the evaluation, and every evaluated round is saved",
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


class CheckpointSpec(Strict):
    """How often the global model is saved; the ledger can rebuild any round in between."""

    every: int = Field(
        default=1,
        ge=1,
        le=MAX_ROUNDS,
        description="Save after every n-th round (always after the last)",
        json_schema_extra={"unit": "rounds"},
    )
    keep: int | None = Field(
        default=None,
        ge=1,
        le=MAX_ROUNDS,
        description="Number of newest checkpoints to keep (base model and best always stay); unset keeps all",
        json_schema_extra={"unit": "checkpoints"},
    )
    keep_best: int = Field(
        default=1,
        ge=1,
        le=MAX_ROUNDS,
        description="Number of best checkpoints, by stopping.metric, that stay beside the newest",
    )


ExperimentName = Annotated[Line, Field(min_length=1, max_length=120)]


class ExperimentSpec(Strict):
    """One federated tuning run; together with the base model and the data it determines every bit of the result."""

    name: ExperimentName = Field(description="What it is called in lists; it need not be the only one of its name")
    seed: Seed = Field(
        default=0,
        description="What all random choices follow from: the same seed gives the same model, to the last bit",
    )
    rounds: int = Field(default=12, ge=1, le=MAX_ROUNDS, description="Rounds of training")
    model: ModelSpec = Field(description="The base model that is tuned")
    prompt: PromptSpec = Field(default=PromptSpec(), description="How an example becomes tokens")
    dataset: Choice = Field(description="The examples to train on and those held out")
    partition: Choice = Field(
        default=Choice(name="iid"), description="How the examples are split over the simulated clients"
    )
    participants: ParticipantsSpec = Field(description="Who takes part")
    algorithm: Choice = Field(default=Choice(name="ferret"), description="How participants train and what they send")
    server: ServerSpec = Field(default=ServerSpec(), description="How a round's update moves the global model")
    round: RoundSpec = Field(default=RoundSpec(), description="When a round closes")
    robust: RobustSpec = Field(default=RobustSpec(), description="What keeps one participant from ruining a round")
    evaluation: EvaluationSpec = Field(default=EvaluationSpec(), description="What is measured after a round")
    stopping: StoppingSpec = Field(default=StoppingSpec(), description="When it ends before its last round")
    checkpoint: CheckpointSpec = Field(default=CheckpointSpec(), description="Which models are saved")

    @classmethod
    def from_toml(cls, source: str | Path, *, absolute_paths: bool = True) -> Self:
        """The specification in a TOML file, or in a text of several lines, which is the TOML itself.

        ``${NAME}`` stands for an environment variable. A relative path that exists beside the file or in the working
        folder is made absolute; for a server on another machine, which has its own files, set ``absolute_paths`` to
        False. Raises ``spec.invalid`` with every value that is missing or wrong.
        """
        return cls.read(*spec_file.of_toml(source, absolute_paths=absolute_paths))

    @classmethod
    def read(cls, tree: dict[str, Any], source: str) -> Self:
        """The specification that ``tree`` is; ``spec.invalid`` says what is wrong in what is called ``source``."""
        try:
            return cls.model_validate(tree)
        except ValidationError as error:
            raise spec_file.invalid(field_errors(error, model=cls), source) from error


class RoundTask(Strict):
    """What one participant does in one round; the same for simulated clients and real participants.

    ``data_seed`` orders the batches, ``seed`` is the participant's own for its bases, all participants of the
    round share ``round_seed``, ``population`` is the number of participants they were sampled from, and ``rounds`` the
    number of rounds of the experiment, which schedules follow. The service derives all of them: clients never choose
    seeds.
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
