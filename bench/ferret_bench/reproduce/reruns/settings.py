"""Settings of rows and datasets: the files next to this one, a user's file over them, single values over all."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from ferret_bench.reproduce.reruns.studies import Study, Variant
from ferret_cli import spec_input
from ferret_core import catalog
from ferret_core.protocol import spec_file
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec_file import Tree

DASH = "-"
"""Between a row's name and its variant's."""
NOT_SPEC = frozenset({"label", "group", "printed", "files", "tuned_with"})
OURS = "ferret"
"""The group of our rows, which are compared with their rivals."""


class Row(NamedTuple):
    """A row as it is run. ``family`` is its name in ``rows.toml``.

    ``name`` and ``label`` include the variant. ``series`` is the label without the last part of the variant's, in which
    the points of a line differ. ``printed`` is the name of its figures in ``printed.toml``.
    """

    name: str
    label: str
    family: str
    series: str
    variant: Variant | None
    group: str
    printed: str
    algorithm: str


@dataclass(frozen=True)
class Settings:
    """``rows`` and ``datasets`` by name, as in the files. ``over`` are single values by name, under "" for all."""

    rows: Mapping[str, Tree]
    datasets: Mapping[str, Tree]
    over: Mapping[str, Tree]

    @property
    def families(self) -> list[str]:
        """Returns the rows without variants: a table named after a variant only adds to its row's."""
        return [name for name, entry in self.rows.items() if "label" in entry]

    def row(self, name: str, variant: str = "", way: Variant | None = None) -> Row:
        """Returns the row ``name`` of ``rows.toml``, as it is or as a variant."""
        entry = self.rows[name]
        label = f"{entry['label']}, {way.label}" if way else entry["label"]
        return Row(
            name=f"{name}{DASH}{variant}" if way else name,
            label=label,
            family=name,
            series=label.rpartition(", ")[0] if way else label,
            variant=way,
            group=entry["group"],
            printed=entry.get("printed", name),
            algorithm=entry.get("algorithm", {}).get("name", name),
        )

    def part(self, study: Study, row: Row, dataset: str, asked: Tree) -> Tree:
        """Returns the part of a specification for this row on this dataset.

        Later layers win: the dataset's, the row's, the row's for the dataset, the study's, the variant's, the
        command line's for all, single values.
        """
        entry, own = self.rows[row.family], self.rows.get(row.name, {}) if row.variant else {}
        layers = [
            self.datasets[dataset],
            self._spec(entry),
            entry.get(dataset, {}),
            study.parts,
            row.variant.part if row.variant else {},
            self._spec(own),
            own.get(dataset, {}),
            asked,
            *(self.over.get(name, {}) for name in ("", dataset, row.family, row.name)),
        ]
        return {name: value for name, value in layered(layers).items() if name not in NOT_SPEC}

    def _spec(self, entry: Tree) -> Tree:
        return {name: value for name, value in entry.items() if name not in self.datasets}


def read(file: Path | None, assignments: Sequence[str], study: Study, *, absolute_paths: bool) -> Settings:
    """Reads the shipped settings, ``file`` over them, and ``--set``. Raises ``spec.invalid`` for unknown names."""
    rows, datasets = shipped("rows.toml"), shipped("datasets.toml")
    known = {*rows, *datasets, *(f"{row}{DASH}{variant}" for row in rows for variant in _variants(rows, row, study))}
    for name, entry in (spec_file.read(file) if file else {}).items():
        if name not in known:
            message = f"is neither a row nor a dataset: use one of {', '.join(sorted(known))}"
            raise FerretError.of_field("spec.invalid", str(file), name, message)
        into = datasets if name in datasets else rows
        into[name] = layered([into.get(name, {}), entry])
    return Settings(rows, datasets, _over(assignments, known, absolute_paths=absolute_paths))


def variants_of(study: Study, algorithm: str) -> Mapping[str, Variant]:
    """Returns the algorithm's variants; a preset has its algorithm's."""
    return study.variants.get(catalog.base(algorithm), {})


def shipped(name: str) -> Tree:
    """A TOML file in the folder of this module."""
    return tomllib.loads((files(__package__ or "") / name).read_text(encoding="utf-8"))


def layered(layers: Iterable[Tree]) -> Tree:
    """One tree of several, the later over the earlier; none is changed."""
    tree: Tree = {}
    for layer in layers:
        spec_input.merge(tree, deepcopy(dict(layer)))
    return tree


def _variants(rows: Mapping[str, Tree], row: str, study: Study) -> Mapping[str, Variant]:
    return variants_of(study, rows[row].get("algorithm", {}).get("name", row))


def _over(assignments: Sequence[str], names: set[str], *, absolute_paths: bool) -> dict[str, Tree]:
    """``gsm8k.rounds=3`` is for that dataset, ``fedavg.rounds=3`` for that row, ``rounds=3`` for all."""
    texts: dict[str, list[str]] = {}
    for text in assignments:
        scope, _, rest = text.partition(".")
        scoped = scope in names
        texts.setdefault(scope if scoped else "", []).append(rest if scoped else text)
    return {scope: spec_input.assigned(found, absolute_paths=absolute_paths) for scope, found in texts.items()}
