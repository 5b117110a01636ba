"""``docs/results/gpu.md``: the content of the parts' JSON files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ferret_bench.base import shown
from ferret_bench.gpu.runner import PARTS, file_of, part
from ferret_core.protocol.formatting import size

TITLE = "# On a GPU\n"
NOTHING = """Nothing of Ferret has run on a GPU yet. On a machine that has one, [`make gpu`](../gpu.md) measures what is
asked there, and writes this page.
"""


def markdown(out: Path) -> str:
    """Renders the page of the documents in ``out``."""
    documents = [json.loads(file.read_bytes()) for name in PARTS if (file := file_of(name, out)).exists()]
    if not documents:
        return f"{TITLE}\n{NOTHING}"
    return "\n".join([TITLE, *(line for document in documents for line in _part(document))]).rstrip() + "\n"


def _part(document: Mapping[str, Any]) -> Iterator[str]:
    chosen = part(document["part"])
    steps: dict[str, dict[str, Any]] = document["steps"]
    yield f"## {chosen.title}\n"
    if document["miniature"]:
        yield "**In miniature: toy sizes, which show that everything runs and nothing else.**\n"
    yield f"{chosen.lead} {_machine(document['machine'])}\n"
    for table in chosen.tables({name: ended["found"] for name, ended in steps.items() if "found" in ended}):
        yield f"{table.title}\n"
        yield from _table(table.columns, table.rows)
    yield "What each step took:\n"
    yield from _table(("step", "seconds", "peak on the GPU", "how it ended"), [_step(*item) for item in steps.items()])


def _machine(machine: Mapping[str, Any]) -> str:
    gpu = f"{machine['gpu']}, {size(machine['gpu_memory_bytes'])}" if machine["gpu"] else "no GPU"
    driver = f", driver {machine['driver']}" if machine["driver"] else ""
    versions = machine["versions"]
    libraries = ", ".join(
        f"{name} {versions[name]}" for name in ("torch", "triton", "transformers") if name in versions
    )
    return f"{gpu}{driver}; {machine['cores']} cores of {machine['cpu']}, {size(machine['memory_bytes'])}; {libraries}."


def _step(name: str, ended: Mapping[str, Any]) -> Sequence[Any]:
    peak = ended.get("peak_device_bytes")
    how = ended["error"]["detail"] if "error" in ended else "done"
    return (name, f"{ended['seconds']:.1f}", None if peak is None else size(peak), how)


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    for row in rows:
        yield f"| {' | '.join(_cell(value) for value in row)} |"
    yield ""


def _cell(value: Any) -> str:
    return "–" if value is None else str(shown(value)).replace("|", "\\|").replace("\n", " ")
