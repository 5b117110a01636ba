"""Changes to a specification: a JSON Merge Patch, and what setting one option does to others.

- Another algorithm, dataset or partition comes without the options of the one before, and another model without its
  revision and digest. Only ``algorithm.local``, the participants' own training, stays as far as both algorithms declare
  an option the same, default included: a rate for Adam says nothing about one for zeroth-order steps.
- An option takes the place of those that it excludes (``excludes`` in its JSON Schema).
- Another local optimizer comes without rate and schedule where one of the two is ``normalized``: its rate is a length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from ferret_core import catalog
from ferret_core.protocol import merge_patch
from ferret_core.protocol.errors import FerretError
from ferret_core.protocol.spec import ExperimentSpec, PluginChoice

Tree = Mapping[str, Any]
Path = tuple[str, ...]

NORMALIZED = "normalized"
OPTIMIZER: Path = ("local", "optimizer")
RATE: frozenset[Path] = frozenset({("local", "learning_rate"), ("local", "schedule")})
KEYS = {"algorithm": "name", "dataset": "name", "partition": "name", "model": "source"}
"""What each part of a specification chooses by."""
OF_SOURCE: frozenset[Path] = frozenset({("revision",), ("digest",)})
"""What a model's source has of its own."""


class Revision(NamedTuple):
    """The changed document, and by dotted names the values that had to go without being mentioned in the change."""

    document: Any
    dropped: dict[str, Any]


def revise(document: Tree, patch: Any) -> Revision:
    """``document``, a specification, changed by ``patch`` (RFC 7396); neither is touched, and neither need be valid."""
    dropped: dict[str, Any] = {}
    kept: Any = document
    for part in KEYS if isinstance(patch, Mapping) else ():
        before, change = document.get(part), cast(Tree, patch).get(part)
        if isinstance(before, Mapping) and isinstance(change, Mapping):
            for path, value in _losses(part, cast(Tree, before), cast(Tree, change)):
                kept = merge_patch.apply(kept, nested((part, *path), None))
                if value is not None:
                    dropped[".".join((part, *path))] = value
    return Revision(merge_patch.apply(kept, patch), dropped)


def _losses(part: str, before: Tree, change: Tree) -> Iterator[tuple[Path, Any]]:
    """The options of ``before`` that have to go and that the change does not mention."""
    key = KEYS[part]
    name = before.get(key) or _usual(part)
    chosen = (change[key] or _usual(part)) if key in change else name
    old = _declared(part, name)
    new = old if chosen == name else _declared(part, chosen)
    changed = dict(_leaves(change))
    given = (path for path, value in changed.items() if value is not None)
    excluded = {(*path[:-1], other) for path in given for other in new.get(path, {}).get("excludes", ())}
    if NORMALIZED in (optimizers := (_optimizer(before, old), changed.get(OPTIMIZER))) and None not in optimizers:
        excluded |= set() if optimizers[0] == optimizers[1] else RATE
    for path, value in _leaves(before):
        stays = chosen == name or (part == "model" and path not in OF_SOURCE) or _means_the_same(path, old, new)
        if path not in changed and (path in excluded or not stays):
            yield path, value
    if chosen != name and ("local",) not in new and "local" not in change:
        yield ("local",), None


def _usual(part: str) -> str | None:
    """What is chosen where nothing is named; None where something has to be."""
    default = ExperimentSpec.model_fields[part].default
    return default.name if isinstance(default, PluginChoice) else None


def _optimizer(options: Tree, declared: Mapping[Path, Any]) -> str | None:
    """The local optimizer that is set, or else the algorithm's own; None where it has none."""
    own: Mapping[str, Any] = declared.get(("local",), {}).get("default", {})
    return dict(_leaves(options)).get(OPTIMIZER, own.get("optimizer"))


def _means_the_same(path: Path, old: Mapping[Path, Any], new: Mapping[Path, Any]) -> bool:
    return path[0] == "local" and path in old and old[path] == new.get(path)


def _declared(part: str, name: Any) -> dict[Path, Any]:
    """The JSON Schema of each option of a choice; nothing for a choice that is not known here."""
    if part == "model":
        return {}
    try:
        schema = catalog.entry(cast(catalog.Kind, f"{part}s"), str(name)).options
    except FerretError:
        return {}
    declared: dict[Path, Any] = {}
    for option, own in schema["properties"].items():
        inner = schema.get("$defs", {}).get(own.get("$ref", "").rpartition("/")[2], {})
        declared |= {(option,): own, **{(option, name): below for name, below in inner.get("properties", {}).items()}}
    return declared


def _leaves(options: Tree) -> Iterator[tuple[Path, Any]]:
    """The options and, one level down, those of ``algorithm.local``."""
    for name, value in options.items():
        if name == "local" and isinstance(value, Mapping):
            yield from (((name, inner), found) for inner, found in cast(Tree, value).items())
        else:
            yield (name,), value


def nested(path: Path, value: Any) -> Any:
    """``value`` at ``path`` and nothing else."""
    for name in reversed(path):
        value = {name: value}
    return value
