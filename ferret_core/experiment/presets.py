"""Presets: named starting points for a specification, with sensible choices.

Each suits a model of any size: a test checks from 1 M to 13 B parameters that the noise of its projection stays below
what the guard refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from ferret_core.experiment.spec_patch import Revision, revise
from ferret_core.protocol import merge_patch
from ferret_core.protocol.errors import FerretError


class Preset(NamedTuple):
    """A preset. ``description`` is one sentence; ``change`` is a part of a specification."""

    name: str
    description: str
    change: dict[str, Any]


PRESETS = (
    Preset(
        "paper",
        "The paper's own setting: 4096 coordinates in fp16 of basis T, ten steps of plain SGD, a server rate of 5 in "
        "unbiased units.",
        {
            "algorithm": {"name": "ferret_paper", "local": {"learning_rate": 3e-4, "steps": 10}},
            "server": {"learning_rate": 1.67},
        },
    ),
    Preset(
        "fast",
        "To see soon whether model, data and prompt fit: five rounds of five steps, the loss on 64 examples, no "
        "generated answers, only the newest checkpoint.",
        {
            "rounds": 5,
            "algorithm": {"name": "ferret", "local": {"steps": 5}},
            "evaluation": {"examples": 64, "generate_examples": 0},
            "checkpoint": {"keep": 1},
        },
    ),
    Preset(
        "private",
        "For owners of private data: five real participants, each approved by a researcher, in secure sums of at "
        "least three, so that the server reads only sums; 131,072 one-bit coordinates each, about 50 kB.",
        {
            "participants": {"simulated": 0, "edge": 5, "approval": True},
            "secure": {"aggregation": "masked", "least": 3},
            "algorithm": {
                "name": "ferret",
                "K": 131_072,
                "coordinates": "sign",
                "seeds": "shared",
                "allocation": "fixed",
            },
        },
    ),
)


def apply_preset(document: Mapping[str, Any], name: str) -> Revision:
    """``document`` with the preset, without what only another preset had set; ``catalog.not_found`` for another name.

    The document may be invalid.
    """
    wanted = next((preset for preset in PRESETS if preset.name == name), None)
    if wanted is None:
        known = ", ".join(preset.name for preset in PRESETS)
        raise FerretError.of_field("catalog.not_found", "preset", name, f"choose one of {known}")
    patch: dict[str, Any] = {}
    for other in PRESETS:
        patch = merge_patch.composed(patch, _taken_back(document, other.change))
    return revise(document, merge_patch.composed(patch, wanted.change))


def _taken_back(document: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Returns null for each value of ``change`` that ``document`` has."""
    found: dict[str, Any] = {}
    for name, value in change.items():
        given = document.get(name)
        if isinstance(value, Mapping) and isinstance(given, Mapping):
            if below := _taken_back(cast(Mapping[str, Any], given), cast(Mapping[str, Any], value)):
                found[name] = below
        elif given is not None and given == value:
            found[name] = None
    return found
