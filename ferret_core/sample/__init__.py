"""The demo's own base model and data, made by this project: nothing to download."""

from __future__ import annotations

from pathlib import Path


def model_path() -> Path:
    """Returns the folder of the base model and its tokenizer, in Hugging Face layout."""
    return Path(__file__).parent / "model"
