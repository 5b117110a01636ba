"""The demo's own base model and data, made by this project: nothing to download."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def model_path() -> Path:
    """Returns the folder of the base model and its tokenizer, in Hugging Face layout."""
    return Path(__file__).parent / "model"


def quickstart_data() -> Path:
    """Returns the quickstart's JSON Lines file of short tasks."""
    return Path(__file__).parent / "quickstart.jsonl"


def quickstart() -> dict[str, Any]:
    """Returns the specification of ``examples/quickstart.toml``, with absolute paths."""
    return {
        "name": "quickstart",
        "rounds": 5,
        "model": {"source": str(model_path())},
        "dataset": {"name": "jsonl", "train": str(quickstart_data())},
        "participants": {"simulated": 4},
        "algorithm": {
            "name": "ferret",
            "bytes_per_round": 8192,
            "local": {"optimizer": "adam", "learning_rate": 1e-3},
        },
    }
