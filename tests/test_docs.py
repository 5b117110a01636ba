"""The documents say what the code does: settings, commands, folders."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ferret_api.settings import ApiSettings
from ferret_cli import spec_input
from ferret_cli.main import app
from ferret_cli.simulation_output import facts
from ferret_cli.tune import plan
from ferret_cli.tune.settings import USUAL_TRIALS, Settings
from ferret_core import catalog, sample
from ferret_core.datasets.base import Example
from ferret_core.datasets.tokenization.tokenize import encode_prompts
from ferret_core.protocol.ids import SIMULATION
from ferret_core.protocol.metrics import METRICS, metric
from ferret_core.protocol.spec import ExperimentSpec
from ferret_core.replica import checkpoint
from ferret_core.replica.export import complete
from ferret_core.replica.replica import Replica
from ferret_core.sample import model_path
from ferret_core.simulate import RoundResult, SimulationResult, simulate
from ferret_worker.settings import WorkerSettings
from tests import algorithms

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]
FERRET = [sys.executable, "-m", "ferret_cli"]
LINK = r"\]\(((?!http)[^)#]+)\)"
FIELDS = {**ApiSettings.model_fields, **WorkerSettings.model_fields}


@pytest.mark.parametrize("name", FIELDS)
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    row = re.search(rf"^\| `FERRET_{name.upper()}`.*$", (ROOT / "docs/reference/settings.md").read_text(), re.MULTILINE)
    assert row, f"FERRET_{name.upper()} is missing in docs/reference/settings.md"
    default = FIELDS[name].default
    if isinstance(default, int | float):
        assert f"`{default:g}`" in row[0] or f"`{default}`" in row[0]


def test_every_documented_setting_exists() -> None:
    server = (ROOT / "docs/reference/settings.md").read_text().split("## Clients")[0]
    assert {name.lower() for name in re.findall(r"^\| `FERRET_(\w+)`", server, re.MULTILINE)} == set(FIELDS)


def test_the_metrics_that_are_documented_are_the_catalog_and_have_its_units() -> None:
    text = (ROOT / "docs/researchers/metrics.md").read_text().split("## Metrics for Prometheus")[0]
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]+) \|", text, re.MULTILINE)
    documented = {name: unit for names, unit in rows for name in re.findall(r"\w+", names)}
    assert documented == {name: metric.unit for name, metric in METRICS.items()}


def test_the_alert_rules_use_documented_metrics() -> None:
    rules = re.findall(r"expr: (.*)", (ROOT / "docs/operators/alert-rules.md").read_text())
    used = {name.removesuffix("_bucket") for rule in rules for name in re.findall(r"ferret_\w+", rule)}
    assert used
    assert used <= set(
        re.findall(r"^\| `(ferret_\w+)`", (ROOT / "docs/researchers/metrics.md").read_text(), re.MULTILINE)
    )


def test_every_metric_of_a_round_is_in_the_catalog(toy_spec: Callable[..., ExperimentSpec]) -> None:
    base, first = simulate(toy_spec(rounds=1)).rounds
    assert all(metric(name) for name in {*base.metrics, *first.metrics, *first.cost})


def test_every_algorithm_and_no_other_is_documented() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \|.*\|.*\|.*\|$", (ROOT / "docs/researchers/algorithms.md").read_text(), re.MULTILINE
    )
    assert sorted(rows) == algorithms.NAMES


def test_every_preset_of_an_algorithm_and_no_other_is_documented() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", (ROOT / "docs/researchers/algorithms.md").read_text(), re.MULTILINE)
    presets = [name for name in catalog.names("algorithms") if catalog.base(name) != name]
    assert sorted(rows) == sorted((name, catalog.base(name)) for name in presets)


def test_every_folder_on_the_map_exists_and_every_package_is_on_it() -> None:
    text = (ROOT / "docs/map.md").read_text()
    named = set(re.findall(r"^\| `([\w/]+?)/?`", text, re.MULTILINE))
    assert [folder for folder in named if not (ROOT / folder).exists()] == []
    packages = [
        str(path.parent.relative_to(ROOT))
        for pattern in ("ferret_*/__init__.py", "*/ferret_*/__init__.py")
        for path in ROOT.glob(pattern)
        if not path.parent.is_symlink()
    ]
    assert [package for package in packages if not any(f"{name}/".startswith(f"{package}/") for name in named)] == []


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if re.search(LINK, (ROOT / name).read_text())])
def test_every_link_leads_somewhere(document: str) -> None:
    targets = re.findall(LINK, (ROOT / document).read_text())
    assert [target for target in targets if not (ROOT / document).parent.joinpath(target).exists()] == []


GROUPS = [group.name for group in app.registered_groups if group.name]


def commands_shown(document: str) -> set[tuple[str, ...]]:
    """The ``ferret`` commands in the document's blocks of console input."""
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", (ROOT / document).read_text(), re.DOTALL))
    found = re.findall(rf"ferret ((?:dev paper |(?:{'|'.join(GROUPS)}) )?[a-z][a-z-]*)", blocks)
    return {tuple(command.split()) for command in found}


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if commands_shown(name)])
@pytest.mark.heavy
def test_every_ferret_command_shown_exists(document: str) -> None:
    for command in commands_shown(document):
        assert CliRunner().invoke(app, [*command, "--help"]).exit_code == 0, command


@pytest.mark.heavy
def test_the_snippet_asks_the_exported_model_as_training_did(
    tmp_path: Path, toy_spec: Callable[..., ExperimentSpec]
) -> None:
    replica = Replica.load(catalog.resolve(toy_spec(model={"source": str(model_path())})).spec)
    result = SimulationResult([RoundResult(0, replica.digest, {}, 0, 0, [], {}, {}, {})], [], replica.digest)
    checkpoint.write_folder(replica, SIMULATION, tmp_path / "tuned-model")
    complete(tmp_path / "tuned-model", facts(replica.spec, result))
    tutorial = ROOT / "docs/tutorials/first-experiment.md"
    blocks = re.findall(r"```python\n(.*?)```", tutorial.read_text(), re.DOTALL)
    (snippet,) = [block for block in blocks if "apply_chat_template" in block]
    program = f"{snippet}\nprint(tokens['input_ids'].tolist())"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    trained = encode_prompts([Example("Say the opposite.", "a slow white swan", "")], replica.tokenizer, 1000)
    assert json.loads(done.stdout.splitlines()[-1]) == trained


@pytest.mark.slow
def test_the_question_shown_is_answered_right_after_the_experiment_shown(tmp_path: Path) -> None:
    """It trains for 40 s. The question is none of the training examples."""
    quickstart = ROOT / "examples" / "quickstart.toml"
    assert "a slow white swan" not in sample.quickstart_data().read_text()
    folder = tmp_path / "tuned-model"
    subprocess.run([*FERRET, "simulate", str(quickstart), "--out", str(folder)], check=True, capture_output=True)
    (asked,) = re.findall(r"^ferret (chat tuned-model .*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    done = subprocess.run([*FERRET, *shlex.split(asked)], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "a fast white swan"


def test_every_make_target_shown_exists() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", (ROOT / "README.md").read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.toml")), ids=lambda path: path.name)
def test_every_example_is_a_valid_experiment_or_search(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in re.findall(r"\$\{(\w+)\}", path.read_text()):
        monkeypatch.setenv(name, f"/somewhere/{name.lower()}")
    if "tune" in tomllib.loads(path.read_text()):
        assert plan.read(path).name
    else:
        assert catalog.resolve(spec_input.load(path)).spec.name


def changed_examples() -> list[tuple[str, tuple[str, ...]]]:
    """The changes to an example that its own head or a document shows; a clone is of the quickstart."""
    found = set[tuple[str, tuple[str, ...]]]()
    for path in [*DOCUMENTS, *(str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.toml"))]:
        lines = [line for line in (ROOT / path).read_text().splitlines() if "ferret" in line and "--set " in line]
        for line in lines:
            example = re.search(r"examples/[a-z0-9_]+[.]toml", line)
            if example or "clone ID" in line:
                shown = re.search("--set [^`]*", line)
                words = shlex.split(shown[0], comments=True) if shown else []
                # A relative path must exist here.
                changes = [
                    change.replace("=./", "=/somewhere/") for option, change in pairwise(words) if option == "--set"
                ]
                found.add((example[0] if example else "examples/quickstart.toml", tuple(changes)))
    return sorted(found)


@pytest.mark.parametrize(("example", "changes"), changed_examples())
def test_a_change_that_is_shown_gives_a_valid_experiment(
    example: str, changes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in re.findall(r"\$\{(\w+)\}", (ROOT / example).read_text()):
        monkeypatch.setenv(name, f"/somewhere/{name.lower()}")
    before, after = (catalog.resolve(spec_input.load(ROOT / example, given)).spec for given in ((), changes))
    assert after != before


def test_the_settings_of_a_search_are_documented_with_their_defaults_and_the_example_is_shown() -> None:
    text = (ROOT / "docs/researchers/tuning.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| `(\w+)` \|", text, re.MULTILINE))
    defaults = {name: field.default for name, field in Settings.model_fields.items()} | {"trials": USUAL_TRIALS}
    assert rows == {name: str(default) for name, default in defaults.items()}
    (shown,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert tomllib.loads(shown)["tune"] == tomllib.loads((ROOT / "examples/tune.toml").read_text())["tune"]


def test_the_readmes_specification_is_the_example() -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert tomllib.loads(shown) == tomllib.loads((ROOT / "examples/quickstart.toml").read_text())


def test_the_guide_to_tls_agrees_with_the_service() -> None:
    guide = (ROOT / "docs/operators/tls.md").read_text()
    mebibytes = ApiSettings.model_fields["part_bytes"].default >> 20
    assert f"client_max_body_size {mebibytes}m;" in guide
    assert guide.count(f"127.0.0.1:{ApiSettings.model_fields['port'].default}") == 4
    (streamed,) = re.findall(r"location ~ (\S+) \{", guide)
    paths = json.loads((ROOT / "openapi.json").read_text())["paths"]
    streams = [path for path in paths if re.search(streamed, path)]
    assert streams == ["/api/v1/experiments/{experiment_id}/events/stream"]
