"""All SQL on tables is in the repositories."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATEMENTS = {"select", "insert", "update", "delete", "text"}
FOLDERS = ("api", "worker", "ferret_runtime", "ferret_cli", "ferret_db/engine")


def test_only_repositories_write_statements() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {alias.name}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy")
        for alias in node.names
        if alias.name in STATEMENTS
    ]
    assert found == []
