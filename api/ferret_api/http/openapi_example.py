"""Example specification in the OpenAPI document. It uses hub names instead of paths, so it works on every server."""

from __future__ import annotations

from ferret_core.protocol.resources.base import Json

SPECIFICATION: Json = {
    "name": "instructions at 8 kB",
    "rounds": 20,
    "model": {"source": "HuggingFaceTB/SmolLM2-135M"},
    "dataset": {"name": "dolly", "hub": "databricks/databricks-dolly-15k"},
    "participants": {"simulated": 20},
    "algorithm": {
        "name": "ferret",
        "bytes_per_round": 8192,
        "local": {"optimizer": "adam", "learning_rate": 1e-4},
    },
}
