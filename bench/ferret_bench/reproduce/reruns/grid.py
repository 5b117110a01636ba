"""A study's cells: every row on every dataset and model with every seed, each a whole specification with its key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from ferret_bench.reproduce.reruns.records import Record
from ferret_bench.reproduce.reruns.settings import Row, Settings, variants_of
from ferret_bench.reproduce.reruns.studies import Study
from ferret_core import catalog
from ferret_core.experiment.precision import resolve_precision
from ferret_core.protocol.digest import digest_json
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.protocol.spec_file import Tree

PLUG_INS = {"algorithm": "algorithms", "dataset": "datasets", "partition": "partitions"}
ONLY_THE_LAST = 1_000_000
ALL = "all"


@dataclass(frozen=True)
class Asked:
    """The command line's selection. None and () leave it to the study and its settings."""

    models: Sequence[str]
    data: Path | None = None
    rows: Sequence[str] = ()
    datasets: Sequence[str] = ()
    seeds: int | None = None
    first_seed: int = 1
    rounds: int | None = None
    examples: int | None = None
    generate: int | None = None

    @property
    def part(self) -> Tree:
        """Returns the part of every specification."""
        evaluation = {"examples": self.examples, "generate_examples": self.generate}
        given = {name: value for name, value in evaluation.items() if value is not None}
        return {"evaluation": given} | ({} if self.rounds is None else {"rounds": self.rounds})


class Column(NamedTuple):
    """A dataset and a model, with their names and labels."""

    dataset: str
    title: str
    model: str
    source: str


class Cell(NamedTuple):
    """One run of the grid.

    ``key`` identifies it on every machine: the digest of its specification with all defaults and without folders.
    ``others`` are specifications with the study's other datasets, if it measures forgetting.
    """

    row: Row
    column: Column
    seed: int
    spec: ExperimentSpec
    key: str
    others: Mapping[str, ExperimentSpec] = {}

    @property
    def title(self) -> str:
        return f"{self.row.label} · {self.column.title} · {self.column.model} · seed {self.seed}"

    def record(self, via: str, seconds: float, machine: dict[str, Any], **ended: Any) -> Record:
        """Creates the record of this cell's run."""
        return Record(
            key=self.key,
            row=self.row.name,
            dataset=self.column.dataset,
            model=self.column.model,
            seed=self.seed,
            via=via,
            seconds=round(seconds, 3),
            machine=machine,
            spec=without_folders(self.spec),
            **ended,
        )


def without_folders(spec: ExperimentSpec) -> Tree:
    """Returns the specification with only the names of its files: their folders differ between machines."""
    tree = spec.model_dump(mode="json")
    for field, value in catalog.paths(spec):
        section, _, option = field.partition(".")
        tree[section][option] = Path(value).name
    return tree


class Grid(NamedTuple):
    """A grid. ``skipped`` names plug-ins that this installation lacks."""

    rows: list[Row]
    columns: list[Column]
    cells: list[Cell]
    skipped: list[str]


def grid(study: Study, settings: Settings, asked: Asked) -> Grid:
    """Returns the cells in the order they are run: seed by seed, so that an interrupted grid has whole rows early.

    Raises ``spec.invalid`` for the first row with a wrong specification, ``request.invalid`` if nothing is left.
    """
    rows = shortly(_rows(study, settings, asked))
    names = _known(asked.datasets or study.datasets, settings.datasets, "--datasets")
    columns = [
        Column(name, settings.datasets[name]["label"], label, source)
        for name in names
        for label, source in _labels(asked.models)
    ]
    trees = [(row, column, _tree(study, settings, asked, row, column)) for row, column in product(rows, columns)]
    skipped = sorted({lacking for _, _, tree in trees if (lacking := _lacks(tree))})
    cells = [
        _cell(row, column, seed, tree)._replace(others=_others(study, settings, asked, row, column))
        for seed in range(asked.first_seed, asked.first_seed + (asked.seeds or study.seeds))
        for row, column, tree in trees
        if not _lacks(tree)
    ]
    if not cells:
        raise FerretError("request.invalid", f"nothing can be run here: there is no {', no '.join(skipped)}")
    return Grid(
        [row for row in rows if any(cell.row == row for cell in cells)],
        [column for column in columns if any(cell.column == column for cell in cells)],
        cells,
        skipped,
    )


def _tree(study: Study, settings: Settings, asked: Asked, row: Row, column: Column) -> Tree:
    part = settings.part(study, row, column.dataset, asked.part)
    files = settings.datasets[column.dataset].get("files", {})
    missing = {option: names for option, names in files.items() if option not in part.get("dataset", {})}
    found = _official_files(asked.data, column.dataset, missing)
    return {
        "checkpoint": {"every": ONLY_THE_LAST, "keep": None},  # null, as in the recorded specifications
        **part,
        "model": {"source": column.source, **part.get("model", {})},
        "prompt": {"template": "paper", **part.get("prompt", {})},
        "dataset": {"name": column.dataset, **found, **part.get("dataset", {})},
        "algorithm": {"name": row.algorithm, **part.get("algorithm", {})},
    }


def _others(study: Study, settings: Settings, asked: Asked, row: Row, column: Column) -> dict[str, ExperimentSpec]:
    """Returns the specifications that read the examples of the study's other datasets."""
    names = [name for name in study.datasets if name != column.dataset] if study.forgetting else []
    trees = {name: _tree(study, settings, asked, row, column._replace(dataset=name)) for name in names}
    return {name: _read(tree, name) for name, tree in trees.items()}


def _cell(row: Row, column: Column, seed: int, tree: Tree) -> Cell:
    name = f"{row.name} on {column.dataset} with {column.model}, seed {seed}"
    spec = _read({**tree, "seed": seed}, name)
    return Cell(row, column, seed, spec, digest_json(without_folders(spec)))


def _read(tree: Tree, name: str) -> ExperimentSpec:
    experiment = catalog.resolve(ExperimentSpec.read({**tree, "name": name}, name))
    # float32, as in the recorded specifications: a study does not depend on the hardware.
    return resolve_precision(experiment, bfloat16=False).spec


def _rows(study: Study, settings: Settings, asked: Asked) -> list[Row]:
    """Returns the study's rows, the requested or all. A variant can be requested by its name."""
    families = {name: _variants(study, settings, name) for name in settings.families}
    known = families | {row.name: [row] for rows in families.values() for row in rows}
    names = list(families) if asked.rows == (ALL,) else _known(asked.rows or study.rows, known, "--algorithms")
    return list({row.name: row for name in names for row in known[name]}.values())


def rows_of(study: Study, settings: Settings) -> list[Row]:
    """Returns every row, in the order of the study and then of the file, with separate variants."""
    names = dict.fromkeys((*study.rows, *settings.families))
    return [row for name in names for row in _variants(study, settings, name)]


def shortly(rows: list[Row]) -> list[Row]:
    """Returns the rows. If all are variants of one row, only the distinguishing part is shown."""
    if len({row.family for row in rows}) != 1:
        return rows
    return [row._replace(label=row.variant.label) if row.variant else row for row in rows]


def _variants(study: Study, settings: Settings, name: str) -> list[Row]:
    ways = variants_of(study, settings.row(name).algorithm) or {"": None}
    return [settings.row(name, variant, way) for variant, way in ways.items()]


def _known(names: Sequence[str], known: Mapping[str, Any], option: str) -> list[str]:
    for name in names:
        if name not in known:
            raise FerretError.of_field("request.invalid", option, name, f"unknown; choose from {', '.join(known)}")
    return list(dict.fromkeys(names))


def _labels(models: Sequence[str]) -> list[tuple[str, str]]:
    """Returns each model's label, its last name if that is unique, and its source; a folder is made absolute."""
    short = [Path(model).name for model in models]
    labels = short if len(set(short)) == len(short) else list(models)
    sources = [str(Path(model).resolve()) if Path(model).exists() else model for model in models]
    return list(zip(labels, sources, strict=True))


def _lacks(tree: Tree) -> str | None:
    """Returns the first plug-in of the specification that is not installed here."""
    for section, kind in PLUG_INS.items():
        name = tree.get(section, {}).get("name")
        if name is not None and name not in catalog.names(kind):
            return f"{section} {name}"
    return None


def _official_files(folder: Path | None, dataset: str, wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Returns the dataset's options that name files, with the paths in ``folder``; {} for the hub without one."""
    if folder is None:
        return {}
    return {option: _file(folder, dataset, names) for option, names in wanted.items()}


def _file(folder: Path, dataset: str, names: Sequence[str]) -> str:
    found = (folder / f"{name}{ending}" for name in names for ending in ("", ".gz"))
    path = next((path for path in found if path.exists()), None)
    if path is None:
        message = f"holds none of {', '.join(names)} (plain or .gz), which {dataset} needs"
        raise FerretError.of_field("dataset.invalid", "--data", str(folder), message)
    return str(path.resolve())
