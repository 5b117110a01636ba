"""JSON Merge Patch (RFC 7396): a change to a document, written as its changed part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def apply(document: Any, patch: Any) -> Any:
    """Returns ``document`` changed by ``patch`` (RFC 7396, section 2), without modifying either.

    Objects are merged member by member, null removes a member, and any other value replaces the old one.
    """
    if not isinstance(patch, Mapping):
        return patch
    members = cast(Mapping[str, Any], patch)
    changed = dict(cast(Mapping[str, Any], document)) if isinstance(document, Mapping) else {}
    for name, value in members.items():
        if value is None:
            changed.pop(name, None)
        else:
            changed[name] = apply(changed.get(name), value)
    return changed


def composed(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the one patch that is equivalent to ``first`` followed by ``second``."""
    both = dict(first)
    for name, value in second.items():
        below = both.get(name)
        deeper = isinstance(below, Mapping) and isinstance(value, Mapping)
        both[name] = composed(cast(Mapping[str, Any], below), cast(Mapping[str, Any], value)) if deeper else value
    return both
