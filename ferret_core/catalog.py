"""Catalog of algorithms, datasets, partitions and models, with the JSON Schema of their options and of the
specification.

Everything here is discovered from each entry's ``Config``; nothing is registered. Only :func:`algorithm` loads torch:
options, their schemas and the check of a contribution need none of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from inspect import cleandoc
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from pydantic import BaseModel, ValidationError

from ferret_core import compatibility, discovery
from ferret_core.protocol import merge_patch
from ferret_core.protocol.errors import FerretError, FieldError, FieldErrors, field_errors, suggestion
from ferret_core.protocol.spec import ExperimentSpec, ModelSpec, PluginChoice, is_folder
from ferret_core.rounds import sampling

if TYPE_CHECKING:
    from ferret_core.algorithms.base import FederatedAlgorithm
    from ferret_core.algorithms.configs.base import FederatedConfig, Preset
    from ferret_core.algorithms.configs.traits import Traits
    from ferret_core.datasets.base import FederatedDataset
    from ferret_core.datasets.partitions.base import FederatedPartition

Kind = Literal["algorithms", "datasets", "partitions", "models", "experiments"]

PACKAGES: dict[str, str] = {
    "algorithms": "ferret_core.algorithms",
    "datasets": "ferret_core.datasets",
    "partitions": "ferret_core.datasets.partitions",
}
CONFIGS: dict[str, str] = {**PACKAGES, "algorithms": "ferret_core.algorithms.configs"}
"""Packages of the entries' ``Config``; an algorithm's is separate from its code, which needs torch."""
SECTIONS: dict[str, str] = {"algorithm": "algorithms", "dataset": "datasets", "partition": "partitions"}
"""Sections of a specification that choose by name, with their kinds."""
_SINGLE: dict[str, tuple[str, type[BaseModel]]] = {
    "models": ("huggingface", ModelSpec),
    "experiments": ("specification", ExperimentSpec),
}
"""Kinds with a single entry: its name and its options."""


class CatalogEntry(NamedTuple):
    """One entry: its name, the first line and the rest of its documentation, and the JSON Schema of its options."""

    name: str
    title: str
    description: str
    options: dict[str, Any]


def names(kind: str) -> list[str]:
    """Returns the sorted names of a kind; an algorithm's presets come after it."""
    if kind in _SINGLE:
        return [_SINGLE[kind][0]]
    found = discovery.names(PACKAGES[kind])
    if kind != "algorithms":
        return found
    return [each for name in found for each in (name, *(of for of, (base, _) in _presets().items() if base == name))]


def base(algorithm: str) -> str:
    """Returns the algorithm of a preset; any other name unchanged."""
    return _presets()[algorithm][0] if algorithm in _presets() else algorithm


def entries(kind: Kind) -> list[CatalogEntry]:
    """Returns all entries of a kind, in the order of :func:`names`."""
    return [entry(kind, name) for name in names(kind)]


def entry(kind: Kind, name: str) -> CatalogEntry:
    """Returns one entry; raises ``catalog.not_found`` with the nearest name, or all of them."""
    known = names(kind)
    if name not in known:
        raise FerretError.of_field("catalog.not_found", kind, name, f"is unknown; {suggestion(name, known)}")
    if kind in _SINGLE:
        return _single(kind)
    if kind == "algorithms" and name in _presets():
        return _preset_entry(name)
    config = discovery.load(CONFIGS[kind], name, kind).Config
    return _entry(name, discovery.documentation(PACKAGES[kind], name), config)


class ResolvedExperiment(NamedTuple):
    """A specification with every option filled in, its algorithm's options, and the algorithm's traits with them.

    :func:`resolve` creates it from a new specification, :meth:`of` from a stored one.
    """

    spec: ExperimentSpec
    config: FederatedConfig
    traits: Traits

    @classmethod
    def of(cls, spec: ExperimentSpec) -> ResolvedExperiment:
        """Wraps a ``spec`` that was resolved before, such as a stored one. Nothing is filled in, and only the
        algorithm's options are checked. Raises ``spec.invalid``.
        """
        config: Any = _config("algorithms", "algorithm", spec.algorithm)
        return cls(spec, config, config.traits)


def resolve(spec: ExperimentSpec) -> ResolvedExperiment:
    """Returns ``spec`` with every option of its algorithm, dataset and partition checked and filled in.

    A preset becomes its algorithm with all options, so that later code sees no presets. Raises ``spec.invalid`` with
    one field error for each invalid option of all three, or else for all values that exclude each other
    (:data:`ferret_core.compatibility.RULES`).
    """
    wrong: list[FieldError] = []
    omitted = 0
    configs: dict[str, Any] = {}
    for section, kind in SECTIONS.items():
        try:
            configs[section] = _config(kind, section, getattr(spec, section))
        except FerretError as error:
            wrong += error.errors
            omitted += error.omitted
    if not wrong:
        config = configs["algorithm"]
        wrong += compatibility.problems(ResolvedExperiment(spec, config, config.traits))
    if wrong:
        raise FerretError.of_fields("spec.invalid", FieldErrors(wrong, omitted))
    choices = {section: _filled(section, getattr(spec, section), config) for section, config in configs.items()}
    round_ = spec.round.model_copy(update={"quorum": sampling.quorum_share(spec)})
    config = configs["algorithm"]
    return ResolvedExperiment(spec.model_copy(update={**choices, "round": round_}), config, config.traits)


def filled(section: str, choice: PluginChoice) -> PluginChoice:
    """Returns the ``choice`` of a ``section`` with its options filled in; raises ``spec.invalid`` for invalid ones."""
    return _filled(section, choice, _config(SECTIONS[section], section, choice))


def _filled(section: str, choice: PluginChoice, config: BaseModel) -> PluginChoice:
    name = base(choice.name) if section == "algorithm" else choice.name
    return PluginChoice.model_validate({"name": name, **config.model_dump()})


def paths(spec: ExperimentSpec) -> list[tuple[str, str]]:
    """Returns the values of a resolved ``spec`` that name files or folders, not the hub's, with their fields."""
    options = discovery.load(CONFIGS["datasets"], spec.dataset.name, "dataset.name").Config.model_json_schema()
    found = [
        (f"dataset.{name}", value)
        for name, value in spec.dataset.options.items()
        if isinstance(value, str) and _is_path(options["properties"].get(name, {}))
    ]
    if is_folder(spec.model.source):
        found.append(("model.source", spec.model.source))
    return found


def without_places(spec: ExperimentSpec) -> ExperimentSpec:
    """Returns a resolved ``spec`` without the server's paths: a model's last folder, and the dataset's name."""
    model = spec.model.model_copy(update={"source": without_place(spec.model.source)})
    return spec.model_copy(update={"model": model, "dataset": PluginChoice.model_validate({"name": spec.dataset.name})})


def without_place(source: str) -> str:
    """Returns ``./NAME`` for a model's ``source`` that is a folder; a hub name unchanged."""
    return f"./{PurePath(source).name or 'model'}" if is_folder(source) else source


def _is_path(schema: Mapping[str, Any]) -> bool:
    return any(choice.get("format") == "path" for choice in [schema, *schema.get("anyOf", [])])


def algorithm(experiment: ResolvedExperiment) -> FederatedAlgorithm:
    """Returns the chosen algorithm, ready to run."""
    module = discovery.load(PACKAGES["algorithms"], base(experiment.spec.algorithm.name), "algorithm.name")
    return module.Algorithm(experiment.config)


def dataset(choice: PluginChoice) -> FederatedDataset:
    module = discovery.load(PACKAGES["datasets"], choice.name, "dataset.name")
    return module.Dataset(_config("datasets", "dataset", choice))


def partition(choice: PluginChoice) -> FederatedPartition:
    module = discovery.load(PACKAGES["partitions"], choice.name, "partition.name")
    return module.Partition(_config("partitions", "partition", choice))


def _config(kind: str, section: str, choice: PluginChoice) -> BaseModel:
    name, options = choice.name, choice.options
    if kind == "algorithms" and name in _presets():
        name, preset = _presets()[name]
        options = _laid_over(preset.options, options, name)
    also = _presets() if kind == "algorithms" else ()
    module = discovery.load(CONFIGS[kind], name, f"{section}.name", also)
    try:
        return module.Config.model_validate(options)
    except ValidationError as error:
        errors = field_errors(error, [section], module.Config)
        raise FerretError.of_fields("spec.invalid", errors) from error


@cache
def _presets() -> dict[str, tuple[str, Preset]]:
    """Returns the presets of all algorithms by name, each with its algorithm's name."""
    package = CONFIGS["algorithms"]
    return {
        preset: (name, found)
        for name in discovery.names(package)
        for preset, found in getattr(discovery.load(package, name, "algorithm.name"), "PRESETS", {}).items()
    }


def _laid_over(preset: Mapping[str, Any], given: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
    """Returns the options ``given`` merged over a ``preset``'s. Preset options that a given option excludes are
    dropped, as is the local training if another optimizer is given.
    """
    schema = entry("algorithms", algorithm).options["properties"]
    taken = [name for name, value in given.items() if value is not None]
    gone = {other for name in taken for other in schema.get(name, {}).get("excludes", ())}
    local = given.get("local")
    if isinstance(local, Mapping) and "optimizer" in local:
        asked, own = cast(Mapping[str, Any], local)["optimizer"], preset.get("local", {}).get("optimizer")
        gone |= {"local"} if asked != own else set()
    return merge_patch.composed({name: value for name, value in preset.items() if name not in gone}, given)


def _preset_entry(name: str) -> CatalogEntry:
    """Returns the entry of a preset's algorithm with the preset's values for defaults."""
    algorithm, preset = _presets()[name]
    options = entry("algorithms", algorithm).options
    filled_in = _config("algorithms", "algorithm", PluginChoice(name=name)).model_dump(mode="json")
    _set_defaults(options, filled_in, options.get("$defs", {}))
    said = ", ".join(f"{option} = {json.dumps(value)}" for option, value in _leaves(preset.options))
    return CatalogEntry(name, preset.title, f"A preset of ``{algorithm}``: {said}.", options)


def _set_defaults(schema: dict[str, Any], values: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    for name, value in values.items():
        option = schema["properties"][name]
        option["default"] = value
        if (table := tables.get(option.get("$ref", "").rpartition("/")[2])) is not None:
            _set_defaults(table, value, tables)


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(cast(Mapping[str, Any], value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _single(kind: Kind) -> CatalogEntry:
    name, config = _SINGLE[kind]
    return _entry(name, cleandoc(config.__doc__ or ""), config)


def _entry(name: str, documentation: str, config: type[BaseModel]) -> CatalogEntry:
    title, _, description = documentation.partition("\n")
    return CatalogEntry(name, title.strip(), description.strip(), config.model_json_schema())
