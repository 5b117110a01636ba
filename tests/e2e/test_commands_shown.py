"""What README and the heads of the examples show, typed: on a running service, with small data in their formats."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ferret_cli.main import app

ROOT = Path(__file__).parents[2]
HEAD = re.compile(r"^#   ferret (.+)$", re.MULTILINE)
SHOWN = [path for path in sorted((ROOT / "examples").glob("*.toml")) if HEAD.search(path.read_text())]
# Small data have fewer clients than the paper's, and a model of random weights minds no noise.
SHORT = ["rounds=1", "algorithm.local.steps=1", "algorithm.local.accumulation=1", "evaluation.generate_examples=0"]
SMALL = {
    "codealpaca": ["participants={simulated=3}", "dataset.languages=3", "algorithm.refuse_noisy_rounds=false"],
    "dolly": ["participants={simulated=2}", "partition.min_examples=1", "algorithm.refuse_noisy_rounds=false"],
    "gsm8k": ["algorithm.refuse_noisy_rounds=false"],
    "natural_instructions": ["participants={simulated=2}", "algorithm.refuse_noisy_rounds=false"],
    "jsonl": ["tune.trials=1", "tune.seeds=1"],
}
Served = Any  # tests/shared_service.py


@pytest.fixture
def run(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """``run(command, setting, …)``: what ``ferret`` printed, in a folder that has the examples."""
    for shared in ("examples", "ferret_core"):
        (tmp_path / shared).symlink_to(ROOT / shared)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FERRET_HOME", str(served.home))

    def run(command: str, *settings: str) -> str:
        done = CliRunner().invoke(
            app, [*shlex.split(command), *(part for each in settings for part in ("--set", each))]
        )
        assert done.exit_code == 0, f"ferret {command}: {done.exception or done.output}"
        return done.output

    return run


@pytest.mark.parametrize("example", SHOWN, ids=lambda path: path.stem)
def test_the_commands_at_the_head_of_an_example_work(
    example: Path,
    run: Callable[..., str],
    dataset_sample: Callable[..., Any],
    tiny_model_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dataset = tomllib.loads(example.read_text())["dataset"]
    (tmp_path / "data").mkdir()
    sample = dataset_sample(dataset["name"], tmp_path / "data")
    monkeypatch.setenv("MODEL", str(tiny_model_dir))
    for option, value in dataset.items():
        for name in re.findall(r"\$\{(\w+)\}", str(value)):
            monkeypatch.setenv(name, str(sample.options[option]))
    for command in HEAD.findall(example.read_text()):
        small = [each for each in SMALL[dataset["name"]] if "fedavg" not in command or "noisy" not in each]
        run(command, *small, *([] if command.startswith("data") else SHORT))


def test_the_documented_clone_is_the_experiment_with_that_change(run: Callable[..., str], served: Served) -> None:
    (line,) = re.findall(
        r"^ferret (experiment clone ID .+?) +#", (ROOT / "docs/researchers/experiments.md").read_text(), re.MULTILINE
    )
    submitted = ids(run("submit examples/quickstart.toml", *SHORT))[-1]
    clone = served.service.experiment(ids(run(line.replace("ID", submitted)))[-1])
    assert clone.id != submitted
    assert clone.experiment.spec["algorithm"]["bytes_per_round"] == 65_536
    assert clone.experiment.spec["rounds"] == 1
    for id in (submitted, clone.id):
        served.service.experiment(id).wait()


def ids(printed: str) -> list[str]:
    return re.findall(r"exp_[0-9a-f]{16}", printed)
