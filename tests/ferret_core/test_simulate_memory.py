"""Many clients share one loaded model, and nothing of them stays behind."""

from __future__ import annotations

import ctypes
import gc
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoTokenizer, LlamaForCausalLM

from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import RoundResult, simulate

STATUS = Path("/proc/self/status")


@pytest.fixture
def model_dir(tiny_model_dir: Path, tmp_path: Path) -> Path:
    """The tiny model, wide enough that one copy left behind (1 MB) is more than the allocator's noise."""
    config = AutoConfig.from_pretrained(tiny_model_dir, hidden_size=96, intermediate_size=320)
    with torch.random.fork_rng([]):
        LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    AutoTokenizer.from_pretrained(tiny_model_dir).save_pretrained(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.heavy
@pytest.mark.skipif(not STATUS.exists(), reason="only Linux says how much memory a process has of its own")
@pytest.mark.parametrize(
    "algorithm",
    ["topk", pytest.param("ferret", marks=pytest.mark.slow), pytest.param("fedavg", marks=pytest.mark.slow)],
)
def test_memory_is_flat_over_rounds(
    toy_spec: Callable[..., ExperimentSpec], model_dir: Path, tmp_path: Path, algorithm: str
) -> None:
    rows = [{"instruction": "Say it.", "input": str(i), "output": f"it is {i}"} for i in range(250)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    spec = toy_spec(
        algorithm,
        options={"local": {"steps": 1, "batch_size": 1, "accumulation": 1}},
        rounds=7,
        model={"source": str(model_dir)},
        dataset={"name": "jsonl", "train": str(tmp_path / "rows.jsonl")},
        participants={"simulated": 200, "fraction": 0.05},
        evaluation={"every": 100, "examples": 2, "generate_examples": 0},
    )
    held: list[float] = []

    def note(done: RoundResult) -> None:
        held.append(_own_megabytes())

    result = simulate(spec, on_round=note)
    assert len({name for done in result.rounds for name in done.accepted}) > 40
    assert held[-1] - held[3] < 2, f"MB after each round: {held}"


def _own_megabytes() -> float:
    """Anonymous memory, once what is free has been given back to the system."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    found = re.search(r"^RssAnon:\s+(\d+) kB", STATUS.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1000
