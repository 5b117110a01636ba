"""The page that lists the errors, from the catalog of problems."""

from __future__ import annotations

import tables

from ferret_core.protocol.errors import NEXT_STEPS, PROBLEMS


def page() -> str:
    """Returns Markdown: every error code by its first word."""
    lines = list[str]()
    for group in sorted({code.partition(".")[0] for code in PROBLEMS}):
        lines += ["", f"## {group}", "", *tables.table("code", "title", "HTTP", "exit", "next step")]
        for code, problem in sorted(PROBLEMS.items()):
            if code.partition(".")[0] == group:
                step = NEXT_STEPS.get(code, "")
                lines.append(tables.row(f"`{code}`", problem.title, str(problem.status), str(problem.exit.value), step))
    return "\n".join(lines) + "\n"
