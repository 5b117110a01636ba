"""Changes to a specification: a JSON Merge Patch, and the effects of setting one option on others.

- Another algorithm, dataset or partition comes without the previous one's options, and another model without the
  previous revision and digest. Only ``algorithm.local``, the participants' own training, keeps the options that both
  algorithms declare identically, default included: a rate for Adam says nothing about one for zeroth-order steps.
- An option replaces the options that it excludes (``excludes`` in its JSON Schema).
- Another local optimizer comes without rate and schedule if one of the two is ``normalized``: its rate is a length.
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
"""The choosing field of each section of a specification."""
OF_SOURCE: frozenset[Path] = frozenset({("revision",), ("digest",)})
"""Fields specific to a model's source."""


class Revision(NamedTuple):
    """The changed document, and by dotted names the values that were dropped implicitly."""

    document: Any
    dropped: dict[str, Any]


def revise(document: Tree, patch: Any) -> Revision:
    """Returns the specification ``document`` changed by ``patch`` (RFC 7396); both stay, and need not be valid."""
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
    """Returns the options of ``before`` that must go and that the change does not mention."""
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
    """Returns the default choice; None if a choice is required."""
    default = ExperimentSpec.model_fields[part].default
    return default.name if isinstance(default, PluginChoice) else None


def _optimizer(options: Tree, declared: Mapping[Path, Any]) -> str | None:
    """Returns the local optimizer that is set, or else the algorithm's own; None without an optimizer."""
    own: Mapping[str, Any] = declared.get(("local",), {}).get("default", {})
    return dict(_leaves(options)).get(OPTIMIZER, own.get("optimizer"))


def _means_the_same(path: Path, old: Mapping[Path, Any], new: Mapping[Path, Any]) -> bool:
    return path[0] == "local" and path in old and old[path] == new.get(path)


def _declared(part: str, name: Any) -> dict[Path, Any]:
    """Returns the JSON Schema of each option of a choice; empty for an unknown choice."""
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
    """Returns the options and, one level down, the options of ``algorithm.local``."""
    for name, value in options.items():
        if name == "local" and isinstance(value, Mapping):
            yield from (((name, inner), found) for inner, found in cast(Tree, value).items())
        else:
            yield (name,), value


def nested(path: Path, value: Any) -> Any:
    """Returns a tree with only ``value`` at ``path``."""
    for name in reversed(path):
        value = {name: value}
    return value
