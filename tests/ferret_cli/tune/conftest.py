"""An experiment with ``[tune]`` that takes a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

FAST = "algorithm.local.learning_rate = { log = [1e-4, 1e-1] }"
LOCAL = 'optimizer = "adam", clip_norm = 3.0'


@pytest.fixture
def tune_file(tmp_path: Path, tiny_model_dir: Path, toy_data: tuple[Path, Path]) -> Callable[..., Path]:
    """``tune_file("trials = 3")``: the toy task, with these lines as its table ``[tune]``."""

    def write(*lines: str) -> Path:
        file = tmp_path / "toy.toml"
        file.write_text(
            f"""
            name = "toy"
            seed = 5
            rounds = 3
            model.source = "{tiny_model_dir}"
            dataset = {{ name = "jsonl", train = "{toy_data[0]}", test = "{toy_data[1]}" }}
            participants.simulated = 2
            algorithm.name = "ferret"
            algorithm.refuse_noisy_rounds = false
            algorithm.local = {{ steps = 2, batch_size = 4, accumulation = 1, precision = "float32", {LOCAL} }}
            evaluation = {{ examples = 10, generate_examples = 0 }}
            [tune]
            """
            + "\n".join(lines or [FAST])
        )
        return file

    return write
