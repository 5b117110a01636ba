"""Keeps a run for documents: ``ferret dev bench api --json | python -m ferret_bench._api_page docs/results/hardening``
writes ``api-DATABASE.json`` and, for people, ``api-DATABASE.md`` into the folder. A busy machine's run is not kept."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ferret_bench import _markdown
from ferret_bench.api import Benchmark
from ferret_bench.base import Table

IDLE = 0.5
"""Maximum load over the minute before the run."""

NAMES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
"""Names of the databases in titles."""


def main(arguments: list[str] | None = None) -> int:
    """Returns 1, and writes nothing, for a run that is not meaningful."""
    parser = argparse.ArgumentParser(prog="python -m ferret_bench._api_page", description=__doc__)
    parser.add_argument("folder", type=Path, help="folder for api.json and api.md")
    folder: Path = parser.parse_args(arguments).folder
    document = json.load(sys.stdin)
    if (reason := unfit(document)) is not None:
        sys.stderr.write(f"nothing is written: {reason}\n")
        return 1
    name = _name(document)
    folder.joinpath(f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    folder.joinpath(f"{name}.md").write_text(page(document), encoding="utf-8")
    return 0


def _name(document: Mapping[str, Any]) -> str:
    return f"api-{document['database']}"


def unfit(document: Mapping[str, Any]) -> str | None:
    """Returns the reason to reject the run, if any."""
    if document["asked"]["quick"]:
        return "--quick measures small sizes; run it without"
    if (load := document["load"]["before"][0]) > IDLE:
        return f"the load was {load:.2f} before the run; run it on a machine that does nothing else (at most {IDLE})"
    return None


def page(document: Mapping[str, Any]) -> str:
    """Renders the document in Markdown."""
    machine, (before, *_) = document["machine"], document["load"]["before"]
    processor = f"{machine['cores']} cores ({machine['cpu']}), {machine['memory_bytes'] / (1 << 30):.0f} GiB"
    about = (
        f"{document['participants']:,} enrolled participants in {document['experiments']} experiments send "
        f"{document['polls']:g} questions and {document['uploads']:g} uploads of 8 kB a second for "
        f"{document['case_seconds']:g} s: alone, and with {document['dripping']:,} connections that send a byte a "
        f"second. Then half of the rates. The {document['processes']} API processes share the machine with the "
        "database, the load and the turning of rounds: "
        f"{processor}, {document['database']}, load {before:.2f} before. [The run]({_name(document)}.json)."
    )
    title = f"# The API under load: {NAMES.get(document['database'], document['database'])}"
    parts = [title, about, "```console\nmake api-results\n```"]
    return "\n\n".join([*parts, *map(_section, Benchmark().tables(document))]) + "\n"


def _section(table: Table) -> str:
    rows = (["–" if cell is None else str(cell) for cell in row] for row in table.rows)
    written = _markdown.table(table.columns, rows, left=len(table.columns))
    return f"## {table.title[0].upper()}{table.title[1:]}\n\n{written}"


if __name__ == "__main__":
    sys.exit(main())
