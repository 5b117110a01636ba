"""Differences between two specifications, and the change that leads from one to the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from pydantic import ValidationError

from ferret_core import catalog
from ferret_core.experiment.spec_patch import KEYS, revise
from ferret_core.protocol import merge_patch
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec

Tree = Mapping[str, Any]


class Difference(NamedTuple):
    """A value by its dotted name; None if it is unset, or if the algorithm, dataset or partition has no such option."""

    field: str
    before: Any
    after: Any


def differences(before: Tree, after: Tree) -> list[Difference]:
    """Returns the different values, in the order of ``before`` and then of ``after``."""
    old, new = dict(_leaves(before)), dict(_leaves(after))
    return [
        Difference(field, old.get(field), new.get(field))
        for field in dict.fromkeys([*old, *new])
        if old.get(field) != new.get(field)
    ]


def compute_patch(original: Tree, wanted: Tree) -> dict[str, Any]:
    """The shortest change that makes ``wanted`` of ``original`` by :func:`~ferret_core.experiment.spec_patch.revise`;
    both resolved.

    Another algorithm takes one word if the rest follows from it.
    """
    chosen = _choices(original, wanted)
    short = merge_patch.composed(chosen, patch(_resolved(revise(original, chosen).document), wanted))
    if _resolved(revise(original, short).document) == wanted:
        return short
    return merge_patch.composed(patch(original, wanted), {"algorithm": wanted["algorithm"]})


def _choices(original: Tree, wanted: Tree) -> dict[str, Any]:
    """Returns the different values on which other values depend."""
    found = {part: {key: wanted[part][key]} for part, key in KEYS.items() if original[part][key] != wanted[part][key]}
    optimizers = [tree["algorithm"].get("local", {}).get("optimizer") for tree in (original, wanted)]
    if "algorithm" not in found and optimizers[0] != optimizers[1]:
        found["algorithm"] = {"local": {"optimizer": optimizers[1]}}
    return found


def patch(before: Tree, after: Tree) -> dict[str, Any]:
    """Returns the JSON Merge Patch from ``before`` to ``after``."""
    found: dict[str, Any] = {name: None for name in before if before[name] is not None and after.get(name) is None}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            if below := patch(cast(Tree, old), cast(Tree, value)):
                found[name] = below
        elif value is not None and value != old:
            found[name] = value
    return found


def _resolved(document: Tree) -> Tree:
    """Returns the document with its defaults, or unchanged if it is incomplete."""
    try:
        return catalog.resolve(ExperimentSpec.model_validate(document)).spec.model_dump(mode="json")
    except (ValidationError, FerretError):
        return document


def _leaves(tree: Tree, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(cast(Tree, value), f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
