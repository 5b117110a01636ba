"""Counts phrases that stop a reader, in docstrings, comments, descriptions, help texts and documents.

python -m scripts.prose              fails if a pattern has more hits than scripts/prose.json allows
python -m scripts.prose --show NAME  lists the hits of one pattern
python -m scripts.prose --write      lowers the numbers in scripts/prose.json to today's
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
ALLOWED = ROOT / "scripts" / "prose.json"
CODE = ("ferret_core", "ferret_runtime", "ferret_db", "api", "worker", "ferret_sdk", "ferret_cli", "bench", "scripts")
SECTIONS = ("start", "tutorials", "researchers", "sites", "operators", "concepts", "reference", "research")
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", *(f"docs/{name}/*.md" for name in SECTIONS))
DASHBOARD = ("web/src/**/*.ts", "web/src/**/*.tsx")
GENERATED = ("api/ferret_api/static/", "web/src/api/schema.d.ts")
KEYWORDS = {"description", "help", "summary", "title"}
"""Arguments with strings that a user reads."""

PATTERNS = {
    "opens with a clause": r"\A\s*(What|Who|Whose|Whoever|Whether|Where|How|When|Of|As)\b",
    "those that": r"\b[Tt]hose (that|of|who)\b",
    "whoever": r"\b[Ww]ho(ever|m|se)\b",
    "is none": r"\b(is|are) (none|no)\b",
    "told, asked, said": r"\b(told|tells|asked|asks|said|says)\b",
    "stands, lies": r"\b(stands?|lies?)\b",
    "of its own": r"\bof (its|their|one's) own\b",
    "beside": r"\bbeside\b",
    "of which": r"\b(of|by|for|to) which\b",
    "is to be": r"\b(is|are|has) to be\b",
    "any more, anew": r"\b(any more|for ever|in vain|anew)\b",
    "comes to, becomes of": r"\b(c(a|o)mes? of|becomes of)\b",
    "so many": r"\bso (many|much|long)\b",
}


class Hit(NamedTuple):
    file: str
    line: int
    text: str


def texts() -> Iterator[Hit]:
    """Yields every text of the repository that a person reads."""
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not _generated(path):
                yield from of_python(_name(path), path.read_text(encoding="utf-8"))
    for pattern in (*DOCUMENTS, *DASHBOARD):
        for path in sorted(ROOT.glob(pattern)):
            if not _generated(path):
                yield from _of_lines(path)


def hits(pattern: str, texts: Iterable[Hit]) -> list[Hit]:
    """Returns the texts that contain the pattern."""
    return [text for text in texts if re.search(PATTERNS[pattern], text.text)]


def of_python(name: str, source: str) -> Iterator[Hit]:
    """Yields docstrings, comments, and the strings of ``KEYWORDS`` in the source of the file ``name``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) or (isinstance(node, ast.keyword) and node.arg in KEYWORDS):
            match node.value:
                case ast.Constant(value=str(text), lineno=line):
                    yield Hit(name, line, text)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield Hit(name, token.start[0], token.string.lstrip("# "))


def _of_lines(path: Path) -> Iterator[Hit]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        yield Hit(_name(path), number, line)


def _generated(path: Path) -> bool:
    return _name(path).startswith(GENERATED) or "node_modules" in path.parts


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def main() -> int:
    """Returns 0 if no pattern has more hits than allowed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", choices=PATTERNS, metavar="NAME", help="list the hits of one pattern")
    parser.add_argument("--write", action="store_true", help="lower the allowed numbers to today's")
    options = parser.parse_args()
    read = list(texts())
    if options.show:
        for hit in hits(options.show, read):
            print(f"{hit.file}:{hit.line}: {' '.join(hit.text.split())[:120]}")
        return 0
    found = {pattern: len(hits(pattern, read)) for pattern in PATTERNS}
    allowed = json.loads(ALLOWED.read_text(encoding="utf-8")) if ALLOWED.exists() else {}
    if options.write:
        lower = {pattern: min(count, allowed.get(pattern, count)) for pattern, count in found.items()}
        ALLOWED.write_text(json.dumps(lower, indent=2) + "\n", encoding="utf-8")
        return 0
    more = {pattern: count for pattern, count in found.items() if count > allowed.get(pattern, 0)}
    for pattern, count in more.items():
        limit = allowed.get(pattern, 0)
        print(f"{pattern}: {count} hits, {limit} are allowed; list them: python -m scripts.prose --show '{pattern}'")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
