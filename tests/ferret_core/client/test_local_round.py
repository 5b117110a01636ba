from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from ferret_core import catalog
from ferret_core.client import local_round
from ferret_core.experiment import token_lengths
from ferret_core.experiment.estimate import Speed, estimate
from ferret_core.models import architecture
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate
from ferret_core.system import memory_limit
from ferret_core.training.config import LocalConfig
from tests.refusals import refused

PEAK = """
import json, sys
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.simulate import simulate

print(simulate(ExperimentSpec.model_validate_json(sys.stdin.read())).rounds[1].cost["peak_memory_bytes"])
"""
LIMITED = f"""
import transformers.models.llama.modeling_llama
from pathlib import Path
from ferret_core.replica import replica
from ferret_core.system import memory_limit

held = int(Path("/proc/self/statm").read_text().split()[5]) * 4096
memory_limit.limit(held + 3 * 10**8)
{PEAK}"""
SpecFactory = Callable[..., ExperimentSpec]


@pytest.fixture
def wide_spec(toy_spec: SpecFactory, tiny_model_dir: Path, tmp_path: Path) -> ExperimentSpec:
    """One client that trains 20 M weights under a vocabulary of 16,000 on a sequence of 768 tokens."""
    config = LlamaConfig(
        vocab_size=16_000,
        hidden_size=512,
        intermediate_size=1376,
        num_hidden_layers=4,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    AutoTokenizer.from_pretrained(tiny_model_dir).save_pretrained(tmp_path / "model")
    rows = [{"instruction": "a", "input": "", "output": "b" * 1200}] * 4
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return toy_spec(
        options={"local": {"optimizer": "normalized", "steps": 1, "batch_size": 1, "accumulation": 1}},
        rounds=1,
        model={"source": str(tmp_path / "model")},
        dataset={"name": "jsonl", "train": str(tmp_path / "rows.jsonl"), "test": str(tmp_path / "rows.jsonl")},
        prompt={"max_tokens": 768},
        participants={"simulated": 1},
        evaluation={"examples": 1, "generate_examples": 0, "batch_size": 1},
    )


@pytest.mark.slow
def test_peak_memory_is_the_planned_one(wide_spec: ExperimentSpec) -> None:
    lengths = token_lengths.measure(wide_spec)
    assert lengths is not None
    assert (lengths.longest, lengths.cut) == (768, 1.0)
    outline = architecture.of_folder(wide_spec.model.source)
    planned = estimate(catalog.resolve(wide_spec), outline, None, lengths, Speed.assumed(1e12)).memory_bytes
    assert float(_run(PEAK, wide_spec).stdout) == pytest.approx(planned, rel=0.2)


@pytest.mark.heavy
def test_process_without_memory_ends_with_an_error(wide_spec: ExperimentSpec) -> None:
    ended = _run(LIMITED, wide_spec)
    assert ended.returncode == 1
    assert "memory.exhausted" in ended.stderr, ended.stderr[-3000:]


def test_refuses_before_training(toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "machine_bytes", lambda: 10**8)
    with refused("memory.exhausted", "100.0 MB", field="algorithm.local.optimizer"):
        simulate(toy_spec(rounds=1))


def test_steps_move_to_the_backward_pass_where_only_that_fits(
    toy_spec: SpecFactory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spec = toy_spec(rounds=1, options={"local": {"optimizer": "normalized", "batch_size": 1, "accumulation": 2}})
    roomy = simulate(spec)
    assert not caplog.records

    def needed(local: LocalConfig, **_: object) -> int:
        return 1 if local.optimizer_in_backward else 3

    monkeypatch.setattr(local_round, "least_bytes", needed)
    monkeypatch.setattr(memory_limit, "usable_bytes", lambda: 2)
    monkeypatch.setattr(memory_limit, "limit", lambda most: None)
    scarce = simulate(spec)
    assert "backward pass" in caplog.text
    assert scarce.rounds[1].metrics["eval_loss"] == pytest.approx(roomy.rounds[1].metrics["eval_loss"], rel=1e-4)
    with refused("memory.exhausted", "no clip_norm"):
        simulate(toy_spec("fedavg", options={"local": {"optimizer": "sgd", "clip_norm": 1.0}}))
    with refused("memory.exhausted", "another algorithm.allocation"):
        simulate(toy_spec(options={"allocation": "curvature", "local": {"optimizer": "normalized"}}))


def _run(program: str, spec: ExperimentSpec) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], input=spec.model_dump_json(), capture_output=True, text=True, check=False
    )
