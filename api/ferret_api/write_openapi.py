"""``python -m ferret_api.write_openapi`` writes ``openapi.json`` at the repository's root; ``--check`` compares
instead and fails on drift.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from ferret_api.app import create_app

FILE = Path(__file__).parents[2] / "openapi.json"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m ferret_api.write_openapi", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare with the file instead of writing it")
    text = json.dumps(create_app().openapi(), indent=2, ensure_ascii=False) + "\n"
    if not parser.parse_args(arguments).check:
        FILE.write_text(text, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text:
        sys.stderr.write(f"{FILE.name} is stale: run `python -m ferret_api.write_openapi` and commit the result\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
