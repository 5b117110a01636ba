"""``ferret plan`` and the summary of ``ferret submit``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ferret_cli.estimate_output import summary
from ferret_cli.main import app
from ferret_cli.spec_input import load
from ferret_core import catalog
from ferret_core.replica.replica import Replica
from tests.refusals import refused

QUICKSTART = Path(__file__).parents[3] / "examples/quickstart.toml"


def run(*arguments: str) -> tuple[str, str]:
    ended = CliRunner().invoke(app, ["plan", str(QUICKSTART), *arguments])
    assert ended.exit_code == 0, ended.output
    return ended.stdout, ended.stderr


def test_it_prints_the_plan_and_advises_apart() -> None:
    told, advice = run("--shape", "llama-3b", "--set", "algorithm.local.optimizer=adam")
    assert "3,426,473,600" in told
    assert "noise expected" in told
    assert "noise accumulated" in told
    assert "advice: noise of " in advice


def test_the_private_preset_tells_what_its_sum_costs() -> None:
    told, _ = run("--preset", "private", "--teraflops", "1")
    assert re.search(r"secure sum +3 bits for a number, 941 B of keys and shares; 4 of 5 participants must stay", told)
    assert re.search(r"price of the sum +\S+ times the 8.8 kB without a sum, \S+ to \S+ times the noise's energy", told)


def test_json_is_one_document() -> None:
    told = json.loads(run("--json", "--teraflops", "100")[0])
    assert told["participants"] == 4
    assert told["bytes_up"] < 10_000
    assert told["disk_bytes"] > 4 * 4 * told["d"]
    assert 0 < told["noise"]["percent"] < 25
    assert told["noise"]["largest"]["block"]
    assert told["noise"]["percent"] < told["noise"]["accumulated_percent"]


@pytest.mark.heavy
def test_it_needs_no_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None; from ferret_cli.main import app; "
        f"app(['plan', {str(QUICKSTART)!r}, '--json'])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["d"] > 1_000_000


def test_it_tells_the_digest_that_the_model_is_then_held_to() -> None:
    told = json.loads(run("--json", "--digest")[0])["digest"]
    assert f"digest of the model   {told}" in run("--digest")[0]
    spec = load(QUICKSTART, [f"model.digest={told}"])
    assert Replica.load(catalog.resolve(spec).spec).digest == told


def test_an_unknown_shape_and_a_missing_model_are_refused() -> None:
    for arguments, message in [(["--shape", "gpt-5"], "--shape"), (["--set", "model.source=org/x"], "model.source")]:
        ended = CliRunner().invoke(app, ["plan", str(QUICKSTART), *arguments])
        assert ended.exit_code != 0
        assert message in str(ended.exception) + ended.output


def test_unreadable_data_on_this_machine_are_refused_and_those_elsewhere_are_not(tmp_path: Path) -> None:
    data = tmp_path / "turns.jsonl"
    assigned = ["plan", str(QUICKSTART), "--set", f"dataset.train={data}"]
    assert CliRunner().invoke(app, assigned).exit_code == 0
    data.write_text('{"messages": [{"role": "user", "content": ""}, {"role": "assistant", "content": "Good."}]}\n')
    with refused("dataset.invalid", "line 1, messages[0]: field 'content' is empty: write a text"):
        CliRunner().invoke(app, assigned, catch_exceptions=False)


def test_submits_summary_is_short_and_silent_for_a_model_that_is_elsewhere() -> None:
    first, *_ = summary(load(QUICKSTART))
    assert "weights, 4 participants in a round, " in first
    assert summary(load(QUICKSTART, ["model.source=org/elsewhere"])) == []


@pytest.mark.parametrize("name", ["codealpaca", "dolly", "gsm8k", "natural_instructions"])
@pytest.mark.heavy
def test_the_examples_are_let_pass_for_a_3b_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (QUICKSTART.parent / f"{name}.toml").read_text()
    for variable in re.findall(r"\$\{(\w+)\}", text):
        monkeypatch.setenv(variable, "/nowhere")
    ended = CliRunner().invoke(app, ["plan", str(QUICKSTART.parent / f"{name}.toml"), "--shape", "llama-3b", "--json"])
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["noise"]["percent"] < 25


def test_without_a_file_set_gives_everything() -> None:
    model = QUICKSTART.parents[1] / "ferret_core/sample/model"
    values = ["name=bare", f"model.source={model}", "dataset.name=jsonl", "dataset.train=/x.jsonl"]
    options = [option for value in [*values, "participants.simulated=4"] for option in ("--set", value)]
    ended = CliRunner().invoke(app, ["plan", "--json", "--teraflops", "1", *options])
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout)["participants"] == 4
    incomplete = CliRunner().invoke(app, ["plan", "--set", "name=bare"])
    assert str(incomplete.exception) == "the specification: 3 values are missing or wrong"
