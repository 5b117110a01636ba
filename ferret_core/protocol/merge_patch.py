"""JSON Merge Patch (RFC 7396): a change to a document, written as the part of it that changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def apply(document: Any, patch: Any) -> Any:
    """``document`` changed by ``patch``, as section 2 of the RFC has it; neither is touched.

    An object is merged member by member and null takes its member away; anything else replaces what was there.
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
    """The one patch that does what ``first`` does, and then ``second``."""
    both = dict(first)
    for name, value in second.items():
        below = both.get(name)
        deeper = isinstance(below, Mapping) and isinstance(value, Mapping)
        both[name] = composed(cast(Mapping[str, Any], below), cast(Mapping[str, Any], value)) if deeper else value
    return both
