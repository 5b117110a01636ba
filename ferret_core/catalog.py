"""What can be chosen: algorithms, datasets, partitions and models, with the JSON Schema of their options, and that of
the specification around them.

Everything here follows from discovery and from each entry's ``Config``; nothing is registered. Only :func:`algorithm`
loads torch: options, their schemas and the check of a contribution need none of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pydantic import BaseModel, ValidationError

from ferret_core import discovery
from ferret_core.protocol.errors import FerretError, FieldError, FieldErrors, field_errors
from ferret_core.protocol.spec import Choice, ExperimentSpec, ModelSpec
from ferret_core.rounds import sampling

if TYPE_CHECKING:
    from ferret_core.algorithms._base import FederatedAlgorithm
    from ferret_core.algorithms.configs._base import FederatedConfig
    from ferret_core.datasets._base import FederatedDataset
    from ferret_core.datasets.partitions._base import FederatedPartition

Kind = Literal["algorithms", "datasets", "partitions", "models", "experiments"]

PACKAGES: dict[str, str] = {
    "algorithms": "ferret_core.algorithms",
    "datasets": "ferret_core.datasets",
    "partitions": "ferret_core.datasets.partitions",
}
CONFIGS: dict[str, str] = {**PACKAGES, "algorithms": "ferret_core.algorithms.configs"}
"""Where the file of an entry's ``Config`` lies; an algorithm's is apart from its code, which needs torch."""
SECTIONS: dict[str, str] = {"algorithm": "algorithms", "dataset": "datasets", "partition": "partitions"}
"""The sections of a specification that choose by name, with the kinds that they choose from."""
_SINGLE: dict[str, tuple[str, type[BaseModel]]] = {
    "models": ("huggingface", ModelSpec),
    "experiments": ("specification", ExperimentSpec),
}
"""Kinds with one entry: what it is called, and its options."""


class CatalogEntry(NamedTuple):
    """One entry: its name, the first line and the rest of its documentation, and the JSON Schema of its options."""

    name: str
    title: str
    description: str
    options: dict[str, Any]


def entries(kind: Kind) -> list[CatalogEntry]:
    """All entries of a kind, by name."""
    if kind in _SINGLE:
        return [_single(kind)]
    return [entry(kind, name) for name in discovery.names(PACKAGES[kind])]


def entry(kind: Kind, name: str) -> CatalogEntry:
    """One entry; ``catalog.not_found`` with the names there are."""
    known = [_SINGLE[kind][0]] if kind in _SINGLE else discovery.names(PACKAGES[kind])
    if name not in known:
        raise FerretError.of_field("catalog.not_found", kind, name, f"choose one of {', '.join(known)}")
    if kind in _SINGLE:
        return _single(kind)
    config = discovery.load(CONFIGS[kind], name, kind).Config
    return _entry(name, discovery.documentation(PACKAGES[kind], name), config)


def resolve(spec: ExperimentSpec) -> ExperimentSpec:
    """``spec`` with every option of its algorithm, dataset and partition checked and filled in.

    Raises ``spec.invalid`` with one field error for each wrong option of all three.
    """
    wrong: list[FieldError] = []
    omitted = 0
    choices: dict[str, Choice] = {}
    for section in SECTIONS:
        try:
            choices[section] = filled(section, getattr(spec, section))
        except FerretError as error:
            wrong += error.errors
            omitted += error.omitted
    if not wrong:
        wrong += _rule_errors(spec) + _stopping_errors(spec) + _average_errors(spec)
        wrong += _precision_errors(spec)
    if wrong:
        raise FerretError.of_fields("spec.invalid", FieldErrors(wrong, omitted))
    quorum = sampling.quorum_share(spec)
    return spec.model_copy(update={**choices, "round": spec.round.model_copy(update={"quorum": quorum})})


def filled(section: str, choice: Choice) -> Choice:
    """``choice``, that of a ``section``, with its options filled in; ``spec.invalid`` for what is wrong with them."""
    return Choice.model_validate({"name": choice.name, **_config(SECTIONS[section], section, choice).model_dump()})


def _rule_errors(spec: ExperimentSpec) -> list[FieldError]:
    """What keeps the round's rule from being taken of what the algorithm's participants send."""
    rule = spec.robust.rule
    if rule not in ("median", "trimmed_mean"):
        return []
    wrong: list[FieldError] = []
    if not algorithm_config(spec.algorithm).comparable:
        shared = " or algorithm.seeds = 'shared'" if spec.algorithm.name == "ferret" else ""
        message = f"needs comparable coordinates, which {spec.algorithm.name} does not send here: use 'clip'{shared}"
        wrong.append(FieldError(field="robust.rule", value=rule, message=message))
    if spec.server.weights != "equal":
        message = f"robust.rule = {rule!r} counts all participants the same: use 'equal', or robust.rule = 'clip'"
        wrong.append(FieldError(field="server.weights", value=spec.server.weights, message=message))
    return wrong


def _stopping_errors(spec: ExperimentSpec) -> list[FieldError]:
    """What keeps the metric that judges rounds from being measured."""
    judged, generate = spec.stopping.metric, spec.evaluation.generate
    if spec.stopping.patience is None or judged == "eval_loss" or generate:
        return []
    message = "answers are generated for it: set evaluation.generate to at least 1, or judge by eval_loss"
    return [FieldError(field="stopping.metric", value=judged, message=message)]


def _average_errors(spec: ExperimentSpec) -> list[FieldError]:
    """What keeps the mean of the last rounds from having any."""
    first = spec.server.average_from
    if first is None or (spec.server.average == "tail" and first <= spec.rounds):
        return []
    needed = f"is after the last of {spec.rounds} rounds: use an earlier one" if first > spec.rounds else ""
    message = needed or "is for server.average = 'tail': set that, or leave this out"
    return [FieldError(field="server.average_from", value=first, message=message)]


def _precision_errors(spec: ExperimentSpec) -> list[FieldError]:
    """What keeps participants from training in bf16 alone."""
    config: Any = algorithm_config(spec.algorithm)
    if not getattr(getattr(config, "local", None), "pure", False):
        return []
    field, value = "algorithm.local.precision", config.local.precision
    if getattr(config, "adapts", False):
        message = f"is for training the model's own weights, which {spec.algorithm.name} leaves alone: use 'bfloat16'"
        return [FieldError(field=field, value=value, message=message)]
    if spec.model.dtype != "bfloat16":
        message = f"trains the model in its own type, which is {spec.model.dtype}: set model.dtype = 'bfloat16'"
        return [FieldError(field=field, value=value, message=message)]
    return []


def paths(spec: ExperimentSpec) -> list[tuple[str, str]]:
    """The values of a resolved ``spec`` that name files or folders, with their fields; hub names are not among them."""
    options = discovery.load(CONFIGS["datasets"], spec.dataset.name, "dataset.name").Config.model_json_schema()
    found = [
        (f"dataset.{name}", value)
        for name, value in spec.dataset.options.items()
        if isinstance(value, str) and _is_path(options["properties"].get(name, {}))
    ]
    if is_folder(spec.model.source):
        found.append(("model.source", spec.model.source))
    return found


def is_folder(source: str) -> bool:
    """Whether a model's ``source`` names a folder, and no model of a hub."""
    return source.startswith(("/", ".", "~")) or ".." in source.split("/") or source.count("/") > 1


def without_places(spec: ExperimentSpec) -> ExperimentSpec:
    """A resolved ``spec`` without paths on the server: of a model's folder the last name, of the dataset its name."""
    model = spec.model.model_copy(update={"source": without_place(spec.model.source)})
    return spec.model_copy(update={"model": model, "dataset": Choice.model_validate({"name": spec.dataset.name})})


def without_place(source: str) -> str:
    """``./NAME`` for a model's ``source`` that is a folder, whatever folders that is in; a hub name as it is."""
    return f"./{PurePath(source).name or 'model'}" if is_folder(source) else source


def _is_path(schema: Mapping[str, Any]) -> bool:
    return any(choice.get("format") == "path" for choice in [schema, *schema.get("anyOf", [])])


def algorithm_config(choice: Choice) -> FederatedConfig:
    """The chosen algorithm's options, by which its contributions are checked."""
    config: Any = _config("algorithms", "algorithm", choice)
    return config


def algorithm(choice: Choice) -> FederatedAlgorithm:
    """The chosen algorithm, ready to run."""
    module = discovery.load(PACKAGES["algorithms"], choice.name, "algorithm.name")
    return module.Algorithm(_config("algorithms", "algorithm", choice))


def dataset(choice: Choice) -> FederatedDataset:
    module = discovery.load(PACKAGES["datasets"], choice.name, "dataset.name")
    return module.Dataset(_config("datasets", "dataset", choice))


def partition(choice: Choice) -> FederatedPartition:
    module = discovery.load(PACKAGES["partitions"], choice.name, "partition.name")
    return module.Partition(_config("partitions", "partition", choice))


def _config(kind: str, section: str, choice: Choice) -> BaseModel:
    module = discovery.load(CONFIGS[kind], choice.name, f"{section}.name")
    try:
        return module.Config.model_validate(choice.options)
    except ValidationError as error:
        errors = field_errors(error, [section], module.Config)
        raise FerretError.of_fields("spec.invalid", errors) from error


def _single(kind: Kind) -> CatalogEntry:
    name, config = _SINGLE[kind]
    return _entry(name, cleandoc(config.__doc__ or ""), config)


def _entry(name: str, documentation: str, config: type[BaseModel]) -> CatalogEntry:
    title, _, description = documentation.partition("\n")
    return CatalogEntry(name, title.strip(), description.strip(), config.model_json_schema())
