"""The final model's digest of every algorithm on examples/quickstart.toml, three rounds, as one JSON document.

    python -m scripts.digests > before.json

A change that must not change results prints the same document before and after.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
LOCAL = {"steps": 3}
"""Enough for every weight to move."""


def main() -> None:
    from ferret_core import discovery
    from ferret_core.protocol import spec_file
    from ferret_core.protocol.spec import ExperimentSpec
    from ferret_core.simulate import simulate

    tree = spec_file.read(EXAMPLES / "quickstart.toml")
    digests: dict[str, str] = {}
    for name in discovery.names("ferret_core.algorithms"):
        chosen = {
            **tree,
            "rounds": 3,
            "algorithm": {"name": name, "local": LOCAL},
            "evaluation": {"examples": 4, "generate_examples": 0},
        }
        chosen["model"] = {"source": str((EXAMPLES / tree["model"]["source"]).resolve())}
        chosen["dataset"] = {**tree["dataset"], "train": str(EXAMPLES / tree["dataset"]["train"])}
        digests[name] = simulate(ExperimentSpec.read(chosen, name)).digest
        print(name, digests[name], file=sys.stderr)
    print(json.dumps(digests, indent=2))


if __name__ == "__main__":
    main()
